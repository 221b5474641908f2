/* SPDX-License-Identifier: Apache-2.0 */
/* The overlays: ways of running that a right engine does not show in its answers. A table, and what it draws. */
#include "harness_internal.h"

#include <string.h>

static const hf_harness_overlay overlays[] = {
    {"tasks_1", "one task a stage, cut as if there were more", {.tasks = 1, .slots = 1}},
    {"tasks_2", "two tasks a stage", {.tasks = 2, .slots = 2}},
    {"tasks_3", "three tasks a stage", {.tasks = 3, .slots = 3}},
    {"tasks_7", "seven tasks a stage", {.tasks = 7, .slots = 7}},
    {"one_partition_a_task", "each task reads one partition", {.tasks = 4, .slots = 4, .partitions = 4}},
    {"partitions_11",
     "tasks read several partitions, not all as many",
     {.tasks = 4, .slots = 2, .partitions = 11}},
    {"slots_2", "more tasks than slots", {.tasks = 7, .slots = 2}},
    {"random_order", "tasks begin in any order", {.tasks = 5, .slots = 2, .order_seed = 20260501}},
    {"fresh_instances",
     "every task in an instance of its own",
     {.tasks = 2, .slots = 2, .fresh_instances = true}},
    {"streaming",
     "all tasks run together and hand rows on as they come",
     {.tasks = 3, .slots = 3, .exchange = HF_HARNESS_STREAMING}},
    {"streaming_small",
     "the same, with channels that hold next to nothing",
     {.tasks = 2, .slots = 2, .exchange = HF_HARNESS_STREAMING, .channel_bytes = 4096}},
    {"hash_zero", "all rows in one partition", {.tasks = 3, .slots = 3, .hash_zero = true}},
    {"batch_rows_1", "batches of one row", {.tasks = 2, .slots = 2, .batch_rows = 1}},
    {"kill_task", "a task of every stage fails and runs again", {.tasks = 3, .slots = 3, .kill_task = 2}},
    {"kill_task_streaming",
     "a task fails and the job runs again",
     {.tasks = 3, .slots = 3, .exchange = HF_HARNESS_STREAMING, .kill_task = 2}},
    {"broadcast_always",
     "every join side that may be is read whole by every task",
     {.tasks = 3, .slots = 3, .broadcast = HF_HARNESS_BROADCAST_ALWAYS}},
    {"again",
     "the query is cut again by what its first stages gave",
     {.tasks = 3, .slots = 3, .again = true, .broadcast = HF_HARNESS_BROADCAST_NEVER}},
    {"broadcast_never",
     "both sides of every join are dealt by the keys",
     {.tasks = 3, .slots = 3, .broadcast = HF_HARNESS_BROADCAST_NEVER}},
    {"held",
     "inputs are read from blocks of a cached result",
     {.tasks = 3, .slots = 3, .hold = HF_HARNESS_HOLD_HELD}},
    {"inlined",
     "inputs were cached and let go: computed in place",
     {.tasks = 3, .slots = 3, .hold = HF_HARNESS_HOLD_INLINED}},
};

const hf_harness_overlay *hf_harness_overlays(size_t *n) {
  *n = sizeof overlays / sizeof overlays[0];
  return overlays;
}

const hf_harness_overlay *hf_harness_overlay_named(const char *name) {
  for (size_t i = 0; name != NULL && i < sizeof overlays / sizeof overlays[0]; i++) {
    if (strcmp(overlays[i].name, name) == 0) {
      return &overlays[i];
    }
  }
  return NULL;
}

/* splitmix64 */
static uint64_t draw(job_run *j) {
  uint64_t z = (j->random += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void job_shuffle(job_run *j, task_run **tasks, size_t n) {
  for (size_t i = n; j->config->order_seed != 0 && i > 1; i--) {
    size_t other = (size_t)(draw(j) % i);
    task_run *moved = tasks[i - 1];
    tasks[i - 1] = tasks[other];
    tasks[other] = moved;
  }
}

/* The task of that number, or the last where there are fewer; its first attempt. */
bool task_is_to_be_killed(const task_run *t) {
  uint32_t n = t->job->plan->stages[t->stage].n_tasks, number = t->job->config->kill_task;
  return number > 0 && t->attempt.value == 1 && t->number + 1 == (number < n ? number : n);
}

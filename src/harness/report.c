/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a run: its stages with the rows of each task, and the edges between
 * them. What the answers came to is filled in by assert.c.
 * Thread: that of the caller.
 */
#include "harness_internal.h"

#include <string.h>

static bool is_spooled(const job_run *j, uint32_t stage, size_t input) {
  for (size_t i = 0; i < j->n_edges; i++) {
    if (j->edges[i].stage == stage && j->edges[i].input == input) {
      return j->edges[i].spooled_frames > 0;
    }
  }
  return false;
}

static bool edges_make(const job_run *j, uint32_t number, arena *a, hf_harness_stage *out) {
  static const char *const shares[] = {
      [CUT_SPLIT] = "split", [CUT_PARTITION] = "partition", [CUT_ALL] = "all"};
  const planned_stage *stage = &j->plan->stages[number];
  hf_harness_edge *edges = arena_array(a, stage->n_inputs, sizeof *edges);
  for (size_t i = 0; edges != NULL && i < stage->n_inputs; i++) {
    const planned_input *input = &stage->inputs[i];
    if (!input->is_stage) {
      continue;
    }
    hf_harness_edge *edge = &edges[out->n_edges++];
    *edge = (hf_harness_edge){.from = input->from, .input = (uint32_t)i, .share = shares[input->share]};
    edge->is_spooled = is_spooled(j, number, i);
    for (uint32_t t = 0; t < j->plan->stages[input->from].n_tasks; t++) {
      edge->written += j->done[input->from][t] == NULL ? 0 : j->done[input->from][t]->rows;
    }
    for (uint32_t t = 0; t < stage->n_tasks; t++) {
      const task_run *task = j->done[number][t];
      edge->delivered += task == NULL ? 0 : task->given[i].rows;
      edge->is_cut_short = edge->is_cut_short || (task != NULL && task->given[i].is_cut_short);
    }
  }
  out->edges = edges;
  return edges != NULL;
}

/* What every task reads whole is no share of the work. */
static uint64_t rows_read(const task_run *t, const planned_stage *stage) {
  uint64_t rows = t->stats.source_rows;
  for (size_t i = 0; i < stage->n_inputs; i++) {
    rows += stage->inputs[i].share == CUT_ALL && stage->n_tasks > 1 ? 0 : t->given[i].rows;
  }
  return rows;
}

static bool stage_make(const job_run *j, uint32_t number, arena *a, hf_harness_stage *out) {
  const planned_stage *stage = &j->plan->stages[number];
  uint64_t *rows = arena_array(a, stage->n_tasks, sizeof *rows);
  uint64_t *reads = arena_array(a, stage->n_tasks, sizeof *reads);
  *out =
      (hf_harness_stage){.what = arena_strdup(a, stage->cut->what),
                         .why_one = arena_strdup(a, stage->cut->why_one == NULL ? "" : stage->cut->why_one),
                         .tasks = stage->n_tasks,
                         .partitions = stage->partitions,
                         .task_rows = rows,
                         .task_reads = reads};
  for (uint32_t t = 0; rows != NULL && reads != NULL && t < stage->n_tasks; t++) {
    const task_run *task = j->done[number][t];
    rows[t] = task == NULL ? 0 : task->rows;
    reads[t] = task == NULL ? 0 : rows_read(task, stage);
  }
  return rows != NULL && reads != NULL && out->what != NULL && out->why_one != NULL &&
         edges_make(j, number, a, out);
}

/* Two tasks with rows in some stage. */
static bool is_spread(const hf_harness_report *r) {
  for (size_t i = 0; i < r->n_stages; i++) {
    uint32_t with_rows = 0;
    for (uint32_t t = 0; t < r->stages[i].tasks; t++) {
      with_rows += r->stages[i].task_rows[t] + r->stages[i].task_reads[t] > 0 ? 1 : 0;
    }
    if (with_rows > 1) {
      return true;
    }
  }
  return false;
}

hf_status report_make(const job_run *j, const query_plan *plan, hf_harness_report *out, hf_error *error) {
  arena *a = arena_new();
  *out =
      (hf_harness_report){.result = HF_HARNESS_REJECTED, .reason = "", .rows = "", .doubt = "", .memory = a};
  if (a == NULL) {
    return harness_no_memory(error);
  }
  if (j->memory == NULL) { /* planning failed */
    return HF_OK;
  }
  hf_harness_stage *stages = arena_array(a, plan->n_stages, sizeof *stages);
  for (uint32_t i = 0; stages != NULL && i < plan->n_stages; i++) {
    if (!stage_make(j, i, a, &stages[i])) {
      stages = NULL;
    }
  }
  out->reason = plan->fallback == NULL ? "" : arena_strdup(a, plan->fallback);
  if (stages == NULL || out->reason == NULL) {
    hf_harness_report_reset(out);
    return harness_no_memory(error);
  }
  out->n_stages = plan->n_stages;
  out->stages = stages;
  out->killed = atomic_load(&j->killed);
  out->restarts = j->restarts;
  out->recut = plan->n_recut;
  out->ran_blocking = j->ran_blocking;
  out->result = plan->fallback != NULL ? HF_HARNESS_FELL_BACK
                : is_spread(out)       ? HF_HARNESS_DISTRIBUTED
                                       : HF_HARNESS_NOT_SPREAD;
  return HF_OK;
}

void hf_harness_report_reset(hf_harness_report *report) {
  if (report != NULL) {
    arena_free(report->memory);
    *report = (hf_harness_report){0};
  }
}

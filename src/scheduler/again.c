/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning again: after a stage that gave other than was guessed the rest of a query
 * is cut again on a planning thread, over a copy of its planning with memory of its
 * own; what was launched stays as it is. The new graph is taken over when it has all
 * that was launched, each once, and reads nothing that has been deleted; else the old
 * one goes on. The cutting itself is in cutting.c, launching in launch.c.
 * Threads: recut_handle a planning thread, the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"

typedef struct recut {
  planning p; /* first: its step is the message */
  job_id job;
} recut;

/* What a stage wrote is worth another look at the rest, in bytes. */
static const double FEW = 4 << 20, MANY = 8 << 20;
enum { REST_OF_SMALL = 3 }; /* stages to come that few rows may save some of */

static bool is_surprising(double guessed, double found, size_t n_waiting) {
  bool grew = found > 4 * guessed && found > MANY, shrank = found * 8 < guessed && guessed > MANY;
  bool are_few = found < FEW && guessed >= FEW && n_waiting >= REST_OF_SMALL;
  return n_waiting > 1 && (grew || shrank || are_few);
}

static bool wants_again(const job *j, const stage_run *done) {
  size_t n_waiting = 0;
  for (size_t i = 0; i < j->n_runs; i++) {
    n_waiting += j->runs[i].state == STAGE_WAITING;
  }
  if (j->is_fill || j->is_recut || j->plan.root == NULL || j->plan.n_again == AGAIN_AT_MOST) {
    return false;
  }
  const cut_stage *stage = &j->plan.graph.stages[done - j->runs];
  return !stage->is_done && is_surprising(stage->bytes, (double)done->bytes, n_waiting);
}

static bool take_facts(const job *j, planning *p) {
  cut_fact *facts = arena_array(p->memory, j->n_runs, sizeof *facts);
  size_t n = 0;
  for (size_t i = 0; facts != NULL && i < j->n_runs; i++) {
    const stage_run *stage = &j->runs[i];
    if (stage->state == STAGE_DONE) {
      facts[n++] = (cut_fact){
          .mark = j->plan.graph.stages[i].mark, .is_done = true, .rows = stage->rows, .bytes = stage->bytes};
    }
  }
  p->cut.facts = facts;
  p->cut.n_facts = n;
  return facts != NULL;
}

static void recut_free(recut *r) {
  hf_error_reset(&r->p.error);
  arena_free(r->p.memory);
  mem_free(r);
}

static hf_status recut_on(void *context, engine *planner_engine, hf_error *error) {
  return cutting_again(planner_engine, context, error);
}

static void recut_handle(scheduler *s, message *m) {
  planning *p = (planning *)m;
  planner_user user = {.who = p, .use = recut_on, .context = p};
  uint64_t started = clock_monotonic_us();
  p->status = planner_use(s, p->settings, &user, &p->error);
  if (p->status == HF_OK && p->graph.n_stages > 0) {
    p->status = staging_prepare(s, p, &p->error);
  }
  p->planning_us = clock_monotonic_us() - started;
  p->step.handle = p->done;
  event_queue_post(&s->events, &p->step.item); /* open: closing waits for every job */
}

static bool is_same(cut_mark a, cut_mark b) {
  return a.high == b.high && a.low == b.low;
}

/* Which stage of the old graph each of the new one is, n_runs for none. False: one that was launched is none of it, or
 * may be two. */
static bool match(const job *j, const planning *p, size_t *old_of) {
  for (size_t i = 0; i < p->n_stages; i++) {
    old_of[i] = j->n_runs;
  }
  for (size_t k = 0; k < j->n_runs; k++) {
    const cut_stage *old = &j->plan.graph.stages[k];
    size_t n_found = 0;
    for (size_t i = 0; j->runs[k].state != STAGE_WAITING && i < p->n_stages; i++) {
      const cut_stage *made = &p->graph.stages[i];
      if (is_same(old->mark, made->mark)) {
        bool is_free = old_of[i] == j->n_runs && (old->ordered || !made->ordered);
        n_found += is_free ? 1 : 2;
        old_of[i] = k;
      }
    }
    if (j->runs[k].state != STAGE_WAITING && n_found != 1) {
      return false;
    }
  }
  return true;
}

/* Where the new graph has an old stage, or n_stages. */
static size_t place_of(const planning *p, const size_t *old_of, uint32_t old) {
  size_t k = 0;
  while (k < p->n_stages && old_of[k] != old) {
    k++;
  }
  return k;
}

/* The old stage, whose inputs are where the new graph has them. */
static bool move_stage(const job *j, const planning *p, const size_t *old_of, size_t at, planned_stage *out) {
  const planned_stage *old = j->runs[old_of[at]].planned;
  planned_input *inputs = arena_array(p->memory, old->n_inputs, sizeof *inputs);
  for (size_t i = 0; inputs != NULL && i < old->n_inputs; i++) {
    inputs[i] = old->inputs[i];
    size_t place = inputs[i].is_stage ? place_of(p, old_of, old->inputs[i].from) : 0;
    if (inputs[i].is_stage && place >= at) {
      return false;
    }
    inputs[i].from = (uint32_t)place;
  }
  *out = *old;
  out->inputs = inputs;
  return inputs != NULL;
}

/* Counts who has yet to read each. False: one is to be read that has been deleted. */
static bool count_reads(stage_run *runs, planned_stage *stages, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bool was_read = runs[i].state != STAGE_WAITING && runs[i].n_reads_left == 0;
    size_t n_left = 0;
    stages[i].n_reads = 0;
    for (size_t k = i + 1; k < n; k++) {
      for (size_t in = 0; in < stages[k].n_inputs; in++) {
        bool is_it = stages[k].inputs[in].is_stage && stages[k].inputs[in].from == i;
        stages[i].n_reads += is_it;
        n_left += is_it && runs[k].state != STAGE_DONE;
      }
    }
    if (was_read && n_left > 0) {
      return false;
    }
    runs[i].n_reads_left = n_left;
  }
  return true;
}

/* Puts the new graph in the place of the old one, with what was launched. False: it stays. */
static bool take_over(scheduler *s, job *j, planning *p) {
  size_t n = p->n_stages;
  stage_run *runs = arena_array(p->memory, n, sizeof *runs);
  planned_stage *stages = arena_array(p->memory, n, sizeof *stages);
  size_t *old_of = arena_array(p->memory, n, sizeof *old_of);
  if (runs == NULL || stages == NULL || old_of == NULL || !match(j, p, old_of)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    bool is_old = old_of[i] < j->n_runs, is_made = true;
    stages[i] = p->stages[i];
    if (is_old) {
      runs[i] = j->runs[old_of[i]];
      is_made = move_stage(j, p, old_of, i, &stages[i]);
    } else {
      is_made = launch_run_make(&stages[i], p->memory, &runs[i]);
    }
    runs[i].planned = &stages[i];
    if (!is_made) {
      return false;
    }
  }
  if (old_of[n - 1] < j->n_runs || !count_reads(runs, stages, n)) {
    return false;
  }
  j->plan.graph = p->graph;
  j->plan.stages = stages;
  j->plan.n_stages = j->n_runs = n;
  j->plan.again[j->plan.n_again++] = p->memory;
  j->runs = runs;
  j->stage = stages[n - 1].id;
  observe_planned(s, j);
  return true;
}

static void on_recut(scheduler *s, message *m) {
  recut *r = (recut *)m;
  job *j = job_find(s, r->job); /* it waits for this as for an attempt */
  j->n_running--;
  j->is_recut = false;
  j->plan.planning_us += r->p.planning_us;
  if (report_is_ending(s, j)) {
    recut_free(r);
    return;
  }
  if (r->p.status == HF_OK && r->p.graph.n_stages > 0 && take_over(s, j, &r->p)) {
    r->p.memory = NULL;
  }
  recut_free(r);
  launch_ready(s, j);
}

bool again_try(scheduler *s, job *j, const stage_run *done) {
  recut *r = wants_again(j, done) ? mem_zalloc(1, sizeof *r) : NULL;
  if (r == NULL) {
    return false;
  }
  observe_note(j, done->planned->id, "it gave %llu bytes, which was not expected: the rest is planned again",
               (unsigned long long)done->bytes);
  r->job = j->id;
  r->p = j->plan;
  r->p.error = (hf_error){0};
  r->p.first_stage.value = j->stage.value + 1;
  r->p.memory = arena_new();
  if (r->p.memory == NULL || !take_facts(j, &r->p)) {
    recut_free(r);
    return false;
  }
  r->p.step.handle = recut_handle;
  r->p.done = on_recut;
  j->is_recut = true;
  j->n_running++;
  event_queue_post(&s->plans, &r->p.step.item);
  return true;
}

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
#include "base/fault.h"

typedef struct recut {
  planning p; /* first: its step is the message */
  job_id job;
  stage_id after; /* that gave reason to it */
} recut;

/* ------------------------------------------------------------------- facts */

/* The lists of two tasks, of the same columns. */
static bool add_watched(stage_run *stage, const task_output *output) {
  bool is_alike = output->n_watched == stage->n_watched;
  for (size_t i = 0; is_alike && i < stage->n_watched; i++) {
    is_alike = stage->watched[i].column == output->watched[i].column;
    if (is_alike && !FAULT("scheduler.first_summary")) {
      range_summary_add(&stage->watched[i], &output->watched[i]);
    }
  }
  return is_alike;
}

static bool first_watched(stage_run *stage, const task_output *output, arena *a) {
  stage->watched = arena_array(a, output->n_watched, sizeof *stage->watched);
  stage->n_watched = output->n_watched;
  for (size_t i = 0; stage->watched != NULL && i < stage->n_watched; i++) {
    stage->watched[i] = output->watched[i];
  }
  return stage->watched != NULL;
}

static void add_partitions(stage_run *stage, const task_output *output, arena *a) {
  uint32_t n = stage->planned->partitions;
  if (stage->n_done == 0) {
    stage->partition_bytes = arena_array(a, n, sizeof *stage->partition_bytes); /* of zeros */
  }
  if (output->partition_bytes == NULL || output->partitions != n) {
    stage->partition_bytes = NULL;
  }
  for (uint32_t i = 0; stage->partition_bytes != NULL && i < n; i++) {
    stage->partition_bytes[i] += output->partition_bytes[i];
  }
}

void again_gather(job *j, stage_run *stage, const task_output *output) {
  arena *a = j->plan.memory;
  bool is_known = stage->n_done == 0 ? first_watched(stage, output, a) : add_watched(stage, output);
  stage->n_watched = is_known ? stage->n_watched : 0;
  add_partitions(stage, output, a);
}

static hf_status take_column(const range_summary *from, const data_type *type, arena *a,
                             cut_column_fact *out) {
  range_kind kind = range_kind_of(type);
  uint64_t *values = arena_array(a, from->n_values, sizeof *values);
  *out = (cut_column_fact){.column = from->column,
                           .rows = from->rows,
                           .least = range_key_integer(kind, from->least),
                           .most = range_key_integer(kind, from->most),
                           .n_values = from->n_values,
                           .values = values};
  for (uint32_t i = 0; values != NULL && i < from->n_values; i++) {
    values[i] = range_key_integer(kind, from->values[i]);
  }
  return values == NULL ? HF_E_OUT_OF_MEMORY : HF_OK;
}

static hf_status take_fact(const job *j, size_t place, arena *a, cut_fact *out) {
  const stage_run *stage = &j->runs[place];
  const cut_stage *cut = &j->plan.graph.stages[place];
  *out = (cut_fact){.mark = cut->mark, .is_done = stage->state == STAGE_DONE};
  if (!out->is_done) {
    return HF_OK;
  }
  cut_column_fact *columns = arena_array(a, stage->n_watched, sizeof *columns);
  for (size_t i = 0; columns != NULL && i < stage->n_watched; i++) {
    const range_summary *watched = &stage->watched[i];
    HF_TRY(take_column(watched, cut->columns.columns[watched->column].type, a, &columns[i]));
  }
  out->rows = stage->rows;
  out->bytes = stage->bytes;
  out->n_columns = stage->n_watched;
  out->columns = columns;
  return columns == NULL ? HF_E_OUT_OF_MEMORY : HF_OK;
}

/* Of all stages that were launched. */
static bool take_facts(const job *j, planning *p) {
  cut_fact *facts = arena_array(p->memory, j->n_runs, sizeof *facts);
  bool is_complete = facts != NULL;
  size_t n = 0;
  for (size_t i = 0; is_complete && i < j->n_runs; i++) {
    if (j->runs[i].state != STAGE_WAITING) {
      is_complete = take_fact(j, i, p->memory, &facts[n++]) == HF_OK;
    }
  }
  p->cut.facts = facts;
  p->cut.n_facts = n;
  return is_complete;
}

/* ---------------------------------------------------------------- whether */

bool again_is_awaited(const job *j, const stage_run *stage) {
  for (size_t i = 0; i < j->n_runs; i++) {
    const planned_stage *planned = j->runs[i].planned;
    for (size_t k = 0; j->runs[i].state == STAGE_WAITING && k < planned->n_after; k++) {
      if (&j->runs[planned->after[k]] == stage) {
        return true;
      }
    }
  }
  return false;
}

/* What a stage wrote is worth another look at the rest, in bytes. */
static const double FEW = 4 << 20, MANY = 8 << 20;
enum { REST_OF_SMALL = 3 }; /* stages to come that few rows may save some of */

/* How it differs from what was guessed, or NULL. */
static const char *surprise_of(double guessed, double found, size_t n_waiting) {
  bool grew = found > 4 * guessed && found > MANY, shrank = found * 8 < guessed && guessed > MANY;
  bool are_few = found < FEW && guessed >= FEW && n_waiting >= REST_OF_SMALL;
  if (n_waiting <= 1) {
    return NULL;
  }
  return grew ? "more than was guessed" : shrank || are_few ? "less than was guessed" : NULL;
}

/* Values that lie so close together that their bounds may leave out others: one of so many, or more. */
enum { CLUMP = 8 };
/* Where all rows came that were expected, bounds are those of all. */
static const double MOST_OF_CLUMP = 0.8;

static bool is_clump(const range_summary *watched, const data_type *type) {
  range_kind kind = range_kind_of(type);
  uint64_t width = range_key_integer(kind, watched->most) - range_key_integer(kind, watched->least);
  return watched->rows > 0 && watched->rows >= width / CLUMP;
}

/* What its keys say to those who wait for it. */
static const char *keys_of(const stage_run *done, const cut_stage *stage) {
  bool are_fewer = (double)done->rows <= MOST_OF_CLUMP * stage->rows;
  for (size_t i = 0; i < done->n_watched; i++) {
    const range_summary *watched = &done->watched[i];
    if (watched->n_values > 0) {
      return "with few keys";
    }
    if (are_fewer && is_clump(watched, stage->columns.columns[watched->column].type)) {
      return "with keys close together";
    }
  }
  return NULL;
}

/* Why the rest had better be looked at again, or NULL: that takes 2 to 4 ms. */
static const char *why_again(const job *j, const stage_run *done) {
  size_t n_waiting = 0;
  for (size_t i = 0; i < j->n_runs; i++) {
    n_waiting += j->runs[i].state == STAGE_WAITING;
  }
  const cut_stage *stage = j->plan.root == NULL ? NULL : &j->plan.graph.stages[done - j->runs];
  if (j->recut != NULL || stage == NULL || done->is_told || j->plan.n_again == AGAIN_AT_MOST) {
    return NULL;
  }
  const char *why = surprise_of(stage->bytes, (double)done->bytes, n_waiting);
  if (why == NULL && again_is_awaited(j, done)) {
    bool is_less = done->rows == 0 || (double)done->bytes * 2 <= stage->bytes;
    why = is_less ? "less than was guessed" : keys_of(done, stage);
  }
  return why;
}

/* ----------------------------------------------------------------- cutting */

static void recut_free(recut *r) {
  hf_error_reset(&r->p.error);
  arena_free(r->p.memory);
  mem_free(r);
}

static hf_status recut_on(void *context, engine *planner_engine, hf_error *error) {
  fault_point("scheduler.recut");
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

/* -------------------------------------------------------------- taking over */

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
      if (is_same_mark(old->mark, made->mark)) {
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
  out->n_after = 0; /* it has begun */
  return inputs != NULL;
}

/* Whether another relies on the rows of each of its tasks to be those of one partition, which they are not any more. */
static bool is_misread(const planned_stage *stages, size_t n, size_t at) {
  for (size_t k = at + 1; stages[at].parts != NULL && k < n; k++) {
    if (launch_splits(&stages[k], (uint32_t)at)) {
      return true;
    }
  }
  return false;
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
    if ((was_read && n_left > 0) || is_misread(stages, n, i)) {
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
  if (j->is_fill) {
    registry_claim_stage(s->registry, &j->key, j->id, j->stage);
  }
  observe_planned(s, j);
  return true;
}

/* Whether it is the graph that is there. */
static bool is_as_before(const job *j, const planning *p) {
  bool is_same = p->graph.n_stages == j->plan.graph.n_stages;
  for (size_t i = 0; is_same && i < p->graph.n_stages; i++) {
    is_same = is_same_mark(p->graph.stages[i].mark, j->plan.graph.stages[i].mark);
  }
  return is_same;
}

static void on_recut(scheduler *s, message *m);

/* Numbers go on behind those of stages that were launched. */
static stage_id next_id(const job *j) {
  stage_id next = j->plan.first_stage;
  for (size_t i = 0; i < j->n_runs; i++) {
    uint32_t id = j->runs[i].planned->id.value;
    if (j->runs[i].state != STAGE_WAITING && id >= next.value) {
      next.value = id + 1;
    }
  }
  return next;
}

static void note_why(job *j, const stage_run *done, const char *why) {
  buf text = {0};
  buf_text(&text, "it gave ");
  profile_put_count(&text, done->rows);
  buf_text(&text, done->rows == 1 ? " row (" : " rows (");
  profile_put_bytes(&text, done->bytes);
  buf_printf(&text, "), %s: the rest is planned again", why);
  observe_note(j, done->planned->id, "%s", text.failed ? "the rest is planned again" : buf_cstr(&text));
  buf_reset(&text);
}

bool again_try(scheduler *s, job *j, const stage_run *done) {
  const char *why = why_again(j, done);
  recut *r = why == NULL ? NULL : mem_zalloc(1, sizeof *r);
  if (r == NULL) {
    return false;
  }
  r->job = j->id;
  r->after = done->planned->id;
  r->p = j->plan;
  r->p.error = (hf_error){0};
  r->p.first_stage = next_id(j);
  r->p.cut.waits = j->plan.n_again + 1 < AGAIN_AT_MOST; /* for what would not be looked at */
  r->p.memory = arena_new();
  if (r->p.memory == NULL || !take_facts(j, &r->p)) {
    recut_free(r);
    return false;
  }
  note_why(j, done, why);
  for (size_t i = 0; i < j->n_runs; i++) {
    j->runs[i].is_told = j->runs[i].state == STAGE_DONE;
  }
  r->p.step.handle = recut_handle;
  r->p.done = on_recut;
  j->recut = &r->p;
  j->n_running++;
  event_queue_post(&s->plans, &r->p.step.item);
  return true;
}

/* A stage that was done meanwhile may be a reason as well. */
static bool looks_at_others(scheduler *s, job *j) {
  bool looks = false;
  for (size_t i = 0; !looks && i < j->n_runs; i++) {
    looks = j->runs[i].state == STAGE_DONE && again_try(s, j, &j->runs[i]);
  }
  return looks;
}

static void on_recut(scheduler *s, message *m) {
  recut *r = (recut *)m;
  job *j = job_find(s, r->job); /* it waits for this as for an attempt */
  j->n_running--;
  j->recut = NULL;
  j->plan.planning_us += r->p.planning_us;
  if (report_is_ending(s, j)) {
    recut_free(r);
    return;
  }
  bool is_usable = r->p.status == HF_OK && r->p.graph.n_stages > 0, is_same = is_as_before(j, &r->p);
  if (is_usable && take_over(s, j, &r->p)) {
    r->p.memory = NULL;
    is_usable = !is_same;
  } else {
    is_usable = false;
  }
  if (!is_usable) {
    observe_note(j, r->after, "the plan stays as it was");
  }
  recut_free(r);
  if (!looks_at_others(s, j)) {
    launch_ready(s, j);
  }
}

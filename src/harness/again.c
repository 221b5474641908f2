/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query is cut again by what its first stages gave, as the scheduler does while it
 * runs: the first plan has stages that wait for others (cut_stage.after); what those
 * wrote, and those before them, are facts by which the tree is cut once more. Here the
 * first plan is run to its end, whatever waits, and then the second from its
 * beginning; the second gives the answer.
 * Thread: that of planner_call; again_note a slot's.
 */
#include "harness_internal.h"

/* -------------------------------------------------------------------- what a task wrote */

void again_note(task_run *t) {
  const range_summary *watched = block_sink_watched(t->blocks, &t->n_watched);
  for (size_t i = 0; i < t->n_watched; i++) {
    t->watched[i] = watched[i];
  }
}

/* ------------------------------------------------------------------------------- facts */

/* What is known of each stage when the rest is cut again. */
typedef enum standing {
  AGAIN_UNKNOWN = 0,
  AGAIN_AT_WORK, /* launched: it waits for nothing */
  AGAIN_DONE     /* a stage waits for it, or one of these reads it */
} standing;

static void mark_done(const job_run *j, standing *of, uint32_t stage) {
  const planned_stage *planned = &j->plan->stages[stage]; /* what it reads comes before it */
  of[stage] = AGAIN_DONE;
  for (size_t i = 0; i < planned->n_inputs; i++) {
    if (planned->inputs[i].is_stage) {
      mark_done(j, of, planned->inputs[i].from);
    }
  }
}

static bool is_launched(const job_run *j, const standing *of, uint32_t stage) {
  const planned_stage *planned = &j->plan->stages[stage];
  bool is_it = planned->cut->n_after == 0;
  for (size_t i = 0; is_it && i < planned->n_inputs; i++) {
    is_it = !planned->inputs[i].is_stage || of[planned->inputs[i].from] == AGAIN_DONE;
  }
  return is_it;
}

/* As of the moment when all that is waited for is done, and nothing else. Returns whether something is waited for. */
static bool find_standing(const job_run *j, standing *of) {
  bool is_any = false;
  for (uint32_t s = 0; s < j->plan->n_stages; s++) {
    const cut_stage *cut = j->plan->stages[s].cut;
    for (size_t i = 0; i < cut->n_after; i++) {
      mark_done(j, of, cut->after[i]);
      is_any = true;
    }
  }
  for (uint32_t s = 0; s < j->plan->n_stages; s++) {
    of[s] = of[s] == AGAIN_UNKNOWN && is_launched(j, of, s) ? AGAIN_AT_WORK : of[s];
  }
  return is_any;
}

/* What all tasks of a stage have in a column; false: some tells nothing of it. */
static bool add_column(const job_run *j, uint32_t stage, uint32_t number, range_summary *out) {
  for (uint32_t t = 0; t < j->plan->stages[stage].n_tasks; t++) {
    const task_run *run = j->done[stage][t];
    size_t i = 0;
    while (i < run->n_watched && run->watched[i].column != number) {
      i++;
    }
    if (i == run->n_watched) {
      return false;
    }
    if (t == 0) {
      *out = run->watched[i];
    } else {
      range_summary_add(out, &run->watched[i]);
    }
  }
  return true;
}

static bool take_column(const range_summary *from, const data_type *type, arena *a, cut_column_fact *out) {
  range_kind kind = range_kind_of(type);
  uint64_t *values = arena_array(a, from->n_values, sizeof *values);
  *out = (cut_column_fact){.column = from->column, .rows = from->rows, .values = values};
  if (from->rows > 0) {
    out->least = range_key_integer(kind, from->least);
    out->most = range_key_integer(kind, from->most);
    out->n_values = from->n_values;
  }
  for (size_t i = 0; values != NULL && i < out->n_values; i++) {
    values[i] = range_key_integer(kind, from->values[i]);
  }
  return values != NULL;
}

static bool take_fact(const job_run *j, uint32_t stage, bool is_done, arena *a, cut_fact *out) {
  const cut_stage *cut = j->plan->stages[stage].cut;
  cut_column_fact *columns = arena_array(a, cut->n_watched, sizeof *columns);
  *out = (cut_fact){.mark = cut->mark, .is_done = is_done, .columns = columns};
  for (uint32_t t = 0; is_done && t < j->plan->stages[stage].n_tasks; t++) {
    out->rows += j->done[stage][t]->rows;
    out->bytes += j->done[stage][t]->bytes;
  }
  for (size_t i = 0; is_done && columns != NULL && i < cut->n_watched; i++) {
    range_summary all;
    if (add_column(j, stage, cut->watched[i], &all)) {
      const data_type *type = cut->columns.columns[cut->watched[i]].type;
      columns = take_column(&all, type, a, &columns[out->n_columns++]) ? columns : NULL;
    }
  }
  return columns != NULL;
}

/* Of the stages that are launched when what is waited for is done; none: nothing is. */
static hf_status take_facts(const job_run *j, query_plan *out, hf_error *error) {
  standing *of = arena_array(out->memory, j->plan->n_stages, sizeof *of);
  cut_fact *facts = arena_array(out->memory, j->plan->n_stages, sizeof *facts);
  bool is_complete = of != NULL && facts != NULL;
  size_t n = 0;
  bool is_any = is_complete && find_standing(j, of);
  for (uint32_t s = 0; is_any && is_complete && s < j->plan->n_stages; s++) {
    if (of[s] != AGAIN_UNKNOWN) {
      is_complete = take_fact(j, s, of[s] == AGAIN_DONE, out->memory, &facts[n++]);
    }
  }
  out->facts = facts;
  out->n_facts = n;
  return is_complete ? HF_OK : harness_no_memory(error);
}

/* --------------------------------------------------------------------------- again */

static bool has_mark(const query_plan *p, cut_mark mark) {
  for (size_t i = 0; i < p->n_stages; i++) {
    const cut_mark other = p->stages[i].cut->mark;
    if (other.high == mark.high && other.low == mark.low) {
      return true;
    }
  }
  return false;
}

static uint32_t count_new(const query_plan *first, const query_plan *second) {
  uint32_t n = 0;
  for (size_t i = 0; i < second->n_stages; i++) {
    n += has_mark(first, second->stages[i].cut->mark) ? 0 : 1;
  }
  return n;
}

static hf_status run_second(query_plan *p, const char *query, job_run *j, hf_error *error) {
  HF_TRY(query_plan_bind(p, query, error));
  HF_TRY(query_plan_make(p, error));
  if (p->fallback != NULL) {
    return error_set(error, HF_E_INTERNAL, "a query cannot be cut again: %s", p->fallback);
  }
  HF_TRY(job_begin(j, p, error));
  return job_execute(j, error);
}

hf_status again_run(query_plan *p, job_run *j, const char *query, hf_error *error) {
  query_plan second;
  job_run job = {0};
  HF_TRY(query_plan_begin(&second, p->h, p->config, error));
  hf_status status = take_facts(j, &second, error);
  if (status != HF_OK || second.n_facts == 0) {
    query_plan_reset(&second);
    return status;
  }
  status = run_second(&second, query, &job, error);
  second.n_recut = count_new(p, &second);
  job_remove(p->h, p->job);
  job_reset(j);
  query_plan_reset(p);
  *p = second;
  *j = job;
  j->plan = p;
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door's two runs: distributed, and distributed against single-node DuckDB.
 * Thread: that of the caller; the run itself is on that of planner_call.
 */
#include "harness_internal.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "compare/compare.h"
#include "sql/statement.h"

#include <string.h>

enum { MOST_TASKS = 256, MOST_PARTITIONS = 4096 };

typedef struct distributed {
  hf_harness *h;
  const char *query;
  query_plan plan;
  job_run job;
  uint64_t planning_us, run_us;
  hf_status status;
  hf_error error;
} distributed;

/* --------------------------------------------------------------- distributed */

static hf_status check_config(const hf_harness *h, const char *query, const hf_harness_config *c,
                              hf_error *error) {
  if (h == NULL || query == NULL || c == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a run needs a harness, a query and a configuration");
  }
  if (!utf8_is_right(query)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a query is not UTF-8");
  }
  if (c->tasks < 1 || c->tasks > MOST_TASKS) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the number of tasks is not from 1 to %d: %u", MOST_TASKS,
                     c->tasks);
  }
  if (c->slots < 1 || c->slots > MOST_TASKS) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the number of slots is not from 1 to %d: %u", MOST_TASKS,
                     c->slots);
  }
  if (c->partitions > MOST_PARTITIONS) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the number of partitions is above %d: %u",
                     MOST_PARTITIONS, c->partitions);
  }
  if (c->batch_rows > 1) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "batch_rows is neither 0 nor 1: %u", c->batch_rows);
  }
  if (c->exchange > HF_HARNESS_STREAMING || c->broadcast > HF_HARNESS_BROADCAST_NEVER ||
      c->hold > HF_HARNESS_HOLD_INLINED) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "exchange, broadcast or hold is none of its values");
  }
  return HF_OK;
}

static hf_status check_query(distributed *d, hf_error *error) {
  statement read;
  HF_TRY(statement_read(d->query, d->plan.memory, &read, error));
  if (read.kind == STATEMENT_EMPTY) {
    return error_set(error, HF_E_SYNTAX, "there is no statement in the text");
  }
  return read.kind == STATEMENT_QUERY ? HF_OK
                                      : error_set(error, HF_E_STATEMENT_REFUSED,
                                                  "the harness runs queries, and no commands of a session");
}

static hf_status run(void *context, hf_error *error) {
  distributed *d = context;
  uint64_t begin = clock_monotonic_us();
  HF_TRY(check_query(d, error));
  HF_TRY(query_plan_bind(&d->plan, d->query, error));
  HF_TRY(query_plan_make(&d->plan, error));
  HF_TRY(job_begin(&d->job, &d->plan, error));
  uint64_t planned = clock_monotonic_us();
  d->planning_us = planned - begin;
  hf_status status = job_execute(&d->job, error);
  if (status == HF_OK && d->plan.config->again && d->plan.fallback == NULL) {
    status = again_run(&d->plan, &d->job, d->query, error);
  }
  d->run_us = clock_monotonic_us() - planned;
  return status;
}

/* The outcome is in it; distributed_reset in any case. */
static void distributed_run(distributed *d, const hf_harness_config *how) {
  d->status = query_plan_begin(&d->plan, d->h, how, &d->error);
  if (d->status == HF_OK) {
    d->status = planner_call(d->h, run, d, &d->error);
  }
  if (d->status != HF_OK && d->plan.job != 0) {
    job_remove(d->h, d->plan.job);
  }
}

static void distributed_reset(distributed *d) {
  job_reset(&d->job);
  query_plan_reset(&d->plan);
  hf_error_reset(&d->error);
}

typedef struct result_of {
  const hf_harness *h;
  uint64_t job;
} result_of;

static void result_released(void *context) {
  result_of *result = context;
  job_remove(result->h, result->job);
  mem_free(result);
}

/* The rows of the last stage's tasks, in order. */
static hf_status rows_open(const distributed *d, void (*on_release)(void *context), void *context,
                           struct ArrowArrayStream *out, hf_error *error) {
  uint32_t last = (uint32_t)d->plan.n_stages - 1;
  size_t n = d->plan.stages[last].n_tasks;
  block_ref *refs = job_outputs(&d->job, last, d->plan.memory);
  block_location *locations = arena_array(d->plan.memory, n, sizeof *locations);
  bool is_complete = refs != NULL && locations != NULL;
  for (size_t i = 0; is_complete && i < n; i++) {
    locations[i].dir = harness_dir(d->h, &refs[i], d->plan.memory);
    is_complete = locations[i].dir != NULL;
  }
  return is_complete ? block_stream_open(locations, n, on_release, context, out, error)
                     : harness_no_memory(error);
}

/* The same; what they lie in goes with the stream, or at once. */
static hf_status result_open(const distributed *d, struct ArrowArrayStream *out, hf_error *error) {
  result_of *result = mem_zalloc(1, sizeof *result);
  if (result != NULL) {
    *result = (result_of){d->h, d->plan.job};
  }
  hf_status status =
      result == NULL ? harness_no_memory(error) : rows_open(d, result_released, result, out, error);
  if (status != HF_OK) {
    mem_free(result);
    job_remove(d->h, d->plan.job);
  }
  return status;
}

static void nothing(void *context) {
  (void)context;
}

hf_status hf_run_distributed(hf_harness *h, const char *query, const hf_harness_config *how,
                             struct ArrowArrayStream *out, hf_error *error) {
  HF_TRY(check_config(h, query, how, error));
  if (out == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is no place for the rows");
  }
  distributed d = {.h = h, .query = query};
  distributed_run(&d, how);
  hf_status status = d.status;
  if (status == HF_OK) {
    status = result_open(&d, out, error);
  } else {
    error_move(error, &d.error);
  }
  distributed_reset(&d);
  return status;
}

/* --------------------------------------------------------------- single-node */

/* The answer that was given last is kept: a query is often run in many ways. */
static hf_status single_run(hf_harness *h, const char *query, struct ArrowArrayStream *out, hf_error *error) {
  if (h->answer == NULL || strcmp(h->answer_query, query) != 0) {
    harness_forget_answer(h);
    HF_TRY(witness_compute(h->witness, query, &h->answer, error));
    h->answer_query = mem_strdup(query);
    if (h->answer_query == NULL) {
      harness_forget_answer(h);
      return harness_no_memory(error);
    }
  }
  return witness_answer_rows(h->answer, out, error);
}

/* ----------------------------------------------------------------- judgement */

/* What Holdfast does not run by design, whoever asks. */
static bool is_refusal(hf_status status) {
  return status == HF_E_STATEMENT_REFUSED || status == HF_E_FUNCTION_REFUSED || status == HF_E_PATH_REFUSED;
}

/* An error that the text itself has, whoever runs it. */
static bool is_of_the_text(hf_status status) {
  return error_class_of(status) == HF_CLASS_USER || status == HF_E_LIMIT;
}

static const char *text_or(const char *text, const char *otherwise) {
  return text == NULL ? otherwise : text;
}

static hf_status judge_errors(const distributed *d, hf_status single, const hf_error *single_error,
                              hf_harness_report *out, hf_error *error) {
  bool both = single != HF_OK && d->status != HF_OK;
  bool same = both && error_class_of(single) == error_class_of(d->status) && is_of_the_text(single);
  if (d->status != HF_OK) {
    out->result = HF_HARNESS_REJECTED;
  }
  out->differed = !same && !is_refusal(d->status);
  out->reason =
      arena_printf(out->memory, "single-node: %s%s%s; distributed: %s%s%s", hf_status_name(single),
                   single == HF_OK ? "" : ": ", text_or(single_error->message, ""), hf_status_name(d->status),
                   d->status == HF_OK ? "" : ": ", text_or(d->error.message, ""));
  return out->reason == NULL ? harness_no_memory(error) : HF_OK;
}

static hf_status rows_again(void *context, struct ArrowArrayStream *out, hf_error *error) {
  return rows_open(context, nothing, NULL, out, error);
}

/* The answers differ: whether they need be the same. `failed`: single-node DuckDB's error; else `found` is of the rows. */
static hf_status doubt(distributed *d, const hf_error *failed, const compare_options *options,
                       const compare_report *found, hf_harness_report *out, hf_error *error) {
  const witness_case c = {.sql = d->query,
                          .failed = failed,
                          .options = options,
                          .found = found,
                          .rows = rows_again,
                          .context = d};
  witness_verdict verdict;
  HF_TRY(witness_doubt(d->h->witness, &c, &verdict, error));
  out->indeterminate = verdict.is == WITNESS_IS_FREE;
  out->known_defect = verdict.is == WITNESS_IS_WRONG;
  out->doubt = verdict.why;
  if (verdict.is == WITNESS_IS_RIGHT && failed == NULL && hold_varies(&d->plan)) {
    out->indeterminate = true;
    out->doubt = "a held result stays, and single-node DuckDB computes it otherwise each time";
  }
  return HF_OK;
}

static hf_status compare(distributed *d, struct ArrowArrayStream *single, struct ArrowArrayStream *split,
                         hf_harness_report *out, hf_error *error) {
  compare_options options;
  compare_report found = {0};
  order_of_query(witness_engine(d->h->witness), d->query, d->plan.memory, &options);
  HF_TRY(compare_streams(single, split, &options, &found, error));
  out->n_rows = found.expected_rows;
  out->compared_order = options.n_order_columns > 0;
  out->differed = found.verdict != COMPARE_SAME;
  hf_status status = HF_OK;
  if (out->differed) {
    out->reason = arena_strdup(out->memory, text_or(found.reason, ""));
    out->rows = arena_strdup(out->memory, text_or(found.differences, ""));
    status = out->reason == NULL || out->rows == NULL ? harness_no_memory(error)
                                                      : doubt(d, NULL, &options, &found, out, error);
  }
  compare_report_reset(&found);
  return status;
}

static hf_status judge(distributed *d, hf_harness_report *out, hf_error *error) {
  struct ArrowArrayStream single = {0}, split = {0};
  hf_error met = {0};
  uint64_t begin = clock_monotonic_us();
  hf_status status = single_run(d->h, d->query, &single, &met);
  out->single_us = clock_monotonic_us() - begin;
  out->single_status = status;
  out->distributed_status = d->status;
  if (status == HF_OK && d->status == HF_OK) {
    status = rows_open(d, nothing, NULL, &split, error);
    if (status == HF_OK) {
      status = compare(d, &single, &split, out, error); /* takes both */
    } else {
      single.release(&single);
    }
  } else {
    if (status == HF_OK) {
      single.release(&single);
    }
    status = judge_errors(d, status, &met, out, error);
    if (status == HF_OK && d->status == HF_OK) {
      compare_options options;
      order_of_query(witness_engine(d->h->witness), d->query, d->plan.memory, &options);
      status = doubt(d, &met, &options, NULL, out, error);
    }
  }
  hf_error_reset(&met);
  return status;
}

hf_status hf_assert_distributed_eq(hf_harness *h, const char *query, const hf_harness_config *how,
                                   hf_harness_report *report, hf_error *error) {
  HF_TRY(check_config(h, query, how, error));
  if (report == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is no place for the report");
  }
  distributed d = {.h = h, .query = query};
  distributed_run(&d, how);
  hf_status status = report_make(&d.job, &d.plan, report, error);
  if (status == HF_OK) {
    report->planning_us = d.planning_us;
    report->run_us = d.run_us;
    status = judge(&d, report, error);
  }
  if (d.status == HF_OK) {
    job_remove(h, d.plan.job);
  }
  distributed_reset(&d);
  return status;
}

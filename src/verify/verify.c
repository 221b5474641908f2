/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query on both sides: the single-node answer, the session's, and what is said
 * of the two. Printing is in cli/verify_report.c.
 * Thread: one at a time.
 */
#include "verify.h"

#include "base/clock.h"

#include <string.h>

/* One side's run. */
typedef struct side {
  hf_status status;
  hf_error error;
  struct ArrowArrayStream rows; /* when status is HF_OK */
  uint64_t elapsed_us;
} side;

static void side_reset(side *s) {
  if (s->status == HF_OK && s->rows.release != NULL) {
    s->rows.release(&s->rows);
  }
  hf_error_reset(&s->error);
}

static side run_witness(verifier *v, const char *sql) {
  side s = {0};
  uint64_t start = clock_monotonic_us();
  s.status = witness_run(v->witness, sql, &s.rows, &s.error);
  s.elapsed_us = clock_monotonic_us() - start;
  return s;
}

static side run_session(verifier *v, const char *sql, hf_profile *profile) {
  side s = {0};
  uint64_t start = clock_monotonic_us();
  job_watch watch = {.cancel = v->cancel};
  relation *query = NULL;
  s.status = session_sql(v->session, sql, &watch, profile, &query, &s.error);
  if (s.status == HF_OK) {
    s.status = session_collect(v->session, query, &watch, profile, &s.rows, &s.error);
    relation_release(query);
  }
  s.elapsed_us = clock_monotonic_us() - start;
  return s;
}

/* ------------------------------------------------------------------- judgement */

static void say_error(buf *out, const char *who, const side *s) {
  if (s->status == HF_OK) {
    buf_printf(out, "%s has an answer", who);
  } else {
    buf_printf(out, "%s fails with %s: %s", who, hf_status_name(s->error.code),
               s->error.message == NULL ? "no details" : s->error.message);
  }
}

/* The session's rows once more. */
typedef struct rows_again {
  verifier *v;
  const char *sql;
} rows_again;

static hf_status run_again(void *context, struct ArrowArrayStream *out, hf_error *error) {
  const rows_again *again = context;
  hf_profile unused = {0};
  side s = run_session(again->v, again->sql, &unused);
  if (s.status == HF_OK) {
    *out = s.rows;
  } else {
    error_move(error, &s.error);
  }
  return s.status;
}

/* A failure: whether the answers need be the same. `failed` is single-node DuckDB's error; NULL: it has rows. */
static void doubt(verifier *v, const char *sql, const compare_options *how, const hf_error *failed,
                  verify_outcome *out) {
  rows_again again = {v, sql};
  const witness_case c = {.sql = sql,
                          .failed = failed,
                          .options = how,
                          .found = &out->report,
                          .rows = run_again,
                          .context = &again};
  witness_verdict verdict;
  hf_error error = {0};
  if (witness_doubt(v->witness, &c, &verdict, &error) == HF_OK && verdict.is != WITNESS_IS_RIGHT) {
    out->result = VERIFY_SKIPPED;
    buf_reset(&out->reason);
    buf_printf(&out->reason, "%s: %s",
               verdict.is == WITNESS_IS_FREE ? "not determinate" : "known defect of single-node DuckDB",
               verdict.why);
  }
  hf_error_reset(&error);
}

static void judge_rows(verifier *v, const char *sql, side *single, side *split, verify_outcome *out) {
  arena *a = arena_new();
  hf_error error = {0};
  hf_status status = HF_E_OUT_OF_MEMORY;
  compare_options options = {0};
  if (a != NULL) {
    order_of_query(witness_engine(v->witness), sql, a, &options);
    out->order_columns = options.n_order_columns;
    status = compare_streams(&single->rows, &split->rows, &options, &out->report, &error);
  }
  out->rows = out->report.expected_rows;
  if (status != HF_OK) {
    out->result = VERIFY_FAILED;
    buf_printf(&out->reason, "the answers cannot be compared: %s",
               error.message == NULL ? "no memory" : error.message);
  } else if (out->report.verdict == COMPARE_SAME) {
    out->result = VERIFY_PASSED;
  } else if (v->rows_only && out->report.verdict != COMPARE_OTHER_TYPES &&
             out->report.expected_rows == out->report.actual_rows) {
    out->result = VERIFY_PASSED;
    buf_text(&out->reason, "not determinate: types and the number of rows are the same");
  } else {
    out->result = VERIFY_FAILED;
    buf_text(&out->reason, out->report.reason);
    doubt(v, sql, &options, NULL, out);
  }
  hf_error_reset(&error);
  arena_free(a);
}

/* What Holdfast does not run by design, whoever asks. */
static bool is_refusal(hf_status status) {
  return status == HF_E_STATEMENT_REFUSED || status == HF_E_FUNCTION_REFUSED || status == HF_E_PATH_REFUSED;
}

/* An error that the text itself has, whoever runs it: the user's to mend, or nested too deeply. */
static bool is_of_the_text(const hf_error *error) {
  return error->error_class == HF_CLASS_USER || error->code == HF_E_LIMIT;
}

/* Only the session has an answer. */
static void doubt_error(verifier *v, const char *sql, const side *single, verify_outcome *out) {
  arena *a = arena_new();
  compare_options options = {0};
  if (a != NULL) {
    order_of_query(witness_engine(v->witness), sql, a, &options);
    doubt(v, sql, &options, &single->error, out);
  }
  arena_free(a);
}

/* DuckDB makes several statements of a PIVOT without its values, which cannot be bound or copied as a query. */
static bool cannot_be_asked(const side *single) {
  const char *message = single->error.message;
  return message != NULL && strstr(message, "prepare multiple statements") != NULL;
}

static void judge_errors(const side *single, const side *split, verify_outcome *out) {
  bool same = single->status == split->status && is_of_the_text(&single->error);
  if (split->status == HF_OK && cannot_be_asked(single)) {
    out->result = VERIFY_SKIPPED;
    buf_text(&out->reason,
             "a PIVOT without its values is no single query of DuckDB: list them (ON a IN (…)) to compare");
    return;
  }
  out->result = same ? VERIFY_PASSED : is_refusal(split->status) ? VERIFY_SKIPPED : VERIFY_FAILED;
  if (same) {
    buf_printf(&out->reason, "both fail with %s", hf_status_name(single->status));
    return;
  }
  if (out->result == VERIFY_FAILED) {
    say_error(&out->reason, "single-node", single);
    buf_text(&out->reason, "; ");
  }
  say_error(&out->reason, "holdfast", split);
}

/* Another side compared the rows by itself: in its reason it tells numbers of rows that differ. */
static void pass_by_rows(const verifier *v, verify_outcome *out) {
  bool has_rows = out->single_status == HF_OK && out->split_status == HF_OK;
  const char *reason = out->report.reason == NULL ? "" : out->report.reason;
  bool is_other_rows = strstr(reason, " rows are missing, ") != NULL && strstr(reason, " expected ") == NULL;
  if (v->rows_only && out->result != VERIFY_PASSED && has_rows && is_other_rows) {
    out->result = VERIFY_PASSED;
    buf_reset(&out->reason);
    buf_text(&out->reason, "not determinate: types and the number of rows are the same");
  }
}

void verify_query(verifier *v, const char *sql, verify_outcome *out) {
  *out = (verify_outcome){0};
  if (v->side != NULL) {
    v->side->verify(v->side->context, sql, out);
    pass_by_rows(v, out);
    return;
  }
  side single = run_witness(v, sql);
  side split = run_session(v, sql, &out->profile);
  out->single_us = single.elapsed_us;
  out->session_us = split.elapsed_us;
  out->ran = split.status == HF_OK;
  out->single_status = single.status;
  out->split_status = split.status;
  if (single.status == HF_OK && split.status == HF_OK) {
    judge_rows(v, sql, &single, &split, out);
  } else {
    judge_errors(&single, &split, out);
  }
  if (single.status != HF_OK && split.status == HF_OK) {
    doubt_error(v, sql, &single, out);
  }
  side_reset(&single);
  side_reset(&split);
}

/* ------------------------------------------------------------------- names */

static hf_status run_on_session(const verifier *v, buf *sql, hf_error *error) {
  relation *answer = NULL;
  hf_status status = sql->failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a view")
                                 : session_sql(v->session, buf_cstr(sql), NULL, NULL, &answer, error);
  relation_release(answer);
  buf_reset(sql);
  return status;
}

hf_status verify_view(const verifier *v, const char *name, const char *query, hf_error *error) {
  if (v->side != NULL) {
    return v->side->view(v->side->context, name, query, error);
  }
  buf sql = {0};
  buf_text(&sql, "CREATE OR REPLACE VIEW ");
  buf_sql_name(&sql, name);
  buf_printf(&sql, " AS %s", query);
  return run_on_session(v, &sql, error);
}

hf_status verify_rows(const verifier *v, const char *name, struct ArrowArrayStream *rows, hf_error *error) {
  if (v->side != NULL) {
    return v->side->rows(v->side->context, name, rows, error);
  }
  relation *r = NULL;
  HF_TRY(session_from_stream(v->session, rows, &r, error));
  hf_status status = session_create_view(v->session, r, name, true, error);
  relation_release(r);
  return status;
}

void verify_drop(const verifier *v, const char *name) {
  if (v->side != NULL) {
    v->side->drop(v->side->context, name);
    return;
  }
  buf sql = {0};
  buf_text(&sql, "DROP VIEW IF EXISTS ");
  buf_sql_name(&sql, name);
  run_on_session(v, &sql, NULL);
}

bool verify_is_distributed(const verify_outcome *o) {
  return o->profile.widest_tasks >= 2;
}

void verify_outcome_reset(verify_outcome *o) {
  compare_report_reset(&o->report);
  buf_reset(&o->reason);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query on both sides: a session, which splits it into tasks, and the witness,
 * single-node DuckDB over the same files; and the suites of queries to do it with.
 * Thread: one at a time.
 */
#ifndef HF_VERIFY_VERIFY_H
#define HF_VERIFY_VERIFY_H

#include "compare/compare.h"
#include "engine/engine.h"
#include "session/session.h"
#include "witness/witness.h"

/* ----------------------------------------------------------------- suites */

typedef struct suite_query {
  const char *name, *sql;
} suite_query;

typedef struct suite_request {
  const char *name; /* tpch or tpcds */
  const char *sf;   /* scale factor, a number */
  const char *dir;  /* where its files go */
  bool kept; /* in a folder of `dir` that names suite and factor; files that are complete there are used */
  const char *scratch_dir; /* there, for what DuckDB spills */
} suite_request;

typedef struct suite {
  const char *dir; /* of <table>.parquet */
  size_t n_tables, n_queries;
  const char *const *tables;
  const suite_query *queries;
} suite;

/* Tells whether there is a suite of this name. */
bool suite_is_known(const char *name);
/* Makes the data, in row groups of 2048 rows, unless they are there; all memory is of `a`. */
hf_status suite_open(const suite_request *request, arena *a, suite *out, hf_error *error);

/* --------------------------------------------------------------- one query */

typedef enum verify_result { VERIFY_PASSED, VERIFY_FAILED, VERIFY_SKIPPED } verify_result;

typedef struct verify_outcome {
  verify_result result;
  bool ran; /* the session gave rows */
  hf_status single_status, split_status;
  uint64_t rows;      /* of the single-node answer */
  hf_profile profile; /* of the session */
  uint64_t single_us, session_us;
  size_t order_columns; /* columns by whose order the rows were compared, too */
  compare_report report;
  buf reason; /* of a failure, a skip, or of passing without rows */
} verify_outcome;

/* What stands in the session's place: names, and queries over them. */
typedef struct verify_side {
  hf_status (*view)(void *context, const char *name, const char *query, hf_error *error);
  /* Takes the rows. */
  hf_status (*rows)(void *context, const char *name, struct ArrowArrayStream *rows, hf_error *error);
  void (*drop)(void *context, const char *name);
  /* Runs and judges; *out is zeroed. */
  void (*verify)(void *context, const char *sql, verify_outcome *out);
  void *context;
} verify_side;

typedef struct verifier {
  session *session;
  witness *witness;
  hf_cancel *cancel;
  const verify_side *side; /* NULL: the session */
  bool rows_only; /* the queries to come are indeterminate: types and the number of rows are compared */
} verifier;

/* Runs and judges one query; *out is released by verify_outcome_reset. */
void verify_query(verifier *v, const char *sql, verify_outcome *out);
/* Names of the split side; the witness's are engine_execute's matter. A name that is there is replaced. */
hf_status verify_view(const verifier *v, const char *name, const char *query, hf_error *error);
/* Takes the rows. */
hf_status verify_rows(const verifier *v, const char *name, struct ArrowArrayStream *rows, hf_error *error);
void verify_drop(const verifier *v, const char *name);
/* Two or more tasks of a stage had rows. */
bool verify_is_distributed(const verify_outcome *o);
void verify_outcome_reset(verify_outcome *o);

#endif

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

/* ---------------------------------------------------------------- witness */

/* One instance of DuckDB with one thread: it computes everything in the order of the files. */
typedef struct witness witness;

typedef struct witness_options {
  const char *dir;        /* of its own files; there */
  const char *allow_path; /* as the session's setting */
  const char *time_zone;
} witness_options;

hf_status witness_open(const witness_options *options, witness **out, hf_error *error);
/* Accepts NULL. Streams that are open must have been released. */
void witness_close(witness *w);
engine *witness_engine(witness *w);
/* Runs a query to its end; the rows come as a client gets them. */
hf_status witness_run(witness *w, const char *sql, struct ArrowArrayStream *out, hf_error *error);

/* ------------------------------------------------------------------ order */

/*
 * Finds what the result of a query is ordered by: the columns of the result that its ORDER BY names, up to the first
 * expression that is none, and whether it has a LIMIT or OFFSET. Nothing is known of what cannot be read.
 */
void order_of_query(engine *e, const char *sql, arena *a, compare_options *out);

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
  bool ran;           /* the session gave rows */
  uint64_t rows;      /* of the single-node answer */
  hf_profile profile; /* of the session */
  uint64_t single_us, session_us;
  size_t order_columns; /* columns by whose order the rows were compared, too */
  compare_report report;
  buf reason; /* of a failure, a skip, or of passing without rows */
} verify_outcome;

typedef struct verifier {
  session *session;
  witness *witness;
  hf_cancel *cancel;
} verifier;

/* Runs and judges one query; *out is released by verify_outcome_reset. */
void verify_query(verifier *v, const char *sql, verify_outcome *out);
/* Two or more tasks of a stage had rows. */
bool verify_is_distributed(const verify_outcome *o);
void verify_outcome_reset(verify_outcome *o);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single-node answer that a distributed one is compared with: plain DuckDB, and
 * what a query orders its result by.
 * Thread: one at a time.
 */
#ifndef HF_WITNESS_WITNESS_H
#define HF_WITNESS_WITNESS_H

#include "compare/compare.h"
#include "engine/engine.h"

/* One instance of DuckDB with one thread: it computes everything in the order of the files. */
typedef struct witness witness;

typedef struct witness_options {
  const char *dir;                /* of its own files; there */
  const char *allow_path;         /* as the session's setting */
  const char *time_zone;          /* NULL: as in the settings */
  const engine_setting *settings; /* everything else that changes a result */
  size_t n_settings;
} witness_options;

hf_status witness_open(const witness_options *options, witness **out, hf_error *error);
/* Accepts NULL. Streams that are open must have been released. */
void witness_close(witness *w);
engine *witness_engine(witness *w);
/* Makes a table of the rows of an attempt, in the place of one of that name. */
hf_status witness_take_blocks(witness *w, const char *name, const char *attempt_dir, hf_error *error);

/* A query's rows, as blocks in the witness's directory. */
typedef struct witness_answer witness_answer;
/* Runs a query to its end. Its answer must go before the witness. */
hf_status witness_compute(witness *w, const char *sql, witness_answer **out, hf_error *error);
/* The rows as a client gets them, as often as one likes, until the answer is freed. */
hf_status witness_answer_rows(const witness_answer *answer, struct ArrowArrayStream *out, hf_error *error);
/* Accepts NULL. */
void witness_answer_free(witness_answer *answer);
/* Both in one: the answer goes with the stream. */
hf_status witness_run(witness *w, const char *sql, struct ArrowArrayStream *out, hf_error *error);

/* ---------------------------------------------------------------- defects */

/*
 * Looks once more at a query whose answer is not the distributed one: with what is at fault in a defect of DuckDB that is
 * known switched off. `failed` is the error of the first look; NULL: it had rows. *defect names the defect that the query
 * may have met, static; NULL: none is known, and *out is not set.
 * Errors: those of the query, which may meet the defect again (*defect is set), or OUT_OF_MEMORY.
 */
hf_status witness_look_again(witness *w, const char *sql, const hf_error *failed, const char **defect,
                             struct ArrowArrayStream *out, hf_error *error);

/* ------------------------------------------------------------------ doubt */

/* An answer that is not the witness's. */
typedef struct witness_case {
  const char *sql;
  const hf_error *failed; /* the witness's error, where the other side has rows; NULL: both have */
  const compare_options *options;
  const compare_report *found; /* of both sides' rows; NULL with `failed` */
  /* The other side's rows, once more. */
  hf_status (*rows)(void *context, struct ArrowArrayStream *out, hf_error *error);
  void *context;
} witness_case;

typedef struct witness_verdict {
  enum {
    WITNESS_IS_RIGHT,
    WITNESS_IS_FREE, /* the query has not one answer: shown by two of its own, or by a collation */
    WITNESS_IS_WRONG /* by a defect that is known; without it the answers are the same, or it still has none */
  } is;
  const char *why; /* static; of the latter two */
} witness_verdict;

/* Whether two runs give other rows: random(), now() and alike. */
bool witness_varies(witness *w, const char *sql);
/* Errors: those of the other side's rows; OUT_OF_MEMORY. Cost: some runs of the query. */
hf_status witness_doubt(witness *w, const witness_case *c, witness_verdict *out, hf_error *error);

/* ------------------------------------------------------------------ order */

/*
 * Finds what the result of a query is ordered by: the columns of the result that its ORDER BY names, up to the first
 * expression that is none, and whether it has a LIMIT or OFFSET. Nothing is known of what cannot be read.
 */
void order_of_query(engine *e, const char *sql, arena *a, compare_options *out);

#endif

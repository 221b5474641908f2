/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query planned by the oracle, read as a tree and written back as SQL: the
 * whole-plan round trip that e2e tests and the corpus runner share.
 * Thread: one at a time.
 */
#ifndef HF_TESTS_REWRITE_H
#define HF_TESTS_REWRITE_H

#include "sql/write.h"
#include "support/oracle.h"

typedef enum rewrite_outcome {
  REWRITE_DONE,
  REWRITE_REFUSED,      /* by the reader or the writer */
  REWRITE_UNSERIALISED, /* DuckDB gave no plan */
} rewrite_outcome;

typedef struct rewrite {
  rewrite_outcome outcome;
  char *sql;    /* DONE */
  char *why;    /* else */
  char **types; /* DONE: of the tree's columns, as SQL */
  size_t n_types;
  unsigned long plan_us, write_us; /* planning by DuckDB; reading and writing */
} rewrite;

/* What stands in SQL where an input does: a text (free), from the id of its hf_scan. */
typedef char *(*rewrite_input_fn)(void *context, const char *id);

/* Rewrites; inputs are NULL when the query has none. Every result is released by rewrite_free. */
void rewrite_query(oracle *o, const char *sql, rewrite_input_fn input, void *context, rewrite *out);
/* The same of an answer of json_serialize_plan. */
void rewrite_answer(const char *json, size_t length, rewrite_input_fn input, void *context, rewrite *out);
void rewrite_free(rewrite *r);

#endif

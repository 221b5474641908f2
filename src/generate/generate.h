/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random queries over random small tables, the same for the same seed, and the
 * shrinking of one that fails.
 * Thread: one at a time.
 */
#ifndef HF_GENERATE_GENERATE_H
#define HF_GENERATE_GENERATE_H

#include "verify/verify.h"

/* ------------------------------------------------------------------ tables */

/* Tables as definitions: what they hold follows from the seed. */
typedef struct generated_tables generated_tables;

hf_status generated_tables_new(uint64_t seed, generated_tables **out, hf_error *error);
/* Accepts NULL. */
void generated_tables_free(generated_tables *t);
/*
 * Writes the tables' files below `dir`, in row groups of 2048 rows, and makes a view of each on both sides; some are
 * Arrow data of a client on the session's. To be called again after rows were left out.
 */
hf_status generated_tables_write(generated_tables *t, const verifier *v, const char *dir, hf_error *error);
/* Removes the views of the split side. */
void generated_tables_drop(generated_tables *t, const verifier *v);

/* ----------------------------------------------------------------- queries */

typedef struct gen_node gen_node;

typedef struct generated_query {
  gen_node *root;
  const char *sql;
  bool rows_only; /* indeterminate: types and the number of rows are compared */
} generated_query;

/* All memory is of `a`. */
hf_status generate_query(const generated_tables *t, uint64_t seed, arena *a, generated_query *out,
                         hf_error *error);

/* -------------------------------------------------------------- shrinking */

typedef struct shrink_request {
  verifier *v;
  generated_tables *tables; /* rows are left out of them */
  const char *dir;          /* for their files */
  unsigned most_tries;
} shrink_request;

/*
 * Makes a query that fails smaller, and its tables, as long as it fails in the same way; query->sql is what is left.
 * Appends tables and query to `out` as SQL. `failed` is the outcome of the query as it was.
 * Cost: most_tries runs on both sides, at most.
 */
hf_status shrink_query(const shrink_request *r, generated_query *query, const verify_outcome *failed,
                       arena *a, buf *out, hf_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan tree as SQL: a list of pieces, text or the place of an input. What
 * gets out is c0 … cn; user names return at the edge. Constants and calls are
 * cast to the plan's types, the order of NULLs is always said. What has no
 * exact SQL is a refusal. DuckDB optimises the text again when it runs.
 * Thread: any; deep trees want a stack of THREAD_PLANNING_STACK_BYTES.
 */
#ifndef HF_PLAN_WRITE_H
#define HF_PLAN_WRITE_H

#include "tree/tree.h"

/* The text is refused beyond this: no plan of a sensible query comes near. */
#define WRITE_LARGEST_BYTES ((size_t)64 << 20)

/* Where rows come from; the caller puts a FROM item without alias there: a call, a name, or (SELECT …). */
typedef struct plan_input {
  const tree_node *node; /* a GET of hf_scan: scan->parameters[0].text is its id; or an INPUT: its number */
  size_t n_columns;      /* columns that the text reads, ascending; it names them by position, not by name */
  const size_t *columns;
} plan_input;

typedef struct plan_piece {
  const char *text; /* NULL: an input */
  uint32_t input;
} plan_piece;

/* A cast that may fail: DuckDB's message calls the column as the text does. */
typedef struct plan_cast {
  const char *column; /* c0 … */
  const char *name;   /* what the query calls it; NULL: not known */
} plan_cast;

typedef struct plan_written {
  size_t n_pieces;
  const plan_piece *pieces;
  size_t n_inputs; /* each stands in one place; two scans of one source are two inputs */
  const plan_input *inputs;
  size_t n_casts; /* of columns */
  const plan_cast *casts;
} plan_written;

typedef struct plan_write_options {
  bool
      first_of_many; /* scalar_subquery_error_on_multiple_rows is false: such a subquery gives any of its rows */
} plan_write_options;

/*
 * Writes the tree as one query; its types are root->types. A GET of another source than hf_scan is written as that
 * table or function. When *refusal is set on return, *out is zeroed. Results are the arena's. Errors: OUT_OF_MEMORY.
 */
hf_status plan_write(const tree_node *root, const plan_write_options *options, arena *a, plan_written *out,
                     tree_refusal *refusal, hf_error *error);

#endif

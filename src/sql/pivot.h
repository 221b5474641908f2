/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PIVOT without a list of values: what must be looked up before it is one query.
 * DuckDB makes several statements of it; we ask for the values by a query of
 * their own and write them into the text. Texts only: who asks is session/query.c.
 * Thread: any.
 */
#ifndef HF_SQL_PIVOT_H
#define HF_SQL_PIVOT_H

#include "sql/token.h"

/* A column of a PIVOT whose values are not in the text. */
typedef struct pivot_gap {
  const char *values_sql; /* gives them as one column of VARCHAR, in their order */
  size_t begin, end; /* bytes of the text that IN (…) takes the place of: none, or a sub-select's IN (…) */
} pivot_gap;

/*
 * Finds the last PIVOT of a text that lacks values, so the innermost of those that stand in each other; *n 0: none does.
 * Gaps are in the order of the text, in `a`. Errors: those of token_list_read.
 */
hf_status pivot_find_gaps(const char *sql, arena *a, const pivot_gap **gaps, size_t *n, hf_error *error);

#endif

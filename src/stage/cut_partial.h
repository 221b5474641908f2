/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates in two steps: the table's rows, and what is made of one. Not a door. */
#ifndef HF_STAGE_CUT_PARTIAL_H
#define HF_STAGE_CUT_PARTIAL_H

#include "stage/cut_internal.h"

typedef enum partial_kind {
  PARTIAL_SAME,
  PARTIAL_COUNTED,
  PARTIAL_BY,
  PARTIAL_AVERAGE,
  PARTIAL_MOMENTS,
  PARTIAL_RAW
} partial_kind;

typedef enum final_kind {
  FINAL_MERGED,
  FINAL_QUOTIENT,
  FINAL_STDDEV_SAMP,
  FINAL_STDDEV_POP,
  FINAL_VAR_SAMP,
  FINAL_VAR_POP
} final_kind;

typedef struct aggregate_rule {
  const char *function;
  partial_kind partial;
  const char *merge;
  final_kind final;
  bool is_zero_of_none, is_ordered;
} aggregate_rule;

enum { MOST_PARTIALS = 3 };

/* Returns the row, or NULL; static. */
const aggregate_rule *partial_rule(const char *function);
/* Whether the call can be computed in two steps; a DISTINCT only when equal arguments are in one task. */
bool partial_is_possible(const tree_expression *e, bool together);
/* Fills the columns that a task computes for the aggregate; returns how many. */
size_t partial_columns(cutter *c, const tree_expression *e, const tree_expression *out[MOST_PARTIALS]);
/* What the aggregate is, over the merged columns from `first` on; `mean`: the column of the whole group's mean. */
const tree_expression *partial_final(cutter *c, const tree_expression *e,
                                     const tree_expression *const *partials, size_t first,
                                     const tree_expression *mean);
/* MOMENTS: the whole group's mean, by a window over the partial rows. */
const tree_expression *partial_mean(cutter *c, size_t first, const cut_keys *groups);

#endif

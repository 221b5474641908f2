/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block: adjacent projections, new columns, renames, drops and filters as one
 * SELECT over what is below them. A column that a step replaces is written into
 * the expressions that name it, where that changes nothing.
 * Thread: one at a time.
 */
#ifndef HF_PLAN_BLOCK_H
#define HF_PLAN_BLOCK_H

#include "plan/lower_internal.h"

/* What a step reads: a name in the chain, or an input. */
typedef struct from_item {
  const char *name; /* NULL: an input */
  uint32_t input;
  bool is_base; /* its columns have the names that it has by itself */
} from_item;

/* An expression over the columns of what is below. */
typedef struct merged {
  const char
      *text; /* SQL; NULL: `raw` as it is, which a block takes only while its columns are those below */
  const step_expression *raw; /* opaque: an expression of */
  const relation_step *raw_of;
  const char *name; /* of the column; NULL: what DuckDB makes of it */
  const data_type *type;
  size_t number;  /* COLUMN: which of those below */
  size_t weight;  /* tokens */
  unsigned shape; /* STEP_* */
} merged;

typedef struct block {
  lowering *l;
  from_item item;
  const step_side *below;
  const char *alias; /* that opaque expressions know what is below by; NULL: none */
  merged *columns, *spare;
  size_t n_columns, capacity, spare_capacity;
  bool is_whole; /* the columns are those below, in their order */
  merged *conditions;
  size_t n_conditions, conditions_capacity;
  unsigned *uses; /* of each column by a step */
  size_t uses_capacity;
  unsigned shape;   /* of the columns, or-ed */
  bool is_empty;    /* no step was added */
  const char *list; /* column names for the chain, when the SELECT cannot name them; "" */
} block;

/* Begins over an item whose columns are `below`. */
hf_status block_begin(block *b, lowering *l, const from_item *item, const step_side *below);
/* Whether a block can hold steps of this kind. */
bool block_takes_kind(build_kind kind);
/* Adds the step, or leaves the block as it is: *added tells. A block that is_empty takes every step of its kinds. */
hf_status block_add(block *b, const relation_step *step, bool *added);
/* Appends the SELECT. */
hf_status block_write(const block *b, piece_list *out);

/* FROM's item with its alias: shared with other steps. `side` NULL: no alias. */
hf_status block_put_item(lowering *l, piece_list *out, const from_item *item, const step_side *columns,
                         const char *side);
/* The text of an expression with its columns by the names inside, its spots by what they stand for. */
hf_status block_put_raw(lowering *l, piece_list *out, const relation_step *step, const char *const sides[2],
                        const step_expression *e);

#endif

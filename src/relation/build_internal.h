/* SPDX-License-Identifier: Apache-2.0 */
/* What making a step shares: the step that is being made. Thread: one with a planning stack. */
#ifndef HF_RELATION_BUILD_INTERNAL_H
#define HF_RELATION_BUILD_INTERNAL_H

#include "relation/names_internal.h"
#include "relation/step.h"

/* A step that is being made. */
typedef struct step_maker {
  engine *planner;
  const relation_names *names;
  relation *made;
  relation_step *step;
  arena *arena;   /* of the relation */
  arena *scratch; /* until it is made */
  hf_error *error;
} step_maker;

hf_status build_out_of_memory(const step_maker *m);
/* Sets INVALID_ARGUMENT. */
hf_status build_invalid(const step_maker *m, const char *what, const char *value);
/* The columns of a relation as expressions see them. */
hf_status build_side(const step_maker *m, const relation *r, const schema *columns, step_side *out);
/* Gives columns whose names are empty or not the only ones names that fit into text. */
hf_status build_inside_names(const step_maker *m, step_side *side);
/* Sets COLUMN_NOT_FOUND with the nearest name. */
hf_status build_column_missing(const step_maker *m, const step_side *side, const char *name);

/* Parses an expression alone and finds what it is. `is_key`: a sort key. Errors: SYNTAX, COLUMN_NOT_FOUND … */
hf_status build_expression_read(const step_maker *m, const build_expression *given, bool is_key,
                                step_expression *out);

/* Binds the expressions of a step: fills names and types. Errors: those of binding, in the words of the expression. */
hf_status build_bind(const step_maker *m, step_expression *expressions, step_expression *groups);
/* Describes `head <input> between <other> tail` over all columns of both; the result lies in the scratch. */
hf_status build_describe_pair(const step_maker *m, const char *head, const char *between, const char *tail,
                              schema *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building relations step by step: select, filter, group, join, order … over
 * relations. Expressions are SQL text; a step is checked and its columns are
 * known when it is built, so that the next step need not look below it.
 * Adjacent projections and filters are merged when a relation is lowered.
 * Thread: the planner's.
 */
#ifndef HF_RELATION_BUILD_H
#define HF_RELATION_BUILD_H

#include "relation/relation.h"

typedef enum build_kind {
  BUILD_PROJECT, /* expressions: what is selected; may hold * and aggregate-free windows */
  BUILD_FILTER,  /* expressions: conditions, all of which must be true */
  BUILD_WITH_COLUMNS, /* expressions with names: each replaces the column of that name in its place, or comes behind */
  BUILD_RENAME,    /* expressions: text is the name of a column, name what it is called now */
  BUILD_DROP,      /* expressions: names of columns; a name that is not there is no error */
  BUILD_AGGREGATE, /* groups, then expressions: aggregates; no group: one row */
  BUILD_JOIN,      /* input, other, join, and one expression (condition) or `using`; none: cross join */
  BUILD_SORT,      /* expressions: keys, each with ASC or DESC and NULLS FIRST or LAST behind it if wanted */
  BUILD_LIMIT,     /* limit, offset */
  BUILD_SET,       /* input, other, set, all, by_name */
  BUILD_DISTINCT,  /* expressions: columns that count, the first row of each is kept; none: whole rows */
  BUILD_ALIAS,     /* name: what expressions of the next step may call it, as in a.x = b.x */
  BUILD_REPARTITION /* expressions: names of columns; limit: into how many partitions a hold of it is dealt by their hash.
                     * Its rows are those of the input, in no order */
} build_kind;

/* Partitions that a repartition may ask for. */
enum { REPARTITION_LEAST = 2, REPARTITION_MOST = 4096 };

typedef enum join_type {
  JOIN_TYPE_INNER,
  JOIN_TYPE_LEFT,
  JOIN_TYPE_RIGHT,
  JOIN_TYPE_FULL,
  JOIN_TYPE_SEMI,
  JOIN_TYPE_ANTI,
  JOIN_TYPE_CROSS
} join_type;
typedef enum set_type { SET_TYPE_UNION, SET_TYPE_INTERSECT, SET_TYPE_EXCEPT } set_type;

typedef struct build_expression {
  const char *text; /* SQL; one expression, which may end in AS name */
  const char *name; /* what its column is called; NULL: what the text says, or what DuckDB makes of it */
} build_expression;

/* One step; borrowed. What a kind does not name is zero. */
typedef struct build_step {
  build_kind kind;
  const relation *input, *other;
  const schema *columns, *other_columns; /* of both, as they are bound; a session finds them by itself */
  const build_expression *expressions;
  size_t n_expressions;
  const build_expression *groups;
  size_t n_groups;
  const char *const *using_columns;
  size_t n_using;
  join_type join;
  set_type set;
  bool all, by_name;
  bool has_limit;
  uint64_t limit, offset;
  const char *name;
} build_step;

/*
 * Builds a step over relations whose columns are known: built ones know them by themselves. Text is parsed alone, so that it cannot leave its place, and bound against those columns.
 * Errors: INVALID_ARGUMENT (a parameter that the kind needs or forbids, by name), SYNTAX, COLUMN_NOT_FOUND (with the
 * nearest name), BIND, FUNCTION_REFUSED …, each naming the expression and the position in it; LIMIT (too many steps:
 * the hint says to cache or checkpoint).
 */
hf_status relation_build(engine *planner, const build_step *given, const relation_names *names,
                         relation **out, hf_error *error);
/* Checks that text, of a peer, is one expression, which may call what a user's may. Errors: those of relation_build. */
hf_status relation_check_expression(engine *planner, const char *text, const relation_names *names,
                                    hf_error *error);

/*
 * The columns of a relation, borrowed: of a built one those that it was checked with, of another those that
 * relation_remember_columns was told. NULL: it must be described.
 */
const schema *relation_columns(const relation *r);
/* Keeps the columns of what is not built, so that it is described once. Thread: any. Errors: OUT_OF_MEMORY. */
hf_status relation_remember_columns(const relation *r, const schema *columns, hf_error *error);

/* What a repartition asks for; columns are numbers of the relation's. */
typedef struct relation_dealing {
  size_t n;
  const size_t *columns;
  uint32_t partitions;
} relation_dealing;
/* Whether equal values of the type have one hash, whoever computes it: rows may be dealt by it, and found so later. */
bool relation_can_deal(const data_type *type);
/* Whether a repartition is the relation's last step, names set aside; borrowed. */
bool relation_is_dealt(const relation *r, relation_dealing *out);

/*
 * Whether the step was checked when it was built. It was not when its text names relations in a sub-select: then it must
 * be described at once, which checks it, and be given its columns, before anybody else has it. Errors: OUT_OF_MEMORY.
 */
bool relation_is_checked(const relation *r);
hf_status relation_settle(const relation *r, const schema *columns, hf_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan tree: DuckDB's optimised plan as C structs. Operators, expressions
 * and values know their types; every reference is checked when it is read.
 * Reading is strict: what is not known is a refusal, never a guess. Writing it
 * as SQL is write.h; cutting it into stages is stage/.
 * A tree is immutable, all its memory is the arena's. Thread: any.
 */
#ifndef HF_PLAN_TREE_H
#define HF_PLAN_TREE_H

#include "arrow/type.h"
#include "base/arena.h"

/* Levels of operators and expressions that are read; each costs the reader and the writer about 1 KiB of stack. */
#define TREE_DEEPEST_LEVEL 2000

/* ---------------------------------------------------------------- refusals */

typedef enum tree_refusal_code {
#define TREE_REFUSAL(id, sentence) TREE_REFUSED_##id,
#include "tree/tree.def"
  TREE_REFUSAL_COUNT
} tree_refusal_code;

/* Why a plan is not written; zeroed: it is not refused. */
typedef struct tree_refusal {
  tree_refusal_code code;
  const char *node;   /* the operator, expression class or function it was met in */
  const char *reason; /* what was found */
} tree_refusal;

/* Returns the code's sentence; static. */
const char *tree_refusal_sentence(tree_refusal_code code);
/* Returns the code's name in capitals; static. */
const char *tree_refusal_name(tree_refusal_code code);

/* ------------------------------------------------------------------ values */

typedef struct tree_value tree_value;
struct tree_value {
  const data_type *type;
  bool is_null;
  /* BOOLEAN, integers, DECIMAL (unscaled), DATE (days), times and timestamps (their unit), UUID, ENUM (index),
   * TIME_TZ (DuckDB's 64 bits): two's complement in 128 bits */
  uint64_t lower;
  int64_t upper;
  double number;    /* FLOAT, DOUBLE */
  const char *text; /* VARCHAR, JSON; BLOB as DuckDB prints it; BIT: how many bits of the 2nd byte count for
                         * nothing, and the bytes */
  size_t length;    /* of text: it may hold NUL */
  int32_t months, days; /* INTERVAL */
  int64_t micros;       /* INTERVAL */
  size_t n_children;    /* LIST, ARRAY, STRUCT; MAP: STRUCT(key, value) each; UNION: tag, members */
  const tree_value *children;
};

/* ------------------------------------------------------------- expressions */

typedef enum tree_expression_kind {
#define TREE_EXPRESSION_KIND(id, json) EXPRESSION_##id,
#include "tree/tree.def"
  EXPRESSION_KIND_COUNT
} tree_expression_kind;

typedef enum tree_comparison {
#define TREE_COMPARE(id, json, sql) COMPARE_##id,
#include "tree/tree.def"
  COMPARE_COUNT
} tree_comparison;

typedef enum tree_operator {
#define TREE_OPERATOR(id, json) OPERATOR_##id,
#include "tree/tree.def"
  OPERATOR_COUNT
} tree_operator;

typedef enum tree_window_function {
#define TREE_WINDOW(id, json, sql) WINDOW_##id,
#include "tree/tree.def"
  WINDOW_FUNCTION_COUNT
} tree_window_function;

typedef enum tree_bound {
#define TREE_BOUND(id, json, unit) BOUND_##id,
#include "tree/tree.def"
  BOUND_COUNT
} tree_bound;

typedef enum tree_exclude {
#define TREE_EXCLUDE(id, json, sql) EXCLUDE_##id,
#include "tree/tree.def"
  EXCLUDE_COUNT
} tree_exclude;

typedef struct tree_expression tree_expression;

typedef struct tree_order {
  const tree_expression *expression;
  bool descending, nulls_first;
} tree_order;

/* A call of a function or aggregate; arguments are the expression's children. */
typedef struct tree_call {
  const char *name;
  /* lambda functions: child 0 is the list, child 1 the initial value of a reduce that has one, the others are captures.
   * In the body, REF i < n_parameters is parameter n_parameters-1-i, the REFs behind them are the captures. */
  const tree_expression *body;
  size_t n_parameters;
  bool has_initial;
  /* state that binding took out of the arguments */
  const char *separator;    /* string_agg, also inside list_aggregate; NULL: none */
  const char *const *names; /* struct_update: of its arguments, the first has none; NULL: no name is needed */
  size_t n_quantiles;       /* of bitstring_agg: the smallest and the largest value */
  const tree_value *quantiles;
  bool quantiles_descending, quantiles_as_list;
  /* aggregates */
  bool distinct;
  const tree_expression *filter;
  size_t n_orders;
  const tree_order *orders;
} tree_call;

typedef struct tree_window {
  tree_window_function function;
  const tree_call *call; /* AGGREGATE; else only its distinct, filter and orders count */
  bool ignore_nulls;
  size_t n_partitions;
  const tree_expression *const *partitions;
  size_t n_orders;
  const tree_order *orders;
  tree_bound start, end;
  const tree_expression *start_offset,
      *end_offset;                               /* RANGE: key - offset, key + offset, as DuckDB binds it */
  const tree_expression *offset, *default_value; /* LEAD, LAG */
  tree_exclude exclude;
} tree_window;

struct tree_expression {
  tree_expression_kind kind;
  const data_type *type;
  /* CAST, UNNEST 1; COMPARISON left, right; BETWEEN input, lower, upper; CASE when, then, …, else; others as many as
   * there are */
  size_t n_children;
  const tree_expression *const *children;
  size_t ref;                            /* REF: the column of the input */
  const char *name;                      /* REF: what the query calls it; NULL: it has no name */
  bool try_cast;                         /* CAST */
  bool is_or;                            /* CONJUNCTION */
  bool lower_inclusive, upper_inclusive; /* BETWEEN */
  tree_comparison comparison;            /* COMPARISON */
  tree_operator operator;                /* OPERATOR */
  const tree_value *value;               /* CONSTANT */
  const tree_call *call;                 /* FUNCTION, AGGREGATE */
  const tree_window *window;             /* WINDOW */
};

/* --------------------------------------------------------------- operators */

typedef enum tree_kind {
#define TREE_KIND(id, json) TREE_##id,
#include "tree/tree.def"
  TREE_KIND_COUNT
} tree_kind;

typedef enum tree_join_type {
#define TREE_JOIN_TYPE(id, json) JOIN_##id,
#include "tree/tree.def"
  JOIN_TYPE_COUNT
} tree_join_type;

typedef enum tree_scan_kind {
  SCAN_COLUMN,
  SCAN_ROWID,
  SCAN_NOTHING /* no column: only the count of rows matters */
} tree_scan_kind;

typedef struct tree_scan_column {
  tree_scan_kind kind;
  size_t column; /* of the source */
  size_t n_path; /* fields of nested structs, outermost first */
  const size_t *path;
} tree_scan_column;

/* A predicate over one column of the source: its REF 0. */
typedef struct tree_scan_filter {
  bool is_rowid;
  size_t column;
  const tree_expression *expression;
} tree_scan_filter;

/* Where a GET reads. */
typedef struct tree_scan {
  const char *function;                 /* hf_scan, range, seq_scan … */
  const char *catalog, *schema, *table; /* seq_scan */
  size_t n_files;                       /* read_parquet */
  const char *const *files;
  size_t n_parameters;
  const tree_value *parameters;
  size_t n_named;
  const char *const *named;
  const tree_value *named_values;
  size_t n_source; /* columns of the source */
  const char *const *source_names;
  const data_type *const *source_types;
  size_t n_scanned; /* the first output columns */
  const tree_scan_column *scanned;
  size_t n_filters;
  const tree_scan_filter *filters;
} tree_scan;

typedef struct tree_group_set {
  size_t n;
  const size_t *groups;
} tree_group_set;

typedef struct tree_aggregate {
  size_t n_groups;
  const tree_expression *const *groups;
  size_t n_sets; /* 0: one set of all groups */
  const tree_group_set *sets;
  size_t n_grouping; /* GROUPING(…) calls */
  const tree_group_set *grouping;
} tree_aggregate;

typedef struct tree_condition {
  const tree_expression *left, *right; /* over the columns of that child, before its map */
  tree_comparison comparison;
} tree_condition;

typedef struct tree_join {
  tree_join_type type;
  size_t n_conditions; /* JOIN, ASOF_JOIN, DELIM_JOIN */
  const tree_condition *conditions;
  const tree_expression
      *condition; /* ANY_JOIN, ASOF_JOIN (or NULL): over mapped left ++ mapped right (SEMI, ANTI: all right)
                           * columns */
  size_t n_mark_types;    /* MARK: so many conditions, the first ones, are correlated */
  size_t n_left, n_right; /* maps of the left and the right child's columns; which get out is the type's */
  const size_t *left, *right;
  size_t n_keys; /* DELIM_JOIN: over the columns of child `delim_side` */
  const tree_expression *const *keys;
  size_t delim_side;
} tree_join;

typedef struct tree_limit {
  bool has_limit, has_offset;
  uint64_t limit, offset;
  bool limit_is_percent;
  double percent;
  /* over the child's columns, the same in each row; instead of the numbers */
  const tree_expression *limit_expression, *offset_expression;
} tree_limit;

typedef enum tree_sample_method { SAMPLE_SYSTEM, SAMPLE_BERNOULLI, SAMPLE_RESERVOIR } tree_sample_method;

/* Which rows are drawn is another choice each time, unless there is a seed. */
typedef struct tree_sample {
  tree_sample_method method;
  bool is_percent, has_seed;
  double percent;
  uint64_t rows, seed;
} tree_sample;

typedef struct tree_node tree_node;
struct tree_node {
  tree_kind kind;
  size_t n_columns; /* what gets out */
  const data_type *const *types;
  size_t n_children;
  const tree_node *const *children;
  /* FILTER: conjuncts; PROJECTION; AGGREGATE: aggregates; WINDOW, UNNEST: columns behind the child's;
   * DISTINCT: targets; VALUES: rows of n_columns, over the child if there is one */
  size_t n_expressions;
  const tree_expression *const *expressions;
  size_t n_map; /* FILTER, ORDER: the child's columns that get out, 0: all; GET: those behind its own */
  const size_t *map;
  size_t n_orders; /* ORDER, TOP_N, DISTINCT */
  const tree_order *orders;
  uint64_t number;                 /* CTE, RECURSIVE_CTE, CTE_REF: which; INPUT: the caller's */
  bool all;                        /* UNION, EXCEPT, INTERSECT, RECURSIVE_CTE */
  const tree_scan *scan;           /* GET */
  const tree_aggregate *aggregate; /* AGGREGATE */
  const tree_join *join;           /* JOIN, ASOF_JOIN, ANY_JOIN, DELIM_JOIN */
  const tree_limit *limit;         /* TOP_N, LIMIT */
  const tree_sample *sample;       /* SAMPLE */
};

/* Returns how plan JSON names the operator, such as "LOGICAL_FILTER"; static. */
const char *tree_kind_name(tree_kind kind);
const char *tree_expression_kind_name(tree_expression_kind kind);
const char *tree_join_type_name(tree_join_type type);
/* Returns the operator in SQL, such as "<="; static. */
const char *tree_comparison_sql(tree_comparison comparison);

/* Tells whether a function of that name, in any letter case, gives another value each time it is called. */
bool tree_is_volatile(const char *name);
/* Returns the function in the expression that gives another value each time it is called (random and its like), or
 * NULL. Borrowed from the expression. */
const char *tree_volatile_call(const tree_expression *e);

/* Guesses which share of rows meets the condition: more than 0, at most 1. */
double tree_share_passed(const tree_expression *condition);
/* Guesses how many bytes a row of the node's columns has between stages. */
double tree_row_bytes(const tree_node *node);

/*
 * Reads the answer of json_serialize_plan (skip_null true, skip_empty false) into a tree. When *refusal is set on
 * return, *out is NULL; both are the arena's. Errors: OUT_OF_MEMORY only.
 * Thread: one with a stack of THREAD_PLANNING_STACK_BYTES when plans come from users.
 */
hf_status plan_tree_read(const char *json, size_t length, arena *a, const tree_node **out,
                         tree_refusal *refusal, hf_error *error);

#endif

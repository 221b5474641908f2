/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the generator of queries: the tree that a query is, scopes of columns,
 * and the tables that there are.
 * Thread: one at a time.
 *
 * What a query is made of keeps its answer determinate:
 * G1 A value that depends on which of several equal rows came first is not computed: ORDER BY under a LIMIT, in a
 *    window and in an aggregate ends with all columns that can tell rows apart.
 * G2 -0.0 equals 0.0 where rows are compared: nothing tells them apart (no text of a float, no division by one).
 * G3 A sum of floats is exact (multiples of 1/4, small), or it is APPROX: shown, and used for nothing else.
 * G4 What can fail stands where every row gets there: filters are not told from each other by their errors.
 */
#ifndef HF_GENERATE_GENERATE_INTERNAL_H
#define HF_GENERATE_GENERATE_INTERNAL_H

#include "generate/generate.h"

/* What expressions are made for. Types of one class mix: an INT is of any width. */
typedef enum gen_type {
  GEN_BOOL,
  GEN_INT,
  GEN_DECIMAL,
  GEN_FLOAT,
  GEN_TEXT,
  GEN_BLOB,
  GEN_UUID,
  GEN_ENUM,
  GEN_DATE,
  GEN_TIME,
  GEN_TIMESTAMP,
  GEN_TIMESTAMPTZ,
  GEN_INTERVAL,
  GEN_INTS,
  GEN_TEXTS,
  GEN_STRUCT,
  GEN_MAP,
  GEN_ODD,    /* another type, the same wherever it occurs in a set of tables; columns only */
  GEN_APPROX, /* a float that depends on the order of rows, within the tolerance of a comparison */
  GEN_TYPES
} gen_type;

/* Of a float: WILD ones may be infinite, NaN or so large that small ones vanish beside them. */
typedef enum gen_exactness { GEN_EXACT, GEN_ROUNDED, GEN_WILD } gen_exactness;

typedef enum gen_role {
  GEN_WORDS,      /* text */
  GEN_PART,       /* its parts, one behind the other */
  GEN_LIST,       /* items with text between them; a shorter list is a list, too */
  GEN_OPTION,     /* parts that may be left out together */
  GEN_EXPRESSION, /* parts; may be replaced by one of its type */
  GEN_RELATION,   /* of a FROM clause */
  GEN_QUERY
} gen_role;

struct gen_node {
  gen_role role;
  gen_type type; /* of an expression */
  gen_exactness exactness;
  double most;      /* of a number: no value is further from 0 */
  const char *text; /* of WORDS; between the items of a LIST */
  gen_node **parts;
  size_t n_parts, capacity;
  bool is_fixed; /* of a LIST: all its items are needed */
  /* the shrinker's */
  gen_node *instead; /* stands in its place */
  bool is_dropped;   /* an option, or an item of a list */
};

typedef struct gen_column {
  gen_node *node; /* as it is written in this scope */
  const char *name;
  gen_type type;
  gen_exactness exactness;
  double most, distinct; /* about as many values */
} gen_column;

typedef struct gen_scope gen_scope;
struct gen_scope {
  const gen_scope *outer; /* of the query around this one, or NULL */
  gen_column *columns;
  size_t n_columns, capacity;
  double rows;    /* about */
  bool is_closed; /* no subquery may stand here: a lambda, or columns that are no plain names */
};

/* A relation that can be named: a table of the data, or a common table expression. */
typedef struct gen_table {
  const char *name;
  gen_column *columns; /* their nodes are not set */
  size_t n_columns;
  double rows;
} gen_table;

typedef struct generator {
  arena *memory;
  uint64_t random;
  bool failed;      /* no memory; what was made is incomplete */
  gen_node nothing; /* stands for nodes that could not be had */
  gen_table *tables;
  size_t n_tables, n_data_tables; /* data tables first; then expressions that can be seen here */
  size_t capacity;
  unsigned names;   /* given so far */
  unsigned queries; /* nested ones so far: they end growth */
  bool has_ties;    /* at a LIMIT; fine unless COLLATE hides what orders */
  bool rows_only;   /* indeterminate: only types and the number of rows tell something */
} generator;

/* ------------------------------------------------------------------ tree */

size_t gen_below(generator *g, size_t n); /* n > 0 */
bool gen_chance(generator *g, unsigned percent);
const char *gen_text(generator *g, const char *format, ...) HF_PRINTF(2, 3);
gen_node *gen_node_new(generator *g, gen_role role);
void gen_add(generator *g, gen_node *parent, gen_node *part);
/* Text with %n (a node), %s (text) and %d (an int) in it, as one node. */
gen_node *gen_write(generator *g, gen_role role, const char *format, ...);
gen_node *gen_list(generator *g, const char *between);
void gen_render(const gen_node *n, buf *out);
/* A new name with this prefix. */
const char *gen_name(generator *g, const char *prefix);

/* ----------------------------------------------------------- expressions */

void gen_scope_add(generator *g, gen_scope *s, const gen_column *c);
gen_node *gen_literal(generator *g, gen_type type);
/* A plain text of that type, for the shrinker. */
const char *gen_plain_literal(gen_type type);
gen_node *gen_expression(generator *g, const gen_scope *s, gen_type type, unsigned depth);
/* A column with a literal. */
gen_node *gen_comparison(generator *g, const gen_scope *s);
/* Any but APPROX. */
gen_type gen_any_type(generator *g, const gen_scope *s);
/* A random column of this scope itself whose type can be sorted and compared, or NULL. */
const gen_column *gen_any_column(generator *g, const gen_scope *s);
bool gen_is_sortable(gen_type type);
/* What a window function needs to have one right answer. */
typedef enum gen_need {
  GEN_NEEDS_NOTHING,
  GEN_NEEDS_ORDER,       /* ORDER BY */
  GEN_NEEDS_TOTAL,       /* ORDER BY that leaves no ties */
  GEN_NEEDS_FRAME,       /* a frame that rows that tie enter together, or an order without ties */
  GEN_NEEDS_TOTAL_FRAME, /* an order without ties, and any frame */
} gen_need;
typedef enum gen_table_of { GEN_OF_EXPRESSIONS, GEN_OF_AGGREGATES, GEN_OF_WINDOWS } gen_table_of;
typedef struct gen_wanted {
  const gen_scope *scope;
  gen_type type;
  gen_table_of which;
  unsigned depth; /* of its parts */
} gen_wanted;
/* A row of generate.def made into an expression; NULL: there is none for that type. */
gen_node *gen_from_row(generator *g, const gen_wanted *wanted, gen_need *need);
/* NULL: there is none for that type. */
gen_node *gen_aggregate(generator *g, const gen_scope *s, gen_type type);
gen_node *gen_window(generator *g, const gen_scope *s, gen_type type);
/* "a, b DESC NULLS LAST": some columns, or all, which tell all rows apart that differ. */
gen_node *gen_sort_keys(generator *g, const gen_scope *s, bool all);

/* --------------------------------------------------------------- queries */

typedef struct gen_query {
  gen_node *node;
  gen_column *columns; /* of the result; their nodes are not set */
  size_t n_columns;
  double rows;
} gen_query;

typedef struct gen_wish {
  const gen_type *types; /* of the columns, or NULL: any */
  size_t n_types;
  const gen_scope *outer; /* or NULL */
  unsigned depth;
  double most_rows;
  bool is_whole; /* not below another query */
} gen_wish;

/* Relations of a FROM clause and their columns, into `s`. */
gen_node *gen_from(generator *g, gen_scope *s, unsigned depth, double most_rows);
/* A table of at most so many rows, with its columns under a new alias. */
gen_node *gen_from_table(generator *g, gen_scope *s, double most_rows);
gen_query gen_select(generator *g, const gen_wish *wish);
gen_query gen_any_query(generator *g, const gen_wish *wish);
gen_node *gen_predicate_of_subquery(generator *g, const gen_scope *s, unsigned depth);
gen_node *gen_scalar_subquery(generator *g, const gen_scope *s, gen_type type, unsigned depth);

#endif

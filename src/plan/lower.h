/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: a relation, with what is known of its held nodes and sources,
 * becomes SQL pieces; or the answer is what must be known first. Pure but for
 * the planner's engine, which binds the text.
 */
#ifndef HF_PLAN_LOWER_H
#define HF_PLAN_LOWER_H

#include "relation/build.h"
#include "relation/relation.h"

/* What the caller knows of a cache node. */
typedef enum held_answer {
  HELD_UNKNOWN, /* ask the registry first: it becomes a need */
  HELD_READ,    /* there: read its blocks */
  HELD_INLINE   /* released, or its fill failed: compute the input in place */
} held_answer;

typedef struct held_info {
  held_answer answer;
  schema columns; /* READ: of the entry */
  uint64_t rows;  /* READ: exact */
  bool ordered;   /* READ: its blocks have an order */
  bool indeterminate;
  uint64_t generation;
} held_info;

typedef struct lower_knowledge {
  /* Fills *out for the cache node; its memory stays valid until lowering ends. */
  void (*held)(void *context, const relation *cache_node, held_info *out);
  /* Returns the resolved source, borrowed, or NULL when it must be resolved first. */
  source *(*source_of)(void *context, const source_request *request);
  void *context;
} lower_knowledge;

typedef enum lower_input_kind { LOWER_INPUT_SOURCE, LOWER_INPUT_HELD, LOWER_INPUT_LOCAL } lower_input_kind;

typedef struct lower_input {
  lower_input_kind kind;
  source *source;             /* SOURCE: borrowed from the knowledge */
  const relation *cache_node; /* HELD */
  const relation *local;      /* LOCAL */
  schema columns;
  uint64_t rows;
  bool rows_exact;
  bool ordered;
  bool indeterminate; /* HELD: computing it again may give other rows */
  const char *name;   /* as SQL text names it, for column names that DuckDB makes of text */
} lower_input;

/*
 * SQL as a list of pieces: text, or the place of an input. An input stands for something that can follow FROM and have
 * an alias behind it: source_scan_sql of a SOURCE, lower_scan_sql of the others.
 */
typedef struct sql_piece {
  const char *text; /* NULL: an input */
  uint32_t input;
  int64_t
      origin; /* where the text stands in the SQL text of the relation that was lowered; -1: not in there */
} sql_piece;

typedef struct made_name {
  const char *made, *original;
} made_name;

typedef struct lowered lowered;
struct lowered {
  /* needs: when either is not 0, nothing below is filled */
  size_t n_needed_sources;
  const source_request *const *needed_sources;
  size_t n_needed_held;
  const relation *const
      *needed_held; /* cache nodes, outermost first; inputs of a needed node are not looked at */
  /* the lowered query */
  size_t n_pieces;
  const sql_piece *pieces;
  size_t n_inputs;
  const lower_input *inputs;
  bool ordered;      /* the rows have an order that a reader relies on */
  const char *clock; /* a function in it that reads the clock, such as now; NULL: none */
  /* for texts that come back from DuckDB: names that lowering made, and what they stand for in the user's text */
  size_t n_made_names;
  const made_name *made_names;
  const lowered
      *by_names; /* the same query with no view in place, which is what its columns are called after;
                                   * NULL: none is */
  const schema
      *columns; /* of a built relation: what it was checked with, by the user's names; NULL: not known */
};

/*
 * Lowers; results live in the arena, borrow from the relation and from what `knowledge` gave. A fill lowers the cache
 * node's input: a node at the root is looked up like any other.
 * Errors: LIMIT (too many or too long: the hint says to cache an intermediate result).
 */
hf_status plan_lower(const relation *r, const lower_knowledge *knowledge, arena *a, lowered *out,
                     hf_error *error);

/*
 * As relation_build, and refuses a step that could not be lowered when it runs. Errors: those; LIMIT (too many queries:
 * the hint says to cache or checkpoint).
 */
hf_status plan_build(engine *planner, const build_step *step, const relation_names *names, relation **out,
                     hf_error *error);

/*
 * Appends (SELECT c0 AS "user name", … FROM <call>): the columns of a call that names them c0 …, under their own names;
 * an empty name stays c<i>. CASTs back what crosses an exchange as another type, when `cast_enums`.
 */
void lower_scan_sql(const schema *columns, const char *call, bool cast_enums, buf *out);

/* The text with hf_scan('<input number>') for every input, and the scans to give to engine_set_scans. */
hf_status plan_text_for_planner(const lowered *l, arena *a, const char **sql, engine_scan **scans,
                                hf_error *error);

/* Binds it: the columns of the result. */
hf_status plan_describe(engine *planner, const lowered *l, arena *a, schema *out, hf_error *error);

typedef struct plan_traits {
  bool indeterminate;
  const char *why;       /* the function or operator that makes it so; "" when determinate */
  const char *collation; /* of a column of the result, which blocks do not keep; "" when none has one */
} plan_traits;

/* Tells whether computing it again may give other rows: random functions, the clock, LIMIT without order, sample, first, list,
 * string_agg, row_number … over unordered input. A plan that DuckDB cannot serialise counts as indeterminate. */
hf_status plan_traits_of(engine *planner, const lowered *l, arena *a, plan_traits *out, hf_error *error);

#endif

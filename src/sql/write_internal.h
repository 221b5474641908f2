/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that write the plan tree share. Not a door: the door is write.h. */
#ifndef HF_PLAN_WRITE_INTERNAL_H
#define HF_PLAN_WRITE_INTERNAL_H

#include "sql/write.h"

/* Text with places for inputs. */
typedef struct sql_text {
  buf text;
  size_t n_marks, capacity;
  struct sql_mark {
    size_t offset;
    uint32_t input;
  } * marks;
} sql_text;

/* The WITH list of a query that is being written. */
typedef struct write_chain {
  sql_text entries;
  size_t n;
  bool is_recursive;
} write_chain;

typedef struct writer {
  const plan_write_options *options;
  arena *a;
  tree_refusal *refusal;
  hf_error *error;
  sql_text *out;      /* where text goes now */
  write_chain *chain; /* the WITH list in front of it */
  unsigned nesting;   /* sub-selects around it, within its entry */
  size_t n_names;     /* aliases t1 …, entries w1 … */
  size_t lambda_level;
  const struct write_cte { /* which entry a CTE is */
    const struct write_cte *outer;
    uint64_t number;
    size_t entry;
  } * ctes;
  size_t delim_entry; /* the keys of the DELIM_JOIN that DELIM_GETs here read */
  size_t n_inputs, capacity;
  plan_input *inputs;
  size_t n_casts, cast_capacity;
  plan_cast *casts;
} writer;

/* What references of an expression stand for. */
typedef enum write_scope_kind {
  SCOPE_NONE,
  SCOPE_ALIAS,
  SCOPE_JOIN,
  SCOPE_LAMBDA,
  SCOPE_TEXT
} write_scope_kind;

typedef struct write_scope {
  write_scope_kind kind;
  size_t alias;       /* ALIAS; JOIN: of the left side */
  size_t right_alias; /* JOIN */
  const tree_join *join;
  const char *text;           /* TEXT: REF 0 */
  size_t level, n_parameters; /* LAMBDA */
  const tree_expression *const *captures;
  const struct write_scope *outer;
} write_scope;

/* A FROM item: a node, or the entry of a WITH list. */
typedef struct write_source {
  const tree_node *node;
  size_t entry; /* 0: the node is written in place */
  size_t alias;
} write_source;

/* write.c */
/* Sets the refusal and returns HF_E_UNSUPPORTED. */
hf_status write_refuse(writer *w, tree_refusal_code code, const char *node, const char *format, ...)
    HF_PRINTF(4, 5);
size_t write_name(writer *w);
/* Writes a node as a SELECT. */
hf_status write_node(writer *w, const tree_node *node);
/* Writes "(SELECT …) t7", or "w3 t7" when the node has, or by its depth needs, an entry of the WITH list. */
hf_status write_from(writer *w, const write_source *source);
/* write_asof.c: the sides of an ASOF join in FROM, and a last " AND …" behind its conditions, by the sides' aliases */
hf_status write_asof_left(writer *w, const tree_join *j, const write_source *from);
hf_status write_asof_right(writer *w, const tree_join *j, const write_source *from);
hf_status write_asof_guard(writer *w, const tree_join *j, size_t left, size_t right);
/* Writes a node as an entry of the WITH list. */
hf_status write_entry(writer *w, const tree_node *node, bool materialized, size_t *entry);
/* Begins and ends an entry whose text the caller writes. */
void write_entry_begin(writer *w, sql_text *text, sql_text **before);
hf_status write_entry_end(writer *w, sql_text *text, sql_text *before, const char *how, size_t entry);
/* Marks the place of an input. */
hf_status write_input(writer *w, const tree_node *node, const size_t *columns, size_t n_columns);
/* "t1.c0 AS c0, …" of columns `map` (NULL: 0 …), named from `first` on; a comma before all but c0. */
void write_columns(writer *w, size_t alias, const size_t *map, size_t n, size_t first);
/* "SELECT 1 AS c0" when nothing gets out, else "SELECT ". */
void write_select(writer *w, const tree_node *node);
static inline buf *write_to(const writer *w) {
  return &w->out->text;
}

/* write_operator.c */
hf_status write_operator(writer *w, const tree_node *node);
/* write_join.c */
hf_status write_join(writer *w, const tree_node *node);
hf_status write_any_join(writer *w, const tree_node *node);
hf_status write_delim_join(writer *w, const tree_node *node);
hf_status write_product(writer *w, const tree_node *node);
/* write_get.c */
hf_status write_get(writer *w, const tree_node *node);

/* write_expression.c */
hf_status write_expression(writer *w, const write_scope *scope, const tree_expression *e);
hf_status write_expressions(writer *w, const write_scope *scope, const tree_expression *const *list, size_t n,
                            const char *separator);
hf_status write_orders(writer *w, const write_scope *scope, const tree_order *orders, size_t n);
/* Refuses an expression that must not be written twice: random() would be drawn again. */
hf_status write_check_repeatable(writer *w, const tree_expression *e);
/* Writes an expression into a text of the arena. */
hf_status write_aside(writer *w, const write_scope *scope, const tree_expression *e, const char **out);

/* write_call.c */
hf_status write_function(writer *w, const write_scope *scope, const tree_expression *e);
hf_status write_aggregate(writer *w, const write_scope *scope, const tree_expression *e);
hf_status write_window(writer *w, const write_scope *scope, const tree_expression *e);

/* write_value.c */
hf_status write_value(writer *w, const tree_value *value);
/* Tells whether SQL can name the type: not when it holds an unnamed struct, or is NULL's own type. */
bool write_can_name(const data_type *type);
void write_type(writer *w, const data_type *type);

#endif

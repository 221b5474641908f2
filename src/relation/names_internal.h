/* SPDX-License-Identifier: Apache-2.0 */
/* What finding the names of a query shares: the walk over its tree. Thread: one at a time. */
#ifndef HF_RELATION_NAMES_INTERNAL_H
#define HF_RELATION_NAMES_INTERNAL_H

#include "relation/relation_parts.h"
#include "relation/node.h"

typedef struct names_walk {
  const token_list *tokens;
  const relation_names *names;
  arena *arena;
  sql_spot *spots; /* in the order found; memory: mem_* */
  size_t n_spots, capacity;
  bool *seen;        /* of each token whether the tree has a table there; NULL: nobody asks */
  const char *clock; /* the first function found that reads the clock; NULL: none */
  unsigned values;   /* sub-selects that are values, around the node at hand */
  hf_error *error;
} names_walk;

/*
 * Copies a text with comments and blanks of all kinds as spaces, up to its last token: offsets stay, and DuckDB
 * finds nothing to rewrite before it parses. Cuts a ';' at the end. Errors: SYNTAX (empty, or a second statement).
 */
hf_status names_normalise(const char *sql, arena *a, const char **out, token_list *tokens, hf_error *error);
/* Finds the names below a value of a parsed tree, where no common table expression is in scope. */
hf_status names_walk_tree(names_walk *w, struct json_object *value);
/* Moves the spots found, sorted, into the arena. */
hf_status names_take_spots(names_walk *w, const sql_spot **out, size_t *n_out);
hf_status names_out_of_memory(const names_walk *w);
/* Sets an error with a position (SIZE_MAX: none); returns the code. */
hf_status names_fail(const names_walk *w, hf_status code, size_t offset, const char *what, const char *value,
                     const char *hint);
/* Notes a place; the same place twice is one (DuckDB copies expressions). */
hf_status names_add_spot(names_walk *w, const sql_spot *spot);

/*
 * Deals with a table function: allowed as it is (*descend true: its arguments may hold queries), or a reader, which
 * becomes a spot. Errors: FUNCTION_REFUSED, INVALID_ARGUMENT, UNSUPPORTED.
 */
hf_status names_table_function(names_walk *w, struct json_object *ref, bool *descend);
/* Refuses functions that reach outside of the query; notes those that read the clock. */
hf_status names_scalar_function(names_walk *w, struct json_object *function);
/* Notes what is written like a column and reads the clock: current_date. */
void names_column(names_walk *w, struct json_object *column_ref);

/* Finds the names in sub-selects that DuckDB's parser left out of the tree, since an equal expression is in it. */
hf_status names_dropped(names_walk *w, engine *planner, struct json_object *tree);

/* Finds virtual columns of files that are named, and the stars that must not show them. After the spots. */
hf_status names_virtual(names_walk *w, struct json_object *tree);

/* Spells a constant of the tree as SQL; false when it is none. */
bool names_constant_sql(struct json_object *expression, buf *out);

#endif

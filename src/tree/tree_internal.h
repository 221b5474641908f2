/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read the plan tree share. Not a door: the door is tree.h. */
#ifndef HF_PLAN_TREE_INTERNAL_H
#define HF_PLAN_TREE_INTERNAL_H

#include "tree/json_read.h"
#include "tree/tree.h"

/* How DuckDB names a column before its resolver has turned names into positions. */
typedef struct tree_binding {
  uint64_t table, column;
} tree_binding;

/* The columns that references of an expression may name. */
typedef struct tree_space {
  size_t n;
  const data_type *const *types; /* NULL entries: unknown (parameters of lambdas) */
  const tree_binding *bindings;  /* NULL: unknown */
} tree_space;

/* tree_read_type.c */
hf_status tree_read_type(json_reader *r, struct json_object *object, const data_type **out);
hf_status tree_read_types(json_view *v, const char *key, const data_type *const **out, size_t *n);
/* `type` is what the parent says, or NULL: then the value says it. */
hf_status tree_read_value(json_reader *r, struct json_object *object, const data_type *type, tree_value *out);
hf_status tree_read_values(json_view *v, const char *key, const tree_value **out, size_t *n);

/* tree_read_expression.c */
hf_status tree_read_expression(json_reader *r, struct json_object *object, const tree_space *space,
                               const tree_expression **out);
hf_status tree_read_expressions(json_view *v, const char *key, const tree_space *space,
                                const tree_expression *const **out, size_t *n);
hf_status tree_read_orders(json_view *v, const char *key, const tree_space *space, const tree_order **out,
                           size_t *n);
hf_status tree_read_comparison(json_view *v, const char *key, tree_comparison *out);
/* Reads an expression that may be absent. */
hf_status tree_read_optional(json_view *v, const char *key, const tree_space *space,
                             const tree_expression **out);

/* tree_read_call.c */
/* Reads name, function data and what belongs to them; `view` is the call's object. */
hf_status tree_read_call(json_view *v, const tree_space *space, tree_expression *e, tree_call *call);
/* Takes catalog_name; false when the function is none of DuckDB's own catalog. */
bool tree_is_of_system(json_view *v);
hf_status tree_read_window(json_view *v, const tree_space *space, tree_expression *e);

/* An operator that has been read. */
typedef struct tree_placed {
  const tree_node *node;
  const tree_binding *bindings; /* of node->n_columns */
} tree_placed;

/* An operator that is being read; its children have been. */
typedef struct tree_building {
  json_view *v;
  tree_node *node;
  size_t n_children;
  tree_placed *children;
  const data_type **types; /* of what gets out, as it is filled */
  tree_binding *bindings;
  const tree_expression **list; /* rows of constants, as they are filled */
} tree_building;

/* tree_read.c */
tree_space tree_space_of(const tree_placed *placed);
/* Makes room for `n` columns that get out; each is then added or passed on. */
hf_status tree_set_columns(tree_building *b, size_t n);
void tree_add_column(tree_building *b, const data_type *type, uint64_t table, uint64_t position);
void tree_pass_column(tree_building *b, size_t child, size_t from_column);

/* tree_read_join.c */
hf_status tree_read_join(tree_building *b);
hf_status tree_read_any_join(tree_building *b);
hf_status tree_read_product(tree_building *b);

/* tree_read_sample.c */
hf_status tree_read_sample(tree_building *b);

/* tree_read_pivot.c */
hf_status tree_read_pivot(tree_building *b);

/* tree_read_get.c */
hf_status tree_read_get(tree_building *b);

/* tree_check.c: refuses references to CTEs and to duplicate-eliminated columns that are not there. */
hf_status tree_check(json_reader *r, const tree_node *root);

/* Makes expressions that DuckDB does not spell out. */
const tree_expression *tree_new_ref(arena *a, size_t ref, const data_type *type);
const tree_expression *tree_new_constant(arena *a, const tree_value *value);

extern const data_type tree_type_boolean;
extern const data_type tree_type_bigint;

#endif

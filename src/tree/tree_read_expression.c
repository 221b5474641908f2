/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of plan JSON, but calls and windows (tree_read_call.c). */
#include "tree/tree_internal.h"

#include <string.h>

static const char *const class_names[] = {
#define TREE_EXPRESSION_KIND(id, json) json,
#include "tree/tree.def"
};
static const char *const comparison_names[] = {
#define TREE_COMPARE(id, json, sql) json,
#include "tree/tree.def"
};
static const char *const operator_names[] = {
#define TREE_OPERATOR(id, json) json,
#include "tree/tree.def"
};

const tree_expression *tree_new_ref(arena *a, size_t ref, const data_type *type) {
  tree_expression *e = arena_alloc(a, sizeof *e);
  if (e != NULL) {
    e->kind = EXPRESSION_REF;
    e->type = type;
    e->ref = ref;
  }
  return e;
}

const tree_expression *tree_new_constant(arena *a, const tree_value *value) {
  tree_expression *e = arena_alloc(a, sizeof *e);
  if (e != NULL) {
    e->kind = EXPRESSION_CONSTANT;
    e->type = value->type;
    e->value = value;
  }
  return e;
}

hf_status tree_read_comparison(json_view *v, const char *key, tree_comparison *out) {
  unsigned at = 0;
  HF_TRY(json_read_enum(v, key, comparison_names, COMPARE_COUNT, &at));
  *out = (tree_comparison)at;
  return HF_OK;
}

/* ------------------------------------------------------------------- lists */

hf_status tree_read_expressions(json_view *v, const char *key, const tree_space *space,
                                const tree_expression *const **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  const tree_expression **list = arena_array(v->reader->a, *n, sizeof(tree_expression *));
  if (list == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(tree_read_expression(v->reader, json_object_array_get_idx(array, i), space, &list[i]));
  }
  *out = list;
  return HF_OK;
}

hf_status tree_read_optional(json_view *v, const char *key, const tree_space *space,
                             const tree_expression **out) {
  struct json_object *object = json_read_take(v, key);
  *out = NULL;
  return object == NULL ? HF_OK : tree_read_expression(v->reader, object, space, out);
}

static hf_status read_order(json_reader *r, struct json_object *object, const tree_space *space,
                            tree_order *out) {
  static const char *const directions[] = {"ASCENDING", "DESCENDING"};
  static const char *const null_orders[] = {"NULLS LAST", "NULLS FIRST", "NULLS_LAST", "NULLS_FIRST"};
  json_view v;
  unsigned direction = 0, nulls = 0;
  HF_TRY(json_read_open(r, object, "ORDER", &v));
  HF_TRY(json_read_enum(&v, "type", directions, 2, &direction));
  HF_TRY(json_read_enum(&v, "null_order", null_orders, 4, &nulls));
  out->descending = direction == 1;
  out->nulls_first = nulls % 2 == 1;
  HF_TRY(tree_read_expression(r, json_read_take(&v, "expression"), space, &out->expression));
  return json_read_close(&v);
}

hf_status tree_read_orders(json_view *v, const char *key, const tree_space *space, const tree_order **out,
                           size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  tree_order *orders = arena_array(v->reader->a, *n, sizeof *orders);
  if (orders == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(read_order(v->reader, json_object_array_get_idx(array, i), space, &orders[i]));
  }
  *out = orders;
  return HF_OK;
}

/* -------------------------------------------------------------- references */

static hf_status check_ref(json_view *v, const tree_space *space, const tree_expression *e) {
  if (e->ref >= space->n) {
    return json_read_refuse(v->reader, TREE_REFUSED_REFERENCE, v->node, "column %zu of %zu", e->ref,
                            space->n);
  }
  const data_type *type = space->types[e->ref];
  if (type != NULL && !data_type_equal(type, e->type)) {
    return json_read_refuse(v->reader, TREE_REFUSED_REFERENCE, v->node, "column %zu is %s, the plan says %s",
                            e->ref, type_kind_name(type->kind), type_kind_name(e->type->kind));
  }
  return HF_OK;
}

static hf_status read_ref(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"BOUND_REF"};
  unsigned type = 0;
  uint64_t index = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  HF_TRY(json_read_size(v, "index", &index));
  e->ref = (size_t)index;
  return check_ref(v, space, e);
}

/* Only below a table in-out GET, whose inputs DuckDB's resolver never visits: a column by its binding. */
static hf_status read_column_ref(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"BOUND_COLUMN_REF"};
  unsigned type = 0;
  json_view b;
  tree_binding binding = {0, 0};
  uint64_t depth = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  HF_TRY(json_read_open(v->reader, json_read_take(v, "binding"), v->node, &b));
  HF_TRY(json_read_size(&b, "table_index", &binding.table));
  HF_TRY(json_read_size(&b, "column_index", &binding.column));
  HF_TRY(json_read_close(&b));
  HF_TRY(json_read_size(v, "depth", &depth));
  for (size_t i = 0; depth == 0 && space->bindings != NULL && i < space->n; i++) {
    if (space->bindings[i].table == binding.table && space->bindings[i].column == binding.column) {
      e->kind = EXPRESSION_REF;
      e->ref = i;
      return check_ref(v, space, e);
    }
  }
  return json_read_refuse(v->reader, TREE_REFUSED_REFERENCE, v->node,
                          "a column by name that its input does not have");
}

/* ----------------------------------------------------------------- classes */

static hf_status children_of(json_view *v, const tree_space *space, tree_expression *e,
                             const char *const *keys, size_t n) {
  const tree_expression **children = arena_array(v->reader->a, n, sizeof(tree_expression *));
  if (children == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(tree_read_expression(v->reader, json_read_take(v, keys[i]), space, &children[i]));
  }
  e->children = children;
  e->n_children = n;
  return HF_OK;
}

/* encode(text): its bytes as a BLOB. */
static const tree_expression *bytes_of(arena *a, const tree_expression *text, const data_type *blob) {
  const tree_expression **children = arena_array(a, 1, sizeof(tree_expression *));
  tree_expression *e = arena_alloc(a, sizeof *e);
  tree_call *call = arena_alloc(a, sizeof *call);
  if (children == NULL || e == NULL || call == NULL) {
    return NULL;
  }
  *children = text;
  call->name = "encode";
  e->kind = EXPRESSION_FUNCTION;
  e->type = blob;
  e->n_children = 1;
  e->children = children;
  e->call = call;
  return e;
}

/* DuckDB's optimizer adds bounds to regexp_full_match(text, '…'), which are bytes: a text is compared with a BLOB, which SQL
 * cannot say. */
static hf_status compare_bytes(json_view *v, tree_expression *e) {
  for (size_t i = 0; i < 2; i++) {
    const tree_expression *text = e->children[i], *blob = e->children[1 - i];
    if (text->type->kind != TYPE_VARCHAR || blob->type->kind != TYPE_BLOB) {
      continue;
    }
    const tree_expression **children = arena_array(v->reader->a, 2, sizeof(tree_expression *));
    const tree_expression *bytes = bytes_of(v->reader->a, text, blob->type);
    if (children == NULL || bytes == NULL) {
      return json_read_no_memory(v->reader);
    }
    children[i] = bytes;
    children[1 - i] = blob;
    e->children = children;
    break;
  }
  return HF_OK;
}

static hf_status read_comparison(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const keys[] = {"left", "right"};
  HF_TRY(tree_read_comparison(v, "type", &e->comparison));
  HF_TRY(children_of(v, space, e, keys, 2));
  return compare_bytes(v, e);
}

static hf_status read_between(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"COMPARE_BETWEEN"};
  static const char *const keys[] = {"input", "lower", "upper"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  HF_TRY(json_read_bool(v, "lower_inclusive", &e->lower_inclusive));
  HF_TRY(json_read_bool(v, "upper_inclusive", &e->upper_inclusive));
  return children_of(v, space, e, keys, 3);
}

static hf_status read_conjunction(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"CONJUNCTION_AND", "CONJUNCTION_OR"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 2, &type));
  e->is_or = type == 1;
  HF_TRY(tree_read_expressions(v, "children", space, &e->children, &e->n_children));
  return e->n_children > 0 ? HF_OK
                           : json_read_refuse(v->reader, TREE_REFUSED_UNREADABLE, v->node, "no children");
}

static hf_status read_cast(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"OPERATOR_CAST"};
  static const char *const keys[] = {"child"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  HF_TRY(json_read_bool(v, "try_cast", &e->try_cast));
  return children_of(v, space, e, keys, 1);
}

static hf_status read_unnest(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"BOUND_UNNEST"};
  static const char *const keys[] = {"child"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  return children_of(v, space, e, keys, 1);
}

static hf_status read_constant(json_view *v, const tree_space *space, tree_expression *e) {
  (void)space;
  static const char *const types[] = {"VALUE_CONSTANT"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  tree_value *value = arena_alloc(v->reader->a, sizeof *value);
  if (value == NULL) {
    return json_read_no_memory(v->reader);
  }
  HF_TRY(tree_read_value(v->reader, json_read_take(v, "value"), NULL, value));
  e->value = value;
  e->type = value->type;
  return HF_OK;
}

static hf_status read_operator(json_view *v, const tree_space *space, tree_expression *e) {
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", operator_names, OPERATOR_COUNT, &type));
  e->operator=(tree_operator) type;
  HF_TRY(tree_read_expressions(v, "children", space, &e->children, &e->n_children));
  bool is_list = type == OPERATOR_COALESCE || type == OPERATOR_IN || type == OPERATOR_NOT_IN;
  size_t least = type == OPERATOR_IN || type == OPERATOR_NOT_IN ? 2 : 1;
  return e->n_children < least || (!is_list && e->n_children > 1)
             ? json_read_refuse(v->reader, TREE_REFUSED_UNREADABLE, v->node, "%s of %zu children",
                                operator_names[type], e->n_children)
             : HF_OK;
}

static hf_status read_case(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"CASE_EXPR"};
  unsigned type = 0;
  struct json_object *checks = NULL;
  size_t n = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  HF_TRY(json_read_array(v, "case_checks", &checks, &n));
  const tree_expression **children = arena_array(v->reader->a, 2 * n + 1, sizeof(tree_expression *));
  if (children == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < n; i++) {
    json_view check;
    HF_TRY(json_read_open(v->reader, json_object_array_get_idx(checks, i), v->node, &check));
    HF_TRY(tree_read_expression(v->reader, json_read_take(&check, "when_expr"), space, &children[2 * i]));
    HF_TRY(tree_read_expression(v->reader, json_read_take(&check, "then_expr"), space, &children[2 * i + 1]));
    HF_TRY(json_read_close(&check));
  }
  HF_TRY(tree_read_expression(v->reader, json_read_take(v, "else_expr"), space, &children[2 * n]));
  e->children = children;
  e->n_children = 2 * n + 1;
  return n > 0 ? HF_OK : json_read_refuse(v->reader, TREE_REFUSED_UNREADABLE, v->node, "no case");
}

static hf_status read_function(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"BOUND_FUNCTION"};
  static const char *const ignored[] = {"is_operator"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  json_read_ignore(v, ignored, 1);
  tree_call *call = arena_alloc(v->reader->a, sizeof *call);
  if (call == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->call = call;
  return tree_read_call(v, space, e, call);
}

static hf_status read_aggregate(json_view *v, const tree_space *space, tree_expression *e) {
  static const char *const types[] = {"BOUND_AGGREGATE"};
  static const char *const aggregate_types[] = {"NON_DISTINCT", "DISTINCT"};
  unsigned type = 0;
  HF_TRY(json_read_enum(v, "type", types, 1, &type));
  tree_call *call = arena_alloc(v->reader->a, sizeof *call);
  if (call == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->call = call;
  HF_TRY(tree_read_call(v, space, e, call));
  HF_TRY(json_read_enum(v, "aggregate_type", aggregate_types, 2, &type));
  call->distinct = type == 1;
  HF_TRY(tree_read_optional(v, "filter", space, &call->filter));
  struct json_object *order_bys = json_read_take(v, "order_bys");
  if (order_bys == NULL) {
    return HF_OK;
  }
  json_view orders;
  HF_TRY(json_read_open(v->reader, order_bys, v->node, &orders));
  HF_TRY(tree_read_orders(&orders, "orders", space, &call->orders, &call->n_orders));
  return json_read_close(&orders);
}

typedef hf_status (*class_reader)(json_view *v, const tree_space *space, tree_expression *e);

static const struct class_row {
  class_reader read;
  const data_type *type; /* NULL: the JSON says it, or the reader knows it */
  bool says_type;
} class_rows[] = {
    [EXPRESSION_REF] = {read_ref, NULL, true},
    [EXPRESSION_CONSTANT] = {read_constant, NULL, false},
    [EXPRESSION_CAST] = {read_cast, NULL, true},
    [EXPRESSION_COMPARISON] = {read_comparison, &tree_type_boolean, false},
    [EXPRESSION_CONJUNCTION] = {read_conjunction, &tree_type_boolean, false},
    [EXPRESSION_BETWEEN] = {read_between, &tree_type_boolean, false},
    [EXPRESSION_CASE] = {read_case, NULL, true},
    [EXPRESSION_OPERATOR] = {read_operator, NULL, true},
    [EXPRESSION_FUNCTION] = {read_function, NULL, true},
    [EXPRESSION_AGGREGATE] = {read_aggregate, NULL, true},
    [EXPRESSION_WINDOW] = {tree_read_window, NULL, true},
    [EXPRESSION_UNNEST] = {read_unnest, NULL, true},
};

static const struct class_row column_ref_row = {read_column_ref, NULL, true};

static const struct class_row *find_class(const char *name, tree_expression *e) {
  for (unsigned i = 0; i < EXPRESSION_KIND_COUNT; i++) {
    if (strcmp(class_names[i], name) == 0) {
      e->kind = (tree_expression_kind)i;
      return &class_rows[i];
    }
  }
  return strcmp(name, "BOUND_COLUMN_REF") == 0 ? &column_ref_row : NULL;
}

/* The alias of a reference is a name for messages; that of another expression has become the name of a column. */
static hf_status read_alias(json_view *v, tree_expression *e) {
  struct json_object *alias = json_read_take(v, "alias");
  const char *name = json_object_is_type(alias, json_type_string) ? json_object_get_string(alias) : "";
  if (e->kind == EXPRESSION_REF && name[0] != '\0') {
    e->name = arena_strdup(v->reader->a, name);
    return e->name == NULL ? json_read_no_memory(v->reader) : HF_OK;
  }
  return HF_OK;
}

hf_status tree_read_expression(json_reader *r, struct json_object *object, const tree_space *space,
                               const tree_expression **out) {
  static const char *const ignored[] = {"query_location"};
  json_view v;
  const char *name = NULL;
  HF_TRY(json_read_open(r, object, "EXPRESSION", &v));
  HF_TRY(json_read_text(&v, "expression_class", &name));
  json_read_ignore(&v, ignored, 1);
  tree_expression *e = arena_alloc(r->a, sizeof *e);
  if (e == NULL) {
    return json_read_no_memory(r);
  }
  const struct class_row *row = find_class(name, e);
  if (row == NULL) {
    return json_read_refuse(r, TREE_REFUSED_EXPRESSION, "EXPRESSION", "%.100s", name);
  }
  v.node = name;
  e->type = row->type;
  if (row->says_type) {
    HF_TRY(tree_read_type(r, json_read_take(&v, "return_type"), &e->type));
  }
  HF_TRY(json_read_descend(r, name));
  HF_TRY(row->read(&v, space, e));
  HF_TRY(read_alias(&v, e));
  json_read_ascend(r);
  *out = e;
  return json_read_close(&v);
}

const char *tree_expression_kind_name(tree_expression_kind kind) {
  return class_names[kind];
}

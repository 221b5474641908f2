/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of plan JSON, and the door. Joins: tree_read_join.c; GET: tree_read_get.c. */
#include "tree/tree_internal.h"

#include <string.h>

/* ------------------------------------------------------------------- names */

static const char *const kind_names[] = {
#define TREE_KIND(id, json) json,
#include "tree/tree.def"
};
static const char *const refusal_names[] = {
#define TREE_REFUSAL(id, sentence) #id,
#include "tree/tree.def"
};
static const char *const refusal_sentences[] = {
#define TREE_REFUSAL(id, sentence) sentence,
#include "tree/tree.def"
};

const char *tree_kind_name(tree_kind kind) {
  return kind_names[kind];
}

const char *tree_refusal_name(tree_refusal_code code) {
  return refusal_names[code];
}

const char *tree_refusal_sentence(tree_refusal_code code) {
  return refusal_sentences[code];
}

/* ----------------------------------------------------------------- columns */

/* Makes room for what gets out: `n` types and bindings. */
hf_status tree_set_columns(tree_building *b, size_t n) {
  b->types = arena_array(b->v->reader->a, n, sizeof(data_type *));
  b->bindings = arena_array(b->v->reader->a, n, sizeof(tree_binding));
  b->node->types = b->types;
  b->node->n_columns = 0;
  return b->types == NULL || b->bindings == NULL ? json_read_no_memory(b->v->reader) : HF_OK;
}

void tree_add_column(tree_building *b, const data_type *type, uint64_t table, uint64_t position) {
  size_t at = b->node->n_columns++;
  b->types[at] = type;
  b->bindings[at] = (tree_binding){table, position};
}

void tree_pass_column(tree_building *b, size_t child, size_t from_column) {
  const tree_placed *from = &b->children[child];
  size_t at = b->node->n_columns++;
  b->types[at] = from->node->types[from_column];
  b->bindings[at] = from->bindings[from_column];
}

static void pass_all(tree_building *b, size_t child) {
  for (size_t i = 0; i < b->children[child].node->n_columns; i++) {
    tree_pass_column(b, child, i);
  }
}

tree_space tree_space_of(const tree_placed *placed) {
  return (tree_space){placed->node->n_columns, placed->node->types, placed->bindings};
}

/* Passes the child's columns through a map; an empty one means all. */
static hf_status pass_mapped(tree_building *b, const char *key) {
  size_t n = b->children[0].node->n_columns;
  HF_TRY(json_read_indexes(b->v, key, n, &b->node->map, &b->node->n_map));
  HF_TRY(tree_set_columns(b, b->node->n_map > 0 ? b->node->n_map : n));
  if (b->node->n_map == 0) {
    pass_all(b, 0);
  }
  for (size_t i = 0; i < b->node->n_map; i++) {
    tree_pass_column(b, 0, b->node->map[i]);
  }
  return HF_OK;
}

static hf_status pass_child(tree_building *b) {
  HF_TRY(tree_set_columns(b, b->children[0].node->n_columns));
  pass_all(b, 0);
  return HF_OK;
}

static hf_status add_table(tree_building *b, const char *key, const data_type *const *types, size_t n) {
  uint64_t table = 0;
  HF_TRY(json_read_size(b->v, key, &table));
  HF_TRY(tree_set_columns(b, n));
  for (size_t i = 0; i < n; i++) {
    tree_add_column(b, types[i], table, i);
  }
  return HF_OK;
}

static hf_status read_child_expressions(tree_building *b, const char *key) {
  tree_space space = tree_space_of(&b->children[0]);
  return tree_read_expressions(b->v, key, &space, &b->node->expressions, &b->node->n_expressions);
}

/* ------------------------------------------------------------------ leaves */

static hf_status read_dummy(tree_building *b) {
  static const data_type integer = {.kind = TYPE_INTEGER};
  const data_type *const types[] = {&integer};
  return add_table(b, "table_index", types, 1);
}

static hf_status read_empty(tree_building *b) {
  const data_type *const *types = NULL;
  size_t n = 0, n_bindings = 0;
  struct json_object *bindings = NULL;
  HF_TRY(tree_read_types(b->v, "return_types", &types, &n));
  HF_TRY(json_read_array(b->v, "bindings", &bindings, &n_bindings));
  HF_TRY(tree_set_columns(b, n));
  if (n_bindings != n) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_UNREADABLE, b->v->node, "%zu types, %zu bindings", n,
                            n_bindings);
  }
  for (size_t i = 0; i < n; i++) {
    json_view v;
    tree_binding binding = {0, 0};
    HF_TRY(json_read_open(b->v->reader, json_object_array_get_idx(bindings, i), b->v->node, &v));
    HF_TRY(json_read_size(&v, "table_index", &binding.table));
    HF_TRY(json_read_size(&v, "column_index", &binding.column));
    HF_TRY(json_read_close(&v));
    tree_add_column(b, types[i], binding.table, binding.column);
  }
  return HF_OK;
}

static hf_status read_delim_get(tree_building *b) {
  const data_type *const *types = NULL;
  size_t n = 0;
  HF_TRY(tree_read_types(b->v, "chunk_types", &types, &n));
  return add_table(b, "table_index", types, n);
}

static hf_status read_cte_ref(tree_building *b) {
  static const char *const ignored[] = {"bound_columns"};
  const data_type *const *types = NULL;
  size_t n = 0;
  bool is_recurring = false;
  HF_TRY(tree_read_types(b->v, "chunk_types", &types, &n));
  HF_TRY(json_read_size(b->v, "cte_index", &b->node->number));
  HF_TRY(json_read_bool(b->v, "is_recurring", &is_recurring));
  json_read_ignore(b->v, ignored, 1);
  if (is_recurring) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_VALUE, b->v->node, "a recurring CTE");
  }
  return add_table(b, "table_index", types, n);
}

/* VALUES: rows of expressions, over a child (mostly one dummy row). */
static hf_status read_expression_get(tree_building *b) {
  const data_type *const *types = NULL;
  size_t n = 0, n_rows = 0;
  struct json_object *rows = NULL;
  json_reader *r = b->v->reader;
  tree_space space = tree_space_of(&b->children[0]);
  HF_TRY(tree_read_types(b->v, "expr_types", &types, &n));
  HF_TRY(json_read_array(b->v, "expressions", &rows, &n_rows));
  const tree_expression **list =
      n_rows == 0 || n > SIZE_MAX / n_rows ? NULL : arena_array(r->a, n * n_rows, sizeof(tree_expression *));
  if (list == NULL) {
    return n_rows == 0 ? json_read_refuse(r, TREE_REFUSED_SHAPE, b->v->node, "no rows")
                       : json_read_no_memory(r);
  }
  for (size_t i = 0; i < n_rows; i++) {
    struct json_object *row = json_object_array_get_idx(rows, i);
    if (!json_object_is_type(row, json_type_array) || json_object_array_length(row) != n) {
      return json_read_refuse(r, TREE_REFUSED_UNREADABLE, b->v->node, "a row that is not of %zu columns", n);
    }
    for (size_t c = 0; c < n; c++) {
      HF_TRY(tree_read_expression(r, json_object_array_get_idx(row, c), &space, &list[i * n + c]));
    }
  }
  b->node->expressions = list;
  b->node->n_expressions = n * n_rows;
  return add_table(b, "table_index", types, n);
}

static hf_status read_chunk_column(tree_building *b, struct json_object *values, const data_type *type,
                                   size_t at) {
  json_reader *r = b->v->reader;
  size_t n = b->node->n_columns, n_rows = b->node->n_expressions / n;
  const tree_expression **list = b->list;
  if (!json_object_is_type(values, json_type_array) || json_object_array_length(values) != n_rows) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, b->v->node, "columns of unequal length");
  }
  for (size_t i = 0; i < n_rows; i++) {
    tree_value *value = arena_alloc(r->a, sizeof *value);
    if (value == NULL) {
      return json_read_no_memory(r);
    }
    HF_TRY(tree_read_value(r, json_object_array_get_idx(values, i), type, value));
    list[i * n + at] = tree_new_constant(r->a, value);
    if (list[i * n + at] == NULL) {
      return json_read_no_memory(r);
    }
  }
  return HF_OK;
}

/* Constants by column: they become the rows of a VALUES without a child. */
static hf_status read_chunk_get(tree_building *b) {
  const data_type *const *types = NULL, *const *inner = NULL;
  size_t n = 0, n_inner = 0, n_columns = 0;
  struct json_object *columns = NULL;
  json_reader *r = b->v->reader;
  json_view collection;
  HF_TRY(tree_read_types(b->v, "chunk_types", &types, &n));
  HF_TRY(json_read_open(r, json_read_take(b->v, "collection"), b->v->node, &collection));
  HF_TRY(tree_read_types(&collection, "types", &inner, &n_inner));
  HF_TRY(json_read_array(&collection, "values", &columns, &n_columns));
  HF_TRY(json_read_close(&collection));
  HF_TRY(add_table(b, "table_index", types, n));
  if (n == 0 || n_columns != n || n_inner != n) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, b->v->node, "%zu types, %zu columns", n, n_columns);
  }
  struct json_object *first = json_object_array_get_idx(columns, 0);
  size_t n_rows = json_object_is_type(first, json_type_array) ? json_object_array_length(first) : 0;
  b->list = n_rows > SIZE_MAX / n ? NULL : arena_array(r->a, n * n_rows, sizeof(tree_expression *));
  if (b->list == NULL) {
    return json_read_no_memory(r);
  }
  b->node->expressions = b->list;
  b->node->n_expressions = n * n_rows;
  for (size_t c = 0; c < n; c++) {
    HF_TRY(read_chunk_column(b, json_object_array_get_idx(columns, c), types[c], c));
  }
  if (n_rows == 0) {
    b->node->kind = TREE_EMPTY;
  }
  return HF_OK;
}

static hf_status read_get(tree_building *b) {
  return tree_read_get(b);
}

/* --------------------------------------------------------------- one child */

static hf_status read_filter(tree_building *b) {
  HF_TRY(read_child_expressions(b, "expressions"));
  return pass_mapped(b, "projection_map");
}

static hf_status read_projection(tree_building *b) {
  uint64_t table = 0;
  HF_TRY(json_read_size(b->v, "table_index", &table));
  HF_TRY(read_child_expressions(b, "expressions"));
  HF_TRY(tree_set_columns(b, b->node->n_expressions));
  for (size_t i = 0; i < b->node->n_expressions; i++) {
    tree_add_column(b, b->node->expressions[i]->type, table, i);
  }
  return HF_OK;
}

static hf_status read_group_sets(tree_building *b, const char *key, size_t n_groups,
                                 const tree_group_set **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(b->v, key, &array, n));
  tree_group_set *sets = arena_array(b->v->reader->a, *n, sizeof *sets);
  if (sets == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(json_read_indexes_of(b->v->reader, json_object_array_get_idx(array, i), b->v->node, n_groups,
                                &sets[i]));
  }
  *out = sets;
  return HF_OK;
}

static hf_status read_aggregate(tree_building *b) {
  static const char *const ignored[] = {"distinct_validity"};
  uint64_t group_table = 0, table = 0, grouping_table = 0;
  tree_space space = tree_space_of(&b->children[0]);
  tree_aggregate *g = arena_alloc(b->v->reader->a, sizeof *g);
  if (g == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  b->node->aggregate = g;
  json_read_ignore(b->v, ignored, 1);
  HF_TRY(json_read_size(b->v, "group_index", &group_table));
  HF_TRY(json_read_size(b->v, "aggregate_index", &table));
  HF_TRY(json_read_size(b->v, "groupings_index", &grouping_table));
  HF_TRY(tree_read_expressions(b->v, "groups", &space, &g->groups, &g->n_groups));
  HF_TRY(read_child_expressions(b, "expressions"));
  HF_TRY(read_group_sets(b, "grouping_sets", g->n_groups, &g->sets, &g->n_sets));
  HF_TRY(read_group_sets(b, "grouping_functions", g->n_groups, &g->grouping, &g->n_grouping));
  HF_TRY(tree_set_columns(b, g->n_groups + b->node->n_expressions + g->n_grouping));
  for (size_t i = 0; i < g->n_groups; i++) {
    tree_add_column(b, g->groups[i]->type, group_table, i);
  }
  for (size_t i = 0; i < b->node->n_expressions; i++) {
    tree_add_column(b, b->node->expressions[i]->type, table, i);
  }
  for (size_t i = 0; i < g->n_grouping; i++) {
    tree_add_column(b, &tree_type_bigint, grouping_table, i);
  }
  return HF_OK;
}

static hf_status add_behind_child(tree_building *b, const char *key) {
  uint64_t table = 0;
  HF_TRY(json_read_size(b->v, key, &table));
  HF_TRY(read_child_expressions(b, "expressions"));
  HF_TRY(tree_set_columns(b, b->children[0].node->n_columns + b->node->n_expressions));
  pass_all(b, 0);
  for (size_t i = 0; i < b->node->n_expressions; i++) {
    tree_add_column(b, b->node->expressions[i]->type, table, i);
  }
  return HF_OK;
}

static hf_status read_window(tree_building *b) {
  return add_behind_child(b, "window_index");
}

static hf_status read_unnest(tree_building *b) {
  return add_behind_child(b, "unnest_index");
}

static hf_status read_distinct(tree_building *b) {
  static const char *const types[] = {"DISTINCT", "DISTINCT_ON"};
  unsigned type = 0;
  tree_space space = tree_space_of(&b->children[0]);
  HF_TRY(json_read_enum(b->v, "distinct_type", types, 2, &type));
  HF_TRY(read_child_expressions(b, "distinct_targets"));
  struct json_object *order_by = json_read_take(b->v, "order_by");
  if (order_by != NULL) {
    json_view v;
    HF_TRY(json_read_open(b->v->reader, order_by, b->v->node, &v));
    HF_TRY(tree_read_orders(&v, "orders", &space, &b->node->orders, &b->node->n_orders));
    HF_TRY(json_read_close(&v));
  }
  if (b->node->n_expressions == 0) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "no targets");
  }
  return pass_child(b);
}

static hf_status read_node_orders(tree_building *b) {
  tree_space space = tree_space_of(&b->children[0]);
  HF_TRY(tree_read_orders(b->v, "orders", &space, &b->node->orders, &b->node->n_orders));
  return b->node->n_orders > 0 ? HF_OK
                               : json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "no keys");
}

static hf_status read_order(tree_building *b) {
  HF_TRY(read_node_orders(b));
  return pass_mapped(b, "projections");
}

static hf_status new_limit(tree_building *b, tree_limit **out) {
  *out = arena_alloc(b->v->reader->a, sizeof **out);
  b->node->limit = *out;
  return *out == NULL ? json_read_no_memory(b->v->reader) : HF_OK;
}

static hf_status read_top_n(tree_building *b) {
  tree_limit *limit = NULL;
  HF_TRY(new_limit(b, &limit));
  HF_TRY(read_node_orders(b));
  limit->has_limit = true;
  HF_TRY(json_read_size(b->v, "limit", &limit->limit));
  HF_TRY(json_read_size(b->v, "offset", &limit->offset));
  return pass_child(b);
}

/* One of limit_val, offset_val. */
static hf_status read_bound(tree_building *b, const char *key, bool *has, tree_limit *limit) {
  static const char *const types[] = {"UNSET", "CONSTANT_VALUE", "CONSTANT_PERCENTAGE", "EXPRESSION_VALUE"};
  json_view v;
  unsigned type = 0;
  tree_space space = tree_space_of(&b->children[0]);
  HF_TRY(json_read_open(b->v->reader, json_read_take(b->v, key), b->v->node, &v));
  HF_TRY(json_read_enum(&v, "type", types, 4, &type));
  uint64_t number = 0;
  HF_TRY(json_read_size(&v, "constant_integer", &number));
  struct json_object *percent = json_read_take(&v, "constant_percentage");
  const tree_expression *expression = NULL;
  HF_TRY(tree_read_optional(&v, "expression", &space, &expression));
  HF_TRY(json_read_close(&v));
  *has = type != 0;
  if ((type == 3) != (expression != NULL) || (type == 2 && has != &limit->has_limit)) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "%s of type %s", key, types[type]);
  }
  if (has != &limit->has_limit) {
    limit->offset = number;
    limit->offset_expression = expression;
    return HF_OK;
  }
  limit->limit = number;
  limit->limit_expression = expression;
  limit->limit_is_percent = type == 2;
  limit->percent = json_object_get_double(percent);
  return HF_OK;
}

static hf_status read_limit(tree_building *b) {
  tree_limit *limit = NULL;
  HF_TRY(new_limit(b, &limit));
  HF_TRY(read_bound(b, "limit_val", &limit->has_limit, limit));
  HF_TRY(read_bound(b, "offset_val", &limit->has_offset, limit));
  if (!limit->has_limit) {
    limit->limit = 0;
  }
  if (!limit->has_offset) {
    limit->offset = 0;
  }
  return pass_child(b);
}

/* ------------------------------------------------------- several children */

/* A UNION of one child, which is left when the others are empty: it passes rows on, or makes them distinct. */
static hf_status become_single(tree_building *b) {
  if (b->node->all) {
    b->node->kind = TREE_FILTER;
    return HF_OK;
  }
  json_reader *r = b->v->reader;
  const tree_expression **targets = arena_array(r->a, b->node->n_columns, sizeof(tree_expression *));
  if (targets == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < b->node->n_columns; i++) {
    targets[i] = tree_new_ref(r->a, i, b->node->types[i]);
    if (targets[i] == NULL) {
      return json_read_no_memory(r);
    }
  }
  b->node->kind = TREE_DISTINCT;
  b->node->expressions = targets;
  b->node->n_expressions = b->node->n_columns;
  return HF_OK;
}

static hf_status read_set_operation(tree_building *b) {
  static const char *const ignored[] = {"allow_out_of_order"};
  uint64_t n = 0;
  HF_TRY(json_read_size(b->v, "column_count", &n));
  HF_TRY(json_read_bool(b->v, "setop_all", &b->node->all));
  json_read_ignore(b->v, ignored, 1);
  const tree_node *first = b->children[0].node;
  for (size_t i = 0; i < b->n_children; i++) {
    const tree_node *child = b->children[i].node;
    if (child->n_columns != n) {
      return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node,
                              "children of %zu and %llu columns", child->n_columns, (unsigned long long)n);
    }
    for (size_t c = 0; c < child->n_columns; c++) {
      if (!data_type_equal(child->types[c], first->types[c])) {
        return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "children of other types");
      }
    }
  }
  HF_TRY(add_table(b, "table_index", first->types, first->n_columns));
  return b->n_children > 1 ? HF_OK : become_single(b);
}

static hf_status read_cte(tree_building *b) {
  static const char *const ignored[] = {"column_count", "ctename", "materialize"};
  json_read_ignore(b->v, ignored, 3);
  HF_TRY(json_read_size(b->v, "table_index", &b->node->number));
  HF_TRY(tree_set_columns(b, b->children[1].node->n_columns));
  pass_all(b, 1);
  return HF_OK;
}

static hf_status read_recursive_cte(tree_building *b) {
  static const char *const ignored[] = {"column_count", "ctename"};
  bool ref_recurring = false;
  struct json_object *keys = NULL;
  size_t n_keys = 0;
  json_read_ignore(b->v, ignored, 2);
  HF_TRY(json_read_bool(b->v, "union_all", &b->node->all));
  HF_TRY(json_read_bool(b->v, "ref_recurring", &ref_recurring));
  HF_TRY(json_read_array(b->v, "key_targets", &keys, &n_keys));
  if (ref_recurring || n_keys > 0) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_VALUE, b->v->node, "USING KEY");
  }
  const tree_node *first = b->children[0].node;
  HF_TRY(add_table(b, "table_index", first->types, first->n_columns));
  b->node->number = b->node->n_columns > 0 ? b->bindings[0].table : 0;
  return HF_OK;
}

/* ------------------------------------------------------------------- nodes */

static const struct kind_row {
  const char *json;
  tree_kind kind;
  size_t least, most; /* children */
  hf_status (*read)(tree_building *b);
} kind_rows[] = {
    {"LOGICAL_GET", TREE_GET, 0, 1, read_get},
    {"LOGICAL_EXPRESSION_GET", TREE_VALUES, 1, 1, read_expression_get},
    {"LOGICAL_CHUNK_GET", TREE_VALUES, 0, 0, read_chunk_get},
    {"LOGICAL_DUMMY_SCAN", TREE_DUMMY, 0, 0, read_dummy},
    {"LOGICAL_EMPTY_RESULT", TREE_EMPTY, 0, 0, read_empty},
    {"LOGICAL_FILTER", TREE_FILTER, 1, 1, read_filter},
    {"LOGICAL_PROJECTION", TREE_PROJECTION, 1, 1, read_projection},
    {"LOGICAL_PIVOT", TREE_PROJECTION, 1, 1, tree_read_pivot},
    {"LOGICAL_AGGREGATE_AND_GROUP_BY", TREE_AGGREGATE, 1, 1, read_aggregate},
    {"LOGICAL_WINDOW", TREE_WINDOW, 1, 1, read_window},
    {"LOGICAL_UNNEST", TREE_UNNEST, 1, 1, read_unnest},
    {"LOGICAL_DISTINCT", TREE_DISTINCT, 1, 1, read_distinct},
    {"LOGICAL_ORDER_BY", TREE_ORDER, 1, 1, read_order},
    {"LOGICAL_TOP_N", TREE_TOP_N, 1, 1, read_top_n},
    {"LOGICAL_LIMIT", TREE_LIMIT, 1, 1, read_limit},
    {"LOGICAL_SAMPLE", TREE_SAMPLE, 1, 1, tree_read_sample},
    {"LOGICAL_COMPARISON_JOIN", TREE_JOIN, 2, 2, tree_read_join},
    {"LOGICAL_ASOF_JOIN", TREE_ASOF_JOIN, 2, 2, tree_read_join},
    {"LOGICAL_DELIM_JOIN", TREE_DELIM_JOIN, 2, 2, tree_read_join},
    {"LOGICAL_ANY_JOIN", TREE_ANY_JOIN, 2, 2, tree_read_any_join},
    {"LOGICAL_DELIM_GET", TREE_DELIM_GET, 0, 0, read_delim_get},
    {"LOGICAL_CROSS_PRODUCT", TREE_CROSS_PRODUCT, 2, 2, tree_read_product},
    {"LOGICAL_POSITIONAL_JOIN", TREE_POSITIONAL_JOIN, 2, 2, tree_read_product},
    {"LOGICAL_UNION", TREE_UNION, 1, SIZE_MAX, read_set_operation},
    {"LOGICAL_EXCEPT", TREE_EXCEPT, 2, 2, read_set_operation},
    {"LOGICAL_INTERSECT", TREE_INTERSECT, 2, 2, read_set_operation},
    {"LOGICAL_MATERIALIZED_CTE", TREE_CTE, 2, 2, read_cte},
    {"LOGICAL_CTE_REF", TREE_CTE_REF, 0, 0, read_cte_ref},
    {"LOGICAL_RECURSIVE_CTE", TREE_RECURSIVE_CTE, 2, 2, read_recursive_cte},
};

static const struct kind_row *find_kind(const char *json) {
  for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
    if (strcmp(kind_rows[i].json, json) == 0) {
      return &kind_rows[i];
    }
  }
  return NULL;
}

static hf_status read_node(json_reader *r, struct json_object *object, tree_placed *out);

static hf_status read_children(tree_building *b, struct json_object *array) {
  json_reader *r = b->v->reader;
  const tree_node **nodes = arena_array(r->a, b->n_children, sizeof(tree_node *));
  b->children = arena_array(r->a, b->n_children, sizeof *b->children);
  if (nodes == NULL || b->children == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < b->n_children; i++) {
    HF_TRY(read_node(r, json_object_array_get_idx(array, i), &b->children[i]));
    nodes[i] = b->children[i].node;
  }
  b->node->children = nodes;
  b->node->n_children = b->n_children;
  return HF_OK;
}

static hf_status read_node(json_reader *r, struct json_object *object, tree_placed *out) {
  json_view v;
  const char *type = NULL;
  struct json_object *array = NULL;
  HF_TRY(json_read_open(r, object, "OPERATOR", &v));
  HF_TRY(json_read_text(&v, "type", &type));
  const struct kind_row *row = find_kind(type);
  if (row == NULL) {
    return json_read_refuse(r, TREE_REFUSED_OPERATOR, "OPERATOR", "%.100s", type);
  }
  v.node = row->json;
  tree_building b = {.v = &v, .node = arena_alloc(r->a, sizeof(tree_node))};
  if (b.node == NULL) {
    return json_read_no_memory(r);
  }
  b.node->kind = row->kind;
  HF_TRY(json_read_array(&v, "children", &array, &b.n_children));
  if (b.n_children < row->least || b.n_children > row->most) {
    return json_read_refuse(r, TREE_REFUSED_SHAPE, row->json, "%zu children", b.n_children);
  }
  HF_TRY(json_read_descend(r, row->json));
  HF_TRY(read_children(&b, array));
  HF_TRY(row->read(&b));
  json_read_ascend(r);
  *out = (tree_placed){b.node, b.bindings};
  return json_read_close(&v);
}

/* -------------------------------------------------------------------- door */

static hf_status read_answer(json_reader *r, struct json_object *root, const tree_node **out) {
  json_view v;
  bool failed = true;
  struct json_object *plans = NULL;
  size_t n = 0;
  HF_TRY(json_read_open(r, root, "PLAN", &v));
  HF_TRY(json_read_bool(&v, "error", &failed));
  if (failed) {
    struct json_object *message = json_read_take(&v, "error_message");
    return json_read_refuse(r, TREE_REFUSED_SERIALISE, "PLAN", "%.250s",
                            message == NULL ? "" : json_object_get_string(message));
  }
  HF_TRY(json_read_array(&v, "plans", &plans, &n));
  if (n != 1) {
    return json_read_refuse(r, TREE_REFUSED_STATEMENTS, "PLAN", "%zu plans", n);
  }
  tree_placed placed = {NULL, NULL};
  HF_TRY(read_node(r, json_object_array_get_idx(plans, 0), &placed));
  HF_TRY(json_read_close(&v));
  HF_TRY(tree_check(r, placed.node));
  *out = placed.node;
  return HF_OK;
}

/* Levels of JSON: an operator or expression costs two, a type inside them more. */
enum { DEEPEST_JSON = 10000 };

hf_status plan_tree_read(const char *json, size_t length, arena *a, const tree_node **out,
                         tree_refusal *refusal, hf_error *error) {
  json_reader r = {.a = a, .refusal = refusal, .error = error};
  hf_status status = HF_E_UNSUPPORTED;
  struct json_object *root = NULL;
  *out = NULL;
  *refusal = (tree_refusal){TREE_REFUSED_NONE, NULL, NULL};
  struct json_tokener *tokener = json_tokener_new_ex(DEEPEST_JSON);
  if (tokener == NULL) {
    return json_read_no_memory(&r);
  }
  if (json == NULL || length == 0 || length > INT32_MAX) {
    status = json_read_refuse(&r, TREE_REFUSED_UNREADABLE, "PLAN", "an answer of %zu bytes",
                              json == NULL ? 0 : length);
    goto done;
  }
  root = json_tokener_parse_ex(tokener, json, (int)length);
  enum json_tokener_error failure = json_tokener_get_error(tokener);
  if (root == NULL || failure != json_tokener_success) {
    status = json_read_refuse(&r, TREE_REFUSED_UNREADABLE, "PLAN", "no JSON: %s",
                              json_tokener_error_desc(failure));
    goto done;
  }
  status = read_answer(&r, root, out);
done:
  json_object_put(root);
  json_tokener_free(tokener);
  return refusal->code != TREE_REFUSED_NONE && status == HF_E_UNSUPPORTED ? HF_OK : status;
}

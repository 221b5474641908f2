/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of plan JSON: conditions, maps, marks and duplicate-eliminated columns. */
#include "tree/tree_internal.h"

static const char *const type_names[] = {
#define TREE_JOIN_TYPE(id, json) json,
#include "tree/tree.def"
};
static const char *const comparison_sql[] = {
#define TREE_COMPARE(id, json, sql) sql,
#include "tree/tree.def"
};

const char *tree_join_type_name(tree_join_type type) {
  return type_names[type];
}

const char *tree_comparison_sql(tree_comparison comparison) {
  return comparison_sql[comparison];
}

static bool emits_left(tree_join_type type) {
  return type != JOIN_RIGHT_SEMI && type != JOIN_RIGHT_ANTI;
}

static bool emits_right(tree_join_type type) {
  return type != JOIN_SEMI && type != JOIN_ANTI && type != JOIN_MARK;
}

/* A side's map; an empty one means all columns. */
static hf_status read_map(tree_building *b, size_t side, const size_t **out, size_t *n) {
  static const char *const keys[] = {"left_projection_map", "right_projection_map"};
  size_t n_columns = b->children[side].node->n_columns;
  HF_TRY(json_read_indexes(b->v, keys[side], n_columns, out, n));
  if (*n > 0) {
    return HF_OK;
  }
  size_t *all = arena_array(b->v->reader->a, n_columns, sizeof *all);
  if (all == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  for (size_t i = 0; i < n_columns; i++) {
    all[i] = i;
  }
  *out = all;
  *n = n_columns;
  return HF_OK;
}

/* Reads type and maps and fills the columns that get out. */
static hf_status read_head(tree_building *b, tree_join **out) {
  unsigned type = 0;
  uint64_t mark = 0;
  tree_join *j = arena_alloc(b->v->reader->a, sizeof *j);
  if (j == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  HF_TRY(json_read_enum(b->v, "join_type", type_names, JOIN_TYPE_COUNT, &type));
  HF_TRY(json_read_size(b->v, "mark_index", &mark));
  j->type = (tree_join_type)type;
  HF_TRY(read_map(b, 0, &j->left, &j->n_left));
  HF_TRY(read_map(b, 1, &j->right, &j->n_right));
  HF_TRY(tree_set_columns(b, j->n_left + j->n_right + 1));
  for (size_t i = 0; emits_left(j->type) && i < j->n_left; i++) {
    tree_pass_column(b, 0, j->left[i]);
  }
  for (size_t i = 0; emits_right(j->type) && i < j->n_right; i++) {
    tree_pass_column(b, 1, j->right[i]);
  }
  if (j->type == JOIN_MARK) {
    tree_add_column(b, &tree_type_boolean, mark, 0);
  }
  b->node->join = j;
  *out = j;
  return HF_OK;
}

static hf_status read_condition(json_reader *r, struct json_object *object, tree_building *b,
                                tree_condition *out) {
  json_view v;
  tree_space left = tree_space_of(&b->children[0]), right = tree_space_of(&b->children[1]);
  HF_TRY(json_read_open(r, object, b->v->node, &v));
  HF_TRY(tree_read_expression(r, json_read_take(&v, "left"), &left, &out->left));
  HF_TRY(tree_read_expression(r, json_read_take(&v, "right"), &right, &out->right));
  HF_TRY(tree_read_comparison(&v, "comparison", &out->comparison));
  return json_read_close(&v);
}

/* The condition's references name the mapped left columns, then the mapped right ones (SEMI, ANTI: all right ones). */
static hf_status both_sides(tree_building *b, const tree_join *j, tree_space *out) {
  const tree_placed *left = &b->children[0], *right = &b->children[1];
  bool all_right = !emits_right(j->type);
  size_t n_right = all_right ? right->node->n_columns : j->n_right;
  const data_type **types = arena_array(b->v->reader->a, j->n_left + n_right, sizeof(data_type *));
  tree_binding *bindings = arena_array(b->v->reader->a, j->n_left + n_right, sizeof *bindings);
  if (types == NULL || bindings == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  for (size_t i = 0; i < j->n_left; i++) {
    types[i] = left->node->types[j->left[i]];
    bindings[i] = left->bindings[j->left[i]];
  }
  for (size_t i = 0; i < n_right; i++) {
    size_t from = all_right ? i : j->right[i];
    types[j->n_left + i] = right->node->types[from];
    bindings[j->n_left + i] = right->bindings[from];
  }
  *out = (tree_space){j->n_left + n_right, types, bindings};
  return HF_OK;
}

/* What an ASOF join asks beside its comparisons: of both sides, for each row before the nearest is chosen. */
static hf_status read_predicate(tree_building *b, tree_join *j) {
  tree_space space;
  struct json_object *predicate = json_read_take(b->v, "predicate");
  if (predicate == NULL) {
    return HF_OK;
  }
  if (b->node->kind != TREE_ASOF_JOIN || j->type > JOIN_ANTI) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "a further predicate");
  }
  HF_TRY(both_sides(b, j, &space));
  return tree_read_expression(b->v->reader, predicate, &space, &j->condition);
}

hf_status tree_read_join(tree_building *b) {
  tree_join *j = NULL;
  json_reader *r = b->v->reader;
  struct json_object *conditions = NULL;
  const data_type *const *mark_types = NULL;
  bool flipped = false;
  HF_TRY(read_head(b, &j));
  HF_TRY(json_read_array(b->v, "conditions", &conditions, &j->n_conditions));
  tree_condition *list = arena_array(r->a, j->n_conditions, sizeof *list);
  if (list == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < j->n_conditions; i++) {
    HF_TRY(read_condition(r, json_object_array_get_idx(conditions, i), b, &list[i]));
  }
  j->conditions = list;
  HF_TRY(tree_read_types(b->v, "mark_types", &mark_types, &j->n_mark_types));
  HF_TRY(json_read_bool(b->v, "delim_flipped", &flipped));
  j->delim_side = flipped ? 1 : 0;
  tree_space delim = tree_space_of(&b->children[j->delim_side]);
  HF_TRY(tree_read_expressions(b->v, "duplicate_eliminated_columns", &delim, &j->keys, &j->n_keys));
  HF_TRY(read_predicate(b, j));
  if (j->n_conditions == 0 || (j->n_keys > 0 && b->node->kind != TREE_DELIM_JOIN)) {
    return json_read_refuse(r, TREE_REFUSED_SHAPE, b->v->node,
                            "%zu conditions, %zu duplicate-eliminated columns", j->n_conditions, j->n_keys);
  }
  return HF_OK;
}

hf_status tree_read_any_join(tree_building *b) {
  tree_join *j = NULL;
  tree_space space;
  HF_TRY(read_head(b, &j));
  if (j->type > JOIN_ANTI) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_SHAPE, b->v->node, "join type %s",
                            type_names[j->type]);
  }
  HF_TRY(both_sides(b, j, &space));
  return tree_read_expression(b->v->reader, json_read_take(b->v, "condition"), &space, &j->condition);
}

hf_status tree_read_product(tree_building *b) {
  HF_TRY(tree_set_columns(b, b->children[0].node->n_columns + b->children[1].node->n_columns));
  for (size_t side = 0; side < 2; side++) {
    for (size_t i = 0; i < b->children[side].node->n_columns; i++) {
      tree_pass_column(b, side, i);
    }
  }
  return HF_OK;
}

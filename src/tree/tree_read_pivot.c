/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pivot operator, which DuckDB takes for more values than pivot_filter_threshold:
 * its child has groups, a list for each aggregate, and the list of names that
 * belong to their elements. It is read as a projection that looks names up.
 */
#include "tree/tree_internal.h"

#include <string.h>

/* A pivot that is being read. */
typedef struct pivoting {
  tree_building *b;
  size_t n_groups, n_aggregates;
  const data_type *const *types; /* of the columns that get out */
  const char *const *values;     /* of those behind the groups */
  struct json_object *aggregates;
} pivoting;

static const data_type type_integer = {.kind = TYPE_INTEGER};
static const data_type type_varchar = {.kind = TYPE_VARCHAR};

static hf_status refuse(const pivoting *p, const char *what) {
  return json_read_refuse(p->b->v->reader, TREE_REFUSED_SHAPE, p->b->v->node, "%.100s", what);
}

/* ----------------------------------------------------------------- aggregates */

typedef enum empty_value { EMPTY_UNKNOWN, EMPTY_NULL, EMPTY_ZERO } empty_value;

/* What an aggregate of no rows is. */
static empty_value empty_of(const char *name) {
  static const char *const zeros[] = {"count", "count_star"};
  static const char *const nulls[] = {"any_value",  "arg_max", "arg_min",        "array_agg",     "avg",
                                      "bit_and",    "bit_or",  "bit_xor",        "bool_and",      "bool_or",
                                      "first",      "last",    "list",           "max",           "mean",
                                      "median",     "min",     "quantile_cont",  "quantile_disc", "stddev",
                                      "string_agg", "sum",     "sum_no_overflow"};
  for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
    if (strcmp(zeros[i], name) == 0) {
      return EMPTY_ZERO;
    }
  }
  for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
    if (strcmp(nulls[i], name) == 0) {
      return EMPTY_NULL;
    }
  }
  return EMPTY_UNKNOWN;
}

static empty_value empty_at(const pivoting *p, size_t aggregate) {
  struct json_object *name = NULL, *object = json_object_array_get_idx(p->aggregates, aggregate);
  bool is_named = json_object_is_type(object, json_type_object) &&
                  json_object_object_get_ex(object, "name", &name) &&
                  json_object_is_type(name, json_type_string);
  return is_named ? empty_of(json_object_get_string(name)) : EMPTY_UNKNOWN;
}

/* ---------------------------------------------------------------- expressions */

static tree_expression *new_expression(arena *a, tree_expression_kind kind, const data_type *type, size_t n,
                                       const tree_expression *const *from) {
  tree_expression *e = arena_alloc(a, sizeof *e);
  const tree_expression **children = arena_array(a, n, sizeof(tree_expression *));
  bool is_complete = e != NULL && children != NULL;
  for (size_t i = 0; is_complete && i < n; i++) {
    children[i] = from[i];
    is_complete = from[i] != NULL;
  }
  if (!is_complete) {
    return NULL;
  }
  *e = (tree_expression){.kind = kind, .type = type, .n_children = n, .children = children};
  return e;
}

static const tree_expression *new_call(arena *a, const char *name, const data_type *type,
                                       const tree_expression *first, const tree_expression *second) {
  const tree_expression *const both[] = {first, second};
  tree_expression *e = new_expression(a, EXPRESSION_FUNCTION, type, 2, both);
  tree_call *call = arena_alloc(a, sizeof *call);
  if (e == NULL || call == NULL) {
    return NULL;
  }
  call->name = name;
  e->call = call;
  return e;
}

static const tree_expression *new_text(arena *a, const char *text) {
  tree_value *value = arena_alloc(a, sizeof *value);
  if (value == NULL) {
    return NULL;
  }
  *value = (tree_value){.type = &type_varchar, .text = text, .length = strlen(text)};
  return tree_new_constant(a, value);
}

/* CASE WHEN place IS NULL THEN 0 ELSE found END */
static const tree_expression *or_zero(arena *a, const tree_expression *place, const tree_expression *found) {
  const data_type *type = found == NULL ? NULL : found->type;
  tree_value *zero = arena_alloc(a, sizeof *zero);
  tree_expression *is_null = new_expression(a, EXPRESSION_OPERATOR, &tree_type_boolean, 1, &place);
  if (zero == NULL || is_null == NULL || found == NULL) {
    return NULL;
  }
  zero->type = type;
  is_null->operator= OPERATOR_IS_NULL;
  const tree_expression *const parts[] = {is_null, tree_new_constant(a, zero), found};
  return new_expression(a, EXPRESSION_CASE, type, 3, parts);
}

/* The column of a value: the element of the aggregate's list at the place of the value in the list of names. */
static hf_status add_value(const pivoting *p, size_t at, const tree_expression **out) {
  arena *a = p->b->v->reader->a;
  const tree_node *child = p->b->children[0].node;
  size_t list = p->n_groups + at % p->n_aggregates, names = p->n_groups + p->n_aggregates;
  const data_type *type = p->types[p->n_groups + at];
  empty_value empty = empty_at(p, at % p->n_aggregates);
  if (empty == EMPTY_UNKNOWN) {
    return refuse(p, "an aggregate of no rows that is not known");
  }
  if (child->types[list]->kind != TYPE_LIST || !data_type_equal(child->types[list]->children[0], type) ||
      (empty == EMPTY_ZERO && type->kind != TYPE_BIGINT)) {
    return refuse(p, "lists of other types");
  }
  const tree_expression *place =
      new_call(a, "list_position", &type_integer, tree_new_ref(a, names, child->types[names]),
               new_text(a, p->values[at]));
  const tree_expression *found =
      new_call(a, "list_extract", type, tree_new_ref(a, list, child->types[list]), place);
  *out = empty == EMPTY_ZERO ? or_zero(a, place, found) : found;
  return *out == NULL ? json_read_no_memory(p->b->v->reader) : HF_OK;
}

/* ----------------------------------------------------------------------- door */

static hf_status check_shape(const pivoting *p, size_t n_types, size_t n_values) {
  const tree_node *child = p->b->children[0].node;
  size_t last = p->n_groups + p->n_aggregates;
  bool is_known = p->n_aggregates > 0 && n_values % p->n_aggregates == 0 &&
                  n_types == p->n_groups + n_values && child->n_columns == last + 1 &&
                  child->types[last]->kind == TYPE_LIST &&
                  child->types[last]->children[0]->kind == TYPE_VARCHAR;
  for (size_t i = 0; is_known && i < n_values; i++) {
    is_known = strcmp(p->values[i], p->values[i - i % p->n_aggregates]) == 0;
  }
  for (size_t i = 0; is_known && i < p->n_groups; i++) {
    is_known = data_type_equal(child->types[i], p->types[i]);
  }
  return is_known ? HF_OK : refuse(p, "a pivot of an unknown shape");
}

hf_status tree_read_pivot(tree_building *b) {
  pivoting p = {.b = b};
  json_view pivot;
  uint64_t table = 0, n_groups = 0;
  size_t n_types = 0, n_values = 0;
  json_reader *r = b->v->reader;
  HF_TRY(json_read_size(b->v, "pivot_index", &table));
  HF_TRY(json_read_open(r, json_read_take(b->v, "bound_pivot"), b->v->node, &pivot));
  HF_TRY(json_read_size(&pivot, "group_count", &n_groups));
  HF_TRY(tree_read_types(&pivot, "types", &p.types, &n_types));
  HF_TRY(json_read_texts(&pivot, "pivot_values", &p.values, &n_values));
  HF_TRY(json_read_array(&pivot, "aggregates", &p.aggregates, &p.n_aggregates));
  HF_TRY(json_read_close(&pivot));
  p.n_groups = (size_t)n_groups;
  HF_TRY(check_shape(&p, n_types, n_values));
  b->list = arena_array(r->a, n_types, sizeof(tree_expression *));
  if (b->list == NULL) {
    return json_read_no_memory(r);
  }
  HF_TRY(tree_set_columns(b, n_types));
  for (size_t i = 0; i < n_types; i++) {
    if (i >= p.n_groups) {
      HF_TRY(add_value(&p, i - p.n_groups, &b->list[i]));
    } else {
      b->list[i] = tree_new_ref(r->a, i, p.types[i]);
    }
    if (b->list[i] == NULL) {
      return json_read_no_memory(r);
    }
    tree_add_column(b, p.types[i], table, i);
  }
  b->node->expressions = b->list;
  b->node->n_expressions = n_types;
  return HF_OK;
}

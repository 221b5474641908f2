/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can only be checked from the root down: a CTE_REF names a CTE above it, a
 * DELIM_GET reads the keys of the nearest DELIM_JOIN that it lies below on the
 * side that is not duplicate-eliminated. Types must agree.
 */
#include "tree/tree_internal.h"

typedef struct scope {
  const struct scope *outer;
  uint64_t number;
  size_t n;
  const data_type *const *types;
} scope;

typedef struct checker {
  json_reader *reader;
  const scope *ctes;
  const tree_join *delim;
} checker;

static hf_status check_node(const checker *c, const tree_node *node);

static bool has_types(const tree_node *node, const data_type *const *types, size_t n) {
  if (node->n_columns != n) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (!data_type_equal(node->types[i], types[i])) {
      return false;
    }
  }
  return true;
}

static hf_status check_cte_ref(const checker *c, const tree_node *node) {
  for (const scope *s = c->ctes; s != NULL; s = s->outer) {
    if (s->number == node->number) {
      return has_types(node, s->types, s->n)
                 ? HF_OK
                 : json_read_refuse(c->reader, TREE_REFUSED_REFERENCE, tree_kind_name(node->kind),
                                    "other types than its CTE");
    }
  }
  return json_read_refuse(c->reader, TREE_REFUSED_REFERENCE, tree_kind_name(node->kind), "no such CTE");
}

static hf_status check_delim_get(const checker *c, const tree_node *node) {
  const char *name = tree_kind_name(node->kind);
  if (c->delim == NULL) {
    return json_read_refuse(c->reader, TREE_REFUSED_REFERENCE, name, "outside of a DELIM_JOIN");
  }
  bool is_equal = c->delim->n_keys == node->n_columns;
  for (size_t i = 0; is_equal && i < node->n_columns; i++) {
    is_equal = data_type_equal(node->types[i], c->delim->keys[i]->type);
  }
  return is_equal
             ? HF_OK
             : json_read_refuse(c->reader, TREE_REFUSED_REFERENCE, name, "other types than its DELIM_JOIN");
}

/* The second child sees the first as a CTE. */
static hf_status check_cte(const checker *c, const tree_node *node) {
  const tree_node *definition = node->children[0];
  HF_TRY(check_node(c, definition));
  scope own = {c->ctes, node->number, definition->n_columns, definition->types};
  checker inner = {c->reader, &own, c->delim};
  HF_TRY(check_node(&inner, node->children[1]));
  if (node->kind == TREE_RECURSIVE_CTE && !has_types(node->children[1], own.types, own.n)) {
    return json_read_refuse(c->reader, TREE_REFUSED_SHAPE, tree_kind_name(node->kind),
                            "branches of other types");
  }
  return HF_OK;
}

static hf_status check_delim_join(const checker *c, const tree_node *node) {
  size_t side = node->join->delim_side;
  checker inner = {c->reader, c->ctes, node->join};
  HF_TRY(check_node(c, node->children[side]));
  return check_node(&inner, node->children[1 - side]);
}

static hf_status check_node(const checker *c, const tree_node *node) {
  switch (node->kind) {
    case TREE_CTE_REF:
      return check_cte_ref(c, node);
    case TREE_DELIM_GET:
      return check_delim_get(c, node);
    case TREE_CTE:
    case TREE_RECURSIVE_CTE:
      return check_cte(c, node);
    case TREE_DELIM_JOIN:
      return check_delim_join(c, node);
    default:
      break;
  }
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(check_node(c, node->children[i]));
  }
  return HF_OK;
}

hf_status tree_check(json_reader *r, const tree_node *root) {
  checker c = {r, NULL, NULL};
  return check_node(&c, root);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTEs are stages that several read; a DELIM_JOIN is rewritten into two of them,
 * so that the rest of the cutter knows only CTEs.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

/* Numbers of our own CTEs; DuckDB's are small. */
#define FIRST_OWN_CTE (UINT64_C(1) << 48)

/* ------------------------------------------------------------- DELIM_JOIN */

typedef struct undelim {
  cutter *c;
  uint64_t keys; /* the CTE that DELIM_GETs here read; 0: none */
} undelim;

static hf_status rewrite(undelim u, const tree_node *node, const tree_node **out);

static hf_status make_ref(cutter *c, uint64_t number, const tree_node *like, const tree_node **out) {
  return cut_make_node(
      c,
      &(tree_node){
          .kind = TREE_CTE_REF, .n_columns = like->n_columns, .types = like->types, .number = number},
      out);
}

static hf_status make_cte(cutter *c, uint64_t number, const tree_node *definition, const tree_node *body,
                          const tree_node **out) {
  const tree_node **children = NULL;
  HF_TRY(cut_pointers(c, 2, &children));
  children[0] = definition;
  children[1] = body;
  return cut_make_node(c,
                       &(tree_node){.kind = TREE_CTE,
                                    .n_columns = body->n_columns,
                                    .types = body->types,
                                    .n_children = 2,
                                    .children = children,
                                    .number = number},
                       out);
}

/* The distinct keys of the rows: an aggregate of groups only, in which NULLs are equal. */
static hf_status make_keys(cutter *c, const tree_join *j, const tree_node *rows, const tree_node **out) {
  const tree_node **child = NULL;
  const data_type **types = NULL;
  tree_aggregate *g = NULL;
  HF_TRY(cut_pointers(c, 1, &child));
  HF_TRY(cut_pointers(c, j->n_keys, &types));
  HF_TRY(cut_array(c, 1, sizeof *g, &g));
  for (size_t i = 0; i < j->n_keys; i++) {
    types[i] = j->keys[i]->type;
  }
  *child = rows;
  *g = (tree_aggregate){.n_groups = j->n_keys, .groups = j->keys};
  return cut_make_node(c,
                       &(tree_node){.kind = TREE_AGGREGATE,
                                    .n_columns = j->n_keys,
                                    .types = types,
                                    .n_children = 1,
                                    .children = child,
                                    .aggregate = g},
                       out);
}

static hf_status rewrite_join(undelim u, const tree_node *node, const tree_node **out) {
  cutter *c = u.c;
  size_t side = node->join->delim_side;
  undelim inner = {c, c->next_cte + 1};
  uint64_t rows_number = c->next_cte;
  const tree_node *definition = NULL, *other = NULL, *rows = NULL, *keys = NULL, *again = NULL;
  const tree_node **children = NULL;
  c->next_cte += 2;
  HF_TRY(rewrite(u, node->children[side], &definition));
  HF_TRY(rewrite(inner, node->children[1 - side], &other));
  HF_TRY(make_ref(c, rows_number, definition, &rows));
  HF_TRY(make_ref(c, rows_number, definition, &again));
  HF_TRY(make_keys(c, node->join, again, &keys));
  HF_TRY(cut_pointers(c, 2, &children));
  children[side] = rows;
  children[1 - side] = other;
  tree_node join = *node;
  join.kind = TREE_JOIN;
  join.children = children;
  const tree_node *joined = NULL, *with_keys = NULL;
  HF_TRY(cut_make_node(c, &join, &joined));
  HF_TRY(make_cte(c, inner.keys, keys, joined, &with_keys));
  return make_cte(c, rows_number, definition, with_keys, out);
}

static hf_status rewrite(undelim u, const tree_node *node, const tree_node **out) {
  if (node->kind == TREE_DELIM_GET && u.keys != 0) {
    return make_ref(u.c, u.keys, node, out);
  }
  if (node->kind == TREE_DELIM_JOIN) {
    return rewrite_join(u, node, out);
  }
  const tree_node **children = NULL;
  HF_TRY(cut_pointers(u.c, node->n_children, &children));
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(rewrite(u, node->children[i], &children[i]));
  }
  tree_node copy = *node;
  copy.children = children;
  return cut_make_node(u.c, &copy, out);
}

hf_status cut_undelim(cutter *c, const tree_node *node, const tree_node **out) {
  c->next_cte = FIRST_OWN_CTE;
  return rewrite((undelim){c, 0}, node, out);
}

/* --------------------------------------------------------------------- CTEs */

const cut_cte *cut_cte_find(const cutter *c, uint64_t number) {
  for (const cut_cte *cte = c->ctes; cte != NULL; cte = cte->outer) {
    if (cte->number == number) {
      return cte;
    }
  }
  return NULL;
}

/* Bytes below which rows that many read are one task's at once. */
hf_status cut_cte_of(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  cut_cte own = {.outer = c->ctes, .number = node->number};
  bool ordered = order == ORDER_NEEDED || cut_relies_on_order(node->children[1]);
  HF_TRY(cut_node(c, node->children[0], ordered ? ORDER_NEEDED : ORDER_ANY, &own.part));
  own.part.what = cut_text(c, "%s (CTE)", own.part.what[0] == '\0' ? "rows" : own.part.what);
  own.part.needs_deals |= own.part.n_deals > 0; /* those who read it may */
  HF_TRY(cut_close(c, &own.part, NULL, ordered, &own.stage));
  own.part.rows = c->stages[own.stage].rows;
  c->ctes = &own;
  hf_status status = cut_node(c, node->children[1], order, out);
  c->ctes = own.outer;
  return status;
}

hf_status cut_cte_ref(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  const cut_cte *cte = cut_cte_find(c, node->number);
  if (cte == NULL) {
    return cut_whole(c, node, order, "a reference to a CTE that is not known", out);
  }
  *out = cte->part;
  out->what = "CTE";
  out->needs_deals = false;
  return cut_read(c, cte->stage, cte->part.is_one ? CUT_ALL : CUT_SPLIT, order == ORDER_NEEDED, node,
                  &out->node);
}

/* ---------------------------------------------------------------- recursion */

typedef struct scope_of {
  const struct scope_of *outer;
  uint64_t number;
} scope_of;

static bool is_inside(const scope_of *scope, uint64_t number) {
  while (scope != NULL && scope->number != number) {
    scope = scope->outer;
  }
  return scope != NULL;
}

/* Whether it reads only sources, and CTEs of its own or of outside: each step of the recursion gets the same rows. */
static bool is_free(const cutter *c, const tree_node *node, const scope_of *inside) {
  bool defines = node->kind == TREE_CTE || node->kind == TREE_RECURSIVE_CTE;
  const scope_of own = {inside, node->number};
  if (node->kind == TREE_CTE_REF) {
    return is_inside(inside, node->number) || cut_cte_find(c, node->number) != NULL;
  }
  for (size_t i = 0; i < node->n_children; i++) {
    if (!is_free(c, node->children[i], defines ? &own : inside)) {
      return false;
    }
  }
  return true;
}

static bool reads_source(const cutter *c, const tree_node *node) {
  bool reads =
      cut_source_of(c, node) != NULL || (node->kind == TREE_CTE_REF && cut_cte_find(c, node->number) != NULL);
  for (size_t i = 0; !reads && i < node->n_children; i++) {
    reads = reads_source(c, node->children[i]);
  }
  return reads;
}

/* What no step changes is cut and gathered; the rest is as it was. */
static hf_status cut_steps(cutter *c, const tree_node *node, bool ordered, const tree_node **out) {
  const tree_node **children = NULL;
  if (node->n_children == 0 || !reads_source(c, node)) {
    return cut_copy(c, node, ordered, out);
  }
  if (is_free(c, node, NULL) && !cut_is_unstable(node)) {
    cut_part part;
    HF_TRY(cut_node(c, node, ordered ? ORDER_NEEDED : ORDER_ANY, &part));
    HF_TRY(cut_gather(c, &part, ordered, ""));
    *out = part.node;
    return HF_OK;
  }
  HF_TRY(cut_pointers(c, node->n_children, &children));
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(cut_steps(c, node->children[i], ordered, &children[i]));
  }
  tree_node copy = *node;
  copy.children = children;
  return cut_make_node(c, &copy, out);
}

hf_status cut_recursive(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  *out = (cut_part){.is_one = true, .why = "a recursive CTE", .what = "recursion", .rows = 1e9, .base = 1e9};
  bool ordered = order != ORDER_ANY || cut_relies_on_order(node);
  const tree_node **children = NULL;
  HF_TRY(cut_pointers(c, node->n_children, &children));
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(cut_steps(c, node->children[i], ordered, &children[i]));
  }
  tree_node copy = *node;
  copy.children = children;
  return cut_make_node(c, &copy, &out->node);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Set operations and DISTINCT: equal rows come together by an exchange. */
#include "stage/cut_internal.h"

#include <string.h>

/* ---------------------------------------------------------------- DISTINCT */

static bool are_stable(const tree_node *node) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (cut_is_volatile(node->expressions[i])) {
      return false;
    }
  }
  return node->n_expressions > 0;
}

/* Targets that are all columns: which of the equal rows stays makes no difference. */
static bool is_plain(const tree_node *node) {
  for (size_t i = 0; i < node->n_columns; i++) {
    bool found = false;
    for (size_t k = 0; !found && k < node->n_expressions; k++) {
      found = node->expressions[k]->kind == EXPRESSION_REF && node->expressions[k]->ref == i;
    }
    if (!found) {
      return false;
    }
  }
  return node->n_orders == 0;
}

hf_status cut_distinct(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  bool ordered = !is_plain(node) || order == ORDER_NEEDED;
  HF_TRY(cut_node(c, node->children[0], ordered ? ORDER_NEEDED : ORDER_ANY, out));
  const cut_keys keys = {.n = node->n_expressions, .keys = node->expressions};
  cut_take_cheap(c, out);
  if (!out->is_one && !cut_is_together(out, &keys)) {
    if (!are_stable(node)) {
      HF_TRY(cut_gather(c, out, ordered, "DISTINCT on a value that differs each time"));
    } else {
      if (node->n_orders == 0) { /* each task drops its own */
        HF_TRY(cut_put(c, node, out, 1, &out->node));
        out->what = out->what[0] == '\0' ? "distinct" : cut_text(c, "%s, distinct", out->what);
      }
      HF_TRY(cut_exchange(c, out, &keys, ordered));
      cut_take_cheap(c, out);
    }
  }
  out->what = out->what[0] == '\0' ? "distinct" : cut_text(c, "%s, distinct", out->what);
  return cut_put(c, node, out, 1, &out->node);
}

/* ---------------------------------------------------------- set operations */

static hf_status cut_children(cutter *c, const tree_node *node, cut_order order, cut_part **out,
                              bool *all_one) {
  cut_part *parts = NULL;
  HF_TRY(cut_array(c, node->n_children, sizeof *parts, &parts));
  *all_one = true;
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(cut_node(c, node->children[i], order, &parts[i]));
    *all_one &= parts[i].is_one;
  }
  *out = parts;
  return HF_OK;
}

static hf_status put_all(cutter *c, const tree_node *node, const cut_part *parts, const char *what,
                         cut_part *out) {
  *out = (cut_part){.is_one = parts[0].is_one, .why = "", .what = what};
  for (size_t i = 0; i < node->n_children; i++) {
    out->rows += parts[i].rows;
    out->base += parts[i].base;
    out->needs_deals |= parts[i].needs_deals;
    out->why = cut_graver(out->why, parts[i].why);
  }
  return cut_put(c, node, parts, node->n_children, &out->node);
}

/* Hashes are equal only of equal types. */
static bool are_types_equal(const tree_node *node) {
  for (size_t i = 1; i < node->n_children; i++) {
    for (size_t k = 0; k < node->n_columns; k++) {
      if (!data_type_equal(node->children[0]->types[k], node->children[i]->types[k])) {
        return false;
      }
    }
  }
  return node->n_columns > 0;
}

static bool has_deal(const cut_part *part, uint32_t modulus, const cut_deal *deal) {
  for (size_t d = 0; part->modulus == modulus && d < part->n_deals; d++) {
    const cut_deal *own = &part->deals[d];
    if (own->n == deal->n && memcmp(own->columns, deal->columns, own->n * sizeof *own->columns) == 0) {
      return true;
    }
  }
  return false;
}

/* Rows are dealt as all branches are: their columns have the same types. */
static void keep_common_deals(const cut_part *parts, size_t n, cut_part *out) {
  for (size_t d = 0; d < parts[0].n_deals; d++) {
    bool is_common = true;
    for (size_t i = 1; is_common && i < n; i++) {
      is_common = has_deal(&parts[i], parts[0].modulus, &parts[0].deals[d]);
    }
    if (is_common) {
      out->deals[out->n_deals++] = parts[0].deals[d];
    }
  }
  out->modulus = parts[0].modulus;
}

/* Equal rows are equal in some of their columns: those by which a branch is dealt do for all, the largest one's first. */
static hf_status keys_of_branches(cutter *c, const cut_part *parts, size_t n, cut_keys *out) {
  const cut_part *best = NULL;
  const tree_expression **keys = NULL;
  for (size_t i = 0; i < n; i++) {
    bool has = !parts[i].is_one && parts[i].n_deals > 0;
    best = has && (best == NULL || cut_bytes(&parts[i]) > cut_bytes(best)) ? &parts[i] : best;
  }
  if (best == NULL) {
    HF_TRY(cut_refs(c, parts[0].node, &keys, 0));
    *out = (cut_keys){.n = parts[0].node->n_columns, .keys = keys};
    return HF_OK;
  }
  const cut_deal *deal = &best->deals[0];
  HF_TRY(cut_pointers(c, deal->n, &keys));
  for (size_t k = 0; k < deal->n; k++) {
    keys[k] = cut_ref(c, deal->columns[k], best->node->types[deal->columns[k]]);
  }
  *out = (cut_keys){.n = deal->n, .keys = keys, .modulus = best->modulus};
  return HF_OK;
}

/*
 * UNION ALL: each task has its share of every branch; one that is one task's is dealt first. Rows that are shown in order
 * come branch by branch: their stages are as parallel as before, and one task puts their few rows together.
 */
hf_status cut_union(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  cut_part *parts = NULL;
  cut_keys keys = {0};
  bool all_one = false;
  if (!node->all) {
    return cut_set_operation(c, node, order, out);
  }
  HF_TRY(cut_children(c, node, order, &parts, &all_one));
  HF_TRY(keys_of_branches(c, parts, node->n_children, &keys));
  for (size_t i = 0; !all_one && i < node->n_children; i++) {
    if (order == ORDER_NEEDED) {
      HF_TRY(cut_gather(c, &parts[i], true, cut_why_order));
    } else if (order == ORDER_SHOWN) {
      HF_TRY(cut_gather(c, &parts[i], true, ""));
    } else if (parts[i].is_one && are_types_equal(node)) {
      HF_TRY(cut_exchange(c, &parts[i], &keys, false));
    } else if (parts[i].is_one) {
      HF_TRY(cut_exchange_all(c, &parts[i]));
    }
  }
  HF_TRY(put_all(c, node, parts, "union", out));
  if (!out->is_one && are_types_equal(node)) {
    keep_common_deals(parts, node->n_children, out);
  }
  return HF_OK;
}

hf_status cut_set_operation(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  cut_part *parts = NULL;
  bool all_one = false;
  cut_keys keys = {0};
  (void)order;
  HF_TRY(cut_children(c, node, ORDER_ANY, &parts, &all_one));
  HF_TRY(keys_of_branches(c, parts, node->n_children, &keys));
  for (size_t i = 0; !all_one && i < node->n_children; i++) {
    if (are_types_equal(node)) {
      HF_TRY(cut_exchange(c, &parts[i], &keys, false));
    } else {
      HF_TRY(cut_gather(c, &parts[i], false, "a set operation over columns of different types"));
    }
  }
  HF_TRY(put_all(c, node, parts, "set operation", out));
  if (!out->is_one) {
    keep_common_deals(parts, node->n_children, out);
  }
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What works row by row stays in its stage; windows want the rows of a partition together. ORDER BY, LIMIT and both:
 * what is left over in each task, then once after a gather.
 */
#include "stage/cut_internal.h"

/* Columns of the child by which its rows are dealt, as columns of the node. */
static hf_status keep_keys(cutter *c, const tree_node *node, cut_part *part) {
  size_t *keys = NULL, n = part->n_keys;
  HF_TRY(cut_array(c, n, sizeof *keys, &keys));
  for (size_t k = 0; k < n; k++) {
    bool found = false;
    for (size_t i = 0; !found && i < node->n_columns; i++) {
      bool is_projection = node->kind == TREE_PROJECTION;
      found = is_projection
                  ? node->expressions[i]->kind == EXPRESSION_REF && node->expressions[i]->ref == part->keys[k]
                  : (node->n_map > 0 ? node->map[i] : i) == part->keys[k];
      keys[k] = i;
    }
    if (!found) {
      part->n_keys = 0;
      return HF_OK;
    }
  }
  part->keys = keys;
  return HF_OK;
}

static hf_status put_over(cutter *c, const tree_node *node, cut_part *part) {
  HF_TRY(keep_keys(c, node, part));
  return cut_put(c, node, part, 1, &part->node);
}

hf_status cut_filter(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  HF_TRY(cut_node(c, node->children[0], order, out));
  return put_over(c, node, out);
}

/* Columns more or less: the width changes with them. */
hf_status cut_projection(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  HF_TRY(cut_node(c, node->children[0], order, out));
  size_t before = node->children[0]->n_columns;
  if (node->n_columns < before) {
    out->bytes *= (double)(node->n_columns + 1) / (double)(before + 1);
  }
  return put_over(c, node, out);
}

/* ----------------------------------------------------------------- windows */

static bool has_partition(const tree_window *window, const tree_expression *key) {
  for (size_t i = 0; i < window->n_partitions; i++) {
    if (cut_same(window->partitions[i], key)) {
      return true;
    }
  }
  return false;
}

/* PARTITION BY keys that all expressions have. */
static hf_status common_keys(cutter *c, const tree_node *node, cut_keys *out) {
  const tree_window *first = node->expressions[0]->window;
  const tree_expression **keys = NULL;
  HF_TRY(cut_pointers(c, first->n_partitions, &keys));
  *out = (cut_keys){0, keys};
  for (size_t k = 0; k < first->n_partitions; k++) {
    bool is_common = !cut_is_volatile(first->partitions[k]);
    for (size_t i = 1; is_common && i < node->n_expressions; i++) {
      is_common = has_partition(node->expressions[i]->window, first->partitions[k]);
    }
    if (is_common) {
      keys[out->n++] = first->partitions[k];
    }
  }
  return HF_OK;
}

/* Rows that are dealt by some of the keys are together already. */
static bool are_together(const cut_part *part, const cut_keys *keys) {
  for (size_t k = 0; k < part->n_keys; k++) {
    bool found = false;
    for (size_t i = 0; !found && i < keys->n; i++) {
      found = keys->keys[i]->kind == EXPRESSION_REF && keys->keys[i]->ref == part->keys[k];
    }
    if (!found) {
      return false;
    }
  }
  return !part->is_one && part->n_keys > 0;
}

static bool is_unordered(const tree_node *node) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (cut_window_is_ordered(node->expressions[i])) {
      return true;
    }
  }
  return false;
}

hf_status cut_window(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  cut_keys keys;
  bool is_ordered = is_unordered(node) || order == ORDER_NEEDED;
  HF_TRY(cut_node(c, node->children[0], is_ordered ? ORDER_NEEDED : ORDER_ANY, out));
  HF_TRY(common_keys(c, node, &keys));
  if (!out->is_one && keys.n == 0) {
    HF_TRY(cut_gather(c, out, is_ordered, "window functions without a common PARTITION BY"));
  } else if (!out->is_one && !are_together(out, &keys)) {
    HF_TRY(cut_exchange(c, out, &keys, is_ordered));
  }
  out->what = out->what[0] == '\0' ? "window" : cut_text(c, "%s, window", out->what);
  return cut_put(c, node, out, 1, &out->node);
}

/* ----------------------------------------------------------- order and limit */

/* Each task keeps no more rows than the answer can have. */
static hf_status add_hint(cutter *c, const tree_node *node, cut_part *part) {
  tree_limit *limit = NULL;
  HF_TRY(cut_array(c, 1, sizeof *limit, &limit));
  limit->has_limit = true;
  limit->limit = node->limit->limit + node->limit->offset;
  tree_node hint = *node;
  hint.limit = limit;
  if (node->kind == TREE_TOP_N && node->n_map > 0) { /* the final one picks the columns */
    hint.n_map = 0;
    hint.map = NULL;
    hint.n_columns = node->children[0]->n_columns;
    hint.types = node->children[0]->types;
  }
  HF_TRY(cut_put(c, &hint, part, 1, &part->node));
  part->what = cut_text(c, "%s, %s of each task", part->what, node->kind == TREE_TOP_N ? "top" : "limit");
  return HF_OK;
}

static bool can_hint(const tree_limit *limit) {
  return limit->has_limit && !limit->limit_is_percent && limit->limit_expression == NULL &&
         limit->offset_expression == NULL && limit->limit <= UINT64_MAX - limit->offset;
}

static hf_status put_limit(cutter *c, const tree_node *node, bool ordered, const char *what, cut_part *part) {
  const tree_limit *limit = node->limit;
  if (!part->is_one) {
    if (can_hint(limit)) {
      HF_TRY(add_hint(c, node, part));
    }
    HF_TRY(cut_gather(c, part, ordered, ""));
  }
  if (can_hint(limit) && part->rows > (double)limit->limit) {
    part->bytes *= (double)(limit->limit + 1) / (part->rows + 1);
    part->rows = (double)limit->limit;
  }
  part->what = cut_text(c, "%s, %s", part->what, what);
  return cut_put(c, node, part, 1, &part->node);
}

hf_status cut_limit(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  (void)order;
  HF_TRY(cut_node(c, node->children[0], ORDER_NEEDED, out));
  return put_limit(c, node, true, "limit", out);
}

hf_status cut_top_n(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  (void)order;
  HF_TRY(cut_node(c, node->children[0], ORDER_ANY, out));
  return put_limit(c, node, false, "top", out);
}

hf_status cut_sort(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  (void)order;
  HF_TRY(cut_node(c, node->children[0], ORDER_ANY, out));
  HF_TRY(cut_gather(c, out, false, ""));
  out->what = cut_text(c, "%s, order", out->what);
  return cut_put(c, node, out, 1, &out->node);
}

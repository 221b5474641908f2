/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves: sources, functions that make rows, constant rows. What works row by row stays in its stage; windows want
 * the rows of a partition together. ORDER BY, LIMIT and both: what is left over in each task, then once after a gather.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

#include <string.h>

/* ------------------------------------------------------------------ leaves */

static bool is_source(const tree_node *node) {
  return node->kind == TREE_GET && node->n_children == 0 && strcmp(node->scan->function, "hf_scan") == 0 &&
         node->scan->n_parameters > 0 && node->scan->parameters[0].text != NULL;
}

const cut_source *cut_source_of(const cutter *c, const tree_node *node) {
  for (size_t i = 0; is_source(node) && i < c->options->n_sources; i++) {
    if (strcmp(c->options->sources[i].id, node->scan->parameters[0].text) == 0) {
      return &c->options->sources[i];
    }
  }
  return NULL;
}

hf_status cut_scan_leaf(cutter *c, const tree_node *node, cut_share share, bool ordered,
                        const tree_node **out) {
  if (!is_source(node)) {
    *out = node;
    return HF_OK;
  }
  return cut_read_source(c, node, &(cut_reading){.share = share, .ordered = ordered}, out);
}

/* Where a scan gives a column of its source, whole. */
static size_t column_scanned(const void *context, size_t at) {
  const tree_node *node = context;
  for (size_t i = 0; i < node->n_columns; i++) {
    const tree_scan_column *scanned = i < node->scan->n_scanned ? &node->scan->scanned[i] : NULL;
    if (scanned != NULL && scanned->kind == SCAN_COLUMN && scanned->n_path == 0 && scanned->column == at) {
      return i;
    }
  }
  return node->n_columns;
}

/* Of fewer partitions than half the tasks it is better read in as many splits as there are tasks. */
static hf_status take_deal(cutter *c, const tree_node *node, const cut_source *source, cut_part *out) {
  cut_part dealt = {.modulus = source->modulus, .n_deals = 1, .deals = {{source->n_keys, source->keys}}};
  if (source->n_keys == 0 || 2 * (uint64_t)source->modulus < c->options->tasks || c->options->hash_zero) {
    return HF_OK;
  }
  return cut_keep_deals(c, &dealt, column_scanned, node, node->n_columns, out);
}

static double share_passed(const tree_scan *scan) {
  double share = 1;
  for (size_t i = 0; i < scan->n_filters; i++) {
    share *= tree_share_passed(scan->filters[i].expression);
  }
  return share;
}

hf_status cut_scan(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  if (node->n_children > 0) {
    return cut_over(c, node, order, out);
  }
  const cut_source *source = cut_source_of(c, node);
  *out = (cut_part){.is_one = source == NULL || !source->can_split, .why = "", .what = "scan"};
  if (source == NULL) {
    out->why = is_source(node) ? "a source that is not known" : cut_text(c, "%.100s()", node->scan->function);
    out->rows = out->base = 1e9;
  } else {
    out->why = out->is_one ? "a source that cannot be split" : "";
    out->base = (double)source->rows;
    out->rows = out->base * share_passed(node->scan);
  }
  if (!out->is_one) {
    HF_TRY(take_deal(c, node, source, out));
  }
  return cut_scan_leaf(c, node, out->n_deals > 0 ? CUT_PARTITION : CUT_SPLIT,
                       order == ORDER_NEEDED || (order == ORDER_SHOWN && source != NULL && source->ordered),
                       &out->node);
}

hf_status cut_constant_rows(cutter *c, const tree_node *node, cut_part *out) {
  if (node->n_children > 0 && node->children[0]->kind != TREE_DUMMY) {
    return cut_in_one(c, node, ORDER_ANY, "rows of expressions over a child", out);
  }
  size_t width = node->n_columns == 0 ? 1 : node->n_columns;
  *out = (cut_part){.node = node, .is_one = true, .why = "", .what = "constant rows"};
  out->rows =
      node->kind == TREE_VALUES ? (double)node->n_expressions / (double)width : node->kind == TREE_DUMMY;
  out->base = out->rows;
  return HF_OK;
}

/* --------------------------------------------------------------- row by row */

/* Where a filter or projection gives a column of its child. */
static size_t column_of(const void *context, size_t at) {
  const tree_node *node = context;
  for (size_t i = 0; i < node->n_columns; i++) {
    bool is_it = node->kind == TREE_PROJECTION
                     ? node->expressions[i]->kind == EXPRESSION_REF && node->expressions[i]->ref == at
                     : (node->n_map > 0 ? node->map[i] : i) == at;
    if (is_it) {
      return i;
    }
  }
  return node->n_columns;
}

static hf_status put_over(cutter *c, const tree_node *node, cut_part *part) {
  const cut_part below = *part;
  part->n_deals = 0;
  HF_TRY(cut_keep_deals(c, &below, column_of, node, node->n_columns, part));
  return cut_put(c, node, part, 1, &part->node);
}

hf_status cut_filter(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  HF_TRY(cut_node(c, node->children[0], order, out));
  for (size_t i = 0; i < node->n_expressions; i++) {
    out->rows *= tree_share_passed(node->expressions[i]);
  }
  return put_over(c, node, out);
}

hf_status cut_projection(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  HF_TRY(cut_node(c, node->children[0], order, out));
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
  *out = (cut_keys){.keys = keys};
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

/* The node's column below its filters and projections, or SIZE_MAX: it is computed. */
static size_t column_below(const tree_node *node, size_t at) {
  if (node->kind == TREE_FILTER) {
    return node->n_map > 0 ? node->map[at] : at;
  }
  return node->expressions[at]->kind == EXPRESSION_REF ? node->expressions[at]->ref : SIZE_MAX;
}

/* Windows over an aggregation by more than their keys: its rows are dealt by these at once. */
static hf_status want_keys(cutter *c, const tree_node *node, const cut_keys *keys) {
  const tree_node *below = node->children[0];
  size_t *columns = NULL;
  bool are_groups = keys->n > 0;
  HF_TRY(cut_array(c, keys->n, sizeof *columns, &columns));
  for (size_t i = 0; are_groups && i < keys->n; i++) {
    are_groups = keys->keys[i]->kind == EXPRESSION_REF;
    columns[i] = keys->keys[i]->ref;
  }
  while (are_groups && (below->kind == TREE_FILTER || below->kind == TREE_PROJECTION)) {
    for (size_t i = 0; are_groups && i < keys->n; i++) {
      columns[i] = column_below(below, columns[i]);
      are_groups = columns[i] != SIZE_MAX;
    }
    below = below->children[0];
  }
  for (size_t i = 0; are_groups && i < keys->n; i++) {
    are_groups = below->kind == TREE_AGGREGATE && columns[i] < below->aggregate->n_groups;
  }
  if (are_groups) {
    c->wanted_of = below;
    c->n_wanted = keys->n;
    c->wanted = columns;
  }
  return HF_OK;
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
  HF_TRY(common_keys(c, node, &keys));
  HF_TRY(want_keys(c, node, &keys));
  HF_TRY(cut_node(c, node->children[0], is_ordered ? ORDER_NEEDED : ORDER_ANY, out));
  cut_take_cheap(c, out);
  if (!out->is_one && keys.n == 0) {
    HF_TRY(cut_gather(c, out, is_ordered, cut_why_window));
  } else if (!out->is_one && !cut_is_together(out, &keys)) {
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
  limit->limit = node->limit->limit + (FAULT("stage.limit_offset") ? 0 : node->limit->offset);
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
    part->rows = (double)limit->limit;
  }
  part->what = cut_text(c, "%s, %s", part->what, what);
  if (node->kind == TREE_LIMIT && FAULT("stage.limit_apart")) {
    return HF_OK;
  }
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

/* A share of the rows, each drawn by itself, is drawn in each task; a number of rows, or what a seed repeats, once. */
hf_status cut_sample(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  bool is_apart =
      node->sample->method != SAMPLE_RESERVOIR && node->sample->is_percent && !node->sample->has_seed;
  HF_TRY(cut_node(c, node->children[0], is_apart ? order : ORDER_NEEDED, out));
  if (!is_apart) {
    HF_TRY(cut_gather(c, out, true, cut_why_sample));
  }
  out->what = cut_text(c, "%s, sample", out->what);
  return cut_put(c, node, out, 1, &out->node);
}

hf_status cut_sort(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  (void)order;
  HF_TRY(cut_node(c, node->children[0], ORDER_ANY, out));
  HF_TRY(cut_gather(c, out, false, ""));
  out->what = cut_text(c, "%s, order", out->what);
  return cut_put(c, node, out, 1, &out->node);
}

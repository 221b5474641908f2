/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves: sources, functions that make rows, constant rows; and how large they are. */
#include "stage/cut_internal.h"

#include <string.h>

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
static size_t column_of(const void *context, size_t at) {
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
  return cut_keep_deals(c, &dealt, column_of, node, node->n_columns, out);
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

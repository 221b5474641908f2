/* SPDX-License-Identifier: Apache-2.0 */
/* ORDER BY, LIMIT and both: what is left over in each task, then once after a gather. */
#include "stage/cut_internal.h"

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

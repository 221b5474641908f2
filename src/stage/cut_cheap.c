/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gives the same rows when it is made again, by another stage or in every task;
 * and what is so little work that each task does it itself.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include <string.h>

/* What reads less than this part of what may be broadcast is computed by each task that needs it. */
static const double PARTS_OF_CHEAP = 16, FILE_BYTE = 4; /* which is more work than one of blocks */
static const double NOTHING_TO_SPREAD = 16384;          /* the table of a page or two of rows */

/* --------------------------------------------------------------- the same again */

bool cut_is_constant(const tree_node *node) {
  bool is_leaf = node->kind == TREE_VALUES || node->kind == TREE_DUMMY || node->kind == TREE_EMPTY;
  for (size_t i = 0; is_leaf && i < node->n_expressions; i++) {
    is_leaf = !cut_is_volatile(node->expressions[i]);
  }
  return is_leaf && node->n_children == 0;
}

static bool is_stable(const tree_node *node) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (cut_is_volatile(node->expressions[i])) {
      return false;
    }
  }
  for (size_t i = 0; node->kind == TREE_GET && i < node->scan->n_filters; i++) {
    if (cut_is_volatile(node->scan->filters[i].expression)) {
      return false;
    }
  }
  return true;
}

static bool are_conditions_stable(const tree_node *node) {
  const tree_join *j = node->join;
  for (size_t i = 0; i < j->n_conditions; i++) {
    if (cut_is_volatile(j->conditions[i].left) || cut_is_volatile(j->conditions[i].right)) {
      return false;
    }
  }
  return j->condition == NULL || !cut_is_volatile(j->condition);
}

static bool are_groups_stable(const tree_node *node) {
  for (size_t i = 0; i < node->aggregate->n_groups; i++) {
    if (cut_is_volatile(node->aggregate->groups[i])) {
      return false;
    }
  }
  return true;
}

bool cut_is_repeatable(const tree_node *node) {
  bool is_it = true;
  switch (node->kind) {
    case TREE_INPUT:
    case TREE_CROSS_PRODUCT:
      break;
    case TREE_GET:
    case TREE_FILTER:
    case TREE_PROJECTION:
      is_it = is_stable(node);
      break;
    case TREE_JOIN:
    case TREE_ANY_JOIN:
      is_it = are_conditions_stable(node);
      break;
    case TREE_AGGREGATE:
      is_it = is_stable(node) && are_groups_stable(node);
      break;
    default:
      is_it = cut_is_constant(node);
  }
  for (size_t i = 0; is_it && i < node->n_children; i++) {
    is_it = cut_is_repeatable(node->children[i]);
  }
  return is_it;
}

/* ------------------------------------------------------------------- cheap */

/* At most one row gets out. */
static bool is_one_row(const tree_node *node) {
  while (node->kind == TREE_PROJECTION) {
    node = node->children[0];
  }
  return node->kind == TREE_AGGREGATE && node->aggregate->n_groups == 0 && node->aggregate->n_sets <= 1;
}

/* Gives the same of the same rows in any order. The cutter's own have aggregates inside other expressions. */
static bool is_exact(const tree_node *node, const tree_expression *e) {
  static const char *const exact[] = {"count",    "count_star", "sum",     "min",    "max",
                                      "bool_and", "bool_or",    "bit_and", "bit_or", "bit_xor"};
  bool is_float = e->type->kind == TYPE_DOUBLE || e->type->kind == TYPE_FLOAT;
  for (size_t i = 0; e->kind == EXPRESSION_AGGREGATE && i < sizeof exact / sizeof exact[0]; i++) {
    if (strcmp(e->call->name, exact[i]) == 0) {
      return !is_float || strcmp(e->call->name, "sum") != 0;
    }
  }
  if (e->kind == EXPRESSION_AGGREGATE) {
    return strcmp(e->call->name, "first") == 0 && is_one_row(node->children[0]);
  }
  for (size_t i = 0; i < e->n_children; i++) {
    if (!is_exact(node, e->children[i])) {
      return false;
    }
  }
  return true;
}

static bool are_aggregates_stable(const tree_node *node) {
  if (!are_groups_stable(node)) {
    return false;
  }
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (!is_exact(node, node->expressions[i])) {
      return false;
    }
  }
  return true;
}

/* Gives the same rows in whichever task, of all rows below it. */
static bool is_alike(const tree_node *node, bool is_one) {
  switch (node->kind) {
    case TREE_GET:
    case TREE_FILTER:
    case TREE_PROJECTION:
      return is_stable(node);
    case TREE_INPUT:
    case TREE_CROSS_PRODUCT:
      return true;
    case TREE_JOIN:
    case TREE_ANY_JOIN:
      return are_conditions_stable(node);
    case TREE_AGGREGATE: /* of one task: else of its share of the rows */
      return is_one && is_stable(node) && are_aggregates_stable(node);
    default:
      return cut_is_constant(node);
  }
}

static double leaf_bytes(const cutter *c, const tree_node *leaf) {
  const cut_source *source = cut_source_of(c, leaf);
  if (source != NULL) {
    return FILE_BYTE * (double)source->bytes;
  }
  if (leaf->kind == TREE_INPUT) {
    return c->stages[c->readings[leaf->number].stage].bytes;
  }
  return cut_is_constant(leaf) ? 0 : 1e12;
}

/* Adds up what it reads; far too much when it is not alike in every task. */
static double read_bytes(const cutter *c, const tree_node *node, bool is_one) {
  bool is_dealt = node->kind == TREE_INPUT && c->readings[node->number].share == CUT_PARTITION;
  double bytes = node->n_children == 0 ? leaf_bytes(c, node) : 0;
  if (!is_alike(node, is_one) || (is_dealt && !is_one)) {
    return 1e12;
  }
  for (size_t i = 0; i < node->n_children; i++) {
    bytes += read_bytes(c, node->children[i], is_one);
  }
  return bytes;
}

/* Below so many bytes it is cheap; 0: nothing is. */
static double cheap_bytes(const cutter *c) {
  if (c->options->broadcast == CUT_WHOLE_NEVER) {
    return 0;
  }
  return c->options->spreads_small ? NOTHING_TO_SPREAD : (double)c->options->broadcast_bytes / PARTS_OF_CHEAP;
}

bool cut_is_cheap(const cutter *c, const cut_part *part) {
  double most = cheap_bytes(c);
  return !part->needs_deals && cut_bytes(part) < most && read_bytes(c, part->node, part->is_one) < most;
}

void cut_read_whole(cutter *c, const tree_node *node) {
  if (node->kind == TREE_INPUT || cut_source_of(c, node) != NULL) {
    c->readings[node->number].share = CUT_ALL;
  }
  for (size_t i = 0; i < node->n_children; i++) {
    cut_read_whole(c, node->children[i]);
  }
}

static bool reads_source(const cutter *c, const tree_node *node) {
  bool reads = cut_source_of(c, node) != NULL;
  for (size_t i = 0; !reads && i < node->n_children; i++) {
    reads = reads_source(c, node->children[i]);
  }
  return reads;
}

/* The few rows of partitions that are written already. */
static bool are_few(const cutter *c, const cut_part *part) {
  uint32_t stage = 0;
  return cut_is_bare(c, part, &stage) && c->stages[stage].is_done && c->stages[stage].bytes < cheap_bytes(c);
}

void cut_take_cheap(cutter *c, cut_part *part) {
  bool is_cheap = !c->options->spreads_small && !part->is_one &&
                  (are_few(c, part) || (!reads_source(c, part->node) && cut_is_cheap(c, part)));
  if (is_cheap) {
    cut_read_whole(c, part->node);
    part->is_one = true;
    part->why = "";
    part->n_deals = 0;
    part->needs_deals = false;
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses where no statistics are: which share of rows meets a condition, and how
 * wide a row is. They choose between plans that are all right.
 */
#include "tree/tree.h"

#include <string.h>
#include <strings.h>

static const double EQUAL = 0.1, DIFFERENT = 0.9, RANGE = 1.0 / 3, BETWEEN = 0.2, LIKE = 0.1, OTHER = 0.5;
static const double LEAST = 0.001; /* conditions are seldom independent */

static bool is_column(const tree_expression *e) {
  while (e->kind == EXPRESSION_CAST) {
    e = e->children[0];
  }
  return e->kind == EXPRESSION_REF;
}

static double of_comparison(const tree_expression *e) {
  bool are_columns = is_column(e->children[0]) && is_column(e->children[1]);
  switch (e->comparison) {
    case COMPARE_EQUAL:
    case COMPARE_NOT_DISTINCT_FROM:
      return EQUAL;
    case COMPARE_NOT_EQUAL:
    case COMPARE_DISTINCT_FROM:
      return DIFFERENT;
    default:
      return are_columns ? OTHER : RANGE;
  }
}

static double of_conjunction(const tree_expression *e) {
  double share = e->is_or ? 0 : 1;
  for (size_t i = 0; i < e->n_children; i++) {
    double part = tree_share_passed(e->children[i]);
    share = e->is_or ? share + part : share * part;
  }
  return share > 1 ? 1 : share;
}

static double of_operator(const tree_expression *e) {
  size_t n = e->n_children;
  double in = n < 2 ? 0 : EQUAL * (double)(n - 1);
  switch (e->operator) {
    case OPERATOR_NOT:
      return 1 - tree_share_passed(e->children[0]);
    case OPERATOR_IS_NULL:
      return EQUAL;
    case OPERATOR_IS_NOT_NULL:
      return 1;
    case OPERATOR_IN:
      return in > OTHER ? OTHER : in;
    case OPERATOR_NOT_IN:
      return in > OTHER ? OTHER : 1 - in;
    default:
      return OTHER;
  }
}

static double of_call(const tree_call *call) {
  static const char *const searches[] = {"~~", "~~*", "contains", "prefix", "suffix", "starts_with"};
  for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
    if (strcasecmp(call->name, searches[i]) == 0) {
      return LIKE;
    }
  }
  return strcmp(call->name, "!~~") == 0 ? DIFFERENT : OTHER;
}

double tree_share_passed(const tree_expression *condition) {
  double share = OTHER;
  switch (condition->kind) {
    case EXPRESSION_COMPARISON:
      share = of_comparison(condition);
      break;
    case EXPRESSION_BETWEEN:
      share = BETWEEN;
      break;
    case EXPRESSION_CONJUNCTION:
      share = of_conjunction(condition);
      break;
    case EXPRESSION_OPERATOR:
      share = of_operator(condition);
      break;
    case EXPRESSION_FUNCTION:
      share = of_call(condition->call);
      break;
    default:
      break;
  }
  return share < LEAST ? LEAST : share;
}

/* About; of what has no size of its own, texts are taken to be short and all else to be long. */
static double width_of(const data_type *type) {
  enum { TEXT_BYTES = 24, LONG_BYTES = 64, OTHER_BYTES = 8 };
  size_t bytes = data_type_value_bytes(type);
  switch (type->kind) {
    case TYPE_NULL:
      return 1;
    case TYPE_VARCHAR:
    case TYPE_ENUM: /* crosses as text */
      return TEXT_BYTES;
    case TYPE_JSON:
    case TYPE_BLOB:
    case TYPE_GEOMETRY:
    case TYPE_LIST:
    case TYPE_ARRAY:
    case TYPE_STRUCT:
    case TYPE_MAP:
    case TYPE_UNION:
      return LONG_BYTES;
    default:
      return bytes == 0 ? OTHER_BYTES : (double)bytes;
  }
}

double tree_row_bytes(const tree_node *node) {
  double width = 0;
  for (size_t i = 0; i < node->n_columns; i++) {
    width += width_of(node->types[i]);
  }
  return width;
}

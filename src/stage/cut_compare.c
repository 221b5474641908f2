/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about expressions, subtrees and parts: equality, volatility, reliance on order, how rows are dealt. */
#include "stage/cut_internal.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- equality */

static bool is_same_value(const tree_value *a, const tree_value *b) {
  bool is_text = a->text != NULL && b->text != NULL;
  bool is_same = data_type_equal(a->type, b->type) && a->is_null == b->is_null && a->lower == b->lower &&
                 a->upper == b->upper && a->number == b->number && signbit(a->number) == signbit(b->number) &&
                 (a->text == NULL) == (b->text == NULL) && a->length == b->length && a->months == b->months &&
                 a->days == b->days && a->micros == b->micros && a->n_children == b->n_children;
  if (!is_same || (is_text && memcmp(a->text, b->text, a->length) != 0)) {
    return false;
  }
  for (size_t i = 0; i < a->n_children; i++) {
    if (!is_same_value(&a->children[i], &b->children[i])) {
      return false;
    }
  }
  return true;
}

/* Calls whose state is more than a name are taken as different. */
static bool is_same_call(const tree_call *a, const tree_call *b) {
  bool are_plain = a->body == NULL && b->body == NULL && a->separator == NULL && b->separator == NULL &&
                   a->n_quantiles + b->n_quantiles == 0 && a->n_orders + b->n_orders == 0 &&
                   a->filter == NULL && b->filter == NULL && !a->distinct && !b->distinct;
  return are_plain && strcmp(a->name, b->name) == 0;
}

static bool is_same_kind(const tree_expression *a, const tree_expression *b) {
  switch (a->kind) {
    case EXPRESSION_REF:
      return a->ref == b->ref;
    case EXPRESSION_CONSTANT:
      return is_same_value(a->value, b->value);
    case EXPRESSION_FUNCTION:
    case EXPRESSION_AGGREGATE:
      return is_same_call(a->call, b->call);
    case EXPRESSION_WINDOW:
    case EXPRESSION_UNNEST:
      return false;
    default:
      return a->try_cast == b->try_cast && a->is_or == b->is_or && a->lower_inclusive == b->lower_inclusive &&
             a->upper_inclusive == b->upper_inclusive && a->comparison == b->comparison &&
             a->operator== b->operator;
  }
}

bool cut_same(const tree_expression *a, const tree_expression *b) {
  if (a->kind != b->kind || a->n_children != b->n_children || !data_type_equal(a->type, b->type) ||
      !is_same_kind(a, b)) {
    return false;
  }
  for (size_t i = 0; i < a->n_children; i++) {
    if (!cut_same(a->children[i], b->children[i])) {
      return false;
    }
  }
  return true;
}

/* -------------------------------------------------------------- volatility */

bool cut_is_volatile(const tree_expression *e) {
  return tree_volatile_call(e) != NULL;
}

static bool is_any_volatile(const tree_expression *const *list, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (cut_is_volatile(list[i])) {
      return true;
    }
  }
  return false;
}

static bool is_join_volatile(const tree_join *j) {
  for (size_t i = 0; i < j->n_conditions; i++) {
    if (cut_is_volatile(j->conditions[i].left) || cut_is_volatile(j->conditions[i].right)) {
      return true;
    }
  }
  return j->condition != NULL && cut_is_volatile(j->condition);
}

static bool is_scan_volatile(const tree_scan *scan) {
  for (size_t i = 0; i < scan->n_filters; i++) {
    if (cut_is_volatile(scan->filters[i].expression)) {
      return true;
    }
  }
  return false;
}

bool cut_is_unstable(const tree_node *node) {
  bool unstable =
      is_any_volatile(node->expressions, node->n_expressions) ||
      (node->sample != NULL && !node->sample->has_seed) ||
      (node->aggregate != NULL && is_any_volatile(node->aggregate->groups, node->aggregate->n_groups)) ||
      (node->join != NULL && is_join_volatile(node->join)) ||
      (node->scan != NULL && is_scan_volatile(node->scan));
  for (size_t i = 0; !unstable && i < node->n_orders; i++) {
    unstable = cut_is_volatile(node->orders[i].expression);
  }
  for (size_t i = 0; !unstable && i < node->n_children; i++) {
    unstable = cut_is_unstable(node->children[i]);
  }
  return unstable;
}

/* ------------------------------------------------------------------- order */

static bool counts_rows(tree_bound bound) {
  return bound == BOUND_CURRENT_ROWS || bound == BOUND_PRECEDING_ROWS || bound == BOUND_FOLLOWING_ROWS;
}

bool cut_window_is_ordered(const tree_expression *e) {
  if (e->kind != EXPRESSION_WINDOW) { /* an expression of several, made by the cutter */
    return false;
  }
  const tree_window *window = e->window;
  return window->n_orders == 0 &&
         window->n_partitions == 0 && /* within partitions DuckDB keeps no order either */
         (window->function != WINDOW_AGGREGATE || counts_rows(window->start) || counts_rows(window->end) ||
          window->exclude != EXCLUDE_NO_OTHER || cut_aggregate_is_ordered(window->call));
}

static bool is_any_ordered(const tree_node *node) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    const tree_expression *e = node->expressions[i];
    if ((node->kind == TREE_WINDOW && cut_window_is_ordered(e)) ||
        (node->kind == TREE_AGGREGATE && cut_aggregate_is_ordered(e->call))) {
      return true;
    }
  }
  return false;
}

bool cut_relies_on_order(const tree_node *node) {
  bool relies = node->kind == TREE_LIMIT || node->kind == TREE_SAMPLE || node->kind == TREE_POSITIONAL_JOIN ||
                (node->kind == TREE_DISTINCT && node->n_expressions < node->n_columns) ||
                is_any_ordered(node);
  for (size_t i = 0; !relies && i < node->n_children; i++) {
    relies = cut_relies_on_order(node->children[i]);
  }
  return relies;
}

/* ------------------------------------------------------------ how rows are dealt */

static bool is_key(const cut_keys *keys, size_t at) {
  for (size_t i = 0; i < keys->n; i++) {
    if (keys->keys[i]->kind == EXPRESSION_REF && keys->keys[i]->ref == at) {
      return true;
    }
  }
  return false;
}

bool cut_is_together(cut_part *part, const cut_keys *keys) {
  for (size_t d = 0; !part->is_one && d < part->n_deals; d++) {
    size_t n = 0;
    while (n < part->deals[d].n && is_key(keys, part->deals[d].columns[n])) {
      n++;
    }
    if (n == part->deals[d].n) {
      part->needs_deals = true;
      return true;
    }
  }
  return false;
}

bool cut_is_dealt(const cutter *c, const cut_part *part, const cut_keys *keys) {
  uint32_t modulus = keys->modulus == 0 ? c->options->tasks : keys->modulus;
  for (size_t d = 0; !part->is_one && part->modulus == modulus && d < part->n_deals; d++) {
    bool is_it = part->deals[d].n == keys->n;
    for (size_t i = 0; is_it && i < keys->n; i++) {
      is_it = keys->keys[i]->kind == EXPRESSION_REF && keys->keys[i]->ref == part->deals[d].columns[i];
    }
    if (is_it) {
      return true;
    }
  }
  return false;
}

hf_status cut_keep_deals(cutter *c, const cut_part *from, cut_column_fn of, const void *context,
                         size_t n_columns, cut_part *to) {
  for (size_t d = 0; d < from->n_deals && to->n_deals < CUT_MOST_DEALS; d++) {
    const cut_deal *deal = &from->deals[d];
    size_t *columns = NULL, n = 0;
    HF_TRY(cut_array(c, deal->n, sizeof *columns, &columns));
    while (n < deal->n && (columns[n] = of(context, deal->columns[n])) < n_columns) {
      n++;
    }
    if (n == deal->n) {
      to->modulus = from->modulus;
      to->deals[to->n_deals++] = (cut_deal){n, columns};
    }
  }
  return HF_OK;
}

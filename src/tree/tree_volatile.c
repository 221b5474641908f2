/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which expressions give another value each time they are computed: such a one
 * must be computed once. What merely depends on the order of rows is plan's
 * (traits.c).
 */
#include "tree/tree.h"

#include <strings.h>

bool tree_is_volatile(const char *name) {
  static const char *const names[] = {"random", "uuid",    "gen_random_uuid", "uuidv4",
                                      "uuidv7", "nextval", "setseed"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcasecmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

static const char *call_in(const tree_expression *e) {
  return e == NULL ? NULL : tree_volatile_call(e);
}

static const char *call_in_orders(const tree_order *orders, size_t n) {
  const char *found = NULL;
  for (size_t i = 0; i < n && found == NULL; i++) {
    found = tree_volatile_call(orders[i].expression);
  }
  return found;
}

static const char *call_in_call(const tree_call *call) {
  const char *found = call_in(call->body);
  found = found != NULL ? found : call_in(call->filter);
  return found != NULL ? found : call_in_orders(call->orders, call->n_orders);
}

static const char *call_in_window(const tree_window *w) {
  const tree_expression *const parts[] = {w->start_offset, w->end_offset, w->offset, w->default_value};
  const char *found = call_in_orders(w->orders, w->n_orders);
  found = found != NULL || w->call == NULL ? found : call_in_call(w->call);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0] && found == NULL; i++) {
    found = call_in(parts[i]);
  }
  for (size_t i = 0; i < w->n_partitions && found == NULL; i++) {
    found = tree_volatile_call(w->partitions[i]);
  }
  return found;
}

const char *tree_volatile_call(const tree_expression *e) {
  if (e->kind == EXPRESSION_FUNCTION && tree_is_volatile(e->call->name)) {
    return e->call->name;
  }
  const char *found = e->call != NULL ? call_in_call(e->call) : NULL;
  found = found == NULL && e->window != NULL ? call_in_window(e->window) : found;
  for (size_t i = 0; i < e->n_children && found == NULL; i++) {
    found = tree_volatile_call(e->children[i]);
  }
  return found;
}

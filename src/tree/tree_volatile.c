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

const char *tree_volatile_call(const tree_expression *e) {
  const tree_call *call = e->kind == EXPRESSION_FUNCTION ? e->call : NULL;
  if (call != NULL && tree_is_volatile(call->name)) {
    return call->name;
  }
  const char *found = call != NULL && call->body != NULL ? tree_volatile_call(call->body) : NULL;
  for (size_t i = 0; i < e->n_children && found == NULL; i++) {
    found = tree_volatile_call(e->children[i]);
  }
  return found;
}

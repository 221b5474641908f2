/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ASOF join is written with beside its conditions. DuckDB 1.5.5 sorts a NULL of
 * the inequality behind all values and lets it match, but where it joins few rows in a
 * loop; so the answer would depend on how many rows a task has. Rows with such a NULL are
 * left out of a side where rows without a match do not get out; of the other they get
 * a key that no row has.
 * Thread: any, as the door.
 */
#include "sql/write_internal.h"

enum { LEFT, RIGHT };

/* The condition that is no equality, or NULL: there is none that may be written twice. */
static const tree_condition *inequality_of(const tree_join *j) {
  for (size_t i = 0; i < j->n_conditions; i++) {
    const tree_condition *c = &j->conditions[i];
    bool is_ordered = c->comparison == COMPARE_LESS || c->comparison == COMPARE_LESS_EQUAL ||
                      c->comparison == COMPARE_GREATER || c->comparison == COMPARE_GREATER_EQUAL;
    if (is_ordered && tree_volatile_call(c->left) == NULL && tree_volatile_call(c->right) == NULL) {
      return c;
    }
  }
  return NULL;
}

/* Whether rows of the side come out that match none of the other. */
static bool gets_out(const tree_join *j, int side) {
  switch (j->type) {
    case JOIN_LEFT:
    case JOIN_ANTI:
      return side == LEFT;
    case JOIN_RIGHT:
      return side == RIGHT;
    case JOIN_FULL:
      return true;
    default:
      return false;
  }
}

static hf_status write_key(writer *w, const tree_expression *key, size_t alias) {
  write_scope scope = {.kind = SCOPE_ALIAS, .alias = alias};
  HF_TRY(write_expression(w, &scope, key));
  buf_text(write_to(w), " IS NOT NULL");
  return HF_OK;
}

static hf_status write_side(writer *w, const tree_join *j, int side, const write_source *from) {
  const tree_condition *c = inequality_of(j);
  if (c == NULL || gets_out(j, side)) {
    return write_from(w, from);
  }
  buf_printf(write_to(w), "(SELECT t%zu.* FROM ", from->alias);
  HF_TRY(write_from(w, from));
  buf_text(write_to(w), " WHERE ");
  HF_TRY(write_key(w, side == LEFT ? c->left : c->right, from->alias));
  buf_printf(write_to(w), ") t%zu", from->alias);
  return HF_OK;
}

hf_status write_asof_left(writer *w, const tree_join *j, const write_source *from) {
  return write_side(w, j, LEFT, from);
}

hf_status write_asof_right(writer *w, const tree_join *j, const write_source *from) {
  return write_side(w, j, RIGHT, from);
}

hf_status write_asof_guard(writer *w, const tree_join *j, size_t left, size_t right) {
  const tree_condition *c = inequality_of(j);
  if (c == NULL || (!gets_out(j, LEFT) && !gets_out(j, RIGHT))) {
    return HF_OK;
  }
  /* a NULL is false on the left and NULL on the right, which are not the same, whatever NULLs are to each other */
  buf_text(write_to(w), " AND (");
  HF_TRY(write_key(w, c->left, left));
  buf_text(write_to(w), ") = (");
  HF_TRY(write_key(w, c->right, right));
  buf_text(write_to(w), " OR NULL)");
  return HF_OK;
}

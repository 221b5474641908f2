/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins cut again, when some stages were launched: a side whose stage was is read
 * from it; one that is to move is filtered by the keys that the other side has,
 * where its rows without a match do not get out; and the larger side waits for
 * the smaller one, so that these are known in time.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

#include <string.h>

/* ------------------------------------------------------------ what it allows */

/* Whether a row of the side that meets none of the other side makes no difference, so that it may be left out. */
static bool may_be_filtered(const tree_node *node, int side) {
  if (node->kind != TREE_JOIN || FAULT("stage.filter_outer")) {
    return node->kind == TREE_JOIN;
  }
  switch (node->join->type) {
    case JOIN_INNER:
    case JOIN_SEMI:
    case JOIN_RIGHT_SEMI:
      return true;
    case JOIN_LEFT:
    case JOIN_ANTI:
    case JOIN_SINGLE:
      return side == RIGHT;
    case JOIN_RIGHT:
    case JOIN_RIGHT_ANTI:
      return side == LEFT;
    default: /* of FULL all get out; of MARK a NULL counts, and whether there is any row */
      return false;
  }
}

static bool is_wider(const data_type *type, const data_type *than) {
  return type->kind == TYPE_BIGINT &&
         (than->kind == TYPE_INTEGER || than->kind == TYPE_SMALLINT || than->kind == TYPE_UINTEGER);
}

/* Computed of a row, it cannot fail: a condition on it may come before others. */
static bool is_plain(const tree_expression *key) {
  return key->kind == EXPRESSION_REF ||
         (key->kind == EXPRESSION_CAST && is_wider(key->type, key->children[0]->type) &&
          is_plain(key->children[0]));
}

/* A condition by whose keys on `from` the other side may be filtered: no row of NULLs gets through it, and the key is
 * there as it is, or wider. */
static bool can_filter(const tree_join *j, size_t i, int from) {
  const tree_condition *condition = &j->conditions[i];
  const tree_expression *key = from == LEFT ? condition->right : condition->left;
  return condition->comparison == COMPARE_EQUAL &&
         data_type_equal(condition->left->type, condition->right->type) && is_plain(key);
}

/* ------------------------------------------------------------- cutting again */

/* Whether how many rows it has is a guess. */
static bool is_uncertain(const cutter *c, const tree_node *node) {
  switch (node->kind) {
    case TREE_PROJECTION:
      return is_uncertain(c, node->children[0]);
    case TREE_GET:
      return cut_source_of(c, node) == NULL || node->scan->n_filters > 0;
    case TREE_INPUT:
      return !c->stages[c->readings[node->number].stage].is_done;
    default:
      return !cut_is_constant(node);
  }
}

static void note_known(cut_joining *x, int side) {
  const tree_node *node = x->sides[side].node;
  uint32_t stage = node->kind == TREE_INPUT ? x->c->readings[node->number].stage : 0;
  if (node->kind == TREE_INPUT && x->c->stages[stage].is_done) {
    x->known[side][x->n_known[side]++] = stage;
  }
}

/* Sides whose stages have been launched are read from them, however they are: else these were run in vain, or are in the
 * way of what was cut. */
static hf_status take_launched(cut_joining *x, bool ordered) {
  for (int side = LEFT; side <= RIGHT; side++) {
    x->is_uncertain[side] = is_uncertain(x->c, x->sides[side].node);
    if (x->keys[side].n > 0 && !ordered && x->sides[side].node->kind != TREE_INPUT) {
      HF_TRY(cut_take_launched(x->c, &x->sides[side], &x->keys[side]));
    }
    if (!ordered) {
      HF_TRY(cut_take_launched(x->c, &x->sides[side], NULL));
    }
    note_known(x, side);
    x->rows[side] = x->sides[side].rows;
  }
  return HF_OK;
}

static const tree_expression *key_of(const cut_joining *x, int side, size_t i) {
  const tree_condition *condition = &x->node->join->conditions[i];
  return side == LEFT ? condition->left : condition->right;
}

/* What is known of the other side's keys; a stage that others read as well comes before one that deals its rows. */
static const cut_column_fact *fact_of_other(const cut_joining *x, int side, size_t i, uint32_t *stage) {
  const cut_column_fact *fact = NULL;
  for (size_t k = 0; fact == NULL && k < x->n_known[1 - side]; k++) {
    *stage = x->known[1 - side][k];
    fact = cut_fact_of_key(x->c, *stage, key_of(x, 1 - side, i));
  }
  return fact;
}

enum { LONGEST_NAME = 60 };

/* What the query calls the key; one that is long, or no single line, by its number. */
static const char *name_of(cutter *c, const tree_expression *key) {
  while (key->kind == EXPRESSION_CAST) {
    key = key->children[0];
  }
  bool is_short = key->name != NULL && strlen(key->name) <= LONGEST_NAME;
  for (const char *at = is_short ? key->name : ""; *at != '\0'; at++) {
    is_short = is_short && (unsigned char)*at >= ' ';
  }
  return is_short ? key->name : cut_text(c, "c%zu", key->ref);
}

static void tell_filter(cut_joining *x, const tree_expression *key, const cut_column_fact *fact,
                        cut_part *part) {
  cutter *c = x->c;
  const char *name = name_of(c, key), *what = NULL;
  if (fact->rows == 0) {
    what = cut_text(c, "%s: none", name);
  } else if (fact->n_values > 0) {
    what = cut_text(c, "%s: %zu value%s", name, fact->n_values, fact->n_values == 1 ? "" : "s");
  } else {
    what = cut_text(c, "%s: a range", name);
  }
  bool is_room = part->filter == NULL || strlen(part->filter) < 180;
  part->filter = part->filter == NULL ? what
                 : is_room            ? cut_text(c, "%s, %s", part->filter, what)
                                      : part->filter;
}

/* A range as wide as there are keys, or some times as wide, is that of all keys. */
static bool is_worth(const cut_column_fact *fact, double keys) {
  static const double MOST_OF_KEYS = 0.8,
                      SPARSE = 8; /* beyond: the keys are far apart, and nothing is known of all */
  double width = (double)(fact->most - fact->least) + 1;
  return fact->rows == 0 || fact->n_values > 0 || width < MOST_OF_KEYS * keys || width > SPARSE * keys;
}

/* A filter for a side of which rows are to move: they have keys that are among the other side's. */
static hf_status make_filter(cut_joining *x, int side, const cut_part *part) {
  cutter *c = x->c;
  const tree_join *j = x->node->join;
  const tree_expression **filters = NULL;
  cut_part filtered = *part;
  size_t n = 0;
  if (!may_be_filtered(x->node, side) || x->n_known[1 - side] == 0 || x->keys[side].n == 0 ||
      cut_is_dealt(c, part, &x->keys[side])) {
    return HF_OK;
  }
  HF_TRY(cut_pointers(c, 2 * j->n_conditions, &filters));
  for (size_t i = 0; i < j->n_conditions; i++) {
    bool is_it = can_filter(j, i, 1 - side);
    uint32_t stage = 0;
    const cut_column_fact *fact = is_it ? fact_of_other(x, side, i, &stage) : NULL;
    if (fact != NULL && is_worth(fact, cut_least_base(x))) {
      filtered.filter_of = stage;
      HF_TRY(cut_add_filter(c, key_of(x, side, i), fact, filters, &n));
      tell_filter(x, key_of(x, side, i), fact, &filtered);
      filtered.rows *= cut_share_of_fact(fact, cut_least_base(x));
    }
  }
  if (n == 0) {
    return HF_OK;
  }
  const tree_node node = {.kind = TREE_FILTER,
                          .n_columns = filtered.node->n_columns,
                          .types = filtered.node->types,
                          .n_children = 1,
                          .n_expressions = n,
                          .expressions = filters};
  HF_TRY(cut_put(c, &node, &filtered, 1, &filtered.node));
  x->filtered[side] = filtered;
  x->has_filter[side] = true;
  return HF_OK;
}

/* One that was launched with its filter is read. */
static hf_status take_filtered(cut_joining *x, int side) {
  const cut_keys *const ways[] = {&x->keys[side], NULL};
  for (size_t i = 0; x->has_filter[side] && i < 2; i++) {
    cut_part part = x->filtered[side];
    HF_TRY(cut_take_launched(x->c, &part, ways[i]));
    if (part.node != x->filtered[side].node) {
      x->sides[side] = part;
      x->has_filter[side] = false;
    }
  }
  return HF_OK;
}

/* After its rows are known, a stage that deals those of an earlier one is looked for. The same side may have been launched
 * elsewhere without a filter, and here with one. */
hf_status cut_look_back(cut_joining *x, bool ordered) {
  const cut_part own[2] = {x->sides[LEFT], x->sides[RIGHT]};
  HF_TRY(take_launched(x, ordered));
  for (int side = LEFT; !ordered && side <= RIGHT; side++) {
    if (x->sides[side].node->kind == TREE_INPUT && x->keys[side].n > 0 &&
        !cut_is_dealt(x->c, &x->sides[side], &x->keys[side])) {
      HF_TRY(cut_take_launched(x->c, &x->sides[side], &x->keys[side]));
      note_known(x, side);
    }
  }
  for (int side = LEFT; !ordered && side <= RIGHT; side++) {
    HF_TRY(make_filter(x, side, &own[side]));
    HF_TRY(take_filtered(x, side));
    if (x->has_filter[side] && x->sides[side].node != own[side].node) {
      x->has_filter[side] = false;
      HF_TRY(make_filter(x, side, &x->sides[side]));
      HF_TRY(take_filtered(x, side));
    }
  }
  return HF_OK;
}

/* ------------------------------------------------------------------- placing */

const cut_part *cut_moved(const cut_joining *x, int side) {
  return x->has_filter[side] ? &x->filtered[side] : &x->sides[side];
}

double cut_least_base(const cut_joining *x) {
  return x->sides[LEFT].base < x->sides[RIGHT].base ? x->sides[LEFT].base : x->sides[RIGHT].base;
}

hf_status cut_use_filter(cut_joining *x, int side, const cut_keys *keys) {
  uint32_t stage = 0;
  bool is_there = keys == NULL
                      ? cut_is_bare(x->c, &x->sides[side], &stage) || cut_is_cheap(x->c, &x->sides[side])
                      : cut_is_dealt(x->c, &x->sides[side], keys);
  if (!x->has_filter[side] || is_there) {
    return HF_OK;
  }
  HF_TRY(cut_is_launched(x->c, &x->sides[side], keys, &is_there));
  if (!is_there) {
    x->sides[side] = x->filtered[side];
  }
  return HF_OK;
}

/* -------------------------------------------------------------------- waiting */

hf_status cut_wait_for(cut_joining *x, int first) {
  cutter *c = x->c;
  const tree_join *j = x->node->join;
  const tree_node *const node = x->sides[first].node;
  bool may_go_whole = cut_may_be_whole(x->node, first) && c->options->broadcast == CUT_WHOLE_IF_SMALL;
  uint32_t *after = NULL, stage = node->kind == TREE_INPUT ? c->readings[node->number].stage : 0;
  size_t n_watched = 0;
  if (node->kind != TREE_INPUT || c->stages[stage].is_done || !x->is_uncertain[first]) {
    return HF_OK;
  }
  for (size_t i = 0; may_be_filtered(x->node, 1 - first) && i < j->n_conditions; i++) {
    const tree_expression *key = key_of(x, first, i);
    if (can_filter(j, i, first) && cut_can_watch(key)) {
      HF_TRY(cut_watch(c, stage, (uint32_t)key->ref));
      n_watched++;
    }
  }
  cut_stage *waiting = &c->stages[c->n_stages - 1];
  if (n_watched == 0 && !may_go_whole) {
    return HF_OK;
  }
  HF_TRY(cut_array(c, 1, sizeof *after, &after));
  *after = stage;
  waiting->after = after;
  waiting->n_after = 1;
  waiting->awaits = n_watched == 0 ? "broadcast or exchange"
                    : may_go_whole ? "broadcast or exchange, and a filter of its keys"
                                   : "a filter of its keys";
  return HF_OK;
}

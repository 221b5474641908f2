/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins: both sides are dealt by the hash of the keys that must be equal, or one
 * side is given whole to every task: never the side whose unmatched rows get
 * out, and for MARK and SINGLE always all rows that one row may be compared with.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

#include <math.h>

/* ------------------------------------------------------------ what it allows */

bool cut_may_be_whole(const tree_node *node, int side) {
  if (node->kind == TREE_CROSS_PRODUCT || FAULT("stage.broadcast_outer")) {
    return true;
  }
  switch (node->join->type) {
    case JOIN_INNER:
      return side == RIGHT || node->kind != TREE_ASOF_JOIN;
    case JOIN_RIGHT:
      return side == LEFT && node->kind != TREE_ASOF_JOIN;
    case JOIN_RIGHT_SEMI:
    case JOIN_RIGHT_ANTI:
      return side == LEFT;
    case JOIN_FULL:
      return false;
    default:
      return side == RIGHT;
  }
}

/* Whether rows that differ in the condition's sides need not meet: of a MARK that compares with ANY, only in the
 * correlated conditions. */
static bool separates(const tree_join *j, size_t i) {
  const tree_condition *condition = &j->conditions[i];
  bool is_equal =
      condition->comparison == COMPARE_EQUAL || condition->comparison == COMPARE_NOT_DISTINCT_FROM;
  bool is_any = j->type == JOIN_MARK && i >= j->n_mark_types && condition->comparison == COMPARE_EQUAL;
  is_any = is_any && !FAULT("stage.mark_apart");
  return is_equal && !is_any && data_type_equal(condition->left->type, condition->right->type) &&
         !cut_is_volatile(condition->left) && !cut_is_volatile(condition->right);
}

/* A tuple MARK without correlation asks whether any right row holds a NULL. */
static bool needs_all(const tree_join *j) {
  return j->type == JOIN_MARK && j->n_mark_types == 0 && j->n_conditions > 1;
}

static hf_status list_keys(cut_joining *x) {
  const tree_join *j = x->node->join;
  const tree_expression **keys[2] = {NULL, NULL};
  size_t n = 0, most = j == NULL ? 0 : j->n_conditions;
  HF_TRY(cut_pointers(x->c, most, &keys[LEFT]));
  HF_TRY(cut_pointers(x->c, most, &keys[RIGHT]));
  for (size_t i = 0; j != NULL && !needs_all(j) && i < j->n_conditions; i++) {
    if (separates(j, i)) {
      keys[LEFT][n] = j->conditions[i].left;
      keys[RIGHT][n++] = j->conditions[i].right;
    }
  }
  x->keys[LEFT] = (cut_keys){.n = n, .keys = keys[LEFT]};
  x->keys[RIGHT] = (cut_keys){.n = n, .keys = keys[RIGHT]};
  return HF_OK;
}

/* ----------------------------------------------------------- what is there */

/* The key of the join that is this column of the side, or as many as there are. */
static size_t key_of(const cut_joining *x, int side, size_t at) {
  const cut_keys *keys = &x->keys[side];
  size_t i = 0;
  while (i < keys->n && (keys->keys[i]->kind != EXPRESSION_REF || keys->keys[i]->ref != at)) {
    i++;
  }
  return i;
}

/* The keys by which a side is dealt already, in its order, for both sides; n is 0 when it is by others. */
static hf_status keys_of_deal(const cut_joining *x, int side, const cut_deal *deal, cut_keys out[2]) {
  const tree_expression **keys[2] = {NULL, NULL};
  uint32_t modulus = x->sides[side].modulus;
  out[LEFT].n = out[RIGHT].n = 0;
  HF_TRY(cut_pointers(x->c, deal->n, &keys[LEFT]));
  HF_TRY(cut_pointers(x->c, deal->n, &keys[RIGHT]));
  for (size_t k = 0; k < deal->n; k++) {
    size_t i = key_of(x, side, deal->columns[k]);
    if (i == x->keys[side].n) {
      return HF_OK;
    }
    keys[LEFT][k] = x->keys[LEFT].keys[i];
    keys[RIGHT][k] = x->keys[RIGHT].keys[i];
  }
  out[LEFT] = (cut_keys){deal->n, keys[LEFT], modulus};
  out[RIGHT] = (cut_keys){deal->n, keys[RIGHT], modulus};
  return HF_OK;
}

/* Takes those keys, when there are any; `both`: only when the other side is dealt by them as well. */
static hf_status take_keys_of(cut_joining *x, int side, bool both, bool *taken) {
  const cut_part *part = &x->sides[side];
  for (size_t d = 0; !*taken && !part->is_one && d < part->n_deals; d++) {
    cut_keys keys[2];
    HF_TRY(keys_of_deal(x, side, &part->deals[d], keys));
    if (keys[side].n > 0 && (!both || cut_is_dealt(x->c, &x->sides[1 - side], &keys[1 - side]))) {
      x->keys[LEFT] = keys[LEFT];
      x->keys[RIGHT] = keys[RIGHT];
      *taken = true;
    }
  }
  return HF_OK;
}

/* ------------------------------------------------------------------ placing */

static bool is_small(const cut_joining *x, int side) {
  const cut_options *options = x->c->options;
  return options->broadcast == CUT_WHOLE_ALWAYS ||
         (options->broadcast == CUT_WHOLE_IF_SMALL &&
          cut_bytes(cut_moved(x, side)) < (double)options->broadcast_bytes);
}

/* What it takes of processor time, in nanoseconds, as measured on narrow rows. */
static const double A_STAGE = 2e6; /* its tasks, beside their rows */
static const double WRITE_ROW = 15, WRITE_BYTE = 1.3, READ_ROW = 4, READ_BYTE = 0.4;
static const double BUILD_ROW = 60, PROBE_ROW = 30, SMALL_BUILD_ROW = 25, SMALL_PROBE_ROW = 12;
static const double SMALL_BUILD = 100000; /* rows of a hash table that the caches hold */
static const double MEMORY = 1.15;        /* what it costs more that each task keeps all rows */

static double cost_of_moving(const cut_joining *x, int side, double readers, bool is_written) {
  const cut_part *part = cut_moved(x, side);
  double bytes = cut_bytes(part), reading = readers * (part->rows * READ_ROW + bytes * READ_BYTE);
  return is_written ? reading : reading + A_STAGE + part->rows * WRITE_ROW + bytes * WRITE_BYTE;
}

/* DuckDB builds the side that has fewer rows. */
static double cost_of_joining(double left, double right) {
  double build = left < right ? left : right, probe = left < right ? right : left;
  bool is_small = build < SMALL_BUILD;
  return build * (is_small ? SMALL_BUILD_ROW : BUILD_ROW) + probe * (is_small ? SMALL_PROBE_ROW : PROBE_ROW);
}

static double cost_of_whole(const cut_joining *x, int side) {
  double n = x->c->options->tasks, whole = cut_moved(x, side)->rows, other = cut_moved(x, 1 - side)->rows;
  uint32_t stage = 0;
  bool is_written = cut_is_bare(x->c, &x->sides[side], &stage),
       is_cheap = cut_is_cheap(x->c, &x->sides[side]);
  double moving = is_cheap ? 0 : cost_of_moving(x, side, n, is_written);
  return moving + MEMORY * n * cost_of_joining(whole, other / n);
}

static double cost_of_exchange(const cut_joining *x) {
  double cost = cost_of_joining(cut_moved(x, LEFT)->rows, cut_moved(x, RIGHT)->rows);
  for (int side = LEFT; side <= RIGHT; side++) {
    cost += cut_is_dealt(x->c, &x->sides[side], &x->keys[side]) ? 0 : cost_of_moving(x, side, 1, false);
  }
  return cost;
}

/* The side that every task gets whole, or -1. */
static int whole_side(const cut_joining *x) {
  bool has_keys = x->keys[LEFT].n > 0, is_choice = x->c->options->broadcast == CUT_WHOLE_IF_SMALL;
  double least = has_keys && is_choice ? cost_of_exchange(x) : HUGE_VAL;
  int found = -1;
  for (int side = LEFT; side <= RIGHT; side++) {
    if (cut_may_be_whole(x->node, side) && !x->sides[1 - side].is_one && (!has_keys || is_small(x, side)) &&
        cost_of_whole(x, side) < least) {
      least = cost_of_whole(x, side);
      found = side;
    }
  }
  return found;
}

static hf_status exchange_side(cut_joining *x, int side, bool ordered) {
  HF_TRY(cut_use_filter(x, side, &x->keys[side]));
  return cut_exchange(x->c, &x->sides[side], &x->keys[side], ordered);
}

/* The smaller side first, or the one that may turn out to be the smaller one. */
static hf_status exchange_both(cut_joining *x, int larger, bool ordered) {
  const cut_options *options = x->c->options;
  int first = x->is_uncertain[1 - larger] || !x->is_uncertain[larger] ? 1 - larger : larger;
  double bytes = cut_bytes(&x->sides[1 - first]);
  HF_TRY(exchange_side(x, first, ordered));
  size_t n_stages = x->c->n_stages;
  HF_TRY(exchange_side(x, 1 - first, ordered));
  bool is_new = x->c->n_stages > n_stages;
  return options->waits && is_new && bytes >= (double)options->wait_bytes ? cut_wait_for(x, first) : HF_OK;
}

/* Rows that must meet come together: neither side is one task's with the other. */
static hf_status place(cut_joining *x, int whole, bool ordered) {
  cutter *c = x->c;
  bool taken = false;
  if (whole >= 0) {
    HF_TRY(cut_use_filter(x, whole, NULL));
    HF_TRY(cut_broadcast(c, &x->sides[whole], ordered));
    x->sides[whole].is_one = false;
    return HF_OK;
  }
  if (x->keys[LEFT].n == 0) {
    bool is_whole =
        (x->sides[LEFT].is_one && cut_may_be_whole(x->node, RIGHT)) ||
        (x->sides[RIGHT].is_one && cut_may_be_whole(x->node, LEFT)); /* in the one task that has the other */
    const char *why =
        is_whole ? ""
                 : cut_text(c, "a join (%s) without keys of a side that cannot be whole in every task",
                            x->node->join == NULL ? "CROSS" : tree_join_type_name(x->node->join->type));
    HF_TRY(cut_gather(c, &x->sides[LEFT], ordered, why));
    return cut_gather(c, &x->sides[RIGHT], ordered, why);
  }
  int larger = cut_bytes(&x->sides[LEFT]) < cut_bytes(&x->sides[RIGHT]) ? RIGHT : LEFT;
  HF_TRY(take_keys_of(x, larger, false, &taken));
  HF_TRY(take_keys_of(x, 1 - larger, false, &taken));
  return exchange_both(x, larger, ordered);
}

/* ------------------------------------------------------------------- result */

static bool is_left_out(const tree_join *j) {
  return j->type == JOIN_RIGHT_SEMI || j->type == JOIN_RIGHT_ANTI;
}

static bool is_right_out(const tree_join *j) {
  return j->type == JOIN_SEMI || j->type == JOIN_ANTI || j->type == JOIN_MARK;
}

/* The column of the result that holds a side's column, or n_columns. */
static size_t column_of(const tree_node *node, int side, size_t at) {
  const tree_join *j = node->join;
  if (j == NULL) {
    return (side == RIGHT ? node->children[0]->n_columns : 0) + at;
  }
  if (side == LEFT ? is_left_out(j) : is_right_out(j)) {
    return node->n_columns;
  }
  const size_t *map = side == LEFT ? j->left : j->right;
  size_t n = side == LEFT ? j->n_left : j->n_right, first = side == LEFT || is_left_out(j) ? 0 : j->n_left;
  for (size_t i = 0; i < n; i++) {
    if ((map == NULL ? i : map[i]) == at) {
      return first + i;
    }
  }
  return node->n_columns;
}

typedef struct side_of {
  const cut_joining *x;
  int side;
  bool is_equal; /* columns that are keys of the join may stand for each other */
} side_of;

static size_t column_of_side(const void *context, size_t at) {
  const side_of *of = context;
  const tree_node *node = of->x->node;
  size_t found = column_of(node, of->side, at);
  size_t key = of->is_equal && found == node->n_columns ? key_of(of->x, of->side, at) : SIZE_MAX;
  if (key < of->x->keys[of->side].n) {
    const tree_expression *other = of->x->keys[1 - of->side].keys[key];
    found = other->kind == EXPRESSION_REF ? column_of(node, 1 - of->side, other->ref) : found;
  }
  return found;
}

/* Rows stay where a side's rows are, unless NULLs stand in for it. */
static hf_status set_deals(cut_joining *x, int whole, cut_part *out) {
  tree_join_type type = x->node->join == NULL ? JOIN_INNER : x->node->join->type;
  bool stays[2] = {type != JOIN_RIGHT && type != JOIN_FULL, type == JOIN_INNER || type == JOIN_RIGHT ||
                                                                type == JOIN_RIGHT_SEMI ||
                                                                type == JOIN_RIGHT_ANTI};
  for (int side = LEFT; side <= RIGHT; side++) {
    const side_of of = {x, side, type == JOIN_INNER};
    bool is_alike = out->n_deals == 0 || out->modulus == x->sides[side].modulus;
    if (stays[side] && whole != side && is_alike) {
      HF_TRY(cut_keep_deals(x->c, &x->sides[side], column_of_side, &of, x->node->n_columns, out));
    }
  }
  return HF_OK;
}

/* The side with fewer rows before any condition has each key once; the other's rows have one of them each. */
static double rows_of_pairs(const cut_joining *x) {
  double keys = cut_least_base(x), pairs = x->rows[LEFT] * x->rows[RIGHT];
  return x->keys[LEFT].n == 0 || keys < 1 ? pairs : pairs / keys;
}

static double share_of(const cut_part *part) {
  return part->base < 1 || part->rows > part->base ? 1 : part->rows / part->base;
}

static double larger_of(double a, double b) {
  return a > b ? a : b;
}

static void estimate(const cut_joining *x, cut_part *out) {
  const cut_part *l = &x->sides[LEFT], *r = &x->sides[RIGHT];
  out->base = larger_of(l->base, r->base);
  out->rows = rows_of_pairs(x);
  switch (x->node->join == NULL ? JOIN_INNER : x->node->join->type) {
    case JOIN_LEFT:
      out->rows = larger_of(out->rows, l->rows);
      break;
    case JOIN_RIGHT:
      out->rows = larger_of(out->rows, r->rows);
      break;
    case JOIN_FULL:
      out->rows = larger_of(out->rows, l->rows + r->rows);
      break;
    case JOIN_SEMI:
      out->rows = l->rows * share_of(r);
      out->base = l->base;
      break;
    case JOIN_RIGHT_SEMI:
      out->rows = r->rows * share_of(l);
      out->base = r->base;
      break;
    case JOIN_ANTI:
    case JOIN_MARK:
    case JOIN_SINGLE:
      out->rows = l->rows;
      out->base = l->base;
      break;
    case JOIN_RIGHT_ANTI:
      out->rows = r->rows;
      out->base = r->base;
      break;
    default:
      break;
  }
}

static const char *say(cut_joining *x, int whole, const cut_part *before) {
  const char *left = before[LEFT].what, *right = before[RIGHT].what;
  const char *how = whole >= 0 ? "broadcast join" : x->sides[LEFT].is_one ? "join" : "hash join";
  const char *first = whole != LEFT ? left : right;
  return first[0] == '\0' ? how : cut_text(x->c, "%s, %s", first, how);
}

hf_status cut_join(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  cut_joining x = {.c = c, .node = node};
  cut_order below = order == ORDER_NEEDED ? ORDER_NEEDED : ORDER_ANY;
  HF_TRY(cut_node(c, node->children[0], below, &x.sides[LEFT]));
  HF_TRY(cut_node(c, node->children[1], below, &x.sides[RIGHT]));
  HF_TRY(list_keys(&x));
  HF_TRY(cut_look_back(&x, order == ORDER_NEEDED));
  bool are_one = x.sides[LEFT].is_one && x.sides[RIGHT].is_one, are_alike = false;
  if (c->options->broadcast != CUT_WHOLE_ALWAYS) {
    HF_TRY(take_keys_of(&x, LEFT, true, &are_alike));
  }
  int whole = are_one || are_alike ? -1 : whole_side(&x);
  HF_TRY(are_one ? HF_OK : place(&x, whole, order == ORDER_NEEDED));
  *out = (cut_part){.is_one = x.sides[LEFT].is_one && x.sides[RIGHT].is_one, .why = ""};
  if (out->is_one) {
    out->why = cut_graver(x.sides[LEFT].why, x.sides[RIGHT].why);
  } else {
    out->needs_deals = x.sides[LEFT].needs_deals || x.sides[RIGHT].needs_deals;
    HF_TRY(set_deals(&x, whole, out));
  }
  estimate(&x, out);
  out->what = say(&x, whole, x.sides);
  return cut_put(c, node, x.sides, 2, &out->node);
}

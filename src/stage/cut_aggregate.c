/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregation: in place when the groups' rows are together; in two steps around
 * an exchange; or over exchanged rows. One function in two steps is cut_partial.c.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

static const double ROWS_OF_A_GROUP = 4; /* guessed */
enum { MOST_GROUPS_OF_SETS = 60 };       /* their id is a BIGINT with a bit for each */

/* -------------------------------------------------------------- what it is */

static bool has_sets(const tree_aggregate *g) {
  return g->n_sets > 1 || (g->n_sets == 1 && g->sets[0].n != g->n_groups);
}

static uint64_t bits_of(const tree_group_set *set) {
  uint64_t bits = 0;
  for (size_t i = 0; i < set->n; i++) {
    bits |= UINT64_C(1) << set->groups[i];
  }
  return bits;
}

/* The id of a set says which it is: equal sets, which give their rows twice, cannot be told apart. */
static bool are_sets_distinct(const tree_aggregate *g) {
  for (size_t i = 0; g->n_groups <= MOST_GROUPS_OF_SETS && i < g->n_sets; i++) {
    for (size_t k = 0; k < i; k++) {
      if (bits_of(&g->sets[i]) == bits_of(&g->sets[k])) {
        return false;
      }
    }
  }
  return g->n_groups <= MOST_GROUPS_OF_SETS;
}

static size_t place_in(const tree_group_set *set, size_t group) {
  size_t at = 0;
  while (at < set->n && set->groups[at] != group) {
    at++;
  }
  return at;
}

static bool are_possible(const tree_node *node, bool together) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (!partial_is_possible(node->expressions[i], together)) {
      return false;
    }
  }
  bool has_id = has_sets(node->aggregate) || node->aggregate->n_grouping > 0;
  return !has_id || are_sets_distinct(node->aggregate);
}

static bool is_ordered(const tree_node *node) {
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (cut_aggregate_is_ordered(node->expressions[i]->call)) {
      return true;
    }
  }
  return false;
}

/* The argument that all DISTINCT aggregates share, or NULL. */
static const tree_expression *shared_distinct(const tree_node *node) {
  const tree_expression *found = NULL;
  for (size_t i = 0; i < node->n_expressions; i++) {
    const tree_expression *e = node->expressions[i];
    if (!e->call->distinct) {
      continue;
    }
    if (e->n_children != 1 || cut_is_volatile(e->children[0]) ||
        (found != NULL && !cut_same(found, e->children[0]))) {
      return NULL;
    }
    found = e->children[0];
  }
  return found;
}

static bool are_groups_stable(const tree_aggregate *g) {
  for (size_t i = 0; i < g->n_groups; i++) {
    if (cut_is_volatile(g->groups[i])) {
      return false;
    }
  }
  return g->n_groups > 0;
}

/* -------------------------------------------------------------- in two steps */

typedef struct two_steps {
  cutter *c;
  const tree_node *node;
  const tree_aggregate *g;
  bool has_sets; /* or GROUPING(…), which the id of the set answers */
  bool is_ordered;
  size_t n_keys;                    /* groups, and the id of the set */
  size_t n_partials;                /* columns behind them */
  const tree_expression **partials; /* what they are */
  size_t *first;                    /* of each aggregate, in partials */
  bool has_moments;
} two_steps;

static hf_status list_partials(two_steps *s) {
  const tree_node *node = s->node;
  HF_TRY(cut_pointers(s->c, MOST_PARTIALS * node->n_expressions, &s->partials));
  HF_TRY(cut_array(s->c, node->n_expressions, sizeof *s->first, &s->first));
  for (size_t i = 0; i < node->n_expressions; i++) {
    const tree_expression *e = node->expressions[i];
    s->first[i] = s->n_partials;
    s->n_partials += partial_columns(s->c, e, s->partials + s->n_partials);
    s->has_moments |= partial_rule(e->call->name)->partial == PARTIAL_MOMENTS;
  }
  return HF_OK;
}

/* Groups, partials, and behind them the id of the set. */
static hf_status put_partial(two_steps *s, cut_part *part) {
  const data_type **types = NULL;
  tree_aggregate *g = NULL;
  tree_group_set *all = NULL;
  size_t *every = NULL, n_groups = s->g->n_groups, n = 0;
  HF_TRY(cut_pointers(s->c, n_groups + s->n_partials + 1, &types));
  HF_TRY(cut_array(s->c, 1, sizeof *g, &g));
  HF_TRY(cut_array(s->c, 1, sizeof *all, &all));
  HF_TRY(cut_array(s->c, n_groups, sizeof *every, &every));
  for (size_t i = 0; i < n_groups; i++) {
    types[n++] = s->g->groups[i]->type;
    every[i] = i;
  }
  for (size_t i = 0; i < s->n_partials; i++) {
    types[n++] = s->partials[i]->type;
  }
  *all = (tree_group_set){n_groups, every};
  *g = *s->g;
  g->n_grouping = s->has_sets ? 1 : 0;
  g->grouping = all;
  if (s->has_sets) {
    types[n++] = &cut_bigint;
  }
  tree_node partial = *s->node;
  partial.aggregate = g;
  partial.n_columns = n;
  partial.types = types;
  partial.n_expressions = s->n_partials;
  partial.expressions = s->partials;
  return cut_put(s->c, &partial, part, 1, &part->node);
}

static hf_status keys_of_partial(two_steps *s, cut_keys *out) {
  const tree_expression **keys = NULL;
  size_t n = s->g->n_groups;
  HF_TRY(cut_pointers(s->c, n + 1, &keys));
  for (size_t i = 0; i < n; i++) {
    keys[i] = cut_ref(s->c, i, s->g->groups[i]->type);
  }
  if (s->has_sets) {
    keys[n] = cut_ref(s->c, n + s->n_partials, &cut_bigint);
  }
  *out = (cut_keys){.n = n + (s->has_sets ? 1 : 0), .keys = keys};
  return HF_OK;
}

/* MOMENTS: the mean of each whole group, as columns behind the partial rows. */
static hf_status put_means(two_steps *s, const cut_keys *keys, cut_part *part) {
  const tree_node *below = part->node;
  const tree_expression **means = NULL;
  const data_type **types = NULL;
  size_t n = s->node->n_expressions, at = below->n_columns, n_means = 0;
  if (!s->has_moments) {
    return HF_OK;
  }
  HF_TRY(cut_pointers(s->c, n, &means));
  HF_TRY(cut_pointers(s->c, at + n, &types));
  for (size_t i = 0; i < at; i++) {
    types[i] = below->types[i];
  }
  for (size_t i = 0; i < n; i++) {
    if (partial_rule(s->node->expressions[i]->call->name)->partial == PARTIAL_MOMENTS) {
      means[n_means] = partial_mean(s->c, s->g->n_groups + s->first[i], keys);
      types[at + n_means++] = &cut_double;
    }
  }
  const tree_node window = {.kind = TREE_WINDOW,
                            .n_columns = at + n_means,
                            .types = types,
                            .n_children = 1,
                            .n_expressions = n_means,
                            .expressions = means};
  return cut_put(s->c, &window, part, 1, &part->node);
}

/* Groups, the id of the set, aggregates. */
static hf_status put_final(two_steps *s, const cut_keys *keys, size_t n_partial, cut_part *part) {
  const tree_expression **finals = NULL;
  const data_type **types = NULL;
  tree_aggregate *g = NULL;
  size_t n = s->node->n_expressions, n_means = 0;
  HF_TRY(cut_pointers(s->c, n, &finals));
  HF_TRY(cut_pointers(s->c, keys->n + n, &types));
  HF_TRY(cut_array(s->c, 1, sizeof *g, &g));
  *g = (tree_aggregate){.n_groups = keys->n, .groups = keys->keys};
  for (size_t i = 0; i < keys->n; i++) {
    types[i] = keys->keys[i]->type;
  }
  for (size_t i = 0; i < n; i++) {
    const tree_expression *e = s->node->expressions[i], *mean = NULL;
    if (partial_rule(e->call->name)->partial == PARTIAL_MOMENTS) {
      mean = cut_ref(s->c, n_partial + n_means++, &cut_double);
    }
    finals[i] = partial_final(s->c, e, s->partials + s->first[i], s->g->n_groups + s->first[i], mean);
    types[keys->n + i] = e->type;
  }
  const tree_node node = {.kind = TREE_AGGREGATE,
                          .n_columns = keys->n + n,
                          .types = types,
                          .n_children = 1,
                          .n_expressions = n,
                          .expressions = finals,
                          .aggregate = g};
  return cut_put(s->c, &node, part, 1, &part->node);
}

/* GROUPING(…): its bits, taken from the id of the set, whose last bit is the last group. */
static const tree_expression *grouping_bits(two_steps *s, const tree_group_set *of) {
  cutter *c = s->c;
  const tree_expression *id = cut_ref(c, s->g->n_groups, &cut_bigint), *sum = cut_number(c, 0, &cut_bigint);
  for (size_t i = 0; i < of->n; i++) {
    const tree_expression *by = cut_number(c, s->g->n_groups - 1 - of->groups[i], &cut_integer);
    const tree_expression *to = cut_number(c, UINT64_C(1) << (of->n - 1 - i), &cut_bigint);
    const tree_expression *bit =
        cut_call(c, EXPRESSION_FUNCTION, ">>", &cut_bigint, id, cut_cast(c, by, &cut_bigint));
    bit = cut_call(c, EXPRESSION_FUNCTION, "&", &cut_bigint, bit, cut_number(c, 1, &cut_bigint));
    bit = cut_call(c, EXPRESSION_FUNCTION, "*", &cut_bigint, bit, to);
    sum = cut_call(c, EXPRESSION_FUNCTION, "+", &cut_bigint, sum, bit);
  }
  return sum;
}

/* Groups, aggregates, GROUPING(…)s: the id goes. */
static hf_status put_grouping(two_steps *s, cut_part *part) {
  const tree_node *below = part->node;
  const tree_expression **columns = NULL;
  size_t n_groups = s->g->n_groups, n = 0;
  HF_TRY(cut_pointers(s->c, s->node->n_columns, &columns));
  for (size_t i = 0; i < below->n_columns; i++) {
    if (i != n_groups) {
      columns[n++] = cut_ref(s->c, i, below->types[i]);
    }
  }
  for (size_t i = 0; i < s->g->n_grouping; i++) {
    columns[n++] = grouping_bits(s, &s->g->grouping[i]);
  }
  const tree_node node = {.kind = TREE_PROJECTION,
                          .n_columns = n,
                          .types = s->node->types,
                          .n_children = 1,
                          .n_expressions = n,
                          .expressions = columns};
  part->n_deals = 0;
  return cut_put(s->c, &node, part, 1, &part->node);
}

static double groups_of(const tree_node *node, double rows) {
  return node->aggregate->n_groups == 0 ? 1 : rows > ROWS_OF_A_GROUP ? rows / ROWS_OF_A_GROUP : rows;
}

/* The keys by which the groups' rows are exchanged: all, or those that are wanted above. */
static hf_status take_wanted(cutter *c, const tree_node *node, const cut_keys *all, cut_keys *out) {
  const tree_expression **keys = NULL;
  *out = *all;
  if (c->wanted_of != node || has_sets(node->aggregate)) {
    return HF_OK;
  }
  HF_TRY(cut_pointers(c, c->n_wanted, &keys));
  for (size_t i = 0; i < c->n_wanted; i++) {
    keys[i] = all->keys[c->wanted[i]];
  }
  *out = (cut_keys){.n = c->n_wanted, .keys = keys};
  return HF_OK;
}

static hf_status in_two_steps(two_steps *s, cut_part *part) {
  cut_keys keys, dealt;
  HF_TRY(list_partials(s));
  HF_TRY(put_partial(s, part));
  size_t n_partial = part->node->n_columns;
  part->rows = groups_of(s->node, part->rows) * (s->g->n_groups == 0 ? s->c->options->tasks : 1);
  part->n_deals = 0;
  part->what =
      part->what[0] == '\0' ? "partial aggregate" : cut_text(s->c, "%s, partial aggregate", part->what);
  HF_TRY(keys_of_partial(s, &keys));
  HF_TRY(take_wanted(s->c, s->node, &keys, &dealt));
  if (keys.n > 0) {
    HF_TRY(cut_exchange(s->c, part, &dealt, s->is_ordered));
    cut_take_cheap(s->c, part);
  } else {
    HF_TRY(cut_gather(s->c, part, s->is_ordered, ""));
  }
  HF_TRY(put_means(s, &keys, part));
  HF_TRY(put_final(s, &keys, n_partial, part));
  part->what = "final aggregate";
  return s->has_sets ? put_grouping(s, part) : HF_OK;
}

/* ---------------------------------------------------------------- in one step */

static size_t group_of(const void *context, size_t at) {
  const tree_aggregate *g = context;
  size_t i = 0;
  while (i < g->n_groups && (g->groups[i]->kind != EXPRESSION_REF || g->groups[i]->ref != at)) {
    i++;
  }
  return i;
}

static bool is_in_all_sets(const tree_aggregate *g, const cut_deal *deal) {
  for (size_t k = 0; k < deal->n && !FAULT("stage.sets_apart"); k++) {
    for (size_t i = 0; i < g->n_sets; i++) {
      if (place_in(&g->sets[i], deal->columns[k]) == g->sets[i].n) {
        return false;
      }
    }
  }
  return true;
}

/* How rows are dealt, by the columns of the groups; are_together: in some way by nothing else, in every set. */
static hf_status group_keys(cutter *c, const tree_aggregate *g, cut_part *part, bool *are_together) {
  cut_part grouped = *part;
  size_t n = 0;
  grouped.n_deals = 0;
  HF_TRY(cut_keep_deals(c, part, group_of, g, g->n_groups, &grouped));
  for (size_t d = 0; d < grouped.n_deals; d++) {
    if (is_in_all_sets(g, &grouped.deals[d])) {
      grouped.deals[n++] = grouped.deals[d];
    }
  }
  grouped.n_deals = n;
  *are_together = !part->is_one && grouped.n_deals > 0;
  if (*are_together) {
    *part = grouped;
    part->needs_deals = true;
  }
  return HF_OK;
}

static hf_status exchange_groups(cutter *c, const tree_node *node, bool ordered, cut_part *part) {
  const tree_aggregate *g = node->aggregate;
  const cut_keys all = {.n = g->n_groups, .keys = g->groups};
  cut_keys dealt;
  size_t *keys = NULL;
  HF_TRY(take_wanted(c, node, &all, &dealt));
  HF_TRY(cut_exchange(c, part, &dealt, ordered));
  cut_take_cheap(c, part);
  if (part->is_one) {
    return HF_OK;
  }
  HF_TRY(cut_array(c, dealt.n, sizeof *keys, &keys));
  for (size_t i = 0; i < dealt.n; i++) {
    keys[i] = c->wanted_of == node ? c->wanted[i] : i;
  }
  part->n_deals = 1;
  part->deals[0] = (cut_deal){dealt.n, keys};
  return HF_OK;
}

static hf_status in_one_step(cutter *c, const tree_node *node, cut_part *part) {
  part->what = part->what[0] == '\0' ? "aggregate" : cut_text(c, "%s, aggregate", part->what);
  return cut_put(c, node, part, 1, &part->node);
}

/* ----------------------------------------------------- an aggregation for each set */

/*
 * Grouping sets that one exchange cannot bring together: aggregates that need all rows of their group, or sets that are there
 * twice. Each set is an aggregation of its own over the same rows, and the answer is all of theirs.
 */
typedef struct each_of {
  cutter *c;
  const tree_node *node;
  const tree_aggregate *g;
} each_of;

/* What is computed once for each row must not be computed once for each set. */
static bool sets_can_part(const tree_node *node) {
  const tree_aggregate *g = node->aggregate;
  for (size_t i = 0; i < g->n_groups; i++) {
    if (cut_is_volatile(g->groups[i])) {
      return false;
    }
  }
  for (size_t i = 0; i < node->n_expressions; i++) {
    if (cut_is_volatile(node->expressions[i])) {
      return false;
    }
  }
  return g->n_sets > 0;
}

/* The aggregation by one set: its groups and all aggregates. */
static hf_status make_one(const each_of *s, const tree_group_set *set, const tree_node *rows,
                          const tree_node **out) {
  const tree_expression **groups = NULL;
  const data_type **types = NULL;
  const tree_node **child = NULL;
  tree_aggregate *g = NULL;
  size_t n = s->node->n_expressions;
  HF_TRY(cut_pointers(s->c, set->n, &groups));
  HF_TRY(cut_pointers(s->c, set->n + n, &types));
  HF_TRY(cut_pointers(s->c, 1, &child));
  HF_TRY(cut_array(s->c, 1, sizeof *g, &g));
  for (size_t i = 0; i < set->n; i++) {
    groups[i] = s->g->groups[set->groups[i]];
    types[i] = groups[i]->type;
  }
  for (size_t i = 0; i < n; i++) {
    types[set->n + i] = s->node->expressions[i]->type;
  }
  *child = rows;
  *g = (tree_aggregate){.n_groups = set->n, .groups = groups};
  return cut_make_node(s->c,
                       &(tree_node){.kind = TREE_AGGREGATE,
                                    .n_columns = set->n + n,
                                    .types = types,
                                    .n_children = 1,
                                    .children = child,
                                    .n_expressions = n,
                                    .expressions = s->node->expressions,
                                    .aggregate = g},
                       out);
}

static const tree_expression *null_of(cutter *c, const data_type *type) {
  tree_value *value = arena_alloc(c->a, sizeof *value);
  if (value == NULL) {
    c->is_out_of_memory = true;
    return cut_number(c, 0, &cut_bigint);
  }
  *value = (tree_value){.type = type, .is_null = true};
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = type, .value = value});
}

/* GROUPING(…): a bit for each of its groups, the last one lowest, set where the set has not that group. */
static uint64_t grouping_of(const tree_group_set *of, const tree_group_set *set) {
  uint64_t bits = 0;
  for (size_t i = 0; i < of->n; i++) {
    bits = bits << 1 | (place_in(set, of->groups[i]) == set->n);
  }
  return bits;
}

/* Groups that the set has not are NULL. */
static hf_status put_shape(const each_of *s, const tree_group_set *set, cut_part *part) {
  cutter *c = s->c;
  const tree_expression **columns = NULL;
  size_t n = 0;
  HF_TRY(cut_pointers(c, s->node->n_columns, &columns));
  for (size_t i = 0; i < s->g->n_groups; i++) {
    size_t at = place_in(set, i);
    const data_type *type = s->g->groups[i]->type;
    columns[n++] = at < set->n ? cut_ref(c, at, type) : null_of(c, type);
  }
  for (size_t i = 0; i < s->node->n_expressions; i++) {
    columns[n++] = cut_ref(c, set->n + i, s->node->expressions[i]->type);
  }
  for (size_t i = 0; i < s->g->n_grouping; i++) {
    columns[n++] = cut_number(c, grouping_of(&s->g->grouping[i], set), &cut_bigint);
  }
  const tree_node node = {.kind = TREE_PROJECTION,
                          .n_columns = n,
                          .types = s->node->types,
                          .n_children = 1,
                          .n_expressions = n,
                          .expressions = columns};
  part->n_deals = 0;
  return cut_put(c, &node, part, 1, &part->node);
}

static hf_status each_set(cutter *c, const tree_node *node, bool ordered, cut_part *part) {
  each_of s = {c, node, node->aggregate};
  uint32_t stage = 0;
  cut_part *parts = NULL;
  bool all_one = true;
  const tree_node *rows = part->node;
  HF_TRY(cut_array(c, s.g->n_sets, sizeof *parts, &parts));
  HF_TRY(cut_close(c, part, NULL, ordered, &stage));
  for (size_t i = 0; i < s.g->n_sets; i++) {
    const tree_node *one = NULL;
    parts[i] = (cut_part){.why = "", .what = "rows of grouping sets", .rows = part->rows, .base = part->base};
    HF_TRY(make_one(&s, &s.g->sets[i], rows, &one));
    HF_TRY(cut_read(c, stage, CUT_SPLIT, ordered, rows, &parts[i].node));
    HF_TRY(cut_aggregate_part(c, one, &parts[i]));
    HF_TRY(put_shape(&s, &s.g->sets[i], &parts[i]));
    all_one &= parts[i].is_one;
  }
  for (size_t i = 0; !all_one && i < s.g->n_sets; i++) {
    if (parts[i].is_one) {
      HF_TRY(cut_exchange_all(c, &parts[i]));
    }
  }
  const tree_node all = {.kind = TREE_UNION,
                         .n_columns = node->n_columns,
                         .types = node->types,
                         .n_children = s.g->n_sets,
                         .all = true};
  *part = (cut_part){.is_one = all_one,
                     .why = all_one ? parts[0].why : "",
                     .what = "grouping sets",
                     .rows = part->rows,
                     .base = part->base};
  for (size_t i = 0; i < s.g->n_sets; i++) {
    part->needs_deals |= parts[i].needs_deals;
  }
  return cut_put(c, &all, parts, s.g->n_sets, &part->node);
}

hf_status cut_aggregate_part(cutter *c, const tree_node *node, cut_part *part) {
  const tree_aggregate *g = node->aggregate;
  bool ordered = is_ordered(node), are_together = false, sets = has_sets(g);
  const tree_expression *distinct = shared_distinct(node);
  two_steps steps = {
      .c = c, .node = node, .g = g, .has_sets = sets || g->n_grouping > 0, .is_ordered = ordered};
  cut_take_cheap(c, part);
  HF_TRY(group_keys(c, g, part, &are_together));
  if (part->is_one || are_together) {
    return in_one_step(c, node, part);
  }
  if (are_possible(node, false)) {
    return in_two_steps(&steps, part);
  }
  if (distinct != NULL && (sets || g->n_groups == 0) && !ordered && are_possible(node, true)) {
    HF_TRY(cut_exchange(c, part, &(cut_keys){.n = 1, .keys = &distinct}, false));
    return in_two_steps(&steps, part);
  }
  if (!sets && are_groups_stable(g)) {
    HF_TRY(exchange_groups(c, node, ordered, part));
    return in_one_step(c, node, part);
  }
  if (sets && sets_can_part(node)) {
    return each_set(c, node, ordered, part);
  }
  HF_TRY(cut_gather(c, part, ordered,
                    sets              ? "grouping sets over a value that differs each time"
                    : g->n_groups > 0 ? "groups by a value that differs each time"
                                      : cut_why_all_rows));
  return in_one_step(c, node, part);
}

hf_status cut_aggregate(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  (void)order;
  HF_TRY(cut_node(c, node->children[0], is_ordered(node) ? ORDER_NEEDED : ORDER_ANY, out));
  double rows = groups_of(node, out->rows);
  HF_TRY(cut_aggregate_part(c, node, out));
  out->rows = rows;
  out->base = node->aggregate->n_groups == 0 ? 1 : out->base;
  return HF_OK;
}

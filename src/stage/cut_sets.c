/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grouping sets that one exchange cannot bring together: aggregates that need
 * all rows of their group, or sets that are there twice. Each set is an
 * aggregation of its own over the same rows, and the answer is all of theirs.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

typedef struct sets {
  cutter *c;
  const tree_node *node;
  const tree_aggregate *g;
} sets;

/* What is computed once for each row must not be computed once for each set. */
bool cut_sets_can_part(const tree_node *node) {
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
static hf_status make_one(const sets *s, const tree_group_set *set, const tree_node *rows,
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

static size_t place_in(const tree_group_set *set, size_t group) {
  size_t at = 0;
  while (at < set->n && set->groups[at] != group) {
    at++;
  }
  return at;
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
static hf_status put_shape(const sets *s, const tree_group_set *set, cut_part *part) {
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

hf_status cut_sets(cutter *c, const tree_node *node, bool ordered, cut_part *part) {
  sets s = {c, node, node->aggregate};
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

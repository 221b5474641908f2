/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates and windows of generated queries: FILTER, and what stands in OVER.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

static gen_node *of_type(gen_node *n, const gen_node *like) {
  n->type = like->type;
  n->most = like->most;
  n->exactness = like->exactness;
  return n;
}

gen_node *gen_aggregate(generator *g, const gen_scope *s, gen_type type) {
  gen_need need;
  gen_scope closed =
      *s; /* a subquery that ORDER BY repeats has no place in DuckDB's tree: its names cannot be bound */
  closed.is_closed = true;
  gen_wanted wanted = {&closed, type, GEN_OF_AGGREGATES, gen_chance(g, 60) ? 0 : 1};
  return gen_from_row(g, &wanted, &need);
}

/* ------------------------------------------------------------------ orders */

static const char *direction(generator *g) {
  static const char *const directions[] = {
      "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST"};
  return directions[gen_below(g, sizeof directions / sizeof directions[0])];
}

static void add_key(generator *g, gen_node *list, gen_node *key) {
  gen_add(g, list, gen_write(g, GEN_PART, "%n%s", key, direction(g)));
}

gen_node *gen_sort_keys(generator *g, const gen_scope *s, bool all) {
  gen_node *list = gen_list(g, ", ");
  for (size_t n = gen_below(g, 2); n > 0; n--) {
    const gen_column *c = gen_any_column(g, s);
    if (c != NULL) {
      add_key(g, list, c->node);
    }
  }
  for (size_t i = 0; all && i < s->n_columns; i++) {
    if (s->columns[i].type != GEN_APPROX) {
      add_key(g, list, s->columns[i].node);
    }
  }
  if (list->n_parts == 0) {
    const gen_column *c = gen_any_column(g, s);
    add_key(g, list, c != NULL ? c->node : gen_write(g, GEN_PART, "coalesce(1)"));
  }
  list->is_fixed = all;
  return list;
}

/* ----------------------------------------------------------------- windows */

/* From early to late; a frame's end is none that DuckDB finds to be before its start. */
static const char *const bounds[] = {"UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING",
                                     "CURRENT ROW",         "1 FOLLOWING", "3 FOLLOWING",
                                     "UNBOUNDED FOLLOWING"};
enum { BOUNDS = sizeof bounds / sizeof bounds[0] };

static const char *exclusion(generator *g) {
  static const char *const exclusions[] = {" EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES",
                                           " EXCLUDE NO OTHERS"};
  return gen_chance(g, 25) ? exclusions[gen_below(g, 4)] : "";
}

static gen_node *frame(generator *g, const char *unit) {
  size_t start = gen_below(g, BOUNDS - 1), end = start + gen_below(g, BOUNDS - start);
  end = end == 0 ? 1 : end;
  return gen_write(g, GEN_OPTION, " %s BETWEEN %s AND %s%s", unit, bounds[start], bounds[end], exclusion(g));
}

/* One key near 0, so that a distance can be added. */
static gen_node *range_by_distance(generator *g, const gen_scope *s) {
  gen_node *key = gen_expression(g, s, GEN_INT, 1);
  const char *descending = gen_chance(g, 30) ? " DESC" : "";
  return gen_write(g, GEN_PART, "ORDER BY (%n %s 100)::BIGINT%s%n", key, "%", descending, frame(g, "RANGE"));
}

static gen_node *range_by_interval(generator *g, const gen_scope *s) {
  return gen_write(g, GEN_PART,
                   "ORDER BY %n RANGE BETWEEN INTERVAL '%d days' PRECEDING AND INTERVAL '1 day' FOLLOWING",
                   gen_expression(g, s, GEN_DATE, 1), (int)gen_below(g, 4));
}

/* Frames that take rows that tie together. */
static gen_node *order_with_peers(generator *g, const gen_scope *s) {
  switch (gen_below(g, 6)) {
    case 0:
      return gen_write(g, GEN_PART, "");
    case 1:
      return range_by_distance(g, s);
    case 2:
      return range_by_interval(g, s);
    case 3:
      return gen_write(g, GEN_PART, "ORDER BY %n%n", gen_sort_keys(g, s, false), frame(g, "GROUPS"));
    case 4:
      return gen_write(g, GEN_PART, "ORDER BY %n RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING%s",
                       gen_sort_keys(g, s, false), exclusion(g));
    default:
      return gen_write(g, GEN_PART, "ORDER BY %n", gen_sort_keys(g, s, false));
  }
}

static gen_node *total_order(generator *g, const gen_scope *s, bool framed) {
  static const char *const units[] = {"ROWS", "ROWS", "GROUPS"};
  gen_node *keys = gen_sort_keys(g, s, true);
  return framed && gen_chance(g, 70)
             ? gen_write(g, GEN_PART, "ORDER BY %n%n", keys, frame(g, units[gen_below(g, 3)]))
             : gen_write(g, GEN_PART, "ORDER BY %n", keys);
}

static gen_node *order_for(generator *g, const gen_scope *s, gen_need need) {
  switch (need) {
    case GEN_NEEDS_TOTAL:
    case GEN_NEEDS_TOTAL_FRAME:
      return total_order(g, s, need == GEN_NEEDS_TOTAL_FRAME);
    case GEN_NEEDS_FRAME:
      return gen_chance(g, 40) ? total_order(g, s, true) : order_with_peers(g, s);
    default:
      return gen_write(g, GEN_PART, "ORDER BY %n", gen_sort_keys(g, s, false));
  }
}

static gen_node *partition(generator *g, const gen_scope *s) {
  gen_node *list = gen_list(g, ", ");
  for (size_t n = 1 + gen_below(g, 2); n > 0; n--) {
    const gen_column *c = gen_any_column(g, s);
    gen_add(g, list, c != NULL && gen_chance(g, 75) ? c->node : gen_expression(g, s, gen_any_type(g, s), 1));
  }
  return gen_write(g, GEN_OPTION, "PARTITION BY %n ", list);
}

gen_node *gen_window(generator *g, const gen_scope *s, gen_type type) {
  gen_need need;
  gen_wanted wanted = {s, type, GEN_OF_WINDOWS, gen_chance(g, 70) ? 0 : 1};
  gen_node *call = gen_from_row(g, &wanted, &need);
  if (call == NULL) {
    return NULL;
  }
  gen_node *parts = gen_chance(g, 70) ? partition(g, s) : gen_write(g, GEN_PART, "");
  return of_type(gen_write(g, GEN_EXPRESSION, "%n OVER (%n%n)", call, parts, order_for(g, s, need)), call);
}

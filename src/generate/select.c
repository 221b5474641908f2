/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SELECT statements of generated queries: what they select out of rows, groups or
 * windows, WHERE, HAVING, QUALIFY and DISTINCT.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

/* A SELECT that is being made. */
typedef struct selecting {
  const gen_wish *wish;
  gen_scope rows;                        /* of FROM */
  gen_scope shown;                       /* what the select list sees: rows, groups, or rows with windows */
  gen_node *from, *where, *group, *last; /* `last`: HAVING or QUALIFY */
  const char *distinct;
  gen_node *order; /* of DISTINCT ON */
  bool is_grouped;
  gen_query out;
} selecting;

static gen_node *none(generator *g) {
  return gen_write(g, GEN_PART, "");
}

static unsigned inner_depth(const selecting *s) {
  return s->wish->depth > 2 ? 2 : s->wish->depth;
}

/* ------------------------------------------------------------------ groups */

/* A key is no constant: a number alone would be a position. */
static gen_node *key(generator *g, selecting *s, gen_column *out) {
  const gen_column *c = gen_any_column(g, &s->rows);
  if (c == NULL) {
    return NULL;
  }
  *out = *c;
  if (gen_chance(g, 25) && s->wish->depth > 0) {
    gen_need need;
    gen_wanted wanted = {&s->rows, gen_any_type(g, &s->rows), GEN_OF_EXPRESSIONS, 0};
    gen_node *made = gen_is_sortable(wanted.type) ? gen_from_row(g, &wanted, &need) : NULL;
    if (made != NULL) {
      *out = (gen_column){
          .node = made, .type = made->type, .most = made->most, .exactness = made->exactness, .distinct = 20};
    }
  }
  return out->node;
}

static gen_node *group_clause(generator *g, gen_node *const *keys, size_t n, bool *has_sets) {
  gen_node *list = gen_list(g, ", ");
  for (size_t i = 0; i < n; i++) {
    gen_add(g, list, keys[i]);
  }
  static const char *const formats[] = {" GROUP BY ROLLUP (%n)", " GROUP BY CUBE (%n)"};
  size_t kind = gen_below(g, 100);
  if (n == 0) {
    return none(g);
  }
  *has_sets = kind < 20;
  if (kind < 12) {
    return gen_write(g, GEN_PART, formats[kind % 2], list);
  }
  if (kind < 20) {
    gen_node *sets = gen_list(g, ", ");
    for (size_t i = 0; i < n; i++) {
      gen_add(g, sets, gen_write(g, GEN_PART, "(%n)", keys[i]));
    }
    gen_add(g, sets, gen_write(g, GEN_PART, "()"));
    gen_add(g, sets, gen_write(g, GEN_PART, "(%n)", list));
    return gen_write(g, GEN_PART, " GROUP BY GROUPING SETS (%n)", sets);
  }
  return gen_write(g, GEN_PART, " GROUP BY %n", list);
}

static void add_shown(generator *g, selecting *s, gen_node *node, double distinct) {
  gen_column c = {.node = node,
                  .type = node->type,
                  .most = node->most,
                  .exactness = node->exactness,
                  .distinct = distinct};
  gen_scope_add(g, &s->shown, &c);
}

static void add_aggregate(generator *g, selecting *s, gen_type type) {
  gen_node *aggregate = gen_aggregate(g, &s->rows, type);
  if (aggregate != NULL) {
    add_shown(g, s, aggregate, s->shown.rows);
  }
}

static void group_rows(generator *g, selecting *s) {
  gen_node *keys[3];
  size_t n = 0;
  double groups = 1;
  s->is_grouped = true;
  s->shown = (gen_scope){.outer = s->wish->outer, .is_closed = true};
  for (size_t i = gen_below(g, 4); i > 0; i--) {
    gen_column made;
    if (key(g, s, &made) != NULL) {
      keys[n++] = made.node;
      gen_scope_add(g, &s->shown, &made);
      groups *= made.distinct < 1 ? 1 : made.distinct;
    }
  }
  bool has_sets = false;
  s->group = group_clause(g, keys, n, &has_sets);
  if (has_sets) {
    gen_node *grouping = gen_write(g, GEN_EXPRESSION, "grouping(%n)", keys[gen_below(g, n)]);
    grouping->type = GEN_INT;
    grouping->most = 8;
    add_shown(g, s, grouping, 2);
    groups *= 4;
  }
  s->shown.rows = groups < s->rows.rows ? groups : s->rows.rows;
  for (size_t i = 0; i < s->wish->n_types; i++) {
    add_aggregate(g, s, s->wish->types[i]);
  }
  for (size_t i = 1 + gen_below(g, 3); i > 0; i--) {
    add_aggregate(g, s, gen_any_type(g, &s->rows));
  }
  if (gen_chance(g, 25)) {
    s->last = gen_write(g, GEN_OPTION, " HAVING %n", gen_expression(g, &s->shown, GEN_BOOL, 1));
  }
}

/* ----------------------------------------------------------------- windows */

static void add_windows(generator *g, selecting *s) {
  gen_scope over = s->shown; /* windows do not see each other */
  for (size_t i = 1 + gen_below(g, 3); i > 0; i--) {
    gen_node *window = gen_window(g, &over, gen_any_type(g, &over));
    if (window != NULL) {
      add_shown(g, s, window, 20);
    }
  }
  s->shown.is_closed = true;
  if (gen_chance(g, 20)) {
    gen_node *test = gen_expression(g, &s->shown, GEN_BOOL, 1);
    s->last = gen_write(g, GEN_OPTION, "%n QUALIFY %n OR rank() OVER (ORDER BY %n) < 9", s->last, test,
                        gen_sort_keys(g, &over, false));
  }
}

/* ------------------------------------------------------------- select list */

static double distinct_of(const gen_node *n, double rows) {
  double most = n->type == GEN_BOOL ? 2 : 25;
  return rows < most ? rows : most;
}

static void add_item(generator *g, selecting *s, gen_node *list, gen_node *item) {
  const char *name = gen_chance(g, 3) ? gen_name(g, "Odd Näme ") : gen_name(g, "c");
  gen_add(g, list, gen_write(g, GEN_PART, "%n AS \"%s\"", item, name));
  gen_column *columns = s->out.columns;
  columns[s->out.n_columns++] = (gen_column){.name = name,
                                             .type = item->type,
                                             .most = item->most,
                                             .exactness = item->exactness,
                                             .distinct = distinct_of(item, s->out.rows)};
}

static gen_type type_of_item(generator *g, selecting *s) {
  gen_type type = gen_any_type(g, &s->shown);
  return gen_chance(g, 5) ? GEN_MAP : type;
}

static gen_node *select_list(generator *g, selecting *s) {
  gen_node *list = gen_list(g, ", ");
  size_t n = s->wish->types != NULL ? s->wish->n_types : 1 + gen_below(g, 4);
  bool has_approx = s->wish->is_whole && s->is_grouped && s->wish->types == NULL && s->distinct[0] == '\0' &&
                    gen_chance(g, 40);
  s->out.columns = arena_array(g->memory, n + 2, sizeof *s->out.columns);
  if (s->out.columns == NULL) {
    g->failed = true;
    return list;
  }
  for (size_t i = 0; i < n; i++) {
    gen_type type = s->wish->types != NULL ? s->wish->types[i] : type_of_item(g, s);
    add_item(g, s, list, gen_expression(g, &s->shown, type, gen_chance(g, 45) ? 0 : inner_depth(s)));
  }
  if (has_approx) {
    add_item(g, s, list, gen_aggregate(g, &s->rows, GEN_APPROX));
  } else if (!s->is_grouped && s->wish->types == NULL && s->distinct[0] == '\0' && gen_chance(g, 4)) {
    gen_node *element = gen_write(g, GEN_EXPRESSION, "unnest(%n)", gen_expression(g, &s->rows, GEN_INTS, 1));
    element->type = GEN_INT;
    element->most = 2147483648.0;
    add_item(g, s, list, element);
    s->out.rows *= 3;
  }
  return list;
}

/* One row of each: the first by all columns. */
static void distinct_on(generator *g, selecting *s) {
  const gen_column *c = gen_any_column(g, &s->rows);
  if (c != NULL) {
    s->order = gen_write(g, GEN_PART, " ORDER BY %n", gen_sort_keys(g, &s->rows, true));
    buf text = {0};
    gen_render(c->node, &text);
    s->distinct = gen_text(g, "DISTINCT ON (%s) ", buf_cstr(&text));
    buf_reset(&text);
  }
}

gen_query gen_select(generator *g, const gen_wish *wish) {
  selecting s = {
      .wish = wish, .distinct = "", .where = none(g), .group = none(g), .last = none(g), .order = none(g)};
  g->queries++;
  s.rows.outer = wish->outer;
  s.from = gen_from(g, &s.rows, wish->depth, wish->most_rows);
  s.rows.outer = wish->outer;
  if (gen_chance(g, 50)) {
    gen_node *test = gen_chance(g, 40) ? gen_comparison(g, &s.rows)
                                       : gen_expression(g, &s.rows, GEN_BOOL, inner_depth(&s));
    s.where = gen_write(g, GEN_OPTION, " WHERE %n", test);
  }
  s.shown = s.rows;
  s.shown.capacity = s.rows.n_columns; /* what is added is added to a copy */
  size_t kind = gen_below(g, 100);
  if (kind < 40) {
    group_rows(g, &s);
  } else if (kind < 46) {
    distinct_on(g, &s);
  } else if (kind < 54) {
    s.distinct = "DISTINCT ";
  }
  if (kind >= 75 || gen_chance(g, 8)) {
    add_windows(g, &s);
  }
  s.out.rows = s.is_grouped ? s.shown.rows : s.rows.rows;
  gen_node *list = select_list(g, &s);
  s.out.node = gen_write(g, GEN_QUERY, "SELECT %s%n FROM %n%n%n%n%n", s.distinct, list, s.from, s.where,
                         s.group, s.last, s.order);
  if (s.order->n_parts > 0) { /* another ORDER BY may follow */
    s.out.node = gen_write(g, GEN_QUERY, "FROM (%n) AS %s", s.out.node, gen_name(g, "o"));
  }
  return s.out;
}

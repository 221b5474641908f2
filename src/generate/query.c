/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole queries: SELECTs, set operations, common table expressions, recursive ones,
 * ORDER BY and LIMIT; and what makes some fail or indeterminate on purpose.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

#include <string.h>

/* Queries in a query, from which no more are begun. */
#define QUERIES_MOST 10

static bool has_type(const gen_query *q, gen_type type) {
  for (size_t i = 0; i < q->n_columns; i++) {
    if (q->columns[i].type == type) {
      return true;
    }
  }
  return false;
}

/* ------------------------------------------------------------ order and limit */

static const char *limit(generator *g, bool is_whole) {
  static const int counts[] = {0, 1, 3, 10, 100, 1000, 3000};
  int count = counts[gen_below(g, 7)];
  if (gen_chance(g, 6) && is_whole) {
    return gen_text(g, " LIMIT %d%%", 1 + (int)gen_below(g, 60));
  }
  return gen_chance(g, 70) ? gen_text(g, " LIMIT %d", count)
                           : gen_text(g, " LIMIT %d OFFSET %d", count, counts[gen_below(g, 6)]);
}

/* Some columns of the result, by name or position. */
static gen_node *some_columns(generator *g, const gen_query *q) {
  static const char *const directions[] = {"", " DESC", " NULLS FIRST", " DESC NULLS LAST"};
  gen_node *list = gen_list(g, ", ");
  for (size_t n = 1 + gen_below(g, 2); n > 0; n--) {
    size_t i = gen_below(g, q->n_columns);
    if (q->columns[i].type == GEN_APPROX || q->columns[i].type == GEN_MAP) {
      continue;
    }
    gen_node *key = gen_chance(g, 50) ? gen_write(g, GEN_PART, "%d", (int)i + 1)
                                      : gen_write(g, GEN_PART, "\"%s\"", q->columns[i].name);
    gen_add(g, list, gen_write(g, GEN_PART, "%n%s", key, directions[gen_below(g, 4)]));
  }
  return list->n_parts == 0 ? NULL : list;
}

/* Which rows a LIMIT takes must be certain, but at the end of the whole query, where ties are known. */
static void finish(generator *g, gen_query *q, const gen_wish *wish) {
  static const char *const all[] = {"ALL", "ALL DESC", "ALL NULLS FIRST", "ALL DESC NULLS LAST"};
  size_t kind = gen_below(g, 100);
  bool is_approximate = has_type(q, GEN_APPROX);
  gen_node *some = wish->is_whole ? some_columns(g, q) : NULL;
  if (some != NULL && kind < 25) {
    q->node = gen_write(g, GEN_QUERY, "%n%n", q->node, gen_write(g, GEN_OPTION, " ORDER BY %n", some));
  } else if (some != NULL && !is_approximate && kind < 40) {
    g->has_ties = true;
    q->node = gen_write(g, GEN_QUERY, "%n%n", q->node,
                        gen_write(g, GEN_OPTION, " ORDER BY %n%s", some, limit(g, true)));
  } else if (!is_approximate && kind >= 75) {
    const char *cut = !wish->is_whole || gen_chance(g, 60) ? limit(g, wish->is_whole) : "";
    q->node = gen_write(g, GEN_QUERY, "%n%n", q->node,
                        gen_write(g, GEN_OPTION, " ORDER BY %s%s", all[gen_below(g, 4)], cut));
  }
}

/* -------------------------------------------------------------- set operations */

static gen_query set_operation(generator *g, const gen_wish *wish) {
  static const char *const operators[] = {"UNION ALL", "UNION ALL",     "UNION",     "INTERSECT",
                                          "EXCEPT",    "INTERSECT ALL", "EXCEPT ALL"};
  gen_type types[3];
  gen_wish inner = *wish;
  inner.depth = wish->depth - 1;
  inner.is_whole = false;
  if (wish->types == NULL) {
    inner.types = types;
    inner.n_types = 1 + gen_below(g, 3);
    for (size_t i = 0; i < inner.n_types; i++) {
      do {
        types[i] = gen_any_type(g, NULL);
      } while (!gen_is_sortable(types[i]));
    }
  }
  gen_query left = gen_select(g, &inner), right = gen_select(g, &inner);
  gen_query out = left;
  bool wraps = gen_chance(g, 30);
  out.node = gen_write(g, GEN_QUERY, wraps ? "((%n) %s (%n))" : "(%n) %s (%n)", left.node,
                       operators[gen_below(g, 7)], right.node);
  out.rows = left.rows + right.rows;
  for (size_t i = 0; i < out.n_columns; i++) {
    const gen_column *other = &right.columns[i];
    gen_column *c = &out.columns[i];
    c->most = other->most > c->most ? other->most : c->most;
    c->exactness = other->exactness > c->exactness ? other->exactness : c->exactness;
  }
  return out;
}

/* All columns of both sides, by name; those of one side are NULL for rows of the other. */
static gen_query union_by_name(generator *g, const gen_wish *wish) {
  gen_wish inner = {.depth = wish->depth - 1, .most_rows = wish->most_rows};
  gen_query left = gen_select(g, &inner), right = gen_select(g, &inner), out = left;
  out.n_columns = left.n_columns + right.n_columns;
  out.columns = arena_array(g->memory, out.n_columns, sizeof *out.columns);
  if (out.columns == NULL) {
    g->failed = true;
    return left;
  }
  memcpy(out.columns, left.columns, left.n_columns * sizeof *out.columns);
  memcpy(out.columns + left.n_columns, right.columns, right.n_columns * sizeof *out.columns);
  out.node = gen_write(g, GEN_QUERY, "(%n) UNION ALL BY NAME (%n)", left.node, right.node);
  out.rows = left.rows + right.rows;
  return out;
}

/* ---------------------------------------------------------------- with clauses */

/* Makes a name seen by what is generated next; false: there is no room. */
static bool push_table(generator *g, const char *name, const gen_query *q) {
  if (g->n_tables == g->capacity) {
    return false;
  }
  g->tables[g->n_tables++] =
      (gen_table){.name = name, .columns = q->columns, .n_columns = q->n_columns, .rows = q->rows};
  return true;
}

static gen_query with(generator *g, const gen_wish *wish) {
  static const char *const kinds[] = {"", "", "MATERIALIZED ", "NOT MATERIALIZED "};
  gen_wish inner = {.depth = wish->depth - 1, .most_rows = wish->most_rows};
  gen_query named = gen_any_query(g, &inner);
  const char *name = gen_name(g, "w");
  if (!push_table(g, name, &named)) {
    return gen_select(g, wish);
  }
  gen_wish rest = *wish;
  rest.depth--;
  gen_query out = gen_select(g, &rest);
  g->n_tables--;
  out.node =
      gen_write(g, GEN_QUERY, "WITH %s AS %s(%n) %n", name, kinds[gen_below(g, 4)], named.node, out.node);
  return out;
}

static gen_node *recursion(generator *g, const char *name) {
  gen_scope s = {0};
  gen_node *table = gen_from_table(g, &s, 3000);
  const gen_column *a = NULL, *b = NULL;
  for (size_t i = 0; i < s.n_columns; i++) {
    if (s.columns[i].type == GEN_INT) {
      a = a == NULL || gen_chance(g, 50) ? &s.columns[i] : a;
      b = b == NULL || gen_chance(g, 50) ? &s.columns[i] : b;
    }
  }
  if (a == NULL || gen_chance(g, 50)) {
    return gen_write(g, GEN_QUERY, "SELECT (n * 3 + 1) %s 17, s + 1 FROM %s WHERE s < %d", "%", name,
                     (int)gen_below(g, 5));
  }
  return gen_write(g, GEN_QUERY,
                   "SELECT (%n %s 17)::BIGINT, %s.s + 1 FROM %s JOIN %n ON %s.n = %n WHERE %s.s < 3", a->node,
                   "%", name, name, table, name, b->node, name);
}

static gen_query with_recursive(generator *g, const gen_wish *wish) {
  gen_scope s = {0};
  gen_node *from = gen_from(g, &s, 0, 2000);
  gen_node *start = gen_expression(g, &s, GEN_INT, 1);
  const char *name = gen_name(g, "w");
  gen_column *columns = arena_array(g->memory, 2, sizeof *columns);
  if (columns == NULL) {
    g->failed = true;
    return gen_select(g, wish);
  }
  columns[0] = (gen_column){.name = "n", .type = GEN_INT, .most = 17, .distinct = 17};
  columns[1] = (gen_column){.name = "s", .type = GEN_INT, .most = 5, .distinct = 5};
  gen_query named = {.columns = columns, .n_columns = 2, .rows = 150};
  if (!push_table(g, name, &named)) {
    return gen_select(g, wish);
  }
  gen_wish rest = *wish;
  rest.depth--;
  gen_node *step = recursion(g, name);
  gen_query out = gen_select(g, &rest);
  g->n_tables--;
  out.node = gen_write(
      g, GEN_QUERY, "WITH RECURSIVE %s(n, s) AS (SELECT DISTINCT (%n %s 17)::BIGINT, 0 FROM %n UNION %n) %n",
      name, start, "%", from, step, out.node);
  return out;
}

gen_query gen_any_query(generator *g, const gen_wish *wish) {
  size_t kind = gen_below(g, 100);
  gen_query out;
  g->queries++;
  if (wish->depth == 0 || g->queries > QUERIES_MOST || wish->outer != NULL || kind >= 38) {
    out = gen_select(g, wish);
  } else if (kind < 16) {
    out = set_operation(g, wish);
  } else if (kind < 19 && wish->types == NULL) {
    out = union_by_name(g, wish);
  } else if (kind < 33) {
    out = with(g, wish);
  } else {
    out = with_recursive(g, wish);
  }
  finish(g, &out, wish);
  return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FROM clauses of generated queries: tables, joins of every kind, derived tables,
 * VALUES, UNNEST and LATERAL. Sizes are estimated, so that no join grows without bound.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

#include <string.h>

static const char *quoted(generator *g, const char *name) {
  return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name) ? name
                                                                               : gen_text(g, "\"%s\"", name);
}

/* Adds columns under an alias. */
static void add_columns(generator *g, gen_scope *s, const char *alias, const gen_column *columns, size_t n) {
  for (size_t i = 0; i < n; i++) {
    gen_column c = columns[i];
    c.node = gen_write(g, GEN_PART, "%s.%s", alias, quoted(g, c.name));
    gen_scope_add(g, s, &c);
  }
}

gen_node *gen_from_table(generator *g, gen_scope *s, double most_rows) {
  const gen_table *t = NULL;
  for (unsigned tries = 0; tries < 12 && (t == NULL || t->rows > most_rows); tries++) {
    bool is_named = g->n_tables > g->n_data_tables && gen_chance(g, 60);
    t = is_named ? &g->tables[g->n_data_tables + gen_below(g, g->n_tables - g->n_data_tables)]
                 : &g->tables[gen_below(g, g->n_data_tables)];
  }
  if (t->rows > most_rows && t >= g->tables + g->n_data_tables) {
    t = &g->tables[0];
  }
  const char *alias = gen_name(g, "t");
  add_columns(g, s, alias, t->columns, t->n_columns);
  s->rows = t->rows;
  if (t->rows <= most_rows) {
    return gen_write(g, GEN_RELATION, "%s AS %s", t->name, alias);
  }
  s->rows = most_rows; /* the first column of a table is the number of its row */
  return gen_write(g, GEN_RELATION, "(FROM %s WHERE %s BETWEEN 0 AND %d) AS %s", t->name,
                   quoted(g, t->columns[0].name), (int)most_rows, alias);
}

/* ----------------------------------------------------------- other relations */

static gen_node *from_values(generator *g, gen_scope *s) {
  const char *alias = gen_name(g, "v");
  gen_node *rows = gen_list(g, ", ");
  gen_type types[2] = {gen_any_type(g, NULL), GEN_INT};
  size_t n = 1 + gen_below(g, 4);
  for (size_t i = 0; i < n; i++) {
    gen_add(g, rows, gen_write(g, GEN_PART, "(%n, %n)", gen_literal(g, types[0]), gen_literal(g, types[1])));
  }
  gen_column columns[2] = {{.name = "a", .type = types[0], .most = 1001, .distinct = (double)n},
                           {.name = "b", .type = types[1], .most = 1001, .distinct = (double)n}};
  add_columns(g, s, alias, columns, 2);
  s->rows = (double)n;
  return gen_write(g, GEN_RELATION, "(VALUES %n) AS %s(a, b)", rows, alias);
}

static gen_node *from_range(generator *g, gen_scope *s) {
  const char *alias = gen_name(g, "r");
  int n = (int)gen_below(g, 60);
  gen_column n_column = {.name = "n", .type = GEN_INT, .most = 60, .distinct = n};
  add_columns(g, s, alias, &n_column, 1);
  s->rows = n;
  return gen_write(g, GEN_RELATION, "range(%d) AS %s(n)", n, alias);
}

static gen_node *from_query(generator *g, gen_scope *s, unsigned depth, double most_rows) {
  const char *alias = gen_name(g, "q");
  gen_wish wish = {.depth = depth - 1, .most_rows = most_rows};
  gen_query query = gen_any_query(g, &wish);
  add_columns(g, s, alias, query.columns, query.n_columns);
  s->rows = query.rows;
  return gen_write(g, GEN_RELATION, "(%n) AS %s", query.node, alias);
}

/* Columns of a table under new names, and as text "t.a AS b". */
static gen_node *renamed(generator *g, const char *alias, const gen_table *t, gen_column *out, size_t *n) {
  gen_node *list = gen_list(g, ", ");
  list->is_fixed = true;
  for (size_t i = 1; i < t->n_columns && i < 4; i++) {
    out[*n] = t->columns[i];
    out[*n].name = gen_name(g, "u");
    gen_add(g, list,
            gen_write(g, GEN_PART, "%s.%s AS %s", alias, quoted(g, t->columns[i].name), out[*n].name));
    (*n)++;
  }
  return list;
}

static gen_node *from_using(generator *g, gen_scope *s) {
  static const char *const kinds[] = {"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"};
  const gen_table *a = &g->tables[gen_below(g, g->n_data_tables)],
                  *b = &g->tables[gen_below(g, g->n_data_tables)];
  const char *alias = gen_name(g, "j");
  gen_column columns[8] = {a->columns[0]};
  size_t n = 1;
  gen_node *left = renamed(g, "a", a, columns, &n), *right = renamed(g, "b", b, columns, &n);
  add_columns(g, s, alias, columns, n);
  s->rows = a->rows + b->rows;
  return gen_write(g, GEN_RELATION, "(SELECT id, %n, %n FROM %s AS a %s %s AS b USING (id)) AS %s", left,
                   right, a->name, kinds[gen_below(g, 4)], b->name, alias);
}

/* Two numbers of a row become two rows. */
static gen_node *from_unpivot(generator *g, gen_scope *s) {
  const gen_table *t = &g->tables[gen_below(g, g->n_data_tables)];
  const gen_column *c = NULL;
  for (size_t i = 1; i < t->n_columns; i++) {
    c = t->columns[i].type == GEN_INT && t->columns[i].most < 1e9 ? &t->columns[i] : c;
  }
  if (c == NULL || t->rows > 3000) {
    return from_values(g, s);
  }
  const char *alias = gen_name(g, "p");
  gen_column columns[3] = {t->columns[0],
                           {.name = "n", .type = GEN_TEXT, .distinct = 2},
                           {.name = "v", .type = GEN_INT, .most = 1e9, .distinct = c->distinct}};
  columns[0].distinct /= 2;
  add_columns(g, s, alias, columns, 3);
  s->rows = 2 * t->rows;
  return gen_write(
      g, GEN_RELATION,
      "(FROM (SELECT id, id::BIGINT AS i, %s::BIGINT AS c FROM %s) UNPIVOT %s(v FOR n IN (i, c))) AS %s",
      quoted(g, c->name), t->name, gen_chance(g, 50) ? "INCLUDE NULLS " : "", alias);
}

static gen_node *from_one(generator *g, gen_scope *s, unsigned depth, double most_rows) {
  size_t kind = gen_below(g, 100);
  if (kind < 5) {
    return from_values(g, s);
  }
  if (kind < 8) {
    return from_range(g, s);
  }
  if (kind < 13 && most_rows >= 5000) {
    return kind < 11 ? from_using(g, s) : from_unpivot(g, s);
  }
  return kind < 30 && depth > 0 && g->queries < 8 ? from_query(g, s, depth, most_rows)
                                                  : gen_from_table(g, s, most_rows);
}

/* --------------------------------------------------------------------- joins */

typedef struct join {
  const gen_scope *left, *right;
  gen_scope both; /* what a condition sees */
  unsigned depth;
} join;

static void add_all(generator *g, gen_scope *to, const gen_scope *from) {
  for (size_t i = 0; i < from->n_columns; i++) {
    gen_scope_add(g, to, &from->columns[i]);
  }
}

/* Columns of one class, a pair of which rows of both sides may share; false: none that keeps the result small. */
static bool find_keys(generator *g, const join *j, double most_rows, const gen_column **left,
                      const gen_column **right) {
  for (unsigned tries = 0; tries < 40; tries++) {
    *left = gen_any_column(g, j->left);
    *right = gen_any_column(g, j->right);
    if (*left == NULL || *right == NULL || (*left)->type != (*right)->type || (*left)->type == GEN_BOOL) {
      continue;
    }
    double distinct = (*left)->distinct > (*right)->distinct ? (*left)->distinct : (*right)->distinct;
    if (j->left->rows * j->right->rows / (distinct < 1 ? 1 : distinct) <= most_rows) {
      return true;
    }
  }
  return false;
}

static double joined_rows(const join *j, const gen_column *left, const gen_column *right) {
  double distinct = left->distinct > right->distinct ? left->distinct : right->distinct;
  return j->left->rows * j->right->rows / (distinct < 1 ? 1 : distinct);
}

static gen_node *equality(generator *g, const join *j, const gen_column *left, const gen_column *right) {
  bool is_small = j->left->rows * j->right->rows < 1e5;
  if (is_small && gen_chance(g, 12)) {
    return gen_write(g, GEN_PART, "%n IS NOT DISTINCT FROM %n", left->node, right->node);
  }
  if (left->type == GEN_TEXT && is_small && gen_chance(g, 15)) {
    return gen_write(g, GEN_PART, "%n COLLATE NOCASE = %n", left->node, right->node);
  }
  if (left->type == GEN_INT && gen_chance(g, 15) && left->most < 1e9 && right->most < 1e9) {
    return gen_write(g, GEN_PART, "%n::BIGINT + 1 = %n::BIGINT - %d", left->node, right->node,
                     (int)gen_below(g, 3));
  }
  return gen_write(g, GEN_PART, gen_chance(g, 50) ? "%n = %n" : "(%n) = (%n)", left->node, right->node);
}

static gen_node *and_more(generator *g, const join *j) {
  return gen_chance(g, 25) ? gen_write(g, GEN_OPTION, " AND %n",
                                       gen_expression(g, &j->both, GEN_BOOL, j->depth > 0 ? 1 : 0))
                           : gen_write(g, GEN_PART, "");
}

/* "a = b AND …", or for few rows a condition without equality; NULL: neither is to be had. */
static gen_node *condition(generator *g, join *j, double most_rows, double *rows) {
  const gen_column *left, *right;
  double product = j->left->rows * j->right->rows;
  if (product <= most_rows && gen_chance(g, 20)) {
    *rows = product;
    return gen_chance(g, 60) && find_keys(g, j, 1e30, &left, &right)
               ? gen_write(g, GEN_PART, "%n %s %n%n", left->node, gen_chance(g, 50) ? "<" : ">=", right->node,
                           and_more(g, j))
               : gen_write(g, GEN_PART, "%n", gen_expression(g, &j->both, GEN_BOOL, 1));
  }
  if (!find_keys(g, j, most_rows, &left, &right)) {
    return NULL;
  }
  *rows = joined_rows(j, left, right);
  return gen_write(g, GEN_PART, "%n%n", equality(g, j, left, right), and_more(g, j));
}

static gen_node *semi_or_anti(generator *g, gen_scope *s, const gen_scope *right, gen_node *nodes[2]) {
  join j = {.left = s, .right = right, .both = {.is_closed = true}};
  double rows = 0;
  add_all(g, &j.both, s);
  add_all(g, &j.both, right);
  gen_node *on = condition(g, &j, 2e6, &rows);
  return on == NULL ? nodes[0]
                    : gen_write(g, GEN_RELATION, "%n %s JOIN %n ON %n", nodes[0],
                                gen_chance(g, 50) ? "SEMI" : "ANTI", nodes[1], on);
}

/* The nearest row of the right side: one for each time, so that none ties. */
static gen_node *asof(generator *g, gen_scope *s, gen_node *left) {
  gen_scope right = {0};
  gen_node *table = gen_from_table(g, &right, 5000);
  join j = {.left = s, .right = &right};
  const gen_column *l, *r;
  if (!find_keys(g, &j, 1e30, &l, &r) || l->type > GEN_TIMESTAMPTZ ||
      (l->type == GEN_FLOAT && l->exactness == GEN_WILD)) {
    return left;
  }
  const char *alias = gen_name(g, "a");
  gen_column count = {.name = "n", .type = GEN_INT, .most = 1e9, .distinct = 50};
  gen_column key = {
      .name = "k", .type = r->type, .most = r->most, .exactness = r->exactness, .distinct = r->distinct};
  static const char *const comparisons[] = {">=", ">", "<=", "<"};
  const char *cast =
      l->type == GEN_INT ? "::HUGEINT" : ""; /* of mixed widths DuckDB 1.5.5 fails with INTERNAL */
  gen_node *out =
      gen_write(g, GEN_RELATION,
                "%n ASOF %sJOIN (SELECT %n%s AS k, count(*) AS n FROM %n GROUP BY ALL) AS %s ON %n%s %s %s.k",
                left, gen_chance(g, 50) ? "LEFT " : "", r->node, cast, table, alias, l->node, cast,
                comparisons[gen_below(g, 4)], alias);
  add_columns(g, s, alias, &count, 1);
  add_columns(g, s, alias, &key, 1);
  return out;
}

static gen_node *lateral(generator *g, gen_scope *s, gen_node *left, unsigned depth) {
  const char *alias = gen_name(g, "l");
  if (s->rows > 400 || depth == 0 || gen_chance(g, 30)) { /* elements of a list */
    gen_column x = {.name = "x", .type = GEN_INT, .most = 2147483648.0, .distinct = 20};
    gen_node *list = gen_expression(g, s, GEN_INTS, 1);
    add_columns(g, s, alias, &x, 1);
    s->rows *= 3;
    return gen_write(g, GEN_RELATION, "%n CROSS JOIN unnest(%n) AS %s(x)", left, list, alias);
  }
  gen_wish wish = {.outer = s, .depth = depth - 1, .most_rows = 50};
  gen_query query = gen_select(g, &wish);
  const char *format =
      gen_chance(g, 50) ? "%n CROSS JOIN LATERAL (%n) AS %s" : "%n LEFT JOIN LATERAL (%n) AS %s ON true";
  gen_node *out = gen_write(g, GEN_RELATION, format, left, query.node, alias);
  add_columns(g, s, alias, query.columns, query.n_columns);
  s->rows *= query.rows < 1 ? 1 : query.rows;
  return out;
}

/* Joins one relation more to those of `s`. */
static gen_node *join_one(generator *g, gen_scope *s, gen_node *left, unsigned depth, double most_rows) {
  static const char *const kinds[] = {"JOIN",      "JOIN",       "JOIN",     "LEFT JOIN",
                                      "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"};
  size_t kind = gen_below(g, 100);
  bool is_inner = s->outer != NULL; /* DuckDB takes no other joins where outer columns may be named */
  if (is_inner) {
    kind = 27 + kind % 60;
  }
  if (kind < 7) {
    return asof(g, s, left);
  }
  if (kind < 15) {
    return lateral(g, s, left, depth);
  }
  gen_scope right = {0};
  gen_node *nodes[2] = {left, from_one(g, &right, depth, most_rows)};
  if (kind < 27) {
    return semi_or_anti(g, s, &right, nodes);
  }
  const char *word = is_inner ? "JOIN" : kinds[gen_below(g, sizeof kinds / sizeof kinds[0])];
  join j = {.left = s, .right = &right, .depth = depth};
  j.both.is_closed = strcmp(word, "JOIN") != 0; /* no subqueries in their conditions */
  add_all(g, &j.both, s);
  add_all(g, &j.both, &right);
  double rows = s->rows * right.rows;
  gen_node *out = NULL;
  if (kind < 34 && rows <= most_rows) {
    out = gen_write(g, GEN_RELATION, "%n CROSS JOIN %n", left, nodes[1]);
  } else {
    gen_node *on = condition(g, &j, most_rows, &rows);
    if (on == NULL) {
      return left;
    }
    out = gen_write(g, GEN_RELATION, "%n %s %n ON %n", left, word, nodes[1], on);
  }
  double sum = s->rows + right.rows; /* of rows without a partner */
  s->rows = rows > sum ? rows : sum;
  add_all(g, s, &right);
  return out;
}

gen_node *gen_from(generator *g, gen_scope *s, unsigned depth, double most_rows) {
  gen_node *out = from_one(g, s, depth, most_rows);
  size_t joins = gen_chance(g, 40) ? 0 : gen_below(g, 3) + (depth > 1 ? 1 : 0);
  while (joins-- > 0) {
    out = join_one(g, s, out, depth, most_rows);
  }
  return out;
}

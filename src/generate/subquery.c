/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subqueries in expressions of generated queries: IN, ANY, ALL, EXISTS and scalars,
 * with and without columns of the query around them.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

/* Outer rows × inner rows from which no subquery is made that compares all with all. */
#define PRODUCT_MOST 3e6
#define INNER_ROWS_MOST 3000

/* A table, and a condition over it that may name outer columns. */
typedef struct inner {
  gen_scope scope;
  gen_node *from, *where;
} inner;

/* "inner = outer" of one class; NULL: there are none. */
static gen_node *correlation(generator *g, const gen_scope *in, const gen_scope *out) {
  for (unsigned tries = 0; tries < 20; tries++) {
    const gen_column *a = gen_any_column(g, in), *b = gen_any_column(g, out);
    if (a != NULL && b != NULL && a->type == b->type) {
      const char *comparison = gen_chance(g, 70)                     ? "="
                               : in->rows * out->rows < PRODUCT_MOST ? (gen_chance(g, 50) ? "<" : "<>")
                                                                     : "=";
      return gen_write(g, GEN_OPTION, " WHERE %n %s %n", a->node, comparison, b->node);
    }
  }
  return NULL;
}

static inner make_inner(generator *g, const gen_scope *s, bool correlated) {
  inner in = {0};
  in.from = gen_from_table(g, &in.scope, INNER_ROWS_MOST);
  if (correlated) {
    in.where = correlation(g, &in.scope, s);
  } else if (gen_chance(g, 60)) {
    in.where = gen_write(g, GEN_OPTION, " WHERE %n", gen_expression(g, &in.scope, GEN_BOOL, 1));
  }
  in.where = in.where == NULL ? gen_write(g, GEN_PART, "") : in.where;
  return in;
}

static gen_node *typed(gen_node *n, gen_type type, const gen_node *like) {
  n->type = type;
  n->most = like == NULL ? 1 : like->most;
  n->exactness = like == NULL ? GEN_EXACT : like->exactness;
  return n;
}

gen_node *gen_predicate_of_subquery(generator *g, const gen_scope *s, unsigned depth) {
  g->queries++;
  inner in = make_inner(g, s, gen_chance(g, 35));
  const gen_column *c = gen_any_column(g, &in.scope);
  if (c == NULL || gen_chance(g, 25)) {
    return typed(gen_write(g, GEN_EXPRESSION, "%s(SELECT %s FROM %n%n)",
                           gen_chance(g, 30) ? "NOT EXISTS " : "EXISTS ", gen_chance(g, 50) ? "1" : "*",
                           in.from, in.where),
                 GEN_BOOL, NULL);
  }
  gen_node *left = gen_expression(g, s, c->type, depth > 0 ? 1 : 0);
  if (gen_chance(g, 10)) {
    return typed(gen_write(g, GEN_EXPRESSION, "((%n, %n) %s (SELECT %n, %s FROM %n%n))", left,
                           gen_expression(g, s, GEN_INT, 0), gen_chance(g, 50) ? "IN" : "NOT IN", c->node,
                           "1", in.from, in.where),
                 GEN_BOOL, NULL);
  }
  static const char *const operators[] = {"IN",     "IN",    "NOT IN", "NOT IN", "= ANY",
                                          "<> ALL", "< ANY", ">= ALL", "<> ANY", "= ALL"};
  const char *operator= operators[gen_below(g, s->rows * in.scope.rows < PRODUCT_MOST ? 10 : 6)];
  return typed(gen_write(g, GEN_EXPRESSION, "(%n %s (SELECT %n FROM %n%n))", left, operator, c->node, in.from,
                         in.where),
               GEN_BOOL, NULL);
}

gen_node *gen_scalar_subquery(generator *g, const gen_scope *s, gen_type type, unsigned depth) {
  (void)depth;
  g->queries++;
  inner in = make_inner(g, s, gen_chance(g, 45));
  gen_node *value = NULL;
  for (size_t i = 0; i < in.scope.n_columns && value == NULL; i++) {
    if (in.scope.columns[i].type == type && gen_chance(g, 60)) {
      value = typed(
          gen_write(g, GEN_EXPRESSION, "%s(%n)", gen_chance(g, 50) ? "min" : "max", in.scope.columns[i].node),
          type, NULL);
      value->most = in.scope.columns[i].most;
      value->exactness = in.scope.columns[i].exactness;
    }
  }
  value = value == NULL ? gen_aggregate(g, &in.scope, type) : value;
  return value == NULL
             ? NULL
             : typed(gen_write(g, GEN_EXPRESSION, "(SELECT %n FROM %n%n)", value, in.from, in.where), type,
                     value);
}

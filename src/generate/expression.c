/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions of generated queries: by the rows of generate.def, columns and
 * literals. Subqueries in them are in subquery.c.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

#include <ctype.h>
#include <float.h>
#include <string.h>

#define GEN_ENUM_TYPE "ENUM('red', 'green', 'blue', '')"
#define GEN_STRUCT_TYPE "STRUCT(a INTEGER, b VARCHAR)"
/* Numbers up to here may be added and multiplied as BIGINT or DECIMAL, larger ones are made smaller first. */
#define NEAR 1e6
/* Sums up to here fit HUGEINT and DECIMAL(38, 6). */
#define SUM_MOST 1e28

typedef struct row {
  gen_type type;
  const char *template;
  double most;
  gen_exactness exactness; /* at best */
  gen_need need;           /* of a window */
  size_t weight;
} row;

static const row expressions[] = {
#define GEN_EXPRESSION(type, template, most, weight) \
  {type, template, most, GEN_EXACT, GEN_NEEDS_NOTHING, weight},
#define GEN_ROUNDING(type, template, most, weight) \
  {type, template, most, GEN_ROUNDED, GEN_NEEDS_NOTHING, weight},
#define GEN_WILDING(type, template, most, weight) {type, template, most, GEN_WILD, GEN_NEEDS_NOTHING, weight},
#define GEN_AGGREGATE(type, template, most, weight)
#define GEN_WINDOW(type, template, most, need, weight)
#include "generate.def"
};
static const row aggregates[] = {
#define GEN_EXPRESSION(type, template, most, weight)
#define GEN_ROUNDING(type, template, most, weight)
#define GEN_WILDING(type, template, most, weight)
#define GEN_AGGREGATE(type, template, most, weight) \
  {type, template, most, GEN_EXACT, GEN_NEEDS_NOTHING, weight},
#define GEN_WINDOW(type, template, most, need, weight)
#include "generate.def"
};
static const row windows[] = {
#define GEN_EXPRESSION(type, template, most, weight)
#define GEN_ROUNDING(type, template, most, weight)
#define GEN_WILDING(type, template, most, weight)
#define GEN_AGGREGATE(type, template, most, weight)
#define GEN_WINDOW(type, template, most, need, weight) \
  {type, template, most, GEN_EXACT, GEN_NEEDS_##need, weight},
#include "generate.def"
};

static const struct rows {
  const row *rows;
  size_t n;
} tables[] = {
    [GEN_OF_EXPRESSIONS] = {expressions, sizeof expressions / sizeof expressions[0]},
    [GEN_OF_AGGREGATES] = {aggregates, sizeof aggregates / sizeof aggregates[0]},
    [GEN_OF_WINDOWS] = {windows, sizeof windows / sizeof windows[0]},
};

/* ---------------------------------------------------------------- literals */

enum { LITERALS = 6 };
/* The first is the plain one. */
static const char *const literals[GEN_TYPES][LITERALS] = {
    [GEN_BOOL] = {"true", "false", "NULL::BOOLEAN"},
    [GEN_INT] = {"1", "NULL::INTEGER", "0", "(-3)::TINYINT", "20::UBIGINT", "5::HUGEINT"},
    [GEN_DECIMAL] = {"1.0", "0.50", "(-2.5)", "NULL::DECIMAL(9,2)", "10::DECIMAL(18,4)", "1000.125"},
    [GEN_FLOAT] = {"1::DOUBLE", "(-0.25)::FLOAT", "2.5::DOUBLE", "0::FLOAT", "NULL::DOUBLE", "4::FLOAT"},
    [GEN_TEXT] = {"'a'", "''", "'b'", "'Ä'", "NULL::VARCHAR", "'it''s'"},
    [GEN_BLOB] = {"'abc'::BLOB", "'\\x00\\xFF'::BLOB", "''::BLOB"},
    [GEN_UUID] = {"'00000000-0000-0000-0000-000000000001'::UUID", "md5('5')::UUID", "NULL::UUID"},
    [GEN_ENUM] = {"'red'::" GEN_ENUM_TYPE, "'blue'::" GEN_ENUM_TYPE, "NULL::" GEN_ENUM_TYPE},
    [GEN_DATE] = {"DATE '2000-02-29'", "DATE '1999-12-31'", "NULL::DATE", "DATE '2024-03-01'"},
    [GEN_TIME] = {"TIME '12:00:00'", "TIME '00:00:00.000001'", "NULL::TIME"},
    [GEN_TIMESTAMP] = {"TIMESTAMP '2000-02-29 00:00:00'", "TIMESTAMP '2000-03-01 12:00:00'",
                       "NULL::TIMESTAMP"},
    [GEN_TIMESTAMPTZ] = {"TIMESTAMPTZ '2021-03-28 01:00:00+00'", "NULL::TIMESTAMPTZ"},
    [GEN_INTERVAL] = {"INTERVAL '1 day'", "INTERVAL '3 seconds'", "NULL::INTERVAL"},
    [GEN_INTS] = {"[1]", "[]::INTEGER[]", "[3, NULL, -1]", "NULL::INTEGER[]"},
    [GEN_TEXTS] = {"['a']", "[]::VARCHAR[]", "['', NULL, 'ä']", "NULL::VARCHAR[]"},
    [GEN_STRUCT] = {"{'a': 1, 'b': 'a'}", "{'a': NULL::INTEGER, 'b': ''}", "NULL::" GEN_STRUCT_TYPE},
    [GEN_MAP] = {"MAP {'k': 1}", "NULL::MAP(VARCHAR, INTEGER)", "MAP {'l': 2, 'k': 0}"},
    [GEN_ODD] = {"NULL"},
    [GEN_APPROX] = {"1.5::DOUBLE"},
};

const char *gen_plain_literal(gen_type type) {
  return literals[type][0];
}

gen_node *gen_literal(generator *g, gen_type type) {
  size_t n = 0;
  while (n < LITERALS && literals[type][n] != NULL) {
    n++;
  }
  gen_node *out = type == GEN_INT && gen_chance(g, 60)
                      ? gen_write(g, GEN_EXPRESSION, "(%d)", (int)gen_below(g, 24) - 8)
                      : gen_write(g, GEN_EXPRESSION, "%s", literals[type][gen_below(g, n)]);
  out->type = type;
  out->most = type == GEN_DECIMAL ? 1001 : 25;
  return out;
}

/* ----------------------------------------------------------------- columns */

void gen_scope_add(generator *g, gen_scope *s, const gen_column *c) {
  if (s->n_columns == s->capacity) {
    size_t capacity = s->capacity == 0 ? 8 : 2 * s->capacity;
    gen_column *columns = arena_array(g->memory, capacity, sizeof *columns);
    if (columns == NULL) {
      g->failed = true;
      return;
    }
    if (s->n_columns > 0) {
      memcpy(columns, s->columns, s->n_columns * sizeof *columns);
    }
    s->columns = columns;
    s->capacity = capacity;
  }
  s->columns[s->n_columns++] = *c;
}

bool gen_is_sortable(gen_type type) {
  return type != GEN_MAP && type != GEN_APPROX;
}

/* A column of that type; one of an outer query now and then. NULL: there is none. */
static const gen_column *column_of(generator *g, const gen_scope *s, gen_type type) {
  for (; s != NULL; s = s->outer) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_columns; i++) {
      n += s->columns[i].type == type ? 1 : 0;
    }
    if (n == 0 || (s->outer != NULL && gen_chance(g, 25))) {
      continue;
    }
    size_t chosen = gen_below(g, n);
    for (size_t i = 0; i < s->n_columns; i++) {
      if (s->columns[i].type == type && chosen-- == 0) {
        return &s->columns[i];
      }
    }
  }
  return NULL;
}

static gen_node *column_node(generator *g, const gen_column *c) {
  gen_node *out = gen_write(g, GEN_EXPRESSION, "%n", c->node);
  out->type = c->type;
  out->most = c->most;
  out->exactness = c->exactness;
  return out;
}

const gen_column *gen_any_column(generator *g, const gen_scope *s) {
  for (unsigned tries = 0; tries < 8 && s->n_columns > 0; tries++) {
    const gen_column *c = &s->columns[gen_below(g, s->n_columns)];
    if (gen_is_sortable(c->type)) {
      return c;
    }
  }
  return NULL;
}

gen_type gen_any_type(generator *g, const gen_scope *s) {
  if (s != NULL && gen_chance(g, 88)) {
    const gen_column *c = gen_any_column(g, s);
    if (c != NULL) {
      return c->type;
    }
  }
  static const gen_type usual[] = {GEN_INT, GEN_INT, GEN_TEXT, GEN_BOOL, GEN_DECIMAL, GEN_FLOAT, GEN_DATE};
  return gen_chance(g, 70) ? usual[gen_below(g, sizeof usual / sizeof usual[0])]
                           : (gen_type)gen_below(g, GEN_MAP);
}

/* -------------------------------------------------------------------- rows */

/* A row that is being made into an expression. */
typedef struct filling {
  const gen_scope *scope;
  const row *row;
  gen_type type, any; /* of '=' and of '?' */
  unsigned depth;
  gen_node *out;
  gen_node *made[9]; /* parts, for references back */
  size_t n_made;
  double largest, sum, product;
} filling;

static gen_node *near(generator *g, gen_node *n, const char *type) {
  gen_node *out = n->most > NEAR ? gen_write(g, GEN_EXPRESSION, "(%n %s 1009)::%s", n, "%", type)
                                 : gen_write(g, GEN_EXPRESSION, "%n::%s", n, type);
  out->type = n->type;
  out->most = n->most > NEAR ? 1009 : n->most;
  return out;
}

static gen_node *exact_float(generator *g, const filling *f) {
  gen_node *n = gen_expression(g, f->scope, GEN_FLOAT, f->depth);
  if (n->exactness == GEN_EXACT && n->most <= NEAR) {
    return n;
  }
  gen_node *out = gen_write(g, GEN_EXPRESSION, "(%n / 4)",
                            near(g, gen_expression(g, f->scope, GEN_INT, f->depth), "BIGINT"));
  out->type = GEN_FLOAT;
  out->most = NEAR;
  return out;
}

/* Over the elements of a list: a scope of x. */
static gen_node *of_element(generator *g, const filling *f) {
  gen_scope element = {.outer = f->scope, .is_closed = true};
  gen_column x = {.type = GEN_INT, .most = 2147483648.0, .distinct = 5, .node = gen_write(g, GEN_PART, "x")};
  gen_scope_add(g, &element, &x);
  return near(g, gen_expression(g, &element, GEN_INT, f->depth < 1 ? f->depth : 1), "BIGINT");
}

/* Literals are no keys of an order. */
static gen_node *key(generator *g, const gen_scope *s) {
  const gen_column *c = gen_any_column(g, s);
  return c != NULL ? column_node(g, c) : gen_write(g, GEN_PART, "coalesce(1)");
}

static gen_node *filter(generator *g, const gen_scope *s) {
  return gen_chance(g, 12) ? gen_write(g, GEN_OPTION, " FILTER (WHERE %n)", gen_expression(g, s, GEN_BOOL, 1))
                           : gen_write(g, GEN_PART, "");
}

static gen_type type_of_letter(char letter) {
  static const char letters[] = "bidfsBueDtTZvISRMo"; /* in the order of gen_type */
  const char *at = strchr(letters, letter);
  return at == NULL ? GEN_INT : (gen_type)(at - letters);
}

static gen_node *made_part(generator *g, filling *f, char letter) {
  switch (letter) {
    case 'a':
      return near(g, gen_expression(g, f->scope, GEN_INT, f->depth), "BIGINT");
    case 'c':
      return near(g, gen_expression(g, f->scope, GEN_DECIMAL, f->depth), "DECIMAL(12,3)");
    case 'g':
      return exact_float(g, f);
    case 'k':
      return key(g, f->scope);
    case 'F':
      return filter(g, f->scope);
    case 'l':
      return of_element(g, f);
    case '=':
      return gen_expression(g, f->scope, f->type, f->depth);
    case '?':
    case '!':
      return gen_expression(g, f->scope, f->any, f->depth);
    default:
      return gen_expression(g, f->scope, type_of_letter(letter), f->depth);
  }
}

/* Only parts of the type that is made say how large or exact it is. */
static void note_part(filling *f, const gen_node *part) {
  if (part->type == f->type || f->row->most < 0) {
    double most = part->most;
    f->largest = most > f->largest ? most : f->largest;
    f->sum += most;
    f->product *= most;
  }
  if (part->type == GEN_FLOAT && part->exactness > f->out->exactness) {
    f->out->exactness = part->exactness;
  }
}

static void add_part(generator *g, filling *f, char letter) {
  if (isdigit((unsigned char)letter)) {
    size_t i = (size_t)(letter - '1');
    gen_add(g, f->out, i < f->n_made ? f->made[i] : &g->nothing);
    return;
  }
  gen_node *part = made_part(g, f, letter);
  if (f->n_made < sizeof f->made / sizeof f->made[0]) {
    f->made[f->n_made++] = part;
  }
  note_part(f, part);
  gen_add(g, f->out, part);
}

static void fill_template(generator *g, filling *f) {
  const char *at = f->row->template;
  while (*at != '\0') {
    size_t length = strcspn(at, "$");
    if (length > 0) {
      gen_node *words = gen_node_new(g, GEN_WORDS);
      words->text = arena_strndup(g->memory, at, length);
      g->failed = g->failed || words->text == NULL;
      words->text = words->text == NULL ? "" : words->text;
      gen_add(g, f->out, words);
    }
    at += length;
    if (*at == '$') {
      add_part(g, f, at[1]);
      at += 2;
    }
  }
}

static double bound_of(const filling *f, gen_table_of which) {
  const double same = -1, sum = -2, product = -3;
  double most = f->row->most;
  if (most == sum && which != GEN_OF_EXPRESSIONS) {
    return f->largest * (f->scope->rows < 1 ? 1 : f->scope->rows);
  }
  return most == same ? f->largest : most == sum ? f->sum : most == product ? f->product : most;
}

static bool fits(const row *r, gen_type type) {
  return r->type == type || (r->type == GEN_TYPES && type != GEN_APPROX);
}

static const row *choose_row(generator *g, gen_type type, gen_table_of which) {
  const struct rows *table = &tables[which];
  size_t weights = 0;
  for (size_t i = 0; i < table->n; i++) {
    weights += fits(&table->rows[i], type) ? table->rows[i].weight : 0;
  }
  size_t chosen = weights == 0 ? 0 : gen_below(g, weights);
  for (size_t i = 0; i < table->n; i++) {
    size_t weight = fits(&table->rows[i], type) ? table->rows[i].weight : 0;
    if (chosen < weight) {
      return &table->rows[i];
    }
    chosen -= weight;
  }
  return NULL;
}

/* ODD ones may be. */
static bool is_nested(gen_type type) {
  return type == GEN_INTS || type == GEN_TEXTS || type == GEN_STRUCT || type == GEN_MAP || type == GEN_ODD;
}

gen_node *gen_from_row(generator *g, const gen_wanted *wanted, gen_need *need) {
  const row *r = choose_row(g, wanted->type, wanted->which);
  if (r == NULL) {
    return NULL;
  }
  filling f = {.scope = wanted->scope, .row = r, .type = wanted->type, .depth = wanted->depth, .product = 1};
  bool is_flat = strstr(r->template, "$!") != NULL;
  do {
    f.any = gen_any_type(g, wanted->scope);
  } while (!gen_is_sortable(f.any) || (is_flat && is_nested(f.any)));
  f.out = gen_node_new(g, GEN_EXPRESSION);
  f.out->type = wanted->type;
  f.out->exactness = r->exactness;
  fill_template(g, &f);
  f.out->most = bound_of(&f, wanted->which);
  *need = r->need;
  return f.out;
}

/* ------------------------------------------------------------------- door */

gen_node *gen_comparison(generator *g, const gen_scope *s) {
  static const char *const operators[] = {
      "=", "<>", "<", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};
  const gen_column *c = gen_any_column(g, s);
  if (c == NULL) {
    return gen_literal(g, GEN_BOOL);
  }
  gen_node *out = gen_chance(g, 20)
                      ? gen_write(g, GEN_EXPRESSION, "(%n IS NOT NULL)", c->node)
                      : gen_write(g, GEN_EXPRESSION, "(%n %s %n)", c->node,
                                  operators[gen_below(g, sizeof operators / sizeof operators[0])],
                                  gen_literal(g, c->type));
  out->type = GEN_BOOL;
  return out;
}

static gen_node *leaf(generator *g, const gen_scope *s, gen_type type) {
  const gen_column *c = gen_chance(g, 94) ? column_of(g, s, type) : NULL;
  if (c != NULL) {
    return column_node(g, c);
  }
  return type == GEN_BOOL && s != NULL ? gen_comparison(g, s) : gen_literal(g, type);
}

gen_node *gen_expression(generator *g, const gen_scope *s, gen_type type, unsigned depth) {
  bool has_column = s != NULL && column_of(g, s, type) != NULL;
  if (depth == 0 || s == NULL || gen_chance(g, has_column ? 45 : 10)) {
    return leaf(g, s, type);
  }
  if (!s->is_closed && gen_chance(g, 5)) {
    gen_node *subquery = type == GEN_BOOL ? gen_predicate_of_subquery(g, s, depth - 1)
                                          : gen_scalar_subquery(g, s, type, depth - 1);
    if (subquery != NULL) {
      return subquery;
    }
  }
  gen_need need;
  gen_wanted wanted = {s, type, GEN_OF_EXPRESSIONS, depth - 1};
  gen_node *out = gen_from_row(g, &wanted, &need);
  return out != NULL ? out : leaf(g, s, type);
}

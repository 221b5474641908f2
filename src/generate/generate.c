/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated queries by seed. Most have one right answer; a few fail on purpose, the
 * same way on both sides, and a few have no one answer.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"
#include "generate/generate_tables.h"

#include <string.h>

enum { FAILING_PERCENT = 3, INDETERMINATE_PERCENT = 2, EXPRESSIONS_MOST = 8, DEPTH = 3 };
#define ROWS_MOST 10000

/* Every row gets to what fails. */
static gen_node *failing(generator *g) {
  static const char *const formats[] = {
      "SELECT id, CAST(%n AS INTEGER) AS c FROM %n",
      "SELECT sum(9223372036854775800 + %n::BIGINT) AS c FROM %n",
      "SELECT CAST(%n::VARCHAR || 'x' AS DATE) AS c FROM %n",
      "SELECT (SELECT %n FROM %n) AS c",
      "SELECT %n + no_such AS c FROM %n",
      "SELECT error('told to: ' || left((%n)::VARCHAR, 0)) AS c FROM %n",
      "SELECT count(*) AS c, no_such(%n) FROM %n",
  };
  size_t kind = gen_below(g, sizeof formats / sizeof formats[0]);
  gen_scope s = {0};
  gen_node *from = gen_from_table(g, &s, 1e9);
  gen_node *value = kind == 0   ? gen_write(g, GEN_PART, "'x' || %n", gen_expression(g, &s, GEN_TEXT, 0))
                    : kind == 1 ? gen_write(g, GEN_PART, "abs(id)")
                                : gen_expression(g, &s, GEN_INT, 0);
  return gen_write(g, GEN_QUERY, formats[kind], value, from);
}

static gen_node *indeterminate(generator *g) {
  gen_scope s = {0};
  gen_node *from = gen_from_table(g, &s, 1e9);
  g->rows_only = true;
  return gen_chance(g, 50)
             ? gen_write(g, GEN_QUERY, "SELECT %n AS c FROM %n LIMIT %d",
                         gen_expression(g, &s, gen_any_type(g, &s), 1), from, (int)gen_below(g, 100))
             : gen_write(g, GEN_QUERY, "SELECT %n AS c, random() AS r FROM %n",
                         gen_expression(g, &s, gen_any_type(g, &s), 1), from);
}

static gen_node *make(generator *g) {
  size_t kind = gen_below(g, 100);
  if (kind < FAILING_PERCENT) {
    return failing(g);
  }
  if (kind < FAILING_PERCENT + INDETERMINATE_PERCENT) {
    return indeterminate(g);
  }
  gen_wish wish = {.depth = (unsigned)gen_below(g, DEPTH + 1), .most_rows = ROWS_MOST, .is_whole = true};
  return gen_any_query(g, &wish).node;
}

hf_status generate_query(const generated_tables *t, uint64_t seed, arena *a, generated_query *out,
                         hf_error *error) {
  generator g = {.memory = a,
                 .random = seed,
                 .n_tables = t->n,
                 .n_data_tables = t->n,
                 .capacity = t->n + EXPRESSIONS_MOST};
  g.tables = arena_array(a, g.capacity, sizeof *g.tables);
  buf text = {0};
  *out = (generated_query){0};
  if (g.tables == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a generated query");
  }
  for (size_t i = 0; i < t->n; i++) {
    g.tables[i] = t->tables[i].shape;
  }
  out->root = make(&g);
  gen_render(out->root, &text);
  out->sql = arena_strdup(a, buf_cstr(&text));
  out->rows_only = g.rows_only || (g.has_ties && strstr(buf_cstr(&text), "COLLATE") != NULL);
  bool failed = g.failed || text.failed || out->sql == NULL;
  buf_reset(&text);
  return failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a generated query") : HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging of steps: what becomes one query, what must not, and that it gives the same either way; how deep chains go.
 */
#include "support/build_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_exec(
      c,
      "COPY (SELECT i AS k, i % 3 AS g, 'n' || i AS name, [i, i + 1] AS l FROM range(10) t(i)) TO '@/p.parquet'");
  plan_name(c, "v", "FROM '@/p.parquet'");
  plan_name(c, "d", "SELECT 2 AS k");
  return 0;
}

/* The lowered text, with the view's own text as V. */
static const char *lowered_text(plan_case *c, const relation *r) {
  lowered l = plan_lowered(c, r);
  buf text = {0};
  for (size_t i = 0; i < l.n_pieces; i++) {
    buf_text(&text, l.pieces[i].text == NULL ? "P" : l.pieces[i].text);
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  return copy;
}

/* Queries behind the view's in the chain: "…), hf_r1 AS …", the last as it is. */
static void steps_become_as_few_queries_as_they_can(void **state) {
  static const char view[] = "WITH hf_r0 AS NOT MATERIALIZED (FROM P AS \"p\")";
  static const struct {
    const char *line, *text;
  } cases[] = {
      {"v >> filter: k > 1 >> filter: g = 0", " SELECT * FROM hf_r0 WHERE (\"k\" > 1) AND (\"g\" = 0)"},
      {"v >> project: k | g >> filter: k > 1",
       " SELECT \"k\" AS \"k\", \"g\" AS \"g\" FROM hf_r0 WHERE (\"k\" > 1)"},
      {"v >> project: k + 1 AS k >> project: k * 2 AS j", " SELECT ((\"k\" + 1) * 2) AS \"j\" FROM hf_r0"},
      {"v >> project: k AS g | g AS k >> filter: g > k",
       " SELECT \"k\" AS \"g\", \"g\" AS \"k\" FROM hf_r0 WHERE (\"k\" > \"g\")"},
      {"v >> project: k >> with: one = 1 >> project: k + one AS s",
       " SELECT (\"k\" + CAST(1 AS INTEGER)) AS \"s\" FROM hf_r0"},
      {"v >> drop: l >> rename: k = q >> filter: q > 1 >> project: q",
       " SELECT \"k\" AS \"q\" FROM hf_r0 WHERE (\"k\" > 1)"},
      {"v >> project: upper(name) AS u >> project: u || 'x' AS w",
       " SELECT (CAST(upper(\"name\") AS VARCHAR) || 'x') AS \"w\" FROM hf_r0"},
      /* used twice, and not cheap */
      {"v >> project: upper(name) AS u >> project: u || u AS w",
       ", hf_r1 AS NOT MATERIALIZED (SELECT (upper(\"name\")) AS \"u\" FROM hf_r0) SELECT (\"u\" || \"u\") AS \"w\" FROM hf_r1"},
      {"v >> project: k + 1 AS u >> project: u * u AS w",
       " SELECT ((\"k\" + 1) * (\"k\" + 1)) AS \"w\" FROM hf_r0"},
      /* volatile */
      {"v >> project: random() AS r >> project: r AS a | r AS b",
       ", hf_r1 AS NOT MATERIALIZED (SELECT (random()) AS \"r\" FROM hf_r0) SELECT \"r\" AS \"a\", \"r\" AS \"b\" FROM hf_r1"},
      {"v >> project: k | random() AS r >> filter: r > 0.5",
       ", hf_r1 AS NOT MATERIALIZED (SELECT \"k\" AS \"k\", (random()) AS \"r\" FROM hf_r0) SELECT * FROM hf_r1 WHERE (\"r\" > 0.5)"},
      {"v >> project: random() AS r >> with: s = r >> project: s",
       ", hf_r1 AS NOT MATERIALIZED (SELECT (random()) AS \"r\" FROM hf_r0) SELECT \"r\" AS \"s\" FROM hf_r1"},
      {"v >> project: k | random() AS r >> project: r | k + 1 AS k",
       " SELECT (random()) AS \"r\", (\"k\" + 1) AS \"k\" FROM hf_r0"},
      /* windows and rows */
      {"v >> project: k | sum(k) OVER () AS t >> filter: k > 2",
       ", hf_r1 AS NOT MATERIALIZED (SELECT \"k\" AS \"k\", (sum(\"k\") OVER ()) AS \"t\" FROM hf_r0) SELECT * FROM hf_r1 WHERE (\"k\" > 2)"},
      {"v >> filter: k > 2 >> project: sum(k) OVER () AS t",
       " SELECT (sum(\"k\") OVER ()) AS \"t\" FROM hf_r0 WHERE (\"k\" > 2)"},
      {"v >> project: k | unnest(l) AS u >> project: k",
       ", hf_r1 AS NOT MATERIALIZED (SELECT \"k\" AS \"k\", (unnest(\"l\")) AS \"u\" FROM hf_r0) SELECT \"k\" AS \"k\" FROM hf_r1"},
      /* a literal below TRY, a lambda, a sub-select: not looked into */
      {"v >> project: CAST(name AS INT) AS i >> project: TRY(i) AS j",
       ", hf_r1 AS NOT MATERIALIZED (SELECT (CAST(\"name\" AS INT)) AS \"i\" FROM hf_r0) SELECT (TRY(i)) AS \"j\" FROM hf_r1"},
      {"v >> project: k AS q | l >> project: list_transform(l, lambda k: k + q) AS t",
       ", hf_r1 AS NOT MATERIALIZED (SELECT \"k\" AS \"q\", \"l\" AS \"l\" FROM hf_r0) SELECT (list_transform(\"l\", lambda k: k + q)) AS \"t\" FROM hf_r1"},
      {"v >> sort: k DESC >> limit: 3,1", " SELECT * FROM hf_r0 ORDER BY (\"k\") DESC LIMIT 3 OFFSET 1"},
      {"v >> alias: a >> filter: a.k > 1", " SELECT * FROM hf_r0 WHERE (\"k\" > 1)"},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = steps_build(c, cases[i].line);
    const char *text = lowered_text(c, r);
    if (strncmp(text, view, strlen(view)) != 0 || strcmp(text + strlen(view), cases[i].text) != 0) {
      print_message("%s\nfound    %s\nexpected %s\n", cases[i].line, text, cases[i].text);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

/* Steps over columns k, g and x, and what they are over a query. */
static const struct {
  const char *step, *sql;
} STEPS[] = {
    {"with: k = k + g", "SELECT * REPLACE (k + g AS k) FROM (%s)"},
    {"project: g AS k | k AS g | x", "SELECT g AS k, k AS g, x FROM (%s)"},
    {"project: k + x AS k | g * 2 AS g | k AS x", "SELECT k + x AS k, g * 2 AS g, k AS x FROM (%s)"},
    {"filter: k > g - 9", "SELECT * FROM (%s) WHERE k > g - 9"},
    {"with: x = length(concat(k, 'x'))", "SELECT * REPLACE (length(concat(k, 'x')) AS x) FROM (%s)"},
    {"with: x = sum(k) OVER (PARTITION BY g)::BIGINT",
     "SELECT * REPLACE (sum(k) OVER (PARTITION BY g)::BIGINT AS x) FROM (%s)"},
    {"project: k | (SELECT max(w) FROM (VALUES (1), (g)) t(w)) AS g | x",
     "SELECT k, (SELECT max(w) FROM (VALUES (1), (g)) t(w)) AS g, x FROM (%s)"},
    {"project: k | list_sum(list_transform([g], lambda z: z + x))::BIGINT AS g | x",
     "SELECT k, list_sum(list_transform([g], lambda z: z + x))::BIGINT AS g, x FROM (%s)"},
    {"with: g = coalesce(nullif(g, 2), 5) | k = 1",
     "SELECT * REPLACE (coalesce(nullif(g, 2), 5) AS g, 1 AS k) FROM (%s)"},
    {"with: n = k >> drop: k >> rename: n = k >> project: k | g | x", "SELECT k, g, x FROM (%s)"},
    {"project: k | g | x | unnest([k, g]) AS u >> project: u AS k | g | x",
     "SELECT u AS k, g, x FROM (SELECT g, x, unnest([k, g]) AS u FROM (%s))"},
    {"sort: k | x >> limit: 7 >> filter: x >= 0",
     "SELECT * FROM (SELECT * FROM (%s) ORDER BY k, x LIMIT 7) WHERE x >= 0"},
};
enum { N_STEPS = sizeof STEPS / sizeof STEPS[0] };

static void expect_same(plan_case *c, const size_t *steps, size_t n) {
  const char *line = "v >> project: k | g | k % 4 AS x", *sql = "SELECT k, g, k % 4 AS x FROM v";
  for (size_t i = 0; i < n; i++) {
    const char *mark = strstr(STEPS[steps[i]].sql, "%s");
    line = arena_printf(c->memory, "%s >> %s", line, STEPS[steps[i]].step);
    sql = arena_printf(c->memory, "%.*s%s%s", (int)(mark - STEPS[steps[i]].sql), STEPS[steps[i]].sql, sql,
                       mark + 2);
  }
  relation *r = steps_build(c, line);
  lowered l = plan_lowered(c, r);
  const char *found =
      plan_rows(c, arena_printf(c->memory, "SELECT * FROM (%s) ORDER BY ALL", plan_whole_text(c, &l)));
  const char *wanted = plan_rows(c, arena_printf(c->memory, "SELECT * FROM (%s) ORDER BY ALL", sql));
  if (strcmp(found, wanted) != 0) {
    fail_msg("%s\n%s\n%s\n%s", line, plan_whole_text(c, &l), found, wanted);
  }
  relation_release(r);
}

static void any_steps_after_each_other_give_what_plain_duckdb_gives(void **state) {
  plan_case *c = *state;
  for (size_t i = 0; i < N_STEPS; i++) {
    for (size_t k = 0; k < N_STEPS; k++) {
      expect_same(c, (size_t[]){i, k}, 2);
    }
  }
  uint32_t seed = 7;
  for (size_t i = 0; i < 150; i++) {
    size_t steps[5];
    for (size_t k = 0; k < 5; k++) {
      seed = seed * 1664525 + 1013904223;
      steps[k] = (seed >> 8) % N_STEPS;
    }
    expect_same(c, steps, 5);
  }
}

/* Each value that is drawn comes out everywhere that it is named. */
static void volatile_value_is_drawn_once(void **state) {
  static const char *const lines[] = {
      "v >> with: r = random() >> with: a = r | b = r >> agg:  ; bool_and(a = b AND r = a) AS same",
      "v >> project: random() AS r >> project: r AS a | r + 0 AS b >> agg:  ; bool_and(a = b) AS same",
      "v >> with: r = random() >> filter: r < 0.5 >> agg:  ; coalesce(bool_and(r < 0.5), true) AS same",
      "v >> with: r = random() >> filter: r < 2 >> with: a = r >> rename: r = q >> agg:  ; bool_and(a = q) AS same",
      "v >> project: l | random() AS r >> project: unnest(l) AS u | r >> agg:  ; count(DISTINCT r) = 10 AS same",
      "v >> with: r = random() >> sort: r >> with: a = r >> agg:  ; bool_and(a = r) AS same",
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    relation *r = steps_build(c, lines[i]);
    assert_string_equal(steps_rows(c, r), plan_rows(c, "SELECT true AS same"));
    relation_release(r);
  }
}

/* A literal that stands for its column must not take another type there. */
static void literal_keeps_the_type_of_its_column(void **state) {
  static const struct {
    const char *line, *sql;
  } cases[] = {
      {"v >> project: k::TINYINT AS t | 1 AS one >> project: t + one AS s",
       "SELECT t + one AS s FROM (SELECT k::TINYINT AS t, 1 AS one FROM v)"},
      {"v >> project: 1 AS a >> project: a / 2 AS b | a::VARCHAR || 'x' AS c",
       "SELECT a / 2 AS b, a::VARCHAR || 'x' AS c FROM (SELECT 1 AS a FROM v)"},
      {"v >> project: coalesce(NULL, 1) AS a | k::UTINYINT AS u >> project: a + u AS s",
       "SELECT a + u AS s FROM (SELECT coalesce(NULL, 1) AS a, k::UTINYINT AS u FROM v)"},
      {"v >> project: '2020-01-01' AS d >> project: d = '2020-1-1' AS s",
       "SELECT d = '2020-1-1' AS s FROM (SELECT '2020-01-01' AS d FROM v)"},
      {"v >> project: [1, 2] AS q >> project: list_append(q, 3000000000) AS s",
       "SELECT list_append(q, 3000000000) AS s FROM (SELECT [1, 2] AS q FROM v)"},
      {"v >> project: 1.5 AS q | k >> project: q * k AS s",
       "SELECT q * k AS s FROM (SELECT 1.5 AS q, k FROM v)"},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = steps_build(c, cases[i].line);
    assert_string_equal(steps_rows(c, r), plan_rows(c, cases[i].sql));
    relation_release(r);
  }
}

static relation *chain(plan_case *c, size_t n, const char *(*step)(plan_case *c, size_t i)) {
  relation *r = steps_build(c, "v >> project: k AS x | g");
  for (size_t i = 0; r != NULL && i < n; i++) {
    r = step_add(c, r, step(c, i));
  }
  return r;
}

static const char *same_name(plan_case *c, size_t i) {
  (void)c;
  (void)i;
  return "with: x = x + 1";
}

static const char *new_name(plan_case *c, size_t i) {
  return arena_printf(c->memory, "with: c%zu = x + %zu", i, i);
}

static const char *all_kinds(plan_case *c, size_t i) {
  static const char *const kinds[] = {"with: x = x + 1", "filter: x > 3", "project: x | g", "with: y = x * 2",
                                      "drop: y"};
  (void)c;
  return kinds[i % 5];
}

static const char *costly(plan_case *c, size_t i) {
  (void)c;
  (void)i;
  return "project: length(concat(x, x)) AS x";
}

static void long_chain_is_planned(void **state) {
  static const struct {
    const char *(*step)(plan_case *c, size_t i);
    size_t n, most_uses;
  } cases[] = {{same_name, 2000, 200}, {new_name, 2000, 10}, {all_kinds, 2000, 100}, {costly, 900, 1000}};
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = chain(c, cases[i].n, cases[i].step);
    assert_non_null(r);
    lowered l = plan_lowered(c, r);
    assert_in_range(l.n_made_names, 1, cases[i].most_uses);
    schema columns;
    assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_OK);
    plan_traits traits;
    assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, &c->error), HF_OK);
    assert_false(traits.indeterminate);
    relation_release(r);
  }
}

static void chain_that_is_too_long_says_what_to_do(void **state) {
  plan_case *c = *state;
  relation *r = chain(c, 2398, same_name);
  assert_non_null(r);
  assert_non_null(r = step_add(c, r, "filter: x > 0"));
  assert_null(step_add(c, r, "filter: x > 0"));
  assert_int_equal(c->error.code, HF_E_LIMIT);
  assert_non_null(strstr(c->error.hint, "cache()"));
  r = steps_build(c, "v");
  size_t n = 0;
  for (relation *next = r; next != NULL && n < 1100; n++) { /* these cannot be merged */
    r = next;
    relation_retain(r);
    next = step_add(c, r, "project: length(concat(k, k)) AS k");
    relation_release(next == NULL ? NULL : r);
  }
  assert_in_range(n, 960, 1000);
  assert_int_equal(c->error.code, HF_E_LIMIT);
  assert_non_null(strstr(c->error.hint, "cache()"));
  lowered l = plan_lowered(c, r); /* the last that could be built can be planned */
  schema columns;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_OK);
  relation_release(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_become_as_few_queries_as_they_can),
      cmocka_unit_test(any_steps_after_each_other_give_what_plain_duckdb_gives),
      cmocka_unit_test(volatile_value_is_drawn_once),
      cmocka_unit_test(literal_keeps_the_type_of_its_column),
      cmocka_unit_test(long_chain_is_planned),
      cmocka_unit_test(chain_that_is_too_long_says_what_to_do),
  };
  return cmocka_run_group_tests(tests, open_case, plan_case_close);
}

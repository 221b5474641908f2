/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict reader: real plans of DuckDB are read; the same plans with one
 * word altered are refused, each with its code. Refusals are values: the only
 * error is lack of memory.
 */
#include "base/mem.h"
#include "tree/tree.h"
#include "support/oracle.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
  arena *a;
  const tree_node *root;
  tree_refusal refusal;
  hf_error error;
  hf_status status;
} reading;

static reading read_json(const char *json) {
  reading r = {.a = arena_new()};
  r.status = plan_tree_read(json, json == NULL ? 0 : strlen(json), r.a, &r.root, &r.refusal, &r.error);
  return r;
}

static void drop(reading *r) {
  hf_error_reset(&r->error);
  arena_free(r->a);
}

static void expect_refused(const char *json, tree_refusal_code code, const char *reason) {
  reading r = read_json(json);
  assert_int_equal(r.status, HF_OK);
  assert_null(r.root);
  if (r.refusal.code != code || strstr(r.refusal.reason, reason) == NULL) {
    fail_msg("refused as %s: %s; expected %s: %s", tree_refusal_name(r.refusal.code), r.refusal.reason,
             tree_refusal_name(code), reason);
  }
  drop(&r);
}

/* ------------------------------------------------------------- real plans */

static oracle *the_oracle;

static int open_oracle(void **state) {
  (void)state;
  the_oracle = oracle_open();
  free(oracle_run(the_oracle,
                  "CREATE TABLE t AS SELECT i AS a, i % 3 AS b, 'x' || i AS s, {'p': i, 'q': i} AS st "
                  "FROM range(10) r(i)"));
  free(oracle_run(the_oracle, "CREATE TABLE u AS SELECT * FROM t"));
  return 0;
}

static int close_oracle(void **state) {
  (void)state;
  oracle_close(the_oracle);
  return 0;
}

static char *plan_of(const char *sql) {
  size_t length = 0;
  char *error = NULL, *json = oracle_plan(the_oracle, sql, &length, &error);
  if (json == NULL) {
    fail_msg("%s: %s", sql, error);
  }
  return json;
}

/* The text with its first `from` replaced. */
static char *altered(const char *json, const char *from, const char *to) {
  const char *at = strstr(json, from);
  if (at == NULL) {
    fail_msg("%s is not in the plan", from);
  }
  size_t size = strlen(json) + strlen(to) + 1;
  char *text = malloc(size);
  assert_non_null(text);
  snprintf(text, size, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
  return text;
}

static void plan_of_a_query_becomes_typed_nodes(void **state) {
  (void)state;
  char *json = plan_of("SELECT b, count(*) AS n FROM t WHERE a > 3 GROUP BY b ORDER BY b");
  reading r = read_json(json);
  assert_int_equal(r.refusal.code, TREE_REFUSED_NONE);
  assert_int_equal(r.root->kind, TREE_ORDER);
  assert_int_equal(r.root->n_columns, 2);
  assert_int_equal(r.root->types[0]->kind, TYPE_BIGINT);
  const tree_node *aggregate = r.root->children[0];
  while (aggregate->kind == TREE_PROJECTION) {
    aggregate = aggregate->children[0];
  }
  assert_int_equal(aggregate->kind, TREE_AGGREGATE);
  assert_int_equal(aggregate->aggregate->n_groups, 1);
  assert_string_equal(aggregate->expressions[0]->call->name, "count_star");
  const tree_node *get = aggregate->children[0];
  assert_int_equal(get->kind, TREE_GET);
  assert_string_equal(get->scan->table, "t");
  assert_int_equal(get->scan->n_filters, 1);
  drop(&r);
  free(json);
}

/* ------------------------------------------------------------- alterations */

static const struct alteration {
  const char *name, *sql, *from, *to;
  tree_refusal_code code;
  const char *reason;
} alterations[] = {
    {"operator", "SELECT a + 1 FROM t", "LOGICAL_PROJECTION", "LOGICAL_WIDGET", TREE_REFUSED_OPERATOR,
     "LOGICAL_WIDGET"},
    {"class", "SELECT a + 1 FROM t", "\"expression_class\":\"BOUND_FUNCTION\"",
     "\"expression_class\":\"BOUND_WIDGET\"", TREE_REFUSED_EXPRESSION, "BOUND_WIDGET"},
    {"key of an operator", "SELECT a + 1 FROM t", "\"type\":\"LOGICAL_PROJECTION\"",
     "\"type\":\"LOGICAL_PROJECTION\",\"widget\":1", TREE_REFUSED_KEY, "widget"},
    {"key of an expression", "SELECT a + 1 FROM t", "\"is_operator\"", "\"widget\":1,\"is_operator\"",
     TREE_REFUSED_KEY, "widget"},
    {"key of a type", "SELECT a::DECIMAL(9,2) FROM t", "\"width\"", "\"widget\":0,\"width\"",
     TREE_REFUSED_KEY, "widget"},
    {"key of a value", "SELECT a + 1 FROM t", "\"is_null\"", "\"widget\":0,\"is_null\"", TREE_REFUSED_KEY,
     "widget"},
    {"key of a scan column", "SELECT a FROM t", "\"has_index\"", "\"widget\":0,\"has_index\"",
     TREE_REFUSED_KEY, "widget"},
    {"key of a filter", "SELECT a FROM t WHERE a > 3", "\"comparison_type\"",
     "\"widget\":0,\"comparison_type\"", TREE_REFUSED_KEY, "widget"},
    {"join type", "SELECT t.a FROM t JOIN u USING (a)", "\"join_type\":\"INNER\"", "\"join_type\":\"OUTER\"",
     TREE_REFUSED_VALUE, "OUTER"},
    {"comparison", "SELECT t.a FROM t JOIN u USING (a)", "\"comparison\":\"COMPARE_EQUAL\"",
     "\"comparison\":\"COMPARE_NEARLY\"", TREE_REFUSED_VALUE, "COMPARE_NEARLY"},
    {"filter type", "SELECT a FROM t WHERE a > 3", "CONSTANT_COMPARISON", "VECTOR_COMPARISON",
     TREE_REFUSED_VALUE, "VECTOR_COMPARISON"},
    {"null order", "SELECT a FROM t ORDER BY a", "NULLS LAST", "NULLS APART", TREE_REFUSED_VALUE,
     "NULLS APART"},
    {"window function", "SELECT rank() OVER (ORDER BY a) FROM t", "\"type\":\"WINDOW_RANK\"",
     "\"type\":\"WINDOW_WIDGET\"", TREE_REFUSED_VALUE, "WINDOW_WIDGET"},
    {"frame bound", "SELECT sum(a) OVER (ORDER BY a) FROM t", "UNBOUNDED_PRECEDING", "UNBOUNDED_SIDEWAYS",
     TREE_REFUSED_VALUE, "UNBOUNDED_SIDEWAYS"},
    {"type", "SELECT a + 1 FROM t", "\"id\":\"BIGINT\"", "\"id\":\"VARIANT\"", TREE_REFUSED_TYPE, "VARIANT"},
    {"alias of a type", "SELECT a::DECIMAL(9,2) FROM t", "\"type\":\"DECIMAL_TYPE_INFO\",\"alias\":\"\"",
     "\"type\":\"DECIMAL_TYPE_INFO\",\"alias\":\"MONEY\"", TREE_REFUSED_TYPE, "MONEY"},
    {"width", "SELECT a::DECIMAL(9,2) FROM t", "\"width\":9", "\"width\":39", TREE_REFUSED_TYPE,
     "DECIMAL(39"},
    {"reference too far", "SELECT a + 1 FROM t", "\"index\":0}", "\"index\":7}", TREE_REFUSED_REFERENCE, "7"},
    {"sample in a scan", "SELECT a FROM t", "\"file_filters\"", "\"sample_options\":{},\"file_filters\"",
     TREE_REFUSED_KEY, "sample_options"},
    {"files left out", "SELECT a FROM t", "\"file_filters\":\"\"", "\"file_filters\":\"x = 1\"",
     TREE_REFUSED_VALUE, "files left out"},
    {"row groups left out", "SELECT a FROM t", "\"ordinality_idx\"",
     "\"row_group_order_options\":{\"row_group_offset\":1,\"leading_null_group_offset\":0},\"ordinality_idx\"",
     TREE_REFUSED_VALUE, "row groups left out"},
    {"ordinality", "SELECT a FROM t", "\"ordinality_idx\":18446744073709551615", "\"ordinality_idx\":1",
     TREE_REFUSED_VALUE, "ORDINALITY"},
    {"virtual column", "SELECT a FROM t", "\"column_indexes\":[{\"index\":0",
     "\"column_indexes\":[{\"index\":18446744073709551613", TREE_REFUSED_VALUE, "virtual column"},
    {"state of a function", "SELECT a + 1 FROM t", "\"has_serialize\":false,\"is_operator\"",
     "\"has_serialize\":true,\"function_data\":{},\"is_operator\"", TREE_REFUSED_NONE, ""},
    {"state of an unknown function", "SELECT sqrt(a) FROM t", "\"has_serialize\":false,\"is_operator\"",
     "\"has_serialize\":true,\"function_data\":{},\"is_operator\"", TREE_REFUSED_FUNCTION, "sqrt"},
    {"function of another catalog", "SELECT sqrt(a) FROM t",
     "\"catalog_name\":\"system\",\"schema_name\":\"main\",\"has_serialize\":false,\"is_operator\"",
     "\"catalog_name\":\"mine\",\"schema_name\":\"main\",\"has_serialize\":false,\"is_operator\"",
     TREE_REFUSED_FUNCTION, "sqrt"},
    {"table function of another catalog", "SELECT a FROM t", "\"catalog_name\":\"system\"",
     "\"catalog_name\":\"mine\"", TREE_REFUSED_FUNCTION, "seq_scan"},
    {"missing key", "SELECT a + 1 FROM t", "\"table_index\":", "\"table_at\":", TREE_REFUSED_UNREADABLE,
     "table_index"},
    {"value of another kind", "SELECT a + 1 FROM t", "\"is_null\":false", "\"is_null\":0",
     TREE_REFUSED_UNREADABLE, "is_null"},
    {"two plans", "SELECT a FROM t", "\"plans\":[", "\"plans\":[{},", TREE_REFUSED_STATEMENTS, "2"},
};

static void plan_with_an_unknown_word_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof alterations / sizeof alterations[0]; i++) {
    const struct alteration *x = &alterations[i];
    char *json = plan_of(x->sql), *text = altered(json, x->from, x->to);
    reading r = read_json(json);
    if (r.refusal.code != TREE_REFUSED_NONE) {
      fail_msg("%s: refused before it is altered: %s", x->name, r.refusal.reason);
    }
    drop(&r);
    r = read_json(text);
    if (r.refusal.code != x->code ||
        (x->code != TREE_REFUSED_NONE && strstr(r.refusal.reason, x->reason) == NULL)) {
      fail_msg("%s: refused as %s: %s", x->name, tree_refusal_name(r.refusal.code),
               r.refusal.reason == NULL ? "" : r.refusal.reason);
    }
    drop(&r);
    free(json);
    free(text);
  }
}

static const struct refused_query {
  const char *sql;
  tree_refusal_code code;
  const char *reason;
} refused_queries[] = {
    {"SELECT a FROM t TABLESAMPLE 50% (system)", TREE_REFUSED_KEY, "sample_options"},
    {"SELECT a FROM t USING SAMPLE 5 ROWS (reservoir, 7)", TREE_REFUSED_VALUE, "a seed"},
    {"SELECT bitstring_agg(CAST(random() AS INTEGER)) FROM t", TREE_REFUSED_FUNCTION,
     "bitstring_agg: no bounds"},
    {"SELECT '101'::BIT, now() FROM t", TREE_REFUSED_FUNCTION, "now: the clock"},
    {"SELECT * FROM (PIVOT t ON a IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21) "
     "USING regr_count(a, a))",
     TREE_REFUSED_SHAPE, "an aggregate of no rows"},
    {"SELECT reservoir_quantile(a, 0.5) FROM t", TREE_REFUSED_FUNCTION, "reservoir_quantile"},
    {"SELECT a::VARIANT FROM t", TREE_REFUSED_TYPE, "VARIANT"},
    {"SELECT * FROM t, unnest([t.a]) WITH ORDINALITY", TREE_REFUSED_VALUE, "ORDINALITY"},
    {"WITH RECURSIVE r(k, v) USING KEY (k) AS (SELECT 1, 1 UNION SELECT k, v + 1 FROM r WHERE v < 3) SELECT * FROM r",
     TREE_REFUSED_VALUE, "USING KEY"},
    {"SELECT * FROM nothing_of_this_name", TREE_REFUSED_SERIALISE, "nothing_of_this_name"},
    {"SELECT 1; SELECT 2", TREE_REFUSED_STATEMENTS, "2"},
};

static void query_that_cannot_be_written_is_refused_with_its_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused_queries / sizeof refused_queries[0]; i++) {
    char *json = plan_of(refused_queries[i].sql);
    expect_refused(json, refused_queries[i].code, refused_queries[i].reason);
    free(json);
  }
}

/* ---------------------------------------------------------------- no plans */

static void answer_that_is_no_plan_is_refused(void **state) {
  (void)state;
  expect_refused(NULL, TREE_REFUSED_UNREADABLE, "0 bytes");
  expect_refused("", TREE_REFUSED_UNREADABLE, "0 bytes");
  expect_refused("{", TREE_REFUSED_UNREADABLE, "no JSON");
  expect_refused("[1, 2]", TREE_REFUSED_UNREADABLE, "object");
  expect_refused("{}", TREE_REFUSED_UNREADABLE, "error");
  expect_refused("{\"error\":true,\"error_message\":\"no such thing\"}", TREE_REFUSED_SERIALISE,
                 "no such thing");
  expect_refused("{\"error\":false,\"plans\":[]}", TREE_REFUSED_STATEMENTS, "0 plans");
  expect_refused("{\"error\":false,\"plans\":[3]}", TREE_REFUSED_UNREADABLE, "object");
}

/* DuckDB folds it to bytes that JSON has not, unless it is told not to fold (oracle_plan, engine_plan_json). */
static void bit_constant_is_read_as_a_cast(void **state) {
  (void)state;
  char *json = plan_of("SELECT '101'::BIT FROM t");
  reading r = read_json(json);
  assert_int_equal(r.refusal.code, TREE_REFUSED_NONE);
  drop(&r);
  free(json);
}

/* ------------------------------------------------------------------- depth */

static char *nested(size_t levels) {
  static const char open[] =
      "{\"type\":\"LOGICAL_FILTER\",\"expressions\":[],\"projection_map\":[],\"children\":[";
  buf text = {0};
  buf_text(&text, "{\"error\":false,\"plans\":[");
  for (size_t i = 0; i < levels; i++) {
    buf_text(&text, open);
  }
  buf_text(&text, "{\"type\":\"LOGICAL_DUMMY_SCAN\",\"children\":[],\"table_index\":1}");
  for (size_t i = 0; i < levels; i++) {
    buf_text(&text, "]}");
  }
  buf_text(&text, "]}");
  char *json = buf_take(&text);
  assert_non_null(json);
  return json;
}

static void plan_within_the_limit_is_read(void **state) {
  (void)state;
  char *json = nested(TREE_DEEPEST_LEVEL - 1);
  reading r = read_json(json);
  assert_int_equal(r.refusal.code, TREE_REFUSED_NONE);
  drop(&r);
  mem_free(json);
}

static void plan_beyond_the_limit_is_refused(void **state) {
  (void)state;
  char *json = nested(TREE_DEEPEST_LEVEL);
  expect_refused(json, TREE_REFUSED_DEPTH, "deeper");
  mem_free(json);
  json = nested(100000);
  expect_refused(json, TREE_REFUSED_UNREADABLE, "no JSON");
  mem_free(json);
}

/* ------------------------------------------------------------------ memory */

static void failing_allocation_is_an_error_and_leaks_nothing(void **state) {
  (void)state;
  char *json = plan_of("SELECT b, sum(a), {'p': 1, 'q': ['x']} FROM t WHERE a > 2 GROUP BY b ORDER BY b");
  bool is_read = false;
  for (uint64_t n = 1; !is_read && n < 10000; n++) {
    arena *a = arena_new();
    const tree_node *root = NULL;
    tree_refusal refusal = {0};
    hf_error error = {0};
    mem_fail_after(n);
    hf_status status = plan_tree_read(json, strlen(json), a, &root, &refusal, &error);
    mem_fail_after(0);
    is_read = status == HF_OK && root != NULL;
    assert_true(is_read || status == HF_E_OUT_OF_MEMORY);
    hf_error_reset(&error);
    arena_free(a);
  }
  assert_true(is_read);
  free(json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plan_of_a_query_becomes_typed_nodes),
      cmocka_unit_test(plan_with_an_unknown_word_is_refused),
      cmocka_unit_test(query_that_cannot_be_written_is_refused_with_its_reason),
      cmocka_unit_test(answer_that_is_no_plan_is_refused),
      cmocka_unit_test(bit_constant_is_read_as_a_cast),
      cmocka_unit_test(plan_within_the_limit_is_read),
      cmocka_unit_test(plan_beyond_the_limit_is_refused),
      cmocka_unit_test(failing_allocation_is_an_error_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, open_oracle, close_oracle);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans written back as SQL, one trap a row: the query, what its text must
 * hold, and the same types and rows in the same order as DuckDB gives.
 */
#include "base/mem.h"
#include "support/oracle.h"
#include "support/rewrite.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 100000 };

static oracle *the_oracle;

static const char *const set_up[] = {
    "CREATE TABLE t AS SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE i END::INTEGER AS a, i % 3 AS b, 'x' || i AS s, "
    "i * 1.5::DOUBLE AS f, (i * 1.1)::DECIMAL(9,2) AS d, (i * 0.37)::DECIMAL(18,3) AS e, {'p': i, 'q': {'r': i * 2}} AS st, "
    "[i, i + 1, NULL] AS l, TIMESTAMP '2024-01-01' + to_hours(i) AS ts FROM range(40) r(i)",
    "CREATE TABLE u AS SELECT i AS k, i % 4 AS g, CASE WHEN i % 3 = 0 THEN NULL ELSE i END AS n FROM range(20) r(i)",
    "CREATE TABLE v (x INTEGER)",
};

static int open_oracle(void **state) {
  (void)state;
  the_oracle = oracle_open();
  for (size_t i = 0; i < sizeof set_up / sizeof set_up[0]; i++) {
    char *error = oracle_run(the_oracle, set_up[i]);
    if (error != NULL) {
      print_error("%s\n", error);
      return 1;
    }
  }
  return 0;
}

static int close_oracle(void **state) {
  (void)state;
  oracle_close(the_oracle);
  return 0;
}

/* ------------------------------------------------------------- round trips */

static void expect_same(const char *sql, const char *fragment) {
  rewrite written;
  oracle_rows expected, rows;
  rewrite_query(the_oracle, sql, NULL, NULL, &written);
  if (written.outcome != REWRITE_DONE) {
    fail_msg("%s: not written: %s", sql, written.why);
  }
  if (strstr(written.sql, fragment) == NULL) {
    fail_msg("%s: no %s in %s", sql, fragment, written.sql);
  }
  char *error = oracle_query(the_oracle, sql, MOST_ROWS, &expected);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
  error = oracle_query(the_oracle, written.sql, MOST_ROWS, &rows);
  if (error != NULL) {
    fail_msg("%s: %s\n%s", sql, error, written.sql);
  }
  if (oracle_compare(&expected, &rows) != ORACLE_SAME) {
    fail_msg("%s: %s\n%s", sql, oracle_difference(&expected, &rows), written.sql);
  }
  oracle_rows_free(&expected);
  oracle_rows_free(&rows);
  rewrite_free(&written);
}

typedef struct trap {
  const char *sql, *fragment;
} trap;

static void expect_all(const trap *traps, size_t n) {
  for (size_t i = 0; i < n; i++) {
    expect_same(traps[i].sql, traps[i].fragment);
  }
}

#define EXPECT_ALL(traps) expect_all((traps), sizeof(traps) / sizeof((traps)[0]))

static void decimals_keep_width_and_scale(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT d + d FROM t", "\"+\"(t1.c0, t1.c0)"},
      {"SELECT d + 1.5, d - d FROM t", ""},
      {"SELECT d * d, d * e FROM t", "\"*\"(t1.c0, t1.c0)"},
      {"SELECT d + e, e + d, d + e + d + e FROM t", "AS DECIMAL(18,3))"},
      {"SELECT -d, d % 2, d / 3, d // 2, abs(d), round(d, 1) FROM t", ""},
      {"SELECT sum(d), avg(d), min(d), sum(d * e), sum(d + 1) FROM t", ""},
      {"SELECT 99999999999999999999999999999999999999::DECIMAL(38,0), -0.001::DECIMAL(3,3)", "'-0.001'"},
  };
  EXPECT_ALL(traps);
}

static void literals_keep_their_types(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT CASE WHEN b = 0 THEN 1 ELSE 2 END, 1 + b FROM t", "CAST('1' AS BIGINT)"},
      {"SELECT concat(s, 'lit'), s || NULL FROM t", "CAST('lit' AS VARCHAR)"},
      {"SELECT b FROM t GROUP BY b, 1 + 1 ORDER BY b", ""},
      {"SELECT count(*), 2 FROM t GROUP BY 2 + 0", ""},
      {"SELECT b FROM t ORDER BY 2 + 0, b LIMIT 3", ""},
  };
  EXPECT_ALL(traps);
}

static void renamed_aggregates_keep_their_values(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT sum(b), count(*) FROM t", "\"sum\"("},
      {"SELECT count(*) FILTER (WHERE b = 1), sum(b) FILTER (WHERE a > 3) FROM t", "FILTER (WHERE"},
      {"SELECT count(DISTINCT b), sum(DISTINCT b), array_agg(DISTINCT b ORDER BY b) FROM t", "(DISTINCT "},
  };
  EXPECT_ALL(traps);
}

static void erased_arguments_are_written_again(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT string_agg(s, ' | ' ORDER BY b, s) FROM t", "' | ' ORDER BY"},
      {"SELECT list_aggregate([s, 'q'], 'string_agg', ' + ') FROM t", ", ' + ')"},
      {"SELECT string_agg(s, '''' ORDER BY s DESC NULLS FIRST) FROM t", "'''' ORDER BY"},
      {"SELECT quantile_cont(a, 0.25), quantile_disc(a, 0.5), median(f), mad(b) FROM t",
       "CAST('0.25' AS DECIMAL(3,2))"},
      {"SELECT quantile_cont(a, [0.25, 0.5]), quantile_disc(l, 0.5) FROM t", "[CAST('0.25'"},
      {"SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY a DESC) FROM t", "-CAST('0.25'"},
      {"SELECT percentile_disc([0.1, 0.9]) WITHIN GROUP (ORDER BY f DESC) FROM t", "[-CAST('0.1'"},
  };
  EXPECT_ALL(traps);
}

static void distinct_keeps_what_it_is_distinct_on(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT DISTINCT b, g FROM t, u WHERE t.b = u.g ORDER BY b", "SELECT DISTINCT t"},
      {"SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a DESC", "DISTINCT ON ("},
      {"SELECT DISTINCT a FROM t ORDER BY a DESC NULLS FIRST", "DESC NULLS FIRST"},
  };
  EXPECT_ALL(traps);
}

static void rows_keep_their_order(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT * FROM (VALUES (3, 'a'), (1, NULL), (2, 'c')) w(x, y)", "VALUES (CAST("},
      {"SELECT * FROM (VALUES (3), (NULL)) w(x) ORDER BY x NULLS FIRST", "ASC NULLS FIRST"},
      {"(SELECT k FROM u ORDER BY k DESC LIMIT 3) UNION ALL (SELECT n FROM u ORDER BY n LIMIT 2)",
       "UNION ALL"},
      {"SELECT * FROM u LIMIT 5 OFFSET 3", "LIMIT 5 OFFSET 3"},
      {"SELECT * FROM u LIMIT 10%", "LIMIT 10%"},
      {"SELECT * FROM t LIMIT (SELECT 3) OFFSET (SELECT 2)", "LIMIT (SELECT "},
      {"SELECT * FROM u POSITIONAL JOIN v", "POSITIONAL JOIN"},
  };
  EXPECT_ALL(traps);
}

static void mark_joins_keep_the_rules_of_null(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT k, k IN (SELECT n FROM u) FROM u ORDER BY k", " = ANY ("},
      {"SELECT count(*) FROM u WHERE k NOT IN (SELECT n FROM u)", ""},
      {"SELECT count(*) FROM u WHERE n NOT IN (SELECT x FROM v)", ""},
      {"SELECT k, n NOT IN (SELECT n FROM u u2 WHERE u2.g = u.g) FROM u ORDER BY k", " = ANY ("},
      {"SELECT k, (k, g) IN (SELECT n, g FROM u) FROM u ORDER BY k", "CASE WHEN EXISTS"},
      {"SELECT k, (n, g) NOT IN (SELECT n, g FROM u WHERE k > 5) FROM u ORDER BY k", "CASE WHEN EXISTS"},
      {"SELECT k, (n, g) IN (SELECT x, x FROM v) FROM u ORDER BY k", "CASE WHEN EXISTS"},
      {"SELECT k, k > ALL (SELECT n FROM u u2 WHERE u2.g = u.g) FROM u ORDER BY k", "ANY ("},
      {"SELECT k, EXISTS (SELECT 1 FROM u u2 WHERE u2.n = u.k AND u2.g = u.g) FROM u ORDER BY k",
       "EXISTS (SELECT 1"},
  };
  EXPECT_ALL(traps);
}

static void single_joins_give_one_row_or_raise(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT k, (SELECT max(n) FROM u u2 WHERE u2.g = u.g) FROM u ORDER BY k", "LEFT JOIN"},
      {"SELECT k, (SELECT n FROM u u2 WHERE u2.k = u.k + 1) FROM u ORDER BY k", "error('more than one row"},
      {"SELECT k, (SELECT count(*) FROM u u2 WHERE u2.k > u.k) FROM u ORDER BY k", ""},
  };
  EXPECT_ALL(traps);
  rewrite written;
  rewrite_query(the_oracle, "SELECT k, (SELECT k FROM u u2 WHERE u2.g = u.g) FROM u", NULL, NULL, &written);
  assert_int_equal(written.outcome, REWRITE_DONE);
  char *error = oracle_run(the_oracle, written.sql);
  assert_non_null(error);
  assert_non_null(strstr(error, "more than one row"));
  free(error);
  rewrite_free(&written);
}

static void single_join_is_refused_where_any_row_will_do(void **state) {
  (void)state;
  rewrite written;
  assert_null(oracle_run(the_oracle, "SET scalar_subquery_error_on_multiple_rows = false"));
  rewrite_query(the_oracle, "SELECT k, (SELECT k FROM u u2 WHERE u2.g = u.g) FROM u", NULL, NULL, &written);
  assert_int_equal(written.outcome, REWRITE_REFUSED);
  assert_non_null(strstr(written.why, "SINGLE"));
  rewrite_free(&written);
  expect_same("SELECT k, (SELECT max(n) FROM u u2 WHERE u2.g = u.g) FROM u ORDER BY k", "LEFT JOIN");
  assert_null(oracle_run(the_oracle, "SET scalar_subquery_error_on_multiple_rows = true"));
}

static void delim_joins_read_their_own_keys(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT k, x.c FROM u, LATERAL (SELECT count(*) AS c FROM u u2 WHERE u2.g = u.g AND u2.k < u.k) x ORDER BY k",
       "SELECT DISTINCT"},
      {"SELECT k, (SELECT sum(n) FROM u u2 WHERE u2.g = u.n) FROM u ORDER BY k", ""},
      {"SELECT k FROM u WHERE EXISTS (SELECT 1 FROM u u2 WHERE u2.k > u.k AND EXISTS (SELECT 1 FROM u u3 WHERE u3.k > "
       "u2.k AND u3.g = u.g)) ORDER BY k",
       "MATERIALIZED"},
      {"SELECT k, (SELECT max(c) FROM (SELECT count(*) AS c FROM u u2 WHERE u2.k < u.k GROUP BY u2.g) w) FROM u ORDER BY k",
       "MATERIALIZED"},
  };
  EXPECT_ALL(traps);
}

static void table_functions_over_rows_find_their_columns(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT * FROM u, range(u.g) r(i) ORDER BY ALL", "LATERAL range("},
      {"SELECT * FROM u, unnest([u.k, u.n]) z(w) ORDER BY ALL", ""},
      {"SELECT i, j FROM range(4) r(i), range(r.i) q(j) ORDER BY ALL", "LATERAL range("},
      {"SELECT * FROM u, LATERAL (VALUES (u.k), (u.n)) w(x) ORDER BY ALL", "UNION ALL"},
  };
  EXPECT_ALL(traps);
}

static void window_frames_get_their_offsets_back(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT sum(a) OVER (ORDER BY f RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM t",
       "RANGE BETWEEN CAST('3"},
      {"SELECT sum(a) OVER (ORDER BY a DESC NULLS FIRST RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t",
       "3"},
      {"SELECT sum(b) OVER (PARTITION BY b ORDER BY ts RANGE BETWEEN INTERVAL 5 HOURS PRECEDING AND INTERVAL 1 HOUR "
       "FOLLOWING EXCLUDE TIES) FROM t",
       "EXCLUDE TIES"},
      {"SELECT sum(a) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t",
       "ROWS"},
      {"SELECT sum(a) OVER (ORDER BY b GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t", "GROUPS"},
      {"SELECT lag(a, 2, -1) OVER (ORDER BY ts), lead(a) OVER (ORDER BY ts), ntile(3) OVER (ORDER BY ts), "
       "first_value(a IGNORE NULLS) OVER (ORDER BY ts), nth_value(a, 3) OVER (ORDER BY ts) FROM t",
       "IGNORE NULLS"},
      {"SELECT string_agg(s, '-') OVER (PARTITION BY b ORDER BY ts ROWS 2 PRECEDING) FROM t", "'-'"},
      {"SELECT row_number() OVER (PARTITION BY b ORDER BY a DESC NULLS LAST, ts) FROM t", "DESC NULLS LAST"},
  };
  EXPECT_ALL(traps);
}

static void range_bound_of_another_expression_is_refused(void **state) {
  (void)state;
  rewrite written;
  /* the optimiser turns (a - 1) - 0 into a - 1: its second operand is no offset */
  rewrite_query(the_oracle,
                "SELECT sum(b) OVER (ORDER BY a - 1 RANGE BETWEEN 0 PRECEDING AND CURRENT ROW) FROM t", NULL,
                NULL, &written);
  assert_int_equal(written.outcome, REWRITE_REFUSED);
  assert_non_null(strstr(written.why, "RANGE"));
  rewrite_free(&written);
}

static void lambdas_keep_parameters_and_captures(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT list_transform(l, lambda x, i: x * i + b) FROM t", "lambda p1_0, p1_1: "},
      {"SELECT list_filter(l, lambda x: x > a AND b < 2) FROM t", "lambda p1_0: "},
      {"SELECT list_transform([[1, 2], [3]], lambda q: list_transform(q, lambda w: w + b + len(q))) FROM t",
       "p2_0"},
      {"SELECT list_reduce([1, 2, 3], lambda x, y: x * 10 + y + b) FROM t", "p1_1"},
      {"SELECT list_reduce([1, 2], lambda x, y: x + y + b, a * 100) FROM t", ", lambda p1_0, p1_1: "},
  };
  EXPECT_ALL(traps);
}

static void nested_fields_are_read_by_position(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT st.q.r FROM t WHERE st.q.r > 10", "\"struct_extract"},
      {"SELECT st, st.p, struct_pack(a := a, \"odd \"\" name\" := s) FROM t", "\"odd \"\" name\" := "},
      {"SELECT struct_insert(st, z := a) FROM t", "\"z\" := "},
      {"SELECT union_value(k := a) FROM t", "\"k\" := "},
      {"SELECT row(a, s) FROM t", "row("},
      {"SELECT date_part(['year', 'epoch'], ts) FROM t", "(['year', 'epoch'], "},
  };
  EXPECT_ALL(traps);
}

static void slices_keep_open_bounds(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT l[1:2], s[2:3] FROM t", "["},
      {"SELECT l[:2], l[2:], s[-2:] FROM t", ")[:"},
      {"SELECT l[1:3:2], l[:-:-1] FROM t", "[:-:"},
  };
  EXPECT_ALL(traps);
}

static void long_in_lists_keep_their_matches(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT k FROM u WHERE k IN (1, 3, 5, 7, 9, 11) ORDER BY k", "VALUES"},
      {"SELECT k FROM u WHERE n NOT IN (1, 3, 5, 7, 9, 11) ORDER BY k", ""},
      {"SELECT k, k IN (1, NULL, 3) FROM u ORDER BY k", ""},
      {"SELECT k FROM u WHERE k BETWEEN 3 AND 7 AND NOT (n BETWEEN 4 AND 5) ORDER BY k", ""},
      {"SELECT k FROM u WHERE g > 0 AND g < 3 ORDER BY k", ""},
  };
  EXPECT_ALL(traps);
}

static void rewritten_patterns_are_plain_calls(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT s LIKE 'x1%', s LIKE '%1', s LIKE '%2%', s ILIKE 'X_', s NOT LIKE 'x1%' FROM t",
       "\"prefix\"("},
      {"SELECT s SIMILAR TO 'x[0-9]', regexp_matches(s, '1$'), regexp_replace(s, '[0-9]', '#', 'g') FROM t",
       ""},
      {"SELECT '{\"q\": [1, 2]}'::JSON ->> '$.q[1]', ('{\"a\":' || b || '}')::JSON -> 'a' FROM t",
       "\"json_extract\"("},
  };
  EXPECT_ALL(traps);
}

static void collation_stays_in_the_comparisons(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT s COLLATE NOCASE = 'X1' FROM t", "\"lower\"("},
      {"SELECT s FROM t ORDER BY s COLLATE NOCASE DESC LIMIT 3", ""},
      {"SELECT count(*) FROM t GROUP BY (s || 'X') COLLATE NOCASE", ""},
  };
  EXPECT_ALL(traps);
}

static void grouping_sets_keep_their_sets(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT b, g, count(*), grouping(b), grouping(b, g) FROM t, u WHERE a = k GROUP BY CUBE (b, g) ORDER BY ALL",
       "GROUPING SETS ("},
      {"SELECT count(*) FROM t GROUP BY GROUPING SETS ((), (b), (b)) ORDER BY 1", "GROUPING SETS ("},
      {"SELECT count(*) FROM v GROUP BY ()", ""},
      {"SELECT count(*) FROM v", ""},
      {"SELECT sum(x), max(x) FROM v WHERE false", ""},
      {"SELECT b + 1, sum(a) FROM t GROUP BY b + 1 ORDER BY 1", " AS k0"},
  };
  EXPECT_ALL(traps);
}

static void common_tables_are_written_once(void **state) {
  (void)state;
  static const trap traps[] = {
      {"WITH w AS MATERIALIZED (SELECT g, sum(k) AS s FROM u GROUP BY g) SELECT w1.g, w2.s FROM w w1 JOIN w w2 ON w1.g = "
       "w2.g + 1 ORDER BY 1",
       " AS MATERIALIZED ("},
      {"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
       "WITH RECURSIVE"},
      {"WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n * 2) % 7 FROM r) SELECT * FROM r ORDER BY n",
       " UNION ("},
      {"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (WITH q AS MATERIALIZED (SELECT n FROM r) SELECT q.n + 1 FROM q, q q2 "
       "WHERE q.n < 5 AND q.n = q2.n)) SELECT * FROM r",
       "UNION ALL (WITH "},
  };
  EXPECT_ALL(traps);
}

static void random_value_that_would_be_drawn_twice_is_refused(void **state) {
  (void)state;
  rewrite written;
  rewrite_query(the_oracle, "SELECT (random(), k) IN (SELECT n, g FROM u) FROM u", NULL, NULL, &written);
  assert_int_equal(written.outcome, REWRITE_REFUSED);
  assert_non_null(strstr(written.why, "twice"));
  rewrite_free(&written);
}

static void joins_keep_their_kinds(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT x.k, y.k FROM u x FULL JOIN u y ON x.n = y.k ORDER BY ALL", "FULL JOIN"},
      {"SELECT x.k, y.n FROM u x LEFT JOIN u y ON x.k < y.n AND x.g = y.g ORDER BY ALL", "LEFT JOIN"},
      {"SELECT x.k, y.k FROM u x LEFT JOIN u y ON x.k < y.n OR x.g = y.k ORDER BY ALL", "LEFT JOIN"},
      {"SELECT x.k FROM u x SEMI JOIN u y ON x.n = y.k AND x.k <> y.g ORDER BY 1", "SEMI JOIN"},
      {"SELECT x.k FROM u x ANTI JOIN u y ON x.n = y.g ORDER BY 1", "ANTI JOIN"},
      {"SELECT x.k, y.k FROM u x ASOF JOIN u y ON x.g = y.g AND x.k >= y.n ORDER BY ALL", "ASOF"},
      {"SELECT count(*) FROM u, v", "CROSS JOIN"},
      {"SELECT n FROM u INTERSECT SELECT k FROM u ORDER BY 1", "INTERSECT"},
      {"SELECT k FROM u EXCEPT ALL SELECT n FROM u ORDER BY 1", "EXCEPT ALL"},
      {"SELECT count(*) FROM (SELECT k FROM u UNION ALL SELECT n FROM u UNION ALL SELECT g FROM u) q",
       "UNION ALL"},
  };
  EXPECT_ALL(traps);
}

static void rowids_and_bare_counts_are_scanned(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT rowid, k FROM u WHERE rowid < 3", ".rowid"},
      {"SELECT count(*) FROM u", ""},
      {"SELECT 1 FROM u", ""},
  };
  EXPECT_ALL(traps);
}

static void pivots_are_plain_aggregates(void **state) {
  (void)state;
  static const trap traps[] = {
      {"SELECT * FROM u PIVOT (sum(k), count(n) FOR g IN (0, 1)) ORDER BY ALL", ""},
      {"SELECT * FROM (UNPIVOT (SELECT k, g, n FROM u) ON g, n) ORDER BY ALL", ""},
  };
  EXPECT_ALL(traps);
}

/* -------------------------------------------------------------------- depth */

/* Nested so deep that no parser takes it in one another: entries of a WITH list break it. */
static void deep_plan_is_written_flat(void **state) {
  (void)state;
  enum { LEVELS = 300 };
  buf sql = {0};
  buf_text(&sql, "WITH w0 AS (SELECT k, g FROM u)");
  for (int i = 1; i <= LEVELS; i++) {
    buf_printf(&sql, ", w%d AS (SELECT k + g AS k, (g + 1) %% 4 AS g FROM w%d WHERE k <> %d)", i, i - 1, i);
  }
  buf_printf(&sql, " SELECT * FROM w%d", LEVELS);
  expect_same(buf_cstr(&sql), " AS NOT MATERIALIZED (");
  buf_reset(&sql);
}

/* ------------------------------------------------------------------- inputs */

static void input_stands_between_pieces_with_the_columns_that_are_read(void **state) {
  (void)state;
  static const char json[] =
      "{\"error\":false,\"plans\":[{\"type\":\"LOGICAL_GET\",\"children\":[],\"table_index\":0,\"returned_types\":["
      "{\"id\":\"BIGINT\"},{\"id\":\"VARCHAR\"},{\"id\":\"DATE\"}],\"names\":[\"c0\",\"c1\",\"c2\"],\"projection_ids\":[],"
      "\"table_filters\":{\"filters\":[]},\"name\":\"hf_scan\",\"arguments\":[],\"original_arguments\":[],"
      "\"catalog_name\":\"system\",\"schema_name\":\"main\",\"has_serialize\":false,\"parameters\":[{\"type\":{\"id\":"
      "\"VARCHAR\"},\"is_null\":false,\"value\":\"7\"}],\"named_parameters\":[],\"input_table_types\":[],"
      "\"input_table_names\":[],\"projected_input\":[],\"column_indexes\":[{\"index\":2,\"child_indexes\":[],"
      "\"index_type\":\"FULL_READ\",\"field\":\"\",\"has_index\":true},{\"index\":0,\"child_indexes\":[],\"index_type\":"
      "\"FULL_READ\",\"field\":\"\",\"has_index\":true}]}]}";
  const plan_write_options options = {0};
  arena *a = arena_new();
  const tree_node *root = NULL;
  tree_refusal refusal;
  plan_written written;
  hf_error error = {0};
  assert_int_equal(plan_tree_read(json, strlen(json), a, &root, &refusal, &error), HF_OK);
  assert_non_null(root);
  assert_int_equal(plan_write(root, &options, a, &written, &refusal, &error), HF_OK);
  assert_int_equal(written.n_pieces, 3);
  assert_string_equal(written.pieces[0].text, "SELECT t1.x2 AS c0, t1.x0 AS c1 FROM ");
  assert_null(written.pieces[1].text);
  assert_string_equal(written.pieces[2].text, " AS t1(x0, x1, x2)");
  assert_int_equal(written.n_inputs, 1);
  assert_string_equal(written.inputs[0].node->scan->parameters[0].text, "7");
  assert_int_equal(written.inputs[0].n_columns, 2);
  assert_int_equal(written.inputs[0].columns[0], 0);
  assert_int_equal(written.inputs[0].columns[1], 2);
  arena_free(a);
}

static void stage_input_is_an_input_of_all_its_columns(void **state) {
  (void)state;
  const data_type bigint = {.kind = TYPE_BIGINT};
  const data_type *const types[] = {&bigint, &bigint};
  const tree_node node = {.kind = TREE_INPUT, .n_columns = 2, .types = types, .number = 5};
  const plan_write_options options = {0};
  arena *a = arena_new();
  tree_refusal refusal;
  plan_written written;
  hf_error error = {0};
  assert_int_equal(plan_write(&node, &options, a, &written, &refusal, &error), HF_OK);
  assert_int_equal(written.n_inputs, 1);
  assert_int_equal(written.inputs[0].node->number, 5);
  assert_string_equal(written.pieces[2].text, " AS t1(c0, c1)");
  arena_free(a);
}

static void failing_allocation_is_an_error_and_leaks_nothing(void **state) {
  (void)state;
  size_t length = 0;
  char *failure = NULL;
  char *json = oracle_plan(
      the_oracle,
      "WITH w AS MATERIALIZED (SELECT g, sum(k) AS s FROM u GROUP BY g + 1, g) SELECT w1.g, w2.s, "
      "(SELECT n FROM u WHERE u.k = w1.g) FROM w w1 JOIN w w2 ON w1.g = w2.g ORDER BY 1",
      &length, &failure);
  assert_non_null(json);
  const plan_write_options options = {0};
  arena *a = arena_new();
  const tree_node *root = NULL;
  tree_refusal refusal;
  hf_error error = {0};
  assert_int_equal(plan_tree_read(json, length, a, &root, &refusal, &error), HF_OK);
  bool is_written = false;
  for (uint64_t n = 1; !is_written && n < 10000; n++) {
    arena *own = arena_new();
    plan_written written;
    mem_fail_after(n);
    hf_status status = plan_write(root, &options, own, &written, &refusal, &error);
    mem_fail_after(0);
    is_written = status == HF_OK && written.n_pieces > 0;
    assert_true(is_written || status == HF_E_OUT_OF_MEMORY);
    hf_error_reset(&error);
    arena_free(own);
  }
  assert_true(is_written);
  arena_free(a);
  free(json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decimals_keep_width_and_scale),
      cmocka_unit_test(literals_keep_their_types),
      cmocka_unit_test(renamed_aggregates_keep_their_values),
      cmocka_unit_test(erased_arguments_are_written_again),
      cmocka_unit_test(distinct_keeps_what_it_is_distinct_on),
      cmocka_unit_test(rows_keep_their_order),
      cmocka_unit_test(mark_joins_keep_the_rules_of_null),
      cmocka_unit_test(single_joins_give_one_row_or_raise),
      cmocka_unit_test(single_join_is_refused_where_any_row_will_do),
      cmocka_unit_test(delim_joins_read_their_own_keys),
      cmocka_unit_test(table_functions_over_rows_find_their_columns),
      cmocka_unit_test(window_frames_get_their_offsets_back),
      cmocka_unit_test(range_bound_of_another_expression_is_refused),
      cmocka_unit_test(lambdas_keep_parameters_and_captures),
      cmocka_unit_test(nested_fields_are_read_by_position),
      cmocka_unit_test(slices_keep_open_bounds),
      cmocka_unit_test(long_in_lists_keep_their_matches),
      cmocka_unit_test(rewritten_patterns_are_plain_calls),
      cmocka_unit_test(collation_stays_in_the_comparisons),
      cmocka_unit_test(grouping_sets_keep_their_sets),
      cmocka_unit_test(common_tables_are_written_once),
      cmocka_unit_test(random_value_that_would_be_drawn_twice_is_refused),
      cmocka_unit_test(joins_keep_their_kinds),
      cmocka_unit_test(rowids_and_bare_counts_are_scanned),
      cmocka_unit_test(pivots_are_plain_aggregates),
      cmocka_unit_test(deep_plan_is_written_flat),
      cmocka_unit_test(input_stands_between_pieces_with_the_columns_that_are_read),
      cmocka_unit_test(stage_input_is_an_input_of_all_its_columns),
      cmocka_unit_test(failing_allocation_is_an_error_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, open_oracle, close_oracle);
}

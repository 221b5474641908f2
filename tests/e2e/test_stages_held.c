/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held results in queries of several tasks: filled by some, read by other numbers
 * of tasks, once or several times in a query. What was read is told by the
 * profile: a hit reads no row of a file. Holding itself: test_holding.c.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 12000 };

/* View t over a Parquet file with row groups of 2,048 rows. */
static void make_table(api_case *c) {
  char sql[300];
  oracle *plain = oracle_open();
  snprintf(sql, sizeof sql,
           "COPY (SELECT i AS x, i %% 7 AS k, 's' || i %% 5 AS s FROM range(%d) t(i)) TO '%s/t.parquet' "
           "(ROW_GROUP_SIZE 2048)",
           ROWS, c->dir);
  assert_null(oracle_run(plain, sql));
  oracle_close(plain);
  snprintf(sql, sizeof sql, "CREATE VIEW t AS SELECT * FROM '%s/t.parquet'", c->dir);
  api_run(c, sql);
}

/* Expects these rows of a query that had to compute what it holds. */
static void expect_miss(api_case *c, const char *sql, const char *rows) {
  hf_df *df = api_sql(c, sql);
  hf_profile profile = api_expect_df(c, df, rows);
  assert_true(profile.held_fills > 0 && profile.source_rows > 0);
  hf_df_free(df);
}

/* Expects these rows, out of held results only, by `tasks` tasks (0: any number). */
static void expect_hit(api_case *c, const char *sql, uint64_t tasks, const char *rows) {
  hf_df *df = api_sql(c, sql);
  hf_profile profile = api_expect_df(c, df, rows);
  if (profile.source_rows > 0 || profile.source_files > 0 || profile.held_fills > 0 ||
      profile.held_hits == 0) {
    fail_msg("%s: %d rows of files, %d fills, %d hits", sql, (int)profile.source_rows,
             (int)profile.held_fills, (int)profile.held_hits);
  }
  if (tasks > 0) {
    assert_int_equal(profile.widest_tasks, tasks);
  }
  hf_df_free(df);
}

static void held_of_three_tasks_is_read_by_two(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE LAZY TABLE held AS SELECT x, k FROM t WHERE x % 2 = 0");
  expect_miss(c, "SELECT count(*), sum(x)::BIGINT FROM held", "6000|35994000\n");
  api_run(c, "SET tasks = 2");
  expect_hit(c, "SELECT count(*), sum(x)::BIGINT FROM held", 2, "6000|35994000\n");
  expect_hit(c, "SELECT k, count(*) FROM held GROUP BY k ORDER BY k LIMIT 2", 2, "0|858\n1|857\n");
}

static void held_of_two_tasks_is_read_by_five(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 2");
  api_run(c, "CACHE TABLE held AS SELECT s, count(*) AS n, max(x) AS m FROM t GROUP BY s, x % 100");
  api_run(c, "SET tasks = 5");
  expect_hit(c, "SELECT s, sum(n)::BIGINT, max(m) FROM held GROUP BY s ORDER BY s", 0,
             "s0|2400|11995\ns1|2400|11996\ns2|2400|11997\ns3|2400|11998\ns4|2400|11999\n");
  api_run(c, "CACHE TABLE wide AS SELECT * FROM t");
  expect_hit(c, "SELECT count(*), min(x), max(x) FROM wide", 0, "12000|0|11999\n");
}

static void held_in_order_comes_back_in_order(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE TABLE held AS SELECT x, k FROM t ORDER BY k DESC, x");
  api_run(c, "SET tasks = 2");
  expect_hit(c, "SELECT x, k FROM held LIMIT 3", 0, "6|6\n13|6\n20|6\n");
  expect_hit(c, "SELECT x FROM held LIMIT 2 OFFSET 11998", 0, "11991\n11998\n");
  expect_hit(c, "SELECT first(x), last(x) FROM held", 0, "6|11998\n");
}

static void held_without_rows_is_read_without_rows(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE TABLE held AS SELECT x, s FROM t WHERE x < 0");
  expect_hit(c, "SELECT count(*), max(s) FROM held", 0, "0|NULL\n");
  expect_hit(c, "SELECT s, count(*) FROM held GROUP BY s", 0, "");
  hf_df *df = api_sql(c, "SELECT count(*), count(held.x) FROM t LEFT JOIN held USING (x)");
  hf_profile profile = api_expect_df(c, df, "12000|0\n");
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  hf_df_free(df);
}

static void held_is_read_twice_in_one_query(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE LAZY TABLE held AS SELECT x, k, random() AS r FROM t");
  expect_miss(c, "SELECT count(*) FROM held a JOIN held b ON a.x = b.x AND a.r = b.r", "12000\n");
  expect_hit(c, "SELECT count(*) FROM held a JOIN held b ON a.x = b.x AND a.r = b.r", 3, "12000\n");
  expect_hit(c, "SELECT count(*) FROM (SELECT r FROM held EXCEPT SELECT r FROM held)", 3, "0\n");
  expect_hit(
      c,
      "SELECT a.k, count(*) FROM held a JOIN (SELECT k, max(x) AS x FROM held GROUP BY k) b USING (k, x) "
      "GROUP BY a.k ORDER BY a.k LIMIT 2",
      3, "0|1\n1|1\n");
}

static void held_is_read_inside_subqueries_and_views(void **state) {
  api_case *c = *state;
  make_table(c);
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE TABLE held AS SELECT k, max(x) AS x FROM t GROUP BY k");
  api_run(c, "CREATE VIEW v AS SELECT k, x + 1 AS y FROM held WHERE k > 2");
  api_run(c, "CREATE VIEW vv AS SELECT max(y) AS y FROM v");
  expect_hit(c, "SELECT k, y FROM v ORDER BY k", 0, "3|11995\n4|11996\n5|11997\n6|11998\n");
  expect_hit(c, "SELECT y FROM vv", 0, "11998\n");
  expect_hit(c, "SELECT count(*) FROM held WHERE x < (SELECT max(x) FROM held)", 0, "6\n");
  hf_df *df = api_sql(
      c, "SELECT count(*) FROM t WHERE x IN (SELECT x FROM held) AND x >= (SELECT min(y) - 1 FROM v)");
  hf_profile profile = api_expect_df(c, df, "6\n");
  assert_int_equal(profile.held_fills, 0);
  assert_true(profile.source_rows > 0 && profile.held_hits > 0);
  assert_int_equal(profile.widest_tasks, 3);
  hf_df_free(df);
}

#define CASE(name, open) cmocka_unit_test_setup_teardown(name, open, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(held_of_three_tasks_is_read_by_two, api_case_open),
      CASE(held_of_two_tasks_is_read_by_five, api_case_open_two_slots),
      CASE(held_in_order_comes_back_in_order, api_case_open_one_thread),
      CASE(held_without_rows_is_read_without_rows, api_case_open),
      CASE(held_is_read_twice_in_one_query, api_case_open_two_slots),
      CASE(held_is_read_inside_subqueries_and_views, api_case_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

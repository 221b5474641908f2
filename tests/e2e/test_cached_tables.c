/* SPDX-License-Identifier: Apache-2.0 */
/* The CACHE family in SQL: CACHE TABLE, UNCACHE TABLE, CLEAR CACHE, REFRESH TABLE, SHOW CACHE, SHOW TABLES. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs the statement and returns its profile. */
static hf_profile profile_of(api_case *c, const char *sql, const char *rows) {
  hf_df *df = api_sql(c, sql);
  hf_profile profile = api_expect_df(c, df, rows);
  hf_df_free(df);
  return profile;
}

static void cache_table_as_fills_at_once(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE t AS SELECT i AS n FROM range(10) t(i)");
  hf_profile profile = profile_of(c, "SELECT count(*) FROM t", "10\n");
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
}

static void cache_lazy_table_fills_at_the_first_use(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE t AS SELECT i AS n FROM range(10) t(i)");
  assert_int_equal(profile_of(c, "SELECT count(*) FROM t", "10\n").held_fills, 1);
  assert_int_equal(profile_of(c, "SELECT count(*) FROM T", "10\n").held_hits, 1);
}

static void show_cache_lists_holds_with_their_states(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE eager AS SELECT i AS n FROM range(10) t(i)");
  api_run(c, "CACHE LAZY TABLE later OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT 1 AS n");
  hf_df *unnamed_query = api_sql(c, "SELECT 1 AS n");
  hf_df *unnamed = api_cache(c, unnamed_query);
  api_run(c, "SELECT * FROM eager");
  hf_df *show = api_sql(c, "SHOW CACHE");
  struct ArrowSchema fields;
  assert_int_equal(hf_df_schema(show, &fields, &c->error), HF_OK);
  assert_int_equal(fields.n_children, 15);
  assert_string_equal(fields.children[0]->name, "name");
  assert_string_equal(fields.children[14]->name, "last_drop");
  fields.release(&fields);
  char *rows = api_rows(c, show, NULL);
  assert_non_null(strstr(rows, "eager|"));
  assert_non_null(strstr(rows, "|materialised|MEMORY_AND_DISK_DESER|10|"));
  assert_non_null(strstr(rows, "|declared|DISK_ONLY|NULL|NULL|NULL|0|0|"));
  assert_non_null(strstr(rows, "NULL|")); /* the one without a name */
  free(rows);
  hf_df_free(show);
  hf_df_free(unnamed);
  hf_df_free(unnamed_query);
}

static void show_tables_tells_views_from_cached_tables(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_run(c, "CACHE LAZY TABLE T2 AS SELECT 2 AS n");
  api_expect(c, "SHOW TABLES", "T2|cached\nv|view\n");
  api_run(c, "UNCACHE TABLE t2");
  api_expect(c, "SHOW VIEWS", "v|view\n");
}

static void cache_table_of_a_view_holds_it_until_uncache(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT i AS n FROM range(5) t(i)");
  api_run(c, "CACHE TABLE v");
  api_expect(c, "SHOW TABLES", "v|cached\n");
  assert_string_equal(profile_of(c, "SELECT sum(n)::BIGINT FROM v", "10\n").reused, "v");
  api_run(c, "UNCACHE TABLE v");
  api_expect(c, "SHOW TABLES", "v|view\n");
  assert_int_equal(profile_of(c, "SELECT sum(n)::BIGINT FROM v", "10\n").held_hits, 0);
  api_run(c, "CACHE TABLE v");
  assert_int_equal(profile_of(c, "SELECT sum(n)::BIGINT FROM v", "10\n").held_hits, 1);
}

static void uncache_table_drops_the_table_and_its_files(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE t AS SELECT i AS n FROM range(10) t(i)");
  assert_true(files_below(c->work_dir) > 0);
  api_run(c, "UNCACHE TABLE t");
  api_fails(c, "SELECT * FROM t", HF_E_TABLE_NOT_FOUND);
  api_expect(c, "SHOW TABLES", "");
  api_expect(c, "SELECT 1", "1\n");
}

static void uncache_table_of_an_unknown_name_is_an_error_with_a_suggestion(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE flights AS SELECT 1 AS n");
  api_fails(c, "UNCACHE TABLE flihgts", HF_E_TABLE_NOT_FOUND);
  assert_non_null(strstr(c->error.hint, "flights"));
  api_run(c, "UNCACHE TABLE IF EXISTS flihgts");
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_fails(c, "UNCACHE TABLE v", HF_E_TABLE_NOT_FOUND);
}

static void cache_table_on_a_taken_name_is_refused(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE t AS SELECT 1 AS n");
  api_fails(c, "CACHE TABLE t AS SELECT 2 AS n", HF_E_NAME_EXISTS);
  assert_non_null(strstr(c->error.hint, "UNCACHE TABLE"));
  api_fails(c, "CACHE TABLE T", HF_E_NAME_EXISTS);
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_fails(c, "CACHE TABLE v AS SELECT 2 AS n", HF_E_NAME_EXISTS);
  api_fails(c, "CACHE TABLE nobody", HF_E_TABLE_NOT_FOUND);
  api_expect(c, "SELECT n FROM t", "1\n");
}

static void cache_table_with_an_unknown_level_is_refused(void **state) {
  api_case *c = *state;
  api_fails(c, "CACHE TABLE t OPTIONS ('storageLevel' 'PAPER') AS SELECT 1 AS n", HF_E_INVALID_ARGUMENT);
  api_fails(c, "CACHE TABLE t OPTIONS ('storageLevel' 'NONE') AS SELECT 1 AS n", HF_E_INVALID_ARGUMENT);
  api_expect(c, "SHOW TABLES", "");
}

static void cache_table_whose_fill_fails_leaves_nothing(void **state) {
  api_case *c = *state;
  api_fails(c, "CACHE TABLE t AS SELECT CAST('x' || i AS INTEGER) AS n FROM range(5) t(i)", HF_E_CAST);
  api_expect(c, "SHOW TABLES", "");
  api_expect(c, "SHOW CACHE", "");
  api_run(c, "CREATE VIEW v AS SELECT CAST('x' || i AS INTEGER) AS n FROM range(5) t(i)");
  api_fails(c, "CACHE TABLE v", HF_E_CAST);
  api_expect(c, "SHOW TABLES", "v|view\n");
}

static void clear_cache_lets_every_hold_go(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT 3 AS n");
  api_run(c, "CACHE TABLE v");
  api_run(c, "CACHE TABLE t AS SELECT 4 AS n");
  hf_df *query = api_sql(c, "SELECT 5 AS n");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "5\n");
  api_run(c, "CLEAR CACHE");
  api_expect(c, "SHOW CACHE", "");
  api_expect(c, "SHOW TABLES", "v|view\n");
  assert_int_equal(api_storage(c, held).state, HF_HOLD_RELEASED);
  assert_int_equal(api_expect_df(c, held, "5\n").held_fills, 0);
  hf_df_free(held);
  hf_df_free(query);
}

static void refresh_table_computes_anew(void **state) {
  api_case *c = *state;
  char sql[256];
  snprintf(sql, sizeof sql, "CACHE TABLE t AS SELECT sum(n)::BIGINT AS s FROM '%s'",
           api_file(c, "n.csv", "n\n1\n2\n"));
  api_run(c, sql);
  api_expect(c, "SELECT s FROM t", "3\n");
  api_file(c, "n.csv", "n\n1\n2\n10\n");
  api_expect(c, "SELECT s FROM t", "3\n"); /* a snapshot */
  api_run(c, "REFRESH TABLE t");
  hf_profile profile = profile_of(c, "SELECT s FROM t", "13\n");
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(profile_of(c, "SELECT s FROM t", "13\n").held_hits, 1);
  api_fails(c, "REFRESH TABLE nobody", HF_E_TABLE_NOT_FOUND);
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_run(c, "REFRESH TABLE v");
}

static void replaced_and_dropped_views_let_their_hold_go(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_run(c, "CACHE TABLE v");
  api_run(c, "CREATE OR REPLACE VIEW v AS SELECT 2 AS n");
  api_expect(c, "SELECT n FROM v", "2\n");
  api_expect(c, "SHOW CACHE", "");
  api_run(c, "CACHE TABLE v");
  api_run(c, "DROP VIEW v");
  api_expect(c, "SHOW CACHE", "");
  api_fails(c, "SELECT * FROM v", HF_E_TABLE_NOT_FOUND);
}

static void explain_tells_hit_from_miss(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE t AS SELECT 1 AS n");
  hf_df *explain = api_sql(c, "EXPLAIN SELECT * FROM t");
  char *miss = api_rows(c, explain, NULL);
  assert_non_null(strstr(miss, "miss"));
  free(miss);
  hf_df_free(explain);
  api_expect(c, "SELECT n FROM t", "1\n");
  explain = api_sql(c, "EXPLAIN SELECT * FROM t");
  char *hit = api_rows(c, explain, NULL);
  assert_non_null(strstr(hit, "hit"));
  free(hit);
  hf_df_free(explain);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(cache_table_as_fills_at_once),
      CASE(cache_lazy_table_fills_at_the_first_use),
      CASE(show_cache_lists_holds_with_their_states),
      CASE(show_tables_tells_views_from_cached_tables),
      CASE(cache_table_of_a_view_holds_it_until_uncache),
      CASE(uncache_table_drops_the_table_and_its_files),
      CASE(uncache_table_of_an_unknown_name_is_an_error_with_a_suggestion),
      CASE(cache_table_on_a_taken_name_is_refused),
      CASE(cache_table_with_an_unknown_level_is_refused),
      CASE(cache_table_whose_fill_fails_leaves_nothing),
      CASE(clear_cache_lets_every_hold_go),
      CASE(refresh_table_computes_anew),
      CASE(replaced_and_dropped_views_let_their_hold_go),
      CASE(explain_tells_hit_from_miss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

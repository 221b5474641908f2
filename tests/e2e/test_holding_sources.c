/* SPDX-License-Identifier: Apache-2.0 */
/* Held results and what they were computed from: when a change of the files counts, and with which settings. */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Writes a file whose time is `seconds` from now: a clock's tick is no part of these cases. */
static void put_file(api_case *c, const char *name, const char *text, long seconds) {
  const char *path = api_file(c, name, text);
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
  assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[1]), 0);
  times[1].tv_sec += seconds;
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static hf_df *sql_of(api_case *c, const char *format, const char *file) {
  char sql[512], path[128];
  snprintf(path, sizeof path, "%s/%s", c->dir, file);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(sql, sizeof sql, format, path);
#pragma GCC diagnostic pop
  return api_sql(c, sql);
}

static void set(api_case *c, const char *key, const char *value) {
  assert_int_equal(hf_session_set(c->session, key, value, &c->error), HF_OK);
}

static void remove_file(api_case *c, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", c->dir, name);
  assert_int_equal(unlink(path), 0);
}

static void follow_sources(api_case *c) {
  set(c, "cache.on_source_change", "refresh");
}

static void expect_plan(api_case *c, hf_df *df, const char *text) {
  char *plan = NULL;
  assert_int_equal(hf_df_explain(df, &plan, &c->error), HF_OK);
  if (strstr(plan, text) == NULL) {
    fail_msg("the plan does not say %s: %s", text, plan);
  }
  hf_text_free(plan);
}

/* ------------------------------------------------------------------- keep */

static void kept_hit_looks_at_no_source(void **state) {
  api_case *c = *state;
  put_file(c, "a.csv", "n\n1\n", -9);
  put_file(c, "b.csv", "n\n2\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "*.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "3\n");
  put_file(c, "a.csv", "n\n100\n", 0);
  assert_int_equal(api_expect_df(c, held, "3\n").held_hits, 1);
  remove_file(c, "a.csv");
  remove_file(c, "b.csv");
  hf_profile hit = api_expect_df(c, held, "3\n");
  assert_int_equal(hit.held_hits, 1);
  assert_int_equal(hit.source_files, 0);
  assert_int_equal(api_storage(c, held).generation, 1);
  hf_df_free(held);
  hf_df_free(query);
}

/* ---------------------------------------------------------------- refresh */

static void followed_source_unchanged_is_a_hit(void **state) {
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "a.csv");
  hf_df *held = api_cache(c, query);
  assert_int_equal(api_expect_df(c, held, "1\n").held_fills, 1);
  hf_profile hit = api_expect_df(c, held, "1\n");
  assert_int_equal(hit.held_hits, 1);
  assert_int_equal(hit.held_fills, 0);
  assert_int_equal(hit.source_files, 0);
  assert_int_equal(api_storage(c, held).hits, 1);
  hf_df_free(held);
  hf_df_free(query);
}

static void followed_source_changed_is_computed_anew(void **state) {
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "a.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  expect_plan(c, held, "[hit, generation 1]");
  put_file(c, "a.csv", "n\n5\n", 0); /* of the same size */
  expect_plan(c, held, "[source changed → materialise]");
  hf_profile stale = api_expect_df(c, held, "5\n");
  assert_int_equal(stale.held_fills, 1);
  assert_int_equal(stale.held_hits, 0);
  assert_int_equal(api_storage(c, held).generation, 2);
  assert_int_equal(api_expect_df(c, held, "5\n").held_hits, 1);
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  assert_non_null(strstr(rows, "source changed"));
  free(rows);
  hf_df_free(show);
  hf_df_free(held);
  hf_df_free(query);
}

static void followed_pattern_notices_a_new_file(void **state) {
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "*.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  put_file(c, "b.csv", "n\n2\n", -9);
  assert_int_equal(api_expect_df(c, held, "3\n").held_fills, 1);
  hf_df_free(held);
  hf_df_free(query);
}

/* As the query that is not held: what it follows is not there. */
static void followed_source_that_is_gone_fails(void **state) {
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "a.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  remove_file(c, "a.csv");
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(held, NULL, &stream, &c->error), HF_E_FILE_NOT_FOUND);
  put_file(c, "a.csv", "n\n7\n", -3);
  api_expect_df(c, held, "7\n");
  hf_df_free(held);
  hf_df_free(query);
}

static void followed_source_below_two_holds_refreshes_both(void **state) {
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n2\n", -9);
  hf_df *inner_query = sql_of(c, "SELECT n FROM '%s'", "a.csv");
  hf_df *inner = api_cache(c, inner_query);
  assert_int_equal(hf_df_create_view(inner, "rows_held", false, NULL), HF_OK);
  hf_df *outer_query = api_sql(c, "SELECT sum(n)::BIGINT AS s FROM rows_held");
  hf_df *outer = api_cache(c, outer_query);
  api_expect_df(c, outer, "3\n");
  put_file(c, "a.csv", "n\n1\n2\n4\n", 0);
  hf_profile stale = api_expect_df(c, outer, "7\n");
  assert_int_equal(stale.held_fills, 2);
  assert_int_equal(api_storage(c, inner).generation, 2);
  assert_int_equal(api_storage(c, outer).generation, 2);
  hf_df_free(outer);
  hf_df_free(outer_query);
  hf_df_free(inner);
  hf_df_free(inner_query);
}

/* Each hold is made of the two before it, so the ways to the file double with each. */
static void followed_source_by_many_ways_is_looked_at_once(void **state) {
  enum { DEPTH = 40 };
  api_case *c = *state;
  follow_sources(c);
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df_free(sql_of(c, "CACHE TABLE h0 AS SELECT n FROM '%s'", "a.csv"));
  hf_df_free(sql_of(c, "CACHE TABLE h1 AS SELECT n FROM '%s'", "a.csv"));
  for (int i = 2; i < DEPTH; i++) {
    char sql[128];
    snprintf(sql, sizeof sql, "CACHE TABLE h%d AS SELECT max(n) AS n FROM (FROM h%d UNION ALL FROM h%d)", i,
             i - 1, i - 2);
    api_run(c, sql);
  }
  hf_df *last = api_sql(c, "SELECT n FROM h39");
  assert_int_equal(api_expect_df(c, last, "1\n").held_hits, 1);
  put_file(c, "a.csv", "n\n2\n", 0);
  assert_int_equal(api_expect_df(c, last, "2\n").held_fills, DEPTH);
  hf_df_free(last);
}

static char block_paths[16][256];
static size_t n_block_paths;

static int note_block(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  (void)walk;
  size_t length = strlen(path);
  if (kind == FTW_F && length > 6 && strcmp(path + length - 6, ".arrow") == 0 && n_block_paths < 16) {
    snprintf(block_paths[n_block_paths++], sizeof block_paths[0], "%s", path);
  }
  return 0;
}

/* A hold below that was computed again counts as a source that changed only when its rows may be others. */
static void followed_hold_that_is_lost(api_case *c, const char *inner_sql, uint64_t fills) {
  hf_df *inner_query = api_sql(c, inner_sql);
  hf_df *inner = api_cache(c, inner_query);
  assert_int_equal(hf_df_create_view(inner, "inner_held", true, NULL), HF_OK);
  hf_df *outer_query = api_sql(c, "SELECT count(x) AS n FROM inner_held");
  hf_df *outer = api_cache(c, outer_query);
  api_count(c, inner, NULL);
  n_block_paths = 0;
  nftw(c->work_dir, note_block, 16, FTW_PHYS);
  api_expect_df(c, outer, "10\n");
  for (size_t i = 0; i < n_block_paths; i++) {
    unlink(block_paths[i]);
  }
  hf_df *reads = api_sql(c, "SELECT count(x) FROM inner_held");
  assert_int_equal(api_expect_df(c, reads, "10\n").held_fills, 1);
  assert_int_equal(api_storage(c, inner).generation, 2);
  assert_int_equal(api_expect_df(c, outer, "10\n").held_fills, fills);
  hf_df_free(reads);
  hf_df_free(outer);
  hf_df_free(outer_query);
  hf_df_free(inner);
  hf_df_free(inner_query);
}

static void followed_hold_computed_again_counts_when_indeterminate(void **state) {
  api_case *c = *state;
  follow_sources(c);
  followed_hold_that_is_lost(c, "SELECT i AS x FROM range(10) t(i)", 0);
  followed_hold_that_is_lost(c, "SELECT random() AS x FROM range(10) t(i)", 1);
}

/* ---------------------------------------------------------------- REFRESH */

static void refresh_table_of_a_hold_reaches_those_on_top(void **state) {
  api_case *c = *state;
  put_file(c, "a.csv", "n\n1\n2\n", -9);
  hf_df *query = sql_of(c, "CACHE TABLE base AS SELECT n FROM '%s'", "a.csv");
  hf_df_free(query);
  api_run(c, "CACHE TABLE top AS SELECT sum(n)::BIGINT AS s FROM base");
  api_run(c, "CACHE TABLE other AS SELECT 5 AS n");
  put_file(c, "a.csv", "n\n1\n2\n4\n", 0);
  api_expect(c, "SELECT s FROM top", "3\n");
  api_run(c, "REFRESH TABLE base");
  api_expect(c, "SELECT s FROM top", "7\n");
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  assert_non_null(strstr(rows, "|refresh\n"));
  assert_non_null(strstr(rows, "other|"));
  assert_null(strstr(strstr(rows, "other|"), "refresh"));
  free(rows);
  hf_df_free(show);
}

static void refresh_table_of_a_plain_view_reaches_holds_of_its_files(void **state) {
  api_case *c = *state;
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df_free(sql_of(c, "CREATE VIEW raw AS SELECT * FROM '%s'", "a.csv"));
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "a.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  put_file(c, "a.csv", "n\n50\n", 0);
  api_expect_df(c, held, "1\n");
  api_run(c, "REFRESH TABLE raw");
  api_expect_df(c, held, "50\n");
  hf_df_free(held);
  hf_df_free(query);
}

static void refresh_of_a_path_reaches_holds_of_files_below(void **state) {
  api_case *c = *state;
  put_file(c, "a.csv", "n\n1\n", -9);
  hf_df *query = sql_of(c, "SELECT sum(n)::BIGINT FROM '%s'", "a.csv");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  put_file(c, "a.csv", "n\n50\n", 0);
  api_run(c, "REFRESH '/somewhere/else'");
  api_expect_df(c, held, "1\n");
  hf_df_free(sql_of(c, "REFRESH '%s'", "*.csv"));
  api_expect_df(c, held, "50\n");
  put_file(c, "a.csv", "n\n60\n", 1);
  hf_df_free(sql_of(c, "REFRESH '%s'", "a.csv"));
  api_expect_df(c, held, "60\n");
  api_fails(c, "REFRESH ''", HF_E_INVALID_ARGUMENT);
  api_fails(c, "REFRESH nothing", HF_E_SYNTAX);
  hf_df_free(held);
  hf_df_free(query);
}

/* --------------------------------------------------------------- settings */

static void lost_hold_is_computed_with_the_settings_of_its_declaration(void **state) {
  api_case *c = *state;
  put_file(c, "a.csv", "n\n7\n", -9);
  hf_df *query = sql_of(c, "SELECT (n / 2)::DOUBLE AS half FROM '%s'", "a.csv");
  set(c, "sql.integer_division", "true");
  hf_df *held = api_cache(c, query);
  set(c, "sql.integer_division", "false");
  api_expect_df(c, query, "3.5\n");
  api_expect_df(c, held, "3\n");
  hf_df_free(sql_of(c, "REFRESH '%s'", "a.csv"));
  hf_profile again = api_expect_df(c, held, "3\n");
  assert_int_equal(again.held_fills, 1);
  hf_df_free(held);
  hf_df_free(query);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(kept_hit_looks_at_no_source),
      CASE(followed_source_unchanged_is_a_hit),
      CASE(followed_source_changed_is_computed_anew),
      CASE(followed_pattern_notices_a_new_file),
      CASE(followed_source_that_is_gone_fails),
      CASE(followed_source_below_two_holds_refreshes_both),
      CASE(followed_source_by_many_ways_is_looked_at_once),
      CASE(followed_hold_computed_again_counts_when_indeterminate),
      CASE(refresh_table_of_a_hold_reaches_those_on_top),
      CASE(refresh_table_of_a_plain_view_reaches_holds_of_its_files),
      CASE(refresh_of_a_path_reaches_holds_of_files_below),
      CASE(lost_hold_is_computed_with_the_settings_of_its_declaration),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of several tasks through the public API: the setting, the profile,
 * order, held results of several tasks, EXPLAIN; and that nothing is left.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `sql` with the case's directory for @; valid until the next call. */
static const char *text(const api_case *c, const char *sql) {
  static char out[1024];
  const char *at = strchr(sql, '@');
  assert_non_null(at);
  snprintf(out, sizeof out, "%.*s%s%s", (int)(at - sql), sql, c->dir, at + 1);
  return out;
}

/* 10,000 rows in groups of 2,048. */
static void write_parquet(const api_case *c) {
  oracle *plain = oracle_open();
  assert_null(oracle_run(
      plain, text(c, "COPY (SELECT i AS x, 'n' || i % 3 AS \"odd name\" FROM range(10000) t(i)) TO "
                     "'@/p.parquet' (ROW_GROUP_SIZE 2048)")));
  oracle_close(plain);
}

static void stages_of_parquet_give_user_names_and_order(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_df *df =
      api_sql(c, text(c, "SELECT \"odd name\", count(*) AS n FROM '@/p.parquet' GROUP BY ALL ORDER BY ALL"));
  hf_profile profile = api_expect_df(c, df, "n0|3334\nn1|3333\nn2|3333\n");
  assert_int_equal(profile.widest_tasks, 3);
  assert_true(profile.stages_run > 1);
  assert_string_equal(profile.fallback, "");
  hf_df_free(df);
  api_expect(c, text(c, "SELECT x FROM '@/p.parquet' LIMIT 2 OFFSET 7000"), "7000\n7001\n");
}

/* DuckDB itself does not keep the order of rows below first and last when it has two threads. */
static void stages_of_one_thread_keep_the_order_of_the_file(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  api_expect(c, text(c, "SELECT first(x), last(x) FROM '@/p.parquet'"), "0|9999\n");
  api_expect(c,
             text(c, "SELECT (md5(string_agg(x, ' ')) = md5((SELECT string_agg(i, ' ') "
                     "FROM range(10000) t(i))))::INTEGER FROM '@/p.parquet'"),
             "1\n");
  api_expect(c, text(c, "SELECT list(x)[5001] FROM '@/p.parquet'"), "5000\n");
}

static void stages_of_four_csv_files_on_one_slot(void **state) {
  api_case *c = *state;
  api_file(c, "1.csv", "x,y\n1,a\n2,b\n");
  api_file(c, "2.csv", "x,y\n3,a\n");
  api_file(c, "3.csv", "x,y\n4,b\n5,\n");
  api_file(c, "4.csv", "x,y\n6,a\n");
  api_run(c, "SET tasks = 4");
  hf_df *df = api_sql(
      c, text(c, "SELECT y, sum(x)::BIGINT, string_agg(x, ' ') FROM '@/*.csv' GROUP BY y ORDER BY y"));
  hf_profile profile = api_expect_df(c, df, "a|10|1 3 6\nb|6|2 4\nNULL|5|5\n");
  assert_int_equal(profile.widest_tasks, 4);
  assert_int_equal(profile.source_files, 4);
  hf_df_free(df);
}

static void stages_fill_a_hold_that_other_stages_read(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_df *df = api_sql(c, text(c, "SELECT x FROM '@/p.parquet' WHERE x % 2 = 0"));
  hf_df *held = api_cache(c, df);
  hf_profile profile;
  assert_int_equal(api_count(c, held, &profile), 5000);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(api_storage(c, held).rows, 5000);
  api_run(c, "SET tasks = 2");
  assert_int_equal(api_count(c, held, &profile), 5000);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.source_rows, 0);
  assert_int_equal(hf_df_unpersist(held, true, NULL), HF_OK);
  hf_df_free(held);
  hf_df_free(df);
}

static void stages_are_explained_with_tasks_and_shares(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_df *df = api_sql(c, text(c, "SELECT \"odd name\", count(*) FROM '@/p.parquet' GROUP BY ALL"));
  char *plan = NULL;
  assert_int_equal(hf_df_explain(df, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "3 tasks, 3 partitions"));
  assert_non_null(strstr(plan, "read_parquet 1 file, 10,000 rows (exact)"));
  assert_non_null(strstr(plan, "split among the tasks"));
  assert_non_null(strstr(plan, "input 0: stage 1, a partition each"));
  hf_text_free(plan);
  hf_df_free(df);
  df = api_sql(c, "SELECT 1");
  assert_int_equal(hf_df_explain(df, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "stage 1: one task ("));
  assert_null(strstr(plan, "fits one slot")); /* but why it is not three */
  hf_text_free(plan);
  hf_df_free(df);
}

static void stages_join_client_data_with_files(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_df *query = api_sql(c, "SELECT i AS x, i % 2 AS p FROM range(5000) t(i)"), *client = NULL;
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(query, NULL, &stream, &c->error), HF_OK);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &client, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(client, "client", true, &c->error), HF_OK);
  hf_df *joined = api_sql(c, text(c, "SELECT p, count(*), sum(f.x)::BIGINT FROM client JOIN '@/p.parquet' f "
                                     "USING (x) GROUP BY p ORDER BY p"));
  hf_profile profile = api_expect_df(c, joined, "0|2500|6247500\n1|2500|6250000\n");
  assert_int_equal(profile.widest_tasks, 3);
  hf_df *alone = api_sql(c, "SELECT p, max(x), list(x)[2] FROM client WHERE x > 4990 GROUP BY p ORDER BY p");
  api_expect_df(c, alone, "0|4998|4994\n1|4999|4993\n");
  hf_df_free(alone);
  hf_df_free(joined);
  hf_df_free(client);
  hf_df_free(query);
}

/* DuckDB's optimizer adds bounds to such a condition that are bytes, with which SQL compares no text. */
static void stages_of_a_whole_match_compare_its_bounds(void **state) {
  static const char *const patterns[][2] = {
      {"n[0-1]", "6667\n"}, {"[a-z]2", "3333\n"}, {"\xc3\xbc[a-z]*", "0\n"}, {"(?i)N0", "3334\n"}};
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM '@/p.parquet' WHERE regexp_full_match(\"odd name\", '%s')",
             patterns[i][0]);
    hf_df *df = api_sql(c, text(c, sql));
    hf_profile profile = api_expect_df(c, df, patterns[i][1]);
    assert_string_equal(profile.fallback, "");
    assert_int_equal(profile.widest_tasks, 3);
    hf_df_free(df);
  }
}

/* A NULL of the inequality matches nothing, in whichever side, whoever has how many rows (docs/verify.md). */
static void stages_of_an_asof_join_match_no_null(void **state) {
  static const char sides[] = "WITH l AS (SELECT x AS id, x % 5 AS k, nullif(x % 10, 7) AS t FROM p), "
                              "r AS (SELECT x % 5 AS k, nullif(x % 10, 2) AS t FROM p WHERE x < 10) ";
  static const char *const joins[][2] = {
      {"", "8000\n"}, {"LEFT", "10000\n"}, {"RIGHT", "8002\n"}, {"FULL", "10002\n"}};
  api_case *c = *state;
  write_parquet(c);
  api_run(c, text(c, "CREATE VIEW p AS FROM '@/p.parquet'"));
  api_run(c, "SET tasks = 3");
  for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
    char sql[400];
    snprintf(sql, sizeof sql, "%s SELECT count(*) FROM l ASOF %s JOIN r ON l.k = r.k AND l.t >= r.t", sides,
             joins[i][0]);
    hf_df *df = api_sql(c, sql);
    hf_profile profile = api_expect_df(c, df, joins[i][1]);
    assert_string_equal(profile.fallback, "");
    hf_df_free(df);
  }
}

/* DuckDB's own reader stops there (docs/verify.md): the task runs again. */
static void stages_with_conditions_on_lists_are_read(void **state) {
  static const char query[] =
      "SELECT t FROM '@/n.parquet' WHERE l IS DISTINCT FROM []::INTEGER[] ORDER BY ALL";
  api_case *c = *state;
  oracle *plain = oracle_open();
  assert_null(oracle_run(
      plain, text(c, "COPY (FROM (VALUES (NULL, 'a'), ([0], NULL), ([], NULL), (NULL, 'b')) v(l, t)) TO "
                     "'@/n.parquet'")));
  char *failed = oracle_run(plain, text(c, query));
  assert_non_null(failed);
  free(failed);
  oracle_close(plain);
  api_expect(c, text(c, query), "a\nb\nNULL\n");
  api_run(c, "SET tasks = 3");
  api_expect(c, text(c, query), "a\nb\nNULL\n");
}

static void stages_setting_is_checked(void **state) {
  api_case *c = *state;
  assert_int_equal(hf_session_set(c->session, "tasks", "0", &c->error), HF_E_SETTING_VALUE);
  hf_error_reset(&c->error);
  assert_int_equal(hf_session_set(c->session, "tasks", "auto", NULL), HF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(stages_of_parquet_give_user_names_and_order, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_of_one_thread_keep_the_order_of_the_file,
                                      api_case_open_one_thread, api_case_close),
      cmocka_unit_test_setup_teardown(stages_of_four_csv_files_on_one_slot, api_case_open, api_case_close),
      cmocka_unit_test_setup_teardown(stages_fill_a_hold_that_other_stages_read, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_are_explained_with_tasks_and_shares, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_join_client_data_with_files, api_case_open_one_thread,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_of_a_whole_match_compare_its_bounds, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_of_an_asof_join_match_no_null, api_case_open, api_case_close),
      cmocka_unit_test_setup_teardown(stages_with_conditions_on_lists_are_read, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(stages_setting_is_checked, api_case_open, api_case_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

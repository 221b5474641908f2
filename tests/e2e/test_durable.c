/* SPDX-License-Identifier: Apache-2.0 */
/* A session on a state directory goes on at the next start: what survives and what does not. */
#include "support/state_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void lose_input(api_case *c) {
  char path[128];
  snprintf(path, sizeof path, "%.60s/in.csv", c->dir);
  assert_int_equal(unlink(path), 0);
}

static void hold_after_a_clean_exit_is_a_hit_without_its_source(void **state) {
  api_case *c = *state;
  state_hold_totals(c);
  lose_input(c);
  state_has_blocks(c, 1);
  state_begin(c);
  hf_df *df = api_sql(c, STATE_TOTALS);
  hf_profile profile = api_expect_df(c, df, STATE_TOTALS_ROWS);
  hf_df_free(df);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  assert_int_equal(profile.source_rows, 0);
  state_holds_say(c, "totals|");
  state_holds_say(c, "|materialised|");
}

static void names_and_settings_go_on(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW one AS SELECT 1 AS a");
  api_run(c, "CREATE VIEW two AS SELECT a + 1 AS a FROM one");
  api_run(c, "CREATE VIEW gone AS SELECT 0 AS a");
  api_run(c, "CREATE OR REPLACE VIEW One AS SELECT 5 AS a");
  api_run(c, "DROP VIEW gone");
  api_run(c, "SET sql.default_order = desc");
  api_run(c, "SET sql.time_zone = 'Asia/Tokyo'");
  api_run(c, "RESET sql.time_zone");
  state_again(c);
  api_expect(c, "SELECT a FROM one UNION ALL SELECT a FROM two ORDER BY a", "5\n2\n");
  api_fails(c, "SELECT * FROM gone", HF_E_TABLE_NOT_FOUND);
  char *zone = NULL;
  assert_int_equal(hf_session_get(c->session, "sql.time_zone", &zone, &c->error), HF_OK);
  assert_string_not_equal(zone, "Asia/Tokyo");
  hf_text_free(zone);
  api_run(c, "DROP VIEW two");
  state_again(c);
  api_fails(c, "SELECT * FROM two", HF_E_TABLE_NOT_FOUND);
}

static void order_and_repeated_texts_go_on(void **state) {
  api_case *c = *state;
  api_run(
      c,
      "CACHE TABLE sorted AS SELECT range AS n, 'name ' || range % 3 AS s FROM range(50000) ORDER BY n DESC");
  state_again(c);
  api_expect(c, "SELECT n, s FROM sorted LIMIT 2", "49999|name 1\n49998|name 0\n");
  api_expect(c, "SELECT s, count(*) FROM sorted GROUP BY s ORDER BY s",
             "name 0|16667\nname 1|16667\nname 2|16666\n");
  state_holds_say(c, "|materialised|");
  state_holds_say(c, "|1|2|"); /* generation, hits */
}

enum { THREADS = 6, ROUNDS = 12 };

typedef struct worker {
  api_case *of;
  int number;
} worker;

static void run_plain(hf_session *session, const char *format, int a, int b) {
  char sql[200];
  hf_df *df = NULL;
  snprintf(sql, sizeof sql, format, a, b);
  if (hf_session_sql(session, sql, &df, NULL) != HF_OK) {
    abort();
  }
  hf_df_free(df);
}

/* Each has a table of its own, of which the last version stays, and all replace one view. */
static void *worker_run(void *context) {
  const worker *w = context;
  for (int round = 0; round < ROUNDS; round++) {
    run_plain(w->of->session, "UNCACHE TABLE IF EXISTS own%d", w->number, 0);
    run_plain(w->of->session, "CACHE TABLE own%d AS SELECT %d AS v", w->number, round);
    run_plain(w->of->session, "CREATE OR REPLACE VIEW shared AS SELECT %d AS v", w->number * ROUNDS + round,
              0);
  }
  return NULL;
}

static void threads_at_once_leave_what_the_last_one_said(void **state) {
  api_case *c = *state;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){c, i};
    assert_int_equal(pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  hf_df *df = api_sql(c, "SELECT v FROM shared");
  char *shared = api_rows(c, df, NULL);
  hf_df_free(df);
  state_has_blocks(c, THREADS);
  state_begin(c);
  api_expect(c, "SELECT v FROM shared", shared);
  free(shared);
  for (int i = 0; i < THREADS; i++) {
    char sql[60];
    snprintf(sql, sizeof sql, "SELECT v FROM own%d", i);
    api_expect(c, sql, "11\n");
  }
}

static void cached_view_is_itself_again_after_uncache(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT range AS n FROM range(1000)");
  api_run(c, "CACHE TABLE v");
  state_again(c);
  api_expect(c, "SELECT sum(n)::BIGINT FROM v", "499500\n");
  state_holds_say(c, "|materialised|");
  api_run(c, "UNCACHE TABLE v");
  state_has_blocks(c, 0);
  state_begin(c);
  api_expect(c, "SELECT sum(n)::BIGINT FROM v", "499500\n");
  char *holds = state_holds(c);
  assert_string_equal(holds, "");
  free(holds);
}

static void lazy_hold_is_filled_after_the_restart(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE later AS SELECT range AS n FROM range(10)");
  state_again(c);
  state_holds_say(c, "later|");
  state_holds_say(c, "|declared|");
  api_expect(c, "SELECT sum(n)::BIGINT FROM later", "45\n");
  state_again(c);
  state_holds_say(c, "|materialised|");
}

static void nested_holds_survive_with_the_inner_one_let_go(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE inner_t AS SELECT range AS n FROM range(100)");
  api_run(c, "CREATE VIEW mid AS SELECT n * 2 AS n FROM inner_t");
  api_run(c, "CACHE TABLE outer_t AS SELECT sum(n)::BIGINT AS s FROM mid");
  api_run(c, "UNCACHE TABLE inner_t");
  state_again(c);
  api_expect(c, "SELECT s FROM outer_t", "9900\n");
  api_expect(c, "SELECT count(*) FROM mid", "100\n");
  state_has_blocks(c, 1);
}

static void refresh_and_generations_go_on(void **state) {
  api_case *c = *state;
  state_hold_totals(c);
  api_file(c, "in.csv", "k,n\n0,100\n");
  state_again(c);
  api_expect(c, STATE_TOTALS, STATE_TOTALS_ROWS); /* a snapshot */
  api_run(c, "REFRESH TABLE totals");
  state_again(c);
  api_expect(c, STATE_TOTALS, "0|100\n");
  state_again(c);
  api_expect(c, STATE_TOTALS, "0|100\n");
}

static void stream_of(api_case *c, const char *sql, struct ArrowArrayStream *out) {
  hf_df *df = api_sql(c, sql);
  assert_int_equal(hf_df_collect(df, NULL, out, &c->error), HF_OK);
  hf_df_free(df);
}

static void client_data_under_a_view_survives(void **state) {
  api_case *c = *state;
  struct ArrowArrayStream stream, other;
  hf_df *kept = NULL, *lost = NULL;
  stream_of(c, "SELECT range + 1 AS n FROM range(4)", &stream);
  stream_of(c, "SELECT 7 AS n", &other);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &kept, &c->error), HF_OK);
  assert_int_equal(hf_session_from_stream(c->session, &other, &lost, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(kept, "given", false, &c->error), HF_OK);
  hf_df_free(kept);
  hf_df_free(lost);
  state_has_blocks(c, 1);
  state_begin(c);
  api_expect(c, "SELECT sum(n)::BIGINT, count(*) FROM given", "10|4\n");
  stream_of(c, "SELECT 5::BIGINT AS n", &stream);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &kept, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(kept, "more", false, &c->error), HF_OK);
  hf_df_free(kept);
  state_again(c);
  api_expect(c, "SELECT n FROM given UNION ALL SELECT n FROM more ORDER BY n", "1\n2\n3\n4\n5\n");
  api_run(c, "DROP VIEW given");
  state_again(c);
  state_has_blocks(c, 1);
}

static void hold_without_a_name_ends_with_the_session(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT range AS n FROM range(10)");
  hf_df *held = api_cache(c, df), *named = api_cache(c, df);
  assert_int_equal(api_count(c, held, NULL), 10);
  assert_int_equal(api_count(c, named, NULL), 10);
  assert_int_equal(hf_df_create_view(named, "named", false, &c->error), HF_OK);
  hf_df_free(df);
  hf_df_free(held);
  hf_df_free(named);
  state_has_blocks(c, 1);
  state_begin(c);
  state_holds_say(c, "|materialised|");
  api_expect(c, "SELECT count(*) FROM named", "10\n");
}

static void session_beside_it_leaves_nothing(void **state) {
  api_case *c = *state;
  hf_session *first = c->session, *second = NULL;
  assert_int_equal(hf_session_new(first, &second, &c->error), HF_OK);
  c->session = second;
  api_run(c, "CACHE TABLE beside AS SELECT 1 AS a");
  hf_session_close(second);
  c->session = first;
  state_has_blocks(c, 0);
  state_begin(c);
  api_fails(c, "SELECT * FROM beside", HF_E_TABLE_NOT_FOUND);
}

static void clear_cache_ends_all_holds(void **state) {
  api_case *c = *state;
  state_hold_totals(c);
  state_again(c);
  api_run(c, "CLEAR CACHE");
  state_has_blocks(c, 0);
  state_begin(c);
  api_fails(c, STATE_TOTALS, HF_E_TABLE_NOT_FOUND);
}

static void directory_that_was_moved_still_works(void **state) {
  api_case *c = *state;
  char moved[80];
  state_hold_totals(c);
  state_end(c);
  lose_input(c);
  snprintf(moved, sizeof moved, "%.60s/moved", c->dir);
  assert_int_equal(rename(c->work_dir, moved), 0);
  snprintf(c->work_dir, sizeof c->work_dir, "%s", moved);
  state_begin(c);
  api_expect(c, STATE_TOTALS, STATE_TOTALS_ROWS);
  state_again(c);
  api_expect(c, STATE_TOTALS, STATE_TOTALS_ROWS);
}

static void source_that_changed_meanwhile_is_followed_when_asked(void **state) {
  api_case *c = *state;
  api_run(c, "SET cache.on_source_change = 'refresh'");
  state_hold_totals(c);
  state_end(c);
  api_file(c, "in.csv", "k,n\n0,1000\n0,1\n");
  state_begin(c);
  api_expect(c, STATE_TOTALS, "0|1001\n");
  state_holds_say(c, "source changed");
  state_again(c);
  api_expect(c, STATE_TOTALS, "0|1001\n");
}

static void file_written_over_a_source_does_not_bring_the_old_rows_back(void **state) {
  api_case *c = *state;
  char path[128];
  state_hold_totals(c);
  snprintf(path, sizeof path, "%.60s/in.csv", c->dir);
  hf_df *df = api_sql(c, "SELECT 0 AS k, 77 AS n");
  const hf_write_options over = {.overwrite = true};
  assert_int_equal(hf_df_write_csv(df, path, &over, NULL, &c->error), HF_OK);
  hf_df_free(df);
  state_again(c);
  api_expect(c, STATE_TOTALS, "0|77\n");
}

static void hold_below_a_built_view_survives_with_it(void **state) {
  api_case *c = *state;
  hf_df *numbers = api_sql(c, "SELECT range AS n FROM range(10)"), *half = NULL;
  hf_df *held = api_cache(c, numbers);
  assert_int_equal(api_count(c, held, NULL), 10);
  assert_int_equal(hf_df_filter(held, "n < 5", &half, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(half, "half", false, &c->error), HF_OK);
  hf_df_free(numbers);
  hf_df_free(held);
  hf_df_free(half);
  api_expect(c, "SELECT count(*) FROM half", "5\n");
  state_again(c);
  hf_df *df = api_sql(c, "SELECT count(*) FROM half");
  hf_profile profile = api_expect_df(c, df, "5\n");
  hf_df_free(df);
  assert_int_equal(profile.held_hits, 1);
}

static void directory_itself_is_out_of_reach_of_queries(void **state) {
  api_case *c = *state;
  char sql[300];
  snprintf(sql, sizeof sql, "SELECT * FROM read_csv('%s/journal.db')", c->work_dir);
  api_fails(c, sql, HF_E_PATH_REFUSED);
  char path[128];
  snprintf(path, sizeof path, "%s/journal.db", c->work_dir);
  hf_df *df = api_sql(c, "SELECT 1 AS a");
  const hf_write_options over = {.overwrite = true};
  assert_int_equal(hf_df_write_csv(df, path, &over, NULL, &c->error), HF_E_PATH_REFUSED);
  hf_df_free(df);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, state_case_open, state_case_close)
  const struct CMUnitTest tests[] = {
      CASE(hold_after_a_clean_exit_is_a_hit_without_its_source),
      CASE(names_and_settings_go_on),
      CASE(order_and_repeated_texts_go_on),
      CASE(threads_at_once_leave_what_the_last_one_said),
      CASE(cached_view_is_itself_again_after_uncache),
      CASE(lazy_hold_is_filled_after_the_restart),
      CASE(nested_holds_survive_with_the_inner_one_let_go),
      CASE(refresh_and_generations_go_on),
      CASE(client_data_under_a_view_survives),
      CASE(hold_without_a_name_ends_with_the_session),
      CASE(session_beside_it_leaves_nothing),
      CASE(clear_cache_ends_all_holds),
      CASE(directory_that_was_moved_still_works),
      CASE(source_that_changed_meanwhile_is_followed_when_asked),
      CASE(file_written_over_a_source_does_not_bring_the_old_rows_back),
      CASE(hold_below_a_built_view_survives_with_it),
      CASE(directory_itself_is_out_of_reach_of_queries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

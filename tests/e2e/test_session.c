/* SPDX-License-Identifier: Apache-2.0 */
/* Life of sessions: settings, peers, closing with results open and queries running, what is left on disk. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------- opening */

static void open_with_an_unknown_setting_is_refused_with_a_suggestion(void **state) {
  (void)state;
  const hf_setting settings[] = {{"memroy", "1GiB"}};
  hf_session *session = NULL;
  hf_error error = {0};
  assert_int_equal(hf_session_open("local", settings, 1, &session, &error), HF_E_SETTING_UNKNOWN);
  assert_null(session);
  assert_non_null(strstr(error.hint, "memory"));
  hf_error_reset(&error);
}

static void open_with_too_little_memory_is_refused(void **state) {
  (void)state;
  const hf_setting settings[] = {{"memory", "1MiB"}};
  hf_session *session = NULL;
  hf_error error = {0};
  assert_int_equal(hf_session_open("local", settings, 1, &session, &error), HF_E_SETTING_VALUE);
  assert_non_null(strstr(error.message, "memory"));
  hf_error_reset(&error);
}

static void open_with_another_uri_is_unsupported(void **state) {
  (void)state;
  hf_session *session = NULL;
  hf_error error = {0};
  assert_int_equal(hf_session_open("sc://localhost:15002", NULL, 0, &session, &error), HF_E_UNSUPPORTED);
  assert_non_null(error.hint);
  hf_error_reset(&error);
}

static void open_with_a_missing_allowed_path_is_refused(void **state) {
  (void)state;
  const hf_setting settings[] = {{"allow_path", "/no/such/directory"}};
  hf_session *session = NULL;
  hf_error error = {0};
  assert_int_equal(hf_session_open("local", settings, 1, &session, &error), HF_E_SETTING_VALUE);
  assert_non_null(strstr(error.message, "/no/such/directory"));
  hf_error_reset(&error);
}

static void open_on_a_work_dir_in_use_is_refused(void **state) {
  api_case *c = *state;
  const hf_setting settings[] = {{"work_dir", c->work_dir}};
  hf_session *second = NULL;
  api_expect(c, "SELECT 1", "1\n");
  assert_int_equal(hf_session_open("local", settings, 1, &second, &c->error), HF_E_WORK_DIR);
  assert_null(second);
  api_expect(c, "SELECT 2", "2\n");
}

/* ------------------------------------------------------------------ settings */

static void assert_setting(api_case *c, const char *key, const char *value) {
  char *found = NULL;
  assert_int_equal(hf_session_get(c->session, key, &found, &c->error), HF_OK);
  assert_string_equal(found, value);
  hf_text_free(found);
}

static void setting_changes_queries_from_then_on(void **state) {
  api_case *c = *state;
  static const char query[] = "SELECT n FROM (VALUES (1), (NULL), (2)) t(n) ORDER BY n";
  api_expect(c, query, "1\n2\nNULL\n");
  assert_int_equal(hf_session_set(c->session, "sql.default_null_order", "nulls_first", &c->error), HF_OK);
  assert_setting(c, "sql.default_null_order", "nulls_first");
  api_expect(c, query, "NULL\n1\n2\n");
  api_run(c, "RESET sql.default_null_order");
  api_expect(c, query, "1\n2\nNULL\n");
  api_run(c, "SET sql.default_order = 'desc'");
  api_expect(c, query, "2\n1\nNULL\n");
  api_run(c, "SET sql.integer_division TO true");
  api_expect(c, "SELECT 7 / 2", "3\n");
}

static void time_zone_applies_and_is_checked(void **state) {
  api_case *c = *state;
  api_run(c, "SET sql.time_zone = 'Asia/Tokyo'");
  api_expect(c, "SELECT hour(TIMESTAMPTZ '2024-01-01 00:00:00+00')", "9\n");
  api_run(c, "SET sql.time_zone = 'America/New_York'");
  api_expect(c, "SELECT hour(TIMESTAMPTZ '2024-01-01 00:00:00+00')", "19\n");
  api_fails(c, "SET sql.time_zone = 'Mars/Olympus'", HF_E_SETTING_VALUE);
  assert_setting(c, "sql.time_zone", "America/New_York");
}

static void settings_are_checked(void **state) {
  api_case *c = *state;
  api_fails(c, "SET sql.default_order = 'sideways'", HF_E_SETTING_VALUE);
  api_fails(c, "SET nothing = 1", HF_E_SETTING_UNKNOWN);
  api_fails(c, "SET memory = '1GiB'", HF_E_SETTING_VALUE);
  assert_non_null(strstr(c->error.message, "memory"));
  api_fails(c, "SHOW nothing", HF_E_SETTING_UNKNOWN);
}

static void show_setting_tells_the_value(void **state) {
  api_case *c = *state;
  api_run(c, "SET sink.budget = '32MiB'");
  hf_df *one = api_sql(c, "SHOW sink.budget");
  char *rows = api_rows(c, one, NULL);
  assert_int_equal(strncmp(rows, "sink.budget|32MiB|128MiB|", 25), 0);
  free(rows);
  hf_df_free(one);
  hf_df *all = api_sql(c, "SHOW ALL");
  assert_true(api_count(c, all, NULL) > 10);
  hf_df_free(all);
  assert_setting(c, "work_dir", c->work_dir);
}

/* --------------------------------------------------------------------- peers */

static void peer_has_names_settings_and_holds_of_its_own(void **state) {
  api_case *c = *state;
  api_case peer = {0};
  assert_int_equal(hf_session_new(c->session, &peer.session, &c->error), HF_OK);
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n");
  api_run(c, "SET sql.default_null_order = 'nulls_first'");
  api_run(c, "CACHE TABLE t AS SELECT 2 AS n");
  api_fails(&peer, "SELECT * FROM v", HF_E_TABLE_NOT_FOUND);
  api_fails(&peer, "SELECT * FROM t", HF_E_TABLE_NOT_FOUND);
  api_expect(&peer, "SHOW CACHE", "");
  api_expect(&peer, "SELECT n FROM (VALUES (NULL), (1)) t(n) ORDER BY n", "1\nNULL\n");
  api_run(&peer, "CREATE VIEW v AS SELECT 3 AS n");
  hf_session_close(peer.session);
  hf_error_reset(&peer.error);
  api_expect(c, "SELECT n FROM v", "1\n");
  hf_df *t = api_sql(c, "SELECT n FROM t");
  assert_int_equal(api_expect_df(c, t, "2\n").held_hits, 1);
  hf_df_free(t);
}

static void peer_outlives_the_session_it_came_from(void **state) {
  (void)state;
  api_case first = {0};
  api_case second = {0};
  assert_int_equal(hf_session_open(NULL, NULL, 0, &first.session, NULL), HF_OK);
  assert_int_equal(hf_session_new(first.session, &second.session, NULL), HF_OK);
  hf_session_close(first.session);
  api_expect(&second, "SELECT 1", "1\n");
  hf_session_close(second.session);
}

static void closed_peer_leaves_no_files(void **state) {
  api_case *c = *state;
  api_case peer = {0};
  unsigned before = files_below(c->work_dir); /* no query ran yet: results are deleted in the background */
  assert_int_equal(hf_session_new(c->session, &peer.session, NULL), HF_OK);
  api_run(&peer, "CACHE TABLE t AS SELECT i FROM range(1000) t(i)");
  assert_true(files_below(c->work_dir) > before);
  hf_session_close(peer.session);
  assert_true(files_below(c->work_dir) <= before);
}

/* ------------------------------------------------------------------- closing */

static void result_stream_outlives_session_and_engine(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i FROM range(300000) t(i)");
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_OK);
  hf_session_close(c->session);
  c->session = NULL;
  assert_false(path_exists(c->work_dir));

  int64_t rows = 0;
  int64_t sum = 0;
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    const struct ArrowArray *numbers = batch.children[0];
    rows += batch.length;
    for (int64_t i = 0; i < batch.length; i++) {
      sum += ((const int64_t *)numbers->buffers[1])[numbers->offset + i];
    }
    batch.release(&batch);
  }
  assert_int_equal(rows, 300000);
  assert_true(sum == 299999LL * 300000 / 2);
  stream.release(&stream);
  hf_df_free(df);
}

static void df_of_a_closed_session_says_so(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS n");
  hf_df *held = api_cache(c, df);
  hf_session_close(c->session);
  c->session = NULL;
  struct ArrowArrayStream stream;
  struct ArrowSchema fields;
  hf_storage storage;
  uint64_t rows;
  hf_df *other = NULL;
  char *text = NULL;
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_count(df, NULL, &rows, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_schema(df, &fields, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_explain(df, &text, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_cache(df, &other, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_storage(held, &storage, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_E_SESSION_CLOSED);
  assert_int_equal(hf_df_create_view(df, "v", false, &c->error), HF_E_SESSION_CLOSED);
  hf_df_free(held);
  hf_df_free(df);
}

typedef struct long_query {
  hf_df *df;
  hf_status status;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool started;
} long_query;

static bool tell_started(void *context, double fraction, uint64_t rows) {
  long_query *q = context;
  (void)fraction;
  (void)rows;
  pthread_mutex_lock(&q->lock);
  q->started = true;
  pthread_cond_signal(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return true;
}

static void *run_long(void *context) {
  long_query *q = context;
  struct ArrowArrayStream stream;
  hf_action_options options = {.progress = tell_started, .progress_context = q};
  q->status = hf_df_collect(q->df, &options, &stream, NULL);
  tell_started(q, 1, 0);
  return NULL;
}

static void closing_ends_a_running_query(void **state) {
  api_case *c = *state;
  long_query q = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  q.df = api_sql(c, "SELECT sum(sqrt(a.i * b.i)) FROM range(10000000) a(i), range(10000000) b(i)");
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_long, &q), 0);
  pthread_mutex_lock(&q.lock);
  while (!q.started) {
    pthread_cond_wait(&q.changed, &q.lock);
  }
  pthread_mutex_unlock(&q.lock);
  hf_session_close(c->session);
  c->session = NULL;
  pthread_join(thread, NULL);
  assert_int_equal(q.status, HF_E_SESSION_CLOSED);
  hf_df_free(q.df);
}

typedef struct busy {
  hf_df *df;
  pthread_barrier_t *started;
  hf_status last;
} busy;

/* Acts until the session is closed. */
static void *keep_busy(void *context) {
  busy *b = context;
  uint64_t rows = 0;
  b->last = hf_df_count(b->df, NULL, &rows, NULL);
  pthread_barrier_wait(b->started);
  while (b->last == HF_OK) {
    b->last = hf_df_count(b->df, NULL, &rows, NULL);
  }
  return NULL;
}

static void closing_ends_threads_that_keep_acting(void **state) {
  enum { N = 4, ROUNDS = 10 };
  api_case *c = *state;
  for (int round = 0; round < ROUNDS; round++) {
    api_case peer = {0};
    busy all[N];
    pthread_t threads[N];
    pthread_barrier_t started;
    assert_int_equal(pthread_barrier_init(&started, NULL, N + 1), 0);
    assert_int_equal(hf_session_new(c->session, &peer.session, NULL), HF_OK);
    hf_df *query = api_sql(&peer, "SELECT i FROM range(1000) t(i)");
    hf_df *held = api_cache(&peer, query);
    for (int i = 0; i < N; i++) {
      all[i] = (busy){.df = i % 2 == 0 ? query : held, .started = &started};
      assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &all[i]), 0);
    }
    pthread_barrier_wait(&started);
    hf_session_close(peer.session);
    for (int i = 0; i < N; i++) {
      pthread_join(threads[i], NULL);
      assert_int_equal(all[i].last, HF_E_SESSION_CLOSED);
    }
    hf_df_free(held);
    hf_df_free(query);
    pthread_barrier_destroy(&started);
  }
  api_expect(c, "SELECT 1", "1\n");
}

static void fifty_sessions_leave_nothing_behind(void **state) {
  api_case *c = *state;
  for (int i = 0; i < 50; i++) {
    api_case peer = {0};
    assert_int_equal(hf_session_new(c->session, &peer.session, NULL), HF_OK);
    api_run(&peer, "CACHE LAZY TABLE t AS SELECT 1 AS n");
    api_expect(&peer, "SELECT n FROM t", "1\n");
    hf_session_close(peer.session);
  }
  struct stat info;
  assert_int_equal(stat(c->work_dir, &info), 0);
  assert_true(info.st_nlink < 10); /* no directory of a session is left */
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(open_with_an_unknown_setting_is_refused_with_a_suggestion),
      cmocka_unit_test(open_with_too_little_memory_is_refused),
      cmocka_unit_test(open_with_another_uri_is_unsupported),
      cmocka_unit_test(open_with_a_missing_allowed_path_is_refused),
      CASE(open_on_a_work_dir_in_use_is_refused),
      CASE(setting_changes_queries_from_then_on),
      CASE(time_zone_applies_and_is_checked),
      CASE(settings_are_checked),
      CASE(show_setting_tells_the_value),
      CASE(peer_has_names_settings_and_holds_of_its_own),
      cmocka_unit_test(peer_outlives_the_session_it_came_from),
      CASE(closed_peer_leaves_no_files),
      CASE(result_stream_outlives_session_and_engine),
      CASE(df_of_a_closed_session_says_so),
      CASE(closing_ends_a_running_query),
      CASE(closing_ends_threads_that_keep_acting),
      CASE(fifty_sessions_leave_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

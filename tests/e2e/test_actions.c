/* SPDX-License-Identifier: Apache-2.0 */
/* Actions by the C API: cancel, progress, profile, memory, several threads in one session. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ENDLESS[] = "SELECT sum(sqrt(a.i * b.i)) FROM range(10000000) a(i), range(10000000) b(i)";

typedef struct watched {
  unsigned calls, allowed;
  hf_cancel *cancel; /* signalled at the last allowed call; NULL: return false */
} watched;

static bool watch(void *context, double fraction, uint64_t rows) {
  watched *w = context;
  (void)rows;
  assert_true(fraction <= 1);
  w->calls++;
  if (w->calls < w->allowed) {
    return true;
  }
  if (w->cancel == NULL) {
    return false;
  }
  hf_cancel_signal(w->cancel);
  return true;
}

static void expect_cancelled(api_case *c, hf_df *df, const hf_action_options *options) {
  struct ArrowArrayStream stream;
  hf_error_reset(&c->error);
  assert_int_equal(hf_df_collect(df, options, &stream, &c->error), HF_E_CANCELLED);
  assert_int_equal(c->error.code, HF_E_CANCELLED);
}

static void cancel_by_progress_ends_the_query(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, ENDLESS);
  watched w = {.allowed = 2};
  hf_action_options options = {.progress = watch, .progress_context = &w};
  expect_cancelled(c, df, &options);
  assert_int_equal(w.calls, 2);
  api_expect(c, "SELECT 1", "1\n");
  hf_df_free(df);
}

static void cancel_by_token_ends_the_query(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, ENDLESS);
  watched w = {.allowed = 1, .cancel = hf_cancel_new()};
  hf_profile profile;
  hf_action_options options = {
      .progress = watch, .progress_context = &w, .cancel = w.cancel, .profile = &profile};
  expect_cancelled(c, df, &options);
  assert_true(profile.elapsed_us > 0);
  hf_cancel_free(w.cancel);
  api_expect(c, "SELECT 1", "1\n");
  hf_df_free(df);
}

static void cancel_before_the_action_ends_it_at_once(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, ENDLESS);
  hf_cancel *cancel = hf_cancel_new();
  hf_cancel_signal(cancel);
  hf_action_options options = {.cancel = cancel};
  expect_cancelled(c, df, &options);
  hf_cancel_free(cancel);
  hf_df_free(df);
}

static void cancelled_fill_leaves_the_hold_declared_and_no_files(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, ENDLESS);
  hf_df *held = api_cache(c, df);
  watched w = {.allowed = 1};
  hf_action_options options = {.progress = watch, .progress_context = &w};
  expect_cancelled(c, held, &options);
  assert_int_not_equal(api_storage(c, held).state, HF_HOLD_MATERIALISED);
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_OK);
  hf_df_free(held);
  hf_df_free(df);
}

static void profile_tells_rows_and_times(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i, i * 2 AS d FROM range(100000) t(i)");
  hf_profile profile;
  free(api_rows(c, df, &profile));
  assert_int_equal(profile.result_rows, 100000);
  assert_true(profile.result_bytes >= 1600000);
  assert_int_equal(profile.tasks_run, 1);
  assert_true(profile.elapsed_us >= profile.planning_us);
  assert_int_equal(profile.held_hits + profile.held_fills + profile.held_waits + profile.held_inline, 0);
  hf_df_free(df);
}

static void profile_is_written_on_failure_too(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT CAST('x' || i AS INTEGER) AS n FROM range(3) t(i)");
  hf_profile profile;
  memset(&profile, 0xff, sizeof profile);
  hf_action_options options = {.profile = &profile};
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(df, &options, &stream, NULL), HF_E_CAST);
  assert_int_equal(profile.result_rows, 0);
  hf_df_free(df);
}

static void query_beyond_the_memory_fails_and_the_next_works(void **state) {
  (void)state;
  const hf_setting settings[] = {{"memory", "64MiB"}, {"sink.budget", "8MiB"}, {"threads", "2"}};
  api_case c = {0};
  assert_int_equal(hf_session_open("local", settings, 3, &c.session, &c.error), HF_OK);
  api_fails(&c, "SELECT length(string_agg(repeat('x', 1000), ',')) FROM range(500000)", HF_E_OUT_OF_MEMORY);
  assert_int_equal(c.error.error_class, HF_CLASS_RESOURCE);
  assert_non_null(c.error.hint);
  api_expect(&c, "SELECT count(*) FROM range(1000)", "1000\n");
  hf_error_reset(&c.error);
  hf_session_close(c.session);
}

typedef struct worker {
  api_case c;
  int number;
  bool ok;
} worker;

static void *work(void *context) {
  worker *w = context;
  char sql[128];
  w->ok = true;
  for (int i = 0; i < 20 && w->ok; i++) {
    uint64_t rows = 0;
    hf_df *df = NULL;
    snprintf(sql, sizeof sql, "CREATE OR REPLACE VIEW v%d AS SELECT i FROM range(%d) t(i)", w->number, i + 1);
    w->ok = hf_session_sql(w->c.session, sql, &df, NULL) == HF_OK;
    hf_df_free(df);
    df = NULL;
    snprintf(sql, sizeof sql, "SELECT * FROM v%d", w->number);
    w->ok = w->ok && hf_session_sql(w->c.session, sql, &df, NULL) == HF_OK &&
            hf_df_count(df, NULL, &rows, NULL) == HF_OK && rows == (uint64_t)i + 1;
    hf_df_free(df);
  }
  return NULL;
}

static void several_threads_use_one_session(void **state) {
  api_case *c = *state;
  enum { N = 4 };
  worker workers[N];
  pthread_t threads[N];
  for (int i = 0; i < N; i++) {
    workers[i] = (worker){.c.session = c->session, .number = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    assert_true(workers[i].ok);
  }
  api_expect(c, "SHOW TABLES", "v0|view\nv1|view\nv2|view\nv3|view\n");
}

static void large_result_streams_in_batches(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i, repeat('y', 200) AS t FROM range(500000) t(i)");
  struct ArrowArrayStream stream;
  int64_t rows = 0;
  int64_t longest = 0;
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_OK);
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    rows += batch.length;
    longest = batch.length > longest ? batch.length : longest;
    batch.release(&batch);
  }
  stream.release(&stream);
  assert_int_equal(rows, 500000);
  assert_true(longest < 500000);
  hf_df_free(df);
}

/* Anonymous memory of this process; mapped blocks are page cache and do not count. */
static int64_t anonymous_bytes(void) {
  char line[256];
  long long kilobytes = -1;
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  while (kilobytes < 0 && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0) {
      kilobytes = strtoll(line + 8, NULL, 10);
    }
  }
  fclose(file);
  return kilobytes * 1024;
}

static bool note_memory(void *context, double fraction, uint64_t rows) {
  int64_t *most = context;
  (void)fraction;
  (void)rows;
  int64_t now = anonymous_bytes();
  *most = now > *most ? now : *most;
  return true;
}

static void result_larger_than_its_budget_stays_within_it(void **state) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* shadow memory is anonymous too */
#endif
  enum { BUDGET = 16 << 20, BESIDES = 64 << 20 };
  api_case *c = *state;
  api_run(c, "SET sink.budget = '16MiB'");
  api_expect(c, "SELECT 1", "1\n"); /* opens the engine */
  hf_df *df = api_sql(c, "SELECT i, repeat('y', 200) AS t FROM range(1500000) t(i)");
  int64_t before = anonymous_bytes();
  int64_t most = 0;
  hf_profile profile;
  hf_action_options options = {.progress = note_memory, .progress_context = &most, .profile = &profile};
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(df, &options, &stream, &c->error), HF_OK);
  assert_true(profile.result_bytes > 300000000);
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    batch.release(&batch);
    note_memory(&most, 0, 0);
  }
  stream.release(&stream);
  assert_true(most - before < BUDGET + BESIDES);
  hf_df_free(df);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(cancel_by_progress_ends_the_query),
      CASE(cancel_by_token_ends_the_query),
      CASE(cancel_before_the_action_ends_it_at_once),
      CASE(cancelled_fill_leaves_the_hold_declared_and_no_files),
      CASE(profile_tells_rows_and_times),
      CASE(profile_is_written_on_failure_too),
      cmocka_unit_test(query_beyond_the_memory_fails_and_the_next_works),
      CASE(several_threads_use_one_session),
      CASE(large_result_streams_in_batches),
      CASE(result_larger_than_its_budget_stays_within_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

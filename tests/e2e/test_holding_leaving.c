/* SPDX-License-Identifier: Apache-2.0 */
/* Held results that leave: caps of bytes, age, idleness, and the room that running data have apart from them. */
#include "support/api_case.h"

#include "base/clock.h"
#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A session on an engine of its own with one more setting. */
static api_case open_with(api_case *c, const char *key, const char *value) {
  api_case made = {0};
  snprintf(made.work_dir, sizeof made.work_dir, "%s/work2", c->dir);
  const hf_setting settings[] = {
      {"work_dir", made.work_dir}, {"threads", "2"}, {"memory", "512MiB"}, {key, value}};
  if (hf_session_open("local", settings, 4, &made.session, &made.error) != HF_OK) {
    fail_msg("open: %s", made.error.message);
  }
  return made;
}

static void close_with(api_case *c) {
  hf_session_close(c->session);
  hf_error_reset(&c->error);
  assert_false(path_exists(c->work_dir));
}

/* Numbers that do not repeat: about 8 bytes a row. */
static hf_df *hold_rows(api_case *c, unsigned rows, const char *name) {
  char sql[200];
  snprintf(sql, sizeof sql, "SELECT hash(i + %u) AS h FROM range(%u) t(i)", rows, rows);
  hf_df *query = api_sql(c, sql);
  hf_df *held = api_cache(c, query);
  assert_int_equal(hf_df_create_view(held, name, true, NULL), HF_OK);
  hf_df_free(query);
  return held;
}

static hf_hold_state state_of(api_case *c, hf_df *held) {
  return api_storage(c, held).state;
}

static void expect_listed(api_case *c, const char *text) {
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  if (strstr(rows, text) == NULL) {
    fail_msg("not listed: %s\n%s", text, rows);
  }
  free(rows);
  hf_df_free(show);
}

/* --------------------------------------------------------------------- caps */

static uint64_t runs_from_us; /* of tasks that wait for it */

static void wait_for_time(void) {
  while (clock_monotonic_us() < runs_from_us) {
  }
}

/*
 * What goes follows from how long computing took and since when nobody reads, and this machine has other work: fills
 * `cheap` until that took a tenth of what `dear` did, the first hold, and makes the next task wait until since then as
 * much time has passed as from `began_us`, before `dear` was filled: so one is at most twice as old as the other.
 */
static void fill_until_cheap(api_case *c, hf_df *cheap, uint64_t began_us) {
  time_t deadline = time(NULL) + 240;
  for (bool is_cheap = false; !is_cheap;) {
    assert_true(time(NULL) <= deadline);
    api_run(c, "REFRESH TABLE cheap");
    api_count(c, cheap, NULL);
    hf_hold *holds = NULL;
    size_t n = 0;
    assert_int_equal(hf_session_holds(c->session, &holds, &n, NULL), HF_OK);
    is_cheap = holds[1].compute_us > 0 && holds[1].compute_us * 10 < holds[0].compute_us;
    runs_from_us = 2 * clock_monotonic_us() - began_us;
    hf_holds_free(holds);
  }
}

static void cap_evicts_what_is_cheapest_to_lose(void **state) {
  api_case c = open_with(*state, "hold.max_bytes", "1500000");
  hf_df *dear_query =
      api_sql(&c, "SELECT hash(i) AS h FROM range(40000) t(i), (SELECT sum(hash(j)) AS s FROM "
                  "range(40000000) u(j)) WHERE s IS NOT NULL");
  hf_df *dear = api_cache(&c, dear_query);
  hf_df *cheap = hold_rows(&c, 100000, "cheap");
  hf_df *next = hold_rows(&c, 90000, "next");
  uint64_t began_us = clock_monotonic_us();
  api_count(&c, dear, NULL);
  fill_until_cheap(&c, cheap, began_us);
  hf_profile profile;
  fault_set("executor.before_run", wait_for_time);
  assert_int_equal(api_count(&c, next, &profile), 90000);
  fault_set("executor.before_run", NULL);
  assert_string_equal(profile.warning, "");
  assert_int_equal(state_of(&c, dear), HF_HOLD_MATERIALISED);
  assert_int_equal(state_of(&c, cheap), HF_HOLD_DECLARED);
  assert_int_equal(state_of(&c, next), HF_HOLD_MATERIALISED);
  expect_listed(&c, "evicted: hold.max_bytes");
  assert_int_equal(api_count(&c, cheap, &profile), 100000);
  assert_int_equal(profile.held_fills, 1);
  hf_df_free(dear);
  hf_df_free(dear_query);
  hf_df_free(cheap);
  hf_df_free(next);
  close_with(&c);
}

static void fill_larger_than_the_cap_answers_warns_and_evicts_nothing(void **state) {
  api_case c = open_with(*state, "hold.max_bytes", "1000000");
  hf_df *small = hold_rows(&c, 1000, "small");
  hf_df *large = hold_rows(&c, 300000, "large");
  api_count(&c, small, NULL);
  unsigned files = files_below(c.work_dir);
  for (int i = 0; i < 2; i++) {
    hf_profile profile;
    assert_int_equal(api_count(&c, large, &profile), 300000);
    assert_non_null(strstr(profile.warning, "larger than hold.max_bytes"));
    assert_int_equal(state_of(&c, large), HF_HOLD_DECLARED);
  }
  assert_int_equal(state_of(&c, small), HF_HOLD_MATERIALISED);
  expect_listed(&c, "no room: hold.max_bytes");
  assert_int_equal(hf_df_unpersist(large, true, NULL), HF_OK);
  assert_true(files_below(c.work_dir) <= files); /* results that were read may have gone meanwhile */
  hf_df_free(small);
  hf_df_free(large);
  close_with(&c);
}

static void session_cap_is_the_sessions_own(void **state) {
  api_case *c = *state;
  api_case other = {0};
  assert_int_equal(hf_session_new(c->session, &other.session, NULL), HF_OK);
  assert_int_equal(hf_session_set(c->session, "hold.session_max_bytes", "1000000", NULL), HF_OK);
  hf_df *theirs = hold_rows(&other, 100000, "theirs");
  hf_df *first = hold_rows(c, 80000, "first");
  hf_df *second = hold_rows(c, 81000, "second");
  api_count(&other, theirs, NULL);
  api_count(c, first, NULL);
  api_count(c, second, NULL);
  assert_int_equal(state_of(&other, theirs), HF_HOLD_MATERIALISED);
  assert_int_equal(state_of(c, first), HF_HOLD_DECLARED);
  assert_int_equal(state_of(c, second), HF_HOLD_MATERIALISED);
  expect_listed(c, "evicted: hold.session_max_bytes");
  hf_df_free(first);
  hf_df_free(second);
  hf_df_free(theirs);
  hf_session_close(other.session);
}

/* -------------------------------------------------------------------- readers */

typedef struct reader {
  hf_df *df;
  hf_cancel *cancel;
  hf_status status;
  uint64_t rows;
  atomic_bool is_over;
  pthread_t thread;
} reader;

static void *read_it(void *context) {
  reader *r = context;
  hf_action_options options = {.cancel = r->cancel};
  r->status = hf_df_count(r->df, &options, &r->rows, NULL);
  atomic_store(&r->is_over, true);
  return NULL;
}

/* Begins to read a hold that is there, with a query that takes its time; returns when it reads. */
static void begin_reader(api_case *c, reader *r, hf_df *held, const char *sql) {
  uint64_t hits = api_storage(c, held).hits;
  *r = (reader){.df = api_sql(c, sql), .cancel = hf_cancel_new()};
  assert_int_equal(pthread_create(&r->thread, NULL, read_it, r), 0);
  time_t deadline = time(NULL) + 240;
  while (api_storage(c, held).hits == hits) {
    assert_true(time(NULL) <= deadline);
  }
}

static void end_reader(reader *r) {
  pthread_join(r->thread, NULL);
  hf_cancel_free(r->cancel);
  hf_df_free(r->df);
}

static void result_in_use_is_no_victim(void **state) {
  api_case c = open_with(*state, "hold.max_bytes", "1000000");
  hf_df *used = hold_rows(&c, 100000, "used");
  hf_df *wanted = hold_rows(&c, 90000, "wanted");
  hf_df_free(api_sql(&c, "SET tasks = 1"));
  api_count(&c, used, NULL);
  reader r;
  begin_reader(&c, &r, used, "SELECT h FROM used, range(200000) u(j) WHERE hash(h + j) = 7");
  hf_profile profile;
  hf_cancel *cancel = r.cancel;
  hf_df *both = api_sql(&c, "SELECT count(*) AS n FROM wanted");
  /* One slot: this waits for the reader, which is cancelled while the fill is under way. */
  reader second = {.df = both, .cancel = hf_cancel_new()};
  assert_int_equal(pthread_create(&second.thread, NULL, read_it, &second), 0);
  api_await_state(&c, wanted, HF_HOLD_PENDING);
  assert_int_equal(state_of(&c, used), HF_HOLD_MATERIALISED);
  hf_cancel_signal(cancel);
  end_reader(&r);
  end_reader(&second);
  assert_int_equal(second.status, HF_OK);
  assert_int_equal(api_count(&c, wanted, &profile), 90000);
  assert_int_equal(state_of(&c, wanted), HF_HOLD_MATERIALISED);
  hf_df_free(used);
  hf_df_free(wanted);
  close_with(&c);
}

static void unpersist_that_blocks_waits_for_the_last_reader(void **state) {
  api_case *c = *state;
  hf_df *held = hold_rows(c, 100000, "held");
  api_count(c, held, NULL);
  reader r;
  begin_reader(c, &r, held, "SELECT h FROM held, range(400) u(j) WHERE hash(h + j) > 18446744073709000000");
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_OK);
  assert_true(files_below(c->work_dir) <= 4); /* of the reader's own result, and the lock */
  end_reader(&r);
  assert_int_equal(r.status, HF_OK);
  assert_int_equal(state_of(c, held), HF_HOLD_RELEASED);
  hf_df_free(held);
}

static void unpersist_that_does_not_block_leaves_the_reader_alone(void **state) {
  api_case *c = *state;
  hf_df *held = hold_rows(c, 100000, "held");
  api_count(c, held, NULL);
  reader r;
  begin_reader(c, &r, held, "SELECT h FROM held, range(4000000) u(j) WHERE hash(h + j) = 7");
  assert_int_equal(hf_df_unpersist(held, false, &c->error), HF_OK);
  assert_false(atomic_load(&r.is_over));
  hf_cancel_signal(r.cancel);
  end_reader(&r);
  assert_int_equal(r.status, HF_E_CANCELLED);
  hf_df_free(held);
}

/* ----------------------------------------------------------------------- time */

static void hold_older_than_its_ttl_is_dropped(void **state) {
  api_case *c = *state;
  hf_df *held = hold_rows(c, 1000, "held");
  assert_int_equal(hf_session_set(c->session, "hold.ttl", "1", NULL), HF_OK);
  hf_profile profile;
  api_count(c, held, &profile);
  assert_int_equal(profile.held_fills, 1);
  api_await_state(c, held, HF_HOLD_DECLARED);
  expect_listed(c, "expired: hold.ttl");
  assert_int_equal(api_count(c, held, &profile), 1000);
  assert_int_equal(profile.held_fills, 1);
  hf_df_free(held);
}

static void idle_session_loses_its_data_and_keeps_its_names(void **state) {
  api_case c = open_with(*state, "session.idle_timeout", "1");
  hf_df *held = hold_rows(&c, 1000, "held");
  hf_profile profile;
  api_count(&c, held, &profile);
  assert_int_equal(profile.held_fills, 1);
  api_await_state(&c, held, HF_HOLD_DECLARED);
  expect_listed(&c, "session idle");
  hf_df *again = api_sql(&c, "SELECT count(*) FROM held");
  assert_int_equal(api_expect_df(&c, again, "1000\n").held_fills, 1);
  hf_df_free(again);
  hf_df_free(held);
  close_with(&c);
}

/* --------------------------------------------------------------- running data */

static void running_data_have_a_limit_of_their_own(void **state) {
  api_case c = open_with(*state, "run.max_bytes", "1000000");
  hf_df *held = hold_rows(&c, 1000000, "held"); /* larger, and no running data */
  assert_int_equal(api_count(&c, held, NULL), 1000000);
  api_fails(&c, "SELECT h FROM held", HF_E_LIMIT);
  assert_non_null(strstr(c.error.message, "run.max_bytes"));
  api_expect(&c, "SELECT count(*) FROM held", "1000000\n");
  assert_int_equal(state_of(&c, held), HF_HOLD_MATERIALISED);
  hf_df_free(held);
  close_with(&c);
}

/* Blocks lie in files: a result may be many times wider than the memory that computes it and reads it back. */
static void hold_wider_than_memory_answers(void **state) {
  api_case *c = *state;
  api_case small = {0};
  snprintf(small.work_dir, sizeof small.work_dir, "%s/work2", c->dir);
  const hf_setting settings[] = {
      {"work_dir", small.work_dir}, {"threads", "1"}, {"memory", "32MiB"}, {"sink.budget", "8MiB"}};
  assert_int_equal(hf_session_open("local", settings, 4, &small.session, NULL), HF_OK);
  hf_df *query = api_sql(&small, "SELECT i, hash(i) AS h FROM range(12000000) t(i)");
  hf_df *held = api_cache(&small, query);
  assert_int_equal(hf_df_create_view(held, "wide", false, NULL), HF_OK);
  hf_df *sums =
      api_sql(&small, "SELECT count(*), sum(i)::BIGINT, max(i), (bit_xor(h) = (SELECT bit_xor(hash(i)) FROM "
                      "range(12000000) t(i)))::VARCHAR FROM wide");
  for (int i = 0; i < 2; i++) {
    hf_profile profile = api_expect_df(&small, sums, "12000000|71999994000000|11999999|true\n");
    assert_string_equal(profile.warning, "");
    assert_int_equal(profile.held_hits, (uint64_t)i);
  }
  assert_true(api_storage(&small, held).bytes > (uint64_t)4 * 32 * 1024 * 1024);
  hf_df_free(sums);
  hf_df_free(held);
  hf_df_free(query);
  close_with(&small);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(hold_wider_than_memory_answers),
      CASE(cap_evicts_what_is_cheapest_to_lose),
      CASE(fill_larger_than_the_cap_answers_warns_and_evicts_nothing),
      CASE(session_cap_is_the_sessions_own),
      CASE(result_in_use_is_no_victim),
      CASE(unpersist_that_blocks_waits_for_the_last_reader),
      CASE(unpersist_that_does_not_block_leaves_the_reader_alone),
      CASE(hold_older_than_its_ttl_is_dropped),
      CASE(idle_session_loses_its_data_and_keeps_its_names),
      CASE(running_data_have_a_limit_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

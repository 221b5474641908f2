/* SPDX-License-Identifier: Apache-2.0 */
/* Held results that several queries want at once: who waits, who need not, and what happens when one leaves. */
#include "support/api_case.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes about a second or two on one thread, and no memory. */
static const char SLOW[] = "SELECT sum(hash(i))::VARCHAR AS h, count(*) AS n FROM range(60000000) t(i)";

typedef struct action {
  hf_df *df;
  hf_cancel *cancel;
  hf_profile profile;
  hf_status status;
  uint64_t rows;
  pthread_t thread;
} action;

static void *act(void *context) {
  action *a = context;
  hf_action_options options = {.profile = &a->profile, .cancel = a->cancel};
  a->status = hf_df_count(a->df, &options, &a->rows, NULL);
  return NULL;
}

static void begin(action *a, hf_df *df) {
  *a = (action){.df = df, .cancel = hf_cancel_new()};
  assert_non_null(a->cancel);
  assert_int_equal(pthread_create(&a->thread, NULL, act, a), 0);
}

static void end(action *a) {
  pthread_join(a->thread, NULL);
  hf_cancel_free(a->cancel);
}

/* One slot, which a fill has: what reads nothing runs beside it. */
static void listing_does_not_wait_behind_a_fill(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT sum(hash(i)) FROM range(100000000000) t(i)");
  hf_df *held = api_cache(c, query);
  action fill;
  begin(&fill, held);
  api_await_state(c, held, HF_HOLD_PENDING);
  hf_df *show = api_sql(c, "SHOW CACHE");
  for (int i = 0; i < 3; i++) {
    char *rows = api_rows(c, show, NULL);
    free(rows);
    api_expect(c, "SELECT 6 * 7 AS n", "42\n");
    api_expect(c, "VALUES (1, 'a'), (2, 'b')", "1|a\n2|b\n");
    api_expect(c, "SHOW TABLES", "");
  }
  assert_int_equal(api_storage(c, held).state, HF_HOLD_PENDING);
  hf_cancel_signal(fill.cancel);
  end(&fill);
  assert_int_equal(fill.status, HF_E_CANCELLED);
  hf_df_free(show);
  hf_df_free(held);
  hf_df_free(query);
}

static void cancel_of_the_claimer_leaves_the_fill_to_the_other(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, SLOW);
  hf_df *held = api_cache(c, query);
  action first, second;
  begin(&first, held);
  api_await_state(c, held, HF_HOLD_PENDING);
  begin(&second, held);
  hf_cancel_signal(first.cancel);
  end(&first);
  end(&second);
  assert_int_equal(second.status, HF_OK);
  assert_int_equal(second.rows, 1);
  assert_true(first.status == HF_E_CANCELLED || first.status == HF_OK);
  assert_int_equal(api_storage(c, held).generation, 1);
  hf_df_free(held);
  hf_df_free(query);
}

static void overlapping_holds_share_what_they_have_in_common(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE base AS SELECT i AS n, random() AS r FROM range(10000) t(i)");
  api_run(c, "CACHE LAZY TABLE low AS SELECT * FROM base WHERE n < 6000");
  api_run(c, "CACHE LAZY TABLE high AS SELECT * FROM base WHERE n >= 4000");
  hf_df *both = api_sql(c, "SELECT count(*) AS n FROM low JOIN high USING (n, r)");
  hf_profile cold = api_expect_df(c, both, "2000\n");
  assert_int_equal(cold.held_fills, 3);
  hf_profile warm = api_expect_df(c, both, "2000\n");
  assert_int_equal(warm.held_hits, 2);
  assert_int_equal(warm.tasks_run, 1);
  hf_df_free(both);
}

static void hold_in_subqueries_views_and_unions_is_one_hold(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE base AS SELECT i AS n, random() AS r FROM range(100) t(i)");
  api_run(c, "CREATE VIEW seen AS SELECT n, r FROM base");
  hf_df *query = api_sql(
      c, "WITH x AS (SELECT * FROM seen) SELECT count(*) AS n, (SELECT count(*) FROM base b WHERE EXISTS "
         "(SELECT 1 FROM x WHERE x.r = b.r)) AS m, (SELECT count(*) FROM (FROM seen UNION FROM base)) AS u "
         "FROM x WHERE n IN (SELECT n FROM base) AND r = (SELECT r FROM seen WHERE seen.n = x.n)");
  hf_profile cold = api_expect_df(c, query, "100|100|100\n");
  assert_int_equal(cold.held_fills, 1);
  assert_int_equal(api_expect_df(c, query, "100|100|100\n").held_hits, 1);
  hf_df_free(query);
}

static hf_session *open_slots(const char *work_dir) {
  const hf_setting settings[] = {
      {"work_dir", work_dir}, {"threads", "2"}, {"slots", "2"}, {"memory", "512MiB"}};
  hf_session *session = NULL;
  assert_int_equal(hf_session_open("local", settings, 4, &session, NULL), HF_OK);
  return session;
}

/* Tasks wait at the gate until it is opened. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved;
static unsigned at_gate;
static bool is_open;

static void wait_at_gate(void) {
  pthread_mutex_lock(&gate_lock);
  at_gate++;
  pthread_cond_broadcast(&gate_moved);
  while (!is_open) {
    pthread_cond_wait(&gate_moved, &gate_lock);
  }
  pthread_mutex_unlock(&gate_lock);
}

/* False when they do not come within four minutes. */
static bool gate_await(unsigned tasks) {
  uint64_t deadline = clock_monotonic_us() + UINT64_C(240000000);
  bool in_time = true;
  pthread_mutex_lock(&gate_lock);
  while (at_gate < tasks && in_time) {
    in_time = cond_wait_until(&gate_moved, &gate_lock, deadline);
  }
  pthread_mutex_unlock(&gate_lock);
  return in_time;
}

static void gate_open(void) {
  pthread_mutex_lock(&gate_lock);
  is_open = true;
  pthread_cond_broadcast(&gate_moved);
  pthread_mutex_unlock(&gate_lock);
}

/* Two fills that one query needs run before either has ended. */
static void independent_holds_fill_side_by_side(void **state) {
  api_case *c = *state;
  char work_dir[128];
  snprintf(work_dir, sizeof work_dir, "%s/work2", c->dir);
  api_case two = {.session = open_slots(work_dir)};
  hf_df *queries[2], *holds[2];
  for (int i = 0; i < 2; i++) {
    queries[i] = api_sql(&two, "SELECT sum(hash(i))::VARCHAR AS h, count(*) AS n FROM range(1000) t(i)");
    holds[i] = api_cache(&two, queries[i]);
  }
  assert_int_equal(hf_df_create_view(holds[0], "a", false, NULL), HF_OK);
  assert_int_equal(hf_df_create_view(holds[1], "b", false, NULL), HF_OK);
  hf_df *join = api_sql(&two, "SELECT count(*) FROM a JOIN b USING (h)");
  cond_init(&gate_moved);
  fault_set("executor.before_run", wait_at_gate);
  action joined;
  begin(&joined, join);
  bool run_both = gate_await(2);
  hf_hold_state a = api_storage(&two, holds[0]).state, b = api_storage(&two, holds[1]).state;
  gate_open();
  end(&joined);
  fault_set("executor.before_run", NULL);
  assert_true(run_both);
  assert_int_equal(a, HF_HOLD_PENDING);
  assert_int_equal(b, HF_HOLD_PENDING);
  assert_int_equal(joined.status, HF_OK);
  assert_int_equal(joined.profile.held_fills, 2);
  for (int i = 0; i < 2; i++) {
    hf_df_free(holds[i]);
    hf_df_free(queries[i]);
  }
  hf_df_free(join);
  hf_session_close(two.session);
}

static void user_error_of_a_fill_is_everybodys(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT CAST('x' || max(hash(i)) AS INTEGER) AS n FROM range(20000000) t(i)");
  hf_df *held = api_cache(c, query);
  action actions[3];
  for (int i = 0; i < 3; i++) {
    begin(&actions[i], held);
  }
  for (int i = 0; i < 3; i++) {
    end(&actions[i]);
    assert_int_equal(actions[i].status, HF_E_CAST);
  }
  assert_int_equal(api_storage(c, held).state, HF_HOLD_DECLARED);
  hf_df_free(held);
  hf_df_free(query);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(listing_does_not_wait_behind_a_fill),
      CASE(cancel_of_the_claimer_leaves_the_fill_to_the_other),
      CASE(overlapping_holds_share_what_they_have_in_common),
      CASE(hold_in_subqueries_views_and_unions_is_one_hold),
      CASE(independent_holds_fill_side_by_side),
      CASE(user_error_of_a_fill_is_everybodys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

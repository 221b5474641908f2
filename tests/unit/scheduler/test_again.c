/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rest of a query is planned again, with the real parts below: what becomes of it when that is interrupted, fails or
 * comes too late; fills; and partitions that are read in fewer tasks.
 */
#include "rig.h"

#include "base/fault.h"
#include "support/oracle.h"

#include <glob.h>
#include <stdatomic.h>

enum { ROWS = 1200000 };

/* 210 MB, for which three slots have a task each. */
static int open_all(void **state) {
  rig *r = mem_zalloc(1, sizeof *r);
  rig_open(r, 3);
  oracle *plain = oracle_open();
  char sql[300];
  snprintf(sql, sizeof sql,
           "COPY (SELECT i AS x, i %% 7 AS g, repeat(md5(i::VARCHAR), 5) AS noise FROM range(%d) t(i)) TO "
           "'%s/many.parquet' (COMPRESSION uncompressed, ROW_GROUP_SIZE 100000)",
           ROWS, r->dir);
  assert_null(oracle_run(plain, sql));
  oracle_close(plain);
  *state = r;
  return 0;
}

static rig *watched; /* of the hooks */
static atomic_uint n_calls;

static int close_all(void **state) {
  rig_close(*state);
  mem_free(*state);
  return 0;
}

static int tear_down(void **state) {
  fault_set("scheduler.recut", NULL);
  fault_set("exchange.batch", NULL);
  ((rig *)*state)->tasks = 0;
  return 0;
}

/* What its first stage gives is far less than is guessed: then one task does the rest. */
static const char shrinking[] =
    "WITH s AS MATERIALIZED (SELECT x, g FROM '$DIR/many.parquet' WHERE x < 100) SELECT sum(n)::BIGINT AS n FROM "
    "(SELECT g, count(*) AS n FROM s GROUP BY g) a JOIN (SELECT g, max(x) AS m FROM s GROUP BY g) b USING (g)";
enum { STAGES_AGAIN = 2 };

static void hook(rig *r, void (*on_recut)(void)) {
  watched = r;
  atomic_store(&n_calls, 0);
  fault_set("scheduler.recut", on_recut);
}

static void only_count(void) {
  atomic_fetch_add(&n_calls, 1);
}

/* ------------------------------------------------- while it is cut again */

/* Something to do to the job whose rest is being cut, on the scheduler's thread; true when it is done. */
typedef struct meddle_call {
  call base;
  bool (*with)(scheduler *s, job *j);
  bool is_done;
} meddle_call;

static void meddle_handle(scheduler *s, message *m) {
  meddle_call *c = (meddle_call *)m;
  for (job *j = s->jobs; j != NULL; j = j->hh.next) {
    c->is_done = c->is_done || (j->recut != NULL && c->with(s, j));
  }
  call_finish(&c->base);
}

static bool meddle(bool (*with)(scheduler *s, job *j)) {
  meddle_call c = {.with = with};
  call_init(&c.base, meddle_handle);
  assert_true(call_run(watched->s, &watched->s->events, &c.base));
  call_reset(&c.base);
  return c.is_done;
}

static bool shall_end(scheduler *s, job *j) {
  (void)s;
  return j->stop != HF_OK;
}

static hf_cancel *cancel;

/* Returns when the scheduler knows. */
static void cancel_it(void) {
  uint64_t deadline = clock_monotonic_us() + RIG_DEADLINE_US;
  only_count();
  hf_cancel_signal(cancel);
  while (!meddle(shall_end)) {
    assert_true(clock_monotonic_us() < deadline);
  }
}

static void again_of_a_query_that_is_cancelled_meanwhile_ends_it(void **state) {
  rig *r = *state;
  rig_thread t = {.watch.cancel = hf_cancel_new()};
  cancel = t.watch.cancel;
  hook(r, cancel_it);
  rig_start(r, &t, shrinking);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  assert_int_equal(atomic_load(&n_calls), 1);
  hf_cancel_free(cancel);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  hook(r, only_count);
  assert_int_equal(rig_value(r, shrinking, NULL), 100); /* slots and planners are free */
}

static bool interrupt(scheduler *s, job *j) {
  planner_interrupt(s, j->recut);
  return true;
}

static void interrupt_it(void) {
  only_count();
  assert_true(meddle(interrupt));
}

static void again_that_fails_leaves_the_plan_as_it_was(void **state) {
  rig *r = *state;
  hf_profile profile;
  hook(r, interrupt_it);
  assert_int_equal(rig_value(r, shrinking, &profile), 100);
  assert_true(atomic_load(&n_calls) >= 1);
  assert_true(profile.stages_run > STAGES_AGAIN);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

/* As when an attempt has found a block of a held result missing. */
static bool lose_held(scheduler *s, job *j) {
  job_drain(s, j, JOB_EVENT_HELD_LOST, NULL);
  return true;
}

static void lose_held_once(void) {
  if (atomic_fetch_add(&n_calls, 1) == 0) {
    assert_true(meddle(lose_held));
  }
}

static void again_while_a_held_block_is_lost_is_planned_from_the_start(void **state) {
  rig *r = *state;
  hf_profile profile;
  hook(r, lose_held_once);
  assert_int_equal(rig_value(r, shrinking, &profile), 100);
  assert_int_equal(atomic_load(&n_calls), 2);
  assert_int_equal(profile.stages_run, 1 + STAGES_AGAIN); /* the first was run twice */
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static bool is_at_rest(scheduler *s, job *j) {
  bool is_it = true;
  (void)s;
  for (size_t i = 0; i < j->n_runs; i++) {
    is_it = is_it && (j->runs[i].state == STAGE_WAITING || j->runs[i].state == STAGE_DONE);
  }
  return is_it;
}

/* The first time it takes until all that was launched is done. */
static void wait_for_the_others(void) {
  uint64_t deadline = clock_monotonic_us() + RIG_DEADLINE_US;
  while (atomic_load(&n_calls) == 0 && !meddle(is_at_rest)) {
    assert_true(clock_monotonic_us() < deadline);
  }
  only_count();
}

/* Two sides of which no row comes, and that are done at about the same time: larger ones wait for both. */
static void again_meets_a_stage_that_was_done_meanwhile(void **state) {
  rig *r = *state;
  hf_profile profile;
  hook(r, wait_for_the_others);
  assert_int_equal(
      rig_value(
          r,
          "SELECT sum(n)::BIGINT FROM (SELECT count(*) AS n FROM '$DIR/many.parquet' a JOIN '$DIR/many.parquet' b "
          "ON a.x = b.x WHERE b.g - b.g <> 0 UNION ALL SELECT count(*) + count(a.g) FROM '$DIR/many.parquet' a "
          "JOIN '$DIR/many.parquet' c ON a.x = c.x WHERE c.x - c.x <> 0)",
          &profile),
      0);
  assert_int_equal(atomic_load(&n_calls), 2);
  assert_in_range(profile.source_rows, 2 * ROWS, 2 * ROWS + 100000); /* of b and c; a was hardly read */
}

/* ------------------------------------------------------------------ fills */

static void again_of_a_fill_holds_what_the_new_plan_gives(void **state) {
  rig *r = *state;
  const relation *held =
      rig_cache(r, "held",
                "WITH s AS MATERIALIZED (SELECT x, g FROM '$DIR/many.parquet' WHERE x < 100) "
                "SELECT g, n, m FROM (SELECT g, count(*) AS n FROM s GROUP BY g) a "
                "JOIN (SELECT g, max(x) AS m FROM s GROUP BY g) b USING (g)");
  hf_profile profile;
  hook(r, only_count);
  assert_int_equal(rig_value(r, "SELECT sum(n)::BIGINT FROM held", &profile), 100);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(atomic_load(&n_calls), 1);
  assert_int_equal(rig_storage(r, held).rows, 7);
  assert_int_equal(rig_value(r, "SELECT sum(m)::BIGINT FROM held", &profile),
                   93 + 94 + 95 + 96 + 97 + 98 + 99);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.source_rows, 0);
  assert_int_equal(rig_value(r,
                             "SELECT sum(n * k)::BIGINT FROM held JOIN (SELECT g, count(*) AS k FROM "
                             "'$DIR/many.parquet' WHERE x < 70 GROUP BY g) USING (g)",
                             &profile),
                   1000);
  uuid key = rig_key(held);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static void again_of_a_fill_that_is_cancelled_meanwhile_leaves_nothing(void **state) {
  rig *r = *state;
  const relation *held =
      rig_cache(r, "later",
                "WITH s AS MATERIALIZED (SELECT x, g FROM '$DIR/many.parquet' WHERE x < 100) "
                "SELECT g, n, m FROM (SELECT g, count(*) AS n FROM s GROUP BY g) a "
                "JOIN (SELECT g, max(x) AS m FROM s GROUP BY g) b USING (g)");
  rig_thread t = {.watch.cancel = hf_cancel_new()};
  cancel = t.watch.cancel;
  hook(r, cancel_it); /* its only waiter leaves: so the fill shall end */
  rig_start(r, &t, "SELECT sum(n)::BIGINT FROM later");
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  hf_cancel_free(cancel);
  rig_await_jobs(r, JOB_RUNNING, 0);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  assert_int_equal(rig_storage(r, held).rows, 0);
  hook(r, only_count);
  assert_int_equal(rig_value(r, "SELECT sum(n)::BIGINT FROM later", NULL), 100);
  uuid key = rig_key(held);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
}

/* -------------------------------------------------------------- coalescing */

/* A scan in three tasks, so many groups, and the sum; how many tasks beside one a stage. */
static uint64_t grouped(rig *r, int groups) {
  char sql[200];
  hf_profile profile;
  snprintf(
      sql, sizeof sql,
      "SELECT sum(k * n)::BIGINT FROM (SELECT x %% %d AS k, count(*) AS n FROM '$DIR/many.parquet' GROUP BY k)",
      groups);
  assert_int_equal(rig_value(r, sql, &profile), (int64_t)ROWS / 2 * (groups - 1));
  assert_int_equal(profile.stages_run, 3);
  return profile.tasks_run - profile.stages_run;
}

static void partitions_of_few_bytes_are_read_by_fewer_tasks(void **state) {
  rig *r = *state;
  assert_int_equal(grouped(r, 10000), 2);  /* the scan's three */
  assert_int_equal(grouped(r, 50000), 3);  /* 2.4 MB: two tasks, one of which reads two partitions */
  assert_int_equal(grouped(r, 100000), 4); /* 4.8 MB */
  r->tasks = 3;                            /* so many are asked for */
  assert_int_equal(grouped(r, 10000), 4);
}

static void partitions_without_rows_are_read_with_the_others(void **state) {
  rig *r = *state;
  hf_profile profile;
  assert_int_equal(rig_value(r,
                             "SELECT sum(n)::BIGINT FROM (SELECT g, count(DISTINCT x % 1000) AS n FROM "
                             "'$DIR/many.parquet' WHERE g = 3 AND x < 20000 GROUP BY g)",
                             &profile),
                   1000);
  assert_true(profile.stages_run >= 2);
  assert_int_equal(rig_value(r,
                             "SELECT count(*) FROM (SELECT g, count(DISTINCT x % 1000) AS n FROM "
                             "'$DIR/many.parquet' WHERE x < 0 GROUP BY g)",
                             &profile),
                   0);
}

/* The directory of the first attempt of the second stage. */
static void lose_second_stage(void) {
  char pattern[256];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/%s/*/2/1-1", watched->work_dir, watched->session.text);
  if (atomic_load(&n_calls) == 0 && glob(pattern, 0, NULL, &found) == 0 &&
      atomic_exchange(&n_calls, 1) == 0) {
    file_remove_tree(found.gl_pathv[0], NULL);
  }
  globfree(&found);
}

static void partitions_of_a_task_are_the_same_when_it_is_run_again(void **state) {
  rig *r = *state;
  watched = r;
  atomic_store(&n_calls, 0);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), ""); /* of other queries */
  fault_set("exchange.batch", lose_second_stage);
  assert_int_equal(grouped(r, 10000), 3); /* one twice */
  fault_set("exchange.batch", NULL);
  assert_int_equal(atomic_load(&n_calls), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(again_of_a_query_that_is_cancelled_meanwhile_ends_it, tear_down),
      cmocka_unit_test_teardown(again_that_fails_leaves_the_plan_as_it_was, tear_down),
      cmocka_unit_test_teardown(again_while_a_held_block_is_lost_is_planned_from_the_start, tear_down),
      cmocka_unit_test_teardown(again_meets_a_stage_that_was_done_meanwhile, tear_down),
      cmocka_unit_test_teardown(again_of_a_fill_holds_what_the_new_plan_gives, tear_down),
      cmocka_unit_test_teardown(again_of_a_fill_that_is_cancelled_meanwhile_leaves_nothing, tear_down),
      cmocka_unit_test_teardown(partitions_of_few_bytes_are_read_by_fewer_tasks, tear_down),
      cmocka_unit_test_teardown(partitions_without_rows_are_read_with_the_others, tear_down),
      cmocka_unit_test_teardown(partitions_of_a_task_are_the_same_when_it_is_run_again, tear_down),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}

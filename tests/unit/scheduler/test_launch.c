/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of several stages and tasks with the real parts below: shares, results, holds, errors, cancel, files. */
#include "rig.h"

#include "base/fault.h"
#include "base/file.h"
#include "support/oracle.h"

#include <stdatomic.h>
#include <unistd.h>

static int set_up(void **state) {
  rig *r = mem_zalloc(1, sizeof *r);
  rig_open(r, 2);
  r->tasks = 3;
  *state = r;
  return 0;
}

static int tear_down(void **state) {
  rig_close(*state);
  mem_free(*state);
  return 0;
}

/* x: 0 … 9,999 in groups of 2,048 rows; g: x % 7. */
static void write_parquet(rig *r) {
  oracle *plain = oracle_open();
  char sql[256];
  snprintf(sql, sizeof sql,
           "COPY (SELECT i AS x, i %% 7 AS g FROM range(10000) t(i)) TO '%s/p.parquet' (ROW_GROUP_SIZE 2048)",
           r->dir);
  assert_null(oracle_run(plain, sql));
  oracle_close(plain);
}

static void stages_of_three_tasks_give_the_answer(void **state) {
  rig *r = *state;
  write_parquet(r);
  hf_profile profile;
  assert_int_equal(
      rig_value(r,
                "SELECT sum(n * g)::BIGINT FROM (SELECT g, count(*) AS n FROM '$DIR/p.parquet' GROUP BY g)",
                &profile),
      29994); /* x % 7 of them all */
  assert_string_equal(profile.fallback, "");
  assert_int_equal(profile.widest_tasks, 3);
  assert_true(profile.stages_run >= 2);
  assert_true(profile.tasks_run >= 4);
  assert_int_equal(profile.source_rows, 10000);
  assert_int_equal(profile.source_files, 1);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static rig *loser; /* of the hook */
static atomic_bool has_lost;

/* The directory of the attempt that writes the first batch of all goes: its commit fails. */
static void lose_an_attempt(void) {
  if (atomic_exchange(&has_lost, true)) {
    return;
  }
  char dir[512];
  snprintf(dir, sizeof dir, "%s", rig_block_file(loser));
  char *slash = strrchr(dir, '/');
  if (slash != NULL) {
    *slash = '\0';
    file_remove_tree(dir, NULL);
  }
}

/* One slot: nothing else is written meanwhile. */
static void stages_task_that_failed_is_run_again_and_the_new_attempt_read(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1);
  r.tasks = 3;
  write_parquet(&r);
  loser = &r;
  atomic_store(&has_lost, false);
  fault_set("exchange.batch", lose_an_attempt);
  hf_profile profile;
  int64_t sum = rig_value(
      &r, "SELECT sum(n * g)::BIGINT FROM (SELECT g, count(*) AS n FROM '$DIR/p.parquet' GROUP BY g)",
      &profile);
  fault_set("exchange.batch", NULL);
  assert_int_equal(sum, 29994);
  assert_true(atomic_load(&has_lost));
  rig_close(&r);
}

/* What its first stage gives is far less than is guessed: then one task does the rest. */
static const char shrinking[] =
    "WITH s AS MATERIALIZED (SELECT x, g FROM '$DIR/many.parquet' WHERE x < 100) SELECT sum(n)::BIGINT FROM "
    "(SELECT g, count(*) AS n FROM s GROUP BY g) a JOIN (SELECT g, max(x) AS m FROM s GROUP BY g) b USING (g)";

/* 72 MB, for which two slots have a task each. */
static void write_many(rig *r) {
  oracle *plain = oracle_open();
  char sql[256];
  snprintf(
      sql, sizeof sql,
      "COPY (SELECT i AS x, i %% 7 AS g, hash(i) AS noise FROM range(9000000) t(i)) TO '%s/many.parquet' "
      "(COMPRESSION uncompressed)",
      r->dir);
  assert_null(oracle_run(plain, sql));
  oracle_close(plain);
}

static void stages_to_come_are_cut_again_when_one_gave_far_less(void **state) {
  rig *r = *state;
  hf_profile profile;
  write_many(r);
  r->tasks = 0;
  assert_int_equal(rig_value(r, shrinking, &profile), 100);
  assert_int_equal(profile.stages_run, 2);
  assert_int_equal(profile.tasks_run, 3);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

/* One slot: nothing else is written meanwhile. The attempts of what was launched are those of the new graph. */
static void stages_cut_again_read_the_attempt_that_succeeded(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1);
  r.tasks = 3;
  write_many(&r);
  loser = &r;
  atomic_store(&has_lost, false);
  fault_set("exchange.batch", lose_an_attempt);
  hf_profile profile;
  int64_t sum = rig_value(&r, shrinking, &profile);
  fault_set("exchange.batch", NULL);
  assert_int_equal(sum, 100);
  assert_true(atomic_load(&has_lost));
  rig_close(&r);
}

/* Rows of a result's first column, in order. */
static void assert_in_order(const job_result *result, int64_t rows) {
  struct ArrowArrayStream stream;
  assert_int_equal(block_stream_open(result->locations, result->n_locations, rig_ignore, NULL, &stream, NULL),
                   HF_OK);
  int64_t next = 0;
  for (;;) {
    struct ArrowArray batch = {0};
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    const struct ArrowArray *x = batch.children[0];
    for (int64_t i = 0; i < batch.length; i++) {
      assert_int_equal(((const int64_t *)x->buffers[1])[x->offset + i], next++);
    }
    batch.release(&batch);
  }
  stream.release(&stream);
  assert_int_equal(next, rows);
}

static void stages_scan_result_comes_in_file_order(void **state) {
  rig *r = *state;
  write_parquet(r);
  relation *what = rig_sql(r, "SELECT x FROM '$DIR/p.parquet'");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  hf_profile profile;
  assert_int_equal(scheduler_run(r->s, &request, NULL, &result, &profile, NULL), HF_OK);
  assert_string_equal(profile.fallback, "");
  assert_string_equal(result.columns.columns[0].name, "x");
  assert_int_equal(profile.result_rows, 10000);
  assert_in_order(&result, 10000);
  scheduler_release_result(r->s, result.job);
  arena_free(result.memory);
  relation_release(what);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static void stages_four_files_with_four_tasks_on_one_slot(void **state) {
  rig *r = mem_zalloc(1, sizeof *r);
  (void)state;
  rig_open(r, 1);
  r->tasks = 4;
  for (int i = 1; i <= 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d.csv", i);
    rig_numbers(r, name, 100);
  }
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT AS s FROM '$DIR/*.csv'", &profile), 4 * 5050);
  assert_int_equal(profile.widest_tasks, 4);
  assert_int_equal(profile.source_files, 4);
  rig_close(r);
  mem_free(r);
}

static void stages_hold_filled_by_three_tasks_is_read_by_two(void **state) {
  rig *r = *state;
  write_parquet(r);
  const relation *held = rig_cache(r, "held", "SELECT x, g FROM '$DIR/p.parquet' WHERE g < 5");
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile), 35715000);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(profile.widest_tasks, 3);
  assert_int_equal(rig_storage(r, held).rows, 7144);
  r->tasks = 2;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile), 35715000);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.source_rows, 0);
  assert_int_equal(profile.held_rows, 7144);
  assert_int_equal(profile.widest_tasks, 2);
  r->tasks = 1;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile), 35715000);
  assert_int_equal(profile.widest_tasks, 1);
}

/* Cuts the file to half of its length. */
static void shorten(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(truncate(path, info.st_size / 2), 0);
}

static void stages_lost_block_of_a_hold_is_computed_again(void **state) {
  rig *r = *state;
  write_parquet(r);
  const relation *held = rig_cache(r, "held", "SELECT x, g FROM '$DIR/p.parquet' WHERE g < 5");
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 35715000);
  rig_await_cleaner(r); /* blocks that pass are gone */
  shorten(rig_block_file(r));
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile), 35715000);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(rig_storage(r, held).generation, 2);
  uuid key = rig_key(held);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static void stages_hold_below_a_distributed_join(void **state) {
  rig *r = *state;
  write_parquet(r);
  rig_cache(r, "held", "SELECT g, count(*) AS n FROM '$DIR/p.parquet' GROUP BY g");
  hf_profile profile;
  static const char query[] = "SELECT sum(h.n)::BIGINT FROM '$DIR/p.parquet' p JOIN held h ON p.g = h.g";
  int64_t expected = 14285716; /* 4 × 1,429² + 3 × 1,428² */
  assert_int_equal(rig_value(r, query, &profile), expected);
  assert_true(profile.widest_tasks >= 2);
  assert_int_equal(rig_value(r, query, &profile), expected);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.source_rows, 10000);
}

static hf_status run_sql(rig *r, const char *sql) {
  relation *what = rig_sql(r, sql);
  hf_status status = rig_run_as(r, &r->session, what, NULL, NULL, NULL);
  relation_release(what);
  return status;
}

static void stages_error_in_one_task_ends_all(void **state) {
  rig *r = *state;
  write_parquet(r);
  assert_int_equal(
      run_sql(
          r,
          "SELECT sum(CASE WHEN x = 9000 THEN ('x' || x)::INTEGER ELSE 1 END)::BIGINT FROM '$DIR/p.parquet'"),
      HF_E_CAST);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  assert_int_equal(rig_value(r, "SELECT 1::BIGINT", NULL), 1);
}

static void stages_cancel_in_the_middle_leaves_no_files(void **state) {
  rig *r = *state;
  write_parquet(r);
  rig_thread t = {.watch.cancel = hf_cancel_new()};
  hf_cancel *cancel = t.watch.cancel;
  rig_start(r, &t,
            "SELECT count(*) FROM '$DIR/p.parquet' p, range(100000000) t(i) WHERE hash(p.x + t.i) = 1");
  rig_await_jobs(r, JOB_RUNNING, 1);
  hf_cancel_signal(cancel);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  hf_cancel_free(cancel);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  assert_int_equal(rig_value(r, "SELECT count(*) FROM '$DIR/p.parquet'", NULL),
                   10000); /* both slots are free */
}

static void stages_query_without_inputs_falls_back_and_says_why(void **state) {
  rig *r = *state;
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT 7::BIGINT AS n", &profile), 7);
  assert_string_not_equal(profile.fallback, "");
  assert_int_equal(profile.stages_run, 1);
  assert_int_equal(profile.tasks_run, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(stages_of_three_tasks_give_the_answer, set_up, tear_down),
      cmocka_unit_test(stages_cut_again_read_the_attempt_that_succeeded),
      cmocka_unit_test_setup_teardown(stages_to_come_are_cut_again_when_one_gave_far_less, set_up, tear_down),
      cmocka_unit_test(stages_task_that_failed_is_run_again_and_the_new_attempt_read),
      cmocka_unit_test_setup_teardown(stages_scan_result_comes_in_file_order, set_up, tear_down),
      cmocka_unit_test(stages_four_files_with_four_tasks_on_one_slot),
      cmocka_unit_test_setup_teardown(stages_hold_filled_by_three_tasks_is_read_by_two, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stages_lost_block_of_a_hold_is_computed_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stages_hold_below_a_distributed_join, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stages_error_in_one_task_ends_all, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stages_cancel_in_the_middle_leaves_no_files, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stages_query_without_inputs_falls_back_and_says_why, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

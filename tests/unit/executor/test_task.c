/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that fail or are cancelled: typed errors with their origin, and no files left. */
#include "rig.h"

#define KEY "7c9e6679-7425-40de-944b-e07fc1f90ae7"
#define ENDLESS \
  "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000) b WHERE a.range + b.range = -1"

static void assert_no_files(rig *r) {
  assert_true(entry_count(scratch_path(&r->place, "work/" RIG_SESSION)) <= 0);
}

static void task_with_bad_sql_fails_as_the_users_error(void **state) {
  (void)state;
  static const struct {
    const char *sql;
    hf_status code;
  } cases[] = {
      {"SELEC 1", HF_E_SYNTAX},
      {"SELECT nowhere AS n FROM range(3)", HF_E_COLUMN_NOT_FOUND},
      {"SELECT CAST('x' || range AS BIGINT) AS n FROM range(3)", HF_E_CAST},
      {"SELECT 9223372036854775807 + range AS n FROM range(3)", HF_E_OVERFLOW},
      {"SELECT 1 AS n FROM read_csv('/nowhere/x.csv')", HF_E_PATH_REFUSED},
  };
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  for (uint64_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rig_submit(&r, i + 1, cases[i].sql);
    task_report *report = rig_expect_failed(&r, i + 1, cases[i].code);
    assert_true(uuid_is_none(&report->lost_held_key));
    task_report_free(report);
    assert_no_files(&r);
  }
  rig_submit(&r, 99, "SELECT 1::BIGINT AS n"); /* the slot goes on */
  task_report_free(rig_expect_finished(&r, 99));
  rig_close(&r);
}

static void task_with_bytes_that_are_no_plan_fails(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  task_spec spec = {{5}, {1}, {1}, {1}, 0, NULL};
  buf bytes = {0};
  hf_error error = {0};
  assert_int_equal(task_spec_pack(&spec, &bytes, NULL), HF_OK);
  assert_int_equal(executor_submit(r.x, "\x08\x07", 2, bytes.data, bytes.length, &error), HF_OK);
  task_report *report = rig_expect_failed(&r, 5, HF_E_PROTOCOL);
  assert_non_null(strstr(report->error.message, "expected version 3, found 7"));
  task_report_free(report);
  assert_int_equal(executor_submit(r.x, "\x08\x01", 2, "junk", 4, &error), HF_E_PROTOCOL);
  hf_error_reset(&error);
  assert_int_equal(executor_submit(r.x, "", STAGE_LARGEST_BYTES + 1, bytes.data, bytes.length, &error),
                   HF_E_LIMIT);
  hf_error_reset(&error);
  buf_reset(&bytes);
  rig_close(&r);
}

static void task_of_another_plan_fails(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  stage_piece piece;
  stage_plan plan = rig_plan(1, &piece, "SELECT 1::BIGINT AS n");
  task_input none = {0};
  task_spec spec = {{1}, {1}, {1}, {1}, 1, &none};
  buf plan_bytes = {0}, spec_bytes = {0};
  assert_int_equal(stage_plan_pack(&plan, &plan_bytes, NULL), HF_OK);
  assert_int_equal(task_spec_pack(&spec, &spec_bytes, NULL), HF_OK);
  assert_int_equal(
      executor_submit(r.x, plan_bytes.data, plan_bytes.length, spec_bytes.data, spec_bytes.length, NULL),
      HF_OK);
  task_report_free(rig_expect_failed(&r, 1, HF_E_PROTOCOL));
  buf_reset(&plan_bytes);
  buf_reset(&spec_bytes);
  rig_close(&r);
}

static void task_submitted_twice_is_refused(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  rig_submit(&r, 1, ENDLESS);
  rig_wait_started(&r, 1);
  stage_piece piece;
  stage_plan plan = rig_plan(1, &piece, "SELECT 1::BIGINT AS n");
  task_spec spec = {{1}, {1}, {1}, {1}, 0, NULL};
  buf plan_bytes = {0}, spec_bytes = {0};
  assert_int_equal(stage_plan_pack(&plan, &plan_bytes, NULL), HF_OK);
  assert_int_equal(task_spec_pack(&spec, &spec_bytes, NULL), HF_OK);
  assert_int_equal(
      executor_submit(r.x, plan_bytes.data, plan_bytes.length, spec_bytes.data, spec_bytes.length, NULL),
      HF_E_PROTOCOL);
  buf_reset(&plan_bytes);
  buf_reset(&spec_bytes);
  rig_close(&r); /* ends the endless one */
}

static void task_in_a_slot_too_small_says_to_raise_memory(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 2, (uint64_t)32 << 20); /* 16 MiB a slot, of which the sink takes 1 */
  rig_submit(&r, 1, "SELECT 1::BIGINT AS n");
  task_report *report = rig_expect_failed(&r, 1, HF_E_OUT_OF_MEMORY);
  assert_non_null(strstr(report->error.message, "the memory of one slot is too small"));
  assert_non_null(strstr(report->error.hint, "--memory"));
  task_report_free(report);
  rig_close(&r);
}

static void task_that_needs_more_memory_than_its_slot_fails_clearly(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)17 << 20); /* DuckDB gets 16 MiB */
  /* a list must be whole in memory: 80 MB that cannot be spilled */
  rig_submit(&r, 1, "SELECT len(list(range))::BIGINT AS n FROM range(10000000)");
  task_report *report = rig_expect_failed(&r, 1, HF_E_OUT_OF_MEMORY);
  assert_non_null(report->error.hint);
  task_report_free(report);
  assert_no_files(&r);
  rig_submit(&r, 2, "SELECT 1::BIGINT AS n");
  task_report_free(rig_expect_finished(&r, 2));
  rig_close(&r);
}

/* Submits `job`, which reads the blocks of job 1 as a held result and those of job 2 as an ordinary one. */
static void submit_reader(rig *r, uint64_t job, bool verify) {
  stage_input inputs[] = {
      {.kind = STAGE_INPUT_BLOCKS, .columns = {1, rig_one_bigint}},
      {.kind = STAGE_INPUT_BLOCKS, .columns = {1, rig_one_bigint}, .verify = verify, .held_key = {KEY}}};
  stage_piece pieces[4];
  stage_plan plan = rig_plan(job, pieces, "SELECT sum(n)::BIGINT AS n FROM (FROM ");
  pieces[1] = (stage_piece){NULL, 0};
  pieces[2] = (stage_piece){" AS a UNION ALL FROM ", 0};
  pieces[3] = (stage_piece){NULL, 1};
  stage_piece all[5] = {pieces[0], pieces[1], pieces[2], pieces[3], {" AS b)", 0}};
  plan.pieces = all;
  plan.n_pieces = 5;
  plan.inputs = inputs;
  plan.n_inputs = 2;
  block_ref refs[] = {rig_ref(2), rig_ref(1)};
  task_input given[] = {{.blocks = &refs[0], .n_blocks = 1}, {.blocks = &refs[1], .n_blocks = 1}};
  rig_submit_plan(r, &plan, given);
}

static void task_whose_held_blocks_are_lost_names_the_held_result(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  for (uint64_t job = 1; job <= 2; job++) {
    rig_submit(&r, job, "SELECT range AS n FROM range(100000)");
    task_report_free(rig_expect_finished(&r, job));
  }
  submit_reader(&r, 3, true);
  task_report_free(rig_expect_finished(&r, 3));

  char file[256];
  snprintf(file, sizeof file, "%s/" RIG_SESSION "/1/1/1-1/t0.arrow", r.work_dir);
  FILE *blocks = fopen(file, "r+b");
  assert_non_null(blocks);
  assert_int_equal(fseek(blocks, 5000, SEEK_SET), 0);
  int byte = fgetc(blocks);
  assert_int_equal(fseek(blocks, 5000, SEEK_SET), 0);
  assert_int_equal(fputc(byte ^ 1, blocks), byte ^ 1);
  assert_int_equal(fclose(blocks), 0);
  submit_reader(&r, 4, true); /* found while it runs */
  task_report *report = rig_expect_failed(&r, 4, HF_E_BLOCK_CORRUPT);
  assert_string_equal(report->lost_held_key.text, KEY);
  task_report_free(report);

  assert_int_equal(unlink(file), 0);
  submit_reader(&r, 5, false); /* found when it opens */
  report = rig_expect_failed(&r, 5, HF_E_BLOCK_MISSING);
  assert_string_equal(report->lost_held_key.text, KEY);
  task_report_free(report);
  assert_false(path_exists(scratch_path(&r.place, "work/" RIG_SESSION "/5")));

  uuid session = {RIG_SESSION};
  executor_remove_stage(r.x, &session, (job_id){2}, (stage_id){1});
  submit_reader(&r, 6, false); /* the one that is not held is looked at first */
  report = rig_expect_failed(&r, 6, HF_E_BLOCK_MISSING);
  assert_true(uuid_is_none(&report->lost_held_key));
  task_report_free(report);
  rig_close(&r);
}

static void task_over_blocks_of_other_columns_fails(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  rig_submit(&r, 1, "SELECT range AS n FROM range(10)");
  task_report_free(rig_expect_finished(&r, 1));
  const column columns[] = {{"n", &rig_varchar}};
  stage_input input = {.kind = STAGE_INPUT_BLOCKS, .columns = {1, columns}};
  stage_piece pieces[3];
  stage_plan plan = rig_plan(2, pieces, "SELECT count(*) AS n FROM ");
  pieces[1] = (stage_piece){NULL, 0};
  pieces[2] = (stage_piece){" AS t", 0};
  plan.n_pieces = 3;
  plan.n_inputs = 1;
  plan.inputs = &input;
  block_ref ref = rig_ref(1);
  task_input given = {.blocks = &ref, .n_blocks = 1};
  rig_submit_plan(&r, &plan, &given);
  task_report_free(rig_expect_failed(&r, 2, HF_E_PROTOCOL));
  rig_close(&r);
}

/* ------------------------------------------------------------------ cancel */

static void task_cancelled_at_once_ends_in_whatever_step_it_is(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  for (uint64_t job = 1; job <= 30; job++) {
    rig_submit(&r, job, ENDLESS);
    if (job % 2 == 0) {
      rig_wait_started(&r, job); /* decoding, opening or just running */
    }
    rig_cancel(&r, job);
    task_report_free(rig_expect_failed(&r, job, HF_E_CANCELLED));
    assert_no_files(&r);
  }
  rig_close(&r);
}

static void task_cancelled_while_it_runs_is_interrupted(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1,
           (uint64_t)256 << 20); /* one thread: DuckDB tells the progress of its caller's work only */
  rig_submit(&r, 1, ENDLESS);
  rig_wait_started(&r, 1);
  double fraction = -2;
  uint64_t rows = 0, deadline = clock_monotonic_us() + RIG_DEADLINE_US;
  while (fraction < 0 && clock_monotonic_us() < deadline) { /* until it runs: progress is known */
    assert_true(executor_progress(r.x, (job_id){1}, &fraction, &rows));
    rig_wait_a_moment(&r);
  }
  assert_true(fraction >= 0 && fraction <= 1);
  assert_false(executor_progress(r.x, (job_id){2}, &fraction, &rows));
  rig_cancel(&r, 1);
  rig_cancel(&r, 1);
  task_report_free(rig_expect_failed(&r, 1, HF_E_CANCELLED));
  assert_no_files(&r);
  rig_cancel(&r, 1); /* unknown by now */
  assert_false(executor_progress(r.x, (job_id){1}, &fraction, &rows));
  rig_submit(&r, 2, "SELECT 1::BIGINT AS n"); /* an interrupt does not reach the next one */
  task_report_free(rig_expect_finished(&r, 2));
  rig_close(&r);
}

static void task_cancelled_in_the_queue_ends_at_once(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  rig_submit(&r, 1, ENDLESS);
  rig_wait_started(&r, 1);
  for (uint64_t job = 2; job <= 4; job++) {
    rig_submit(&r, job, "SELECT 1::BIGINT AS n");
  }
  const uint64_t order[] = {3, 4, 2};
  for (int i = 0; i < 3; i++) {
    rig_cancel(&r, order[i]);
    size_t count = rig_report_count(&r);
    assert_int_equal(count, 2 + i); /* it is there when cancel returns */
    task_report_free(rig_expect_failed(&r, order[i], HF_E_CANCELLED));
  }
  rig_submit(&r, 5, "SELECT 5::BIGINT AS n"); /* the queue is whole */
  rig_cancel(&r, 1);
  task_report_free(rig_expect_failed(&r, 1, HF_E_CANCELLED));
  task_report_free(rig_expect_finished(&r, 5));
  rig_close(&r);
}

static void executor_closed_while_tasks_run_and_wait_ends_them(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 2, (uint64_t)512 << 20);
  for (uint64_t job = 1; job <= 6; job++) {
    rig_submit(&r, job, ENDLESS);
  }
  rig_wait_started(&r, 1);
  rig_wait_started(&r, 2);
  executor_close(r.x);
  r.x = NULL;
  for (uint64_t job = 1; job <= 6; job++) {
    task_report *report = rig_wait_ended(&r, job);
    assert_int_equal(report->error.code, HF_E_CANCELLED);
    task_report_free(report);
  }
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(task_with_bad_sql_fails_as_the_users_error),
      cmocka_unit_test(task_with_bytes_that_are_no_plan_fails),
      cmocka_unit_test(task_of_another_plan_fails),
      cmocka_unit_test(task_submitted_twice_is_refused),
      cmocka_unit_test(task_in_a_slot_too_small_says_to_raise_memory),
      cmocka_unit_test(task_that_needs_more_memory_than_its_slot_fails_clearly),
      cmocka_unit_test(task_whose_held_blocks_are_lost_names_the_held_result),
      cmocka_unit_test(task_over_blocks_of_other_columns_fails),
      cmocka_unit_test(task_cancelled_at_once_ends_in_whatever_step_it_is),
      cmocka_unit_test(task_cancelled_while_it_runs_is_interrupted),
      cmocka_unit_test(task_cancelled_in_the_queue_ends_at_once),
      cmocka_unit_test(executor_closed_while_tasks_run_and_wait_ends_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

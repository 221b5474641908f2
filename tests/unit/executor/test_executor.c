/* SPDX-License-Identifier: Apache-2.0 */
/* Whole tasks: rows in and out, several at a time, the queue, closing, leaks. */
#include "rig.h"

#include "source/source.h"

static void task_over_no_input_writes_its_rows(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  rig_submit(&r, 7, "SELECT range AS n FROM range(100000)");
  rig_wait_started(&r, 7);
  task_report *report = rig_expect_finished(&r, 7);
  assert_true(report->output.rows == 100000);
  assert_true(report->output.bytes > 800000);
  assert_int_equal(report->output.partitions, 1);
  assert_int_equal(report->output.columns.n_columns, 1);
  assert_string_equal(report->output.columns.columns[0].name, "n");
  assert_true(report->run_us > 0);
  assert_true(report->peak_memory_bytes > 0);
  assert_true(report->source_rows == 0 && report->source_files == 0 && report->block_rows == 0);
  task_report_free(report);
  rig_sum got = rig_read(&r, 7);
  assert_true(got.rows == 100000);
  assert_true(got.sum == (int64_t)100000 * 99999 / 2);
  assert_int_equal(rig_report_count(&r), 2);
  rig_close(&r);
}

static void task_over_a_csv_file_reads_it(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  char *path = strdup(scratch_path(&r.place, "it's.csv"));
  write_text(path, "a,b\n1,x\n2,y\n39,z\n");
  source_catalog *catalog = NULL;
  const char *dirs[] = {r.place.path};
  source_catalog_options options = {.allowed_dirs = dirs, .n_allowed_dirs = 1, .refused_dir = r.work_dir};
  const char *paths[] = {path};
  source_request request = {.format = SOURCE_CSV, .paths = paths, .n_paths = 1};
  source *csv = NULL;
  hf_error error = {0};
  assert_int_equal(source_catalog_new(&options, &catalog, &error), HF_OK);
  if (source_resolve(catalog, &request, &csv, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  stage_piece pieces[] = {{"SELECT sum(a)::BIGINT AS n FROM ", 0}, {NULL, 0}, {" AS t WHERE b <> 'y'", 0}};
  stage_input input = {
      .kind = STAGE_INPUT_FILES, .columns = *source_columns(csv), .reader = source_reader_text(csv)};
  stage_plan plan = rig_plan(1, pieces, "SELECT sum(a)::BIGINT AS n FROM ");
  plan.n_pieces = 3;
  plan.n_inputs = 1;
  plan.inputs = &input;
  plan.allowed_dirs = dirs;
  plan.n_allowed_dirs = 1;
  const char *files[] = {source_files(csv)[0].path};
  task_input given = {.files = files, .n_files = 1};
  rig_submit_plan(&r, &plan, &given);
  task_report *report = rig_expect_finished(&r, 1);
  assert_true(report->source_files == 1);
  assert_true(report->source_rows == 3);
  task_report_free(report);
  assert_true(rig_read(&r, 1).sum == 40);
  plan.job.value = 2;
  given.n_files = 0; /* a task without files has no rows */
  rig_submit_plan(&r, &plan, &given);
  report = rig_expect_finished(&r, 2);
  assert_true(report->source_files == 0);
  assert_true(report->output.rows == 1);
  task_report_free(report);
  source_release(csv);
  source_catalog_free(catalog);
  free(path);
  rig_close(&r);
}

/* A BLOCKS input over the output of other jobs, under the user names `columns`. */
static void task_over_blocks_reads_them_under_user_names(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  rig_submit(&r, 1, "SELECT range AS n FROM range(10000)");
  rig_submit(&r, 2, "SELECT 5::BIGINT AS n FROM range(10)");
  task_report_free(rig_expect_finished(&r, 1));
  task_report_free(rig_expect_finished(&r, 2));
  const column columns[] = {{"user \"name\"", &rig_bigint}};
  stage_input input = {.kind = STAGE_INPUT_BLOCKS,
                       .columns = {1, columns},
                       .verify = true,
                       .held_key = {"7c9e6679-7425-40de-944b-e07fc1f90ae7"}};
  stage_piece pieces[3];
  stage_plan plan = rig_plan(3, pieces, "SELECT sum(\"user \"\"name\"\"\")::BIGINT AS n FROM ");
  pieces[1] = (stage_piece){NULL, 0};
  pieces[2] = (stage_piece){" AS t", 0};
  plan.n_pieces = 3;
  plan.n_inputs = 1;
  plan.inputs = &input;
  block_ref refs[] = {rig_ref(1), rig_ref(2)};
  task_input given = {.blocks = refs, .n_blocks = 2};
  rig_submit_plan(&r, &plan, &given);
  task_report *report = rig_expect_finished(&r, 3);
  assert_true(report->block_rows == 10010);
  assert_true(report->held_rows == 10010);
  task_report_free(report);
  assert_true(rig_read(&r, 3).sum == (int64_t)10000 * 9999 / 2 + 50);
  input.held_key = (uuid){""};
  plan.job.value = 4;
  given.n_blocks = 0;
  rig_submit_plan(&r, &plan, &given);
  report = rig_expect_finished(&r, 4);
  assert_true(report->block_rows == 0);
  task_report_free(report);
  rig_close(&r);
}

static void task_over_enums_gets_them_back(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  static const char *const values[] = {"z", "a"};
  static const data_type kind = {.kind = TYPE_ENUM, .n_names = 2, .names = values};
  static const data_type *const children[] = {&kind};
  static const data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = children};
  const column columns[] = {{"e", &kind}, {"l", &list}};
  stage_piece pieces[3];
  stage_plan plan = rig_plan(1, pieces,
                             "SELECT 'z'::ENUM('z','a') AS e, ['a']::ENUM('z','a')[] AS l UNION ALL "
                             "SELECT 'a', ['z', NULL] UNION ALL SELECT NULL, NULL");
  plan.output.columns = (schema){2, columns};
  rig_submit_plan(&r, &plan, NULL);
  task_report_free(rig_expect_finished(&r, 1));
  stage_input input = {.kind = STAGE_INPUT_BLOCKS, .columns = {2, columns}};
  /* an ENUM orders by its values' places: z before a */
  plan = rig_plan(2, pieces,
                  "SELECT count(*) + 10 * count(*) FILTER (e < 'a'::ENUM('z','a')) + "
                  "100 * count(*) FILTER (l[1] > 'z'::ENUM('z','a')) AS n FROM ");
  pieces[1] = (stage_piece){NULL, 0};
  pieces[2] = (stage_piece){" AS t", 0};
  plan.n_pieces = 3;
  plan.n_inputs = 1;
  plan.inputs = &input;
  block_ref ref = rig_ref(1);
  task_input given = {.blocks = &ref, .n_blocks = 1};
  rig_submit_plan(&r, &plan, &given);
  task_report_free(rig_expect_finished(&r, 2));
  assert_true(rig_read(&r, 2).sum == 113);
  rig_close(&r);
}

static void tasks_on_two_slots_run_at_the_same_time(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 2, (uint64_t)512 << 20);
  assert_int_equal(executor_slots(r.x), 2);
  /* the first cannot end by itself in the time of this test: that the second starts proves the second slot */
  rig_submit(
      &r, 1,
      "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000) b WHERE a.range + b.range = -1");
  rig_wait_started(&r, 1);
  rig_submit(&r, 2, "SELECT 2::BIGINT AS n");
  task_report_free(rig_expect_finished(&r, 2));
  rig_cancel(&r, 1);
  task_report_free(rig_expect_failed(&r, 1, HF_E_CANCELLED));
  rig_close(&r);
}

static void tasks_with_other_settings_get_another_instance(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  const char *const zones[] = {"UTC", "Asia/Tokyo", "Asia/Tokyo", "UTC"};
  const int64_t hours[] = {0, 9, 9, 0};
  for (uint64_t i = 0; i < 4; i++) {
    stage_setting settings[] = {{"TimeZone", zones[i]}};
    stage_piece piece;
    stage_plan plan = rig_plan(i + 1, &piece,
                               "SELECT date_part('hour', TIMESTAMPTZ '2024-01-01 00:00:00+00')::BIGINT AS n");
    plan.settings = settings;
    plan.n_settings = 1;
    rig_submit_plan(&r, &plan, NULL);
    task_report_free(rig_expect_finished(&r, i + 1));
    assert_true(rig_read(&r, i + 1).sum == hours[i]);
  }
  rig_close(&r);
}

static void task_with_partitions_reports_them(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  stage_piece piece;
  stage_plan plan = rig_plan(1, &piece, "SELECT range AS n, (range % 4)::UINTEGER AS p FROM range(1000)");
  plan.output.partitions = 4;
  rig_submit_plan(&r, &plan, NULL);
  task_report *report = rig_expect_finished(&r, 1);
  assert_int_equal(report->output.partitions, 4);
  assert_true(report->output.rows == 1000);
  assert_int_equal(report->output.n_watched, 0);
  task_report_free(report);
  assert_true(rig_read(&r, 1).sum == 999 * 500);
  rig_close(&r);
}

/* Partition 2 has no row, partition 3 most of them. */
static void task_with_partitions_reports_the_bytes_of_each(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  stage_piece piece;
  stage_plan plan = rig_plan(
      1, &piece,
      "SELECT range AS n, (CASE WHEN range < 300 THEN range % 2 ELSE 3 END)::UINTEGER AS p FROM range(300000)");
  plan.output.partitions = 4;
  rig_submit_plan(&r, &plan, NULL);
  task_report *report = rig_expect_finished(&r, 1);
  const uint64_t *bytes = report->output.partition_bytes;
  assert_non_null(bytes);
  assert_true(bytes[0] >= 150 * 8 && bytes[1] >= 150 * 8);
  assert_true(bytes[2] == 0);
  assert_true(bytes[3] >= 299700 * 8);
  assert_true(bytes[0] + bytes[1] + bytes[3] == report->output.bytes);
  task_report_free(report);
  rig_close(&r);
}

static void task_that_watches_reports_what_it_wrote(void **state) {
  (void)state;
  static const data_type date = {.kind = TYPE_DATE};
  static const data_type decimal = {.kind = TYPE_DECIMAL, .width = 12, .scale = 2};
  static const column columns[] = {{"key", &rig_bigint},
                                   {"text", &rig_varchar},
                                   {"day", &date},
                                   {"price", &decimal},
                                   {"none", &rig_bigint}};
  static const uint32_t watched[] = {2, 1, 0, 3, 4};
  rig r;
  rig_open(&r, 2, 1, (uint64_t)256 << 20);
  stage_piece piece;
  stage_plan plan =
      rig_plan(1, &piece,
               "SELECT range - 5 AS key, 'x' AS text, DATE '1969-12-30' + (range % 3)::INTEGER AS day, "
               "(CASE WHEN range % 2 = 0 THEN -0.01 END)::DECIMAL(12,2) AS price, NULL::BIGINT AS none, "
               "(range % 3)::UINTEGER AS p FROM range(100000)");
  plan.output.columns = (schema){5, columns};
  plan.output.partitions = 3;
  plan.output.n_watched = 5;
  plan.output.watched = watched;
  rig_submit_plan(&r, &plan, NULL);
  task_report *report = rig_expect_finished(&r, 1);
  const range_summary *found = report->output.watched;
  assert_int_equal(report->output.n_watched, 4); /* texts have no summary */
  assert_true(found[0].column == 2 && found[0].rows == 100000 && found[0].n_values == 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal((int64_t)range_key_integer(RANGE_INT32, found[0].values[i]), (int64_t)i - 2);
  }
  assert_true(found[1].column == 0 && found[1].rows == 100000 && found[1].n_values == 0);
  assert_int_equal((int64_t)range_key_integer(RANGE_INT64, found[1].least), -5);
  assert_int_equal((int64_t)range_key_integer(RANGE_INT64, found[1].most), 99994);
  assert_true(found[2].column == 3 && found[2].rows == 50000 && found[2].n_values == 1);
  assert_int_equal((int64_t)range_key_integer(RANGE_INT64, found[2].values[0]), -1);
  assert_true(found[3].column == 4 && found[3].rows == 0 && found[3].n_values == 0);
  task_report_free(report);
  rig_close(&r);
}

static size_t descriptor_count(void) {
  return (size_t)entry_count("/proc/self/fd");
}

static void tasks_two_hundred_in_a_row_leak_no_descriptor(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  size_t before = 0;
  for (uint64_t job = 1; job <= 200; job++) {
    bool fails = job % 10 == 0;
    rig_submit(&r, job, fails ? "SELECT nowhere AS n" : "SELECT 1::BIGINT AS n");
    task_report *report = rig_wait_ended(&r, job);
    assert_int_equal(report->outcome, fails ? TASK_FAILED : TASK_FINISHED);
    task_report_free(report);
    uuid session = {RIG_SESSION};
    executor_remove_stage(r.x, &session, (job_id){job}, (stage_id){1});
    before = job == 20 ? descriptor_count() : before;
  }
  assert_int_equal(descriptor_count(), before);
  assert_int_equal(entry_count(scratch_path(&r.place, "work/" RIG_SESSION)), 0);
  rig_close(&r);
}

static void stage_removed_takes_its_files_and_empty_parents(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  uuid session = {RIG_SESSION}, other = {"7c9e6679-7425-40de-944b-e07fc1f90ae7"}, bad = {"../../../etc"};
  rig_submit(&r, 1, "SELECT 1::BIGINT AS n");
  rig_submit(&r, 2, "SELECT 2::BIGINT AS n");
  task_report_free(rig_expect_finished(&r, 1));
  task_report_free(rig_expect_finished(&r, 2));
  executor_remove_stage(r.x, &bad, (job_id){1}, (stage_id){1});
  executor_remove_stage(r.x, &other, (job_id){1}, (stage_id){1});
  executor_remove_stage(r.x, &session, (job_id){1}, (stage_id){2});
  executor_remove_session(r.x, &session);
  assert_int_equal(entry_count(scratch_path(&r.place, "work/" RIG_SESSION)), 2);
  executor_remove_stage(r.x, &session, (job_id){1}, (stage_id){1});
  assert_int_equal(entry_count(scratch_path(&r.place, "work/" RIG_SESSION)), 1);
  assert_true(rig_read(&r, 2).sum == 2);
  executor_remove_stage(r.x, &session, (job_id){2}, (stage_id){1});
  executor_remove_session(r.x, &session);
  assert_false(path_exists(scratch_path(&r.place, "work/" RIG_SESSION)));
  rig_close(&r);
}

static void stream_opened_before_the_close_is_read_after_it(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  rig_submit(&r, 1, "SELECT range AS n FROM range(100000)");
  task_report_free(rig_expect_finished(&r, 1));
  arena *a = arena_new();
  block_ref ref = rig_ref(1);
  block_location location = {.dir = executor_attempt_dir(r.x, &ref, a)};
  struct ArrowArrayStream stream;
  int released = 0;
  assert_int_equal(block_stream_open(&location, 1, rig_on_release, &released, &stream, NULL), HF_OK);
  rig_close(&r);
  assert_true(rig_read_stream(&stream).rows == 100000);
  stream.release(&stream);
  arena_free(a);
}

static void warm_opens_the_instance_that_a_task_takes(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, (uint64_t)256 << 20);
  stage_piece piece;
  stage_plan plan = rig_plan(1, &piece, "SELECT 1::BIGINT AS n");
  executor_warm(r.x, &plan);
  executor_warm(r.x, &plan);
  rig_submit_plan(&r, &plan, NULL);
  task_report_free(rig_expect_finished(&r, 1));
  executor_warm(r.x, &plan);
  rig_close(&r);
}

static void executor_in_a_directory_in_use_is_refused(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1, 1, 0);
  executor_options options = {.work_dir = r.work_dir, .report = rig_report, .report_context = &r};
  executor *second = NULL;
  hf_error error = {0};
  assert_int_equal(executor_open(&options, &second, &error), HF_E_WORK_DIR);
  assert_non_null(strstr(error.message, r.work_dir));
  assert_null(second);
  hf_error_reset(&error);
  assert_string_equal(executor_work_dir(r.x), r.work_dir);
  rig_close(&r);
  executor_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(task_over_no_input_writes_its_rows),
      cmocka_unit_test(task_over_a_csv_file_reads_it),
      cmocka_unit_test(task_over_blocks_reads_them_under_user_names),
      cmocka_unit_test(task_over_enums_gets_them_back),
      cmocka_unit_test(tasks_on_two_slots_run_at_the_same_time),
      cmocka_unit_test(tasks_with_other_settings_get_another_instance),
      cmocka_unit_test(task_with_partitions_reports_them),
      cmocka_unit_test(task_with_partitions_reports_the_bytes_of_each),
      cmocka_unit_test(task_that_watches_reports_what_it_wrote),
      cmocka_unit_test(tasks_two_hundred_in_a_row_leak_no_descriptor),
      cmocka_unit_test(stage_removed_takes_its_files_and_empty_parents),
      cmocka_unit_test(stream_opened_before_the_close_is_read_after_it),
      cmocka_unit_test(warm_opens_the_instance_that_a_task_takes),
      cmocka_unit_test(executor_in_a_directory_in_use_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

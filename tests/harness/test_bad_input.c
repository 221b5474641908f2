/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong is said; and what differs is found. */
#include "harness/harness_internal.h"

#include "rig.h"

static const hf_harness_config two = {.tasks = 2, .slots = 2};

static int tables_open(void **state) {
  rig_open(state);
  rig_table(*state, "t", "SELECT range AS a, range % 97 AS b FROM range(9000)");
  return 0;
}

static void expect(hf_status status, hf_status expected, hf_error *error, const char *part) {
  if (status != expected) {
    fail_msg("%s, expected %s: %s", hf_status_name(status), hf_status_name(expected),
             error->message == NULL ? "" : error->message);
  }
  assert_non_null(strstr(error->message, part));
  hf_error_reset(error);
}

static void configuration_that_cannot_be_is_refused(void **state) {
  rig *r = *state;
  static const struct {
    hf_harness_config how;
    const char *part;
  } cases[] = {
      {{.tasks = 0, .slots = 2}, "number of tasks"},
      {{.tasks = 257, .slots = 2}, "number of tasks"},
      {{.tasks = 2, .slots = 0}, "number of slots"},
      {{.tasks = 2, .slots = 1000}, "number of slots"},
      {{.tasks = 2, .slots = 2, .partitions = 100000}, "number of partitions"},
      {{.tasks = 2, .slots = 2, .batch_rows = 7}, "batch_rows"},
      {{.tasks = 2, .slots = 2, .exchange = (hf_harness_exchange)7}, "none of its values"},
      {{.tasks = 2, .slots = 2, .hold = (hf_harness_hold)-1}, "none of its values"},
  };
  struct ArrowArrayStream rows = {0};
  hf_harness_report report = {0};
  hf_error error = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    expect(hf_run_distributed(r->h, "FROM t", &cases[i].how, &rows, &error), HF_E_INVALID_ARGUMENT, &error,
           cases[i].part);
    expect(hf_assert_distributed_eq(r->h, "FROM t", &cases[i].how, &report, &error), HF_E_INVALID_ARGUMENT,
           &error, cases[i].part);
  }
}

static void null_arguments_are_refused(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  hf_error error = {0};
  hf_status wrong = HF_E_INVALID_ARGUMENT;
  expect(hf_run_distributed(NULL, "FROM t", &two, &rows, &error), wrong, &error, "needs a harness");
  expect(hf_run_distributed(r->h, NULL, &two, &rows, &error), wrong, &error, "needs a harness");
  expect(hf_run_distributed(r->h, "FROM t", NULL, &rows, &error), wrong, &error, "needs a harness");
  expect(hf_run_distributed(r->h, "FROM t", &two, NULL, &error), wrong, &error, "no place");
  expect(hf_assert_distributed_eq(NULL, NULL, NULL, NULL, &error), wrong, &error, "needs a harness");
  expect(hf_assert_distributed_eq(r->h, "FROM t", &two, NULL, &error), wrong, &error, "no place");
  expect(hf_harness_files(r->h, NULL, NULL, HF_LIST("/tmp/x.csv"), &error), wrong, &error, "name is empty");
  expect(hf_harness_files(r->h, "x", NULL, (hf_list){NULL, 0}, &error), wrong, &error, "paths");
  expect(hf_harness_files(r->h, "x", NULL, HF_LIST(NULL), &error), wrong, &error, "paths");
  expect(hf_harness_files(r->h, "x", "xlsx", HF_LIST("/tmp/x.xlsx"), &error), wrong, &error, "format");
  expect(hf_harness_stream(r->h, "x", &rows, &error), wrong, &error, "stream");
  expect(hf_harness_view(r->h, "x", NULL, &error), wrong, &error, "query");
  expect(hf_harness_set(r->h, NULL, NULL, &error), wrong, &error, "key");
  expect(hf_harness_open(NULL, NULL, &error), wrong, &error, "no place");
  expect(hf_run_distributed(r->h, "SELECT '\xff'", &two, &rows, &error), wrong, &error, "UTF-8");
  expect(hf_harness_files(r->h, "\xff", NULL, HF_LIST("/tmp/x.csv"), &error), wrong, &error, "UTF-8");
  assert_int_equal(hf_run_distributed(r->h, "FROM nowhere", &two, &rows, NULL), HF_E_TABLE_NOT_FOUND);
  hf_harness_close(NULL);
  hf_harness_report_reset(NULL);
}

static void text_that_is_no_query_is_refused(void **state) {
  rig *r = *state;
  rig_fails(r, "SELECT * FROM nowhere", &two, HF_E_TABLE_NOT_FOUND);
  rig_fails(r, "SELECT nothing FROM t", &two, HF_E_COLUMN_NOT_FOUND);
  rig_fails(r, "SELEC a FROM t", &two, HF_E_SYNTAX);
  rig_fails(r, "", &two, HF_E_SYNTAX);
  rig_fails(r, "FROM t; FROM t", &two, HF_E_SYNTAX);
  rig_fails(r, "DROP TABLE t", &two, HF_E_STATEMENT_REFUSED);
  rig_fails(r, "CACHE TABLE t", &two, HF_E_STATEMENT_REFUSED);
  rig_fails(r, "SHOW TABLES", &two, HF_E_STATEMENT_REFUSED);
  rig_fails(r, "INSERT INTO t VALUES (1, 2)", &two, HF_E_STATEMENT_REFUSED);
  rig_fails(r, "FROM '/nowhere/x.parquet'", &two, HF_E_PATH_REFUSED);
}

static void file_that_is_not_there_is_an_error_of_its_name(void **state) {
  rig *r = *state;
  hf_error error = {0};
  char path[100];
  snprintf(path, sizeof path, "%s/none.parquet", r->dir);
  expect(hf_harness_files(r->h, "x", NULL, HF_LIST(path), &error), HF_E_FILE_NOT_FOUND, &error,
         "none.parquet");
  expect(hf_harness_files(r->h, "x", "csv", HF_LIST("/etc/passwd"), &error), HF_E_PATH_REFUSED, &error,
         "passwd");
  expect(hf_harness_drop(r->h, "x", &error), HF_E_TABLE_NOT_FOUND, &error, "x");
}

static void error_of_a_task_is_that_of_the_query(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  const char *sql = "SELECT b, sum(CAST('x' || a AS INTEGER)) FROM t GROUP BY b";
  rig_fails(r, sql, &two, HF_E_CAST);
  rig_same(r, sql, &two, &report); /* single-node DuckDB fails alike */
  assert_int_equal(report.result, HF_HARNESS_REJECTED);
  assert_int_equal(report.single_status, HF_E_CAST);
  assert_int_equal(report.distributed_status, HF_E_CAST);
  assert_non_null(strstr(report.reason, "single-node: CAST"));
  hf_harness_report_reset(&report);
  /* and the harness goes on */
  must(hf_assert_distributed_eq(r->h, "SELECT sum(a) FROM t", &two, &report, &error), &error);
  assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
  hf_harness_report_reset(&report);
}

static void setting_that_cannot_be_leaves_all_as_it_was(void **state) {
  rig *r = *state;
  hf_error error = {0};
  must(hf_harness_set(r->h, "sql.time_zone", "Asia/Tokyo", &error), &error);
  expect(hf_harness_set(r->h, "sql.time_zone", "Nowhere/Nothing", &error), HF_E_SETTING_VALUE, &error, "");
  expect(hf_harness_set(r->h, "sql.default_order", "sideways", &error), HF_E_SETTING_VALUE, &error, "");
  expect(hf_harness_set(r->h, "no.such", "1", &error), HF_E_SETTING_UNKNOWN, &error, "");
  rig_distributed(r, "SELECT max(hour(to_timestamp(a))) FROM t", &two);
}

/* Single-node DuckDB gets another t. */
static void show_witness(rig *r, const char *sql) {
  hf_error error = {0};
  char view[300];
  snprintf(view, sizeof view, "CREATE OR REPLACE VIEW t AS %s", sql);
  must(engine_execute(witness_engine(r->h->witness), view, &error), &error);
}

static void answers_that_differ_are_told_row_by_row(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  show_witness(r, "SELECT range AS a, range % 97 AS b FROM range(9001)");
  must(hf_assert_distributed_eq(r->h, "SELECT a FROM t", &two, &report, &error), &error);
  assert_true(report.differed);
  assert_false(report.indeterminate);
  assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
  assert_int_equal(report.n_rows, 9001);
  assert_non_null(strstr(report.rows, "9000"));
  hf_harness_report_reset(&report);
}

static void order_that_the_query_asks_for_is_compared(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  show_witness(r, "SELECT range AS a, -range AS b FROM range(9000)");
  must(hf_assert_distributed_eq(r->h, "SELECT a FROM t ORDER BY abs(b) % 97, a", &two, &report, &error),
       &error);
  assert_false(report.differed); /* what it orders by is no column of the result: a multiset */
  hf_harness_report_reset(&report);
  show_witness(r, "SELECT 8999 - range AS a, range % 97 AS b FROM range(9000)");
  must(hf_assert_distributed_eq(r->h, "SELECT a FROM t ORDER BY a", &two, &report, &error), &error);
  assert_false(report.differed);
  assert_true(report.compared_order);
  hf_harness_report_reset(&report);
}

static void answer_of_one_side_only_differs(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  show_witness(r, "SELECT 'x' AS a, 1 AS b");
  must(hf_assert_distributed_eq(r->h, "SELECT sum(a) FROM t", &two, &report, &error), &error);
  assert_true(report.differed);
  assert_int_equal(report.distributed_status, HF_OK);
  assert_int_equal(report.single_status, HF_E_FUNCTION_NOT_FOUND);
  hf_harness_report_reset(&report);
}

static void query_that_draws_differs_and_is_not_determinate(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  must(hf_assert_distributed_eq(r->h, "SELECT a, random() FROM t", &two, &report, &error), &error);
  assert_true(report.differed);
  assert_true(report.indeterminate);
  hf_harness_report_reset(&report);
}

/* A held result has no Bloom filter of a file. */
static void known_defect_of_single_node_duckdb_is_named(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  const hf_harness_config held = {.tasks = 2, .slots = 2, .hold = HF_HARNESS_HOLD_HELD};
  rig_table(r, "blobs", "SELECT '\\x00\\xFF'::BLOB AS x, range AS a FROM range(5000)");
  must(hf_assert_distributed_eq(r->h, "SELECT a FROM blobs WHERE x = '\\x00\\xFF'::BLOB", &held, &report,
                                &error),
       &error);
  assert_true(report.differed);
  assert_true(report.known_defect);
  assert_false(report.indeterminate);
  assert_non_null(strstr(report.doubt, "BLOB"));
  assert_int_equal(report.n_rows, 0);
  hf_harness_report_reset(&report);
  must(hf_assert_distributed_eq(r->h, "SELECT a + 1 FROM blobs WHERE a % 2 = 1", &held, &report, &error),
       &error);
  assert_false(report.differed);
  hf_harness_report_reset(&report);
}

/* Single-node DuckDB draws at each place where the view is named, so that nothing meets. */
static void held_view_that_draws_is_not_determinate(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_error error = {0};
  const hf_harness_config held = {.tasks = 2, .slots = 2, .hold = HF_HARNESS_HOLD_HELD};
  static const char sql[] = "SELECT count(*) FROM v JOIN v w ON v.x = w.x";
  must(hf_harness_view(r->h, "v", "SELECT a, random() AS x FROM t", &error), &error);
  must(hf_assert_distributed_eq(r->h, sql, &held, &report, &error), &error);
  assert_true(report.differed);
  assert_true(report.indeterminate);
  assert_non_null(strstr(report.doubt, "held"));
  hf_harness_report_reset(&report);
}

static void query_that_cannot_be_cut_says_why(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  rig_same(r, "SELECT 1 + 1", &two, &report);
  assert_int_equal(report.result, HF_HARNESS_FELL_BACK);
  assert_true(strlen(report.reason) > 0);
  assert_int_equal(report.n_stages, 1);
  hf_harness_report_reset(&report);
}

static void nothing_is_left_in_the_work_directory(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  hf_error error = {0};
  char left[200];
  snprintf(left, sizeof left, "%s/%s", r->h->work_dir, r->h->session.text);
  must(hf_run_distributed(r->h, "SELECT b, count(*) FROM t GROUP BY b", &two, &rows, &error), &error);
  rows.release(&rows);
  rig_fails(r, "SELECT CAST('x' || a AS INTEGER) FROM t", &two, HF_E_CAST);
  assert_true(file_remove_empty_dir(left));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, tables_open, rig_close)

int main(void) {
  const struct CMUnitTest cases[] = {
      CASE(configuration_that_cannot_be_is_refused),
      CASE(null_arguments_are_refused),
      CASE(text_that_is_no_query_is_refused),
      CASE(file_that_is_not_there_is_an_error_of_its_name),
      CASE(setting_that_cannot_be_leaves_all_as_it_was),
      CASE(error_of_a_task_is_that_of_the_query),
      CASE(answers_that_differ_are_told_row_by_row),
      CASE(order_that_the_query_asks_for_is_compared),
      CASE(answer_of_one_side_only_differs),
      CASE(query_that_draws_differs_and_is_not_determinate),
      CASE(held_view_that_draws_is_not_determinate),
      CASE(known_defect_of_single_node_duckdb_is_named),
      CASE(query_that_cannot_be_cut_says_why),
      CASE(nothing_is_left_in_the_work_directory),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

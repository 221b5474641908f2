/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defects of DuckDB that the witness knows, shown with DuckDB alone: each case first has the wrong answer, so one
 * that a later DuckDB mends fails here, and its row in src/witness/defects.c goes.
 */
#include "witness/witness.h"

#include "base/file.h"
#include "compare/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

/* A file of five rows with the same BLOB and numbers, and a table with that BLOB; `l` is a table of lists. */
static int rig_open(void **state) {
  char sql[300];
  rig *r = rig_new(&(witness_options){.time_zone = "UTC"});
  snprintf(
      sql, sizeof sql,
      "COPY (SELECT '\\x00\\xFF'::BLOB AS b, range AS i FROM range(5)) TO '%s/b.parquet' (FORMAT parquet)",
      r->dir);
  execute(r, sql);
  snprintf(sql, sizeof sql, "CREATE VIEW file AS FROM '%s/b.parquet'", r->dir);
  execute(r, sql);
  execute(r, "CREATE TABLE s AS SELECT '\\x00\\xFF'::BLOB AS b");
  execute(r, "CREATE TABLE l AS SELECT [range] AS l FROM range(3)");
  *state = r;
  return 0;
}

/* Whether rows are those of another query. */
static void assert_rows(rig *r, struct ArrowArrayStream *rows, const char *expected) {
  struct ArrowArrayStream wanted;
  hf_error error = {0};
  compare_report report = {0};
  must(witness_run(r->w, expected, &wanted, &error), &error);
  must(compare_streams(&wanted, rows, &(compare_options){0}, &report, &error), &error);
  if (report.verdict != COMPARE_SAME) {
    fail_msg("%s: %s", expected, report.reason);
  }
  compare_report_reset(&report);
}

static void assert_answer(rig *r, const char *sql, const char *expected) {
  struct ArrowArrayStream rows;
  hf_error error = {0};
  must(witness_run(r->w, sql, &rows, &error), &error);
  assert_rows(r, &rows, expected);
}

/* The second look has this answer. */
static void assert_again(rig *r, const char *sql, const hf_error *failed, const char *defect,
                         const char *expected) {
  struct ArrowArrayStream rows;
  hf_error error = {0};
  const char *found = NULL;
  must(witness_look_again(r->w, sql, failed, &found, &rows, &error), &error);
  assert_non_null(found);
  assert_non_null(strstr(found, defect));
  assert_rows(r, &rows, expected);
}

static void defect_of_bloom_filters_hides_a_blob(void **state) {
  static const char *const queries[] = {"SELECT count(*) FROM file WHERE b = '\\x00\\xFF'::BLOB",
                                        "SELECT count(*) FROM file JOIN s USING (b)"};
  rig *r = *state;
  for (size_t i = 0; i < 2; i++) {
    assert_answer(r, queries[i], "SELECT 0::BIGINT");
    assert_again(r, queries[i], NULL, "Bloom filter", "SELECT 5::BIGINT");
    assert_answer(r, queries[i], "SELECT 0::BIGINT"); /* the first look stays what it is */
  }
  execute(r, "CREATE TABLE plain AS FROM file");
  assert_answer(r, "SELECT count(*) FROM plain WHERE b = '\\x00\\xFF'::BLOB", "SELECT 5::BIGINT");
}

static void defect_of_bloom_filters_is_of_those_alone(void **state) {
  rig *r = *state;
  char sql[300];
  snprintf(sql, sizeof sql,
           "COPY (FROM file) TO '%s/plain.parquet' (FORMAT parquet, WRITE_BLOOM_FILTER false)", r->dir);
  execute(r, sql);
  snprintf(sql, sizeof sql, "SELECT count(*) FROM '%s/plain.parquet' WHERE b = '\\x00\\xFF'::BLOB", r->dir);
  assert_answer(r, sql, "SELECT 5::BIGINT");
}

static void defect_of_between_fails_in_a_filter(void **state) {
  static const char *const queries[] = {"SELECT count(*) FROM l WHERE l BETWEEN [1] AND [2]",
                                        "SELECT count(*) FROM l WHERE l >= [1] AND l <= [2]"};
  rig *r = *state;
  for (size_t i = 0; i < 2; i++) {
    struct ArrowArrayStream rows;
    hf_error error = {0};
    assert_int_not_equal(witness_run(r->w, queries[i], &rows, &error), HF_OK);
    assert_non_null(strstr(error.message, "Invalid type for BETWEEN"));
    assert_again(r, queries[i], &error, "BETWEEN", "SELECT 2::BIGINT");
    hf_error_reset(&error);
  }
  assert_answer(r, "SELECT sum((l BETWEEN [1] AND [2])::INTEGER)::BIGINT FROM l", "SELECT 2::BIGINT");
}

/* Where the rules make no difference it fails again, with the same message. */
static void defect_that_cannot_be_left_out_is_met_again(void **state) {
  rig *r = *state;
  static const char sql[] = "SELECT 1 FROM l WHERE (SELECT l FROM l LIMIT 1) BETWEEN l AND [7]";
  struct ArrowArrayStream rows;
  hf_error first = {0}, second = {0};
  const char *found = NULL;
  assert_int_not_equal(witness_run(r->w, sql, &rows, &first), HF_OK);
  assert_int_not_equal(witness_look_again(r->w, sql, &first, &found, &rows, &second), HF_OK);
  assert_non_null(found);
  assert_string_equal(first.message, second.message);
  hf_error_reset(&first);
  hf_error_reset(&second);
}

static void defect_of_nested_conditions_stops_the_reader(void **state) {
  static const char sql[] = "SELECT t FROM nested WHERE l IS DISTINCT FROM []::INTEGER[] ORDER BY ALL";
  rig *r = *state;
  struct ArrowArrayStream rows;
  hf_error error = {0};
  char text[400];
  snprintf(text, sizeof text,
           "COPY (FROM (VALUES (NULL, 'a'), ([0], NULL), ([], NULL), (NULL, 'b')) v(l, t)) TO "
           "'%s/n.parquet' (FORMAT parquet)",
           r->dir);
  execute(r, text);
  snprintf(text, sizeof text, "CREATE VIEW nested AS FROM '%s/n.parquet'", r->dir);
  execute(r, text);
  assert_int_equal(witness_run(r->w, sql, &rows, &error), HF_E_FILE_FORMAT);
  assert_again(r, sql, &error, "Parquet reader", "FROM (VALUES ('a'), ('b'), (NULL))");
  hf_error_reset(&error);
}

/* 100 rows on the left are too many for a loop; the one whose t is NULL must have no match. */
static void defect_of_asof_joins_matches_a_null(void **state) {
  static const char sql[] = "SELECT count(x) FROM probe ASOF LEFT JOIN build USING (k, t)";
  rig *r = *state;
  execute(r, "CREATE TABLE probe AS SELECT 1 AS k, nullif(range, 7)::INTEGER AS t FROM range(100)");
  execute(r, "CREATE TABLE build AS SELECT 1 AS k, 3 AS t, 42 AS x");
  assert_answer(r, sql, "SELECT 97::BIGINT");
  assert_again(r, sql, NULL, "ASOF join", "SELECT 96::BIGINT");
  assert_answer(r, sql, "SELECT 97::BIGINT");
  assert_answer(r, "SELECT count(x) FROM (FROM probe LIMIT 20) ASOF LEFT JOIN build USING (k, t)",
                "SELECT 16::BIGINT");
}

static void defect_of_other_queries_is_not_known(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  hf_error error = {0}, other = {0};
  const char *found = "";
  must(witness_look_again(r->w, "SELECT count(*) FROM s", NULL, &found, &rows, &error), &error);
  assert_null(found);
  char sql[300];
  snprintf(sql, sizeof sql, "COPY (SELECT i, i AS j FROM file) TO '%s/i.parquet' (FORMAT parquet)", r->dir);
  execute(r, sql);
  snprintf(sql, sizeof sql, "SELECT count(*) FROM '%s/i.parquet' WHERE i = 3", r->dir); /* no BLOB */
  must(witness_look_again(r->w, sql, NULL, &found, &rows, &error), &error);
  assert_null(found);
  assert_int_not_equal(witness_run(r->w, "SELECT CAST('x' AS INTEGER)", &rows, &other), HF_OK);
  must(witness_look_again(r->w, "SELECT count(*) FROM file", &other, &found, &rows, &error), &error);
  assert_null(found);
  assert_null(rows.release);
  assert_answer(r, "SELECT current_setting('disabled_optimizers')", "SELECT ''");
  hf_error_reset(&other);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
  const struct CMUnitTest tests[] = {
      CASE(defect_of_bloom_filters_hides_a_blob),         CASE(defect_of_bloom_filters_is_of_those_alone),
      CASE(defect_of_between_fails_in_a_filter),          CASE(defect_that_cannot_be_left_out_is_met_again),
      CASE(defect_of_nested_conditions_stops_the_reader), CASE(defect_of_asof_joins_matches_a_null),
      CASE(defect_of_other_queries_is_not_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

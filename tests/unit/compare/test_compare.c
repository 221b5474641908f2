/* SPDX-License-Identifier: Apache-2.0 */
/* Two results of SQL against each other: every type, NULLs, tolerance, order, ties, what the report says. */
#include "compare/compare.h"

#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void stream_of(api_case *c, const char *sql, struct ArrowArrayStream *out) {
  hf_df *df = api_sql(c, sql);
  hf_error error = {0};
  if (hf_df_collect(df, NULL, out, &error) != HF_OK) {
    fail_msg("%s\n%s", sql, error.message);
  }
  hf_df_free(df);
}

static compare_report compare_sql(api_case *c, const char *expected, const char *actual,
                                  const compare_options *options) {
  struct ArrowArrayStream a, b;
  stream_of(c, expected, &a);
  stream_of(c, actual, &b);
  compare_report report;
  hf_error error = {0};
  if (compare_streams(&a, &b, options, &report, &error) != HF_OK) {
    fail_msg("%s\n%s\n%s", expected, actual, error.message);
  }
  return report;
}

static void expect_with(api_case *c, const char *expected, const char *actual, const compare_options *options,
                        compare_verdict verdict) {
  compare_report report = compare_sql(c, expected, actual, options);
  if (report.verdict != verdict) {
    fail_msg("%s\n%s\nverdict %d, expected %d: %s\n%s", expected, actual, (int)report.verdict, (int)verdict,
             report.reason, report.differences);
  }
  assert_int_equal(report.reason == NULL, verdict == COMPARE_SAME);
  compare_report_reset(&report);
}

static void expect(api_case *c, const char *expected, const char *actual, compare_verdict verdict) {
  expect_with(c, expected, actual, &(compare_options){0}, verdict);
}

/* Two values of a type that differ. */
static const struct {
  const char *type, *value, *other;
} samples[] = {
    {"BOOLEAN", "true", "false"},
    {"TINYINT", "-1", "127"},
    {"SMALLINT", "-300", "300"},
    {"INTEGER", "-70000", "70000"},
    {"BIGINT", "-5000000000", "5000000000"},
    {"HUGEINT", "-170141183460469231731687303715884105727", "170141183460469231731687303715884105727"},
    {"UTINYINT", "255", "0"},
    {"USMALLINT", "65535", "0"},
    {"UINTEGER", "4294967295", "0"},
    {"UBIGINT", "18446744073709551615", "0"},
    {"UHUGEINT", "340282366920938463463374607431768211455", "0"},
    {"FLOAT", "1.5", "1.6"},
    {"DOUBLE", "1.5", "1.5001"},
    {"DECIMAL(4,1)", "-123.4", "123.4"},
    {"DECIMAL(9,2)", "-1234567.89", "1234567.89"},
    {"DECIMAL(18,3)", "-123456789012345.678", "123456789012345.678"},
    {"DECIMAL(38,5)", "-123456789012345678901234567890.12345", "123456789012345678901234567890.12346"},
    {"DATE", "'2024-02-29'", "'2024-03-01'"},
    {"TIME", "'10:11:12.123456'", "'10:11:12.123457'"},
    {"TIMETZ", "'10:11:12+02'", "'10:11:12+03'"},
    {"TIMESTAMP", "'2024-02-29 10:11:12.123456'", "'infinity'"},
    {"TIMESTAMP_S", "'2024-02-29 10:11:12'", "'2024-02-29 10:11:13'"},
    {"TIMESTAMP_MS", "'2024-02-29 10:11:12.123'", "'2024-02-29 10:11:12.124'"},
    {"TIMESTAMP_NS", "'2024-02-29 10:11:12.123456789'", "'2024-02-29 10:11:12.123456788'"},
    {"TIMESTAMPTZ", "'2024-02-29 10:11:12+00'", "'2024-02-29 10:11:12+01'"},
    {"INTERVAL", "'1 month'", "'30 days'"},
    {"VARCHAR", "'a longer text than twelve'", "'a longer text than twelvE'"},
    {"VARCHAR", "''", "'x'"},
    {"JSON", "'{\"a\": 1}'", "'{\"a\": 2}'"},
    {"BLOB", "'\\x00\\x01'", "'\\x00'"},
    {"BIT", "'0101'", "'0111'"},
    {"UUID", "'5bc5a9e3-2f0f-4f0e-9d3a-2b1d5b7c0a11'", "'5bc5a9e3-2f0f-4f0e-9d3a-2b1d5b7c0a12'"},
    {"ENUM('a', 'b')", "'a'", "'b'"},
    {"INTEGER[]", "[1, NULL, 3]", "[1, 3]"},
    {"VARCHAR[]", "[]", "[NULL]"},
    {"DOUBLE[]", "[1.0, 2.0]", "[1.0, 2.1]"},
    {"INTEGER[3]", "[1, 2, 3]", "[1, 2, NULL]"},
    {"STRUCT(a INTEGER, b DOUBLE[])", "{'a': 1, 'b': [0.5]}", "{'a': 1, 'b': [0.6]}"},
    {"STRUCT(a INTEGER, b VARCHAR)", "{'a': NULL, 'b': NULL}", "{'a': 0, 'b': NULL}"},
    {"MAP(VARCHAR, INTEGER)", "MAP {'x': 1, 'y': 2}", "MAP {'y': 2, 'x': 1}"},
    {"UNION(a INTEGER, b VARCHAR)", "union_value(a := 1)", "union_value(b := '1')"},
    {"STRUCT(a MAP(INTEGER, STRUCT(x FLOAT)[])[])", "{'a': [MAP {1: [{'x': 1.0}]}]}",
     "{'a': [MAP {1: [{'x': 2.0}]}]}"},
};

enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void types_equal_themselves_and_tell_values_apart(void **state) {
  api_case *c = *state;
  for (size_t i = 0; i < SAMPLES; i++) {
    const char *type = samples[i].type, *value = samples[i].value, *other = samples[i].other;
    char rows[600], turned[600], wrong[600], nulls[600];
    const char *shape =
        "SELECT * FROM (VALUES (0, CAST(%s AS %s)), (1, CAST(%s AS %s)), (2, NULL)) t(i, v) ORDER BY i%s";
    snprintf(rows, sizeof rows, shape, value, type, other, type, "");
    snprintf(turned, sizeof turned, shape, value, type, other, type, " DESC");
    snprintf(wrong, sizeof wrong, shape, value, type, value, type, "");
    snprintf(nulls, sizeof nulls, shape, "NULL", type, other, type, "");
    expect(c, rows, rows, COMPARE_SAME);
    expect(c, rows, turned, COMPARE_SAME);
    expect(c, rows, wrong, COMPARE_OTHER_ROWS);
    expect(c, rows, nulls, COMPARE_OTHER_ROWS);
    expect(c, nulls, rows, COMPARE_OTHER_ROWS);
  }
}

static void types_that_differ_are_told(void **state) {
  api_case *c = *state;
  static const char *const pairs[][3] = {
      {"SELECT 1::INTEGER", "SELECT 1::BIGINT", "column 1 is BIGINT, expected INTEGER"},
      {"SELECT 1::DECIMAL(9,2)", "SELECT 1::DECIMAL(9,3)", "column 1 is DECIMAL(9,3), expected DECIMAL(9,2)"},
      {"SELECT 1, 'a'", "SELECT 1", "1 columns, expected 2"},
      {"SELECT {'a': 1}", "SELECT {'b': 1}", "expected STRUCT"},
      {"SELECT 1, [1]", "SELECT 1, ['a']", "column 2 is"},
      {"SELECT NULL::JSON", "SELECT NULL::VARCHAR", "expected JSON"},
      {"SELECT 1::HUGEINT", "SELECT 1::UHUGEINT", "expected HUGEINT"},
      {"SELECT now()::TIMESTAMP_MS", "SELECT now()::TIMESTAMP", "expected TIMESTAMP_MS"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    compare_report report = compare_sql(c, pairs[i][0], pairs[i][1], &(compare_options){0});
    assert_int_equal(report.verdict, COMPARE_OTHER_TYPES);
    if (strstr(report.reason, pairs[i][2]) == NULL) {
      fail_msg("%s\nnot in: %s", pairs[i][2], report.reason);
    }
    compare_report_reset(&report);
  }
}

static void names_of_columns_do_not_count(void **state) {
  expect(*state, "SELECT 1 AS a, 2 AS a", "SELECT 1 AS x, 2 AS y", COMPARE_SAME);
}

static void counts_of_equal_rows_matter(void **state) {
  api_case *c = *state;
  expect(c, "VALUES (1), (1), (2)", "VALUES (2), (1), (1)", COMPARE_SAME);
  expect(c, "VALUES (1), (1), (2)", "VALUES (1), (2), (2)", COMPARE_OTHER_ROWS);
  expect(c, "VALUES (NULL), (1), (NULL)", "VALUES (NULL), (NULL), (1)", COMPARE_SAME);
  expect(c, "VALUES (NULL), (1), (NULL)", "VALUES (NULL), (1), (1)", COMPARE_OTHER_ROWS);
  expect(c, "FROM range(0)", "FROM range(0)", COMPARE_SAME);
  expect(c, "FROM range(0)", "FROM range(1)", COMPARE_OTHER_ROWS);
  expect(c, "FROM range(10000)", "FROM range(9999, -1, -1)", COMPARE_SAME);
  expect(c, "FROM range(10000)", "SELECT range + (range = 7777)::INT FROM range(10000)", COMPARE_OTHER_ROWS);
}

static void report_counts_and_shows_rows(void **state) {
  compare_report report =
      compare_sql(*state, "SELECT i, 'x' || i AS t FROM range(12) t(i)",
                  "SELECT i, 'x' || i AS t FROM range(3, 13) t(i)", &(compare_options){0});
  assert_int_equal(report.verdict, COMPARE_OTHER_ROWS);
  assert_int_equal(report.expected_rows, 12);
  assert_int_equal(report.actual_rows, 10);
  assert_string_equal(report.reason, "10 rows, expected 12; 3 rows are missing, 1 rows are too many");
  assert_non_null(strstr(report.differences, "missing : (0, 'x0')"));
  assert_non_null(strstr(report.differences, "missing : (2, 'x2')"));
  assert_non_null(strstr(report.differences, "too many: (12, 'x12')"));
  compare_report_reset(&report);
}

static void report_spells_values_for_people(void **state) {
  static const char row[] =
      "SELECT NULL AS n, true, -5::TINYINT, 200::UTINYINT, -12345678901234567890::HUGEINT, 1.5::FLOAT, 0.1::DOUBLE, "
      "-0.05::DECIMAL(9,2), 12.00::DECIMAL(38,2), DATE '1969-12-31', DATE '2000-02-29', "
      "TIMESTAMP '1970-01-02 03:04:05', 'it', [1, 2], {'a': 1, 'b': NULL}, MAP {1: 'x'}, '\\xAA'::BLOB";
  char other[700];
  snprintf(other, sizeof other, "%s LIMIT 0", row);
  compare_report report = compare_sql(*state, row, other, &(compare_options){0});
  assert_string_equal(
      report.differences,
      "missing : (NULL, true, -5, 200, -12345678901234567890, 1.5, 0.10000000000000001, -0.05, "
      "12.00, 1969-12-31, 2000-02-29, 1970-01-02 03:04:05, 'it', [1, 2], {1, NULL}, [{1, 'x'}], "
      "'\\xAA')");
  compare_report_reset(&report);
}

static void many_differing_rows_end_the_search(void **state) {
  compare_report report =
      compare_sql(*state, "FROM range(5000)", "FROM range(5000, 10000)", &(compare_options){0});
  assert_int_equal(report.verdict, COMPARE_OTHER_ROWS);
  assert_non_null(strstr(report.reason, "at least "));
  compare_report_reset(&report);
}

/* --------------------------------------------------------------------- floats */

static void floats_within_the_tolerance_are_equal(void **state) {
  api_case *c = *state;
  static const struct {
    const char *expected, *actual;
    compare_verdict verdict;
  } cases[] = {
      {"SELECT 1e15::DOUBLE", "SELECT 1000000000000500.0::DOUBLE", COMPARE_SAME},
      {"SELECT 1e15::DOUBLE", "SELECT 1000000002000000.0::DOUBLE", COMPARE_OTHER_ROWS},
      {"SELECT 1.0::FLOAT", "SELECT 1.000005::FLOAT", COMPARE_SAME},
      {"SELECT 1.0::FLOAT", "SELECT 1.0001::FLOAT", COMPARE_OTHER_ROWS},
      {"SELECT 1.0::DOUBLE", "SELECT 1.000005::DOUBLE", COMPARE_OTHER_ROWS},
      {"SELECT 'nan'::DOUBLE", "SELECT -('nan'::DOUBLE)", COMPARE_SAME},
      {"SELECT 'nan'::DOUBLE", "SELECT 0.0::DOUBLE", COMPARE_OTHER_ROWS},
      {"SELECT 0.0::DOUBLE", "SELECT -0.0::DOUBLE", COMPARE_SAME},
      {"SELECT 'inf'::DOUBLE", "SELECT 'inf'::DOUBLE", COMPARE_SAME},
      {"SELECT 'inf'::DOUBLE", "SELECT '-inf'::DOUBLE", COMPARE_OTHER_ROWS},
      {"SELECT 'inf'::DOUBLE", "SELECT 1.7e308::DOUBLE", COMPARE_OTHER_ROWS},
      {"SELECT 1.7e308::DOUBLE", "SELECT -1.7e308::DOUBLE", COMPARE_OTHER_ROWS},
      /* what is left of a sum that cancels counts by the size of the column's numbers */
      {"VALUES (1e6::DOUBLE), (0.0)", "VALUES (1e6::DOUBLE), (1e-7)", COMPARE_SAME},
      {"VALUES (1.0::DOUBLE), (0.0)", "VALUES (1.0::DOUBLE), (1e-7)", COMPARE_OTHER_ROWS},
      {"SELECT [1.0::DOUBLE, NULL]", "SELECT [1.0000000001::DOUBLE, NULL]", COMPARE_SAME},
      {"SELECT {'a': MAP {1: 2.0::DOUBLE}}", "SELECT {'a': MAP {1: 2.0000000001::DOUBLE}}", COMPARE_SAME},
      {"SELECT [1.0::DOUBLE, NULL]", "SELECT [1.0::DOUBLE]", COMPARE_OTHER_ROWS},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    expect(c, cases[i].expected, cases[i].actual, cases[i].verdict);
  }
}

/* Sums in another order: each value moves within the tolerance, the rows change places. */
static void float_rows_in_another_order_match(void **state) {
  api_case *c = *state;
  static const char rows[] =
      "SELECT i %% 3 AS k, sin(i) * (1 + %s) AS x, cos(i) AS y FROM range(3000) t(i) ORDER BY %s";
  char expected[200], moved[200], far[200];
  snprintf(expected, sizeof expected, rows, "0", "i");
  snprintf(moved, sizeof moved, rows, "(i % 7 - 3) * 1e-11", "hash(i)");
  snprintf(far, sizeof far, rows, "(i = 1234)::INT * 1e-6", "hash(i)");
  expect(c, expected, moved, COMPARE_SAME);
  compare_report report = compare_sql(c, expected, far, &(compare_options){0});
  assert_int_equal(report.verdict, COMPARE_OTHER_ROWS);
  assert_string_equal(report.reason, "1 rows are missing, 1 rows are too many");
  compare_report_reset(&report);
}

/* Sorted by the first float the two sides pair otherwise than by the second. */
static void float_rows_with_near_first_floats_match_by_the_others(void **state) {
  expect(*state, "VALUES (1.0::DOUBLE, 5.0::DOUBLE), (1.0000000001, 2.0)",
         "VALUES (1.0000000001::DOUBLE, 5.0::DOUBLE), (1.0, 2.0)", COMPARE_SAME);
  expect(*state, "VALUES (1.0::DOUBLE, 5.0::DOUBLE), (1.0, 2.0)",
         "VALUES (1.0::DOUBLE, 5.0::DOUBLE), (1.0, 5.0)", COMPARE_OTHER_ROWS);
}

/* ---------------------------------------------------------------------- order */

static void order_counts_when_asked(void **state) {
  api_case *c = *state;
  compare_options ordered = {.ordered = true};
  expect_with(c, "VALUES (1), (2), (3)", "VALUES (1), (2), (3)", &ordered, COMPARE_SAME);
  expect_with(c, "VALUES (1), (2), (3)", "VALUES (1), (3), (4)", &ordered, COMPARE_OTHER_ROWS);
  compare_report report = compare_sql(c, "VALUES (1), (2), (3)", "VALUES (1), (3), (2)", &ordered);
  assert_int_equal(report.verdict, COMPARE_OTHER_ORDER);
  assert_string_equal(report.reason, "the rows are the same, their order differs from row 2 on");
  assert_string_equal(report.differences, "expected: (2)\nactual  : (3)");
  compare_report_reset(&report);
}

static void same_order_is_told_without_asking(void **state) {
  compare_report report = compare_sql(*state, "VALUES (1), (2)", "VALUES (2), (1)", &(compare_options){0});
  assert_int_equal(report.verdict, COMPARE_SAME);
  assert_false(report.same_order);
  compare_report_reset(&report);
  report = compare_sql(*state, "VALUES (1), (2)", "VALUES (1), (2)", &(compare_options){0});
  assert_true(report.same_order);
  compare_report_reset(&report);
}

static void rows_that_tie_may_change_places(void **state) {
  api_case *c = *state;
  size_t keys[] = {1, 0};
  compare_options one = {.order_columns = keys, .n_order_columns = 1};
  compare_options two = {.order_columns = keys, .n_order_columns = 2};
  static const char rows[] = "VALUES ('a', 1), ('b', 1), ('c', 2)";
  static const char tied[] = "VALUES ('b', 1), ('a', 1), ('c', 2)";
  static const char turned[] = "VALUES ('c', 2), ('b', 1), ('a', 1)";
  expect_with(c, rows, tied, &one, COMPARE_SAME);
  expect_with(c, rows, turned, &one, COMPARE_OTHER_ORDER);
  expect_with(c, rows, tied, &two, COMPARE_OTHER_ORDER);
  expect_with(c, "VALUES ('a', 1.0::DOUBLE), ('b', 2.0)", "VALUES ('a', 1.0000000001::DOUBLE), ('b', 2.0)",
              &one, COMPARE_SAME);
}

static void ties_at_a_limit_may_be_other_rows(void **state) {
  api_case *c = *state;
  size_t keys[] = {1};
  compare_options plain = {.order_columns = keys, .n_order_columns = 1};
  compare_options limited = {.order_columns = keys, .n_order_columns = 1, .limited = true};
  static const char rows[] = "VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 3)";
  static const char last[] = "VALUES ('a', 1), ('b', 2), ('e', 3), ('c', 3)";
  static const char first[] = "VALUES ('x', 1), ('b', 2), ('c', 3), ('d', 3)";
  static const char middle[] = "VALUES ('a', 1), ('x', 2), ('c', 3), ('d', 3)";
  static const char key[] = "VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4)";
  expect_with(c, rows, last, &plain, COMPARE_OTHER_ROWS);
  compare_report report = compare_sql(c, rows, last, &limited);
  assert_int_equal(report.verdict, COMPARE_SAME);
  assert_int_equal(report.tied_rows, 3); /* 'c', 'd' and, at the other end, 'a' */
  compare_report_reset(&report);
  expect_with(c, rows, first, &limited, COMPARE_SAME); /* behind an OFFSET */
  expect_with(c, rows, middle, &limited, COMPARE_OTHER_ROWS);
  expect_with(c, rows, key, &limited, COMPARE_OTHER_ROWS);
  report = compare_sql(c, rows, rows, &limited);
  assert_int_equal(report.tied_rows, 0);
  compare_report_reset(&report);
}

static void order_column_that_is_not_there_is_refused(void **state) {
  struct ArrowArrayStream a, b;
  stream_of(*state, "SELECT 1", &a);
  stream_of(*state, "SELECT 1", &b);
  size_t keys[] = {1};
  compare_options options = {.order_columns = keys, .n_order_columns = 1};
  compare_report report;
  hf_error error = {0};
  assert_int_equal(compare_streams(&a, &b, &options, &report, &error), HF_E_INVALID_ARGUMENT);
  hf_error_reset(&error);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(types_equal_themselves_and_tell_values_apart),
      CASE(types_that_differ_are_told),
      CASE(names_of_columns_do_not_count),
      CASE(counts_of_equal_rows_matter),
      CASE(report_counts_and_shows_rows),
      CASE(report_spells_values_for_people),
      CASE(many_differing_rows_end_the_search),
      CASE(floats_within_the_tolerance_are_equal),
      CASE(float_rows_in_another_order_match),
      CASE(float_rows_with_near_first_floats_match_by_the_others),
      CASE(order_counts_when_asked),
      CASE(same_order_is_told_without_asking),
      CASE(rows_that_tie_may_change_places),
      CASE(ties_at_a_limit_may_be_other_rows),
      CASE(order_column_that_is_not_there_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

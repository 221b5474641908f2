/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of every type come back as they were: typed, exact, at their extremes and nested. */
#include "support/oracle.h"
#include "support/rewrite.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static oracle *the_oracle;

static int open_oracle(void **state) {
  (void)state;
  the_oracle = oracle_open();
  return 0;
}

static int close_oracle(void **state) {
  (void)state;
  oracle_close(the_oracle);
  return 0;
}

/* The planner folds the expression: what is written is a constant. */
static void expect_same(const char *expression, const char *fragment) {
  char sql[600];
  rewrite written;
  oracle_rows expected, rows;
  snprintf(sql, sizeof sql, "SELECT %s FROM range(2)", expression);
  rewrite_query(the_oracle, sql, NULL, NULL, &written);
  if (written.outcome != REWRITE_DONE) {
    fail_msg("%s: not written: %s", expression, written.why);
  }
  if (strstr(written.sql, fragment) == NULL) {
    fail_msg("%s: no %s in %s", expression, fragment, written.sql);
  }
  char *error = oracle_query(the_oracle, sql, 10, &expected);
  if (error != NULL) {
    fail_msg("%s: %s", expression, error);
  }
  error = oracle_query(the_oracle, written.sql, 10, &rows);
  if (error != NULL) {
    fail_msg("%s: %s\n%s", expression, error, written.sql);
  }
  if (oracle_compare(&expected, &rows) != ORACLE_SAME) {
    fail_msg("%s: %s\n%s", expression, oracle_difference(&expected, &rows), written.sql);
  }
  oracle_rows_free(&expected);
  oracle_rows_free(&rows);
  rewrite_free(&written);
}

typedef struct constant {
  const char *expression, *fragment;
} constant;

static void expect_all(const constant *list, size_t n) {
  for (size_t i = 0; i < n; i++) {
    expect_same(list[i].expression, list[i].fragment);
  }
}

#define EXPECT_ALL(list) expect_all((list), sizeof(list) / sizeof((list)[0]))

static void numbers_come_back_exact(void **state) {
  (void)state;
  static const constant list[] = {
      {"(-128)::TINYINT", "CAST('-128' AS TINYINT)"},
      {"255::UTINYINT", "'255'"},
      {"(-32768)::SMALLINT", ""},
      {"65535::USMALLINT", ""},
      {"(-2147483648)::INTEGER", ""},
      {"4294967295::UINTEGER", ""},
      {"(-9223372036854775808)::BIGINT", "'-9223372036854775808'"},
      {"18446744073709551615::UBIGINT", "'18446744073709551615'"},
      {"170141183460469231731687303715884105727::HUGEINT", "'170141183460469231731687303715884105727'"},
      {"(-170141183460469231731687303715884105728)::HUGEINT", "'-170141183460469231731687303715884105728'"},
      {"340282366920938463463374607431768211455::UHUGEINT", "'340282366920938463463374607431768211455'"},
      {"18446744073709551616::HUGEINT", ""},
      {"0.1::FLOAT", ""},
      {"0.1::DOUBLE", "'0.1'"},
      {"1e308::DOUBLE", ""},
      {"5e-324::DOUBLE", ""},
      {"'-0.0'::DOUBLE", "'-0'"},
      {"'nan'::DOUBLE", "'nan'"},
      {"'inf'::FLOAT", "'inf'"},
      {"'-inf'::DOUBLE", "'-inf'"},
      {"12.34::DECIMAL(4,2)", "'12.34'"},
      {"-0.05::DECIMAL(4,2)", "'-0.05'"},
      {"0::DECIMAL(4,2)", "'0.00'"},
      {"99999999999999999999999999999999999999::DECIMAL(38,0)", ""},
      {"'-0.99999999999999999999999999999999999999'::DECIMAL(38,38)", ""},
      {"true", "true"},
  };
  EXPECT_ALL(list);
}

static void times_come_back_exact(void **state) {
  (void)state;
  static const constant list[] = {
      {"DATE '2024-02-29'", "'2024-02-29'"},
      {"DATE '0001-01-01'", ""},
      {"DATE '0044-03-15 (BC)'", "(BC)"},
      {"DATE '5877642-06-25 (BC)'", ""},
      {"DATE '5881580-07-10'", ""},
      {"DATE 'infinity'", "'infinity'"},
      {"DATE '-infinity'", "'-infinity'"},
      {"TIME '23:59:59.999999'", ""},
      {"TIME '24:00:00'", ""},
      {"'00:00:00.000000001'::TIME_NS", ""},
      {"'12:00:01.5-03:30'::TIMETZ", "-03:30:00"},
      {"'00:00:00+15:59:59'::TIMETZ", "+15:59:59"},
      {"'24:00:00-15:59:59'::TIMETZ", ""},
      {"TIMESTAMP '1969-12-31 23:59:59.999999'", ""},
      {"TIMESTAMP '294247-01-10 04:00:54.775806'", "make_timestamp("},
      {"TIMESTAMP '290309-12-22 (BC) 00:00:00'", "make_timestamp("},
      {"TIMESTAMP_S '0044-03-15 (BC) 01:02:03'", "make_timestamp("},
      {"TIMESTAMP_MS '12345-03-15 01:02:03.004'", "make_timestamp("},
      {"TIMESTAMP 'infinity'", ""},
      {"TIMESTAMP '-infinity'", ""},
      {"'1969-12-31 23:59:59'::TIMESTAMP_S", ""},
      {"'1969-12-31 23:59:59.999'::TIMESTAMP_MS", ""},
      {"'1969-12-31 23:59:59.999999999'::TIMESTAMP_NS", ".999999999"},
      {"'2262-04-11 23:47:16.854775806'::TIMESTAMP_NS", ""},
      {"'infinity'::TIMESTAMP_NS", ""},
      {"TIMESTAMPTZ '2024-01-01 00:00:00+05'", "+00'"},
      {"TIMESTAMPTZ '294247-01-10 04:00:54.775806+00'", "make_timestamptz("},
      {"TIMESTAMPTZ 'infinity'", ""},
      {"INTERVAL '1 month 2 days 3.000004 seconds'", "'1 months 2 days 3000004 microseconds'"},
      {"INTERVAL '-1 month 2 days -3 seconds'", ""},
      {"INTERVAL '2147483647 months 2147483647 days'", ""},
  };
  EXPECT_ALL(list);
}

static void texts_come_back_exact(void **state) {
  (void)state;
  static const constant list[] = {
      {"''", "CAST('' AS VARCHAR)"},
      {"'it''s'", "'it''s'"},
      {"'a' || chr(0) || 'b' || chr(0)", " || chr(0) || "},
      {"'{\"a\": 1}'::JSON", "AS JSON)"},
      {"'\\x00\\xFF''q'::BLOB", "AS BLOB)"},
      {"''::BLOB", ""},
      {"'550e8400-e29b-41d4-a716-446655440000'::UUID", "'550e8400-e29b-41d4-a716-446655440000'"},
      {"'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID", ""},
      {"'00000000-0000-0000-0000-000000000000'::UUID", ""},
      {"'x'::ENUM('', 'x', 'it''s')", "ENUM('', 'x', 'it''s')"},
      {"''::ENUM('', 'x')", ""},
  };
  EXPECT_ALL(list);
}

static void nested_values_come_back_exact(void **state) {
  (void)state;
  static const constant list[] = {
      {"[1, NULL, 3]", "AS INTEGER[])"},
      {"[]", ""},
      {"[[1], [], NULL]", ""},
      {"array_value(1, 2, NULL)", "AS INTEGER[3])"},
      {"{'a': 1, 'it''s \"q\"': [NULL, 'x']}", ""},
      {"{'a': NULL}", ""},
      {"row(1, 'a', NULL::INTEGER)", "row("},
      {"MAP {'a': 1, 'b': NULL}", "map(["},
      {"MAP {}", "map(["},
      {"union_value(num := 3)::UNION(num INTEGER, str VARCHAR)", "union_value(\"num\" := "},
      {"union_value(str := NULL::VARCHAR)::UNION(num INTEGER, str VARCHAR)", ""},
      {"[{'d': DATE '2024-01-01', 'n': 1.5::DECIMAL(9,4)}]", ""},
  };
  EXPECT_ALL(list);
}

static void nulls_keep_their_types(void **state) {
  (void)state;
  static const constant list[] = {
      {"NULL", "CAST(NULL AS INTEGER)"},
      {"NULL::DECIMAL(9,2)", "CAST(NULL AS DECIMAL(9,2))"},
      {"NULL::STRUCT(a INTEGER)[]", ""},
      {"NULL::TIMETZ", ""},
      {"NULL::BIT", ""},
      {"NULL::ENUM('a', 'b')", ""},
      {"NULL::JSON", "AS JSON)"},
  };
  EXPECT_ALL(list);
}

static void decimal_wider_than_its_type_is_refused(void **state) {
  (void)state;
  rewrite written;
  rewrite_query(the_oracle, "SELECT round(9999::DECIMAL(4,0), -1)", NULL, NULL, &written);
  assert_int_equal(written.outcome, REWRITE_REFUSED);
  assert_non_null(strstr(written.why, "CONSTANT"));
  rewrite_free(&written);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_back_exact), cmocka_unit_test(times_come_back_exact),
      cmocka_unit_test(texts_come_back_exact),   cmocka_unit_test(nested_values_come_back_exact),
      cmocka_unit_test(nulls_keep_their_types),  cmocka_unit_test(decimal_wider_than_its_type_is_refused),
  };
  return cmocka_run_group_tests(tests, open_oracle, close_oracle);
}

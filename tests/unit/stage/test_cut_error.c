/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of tasks in the words of the query. Whole queries: tests/e2e/test_cases.c. */
#include "stage/cut.h"

#include "base/error.h"
#include "sql/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const plan_cast casts[] = {
    {"c0", "price"}, {"c1", "a"}, {"c1", "b"}, {"c2", NULL}, {"c10", "odd name"}};
static const cut_stage stage = {.n_casts = sizeof casts / sizeof casts[0], .casts = casts};

static void expect(const char *message, const char *cleaned) {
  hf_error error = {0};
  error_set(&error, HF_E_CAST, "%s", message);
  error_hint(&error, "a hint");
  error_cause(&error, message);
  error.job = 7;
  error.task = 3;
  cut_clean_error(&stage, &error);
  assert_string_equal(error.message, cleaned);
  assert_string_equal(error.cause, cleaned);
  assert_string_equal(error.hint, "a hint");
  assert_int_equal(error.code, HF_E_CAST);
  assert_int_equal(error.job, 7);
  assert_int_equal(error.task, 3);
  hf_error_reset(&error);
}

static void error_of_a_cast_names_the_column_of_the_query(void **state) {
  (void)state;
  expect("no number: 'x' when casting from source column c0",
         "no number: 'x' when casting from source column price");
  expect("no number: 'x' when casting from source column c10, line 1",
         "no number: 'x' when casting from source column odd name, line 1");
}

static void error_of_a_cast_names_no_column_that_is_not_certain(void **state) {
  (void)state;
  expect("no number: 'x' when casting from source column c1", "no number: 'x'"); /* a or b */
  expect("no number: 'x' when casting from source column c2", "no number: 'x'"); /* has no name */
  expect("no number: 'x' when casting from source column c3", "no number: 'x'"); /* no such cast */
}

static void error_of_something_else_stays(void **state) {
  (void)state;
  expect("overflow in multiplication of INT64 (c0 * 2)", "overflow in multiplication of INT64 (c0 * 2)");
  expect("no number: 'x' when casting from source column city",
         "no number: 'x' when casting from source column city");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(error_of_a_cast_names_the_column_of_the_query),
      cmocka_unit_test(error_of_a_cast_names_no_column_that_is_not_certain),
      cmocka_unit_test(error_of_something_else_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

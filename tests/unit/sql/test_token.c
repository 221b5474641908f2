/* SPDX-License-Identifier: Apache-2.0 */
/* Divisions found among tokens; tokens themselves are tested with statements. */
#include "sql/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void token_division_becomes_one_of_whole_numbers(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"SELECT a/b", "SELECT a//b"},
      {"SELECT 7 / -2 / 3", "SELECT 7 // -2 // 3"},
      {"SELECT a // b", "SELECT a // b"},
      {"SELECT a /* c / d *// b -- e / f", "SELECT a /* c / d */// b -- e / f"},
      {"SELECT '/' || \"a/b\" || $$/$$ / 1", "SELECT '/' || \"a/b\" || $$/$$ // 1"},
      {"/", "//"},
      {"", ""},
  };
  arena *a = arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *out = NULL;
    assert_int_equal(token_divide_whole(cases[i][0], a, &out, NULL), HF_OK);
    assert_string_equal(out, cases[i][1]);
  }
  arena_free(a);
}

static void token_division_in_open_quotes_is_an_error(void **state) {
  (void)state;
  arena *a = arena_new();
  const char *out = NULL;
  assert_int_equal(token_divide_whole("SELECT 1 / 'a", a, &out, NULL), HF_E_SYNTAX);
  assert_null(out);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_division_becomes_one_of_whole_numbers),
      cmocka_unit_test(token_division_in_open_quotes_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

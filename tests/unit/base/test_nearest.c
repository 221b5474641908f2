/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions: a small slip finds its name, an unrelated word finds none. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *find(const char *wanted) {
  static const char *const names[] = {"trips", "trip_costs", "airports", "a", "Straße", "tripy_z"};
  nearest near = nearest_to(wanted);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    nearest_offer(&near, names[i]);
  }
  return near.best;
}

static void name_with_a_slip_finds_the_nearest(void **state) {
  static const char *const cases[][2] = {
      {"trpis", "trips"},
      {"TRIPS", "trips"},
      {"trip", "trips"},
      {"airport", "airports"},
      {"b", "a"},
      {"", "a"},
      {"Strase", "Straße"},
      {"tripcosts", "trip_costs"},
      {"airpo", "airports"},
      {"tripz", "trips"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_non_null(find(cases[i][0]));
    assert_string_equal(find(cases[i][0]), cases[i][1]);
  }
}

static void name_unlike_any_finds_none(void **state) {
  (void)state;
  assert_null(find("customers"));
  assert_null(find("xyz"));
  char long_name[300];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  assert_null(find(long_name));
}

static void name_itself_is_no_suggestion(void **state) {
  nearest near = nearest_to("trips");
  (void)state;
  nearest_offer(&near, "trips");
  assert_null(near.best);
  nearest_offer(&near, "TRIPS");
  assert_string_equal(near.best, "TRIPS");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(name_with_a_slip_finds_the_nearest),
      cmocka_unit_test(name_unlike_any_finds_none),
      cmocka_unit_test(name_itself_is_no_suggestion),
  };
  return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}

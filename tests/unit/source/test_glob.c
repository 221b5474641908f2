/* SPDX-License-Identifier: Apache-2.0 */
/* Matching one part of a path, and spelling a name so that it matches only itself. */
#include "source/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void pattern_matches_as_duckdb_does(void **state) {
  static const struct {
    const char *pattern, *name;
    bool matches;
  } cases[] = {
      {"", "", true},
      {"a", "a", true},
      {"a", "b", false},
      {"*", "", true},
      {"*", "abc", true},
      {"a*c", "abbbc", true},
      {"a*c", "ab", false},
      {"*b*", "abc", true},
      {"?", "a", true},
      {"?", "", false},
      {"??", "a", false},
      {"a**b", "ab", true},
      {"[abc]", "b", true},
      {"[abc]", "d", false},
      {"[a-c]", "b", true},
      {"[a-c]", "d", false},
      {"[!a-c]", "d", true},
      {"[!a]", "a", false},
      {"[]]", "]", true},
      {"[]a]", "a", true},
      {"[a", "a", false},
      {"[", "[", false},
      {"[[]", "[", true},
      {"x[*]", "x*", true},
      {"x[?]y", "x?y", true},
      {"x[*]", "xy", false},
      {"*.csv", "a.csv", true},
      {"*.csv", "a.csv.gz", false},
      {"a*b*c*d", "axbxcxd", true},
      {"a*b*c*d", "axbxcx", false},
      {"[a-]", "-", true},
      {"größe*", "größe.csv", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (glob_matches(cases[i].pattern, cases[i].name) != cases[i].matches) {
      fail_msg("%s on %s", cases[i].pattern, cases[i].name);
    }
  }
}

static void pattern_of_many_stars_ends_soon(void **state) {
  (void)state;
  char name[201], pattern[201];
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (size_t i = 0; i + 2 < sizeof pattern; i += 2) {
    memcpy(pattern + i, "*a", 3);
  }
  memcpy(pattern + strlen(pattern) - 1, "b", 2);
  assert_false(glob_matches(pattern, name));
}

static void name_escaped_matches_only_itself(void **state) {
  (void)state;
  arena *a = arena_new();
  static const char *const names[] = {"plain.csv", "a*b", "a?b[1]", "[x]", "*"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *pattern = glob_escape(names[i], a);
    assert_true(glob_matches(pattern, names[i]));
    assert_false(glob_matches(pattern, "axb"));
  }
  assert_string_equal(glob_fixed_part("/a/b*/c", a), "/a/");
  assert_string_equal(glob_fixed_part("a/*", a), "a/");
  assert_string_equal(glob_fixed_part("*", a), ".");
  assert_string_equal(glob_fixed_part("/*", a), "/");
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pattern_matches_as_duckdb_does),
      cmocka_unit_test(pattern_of_many_stars_ends_soon),
      cmocka_unit_test(name_escaped_matches_only_itself),
  };
  return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs. */
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void uuid_of_other_text_is_refused(void **state) {
  (void)state;
  uuid made = uuid_new(), parsed;
  assert_true(uuid_parse(made.text, &parsed));
  assert_true(uuid_equal(&made, &parsed));
  static const char *const wrong[] = {"",
                                      "123",
                                      "00000000-0000-0000-0000-00000000000g",
                                      "../../../../../../../etc/passwd-0000000",
                                      "00000000x0000-0000-0000-000000000000",
                                      "00000000-0000-0000-0000-0000000000000"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_false(uuid_parse(wrong[i], &parsed));
  }
  assert_false(uuid_parse(NULL, &parsed));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(uuid_of_other_text_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

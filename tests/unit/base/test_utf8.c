/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: how much of a text is right, at and around the runs of eight. Which sequences are right is test_validate's. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void text_that_is_right_counts_whole(void **state) {
  static const char *const right[] = {"", "a", "seven b", "exactly8", "ünï naïve 😀 text", "12345678é"};
  (void)state;
  for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
    assert_int_equal(utf8_right_length(right[i], strlen(right[i])), strlen(right[i]));
    assert_true(utf8_is_right(right[i]));
  }
}

static void text_with_a_wrong_byte_counts_up_to_it(void **state) {
  (void)state;
  for (size_t at = 0; at < 40; at++) {
    char text[41];
    memset(text, 'x', 40);
    text[40] = '\0';
    text[at] = (char)0xff;
    assert_int_equal(utf8_right_length(text, 40), at);
    text[at] = (char)0xc3; /* its second byte is no continuation, or is missing */
    assert_int_equal(utf8_right_length(text, 40), at);
    assert_false(utf8_is_right(text));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_that_is_right_counts_whole),
      cmocka_unit_test(text_with_a_wrong_byte_counts_up_to_it),
  };
  return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}

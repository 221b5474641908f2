/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps, against a loop over single bits. */
#include "arrow/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 64 };

static void fill_random(uint8_t *bits, unsigned seed) {
  uint32_t state = seed * 747796405u + 1;
  for (size_t i = 0; i < BYTES; i++) {
    state = state * 1664525u + 1013904223u;
    bits[i] = (uint8_t)(state >> 24);
  }
}

static void expect_copy(const uint8_t *from, size_t at, size_t from_at, size_t count) {
  uint8_t to[BYTES];
  memset(to, 0xa5, sizeof to);
  bits_copy(to, at, from, from_at, count);
  for (size_t i = 0; i < at; i++) {
    assert_int_equal(bits_get(to, i), (0xa5 >> (i & 7)) & 1);
  }
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(bits_get(to, at + i), bits_get(from, from_at + i));
  }
  for (size_t i = at + count; count > 0 && i % 8 != 0; i++) {
    assert_int_equal(bits_get(to, i), 0);
  }
}

static void bits_copy_at_any_offset_is_exact(void **state) {
  (void)state;
  uint8_t from[BYTES];
  fill_random(from, 3);
  for (size_t at = 0; at < 20; at++) {
    for (size_t from_at = 0; from_at < 20; from_at++) {
      for (size_t count = 0; count < 150; count += 7) {
        expect_copy(from, at, from_at, count);
      }
    }
  }
}

static void bits_fill_at_any_offset_is_exact(void **state) {
  (void)state;
  for (size_t at = 0; at < 20; at++) {
    for (size_t count = 0; count < 100; count++) {
      uint8_t to[BYTES];
      memset(to, 0xa5, sizeof to);
      bits_fill(to, at, count, (count & 1) != 0);
      for (size_t i = 0; i < at; i++) {
        assert_int_equal(bits_get(to, i), (0xa5 >> (i & 7)) & 1);
      }
      for (size_t i = 0; i < count; i++) {
        assert_int_equal(bits_get(to, at + i), count & 1);
      }
    }
  }
}

static void bits_count_of_any_range_is_exact(void **state) {
  (void)state;
  uint8_t bits[BYTES];
  fill_random(bits, 9);
  for (size_t at = 0; at < 70; at++) {
    size_t expected = 0;
    for (size_t count = 0; at + count < (size_t)BYTES * 8; count++) {
      assert_int_equal(bits_count(bits, at, count), expected);
      expected += bits_get(bits, at + count);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits_copy_at_any_offset_is_exact),
      cmocka_unit_test(bits_fill_at_any_offset_is_exact),
      cmocka_unit_test(bits_count_of_any_range_is_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

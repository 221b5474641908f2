/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void note(void *context) {
  char **at = context;
  *(*at)++ = '!';
}

static void arena_freed_runs_its_callbacks(void **state) {
  (void)state;
  char marks[4] = "";
  char *at = marks;
  arena *a = arena_new();
  assert_int_equal(arena_on_free(a, note, &at), HF_OK);
  assert_int_equal(arena_on_free(a, note, &at), HF_OK);
  arena_free(a);
  assert_string_equal(marks, "!!");
}

static void arena_of_many_sizes_gives_aligned_zeroes(void **state) {
  (void)state;
  arena *a = arena_new();
  for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
    unsigned char *block = arena_alloc(a, bytes);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    assert_int_equal(block[0] | block[bytes - 1], 0);
    memset(block, 0xff, bytes);
  }
  assert_null(arena_array(a, SIZE_MAX / 2, 3));
  assert_null(arena_alloc(a, SIZE_MAX - 3));
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arena_freed_runs_its_callbacks),
      cmocka_unit_test(arena_of_many_sizes_gives_aligned_zeroes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

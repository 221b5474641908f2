/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers by partition: each once, in order, in the partition that it was given. */
#include "arrow/row_sort.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void sort_is_right(row_sort *s, const uint32_t *partitions, size_t rows) {
  assert_int_equal(row_sort_by(s, partitions, rows, NULL), HF_OK);
  size_t at = 0;
  for (uint32_t p = 0; p < s->partitions; p++) {
    assert_int_equal(row_sort_first(s, p), at);
    for (size_t i = 0; i < row_sort_count(s, p); i++, at++) {
      assert_true(s->numbers[at] < rows);
      assert_int_equal(partitions[s->numbers[at]], p);
      assert_true(i == 0 || s->numbers[at - 1] < s->numbers[at]); /* so that each is there once */
    }
  }
  assert_int_equal(at, rows);
}

static void rows_of_any_partitions_are_sorted(void **state) {
  (void)state;
  enum { MOST = 5000 };
  static const uint32_t counts[] = {1, 2, 3, 64, 65536};
  static const size_t sizes[] = {0, 1, 2, 2048, MOST, 7}; /* also fewer rows than the time before */
  uint32_t partitions[MOST];
  uint32_t random = 1;
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
    row_sort s;
    assert_int_equal(row_sort_init(&s, counts[c], NULL), HF_OK);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
      for (size_t i = 0; i < sizes[k]; i++) {
        random = random * 1664525u + 1013904223u;
        partitions[i] = (random >> 8) % counts[c];
      }
      sort_is_right(&s, partitions, sizes[k]);
    }
    row_sort_reset(&s);
    assert_null(s.ends);
    row_sort_reset(&s);
  }
}

static void rows_of_one_partition_of_many_are_sorted(void **state) {
  (void)state;
  row_sort s;
  uint32_t partitions[300];
  assert_int_equal(row_sort_init(&s, 9, NULL), HF_OK);
  static const uint32_t all_of[] = {0, 4, 8};
  for (size_t k = 0; k < 3; k++) {
    for (size_t i = 0; i < 300; i++) {
      partitions[i] = all_of[k];
    }
    sort_is_right(&s, partitions, 300);
    assert_int_equal(row_sort_count(&s, all_of[k]), 300);
  }
  row_sort_reset(&s);
}

static void partition_out_of_range_is_refused(void **state) {
  (void)state;
  row_sort s;
  hf_error error = {0};
  static const uint32_t partitions[] = {0, 2, 3};
  assert_int_equal(row_sort_init(&s, 3, NULL), HF_OK);
  assert_int_equal(row_sort_by(&s, partitions, 3, &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "3 of 3"));
  hf_error_reset(&error);
  assert_int_equal(row_sort_count(&s, 0), 0);
  sort_is_right(&s, partitions, 2);
  row_sort_reset(&s);
}

static void rows_beyond_32_bits_are_refused(void **state) {
  (void)state;
  row_sort s;
  hf_error error = {0};
  uint32_t none = 0;
  assert_int_equal(row_sort_init(&s, 1, NULL), HF_OK);
  assert_int_equal(row_sort_by(&s, &none, (size_t)UINT32_MAX + 1, &error), HF_E_LIMIT);
  hf_error_reset(&error);
  row_sort_reset(&s);
}

static void memory_that_fails_is_an_error(void **state) {
  (void)state;
  row_sort s;
  hf_error error = {0};
  static const uint32_t partitions[] = {1, 0};
  mem_fail_after(1);
  assert_int_equal(row_sort_init(&s, 2, &error), HF_E_OUT_OF_MEMORY);
  mem_fail_after(0);
  hf_error_reset(&error);
  row_sort_reset(&s);
  assert_int_equal(row_sort_init(&s, 2, NULL), HF_OK);
  mem_fail_after(1);
  assert_int_equal(row_sort_by(&s, partitions, 2, &error), HF_E_OUT_OF_MEMORY);
  mem_fail_after(0);
  hf_error_reset(&error);
  sort_is_right(&s, partitions, 2);
  row_sort_reset(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_any_partitions_are_sorted),
      cmocka_unit_test(rows_of_one_partition_of_many_are_sorted),
      cmocka_unit_test(partition_out_of_range_is_refused),
      cmocka_unit_test(rows_beyond_32_bits_are_refused),
      cmocka_unit_test(memory_that_fails_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of whole numbers turned back, and summaries joined. That keys stand in order: test_sink_coding.c. */
#include "rig.h"

static void integer_of_a_key_is_the_value(void **state) {
  (void)state;
  static const int64_t wide[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN, -1, 0, 1, INT32_MAX, INT64_MAX};
  static const int32_t narrow[] = {INT32_MIN, -2, 0, 7, INT32_MAX};
  static const uint64_t wide_unsigned[] = {0, 1, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
  static const uint32_t narrow_unsigned[] = {0, 1, (uint32_t)INT32_MAX + 1, UINT32_MAX};
  for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
    assert_true((int64_t)range_key_integer(RANGE_INT64, range_key_at(RANGE_INT64, wide, i)) == wide[i]);
  }
  for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
    assert_true((int64_t)range_key_integer(RANGE_INT32, range_key_at(RANGE_INT32, narrow, i)) == narrow[i]);
  }
  for (size_t i = 0; i < sizeof wide_unsigned / sizeof wide_unsigned[0]; i++) {
    range_key key = range_key_at(RANGE_UINT64, wide_unsigned, i);
    assert_true(range_key_integer(RANGE_UINT64, key) == wide_unsigned[i]);
  }
  for (size_t i = 0; i < sizeof narrow_unsigned / sizeof narrow_unsigned[0]; i++) {
    range_key key = range_key_at(RANGE_UINT32, narrow_unsigned, i);
    assert_true(range_key_integer(RANGE_UINT32, key) == narrow_unsigned[i]);
  }
}

static void kinds_have_the_width_of_their_values(void **state) {
  (void)state;
  for (range_kind kind = RANGE_NONE; kind <= RANGE_BYTES; kind++) {
    bool is_integer =
        kind == RANGE_INT32 || kind == RANGE_INT64 || kind == RANGE_UINT32 || kind == RANGE_UINT64;
    bool is_wide = kind == RANGE_INT64 || kind == RANGE_UINT64 || kind == RANGE_DOUBLE;
    bool is_narrow = kind == RANGE_INT32 || kind == RANGE_UINT32 || kind == RANGE_FLOAT;
    assert_int_equal(range_kind_is_integer(kind), is_integer);
    assert_int_equal(range_kind_bytes(kind), is_wide ? 8 : is_narrow ? 4 : 0);
  }
}

/* ----------------------------------------------------------------- summaries */

/* `n` values from `first` on, `step` apart, `times` rows of each; the list is given up where it is too long. */
static range_summary summary_of(int64_t first, int64_t step, uint32_t n, uint64_t times) {
  range_summary s = {.column = 3, .rows = n * times};
  if (n > 0) {
    s.least = range_key_signed(first);
    s.most = range_key_signed(first + step * (n - 1));
  }
  s.n_values = n <= RANGE_VALUES_AT_MOST ? n : 0;
  for (uint32_t i = 0; i < s.n_values; i++) {
    s.values[i] = range_key_signed(first + step * i);
  }
  return s;
}

/* Both ways round. */
static range_summary joined(const range_summary *a, const range_summary *b) {
  range_summary one = *a;
  range_summary other = *b;
  range_summary_add(&one, b);
  range_summary_add(&other, a);
  assert_int_equal(one.rows, other.rows);
  assert_int_equal(one.n_values, other.n_values);
  assert_int_equal(range_key_compare(one.least, other.least), 0);
  assert_int_equal(range_key_compare(one.most, other.most), 0);
  for (uint32_t i = 0; i < one.n_values; i++) {
    assert_int_equal(range_key_compare(one.values[i], other.values[i]), 0);
    assert_true(i == 0 || range_key_compare(one.values[i - 1], one.values[i]) < 0);
  }
  assert_int_equal(one.column, 3);
  return one;
}

static void expect(const range_summary *s, int64_t least, int64_t most, uint64_t rows, uint32_t n_values) {
  assert_int_equal(s->rows, rows);
  assert_int_equal(range_key_compare(s->least, range_key_signed(least)), 0);
  assert_int_equal(range_key_compare(s->most, range_key_signed(most)), 0);
  assert_int_equal(s->n_values, n_values);
}

static void summaries_of_no_rows_change_nothing(void **state) {
  (void)state;
  range_summary none = summary_of(0, 1, 0, 0);
  range_summary some = summary_of(-5, 10, 3, 2);
  range_summary many = summary_of(-5, 10, 100, 2);
  range_summary sum = joined(&none, &none);
  assert_int_equal(sum.rows, 0);
  assert_int_equal(sum.n_values, 0);
  sum = joined(&none, &some);
  expect(&sum, -5, 15, 6, 3);
  sum = joined(&none, &many);
  expect(&sum, -5, 985, 200, 0);
}

static void summaries_list_each_value_once(void **state) {
  (void)state;
  range_summary even = summary_of(-10, 2, 11, 1);
  range_summary third = summary_of(-12, 3, 9, 4);
  range_summary sum = joined(&even, &third);
  expect(&sum, -12, 12, 11 + 36, 11 + 9 - 3); /* −6, 0, 6 are in both */
  sum = joined(&even, &even);
  expect(&sum, -10, 10, 22, 11);
}

static void summaries_of_too_many_values_list_none(void **state) {
  (void)state;
  range_summary low = summary_of(0, 1, RANGE_VALUES_AT_MOST / 2, 1);
  range_summary high = summary_of(RANGE_VALUES_AT_MOST / 2, 1, RANGE_VALUES_AT_MOST / 2, 1);
  range_summary sum = joined(&low, &high);
  expect(&sum, 0, RANGE_VALUES_AT_MOST - 1, RANGE_VALUES_AT_MOST, RANGE_VALUES_AT_MOST);
  range_summary one = summary_of(-1, 1, 1, 1);
  range_summary over = joined(&sum, &one);
  expect(&over, -1, RANGE_VALUES_AT_MOST - 1, RANGE_VALUES_AT_MOST + 1, 0);
  range_summary again = joined(&over, &one); /* once given up, a list does not come back */
  expect(&again, -1, RANGE_VALUES_AT_MOST - 1, RANGE_VALUES_AT_MOST + 2, 0);
  range_summary within = summary_of(5, 1, 3, 1);
  sum = joined(&sum, &within);
  expect(&sum, 0, RANGE_VALUES_AT_MOST - 1, RANGE_VALUES_AT_MOST + 3, RANGE_VALUES_AT_MOST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integer_of_a_key_is_the_value),
      cmocka_unit_test(kinds_have_the_width_of_their_values),
      cmocka_unit_test(summaries_of_no_rows_change_nothing),
      cmocka_unit_test(summaries_list_each_value_once),
      cmocka_unit_test(summaries_of_too_many_values_list_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

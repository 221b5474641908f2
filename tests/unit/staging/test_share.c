/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of what earlier tasks wrote: nothing is left out, nothing is given twice. */
#include "staging/staging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { MOST = 12 };

/* How much of each location all tasks together are given, in parts of `n`. */
static void assert_shares_cover(size_t n_refs, uint32_t n) {
  block_ref refs[MOST] = {0};
  uint64_t given[MOST] = {0};
  arena *a = arena_new();
  for (uint32_t i = 0; i < n_refs; i++) {
    refs[i].task.value = i + 1;
  }
  for (uint32_t t = 0; t < n; t++) {
    size_t n_own = 0;
    block_ref *own = staging_share_refs(refs, n_refs, t, n, a, &n_own);
    assert_non_null(own);
    for (size_t i = 0; i < n_own; i++) {
      bool is_part = own[i].share_of > 0;
      assert_true(!is_part || own[i].share_of == n);
      assert_int_equal(own[i].share_first, is_part ? given[own[i].task.value - 1] : 0);
      given[own[i].task.value - 1] += is_part ? own[i].share_count : n;
    }
  }
  for (size_t i = 0; i < n_refs; i++) {
    assert_int_equal(given[i], n);
  }
  arena_free(a);
}

static void shares_of_any_number_of_tasks_cover_every_location_once(void **state) {
  (void)state;
  for (size_t n_refs = 0; n_refs <= MOST; n_refs++) {
    for (uint32_t n = 1; n <= MOST; n++) {
      assert_shares_cover(n_refs, n);
    }
  }
}

static void shares_of_as_many_tasks_are_the_locations_themselves(void **state) {
  (void)state;
  block_ref refs[3] = {{.task = {1}}, {.task = {2}}, {.task = {3}}};
  arena *a = arena_new();
  for (uint32_t t = 0; t < 3; t++) {
    size_t n_own = 0;
    block_ref *own = staging_share_refs(refs, 3, t, 3, a, &n_own);
    assert_int_equal(n_own, 1);
    assert_int_equal(own[0].task.value, t + 1);
    assert_int_equal(own[0].share_of, 0);
  }
  arena_free(a);
}

static void assert_partitions_cover(uint32_t partitions, uint32_t n) {
  uint32_t next = 0;
  for (uint32_t t = 0; t < n; t++) {
    uint32_t first = 0, count = 0;
    staging_partitions_of(partitions, t, n, &first, &count);
    assert_int_equal(first, next);
    for (uint32_t p = first; p < first + count; p++) {
      assert_int_equal((uint64_t)p * n / partitions, t);
    }
    next = first + count;
  }
  assert_int_equal(next, partitions);
}

static void partitions_of_tasks_are_those_whose_number_scales_to_theirs(void **state) {
  (void)state;
  for (uint32_t partitions = 1; partitions <= MOST; partitions++) {
    for (uint32_t n = 1; n <= MOST; n++) {
      assert_partitions_cover(partitions, n);
    }
  }
}

static void partition_refs_of_no_partition_are_none(void **state) {
  (void)state;
  block_ref refs[2] = {{.task = {1}}, {.task = {2}}};
  arena *a = arena_new();
  size_t n_own = 7;
  assert_non_null(staging_partition_refs(refs, 2, 1, 0, a, &n_own));
  assert_int_equal(n_own, 0);
  block_ref *own = staging_partition_refs(refs, 2, 3, 2, a, &n_own);
  assert_int_equal(n_own, 2);
  assert_int_equal(own[1].task.value, 2);
  assert_int_equal(own[1].partition_first, 3);
  assert_int_equal(own[1].partition_count, 2);
  arena_free(a);
}

/* Every partition once, in order, and every task at least one. */
static uint32_t dealt(const uint64_t *bytes, uint32_t partitions, uint32_t n, uint32_t *out) {
  const staging_dealing dealing = {.bytes = bytes, .partitions = partitions, .task_bytes = 100};
  uint32_t n_tasks = staging_deal(&dealing, n, out);
  assert_in_range(n_tasks, 1, n);
  assert_int_equal(out[0], 0);
  assert_int_equal(out[n_tasks], partitions);
  for (uint32_t t = 0; t < n_tasks; t++) {
    assert_true(out[t] < out[t + 1]);
  }
  return n_tasks;
}

static void partitions_of_few_bytes_are_one_task(void **state) {
  (void)state;
  uint32_t out[4];
  assert_int_equal(dealt((uint64_t[]){0, 0, 0}, 3, 3, out), 1);
  assert_int_equal(dealt((uint64_t[]){60, 70, 60}, 3, 3, out), 1);
  assert_int_equal(dealt((uint64_t[]){60, 70, 75}, 3, 3, out), 2);
  assert_int_equal(dealt((uint64_t[]){1000, 1000, 1000}, 3, 3, out), 3);
}

static void partitions_of_uneven_bytes_are_dealt_by_these(void **state) {
  (void)state;
  uint32_t out[5];
  assert_int_equal(dealt((uint64_t[]){900, 10, 10, 10, 10, 10, 10, 10}, 8, 2, out), 2);
  assert_int_equal(out[1], 1);
  assert_int_equal(dealt((uint64_t[]){10, 10, 10, 10, 10, 10, 10, 900}, 8, 2, out), 2);
  assert_int_equal(out[1], 7);
  assert_int_equal(dealt((uint64_t[]){100, 100, 100, 100, 100, 100, 100, 100}, 8, 4, out), 4);
  assert_memory_equal(out, ((uint32_t[]){0, 2, 4, 6, 8}), sizeof out);
  assert_int_equal(dealt((uint64_t[]){0, 0, 0, 900}, 4, 4, out), 4); /* none is left without */
}

static void partitions_of_any_bytes_are_dealt_once(void **state) {
  (void)state;
  uint64_t bytes[MOST], seed = 7;
  uint32_t out[MOST + 1];
  for (uint32_t partitions = 1; partitions <= MOST; partitions++) {
    for (uint32_t p = 0; p < partitions; p++) {
      seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      bytes[p] = (seed >> 60) < 6 ? 0 : seed >> 54;
    }
    for (uint32_t n = 1; n <= MOST; n++) {
      dealt(bytes, partitions, n, out);
    }
  }
}

int main(void) {
  const struct CMUnitTest cases[] = {
      cmocka_unit_test(shares_of_any_number_of_tasks_cover_every_location_once),
      cmocka_unit_test(shares_of_as_many_tasks_are_the_locations_themselves),
      cmocka_unit_test(partitions_of_tasks_are_those_whose_number_scales_to_theirs),
      cmocka_unit_test(partition_refs_of_no_partition_are_none),
      cmocka_unit_test(partitions_of_few_bytes_are_one_task),
      cmocka_unit_test(partitions_of_uneven_bytes_are_dealt_by_these),
      cmocka_unit_test(partitions_of_any_bytes_are_dealt_once),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

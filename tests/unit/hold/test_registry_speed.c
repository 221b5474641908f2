/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the registry costs: rates are printed; asserted is that 10,000 entries cost an
 * operation little more than 100 do. Processor time, and loose bounds: other processes
 * run beside.
 */
#include "hold/hold.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FEW = 100, MANY = 10000, ROUNDS = 40, ACTIONS = 5000, TIMES_AT_MOST = 50 };

typedef struct fixture {
  declarations *d;
  registry *r;
  registry_actions actions;
  uint64_t next_job;
  uuid *keys;
  size_t n_keys;
} fixture;

static const uuid session = {"11111111-2222-4333-8444-555555555555"};
static const data_type bigint = {.kind = TYPE_BIGINT};
static const column columns[] = {{"a", &bigint}, {"b", &bigint}, {"c", &bigint}};

static void drop_actions(fixture *f) {
  registry_actions_reset(&f->actions);
}

static void fill_once(fixture *f, const uuid *key) {
  job_id job = {f->next_job++};
  entry_location at = {.job = job, .stage = {1}, .task = {1}, .attempt = {1}, .executor = "local"};
  entry_output output = {
      .columns = {3, columns}, .rows = 10, .bytes = 100, .locations = &at, .n_locations = 1, .cost_us = 7};
  assert_int_equal(registry_begin_or_wait(f->r, key, &session, job, job, NULL), BEGIN_CLAIMED);
  registry_claim_stage(f->r, key, job, (stage_id){1});
  assert_int_equal(registry_complete(f->r, key, job, &output, &f->actions), COMPLETE_PROMOTED);
  drop_actions(f);
}

static void set_up(fixture *f, size_t n_keys) {
  *f = (fixture){.d = declarations_new(), .next_job = 1, .n_keys = n_keys};
  f->r = registry_new(f->d);
  f->keys = mem_zalloc(n_keys, sizeof *f->keys);
  assert_int_equal(registry_executor_back(f->r, "local", NULL), HF_OK);
  for (size_t i = 0; i < n_keys; i++) {
    snprintf(f->keys[i].text, sizeof f->keys[i].text, "%08zx-0000-4000-8000-%012zx",
             i * 2654435761u % 0xffffffff, i);
    declaration row = {.key = f->keys[i], .session = session, .columns = {3, columns}};
    assert_int_equal(declarations_add(f->d, &row, NULL), HF_OK);
    fill_once(f, &f->keys[i]);
  }
}

static void tear_down(fixture *f) {
  registry_free(f->r);
  declarations_free(f->d);
  mem_free(f->keys);
}

/* ----------------------------------------------------------- what is timed */

static void time_fill(fixture *f, size_t i) {
  const uuid *key = &f->keys[i * 7919 % f->n_keys];
  registry_invalidate(f->r, key, "test", &f->actions);
  drop_actions(f);
  fill_once(f, key);
}

static void time_lookup(fixture *f, size_t i) {
  entry_view view;
  assert_int_equal(registry_lookup(f->r, &f->keys[i * 7919 % f->n_keys], &view), ENTRY_MATERIALISED);
}

static void time_pinned(fixture *f, size_t i) {
  assert_false(registry_is_pinned(f->r, (job_id){i + 1000000000}, (stage_id){1}));
}

static void time_lease(fixture *f, size_t i) {
  job_id reader = {i + 1};
  assert_int_equal(registry_lease_add(f->r, &f->keys[i * 7919 % f->n_keys], reader, NULL), HF_OK);
  registry_lease_drop(f->r, reader, &f->actions);
}

static bool count_row(void *context, const declaration *row) {
  fixture *f = context;
  entry_view view;
  registry_lookup(f->r, &row->key, &view);
  f->next_job += view.state == ENTRY_MATERIALISED ? 0 : 1;
  return true;
}

/* A part of a listing of all: the cost of a row. */
static void time_listing(fixture *f, size_t i) {
  if (i % f->n_keys == 0) {
    declarations_each(f->d, &session, count_row, f);
  }
}

static uint64_t processor_ns(void) {
  struct timespec used;
  assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* The best of some rounds, in nanoseconds of this thread an action. */
static double best_ns(fixture *f, void (*act)(fixture *f, size_t i), size_t n) {
  double best = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t began = processor_ns();
    for (size_t i = 0; i < n; i++) {
      act(f, i);
    }
    double took = (double)(processor_ns() - began + 1) / (double)n;
    best = round == 0 || took < best ? took : best;
  }
  return best;
}

static void registry_of_many_entries_costs_what_few_do(void **state) {
  (void)state;
  static const struct {
    const char *name;
    void (*act)(fixture *f, size_t i);
  } timed[] = {{"invalidate, begin, complete", time_fill},
               {"lookup", time_lookup},
               {"is_pinned", time_pinned},
               {"lease_add, lease_drop", time_lease},
               {"listing, a row", time_listing}};
  fixture few, many;
  set_up(&few, FEW);
  set_up(&many, MANY);
  for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
    double of_few = best_ns(&few, timed[i].act, ACTIONS), of_many = best_ns(&many, timed[i].act, ACTIONS);
    print_message("%-28s %7.0f ns with %d entries, %7.0f ns with %d: %.0f a second\n", timed[i].name, of_few,
                  FEW, of_many, MANY, 1e9 / of_many);
    assert_true(of_many < TIMES_AT_MOST * (of_few + 50));
  }
  registry_check(few.r);
  tear_down(&few);
  tear_down(&many);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registry_of_many_entries_costs_what_few_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

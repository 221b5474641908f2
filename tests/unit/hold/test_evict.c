/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction: who may go, in which order, how many; and a trace of 1,000 actions on
 * which it loses less time of computing than plain LRU does.
 */
#include "hold/evict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64, PLANS = 50, ACTIONS = 1000 };

static void expect_victims(const evict_entry *entries, size_t n, uint64_t need, const char *text) {
  size_t victims[MOST];
  char got[128] = "";
  size_t count = evict_choose(entries, n, need, 1000, victims);
  for (size_t i = 0; i < count; i++) {
    size_t used = strlen(got);
    snprintf(got + used, sizeof got - used, "%s%zu", i == 0 ? "" : " ", victims[i]);
  }
  assert_string_equal(got, text);
}

static void evict_of_equal_entries_is_lru(void **state) {
  (void)state;
  evict_entry entries[] = {{.bytes = 10, .cost_us = 5, .last_read_us = 30},
                           {.bytes = 10, .cost_us = 5, .last_read_us = 10},
                           {.bytes = 10, .cost_us = 5, .last_read_us = 20}};
  expect_victims(entries, 3, 1, "1");
  expect_victims(entries, 3, 11, "1 2");
  expect_victims(entries, 3, 30, "1 2 0");
}

static void evict_takes_what_is_cheap_a_byte_first(void **state) {
  (void)state;
  evict_entry entries[] = {{.bytes = 10, .cost_us = 1000, .last_read_us = 500},
                           {.bytes = 10, .cost_us = 10, .last_read_us = 500},
                           {.bytes = 1000, .cost_us = 100, .last_read_us = 500}};
  expect_victims(entries, 3, 5, "2"); /* 0.1 us a byte */
  expect_victims(entries, 3, 1005, "2 1");
}

static void evict_spares_what_is_in_use_or_cut(void **state) {
  (void)state;
  evict_entry entries[] = {
      {.bytes = 10, .in_use = true}, {.bytes = 10, .lineage_cut = true}, {.bytes = 10}, {.bytes = 0}};
  expect_victims(entries, 4, 10, "2");
  expect_victims(entries, 4, 11, ""); /* not to be had: nothing is lost for nothing */
}

static void evict_without_need_takes_nothing(void **state) {
  (void)state;
  evict_entry entries[] = {{.bytes = 10}};
  expect_victims(entries, 1, 0, "");
  expect_victims(entries, 0, 5, "");
}

static void evict_gives_back_what_the_rest_makes_room_without(void **state) {
  (void)state;
  evict_entry entries[] = {{.bytes = 4, .cost_us = 1, .last_read_us = 1},
                           {.bytes = 5, .cost_us = 10, .last_read_us = 1},
                           {.bytes = 100, .cost_us = 10000, .last_read_us = 900}};
  expect_victims(entries, 3, 50, "2"); /* the two small ones would not have helped */
}

static void evict_of_a_read_in_the_future_is_one_of_now(void **state) {
  (void)state;
  evict_entry entries[] = {{.bytes = 10, .cost_us = 5, .last_read_us = 5000},
                           {.bytes = 10, .cost_us = 5, .last_read_us = 999}};
  expect_victims(entries, 2, 1, "1");
}

/* ------------------------------------------------------------------- trace */

typedef struct plan {
  uint64_t bytes, cost_us, last_us;
  bool is_held;
} plan;

static uint64_t random_state;
static uint64_t pick(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (random_state >> 11) % below;
}

static size_t choose_lru(const evict_entry *entries, size_t n, uint64_t need, size_t *victims) {
  bool taken[PLANS] = {false};
  uint64_t freed = 0;
  size_t count = 0;
  while (freed < need) {
    size_t oldest = n;
    for (size_t i = 0; i < n; i++) {
      if (!taken[i] && (oldest == n || entries[i].last_read_us < entries[oldest].last_read_us)) {
        oldest = i;
      }
    }
    assert_true(oldest < n);
    taken[oldest] = true;
    freed += entries[oldest].bytes;
    victims[count++] = oldest;
  }
  return count;
}

static uint64_t make_room(plan *plans, uint64_t used, uint64_t wanted, uint64_t cap, uint64_t now,
                          bool is_lru) {
  if (used + wanted <= cap) {
    return used;
  }
  evict_entry entries[PLANS];
  size_t of[PLANS], victims[PLANS], n = 0;
  for (size_t i = 0; i < PLANS; i++) {
    if (plans[i].is_held) {
      of[n] = i;
      entries[n++] = (evict_entry){
          .bytes = plans[i].bytes, .cost_us = plans[i].cost_us, .last_read_us = plans[i].last_us};
    }
  }
  uint64_t need = used + wanted - cap;
  size_t count =
      is_lru ? choose_lru(entries, n, need, victims) : evict_choose(entries, n, need, now, victims);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++) {
    plans[of[victims[i]]].is_held = false;
    used -= entries[victims[i]].bytes;
  }
  return used;
}

/* The time spent on computing what was not held, over a trace where few plans are asked for often. */
static uint64_t run_trace(uint64_t seed, bool is_lru) {
  plan plans[PLANS] = {{0}};
  uint64_t total = 0, used = 0, spent = 0;
  random_state = seed;
  for (size_t i = 0; i < PLANS; i++) {
    plans[i].bytes = 1000 + pick(1000000);
    plans[i].cost_us = 1000 + pick(100) * pick(100) * pick(1000);
    total += plans[i].bytes;
  }
  for (uint64_t now = 1; now <= ACTIONS; now++) {
    plan *p = &plans[pick(1 + pick(PLANS))];
    if (!p->is_held) {
      used = make_room(plans, used, p->bytes, total / 3, now * 1000000, is_lru) + p->bytes;
      p->is_held = true;
      spent += p->cost_us;
    }
    p->last_us = now * 1000000;
  }
  return spent;
}

static void evict_on_a_trace_costs_less_than_lru(void **state) {
  (void)state;
  uint64_t of_ours = 0, of_lru = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    uint64_t ours = run_trace(seed * 2654435761u, false), lru = run_trace(seed * 2654435761u, true);
    assert_true(ours < lru);
    of_ours += ours;
    of_lru += lru;
  }
  print_message("20 traces of %d actions: %.1f s computed again, plain LRU %.1f s\n", ACTIONS,
                (double)of_ours / 1e6, (double)of_lru / 1e6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(evict_of_equal_entries_is_lru),
      cmocka_unit_test(evict_takes_what_is_cheap_a_byte_first),
      cmocka_unit_test(evict_spares_what_is_in_use_or_cut),
      cmocka_unit_test(evict_without_need_takes_nothing),
      cmocka_unit_test(evict_gives_back_what_the_rest_makes_room_without),
      cmocka_unit_test(evict_of_a_read_in_the_future_is_one_of_now),
      cmocka_unit_test(evict_on_a_trace_costs_less_than_lru),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

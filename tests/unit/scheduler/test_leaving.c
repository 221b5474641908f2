/* SPDX-License-Identifier: Apache-2.0 */
/* What eviction saves: a trace of actions over plans of different size, cost and popularity, beside plain LRU. */
#include "hold/evict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

enum { PLANS = 50, ACTIONS = 1000, SEEDS = 20 };
#define CAP_BYTES ((uint64_t)200 << 20)

typedef struct plan {
  uint64_t bytes, cost_us, last_read_us;
  unsigned popularity;
  bool is_held;
} plan;

static uint64_t draw(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* Sizes from 1 to 64 MiB and costs from 10 ms to 10 s, neither telling of the other. */
static void make_plans(plan *plans, uint64_t seed) {
  for (int i = 0; i < PLANS; i++) {
    plans[i] = (plan){.bytes = ((uint64_t)1 << (20 + draw(&seed) % 7)),
                      .cost_us = UINT64_C(10000) << (draw(&seed) % 11),
                      .popularity = 1 + 60 / (1 + (unsigned)(draw(&seed) % PLANS))};
  }
}

static unsigned pick(const plan *plans, uint64_t *seed) {
  unsigned total = 0, at = 0;
  for (int i = 0; i < PLANS; i++) {
    total += plans[i].popularity;
  }
  unsigned left = (unsigned)(draw(seed) % total);
  while (left >= plans[at].popularity) {
    left -= plans[at++].popularity;
  }
  return at;
}

typedef void (*make_room_fn)(plan *plans, uint64_t need_bytes, uint64_t now_us);

static void make_room_weighted(plan *plans, uint64_t need_bytes, uint64_t now_us) {
  evict_entry entries[PLANS] = {0};
  size_t of[PLANS], victims[PLANS], n = 0;
  for (size_t i = 0; i < PLANS; i++) {
    if (plans[i].is_held) {
      of[n] = i;
      entries[n++] = (evict_entry){
          .bytes = plans[i].bytes, .cost_us = plans[i].cost_us, .last_read_us = plans[i].last_read_us};
    }
  }
  size_t n_victims = evict_choose(entries, n, need_bytes, now_us, victims);
  assert_true(n_victims > 0);
  for (size_t i = 0; i < n_victims; i++) {
    plans[of[victims[i]]].is_held = false;
  }
}

static void make_room_lru(plan *plans, uint64_t need_bytes, uint64_t now_us) {
  (void)now_us;
  uint64_t freed = 0;
  while (freed < need_bytes) {
    plan *oldest = NULL;
    for (int i = 0; i < PLANS; i++) {
      bool is_older = plans[i].is_held && (oldest == NULL || plans[i].last_read_us < oldest->last_read_us);
      oldest = is_older ? &plans[i] : oldest;
    }
    assert_non_null(oldest);
    oldest->is_held = false;
    freed += oldest->bytes;
  }
}

/* Time that the actions spend computing what is not held, in µs. */
static uint64_t run_trace(uint64_t seed, make_room_fn make_room) {
  plan plans[PLANS];
  uint64_t now_us = 1000000, spent_us = 0, held_bytes = 0;
  make_plans(plans, seed);
  for (int action = 0; action < ACTIONS; action++) {
    plan *p = &plans[pick(plans, &seed)];
    now_us += 100000 + draw(&seed) % 1000000;
    if (!p->is_held) {
      spent_us += p->cost_us;
      held_bytes = 0;
      for (int i = 0; i < PLANS; i++) {
        held_bytes += plans[i].is_held ? plans[i].bytes : 0;
      }
      if (held_bytes + p->bytes > CAP_BYTES) {
        make_room(plans, held_bytes + p->bytes - CAP_BYTES, now_us);
      }
      p->is_held = true;
    }
    p->last_read_us = now_us;
  }
  return spent_us;
}

static void leaving_by_worth_recomputes_less_than_lru(void **state) {
  (void)state;
  uint64_t weighted_us = 0, lru_us = 0;
  unsigned n_better = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    uint64_t weighted = run_trace(seed * 7919, make_room_weighted);
    uint64_t lru = run_trace(seed * 7919, make_room_lru);
    weighted_us += weighted;
    lru_us += lru;
    n_better += weighted < lru ? 1 : 0;
  }
  print_message("recomputing over %d traces: %.0f s by worth, %.0f s by LRU; better in %u\n", SEEDS,
                (double)weighted_us / 1e6, (double)lru_us / 1e6, n_better);
  assert_true(weighted_us < lru_us);
  assert_true(n_better >= SEEDS - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaving_by_worth_recomputes_less_than_lru),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue. */
#include "base/clock.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void queue_closed_gives_what_is_left_then_nothing(void **state) {
  (void)state;
  event_queue q;
  queue_item first = {0}, second = {0}, late = {0};
  event_queue_init(&q);
  assert_true(event_queue_post(&q, &first));
  assert_true(event_queue_post(&q, &second));
  event_queue_close(&q);
  assert_false(event_queue_post(&q, &late));
  assert_ptr_equal(event_queue_take(&q, 0), &first);
  assert_ptr_equal(event_queue_take(&q, 0), &second);
  assert_null(event_queue_take(&q, 0));
  event_queue_destroy(&q);
}

static void queue_empty_gives_nothing_at_the_deadline(void **state) {
  (void)state;
  event_queue q;
  event_queue_init(&q);
  uint64_t deadline = clock_monotonic_us() + 1000;
  assert_null(event_queue_take(&q, deadline));
  assert_true(clock_monotonic_us() >= deadline);
  event_queue_destroy(&q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queue_closed_gives_what_is_left_then_nothing),
      cmocka_unit_test(queue_empty_gives_nothing_at_the_deadline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Time from the operating system. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t clock_monotonic_us(void) {
  return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_wall_us(void) {
  return read_us(CLOCK_REALTIME);
}

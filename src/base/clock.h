/* SPDX-License-Identifier: Apache-2.0 */
/* Time: a monotonic clock for durations and deadlines, wall time for listings. Thread: any. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds of the monotonic clock. */
uint64_t clock_monotonic_us(void);
/* Microseconds since 1970-01-01 UTC. */
uint64_t clock_wall_us(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bitmaps as Arrow lays them out, least significant bit first: copying, filling
 * and counting ranges of bits. Writing assigns whole bytes from `at` on, so that
 * the bits behind what was written are zero. Internal to src/arrow.
 * Thread: any.
 */
#ifndef HF_ARROW_BITS_H
#define HF_ARROW_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool bits_get(const uint8_t *bits, size_t at) {
  return (bits[at >> 3] >> (at & 7)) & 1;
}

static inline size_t bits_bytes(size_t count) {
  return (count + 7) / 8;
}

/* Counts the set bits of [at, at + count). */
size_t bits_count(const uint8_t *bits, size_t at, size_t count);
/* Appends `count` bits of `from`, starting at `from_at`, behind the first `at` bits of `to`. */
void bits_copy(uint8_t *to, size_t at, const uint8_t *from, size_t from_at, size_t count);
/* Appends `count` bits of one value behind the first `at` bits of `to`. */
void bits_fill(uint8_t *to, size_t at, size_t count, bool value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps: ranges are handled a byte or a word at a time. */
#include "arrow/bits.h"

#include <string.h>

size_t bits_count(const uint8_t *bits, size_t at, size_t count) {
  size_t found = 0;
  size_t end = at + count;
  while (at < end && (at & 7) != 0) {
    found += bits_get(bits, at++);
  }
  while (end - at >= 64) {
    uint64_t word;
    memcpy(&word, bits + at / 8, sizeof word);
    found += (size_t)__builtin_popcountll(word);
    at += 64;
  }
  while (end - at >= 8) {
    found += (size_t)__builtin_popcount(bits[at / 8]);
    at += 8;
  }
  while (at < end) {
    found += bits_get(bits, at++);
  }
  return found;
}

/* Puts the lower `count` (1 to 8) bits of `value` behind the first `at` bits of `to`. */
static void put_bits(uint8_t *to, size_t at, unsigned value, size_t count) {
  size_t shift = at & 7;
  uint8_t *byte = to + at / 8;
  value &= (1u << count) - 1u;
  unsigned kept = *byte & ((1u << shift) - 1u);
  *byte = (uint8_t)(kept | (value << shift));
  if (shift + count > 8) {
    byte[1] = (uint8_t)(value >> (8 - shift));
  }
}

/* Returns `count` (1 to 8) bits from `at`, reading no byte that holds none of them. */
static unsigned take_bits(const uint8_t *from, size_t at, size_t count) {
  size_t shift = at & 7;
  unsigned value = (unsigned)from[at / 8] >> shift;
  if (shift + count > 8) {
    value |= (unsigned)from[at / 8 + 1] << (8 - shift);
  }
  return value;
}

void bits_copy(uint8_t *to, size_t at, const uint8_t *from, size_t from_at, size_t count) {
  if ((at & 7) == 0 && (from_at & 7) == 0) {
    memcpy(to + at / 8, from + from_at / 8, count / 8);
    at += count & ~(size_t)7;
    from_at += count & ~(size_t)7;
    count &= 7;
  }
  while (count > 0) {
    size_t step = count < 8 ? count : 8;
    put_bits(to, at, take_bits(from, from_at, step), step);
    at += step;
    from_at += step;
    count -= step;
  }
}

void bits_fill(uint8_t *to, size_t at, size_t count, bool value) {
  unsigned pattern = value ? 0xffu : 0u;
  if ((at & 7) != 0 && count > 0) {
    size_t step = 8 - (at & 7);
    step = step < count ? step : count;
    put_bits(to, at, pattern, step);
    at += step;
    count -= step;
  }
  memset(to + at / 8, (int)pattern, count / 8);
  at += count & ~(size_t)7;
  count &= 7;
  if (count > 0) {
    put_bits(to, at, pattern, count);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as an index whose checksum holds; what decodes must
 * encode to the same bytes again.
 */
#include "fuzz/fuzz.h"

#include "exchange/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  block_index index;
  buf whole = {0};
  buf again = {0};
  arena *a = arena_new();
  uint64_t checksum = XXH3_64bits(bytes, length);
  buf_append(&whole, bytes, length);
  buf_append(&whole, &checksum, sizeof checksum);
  if (block_index_decode(whole.data, whole.length, a, &index, NULL) == HF_OK) {
    uint32_t ordered = 1; /* any number but 0 means ordered, and 1 is written */
    if (index.ordered) {
      memcpy(whole.data + 12, &ordered, sizeof ordered);
    }
    if (block_index_encode(&index, &again, NULL) != HF_OK || again.length != whole.length ||
        memcmp(again.data, whole.data, length) != 0) {
      abort();
    }
  }
  buf_reset(&whole);
  buf_reset(&again);
  arena_free(a);
  return 0;
}

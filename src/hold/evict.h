/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which held results go when room is needed: LRU weighted by bytes and by the
 * measured cost of computing again. A pure function.
 * Thread: any.
 */
#ifndef HF_HOLD_EVICT_H
#define HF_HOLD_EVICT_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct evict_entry {
  uuid key;
  uint64_t bytes;
  uint64_t cost_us;      /* to compute it again */
  uint64_t last_read_us; /* wall time; of the fill, if it was never read */
  bool in_use;           /* a lease lists it, or it is being filled: never a victim */
  bool lineage_cut;      /* cannot be computed again: never a victim */
} evict_entry;

/*
 * Writes the indices of the victims to `victims` (room for n), the one that is cheapest to lose first, and returns how
 * many there are. 0 when need_bytes is 0, and when all that may go would not make that room: then nothing is gained by
 * losing any. Cost: O(n log n); no allocation.
 */
size_t evict_choose(const evict_entry *entries, size_t n, uint64_t need_bytes, uint64_t now_us,
                    size_t *victims);

#endif

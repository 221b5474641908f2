/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction: what a byte is worth is the time to compute it again, divided by how
 * long nobody has read it. The cheapest bytes go first until there is room; those
 * that turn out not to be needed for it stay.
 * Thread: any.
 */
#include "hold/evict.h"

static bool may_go(const evict_entry *entry) {
  return !entry->in_use && !entry->lineage_cut && entry->bytes > 0;
}

/* What is lost with a byte of it: cost per byte and per time since the last read. A read in the future is one of now. */
static double worth(const evict_entry *entry, uint64_t now_us) {
  double age_us = entry->last_read_us < now_us ? (double)(now_us - entry->last_read_us) : 0;
  return ((double)entry->cost_us + 1) / ((double)entry->bytes * (age_us + 1));
}

typedef struct ranking {
  const evict_entry *entries;
  uint64_t now_us;
  size_t *order;
} ranking;

/* Equal worth: the older read first, then the first of the list, so that the answer is always the same. */
static bool goes_after(const ranking *r, size_t a, size_t b) {
  double of_a = worth(&r->entries[a], r->now_us), of_b = worth(&r->entries[b], r->now_us);
  if (of_a > of_b || of_a < of_b) {
    return of_a > of_b;
  }
  uint64_t read_a = r->entries[a].last_read_us, read_b = r->entries[b].last_read_us;
  return read_a != read_b ? read_a > read_b : a > b;
}

static void swap(size_t *a, size_t *b) {
  size_t kept = *a;
  *a = *b;
  *b = kept;
}

static void sift_down(const ranking *r, size_t root, size_t n) {
  for (size_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
    if (child + 1 < n && goes_after(r, r->order[child + 1], r->order[child])) {
      child++;
    }
    if (!goes_after(r, r->order[child], r->order[root])) {
      return;
    }
    swap(&r->order[root], &r->order[child]);
    root = child;
  }
}

/* Heap sort, in place: what is worth least comes first. */
static void rank(const ranking *r, size_t n) {
  for (size_t i = n / 2; i > 0; i--) {
    sift_down(r, i - 1, n);
  }
  for (size_t end = n; end > 1; end--) {
    swap(&r->order[0], &r->order[end - 1]);
    sift_down(r, 0, end - 1);
  }
}

size_t evict_choose(const evict_entry *entries, size_t n, uint64_t need_bytes, uint64_t now_us,
                    size_t *victims) {
  size_t candidates = 0;
  for (size_t i = 0; i < n; i++) {
    if (may_go(&entries[i])) {
      victims[candidates++] = i;
    }
  }
  rank(&(ranking){.entries = entries, .now_us = now_us, .order = victims}, candidates);
  uint64_t freed = 0;
  size_t chosen = 0;
  while (chosen < candidates && freed < need_bytes) {
    freed += entries[victims[chosen++]].bytes;
  }
  if (freed < need_bytes) {
    return 0;
  }
  /* The last ones are worth most: those that the rest makes room without stay. */
  for (size_t i = chosen; i > 0; i--) {
    uint64_t bytes = entries[victims[i - 1]].bytes;
    if (freed - bytes >= need_bytes) {
      freed -= bytes;
      victims[i - 1] = n;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < chosen; i++) {
    if (victims[i] != n) {
      victims[kept++] = victims[i];
    }
  }
  return kept;
}

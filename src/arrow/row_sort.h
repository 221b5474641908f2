/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of an array by the partition that each belongs to: their numbers, sorted,
 * for batch_builder_append_rows.
 * Thread: one at a time per object.
 */
#ifndef HF_ARROW_ROW_SORT_H
#define HF_ARROW_ROW_SORT_H

#include "base/error.h"

typedef struct row_sort {
  uint32_t partitions;
  uint32_t *numbers; /* of the rows that were sorted last */
  size_t capacity;
  size_t *ends; /* partitions + 1; where each partition's numbers end */
} row_sort;

/* Errors: OUT_OF_MEMORY; then too, row_sort_reset may follow. */
hf_status row_sort_init(row_sort *s, uint32_t partitions, hf_error *error);
/* Accepts what is zeroed, and leaves it so. */
void row_sort_reset(row_sort *s);
/* Sorts the numbers of `rows` rows; those of a partition stay in their order. Errors: OUT_OF_MEMORY, LIMIT (2³² rows),
 * INTERNAL (a partition out of range). */
hf_status row_sort_by(row_sort *s, const uint32_t *partitions, size_t rows, hf_error *error);

/* Where a partition's numbers start. */
static inline size_t row_sort_first(const row_sort *s, uint32_t partition) {
  return partition == 0 ? 0 : s->ends[partition - 1];
}
static inline size_t row_sort_count(const row_sort *s, uint32_t partition) {
  return s->ends[partition] - row_sort_first(s, partition);
}

#endif

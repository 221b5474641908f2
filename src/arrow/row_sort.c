/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers sorted by partition: a counting sort. Thread: one at a time per object. */
#include "arrow/row_sort.h"

#include "base/mem.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to sort rows by partition");
}

hf_status row_sort_init(row_sort *s, uint32_t partitions, hf_error *error) {
  *s = (row_sort){.partitions = partitions};
  s->ends = mem_zalloc((size_t)partitions + 1, sizeof *s->ends);
  return s->ends == NULL ? no_memory(error) : HF_OK;
}

void row_sort_reset(row_sort *s) {
  mem_free(s->numbers);
  mem_free(s->ends);
  *s = (row_sort){0};
}

static hf_status reserve(row_sort *s, size_t rows, hf_error *error) {
  if (rows <= s->capacity) {
    return HF_OK;
  }
  uint32_t *numbers = mem_realloc(s->numbers, rows * sizeof *numbers);
  if (numbers == NULL) {
    return no_memory(error);
  }
  s->numbers = numbers;
  s->capacity = rows;
  return HF_OK;
}

hf_status row_sort_by(row_sort *s, const uint32_t *partitions, size_t rows, hf_error *error) {
  if (rows > UINT32_MAX) {
    return error_set(error, HF_E_LIMIT, "an array has too many rows: %zu", rows);
  }
  HF_TRY(reserve(s, rows, error));
  size_t *starts = s->ends;
  memset(starts, 0, ((size_t)s->partitions + 1) * sizeof *starts);
  for (size_t i = 0; i < rows; i++) {
    if (partitions[i] >= s->partitions) {
      memset(starts, 0, ((size_t)s->partitions + 1) * sizeof *starts);
      return error_set(error, HF_E_INTERNAL, "a partition number is out of range: %u of %u", partitions[i],
                       s->partitions);
    }
    starts[partitions[i] + 1]++;
  }
  for (uint32_t p = 0; p < s->partitions; p++) {
    starts[p + 1] += starts[p];
  }
  /* Each start is moved to its partition's end, which is the next one's start. */
  for (size_t i = 0; i < rows; i++) {
    s->numbers[starts[partitions[i]]++] = (uint32_t)i;
  }
  return HF_OK;
}

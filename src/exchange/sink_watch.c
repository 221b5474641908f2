/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread of a sink sees in the columns that are watched, as it writes its
 * batches: how many values, the least, the most, and which ones while they are few.
 *
 * A step of rows is first copied to words without its NULLs; words stand in the
 * order of the values and are the upper halves of their keys (range.h). The list of
 * distinct values is given up for good when there are too many.
 * Thread: that of the sink's state; the columns are joined under the sink's lock.
 */
#include "exchange/sink_internal.h"

#include "base/fault.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
  STEP_ROWS = 256,
  SLOT_BITS = 8, /* of the table that finds a value in its list: a quarter full at most */
  N_SLOTS = 1 << SLOT_BITS
};

typedef struct watched_column {
  range_kind kind;
  uint64_t rows;
  uint64_t least, most;
  bool has_many; /* distinct values: they are not listed */
  uint32_t n_values;
  uint64_t values[RANGE_VALUES_AT_MOST];
  uint8_t slots[N_SLOTS]; /* 1 + the value's place in the list; 0: free */
} watched_column;

struct sink_watch {
  const block_sink *sink;
  watched_column columns[]; /* as many as the sink watches */
};

hf_status sink_watch_new(const block_sink *s, const batch_builder *model, sink_watch **out, hf_error *error) {
  sink_watch *w = mem_zalloc(1, sizeof *w + s->n_watched * sizeof *w->columns);
  if (w == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to watch %zu columns", s->n_watched);
  }
  w->sink = s;
  for (size_t i = 0; i < s->n_watched; i++) {
    uint32_t number = s->watched[i].column;
    range_kind kind = range_kind_of(s->columns.columns[number].type);
    if (batch_builder_column(model, number).width != range_kind_bytes(kind)) {
      mem_free(w);
      return error_set(error, HF_E_INTERNAL, "a watched column is not as wide as its type: column %u",
                       number);
    }
    w->columns[i].kind = kind;
  }
  *out = w;
  return HF_OK;
}

void sink_watch_free(sink_watch *w) {
  mem_free(w);
}

size_t sink_watch_bytes(const sink_watch *w) {
  return sizeof *w + w->sink->n_watched * sizeof *w->columns;
}

/* --------------------------------------------------------------------- words */

static inline uint64_t word_at(range_kind kind, const uint8_t *values, uint64_t i) {
  const uint64_t sign = UINT64_C(1) << 63;
  int32_t narrow = 0;
  uint32_t narrow_unsigned = 0;
  uint64_t wide = 0;
  switch (kind) {
    case RANGE_INT32:
      memcpy(&narrow, values + i * 4, 4);
      return (uint64_t)(int64_t)narrow ^ sign;
    case RANGE_UINT32:
      memcpy(&narrow_unsigned, values + i * 4, 4);
      return narrow_unsigned;
    case RANGE_INT64:
      memcpy(&wide, values + i * 8, 8);
      return wide ^ sign;
    default:
      memcpy(&wide, values + i * 8, 8);
      return wide;
  }
}

/* Copies those of the rows that are not NULL, without a branch on it; returns how many. */
static inline size_t load_as(range_kind kind, const batch_column *from, uint64_t first, size_t rows,
                             uint64_t *words) {
  size_t n = 0;
  if (from->validity == NULL) {
    for (size_t i = 0; i < rows; i++) {
      words[i] = word_at(kind, from->data, first + i);
    }
    return rows;
  }
  for (size_t i = 0; i < rows; i++) {
    words[n] = word_at(kind, from->data, first + i);
    n += (from->validity[(first + i) >> 3] >> ((first + i) & 7)) & 1;
  }
  return n;
}

/* One loop for each kind. */
static size_t load(range_kind kind, const batch_column *from, uint64_t first, size_t rows, uint64_t *words) {
  switch (kind) {
    case RANGE_INT32:
      return load_as(RANGE_INT32, from, first, rows, words);
    case RANGE_UINT32:
      return load_as(RANGE_UINT32, from, first, rows, words);
    case RANGE_INT64:
      return load_as(RANGE_INT64, from, first, rows, words);
    default:
      return load_as(RANGE_UINT64, from, first, rows, words);
  }
}

/* ------------------------------------------------------------------ watching */

static void widen(watched_column *to, const uint64_t *words, size_t n) {
  uint64_t least = words[0];
  uint64_t most = words[0];
  for (size_t i = 1; i < n; i++) {
    least = words[i] < least ? words[i] : least;
    most = words[i] > most ? words[i] : most;
  }
  if (to->rows == 0 || (least < to->least && !FAULT("exchange.watched_least"))) {
    to->least = least;
  }
  if (to->rows == 0 || most > to->most) {
    to->most = most;
  }
}

/* Finds a value's slot: its own, or a free one. */
static uint8_t *slot_of(watched_column *of, uint64_t word) {
  size_t at = (size_t)((word * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SLOT_BITS));
  while (of->slots[at] != 0 && of->values[of->slots[at] - 1] != word) {
    at = (at + 1) % N_SLOTS;
  }
  return &of->slots[at];
}

static void list(watched_column *to, const uint64_t *words, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint8_t *slot = slot_of(to, words[i]);
    if (*slot != 0) {
      continue;
    }
    if (to->n_values == RANGE_VALUES_AT_MOST) {
      to->has_many = !FAULT("exchange.watched_many");
      return;
    }
    to->values[to->n_values++] = words[i];
    *slot = (uint8_t)to->n_values;
  }
}

static void watch_column(watched_column *to, const batch_column *from) {
  uint64_t words[STEP_ROWS];
  for (uint64_t first = 0; first < from->rows; first += STEP_ROWS) {
    size_t rows = from->rows - first < STEP_ROWS ? (size_t)(from->rows - first) : STEP_ROWS;
    size_t n = load(to->kind, from, first, rows, words);
    if (n == 0) {
      continue;
    }
    widen(to, words, n);
    if (!to->has_many) {
      list(to, words, n);
    }
    to->rows += n;
  }
}

void sink_watch_batch(sink_watch *w, const batch_builder *b) {
  for (size_t i = 0; i < w->sink->n_watched; i++) {
    batch_column values = batch_builder_column(b, w->sink->watched[i].column);
    watch_column(&w->columns[i], &values);
  }
}

/* ------------------------------------------------------------------- joining */

static int compare_words(const void *a, const void *b) {
  const uint64_t *x = a;
  const uint64_t *y = b;
  return *x < *y ? -1 : *x > *y;
}

static void summarize(watched_column *from, range_summary *out) {
  *out = (range_summary){.rows = from->rows, .least = {.high = from->least}, .most = {.high = from->most}};
  if (from->has_many) {
    return;
  }
  qsort(from->values, from->n_values, sizeof *from->values, compare_words);
  for (uint32_t i = 0; i < from->n_values; i++) {
    out->values[i].high = from->values[i];
  }
  out->n_values = from->n_values;
}

void sink_watch_join(sink_watch *w, range_summary *to) {
  for (size_t i = 0; i < w->sink->n_watched; i++) {
    range_summary seen;
    summarize(&w->columns[i], &seen);
    seen.column = to[i].column;
    range_summary_add(&to[i], &seen);
  }
}

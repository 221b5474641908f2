/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the two results: read out of its stream into memory, its rows by number;
 * and the matching of rows of two results as multisets. Internal to src/compare.
 * Thread: one at a time.
 */
#ifndef HF_COMPARE_ROWS_H
#define HF_COMPARE_ROWS_H

#include "value.h"

/* Where a row lies. */
typedef struct row_place {
  uint32_t array;
  uint32_t row;
} row_place;

typedef struct result_rows {
  const char *side; /* "expected" or "actual", for messages */
  arena *memory;
  schema columns;
  value_shape *shapes; /* one a column */
  struct ArrowArray *arrays;
  size_t n_arrays, arrays_capacity;
  row_place *places; /* n_rows */
  size_t n_rows, places_capacity;
} result_rows;

/* Reads the stream to its end, and releases it in any case. *out is to be released (rows_reset) also on failure. Errors: as
 * compare_streams. */
hf_status rows_read(struct ArrowArrayStream *stream, const char *side, result_rows *out, hf_error *error);
void rows_reset(result_rows *rows);

/* The value of a column in a row. */
value rows_value(const result_rows *rows, size_t row, size_t at);
/* Appends a row as text: (1, 'a', NULL). */
void rows_text(const result_rows *rows, size_t row, buf *out);

/* Measures the floats of both and gives both the same scales. */
void rows_share_scales(const result_rows *a, const result_rows *b);

/* ------------------------------------------------------------------- matching */

/* Differing rows of which the text is kept, a side; and after how many a matching gives up. */
enum { ROWS_SHOWN_MAX = 5, ROWS_DIFFERING_MAX = 1000 };

/* Rows of one side that have no partner on the other. */
typedef struct lone_rows {
  size_t n;
  size_t shown[ROWS_SHOWN_MAX];
} lone_rows;

typedef struct match {
  lone_rows expected, actual;
  bool gave_up; /* there may be more */
} match;

/* Rows [first, end) of a result. */
typedef struct row_range {
  const result_rows *rows;
  size_t first, end;
} row_range;

/* Matches rows as multisets. Columns have the same types. Errors: OUT_OF_MEMORY. */
hf_status match_rows(row_range expected, row_range actual, match *out, hf_error *error);

#endif

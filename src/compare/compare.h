/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two results value by value: types, rows as a multiset, and their
 * order as far as a query says one. Used by `holdfast verify` and by tests.
 *
 * Equal values. A type is DuckDB's, whatever its layout: a dictionary equals its
 * values, a decimal of 64 bits one of 128 with the same width, scale and number.
 * NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. DOUBLE: |a-b| <= 1e-9 *
 * max(|a|, |b|) + 1e-12 * scale, where scale is the largest finite magnitude in the
 * same column (or field, element) of both results; FLOAT: 1e-5 instead of 1e-9. At
 * any depth. Everything else is equal only when it is the same: one month is not 30
 * days, and a MAP's entries count in their order.
 *
 * Limits. Rows that differ in floats only are matched by nearness, in the order of
 * their floats, each with the first that fits: where rows lie within the tolerance of
 * several others, a matching that exists may be missed, so that equal results are
 * called different, never the other way. Both results lie in memory.
 */
#ifndef HF_COMPARE_COMPARE_H
#define HF_COMPARE_COMPARE_H

#include "base/error.h"

typedef struct compare_options {
  bool ordered; /* all rows must come in the same order */
  /* Columns that the query orders by, most significant first: their values must come in the same order, so that rows
   * that tie may change places. */
  const size_t *order_columns;
  size_t n_order_columns;
  /* With order_columns: the query ends with LIMIT, or begins behind OFFSET. Rows that tie with the last, or with the
   * first, may be other ones. */
  bool limited;
} compare_options;

typedef enum compare_verdict {
  COMPARE_SAME,
  COMPARE_OTHER_TYPES, /* number or types of columns; names do not count */
  COMPARE_OTHER_ROWS,
  COMPARE_OTHER_ORDER
} compare_verdict;

/* Released by compare_report_reset. */
typedef struct compare_report {
  compare_verdict verdict;
  uint64_t expected_rows, actual_rows;
  uint64_t tied_rows; /* rows left out because they tie at a LIMIT; 0 when equal without that */
  bool same_order;    /* equal row by row */
  char *reason;       /* one line; NULL when equal */
  char *differences;  /* a few rows of each side, a line each; NULL when there are none to show */
} compare_report;

/*
 * Reads both streams to their end and compares them. Takes both, also on failure; every array is validated. *out is filled
 * when HF_OK is returned, whatever the verdict. Errors: IO when a stream fails, INVALID_ARGUMENT (an array that is not
 * valid, an order column that is not there), UNSUPPORTED (a type), OUT_OF_MEMORY.
 * Cost: O(n log n) for n rows; more where many rows differ in floats only and those are near each other.
 * Thread: that of the caller.
 */
hf_status compare_streams(struct ArrowArrayStream *expected, struct ArrowArrayStream *actual,
                          const compare_options *options, compare_report *out, hf_error *error);

/* Accepts a zeroed report. */
void compare_report_reset(compare_report *report);

#endif

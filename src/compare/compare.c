/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two results against each other: types, then row by row, then as multisets, then
 * without the rows that tie at a LIMIT; and the report. Values are in value*.c,
 * matching in match.c.
 * Thread: that of the caller.
 */
#include "compare.h"

#include "base/fault.h"
#include "base/mem.h"
#include "rows.h"

#include <string.h>

typedef struct comparison {
  result_rows expected, actual;
  const compare_options *options;
  compare_report *report;
  buf reason, differences;
} comparison;

/* ---------------------------------------------------------------------- types */

static void say_types(comparison *c, size_t i) {
  buf_printf(&c->reason, "column %zu is ", i + 1);
  data_type_to_sql(c->actual.columns.columns[i].type, &c->reason);
  buf_text(&c->reason, ", expected ");
  data_type_to_sql(c->expected.columns.columns[i].type, &c->reason);
}

static bool types_are_equal(comparison *c) {
  size_t n = c->expected.columns.n_columns;
  if (c->actual.columns.n_columns != n) {
    buf_printf(&c->reason, "%zu columns, expected %zu", c->actual.columns.n_columns, n);
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (!data_type_equal(c->expected.columns.columns[i].type, c->actual.columns.columns[i].type)) {
      say_types(c, i);
      return false;
    }
    if (!value_shapes_alike(&c->expected.shapes[i], &c->actual.shapes[i])) {
      buf_printf(&c->reason, "column %zu has another unit of time", i + 1);
      return false;
    }
  }
  return true;
}

/* ---------------------------------------------------------------------- order */

static bool value_agrees(const comparison *c, size_t row, size_t at) {
  return value_is_near(rows_value(&c->expected, row, at), rows_value(&c->actual, row, at));
}

static bool row_agrees(const comparison *c, size_t row) {
  for (size_t i = 0; i < c->expected.columns.n_columns; i++) {
    if (!value_agrees(c, row, i)) {
      return false;
    }
  }
  return true;
}

static bool key_agrees(const comparison *c, size_t row) {
  for (size_t i = 0; i < c->options->n_order_columns; i++) {
    if (!value_agrees(c, row, c->options->order_columns[i])) {
      return false;
    }
  }
  return true;
}

/* The first row that differs at its place; the number of rows when none does. Both sides have as many. */
static size_t first_difference(const comparison *c, bool (*agrees)(const comparison *c, size_t row)) {
  size_t row = 0;
  while (row < c->expected.n_rows && (agrees(c, row) || FAULT("compare.blind"))) {
    row++;
  }
  return row;
}

static void add_row(comparison *c, const char *label, const result_rows *rows, size_t row) {
  buf_text(&c->differences, c->differences.length == 0 ? "" : "\n");
  buf_printf(&c->differences, "%s: ", label);
  rows_text(rows, row, &c->differences);
}

static compare_verdict other_order(comparison *c, size_t row) {
  buf_printf(&c->reason, "the rows are the same, their order differs from row %zu on", row + 1);
  add_row(c, "expected", &c->expected, row);
  add_row(c, "actual  ", &c->actual, row);
  return COMPARE_OTHER_ORDER;
}

/* ----------------------------------------------------------------------- ties */

static bool keys_tie(const comparison *c, const result_rows *rows, size_t a, size_t b) {
  for (size_t i = 0; i < c->options->n_order_columns; i++) {
    size_t at = c->options->order_columns[i];
    if (!value_is_near(rows_value(rows, a, at), rows_value(rows, b, at))) {
      return false;
    }
  }
  return true;
}

/* The rows of a side that tie neither with its first nor with its last one. */
static row_range without_ties(const comparison *c, const result_rows *rows) {
  row_range range = {rows, 0, rows->n_rows};
  size_t last = rows->n_rows - 1;
  while (range.end > 0 && keys_tie(c, rows, range.end - 1, last)) {
    range.end--;
  }
  while (range.first < range.end && keys_tie(c, rows, range.first, 0)) {
    range.first++;
  }
  return range;
}

/* The keys agree at each place, so both sides have their ties at the same places. */
static hf_status match_without_ties(comparison *c, bool *equal, hf_error *error) {
  row_range expected = without_ties(c, &c->expected);
  row_range actual = {&c->actual, expected.first, expected.end};
  match found;
  HF_TRY(match_rows(expected, actual, &found, error));
  *equal = found.expected.n == 0 && found.actual.n == 0;
  if (*equal) {
    c->report->tied_rows = c->expected.n_rows - (expected.end - expected.first);
  }
  return HF_OK;
}

/* ----------------------------------------------------------------------- rows */

static void say_rows(comparison *c, const match *found) {
  if (c->expected.n_rows != c->actual.n_rows) {
    buf_printf(&c->reason, "%zu rows, expected %zu; ", c->actual.n_rows, c->expected.n_rows);
  }
  const char *at_least = found->gave_up ? "at least " : "";
  buf_printf(&c->reason, "%s%zu rows are missing, %s%zu rows are too many", at_least, found->expected.n,
             at_least, found->actual.n);
  for (size_t i = 0; i < found->expected.n && i < ROWS_SHOWN_MAX; i++) {
    add_row(c, "missing ", &c->expected, found->expected.shown[i]);
  }
  for (size_t i = 0; i < found->actual.n && i < ROWS_SHOWN_MAX; i++) {
    add_row(c, "too many", &c->actual, found->actual.shown[i]);
  }
}

static hf_status judge_rows(comparison *c, compare_verdict *out, hf_error *error) {
  bool same_count = c->expected.n_rows == c->actual.n_rows;
  size_t differs = same_count ? first_difference(c, row_agrees) : 0;
  c->report->same_order = same_count && differs == c->expected.n_rows;
  if (c->report->same_order) {
    *out = COMPARE_SAME;
    return HF_OK;
  }
  match found;
  row_range expected = {&c->expected, 0, c->expected.n_rows}, actual = {&c->actual, 0, c->actual.n_rows};
  HF_TRY(match_rows(expected, actual, &found, error));
  bool equal = found.expected.n == 0 && found.actual.n == 0;
  bool keyed = c->options->n_order_columns > 0;
  size_t key_differs = same_count && keyed ? first_difference(c, key_agrees) : 0;
  bool keys_agree = keyed && same_count && key_differs == c->expected.n_rows;
  if (!equal && keys_agree && c->options->limited) {
    HF_TRY(match_without_ties(c, &equal, error));
  }
  if (!equal) {
    say_rows(c, &found);
    *out = COMPARE_OTHER_ROWS;
  } else if (c->options->ordered || (keyed && !keys_agree)) {
    *out = other_order(c, c->options->ordered ? differs : key_differs);
  } else {
    *out = COMPARE_SAME;
  }
  return HF_OK;
}

/* ----------------------------------------------------------------------- door */

static hf_status check_options(const comparison *c, hf_error *error) {
  for (size_t i = 0; i < c->options->n_order_columns; i++) {
    if (c->options->order_columns[i] >= c->expected.columns.n_columns) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "there is no column to order by: %zu of %zu",
                       c->options->order_columns[i] + 1, c->expected.columns.n_columns);
    }
  }
  return HF_OK;
}

static hf_status judge(comparison *c, hf_error *error) {
  c->report->expected_rows = c->expected.n_rows;
  c->report->actual_rows = c->actual.n_rows;
  if (!types_are_equal(c)) {
    c->report->verdict = COMPARE_OTHER_TYPES;
    return HF_OK;
  }
  HF_TRY(check_options(c, error));
  rows_share_scales(&c->expected, &c->actual);
  return judge_rows(c, &c->report->verdict, error);
}

static hf_status finish(comparison *c, hf_error *error) {
  bool failed = c->reason.failed || c->differences.failed;
  c->report->reason = c->reason.length > 0 ? buf_take(&c->reason) : NULL;
  c->report->differences = c->differences.length > 0 ? buf_take(&c->differences) : NULL;
  return failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to report a difference") : HF_OK;
}

hf_status compare_streams(struct ArrowArrayStream *expected, struct ArrowArrayStream *actual,
                          const compare_options *options, compare_report *out, hf_error *error) {
  compare_report report = {0};
  comparison c = {.options = options, .report = &report};
  hf_status status = rows_read(expected, "expected", &c.expected, error);
  if (status == HF_OK) {
    status = rows_read(actual, "actual", &c.actual, error);
  } else {
    actual->release(actual);
  }
  if (status == HF_OK) {
    status = judge(&c, error);
  }
  if (status == HF_OK) {
    status = finish(&c, error);
  }
  if (status == HF_OK) {
    *out = report;
  } else {
    compare_report_reset(&report);
  }
  buf_reset(&c.reason);
  buf_reset(&c.differences);
  rows_reset(&c.expected);
  rows_reset(&c.actual);
  return status;
}

void compare_report_reset(compare_report *report) {
  mem_free(report->reason);
  mem_free(report->differences);
  *report = (compare_report){0};
}

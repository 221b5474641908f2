/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching rows as multisets. Rows of both sides are sorted by their hash and by
 * everything but their floats; what is the same on both sides makes a group, in
 * which rows are matched by their floats alone (compare.h says how, and the limits).
 * Thread: that of the caller.
 */
#include "rows.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
  uint64_t hash;
  size_t row;
} entry;

/* One side, sorted. */
typedef struct sorted_rows {
  const result_rows *rows;
  entry *entries;
  size_t n;
} sorted_rows;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare rows");
}

/* ----------------------------------------------------------------------- sort */

static uint64_t hash_row(const result_rows *rows, size_t row) {
  uint64_t hash = 0;
  for (size_t i = 0; i < rows->columns.n_columns; i++) {
    hash = value_hash(rows_value(rows, row, i), hash);
  }
  return hash;
}

static int order_rows(const result_rows *a, size_t row_a, const result_rows *b, size_t row_b) {
  int order = 0;
  for (size_t i = 0; order == 0 && i < a->columns.n_columns; i++) {
    order = value_order(rows_value(a, row_a, i), rows_value(b, row_b, i));
  }
  return order;
}

static int order_entries(const sorted_rows *a, const entry *x, const sorted_rows *b, const entry *y) {
  if (x->hash != y->hash) {
    return x->hash < y->hash ? -1 : 1;
  }
  return order_rows(a->rows, x->row, b->rows, y->row);
}

static int order_of_side(const void *x, const void *y, void *context) {
  const sorted_rows *side = context;
  return order_entries(side, x, side, y);
}

static hf_status sort_rows(row_range range, sorted_rows *out, hf_error *error) {
  *out = (sorted_rows){.rows = range.rows, .n = range.end - range.first};
  out->entries = mem_zalloc(out->n, sizeof *out->entries);
  if (out->entries == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < out->n; i++) {
    size_t row = range.first + i;
    out->entries[i] = (entry){hash_row(range.rows, row), row};
  }
  qsort_r(out->entries, out->n, sizeof *out->entries, order_of_side, out);
  return HF_OK;
}

/* --------------------------------------------------------------------- floats */

/* The rows of a group on one side: `width` floats each, sorted by them. */
typedef struct float_rows {
  size_t n, width;
  const value_shape **shapes; /* width */
  double *numbers;            /* n × width, in the order of the entries */
  size_t *sorted;             /* n positions */
  bool *taken;                /* by position in `sorted` */
} float_rows;

typedef struct float_writer {
  float_rows *to;
  size_t row, at;
} float_writer;

static void count_float(void *context, value_float found) {
  (void)found;
  size_t *n = context;
  (*n)++;
}

static void write_float(void *context, value_float found) {
  float_writer *w = context;
  w->to->numbers[w->row * w->to->width + w->at] = found.number;
  w->to->shapes[w->at++] = found.shape;
}

static void each_float(const result_rows *rows, size_t row, void (*each)(void *, value_float),
                       void *context) {
  for (size_t i = 0; i < rows->columns.n_columns; i++) {
    if (rows->shapes[i].has_floats) {
      value_each_float(rows_value(rows, row, i), each, context);
    }
  }
}

static int order_of_floats(const void *x, const void *y, void *context) {
  const float_rows *f = context;
  const double *a = f->numbers + *(const size_t *)x * f->width,
               *b = f->numbers + *(const size_t *)y * f->width;
  int order = 0;
  for (size_t i = 0; order == 0 && i < f->width; i++) {
    order = value_floats_order(a[i], b[i]);
  }
  return order;
}

static void float_rows_reset(float_rows *f) {
  mem_free(f->shapes);
  mem_free(f->numbers);
  mem_free(f->sorted);
  mem_free(f->taken);
}

static hf_status float_rows_read(const sorted_rows *side, size_t first, size_t n, float_rows *out,
                                 hf_error *error) {
  *out = (float_rows){.n = n};
  each_float(side->rows, side->entries[first].row, count_float, &out->width);
  if (out->width > 0 && n > SIZE_MAX / sizeof(double) / out->width) {
    return no_memory(error);
  }
  out->shapes = mem_zalloc(out->width, sizeof(value_shape *));
  out->numbers = mem_zalloc(n * out->width, sizeof *out->numbers);
  out->sorted = mem_zalloc(n, sizeof *out->sorted);
  out->taken = mem_zalloc(n, sizeof *out->taken);
  if (out->shapes == NULL || out->numbers == NULL || out->sorted == NULL || out->taken == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    float_writer writer = {.to = out, .row = i};
    each_float(side->rows, side->entries[first + i].row, write_float, &writer);
    out->sorted[i] = i;
  }
  qsort_r(out->sorted, n, sizeof *out->sorted, order_of_floats, out);
  return HF_OK;
}

static const double *floats_at(const float_rows *f, size_t i) {
  return f->numbers + f->sorted[i] * f->width;
}

static bool are_near(const float_rows *a, const double *x, const double *y) {
  for (size_t i = 0; i < a->width; i++) {
    if (!value_floats_near(x[i], y[i], a->shapes[i])) {
      return false;
    }
  }
  return true;
}

/* Whether the first float of `y` lies beyond that of `x`: above (1), below (-1), or near (0). */
static int beside(const float_rows *a, const double *x, const double *y) {
  if (a->width == 0 || value_floats_near(x[0], y[0], a->shapes[0])) {
    return 0;
  }
  return value_floats_order(y[0], x[0]);
}

/* ---------------------------------------------------------------------- match */

typedef struct matching {
  sorted_rows expected, actual;
  match *out;
} matching;

static void add_lone(matching *m, lone_rows *to, size_t row) {
  if (to->n < ROWS_SHOWN_MAX) {
    to->shown[to->n] = row;
  }
  to->n++;
  m->out->gave_up = m->out->gave_up || to->n >= ROWS_DIFFERING_MAX;
}

/* Takes the first row of `b` from *low on that is near; *low moves over what lies below. */
static bool take_near(const float_rows *a, const double *x, float_rows *b, size_t *low) {
  while (*low < b->n && (b->taken[*low] || beside(a, x, floats_at(b, *low)) < 0)) {
    (*low)++;
  }
  for (size_t i = *low; i < b->n; i++) {
    const double *y = floats_at(b, i);
    if (beside(a, x, y) > 0) {
      return false;
    }
    if (!b->taken[i] && are_near(a, x, y)) {
      b->taken[i] = true;
      return true;
    }
  }
  return false;
}

/* Groups of n_a and n_b rows that differ in floats at most. */
static void match_floats(matching *m, const float_rows *a, size_t first_a, float_rows *b, size_t first_b) {
  size_t low = 0;
  for (size_t i = 0; i < a->n && !m->out->gave_up; i++) {
    if (!take_near(a, floats_at(a, i), b, &low)) {
      add_lone(m, &m->out->expected, m->expected.entries[first_a + a->sorted[i]].row);
    }
  }
  for (size_t i = 0; i < b->n && !m->out->gave_up; i++) {
    if (!b->taken[i]) {
      add_lone(m, &m->out->actual, m->actual.entries[first_b + b->sorted[i]].row);
    }
  }
}

static bool rows_are_near(const result_rows *a, size_t row_a, const result_rows *b, size_t row_b) {
  for (size_t i = 0; i < a->columns.n_columns; i++) {
    if (a->shapes[i].has_floats && !value_is_near(rows_value(a, row_a, i), rows_value(b, row_b, i))) {
      return false;
    }
  }
  return true;
}

static hf_status match_group(matching *m, size_t first_a, size_t n_a, size_t first_b, size_t n_b,
                             hf_error *error) {
  if (n_a == 1 && n_b == 1 &&
      rows_are_near(m->expected.rows, m->expected.entries[first_a].row, m->actual.rows,
                    m->actual.entries[first_b].row)) {
    return HF_OK;
  }
  float_rows a = {0}, b = {0};
  hf_status status = float_rows_read(&m->expected, first_a, n_a, &a, error);
  if (status == HF_OK) {
    status = float_rows_read(&m->actual, first_b, n_b, &b, error);
  }
  if (status == HF_OK) {
    match_floats(m, &a, first_a, &b, first_b);
  }
  float_rows_reset(&a);
  float_rows_reset(&b);
  return status;
}

/* The end of the run of entries that are the same as the one at `first`, floats aside. */
static size_t group_end(const sorted_rows *side, size_t first) {
  size_t end = first + 1;
  while (end < side->n && order_entries(side, &side->entries[first], side, &side->entries[end]) == 0) {
    end++;
  }
  return end;
}

static hf_status match_sorted(matching *m, hf_error *error) {
  size_t a = 0, b = 0;
  while ((a < m->expected.n || b < m->actual.n) && !m->out->gave_up) {
    int order = a == m->expected.n ? 1
                : b == m->actual.n
                    ? -1
                    : order_entries(&m->expected, &m->expected.entries[a], &m->actual, &m->actual.entries[b]);
    if (order < 0) {
      add_lone(m, &m->out->expected, m->expected.entries[a++].row);
    } else if (order > 0) {
      add_lone(m, &m->out->actual, m->actual.entries[b++].row);
    } else {
      size_t end_a = group_end(&m->expected, a), end_b = group_end(&m->actual, b);
      HF_TRY(match_group(m, a, end_a - a, b, end_b - b, error));
      a = end_a;
      b = end_b;
    }
  }
  return HF_OK;
}

hf_status match_rows(row_range expected, row_range actual, match *out, hf_error *error) {
  *out = (match){0};
  matching m = {.out = out};
  hf_status status = sort_rows(expected, &m.expected, error);
  if (status == HF_OK) {
    status = sort_rows(actual, &m.actual, error);
  }
  if (status == HF_OK) {
    status = match_sorted(&m, error);
  }
  mem_free(m.expected.entries);
  mem_free(m.actual.entries);
  return status;
}

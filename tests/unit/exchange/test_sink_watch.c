/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink tells of the columns that it watches, against plain loops over the same values. */
#include "rig.h"

#include <pthread.h>

enum { MOST = 20000 };

/* The values of a column, as the test knows them. */
typedef struct told {
  bool is_signed;
  size_t n;
  uint64_t values[MOST]; /* without NULLs; as int64_t when signed */
} told;

static int compare_signed(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int compare_unsigned(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a;
  uint64_t y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void summary_expect(const range_summary *found, range_kind kind, told *expected) {
  assert_int_equal(found->rows, expected->n);
  if (expected->n == 0) {
    assert_int_equal(found->n_values, 0);
    return;
  }
  qsort(expected->values, expected->n, sizeof *expected->values,
        expected->is_signed ? compare_signed : compare_unsigned);
  size_t n = 1;
  for (size_t i = 1; i < expected->n; i++) {
    if (expected->values[i] != expected->values[n - 1]) {
      expected->values[n++] = expected->values[i];
    }
  }
  assert_true(range_key_integer(kind, found->least) == expected->values[0]);
  assert_true(range_key_integer(kind, found->most) == expected->values[n - 1]);
  assert_int_equal(found->n_values, n > RANGE_VALUES_AT_MOST ? 0 : n);
  for (size_t i = 0; i < found->n_values; i++) {
    assert_true(range_key_integer(kind, found->values[i]) == expected->values[i]);
    assert_int_equal(found->values[i].low, 0);
  }
}

/* Writes values of `width` bytes into the first `n` rows of a column, and notes those that are not NULL. */
static void fill(const struct ArrowArray *rows, int64_t number, size_t width, const uint64_t *values,
                 told *out) {
  const struct ArrowArray *child = rows->children[number];
  const uint8_t *validity = child->buffers[0];
  for (int64_t i = 0; i < rows->length; i++) {
    size_t at = (size_t)(rows->offset + child->offset + i);
    uint64_t words[2] = {values[i], out->is_signed && (int64_t)values[i] < 0 ? UINT64_MAX : 0};
    memcpy((uint8_t *)(uintptr_t)child->buffers[1] + at * width, words, width);
    if (validity == NULL || ((validity[at >> 3] >> (at & 7)) & 1) != 0) {
      out->values[out->n++] = values[i];
    }
  }
}

static void expect_ok(hf_status status, const hf_error *error) {
  if (status != HF_OK) {
    fail_msg("%s", error->message);
  }
}

static block_sink *sink_open(const rig *r) {
  block_sink *sink = NULL;
  hf_error error = {0};
  expect_ok(block_sink_new(&r->options, &sink, &error), &error);
  return sink;
}

static void *thread_open(const rig *r, block_sink *sink) {
  void *state = NULL;
  hf_error error = {0};
  expect_ok(block_sink_ops()->open(sink, &r->schema, &state, &error), &error);
  return state;
}

static void thread_append(void *state, struct ArrowArray *rows, const uint32_t *partitions) {
  hf_error error = {0};
  expect_ok(block_sink_ops()->append(state, rows, partitions, &error), &error);
  rows->release(rows);
}

static void thread_close(void *state) {
  hf_error error = {0};
  expect_ok(block_sink_ops()->close(state, &error), &error);
  block_sink_ops()->discard(state);
}

static const range_summary *commit(const rig *r, block_sink *sink, size_t *n) {
  block_index index;
  hf_error error = {0};
  expect_ok(block_sink_commit(sink, r->memory, &index, &error), &error);
  return block_sink_watched(sink, n);
}

/* ------------------------------------------------------------------- kinds */

/* How the values of a column are chosen. */
typedef enum course { FEW, EXTREME, AS_MANY_AS_LISTED, ONE_MORE, RISING, FALLING, COURSES } course;

static uint64_t value_of(course how, unsigned bits, bool is_signed, uint64_t i) {
  uint64_t highest = is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
  uint64_t lowest = is_signed ? ~highest : 0;
  switch (how) {
    case FEW: /* −2 … 4, or 0 … 6 */
      return i * 2654435761u % 7 - (is_signed ? 2 : 0);
    case EXTREME:
      return i % 3 == 0 ? lowest : i % 3 == 1 ? highest : is_signed ? UINT64_MAX : 1;
    case AS_MANY_AS_LISTED:
      return lowest + i * 7919 % RANGE_VALUES_AT_MOST;
    case ONE_MORE:
      return highest - i * 7919 % (RANGE_VALUES_AT_MOST + 1);
    case RISING:
      return i - (is_signed ? 500 : 0);
    default:
      return 10000 - i - (is_signed ? 9000 : 0);
  }
}

typedef struct kind_case {
  const char *format;
  range_kind kind;
  size_t width; /* as it comes in */
  unsigned bits;
  bool is_signed;
} kind_case;

/* The last two are narrowed on their way into a block. */
static const kind_case kind_cases[] = {
    {"i", RANGE_INT32, 4, 32, true},       {"l", RANGE_INT64, 8, 64, true},
    {"I", RANGE_UINT32, 4, 32, false},     {"L", RANGE_UINT64, 8, 64, false},
    {"tdD", RANGE_INT32, 4, 32, true},     {"ttu", RANGE_INT64, 8, 64, true},
    {"tss:", RANGE_INT64, 8, 64, true},    {"tsm:", RANGE_INT64, 8, 64, true},
    {"tsu:", RANGE_INT64, 8, 64, true},    {"tsu:UTC", RANGE_INT64, 8, 64, true},
    {"tsn:", RANGE_INT64, 8, 64, true},    {"d:9,2", RANGE_INT32, 16, 30, true},
    {"d:18,3", RANGE_INT64, 16, 60, true},
};

static void check_kind(const kind_case *c, course how, const made_options *made, bool ordered) {
  enum { ARRAYS = 5 };
  rig r;
  char layout[32];
  snprintf(layout, sizeof layout, "+s(u;%s)", c->format);
  rig_open(&r, layout);
  static const uint32_t watched[] = {1};
  r.options.n_watched = 1;
  r.options.watched = watched;
  r.options.ordered = ordered;
  r.options.batch_bytes = 4096;
  block_sink *sink = sink_open(&r);
  void *state = thread_open(&r, sink);
  told *expected = calloc(1, sizeof *expected);
  uint64_t *values = calloc((size_t)made->rows, sizeof *values);
  expected->is_signed = c->is_signed;
  for (uint64_t k = 0; k < ARRAYS; k++) {
    struct ArrowArray rows;
    made_options options = *made;
    options.seed = made->seed + k;
    made_array(&r.schema, &options, &rows);
    for (uint64_t i = 0; i < (uint64_t)rows.length; i++) {
      values[i] = value_of(how, c->bits, c->is_signed, k * (uint64_t)made->rows + i);
    }
    fill(&rows, 1, c->width, values, expected);
    thread_append(state, &rows, NULL);
  }
  thread_close(state);
  size_t n = 0;
  const range_summary *found = commit(&r, sink, &n);
  assert_int_equal(n, 1);
  assert_int_equal(found[0].column, 1);
  summary_expect(&found[0], c->kind, expected);
  block_sink_free(sink);
  free(values);
  free(expected);
  rig_close(&r);
}

static void watched_values_of_every_kind_are_told(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kind_cases / sizeof kind_cases[0]; i++) {
    for (course how = FEW; how < COURSES; how++) {
      check_kind(&kind_cases[i], how, &(made_options){.seed = i, .rows = 1300}, how == EXTREME);
      check_kind(&kind_cases[i], how,
                 &(made_options){.seed = i, .rows = 777, .null_percent = 30, .with_offsets = true}, false);
    }
  }
}

static void watched_column_of_nulls_has_no_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kind_cases / sizeof kind_cases[0]; i++) {
    check_kind(&kind_cases[i], EXTREME, &(made_options){.seed = i, .rows = 300, .null_percent = 100}, false);
  }
}

/* Codes come from the engine; what counts is the values behind them that rows have. */
static void watched_codes_are_told_as_values(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "+s(C<l>)");
  static const uint32_t watched[] = {0};
  r.options.n_watched = 1;
  r.options.watched = watched;
  block_sink *sink = sink_open(&r);
  void *thread = thread_open(&r, sink);
  told expected = {.is_signed = true};
  struct ArrowArray rows;
  made_array(&r.schema, &(made_options){.seed = 3, .rows = 500, .null_percent = 20}, &rows);
  const struct ArrowArray *codes = rows.children[0];
  const struct ArrowArray *entries = codes->dictionary;
  for (int64_t i = 0; i < rows.length; i++) {
    buf text = {0};
    made_value_text(r.schema.children[0], codes, i, &text);
    if (strcmp(buf_cstr(&text), "null") != 0) {
      uint8_t code = ((const uint8_t *)codes->buffers[1])[codes->offset + i];
      expected.values[expected.n++] = ((const uint64_t *)entries->buffers[1])[entries->offset + code];
    }
    buf_reset(&text);
  }
  assert_true(expected.n > 0 && expected.n < 500);
  thread_append(thread, &rows, NULL);
  thread_close(thread);
  size_t n = 0;
  const range_summary *found = commit(&r, sink, &n);
  assert_int_equal(n, 1);
  summary_expect(&found[0], RANGE_INT64, &expected);
  block_sink_free(sink);
  rig_close(&r);
}

/* ----------------------------------------------------------------- which are */

static void watched_columns_without_whole_numbers_are_left_out(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "+s(f;g;u;i;s;c;b;d:30,2;L;+l(i);tin)");
  static const uint32_t watched[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  r.options.n_watched = 11;
  r.options.watched = watched;
  block_sink *sink = sink_open(&r);
  size_t n = 0;
  const range_summary *found = commit(&r, sink, &n);
  assert_int_equal(n, 2);
  assert_int_equal(found[0].column, 8);
  assert_int_equal(found[1].column, 3);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(found[i].rows, 0);
    assert_int_equal(found[i].n_values, 0);
  }
  block_sink_free(sink);
  rig_close(&r);
}

static void watched_column_that_is_none_is_refused(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "+s(i;l)");
  static const uint32_t watched[] = {1, 2};
  r.options.n_watched = 2;
  r.options.watched = watched;
  block_sink *sink = NULL;
  hf_error error = {0};
  assert_int_equal(block_sink_new(&r.options, &sink, &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "column 2 of 2"));
  hf_error_reset(&error);
  rig_close(&r);
}

/* A DATE in milliseconds is a client's only, whose stream is not watched. */
static void watched_column_of_another_width_is_refused(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "+s(tdm)");
  static const uint32_t watched[] = {0};
  r.options.n_watched = 1;
  r.options.watched = watched;
  block_sink *sink = sink_open(&r);
  void *thread = NULL;
  hf_error error = {0};
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &thread, &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "not as wide as its type"));
  hf_error_reset(&error);
  block_sink_free(sink);
  struct ArrowSchema given;
  struct ArrowArray rows;
  struct ArrowArrayStream stream;
  block_index index;
  made_schema("+s(tdm)", &given);
  made_array(&given, &(made_options){.seed = 1, .rows = 10}, &rows);
  made_stream(&given, &rows, 1, false, &stream);
  expect_ok(block_write_stream(&stream, &r.options, r.memory, &index, &error), &error);
  assert_int_equal(index.rows, 10);
  rig_close(&r);
}

/* ------------------------------------------------------------------- threads */

enum { THREADS = 4, THREAD_ARRAYS = 3, THREAD_ROWS = 700, PARTITIONS = 5 };

typedef struct work {
  const rig *r;
  block_sink *sink;
  uint64_t number;
  uint64_t each; /* distinct values of a thread, of its own; 0: none */
  told expected;
  pthread_t thread;
} work;

static void *work_run(void *context) {
  work *w = context;
  void *state = thread_open(w->r, w->sink);
  uint64_t values[THREAD_ROWS];
  uint32_t partitions[THREAD_ROWS];
  for (uint64_t k = 0; w->each > 0 && k < THREAD_ARRAYS; k++) {
    struct ArrowArray rows;
    made_array(&w->r->schema,
               &(made_options){.seed = w->number * 10 + k, .rows = THREAD_ROWS, .null_percent = 10}, &rows);
    for (uint64_t i = 0; i < THREAD_ROWS; i++) {
      values[i] = w->number * w->each + (k + i) % w->each - 100;
      partitions[i] = (uint32_t)(values[i] % PARTITIONS);
    }
    fill(&rows, 0, 8, values, &w->expected);
    thread_append(state, &rows, partitions);
  }
  thread_close(state);
  return NULL;
}

static void check_threads(uint64_t each, bool first_is_idle) {
  rig r;
  rig_open(&r, "+s(l;u)");
  static const uint32_t watched[] = {0};
  r.options.n_watched = 1;
  r.options.watched = watched;
  r.options.partitions = PARTITIONS;
  block_sink *sink = sink_open(&r);
  work *all = calloc(THREADS, sizeof *all);
  told *expected = calloc(1, sizeof *expected);
  for (uint64_t i = 0; i < THREADS; i++) {
    all[i].r = &r;
    all[i].sink = sink;
    all[i].number = i;
    all[i].each = first_is_idle && i == 0 ? 0 : each;
    all[i].expected.is_signed = true;
    assert_int_equal(pthread_create(&all[i].thread, NULL, work_run, &all[i]), 0);
  }
  expected->is_signed = true;
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(all[i].thread, NULL);
    memcpy(expected->values + expected->n, all[i].expected.values, all[i].expected.n * sizeof(uint64_t));
    expected->n += all[i].expected.n;
  }
  size_t n = 0;
  const range_summary *found = commit(&r, sink, &n);
  assert_int_equal(n, 1);
  summary_expect(&found[0], RANGE_INT64, expected);
  block_sink_free(sink);
  free(expected);
  free(all);
  rig_close(&r);
}

/* 16 values of each of four threads can be listed, 17 cannot, though each thread has listed its own. */
static void watched_values_of_threads_are_joined(void **state) {
  (void)state;
  check_threads(1, false);
  check_threads(RANGE_VALUES_AT_MOST / THREADS, false);
  check_threads(RANGE_VALUES_AT_MOST / THREADS + 1, false);
  check_threads(RANGE_VALUES_AT_MOST / THREADS + 1, true);
  check_threads(RANGE_VALUES_AT_MOST + 1, true);
}

/* A thread that failed has told nothing; what it saw would not be of the attempt. */
static void watched_values_of_a_thread_that_is_given_up_do_not_count(void **state) {
  (void)state;
  rig r;
  rig_open(&r, "+s(l)");
  static const uint32_t watched[] = {0};
  r.options.n_watched = 1;
  r.options.watched = watched;
  block_sink *sink = sink_open(&r);
  void *thread = thread_open(&r, sink);
  struct ArrowArray rows;
  made_array(&r.schema, &(made_options){.seed = 1, .rows = 100}, &rows);
  thread_append(thread, &rows, NULL);
  block_sink_ops()->discard(thread);
  size_t n = 0;
  assert_int_equal(block_sink_watched(sink, &n)->rows, 0);
  block_sink_free(sink);
  assert_false(rig_exists(&r, ""));
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(watched_values_of_every_kind_are_told),
      cmocka_unit_test(watched_column_of_nulls_has_no_values),
      cmocka_unit_test(watched_codes_are_told_as_values),
      cmocka_unit_test(watched_columns_without_whole_numbers_are_left_out),
      cmocka_unit_test(watched_column_that_is_none_is_refused),
      cmocka_unit_test(watched_column_of_another_width_is_refused),
      cmocka_unit_test(watched_values_of_threads_are_joined),
      cmocka_unit_test(watched_values_of_a_thread_that_is_given_up_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

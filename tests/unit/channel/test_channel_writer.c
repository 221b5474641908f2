/* SPDX-License-Identifier: Apache-2.0 */
/* Rows become frames and windows: batches, columns, types; what is wrong; lack of memory. */
#include "rig.h"

static const char *const wide_layout = "+s(l;u;+l(l);d:10,2;C<u>;c;+s(i;u);vu)";

/* Writes arrays of a layout through one writer, reads the columns that are picked; both as text. */
static void cross(rig *r, uint64_t batch_rows, const size_t *columns, size_t n_columns, buf *expected,
                  buf *found) {
  rig_writer w;
  rig_reader d;
  unsigned threads = 0;
  struct ArrowSchema picked = r->schema;
  struct ArrowSchema *children[16];
  for (size_t i = 0; i < n_columns; i++) {
    children[i] = r->schema.children[columns[i]];
  }
  picked.children = children;
  picked.n_children = (int64_t)n_columns;
  rig_edge(r, 1, 1, CHANNEL_SPLIT)->spools = true;
  rig_start(r, 2);
  rig_writer_init(&w, r, 0, 0, 0);
  w.options.batch_rows = batch_rows;
  rig_writer_begin(&w);
  for (uint64_t i = 0; w.status == HF_OK && i < 10; i++) {
    struct ArrowArray array;
    made_array(&r->schema, &(made_options){.seed = i + 1, .rows = 300, .null_percent = 20}, &array);
    struct ArrowArray seen = array;
    struct ArrowArray *fields[16];
    for (size_t c = 0; c < n_columns; c++) {
      fields[c] = array.children[columns[c]];
    }
    seen.children = fields;
    seen.n_children = (int64_t)n_columns;
    made_rows_text(&picked, &seen, expected);
    w.status = channel_writer_ops()->append(w.state, &array, NULL, &w.error);
    array.release(&array);
  }
  rig_writer_end(&w);
  if (w.status != HF_OK) {
    fail_msg("%s", w.error.message);
  }
  rig_reader_init(&d, r, 1, 0, 0);
  assert_int_equal(channel_reader_new(r->set, &d.options, &d.reader, NULL), HF_OK);
  const struct ArrowSchema *all = channel_reader_arrow_schema(d.reader);
  for (size_t i = 0; i < n_columns; i++) {
    children[i] = all->children[columns[i]];
  }
  assert_int_equal(channel_reader_ops()->open(d.reader, columns, n_columns, &d.scan, &threads, NULL), HF_OK);
  assert_int_equal(threads, 1);
  assert_int_equal(channel_reader_ops()->thread_open(d.scan, &d.state, NULL), HF_OK);
  for (;;) {
    struct ArrowArray window;
    assert_int_equal(channel_reader_ops()->next(d.state, &window, NULL), HF_OK);
    if (window.length == 0) {
      break;
    }
    d.n += (uint64_t)window.length;
    made_rows_text(&picked, &window, found);
    window.release(&window);
  }
  assert_int_equal(d.n, 3000);
  rig_reader_end(&d);
  rig_check(r, HF_OK);
  rig_reader_free(&d);
}

static void expect_same(const char *layout, uint64_t batch_rows, const size_t *columns, size_t n_columns,
                        uint64_t frames) {
  rig r;
  buf expected = {0};
  buf found = {0};
  rig_open_layout(&r, layout);
  cross(&r, batch_rows, columns, n_columns, &expected, &found);
  if (strcmp(buf_cstr(&expected), buf_cstr(&found)) != 0) {
    fail_msg("expected\n%.1500s\nfound\n%.1500s", buf_cstr(&expected), buf_cstr(&found));
  }
  assert_true(frames == 0 || rig_stats(&r, 0).frames == frames);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void channel_writer_rows_of_many_types_come_as_they_were(void **state) {
  (void)state;
  static const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  expect_same(wide_layout, 0, all, 8, 0);
}

static void channel_writer_batches_of_one_row_come_as_they_were(void **state) {
  (void)state;
  static const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  expect_same(wide_layout, 1, all, 8, 3000);
  expect_same(wide_layout, 7, all, 8, 429);
}

static void channel_writer_columns_are_picked_in_any_order(void **state) {
  (void)state;
  static const size_t some[] = {6, 1, 4};
  expect_same(wide_layout, 0, some, 3, 0);
}

static void channel_writer_rows_without_columns_keep_their_count(void **state) {
  (void)state;
  expect_same("+s", 100, NULL, 0, 30);
  expect_same(wide_layout, 100, NULL, 0, 30);
}

static void channel_writer_of_other_types_than_the_plan_is_internal(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  struct ArrowSchema other;
  rig_open(&r);
  made_schema("+s(l;i)", &other);
  rig_edge(&r, 1, 1, CHANNEL_SPLIT);
  rig_start(&r, 2);
  rig_writer_init(&w, &r, 0, 0, 0);
  assert_int_equal(channel_writer_new(r.set, &w.options, &w.writer, NULL), HF_OK);
  assert_int_equal(channel_writer_ops()->open(w.writer, &other, &w.state, &w.error), HF_E_INTERNAL);
  assert_non_null(strstr(w.error.message, "edge 0"));
  hf_error_reset(&w.error);
  channel_writer_free(w.writer);
  other.release(&other);
  rig_close(&r);
}

static void channel_writer_partition_out_of_range_is_internal(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  struct ArrowArray array;
  const uint32_t numbers[2] = {1, 3};
  rig_open(&r);
  rig_edge(&r, 1, 3, CHANNEL_PARTITION);
  rig_start(&r, 4);
  rig_writer_init(&w, &r, 0, 0, 0);
  rig_writer_begin(&w);
  rig_rows(&r.schema, 0, 2, &array);
  assert_int_equal(channel_writer_ops()->append(w.state, &array, numbers, NULL), HF_E_INTERNAL);
  assert_int_equal(channel_writer_ops()->append(w.state, &array, NULL, NULL), HF_E_INTERNAL);
  array.release(&array);
  channel_writer_ops()->discard(w.state);
  channel_writer_free(w.writer);
  rig_close(&r);
}

/* Many partitions of few rows each: the budget, not the size of a batch, sends them. */
static void channel_writer_keeps_its_budget(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_open_edge(&r, CHANNEL_PARTITION)->partitions = 200;
  r.edges[0].spools = true;
  rig_start(&r, 2);
  rig_writer_init(&w, &r, 0, 0, 0);
  w.options.batch_bytes = 1 << 20;
  w.options.budget_bytes = 256 << 10;
  rig_writer_begin(&w);
  for (int i = 0; w.status == HF_OK && i < 40; i++) {
    rig_writer_append(&w, 1000);
  }
  assert_int_equal(w.status, HF_OK);
  uint64_t sent = rig_stats(&r, 0).rows_written;
  assert_true(sent > 0 && sent < 40000);
  rig_writer_end(&w);
  assert_int_equal(w.written, 40000);
  assert_int_equal(rig_stats(&r, 0).rows_written, 40000);
  rig_close(&r);
}

static void channel_writer_and_edges_that_do_not_fit_are_refused(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d, again;
  rig_open_edge(&r, CHANNEL_PARTITION)->partitions = 2;
  rig_edge(&r, 1, 1, CHANNEL_ALL);
  rig_start(&r, 2);
  rig_writer_init(&w, &r, 0, 1, 0); /* no such writer */
  assert_int_equal(channel_writer_new(r.set, &w.options, &w.writer, NULL), HF_E_INTERNAL);
  rig_writer_init(&w, &r, 0, 0, 0); /* other partitions */
  w.edges[1] = 1;
  w.options.n_edges = 2;
  assert_int_equal(channel_writer_new(r.set, &w.options, &w.writer, NULL), HF_E_INTERNAL);
  rig_reader_init(&d, &r, 1, 1, 0);
  assert_int_equal(channel_reader_new(r.set, &d.options, &d.reader, NULL), HF_E_INTERNAL);
  d.options.number = 0;
  rig_reader_init(&again, &r, 1, 0, 0);
  assert_int_equal(channel_reader_new(r.set, &d.options, &d.reader, NULL), HF_OK);
  assert_int_equal(channel_reader_new(r.set, &again.options, &again.reader, NULL), HF_E_INTERNAL);
  channel_reader_free(d.reader);
  rig_reader_free(&d);
  rig_reader_free(&again);
  rig_close(&r);
  rig_open(&r);
  rig_edge(&r, 1, 1, CHANNEL_SPLIT)->partitions = 2; /* cannot be shared so */
  r.options.n_edges = 1;
  r.options.tasks = 2;
  assert_int_equal(channel_set_new(&r.options, &r.set, NULL), HF_E_INTERNAL);
  r.set = NULL;
  rig_close(&r);
}

/* DuckDB gives each of its threads a state of its own. */
static void *write_state(void *context) {
  rig_writer *w = context;
  w->status = channel_writer_ops()->open(w->writer, &w->r->schema, &w->state, &w->error);
  for (int64_t i = 0; w->status == HF_OK && i < w->arrays; i++) {
    rig_writer_append(w, w->rows);
  }
  if (w->status == HF_OK) {
    w->status = channel_writer_ops()->close(w->state, &w->error);
  }
  channel_writer_ops()->discard(w->state);
  return NULL;
}

static void channel_writer_of_four_threads_loses_and_doubles_nothing(void **state) {
  (void)state;
  rig r;
  rig_writer w[4];
  rig_reader d[2];
  uint64_t sum = 0;
  rig_open(&r);
  rig_edge(&r, 1, 2, CHANNEL_PARTITION)->partitions = 5;
  rig_start(&r, 3);
  for (uint32_t i = 0; i < 4; i++) {
    rig_writer_init(&w[i], &r, 0, 0, 0);
    w[i].first = i * 1000000;
    if (i == 0) {
      assert_int_equal(channel_writer_new(r.set, &w[0].options, &w[0].writer, NULL), HF_OK);
    }
    w[i].writer = w[0].writer;
    assert_int_equal(pthread_create(&w[i].thread, NULL, write_state, &w[i]), 0);
  }
  for (uint32_t i = 0; i < 2; i++) {
    rig_reader_init(&d[i], &r, 1 + i, i, 0);
    rig_reader_start(&d[i]);
  }
  for (uint32_t i = 0; i < 4; i++) {
    pthread_join(w[i].thread, NULL);
  }
  assert_int_equal(channel_writer_rows(w[0].writer), 8000);
  hf_status status = channel_writer_finish(w[0].writer, NULL);
  channel_writer_free(w[0].writer);
  channel_set_end_task(r.set, 0);
  for (uint32_t i = 0; i < 2; i++) {
    pthread_join(d[i].thread, NULL);
  }
  assert_int_equal(status, HF_OK);
  for (uint32_t i = 0; i < 2; i++) {
    rig_reader_expect(&d[i], HF_OK);
    for (uint64_t k = 0; k < d[i].n; k++) {
      sum += (uint64_t)d[i].numbers[k];
    }
    rig_reader_free(&d[i]);
  }
  assert_int_equal(d[0].n + d[1].n, 8000);
  assert_int_equal(sum, 4 * 1999 * 1000 + UINT64_C(2000) * 6000000);
  rig_check(&r, HF_OK);
  rig_close(&r);
}

/* One after the other on one thread; the file takes what does not fit. */
static hf_status cross_once(rig *r) {
  rig_writer w;
  rig_reader d;
  hf_status status = channel_set_new(&r->options, &r->set, NULL);
  if (status != HF_OK) {
    r->set = NULL;
    return status;
  }
  rig_writer_init(&w, r, 0, 0, 0);
  w.arrays = 3;
  w.rows = 60;
  rig_writer_run(&w);
  rig_reader_init(&d, r, 1, 0, 0);
  rig_reader_run(&d);
  status = w.status != HF_OK ? w.status : d.status;
  assert_true(status != HF_OK || d.n == 180);
  hf_error_reset(&w.error);
  hf_error_reset(&d.error);
  rig_reader_free(&d);
  channel_set_free(r->set);
  r->set = NULL;
  return status;
}

static void channel_writer_without_memory_at_any_allocation_leaves_nothing(void **state) {
  (void)state;
  rig r;
  rig_open_edge(&r, CHANNEL_PARTITION)->partitions = 3;
  r.edges[0].spools = true;
  r.options.n_edges = 1;
  r.options.tasks = 2;
  r.options.bound_bytes = 2 << 10;
  for (uint64_t n = 1;; n++) {
    mem_fail_after(n);
    hf_status status = cross_once(&r);
    mem_fail_after(0);
    assert_false(rig_has_spool(&r));
    if (status == HF_OK) {
      assert_true(n > 50);
      break;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
  }
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channel_writer_rows_of_many_types_come_as_they_were),
      cmocka_unit_test(channel_writer_batches_of_one_row_come_as_they_were),
      cmocka_unit_test(channel_writer_columns_are_picked_in_any_order),
      cmocka_unit_test(channel_writer_rows_without_columns_keep_their_count),
      cmocka_unit_test(channel_writer_of_other_types_than_the_plan_is_internal),
      cmocka_unit_test(channel_writer_partition_out_of_range_is_internal),
      cmocka_unit_test(channel_writer_keeps_its_budget),
      cmocka_unit_test(channel_writer_and_edges_that_do_not_fit_are_refused),
      cmocka_unit_test(channel_writer_of_four_threads_loses_and_doubles_nothing),
      cmocka_unit_test(channel_writer_without_memory_at_any_allocation_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

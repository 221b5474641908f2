/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a task: projection, threads, locations, files that are gone, cut or altered. */
#include "rig.h"

#include <fcntl.h>
#include <pthread.h>

static const char *const wide_layout = "+s(i;u;+l(l);d:10,2;C<u>;b;+s(i;u))";

static void input_projection_gives_picked_columns_in_order(void **state) {
  (void)state;
  static const size_t columns[] = {3, 1};
  rig r;
  buf all = {0};
  buf expected = {0};
  buf found = {0};
  block_index index;
  rig_open(&r, wide_layout);
  rig_write(&r, 4, 700, &all, &index);
  for (unsigned i = 0; i < 4; i++) { /* the same arrays again, two columns of them */
    struct ArrowArray rows;
    made_array(&r.schema, &(made_options){.seed = i + 1, .rows = 700, .null_percent = 10}, &rows);
    for (int64_t row = 0; row < 700; row++) {
      made_value_text(r.schema.children[3], rows.children[3], row, &expected);
      buf_char(&expected, ' ');
      made_value_text(r.schema.children[1], rows.children[1], row, &expected);
      buf_char(&expected, '\n');
    }
    rows.release(&rows);
  }
  block_location location = {.dir = r.dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .ordered = true};
  assert_int_equal(rig_read(&options, columns, 2, &found, NULL), HF_OK);
  rig_expect_text(&expected, &found);
  buf_reset(&all);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void input_in_shares_adds_up_in_order(void **state) {
  (void)state;
  size_t columns[64];
  rig r;
  buf all = {0};
  block_index index;
  rig_open(&r, wide_layout);
  rig_write(&r, 20, 2000, &all, &index);
  assert_true(index.n_blocks > 7);
  for (size_t i = 0; i < 64; i++) {
    columns[i] = i;
  }
  for (uint32_t n = 1; n <= 7; n++) {
    buf found = {0};
    for (uint32_t t = 0; t < n; t++) {
      block_location location = {.dir = r.dir, .share_first = t, .share_count = 1, .share_of = n};
      block_input_options options = {.locations = &location, .n_locations = 1, .ordered = true};
      size_t before = found.length;
      assert_int_equal(rig_read(&options, columns, r.columns.n_columns, &found, NULL), HF_OK);
      assert_true(found.length > before);
    }
    rig_expect_text(&all, &found);
    buf_reset(&found);
  }
  buf_reset(&all);
  rig_close(&r);
}

static void input_without_columns_counts(void **state) {
  (void)state;
  static const size_t none[1];
  rig r;
  buf all = {0};
  buf found = {0};
  block_index index;
  rig_open(&r, wide_layout);
  rig_write(&r, 10, 5000, &all, &index);
  block_location location = {.dir = r.dir};
  block_input_options options = {.locations = &location, .n_locations = 1};
  assert_int_equal(rig_read(&options, none, 0, &found, NULL), HF_OK); /* asserts the rows */
  buf_reset(&all);
  buf_reset(&found);
  rig_close(&r);
}

static void input_spells_enum_as_text_at_any_depth(void **state) {
  (void)state;
  static const char *const moods[] = {"a", "b"};
  static const data_type mood = {.kind = TYPE_ENUM, .n_names = 2, .names = moods};
  static const data_type *const of_mood[] = {&mood};
  static const data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = of_mood};
  static const column columns[] = {{"m", &mood}, {"l", &list}};
  static const schema both = {2, columns};
  rig r;
  buf all = {0};
  block_index index;
  block_input *input;
  rig_open(&r, "+s(C<u>;+l(C<u>))");
  r.options.columns = &both;
  rig_write(&r, 1, 10, &all, &index);
  assert_int_equal(index.columns.columns[0].type->kind, TYPE_ENUM);
  block_location location = {.dir = r.dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .threads = 1};
  assert_int_equal(block_input_new(&options, &input, NULL), HF_OK);
  const schema *seen = block_input_columns(input);
  assert_int_equal(seen->columns[0].type->kind, TYPE_VARCHAR);
  assert_int_equal(seen->columns[1].type->kind, TYPE_LIST);
  assert_int_equal(seen->columns[1].type->children[0]->kind, TYPE_VARCHAR);
  assert_string_equal(seen->columns[0].name, "m");
  assert_string_equal(block_input_arrow_schema(input)->children[0]->format, "u");
  block_input_free(input);
  buf_reset(&all);
  rig_close(&r);
}

/* ------------------------------------------------------------------- threads */

typedef struct reader {
  void *scan;
  uint64_t rows, sum;
} reader;

static void *read_in_thread(void *context) {
  reader *own = context;
  const source_ops *ops = block_input_ops();
  void *state;
  assert_int_equal(ops->thread_open(own->scan, &state, NULL), HF_OK);
  for (;;) {
    struct ArrowArray window;
    assert_int_equal(ops->next(state, &window, NULL), HF_OK);
    if (window.length == 0) {
      break;
    }
    const uint32_t *values = window.children[0]->buffers[1];
    for (int64_t i = 0; i < window.length; i++) {
      own->sum += values[window.children[0]->offset + i];
    }
    own->rows += (uint64_t)window.length;
    window.release(&window);
  }
  ops->thread_close(state);
  return NULL;
}

static void input_threads_read_each_block_once(void **state) {
  (void)state;
  enum { THREADS = 4, ARRAYS = 60, ROWS = 3000 };
  static const size_t columns[] = {0};
  rig r;
  buf all = {0};
  block_index index;
  block_input *input;
  void *scan;
  unsigned threads = 0;
  uint64_t expected = 0;
  rig_open(&r, "+s(I;u)");
  rig_write(&r, ARRAYS, ROWS, &all, &index);
  for (unsigned i = 0; i < ARRAYS; i++) {
    struct ArrowArray rows;
    made_array(&r.schema, &(made_options){.seed = i + 1, .rows = ROWS, .null_percent = 10}, &rows);
    for (int64_t row = 0; row < ROWS; row++) {
      expected += ((const uint32_t *)rows.children[0]->buffers[1])[row];
    }
    rows.release(&rows);
  }
  block_location location = {.dir = r.dir};
  block_input_options options = {
      .locations = &location, .n_locations = 1, .verify = true, .threads = THREADS};
  assert_int_equal(block_input_new(&options, &input, NULL), HF_OK);
  assert_int_equal(block_input_ops()->open(input, columns, 1, &scan, &threads, NULL), HF_OK);
  assert_int_equal(threads, THREADS);
  pthread_t started[THREADS];
  reader readers[THREADS] = {0};
  for (unsigned i = 0; i < THREADS; i++) {
    readers[i].scan = scan;
    assert_int_equal(pthread_create(&started[i], NULL, read_in_thread, &readers[i]), 0);
  }
  uint64_t rows = 0;
  uint64_t sum = 0;
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(started[i], NULL);
    rows += readers[i].rows;
    sum += readers[i].sum;
  }
  assert_int_equal(rows, ARRAYS * ROWS);
  assert_int_equal(sum, expected);
  assert_int_equal(block_input_rows_read(input), rows);
  block_input_ops()->close(scan);
  block_input_free(input);
  buf_reset(&all);
  rig_close(&r);
}

static void input_ordered_or_small_uses_one_thread(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  rig_open(&r, "+s(i)");
  rig_write(&r, 1, 10, &all, &index);
  block_location location = {.dir = r.dir};
  for (int ordered = 0; ordered < 2; ordered++) {
    block_input_options options = {
        .locations = &location, .n_locations = 1, .ordered = ordered != 0, .threads = 8};
    block_input *input;
    void *scan;
    unsigned threads = 0;
    assert_int_equal(block_input_new(&options, &input, NULL), HF_OK);
    assert_int_equal(block_input_ops()->open(input, NULL, 0, &scan, &threads, NULL), HF_OK);
    assert_int_equal(threads, 1);
    block_input_ops()->close(scan);
    block_input_free(input);
  }
  buf_reset(&all);
  rig_close(&r);
}

/* ----------------------------------------------------------------- locations */

static void input_of_two_attempts_reads_both_in_order(void **state) {
  (void)state;
  static const size_t columns[] = {0, 1};
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  char first[96];
  rig_open(&r, "+s(i;u)");
  rig_write(&r, 2, 100, &expected, &index);
  memcpy(first, r.dir, sizeof first);
  snprintf(r.dir, sizeof r.dir, "%s/7/2/4-1", r.root);
  rig_write(&r, 3, 100, &expected, &index);
  block_location locations[] = {{.dir = first}, {.dir = r.dir}};
  block_input_options options = {.locations = locations, .n_locations = 2, .ordered = true, .verify = true};
  assert_int_equal(rig_read(&options, columns, 2, &found, NULL), HF_OK);
  rig_expect_text(&expected, &found);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void input_of_attempts_that_differ_is_corrupt(void **state) {
  (void)state;
  rig one;
  rig other;
  buf all = {0};
  block_index index;
  block_input *input;
  rig_open(&one, "+s(i)");
  rig_open(&other, "+s(l)");
  rig_write(&one, 1, 10, &all, &index);
  rig_write(&other, 1, 10, &all, &index);
  block_location locations[] = {{.dir = one.dir}, {.dir = other.dir}};
  block_input_options options = {.locations = locations, .n_locations = 2};
  assert_int_equal(block_input_new(&options, &input, NULL), HF_E_BLOCK_CORRUPT);
  options.n_locations = 0;
  assert_int_equal(block_input_new(&options, &input, NULL), HF_E_INVALID_ARGUMENT);
  buf_reset(&all);
  rig_close(&one);
  rig_close(&other);
}

/* ---------------------------------------------------------------- lost blocks */

static void path_of(const rig *r, const char *name, char *out, size_t length) {
  snprintf(out, length, "%s/%s", r->dir, name);
}

static hf_status open_and_read(const rig *r, bool verify, hf_error *error) {
  static const size_t columns[] = {0, 1};
  block_location location = {.dir = r->dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .verify = verify};
  buf text = {0};
  hf_status status = rig_read(&options, columns, 2, &text, error);
  buf_reset(&text);
  return status;
}

static void input_of_lost_files_is_missing(void **state) {
  (void)state;
  for (int what = 0; what < 3; what++) {
    rig r;
    buf all = {0};
    block_index index;
    char path[160];
    hf_error error = {0};
    rig_open(&r, "+s(i;u)");
    rig_write(&r, 3, 1000, &all, &index);
    path_of(&r, what == 1 ? "index" : "t0.arrow", path, sizeof path);
    if (what == 2) {
      assert_int_equal(truncate(path, (off_t)index.file_bytes[0] - 1), 0);
    } else {
      assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(open_and_read(&r, false, &error), HF_E_BLOCK_MISSING);
    assert_non_null(strstr(error.message, what == 1 ? "7/2/3-1/index" : "7/2/3-1/t0.arrow"));
    hf_error_reset(&error);
    buf_reset(&all);
    rig_close(&r);
  }
}

static void flip_byte(const char *path, off_t at) {
  int fd = open(path, O_RDWR);
  char byte;
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 4;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static void input_of_altered_block_is_corrupt_when_verified(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  char path[160];
  rig_open(&r, "+s(i;u)");
  rig_write(&r, 30, 1000, &all, &index);
  assert_int_equal(open_and_read(&r, true, NULL), HF_OK);
  path_of(&r, "t0.arrow", path, sizeof path);
  for (size_t i = 0; i < index.n_blocks; i++) {
    hf_error error = {0};
    off_t at = (off_t)(index.blocks[i].offset + index.blocks[i].bytes * i / index.n_blocks);
    flip_byte(path, at);
    assert_int_equal(open_and_read(&r, true, &error), HF_E_BLOCK_CORRUPT);
    assert_non_null(strstr(error.message, "7/2/3-1/t0.arrow"));
    hf_error_reset(&error);
    flip_byte(path, at);
  }
  assert_int_equal(open_and_read(&r, true, NULL), HF_OK);
  path_of(&r, "index", path, sizeof path);
  flip_byte(path, 40);
  assert_int_equal(open_and_read(&r, true, NULL), HF_E_BLOCK_CORRUPT);
  buf_reset(&all);
  rig_close(&r);
}

/* Headers are checked even when checksums are not. */
static void input_of_altered_header_is_corrupt_unverified(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  char path[160];
  hf_error error = {0};
  rig_open(&r, "+s(i;u)");
  rig_write(&r, 3, 1000, &all, &index);
  path_of(&r, "t0.arrow", path, sizeof path);
  int fd = open(path, O_RDWR);
  static const char zeros[64];
  assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)index.blocks[0].offset), sizeof zeros);
  close(fd);
  assert_int_equal(open_and_read(&r, false, &error), HF_E_BLOCK_CORRUPT);
  assert_non_null(strstr(error.message, "7/2/3-1/t0.arrow"));
  hf_error_reset(&error);
  buf_reset(&all);
  rig_close(&r);
}

static void input_without_memory_at_any_allocation_fails_cleanly(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  rig_open(&r, wide_layout);
  rig_write(&r, 2, 100, &all, &index);
  block_location location = {.dir = r.dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .threads = 1};
  static const size_t columns[] = {0, 6};
  const source_ops *ops = block_input_ops();
  for (uint64_t n = 1;; n++) {
    block_input *input = NULL;
    void *scan = NULL;
    void *state_of_thread = NULL;
    unsigned threads;
    struct ArrowArray window = {0};
    mem_fail_after(n);
    hf_status status = block_input_new(&options, &input, NULL);
    if (status == HF_OK) {
      status = ops->open(input, columns, 2, &scan, &threads, NULL);
    }
    if (status == HF_OK) {
      status = ops->thread_open(scan, &state_of_thread, NULL);
    }
    if (status == HF_OK) {
      status = ops->next(state_of_thread, &window, NULL);
    }
    mem_fail_after(0);
    if (state_of_thread != NULL) {
      ops->thread_close(state_of_thread);
    }
    if (scan != NULL) {
      ops->close(scan);
    }
    block_input_free(input);
    if (status == HF_OK) {
      assert_true(n > 10);
      break;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
  }
  buf_reset(&all);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(input_projection_gives_picked_columns_in_order),
      cmocka_unit_test(input_in_shares_adds_up_in_order),
      cmocka_unit_test(input_without_columns_counts),
      cmocka_unit_test(input_spells_enum_as_text_at_any_depth),
      cmocka_unit_test(input_threads_read_each_block_once),
      cmocka_unit_test(input_ordered_or_small_uses_one_thread),
      cmocka_unit_test(input_of_two_attempts_reads_both_in_order),
      cmocka_unit_test(input_of_attempts_that_differ_is_corrupt),
      cmocka_unit_test(input_of_lost_files_is_missing),
      cmocka_unit_test(input_of_altered_block_is_corrupt_when_verified),
      cmocka_unit_test(input_of_altered_header_is_corrupt_unverified),
      cmocka_unit_test(input_without_memory_at_any_allocation_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

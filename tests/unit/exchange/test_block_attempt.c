/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of attempts: what stays open, what is checked again, what is let go. */
#include "rig.h"

#include <fcntl.h>

static hf_status read_column(const rig *r, block_keeper *keeper, size_t column_number, hf_error *error) {
  block_location location = {.dir = r->dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .verify = true, .keeper = keeper};
  buf text = {0};
  hf_status status = rig_read(&options, &column_number, 1, &text, error);
  buf_reset(&text);
  return status;
}

static void path_of(const rig *r, const char *name, char *out, size_t length) {
  snprintf(out, length, "%s/%s", r->dir, name);
}

/* Alters the last buffer of the first block, which is of the last column; the file's time moves on. */
static void alter_last_column(const rig *r, const block_index *index) {
  char path[160];
  char byte;
  path_of(r, "t0.arrow", path, sizeof path);
  off_t at = (off_t)(index->blocks[0].offset + index->blocks[0].bytes) - 256;
  int fd = open(path, O_RDWR);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 1;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(futimens(fd, times), 0);
  close(fd);
}

static void attempt_kept_needs_its_index_only_once(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  char path[160];
  block_keeper *keeper = block_keeper_new();
  rig_open(&r, "+s(i;l)");
  rig_write(&r, 3, 1000, &all, &index);
  assert_int_equal(read_column(&r, keeper, 0, NULL), HF_OK);
  path_of(&r, "index", path, sizeof path);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(read_column(&r, keeper, 1, NULL), HF_OK);
  assert_int_equal(read_column(&r, NULL, 1, NULL), HF_E_BLOCK_MISSING);
  block_keeper_free(keeper);
  buf_reset(&all);
  rig_close(&r);
}

static void attempt_altered_in_another_column_reads_on(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  hf_error error = {0};
  rig_open(&r, "+s(i;l)");
  rig_write(&r, 3, 1000, &all, &index);
  alter_last_column(&r, &index);
  assert_int_equal(read_column(&r, NULL, 0, NULL), HF_OK);
  assert_int_equal(read_column(&r, NULL, 1, &error), HF_E_BLOCK_CORRUPT);
  assert_non_null(strstr(error.message, "7/2/3-1/t0.arrow"));
  hf_error_reset(&error);
  buf_reset(&all);
  rig_close(&r);
}

static void attempt_kept_is_checked_again_when_its_file_changed(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  block_keeper *keeper = block_keeper_new();
  rig_open(&r, "+s(i;l)");
  rig_write(&r, 3, 1000, &all, &index);
  assert_int_equal(read_column(&r, keeper, 1, NULL), HF_OK);
  alter_last_column(&r, &index);
  assert_int_equal(read_column(&r, keeper, 1, NULL), HF_E_BLOCK_CORRUPT);
  assert_int_equal(read_column(&r, keeper, 0, NULL), HF_OK);
  block_keeper_free(keeper);
  buf_reset(&all);
  rig_close(&r);
}

static void attempt_forgotten_by_directory_is_opened_anew(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  char path[160];
  char near_by[96];
  block_keeper *keeper = block_keeper_new();
  rig_open(&r, "+s(i;l)");
  rig_write(&r, 3, 1000, &all, &index);
  assert_int_equal(read_column(&r, keeper, 0, NULL), HF_OK);
  path_of(&r, "index", path, sizeof path);
  assert_int_equal(unlink(path), 0);
  snprintf(near_by, sizeof near_by, "%s/7/2/3", r.root); /* a prefix of the name, not of the path */
  block_keeper_forget(keeper, near_by);
  assert_int_equal(read_column(&r, keeper, 0, NULL), HF_OK);
  snprintf(near_by, sizeof near_by, "%s/7/2", r.root);
  block_keeper_forget(keeper, near_by);
  assert_int_equal(read_column(&r, keeper, 0, NULL), HF_E_BLOCK_MISSING);
  block_keeper_free(keeper);
  buf_reset(&all);
  rig_close(&r);
}

static void attempt_forgotten_while_read_stays_mapped(void **state) {
  (void)state;
  static const size_t columns[] = {0, 1};
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  block_input *input;
  void *scan;
  void *thread;
  unsigned threads;
  block_keeper *keeper = block_keeper_new();
  rig_open(&r, "+s(i;l)");
  rig_write(&r, 3, 1000, &expected, &index);
  block_location location = {.dir = r.dir};
  block_input_options options = {
      .locations = &location, .n_locations = 1, .ordered = true, .verify = true, .keeper = keeper};
  const source_ops *ops = block_input_ops();
  assert_int_equal(block_input_new(&options, &input, NULL), HF_OK);
  assert_int_equal(ops->open(input, columns, 2, &scan, &threads, NULL), HF_OK);
  assert_int_equal(ops->thread_open(scan, &thread, NULL), HF_OK);
  block_keeper_forget(keeper, r.root);
  block_keeper_free(keeper);
  assert_int_equal(file_remove_tree(r.dir, NULL), HF_OK);
  for (;;) {
    struct ArrowArray window;
    assert_int_equal(ops->next(thread, &window, NULL), HF_OK);
    if (window.length == 0) {
      break;
    }
    made_rows_text(block_input_arrow_schema(input), &window, &found);
    window.release(&window);
  }
  rig_expect_text(&expected, &found);
  ops->thread_close(thread);
  ops->close(scan);
  block_input_free(input);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attempt_kept_needs_its_index_only_once),
      cmocka_unit_test(attempt_altered_in_another_column_reads_on),
      cmocka_unit_test(attempt_kept_is_checked_again_when_its_file_changed),
      cmocka_unit_test(attempt_forgotten_by_directory_is_opened_anew),
      cmocka_unit_test(attempt_forgotten_while_read_stays_mapped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The client's stream: names, faces, lifetimes, failures. */
#include "rig.h"

#include <fcntl.h>

static void count_release(void *context) {
  ++*(int *)context;
}

static const char *const wide_layout = "+s(i;u;+l(l);d:10,2;C<u>;b;+s(i;d:20,3))";

static void stream_gives_rows_and_user_names(void **state) {
  (void)state;
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowSchema head;
  int released = 0;
  rig_open(&r, wide_layout);
  r.options.ordered = true;
  rig_write(&r, 20, 1000, &expected, &index);
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, count_release, &released, &stream, NULL), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &head), 0);
  assert_int_equal(head.n_children, 7);
  assert_string_equal(head.children[1]->name, "user 1");
  assert_string_equal(head.children[3]->format, "d:10,2");
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    made_rows_text(&head, &batch, &found);
    batch.release(&batch);
  }
  rig_expect_text(&expected, &found);
  assert_int_equal(released, 0);
  stream.release(&stream);
  assert_null(stream.release);
  assert_int_equal(released, 1);
  head.release(&head);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

/* A client may keep arrays after the stream and even the files are gone. */
static void stream_arrays_outlive_stream_and_files(void **state) {
  (void)state;
  enum { MOST = 64 };
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowSchema head;
  struct ArrowArray batches[MOST];
  size_t n = 0;
  int released = 0;
  rig_open(&r, wide_layout);
  rig_write(&r, 20, 1000, &expected, &index);
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, count_release, &released, &stream, NULL), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &head), 0);
  for (;; n++) {
    assert_true(n < MOST);
    assert_int_equal(stream.get_next(&stream, &batches[n]), 0);
    if (batches[n].release == NULL) {
      break;
    }
  }
  assert_true(n > 3);
  stream.release(&stream);
  assert_int_equal(released, 1);
  assert_int_equal(file_remove_tree(r.dir, NULL), HF_OK);
  for (size_t i = 0; i < n; i++) {
    made_rows_text(&head, &batches[i], &found);
    batches[i].release(&batches[i]);
  }
  rig_expect_text(&expected, &found);
  head.release(&head);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void stream_without_rows_has_a_schema(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowSchema head;
  struct ArrowArray batch;
  rig_open(&r, wide_layout);
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
  block_sink_free(sink);
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, NULL, NULL, &stream, NULL), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &head), 0);
  assert_int_equal(head.n_children, 7);
  assert_string_equal(head.children[6]->name, "user 6");
  assert_int_equal(stream.get_next(&stream, &batch), 0);
  assert_null(batch.release);
  assert_int_equal(stream.get_next(&stream, &batch), 0); /* the end stays the end */
  assert_null(batch.release);
  head.release(&head);
  stream.release(&stream);
  rig_close(&r);
}

static void stream_of_interval_too_long_fails_with_text(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  int released = 0;
  rig_open(&r, "+s(tin)");
  rig_write(&r, 1, 100, &all, &index); /* random: most are beyond 292 years of ns */
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, count_release, &released, &stream, NULL), HF_OK);
  assert_null(stream.get_last_error(&stream));
  assert_int_not_equal(stream.get_next(&stream, &batch), 0);
  assert_non_null(strstr(stream.get_last_error(&stream), "INTERVAL"));
  stream.release(&stream);
  assert_int_equal(released, 1);
  buf_reset(&all);
  rig_close(&r);
}

static void stream_of_damaged_block_fails_with_text(void **state) {
  (void)state;
  rig r;
  buf all = {0};
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  char path[160];
  rig_open(&r, "+s(i;u)");
  rig_write(&r, 1, 100, &all, &index);
  snprintf(path, sizeof path, "%s/t0.arrow", r.dir);
  int fd = open(path, O_RDWR);
  static const char zeros[64];
  assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)index.blocks[0].offset), sizeof zeros);
  close(fd);
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, NULL, NULL, &stream, NULL), HF_OK);
  assert_int_not_equal(stream.get_next(&stream, &batch), 0);
  assert_non_null(strstr(stream.get_last_error(&stream), "7/2/3-1/t0.arrow"));
  stream.release(&stream);
  buf_reset(&all);
  rig_close(&r);
}

static void stream_that_cannot_open_does_not_call_back(void **state) {
  (void)state;
  struct ArrowArrayStream stream;
  int released = 0;
  hf_error error = {0};
  block_location location = {.dir = "/tmp/hf_no_such_dir"};
  assert_int_equal(block_stream_open(&location, 1, count_release, &released, &stream, &error),
                   HF_E_BLOCK_MISSING);
  assert_int_equal(released, 0);
  hf_error_reset(&error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stream_gives_rows_and_user_names),
      cmocka_unit_test(stream_arrays_outlive_stream_and_files),
      cmocka_unit_test(stream_without_rows_has_a_schema),
      cmocka_unit_test(stream_of_interval_too_long_fails_with_text),
      cmocka_unit_test(stream_of_damaged_block_fails_with_text),
      cmocka_unit_test(stream_that_cannot_open_does_not_call_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

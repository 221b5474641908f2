/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks written with LZ4: read back, streamed, damaged, beside blocks that are not compressed. */
#include "rig.h"

#include <fcntl.h>

static const char *const wide_layout = "+s(i;u;+l(l);d:10,2;C<u>;b;+s(i;u))";

/* Writes `repeats` times the same random rows. */
static void write_repeated(rig *r, unsigned repeats, buf *expected, block_index *out) {
  const sink_ops *ops = block_sink_ops();
  block_sink *sink;
  void *state;
  struct ArrowArray array;
  made_array(&r->schema, &(made_options){.seed = 3, .rows = 100, .null_percent = 10}, &array);
  assert_int_equal(block_sink_new(&r->options, &sink, NULL), HF_OK);
  assert_int_equal(ops->open(sink, &r->schema, &state, NULL), HF_OK);
  for (unsigned i = 0; i < repeats; i++) {
    made_rows_text(&r->schema, &array, expected);
    assert_int_equal(ops->append(state, &array, NULL, NULL), HF_OK);
  }
  assert_int_equal(ops->close(state, NULL), HF_OK);
  ops->discard(state);
  assert_int_equal(block_sink_commit(sink, r->memory, out, NULL), HF_OK);
  block_sink_free(sink);
  array.release(&array);
}

static hf_status read_all(const rig *r, bool verify, buf *text, hf_error *error) {
  size_t columns[64];
  for (size_t i = 0; i < 64; i++) {
    columns[i] = i;
  }
  block_location location = {.dir = r->dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .ordered = true, .verify = verify};
  return rig_read(&options, columns, r->columns.n_columns, text, error);
}

static uint64_t bytes_written(const char *layout, bool held, ipc_compression compression) {
  rig r;
  buf expected = {0};
  block_index index;
  rig_open(&r, layout);
  r.options.held = held;
  r.options.compression = compression;
  write_repeated(&r, 200, &expected, &index);
  for (int verify = 0; verify < 2; verify++) {
    buf found = {0};
    assert_int_equal(read_all(&r, verify == 1, &found, NULL), HF_OK);
    rig_expect_text(&expected, &found);
    buf_reset(&found);
  }
  assert_int_equal(index.rows, 20000);
  buf_reset(&expected);
  rig_close(&r);
  return index.bytes;
}

static void blocks_with_lz4_come_back_and_are_smaller(void **state) {
  (void)state;
  for (int held = 0; held < 2; held++) {
    uint64_t plain = bytes_written(wide_layout, held == 1, IPC_COMPRESSION_NONE);
    uint64_t packed = bytes_written(wide_layout, held == 1, IPC_COMPRESSION_LZ4);
    assert_true(packed < plain / 2);
  }
}

static void stream_of_blocks_with_lz4_outlives_its_blocks(void **state) {
  (void)state;
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  struct ArrowArrayStream stream;
  struct ArrowArray first = {0};
  struct ArrowArray rows;
  rig_open(&r, "+s(i;u;+l(l))");
  r.options.compression = IPC_COMPRESSION_LZ4;
  write_repeated(&r, 200, &expected, &index);
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, NULL, NULL, &stream, NULL), HF_OK);
  assert_int_equal(stream.get_next(&stream, &first), 0);
  uint64_t count = (uint64_t)first.length;
  while (stream.get_next(&stream, &rows) == 0 && rows.release != NULL) {
    count += (uint64_t)rows.length;
    rows.release(&rows);
  }
  stream.release(&stream);
  assert_int_equal(count, 20000);
  made_rows_text(&r.schema, &first, &found);
  assert_true(found.length > 0 && memcmp(found.data, expected.data, found.length) == 0);
  first.release(&first);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void blocks_of_both_kinds_are_read_together(void **state) {
  (void)state;
  static const size_t columns[] = {0, 1};
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  char second[sizeof r.dir + 8];
  rig_open(&r, "+s(i;u)");
  write_repeated(&r, 50, &expected, &index);
  snprintf(second, sizeof second, "%s-b", r.dir);
  r.options.dir = second;
  r.options.compression = IPC_COMPRESSION_LZ4;
  write_repeated(&r, 50, &expected, &index);
  block_location locations[] = {{.dir = r.dir}, {.dir = second}};
  block_input_options options = {.locations = locations, .n_locations = 2, .ordered = true, .verify = true};
  assert_int_equal(rig_read(&options, columns, 2, &found, NULL), HF_OK);
  rig_expect_text(&expected, &found);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void set_bytes(const char *path, off_t at, const void *bytes, size_t length) {
  int fd = open(path, O_RDWR);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, bytes, length, at), length);
  close(fd);
}

/* The first frame of the file: its length, 8 bytes before it, is that of the first column's values. */
static off_t first_frame(const char *path) {
  static const uint8_t magic[] = {0x04, 0x22, 0x4d, 0x18};
  uint8_t bytes[64];
  int fd = open(path, O_RDONLY);
  off_t at = 8;
  while (pread(fd, bytes, 4, at) == 4 && memcmp(bytes, magic, sizeof magic) != 0) {
    at += 8;
  }
  close(fd);
  return at;
}

/* Unverified, LZ4's own checks and the bounds of lengths find it; the error names file and offset. */
static void blocks_with_damaged_frames_are_corrupt(void **state) {
  (void)state;
  static const uint8_t none[16] = {0};
  static const int64_t length = INT64_C(1) << 50;
  rig r;
  buf expected = {0};
  block_index index;
  char path[160];
  rig_open(&r, "+s(l;u)");
  r.options.compression = IPC_COMPRESSION_LZ4;
  write_repeated(&r, 200, &expected, &index);
  snprintf(path, sizeof path, "%s/t0.arrow", r.dir);
  off_t frame = first_frame(path);
  for (int what = 0; what < 4; what++) {
    uint8_t kept[32];
    hf_error error = {0};
    buf text = {0};
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, kept, sizeof kept, frame - 8), sizeof kept);
    close(fd);
    if (what % 2 == 0) {
      set_bytes(path, frame, none, sizeof none);
    } else {
      set_bytes(path, frame - 8, &length, sizeof length);
    }
    assert_int_equal(read_all(&r, what < 2, &text, &error), HF_E_BLOCK_CORRUPT);
    assert_non_null(strstr(error.message, "7/2/3-1/t0.arrow"));
    set_bytes(path, frame - 8, kept, sizeof kept);
    hf_error_reset(&error);
    buf_reset(&text);
  }
  buf text = {0};
  assert_int_equal(read_all(&r, true, &text, NULL), HF_OK);
  buf_reset(&text);
  buf_reset(&expected);
  rig_close(&r);
}

static void sink_with_lz4_without_memory_leaves_nothing(void **state) {
  (void)state;
  rig r;
  hf_status status = HF_E_OUT_OF_MEMORY;
  struct ArrowArray array;
  const sink_ops *ops = block_sink_ops();
  rig_open(&r, "+s(l;u)");
  r.options.compression = IPC_COMPRESSION_LZ4;
  made_array(&r.schema, &(made_options){.seed = 3, .rows = 2000, .null_percent = 10}, &array);
  for (uint64_t n = 1; status != HF_OK; n++) {
    block_sink *sink = NULL;
    void *thread = NULL;
    block_index index;
    mem_fail_after(n);
    status = block_sink_new(&r.options, &sink, NULL);
    status = status == HF_OK ? ops->open(sink, &r.schema, &thread, NULL) : status;
    status = status == HF_OK ? ops->append(thread, &array, NULL, NULL) : status;
    status = status == HF_OK ? ops->close(thread, NULL) : status;
    if (thread != NULL) {
      ops->discard(thread);
    }
    status = status == HF_OK ? block_sink_commit(sink, r.memory, &index, NULL) : status;
    mem_fail_after(0);
    block_sink_free(sink);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    assert_true(rig_exists(&r, "") == (status == HF_OK));
  }
  array.release(&array);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_with_lz4_come_back_and_are_smaller),
      cmocka_unit_test(stream_of_blocks_with_lz4_outlives_its_blocks),
      cmocka_unit_test(blocks_of_both_kinds_are_read_together),
      cmocka_unit_test(blocks_with_damaged_frames_are_corrupt),
      cmocka_unit_test(sink_with_lz4_without_memory_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

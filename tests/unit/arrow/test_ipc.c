/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: schemas, projection, who owns what, bytes that are cut, altered or hostile. */
#include "arrow/ipc.h"

#include "base/mem.h"
#include "support/made_arrow.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const wide_layout = "+s(i;u;+l(l);b;+us:0,1(i;u);+s(d:5,1;z);+w:2(s);n;+m(+s(u;i)))";

typedef struct sample {
  struct ArrowSchema schema, block_schema;
  struct ArrowArray rows;
  buf message;
  buf text;
} sample;

static void sample_open(sample *s, const char *layout_text, int64_t rows) {
  memset(s, 0, sizeof *s);
  batch_builder *b;
  uint64_t written = 0;
  made_schema(layout_text, &s->schema);
  assert_int_equal(arrow_block_schema(&s->schema, &s->block_schema, NULL), HF_OK);
  made_array(&s->schema, &(made_options){.seed = 7, .rows = rows, .null_percent = 20}, &s->rows);
  assert_int_equal(batch_builder_new_for(&s->schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &s->rows, 0, rows, NULL), HF_OK);
  assert_int_equal(ipc_write_batch(b, &s->message, -1, NULL, &written, NULL), HF_OK);
  batch_builder_free(b);
  made_rows_text(&s->schema, &s->rows, &s->text);
}

static void sample_close(sample *s) {
  s->schema.release(&s->schema);
  s->block_schema.release(&s->block_schema);
  s->rows.release(&s->rows);
  buf_reset(&s->message);
  buf_reset(&s->text);
}

static void schema_with_odd_names_comes_back(void **state) {
  (void)state;
  struct ArrowSchema schema;
  struct ArrowSchema block_schema;
  struct ArrowSchema back;
  made_schema("+s(i;i;u;tin;d:10,2;+l(u);C<u>;+m(+s(u;i));+ud:4,5(i;u))", &schema);
  static const char *const names[] = {"", "same", "same", "täglich 🦆", "a\"b\\c\n", NULL, "e", "f", "g"};
  char *kept[9];
  for (size_t i = 0; i < 9; i++) {
    kept[i] = (char *)(uintptr_t)schema.children[i]->name;
    schema.children[i]->name = names[i];
  }
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  buf bytes = {0};
  assert_int_equal(ipc_write_schema(&block_schema, &bytes, NULL), HF_OK);
  assert_int_equal(bytes.length % 64, 0);
  ipc_cursor cursor = {bytes.data, bytes.length};
  assert_int_equal(ipc_read_schema(&cursor, &back, NULL), HF_OK);
  assert_int_equal(cursor.left, 0);
  assert_true(arrow_schemas_alike(&block_schema, &back));
  for (size_t i = 0; i < 9; i++) {
    assert_string_equal(back.children[i]->name, names[i] == NULL ? "" : names[i]);
    schema.children[i]->name = kept[i];
  }
  assert_string_equal(back.children[3]->format, "w:16");
  assert_non_null(back.children[3]->metadata);
  assert_string_equal(back.children[4]->format, "d:10,2,64");
  assert_string_equal(back.children[6]->format, "u");
  assert_string_equal(back.children[8]->format, "+us:0,1");
  buf_reset(&bytes);
  back.release(&back);
  schema.release(&schema);
  block_schema.release(&block_schema);
}

static void schema_cut_anywhere_is_corrupt(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 10);
  buf bytes = {0};
  assert_int_equal(ipc_write_schema(&s.block_schema, &bytes, NULL), HF_OK);
  for (size_t length = 0; length < bytes.length; length++) {
    char *cut = malloc(length + 1); /* so that ASan sees each end */
    memcpy(cut, bytes.data, length);
    ipc_cursor cursor = {cut, length};
    struct ArrowSchema back;
    assert_int_equal(ipc_read_schema(&cursor, &back, NULL), HF_E_BLOCK_CORRUPT);
    free(cut);
  }
  buf_reset(&bytes);
  sample_close(&s);
}

/* Every byte is set to telling values: parts go missing, positions lead anywhere. */
static void schema_altered_anywhere_is_read_or_refused(void **state) {
  (void)state;
  static const uint8_t telling[] = {0x00, 0x01, 0x04, 0x7f, 0x80, 0xff};
  struct ArrowSchema schema;
  struct ArrowSchema block_schema;
  buf bytes = {0};
  size_t refused = 0;
  made_schema("+s(i;tin;d:10,2;tsu:Europe/Berlin;+m(+s(u;i));+us:0,1(i;u);+w:3(b))", &schema);
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  assert_int_equal(ipc_write_schema(&block_schema, &bytes, NULL), HF_OK);
  for (size_t at = 0; at < bytes.length; at++) {
    for (size_t k = 0; k < sizeof telling; k++) {
      char kept = bytes.data[at];
      bytes.data[at] = (char)telling[k];
      ipc_cursor cursor = {bytes.data, bytes.length};
      struct ArrowSchema back;
      hf_status status = ipc_read_schema(&cursor, &back, NULL);
      bytes.data[at] = kept;
      assert_true(status == HF_OK || status == HF_E_BLOCK_CORRUPT || status == HF_E_UNSUPPORTED);
      refused += status != HF_OK;
      if (status == HF_OK) {
        back.release(&back);
      }
    }
  }
  assert_true(refused > 300);
  buf_reset(&bytes);
  schema.release(&schema);
  block_schema.release(&block_schema);
}

static void batch_projection_looks_at_picked_columns_only(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(i;u;l)", 100);
  static const size_t columns[] = {2, 0};
  ipc_decoder *decoder;
  assert_int_equal(ipc_decoder_new(&s.block_schema, columns, 2, &decoder, NULL), HF_OK);
  struct ArrowArray all;
  ipc_decoder *every;
  ipc_cursor cursor = {s.message.data, s.message.length};
  assert_int_equal(ipc_decoder_new(&s.block_schema, NULL, 0, &every, NULL), HF_OK);
  assert_int_equal(ipc_read_batch(every, &cursor, &(ipc_read_options){0}, &all, NULL), HF_OK);
  memset((void *)(uintptr_t)all.children[1]->buffers[1], 0x7f, 404); /* the text column's offsets */
  all.release(&all);
  cursor = (ipc_cursor){s.message.data, s.message.length};
  assert_int_equal(ipc_read_batch(every, &cursor, &(ipc_read_options){.validate = true}, &all, NULL),
                   HF_E_BLOCK_CORRUPT);
  struct ArrowArray two;
  assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){.validate = true}, &two, NULL),
                   HF_OK);
  assert_int_equal(two.n_children, 2);
  for (int64_t row = 0; row < 100; row++) {
    buf expected = {0};
    buf found = {0};
    made_value_text(s.schema.children[2], s.rows.children[2], row, &expected);
    made_value_text(s.schema.children[2], two.children[0], row, &found);
    assert_string_equal(buf_cstr(&expected), buf_cstr(&found));
    buf_reset(&expected);
    buf_reset(&found);
  }
  two.release(&two);
  ipc_decoder_free(decoder);
  ipc_decoder_free(every);
  sample_close(&s);
}

static void batch_without_columns_keeps_its_count(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 33);
  static const size_t none[1];
  ipc_decoder *decoder;
  struct ArrowArray rows;
  ipc_cursor cursor = {s.message.data, s.message.length};
  assert_int_equal(ipc_decoder_new(&s.block_schema, none, 0, &decoder, NULL), HF_OK);
  assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){0}, &rows, NULL), HF_OK);
  assert_int_equal(rows.length, 33);
  assert_int_equal(rows.n_children, 0);
  rows.release(&rows);
  ipc_decoder_free(decoder);
  sample_close(&s);
}

static void count_release(void *context) {
  ++*(int *)context;
}

/* A consumer may take a child and release its parent: the child keeps the batch alive. */
static void batch_child_moved_out_outlives_decoder_and_parent(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 50);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  int released = 0;
  ipc_cursor cursor = {s.message.data, s.message.length};
  ipc_read_options options = {.on_release = count_release, .context = &released};
  assert_int_equal(ipc_decoder_new(&s.block_schema, NULL, 0, &decoder, NULL), HF_OK);
  assert_int_equal(ipc_read_batch(decoder, &cursor, &options, &rows, NULL), HF_OK);
  ipc_decoder_free(decoder);
  struct ArrowArray list = *rows.children[2];
  rows.children[2]->release = NULL;
  rows.release(&rows);
  assert_null(rows.release);
  assert_int_equal(released, 0);
  buf found = {0};
  made_value_text(s.block_schema.children[2], &list, 49, &found);
  assert_true(found.length > 0);
  buf_reset(&found);
  list.release(&list);
  assert_int_equal(released, 1);
  sample_close(&s);
}

/* Reads a copy of the bytes, and all its values when it is accepted. */
static hf_status read_copy(const sample *s, const char *bytes, size_t length) {
  char *copy = aligned_alloc(64, (length / 64 + 1) * 64);
  memcpy(copy, bytes, length);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  int released = 0;
  ipc_cursor cursor = {copy, length};
  ipc_read_options options = {.validate = true, .on_release = count_release, .context = &released};
  hf_error error = {0};
  assert_int_equal(ipc_decoder_new(&s->block_schema, NULL, 0, &decoder, NULL), HF_OK);
  hf_status status = ipc_read_batch(decoder, &cursor, &options, &rows, &error);
  if (status == HF_OK && rows.length < 10000) {
    buf text = {0};
    made_rows_text(&s->block_schema, &rows, &text);
    buf_reset(&text);
  }
  if (status == HF_OK) {
    rows.release(&rows);
  } else {
    assert_int_equal(status, HF_E_BLOCK_CORRUPT);
    assert_int_equal(cursor.left, length);
  }
  assert_int_equal(released, status == HF_OK);
  hf_error_reset(&error);
  ipc_decoder_free(decoder);
  free(copy);
  return status;
}

static void batch_cut_anywhere_is_corrupt(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 20);
  assert_int_equal(read_copy(&s, s.message.data, s.message.length), HF_OK);
  for (size_t length = 0; length < s.message.length; length++) {
    assert_int_equal(read_copy(&s, s.message.data, length), HF_E_BLOCK_CORRUPT);
  }
  sample_close(&s);
}

/* Every byte is set to telling values, then random ones several at a time: an answer or BLOCK_CORRUPT, never a crash. */
static void batch_altered_anywhere_is_read_or_refused(void **state) {
  (void)state;
  static const uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  sample s;
  sample_open(&s, wide_layout, 20);
  char *bytes = malloc(s.message.length);
  size_t refused = 0;
  for (size_t at = 0; at < s.message.length; at++) {
    for (size_t k = 0; k < sizeof telling; k++) {
      memcpy(bytes, s.message.data, s.message.length);
      bytes[at] = (char)telling[k];
      refused += read_copy(&s, bytes, s.message.length) != HF_OK;
    }
  }
  uint32_t random = 1;
  for (int round = 0; round < 3000; round++) {
    memcpy(bytes, s.message.data, s.message.length);
    for (int k = 0; k < 1 + round % 5; k++) {
      random = random * 1664525u + 1013904223u;
      bytes[(random >> 8) % s.message.length] ^= (char)(1u << (random & 7));
    }
    refused += read_copy(&s, bytes, s.message.length) != HF_OK;
  }
  assert_true(refused > 500);
  free(bytes);
  sample_close(&s);
}

/* A buffer whose offset and length add up to less than the body by overflow. */
static void batch_buffer_that_overflows_is_corrupt(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(l)", 100);
  uint64_t *words = (uint64_t *)(void *)s.message.data;
  bool is_found = false;
  for (size_t i = 0; i + 1 < 64 && !is_found; i++) {
    if (words[i + 1] == 800) { /* the entry of the values: offset, then 100 rows of 8 bytes */
      words[i] = UINT64_MAX - 63;
      is_found = true;
    }
  }
  assert_true(is_found);
  assert_int_equal(read_copy(&s, s.message.data, s.message.length), HF_E_BLOCK_CORRUPT);
  sample_close(&s);
}

static void batch_to_file_equals_batch_to_memory(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 2000);
  batch_builder *b;
  uint64_t written = 0;
  char path[] = "/tmp/hf_ipc_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(batch_builder_new_for(&s.schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &s.rows, 0, 2000, NULL), HF_OK);
  assert_int_equal(ipc_write_batch(b, NULL, fd, path, &written, NULL), HF_OK);
  assert_int_equal(written, s.message.length);
  char *bytes = malloc(written);
  assert_int_equal(pread(fd, bytes, written, 0), written);
  assert_memory_equal(bytes, s.message.data, written);
  free(bytes);
  close(fd);
  unlink(path);
  int full = open("/dev/full", O_WRONLY);
  if (full >= 0) {
    assert_int_equal(ipc_write_batch(b, NULL, full, "/dev/full", &written, NULL), HF_E_DISK_FULL);
    close(full);
  }
  batch_builder_free(b);
  sample_close(&s);
}

static void decoder_of_engine_schema_is_refused(void **state) {
  (void)state;
  static const char *const layouts[] = {"+s(C<u>)", "+s(vu)", "+s(+ud:0,1(i;u))", "+s(tin)", "+s(d:10,2)"};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    struct ArrowSchema schema;
    ipc_decoder *decoder;
    made_schema(layouts[i], &schema);
    assert_int_equal(ipc_decoder_new(&schema, NULL, 0, &decoder, NULL), HF_E_UNSUPPORTED);
    schema.release(&schema);
  }
}

static void decoder_without_memory_leaves_nothing(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 20);
  for (uint64_t n = 1;; n++) {
    ipc_decoder *decoder = NULL;
    struct ArrowArray rows = {0};
    ipc_cursor cursor = {s.message.data, s.message.length};
    mem_fail_after(n);
    hf_status status = ipc_decoder_new(&s.block_schema, NULL, 0, &decoder, NULL);
    if (status == HF_OK) {
      status = ipc_read_batch(decoder, &cursor, &(ipc_read_options){0}, &rows, NULL);
    }
    mem_fail_after(0);
    ipc_decoder_free(decoder);
    if (status == HF_OK) {
      rows.release(&rows);
      assert_true(n > 3);
      break;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
  }
  sample_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schema_with_odd_names_comes_back),
      cmocka_unit_test(schema_cut_anywhere_is_corrupt),
      cmocka_unit_test(schema_altered_anywhere_is_read_or_refused),
      cmocka_unit_test(batch_projection_looks_at_picked_columns_only),
      cmocka_unit_test(batch_without_columns_keeps_its_count),
      cmocka_unit_test(batch_child_moved_out_outlives_decoder_and_parent),
      cmocka_unit_test(batch_cut_anywhere_is_corrupt),
      cmocka_unit_test(batch_altered_anywhere_is_read_or_refused),
      cmocka_unit_test(batch_buffer_that_overflows_is_corrupt),
      cmocka_unit_test(batch_to_file_equals_batch_to_memory),
      cmocka_unit_test(decoder_of_engine_schema_is_refused),
      cmocka_unit_test(decoder_without_memory_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

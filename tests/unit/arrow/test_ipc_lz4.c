/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed batches: every type comes back; frames that are cut, altered or lie; buffers left alone. */
#include "arrow/ipc.h"

#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const wide_layout = "+s(i;u;+l(l);b;+us:0,1(i;u);+s(d:5,1;z);+w:2(s);n;+m(+s(u;i)))";

typedef struct sample {
  struct ArrowSchema schema, block_schema;
  buf plain, packed; /* messages of the same rows */
  buf text;
  uint64_t parts[64]; /* what the writer's observer saw, XOR of all bytes and sizes */
} sample;

static void observe(void *context, size_t part, const void *bytes, size_t length) {
  uint64_t *parts = context;
  parts[part] = parts[part] * 31 + length;
  for (size_t i = 0; i < length; i++) {
    parts[part] = parts[part] * 131 + ((const uint8_t *)bytes)[i];
  }
}

/* Messages of `repeats` times the same random rows, which LZ4 makes shorter. */
static void sample_open(sample *s, const char *layout_text, int64_t rows, unsigned repeats) {
  memset(s, 0, sizeof *s);
  batch_builder *b;
  struct ArrowArray array;
  uint64_t written = 0;
  made_schema(layout_text, &s->schema);
  assert_int_equal(arrow_block_schema(&s->schema, &s->block_schema, NULL), HF_OK);
  made_array(&s->schema, &(made_options){.seed = 7, .rows = rows, .null_percent = 20}, &array);
  assert_int_equal(batch_builder_new_for(&s->schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  for (unsigned i = 0; i < repeats; i++) {
    assert_int_equal(batch_builder_append(b, &array, 0, rows, NULL), HF_OK);
    made_rows_text(&s->schema, &array, &s->text);
  }
  assert_int_equal(ipc_write_batch(b, &s->plain, -1, NULL, &written, NULL), HF_OK);
  ipc_target to = {.out = &s->packed,
                   .fd = -1,
                   .observe = observe,
                   .context = s->parts,
                   .compression = IPC_COMPRESSION_LZ4};
  assert_int_equal(ipc_write_batch_to(b, &to, &written, NULL), HF_OK);
  assert_int_equal(written, s->packed.length);
  assert_int_equal(written % 64, 0);
  batch_builder_free(b);
  array.release(&array);
}

static void sample_close(sample *s) {
  s->schema.release(&s->schema);
  s->block_schema.release(&s->block_schema);
  buf_reset(&s->plain);
  buf_reset(&s->packed);
  buf_reset(&s->text);
}

static void count_release(void *context) {
  *(int *)context += 1;
}

/* Reads a copy of the bytes, and all its values when it is accepted; they go to *text unless it is NULL. */
static hf_status read_copy(const sample *s, const char *bytes, size_t length, buf *text) {
  char *copy = aligned_alloc(64, (length / 64 + 1) * 64);
  memcpy(copy, bytes, length);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  int released = 0;
  ipc_cursor cursor = {copy, length};
  ipc_read_options options = {.validate = true, .on_release = count_release, .context = &released};
  buf own = {0};
  assert_int_equal(ipc_decoder_new(&s->block_schema, NULL, 0, &decoder, NULL), HF_OK);
  hf_status status = ipc_read_batch(decoder, &cursor, &options, &rows, NULL);
  ipc_decoder_free(decoder); /* the batch has its memory itself */
  if (status == HF_OK) {
    if (rows.length < 100000) {
      made_rows_text(&s->block_schema, &rows, text == NULL ? &own : text);
    }
    rows.release(&rows);
  } else {
    assert_int_equal(status, HF_E_BLOCK_CORRUPT);
    assert_int_equal(cursor.left, length);
  }
  assert_int_equal(released, status == HF_OK);
  buf_reset(&own);
  free(copy);
  return status;
}

static void lz4_batch_of_each_type_comes_back(void **state) {
  (void)state;
  static const char *const layouts[] = {"n",
                                        "b",
                                        "c",
                                        "C",
                                        "s",
                                        "S",
                                        "i",
                                        "I",
                                        "l",
                                        "L",
                                        "f",
                                        "g",
                                        "u",
                                        "z",
                                        "U",
                                        "Z",
                                        "w:3",
                                        "w:16",
                                        "d:4,1",
                                        "d:9,2",
                                        "d:18,3",
                                        "d:38,5",
                                        "tdD",
                                        "ttu",
                                        "tsu:",
                                        "tsu:Europe/Berlin",
                                        "tsn:",
                                        "tin",
                                        "+l(u)",
                                        "+L(l)",
                                        "+w:3(s)",
                                        "+s(i;u)",
                                        "+m(+s(u;i))",
                                        "+us:0,1(i;u)",
                                        "+l(+l(+s(u;l)))",
                                        "C<u>",
                                        "vu"};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    for (int64_t rows = 0; rows <= 1000; rows = rows * 10 + 1) {
      sample s;
      char layout_text[64];
      buf found = {0};
      snprintf(layout_text, sizeof layout_text, "+s(%s)", layouts[i]);
      sample_open(&s, layout_text, rows, 20);
      buf plain = {0};
      assert_int_equal(read_copy(&s, s.plain.data, s.plain.length, &plain), HF_OK);
      assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, &found), HF_OK);
      assert_int_equal(plain.length, found.length);
      assert_true(found.length == 0 || memcmp(plain.data, found.data, found.length) == 0);
      buf_reset(&plain);
      buf_reset(&found);
      sample_close(&s);
    }
  }
}

static void lz4_batch_that_repeats_is_smaller(void **state) {
  (void)state;
  sample s;
  buf found = {0};
  sample_open(&s, wide_layout, 500, 40);
  assert_true(s.packed.length < s.plain.length / 4);
  assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, &found), HF_OK);
  assert_string_equal(buf_cstr(&found), buf_cstr(&s.text));
  buf_reset(&found);
  sample_close(&s);
}

/* Random numbers give no shorter frames: each buffer is its own after the length -1. */
static void lz4_batch_that_does_not_shrink_is_left_alone(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(l)", 3000, 1);
  assert_true(s.packed.length >= s.plain.length);
  bool is_found = false;
  for (size_t at = 0; at + 8 <= s.packed.length && !is_found; at += 64) {
    int64_t word;
    memcpy(&word, s.packed.data + at, sizeof word);
    is_found = at > 0 && word == -1;
  }
  assert_true(is_found);
  assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, NULL), HF_OK);
  sample_close(&s);
}

/* A column that was not picked may hold what it likes. */
static void lz4_projection_unpacks_picked_columns_only(void **state) {
  (void)state;
  static const size_t columns[] = {0};
  sample s;
  sample_open(&s, "+s(i;u)", 500, 40);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  memset(s.packed.data + s.packed.length - 512, 0x5a, 512); /* the end of the text */
  assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, NULL), HF_E_BLOCK_CORRUPT);
  ipc_cursor cursor = {s.packed.data, s.packed.length};
  assert_int_equal(ipc_decoder_new(&s.block_schema, columns, 1, &decoder, NULL), HF_OK);
  assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){.validate = true}, &rows, NULL),
                   HF_OK);
  assert_int_equal(rows.length, 20000);
  rows.release(&rows);
  ipc_decoder_free(decoder);
  sample_close(&s);
}

static void lz4_observers_of_both_sides_see_the_same(void **state) {
  (void)state;
  uint64_t read[64] = {0};
  uint64_t seen[64] = {0};
  sample s;
  sample_open(&s, wide_layout, 300, 10);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  assert_int_equal(ipc_decoder_new(&s.block_schema, NULL, 0, &decoder, NULL), HF_OK);
  ipc_cursor cursor = {s.packed.data, s.packed.length};
  ipc_read_options options = {.observe = observe, .observer = read};
  assert_int_equal(ipc_read_batch(decoder, &cursor, &options, &rows, NULL), HF_OK);
  rows.release(&rows);
  cursor = (ipc_cursor){s.packed.data, s.packed.length};
  assert_int_equal(ipc_observe_batch(decoder, &cursor, observe, seen, NULL), HF_OK);
  assert_int_equal(cursor.left, 0);
  assert_memory_equal(read, s.parts, sizeof read);
  assert_memory_equal(seen, s.parts, sizeof seen);
  ipc_decoder_free(decoder);
  sample_close(&s);
}

static void lz4_batch_cut_anywhere_is_corrupt(void **state) {
  (void)state;
  sample s;
  sample_open(&s, wide_layout, 10, 12);
  for (size_t length = 0; length < s.packed.length; length++) {
    assert_int_equal(read_copy(&s, s.packed.data, length, NULL), HF_E_BLOCK_CORRUPT);
  }
  sample_close(&s);
}

static void lz4_batch_altered_anywhere_is_read_or_refused(void **state) {
  (void)state;
  static const uint8_t telling[] = {0x00, 0x7f, 0xff};
  sample s;
  sample_open(&s, wide_layout, 10, 12);
  char *bytes = malloc(s.packed.length);
  size_t refused = 0;
  for (size_t at = 0; at < s.packed.length; at++) {
    for (size_t k = 0; k < sizeof telling; k++) {
      memcpy(bytes, s.packed.data, s.packed.length);
      bytes[at] = (char)telling[k];
      refused += read_copy(&s, bytes, s.packed.length, NULL) != HF_OK;
    }
  }
  assert_true(refused > 1000);
  free(bytes);
  sample_close(&s);
}

/* The place of the first frame: behind its length. */
static size_t frame_of(const sample *s) {
  static const uint8_t magic[] = {0x04, 0x22, 0x4d, 0x18};
  for (size_t at = 8; at + 4 <= s->packed.length; at += 8) {
    if (memcmp(s->packed.data + at, magic, sizeof magic) == 0) {
      return at;
    }
  }
  fail();
  return 0;
}

static void lz4_length_that_lies_is_corrupt(void **state) {
  (void)state;
  static const int64_t lies[] = {
      0, 1, 15999, 16001, 16008, 16064, 16065, 1 << 20, INT64_C(1) << 40, INT64_MAX, -1, -2, INT64_MIN};
  sample s;
  batch_builder *b;
  struct ArrowArray array;
  uint64_t written = 0;
  sample_open(&s, "+s(l)", 1, 1);
  made_array(&s.schema, &(made_options){.seed = 7, .rows = 100}, &array);
  assert_int_equal(batch_builder_new_for(&s.schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(batch_builder_append(b, &array, 0, 100, NULL), HF_OK); /* 2000 rows of 8 bytes */
  }
  buf_reset(&s.packed);
  ipc_target to = {.out = &s.packed, .fd = -1, .compression = IPC_COMPRESSION_LZ4};
  assert_int_equal(ipc_write_batch_to(b, &to, &written, NULL), HF_OK);
  char *length = s.packed.data + frame_of(&s) - 8;
  int64_t right;
  memcpy(&right, length, sizeof right);
  assert_int_equal(right, 16000);
  assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, NULL), HF_OK);
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    memcpy(length, &lies[i], sizeof lies[i]);
    assert_int_equal(read_copy(&s, s.packed.data, s.packed.length, NULL), HF_E_BLOCK_CORRUPT);
  }
  batch_builder_free(b);
  array.release(&array);
  sample_close(&s);
}

static void lz4_without_memory_leaves_nothing(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(i;u;+l(l))", 300, 20);
  ipc_decoder *decoder;
  struct ArrowArray rows;
  hf_status status = HF_E_OUT_OF_MEMORY;
  assert_int_equal(ipc_decoder_new(&s.block_schema, NULL, 0, &decoder, NULL), HF_OK);
  for (uint64_t n = 1; status != HF_OK; n++) {
    ipc_cursor cursor = {s.packed.data, s.packed.length};
    mem_fail_after(n);
    status = ipc_read_batch(decoder, &cursor, &(ipc_read_options){0}, &rows, NULL);
    mem_fail_after(0);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    assert_true(status != HF_OK || n > 5);
  }
  rows.release(&rows);
  ipc_decoder_free(decoder);
  sample_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lz4_batch_of_each_type_comes_back),
      cmocka_unit_test(lz4_batch_that_repeats_is_smaller),
      cmocka_unit_test(lz4_batch_that_does_not_shrink_is_left_alone),
      cmocka_unit_test(lz4_projection_unpacks_picked_columns_only),
      cmocka_unit_test(lz4_observers_of_both_sides_see_the_same),
      cmocka_unit_test(lz4_batch_cut_anywhere_is_corrupt),
      cmocka_unit_test(lz4_batch_altered_anywhere_is_read_or_refused),
      cmocka_unit_test(lz4_length_that_lies_is_corrupt),
      cmocka_unit_test(lz4_without_memory_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

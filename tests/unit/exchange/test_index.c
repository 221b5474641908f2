/* SPDX-License-Identifier: Apache-2.0 */
/* The index's bytes: there and back, cut, altered, hostile, without memory. */
#include "exchange/exchange.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

static const data_type integer = {.kind = TYPE_INTEGER};
static const data_type decimal = {.kind = TYPE_DECIMAL, .width = 38, .scale = 10};
static const data_type *const fields[] = {&integer, &decimal};
static const char *const field_names[] = {"", "täglich"};
static const data_type row = {
    .kind = TYPE_STRUCT, .n_children = 2, .children = fields, .n_names = 2, .names = field_names};
static const data_type *const of_row[] = {&row};
static const data_type rows = {.kind = TYPE_ARRAY, .array_size = 7, .n_children = 1, .children = of_row};
static const char *const moods[] = {"", "it's", "ok"};
static const data_type mood = {.kind = TYPE_ENUM, .n_names = 3, .names = moods};
static const column columns[] = {{"a", &integer}, {"a", &rows}, {"", &mood}};
static const uint64_t file_bytes[] = {1000, 0, 5000};
static const uint64_t parts[] = {1, UINT64_MAX, 0, 7, 2, 3, 4, 5, 6, 7, 8, 9};
static const block_range ranges[9] = {
    {.nulls = 3, .is_known = true, .least = {1, 2}, .most = {UINT64_MAX, 4}}, [8] = {.nulls = 5}};
static const block blocks[] = {
    {.file = 0, .partition = 1, .offset = 64, .bytes = 900, .rows = 10, .parts = parts, .ranges = ranges},
    {.file = 2,
     .partition = 0,
     .offset = 0,
     .bytes = 4000,
     .rows = 0,
     .parts = parts + 4,
     .ranges = ranges + 3},
    {.file = 2,
     .partition = 2,
     .offset = 4000,
     .bytes = 1000,
     .rows = 5,
     .parts = parts + 8,
     .ranges = ranges + 6},
};
static const block_piece pieces[] = {{64, 100, 7, 11}, {900, 100, 248, UINT64_MAX}};
static const block_dictionary dictionaries[] = {
    {.file = 0, .column = 2, .code_bytes = 1, .n_pieces = 2, .pieces = pieces},
    {.file = 2, .column = 0, .code_bytes = 2},
};
static const uint32_t hash_columns[] = {2, 0};
static const block_index sample = {.columns = {3, columns},
                                   .arrow_schema = "schema",
                                   .arrow_schema_bytes = 6,
                                   .partitions = 3,
                                   .n_files = 3,
                                   .ordered = true,
                                   .rows = 15,
                                   .bytes = 5900,
                                   .file_bytes = file_bytes,
                                   .n_dictionaries = 2,
                                   .dictionaries = dictionaries,
                                   .hash_version = 3,
                                   .n_hash_columns = 2,
                                   .hash_columns = hash_columns,
                                   .has_ranges = true,
                                   .n_blocks = 3,
                                   .blocks = blocks};

static void index_comes_back_as_it_was(void **state) {
  (void)state;
  buf bytes = {0};
  block_index back;
  arena *a = arena_new();
  buf_text(&bytes, "before"); /* it is appended */
  assert_int_equal(block_index_encode(&sample, &bytes, NULL), HF_OK);
  assert_int_equal(block_index_decode(bytes.data + 6, bytes.length - 6, a, &back, NULL), HF_OK);
  assert_true(schema_equal(&back.columns, &sample.columns));
  assert_int_equal(back.partitions, 3);
  assert_int_equal(back.n_files, 3);
  assert_true(back.ordered);
  assert_int_equal(back.rows, 15);
  assert_int_equal(back.bytes, 5900);
  assert_int_equal(back.arrow_schema_bytes, 6);
  assert_memory_equal(back.arrow_schema, "schema", 6);
  assert_memory_equal(back.file_bytes, file_bytes, sizeof file_bytes);
  assert_int_equal(back.n_blocks, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(back.blocks[i].file, blocks[i].file);
    assert_int_equal(back.blocks[i].partition, blocks[i].partition);
    assert_int_equal(back.blocks[i].offset, blocks[i].offset);
    assert_int_equal(back.blocks[i].bytes, blocks[i].bytes);
    assert_int_equal(back.blocks[i].rows, blocks[i].rows);
    assert_memory_equal(back.blocks[i].parts, blocks[i].parts, 4 * sizeof *parts);
    assert_int_equal(back.blocks[i].ranges[0].nulls, blocks[i].ranges[0].nulls);
    assert_int_equal(back.blocks[i].ranges[0].is_known, blocks[i].ranges[0].is_known);
    assert_memory_equal(&back.blocks[i].ranges[0].least, &blocks[i].ranges[0].least, sizeof(range_key));
    assert_memory_equal(&back.blocks[i].ranges[0].most, &blocks[i].ranges[0].most, sizeof(range_key));
    assert_int_equal(back.blocks[i].checksum, XXH3_64bits(blocks[i].parts, 4 * sizeof *parts));
  }
  assert_int_equal(back.blocks[2].ranges[2].nulls, 5);
  assert_int_equal(back.hash_version, 3);
  assert_int_equal(back.n_hash_columns, 2);
  assert_memory_equal(back.hash_columns, hash_columns, sizeof hash_columns);
  assert_int_equal(back.n_dictionaries, 2);
  assert_int_equal(back.dictionaries[0].column, 2);
  assert_int_equal(back.dictionaries[0].n_pieces, 2);
  assert_memory_equal(back.dictionaries[0].pieces, pieces, sizeof pieces);
  assert_int_equal(back.dictionaries[1].file, 2);
  assert_int_equal(back.dictionaries[1].code_bytes, 2);
  arena_free(a);
  buf_reset(&bytes);
}

/* Dictionaries that no sink writes: out of order, of no column, outside the file, with more entries than codes. */
static void index_with_impossible_dictionaries_is_corrupt(void **state) {
  (void)state;
  static const block_piece outside[] = {{950, 100, 1, 0}};
  static const block_piece too_many[] = {{0, 10, 200, 0}, {10, 10, 56, 0}};
  static const block_dictionary bad[][2] = {
      {{.file = 2, .column = 0, .code_bytes = 1}, {.file = 0, .column = 2, .code_bytes = 1}},
      {{.file = 0, .column = 2, .code_bytes = 1}, {.file = 0, .column = 2, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 1}, {.file = 0, .column = 3, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 1}, {.file = 3, .column = 0, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 0}, {.file = 2, .column = 0, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 3}, {.file = 2, .column = 0, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 1, .n_pieces = 1, .pieces = outside},
       {.file = 2, .code_bytes = 1}},
      {{.file = 0, .column = 0, .code_bytes = 1, .n_pieces = 2, .pieces = too_many},
       {.file = 2, .code_bytes = 1}},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    buf bytes = {0};
    block_index index = sample;
    block_index back;
    arena *a = arena_new();
    index.dictionaries = bad[i];
    assert_int_equal(block_index_encode(&index, &bytes, NULL), HF_OK);
    assert_int_equal(block_index_decode(bytes.data, bytes.length, a, &back, NULL), HF_E_BLOCK_CORRUPT);
    arena_free(a);
    buf_reset(&bytes);
  }
}

static void expect_corrupt(const void *bytes, size_t length) {
  char *copy = malloc(length + 1); /* so that ASan sees the end */
  memcpy(copy, bytes, length);
  block_index back;
  arena *a = arena_new();
  assert_int_equal(block_index_decode(copy, length, a, &back, NULL), HF_E_BLOCK_CORRUPT);
  arena_free(a);
  free(copy);
}

static void index_cut_or_altered_is_corrupt(void **state) {
  (void)state;
  buf bytes = {0};
  assert_int_equal(block_index_encode(&sample, &bytes, NULL), HF_OK);
  for (size_t length = 0; length < bytes.length; length++) {
    expect_corrupt(bytes.data, length);
  }
  for (size_t at = 0; at < bytes.length; at++) {
    bytes.data[at] ^= 0x10;
    expect_corrupt(bytes.data, bytes.length);
    bytes.data[at] ^= 0x10;
  }
  buf_reset(&bytes);
}

/* With a checksum that holds: whoever wrote it may have been hostile. */
static void index_hostile_is_decoded_or_corrupt(void **state) {
  (void)state;
  static const uint32_t telling[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 37};
  buf bytes = {0};
  assert_int_equal(block_index_encode(&sample, &bytes, NULL), HF_OK);
  size_t refused = 0;
  size_t body = bytes.length - 8;
  for (size_t at = 0; at + 4 <= body; at++) {
    for (size_t k = 0; k < sizeof telling / sizeof *telling; k++) {
      char *copy = malloc(bytes.length);
      memcpy(copy, bytes.data, bytes.length);
      memcpy(copy + at, &telling[k], 4);
      uint64_t checksum = XXH3_64bits(copy, body);
      memcpy(copy + body, &checksum, 8);
      block_index back;
      arena *a = arena_new();
      hf_status status = block_index_decode(copy, bytes.length, a, &back, NULL);
      assert_true(status == HF_OK || status == HF_E_BLOCK_CORRUPT);
      refused += status != HF_OK;
      arena_free(a);
      free(copy);
    }
  }
  assert_true(refused > 200);
  buf_reset(&bytes);
}

static void index_that_contradicts_itself_is_corrupt(void **state) {
  (void)state;
  block bad[3];
  for (int what = 0; what < 6; what++) {
    memcpy(bad, blocks, sizeof bad);
    block_index index = sample;
    index.blocks = bad;
    switch (what) {
      case 0:
        bad[0].file = 3;
        break;
      case 1:
        bad[0].partition = 3;
        break;
      case 2:
        bad[0].offset = 200;
        break;
      case 3:
        bad[0].offset = UINT64_MAX;
        break;
      case 4:
        index.rows = 16;
        break;
      default:
        index.bytes = 5899;
        break;
    }
    buf bytes = {0};
    assert_int_equal(block_index_encode(&index, &bytes, NULL), HF_OK);
    expect_corrupt(bytes.data, bytes.length);
    buf_reset(&bytes);
  }
}

static void index_of_a_type_nested_too_deeply_is_corrupt(void **state) {
  (void)state;
  enum { DEPTH = 100 };
  data_type lists[DEPTH];
  const data_type *children[DEPTH];
  const data_type *inner = &integer;
  for (int i = 0; i < DEPTH; i++) {
    children[i] = inner;
    lists[i] = (data_type){.kind = TYPE_LIST, .n_children = 1, .children = &children[i]};
    inner = &lists[i];
  }
  column one[] = {{"deep", inner}};
  block_index index = sample;
  index.columns = (schema){1, one};
  index.n_blocks = 0;
  index.rows = index.bytes = 0;
  buf bytes = {0};
  assert_int_equal(block_index_encode(&index, &bytes, NULL), HF_OK);
  expect_corrupt(bytes.data, bytes.length);
  buf_reset(&bytes);
}

static void index_without_memory_fails_cleanly(void **state) {
  (void)state;
  for (uint64_t n = 1;; n++) {
    buf bytes = {0};
    block_index back;
    arena *a = arena_new();
    mem_fail_after(n);
    hf_status status = block_index_encode(&sample, &bytes, NULL);
    if (status == HF_OK) {
      status = block_index_decode(bytes.data, bytes.length, a, &back, NULL);
    }
    mem_fail_after(0);
    arena_free(a);
    buf_reset(&bytes);
    if (status == HF_OK) {
      assert_true(n > 2);
      return;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
  }
}

static void index_that_is_not_there_is_missing(void **state) {
  (void)state;
  block_index back;
  hf_error error = {0};
  arena *a = arena_new();
  assert_int_equal(block_index_load("/tmp/hf_no_such_dir", a, &back, &error), HF_E_BLOCK_MISSING);
  assert_non_null(strstr(error.message, "hf_no_such_dir/index"));
  hf_error_reset(&error);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(index_comes_back_as_it_was),
      cmocka_unit_test(index_with_impossible_dictionaries_is_corrupt),
      cmocka_unit_test(index_cut_or_altered_is_corrupt),
      cmocka_unit_test(index_hostile_is_decoded_or_corrupt),
      cmocka_unit_test(index_that_contradicts_itself_is_corrupt),
      cmocka_unit_test(index_of_a_type_nested_too_deeply_is_corrupt),
      cmocka_unit_test(index_without_memory_fails_cleanly),
      cmocka_unit_test(index_that_is_not_there_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Held results: columns with codes, dictionaries that grow and give up, ranges, files that are damaged. */
#include "rig.h"

#include <fcntl.h>

static const char *const layout_of_all = "+s(u;l;d:10,2;z;b;+l(u);tdD)";

typedef struct held_sink {
  block_sink *sink;
  void *state;
  buf text;
} held_sink;

static void held_open(rig *r, held_sink *h, const char *layout_text) {
  rig_open(r, layout_text);
  r->options.batch_bytes = r->schema.n_children > 20 ? 256 << 10 : r->options.batch_bytes;
  r->options.held = true;
  r->options.budget_bytes = 16 << 20;
  memset(h, 0, sizeof *h);
  assert_int_equal(block_sink_new(&r->options, &h->sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(h->sink, &r->schema, &h->state, NULL), HF_OK);
}

/* Appends `repeats` times the same random rows. */
static void held_append(rig *r, held_sink *h, uint64_t seed, int64_t rows, unsigned repeats) {
  struct ArrowArray array;
  made_array(&r->schema, &(made_options){.seed = seed, .rows = rows, .null_percent = 10}, &array);
  for (unsigned i = 0; i < repeats; i++) {
    made_rows_text(&r->schema, &array, &h->text);
    assert_int_equal(block_sink_ops()->append(h->state, &array, NULL, NULL), HF_OK);
  }
  array.release(&array);
}

static void held_commit(rig *r, held_sink *h, block_index *out) {
  assert_int_equal(block_sink_ops()->close(h->state, NULL), HF_OK);
  block_sink_ops()->discard(h->state);
  assert_int_equal(block_sink_commit(h->sink, r->memory, out, NULL), HF_OK);
  assert_true(block_sink_peak_bytes(h->sink) <= r->options.budget_bytes);
  block_sink_free(h->sink);
}

static void held_close(rig *r, held_sink *h) {
  buf_reset(&h->text);
  rig_close(r);
}

static const block_dictionary *dictionary_of(const block_index *index, uint32_t file, uint32_t number) {
  for (size_t i = 0; i < index->n_dictionaries; i++) {
    if (index->dictionaries[i].file == file && index->dictionaries[i].column == number) {
      return &index->dictionaries[i];
    }
  }
  return NULL;
}

static void held_rows_that_repeat_come_back(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, layout_of_all);
  held_append(&r, &h, 1, 50, 300);
  held_commit(&r, &h, &index);
  assert_int_equal(index.n_files, 1);
  static const uint32_t coded[] = {0, 1, 2, 3, 6};
  for (size_t i = 0; i < 5; i++) {
    const block_dictionary *d = dictionary_of(&index, 0, coded[i]);
    assert_non_null(d);
    assert_int_equal(d->code_bytes, 1);
    assert_int_equal(d->n_pieces, 1);
  }
  assert_int_equal(index.n_dictionaries, 5);
  buf back = {0};
  rig_read_all(&r, true, &back);
  rig_expect_text(&h.text, &back);
  buf_reset(&back);
  held_close(&r, &h);
}

static void held_rows_of_a_stream_are_values(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, layout_of_all);
  held_append(&r, &h, 1, 50, 300);
  held_commit(&r, &h, &index);
  block_location location = {.dir = r.dir};
  struct ArrowArrayStream stream;
  struct ArrowSchema schema_of_stream;
  buf back = {0};
  assert_int_equal(block_stream_open(&location, 1, NULL, NULL, &stream, NULL), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &schema_of_stream), 0);
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    assert_null(batch.children[0]->dictionary);
    made_rows_text(&schema_of_stream, &batch, &back);
    batch.release(&batch);
  }
  rig_expect_text(&h.text, &back);
  schema_of_stream.release(&schema_of_stream);
  stream.release(&stream);
  buf_reset(&back);
  held_close(&r, &h);
}

/* First few values, then ever more: pieces, then wider codes or none in files of their own. */
static void held_dictionary_outgrown_ends_the_file(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, "+s(u;l)");
  held_append(&r, &h, 1, 50, 400);
  for (uint64_t i = 2; i < 9; i++) {
    held_append(&r, &h, i, 400, 30);
  }
  held_commit(&r, &h, &index);
  assert_true(index.n_files > 1);
  const block_dictionary *first = dictionary_of(&index, 0, 0);
  const block_dictionary *last = dictionary_of(&index, index.n_files - 1, 0);
  assert_non_null(first);
  assert_non_null(last);
  assert_int_equal(first->code_bytes, 1);
  assert_int_equal(last->code_bytes, 2);
  assert_non_null(dictionary_of(&index, 0, 1));
  assert_null(dictionary_of(&index, index.n_files - 1, 1)); /* numbers have narrow codes or none */
  assert_true(last->n_pieces > 1);
  buf back = {0};
  rig_read_all(&r, true, &back);
  rig_expect_text(&h.text, &back);
  buf_reset(&back);
  held_close(&r, &h);
}

/* Each of many columns gets too many values at another time: the files are bounded, not one a column. */
static void held_dictionaries_outgrown_one_by_one_end_few_files(void **state) {
  (void)state;
  enum { COLUMNS = 40, ROWS = 2000 };
  rig r;
  held_sink h;
  block_index index;
  struct ArrowArray array;
  buf layout_text = {0};
  for (int i = 0; i < COLUMNS; i++) {
    buf_text(&layout_text, i == 0 ? "+s(l" : ";l");
  }
  buf_text(&layout_text, ")");
  held_open(&r, &h, buf_cstr(&layout_text));
  made_array(&r.schema, &(made_options){.seed = 1, .rows = ROWS}, &array);
  for (int step = -1; step < COLUMNS; step++) {
    for (int i = 0; i < COLUMNS; i++) {
      int64_t *values = (int64_t *)(uintptr_t)array.children[i]->buffers[1];
      for (int64_t row = 0; row < ROWS; row++) {
        values[row] = i <= step ? row : row % 5;
      }
    }
    made_rows_text(&r.schema, &array, &h.text);
    assert_int_equal(block_sink_ops()->append(h.state, &array, NULL, NULL), HF_OK);
  }
  held_commit(&r, &h, &index);
  assert_true(index.n_files > 2);
  assert_true(index.n_files <= 20);
  buf back = {0};
  rig_read_all(&r, true, &back);
  rig_expect_text(&h.text, &back);
  buf_reset(&back);
  array.release(&array);
  buf_reset(&layout_text);
  held_close(&r, &h);
}

static void held_rows_that_do_not_repeat_have_no_codes(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, "+s(l;+w:2(s))");
  held_append(&r, &h, 1, 20000, 1);
  held_commit(&r, &h, &index);
  assert_int_equal(index.n_files, 1);
  assert_int_equal(index.n_dictionaries, 0);
  buf back = {0};
  rig_read_all(&r, true, &back);
  rig_expect_text(&h.text, &back);
  buf_reset(&back);
  held_close(&r, &h);
}

static void held_sink_without_rows_commits(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, layout_of_all);
  held_commit(&r, &h, &index);
  assert_int_equal(index.rows, 0);
  assert_int_equal(index.n_dictionaries, 0);
  buf back = {0};
  rig_read_all(&r, true, &back);
  assert_string_equal(buf_cstr(&back), "");
  held_close(&r, &h);
}

/* ---------------------------------------------------------------------- ranges */

static void held_blocks_know_their_ranges(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  struct ArrowArray array;
  held_open(&r, &h, "+s(i;+l(u))");
  made_array(&r.schema, &(made_options){.seed = 4, .rows = 5000, .null_percent = 20}, &array);
  int32_t *values = (int32_t *)(uintptr_t)array.children[0]->buffers[1];
  const uint8_t *validity = array.children[0]->buffers[0];
  uint64_t nulls = 0;
  for (int32_t i = 0; i < 5000; i++) {
    bool is_valid = ((validity[i / 8] >> (i % 8)) & 1) != 0;
    nulls += !is_valid;
    values[i] = is_valid ? i - 100 : 1000000; /* what lies below a NULL does not count */
  }
  bool is_first = (validity[0] & 1) != 0;
  assert_int_equal(block_sink_ops()->append(h.state, &array, NULL, NULL), HF_OK);
  held_commit(&r, &h, &index);
  assert_true(index.has_ranges);
  uint64_t found = 0;
  range_key most = {0, 0};
  for (size_t i = 0; i < index.n_blocks; i++) {
    const block_range *range = &index.blocks[i].ranges[0];
    assert_true(range->is_known);
    assert_true(range_key_compare(range->least, range->most) <= 0);
    assert_true(range_key_compare(range->most, range_key_signed(4899)) <= 0);
    assert_true(i == 0 || range_key_compare(range->least, most) > 0); /* the rows ascend */
    most = range->most;
    found += range->nulls;
    assert_false(index.blocks[i].ranges[1].is_known);
  }
  assert_int_equal(found, nulls);
  if (is_first) {
    assert_int_equal(range_key_compare(index.blocks[0].ranges[0].least, range_key_signed(-100)), 0);
  }
  array.release(&array);
  held_close(&r, &h);
}

/* Of rows that ascend from 0, so many: reads with each filter by the key, and compares the last row of the answer. */
static void filters_leave_out_blocks(const rig *r, const block_index *index, const struct ArrowArray *array,
                                     int64_t key) {
  static const size_t columns[] = {0};
  const int64_t rows = array->length;
  const struct {
    range_op op;
    int64_t first, count; /* of the rows that meet it */
  } cases[] = {
      {RANGE_EQUAL, key, 1}, {RANGE_LESS, 0, key + 1},     {RANGE_MORE, key, rows - key},
      {RANGE_IS_NULL, 0, 0}, {RANGE_IS_NOT_NULL, 0, rows},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    range_filter filter = {0, cases[i].op, range_key_signed(key)};
    block_location location = {.dir = r->dir};
    block_input_options options = {
        .locations = &location, .n_locations = 1, .ordered = true, .filters = &filter, .n_filters = 1};
    block_input *input;
    buf text = {0}, line = {0};
    uint64_t read = 0, all = 0;
    assert_int_equal(block_input_new(&options, &input, NULL), HF_OK);
    block_input_blocks(input, &read, &all);
    assert_int_equal(all, index->n_blocks);
    assert_true(block_input_rows(input) >= (uint64_t)cases[i].count);
    assert_true(block_input_rows(input) <= (uint64_t)cases[i].count + 2 * (uint64_t)rows / index->n_blocks);
    assert_true(cases[i].count > 1 || read <= 1);
    block_input_free(input);
    buf_text(&text, "\n");
    assert_int_equal(rig_read(&options, columns, 1, &text, NULL), HF_OK);
    buf_text(&line, "\n");
    made_value_text(r->schema.children[0], array->children[0],
                    cases[i].count == 0 ? 0 : cases[i].first + cases[i].count - 1, &line);
    buf_text(&line, "\n");
    assert_true(cases[i].count == 0 || strstr(buf_cstr(&text), buf_cstr(&line)) != NULL);
    buf_reset(&line);
    buf_reset(&text);
  }
}

/* A filter reads few of the blocks, and all of its rows are in them: also the last and the first of a block. */
static void held_blocks_that_cannot_match_are_left_out(void **state) {
  (void)state;
  enum { ROWS = 200000 };
  rig r;
  held_sink h;
  block_index index;
  struct ArrowArray array;
  held_open(&r, &h, "+s(l;i)");
  made_array(&r.schema, &(made_options){.seed = 4, .rows = ROWS}, &array);
  int64_t *values = (int64_t *)(uintptr_t)array.children[0]->buffers[1];
  for (int64_t i = 0; i < ROWS; i++) {
    values[i] = i;
  }
  assert_int_equal(block_sink_ops()->append(h.state, &array, NULL, NULL), HF_OK);
  held_commit(&r, &h, &index);
  assert_true(index.n_blocks > 10);
  const int64_t keys[] = {77777, (int64_t)index.blocks[0].rows - 1, (int64_t)index.blocks[0].rows};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    filters_leave_out_blocks(&r, &index, &array, keys[i]);
  }
  array.release(&array);
  held_close(&r, &h);
}

static void keys_stand_in_the_order_of_values(void **state) {
  (void)state;
  static const double doubles[] = {-1.0 / 0.0, -1e300, -1.5, -1e-300, 0.0, 1e-300, 2.5, 1e300, 1.0 / 0.0};
  static const int64_t numbers[] = {INT64_MIN, -5, -1, 0, 1, 7, INT64_MAX};
  static const char *const texts[] = {"", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b", "\xff"};
  for (size_t i = 1; i < 9; i++) {
    assert_true(range_key_compare(range_key_double(doubles[i - 1]), range_key_double(doubles[i])) < 0);
  }
  assert_int_equal(range_key_compare(range_key_double(-0.0), range_key_double(0.0)), 0);
  assert_true(range_key_compare(range_key_double(1.0 / 0.0), range_key_double(0.0 / 0.0)) < 0);
  for (size_t i = 1; i < 7; i++) {
    assert_true(range_key_compare(range_key_signed(numbers[i - 1]), range_key_signed(numbers[i])) < 0);
  }
  for (size_t i = 1; i < 8; i++) {
    assert_true(range_key_compare(range_key_bytes(texts[i - 1], strlen(texts[i - 1])),
                                  range_key_bytes(texts[i], strlen(texts[i]))) < 0);
  }
  assert_int_equal(
      range_key_compare(range_key_bytes("0123456789abcdefX", 17), range_key_bytes("0123456789abcdefY", 17)),
      0); /* cut */
}

/* -------------------------------------------------------------------- damages */

static hf_status read_strings(const rig *r, hf_error *error) {
  static const size_t columns[] = {0};
  buf text = {0};
  block_location location = {.dir = r->dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .ordered = true};
  hf_status status = rig_read(&options, columns, 1, &text, error);
  buf_reset(&text);
  return status;
}

static void alter(const rig *r, const char *name, uint64_t at, uint8_t value) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", r->dir, name);
  int fd = open(path, O_WRONLY);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, &value, 1, (off_t)at), 1);
  close(fd);
}

/* Also without checking blocks a dictionary is held against its checksum; headers, offsets and bytes alike. */
static void held_dictionary_altered_anywhere_is_corrupt(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, "+s(u;l)");
  held_append(&r, &h, 1, 20, 100);
  held_commit(&r, &h, &index);
  const block_dictionary *d = dictionary_of(&index, 0, 0);
  assert_non_null(d);
  char path[160];
  snprintf(path, sizeof path, "%s/t0.arrow", r.dir);
  char *bytes = NULL;
  size_t length = 0;
  assert_int_equal(file_read_whole(path, 1 << 20, HF_E_IO, &bytes, &length, NULL), HF_OK);
  size_t refused = 0;
  for (uint64_t i = 0; i < d->pieces[0].bytes; i++) {
    uint64_t at = d->pieces[0].offset + i;
    alter(&r, "t0.arrow", at, (uint8_t)~bytes[at]);
    hf_error error = {0};
    hf_status status = read_strings(&r, &error);
    assert_true(status == HF_OK || status == HF_E_BLOCK_CORRUPT);
    refused += status != HF_OK;
    hf_error_reset(&error);
    alter(&r, "t0.arrow", at, (uint8_t)bytes[at]);
  }
  assert_true(refused > d->pieces[0].bytes / 3); /* padding is not looked at */
  mem_free(bytes);
  held_close(&r, &h);
}

static void held_file_cut_is_missing(void **state) {
  (void)state;
  rig r;
  held_sink h;
  block_index index;
  held_open(&r, &h, "+s(u;l)");
  held_append(&r, &h, 1, 20, 100);
  held_commit(&r, &h, &index);
  char path[160];
  snprintf(path, sizeof path, "%s/t0.arrow", r.dir);
  assert_int_equal(truncate(path, (off_t)dictionary_of(&index, 0, 0)->pieces[0].offset + 8), 0);
  hf_error error = {0};
  assert_int_equal(read_strings(&r, &error), HF_E_BLOCK_MISSING);
  hf_error_reset(&error);
  held_close(&r, &h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(held_rows_that_repeat_come_back),
      cmocka_unit_test(held_rows_of_a_stream_are_values),
      cmocka_unit_test(held_dictionary_outgrown_ends_the_file),
      cmocka_unit_test(held_dictionaries_outgrown_one_by_one_end_few_files),
      cmocka_unit_test(held_rows_that_do_not_repeat_have_no_codes),
      cmocka_unit_test(held_sink_without_rows_commits),
      cmocka_unit_test(held_blocks_know_their_ranges),
      cmocka_unit_test(held_blocks_that_cannot_match_are_left_out),
      cmocka_unit_test(keys_stand_in_the_order_of_values),
      cmocka_unit_test(held_dictionary_altered_anywhere_is_corrupt),
      cmocka_unit_test(held_file_cut_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

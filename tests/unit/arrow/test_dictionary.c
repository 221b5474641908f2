/* SPDX-License-Identifier: Apache-2.0 */
/* Columns with dictionaries: codes written, pieces merged, values back; schemas that announce them. */
#include "arrow/ipc.h"

#include "arrow/layout.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 4, REPEATS = 100, ROWS = 40 };

/* A batch whose rows repeat, and its text. */
typedef struct sample {
  struct ArrowSchema schema;
  batch_builder *builder;
  buf text;
} sample;

static void sample_append(sample *s, uint64_t seed, unsigned null_percent) {
  struct ArrowArray rows;
  made_array(&s->schema, &(made_options){.seed = seed, .rows = ROWS, .null_percent = null_percent}, &rows);
  for (int i = 0; i < REPEATS; i++) {
    assert_int_equal(batch_builder_append(s->builder, &rows, 0, ROWS, NULL), HF_OK);
    made_rows_text(&s->schema, &rows, &s->text);
  }
  rows.release(&rows);
}

static void sample_open(sample *s, unsigned null_percent) {
  memset(s, 0, sizeof *s);
  made_schema("+s(u;l;tdD;z)", &s->schema);
  assert_int_equal(batch_builder_new(&s->schema, &s->builder, NULL), HF_OK);
  sample_append(s, 1, null_percent);
}

static void sample_close(sample *s) {
  batch_builder_free(s->builder);
  s->schema.release(&s->schema);
  buf_reset(&s->text);
}

/* What a reader has of a written column. */
typedef struct column_read {
  struct ArrowArray pieces[4], columns[4], values;
  void *memory[4]; /* of the messages: the pieces point into it */
  size_t n;
} column_read;

/* Writes the entries from `first` on and reads them back as a piece. */
static void pass_piece(const sample *s, size_t column, const dictionary *d, uint32_t first,
                       column_read *out) {
  struct ArrowSchema *fields[] = {s->schema.children[column]};
  struct ArrowSchema one = {.format = "+s", .n_children = 1, .children = fields};
  static const ipc_read_options checked = {.validate = true};
  ipc_decoder *decoder;
  buf bytes = {0};
  uint64_t written = 0;
  ipc_target to = {.out = &bytes, .fd = -1};
  assert_int_equal(ipc_write_dictionary(d, first, &to, &written, NULL), HF_OK);
  assert_int_equal(written, bytes.length);
  void *aligned = mem_alloc_aligned(64, bytes.length);
  memcpy(aligned, bytes.data, bytes.length);
  ipc_cursor cursor = {aligned, bytes.length};
  assert_int_equal(ipc_decoder_new(&one, NULL, 0, &decoder, NULL), HF_OK);
  struct ArrowArray *root = &out->columns[out->n];
  assert_int_equal(ipc_read_dictionary(decoder, &cursor, &checked, root, NULL), HF_OK);
  assert_int_equal(cursor.left, 0);
  assert_int_equal(root->length, dictionary_entries(d) - first);
  out->pieces[out->n++] = *root->children[0];
  struct ArrowArray merged;
  const struct ArrowArray *pieces[4] = {&out->pieces[0], &out->pieces[1], &out->pieces[2], &out->pieces[3]};
  assert_int_equal(
      dictionary_merge(s->schema.children[column], pieces, out->n, dictionary_code_bytes(d), &merged, NULL),
      HF_OK);
  if (out->values.release != NULL) {
    out->values.release(&out->values);
  }
  out->values = merged;
  ipc_decoder_free(decoder);
  buf_reset(&bytes);
  out->memory[out->n - 1] = aligned;
}

static void column_read_close(column_read *c) {
  for (size_t i = 0; i < c->n; i++) {
    c->columns[i].release(&c->columns[i]);
    mem_free(c->memory[i]);
  }
  if (c->values.release != NULL) {
    c->values.release(&c->values);
  }
}

/* All columns through codes and back; the dictionaries come in one piece. */
static void pass_through(sample *s, const uint8_t *code_bytes) {
  size_t rows = (size_t)batch_builder_rows(s->builder);
  column_read read[COLUMNS];
  dictionary *dictionaries[COLUMNS];
  ipc_codes codes[COLUMNS];
  buf bytes = {0};
  uint64_t written = 0;
  memset(read, 0, sizeof read);
  for (size_t i = 0; i < COLUMNS; i++) {
    bool is_full = false;
    void *room = mem_alloc(rows * 2);
    assert_int_equal(dictionary_new(s->builder, i, code_bytes[i], &dictionaries[i], NULL), HF_OK);
    assert_int_equal(dictionary_encode(dictionaries[i], s->builder, room, &is_full, NULL), HF_OK);
    assert_false(is_full);
    codes[i] = (ipc_codes){room, code_bytes[i]};
    pass_piece(s, i, dictionaries[i], 0, &read[i]);
  }
  ipc_target to = {.out = &bytes, .fd = -1, .codes = codes};
  assert_int_equal(ipc_write_batch_to(s->builder, &to, &written, NULL), HF_OK);
  void *aligned = mem_alloc_aligned(64, bytes.length);
  memcpy(aligned, bytes.data, bytes.length);
  ipc_cursor cursor = {aligned, bytes.length};
  ipc_decoder *decoder;
  static const ipc_read_options checked = {.validate = true};
  struct ArrowArray back;
  assert_int_equal(ipc_decoder_new_coded(&s->schema, code_bytes, NULL, 0, &decoder, NULL), HF_OK);
  assert_int_equal(ipc_read_batch(decoder, &cursor, &checked, &back, NULL), HF_OK);
  for (size_t i = 0; i < COLUMNS; i++) {
    back.children[i]->dictionary = &read[i].values;
    assert_int_equal(dictionary_unfold(s->schema.children[i], back.children[i], code_bytes[i], NULL), HF_OK);
  }
  buf text = {0};
  made_rows_text(&s->schema, &back, &text);
  assert_string_equal(buf_cstr(&text), buf_cstr(&s->text));
  back.release(&back);
  for (size_t i = 0; i < COLUMNS; i++) {
    dictionary_free(dictionaries[i]);
    column_read_close(&read[i]);
    mem_free((void *)(uintptr_t)codes[i].codes);
  }
  buf_reset(&text);
  buf_reset(&bytes);
  mem_free(aligned);
  ipc_decoder_free(decoder);
}

static void dictionary_of_every_kind_gives_the_values_back(void **state) {
  (void)state;
  static const uint8_t narrow[] = {1, 1, 1, 1};
  static const uint8_t wide[] = {2, 2, 2, 2};
  static const unsigned null_percents[] = {0, 20, 100};
  for (size_t i = 0; i < 3; i++) {
    sample s;
    sample_open(&s, null_percents[i]);
    pass_through(&s, narrow);
    pass_through(&s, wide);
    sample_close(&s);
  }
}

static void dictionary_grown_comes_in_pieces(void **state) {
  (void)state;
  for (size_t column = 0; column < COLUMNS; column++) {
    sample s;
    dictionary *d;
    bool is_full = false;
    column_read read;
    memset(&read, 0, sizeof read);
    sample_open(&s, 10);
    void *codes = mem_alloc(ROWS * REPEATS * 2);
    assert_int_equal(dictionary_new(s.builder, column, 2, &d, NULL), HF_OK);
    assert_int_equal(dictionary_encode(d, s.builder, codes, &is_full, NULL), HF_OK);
    pass_piece(&s, column, d, 0, &read);
    uint32_t first = dictionary_entries(d);
    batch_builder_clear(s.builder, 0);
    buf_reset(&s.text);
    sample_append(&s, 2, 10);
    assert_int_equal(dictionary_encode(d, s.builder, codes, &is_full, NULL), HF_OK);
    assert_false(is_full);
    assert_true(dictionary_entries(d) > first);
    pass_piece(&s, column, d, first, &read);
    assert_int_equal(read.values.length, dictionary_entries(d) + 1);
    assert_int_equal(read.values.null_count, 1);
    mem_free(codes);
    dictionary_free(d);
    column_read_close(&read);
    sample_close(&s);
  }
}

static void judge_tells_repeating_columns_from_others(void **state) {
  (void)state;
  sample s;
  size_t code_bytes = 9;
  sample_open(&s, 0);
  for (size_t i = 0; i < COLUMNS; i++) {
    assert_int_equal(dictionary_judge(s.builder, i, &code_bytes, NULL), HF_OK);
    assert_int_equal(code_bytes, 1);
  }
  batch_builder_clear(s.builder, 0);
  struct ArrowArray rows;
  made_array(&s.schema, &(made_options){.seed = 3, .rows = 5000}, &rows);
  assert_int_equal(batch_builder_append(s.builder, &rows, 0, 5000, NULL), HF_OK);
  assert_int_equal(dictionary_judge(s.builder, 1, &code_bytes, NULL), HF_OK);
  assert_int_equal(code_bytes, 0); /* 64 random bits */
  batch_builder_clear(s.builder, 0);
  assert_int_equal(batch_builder_append(s.builder, &rows, 0, 100, NULL), HF_OK);
  assert_int_equal(dictionary_judge(s.builder, 0, &code_bytes, NULL), HF_OK);
  assert_int_equal(code_bytes, 0); /* too few rows */
  rows.release(&rows);
  sample_close(&s);
}

static void dictionary_beyond_its_codes_is_full(void **state) {
  (void)state;
  sample s;
  dictionary *d;
  bool is_full = false;
  sample_open(&s, 0);
  batch_builder_clear(s.builder, 0);
  struct ArrowArray rows;
  made_array(&s.schema, &(made_options){.seed = 3, .rows = 3000}, &rows);
  assert_int_equal(batch_builder_append(s.builder, &rows, 0, 3000, NULL), HF_OK);
  void *codes = mem_alloc(3000 * 2);
  assert_int_equal(dictionary_new(s.builder, 1, 1, &d, NULL), HF_OK);
  assert_int_equal(dictionary_encode(d, s.builder, codes, &is_full, NULL), HF_OK);
  assert_true(is_full);
  assert_true(dictionary_entries(d) <= DICTIONARY_MOST_NARROW);
  dictionary_free(d);
  mem_free(codes);
  rows.release(&rows);
  sample_close(&s);
}

static void release_nothing(struct ArrowArray *array) {
  array->release = NULL;
}

static void unfold_of_a_code_without_entry_is_corrupt(void **state) {
  (void)state;
  sample s;
  sample_open(&s, 0);
  uint8_t codes[] = {0, 1};
  const void *buffers[] = {NULL, codes};
  struct ArrowArray values;
  struct ArrowArray array = {.length = 2, .n_buffers = 2, .buffers = buffers};
  assert_int_equal(dictionary_merge(s.schema.children[0], NULL, 0, 1, &values, NULL), HF_OK);
  assert_int_equal(values.length, 1); /* the NULL */
  array.dictionary = &values;
  array.release = release_nothing;
  hf_error error = {0};
  assert_int_equal(dictionary_unfold(s.schema.children[0], &array, 1, &error), HF_E_BLOCK_CORRUPT);
  assert_null(array.release);
  hf_error_reset(&error);
  values.release(&values);
  sample_close(&s);
}

static void coded_schema_of_all_types_is_the_plain_one(void **state) {
  (void)state;
  static const uint8_t none[32] = {0};
  struct ArrowSchema schema;
  struct ArrowSchema block_schema;
  struct ArrowSchema plain;
  struct ArrowSchema back;
  buf bytes = {0};
  made_schema("+s(n;b;c;C;s;S;i;I;l;L;f;g;u;z;U;Z;tdD;tdm;tts;ttm;ttu;ttn;tss:;tsu:Europe/Berlin;tDu;tin;"
              "d:10,2;d:38,3;w:16;+m(+s(u;i));+us:0,1(i;u);+w:3(+l(b)))",
              &schema);
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  assert_int_equal(ipc_write_schema(&block_schema, &bytes, NULL), HF_OK);
  ipc_cursor cursor = {bytes.data, bytes.length};
  assert_int_equal(ipc_read_schema(&cursor, &plain, NULL), HF_OK);
  buf_reset(&bytes);
  assert_int_equal(ipc_write_coded_schema(&block_schema, none, &bytes, NULL), HF_OK);
  cursor = (ipc_cursor){bytes.data, bytes.length};
  assert_int_equal(ipc_read_schema(&cursor, &back, NULL), HF_OK);
  assert_int_equal(cursor.left, 0);
  for (int64_t i = 0; i < back.n_children; i++) {
    if (!arrow_schemas_alike(plain.children[i], back.children[i])) {
      fail_msg("%s came back as %s", plain.children[i]->format, back.children[i]->format);
    }
    assert_string_equal(back.children[i]->name, plain.children[i]->name);
    assert_int_equal(back.children[i]->flags, plain.children[i]->flags);
  }
  assert_true(layout_is_interval(back.children[25]));
  plain.release(&plain);
  back.release(&back);
  buf_reset(&bytes);
  schema.release(&schema);
  block_schema.release(&block_schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dictionary_of_every_kind_gives_the_values_back),
      cmocka_unit_test(dictionary_grown_comes_in_pieces),
      cmocka_unit_test(judge_tells_repeating_columns_from_others),
      cmocka_unit_test(dictionary_beyond_its_codes_is_full),
      cmocka_unit_test(unfold_of_a_code_without_entry_is_corrupt),
      cmocka_unit_test(coded_schema_of_all_types_is_the_plain_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every layout, through the builder, a message and the reader: ranges and
 * selections, offsets, NULLs; the values must come out as they went in.
 */
#include "arrow/ipc.h"

#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const layouts[] = {
    "+s(n)",
    "+s(b)",
    "+s(c;C;s;S;i;I;l;L;f;g)",
    "+s(tdD;tdm;tts;ttu;ttn;tss:;tsm:UTC;tsu:;tsn:Europe/Berlin;tDs;tiM;tiD)",
    "+s(tin;w:3;w:16;w:8)",
    "+s(d:3,1;d:9,2;d:15,2;d:18,0;d:19,4;d:38,10;d:15,2,64;d:5,0,32)",
    "+s(u;U;z;Z)",
    "+s(vu;vz)",
    "+s(+l(i))",
    "+s(+L(u))",
    "+s(+l(+l(u)))",
    "+s(+w:3(s);+w:1(u);+w:2(+l(i)))",
    "+s(+s(i;u;+s(b;u)))",
    "+s(+m(+s(u;i)))",
    "+s(+us:0,1,2(i;u;b))",
    "+s(+us:7,0,3(i;u;d:15,2))",
    "+s(+ud:0,1(i;u))",
    "+s(+ud:5,2,9(i;u;+l(i)))",
    "+s(c<u>;C<u>;s<u>;S<u>;i<u>;I<i>;l<z>;L<u>)",
    "+s(+l(C<u>);+s(i<u>;b);+w:2(S<u>))",
    "+s(C<i<u>>;C<+s(i;u)>;C<+l(u)>;C<b>;C<+w:2(i)>;C<+us:0,1(i;u)>;C<n>;C<d:9,0>)",
    "+s(+l(+us:0,1(i;+l(u)));+l(+s(+w:2(b);+ud:0,1(u;i)));+l(vu);+l(n))",
    "+s(i;+s(+s(+s(+s(u)))))",
};

static const made_options variants[] = {
    {.rows = 1},
    {.rows = 300},
    {.rows = 300, .null_percent = 30},
    {.rows = 257, .null_percent = 30, .with_offsets = true},
    {.rows = 300, .null_percent = 50, .with_offsets = true, .unknown_null_count = true},
    {.rows = 64, .null_percent = 100},
};

/* Writes the builder's rows, reads them back fully checked, and gives their text. */
static void read_back(const struct ArrowSchema *block_schema, const batch_builder *b, buf *text) {
  buf message = {0};
  uint64_t written = 0;
  assert_int_equal(ipc_write_batch(b, &message, -1, NULL, &written, NULL), HF_OK);
  assert_int_equal(written, message.length);
  assert_int_equal(written % 64, 0);
  ipc_decoder *decoder;
  assert_int_equal(ipc_decoder_new(block_schema, NULL, 0, &decoder, NULL), HF_OK);
  ipc_cursor cursor = {message.data, message.length};
  ipc_read_options options = {.validate = true};
  struct ArrowArray rows;
  hf_error error = {0};
  hf_status status = ipc_read_batch(decoder, &cursor, &options, &rows, &error);
  if (status != HF_OK) {
    fail_msg("%s: %s", error.message, block_schema->children[0]->format);
  }
  assert_int_equal(cursor.left, 0);
  assert_int_equal(rows.length, batch_builder_rows(b));
  made_rows_text(block_schema, &rows, text);
  rows.release(&rows);
  ipc_decoder_free(decoder);
  buf_reset(&message);
}

static void compare(const char *layout_text, const buf *expected, const buf *found) {
  if (strcmp(buf_cstr(expected), buf_cstr(found)) != 0) {
    fail_msg("%s:\nexpected\n%.2000s\nfound\n%.2000s", layout_text, buf_cstr(expected), buf_cstr(found));
  }
}

/* Appends pieces of the array in a random way and notes the rows that must be there. */
static void append_pieces(batch_builder *b, const struct ArrowSchema *schema, const struct ArrowArray *rows,
                          unsigned seed, buf *expected) {
  enum { PIECES = 9 };
  uint32_t numbers[600];
  uint64_t state = seed * 2654435761u + 1;
  for (int piece = 0; piece < PIECES; piece++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t first = (int64_t)((state >> 33) % (uint64_t)(rows->length + 1));
    int64_t count =
        piece == 0 ? rows->length - first : (int64_t)((state >> 20) % (uint64_t)(rows->length - first + 1));
    bool by_number = piece % 2 == 1;
    for (int64_t i = 0; i < count; i++) {
      numbers[i] =
          (uint32_t)(by_number ? (uint64_t)(first + i * 7) % (uint64_t)rows->length : (uint64_t)(first + i));
      for (int64_t k = 0; k < schema->n_children; k++) {
        buf_text(expected, k == 0 ? "" : " ");
        made_value_text(schema->children[k], rows->children[k], rows->offset + numbers[i], expected);
      }
      buf_char(expected, '\n');
    }
    hf_error error = {0};
    hf_status status = by_number ? batch_builder_append_rows(b, rows, numbers, (size_t)count, &error)
                                 : batch_builder_append(b, rows, first, count, &error);
    if (status != HF_OK) {
      fail_msg("%s", error.message);
    }
  }
}

static void gather_every_layout_keeps_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    struct ArrowSchema schema;
    struct ArrowSchema block_schema;
    made_schema(layouts[i], &schema);
    assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
    batch_builder *b;
    assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
    for (unsigned v = 0; v < sizeof variants / sizeof *variants; v++) {
      made_options options = variants[v];
      options.seed = i * 100 + v + 1;
      struct ArrowArray rows;
      made_array(&schema, &options, &rows);
      assert_int_equal(arrow_validate(&schema, &rows, NULL), HF_OK);
      buf expected = {0};
      buf found = {0};
      append_pieces(b, &schema, &rows, v + 1, &expected);
      assert_true(batch_builder_bytes(b) >= batch_builder_data_bytes(b));
      read_back(&block_schema, b, &found);
      compare(layouts[i], &expected, &found);
      batch_builder_clear(b, v % 2 == 0 ? SIZE_MAX : 0);
      assert_int_equal(batch_builder_rows(b), 0);
      assert_int_equal(batch_builder_data_bytes(b), 0);
      rows.release(&rows);
      buf_reset(&expected);
      buf_reset(&found);
    }
    batch_builder_free(b);
    schema.release(&schema);
    block_schema.release(&block_schema);
  }
}

/* What a builder wrote is itself input of the block face: blocks are copied like anything else. */
static void gather_block_face_again_is_the_same(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    struct ArrowSchema schema;
    struct ArrowSchema once;
    struct ArrowSchema twice;
    made_schema(layouts[i], &schema);
    assert_int_equal(arrow_block_schema(&schema, &once, NULL), HF_OK);
    assert_int_equal(arrow_block_schema(&once, &twice, NULL), HF_OK);
    assert_true(arrow_schemas_alike(&once, &twice));
    schema.release(&schema);
    once.release(&once);
    twice.release(&twice);
  }
}

/* A dictionary column may come as its values, as in a block. */
static void gather_dictionary_that_comes_unfolded_is_taken(void **state) {
  (void)state;
  struct ArrowSchema coded;
  struct ArrowSchema plain;
  made_schema("+s(C<u>)", &coded);
  made_schema("+s(u)", &plain);
  struct ArrowArray rows;
  made_array(&plain, &(made_options){.seed = 3, .rows = 50, .null_percent = 20}, &rows);
  batch_builder *b;
  assert_int_equal(batch_builder_new_for(&coded, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &rows, 0, 50, NULL), HF_OK);
  buf expected = {0};
  buf found = {0};
  made_rows_text(&plain, &rows, &expected);
  read_back(&plain, b, &found);
  compare("C<u>", &expected, &found);
  buf_reset(&expected);
  buf_reset(&found);
  batch_builder_free(b);
  rows.release(&rows);
  coded.release(&coded);
  plain.release(&plain);
}

static void gather_no_columns_keeps_the_count(void **state) {
  (void)state;
  struct ArrowSchema schema;
  made_schema("+s", &schema);
  struct ArrowArray rows;
  made_array(&schema, &(made_options){.seed = 1, .rows = 77}, &rows);
  batch_builder *b;
  assert_int_equal(batch_builder_new(&schema, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &rows, 7, 70, NULL), HF_OK);
  buf found = {0};
  read_back(&schema, b, &found);
  assert_int_equal(batch_builder_rows(b), 70);
  buf_reset(&found);
  batch_builder_free(b);
  rows.release(&rows);
  schema.release(&schema);
}

/* ------------------------------------------------------------ bad references */

static void expect_refused(const char *layout_text, void (*spoil)(struct ArrowArray *column)) {
  struct ArrowSchema schema;
  made_schema(layout_text, &schema);
  struct ArrowArray rows;
  made_array(&schema, &(made_options){.seed = 5, .rows = 40}, &rows);
  batch_builder *b;
  assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_CLIENT, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &rows, 0, 10, NULL), HF_OK);
  buf before = {0};
  buf after = {0};
  struct ArrowSchema block_schema;
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  read_back(&block_schema, b, &before);
  spoil(rows.children[0]);
  hf_error error = {0};
  assert_int_equal(batch_builder_append(b, &rows, 0, 40, &error), HF_E_INVALID_ARGUMENT);
  assert_non_null(error.message);
  read_back(&block_schema, b, &after);
  compare("after a refusal", &before, &after);
  hf_error_reset(&error);
  buf_reset(&before);
  buf_reset(&after);
  batch_builder_free(b);
  rows.release(&rows);
  schema.release(&schema);
  block_schema.release(&block_schema);
}

static void spoil_index(struct ArrowArray *column) {
  ((int8_t *)(uintptr_t)column->buffers[1])[33] = -1;
}

static void spoil_large_index(struct ArrowArray *column) {
  ((uint64_t *)(uintptr_t)column->buffers[1])[33] = UINT64_C(1) << 40;
}

static void spoil_union_offset(struct ArrowArray *column) {
  ((int32_t *)(uintptr_t)column->buffers[1])[33] = 40;
}

static void spoil_type_id(struct ArrowArray *column) {
  ((uint8_t *)(uintptr_t)column->buffers[0])[33] = 77;
}

static void spoil_view_length(struct ArrowArray *column) {
  ((int32_t *)(uintptr_t)column->buffers[1])[33 * 4] = INT32_MAX;
}

static void spoil_view_buffer(struct ArrowArray *column) {
  int32_t *view = (int32_t *)(uintptr_t)column->buffers[1] + (ptrdiff_t)33 * 4;
  view[0] = 20;
  view[2] = 2;
}

static void spoil_view_text(struct ArrowArray *column) {
  int32_t *view = (int32_t *)(uintptr_t)column->buffers[1] + (ptrdiff_t)33 * 4;
  view[0] = 2;
  memcpy(view + 1, "\xc3(", 2);
}

static void spoil_decimal(struct ArrowArray *column) {
  ((int64_t *)(uintptr_t)column->buffers[1])[33 * 2 + 1] = 5;
}

static void gather_reference_out_of_range_is_refused_and_undone(void **state) {
  (void)state;
  expect_refused("+s(c<u>)", spoil_index);
  expect_refused("+s(L<u>)", spoil_large_index);
  expect_refused("+s(+ud:0,1(i;u))", spoil_union_offset);
  expect_refused("+s(+us:0,1(i;u))", spoil_type_id);
  expect_refused("+s(vz)", spoil_view_length);
  expect_refused("+s(vu)", spoil_view_buffer);
  expect_refused("+s(vu)", spoil_view_text);
  expect_refused("+s(d:15,2)", spoil_decimal);
}

/* A client's interval loses its nanoseconds; the engine's already holds microseconds. */
static void gather_client_interval_becomes_microseconds(void **state) {
  (void)state;
  struct ArrowSchema schema;
  made_schema("+s(tin)", &schema);
  struct ArrowArray rows;
  made_array(&schema, &(made_options){.seed = 5, .rows = 3}, &rows);
  int64_t given[6] = {1, 1999, 2, -1999, 3, INT64_MIN};
  memcpy((void *)(uintptr_t)rows.children[0]->buffers[1], given, sizeof given);
  struct ArrowSchema block_schema;
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  assert_string_equal(block_schema.children[0]->format, "w:16");
  batch_builder *b;
  assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_CLIENT, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &rows, 0, 3, NULL), HF_OK);
  int64_t expected[6] = {1, 1, 2, -1, 3, INT64_MIN / 1000};
  memcpy((void *)(uintptr_t)rows.children[0]->buffers[1], expected, sizeof expected);
  buf found = {0};
  buf wanted = {0};
  read_back(&block_schema, b, &found);
  made_rows_text(&schema, &rows, &wanted);
  compare("tin", &wanted, &found);
  buf_reset(&found);
  buf_reset(&wanted);
  batch_builder_free(b);
  rows.release(&rows);
  schema.release(&schema);
  block_schema.release(&block_schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gather_every_layout_keeps_values),
      cmocka_unit_test(gather_block_face_again_is_the_same),
      cmocka_unit_test(gather_dictionary_that_comes_unfolded_is_taken),
      cmocka_unit_test(gather_no_columns_keeps_the_count),
      cmocka_unit_test(gather_reference_out_of_range_is_refused_and_undone),
      cmocka_unit_test(gather_client_interval_becomes_microseconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

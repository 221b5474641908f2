/* SPDX-License-Identifier: Apache-2.0 */
/* Client data: any layout in, and what is refused. */
#include "rig.h"

enum { ROWS = 400, BATCHES = 5 };

/* A stream of random batches; their text goes to `expected`. */
static void stream_of(const char *layout, bool fail_at_end, buf *expected, struct ArrowArrayStream *out) {
  struct ArrowSchema shape;
  struct ArrowArray batches[BATCHES];
  made_schema(layout, &shape);
  for (unsigned i = 0; i < BATCHES; i++) {
    made_options options = {.seed = i + 1,
                            .rows = i == 2 ? 0 : ROWS,
                            .null_percent = 20,
                            .with_offsets = i > 0,
                            .unknown_null_count = i > 2};
    made_array(&shape, &options, &batches[i]);
    made_rows_text(&shape, &batches[i], expected);
  }
  made_stream(&shape, batches, BATCHES, fail_at_end, out);
}

static void ingest_any_layout_is_read_back_in_order(void **state) {
  (void)state;
  static const char *const layouts[] = {
      "+s(i;u;b;l;g)",
      "+s(C<u>;L<+s(i;u)>;+l(s<i>))",
      "+s(vu;vz;U;Z;+L(i))",
      "+s(+ud:3,1(i;u);+us:0,9(b;d:12,4))",
      "+s(+w:3(i);+m(+s(u;i));+s(d:38,2;d:4,1;w:5))",
      "+s(tdD;tdm;tts;ttn;tsm:;tsn:UTC;tDs;n)",
  };
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    rig r;
    buf expected = {0};
    buf found = {0};
    struct ArrowArrayStream stream;
    block_index index;
    hf_error error = {0};
    rig_open(&r, layouts[i]);
    stream_of(layouts[i], false, &expected, &stream);
    if (block_write_stream(&stream, &r.options, r.memory, &index, &error) != HF_OK) {
      fail_msg("%s: %s", layouts[i], error.message);
    }
    assert_null(stream.release);
    assert_true(index.ordered);
    assert_int_equal(index.rows, (BATCHES - 1) * ROWS);
    assert_string_equal(index.columns.columns[0].name, "f0");
    assert_true(data_type_equal(index.columns.columns[0].type, r.columns.columns[0].type));
    rig_read_all(&r, true, &found);
    rig_expect_text(&expected, &found);
    buf_reset(&expected);
    buf_reset(&found);
    rig_close(&r);
  }
}

static void ingest_empty_stream_has_columns(void **state) {
  (void)state;
  rig r;
  struct ArrowSchema shape;
  struct ArrowArrayStream stream;
  block_index index;
  rig_open(&r, "+s(i;u)");
  made_schema("+s(i;u)", &shape);
  made_stream(&shape, NULL, 0, false, &stream);
  assert_int_equal(block_write_stream(&stream, &r.options, r.memory, &index, NULL), HF_OK);
  assert_int_equal(index.rows, 0);
  assert_int_equal(index.columns.n_columns, 2);
  rig_close(&r);
}

static void expect_refused(const char *layout, bool fail_at_end, void (*spoil)(struct ArrowArray *),
                           hf_status code, const char *words) {
  rig r;
  struct ArrowSchema shape;
  struct ArrowArray batch;
  struct ArrowArrayStream stream;
  block_index index;
  hf_error error = {0};
  rig_open(&r, "+s(i)");
  made_schema(layout, &shape);
  size_t n = strchr(layout, 'e') != NULL ? 0 : 1; /* half floats cannot be made */
  if (n > 0) {
    made_array(&shape, &(made_options){.seed = 1, .rows = ROWS}, &batch);
  }
  if (spoil != NULL) {
    spoil(&batch);
  }
  made_stream(&shape, &batch, n, fail_at_end, &stream);
  assert_int_equal(block_write_stream(&stream, &r.options, r.memory, &index, &error), code);
  if (strstr(error.message, words) == NULL) {
    fail_msg("%s: %s", layout, error.message);
  }
  assert_null(stream.release);
  assert_false(rig_exists(&r, ""));
  hf_error_reset(&error);
  rig_close(&r);
}

static void spoil_offset(struct ArrowArray *batch) {
  ((int32_t *)(uintptr_t)batch->children[0]->buffers[1])[7] = -9;
}

static void spoil_text(struct ArrowArray *batch) {
  ((uint8_t *)(uintptr_t)batch->children[0]->buffers[2])[50] = 0x80;
}

static void spoil_dictionary_text(struct ArrowArray *batch) {
  memset((void *)(uintptr_t)batch->children[0]->dictionary->buffers[2], 0xff, 10);
}

static void spoil_index(struct ArrowArray *batch) {
  ((uint8_t *)(uintptr_t)batch->children[0]->buffers[1])[7] = 200;
}

static void spoil_length(struct ArrowArray *batch) {
  batch->length = ROWS + 1;
}

static void ingest_what_is_not_valid_is_refused_and_leaves_nothing(void **state) {
  (void)state;
  expect_refused("+s(i)", true, NULL, HF_E_INVALID_ARGUMENT, "the producer broke");
  expect_refused("+s(u)", false, spoil_offset, HF_E_INVALID_ARGUMENT, "offset");
  expect_refused("+s(u)", false, spoil_text, HF_E_INVALID_ARGUMENT, "UTF-8");
  expect_refused("+s(C<u>)", false, spoil_dictionary_text, HF_E_INVALID_ARGUMENT, "UTF-8");
  expect_refused("+s(C<u>)", false, spoil_index, HF_E_INVALID_ARGUMENT, "dictionary index");
  expect_refused("+s(i)", false, spoil_length, HF_E_INVALID_ARGUMENT, "too short");
  expect_refused("+s(i;+l(e))", false, NULL, HF_E_UNSUPPORTED, "column 2, \"f1\"");
  expect_refused("i", false, NULL, HF_E_UNSUPPORTED, "root");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ingest_any_layout_is_read_back_in_order),
      cmocka_unit_test(ingest_empty_stream_has_columns),
      cmocka_unit_test(ingest_what_is_not_valid_is_refused_and_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of more than 2 GiB in one column of one batch: the sink cuts the batch.
 * A file of its own, since it writes 2.1 GiB; a dictionary keeps the source small.
 */
#include "rig.h"

enum { ROWS = 38, MIB = 1 << 20, VALUE_BYTES = 57 * MIB };

/* Rows that all refer to one long value. */
static void long_rows(struct ArrowSchema *shape, struct ArrowArray *out) {
  made_array(shape, &(made_options){.seed = 1, .rows = ROWS}, out);
  struct ArrowArray *text = out->children[0];
  memset((void *)(uintptr_t)text->buffers[1], 0, ROWS);
  int32_t *offsets = (int32_t *)(uintptr_t)text->dictionary->buffers[1];
  free((void *)(uintptr_t)text->dictionary->buffers[2]);
  char *value = malloc(VALUE_BYTES);
  memset(value, 'x', VALUE_BYTES);
  text->dictionary->buffers[2] = value;
  text->dictionary->length = 1;
  offsets[0] = 0;
  offsets[1] = VALUE_BYTES;
}

static void sink_strings_over_2_gib_are_cut_into_batches(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  void *sink_state;
  block_index index;
  struct ArrowArray rows;
  rig_open(&r, "+s(C<u>)");
  /* No other bound cuts the batch first. */
  r.options.budget_bytes = r.options.batch_bytes = r.options.block_bytes = UINT64_C(1) << 40;
  long_rows(&r.schema, &rows);
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  hf_error error = {0};
  if (block_sink_ops()->append(sink_state, &rows, NULL, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  assert_int_equal(block_sink_ops()->close(sink_state, NULL), HF_OK);
  block_sink_ops()->discard(sink_state);
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
  block_sink_free(sink);
  rows.release(&rows);
  assert_int_equal(index.rows, ROWS);
  assert_true(index.bytes > UINT64_C(1) << 31);

  struct ArrowArrayStream stream;
  block_location location = {.dir = r.dir};
  assert_int_equal(block_stream_open(&location, 1, NULL, NULL, &stream, NULL), HF_OK);
  int64_t found = 0;
  int batches = 0;
  for (;; batches++) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    const int32_t *offsets = batch.children[0]->buffers[1];
    const char *text = batch.children[0]->buffers[2];
    for (int64_t i = 0; i < batch.length; i++, found++) {
      assert_int_equal(offsets[i + 1] - offsets[i], VALUE_BYTES);
      assert_int_equal(text[offsets[i + 1] - 1], 'x');
    }
    batch.release(&batch);
  }
  assert_int_equal(found, ROWS);
  assert_true(batches > 1);
  stream.release(&stream);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sink_strings_over_2_gib_are_cut_into_batches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

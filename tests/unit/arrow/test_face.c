/* SPDX-License-Identifier: Apache-2.0 */
/* The client's face: names, intervals in ns, decimals of 128 bits, at any depth. */
#include "arrow/batch.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct sample {
  struct ArrowSchema schema, block_schema, client_schema;
  struct ArrowArray rows, block_rows;
  buf message;
} sample;

static void sample_open(sample *s, const char *layout_text) {
  memset(s, 0, sizeof *s);
  batch_builder *b;
  ipc_decoder *decoder;
  uint64_t written;
  made_schema(layout_text, &s->schema);
  assert_int_equal(arrow_block_schema(&s->schema, &s->block_schema, NULL), HF_OK);
  assert_int_equal(arrow_client_schema(&s->block_schema, NULL, &s->client_schema, NULL), HF_OK);
  made_array(&s->schema, &(made_options){.seed = 3, .rows = 60, .null_percent = 25, .with_offsets = true},
             &s->rows);
  assert_int_equal(batch_builder_new_for(&s->schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &s->rows, 0, 60, NULL), HF_OK);
  assert_int_equal(ipc_write_batch(b, &s->message, -1, NULL, &written, NULL), HF_OK);
  assert_int_equal(ipc_decoder_new(&s->block_schema, NULL, 0, &decoder, NULL), HF_OK);
  ipc_cursor cursor = {s->message.data, s->message.length};
  assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){0}, &s->block_rows, NULL), HF_OK);
  ipc_decoder_free(decoder);
  batch_builder_free(b);
}

static void sample_close(sample *s) {
  s->schema.release(&s->schema);
  s->block_schema.release(&s->block_schema);
  s->client_schema.release(&s->client_schema);
  s->rows.release(&s->rows);
  if (s->block_rows.release != NULL) {
    s->block_rows.release(&s->block_rows);
  }
  buf_reset(&s->message);
}

static void face_client_schema_takes_names_and_widens(void **state) {
  (void)state;
  static const char *const names[] = {"a", "a", ""};
  struct ArrowSchema schema;
  struct ArrowSchema block_schema;
  struct ArrowSchema client;
  made_schema("+s(d:10,2;+l(tin);C<u>)", &schema);
  assert_int_equal(arrow_block_schema(&schema, &block_schema, NULL), HF_OK);
  assert_string_equal(block_schema.children[0]->format, "d:10,2,64");
  assert_string_equal(block_schema.children[1]->children[0]->format, "w:16");
  assert_int_equal(arrow_client_schema(&block_schema, names, &client, NULL), HF_OK);
  assert_string_equal(client.children[0]->format, "d:10,2");
  assert_string_equal(client.children[1]->children[0]->format, "tin");
  assert_null(client.children[1]->children[0]->metadata);
  assert_string_equal(client.children[2]->format, "u");
  for (size_t i = 0; i < 3; i++) {
    assert_string_equal(client.children[i]->name, names[i]);
  }
  client.release(&client);
  block_schema.release(&block_schema);
  schema.release(&schema);
}

static void face_client_decimals_keep_values(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(d:3,1;d:15,2;d:38,4;+l(d:9,0);+s(i;d:18,3);+us:0,1(d:5,2;u))");
  struct ArrowArray client;
  assert_int_equal(arrow_client_array(&s.block_schema, &s.block_rows, &client, NULL), HF_OK);
  assert_null(s.block_rows.release);
  buf expected = {0};
  buf found = {0};
  made_rows_text(&s.schema, &s.rows, &expected);
  made_rows_text(&s.client_schema, &client, &found);
  assert_string_equal(buf_cstr(&expected), buf_cstr(&found));
  assert_string_equal(s.client_schema.children[1]->format, "d:15,2");
  buf_reset(&expected);
  buf_reset(&found);
  client.release(&client);
  sample_close(&s);
}

static int64_t *interval_at(const struct ArrowArray *column, int64_t row) {
  return (int64_t *)(uintptr_t)column->buffers[1] + (column->offset + row) * 2;
}

static void face_client_interval_is_nanoseconds(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(tin)");
  struct ArrowArray *column = s.block_rows.children[0];
  column->null_count = 0;
  column->buffers[0] = NULL;
  column->length = s.block_rows.length = 2;
  interval_at(column, 0)[1] = -1234567;
  interval_at(column, 1)[1] = INT64_MAX / 1000;
  int64_t head = interval_at(column, 0)[0];
  struct ArrowArray client;
  assert_int_equal(arrow_client_array(&s.block_schema, &s.block_rows, &client, NULL), HF_OK);
  struct ArrowArray moved = *client.children[0]; /* children may go their own way */
  client.children[0]->release = NULL;
  client.release(&client);
  assert_int_equal(interval_at(&moved, 0)[0], head);
  assert_int_equal(interval_at(&moved, 0)[1], -1234567000);
  assert_int_equal(interval_at(&moved, 1)[1], INT64_MAX / 1000 * 1000);
  moved.release(&moved);
  sample_close(&s);
}

static void face_client_interval_too_long_is_overflow(void **state) {
  (void)state;
  sample s;
  sample_open(&s, "+s(i;+l(tin))");
  struct ArrowArray *elements = s.block_rows.children[1]->children[0];
  elements->null_count = 0;
  elements->buffers[0] = NULL;
  for (int64_t i = 0; i < elements->length; i++) {
    interval_at(elements, i)[1] = INT64_MAX / 1000 + 1;
  }
  struct ArrowArray client;
  hf_error error = {0};
  assert_int_equal(arrow_client_array(&s.block_schema, &s.block_rows, &client, &error), HF_E_OVERFLOW);
  assert_non_null(strstr(error.message, "INTERVAL"));
  assert_null(s.block_rows.release);
  hf_error_reset(&error);
  sample_close(&s);
}

static void face_client_without_memory_releases_all(void **state) {
  (void)state;
  for (uint64_t n = 1;; n++) {
    sample s;
    sample_open(&s, "+s(d:3,1;d:15,2;+s(d:9,1))");
    struct ArrowArray client;
    mem_fail_after(n);
    hf_status status = arrow_client_array(&s.block_schema, &s.block_rows, &client, NULL);
    mem_fail_after(0);
    assert_null(s.block_rows.release);
    if (status == HF_OK) {
      client.release(&client);
      sample_close(&s);
      assert_int_equal(n, 7);
      return;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
    sample_close(&s);
  }
}

static void face_unsupported_formats_are_named(void **state) {
  (void)state;
  static const char *const formats[] = {
      "+s(e)",          "+s(+r(i;u))", "+s(+vl(i))",       "+s(d:50,2)",  "+s(d:10,2,256)", "+s(x)",
      "+s(+w:0(i))",    "+s(w:0)",     "+s(+us:0,0(i;u))", "+s(+us:(i))", "+s(+s)",         "+s(f<u>)",
      "+s(+us:200(i))", "i",           "+s(+m(i))",        "+s(d:0,0)",   "+s(d:4,9)",      "+s(tsx:)"};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    struct ArrowSchema schema;
    struct ArrowSchema out;
    hf_error error = {0};
    made_schema(formats[i], &schema);
    if (arrow_block_schema(&schema, &out, &error) != HF_E_UNSUPPORTED) {
      fail_msg("%s is taken", formats[i]);
    }
    assert_non_null(error.message);
    hf_error_reset(&error);
    schema.release(&schema);
  }
}

static void face_too_deep_a_schema_is_refused(void **state) {
  (void)state;
  buf text = {0};
  for (int i = 0; i < 200; i++) {
    buf_text(&text, "+s(");
  }
  buf_text(&text, "i");
  for (int i = 0; i < 200; i++) {
    buf_text(&text, ")");
  }
  struct ArrowSchema schema;
  struct ArrowSchema out;
  made_schema(buf_cstr(&text), &schema);
  assert_int_equal(arrow_block_schema(&schema, &out, NULL), HF_E_UNSUPPORTED);
  schema.release(&schema);
  buf_reset(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(face_client_schema_takes_names_and_widens),
      cmocka_unit_test(face_client_decimals_keep_values),
      cmocka_unit_test(face_client_interval_is_nanoseconds),
      cmocka_unit_test(face_client_interval_too_long_is_overflow),
      cmocka_unit_test(face_client_without_memory_releases_all),
      cmocka_unit_test(face_unsupported_formats_are_named),
      cmocka_unit_test(face_too_deep_a_schema_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

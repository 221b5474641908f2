/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of any layout: the same values in another layout are equal; streams that fail or are not valid. */
#include "compare/compare.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void nothing(void *context) {
  (void)context;
}

/* The array's values in the layouts that blocks have. The bytes must outlive *out. */
static void in_block_layout(const struct ArrowSchema *schema, const struct ArrowArray *array, buf *bytes,
                            struct ArrowSchema *block_schema, struct ArrowArray *out) {
  hf_error error = {0};
  batch_builder *builder = NULL;
  ipc_decoder *decoder = NULL;
  assert_int_equal(arrow_block_schema(schema, block_schema, &error), HF_OK);
  assert_int_equal(batch_builder_new_for(schema, BATCH_OF_CLIENT, &builder, &error), HF_OK);
  assert_int_equal(batch_builder_append(builder, array, 0, array->length, &error), HF_OK);
  uint64_t written = 0;
  assert_int_equal(ipc_write_batch(builder, bytes, -1, NULL, &written, &error), HF_OK);
  assert_int_equal(ipc_decoder_new(block_schema, NULL, 0, &decoder, &error), HF_OK);
  ipc_cursor cursor = {bytes->data, bytes->length};
  assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){.on_release = nothing}, out, &error),
                   HF_OK);
  ipc_decoder_free(decoder);
  batch_builder_free(builder);
}

static compare_report compare_arrays(struct ArrowSchema *schema_a, struct ArrowArray *a,
                                     struct ArrowSchema *schema_b, struct ArrowArray *b) {
  struct ArrowArrayStream expected, actual;
  made_stream(schema_a, a, 1, false, &expected);
  made_stream(schema_b, b, 1, false, &actual);
  compare_report report;
  hf_error error = {0};
  if (compare_streams(&expected, &actual, &(compare_options){0}, &report, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  return report;
}

static const char *const layouts[] = {
    "+s(c;C;s;S;i;I;l;L;b)",
    "+s(f;g;n)",
    "+s(d:4,1;d:9,2;d:18,3;d:38,5)",
    "+s(d:9,2,32;d:18,3,64)",
    "+s(u;z;U;Z;vu;vz;w:16)",
    "+s(tdD;ttu;ttn;tss:;tsm:;tsu:;tsn:;tsu:UTC)",
    "+s(C<u>;s<i>;i<U>)",
    "+s(+l(i);+L(u);+w:3(g);+l(+l(vu)))",
    "+s(+s(i;u;+l(d:10,2));+m(+s(u;i)))",
    "+s(+us:0,1(i;u);+ud:0,1(i;u))",
    "+s(+l(C<u>);+s(C<u>;f))",
};

static void values_in_another_layout_are_equal(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
      struct ArrowSchema schema, kept, block_schema;
      struct ArrowArray array, block;
      buf bytes = {0};
      made_options options = {.seed = seed,
                              .rows = 300,
                              .null_percent = seed == 1 ? 0 : 20,
                              .with_offsets = seed > 2,
                              .unknown_null_count = seed == 4};
      made_schema(layouts[i], &schema);
      made_array(&schema, &options, &array);
      in_block_layout(&schema, &array, &bytes, &block_schema, &block);
      made_schema(layouts[i], &kept);
      schema.release(&schema);
      compare_report report = compare_arrays(&kept, &array, &block_schema, &block);
      if (report.verdict != COMPARE_SAME || report.expected_rows != 300) {
        fail_msg("%s seed %d: %s\n%s", layouts[i], (int)seed, report.reason, report.differences);
      }
      compare_report_reset(&report);
      buf_reset(&bytes);
    }
  }
}

static void values_of_another_seed_are_different(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    struct ArrowSchema schema_a, schema_b;
    struct ArrowArray a, b;
    made_schema(layouts[i], &schema_a);
    made_schema(layouts[i], &schema_b);
    made_array(&schema_a, &(made_options){.seed = 1, .rows = 300, .null_percent = 20}, &a);
    made_array(&schema_b, &(made_options){.seed = 2, .rows = 300, .null_percent = 20}, &b);
    compare_report report = compare_arrays(&schema_a, &a, &schema_b, &b);
    assert_int_equal(report.verdict, COMPARE_OTHER_ROWS);
    compare_report_reset(&report);
  }
}

static void units_of_time_that_differ_are_told(void **state) {
  (void)state;
  struct ArrowSchema schema_a, schema_b;
  struct ArrowArray a, b;
  made_schema("+s(tsu:UTC)", &schema_a);
  made_schema("+s(tsm:UTC)", &schema_b);
  made_array(&schema_a, &(made_options){.seed = 1, .rows = 3}, &a);
  made_array(&schema_b, &(made_options){.seed = 1, .rows = 3}, &b);
  compare_report report = compare_arrays(&schema_a, &a, &schema_b, &b);
  assert_int_equal(report.verdict, COMPARE_OTHER_TYPES);
  assert_string_equal(report.reason, "column 1 has another unit of time");
  compare_report_reset(&report);
}

static void make_ints(struct ArrowSchema *schema, struct ArrowArray *array) {
  made_schema("+s(i)", schema);
  made_array(schema, &(made_options){.seed = 1, .rows = 5}, array);
}

static hf_status compare_status(struct ArrowArrayStream *a, struct ArrowArrayStream *b, hf_error *error) {
  compare_report report;
  return compare_streams(a, b, &(compare_options){0}, &report, error);
}

static void stream_that_fails_is_an_error(void **state) {
  (void)state;
  for (int side = 0; side < 2; side++) {
    struct ArrowSchema schemas[2];
    struct ArrowArray arrays[2];
    struct ArrowArrayStream streams[2];
    for (int i = 0; i < 2; i++) {
      make_ints(&schemas[i], &arrays[i]);
      made_stream(&schemas[i], &arrays[i], 1, i == side, &streams[i]);
    }
    hf_error error = {0};
    assert_int_equal(compare_status(&streams[0], &streams[1], &error), HF_E_IO);
    assert_non_null(strstr(error.message, side == 0 ? "expected" : "actual"));
    assert_null(streams[0].release);
    assert_null(streams[1].release);
    hf_error_reset(&error);
  }
}

static void array_that_is_not_valid_is_an_error(void **state) {
  (void)state;
  struct ArrowSchema schemas[2];
  struct ArrowArray arrays[2];
  struct ArrowArrayStream streams[2];
  make_ints(&schemas[0], &arrays[0]);
  make_ints(&schemas[1], &arrays[1]);
  arrays[1].children[0]->length = 2; /* shorter than its parent */
  made_stream(&schemas[0], &arrays[0], 1, false, &streams[0]);
  made_stream(&schemas[1], &arrays[1], 1, false, &streams[1]);
  hf_error error = {0};
  assert_int_equal(compare_status(&streams[0], &streams[1], &error), HF_E_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "the actual result"));
  hf_error_reset(&error);
}

static void lack_of_memory_is_an_error_every_time(void **state) {
  (void)state;
  hf_status status = HF_E_OUT_OF_MEMORY;
  for (uint64_t n = 1; status != HF_OK; n++) {
    struct ArrowSchema schemas[2];
    struct ArrowArray arrays[2];
    struct ArrowArrayStream streams[2];
    for (int i = 0; i < 2; i++) {
      made_schema("+s(i;g;+l(f);C<u>)", &schemas[i]);
      made_array(&schemas[i], &(made_options){.seed = (uint64_t)i, .rows = 20, .null_percent = 50},
                 &arrays[i]);
      made_stream(&schemas[i], &arrays[i], 1, false, &streams[i]);
    }
    hf_error error = {0};
    compare_report report = {0};
    mem_fail_after(n);
    status = compare_streams(&streams[0], &streams[1], &(compare_options){0}, &report, &error);
    mem_fail_after(0);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    assert_true(n < 1000);
    compare_report_reset(&report);
    hf_error_reset(&error);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_in_another_layout_are_equal),
      cmocka_unit_test(values_of_another_seed_are_different),
      cmocka_unit_test(units_of_time_that_differ_are_told),
      cmocka_unit_test(stream_that_fails_is_an_error),
      cmocka_unit_test(array_that_is_not_valid_is_an_error),
      cmocka_unit_test(lack_of_memory_is_an_error_every_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

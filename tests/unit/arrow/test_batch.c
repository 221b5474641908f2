/* SPDX-License-Identifier: Apache-2.0 */
/* Builders: sizes, sharing, lack of memory at every allocation. What they hold is in test_gather.c. */
#include "arrow/batch.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const wide_layout =
    "+s(i;u;+l(d:10,2);C<u>;+us:0,1(i;u);+ud:0,1(i;u);vu;+s(b;+w:2(s));+m(+s(u;i)))";

static void batch_new_like_shares_and_outlives_its_model(void **state) {
  (void)state;
  struct ArrowSchema schema;
  made_schema(wide_layout, &schema);
  struct ArrowArray rows;
  made_array(&schema, &(made_options){.seed = 2, .rows = 100, .null_percent = 20}, &rows);
  batch_builder *model;
  batch_builder *other;
  assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_ENGINE, &model, NULL), HF_OK);
  schema.release(&schema);
  assert_int_equal(batch_builder_new_like(model, &other, NULL), HF_OK);
  assert_int_equal(batch_builder_append(model, &rows, 0, 100, NULL), HF_OK);
  size_t bytes = batch_builder_data_bytes(model);
  batch_builder_free(model);
  assert_int_equal(batch_builder_append(other, &rows, 0, 100, NULL), HF_OK);
  assert_int_equal(batch_builder_data_bytes(other), bytes);
  batch_builder_free(other);
  rows.release(&rows);
}

static void batch_cost_is_near_what_rows_take(void **state) {
  (void)state;
  static const char *const layouts[] = {"+s(i;l;d:10,2)", "+s(u;z)",  "+s(+l(u))",
                                        "+s(vu)",         "+s(C<u>)", "+s(+w:3(l))"};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    struct ArrowSchema schema;
    struct ArrowArray rows;
    batch_builder *b;
    made_schema(layouts[i], &schema);
    made_array(&schema, &(made_options){.seed = i + 1, .rows = 1000, .null_percent = 10}, &rows);
    assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
    uint64_t cost = batch_builder_cost(b, &rows, 100, 800);
    assert_int_equal(batch_builder_append(b, &rows, 100, 800, NULL), HF_OK);
    uint64_t taken = batch_builder_data_bytes(b);
    assert_in_range(cost, taken * 8 / 10, taken * 13 / 10);
    batch_builder_free(b);
    rows.release(&rows);
    schema.release(&schema);
  }
}

static void batch_clear_keeps_or_gives_back_memory(void **state) {
  (void)state;
  struct ArrowSchema schema;
  struct ArrowArray rows;
  batch_builder *b;
  made_schema(wide_layout, &schema);
  made_array(&schema, &(made_options){.seed = 2, .rows = 1000, .null_percent = 20}, &rows);
  assert_int_equal(batch_builder_new_for(&schema, BATCH_OF_ENGINE, &b, NULL), HF_OK);
  size_t empty = batch_builder_bytes(b);
  assert_int_equal(batch_builder_append(b, &rows, 0, 1000, NULL), HF_OK);
  size_t full = batch_builder_bytes(b);
  assert_true(full > empty + batch_builder_data_bytes(b) / 2);
  batch_builder_clear(b, full);
  assert_int_equal(batch_builder_bytes(b), full);
  assert_int_equal(batch_builder_append(b, &rows, 0, 1000, NULL), HF_OK);
  assert_int_equal(batch_builder_bytes(b), full); /* nothing was allocated */
  batch_builder_clear(b, full - 1);
  assert_int_equal(batch_builder_bytes(b), empty);
  batch_builder_free(b);
  rows.release(&rows);
  schema.release(&schema);
}

static void batch_with_other_columns_is_refused(void **state) {
  (void)state;
  struct ArrowSchema two;
  struct ArrowSchema one;
  struct ArrowArray rows;
  batch_builder *b;
  made_schema("+s(i;i)", &two);
  made_schema("+s(i)", &one);
  made_array(&one, &(made_options){.seed = 2, .rows = 10}, &rows);
  assert_int_equal(batch_builder_new(&two, &b, NULL), HF_OK);
  assert_int_equal(batch_builder_append(b, &rows, 0, 10, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(batch_builder_rows(b), 0);
  batch_builder_free(b);
  rows.release(&rows);
  one.release(&one);
  two.release(&two);
}

/* Builds, appends twice and writes; any failure must be OUT_OF_MEMORY and leave a builder that works. */
static hf_status build_all(const struct ArrowSchema *schema, const struct ArrowArray *rows) {
  uint32_t numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};
  batch_builder *b = NULL;
  buf message = {0};
  uint64_t written = 0;
  hf_error error = {0};
  hf_status status = batch_builder_new_for(schema, BATCH_OF_CLIENT, &b, &error);
  if (status == HF_OK) {
    status = batch_builder_append(b, rows, 0, rows->length, &error);
    if (status == HF_OK) {
      status = batch_builder_append_rows(b, rows, numbers, 8, &error);
      assert_int_equal(batch_builder_rows(b), rows->length + (status == HF_OK ? 8 : 0));
    } else {
      assert_int_equal(batch_builder_rows(b), 0);
    }
  }
  if (status == HF_OK) {
    status = ipc_write_batch(b, &message, -1, NULL, &written, &error);
  }
  if (status != HF_OK) {
    mem_fail_after(0);
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
    if (b != NULL) {
      batch_builder_clear(b, SIZE_MAX);
      assert_int_equal(batch_builder_append(b, rows, 0, rows->length, NULL), HF_OK);
    }
  }
  batch_builder_free(b);
  buf_reset(&message);
  hf_error_reset(&error);
  return status;
}

static void batch_without_memory_at_any_allocation_stays_whole(void **state) {
  (void)state;
  struct ArrowSchema schema;
  struct ArrowArray rows;
  made_schema(wide_layout, &schema);
  made_array(&schema, &(made_options){.seed = 4, .rows = 200, .null_percent = 20}, &rows);
  uint64_t n = 1;
  for (;; n++) {
    mem_fail_after(n);
    hf_status status = build_all(&schema, &rows);
    mem_fail_after(0);
    if (status == HF_OK) {
      break;
    }
  }
  assert_true(n > 20);
  rows.release(&rows);
  schema.release(&schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batch_new_like_shares_and_outlives_its_model),
      cmocka_unit_test(batch_cost_is_near_what_rows_take),
      cmocka_unit_test(batch_clear_keeps_or_gives_back_memory),
      cmocka_unit_test(batch_with_other_columns_is_refused),
      cmocka_unit_test(batch_without_memory_at_any_allocation_stays_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

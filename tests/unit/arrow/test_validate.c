/* SPDX-License-Identifier: Apache-2.0 */
/* What a client's array may not be, and UTF-8. */
#include "arrow/layout.h"

#include "arrow/batch.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef void (*spoil_fn)(struct ArrowArray *column);

static void drop_child(struct ArrowArray *column) {
  column->n_children = 0;
}

static void negative_length(struct ArrowArray *column) {
  column->length = -1;
}

static void huge_offset(struct ArrowArray *column) {
  column->offset = INT64_MAX;
}

static void shorter(struct ArrowArray *column) {
  column->length -= 1;
}

static void null_count_too_large(struct ArrowArray *column) {
  column->null_count = column->length + 1;
}

static void nulls_without_bitmap(struct ArrowArray *column) {
  column->null_count = 1;
}

static void no_buffers(struct ArrowArray *column) {
  column->n_buffers = 1;
}

static void too_many_buffers(struct ArrowArray *column) {
  column->n_buffers = 5;
}

static const void *kept;

static void no_values(struct ArrowArray *column) {
  kept = column->buffers[column->n_buffers - 1];
  column->buffers[column->n_buffers - 1] = NULL;
}

static void falling_offsets(struct ArrowArray *column) {
  ((int32_t *)(uintptr_t)column->buffers[1])[20] = 1;
}

static void falling_large_offsets(struct ArrowArray *column) {
  ((int64_t *)(uintptr_t)column->buffers[1])[20] = INT64_MIN;
}

static void negative_first_offset(struct ArrowArray *column) {
  ((int32_t *)(uintptr_t)column->buffers[1])[0] = -5;
}

static void short_elements(struct ArrowArray *column) {
  column->children[0]->length = 1;
}

static void bad_text(struct ArrowArray *column) {
  ((uint8_t *)(uintptr_t)column->buffers[2])[9] = 0xff;
}

static void unknown_type_id(struct ArrowArray *column) {
  ((uint8_t *)(uintptr_t)column->buffers[0])[20] = 3;
}

static void negative_type_id(struct ArrowArray *column) {
  ((uint8_t *)(uintptr_t)column->buffers[0])[20] = 0x80;
}

static void no_dictionary(struct ArrowArray *column) {
  column->dictionary->length = -4;
}

typedef struct spoiled {
  const char *layout;
  spoil_fn spoil;
} spoiled;

static const spoiled cases[] = {
    {"+s(i)", negative_length},
    {"+s(i)", huge_offset},
    {"+s(i)", shorter},
    {"+s(i)", null_count_too_large},
    {"+s(i)", nulls_without_bitmap},
    {"+s(i)", no_buffers},
    {"+s(i)", too_many_buffers},
    {"+s(i)", no_values},
    {"+s(u)", no_values},
    {"+s(u)", falling_offsets},
    {"+s(u)", negative_first_offset},
    {"+s(u)", bad_text},
    {"+s(U)", falling_large_offsets},
    {"+s(+l(i))", falling_offsets},
    {"+s(+l(i))", short_elements},
    {"+s(+l(i))", drop_child},
    {"+s(+w:4(i))", short_elements},
    {"+s(+s(i;u))", short_elements},
    {"+s(+s(i;u))", drop_child},
    {"+s(+us:0,1(i;u))", unknown_type_id},
    {"+s(+us:0,1(i;u))", negative_type_id},
    {"+s(+us:0,1(i;u))", short_elements},
    {"+s(+ud:0,1(i;u))", unknown_type_id},
    {"+s(C<u>)", no_dictionary},
    {"+s(vu)", no_values},
};

static void validate_spoiled_array_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct ArrowSchema schema;
    struct ArrowArray rows;
    hf_error error = {0};
    made_schema(cases[i].layout, &schema);
    made_array(&schema, &(made_options){.seed = i + 1, .rows = 30}, &rows);
    assert_int_equal(arrow_validate(&schema, &rows, &error), HF_OK);
    struct ArrowArray *column = rows.children[0];
    struct ArrowArray whole = *column;
    kept = NULL;
    cases[i].spoil(column);
    if (arrow_validate(&schema, &rows, &error) != HF_E_INVALID_ARGUMENT) {
      fail_msg("case %zu, %s: taken", i, cases[i].layout);
    }
    assert_non_null(error.message);
    hf_error_reset(&error);
    if (kept != NULL) {
      column->buffers[column->n_buffers - 1] = kept;
    }
    *column = whole;
    rows.release(&rows);
    schema.release(&schema);
  }
}

static void validate_null_rows_are_refused(void **state) {
  (void)state;
  struct ArrowSchema schema;
  struct ArrowArray rows;
  made_schema("+s(i)", &schema);
  made_array(&schema, &(made_options){.seed = 1, .rows = 16}, &rows);
  static const uint8_t bits[2] = {0xff, 0x7f};
  rows.buffers[0] = bits;
  rows.null_count = -1;
  assert_int_equal(arrow_validate(&schema, &rows, NULL), HF_E_INVALID_ARGUMENT);
  rows.length = 15;
  assert_int_equal(arrow_validate(&schema, &rows, NULL), HF_OK);
  rows.buffers[0] = NULL;
  rows.release(&rows);
  schema.release(&schema);
}

/* Bytes under a NULL may be anything, and a value may not start inside a character. */
static void validate_text_is_judged_by_value(void **state) {
  (void)state;
  struct ArrowSchema schema;
  made_schema("+s(u)", &schema);
  static const int32_t offsets[] = {0, 2, 4, 5};
  static const uint8_t valid_nulls = 0x5; /* the second is NULL */
  const void *buffers[3] = {&valid_nulls, offsets,
                            "\xc3\xa4\xff\xff"
                            "a"};
  struct ArrowArray made;
  made_array(&schema, &(made_options){.seed = 1, .rows = 3}, &made);
  struct ArrowArray whole = *made.children[0];
  made.children[0]->buffers = buffers;
  made.children[0]->null_count = 1;
  assert_int_equal(arrow_validate(&schema, &made, NULL), HF_OK);
  made.children[0]->null_count = 0;
  assert_int_equal(arrow_validate(&schema, &made, NULL), HF_E_INVALID_ARGUMENT);
  buffers[2] = "x\xc3\xa4yz";
  assert_int_equal(arrow_validate(&schema, &made, NULL), HF_E_INVALID_ARGUMENT);
  *made.children[0] = whole;
  made.release(&made);
  schema.release(&schema);
}

static void validate_text_follows_unicode(void **state) {
  (void)state;
  static const char *const right[] = {"",
                                      "a",
                                      "abcdefgh",
                                      "abcdefghi",
                                      "ä",
                                      "€",
                                      "🦆",
                                      "\xef\xbf\xbf",
                                      "\xf4\x8f\xbf\xbf",
                                      "\xed\x9f\xbf",
                                      "0123456789ä0123456789"};
  static const char *const wrong[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3",
                                      "\xe2\x82",
                                      "\xf0\x9f\xa6",
                                      "01234567\xc3",
                                      "\xe2\x28\xa1",
                                      "\xf0\x9f\x28\x86"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    assert_true(validate_text((const uint8_t *)right[i], strlen(right[i])));
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_false(validate_text((const uint8_t *)wrong[i], strlen(wrong[i])));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(validate_spoiled_array_is_refused),
      cmocka_unit_test(validate_null_rows_are_refused),
      cmocka_unit_test(validate_text_is_judged_by_value),
      cmocka_unit_test(validate_text_follows_unicode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

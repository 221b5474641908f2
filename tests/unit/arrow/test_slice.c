/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: values, offsets and null counts, at any first row and of every layout of a block. */
#include "arrow/ipc.h"

#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const layouts[] = {
    "+s(n;b;c;s;i;l;w:3;w:16;d:3,1,32)",   "+s(u;U;z)",
    "+s(+l(u);+L(b);+m(+s(u;i)))",         "+s(+w:3(s);+w:2(b);+w:2(+w:2(u)))",
    "+s(+s(i;+s(b;+s(u;+w:3(b));+l(s))))", "+s(+us:0,1,2(b;u;+s(i;+l(u))))",
};

static void compare_window(const struct ArrowSchema *schema, const struct ArrowArray *rows,
                           const struct ArrowArray *window, int64_t first) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    int64_t nulls = 0;
    bool is_union = strncmp(schema->children[i]->format, "+u", 2) == 0;
    assert_int_equal(window->children[i]->length, window->length);
    for (int64_t row = 0; row < window->length; row++) {
      buf expected = {0};
      buf found = {0};
      made_value_text(schema->children[i], rows->children[i], rows->offset + first + row, &expected);
      made_value_text(schema->children[i], window->children[i], row, &found);
      if (strcmp(buf_cstr(&expected), buf_cstr(&found)) != 0) {
        fail_msg("%s row %d of %d: %s, expected %s", schema->children[i]->format, (int)row, (int)first,
                 buf_cstr(&found), buf_cstr(&expected));
      }
      nulls += strcmp(buf_cstr(&found), "null") == 0;
      buf_reset(&expected);
      buf_reset(&found);
    }
    assert_int_equal(window->children[i]->null_count, is_union ? 0 : nulls);
  }
}

/* Offsets of a window at a multiple of 8: DuckDB adds only the nearest parent's to a field's own. */
static void expect_no_offsets(const struct ArrowArray *array, const struct ArrowSchema *schema) {
  assert_int_equal(array->offset, 0);
  if (strcmp(schema->format, "+s") == 0 || strncmp(schema->format, "+w", 2) == 0 ||
      strncmp(schema->format, "+u", 2) == 0) {
    for (int64_t i = 0; i < schema->n_children; i++) {
      expect_no_offsets(array->children[i], schema->children[i]);
    }
  }
}

static void cut_everywhere(const struct ArrowSchema *schema, const made_options *options) {
  static const int64_t firsts[] = {0, 1, 7, 8, 16, 63, 64, 65, 128};
  struct ArrowArray rows;
  slicer *s;
  made_array(schema, options, &rows);
  assert_int_equal(slicer_new(schema, NULL, 0, &s, NULL), HF_OK);
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
    struct ArrowArray window;
    int64_t count = i % 2 == 0 ? 200 - firsts[i] : 50;
    slicer_cut(s, &rows, firsts[i], count, &window);
    assert_int_equal(window.length, count);
    assert_int_equal(window.offset, 0);
    compare_window(schema, &rows, &window, firsts[i]);
    if (firsts[i] % 8 == 0 && !options->with_offsets) {
      expect_no_offsets(&window, schema);
    }
    window.release(&window);
    assert_null(window.release);
  }
  slicer_free(s);
  rows.release(&rows);
}

static void slice_at_any_row_keeps_values(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
    struct ArrowSchema schema;
    made_schema(layouts[k], &schema);
    for (unsigned variant = 0; variant < 4; variant++) {
      made_options options = {.seed = k + 1,
                              .rows = 200,
                              .null_percent = variant == 0 ? 0 : 30,
                              .with_offsets = variant >= 2,
                              .unknown_null_count = variant == 3};
      cut_everywhere(&schema, &options);
    }
    schema.release(&schema);
  }
}

static void slice_of_picked_columns_follows_their_order(void **state) {
  (void)state;
  static const size_t columns[] = {2, 0};
  struct ArrowSchema schema;
  struct ArrowSchema picked;
  struct ArrowArray all;
  struct ArrowArray window;
  slicer *s;
  made_schema("+s(i;u;+s(b;u))", &schema);
  made_schema("+s(+s(b;u);i)", &picked);
  made_array(&picked, &(made_options){.seed = 4, .rows = 100, .null_percent = 20}, &all);
  assert_int_equal(slicer_new(&schema, columns, 2, &s, NULL), HF_OK);
  slicer_cut(s, &all, 8, 90, &window);
  compare_window(&picked, &all, &window, 8);
  slicer_free(s);
  static const size_t outside[] = {3};
  assert_int_equal(slicer_new(&schema, outside, 1, &s, NULL), HF_E_INVALID_ARGUMENT);
  all.release(&all);
  schema.release(&schema);
  picked.release(&picked);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slice_at_any_row_keeps_values),
      cmocka_unit_test(slice_of_picked_columns_follows_their_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

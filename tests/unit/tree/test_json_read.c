/* SPDX-License-Identifier: Apache-2.0 */
/* Strict reading of objects: what is absent, of another kind, out of range or left over is refused by name. */
#include "tree/json_read.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

typedef struct fixture {
  arena *a;
  tree_refusal refusal;
  hf_error error;
  json_reader reader;
  struct json_object *root;
  json_view view;
} fixture;

static void open_text(fixture *f, const char *json) {
  memset(f, 0, sizeof *f);
  f->a = arena_new();
  f->reader = (json_reader){.a = f->a, .refusal = &f->refusal, .error = &f->error};
  f->root = json_tokener_parse(json);
  assert_int_equal(json_read_open(&f->reader, f->root, "NODE", &f->view), HF_OK);
}

static void close_text(fixture *f) {
  json_object_put(f->root);
  hf_error_reset(&f->error);
  arena_free(f->a);
}

static void expect_refusal(fixture *f, hf_status status, tree_refusal_code code, const char *reason) {
  assert_int_equal(status, HF_E_UNSUPPORTED);
  assert_int_equal(f->refusal.code, code);
  assert_string_equal(f->refusal.node, "NODE");
  assert_non_null(strstr(f->refusal.reason, reason));
  close_text(f);
}

static void object_with_a_key_left_over_is_refused(void **state) {
  (void)state;
  fixture f;
  uint64_t n = 0;
  open_text(&f, "{\"n\": 18446744073709551615, \"rest\": null}");
  assert_int_equal(json_read_size(&f.view, "n", &n), HF_OK);
  assert_true(n == UINT64_MAX);
  expect_refusal(&f, json_read_close(&f.view), TREE_REFUSED_KEY, "rest");
}

static void object_with_all_keys_taken_is_closed(void **state) {
  (void)state;
  static const char *const ignored[] = {"b", "absent"};
  fixture f;
  bool flag = false;
  open_text(&f, "{\"a\": true, \"b\": [1]}");
  assert_int_equal(json_read_bool(&f.view, "a", &flag), HF_OK);
  assert_true(flag);
  json_read_ignore(&f.view, ignored, 2);
  assert_int_equal(json_read_close(&f.view), HF_OK);
  close_text(&f);
}

static void value_that_is_no_object_is_refused(void **state) {
  (void)state;
  fixture f;
  json_view v;
  open_text(&f, "{\"a\": 3}");
  expect_refusal(&f, json_read_open(&f.reader, json_read_take(&f.view, "a"), "NODE", &v),
                 TREE_REFUSED_UNREADABLE, "object");
}

static void negative_number_is_no_size(void **state) {
  (void)state;
  fixture f;
  uint64_t n = 0;
  open_text(&f, "{\"n\": -1}");
  expect_refusal(&f, json_read_size(&f.view, "n", &n), TREE_REFUSED_UNREADABLE, "n is not");
}

static void absent_text_is_refused(void **state) {
  (void)state;
  fixture f;
  const char *text = NULL;
  open_text(&f, "{}");
  expect_refusal(&f, json_read_text(&f.view, "name", &text), TREE_REFUSED_UNREADABLE, "name");
}

static void name_with_nul_inside_is_refused(void **state) {
  (void)state;
  fixture f;
  const char *text = NULL;
  open_text(&f, "{\"name\": \"a\\u0000b\"}");
  expect_refusal(&f, json_read_text(&f.view, "name", &text), TREE_REFUSED_VALUE, "NUL");
}

static void text_with_nul_inside_keeps_its_length(void **state) {
  (void)state;
  fixture f;
  const char *text = NULL;
  size_t length = 0;
  open_text(&f, "{\"v\": \"a\\u0000b\"}");
  assert_int_equal(json_read_text_of(&f.reader, json_read_take(&f.view, "v"), "NODE", &text, &length), HF_OK);
  assert_int_equal(length, 3);
  assert_memory_equal(text, "a\0b", 4);
  close_text(&f);
}

static void unknown_name_of_an_enumeration_is_refused(void **state) {
  (void)state;
  static const char *const names[] = {"LEFT", "RIGHT"};
  fixture f;
  unsigned at = 0;
  open_text(&f, "{\"side\": \"RIGHT\"}");
  assert_int_equal(json_read_enum(&f.view, "side", names, 2, &at), HF_OK);
  assert_int_equal(at, 1);
  close_text(&f);
  open_text(&f, "{\"side\": \"MIDDLE\"}");
  expect_refusal(&f, json_read_enum(&f.view, "side", names, 2, &at), TREE_REFUSED_VALUE, "MIDDLE");
}

static void index_beyond_its_limit_is_refused(void **state) {
  (void)state;
  fixture f;
  const size_t *indexes = NULL;
  size_t n = 0;
  open_text(&f, "{\"map\": [1, 0]}");
  assert_int_equal(json_read_indexes(&f.view, "map", 2, &indexes, &n), HF_OK);
  assert_int_equal(n, 2);
  assert_int_equal(indexes[0], 1);
  close_text(&f);
  open_text(&f, "{\"map\": [1, 2]}");
  expect_refusal(&f, json_read_indexes(&f.view, "map", 2, &indexes, &n), TREE_REFUSED_REFERENCE, "below 2");
}

static void absent_array_is_empty(void **state) {
  (void)state;
  fixture f;
  const char *const *texts = NULL;
  size_t n = 7;
  open_text(&f, "{}");
  assert_int_equal(json_read_texts(&f.view, "names", &texts, &n), HF_OK);
  assert_int_equal(n, 0);
  close_text(&f);
}

static void first_refusal_stays(void **state) {
  (void)state;
  fixture f;
  open_text(&f, "{}");
  json_read_refuse(&f.reader, TREE_REFUSED_TYPE, "NODE", "the first");
  expect_refusal(&f, json_read_refuse(&f.reader, TREE_REFUSED_KEY, "OTHER", "the second"), TREE_REFUSED_TYPE,
                 "the first");
}

static void level_beyond_the_deepest_is_refused(void **state) {
  (void)state;
  fixture f;
  open_text(&f, "{}");
  for (int i = 0; i < TREE_DEEPEST_LEVEL; i++) {
    assert_int_equal(json_read_descend(&f.reader, "NODE"), HF_OK);
  }
  expect_refusal(&f, json_read_descend(&f.reader, "NODE"), TREE_REFUSED_DEPTH, "2000");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(object_with_a_key_left_over_is_refused),
      cmocka_unit_test(object_with_all_keys_taken_is_closed),
      cmocka_unit_test(value_that_is_no_object_is_refused),
      cmocka_unit_test(negative_number_is_no_size),
      cmocka_unit_test(absent_text_is_refused),
      cmocka_unit_test(name_with_nul_inside_is_refused),
      cmocka_unit_test(text_with_nul_inside_keeps_its_length),
      cmocka_unit_test(unknown_name_of_an_enumeration_is_refused),
      cmocka_unit_test(index_beyond_its_limit_is_refused),
      cmocka_unit_test(absent_array_is_empty),
      cmocka_unit_test(first_refusal_stays),
      cmocka_unit_test(level_beyond_the_deepest_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations: adding, finding, releasing, order, sessions. */
#include "hold/hold.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static uuid id_of(const char *text) {
  uuid id = {{0}};
  snprintf(id.text, sizeof id.text, "%s", text);
  return id;
}

static declaration row_of(const char *key, const char *session) {
  declaration row = {
      .key = id_of(key), .session = id_of(session), .fingerprint = "00ff", .level = "DISK_ONLY"};
  return row;
}

static void declarations_add_copies_everything(void **state) {
  (void)state;
  declarations *d = declarations_new();
  arena *a = arena_new();
  static const data_type integer = {.kind = TYPE_INTEGER};
  column *columns = arena_array(a, 1, sizeof *columns);
  columns[0] = (column){.name = arena_strdup(a, "x"), .type = &integer};
  declaration row = row_of("k", "s");
  row.name = arena_strdup(a, "trips");
  row.columns = (schema){.n_columns = 1, .columns = columns};
  assert_int_equal(declarations_add(d, &row, NULL), HF_OK);
  arena_free(a);
  uuid key = id_of("k");
  const declaration *found = declarations_find(d, &key);
  assert_non_null(found);
  assert_string_equal(found->name, "trips");
  assert_string_equal(found->columns.columns[0].name, "x");
  assert_string_equal(found->level, "DISK_ONLY");
  declarations_free(d);
}

static void declarations_add_of_a_known_key_is_refused(void **state) {
  (void)state;
  declarations *d = declarations_new();
  declaration row = row_of("k", "s");
  assert_int_equal(declarations_add(d, &row, NULL), HF_OK);
  hf_error error = {0};
  assert_int_equal(declarations_add(d, &row, &error), HF_E_NAME_EXISTS);
  hf_error_reset(&error);
  declarations_free(d);
}

static void declarations_release_sticks(void **state) {
  (void)state;
  declarations *d = declarations_new();
  declaration row = row_of("k", "s");
  assert_int_equal(declarations_add(d, &row, NULL), HF_OK);
  uuid key = id_of("k"), other = id_of("other");
  assert_false(declarations_find(d, &key)->released);
  assert_true(declarations_release(d, &key));
  assert_true(declarations_find(d, &key)->released);
  assert_false(declarations_release(d, &other));
  declarations_free(d);
}

static bool collect(void *context, const declaration *row) {
  char *text = context;
  size_t used = strlen(text);
  text[used] = row->key.text[0];
  text[used + 1] = '\0';
  return used < 3;
}

static void declarations_each_goes_by_session_in_order(void **state) {
  (void)state;
  declarations *d = declarations_new();
  static const char *const keys[] = {"d", "a", "c", "b", "e"};
  for (size_t i = 0; i < 5; i++) {
    declaration row = row_of(keys[i], i % 2 == 0 ? "s" : "t");
    assert_int_equal(declarations_add(d, &row, NULL), HF_OK);
  }
  char text[16] = "";
  declarations_each(d, NULL, collect, text);
  assert_string_equal(text, "dacb"); /* stopped by the fourth */
  uuid session = id_of("s");
  text[0] = '\0';
  declarations_each(d, &session, collect, text);
  assert_string_equal(text, "dce");
  declarations_remove_session(d, &session);
  text[0] = '\0';
  declarations_each(d, NULL, collect, text);
  assert_string_equal(text, "ab");
  declarations_free(d);
}

static declaration content_row(const char *key, const char *session, const char *canonical) {
  declaration row = row_of(key, session);
  row.by_content = true;
  row.canonical = (const uint8_t *)canonical;
  row.canonical_bytes = strlen(canonical);
  return row;
}

static const char *key_found(const declarations *d, const char *session, const char *fingerprint,
                             const char *canonical) {
  uuid id = id_of(session);
  const declaration *row = declarations_find_by_fingerprint(d, &id, fingerprint, (const uint8_t *)canonical,
                                                            canonical == NULL ? 0 : strlen(canonical));
  return row == NULL ? "none" : row->key.text;
}

static void declarations_find_by_fingerprint_is_confirmed_by_the_plan(void **state) {
  (void)state;
  declarations *d = declarations_new();
  declaration by_id = row_of("id", "s"), by_content = content_row("content", "s", "plan");
  assert_int_equal(declarations_add(d, &by_id, NULL), HF_OK);
  assert_string_equal(key_found(d, "s", "00ff", NULL), "none"); /* declared by a node */
  assert_int_equal(declarations_add(d, &by_content, NULL), HF_OK);
  assert_string_equal(key_found(d, "s", "00ff", "plan"), "content");
  assert_string_equal(key_found(d, "s", "00ff", NULL), "content");
  assert_string_equal(key_found(d, "s", "00ff", "another plan"), "none");
  assert_string_equal(key_found(d, "t", "00ff", "plan"), "none");
  assert_string_equal(key_found(d, "s", "00fe", "plan"), "none");
  declarations_free(d);
}

static void declarations_release_by_content_lets_it_be_declared_anew(void **state) {
  (void)state;
  declarations *d = declarations_new();
  declaration first = content_row("first", "s", "plan"), second = content_row("second", "s", "plan");
  uuid key = id_of("first"), next = id_of("second");
  assert_int_equal(declarations_add(d, &first, NULL), HF_OK);
  assert_true(declarations_release(d, &key));
  assert_string_equal(key_found(d, "s", "00ff", "plan"), "none");
  assert_true(declarations_find(d, &key)->released); /* who named it still learns that */
  assert_int_equal(declarations_add(d, &second, NULL), HF_OK);
  assert_string_equal(key_found(d, "s", "00ff", "plan"), "second");
  assert_true(declarations_remove(d, &key));
  assert_true(declarations_remove(d, &next));
  assert_false(declarations_remove(d, &next));
  assert_string_equal(key_found(d, "s", "00ff", "plan"), "none");
  declarations_free(d);
}

static void declarations_add_without_memory_leaves_no_row(void **state) {
  (void)state;
  declaration row = row_of("k", "s");
  row.name = "trips";
  row.by_content = true;
  bool succeeded = false;
  for (uint64_t n = 1; !succeeded && n < 50; n++) {
    declarations *d = declarations_new();
    mem_fail_after(n);
    hf_status status = declarations_add(d, &row, NULL);
    mem_fail_after(0);
    succeeded = status == HF_OK;
    assert_int_equal(declarations_find(d, &row.key) != NULL, succeeded);
    declarations_free(d);
  }
  assert_true(succeeded);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(declarations_add_copies_everything),
      cmocka_unit_test(declarations_add_of_a_known_key_is_refused),
      cmocka_unit_test(declarations_release_sticks),
      cmocka_unit_test(declarations_each_goes_by_session_in_order),
      cmocka_unit_test(declarations_find_by_fingerprint_is_confirmed_by_the_plan),
      cmocka_unit_test(declarations_release_by_content_lets_it_be_declared_anew),
      cmocka_unit_test(declarations_add_without_memory_leaves_no_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

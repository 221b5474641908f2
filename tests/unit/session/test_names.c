/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names: lookup, suggestions, the exchange, and what happens for lack of memory. */
#include "session/session_internal.h"

#include "base/mem.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

static relation *file_relation(const char *path) {
  const source_request request = {.format = SOURCE_CSV, .paths = &path, .n_paths = 1};
  relation *r = NULL;
  assert_int_equal(relation_from_read(&request, &r, NULL), HF_OK);
  return r;
}

static void put(names *n, const char *name, const relation *expected, const relation *bound,
                bool expect_done) {
  name_entry entry = {.name = name, .bound = bound};
  bool done = !expect_done;
  assert_int_equal(names_exchange(n, name, expected, bound == NULL ? NULL : &entry, &done, NULL), HF_OK);
  assert_int_equal(done, expect_done);
}

static int open_names(void **state) {
  static names n;
  assert_int_equal(names_init(&n, NULL), HF_OK);
  *state = &n;
  return 0;
}

static int close_names(void **state) {
  names_destroy(*state);
  names_destroy(*state); /* of a destroyed one: nothing */
  return 0;
}

static void find_sets_letter_case_aside(void **state) {
  relation *a = file_relation("a.csv");
  put(*state, "Flights", NULL, a, true);
  name_list *list = names_snapshot(*state);
  assert_ptr_equal(name_list_find(list, "fLIGHTS")->bound, a);
  assert_string_equal(name_list_find(list, "flights")->name, "Flights");
  assert_null(name_list_find(list, "flight"));
  assert_null(name_list_find(list, ""));
  name_list_release(list);
  relation_release(a);
}

static void list_is_sorted_whatever_the_order_of_puts(void **state) {
  static const char *const given[] = {"m", "b", "Z", "a", "Y", "c"};
  static const char *const sorted[] = {"a", "b", "c", "m", "Y", "Z"};
  relation *a = file_relation("a.csv");
  for (size_t i = 0; i < 6; i++) {
    put(*state, given[i], NULL, a, true);
  }
  name_list *list = names_snapshot(*state);
  assert_int_equal(name_list_count(list), 6);
  for (size_t i = 0; i < 6; i++) {
    assert_string_equal(name_list_at(list, i)->name, sorted[i]);
  }
  name_list_release(list);
  relation_release(a);
}

static void exchange_with_a_stale_expectation_changes_nothing(void **state) {
  relation *a = file_relation("a.csv");
  relation *b = file_relation("b.csv");
  put(*state, "v", NULL, a, true);
  put(*state, "v", NULL, b, false);
  put(*state, "v", b, b, false);
  put(*state, "v", b, NULL, false);
  put(*state, "w", a, b, false);
  put(*state, "V", a, b, true);
  name_list *list = names_snapshot(*state);
  assert_int_equal(name_list_count(list), 1);
  assert_ptr_equal(name_list_find(list, "v")->bound, b);
  name_list_release(list);
  put(*state, "v", b, NULL, true);
  put(*state, "v", NULL, NULL, true);
  relation_release(a);
  relation_release(b);
}

static void snapshot_keeps_what_it_saw(void **state) {
  relation *a = file_relation("a.csv");
  put(*state, "v", NULL, a, true);
  name_list *list = names_snapshot(*state);
  put(*state, "v", a, NULL, true);
  relation_release(a);
  assert_ptr_equal(name_list_find(list, "v")->bound, a);
  assert_int_equal(relation_look(name_list_find(list, "v")->bound).kind, RELATION_READ);
  name_list_release(list);
}

static void missing_name_suggests_the_nearest(void **state) {
  relation *a = file_relation("a.csv");
  put(*state, "flights", NULL, a, true);
  put(*state, "airports", NULL, a, true);
  name_list *list = names_snapshot(*state);
  hf_error error = {0};
  assert_int_equal(name_list_missing(list, "no view", "flihgts", &error), HF_E_TABLE_NOT_FOUND);
  assert_string_equal(error.message, "no view: flihgts");
  assert_non_null(strstr(error.hint, "flights"));
  assert_int_equal(name_list_missing(list, "no view", "xyzzyxyzzy", &error), HF_E_TABLE_NOT_FOUND);
  assert_null(strstr(error.hint, "flights"));
  hf_error_reset(&error);
  name_list_release(list);
  relation_release(a);
}

static void sql_names_give_bound_relations(void **state) {
  relation *a = file_relation("a.csv");
  put(*state, "v", NULL, a, true);
  name_list *list = names_snapshot(*state);
  relation_names sql = name_list_for_sql(list);
  assert_ptr_equal(sql.lookup(sql.context, "V"), a);
  assert_null(sql.lookup(sql.context, "w"));
  assert_string_equal(sql.name_at(sql.context, 0), "v");
  assert_null(sql.name_at(sql.context, 1));
  name_list_release(list);
  relation_release(a);
}

static void exchange_without_memory_changes_nothing(void **state) {
  relation *a = file_relation("a.csv");
  relation *b = file_relation("b.csv");
  put(*state, "v", NULL, a, true);
  name_entry entry = {.name = "w", .bound = b};
  for (uint64_t n = 1;; n++) {
    bool done = true;
    mem_fail_after(n);
    hf_status status = names_exchange(*state, "w", NULL, &entry, &done, NULL);
    mem_fail_after(0);
    if (status == HF_OK) {
      assert_true(n > 2);
      break;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
    assert_false(done);
    name_list *list = names_snapshot(*state);
    assert_int_equal(name_list_count(list), 1);
    name_list_release(list);
  }
  relation_release(a);
  relation_release(b);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_names, close_names)
  const struct CMUnitTest tests[] = {
      CASE(find_sets_letter_case_aside),
      CASE(list_is_sorted_whatever_the_order_of_puts),
      CASE(exchange_with_a_stale_expectation_changes_nothing),
      CASE(snapshot_keeps_what_it_saw),
      CASE(missing_name_suggests_the_nearest),
      CASE(sql_names_give_bound_relations),
      CASE(exchange_without_memory_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of many holds: the same rows as of few, at once, and beside a fill that has the only slot. */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 3000 };

static unsigned lines_of(const char *text) {
  unsigned n = 0;
  for (; *text != '\0'; text++) {
    n += *text == '\n' ? 1 : 0;
  }
  return n;
}

static void declare_many(api_case *c) {
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  for (int i = 0; i < MANY; i++) {
    hf_df_free(api_cache(c, query));
  }
  hf_df_free(query);
}

static void listing_of_many_holds_has_a_row_each(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE \"it's, one\" AS SELECT 7 AS n");
  declare_many(c);
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  assert_int_equal(lines_of(rows), MANY + 1);
  assert_true(strncmp(rows, "it's, one|", 10) == 0);
  assert_non_null(strstr(rows, "|materialised|MEMORY_AND_DISK_DESER|1|"));
  assert_non_null(strstr(rows, "\nNULL|"));
  assert_non_null(strstr(rows, "|declared|MEMORY_AND_DISK_DESER|NULL|NULL|NULL|0|0|"));
  free(rows);
  hf_df_free(show);
}

/* The separators of a packed listing are characters like any other in a name. */
static void listing_of_odd_names_is_exact(void **state) {
  api_case *c = *state;
  declare_many(c);
  api_run(c, "CREATE VIEW \"a\x1e"
             "b\x1f"
             "c\x1d\" AS SELECT 1 AS n");
  for (int i = 0; i < 150; i++) {
    char sql[64];
    snprintf(sql, sizeof sql, "CREATE VIEW v%03d AS SELECT 1 AS n", i);
    api_run(c, sql);
  }
  hf_df *show = api_sql(c, "SHOW TABLES");
  char *rows = api_rows(c, show, NULL);
  assert_int_equal(lines_of(rows), 151);
  assert_true(strncmp(rows,
                      "a\x1e"
                      "b\x1f"
                      "c\x1d|view\nv000|view\n",
                      22) == 0);
  free(rows);
  hf_df_free(show);
}

static void *fill(void *context) {
  struct ArrowArrayStream stream;
  void *const *of = context;
  hf_action_options options = {.cancel = of[1]};
  assert_int_equal(hf_df_collect(of[0], &options, &stream, NULL), HF_E_CANCELLED);
  return NULL;
}

static void listing_of_many_holds_does_not_wait_behind_a_fill(void **state) {
  api_case *c = *state;
  declare_many(c);
  hf_df *query = api_sql(c, "SELECT sum(hash(i)) FROM range(100000000000) t(i)");
  hf_df *held = api_cache(c, query);
  void *of[] = {held, hf_cancel_new()};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fill, of), 0);
  api_await_state(c, held, HF_HOLD_PENDING);
  hf_df *show = api_sql(c, "SHOW CACHE");
  for (int i = 0; i < 2; i++) {
    char *rows = api_rows(c, show, NULL);
    assert_int_equal(lines_of(rows), MANY + 1);
    free(rows);
  }
  assert_int_equal(api_storage(c, held).state, HF_HOLD_PENDING);
  hf_cancel_signal(of[1]);
  pthread_join(thread, NULL);
  hf_cancel_free(of[1]);
  hf_df_free(show);
  hf_df_free(held);
  hf_df_free(query);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(listing_of_many_holds_has_a_row_each),
      CASE(listing_of_odd_names_is_exact),
      CASE(listing_of_many_holds_does_not_wait_behind_a_fill),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that nobody writes but somebody sends: not UTF-8, very long, very deep, very wide. */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* head, then `n` times `part`, then tail; released with free(). */
static char *repeated(const char *head, const char *part, size_t n, const char *tail) {
  size_t head_length = strlen(head), length = strlen(part);
  char *text = malloc(head_length + n * length + strlen(tail) + 1);
  assert_non_null(text);
  memcpy(text, head, head_length + 1);
  for (size_t i = 0; i < n; i++) {
    memcpy(text + head_length + i * length, part, length);
  }
  memcpy(text + head_length + n * length, tail, strlen(tail) + 1);
  return text;
}

/* Both ends of a text: `n` times `part` in front, `n` times `tail` behind. */
static char *nested(const char *part, size_t n, const char *inside, const char *tail) {
  char *front = repeated("", part, n, inside);
  char *whole = repeated(front, tail, n, "");
  free(front);
  return whole;
}

/* Runs it plainly, counted and held: all three give that many rows. */
static void works(api_case *c, char *sql, uint64_t rows) {
  hf_df *df = api_sql(c, sql);
  char *all = api_rows(c, df, NULL);
  uint64_t lines = 0;
  for (const char *at = strchr(all, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
    lines++;
  }
  free(all);
  assert_int_equal(lines, rows);
  assert_int_equal(api_count(c, df, NULL), rows);
  hf_df *held = api_cache(c, df);
  assert_int_equal(api_count(c, held, NULL), rows);
  assert_int_equal(hf_df_unpersist(held, true, NULL), HF_OK);
  hf_df_free(held);
  hf_df_free(df);
  free(sql);
}

static void fails(api_case *c, char *sql, hf_status code, const char *hint) {
  api_fails(c, sql, code);
  assert_non_null(c->error.message);
  assert_non_null(c->error.hint);
  assert_non_null(strstr(c->error.hint, hint));
  free(sql);
}

static void statement_that_is_not_utf8_is_refused_and_runs_nothing(void **state) {
  static const char *const wrong[] = {"SELECT '\xff'",
                                      "SELECT 1 AS \"\xc3\"",
                                      "SELECT * FROM '\xed\xa0\x80.csv'",
                                      "CREATE VIEW \"\xff\" AS SELECT 1",
                                      "SELECT 1 -- \xfe",
                                      "CACHE TABLE t AS SELECT '\xc0\xaf' AS a"};
  api_case *c = *state;
  api_run(c, "SELECT 1"); /* a text before, which must not be taken for the next one */
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    api_fails(c, wrong[i], HF_E_SYNTAX);
    assert_non_null(strstr(c->error.message, "UTF-8"));
    assert_int_equal(c->error.position, strcspn(wrong[i], "\xff\xc3\xed\xfe\xc0"));
  }
  api_expect(c, "SHOW TABLES", "");
}

static void name_that_is_not_utf8_is_refused(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS a");
  hf_df *none = NULL;
  const char *path = "a\xff.csv";
  const char *right = "a.csv";
  const hf_setting option = {"delim", "\xff"};
  assert_int_equal(hf_df_create_view(df, "v\xff", false, &c->error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_read(c->session, "csv", &path, 1, NULL, 0, &none, &c->error),
                   HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_read(c->session, "csv", &right, 1, &option, 1, &none, &c->error),
                   HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_set(c->session, "sql.time_zone", "\xff", &c->error), HF_E_SETTING_VALUE);
  assert_null(none);
  hf_df_free(df);
  api_expect(c, "SHOW TABLES", "");
}

static void long_text_works_wherever_it_stands(void **state) {
  api_case *c = *state;
  works(c, repeated("SELECT length('", "abcdefghij", 600000, "')"), 1);
  works(c, repeated("SELECT 1 /*", "cccccccccc", 600000, "*/"), 1);
  works(c, repeated("SELECT 1 AS \"", "n", 100000, "\""), 1);
  api_run(c, "SELECT 1");
}

static void deep_text_works_or_says_so(void **state) {
  api_case *c = *state;
  works(c, nested("SELECT * FROM (", 100, "SELECT 1 AS a", ") t"), 1);
  works(c, repeated("SELECT 1 AS a", " UNION ALL SELECT 1", 300, ""), 301);
  char *parentheses = nested("(", 5000, "1", ")");
  works(c, repeated("SELECT ", parentheses, 1, ""), 1);
  free(parentheses);
  fails(c, nested("SELECT * FROM (", 3000, "SELECT 1 AS a", ") t"), HF_E_LIMIT, "CACHE TABLE");
  fails(c, repeated("SELECT ", "NOT ", 20000, "true"), HF_E_LIMIT, "CACHE TABLE");
  fails(c, repeated("SELECT 1", "+1", 20000, ""), HF_E_LIMIT, "CACHE TABLE");
  api_expect(c, "SELECT 1", "1\n");
}

static void list_too_long_to_plan_says_so(void **state) {
  api_case *c = *state;
  fails(c, repeated("SELECT 1 WHERE 5 IN (1", ",1234567", 1200000, ")"), HF_E_LIMIT, "into a file");
  api_expect(c, "SELECT 1", "1\n");
}

static void wide_rows_are_held(void **state) {
  enum { WIDTH = 3000 };
  api_case *c = *state;
  char *sql = malloc(32 * WIDTH);
  size_t at = 0;
  for (int i = 0; i < WIDTH; i++) {
    at += (size_t)snprintf(sql + at, 32, "%s%d AS c%d", i == 0 ? "SELECT " : ", ", i, i);
  }
  works(c, sql, 1);
}

static void view_that_doubles_is_limited(void **state) {
  api_case *c = *state;
  char sql[100];
  api_run(c, "CREATE VIEW w0 AS SELECT 1 AS a");
  for (int i = 1; i < 30; i++) {
    snprintf(sql, sizeof sql, "CREATE VIEW w%d AS SELECT x.a FROM w%d x, w%d y", i, i - 1, i - 1);
    api_run(c, sql);
  }
  api_fails(c, "SELECT * FROM w29", HF_E_LIMIT);
  api_run(c, "CACHE TABLE w5");
  api_expect(c, "SELECT count(*) FROM w5", "1\n");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(statement_that_is_not_utf8_is_refused_and_runs_nothing),
      CASE(name_that_is_not_utf8_is_refused),
      CASE(long_text_works_wherever_it_stands),
      CASE(deep_text_works_or_says_so),
      CASE(list_too_long_to_plan_says_so),
      CASE(wide_rows_are_held),
      CASE(view_that_doubles_is_limited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

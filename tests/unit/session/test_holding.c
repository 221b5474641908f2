/* SPDX-License-Identifier: Apache-2.0 */
/* What of holding the public API cannot reach: relations that cross sessions, text of a result. */
#include "session/session.h"

#include "base/buf.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

typedef struct pair {
  session *mine, *other;
} pair;

static int open_pair(void **state) {
  static pair p;
  assert_int_equal(session_open(NULL, 0, NULL, &p.mine, NULL), HF_OK);
  assert_int_equal(session_open(NULL, 0, p.mine, &p.other, NULL), HF_OK);
  *state = &p;
  return 0;
}

static int close_pair(void **state) {
  pair *p = *state;
  session_close(p->other);
  session_close(p->mine);
  return 0;
}

static relation *held_of(session *s, const char *sql) {
  relation *r = NULL;
  relation *held = NULL;
  assert_int_equal(session_sql(s, sql, NULL, NULL, &r, NULL), HF_OK);
  assert_int_equal(session_cache(s, r, NULL, NULL, &held, NULL), HF_OK);
  relation_release(r);
  return held;
}

static void hold_of_another_session_is_foreign(void **state) {
  pair *p = *state;
  relation *held = held_of(p->mine, "SELECT 1 AS n");
  hf_error error = {0};
  hf_storage storage;
  struct ArrowArrayStream stream;
  assert_int_equal(session_storage(p->other, held, &storage, &error), HF_E_HELD_FOREIGN);
  assert_int_equal(session_unpersist(p->other, held, true, &error), HF_E_HELD_FOREIGN);
  assert_int_equal(session_collect(p->other, held, NULL, NULL, &stream, &error), HF_E_HELD_FOREIGN);
  assert_non_null(error.message);
  hf_error_reset(&error);
  uint64_t rows = 0;
  assert_int_equal(session_count(p->mine, held, NULL, NULL, &rows, NULL), HF_OK);
  assert_int_equal(rows, 1);
  relation_release(held);
}

static void view_over_a_foreign_hold_is_foreign(void **state) {
  pair *p = *state;
  relation *held = held_of(p->mine, "SELECT 1 AS n");
  relation *top = NULL;
  uint64_t rows = 0;
  assert_int_equal(session_create_view(p->other, held, "v", false, NULL), HF_OK);
  assert_int_equal(session_sql(p->other, "SELECT * FROM v", NULL, NULL, &top, NULL), HF_OK);
  assert_int_equal(session_count(p->other, top, NULL, NULL, &rows, NULL), HF_E_HELD_FOREIGN);
  relation_release(top);
  relation_release(held);
}

/* --------------------------------------------------------------------- show */

typedef struct shown {
  buf text;
  size_t n_columns, stop_after, rows;
} shown;

static bool show_head(void *context, const schema *columns) {
  shown *s = context;
  s->n_columns = columns->n_columns;
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_printf(&s->text, "%s%s", i == 0 ? "" : "|", columns->columns[i].name);
  }
  buf_char(&s->text, '\n');
  return true;
}

static bool show_rows(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                      size_t n_rows) {
  shown *s = context;
  for (size_t row = 0; row < n_rows; row++) {
    for (size_t i = 0; i < s->n_columns; i++) {
      buf_text(&s->text, i == 0 ? "" : "|");
      if (cells[i][row] == NULL) {
        buf_text(&s->text, "NULL");
      } else {
        buf_append(&s->text, cells[i][row], lengths[i][row]);
      }
    }
    buf_char(&s->text, '\n');
  }
  s->rows += n_rows;
  return s->stop_after == 0 || s->rows < s->stop_after;
}

static void expect_shown(session *s, const char *sql, const char *text) {
  shown seen = {0};
  text_sink sink = {.head = show_head, .rows = show_rows, .context = &seen};
  relation *r = NULL;
  hf_error error = {0};
  assert_int_equal(session_sql(s, sql, NULL, NULL, &r, &error), HF_OK);
  if (session_show(s, r, NULL, NULL, &sink, &error) != HF_OK) {
    fail_msg("%s: %s", sql, error.message);
  }
  assert_string_equal(buf_cstr(&seen.text), text);
  buf_reset(&seen.text);
  relation_release(r);
}

static void show_spells_values_as_the_engine_does(void **state) {
  pair *p = *state;
  expect_shown(p->mine, "SELECT 1 AS a, 'x' AS a, NULL AS \"b c\", [1, NULL] AS l, DATE '2024-02-29' AS d",
               "a|a|b c|l|d\n1|x|NULL|[1, NULL]|2024-02-29\n");
  expect_shown(p->mine, "SELECT 'v'::ENUM('u', 'v') AS e, ['u'::ENUM('u', 'v')] AS l, INTERVAL 3 DAY AS i",
               "e|l|i\nv|[u]|3 days\n");
  expect_shown(p->mine, "SELECT 1 AS a WHERE false", "a\n");
}

static void show_uses_the_time_zone_of_the_session(void **state) {
  pair *p = *state;
  static const char query[] = "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t";
  assert_int_equal(session_set(p->mine, "sql.time_zone", "Asia/Tokyo", NULL), HF_OK);
  assert_int_equal(session_set(p->other, "sql.time_zone", "UTC", NULL), HF_OK);
  expect_shown(p->mine, query, "t\n2024-01-01 09:00:00+09\n");
  expect_shown(p->other, query, "t\n2024-01-01 00:00:00+00\n");
  expect_shown(p->mine, query, "t\n2024-01-01 09:00:00+09\n");
}

static void show_stops_when_told(void **state) {
  pair *p = *state;
  shown seen = {.stop_after = 1};
  text_sink sink = {.head = show_head, .rows = show_rows, .context = &seen};
  relation *r = NULL;
  assert_int_equal(session_sql(p->mine, "SELECT i FROM range(1000000) t(i)", NULL, NULL, &r, NULL), HF_OK);
  assert_int_equal(session_show(p->mine, r, NULL, NULL, &sink, NULL), HF_OK);
  assert_true(seen.rows < 1000000);
  buf_reset(&seen.text);
  relation_release(r);
}

/* -------------------------------------------------------------------- names */

static bool add_name(void *context, const char *name) {
  buf *text = context;
  buf_printf(text, "%s ", name);
  return strcmp(name, "b") != 0;
}

static void each_name_stops_when_told(void **state) {
  pair *p = *state;
  static const char *const names[] = {"CREATE VIEW c AS SELECT 1 AS n", "CREATE VIEW b AS SELECT 1 AS n",
                                      "CACHE LAZY TABLE a AS SELECT 1 AS n"};
  for (size_t i = 0; i < 3; i++) {
    relation *none = NULL;
    assert_int_equal(session_sql(p->mine, names[i], NULL, NULL, &none, NULL), HF_OK);
    assert_null(none);
  }
  buf text = {0};
  session_each_name(p->mine, add_name, &text);
  assert_string_equal(buf_cstr(&text), "a b ");
  buf_reset(&text);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
  const struct CMUnitTest tests[] = {
      CASE(hold_of_another_session_is_foreign),
      CASE(view_over_a_foreign_hold_is_foreign),
      CASE(show_spells_values_as_the_engine_does),
      CASE(show_uses_the_time_zone_of_the_session),
      CASE(show_stops_when_told),
      CASE(each_name_stops_when_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of DuckDB through a task's sink, blocks and hf_blocks: the rows that come back are those that went. */
#include "store.h"

static int setup(void **state) {
  rig *r = malloc(sizeof *r);
  rig_open(r, 2);
  *state = r;
  return 0;
}

static int teardown(void **state) {
  rig_close(*state);
  free(*state);
  return 0;
}

/* Stores the query, reads it back in windows and compares the text of every value, and IS NOT DISTINCT FROM. */
static void check_window(rig *r, const char *sql, int64_t window) {
  arena *a = arena_new();
  store s;
  store_init(&s);
  s.window = window;
  s.threads = 1;
  schema columns;
  assert_ok(engine_describe(r->slot, sql, a, &columns, ok_error));
  store_fill(&s, r->slot, sql);
  engine_input input = store_input(&s, "x", &columns);
  char *wanted = rig_render(r->slot, sql, columns.n_columns, NULL, 0);
  char *found = rig_render(r->slot, "SELECT * FROM hf_blocks('x')", columns.n_columns, &input, 1);
  assert_string_equal(found, wanted);
  free(wanted);
  free(found);
  buf compare = {0};
  buf_text(&compare, "SELECT count(*), count(*) FILTER (WHERE false");
  for (size_t i = 0; i < columns.n_columns; i++) {
    bool is_text = data_type_contains(columns.columns[i].type, TYPE_ENUM);
    buf_printf(&compare, " OR t.a%zu%s IS DISTINCT FROM c%zu", i, is_text ? "::VARCHAR" : "", i);
    buf_text(&compare, is_text ? "::VARCHAR" : "");
  }
  buf_printf(&compare, ") FROM (%s) t(", sql);
  for (size_t i = 0; i < columns.n_columns; i++) {
    buf_printf(&compare, "%sa%zu", i == 0 ? "" : ", ", i);
  }
  buf_text(&compare, ") POSITIONAL JOIN hf_blocks('x')");
  found = rig_render(r->slot, buf_cstr(&compare), 2, &input, 1);
  char *wanted_counts = arena_printf(a, "%lld|0\n", (long long)s.rows);
  assert_string_equal(found, wanted_counts);
  free(found);
  buf_reset(&compare);
  assert_int_equal(s.scans, 0);
  assert_int_equal(s.readers, 0);
  store_reset(&s);
  arena_free(a);
}

static void check(rig *r, const char *sql) {
  check_window(r, sql, 2048);
  check_window(r, sql, 8);
}

static void types_of_test_all_types_come_back(void **state) {
  check(*state, "SELECT * FROM test_all_types()");
  check(*state, "SELECT * FROM test_all_types(use_large_enum := true)");
}

static void types_of_test_all_types_come_back_nested(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  schema columns;
  assert_ok(engine_describe(r->slot, "SELECT * FROM test_all_types()", a, &columns, ok_error));
  for (size_t i = 0; i < columns.n_columns; i++) {
    const char *name = columns.columns[i].name;
    buf sql = {0};
    buf_text(&sql, "WITH v AS (SELECT ");
    buf_sql_name(&sql, name);
    buf_text(&sql, " AS v FROM test_all_types()), n AS (SELECT v, i FROM v, range(20) t(i)) "
                   "SELECT [v, NULL, v], [v, v]::VARCHAR[] IS NULL, {'a': v, 'b': {'c': v, 'd': i}}, "
                   "CASE WHEN i % 3 = 0 THEN NULL ELSE {'x': {'y': [v]}} END, "
                   "array_value(v, NULL, v), "
                   "MAP {i: v, i + 1: v}, [union_value(u := v)::UNION(u ");
    data_type_to_sql(columns.columns[i].type, &sql);
    buf_text(&sql, ", w VARCHAR)][1 + i % 2], [union_value(u := v)::UNION(w DATE, u ");
    data_type_to_sql(columns.columns[i].type, &sql);
    buf_text(&sql, ")][1 + i % 2], [{'l': [[v], [], NULL]}, NULL], v FROM n ORDER BY i");
    check(r, buf_cstr(&sql));
    buf_reset(&sql);
  }
  arena_free(a);
}

static void intervals_of_any_size_come_back(void **state) {
  check(*state,
        "SELECT to_microseconds(9223372036854775807) AS a, to_microseconds(-9223372036854775807) AS b, "
        "to_years(178956970) + to_days(2147483647) + to_microseconds(9223372036854775807) AS c, "
        "to_months(-2147483648) AS d, NULL::INTERVAL AS e FROM range(5000)");
}

static void intervals_come_back_at_every_depth(void **state) {
  check(
      *state,
      "WITH t AS (SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE to_microseconds(9223372036854775807 - i) "
      "+ to_months(i::INTEGER) END AS v FROM range(5000) r(i)) SELECT v, "
      "CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN [] ELSE [v, NULL, v] END, "
      "CASE WHEN i % 3 = 0 THEN NULL ELSE {'p': i, 'q': v, 'r': {'s': v, 't': [v]}} END, "
      "(CASE WHEN i % 5 = 0 THEN NULL ELSE [v, v, NULL] END)::INTERVAL[3], "
      "MAP {i: v, -i - 1: v}, "
      "CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN union_value(n := i)::UNION(n BIGINT, iv INTERVAL, l INTERVAL[]) "
      "ELSE v::UNION(n BIGINT, iv INTERVAL, l INTERVAL[]) END, "
      "CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN union_value(n := i)::UNION(n BIGINT, iv INTERVAL, l INTERVAL[]) "
      "ELSE [v, v]::UNION(n BIGINT, iv INTERVAL, l INTERVAL[]) END, "
      "[[{'u': v}], NULL, [NULL, {'u': v}]], 'text ' || i FROM t");
}

static void nested_constants_and_dictionaries_come_back(void **state) {
  check(*state,
        "SELECT a, b, [to_days(b), NULL], {'x': to_days(7)} FROM (SELECT [to_days(1), to_microseconds("
        "9223372036854775807)] AS a, range AS b FROM range(3000)) WHERE b % 3 <> 1");
  check(*state,
        "SELECT l.v, r.v FROM (SELECT range i, {'a': to_microseconds(9223372036854775807), 'b': [range]} v "
        "FROM range(3000)) l JOIN (SELECT range i, [to_days(range::INTEGER)] v FROM range(0, 3000, 3)) r "
        "USING (i) ORDER BY i");
}

static void texts_of_odd_shapes_come_back(void **state) {
  check(*state,
        "SELECT chr(0) || 'a', '', NULL::VARCHAR, repeat('x', 100000), '🦆', 'a|b', '~' FROM range(10)");
  check(*state, "SELECT NULL AS n, 1 AS \"a\", 2 AS \"a\", 3 AS \"A.b \"\"q\"\"\", row(1, 'x') AS r");
  check(*state, "SELECT '{\"a\": [1, null]}'::JSON AS j, ['{}'::JSON] AS l, {'j': '1'::JSON} AS s");
}

/* All columns are of those that go without DuckDB's conversion. */
static void plain_columns_come_back_in_any_window(void **state) {
  static const char *const texts[] = {
      "SELECT bool, tinyint, smallint, int, bigint, hugeint, uhugeint, utinyint, usmallint, uint, ubigint, date, "
      "time, timestamp, timestamp_s, timestamp_ms, timestamp_ns, timestamp_tz, float, double, dec_4_1, dec_9_4, "
      "dec_18_6, dec38_10, varchar FROM test_all_types()",
      "SELECT CASE WHEN range % 3 > 0 THEN range END, CASE WHEN range % 7 > 2 THEN repeat(chr((65 + range % "
      "26)::INTEGER), (range % 31)::INTEGER) END, (range % 2 = 0), CASE WHEN range % 4096 < 2048 THEN range::DECIMAL(4, "
      "0) END, ((range - 3000) / 7)::DECIMAL(18, 3) FROM range(9000)",
      "SELECT NULL::VARCHAR, NULL::INTEGER, NULL::DECIMAL(3, 1), '' FROM range(5000)",
      "SELECT 'thirteen byte' || chr(0) || range, range - 5000 FROM range(3000)",
  };
  static const int64_t windows[] = {2048, 8, 5};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    for (size_t k = 0; k < sizeof windows / sizeof windows[0]; k++) {
      check_window(*state, texts[i], windows[k]);
    }
  }
}

static void rows_without_any_come_back(void **state) {
  check(*state, "SELECT * FROM test_all_types() WHERE false");
}

static void types_described_have_their_parts(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  schema s;
  assert_ok(engine_describe(
      r->slot,
      "SELECT 1::DECIMAL(15,2) AS d, 'x'::ENUM('x', '', 'y') AS \"a b\", [1] AS l, [1, 2]::INTEGER[2] AS a, "
      "{'k': 1, 'K2': 'x'} AS s, MAP {1: 'a'} AS m, union_value(u := 1) AS u, '1'::JSON AS j",
      a, &s, ok_error));
  static const char *const wanted[] = {"DECIMAL(15,2)", NULL, "INTEGER[]", "INTEGER[2]", NULL, NULL, NULL,
                                       "JSON"};
  assert_int_equal(s.n_columns, 8);
  assert_string_equal(s.columns[1].name, "a b");
  for (size_t i = 0; i < s.n_columns; i++) {
    buf text = {0};
    data_type_to_sql(s.columns[i].type, &text);
    if (wanted[i] != NULL) {
      assert_string_equal(buf_cstr(&text), wanted[i]);
    }
    buf_reset(&text);
  }
  assert_int_equal(s.columns[1].type->n_names, 3);
  assert_string_equal(s.columns[1].type->names[1], "");
  assert_string_equal(s.columns[4].type->names[1], "K2");
  assert_int_equal(s.columns[5].type->n_children, 2);
  assert_int_equal(s.columns[6].type->kind, TYPE_UNION);
  arena_free(a);
}

static void type_without_a_place_is_refused_by_name(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  schema s;
  hf_error error = {0};
  assert_int_equal(engine_describe(r->slot, "SELECT 1::VARIANT AS v", a, &s, &error), HF_E_UNSUPPORTED);
  assert_non_null(strstr(error.message, "VARIANT"));
  hf_error_reset(&error);
  arena_free(a);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(types_of_test_all_types_come_back),
      CASE(types_of_test_all_types_come_back_nested),
      CASE(intervals_of_any_size_come_back),
      CASE(intervals_come_back_at_every_depth),
      CASE(nested_constants_and_dictionaries_come_back),
      CASE(texts_of_odd_shapes_come_back),
      CASE(plain_columns_come_back_in_any_window),
      CASE(rows_without_any_come_back),
      CASE(types_described_have_their_parts),
      CASE(type_without_a_place_is_refused_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

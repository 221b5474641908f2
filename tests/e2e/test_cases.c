/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What splitting a query may break, each by its name: keys of different types,
 * NULLs, NaN, nothing at all, names twice, drawing once, names of CTEs, settings.
 * Through the public API, three or four tasks on one or two slots. Held results:
 * test_stages_held.c; many more statements: tests/slt.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PARTS = 3 };

/* `sql` with the case's directory for every @; valid until the next call. */
static const char *text(const api_case *c, const char *sql) {
  static char out[4000];
  size_t used = 0;
  for (const char *at = sql; *at != '\0'; at++) {
    int n = snprintf(out + used, sizeof out - used, "%.*s", *at == '@' ? (int)sizeof c->dir : 1,
                     *at == '@' ? c->dir : at);
    used += (size_t)n;
    assert_true(used < sizeof out - sizeof c->dir);
  }
  out[used] = '\0';
  return out;
}

/* Three files <name>_0.parquet … of a query's rows, and a view <name> over them. */
static void make(api_case *c, oracle *o, const char *name, const char *query) {
  char sql[800];
  snprintf(sql, sizeof sql, "CREATE OR REPLACE TABLE made AS %s", query);
  char *error = oracle_run(o, sql);
  for (int part = 0; part < PARTS && error == NULL; part++) {
    snprintf(sql, sizeof sql,
             "COPY (SELECT * FROM made WHERE rowid * %d // greatest((SELECT count(*) FROM made), 1) = %d) "
             "TO '%s/%s_%d.parquet' (FORMAT parquet)",
             PARTS, part, c->dir, name, part);
    error = oracle_run(o, sql);
  }
  if (error != NULL) {
    fail_msg("%s: %s", query, error);
  }
  snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM '%s/%s_*.parquet'", name, c->dir, name);
  api_run(c, sql);
}

typedef struct made_table {
  const char *name, *query;
} made_table;

static void make_all(api_case *c, const made_table *tables, size_t n) {
  oracle *o = oracle_open();
  for (size_t i = 0; i < n; i++) {
    make(c, o, tables[i].name, tables[i].query);
  }
  oracle_close(o);
  api_run(c, "SET tasks = 3");
}

#define MAKE_ALL(c, tables) make_all(c, tables, sizeof(tables) / sizeof(tables)[0])

/* Expects these rows, computed by two tasks or more. */
static void expect(api_case *c, const char *sql, const char *rows) {
  hf_df *df = api_sql(c, text(c, sql));
  hf_profile profile = api_expect_df(c, df, rows);
  if (profile.widest_tasks < 2 || profile.fallback[0] != '\0') {
    fail_msg("%s: %d tasks: %s", sql, (int)profile.widest_tasks, profile.fallback);
  }
  hf_df_free(df);
}

/* ----------------------------------------------------------------------- keys */

static void keys_that_are_negative_join_across_widths(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"i16", "SELECT (i - 50)::SMALLINT AS k FROM range(100) t(i)"},
      {"i32", "SELECT (i - 80)::INTEGER AS k, i AS v FROM range(100) t(i)"},
      {"i64", "SELECT (-i)::BIGINT AS k FROM range(40) t(i)"},
      {"u32", "SELECT i::UINTEGER AS k FROM range(10) t(i)"},
  };
  MAKE_ALL(c, tables);
  expect(c, "SELECT count(*), sum(i32.k)::BIGINT FROM i32 JOIN i64 ON i32.k = i64.k", "40|-780\n");
  expect(c, "SELECT count(*), sum(i16.k)::BIGINT FROM i16 JOIN i64 ON i16.k = i64.k", "40|-780\n");
  expect(
      c,
      "SELECT count(*), min(i16.k)::BIGINT, max(i16.k)::BIGINT FROM i16 JOIN (SELECT k::HUGEINT AS k FROM i64) h ON i16.k = h.k",
      "40|-39|0\n");
  expect(c, "SELECT count(*), sum(i16.k)::BIGINT FROM i16 JOIN u32 ON i16.k = u32.k", "10|45\n");
  expect(c, "SELECT count(*) FROM i16 WHERE k IN (SELECT k FROM i64)", "40\n");
  expect(c, "SELECT count(*) FROM (SELECT k FROM i16 UNION SELECT k FROM i64 UNION SELECT k FROM i32)",
         "130\n");
  expect(c, "SELECT count(*), count(i16.k), count(i64.k) FROM i16 FULL JOIN i64 ON i16.k = i64.k",
         "100|100|40\n");
}

static void keys_that_are_decimals_of_other_scales_join(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"d2", "SELECT ((i - 20) / 4)::DECIMAL(9, 2) AS k FROM range(40) t(i)"},
      {"d4", "SELECT ((i - 20) / 8)::DECIMAL(18, 4) AS k FROM range(40) t(i)"},
      {"d0", "SELECT (i - 5)::DECIMAL(38, 0) AS k FROM range(10) t(i)"},
      {"i32", "SELECT (i - 5)::INTEGER AS k FROM range(10) t(i)"},
  };
  MAKE_ALL(c, tables);
  expect(c, "SELECT count(*), sum(d2.k)::VARCHAR FROM d2 JOIN d4 ON d2.k = d4.k", "20|-2.50\n");
  expect(c, "SELECT count(*), sum(d0.k)::VARCHAR FROM d4 JOIN d0 ON d4.k = d0.k", "5|0\n");
  expect(c, "SELECT count(*), sum(i32.k)::BIGINT FROM d2 JOIN i32 ON d2.k = i32.k", "10|-5\n");
  expect(c, "SELECT count(*) FROM (SELECT k FROM d2 INTERSECT SELECT k FROM d4)", "20\n");
}

static void keys_of_float_and_double_join_with_nan_and_zeros(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"f4",
       "SELECT k::FLOAT AS k, v FROM (VALUES ('0.5', 1), ('-0.0', 2), ('nan', 3), ('inf', 4), ('0.1', 5), (NULL, 6)) t(k, v)"},
      {"f8",
       "SELECT k::DOUBLE AS k, w FROM (VALUES ('0.5', 1), ('0.0', 2), ('-nan', 3), ('inf', 4), ('0.1', 5), (NULL, 6)) t(k, w)"},
  };
  MAKE_ALL(c, tables);
  expect(c, "SELECT v, w FROM f4 JOIN f8 ON f4.k = f8.k ORDER BY ALL", "1|1\n2|2\n3|3\n4|4\n");
  expect(c, "SELECT v, w FROM f4 JOIN f8 ON f4.k IS NOT DISTINCT FROM f8.k ORDER BY ALL",
         "1|1\n2|2\n3|3\n4|4\n6|6\n");
  expect(c, "SELECT count(*) FROM (SELECT k FROM f4 UNION SELECT k FROM f8)", "7\n");
  expect(c, "SELECT count(*), sum(v)::BIGINT FROM f4 WHERE k NOT IN (SELECT k FROM f8 WHERE k IS NOT NULL)",
         "1|5\n");
}

static void keys_of_date_with_timestamp_and_enum_with_text_join(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"d", "SELECT DATE '1969-12-28' + i::INTEGER AS k, i AS v FROM range(8) t(i)"},
      {"ts", "SELECT TIMESTAMP '1969-12-28' + to_hours(12 * i) AS k, i AS w FROM range(9) t(i)"},
      {"s",
       "SELECT CASE i % 4 WHEN 0 THEN 'sad' WHEN 1 THEN 'ok' WHEN 2 THEN 'happy' END AS m, i FROM range(12) t(i)"},
      {"words", "SELECT * FROM (VALUES ('ok', 1), ('happy', 2), ('other', 3), (NULL, 4)) t(m, w)"},
  };
  MAKE_ALL(c, tables);
  expect(c, "SELECT v, w FROM d JOIN ts ON d.k = ts.k ORDER BY ALL", "0|0\n1|2\n2|4\n3|6\n4|8\n");
  static const char e[] = "WITH e AS (SELECT m::ENUM('sad', 'ok', 'happy') AS m, i FROM s) ";
  char sql[500];
  snprintf(
      sql, sizeof sql,
      "%sSELECT e.m::VARCHAR, count(*), max(w) FROM e JOIN words ON e.m = words.m GROUP BY e.m ORDER BY e.m",
      e);
  expect(c, sql, "ok|3|1\nhappy|3|2\n");
  snprintf(sql, sizeof sql, "%sSELECT count(*), count(w) FROM e FULL JOIN words ON e.m = words.m", e);
  expect(c, sql, "14|8\n");
}

static void keys_that_are_null_join_only_when_not_distinct(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"l", "SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE i % 4 END AS k, i AS v FROM range(12) t(i)"},
      {"r", "SELECT CASE WHEN i % 2 = 0 THEN NULL ELSE i END AS k, i AS w FROM range(6) t(i)"},
  };
  MAKE_ALL(c, tables);
  expect(c, "SELECT count(*), sum(v * w)::BIGINT FROM l JOIN r ON l.k = r.k", "4|60\n");
  expect(c, "SELECT count(*) FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k", "16\n");
  expect(c, "SELECT count(*), count(l.v), count(r.w) FROM l FULL JOIN r ON l.k = r.k", "16|12|8\n");
  expect(c, "SELECT count(*) FROM l ANTI JOIN r ON l.k = r.k", "8\n");
  expect(c, "SELECT k, count(*) FROM l GROUP BY k ORDER BY k", "0|2\n1|2\n2|2\n3|2\nNULL|4\n");
}

/* ---------------------------------------------------------------------- NOT IN */

static void not_in_with_nulls_and_with_nothing_is_as_sql_says(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"plain", "SELECT * FROM (VALUES (1), (2), (3)) t(x)"},
      {"nulls", "SELECT * FROM (VALUES (1), (2), (3), (NULL)) t(x)"},
      {"two", "SELECT * FROM (VALUES (2), (5)) t(x)"},
      {"null_two", "SELECT * FROM (VALUES (2), (NULL)) t(x)"},
      {"none", "SELECT 1 AS x WHERE false"},
  };
  MAKE_ALL(c, tables);
  static const struct {
    const char *left, *right, *rows;
  } cases[] = {
      {"plain", "two", "1\n3\n"}, {"nulls", "two", "1\n3\n"},     {"plain", "null_two", ""},
      {"nulls", "null_two", ""},  {"plain", "none", "1\n2\n3\n"}, {"nulls", "none", "1\n2\n3\nNULL\n"},
      {"none", "two", ""},        {"none", "null_two", ""},       {"none", "none", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT x FROM %s WHERE x NOT IN (SELECT x FROM %s) ORDER BY x", cases[i].left,
             cases[i].right);
    api_expect(c, sql, cases[i].rows);
  }
  expect(c, "SELECT x, (x IN (SELECT x FROM null_two))::VARCHAR FROM nulls ORDER BY x",
         "1|NULL\n2|true\n3|NULL\nNULL|NULL\n");
}

/* --------------------------------------------------------------------- nothing */

static void nothing_in_a_table_a_partition_or_all_is_counted_as_such(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"none", "SELECT 1 AS k, 'a' AS s WHERE false"},
      {"few", "SELECT 1 AS k, 'a' AS s"}, /* two of three files are empty */
      {"many", "SELECT i AS k, 's' || i AS s FROM range(30) t(i)"},
  };
  MAKE_ALL(c, tables);
  api_expect(c, "SELECT count(*), sum(k)::BIGINT, max(s), list(k)::VARCHAR FROM none", "0|NULL|NULL|NULL\n");
  api_expect(c, "SELECT k, count(*) FROM none GROUP BY k", "");
  api_expect(c, "SELECT none.k FROM none FULL JOIN (SELECT * FROM none) o USING (k)", "");
  api_expect(c, "SELECT count(*), sum(k)::BIGINT FROM few", "1|1\n");
  expect(c, "SELECT count(*), count(few.k) FROM many LEFT JOIN few USING (k)", "30|1\n");
  expect(c, "SELECT count(*), count(none.k) FROM many LEFT JOIN none USING (k)", "30|0\n");
  expect(c, "SELECT count(*) FROM many WHERE k > 100", "0\n");
  api_expect(c, "SELECT k, count(*) FROM many WHERE k > 100 GROUP BY k", "");
  expect(c, "SELECT count(*) FROM many a JOIN many b ON a.k = b.k WHERE a.k = 29", "1\n");
  expect(c, "SELECT sum(k)::BIGINT FROM (SELECT k FROM many WHERE k > 28 UNION ALL SELECT k FROM none)",
         "29\n");
}

/* ----------------------------------------------------------------------- names */

static void names_that_come_twice_stay_apart(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {{"t", "SELECT i AS a, -i AS b FROM range(9) t(i)"}};
  MAKE_ALL(c, tables);
  hf_df *df = api_sql(
      c, "SELECT a, t.b AS a, a + t.b AS \"A\", x.b FROM t JOIN t x USING (a) ORDER BY 1 DESC LIMIT 2");
  struct ArrowSchema schema;
  assert_int_equal(hf_df_schema(df, &schema, NULL), HF_OK);
  static const char *const names[] = {"a", "a", "A", "b"};
  for (int64_t i = 0; i < 4; i++) {
    assert_string_equal(schema.children[i]->name, names[i]);
  }
  schema.release(&schema);
  hf_df_free(df);
  expect(c,
         "SELECT t.a, x.b AS a, t.a + x.b AS \"A\", x.b FROM t JOIN t x ON t.a = x.a ORDER BY 1 DESC LIMIT 2",
         "8|-8|0|-8\n7|-7|0|-7\n");
  expect(c, "SELECT a, a_1 FROM (SELECT t.a, x.a FROM t JOIN t x ON t.a = -x.b) ORDER BY a LIMIT 1", "0|0\n");
  expect(c, "SELECT s.x, s.y FROM (SELECT a, a FROM t) s(x, y) ORDER BY ALL LIMIT 1", "0|0\n");
}

static void names_of_ctes_hide_tables_files_and_cached_tables(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {{"t", "SELECT i AS x FROM range(9) t(i)"}};
  MAKE_ALL(c, tables);
  api_run(c, "CACHE TABLE held AS SELECT x * 100 AS x FROM t");
  expect(c, "WITH t AS (SELECT x + 10 AS x FROM t) SELECT sum(x)::BIGINT FROM t", "126\n");
  expect(c, "WITH held AS (SELECT x FROM t) SELECT sum(x)::BIGINT FROM held", "36\n");
  expect(c, "WITH t AS (SELECT x FROM held) SELECT sum(x)::BIGINT, max(x) FROM t", "3600|800\n");
  expect(c,
         "WITH t_0 AS (SELECT max(x) AS x FROM '@/t_*.parquet') "
         "SELECT t_0.x, count(*) FROM t_0, '@/t_0.parquet' f GROUP BY ALL",
         "8|3\n");
  expect(c, "WITH \"t_0.parquet\" AS (SELECT count(*) AS x FROM t) SELECT * FROM \"t_0.parquet\"", "9\n");
  expect(c, "SELECT (WITH t AS (SELECT sum(x)::BIGINT AS x FROM held) SELECT x FROM t), count(*) FROM t",
         "3600|9\n");
}

/* --------------------------------------------------------------------- drawing */

static void random_is_drawn_once_for_all_its_uses(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {{"t", "SELECT i AS x FROM range(3000) t(i)"}};
  MAKE_ALL(c, tables);
  expect(c,
         "SELECT bool_and(r = s)::VARCHAR, bool_and(r + 1 > s)::VARCHAR FROM (SELECT r, r AS s FROM "
         "(SELECT random() AS r FROM t) WHERE r >= 0)",
         "true|true\n");
  expect(c,
         "WITH c AS (SELECT x, random() AS r FROM t) "
         "SELECT count(*) FROM c a JOIN c b ON a.x = b.x AND a.r = b.r",
         "3000\n");
  expect(c,
         "WITH c AS MATERIALIZED (SELECT uuid() AS u FROM t) "
         "SELECT count(*) FROM (SELECT u FROM c EXCEPT SELECT u FROM c)",
         "0\n");
  expect(c, "SELECT (count(DISTINCT r) > 2990)::VARCHAR FROM (SELECT random() AS r FROM t)", "true\n");
}

/* -------------------------------------------------------------------- settings */

static void settings_that_change_results_reach_every_task(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {
      {"t", "SELECT CASE WHEN i % 4 = 0 THEN NULL ELSE i END AS x, i % 3 AS y FROM range(12) t(i)"},
      {"z", "SELECT TIMESTAMPTZ '2024-03-10 00:00:00+00' + to_hours(i) AS ts FROM range(24) t(i)"}};
  MAKE_ALL(c, tables);
  expect(c, "SELECT count(*) FROM t WHERE x / 3 = 1", "1\n");
  api_run(c, "SET sql.integer_division = true");
  expect(c, "SELECT count(*) FROM t WHERE x / 3 = 1", "2\n");
  expect(
      c,
      "SELECT x / 2 /* a / b */ AS h, count(*), (sum(x) / 2)::BIGINT FROM t WHERE x > 4 GROUP BY x / 2 ORDER BY h",
      "2|1|2\n3|2|6\n4|1|4\n5|2|10\n");
  api_run(c, "RESET sql.integer_division");
  api_run(c, "SET sql.default_null_order = nulls_first");
  expect(c, "SELECT x FROM t ORDER BY x LIMIT 4", "NULL\nNULL\nNULL\n1\n");
  expect(c, "SELECT y, first(x ORDER BY x) FROM t GROUP BY y ORDER BY y", "0|NULL\n1|NULL\n2|NULL\n");
  api_run(c, "SET sql.default_order = desc");
  expect(c, "SELECT x, row_number() OVER (ORDER BY y, x) FROM t ORDER BY x, y LIMIT 5",
         "NULL|1\nNULL|5\nNULL|9\n11|2\n10|6\n");
  api_run(c, "RESET sql.default_order");
  api_run(c, "RESET sql.default_null_order");
  api_run(c, "SET sql.time_zone = 'America/New_York'");
  expect(c,
         "SELECT ts::DATE::VARCHAR AS d, count(*), min(hour(ts)), max(hour(ts)) FROM z GROUP BY d ORDER BY d",
         "2024-03-09|5|19|23\n2024-03-10|19|0|19\n");
  api_run(c, "SET sql.time_zone = 'UTC'");
  expect(c, "SELECT ts::DATE::VARCHAR AS d, count(*) FROM z GROUP BY d ORDER BY d", "2024-03-10|24\n");
  api_fails(c, "SELECT (SELECT x FROM t WHERE x > 9) FROM t", HF_E_QUERY);
  api_run(c, "SET sql.scalar_subquery_error_on_multiple_rows = false");
  api_expect(c, "SELECT count(*) FROM (SELECT (SELECT x FROM t WHERE x > 9) FROM t)", "12\n");
}

/* ---------------------------------------------------------------------- errors */

static void errors_in_a_stage_name_the_column_of_the_query(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {{"t", "SELECT i AS x, 's' || i AS \"odd name\" FROM range(12) t(i)"}};
  MAKE_ALL(c, tables);
  static const struct {
    const char *sql, *part;
  } cases[] = {
      {"SELECT \"odd name\"::INTEGER FROM t", "from source column odd name"},
      {"SELECT n::INTEGER FROM (SELECT max(\"odd name\") AS n FROM t GROUP BY x)", "from source column n"},
      {"SELECT a.x FROM t a JOIN t b ON a.\"odd name\"::DATE = DATE '2020-01-01' + b.x::INTEGER", "odd name"},
      {"SELECT sum(u::INTEGER) OVER (PARTITION BY x) FROM (SELECT x, \"odd name\" AS u FROM t)",
       "source column u"},
      {"SELECT x, (x || 'a')::INTEGER FROM t", "could not convert string"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    api_fails(c, cases[i].sql, HF_E_CAST);
    if (strstr(c->error.message, cases[i].part) == NULL || strstr(c->error.message, "column c") != NULL ||
        strstr(c->error.message, "hf_") != NULL || c->error.stage == 0) {
      fail_msg("%s: %s, stage %u", cases[i].sql, c->error.message, c->error.stage);
    }
    hf_error_reset(&c->error);
  }
}

/* ----------------------------------------------------------------------- depth */

static char *nested(unsigned levels) {
  size_t size = 200 + levels * (size_t)60;
  char *sql = calloc(1, size);
  size_t used = 0;
  assert_non_null(sql);
  used += (size_t)snprintf(sql, size, "SELECT sum(x)::BIGINT FROM ");
  for (unsigned i = 0; i < levels; i++) {
    used += (size_t)snprintf(sql + used, size - used, "(SELECT x + 1 AS x FROM ");
  }
  used += (size_t)snprintf(sql + used, size - used, "t");
  for (unsigned i = 0; i < levels; i++) {
    used += (size_t)snprintf(sql + used, size - used, " WHERE x > -1) s%u", i);
  }
  return sql;
}

static void nesting_of_a_hundred_levels_runs_and_of_thousands_says_what_to_do(void **state) {
  api_case *c = *state;
  static const made_table tables[] = {{"t", "SELECT i AS x FROM range(10) t(i)"}};
  MAKE_ALL(c, tables);
  static const struct {
    unsigned levels;
    const char *rows;
  } runs[] = {{100, "1045\n"}, {300, "3045\n"}};
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
    char *sql = nested(runs[i].levels);
    hf_df *df = api_sql(c, sql);
    hf_profile profile = api_expect_df(c, df, runs[i].rows);
    assert_int_equal(profile.widest_tasks, 3);
    hf_df_free(df);
    free(sql);
  }
  static const unsigned deep[] = {700, 3000, 20000};
  for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
    char *sql = nested(deep[i]);
    api_fails(c, sql, HF_E_LIMIT);
    assert_non_null(c->error.hint);
    assert_non_null(strstr(c->error.hint, "cache"));
    hf_error_reset(&c->error);
    free(sql);
  }
}

#define CASE(name, open) cmocka_unit_test_setup_teardown(name, open, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(keys_that_are_negative_join_across_widths, api_case_open),
      CASE(keys_that_are_decimals_of_other_scales_join, api_case_open_two_slots),
      CASE(keys_of_float_and_double_join_with_nan_and_zeros, api_case_open),
      CASE(keys_of_date_with_timestamp_and_enum_with_text_join, api_case_open_two_slots),
      CASE(keys_that_are_null_join_only_when_not_distinct, api_case_open),
      CASE(not_in_with_nulls_and_with_nothing_is_as_sql_says, api_case_open_two_slots),
      CASE(nothing_in_a_table_a_partition_or_all_is_counted_as_such, api_case_open),
      CASE(names_that_come_twice_stay_apart, api_case_open),
      CASE(names_of_ctes_hide_tables_files_and_cached_tables, api_case_open_two_slots),
      CASE(random_is_drawn_once_for_all_its_uses, api_case_open_two_slots),
      CASE(settings_that_change_results_reach_every_task, api_case_open),
      CASE(errors_in_a_stage_name_the_column_of_the_query, api_case_open),
      CASE(nesting_of_a_hundred_levels_runs_and_of_thousands_says_what_to_do, api_case_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

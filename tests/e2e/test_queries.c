/* SPDX-License-Identifier: Apache-2.0 */
/* Queries by the C API: names, columns, schema, EXPLAIN, and errors with code, position and hint. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- views */

static void view_binds_its_names_when_it_is_made(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW a AS SELECT 1 AS n");
  api_run(c, "CREATE VIEW b AS SELECT n + 1 AS n FROM a");
  api_run(c, "CREATE OR REPLACE VIEW a AS SELECT 100 AS n");
  api_expect(c, "SELECT n FROM b", "2\n");
  api_expect(c, "SELECT n FROM A", "100\n");
  api_run(c, "CREATE OR REPLACE VIEW b AS SELECT n * 10 AS n FROM b");
  api_expect(c, "SELECT n FROM b", "20\n");
  api_run(c, "DROP VIEW a");
  api_expect(c, "SELECT n FROM b", "20\n");
  api_fails(c, "SELECT n FROM a", HF_E_TABLE_NOT_FOUND);
}

static void view_on_a_taken_name_needs_replace(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS n");
  assert_int_equal(hf_df_create_view(df, "v", false, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(df, "V", false, &c->error), HF_E_NAME_EXISTS);
  assert_int_equal(hf_df_create_view(df, "V", true, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(df, "", true, &c->error), HF_E_INVALID_ARGUMENT);
  api_fails(c, "CREATE VIEW v AS SELECT 2 AS n", HF_E_NAME_EXISTS);
  api_run(c, "CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS n");
  api_expect(c, "SELECT n FROM v", "1\n");
  hf_df_free(df);
}

static void view_with_an_odd_name_is_found_when_quoted(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW \"my view.1\" AS SELECT 5 AS n");
  api_expect(c, "SELECT n FROM \"my view.1\"", "5\n");
}

static void drop_view_of_an_unknown_name_needs_if_exists(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW orders AS SELECT 1 AS n");
  api_fails(c, "DROP VIEW odrers", HF_E_TABLE_NOT_FOUND);
  assert_non_null(strstr(c->error.hint, "orders"));
  api_run(c, "DROP VIEW IF EXISTS odrers");
}

/* --------------------------------------------------------------------- pivot */

static void pivot_without_values_looks_them_up(void **state) {
  api_case *c = *state;
  api_run(c,
          "CREATE VIEW t AS SELECT i % 3 AS a, i % 2 AS b, 'k''' || i % 2 AS s, i AS v FROM range(12) r(i)");
  api_expect(c, "PIVOT t ON a USING count(*) GROUP BY b ORDER BY ALL", "0|2|2|2\n1|2|2|2\n");
  api_expect(c, "PIVOT t ON s USING max(v) GROUP BY a ORDER BY a", "0|6|9\n1|10|7\n2|8|11\n");
  api_expect(c,
             "WITH c AS (FROM t WHERE a < 2) SELECT * FROM (PIVOT c ON a, b IN (1) USING max(v) GROUP BY s) "
             "ORDER BY ALL",
             "k'0|NULL|NULL\nk'1|9|7\n");
  api_expect(c,
             "PIVOT (PIVOT t ON a USING max(v) AS m GROUP BY b) ON b USING max(\"0_m\") GROUP BY \"1_m\" "
             "ORDER BY ALL",
             "7|NULL|9\n10|6|NULL\n");
  api_expect(c, "PIVOT t ON a IN (SELECT 2 UNION ALL SELECT 0) USING max(v) GROUP BY b ORDER BY b",
             "0|8|6\n1|11|9\n");
  api_expect(c, "SELECT column_name FROM (DESCRIBE FROM (PIVOT t ON s USING max(v) GROUP BY a))",
             "a\nk'0\nk'1\n");
  api_run(c, "CACHE TABLE p AS PIVOT t ON a USING count(*) GROUP BY b");
  api_expect(c, "SELECT \"2\" FROM p ORDER BY ALL", "2\n2\n");
}

static void pivot_without_values_that_cannot_be_looked_up_fails(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW t AS SELECT i % 3 AS a, i AS v FROM range(12) r(i)");
  api_fails(c, "CREATE VIEW w AS PIVOT t ON a USING sum(v)", HF_E_UNSUPPORTED);
  assert_non_null(strstr(c->error.hint, "list the values"));
  api_fails(c, "PIVOT (FROM t WHERE a > 5) ON a USING sum(v)", HF_E_UNSUPPORTED);
  assert_non_null(strstr(c->error.message, "finds no values"));
  api_fails(c, "PIVOT t ON nope USING sum(v)", HF_E_COLUMN_NOT_FOUND);
  assert_int_equal(c->error.position, -1);
  api_fails(c, "PIVOT t ON a USING sum(nope)", HF_E_COLUMN_NOT_FOUND);
  assert_int_equal(c->error.position, -1);
}

/* ------------------------------------------------------------------- columns */

static void columns_keep_duplicate_odd_and_empty_names(void **state) {
  static const char *const names[] = {"a", "a", "b.c", "sp ace", "quo\"te", "\xf0\x9f\x90\xa6", "c0"};
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS a, 2 AS a, 3 AS \"b.c\", 4 AS \"sp ace\", 5 AS \"quo\"\"te\", "
                         "6 AS \"\xf0\x9f\x90\xa6\", 7 AS c0");
  hf_df *held = api_cache(c, df);
  hf_df *both[] = {df, held};
  for (size_t n = 0; n < 2; n++) {
    struct ArrowSchema fields;
    struct ArrowArrayStream stream;
    assert_int_equal(hf_df_schema(both[n], &fields, &c->error), HF_OK);
    assert_int_equal(fields.n_children, 7);
    for (size_t i = 0; i < 7; i++) {
      assert_string_equal(fields.children[i]->name, names[i]);
    }
    fields.release(&fields);
    assert_int_equal(hf_df_collect(both[n], NULL, &stream, &c->error), HF_OK);
    assert_int_equal(stream.get_schema(&stream, &fields), 0);
    for (size_t i = 0; i < 7; i++) {
      assert_string_equal(fields.children[i]->name, names[i]);
    }
    fields.release(&fields);
    stream.release(&stream);
    api_expect_df(c, both[n], "1|2|3|4|5|6|7\n");
  }
  hf_df_free(held);
  hf_df_free(df);
}

static void result_without_rows_has_its_columns(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS a, 'x' AS b WHERE false");
  struct ArrowArrayStream stream;
  struct ArrowSchema fields;
  struct ArrowArray batch;
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &fields), 0);
  assert_int_equal(fields.n_children, 2);
  assert_string_equal(fields.children[1]->name, "b");
  fields.release(&fields);
  assert_int_equal(stream.get_next(&stream, &batch), 0);
  if (batch.release != NULL) {
    assert_int_equal(batch.length, 0);
    batch.release(&batch);
  }
  stream.release(&stream);
  assert_int_equal(api_count(c, df, NULL), 0);
  hf_df_free(df);
}

/* Same names, formats, flags and metadata-free shape. */
static void assert_same_schema(const struct ArrowSchema *a, const struct ArrowSchema *b) {
  assert_string_equal(a->format, b->format);
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->flags, b->flags);
  assert_int_equal(a->n_children, b->n_children);
  assert_int_equal(a->metadata == NULL, b->metadata == NULL);
  for (int64_t i = 0; i < a->n_children; i++) {
    assert_same_schema(a->children[i], b->children[i]);
  }
}

static void schema_is_that_of_the_result(void **state) {
  api_case *c = *state;
  hf_df *df =
      api_sql(c, "SELECT 1::TINYINT AS a, 2::HUGEINT AS b, 1.5::DECIMAL(20,3) AS d, 'x' AS t, [1, 2] AS l, "
                 "{'x': 1, 'y': [NULL, 'z']} AS s, MAP {'k': 1} AS m, INTERVAL 3 DAY AS i, "
                 "DATE '2024-01-01' AS dt, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS tz, "
                 "'u'::ENUM('u', 'v') AS e, uuid() AS u, NULL AS n, '\\x01'::BLOB AS bl");
  struct ArrowSchema told;
  struct ArrowSchema found;
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_schema(df, &told, &c->error), HF_OK);
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_OK);
  assert_int_equal(stream.get_schema(&stream, &found), 0);
  assert_same_schema(&told, &found);
  told.release(&told);
  found.release(&found);
  stream.release(&stream);
  hf_df_free(df);
}

static void schema_of_a_hold_computes_nothing(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i FROM range(10) t(i)");
  hf_df *held = api_cache(c, df);
  struct ArrowSchema fields;
  char *plan = NULL;
  assert_int_equal(hf_df_schema(held, &fields, &c->error), HF_OK);
  fields.release(&fields);
  assert_int_equal(hf_df_explain(held, &plan, &c->error), HF_OK);
  assert_non_null(strstr(plan, "miss"));
  hf_text_free(plan);
  assert_int_equal(api_storage(c, held).state, HF_HOLD_DECLARED);
  hf_df_free(held);
  hf_df_free(df);
}

static void command_without_an_answer_gives_an_empty_result(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "CREATE VIEW v AS SELECT 1 AS n");
  struct ArrowSchema fields;
  hf_df *held = NULL;
  assert_int_equal(hf_df_schema(df, &fields, &c->error), HF_OK);
  assert_int_equal(fields.n_children, 0);
  fields.release(&fields);
  api_expect_df(c, df, "");
  assert_int_equal(api_count(c, df, NULL), 0);
  assert_int_equal(hf_df_cache(df, &held, &c->error), HF_E_INVALID_ARGUMENT);
  hf_df_free(df);
}

static void describe_and_summarize_are_queries(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT 1 AS n, 'x' AS t");
  hf_df *describe = api_sql(c, "DESCRIBE SELECT * FROM v");
  char *rows = api_rows(c, describe, NULL);
  assert_non_null(strstr(rows, "n|INTEGER|"));
  assert_non_null(strstr(rows, "t|VARCHAR|"));
  free(rows);
  hf_df_free(describe);
  hf_df *summarize = api_sql(c, "SUMMARIZE SELECT * FROM v");
  assert_int_equal(api_count(c, summarize, NULL), 2);
  hf_df_free(summarize);
}

/* -------------------------------------------------------------------- errors */

static void error_of_syntax_has_a_position(void **state) {
  api_case *c = *state;
  api_fails(c, "SELECT 1 FROM WHERE 2", HF_E_SYNTAX);
  assert_true(c->error.position == 14);
  api_fails(c, "CREATE VIEW v AS SELECT 1 FROM WHERE 2", HF_E_SYNTAX);
  assert_true(c->error.position == 31);
  assert_string_equal(c->error.sqlstate, "42601");
}

static void error_of_an_unknown_table_suggests_one(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW flights AS SELECT 1 AS delay");
  api_fails(c, "SELECT * FROM flihgts", HF_E_TABLE_NOT_FOUND);
  assert_non_null(strstr(c->error.message, "flihgts"));
  assert_non_null(strstr(c->error.hint, "flights"));
}

static void error_of_an_unknown_column_suggests_one(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW flights AS SELECT 1 AS delay, 2 AS origin");
  api_fails(c, "SELECT dealy FROM flights", HF_E_COLUMN_NOT_FOUND);
  assert_true((c->error.hint != NULL && strstr(c->error.hint, "delay") != NULL) ||
              strstr(c->error.message, "delay") != NULL);
}

static void errors_of_values_are_typed(void **state) {
  api_case *c = *state;
  api_fails(c, "SELECT CAST('x' || i AS INTEGER) FROM range(3) t(i)", HF_E_CAST);
  api_fails(c, "SELECT (i + 9223372036854775807)::BIGINT FROM range(1, 3) t(i)", HF_E_OVERFLOW);
  api_fails(c, "SELECT no_such_function(1)", HF_E_FUNCTION_NOT_FOUND);
  assert_int_equal(c->error.error_class, HF_CLASS_USER);
}

static void refused_statements_are_named(void **state) {
  static const char *const statements[] = {
      "ATTACH 'x.db'", "INSTALL httpfs",         "COPY (SELECT 1) TO '/tmp/x.csv'", "PRAGMA version",
      "LOAD httpfs",   "CREATE TABLE t (i INT)", "EXPORT DATABASE '/tmp/x'",
  };
  api_case *c = *state;
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
    api_fails(c, statements[i], HF_E_STATEMENT_REFUSED);
    assert_non_null(c->error.hint);
  }
}

static void refused_functions_are_named(void **state) {
  static const char *const queries[] = {
      "SELECT * FROM query('SELECT 1')", "SELECT * FROM read_blob('/etc/passwd')",
      "SELECT * FROM hf_blocks('x')",    "SELECT * FROM hf_scan('0')",
      "SELECT * FROM glob('/etc/*')",    "SELECT * FROM duckdb_settings()",
  };
  api_case *c = *state;
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    api_fails(c, queries[i], HF_E_FUNCTION_REFUSED);
  }
}

static void errors_of_files_are_typed(void **state) {
  api_case *c = *state;
  char sql[512];
  api_fails(c, "SELECT * FROM '/no/such/file.parquet'", HF_E_FILE_NOT_FOUND);
  snprintf(sql, sizeof sql, "SELECT * FROM '%s'", api_file(c, "cut.parquet", "PAR1 this is no Parquet"));
  api_fails(c, sql, HF_E_FILE_FORMAT);
  snprintf(sql, sizeof sql, "SELECT * FROM '%s/'", c->work_dir);
  api_expect(c, "SELECT 1", "1\n");
}

/* --------------------------------------------------------------------- files */

static void read_takes_formats_and_options(void **state) {
  api_case *c = *state;
  const char *path = api_file(c, "semi.csv", "1;x\n2;y\n");
  const hf_setting options[] = {{"delim", ";"}, {"header", "false"}, {"names", "['id', 'label']"}};
  hf_df *df = NULL;
  hf_status status = hf_session_read(c->session, "csv", &path, 1, options, 3, &df, &c->error);
  if (status != HF_OK) {
    fail_msg("%s", c->error.message);
  }
  api_expect_df(c, df, "1|x\n2|y\n");
  struct ArrowSchema fields;
  assert_int_equal(hf_df_schema(df, &fields, &c->error), HF_OK);
  assert_string_equal(fields.children[1]->name, "label");
  fields.release(&fields);
  hf_df *held = api_cache(c, df);
  assert_int_equal(api_expect_df(c, held, "1|x\n2|y\n").held_fills, 1);
  assert_int_equal(api_expect_df(c, held, "1|x\n2|y\n").held_hits, 1);
  hf_df_free(held);
  hf_df_free(df);
}

static void read_errors_come_at_once(void **state) {
  api_case *c = *state;
  const char *missing = "/no/such/file.csv";
  const char *path;
  hf_df *df = NULL;
  assert_int_equal(hf_session_read(c->session, "csv", &missing, 1, NULL, 0, &df, &c->error),
                   HF_E_FILE_NOT_FOUND);
  path = api_file(c, "a.csv", "a\n1\n");
  assert_int_equal(hf_session_read(c->session, "orc", &path, 1, NULL, 0, &df, &c->error),
                   HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_read(c->session, "csv", &path, 0, NULL, 0, &df, &c->error),
                   HF_E_INVALID_ARGUMENT);
  const hf_setting unknown[] = {{"haeder", "true"}};
  assert_int_equal(hf_session_read(c->session, "csv", &path, 1, unknown, 1, &df, &c->error),
                   HF_E_INVALID_ARGUMENT);
  assert_non_null(strstr(c->error.hint, "header"));
  assert_null(df);
}

static void read_option_cannot_smuggle_sql(void **state) {
  api_case *c = *state;
  const char *path = api_file(c, "a.csv", "a\n1\n");
  const hf_setting evil[] = {{"names", "[(SELECT 'x')]"}};
  hf_df *df = NULL;
  hf_status status = hf_session_read(c->session, "csv", &path, 1, evil, 1, &df, &c->error);
  if (status == HF_OK) { /* taken as plain text: one name, spelled like that */
    struct ArrowSchema fields;
    assert_int_equal(hf_df_schema(df, &fields, &c->error), HF_OK);
    assert_string_not_equal(fields.children[0]->name, "x");
    fields.release(&fields);
  }
  hf_df_free(df);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(pivot_without_values_looks_them_up),
      CASE(pivot_without_values_that_cannot_be_looked_up_fails),
      CASE(view_binds_its_names_when_it_is_made),
      CASE(view_on_a_taken_name_needs_replace),
      CASE(view_with_an_odd_name_is_found_when_quoted),
      CASE(drop_view_of_an_unknown_name_needs_if_exists),
      CASE(columns_keep_duplicate_odd_and_empty_names),
      CASE(result_without_rows_has_its_columns),
      CASE(schema_is_that_of_the_result),
      CASE(schema_of_a_hold_computes_nothing),
      CASE(command_without_an_answer_gives_an_empty_result),
      CASE(describe_and_summarize_are_queries),
      CASE(error_of_syntax_has_a_position),
      CASE(error_of_an_unknown_table_suggests_one),
      CASE(error_of_an_unknown_column_suggests_one),
      CASE(errors_of_values_are_typed),
      CASE(refused_statements_are_named),
      CASE(refused_functions_are_named),
      CASE(errors_of_files_are_typed),
      CASE(read_takes_formats_and_options),
      CASE(read_errors_come_at_once),
      CASE(read_option_cannot_smuggle_sql),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

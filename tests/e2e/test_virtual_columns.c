/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns that files have and a star does not show: filename, file_row_number,
 * file_index. Of three tasks, some of which read a part of a file; the answers are
 * those of plain DuckDB.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROWS = 100 };

/* The statement with the directory in the place of each @; free. */
static char *text(const api_case *c, const char *sql) {
  buf out = {0};
  for (const char *at = sql; *at != '\0'; at++) {
    if (*at == '@') {
      buf_text(&out, c->dir);
    } else {
      buf_char(&out, *at);
    }
  }
  char *copy = strdup(buf_cstr(&out));
  buf_reset(&out);
  return copy;
}

static void run_plain(const api_case *c, oracle *o, const char *sql) {
  char *statement = text(c, sql), *error = oracle_run(o, statement);
  if (error != NULL) {
    fail_msg("%s: %s", statement, error);
  }
  free(statement);
}

/* Rows as api_rows spells them; free. */
static char *plain_rows(oracle *o, const char *sql) {
  oracle_rows rows;
  buf out = {0};
  buf_printf(&out, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (%s)", sql);
  char *error = oracle_query(o, buf_cstr(&out), MOST_ROWS, &rows);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
  buf_reset(&out);
  for (size_t i = 0; i < rows.n_rows * rows.n_columns; i++) {
    buf_text(&out, rows.cells[i].text == NULL ? "NULL" : rows.cells[i].text);
    buf_char(&out, (i + 1) % rows.n_columns == 0 ? '\n' : '|');
  }
  oracle_rows_free(&rows);
  char *copy = strdup(buf_cstr(&out));
  buf_reset(&out);
  return copy;
}

static const char *const FILES[] = {
    "COPY (SELECT i::INTEGER AS k, (i % 7)::INTEGER AS g FROM range(20000) t(i)) TO '@/a.parquet' (ROW_GROUP_SIZE 4096)",
    "COPY (SELECT -i::INTEGER AS k, (i % 5)::INTEGER AS g FROM range(1, 3000) t(i)) TO '@/b.parquet'",
    "COPY (SELECT 0 AS k, 'own' AS filename FROM range(10)) TO '@/named.parquet'",
    "COPY (SELECT i AS k FROM range(10) t(i)) TO '@/c1.csv'",
    "COPY (SELECT i AS k FROM range(20) t(i)) TO '@/c2.csv'",
};

static const char *const QUERIES[] = {
    "SELECT count(*), sum(file_row_number)::BIGINT, sum(abs(k - file_row_number))::BIGINT FROM '@/a.parquet'",
    "SELECT k FROM '@/a.parquet' WHERE file_row_number IN (0, 4095, 4096, 9999, 19999) ORDER BY k",
    "SELECT filename, file_index::BIGINT AS i, count(*), min(file_row_number), max(file_row_number), sum(k)::BIGINT "
    "FROM '@/[ab].parquet' GROUP BY ALL ORDER BY ALL",
    "SELECT *, file_index::BIGINT AS i FROM '@/[ab].parquet' WHERE file_row_number = 2500 ORDER BY ALL",
    "FROM '@/[ab].parquet' WHERE file_row_number = 2500 AND file_index = 1",
    "SELECT a.g, count(*), sum(b.k)::BIGINT FROM '@/a.parquet' a JOIN '@/b.parquet' b USING (file_row_number) "
    "GROUP BY a.g ORDER BY ALL",
    "SELECT g, count(DISTINCT filename) FROM read_parquet(['@/b.parquet', '@/a.parquet']) GROUP BY g ORDER BY g",
    "SELECT file_index::BIGINT AS i, filename, count(*), sum(k)::BIGINT FROM '@/c?.csv' GROUP BY ALL ORDER BY ALL",
    "SELECT DISTINCT filename, k FROM '@/named.parquet'",
    "SELECT filename, file_row_number, * FROM '@/named.parquet' WHERE file_row_number = 3",
};

static void columns_of_files_are_as_plain_duckdb_has_them(void **state) {
  api_case *c = *state;
  oracle *o = oracle_open();
  for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
    run_plain(c, o, FILES[i]);
  }
  api_run(c, "SET tasks = 3");
  for (size_t i = 0; i < sizeof QUERIES / sizeof QUERIES[0]; i++) {
    char *sql = text(c, QUERIES[i]), *wanted = plain_rows(o, sql);
    hf_df *df = api_sql(c, sql);
    hf_profile profile = api_expect_df(c, df, wanted);
    if (i < 8 && profile.widest_tasks < 2) {
      fail_msg("%s: %d tasks: %s", sql, (int)profile.widest_tasks, profile.fallback);
    }
    hf_df_free(df);
    free(sql);
    free(wanted);
  }
  oracle_close(o);
}

/* In a view and in what is held they are columns like others. */
static void columns_of_files_are_kept_in_views_and_holds(void **state) {
  api_case *c = *state;
  oracle *o = oracle_open();
  run_plain(c, o, FILES[0]);
  oracle_close(o);
  char *view = text(c, "CREATE VIEW v AS SELECT *, file_row_number AS n FROM '@/a.parquet'");
  api_run(c, "SET tasks = 3");
  api_run(c, view);
  api_run(c, "CACHE TABLE t AS SELECT k, n FROM v WHERE n % 1000 = 1");
  api_expect(c, "SELECT count(*), sum(k - n)::BIGINT, max(n) FROM t", "20|0|19001\n");
  api_expect(c, "SELECT count(*) FROM (DESCRIBE v)", "3\n");
  free(view);
}

/* Where it cannot be told which columns a star shows, the name is not found, and the hint says what to do. */
static void column_of_files_beside_an_odd_star_is_not_found(void **state) {
  static const char *const queries[] = {
      "SELECT COLUMNS('k|g') FROM '@/a.parquet' WHERE file_row_number = 1",
      "SELECT a FROM '@/a.parquet' a WHERE file_row_number = 1",
      "SELECT filename FROM (FROM '@/a.parquet')",
      "SELECT filename FROM '@/a.parquet' a NATURAL JOIN '@/a.parquet' b",
  };
  api_case *c = *state;
  oracle *o = oracle_open();
  run_plain(c, o, FILES[0]);
  oracle_close(o);
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    char *sql = text(c, queries[i]);
    api_fails(c, sql, HF_E_COLUMN_NOT_FOUND);
    assert_non_null(strstr(c->error.hint, "read_parquet(…, file"));
    free(sql);
  }
}

static void index_of_a_file_named_twice_is_not_found(void **state) {
  api_case *c = *state;
  oracle *o = oracle_open();
  run_plain(c, o, FILES[1]);
  oracle_close(o);
  char *sql = text(c, "SELECT file_index FROM read_parquet(['@/b.parquet', '@/b.parquet'])");
  api_fails(c, sql, HF_E_COLUMN_NOT_FOUND);
  assert_non_null(strstr(c->error.hint, "dense_rank"));
  free(sql);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, api_case_open_two_slots, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(columns_of_files_are_as_plain_duckdb_has_them),
      CASE(columns_of_files_are_kept_in_views_and_holds),
      CASE(column_of_files_beside_an_odd_star_is_not_found),
      CASE(index_of_a_file_named_twice_is_not_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

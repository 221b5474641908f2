/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole plans written back as SQL give the same types and rows in the same
 * order: TPC-H and TPC-DS, over tables and planned over hf_scan by the engine,
 * and queries over NULLs. No cutting: what fails here is reader or writer.
 */
#include "engine/engine.h"
#include "support/oracle.h"
#include "support/rewrite.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_ROWS = 1000000, MOST_TABLES = 32 };

/* ------------------------------------------------------------------- suites */

/* A suite's data in the oracle, and its queries. */
typedef struct suite {
  oracle *o;
  oracle_rows queries; /* number, text */
  /* what hf_scan stands for in the planner */
  arena *a;
  engine *planner;
  engine_scan scans[MOST_TABLES];
  char *views; /* a WITH list that names each scan and its columns */
} suite;

static void must_run(oracle *o, const char *sql) {
  char *error = oracle_run(o, sql);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

static void must_query(oracle *o, const char *sql, oracle_rows *rows) {
  char *error = oracle_query(o, sql, MOST_ROWS, rows);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

static suite open_suite(const char *name, const char *generate) {
  suite s = {.o = oracle_open(), .a = arena_new()};
  char sql[100];
  snprintf(sql, sizeof sql, "LOAD %s", name);
  must_run(s.o, sql);
  must_run(s.o, generate);
  snprintf(sql, sizeof sql, "SELECT query_nr::VARCHAR, query FROM %s_queries() ORDER BY query_nr", name);
  must_query(s.o, sql, &s.queries);
  return s;
}

static void close_suite(suite *s) {
  oracle_rows_free(&s->queries);
  oracle_close(s->o);
  engine_close(s->planner);
  arena_free(s->a);
  free(s->views);
}

/* The tree's types are those that DuckDB binds the text to. */
static bool has_types(suite *s, const rewrite *written) {
  oracle_rows columns;
  buf sql = {0};
  buf_printf(&sql, "SELECT column_type FROM (DESCRIBE %s)", written->sql);
  must_query(s->o, buf_cstr(&sql), &columns);
  bool is_equal = columns.n_rows == written->n_types;
  for (size_t i = 0; is_equal && i < columns.n_rows; i++) {
    is_equal = strcmp(columns.cells[i].text, written->types[i]) == 0;
  }
  oracle_rows_free(&columns);
  buf_reset(&sql);
  return is_equal;
}

/* Compares a query with its rewritten text; counts it, and says what is wrong with it. */
static size_t compare(suite *s, const char *name, const char *sql, const rewrite *written) {
  oracle_rows expected, rows;
  if (written->outcome != REWRITE_DONE) {
    print_error("%s: not written: %s\n", name, written->why);
    return 0;
  }
  must_query(s->o, sql, &expected);
  char *error = oracle_query(s->o, written->sql, MOST_ROWS, &rows);
  if (error != NULL) {
    print_error("%s: %s\n", name, error);
    free(error);
    oracle_rows_free(&expected);
    return 0;
  }
  bool is_same = oracle_compare(&expected, &rows) == ORACLE_SAME && has_types(s, written);
  if (!is_same) {
    print_error("%s: %s\n", name, oracle_difference(&expected, &rows));
  }
  oracle_rows_free(&expected);
  oracle_rows_free(&rows);
  return is_same ? 1 : 0;
}

static void check_over_tables(const char *name, const char *generate, size_t n) {
  suite s = open_suite(name, generate);
  unsigned long plan_us = 0, write_us = 0, worst_us = 0;
  size_t same = 0;
  for (size_t i = 0; i < s.queries.n_rows; i++) {
    const char *sql = s.queries.cells[2 * i + 1].text;
    rewrite written;
    rewrite_query(s.o, sql, NULL, NULL, &written);
    same += compare(&s, s.queries.cells[2 * i].text, sql, &written);
    plan_us += written.plan_us;
    write_us += written.write_us;
    worst_us = written.plan_us + written.write_us > worst_us ? written.plan_us + written.write_us : worst_us;
    rewrite_free(&written);
  }
  print_message(
      "%s: %zu of %zu the same; mean of planning %lu us, of reading and writing %lu us, worst of both %lu us\n",
      name, same, n, plan_us / n, write_us / n, worst_us);
  close_suite(&s);
  assert_int_equal(same, n);
}

static void tpch_over_tables_is_the_same(void **state) {
  (void)state;
  check_over_tables("tpch", "CALL dbgen(sf = 0.01)", 22);
}

static void tpcds_over_tables_is_the_same(void **state) {
  (void)state;
  check_over_tables("tpcds", "CALL dsdgen(sf = 0.01)", 99);
}

/* ------------------------------------------------------------- over hf_scan */

/* The types of a table's columns, as the plan has them. */
static const tree_node *plan_of_table(suite *s, const char *table) {
  char sql[100], *error = NULL;
  size_t length = 0;
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  hf_error failure = {0};
  snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
  char *json = oracle_plan(s->o, sql, &length, &error);
  assert_non_null(json);
  assert_int_equal(plan_tree_read(json, length, s->a, &root, &refusal, &failure), HF_OK);
  assert_non_null(root);
  free(json);
  return root;
}

static void add_scan(suite *s, size_t at, const char *table, buf *views) {
  char sql[200];
  oracle_rows names, count;
  snprintf(sql, sizeof sql,
           "SELECT column_name FROM duckdb_columns() WHERE table_name = '%s' ORDER BY column_index", table);
  must_query(s->o, sql, &names);
  snprintf(sql, sizeof sql, "SELECT count(*)::VARCHAR FROM %s", table);
  must_query(s->o, sql, &count);
  const tree_node *root = plan_of_table(s, table);
  assert_int_equal(root->n_columns, names.n_rows);
  column *columns = arena_array(s->a, names.n_rows, sizeof *columns);
  schema *made = arena_alloc(s->a, sizeof *made);
  buf_printf(views, "%s%s AS NOT MATERIALIZED (SELECT ", at > 0 ? ", " : "", table);
  for (size_t i = 0; i < names.n_rows; i++) {
    columns[i] = (column){arena_strdup(s->a, names.cells[i].text), root->types[i]};
    buf_printf(views, "%sc%zu AS %s", i > 0 ? ", " : "", i, names.cells[i].text);
  }
  buf_printf(views, " FROM hf_scan('%s'))", table);
  *made = (schema){names.n_rows, columns};
  s->scans[at] = (engine_scan){.id = arena_strdup(s->a, table),
                               .columns = made,
                               .rows = strtoull(count.cells[0].text, NULL, 10),
                               .rows_exact = true};
  oracle_rows_free(&names);
  oracle_rows_free(&count);
}

static void open_planner(suite *s) {
  const engine_setting settings[] = {{"default_null_order", "nulls_last"}};
  const engine_options options = {.kind = ENGINE_PLANNER, .settings = settings, .n_settings = 1};
  hf_error error = {0};
  oracle_rows tables;
  buf views = {0};
  must_query(s->o, "SELECT table_name FROM duckdb_tables() ORDER BY 1", &tables);
  assert_true(tables.n_rows <= MOST_TABLES);
  for (size_t i = 0; i < tables.n_rows; i++) {
    add_scan(s, i, tables.cells[i].text, &views);
  }
  if (engine_open(&options, &s->planner, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  engine_set_scans(s->planner, s->scans, tables.n_rows);
  oracle_rows_free(&tables);
  s->views = buf_take(&views);
}

/* The query behind the WITH list of scans; one that has a WITH list of its own continues it. */
static char *over_scans(const suite *s, const char *sql) {
  while (isspace((unsigned char)*sql)) {
    sql++;
  }
  bool has_with = strncasecmp(sql, "WITH", 4) == 0;
  size_t size = strlen(s->views) + strlen(sql) + 20;
  char *text = malloc(size);
  assert_non_null(text);
  snprintf(text, size, "WITH %s%s%s", s->views, has_with ? "," : " ", has_with ? sql + 4 : sql);
  for (size_t n = strlen(text); n > 0 && (isspace((unsigned char)text[n - 1]) || text[n - 1] == ';'); n--) {
    text[n - 1] = '\0';
  }
  return text;
}

static char *table_in_from(void *context, const char *id) {
  (void)context;
  return strdup(id);
}

static void check_over_scans(const char *name, const char *generate, size_t n) {
  suite s = open_suite(name, generate);
  size_t same = 0;
  open_planner(&s);
  for (size_t i = 0; i < s.queries.n_rows; i++) {
    const char *sql = s.queries.cells[2 * i + 1].text, *json = NULL, *why = NULL;
    char *text = over_scans(&s, sql);
    hf_error error = {0};
    rewrite written = {0};
    if (engine_plan_json(s.planner, text, s.a, &json, &why, &error) != HF_OK || json == NULL) {
      print_error("%s: no plan: %s\n", s.queries.cells[2 * i].text,
                  error.message == NULL ? why : error.message);
    } else {
      rewrite_answer(json, strlen(json), table_in_from, NULL, &written);
      same += compare(&s, s.queries.cells[2 * i].text, sql, &written);
      rewrite_free(&written);
    }
    hf_error_reset(&error);
    free(text);
  }
  print_message("%s over hf_scan: %zu of %zu the same\n", name, same, n);
  close_suite(&s);
  assert_int_equal(same, n);
}

static void tpch_over_scans_is_the_same(void **state) {
  (void)state;
  check_over_scans("tpch", "CALL dbgen(sf = 0.01)", 22);
}

static void tpcds_over_scans_is_the_same(void **state) {
  (void)state;
  check_over_scans("tpcds", "CALL dsdgen(sf = 0.01)", 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tpch_over_tables_is_the_same),
      cmocka_unit_test(tpcds_over_tables_is_the_same),
      cmocka_unit_test(tpch_over_scans_is_the_same),
      cmocka_unit_test(tpcds_over_scans_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Queries planned over the tables of the oracle. */
#include "support/cut_case.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_ROWS = 1000000 };

static void must_query(oracle *o, const char *sql, oracle_rows *rows) {
  char *error = oracle_query(o, sql, MOST_ROWS, rows);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

static uint64_t number_of(oracle *o, const char *sql) {
  oracle_rows rows;
  must_query(o, sql, &rows);
  uint64_t number = strtoull(rows.cells[0].text, NULL, 10);
  oracle_rows_free(&rows);
  return number;
}

/* ----------------------------------------------------------------- planning */

/* The types of a table's columns, as the plan has them. */
static const tree_node *plan_of_table(cut_case *c, const char *table) {
  char sql[200], *error = NULL;
  size_t length = 0;
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  hf_error failure = {0};
  snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
  char *json = oracle_plan(c->o, sql, &length, &error);
  assert_non_null(json);
  assert_int_equal(plan_tree_read(json, length, c->a, &root, &refusal, &failure), HF_OK);
  assert_non_null(root);
  free(json);
  return root;
}

static void add_table(cut_case *c, const char *table, buf *views) {
  char sql[300];
  oracle_rows names;
  size_t at = c->n_tables++;
  snprintf(sql, sizeof sql,
           "SELECT column_name FROM duckdb_columns() WHERE table_name = '%s' ORDER BY column_index", table);
  must_query(c->o, sql, &names);
  snprintf(sql, sizeof sql, "SELECT count(*)::VARCHAR FROM \"%s\"", table);
  uint64_t rows = number_of(c->o, sql);
  const tree_node *root = plan_of_table(c, table);
  size_t n = names.n_rows;
  column *columns = arena_array(c->a, n, sizeof *columns);
  schema *made = arena_alloc(c->a, sizeof *made);
  assert_true(n > 0 && root->n_columns == n);
  buf_printf(views, "%s\"%s\" AS NOT MATERIALIZED (SELECT ", at > 0 ? ", " : "", table);
  for (size_t i = 0; i < n; i++) {
    columns[i] = (column){arena_strdup(c->a, names.cells[i].text), root->types[i]};
    buf_printf(views, "%sc%zu AS ", i > 0 ? ", " : "", i);
    buf_sql_name(views, names.cells[i].text);
  }
  buf_printf(views, " FROM hf_scan('%s'))", table);
  *made = (schema){n, columns};
  const char *id = arena_strdup(c->a, table);
  c->scans[at] = (engine_scan){.id = id, .columns = made, .rows = rows, .rows_exact = true};
  c->sources[at] =
      (cut_source){.id = id, .can_split = true, .rows = rows, .bytes = rows * n * 8, .ordered = true};
  oracle_rows_free(&names);
}

void cut_case_open(cut_case *c, oracle *o) {
  const engine_setting settings[] = {{"default_null_order", "nulls_last"}};
  const engine_options options = {.kind = ENGINE_PLANNER, .settings = settings, .n_settings = 1};
  hf_error error = {0};
  oracle_rows tables;
  buf views = {0};
  *c = (cut_case){.o = o, .a = arena_new()};
  must_query(o, "SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY 1", &tables);
  assert_true(tables.n_rows > 0 && tables.n_rows <= CUT_CASE_TABLES);
  for (size_t i = 0; i < tables.n_rows; i++) {
    add_table(c, tables.cells[i].text, &views);
  }
  if (engine_open(&options, &c->planner, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  engine_set_scans(c->planner, c->scans, c->n_tables);
  oracle_rows_free(&tables);
  c->views = buf_take(&views);
}

void cut_case_close(cut_case *c) {
  engine_close(c->planner);
  arena_free(c->a);
  mem_free(c->views);
  memset(c, 0, sizeof *c);
}

/* The query behind the WITH list of scans; one that has a WITH list of its own continues it. */
static char *over_scans(const cut_case *c, const char *sql, bool is_recursive) {
  while (isspace((unsigned char)*sql)) {
    sql++;
  }
  bool has_with = strncasecmp(sql, "WITH", 4) == 0;
  const char *rest = has_with ? sql + 4 + (is_recursive ? strlen(" RECURSIVE") : 0) : sql;
  size_t size = strlen(c->views) + strlen(sql) + 40;
  char *text = malloc(size);
  assert_non_null(text);
  snprintf(text, size, "WITH %s%s%s%s", is_recursive ? "RECURSIVE " : "", c->views, has_with ? "," : " ",
           rest);
  for (size_t n = strlen(text); n > 0 && (isspace((unsigned char)text[n - 1]) || text[n - 1] == ';'); n--) {
    text[n - 1] = '\0';
  }
  return text;
}

const tree_node *cut_case_tree(cut_case *c, const char *sql, arena *a) {
  const char *json = NULL, *why = NULL;
  const tree_node *root = NULL;
  tree_refusal refusal;
  hf_error error = {0};
  char *text = over_scans(c, sql, strncasecmp(sql, "WITH RECURSIVE", 14) == 0);
  if (engine_plan_json(c->planner, text, a, &json, &why, &error) != HF_OK || json == NULL) {
    fail_msg("%s: no plan: %s", sql, error.message == NULL ? why : error.message);
  }
  free(text);
  assert_int_equal(plan_tree_read(json, strlen(json), a, &root, &refusal, &error), HF_OK);
  if (root == NULL) {
    fail_msg("%s: not read: %s %s", sql, refusal.node, refusal.reason);
  }
  return root;
}

void cut_case_cut(cut_case *c, const char *sql, const cut_options *options, arena *a, cut_graph *graph,
                  tree_refusal *refusal) {
  hf_error error = {0};
  if (stage_cut(cut_case_tree(c, sql, a), options, a, graph, refusal, &error) != HF_OK) {
    fail_msg("%s: %s", sql, error.message);
  }
}

void cut_case_run_with(cut_case *c, const char *sql, const cut_options *options, cut_outcome *out) {
  cut_options over = *options;
  over.sources = c->sources;
  over.n_sources = c->n_tables;
  arena *a = arena_new();
  cut_graph graph;
  tree_refusal refusal;
  *out = (cut_outcome){.verdict = ORACLE_OTHER_ROWS};
  cut_case_cut(c, sql, &over, a, &graph, &refusal);
  if (refusal.code != TREE_REFUSED_NONE) {
    snprintf(out->why, sizeof out->why, "refused: %s", refusal.reason);
    snprintf(out->problem, sizeof out->problem, "refused: %s", refusal.reason);
  } else {
    const cut_run r = {c->o, &graph, over.tasks, c->sources, c->n_tables, out, NULL, NULL};
    oracle_rows expected;
    must_query(c->o, sql, &expected);
    cut_run_graph(&r, &expected);
    oracle_rows_free(&expected);
  }
  arena_free(a);
}

void cut_case_run(cut_case *c, const char *sql, uint32_t tasks, uint64_t broadcast_bytes, cut_outcome *out) {
  cut_case_run_with(c, sql, &(cut_options){.tasks = tasks, .broadcast_bytes = broadcast_bytes}, out);
}

cut_case *cut_case_new(const char *const *statements, size_t n) {
  cut_case *c = calloc(1, sizeof *c);
  oracle *o = oracle_open();
  assert_non_null(c);
  for (size_t i = 0; i < n; i++) {
    char *error = oracle_run(o, statements[i]);
    if (error != NULL) {
      fail_msg("%s: %s", statements[i], error);
    }
  }
  cut_case_open(c, o);
  return c;
}

int cut_case_teardown(void **state) {
  cut_case *c = *state;
  oracle *o = c->o;
  cut_case_close(c);
  oracle_close(o);
  free(c);
  return 0;
}

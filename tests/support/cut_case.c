/* SPDX-License-Identifier: Apache-2.0 */
/* Stages run one after the other on the oracle. */
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

enum { MOST_ROWS = 1000000, MOST_TASKS = 16 };

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

void cut_case_cut(cut_case *c, const char *sql, const cut_options *options, arena *a, cut_graph *graph,
                  tree_refusal *refusal) {
  const char *json = NULL, *why = NULL;
  const tree_node *root = NULL;
  hf_error error = {0};
  char *text = over_scans(c, sql, strncasecmp(sql, "WITH RECURSIVE", 14) == 0);
  if (engine_plan_json(c->planner, text, a, &json, &why, &error) != HF_OK || json == NULL) {
    fail_msg("%s: no plan: %s", sql, error.message == NULL ? why : error.message);
  }
  free(text);
  assert_int_equal(plan_tree_read(json, strlen(json), a, &root, refusal, &error), HF_OK);
  if (root == NULL) {
    fail_msg("%s: not read: %s %s", sql, refusal->node, refusal->reason);
  }
  if (stage_cut(root, options, a, graph, refusal, &error) != HF_OK) {
    fail_msg("%s: %s", sql, error.message);
  }
}

/* ------------------------------------------------------------------ running */

typedef struct running {
  cut_case *c;
  const cut_graph *graph;
  uint32_t tasks;
  cut_outcome *out;
} running;

static uint32_t tasks_of(const running *r, const cut_stage *stage) {
  return stage->one_task ? 1 : r->tasks;
}

static void write_source(const running *r, const cut_input *input, uint32_t task, buf *sql) {
  uint64_t rows = 0, n = input->share == CUT_SPLIT ? r->tasks : 1;
  for (size_t i = 0; i < r->c->n_tables; i++) {
    rows = strcmp(r->c->sources[i].id, input->source_id) == 0 ? r->c->sources[i].rows : rows;
  }
  buf_printf(sql, "(SELECT * FROM \"%s\" WHERE rowid >= %llu AND rowid < %llu)", input->source_id,
             (unsigned long long)(rows * task / n), (unsigned long long)(rows * (task + 1) / n));
}

static void write_columns_of(const cut_stage *stage, buf *sql) {
  for (size_t i = 0; i < stage->columns.n_columns; i++) {
    buf_printf(sql, "%sc%zu", i > 0 ? ", " : "", i);
  }
}

/* What the tasks from `first` to `end` wrote, in order: one scan, since DuckDB reads the branches of a UNION ALL in any. */
static void write_tables(const running *r, uint32_t at, uint32_t first, uint32_t end, const char *where,
                         buf *sql) {
  buf_text(sql, "(SELECT ");
  write_columns_of(&r->graph->stages[at], sql);
  buf_printf(sql, " FROM s%u WHERE task >= %u AND task < %u%s)", at, first, end, where);
}

static void write_stage_input(const running *r, const cut_input *input, uint32_t task, buf *sql) {
  const cut_stage *from = &r->graph->stages[input->stage];
  uint32_t n = tasks_of(r, from);
  char where[60] = "";
  assert_true(!input->ordered || from->ordered);
  if (input->share == CUT_SPLIT) {
    assert_int_equal(from->partitions, 1);
    write_tables(r, input->stage, task * n / r->tasks, (task + 1) * n / r->tasks, "", sql);
    return;
  }
  if (input->share == CUT_PARTITION) {
    assert_int_equal(from->partitions, r->tasks);
    snprintf(where, sizeof where, " AND c%zu = %u", from->columns.n_columns, task);
  }
  write_tables(r, input->stage, 0, n, where, sql);
}

static void write_task(const running *r, uint32_t at, uint32_t task, buf *sql) {
  const cut_stage *stage = &r->graph->stages[at];
  if (task == 0) {
    buf_printf(sql, "CREATE TEMP TABLE s%u AS ", at);
  } else {
    buf_printf(sql, "INSERT INTO s%u ", at);
  }
  buf_printf(sql, "SELECT *, CAST(%u AS UINTEGER) AS task FROM (", task);
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const cut_piece *piece = &stage->pieces[i];
    if (piece->text != NULL) {
      buf_text(sql, piece->text);
      continue;
    }
    const cut_input *input = &stage->inputs[piece->input];
    assert_true(!input->is_stage || input->stage < at);
    assert_true(!stage->one_task || input->share == CUT_ALL);
    if (input->is_stage) {
      write_stage_input(r, input, task, sql);
    } else {
      write_source(r, input, task, sql);
    }
  }
  buf_char(sql, ')');
}

static void say(cut_outcome *out, const char *what, const char *text) {
  if (out->problem[0] == '\0') {
    snprintf(out->problem, sizeof out->problem, "%.200s: %.380s", what, text);
  }
}

/* The SQL gives the types that the graph says. */
static void check_types(const running *r, uint32_t at) {
  const cut_stage *stage = &r->graph->stages[at];
  size_t n = stage->columns.n_columns;
  char sql[100];
  oracle_rows types;
  snprintf(sql, sizeof sql, "SELECT column_type FROM (DESCRIBE s%u)", at);
  must_query(r->c->o, sql, &types);
  bool is_right = types.n_rows == n + (stage->partitions > 1 ? 1 : 0) + 1;
  for (size_t i = 0; is_right && i < n; i++) {
    buf text = {0};
    data_type_to_sql(stage->columns.columns[i].type, &text);
    is_right = strcmp(types.cells[i].text, buf_cstr(&text)) == 0 || strcmp(buf_cstr(&text), "\"NULL\"") == 0;
    if (!is_right) {
      say(r->out, "a column's type is not what the graph says", buf_cstr(&text));
    }
    buf_reset(&text);
  }
  if (!is_right) {
    say(r->out, stage->what, "columns are not what the graph says");
  }
  oracle_rows_free(&types);
}

static bool run_stage(const running *r, uint32_t at) {
  const cut_stage *stage = &r->graph->stages[at];
  uint32_t with_rows = 0, n = tasks_of(r, stage);
  for (uint32_t t = 0; t < n; t++) {
    buf sql = {0};
    char count[80];
    write_task(r, at, t, &sql);
    char *error = oracle_run(r->c->o, buf_cstr(&sql));
    if (error != NULL) {
      say(r->out, error, buf_cstr(&sql));
      print_error("%s\n%s\n", error, buf_cstr(&sql));
      free(error);
      buf_reset(&sql);
      return false;
    }
    buf_reset(&sql);
    snprintf(count, sizeof count, "SELECT count(*)::VARCHAR FROM s%u WHERE task = %u", at, t);
    with_rows += number_of(r->c->o, count) > 0;
  }
  r->out->n_tasks += n;
  r->out->distributed |= with_rows >= 2;
  check_types(r, at);
  if (stage->one_task && stage->why_one[0] != '\0' && r->out->why[0] == '\0') {
    snprintf(r->out->why, sizeof r->out->why, "%s", stage->why_one);
  }
  return true;
}

static void drop_tables(const running *r) {
  for (uint32_t at = 0; at < r->graph->n_stages; at++) {
    char sql[60];
    snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS s%u", at);
    must_run(r->c->o, sql);
  }
}

static void compare(const running *r, const char *query) {
  oracle_rows expected, rows;
  buf sql = {0};
  uint32_t last = (uint32_t)r->graph->n_stages - 1;
  buf_text(&sql, "SELECT * FROM ");
  write_tables(r, last, 0, tasks_of(r, &r->graph->stages[last]), "", &sql);
  must_query(r->c->o, query, &expected);
  must_query(r->c->o, buf_cstr(&sql), &rows);
  r->out->verdict = oracle_compare(&expected, &rows);
  if (r->out->verdict != ORACLE_SAME && r->out->verdict != ORACLE_OTHER_ORDER) {
    say(r->out, "differs", oracle_difference(&expected, &rows));
  }
  oracle_rows_free(&expected);
  oracle_rows_free(&rows);
  buf_reset(&sql);
}

void cut_case_run(cut_case *c, const char *sql, uint32_t tasks, uint64_t broadcast_bytes, cut_outcome *out) {
  const cut_options options = {
      .tasks = tasks, .broadcast_bytes = broadcast_bytes, .sources = c->sources, .n_sources = c->n_tables};
  arena *a = arena_new();
  cut_graph graph;
  tree_refusal refusal;
  *out = (cut_outcome){.verdict = ORACLE_OTHER_ROWS};
  cut_case_cut(c, sql, &options, a, &graph, &refusal);
  running r = {c, &graph, tasks, out};
  out->n_stages = graph.n_stages;
  if (refusal.code != TREE_REFUSED_NONE) {
    snprintf(out->why, sizeof out->why, "refused: %s", refusal.reason);
    say(out, "refused", refusal.reason);
  } else {
    bool is_right = true;
    for (uint32_t at = 0; is_right && at < graph.n_stages; at++) {
      is_right = run_stage(&r, at);
    }
    if (is_right) {
      compare(&r, sql);
    }
    drop_tables(&r);
  }
  arena_free(a);
}

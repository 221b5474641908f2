/* SPDX-License-Identifier: Apache-2.0 */
/* Stages run one after the other on the oracle. */
#include "support/cut_run.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 1000000 };

static void say(cut_outcome *out, const char *what, const char *text) {
  if (out->problem[0] == '\0') {
    snprintf(out->problem, sizeof out->problem, "%.200s: %.380s", what, text);
  }
}

static void expect(const cut_run *r, bool condition, const char *what) {
  if (!condition) {
    say(r->out, "the graph is wrong", what);
  }
}

static void query(const cut_run *r, const char *sql, oracle_rows *rows) {
  char *error = oracle_query(r->o, sql, MOST_ROWS, rows);
  if (error != NULL) {
    say(r->out, error, sql);
    free(error);
  }
}

/* ------------------------------------------------------------------- inputs */

static uint32_t tasks_of(const cut_run *r, const cut_stage *stage) {
  return stage->one_task ? 1 : r->tasks;
}

/* The rows of the partitions that are the task's, by the hash of the columns as the table has them. */
static void write_dealt_source(const cut_run *r, const cut_source *source, uint32_t task, buf *sql) {
  oracle_rows names;
  char text[200];
  snprintf(text, sizeof text,
           "SELECT column_name FROM duckdb_columns() WHERE table_name = '%s' ORDER BY column_index",
           source->id);
  query(r, text, &names);
  buf_printf(sql, "(SELECT * FROM %s WHERE hash(", source->id);
  for (size_t i = 0; i < source->n_keys; i++) {
    buf_text(sql, i > 0 ? ", " : "");
    buf_sql_name(sql, names.cells[source->keys[i]].text);
  }
  buf_printf(sql, ") %% %u * %u // %u = %u)", source->modulus, r->tasks, source->modulus, task);
  oracle_rows_free(&names);
}

static void write_source(const cut_run *r, const cut_input *input, uint32_t task, buf *sql) {
  uint64_t rows = 0, n = input->share == CUT_SPLIT ? r->tasks : 1, at = n == 1 ? 0 : task;
  for (size_t i = 0; input->share == CUT_PARTITION && i < r->n_sources; i++) {
    if (strcmp(r->sources[i].id, input->source_id) == 0) {
      write_dealt_source(r, &r->sources[i], task, sql);
      return;
    }
  }
  for (size_t i = 0; i < r->n_sources; i++) {
    rows = strcmp(r->sources[i].id, input->source_id) == 0 ? r->sources[i].rows : rows;
  }
  buf_printf(sql, "(SELECT *, rowid FROM %s WHERE rowid >= %llu AND rowid < %llu)", input->source_id,
             (unsigned long long)(rows * at / n), (unsigned long long)(rows * (at + 1) / n));
}

/* What a table cannot hold, though a block can: structs without names have some in the table; NULLs without a type, that
 * of a table's columns by default. */
static bool is_unnamed(const data_type *type) {
  return type->kind == TYPE_STRUCT && type->n_children > 0 && type->names[0][0] == '\0';
}

/* CASE WHEN c1 IS NOT NULL THEN head c1[1], c1[2] … tail END AS c1 */
static void write_fields(const data_type *type, size_t at, bool named, buf *sql) {
  buf_printf(sql, "CASE WHEN c%zu IS NOT NULL THEN %s", at, named ? "{" : "row(");
  for (size_t k = 0; k < type->n_children; k++) {
    buf_text(sql, k > 0 ? ", " : "");
    if (named) {
      buf_printf(sql, "_%zu: ", k);
    }
    buf_printf(sql, "struct_extract_at(c%zu, %zu)", at, k + 1);
  }
  buf_printf(sql, "%s END AS c%zu", named ? "}" : ")", at);
}

/* As the table holds them. */
static void write_named(const cut_stage *stage, buf *sql) {
  size_t n = stage->columns.n_columns + (stage->partitions > 1 ? 1 : 0);
  for (size_t i = 0; i < n; i++) {
    const data_type *type = i < stage->columns.n_columns ? stage->columns.columns[i].type : NULL;
    buf_text(sql, i > 0 ? ", " : "");
    if (type != NULL && is_unnamed(type)) {
      write_fields(type, i, true, sql);
    } else {
      buf_printf(sql, "c%zu", i);
    }
  }
}

/* As they were. */
static void write_columns_of(const cut_stage *stage, buf *sql) {
  for (size_t i = 0; i < stage->columns.n_columns; i++) {
    const data_type *type = stage->columns.columns[i].type;
    buf_text(sql, i > 0 ? ", " : "");
    if (type->kind == TYPE_NULL) {
      buf_printf(sql, "NULL AS c%zu", i);
    } else if (is_unnamed(type)) {
      write_fields(type, i, false, sql);
    } else {
      buf_printf(sql, "c%zu", i);
    }
  }
}

/* What the tasks from `first` to `end` wrote, in order: one scan, since DuckDB reads the branches of a UNION ALL in any. */
static void write_tables(const cut_run *r, uint32_t at, uint32_t first, uint32_t end, const char *where,
                         buf *sql) {
  buf_text(sql, "(SELECT ");
  write_columns_of(&r->graph->stages[at], sql);
  buf_printf(sql, " FROM temp.main.cut_s%u WHERE task >= %u AND task < %u%s)", at, first, end, where);
}

static void write_stage_input(const cut_run *r, const cut_input *input, uint32_t task, buf *sql) {
  const cut_stage *from = &r->graph->stages[input->stage];
  uint32_t n = tasks_of(r, from);
  char where[60] = "";
  expect(r, !input->ordered || from->ordered, "an input in order of a stage without");
  if (input->share == CUT_SPLIT) {
    expect(r, from->partitions == 1, "a stage with partitions is split");
    write_tables(r, input->stage, task * n / r->tasks, (task + 1) * n / r->tasks, "", sql);
    return;
  }
  if (input->share == CUT_PARTITION) {
    expect(r, from->partitions > 1, "partitions of a stage without");
    snprintf(where, sizeof where, " AND c%zu::UBIGINT * %u // %u = %u", from->columns.n_columns, r->tasks,
             from->partitions, task);
  }
  write_tables(r, input->stage, 0, n, where, sql);
}

static void write_pieces(const cut_run *r, uint32_t at, uint32_t task, buf *sql) {
  const cut_stage *stage = &r->graph->stages[at];
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const cut_piece *piece = &stage->pieces[i];
    if (piece->text != NULL) {
      buf_text(sql, piece->text);
      continue;
    }
    const cut_input *input = &stage->inputs[piece->input];
    expect(r, !input->is_stage || input->stage < at, "a stage before its inputs");
    expect(r, !stage->one_task || input->share == CUT_ALL, "one task with a share of its input");
    if (input->is_stage) {
      write_stage_input(r, input, task, sql);
    } else {
      write_source(r, input, task, sql);
    }
  }
}

static void write_task(const cut_run *r, uint32_t at, uint32_t task, buf *sql) {
  if (task == 0) {
    buf_printf(sql, "CREATE TEMP TABLE cut_s%u AS ", at);
  } else {
    buf_printf(sql, "INSERT INTO temp.main.cut_s%u ", at);
  }
  buf_text(sql, "SELECT ");
  write_named(&r->graph->stages[at], sql);
  buf_printf(sql, ", CAST(%u AS UINTEGER) AS task FROM (", task);
  write_pieces(r, at, task, sql);
  buf_char(sql, ')');
}

/* Both spell the type, perhaps with other quotes. */
static bool is_type(const cut_run *r, const data_type *type, const char *spelled) {
  oracle_rows found;
  buf text = {0}, sql = {0};
  data_type_to_sql(type, &text);
  bool is_right =
      strcmp(spelled, buf_cstr(&text)) == 0 || data_type_contains(type, TYPE_NULL) || is_unnamed(type);
  if (!is_right) {
    buf_printf(&sql, "SELECT column_type FROM (DESCRIBE SELECT CAST(NULL AS %s))", buf_cstr(&text));
    query(r, buf_cstr(&sql), &found);
    is_right = found.n_rows == 1 && strcmp(found.cells[0].text, spelled) == 0;
    oracle_rows_free(&found);
  }
  if (!is_right) {
    say(r->out, "a column's type is not what the graph says", buf_cstr(&text));
  }
  buf_reset(&text);
  buf_reset(&sql);
  return is_right;
}

/* The SQL gives the types that the graph says. */
static void check_types(const cut_run *r, uint32_t at) {
  const cut_stage *stage = &r->graph->stages[at];
  size_t n = stage->columns.n_columns;
  char sql[100];
  oracle_rows types;
  snprintf(sql, sizeof sql, "SELECT column_type FROM (DESCRIBE temp.main.cut_s%u)", at);
  query(r, sql, &types);
  bool is_right = types.n_rows == n + (stage->partitions > 1 ? 1 : 0) + 1;
  for (size_t i = 0; is_right && i < n; i++) {
    is_right = is_type(r, stage->columns.columns[i].type, types.cells[i].text);
  }
  if (!is_right) {
    say(r->out, stage->what, "columns are not what the graph says");
  }
  oracle_rows_free(&types);
}

static void note_placement(const cut_stage *stage, cut_outcome *out) {
  bool is_first = out->why[0] == '\0' || (stage->falls_back && !out->falls_back);
  out->is_wide |= !stage->one_task;
  if (stage->one_task && stage->why_one[0] != '\0' && is_first) {
    snprintf(out->why, sizeof out->why, "%s", stage->why_one);
  }
  out->falls_back |= stage->falls_back;
}

static bool run_stage(const cut_run *r, uint32_t at) {
  const cut_stage *stage = &r->graph->stages[at];
  uint32_t with_rows = 0, n = tasks_of(r, stage);
  for (uint32_t t = 0; t < n; t++) {
    buf sql = {0};
    char count[80];
    write_task(r, at, t, &sql);
    char *error = oracle_run(r->o, buf_cstr(&sql));
    if (error != NULL) {
      say(r->out, error, buf_cstr(&sql));
      free(error);
      buf_reset(&sql);
      return false;
    }
    buf_reset(&sql);
    snprintf(count, sizeof count, "SELECT 1 FROM temp.main.cut_s%u WHERE task = %u LIMIT 1", at, t);
    oracle_rows rows;
    query(r, count, &rows);
    with_rows += rows.n_rows > 0;
    oracle_rows_free(&rows);
  }
  r->out->n_tasks += n;
  r->out->distributed |= with_rows >= 2;
  check_types(r, at);
  note_placement(stage, r->out);
  return true;
}

static void compare(const cut_run *r, const oracle_rows *expected, const oracle_rows *rows) {
  r->out->verdict = oracle_compare(expected, rows);
  if (r->out->verdict != ORACLE_SAME && r->out->verdict != ORACLE_OTHER_ORDER) {
    say(r->out, "differs", oracle_difference(expected, rows));
  }
}

/* The last stage's one task gives its rows to the caller: no table more is made, which the query might see. */
static void run_last(const cut_run *r, const oracle_rows *expected) {
  oracle_rows rows;
  buf sql = {0};
  uint32_t last = (uint32_t)r->graph->n_stages - 1;
  const cut_stage *stage = &r->graph->stages[last];
  write_pieces(r, last, 0, &sql);
  query(r, buf_cstr(&sql), &rows);
  if (r->out->problem[0] == '\0') {
    r->out->n_tasks++;
    note_placement(stage, r->out);
    compare(r, expected, &rows);
  }
  oracle_rows_free(&rows);
  buf_reset(&sql);
}

static void compare_last(const cut_run *r, const oracle_rows *expected) {
  oracle_rows rows;
  buf sql = {0};
  uint32_t last = (uint32_t)r->graph->n_stages - 1;
  buf_text(&sql, "SELECT * FROM ");
  write_tables(r, last, 0, tasks_of(r, &r->graph->stages[last]), "", &sql);
  query(r, buf_cstr(&sql), &rows);
  compare(r, expected, &rows);
  oracle_rows_free(&rows);
  buf_reset(&sql);
}

void cut_run_graph(const cut_run *r, const oracle_rows *expected) {
  bool is_right = true;
  uint32_t n = (uint32_t)r->graph->n_stages;
  const cut_stage *last = &r->graph->stages[n - 1];
  bool is_given = last->one_task && last->partitions == 1;
  r->out->n_stages = n;
  for (uint32_t at = 0; is_right && at < n - (is_given ? 1 : 0); at++) {
    is_right = run_stage(r, at);
    if (is_right && r->on_stage != NULL) {
      r->on_stage(r->context, at);
    }
  }
  if (is_right && is_given) {
    run_last(r, expected);
  } else if (is_right) {
    compare_last(r, expected);
  }
  for (uint32_t at = 0; at < n; at++) {
    char sql[60];
    snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS temp.main.cut_s%u", at);
    free(oracle_run(r->o, sql));
  }
}

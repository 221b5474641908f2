/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: a query runs as COPY to our sink, on the instance's spare connection, and
 * is measured by DuckDB's profiler. What the sink does is in sink.c, what the
 * inputs do in blocks.c.
 * Thread: the caller's.
 */
#include "engine_internal.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Of each operator the rows it gave and scanned, of the query the most memory and spilled bytes. 0.5 ms a connection. */
static const char measuring[] =
    "SET enable_progress_bar = true; SET enable_progress_bar_print = false; "
    "SET custom_profiling_settings = '{\"OPERATOR_CARDINALITY\": \"true\", \"OPERATOR_ROWS_SCANNED\": \"true\", "
    "\"SYSTEM_PEAK_BUFFER_MEMORY\": \"true\", \"SYSTEM_PEAK_TEMP_DIR_SIZE\": \"true\"}'; "
    "PRAGMA enable_profiling = 'no_output'";

static const char copy_head[] = "COPY (";

hf_status task_connect(engine *e, duckdb_connection *out, hf_error *error) {
  duckdb_connection connection = NULL;
  HF_TRY(statement_connect(e, &connection, error));
  hf_status status = statement_run(connection, measuring, error);
  if (status != HF_OK) {
    duckdb_disconnect(&connection);
    return status;
  }
  *out = connection;
  return HF_OK;
}

/* ------------------------------------------------------------------- statistics */

static char *metric(duckdb_profiling_info node, const char *name) {
  duckdb_value value = duckdb_profiling_info_get_value(node, name);
  char *text = value == NULL ? NULL : duckdb_get_varchar(value);
  duckdb_destroy_value(&value);
  return text;
}

static uint64_t metric_number(duckdb_profiling_info node, const char *name) {
  char *text = metric(node, name);
  uint64_t number = text == NULL ? 0 : strtoull(text, NULL, 10);
  duckdb_free(text);
  return number;
}

/* DuckDB's readers of files are named READ_CSV, READ_JSON_AUTO, PARQUET_SCAN …; hf_blocks and range() are not. */
static bool is_file_reader(duckdb_profiling_info node) {
  char *name = metric(node, "OPERATOR_NAME");
  bool is_reader =
      name != NULL && (strncasecmp(name, "READ_", 5) == 0 || strncasecmp(name, "PARQUET_SCAN", 12) == 0);
  duckdb_free(name);
  return is_reader;
}

/*
 * Rows that the readers gave, after the filters that DuckDB pushed into them. Where those left none, 1 says that a
 * file was read: ROWS_SCANNED is an estimate that every thread adds again.
 */
static uint64_t source_rows(duckdb_profiling_info node) {
  uint64_t rows = 0;
  if (is_file_reader(node)) {
    rows = metric_number(node, "OPERATOR_CARDINALITY");
    if (rows == 0 && metric_number(node, "OPERATOR_ROWS_SCANNED") > 0) {
      rows = 1;
    }
  }
  idx_t n = duckdb_profiling_info_get_child_count(node);
  for (idx_t i = 0; i < n; i++) {
    rows += source_rows(duckdb_profiling_info_get_child(node, i));
  }
  return rows;
}

static void measure(duckdb_connection connection, engine_task_stats *stats) {
  duckdb_profiling_info root = duckdb_get_profiling_info(connection);
  if (root == NULL) {
    return;
  }
  stats->peak_memory_bytes = metric_number(root, "SYSTEM_PEAK_BUFFER_MEMORY");
  stats->spill_bytes = metric_number(root, "SYSTEM_PEAK_TEMP_DIR_SIZE");
  idx_t n = duckdb_profiling_info_get_child_count(root);
  for (idx_t i = 0; i < n; i++) {
    stats->source_rows += source_rows(duckdb_profiling_info_get_child(root, i));
  }
}

/* ------------------------------------------------------------------------- run */

/* The line break ends a comment that the query may end with. */
static void write_copy(const engine *e, const engine_task *task, buf *out) {
  buf_text(out, copy_head);
  buf_text(out, task->sql);
  buf_text(out, "\n) TO ");
  buf_sql_string(out, e->copy_target);
  buf_text(out, " (FORMAT holdfast, TASK ");
  buf_sql_string(out, task->id);
  /* with OVERWRITE_OR_IGNORE DuckDB does not look into the directory of the task before */
  buf_text(out, task->ordered ? ")" : ", PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE true)");
}

/* Several statements in the text would run one after the other; a semicolon may be in a text or a comment. */
static hf_status check_single(duckdb_connection connection, const char *sql, hf_error *error) {
  if (strchr(sql, ';') == NULL) {
    return HF_OK;
  }
  duckdb_extracted_statements statements = NULL;
  idx_t n = duckdb_extract_statements(connection, sql, &statements);
  hf_status status = HF_OK;
  if (n == 0) {
    status = failure_set(error, duckdb_extract_statements_error(statements), strlen(copy_head));
  } else if (n != 1) {
    status = error_set(error, HF_E_STATEMENT_REFUSED, "a task has %llu statements, expected one query",
                       (unsigned long long)n);
  }
  duckdb_destroy_extracted(&statements);
  return status;
}

static hf_status run_copy(engine *e, duckdb_connection connection, const char *sql, engine_task_stats *stats,
                          hf_error *error) {
  HF_TRY(check_single(connection, sql, error));
  HF_TRY(statement_begin(e, connection, error));
  duckdb_result result = {0};
  duckdb_state state = duckdb_query(connection, sql, &result);
  bool was_interrupted = statement_finish(e);
  hf_status status = HF_OK;
  if (state != DuckDBSuccess) {
    status = failure_set(error, duckdb_result_error(&result), strlen(copy_head));
    status = was_interrupted && status == HF_E_CANCELLED
                 ? error_set(error, HF_E_CANCELLED, "the task was cancelled")
                 : status;
  }
  measure(connection, stats);
  duckdb_destroy_result(&result);
  return status;
}

/* Whether the next task may have the connection: nothing of this one is left in it. */
static bool is_as_new(const engine_task *task, hf_status status) {
  return status == HF_OK && strcasestr(task->sql, "setseed") == NULL;
}

static hf_status run_task(engine *e, const engine_task *task, engine_task_stats *stats, hf_error *error) {
  duckdb_connection connection = e->spare;
  e->spare = NULL;
  if (connection == NULL) {
    HF_TRY(task_connect(e, &connection, error));
  }
  buf sql = {0};
  write_copy(e, task, &sql);
  hf_status status = sql.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of a task")
                                : run_copy(e, connection, buf_cstr(&sql), stats, error);
  buf_reset(&sql);
  if (is_as_new(task, status)) {
    e->spare = connection;
  } else {
    duckdb_disconnect(&connection);
  }
  return status;
}

hf_status engine_run_task(engine *e, const engine_task *task, engine_task_stats *stats, hf_error *error) {
  *stats = (engine_task_stats){0};
  if (e->copy_target == NULL) {
    return error_set(error, HF_E_INTERNAL, "this instance runs no tasks");
  }
  HF_TRY(engine_use_rules(e, task->unpushed ? RULES_UNPUSHED : RULES_ALL, error));
  engine_run run;
  hf_status status = run_open(&run, e, task->inputs, task->n_inputs, error);
  if (status == HF_OK) {
    run.task = task;
    hf_error found = {0};
    status = run_conclude(&run, run_task(e, task, stats, &found), &found, error);
  }
  run_close(&run);
  return status;
}

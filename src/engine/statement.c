/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements: which one runs, how it is stopped, how far it is. DuckDB forgets an
 * interrupt when a statement starts, so ours sticks until the statement ends: it
 * is looked at when it begins, when the sink is bound (sink.c) and at its end.
 * Thread: engine_interrupt, engine_interrupt_reset and engine_progress any; the
 * rest that of the caller.
 */
#include "engine_internal.h"

static hf_status cancelled(hf_error *error) {
  return error_set(error, HF_E_CANCELLED, "the statement was cancelled");
}

hf_status statement_begin(engine *e, duckdb_connection on, hf_error *error) {
  pthread_mutex_lock(&e->lock);
  bool is_late = atomic_load(&e->interrupted);
  if (is_late) {
    atomic_store(&e->interrupted, false);
  } else {
    e->running = on;
  }
  pthread_mutex_unlock(&e->lock);
  return is_late ? cancelled(error) : HF_OK;
}

bool statement_finish(engine *e) {
  pthread_mutex_lock(&e->lock);
  e->running = NULL;
  bool was_interrupted = atomic_exchange(&e->interrupted, false);
  pthread_mutex_unlock(&e->lock);
  return was_interrupted;
}

hf_status statement_connect(engine *e, duckdb_connection *out, hf_error *error) {
  if (duckdb_connect(e->database, out) != DuckDBSuccess) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a connection");
  }
  return HF_OK;
}

hf_status statement_run(duckdb_connection on, const char *sql, hf_error *error) {
  duckdb_result result = {0};
  hf_status status = HF_OK;
  if (duckdb_query(on, sql, &result) != DuckDBSuccess) {
    status = failure_set(error, duckdb_result_error(&result), 0);
  }
  duckdb_destroy_result(&result);
  return status;
}

/* ------------------------------------------------------------------------ door */

hf_status engine_execute(engine *e, const char *sql, hf_error *error) {
  HF_TRY(statement_begin(e, e->main, error));
  hf_status status = statement_run(e->main, sql, error);
  return statement_finish(e) && status == HF_OK ? cancelled(error) : status;
}

void engine_interrupt(engine *e) {
  pthread_mutex_lock(&e->lock);
  atomic_store(&e->interrupted, true);
  if (e->running != NULL) {
    duckdb_interrupt(e->running); /* sets a flag */
  }
  pthread_mutex_unlock(&e->lock);
}

void engine_interrupt_reset(engine *e) {
  pthread_mutex_lock(&e->lock);
  atomic_store(&e->interrupted, false);
  pthread_mutex_unlock(&e->lock);
}

void engine_progress(engine *e, double *fraction, uint64_t *rows) {
  duckdb_query_progress_type progress = {.percentage = -1};
  pthread_mutex_lock(&e->lock);
  bool is_running = e->running != NULL;
  if (is_running) {
    progress = duckdb_query_progress(e->running);
  }
  pthread_mutex_unlock(&e->lock);
  uint64_t given = atomic_load(&e->block_rows), total = atomic_load(&e->block_rows_total);
  *fraction = is_running ? progress.percentage / 100 : -1;
  *rows = progress.rows_processed;
  if (is_running && total > 0) { /* DuckDB does not know how far hf_blocks is */
    double part = given < total ? (double)given / (double)total : 1;
    *fraction = *fraction > part ? *fraction : part;
    *rows += given;
  }
  *fraction = *fraction < 0 ? -1 : *fraction > 1 ? 1 : *fraction;
}

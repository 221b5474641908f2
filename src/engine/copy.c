/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COPY of blocks into a file of the user's: a statement over inputs that has no
 * rows of its own. Where it may write is what the instance was opened with.
 * Thread: the caller's; with one thread DuckDB calls the inputs on it too.
 */
#include "engine_internal.h"

static hf_status copy(engine *e, const char *sql, hf_error *error) {
  duckdb_connection connection = NULL;
  HF_TRY(statement_connect(e, &connection, error));
  hf_status status = statement_begin(e, connection, error);
  if (status == HF_OK) {
    status = statement_run(connection, sql, error);
    bool was_interrupted = statement_finish(e);
    if (was_interrupted && status == HF_OK) {
      status = error_set(error, HF_E_CANCELLED, "the statement was cancelled");
    }
  }
  duckdb_disconnect(&connection);
  return status;
}

hf_status engine_copy(engine *e, const engine_shown *copied, hf_error *error) {
  engine_run run;
  hf_status status = run_open(&run, e, copied->inputs, copied->n_inputs, error);
  if (status == HF_OK) {
    hf_error found = {0};
    status = run_conclude(&run, copy(e, copied->sql, &found), &found, error);
  }
  run_close(&run);
  return status;
}

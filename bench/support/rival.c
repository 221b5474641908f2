/* SPDX-License-Identifier: Apache-2.0 */
/* DuckDB and Holdfast side by side, each read to the end of its result. */
#include "support/rival.h"

#include "support/measure.h"

#include <stdio.h>
#include <stdlib.h>

void bench_fail(const char *what, const char *why) {
  fprintf(stderr, "bench: %s: %s\n", what, why == NULL ? "failed" : why);
  exit(1);
}

void rival_open(rival *r, unsigned threads) {
  char text[16];
  snprintf(text, sizeof text, "%u", threads);
  duckdb_config config;
  duckdb_create_config(&config);
  duckdb_set_config(config, "threads", text);
  duckdb_set_config(config, "autoinstall_known_extensions", "false");
  const char *extensions = getenv("HOLDFAST_EXTENSION_DIRECTORY");
  if (extensions != NULL) {
    duckdb_set_config(config, "extension_directory", extensions);
  }
  char *why = NULL;
  if (duckdb_open_ext(NULL, &r->database, config, &why) != DuckDBSuccess ||
      duckdb_connect(r->database, &r->connection) != DuckDBSuccess) {
    bench_fail("cannot open DuckDB", why);
  }
  duckdb_destroy_config(&config);
}

void rival_close(rival *r) {
  duckdb_disconnect(&r->connection);
  duckdb_close(&r->database);
}

double rival_run(rival *r, const char *sql, uint64_t *rows) {
  double start = measure_now_ms();
  duckdb_prepared_statement statement;
  if (duckdb_prepare(r->connection, sql, &statement) != DuckDBSuccess) {
    bench_fail(sql, duckdb_prepare_error(statement));
  }
  duckdb_result result;
  if (duckdb_execute_prepared(statement, &result) != DuckDBSuccess) {
    bench_fail(sql, duckdb_result_error(&result));
  }
  uint64_t count = 0;
  duckdb_data_chunk chunk;
  while ((chunk = duckdb_fetch_chunk(result)) != NULL) {
    count += duckdb_data_chunk_get_size(chunk);
    duckdb_destroy_data_chunk(&chunk);
  }
  duckdb_destroy_result(&result);
  duckdb_destroy_prepare(&statement);
  if (rows != NULL) {
    *rows = count;
  }
  return measure_now_ms() - start;
}

char *rival_text(rival *r, const char *sql) {
  duckdb_result result;
  if (duckdb_query(r->connection, sql, &result) != DuckDBSuccess) {
    bench_fail(sql, duckdb_result_error(&result));
  }
  char *text = duckdb_value_varchar(&result, 0, 0);
  duckdb_destroy_result(&result);
  return text;
}

hf_session *ours_open(const char *threads, const char *slots, const char *work_dir) {
  hf_setting settings[] = {
      {"threads", threads}, {"slots", slots == NULL ? "1" : slots}, {"work_dir", work_dir}};
  hf_session *session = NULL;
  hf_error error = {0};
  if (hf_session_open("local", settings, work_dir == NULL ? 2 : 3, &session, &error) != HF_OK) {
    bench_fail("cannot open Holdfast", error.message);
  }
  return session;
}

static uint64_t drain(struct ArrowArrayStream *stream) {
  uint64_t rows = 0;
  for (;;) {
    struct ArrowArray batch = {0};
    if (stream->get_next(stream, &batch) != 0) {
      bench_fail("cannot read the result", stream->get_last_error(stream));
    }
    if (batch.release == NULL) {
      break;
    }
    rows += (uint64_t)batch.length;
    batch.release(&batch);
  }
  stream->release(stream);
  return rows;
}

double ours_run(hf_session *s, const char *sql, uint64_t *rows, hf_profile *profile) {
  double start = measure_now_ms();
  hf_error error = {0};
  hf_df *df = NULL;
  if (hf_session_sql(s, sql, &df, &error) != HF_OK) {
    bench_fail(sql, error.message);
  }
  uint64_t count = 0;
  if (df != NULL) {
    struct ArrowArrayStream stream = {0};
    hf_action_options options = {.profile = profile};
    if (hf_df_collect(df, &options, &stream, &error) != HF_OK) {
      bench_fail(sql, error.message);
    }
    count = drain(&stream);
  }
  hf_df_free(df);
  if (rows != NULL) {
    *rows = count;
  }
  return measure_now_ms() - start;
}

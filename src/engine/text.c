/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as text: every column cast to VARCHAR by DuckDB, in a small table
 * (discovery) or streamed chunk by chunk (what a person reads).
 * Thread: the caller's.
 */
#include "engine_internal.h"

#include "base/buf.h"

#include <string.h>

/* The most cells of a text_table; a result beyond it is not small. */
#define MOST_CELLS 100000

static const char cast_head[] = "SELECT COLUMNS(*)::VARCHAR FROM (";

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a result as text");
}

/* Gets the columns of a result, then its chunks; an error, or false in *goes_on, stops. */
typedef struct text_reader {
  hf_status (*head)(void *context, duckdb_result *result, hf_error *error);
  hf_status (*chunk)(void *context, duckdb_data_chunk chunk, bool *goes_on, hf_error *error);
  void *context;
} text_reader;

static hf_status read_result(duckdb_result *result, const text_reader *reader, hf_error *error) {
  HF_TRY(reader->head(reader->context, result, error));
  bool goes_on = true;
  while (goes_on) {
    duckdb_data_chunk chunk = duckdb_fetch_chunk(*result);
    if (chunk == NULL) {
      const char *text = duckdb_result_error(result);
      return text == NULL || text[0] == '\0' ? HF_OK : failure_set(error, text, strlen(cast_head));
    }
    hf_status status = reader->chunk(reader->context, chunk, &goes_on, error);
    duckdb_destroy_data_chunk(&chunk);
    HF_TRY(status);
  }
  return HF_OK;
}

/* Streams: the rows come as they are computed. */
static hf_status stream(duckdb_connection on, const char *sql, const text_reader *reader, hf_error *error) {
  duckdb_prepared_statement prepared = NULL;
  duckdb_pending_result pending = NULL;
  duckdb_result result = {0};
  hf_status status = HF_OK;
  if (duckdb_prepare(on, sql, &prepared) != DuckDBSuccess) {
    status = failure_set(error, duckdb_prepare_error(prepared), strlen(cast_head));
  } else if (duckdb_pending_prepared_streaming(prepared, &pending) != DuckDBSuccess) {
    status = failure_set(error, duckdb_pending_error(pending), strlen(cast_head));
  } else if (duckdb_execute_pending(pending, &result) != DuckDBSuccess) {
    status = failure_set(error, duckdb_result_error(&result), strlen(cast_head));
  } else {
    status = read_result(&result, reader, error);
  }
  duckdb_destroy_result(&result);
  duckdb_destroy_pending(&pending);
  duckdb_destroy_prepare(&prepared);
  return status;
}

/* Runs to the end first: binds once, where a prepared statement binds twice and sniffs a file again. */
static hf_status collect(duckdb_connection on, const char *sql, const text_reader *reader, hf_error *error) {
  duckdb_result result = {0};
  hf_status status = duckdb_query(on, sql, &result) == DuckDBSuccess
                         ? read_result(&result, reader, error)
                         : failure_set(error, duckdb_result_error(&result), strlen(cast_head));
  duckdb_destroy_result(&result);
  return status;
}

static hf_status run_as_text(engine *e, duckdb_connection on, const char *sql, bool streams,
                             const text_reader *reader, hf_error *error) {
  buf text = {0};
  buf_text(&text, cast_head);
  buf_text(&text, sql);
  buf_text(&text, "\n)");
  hf_status status = text.failed ? no_memory(error) : statement_begin(e, on, error);
  if (status == HF_OK) {
    status =
        streams ? stream(on, buf_cstr(&text), reader, error) : collect(on, buf_cstr(&text), reader, error);
    bool was_interrupted = statement_finish(e);
    if (was_interrupted && status == HF_OK) {
      status = error_set(error, HF_E_CANCELLED, "the statement was cancelled");
    }
  }
  buf_reset(&text);
  return status;
}

static bool is_null(const uint64_t *validity, idx_t row) {
  return validity != NULL && (validity[row / 64] >> (row % 64) & 1) == 0;
}

/* ------------------------------------------------------------------ text table */

typedef struct table_builder {
  arena *memory;
  text_table *out;
  const char **cells; /* of mem, until the end */
  size_t capacity;
} table_builder;

static hf_status table_head(void *context, duckdb_result *result, hf_error *error) {
  table_builder *b = context;
  size_t n = (size_t)duckdb_column_count(result);
  const char **names = arena_array(b->memory, n, sizeof *names);
  if (names == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    const char *name = duckdb_column_name(result, i);
    names[i] = arena_strdup(b->memory, name == NULL ? "" : name);
    if (names[i] == NULL) {
      return no_memory(error);
    }
  }
  b->out->n_columns = n;
  b->out->names = names;
  return HF_OK;
}

static hf_status table_reserve(table_builder *b, size_t more_rows, hf_error *error) {
  size_t wanted = (b->out->n_rows + more_rows) * b->out->n_columns;
  if (wanted > MOST_CELLS) {
    return error_set(error, HF_E_LIMIT, "a small result has too many cells: more than %d", MOST_CELLS);
  }
  if (wanted <= b->capacity) {
    return HF_OK;
  }
  const char **cells = mem_realloc(b->cells, wanted * sizeof *cells);
  if (cells == NULL) {
    return no_memory(error);
  }
  b->cells = cells;
  b->capacity = wanted;
  return HF_OK;
}

/* Copies one column of a chunk. */
static hf_status table_column(table_builder *b, duckdb_data_chunk chunk, size_t i, hf_error *error) {
  duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, i);
  const uint64_t *validity = duckdb_vector_get_validity(vector);
  duckdb_string_t *texts = duckdb_vector_get_data(vector);
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  for (idx_t row = 0; row < rows; row++) {
    const char **cell = &b->cells[(b->out->n_rows + row) * b->out->n_columns + i];
    if (is_null(validity, row)) {
      *cell = NULL;
      continue;
    }
    *cell = arena_strndup(b->memory, duckdb_string_t_data(&texts[row]), duckdb_string_t_length(texts[row]));
    if (*cell == NULL) {
      return no_memory(error);
    }
  }
  return HF_OK;
}

static hf_status table_chunk(void *context, duckdb_data_chunk chunk, bool *goes_on, hf_error *error) {
  table_builder *b = context;
  size_t rows = (size_t)duckdb_data_chunk_get_size(chunk);
  HF_TRY(table_reserve(b, rows, error));
  for (size_t i = 0; i < b->out->n_columns; i++) {
    HF_TRY(table_column(b, chunk, i, error));
  }
  b->out->n_rows += rows;
  *goes_on = true;
  return HF_OK;
}

hf_status engine_query_text(engine *e, const char *sql, arena *a, text_table *out, hf_error *error) {
  text_table table = {0};
  table_builder b = {.memory = a, .out = &table};
  text_reader reader = {.head = table_head, .chunk = table_chunk, .context = &b};
  hf_status status = run_as_text(e, e->main, sql, false, &reader, error);
  if (status == HF_OK) {
    size_t n = table.n_rows * table.n_columns;
    const char **cells = arena_array(a, n, sizeof *cells);
    if (cells == NULL) {
      status = no_memory(error);
    } else {
      if (n > 0) {
        memcpy(cells, b.cells, n * sizeof *cells);
      }
      table.cells = cells;
      *out = table;
    }
  }
  mem_free(b.cells);
  return status;
}

/* ---------------------------------------------------------------------- render */

typedef struct rendering {
  text_batch_fn batch;
  void *context;
  size_t n_columns;
  const char **cells;          /* n_columns × ENGINE_VECTOR_ROWS */
  uint32_t *lengths;           /* the same */
  const char *const **columns; /* n_columns: where each begins in `cells` */
  const uint32_t **column_lengths;
} rendering;

static hf_status rendering_head(void *context, duckdb_result *result, hf_error *error) {
  rendering *r = context;
  r->n_columns = (size_t)duckdb_column_count(result);
  r->cells = mem_zalloc(r->n_columns * ENGINE_VECTOR_ROWS, sizeof *r->cells);
  r->lengths = mem_zalloc(r->n_columns * ENGINE_VECTOR_ROWS, sizeof *r->lengths);
  r->columns = mem_zalloc(r->n_columns, sizeof *r->columns);
  r->column_lengths = mem_zalloc(r->n_columns, sizeof *r->column_lengths);
  if (r->cells == NULL || r->lengths == NULL || r->columns == NULL || r->column_lengths == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < r->n_columns; i++) {
    r->columns[i] = &r->cells[i * ENGINE_VECTOR_ROWS];
    r->column_lengths[i] = &r->lengths[i * ENGINE_VECTOR_ROWS];
  }
  return HF_OK;
}

static hf_status rendering_chunk(void *context, duckdb_data_chunk chunk, bool *goes_on, hf_error *error) {
  (void)error;
  rendering *r = context;
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  for (size_t i = 0; i < r->n_columns; i++) {
    duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, i);
    const uint64_t *validity = duckdb_vector_get_validity(vector);
    duckdb_string_t *texts = duckdb_vector_get_data(vector);
    for (idx_t row = 0; row < rows; row++) {
      bool null = is_null(validity, row);
      r->cells[i * ENGINE_VECTOR_ROWS + row] = null ? NULL : duckdb_string_t_data(&texts[row]);
      r->lengths[i * ENGINE_VECTOR_ROWS + row] = null ? 0 : duckdb_string_t_length(texts[row]);
    }
  }
  *goes_on = rows == 0 || r->batch(r->context, r->columns, r->column_lengths, (size_t)rows);
  return HF_OK;
}

/* On a connection of its own, as a task. */
static hf_status render(engine *e, const char *sql, rendering *r, hf_error *error) {
  text_reader reader = {.head = rendering_head, .chunk = rendering_chunk, .context = r};
  duckdb_connection connection = NULL;
  HF_TRY(statement_connect(e, &connection, error));
  hf_status status = run_as_text(e, connection, sql, true, &reader, error);
  duckdb_disconnect(&connection);
  mem_free(r->cells);
  mem_free(r->lengths);
  mem_free(r->columns);
  mem_free(r->column_lengths);
  return status;
}

hf_status engine_render(engine *e, const engine_shown *shown, text_batch_fn row_batch, void *context,
                        hf_error *error) {
  rendering r = {.batch = row_batch, .context = context};
  engine_run run;
  hf_status status = run_open(&run, e, shown->inputs, shown->n_inputs, error);
  if (status == HF_OK) {
    hf_error found = {0};
    status = run_conclude(&run, render(e, shown->sql, &r, &found), &found, error);
  }
  run_close(&run);
  return status;
}

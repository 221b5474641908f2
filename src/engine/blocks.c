/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_blocks('<id>'): the table function that reads an input of the run. Arrays of
 * the block face come from the input's source_ops, at most 2048 rows each, and
 * become vectors in convert.c. Only the wanted columns are asked for.
 * Thread: binding and init that of the statement, the rest DuckDB's in parallel.
 */
#include "engine_internal.h"

#include <stdio.h>
#include <string.h>

/* One scan of an input: what hf_blocks once in a query stands for. */
typedef struct block_scan {
  engine_run *run;
  run_input *input;
  size_t n_columns;
  size_t *columns; /* of the input's, in the order of the output */
  void *inner;     /* of the source; NULL: not opened */
} block_scan;

/* One of DuckDB's states of it; opened at its first call, where the scan is known. */
typedef struct block_reader {
  block_scan *scan; /* NULL: not opened */
  void *inner;
  block_conversion *conversion;
} block_reader;

static const source_ops *ops_of(const block_scan *scan) {
  return scan->input->from->ops;
}

/* ----------------------------------------------------------------------- bind */

static run_input *find_input(const engine *e, const char *id) {
  for (size_t i = 0; e->run != NULL && i < e->run->n_inputs; i++) {
    if (strcmp(e->run->inputs[i].from->id, id) == 0) {
      return &e->run->inputs[i];
    }
  }
  return NULL;
}

static hf_status add_columns(duckdb_bind_info info, const run_input *input, hf_error *error) {
  const schema *columns = input->from->columns;
  for (size_t i = 0; i < columns->n_columns; i++) {
    char name[24];
    snprintf(name, sizeof name, "c%zu", i);
    duckdb_logical_type type = NULL;
    HF_TRY(type_to_duckdb(columns->columns[i].type, true, &type, error));
    duckdb_bind_add_result_column(info, name, type);
    duckdb_destroy_logical_type(&type);
  }
  return HF_OK;
}

static void bind(duckdb_bind_info info) {
  engine *e = duckdb_bind_get_extra_info(info);
  duckdb_value value = duckdb_bind_get_parameter(info, 0);
  char *id = duckdb_get_varchar(value);
  duckdb_destroy_value(&value);
  run_input *input = id == NULL ? NULL : find_input(e, id);
  hf_error error = {0};
  if (input == NULL) {
    duckdb_bind_set_error(info, "hf_blocks knows no input of this id");
  } else if (add_columns(info, input, &error) != HF_OK) {
    run_fail(e->run, &error);
    duckdb_bind_set_error(info, "hf_blocks failed");
  } else {
    duckdb_bind_set_bind_data(info, input, NULL);
    duckdb_bind_set_cardinality(info, input->from->rows, true);
  }
  duckdb_free(id);
}

/* ----------------------------------------------------------------------- scan */

static void scan_free(void *data) {
  block_scan *scan = data;
  engine_run *run = scan->run;
  if (scan->inner != NULL) {
    ops_of(scan)->close(scan->inner);
  }
  mem_free(scan->columns);
  mem_free(scan);
  run_leave(run);
}

static hf_status pick_columns(block_scan *scan, duckdb_init_info info, hf_error *error) {
  size_t n = (size_t)duckdb_init_get_column_count(info);
  scan->columns = mem_zalloc(n, sizeof *scan->columns);
  if (scan->columns == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to scan blocks");
  }
  scan->n_columns = n;
  for (size_t i = 0; i < n; i++) {
    scan->columns[i] = (size_t)duckdb_init_get_column_index(info, i);
    if (scan->columns[i] >= scan->input->from->columns->n_columns) {
      return error_set(error, HF_E_UNSUPPORTED, "blocks have no row numbers");
    }
  }
  return HF_OK;
}

static hf_status scan_open(block_scan *scan, duckdb_init_info info, unsigned *threads, hf_error *error) {
  HF_TRY(pick_columns(scan, info, error));
  *threads = 1;
  return ops_of(scan)->open(scan->input->from->source, scan->columns, scan->n_columns, &scan->inner, threads,
                            error);
}

/* Keeps the error and tells DuckDB that there is one. */
static void refuse_init(duckdb_init_info info, engine_run *run, hf_error *error) {
  run_fail(run, error);
  duckdb_init_set_error(info, "hf_blocks failed");
}

static void init(duckdb_init_info info) {
  engine *e = duckdb_init_get_extra_info(info);
  hf_error error = {0};
  unsigned threads = 1;
  block_scan *scan = mem_zalloc(1, sizeof *scan);
  if (scan == NULL) {
    error_set(&error, HF_E_OUT_OF_MEMORY, "no memory to scan blocks");
    refuse_init(info, e->run, &error);
    return;
  }
  *scan = (block_scan){.run = e->run, .input = duckdb_init_get_bind_data(info)};
  run_enter(scan->run);
  hf_status status = scan_open(scan, info, &threads, &error);
  duckdb_init_set_init_data(info, scan, scan_free);
  duckdb_init_set_max_threads(info, threads);
  if (status != HF_OK) {
    refuse_init(info, e->run, &error);
  }
}

/* --------------------------------------------------------------------- reader */

static void reader_free(void *data) {
  block_reader *r = data;
  if (r->scan != NULL && r->inner != NULL) {
    ops_of(r->scan)->thread_close(r->inner);
  }
  block_conversion_free(r->conversion);
  mem_free(r);
}

static void reader_init(duckdb_init_info info) {
  block_reader *r = mem_zalloc(1, sizeof *r);
  if (r == NULL) {
    engine *e = duckdb_init_get_extra_info(info);
    hf_error error = {0};
    error_set(&error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
    refuse_init(info, e->run, &error);
    return;
  }
  duckdb_init_set_init_data(info, r, reader_free);
}

static hf_status reader_open(block_reader *r, block_scan *scan, hf_error *error) {
  if (r->scan != NULL) {
    return HF_OK;
  }
  HF_TRY(ops_of(scan)->thread_open(scan->inner, &r->inner, error));
  r->scan = scan;
  return block_conversion_new(scan->run->engine, scan->input, scan->columns, scan->n_columns, &r->conversion,
                              error);
}

static void give(duckdb_function_info info, duckdb_data_chunk out) {
  block_scan *scan = duckdb_function_get_init_data(info);
  block_reader *r = duckdb_function_get_local_init_data(info);
  hf_error error = {0};
  struct ArrowArray rows = {0};
  hf_status status = reader_open(r, scan, &error);
  if (status == HF_OK) {
    status = ops_of(scan)->next(r->inner, &rows, &error);
  }
  if (status == HF_OK && rows.length > 0) {
    status = block_convert(r->conversion, &rows, out, &error);
    atomic_fetch_add_explicit(&scan->run->engine->block_rows, (uint64_t)rows.length, memory_order_relaxed);
  } else {
    duckdb_data_chunk_set_size(out, 0);
  }
  if (rows.release != NULL) {
    rows.release(&rows);
  }
  if (status != HF_OK) {
    run_fail(scan->run, &error);
    duckdb_function_set_error(info, "hf_blocks failed");
  }
}

/* ----------------------------------------------------------------------- door */

hf_status blocks_register(engine *e, hf_error *error) {
  duckdb_table_function function = duckdb_create_table_function();
  duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
  duckdb_table_function_set_name(function, "hf_blocks");
  duckdb_table_function_add_parameter(function, text);
  duckdb_table_function_set_extra_info(function, e, NULL);
  duckdb_table_function_set_bind(function, bind);
  duckdb_table_function_set_init(function, init);
  duckdb_table_function_set_local_init(function, reader_init);
  duckdb_table_function_set_function(function, give);
  duckdb_table_function_supports_projection_pushdown(function, true);
  duckdb_state state = duckdb_register_table_function(e->main, function);
  duckdb_destroy_logical_type(&text);
  duckdb_destroy_table_function(&function);
  return state == DuckDBSuccess ? HF_OK : error_set(error, HF_E_INTERNAL, "DuckDB does not take hf_blocks");
}

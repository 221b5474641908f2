/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_blocks('<id>'): the table function that reads an input of the run. Arrays of
 * the block face come from the input's source_ops, at most 2048 rows each, and
 * become vectors that point into the blocks' memory. Only the wanted columns are
 * asked for. Conversion needs no connection of its own per thread: DuckDB takes
 * from it the list of extension types, which does not change.
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
  duckdb_arrow_converted_schema converted;
} block_scan;

/* One of DuckDB's states of it; opened at its first call, where the scan is known. */
typedef struct block_reader {
  block_scan *scan; /* NULL: not opened */
  void *inner;
  bool has_checked_types;
} block_reader;

static const source_ops *ops_of(const block_scan *scan) {
  return scan->input->from->ops;
}

static const data_type *type_of(const block_scan *scan, size_t i) {
  return scan->input->from->columns->columns[scan->columns[i]].type;
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
  duckdb_destroy_arrow_converted_schema(&scan->converted);
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

static hf_status convert_schema(block_scan *scan, hf_error *error) {
  struct ArrowSchema **fields = mem_zalloc(scan->n_columns, sizeof(struct ArrowSchema *));
  if (fields == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to scan blocks");
  }
  for (size_t i = 0; i < scan->n_columns; i++) {
    fields[i] = &scan->input->fields[scan->columns[i]];
  }
  struct ArrowSchema rows = {.format = "+s",
                             .name = "",
                             .n_children = (int64_t)scan->n_columns,
                             .children = fields,
                             .release = run_release_nothing};
  duckdb_error_data failed = duckdb_schema_from_arrow(scan->run->engine->main, &rows, &scan->converted);
  mem_free(fields);
  return failure_take(error, &failed);
}

static hf_status scan_open(block_scan *scan, duckdb_init_info info, unsigned *threads, hf_error *error) {
  HF_TRY(pick_columns(scan, info, error));
  if (scan->n_columns > 0) {
    HF_TRY(convert_schema(scan, error));
  }
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
  return HF_OK;
}

static bool is_same_type(const data_type *wanted, const data_type *found) {
  type_kind kind = wanted->kind == TYPE_ENUM ? TYPE_VARCHAR : wanted->kind;
  if (kind != found->kind || wanted->width != found->width || wanted->scale != found->scale ||
      wanted->array_size != found->array_size || wanted->n_children != found->n_children) {
    return false;
  }
  for (size_t i = 0; i < wanted->n_children; i++) {
    if (!is_same_type(wanted->children[i], found->children[i])) {
      return false;
    }
  }
  return true;
}

static hf_status check_types_in(arena *a, const block_scan *scan, duckdb_data_chunk chunk, hf_error *error) {
  for (size_t i = 0; i < scan->n_columns; i++) {
    const data_type *found = NULL;
    duckdb_logical_type type = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk, i));
    hf_status status = type_from_duckdb(type, a, &found, error);
    duckdb_destroy_logical_type(&type);
    HF_TRY(status);
    if (!is_same_type(type_of(scan, i), found)) {
      return error_set(error, HF_E_INTERNAL,
                       "blocks are not of the type that is read: column %zu is %s, expected %s",
                       scan->columns[i], type_kind_name(found->kind), type_kind_name(type_of(scan, i)->kind));
    }
  }
  return HF_OK;
}

/* A vector of another type than was bound would be read as garbage. Once a reader. */
static hf_status check_types(block_reader *r, duckdb_data_chunk chunk, hf_error *error) {
  if (r->has_checked_types) {
    return HF_OK;
  }
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks")
                               : check_types_in(a, r->scan, chunk, error);
  arena_free(a);
  r->has_checked_types = status == HF_OK;
  return status;
}

/*
 * DuckDB adds the offset of a STRUCT to its direct children only, and that of a UNION to its tags only: other rows
 * would come, silently.
 */
static bool has_offset(const data_type *type, const struct ArrowArray *array) {
  if (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION) {
    return false;
  }
  bool found = array->offset != 0;
  for (size_t i = 0; !found && i < type->n_children; i++) {
    found = has_offset(type->children[i], array->children[i]);
  }
  return found;
}

static hf_status check_array(const block_reader *r, const struct ArrowArray *rows, hf_error *error) {
  if (rows->length > ENGINE_VECTOR_ROWS || rows->offset != 0 ||
      (size_t)rows->n_children != r->scan->n_columns) {
    return error_set(error, HF_E_INTERNAL,
                     "an array of blocks is not of the shape agreed: %lld rows from %lld, %lld columns",
                     (long long)rows->length, (long long)rows->offset, (long long)rows->n_children);
  }
  for (size_t i = 0; i < r->scan->n_columns; i++) {
    if (has_offset(type_of(r->scan, i), rows->children[i])) {
      return error_set(error, HF_E_INTERNAL,
                       "a STRUCT or UNION of an array of blocks has an offset: column %zu",
                       r->scan->columns[i]);
    }
  }
  return HF_OK;
}

static hf_status convert(block_reader *r, const struct ArrowArray *rows, duckdb_data_chunk *out,
                         hf_error *error) {
  struct ArrowArray given = *rows;
  given.release = NULL; /* the buffers stay until the run ends, the structs need not */
  duckdb_error_data failed =
      duckdb_data_chunk_from_arrow(r->scan->run->engine->main, &given, r->scan->converted, out);
  HF_TRY(failure_take(error, &failed));
  HF_TRY(check_types(r, *out, error));
  for (size_t i = 0; !r->scan->input->is_exact && i < r->scan->n_columns; i++) {
    exact_from_arrow(type_of(r->scan, i), &r->scan->input->fields[r->scan->columns[i]], rows->children[i],
                     duckdb_data_chunk_get_vector(*out, i));
  }
  return HF_OK;
}

/* Puts an array's rows into the output. The array stays the caller's. */
static hf_status give_rows(block_reader *r, const struct ArrowArray *rows, duckdb_data_chunk out,
                           hf_error *error) {
  HF_TRY(check_array(r, rows, error));
  duckdb_data_chunk chunk = NULL;
  hf_status status = r->scan->n_columns == 0 ? HF_OK : convert(r, rows, &chunk, error);
  for (size_t i = 0; status == HF_OK && i < r->scan->n_columns; i++) {
    duckdb_vector_reference_vector(duckdb_data_chunk_get_vector(out, i),
                                   duckdb_data_chunk_get_vector(chunk, i));
  }
  duckdb_destroy_data_chunk(&chunk);
  if (status == HF_OK) {
    duckdb_data_chunk_set_size(out, (idx_t)rows->length);
  }
  return status;
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
    status = give_rows(r, &rows, out, &error);
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

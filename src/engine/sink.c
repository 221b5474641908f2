/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink: the copy function behind COPY (…) TO … (FORMAT holdfast, TASK '<id>').
 * Each chunk becomes one Arrow array for the task's sink_ops. With
 * PER_THREAD_OUTPUT each pipeline thread of DuckDB has a state of its own, else
 * there is one. The statement is built in task.c.
 * Thread: binding that of the statement; a state is used by one of DuckDB's
 * threads at a time.
 */
#include "engine_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct sink_state {
  engine_run *run;
  void *inner;             /* of the task's sink; NULL: not opened */
  enum_splitter *splitter; /* NULL: no column is an ENUM, or no chunk has come */
  direct_rows *direct;     /* NULL: not all columns are direct, or no chunk has come */
} sink_state;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the output of a task");
}

/* ------------------------------------------------------------------------ bind */

static bool is_of_task(const engine_run *run, duckdb_copy_function_bind_info info) {
  if (run == NULL || run->task == NULL) {
    return false;
  }
  duckdb_value options = duckdb_copy_function_bind_get_options(info);
  duckdb_value value = duckdb_get_struct_child(options, 0);
  char *id = value == NULL ? NULL : duckdb_get_varchar(value);
  bool same = id != NULL && strcmp(id, run->task->id) == 0;
  duckdb_free(id);
  duckdb_destroy_value(&value);
  duckdb_destroy_value(&options);
  return same;
}

/* DuckDB may bind more than once. */
static void forget_columns(engine_run *run) {
  if (run->sink_schema.release != NULL) {
    run->sink_schema.release(&run->sink_schema);
  }
  for (size_t i = 0; run->sink_types != NULL && i < run->n_sink_columns; i++) {
    duckdb_destroy_logical_type(&run->sink_types[i]);
  }
  run->n_sink_columns = 0;
}

static hf_status check_partition(duckdb_copy_function_bind_info info, size_t number, hf_error *error) {
  duckdb_logical_type type = duckdb_copy_function_bind_get_column_type(info, number);
  duckdb_type id = duckdb_get_type_id(type);
  duckdb_destroy_logical_type(&type);
  return id == DUCKDB_TYPE_UINTEGER
             ? HF_OK
             : error_set(error, HF_E_INTERNAL, "the partition column of a task is not UINTEGER");
}

static hf_status read_columns(engine_run *run, duckdb_copy_function_bind_info info, size_t n,
                              const data_type *const **out, hf_error *error) {
  run->sink_types = arena_array(run->memory, n, sizeof(duckdb_logical_type));
  run->sink_exact = arena_array(run->memory, n, sizeof(const data_type *));
  const data_type **types = arena_array(run->memory, n, sizeof(const data_type *));
  if (run->sink_types == NULL || run->sink_exact == NULL || types == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    const data_type *type = NULL;
    run->sink_types[i] = duckdb_copy_function_bind_get_column_type(info, i);
    run->n_sink_columns = i + 1;
    HF_TRY(type_from_duckdb(run->sink_types[i], run->memory, &type, error));
    types[i] = type;
    run->sink_exact[i] = exact_is_needed(type) ? type : NULL;
  }
  *out = types;
  return HF_OK;
}

static hf_status make_schema(engine_run *run, size_t n, hf_error *error) {
  const char **names = arena_array(run->memory, n, sizeof *names);
  if (names == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    names[i] = arena_printf(run->memory, "c%zu", i);
    if (names[i] == NULL) {
      return no_memory(error);
    }
  }
  duckdb_error_data failed =
      duckdb_to_arrow_schema(run->engine->arrow, run->sink_types, names, n, &run->sink_schema);
  return failure_take(error, &failed);
}

static hf_status bind_columns(engine_run *run, duckdb_copy_function_bind_info info, hf_error *error) {
  size_t n = (size_t)duckdb_copy_function_bind_get_column_count(info);
  forget_columns(run);
  if (run->task->partitions > 1) {
    if (n < 1) {
      return error_set(error, HF_E_INTERNAL, "a task has no partition column");
    }
    HF_TRY(check_partition(info, --n, error));
  }
  const data_type *const *types = NULL;
  HF_TRY(read_columns(run, info, n, &types, error));
  HF_TRY(make_schema(run, n, error));
  HF_TRY(direct_bind(run, types, error));
  return enums_bind(run, types, error);
}

static void bind(duckdb_copy_function_bind_info info) {
  const engine *e = duckdb_copy_function_bind_get_extra_info(info);
  hf_error error = {0};
  if (!is_of_task(e->run, info)) {
    duckdb_copy_function_bind_set_error(info, "the holdfast format is for tasks only");
    return;
  }
  hf_status status = atomic_load(&e->interrupted)
                         ? error_set(&error, HF_E_CANCELLED, "the task was cancelled")
                         : bind_columns(e->run, info, &error);
  if (status != HF_OK) {
    run_fail(e->run, &error);
    duckdb_copy_function_bind_set_error(info, "the sink failed");
  }
}

/* ----------------------------------------------------------------------- state */

static void state_free(void *data) {
  sink_state *s = data;
  engine_run *run = s->run;
  if (s->inner != NULL) {
    run->task->ops->discard(s->inner);
  }
  enum_splitter_free(s->splitter);
  direct_rows_free(s->direct);
  mem_free(s);
  run_leave(run);
}

static void init(duckdb_copy_function_global_init_info info) {
  const engine *e = duckdb_copy_function_global_init_get_extra_info(info);
  engine_run *run = e->run;
  hf_error error = {0};
  sink_state *s = mem_zalloc(1, sizeof *s);
  hf_status status = s == NULL ? no_memory(&error) : HF_OK;
  if (s != NULL) {
    s->run = run;
    run_enter(run);
    status = run->task->ops->open(run->task->sink, &run->sink_schema, &s->inner, &error);
    duckdb_copy_function_global_init_set_global_state(info, s, state_free);
  }
  if (status != HF_OK) {
    run_fail(run, &error);
    duckdb_copy_function_global_init_set_error(info, "the sink failed");
  }
}

/* ------------------------------------------------------------------------ rows */

/* Puts right what the conversion of a column has lost. */
static hf_status put_right(const engine_run *run, size_t number, duckdb_data_chunk chunk,
                           const struct ArrowArray *array, hf_error *error) {
  const data_type *type = run->sink_exact[number];
  duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, number);
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  if (type->kind == TYPE_INTERVAL) {
    exact_to_arrow(type, vector, array, (size_t)rows);
    return HF_OK;
  }
  /* a copy is flat at every depth, which the chunk's vectors need not be */
  duckdb_selection_vector all = duckdb_create_selection_vector(rows);
  duckdb_vector flat = duckdb_create_vector(run->sink_types[number], rows);
  sel_t *numbers = all == NULL ? NULL : duckdb_selection_vector_get_data_ptr(all);
  hf_status status = flat == NULL || numbers == NULL ? no_memory(error) : HF_OK;
  if (status == HF_OK) {
    for (idx_t i = 0; i < rows; i++) {
      numbers[i] = (sel_t)i;
    }
    duckdb_vector_copy_sel(vector, flat, all, rows, 0, 0);
    exact_to_arrow(type, flat, array, (size_t)rows);
  }
  duckdb_destroy_vector(&flat);
  duckdb_destroy_selection_vector(all);
  return status;
}

static hf_status partition_numbers(const engine_run *run, duckdb_data_chunk chunk, const uint32_t **out,
                                   hf_error *error) {
  *out = NULL;
  if (run->task->partitions <= 1) {
    return HF_OK;
  }
  duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, run->n_sink_columns);
  uint64_t *validity = duckdb_vector_get_validity(vector);
  const uint32_t *numbers = duckdb_vector_get_data(vector);
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  for (idx_t i = 0; i < rows; i++) {
    if (validity != NULL && !duckdb_validity_row_is_valid(validity, i)) {
      return error_set(error, HF_E_INTERNAL, "a row of a task has NULL as its partition");
    }
    if (numbers[i] >= run->task->partitions) {
      return error_set(error, HF_E_INTERNAL, "a row of a task has a partition out of range: %u of %u",
                       numbers[i], run->task->partitions);
    }
  }
  *out = numbers;
  return HF_OK;
}

static hf_status append_array(sink_state *s, duckdb_data_chunk chunk, struct ArrowArray *array,
                              hf_error *error) {
  const engine_run *run = s->run;
  const uint32_t *partitions = NULL;
  HF_TRY(partition_numbers(run, chunk, &partitions, error));
  for (size_t i = 0; i < run->n_sink_columns; i++) {
    if (run->sink_exact[i] != NULL) {
      HF_TRY(put_right(run, i, chunk, array->children[i], error));
    }
  }
  if (partitions != NULL && s->direct == NULL) { /* the sink gets them beside the array */
    struct ArrowArray *last = array->children[run->n_sink_columns];
    last->release(last);
    array->n_children--;
  }
  return run->task->ops->append(s->inner, array, partitions, error);
}

/* The array is the caller's; with ENUMs, or when all columns are direct, it is borrowed and has no release. */
static hf_status convert_chunk(sink_state *s, duckdb_data_chunk chunk, struct ArrowArray *out,
                               hf_error *error) {
  if (s->run->sink_direct != NULL) {
    HF_TRY(s->direct != NULL ? HF_OK : direct_rows_new(s->run, &s->direct, error));
    return direct_rows_convert(s->direct, chunk, out, error);
  }
  if (s->run->n_sink_enums == 0) {
    duckdb_error_data failed = duckdb_data_chunk_to_arrow(s->run->engine->arrow, chunk, out);
    return failure_take(error, &failed);
  }
  if (s->splitter == NULL) {
    HF_TRY(enum_splitter_new(s->run, chunk, &s->splitter, error));
  }
  return enum_splitter_convert(s->splitter, chunk, out, error);
}

static void sink(duckdb_copy_function_sink_info info, duckdb_data_chunk chunk) {
  sink_state *s = duckdb_copy_function_sink_get_global_state(info);
  hf_error error = {0};
  struct ArrowArray array = {0};
  hf_status status = convert_chunk(s, chunk, &array, &error);
  if (status == HF_OK) {
    status = append_array(s, chunk, &array, &error);
  }
  if (array.release != NULL) {
    array.release(&array);
  }
  if (status != HF_OK) {
    run_fail(s->run, &error);
    duckdb_copy_function_sink_set_error(info, "the sink failed");
  }
}

static void finish(duckdb_copy_function_finalize_info info) {
  sink_state *s = duckdb_copy_function_finalize_get_global_state(info);
  hf_error error = {0};
  if (s->run->task->ops->close(s->inner, &error) != HF_OK) {
    run_fail(s->run, &error);
    duckdb_copy_function_finalize_set_error(info, "the sink failed");
  }
}

hf_status sink_register(engine *e, hf_error *error) {
  duckdb_copy_function function = duckdb_create_copy_function();
  duckdb_copy_function_set_name(function, "holdfast");
  duckdb_copy_function_set_extra_info(function, e, NULL);
  duckdb_copy_function_set_bind(function, bind);
  duckdb_copy_function_set_global_init(function, init);
  duckdb_copy_function_set_sink(function, sink);
  duckdb_copy_function_set_finalize(function, finish);
  duckdb_state state = duckdb_register_copy_function(e->main, function);
  duckdb_destroy_copy_function(&function);
  return state == DuckDBSuccess ? HF_OK : error_set(error, HF_E_INTERNAL, "DuckDB does not take the sink");
}

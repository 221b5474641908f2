/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ENUM columns of a task's output. DuckDB's conversion gives with every 2048 rows
 * the whole dictionary of an ENUM; here it is made once a task, and only the codes
 * are taken of each chunk. The other columns are converted by DuckDB, in a chunk
 * of their own. ENUMs inside of other types go DuckDB's way.
 * Thread: binding that of the statement; a splitter belongs to one sink state.
 */
#include "engine_internal.h"

#include "base/fault.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the output of a task");
}

/* ---------------------------------------------------------------- dictionaries */

/* The names as an Arrow array of 32-bit offsets and bytes, in the arena. */
static hf_status names_of(const data_type *type, arena *a, enum_names *out, hf_error *error) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < type->n_names; i++) {
    bytes += strlen(type->names[i]);
  }
  uint32_t *offsets = arena_array(a, type->n_names + 1, sizeof *offsets);
  char *values = arena_alloc(a, bytes + 1);
  if (offsets == NULL || values == NULL || bytes > INT32_MAX) {
    return no_memory(error);
  }
  for (size_t i = 0; i < type->n_names; i++) {
    size_t at = FAULT("engine.enum_codes") ? type->n_names - 1 - i : i, length = strlen(type->names[at]);
    memcpy(values + offsets[i], type->names[at], length);
    offsets[i + 1] = offsets[i] + (uint32_t)length;
  }
  out->buffers[1] = offsets;
  out->buffers[2] = values;
  out->array = (struct ArrowArray){.length = (int64_t)type->n_names, .n_buffers = 3, .buffers = out->buffers};
  return HF_OK;
}

hf_status enums_bind(engine_run *run, const data_type *const *types, hf_error *error) {
  size_t n = run->n_sink_columns;
  run->n_sink_enums = 0;
  run->sink_enums = arena_array(run->memory, n, sizeof(enum_names *));
  if (run->sink_enums == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    const struct ArrowSchema *names = run->sink_schema.children[i]->dictionary;
    if (types[i]->kind != TYPE_ENUM || names == NULL || strcmp(names->format, "u") != 0) {
      continue;
    }
    run->sink_enums[i] = arena_alloc(run->memory, sizeof **run->sink_enums);
    if (run->sink_enums[i] == NULL) {
      return no_memory(error);
    }
    HF_TRY(names_of(types[i], run->memory, run->sink_enums[i], error));
    run->n_sink_enums++;
  }
  return HF_OK;
}

/* -------------------------------------------------------------------- splitting */

typedef struct enum_codes {
  duckdb_vector flat; /* holds them, until the next chunk */
  const void *buffers[2];
  struct ArrowArray array;
} enum_codes;

struct enum_splitter {
  const engine_run *run;
  size_t n_columns; /* of the chunks, the partition column too */
  duckdb_data_chunk others;
  duckdb_selection_vector all;
  enum_codes *codes; /* one a column */
  struct ArrowArray **children;
  struct ArrowArray converted; /* of the other columns */
};

void enum_splitter_free(enum_splitter *s) {
  if (s == NULL) {
    return;
  }
  enum_splitter_reset(s);
  duckdb_destroy_data_chunk(&s->others);
  duckdb_destroy_selection_vector(s->all);
  mem_free(s->codes);
  mem_free(s->children);
  mem_free(s);
}

static bool is_split(const engine_run *run, size_t i) {
  return i < run->n_sink_columns && run->sink_enums[i] != NULL;
}

/* A chunk for the columns that are no ENUMs. */
static hf_status others_new(enum_splitter *s, duckdb_data_chunk chunk, hf_error *error) {
  duckdb_logical_type *types = mem_zalloc(s->n_columns, sizeof(duckdb_logical_type));
  size_t n = 0;
  if (types == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < s->n_columns; i++) {
    if (!is_split(s->run, i)) {
      types[n++] = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk, i));
    }
  }
  s->others = n == 0 ? NULL : duckdb_create_data_chunk(types, n);
  for (size_t i = 0; i < n; i++) {
    duckdb_destroy_logical_type(&types[i]);
  }
  mem_free(types);
  return n > 0 && s->others == NULL ? no_memory(error) : HF_OK;
}

hf_status enum_splitter_new(const engine_run *run, duckdb_data_chunk chunk, enum_splitter **out,
                            hf_error *error) {
  enum_splitter *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  s->run = run;
  s->n_columns = (size_t)duckdb_data_chunk_get_column_count(chunk);
  s->codes = mem_zalloc(s->n_columns, sizeof *s->codes);
  s->children = mem_zalloc(s->n_columns, sizeof(struct ArrowArray *));
  s->all = duckdb_create_selection_vector(ENGINE_VECTOR_ROWS);
  sel_t *numbers = s->all == NULL ? NULL : duckdb_selection_vector_get_data_ptr(s->all);
  hf_status status = s->codes == NULL || s->children == NULL || numbers == NULL ? no_memory(error)
                                                                                : others_new(s, chunk, error);
  if (status != HF_OK) {
    enum_splitter_free(s);
    return status;
  }
  for (sel_t i = 0; i < ENGINE_VECTOR_ROWS; i++) {
    numbers[i] = i;
  }
  *out = s;
  return HF_OK;
}

static int64_t count_nulls(const uint64_t *validity, idx_t rows) {
  int64_t nulls = 0;
  for (idx_t i = 0; validity != NULL && i < rows; i++) {
    nulls += !duckdb_validity_row_is_valid((uint64_t *)validity, i);
  }
  return nulls;
}

/* Takes the codes of a column. A copy is flat, which the chunk's vector need not be. */
static hf_status take_codes(enum_splitter *s, duckdb_data_chunk chunk, size_t i, hf_error *error) {
  enum_codes *codes = &s->codes[i];
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  codes->flat = duckdb_create_vector(s->run->sink_types[i], ENGINE_VECTOR_ROWS);
  if (codes->flat == NULL) {
    return no_memory(error);
  }
  duckdb_vector_copy_sel(duckdb_data_chunk_get_vector(chunk, i), codes->flat, s->all, rows, 0, 0);
  uint64_t *validity = duckdb_vector_get_validity(codes->flat);
  codes->buffers[0] = validity;
  codes->buffers[1] = duckdb_vector_get_data(codes->flat);
  codes->array = (struct ArrowArray){.length = (int64_t)rows,
                                     .null_count = count_nulls(validity, rows),
                                     .n_buffers = 2,
                                     .buffers = codes->buffers,
                                     .dictionary = &s->run->sink_enums[i]->array};
  s->children[i] = &codes->array;
  return HF_OK;
}

hf_status enum_splitter_convert(enum_splitter *s, duckdb_data_chunk chunk, struct ArrowArray *out,
                                hf_error *error) {
  enum_splitter_reset(s);
  idx_t rows = duckdb_data_chunk_get_size(chunk);
  if (rows > ENGINE_VECTOR_ROWS) {
    return error_set(error, HF_E_INTERNAL, "a chunk has more rows than a vector: %llu",
                     (unsigned long long)rows);
  }
  size_t n = 0;
  for (size_t i = 0; i < s->n_columns; i++) {
    if (!is_split(s->run, i)) {
      duckdb_vector_reference_vector(duckdb_data_chunk_get_vector(s->others, n++),
                                     duckdb_data_chunk_get_vector(chunk, i));
    } else {
      HF_TRY(take_codes(s, chunk, i, error));
    }
  }
  if (n > 0) {
    duckdb_data_chunk_set_size(s->others, rows);
    duckdb_error_data failed = duckdb_data_chunk_to_arrow(s->run->engine->arrow, s->others, &s->converted);
    HF_TRY(failure_take(error, &failed));
  }
  n = 0;
  for (size_t i = 0; i < s->n_columns; i++) {
    if (!is_split(s->run, i)) {
      s->children[i] = s->converted.children[n++];
    }
  }
  static const void *const no_buffer[] = {NULL}; /* the interface has no const here, and nobody writes */
  *out = (struct ArrowArray){.length = (int64_t)rows,
                             .n_buffers = 1,
                             .buffers = (const void **)no_buffer,
                             .n_children = (int64_t)s->n_columns,
                             .children = s->children};
  return HF_OK;
}

void enum_splitter_reset(enum_splitter *s) {
  if (s->converted.release != NULL) {
    s->converted.release(&s->converted);
  }
  for (size_t i = 0; s->codes != NULL && i < s->n_columns; i++) {
    if (s->codes[i].flat != NULL) {
      duckdb_destroy_vector(&s->codes[i].flat);
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns that come as codes. The values are converted once for a dictionary and
 * reader. A column of bytes becomes a dictionary vector of DuckDB's over them, so
 * that nothing of a string is touched; numbers are looked up, since that costs less
 * than what DuckDB pays for a dictionary vector of them, and less than reading
 * them from memory.
 * Thread: that of the reader.
 */
#include "engine_internal.h"

void coded_values_reset(coded_values *v) {
  if (v->vector != NULL) {
    duckdb_destroy_vector(&v->vector);
  }
  v->vector = NULL;
  v->from = NULL;
}

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

/* ---------------------------------------------------------------------- values */

/* Keeps a vector of a chunk beyond the chunk. */
static hf_status keep_vector(coded_values *v, duckdb_data_chunk chunk, hf_error *error) {
  duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, 0);
  duckdb_logical_type type = duckdb_vector_get_column_type(vector);
  v->vector = duckdb_create_vector(type, 1);
  duckdb_destroy_logical_type(&type);
  if (v->vector == NULL) {
    return no_memory(error);
  }
  duckdb_vector_reference_vector(v->vector, vector);
  return HF_OK;
}

static hf_status convert_values(coded_values *v, engine *e, const source_dictionary *from, hf_error *error) {
  struct ArrowSchema *fields[] = {(struct ArrowSchema *)v->field};
  struct ArrowSchema schema_of_rows = {
      .format = "+s", .name = "", .n_children = 1, .children = fields, .release = run_release_nothing};
  struct ArrowArray *arrays[] = {(struct ArrowArray *)&from->values};
  const void *no_buffer[] = {NULL};
  struct ArrowArray rows = {.length = from->values.length,
                            .n_buffers = 1,
                            .buffers = no_buffer,
                            .n_children = 1,
                            .children = arrays};
  duckdb_arrow_converted_schema converted = NULL;
  duckdb_data_chunk chunk = NULL;
  duckdb_error_data failed = duckdb_schema_from_arrow(e->main, &schema_of_rows, &converted);
  hf_status status = failure_take(error, &failed);
  if (status == HF_OK) {
    failed = duckdb_data_chunk_from_arrow(e->main, &rows, converted, &chunk);
    status = failure_take(error, &failed);
  }
  if (status == HF_OK) {
    status = keep_vector(v, chunk, error);
  }
  duckdb_destroy_data_chunk(&chunk);
  duckdb_destroy_arrow_converted_schema(&converted);
  return status;
}

static hf_status check_type(const coded_values *v, hf_error *error) {
  const data_type *type = v->type;
  duckdb_logical_type wanted = NULL;
  HF_TRY(type_to_duckdb(type, true, &wanted, error));
  duckdb_logical_type found = duckdb_vector_get_column_type(v->vector);
  bool is_same = duckdb_get_type_id(wanted) == duckdb_get_type_id(found) &&
                 (type->kind != TYPE_DECIMAL ||
                  (duckdb_decimal_width(found) == type->width && duckdb_decimal_scale(found) == type->scale));
  duckdb_destroy_logical_type(&wanted);
  duckdb_destroy_logical_type(&found);
  return is_same
             ? HF_OK
             : error_set(error, HF_E_INTERNAL, "a dictionary of blocks is not of the type that is read: %s",
                         type_kind_name(type->kind));
}

/* ----------------------------------------------------------------------- codes */

enum { AT_ONCE = 32 }; /* codes in one go: loops of a known length become vector instructions at -O2, too */

/* Widens codes to row numbers; returns the largest. */
static uint32_t widen_narrow(const uint8_t *restrict codes, size_t n, sel_t *restrict to) {
  uint8_t most[AT_ONCE] = {0};
  uint8_t largest = 0;
  size_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    for (size_t k = 0; k < AT_ONCE; k++) {
      to[i + k] = codes[i + k];
    }
    for (size_t k = 0; k < AT_ONCE; k++) {
      most[k] = most[k] > codes[i + k] ? most[k] : codes[i + k];
    }
  }
  for (; i < n; i++) {
    to[i] = codes[i];
    largest = codes[i] > largest ? codes[i] : largest;
  }
  for (size_t k = 0; k < AT_ONCE; k++) {
    largest = most[k] > largest ? most[k] : largest;
  }
  return largest;
}

static uint32_t widen_wide(const uint16_t *restrict codes, size_t n, sel_t *restrict to) {
  uint16_t most[AT_ONCE] = {0};
  uint16_t largest = 0;
  size_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    for (size_t k = 0; k < AT_ONCE; k++) {
      to[i + k] = codes[i + k];
    }
    for (size_t k = 0; k < AT_ONCE; k++) {
      most[k] = most[k] > codes[i + k] ? most[k] : codes[i + k];
    }
  }
  for (; i < n; i++) {
    to[i] = codes[i];
    largest = codes[i] > largest ? codes[i] : largest;
  }
  for (size_t k = 0; k < AT_ONCE; k++) {
    largest = most[k] > largest ? most[k] : largest;
  }
  return largest;
}

/* The codes as row numbers of the values. A NULL has the number of the NULL behind them. */
static hf_status numbers_of(const source_dictionary *from, const struct ArrowArray *codes, sel_t *to,
                            hf_error *error) {
  size_t n = (size_t)codes->length;
  size_t first = (size_t)codes->offset;
  const uint8_t *bytes = codes->buffers[1];
  uint32_t most = from->code_bytes == 1 ? widen_narrow(bytes + first, n, to)
                                        : widen_wide((const uint16_t *)(const void *)bytes + first, n, to);
  if ((int64_t)most >= from->values.length) {
    return error_set(error, HF_E_BLOCK_CORRUPT,
                     "a code of a block has no entry in its dictionary: %u of %lld", most,
                     (long long)from->values.length);
  }
  const uint8_t *validity = codes->buffers[0];
  for (size_t i = 0; codes->null_count > 0 && validity != NULL && i < n; i++) {
    if (((validity[(first + i) >> 3] >> ((first + i) & 7)) & 1) == 0) {
      to[i] = (sel_t)(from->values.length - 1);
    }
  }
  return HF_OK;
}

/* Bytes of a value in DuckDB's vectors; 0: it is to be a dictionary vector. */
static size_t value_bytes(const data_type *type) {
  switch (type->kind) {
    case TYPE_INTEGER:
    case TYPE_UINTEGER:
    case TYPE_FLOAT:
    case TYPE_DATE:
      return 4;
    case TYPE_BIGINT:
    case TYPE_UBIGINT:
    case TYPE_DOUBLE:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_TZ:
    case TYPE_TIME:
      return 8;
    case TYPE_DECIMAL:
      return type->width <= 4 ? 2 : type->width <= 9 ? 4 : type->width <= 18 ? 8 : 0;
    default:
      return 0;
  }
}

static void look_up_4(const uint32_t *values, const sel_t *numbers, size_t n, uint32_t *to) {
  for (size_t i = 0; i < n; i++) {
    to[i] = values[numbers[i]];
  }
}

static void look_up_8(const uint64_t *values, const sel_t *numbers, size_t n, uint64_t *to) {
  for (size_t i = 0; i < n; i++) {
    to[i] = values[numbers[i]];
  }
}

static void look_up_2(const uint16_t *values, const sel_t *numbers, size_t n, uint16_t *to) {
  for (size_t i = 0; i < n; i++) {
    to[i] = values[numbers[i]];
  }
}

static void copy_nulls(const struct ArrowArray *codes, duckdb_vector out) {
  const uint8_t *validity = codes->buffers[0];
  size_t first = (size_t)codes->offset;
  if (codes->null_count == 0 || validity == NULL) {
    return;
  }
  duckdb_vector_ensure_validity_writable(out);
  uint64_t *to = duckdb_vector_get_validity(out);
  for (size_t i = 0; i < (size_t)codes->length; i++) {
    if (((validity[(first + i) >> 3] >> ((first + i) & 7)) & 1) == 0) {
      duckdb_validity_set_row_invalid(to, i);
    }
  }
}

/* A flat vector of the values that the numbers stand for. */
static void look_up(const coded_values *v, size_t bytes, const struct ArrowArray *codes, const sel_t *numbers,
                    duckdb_vector out) {
  const void *values = duckdb_vector_get_data(v->vector);
  void *to = duckdb_vector_get_data(out);
  size_t n = (size_t)codes->length;
  if (bytes == 8) {
    look_up_8(values, numbers, n, to);
  } else if (bytes == 4) {
    look_up_4(values, numbers, n, to);
  } else {
    look_up_2(values, numbers, n, to);
  }
  copy_nulls(codes, out);
}

hf_status coded_convert(coded_values *v, engine *e, const struct ArrowArray *codes, duckdb_vector out,
                        hf_error *error) {
  const source_dictionary *from = (const source_dictionary *)(const void *)codes->dictionary;
  if (v->from != from) {
    coded_values_reset(v);
    HF_TRY(convert_values(v, e, from, error));
    HF_TRY(check_type(v, error));
    v->from = from;
  }
  size_t bytes = value_bytes(v->type);
  if (bytes > 0) {
    sel_t numbers[ENGINE_VECTOR_ROWS];
    HF_TRY(numbers_of(from, codes, numbers, error));
    look_up(v, bytes, codes, numbers, out);
    return HF_OK;
  }
  duckdb_selection_vector selection = duckdb_create_selection_vector((idx_t)codes->length);
  sel_t *numbers = selection == NULL ? NULL : duckdb_selection_vector_get_data_ptr(selection);
  hf_status status = numbers == NULL ? no_memory(error) : numbers_of(from, codes, numbers, error);
  if (status == HF_OK) {
    duckdb_vector_reference_vector(out, v->vector);
    duckdb_slice_vector(out, selection, (idx_t)codes->length);
  }
  duckdb_destroy_selection_vector(selection);
  return status;
}

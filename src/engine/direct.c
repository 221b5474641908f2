/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns whose values lie in Arrow as they do in a vector, or nearly so: numbers,
 * dates, times, texts. DuckDB's own conversion makes a chunk and a buffer anew for
 * each column and 2048 rows; here an array points into the vectors of the sink's
 * chunk, and rows of blocks are copied into the vectors that DuckDB gave.
 * Everything else goes the way of sink.c and convert.c.
 * Thread: any; a direct_rows is used by one at a time.
 */
#include "engine_internal.h"

#include <stdio.h>
#include <string.h>

#define TEXT_KEPT_BYTES ((size_t)1 << 20) /* a buffer for texts larger than this goes with its chunk */
enum { INLINED = 12, SLACK = 16 };        /* texts of up to 12 bytes are copied as 12 */

typedef struct direct_format {
  type_kind kind;
  const char *format; /* an Arrow format; "tsu:" with any time zone */
  size_t bytes;
} direct_format;

static const direct_format formats[] = {
    {TYPE_BOOLEAN, "c", 1},        {TYPE_TINYINT, "c", 1},        {TYPE_SMALLINT, "s", 2},
    {TYPE_INTEGER, "i", 4},        {TYPE_BIGINT, "l", 8},         {TYPE_HUGEINT, "w:16", 16},
    {TYPE_UTINYINT, "C", 1},       {TYPE_USMALLINT, "S", 2},      {TYPE_UINTEGER, "I", 4},
    {TYPE_UBIGINT, "L", 8},        {TYPE_UHUGEINT, "w:16", 16},   {TYPE_FLOAT, "f", 4},
    {TYPE_DOUBLE, "g", 8},         {TYPE_DATE, "tdD", 4},         {TYPE_TIME, "ttu", 8},
    {TYPE_TIMESTAMP, "tsu:", 8},   {TYPE_TIMESTAMP_S, "tss:", 8}, {TYPE_TIMESTAMP_MS, "tsm:", 8},
    {TYPE_TIMESTAMP_NS, "tsn:", 8}};

/* A decimal of up to 4 digits has 2 bytes in a vector and 4 in Arrow, the others have as many. */
static direct_column of_decimal(const data_type *type, const char *format) {
  char plain[24], wanted[28];
  unsigned bits = type->width <= 9 ? 32 : type->width <= 18 ? 64 : 128;
  snprintf(plain, sizeof plain, "d:%u,%u", type->width, type->scale);
  snprintf(wanted, sizeof wanted, "%s,%u", plain, bits);
  if (strcmp(format, wanted) != 0 && (bits != 128 || strcmp(format, plain) != 0)) {
    return (direct_column){DIRECT_NOT, 0};
  }
  return (direct_column){type->width <= 4 ? DIRECT_WIDENED : DIRECT_SAME, bits / 8};
}

direct_column direct_column_of(const data_type *type, const struct ArrowSchema *field) {
  if (type->kind == TYPE_VARCHAR) {
    return (direct_column){strcmp(field->format, "u") == 0 ? DIRECT_TEXT : DIRECT_NOT, 4};
  }
  if (type->kind == TYPE_DECIMAL) {
    return of_decimal(type, field->format);
  }
  if (type->kind == TYPE_TIMESTAMP_TZ && strncmp(field->format, "tsu:", 4) == 0) {
    return (direct_column){DIRECT_SAME, 8};
  }
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (formats[i].kind == type->kind && strcmp(formats[i].format, field->format) == 0) {
      return (direct_column){DIRECT_SAME, formats[i].bytes};
    }
  }
  return (direct_column){DIRECT_NOT, 0};
}

/* ---------------------------------------------------------------- out of blocks */

static bool has_nulls(const struct ArrowArray *array) {
  return array->null_count != 0 && array->buffers[0] != NULL;
}

static bool is_valid(const struct ArrowArray *array, size_t row) {
  const uint8_t *validity = array->buffers[0];
  row += (size_t)array->offset;
  return (validity[row / 8] >> row % 8 & 1) != 0;
}

static void copy_validity(const struct ArrowArray *array, duckdb_vector out) {
  size_t rows = (size_t)array->length, first = (size_t)array->offset;
  if (!has_nulls(array)) {
    return;
  }
  duckdb_vector_ensure_validity_writable(out);
  uint64_t *to = duckdb_vector_get_validity(out);
  if (first % 8 == 0) {
    memcpy(to, (const uint8_t *)array->buffers[0] + first / 8, (rows + 7) / 8);
    return;
  }
  for (size_t i = 0; i < rows; i++) {
    duckdb_validity_set_row_validity(to, i, is_valid(array, i));
  }
}

/* Texts longer than 12 bytes stay in the block, as DuckDB's own conversion leaves them. */
static void texts_from(const struct ArrowArray *array, duckdb_string_t *to) {
  const uint32_t *offsets = (const uint32_t *)array->buffers[1] + array->offset;
  const char *bytes = array->buffers[2];
  bool may_be_null = has_nulls(array);
  for (size_t i = 0; i < (size_t)array->length; i++) {
    uint32_t length = offsets[i + 1] - offsets[i];
    memset(&to[i], 0, sizeof to[i]);
    if (length == 0 || (may_be_null && !is_valid(array, i))) {
      continue;
    }
    const char *from = bytes + offsets[i];
    to[i].value.inlined.length = length;
    if (length <= INLINED) {
      memcpy(to[i].value.inlined.inlined, from, length);
    } else {
      memcpy(to[i].value.pointer.prefix, from, sizeof to[i].value.pointer.prefix);
      to[i].value.pointer.ptr = (char *)from; /* nobody writes through it */
    }
  }
}

void direct_from_arrow(direct_column how, const struct ArrowArray *array, duckdb_vector out) {
  size_t rows = (size_t)array->length;
  void *to = duckdb_vector_get_data(out);
  if (rows == 0) {
    return;
  }
  copy_validity(array, out);
  if (how.way == DIRECT_TEXT) {
    texts_from(array, to);
    return;
  }
  const char *from = (const char *)array->buffers[1] + (size_t)array->offset * how.bytes;
  if (how.way == DIRECT_SAME) {
    memcpy(to, from, rows * how.bytes);
    return;
  }
  for (size_t i = 0; i < rows; i++) {
    int32_t wide;
    memcpy(&wide, from + i * sizeof wide, sizeof wide);
    ((int16_t *)to)[i] = (int16_t)wide;
  }
}

/* ----------------------------------------------------------------- into the sink */

typedef struct direct_array {
  void *made; /* offsets of texts, or values that are wider in Arrow; NULL: none */
  char *text;
  size_t text_capacity;
  const void *buffers[3];
  struct ArrowArray array; /* released by nobody */
} direct_array;

struct direct_rows {
  const engine_run *run;
  direct_array *arrays; /* n_sink_columns */
  struct ArrowArray **children;
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the output of a task");
}

void direct_rows_free(direct_rows *d) {
  if (d == NULL) {
    return;
  }
  for (size_t i = 0; d->arrays != NULL && i < d->run->n_sink_columns; i++) {
    mem_free(d->arrays[i].made);
    mem_free(d->arrays[i].text);
  }
  mem_free(d->arrays);
  mem_free(d->children);
  mem_free(d);
}

hf_status direct_rows_new(const engine_run *run, direct_rows **out, hf_error *error) {
  direct_rows *d = mem_zalloc(1, sizeof *d);
  if (d == NULL) {
    return no_memory(error);
  }
  d->run = run;
  d->arrays = mem_zalloc(run->n_sink_columns, sizeof *d->arrays);
  d->children = mem_zalloc(run->n_sink_columns, sizeof(struct ArrowArray *));
  bool is_complete = d->arrays != NULL && d->children != NULL;
  for (size_t i = 0; is_complete && i < run->n_sink_columns; i++) {
    d->children[i] = &d->arrays[i].array;
    if (run->sink_direct[i].way != DIRECT_SAME) {
      d->arrays[i].made = mem_zalloc(ENGINE_VECTOR_ROWS + 1, sizeof(uint32_t));
      is_complete = d->arrays[i].made != NULL;
    }
  }
  if (!is_complete) {
    direct_rows_free(d);
    return no_memory(error);
  }
  *out = d;
  return HF_OK;
}

static int64_t count_nulls(const uint64_t *validity, size_t rows) {
  size_t valid = 0;
  for (size_t i = 0; validity != NULL && i < rows; i += 64) {
    uint64_t word = validity[i / 64];
    word &= rows - i < 64 ? ((uint64_t)1 << (rows - i)) - 1 : UINT64_MAX;
    valid += (size_t)__builtin_popcountll(word);
  }
  return validity == NULL ? 0 : (int64_t)(rows - valid);
}

/* Writes where each text ends; returns how long all are. */
static uint64_t measure_texts(const duckdb_string_t *texts, const uint64_t *validity, size_t rows,
                              uint32_t *to) {
  uint64_t end = 0;
  to[0] = 0;
  for (size_t i = 0; i < rows; i++) {
    bool is_null = validity != NULL && (validity[i / 64] >> i % 64 & 1) == 0;
    end += is_null ? 0 : texts[i].value.inlined.length;
    to[i + 1] = (uint32_t)end;
  }
  return end;
}

static void copy_texts(const duckdb_string_t *texts, size_t rows, const uint32_t *offsets, char *to) {
  for (size_t i = 0; i < rows; i++) {
    uint32_t length = offsets[i + 1] - offsets[i];
    if (length > INLINED) {
      memcpy(to + offsets[i], texts[i].value.pointer.ptr, length);
    } else if (length > 0) {
      memcpy(to + offsets[i], texts[i].value.inlined.inlined,
             INLINED); /* the next one is written over the rest */
    }
  }
}

/* Makes room; what a chunk of long texts took is let go at the next. */
static bool reserve_text(direct_array *a, uint64_t bytes) {
  if (bytes <= a->text_capacity && a->text_capacity <= TEXT_KEPT_BYTES) {
    return true;
  }
  mem_free(a->text);
  a->text_capacity = (size_t)bytes < TEXT_KEPT_BYTES / 2 ? (size_t)bytes * 2 : (size_t)bytes;
  a->text = mem_alloc(a->text_capacity);
  a->text_capacity = a->text == NULL ? 0 : a->text_capacity;
  return a->text != NULL;
}

static hf_status take_texts(direct_array *a, const duckdb_string_t *texts, const uint64_t *validity,
                            size_t rows, hf_error *error) {
  uint64_t bytes = measure_texts(texts, validity, rows, a->made);
  if (bytes > INT32_MAX) {
    return error_set(error, HF_E_LIMIT, "the texts of %zu rows of a task pass 2 GiB", rows);
  }
  if (!reserve_text(a, bytes + SLACK)) {
    return no_memory(error);
  }
  copy_texts(texts, rows, a->made, a->text);
  a->buffers[1] = a->made;
  a->buffers[2] = a->text;
  return HF_OK;
}

static hf_status take_column(direct_array *a, direct_column how, duckdb_vector vector, size_t rows,
                             hf_error *error) {
  const uint64_t *validity = duckdb_vector_get_validity(vector);
  const void *values = duckdb_vector_get_data(vector);
  a->buffers[0] = validity;
  if (how.way == DIRECT_TEXT) {
    HF_TRY(take_texts(a, values, validity, rows, error));
  } else if (how.way == DIRECT_WIDENED) {
    for (size_t i = 0; i < rows; i++) {
      ((int32_t *)a->made)[i] = ((const int16_t *)values)[i];
    }
    a->buffers[1] = a->made;
  } else {
    a->buffers[1] = values;
  }
  a->array = (struct ArrowArray){.length = (int64_t)rows,
                                 .null_count = count_nulls(validity, rows),
                                 .n_buffers = how.way == DIRECT_TEXT ? 3 : 2,
                                 .buffers = a->buffers};
  return HF_OK;
}

hf_status direct_rows_convert(direct_rows *d, duckdb_data_chunk chunk, struct ArrowArray *out,
                              hf_error *error) {
  size_t rows = (size_t)duckdb_data_chunk_get_size(chunk), n = d->run->n_sink_columns;
  if (rows > ENGINE_VECTOR_ROWS) {
    return error_set(error, HF_E_INTERNAL, "a chunk has more rows than a vector: %zu", rows);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(take_column(&d->arrays[i], d->run->sink_direct[i], duckdb_data_chunk_get_vector(chunk, i), rows,
                       error));
  }
  static const void *const no_buffer[] = {NULL}; /* the interface has no const here, and nobody writes */
  *out = (struct ArrowArray){.length = (int64_t)rows,
                             .n_buffers = 1,
                             .buffers = (const void **)no_buffer,
                             .n_children = (int64_t)n,
                             .children = d->children};
  return HF_OK;
}

hf_status direct_bind(engine_run *run, const data_type *const *types, hf_error *error) {
  size_t n = run->n_sink_columns;
  run->sink_direct = NULL;
  direct_column *columns = arena_array(run->memory, n, sizeof *columns);
  if (columns == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    columns[i] = direct_column_of(types[i], run->sink_schema.children[i]);
    if (columns[i].way == DIRECT_NOT) {
      return HF_OK;
    }
  }
  run->sink_direct = n > 0 ? columns : NULL;
  return HF_OK;
}

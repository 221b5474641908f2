/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result in memory: reading a stream to its end with every array validated,
 * rows by number, rows as text. Matching is in match.c.
 * Thread: one at a time.
 */
#include "rows.h"

#include "arrow/batch.h"
#include "base/mem.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare results");
}

/* -------------------------------------------------------------------- reading */

static hf_status stream_failed(struct ArrowArrayStream *stream, const char *side, hf_error *error) {
  const char *why = stream->get_last_error(stream);
  return error_set(error, HF_E_IO, "the %s result cannot be read: %s", side,
                   why == NULL ? "no reason given" : why);
}

static hf_status read_columns(result_rows *rows, const struct ArrowSchema *fields, hf_error *error) {
  size_t n = (size_t)fields->n_children;
  column *columns = arena_array(rows->memory, n, sizeof *columns);
  rows->shapes = arena_array(rows->memory, n, sizeof *rows->shapes);
  if (columns == NULL || rows->shapes == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    const struct ArrowSchema *field = fields->children[i];
    columns[i].name = arena_strdup(rows->memory, field->name == NULL ? "" : field->name);
    if (columns[i].name == NULL) {
      return no_memory(error);
    }
    HF_TRY(data_type_from_arrow(field, rows->memory, &columns[i].type, error));
    HF_TRY(value_shape_of(field, columns[i].type, rows->memory, &rows->shapes[i], error));
  }
  rows->columns = (schema){.n_columns = n, .columns = columns};
  return HF_OK;
}

/* Doubles what *block has room for until `wanted` elements fit. */
static bool grow(void *block, size_t *capacity, size_t wanted, size_t element_bytes) {
  void **memory = block;
  size_t more = *capacity == 0 ? 64 : *capacity;
  while (more < wanted) {
    if (more > SIZE_MAX / 2 / element_bytes) {
      return false;
    }
    more *= 2;
  }
  if (more == *capacity) {
    return true;
  }
  void *larger = mem_realloc(*memory, more * element_bytes);
  if (larger == NULL) {
    return false;
  }
  *memory = larger;
  *capacity = more;
  return true;
}

/* Takes the array. */
static hf_status add_array(result_rows *rows, struct ArrowArray *array, hf_error *error) {
  size_t length = (size_t)array->length;
  if (!grow(&rows->arrays, &rows->arrays_capacity, rows->n_arrays + 1, sizeof *rows->arrays) ||
      length > UINT32_MAX || rows->n_arrays >= UINT32_MAX ||
      !grow(&rows->places, &rows->places_capacity, rows->n_rows + length, sizeof *rows->places)) {
    array->release(array);
    return no_memory(error);
  }
  for (size_t i = 0; i < length; i++) {
    rows->places[rows->n_rows + i] = (row_place){(uint32_t)rows->n_arrays, (uint32_t)i};
  }
  rows->n_rows += length;
  rows->arrays[rows->n_arrays++] = *array;
  array->release = NULL;
  return HF_OK;
}

static hf_status read_arrays(struct ArrowArrayStream *stream, const struct ArrowSchema *fields,
                             result_rows *rows, hf_error *error) {
  for (;;) {
    struct ArrowArray array = {0};
    if (stream->get_next(stream, &array) != 0) {
      return stream_failed(stream, rows->side, error);
    }
    if (array.release == NULL) {
      return HF_OK;
    }
    hf_status status = arrow_validate(fields, &array, error);
    if (status != HF_OK) {
      error_wrap(error, "the %s result", rows->side);
      array.release(&array);
      return status;
    }
    HF_TRY(add_array(rows, &array, error));
  }
}

hf_status rows_read(struct ArrowArrayStream *stream, const char *side, result_rows *out, hf_error *error) {
  *out = (result_rows){.side = side, .memory = arena_new()};
  struct ArrowSchema fields = {0};
  hf_status status = HF_OK;
  if (out->memory == NULL) {
    status = no_memory(error);
  } else if (stream->get_schema(stream, &fields) != 0) {
    status = stream_failed(stream, side, error);
  } else {
    status = read_columns(out, &fields, error);
  }
  if (status == HF_OK) {
    status = read_arrays(stream, &fields, out, error);
  }
  if (fields.release != NULL) {
    fields.release(&fields);
  }
  stream->release(stream);
  return status;
}

void rows_reset(result_rows *rows) {
  for (size_t i = 0; i < rows->n_arrays; i++) {
    rows->arrays[i].release(&rows->arrays[i]);
  }
  mem_free(rows->arrays);
  mem_free(rows->places);
  arena_free(rows->memory);
  *rows = (result_rows){0};
}

/* ----------------------------------------------------------------------- rows */

value rows_value(const result_rows *rows, size_t row, size_t at) {
  row_place place = rows->places[row];
  const struct ArrowArray *array = &rows->arrays[place.array];
  return (value){&rows->shapes[at], array->children[at], array->offset + place.row};
}

void rows_text(const result_rows *rows, size_t row, buf *out) {
  buf_char(out, '(');
  for (size_t i = 0; i < rows->columns.n_columns; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    value_text(rows_value(rows, row, i), out);
  }
  buf_char(out, ')');
}

static void measure(const result_rows *rows, size_t at) {
  for (size_t i = 0; i < rows->n_rows; i++) {
    value_measure(rows_value(rows, i, at));
  }
}

void rows_share_scales(const result_rows *a, const result_rows *b) {
  for (size_t i = 0; i < a->columns.n_columns; i++) {
    if (a->shapes[i].has_floats) {
      measure(a, i);
      measure(b, i);
      value_share_scales(&a->shapes[i], &b->shapes[i]);
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full validation. The sizes of buffers are not known (Arrow's C
 * interface does not tell them): ipc_read.c checks those of messages. Each check
 * leaves what the checks after it rely on. A text column is checked in one run
 * over all its bytes; value by value only when that fails, since what lies below
 * a NULL may be anything.
 */
#include "arrow/layout.h"

#include "arrow/batch_internal.h"
#include "arrow/bits.h"
#include "base/utf8.h"

#include <string.h>

static bool is_continuation(uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

bool validate_text(const uint8_t *bytes, size_t length) {
  return utf8_right_length(bytes, length) == length;
}

/* Values of text as Arrow lays them out; the offsets have been checked. */
typedef struct text_column {
  const uint8_t *offsets;
  size_t width;          /* of an offset: 4 or 8 */
  const uint8_t *values; /* may be NULL when there are no bytes */
  const uint8_t *bitmap; /* NULL: no NULLs */
} text_column;

static uint64_t offset_at(const text_column *column, uint64_t row) {
  uint64_t offset = 0;
  memcpy(&offset, column->offsets + row * column->width, column->width);
  return offset;
}

/* Tells whether each value of rows [first, first + count) that is not NULL is UTF-8 by itself. */
static bool column_is_utf8(const text_column *column, uint64_t first, uint64_t count) {
  uint64_t start = offset_at(column, first);
  uint64_t end = offset_at(column, first + count);
  if (start == end) {
    return true;
  }
  bool is_right = validate_text(column->values + start, end - start);
  for (uint64_t row = first; is_right && row < first + count; row++) {
    uint64_t at = offset_at(column, row);
    is_right = at == end || !is_continuation(column->values[at]);
  }
  if (is_right) {
    return true;
  }
  for (uint64_t row = first; row < first + count; row++) {
    uint64_t at = offset_at(column, row);
    bool is_null = column->bitmap != NULL && !bits_get(column->bitmap, row);
    if (!is_null && !validate_text(column->values + at, offset_at(column, row + 1) - at)) {
      return false;
    }
  }
  return true;
}

/* --------------------------------------------------------------------- arrays */

/* Rows beyond which arithmetic on them might overflow; no memory holds as many. */
#define MOST_ROWS ((int64_t)1 << 48)

typedef struct validation {
  hf_status code;
  hf_error *error;
} validation;

static hf_status wrong(const validation *v, const char *what, int64_t found, int64_t expected) {
  return error_set(v->error, v->code, "an Arrow array is not valid: %s: %lld, expected %lld", what,
                   (long long)found, (long long)expected);
}

static hf_status check_counts(const validation *v, const layout *l, const struct ArrowArray *array) {
  int64_t most = MOST_ROWS;
  if (array == NULL || array->release == NULL) {
    return wrong(v, "it is missing or was released", 0, 1);
  }
  if (array->length < 0 || array->length > most || array->offset < 0 || array->offset > most) {
    return wrong(v, "length or offset", array->length < 0 ? array->length : array->offset, most);
  }
  if (array->null_count < -1 || array->null_count > array->length) {
    return wrong(v, "null count", array->null_count, array->length);
  }
  if (l->kind == LAYOUT_FIXED && array->offset + array->length > INT64_MAX / (int64_t)l->source_width) {
    return wrong(v, "length", array->length, most);
  }
  int64_t buffers = (int64_t)layout_buffers(l);
  bool is_union = l->kind == LAYOUT_UNION || l->kind == LAYOUT_DENSE_UNION;
  bool more_allowed = is_union || l->kind == LAYOUT_VIEW || l->kind == LAYOUT_NULL;
  if (array->n_buffers < buffers || (array->n_buffers > buffers && !more_allowed) ||
      (array->n_buffers > 0 && array->buffers == NULL)) {
    return wrong(v, "number of buffers", array->n_buffers, buffers);
  }
  int64_t children = l->kind == LAYOUT_DICTIONARY ? 0 : (int64_t)l->n_children;
  if (array->n_children != children || (children > 0 && array->children == NULL)) {
    return wrong(v, "number of children", array->n_children, children);
  }
  return HF_OK;
}

static hf_status check_buffers(const validation *v, const layout *l, const struct ArrowArray *array) {
  bool has_validity = l->kind != LAYOUT_NULL && l->kind != LAYOUT_UNION && l->kind != LAYOUT_DENSE_UNION;
  if (has_validity && array->null_count > 0 && array->buffers[0] == NULL) {
    return wrong(v, "no validity buffer for a null count", array->null_count, 0);
  }
  if (array->length == 0) {
    return HF_OK;
  }
  int64_t needed = l->kind == LAYOUT_BYTES || l->kind == LAYOUT_VIEW ? 2 : (int64_t)layout_buffers(l);
  int64_t shift = array->n_buffers > needed && !has_validity ? array->n_buffers - needed : 0;
  for (int64_t i = has_validity ? 1 : 0; i < needed; i++) {
    if (array->buffers[i + shift] == NULL) {
      return wrong(v, "a buffer is missing", i, needed);
    }
  }
  for (int64_t i = 2; l->kind == LAYOUT_VIEW && i < array->n_buffers && array->n_buffers > 3; i++) {
    if (array->buffers[i] == NULL) {
      return wrong(v, "a buffer of views is missing", i, array->n_buffers);
    }
  }
  return HF_OK;
}

/* Offsets must not fall; *end is the last of them. */
static hf_status check_offsets(const validation *v, const layout *l, const struct ArrowArray *array,
                               uint64_t *end) {
  const uint8_t *offsets = array->buffers[1];
  uint64_t row = (uint64_t)array->offset;
  uint64_t before = gather_offset_at(offsets, l->width, row);
  if (before > INT64_MAX) {
    return wrong(v, "an offset", (int64_t)before, 0);
  }
  for (uint64_t i = 1; i <= (uint64_t)array->length; i++) {
    uint64_t offset = gather_offset_at(offsets, l->width, row + i);
    if (offset < before || offset > INT64_MAX) {
      return wrong(v, "offsets fall", (int64_t)offset, (int64_t)before);
    }
    before = offset;
  }
  *end = before;
  return HF_OK;
}

static hf_status check_bytes(const validation *v, const layout *l, const struct ArrowArray *array) {
  uint64_t end;
  HF_TRY(check_offsets(v, l, array, &end));
  text_column column = {.offsets = array->buffers[1],
                        .width = l->width,
                        .values = array->buffers[2],
                        .bitmap = gather_bitmap(array)};
  if (column.values == NULL && end > gather_offset_at(column.offsets, l->width, (uint64_t)array->offset)) {
    return wrong(v, "no buffer for bytes", 0, (int64_t)end);
  }
  if (l->is_text && !column_is_utf8(&column, (uint64_t)array->offset, (uint64_t)array->length)) {
    error_set(v->error, v->code, "a text column holds bytes that are not UTF-8");
    error_hint(v->error, "hand such data over as binary");
    return v->code;
  }
  return HF_OK;
}

static hf_status check_type_ids(const validation *v, const layout *l, const struct ArrowArray *array) {
  bool is_dense = l->kind == LAYOUT_DENSE_UNION;
  const uint8_t *ids = array->buffers[array->n_buffers - (is_dense ? 2 : 1)];
  for (int64_t i = array->offset; i < array->offset + array->length; i++) {
    if (ids[i] >= 128 || l->child_of_id[ids[i]] == LAYOUT_NO_CHILD) {
      return wrong(v, "type id of a union", ids[i], (int64_t)l->n_children);
    }
  }
  return HF_OK;
}

/* How long each child must be at least. */
static int64_t child_rows(const layout *l, const struct ArrowArray *array) {
  int64_t rows = array->offset + array->length;
  if (l->kind == LAYOUT_FIXED_LIST) {
    return rows > INT64_MAX / (int64_t)l->width ? INT64_MAX : rows * (int64_t)l->width;
  }
  return l->kind == LAYOUT_STRUCT || l->kind == LAYOUT_UNION ? rows : 0;
}

static hf_status check_children(const validation *v, const layout *l, const struct ArrowArray *array) {
  int64_t rows = child_rows(l, array);
  for (size_t i = 0; i < l->n_children; i++) {
    const struct ArrowArray *child = array->children[i];
    HF_TRY(validate_array(&l->children[i], child, v->code, v->error));
    if (child->length < rows) {
      return wrong(v, "a child is too short", child->length, rows);
    }
  }
  return HF_OK;
}

static hf_status check_values(const validation *v, const layout *l, const struct ArrowArray *array) {
  uint64_t end = 0;
  switch (l->kind) {
    case LAYOUT_BYTES:
      return array->length == 0 ? HF_OK : check_bytes(v, l, array);
    case LAYOUT_LIST:
      if (array->length > 0) {
        HF_TRY(check_offsets(v, l, array, &end));
      }
      HF_TRY(check_children(v, l, array));
      return end > (uint64_t)array->children[0]->length
                 ? wrong(v, "a list ends behind its elements", (int64_t)end, array->children[0]->length)
                 : HF_OK;
    case LAYOUT_UNION:
    case LAYOUT_DENSE_UNION:
      HF_TRY(check_type_ids(v, l, array));
      return check_children(v, l, array);
    case LAYOUT_STRUCT:
    case LAYOUT_FIXED_LIST:
      return check_children(v, l, array);
    case LAYOUT_DICTIONARY:
      return validate_array(l->children, array->dictionary, v->code, v->error);
    default:
      return HF_OK;
  }
}

hf_status validate_array(const layout *l, const struct ArrowArray *array, hf_status code, hf_error *error) {
  validation v = {.code = code, .error = error};
  HF_TRY(check_counts(&v, l, array));
  HF_TRY(check_buffers(&v, l, array));
  return check_values(&v, l, array);
}

hf_status arrow_validate(const struct ArrowSchema *schema, const struct ArrowArray *array, hf_error *error) {
  arena *memory = arena_new();
  if (memory == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to check an Arrow array");
  }
  layout l;
  hf_status status = layout_of_schema(schema, memory, &l, error);
  if (status == HF_OK) {
    status = validate_array(&l, array, HF_E_INVALID_ARGUMENT, error);
  }
  const uint8_t *bitmap = status == HF_OK ? gather_bitmap(array) : NULL;
  if (bitmap != NULL &&
      bits_count(bitmap, (size_t)array->offset, (size_t)array->length) < (size_t)array->length) {
    status = error_set(error, HF_E_INVALID_ARGUMENT, "an Arrow batch has NULL rows, of %lld",
                       (long long)array->length);
  }
  arena_free(memory);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is lost when DuckDB turns vectors into Arrow and back, put right by
 * walking both side by side:
 *  INTERVAL: µs become ns, which wraps beyond 292 years. The 16 bytes of each
 *  value are copied as DuckDB has them.
 *  UNION: Arrow's has no validity, and DuckDB reads a value whose member is NULL
 *  as a NULL value. Such a value keeps its tag; where that is the first member's,
 *  as it is for a NULL value too, another member is marked as there in that row.
 *  A union without a member that can be marked loses the difference.
 * Lists go row by row, because DuckDB may lay out their elements in another order.
 * Thread: any; one call owns its vector.
 */
#include "engine_internal.h"

#include "base/fault.h"

#include <string.h>

#define INTERVAL_BYTES 16
#define NO_MEMBER SIZE_MAX

typedef enum direction { TO_ARROW, FROM_ARROW } direction;

/* Where a range of rows begins in both; `row` of the array counts from its offset. */
typedef struct place {
  duckdb_vector vector;
  size_t vector_row;
  const struct ArrowArray *array;
  int64_t row;
  const struct ArrowSchema *field; /* of the array; NULL: made by DuckDB */
} place;

static void walk(direction d, const data_type *type, place at, size_t count);

bool exact_is_needed(const data_type *type) {
  return data_type_contains(type, TYPE_INTERVAL) || data_type_contains(type, TYPE_UNION);
}

static place moved(place at, size_t rows) {
  at.vector_row += rows;
  at.row += (int64_t)rows;
  return at;
}

static const struct ArrowSchema *field_of(place at, size_t child) {
  return at.field == NULL ? NULL : at.field->children[child];
}

/* The same rows of a child whose rows are its parent's. */
static place child_of(place at, size_t vector_child, size_t array_child) {
  return (place){duckdb_struct_vector_get_child(at.vector, vector_child), at.vector_row,
                 at.array->children[array_child], at.array->offset + at.row, field_of(at, array_child)};
}

static bool is_null(place at) {
  uint64_t *validity = duckdb_vector_get_validity(at.vector);
  return validity != NULL && !duckdb_validity_row_is_valid(validity, at.vector_row);
}

static void set_valid(duckdb_vector vector, size_t row) {
  duckdb_vector_ensure_validity_writable(vector);
  duckdb_validity_set_row_valid(duckdb_vector_get_validity(vector), row);
}

/* -------------------------------------------------------------------- interval */

/* Durations and other INTERVALs of a client are converted by DuckDB alone. */
static bool has_16_bytes(place at) {
  return at.field == NULL || strcmp(at.field->format, EXACT_INTERVAL_FORMAT) == 0;
}

static void copy_intervals(direction d, place at, size_t count) {
  if (!has_16_bytes(at) || FAULT("engine.interval_wrap")) {
    return;
  }
  char *vector = (char *)duckdb_vector_get_data(at.vector) + at.vector_row * INTERVAL_BYTES;
  char *array = (char *)at.array->buffers[1];
  array += (size_t)(at.array->offset + at.row) * INTERVAL_BYTES;
  memcpy(d == TO_ARROW ? array : vector, d == TO_ARROW ? vector : array, count * INTERVAL_BYTES);
}

/* ----------------------------------------------------------------------- union */

/* The first member but number 0 whose array has a validity. */
static size_t marking_member(const data_type *type) {
  for (size_t i = 1; i < type->n_children; i++) {
    if (type->children[i]->kind != TYPE_UNION && type->children[i]->kind != TYPE_NULL) {
      return i;
    }
  }
  return NO_MEMBER;
}

/* Makes a row of an array that DuckDB has just made, and that is NULL there, a value of zeros. */
static void mark(const data_type *type, struct ArrowArray *array, int64_t row) {
  size_t bytes = data_type_value_bytes(type);
  uint8_t *validity = (uint8_t *)array->buffers[0];
  validity[row / 8] |= (uint8_t)(1 << row % 8);
  array->null_count--;
  if (bytes > 0) {
    memset((char *)array->buffers[1] + (size_t)row * bytes, 0, bytes);
  }
}

static bool is_marked(const struct ArrowArray *array, int64_t row) {
  const uint8_t *validity = array->buffers[0];
  row += array->offset;
  return array->null_count == 0 || validity == NULL || (validity[row / 8] >> row % 8 & 1) != 0;
}

/* Gives a value back that DuckDB read as NULL: its tag, and a member that stays NULL. */
static void restore(place at, size_t member) {
  duckdb_vector tags = duckdb_struct_vector_get_child(at.vector, 0);
  set_valid(at.vector, at.vector_row);
  set_valid(tags, at.vector_row);
  ((uint8_t *)duckdb_vector_get_data(tags))[at.vector_row] = (uint8_t)member;
}

/* A union is a struct in DuckDB: the tag, then the members; in Arrow it is sparse. */
static void walk_union_row(direction d, const data_type *type, place at) {
  const int8_t *tags = at.array->buffers[at.array->n_buffers == 1 ? 0 : 1];
  int64_t row = at.array->offset + at.row;
  size_t member = (size_t)tags[row], marking = marking_member(type);
  place value = child_of(at, member + 1, member);
  if (d == FROM_ARROW && is_null(at)) {
    if (member != 0 || (marking != NO_MEMBER && is_marked(at.array->children[marking], row))) {
      restore(at, member);
    }
    return;
  }
  if (is_null(at)) {
    return;
  }
  if (!is_null(value)) {
    walk(d, type->children[member], value, 1);
  } else if (d == TO_ARROW && member == 0 && marking != NO_MEMBER) {
    mark(type->children[marking], at.array->children[marking], row);
  }
}

/* ---------------------------------------------------------------------- nested */

/* The elements of a map's entries: key and value. */
static void walk_entries(direction d, const data_type *map, place at, size_t count) {
  for (size_t i = 0; i < 2; i++) {
    walk(d, map->children[i], child_of(at, i, i), count);
  }
}

/* Where the elements of a row begin. */
static int64_t list_offset(place at) {
  const void *offsets = at.array->buffers[1];
  int64_t i = at.array->offset + at.row;
  bool is_large = at.field != NULL && strcmp(at.field->format, "+L") == 0;
  return is_large ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
}

static void walk_list(direction d, const data_type *type, place at, size_t count) {
  const duckdb_list_entry *entries = duckdb_vector_get_data(at.vector);
  duckdb_vector elements = duckdb_list_vector_get_child(at.vector);
  for (size_t i = 0; i < count; i++) {
    place row = moved(at, i);
    int64_t first = list_offset(row);
    size_t length = (size_t)(list_offset(moved(row, 1)) - first);
    if (length == 0 || is_null(row)) {
      continue;
    }
    place child = {elements, (size_t)entries[row.vector_row].offset, at.array->children[0], first,
                   field_of(at, 0)};
    if (type->kind == TYPE_MAP) {
      walk_entries(d, type, child, length);
    } else {
      walk(d, type->children[0], child, length);
    }
  }
}

static void walk_struct(direction d, const data_type *type, place at) {
  for (size_t i = 0; i < type->n_children; i++) {
    walk(d, type->children[i], child_of(at, i, i), 1);
  }
}

static void walk_array(direction d, const data_type *type, place at) {
  size_t n = (size_t)type->array_size;
  place child = {duckdb_array_vector_get_child(at.vector), at.vector_row * n, at.array->children[0],
                 (at.array->offset + at.row) * (int64_t)n, field_of(at, 0)};
  walk(d, type->children[0], child, n);
}

/* What is below a NULL stays NULL. */
static void walk_row(direction d, const data_type *type, place at) {
  if (type->kind == TYPE_UNION) {
    walk_union_row(d, type, at);
  } else if (is_null(at)) {
    return;
  } else if (type->kind == TYPE_STRUCT) {
    walk_struct(d, type, at);
  } else {
    walk_array(d, type, at);
  }
}

static void walk(direction d, const data_type *type, place at, size_t count) {
  if (count == 0 || !exact_is_needed(type)) {
    return;
  }
  switch (type->kind) {
    case TYPE_INTERVAL:
      copy_intervals(d, at, count);
      break;
    case TYPE_LIST:
    case TYPE_MAP:
      walk_list(d, type, at, count);
      break;
    default:
      for (size_t i = 0; i < count; i++) {
        walk_row(d, type, moved(at, i));
      }
      break;
  }
}

/* ------------------------------------------------------------------------ door */

void exact_to_arrow(const data_type *type, duckdb_vector from, const struct ArrowArray *to, size_t count) {
  walk(TO_ARROW, type, (place){.vector = from, .array = to}, count);
}

void exact_from_arrow(const data_type *type, const struct ArrowSchema *field, const struct ArrowArray *from,
                      duckdb_vector to) {
  walk(FROM_ARROW, type, (place){.vector = to, .array = from, .field = field}, (size_t)from->length);
}

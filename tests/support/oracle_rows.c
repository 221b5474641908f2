/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the oracle as cells, and their comparison. */
#include "support/oracle_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- texts */

typedef struct text {
  char *data;
  size_t length, capacity;
} text;

static void add(text *t, const void *bytes, size_t length) {
  if (t->length + length + 1 > t->capacity) {
    t->capacity = 2 * (t->length + length + 1);
    t->data = realloc(t->data, t->capacity);
    if (t->data == NULL) {
      abort();
    }
  }
  if (length > 0) {
    memcpy(t->data + t->length, bytes, length);
  }
  t->length += length;
  t->data[t->length] = '\0';
}

static void addf(text *t, const char *format, ...) {
  char buffer[128];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  add(t, buffer, (size_t)length < sizeof buffer ? (size_t)length : sizeof buffer - 1);
}

static void add_name(text *t, char *name) {
  addf(t, "\"");
  add(t, name, strlen(name));
  addf(t, "\"");
  duckdb_free(name);
}

/* ------------------------------------------------------------------- types */

static void add_type(text *t, duckdb_logical_type type);

static void add_child_type(text *t, duckdb_logical_type child) {
  add_type(t, child);
  duckdb_destroy_logical_type(&child);
}

static void add_fields(text *t, duckdb_logical_type type, bool is_union) {
  idx_t n = is_union ? duckdb_union_type_member_count(type) : duckdb_struct_type_child_count(type);
  addf(t, is_union ? "UNION(" : "STRUCT(");
  for (idx_t i = 0; i < n; i++) {
    addf(t, i > 0 ? ", " : "");
    add_name(t, is_union ? duckdb_union_type_member_name(type, i) : duckdb_struct_type_child_name(type, i));
    add_child_type(t, is_union ? duckdb_union_type_member_type(type, i)
                               : duckdb_struct_type_child_type(type, i));
  }
  addf(t, ")");
}

static void add_enum(text *t, duckdb_logical_type type) {
  addf(t, "ENUM(");
  for (uint32_t i = 0; i < duckdb_enum_dictionary_size(type); i++) {
    add_name(t, duckdb_enum_dictionary_value(type, i));
  }
  addf(t, ")");
}

static void add_type(text *t, duckdb_logical_type type) {
  char *alias = duckdb_logical_type_get_alias(type);
  if (alias != NULL) {
    add_name(t, alias);
  }
  duckdb_type id = duckdb_get_type_id(type);
  switch (id) {
    case DUCKDB_TYPE_DECIMAL:
      addf(t, "DECIMAL(%d,%d)", duckdb_decimal_width(type), duckdb_decimal_scale(type));
      break;
    case DUCKDB_TYPE_LIST:
      add_child_type(t, duckdb_list_type_child_type(type));
      addf(t, "[]");
      break;
    case DUCKDB_TYPE_ARRAY:
      add_child_type(t, duckdb_array_type_child_type(type));
      addf(t, "[%" PRIu64 "]", (uint64_t)duckdb_array_type_array_size(type));
      break;
    case DUCKDB_TYPE_MAP:
      addf(t, "MAP(");
      add_child_type(t, duckdb_map_type_key_type(type));
      addf(t, ", ");
      add_child_type(t, duckdb_map_type_value_type(type));
      addf(t, ")");
      break;
    case DUCKDB_TYPE_STRUCT:
    case DUCKDB_TYPE_UNION:
      add_fields(t, type, id == DUCKDB_TYPE_UNION);
      break;
    case DUCKDB_TYPE_ENUM:
      add_enum(t, type);
      break;
    default:
      addf(t, "%d", (int)id);
  }
}

/* ------------------------------------------------------------------ values */

static void add_vector_value(text *t, duckdb_logical_type type, duckdb_vector vector, idx_t row);

static void add_number(text *t, double number) {
  if (isnan(number)) {
    addf(t, "nan");
  } else {
    addf(t, "%.10g", number == 0 ? 0.0 : number);
  }
}

static void add_elements(text *t, duckdb_logical_type child, duckdb_vector vector, idx_t from, idx_t n) {
  addf(t, "[");
  for (idx_t i = 0; i < n; i++) {
    addf(t, i > 0 ? ", " : "");
    add_vector_value(t, child, vector, from + i);
  }
  addf(t, "]");
  duckdb_destroy_logical_type(&child);
}

static void add_struct_value(text *t, duckdb_logical_type type, duckdb_vector vector, idx_t row) {
  addf(t, "{");
  for (idx_t i = 0; i < duckdb_struct_type_child_count(type); i++) {
    duckdb_logical_type child = duckdb_struct_type_child_type(type, i);
    addf(t, i > 0 ? ", " : "");
    add_vector_value(t, child, duckdb_struct_vector_get_child(vector, i), row);
    duckdb_destroy_logical_type(&child);
  }
  addf(t, "}");
}

/* Child 0 is the tag, of one byte; the member it names follows it. */
static void add_union_value(text *t, duckdb_logical_type type, duckdb_vector vector, idx_t row) {
  const uint8_t *tags = duckdb_vector_get_data(duckdb_struct_vector_get_child(vector, 0));
  duckdb_logical_type member = duckdb_union_type_member_type(type, tags[row]);
  addf(t, "<%d>", tags[row]);
  add_vector_value(t, member, duckdb_struct_vector_get_child(vector, tags[row] + 1u), row);
  duckdb_destroy_logical_type(&member);
}

static void add_entries(text *t, duckdb_logical_type type, duckdb_vector vector, idx_t row) {
  duckdb_list_entry entry = ((duckdb_list_entry *)duckdb_vector_get_data(vector))[row];
  duckdb_vector entries = duckdb_list_vector_get_child(vector);
  duckdb_logical_type key = duckdb_map_type_key_type(type), value = duckdb_map_type_value_type(type);
  addf(t, "{");
  for (idx_t i = 0; i < entry.length; i++) {
    add_vector_value(t, key, duckdb_struct_vector_get_child(entries, 0), entry.offset + i);
    addf(t, "=");
    add_vector_value(t, value, duckdb_struct_vector_get_child(entries, 1), entry.offset + i);
    addf(t, ", ");
  }
  addf(t, "}");
  duckdb_destroy_logical_type(&key);
  duckdb_destroy_logical_type(&value);
}

static void add_bytes(text *t, duckdb_vector vector, idx_t row) {
  duckdb_string_t *strings = duckdb_vector_get_data(vector);
  add(t, duckdb_string_t_data(&strings[row]), duckdb_string_t_length(strings[row]));
}

/* Bytes of one value of a fixed width; 0: a string; UNKNOWN_WIDTH: a type that is not read. */
enum { UNKNOWN_WIDTH = 99 };

static size_t fixed_width(duckdb_logical_type type, duckdb_type id) {
  switch (id) {
    case DUCKDB_TYPE_BOOLEAN:
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_UTINYINT:
      return 1;
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_USMALLINT:
      return 2;
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_DATE:
      return 4;
    case DUCKDB_TYPE_BIGINT:
    case DUCKDB_TYPE_UBIGINT:
    case DUCKDB_TYPE_TIME:
    case DUCKDB_TYPE_TIME_NS:
    case DUCKDB_TYPE_TIME_TZ:
    case DUCKDB_TYPE_TIMESTAMP:
    case DUCKDB_TYPE_TIMESTAMP_S:
    case DUCKDB_TYPE_TIMESTAMP_MS:
    case DUCKDB_TYPE_TIMESTAMP_NS:
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return 8;
    case DUCKDB_TYPE_HUGEINT:
    case DUCKDB_TYPE_UHUGEINT:
    case DUCKDB_TYPE_UUID:
    case DUCKDB_TYPE_INTERVAL:
      return 16;
    case DUCKDB_TYPE_ENUM:
      return fixed_width(NULL, duckdb_enum_internal_type(type));
    case DUCKDB_TYPE_DECIMAL:
      return fixed_width(NULL, duckdb_decimal_internal_type(type));
    case DUCKDB_TYPE_VARCHAR:
    case DUCKDB_TYPE_BLOB:
    case DUCKDB_TYPE_BIT:
    case DUCKDB_TYPE_BIGNUM:
      return 0;
    default:
      return UNKNOWN_WIDTH;
  }
}

static void add_vector_value(text *t, duckdb_logical_type type, duckdb_vector vector, idx_t row) {
  duckdb_type id = duckdb_get_type_id(type);
  uint64_t *validity = duckdb_vector_get_validity(vector);
  if (id == DUCKDB_TYPE_SQLNULL || (validity != NULL && !duckdb_validity_row_is_valid(validity, row))) {
    addf(t, "NULL");
    return;
  }
  const uint8_t *data = duckdb_vector_get_data(vector);
  idx_t size = 0;
  switch (id) {
    case DUCKDB_TYPE_FLOAT:
      add_number(t, (double)((const float *)data)[row]);
      return;
    case DUCKDB_TYPE_DOUBLE:
      add_number(t, ((const double *)data)[row]);
      return;
    case DUCKDB_TYPE_LIST:
      add_elements(t, duckdb_list_type_child_type(type), duckdb_list_vector_get_child(vector),
                   ((const duckdb_list_entry *)data)[row].offset,
                   ((const duckdb_list_entry *)data)[row].length);
      return;
    case DUCKDB_TYPE_ARRAY:
      size = duckdb_array_type_array_size(type);
      add_elements(t, duckdb_array_type_child_type(type), duckdb_array_vector_get_child(vector), row * size,
                   size);
      return;
    case DUCKDB_TYPE_STRUCT:
      add_struct_value(t, type, vector, row);
      return;
    case DUCKDB_TYPE_UNION:
      add_union_value(t, type, vector, row);
      return;
    case DUCKDB_TYPE_MAP:
      add_entries(t, type, vector, row);
      return;
    default:
      break;
  }
  size_t width = fixed_width(type, id);
  if (width == 0) {
    add_bytes(t, vector, row);
    return;
  }
  if (width == UNKNOWN_WIDTH) {
    addf(t, "?");
    return;
  }
  for (size_t i = width; i-- > 0;) {
    addf(t, "%02x", data[row * width + i]);
  }
}

/* -------------------------------------------------------------------- rows */

static void read_cell(duckdb_logical_type type, duckdb_vector vector, idx_t row, oracle_cell *cell) {
  uint64_t *validity = duckdb_vector_get_validity(vector);
  duckdb_type id = duckdb_get_type_id(type);
  text t = {0};
  memset(cell, 0, sizeof *cell);
  if (id == DUCKDB_TYPE_SQLNULL || (validity != NULL && !duckdb_validity_row_is_valid(validity, row))) {
    return;
  }
  add(&t, "", 0);
  add_vector_value(&t, type, vector, row);
  cell->text = t.data;
  cell->length = t.length;
  cell->is_float = id == DUCKDB_TYPE_FLOAT || id == DUCKDB_TYPE_DOUBLE;
  if (id == DUCKDB_TYPE_FLOAT) {
    cell->number = (double)((float *)duckdb_vector_get_data(vector))[row];
  } else if (id == DUCKDB_TYPE_DOUBLE) {
    cell->number = ((double *)duckdb_vector_get_data(vector))[row];
  }
}

static void read_chunk(duckdb_data_chunk chunk, const duckdb_logical_type *types, oracle_rows *out) {
  idx_t n = duckdb_data_chunk_get_size(chunk);
  size_t total = out->n_rows + n;
  out->cells = realloc(out->cells, (total * out->n_columns + 1) * sizeof *out->cells);
  if (out->cells == NULL) {
    abort();
  }
  for (size_t c = 0; c < out->n_columns; c++) {
    duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, c);
    for (idx_t row = 0; row < n; row++) {
      read_cell(types[c], vector, row, &out->cells[(out->n_rows + row) * out->n_columns + c]);
    }
  }
  out->n_rows = total;
}

bool oracle_read(duckdb_result *result, size_t most, oracle_rows *out) {
  size_t n = duckdb_column_count(result);
  bool fits = true;
  duckdb_logical_type *types = calloc(n + 1, sizeof *types);
  out->types = calloc(n + 1, sizeof *out->types);
  if (types == NULL || out->types == NULL) {
    abort();
  }
  out->n_columns = n;
  for (size_t c = 0; c < n; c++) {
    text t = {0};
    types[c] = duckdb_column_logical_type(result, c);
    add_type(&t, types[c]);
    out->types[c] = t.data;
  }
  for (;;) {
    duckdb_data_chunk chunk = duckdb_fetch_chunk(*result);
    if (chunk == NULL) {
      break;
    }
    if (fits) {
      read_chunk(chunk, types, out);
    }
    fits = fits && out->n_rows <= most;
    duckdb_destroy_data_chunk(&chunk);
  }
  for (size_t c = 0; c < n; c++) {
    duckdb_destroy_logical_type(&types[c]);
  }
  free(types);
  return fits;
}

void oracle_rows_free(oracle_rows *rows) {
  for (size_t i = 0; i < rows->n_rows * rows->n_columns && rows->cells != NULL; i++) {
    free(rows->cells[i].text);
  }
  for (size_t c = 0; c < rows->n_columns; c++) {
    free(rows->types[c]);
  }
  free(rows->cells);
  free(rows->types);
  memset(rows, 0, sizeof *rows);
}

/* -------------------------------------------------------------- comparison */

static bool is_near(const oracle_cell *a, const oracle_cell *b, double relative) {
  double size = fmax(fabs(a->number), fabs(b->number));
  return fabs(a->number - b->number) <= relative * size + 1e-12;
}

static bool are_equal(const oracle_cell *a, const oracle_cell *b) {
  if (a->text == NULL || b->text == NULL) {
    return a->text == b->text;
  }
  if (a->length == b->length && memcmp(a->text, b->text, a->length) == 0) {
    return true;
  }
  return a->is_float && b->is_float && is_near(a, b, 1e-9);
}

static bool are_rows_equal(const oracle_cell *a, const oracle_cell *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!are_equal(&a[i], &b[i])) {
      return false;
    }
  }
  return true;
}

static size_t sorted_columns; /* qsort passes no context */

static int compare_rows(const void *left, const void *right) {
  const oracle_cell *a = *(const oracle_cell *const *)left, *b = *(const oracle_cell *const *)right;
  for (size_t i = 0; i < sorted_columns; i++) {
    if (a[i].text == NULL || b[i].text == NULL) {
      if (a[i].text != b[i].text) {
        return a[i].text == NULL ? -1 : 1;
      }
      continue;
    }
    if (are_equal(&a[i], &b[i])) {
      continue;
    }
    size_t n = a[i].length < b[i].length ? a[i].length : b[i].length;
    int order = memcmp(a[i].text, b[i].text, n);
    return order != 0 ? order : (a[i].length < b[i].length ? -1 : 1);
  }
  return 0;
}

static oracle_cell **sorted(const oracle_rows *rows) {
  oracle_cell **list = malloc((rows->n_rows + 1) * sizeof *list);
  if (list == NULL) {
    abort();
  }
  for (size_t i = 0; i < rows->n_rows; i++) {
    list[i] = &rows->cells[i * rows->n_columns];
  }
  sorted_columns = rows->n_columns;
  qsort(list, rows->n_rows, sizeof *list, compare_rows);
  return list;
}

static bool are_multisets_equal(const oracle_rows *a, const oracle_rows *b) {
  oracle_cell **left = sorted(a), **right = sorted(b);
  bool is_equal = true;
  for (size_t i = 0; i < a->n_rows && is_equal; i++) {
    is_equal = are_rows_equal(left[i], right[i], a->n_columns);
  }
  free(left);
  free(right);
  return is_equal;
}

oracle_verdict oracle_compare(const oracle_rows *a, const oracle_rows *b) {
  if (a->n_columns != b->n_columns) {
    return ORACLE_OTHER_TYPES;
  }
  for (size_t c = 0; c < a->n_columns; c++) {
    if (strcmp(a->types[c], b->types[c]) != 0) {
      return ORACLE_OTHER_TYPES;
    }
  }
  if (a->n_rows != b->n_rows) {
    return ORACLE_OTHER_ROWS;
  }
  for (size_t i = 0; i < a->n_rows; i++) {
    if (!are_rows_equal(&a->cells[i * a->n_columns], &b->cells[i * b->n_columns], a->n_columns)) {
      return are_multisets_equal(a, b) ? ORACLE_OTHER_ORDER : ORACLE_OTHER_ROWS;
    }
  }
  return ORACLE_SAME;
}

const char *oracle_difference(const oracle_rows *a, const oracle_rows *b) {
  static char line[512];
  snprintf(line, sizeof line, "%zu columns and %zu rows, %zu columns and %zu rows", a->n_columns, a->n_rows,
           b->n_columns, b->n_rows);
  for (size_t c = 0; c < a->n_columns && c < b->n_columns; c++) {
    if (strcmp(a->types[c], b->types[c]) != 0) {
      snprintf(line, sizeof line, "column %zu is %s, then %s", c, a->types[c], b->types[c]);
      return line;
    }
  }
  size_t n = a->n_rows < b->n_rows ? a->n_rows : b->n_rows;
  for (size_t i = 0; i < n * a->n_columns && a->n_columns == b->n_columns; i++) {
    if (!are_equal(&a->cells[i], &b->cells[i])) {
      snprintf(line, sizeof line, "row %zu column %zu is %.150s, then %.150s; %zu and %zu rows",
               i / a->n_columns, i % a->n_columns, a->cells[i].text == NULL ? "NULL" : a->cells[i].text,
               b->cells[i].text == NULL ? "NULL" : b->cells[i].text, a->n_rows, b->n_rows);
      return line;
    }
  }
  return line;
}

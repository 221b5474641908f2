/* SPDX-License-Identifier: Apache-2.0 */
/* The type struct: spelling in DuckDB's SQL, comparing, copying. Arrow's spelling is in type_arrow.c. */
#include "arrow/type.h"

#include <string.h>

static const char *const kind_names[TYPE_KIND_COUNT] = {
    [TYPE_NULL] = "\"NULL\"",
    [TYPE_BOOLEAN] = "BOOLEAN",
    [TYPE_TINYINT] = "TINYINT",
    [TYPE_SMALLINT] = "SMALLINT",
    [TYPE_INTEGER] = "INTEGER",
    [TYPE_BIGINT] = "BIGINT",
    [TYPE_HUGEINT] = "HUGEINT",
    [TYPE_UTINYINT] = "UTINYINT",
    [TYPE_USMALLINT] = "USMALLINT",
    [TYPE_UINTEGER] = "UINTEGER",
    [TYPE_UBIGINT] = "UBIGINT",
    [TYPE_UHUGEINT] = "UHUGEINT",
    [TYPE_FLOAT] = "FLOAT",
    [TYPE_DOUBLE] = "DOUBLE",
    [TYPE_DECIMAL] = "DECIMAL",
    [TYPE_BIGNUM] = "BIGNUM",
    [TYPE_DATE] = "DATE",
    [TYPE_TIME] = "TIME",
    [TYPE_TIME_NS] = "TIME_NS",
    [TYPE_TIME_TZ] = "TIME WITH TIME ZONE",
    [TYPE_TIMESTAMP] = "TIMESTAMP",
    [TYPE_TIMESTAMP_S] = "TIMESTAMP_S",
    [TYPE_TIMESTAMP_MS] = "TIMESTAMP_MS",
    [TYPE_TIMESTAMP_NS] = "TIMESTAMP_NS",
    [TYPE_TIMESTAMP_TZ] = "TIMESTAMP WITH TIME ZONE",
    [TYPE_INTERVAL] = "INTERVAL",
    [TYPE_VARCHAR] = "VARCHAR",
    [TYPE_JSON] = "JSON",
    [TYPE_BLOB] = "BLOB",
    [TYPE_BIT] = "BIT",
    [TYPE_UUID] = "UUID",
    [TYPE_GEOMETRY] = "GEOMETRY",
    [TYPE_ENUM] = "ENUM",
    [TYPE_LIST] = "LIST",
    [TYPE_ARRAY] = "ARRAY",
    [TYPE_STRUCT] = "STRUCT",
    [TYPE_MAP] = "MAP",
    [TYPE_UNION] = "UNION",
};

const char *type_kind_name(type_kind kind) {
  return (size_t)kind < TYPE_KIND_COUNT ? kind_names[kind] : "UNKNOWN";
}

/* ("a" INTEGER, "b" VARCHAR); fields of a struct without names are spelled without. */
static void fields_to_sql(const data_type *type, buf *out) {
  buf_char(out, '(');
  for (size_t i = 0; i < type->n_children; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    if (i < type->n_names && type->names[i][0] != '\0') {
      buf_sql_name(out, type->names[i]);
      buf_char(out, ' ');
    }
    data_type_to_sql(type->children[i], out);
  }
  buf_char(out, ')');
}

void data_type_to_sql(const data_type *type, buf *out) {
  switch (type->kind) {
    case TYPE_LIST:
      data_type_to_sql(type->children[0], out);
      buf_text(out, "[]");
      return;
    case TYPE_ARRAY:
      data_type_to_sql(type->children[0], out);
      buf_printf(out, "[%llu]", (unsigned long long)type->array_size);
      return;
    case TYPE_DECIMAL:
      buf_printf(out, "DECIMAL(%u,%u)", type->width, type->scale);
      return;
    case TYPE_ENUM:
      buf_text(out, "ENUM(");
      for (size_t i = 0; i < type->n_names; i++) {
        buf_text(out, i == 0 ? "" : ", ");
        buf_sql_string(out, type->names[i]);
      }
      buf_char(out, ')');
      return;
    case TYPE_MAP:
      buf_text(out, "MAP(");
      data_type_to_sql(type->children[0], out);
      buf_text(out, ", ");
      data_type_to_sql(type->children[1], out);
      buf_char(out, ')');
      return;
    case TYPE_STRUCT:
    case TYPE_UNION:
      buf_text(out, type_kind_name(type->kind));
      fields_to_sql(type, out);
      return;
    default:
      buf_text(out, type_kind_name(type->kind));
      return;
  }
}

bool data_type_equal(const data_type *a, const data_type *b) {
  if (a == b) {
    return true;
  }
  if (a->kind != b->kind || a->width != b->width || a->scale != b->scale || a->array_size != b->array_size ||
      a->n_children != b->n_children || a->n_names != b->n_names) {
    return false;
  }
  for (size_t i = 0; i < a->n_names; i++) {
    if (strcmp(a->names[i], b->names[i]) != 0) {
      return false;
    }
  }
  for (size_t i = 0; i < a->n_children; i++) {
    if (!data_type_equal(a->children[i], b->children[i])) {
      return false;
    }
  }
  return true;
}

size_t data_type_value_bytes(const data_type *type) {
  static const uint8_t bytes[TYPE_KIND_COUNT] = {
      [TYPE_BOOLEAN] = 1,     [TYPE_TINYINT] = 1,      [TYPE_UTINYINT] = 1,     [TYPE_SMALLINT] = 2,
      [TYPE_USMALLINT] = 2,   [TYPE_INTEGER] = 4,      [TYPE_UINTEGER] = 4,     [TYPE_FLOAT] = 4,
      [TYPE_DATE] = 4,        [TYPE_BIGINT] = 8,       [TYPE_UBIGINT] = 8,      [TYPE_DOUBLE] = 8,
      [TYPE_TIME] = 8,        [TYPE_TIME_NS] = 8,      [TYPE_TIME_TZ] = 8,      [TYPE_TIMESTAMP] = 8,
      [TYPE_TIMESTAMP_S] = 8, [TYPE_TIMESTAMP_MS] = 8, [TYPE_TIMESTAMP_NS] = 8, [TYPE_TIMESTAMP_TZ] = 8,
      [TYPE_HUGEINT] = 16,    [TYPE_UHUGEINT] = 16,    [TYPE_DECIMAL] = 16,     [TYPE_UUID] = 16,
      [TYPE_INTERVAL] = 16,
  };
  if (type->kind == TYPE_ENUM) {
    return type->n_names <= UINT8_MAX ? 1 : type->n_names <= UINT16_MAX ? 2 : 4;
  }
  return bytes[type->kind];
}

bool data_type_contains(const data_type *type, type_kind kind) {
  if (type->kind == kind) {
    return true;
  }
  for (size_t i = 0; i < type->n_children; i++) {
    if (data_type_contains(type->children[i], kind)) {
      return true;
    }
  }
  return false;
}

static bool copy_names(const data_type *from, arena *a, data_type *to) {
  const char **names = arena_array(a, from->n_names, sizeof *names);
  if (names == NULL) {
    return false;
  }
  for (size_t i = 0; i < from->n_names; i++) {
    names[i] = arena_strdup(a, from->names[i]);
    if (names[i] == NULL) {
      return false;
    }
  }
  to->names = names;
  return true;
}

const data_type *data_type_copy(const data_type *type, arena *a) {
  data_type *copy = arena_alloc(a, sizeof *copy);
  const data_type **children = arena_array(a, type->n_children, sizeof(data_type *));
  if (copy == NULL || children == NULL) {
    return NULL;
  }
  *copy = *type;
  copy->children = children;
  if (!copy_names(type, a, copy)) {
    return NULL;
  }
  for (size_t i = 0; i < type->n_children; i++) {
    children[i] = data_type_copy(type->children[i], a);
    if (children[i] == NULL) {
      return NULL;
    }
  }
  return copy;
}

hf_status schema_copy(const schema *from, arena *a, schema *out, hf_error *error) {
  column *columns = arena_array(a, from->n_columns, sizeof *columns);
  bool is_whole = columns != NULL;
  for (size_t i = 0; is_whole && i < from->n_columns; i++) {
    columns[i].name = arena_strdup(a, from->columns[i].name);
    columns[i].type = data_type_copy(from->columns[i].type, a);
    is_whole = columns[i].name != NULL && columns[i].type != NULL;
  }
  if (!is_whole) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a schema of %zu columns", from->n_columns);
  }
  *out = (schema){.n_columns = from->n_columns, .columns = columns};
  return HF_OK;
}

static const data_type *type_in_blocks(const data_type *type, arena *a) {
  if (!data_type_contains(type, TYPE_ENUM)) {
    return type;
  }
  data_type *copy = arena_alloc(a, sizeof *copy);
  const data_type **children = arena_array(a, type->n_children, sizeof(data_type *));
  if (copy == NULL || children == NULL) {
    return NULL;
  }
  if (type->kind == TYPE_ENUM) {
    copy->kind = TYPE_VARCHAR;
    return copy;
  }
  *copy = *type;
  copy->children = children;
  for (size_t i = 0; i < type->n_children; i++) {
    children[i] = type_in_blocks(type->children[i], a);
    if (children[i] == NULL) {
      return NULL;
    }
  }
  return copy;
}

hf_status schema_in_blocks(const schema *from, arena *a, schema *out, hf_error *error) {
  column *columns = arena_array(a, from->n_columns, sizeof *columns);
  bool is_whole = columns != NULL;
  for (size_t i = 0; is_whole && i < from->n_columns; i++) {
    columns[i] = (column){from->columns[i].name, type_in_blocks(from->columns[i].type, a)};
    is_whole = columns[i].type != NULL;
  }
  if (!is_whole) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a schema of %zu columns", from->n_columns);
  }
  *out = (schema){.n_columns = from->n_columns, .columns = columns};
  return HF_OK;
}

bool schema_equal(const schema *a, const schema *b) {
  if (a->n_columns != b->n_columns) {
    return false;
  }
  for (size_t i = 0; i < a->n_columns; i++) {
    if (strcmp(a->columns[i].name, b->columns[i].name) != 0 ||
        !data_type_equal(a->columns[i].type, b->columns[i].type)) {
      return false;
    }
  }
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DuckDB's logical types ⇄ data_type. Values are not here: Arrow carries them.
 * Thread: any.
 */
#include "engine_internal.h"

#include <string.h>

/* Types that have nothing but their id: one row each. JSON is VARCHAR with an alias, see below. */
static const struct {
  duckdb_type duckdb;
  type_kind kind;
} simple_types[] = {
    {DUCKDB_TYPE_SQLNULL, TYPE_NULL},
    {DUCKDB_TYPE_BOOLEAN, TYPE_BOOLEAN},
    {DUCKDB_TYPE_TINYINT, TYPE_TINYINT},
    {DUCKDB_TYPE_SMALLINT, TYPE_SMALLINT},
    {DUCKDB_TYPE_INTEGER, TYPE_INTEGER},
    {DUCKDB_TYPE_BIGINT, TYPE_BIGINT},
    {DUCKDB_TYPE_HUGEINT, TYPE_HUGEINT},
    {DUCKDB_TYPE_UTINYINT, TYPE_UTINYINT},
    {DUCKDB_TYPE_USMALLINT, TYPE_USMALLINT},
    {DUCKDB_TYPE_UINTEGER, TYPE_UINTEGER},
    {DUCKDB_TYPE_UBIGINT, TYPE_UBIGINT},
    {DUCKDB_TYPE_UHUGEINT, TYPE_UHUGEINT},
    {DUCKDB_TYPE_FLOAT, TYPE_FLOAT},
    {DUCKDB_TYPE_DOUBLE, TYPE_DOUBLE},
    {DUCKDB_TYPE_BIGNUM, TYPE_BIGNUM},
    {DUCKDB_TYPE_DATE, TYPE_DATE},
    {DUCKDB_TYPE_TIME, TYPE_TIME},
    {DUCKDB_TYPE_TIME_NS, TYPE_TIME_NS},
    {DUCKDB_TYPE_TIME_TZ, TYPE_TIME_TZ},
    {DUCKDB_TYPE_TIMESTAMP, TYPE_TIMESTAMP},
    {DUCKDB_TYPE_TIMESTAMP_S, TYPE_TIMESTAMP_S},
    {DUCKDB_TYPE_TIMESTAMP_MS, TYPE_TIMESTAMP_MS},
    {DUCKDB_TYPE_TIMESTAMP_NS, TYPE_TIMESTAMP_NS},
    {DUCKDB_TYPE_TIMESTAMP_TZ, TYPE_TIMESTAMP_TZ},
    {DUCKDB_TYPE_INTERVAL, TYPE_INTERVAL},
    {DUCKDB_TYPE_VARCHAR, TYPE_VARCHAR},
    {DUCKDB_TYPE_BLOB, TYPE_BLOB},
    {DUCKDB_TYPE_BIT, TYPE_BIT},
    {DUCKDB_TYPE_UUID, TYPE_UUID},
    {DUCKDB_TYPE_GEOMETRY, TYPE_GEOMETRY},
};
#define N_SIMPLE_TYPES (sizeof simple_types / sizeof simple_types[0])
#define JSON_ALIAS "JSON"

/* ----------------------------------------------------------------- from DuckDB */

typedef struct reader {
  arena *memory;
  hf_error *error;
} reader;

static hf_status read_type(reader *r, duckdb_logical_type from, data_type *out);

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a type");
}

/* Takes the type. */
static hf_status read_child(reader *r, duckdb_logical_type from, const data_type **out) {
  data_type *type = arena_alloc(r->memory, sizeof *type);
  hf_status status = type == NULL ? no_memory(r->error) : read_type(r, from, type);
  duckdb_destroy_logical_type(&from);
  *out = type;
  return status;
}

/* Takes the text. */
static hf_status read_name(reader *r, char *from, const char **out) {
  *out = from == NULL ? NULL : arena_strdup(r->memory, from);
  duckdb_free(from);
  return *out == NULL ? no_memory(r->error) : HF_OK;
}

static hf_status read_fields(reader *r, duckdb_logical_type from, data_type *out) {
  bool is_struct = out->kind == TYPE_STRUCT;
  size_t n =
      (size_t)(is_struct ? duckdb_struct_type_child_count(from) : duckdb_union_type_member_count(from));
  const data_type **children = arena_array(r->memory, n, sizeof(const data_type *));
  const char **names = arena_array(r->memory, n, sizeof *names);
  if (children == NULL || names == NULL) {
    return no_memory(r->error);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(read_name(
        r, is_struct ? duckdb_struct_type_child_name(from, i) : duckdb_union_type_member_name(from, i),
        &names[i]));
    HF_TRY(read_child(
        r, is_struct ? duckdb_struct_type_child_type(from, i) : duckdb_union_type_member_type(from, i),
        &children[i]));
  }
  out->n_children = out->n_names = n;
  out->children = children;
  out->names = names;
  return HF_OK;
}

static hf_status read_elements(reader *r, duckdb_logical_type from, data_type *out) {
  size_t n = out->kind == TYPE_MAP ? 2 : 1;
  const data_type **children = arena_array(r->memory, n, sizeof(const data_type *));
  if (children == NULL) {
    return no_memory(r->error);
  }
  out->n_children = n;
  out->children = children;
  if (out->kind == TYPE_MAP) {
    HF_TRY(read_child(r, duckdb_map_type_key_type(from), &children[0]));
    return read_child(r, duckdb_map_type_value_type(from), &children[1]);
  }
  if (out->kind == TYPE_ARRAY) {
    out->array_size = duckdb_array_type_array_size(from);
    return read_child(r, duckdb_array_type_child_type(from), &children[0]);
  }
  return read_child(r, duckdb_list_type_child_type(from), &children[0]);
}

static hf_status read_enum(reader *r, duckdb_logical_type from, data_type *out) {
  size_t n = duckdb_enum_dictionary_size(from);
  const char **names = arena_array(r->memory, n, sizeof *names);
  if (names == NULL) {
    return no_memory(r->error);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(read_name(r, duckdb_enum_dictionary_value(from, i), &names[i]));
  }
  out->n_names = n;
  out->names = names;
  return HF_OK;
}

static bool has_alias(duckdb_logical_type type, const char *alias) {
  char *text = duckdb_logical_type_get_alias(type);
  bool same = text != NULL && strcmp(text, alias) == 0;
  duckdb_free(text);
  return same;
}

static bool has_reference_system(duckdb_logical_type geometry) {
  char *name = duckdb_geometry_type_get_crs(geometry);
  bool has = name != NULL && name[0] != '\0';
  duckdb_free(name);
  return has;
}

static hf_status unsupported(reader *r, duckdb_logical_type from, duckdb_type id) {
  char *alias = duckdb_logical_type_get_alias(from);
  const char *name = id == DUCKDB_TYPE_GEOMETRY  ? "GEOMETRY with a coordinate reference system"
                     : id == DUCKDB_TYPE_VARIANT ? "VARIANT"
                     : alias != NULL             ? alias
                                                 : "unknown";
  hf_status status =
      error_set(r->error, HF_E_UNSUPPORTED, "columns of this type are not supported: %s", name);
  error_hint(r->error, "cast it, for instance to VARCHAR");
  duckdb_free(alias);
  return status;
}

static hf_status read_type(reader *r, duckdb_logical_type from, data_type *out) {
  duckdb_type id = duckdb_get_type_id(from);
  switch (id) {
    case DUCKDB_TYPE_DECIMAL:
      out->kind = TYPE_DECIMAL;
      out->width = duckdb_decimal_width(from);
      out->scale = duckdb_decimal_scale(from);
      return HF_OK;
    case DUCKDB_TYPE_ENUM:
      out->kind = TYPE_ENUM;
      return read_enum(r, from, out);
    case DUCKDB_TYPE_STRUCT:
    case DUCKDB_TYPE_UNION:
      out->kind = id == DUCKDB_TYPE_STRUCT ? TYPE_STRUCT : TYPE_UNION;
      return read_fields(r, from, out);
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_ARRAY:
    case DUCKDB_TYPE_MAP:
      out->kind = id == DUCKDB_TYPE_LIST ? TYPE_LIST : id == DUCKDB_TYPE_ARRAY ? TYPE_ARRAY : TYPE_MAP;
      return read_elements(r, from, out);
    case DUCKDB_TYPE_GEOMETRY:
      if (has_reference_system(from)) {
        return unsupported(r, from, id);
      }
      out->kind = TYPE_GEOMETRY;
      return HF_OK;
    case DUCKDB_TYPE_VARCHAR:
      out->kind = has_alias(from, JSON_ALIAS) ? TYPE_JSON : TYPE_VARCHAR;
      return HF_OK;
    default:
      break;
  }
  for (size_t i = 0; i < N_SIMPLE_TYPES; i++) {
    if (simple_types[i].duckdb == id) {
      out->kind = simple_types[i].kind;
      return HF_OK;
    }
  }
  return unsupported(r, from, id);
}

hf_status type_from_duckdb(duckdb_logical_type from, arena *a, const data_type **out, hf_error *error) {
  data_type *type = arena_alloc(a, sizeof *type);
  if (type == NULL) {
    return no_memory(error);
  }
  reader r = {.memory = a, .error = error};
  HF_TRY(read_type(&r, from, type));
  *out = type;
  return HF_OK;
}

/* ------------------------------------------------------------------- to DuckDB */

static duckdb_logical_type make_type(const data_type *from, bool unfolds);

static void destroy_types(duckdb_logical_type *types, size_t n) {
  for (size_t i = 0; types != NULL && i < n; i++) {
    duckdb_destroy_logical_type(&types[i]);
  }
  mem_free(types);
}

/* Makes the types of the children; NULL when one cannot be made. */
static duckdb_logical_type *make_children(const data_type *from, bool unfolds) {
  duckdb_logical_type *types = mem_zalloc(from->n_children, sizeof(duckdb_logical_type));
  for (size_t i = 0; types != NULL && i < from->n_children; i++) {
    types[i] = make_type(from->children[i], unfolds);
    if (types[i] == NULL) {
      destroy_types(types, from->n_children);
      return NULL;
    }
  }
  return types;
}

static duckdb_logical_type make_nested(const data_type *from, bool unfolds) {
  duckdb_logical_type *children = make_children(from, unfolds);
  if (children == NULL) {
    return NULL;
  }
  const char **names = (const char **)from->names; /* DuckDB's signature lacks a const */
  duckdb_logical_type made = NULL;
  switch (from->kind) {
    case TYPE_LIST:
      made = duckdb_create_list_type(children[0]);
      break;
    case TYPE_ARRAY:
      made = duckdb_create_array_type(children[0], from->array_size);
      break;
    case TYPE_MAP:
      made = duckdb_create_map_type(children[0], children[1]);
      break;
    case TYPE_STRUCT:
      made = duckdb_create_struct_type(children, names, from->n_children);
      break;
    default:
      made = duckdb_create_union_type(children, names, from->n_children);
      break;
  }
  destroy_types(children, from->n_children);
  return made;
}

static duckdb_logical_type make_type(const data_type *from, bool unfolds) {
  switch (from->kind) {
    case TYPE_DECIMAL:
      return duckdb_create_decimal_type(from->width, from->scale);
    case TYPE_ENUM:
      return unfolds ? duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR)
                     : duckdb_create_enum_type((const char **)from->names, from->n_names);
    case TYPE_JSON: {
      duckdb_logical_type type = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
      duckdb_logical_type_set_alias(type, JSON_ALIAS);
      return type;
    }
    case TYPE_LIST:
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_STRUCT:
    case TYPE_UNION:
      return make_nested(from, unfolds);
    default:
      break;
  }
  for (size_t i = 0; i < N_SIMPLE_TYPES; i++) {
    if (simple_types[i].kind == from->kind) {
      return duckdb_create_logical_type(simple_types[i].duckdb);
    }
  }
  return NULL;
}

hf_status type_to_duckdb(const data_type *from, bool unfolds, duckdb_logical_type *out, hf_error *error) {
  duckdb_logical_type made = make_type(from, unfolds);
  if (made == NULL || duckdb_get_type_id(made) == DUCKDB_TYPE_INVALID) {
    duckdb_destroy_logical_type(&made);
    return error_set(error, HF_E_INTERNAL, "DuckDB does not make this type: %s", type_kind_name(from->kind));
  }
  *out = made;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types out of Arrow fields, and the Arrow schema of columns of which there are no
 * rows. Extension types are those that DuckDB 1.5.5 writes with
 * arrow_lossless_conversion and reads back; an unknown one counts as its storage.
 */
#include "arrow/type.h"

#include "arrow/layout.h"
#include "base/fault.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>

typedef struct kind_of_format {
  const char *format;
  type_kind kind;
} kind_of_format;

static const kind_of_format plain_formats[] = {
    {"n", TYPE_NULL},           {"b", TYPE_BOOLEAN},
    {"c", TYPE_TINYINT},        {"s", TYPE_SMALLINT},
    {"i", TYPE_INTEGER},        {"l", TYPE_BIGINT},
    {"C", TYPE_UTINYINT},       {"S", TYPE_USMALLINT},
    {"I", TYPE_UINTEGER},       {"L", TYPE_UBIGINT},
    {"f", TYPE_FLOAT},          {"g", TYPE_DOUBLE},
    {"u", TYPE_VARCHAR},        {"U", TYPE_VARCHAR},
    {"vu", TYPE_VARCHAR},       {"z", TYPE_BLOB},
    {"Z", TYPE_BLOB},           {"vz", TYPE_BLOB},
    {"tdD", TYPE_DATE},         {"tdm", TYPE_DATE},
    {"tts", TYPE_TIME},         {"ttm", TYPE_TIME},
    {"ttu", TYPE_TIME},         {"ttn", TYPE_TIME_NS},
    {"tss:", TYPE_TIMESTAMP_S}, {"tsm:", TYPE_TIMESTAMP_MS},
    {"tsu:", TYPE_TIMESTAMP},   {"tsn:", TYPE_TIMESTAMP_NS},
    {"tDs", TYPE_INTERVAL},     {"tDm", TYPE_INTERVAL},
    {"tDu", TYPE_INTERVAL},     {"tDn", TYPE_INTERVAL},
    {"tiM", TYPE_INTERVAL},     {"tiD", TYPE_INTERVAL},
    {"tin", TYPE_INTERVAL},
};

typedef struct extension {
  const char *name;    /* of ARROW:extension:name, or of the type when it is DuckDB's own */
  bool is_duckdb;      /* arrow.opaque of the vendor DuckDB */
  const char *storage; /* formats, with a space around each */
  type_kind kind;
} extension;

static const extension extensions[] = {
    {"arrow.uuid", false, " w:16 ", TYPE_UUID},
    {"arrow.bool8", false, " c ", TYPE_BOOLEAN},
    {"arrow.json", false, " u U vu ", TYPE_JSON},
    {"hugeint", true, " w:16 ", TYPE_HUGEINT},
    {"uhugeint", true, " w:16 ", TYPE_UHUGEINT},
    {"time_tz", true, " w:8 ", TYPE_TIME_TZ},
    {"bit", true, " z Z vz ", TYPE_BIT},
    {"bignum", true, " z Z vz ", TYPE_BIGNUM},
    {"geoarrow.wkb", false, " z Z vz ", TYPE_GEOMETRY},
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a type");
}

static hf_status unsupported(const struct ArrowSchema *field, const char *what, hf_error *error) {
  return error_set(error, HF_E_UNSUPPORTED, "an Arrow type is not taken: %s",
                   what == NULL ? field->format : what);
}

/* Copies a value of a field's metadata; NULL when it has none. */
static char *metadata_text(const struct ArrowSchema *field, const char *key, arena *a) {
  struct ArrowStringView value = ArrowCharView(NULL);
  if (ArrowMetadataGetValue(field->metadata, ArrowCharView(key), &value) != NANOARROW_OK ||
      value.data == NULL) {
    return NULL;
  }
  return arena_strndup(a, value.data, (size_t)value.size_bytes);
}

/* The type name of an arrow.opaque of DuckDB's, or NULL. */
static char *duckdb_type_name(const char *metadata, arena *a) {
  struct json_object *parsed = metadata == NULL ? NULL : json_tokener_parse(metadata);
  struct json_object *vendor = NULL;
  struct json_object *type = NULL;
  char *name = NULL;
  if (json_object_is_type(parsed, json_type_object) &&
      json_object_object_get_ex(parsed, "vendor_name", &vendor) &&
      json_object_object_get_ex(parsed, "type_name", &type) && vendor != NULL && type != NULL &&
      strcmp(json_object_get_string(vendor), "DuckDB") == 0) {
    name = arena_strdup(a, json_object_get_string(type));
  }
  json_object_put(parsed);
  return name;
}

/* Of a geometry: its extension's metadata name one. */
static bool has_reference_system(const struct ArrowSchema *field, arena *a) {
  const char *text = metadata_text(field, "ARROW:extension:metadata", a);
  struct json_object *parsed = text == NULL ? NULL : json_tokener_parse(text);
  struct json_object *crs = NULL;
  bool has = json_object_is_type(parsed, json_type_object) &&
             json_object_object_get_ex(parsed, "crs", &crs) && crs != NULL;
  json_object_put(parsed);
  return has;
}

static bool is_storage(const char *format, const char *storage) {
  const char *at = strstr(storage, format);
  return at != NULL && at > storage && at[-1] == ' ' && at[strlen(format)] == ' ';
}

/* Sets *kind when the field is of an extension type that we know. */
static hf_status read_extension(const struct ArrowSchema *field, arena *a, type_kind *kind, hf_error *error) {
  const char *name = metadata_text(field, "ARROW:extension:name", a);
  bool is_duckdb = name != NULL && strcmp(name, "arrow.opaque") == 0;
  if (is_duckdb) {
    name = duckdb_type_name(metadata_text(field, "ARROW:extension:metadata", a), a);
  }
  if (name == NULL) {
    return HF_OK;
  }
  if (strcmp(name, "geoarrow.wkb") == 0 && has_reference_system(field, a)) {
    return unsupported(field, "geoarrow.wkb with a coordinate reference system", error);
  }
  for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
    if (extensions[i].is_duckdb == is_duckdb && strcmp(extensions[i].name, name) == 0) {
      *kind = extensions[i].kind;
      return is_storage(field->format, extensions[i].storage) ? HF_OK : unsupported(field, name, error);
    }
  }
  return HF_OK;
}

static hf_status read_type(const struct ArrowSchema *field, arena *a, data_type *out, hf_error *error);

static hf_status read_children(const struct ArrowSchema *field, arena *a, data_type *out, hf_error *error) {
  size_t n = (size_t)field->n_children;
  data_type *types = arena_array(a, n, sizeof *types);
  const data_type **children = arena_array(a, n, sizeof(data_type *));
  const char **names = arena_array(a, n, sizeof *names);
  if (types == NULL || children == NULL || names == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    const struct ArrowSchema *child = field->children[i];
    HF_TRY(read_type(child, a, &types[i], error));
    children[i] = &types[i];
    names[i] = arena_strdup(a, child->name == NULL ? "" : child->name);
    if (names[i] == NULL) {
      return no_memory(error);
    }
  }
  out->n_children = n;
  out->children = children;
  if (out->kind == TYPE_STRUCT || out->kind == TYPE_UNION) {
    out->n_names = n;
    out->names = names;
  }
  return HF_OK;
}

static hf_status read_nested(const struct ArrowSchema *field, arena *a, data_type *out, hf_error *error) {
  const char *format = field->format;
  if (strcmp(format, "+m") == 0) {
    out->kind = TYPE_MAP;
    return read_children(field->children[0], a, out, error);
  }
  if (strcmp(format, "+s") == 0) {
    out->kind = TYPE_STRUCT;
  } else if (strncmp(format, "+u", 2) == 0) {
    out->kind = TYPE_UNION;
  } else if (strncmp(format, "+w:", 3) == 0) {
    out->kind = TYPE_ARRAY;
    out->array_size = strtoull(format + 3, NULL, 10);
  } else {
    out->kind = TYPE_LIST;
  }
  return read_children(field, a, out, error);
}

static hf_status read_type(const struct ArrowSchema *field, arena *a, data_type *out, hf_error *error) {
  const char *format = field->format;
  unsigned width;
  unsigned scale;
  unsigned bits;
  if (field->dictionary != NULL) {
    return read_type(field->dictionary, a, out, error);
  }
  if (format[0] == '+') {
    return read_nested(field, a, out, error);
  }
  if (layout_decimal(format, &width, &scale, &bits)) {
    width = FAULT("arrow.decimal_width") ? 38 : width;
    *out = (data_type){.kind = TYPE_DECIMAL, .width = (uint8_t)width, .scale = (uint8_t)scale};
    return HF_OK;
  }
  out->kind = strncmp(format, "w:", 2) == 0   ? TYPE_BLOB
              : strncmp(format, "ts", 2) == 0 ? TYPE_TIMESTAMP_TZ
                                              : TYPE_KIND_COUNT;
  for (size_t i = 0; i < sizeof plain_formats / sizeof *plain_formats; i++) {
    if (strcmp(format, plain_formats[i].format) == 0) {
      out->kind = plain_formats[i].kind;
    }
  }
  if (layout_is_interval(field)) {
    out->kind = TYPE_INTERVAL;
  }
  HF_TRY(read_extension(field, a, &out->kind, error));
  return out->kind == TYPE_KIND_COUNT ? unsupported(field, NULL, error) : HF_OK;
}

hf_status data_type_from_arrow(const struct ArrowSchema *field, arena *a, const data_type **out,
                               hf_error *error) {
  /* A root of this one column: the reader of layouts refuses what blocks cannot hold, and bounds depth and counts. */
  struct ArrowSchema *children[1];
  memcpy(children, &field, sizeof(struct ArrowSchema *));
  struct ArrowSchema root = {.format = "+s", .n_children = 1, .children = children};
  arena *memory = arena_new();
  data_type *type = arena_alloc(a, sizeof *type);
  layout checked;
  hf_status status =
      memory == NULL || type == NULL ? no_memory(error) : layout_of_schema(&root, memory, &checked, error);
  arena_free(memory);
  HF_TRY(status);
  HF_TRY(read_type(field, a, type, error));
  *out = type;
  return HF_OK;
}

/* ----------------------------------------------------------------- to Arrow */

typedef struct arrow_spelling {
  const char *format;    /* NULL: it depends on the type */
  const char *extension; /* of DuckDB's own when it does not start with "arrow." */
} arrow_spelling;

static const arrow_spelling spellings[TYPE_KIND_COUNT] = {
    [TYPE_NULL] = {"n", NULL},
    [TYPE_BOOLEAN] = {"c", "arrow.bool8"},
    [TYPE_TINYINT] = {"c", NULL},
    [TYPE_SMALLINT] = {"s", NULL},
    [TYPE_INTEGER] = {"i", NULL},
    [TYPE_BIGINT] = {"l", NULL},
    [TYPE_HUGEINT] = {"w:16", "hugeint"},
    [TYPE_UTINYINT] = {"C", NULL},
    [TYPE_USMALLINT] = {"S", NULL},
    [TYPE_UINTEGER] = {"I", NULL},
    [TYPE_UBIGINT] = {"L", NULL},
    [TYPE_UHUGEINT] = {"w:16", "uhugeint"},
    [TYPE_FLOAT] = {"f", NULL},
    [TYPE_DOUBLE] = {"g", NULL},
    [TYPE_BIGNUM] = {"z", "bignum"},
    [TYPE_DATE] = {"tdD", NULL},
    [TYPE_TIME] = {"ttu", NULL},
    [TYPE_TIME_NS] = {"ttn", NULL},
    [TYPE_TIME_TZ] = {"w:8", "time_tz"},
    [TYPE_TIMESTAMP] = {"tsu:", NULL},
    [TYPE_TIMESTAMP_S] = {"tss:", NULL},
    [TYPE_TIMESTAMP_MS] = {"tsm:", NULL},
    [TYPE_TIMESTAMP_NS] = {"tsn:", NULL},
    [TYPE_TIMESTAMP_TZ] = {"tsu:UTC", NULL},
    [TYPE_INTERVAL] = {"w:16", NULL},
    [TYPE_VARCHAR] = {"u", NULL},
    [TYPE_JSON] = {"u", "arrow.json"},
    [TYPE_BLOB] = {"z", NULL},
    [TYPE_BIT] = {"z", "bit"},
    [TYPE_UUID] = {"w:16", "arrow.uuid"},
    [TYPE_GEOMETRY] = {"z", "geoarrow.wkb"},
    [TYPE_ENUM] = {"u", NULL},
    [TYPE_LIST] = {"+l", NULL},
    [TYPE_STRUCT] = {"+s", NULL},
    [TYPE_MAP] = {"+m", NULL},
};

static int set_pair(struct ArrowBuffer *pairs, const char *key, const char *value) {
  return ArrowMetadataBuilderAppend(pairs, ArrowCharView(key), ArrowCharView(value));
}

static int set_extension(struct ArrowSchema *out, const char *name) {
  char text[128];
  struct ArrowBuffer pairs;
  bool is_canonical = strchr(name, '.') != NULL; /* "arrow.uuid"; DuckDB's own have no dot */
  snprintf(text, sizeof text, "{\"vendor_name\":\"DuckDB\",\"type_name\":\"%s\"}", name);
  NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderInit(&pairs, NULL));
  int code = set_pair(&pairs, "ARROW:extension:name", is_canonical ? name : "arrow.opaque");
  if (code == NANOARROW_OK) {
    code = set_pair(&pairs, "ARROW:extension:metadata", is_canonical ? "" : text);
  }
  if (code == NANOARROW_OK) {
    code = ArrowSchemaSetMetadata(out, (const char *)pairs.data);
  }
  ArrowBufferReset(&pairs);
  return code;
}

static int set_interval(struct ArrowSchema *out) {
  struct ArrowBuffer pairs;
  NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderInit(&pairs, NULL));
  int code = set_pair(&pairs, LAYOUT_TYPE_KEY, LAYOUT_TYPE_INTERVAL);
  if (code == NANOARROW_OK) {
    code = ArrowSchemaSetMetadata(out, (const char *)pairs.data);
  }
  ArrowBufferReset(&pairs);
  return code;
}

static int set_format(const data_type *type, struct ArrowSchema *out) {
  char text[600];
  const char *format = spellings[type->kind].format;
  size_t used = 0;
  switch (type->kind) {
    case TYPE_DECIMAL:
      if (type->width > 18) {
        snprintf(text, sizeof text, "d:%u,%u", type->width, type->scale);
      } else {
        snprintf(text, sizeof text, "d:%u,%u,%u", type->width, type->scale, type->width <= 9 ? 32u : 64u);
      }
      break;
    case TYPE_ARRAY:
      snprintf(text, sizeof text, "+w:%llu", (unsigned long long)type->array_size);
      break;
    case TYPE_UNION:
      used = (size_t)snprintf(text, sizeof text, "+us:");
      for (size_t i = 0; i < type->n_children && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, i == 0 ? "%zu" : ",%zu", i);
      }
      break;
    default:
      return ArrowSchemaSetFormat(out, format);
  }
  return ArrowSchemaSetFormat(out, text);
}

static int make_field(const data_type *type, const char *name, struct ArrowSchema *out);

/* The struct of a map's keys and values. */
static int make_entries(const data_type *map, struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetFormat(out, "+s"));
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, "entries"));
  out->flags = 0;
  NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, 2));
  NANOARROW_RETURN_NOT_OK(make_field(map->children[0], "key", out->children[0]));
  out->children[0]->flags = 0;
  return make_field(map->children[1], "value", out->children[1]);
}

static int make_children(const data_type *type, struct ArrowSchema *out) {
  if (type->kind == TYPE_MAP) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, 1));
    return make_entries(type, out->children[0]);
  }
  NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, (int64_t)type->n_children));
  for (size_t i = 0; i < type->n_children; i++) {
    const char *name = i < type->n_names ? type->names[i] : type->kind == TYPE_LIST ? "l" : "";
    NANOARROW_RETURN_NOT_OK(make_field(type->children[i], name, out->children[i]));
  }
  return NANOARROW_OK;
}

static int make_field(const data_type *type, const char *name, struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  NANOARROW_RETURN_NOT_OK(set_format(type, out));
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, name));
  if (type->kind == TYPE_INTERVAL) {
    NANOARROW_RETURN_NOT_OK(set_interval(out));
  }
  if (spellings[type->kind].extension != NULL) {
    NANOARROW_RETURN_NOT_OK(set_extension(out, spellings[type->kind].extension));
  }
  return make_children(type, out);
}

static int make_root(const schema *columns, struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetFormat(out, "+s"));
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, ""));
  out->flags = 0;
  NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, (int64_t)columns->n_columns));
  for (size_t i = 0; i < columns->n_columns; i++) {
    NANOARROW_RETURN_NOT_OK(make_field(columns->columns[i].type, columns->columns[i].name, out->children[i]));
  }
  return NANOARROW_OK;
}

hf_status arrow_schema_of_columns(const schema *columns, struct ArrowSchema *out, hf_error *error) {
  struct ArrowSchema made = {0};
  if (make_root(columns, &made) != NANOARROW_OK) {
    if (made.release != NULL) {
      made.release(&made);
    }
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow schema");
  }
  *out = made;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Types and constants of plan JSON. A collation is dropped from a type: the plan's comparisons already apply it. */
#include "tree/tree_internal.h"

#include <string.h>

const data_type tree_type_boolean = {.kind = TYPE_BOOLEAN};
const data_type tree_type_bigint = {.kind = TYPE_BIGINT};

/* How a value of the kind lies in the JSON. */
typedef enum value_form {
  FORM_NONE,
  FORM_BOOL,
  FORM_INT,
  FORM_WIDE,
  FORM_NUMBER,
  FORM_TEXT,
  FORM_INTERVAL,
  FORM_CHILDREN
} value_form;

static const struct type_row {
  const char *json;
  type_kind kind;
  value_form form;
} type_rows[] = {
    {"NULL", TYPE_NULL, FORM_NONE},
    {"BOOLEAN", TYPE_BOOLEAN, FORM_BOOL},
    {"TINYINT", TYPE_TINYINT, FORM_INT},
    {"SMALLINT", TYPE_SMALLINT, FORM_INT},
    {"INTEGER", TYPE_INTEGER, FORM_INT},
    {"BIGINT", TYPE_BIGINT, FORM_INT},
    {"HUGEINT", TYPE_HUGEINT, FORM_WIDE},
    {"UTINYINT", TYPE_UTINYINT, FORM_INT},
    {"USMALLINT", TYPE_USMALLINT, FORM_INT},
    {"UINTEGER", TYPE_UINTEGER, FORM_INT},
    {"UBIGINT", TYPE_UBIGINT, FORM_INT},
    {"UHUGEINT", TYPE_UHUGEINT, FORM_WIDE},
    {"FLOAT", TYPE_FLOAT, FORM_NUMBER},
    {"DOUBLE", TYPE_DOUBLE, FORM_NUMBER},
    {"DECIMAL", TYPE_DECIMAL, FORM_WIDE},
    {"BIGNUM", TYPE_BIGNUM, FORM_NONE},
    {"DATE", TYPE_DATE, FORM_INT},
    {"TIME", TYPE_TIME, FORM_INT},
    {"TIME_NS", TYPE_TIME_NS, FORM_INT},
    {"TIME WITH TIME ZONE", TYPE_TIME_TZ, FORM_INT},
    {"TIMESTAMP", TYPE_TIMESTAMP, FORM_INT},
    {"TIMESTAMP_S", TYPE_TIMESTAMP_S, FORM_INT},
    {"TIMESTAMP_MS", TYPE_TIMESTAMP_MS, FORM_INT},
    {"TIMESTAMP_NS", TYPE_TIMESTAMP_NS, FORM_INT},
    {"TIMESTAMP WITH TIME ZONE", TYPE_TIMESTAMP_TZ, FORM_INT},
    {"INTERVAL", TYPE_INTERVAL, FORM_INTERVAL},
    {"VARCHAR", TYPE_VARCHAR, FORM_TEXT},
    {"CHAR", TYPE_VARCHAR, FORM_TEXT},
    {"STRING_LITERAL", TYPE_VARCHAR, FORM_TEXT},
    {"BLOB", TYPE_BLOB, FORM_TEXT},
    {"BIT", TYPE_BIT, FORM_TEXT},
    {"UUID", TYPE_UUID, FORM_WIDE},
    {"ENUM", TYPE_ENUM, FORM_INT},
    {"LIST", TYPE_LIST, FORM_CHILDREN},
    {"ARRAY", TYPE_ARRAY, FORM_CHILDREN},
    {"STRUCT", TYPE_STRUCT, FORM_CHILDREN},
    {"MAP", TYPE_MAP, FORM_CHILDREN},
    {"UNION", TYPE_UNION, FORM_CHILDREN},
};
enum { N_TYPE_ROWS = sizeof type_rows / sizeof type_rows[0] };

/* ------------------------------------------------------------------- types */

static hf_status set_children(json_reader *r, data_type *type, const data_type **children, size_t n) {
  type->n_children = n;
  type->children = children;
  return children == NULL ? json_read_no_memory(r) : HF_OK;
}

static hf_status read_one_child(json_reader *r, json_view *info, data_type *type) {
  const data_type **child = arena_array(r->a, 1, sizeof(data_type *));
  HF_TRY(set_children(r, type, child, 1));
  return tree_read_type(r, json_read_take(info, "child_type"), &child[0]);
}

/* Fields of a STRUCT or UNION: pairs {first: name, second: type}. */
static hf_status read_fields(json_reader *r, json_view *info, data_type *type) {
  struct json_object *array = NULL;
  size_t n = 0;
  HF_TRY(json_read_array(info, "child_types", &array, &n));
  const data_type **children = arena_array(r->a, n, sizeof(data_type *));
  const char **names = arena_array(r->a, n, sizeof(char *));
  if (names == NULL) {
    return json_read_no_memory(r);
  }
  HF_TRY(set_children(r, type, children, n));
  for (size_t i = 0; i < n; i++) {
    json_view pair;
    HF_TRY(json_read_open(r, json_object_array_get_idx(array, i), "TYPE", &pair));
    HF_TRY(json_read_text(&pair, "first", &names[i]));
    HF_TRY(tree_read_type(r, json_read_take(&pair, "second"), &children[i]));
    HF_TRY(json_read_close(&pair));
  }
  type->names = names;
  type->n_names = n;
  return HF_OK;
}

/* A UNION's first field is its tag, which has no name in SQL. */
static hf_status read_union(json_reader *r, json_view *info, data_type *type) {
  HF_TRY(read_fields(r, info, type));
  if (type->n_children < 2 || type->names[0][0] != '\0') {
    return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "a UNION without a tag and members");
  }
  type->children++;
  type->names++;
  type->n_children--;
  type->n_names--;
  return HF_OK;
}

/* A MAP's child is STRUCT(key, value). */
static hf_status read_map(json_reader *r, json_view *info, data_type *type) {
  HF_TRY(read_one_child(r, info, type));
  const data_type *entry = type->children[0];
  if (entry->kind != TYPE_STRUCT || entry->n_children != 2) {
    return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "a MAP whose entries are no pairs");
  }
  type->children = entry->children;
  type->n_children = 2;
  return HF_OK;
}

static hf_status read_enum(json_reader *r, json_view *info, data_type *type) {
  uint64_t count = 0;
  HF_TRY(json_read_size(info, "values_count", &count));
  HF_TRY(json_read_texts(info, "values", &type->names, &type->n_names));
  if (count != type->n_names || count == 0) {
    return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "an ENUM of %zu values that says it has %llu",
                            type->n_names, (unsigned long long)count);
  }
  return HF_OK;
}

static hf_status read_decimal(json_reader *r, json_view *info, data_type *type) {
  uint64_t width = 0, scale = 0;
  HF_TRY(json_read_size(info, "width", &width));
  HF_TRY(json_read_size(info, "scale", &scale));
  if (width < 1 || width > 38 || scale > width) {
    return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "DECIMAL(%llu,%llu)", (unsigned long long)width,
                            (unsigned long long)scale);
  }
  type->width = (uint8_t)width;
  type->scale = (uint8_t)scale;
  return HF_OK;
}

static hf_status read_array(json_reader *r, json_view *info, data_type *type) {
  HF_TRY(json_read_size(info, "size", &type->array_size));
  return read_one_child(r, info, type);
}

static hf_status read_details(json_reader *r, json_view *info, data_type *type) {
  switch (type->kind) {
    case TYPE_DECIMAL:
      return read_decimal(r, info, type);
    case TYPE_LIST:
      return read_one_child(r, info, type);
    case TYPE_ARRAY:
      return read_array(r, info, type);
    case TYPE_STRUCT:
      return read_fields(r, info, type);
    case TYPE_UNION:
      return read_union(r, info, type);
    case TYPE_MAP:
      return read_map(r, info, type);
    case TYPE_ENUM:
      return read_enum(r, info, type);
    case TYPE_VARCHAR:
      (void)json_read_take(info, "collation");
      return HF_OK;
    default:
      return HF_OK;
  }
}

static bool needs_details(type_kind kind) {
  return kind == TYPE_DECIMAL || kind >= TYPE_ENUM;
}

static hf_status read_info(json_reader *r, struct json_object *object, data_type *type) {
  if (object == NULL) {
    return needs_details(type->kind) ? json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE",
                                                        "%s without its details", type_kind_name(type->kind))
                                     : HF_OK;
  }
  json_view info;
  HF_TRY(json_read_open(r, object, "TYPE", &info));
  (void)json_read_take(&info, "type");
  struct json_object *alias = json_read_take(&info, "alias");
  if (alias != NULL && json_object_get_string_len(alias) > 0) {
    if (type->kind != TYPE_VARCHAR || strcmp(json_object_get_string(alias), "JSON") != 0) {
      return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "alias %.100s", json_object_get_string(alias));
    }
    type->kind = TYPE_JSON;
  }
  HF_TRY(read_details(r, &info, type));
  return json_read_close(&info);
}

static const struct type_row *find_row(const char *json) {
  for (size_t i = 0; i < N_TYPE_ROWS; i++) {
    if (strcmp(type_rows[i].json, json) == 0) {
      return &type_rows[i];
    }
  }
  return NULL;
}

hf_status tree_read_type(json_reader *r, struct json_object *object, const data_type **out) {
  json_view v;
  HF_TRY(json_read_open(r, object, "TYPE", &v));
  const char *id = NULL;
  HF_TRY(json_read_text(&v, "id", &id));
  const struct type_row *row = find_row(id);
  if (row == NULL) {
    return json_read_refuse(r, TREE_REFUSED_TYPE, "TYPE", "%.100s", id);
  }
  data_type *type = arena_alloc(r->a, sizeof *type);
  if (type == NULL) {
    return json_read_no_memory(r);
  }
  type->kind = row->kind;
  HF_TRY(json_read_descend(r, "TYPE"));
  HF_TRY(read_info(r, json_read_take(&v, "type_info"), type));
  json_read_ascend(r);
  *out = type;
  return json_read_close(&v);
}

hf_status tree_read_types(json_view *v, const char *key, const data_type *const **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  const data_type **types = arena_array(v->reader->a, *n, sizeof(data_type *));
  if (types == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(tree_read_type(v->reader, json_object_array_get_idx(array, i), &types[i]));
  }
  *out = types;
  return HF_OK;
}

/* ------------------------------------------------------------------ values */

static value_form form_of(type_kind kind) {
  if (kind == TYPE_JSON) {
    return FORM_TEXT;
  }
  for (size_t i = 0; i < N_TYPE_ROWS; i++) {
    if (type_rows[i].kind == kind) {
      return type_rows[i].form;
    }
  }
  return FORM_NONE;
}

static hf_status no_value(json_reader *r, const data_type *type) {
  return json_read_refuse(r, TREE_REFUSED_CONSTANT, "BOUND_CONSTANT", "a value of type %s",
                          type_kind_name(type->kind));
}

static bool read_int(struct json_object *object, tree_value *out) {
  if (!json_object_is_type(object, json_type_int)) {
    return false;
  }
  int64_t number = json_object_get_int64(object);
  out->upper = number < 0 ? -1 : 0;
  out->lower = number < 0 ? (uint64_t)number : json_object_get_uint64(object);
  return true;
}

/* A DECIMAL of up to 18 digits is a number, everything wider is {upper, lower}. */
static hf_status read_wide(json_reader *r, struct json_object *object, tree_value *out) {
  if (read_int(object, out)) {
    return HF_OK;
  }
  json_view v;
  HF_TRY(json_read_open(r, object, "BOUND_CONSTANT", &v));
  tree_value upper = {0};
  if (!read_int(json_read_take(&v, "upper"), &upper) || !read_int(json_read_take(&v, "lower"), out)) {
    return no_value(r, out->type);
  }
  out->upper = (int64_t)upper.lower;
  return json_read_close(&v);
}

static hf_status read_interval(json_reader *r, struct json_object *object, tree_value *out) {
  json_view v;
  HF_TRY(json_read_open(r, object, "BOUND_CONSTANT", &v));
  tree_value part = {0};
  if (!read_int(json_read_take(&v, "months"), &part)) {
    return no_value(r, out->type);
  }
  out->months = (int32_t)(int64_t)part.lower;
  if (!read_int(json_read_take(&v, "days"), &part)) {
    return no_value(r, out->type);
  }
  out->days = (int32_t)(int64_t)part.lower;
  if (!read_int(json_read_take(&v, "micros"), &part)) {
    return no_value(r, out->type);
  }
  out->micros = (int64_t)part.lower;
  return json_read_close(&v);
}

/* The type that the i-th of `n` children has; NULL: the child must say it. */
static const data_type *child_type(const data_type *type, size_t i, size_t n) {
  switch (type->kind) {
    case TYPE_LIST:
      return type->children[0];
    case TYPE_ARRAY:
      return n == type->array_size ? type->children[0] : NULL;
    case TYPE_STRUCT:
      return n == type->n_children ? type->children[i] : NULL;
    default:
      return NULL;
  }
}

static bool is_count_right(const data_type *type, size_t n) {
  switch (type->kind) {
    case TYPE_ARRAY:
      return n == type->array_size;
    case TYPE_STRUCT:
      return n == type->n_children;
    case TYPE_UNION:
      return n == type->n_children + 1;
    default:
      return true;
  }
}

static hf_status read_children(json_reader *r, struct json_object *object, tree_value *out) {
  json_view v;
  struct json_object *array = NULL;
  HF_TRY(json_read_open(r, object, "BOUND_CONSTANT", &v));
  HF_TRY(json_read_array(&v, "children", &array, &out->n_children));
  if (!is_count_right(out->type, out->n_children)) {
    return no_value(r, out->type);
  }
  tree_value *children = arena_array(r->a, out->n_children, sizeof *children);
  if (children == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < out->n_children; i++) {
    const data_type *type = child_type(out->type, i, out->n_children);
    HF_TRY(tree_read_value(r, json_object_array_get_idx(array, i), type, &children[i]));
    bool is_entry = children[i].type->kind == TYPE_STRUCT && children[i].n_children == 2;
    if (out->type->kind == TYPE_MAP && !is_entry) {
      return no_value(r, out->type);
    }
  }
  out->children = children;
  return json_read_close(&v);
}

static hf_status read_content(json_reader *r, struct json_object *object, tree_value *out) {
  switch (form_of(out->type->kind)) {
    case FORM_BOOL:
      out->lower = json_object_get_boolean(object) ? 1 : 0;
      return json_object_is_type(object, json_type_boolean) ? HF_OK : no_value(r, out->type);
    case FORM_INT:
      return read_int(object, out) ? HF_OK : no_value(r, out->type);
    case FORM_WIDE:
      return read_wide(r, object, out);
    case FORM_NUMBER:
      out->number = json_object_get_double(object);
      return json_object_is_type(object, json_type_double) || json_object_is_type(object, json_type_int)
                 ? HF_OK
                 : no_value(r, out->type);
    case FORM_TEXT:
      return json_read_text_of(r, object, "BOUND_CONSTANT", &out->text, &out->length);
    case FORM_INTERVAL:
      return read_interval(r, object, out);
    case FORM_CHILDREN:
      return read_children(r, object, out);
    default:
      return no_value(r, out->type);
  }
}

hf_status tree_read_value(json_reader *r, struct json_object *object, const data_type *type,
                          tree_value *out) {
  json_view v;
  HF_TRY(json_read_open(r, object, "BOUND_CONSTANT", &v));
  struct json_object *own = json_read_take(&v, "type");
  out->type = type;
  if (own != NULL) {
    HF_TRY(tree_read_type(r, own, &out->type));
  }
  if (out->type == NULL) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, "BOUND_CONSTANT", "a value without a type");
  }
  HF_TRY(json_read_bool(&v, "is_null", &out->is_null));
  struct json_object *content = json_read_take(&v, "value");
  if (!out->is_null) {
    HF_TRY(json_read_descend(r, "BOUND_CONSTANT"));
    HF_TRY(read_content(r, content, out));
    json_read_ascend(r);
  }
  if (out->type->kind == TYPE_ENUM && !out->is_null &&
      (out->upper != 0 || out->lower >= out->type->n_names)) {
    return no_value(r, out->type);
  }
  return json_read_close(&v);
}

hf_status tree_read_values(json_view *v, const char *key, const tree_value **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  tree_value *values = arena_array(v->reader->a, *n, sizeof *values);
  if (values == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(tree_read_value(v->reader, json_object_array_get_idx(array, i), NULL, &values[i]));
  }
  *out = values;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a field: what its format says about how values lie, and the
 * scales of its floats. Reading values is in value_read.c.
 * Thread: any.
 */
#include "value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hf_status unsupported(const struct ArrowSchema *field, hf_error *error) {
  return error_set(error, HF_E_UNSUPPORTED, "values of this Arrow format cannot be compared: %s",
                   field->format);
}

/* Formats of one character, and the first of longer ones, whose values have a fixed width. */
static const struct {
  const char *format; /* a prefix, when it ends with '*' */
  value_kind kind;
  size_t width;
  bool is_signed;
} fixed_formats[] = {
    {"n", VALUE_NULL, 0, false},
    {"b", VALUE_BITS, 0, false},
    {"c", VALUE_INTEGER, 1, true},
    {"C", VALUE_INTEGER, 1, false},
    {"s", VALUE_INTEGER, 2, true},
    {"S", VALUE_INTEGER, 2, false},
    {"i", VALUE_INTEGER, 4, true},
    {"I", VALUE_INTEGER, 4, false},
    {"l", VALUE_INTEGER, 8, true},
    {"L", VALUE_INTEGER, 8, false},
    {"f", VALUE_FLOAT, 4, true},
    {"g", VALUE_DOUBLE, 8, true},
    {"tdD", VALUE_INTEGER, 4, true},
    {"tdm", VALUE_INTEGER, 8, true},
    {"tts", VALUE_INTEGER, 4, true},
    {"ttm", VALUE_INTEGER, 4, true},
    {"ttu", VALUE_INTEGER, 8, true},
    {"ttn", VALUE_INTEGER, 8, true},
    {"ts*", VALUE_INTEGER, 8, true},
    {"tD*", VALUE_INTEGER, 8, true},
    {"tiM", VALUE_INTEGER, 4, true},
    {"tiD", VALUE_FIXED, 8, false},
    {"tin", VALUE_FIXED, 16, false},
    {"u", VALUE_BYTES, 4, false},
    {"z", VALUE_BYTES, 4, false},
    {"U", VALUE_BYTES, 8, false},
    {"Z", VALUE_BYTES, 8, false},
    {"vu", VALUE_VIEW, 16, false},
    {"vz", VALUE_VIEW, 16, false},
    {"+l", VALUE_LIST, 4, false},
    {"+L", VALUE_LIST, 8, false},
    {"+m", VALUE_LIST, 4, false},
    {"+s", VALUE_STRUCT, 0, false},
    {"+us:*", VALUE_UNION, 0, false},
    {"+ud:*", VALUE_DENSE_UNION, 0, false},
};

static bool fits(const char *format, const char *pattern) {
  size_t length = strlen(pattern);
  bool is_prefix = pattern[length - 1] == '*';
  return is_prefix ? strncmp(format, pattern, length - 1) == 0 : strcmp(format, pattern) == 0;
}

/* "d:10,2" or "d:10,2,64": bytes of a value, or 0. */
static size_t decimal_width(const char *format) {
  const char *comma = strchr(format, ',');
  comma = comma == NULL ? NULL : strchr(comma + 1, ',');
  unsigned long bits = comma == NULL ? 128 : strtoul(comma + 1, NULL, 10);
  return bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

static bool read_format(const char *format, value_shape *out) {
  if (strncmp(format, "d:", 2) == 0) {
    out->kind = VALUE_DECIMAL;
    out->width = decimal_width(format);
    return out->width > 0;
  }
  bool is_list = strncmp(format, "+w:", 3) == 0;
  if (is_list || strncmp(format, "w:", 2) == 0) {
    out->kind = is_list ? VALUE_FIXED_LIST : VALUE_FIXED;
    out->width = strtoul(format + (is_list ? 3 : 2), NULL, 10);
    return true;
  }
  for (size_t i = 0; i < sizeof fixed_formats / sizeof fixed_formats[0]; i++) {
    if (fits(format, fixed_formats[i].format)) {
      out->kind = fixed_formats[i].kind;
      out->width = fixed_formats[i].width;
      out->is_signed = fixed_formats[i].is_signed;
      return true;
    }
  }
  return false;
}

/* "+us:0,5": the child of each type id. */
static hf_status read_ids(const struct ArrowSchema *field, arena *a, value_shape *out, hf_error *error) {
  enum { IDS = 128 };
  uint8_t *children = arena_alloc(a, IDS);
  if (children == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare");
  }
  const char *at = strchr(field->format, ':') + 1;
  for (size_t child = 0; *at != '\0' && child < IDS; child++) {
    char *end = NULL;
    unsigned long id = strtoul(at, &end, 10);
    if (end == at || id >= IDS || child >= out->n_children) {
      return unsupported(field, error);
    }
    children[id] = (uint8_t)child;
    at = *end == ',' ? end + 1 : end;
  }
  out->child_of_id = children;
  return HF_OK;
}

/* The type of a field's i-th child; a map's entries have none, and pass its own on. */
static const data_type *child_type(const data_type *type, const data_type *map, size_t i) {
  const data_type *of = type == NULL ? map : type;
  return i < of->n_children ? of->children[i] : NULL;
}

static hf_status shape_of(const struct ArrowSchema *field, const data_type *type, const data_type *map,
                          arena *a, value_shape *out, hf_error *error);

static hf_status read_children(const struct ArrowSchema *field, const data_type *map, arena *a,
                               value_shape *out, hf_error *error) {
  size_t n = (size_t)field->n_children;
  out->n_children = n;
  out->children = arena_array(a, n, sizeof *out->children);
  if (out->children == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare");
  }
  bool is_map = strcmp(field->format, "+m") == 0;
  for (size_t i = 0; i < n; i++) {
    const data_type *type = is_map ? NULL : child_type(out->type, map, i);
    HF_TRY(shape_of(field->children[i], type, is_map ? out->type : NULL, a, &out->children[i], error));
    out->has_floats = out->has_floats || out->children[i].has_floats;
  }
  bool is_union = out->kind == VALUE_UNION || out->kind == VALUE_DENSE_UNION;
  return is_union ? read_ids(field, a, out, error) : HF_OK;
}

/* An index and, as the only child, the values. */
static hf_status read_dictionary(const struct ArrowSchema *field, arena *a, value_shape *out,
                                 hf_error *error) {
  out->kind = VALUE_DICTIONARY;
  out->n_children = 1;
  out->children = arena_alloc(a, sizeof *out->children);
  if (out->children == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare");
  }
  HF_TRY(shape_of(field->dictionary, out->type, NULL, a, out->children, error));
  out->has_floats = out->children->has_floats;
  return HF_OK;
}

/* `map` is the type of the map whose entries the field holds, or NULL. The depth is that of `type`, which is bounded. */
static hf_status shape_of(const struct ArrowSchema *field, const data_type *type, const data_type *map,
                          arena *a, value_shape *out, hf_error *error) {
  *out = (value_shape){.type = type, .unit = field->format[0] == 't' ? field->format[2] : '\0'};
  if ((type == NULL && map == NULL) || !read_format(field->format, out)) {
    return unsupported(field, error);
  }
  if (field->dictionary != NULL) {
    return out->kind == VALUE_INTEGER ? read_dictionary(field, a, out, error) : unsupported(field, error);
  }
  if (out->kind == VALUE_INTEGER && type != NULL && type->kind == TYPE_BOOLEAN) {
    out->kind = VALUE_BITS; /* arrow.bool8 */
  }
  out->has_floats = out->kind == VALUE_FLOAT || out->kind == VALUE_DOUBLE;
  if (out->has_floats) {
    out->scale = arena_alloc(a, sizeof *out->scale);
    if (out->scale == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compare");
    }
  }
  return read_children(field, map, a, out, error);
}

hf_status value_shape_of(const struct ArrowSchema *field, const data_type *type, arena *a, value_shape *out,
                         hf_error *error) {
  return shape_of(field, type, NULL, a, out, error);
}

bool value_shapes_alike(const value_shape *a, const value_shape *b) {
  a = a->kind == VALUE_DICTIONARY ? a->children : a;
  b = b->kind == VALUE_DICTIONARY ? b->children : b;
  if (a->unit != b->unit || a->n_children != b->n_children) {
    return false;
  }
  for (size_t i = 0; i < a->n_children; i++) {
    if (!value_shapes_alike(&a->children[i], &b->children[i])) {
      return false;
    }
  }
  return true;
}

/* --------------------------------------------------------------------- scales */

static void raise_scale(void *context, value_float found) {
  (void)context;
  double magnitude = fabs(found.number);
  if (isfinite(magnitude) && magnitude > *found.shape->scale) {
    *found.shape->scale = magnitude;
  }
}

void value_measure(value v) {
  value_each_float(v, raise_scale, NULL);
}

void value_share_scales(const value_shape *a, const value_shape *b) {
  a = a->kind == VALUE_DICTIONARY ? a->children : a;
  b = b->kind == VALUE_DICTIONARY ? b->children : b;
  if (a->scale != NULL && b->scale != NULL) {
    *a->scale = *b->scale = fmax(*a->scale, *b->scale);
  }
  for (size_t i = 0; i < a->n_children && i < b->n_children; i++) {
    value_share_scales(&a->children[i], &b->children[i]);
  }
}

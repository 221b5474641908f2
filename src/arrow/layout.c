/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From Arrow's format strings to layouts. A client's schema is input: counts,
 * depth and every number in a format are checked here, once, so that the code
 * that walks layouts need not.
 */
#include "arrow/layout.h"

#include <string.h>

#include <nanoarrow/nanoarrow.h>

typedef struct layout_reader {
  arena *memory;
  size_t fields;
  unsigned depth;
  hf_error *error;
} layout_reader;

typedef struct fixed_format {
  const char *format;
  uint8_t width;
} fixed_format;

static const fixed_format fixed_formats[] = {
    {"c", 1},   {"C", 1},   {"s", 2},   {"S", 2},   {"i", 4},   {"I", 4},   {"l", 8},   {"L", 8},
    {"f", 4},   {"g", 8},   {"tdD", 4}, {"tdm", 8}, {"tts", 4}, {"ttm", 4}, {"ttu", 8}, {"ttn", 8},
    {"tDs", 8}, {"tDm", 8}, {"tDu", 8}, {"tDn", 8}, {"tiM", 4}, {"tiD", 8}};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the layout of a schema");
}

/* Reads digits up to `stop`; moves *text behind it. */
static bool read_number(const char **text, char stop, uint64_t most, uint64_t *out) {
  const char *at = *text;
  uint64_t value = 0;
  if (*at < '0' || *at > '9') {
    return false;
  }
  for (; *at >= '0' && *at <= '9'; at++) {
    value = value * 10 + (uint64_t)(*at - '0');
    if (value > most) {
      return false;
    }
  }
  if (*at != stop) {
    return false;
  }
  *text = stop == '\0' ? at : at + 1;
  *out = value;
  return true;
}

bool layout_decimal(const char *format, unsigned *precision, unsigned *scale, unsigned *bits) {
  if (strncmp(format, "d:", 2) != 0) {
    return false;
  }
  const char *at = format + 2;
  uint64_t digits = 0;
  uint64_t after = 0;
  uint64_t wide = 128;
  if (!read_number(&at, ',', 76, &digits) || digits == 0) {
    return false;
  }
  if (strchr(at, ',') == NULL) {
    if (!read_number(&at, '\0', digits, &after)) {
      return false;
    }
  } else if (!read_number(&at, ',', digits, &after) || !read_number(&at, '\0', 256, &wide)) {
    return false;
  }
  *precision = (unsigned)digits;
  *scale = (unsigned)after;
  *bits = (unsigned)wide;
  return true;
}

static bool read_decimal(const char *format, layout *out) {
  unsigned precision;
  unsigned scale;
  unsigned bits;
  if (!layout_decimal(format, &precision, &scale, &bits) || precision > 38 ||
      (bits != 32 && bits != 64 && bits != 128)) {
    return false;
  }
  out->kind = LAYOUT_FIXED;
  out->source_width = bits / 8;
  out->width = precision <= 9 ? 4 : precision <= 18 ? 8 : 16;
  out->change = out->width < out->source_width ? LAYOUT_NARROW : LAYOUT_SAME;
  return out->width <= out->source_width;
}

static bool read_text_or_bytes(const char *format, layout *out) {
  if (strlen(format) == 1 && strchr("uUzZ", format[0]) != NULL) {
    out->kind = LAYOUT_BYTES;
    out->width = format[0] == 'u' || format[0] == 'z' ? 4 : 8;
    out->is_text = format[0] == 'u' || format[0] == 'U';
    return true;
  }
  if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0) {
    out->kind = LAYOUT_VIEW;
    out->width = 4;
    out->is_text = format[1] == 'u';
    return true;
  }
  return false;
}

/* The formats without children; false when it is none of them. */
static bool read_leaf(const char *format, layout *out) {
  uint64_t number = 0;
  const char *at = format + 2;
  if (strcmp(format, "n") == 0) {
    out->kind = LAYOUT_NULL;
    return true;
  }
  if (strcmp(format, "b") == 0) {
    out->kind = LAYOUT_BITS;
    return true;
  }
  if (format[0] == 'd') {
    return read_decimal(format, out);
  }
  if (read_text_or_bytes(format, out)) {
    return true;
  }
  out->kind = LAYOUT_FIXED;
  if (strcmp(format, "tin") == 0) {
    out->change = LAYOUT_INTERVAL;
    out->width = 16;
  } else if (strncmp(format, "w:", 2) == 0 && read_number(&at, '\0', INT32_MAX, &number) && number > 0) {
    out->width = (size_t)number;
  } else if (strncmp(format, "ts", 2) == 0 && format[2] != '\0' && strchr("smun", format[2]) != NULL &&
             format[3] == ':') {
    out->width = 8;
  }
  for (size_t i = 0; out->width == 0 && i < sizeof fixed_formats / sizeof *fixed_formats; i++) {
    if (strcmp(format, fixed_formats[i].format) == 0) {
      out->width = fixed_formats[i].width;
    }
  }
  out->source_width = out->width;
  return out->width > 0;
}

/* Reads "0,5,7" into child numbers by id. */
static bool read_type_ids(const char *ids, size_t n_children, uint8_t *child_of_id) {
  memset(child_of_id, LAYOUT_NO_CHILD, 128);
  const char *at = ids;
  for (size_t i = 0; i < n_children; i++) {
    uint64_t id = 0;
    if (!read_number(&at, i + 1 < n_children ? ',' : '\0', 127, &id) || child_of_id[id] != LAYOUT_NO_CHILD) {
      return false;
    }
    child_of_id[id] = (uint8_t)i;
  }
  return *at == '\0';
}

static hf_status read_union(layout_reader *r, const char *format, size_t n_children, layout *out) {
  out->kind = format[2] == 's' ? LAYOUT_UNION : LAYOUT_DENSE_UNION;
  uint8_t *child_of_id = arena_alloc(r->memory, 128);
  if (child_of_id == NULL) {
    return no_memory(r->error);
  }
  if (n_children == 0 || n_children > 128 || format[3] != ':' ||
      !read_type_ids(format + 4, n_children, child_of_id)) {
    return error_set(r->error, HF_E_UNSUPPORTED, "an Arrow union without usable type ids: %s", format);
  }
  out->child_of_id = child_of_id;
  return HF_OK;
}

static bool read_nested_format(const char *format, size_t n_children, layout *out) {
  uint64_t number = 0;
  const char *at = format + 3;
  if (strcmp(format, "+s") == 0) {
    out->kind = LAYOUT_STRUCT;
    return n_children > 0;
  }
  out->kind = LAYOUT_LIST;
  out->width = strcmp(format, "+L") == 0 ? 8 : 4;
  if (strcmp(format, "+l") == 0 || strcmp(format, "+m") == 0 || strcmp(format, "+L") == 0) {
    return n_children == 1;
  }
  out->kind = LAYOUT_FIXED_LIST;
  if (strncmp(format, "+w:", 3) != 0 || !read_number(&at, '\0', INT32_MAX, &number) || number == 0) {
    return false;
  }
  out->width = (size_t)number;
  return n_children == 1;
}

static hf_status read_field(layout_reader *r, const struct ArrowSchema *schema, layout *out);

static hf_status read_children(layout_reader *r, const struct ArrowSchema *schema, layout *out) {
  out->n_children = (size_t)schema->n_children;
  out->children = arena_array(r->memory, out->n_children, sizeof *out->children);
  if (out->children == NULL) {
    return no_memory(r->error);
  }
  for (size_t i = 0; i < out->n_children; i++) {
    HF_TRY(read_field(r, schema->children[i], &out->children[i]));
  }
  return HF_OK;
}

static hf_status unsupported(layout_reader *r, const struct ArrowSchema *schema) {
  const char *name = schema->name == NULL ? "" : schema->name;
  error_set(r->error, HF_E_UNSUPPORTED, "an Arrow type is not taken: format %s of the field \"%s\"",
            schema->format, name);
  error_hint(r->error, "cast the column to another type before handing it over");
  return HF_E_UNSUPPORTED;
}

static hf_status read_dictionary(layout_reader *r, const struct ArrowSchema *schema, layout *out) {
  layout leaf = {0};
  if (strlen(schema->format) != 1 || strchr("cCsSiIlL", schema->format[0]) == NULL ||
      !read_leaf(schema->format, &leaf)) {
    return unsupported(r, schema);
  }
  out->kind = LAYOUT_DICTIONARY;
  out->width = leaf.width;
  out->is_signed = schema->format[0] >= 'a';
  out->n_children = 1;
  out->children = arena_array(r->memory, 1, sizeof *out->children);
  return out->children == NULL ? no_memory(r->error) : read_field(r, schema->dictionary, out->children);
}

static hf_status read_shape(layout_reader *r, const struct ArrowSchema *schema, layout *out) {
  if (schema->dictionary != NULL) {
    return read_dictionary(r, schema, out);
  }
  const char *format = schema->format;
  size_t n_children = (size_t)schema->n_children;
  if (format[0] != '+') {
    return n_children == 0 && read_leaf(format, out) ? HF_OK : unsupported(r, schema);
  }
  if (strncmp(format, "+us", 3) == 0 || strncmp(format, "+ud", 3) == 0) {
    HF_TRY(read_union(r, format, n_children, out));
  } else if (!read_nested_format(format, n_children, out)) {
    return unsupported(r, schema);
  }
  HF_TRY(read_children(r, schema, out));
  const layout *entries = out->children;
  if (strcmp(format, "+m") == 0 && (entries->kind != LAYOUT_STRUCT || entries->n_children != 2)) {
    return unsupported(r, schema);
  }
  return HF_OK;
}

static hf_status read_field(layout_reader *r, const struct ArrowSchema *schema, layout *out) {
  if (schema == NULL || schema->format == NULL || schema->n_children < 0 ||
      (schema->n_children > 0 && schema->children == NULL)) {
    return error_set(r->error, HF_E_UNSUPPORTED, "an Arrow schema lacks a format or children");
  }
  r->fields += 1 + (size_t)schema->n_children;
  if (r->fields > LAYOUT_MOST_FIELDS || ++r->depth > LAYOUT_DEEPEST) {
    return error_set(r->error, HF_E_UNSUPPORTED, "an Arrow schema has more than %d fields or %d levels",
                     LAYOUT_MOST_FIELDS, LAYOUT_DEEPEST);
  }
  hf_status status = read_shape(r, schema, out);
  r->depth--;
  return status;
}

hf_status layout_of_schema(const struct ArrowSchema *schema, arena *a, layout *out, hf_error *error) {
  if (schema->format == NULL || strcmp(schema->format, "+s") != 0 || schema->dictionary != NULL) {
    return error_set(error, HF_E_UNSUPPORTED,
                     "the root of an Arrow schema is not a struct of columns: format %s",
                     schema->format == NULL ? "(none)" : schema->format);
  }
  layout_reader reader = {.memory = a, .error = error};
  layout made = {.kind = LAYOUT_STRUCT}; /* only a root may have no columns */
  if (schema->n_children != 0) {
    HF_TRY(read_field(&reader, schema, &made));
  }
  *out = made;
  return HF_OK;
}

size_t layout_buffers(const layout *l) {
  static const uint8_t counts[] = {
      [LAYOUT_NULL] = 0,       [LAYOUT_FIXED] = 2,       [LAYOUT_BITS] = 2,   [LAYOUT_BYTES] = 3,
      [LAYOUT_LIST] = 2,       [LAYOUT_FIXED_LIST] = 1,  [LAYOUT_STRUCT] = 1, [LAYOUT_UNION] = 1,
      [LAYOUT_DICTIONARY] = 2, [LAYOUT_DENSE_UNION] = 2, [LAYOUT_VIEW] = 3};
  return counts[l->kind];
}

bool layout_is_of_block(const layout *l) {
  if (l->kind >= LAYOUT_DICTIONARY || l->change != LAYOUT_SAME) {
    return false;
  }
  for (size_t i = 0; i < l->n_children; i++) {
    if (!layout_is_of_block(&l->children[i])) {
      return false;
    }
  }
  return true;
}

bool layout_allows_codes(const layout *l) {
  return (l->kind == LAYOUT_BYTES && l->width == 4) ||
         (l->kind == LAYOUT_FIXED && (l->width == 4 || l->width == 8));
}

hf_status layout_code_columns(layout *root, const uint8_t *code_bytes, arena *a, hf_error *error) {
  for (size_t i = 0; code_bytes != NULL && i < root->n_children; i++) {
    if (code_bytes[i] == 0) {
      continue;
    }
    if (code_bytes[i] > 2 || !layout_allows_codes(&root->children[i])) {
      return error_set(error, HF_E_BLOCK_CORRUPT, "a column of its type has no codes of %u bytes: %zu",
                       code_bytes[i], i);
    }
    layout *values = arena_alloc(a, sizeof *values);
    if (values == NULL) {
      return no_memory(error);
    }
    *values = root->children[i];
    root->children[i] =
        (layout){.kind = LAYOUT_DICTIONARY, .width = code_bytes[i], .n_children = 1, .children = values};
  }
  return HF_OK;
}

bool layout_is_interval(const struct ArrowSchema *field) {
  struct ArrowStringView value = ArrowCharView(NULL);
  return strcmp(field->format, "w:16") == 0 &&
         ArrowMetadataGetValue(field->metadata, ArrowCharView(LAYOUT_TYPE_KEY), &value) == NANOARROW_OK &&
         value.size_bytes == (int64_t)strlen(LAYOUT_TYPE_INTERVAL) && value.data != NULL &&
         memcmp(value.data, LAYOUT_TYPE_INTERVAL, (size_t)value.size_bytes) == 0;
}

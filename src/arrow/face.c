/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faces of arrow/batch.h: from an incoming schema to that of the block, and
 * from the block to the client, schema and arrays. Columns whose values look
 * different there get a buffer of their own, all others pass as they are. A
 * changed array keeps the one it was made from inside itself, so children may be
 * moved out and released one by one, as Arrow allows. Incoming arrays get the
 * block face in gather_special.c.
 */
#include "arrow/batch.h"

#include "arrow/bits.h"
#include "arrow/layout.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow schema");
}

/* Copies metadata with the key of the interval set or removed. */
static int set_interval_mark(struct ArrowSchema *out, const char *metadata, bool is_set) {
  struct ArrowBuffer pairs;
  struct ArrowStringView key = ArrowCharView(LAYOUT_TYPE_KEY);
  NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderInit(&pairs, metadata));
  int code = is_set ? ArrowMetadataBuilderSet(&pairs, key, ArrowCharView(LAYOUT_TYPE_INTERVAL))
                    : ArrowMetadataBuilderRemove(&pairs, key);
  if (code == NANOARROW_OK) {
    int32_t n_pairs = 0;
    if (pairs.size_bytes >= (int64_t)sizeof n_pairs) {
      memcpy(&n_pairs, pairs.data, sizeof n_pairs);
    }
    code = ArrowSchemaSetMetadata(out, n_pairs > 0 ? (const char *)pairs.data : NULL);
  }
  ArrowBufferReset(&pairs);
  return code;
}

typedef enum face { FACE_BLOCK, FACE_CLIENT } face;

/* Writes the format of a field in the other face. `text` is where one is put that has to be made. */
static const char *format_in(face to, const struct ArrowSchema *field, char *text, size_t text_bytes) {
  const char *format = field->format;
  unsigned precision;
  unsigned scale;
  unsigned bits;
  if (layout_decimal(format, &precision, &scale, &bits) && precision <= 38) {
    if (to == FACE_CLIENT || precision > 18) {
      snprintf(text, text_bytes, "d:%u,%u", precision, scale);
    } else {
      snprintf(text, text_bytes, "d:%u,%u,%u", precision, scale, precision <= 9 ? 32u : 64u);
    }
    return text;
  }
  if (to == FACE_CLIENT) {
    return layout_is_interval(field) ? "tin" : format;
  }
  if (strcmp(format, "tin") == 0) {
    return "w:16";
  }
  if (format[0] == 'v') {
    return format[1] == 'u' ? "u" : "z";
  }
  if (strncmp(format, "+us", 3) == 0 || strncmp(format, "+ud", 3) == 0) {
    size_t used = (size_t)snprintf(text, text_bytes, "+us:");
    for (int64_t i = 0; i < field->n_children && used < text_bytes; i++) {
      used += (size_t)snprintf(text + used, text_bytes - used, i == 0 ? "%d" : ",%d", (int)i);
    }
    return text;
  }
  return format;
}

static int make_field(face to, const struct ArrowSchema *field, const char *name, struct ArrowSchema *out) {
  char text[600]; /* a union's 128 ids of up to four characters */
  const struct ArrowSchema *shape = field;
  const char *metadata = field->metadata;
  while (shape->dictionary != NULL) {
    shape = shape->dictionary;
    metadata = metadata == NULL ? shape->metadata : metadata;
  }
  ArrowSchemaInit(out);
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetFormat(out, format_in(to, shape, text, sizeof text)));
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, name == NULL ? "" : name));
  bool is_map = strcmp(shape->format, "+m") == 0;
  out->flags =
      field->flags & (is_map ? ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED : ARROW_FLAG_NULLABLE);
  bool was_interval = to == FACE_CLIENT && layout_is_interval(shape);
  if (was_interval || (to == FACE_BLOCK && strcmp(shape->format, "tin") == 0)) {
    NANOARROW_RETURN_NOT_OK(set_interval_mark(out, metadata, !was_interval));
  } else if (metadata != NULL) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetMetadata(out, metadata));
  }
  NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, shape->n_children));
  for (int64_t i = 0; i < shape->n_children; i++) {
    NANOARROW_RETURN_NOT_OK(make_field(to, shape->children[i], shape->children[i]->name, out->children[i]));
  }
  if (is_map) { /* by the standard; not every producer keeps to it */
    out->children[0]->flags = 0;
    out->children[0]->children[0]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  }
  return NANOARROW_OK;
}

static int make_root(face to, const struct ArrowSchema *schema, const char *const *names,
                     struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetFormat(out, "+s"));
  NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, ""));
  out->flags = 0;
  NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, schema->n_children));
  for (int64_t i = 0; i < schema->n_children; i++) {
    const char *name = names == NULL ? schema->children[i]->name : names[i];
    NANOARROW_RETURN_NOT_OK(make_field(to, schema->children[i], name, out->children[i]));
  }
  return NANOARROW_OK;
}

static hf_status make_schema(face to, const struct ArrowSchema *schema, const char *const *names,
                             struct ArrowSchema *out, hf_error *error) {
  arena *memory = arena_new();
  if (memory == NULL) {
    return no_memory(error);
  }
  layout checked; /* bounds depth and counts, so that the recursion above is safe */
  hf_status status = layout_of_schema(schema, memory, &checked, error);
  arena_free(memory);
  HF_TRY(status);
  struct ArrowSchema made = {0};
  if (make_root(to, schema, names, &made) != NANOARROW_OK) {
    if (made.release != NULL) {
      made.release(&made);
    }
    return no_memory(error);
  }
  *out = made;
  return HF_OK;
}

hf_status arrow_block_schema(const struct ArrowSchema *schema, struct ArrowSchema *out, hf_error *error) {
  return make_schema(FACE_BLOCK, schema, NULL, out, error);
}

hf_status arrow_client_schema(const struct ArrowSchema *block_schema, const char *const *names,
                              struct ArrowSchema *out, hf_error *error) {
  return make_schema(FACE_CLIENT, block_schema, names, out, error);
}

/* Of a decimal without the width of 128 bits, which may be said or not. */
static size_t decimal_length(const char *format) {
  size_t length = strlen(format);
  return length > 4 && strcmp(format + length - 4, ",128") == 0 ? length - 4 : length;
}

/* Two formats of a time stamp are alike when both have a time zone, or none. */
static bool formats_equal(const char *a, const char *b) {
  if (a[0] == 'd' && a[1] == ':' && b[0] == 'd' && b[1] == ':') {
    size_t length = decimal_length(a);
    return length == decimal_length(b) && strncmp(a, b, length) == 0;
  }
  if (strncmp(a, "ts", 2) == 0 && strlen(a) >= 4 && strncmp(a, b, 4) == 0) {
    return (a[4] == '\0') == (b[4] == '\0');
  }
  return strcmp(a, b) == 0;
}

bool arrow_schemas_alike(const struct ArrowSchema *a, const struct ArrowSchema *b) {
  if (!formats_equal(a->format, b->format) || a->n_children != b->n_children ||
      (a->dictionary == NULL) != (b->dictionary == NULL)) {
    return false;
  }
  for (int64_t i = 0; i < a->n_children; i++) {
    if (!arrow_schemas_alike(a->children[i], b->children[i])) {
      return false;
    }
  }
  return a->dictionary == NULL || arrow_schemas_alike(a->dictionary, b->dictionary);
}

/* -------------------------------------------------------------------- arrays */

enum { CLIENT_WIDTH = 16 }; /* of decimals and of month-day-nano */

typedef struct changed_array {
  struct ArrowArray original;
  const void *buffers[2];
  uint8_t *values;
} changed_array;

static void changed_release(struct ArrowArray *array) {
  changed_array *changed = array->private_data;
  if (changed->original.release != NULL) {
    changed->original.release(&changed->original);
  }
  mem_free(changed->values);
  mem_free(changed);
  array->release = NULL;
}

static hf_status interval_values(const uint8_t *from, uint8_t *to, hf_error *error) {
  int64_t microseconds;
  int64_t nanoseconds;
  memcpy(&microseconds, from + 8, sizeof microseconds);
  if (__builtin_mul_overflow(microseconds, (int64_t)1000, &nanoseconds)) {
    error_set(error, HF_E_OVERFLOW,
              "an INTERVAL does not fit into the nanoseconds of Arrow: %lld microseconds",
              (long long)microseconds);
    error_hint(error, "cast it to VARCHAR, or keep it within 292 years");
    return HF_E_OVERFLOW;
  }
  memcpy(to, from, 8);
  memcpy(to + 8, &nanoseconds, sizeof nanoseconds);
  return HF_OK;
}

static void decimal_values(const uint8_t *from, size_t width, uint8_t *to) {
  int64_t low = 0;
  if (width == 4) {
    int32_t narrow;
    memcpy(&narrow, from, sizeof narrow);
    low = narrow;
  } else {
    memcpy(&low, from, sizeof low);
  }
  int64_t high = low < 0 ? -1 : 0;
  memcpy(to, &low, sizeof low);
  memcpy(to + 8, &high, sizeof high);
}

/* Replaces the values of `array`; `width` 0 means an interval. */
static hf_status change(struct ArrowArray *array, size_t width, hf_error *error) {
  size_t rows = (size_t)array->offset + (size_t)array->length;
  changed_array *changed = mem_zalloc(1, sizeof *changed);
  uint8_t *values = mem_zalloc(rows, CLIENT_WIDTH);
  if (changed == NULL || values == NULL) {
    mem_free(changed);
    mem_free(values);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a column of the result");
  }
  const uint8_t *bitmap = array->null_count == 0 ? NULL : array->buffers[0];
  const uint8_t *from = array->buffers[1];
  hf_status status = HF_OK;
  for (size_t i = (size_t)array->offset; i < rows && status == HF_OK; i++) {
    if (bitmap != NULL && !bits_get(bitmap, i)) {
      continue;
    }
    if (width == 0) {
      status = interval_values(from + i * CLIENT_WIDTH, values + i * CLIENT_WIDTH, error);
    } else {
      decimal_values(from + i * width, width, values + i * CLIENT_WIDTH);
    }
  }
  if (status != HF_OK) {
    mem_free(changed);
    mem_free(values);
    return status;
  }
  changed->original = *array;
  changed->values = values;
  changed->buffers[0] = array->buffers[0];
  changed->buffers[1] = values;
  array->buffers = changed->buffers;
  array->private_data = changed;
  array->release = changed_release;
  return HF_OK;
}

static hf_status change_where_needed(const struct ArrowSchema *field, struct ArrowArray *array,
                                     hf_error *error) {
  unsigned precision;
  unsigned scale;
  unsigned bits;
  if (layout_is_interval(field)) {
    return change(array, 0, error);
  }
  if (layout_decimal(field->format, &precision, &scale, &bits) && bits < 128) {
    return change(array, bits / 8, error);
  }
  for (int64_t i = 0; i < array->n_children; i++) {
    HF_TRY(change_where_needed(field->children[i], array->children[i], error));
  }
  return HF_OK;
}

hf_status arrow_client_array(const struct ArrowSchema *block_schema, struct ArrowArray *in,
                             struct ArrowArray *out, hf_error *error) {
  hf_status status = change_where_needed(block_schema, in, error);
  if (status != HF_OK) {
    in->release(in);
    return status;
  }
  *out = *in;
  in->release = NULL;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Making Arrow schemas and streams, and writing values as text; random arrays are in made_array.c. */
#include "support/made_arrow.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- schemas */

static void schema_release(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i]->release != NULL) {
      schema->children[i]->release(schema->children[i]);
    }
    free(schema->children[i]);
  }
  free(schema->children);
  if (schema->dictionary != NULL) {
    schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
  }
  free((char *)(uintptr_t)schema->format);
  free((char *)(uintptr_t)schema->name);
  schema->release = NULL;
}

static struct ArrowSchema *schema_child(void) {
  struct ArrowSchema *child = calloc(1, sizeof *child);
  assert(child != NULL);
  return child;
}

static const char *parse(const char *text, int number, struct ArrowSchema *out) {
  size_t length = strcspn(text, "(<;)>");
  memset(out, 0, sizeof *out);
  char name[16];
  snprintf(name, sizeof name, "f%d", number);
  out->format = strndup(text, length);
  out->name = strdup(name);
  out->flags = ARROW_FLAG_NULLABLE;
  out->release = schema_release;
  text += length;
  if (*text == '<') {
    out->dictionary = schema_child();
    text = parse(text + 1, 0, out->dictionary);
    assert(*text == '>');
    return text + 1;
  }
  if (*text != '(') {
    return text;
  }
  do {
    out->children = realloc(out->children, (size_t)(out->n_children + 1) * sizeof(struct ArrowSchema *));
    assert(out->children != NULL);
    out->children[out->n_children] = schema_child();
    text = parse(text + 1, (int)out->n_children, out->children[out->n_children]);
    out->n_children++;
  } while (*text == ';');
  assert(*text == ')');
  return text + 1;
}

void made_schema(const char *text, struct ArrowSchema *out) {
  text = parse(text, 0, out);
  assert(*text == '\0');
}

/* -------------------------------------------------------------------- values */

static bool bit_at(const void *bits, int64_t at) {
  return (((const uint8_t *)bits)[at / 8] >> (at % 8)) & 1;
}

static int64_t number_at(const void *buffer, int64_t at, size_t width) {
  int64_t value = 0;
  memcpy(&value, (const uint8_t *)buffer + (size_t)at * width, width);
  return value;
}

static void hex(const uint8_t *bytes, size_t length, buf *out) {
  for (size_t i = 0; i < length; i++) {
    buf_printf(out, "%02x", bytes[i]);
  }
}

/* Decimals of all widths look alike: 16 bytes, sign extended. */
static void decimal_text(const char *format, const void *values, int64_t at, buf *out) {
  unsigned digits;
  unsigned scale;
  unsigned bits = 128;
  sscanf(format, "d:%u,%u,%u", &digits, &scale, &bits);
  size_t width = bits / 8;
  uint8_t value[16];
  const uint8_t *from = (const uint8_t *)values + (size_t)at * width;
  memset(value, (from[width - 1] & 0x80) != 0 ? 0xff : 0, sizeof value);
  memcpy(value, from, width);
  hex(value, sizeof value, out);
}

static size_t width_of(const char *format) {
  static const char *const formats[] = {"cC", "sS", "", "iIf", "", "", "", "lLg"};
  for (size_t i = 0; i < 8; i++) {
    if (format[1] == '\0' && strchr(formats[i], format[0]) != NULL) {
      return i + 1;
    }
  }
  if (strncmp(format, "w:", 2) == 0) {
    return (size_t)strtoul(format + 2, NULL, 10);
  }
  if (strcmp(format, "tin") == 0) {
    return 16;
  }
  return strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 || strcmp(format, "ttm") == 0 ||
                 strcmp(format, "tiM") == 0
             ? 4
             : 8;
}

static void bytes_text(const uint8_t *bytes, int64_t length, buf *out) {
  buf_printf(out, "\"%.*s\"", (int)length, length == 0 ? "" : (const char *)bytes);
}

static void view_text(const struct ArrowArray *array, int64_t at, buf *out) {
  const uint8_t *view = (const uint8_t *)array->buffers[1] + at * 16;
  int32_t fields[4];
  memcpy(fields, view, sizeof fields);
  const uint8_t *bytes =
      fields[0] <= 12 ? view + 4 : (const uint8_t *)array->buffers[2 + fields[2]] + fields[3];
  bytes_text(bytes, fields[0], out);
}

static void list_text(const struct ArrowSchema *element, const struct ArrowArray *elements, int64_t start,
                      int64_t end, buf *out) {
  buf_char(out, '[');
  for (int64_t i = start; i < end; i++) {
    buf_text(out, i == start ? "" : ",");
    made_value_text(element, elements, i, out);
  }
  buf_char(out, ']');
}

static int child_of_id(const char *format, int id) {
  int child = 0;
  for (const char *at = format + 4;; at++, child++) {
    if ((int)strtol(at, NULL, 10) == id) {
      return child;
    }
    at = strchr(at, ',');
    assert(at != NULL);
  }
}

static void union_text(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row,
                       buf *out) {
  bool is_dense = schema->format[2] == 'd';
  const int8_t *ids = array->buffers[array->n_buffers - (is_dense ? 2 : 1)];
  int64_t at = array->offset + row;
  int child = child_of_id(schema->format, ids[at]);
  int64_t child_row = is_dense ? ((const int32_t *)array->buffers[array->n_buffers - 1])[at] : at;
  buf buffer = {0};
  made_value_text(schema->children[child], array->children[child], child_row, &buffer);
  /* A union that is NULL has no tag of its own. */
  if (strcmp(buf_cstr(&buffer), "null") == 0) {
    buf_text(out, "null");
  } else {
    buf_printf(out, "#%d:%s", child, buf_cstr(&buffer));
  }
  buf_reset(&buffer);
}

static bool is_null(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at) {
  const char *format = schema->format;
  if (strncmp(format, "+u", 2) == 0) {
    return false;
  }
  return strcmp(format, "n") == 0 ||
         (array->null_count != 0 && array->buffers[0] != NULL && !bit_at(array->buffers[0], at));
}

static void nested_text(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row,
                        buf *out) {
  const char *format = schema->format;
  int64_t at = array->offset + row;
  if (strcmp(format, "+s") == 0) {
    buf_char(out, '{');
    for (int64_t i = 0; i < schema->n_children; i++) {
      buf_text(out, i == 0 ? "" : ",");
      made_value_text(schema->children[i], array->children[i], at, out);
    }
    buf_char(out, '}');
  } else if (strncmp(format, "+w:", 3) == 0) {
    int64_t size = strtol(format + 3, NULL, 10);
    list_text(schema->children[0], array->children[0], at * size, (at + 1) * size, out);
  } else if (strncmp(format, "+u", 2) == 0) {
    union_text(schema, array, row, out);
  } else {
    size_t width = strcmp(format, "+L") == 0 ? 8 : 4;
    list_text(schema->children[0], array->children[0], number_at(array->buffers[1], at, width),
              number_at(array->buffers[1], at + 1, width), out);
  }
}

void made_value_text(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row,
                     buf *out) {
  const char *format = schema->format;
  int64_t at = array->offset + row;
  if (is_null(schema, array, at)) {
    buf_text(out, "null");
  } else if (schema->dictionary != NULL) {
    int64_t index = number_at(array->buffers[1], at, width_of(format));
    made_value_text(schema->dictionary, array->dictionary, index, out);
  } else if (format[0] == '+') {
    nested_text(schema, array, row, out);
  } else if (strcmp(format, "b") == 0) {
    buf_text(out, bit_at(array->buffers[1], at) ? "true" : "false");
  } else if (format[0] == 'd') {
    decimal_text(format, array->buffers[1], at, out);
  } else if (format[0] == 'v') {
    view_text(array, at, out);
  } else if (strchr("uUzZ", format[0]) != NULL) {
    size_t width = format[0] == 'U' || format[0] == 'Z' ? 8 : 4;
    int64_t start = number_at(array->buffers[1], at, width);
    bytes_text((const uint8_t *)array->buffers[2] + start,
               number_at(array->buffers[1], at + 1, width) - start, out);
  } else {
    size_t width = width_of(format);
    hex((const uint8_t *)array->buffers[1] + (size_t)at * width, width, out);
  }
}

void made_rows_text(const struct ArrowSchema *schema, const struct ArrowArray *array, buf *out) {
  for (int64_t row = 0; row < array->length; row++) {
    for (int64_t i = 0; i < schema->n_children; i++) {
      buf_text(out, i == 0 ? "" : " ");
      made_value_text(schema->children[i], array->children[i], array->offset + row, out);
    }
    buf_char(out, '\n');
  }
}

/* ------------------------------------------------------------------- streams */

typedef struct given {
  struct ArrowSchema schema;
  struct ArrowArray *arrays;
  size_t n, next;
  bool fail_at_end;
} given;

/* Copies what made_schema makes. */
static void schema_copy_to(const struct ArrowSchema *from, struct ArrowSchema *to) {
  *to = *from;
  to->format = strdup(from->format);
  to->name = from->name == NULL ? NULL : strdup(from->name);
  to->release = schema_release;
  to->children = calloc((size_t)from->n_children + 1, sizeof(struct ArrowSchema *));
  for (int64_t i = 0; i < from->n_children; i++) {
    to->children[i] = schema_child();
    schema_copy_to(from->children[i], to->children[i]);
  }
  if (from->dictionary != NULL) {
    to->dictionary = schema_child();
    schema_copy_to(from->dictionary, to->dictionary);
  }
}

static int given_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  given *g = stream->private_data;
  schema_copy_to(&g->schema, out);
  return 0;
}

static int given_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  given *g = stream->private_data;
  memset(out, 0, sizeof *out);
  if (g->next == g->n) {
    return g->fail_at_end ? EIO : 0;
  }
  *out = g->arrays[g->next];
  memset(&g->arrays[g->next++], 0, sizeof *out);
  return 0;
}

static const char *given_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return "the producer broke";
}

static void given_release(struct ArrowArrayStream *stream) {
  given *g = stream->private_data;
  for (; g->next < g->n; g->next++) {
    g->arrays[g->next].release(&g->arrays[g->next]);
  }
  g->schema.release(&g->schema);
  free(g->arrays);
  free(g);
  stream->release = NULL;
}

void made_stream(struct ArrowSchema *schema, struct ArrowArray *arrays, size_t n, bool fail_at_end,
                 struct ArrowArrayStream *out) {
  given *g = calloc(1, sizeof *g);
  assert(g != NULL);
  g->schema = *schema;
  schema->release = NULL;
  g->arrays = calloc(n + 1, sizeof *arrays);
  for (size_t i = 0; i < n; i++) {
    g->arrays[i] = arrays[i];
  }
  g->n = n;
  g->fail_at_end = fail_at_end;
  *out = (struct ArrowArrayStream){.get_schema = given_schema,
                                   .get_next = given_next,
                                   .get_last_error = given_error,
                                   .release = given_release,
                                   .private_data = g};
}

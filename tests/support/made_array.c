/* SPDX-License-Identifier: Apache-2.0 */
/* Random Arrow arrays of any layout (made_arrow.h). */
#include "support/made_arrow.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
  uint64_t state;
  const made_options *options;
} maker;

static uint64_t random_next(maker *m) {
  m->state ^= m->state << 13;
  m->state ^= m->state >> 7;
  m->state ^= m->state << 17;
  return m->state;
}

static uint64_t random_below(maker *m, uint64_t limit) {
  return random_next(m) % limit;
}

/* Buffers are freed with the array; memory of at least a word, so that a reader past the end is caught by ASan. */
typedef struct made {
  const void *buffers[6];
  size_t n_buffers;
} made;

static void array_release(struct ArrowArray *array) {
  made *own = array->private_data;
  for (size_t i = 0; i < own->n_buffers; i++) {
    free((void *)(uintptr_t)own->buffers[i]);
  }
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release != NULL) {
      array->children[i]->release(array->children[i]);
    }
    free(array->children[i]);
  }
  free(array->children);
  if (array->dictionary != NULL) {
    array->dictionary->release(array->dictionary);
    free(array->dictionary);
  }
  free(own);
  array->release = NULL;
}

static void *take(size_t bytes) {
  void *memory = calloc(1, bytes == 0 ? 1 : bytes);
  assert(memory != NULL);
  return memory;
}

static void make(maker *m, const struct ArrowSchema *schema, int64_t rows, struct ArrowArray *out);

static struct ArrowArray *child_of(maker *m, const struct ArrowSchema *schema, int64_t rows) {
  struct ArrowArray *child = take(sizeof *child);
  make(m, schema, rows, child);
  return child;
}

static void add_children(maker *m, const struct ArrowSchema *schema, const int64_t *rows,
                         struct ArrowArray *out) {
  out->n_children = schema->n_children;
  out->children = take((size_t)schema->n_children * sizeof(struct ArrowArray *));
  for (int64_t i = 0; i < schema->n_children; i++) {
    out->children[i] = child_of(m, schema->children[i], rows[i]);
  }
}

/* All rows the same number. */
static void add_equal_children(maker *m, const struct ArrowSchema *schema, int64_t rows,
                               struct ArrowArray *out) {
  int64_t each[128];
  for (int64_t i = 0; i < schema->n_children; i++) {
    each[i] = rows;
  }
  add_children(m, schema, each, out);
}

static uint8_t *validity(maker *m, const struct ArrowSchema *schema, int64_t all, struct ArrowArray *out) {
  if (strcmp(schema->format, "n") == 0) {
    out->null_count = out->length;
    return NULL;
  }
  if (m->options->null_percent == 0) {
    return NULL;
  }
  uint8_t *bits = take((size_t)(all + 7) / 8);
  int64_t nulls = 0;
  for (int64_t i = 0; i < all; i++) {
    bool is_valid = random_below(m, 100) >= m->options->null_percent;
    bits[i / 8] |= (uint8_t)(is_valid << (i % 8));
    nulls += i >= out->offset && !is_valid;
  }
  out->null_count = m->options->unknown_null_count ? -1 : nulls;
  return bits;
}

static void put_number(uint8_t *to, int64_t at, size_t width, uint64_t value) {
  memcpy(to + (size_t)at * width, &value, width);
}

/* Offsets that start at `start` and grow by up to `most` a row; returns the last. */
static uint64_t *lengths(maker *m, int64_t all, uint64_t most, uint64_t *end) {
  uint64_t *offsets = take((size_t)(all + 1) * sizeof *offsets);
  offsets[0] = random_below(m, 3);
  for (int64_t i = 0; i < all; i++) {
    offsets[i + 1] = offsets[i] + random_below(m, most + 1);
  }
  *end = offsets[all];
  return offsets;
}

static uint8_t *narrow(const uint64_t *offsets, int64_t n, size_t width) {
  uint8_t *out = take((size_t)n * width);
  for (int64_t i = 0; i < n; i++) {
    put_number(out, i, width, offsets[i]);
  }
  return out;
}

static uint8_t *letters(maker *m, size_t length) {
  uint8_t *text = take(length);
  for (size_t i = 0; i < length; i++) {
    text[i] = (uint8_t)('a' + random_below(m, 26));
  }
  return text;
}

static void make_bytes(maker *m, const char *format, int64_t all, made *own) {
  uint64_t end = 0;
  size_t width = format[0] == 'U' || format[0] == 'Z' ? 8 : 4;
  uint64_t *offsets = lengths(m, all, 20, &end);
  own->buffers[1] = narrow(offsets, all + 1, width);
  own->buffers[2] = letters(m, end);
  own->n_buffers = 3;
  free(offsets);
}

static void make_views(maker *m, int64_t all, made *own) {
  enum { LONGEST = 40 };
  uint8_t *views = take((size_t)all * 16);
  size_t size = (size_t)all * LONGEST + 1;
  uint8_t *bytes = letters(m, size);
  for (int64_t i = 0; i < all; i++) {
    int32_t fields[4] = {(int32_t)random_below(m, LONGEST), 0, (int32_t)random_below(m, 2),
                         (int32_t)(i * LONGEST)};
    memcpy(views + i * 16, fields, sizeof fields);
    memcpy(views + i * 16 + 4, bytes + i * LONGEST, fields[0] <= 12 ? (size_t)fields[0] : 4);
  }
  int64_t *sizes = take(2 * sizeof *sizes);
  sizes[0] = sizes[1] = (int64_t)size;
  own->buffers[1] = views;
  own->buffers[2] = bytes;
  own->buffers[3] = take(size);
  memcpy((void *)(uintptr_t)own->buffers[3], bytes, size);
  own->buffers[4] = sizes;
  own->n_buffers = 5;
}

static void make_list(maker *m, const struct ArrowSchema *schema, int64_t all, made *own,
                      struct ArrowArray *out) {
  uint64_t end = 0;
  uint64_t *offsets = lengths(m, all, 4, &end);
  own->buffers[1] = narrow(offsets, all + 1, strcmp(schema->format, "+L") == 0 ? 8 : 4);
  own->n_buffers = 2;
  free(offsets);
  add_equal_children(m, schema, (int64_t)end + 2, out);
}

static int id_of_child(const char *format, uint64_t child) {
  const char *at = format + 4;
  for (; child > 0; child--) {
    at = strchr(at, ',') + 1;
  }
  return (int)strtol(at, NULL, 10);
}

static void make_union(maker *m, const struct ArrowSchema *schema, int64_t all, made *own,
                       struct ArrowArray *out) {
  bool is_dense = schema->format[2] == 'd';
  int64_t used[128] = {0};
  uint8_t *ids = take((size_t)all);
  int32_t *offsets = take((size_t)all * sizeof *offsets);
  for (int64_t i = 0; i < all; i++) {
    uint64_t child = random_below(m, (uint64_t)schema->n_children);
    ids[i] = (uint8_t)id_of_child(schema->format, child);
    offsets[i] = (int32_t)used[child]++;
  }
  own->buffers[0] = ids;
  own->buffers[1] = offsets;
  own->n_buffers = 2;
  out->n_buffers = is_dense ? 2 : 1;
  if (is_dense) {
    add_children(m, schema, used, out);
  } else {
    add_equal_children(m, schema, all, out);
  }
}

/* Values of a fixed width; decimals have a sign and few digits. */
static void make_fixed(maker *m, const char *format, int64_t all, made *own) {
  size_t width = 16;
  unsigned digits = 0;
  unsigned scale = 0;
  unsigned bits = 128;
  if (sscanf(format, "d:%u,%u,%u", &digits, &scale, &bits) >= 2) {
    width = bits / 8;
  } else if (strncmp(format, "w:", 2) == 0) {
    width = (size_t)strtoul(format + 2, NULL, 10);
  } else if (format[1] == '\0') {
    width = strchr("cC", format[0]) ? 1 : strchr("sS", format[0]) ? 2 : strchr("iIf", format[0]) ? 4 : 8;
  } else if (strcmp(format, "tin") != 0) {
    width = strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 || strcmp(format, "ttm") == 0 ||
                    strcmp(format, "tiM") == 0
                ? 4
                : 8;
  }
  uint8_t *values = take((size_t)all * width);
  for (size_t i = 0; i < (size_t)all * width; i++) {
    values[i] = (uint8_t)random_next(m);
  }
  for (int64_t i = 0; digits > 0 && i < all; i++) {
    int64_t value = (int64_t)random_below(m, digits < 4 ? 19 : 19999) - (digits < 4 ? 9 : 9999);
    memset(values + (size_t)i * width, value < 0 ? 0xff : 0, width);
    memcpy(values + (size_t)i * width, &value, width < 8 ? width : 8);
  }
  own->buffers[1] = values;
  own->n_buffers = 2;
}

static void make_dictionary(maker *m, const struct ArrowSchema *schema, int64_t all, made *own,
                            struct ArrowArray *out) {
  enum { VALUES = 11 };
  out->dictionary = child_of(m, schema->dictionary, VALUES);
  size_t width = strchr("cC", schema->format[0])   ? 1
                 : strchr("sS", schema->format[0]) ? 2
                 : strchr("iI", schema->format[0]) ? 4
                                                   : 8;
  uint8_t *indices = take((size_t)all * width);
  for (int64_t i = 0; i < all; i++) {
    put_number(indices, i, width, random_below(m, VALUES));
  }
  own->buffers[1] = indices;
  own->n_buffers = 2;
}

static void make(maker *m, const struct ArrowSchema *schema, int64_t rows, struct ArrowArray *out) {
  const char *format = schema->format;
  made *own = take(sizeof *own);
  *out = (struct ArrowArray){.length = rows, .release = array_release, .private_data = own};
  out->offset = m->options->with_offsets ? (int64_t)random_below(m, 12) : 0;
  int64_t all = out->offset + rows;
  out->buffers = own->buffers;
  out->n_buffers = -1;
  own->n_buffers = 1;
  if (schema->dictionary != NULL) {
    make_dictionary(m, schema, all, own, out);
  } else if (strcmp(format, "+s") == 0) {
    add_equal_children(m, schema, all, out);
  } else if (strncmp(format, "+w:", 3) == 0) {
    add_equal_children(m, schema, all * strtol(format + 3, NULL, 10), out);
  } else if (strncmp(format, "+u", 2) == 0) {
    make_union(m, schema, all, own, out);
    return;
  } else if (format[0] == '+') {
    make_list(m, schema, all, own, out);
  } else if (strchr("uUzZ", format[0]) != NULL) {
    make_bytes(m, format, all, own);
  } else if (format[0] == 'v') {
    make_views(m, all, own);
  } else if (strcmp(format, "b") == 0) {
    own->buffers[1] = letters(m, (size_t)(all + 7) / 8);
    own->n_buffers = 2;
  } else if (strcmp(format, "n") == 0) {
    own->n_buffers = 0;
  } else {
    make_fixed(m, format, all, own);
  }
  out->n_buffers = (int64_t)own->n_buffers;
  own->buffers[0] = validity(m, schema, all, out);
}

void made_array(const struct ArrowSchema *schema, const made_options *options, struct ArrowArray *out) {
  maker m = {.state = options->seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .options = options};
  made *own = take(sizeof *own);
  *out = (struct ArrowArray){.length = options->rows, .release = array_release, .private_data = own};
  out->offset = options->with_offsets ? (int64_t)random_below(&m, 12) : 0;
  out->n_buffers = 1;
  out->buffers = own->buffers;
  own->n_buffers = 1;
  add_equal_children(&m, schema, out->offset + options->rows, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema messages of files with dictionaries, which nanoarrow does not write. A
 * flatbuffer is laid out from front to back: a table, then what it refers to,
 * whose position is filled in when it is known. All tables start at multiples of
 * 8, their vtables stand right before them.
 * Source: https://github.com/apache/arrow/blob/main/format/Schema.fbs
 */
#include "arrow/ipc.h"

#include "arrow/batch_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>

typedef struct writer {
  buf out; /* positions count from its start */
  hf_error *error;
} writer;

/* ---------------------------------------------------------------- flatbuffers */

static void pad_to(writer *w, size_t multiple) {
  while (w->out.length % multiple != 0 && !w->out.failed) {
    buf_char(&w->out, '\0');
  }
}

static void put_at(writer *w, size_t at, const void *bytes, size_t length) {
  if (!w->out.failed) {
    memcpy((char *)w->out.data + at, bytes, length);
  }
}

/* Lets the position at `at` lead to the end of what is there. */
static void refer(writer *w, size_t at) {
  uint32_t distance = (uint32_t)(w->out.length - at);
  put_at(w, at, &distance, sizeof distance);
}

/* A table whose fields have the given distances from its start (0: absent); returns its start. It is zeroed. */
static size_t table_begin(writer *w, const uint16_t *distances, size_t n_fields, size_t table_bytes) {
  uint16_t sizes[2] = {(uint16_t)(4 + n_fields * 2), (uint16_t)table_bytes};
  pad_to(w, 8);
  while ((w->out.length + sizes[0]) % 8 != 0 && !w->out.failed) {
    buf_char(&w->out, '\0');
  }
  size_t vtable = w->out.length;
  buf_append(&w->out, sizes, sizeof sizes);
  buf_append(&w->out, distances, n_fields * sizeof *distances);
  size_t table = w->out.length;
  uint32_t distance = (uint32_t)(table - vtable);
  buf_append(&w->out, &distance, sizeof distance);
  for (size_t i = sizeof distance; i < table_bytes; i++) {
    buf_char(&w->out, '\0');
  }
  return table;
}

static void put_text(writer *w, const char *text, size_t length) {
  uint32_t count = (uint32_t)length;
  pad_to(w, 4);
  buf_append(&w->out, &count, sizeof count);
  buf_append(&w->out, text, length);
  buf_char(&w->out, '\0');
}

/* A vector of `count` positions, or of numbers, still zero; returns where its elements start. */
static size_t vector_begin(writer *w, size_t count) {
  static const uint8_t nothing[4] = {0};
  uint32_t number = (uint32_t)count;
  pad_to(w, 4);
  buf_append(&w->out, &number, sizeof number);
  size_t elements = w->out.length;
  for (size_t i = 0; i < count; i++) {
    buf_append(&w->out, nothing, sizeof nothing);
  }
  return elements;
}

static void start_text(writer *w, size_t at, const char *text, size_t length) {
  pad_to(w, 4);
  refer(w, at);
  put_text(w, text, length);
}

/* ---------------------------------------------------------------------- types */

/* A type's table: up to three numbers or, in their place, a text or a vector of numbers. */
typedef struct type_table {
  uint8_t kind; /* of the union "Type" */
  size_t n;
  uint8_t widths[3]; /* 1, 2 or 4: a number; 0: what is behind a position */
  int32_t values[3];
  const char *text; /* behind a position: a time zone, or the ids of a union */
  bool is_ids;
} type_table;

static int unit_of(char letter, const char *letters) {
  const char *at = letter == '\0' ? NULL : strchr(letters, letter);
  return at == NULL ? -1 : (int)(at - letters);
}

static const struct {
  const char *format;
  uint8_t kind;
} plain_kinds[] = {{"n", 1},   {"z", 4},  {"u", 5},  {"b", 6},  {"+l", 12},
                   {"+s", 13}, {"Z", 19}, {"U", 20}, {"+L", 21}};

static const struct {
  const char *format;
  int32_t bits, is_signed;
} int_kinds[] = {{"c", 8, 1},  {"C", 8, 0},  {"s", 16, 1}, {"S", 16, 0},
                 {"i", 32, 1}, {"I", 32, 0}, {"l", 64, 1}, {"L", 64, 0}};

static bool plain_type(const char *format, type_table *out) {
  for (size_t i = 0; i < sizeof plain_kinds / sizeof plain_kinds[0]; i++) {
    if (strcmp(format, plain_kinds[i].format) == 0) {
      *out = (type_table){.kind = plain_kinds[i].kind};
      return true;
    }
  }
  for (size_t i = 0; i < sizeof int_kinds / sizeof int_kinds[0]; i++) {
    if (strcmp(format, int_kinds[i].format) == 0) {
      *out = (type_table){
          .kind = 2, .n = 2, .widths = {4, 1}, .values = {int_kinds[i].bits, int_kinds[i].is_signed}};
      return true;
    }
  }
  if (strlen(format) == 1 && unit_of(format[0], "efg") >= 0) {
    *out = (type_table){.kind = 3, .n = 1, .widths = {2}, .values = {unit_of(format[0], "efg")}};
    return true;
  }
  return false;
}

static bool time_type(const char *format, type_table *out) {
  int unit = format[1] == '\0' ? -1 : unit_of(format[2], "smun");
  if (strncmp(format, "td", 2) == 0) {
    *out = (type_table){.kind = 8, .n = 1, .widths = {2}, .values = {unit_of(format[2], "Dm")}};
  } else if (strncmp(format, "tt", 2) == 0) {
    *out = (type_table){.kind = 9, .n = 2, .widths = {2, 4}, .values = {unit, unit < 2 ? 32 : 64}};
  } else if (strncmp(format, "ts", 2) == 0 && unit >= 0) {
    const char *zone = format + (format[3] == ':' ? 4 : 3);
    *out = (type_table){
        .kind = 10, .n = *zone == '\0' ? 1 : 2, .widths = {2, 0}, .values = {unit}, .text = zone};
  } else if (strncmp(format, "tD", 2) == 0) {
    *out = (type_table){.kind = 18, .n = 1, .widths = {2}, .values = {unit}};
  } else if (strncmp(format, "ti", 2) == 0) {
    *out = (type_table){.kind = 11, .n = 1, .widths = {2}, .values = {unit_of(format[2], "MDn")}};
  } else {
    return false;
  }
  return out->values[0] >= 0;
}

static bool sized_type(const struct ArrowSchema *field, type_table *out) {
  const char *format = field->format;
  unsigned precision;
  unsigned scale;
  unsigned bits;
  if (layout_decimal(format, &precision, &scale, &bits)) {
    *out = (type_table){.kind = 7,
                        .n = 3,
                        .widths = {4, 4, 4},
                        .values = {(int32_t)precision, (int32_t)scale, (int32_t)bits}};
  } else if (strncmp(format, "w:", 2) == 0) {
    *out = (type_table){.kind = 15, .n = 1, .widths = {4}, .values = {(int32_t)strtol(format + 2, NULL, 10)}};
  } else if (strncmp(format, "+w:", 3) == 0) {
    *out = (type_table){.kind = 16, .n = 1, .widths = {4}, .values = {(int32_t)strtol(format + 3, NULL, 10)}};
  } else if (strcmp(format, "+m") == 0) {
    *out = (type_table){
        .kind = 17, .n = 1, .widths = {1}, .values = {(field->flags & ARROW_FLAG_MAP_KEYS_SORTED) != 0}};
  } else if (strncmp(format, "+us:", 4) == 0) {
    *out = (type_table){.kind = 14, .n = 2, .widths = {2, 0}, .text = format + 4, .is_ids = true};
  } else {
    return false;
  }
  return true;
}

static void put_ids(writer *w, size_t at, const char *ids, size_t count) {
  pad_to(w, 4);
  refer(w, at);
  size_t elements = vector_begin(w, count);
  for (size_t i = 0; i < count; i++) {
    char *end = NULL;
    int32_t id = (int32_t)strtol(ids, &end, 10);
    put_at(w, elements + i * sizeof id, &id, sizeof id);
    ids = *end == ',' ? end + 1 : end;
  }
}

/* Writes the table of a type; all of its fields are there, also those of the default value. */
static void put_type(writer *w, size_t at, const type_table *type, size_t n_children) {
  enum { FIELD_BYTES = 4 };
  static const uint16_t distances[] = {4, 8, 12};
  size_t table = table_begin(w, distances, type->n, 4 + type->n * FIELD_BYTES);
  uint32_t distance = (uint32_t)(table - at);
  put_at(w, at, &distance, sizeof distance);
  for (size_t i = 0; i < type->n; i++) {
    size_t field = table + distances[i];
    if (type->widths[i] > 0) {
      put_at(w, field, &type->values[i], type->widths[i]);
    } else if (type->is_ids) {
      put_ids(w, field, type->text, n_children);
    } else {
      start_text(w, field, type->text, strlen(type->text));
    }
  }
}

/* --------------------------------------------------------------------- fields */

static void put_metadata(writer *w, size_t at, const char *metadata) {
  static const uint16_t distances[] = {4, 8};
  struct ArrowMetadataReader pairs;
  if (ArrowMetadataReaderInit(&pairs, metadata) != NANOARROW_OK) {
    return;
  }
  size_t count = (size_t)pairs.remaining_keys;
  pad_to(w, 4);
  refer(w, at);
  size_t elements = vector_begin(w, count);
  for (size_t i = 0; i < count; i++) {
    struct ArrowStringView key;
    struct ArrowStringView value;
    if (ArrowMetadataReaderRead(&pairs, &key, &value) != NANOARROW_OK) {
      return;
    }
    size_t table = table_begin(w, distances, 2, 12);
    uint32_t distance = (uint32_t)(table - (elements + i * 4));
    put_at(w, elements + i * 4, &distance, sizeof distance);
    start_text(w, table + 4, key.data, (size_t)key.size_bytes);
    start_text(w, table + 8, value.data, (size_t)value.size_bytes);
  }
}

/* DictionaryEncoding: id, type of the indices; the kind and that it is not ordered are defaults. */
static void put_encoding(writer *w, size_t at, uint64_t id, size_t code_bytes) {
  static const uint16_t distances[] = {8, 4};
  type_table codes = {.kind = 2, .n = 2, .widths = {4, 1}, .values = {(int32_t)code_bytes * 8, 0}};
  size_t table = table_begin(w, distances, 2, 16);
  uint32_t distance = (uint32_t)(table - at);
  put_at(w, at, &distance, sizeof distance);
  put_at(w, table + 8, &id, sizeof id);
  put_type(w, table + 4, &codes, 0);
}

static hf_status put_fields(writer *w, size_t at, const struct ArrowSchema *parent,
                            const uint8_t *code_bytes);

static hf_status put_field(writer *w, size_t at, const struct ArrowSchema *field, uint64_t id,
                           size_t code_bytes) {
  enum {
    NAME = 4,
    TYPE = 8,
    DICTIONARY = 12,
    CHILDREN = 16,
    METADATA = 20,
    NULLABLE = 24,
    KIND = 25,
    BYTES = 28
  };
  bool has_metadata = field->metadata != NULL;
  const uint16_t distances[] = {
      NAME, NULLABLE, KIND, TYPE, code_bytes > 0 ? DICTIONARY : 0, CHILDREN, has_metadata ? METADATA : 0};
  type_table type;
  if (!plain_type(field->format, &type) && !time_type(field->format, &type) && !sized_type(field, &type)) {
    return error_set(w->error, HF_E_UNSUPPORTED, "an Arrow schema cannot be written: %s", field->format);
  }
  size_t table = table_begin(w, distances, 7, BYTES);
  uint32_t distance = (uint32_t)(table - at);
  uint8_t nullable = (field->flags & ARROW_FLAG_NULLABLE) != 0;
  put_at(w, at, &distance, sizeof distance);
  put_at(w, table + NULLABLE, &nullable, 1);
  put_at(w, table + KIND, &type.kind, 1);
  const char *name = field->name == NULL ? "" : field->name;
  start_text(w, table + NAME, name, strlen(name));
  put_type(w, table + TYPE, &type, (size_t)field->n_children);
  if (code_bytes > 0) {
    put_encoding(w, table + DICTIONARY, id, code_bytes);
  }
  HF_TRY(put_fields(w, table + CHILDREN, field, NULL));
  if (has_metadata) {
    put_metadata(w, table + METADATA, field->metadata);
  }
  return HF_OK;
}

/* Writes the children of a field, or of the root, as a vector of tables. */
static hf_status put_fields(writer *w, size_t at, const struct ArrowSchema *parent,
                            const uint8_t *code_bytes) {
  pad_to(w, 4);
  refer(w, at);
  size_t elements = vector_begin(w, (size_t)parent->n_children);
  for (size_t i = 0; i < (size_t)parent->n_children; i++) {
    HF_TRY(put_field(w, elements + i * 4, parent->children[i], i, code_bytes == NULL ? 0 : code_bytes[i]));
  }
  return HF_OK;
}

static hf_status put_message(writer *w, const struct ArrowSchema *schema, const uint8_t *code_bytes) {
  enum { VERSION_5 = 4, IS_SCHEMA = 1, FIELDS = 4 };
  static const uint16_t message_distances[] = {8, 10, 4, 0};
  static const uint16_t schema_distances[] = {0, FIELDS};
  uint16_t version = VERSION_5;
  uint8_t type = IS_SCHEMA;
  buf_append(&w->out, "\0\0\0", 4); /* the position of the message */
  size_t message = table_begin(w, message_distances, 4, 12);
  uint32_t root = (uint32_t)message;
  put_at(w, 0, &root, sizeof root);
  put_at(w, message + 8, &version, sizeof version);
  put_at(w, message + 10, &type, sizeof type);
  size_t header = table_begin(w, schema_distances, 2, 8);
  uint32_t distance = (uint32_t)(header - (message + 4));
  put_at(w, message + 4, &distance, sizeof distance);
  return put_fields(w, header + FIELDS, schema, code_bytes);
}

hf_status ipc_write_coded_schema(const struct ArrowSchema *block_schema, const uint8_t *code_bytes, buf *out,
                                 hf_error *error) {
  writer w = {.error = error};
  hf_status status = put_message(&w, block_schema, code_bytes);
  if (status == HF_OK && w.out.failed) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  }
  if (status == HF_OK) {
    pad_to(&w, 8);
    status = w.out.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message")
                          : ipc_append_header((const uint8_t *)w.out.data, w.out.length, out, error);
  }
  buf_reset(&w.out);
  return status;
}

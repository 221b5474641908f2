/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema messages. Written by nanoarrow; read here, since nanoarrow asserts that
 * optional parts are there (found by fuzzing: headers, types and metadata that
 * are not). What was read is run through the reader of layouts before it is
 * believed.
 * Source: https://github.com/apache/arrow/blob/main/format/Schema.fbs
 */
#include "arrow/ipc.h"

#include "arrow/batch_internal.h"
#include "arrow/flatbuffer.h"

#include <errno.h>
#include <string.h>

#include <nanoarrow/nanoarrow_ipc.h>

enum { PREFIX_BYTES = 8, TABLE_WIDTH = 4 };

/* ------------------------------------------------------------------- writing */

hf_status ipc_write_schema(const struct ArrowSchema *block_schema, buf *out, hf_error *error) {
  struct ArrowIpcEncoder encoder;
  struct ArrowError detail = {{0}};
  if (ArrowIpcEncoderInit(&encoder) != NANOARROW_OK) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  }
  struct ArrowBuffer header;
  ArrowBufferInit(&header);
  hf_status status = HF_OK;
  int code = ArrowIpcEncoderEncodeSchema(&encoder, block_schema, &detail);
  if (code == NANOARROW_OK) {
    code = ArrowIpcEncoderFinalizeBuffer(&encoder, 0, &header);
  }
  if (code == ENOMEM) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  } else if (code != NANOARROW_OK) {
    status = error_set(error, HF_E_UNSUPPORTED, "an Arrow schema cannot be written: %s", detail.message);
  } else {
    status = ipc_append_header(header.data, (size_t)header.size_bytes, out, error);
  }
  ArrowBufferReset(&header);
  ArrowIpcEncoderReset(&encoder);
  return status;
}

/* ------------------------------------------------------------------- reading */

typedef struct schema_reader {
  size_t fields; /* read so far: tables may be referred to more than once */
  hf_error *error;
} schema_reader;

static hf_status damaged(const schema_reader *r, const char *what) {
  return error_set(r->error, HF_E_BLOCK_CORRUPT, "an Arrow schema is damaged: %s", what);
}

static hf_status no_memory(const schema_reader *r) {
  return error_set(r->error, HF_E_OUT_OF_MEMORY, "no memory to read an Arrow schema");
}

/* The union "Type" of Schema.fbs. */
enum {
  KIND_NULL = 1,
  KIND_INT,
  KIND_FLOAT,
  KIND_BINARY,
  KIND_TEXT,
  KIND_BOOL,
  KIND_DECIMAL,
  KIND_DATE,
  KIND_TIME,
  KIND_TIMESTAMP,
  KIND_INTERVAL,
  KIND_LIST,
  KIND_STRUCT,
  KIND_UNION,
  KIND_FIXED_BINARY,
  KIND_FIXED_LIST,
  KIND_MAP,
  KIND_DURATION,
  KIND_LARGE_BINARY,
  KIND_LARGE_TEXT,
  KIND_LARGE_LIST
};

static const char *const plain_formats[] = {
    [KIND_NULL] = "n",       [KIND_BINARY] = "z",     [KIND_TEXT] = "u", [KIND_BOOL] = "b",
    [KIND_LIST] = "+l",      [KIND_STRUCT] = "+s",    [KIND_MAP] = "+m", [KIND_LARGE_BINARY] = "Z",
    [KIND_LARGE_TEXT] = "U", [KIND_LARGE_LIST] = "+L"};

static int16_t i16_of(const flat_table *type, unsigned field, int16_t value) {
  return flat_scalar(type, field, &value, sizeof value) ? value : -1;
}

static int32_t i32_of(const flat_table *type, unsigned field, int32_t value) {
  return flat_scalar(type, field, &value, sizeof value) ? value : -1;
}

/* Appends the letter of a value, or '?', which is of no format. */
static void put_letter(buf *format, const char *letters, int value) {
  buf_char(format, value >= 0 && value < (int)strlen(letters) ? letters[value] : '?');
}

static void int_format(const flat_table *type, buf *format) {
  uint8_t is_signed = 0;
  int32_t bits = i32_of(type, 0, 0);
  int letter = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : bits == 64 ? 3 : -1;
  bool is_read = flat_scalar(type, 1, &is_signed, sizeof is_signed);
  put_letter(format, is_signed ? "csil" : "CSIL", is_read ? letter : -1);
}

static void timestamp_format(const flat_table *type, buf *format) {
  const uint8_t *zone;
  size_t length;
  buf_text(format, "ts");
  put_letter(format, "smun", i16_of(type, 0, 0));
  buf_char(format, ':');
  if (flat_vector(type, 1, 1, &zone, &length)) {
    buf_append(format, zone, length);
  }
}

static void union_format(const flat_table *type, size_t n_children, buf *format) {
  const uint8_t *ids;
  size_t count;
  buf_text(format, i16_of(type, 0, 0) == 0 ? "+us:" : "+ud:");
  if (!flat_vector(type, 1, sizeof(int32_t), &ids, &count)) {
    return;
  }
  size_t n = flat_has(type, 1) ? count : n_children; /* without ids they are the children's numbers */
  for (size_t i = 0; i < n && i <= 128; i++) {
    int32_t id = (int32_t)i;
    if (flat_has(type, 1)) {
      memcpy(&id, ids + i * sizeof id, sizeof id);
    }
    buf_printf(format, i == 0 ? "%d" : ",%d", id);
  }
}

/* Writes the format of a field's type; what is no type is left for the reader of layouts to refuse. */
static void type_format(uint8_t kind, const flat_table *type, size_t n_children, buf *format) {
  switch (kind) {
    case KIND_INT:
      int_format(type, format);
      return;
    case KIND_FLOAT:
      put_letter(format, "efg", i16_of(type, 0, 0));
      return;
    case KIND_DECIMAL:
      buf_printf(format, "d:%d,%d,%d", i32_of(type, 0, 0), i32_of(type, 1, 0), i32_of(type, 2, 128));
      return;
    case KIND_DATE:
      buf_text(format, "td");
      put_letter(format, "Dm", i16_of(type, 0, 1));
      return;
    case KIND_TIME:
      buf_text(format, "tt");
      put_letter(format, "smun", i16_of(type, 0, 1));
      return;
    case KIND_TIMESTAMP:
      timestamp_format(type, format);
      return;
    case KIND_INTERVAL:
      buf_text(format, "ti");
      put_letter(format, "MDn", i16_of(type, 0, 0));
      return;
    case KIND_DURATION:
      buf_text(format, "tD");
      put_letter(format, "smun", i16_of(type, 0, 1));
      return;
    case KIND_UNION:
      union_format(type, n_children, format);
      return;
    case KIND_FIXED_BINARY:
      buf_printf(format, "w:%d", i32_of(type, 0, 0));
      return;
    case KIND_FIXED_LIST:
      buf_printf(format, "+w:%d", i32_of(type, 0, 0));
      return;
    default:
      buf_text(format, kind < sizeof plain_formats / sizeof(char *) && plain_formats[kind] != NULL
                           ? plain_formats[kind]
                           : "?");
      return;
  }
}

static hf_status set_format(const schema_reader *r, const flat_table *field, size_t n_children,
                            struct ArrowSchema *out) {
  enum { TYPE_KIND = 2, TYPE = 3 };
  uint8_t kind = 0;
  flat_table type = {0};
  buf format = {0};
  if (!flat_scalar(field, TYPE_KIND, &kind, sizeof kind) || !flat_child(field, TYPE, &type)) {
    return damaged(r, "a field has no type");
  }
  type_format(kind, &type, n_children, &format);
  bool is_done = !format.failed && ArrowSchemaSetFormat(out, buf_cstr(&format)) == NANOARROW_OK;
  buf_reset(&format);
  return is_done ? HF_OK : no_memory(r);
}

static hf_status set_name(const schema_reader *r, const flat_table *field, struct ArrowSchema *out) {
  const uint8_t *bytes;
  size_t length;
  buf name = {0};
  if (!flat_vector(field, 0, 1, &bytes, &length) || (length > 0 && memchr(bytes, '\0', length) != NULL)) {
    return damaged(r, "a field has no usable name");
  }
  buf_append(&name, bytes, length);
  bool is_done = !name.failed && ArrowSchemaSetName(out, buf_cstr(&name)) == NANOARROW_OK;
  buf_reset(&name);
  return is_done ? HF_OK : no_memory(r);
}

static hf_status add_pairs(const schema_reader *r, const flat_table *field, struct ArrowBuffer *pairs,
                           size_t *count) {
  enum { METADATA = 6 };
  const uint8_t *elements;
  if (!flat_vector(field, METADATA, TABLE_WIDTH, &elements, count)) {
    return damaged(r, "the metadata of a field");
  }
  for (size_t i = 0; i < *count; i++) {
    flat_table pair = {0};
    const uint8_t *texts[2];
    size_t lengths[2];
    if (!flat_element(field, elements, i, &pair) || !flat_vector(&pair, 0, 1, &texts[0], &lengths[0]) ||
        !flat_vector(&pair, 1, 1, &texts[1], &lengths[1])) {
      return damaged(r, "the metadata of a field");
    }
    struct ArrowStringView key = {(const char *)texts[0], (int64_t)lengths[0]};
    struct ArrowStringView value = {(const char *)texts[1], (int64_t)lengths[1]};
    if (ArrowMetadataBuilderAppend(pairs, key, value) != NANOARROW_OK) {
      return no_memory(r);
    }
  }
  return HF_OK;
}

static hf_status set_metadata(const schema_reader *r, const flat_table *field, struct ArrowSchema *out) {
  struct ArrowBuffer pairs;
  size_t count = 0;
  if (ArrowMetadataBuilderInit(&pairs, NULL) != NANOARROW_OK) {
    return no_memory(r);
  }
  hf_status status = add_pairs(r, field, &pairs, &count);
  if (status == HF_OK && count > 0 && ArrowSchemaSetMetadata(out, (const char *)pairs.data) != NANOARROW_OK) {
    status = no_memory(r);
  }
  ArrowBufferReset(&pairs);
  return status;
}

static hf_status read_fields(schema_reader *r, const flat_table *parent, unsigned slot, unsigned depth,
                             struct ArrowSchema *out);

static hf_status read_field(schema_reader *r, const flat_table *field, unsigned depth,
                            struct ArrowSchema *out) {
  enum { NULLABLE = 1, DICTIONARY = 4, CHILDREN = 5 };
  uint8_t nullable = 0;
  ArrowSchemaInit(out);
  if (flat_has(field, DICTIONARY)) {
    return damaged(r, "a field has a dictionary");
  }
  if (!flat_scalar(field, NULLABLE, &nullable, sizeof nullable)) {
    return damaged(r, "a field is cut");
  }
  HF_TRY(read_fields(r, field, CHILDREN, depth + 1, out));
  HF_TRY(set_format(r, field, (size_t)out->n_children, out));
  HF_TRY(set_name(r, field, out));
  out->flags = nullable ? ARROW_FLAG_NULLABLE : 0;
  return set_metadata(r, field, out);
}

/* Reads the fields in a slot of a table as children. */
static hf_status read_fields(schema_reader *r, const flat_table *parent, unsigned slot, unsigned depth,
                             struct ArrowSchema *out) {
  const uint8_t *elements;
  size_t count;
  if (!flat_vector(parent, slot, TABLE_WIDTH, &elements, &count)) {
    return damaged(r, "its fields");
  }
  r->fields += count;
  if (depth > LAYOUT_DEEPEST || r->fields > LAYOUT_MOST_FIELDS) {
    return damaged(r, "too many fields or levels");
  }
  if (ArrowSchemaAllocateChildren(out, (int64_t)count) != NANOARROW_OK) {
    return no_memory(r);
  }
  for (size_t i = 0; i < count; i++) {
    flat_table field = {0};
    if (!flat_element(parent, elements, i, &field)) {
      return damaged(r, "a field is cut");
    }
    HF_TRY(read_field(r, &field, depth, out->children[i]));
  }
  return HF_OK;
}

static hf_status read_message(schema_reader *r, const flat_table *message, struct ArrowSchema *out) {
  enum { TYPE = 1, HEADER = 2, ENDIANNESS = 0, FIELDS = 1, IS_SCHEMA = 1 };
  uint8_t type = 0;
  flat_table header = {0};
  if (!flat_scalar(message, TYPE, &type, sizeof type) || type != IS_SCHEMA ||
      !flat_child(message, HEADER, &header)) {
    return damaged(r, "it is another message");
  }
  if (i16_of(&header, ENDIANNESS, 0) != 0) {
    return damaged(r, "it is not little endian");
  }
  ArrowSchemaInit(out);
  if (ArrowSchemaSetFormat(out, "+s") != NANOARROW_OK || ArrowSchemaSetName(out, "") != NANOARROW_OK) {
    return no_memory(r);
  }
  out->flags = 0;
  return read_fields(r, &header, FIELDS, 0, out);
}

/* Refuses what our own reader would. */
static hf_status check(const schema_reader *r, const struct ArrowSchema *made) {
  arena *memory = arena_new();
  if (memory == NULL) {
    return no_memory(r);
  }
  layout l;
  hf_status status = layout_of_schema(made, memory, &l, r->error);
  arena_free(memory);
  return status;
}

hf_status ipc_read_schema(ipc_cursor *from, struct ArrowSchema *out, hf_error *error) {
  schema_reader reader = {.error = error};
  uint32_t prefix[2] = {0, 0}; /* a mark, the length of the header */
  flat_table message = {0};
  if (from->left >= PREFIX_BYTES) {
    memcpy(prefix, from->bytes, sizeof prefix);
  }
  if (prefix[0] != UINT32_MAX || prefix[1] > from->left - PREFIX_BYTES ||
      !flat_root((const uint8_t *)from->bytes + PREFIX_BYTES, prefix[1], &message)) {
    return damaged(&reader, "its header");
  }
  struct ArrowSchema made = {0};
  hf_status status = read_message(&reader, &message, &made);
  if (status == HF_OK) {
    status = check(&reader, &made);
  }
  if (status != HF_OK) {
    if (made.release != NULL) {
      made.release(&made);
    }
    return status;
  }
  size_t used = PREFIX_BYTES + (size_t)prefix[1];
  from->bytes = (const uint8_t *)from->bytes + used;
  from->left -= used;
  *out = made;
  return HF_OK;
}

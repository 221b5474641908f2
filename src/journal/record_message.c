/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all bodies have in common: packing, unpacking into an arena, schemas, ids.
 * A row has a checksum, so what is unpacked is what was packed; it is checked all
 * the same where a wrong value would do harm.
 * Thread: any.
 */
#include "record.h"

#include <string.h>

hf_status record_no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a record of the journal");
}

hf_status record_malformed(const char *what, hf_error *error) {
  error_set(error, HF_E_STATE_DIR, "a record of the journal cannot be decoded: %s", what);
  error_hint(error, "move the state directory away or remove it: held results are computed again, views and "
                    "settings must be made again");
  return HF_E_STATE_DIR;
}

/* ----------------------------------------------------------------- schemas */

static hf_status decode_type(const Holdfast__V1__DataType *from, int depth, arena *a, const data_type **out,
                             hf_error *error) {
  data_type *to = arena_alloc(a, sizeof *to);
  const data_type **children = arena_array(a, from->n_children, sizeof(data_type *));
  if (to == NULL || children == NULL) {
    return record_no_memory(error);
  }
  if (from->kind >= TYPE_KIND_COUNT || depth > RECORD_DEEPEST_TYPE || from->width > UINT8_MAX ||
      from->scale > UINT8_MAX) {
    return record_malformed("a type", error);
  }
  *to = (data_type){.kind = (type_kind)from->kind,
                    .width = (uint8_t)from->width,
                    .scale = (uint8_t)from->scale,
                    .array_size = from->array_size,
                    .n_children = from->n_children,
                    .children = children,
                    .n_names = from->n_names,
                    .names = (const char *const *)from->names};
  for (size_t i = 0; i < from->n_children; i++) {
    HF_TRY(decode_type(from->children[i], depth + 1, a, &children[i], error));
  }
  *out = to;
  return HF_OK;
}

hf_status record_decode_schema(const Holdfast__V1__Schema *from, arena *a, schema *out, hf_error *error) {
  column *columns = arena_array(a, from->n_columns, sizeof *columns);
  if (columns == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_columns; i++) {
    columns[i].name = from->columns[i]->name;
    HF_TRY(decode_type(from->columns[i]->type, 1, a, &columns[i].type, error));
  }
  *out = (schema){from->n_columns, columns};
  return HF_OK;
}

/* ------------------------------------------------------------------- texts */

hf_status record_decode_uuid(const char *text, uuid *out, hf_error *error) {
  return uuid_parse(text, out) ? HF_OK : record_malformed("an id", error);
}

hf_status record_decode_text(const char *text, char *out, size_t room, hf_error *error) {
  size_t length = strlen(text);
  if (length >= room) {
    return record_malformed("a text that is too long", error);
  }
  memcpy(out, text, length + 1);
  return HF_OK;
}

/* ---------------------------------------------------------------- messages */

hf_status record_pack_message(const ProtobufCMessage *message, buf *out, hf_error *error) {
  size_t length = protobuf_c_message_get_packed_size(message);
  if (length > STORE_LARGEST_BODY_BYTES) {
    return error_set(error, HF_E_LIMIT, "a record of the journal is larger than %zu bytes: %zu",
                     STORE_LARGEST_BODY_BYTES, length);
  }
  char *room = buf_reserve(out, length + 1);
  if (room == NULL) {
    return record_no_memory(error);
  }
  protobuf_c_message_pack(message, (uint8_t *)room);
  out->length += length;
  out->data[out->length] = '\0';
  return HF_OK;
}

/* What protobuf-c is given for an allocator. */
typedef struct unpack_memory {
  arena *arena;
  bool failed;
} unpack_memory;

static void *take_from_arena(void *memory, size_t bytes) {
  unpack_memory *of = memory;
  void *block = arena_alloc(of->arena, bytes);
  of->failed = of->failed || block == NULL;
  return block;
}

static void leave_to_arena(void *memory, void *block) {
  (void)memory;
  (void)block;
}

hf_status record_unpack_message(const ProtobufCMessageDescriptor *message, const store_row *row, arena *a,
                                ProtobufCMessage **out, hf_error *error) {
  unpack_memory of = {.arena = a};
  ProtobufCAllocator memory = {.alloc = take_from_arena, .free = leave_to_arena, .allocator_data = &of};
  *out = protobuf_c_message_unpack(message, &memory, row->body_bytes, row->body);
  if (*out != NULL) {
    return HF_OK;
  }
  return of.failed ? record_no_memory(error) : record_malformed(message->short_name, error);
}

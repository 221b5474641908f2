/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over encoded bytes that comes before protobuf-c's unpack, which
 * recurses without a limit. A field that our subset lacks is refused by number:
 * passing it over would change what the relation means.
 */
#include "wire/wire_internal.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, LONGEST_VARINT = 10 };

typedef struct span {
  const uint8_t *at, *end;
} span;

static bool read_varint(span *s, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned i = 0; i < LONGEST_VARINT && s->at < s->end; i++) {
    uint8_t byte = *s->at++;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return false;
}

/* Takes the content of a field; `content` is set for those with a length. */
static bool read_content(span *s, unsigned wire_type, span *content) {
  uint64_t length = 0;
  *content = (span){NULL, NULL};
  switch (wire_type) {
    case VARINT:
      return read_varint(s, &length);
    case FIXED64:
      length = 8;
      break;
    case FIXED32:
      length = 4;
      break;
    case LENGTH:
      if (!read_varint(s, &length)) {
        return false;
      }
      break;
    default:
      return false;
  }
  if (length > (uint64_t)(s->end - s->at)) {
    return false;
  }
  *content = (span){s->at, s->at + length};
  s->at += length;
  return true;
}

static bool fits(const ProtobufCFieldDescriptor *field, unsigned wire_type) {
  bool has_length = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES ||
                    field->type == PROTOBUF_C_TYPE_MESSAGE;
  return has_length ? wire_type == LENGTH : wire_type == VARINT;
}

static hf_status check(const ProtobufCMessageDescriptor *message, span s, unsigned level, hf_error *error) {
  if (level > WIRE_DEEPEST) {
    return error_set(error, HF_E_LIMIT, "a relation is nested deeper than %d messages", WIRE_DEEPEST);
  }
  while (s.at < s.end) {
    uint64_t tag = 0;
    span content;
    if (!read_varint(&s, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX ||
        !read_content(&s, (unsigned)(tag & 7), &content)) {
      return error_set(error, HF_E_PROTOCOL, "a relation is cut off or damaged in %s", message->name);
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message, (unsigned)(tag >> 3));
    if (field == NULL) {
      return error_set(error, HF_E_UNSUPPORTED, "a relation holds what is not there: field %u of %s",
                       (unsigned)(tag >> 3), message->name);
    }
    if (!fits(field, (unsigned)(tag & 7))) {
      return error_set(error, HF_E_PROTOCOL, "a relation holds a field of another type: %s of %s",
                       field->name, message->name);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
      HF_TRY(check(field->descriptor, content, level + 1, error));
    }
  }
  return HF_OK;
}

hf_status wire_check(const ProtobufCMessageDescriptor *message, const void *bytes, size_t length,
                     hf_error *error) {
  if (length > WIRE_LARGEST_BYTES) {
    return error_set(error, HF_E_LIMIT, "a relation is larger than %d bytes: %zu", WIRE_LARGEST_BYTES,
                     length);
  }
  const uint8_t *start = bytes;
  return length == 0 ? HF_OK : check(message, (span){start, start + length}, 1, error);
}

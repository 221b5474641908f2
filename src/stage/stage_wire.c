/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over encoded bytes that comes before protobuf-c's unpack, led by the
 * same generated descriptors. Strict: what the descriptor does not know is
 * refused. The checks of meaning (indexes, kinds, UUIDs) are in stage_decode.c.
 * Thread: any.
 */
#include "stage/stage_internal.h"

#include <assert.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_LENGTH_PREFIXED = 2, VERSION_FIELD = 1, LONGEST_VARINT = 10 };

/* A oneof's members share this bit of the set of fields seen, so that a message holds one of them. */
#define ONEOF_SEEN ((uint64_t)1 << 63)

typedef struct wire_walk {
  const uint8_t *start;
  size_t elements;
  hf_error *error;
} wire_walk;

typedef struct wire_span {
  const uint8_t *at, *end;
} wire_span;

static hf_status malformed(wire_walk *w, const wire_span *span, const char *problem) {
  return error_set(w->error, HF_E_PROTOCOL, "%s at byte %zu", problem, (size_t)(span->at - w->start));
}

static hf_status malformed_field(wire_walk *w, const ProtobufCMessageDescriptor *message,
                                 const ProtobufCFieldDescriptor *field, const char *problem) {
  return error_set(w->error, HF_E_PROTOCOL, "%s: %s.%s", problem, message->short_name, field->name);
}

static hf_status varint_read(wire_walk *w, wire_span *span, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned i = 0; i < LONGEST_VARINT && span->at + i < span->end; i++) {
    uint8_t byte = span->at[i];
    if (i == LONGEST_VARINT - 1 && byte > 1) {
      break;
    }
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      span->at += i + 1;
      *out = value;
      return HF_OK;
    }
  }
  return malformed(w, span, "a number is cut off or too long");
}

static hf_status element_count(wire_walk *w) {
  return ++w->elements > STAGE_MOST_ELEMENTS
             ? error_set(w->error, HF_E_LIMIT, "more than %d parts", STAGE_MOST_ELEMENTS)
             : HF_OK;
}

static hf_status number_check(wire_walk *w, const ProtobufCMessageDescriptor *message,
                              const ProtobufCFieldDescriptor *field, wire_span *span) {
  uint64_t value = 0;
  HF_TRY(varint_read(w, span, &value));
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    HF_TRY(element_count(w));
  }
  switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64:
      return HF_OK;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
      return value <= UINT32_MAX ? HF_OK
                                 : malformed_field(w, message, field, "a number has more than 32 bits");
    case PROTOBUF_C_TYPE_BOOL:
      return value <= 1 ? HF_OK : malformed_field(w, message, field, "a truth value is neither 0 nor 1");
    default:
      return malformed_field(w, message, field, "a field's type is not known here");
  }
}

static hf_status message_check(wire_walk *w, const ProtobufCMessageDescriptor *message, wire_span span,
                               unsigned level);

/* A submessage or a text; `span` starts at its length. */
static hf_status element_check(wire_walk *w, const ProtobufCMessageDescriptor *message,
                               const ProtobufCFieldDescriptor *field, wire_span *span, unsigned level) {
  uint64_t length = 0;
  HF_TRY(varint_read(w, span, &length));
  if (length > (uint64_t)(span->end - span->at)) {
    return malformed_field(w, message, field, "a field is longer than what is left");
  }
  HF_TRY(element_count(w));
  wire_span inner = {span->at, span->at + length};
  span->at = inner.end;
  if (field->type == PROTOBUF_C_TYPE_STRING) {
    bool has_nul = length > 0 && memchr(inner.at, 0, (size_t)length) != NULL;
    return has_nul ? malformed_field(w, message, field, "a text holds a NUL byte") : HF_OK;
  }
  return message_check(w, field->descriptor, inner, level + 1);
}

static bool is_element(const ProtobufCFieldDescriptor *field) {
  return field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING;
}

static hf_status required_check(wire_walk *w, const ProtobufCMessageDescriptor *message, uint64_t seen) {
  for (unsigned i = 0; i < message->n_fields; i++) {
    if (message->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && (seen & (uint64_t)1 << i) == 0) {
      return malformed_field(w, message, &message->fields[i], "a field is missing");
    }
  }
  return HF_OK;
}

/* Reads a field's tag and finds the field. */
static hf_status field_find(wire_walk *w, const ProtobufCMessageDescriptor *message, wire_span *span,
                            const ProtobufCFieldDescriptor **out) {
  wire_span tag_at = *span;
  uint64_t tag = 0;
  HF_TRY(varint_read(w, span, &tag));
  const ProtobufCFieldDescriptor *field =
      tag >> 3 > INT32_MAX ? NULL : protobuf_c_message_descriptor_get_field(message, (unsigned)(tag >> 3));
  if (field == NULL) {
    return malformed(w, &tag_at, "an unknown field");
  }
  if ((tag & 7) != (is_element(field) ? WIRE_LENGTH_PREFIXED : WIRE_VARINT)) {
    return malformed_field(w, message, field, "a field has the wrong wire type");
  }
  *out = field;
  return HF_OK;
}

static hf_status message_check(wire_walk *w, const ProtobufCMessageDescriptor *message, wire_span span,
                               unsigned level) {
  assert(message->n_fields < 63);
  if (level > STAGE_LEVELS_ABOVE_TYPES + STAGE_MOST_TYPE_LEVELS) {
    return error_set(w->error, HF_E_LIMIT, "types nest deeper than %d levels", STAGE_MOST_TYPE_LEVELS);
  }
  uint64_t seen = 0;
  while (span.at < span.end) {
    const ProtobufCFieldDescriptor *field = NULL;
    HF_TRY(field_find(w, message, &span, &field));
    uint64_t bit = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0
                       ? ONEOF_SEEN
                       : (uint64_t)1 << (field - message->fields);
    if ((seen & bit) != 0 && field->label != PROTOBUF_C_LABEL_REPEATED) {
      return malformed_field(w, message, field, "a field comes twice");
    }
    seen |= bit;
    HF_TRY(is_element(field) ? element_check(w, message, field, &span, level)
                             : number_check(w, message, field, &span));
  }
  return required_check(w, message, seen);
}

/* A plan of another version may hold anything behind its first field, which is the version. */
static hf_status version_check(wire_walk *w, wire_span span) {
  uint64_t tag = 0, version = 0;
  HF_TRY(varint_read(w, &span, &tag));
  if (tag != (VERSION_FIELD << 3 | WIRE_VARINT)) {
    return malformed(w, &span, "it does not start with its version");
  }
  HF_TRY(varint_read(w, &span, &version));
  if (version != STAGE_VERSION) {
    return error_set(w->error, HF_E_PROTOCOL, "expected version %u, found %llu", STAGE_VERSION,
                     (unsigned long long)version);
  }
  return HF_OK;
}

hf_status stage_wire_check(const ProtobufCMessageDescriptor *message, const char *what, const void *bytes,
                           size_t length, hf_error *error) {
  wire_walk w = {.start = bytes, .error = error};
  hf_status status = HF_OK;
  if (length == 0) {
    status = error_set(error, HF_E_PROTOCOL, "it is empty");
  } else if (length > STAGE_LARGEST_BYTES) {
    status = error_set(error, HF_E_LIMIT, "it is larger than %zu bytes: %zu", STAGE_LARGEST_BYTES, length);
  } else {
    wire_span span = {w.start, w.start + length};
    status = version_check(&w, span);
    if (status == HF_OK) {
      status = message_check(&w, message, span, 1);
    }
  }
  if (status != HF_OK) {
    error_wrap(error, "%s is not valid", what);
  }
  return status;
}

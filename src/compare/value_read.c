/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one value out of an array by its shape: validity, bytes, numbers,
 * elements. Arrays were validated before.
 * Thread: any.
 */
#include "value.h"

#include <string.h>

/* Views: bytes that lie in the view itself. */
enum { VIEW_BYTES = 16, VIEW_INLINE = 12 };

static size_t position(value v) {
  return (size_t)(v.array->offset + v.row);
}

static bool bit_at(const void *bits, size_t at) {
  return (((const uint8_t *)bits)[at / 8] >> (at % 8) & 1) != 0;
}

/* An integer of 1 to 8 bytes at a position. */
static int64_t integer_at(const void *data, size_t width, bool is_signed, size_t at) {
  const uint8_t *from = (const uint8_t *)data + at * width;
  int64_t wide = 0;
  memcpy(&wide, from, width); /* the machine is little-endian, as Arrow's default is */
  if (is_signed && width < 8 && (from[width - 1] & 0x80) != 0) {
    wide = (int64_t)((uint64_t)wide | (UINT64_MAX << (8 * width)));
  }
  return wide;
}

value value_resolved(value v) {
  while (v.shape->kind == VALUE_DICTIONARY && !value_is_null((value){v.shape, v.array, v.row})) {
    int64_t index = integer_at(v.array->buffers[1], v.shape->width, v.shape->is_signed, position(v));
    v = (value){v.shape->children, v.array->dictionary, index};
  }
  return v;
}

/* Of the array itself: an index may be there and lead to NULL. */
bool value_is_null(value v) {
  switch (v.shape->kind) {
    case VALUE_NULL:
      return true;
    case VALUE_UNION:
    case VALUE_DENSE_UNION:
      return false; /* it has a tag, whose value may be NULL */
    default:
      return v.array->null_count != 0 && v.array->buffers[0] != NULL &&
             !bit_at(v.array->buffers[0], position(v));
  }
}

static const uint8_t *view_bytes(value v, size_t *length) {
  const uint8_t *view = (const uint8_t *)v.array->buffers[1] + position(v) * VIEW_BYTES;
  int32_t fields[4]; /* length, prefix, buffer, offset */
  memcpy(fields, view, sizeof fields);
  *length = (size_t)fields[0];
  if (*length <= VIEW_INLINE) {
    return view + 4;
  }
  return (const uint8_t *)v.array->buffers[2 + fields[2]] + fields[3];
}

const uint8_t *value_bytes(value v, size_t *length) {
  if (v.shape->kind == VALUE_VIEW) {
    return view_bytes(v, length);
  }
  if (v.shape->kind != VALUE_BYTES) {
    *length = v.shape->width;
    return (const uint8_t *)v.array->buffers[1] + position(v) * v.shape->width;
  }
  int64_t start = integer_at(v.array->buffers[1], v.shape->width, true, position(v));
  int64_t end = integer_at(v.array->buffers[1], v.shape->width, true, position(v) + 1);
  *length = (size_t)(end - start);
  return *length == 0 ? (const uint8_t *)"" : (const uint8_t *)v.array->buffers[2] + start;
}

int64_t value_integer(value v) {
  return integer_at(v.array->buffers[1], v.shape->width, v.shape->is_signed, position(v));
}

double value_number(value v) {
  if (v.shape->kind == VALUE_FLOAT) {
    float number;
    memcpy(&number, (const uint8_t *)v.array->buffers[1] + position(v) * sizeof number, sizeof number);
    return number;
  }
  double number;
  memcpy(&number, (const uint8_t *)v.array->buffers[1] + position(v) * sizeof number, sizeof number);
  return number;
}

bool value_bit(value v) {
  if (v.shape->width == 1) {
    return ((const uint8_t *)v.array->buffers[1])[position(v)] != 0;
  }
  return bit_at(v.array->buffers[1], position(v));
}

value_wide value_decimal(value v) {
  value_wide wide;
  if (v.shape->width == sizeof wide) {
    const uint8_t *from = (const uint8_t *)v.array->buffers[1] + position(v) * sizeof wide;
    memcpy(&wide.low, from, 8);
    memcpy(&wide.high, from + 8, 8);
    return wide;
  }
  int64_t narrow = integer_at(v.array->buffers[1], v.shape->width, true, position(v));
  return (value_wide){.high = narrow < 0 ? -1 : 0, .low = (uint64_t)narrow};
}

int64_t value_length(value v) {
  if (v.shape->kind == VALUE_FIXED_LIST) {
    return (int64_t)v.shape->width;
  }
  const void *offsets = v.array->buffers[1];
  return integer_at(offsets, v.shape->width, true, position(v) + 1) -
         integer_at(offsets, v.shape->width, true, position(v));
}

value value_element(value v, int64_t i) {
  int64_t start = v.shape->kind == VALUE_FIXED_LIST
                      ? (int64_t)(position(v) * v.shape->width)
                      : integer_at(v.array->buffers[1], v.shape->width, true, position(v));
  return (value){v.shape->children, v.array->children[0], start + i};
}

value value_field(value v, size_t i) {
  return (value){&v.shape->children[i], v.array->children[i], (int64_t)position(v)};
}

value value_member(value v, size_t *member) {
  uint8_t id = ((const uint8_t *)v.array->buffers[0])[position(v)];
  *member = v.shape->child_of_id[id & 127];
  value field = value_field(v, *member);
  if (v.shape->kind == VALUE_DENSE_UNION) {
    field.row = integer_at(v.array->buffers[1], 4, true, position(v));
  }
  return field;
}

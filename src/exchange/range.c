/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of values; what blocks keep of them is gathered in sink_ranges.c. */
#include "exchange/range.h"

#include <math.h>
#include <string.h>

range_kind range_kind_of(const data_type *type) {
  switch (type->kind) {
    case TYPE_INTEGER:
    case TYPE_DATE:
      return RANGE_INT32;
    case TYPE_BIGINT:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_S:
    case TYPE_TIMESTAMP_MS:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMP_TZ:
      return RANGE_INT64;
    case TYPE_DECIMAL: /* as wide as blocks hold them: arrow/batch.h */
      return type->width <= 9 ? RANGE_INT32 : type->width <= 18 ? RANGE_INT64 : RANGE_NONE;
    case TYPE_UINTEGER:
      return RANGE_UINT32;
    case TYPE_UBIGINT:
      return RANGE_UINT64;
    case TYPE_FLOAT:
      return RANGE_FLOAT;
    case TYPE_DOUBLE:
      return RANGE_DOUBLE;
    case TYPE_VARCHAR:
    case TYPE_BLOB:
      return RANGE_BYTES;
    default:
      return RANGE_NONE;
  }
}

range_key range_key_signed(int64_t value) {
  return (range_key){.high = (uint64_t)value ^ (UINT64_C(1) << 63)};
}

range_key range_key_unsigned(uint64_t value) {
  return (range_key){.high = value};
}

/* The bits of a float are in order but for the sign: negative ones run backwards. */
range_key range_key_double(double value) {
  uint64_t bits = 0;
  if (isnan(value)) {
    return (range_key){.high = UINT64_MAX};
  }
  value += 0.0; /* -0 becomes 0 */
  memcpy(&bits, &value, sizeof bits);
  bool is_negative = bits >> 63 != 0;
  return (range_key){.high = is_negative ? ~bits : bits | UINT64_C(1) << 63};
}

static uint64_t big_endian(const uint8_t *bytes, size_t length) {
  uint64_t value = 0;
  if (length >= sizeof value) {
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap64(value);
  }
  for (size_t i = 0; i < sizeof value; i++) {
    value = value << 8 | (i < length ? bytes[i] : 0);
  }
  return value;
}

range_key range_key_bytes(const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  return (range_key){.high = big_endian(at, length), .low = length > 8 ? big_endian(at + 8, length - 8) : 0};
}

range_key range_key_at(range_kind kind, const void *values, size_t i) {
  const char *at = values;
  int32_t narrow = 0;
  int64_t wide = 0;
  float single = 0;
  double twice = 0;
  switch (kind) {
    case RANGE_INT32:
      memcpy(&narrow, at + i * 4, 4);
      return range_key_signed(narrow);
    case RANGE_INT64:
      memcpy(&wide, at + i * 8, 8);
      return range_key_signed(wide);
    case RANGE_UINT32:
      memcpy(&narrow, at + i * 4, 4);
      return range_key_unsigned((uint32_t)narrow);
    case RANGE_UINT64:
      memcpy(&wide, at + i * 8, 8);
      return range_key_unsigned((uint64_t)wide);
    case RANGE_FLOAT:
      memcpy(&single, at + i * 4, 4);
      return range_key_double((double)single);
    case RANGE_DOUBLE:
      memcpy(&twice, at + i * 8, 8);
      return range_key_double(twice);
    default:
      return (range_key){0, 0};
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of values, and summaries made of them. They are gathered in sink_coding.c (blocks) and sink_watch.c (tasks). */
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

size_t range_kind_bytes(range_kind kind) {
  switch (kind) {
    case RANGE_INT32:
    case RANGE_UINT32:
    case RANGE_FLOAT:
      return 4;
    case RANGE_INT64:
    case RANGE_UINT64:
    case RANGE_DOUBLE:
      return 8;
    default:
      return 0;
  }
}

bool range_kind_is_integer(range_kind kind) {
  return kind >= RANGE_INT32 && kind <= RANGE_UINT64;
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

uint64_t range_key_integer(range_kind kind, range_key key) {
  bool is_signed = kind == RANGE_INT32 || kind == RANGE_INT64;
  return is_signed ? key.high ^ (UINT64_C(1) << 63) : key.high;
}

/* ----------------------------------------------------------------- summaries */

/* Joins two ascending lists without what is in both; false when not all can be listed. */
static bool join_values(const range_summary *a, const range_summary *b, range_key *out, uint32_t *n_out) {
  uint32_t i = 0;
  uint32_t j = 0;
  uint32_t n = 0;
  while (i < a->n_values || j < b->n_values) {
    int order = i == a->n_values ? 1 : j == b->n_values ? -1 : range_key_compare(a->values[i], b->values[j]);
    if (n == RANGE_VALUES_AT_MOST) {
      return false;
    }
    out[n++] = order <= 0 ? a->values[i] : b->values[j];
    i += order <= 0;
    j += order >= 0;
  }
  *n_out = n;
  return true;
}

void range_summary_add(range_summary *to, const range_summary *from) {
  if (from->rows == 0) {
    return;
  }
  if (to->rows == 0) {
    *to = *from;
    return;
  }
  range_key values[RANGE_VALUES_AT_MOST];
  uint32_t n = 0;
  bool has_all = to->n_values > 0 && from->n_values > 0 && join_values(to, from, values, &n);
  to->n_values = has_all ? n : 0;
  if (has_all) {
    memcpy(to->values, values, n * sizeof *values);
  }
  if (range_key_compare(from->least, to->least) < 0) {
    to->least = from->least;
  }
  if (range_key_compare(from->most, to->most) > 0) {
    to->most = from->most;
  }
  to->rows += from->rows;
}

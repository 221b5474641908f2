/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as text, for the rows that a report shows: near to how DuckDB spells
 * them, exact in floats, cut when they are long.
 * Thread: any.
 */
#include "value.h"

#include <inttypes.h>

enum { TEXT_BYTES_MAX = 80, TEXT_ELEMENTS_MAX = 8 };

/* ISO C has no 128-bit integer; gcc and clang do. */
__extension__ typedef unsigned __int128 wide_number;

static void text_of_bytes(value v, buf *out) {
  size_t length = 0;
  const uint8_t *bytes = value_bytes(v, &length);
  size_t shown = length < TEXT_BYTES_MAX ? length : TEXT_BYTES_MAX;
  while (shown < length && shown > 0 && (bytes[shown] & 0xC0) == 0x80) {
    shown--; /* not within a character */
  }
  bool is_text = v.shape->type->kind == TYPE_VARCHAR || v.shape->type->kind == TYPE_JSON ||
                 v.shape->type->kind == TYPE_ENUM;
  buf_char(out, '\'');
  for (size_t i = 0; i < shown; i++) {
    bool plain = bytes[i] >= 0x20 && bytes[i] != 0x7F && (is_text || bytes[i] < 0x80);
    if (plain) {
      buf_char(out, (char)bytes[i]);
    } else {
      buf_printf(out, "\\x%02X", bytes[i]);
    }
  }
  buf_text(out, shown < length ? "…'" : "'");
}

/* Digits with `scale` of them behind the point. */
static void text_of_wide(value_wide wide, bool is_signed, unsigned scale, buf *out) {
  wide_number number = (wide_number)(uint64_t)wide.high << 64 | wide.low;
  if (is_signed && wide.high < 0) {
    buf_char(out, '-');
    number = -number;
  }
  char digits[48];
  size_t at = sizeof digits;
  for (unsigned i = 0; number > 0 || i <= scale; i++) {
    if (i == scale && scale > 0) {
      digits[--at] = '.';
    }
    digits[--at] = (char)('0' + (int)(number % 10));
    number /= 10;
  }
  buf_append(out, digits + at, sizeof digits - at);
}

/* Source of the calendar: days to civil, proleptic Gregorian, by eras of 400 years from 1 March of year 0. */
static void text_of_date(int64_t days, buf *out) {
  int64_t shifted = days + 719468;
  int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  int64_t day_of_era = shifted - era * 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t month = (5 * day_of_year + 2) / 153;
  int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
  month = month < 10 ? month + 3 : month - 9;
  buf_printf(out, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year_of_era + era * 400 + (month <= 2 ? 1 : 0),
             month, day);
}

static void text_of_timestamp(int64_t ticks, int64_t per_second, buf *out) {
  int64_t per_day = per_second * 86400;
  if (ticks > INT64_MAX - per_day || ticks < INT64_MIN + per_day) {
    buf_printf(out, "%" PRId64, ticks); /* infinity and its neighbours */
    return;
  }
  int64_t days = ticks / per_day - (ticks % per_day < 0 ? 1 : 0);
  int64_t rest = ticks - days * per_day;
  int64_t second = rest / per_second;
  text_of_date(days, out);
  buf_printf(out, " %02" PRId64 ":%02" PRId64 ":%02" PRId64, second / 3600, second / 60 % 60, second % 60);
  if (rest % per_second != 0) {
    buf_printf(out, "+%" PRId64 "/%" PRId64, rest % per_second, per_second);
  }
}

static void text_of_integer(value v, buf *out) {
  int64_t number = value_integer(v);
  switch (v.shape->type->kind) {
    case TYPE_DATE:
      text_of_date(number, out);
      break;
    case TYPE_TIMESTAMP_S:
      text_of_timestamp(number, 1, out);
      break;
    case TYPE_TIMESTAMP_MS:
      text_of_timestamp(number, 1000, out);
      break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_TZ:
      text_of_timestamp(number, 1000000, out);
      break;
    case TYPE_TIMESTAMP_NS:
      text_of_timestamp(number, 1000000000, out);
      break;
    default:
      if (v.shape->is_signed) {
        buf_printf(out, "%" PRId64, number);
      } else {
        buf_printf(out, "%" PRIu64, (uint64_t)number);
      }
  }
}

static void text_of_fixed(value v, buf *out) {
  size_t length = 0;
  const uint8_t *bytes = value_bytes(v, &length);
  type_kind kind = v.shape->type->kind;
  if (length == 16 && (kind == TYPE_HUGEINT || kind == TYPE_UHUGEINT)) {
    text_of_wide(value_decimal(v), kind == TYPE_HUGEINT, 0, out);
    return;
  }
  for (size_t i = 0; i < length && i < TEXT_BYTES_MAX; i++) {
    buf_printf(out, "%02x", bytes[i]);
  }
}

static void text_of_list(value v, buf *out) {
  int64_t n = value_length(v);
  buf_char(out, '[');
  for (int64_t i = 0; i < n && i < TEXT_ELEMENTS_MAX; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    value_text(value_element(v, i), out);
  }
  buf_text(out, n > TEXT_ELEMENTS_MAX ? ", …]" : "]");
}

static void text_of_fields(value v, buf *out) {
  buf_char(out, '{');
  for (size_t i = 0; i < v.shape->n_children; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    value_text(value_field(v, i), out);
  }
  buf_char(out, '}');
}

static void text_of_union(value v, buf *out) {
  size_t member = 0;
  value inner = value_member(v, &member);
  buf_printf(out, "%zu: ", member);
  value_text(inner, out);
}

void value_text(value v, buf *out) {
  v = value_resolved(v);
  if (value_is_null(v)) {
    buf_text(out, "NULL");
    return;
  }
  switch (v.shape->kind) {
    case VALUE_BITS:
      buf_text(out, value_bit(v) ? "true" : "false");
      break;
    case VALUE_INTEGER:
      text_of_integer(v, out);
      break;
    case VALUE_FLOAT:
      buf_printf(out, "%.9g", value_number(v));
      break;
    case VALUE_DOUBLE:
      buf_printf(out, "%.17g", value_number(v));
      break;
    case VALUE_DECIMAL:
      text_of_wide(value_decimal(v), true, v.shape->type->scale, out);
      break;
    case VALUE_FIXED:
      text_of_fixed(v, out);
      break;
    case VALUE_BYTES:
    case VALUE_VIEW:
      text_of_bytes(v, out);
      break;
    case VALUE_STRUCT:
      text_of_fields(v, out);
      break;
    case VALUE_UNION:
    case VALUE_DENSE_UNION:
      text_of_union(v, out);
      break;
    default:
      text_of_list(v, out);
  }
}

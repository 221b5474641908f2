/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants as CAST('…' AS T). A bare literal would bind as a literal's own
 * type, and a bare integer in GROUP BY or ORDER BY would be a position.
 */
#include "sql/write_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICROS_A_SECOND = 1000000, SECONDS_A_DAY = 86400 };

static bool has_names(const data_type *type) {
  for (size_t i = 0; i < type->n_children; i++) {
    bool is_unnamed = type->kind == TYPE_STRUCT && type->names[i][0] == '\0';
    if (is_unnamed || !has_names(type->children[i])) {
      return false;
    }
  }
  return type->kind != TYPE_STRUCT || type->n_children > 0;
}

bool write_can_name(const data_type *type) {
  return type->kind != TYPE_NULL && has_names(type);
}

void write_type(writer *w, const data_type *type) {
  data_type_to_sql(type, write_to(w));
}

static hf_status refuse_value(writer *w, const tree_value *value, const char *why) {
  return write_refuse(w, TREE_REFUSED_CONSTANT, "BOUND_CONSTANT", "%s: %s", type_kind_name(value->type->kind),
                      why);
}

/* ----------------------------------------------------------------- numbers */

enum { WIDE_DIGITS = 48 };

/* Writes a 128-bit number in decimal, from the end of `digits`; returns its start. */
static char *wide_digits(uint64_t upper, uint64_t lower, char digits[WIDE_DIGITS]) {
  char *at = digits + WIDE_DIGITS - 1;
  uint32_t parts[4] = {(uint32_t)(upper >> 32), (uint32_t)upper, (uint32_t)(lower >> 32), (uint32_t)lower};
  *at = '\0';
  do {
    uint64_t rest = 0;
    for (size_t i = 0; i < 4; i++) {
      uint64_t part = rest << 32 | parts[i];
      parts[i] = (uint32_t)(part / 10);
      rest = part % 10;
    }
    *--at = (char)('0' + rest);
  } while ((parts[0] | parts[1] | parts[2] | parts[3]) != 0);
  return at;
}

static char *magnitude(const tree_value *value, bool is_signed, char digits[WIDE_DIGITS], bool *is_negative) {
  uint64_t upper = (uint64_t)value->upper, lower = value->lower;
  *is_negative = is_signed && value->upper < 0;
  if (*is_negative) {
    lower = ~lower + 1;
    upper = ~upper + (lower == 0 ? 1 : 0);
  }
  return wide_digits(upper, lower, digits);
}

static void write_integer(buf *out, const tree_value *value) {
  char digits[WIDE_DIGITS];
  bool is_negative = false;
  const char *text = magnitude(value, value->type->kind != TYPE_UHUGEINT, digits, &is_negative);
  buf_printf(out, "%s%s", is_negative ? "-" : "", text);
}

/* False for a number with more digits than its type: DuckDB can make one, but does not read it back. */
static bool write_decimal(buf *out, const tree_value *value) {
  char digits[WIDE_DIGITS];
  bool is_negative = false;
  char *text = magnitude(value, true, digits, &is_negative);
  int scale = value->type->scale, length = (int)strlen(text);
  if (length > value->type->width) {
    return false;
  }
  buf_text(out, is_negative ? "-" : "");
  if (length > scale) {
    buf_printf(out, "%.*s", length - scale, text);
  } else {
    buf_char(out, '0');
  }
  if (scale > 0) {
    buf_char(out, '.');
    for (int i = length; i < scale; i++) {
      buf_char(out, '0');
    }
    buf_text(out, length > scale ? text + length - scale : text);
  }
  return true;
}

static void write_number(buf *out, double number) {
  if (isnan(number)) {
    buf_text(out, "nan");
  } else if (isinf(number)) {
    buf_text(out, number > 0 ? "inf" : "-inf");
  } else {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, number);
      if (strtod(text, NULL) == number) {
        break;
      }
    }
    buf_text(out, text);
  }
}

/* -------------------------------------------------------------------- time */

/* Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days. */
static void civil_from_days(int64_t days, int64_t *year, int *month, int *day) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t of_era = days - era * 146097;
  int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t shifted = (5 * of_year + 2) / 153;
  *day = (int)(of_year - (153 * shifted + 2) / 5 + 1);
  *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
  *year = year_of_era + era * 400 + (*month <= 2 ? 1 : 0);
}

/* Writes YYYY-MM-DD; returns what goes behind it all. */
static const char *write_day(buf *out, int64_t days) {
  int64_t year = 0;
  int month = 0, day = 0;
  civil_from_days(days, &year, &month, &day);
  buf_printf(out, "%04" PRId64 "-%02d-%02d", year > 0 ? year : 1 - year, month, day);
  return year > 0 ? "" : " (BC)";
}

static void write_date(buf *out, int64_t days) {
  if (days == INT32_MAX || days == -INT32_MAX) {
    buf_text(out, days > 0 ? "infinity" : "-infinity");
  } else {
    buf_text(out, write_day(out, days));
  }
}

/* `part` units of a day, `per_second` of them a second. */
static void write_clock(buf *out, int64_t part, int64_t per_second, int digits) {
  int64_t seconds = part / per_second;
  buf_printf(out, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (digits > 0) {
    buf_printf(out, ".%0*" PRId64, digits, part % per_second);
  }
}

static void write_instant(buf *out, int64_t value, int64_t per_second, int digits, const char *zone) {
  if (value == INT64_MAX || value == -INT64_MAX) {
    buf_text(out, value > 0 ? "infinity" : "-infinity");
    return;
  }
  int64_t a_day = per_second * SECONDS_A_DAY;
  int64_t days = value / a_day, part = value % a_day;
  if (part < 0) {
    days--;
    part += a_day;
  }
  const char *era = write_day(out, days);
  buf_char(out, ' ');
  write_clock(out, part, per_second, digits);
  buf_printf(out, "%s%s", zone, era);
}

/* 64 bits: micros of the day << 24 | (57599 - offset in seconds). Source: DuckDB, dtime_tz_t. */
static void write_time_tz(buf *out, uint64_t bits) {
  int64_t offset = 57599 - (int64_t)(bits & 0xffffff);
  int64_t size = offset < 0 ? -offset : offset;
  write_clock(out, (int64_t)(bits >> 24), MICROS_A_SECOND, 6);
  buf_char(out, offset < 0 ? '-' : '+');
  write_clock(out, size, 1, 0);
}

/* Years that text can carry in every timestamp type; beyond them a number is made into a timestamp. */
static bool is_usual_year(int64_t micros) {
  return (micros >= -62135596800000000 && micros <= 253402300799999999) || micros == INT64_MAX ||
         micros == -INT64_MAX;
}

/* ------------------------------------------------------------------- texts */

static void write_uuid(buf *out, const tree_value *value) {
  uint64_t upper = (uint64_t)value->upper ^ ((uint64_t)1 << 63);
  buf_printf(out, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, upper >> 32,
             upper >> 16 & 0xffff, upper & 0xffff, value->lower >> 48, value->lower & 0xffffffffffff);
}

/* A text with NUL inside is joined from its parts. */
static void write_text(writer *w, const tree_value *value) {
  buf *out = write_to(w);
  buf_text(out, "CAST(");
  for (size_t from = 0;;) {
    const char *part = value->text + from;
    size_t length = strlen(part);
    buf_sql_string(out, part);
    from += length;
    if (from >= value->length) {
      break;
    }
    buf_text(out, " || chr(0) || ");
    from++;
  }
  buf_text(out, " AS ");
  write_type(w, value->type);
  buf_char(out, ')');
}

/* ------------------------------------------------------------------ nested */

static hf_status write_list(writer *w, const tree_value *value) {
  buf_char(write_to(w), '[');
  for (size_t i = 0; i < value->n_children; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    HF_TRY(write_value(w, &value->children[i]));
  }
  buf_char(write_to(w), ']');
  return HF_OK;
}

static hf_status write_struct(writer *w, const tree_value *value, bool named) {
  buf *out = write_to(w);
  buf_text(out, named ? "{" : "row(");
  for (size_t i = 0; i < value->n_children; i++) {
    buf_text(out, i > 0 ? ", " : "");
    if (named) {
      buf_sql_string(out, value->type->names[i]);
      buf_text(out, ": ");
    }
    HF_TRY(write_value(w, &value->children[i]));
  }
  buf_char(out, named ? '}' : ')');
  return HF_OK;
}

static hf_status write_map(writer *w, const tree_value *value) {
  buf *out = write_to(w);
  buf_text(out, "map([");
  for (size_t side = 0; side < 2; side++) {
    buf_text(out, side > 0 ? "], [" : "");
    for (size_t i = 0; i < value->n_children; i++) {
      buf_text(out, i > 0 ? ", " : "");
      HF_TRY(write_value(w, &value->children[i].children[side]));
    }
  }
  buf_text(out, "])");
  return HF_OK;
}

/* Children are the tag and one value of each member. */
static hf_status write_union(writer *w, const tree_value *value) {
  uint64_t tag = value->children[0].lower;
  if (value->children[0].is_null || tag >= value->type->n_children) {
    return refuse_value(w, value, "a tag that is not there");
  }
  buf_text(write_to(w), "union_value(");
  buf_sql_name(write_to(w), value->type->names[tag]);
  buf_text(write_to(w), " := ");
  HF_TRY(write_value(w, &value->children[tag + 1]));
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_nested(writer *w, const tree_value *value) {
  if (value->type->kind == TYPE_STRUCT && !write_can_name(value->type)) {
    bool is_unnamed = value->n_children > 0 && value->type->names[0][0] == '\0';
    return is_unnamed ? write_struct(w, value, false) : refuse_value(w, value, "a type that SQL cannot name");
  }
  if (!write_can_name(value->type)) {
    return refuse_value(w, value, "a type that SQL cannot name");
  }
  buf_text(write_to(w), "CAST(");
  switch (value->type->kind) {
    case TYPE_STRUCT:
      HF_TRY(write_struct(w, value, true));
      break;
    case TYPE_MAP:
      HF_TRY(write_map(w, value));
      break;
    case TYPE_UNION:
      HF_TRY(write_union(w, value));
      break;
    default:
      HF_TRY(write_list(w, value));
  }
  buf_text(write_to(w), " AS ");
  write_type(w, value->type);
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* -------------------------------------------------------------------- door */

static bool write_bits(buf *out, const tree_value *value) {
  const unsigned char *bytes = (const unsigned char *)value->text;
  if (value->length < 2 || bytes[0] > 7) {
    return false;
  }
  for (size_t i = 8U + bytes[0]; i < 8 * value->length; i++) {
    buf_char(out, (bytes[i / 8] >> (7 - i % 8) & 1) != 0 ? '1' : '0');
  }
  return true;
}

/* Writes what stands between the quotes; false when the type has no such text. */
static bool write_scalar(buf *out, const tree_value *value) {
  int64_t number = (int64_t)value->lower;
  switch (value->type->kind) {
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INTEGER:
    case TYPE_BIGINT:
    case TYPE_HUGEINT:
    case TYPE_UTINYINT:
    case TYPE_USMALLINT:
    case TYPE_UINTEGER:
    case TYPE_UBIGINT:
    case TYPE_UHUGEINT:
      write_integer(out, value);
      return true;
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
      write_number(out, value->number);
      return true;
    case TYPE_DECIMAL:
      return write_decimal(out, value);
    case TYPE_DATE:
      write_date(out, number);
      return true;
    case TYPE_TIME:
      write_clock(out, number, MICROS_A_SECOND, 6);
      return true;
    case TYPE_TIME_NS:
      write_clock(out, number, (int64_t)MICROS_A_SECOND * 1000, 9);
      return true;
    case TYPE_TIME_TZ:
      write_time_tz(out, value->lower);
      return true;
    case TYPE_TIMESTAMP:
      write_instant(out, number, MICROS_A_SECOND, 6, "");
      return true;
    case TYPE_TIMESTAMP_S:
      write_instant(out, number, 1, 0, "");
      return true;
    case TYPE_TIMESTAMP_MS:
      write_instant(out, number, 1000, 3, "");
      return true;
    case TYPE_TIMESTAMP_NS:
      write_instant(out, number, (int64_t)MICROS_A_SECOND * 1000, 9, "");
      return true;
    case TYPE_TIMESTAMP_TZ:
      write_instant(out, number, MICROS_A_SECOND, 6, "+00");
      return true;
    case TYPE_INTERVAL:
      buf_printf(out, "%" PRId32 " months %" PRId32 " days %" PRId64 " microseconds", value->months,
                 value->days, value->micros);
      return true;
    case TYPE_UUID:
      write_uuid(out, value);
      return true;
    case TYPE_BIT:
      return write_bits(out, value);
    default:
      return false;
  }
}

static hf_status write_quoted(writer *w, const tree_value *value) {
  buf *out = write_to(w);
  buf_text(out, "CAST('");
  if (!write_scalar(out, value)) {
    return refuse_value(w, value, "no exact text");
  }
  buf_text(out, "' AS ");
  write_type(w, value->type);
  buf_char(out, ')');
  return HF_OK;
}

static hf_status write_null(writer *w, const tree_value *value) {
  if (value->type->kind == TYPE_NULL) {
    buf_text(write_to(w), "NULL");
    return HF_OK;
  }
  if (!write_can_name(value->type)) {
    return refuse_value(w, value, "NULL of a type that SQL cannot name");
  }
  buf_text(write_to(w), "CAST(NULL AS ");
  write_type(w, value->type);
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_timestamp(writer *w, const tree_value *value) {
  type_kind kind = value->type->kind;
  int64_t number = (int64_t)value->lower;
  int64_t micros = kind == TYPE_TIMESTAMP_S ? 1000000 : kind == TYPE_TIMESTAMP_MS ? 1000 : 1;
  bool is_infinite = number == INT64_MAX || number == -INT64_MAX;
  if (is_infinite || number > INT64_MAX / micros || number < -(INT64_MAX / micros) ||
      is_usual_year(number * micros)) {
    return write_quoted(w, value);
  }
  buf_printf(write_to(w), "%smake_timestamp%s(CAST('%" PRId64 "' AS BIGINT))", micros > 1 ? "CAST(" : "",
             kind == TYPE_TIMESTAMP_TZ ? "tz" : "", number * micros);
  if (micros > 1) {
    buf_text(write_to(w), " AS ");
    write_type(w, value->type);
    buf_char(write_to(w), ')');
  }
  return HF_OK;
}

hf_status write_value(writer *w, const tree_value *value) {
  if (value->is_null) {
    return write_null(w, value);
  }
  switch (value->type->kind) {
    case TYPE_BOOLEAN:
      buf_text(write_to(w), value->lower != 0 ? "true" : "false");
      return HF_OK;
    case TYPE_VARCHAR:
    case TYPE_JSON:
    case TYPE_BLOB:
      write_text(w, value);
      return HF_OK;
    case TYPE_ENUM:
      buf_text(write_to(w), "CAST(");
      buf_sql_string(write_to(w), value->type->names[value->lower]);
      buf_text(write_to(w), " AS ");
      write_type(w, value->type);
      buf_char(write_to(w), ')');
      return HF_OK;
    case TYPE_LIST:
    case TYPE_ARRAY:
    case TYPE_STRUCT:
    case TYPE_MAP:
    case TYPE_UNION:
      return write_nested(w, value);
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_TZ:
    case TYPE_TIMESTAMP_MS:
    case TYPE_TIMESTAMP_S:
      return write_timestamp(w, value);
    default:
      return write_quoted(w, value);
  }
}

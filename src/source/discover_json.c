/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON: the types that DuckDB finds in its sample are spelled out, with whether
 * the values are records and how dates are written. Keys that the sample did not
 * show are then passed over, where DuckDB alone would fail.
 */
#include "source/discover.h"

#include "source/option.h"

#include <string.h>

/* The formats that DuckDB tries when it looks for dates in texts. */
static const char *const DATE_FORMATS[] = {"%Y-%m-%d", "%m-%d-%Y", "%d-%m-%Y",
                                           "%m-%d-%y", "%d-%m-%y", "%y-%m-%d"};
static const char *const TIMESTAMP_FORMATS[] = {
    "%Y-%m-%d %H:%M:%S.%f",  "%Y-%m-%d %H:%M:%S",    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.%fZ", "%m-%d-%Y %I:%M:%S %p", "%d-%m-%Y %H:%M:%S", "%m-%d-%y %I:%M:%S %p",
    "%d-%m-%y %H:%M:%S",     "%y-%m-%d %H:%M:%S"};

/* How the values are read, as texts of options; NULL: not said. */
typedef struct json_shape {
  const char *records, *date_format, *timestamp_format;
} json_shape;

static bool has_columns_of(const discovery *d, type_kind kind) {
  for (size_t i = 0; i < d->n_file_columns; i++) {
    if (data_type_contains(d->columns.columns[i].type, kind)) {
      return true;
    }
  }
  return false;
}

/* Whether detection with one more option gives the same columns. */
static bool detects_the_same(const discovery *d, const char *option, const char *value) {
  arena *a = arena_new();
  const char *const *paths = discover_paths(d);
  schema columns = {0};
  buf sql = {0};
  if (a == NULL || paths == NULL) {
    arena_free(a);
    return false;
  }
  buf_text(&sql, "SELECT * FROM ");
  discover_call(d, paths, d->files->n_files, CALL_AS_REQUESTED, &sql);
  buf_printf(&sql, ", %s = ", option);
  buf_sql_string(&sql, value);
  discover_hive_options(d, false, &sql);
  buf_char(&sql, ')');
  bool same = !sql.failed && engine_describe(d->engine, buf_cstr(&sql), a, &columns, NULL) == HF_OK &&
              schema_equal(&columns, &d->columns);
  buf_reset(&sql);
  arena_free(a);
  return same;
}

/* The first format with which detection finds what it found; NULL: none. */
static const char *find_format(const discovery *d, const char *option, const char *const *formats, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (detects_the_same(d, option, formats[i])) {
      return formats[i];
    }
  }
  return NULL;
}

/* A lone column named json is what DuckDB makes of values that are no records, but a key may have that name too. */
static const char *find_records(const discovery *d) {
  bool is_lone = d->n_file_columns == 1 && strcmp(d->columns.columns[0].name, "json") == 0;
  return is_lone && detects_the_same(d, "records", "false") ? "false" : "true";
}

static const char *given(const discovery *d, const char *name, const char *other_name) {
  const char *value = option_value(d->request, name);
  return value == NULL ? option_value(d->request, other_name) : value;
}

static void append_option(const char *name, const char *value_sql, const char *text, buf *out) {
  if (value_sql != NULL) {
    buf_printf(out, ", %s = %s", name, value_sql);
  } else if (text != NULL) {
    buf_printf(out, ", %s = ", name);
    buf_sql_string(out, text);
  }
}

static void write_reader(discovery *d, const json_shape *shape) {
  buf *out = &d->reader;
  discover_call(d, NULL, 0, CALL_RESOLVED, out);
  append_option("records", option_value(d->request, "records"), shape->records, out);
  append_option("dateformat", given(d, "dateformat", "date_format"), shape->date_format, out);
  append_option("timestampformat", given(d, "timestampformat", "timestamp_format"), shape->timestamp_format,
                out);
  buf_text(out, ", columns = ");
  discover_columns_literal(d->columns.columns, d->n_file_columns, out);
  discover_hive_options(d, true, out);
  buf_char(out, ')');
}

static void write_requested(discovery *d) {
  discover_call(d, NULL, 0, CALL_AS_REQUESTED, &d->reader);
  discover_hive_options(d, true, &d->reader);
  buf_char(&d->reader, ')');
}

/* Whether the reader text reads as the user's own call does. */
static bool reads_the_same(const discovery *d, const char *const *paths) {
  buf own = {0}, written = {0};
  discover_call(d, paths, d->files->n_files, CALL_AS_REQUESTED, &own);
  discover_hive_options(d, false, &own);
  buf_char(&own, ')');
  source_scan_sql(buf_cstr(&d->reader), paths, d->files->n_files, &written);
  bool same = !own.failed && !written.failed && discover_calls_agree(d, buf_cstr(&own), buf_cstr(&written));
  buf_reset(&own);
  buf_reset(&written);
  return same;
}

hf_status discover_json(discovery *d) {
  const char *const *paths = discover_paths(d);
  if (paths == NULL) {
    return discover_out_of_memory(d);
  }
  d->rows = discover_rows_by_lines(d);
  d->rows_exact = false;
  if (option_value(d->request, "columns") != NULL) {
    write_requested(d);
    return HF_OK;
  }
  json_shape shape = {0};
  if (option_value(d->request, "records") == NULL) {
    shape.records = find_records(d);
  }
  if (given(d, "dateformat", "date_format") == NULL && has_columns_of(d, TYPE_DATE)) {
    shape.date_format =
        find_format(d, "dateformat", DATE_FORMATS, sizeof DATE_FORMATS / sizeof DATE_FORMATS[0]);
  }
  if (given(d, "timestampformat", "timestamp_format") == NULL && has_columns_of(d, TYPE_TIMESTAMP)) {
    shape.timestamp_format = find_format(d, "timestampformat", TIMESTAMP_FORMATS,
                                         sizeof TIMESTAMP_FORMATS / sizeof TIMESTAMP_FORMATS[0]);
  }
  write_reader(d, &shape);
  if (!reads_the_same(d, paths)) {
    buf_reset(&d->reader);
    write_requested(d);
  }
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DuckDB's errors → hf_error. The text is JSON with type, message, and for many
 * errors the position and the names that come close (errors_as_json). Rules are
 * rows: the first that fits gives the code. Errors of our own callbacks do not
 * come here: the run keeps them (run.c).
 * Thread: any.
 */
#include "engine_internal.h"

#include "base/buf.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* DuckDB's JSON is flat; a deeper one is not an error object. */
#define ERROR_JSON_DEPTH 8

/* An error as DuckDB tells it; texts may be NULL. Borrows from `object` or the given text. */
typedef struct report {
  struct json_object *object;
  const char *type, *message, *subtype, *name, *entry_type, *call;
  int64_t position;
} report;

typedef struct rule {
  const char *type;    /* of the exception; NULL: any */
  const char *subtype; /* NULL: any */
  const char *within;  /* must be in the message, letter case ignored; NULL: any */
  hf_status code;
} rule;

/*
 * In order: special before general. Readers of files have no exception type of their own, so their messages are listed.
 * Source of the type names: EXCEPTION_MAP of DuckDB 1.5.5.
 */
static const rule rules[] = {
    {"INTERRUPT", NULL, NULL, HF_E_CANCELLED},
    {NULL, NULL, "No space left on device", HF_E_DISK_FULL},
    {NULL, NULL, "Disk quota exceeded", HF_E_DISK_FULL},
    {NULL, NULL, "max_temp_directory_size", HF_E_DISK_FULL},
    {"Out of Memory", NULL, NULL, HF_E_OUT_OF_MEMORY},
    {NULL, NULL, "Max expression depth limit", HF_E_LIMIT},
    {NULL, NULL, "Maximum tree depth", HF_E_LIMIT},
    {"Parser", NULL, "memory exhausted", HF_E_LIMIT}, /* the stack of its grammar */
    {"Syntax", NULL, "memory exhausted", HF_E_LIMIT},
    {NULL, NULL, "No files found that match", HF_E_FILE_NOT_FOUND},
    {"IO", NULL, "No such file or directory", HF_E_FILE_NOT_FOUND},
    {"Permission", NULL, NULL, HF_E_PATH_REFUSED},
    {NULL, NULL, "CSV Error on Line", HF_E_FILE_FORMAT},
    {NULL, NULL, "Error when sniffing file", HF_E_FILE_FORMAT},
    {NULL, NULL, "detected in CSV file", HF_E_FILE_FORMAT},
    {NULL, NULL, "do not exist in the CSV File", HF_E_FILE_FORMAT},
    {NULL, NULL, "Malformed JSON in file", HF_E_FILE_FORMAT},
    {NULL, NULL, "JSON transform error in file", HF_E_FILE_FORMAT},
    {NULL, NULL, "in JSON array with format='array' in file", HF_E_FILE_FORMAT},
    {NULL, NULL, "No magic bytes found", HF_E_FILE_FORMAT},
    {NULL, NULL, "to be a Parquet file", HF_E_FILE_FORMAT},
    {NULL, NULL, "Parquet file has", HF_E_FILE_FORMAT},
    {NULL, NULL, "Parquet file is", HF_E_FILE_FORMAT},
    {NULL, NULL, "Parquet reader", HF_E_FILE_FORMAT},
    {NULL, NULL, "in Parquet file", HF_E_FILE_FORMAT},
    {NULL, NULL, "Failed to read file", HF_E_FILE_FORMAT},
    {NULL, NULL, "Failed to read Parquet file", HF_E_FILE_FORMAT},
    {NULL, NULL, "Malformed Parquet schema", HF_E_FILE_FORMAT},
    {NULL, NULL, "Mismatch in parquet read", HF_E_FILE_FORMAT},
    {NULL, NULL, "footer length", HF_E_FILE_FORMAT},
    {NULL, NULL, "Incorrect stats size", HF_E_FILE_FORMAT},
    {NULL, NULL, "of the bitpacked data exceeds", HF_E_FILE_FORMAT},
    {NULL, NULL, "TProtocolException", HF_E_FILE_FORMAT},
    {NULL, NULL, "Out of buffer", HF_E_FILE_FORMAT},
    {NULL, NULL, "Could not read enough bytes", HF_E_FILE_FORMAT},
    {NULL, NULL, "Snappy decompression", HF_E_FILE_FORMAT},
    {NULL, NULL, "ZSTD Decompression", HF_E_FILE_FORMAT},
    {NULL, NULL, "Input is not a GZIP stream", HF_E_FILE_FORMAT},
    {"Parser", NULL, NULL, HF_E_SYNTAX},
    {"Syntax", NULL, NULL, HF_E_SYNTAX},
    {"Binder", "COLUMN_NOT_FOUND", NULL, HF_E_COLUMN_NOT_FOUND},
    {"Binder", "NO_MATCHING_FUNCTION", NULL, HF_E_FUNCTION_NOT_FOUND},
    {"Binder", NULL, "does not have a column named", HF_E_COLUMN_NOT_FOUND},
    {"Binder", NULL, "list not found in FROM clause", HF_E_COLUMN_NOT_FOUND},
    {"Binder", NULL, "Referenced table", HF_E_TABLE_NOT_FOUND},
    {NULL, NULL, "Could not retrieve required statistics", HF_E_UNSUPPORTED},
    {"Catalog", NULL, "but it exists in the", HF_E_UNSUPPORTED},
    {"Catalog", NULL, "Table with name", HF_E_TABLE_NOT_FOUND},
    {"Catalog", NULL, "Function with name", HF_E_FUNCTION_NOT_FOUND},
    {"Binder", NULL, NULL, HF_E_BIND},
    {"Catalog", NULL, NULL, HF_E_BIND},
    {NULL, NULL, "Values were not provided for", HF_E_BIND},
    {"Parameter Not Resolved", NULL, NULL, HF_E_BIND},
    {"Parameter Not Allowed", NULL, NULL, HF_E_BIND},
    {"Mismatch Type", NULL, NULL, HF_E_BIND},
    {"Conversion", NULL, NULL, HF_E_CAST},
    {NULL, NULL, "can't be cast because the value is out of range", HF_E_CAST},
    {"Out of Range", NULL, NULL, HF_E_OVERFLOW},
    {"Divide by Zero", NULL, NULL, HF_E_DIVIDE_BY_ZERO},
    {NULL, NULL, "Only SELECT statements can be serialized", HF_E_STATEMENT_REFUSED},
    {"Not implemented", NULL, NULL, HF_E_UNSUPPORTED},
    {"Missing Extension", NULL, NULL, HF_E_UNSUPPORTED},
    {"Extension Autoloading", NULL, NULL, HF_E_UNSUPPORTED},
    {NULL, NULL, "Cannot prepare multiple statements", HF_E_UNSUPPORTED},
    {NULL, NULL, "the configuration has been locked", HF_E_STATEMENT_REFUSED},
    {NULL, NULL, "options were not recognized", HF_E_SETTING_VALUE},
    {"Settings", NULL, NULL, HF_E_SETTING_VALUE},
    {"Invalid Configuration", NULL, NULL, HF_E_SETTING_VALUE},
    {"IO", NULL, NULL, HF_E_IO},
    {"HTTP", NULL, NULL, HF_E_IO},
    {"Network", NULL, NULL, HF_E_IO},
    {"FATAL", NULL, NULL, HF_E_INTERNAL},
    {"INTERNAL", NULL, NULL, HF_E_INTERNAL},
};

static bool fits(const rule *r, const report *from) {
  return (r->type == NULL || (from->type != NULL && strcasecmp(r->type, from->type) == 0)) &&
         (r->subtype == NULL || (from->subtype != NULL && strcmp(r->subtype, from->subtype) == 0)) &&
         (r->within == NULL || strcasestr(from->message, r->within) != NULL);
}

static hf_status code_of(const report *from) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (fits(&rules[i], from)) {
      return rules[i].code;
    }
  }
  return HF_E_QUERY;
}

/* --------------------------------------------------------------------- reading */

static const char *member(struct json_object *object, const char *key) {
  struct json_object *value = NULL;
  return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : NULL;
}

static struct json_object *parse_object(const char *text) {
  struct json_tokener *tokener = json_tokener_new_ex(ERROR_JSON_DEPTH);
  if (tokener == NULL) {
    return NULL;
  }
  struct json_object *object = json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1);
  json_tokener_free(tokener);
  if (object != NULL && !json_object_is_type(object, json_type_object)) {
    json_object_put(object);
    return NULL;
  }
  return object;
}

static void read_object(report *out, const char *type_key, const char *message_key) {
  struct json_object *o = out->object;
  out->type = member(o, type_key);
  out->message = member(o, message_key);
  out->subtype = member(o, "error_subtype");
  out->name = member(o, "name");
  out->entry_type = member(o, "type");
  out->call = member(o, "call");
  const char *position = member(o, "position");
  out->position = position == NULL ? -1 : strtoll(position, NULL, 10);
}

/* Splits "Binder Error: text". `type` keeps the word in front; "" when there is none. */
static void read_plain(const char *text, char *type, size_t type_length, report *out) {
  const char *colon = strstr(text, " Error: ");
  type[0] = '\0';
  out->message = text;
  if (colon != NULL && (size_t)(colon - text) < type_length) {
    memcpy(type, text, (size_t)(colon - text));
    type[colon - text] = '\0';
    out->message = colon + strlen(" Error: ");
  }
  out->type = type;
  out->position = -1;
}

/* -------------------------------------------------------------------- writing */

/* Appends DuckDB's text as one of ours: no capital, no full stop. */
static void append_text(const char *message, size_t length, buf *out) {
  while (length > 0 && strchr(".! \n\t", message[length - 1]) != NULL) {
    length--;
  }
  for (size_t i = 0; i < length; i++) {
    char c = message[i];
    bool is_word = i == 0 && length > 1 && islower((unsigned char)message[1]);
    buf_char(out, is_word ? (char)tolower((unsigned char)c) : c == '\n' || c == '\t' ? ' ' : c);
  }
}

/* The first paragraph, without the lists that follow. */
static void append_message(const char *message, buf *out) {
  static const char *const ends[] = {"\n\n", "\nThis error signals", "\nThe search space used", "\nCandidate",
                                     "\nDid you mean"};
  size_t length = strlen(message);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    const char *end = strstr(message, ends[i]);
    length = end != NULL && (size_t)(end - message) < length ? (size_t)(end - message) : length;
  }
  append_text(message, length, out);
}

/* "CSV Error on Line: 7", the line itself, the reason, advice, and sometimes "file = path" among the options. */
static void append_csv(const char *message, buf *out) {
  static const char line_key[] = "CSV Error on Line: ", file_key[] = "\n  file = ";
  const char *line = strstr(message, line_key) + strlen(line_key);
  const char *advice = strstr(line, "\nPossible "), *paragraph = strstr(line, "\n\n");
  const char *end = advice == NULL || (paragraph != NULL && paragraph < advice) ? paragraph : advice;
  end = end == NULL ? line + strlen(line) : end;
  const char *reason = end;
  while (reason > line && reason[-1] != '\n') {
    reason--;
  }
  buf_text(out, "bad CSV row: ");
  append_text(reason, (size_t)(end - reason), out);
  buf_printf(out, ", line %.*s", (int)strspn(line, "0123456789"), line);
  const char *file = strstr(end, file_key);
  if (file != NULL) {
    file += strlen(file_key);
    buf_printf(out, " of %.*s", (int)strcspn(file, "\n"), file);
  }
}

/* "COLUMN_TYPES error: Columns with names: "y","z" do not exist in the CSV File". */
static void append_missing(const char *message, buf *out) {
  const char *names = strchr(message, '"'), *end = strstr(message, " do not exist in the CSV File");
  buf_text(out, "a file lacks columns that the first file has, or that are asked for");
  if (names != NULL && names < end) {
    buf_printf(out, ": %.*s", (int)(end - names), names);
  }
}

static bool needs_bounds(const report *from) {
  return strstr(from->message, "BITSTRING_AGG(col, min, max)") != NULL;
}

static void append_main(hf_status code, const report *from, buf *out) {
  if (code == HF_E_COLUMN_NOT_FOUND && from->name != NULL) {
    buf_printf(out, "no column has this name: %s", from->name);
  } else if (code == HF_E_TABLE_NOT_FOUND && from->name != NULL) {
    buf_printf(out, "no table, view or file has this name: %s", from->name);
  } else if (code == HF_E_FUNCTION_NOT_FOUND && from->call != NULL) {
    buf_printf(out, "no function takes these arguments: %s", from->call);
  } else if (code == HF_E_FUNCTION_NOT_FOUND && from->name != NULL) {
    buf_printf(out, "no function has this name: %s", from->name);
  } else if (code == HF_E_LIMIT) {
    buf_text(out, "the statement is nested too deeply");
  } else if (needs_bounds(from)) {
    buf_text(out, "bitstring_agg needs its bounds here: only files tell them, blocks do not");
  } else if (strstr(from->message, "do not exist in the CSV File") != NULL) {
    append_missing(from->message, out);
  } else if (strstr(from->message, "CSV Error on Line: ") != NULL) {
    append_csv(from->message, out);
  } else {
    append_message(from->message, out);
  }
}

/*
 * Returns where the text behind one of DuckDB's lists of names begins, or NULL. Its catalogue has only tables and table
 * functions of its own, which are nobody's to use: those are not passed on.
 */
static const char *candidates_of(const report *from) {
  static const char *const heads[] = {"Candidate bindings: ", "Candidate tables: ", "Candidate Entries: ",
                                      "Did you mean ", "Candidate functions:"};
  const char *message = from->message;
  if (from->entry_type != NULL && strncmp(from->entry_type, "Table", strlen("Table")) == 0) {
    return NULL;
  }
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    const char *found = strstr(message, heads[i]);
    if (found != NULL) {
      return found + strlen(heads[i]);
    }
  }
  return NULL;
}

/* Replaces the row's remedy where DuckDB, or we, know better. */
static void set_hint(hf_error *error, const report *from) {
  const char *candidates = candidates_of(from);
  if (candidates != NULL) {
    buf text = {0};
    append_message(candidates + strspn(candidates, ": \n\t"), &text);
    while (text.length > 0 && text.data[text.length - 1] == '?') {
      text.data[--text.length] = '\0';
    }
    error_hint(error, "did you mean %s?", buf_cstr(&text));
    buf_reset(&text);
  } else if (error->code == HF_E_LIMIT) {
    error_hint(error, "hold a part of the query with cache() or CACHE TABLE, and build on it");
  } else if (needs_bounds(from)) {
    error_hint(error, "give the smallest and the largest value: bitstring_agg(x, min, max)");
  } else if (error->code == HF_E_FILE_FORMAT &&
             strstr(from->message, "do not exist in the CSV File") != NULL) {
    error_hint(error, "read files of different columns with union_by_name = true");
  } else if (error->code == HF_E_UNSUPPORTED && strstr(from->message, "multiple statements") != NULL) {
    error_hint(error, "give one statement; a PIVOT needs its list of values: PIVOT … ON x IN (…)");
  }
}

static hf_status report_set(hf_error *error, const report *from, size_t before, const char *text) {
  hf_status code = code_of(from);
  if (error == NULL) {
    return code;
  }
  buf message = {0};
  append_main(code, from, &message);
  error_set(error, code, "%s", message.length == 0 ? "DuckDB failed without a message" : buf_cstr(&message));
  buf_reset(&message);
  set_hint(error, from);
  if (from->position >= (int64_t)before) {
    error->position = from->position - (int64_t)before;
  }
  error_cause(error, from->message == NULL ? text : from->message);
  return code;
}

/* ------------------------------------------------------------------------ door */

hf_status failure_set(hf_error *error, const char *text, size_t before) {
  char type[64];
  if (text == NULL || text[0] == '\0') {
    return error_set(error, HF_E_INTERNAL, "DuckDB failed without a message");
  }
  const char *brace = strstr(text, "{\"exception_type\"");
  report from = {.object = brace == NULL ? NULL : parse_object(brace), .position = -1};
  if (from.object != NULL) {
    read_object(&from, "exception_type", "exception_message");
  }
  if (from.message == NULL) {
    read_plain(text, type, sizeof type, &from);
  }
  hf_status code = report_set(error, &from, before, text);
  json_object_put(from.object);
  return code;
}

hf_status failure_take(hf_error *error, duckdb_error_data *data) {
  hf_status status = HF_OK;
  if (*data != NULL && duckdb_error_data_has_error(*data)) {
    status = failure_set(error, duckdb_error_data_message(*data), 0);
  }
  duckdb_destroy_error_data(data);
  return status;
}

hf_status failure_set_json(hf_error *error, const char *json) {
  report from = {.object = parse_object(json), .position = -1};
  if (from.object != NULL) {
    read_object(&from, "error_type", "error_message");
  }
  hf_status code = from.message == NULL ? error_set(error, HF_E_INTERNAL, "DuckDB failed without a message")
                                        : report_set(error, &from, 0, json);
  json_object_put(from.object);
  return code;
}

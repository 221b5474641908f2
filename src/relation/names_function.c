/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions in SQL text: which table functions may stand as they are, which are
 * readers that become sources, and which scalar functions are refused. A table
 * function without a row is refused.
 */
#include "relation/names_internal.h"

#include "base/nearest.h"

#include <string.h>
#include <strings.h>

typedef struct table_function_row {
  const char *name;
  bool is_reader;
  source_format format;    /* of readers */
  const char *option_name; /* what the reader's name says beside its format; NULL: nothing */
  const char *option_value;
  bool is_objects; /* each value is one JSON column */
} table_function_row;

static const table_function_row TABLE_FUNCTIONS[] = {
    {"generate_series", .is_reader = false},
    {"generate_subscripts", .is_reader = false},
    {"json_each", .is_reader = false},
    {"json_tree", .is_reader = false},
    {"parquet_scan", true, SOURCE_PARQUET, NULL, NULL, false},
    {"range", .is_reader = false},
    {"read_csv", true, SOURCE_CSV, NULL, NULL, false},
    {"read_csv_auto", true, SOURCE_CSV, NULL, NULL, false},
    {"read_json", true, SOURCE_JSON, NULL, NULL, false},
    {"read_json_auto", true, SOURCE_JSON, NULL, NULL, false},
    {"read_json_objects", true, SOURCE_JSON, NULL, NULL, true},
    {"read_json_objects_auto", true, SOURCE_JSON, NULL, NULL, true},
    {"read_ndjson", true, SOURCE_JSON, "format", "'newline_delimited'", false},
    {"read_ndjson_auto", true, SOURCE_JSON, "format", "'newline_delimited'", false},
    {"read_ndjson_objects", true, SOURCE_JSON, "format", "'newline_delimited'", true},
    {"read_parquet", true, SOURCE_PARQUET, NULL, NULL, false},
    {"repeat", .is_reader = false},
    {"repeat_row", .is_reader = false},
    {"test_all_types", .is_reader = false},
    {"unnest", .is_reader = false},
};

/* Scalar functions that tell of the engine or the process, or change their state. */
static const char *const REFUSED_SCALARS[] = {
    "current_connection_id",
    "current_query",
    "current_query_id",
    "current_setting",
    "current_transaction_id",
    "currval",
    "getenv",
    "getvariable",
    "json_serialize_plan",
    "nextval",
    "parse_duckdb_log_message",
    "setseed",
    "stats",
    "txid_current",
    "write_log",
};

enum { MOST_READER_ARGUMENTS = 128 };

static bool is_refused_scalar(const char *name) {
  for (size_t i = 0; i < sizeof REFUSED_SCALARS / sizeof REFUSED_SCALARS[0]; i++) {
    if (strcasecmp(REFUSED_SCALARS[i], name) == 0) {
      return true;
    }
  }
  return strncasecmp(name, "hf_", 3) == 0 || strncasecmp(name, "__internal", 10) == 0;
}

/* DuckDB folds these to constants when it plans: in the plan nothing of them is left. */
static void note_clock(names_walk *w, const char *name) {
  static const char *const functions[] = {
      "ago",
      "current_date",
      "current_localtime",
      "current_localtimestamp",
      "current_time",
      "current_timestamp",
      "get_current_time",
      "get_current_timestamp",
      "localtime",
      "localtimestamp",
      "now",
      "today",
      "transaction_timestamp",
  };
  for (size_t i = 0; w->clock == NULL && i < sizeof functions / sizeof functions[0]; i++) {
    w->clock = strcasecmp(functions[i], name) == 0 ? functions[i] : NULL;
  }
}

void names_column(names_walk *w, struct json_object *column_ref) {
  if (node_count(column_ref, "column_names") == 1) {
    note_clock(w, json_object_get_string(node_at(column_ref, "column_names", 0)));
  }
}

hf_status names_scalar_function(names_walk *w, struct json_object *function) {
  const char *name = node_text(function, "function_name");
  size_t offset = 0;
  if (!is_refused_scalar(name)) {
    note_clock(w, strcasecmp(name, "age") == 0 && node_count(function, "children") == 1 ? "now" : name);
    return HF_OK;
  }
  bool known = node_location(function, &offset);
  return names_fail(w, HF_E_FUNCTION_REFUSED, known ? offset : SIZE_MAX, "this function is not accepted",
                    name, "leave it out: a query may not look at or change the engine that runs it");
}

/* ------------------------------------------------------------------ readers */

/* A call that is being turned into a request. */
typedef struct reader_call {
  const table_function_row *row;
  size_t offset; /* of the call in the text */
  const char **paths, **written;
  size_t n_paths;
  source_option options[MOST_READER_ARGUMENTS];
  size_t n_options;
} reader_call;

static hf_status bad_argument(const names_walk *w, const reader_call *call, const char *what,
                              const char *value) {
  return names_fail(w, HF_E_INVALID_ARGUMENT, call->offset, what, value, NULL);
}

static const char *constant_text(struct json_object *expression) {
  struct json_object *value = node_get(expression, "value");
  bool is_text = node_is(expression, "class", "CONSTANT") &&
                 node_is(node_get(value, "type"), "id", "VARCHAR") &&
                 json_object_is_type(node_get(value, "value"), json_type_string);
  return is_text ? node_text(value, "value") : NULL;
}

/* 'a', or ['a', 'b'] */
static hf_status read_paths(const names_walk *w, reader_call *call, struct json_object *argument) {
  bool is_list = node_is(argument, "class", "FUNCTION") && node_is(argument, "function_name", "list_value");
  size_t n = is_list ? node_count(argument, "children") : 1;
  call->paths = arena_array(w->arena, n == 0 ? 1 : n, sizeof *call->paths);
  call->written = arena_array(w->arena, n == 0 ? 1 : n, sizeof *call->written);
  if (call->paths == NULL || call->written == NULL) {
    return names_out_of_memory(w);
  }
  for (size_t i = 0; i < n; i++) {
    const char *path = constant_text(is_list ? node_at(argument, "children", i) : argument);
    if (path == NULL) {
      return bad_argument(w, call, "a reader takes the names of files as constants", call->row->name);
    }
    call->written[i] = arena_strdup(w->arena, path);
    call->paths[i] = source_path_absolute(path, w->arena);
    if (call->paths[i] == NULL || call->written[i] == NULL) {
      return names_out_of_memory(w);
    }
  }
  call->n_paths = n;
  return n > 0 ? HF_OK : bad_argument(w, call, "a reader is given no file", call->row->name);
}

static hf_status add_option(const names_walk *w, reader_call *call, const char *name, const char *value_sql) {
  for (size_t i = 0; i < call->n_options; i++) {
    if (strcasecmp(call->options[i].name, name) == 0) {
      return bad_argument(w, call, "a reader option is given twice", name);
    }
  }
  source_option *option = &call->options[call->n_options++];
  option->name = arena_strdup(w->arena, name);
  option->value_sql = arena_strdup(w->arena, value_sql);
  for (char *c = (char *)option->name; c != NULL && *c != '\0'; c++) {
    *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
  }
  return option->name == NULL || option->value_sql == NULL ? names_out_of_memory(w) : HF_OK;
}

/* header = true is parsed as a comparison, header := true and header => true as a value with an alias. */
static hf_status read_option(const names_walk *w, reader_call *call, struct json_object *argument) {
  const char *name = node_text(argument, "alias");
  struct json_object *value = argument;
  if (node_is(argument, "type", "COMPARE_EQUAL")) {
    struct json_object *left = node_get(argument, "left");
    name =
        node_count(left, "column_names") == 1 ? json_object_get_string(node_at(left, "column_names", 0)) : "";
    value = node_get(argument, "right");
  }
  if (*name == '\0') {
    return bad_argument(w, call, "a reader takes one list of files, then options by name", call->row->name);
  }
  hf_status status = source_option_check(call->row->format, name, w->error);
  if (status != HF_OK) {
    if (w->error != NULL) {
      w->error->position = (int64_t)call->offset;
    }
    return status;
  }
  buf spelled = {0};
  if (names_constant_sql(value, &spelled)) {
    status = add_option(w, call, name, buf_cstr(&spelled));
  } else if (spelled.failed) {
    status = names_out_of_memory(w);
  } else {
    status = bad_argument(w, call, "a reader option must be a constant, list or struct", name);
  }
  buf_reset(&spelled);
  return status;
}

/* What the reader's name says becomes options. */
static hf_status add_implied(const names_walk *w, reader_call *call) {
  bool given = false;
  for (size_t i = 0; i < call->n_options; i++) {
    given = given || strcasecmp(call->options[i].name, "format") == 0;
  }
  if (call->row->option_name != NULL && !given) {
    HF_TRY(add_option(w, call, call->row->option_name, call->row->option_value));
  }
  if (call->row->is_objects) {
    HF_TRY(add_option(w, call, "columns", "{'json': 'JSON'}"));
    HF_TRY(add_option(w, call, "records", "'false'"));
  }
  return HF_OK;
}

static hf_status read_call(const names_walk *w, reader_call *call, struct json_object *function) {
  size_t n = node_count(function, "children");
  if (n == 0 || n > MOST_READER_ARGUMENTS - 4) {
    return bad_argument(w, call, "a reader is given no file, or too many arguments", call->row->name);
  }
  HF_TRY(read_paths(w, call, node_at(function, "children", 0)));
  for (size_t i = 1; i < n; i++) {
    HF_TRY(read_option(w, call, node_at(function, "children", i)));
  }
  return add_implied(w, call);
}

/* Offset behind the parenthesis that closes the call starting at the token; 0: not found. */
static size_t call_end(const token_list *list, size_t first) {
  size_t depth = 0;
  for (size_t i = first; i < list->count; i++) {
    token t = list->tokens[i];
    if (token_is_sign(list->text, t, '(')) {
      depth++;
    } else if (token_is_sign(list->text, t, ')') && depth > 0 && --depth == 0) {
      return t.offset + t.length;
    }
  }
  return 0;
}

static hf_status add_reader(names_walk *w, const table_function_row *row, struct json_object *ref) {
  reader_call *call = arena_alloc(w->arena, sizeof *call);
  size_t offset = 0;
  if (call == NULL) {
    return names_out_of_memory(w);
  }
  size_t first = node_location(ref, &offset) ? token_list_find(w->tokens, offset) : w->tokens->count;
  size_t end = call_end(w->tokens, first);
  *call = (reader_call){.row = row, .offset = offset};
  if (end == 0) {
    return names_fail(w, HF_E_UNSUPPORTED, SIZE_MAX, "a reader's call cannot be found in the text", row->name,
                      NULL);
  }
  if (!node_is(ref, "with_ordinality", "WITHOUT_ORDINALITY") && node_get(ref, "with_ordinality") != NULL) {
    return names_fail(w, HF_E_UNSUPPORTED, offset, "this feature is not there: WITH ORDINALITY of a reader",
                      row->name, "number the rows with row_number() OVER ()");
  }
  HF_TRY(read_call(w, call, node_get(ref, "function")));
  source_request request = {row->format,   call->paths,     call->n_paths,
                            call->options, call->n_options, call->written};
  sql_spot spot = {.offset = offset,
                   .length = end - offset,
                   .name = row->name,
                   .alias = *node_text(ref, "alias") == '\0' ? row->name : NULL,
                   .source = source_request_copy(&request, w->arena)};
  return spot.source == NULL ? names_out_of_memory(w) : names_add_spot(w, &spot);
}

/* --------------------------------------------------------------------- door */

static hf_status refuse(const names_walk *w, struct json_object *ref, const char *name) {
  size_t offset = 0;
  bool known = node_location(ref, &offset);
  nearest near = nearest_to(name);
  for (size_t i = 0; i < sizeof TABLE_FUNCTIONS / sizeof TABLE_FUNCTIONS[0]; i++) {
    nearest_offer(&near, TABLE_FUNCTIONS[i].name);
  }
  names_fail(w, HF_E_FUNCTION_REFUSED, known ? offset : SIZE_MAX, "this table function is not accepted", name,
             NULL);
  if (near.best != NULL) {
    error_hint(w->error, "did you mean %s?", near.best);
  }
  return HF_E_FUNCTION_REFUSED;
}

hf_status names_table_function(names_walk *w, struct json_object *ref, bool *descend) {
  struct json_object *function = node_get(ref, "function");
  const char *name = node_text(function, "function_name");
  const char *schema_name = node_text(function, "schema");
  bool is_plain = *node_text(function, "catalog") == '\0' &&
                  (*schema_name == '\0' || strcasecmp(schema_name, "main") == 0);
  const table_function_row *row = NULL;
  for (size_t i = 0; is_plain && i < sizeof TABLE_FUNCTIONS / sizeof TABLE_FUNCTIONS[0]; i++) {
    row = strcasecmp(TABLE_FUNCTIONS[i].name, name) == 0 ? &TABLE_FUNCTIONS[i] : row;
  }
  if (row == NULL) {
    return refuse(w, ref, name);
  }
  *descend = !row->is_reader;
  return row->is_reader ? add_reader(w, row, ref) : HF_OK;
}

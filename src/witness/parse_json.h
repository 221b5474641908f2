/* SPDX-License-Identifier: Apache-2.0 */
/* Reading DuckDB's parse tree as JSON, which what is asked for need not be in. Not a door. Thread: any. */
#ifndef HF_WITNESS_PARSE_JSON_H
#define HF_WITNESS_PARSE_JSON_H

#include <json-c/json.h>

/* As deep as DuckDB parses, a few levels of JSON an expression. */
#define WITNESS_JSON_DEPTH 8192

typedef struct json_object json;

static inline json *get(json *object, const char *key) {
  json *value = NULL;
  return json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, key, &value)
             ? value
             : NULL;
}

static inline const char *text(json *object, const char *key) {
  json *value = get(object, key);
  return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static inline size_t length(json *array) {
  return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* json-c takes what the trees hold: 64-bit unsigned numbers, NaN and Infinity, and deep nesting when told so. */
#include "relation/node.h"

#include <string.h>

enum { DEEPEST_TREE = 10000 };

hf_status node_parse(const char *json, struct json_object **out, hf_error *error) {
  struct json_tokener *tokener = json_tokener_new_ex(DEEPEST_TREE);
  if (tokener == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read a tree");
  }
  size_t length = strlen(json);
  struct json_object *tree =
      length < INT32_MAX ? json_tokener_parse_ex(tokener, json, (int)length + 1) : NULL;
  enum json_tokener_error failure = json_tokener_get_error(tokener);
  json_tokener_free(tokener);
  if (tree != NULL) {
    *out = tree;
    return HF_OK;
  }
  if (failure == json_tokener_error_depth || length >= INT32_MAX) {
    return error_set(error, HF_E_LIMIT, "a statement is nested too deep or too long");
  }
  return error_set(error, HF_E_INTERNAL, "a tree of the engine cannot be read: %s",
                   json_tokener_error_desc(failure));
}

struct json_object *node_get(struct json_object *node, const char *key) {
  struct json_object *member = NULL;
  if (!json_object_is_type(node, json_type_object) || !json_object_object_get_ex(node, key, &member)) {
    return NULL;
  }
  return member;
}

const char *node_text(struct json_object *node, const char *key) {
  struct json_object *member = node_get(node, key);
  return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
}

bool node_is(struct json_object *node, const char *key, const char *text) {
  return strcmp(node_text(node, key), text) == 0;
}

size_t node_count(struct json_object *node, const char *key) {
  struct json_object *member = node_get(node, key);
  return json_object_is_type(member, json_type_array) ? json_object_array_length(member) : 0;
}

struct json_object *node_at(struct json_object *node, const char *key, size_t i) {
  return json_object_array_get_idx(node_get(node, key), i);
}

bool node_location(struct json_object *node, size_t *out) {
  struct json_object *member = node_get(node, "query_location");
  uint64_t location = member == NULL ? UINT64_MAX : json_object_get_uint64(member);
  *out = (size_t)location;
  return location < UINT32_MAX;
}

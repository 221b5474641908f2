/* SPDX-License-Identifier: Apache-2.0 */
/* Strict reading of JSON objects. */
#include "tree/json_read.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hf_status json_read_refuse(json_reader *r, tree_refusal_code code, const char *node, const char *format,
                           ...) {
  if (r->refusal->code != TREE_REFUSED_NONE) {
    return HF_E_UNSUPPORTED;
  }
  char reason[300];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  r->refusal->code = code;
  r->refusal->node = arena_strdup(r->a, node);
  r->refusal->reason = arena_strdup(r->a, reason);
  return r->refusal->node == NULL || r->refusal->reason == NULL ? json_read_no_memory(r) : HF_E_UNSUPPORTED;
}

hf_status json_read_no_memory(json_reader *r) {
  return error_set(r->error, HF_E_OUT_OF_MEMORY, "no memory for the plan tree");
}

hf_status json_read_open(json_reader *r, struct json_object *object, const char *node, json_view *out) {
  if (!json_object_is_type(object, json_type_object)) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, node, "an object was expected");
  }
  out->reader = r;
  out->object = object;
  out->node = node;
  out->n_taken = 0;
  return HF_OK;
}

static bool is_taken(const json_view *v, const char *key) {
  for (size_t i = 0; i < v->n_taken; i++) {
    if (strcmp(v->taken[i], key) == 0) {
      return true;
    }
  }
  return false;
}

hf_status json_read_close(json_view *v) {
  if ((size_t)json_object_object_length(v->object) == v->n_taken) {
    return HF_OK;
  }
  struct json_object_iterator at = json_object_iter_begin(v->object);
  struct json_object_iterator end = json_object_iter_end(v->object);
  for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
    const char *key = json_object_iter_peek_name(&at);
    if (!is_taken(v, key)) {
      return json_read_refuse(v->reader, TREE_REFUSED_KEY, v->node, "unknown key %.100s", key);
    }
  }
  return HF_OK;
}

struct json_object *json_read_take(json_view *v, const char *key) {
  struct json_object *value = NULL;
  if (!json_object_object_get_ex(v->object, key, &value)) {
    return NULL;
  }
  assert(v->n_taken < JSON_VIEW_KEYS);
  if (!is_taken(v, key)) {
    v->taken[v->n_taken++] = key;
  }
  return value;
}

void json_read_ignore(json_view *v, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; i++) {
    (void)json_read_take(v, keys[i]);
  }
}

static hf_status wrong(json_view *v, const char *key, const char *expected) {
  return json_read_refuse(v->reader, TREE_REFUSED_UNREADABLE, v->node, "%s is not %s", key, expected);
}

hf_status json_read_text_of(json_reader *r, struct json_object *value, const char *node, const char **out,
                            size_t *length) {
  if (!json_object_is_type(value, json_type_string)) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, node, "a text was expected");
  }
  size_t n = (size_t)json_object_get_string_len(value);
  *out = arena_strndup(r->a, json_object_get_string(value), n);
  if (length != NULL) {
    *length = n;
  }
  return *out == NULL ? json_read_no_memory(r) : HF_OK;
}

hf_status json_read_text(json_view *v, const char *key, const char **out) {
  struct json_object *value = json_read_take(v, key);
  if (!json_object_is_type(value, json_type_string)) {
    return wrong(v, key, "a text");
  }
  size_t length = 0;
  HF_TRY(json_read_text_of(v->reader, value, v->node, out, &length));
  /* a name with NUL inside would be cut short */
  return strlen(*out) == length
             ? HF_OK
             : json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "%s holds NUL", key);
}

hf_status json_read_bool(json_view *v, const char *key, bool *out) {
  struct json_object *value = json_read_take(v, key);
  if (!json_object_is_type(value, json_type_boolean)) {
    return wrong(v, key, "a boolean");
  }
  *out = json_object_get_boolean(value);
  return HF_OK;
}

static bool is_size(struct json_object *value) {
  return json_object_is_type(value, json_type_int) &&
         (json_object_get_int64(value) >= 0 || json_object_get_uint64(value) > INT64_MAX);
}

hf_status json_read_size(json_view *v, const char *key, uint64_t *out) {
  struct json_object *value = json_read_take(v, key);
  if (!is_size(value)) {
    return wrong(v, key, "a number from 0");
  }
  *out = json_object_get_uint64(value);
  return HF_OK;
}

hf_status json_read_enum(json_view *v, const char *key, const char *const *names, size_t n_names,
                         unsigned *out) {
  struct json_object *value = json_read_take(v, key);
  if (!json_object_is_type(value, json_type_string)) {
    return wrong(v, key, "a text");
  }
  const char *text = json_object_get_string(value);
  for (size_t i = 0; i < n_names; i++) {
    if (strcmp(names[i], text) == 0) {
      *out = (unsigned)i;
      return HF_OK;
    }
  }
  return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "%s is %.100s", key, text);
}

hf_status json_read_array(json_view *v, const char *key, struct json_object **out, size_t *n) {
  *out = json_read_take(v, key);
  *n = 0;
  if (*out == NULL) {
    return HF_OK;
  }
  if (!json_object_is_type(*out, json_type_array)) {
    return wrong(v, key, "an array");
  }
  *n = json_object_array_length(*out);
  return HF_OK;
}

hf_status json_read_texts(json_view *v, const char *key, const char *const **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  const char **texts = arena_array(v->reader->a, *n, sizeof *texts);
  if (texts == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < *n; i++) {
    size_t length = 0;
    HF_TRY(json_read_text_of(v->reader, json_object_array_get_idx(array, i), v->node, &texts[i], &length));
    if (strlen(texts[i]) != length) {
      return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "%s holds NUL", key);
    }
  }
  *out = texts;
  return HF_OK;
}

hf_status json_read_indexes_of(json_reader *r, struct json_object *array, const char *node, size_t limit,
                               tree_group_set *out) {
  if (!json_object_is_type(array, json_type_array)) {
    return json_read_refuse(r, TREE_REFUSED_UNREADABLE, node, "an array of numbers was expected");
  }
  size_t n = json_object_array_length(array);
  size_t *indexes = arena_array(r->a, n, sizeof *indexes);
  if (indexes == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < n; i++) {
    struct json_object *value = json_object_array_get_idx(array, i);
    if (!is_size(value) || json_object_get_uint64(value) >= limit) {
      return json_read_refuse(r, TREE_REFUSED_REFERENCE, node, "a number below %zu was expected", limit);
    }
    indexes[i] = (size_t)json_object_get_uint64(value);
  }
  out->groups = indexes;
  out->n = n;
  return HF_OK;
}

hf_status json_read_indexes(json_view *v, const char *key, size_t limit, const size_t **out, size_t *n) {
  struct json_object *array = NULL;
  HF_TRY(json_read_array(v, key, &array, n));
  tree_group_set set = {0, NULL};
  if (array != NULL) {
    HF_TRY(json_read_indexes_of(v->reader, array, v->node, limit, &set));
  }
  *out = set.groups;
  return HF_OK;
}

hf_status json_read_descend(json_reader *r, const char *node) {
  if (r->level >= TREE_DEEPEST_LEVEL) {
    return json_read_refuse(r, TREE_REFUSED_DEPTH, node, "nested deeper than %d levels", TREE_DEEPEST_LEVEL);
  }
  r->level++;
  return HF_OK;
}

void json_read_ascend(json_reader *r) {
  r->level--;
}

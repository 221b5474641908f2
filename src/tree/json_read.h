/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict reading of JSON objects: each key is taken once, and closing a view
 * refuses the keys that nobody took. A refusal is returned as HF_E_UNSUPPORTED
 * with the reader's refusal set, so that HF_TRY carries it out.
 * Knows JSON and refusals, nothing of plans. Thread: one at a time.
 */
#ifndef HF_PLAN_JSON_READ_H
#define HF_PLAN_JSON_READ_H

#include "tree/tree.h"

#include <json-c/json.h>

typedef struct json_reader {
  arena *a;
  tree_refusal *refusal;
  hf_error *error;
  unsigned level;
} json_reader;

enum { JSON_VIEW_KEYS = 32 };

/* An object being read; on the stack. */
typedef struct json_view {
  json_reader *reader;
  struct json_object *object;
  const char *node; /* for refusals */
  size_t n_taken;
  const char *taken[JSON_VIEW_KEYS];
} json_view;

/* Sets the refusal (the first one stays) and returns HF_E_UNSUPPORTED. */
hf_status json_read_refuse(json_reader *r, tree_refusal_code code, const char *node, const char *format, ...)
    HF_PRINTF(4, 5);
/* Sets OUT_OF_MEMORY. */
hf_status json_read_no_memory(json_reader *r);

/* Opens a view; refuses what is no object. `node` is borrowed. */
hf_status json_read_open(json_reader *r, struct json_object *object, const char *node, json_view *out);
/* Refuses the first key that was not taken. */
hf_status json_read_close(json_view *v);

/* Takes a key; returns its value, or NULL when it is absent (or null). */
struct json_object *json_read_take(json_view *v, const char *key);
/* Takes keys whose values do not matter. */
void json_read_ignore(json_view *v, const char *const *keys, size_t n);

/* Each takes a key and refuses an absent value or one of another type; texts are copied into the arena. */
hf_status json_read_text(json_view *v, const char *key, const char **out);
hf_status json_read_bool(json_view *v, const char *key, bool *out);
hf_status json_read_size(json_view *v, const char *key, uint64_t *out);
hf_status json_read_enum(json_view *v, const char *key, const char *const *names, size_t n_names,
                         unsigned *out);
/* An absent array is empty. */
hf_status json_read_array(json_view *v, const char *key, struct json_object **out, size_t *n);
hf_status json_read_texts(json_view *v, const char *key, const char *const **out, size_t *n);
/* Numbers below `limit`. */
hf_status json_read_indexes(json_view *v, const char *key, size_t limit, const size_t **out, size_t *n);

/* Reads a text of any length, NUL inside or not. */
hf_status json_read_text_of(json_reader *r, struct json_object *value, const char *node, const char **out,
                            size_t *length);
/* Reads an array of numbers below `limit`. */
hf_status json_read_indexes_of(json_reader *r, struct json_object *array, const char *node, size_t limit,
                               tree_group_set *out);

/* Goes a level deeper; refuses beyond TREE_DEEPEST_LEVEL. Every success is followed by json_read_ascend. */
hf_status json_read_descend(json_reader *r, const char *node);
void json_read_ascend(json_reader *r);

#endif

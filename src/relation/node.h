/* SPDX-License-Identifier: Apache-2.0 */
/* DuckDB's trees as JSON: parsing, and looking for members. Thread: one at a time per tree. */
#ifndef HF_RELATION_NODE_H
#define HF_RELATION_NODE_H

#include "base/error.h"

#include <json-c/json.h>

/* Parses; *out is released with json_object_put. Errors: LIMIT (nested too deep), INTERNAL (no JSON). */
hf_status node_parse(const char *json, struct json_object **out, hf_error *error);
/* A member, or NULL: not an object, no such member, null. */
struct json_object *node_get(struct json_object *node, const char *key);
/* The text of a member, or "" ; borrowed from the tree. */
const char *node_text(struct json_object *node, const char *key);
/* Whether the member is this text. */
bool node_is(struct json_object *node, const char *key, const char *text);
/* Elements of a member that is an array; 0 when it is none. */
size_t node_count(struct json_object *node, const char *key);
struct json_object *node_at(struct json_object *node, const char *key, size_t i);
/* A byte offset of the statement's text; false when the tree does not say. */
bool node_location(struct json_object *node, size_t *out);

#endif

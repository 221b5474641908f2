/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of a parsed tree, spelled as SQL again: what a reader's call may hold
 * as path or option. Anything that would have to be computed is none.
 */
#include "relation/names_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool spell_expression(struct json_object *expression, buf *out);

/* A DECIMAL's value is its digits without the point. */
static void spell_decimal(int64_t digits, int scale, buf *out) {
  uint64_t magnitude = digits < 0 ? (uint64_t)-digits : (uint64_t)digits;
  buf plain = {0};
  buf_printf(&plain, "%0*" PRIu64, scale + 1, magnitude);
  if (plain.failed) {
    out->failed = true;
    return;
  }
  size_t whole = plain.length - (size_t)scale;
  buf_text(out, digits < 0 ? "-" : "");
  buf_append(out, plain.data, whole);
  buf_char(out, '.');
  buf_append(out, plain.data + whole, (size_t)scale);
  buf_reset(&plain);
}

static bool spell_value(struct json_object *value, buf *out) {
  struct json_object *type = node_get(value, "type");
  struct json_object *content = node_get(value, "value");
  const char *id = node_text(type, "id");
  if (json_object_get_boolean(node_get(value, "is_null"))) {
    buf_text(out, "NULL");
    return true;
  }
  switch (json_object_get_type(content)) {
    case json_type_string:
      if (strcmp(id, "VARCHAR") == 0) {
        buf_sql_string(out, json_object_get_string(content));
        return true;
      }
      return false;
    case json_type_boolean:
      buf_text(out, json_object_get_boolean(content) ? "true" : "false");
      return true;
    case json_type_double:
      buf_printf(out, "%.17g", json_object_get_double(content));
      return true;
    case json_type_int:
      if (strcmp(id, "DECIMAL") == 0) {
        int scale = json_object_get_int(node_get(node_get(type, "type_info"), "scale"));
        spell_decimal(json_object_get_int64(content), scale < 0 || scale > 38 ? 0 : scale, out);
      } else {
        buf_text(out, json_object_get_string(content));
      }
      return strcmp(id, "DECIMAL") == 0 || strstr(id, "INT") != NULL;
    default:
      return false;
  }
}

/* The boolean literal is parsed as CAST('t' AS BOOLEAN). */
static bool spell_cast(struct json_object *cast, buf *out) {
  struct json_object *value = node_get(node_get(cast, "child"), "value");
  const char *text = node_text(value, "value");
  bool is_truth = node_is(node_get(cast, "cast_type"), "id", "BOOLEAN") &&
                  (strcmp(text, "t") == 0 || strcmp(text, "f") == 0);
  if (is_truth) {
    buf_text(out, *text == 't' ? "true" : "false");
  }
  return is_truth;
}

/* [a, b], {'k': v}, ROW(…) is not taken, MAP is not taken; a sign before a number. */
static bool spell_function(struct json_object *function, buf *out) {
  size_t n = node_count(function, "children");
  const char *name = node_text(function, "function_name");
  bool is_list = strcmp(name, "list_value") == 0;
  bool is_struct = strcmp(name, "struct_pack") == 0;
  if (strcmp(name, "-") == 0 && n == 1) {
    buf_char(out, '-');
    return spell_expression(node_at(function, "children", 0), out);
  }
  if (!is_list && !is_struct) {
    return false;
  }
  buf_char(out, is_list ? '[' : '{');
  for (size_t i = 0; i < n; i++) {
    struct json_object *child = node_at(function, "children", i);
    buf_text(out, i == 0 ? "" : ", ");
    if (is_struct) {
      buf_sql_string(out, node_text(child, "alias"));
      buf_text(out, ": ");
    }
    if (!spell_expression(child, out)) {
      return false;
    }
  }
  buf_char(out, is_list ? ']' : '}');
  return true;
}

static bool spell_expression(struct json_object *expression, buf *out) {
  if (node_is(expression, "class", "CONSTANT")) {
    return spell_value(node_get(expression, "value"), out);
  }
  if (node_is(expression, "class", "CAST")) {
    return spell_cast(expression, out);
  }
  return node_is(expression, "class", "FUNCTION") && spell_function(expression, out);
}

bool names_constant_sql(struct json_object *expression, buf *out) {
  return spell_expression(expression, out) && !out->failed;
}

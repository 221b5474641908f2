/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query orders its result by, as columns of the result: read out of DuckDB's
 * parse tree. Only what is certain counts; an expression that is no column of the
 * result ends the list.
 * Thread: one at a time.
 */
#include "parse_json.h"
#include "witness.h"

#include <string.h>
#include <strings.h>

/* Takes places and names off an expression, so that equal ones are equal. Depth as of the text, which was bounded. */
static void strip(json *value) {
  if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < length(value); i++) {
      strip(json_object_array_get_idx(value, i));
    }
  } else if (json_object_is_type(value, json_type_object)) {
    json_object_object_del(value, "query_location");
    json_object_object_del(value, "alias");
    json_object_object_foreach(value, key, child) {
      (void)key;
      strip(child);
    }
  }
}

typedef struct order_finder {
  const schema *columns; /* of the result */
  json *select_list;     /* NULL: of a set operation */
} order_finder;

/* The one column of that name, or n_columns. */
static size_t column_named(const order_finder *f, const char *name) {
  size_t found = f->columns->n_columns;
  for (size_t i = 0; i < f->columns->n_columns; i++) {
    if (strcasecmp(f->columns->columns[i].name, name) == 0) {
      if (found < f->columns->n_columns) {
        return f->columns->n_columns;
      }
      found = i;
    }
  }
  return found;
}

/* The column that the select list computes by the same expression; behind a star the positions are not known. */
static size_t column_computed(const order_finder *f, json *expression) {
  for (size_t i = 0; i < length(f->select_list); i++) {
    json *item = json_object_array_get_idx(f->select_list, i);
    if (strcmp(text(item, "class"), "STAR") == 0) {
      break;
    }
    strip(item);
    if (json_object_equal(item, expression) != 0) {
      return i;
    }
  }
  return f->columns->n_columns;
}

static size_t column_of(const order_finder *f, json *expression) {
  const char *class = text(expression, "class");
  size_t none = f->columns->n_columns;
  if (strcmp(class, "CONSTANT") == 0) {
    json *number = get(get(expression, "value"), "value");
    int64_t position = json_object_is_type(number, json_type_int) ? json_object_get_int64(number) : 0;
    return position >= 1 && (uint64_t)position <= none ? (size_t)position - 1 : none;
  }
  json *names = get(expression, "column_names");
  if (strcmp(class, "COLUMN_REF") == 0 && length(names) == 1) {
    return column_named(f, json_object_get_string(json_object_array_get_idx(names, 0)));
  }
  strip(expression);
  return column_computed(f, expression);
}

static void read_orders(const order_finder *f, json *orders, size_t *keys, compare_options *out) {
  for (size_t i = 0; i < length(orders) && out->n_order_columns < f->columns->n_columns; i++) {
    json *expression = get(json_object_array_get_idx(orders, i), "expression");
    if (strcmp(text(expression, "class"), "STAR") == 0) { /* ORDER BY ALL */
      for (size_t c = 0; c < f->columns->n_columns; c++) {
        keys[c] = c;
      }
      out->n_order_columns = f->columns->n_columns;
      return;
    }
    size_t found = column_of(f, expression);
    if (found >= f->columns->n_columns) {
      return;
    }
    keys[out->n_order_columns++] = found;
  }
}

static void read_query(json *root, const schema *columns, size_t *keys, compare_options *out) {
  json *statements = get(root, "statements");
  json *node = length(statements) == 1 ? get(json_object_array_get_idx(statements, 0), "node") : NULL;
  order_finder finder = {columns, get(node, "select_list")};
  json *modifiers = get(node, "modifiers");
  for (size_t i = 0; i < length(modifiers); i++) {
    json *modifier = json_object_array_get_idx(modifiers, i);
    const char *type = text(modifier, "type");
    if (strcmp(type, "ORDER_MODIFIER") == 0) {
      read_orders(&finder, get(modifier, "orders"), keys, out);
    } else if (strncmp(type, "LIMIT", 5) == 0) {
      out->limited = true;
    }
  }
  out->limited = out->limited && out->n_order_columns > 0;
}

void order_of_query(engine *e, const char *sql, arena *a, compare_options *out) {
  *out = (compare_options){0};
  schema columns;
  const char *parsed = NULL;
  if (engine_parse(e, sql, a, &parsed, NULL) != HF_OK ||
      engine_describe(e, sql, a, &columns, NULL) != HF_OK) {
    return;
  }
  if (strstr(parsed, "\"COLLATE\"") != NULL) { /* texts that are not the same may tie */
    return;
  }
  size_t *keys = arena_array(a, columns.n_columns, sizeof *keys);
  json_tokener *tokener = json_tokener_new_ex(WITNESS_JSON_DEPTH);
  if (keys != NULL && tokener != NULL) {
    out->order_columns = keys;
    json *root = json_tokener_parse_ex(tokener, parsed, -1);
    read_query(root, &columns, keys, out);
    json_object_put(root);
  }
  if (tokener != NULL) {
    json_tokener_free(tokener);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a parsed tree and writes its members in DuckDB's order, without those that
 * are empty, for each of which there is one meaning. Two queries with equal forms
 * give equal answers; the other way round it is not promised.
 * Thread: any.
 */
#include "relation/canonical.h"

#include "base/fault.h"

#include <string.h>
#include <strings.h>

void canonical_request(const source_request *request, buf *out) {
  buf_printf(out, "files(%d", (int)request->format);
  for (size_t i = 0; i < request->n_paths; i++) {
    buf_char(out, ' ');
    buf_sql_string(out, request->paths[i]);
  }
  for (size_t i = 0; i < request->n_options; i++) {
    buf_char(out, ' ');
    buf_sql_name(out, request->options[i].name);
    buf_char(out, '=');
    buf_text(out, request->options[i].value_sql);
  }
  buf_char(out, ')');
}

static bool is_table(struct json_object *node) {
  return node_is(node, "type", "BASE_TABLE") || node_is(node, "type", "TABLE_FUNCTION");
}

/* How often the text stands in the tree, but as the name or alias of a table. */
static size_t uses_of(struct json_object *value, const char *name) {
  size_t count = 0;
  switch (json_object_get_type(value)) {
    case json_type_string:
      return strcasecmp(json_object_get_string(value), name) == 0;
    case json_type_array:
      for (size_t i = 0; i < json_object_array_length(value); i++) {
        count += uses_of(json_object_array_get_idx(value, i), name);
      }
      return count;
    case json_type_object: {
      json_object_object_foreach(value, key, member) {
        bool names_table = strcmp(key, "table_name") == 0 || strcmp(key, "schema_name") == 0 ||
                           strcmp(key, "catalog_name") == 0 || (is_table(value) && strcmp(key, "alias") == 0);
        count += names_table ? 0 : uses_of(member, name);
      }
      return count;
    }
    default:
      return 0;
  }
}

static const sql_spot *spot_of(const canonical_form *form, struct json_object *node) {
  size_t offset = 0;
  if (!node_location(node, &offset)) {
    return NULL;
  }
  for (size_t i = 0; i < form->n_spots; i++) {
    if (offset >= form->spots[i].offset && offset < form->spots[i].offset + form->spots[i].length) {
      return &form->spots[i];
    }
  }
  return NULL;
}

static void append_value(const canonical_form *form, struct json_object *value, buf *out);

static bool is_left_out(const char *key, struct json_object *member) {
  switch (json_object_get_type(member)) {
    case json_type_null:
      return true;
    case json_type_boolean:
      return !json_object_get_boolean(member);
    case json_type_string:
      return *json_object_get_string(member) == '\0';
    case json_type_array:
      return json_object_array_length(member) == 0;
    default:
      return strcmp(key, "query_location") == 0;
  }
}

/* What is bound, then alias, column names, sample … as they are. */
static void append_spot(const canonical_form *form, struct json_object *node, const sql_spot *spot,
                        buf *out) {
  static const char *const named[] = {"type",         "query_location", "schema_name", "table_name",
                                      "catalog_name", "function",       "alias",       NULL};
  buf_text(out, "{bound:");
  if (spot->bound != NULL) {
    char fingerprint[33];
    relation_fingerprint(spot->bound, fingerprint);
    buf_text(out, fingerprint);
  } else {
    canonical_request(spot->source, out);
  }
  const char *given = node_text(node, "alias");
  const char *alias = *given != '\0' ? given : spot->alias;
  if (alias != NULL && uses_of(form->root, alias) > 0) {
    buf_char(out, ' ');
    buf_sql_name(out, alias);
  }
  json_object_object_foreach(node, key, member) {
    bool is_name = false;
    for (size_t i = 0; named[i] != NULL; i++) {
      is_name = is_name || strcmp(named[i], key) == 0;
    }
    if (!is_name && !is_left_out(key, member)) {
      buf_printf(out, ",%s:", key);
      append_value(form, member, out);
    }
  }
  buf_char(out, '}');
}

/* #3, and the fields behind it: #3.a; false when it is no column in sight. */
static bool append_column(const canonical_form *form, struct json_object *node, buf *out) {
  size_t offset = 0;
  const step_ref *ref = NULL;
  for (size_t i = 0; node_location(node, &offset) && i < form->n_refs; i++) {
    ref = form->refs[i].length > 0 && form->refs[i].offset == offset ? &form->refs[i] : ref;
  }
  if (ref == NULL) {
    return false;
  }
  buf_printf(out, "#%zu", ref->column);
  for (size_t i = ref->parts; i < node_count(node, "column_names"); i++) {
    buf_char(out, '.');
    buf_sql_name(out, json_object_get_string(node_at(node, "column_names", i)));
  }
  return true;
}

static void append_object(const canonical_form *form, struct json_object *node, buf *out) {
  const sql_spot *spot = is_table(node) ? spot_of(form, node) : NULL;
  if (spot != NULL) {
    append_spot(form, node, spot, out);
    return;
  }
  if (node_is(node, "class", "COLUMN_REF") && append_column(form, node, out)) {
    return;
  }
  buf_char(out, '{');
  json_object_object_foreach(node, key, member) {
    bool is_own_alias = node == form->root && strcmp(key, "alias") == 0 && form->without_alias;
    if (!is_own_alias && !is_left_out(key, member)) {
      buf_printf(out, "%s:", key);
      append_value(form, member, out);
      buf_char(out, ',');
    }
  }
  buf_char(out, '}');
}

static void append_value(const canonical_form *form, struct json_object *value, buf *out) {
  switch (json_object_get_type(value)) {
    case json_type_object:
      append_object(form, value, out);
      break;
    case json_type_array:
      buf_char(out, '[');
      for (size_t i = 0; i < json_object_array_length(value); i++) {
        append_value(form, json_object_array_get_idx(value, i), out);
        buf_char(out, ';');
      }
      buf_char(out, ']');
      break;
    case json_type_string:
      buf_sql_string(out, json_object_get_string(value));
      break;
    case json_type_int:
      buf_text(out, FAULT("relation.constants_alike") ? "0" : json_object_to_json_string(value));
      break;
    default:
      buf_text(out, json_object_to_json_string(value));
  }
}

void canonical_append(canonical_form *form, struct json_object *tree, buf *out) {
  form->root = tree;
  append_value(form, tree, out);
}

/* ---------------------------------------------------------------------- steps */

static void append_name(const char *name, buf *out) {
  if (name != NULL) {
    buf_sql_name(out, name);
  }
  buf_char(out, ' ');
}

static void append_fingerprint(const relation *r, buf *out) {
  char fingerprint[33] = "";
  if (r != NULL) {
    relation_fingerprint(r, fingerprint);
  }
  buf_text(out, fingerprint);
  buf_char(out, ' ');
}

static void append_expressions(const step_expression *list, size_t n, buf *out) {
  buf_printf(out, "%zu(", n);
  for (size_t i = 0; i < n; i++) {
    buf_text(out, list[i].canonical);
    buf_text(out, list[i].order);
    buf_char(out, '=');
    append_name(list[i].name, out);
  }
  buf_char(out, ')');
}

static void append_numbers(const size_t *list, size_t n, buf *out) {
  buf_printf(out, "%zu[", n);
  for (size_t i = 0; i < n; i++) {
    buf_printf(out, "%zu ", list[i]);
  }
  buf_char(out, ']');
}

/* An expression that holds names which are not columns by number may mean a side by them. */
static bool reads_labels(const relation_step *step) {
  unsigned shape = 0;
  for (size_t i = 0; i < step->n_expressions; i++) {
    shape |= step->expressions[i].shape;
  }
  for (size_t i = 0; i < step->n_groups; i++) {
    shape |= step->groups[i].shape;
  }
  return (shape & STEP_OPAQUE) != 0;
}

static void append_labels(const step_side *side, buf *out) {
  for (size_t i = 0; side->columns != NULL && i < side->columns->n_columns; i++) {
    append_name(step_label(side, i), out);
  }
  buf_char(out, ';');
}

void canonical_step(const relation *r, buf *out) {
  const relation_step *step = r->view.step;
  bool has_columns = step->kind == BUILD_DROP || step->kind == BUILD_JOIN || step->kind == BUILD_REPARTITION;
  append_fingerprint(r->view.input, out);
  append_fingerprint(r->view.other, out);
  buf_printf(out, "%d %d %d %d %d %d %llu %llu ", (int)step->kind, (int)step->join, (int)step->set, step->all,
             step->by_name, step->has_limit, (unsigned long long)step->limit,
             (unsigned long long)step->offset);
  append_expressions(step->groups, step->n_groups, out);
  append_expressions(step->expressions, step->n_expressions, out);
  append_numbers(step->kept, has_columns ? step->n_kept : 0, out);
  append_numbers(step->using_columns, 2 * step->n_using, out);
  for (size_t i = 0; step->kind == BUILD_RENAME && i < step->out.columns->n_columns; i++) {
    append_name(step->out.columns->columns[i].name, out);
  }
  append_name(step->name, out);
  if (reads_labels(step)) {
    append_labels(&step->in, out);
    append_labels(&step->other, out);
  }
}

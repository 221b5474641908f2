/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From SQL text to a relation: DuckDB parses, a walk over its tree finds every
 * table name and table function in it, wherever they stand, and each becomes a
 * spot of the text. The text itself stays the user's, byte for byte.
 *
 * A name is looked for among the common table expressions in scope, then in the
 * session, then it may be a file. A common table expression sees the ones before
 * it; itself only in the recursive part.
 */
#include "relation/names_internal.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "relation/canonical.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_NESTED_VALUES = 20 };
#define LIMIT_OF_VALUES "20"

/* Common table expressions in scope, innermost first. */
typedef struct scope {
  const char *name;
  const struct scope *outer;
} scope;

/* ------------------------------------------------------------------- errors */

hf_status names_out_of_memory(const names_walk *w) {
  return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory to find the names in a query");
}

hf_status names_fail(const names_walk *w, hf_status code, size_t offset, const char *what, const char *value,
                     const char *hint) {
  error_set(w->error, code, "%s: %.300s", what, value);
  if (hint != NULL) {
    error_hint(w->error, "%s", hint);
  }
  if (w->error != NULL && offset != SIZE_MAX) {
    w->error->position = (int64_t)offset;
  }
  return code;
}

static hf_status table_not_found(const names_walk *w, const char *name, size_t offset) {
  nearest near = nearest_to(name);
  const char *known = NULL;
  for (size_t i = 0; w->names->name_at != NULL && (known = w->names->name_at(w->names->context, i)) != NULL;
       i++) {
    nearest_offer(&near, known);
  }
  names_fail(w, HF_E_TABLE_NOT_FOUND, offset, "no view, cached table or file has this name", name, NULL);
  if (near.best != NULL) {
    error_hint(w->error, "did you mean %s?", near.best);
  } else if (strpbrk(name, "/*?.") != NULL) {
    error_hint(w->error, "the ending tells no reader: call one, such as read_csv('%s')", name);
  }
  return HF_E_TABLE_NOT_FOUND;
}

/* -------------------------------------------------------------------- spots */

hf_status names_add_spot(names_walk *w, const sql_spot *spot) {
  for (size_t i = w->n_spots; i > 0; i--) {
    if (w->spots[i - 1].offset == spot->offset) {
      return HF_OK;
    }
  }
  if (w->n_spots == w->capacity) {
    size_t capacity = w->capacity == 0 ? 8 : w->capacity * 2;
    sql_spot *spots = mem_realloc(w->spots, capacity * sizeof *spots);
    if (spots == NULL) {
      return names_out_of_memory(w);
    }
    w->spots = spots;
    w->capacity = capacity;
  }
  w->spots[w->n_spots++] = *spot;
  return HF_OK;
}

static int compare_spots(const void *a, const void *b) {
  size_t x = ((const sql_spot *)a)->offset, y = ((const sql_spot *)b)->offset;
  return x < y ? -1 : x > y;
}

/* ------------------------------------------------------------------- tables */

/* A file's alias, as DuckDB gives it: the first part of its name, of a pattern the whole. */
static const char *file_alias(const names_walk *w, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  size_t length = strcspn(name, ".");
  bool is_whole = strpbrk(path, "*?[") != NULL || length == 0;
  return is_whole ? arena_strdup(w->arena, path) : arena_strndup(w->arena, name, length);
}

/* A table reference as the tree has it. */
typedef struct table_ref {
  const char *catalog, *schema, *name, *alias;
  size_t offset;
} table_ref;

/* Whether the session's names may have it: names have one level. */
static bool is_plain(const table_ref *t) {
  bool is_main = *t->schema == '\0' || strcasecmp(t->schema, "main") == 0;
  return is_main && (*t->catalog == '\0' || strcasecmp(t->catalog, "memory") == 0);
}

/* Finds where the name ends: as many parts as the tree has. SIZE_MAX: the text does not look like it. */
static size_t name_end(const names_walk *w, const table_ref *t, size_t first) {
  size_t parts = (*t->catalog != '\0' ? 3U : *t->schema != '\0' ? 2U : 1U);
  size_t last = first + 2 * (parts - 1);
  if (first >= w->tokens->count || last >= w->tokens->count) {
    return SIZE_MAX;
  }
  for (size_t i = first + 1; i < last; i += 2) {
    if (!token_is_sign(w->tokens->text, w->tokens->tokens[i], '.')) {
      return SIZE_MAX;
    }
  }
  token end = w->tokens->tokens[last];
  bool is_name = end.kind == TOKEN_WORD || end.kind == TOKEN_NAME || end.kind == TOKEN_STRING;
  return is_name ? end.offset + end.length : SIZE_MAX;
}

/* Behind these words a bare name is a query of its own. */
static bool starts_named_query(const names_walk *w, size_t token_index) {
  static const char *const words[] = {"table", "describe", "desc", "summarize", "show"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (token_is(w->tokens->text, w->tokens->tokens[token_index], words[i])) {
      return true;
    }
  }
  return false;
}

static hf_status place_spot(names_walk *w, const table_ref *t, sql_spot *spot) {
  size_t first = token_list_find(w->tokens, t->offset);
  size_t end = name_end(w, t, first);
  if (end == SIZE_MAX) {
    return names_fail(w, HF_E_UNSUPPORTED, SIZE_MAX, "a name cannot be found in the text of the query",
                      t->name, "name it in a FROM clause of its own");
  }
  spot->offset = t->offset;
  if (first > 0 && starts_named_query(w, first - 1)) {
    spot->is_query = true;
    if (token_is(w->tokens->text, w->tokens->tokens[first - 1], "table")) {
      spot->offset = w->tokens->tokens[first - 1].offset;
    }
  }
  spot->length = end - spot->offset;
  return names_add_spot(w, spot);
}

static hf_status add_bound(names_walk *w, const table_ref *t, const relation *bound) {
  sql_spot spot = {.bound = bound, .name = arena_strdup(w->arena, t->name)};
  spot.alias = *t->alias == '\0' ? spot.name : NULL;
  return spot.name == NULL ? names_out_of_memory(w) : place_spot(w, t, &spot);
}

static hf_status add_file(names_walk *w, const table_ref *t, const char *path, source_format format) {
  const char *absolute = source_path_absolute(path, w->arena);
  source_request request = {.format = format, .paths = &absolute, .n_paths = 1, .written = &path};
  if (absolute == NULL) {
    return names_out_of_memory(w);
  }
  sql_spot spot = {.name = arena_strdup(w->arena, path), .source = source_request_copy(&request, w->arena)};
  const char *alias = file_alias(w, path);
  if (spot.name == NULL || spot.source == NULL || alias == NULL) {
    return names_out_of_memory(w);
  }
  spot.alias = *t->alias == '\0' ? alias : NULL;
  return place_spot(w, t, &spot);
}

static bool is_in_scope(const scope *s, const char *name) {
  for (; s != NULL; s = s->outer) {
    if (strcasecmp(s->name, name) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status take_table(names_walk *w, struct json_object *ref, const scope *s) {
  table_ref t = {node_text(ref, "catalog_name"), node_text(ref, "schema_name"), node_text(ref, "table_name"),
                 node_text(ref, "alias"), 0};
  bool is_bare = *t.catalog == '\0' && *t.schema == '\0';
  bool is_recurring = *t.catalog == '\0' && strcasecmp(t.schema, "recurring") == 0;
  if ((is_bare || is_recurring) && is_in_scope(s, t.name) && !FAULT("relation.cte_name")) {
    return HF_OK;
  }
  size_t known = node_location(ref, &t.offset) ? t.offset : SIZE_MAX;
  if (node_get(ref, "at_clause") != NULL) {
    return names_fail(w, HF_E_UNSUPPORTED, known, "this feature is not there: AT of a table", t.name, NULL);
  }
  const relation *bound = is_plain(&t) ? w->names->lookup(w->names->context, t.name) : NULL;
  if (bound != NULL) {
    return add_bound(w, &t, bound);
  }
  /* FROM trips.csv, unquoted, is parsed as schema and table. */
  const char *full = arena_printf(w->arena, "%s%s%s%s%s", t.catalog, *t.catalog == '\0' ? "" : ".", t.schema,
                                  *t.schema == '\0' ? "" : ".", t.name);
  source_format format;
  if (full == NULL) {
    return names_out_of_memory(w);
  }
  return source_format_of_path(full, &format) ? add_file(w, &t, full, format)
                                              : table_not_found(w, full, known);
}

/* --------------------------------------------------------------------- walk */

static hf_status walk(names_walk *w, struct json_object *value, const scope *s);

static hf_status walk_array(names_walk *w, struct json_object *array, const scope *s) {
  size_t n = json_object_array_length(array);
  for (size_t i = 0; i < n; i++) {
    HF_TRY(walk(w, json_object_array_get_idx(array, i), s));
  }
  return HF_OK;
}

/* All members but one. */
static hf_status walk_members(names_walk *w, struct json_object *node, const char *but, const scope *s) {
  json_object_object_foreach(node, key, member) {
    if (strcmp(key, but) != 0) {
      HF_TRY(walk(w, member, s));
    }
  }
  return HF_OK;
}

/* The right side of a recursive expression sees its name, the left side does not. */
static hf_status walk_recursive(names_walk *w, struct json_object *node, const scope *s) {
  scope own = {node_text(node, "cte_name"), s};
  json_object_object_foreach(node, key, member) {
    if (strcmp(key, "cte_map") != 0) {
      HF_TRY(walk(w, member, strcmp(key, "right") == 0 ? &own : s));
    }
  }
  return HF_OK;
}

/* A query with its common table expressions: each sees those before it, the query sees all. */
static hf_status walk_query(names_walk *w, struct json_object *node, const scope *s) {
  struct json_object *map = node_get(node, "cte_map");
  size_t n = node_count(map, "map");
  scope *scopes = arena_array(w->arena, n + 1, sizeof *scopes);
  if (scopes == NULL) {
    return names_out_of_memory(w);
  }
  for (size_t i = 0; i < n; i++) {
    struct json_object *entry = node_at(map, "map", i);
    HF_TRY(walk(w, node_get(entry, "value"), s));
    scopes[i] = (scope){node_text(entry, "key"), s};
    s = &scopes[i];
  }
  return node_is(node, "type", "RECURSIVE_CTE_NODE") ? walk_recursive(w, node, s)
                                                     : walk_members(w, node, "cte_map", s);
}

/* DESCRIBE and SUMMARIZE hold a query; without one it lists what the engine has, which is not the session's. */
static hf_status check_show(const names_walk *w, struct json_object *ref) {
  if (node_get(ref, "query") != NULL) {
    return HF_OK;
  }
  return names_fail(w, HF_E_STATEMENT_REFUSED, SIZE_MAX, "this cannot stand in a query",
                    "SHOW or DESCRIBE of names", "use SHOW TABLES, or DESCRIBE with a name");
}

/* The optimiser of DuckDB 1.5.5 takes twice the time for each level: its pushdown of filters looks below each twice. */
static hf_status walk_value(names_walk *w, struct json_object *node, const scope *s) {
  size_t offset = 0;
  bool known = node_location(node, &offset);
  if (w->values == MOST_NESTED_VALUES) {
    return names_fail(w, HF_E_LIMIT, known ? offset : SIZE_MAX,
                      "sub-selects that are values are nested deeper than the limit", LIMIT_OF_VALUES,
                      "name the inner ones with WITH, or join");
  }
  w->values++;
  hf_status status = walk_members(w, node, "", s);
  w->values--;
  return status;
}

static void note_seen(const names_walk *w, struct json_object *ref) {
  size_t offset = 0;
  size_t at = w->seen != NULL && node_location(ref, &offset) ? token_list_find(w->tokens, offset) : SIZE_MAX;
  if (at < w->tokens->count) {
    w->seen[at] = true;
  }
}

static hf_status walk_object(names_walk *w, struct json_object *node, const scope *s) {
  bool descend = true;
  if (node_is(node, "class", "SUBQUERY") && node_is(node, "subquery_type", "SCALAR")) {
    return walk_value(w, node, s);
  }
  if (node_get(node, "cte_map") != NULL) {
    return walk_query(w, node, s);
  }
  if (node_is(node, "type", "BASE_TABLE")) {
    note_seen(w, node);
    HF_TRY(take_table(w, node, s));
  } else if (node_is(node, "type", "TABLE_FUNCTION")) {
    note_seen(w, node);
    HF_TRY(names_table_function(w, node, &descend));
  } else if (node_is(node, "type", "SHOW_REF")) {
    HF_TRY(check_show(w, node));
  } else if (node_is(node, "class", "FUNCTION")) {
    HF_TRY(names_scalar_function(w, node));
  } else if (node_is(node, "class", "COLUMN_REF")) {
    names_column(w, node);
  } else if (node_is(node, "class", "PARAMETER")) {
    return names_fail(w, HF_E_UNSUPPORTED, SIZE_MAX, "this feature is not there", "parameters",
                      "put the values into the text");
  }
  return descend ? walk_members(w, node, "", s) : HF_OK;
}

static hf_status walk(names_walk *w, struct json_object *value, const scope *s) {
  switch (json_object_get_type(value)) {
    case json_type_array:
      return walk_array(w, value, s);
    case json_type_object:
      return walk_object(w, value, s);
    default:
      return HF_OK;
  }
}

/* -------------------------------------------------------------------- order */

static bool has_modifier(struct json_object *node, const char *type) {
  for (size_t i = 0; i < node_count(node, "modifiers"); i++) {
    if (node_is(node_at(node, "modifiers", i), "type", type)) {
      return true;
    }
  }
  return false;
}

static const sql_spot *spot_at(const names_walk *w, struct json_object *ref) {
  size_t offset = 0;
  for (size_t i = 0; node_location(ref, &offset) && i < w->n_spots; i++) {
    if (w->spots[i].offset <= offset && offset < w->spots[i].offset + w->spots[i].length) {
      return &w->spots[i];
    }
  }
  return NULL;
}

/* Whether rows come in an order that somebody asked for: by ORDER BY, or passed on from a lone ordered input. */
static bool is_ordered(const names_walk *w, struct json_object *node) {
  if (has_modifier(node, "ORDER_MODIFIER")) {
    return true;
  }
  bool passes_on = node_is(node, "type", "SELECT_NODE") && !has_modifier(node, "DISTINCT_MODIFIER") &&
                   node_count(node, "group_expressions") == 0 && node_get(node, "sample") == NULL;
  struct json_object *from = node_get(node, "from_table");
  if (!passes_on) {
    return false;
  }
  if (node_is(from, "type", "SUBQUERY")) {
    return is_ordered(w, node_get(node_get(from, "subquery"), "node"));
  }
  const sql_spot *spot = node_is(from, "type", "BASE_TABLE") ? spot_at(w, from) : NULL;
  return spot != NULL && spot->bound != NULL && relation_look(spot->bound).top_ordered;
}

/* --------------------------------------------------------------------- text */

hf_status names_normalise(const char *sql, arena *a, const char **out, token_list *tokens, hf_error *error) {
  token_list list;
  HF_TRY(token_list_read(sql, strlen(sql), a, &list, error));
  size_t n = list.count;
  while (n > 0 && token_is_sign(sql, list.tokens[n - 1], ';')) {
    n--;
  }
  for (size_t i = 0; i < n; i++) {
    if (token_is_sign(sql, list.tokens[i], ';')) {
      names_walk at = {.error = error};
      return names_fail(&at, HF_E_SYNTAX, list.tokens[i + 1].offset, "one statement is expected, found more",
                        sql + list.tokens[i + 1].offset, "send the statements one at a time");
    }
  }
  if (n == 0) {
    return error_set(error, HF_E_SYNTAX, "the query is empty");
  }
  token last = list.tokens[n - 1];
  char *text = arena_strndup(a, sql, last.offset + last.length);
  if (text == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the text of a query");
  }
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    for (; at < list.tokens[i].offset; at++) {
      text[at] = text[at] == '\n' ? '\n' : ' ';
    }
    at = list.tokens[i].offset + list.tokens[i].length;
  }
  *out = text;
  *tokens = (token_list){.text = text, .tokens = list.tokens, .count = n};
  return HF_OK;
}

hf_status names_walk_tree(names_walk *w, struct json_object *value) {
  return walk(w, value, NULL);
}

hf_status names_take_spots(names_walk *w, const sql_spot **out, size_t *n_out) {
  sql_spot *spots = arena_array(w->arena, w->n_spots + 1, sizeof *spots);
  if (spots == NULL) {
    return names_out_of_memory(w);
  }
  if (w->n_spots > 0) {
    memcpy(spots, w->spots, w->n_spots * sizeof *spots);
    qsort(spots, w->n_spots, sizeof *spots, compare_spots);
  }
  *out = spots;
  *n_out = w->n_spots;
  return HF_OK;
}

static hf_status take_canonical(const names_walk *w, relation *r, struct json_object *statement) {
  buf text = {0};
  canonical_form form = {.spots = r->view.spots, .n_spots = r->view.n_spots};
  canonical_append(&form, statement, &text);
  r->canonical = text.failed ? NULL : arena_strndup(r->arena, buf_cstr(&text), text.length);
  buf_reset(&text);
  return r->canonical == NULL ? names_out_of_memory(w) : HF_OK;
}

static hf_status find_names(names_walk *w, engine *planner, relation *r, const char *json) {
  struct json_object *tree = NULL;
  HF_TRY(node_parse(json, &tree, w->error));
  hf_status status = HF_OK;
  if (node_count(tree, "statements") != 1) {
    status =
        error_set(w->error, HF_E_SYNTAX, "one query is expected, found %zu", node_count(tree, "statements"));
  } else {
    status = names_walk_tree(w, node_get(tree, "statements"));
  }
  if (status == HF_OK) {
    status = names_dropped(w, planner, tree);
  }
  if (status == HF_OK) {
    status = names_virtual(w, node_get(tree, "statements"));
  }
  if (status == HF_OK) {
    r->view.top_ordered = is_ordered(w, node_get(node_at(tree, "statements", 0), "node"));
    status = names_take_spots(w, &r->view.spots, &r->view.n_spots);
  }
  if (status == HF_OK) {
    status = take_canonical(w, r, node_at(tree, "statements", 0));
  }
  json_object_put(tree);
  return status;
}

/* What DuckDB parses and cannot write as one tree: a PIVOT whose values it would have to look up first. */
static hf_status explain_no_tree(hf_status status, hf_error *error) {
  if (error == NULL || error->message == NULL ||
      strcasestr(error->message, "only SELECT statements") == NULL) {
    return status;
  }
  error_set(error, HF_E_UNSUPPORTED,
            "this is not one query: a PIVOT without its list of values, or no query at all");
  error_hint(error, "list the values: PIVOT … ON x IN (…)");
  return HF_E_UNSUPPORTED;
}

static hf_status bind(engine *planner, const char *sql, const relation_names *names, relation *r,
                      hf_error *error) {
  const char *json = NULL;
  names_walk w = {.tokens = &r->tokens, .names = names, .arena = r->arena, .error = error};
  HF_TRY(names_normalise(sql, r->arena, &r->view.text, &r->tokens, error));
  arena *scratch = arena_new();
  w.seen = scratch == NULL ? NULL : arena_array(scratch, r->tokens.count, sizeof *w.seen);
  hf_status status =
      w.seen == NULL ? names_out_of_memory(&w) : engine_parse(planner, r->view.text, scratch, &json, error);
  status = status == HF_OK ? HF_OK : explain_no_tree(status, error);
  if (status == HF_OK) {
    status = find_names(&w, planner, r, json);
  }
  arena_free(scratch);
  mem_free(w.spots);
  HF_TRY(status);
  r->clock = w.clock;
  r->view.is_rewritten = names->is_rewritten;
  return relation_finish(r, error);
}

hf_status relation_from_sql(engine *planner, const char *sql, const relation_names *names, relation **out,
                            hf_error *error) {
  relation *r = NULL;
  HF_TRY(relation_new(RELATION_SQL, &r, error));
  hf_status status = bind(planner, sql, names, r, error);
  if (status != HF_OK) {
    relation_drop(r);
    return status;
  }
  *out = r;
  return HF_OK;
}

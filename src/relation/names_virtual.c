/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual columns of files: filename, file_row_number, file_index. DuckDB's
 * readers have them without being asked; * does not show them. To distribute,
 * they become columns of the source (src/plan), so the query's stars must leave
 * them out. What cannot be told that way stays as it is: the name is not found.
 * Thread: that of the walk.
 */
#include "relation/names_internal.h"

#include <string.h>
#include <strings.h>

enum { MOST_FILES = 16, MOST_STARS = 16 };

static const struct virtual_row {
  const char *name;
  virtual_column column;
  unsigned formats; /* 1 << source_format */
} rows[] = {
    {"file_index", VIRTUAL_FILE_INDEX, 1 << SOURCE_PARQUET | 1 << SOURCE_CSV | 1 << SOURCE_JSON},
    {"file_row_number", VIRTUAL_FILE_ROW_NUMBER, 1 << SOURCE_PARQUET},
    {"filename", VIRTUAL_FILENAME, 1 << SOURCE_PARQUET | 1 << SOURCE_CSV | 1 << SOURCE_JSON},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* A SELECT with files in its FROM. */
typedef struct selection {
  const names_walk *w;
  struct json_object *node;
  size_t n_files, n_stars;
  size_t files[MOST_FILES];              /* indices of spots */
  spot_virtual *columns[MOST_FILES];     /* of them */
  struct json_object *stars[MOST_STARS]; /* of the list behind SELECT */
  unsigned named;                        /* virtual columns */
  bool is_odd;                           /* it cannot be told */
} selection;

static unsigned column_of(const char *name) {
  for (size_t i = 0; i < N_ROWS; i++) {
    if (strcasecmp(rows[i].name, name) == 0) {
      return rows[i].column;
    }
  }
  return 0;
}

/* ------------------------------------------------------------------- looking */

static size_t spot_at(const names_walk *w, struct json_object *ref) {
  size_t offset = 0, i = 0;
  if (!node_location(ref, &offset)) {
    return SIZE_MAX;
  }
  while (i < w->n_spots &&
         (offset < w->spots[i].offset || offset >= w->spots[i].offset + w->spots[i].length)) {
    i++;
  }
  return i < w->n_spots ? i : SIZE_MAX;
}

/* Files of a FROM clause, through joins. */
static hf_status take_files(selection *s, struct json_object *ref) {
  if (node_is(ref, "type", "JOIN")) {
    s->is_odd |= node_is(ref, "ref_type", "NATURAL"); /* it would join on them */
    HF_TRY(take_files(s, node_get(ref, "left")));
    return take_files(s, node_get(ref, "right"));
  }
  size_t at = spot_at(s->w, ref);
  bool is_table = node_is(ref, "type", "BASE_TABLE") || node_is(ref, "type", "TABLE_FUNCTION");
  if (!is_table || at == SIZE_MAX || s->w->spots[at].source == NULL || s->w->spots[at].is_query) {
    return HF_OK;
  }
  if (s->n_files == MOST_FILES) {
    s->is_odd = true;
    return HF_OK;
  }
  const char *given = node_text(ref, "alias");
  spot_virtual *columns = arena_alloc(s->w->arena, sizeof *columns);
  const char *called = arena_strdup(s->w->arena, *given == '\0' ? s->w->spots[at].alias : given);
  if (columns == NULL || called == NULL) {
    return names_out_of_memory(s->w);
  }
  columns->called = called;
  s->files[s->n_files] = at;
  s->columns[s->n_files++] = columns;
  return HF_OK;
}

/* Not COLUMNS(…). */
static bool is_star(struct json_object *node) {
  return node_is(node, "class", "STAR") && node_get(node, "expr") == NULL &&
         !json_object_get_boolean(node_get(node, "columns"));
}

static void take_stars(selection *s) {
  for (size_t i = 0; i < node_count(s->node, "select_list"); i++) {
    struct json_object *item = node_at(s->node, "select_list", i);
    if (is_star(item) && s->n_stars < MOST_STARS) {
      s->stars[s->n_stars++] = item;
    }
  }
}

static bool is_taken(const selection *s, struct json_object *star) {
  for (size_t i = 0; i < s->n_stars; i++) {
    if (s->stars[i] == star) {
      return true;
    }
  }
  return false;
}

static bool is_called(const selection *s, const char *name) {
  for (size_t i = 0; i < s->n_files; i++) {
    if (strcasecmp(s->columns[i]->called, name) == 0) {
      return true;
    }
  }
  return false;
}

static void look_at_column(selection *s, struct json_object *ref) {
  size_t n = node_count(ref, "column_names");
  const char *last = n == 0 ? "" : json_object_get_string(node_at(ref, "column_names", n - 1));
  s->named |= column_of(last);
  for (size_t i = 0; n == 1 && i < s->n_files; i++) {
    s->columns[i]->may_be_row |= strcasecmp(s->columns[i]->called, last) == 0;
  }
}

/* Looks at all that the SELECT holds; sub-selects see its tables, their own stars do not. */
static void look(selection *s, struct json_object *value, bool is_inside) {
  if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(value); i++) {
      look(s, json_object_array_get_idx(value, i), is_inside);
    }
    return;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return;
  }
  is_inside = is_inside || (value != s->node && node_is(value, "type", "SELECT_NODE"));
  if (node_is(value, "class", "COLUMN_REF")) {
    look_at_column(s, value);
  } else if (node_is(value, "class", "STAR") && !is_taken(s, value)) {
    const char *of = node_text(value, "relation_name");
    s->is_odd |= *of == '\0' ? !is_inside : is_called(s, of);
  } else if (node_is(value, "type", "JOIN")) {
    for (size_t i = 0; i < node_count(value, "using_columns"); i++) {
      s->named |= column_of(json_object_get_string(node_at(value, "using_columns", i)));
    }
  }
  json_object_object_foreach(value, key, member) {
    bool is_order_by_all = strcmp(key, "expression") == 0 && node_is(member, "class", "STAR") &&
                           node_get(member, "expr") == NULL;
    if (!is_order_by_all) {
      look(s, member, is_inside);
    }
  }
}

/* -------------------------------------------------------------------- stars */

/* The FROM in front of the first table of a FROM clause; the count of tokens: the text does not look like it. */
static size_t from_token(const names_walk *w, struct json_object *ref) {
  size_t offset = 0, at = 0;
  while (node_is(ref, "type", "JOIN")) {
    ref = node_get(ref, "left");
  }
  at = node_location(ref, &offset) ? token_list_find(w->tokens, offset) : w->tokens->count;
  do {
    at = at == 0 || at == w->tokens->count ? w->tokens->count : at - 1;
  } while (at < w->tokens->count && token_is_sign(w->tokens->text, w->tokens->tokens[at], '('));
  bool is_from = at < w->tokens->count && token_is(w->tokens->text, w->tokens->tokens[at], "from");
  return is_from ? at : w->tokens->count;
}

/* The token behind which EXCLUDE goes, or its first name. */
static size_t star_token(const names_walk *w, struct json_object *star, spot_star *what) {
  const token_list *list = w->tokens;
  size_t offset = 0, at = node_location(star, &offset) ? token_list_find(list, offset) : list->count;
  at += what->is_plain ? 2 : 0; /* t . * */
  if (at >= list->count || !token_is_sign(list->text, list->tokens[at], '*')) {
    return list->count;
  }
  what->has_list = node_count(star, "exclude_list") + node_count(star, "qualified_exclude_list") > 0;
  at += what->has_list ? 2 : 0; /* * EXCLUDE ( */
  bool is_known = !what->has_list || (at < list->count && token_is_sign(list->text, list->tokens[at], '('));
  return is_known ? at : list->count;
}

/* Where it is told what a star leaves out: behind it, in front of a FROM that has none. False: that is not found. */
static bool place_star(const selection *s, struct json_object *star, sql_spot *spot, spot_star *what) {
  size_t offset = 0;
  what->is_plain = *node_text(star, "relation_name") != '\0';
  what->is_bare = node_location(star, &offset) && offset == 0; /* DuckDB's own star is nowhere */
  size_t at =
      what->is_bare ? from_token(s->w, node_get(s->node, "from_table")) : star_token(s->w, star, what);
  if (at >= s->w->tokens->count) {
    return false;
  }
  token t = s->w->tokens->tokens[at];
  spot->offset = t.offset + (what->is_bare ? 0 : t.length);
  return true;
}

static hf_status add_star(names_walk *w, const selection *s, struct json_object *star) {
  const char *of = node_text(star, "relation_name");
  spot_star *what = arena_alloc(w->arena, sizeof *what);
  sql_spot *files = arena_array(w->arena, s->n_files, sizeof *files), spot = {.name = "*", .star = what};
  if (what == NULL || files == NULL) {
    return names_out_of_memory(w);
  }
  for (size_t i = 0; i < s->n_files; i++) {
    bool is_shown = *of == '\0' || strcasecmp(of, s->columns[i]->called) == 0;
    if (is_shown && s->columns[i]->wanted != 0) {
      files[what->n_files++] = w->spots[s->files[i]];
    }
  }
  what->files = files;
  (void)place_star(s, star, &spot, what);
  return what->n_files == 0 ? HF_OK : names_add_spot(w, &spot);
}

/* ------------------------------------------------------------------- selects */

static bool has_option(const source_request *request, const char *name) {
  for (size_t i = 0; i < request->n_options; i++) {
    if (strcasecmp(request->options[i].name, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Those that the file's reader has, and that are not asked for as columns already. */
static unsigned columns_of(const source_request *request, unsigned named) {
  unsigned wanted = 0;
  for (size_t i = 0; i < N_ROWS; i++) {
    bool is_there = (rows[i].formats & 1U << request->format) != 0 && !has_option(request, rows[i].name);
    wanted |= is_there ? named & rows[i].column : 0;
  }
  return has_option(request, "filename") ? wanted & ~(unsigned)VIRTUAL_FILE_INDEX : wanted;
}

/* The request with the options that make virtual columns columns; NULL for lack of memory. */
static const source_request *request_with(const source_request *from, unsigned columns, arena *a) {
  source_option *options = arena_array(a, from->n_options + 2, sizeof *options);
  source_request *with = arena_alloc(a, sizeof *with);
  if (options == NULL || with == NULL) {
    return NULL;
  }
  *with = *from;
  for (size_t i = 0; i < from->n_options; i++) {
    options[i] = from->options[i];
  }
  if ((columns & VIRTUAL_FILE_ROW_NUMBER) != 0) {
    options[with->n_options++] = (source_option){"file_row_number", "true"};
  }
  if ((columns & VIRTUAL_FILENAME) != 0) {
    options[with->n_options++] = (source_option){"filename", "true"};
  }
  with->options = options;
  return with;
}

static hf_status take_columns(names_walk *w, sql_spot *spot, spot_virtual *columns, unsigned named) {
  columns->wanted = columns_of(spot->source, named);
  for (unsigned i = 1; columns->wanted != 0 && i < sizeof columns->with / sizeof columns->with[0]; i++) {
    columns->with[i] = request_with(spot->source, i, w->arena);
    if (columns->with[i] == NULL) {
      return names_out_of_memory(w);
    }
  }
  spot->columns = columns->wanted == 0 ? NULL : columns;
  return HF_OK;
}

static hf_status take_select(names_walk *w, struct json_object *node) {
  selection s = {.w = w, .node = node};
  unsigned all = 0;
  HF_TRY(take_files(&s, node_get(node, "from_table")));
  if (s.n_files == 0) {
    return HF_OK;
  }
  take_stars(&s);
  look(&s, node, false);
  for (size_t i = 0; i < s.n_stars; i++) {
    sql_spot spot = {0};
    spot_star what = {0};
    s.is_odd |= !place_star(&s, s.stars[i], &spot, &what);
  }
  for (size_t i = 0; !s.is_odd && i < s.n_files; i++) {
    HF_TRY(take_columns(w, &w->spots[s.files[i]], s.columns[i], s.named));
    all |= s.columns[i]->wanted;
  }
  for (size_t i = 0; all != 0 && i < s.n_stars; i++) {
    HF_TRY(add_star(w, &s, s.stars[i]));
  }
  return HF_OK;
}

static hf_status walk(names_walk *w, struct json_object *value) {
  if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(value); i++) {
      HF_TRY(walk(w, json_object_array_get_idx(value, i)));
    }
    return HF_OK;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return HF_OK;
  }
  if (node_is(value, "type", "SELECT_NODE")) {
    HF_TRY(take_select(w, value));
  }
  json_object_object_foreach(value, key, member) {
    (void)key;
    HF_TRY(walk(w, member));
  }
  return HF_OK;
}

hf_status names_virtual(names_walk *w, struct json_object *tree) {
  const char *text = w->tokens->text;
  bool is_named = false;
  for (size_t i = 0; i < N_ROWS; i++) {
    is_named = is_named || strcasestr(text, rows[i].name) != NULL;
  }
  return is_named && w->n_spots > 0 ? walk(w, tree) : HF_OK;
}

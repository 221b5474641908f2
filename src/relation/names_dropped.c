/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DuckDB's parser leaves out of its tree: list(x ORDER BY x) is a sort of
 * list(x), and of equal keys of GROUP BY one is kept. The text still holds both,
 * so names in a sub-select that was left out must be replaced as those in the
 * equal one that was kept: then the next parser leaves it out again.
 * Thread: that of the walk.
 */
#include "relation/names_internal.h"

#include <string.h>

/* A sub-select in parentheses, of which the tree has no table. */
typedef struct dropped {
  size_t first, last; /* tokens: the parentheses */
} dropped;

static bool starts_query(const names_walk *w, size_t at) {
  static const char *const words[] = {"select", "from", "with", "table", "pivot", "unpivot"};
  for (size_t i = 0; at < w->tokens->count && i < sizeof words / sizeof words[0]; i++) {
    if (token_is(w->tokens->text, w->tokens->tokens[at], words[i])) {
      return true;
    }
  }
  return false;
}

/* Index of the parenthesis that closes the one at `first`; the count of tokens: none does. */
static size_t closing(const token_list *list, size_t first) {
  size_t depth = 0, i = first;
  for (; i < list->count; i++) {
    depth += token_is_sign(list->text, list->tokens[i], '(') ? 1 : 0;
    if (token_is_sign(list->text, list->tokens[i], ')') && --depth == 0) {
      break;
    }
  }
  return i;
}

/* Finds the next one from token `from` on. */
static bool find_dropped(const names_walk *w, size_t from, dropped *out) {
  const token_list *list = w->tokens;
  for (size_t i = from; i < list->count; i++) {
    if (!token_is_sign(list->text, list->tokens[i], '(') || !starts_query(w, i + 1)) {
      continue;
    }
    size_t last = closing(list, i);
    bool reads = false, is_seen = false;
    for (size_t k = i + 1; k < last; k++) {
      reads = reads || token_is(list->text, list->tokens[k], "from") ||
              token_is(list->text, list->tokens[k], "table");
      is_seen = is_seen || w->seen[k];
    }
    if (reads && !is_seen && last < list->count) {
      *out = (dropped){i, last};
      return true;
    }
  }
  return false;
}

/* ------------------------------------------------------------------ the equal one */

static bool is_position(const char *key) {
  return strcmp(key, "query_location") == 0;
}

/* Whether two trees are the same but for positions. */
static bool is_same(struct json_object *a, struct json_object *b) {
  if (json_object_get_type(a) != json_object_get_type(b)) {
    return false;
  }
  if (json_object_is_type(a, json_type_array)) {
    size_t n = json_object_array_length(a);
    bool same = n == json_object_array_length(b);
    for (size_t i = 0; same && i < n; i++) {
      same = is_same(json_object_array_get_idx(a, i), json_object_array_get_idx(b, i));
    }
    return same;
  }
  if (!json_object_is_type(a, json_type_object)) {
    return json_object_equal(a, b) != 0;
  }
  bool same = json_object_object_length(a) == json_object_object_length(b);
  json_object_object_foreach(a, key, member) {
    same = same && (is_position(key) || is_same(member, node_get(b, key)));
  }
  return same;
}

/* The sub-select of a tree that is the same as this one; NULL: none. */
static struct json_object *find_same(struct json_object *tree, struct json_object *query) {
  struct json_object *found = NULL;
  if (json_object_is_type(tree, json_type_array)) {
    for (size_t i = 0; found == NULL && i < json_object_array_length(tree); i++) {
      found = find_same(json_object_array_get_idx(tree, i), query);
    }
    return found;
  }
  if (!json_object_is_type(tree, json_type_object)) {
    return NULL;
  }
  if (node_is(tree, "class", "SUBQUERY") && is_same(node_get(tree, "subquery"), query)) {
    return node_get(tree, "subquery");
  }
  json_object_object_foreach(tree, key, member) {
    (void)key;
    found = found == NULL ? find_same(member, query) : found;
  }
  return found;
}

/* ------------------------------------------------------------------ its names */

static const sql_spot *spot_of(const names_walk *w, size_t offset) {
  for (size_t i = 0; i < w->n_spots; i++) {
    if (w->spots[i].offset <= offset && offset < w->spots[i].offset + w->spots[i].length) {
      return &w->spots[i];
    }
  }
  return NULL;
}

/* As many tokens as the kept one takes; a text that does not look like it is left to fail where it is bound. */
static hf_status copy_spot(names_walk *w, size_t kept_at, size_t at) {
  const token_list *list = w->tokens;
  const sql_spot *kept = spot_of(w, kept_at);
  if (kept == NULL) {
    return HF_OK; /* a common table expression */
  }
  size_t kept_first = token_list_find(list, kept->offset), n = 0;
  while (kept_first + n < list->count && list->tokens[kept_first + n].offset < kept->offset + kept->length) {
    n++;
  }
  size_t before = token_list_find(list, kept_at) - kept_first, first = token_list_find(list, at) - before;
  if (n == 0 || first >= list->count || first + n > list->count ||
      (list->tokens[first + n - 1].kind == TOKEN_SIGN) !=
          (list->tokens[kept_first + n - 1].kind == TOKEN_SIGN)) {
    return HF_OK;
  }
  sql_spot spot = *kept;
  token last = list->tokens[first + n - 1];
  spot.same_as = kept->offset;
  spot.offset = list->tokens[first].offset;
  spot.length = last.offset + last.length - spot.offset;
  return names_add_spot(w, &spot);
}

/* Both trees are the same. */
static hf_status copy_spots(names_walk *w, struct json_object *kept, struct json_object *left_out) {
  size_t kept_at = 0, at = 0;
  if (json_object_is_type(kept, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(kept); i++) {
      HF_TRY(copy_spots(w, json_object_array_get_idx(kept, i), json_object_array_get_idx(left_out, i)));
    }
    return HF_OK;
  }
  if (!json_object_is_type(kept, json_type_object)) {
    return HF_OK;
  }
  bool is_table = node_is(kept, "type", "BASE_TABLE") || node_is(kept, "type", "TABLE_FUNCTION");
  if (is_table && node_location(kept, &kept_at) && node_location(left_out, &at)) {
    HF_TRY(copy_spot(w, kept_at, at));
  }
  json_object_object_foreach(kept, key, member) {
    HF_TRY(copy_spots(w, member, node_get(left_out, key)));
  }
  return HF_OK;
}

/* SELECT (…) with the sub-select at its place in the text, so that positions are those of the text. */
static const char *text_of(const names_walk *w, const dropped *d, arena *a) {
  static const char head[] = "SELECT";
  const token *tokens = w->tokens->tokens;
  size_t begin = tokens[d->first].offset, end = tokens[d->last].offset + tokens[d->last].length;
  char *text = begin < sizeof head ? NULL : arena_strndup(a, w->tokens->text, end);
  if (text != NULL) {
    memset(text, ' ', begin);
    memcpy(text, head, sizeof head - 1);
  }
  return text;
}

static hf_status take_dropped(names_walk *w, engine *planner, struct json_object *tree, const dropped *d,
                              arena *a) {
  const char *text = text_of(w, d, a), *json = NULL;
  struct json_object *own = NULL;
  hf_error ignored = {0};
  if (text == NULL || engine_parse(planner, text, a, &json, &ignored) != HF_OK ||
      node_parse(json, &own, &ignored) != HF_OK) {
    hf_error_reset(&ignored);
    return HF_OK; /* what it is meant to be shows where the whole text is bound */
  }
  struct json_object *query = node_get(node_at(tree, "statements", 0), "node");
  struct json_object *value = node_at(node_get(node_at(own, "statements", 0), "node"), "select_list", 0);
  struct json_object *left_out = node_get(value, "subquery");
  struct json_object *kept = left_out == NULL ? NULL : find_same(query, left_out);
  hf_status status = kept == NULL ? HF_OK : copy_spots(w, kept, left_out);
  json_object_put(own);
  return status;
}

hf_status names_dropped(names_walk *w, engine *planner, struct json_object *tree) {
  dropped d = {0};
  arena *a = NULL;
  hf_status status = HF_OK;
  for (size_t from = 0; status == HF_OK && w->n_spots > 0 && find_dropped(w, from, &d); from = d.last) {
    a = a == NULL ? arena_new() : a;
    status = a == NULL ? names_out_of_memory(w) : take_dropped(w, planner, tree, &d, a);
  }
  arena_free(a);
  return status;
}

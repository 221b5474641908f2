/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One expression of a step: its text is parsed alone, as "SELECT <text>", so that
 * it cannot leave its place; the walk over its tree finds which columns it names,
 * where, and what merging must know of it. Binding is in build_bind.c.
 * Thread: one with a planning stack.
 */
#include "relation/build_internal.h"

#include "base/mem.h"
#include "relation/canonical.h"
#include "tree/tree.h"

#include <string.h>
#include <strings.h>

static const char HEAD[] = "SELECT ";

/* How much of the columns around it a part of an expression is known to name. */
enum { SEEN, HIDDEN /* below a lambda, a star */, BELOW_QUERY };

typedef struct reading {
  const step_maker *m;
  step_expression *out;
  token_list tokens;
  step_ref *refs; /* memory: mem_* */
  size_t n_refs, capacity;
  bool is_cheap;
  hf_error *error;
} reading;

static hf_status out_of_memory(const reading *r) {
  return error_set(r->error, HF_E_OUT_OF_MEMORY, "no memory to read an expression");
}

static hf_status fail_at(const reading *r, hf_status code, size_t offset, const char *what) {
  error_set(r->error, code, "%s", what);
  if (r->error != NULL && offset != SIZE_MAX) {
    r->error->position = (int64_t)offset;
  }
  return code;
}

/* --------------------------------------------------------------------- text */

/* What a token list alone tells: no ';', parentheses closed in the order in which they were opened. */
static hf_status check_tokens(reading *r, const token_list *list) {
  char open[256];
  size_t depth = 0;
  for (size_t i = 0; i < list->count; i++) {
    token t = list->tokens[i];
    char c = t.kind == TOKEN_SIGN ? list->text[t.offset] : ' ';
    if (c == ';') {
      return fail_at(r, HF_E_SYNTAX, t.offset, "one expression is expected, found ';'");
    }
    if (strchr("([{", c) != NULL) {
      if (depth == sizeof open) {
        return fail_at(r, HF_E_LIMIT, t.offset, "an expression has more than 256 parentheses in each other");
      }
      open[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c) != NULL && (depth == 0 || open[--depth] != c)) {
      return fail_at(r, HF_E_SYNTAX, t.offset, "a parenthesis is closed that was not opened");
    }
  }
  return depth > 0 ? fail_at(r, HF_E_SYNTAX, strlen(list->text), "a parenthesis is not closed") : HF_OK;
}

static bool is_word(const reading *r, size_t i, const char *word) {
  return i < r->tokens.count && token_is(r->out->text, r->tokens.tokens[i], word);
}

/* Cuts tokens off the end. */
static hf_status keep_tokens(reading *r, size_t n) {
  if (n < 2) {
    return fail_at(r, HF_E_SYNTAX, strlen(HEAD), "an expression is expected");
  }
  token last = r->tokens.tokens[n - 1];
  r->tokens.count = n;
  r->out->end = last.offset + last.length;
  r->out->text = arena_strndup(r->m->arena, r->out->text, r->out->end);
  r->tokens.text = r->out->text;
  return r->out->text == NULL ? out_of_memory(r) : HF_OK;
}

/* [ASC | DESC] [NULLS FIRST | NULLS LAST] at the end. */
static hf_status cut_order(reading *r) {
  size_t n = r->tokens.count;
  const char *nulls = "", *direction = "";
  if (n > 2 && is_word(r, n - 2, "nulls") && (is_word(r, n - 1, "first") || is_word(r, n - 1, "last"))) {
    nulls = is_word(r, n - 1, "first") ? " NULLS FIRST" : " NULLS LAST";
    n -= 2;
  }
  if (is_word(r, n - 1, "asc") || is_word(r, n - 1, "desc")) {
    direction = is_word(r, n - 1, "asc") ? " ASC" : " DESC";
    n--;
  }
  r->out->order = arena_printf(r->m->arena, "%s%s", direction, nulls);
  return r->out->order == NULL ? out_of_memory(r) : keep_tokens(r, n);
}

static bool token_stands_for(reading *r, size_t i, const char *name) {
  token t = r->tokens.tokens[i];
  if (t.kind != TOKEN_WORD && t.kind != TOKEN_NAME && t.kind != TOKEN_STRING) {
    return false;
  }
  const char *value = token_value(r->out->text, t, r->m->scratch);
  return value != NULL && strcasecmp(value, name) == 0;
}

/* Takes the alias, which the tree knows, out of the text: x AS name, x name, name: x. */
static hf_status cut_alias(reading *r, const char *alias) {
  size_t n = r->tokens.count;
  r->out->name = arena_strdup(r->m->arena, alias);
  if (r->out->name == NULL) {
    return out_of_memory(r);
  }
  if (n > 3 && token_is_sign(r->out->text, r->tokens.tokens[2], ':') &&
      !token_is_sign(r->out->text, r->tokens.tokens[3], ':') && token_stands_for(r, 1, alias)) {
    r->out->begin = r->tokens.tokens[3].offset;
    return HF_OK;
  }
  if (n < 3 || !token_stands_for(r, n - 1, alias)) {
    return fail_at(r, HF_E_UNSUPPORTED, SIZE_MAX, "the alias cannot be found in the text of the expression");
  }
  return keep_tokens(r, is_word(r, n - 2, "as") ? n - 2 : n - 1);
}

/* --------------------------------------------------------------------- tree */

static bool is_empty(struct json_object *node, const char *key) {
  return node_get(node, key) == NULL || node_count(node, key) == 0;
}

/* Whether the tree is SELECT <one expression> and nothing else; *root is the expression. */
static bool is_one_expression(struct json_object *tree, struct json_object **root) {
  if (node_count(tree, "statements") != 1) {
    return false;
  }
  struct json_object *node = node_get(node_at(tree, "statements", 0), "node");
  *root = node_count(node, "select_list") == 1 ? node_at(node, "select_list", 0) : NULL;
  return *root != NULL && node_is(node, "type", "SELECT_NODE") &&
         node_is(node_get(node, "from_table"), "type", "EMPTY") && is_empty(node, "modifiers") &&
         is_empty(node_get(node, "cte_map"), "map") && node_get(node, "where_clause") == NULL &&
         is_empty(node, "group_expressions") && is_empty(node, "group_sets") &&
         node_is(node, "aggregate_handling", "STANDARD_HANDLING") && node_get(node, "having") == NULL &&
         node_get(node, "sample") == NULL && node_get(node, "qualify") == NULL;
}

static hf_status add_ref(reading *r, const step_ref *ref) {
  for (size_t i = 0; i < r->n_refs; i++) {
    if (r->refs[i].offset == ref->offset && r->refs[i].length > 0) { /* DuckDB copies expressions */
      return HF_OK;
    }
  }
  if (r->n_refs == r->capacity) {
    size_t capacity = r->capacity == 0 ? 8 : r->capacity * 2;
    step_ref *refs = mem_realloc(r->refs, capacity * sizeof *refs);
    if (refs == NULL) {
      return out_of_memory(r);
    }
    r->refs = refs;
    r->capacity = capacity;
  }
  r->refs[r->n_refs++] = *ref;
  return HF_OK;
}

/* Where `parts` of a name end, when they stand in the text at the offset as the tree says; SIZE_MAX: they do not. */
static size_t name_end(reading *r, struct json_object *names, size_t offset, size_t parts) {
  size_t at = token_list_find(&r->tokens, offset);
  for (size_t i = 0; i < parts; i++, at++) {
    const char *part = json_object_get_string(json_object_array_get_idx(names, i));
    bool has_dot = i == 0 || (at < r->tokens.count && token_is_sign(r->out->text, r->tokens.tokens[at], '.'));
    at += i > 0;
    if (!has_dot || at >= r->tokens.count || !token_stands_for(r, at, part)) {
      return SIZE_MAX;
    }
  }
  token last = r->tokens.tokens[at - 1];
  return last.offset + last.length;
}

static hf_status ambiguous(const reading *r, const char *name, size_t offset) {
  error_set(r->error, HF_E_BIND, "several columns have this name: \"%.200s\"", name);
  error_hint(r->error, "give each side a name with alias(), and write side.%.200s", name);
  if (r->error != NULL && offset != SIZE_MAX) {
    r->error->position = (int64_t)offset;
  }
  return HF_E_BIND;
}

/* What a name means among the columns in sight. */
typedef struct meaning {
  size_t column; /* SIZE_MAX: none */
  size_t parts;  /* of the name */
  bool several;
  bool is_row; /* the name of a side: all of its columns */
} meaning;

static size_t column_count(const step_side *side) {
  return side->columns == NULL ? 0 : side->columns->n_columns;
}

static void look_in_side(const step_side *side, size_t base, const char *const name[2], meaning *out) {
  for (size_t i = 0; i < column_count(side); i++) {
    const char *label = step_label(side, i);
    bool is_label = label != NULL && strcasecmp(label, name[0]) == 0;
    bool by_label = is_label && name[1] != NULL && strcasecmp(side->columns->columns[i].name, name[1]) == 0;
    bool by_name = strcasecmp(side->columns->columns[i].name, name[0]) == 0;
    out->is_row = out->is_row || is_label;
    if (by_label && out->parts < 2) { /* a side before a column, as in SQL */
      *out = (meaning){.column = base + i, .parts = 2, .is_row = true};
    } else if (by_label || (by_name && out->parts == 1)) {
      out->several = true;
    } else if (by_name && out->parts == 0) {
      out->column = base + i;
      out->parts = 1;
    }
  }
}

static meaning look_up(const reading *r, struct json_object *names) {
  const char *name[2] = {json_object_get_string(json_object_array_get_idx(names, 0)), NULL};
  meaning found = {.column = SIZE_MAX};
  if (json_object_array_length(names) > 1) {
    name[1] = json_object_get_string(json_object_array_get_idx(names, 1));
  }
  look_in_side(&r->m->step->in, 0, name, &found);
  look_in_side(&r->m->step->other, column_count(&r->m->step->in), name, &found);
  return found;
}

/* A column below a sub-select, a lambda or a star: only what must be in sight is noted, as a reference of no length. */
static hf_status note_hidden(reading *r, struct json_object *names) {
  meaning found = look_up(r, names);
  r->out->shape |= STEP_OPAQUE | (found.is_row ? STEP_ALL_COLUMNS : 0);
  return found.column == SIZE_MAX ? HF_OK : add_ref(r, &(step_ref){SIZE_MAX, 0, found.column, 0});
}

static hf_status take_column(reading *r, struct json_object *node, unsigned hidden) {
  struct json_object *names = node_get(node, "column_names");
  size_t offset = SIZE_MAX;
  bool known = node_location(node, &offset);
  if (hidden != 0 || !known) {
    return note_hidden(r, names);
  }
  meaning found = look_up(r, names);
  if (found.several) {
    return ambiguous(r, json_object_get_string(json_object_array_get_idx(names, found.parts - 1)), offset);
  }
  size_t end = found.column == SIZE_MAX ? SIZE_MAX : name_end(r, names, offset, found.parts);
  if (end == SIZE_MAX) {
    return note_hidden(r, names);
  }
  return add_ref(r, &(step_ref){offset, end - offset, found.column, found.parts});
}

static bool is_among(const char *name, const char *const *list) {
  for (; *list != NULL; list++) {
    if (strcasecmp(name, *list) == 0) {
      return true;
    }
  }
  return false;
}

static void take_function(reading *r, struct json_object *node, unsigned *hidden) {
  static const char *const row_makers[] = {"unnest", "unlist", "generate_subscripts", NULL};
  /* These look at how their arguments are called. */
  static const char *const name_readers[] = {"alias",         "struct_pack", "struct_insert",
                                             "struct_update", "union_value", NULL};
  static const char *const cheap[] = {"+", "-", "*", "/", "//", "%", "&", "|", "<<", ">>", "~", "abs", NULL};
  const char *name = node_text(node, "function_name");
  const char *schema_name = node_text(node, "schema");
  if (tree_is_volatile(name)) {
    r->out->shape |= STEP_VOLATILE;
  }
  if (is_among(name, row_makers) && *hidden != BELOW_QUERY) {
    r->out->shape |= STEP_ROWS | STEP_FIXED;
  }
  *hidden = *hidden == SEEN && is_among(name, name_readers) ? HIDDEN : *hidden;
  r->is_cheap = r->is_cheap && is_among(name, cheap);
  if (*schema_name != '\0' && strcasecmp(schema_name, "main") != 0) { /* x.upper() is parsed as a schema's */
    r->out->shape |= STEP_OPAQUE | STEP_ALL_COLUMNS;
  }
}

static hf_status walk(reading *r, struct json_object *value, unsigned hidden);

static hf_status walk_members(reading *r, struct json_object *node, unsigned hidden) {
  json_object_object_foreach(node, key, member) {
    (void)key;
    HF_TRY(walk(r, member, hidden));
  }
  return HF_OK;
}

/* a -> 'b' is written as a lambda, but takes a part of JSON. */
static bool is_json_part(struct json_object *lambda) {
  return node_is(node_get(lambda, "expr"), "class", "CONSTANT");
}

/* What a class of expressions is to its step. Below a query of its own it is nothing. */
static unsigned shape_of(struct json_object *node, const char *class) {
  bool is_lambda = strcmp(class, "LAMBDA") == 0 && !is_json_part(node);
  if (strcmp(class, "STAR") == 0) {
    return STEP_STAR | STEP_OPAQUE | STEP_ALL_COLUMNS | STEP_FIXED;
  }
  if (strcmp(class, "SUBQUERY") == 0 || is_lambda || node_is(node, "type", "OPERATOR_TRY")) {
    return STEP_OPAQUE;
  }
  if (strcmp(class, "WINDOW") == 0) {
    return STEP_WINDOW | STEP_FIXED;
  }
  return strcmp(class, "COLLATE") == 0 ? STEP_FIXED : 0;
}

static hf_status walk_object(reading *r, struct json_object *node, unsigned hidden) {
  const char *class = node_text(node, "class");
  bool is_simple = strcmp(class, "CONSTANT") == 0 || strcmp(class, "COMPARISON") == 0 ||
                   strcmp(class, "CONJUNCTION") == 0 || strcmp(class, "CAST") == 0;
  unsigned shape = shape_of(node, class);
  if (strcmp(class, "COLUMN_REF") == 0) {
    return take_column(r, node, hidden);
  }
  if (strcmp(class, "FUNCTION") == 0) {
    take_function(r, node, &hidden);
  } else if (strcmp(class, "POSITIONAL_REFERENCE") == 0 && hidden != BELOW_QUERY) {
    return fail_at(r, HF_E_INVALID_ARGUMENT, SIZE_MAX, "a column is called by its number, not by its name");
  }
  r->out->shape |= hidden == BELOW_QUERY ? 0 : shape;
  hidden = hidden == SEEN && (shape & STEP_OPAQUE) != 0 ? HIDDEN : hidden;
  if (strcmp(class, "SUBQUERY") == 0) { /* x IN (SELECT …): x is not below the query */
    r->is_cheap = false;
    HF_TRY(walk(r, node_get(node, "child"), hidden));
    return walk(r, node_get(node, "subquery"), BELOW_QUERY);
  }
  r->is_cheap = r->is_cheap && (is_simple || strcmp(class, "FUNCTION") == 0 || *class == '\0');
  return walk_members(r, node, hidden);
}

static hf_status walk(reading *r, struct json_object *value, unsigned hidden) {
  if (json_object_is_type(value, json_type_array)) {
    size_t n = json_object_array_length(value);
    for (size_t i = 0; i < n; i++) {
      HF_TRY(walk(r, json_object_array_get_idx(value, i), hidden));
    }
    return HF_OK;
  }
  return json_object_is_type(value, json_type_object) ? walk_object(r, value, hidden) : HF_OK;
}

/* ------------------------------------------------------------------ results */

static int compare_refs(const void *a, const void *b) {
  size_t x = ((const step_ref *)a)->offset, y = ((const step_ref *)b)->offset;
  return x < y ? -1 : x > y;
}

static hf_status take_refs(reading *r) {
  step_ref *refs = arena_array(r->m->arena, r->n_refs + 1, sizeof *refs);
  if (refs == NULL) {
    return out_of_memory(r);
  }
  if (r->n_refs > 0) {
    memcpy(refs, r->refs, r->n_refs * sizeof *refs);
    qsort(refs, r->n_refs, sizeof *refs, compare_refs);
  }
  r->out->refs = refs;
  r->out->n_refs = r->n_refs;
  return HF_OK;
}

/* The part behind the last dot names the column: s.a is a. */
static hf_status name_of_column(reading *r, struct json_object *root) {
  size_t n = node_count(root, "column_names");
  const step_ref *ref = r->out->n_refs == 1 ? &r->out->refs[0] : NULL;
  const char *name = json_object_get_string(node_at(root, "column_names", n - 1));
  if (ref != NULL && ref->length == r->out->end - r->out->begin) {
    const step_side *in = &r->m->step->in;
    size_t n_in = column_count(in);
    name = ref->column < n_in ? in->columns->columns[ref->column].name
                              : r->m->step->other.columns->columns[ref->column - n_in].name;
    r->out->shape |= STEP_COLUMN;
  }
  r->out->name = r->out->name == NULL ? arena_strdup(r->m->arena, name) : r->out->name;
  return r->out->name == NULL ? out_of_memory(r) : HF_OK;
}

static hf_status read_canonical(reading *r, struct json_object *root) {
  buf text = {0};
  canonical_form form = {.spots = r->out->spots,
                         .n_spots = r->out->n_spots,
                         .without_alias = true,
                         .refs = r->out->refs,
                         .n_refs = r->out->n_refs};
  canonical_append(&form, root, &text);
  r->out->canonical = text.failed ? NULL : arena_strndup(r->m->arena, buf_cstr(&text), text.length);
  buf_reset(&text);
  return r->out->canonical == NULL ? out_of_memory(r) : HF_OK;
}

/* * and a.*, which the step writes as the columns that they stand for. */
static hf_status take_star(reading *r, struct json_object *root) {
  bool is_plain = node_is(root, "class", "STAR") && node_get(root, "expr") == NULL &&
                  !json_object_get_boolean(node_get(root, "columns")) && is_empty(root, "exclude_list") &&
                  is_empty(root, "replace_list") && is_empty(root, "qualified_exclude_list") &&
                  is_empty(root, "rename_list");
  if (!is_plain) {
    return HF_OK;
  }
  r->out->star_of = arena_strdup(r->m->arena, node_text(root, "relation_name"));
  return r->out->star_of == NULL ? out_of_memory(r) : HF_OK;
}

/* Literals and what hands them on are bound by what is around them; these are not. */
static bool is_typed(const reading *r, struct json_object *root) {
  static const char *const classes[] = {"COLUMN_REF", "COMPARISON", "CONJUNCTION", "BETWEEN", "CAST", NULL};
  bool is_operator = node_is(root, "class", "FUNCTION") && r->is_cheap && r->n_refs > 0;
  return is_operator || is_among(node_text(root, "class"), classes);
}

static hf_status take_tree(reading *r, struct json_object *root) {
  names_walk w = {.tokens = &r->tokens, .names = r->m->names, .arena = r->m->arena, .error = r->error};
  hf_status status = names_walk_tree(&w, root);
  if (status == HF_OK) {
    status = names_virtual(&w, root);
  }
  if (status == HF_OK) {
    status = names_take_spots(&w, &r->out->spots, &r->out->n_spots);
  }
  r->out->clock = w.clock;
  mem_free(w.spots);
  HF_TRY(status);
  HF_TRY(walk(r, root, SEEN));
  const char *alias = node_text(root, "alias");
  HF_TRY(*alias == '\0' ? HF_OK : cut_alias(r, alias));
  HF_TRY(take_refs(r));
  HF_TRY(take_star(r, root));
  r->out->shape |= node_is(root, "class", "CONSTANT") ? STEP_CONSTANT : 0;
  r->out->shape |= r->is_cheap ? STEP_CHEAP : 0;
  r->out->shape |= is_typed(r, root) ? STEP_TYPED : 0;
  if (node_is(root, "class", "COLUMN_REF")) {
    HF_TRY(name_of_column(r, root));
  }
  return read_canonical(r, root);
}

static hf_status parse(reading *r) {
  const char *json = NULL;
  struct json_object *tree = NULL, *root = NULL;
  HF_TRY(engine_parse(r->m->planner, r->out->text, r->m->scratch, &json, r->error));
  HF_TRY(node_parse(json, &tree, r->error));
  hf_status status = is_one_expression(tree, &root)
                         ? take_tree(r, root)
                         : fail_at(r, HF_E_SYNTAX, SIZE_MAX, "one expression is expected, found more");
  json_object_put(tree);
  return status;
}

static hf_status read_text(reading *r, const char *given, bool is_key) {
  step_expression *out = r->out;
  token_list all;
  const char *text = arena_printf(r->m->scratch, "%s%s", HEAD, given);
  if (text == NULL) {
    return out_of_memory(r);
  }
  HF_TRY(token_list_read(text, strlen(text), r->m->scratch, &all, r->error));
  HF_TRY(check_tokens(r, &all));
  HF_TRY(names_normalise(text, r->m->arena, &out->text, &r->tokens, r->error));
  out->begin = strlen(HEAD);
  out->end = strlen(out->text);
  HF_TRY(is_key ? cut_order(r) : keep_tokens(r, r->tokens.count));
  return parse(r);
}

/* Positions count in the user's text, and the message says which text. */
static void tell_where(hf_error *error, const char *given) {
  if (error == NULL || error->message == NULL) {
    return;
  }
  error_wrap(error, "in \"%.120s%s\"", given, strlen(given) > 120 ? "…" : "");
  bool known = error->position >= (int64_t)strlen(HEAD);
  error->position = known ? error->position - (int64_t)strlen(HEAD) : -1;
}

hf_status build_expression_read(const step_maker *m, const build_expression *given, bool is_key,
                                step_expression *out) {
  if (given->text == NULL || given->text[strspn(given->text, " \t\r\n")] == '\0') {
    return error_set(m->error, HF_E_INVALID_ARGUMENT, "an expression is empty");
  }
  *out = (step_expression){.order = ""};
  reading r = {.m = m, .out = out, .is_cheap = true, .error = m->error};
  hf_status status = read_text(&r, given->text, is_key);
  mem_free(r.refs);
  out->weight = r.tokens.count;
  if (status != HF_OK) {
    tell_where(m->error, given->text);
    return status;
  }
  if (given->name != NULL) {
    out->name = arena_strdup(m->arena, given->name);
    status = out->name == NULL ? build_out_of_memory(m) : HF_OK;
  }
  return status;
}

hf_status relation_check_expression(engine *planner, const char *text, const relation_names *names,
                                    hf_error *error) {
  relation_step nothing = {.kind = BUILD_PROJECT};
  step_maker m = {
      .planner = planner, .names = names, .step = &nothing, .scratch = arena_new(), .error = error};
  step_expression read;
  build_expression given = {.text = text};
  m.arena = m.scratch;
  hf_status status =
      m.scratch == NULL ? build_out_of_memory(&m) : build_expression_read(&m, &given, false, &read);
  arena_free(m.scratch);
  return status;
}

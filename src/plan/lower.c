/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: a relation becomes one statement. A view that is used becomes a
 * common table expression of that use, all of them in one flat chain in front of
 * the user's text: nested sub-selects fail at some hundred levels, a chain does
 * not; and one expression a use is computed as often as the view would be. Files,
 * held results and client data become inputs at the place of their name.
 */
#include "plan/lower_internal.h"

#include <string.h>

/* DuckDB's planner takes quadratic time in the length of a chain; text is bounded since views may double it. One text
 * may be as long as it likes: the user wrote it. */
enum { LONGEST_CHAIN_BYTES = 4 << 20 };

/* DuckDB fails at some hundred levels of sub-selects. */
enum { MOST_NESTED = 12 };

static hf_status too_much(const lowering *l, const char *what, size_t most) {
  error_set(l->error, HF_E_LIMIT, "views and steps upon each other make a query of more than %zu %s", most,
            what);
  error_hint(l->error, "hold an intermediate result with cache() or CACHE TABLE, and build on it");
  return HF_E_LIMIT;
}

/* ------------------------------------------------------------------- pieces */

static hf_status end_run(lowering *l, piece_list *list) {
  if (list->run.failed) {
    return lower_out_of_memory(l);
  }
  if (list->run.length == 0) {
    return HF_OK;
  }
  char *text = arena_strndup(l->arena, list->run.data, list->run.length);
  if (text == NULL ||
      !lower_grow(l->arena, (void **)&list->pieces, list->count, &list->capacity, sizeof *list->pieces)) {
    return lower_out_of_memory(l);
  }
  list->pieces[list->count++] = (sql_piece){.text = text, .origin = list->run_origin};
  list->run.length = 0;
  return HF_OK;
}

hf_status lower_put_text(lowering *l, piece_list *list, const char *text, size_t length, int64_t origin) {
  bool continues = list->run.length > 0 && list->run_origin == -1 && origin == -1;
  if (!continues) {
    HF_TRY(end_run(l, list));
    list->run_origin = origin;
  }
  buf_append(&list->run, text, length);
  return HF_OK;
}

hf_status lower_put(lowering *l, piece_list *list, const char *text) {
  return lower_put_text(l, list, text, strlen(text), -1);
}

hf_status lower_put_input(lowering *l, piece_list *list, uint32_t input) {
  HF_TRY(end_run(l, list));
  if (!lower_grow(l->arena, (void **)&list->pieces, list->count, &list->capacity, sizeof *list->pieces)) {
    return lower_out_of_memory(l);
  }
  list->pieces[list->count++] = (sql_piece){.text = NULL, .input = input, .origin = -1};
  return HF_OK;
}

hf_status lower_put_list(lowering *l, piece_list *to, piece_list *from) {
  HF_TRY(end_run(l, from));
  for (size_t i = 0; i < from->count; i++) {
    const sql_piece *piece = &from->pieces[i];
    HF_TRY(piece->text == NULL ? lower_put_input(l, to, piece->input)
                               : lower_put_text(l, to, piece->text, strlen(piece->text), piece->origin));
  }
  from->count = 0;
  return HF_OK;
}

/* ------------------------------------------------------------------- inputs */

static bool is_same_input(const lower_input *a, const lower_input *b) {
  if (a->kind != b->kind) {
    return false;
  }
  if (a->kind == LOWER_INPUT_SOURCE) {
    return a->source == b->source;
  }
  if (a->kind == LOWER_INPUT_HELD) {
    return uuid_equal(&a->cache_node->view.cache_id, &b->cache_node->view.cache_id);
  }
  return uuid_equal(&a->local->view.local_id, &b->local->view.local_id);
}

hf_status lower_input_number(lowering *l, const lower_input *input, uint32_t *out) {
  for (size_t i = 0; i < l->n_inputs; i++) {
    if (is_same_input(&l->inputs[i], input)) {
      *out = (uint32_t)i;
      return HF_OK;
    }
  }
  if (!lower_grow(l->arena, (void **)&l->inputs, l->n_inputs, &l->inputs_capacity, sizeof *l->inputs)) {
    return lower_out_of_memory(l);
  }
  *out = (uint32_t)l->n_inputs;
  l->inputs[l->n_inputs++] = *input;
  return HF_OK;
}

bool lower_is_text(const relation *r) {
  return r->view.kind == RELATION_SQL || r->view.kind == RELATION_BUILT;
}

static hf_status input_of_request(lowering *l, const source_request *request, const char *name,
                                  lower_input *out) {
  if (l->counts_only) {
    *out = (lower_input){.kind = LOWER_INPUT_SOURCE, .name = name};
    return HF_OK;
  }
  source *s = l->knowledge->source_of(l->knowledge->context, request);
  if (s == NULL) {
    return error_set(l->error, HF_E_INTERNAL, "a source was known and is not any more: %s", name);
  }
  *out = (lower_input){.kind = LOWER_INPUT_SOURCE, .source = s, .columns = *source_columns(s), .name = name};
  out->rows = source_rows(s, &out->rows_exact);
  return HF_OK;
}

hf_status lower_input_of(lowering *l, const relation *r, const held_info *info, const char *name,
                         lower_input *out) {
  if (r->view.kind == RELATION_READ) {
    return input_of_request(l, r->view.source, name, out);
  }
  if (r->view.kind == RELATION_LOCAL) {
    *out = (lower_input){.kind = LOWER_INPUT_LOCAL,
                         .local = r,
                         .columns = *r->view.local_columns,
                         .rows = r->view.local_rows,
                         .rows_exact = true,
                         .ordered = true,
                         .name = name};
    return HF_OK;
  }
  *out = (lower_input){.kind = LOWER_INPUT_HELD,
                       .cache_node = r,
                       .rows = info->rows,
                       .rows_exact = true,
                       .ordered = info->ordered,
                       .indeterminate = info->indeterminate,
                       .name = name};
  return schema_copy(&info->columns, l->arena, &out->columns, l->error);
}

/* -------------------------------------------------------------------- bodies */

static hf_status put_sql(lowering *l, piece_list *list, const relation *r, size_t from, bool has_origin);

/* Makes up a name for a use of a view. */
static hf_status name_use(lowering *l, const char *original, const char **name) {
  if (l->n_uses == RELATION_MOST_QUERIES) {
    return too_much(l, "levels", RELATION_MOST_QUERIES);
  }
  *name = arena_printf(l->arena, "%s%zu", l->prefix, l->n_uses);
  if (*name == NULL ||
      !lower_grow(l->arena, (void **)&l->made, l->n_uses, &l->uses_capacity, sizeof *l->made)) {
    return lower_out_of_memory(l);
  }
  l->made[l->n_uses++] = (made_name){*name, original};
  return HF_OK;
}

/* DESCRIBE and SUMMARIZE stand neither in a WITH chain nor in the COPY of a task, but in parentheses. */
static bool needs_parentheses(const relation *r) {
  return relation_only_describes(r) || token_is(r->tokens.text, r->tokens.tokens[0], "summarize");
}

hf_status lower_put_use(lowering *l, piece_list *body, const char *original, const char *columns,
                        const char **name) {
  HF_TRY(name_use(l, original, name));
  HF_TRY(lower_put(l, &l->chain, l->n_uses == 1 ? "" : ", "));
  HF_TRY(lower_put(l, &l->chain, *name));
  HF_TRY(lower_put(l, &l->chain, columns));
  HF_TRY(lower_put(l, &l->chain, " AS NOT MATERIALIZED ("));
  HF_TRY(lower_put_list(l, &l->chain, body));
  return lower_put(l, &l->chain, ")");
}

static hf_status put_view_body(lowering *l, piece_list *body, const relation *r) {
  bool is_wrapped = needs_parentheses(r);
  HF_TRY(lower_put(l, body, is_wrapped ? "SELECT * FROM (" : ""));
  HF_TRY(put_sql(l, body, r, 0, false));
  return lower_put(l, body, is_wrapped ? ")" : "");
}

/* A list of columns under the names that a user sees, of which DuckDB makes what it makes of repeated ones. */
static hf_status list_columns(lowering *l, const step_side *side, const char **out) {
  buf text = {0};
  for (size_t i = 0; side->inside != NULL && i < side->columns->n_columns; i++) {
    const char *name = side->columns->columns[i].name;
    buf_text(&text, i == 0 ? "(" : ", ");
    buf_sql_name(&text, *name == '\0' ? side->inside[i] : name);
  }
  buf_text(&text, side->inside == NULL ? "" : ")");
  *out = text.failed ? NULL : arena_strdup(l->arena, buf_cstr(&text));
  buf_reset(&text);
  return *out == NULL ? lower_out_of_memory(l) : HF_OK;
}

hf_status lower_use_relation(lowering *l, const relation *r, const char *original, const char **name) {
  piece_list body = {0};
  const char *columns = "";
  hf_status status = HF_OK;
  if (r->view.kind == RELATION_BUILT) {
    status = lower_built(l, &body, r);
    if (status == HF_OK && r->view.step->out.columns != NULL) {
      status = list_columns(l, &r->view.step->out, &columns);
    }
  } else {
    status = put_view_body(l, &body, r);
  }
  if (status == HF_OK) {
    status = lower_put_use(l, &body, original, columns, name);
  }
  buf_reset(&body.run);
  return status;
}

static hf_status put_alias(lowering *l, piece_list *list, const char *alias) {
  buf text = {0};
  buf_text(&text, " AS ");
  buf_sql_name(&text, alias);
  hf_status status = text.failed ? lower_out_of_memory(l) : lower_put(l, list, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\n';
}

/*
 * A view inside a sub-select stands there with its body: DuckDB 1.5.5 flattens a correlated sub-select over a name of a
 * WITH chain otherwise than over a view, to an error or to other rows.
 */
static hf_status put_in_place(lowering *l, piece_list *list, const relation *r) {
  piece_list body = {0};
  l->has_placed = true;
  l->nested++;
  hf_status status = put_view_body(l, &body, r);
  l->nested--;
  if (status == HF_OK) {
    status = lower_put(l, list, "(");
  }
  if (status == HF_OK) {
    status = lower_put_list(l, list, &body);
  }
  buf_reset(&body.run);
  return status == HF_OK ? lower_put(l, list, ")") : status;
}

static bool stands_in_place(const lowering *l, const relation *r) {
  return l->is_inside && !l->only_chain && l->nested < MOST_NESTED && r->view.kind == RELATION_SQL;
}

/* The name of a text that stands at a spot: one of its own, unless the spot is the same as another. */
static hf_status use_at(lowering *l, const relation *r, const char *text, const sql_spot *spot,
                        const char **name) {
  for (size_t i = l->n_named; spot->same_as > 0 && i > 0; i--) {
    if (l->named[i - 1].text == text && l->named[i - 1].offset == spot->same_as) {
      *name = l->named[i - 1].name;
      return HF_OK;
    }
  }
  HF_TRY(lower_use_relation(l, r, spot->name, name));
  if (!lower_grow(l->arena, (void **)&l->named, l->n_named, &l->named_capacity, sizeof *l->named)) {
    return lower_out_of_memory(l);
  }
  l->named[l->n_named++] = (named_spot){text, spot->offset, *name};
  return HF_OK;
}

static hf_status put_file(lowering *l, piece_list *list, const sql_spot *spot) {
  lower_input input;
  uint32_t number = 0;
  const source_request *request = NULL;
  unsigned given = lower_virtual(l, spot, &request);
  HF_TRY(input_of_request(l, request, spot->name, &input));
  HF_TRY(lower_input_number(l, &input, &number));
  return (given & VIRTUAL_FILE_INDEX) != 0 ? lower_put_indexed(l, list, input.source, number)
                                           : lower_put_input(l, list, number);
}

hf_status lower_put_spot(lowering *l, piece_list *list, const char *text, const sql_spot *spot) {
  if (spot->star != NULL) {
    return lower_put_star(l, list, spot->star);
  }
  held_info info = {0};
  const relation *r = spot->bound == NULL ? NULL : lower_skip_inline(l, spot->bound, &info);
  bool is_apart = spot->offset == 0 || is_blank(text[spot->offset - 1]);
  HF_TRY(lower_put(l, list, is_apart ? "" : " "));
  HF_TRY(lower_put(l, list, spot->is_query ? "FROM " : ""));
  if (r != NULL && stands_in_place(l, r)) {
    HF_TRY(put_in_place(l, list, r));
  } else if (r != NULL && lower_is_text(r)) {
    const char *name = NULL;
    HF_TRY(use_at(l, r, text, spot, &name));
    HF_TRY(lower_put(l, list, name));
  } else if (r == NULL) {
    HF_TRY(put_file(l, list, spot));
  } else {
    lower_input input;
    uint32_t number = 0;
    HF_TRY(lower_input_of(l, r, &info, spot->name, &input));
    HF_TRY(lower_input_number(l, &input, &number));
    HF_TRY(lower_put_input(l, list, number));
  }
  if (spot->alias != NULL) {
    HF_TRY(put_alias(l, list, spot->alias));
  }
  char next = text[spot->offset + spot->length];
  return lower_put(l, list, is_blank(next) || next == '\0' || strchr("),;", next) != NULL ? "" : " ");
}

/* Whether an offset of the text is inside parentheses: then a name there may be of a sub-select. */
static bool is_in_parentheses(const relation *r, size_t offset) {
  size_t depth = 0;
  for (size_t i = 0; i < r->tokens.count && r->tokens.tokens[i].offset < offset; i++) {
    char c = r->tokens.text[r->tokens.tokens[i].offset];
    depth += c == '(';
    depth -= c == ')' && depth > 0;
  }
  return depth > 0;
}

static hf_status put_sql_spot(lowering *l, piece_list *list, const relation *r, const sql_spot *spot) {
  bool was_inside = l->is_inside;
  l->is_inside |= is_in_parentheses(r, spot->offset);
  hf_status status = lower_put_spot(l, list, r->view.text, spot);
  l->is_inside = was_inside;
  return status;
}

/* The text of an SQL relation from an offset on, with its spots replaced. */
static hf_status put_sql(lowering *l, piece_list *list, const relation *r, size_t from, bool has_origin) {
  const char *text = r->view.text;
  size_t at = from, end = strlen(text);
  bool is_users = has_origin && !r->view.is_rewritten;
  l->text_bytes += end;
  l->longest_text = end > l->longest_text ? end : l->longest_text;
  if (!has_origin && l->text_bytes - l->longest_text > LONGEST_CHAIN_BYTES) {
    return too_much(l, "bytes", LONGEST_CHAIN_BYTES);
  }
  for (size_t i = 0; i < r->view.n_spots; i++) {
    const sql_spot *spot = &r->view.spots[i];
    HF_TRY(lower_put_text(l, list, text + at, spot->offset - at, is_users ? (int64_t)at : -1));
    HF_TRY(put_sql_spot(l, list, r, spot));
    at = spot->offset + spot->length;
  }
  return lower_put_text(l, list, text + at, end - at, is_users ? (int64_t)at : -1);
}

/* ---------------------------------------------------------------------- root */

/* Where the chain goes: behind DESCRIBE, behind WITH [RECURSIVE]. *has_with tells of the latter. */
static size_t chain_place(const relation *r, bool *has_with) {
  const token *tokens = r->tokens.tokens;
  const char *text = r->tokens.text;
  size_t i = needs_parentheses(r) ? 1 : 0;
  *has_with = i < r->tokens.count && token_is(text, tokens[i], "with");
  if (*has_with) {
    i += i + 1 < r->tokens.count && token_is(text, tokens[i + 1], "recursive") ? 2 : 1;
  }
  return i < r->tokens.count ? tokens[i].offset : strlen(text);
}

/* The user's text with the chain in it. */
static hf_status put_root(lowering *l, piece_list *list, piece_list *tail, const relation *r) {
  bool has_with = false;
  size_t place = chain_place(r, &has_with);
  if (r->view.n_spots > 0 && place > r->view.spots[0].offset) {
    place = r->view.spots[0].offset;
  }
  bool is_wrapped = needs_parentheses(r);
  HF_TRY(put_sql(l, tail, r, place, true));
  HF_TRY(lower_put(l, list, is_wrapped ? "SELECT * FROM (" : ""));
  HF_TRY(lower_put_text(l, list, r->view.text, place, r->view.is_rewritten ? -1 : 0));
  if (l->n_uses > 0) {
    HF_TRY(lower_put(l, list, has_with ? " " : "WITH "));
    HF_TRY(lower_put_list(l, list, &l->chain));
    HF_TRY(lower_put(l, list, has_with ? ", " : " "));
  }
  HF_TRY(lower_put_list(l, list, tail));
  return lower_put(l, list, is_wrapped ? ")" : "");
}

static hf_status put_built_root(lowering *l, piece_list *list, piece_list *tail, const relation *r) {
  HF_TRY(lower_built(l, tail, r));
  if (l->n_uses > 0) {
    HF_TRY(lower_put(l, list, "WITH "));
    HF_TRY(lower_put_list(l, list, &l->chain));
    HF_TRY(lower_put(l, list, " "));
  }
  return lower_put_list(l, list, tail);
}

static bool holds_text(const relation *r, const char *text) {
  const relation_step *step = r->view.step;
  if (r->view.kind == RELATION_SQL) {
    return strcasestr(r->view.text, text) != NULL;
  }
  for (size_t i = 0; step != NULL && i < step->n_expressions + step->n_groups; i++) {
    const step_expression *e =
        i < step->n_expressions ? &step->expressions[i] : &step->groups[i - step->n_expressions];
    if (e->text != NULL && strcasestr(e->text, text) != NULL) {
      return true;
    }
  }
  return step != NULL && step->name != NULL && strcasestr(step->name, text) != NULL;
}

/* A prefix that no text of the query holds; every relation that is lowered was looked at for needs. */
static hf_status choose_prefix(lowering *l) {
  l->prefix = "hf_r";
  for (size_t i = 0; i < l->n_seen; i++) {
    while (holds_text(l->seen[i], l->prefix)) {
      l->prefix = arena_printf(l->arena, "%s_", l->prefix);
      if (l->prefix == NULL) {
        return lower_out_of_memory(l);
      }
    }
  }
  return HF_OK;
}

static hf_status lower_root(lowering *l, const relation *root, piece_list *list, piece_list *tail) {
  held_info info;
  const relation *r = lower_skip_inline(l, root, &info);
  HF_TRY(choose_prefix(l));
  if (r->view.kind == RELATION_BUILT) {
    return put_built_root(l, list, tail, r);
  }
  if (r->view.kind == RELATION_SQL) {
    return put_root(l, list, tail, r);
  }
  lower_input input;
  uint32_t number = 0;
  HF_TRY(lower_input_of(l, r, &info, "", &input));
  HF_TRY(lower_input_number(l, &input, &number));
  HF_TRY(lower_put(l, list, "SELECT * FROM "));
  return lower_put_input(l, list, number);
}

static const schema *columns_of_root(const lowering *l, const relation *root) {
  held_info info;
  const relation *r = lower_skip_inline(l, root, &info);
  return r->view.kind == RELATION_BUILT ? r->view.step->out.columns : NULL;
}

static void held_as_input(void *context, const relation *node, held_info *out) {
  (void)context;
  (void)node;
  *out = (held_info){.answer = HELD_READ};
}

hf_status lower_count(const relation *r, size_t *queries, hf_error *error) {
  static const lower_knowledge nothing = {.held = held_as_input};
  lowering l = {
      .knowledge = &nothing, .arena = arena_new(), .error = error, .prefix = "hf_r", .counts_only = true};
  piece_list list = {0};
  hf_status status = l.arena == NULL ? lower_out_of_memory(&l) : lower_built(&l, &list, r);
  buf_reset(&list.run);
  buf_reset(&l.chain.run);
  arena_free(l.arena);
  *queries = l.n_uses;
  return status;
}

hf_status lower_count_bytes(lowering *l, const piece_list *body) {
  l->step_bytes += body->run.length;
  for (size_t i = 0; i < body->count; i++) {
    l->step_bytes += body->pieces[i].text == NULL ? 0 : strlen(body->pieces[i].text);
  }
  return l->step_bytes > LONGEST_CHAIN_BYTES ? too_much(l, "bytes", LONGEST_CHAIN_BYTES) : HF_OK;
}

/* *placed: a view stands in place; then DuckDB would call some columns after the view's text. */
static hf_status lower_once(lowering *l, const relation *r, lowered *out, bool *placed) {
  piece_list list = {0}, tail = {0};
  hf_status status = lower_root(l, r, &list, &tail);
  if (status == HF_OK) {
    status = end_run(l, &list);
  }
  buf_reset(&list.run);
  buf_reset(&tail.run);
  buf_reset(&l->chain.run);
  HF_TRY(status);
  out->ordered = r->view.top_ordered;
  out->n_pieces = list.count;
  out->pieces = list.pieces;
  out->n_inputs = l->n_inputs;
  out->inputs = l->inputs;
  out->n_made_names = l->n_uses;
  out->made_names = l->made;
  out->columns = columns_of_root(l, r);
  for (size_t i = 0; out->clock == NULL && i < l->n_seen; i++) {
    out->clock = l->seen[i]->clock;
  }
  *placed = l->has_placed;
  return HF_OK;
}

hf_status plan_lower(const relation *r, const lower_knowledge *knowledge, arena *a, lowered *out,
                     hf_error *error) {
  lowering l = {.knowledge = knowledge, .arena = a, .error = error};
  lowered result = {.ordered = r->view.top_ordered}, *by_names = NULL;
  bool has_placed = false, ignored = false;
  HF_TRY(lower_needs(&l, r));
  if (l.n_needed_sources > 0 || l.n_needed_held > 0) {
    result.n_needed_sources = l.n_needed_sources;
    result.needed_sources = l.needed_sources;
    result.n_needed_held = l.n_needed_held;
    result.needed_held = l.needed_held;
    *out = result;
    return HF_OK;
  }
  lowering again = {.knowledge = knowledge,
                    .arena = a,
                    .error = error,
                    .seen = l.seen,
                    .n_seen = l.n_seen,
                    .only_chain = true};
  HF_TRY(lower_once(&l, r, &result, &has_placed));
  if (has_placed) {
    by_names = arena_alloc(a, sizeof *by_names);
    HF_TRY(by_names == NULL ? lower_out_of_memory(&l) : lower_once(&again, r, by_names, &ignored));
  }
  result.by_names = by_names;
  *out = result;
  return HF_OK;
}

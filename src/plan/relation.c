/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations as values: making, counting, comparing by fingerprint. How SQL text
 * becomes one is in names.c; how one crosses a wire, in relation_wire.c.
 */
#include "plan/relation_internal.h"

#include "base/mem.h"
#include "plan/build_internal.h"
#include "plan/canonical.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ----------------------------------------------------------------- counting */

hf_status relation_new(relation_kind kind, relation **out, hf_error *error) {
  relation *r = mem_zalloc(1, sizeof *r);
  arena *a = arena_new();
  if (r == NULL || a == NULL) {
    mem_free(r);
    arena_free(a);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a relation");
  }
  atomic_init(&r->references, 1);
  r->arena = a;
  r->view.kind = kind;
  *out = r;
  return HF_OK;
}

void relation_drop(relation *r) {
  if (r != NULL) {
    arena_free(r->arena);
    arena_free(r->remembered_memory);
    mem_free(r);
  }
}

relation *relation_retain(const relation *r) {
  relation *counted = (relation *)r; /* the count is not part of the value */
  atomic_fetch_add_explicit(&counted->references, 1, memory_order_relaxed);
  return counted;
}

static bool drop_reference(const relation *r) {
  relation *counted = (relation *)r;
  return r != NULL && atomic_fetch_sub_explicit(&counted->references, 1, memory_order_acq_rel) == 1;
}

typedef void (*visit_fn)(const relation *r);

static void visit_spots(const sql_spot *spots, size_t n, visit_fn visit) {
  for (size_t i = 0; i < n; i++) {
    if (spots[i].bound != NULL) {
      visit(spots[i].bound);
    }
  }
}

/* Visits all that a relation refers to but its input. */
static void visit_others(const relation *r, visit_fn visit) {
  const relation_step *step = r->view.step;
  visit_spots(r->view.spots, r->view.n_spots, visit);
  for (size_t i = 0; step != NULL && i < step->n_expressions; i++) {
    visit_spots(step->expressions[i].spots, step->expressions[i].n_spots, visit);
  }
  for (size_t i = 0; step != NULL && i < step->n_groups; i++) {
    visit_spots(step->groups[i].spots, step->groups[i].n_spots, visit);
  }
  if (r->view.other != NULL) {
    visit(r->view.other);
  }
}

void relation_release(const relation *r) {
  while (drop_reference(r)) { /* steps are a long chain of inputs */
    const relation *input = r->view.input;
    visit_others(r, relation_release);
    relation_drop((relation *)r);
    r = input;
  }
}

relation_view relation_look(const relation *r) {
  return r->view;
}

/* ------------------------------------------------------------- fingerprints */

static void hash_text(XXH3_state_t *state, const char *text) {
  XXH3_128bits_update(state, text, strlen(text) + 1);
}

static void hash_request(XXH3_state_t *state, const source_request *request) {
  XXH3_128bits_update(state, &request->format, sizeof request->format);
  for (size_t i = 0; i < request->n_paths; i++) {
    hash_text(state, request->paths[i]);
  }
  for (size_t i = 0; i < request->n_options; i++) {
    hash_text(state, request->options[i].name);
    hash_text(state, request->options[i].value_sql);
  }
}

static void hash_spot(XXH3_state_t *state, const sql_spot *spot) {
  if (spot->bound != NULL) {
    hash_text(state, spot->bound->fingerprint);
  } else {
    hash_request(state, spot->source);
  }
  hash_text(state, spot->alias == NULL ? "" : spot->alias);
}

/* Tokens, with what stands at the spots in their place: blanks and comments do not count. */
static void hash_sql(XXH3_state_t *state, const relation *r) {
  size_t spot = 0;
  for (size_t i = 0; i < r->tokens.count; i++) {
    token t = r->tokens.tokens[i];
    while (spot < r->view.n_spots && t.offset >= r->view.spots[spot].offset + r->view.spots[spot].length) {
      spot++;
    }
    const sql_spot *at = spot < r->view.n_spots ? &r->view.spots[spot] : NULL;
    if (at != NULL && t.offset == at->offset) {
      hash_spot(state, at);
    } else if (at == NULL || t.offset < at->offset) {
      XXH3_128bits_update(state, r->tokens.text + t.offset, t.length);
      XXH3_128bits_update(state, "", 1);
    }
  }
}

static void hash_relation(XXH3_state_t *state, const relation *r) {
  XXH3_128bits_update(state, &r->view.kind, sizeof r->view.kind);
  switch (r->view.kind) {
    case RELATION_SQL:
      hash_sql(state, r);
      break;
    case RELATION_READ:
      hash_request(state, r->view.source);
      break;
    case RELATION_LOCAL:
      hash_text(state, r->view.local_id.text);
      break;
    case RELATION_CACHE:
      hash_text(state, r->view.cache_id.text);
      hash_text(state, r->view.input->fingerprint);
      break;
    case RELATION_BUILT:
      hash_text(state, r->canonical);
      break;
  }
}

void relation_fingerprint(const relation *r, char out[33]) {
  memcpy(out, r->fingerprint, sizeof r->fingerprint);
}

static void each_spot(const sql_spot *spots, size_t n, void (*each)(void *context, const relation *part),
                      void *context) {
  for (size_t i = 0; i < n; i++) {
    if (spots[i].bound != NULL) {
      each(context, spots[i].bound);
    }
  }
}

void relation_each_part(const relation *r, void (*each)(void *context, const relation *part), void *context) {
  const relation_step *step = r->view.kind == RELATION_BUILT ? r->view.step : NULL;
  each_spot(r->view.spots, r->view.n_spots, each, context);
  for (size_t i = 0; step != NULL && i < step->n_expressions; i++) {
    each_spot(step->expressions[i].spots, step->expressions[i].n_spots, each, context);
  }
  for (size_t i = 0; step != NULL && i < step->n_groups; i++) {
    each_spot(step->groups[i].spots, step->groups[i].n_spots, each, context);
  }
  if (r->view.other != NULL) {
    each(context, r->view.other);
  }
  if (r->view.input != NULL) {
    each(context, r->view.input);
  }
}

bool relation_only_describes(const relation *r) {
  static const char *const words[] = {"describe", "desc", "show"};
  for (size_t i = 0; r->view.kind == RELATION_SQL && i < sizeof words / sizeof words[0]; i++) {
    if (token_is(r->tokens.text, r->tokens.tokens[0], words[i])) {
      return true;
    }
  }
  return false;
}

/* ------------------------------------------------------------------- making */

static unsigned depth_of_spots(const sql_spot *spots, size_t n, unsigned deepest) {
  for (size_t i = 0; i < n; i++) {
    const relation *bound = spots[i].bound;
    deepest = bound != NULL && bound->depth > deepest ? bound->depth : deepest;
  }
  return deepest;
}

/* Walks recurse into everything but the input of a step. */
static unsigned depth_of(const relation *r) {
  const relation_step *step = r->view.step;
  unsigned below = depth_of_spots(r->view.spots, r->view.n_spots, 0);
  for (size_t i = 0; step != NULL && i < step->n_expressions; i++) {
    below = depth_of_spots(step->expressions[i].spots, step->expressions[i].n_spots, below);
  }
  for (size_t i = 0; step != NULL && i < step->n_groups; i++) {
    below = depth_of_spots(step->groups[i].spots, step->groups[i].n_spots, below);
  }
  if (r->view.other != NULL && r->view.other->depth > below) {
    below = r->view.other->depth;
  }
  unsigned input = r->view.input == NULL ? 0 : r->view.input->depth;
  input += r->view.kind == RELATION_CACHE;
  return input > below + 1 ? input : below + 1;
}

/* Errors: LIMIT. */
static hf_status check_depth(relation *r, hf_error *error) {
  bool is_built = r->view.kind == RELATION_BUILT;
  unsigned below = is_built ? r->view.input->steps : 0;
  if (is_built && r->view.other != NULL && r->view.other->steps > below) {
    below = r->view.other->steps;
  }
  r->depth = depth_of(r);
  r->steps = is_built ? below + 1 : 0;
  if (r->depth > RELATION_DEEPEST) {
    return error_set(error, HF_E_LIMIT, "relations are nested deeper than %d", RELATION_DEEPEST);
  }
  if (r->steps > RELATION_MOST_STEPS) {
    error_set(error, HF_E_LIMIT, "more than %d steps are built on top of each other", RELATION_MOST_STEPS);
    error_hint(error, "hold an intermediate result with cache() or checkpoint(), and build on it");
    return HF_E_LIMIT;
  }
  return HF_OK;
}

static void keep(const relation *r) {
  relation_retain(r);
}

/* The text that stands for a step and what it is built on. */
static hf_status make_canonical(relation *r, hf_error *error) {
  buf text = {0};
  canonical_step(r, &text);
  r->canonical = text.failed ? NULL : arena_strndup(r->arena, buf_cstr(&text), text.length);
  buf_reset(&text);
  return r->canonical == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a relation") : HF_OK;
}

hf_status relation_finish(relation *r, hf_error *error) {
  HF_TRY(check_depth(r, error));
  HF_TRY(r->view.kind == RELATION_BUILT ? make_canonical(r, error) : HF_OK);
  XXH3_state_t *state = XXH3_createState();
  if (state == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a relation");
  }
  XXH3_128bits_reset(state);
  hash_relation(state, r);
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  snprintf(r->fingerprint, sizeof r->fingerprint, "%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  visit_others(r, keep);
  if (r->view.input != NULL) {
    relation_retain(r->view.input);
  }
  return HF_OK;
}

const source_request *source_request_copy(const source_request *from, arena *a) {
  source_request *copy = arena_alloc(a, sizeof *copy);
  const char **paths = arena_array(a, from->n_paths + 1, sizeof *paths);
  source_option *options = arena_array(a, from->n_options + 1, sizeof *options);
  bool complete = copy != NULL && paths != NULL && options != NULL;
  for (size_t i = 0; complete && i < from->n_paths; i++) {
    paths[i] = arena_strdup(a, from->paths[i]);
    complete = paths[i] != NULL;
  }
  for (size_t i = 0; complete && i < from->n_options; i++) {
    options[i].name = arena_strdup(a, from->options[i].name);
    options[i].value_sql = arena_strdup(a, from->options[i].value_sql);
    complete = options[i].name != NULL && options[i].value_sql != NULL;
  }
  if (!complete) {
    return NULL;
  }
  *copy = (source_request){from->format, paths, from->n_paths, options, from->n_options};
  return copy;
}

bool source_request_equal(const source_request *a, const source_request *b) {
  bool equal = a->format == b->format && a->n_paths == b->n_paths && a->n_options == b->n_options;
  for (size_t i = 0; equal && i < a->n_paths; i++) {
    equal = strcmp(a->paths[i], b->paths[i]) == 0;
  }
  for (size_t i = 0; equal && i < a->n_options; i++) {
    equal = strcmp(a->options[i].name, b->options[i].name) == 0 &&
            strcmp(a->options[i].value_sql, b->options[i].value_sql) == 0;
  }
  return equal;
}

static hf_status finish_or_drop(relation *r, bool complete, relation **out, hf_error *error) {
  hf_status status =
      complete ? relation_finish(r, error) : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a relation");
  if (status != HF_OK) {
    relation_drop(r);
    return status;
  }
  *out = r;
  return HF_OK;
}

hf_status relation_from_read(const source_request *request, relation **out, hf_error *error) {
  if (request->n_paths == 0) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "no path is given");
  }
  for (size_t i = 0; i < request->n_options; i++) {
    HF_TRY(source_option_check(request->format, request->options[i].name, error));
  }
  relation *r = NULL;
  HF_TRY(relation_new(RELATION_READ, &r, error));
  r->view.source = source_request_copy(request, r->arena);
  return finish_or_drop(r, r->view.source != NULL, out, error);
}

hf_status relation_from_local(const uuid *id, const char *dir, const schema *columns, uint64_t rows,
                              relation **out, hf_error *error) {
  relation *r = NULL;
  HF_TRY(relation_new(RELATION_LOCAL, &r, error));
  schema *copy = arena_alloc(r->arena, sizeof *copy);
  r->view.local_id = *id;
  r->view.local_rows = rows;
  r->view.local_dir = arena_strdup(r->arena, dir);
  bool complete =
      copy != NULL && r->view.local_dir != NULL && schema_copy(columns, r->arena, copy, error) == HF_OK;
  r->view.local_columns = copy;
  return finish_or_drop(r, complete, out, error);
}

hf_status relation_from_cache(const uuid *cache_id, const uuid *session, const relation *input,
                              const char *level, relation **out, hf_error *error) {
  relation *r = NULL;
  HF_TRY(relation_new(RELATION_CACHE, &r, error));
  r->view.cache_id = *cache_id;
  r->view.session = *session;
  r->view.input = input;
  r->view.level = arena_strdup(r->arena, level);
  r->view.top_ordered = input->view.top_ordered;
  return finish_or_drop(r, r->view.level != NULL, out, error);
}

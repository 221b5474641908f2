/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations as values: making, counting, comparing by fingerprint. How SQL text
 * becomes one is in names.c; how one crosses a wire, in relation_wire.c.
 */
#include "relation/relation_parts.h"

#include "base/mem.h"
#include "relation/build_internal.h"
#include "relation/canonical.h"

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

void relation_fingerprint(const relation *r, char out[33]) {
  memcpy(out, r->fingerprint, sizeof r->fingerprint);
}

/* A name that expressions may use changes nothing by itself. */
static const relation *below_aliases(const relation *r) {
  while (r != NULL && r->view.kind == RELATION_BUILT && r->view.step->kind == BUILD_ALIAS) {
    r = r->view.input;
  }
  return r;
}

static bool spots_are_equal(const sql_spot *a, size_t n_a, const sql_spot *b, size_t n_b) {
  bool equal = n_a == n_b;
  for (size_t i = 0; equal && i < n_a; i++) { /* requests are in the canonical text */
    equal = (a[i].bound == NULL) == (b[i].bound == NULL) &&
            (a[i].bound == NULL || relation_equal(a[i].bound, b[i].bound));
  }
  return equal;
}

static bool expressions_are_equal(const step_expression *a, size_t n_a, const step_expression *b,
                                  size_t n_b) {
  bool equal = n_a == n_b;
  for (size_t i = 0; equal && i < n_a; i++) {
    equal = spots_are_equal(a[i].spots, a[i].n_spots, b[i].spots, b[i].n_spots);
  }
  return equal;
}

/* All but the inputs. */
static bool are_equal_here(const relation *a, const relation *b) {
  const relation_step *x = a->view.step, *y = b->view.step;
  if (memcmp(a->fingerprint, b->fingerprint, sizeof a->fingerprint) != 0 || a->view.kind != b->view.kind ||
      strcmp(a->canonical, b->canonical) != 0 ||
      !spots_are_equal(a->view.spots, a->view.n_spots, b->view.spots, b->view.n_spots)) {
    return false;
  }
  return x == NULL ||
         (expressions_are_equal(x->expressions, x->n_expressions, y->expressions, y->n_expressions) &&
          expressions_are_equal(x->groups, x->n_groups, y->groups, y->n_groups));
}

bool relation_equal(const relation *a, const relation *b) {
  for (;;) {
    a = below_aliases(a);
    b = below_aliases(b);
    if (a == b) {
      return true;
    }
    if (a == NULL || b == NULL || !are_equal_here(a, b) || !relation_equal(a->view.other, b->view.other)) {
      return false;
    }
    a = a->view.input;
    b = b->view.input;
  }
}

/* Relations whose text was written already. Equal ones are one, wherever they lie: the text is that of the plan. */
typedef struct written_list {
  const relation **all; /* memory: mem_* */
  size_t n, capacity;
  buf *out;
} written_list;

static bool is_written(written_list *list, const relation *r) {
  for (size_t i = list->n; i > 0; i--) {
    const relation *other = list->all[i - 1];
    bool is_same =
        other == r || (memcmp(other->fingerprint, r->fingerprint, sizeof r->fingerprint) == 0 &&
                       other->view.kind == r->view.kind && strcmp(other->canonical, r->canonical) == 0);
    if (is_same) {
      return true;
    }
  }
  if (list->n == list->capacity) {
    size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
    const relation **all = mem_realloc(list->all, capacity * sizeof(const relation *));
    if (all == NULL) {
      list->out->failed = true;
      return true;
    }
    list->all = all;
    list->capacity = capacity;
  }
  list->all[list->n++] = r;
  return false;
}

static void write_canonical(written_list *list, const relation *r);

static void write_spots(written_list *list, const sql_spot *spots, size_t n) {
  for (size_t i = 0; i < n; i++) {
    write_canonical(list, spots[i].bound);
  }
}

static void write_canonical(written_list *list, const relation *r) {
  for (r = below_aliases(r); r != NULL && !is_written(list, r); r = below_aliases(r->view.input)) {
    const relation_step *step = r->view.step;
    buf_text(list->out, r->canonical);
    buf_char(list->out, '\n');
    write_spots(list, r->view.spots, r->view.n_spots);
    for (size_t i = 0; step != NULL && i < step->n_expressions; i++) {
      write_spots(list, step->expressions[i].spots, step->expressions[i].n_spots);
    }
    for (size_t i = 0; step != NULL && i < step->n_groups; i++) {
      write_spots(list, step->groups[i].spots, step->groups[i].n_spots);
    }
    write_canonical(list, r->view.other);
  }
}

void relation_canonical(const relation *r, buf *out) {
  written_list list = {.out = out};
  write_canonical(&list, r);
  mem_free(list.all);
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

static size_t add_up(size_t a, size_t b) {
  return a > SIZE_MAX / 4 || b > SIZE_MAX / 4 ? SIZE_MAX / 4 : a + b;
}

static size_t queries_of_spots(const sql_spot *spots, size_t n, size_t sum) {
  for (size_t i = 0; i < n; i++) {
    sum = spots[i].bound == NULL ? sum : add_up(sum, spots[i].bound->queries);
  }
  return sum;
}

static size_t queries_of(const relation *r) {
  const relation_step *step = r->view.step;
  if (r->view.kind != RELATION_SQL && r->view.kind != RELATION_BUILT) {
    return 0; /* an input */
  }
  size_t sum = queries_of_spots(r->view.spots, r->view.n_spots, 1);
  for (size_t i = 0; step != NULL && i < step->n_expressions; i++) {
    sum = queries_of_spots(step->expressions[i].spots, step->expressions[i].n_spots, sum);
  }
  for (size_t i = 0; step != NULL && i < step->n_groups; i++) {
    sum = queries_of_spots(step->groups[i].spots, step->groups[i].n_spots, sum);
  }
  sum = r->view.input == NULL ? sum : add_up(sum, r->view.input->queries);
  return r->view.other == NULL ? sum : add_up(sum, r->view.other->queries);
}

/* Errors: LIMIT. */
static hf_status check_depth(relation *r, hf_error *error) {
  bool is_built = r->view.kind == RELATION_BUILT;
  unsigned below = is_built ? r->view.input->steps : 0;
  if (is_built && r->view.other != NULL && r->view.other->steps > below) {
    below = r->view.other->steps;
  }
  r->depth = depth_of(r);
  r->queries = queries_of(r);
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

static void write_kind(const relation *r, buf *out) {
  switch (r->view.kind) {
    case RELATION_SQL: /* made when it was parsed */
      break;
    case RELATION_READ:
      canonical_request(r->view.source, out);
      break;
    case RELATION_LOCAL:
      buf_printf(out, "local %s", r->view.local_id.text);
      break;
    case RELATION_CACHE:
      buf_printf(out, "cache %s %s", r->view.cache_id.text, r->view.input->fingerprint);
      break;
    case RELATION_BUILT:
      canonical_step(r, out);
      break;
  }
}

/* The text that stands for a relation, with fingerprints for those below. */
static hf_status make_canonical(relation *r, hf_error *error) {
  buf text = {0};
  if (r->canonical != NULL) {
    return HF_OK;
  }
  write_kind(r, &text);
  r->canonical = text.failed ? NULL : arena_strndup(r->arena, buf_cstr(&text), text.length);
  buf_reset(&text);
  return r->canonical == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a relation") : HF_OK;
}

static void make_fingerprint(relation *r) {
  const relation *same = below_aliases(r);
  XXH128_hash_t hash = XXH3_128bits_withSeed(r->canonical, strlen(r->canonical), (XXH64_hash_t)r->view.kind);
  if (same != r) {
    memcpy(r->fingerprint, same->fingerprint, sizeof r->fingerprint);
    return;
  }
  snprintf(r->fingerprint, sizeof r->fingerprint, "%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
}

hf_status relation_finish(relation *r, hf_error *error) {
  HF_TRY(check_depth(r, error));
  HF_TRY(make_canonical(r, error));
  make_fingerprint(r);
  visit_others(r, keep);
  if (r->view.input != NULL) {
    relation_retain(r->view.input);
  }
  return HF_OK;
}

const source_request *source_request_copy(const source_request *from, arena *a) {
  source_request *copy = arena_alloc(a, sizeof *copy);
  const char **paths = arena_array(a, from->n_paths + 1, sizeof *paths);
  const char **written = arena_array(a, from->n_paths + 1, sizeof *written);
  source_option *options = arena_array(a, from->n_options + 1, sizeof *options);
  bool complete = copy != NULL && paths != NULL && written != NULL && options != NULL;
  for (size_t i = 0; complete && i < from->n_paths; i++) {
    paths[i] = arena_strdup(a, from->paths[i]);
    written[i] = from->written == NULL ? paths[i] : arena_strdup(a, from->written[i]);
    complete = paths[i] != NULL && written[i] != NULL;
  }
  for (size_t i = 0; complete && i < from->n_options; i++) {
    options[i].name = arena_strdup(a, from->options[i].name);
    options[i].value_sql = arena_strdup(a, from->options[i].value_sql);
    complete = options[i].name != NULL && options[i].value_sql != NULL;
  }
  if (!complete) {
    return NULL;
  }
  *copy = (source_request){from->format, paths, from->n_paths, options, from->n_options, written};
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planning step: lower the relation with what is known, resolve the sources
 * that are not, and either name the held results that must be known first, or
 * bind the query, cut it and encode its stages. The step runs on a planning thread; what
 * comes of it goes back to the scheduler's as a message. Answers about held
 * results are filled in there, between steps (held.c).
 * Threads: planning_begin, _reset and _post the scheduler's, the rest a planning thread; explain.c runs it all on one.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "tree/tree.h"

#include <string.h>

hf_status planning_begin(planning *p, hf_error *error) {
  p->lasting = arena_new();
  p->memory = arena_new();
  if (p->lasting == NULL || p->memory == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
  }
  return HF_OK;
}

static void forget_cuts(planning *p) {
  for (size_t i = 0; i < p->n_again; i++) {
    arena_free(p->again[i]);
  }
  p->n_again = 0;
  p->root = NULL;
}

void planning_reset(planning *p) {
  for (known_source *known = p->sources; known != NULL; known = known->next) {
    source_release(known->source);
  }
  for (held_need *need = p->needs; need != NULL; need = need->next) {
    hf_error_reset(&need->fill_error);
    profile_release(need->filled);
  }
  p->sources = NULL;
  p->needs = NULL;
  hf_error_reset(&p->error);
  forget_cuts(p);
  arena_free(p->memory);
  arena_free(p->lasting);
  p->memory = p->lasting = NULL;
}

/* ----------------------------------------------------------------- sources */

static bool requests_are_equal(const source_request *a, const source_request *b) {
  if (a == b) {
    return true;
  }
  if (a->format != b->format || a->n_paths != b->n_paths || a->n_options != b->n_options) {
    return false;
  }
  for (size_t i = 0; i < a->n_paths; i++) {
    if (strcmp(a->paths[i], b->paths[i]) != 0) {
      return false;
    }
  }
  for (size_t i = 0; i < a->n_options; i++) {
    if (strcmp(a->options[i].name, b->options[i].name) != 0 ||
        strcmp(a->options[i].value_sql, b->options[i].value_sql) != 0) {
      return false;
    }
  }
  return true;
}

static source *source_of(void *context, const source_request *request) {
  const planning *p = context;
  for (const known_source *known = p->sources; known != NULL; known = known->next) {
    if (requests_are_equal(known->request, request)) {
      return known->source;
    }
  }
  return NULL;
}

static hf_status source_learn(scheduler *s, planning *p, const source_request *request, hf_error *error) {
  if (source_of(p, request) != NULL) {
    return HF_OK; /* named twice */
  }
  known_source *known = arena_alloc(p->lasting, sizeof *known);
  if (known == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
  }
  HF_TRY(source_resolve_versions(s->sources, request, p->lasting, &known->versions, &known->source, error));
  known->request = request;
  LL_PREPEND(p->sources, known);
  return HF_OK;
}

/* ------------------------------------------------------------- held results */

held_need *planning_need(const planning *p, const uuid *key) {
  held_need *need = NULL;
  LL_FOREACH(p->needs, need) {
    if (uuid_equal(&need->key, key)) {
      return need;
    }
  }
  return NULL;
}

/* Tells whether the node is what the need is about: the same input under the same id. */
static bool need_is_of(const held_need *need, const relation *node) {
  if (need->node == node) {
    return true;
  }
  char fingerprint[33];
  relation_fingerprint(relation_look(node).input, fingerprint);
  return strcmp(fingerprint, need->fingerprint) == 0;
}

static void held_of(void *context, const relation *cache_node, held_info *out) {
  const planning *p = context;
  relation_view view = relation_look(cache_node);
  const held_need *need = planning_need(p, &view.cache_id);
  *out = (held_info){.answer = HELD_UNKNOWN};
  if (need != NULL && need->state == NEED_ANSWERED && need_is_of(need, cache_node)) {
    *out = need->info;
  }
}

static hf_status need_add(planning *p, const relation *node, hf_error *error) {
  relation_view view = relation_look(node);
  held_need *need = planning_need(p, &view.cache_id);
  if (need != NULL && need->state == NEED_NEW && need_is_of(need, node)) {
    return HF_OK; /* named twice */
  }
  if (need != NULL) {
    return error_set(error, HF_E_HELD_MISMATCH, "a cache id stands for two plans in one query: %s",
                     view.cache_id.text);
  }
  need = arena_alloc(p->lasting, sizeof *need);
  if (need == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
  }
  need->node = node;
  need->key = view.cache_id;
  need->session = view.session;
  relation_fingerprint(view.input, need->fingerprint);
  LL_APPEND(p->needs, need);
  return HF_OK;
}

/* ---------------------------------------------------------------- lowering */

hf_status planning_lower(scheduler *s, planning *p, hf_error *error) {
  lower_knowledge knowledge = {.held = held_of, .source_of = source_of, .context = p};
  for (;;) {
    memset(&p->query, 0, sizeof p->query);
    HF_TRY(plan_lower(p->relation, &knowledge, p->memory, &p->query, error));
    if (p->query.n_needed_sources == 0) {
      break;
    }
    const known_source *before = p->sources;
    for (size_t i = 0; i < p->query.n_needed_sources; i++) {
      HF_TRY(source_learn(s, p, p->query.needed_sources[i], error));
    }
    if (p->sources == before) {
      return error_set(error, HF_E_INTERNAL, "lowering asks for sources that are known");
    }
  }
  p->needs_held = p->query.n_needed_held > 0;
  for (size_t i = 0; i < p->query.n_needed_held; i++) {
    HF_TRY(need_add(p, p->query.needed_held[i], error));
  }
  return HF_OK;
}

/* Client data: its rows are known, its bytes are not. */
static uint64_t estimate_bytes(const lower_input *input) {
  uint64_t width = 8 * (uint64_t)input->columns.n_columns;
  return width != 0 && input->rows > UINT64_MAX / width ? UINT64_MAX : input->rows * width;
}

uint64_t planning_input_bytes(const planning *p) {
  uint64_t total = 0;
  for (size_t i = 0; i < p->query.n_inputs; i++) {
    const lower_input *input = &p->query.inputs[i];
    uint64_t bytes = 0;
    if (input->kind == LOWER_INPUT_SOURCE) {
      bytes = source_bytes(input->source);
    } else if (input->kind == LOWER_INPUT_LOCAL) {
      bytes = estimate_bytes(input);
    } else {
      uuid key = relation_look(input->cache_node).cache_id;
      const held_need *need = planning_need(p, &key);
      bytes = need == NULL ? 0 : need->bytes;
    }
    total = bytes > UINT64_MAX - total ? UINT64_MAX : total + bytes;
  }
  return total;
}

/* -------------------------------------------------------------------- steps */

/* Of lists that are written out, or that come of splitting texts that are. */
static bool unnests_texts(const tree_node *node) {
  bool result = true;
  for (size_t i = 0; result && i < node->n_expressions; i++) {
    const tree_expression *unnest = node->expressions[i];
    const tree_expression *list = unnest->n_children == 1 ? unnest->children[0] : unnest;
    bool is_split = list->kind == EXPRESSION_FUNCTION && strcmp(list->call->name, "string_split") == 0 &&
                    list->children[0]->kind == EXPRESSION_CONSTANT;
    result = is_split || list->kind == EXPRESSION_CONSTANT;
  }
  return result;
}

/* Operators that give no more rows than the text of the query holds. */
static bool is_light(const tree_node *node) {
  static const bool kinds[TREE_KIND_COUNT] = {
      [TREE_VALUES] = true, [TREE_DUMMY] = true,     [TREE_EMPTY] = true, [TREE_FILTER] = true,
      [TREE_ORDER] = true,  [TREE_AGGREGATE] = true, [TREE_TOP_N] = true, [TREE_PROJECTION] = true,
      [TREE_LIMIT] = true,  [TREE_DISTINCT] = true,  [TREE_UNION] = true};
  bool result = kinds[node->kind] || (node->kind == TREE_UNNEST && unnests_texts(node));
  for (size_t i = 0; result && i < node->n_children; i++) {
    result = is_light(node->children[i]);
  }
  return result;
}

/* Whether a query without inputs, such as the answer of a listing, need not wait for a slot. A doubt is no. */
static hf_status look_for_light(engine *planner_engine, planning *p, hf_error *error) {
  const char *sql = NULL, *json = NULL, *why = NULL;
  engine_scan *scans = NULL;
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  HF_TRY(plan_text_for_planner(&p->query, p->memory, &sql, &scans, error));
  HF_TRY(engine_plan_json(planner_engine, sql, p->memory, &json, &why, error));
  if (json != NULL) {
    HF_TRY(plan_tree_read(json, strlen(json), p->memory, &root, &refusal, error));
  }
  p->is_light = root != NULL && is_light(root);
  return HF_OK;
}

/* Blocks keep no collation: who reads them back would compare other texts as equal. */
static hf_status refuse_collation(const planning *p, hf_error *error) {
  error_set(error, HF_E_LIMIT, "a held result cannot keep the collation of its columns: %s",
            p->traits.collation);
  error_hint(error, "hold the columns without it, and write COLLATE in the queries over them");
  return HF_E_LIMIT;
}

static hf_status bind_on(void *context, engine *planner_engine, hf_error *error) {
  planning *p = context;
  HF_TRY(plan_describe(planner_engine, &p->query, p->memory, &p->columns, error));
  if (p->may_be_light) {
    HF_TRY(look_for_light(planner_engine, p, error));
  }
  if (p->n_tasks > 1) {
    HF_TRY(cutting_try(planner_engine, p, error));
  } else if (!p->is_describing) {
    HF_TRY(pruning_try(planner_engine, p, error));
  }
  if (p->wants_traits) {
    HF_TRY(plan_traits_of(planner_engine, &p->query, p->memory, &p->traits, error));
  }
  return p->is_fill && p->traits.collation[0] != '\0' ? refuse_collation(p, error) : HF_OK;
}

/*
 * Blocks in an order are handed out in it, to one thread, only where the query relies on it: its own rows are in order, or
 * its answer depends on the order of its input (LIMIT, first, list …), which its traits tell.
 */
static void choose_order(planning *p) {
  p->ordered = p->query.ordered || planning_input_bytes(p) < p->settings->ordered_below_bytes;
  for (size_t i = 0; !p->ordered && i < p->query.n_inputs; i++) {
    p->wants_traits = p->wants_traits || p->query.inputs[i].ordered;
  }
}

hf_status planning_bind(scheduler *s, planning *p, hf_error *error) {
  planner_user user = {.who = p, .use = bind_on, .context = p};
  p->n_tasks = p->is_describing ? 1 : cutting_tasks(s, p);
  p->dealing = (relation_dealing){0};
  if ((p->is_fill || p->shows_fill) && relation_is_dealt(p->relation, &p->dealing)) {
    p->ordered = false; /* rows that are dealt are in no order */
  }
  p->may_be_light =
      p->query.n_inputs == 0 && !p->is_describing && !p->is_fill && executor_is_busy(s->executor);
  p->is_light = false;
  return planner_use(s, p->settings, &user, error);
}

static hf_status step_try(scheduler *s, planning *p, hf_error *error) {
  forget_cuts(p);
  arena_free(p->memory);
  p->memory = arena_new();
  p->wants_traits = p->is_fill;
  p->traits = (plan_traits){.why = "", .collation = ""};
  p->graph = (cut_graph){0};
  p->pruning = NULL;
  p->fallback = NULL;
  if (p->memory == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
  }
  p->needs_held = freshness_check(p);
  if (!p->needs_held) {
    HF_TRY(planning_lower(s, p, error));
  }
  if (p->needs_held) {
    return HF_OK;
  }
  choose_order(p);
  HF_TRY(planning_bind(s, p, error));
  p->reads_in_order = p->ordered || p->traits.indeterminate;
  return staging_prepare(s, p, error);
}

static void step_handle(scheduler *s, message *m) {
  planning *p = (planning *)m;
  uint64_t started = clock_monotonic_us();
  hf_error_reset(&p->error);
  p->status = step_try(s, p, &p->error);
  p->planning_us += clock_monotonic_us() - started;
  p->step.handle = p->done;
  event_queue_post(&s->events, &p->step.item); /* open: closing waits for every job */
}

void planning_post(scheduler *s, planning *p, void (*done)(scheduler *s, message *m)) {
  p->step.handle = step_handle;
  p->done = done;
  event_queue_post(&s->plans, &p->step.item);
}

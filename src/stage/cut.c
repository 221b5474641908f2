/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over the plan tree, by kind of operator; the door. A subtree becomes
 * a part, which ends as a stage where rows must move. And errors of tasks in the
 * words of the query: DuckDB ends the message of a cast that failed with "when
 * casting from source column c0"; which one that is, the casts of the stage tell.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/buf.h"
#include "base/fault.h"
#include "sql/write.h"

#include <string.h>

/* ------------------------------------------------------------------ the tree */

hf_status cut_put(cutter *c, const tree_node *node, const cut_part *parts, size_t n_parts,
                  const tree_node **out) {
  const tree_node **children = NULL;
  HF_TRY(cut_pointers(c, n_parts, &children));
  for (size_t i = 0; i < n_parts; i++) {
    children[i] = parts[i].node;
  }
  tree_node copy = *node;
  copy.n_children = n_parts;
  copy.children = children;
  return cut_make_node(c, &copy, out);
}

hf_status cut_over(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  HF_TRY(cut_node(c, node->children[0], order, out));
  if (node->kind != TREE_UNNEST) { /* its columns are behind the child's: the others may move */
    out->n_deals = 0;
  }
  return cut_put(c, node, out, 1, &out->node);
}

hf_status cut_in_one(cutter *c, const tree_node *node, cut_order order, const char *why, cut_part *out) {
  cut_part *parts = NULL;
  bool ordered = order == ORDER_NEEDED;
  HF_TRY(cut_array(c, node->n_children, sizeof *parts, &parts));
  *out = (cut_part){.is_one = true, .why = why, .what = "one task"};
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(cut_node(c, node->children[i], order, &parts[i]));
    HF_TRY(cut_gather(c, &parts[i], ordered, why));
    out->rows += parts[i].rows;
    out->base += parts[i].base;
  }
  return cut_put(c, node, parts, node->n_children, &out->node);
}

hf_status cut_copy(cutter *c, const tree_node *node, bool ordered, const tree_node **out) {
  const cut_cte *cte = node->kind == TREE_CTE_REF ? cut_cte_find(c, node->number) : NULL;
  const tree_node **children = NULL;
  if (cte != NULL) {
    return cut_read(c, cte->stage, CUT_ALL, ordered, node, out);
  }
  if (node->n_children == 0) {
    return cut_scan_leaf(c, node, CUT_SPLIT, ordered, out);
  }
  HF_TRY(cut_pointers(c, node->n_children, &children));
  for (size_t i = 0; i < node->n_children; i++) {
    HF_TRY(cut_copy(c, node->children[i], ordered, &children[i]));
  }
  tree_node copy = *node;
  copy.children = children;
  return cut_make_node(c, &copy, out);
}

hf_status cut_whole(cutter *c, const tree_node *node, cut_order order, const char *why, cut_part *out) {
  *out = (cut_part){.is_one = true, .why = why, .what = "one task", .rows = 1e9, .base = 1e9};
  return cut_copy(c, node, order != ORDER_ANY, &out->node);
}

hf_status cut_node(cutter *c, const tree_node *node, cut_order order, cut_part *out) {
  switch (node->kind) {
    case TREE_GET:
      return cut_scan(c, node, order, out);
    case TREE_VALUES:
    case TREE_DUMMY:
    case TREE_EMPTY:
      return cut_constant_rows(c, node, out);
    case TREE_FILTER:
      return cut_filter(c, node, order, out);
    case TREE_PROJECTION:
      return cut_projection(c, node, order, out);
    case TREE_UNNEST:
      return cut_over(c, node, order, out);
    case TREE_AGGREGATE:
      return cut_aggregate(c, node, order, out);
    case TREE_WINDOW:
      return cut_window(c, node, order, out);
    case TREE_DISTINCT:
      return cut_distinct(c, node, order, out);
    case TREE_ORDER:
      return cut_sort(c, node, order, out);
    case TREE_TOP_N:
      return cut_top_n(c, node, order, out);
    case TREE_LIMIT:
      return cut_limit(c, node, order, out);
    case TREE_SAMPLE:
      return cut_sample(c, node, order, out);
    case TREE_JOIN:
    case TREE_ASOF_JOIN:
    case TREE_ANY_JOIN:
    case TREE_CROSS_PRODUCT:
      return cut_join(c, node, order, out);
    case TREE_UNION:
      return cut_union(c, node, order, out);
    case TREE_EXCEPT:
    case TREE_INTERSECT:
      return cut_set_operation(c, node, order, out);
    case TREE_CTE:
      return cut_cte_of(c, node, order, out);
    case TREE_CTE_REF:
      return cut_cte_ref(c, node, order, out);
    case TREE_POSITIONAL_JOIN:
      return cut_in_one(c, node, ORDER_NEEDED, cut_why_positional, out);
    case TREE_RECURSIVE_CTE:
      return cut_recursive(c, node, order, out);
    default:
      return cut_whole(c, node, order, tree_kind_name(node->kind), out);
  }
}

/* -------------------------------------------------------------------- door */

/* Rows of a result of less come in the order of the files, as from DuckDB (20-exchange). */
static const double MOST_SHOWN_BYTES = 64.0 * 1024 * 1024;

static bool is_shown_in_order(const cut_options *options) {
  double bytes = 0;
  bool has_order = false;
  for (size_t i = 0; i < options->n_sources; i++) {
    bytes += (double)options->sources[i].bytes;
    has_order |= options->sources[i].ordered;
  }
  return has_order && bytes < MOST_SHOWN_BYTES;
}

static bool has_order(const tree_node *node) {
  while ((node->kind == TREE_PROJECTION || node->kind == TREE_FILTER || node->kind == TREE_CTE) &&
         node->n_children > 0) {
    node = node->children[node->kind == TREE_CTE ? 1 : 0];
  }
  return node->kind == TREE_ORDER || node->kind == TREE_TOP_N || node->kind == TREE_LIMIT ||
         node->kind == TREE_POSITIONAL_JOIN;
}

/* The keys by which the result is to be dealt, as columns of it. */
static hf_status wanted_keys(cutter *c, const tree_node *node, cut_keys *out) {
  const tree_expression **keys = NULL;
  HF_TRY(cut_pointers(c, c->options->n_keys, &keys));
  for (size_t i = 0; i < c->options->n_keys; i++) {
    size_t at = c->options->keys[i];
    keys[i] = cut_ref(c, at, node->types[at]);
  }
  *out = (cut_keys){.n = c->options->n_keys, .keys = keys, .modulus = c->options->modulus};
  return HF_OK;
}

static hf_status close_root(cutter *c, const cut_part *part, bool ordered) {
  cut_keys keys;
  uint32_t last = 0;
  HF_TRY(wanted_keys(c, part->node, &keys));
  if (keys.n > 0) {
    return cut_close(c, part, &keys, false, &last);
  }
  HF_TRY(cut_close(c, part, NULL, ordered, &last));
  if (!part->is_one && !c->is_undealt && !c->options->hash_zero && part->n_deals > 0 &&
      part->modulus == c->options->tasks) {
    c->n_keys = part->deals[0].n;
    c->keys = part->deals[0].columns;
  }
  return HF_OK;
}

static hf_status cut_root(cutter *c, const tree_node *root, bool whole) {
  const tree_node *plain = NULL;
  cut_part part;
  bool is_shown = is_shown_in_order(c->options);
  cut_order order = is_shown ? ORDER_SHOWN : ORDER_ANY;
  HF_TRY(cut_undelim(c, root, &plain));
  if (whole) {
    HF_TRY(cut_whole(c, plain, order, c->refusal->reason, &part));
    *c->refusal = (tree_refusal){TREE_REFUSED_NONE, NULL, NULL};
  } else {
    HF_TRY(cut_node(c, plain, order, &part));
  }
  return close_root(c, &part, is_shown || has_order(plain));
}

/* Which stages the last one reads, directly or not, as their new places, from 1; how many. */
static size_t place_read(const cutter *c, uint32_t *places) {
  places[c->n_stages - 1] = 1;
  for (size_t i = c->n_stages; i-- > 0;) {
    const cut_stage *stage = &c->stages[i];
    for (size_t k = 0; places[i] > 0 && k < stage->n_inputs; k++) {
      if (stage->inputs[k].is_stage) {
        places[stage->inputs[k].stage] = 1;
      }
    }
  }
  uint32_t n = 0;
  for (size_t i = 0; i < c->n_stages; i++) {
    places[i] = places[i] > 0 ? ++n : 0;
  }
  return n;
}

/* The stage with the places of others as they are now. */
static hf_status move_stage(cutter *c, const uint32_t *places, cut_stage *stage) {
  cut_input *inputs = NULL;
  uint32_t *after = NULL;
  size_t n_after = 0;
  HF_TRY(cut_array(c, stage->n_inputs, sizeof *inputs, &inputs));
  HF_TRY(cut_array(c, stage->n_after, sizeof *after, &after));
  for (size_t k = 0; k < stage->n_inputs; k++) {
    inputs[k] = stage->inputs[k];
    inputs[k].stage = inputs[k].is_stage ? places[inputs[k].stage] - 1 : 0;
  }
  for (size_t k = 0; k < stage->n_after; k++) {
    if (places[stage->after[k]] > 0) { /* else it is not run */
      after[n_after++] = FAULT("stage.after_stale") ? stage->after[k] : places[stage->after[k]] - 1;
    }
  }
  stage->inputs = inputs;
  stage->after = after;
  stage->n_after = n_after;
  stage->awaits = n_after > 0 ? stage->awaits : NULL;
  stage->filter = stage->filter == NULL || places[stage->filter_of] == 0 ? NULL : stage->filter;
  stage->filter_of = stage->filter == NULL ? 0 : places[stage->filter_of] - 1;
  return HF_OK;
}

/* Leaves out the stages that nobody reads: those below rows of which nothing is wanted. */
static hf_status drop_unread(cutter *c) {
  uint32_t *places = NULL;
  HF_TRY(cut_array(c, c->n_stages, sizeof *places, &places));
  size_t n_read = place_read(c, places);
  for (size_t i = 0; n_read < c->n_stages && i < c->n_stages; i++) {
    if (places[i] > 0) {
      HF_TRY(move_stage(c, places, &c->stages[i]));
      c->stages[places[i] - 1] = c->stages[i];
    }
  }
  c->n_stages = n_read;
  return HF_OK;
}

hf_status stage_cut(const tree_node *root, const cut_options *options, arena *a, cut_graph *out,
                    tree_refusal *refusal, hf_error *error) {
  cutter c = {.options = options, .a = a, .error = error, .refusal = refusal};
  memset(out, 0, sizeof *out);
  *refusal = (tree_refusal){TREE_REFUSED_NONE, NULL, NULL};
  hf_status status = cut_root(&c, root, false);
  if (status == HF_E_UNSUPPORTED &&
      refusal->code != TREE_REFUSED_NONE) { /* what is cut may be refused, the whole not */
    c = (cutter){.options = options, .a = a, .error = error, .refusal = refusal};
    status = cut_root(&c, root, true);
  }
  if (status == HF_OK) {
    HF_TRY(drop_unread(&c));
    *out = (cut_graph){c.n_stages, c.stages, c.n_keys, c.keys};
  }
  return status == HF_E_UNSUPPORTED && refusal->code != TREE_REFUSED_NONE ? HF_OK : status;
}

/* ------------------------------------------------------------------- errors */

static const char clause[] = " when casting from source column ";

/* The name of the column that the text calls c<n>; NULL: none, or not the same in all its casts. */
static const char *name_of(const cut_stage *stage, const char *spelled, size_t length) {
  const char *found = NULL;
  for (size_t i = 0; i < stage->n_casts; i++) {
    const plan_cast *cast = &stage->casts[i];
    if (strlen(cast->column) != length || strncmp(cast->column, spelled, length) != 0) {
      continue;
    }
    if (cast->name == NULL || (found != NULL && strcmp(found, cast->name) != 0)) {
      return NULL;
    }
    found = cast->name;
  }
  return found;
}

/* Appends the text with its clause changed; false: it has none. */
static bool clean_text(const cut_stage *stage, const char *text, buf *out) {
  const char *at = text == NULL ? NULL : strstr(text, clause);
  if (at == NULL) {
    return false;
  }
  const char *spelled = at + strlen(clause);
  size_t length = spelled[0] == 'c' ? 1 + strspn(spelled + 1, "0123456789") : 0;
  if (length < 2) {
    return false;
  }
  const char *name = name_of(stage, spelled, length);
  buf_append(out, text, (size_t)(at - text));
  if (name != NULL) {
    buf_text(out, clause);
    buf_text(out, name);
  }
  buf_text(out, spelled + length);
  return !out->failed;
}

void cut_clean_error(const cut_stage *stage, hf_error *error) {
  buf message = {0}, cause = {0};
  hf_error cleaned = {0};
  if (clean_text(stage, error->message, &message)) {
    bool has_cause = clean_text(stage, error->cause, &cause);
    error_set(&cleaned, error->code, "%s", buf_cstr(&message));
    error_hint(&cleaned, "%s", error->hint == NULL ? "" : error->hint);
    error_cause(&cleaned, has_cause ? buf_cstr(&cause) : error->cause);
    cleaned.job = error->job;
    cleaned.stage = error->stage;
    cleaned.task = error->task;
    cleaned.attempt = error->attempt;
    cleaned.position = error->position;
    memcpy(cleaned.executor, error->executor, sizeof cleaned.executor);
    error_move(error, &cleaned);
  }
  buf_reset(&message);
  buf_reset(&cause);
}

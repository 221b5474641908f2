/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lowering must know first: sources that are not resolved, held nodes that
 * nobody has asked the registry about. What lies below a node that is read, or
 * not known yet, is not looked at.
 */
#include "plan/lower_internal.h"

#include <string.h>

bool lower_grow(arena *a, void **list, size_t count, size_t *capacity, size_t element_bytes) {
  if (count < *capacity) {
    return true;
  }
  size_t larger = *capacity == 0 ? 8 : *capacity * 2;
  void *grown = arena_array(a, larger, element_bytes);
  if (grown == NULL) {
    return false;
  }
  if (count > 0) {
    memcpy(grown, *list, count * element_bytes);
  }
  *list = grown;
  *capacity = larger;
  return true;
}

hf_status lower_out_of_memory(const lowering *l) {
  return error_set(l->error, HF_E_OUT_OF_MEMORY, "no memory to lower a query");
}

const relation *lower_skip_inline(const lowering *l, const relation *r, held_info *info) {
  memset(info, 0, sizeof *info);
  while (r->view.kind == RELATION_CACHE) {
    memset(info, 0, sizeof *info);
    l->knowledge->held(l->knowledge->context, r, info);
    if (info->answer != HELD_INLINE) {
      break;
    }
    r = r->view.input;
  }
  return r;
}

/* True when the relation is seen for the first time; *status tells of memory. */
static bool is_new(lowering *l, const relation *r, hf_status *status) {
  for (size_t i = l->n_seen; i > 0; i--) {
    if (l->seen[i - 1] == r) {
      return false;
    }
  }
  if (!lower_grow(l->arena, (void **)&l->seen, l->n_seen, &l->seen_capacity, sizeof(void *))) {
    *status = lower_out_of_memory(l);
    return false;
  }
  l->seen[l->n_seen++] = r;
  return true;
}

static hf_status need_source(lowering *l, const source_request *request) {
  if (l->knowledge->source_of(l->knowledge->context, request) != NULL) {
    return HF_OK;
  }
  for (size_t i = 0; i < l->n_needed_sources; i++) {
    if (source_request_equal(l->needed_sources[i], request)) {
      return HF_OK;
    }
  }
  if (!lower_grow(l->arena, (void **)&l->needed_sources, l->n_needed_sources, &l->sources_capacity,
                  sizeof(void *))) {
    return lower_out_of_memory(l);
  }
  l->needed_sources[l->n_needed_sources++] = request;
  return HF_OK;
}

static hf_status need_held(lowering *l, const relation *node) {
  if (!lower_grow(l->arena, (void **)&l->needed_held, l->n_needed_held, &l->held_capacity, sizeof(void *))) {
    return lower_out_of_memory(l);
  }
  l->needed_held[l->n_needed_held++] = node;
  return HF_OK;
}

static hf_status need_spots(lowering *l, const sql_spot *spots, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const source_request *with = NULL;
    if (spots[i].bound != NULL) {
      HF_TRY(lower_needs(l, spots[i].bound));
    } else if (spots[i].source != NULL) {
      HF_TRY(need_source(l, spots[i].source));
      HF_TRY(lower_virtual(l, &spots[i], &with) == 0 ? HF_OK : need_source(l, with));
    }
  }
  return HF_OK;
}

/* What a step needs but for its input. */
static hf_status need_step(lowering *l, const relation *r) {
  const relation_step *step = r->view.step;
  for (size_t i = 0; i < step->n_expressions; i++) {
    HF_TRY(need_spots(l, step->expressions[i].spots, step->expressions[i].n_spots));
  }
  for (size_t i = 0; i < step->n_groups; i++) {
    HF_TRY(need_spots(l, step->groups[i].spots, step->groups[i].n_spots));
  }
  return r->view.other == NULL ? HF_OK : lower_needs(l, r->view.other);
}

hf_status lower_needs(lowering *l, const relation *root) {
  held_info info;
  hf_status status = HF_OK;
  const relation *r = lower_skip_inline(l, root, &info);
  while (r->view.kind == RELATION_BUILT && is_new(l, r, &status)) { /* steps are a long chain */
    HF_TRY(need_step(l, r));
    r = lower_skip_inline(l, r->view.input, &info);
  }
  if (status != HF_OK || r->view.kind == RELATION_BUILT || !is_new(l, r, &status)) {
    return status;
  }
  if (r->view.kind == RELATION_CACHE) {
    return info.answer == HELD_UNKNOWN ? need_held(l, r) : HF_OK;
  }
  if (r->view.kind == RELATION_READ) {
    return need_source(l, r->view.source);
  }
  return need_spots(l, r->view.spots, r->view.n_spots);
}

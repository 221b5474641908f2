/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of materialisations: claims, completion, waiters, removal. Here
 * an operation becomes an event of the entry's machine (registry_machine.c) and
 * the memory behind the entry follows. Leases and executors: registry_lease.c.
 * Thread: the owner's, one. No I/O, no clock.
 *
 * Invariants (registry_check.c asserts them):
 * R1 a claim (job, cancel node) exists exactly while an entry is pending; a job has one claim at most
 * R2 a pending entry has a waiter, no other entry has one; a waiter is listed once
 * R3 data exist exactly while an entry is materialised or unavailable; their generation is the entry's
 * R4 data that were dropped are kept only while a lease lists them
 * R5 the leases counted in data are the leases listed
 * R6 an entry is unavailable exactly when one of its executors is not live
 * R7 unpin nodes are with the data until they were dropped and the last lease has gone
 * R8 generations of a key count up by one and are never used again while the key is known
 */
#include "hold/registry_internal.h"

#include <string.h>

enum { CLAIMS_AT_MOST = 3 }; /* tries of a fill by all its waiters together, before they compute inline */

registry *registry_new(const declarations *d) {
  registry *r = mem_zalloc(1, sizeof *r);
  if (r != NULL) {
    r->declared = d;
  }
  return r;
}

static void nodes_free(registry_action **list) {
  while (*list != NULL) {
    registry_action *node = *list;
    *list = node->next;
    mem_free(node);
  }
}

void materialisation_free(materialisation *m) {
  if (m != NULL) {
    nodes_free(&m->unpins);
    arena_free(m->memory);
    mem_free(m);
  }
}

static void entry_free(registry_entry *entry) {
  nodes_free(&entry->waiters);
  nodes_free(&entry->cancel);
  materialisation_free(entry->held);
  mem_free(entry);
}

void registry_free(registry *r) {
  if (r == NULL) {
    return;
  }
  registry_entry *entry = NULL, *next_entry = NULL;
  HASH_ITER(hh, r->entries, entry, next_entry) {
    HASH_DEL(r->entries, entry);
    entry_free(entry);
  }
  materialisation *m = NULL, *next_m = NULL;
  DL_FOREACH_SAFE(r->dropped, m, next_m) {
    materialisation_free(m);
  }
  lease *l = NULL, *next_l = NULL;
  LL_FOREACH_SAFE(r->leases, l, next_l) {
    mem_free(l);
  }
  live_executor *x = NULL, *next_x = NULL;
  LL_FOREACH_SAFE(r->live, x, next_x) {
    mem_free(x);
  }
  mem_free(r);
}

registry_action *registry_actions_take(registry_actions *actions) {
  registry_action *node = actions->first;
  if (node != NULL) {
    actions->first = node->next;
    node->next = NULL;
    if (actions->first == NULL) {
      actions->last = NULL;
    }
  }
  return node;
}

void registry_actions_reset(registry_actions *actions) {
  nodes_free(&actions->first);
  actions->last = NULL;
}

registry_entry *registry_find(const registry *r, const uuid *key) {
  registry_entry *entry = NULL;
  HASH_FIND_STR(r->entries, key->text, entry);
  return entry;
}

static registry_entry *entry_add(registry *r, const uuid *key, const uuid *session) {
  registry_entry *entry = mem_zalloc(1, sizeof *entry);
  if (entry == NULL) {
    return NULL;
  }
  entry->key = *key;
  entry->session = *session;
  entry->last_drop = "";
  HASH_ADD_STR(r->entries, key.text, entry);
  if (entry->hh.tbl == NULL) {
    mem_free(entry);
    return NULL;
  }
  return entry;
}

entry_state registry_lookup(const registry *r, const uuid *key, entry_view *out) {
  memset(out, 0, sizeof *out);
  out->key = *key;
  out->last_drop = "";
  const registry_entry *entry = registry_find(r, key);
  if (entry == NULL) {
    return out->state = ENTRY_ABSENT;
  }
  out->state = entry->state;
  out->session = entry->session;
  out->job = entry->held != NULL ? entry->held->job : entry->job;
  out->generation = entry->generation;
  if (entry->held != NULL) {
    out->output = entry->held->output;
  }
  out->hits = entry->hits;
  out->last_read_us = entry->last_read_us;
  out->last_drop = entry->last_drop;
  return out->state;
}

/* ------------------------------------------------------------------ claims */

static registry_action *node_new(const registry_entry *entry, job_id job) {
  registry_action *node = mem_zalloc(1, sizeof *node);
  if (node != NULL) {
    node->job = job;
    node->key = entry->key;
    node->session = entry->session;
  }
  return node;
}

static registry_action *waiter_find(const registry_entry *entry, job_id waiter) {
  for (registry_action *node = entry->waiters; node != NULL; node = node->next) {
    if (node->job.value == waiter.value) {
      return node;
    }
  }
  return NULL;
}

/* Makes the nodes that beginning needs, so that nothing later can lack memory. */
static hf_status prepare_begin(registry_entry *entry, job_id job, job_id waiter, hf_error *error) {
  bool claims = entry->state == ENTRY_ABSENT;
  if (!claims && (entry->state != ENTRY_PENDING || waiter_find(entry, waiter) != NULL)) {
    return HF_OK;
  }
  registry_action *listed = node_new(entry, waiter);
  registry_action *cancel = claims ? node_new(entry, job) : NULL;
  if (listed == NULL || (claims && cancel == NULL)) {
    mem_free(listed);
    mem_free(cancel);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a claim");
  }
  LL_APPEND(entry->waiters, listed);
  if (claims) {
    entry->cancel = cancel;
  }
  return HF_OK;
}

begin_result registry_begin_or_wait(registry *r, const uuid *key, const uuid *session, job_id job,
                                    job_id waiter, hf_error *error) {
  const declaration *row = declarations_find(r->declared, key);
  if (row != NULL && row->released) {
    return BEGIN_RELEASED;
  }
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL && (entry = entry_add(r, key, session)) == NULL) {
    error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
    return BEGIN_FAILED;
  }
  if (!uuid_equal(&entry->session, session)) {
    error_set(error, HF_E_HELD_FOREIGN, "a held result belongs to another session: %s", key->text);
    return BEGIN_FAILED;
  }
  if (prepare_begin(entry, job, waiter, error) != HF_OK) {
    return BEGIN_FAILED;
  }
  switch (registry_step(entry, EVENT_BEGIN, NULL)) {
    case EFFECT_CLAIM:
      entry->job = job;
      return BEGIN_CLAIMED;
    case EFFECT_JOIN:
      return BEGIN_WAITING;
    case EFFECT_SERVE:
      return BEGIN_MATERIALISED;
    default:
      return BEGIN_UNAVAILABLE;
  }
}

static bool is_claim_of(const registry_entry *entry, job_id job) {
  return entry != NULL && entry->state == ENTRY_PENDING && entry->job.value == job.value;
}

void registry_claim_stage(registry *r, const uuid *key, job_id job, stage_id stage) {
  registry_entry *entry = registry_find(r, key);
  if (is_claim_of(entry, job)) {
    entry->stage = stage;
  }
}

static void claim_clear(registry_entry *entry) {
  entry->job = (job_id){0};
  entry->stage = (stage_id){0};
  nodes_free(&entry->cancel);
}

/* Adds a node for each job and stage among the locations. */
static bool unpins_add(materialisation *m, const registry_entry *entry) {
  for (size_t i = 0; i < m->output.n_locations; i++) {
    const entry_location *at = &m->output.locations[i];
    registry_action *node = m->unpins;
    while (node != NULL && (node->job.value != at->job.value || node->stage.value != at->stage.value)) {
      node = node->next;
    }
    if (node != NULL) {
      continue;
    }
    node = node_new(entry, at->job);
    if (node == NULL) {
      return false;
    }
    node->stage = at->stage;
    LL_APPEND(m->unpins, node);
  }
  return true;
}

static materialisation *materialisation_new(const registry_entry *entry, job_id job,
                                            const entry_output *output) {
  materialisation *m = mem_zalloc(1, sizeof *m);
  if (m == NULL || (m->memory = arena_new()) == NULL) {
    mem_free(m);
    return NULL;
  }
  m->key = entry->key;
  m->session = entry->session;
  m->job = job;
  m->generation = entry->generation + 1;
  m->output = *output;
  entry_location *locations = arena_array(m->memory, output->n_locations, sizeof *locations);
  if (locations == NULL || schema_copy(&output->columns, m->memory, &m->output.columns, NULL) != HF_OK) {
    materialisation_free(m);
    return NULL;
  }
  memcpy(locations, output->locations, output->n_locations * sizeof *locations);
  m->output.locations = locations;
  if (!unpins_add(m, entry)) {
    materialisation_free(m);
    return NULL;
  }
  return m;
}

static complete_result complete_claim(registry *r, registry_entry *entry, const entry_output *output,
                                      registry_actions *actions) {
  materialisation *m = registry_all_live(r, output) ? materialisation_new(entry, entry->job, output) : NULL;
  if (m == NULL) {
    registry_step(entry, EVENT_COMPLETE_REFUSED, actions);
    return COMPLETE_REFUSED;
  }
  registry_step(entry, EVENT_COMPLETE, actions);
  entry->held = m;
  entry->generation = m->generation;
  entry->failures = 0;
  claim_clear(entry);
  return COMPLETE_PROMOTED;
}

complete_result registry_complete(registry *r, const uuid *key, job_id job, const entry_output *output,
                                  registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL) {
    return COMPLETE_STALE;
  }
  if (is_claim_of(entry, job)) {
    return complete_claim(r, entry, output, actions);
  }
  bool is_again = entry->held != NULL && entry->held->job.value == job.value;
  registry_step(entry, is_again ? EVENT_COMPLETE : EVENT_COMPLETE_OTHER, actions);
  return is_again ? COMPLETE_DUPLICATE : COMPLETE_STALE;
}

static registry_event abort_event(registry_entry *entry, hf_error_class error_class) {
  if (error_class == HF_CLASS_USER) {
    entry->failures = 0;
    return EVENT_ABORT_USER;
  }
  if (error_class == HF_CLASS_RESOURCE) {
    entry->failures = 0;
    return EVENT_ABORT_RESOURCE;
  }
  if (++entry->failures < CLAIMS_AT_MOST) {
    return EVENT_ABORT_AGAIN;
  }
  entry->failures = 0;
  return EVENT_ABORT_TOO_OFTEN;
}

void registry_abort(registry *r, const uuid *key, job_id job, hf_error_class error_class,
                    registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL) {
    return;
  }
  if (!is_claim_of(entry, job)) {
    registry_step(entry, EVENT_ABORT_OTHER, actions);
    return;
  }
  registry_step(entry, abort_event(entry, error_class), actions);
  claim_clear(entry);
}

void registry_leave(registry *r, const uuid *key, job_id waiter, registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  registry_action *node = entry == NULL ? NULL : waiter_find(entry, waiter);
  if (node == NULL) {
    if (entry != NULL) {
      registry_step(entry, EVENT_LEAVE_OTHER, actions);
    }
    return;
  }
  LL_DELETE(entry->waiters, node);
  mem_free(node);
  if (entry->waiters != NULL) {
    registry_step(entry, EVENT_LEAVE, actions);
    return;
  }
  registry_step(entry, EVENT_LEAVE_LAST, actions);
  entry->failures = 0;
  claim_clear(entry);
}

/* ----------------------------------------------------------------- removal */

static bool entry_remove(registry *r, registry_entry *entry, const char *why, registry_actions *actions) {
  switch (registry_step(entry, EVENT_INVALIDATE, actions)) {
    case EFFECT_DROP:
      registry_detach(r, entry);
      break;
    case EFFECT_REVOKE:
      entry->failures = 0;
      claim_clear(entry);
      break;
    default:
      return false;
  }
  entry->last_drop = why;
  return true;
}

bool registry_invalidate(registry *r, const uuid *key, const char *why, registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  return entry != NULL && entry_remove(r, entry, why, actions);
}

void registry_invalidate_executor(registry *r, const char *executor, registry_actions *actions) {
  registry_executor_lost(r, executor);
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (entry->held != NULL && registry_is_on(&entry->held->output, executor)) {
      entry_remove(r, entry, "executor lost", actions);
    }
  }
}

void registry_remove_session(registry *r, const uuid *session, registry_actions *actions) {
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (!uuid_equal(&entry->session, session)) {
      continue;
    }
    entry_remove(r, entry, "session closed", actions);
    HASH_DEL(r->entries, entry);
    entry_free(entry);
  }
}

void registry_touch(registry *r, const uuid *key, uint64_t now_us) {
  registry_entry *entry = registry_find(r, key);
  if (entry != NULL) {
    entry->hits++;
    entry->last_read_us = now_us;
  }
}

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
 * R9 the table of pins holds the stages of all data, dropped and leased ones too, and of each claim that named its own
 */
#include "hold/registry_internal.h"

#include "base/fault.h"

#include <string.h>

enum { CLAIMS_AT_MOST = 3 }; /* tries of a fill by all its waiters together, before they compute inline */

registry *registry_new(const declarations *d) {
  registry *r = mem_zalloc(1, sizeof *r);
  if (r != NULL) {
    r->declared = d;
  }
  return r;
}

void registry_nodes_free(registry_action **list) {
  while (*list != NULL) {
    registry_action *node = *list;
    *list = node->next;
    mem_free(node);
  }
}

static void claim_clear(registry *r, registry_entry *entry) {
  entry->job = (job_id){0};
  if (entry->claimed.stage.value != 0) {
    pins_remove(&r->pins, &entry->claimed);
    entry->claimed = (pin){0};
  }
  registry_nodes_free(&entry->cancel);
}

static void entry_free(registry *r, registry_entry *entry) {
  claim_clear(r, entry);
  registry_nodes_free(&entry->waiters);
  materialisation_free(r, entry->held);
  mem_free(entry);
}

void registry_free(registry *r) {
  if (r == NULL) {
    return;
  }
  registry_entry *entry = NULL, *next_entry = NULL;
  HASH_ITER(hh, r->entries, entry, next_entry) {
    HASH_DEL(r->entries, entry);
    entry_free(r, entry);
  }
  materialisation *m = NULL, *next_m = NULL;
  DL_FOREACH_SAFE(r->dropped, m, next_m) {
    materialisation_free(r, m);
  }
  leases_free(r);
  pins_reset(&r->pins);
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
  registry_nodes_free(&actions->first);
  actions->last = NULL;
}

registry_entry *registry_find(const registry *r, const uuid *key) {
  registry_entry *entry = NULL;
  HASH_FIND_STR(r->entries, key->text, entry);
  return entry;
}

registry_entry *registry_entry_add(registry *r, const uuid *key, const uuid *session) {
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

/* ------------------------------------------------------------------ claims */

registry_action *registry_node_new(const registry_entry *entry, job_id job) {
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
  registry_action *listed = registry_node_new(entry, waiter);
  registry_action *cancel = claims ? registry_node_new(entry, job) : NULL;
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
  registry_entry *entry = registry_find(r, key);
  if ((row != NULL && !uuid_equal(&row->session, session)) ||
      (entry != NULL && !uuid_equal(&entry->session, session))) {
    error_set(error, HF_E_HELD_FOREIGN, "a held result belongs to another session: %s", key->text);
    return BEGIN_FAILED;
  }
  if (row != NULL && row->released) {
    return BEGIN_RELEASED;
  }
  if (entry == NULL && (entry = registry_entry_add(r, key, session)) == NULL) {
    error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
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
  if (!is_claim_of(entry, job)) {
    return;
  }
  if (entry->claimed.stage.value != 0) {
    pins_remove(&r->pins, &entry->claimed);
  }
  entry->claimed = (pin){.job = job, .stage = stage};
  if (stage.value != 0) {
    pins_add(&r->pins, &entry->claimed);
  }
}

static complete_result complete_claim(registry *r, registry_entry *entry, const entry_output *output,
                                      registry_actions *actions) {
  materialisation *m = registry_all_live(r, output)
                           ? materialisation_new(entry, entry->job, entry->generation + 1, output)
                           : NULL;
  if (m == NULL) {
    registry_step(entry, EVENT_COMPLETE_REFUSED, actions);
    return COMPLETE_REFUSED;
  }
  registry_step(entry, EVENT_COMPLETE, actions);
  registry_attach(r, entry, m);
  entry->failures = 0;
  claim_clear(r, entry);
  return COMPLETE_PROMOTED;
}

complete_result registry_complete(registry *r, const uuid *key, job_id job, const entry_output *output,
                                  registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL) {
    return COMPLETE_STALE;
  }
  if (is_claim_of(entry, job) || (entry->state == ENTRY_PENDING && FAULT("hold.stale_complete"))) {
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
  claim_clear(r, entry);
}

void registry_tell(registry *r, const uuid *key, const char *why) {
  registry_entry *entry = registry_find(r, key);
  if (entry != NULL) {
    entry->last_drop = why;
  }
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
  claim_clear(r, entry);
}

/* ----------------------------------------------------------------- removal */

bool registry_remove(registry *r, registry_entry *entry, const char *why, registry_actions *actions) {
  switch (registry_step(entry, EVENT_INVALIDATE, actions)) {
    case EFFECT_DROP:
      registry_detach(r, entry);
      break;
    case EFFECT_REVOKE:
      entry->failures = 0;
      claim_clear(r, entry);
      break;
    default:
      return false;
  }
  entry->last_drop = why;
  return true;
}

bool registry_invalidate(registry *r, const uuid *key, const char *why, registry_actions *actions) {
  registry_entry *entry = registry_find(r, key);
  return entry != NULL && registry_remove(r, entry, why, actions);
}

void registry_remove_session(registry *r, const uuid *session, registry_actions *actions) {
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (!uuid_equal(&entry->session, session)) {
      continue;
    }
    registry_remove(r, entry, "session closed", actions);
    HASH_DEL(r->entries, entry);
    entry_free(r, entry);
  }
}

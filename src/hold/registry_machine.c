/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry's state machine: one entry, an event in, actions out. Which event
 * an operation is, and the memory behind an entry, are registry.c's.
 *
 *   absent ──begin──► pending ──complete──► materialised ◄──executor_back── unavailable
 *      ▲                 │                    │      └──────executor_lost──────►  │
 *      ├── abort_* ──────┤                    │                                   │
 *      ├── leave_last ───┤                    │                                   │
 *      ├── invalidate ───┴────────────────────┴───────────────────────────────────┤
 *      └──restore─────────────────────────────────────────────────────────────────┘
 *
 * Thread: the owner of the registry. Pure: no I/O, no clock, no allocation.
 */
#include "hold/registry_internal.h"

#include "base/log.h"

typedef struct registry_row {
  entry_state state;
  registry_event event;
  entry_state next;
  registry_effect effect;
} registry_row;

static const registry_row rows[] = {
    {ENTRY_ABSENT, EVENT_BEGIN, ENTRY_PENDING, EFFECT_CLAIM},
    {ENTRY_ABSENT, EVENT_COMPLETE_OTHER, ENTRY_ABSENT, EFFECT_STALE}, /* a removed entry is never revived */
    {ENTRY_ABSENT, EVENT_ABORT_OTHER, ENTRY_ABSENT, EFFECT_IGNORE},   /* the claim was revoked before */
    {ENTRY_ABSENT, EVENT_LEAVE_OTHER, ENTRY_ABSENT, EFFECT_IGNORE},   /* woken, and not looked again yet */
    {ENTRY_ABSENT, EVENT_INVALIDATE, ENTRY_ABSENT, EFFECT_IGNORE},    /* nothing to remove */
    {ENTRY_ABSENT, EVENT_RESTORE, ENTRY_UNAVAILABLE, EFFECT_RESTORE},

    {ENTRY_PENDING, EVENT_BEGIN, ENTRY_PENDING, EFFECT_JOIN},
    {ENTRY_PENDING, EVENT_COMPLETE, ENTRY_MATERIALISED, EFFECT_PROMOTE},
    {ENTRY_PENDING, EVENT_COMPLETE_REFUSED, ENTRY_PENDING, EFFECT_REFUSE},
    {ENTRY_PENDING, EVENT_COMPLETE_OTHER, ENTRY_PENDING,
     EFFECT_STALE}, /* a newer claim is never overwritten */
    {ENTRY_PENDING, EVENT_ABORT_USER, ENTRY_ABSENT, EFFECT_FAIL},
    {ENTRY_PENDING, EVENT_ABORT_RESOURCE, ENTRY_ABSENT, EFFECT_INLINE},
    {ENTRY_PENDING, EVENT_ABORT_AGAIN, ENTRY_ABSENT, EFFECT_RETRY},
    {ENTRY_PENDING, EVENT_ABORT_TOO_OFTEN, ENTRY_ABSENT, EFFECT_INLINE},
    {ENTRY_PENDING, EVENT_ABORT_OTHER, ENTRY_PENDING, EFFECT_IGNORE}, /* another job's claim stands */
    {ENTRY_PENDING, EVENT_LEAVE, ENTRY_PENDING, EFFECT_UNLIST},
    {ENTRY_PENDING, EVENT_LEAVE_LAST, ENTRY_ABSENT, EFFECT_ABANDON},
    {ENTRY_PENDING, EVENT_LEAVE_OTHER, ENTRY_PENDING, EFFECT_IGNORE}, /* a waiter of an earlier claim */
    {ENTRY_PENDING, EVENT_INVALIDATE, ENTRY_ABSENT, EFFECT_REVOKE},

    {ENTRY_MATERIALISED, EVENT_BEGIN, ENTRY_MATERIALISED, EFFECT_SERVE},
    {ENTRY_MATERIALISED, EVENT_COMPLETE, ENTRY_MATERIALISED, EFFECT_AGAIN}, /* idempotent */
    {ENTRY_MATERIALISED, EVENT_COMPLETE_OTHER, ENTRY_MATERIALISED, EFFECT_STALE},
    {ENTRY_MATERIALISED, EVENT_ABORT_OTHER, ENTRY_MATERIALISED, EFFECT_IGNORE}, /* what is there stays */
    {ENTRY_MATERIALISED, EVENT_LEAVE_OTHER, ENTRY_MATERIALISED, EFFECT_IGNORE}, /* woken by the promotion */
    {ENTRY_MATERIALISED, EVENT_INVALIDATE, ENTRY_ABSENT, EFFECT_DROP},
    {ENTRY_MATERIALISED, EVENT_EXECUTOR_LOST, ENTRY_UNAVAILABLE, EFFECT_SUSPEND},

    {ENTRY_UNAVAILABLE, EVENT_BEGIN, ENTRY_UNAVAILABLE, EFFECT_AWAY},
    {ENTRY_UNAVAILABLE, EVENT_COMPLETE, ENTRY_UNAVAILABLE, EFFECT_AGAIN}, /* idempotent */
    {ENTRY_UNAVAILABLE, EVENT_COMPLETE_OTHER, ENTRY_UNAVAILABLE, EFFECT_STALE},
    {ENTRY_UNAVAILABLE, EVENT_ABORT_OTHER, ENTRY_UNAVAILABLE, EFFECT_IGNORE}, /* what is there stays */
    {ENTRY_UNAVAILABLE, EVENT_LEAVE_OTHER, ENTRY_UNAVAILABLE, EFFECT_IGNORE}, /* woken by the promotion */
    {ENTRY_UNAVAILABLE, EVENT_INVALIDATE, ENTRY_ABSENT, EFFECT_DROP},
    {ENTRY_UNAVAILABLE, EVENT_EXECUTOR_LOST, ENTRY_UNAVAILABLE, EFFECT_IGNORE}, /* one more is away */
    {ENTRY_UNAVAILABLE, EVENT_EXECUTOR_BACK, ENTRY_MATERIALISED, EFFECT_RESUME},
};

const char *registry_state_name(entry_state state) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      REGISTRY_STATES(X)
#undef X
  };
  return names[state];
}

const char *registry_event_name(registry_event event) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      REGISTRY_EVENTS(X)
#undef X
  };
  return names[event];
}

static void action_add(registry_actions *actions, registry_action *node) {
  node->next = NULL;
  if (actions->last == NULL) {
    actions->first = node;
  } else {
    actions->last->next = node;
  }
  actions->last = node;
}

void registry_actions_move(registry_actions *actions, registry_action_kind kind, registry_action **list) {
  while (*list != NULL) {
    registry_action *node = *list;
    *list = node->next;
    node->kind = kind;
    action_add(actions, node);
  }
}

static void append_actions(registry_entry *entry, registry_effect effect, registry_actions *actions) {
  switch (effect) {
    case EFFECT_PROMOTE:
    case EFFECT_RETRY:
      registry_actions_move(actions, REGISTRY_WAKE, &entry->waiters);
      break;
    case EFFECT_FAIL:
      registry_actions_move(actions, REGISTRY_FAIL_WAITER, &entry->waiters);
      break;
    case EFFECT_INLINE:
      registry_actions_move(actions, REGISTRY_INLINE, &entry->waiters);
      break;
    case EFFECT_ABANDON:
      registry_actions_move(actions, REGISTRY_CANCEL_JOB, &entry->cancel);
      break;
    case EFFECT_REVOKE:
      registry_actions_move(actions, REGISTRY_CANCEL_JOB, &entry->cancel);
      registry_actions_move(actions, REGISTRY_WAKE, &entry->waiters);
      break;
    case EFFECT_DROP:
      if (entry->held->n_leases == 0) {
        registry_actions_move(actions, REGISTRY_UNPIN, &entry->held->unpins);
      }
      break;
    default:
      break;
  }
}

registry_effect registry_step(registry_entry *entry, registry_event event, registry_actions *actions) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const registry_row *row = &rows[i];
    if (row->state != entry->state || row->event != event) {
      continue;
    }
    log_event(LOG_DEBUG, "registry", "entry=%s from=%s to=%s event=%s", entry->key.text,
              registry_state_name(entry->state), registry_state_name(row->next), registry_event_name(event));
    entry->state = row->next;
    append_actions(entry, row->effect, actions);
    return row->effect;
  }
  log_event(LOG_ERROR, "registry", "defect=no_transition entry=%s state=%s event=%s", entry->key.text,
            registry_state_name(entry->state), registry_event_name(event));
  return EFFECT_DEFECT;
}

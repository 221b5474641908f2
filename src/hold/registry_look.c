/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at entries, and entries as the journal has them: lookup, iteration,
 * records, restoring. Claims and removal: registry.c.
 * Thread: the owner's.
 */
#include "hold/registry_internal.h"

#include <string.h>

static size_t waiters_of(const registry_entry *entry) {
  size_t count = 0;
  for (const registry_action *node = entry->waiters; node != NULL; node = node->next) {
    count++;
  }
  return count;
}

static void view_fill(const registry_entry *entry, entry_view *out) {
  *out = (entry_view){.state = entry->state,
                      .key = entry->key,
                      .session = entry->session,
                      .job = entry->job,
                      .generation = entry->generation,
                      .hits = entry->hits,
                      .last_read_us = entry->last_read_us,
                      .n_waiters = waiters_of(entry),
                      .last_drop = entry->last_drop};
  if (entry->held != NULL) {
    out->job = entry->held->job;
    out->output = entry->held->output;
    out->n_leases = entry->held->n_leases;
  }
}

entry_state registry_lookup(const registry *r, const uuid *key, entry_view *out) {
  const registry_entry *entry = registry_find(r, key);
  if (entry == NULL) {
    *out = (entry_view){.state = ENTRY_ABSENT, .key = *key, .last_drop = ""};
  } else {
    view_fill(entry, out);
  }
  return out->state;
}

void registry_each(const registry *r, const uuid *session,
                   bool (*each)(void *context, const entry_view *view), void *context) {
  for (const registry_entry *entry = r->entries; entry != NULL; entry = entry->hh.next) {
    if (session != NULL && !uuid_equal(&entry->session, session)) {
      continue;
    }
    entry_view view;
    view_fill(entry, &view);
    if (!each(context, &view)) {
      return;
    }
  }
}

void registry_touch(registry *r, const uuid *key, uint64_t now_us) {
  registry_entry *entry = registry_find(r, key);
  if (entry != NULL) {
    entry->hits++;
    entry->last_read_us = now_us;
  }
}

/* ----------------------------------------------------------------- journal */

bool registry_record(const registry *r, const uuid *key, job_id job, const entry_output *output,
                     entry_view *out) {
  const registry_entry *entry = registry_find(r, key);
  if (entry == NULL || entry->state != ENTRY_PENDING || entry->job.value != job.value) {
    return false;
  }
  view_fill(entry, out);
  out->state = ENTRY_MATERIALISED;
  out->generation = entry->generation + 1;
  out->output = *output;
  out->n_waiters = 0;
  return true;
}

hf_status registry_restore(registry *r, const entry_view *from, hf_error *error) {
  registry_entry *entry = registry_find(r, &from->key);
  if (entry != NULL && (entry->state != ENTRY_ABSENT || !uuid_equal(&entry->session, &from->session))) {
    return error_set(error, HF_E_NAME_EXISTS, "a held result is there already: %s", from->key.text);
  }
  if (entry == NULL && (entry = registry_entry_add(r, &from->key, &from->session)) == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  materialisation *m = materialisation_new(entry, from->job, from->generation, &from->output);
  if (m == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  registry_step(entry, EVENT_RESTORE, NULL);
  registry_attach(r, entry, m);
  entry->failures = 0;
  entry->hits = from->hits;
  entry->last_read_us = from->last_read_us;
  if (registry_all_live(r, &m->output)) {
    registry_step(entry, EVENT_EXECUTOR_BACK, NULL);
  }
  return HF_OK;
}

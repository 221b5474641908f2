/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who still needs an entry's files: leases of readers, pins that job cleanup must
 * spare, and the executors that are live. Claims and removal: registry.c.
 * Thread: the owner's.
 */
#include "hold/registry_internal.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------- executors */

bool registry_is_live(const registry *r, const char *executor) {
  const live_executor *x = NULL;
  LL_FOREACH(r->live, x) {
    if (strcmp(x->id, executor) == 0) {
      return true;
    }
  }
  return false;
}

bool registry_all_live(const registry *r, const entry_output *output) {
  for (size_t i = 0; i < output->n_locations; i++) {
    if (!registry_is_live(r, output->locations[i].executor)) {
      return false;
    }
  }
  return output->n_locations > 0;
}

bool registry_is_on(const entry_output *output, const char *executor) {
  for (size_t i = 0; i < output->n_locations; i++) {
    if (strcmp(output->locations[i].executor, executor) == 0) {
      return true;
    }
  }
  return false;
}

hf_status registry_executor_back(registry *r, const char *executor, hf_error *error) {
  if (registry_is_live(r, executor)) {
    return HF_OK;
  }
  live_executor *x = mem_zalloc(1, sizeof *x);
  if (x == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an executor");
  }
  snprintf(x->id, sizeof x->id, "%s", executor);
  LL_PREPEND(r->live, x);
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (entry->state == ENTRY_UNAVAILABLE && registry_all_live(r, &entry->held->output)) {
      registry_step(entry, EVENT_EXECUTOR_BACK, NULL);
    }
  }
  return HF_OK;
}

void registry_executor_lost(registry *r, const char *executor) {
  live_executor *x = NULL, *next_x = NULL;
  LL_FOREACH_SAFE(r->live, x, next_x) {
    if (strcmp(x->id, executor) == 0) {
      LL_DELETE(r->live, x);
      mem_free(x);
    }
  }
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (entry->held != NULL && registry_is_on(&entry->held->output, executor)) {
      registry_step(entry, EVENT_EXECUTOR_LOST, NULL);
    }
  }
}

/* --------------------------------------------------------------- pins */

static bool output_has_stage(const entry_output *output, job_id job, stage_id stage) {
  for (size_t i = 0; i < output->n_locations; i++) {
    if (output->locations[i].job.value == job.value && output->locations[i].stage.value == stage.value) {
      return true;
    }
  }
  return false;
}

bool registry_is_pinned(const registry *r, job_id job, stage_id stage) {
  const registry_entry *entry = NULL;
  for (entry = r->entries; entry != NULL; entry = entry->hh.next) {
    bool is_claim =
        entry->state == ENTRY_PENDING && entry->job.value == job.value && entry->stage.value == stage.value;
    if (is_claim || (entry->held != NULL && output_has_stage(&entry->held->output, job, stage))) {
      return true;
    }
  }
  const materialisation *m = NULL;
  DL_FOREACH(r->dropped, m) {
    if (output_has_stage(&m->output, job, stage)) {
      return true;
    }
  }
  return false;
}

/* --------------------------------------------------------------- leases */

void registry_detach(registry *r, registry_entry *entry) {
  materialisation *m = entry->held;
  entry->held = NULL;
  if (m->n_leases == 0) {
    materialisation_free(m);
    return;
  }
  m->is_dropped = true;
  DL_APPEND(r->dropped, m);
}

hf_status registry_lease_add(registry *r, const uuid *key, job_id reader, hf_error *error) {
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL || entry->state != ENTRY_MATERIALISED) {
    return error_set(error, HF_E_INTERNAL, "a lease on a result that is not there: %s", key->text);
  }
  lease *l = NULL;
  LL_FOREACH(r->leases, l) {
    if (l->reader.value == reader.value && l->held == entry->held) {
      return HF_OK;
    }
  }
  l = mem_zalloc(1, sizeof *l);
  if (l == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a lease");
  }
  l->held = entry->held;
  l->reader = reader;
  l->held->n_leases++;
  LL_PREPEND(r->leases, l);
  return HF_OK;
}

void registry_lease_drop(registry *r, job_id reader, registry_actions *actions) {
  lease *l = NULL, *next = NULL;
  LL_FOREACH_SAFE(r->leases, l, next) {
    if (l->reader.value != reader.value) {
      continue;
    }
    materialisation *m = l->held;
    LL_DELETE(r->leases, l);
    mem_free(l);
    m->n_leases--;
    if (m->is_dropped && m->n_leases == 0) {
      registry_actions_move(actions, REGISTRY_UNPIN, &m->unpins);
      DL_DELETE(r->dropped, m);
      materialisation_free(m);
    }
  }
}

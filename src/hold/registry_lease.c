/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who still needs an entry's files, and where they are: leases of readers, and the
 * executors that are live. Pins: registry_data.c. Claims and removal: registry.c.
 * Thread: the owner's.
 */
#include "hold/registry_internal.h"

#include <stdio.h>
#include <stdlib.h>
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

/* Only data whose lineage is kept may be dropped behind the user's back. */
static bool is_cut(const registry *r, const registry_entry *entry) {
  const declaration *row = declarations_find(r->declared, &entry->key);
  return row != NULL && row->lineage == LINEAGE_CUT;
}

void registry_invalidate_executor(registry *r, const char *executor, registry_actions *actions) {
  registry_executor_lost(r, executor);
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (entry->held != NULL && registry_is_on(&entry->held->output, executor) && !is_cut(r, entry)) {
      registry_remove(r, entry, "executor lost", actions);
    }
  }
}

static int stage_order(const void *left, const void *right) {
  const pinned_stage *a = left, *b = right;
  if (a->job.value != b->job.value) {
    return a->job.value < b->job.value ? -1 : 1;
  }
  return a->stage.value == b->stage.value ? 0 : a->stage.value < b->stage.value ? -1 : 1;
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

/* Tells whether all of the output's stages that are on the executor are among these, which are sorted. */
static bool has_all(const entry_output *output, const char *executor, const pinned_stage *stages,
                    size_t n_stages) {
  for (size_t i = 0; i < output->n_locations; i++) {
    const entry_location *at = &output->locations[i];
    pinned_stage wanted = {.job = at->job, .stage = at->stage};
    if (strcmp(at->executor, executor) == 0 &&
        (n_stages == 0 || bsearch(&wanted, stages, n_stages, sizeof *stages, stage_order) == NULL)) {
      return false;
    }
  }
  return true;
}

hf_status registry_inventory(registry *r, const char *executor, const pinned_stage *stages, size_t n_stages,
                             registry_actions *actions, hf_error *error) {
  pinned_stage *sorted = mem_alloc((n_stages + 1) * sizeof *sorted);
  if (sorted == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an executor's inventory");
  }
  if (n_stages > 0) {
    memcpy(sorted, stages, n_stages * sizeof *sorted);
    qsort(sorted, n_stages, sizeof *sorted, stage_order);
  }
  registry_entry *entry = NULL, *next = NULL;
  HASH_ITER(hh, r->entries, entry, next) {
    if (entry->held != NULL && !has_all(&entry->held->output, executor, sorted, n_stages)) {
      registry_remove(r, entry, "blocks missing", actions);
    }
  }
  mem_free(sorted);
  return registry_executor_back(r, executor, error);
}

/* ------------------------------------------------------------------ leases */

static lease_reader *reader_find(const registry *r, job_id reader) {
  lease_reader *found = NULL;
  HASH_FIND(hh, r->readers, &reader, sizeof reader, found);
  return found;
}

static lease_reader *reader_need(registry *r, job_id reader) {
  lease_reader *of = reader_find(r, reader);
  if (of != NULL || (of = mem_zalloc(1, sizeof *of)) == NULL) {
    return of;
  }
  of->reader = reader;
  HASH_ADD(hh, r->readers, reader, sizeof of->reader, of);
  if (of->hh.tbl == NULL) {
    mem_free(of);
    return NULL;
  }
  return of;
}

static void reader_free(registry *r, lease_reader *of) {
  HASH_DELETE(hh, r->readers, of);
  mem_free(of);
}

hf_status registry_lease_add(registry *r, const uuid *key, job_id reader, hf_error *error) {
  registry_entry *entry = registry_find(r, key);
  if (entry == NULL || entry->state != ENTRY_MATERIALISED) {
    return error_set(error, HF_E_INTERNAL, "a lease on a result that is not there: %s", key->text);
  }
  lease_reader *of = reader_need(r, reader);
  lease *l = NULL;
  LL_FOREACH(of == NULL ? NULL : of->leases, l) {
    if (l->held == entry->held) {
      return HF_OK;
    }
  }
  l = of == NULL ? NULL : mem_zalloc(1, sizeof *l);
  if (l == NULL) {
    if (of != NULL && of->leases == NULL) {
      reader_free(r, of);
    }
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a lease");
  }
  l->held = entry->held;
  l->held->n_leases++;
  LL_PREPEND(of->leases, l);
  return HF_OK;
}

void registry_lease_drop(registry *r, job_id reader, registry_actions *actions) {
  lease_reader *of = reader_find(r, reader);
  if (of == NULL) {
    return;
  }
  lease *l = NULL, *next = NULL;
  LL_FOREACH_SAFE(of->leases, l, next) {
    materialisation *m = l->held;
    mem_free(l);
    m->n_leases--;
    if (m->is_dropped && m->n_leases == 0) {
      registry_actions_move(actions, REGISTRY_UNPIN, &m->unpins);
      DL_DELETE(r->dropped, m);
      materialisation_free(r, m);
    }
  }
  reader_free(r, of);
}

void leases_free(registry *r) {
  lease_reader *of = NULL, *next_of = NULL;
  HASH_ITER(hh, r->readers, of, next_of) {
    lease *l = NULL, *next = NULL;
    LL_FOREACH_SAFE(of->leases, l, next) {
      mem_free(l);
    }
    reader_free(r, of);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of an entry: one materialisation with its pins, and the table of all
 * pins, which job cleanup asks. Who reads them: registry_lease.c.
 * Thread: the owner's.
 */
#include "hold/registry_internal.h"

#include <string.h>

/* -------------------------------------------------------------------- pins */

static size_t bucket_of(const pin_table *table, job_id job, stage_id stage) {
  uint64_t mixed = (job.value * 0x9e3779b97f4a7c15u) ^ (stage.value * 0xc2b2ae3d27d4eb4fu);
  return (size_t)(mixed >> 32) & (table->n_buckets - 1);
}

static void link(pin_table *table, pin *node) {
  pin **bucket = &table->buckets[bucket_of(table, node->job, node->stage)];
  node->next = *bucket;
  *bucket = node;
}

static void grow(pin_table *table) {
  size_t n_old = table->n_buckets;
  pin **old = table->buckets;
  pin **buckets = mem_zalloc(n_old * 4, sizeof(pin *));
  if (buckets == NULL) {
    return;
  }
  table->buckets = buckets;
  table->n_buckets = n_old * 4;
  for (size_t i = 0; i < n_old; i++) {
    pin *node = old[i];
    while (node != NULL) {
      pin *next = node->next;
      link(table, node);
      node = next;
    }
  }
  if (old != table->fixed) {
    mem_free(old);
  }
}

void pins_add(pin_table *table, pin *node) {
  if (table->n_buckets == 0) {
    table->buckets = table->fixed;
    table->n_buckets = PIN_BUCKETS_FIRST;
  }
  if (table->n_pins >= 2 * table->n_buckets) {
    grow(table);
  }
  link(table, node);
  table->n_pins++;
}

void pins_remove(pin_table *table, pin *node) {
  pin **at = &table->buckets[bucket_of(table, node->job, node->stage)];
  while (*at != node) {
    at = &(*at)->next;
  }
  *at = node->next;
  table->n_pins--;
}

bool pins_has(const pin_table *table, job_id job, stage_id stage) {
  const pin *node = table->n_buckets == 0 ? NULL : table->buckets[bucket_of(table, job, stage)];
  while (node != NULL && (node->job.value != job.value || node->stage.value != stage.value)) {
    node = node->next;
  }
  return node != NULL;
}

void pins_reset(pin_table *table) {
  if (table->buckets != table->fixed) {
    mem_free(table->buckets);
  }
  table->buckets = NULL;
  table->n_buckets = table->n_pins = 0;
}

bool registry_is_pinned(const registry *r, job_id job, stage_id stage) {
  return pins_has(&r->pins, job, stage);
}

/* -------------------------------------------------------------------- data */

void materialisation_free(registry *r, materialisation *m) {
  if (m == NULL) {
    return;
  }
  for (size_t i = 0; r != NULL && i < m->n_pins; i++) {
    pins_remove(&r->pins, &m->pins[i]);
  }
  registry_nodes_free(&m->unpins);
  arena_free(m->memory);
  mem_free(m);
}

static bool has_pin(const materialisation *m, const entry_location *at) {
  for (size_t i = 0; i < m->n_pins; i++) {
    if (m->pins[i].job.value == at->job.value && m->pins[i].stage.value == at->stage.value) {
      return true;
    }
  }
  return false;
}

/* A pin and a node for each job and stage among the locations. */
static bool make_pins(materialisation *m, const registry_entry *entry) {
  m->pins = arena_array(m->memory, m->output.n_locations, sizeof *m->pins);
  if (m->pins == NULL) {
    return false;
  }
  for (size_t i = 0; i < m->output.n_locations; i++) {
    const entry_location *at = &m->output.locations[i];
    if (has_pin(m, at)) {
      continue;
    }
    registry_action *node = registry_node_new(entry, at->job);
    if (node == NULL) {
      return false;
    }
    node->stage = at->stage;
    LL_APPEND(m->unpins, node);
    m->pins[m->n_pins++] = (pin){.job = at->job, .stage = at->stage};
  }
  return true;
}

materialisation *materialisation_new(const registry_entry *entry, job_id job, uint64_t generation,
                                     const entry_output *output) {
  materialisation *m = mem_zalloc(1, sizeof *m);
  if (m == NULL) {
    return NULL;
  }
  m->key = entry->key;
  m->session = entry->session;
  m->job = job;
  m->generation = generation;
  m->memory = arena_new_sized(ENTRY_ARENA_BYTES);
  if (m->memory == NULL || entry_output_copy(output, m->memory, &m->output, NULL) != HF_OK ||
      !make_pins(m, entry)) {
    materialisation_free(NULL, m); /* its pins are in no table yet */
    return NULL;
  }
  return m;
}

void registry_attach(registry *r, registry_entry *entry, materialisation *m) {
  entry->held = m;
  entry->generation = m->generation;
  for (size_t i = 0; i < m->n_pins; i++) {
    pins_add(&r->pins, &m->pins[i]);
  }
}

void registry_detach(registry *r, registry_entry *entry) {
  materialisation *m = entry->held;
  entry->held = NULL;
  if (m->n_leases == 0) {
    materialisation_free(r, m);
    return;
  }
  m->is_dropped = true;
  DL_APPEND(r->dropped, m);
}

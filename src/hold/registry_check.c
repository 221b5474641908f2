/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts the registry's invariants, R1 to R9 of registry.c; called by tests after each operation. Thread: the owner's. */
#include "hold/registry_internal.h"

#include <assert.h>
#include <string.h>

static void check_claim(const registry *r, const registry_entry *entry) {
  bool is_pending = entry->state == ENTRY_PENDING;
  assert(is_pending == (entry->job.value != 0) && is_pending == (entry->cancel != NULL)); /* R1 */
  assert(is_pending || entry->claimed.stage.value == 0);
  assert(is_pending == (entry->waiters != NULL)); /* R2 */
  for (const registry_action *node = entry->waiters; node != NULL; node = node->next) {
    for (const registry_action *other = node->next; other != NULL; other = other->next) {
      assert(node->job.value != other->job.value); /* R2 */
    }
  }
  if (!is_pending) {
    return;
  }
  for (const registry_entry *other = entry->hh.next; other != NULL; other = other->hh.next) {
    assert(other->job.value != entry->job.value); /* R1 */
  }
  (void)r;
}

static size_t leases_of(const registry *r, const materialisation *m) {
  size_t count = 0;
  for (const lease_reader *of = r->readers; of != NULL; of = of->hh.next) {
    const lease *l = NULL;
    LL_FOREACH(of->leases, l) {
      count += l->held == m ? 1 : 0;
    }
  }
  return count;
}

static void check_data(const registry *r, const materialisation *m) {
  assert(m->n_leases == leases_of(r, m));                 /* R5 */
  assert(m->output.n_locations > 0 && m->unpins != NULL); /* R7 */
  assert(m->job.value != 0 && m->generation > 0);
  for (size_t i = 0; i < m->output.n_locations; i++) {
    assert(registry_is_pinned(r, m->output.locations[i].job, m->output.locations[i].stage)); /* R9 */
  }
}

static void check_entry(const registry *r, const registry_entry *entry) {
  check_claim(r, entry);
  bool has_data = entry->state == ENTRY_MATERIALISED || entry->state == ENTRY_UNAVAILABLE;
  assert(has_data == (entry->held != NULL)); /* R3 */
  if (!has_data) {
    return;
  }
  assert(!entry->held->is_dropped && entry->held->generation == entry->generation);           /* R3, R8 */
  assert((entry->state == ENTRY_MATERIALISED) == registry_all_live(r, &entry->held->output)); /* R6 */
  check_data(r, entry->held);
}

void registry_check(const registry *r) {
  size_t leased = 0, pinned = 0;
  for (const registry_entry *entry = r->entries; entry != NULL; entry = entry->hh.next) {
    check_entry(r, entry);
    leased += entry->held == NULL ? 0 : entry->held->n_leases;
    pinned += (entry->claimed.stage.value != 0 ? 1 : 0) + (entry->held == NULL ? 0 : entry->held->n_pins);
  }
  const materialisation *m = NULL;
  DL_FOREACH(r->dropped, m) {
    assert(m->is_dropped && m->n_leases > 0); /* R4 */
    check_data(r, m);
    leased += m->n_leases;
    pinned += m->n_pins;
  }
  size_t listed = 0;
  for (const lease_reader *of = r->readers; of != NULL; of = of->hh.next) {
    const lease *l = NULL;
    size_t count = 0;
    LL_COUNT(of->leases, l, count);
    assert(count > 0);
    listed += count;
  }
  assert(listed == leased);         /* R5 */
  assert(pinned == r->pins.n_pins); /* R9 */
}

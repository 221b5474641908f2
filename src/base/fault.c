/* SPDX-License-Identifier: Apache-2.0 */
/* Named fault points: one name at a time. Thread: any. */
#include "base/fault.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static const char *fault_name;                 /* set before `fault_hit`, and then left alone */
static void (*_Atomic fault_hit)(void) = NULL; /* NULL: off */

void fault_point(const char *name) {
  void (*hit)(void) = atomic_load_explicit(&fault_hit, memory_order_acquire);
  if (hit != NULL && strcmp(name, fault_name) == 0) {
    hit();
  }
}

void fault_set(const char *name, void (*hit)(void)) {
  atomic_store_explicit(&fault_hit, NULL, memory_order_release);
  fault_name = name;
  atomic_store_explicit(&fault_hit, hit, memory_order_release);
}

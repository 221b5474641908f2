/* SPDX-License-Identifier: Apache-2.0 */
/* Named fault points: a few names at a time; the planted mistake, one at most. Thread: any. */
#include "base/fault.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 4 };

typedef struct point {
  const char *name;          /* set before `hit`, and then left alone */
  void (*_Atomic hit)(void); /* NULL: off */
} point;

static point points[POINTS];
static atomic_int n_set; /* 0: no point is looked for */

static void pass(const char *name) {
  for (int i = 0; i < POINTS; i++) {
    void (*hit)(void) = atomic_load_explicit(&points[i].hit, memory_order_acquire);
    if (hit != NULL && strcmp(name, points[i].name) == 0) {
      hit();
      return;
    }
  }
}

void fault_point(const char *name) {
  if (atomic_load_explicit(&n_set, memory_order_acquire) > 0) {
    pass(name);
  }
}

static point *point_of(const char *name) {
  point *unused = NULL;
  for (int i = 0; i < POINTS; i++) {
    bool is_set = atomic_load(&points[i].hit) != NULL;
    if (is_set && strcmp(points[i].name, name) == 0) {
      return &points[i];
    }
    unused = is_set ? unused : &points[i];
  }
  return unused;
}

void fault_set(const char *name, void (*hit)(void)) {
  point *at = point_of(name);
  assert(at != NULL); /* POINTS of them are enough for a test */
  bool was_set = atomic_exchange(&at->hit, NULL) != NULL;
  at->name = name;
  atomic_store_explicit(&at->hit, hit, memory_order_release);
  atomic_fetch_add(&n_set, (hit != NULL) - was_set);
}

static const char *mutant; /* set once */

static void read_mutant(void) {
  const char *given = getenv("HOLDFAST_MUTANT");
  mutant = given == NULL ? "" : given;
}

bool fault_is_on(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_mutant);
  return strcmp(name, mutant) == 0;
}

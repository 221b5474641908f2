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
  const char *name;
  void (*hit)(void); /* NULL: off */
} point;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static point points[POINTS]; /* guarded by lock */
static atomic_int n_set;     /* 0: no point is looked for, and no lock is taken */

/* The place of that name, else one that is free, else NULL. REQUIRES(lock) */
static point *point_of_locked(const char *name) {
  point *unused = NULL;
  for (int i = 0; i < POINTS; i++) {
    bool is_set = points[i].hit != NULL;
    if (is_set && strcmp(points[i].name, name) == 0) {
      return &points[i];
    }
    unused = is_set ? unused : &points[i];
  }
  return unused;
}

static void pass(const char *name) {
  pthread_mutex_lock(&lock);
  const point *at = point_of_locked(name);
  void (*hit)(void) = at == NULL ? NULL : at->hit;
  pthread_mutex_unlock(&lock);
  if (hit != NULL) {
    hit();
  }
}

void fault_point(const char *name) {
  if (atomic_load_explicit(&n_set, memory_order_acquire) > 0) {
    pass(name);
  }
}

void fault_set(const char *name, void (*hit)(void)) {
  pthread_mutex_lock(&lock);
  point *at = point_of_locked(name);
  assert(at != NULL); /* POINTS of them are enough for a test */
  atomic_fetch_add(&n_set, (hit != NULL) - (at->hit != NULL));
  *at = (point){name, hit};
  pthread_mutex_unlock(&lock);
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

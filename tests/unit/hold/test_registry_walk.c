/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random walk of the registry against a small model of the protocol: the same
 * results, states, generations, actions and pins after each of 1,000,000 events.
 * The seed is fixed; HOLDFAST_SEED sets another.
 */
#include "hold/hold.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 5, WAITERS = 6, DATA = 64, EVENTS = 1000000, LONGEST = 512 };

typedef struct model_data {
  bool exists;
  int key, executor;
  uint64_t job, generation;
  bool leased[WAITERS];
  bool dropped;
} model_data;

typedef struct model_key {
  char state; /* A P M U */
  uint64_t job, generation, last_job;
  int queue[WAITERS];          /* waiters in order */
  int n_queue, failures, held; /* index of data */
} model_key;

typedef struct model {
  model_key keys[KEYS];
  model_data data[DATA];
  int order[KEYS], n_order; /* known keys, in the order in which they became known */
  bool live[2];
  char actions[LONGEST];
} model;

static uint64_t random_state;
static uint64_t pick(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (random_state >> 11) % below;
}

static uuid key_id(int key) {
  uuid id = {{0}};
  snprintf(id.text, sizeof id.text, "key-%d", key);
  return id;
}

/* Even and odd keys belong to two sessions. */
static uuid session_id(int key) {
  uuid id = {{0}};
  snprintf(id.text, sizeof id.text, "session-%d", key % 2);
  return id;
}

static void say(model *m, char kind, uint64_t number) {
  size_t used = strlen(m->actions);
  snprintf(m->actions + used, sizeof m->actions - used, "%c%llu ", kind, (unsigned long long)number);
}

static void say_waiters(model *m, model_key *k, char kind) {
  for (int i = 0; i < k->n_queue; i++) {
    say(m, kind, (uint64_t)k->queue[i] + 1);
  }
  k->n_queue = 0;
}

static int leases_of(const model_data *d) {
  int count = 0;
  for (int w = 0; w < WAITERS; w++) {
    count += d->leased[w];
  }
  return count;
}

static void model_clear(model *m, int key, char how) {
  model_key *k = &m->keys[key];
  if (k->state == 'P') {
    if (how == 'r') { /* removed: the job is cancelled */
      say(m, 'C', k->job);
      say_waiters(m, k, 'W');
      k->failures = 0;
    }
    k->job = 0;
  } else if (k->state == 'M' || k->state == 'U') {
    model_data *d = &m->data[k->held];
    if (leases_of(d) == 0) {
      say(m, 'U', d->job);
      d->exists = false;
    }
    d->dropped = true;
  }
  k->state = 'A';
}

static void model_know(model *m, int key) {
  for (int i = 0; i < m->n_order; i++) {
    if (m->order[i] == key) {
      return;
    }
  }
  m->order[m->n_order++] = key;
}

static char model_begin(model *m, int key, uint64_t job, int waiter) {
  model_key *k = &m->keys[key];
  model_know(m, key);
  if (k->state == 'M') {
    return 'M';
  }
  if (k->state == 'U') {
    return 'U';
  }
  char result = k->state == 'A' ? 'C' : 'W';
  if (k->state == 'A') {
    k->state = 'P';
    k->job = job;
  }
  for (int i = 0; i < k->n_queue; i++) {
    if (k->queue[i] == waiter) {
      return result;
    }
  }
  k->queue[k->n_queue++] = waiter;
  return result;
}

static char model_complete(model *m, int key, uint64_t job, int executor) {
  model_key *k = &m->keys[key];
  if (k->state == 'P' && k->job == job) {
    if (!m->live[executor]) {
      return 'R';
    }
    int free_slot = 0;
    while (m->data[free_slot].exists) {
      free_slot++;
    }
    k->generation++;
    m->data[free_slot] = (model_data){
        .exists = true, .key = key, .executor = executor, .job = job, .generation = k->generation};
    k->held = free_slot;
    k->state = 'M';
    k->last_job = job;
    k->job = 0;
    k->failures = 0;
    say_waiters(m, k, 'W');
    return 'P';
  }
  return (k->state == 'M' || k->state == 'U') && m->data[k->held].job == job ? 'D' : 'S';
}

static void model_abort(model *m, int key, uint64_t job, hf_error_class error_class) {
  model_key *k = &m->keys[key];
  if (k->state != 'P' || k->job != job) {
    return;
  }
  if (error_class == HF_CLASS_USER) {
    say_waiters(m, k, 'F');
    k->failures = 0;
  } else if (error_class == HF_CLASS_RESOURCE || ++k->failures == 3) {
    say_waiters(m, k, 'I');
    k->failures = 0;
  } else {
    say_waiters(m, k, 'W');
  }
  model_clear(m, key, 'a');
}

static void model_leave(model *m, int key, int waiter) {
  model_key *k = &m->keys[key];
  for (int i = 0; i < k->n_queue; i++) {
    if (k->queue[i] != waiter) {
      continue;
    }
    memmove(&k->queue[i], &k->queue[i + 1], (size_t)(k->n_queue - i - 1) * sizeof(int));
    if (--k->n_queue == 0) {
      say(m, 'C', k->job);
      k->failures = 0;
      model_clear(m, key, 'a');
    }
    return;
  }
}

static void model_executor(model *m, int executor, bool is_live) {
  m->live[executor] = is_live;
  for (int key = 0; key < KEYS; key++) {
    model_key *k = &m->keys[key];
    if ((k->state == 'M' || k->state == 'U') && m->data[k->held].executor == executor) {
      k->state = is_live ? 'M' : 'U';
    }
  }
}

/* Forgets the keys of a session, in the order in which they became known. */
static void model_remove(model *m, int session) {
  int kept = 0;
  for (int i = 0; i < m->n_order; i++) {
    int key = m->order[i];
    if (key % 2 != session) {
      m->order[kept++] = key;
      continue;
    }
    model_clear(m, key, 'r');
    m->keys[key] = (model_key){.state = 'A', .last_job = m->keys[key].last_job};
  }
  m->n_order = kept;
}

/* The registry drops the latest lease first. */
static void model_lease_drop(model *m, int waiter, const int *order, int n_order) {
  for (int i = n_order - 1; i >= 0; i--) {
    model_data *d = &m->data[order[i]];
    d->leased[waiter] = false;
    if (d->dropped && leases_of(d) == 0) {
      say(m, 'U', d->job);
      d->exists = false;
    }
  }
}

typedef struct walk {
  model m;
  declarations *d;
  registry *r;
  registry_actions actions;
  uint64_t next_job;
  int lease_order[WAITERS][DATA * 4];
  int n_lease_order[WAITERS];
} walk;

static const char *const executors[2] = {"x0", "x1"};

static void expect_same_actions(walk *w) {
  char got[LONGEST] = "";
  registry_action *action = NULL;
  while ((action = registry_actions_take(&w->actions)) != NULL) {
    size_t used = strlen(got);
    snprintf(got + used, sizeof got - used, "%c%llu ", "WFIUC"[action->kind],
             (unsigned long long)action -> job.value);
    mem_free(action);
  }
  assert_string_equal(got, w->m.actions);
  w->m.actions[0] = '\0';
}

static void expect_same_state(walk *w) {
  for (int key = 0; key < KEYS; key++) {
    entry_view view;
    uuid id = key_id(key);
    const model_key *k = &w->m.keys[key];
    assert_int_equal("APMU"[registry_lookup(w->r, &id, &view)], k -> state);
    assert_int_equal(view.generation, k->generation);
    if (k->state == 'P') {
      assert_int_equal(view.job.value, k->job);
    }
  }
  for (int i = 0; i < DATA; i++) {
    const model_data *d = &w->m.data[i];
    if (d->exists) {
      assert_true(registry_is_pinned(w->r, (job_id){d->job}, (stage_id){1}));
    }
  }
}

/* A job that may have something to do with the key: its claimer, its last maker, or a stranger. */
static uint64_t some_job(walk *w, int key) {
  const model_key *k = &w->m.keys[key];
  switch (pick(4)) {
    case 0:
      return k->last_job != 0 ? k->last_job : 1000000;
    case 1:
      return 1000000 + pick(10);
    default:
      return k->job != 0 ? k->job : 999999;
  }
}

static void step_begin(walk *w, int key, uuid *id) {
  int waiter = (int)pick(WAITERS);
  uuid session = session_id(key);
  uint64_t job = w->next_job++;
  begin_result result =
      registry_begin_or_wait(w->r, id, &session, (job_id){job}, (job_id){(uint64_t)waiter + 1}, NULL);
  assert_int_equal("CWMRUF"[result], model_begin(&w->m, key, job, waiter));
}

static void step_complete(walk *w, int key, uuid *id) {
  uint64_t job = some_job(w, key);
  int executor = (int)pick(2);
  entry_location at = {.job = {job}, .stage = {1}, .task = {1}, .attempt = {1}};
  snprintf(at.executor, sizeof at.executor, "%s", executors[executor]);
  entry_output output = {.locations = &at, .n_locations = 1};
  complete_result result = registry_complete(w->r, id, (job_id){job}, &output, &w->actions);
  assert_int_equal("PDSR"[result], model_complete(&w->m, key, job, executor));
}

static void step_lease(walk *w, int key, uuid *id) {
  int waiter = (int)pick(WAITERS);
  model_key *k = &w->m.keys[key];
  hf_status status = registry_lease_add(w->r, id, (job_id){(uint64_t)waiter + 1}, NULL);
  assert_int_equal(status == HF_OK, k->state == 'M');
  if (k->state == 'M' && !w->m.data[k->held].leased[waiter]) {
    w->m.data[k->held].leased[waiter] = true;
    w->lease_order[waiter][w->n_lease_order[waiter]++] = k->held;
  }
}

static void step_lease_drop(walk *w) {
  int waiter = (int)pick(WAITERS);
  registry_lease_drop(w->r, (job_id){(uint64_t)waiter + 1}, &w->actions);
  model_lease_drop(&w->m, waiter, w->lease_order[waiter], w->n_lease_order[waiter]);
  w->n_lease_order[waiter] = 0;
}

static void step_executor(walk *w) {
  int executor = (int)pick(2);
  if (pick(2) == 0) {
    assert_int_equal(registry_executor_back(w->r, executors[executor], NULL), HF_OK);
    model_executor(&w->m, executor, true);
    return;
  }
  bool is_over = pick(2) == 0;
  model_executor(&w->m, executor, false);
  if (!is_over) {
    registry_executor_lost(w->r, executors[executor]);
    return;
  }
  registry_invalidate_executor(w->r, executors[executor], &w->actions);
  for (int i = 0; i < w->m.n_order; i++) {
    int key = w->m.order[i];
    if (w->m.keys[key].state == 'U' && w->m.data[w->m.keys[key].held].executor == executor) {
      model_clear(&w->m, key, 'r');
    }
  }
}

static void step_session(walk *w) {
  int which = (int)pick(2);
  uuid session = session_id(which);
  registry_remove_session(w->r, &session, &w->actions);
  model_remove(&w->m, which);
}

static void step(walk *w) {
  int key = (int)pick(KEYS);
  uuid id = key_id(key);
  uint64_t what = pick(100);
  if (what < 30) {
    step_begin(w, key, &id);
  } else if (what < 50) {
    step_complete(w, key, &id);
  } else if (what < 60) {
    static const hf_error_class classes[] = {HF_CLASS_USER, HF_CLASS_RESOURCE, HF_CLASS_RETRYABLE,
                                             HF_CLASS_FETCH};
    hf_error_class error_class = classes[pick(4)];
    uint64_t job = some_job(w, key);
    registry_abort(w->r, &id, (job_id){job}, error_class, &w->actions);
    model_abort(&w->m, key, job, error_class);
  } else if (what < 70) {
    int waiter = (int)pick(WAITERS);
    registry_leave(w->r, &id, (job_id){(uint64_t)waiter + 1}, &w->actions);
    model_leave(&w->m, key, waiter);
  } else if (what < 80) {
    step_lease(w, key, &id);
  } else if (what < 88) {
    step_lease_drop(w);
  } else if (what < 94) {
    registry_invalidate(w->r, &id, "walk", &w->actions);
    model_clear(&w->m, key, 'r');
  } else if (what < 99) {
    step_executor(w);
  } else {
    step_session(w);
  }
}

static void registry_random_walk_agrees_with_the_model(void **state) {
  (void)state;
  const char *seed = getenv("HOLDFAST_SEED");
  random_state = seed != NULL ? strtoull(seed, NULL, 10) | 1 : 88172645463325252u;
  walk *w = mem_zalloc(1, sizeof *w);
  w->d = declarations_new();
  w->r = registry_new(w->d);
  w->next_job = 2000000;
  for (int key = 0; key < KEYS; key++) {
    w->m.keys[key].state = 'A';
  }
  for (int i = 0; i < EVENTS; i++) {
    step(w);
    registry_check(w->r);
    expect_same_actions(w);
    expect_same_state(w);
  }
  registry_free(w->r);
  declarations_free(w->d);
  mem_free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registry_random_walk_agrees_with_the_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

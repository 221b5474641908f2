/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random walk of the real registry along the model's transition relation: each of
 * 1,000,000 events must be a line of models/registry.transitions for every key, and
 * every line must have been walked. The seed is fixed; HOLDFAST_SEED sets another.
 */
#include "hold/registry_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 3, READERS = 3, EVENTS = 1000000, MOOD_EVENTS = 40, LINE = 160, LINES_MOST = 2000 };

typedef struct relation_line {
  char text[LINE];
  uint64_t walked;
  UT_hash_handle hh; /* by text */
} relation_line;

/* What the model sees of an entry. */
typedef struct look {
  entry_state state;
  unsigned failures;
  size_t waiters, leases;
} look;

typedef struct told {
  int wakes, fails, inlines, cancels, unpins;
} told;

typedef struct walk {
  relation_line *relation;
  declarations *d;
  registry *r;
  registry_actions actions;
  uint64_t next_job;
  uint64_t mood;                  /* 3: none */
  uint64_t leased[KEYS][READERS]; /* the job whose data a reader lists; 0: none */
  uint64_t makers[KEYS];          /* of the data, or the last there were */
  look before[KEYS];
  told told[KEYS];
} walk;

static uint64_t random_state;
static uint64_t pick(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (random_state >> 11) % below;
}

static const uuid keys[KEYS] = {{"key-0"}, {"key-1"}, {"key-2"}};
static const uuid sessions[2] = {{"session-0"}, {"session-1"}};
static const char *const executors[2] = {"x0", "x1"};

static const uuid *session_of(int key) {
  return &sessions[key % 2];
}

/* The model's readers are one key's; so are its waiters. */
static job_id reader_id(int key, int reader) {
  return (job_id){(uint64_t)(1 + key * READERS + reader)};
}

/* ------------------------------------------------------------ the relation */

static void relation_read(walk *w) {
  const char *source = getenv("HOLDFAST_SOURCE");
  char path[512];
  snprintf(path, sizeof path, "%s/models/registry.transitions", source == NULL ? "." : source);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char text[LINE];
  while (fgets(text, sizeof text, file) != NULL) {
    text[strcspn(text, "\n")] = '\0';
    relation_line *line = mem_zalloc(1, sizeof *line);
    memcpy(line->text, text, sizeof text);
    HASH_ADD_STR(w->relation, text, line);
  }
  fclose(file);
  assert_in_range(HASH_COUNT(w->relation), 100, LINES_MOST);
}

static look look_at(const walk *w, int key) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  look l = {0};
  if (entry == NULL) {
    return l;
  }
  l.state = entry->state;
  l.failures = entry->failures;
  l.leases = entry->held == NULL ? 0 : entry->held->n_leases;
  for (const registry_action *node = entry->waiters; node != NULL; node = node->next) {
    l.waiters++;
  }
  return l;
}

static size_t say_look(const look *l, char *out, size_t bytes) {
  return (size_t)snprintf(out, bytes, "%s f%u w%zu l%zu", registry_state_name(l->state), l->failures,
                          l->waiters, l->leases);
}

static void say_told(const told *t, char *out, size_t bytes) {
  const struct {
    const char *name;
    int n;
  } parts[] = {{"wake", t->wakes},
               {"fail", t->fails},
               {"inline", t->inlines},
               {"cancel", t->cancels},
               {"unpin", t->unpins}};
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (parts[i].n > 0) {
      used += (size_t)snprintf(out + used, bytes - used, " %s %d", parts[i].name, parts[i].n);
    }
  }
}

/* The line of what has happened to the key must be there. */
static void expect_line(walk *w, int key, const char *operation, const char *result) {
  char text[LINE], actions[64];
  size_t used = say_look(&w->before[key], text, sizeof text);
  used += (size_t)snprintf(text + used, sizeof text - used, " | %s | %s | ", operation, result);
  look after = look_at(w, key);
  used += say_look(&after, text + used, sizeof text - used);
  say_told(&w->told[key], actions, sizeof actions);
  snprintf(text + used, sizeof text - used, " |%s", actions);
  relation_line *line = NULL;
  HASH_FIND_STR(w->relation, text, line);
  if (line == NULL) {
    fail_msg("not in the model's relation: %s", text);
  } else {
    line->walked++;
  }
}

/* Nothing has happened to the key. */
static void expect_same(const walk *w, int key) {
  look after = look_at(w, key);
  assert_memory_equal(&after, &w->before[key], sizeof after);
  told none = {0};
  assert_memory_equal(&w->told[key], &none, sizeof none);
}

static void take_actions(walk *w) {
  registry_action *action = NULL;
  while ((action = registry_actions_take(&w->actions)) != NULL) {
    told *t = &w->told[action->key.text[4] - '0'];
    int *counts[] = {&t->wakes, &t->fails, &t->inlines, &t->unpins, &t->cancels};
    (*counts[action->kind])++;
    mem_free(action);
  }
}

/* After an operation on one key. */
static void expect(walk *w, int key, const char *operation, const char *result) {
  take_actions(w);
  registry_check(w->r);
  for (int k = 0; k < KEYS; k++) {
    if (k == key) {
      expect_line(w, k, operation, result);
    } else {
      expect_same(w, k);
    }
  }
}

/* ---------------------------------------------------------- the operations */

static bool is_listed(const walk *w, int key, job_id waiter) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  for (const registry_action *node = entry == NULL ? NULL : entry->waiters; node != NULL; node = node->next) {
    if (node->job.value == waiter.value) {
      return true;
    }
  }
  return false;
}

static const char *job_is(const walk *w, int key, uint64_t job) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  if (entry != NULL && entry->state == ENTRY_PENDING && entry->job.value == job) {
    return "claimer";
  }
  return entry != NULL && entry->held != NULL && entry->held->job.value == job ? "maker" : "other";
}

/* A job that may have something to do with the key: its claimer, the maker of its data, or a stranger. */
static uint64_t some_job(walk *w, int key) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  switch (pick(4)) {
    case 0:
      return w->makers[key] != 0 ? w->makers[key] : 1000;
    case 1:
      return 1000;
    default:
      return entry != NULL && entry->job.value != 0 ? entry->job.value : 1001;
  }
}

static const char *executor_is(const walk *w, int key, const char *executor) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  bool is_its = entry != NULL && entry->held != NULL && registry_is_on(&entry->held->output, executor);
  return is_its ? "its" : "other";
}

static const char *reader_is(const walk *w, int key, int reader) {
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  uint64_t of = w->leased[key][reader];
  if (of == 0) {
    return "none";
  }
  if (entry != NULL && entry->held != NULL && entry->held->job.value == of) {
    return "held";
  }
  int others = 0;
  for (int i = 0; i < READERS; i++) {
    others += i != reader && w->leased[key][i] == of;
  }
  return others == 0 ? "dropped last" : "dropped";
}

static void do_begin(walk *w, int key) {
  static const char *const results[] = {"claimed", "waiting", "materialised", "released", "unavailable"};
  job_id waiter = reader_id(key, (int)pick(READERS));
  const declaration *row = declarations_find(w->d, &keys[key]);
  char operation[64];
  snprintf(operation, sizeof operation, "begin %s %s", is_listed(w, key, waiter) ? "listed" : "new",
           row->released ? "released" : "declared");
  begin_result result =
      registry_begin_or_wait(w->r, &keys[key], session_of(key), (job_id){w->next_job++}, waiter, NULL);
  assert_in_range(result, BEGIN_CLAIMED, BEGIN_UNAVAILABLE);
  expect(w, key, operation, results[result]);
}

static entry_output output_on(entry_location *at, uint64_t job, const char *executor) {
  *at = (entry_location){.job = {job}, .stage = {1}, .task = {1}, .attempt = {1}};
  snprintf(at->executor, sizeof at->executor, "%s", executor);
  return (entry_output){.locations = at, .n_locations = 1};
}

static void do_complete(walk *w, int key) {
  static const char *const results[] = {"promoted", "duplicate", "stale", "refused"};
  uint64_t job = some_job(w, key);
  const char *executor = executors[pick(2)];
  bool is_claimer = strcmp(job_is(w, key, job), "claimer") == 0;
  const char *at_claim = registry_is_live(w->r, executor) ? "complete claimer live" : "complete claimer away";
  const char *operation = is_claimer                                  ? at_claim
                          : strcmp(job_is(w, key, job), "maker") == 0 ? "complete maker"
                                                                      : "complete other";
  if (is_claimer && pick(2) == 0) {
    registry_claim_stage(w->r, &keys[key], (job_id){job}, (stage_id){1});
  }
  entry_location at;
  entry_output output = output_on(&at, job, executor);
  complete_result result = registry_complete(w->r, &keys[key], (job_id){job}, &output, &w->actions);
  w->makers[key] = result == COMPLETE_PROMOTED ? job : w->makers[key];
  expect(w, key, operation, results[result]);
}

static void do_abort(walk *w, int key) {
  static const hf_error_class classes[] = {HF_CLASS_USER, HF_CLASS_RESOURCE, HF_CLASS_RETRYABLE,
                                           HF_CLASS_FETCH, HF_CLASS_FATAL};
  static const char *const names[] = {"user", "resource", "retryable", "retryable", "retryable"};
  uint64_t job = some_job(w, key), class = pick(5);
  char operation[64];
  snprintf(operation, sizeof operation, "abort %s %s",
           strcmp(job_is(w, key, job), "claimer") == 0 ? "claimer" : "other", names[class]);
  registry_abort(w->r, &keys[key], (job_id){job}, classes[class], &w->actions);
  expect(w, key, operation, "-");
}

static void do_leave(walk *w, int key) {
  job_id waiter = reader_id(key, (int)pick(READERS));
  const char *operation = is_listed(w, key, waiter) ? "leave listed" : "leave new";
  registry_leave(w->r, &keys[key], waiter, &w->actions);
  expect(w, key, operation, "-");
}

static void do_restore(walk *w, int key) {
  entry_location at;
  const char *executor = executors[pick(2)];
  uint64_t job = w->next_job++;
  const registry_entry *entry = registry_find(w->r, &keys[key]);
  bool is_absent = entry == NULL || entry->state == ENTRY_ABSENT;
  entry_view view = {.key = keys[key],
                     .session = *session_of(key),
                     .job = {job},
                     .generation = entry == NULL ? 1 : entry->generation + 1,
                     .output = output_on(&at, job, executor)};
  hf_status status = registry_restore(w->r, &view, NULL);
  assert_int_equal(status, is_absent ? HF_OK : HF_E_NAME_EXISTS);
  w->makers[key] = is_absent ? job : w->makers[key];
  expect(w, key, registry_is_live(w->r, executor) ? "restore live" : "restore away", "-");
}

static void do_lease(walk *w, int key) {
  int reader = (int)pick(READERS);
  const char *is = reader_is(w, key, reader);
  char operation[64];
  if (pick(2) == 0) {
    snprintf(operation, sizeof operation, "lease_drop %s", is);
    registry_lease_drop(w->r, reader_id(key, reader), &w->actions);
    w->leased[key][reader] = 0;
    expect(w, key, operation, "-");
    return;
  }
  if (strncmp(is, "dropped", 7) == 0) {
    return; /* of two generations of one key: the model has a reader read one */
  }
  snprintf(operation, sizeof operation, "lease_add %s", is);
  if (registry_lease_add(w->r, &keys[key], reader_id(key, reader), NULL) == HF_OK) {
    w->leased[key][reader] = registry_find(w->r, &keys[key])->held->job.value;
  }
  expect(w, key, operation, "-");
}

/* An event that reaches every key. */
static void do_executor(walk *w) {
  static const char *const names[] = {"executor_lost", "executor_back", "invalidate_executor"};
  const char *executor = executors[pick(2)];
  uint64_t what = pick(3);
  char operations[KEYS][64];
  for (int k = 0; k < KEYS; k++) {
    snprintf(operations[k], sizeof operations[k], "%s %s", names[what], executor_is(w, k, executor));
  }
  if (what == 0) {
    registry_executor_lost(w->r, executor);
  } else if (what == 1) {
    assert_int_equal(registry_executor_back(w->r, executor, NULL), HF_OK);
  } else {
    registry_invalidate_executor(w->r, executor, &w->actions);
  }
  take_actions(w);
  registry_check(w->r);
  for (int k = 0; k < KEYS; k++) {
    expect_line(w, k, operations[k], "-");
  }
}

/* An invalidation of all that is there; what is absent is forgotten. */
static void do_remove_session(walk *w) {
  const uuid *session = &sessions[pick(2)];
  registry_remove_session(w->r, session, &w->actions);
  take_actions(w);
  registry_check(w->r);
  for (int k = 0; k < KEYS; k++) {
    if (session_of(k) != session) {
      expect_same(w, k);
    } else if (w->before[k].state != ENTRY_ABSENT) {
      expect_line(w, k, "invalidate", "-");
    }
  }
}

/* Released, or declared anew. */
static void do_declare(walk *w, int key) {
  const declaration *row = declarations_find(w->d, &keys[key]);
  if (row != NULL && !row->released) {
    assert_true(declarations_release(w->d, &keys[key]));
    return;
  }
  declarations_remove(w->d, &keys[key]);
  declaration fresh = {.key = keys[key], .session = *session_of(key)};
  assert_int_equal(declarations_add(w->d, &fresh, NULL), HF_OK);
}

/* What is rare by chance alone: many leases; many waiters, and failures; many that wait for an executor. */
static void do_mood(walk *w, int key) {
  if (w->mood == 0) {
    do_lease(w, key);
  } else if (w->mood == 1) {
    static void (*const does[4])(walk *, int) = {do_abort, do_lease, do_begin, do_begin};
    does[pick(4)](w, key);
  } else {
    (pick(3) == 0 ? do_restore : do_lease)(w, key);
  }
}

static void step(walk *w) {
  int key = (int)pick(KEYS);
  memset(w->told, 0, sizeof w->told);
  for (int k = 0; k < KEYS; k++) {
    w->before[k] = look_at(w, k);
  }
  uint64_t what = pick(100);
  if (w->mood < 3 && pick(3) != 0) {
    do_mood(w, key);
  } else if (what < 30) {
    do_begin(w, key);
  } else if (what < 45) {
    do_complete(w, key);
  } else if (what < 56) {
    do_abort(w, key);
  } else if (what < 64) {
    do_leave(w, key);
  } else if (what < 84) {
    do_lease(w, key);
  } else if (what < 89) {
    registry_invalidate(w->r, &keys[key], "walk", &w->actions);
    expect(w, key, "invalidate", "-");
  } else if (what < 96) {
    do_executor(w);
  } else if (what < 97) {
    do_remove_session(w);
  } else if (what < 99) {
    do_declare(w, key);
  } else {
    do_restore(w, key);
  }
}

static void registry_walk_stays_in_the_relation_and_covers_it(void **state) {
  (void)state;
  const char *seed = getenv("HOLDFAST_SEED");
  random_state = seed != NULL ? strtoull(seed, NULL, 10) | 1 : 88172645463325252u;
  walk *w = mem_zalloc(1, sizeof *w);
  relation_read(w);
  w->d = declarations_new();
  w->r = registry_new(w->d);
  w->next_job = 2000;
  for (int k = 0; k < KEYS; k++) {
    do_declare(w, k);
  }
  for (int i = 0; i < EVENTS; i++) {
    w->mood = i % MOOD_EVENTS == 0 ? pick(5) : w->mood;
    step(w);
  }
  unsigned missed = 0;
  relation_line *line = NULL, *next = NULL;
  HASH_ITER(hh, w->relation, line, next) {
    if (line->walked == 0) {
      print_message("never walked: %s\n", line->text);
      missed++;
    }
  }
  print_message("%d events, %u of %u lines walked\n", EVENTS, HASH_COUNT(w->relation) - missed,
                HASH_COUNT(w->relation));
  HASH_ITER(hh, w->relation, line, next) {
    HASH_DEL(w->relation, line);
    mem_free(line);
  }
  registry_free(w->r);
  declarations_free(w->d);
  mem_free(w);
  assert_in_range(missed, 0, seed == NULL ? 0 : 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registry_walk_stays_in_the_relation_and_covers_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

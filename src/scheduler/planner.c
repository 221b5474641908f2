/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning threads, and the engines that they borrow. Engines are pooled by the
 * settings that they were opened with, the latest used first, so that one client
 * at a time keeps one engine warm. Stacks are large: DuckDB's binder recurses.
 * What a planning step does: planning.c.
 * Thread: any, unless a function says otherwise. pool_lock guards the lists.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

/* Planning runs the user's constants, which have no other limit of time. */
#define PLANNING_LONGEST_US ((uint64_t)30 * 1000 * 1000)

struct planner {
  struct planner *next;
  engine *engine;
  arena *memory;
  job_settings settings;    /* in `memory` */
  const planner_user *user; /* while lent */
  uint64_t lent_us;         /* when it was lent */
  bool is_interrupted;      /* guarded by pool_lock */
  bool is_overdue;          /* guarded by pool_lock: it was lent for too long */
};

/* ---------------------------------------------------------------- settings */

hf_status job_settings_copy(const job_settings *from, arena *a, job_settings *out, hf_error *error) {
  *out = *from;
  stage_setting *rows = arena_array(a, from->n_engine, sizeof *rows);
  for (size_t i = 0; rows != NULL && i < from->n_engine; i++) {
    rows[i].name = arena_strdup(a, from->engine[i].name);
    rows[i].value = arena_strdup(a, from->engine[i].value);
    if (rows[i].name == NULL || rows[i].value == NULL) {
      rows = NULL;
    }
  }
  if (rows == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for settings");
  }
  out->engine = rows;
  return HF_OK;
}

static bool settings_are_equal(const job_settings *a, const job_settings *b) {
  if (a->n_engine != b->n_engine) {
    return false;
  }
  for (size_t i = 0; i < a->n_engine; i++) {
    if (strcmp(a->engine[i].name, b->engine[i].name) != 0 ||
        strcmp(a->engine[i].value, b->engine[i].value) != 0) {
      return false;
    }
  }
  return true;
}

/* ---------------------------------------------------------------- the pool */

static void planner_free(planner *p) {
  if (p != NULL) {
    engine_close(p->engine);
    arena_free(p->memory);
    mem_free(p);
  }
}

static hf_status open_engine(const scheduler *s, planner *p, hf_error *error) {
  engine_setting *rows = arena_array(p->memory, p->settings.n_engine, sizeof *rows);
  if (rows == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for settings");
  }
  for (size_t i = 0; i < p->settings.n_engine; i++) {
    rows[i] = (engine_setting){.name = p->settings.engine[i].name, .value = p->settings.engine[i].value};
  }
  engine_options options = {.kind = ENGINE_PLANNER,
                            .settings = rows,
                            .n_settings = p->settings.n_engine,
                            .extension_dir = s->extension_dir};
  return engine_open(&options, &p->engine, error);
}

static hf_status planner_open(const scheduler *s, const job_settings *settings, planner **out,
                              hf_error *error) {
  planner *p = mem_zalloc(1, sizeof *p);
  if (p == NULL || (p->memory = arena_new()) == NULL) {
    mem_free(p);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a planner");
  }
  hf_status status = job_settings_copy(settings, p->memory, &p->settings, error);
  if (status == HF_OK) {
    status = open_engine(s, p, error);
  }
  if (status != HF_OK) {
    planner_free(p);
    return status;
  }
  *out = p;
  return HF_OK;
}

/* Takes a fitting idle one off its list. REQUIRES(s->pool_lock) */
static planner *take_idle_locked(scheduler *s, const job_settings *settings) {
  planner *p = NULL;
  LL_FOREACH(s->idle, p) {
    if (settings_are_equal(settings, &p->settings)) {
      LL_DELETE(s->idle, p);
      s->n_idle--;
      return p;
    }
  }
  return NULL;
}

static void tick_handle(scheduler *s, message *m) {
  (void)m;
  pthread_mutex_lock(&s->pool_lock);
  s->is_ticking = false; /* the scheduler's thread looks at deadlines before it waits again */
  pthread_mutex_unlock(&s->pool_lock);
}

static void lend_locked(scheduler *s, planner *p, const planner_user *user) {
  p->user = user;
  p->lent_us = clock_monotonic_us();
  LL_PREPEND(s->lent, p);
  if (!s->is_ticking) {
    s->is_ticking = true;
    s->tick.handle = tick_handle;
    event_queue_post(&s->events, &s->tick.item);
  }
}

static hf_status planner_borrow(scheduler *s, const job_settings *settings, const planner_user *user,
                                planner **out, hf_error *error) {
  pthread_mutex_lock(&s->pool_lock);
  planner *p = take_idle_locked(s, settings);
  while (p == NULL && s->is_warming) {
    cond_wait_until(&s->pool_changed, &s->pool_lock, 0);
    p = take_idle_locked(s, settings);
  }
  if (p != NULL) {
    lend_locked(s, p, user);
  }
  pthread_mutex_unlock(&s->pool_lock);
  if (p == NULL) {
    HF_TRY(planner_open(s, settings, &p, error));
    pthread_mutex_lock(&s->pool_lock);
    lend_locked(s, p, user);
    pthread_mutex_unlock(&s->pool_lock);
  }
  *out = p;
  return HF_OK;
}

/* Puts one into the idle list; returns what must be closed, or NULL. REQUIRES(s->pool_lock) */
static planner *put_idle_locked(scheduler *s, planner *p) {
  LL_PREPEND(s->idle, p);
  if (++s->n_idle <= s->n_planners * 2) { /* two kinds of settings a thread */
    return NULL;
  }
  planner *last = s->idle;
  while (last->next != NULL) {
    last = last->next;
  }
  LL_DELETE(s->idle, last);
  s->n_idle--;
  return last;
}

/* Tells whether it was interrupted for having taken too long. */
static bool planner_return(scheduler *s, planner *p) {
  pthread_mutex_lock(&s->pool_lock);
  LL_DELETE(s->lent, p);
  p->user = NULL;
  bool is_overdue = p->is_overdue;
  /* An interrupt that came between two statements would stop the next user's. */
  planner *surplus = p->is_interrupted ? p : put_idle_locked(s, p);
  pthread_mutex_unlock(&s->pool_lock);
  planner_free(surplus);
  return is_overdue;
}

hf_status planner_use(scheduler *s, const job_settings *settings, const planner_user *user, hf_error *error) {
  planner *p = NULL;
  HF_TRY(planner_borrow(s, settings, user, &p, error));
  hf_status status = user->use(user->context, p->engine, error);
  engine_set_scans(p->engine, NULL, 0); /* they are the user's memory */
  if (planner_return(s, p) && status == HF_E_CANCELLED) {
    status = error_set(error, HF_E_LIMIT, "planning took longer than the limit of 30 s");
    error_hint(error, "look for constant expressions that are expensive to compute");
  } else if (status == HF_E_OUT_OF_MEMORY && error != NULL && error->cause != NULL) { /* DuckDB's, not ours */
    status = error_set(error, HF_E_LIMIT, "planning the statement takes more memory than the limit of 1 GiB");
    error_hint(error, "put long lists of values into a file, and join it");
  }
  return status;
}

static void interrupt_locked(planner *p) {
  p->is_interrupted = true;
  engine_interrupt(p->engine); /* sets a flag; under the lock, so that it is not lent anew meanwhile */
}

void planner_interrupt(scheduler *s, const void *who) {
  pthread_mutex_lock(&s->pool_lock);
  planner *p = NULL;
  LL_FOREACH(s->lent, p) {
    if (p->user->who == who) {
      interrupt_locked(p);
    }
  }
  pthread_mutex_unlock(&s->pool_lock);
}

uint64_t planners_watch(scheduler *s) {
  uint64_t now = clock_monotonic_us(), next = 0;
  pthread_mutex_lock(&s->pool_lock);
  planner *p = NULL;
  LL_FOREACH(s->lent, p) {
    if (p->user->is_unlimited) {
      continue;
    }
    uint64_t deadline = p->lent_us + PLANNING_LONGEST_US;
    if (deadline <= now && !p->is_overdue) {
      p->is_overdue = true;
      interrupt_locked(p);
    }
    if (deadline > now && (next == 0 || deadline < next)) {
      next = deadline;
    }
  }
  pthread_mutex_unlock(&s->pool_lock);
  return next;
}

/* -------------------------------------------------------------- warming up */

typedef struct warm_message {
  message base;
  arena *memory;
  job_settings settings;
} warm_message;

/* Set while a thread opens an engine to warm up, so that the first query waits for that one. */
static bool begin_warming(scheduler *s) {
  pthread_mutex_lock(&s->pool_lock);
  bool is_needed = !s->is_warming && s->idle == NULL && s->lent == NULL;
  s->is_warming = s->is_warming || is_needed;
  pthread_mutex_unlock(&s->pool_lock);
  return is_needed;
}

static void warm_up(scheduler *s, const job_settings *settings) {
  planner *p = NULL;
  hf_error error = {0};
  if (planner_open(s, settings, &p, &error) != HF_OK) {
    log_event(LOG_WARN, "scheduler", "warm=failed reason=%s",
              hf_status_name(error.code)); /* met again when needed */
  }
  hf_error_reset(&error);
  pthread_mutex_lock(&s->pool_lock);
  s->is_warming = false;
  planner *surplus = p == NULL ? NULL : put_idle_locked(s, p);
  pthread_cond_broadcast(&s->pool_changed);
  pthread_mutex_unlock(&s->pool_lock);
  planner_free(surplus);
}

static void warm_handle(scheduler *s, message *m) {
  warm_message *warm = (warm_message *)m;
  if (begin_warming(s)) {
    warm_up(s, &warm->settings);
  }
  arena_free(warm->memory);
}

void planners_warm(scheduler *s, const job_settings *settings) {
  arena *a = arena_new();
  warm_message *warm = a == NULL ? NULL : arena_alloc(a, sizeof *warm);
  if (warm == NULL || job_settings_copy(settings, a, &warm->settings, NULL) != HF_OK) {
    arena_free(a);
    return;
  }
  warm->base.handle = warm_handle;
  warm->memory = a;
  if (!event_queue_post(&s->plans, &warm->base.item)) {
    arena_free(a);
  }
}

/* ------------------------------------------------------------------ threads */

static void *planner_main(void *context) {
  scheduler *s = context;
  queue_item *item = NULL;
  while ((item = event_queue_take(&s->plans, 0)) != NULL) {
    message *m = (message *)item;
    m->handle(s, m);
  }
  return NULL;
}

hf_status planners_open(scheduler *s, unsigned n_threads, hf_error *error) {
  s->planners = mem_zalloc(n_threads, sizeof *s->planners);
  if (s->planners == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for planning threads");
  }
  for (; s->n_planners < n_threads; s->n_planners++) {
    HF_TRY(thread_start(&s->planners[s->n_planners], THREAD_PLANNING_STACK_BYTES, planner_main, s,
                        "hf-planner", error));
  }
  return HF_OK;
}

void planners_close(scheduler *s) {
  event_queue_close(&s->plans);
  for (unsigned i = 0; i < s->n_planners; i++) {
    pthread_join(s->planners[i], NULL);
  }
  mem_free(s->planners);
  planner *p = NULL, *next = NULL;
  LL_FOREACH_SAFE(s->idle, p, next) {
    planner_free(p);
  }
}

/* ------------------------------------------------------------- lending out */

typedef struct lend_call {
  call base;
  const job_settings *settings;
  hf_status (*use)(void *context, engine *planner, hf_error *error);
  void *context;
  hf_status status;
  hf_error error;
} lend_call;

static void lend_handle(scheduler *s, message *m) {
  lend_call *lend = (lend_call *)m;
  planner_user user = {.who = lend, .use = lend->use, .context = lend->context, .is_unlimited = true};
  lend->status = planner_use(s, lend->settings, &user, &lend->error);
  call_finish(&lend->base);
}

hf_status scheduler_with_planner(scheduler *s, const job_settings *settings,
                                 hf_status (*use)(void *context, engine *planner, hf_error *error),
                                 void *context, hf_error *error) {
  lend_call lend = {.settings = settings, .use = use, .context = context};
  call_init(&lend.base, lend_handle);
  if (!call_run(s, &s->plans, &lend.base)) {
    lend.status = error_set(&lend.error, HF_E_SESSION_CLOSED, "the engine is closed");
  }
  call_reset(&lend.base);
  if (lend.status != HF_OK) {
    error_move(error, &lend.error);
  }
  hf_error_reset(&lend.error);
  return lend.status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler's life: opening its parts, its thread and the one that deletes files,
 * closing in order.
 *
 * Invariants:
 * S1 jobs, owners, declarations and registry are touched by the scheduler's thread alone
 * S2 after each message all actions of the registry are performed before the next is taken
 * S3 a job is freed only after the handler that ended it has returned
 * S4 no file is deleted on the scheduler's thread, and none under a lock
 * S5 a waiting job holds no slot and no planning thread
 *
 * Running: run.c. Jobs: job.c. Held results: held.c. What is held, to users: holding.c.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"
#include "base/log.h"

enum { PLANNERS_BY_DEFAULT = 2 };

/* -------------------------------------------------------------- the thread */

void scheduler_settle(scheduler *s) {
  do {
    registry_action *action = NULL;
    while ((action = registry_actions_take(&s->actions)) != NULL) {
      held_perform(s, action);
      mem_free(action);
    }
  } while (leaving_settle(s));
  owners_settle(s);
  jobs_free_ended(s);
  if (s->closing != NULL && s->n_active == 0) {
    call *closing = s->closing;
    s->closing = NULL;
    call_finish(closing);
  }
}

static void *scheduler_main(void *context) {
  scheduler *s = context;
  for (;;) {
    uint64_t planned = planners_watch(s), leaving = leaving_watch(s);
    uint64_t deadline = planned == 0 || (leaving != 0 && leaving < planned) ? leaving : planned;
    message *m = (message *)event_queue_take(&s->events, deadline);
    if (m != NULL) {
      m->handle(s, m);
      scheduler_settle(s);
    } else if (deadline == 0) {
      return NULL; /* closed, after the planners */
    }
  }
}

/* ------------------------------------------------------------- the cleaner */

/* Deletes the files of stages and the directories of sessions on a thread of its own, so that neither the scheduler nor a
 * query waits for a disk. Whoever must know that files are gone queues a call behind them. */
typedef struct clean_item {
  message base;
  uuid session;
  job_id job; /* 0: the session's directory */
  stage_id stage;
} clean_item;

static void clean(scheduler *s, const clean_item *item) {
  if (item->job.value == 0) {
    executor_remove_session(s->executor, &item->session);
  } else {
    fault_point("scheduler.before_delete");
    executor_remove_stage(s->executor, &item->session, item->job, item->stage);
  }
}

static void clean_and_free(scheduler *s, message *m) {
  clean_item *item = (clean_item *)m;
  clean(s, item);
  mem_free(item);
}

static void post(scheduler *s, const clean_item *what) {
  clean_item *item = mem_alloc(sizeof *item);
  if (item == NULL) {
    log_event(LOG_WARN, "scheduler", "clean=inline reason=no_memory");
    clean(s, what);
    return;
  }
  *item = *what;
  item->base.handle = clean_and_free;
  event_queue_post(&s->cleans, &item->base.item);
}

void clean_stage(scheduler *s, const uuid *session, job_id id, stage_id stage) {
  clean_item item = {.session = *session, .job = id, .stage = stage};
  post(s, &item);
}

void clean_session(scheduler *s, const uuid *session) {
  clean_item item = {.session = *session};
  post(s, &item);
}

static void finish_call(scheduler *s, message *m) {
  (void)s;
  call_finish((call *)m);
}

void clean_then_finish(scheduler *s, call *c) {
  c->base.handle = finish_call;
  event_queue_post(&s->cleans, &c->base.item);
}

static void *cleaner_main(void *context) {
  scheduler *s = context;
  queue_item *item = NULL;
  while ((item = event_queue_take(&s->cleans, 0)) != NULL) {
    message *m = (message *)item;
    m->handle(s, m);
  }
  return NULL;
}

static hf_status cleaner_open(scheduler *s, hf_error *error) {
  return thread_start(&s->cleaner, 0, cleaner_main, s, "hf-cleaner", error);
}

static void cleaner_close(scheduler *s) {
  event_queue_close(&s->cleans);
  pthread_join(s->cleaner, NULL);
}

/* ------------------------------------------------------------------ opening */

static hf_status copy_options(scheduler *s, const scheduler_options *options, hf_error *error) {
  const char **dirs = arena_array(s->memory, options->n_allowed_dirs, sizeof *dirs);
  bool is_complete = dirs != NULL;
  for (size_t i = 0; is_complete && i < options->n_allowed_dirs; i++) {
    dirs[i] = arena_strdup(s->memory, options->allowed_dirs[i]);
    is_complete = dirs[i] != NULL;
  }
  s->allowed_dirs = dirs;
  s->n_allowed_dirs = options->n_allowed_dirs;
  if (options->extension_dir != NULL) {
    s->extension_dir = arena_strdup(s->memory, options->extension_dir);
    is_complete = is_complete && s->extension_dir != NULL;
  }
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a scheduler");
}

static hf_status open_tables(scheduler *s, const scheduler_options *options, hf_error *error) {
  s->declared = declarations_new();
  s->registry = s->declared == NULL ? NULL : registry_new(s->declared);
  if (s->registry == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a scheduler");
  }
  HF_TRY(durable_load(s, options->keeping, error));
  return registry_executor_back(s->registry, executor_id(s->executor), error);
}

/* The work directory, or what it lies in of a state directory. */
static const char *refused_dir(const scheduler *s, const scheduler_keeping *keeping) {
  const char *work = executor_work_dir(s->executor);
  return keeping != NULL && source_path_is_below(work, keeping->dir) ? keeping->dir : work;
}

static hf_status open_parts(scheduler *s, const scheduler_options *options, hf_error *error) {
  HF_TRY(copy_options(s, options, error));
  executor_options of_executor = {.work_dir = options->work_dir,
                                  .keep_id = options->keeping == NULL ? NULL : options->keeping->id,
                                  .threads = options->threads,
                                  .slots = options->slots,
                                  .memory_bytes = options->memory_bytes,
                                  .extension_dir = options->extension_dir,
                                  .report = report_receive,
                                  .report_context = s};
  HF_TRY(executor_open(&of_executor, &s->executor, error));
  leaving_open(s, options);
  source_catalog_options of_sources = {.allowed_dirs = s->allowed_dirs,
                                       .n_allowed_dirs = s->n_allowed_dirs,
                                       .refused_dir = refused_dir(s, options->keeping),
                                       .extension_dir = s->extension_dir};
  HF_TRY(source_catalog_new(&of_sources, &s->sources, error));
  return open_tables(s, options, error);
}

static hf_status open_threads(scheduler *s, unsigned n_planners, hf_error *error) {
  hf_status status = thread_start(&s->thread, 0, scheduler_main, s, "hf-scheduler", error);
  if (status != HF_OK) {
    return status;
  }
  status = cleaner_open(s, error);
  if (status == HF_OK) {
    status = planners_open(s, n_planners == 0 ? PLANNERS_BY_DEFAULT : n_planners, error);
    if (status == HF_OK) {
      return HF_OK;
    }
    planners_close(s);
    cleaner_close(s);
  }
  event_queue_close(&s->events);
  pthread_join(s->thread, NULL);
  return status;
}

/* Frees all but threads. */
static void free_parts(scheduler *s) {
  job *j = NULL, *next_job = NULL;
  HASH_ITER(hh, s->jobs, j, next_job) {
    HASH_DEL(s->jobs, j);
    job_free(j);
  }
  owner *of = NULL, *next_of = NULL;
  HASH_ITER(hh, s->owners, of, next_of) {
    HASH_DEL(s->owners, of);
    mem_free(of);
  }
  registry_actions_reset(&s->actions);
  registry_free(s->registry);
  declarations_free(s->declared);
  source_catalog_free(s->sources);
  executor_close(s->executor);
  reports_free(s);
  arena_free(s->memory);
  event_queue_destroy(&s->events);
  event_queue_destroy(&s->plans);
  event_queue_destroy(&s->cleans);
  pthread_mutex_destroy(&s->callers_lock);
  pthread_cond_destroy(&s->callers_left);
  pthread_mutex_destroy(&s->pool_lock);
  pthread_cond_destroy(&s->pool_changed);
  pthread_mutex_destroy(&s->reports_lock);
  mem_free(s);
}

hf_status scheduler_open(const scheduler_options *options, scheduler **out, hf_error *error) {
  scheduler *s = mem_zalloc(1, sizeof *s);
  if (s == NULL || (s->memory = arena_new()) == NULL) {
    mem_free(s);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a scheduler");
  }
  s->next_job = 1;
  event_queue_init(&s->events);
  event_queue_init(&s->plans);
  event_queue_init(&s->cleans);
  pthread_mutex_init(&s->callers_lock, NULL);
  cond_init(&s->callers_left);
  pthread_mutex_init(&s->pool_lock, NULL);
  cond_init(&s->pool_changed);
  pthread_mutex_init(&s->reports_lock, NULL);
  hf_status status = open_parts(s, options, error);
  if (status == HF_OK) {
    status = open_threads(s, options->planners, error);
  }
  if (status != HF_OK) {
    free_parts(s);
    return status;
  }
  durable_begin(s);
  *out = s;
  return HF_OK;
}

/* ------------------------------------------------------------------ closing */

/* All jobs shall end; the call returns when they have. */
static void stop_handle(scheduler *s, message *m) {
  s->is_closing = true;
  s->closing = (call *)m;
  job *j = NULL, *next = NULL;
  HASH_ITER(hh, s->jobs, j, next) {
    if (!job_is_over(j->state)) {
      job_cancel(s, j, HF_E_SESSION_CLOSED);
    }
  }
}

/* Results and holds that nobody let go lose their files; the call returns when these have gone. */
static void wipe_handle(scheduler *s, message *m) {
  job *j = NULL, *next_job = NULL;
  HASH_ITER(hh, s->jobs, j, next_job) {
    job_clean(s, j);
    clean_session(s, &j->session);
    HASH_DEL(s->jobs, j);
    job_free(j);
  }
  owner *of = NULL, *next_of = NULL;
  HASH_ITER(hh, s->owners, of, next_of) {
    if (!durable_keeps(s, &of->id)) {
      registry_remove_session(s->registry, &of->id, &s->actions);
    }
    scheduler_settle(s);
    clean_session(s, &of->id);
  }
  durable_end(s);
  clean_then_finish(s, (call *)m);
}

/* As call_run, for the closer, who comes after all callers. */
static void run_inside(scheduler *s, void (*handle)(scheduler *s, message *m)) {
  call c;
  call_init(&c, handle);
  event_queue_post(&s->events, &c.base.item);
  pthread_mutex_lock(&c.lock);
  while (!c.done) {
    cond_wait_until(&c.changed, &c.lock, 0);
  }
  pthread_mutex_unlock(&c.lock);
  call_reset(&c);
}

void scheduler_close(scheduler *s) {
  if (s == NULL) {
    return;
  }
  pthread_mutex_lock(&s->callers_lock);
  s->is_closed = true;
  pthread_mutex_unlock(&s->callers_lock);
  run_inside(s, stop_handle);
  pthread_mutex_lock(&s->callers_lock);
  while (s->callers > 0) {
    cond_wait_until(&s->callers_left, &s->callers_lock, 0);
  }
  pthread_mutex_unlock(&s->callers_lock);
  run_inside(s, wipe_handle);
  planners_close(s);
  event_queue_close(&s->events);
  pthread_join(s->thread, NULL);
  cleaner_close(s);
  free_parts(s);
}

/* -------------------------------------------------------------------- looks */

const char *scheduler_work_dir(const scheduler *s) {
  return executor_work_dir(s->executor);
}

source_catalog *scheduler_sources(scheduler *s) {
  return s->sources;
}

void scheduler_warm(scheduler *s, const job_settings *settings) {
  planners_warm(s, settings);
  stage_plan like = {.n_settings = settings->n_engine,
                     .settings = settings->engine,
                     .n_allowed_dirs = s->n_allowed_dirs,
                     .allowed_dirs = s->allowed_dirs,
                     .output.budget_bytes = settings->sink_budget_bytes};
  executor_warm(s->executor, &like);
}

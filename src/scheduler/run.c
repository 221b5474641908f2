/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a job on behalf of a caller: it is submitted, and the caller's thread
 * waits, looks at its cancel token (a flag, set by any thread or signal handler) and
 * tells progress. Calls: messages to a thread of the scheduler whose sender waits, and
 * the count of callers inside, for which closing waits.
 * Threads: scheduler_run the caller's; handlers and run_answer the scheduler's; calls any.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"

enum {
  CANCEL_POLL_US = 20000,    /* a signal handler can only set a flag: how soon it is seen */
  PROGRESS_POLL_US = 100000, /* about ten times a second */
  FILLS_DEEPEST = 100        /* held results below held results that progress looks through */
};

struct run {
  call base;
  message cancel;
  bool is_cancelling; /* guarded by base.lock: `cancel` is on its way */
  const job_request *request;
  job_id job; /* the scheduler's */
  hf_status status;
  hf_error error;
  job_result result;
  hf_profile profile;
  job_profile *observed; /* a reference */
};

/* ------------------------------------------------------------------- calls */

void call_init(call *c, void (*handle)(scheduler *s, message *m)) {
  c->base.handle = handle;
  c->done = false;
  pthread_mutex_init(&c->lock, NULL);
  cond_init(&c->changed);
}

void call_reset(call *c) {
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
}

bool call_run(scheduler *s, event_queue *queue, call *c) {
  if (!caller_enter(s)) {
    return false;
  }
  bool is_posted = event_queue_post(queue, &c->base.item);
  pthread_mutex_lock(&c->lock);
  while (is_posted && !c->done) {
    cond_wait_until(&c->changed, &c->lock, 0);
  }
  pthread_mutex_unlock(&c->lock);
  caller_leave(s);
  return is_posted;
}

void call_finish(call *c) {
  pthread_mutex_lock(&c->lock);
  c->done = true;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

bool caller_enter(scheduler *s) {
  pthread_mutex_lock(&s->callers_lock);
  bool is_open = !s->is_closed;
  s->callers += is_open ? 1 : 0;
  pthread_mutex_unlock(&s->callers_lock);
  return is_open;
}

void caller_leave(scheduler *s) {
  pthread_mutex_lock(&s->callers_lock);
  if (--s->callers == 0) {
    pthread_cond_broadcast(&s->callers_left);
  }
  pthread_mutex_unlock(&s->callers_lock);
}

/* ------------------------------------------------------------- cancel tokens */

struct hf_cancel {
  atomic_bool signalled; /* lock-free, so that a signal handler may set it */
};

hf_cancel *hf_cancel_new(void) {
  hf_cancel *cancel = mem_zalloc(1, sizeof *cancel);
  if (cancel != NULL) {
    atomic_init(&cancel->signalled, false);
  }
  return cancel;
}

void hf_cancel_signal(hf_cancel *cancel) {
  if (cancel != NULL) { /* hf_cancel_new had no memory */
    atomic_store(&cancel->signalled, true);
  }
}

void hf_cancel_free(hf_cancel *cancel) {
  mem_free(cancel);
}

bool cancel_is_signalled(const hf_cancel *cancel) {
  return cancel != NULL && atomic_load(&cancel->signalled);
}

/* -------------------------------------------------- on the scheduler's thread */

static void fail_at_once(run *r, hf_error *error) {
  r->status = error->code;
  error_move(&r->error, error);
  call_finish(&r->base);
}

static void submit_handle(scheduler *s, message *m) {
  run *r = (run *)m;
  hf_error error = {0};
  job *j = NULL;
  owner *of = owner_need(s, &r->request->session, &error);
  if (of == NULL || job_new(s, r->request, of, &j, &error) != HF_OK) {
    fail_at_once(r, &error);
    return;
  }
  j->run = r;
  r->job = j->id;
  job_raise(s, j, JOB_EVENT_START);
}

static void cancel_handle(scheduler *s, message *m) {
  run *r = (run *)((char *)m - offsetof(run, cancel));
  job *j = job_find(s, r->job);
  if (j != NULL && j->run == r) {
    job_cancel(s, j, HF_E_CANCELLED);
  }
  pthread_mutex_lock(&r->base.lock);
  r->is_cancelling = false;
  pthread_cond_signal(&r->base.changed);
  pthread_mutex_unlock(&r->base.lock);
}

/* Where the result lies, in an arena of its own. */
static hf_status make_result(scheduler *s, const job *j, job_result *out, hf_error *error) {
  arena *a = arena_new();
  const stage_run *last = &j->runs[j->n_runs - 1];
  uint32_t n = last->planned->n_tasks;
  block_ref *refs = a == NULL ? NULL : launch_output_refs(j, last, a);
  block_location *locations = refs == NULL ? NULL : arena_array(a, n, sizeof *locations);
  bool is_complete = locations != NULL;
  for (uint32_t t = 0; is_complete && t < n; t++) {
    locations[t].dir = executor_attempt_dir(s->executor, &refs[t], a);
    is_complete = locations[t].dir != NULL;
  }
  hf_status status = HF_OK;
  *out = (job_result){
      .job = j->id, .locations = locations, .n_locations = n, .ordered = last->planned->ordered, .memory = a};
  if (!is_complete) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a result");
  } else {
    status = schema_copy(&j->plan.columns, a, &out->columns, error);
  }
  if (status != HF_OK) {
    arena_free(a);
  }
  return status;
}

void run_answer(scheduler *s, run *r, job *j) {
  r->profile = j->profile;
  r->observed = profile_retain(j->observed);
  r->status = j->state == JOB_SUCCEEDED ? make_result(s, j, &r->result, &j->error) : j->error.code;
  if (r->status == HF_OK) {
    r->profile.result_rows = j->rows;
    r->profile.result_bytes = j->bytes;
  } else {
    error_move(&r->error, &j->error);
  }
  call_finish(&r->base);
}

/* ---------------------------------------------------------------- progress */

typedef struct target_call {
  call base;
  const run *of;
  job_id job;         /* what runs for it now */
  size_t done, tasks; /* of that one; tasks 0: it does not run */
} target_call;

/* While a job waits, the fill that it waits for runs in its place. */
static job_id running_for(const scheduler *s, job_id id) {
  for (int depth = 0; depth < FILLS_DEEPEST; depth++) {
    const job *j = job_find(s, id);
    const held_need *need = j == NULL || j->state != JOB_WAITING ? NULL : j->plan.needs;
    while (need != NULL && need->state != NEED_WAITING) {
      need = need->next;
    }
    if (need == NULL) {
      break;
    }
    id = need->fill;
  }
  return id;
}

static void target_handle(scheduler *s, message *m) {
  target_call *target = (target_call *)m;
  target->job = running_for(s, target->of->job);
  const job *j = job_find(s, target->job);
  for (size_t i = 0; j != NULL && i < j->n_runs; i++) {
    target->done += j->runs[i].n_done;
    target->tasks += j->runs[i].planned->n_tasks;
  }
  call_finish(&target->base);
}

/* Tells progress; false: the caller wants to stop. */
static bool tell_progress(scheduler *s, const run *r, const job_watch *watch) {
  target_call target = {.of = r};
  call_init(&target.base, target_handle);
  call_run(s, &s->events, &target.base);
  call_reset(&target.base);
  double fraction = -1;
  uint64_t rows = 0;
  if (!executor_progress(s->executor, target.job, &fraction, &rows)) {
    fraction = target.tasks > 1 ? 0 : -1;
    rows = 0;
  }
  if (target.tasks > 1) { /* tasks count alike */
    fraction = ((double)target.done + (fraction > 0 ? fraction : 0)) / (double)target.tasks;
  }
  return watch->progress(watch->progress_context, fraction, rows);
}

/* ---------------------------------------------------------------- waiting */

static uint64_t poll_interval_us(const job_watch *watch) {
  if (watch->cancel != NULL) {
    return CANCEL_POLL_US;
  }
  return watch->progress != NULL ? PROGRESS_POLL_US : 0;
}

/* Waits for an end or the deadline (0: none). True: it has ended, and no cancellation is on its way. */
static bool wait_a_while(run *r, uint64_t deadline_us) {
  bool in_time = true;
  pthread_mutex_lock(&r->base.lock);
  while ((!r->base.done || r->is_cancelling) && in_time) {
    in_time = cond_wait_until(&r->base.changed, &r->base.lock, deadline_us);
  }
  bool is_over = r->base.done && !r->is_cancelling;
  pthread_mutex_unlock(&r->base.lock);
  return is_over;
}

static void send_cancel(scheduler *s, run *r) {
  pthread_mutex_lock(&r->base.lock);
  r->is_cancelling = true;
  pthread_mutex_unlock(&r->base.lock);
  r->cancel.handle = cancel_handle;
  event_queue_post(&s->events, &r->cancel.item); /* open while this caller is inside */
}

static void wait_and_watch(scheduler *s, run *r, const job_watch *watch) {
  uint64_t interval = poll_interval_us(watch);
  uint64_t next_progress = clock_monotonic_us() + PROGRESS_POLL_US;
  bool is_cancelled = false;
  for (;;) {
    bool wants_cancel = !is_cancelled && cancel_is_signalled(watch->cancel);
    if (!is_cancelled && watch->progress != NULL && clock_monotonic_us() >= next_progress) {
      wants_cancel = !tell_progress(s, r, watch) || wants_cancel;
      next_progress = clock_monotonic_us() + PROGRESS_POLL_US;
    }
    if (wants_cancel) {
      is_cancelled = true;
      send_cancel(s, r);
    }
    if (wait_a_while(r, interval == 0 || is_cancelled ? 0 : clock_monotonic_us() + interval)) {
      return;
    }
  }
}

hf_status scheduler_run(scheduler *s, const job_request *request, const job_watch *watch, job_result *out,
                        hf_profile *profile, hf_error *error) {
  static const job_watch nobody = {0};
  run r = {.request = request};
  uint64_t started = clock_monotonic_us();
  call_init(&r.base, submit_handle);
  if (!caller_enter(s)) {
    r.status = error_set(&r.error, HF_E_SESSION_CLOSED, "the engine is closed");
  } else {
    event_queue_post(&s->events, &r.base.base.item);
    wait_and_watch(s, &r, watch == NULL ? &nobody : watch);
    caller_leave(s);
  }
  call_reset(&r.base);
  r.profile.elapsed_us = clock_monotonic_us() - started;
  if (profile != NULL) {
    *profile = r.profile;
  }
  if (watch != NULL && watch->profile != NULL) {
    profile_release(*watch->profile);
    *watch->profile = r.observed;
  } else {
    profile_release(r.observed);
  }
  if (r.status == HF_OK) {
    *out = r.result;
  } else {
    error_move(error, &r.error);
  }
  hf_error_reset(&r.error);
  return r.status;
}

/* --------------------------------------------------------------- releasing */

typedef struct release_message {
  message base;
  job_id job;
} release_message;

static void release_handle(scheduler *s, message *m) {
  release_message *release = (release_message *)m;
  job *j = job_find(s, release->job);
  if (j != NULL && j->state == JOB_SUCCEEDED) {
    job_clean(s, j);
    if (owner_find(s, &j->session) == NULL) {
      clean_session(s, &j->session); /* it has gone before its result */
    }
    HASH_DEL(s->jobs, j);
    job_free(j);
  }
  mem_free(release);
}

void scheduler_release_result(scheduler *s, job_id id) {
  release_message *release = mem_zalloc(1, sizeof *release);
  if (release == NULL) {
    return; /* the files go when the scheduler closes */
  }
  release->base.handle = release_handle;
  release->job = id;
  if (!event_queue_post(&s->events, &release->base.item)) {
    mem_free(release);
  }
}

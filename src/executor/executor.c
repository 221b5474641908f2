/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: opening and closing, the queue, cancelling, reports and paths.
 * Slots' threads are in slot.c, what an attempt does in task.c, its states in
 * executor_machine.c, the work directory in work_dir.c.
 *
 * X1  The queue holds exactly the queued attempts; a slot's `current` is in a
 *     state of attempt_is_in_slot.
 * X2  Reports are sent without a lock held.
 * X3  Paths are made of ids only.
 * Thread: any.
 */
#include "executor_internal.h"

#include "resources.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <string.h>

enum { MOST_SLOTS = 256 };

/* ---------------------------------------------------------------- attempts */

static task_report *report_new(const task_spec *spec, task_outcome outcome) {
  arena *a = arena_new();
  task_report *report = a == NULL ? NULL : arena_alloc(a, sizeof *report);
  if (report == NULL) {
    arena_free(a);
    return NULL;
  }
  *report = (task_report){.job = spec->job,
                          .stage = spec->stage,
                          .task = spec->task,
                          .attempt = spec->attempt,
                          .outcome = outcome,
                          .memory = a};
  return report;
}

void task_report_free(task_report *report) {
  if (report == NULL) {
    return;
  }
  hf_error_reset(&report->error);
  arena_free(report->memory);
}

void attempt_free(attempt *a) {
  if (a == NULL) {
    return;
  }
  task_report_free(a->started);
  task_report_free(a->ended);
  arena_free(a->memory);
}

/* *out is owned by the caller also after a failure (or NULL). */
static hf_status attempt_new(const void *plan, size_t plan_length, const void *spec, size_t spec_length,
                             attempt **out, hf_error *error) {
  arena *memory = arena_new();
  attempt *a = memory == NULL ? NULL : arena_alloc(memory, sizeof *a);
  if (a == NULL) {
    arena_free(memory);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a task");
  }
  a->memory = memory;
  *out = a;
  HF_TRY(task_spec_unpack(spec, spec_length, memory, &a->spec, error));
  a->plan = arena_strndup(memory, plan, plan_length);
  a->plan_length = plan_length;
  a->started = report_new(&a->spec, TASK_STARTED);
  a->ended = report_new(&a->spec, TASK_FAILED);
  if (a->plan == NULL || a->started == NULL || a->ended == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a task");
  }
  return HF_OK;
}

void executor_report_started(executor *x, attempt *a) {
  task_report *report = a->started;
  a->started = NULL;
  x->report(x->report_context, report);
}

void executor_report_ended(executor *x, attempt *a) {
  task_report *report = a->ended;
  a->ended = NULL;
  if (report->error.code != HF_OK) {
    report->error.job = report->job.value;
    report->error.stage = report->stage.value;
    report->error.task = report->task.value;
    report->error.attempt = report->attempt.value;
    memcpy(report->error.executor, x->id.text, sizeof x->id.text);
  }
  x->report(x->report_context, report);
}

/* --------------------------------------------------------------- the queue */

static bool is_attempt(const attempt *a, const task_spec *ids) {
  return a->spec.job.value == ids->job.value && a->spec.stage.value == ids->stage.value &&
         a->spec.task.value == ids->task.value && a->spec.attempt.value == ids->attempt.value;
}

static attempt *find_locked(executor *x, const task_spec *ids, slot **of) {
  for (unsigned i = 0; i < x->n_threads; i++) {
    attempt *a = x->slots[i].current;
    if (a != NULL && is_attempt(a, ids)) {
      assert(attempt_is_in_slot(a->state));
      *of = &x->slots[i];
      return a;
    }
  }
  for (attempt *a = x->first; a != NULL; a = a->next) {
    if (is_attempt(a, ids)) {
      assert(a->state == ATTEMPT_QUEUED);
      return a;
    }
  }
  return NULL;
}

void executor_unqueue_locked(executor *x, attempt *gone) {
  attempt *before = NULL;
  for (attempt *a = x->first; a != gone; a = a->next) {
    before = a;
  }
  *(before == NULL ? &x->first : &before->next) = gone->next;
  x->last = x->last == gone ? before : x->last;
}

/* Takes the attempt. */
static hf_status queue(executor *x, attempt *a, hf_error *error) {
  slot *of = NULL;
  a->queued_us = clock_monotonic_us();
  pthread_mutex_lock(&x->lock);
  bool is_known = find_locked(x, &a->spec, &of) != NULL, is_closing = x->closing;
  if (!is_known && !is_closing) {
    *(x->last == NULL ? &x->first : &x->last->next) = a;
    x->last = a;
    pthread_cond_broadcast(&x->work);
  }
  pthread_mutex_unlock(&x->lock);
  if (is_known || is_closing) {
    attempt_free(a);
    return is_known ? error_set(error, HF_E_PROTOCOL, "an attempt was submitted twice")
                    : error_set(error, HF_E_SESSION_CLOSED, "the executor is closing");
  }
  return HF_OK;
}

static hf_status attempt_read(const void *plan, size_t plan_length, const void *spec, size_t spec_length,
                              attempt **out, hf_error *error) {
  if (plan_length > STAGE_LARGEST_BYTES) {
    return error_set(error, HF_E_LIMIT, "a stage plan is larger than %zu bytes: %zu", STAGE_LARGEST_BYTES,
                     plan_length);
  }
  hf_status status = attempt_new(plan, plan_length, spec, spec_length, out, error);
  if (status != HF_OK) {
    attempt_free(*out);
  }
  return status;
}

hf_status executor_submit(executor *x, const void *plan, size_t plan_length, const void *spec,
                          size_t spec_length, hf_error *error) {
  attempt *a = NULL;
  HF_TRY(attempt_read(plan, plan_length, spec, spec_length, &a, error));
  return queue(x, a, error);
}

hf_status executor_submit_light(executor *x, const void *plan, size_t plan_length, const void *spec,
                                size_t spec_length, hf_error *error) {
  attempt *a = NULL;
  HF_TRY(attempt_read(plan, plan_length, spec, spec_length, &a, error));
  a->is_light = true;
  return queue(x, a, error);
}

bool executor_is_busy(executor *x) {
  pthread_mutex_lock(&x->lock);
  bool is_busy = true;
  for (unsigned i = 0; i < x->n_slots && x->first == NULL; i++) {
    is_busy = is_busy && x->slots[i].current != NULL;
  }
  pthread_mutex_unlock(&x->lock);
  return is_busy;
}

/* ------------------------------------------------------------------ cancel */

/* Steps the attempt; returns it when it ended here and is the caller's now, to be reported. */
static attempt *cancel_locked(executor *x, attempt *a, slot *of) {
  atomic_store(&a->cancelled, true);
  unsigned actions = executor_step(a, ATTEMPT_ON_CANCEL);
  if ((actions & ATTEMPT_INTERRUPT) != 0 && of->interruptible != NULL) {
    engine_interrupt(
        of->interruptible); /* only sets a flag; under the lock the slot cannot go on to another task */
  }
  atomic_store(&a->cancelled,
               true); /* after the interrupt: a statement that this ends has taken the interrupt in */
  if ((actions & ATTEMPT_UNQUEUE) == 0) {
    return NULL;
  }
  executor_unqueue_locked(x, a);
  return a;
}

static void report_cancelled(executor *x, attempt *a) {
  error_set(&a->ended->error, HF_E_CANCELLED, "the task was cancelled");
  executor_report_ended(x, a);
  attempt_free(a);
}

void executor_cancel(executor *x, job_id job, stage_id stage, task_id task, attempt_id number) {
  task_spec ids = {.job = job, .stage = stage, .task = task, .attempt = number};
  slot *of = NULL;
  pthread_mutex_lock(&x->lock);
  attempt *a = find_locked(x, &ids, &of);
  attempt *ended = a == NULL ? NULL : cancel_locked(x, a, of);
  pthread_mutex_unlock(&x->lock);
  if (ended != NULL) {
    report_cancelled(x, ended);
  }
}

bool executor_progress(executor *x, job_id job, double *fraction, uint64_t *rows) {
  unsigned running = 0, known = 0;
  double sum = 0;
  uint64_t total = 0;
  pthread_mutex_lock(&x->lock);
  for (unsigned i = 0; i < x->n_threads; i++) {
    const slot *s = &x->slots[i];
    if (s->current == NULL || s->current->spec.job.value != job.value) {
      continue;
    }
    running++;
    double part = -1;
    uint64_t read = 0;
    if (s->interruptible != NULL) {
      engine_progress(s->interruptible, &part, &read);
    }
    known += part >= 0;
    sum += part >= 0 ? part : 0;
    total += read;
  }
  pthread_mutex_unlock(&x->lock);
  if (running > 0) {
    *fraction = known == 0 ? -1 : sum / known;
    *rows = total;
  }
  return running > 0;
}

/* -------------------------------------------------------------------- warm */

void executor_warm(executor *x, const stage_plan *like) {
  arena *a = arena_new();
  stage_plan *copy = a == NULL ? NULL : arena_alloc(a, sizeof *copy);
  stage_setting *settings = a == NULL ? NULL : arena_array(a, like->n_settings, sizeof *settings);
  const char **dirs = a == NULL ? NULL : arena_array(a, like->n_allowed_dirs, sizeof *dirs);
  bool is_whole = copy != NULL && settings != NULL && dirs != NULL;
  for (size_t i = 0; is_whole && i < like->n_settings; i++) {
    settings[i].name = arena_strdup(a, like->settings[i].name);
    settings[i].value = arena_strdup(a, like->settings[i].value);
    is_whole = settings[i].name != NULL && settings[i].value != NULL;
  }
  for (size_t i = 0; is_whole && i < like->n_allowed_dirs; i++) {
    dirs[i] = arena_strdup(a, like->allowed_dirs[i]);
    is_whole = dirs[i] != NULL;
  }
  if (is_whole) {
    *copy = (stage_plan){.n_settings = like->n_settings,
                         .settings = settings,
                         .n_allowed_dirs = like->n_allowed_dirs,
                         .allowed_dirs = dirs,
                         .output.budget_bytes = like->output.budget_bytes};
    pthread_mutex_lock(&x->lock);
    arena *before = x->warm_memory;
    x->warm = copy;
    x->warm_memory = a;
    a = before;
    pthread_cond_broadcast(&x->work);
    pthread_mutex_unlock(&x->lock);
  }
  arena_free(a);
}

/* ------------------------------------------------------------------- paths */

const char *executor_attempt_dir(const executor *x, const block_ref *ref, arena *a) {
  return arena_printf(a, "%s/%s/%llu/%u/%u-%u", x->place.path, ref->session.text,
                      (unsigned long long)ref->job.value, ref->stage.value, ref->task.value,
                      ref->attempt.value);
}

hf_status executor_make_dir(executor *x, const char *dir, hf_error *error) {
  pthread_mutex_lock(&x->tree_lock);
  hf_status status = file_make_dirs(dir, error);
  pthread_mutex_unlock(&x->tree_lock);
  return status;
}

/* Removes `levels` directories upwards from that above `dir`, as far as they are empty. */
static void remove_empty_above(executor *x, const char *dir, int levels) {
  char *path = mem_strdup(dir);
  pthread_mutex_lock(&x->tree_lock);
  for (int i = 0; path != NULL && i < levels; i++) {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (!file_remove_empty_dir(path)) {
      break;
    }
  }
  pthread_mutex_unlock(&x->tree_lock);
  mem_free(path);
}

void executor_remove_attempt_dir(executor *x, const char *dir) {
  (void)file_remove_tree(dir,
                         NULL); /* what cannot be removed now is removed with the stage, or at the close */
  remove_empty_above(x, dir, 2);
}

void executor_remove_stage(executor *x, const uuid *session, job_id job, stage_id stage) {
  uuid checked;
  if (!uuid_parse(session->text, &checked)) {
    return;
  }
  buf dir = {0};
  buf_printf(&dir, "%s/%s/%llu/%u", x->place.path, checked.text, (unsigned long long)job.value, stage.value);
  if (!dir.failed) {
    block_keeper_forget(x->keeper, dir.data);
    (void)file_remove_tree(dir.data, NULL);
    remove_empty_above(x, dir.data, 1);
  }
  buf_reset(&dir);
}

void executor_remove_session(executor *x, const uuid *session) {
  uuid checked;
  if (!uuid_parse(session->text, &checked)) {
    return;
  }
  buf dir = {0};
  buf_printf(&dir, "%s/%s/", x->place.path, checked.text);
  if (!dir.failed) {
    remove_empty_above(x, dir.data, 1);
  }
  buf_reset(&dir);
}

const char *executor_work_dir(const executor *x) {
  return x->place.path;
}

const char *executor_id(const executor *x) {
  return x->id.text;
}

unsigned executor_slots(const executor *x) {
  return x->n_slots;
}

/* ---------------------------------------------------------- open and close */

static hf_status slots_start(executor *x, hf_error *error) {
  unsigned n = x->n_slots + 1; /* the spare one */
  x->slots = mem_zalloc(n, sizeof *x->slots);
  if (x->slots == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for %u slots", x->n_slots);
  }
  for (unsigned i = 0; i < n; i++) {
    x->slots[i].owner = x;
    x->slots[i].number = i;
  }
  for (unsigned i = 0; i < n; i++) {
    HF_TRY(thread_start(&x->slots[i].thread, THREAD_PLANNING_STACK_BYTES, slot_run, &x->slots[i], "hf-slot",
                        error));
    x->n_threads++;
  }
  return HF_OK;
}

hf_status executor_open(const executor_options *options, executor **out, hf_error *error) {
  executor *x = mem_zalloc(1, sizeof *x);
  if (x == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an executor");
  }
  unsigned threads = options->threads == 0 ? resources_threads() : options->threads;
  uint64_t memory_bytes = options->memory_bytes == 0 ? resources_memory_bytes() : options->memory_bytes;
  x->n_slots = options->slots == 0 ? 1 : options->slots > MOST_SLOTS ? MOST_SLOTS : options->slots;
  x->threads_each = threads / x->n_slots == 0 ? 1 : threads / x->n_slots;
  x->memory_each = memory_bytes / x->n_slots;
  x->report = options->report;
  x->report_context = options->report_context;
  x->id = uuid_new();
  pthread_mutex_init(&x->lock, NULL);
  pthread_mutex_init(&x->tree_lock, NULL);
  cond_init(&x->work);
  hf_status status = HF_OK;
  x->keeper = block_keeper_new();
  x->extension_dir = mem_strdup(options->extension_dir);
  if (x->keeper == NULL || (x->extension_dir == NULL && options->extension_dir != NULL)) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an executor");
  }
  if (status == HF_OK) {
    status = work_dir_open(options->work_dir, options->keep_id, &x->place, error);
  }
  if (status == HF_OK) {
    status = slots_start(x, error);
  }
  if (status != HF_OK) {
    executor_close(x);
    return status;
  }
  *out = x;
  return HF_OK;
}

/* Ends everything that is queued or running; returns the list of those that ended here. */
static attempt *close_begin(executor *x) {
  attempt *ended = NULL;
  pthread_mutex_lock(&x->lock);
  x->closing = true;
  while (x->first != NULL) {
    attempt *a = cancel_locked(x, x->first, NULL);
    a->next = ended;
    ended = a;
  }
  for (unsigned i = 0; i < x->n_threads; i++) {
    if (x->slots[i].current != NULL) {
      cancel_locked(x, x->slots[i].current, &x->slots[i]);
    }
  }
  pthread_cond_broadcast(&x->work);
  pthread_mutex_unlock(&x->lock);
  return ended;
}

void executor_close(executor *x) {
  if (x == NULL) {
    return;
  }
  for (attempt *a = close_begin(x), *next = NULL; a != NULL; a = next) {
    next = a->next;
    report_cancelled(x, a);
  }
  for (unsigned i = 0; i < x->n_threads; i++) {
    pthread_join(x->slots[i].thread, NULL);
  }
  block_keeper_free(x->keeper);
  work_dir_close(&x->place);
  arena_free(x->warm_memory);
  pthread_cond_destroy(&x->work);
  pthread_mutex_destroy(&x->tree_lock);
  pthread_mutex_destroy(&x->lock);
  mem_free(x->slots);
  mem_free(x->extension_dir);
  mem_free(x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: making them, performing what their machine says, ending them. What a job
 * has in each state: a planning step under way (planning), registry waits
 * (waiting), attempts with the executor (running), committed files (succeeded).
 * Leases and files go when it is over; a job is freed only after the handler that
 * ended it has returned.
 * Thread: the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "base/fault.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ making */

void job_free(job *j) {
  planning_reset(&j->plan);
  profile_release(j->observed);
  relation_release(j->relation);
  arena_free(j->memory);
  hf_error_reset(&j->error);
  mem_free(j);
}

static hf_status job_fill_in(job *j, const job_request *request, hf_error *error) {
  j->memory = arena_new();
  if (j->memory == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a job");
  }
  HF_TRY(job_settings_copy(&request->settings, j->memory, &j->settings, error));
  j->relation = relation_retain(request->relation);
  j->plan.session = j->session;
  j->plan.job = j->id;
  j->plan.relation = j->relation;
  j->plan.settings = &j->settings;
  return planning_begin(&j->plan, error);
}

hf_status job_new(scheduler *s, const job_request *request, owner *of, job **out, hf_error *error) {
  job *j = mem_zalloc(1, sizeof *j);
  if (j == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a job");
  }
  j->id.value = s->next_job++;
  j->session = request->session;
  j->state = JOB_QUEUED;
  j->started_us = clock_monotonic_us();
  j->profile.job = j->id.value;
  j->observed = profile_new(j->id.value);
  hf_status status = job_fill_in(j, request, error);
  if (status == HF_OK) {
    HASH_ADD(hh, s->jobs, id, sizeof j->id, j);
    if (j->hh.tbl == NULL) {
      status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a job");
    }
  }
  if (status != HF_OK) {
    job_free(j);
    return status;
  }
  j->owner = of;
  of->n_active++;
  leaving_note(s, of, &request->settings);
  s->n_active++;
  *out = j;
  return HF_OK;
}

job *job_find(const scheduler *s, job_id id) {
  job *j = NULL;
  HASH_FIND(hh, s->jobs, &id, sizeof id, j);
  return j;
}

/* ------------------------------------------------------------------ ending */

void job_clean(scheduler *s, const job *j) {
  for (stage_id stage = {1}; stage.value <= j->stage.value; stage.value++) {
    if (!registry_is_pinned(s->registry, j->id, stage)) {
      clean_stage(s, &j->session, j->id, stage);
    }
  }
}

/* Stages before its last, also of earlier plans, whose files are of no use any more. */
static void clean_earlier(scheduler *s, const job *j) {
  for (stage_id stage = {1}; stage.value < j->stage.value; stage.value++) {
    clean_stage(s, &j->session, j->id, stage);
  }
}

static void job_end(scheduler *s, job *j) {
  bool keeps_files = j->state == JOB_SUCCEEDED && !j->is_fill;
  j->profile.planning_us += j->plan.planning_us;
  observe_ended(j);
  held_leave(s, j);
  if (j->is_fill) {
    held_settle(s, j); /* before the cleanup of its own files */
  }
  registry_lease_drop(s->registry, j->id, &s->actions);
  if (keeps_files) {
    clean_earlier(s, j);
  } else {
    job_clean(s, j);
  }
  j->owner->n_active--;
  leaving_rested(s, j->owner);
  j->owner = NULL;
  s->n_active--;
  if (j->run != NULL) {
    run_answer(s, j->run, j);
    j->run = NULL;
  }
  j->n_runs = 0;
  j->runs = NULL;
  planning_reset(&j->plan);
  if (!keeps_files) {
    HASH_DEL(s->jobs, j);
    LL_PREPEND2(s->ended, j, next_ended);
  }
}

void jobs_free_ended(scheduler *s) {
  while (s->ended != NULL) {
    job *j = s->ended;
    s->ended = j->next_ended;
    job_free(j);
  }
}

/* ---------------------------------------------------------------- stepping */

/* Why it runs as one task, though more were asked for. */
static void note_fallback(job *j) {
  const char *why = j->plan.fallback;
  if (why != NULL) {
    snprintf(j->profile.fallback, sizeof j->profile.fallback, "%s", why);
  }
}

static void on_planned(scheduler *s, message *m) {
  job *j = job_find(s, ((planning *)m)->job);
  if (job_stop_now(s, j)) {
    return;
  }
  if (j->plan.status != HF_OK) {
    job_fail(s, j, &j->plan.error);
    return;
  }
  note_fallback(j);
  held_count(s, j);
  job_raise(s, j, j->plan.needs_held ? JOB_EVENT_NEEDS_HELD : JOB_EVENT_PLANNED);
}

static void plan(scheduler *s, job *j) {
  j->n_runs = 0; /* their memory is the plan's */
  j->runs = NULL;
  j->rows = j->bytes = j->run_bytes = 0;
  j->plan.first_stage.value = j->stage.value + 1;
  j->plan.is_fill = j->is_fill;
  planning_post(s, &j->plan, on_planned);
}

static void perform(scheduler *s, job *j, job_action action) {
  switch (action) {
    case JOB_DO_PLAN:
      plan(s, j);
      break;
    case JOB_DO_ASK:
      held_ask(s, j);
      break;
    case JOB_DO_LAUNCH:
      launch_job(s, j);
      break;
    case JOB_DO_REPLAN:
      j->replans++;
      observe_note(j, (stage_id){0}, "planned again after stage %u: a block of a held result was lost",
                   j->stage.value);
      held_forget(s, j);
      plan(s, j);
      break;
    case JOB_DO_INTERRUPT:
      planner_interrupt(s, &j->plan);
      break;
    case JOB_DO_RECALL:
      launch_recall(s, j);
      break;
    case JOB_DO_END:
      job_end(s, j);
      break;
    case JOB_DO_NOTHING:
    case JOB_DO_DEFECT:
      break;
  }
}

void job_raise(scheduler *s, job *j, job_event event) {
  perform(s, j, job_step(&j->state, event, j->id));
}

static void take_error(job *j, hf_error *error) {
  error_move(&j->error, error);
  if (j->error.code == HF_OK) {
    error_set(&j->error, HF_E_INTERNAL, "a job failed without an error");
  }
  if (j->error.job == 0) {
    j->error.job = j->id.value;
  }
}

void job_fail(scheduler *s, job *j, hf_error *error) {
  take_error(j, error);
  job_raise(s, j, JOB_EVENT_FAIL);
}

void job_drain(scheduler *s, job *j, job_event event, hf_error *error) {
  if (j->is_draining) {
    return;
  }
  j->is_draining = true;
  j->drained = event;
  if (event == JOB_EVENT_FAIL) {
    take_error(j, error);
  }
  if (j->n_running == 0) {
    job_raise(s, j, event);
  } else {
    launch_recall(s, j);
  }
}

static void stop_error(job *j) {
  if (j->stop == HF_E_SESSION_CLOSED) {
    error_set(&j->error, j->stop, "the session was closed while the query ran");
  } else {
    error_set(&j->error, j->stop, "the query was cancelled");
  }
  j->error.job = j->id.value;
}

void job_cancel(scheduler *s, job *j, hf_status code) {
  if (!job_is_over(j->state) && j->stop == HF_OK) {
    j->stop = code;
    stop_error(j);
  }
  job_raise(s, j, JOB_EVENT_CANCEL);
  fault_point("scheduler.cancels");
}

bool job_stop_now(scheduler *s, job *j) {
  if (j->stop == HF_OK) {
    return false;
  }
  job_raise(s, j, JOB_EVENT_ENDED);
  return true;
}

/* ------------------------------------------------------------------ owners */

owner *owner_find(const scheduler *s, const uuid *id) {
  owner *of = NULL;
  HASH_FIND_STR(s->owners, id->text, of);
  return of;
}

bool owner_was_removed(const scheduler *s, const uuid *id) {
  for (size_t i = 0; i < REMOVED_KEPT; i++) {
    if (uuid_equal(&s->removed[i], id)) {
      return true;
    }
  }
  return false;
}

owner *owner_need(scheduler *s, const uuid *id, hf_error *error) {
  owner *of = owner_find(s, id);
  if (s->is_closing || (of == NULL ? owner_was_removed(s, id) : of->removal != NULL)) {
    error_set(error, HF_E_SESSION_CLOSED, "the session is closed");
    return NULL;
  }
  if (of != NULL) {
    return of;
  }
  of = mem_zalloc(1, sizeof *of);
  if (of != NULL) {
    of->id = *id;
    HASH_ADD_STR(s->owners, id.text, of);
    if (of->hh.tbl != NULL) {
      return of;
    }
  }
  mem_free(of);
  error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a session");
  return NULL;
}

void owner_forget(scheduler *s, const uuid *id) {
  s->removed[s->n_removed++ % REMOVED_KEPT] = *id;
}

/* Its jobs are over: its holds go, and the call returns when their files have gone. */
static void owner_remove(scheduler *s, owner *of) {
  if (!durable_keeps(s, &of->id)) {
    s->held_bytes -= of->held_bytes;
    registry_remove_session(s->registry, &of->id, &s->actions);
    declarations_remove_session(s->declared, &of->id);
  }
  registry_action *action = NULL;
  while ((action = registry_actions_take(&s->actions)) != NULL) {
    held_perform(s, action);
    mem_free(action);
  }
  owner_forget(s, &of->id);
  clean_session(s, &of->id);
  clean_then_finish(s, of->removal);
  HASH_DEL(s->owners, of);
  mem_free(of);
}

void owners_settle(scheduler *s) {
  owner *of = NULL, *next = NULL;
  HASH_ITER(hh, s->owners, of, next) {
    if (of->removal != NULL && of->n_active == 0) {
      owner_remove(s, of);
    }
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of attempts: received on a slot's thread, queued, and turned into
 * events of task, stage and job. A late report (of an attempt that is not the
 * current one) is dropped.
 * Threads: report_receive a slot's, the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/log.h"

/* Receiving must not lack memory: the nodes are reserved when an attempt is submitted. */
struct report_message {
  message base;
  report_message *next;
  task_report *report;
};

enum { REPORTS_OF_AN_ATTEMPT = 2 }; /* started, ended */

hf_status report_reserve(scheduler *s, hf_error *error) {
  for (int i = 0; i < REPORTS_OF_AN_ATTEMPT; i++) {
    report_message *m = mem_zalloc(1, sizeof *m);
    if (m == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to launch a task");
    }
    pthread_mutex_lock(&s->reports_lock);
    LL_PREPEND(s->spare_reports, m);
    pthread_mutex_unlock(&s->reports_lock);
  }
  return HF_OK;
}

void reports_free(scheduler *s) {
  report_message *m = NULL, *next = NULL;
  LL_FOREACH_SAFE(s->spare_reports, m, next) {
    mem_free(m);
  }
  s->spare_reports = NULL;
}

static void handle(scheduler *s, message *m);

void report_receive(void *context, task_report *report) {
  scheduler *s = context;
  pthread_mutex_lock(&s->reports_lock);
  report_message *m = s->spare_reports;
  if (m != NULL) {
    LL_DELETE(s->spare_reports, m);
  }
  pthread_mutex_unlock(&s->reports_lock);
  if (m == NULL) {
    log_event(LOG_ERROR, "scheduler", "defect=report_not_reserved job=%llu",
              (unsigned long long)report->job.value);
    task_report_free(report);
    return;
  }
  m->base.handle = handle;
  m->report = report;
  event_queue_post(&s->events, &m->base.item);
}

/* ---------------------------------------------------------------- handling */

static void count(job *j, const task_report *report) {
  hf_profile *profile = &j->profile;
  /* Blocks that are not of a held result are client data: a job has one stage. */
  profile->source_rows += report->source_rows + (report->block_rows - report->held_rows);
  profile->source_files += report->source_files;
  profile->held_rows += report->held_rows;
  if (report->peak_memory_bytes > profile->peak_memory_bytes) {
    profile->peak_memory_bytes = report->peak_memory_bytes;
  }
}

static void on_started(job *j) {
  j->profile.tasks_run++;
  task_step(&j->task_state, TASK_EVENT_STARTED, j->id, j->attempt);
  stage_step(&j->stage_state, STAGE_EVENT_STARTED, j->id, j->stage);
}

static void on_finished(scheduler *s, job *j, const task_report *report) {
  j->rows = report->output.rows;
  j->bytes = report->output.bytes;
  task_step(&j->task_state, TASK_EVENT_FINISHED, j->id, j->attempt);
  if (stage_step(&j->stage_state, STAGE_EVENT_TASKS_DONE, j->id, j->stage) == STAGE_DO_FINISH) {
    job_raise(s, j, JOB_EVENT_DONE);
  }
}

/* Drops the entry that this job read, unless another generation has taken its place. */
static void drop_lost(scheduler *s, job *j, const task_report *report) {
  const held_need *need = planning_need(&j->plan, &report->lost_held_key);
  entry_view view;
  registry_lookup(s->registry, &report->lost_held_key, &view);
  if (need != NULL && view.generation == need->info.generation) {
    const char *why = report->error.code == HF_E_BLOCK_MISSING ? "block missing" : "block altered";
    registry_invalidate(s->registry, &report->lost_held_key, why, &s->actions);
  }
}

static void on_failed(scheduler *s, job *j, task_report *report) {
  bool is_lost = report->error.error_class == HF_CLASS_FETCH && !uuid_is_none(&report->lost_held_key);
  if (is_lost) {
    drop_lost(s, j, report);
  }
  if (is_lost && j->replans < REPLANS_AT_MOST) {
    stage_step(&j->stage_state, STAGE_EVENT_ROLLBACK, j->id, j->stage);
    job_raise(s, j, JOB_EVENT_HELD_LOST);
    return;
  }
  task_event event = task_failure(report->error.error_class, j->attempt.value);
  if (task_step(&j->task_state, event, j->id, j->attempt) == TASK_DO_SUBMIT) {
    launch_attempt(s, j);
    return;
  }
  launch_locate_error(&j->plan, &report->error);
  job_fail(s, j, &report->error);
}

static void dispatch(scheduler *s, job *j, task_report *report) {
  if (report->outcome == TASK_STARTED) {
    on_started(j);
    return;
  }
  count(j, report);
  if (job_stop_now(s, j)) {
    return;
  }
  if (report->outcome == TASK_FINISHED) {
    on_finished(s, j, report);
  } else {
    on_failed(s, j, report);
  }
}

static void handle(scheduler *s, message *m) {
  report_message *received = (report_message *)m;
  task_report *report = received->report;
  mem_free(received);
  job *j = job_find(s, report->job);
  bool is_current = j != NULL && j->state == JOB_RUNNING && report->stage.value == j->stage.value &&
                    report->attempt.value == j->attempt.value;
  if (is_current) {
    dispatch(s, j, report);
  } else {
    log_event(LOG_WARN, "scheduler", "report=late job=%llu stage=%u attempt=%u",
              (unsigned long long)report->job.value, report->stage.value, report->attempt.value);
  }
  task_report_free(report);
}

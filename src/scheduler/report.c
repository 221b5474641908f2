/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of attempts: received on a slot's thread, queued, and turned into
 * events of task, stage and job. A late report (of an attempt that is not the
 * current one) is dropped.
 * Threads: report_receive a slot's, the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/log.h"

/*
 * Receiving must not lack memory: the nodes are reserved when an attempt is submitted. One that ends before it has started
 * leaves a node for the next.
 */
struct report_message {
  message base;
  report_message *next;
  task_report *report;
};

enum { REPORTS_OF_AN_ATTEMPT = 2 }; /* started, ended */

hf_status report_reserve(scheduler *s, hf_error *error) {
  hf_status status = HF_OK;
  size_t n_wanted = (s->n_attempts + 1) * REPORTS_OF_AN_ATTEMPT;
  pthread_mutex_lock(&s->reports_lock);
  while (status == HF_OK && s->n_spare_reports < n_wanted) {
    report_message *m = mem_zalloc(1, sizeof *m);
    if (m == NULL) {
      status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory to launch a task");
    } else {
      LL_PREPEND(s->spare_reports, m);
      s->n_spare_reports++;
    }
  }
  pthread_mutex_unlock(&s->reports_lock);
  return status;
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
    s->n_spare_reports--;
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
  /* Blocks that are neither of a held result nor of an earlier stage are client data. */
  profile->source_rows += report->source_rows + (report->block_rows - report->held_rows - report->own_rows);
  profile->source_files += report->source_files;
  profile->held_rows += report->held_rows;
  profile->held_blocks += report->held_blocks;
  profile->held_blocks_skipped += report->held_blocks_all - report->held_blocks;
  if (report->peak_memory_bytes > profile->peak_memory_bytes) {
    profile->peak_memory_bytes = report->peak_memory_bytes;
  }
}

static void count_with_rows(job *j, stage_run *stage, const task_report *report) {
  if (report->output.rows + report->source_rows + report->block_rows > 0) {
    stage->n_with_rows++;
  }
  if (stage->n_with_rows > j->profile.widest_tasks) {
    j->profile.widest_tasks = stage->n_with_rows;
  }
}

/* An attempt, where its job keeps it. */
typedef struct reported {
  job *job;
  stage_run *stage;
  uint32_t task; /* its place */
} reported;

static void on_started(const reported *at) {
  job *j = at->job;
  j->profile.tasks_run++;
  j->profile.stages_run += at->stage->state == STAGE_READY ? 1 : 0;
  if (j->is_draining) {
    return; /* it shall end, and its stage may be rolled back */
  }
  task_step(&at->stage->tasks[at->task].state, TASK_EVENT_STARTED, j->id, at->stage->tasks[at->task].attempt);
  stage_step(&at->stage->state, STAGE_EVENT_STARTED, j->id, at->stage->planned->id);
}

/* The stage has read its inputs: those that nobody else reads go. */
static void let_inputs_go(scheduler *s, job *j, const stage_run *stage) {
  for (size_t i = 0; i < stage->planned->n_inputs; i++) {
    const planned_input *input = &stage->planned->inputs[i];
    if (!input->is_stage || --j->runs[input->from].n_reads_left > 0) {
      continue;
    }
    stage_id done = j->runs[input->from].planned->id;
    j->run_bytes -= j->runs[input->from].bytes;
    if (!registry_is_pinned(s->registry, j->id, done)) {
      clean_stage(s, &j->session, j->id, done);
    }
  }
}

static void on_finished(scheduler *s, const reported *at, const task_report *report) {
  job *j = at->job;
  stage_run *stage = at->stage;
  hf_error error = {0};
  bool is_last = stage == &j->runs[j->n_runs - 1];
  j->rows += is_last ? report->output.rows : 0;
  j->bytes += is_last ? report->output.bytes : 0;
  if (!is_last || !j->is_fill) {
    stage->rows += report->output.rows;
    stage->bytes += report->output.bytes;
    j->run_bytes += report->output.bytes;
    again_gather(j, stage, &report->output);
  }
  count_with_rows(j, stage, report);
  task_step(&stage->tasks[at->task].state, TASK_EVENT_FINISHED, j->id, stage->tasks[at->task].attempt);
  if (leaving_check_running(s, &error) != HF_OK) {
    job_drain(s, j, JOB_EVENT_FAIL, &error);
    return;
  }
  if (++stage->n_done < stage->planned->n_tasks ||
      stage_step(&stage->state, STAGE_EVENT_TASKS_DONE, j->id, stage->planned->id) != STAGE_DO_FINISH) {
    return;
  }
  let_inputs_go(s, j, stage);
  if (is_last) {
    job_raise(s, j, JOB_EVENT_DONE);
  } else if (!again_try(s, j, stage)) {
    launch_ready(s, j);
  }
}

/* Drops the entry that this job read, unless it has gone already: another generation, or its claim, is left alone. */
static void drop_lost(scheduler *s, job *j, const task_report *report) {
  const held_need *need = planning_need(&j->plan, &report->lost_held_key);
  entry_view view;
  entry_state state = registry_lookup(s->registry, &report->lost_held_key, &view);
  bool is_there = state == ENTRY_MATERIALISED || state == ENTRY_UNAVAILABLE;
  if (need != NULL && is_there && view.generation == need->info.generation) {
    const char *why = report->error.code == HF_E_BLOCK_MISSING ? "block missing" : "block altered";
    held_drop(s, &report->lost_held_key, why);
  }
}

static void on_failed(scheduler *s, const reported *at, task_report *report) {
  job *j = at->job;
  stage_task *task = &at->stage->tasks[at->task];
  bool is_lost = report->error.error_class == HF_CLASS_FETCH && !uuid_is_none(&report->lost_held_key);
  if (is_lost) {
    drop_lost(s, j, report);
  }
  if (is_lost && j->replans <= REPLANS_AT_MOST) { /* the last time without held results */
    stage_step(&at->stage->state, STAGE_EVENT_ROLLBACK, j->id, at->stage->planned->id);
    job_drain(s, j, JOB_EVENT_HELD_LOST, NULL);
    return;
  }
  task_event event = task_failure(report->error.error_class, task->attempt.value);
  if (task_step(&task->state, event, j->id, task->attempt) == TASK_DO_SUBMIT) {
    launch_attempt(s, j, at->stage, at->task);
    return;
  }
  launch_locate_error(&j->plan, &report->error);
  if (j->plan.graph.n_stages > 0) {
    cut_clean_error(&j->plan.graph.stages[at->stage - j->runs], &report->error);
  }
  job_drain(s, j, JOB_EVENT_FAIL, &report->error);
}

bool report_is_ending(scheduler *s, job *j) {
  if (j->stop == HF_OK && !j->is_draining) {
    return false;
  }
  if (j->n_running == 0 && !job_stop_now(s, j)) {
    job_raise(s, j, j->drained);
  }
  return true;
}

static void dispatch(scheduler *s, const reported *at, task_report *report) {
  if (report->outcome == TASK_STARTED) {
    on_started(at);
    return;
  }
  at->job->n_running--;
  observe_reported(at->job, report);
  count(at->job, report);
  if (report_is_ending(s, at->job)) {
    return;
  }
  if (report->outcome == TASK_FINISHED) {
    on_finished(s, at, report);
  } else {
    on_failed(s, at, report);
  }
}

/* False: not a current attempt of a job that runs. */
static bool find_attempt(const scheduler *s, const task_report *report, reported *out) {
  job *j = job_find(s, report->job);
  *out = (reported){.job = j, .task = report->task.value - 1};
  for (size_t i = 0; j != NULL && j->state == JOB_RUNNING && i < j->n_runs; i++) {
    if (j->runs[i].planned->id.value == report->stage.value) {
      out->stage = &j->runs[i];
    }
  }
  return out->stage != NULL && out->task < out->stage->planned->n_tasks &&
         out->stage->tasks[out->task].attempt.value == report->attempt.value;
}

static void handle(scheduler *s, message *m) {
  report_message *received = (report_message *)m;
  task_report *report = received->report;
  mem_free(received);
  s->n_attempts -= report->outcome == TASK_STARTED ? 0 : 1;
  reported at;
  if (find_attempt(s, report, &at)) {
    dispatch(s, &at, report);
  } else {
    log_event(LOG_WARN, "scheduler", "report=late job=%llu stage=%u attempt=%u",
              (unsigned long long)report->job.value, report->stage.value, report->attempt.value);
  }
  task_report_free(report);
}

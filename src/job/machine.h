/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machines of jobs, stages and tasks: pure tables (job_machine.c,
 * stage_machine.c, task_machine.c). `x_step` alone writes a state; it does no
 * I/O, reads no clock, and returns the action that the caller performs.
 * Thread: the scheduler's.
 */
#ifndef HF_JOB_MACHINE_H
#define HF_JOB_MACHINE_H

#include "base/id.h"

/* -------------------------------------------------------------------- jobs */

/* X(state, name, what is true in it) */
#define JOB_STATES(X)                                                                                \
  X(JOB_QUEUED, "queued", "known, nothing begun")                                                    \
  X(JOB_PLANNING, "planning", "one planning step is queued or runs on a planning thread")            \
  X(JOB_WAITING, "waiting", "planned as far as held results are known; holds no slot and no thread") \
  X(JOB_RUNNING, "running", "a stage is launched and a task of it is with the executor")             \
  X(JOB_SUCCEEDED, "succeeded", "its output is committed")                                           \
  X(JOB_FAILED, "failed", "its error is set, nothing runs for it")                                   \
  X(JOB_CANCELLED, "cancelled", "as failed, by its user or because nobody wants it")

/* X(event, name, what happened) */
#define JOB_EVENTS(X)                                                                         \
  X(JOB_EVENT_START, "start", "it was submitted")                                             \
  X(JOB_EVENT_NEEDS_HELD, "needs_held", "planning must know of held results first")           \
  X(JOB_EVENT_ANSWERED, "answered", "all of them are known now")                              \
  X(JOB_EVENT_PLANNED, "planned", "the stage is ready to launch")                             \
  X(JOB_EVENT_DONE, "done", "the last stage is done")                                         \
  X(JOB_EVENT_HELD_LOST, "held_lost", "a held block was lost; no row of the result has left") \
  X(JOB_EVENT_FAIL, "fail", "it cannot go on and nothing runs for it")                        \
  X(JOB_EVENT_CANCEL, "cancel", "it shall end")                                               \
  X(JOB_EVENT_ENDED, "ended", "what ran for a job that shall end has ended")

typedef enum job_state {
#define X(id, name, sentence) id,
  JOB_STATES(X)
#undef X
      JOB_STATE_COUNT
} job_state;

typedef enum job_event {
#define X(id, name, sentence) id,
  JOB_EVENTS(X)
#undef X
      JOB_EVENT_COUNT
} job_event;

typedef enum job_action {
  JOB_DO_NOTHING,
  JOB_DO_PLAN,      /* queue a planning step */
  JOB_DO_ASK,       /* ask the registry for each held result that planning needs */
  JOB_DO_LAUNCH,    /* submit the tasks of the stages that are ready */
  JOB_DO_REPLAN,    /* forget what was known of held results, queue a planning step */
  JOB_DO_INTERRUPT, /* interrupt the planning step; its return ends the job */
  JOB_DO_RECALL,    /* cancel the tasks; the last report ends the job */
  JOB_DO_END,       /* settle claims, waits, leases and files, answer the caller */
  JOB_DO_DEFECT     /* no such row */
} job_action;

job_action job_step(job_state *state, job_event event, job_id job);
bool job_is_over(job_state state);
const char *job_state_name(job_state state);
const char *job_event_name(job_event event);

/* ------------------------------------------------------------------ stages */

#define STAGE_STATES(X)                                                    \
  X(STAGE_WAITING, "waiting", "some input is not there")                   \
  X(STAGE_READY, "ready", "all inputs are there, its tasks are submitted") \
  X(STAGE_RUNNING, "running", "a task has started")                        \
  X(STAGE_DONE, "done", "all tasks are done, their output is committed")

#define STAGE_EVENTS(X)                                                                      \
  X(STAGE_EVENT_INPUTS_READY, "inputs_ready", "all inputs are there")                        \
  X(STAGE_EVENT_STARTED, "started", "a task has started")                                    \
  X(STAGE_EVENT_TASKS_DONE, "tasks_done", "its last task is done")                           \
  X(STAGE_EVENT_OUTPUT_LOST, "output_lost", "committed output that is still needed is gone") \
  X(STAGE_EVENT_ROLLBACK, "rollback", "an input was lost")

typedef enum stage_state {
#define X(id, name, sentence) id,
  STAGE_STATES(X)
#undef X
      STAGE_STATE_COUNT
} stage_state;

typedef enum stage_event {
#define X(id, name, sentence) id,
  STAGE_EVENTS(X)
#undef X
      STAGE_EVENT_COUNT
} stage_event;

typedef enum stage_action {
  STAGE_DO_NOTHING,
  STAGE_DO_SUBMIT, /* submit its tasks */
  STAGE_DO_FINISH, /* tell its readers, or the job */
  STAGE_DO_RERUN,  /* submit the tasks whose output is gone */
  STAGE_DO_DEFECT
} stage_action;

stage_action stage_step(stage_state *state, stage_event event, job_id job, stage_id stage);
const char *stage_state_name(stage_state state);

/* ------------------------------------------------------------------- tasks */

#define TASK_STATES(X)                                          \
  X(TASK_PENDING, "pending", "its current attempt is queued")   \
  X(TASK_RUNNING, "running", "its current attempt has started") \
  X(TASK_DONE, "done", "an attempt was accepted")               \
  X(TASK_GIVEN_UP, "failed", "its last attempt has failed for good")

#define TASK_EVENTS(X)                                                                           \
  X(TASK_EVENT_STARTED, "started", "the current attempt has started")                            \
  X(TASK_EVENT_FINISHED, "finished", "the current attempt has committed")                        \
  X(TASK_EVENT_FAILED, "failed", "the current attempt has failed, and trying again cannot help") \
  X(TASK_EVENT_RETRY, "retry", "the current attempt has failed, and may be tried again")         \
  X(TASK_EVENT_OUTPUT_LOST, "output_lost", "the accepted attempt's output is gone")

typedef enum task_state {
#define X(id, name, sentence) id,
  TASK_STATES(X)
#undef X
      TASK_STATE_COUNT
} task_state;

typedef enum task_event {
#define X(id, name, sentence) id,
  TASK_EVENTS(X)
#undef X
      TASK_EVENT_COUNT
} task_event;

typedef enum task_action {
  TASK_DO_NOTHING,
  TASK_DO_SUBMIT, /* submit the next attempt */
  TASK_DO_ACCEPT, /* its output counts */
  TASK_DO_FAIL,   /* fail the job */
  TASK_DO_DEFECT
} task_action;

enum { TASK_ATTEMPTS_AT_MOST = 4 };

/* Which event a failed attempt is, `attempts` made so far: RETRYABLE is tried again until TASK_ATTEMPTS_AT_MOST; a resource
 * that lacks in the only executor lacks again, and the user's errors repeat. */
task_event task_failure(hf_error_class error_class, unsigned attempts);
task_action task_step(task_state *state, task_event event, job_id job, attempt_id attempt);
const char *task_state_name(task_state state);

#endif

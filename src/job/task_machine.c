/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of a task, as a table, and the rule which failures are tried again.
 *
 *   pending ─started─► running ─finished─► done
 *      ▲  ▲               │  └───failed───► failed
 *      │  └─────retry─────┘                  done ─output_lost─► pending
 *
 * Attempts are numbered; reports of another attempt than the current one are dropped before they come here.
 * Thread: the scheduler's.
 */
#include "job/machine.h"

#include "base/log.h"

typedef struct task_row {
  task_state state;
  task_event event;
  task_state next;
  task_action action;
} task_row;

static const task_row rows[] = {
    {TASK_PENDING, TASK_EVENT_STARTED, TASK_RUNNING, TASK_DO_NOTHING},
    {TASK_PENDING, TASK_EVENT_FAILED, TASK_GIVEN_UP,
     TASK_DO_FAIL}, /* before it started: cancelled, no slot */
    {TASK_PENDING, TASK_EVENT_RETRY, TASK_PENDING, TASK_DO_SUBMIT}, /* before it started */
    {TASK_RUNNING, TASK_EVENT_FINISHED, TASK_DONE, TASK_DO_ACCEPT},
    {TASK_RUNNING, TASK_EVENT_FAILED, TASK_GIVEN_UP, TASK_DO_FAIL},
    {TASK_RUNNING, TASK_EVENT_RETRY, TASK_PENDING, TASK_DO_SUBMIT},
    {TASK_DONE, TASK_EVENT_OUTPUT_LOST, TASK_PENDING, TASK_DO_SUBMIT},
};

static const char *event_name(task_event event) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      TASK_EVENTS(X)
#undef X
  };
  return names[event];
}

const char *task_state_name(task_state state) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      TASK_STATES(X)
#undef X
  };
  return names[state];
}

task_event task_failure(hf_error_class error_class, unsigned attempts) {
  return error_class == HF_CLASS_RETRYABLE && attempts < TASK_ATTEMPTS_AT_MOST ? TASK_EVENT_RETRY
                                                                               : TASK_EVENT_FAILED;
}

task_action task_step(task_state *state, task_event event, job_id job, attempt_id attempt) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].state == *state && rows[i].event == event) {
      log_event(LOG_DEBUG, "scheduler", "job=%llu attempt=%u from=%s to=%s event=%s",
                (unsigned long long)job.value, attempt.value, task_state_name(*state),
                task_state_name(rows[i].next), event_name(event));
      *state = rows[i].next;
      return rows[i].action;
    }
  }
  log_event(LOG_ERROR, "scheduler", "defect=no_transition job=%llu attempt=%u state=%s event=%s",
            (unsigned long long)job.value, attempt.value, task_state_name(*state), event_name(event));
  return TASK_DO_DEFECT;
}

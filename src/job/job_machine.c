/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of a job, as a table.
 *
 *   queued ─start─► planning ─needs_held─► waiting
 *                      │  ▲ ◄──answered──────┘
 *               planned│  │held_lost (at most three times)
 *                      ▼  │
 *                    running ─done─► succeeded
 *
 *   fail: from queued, planning, waiting, running ─► failed
 *   cancel: queued and waiting end at once; planning and running end when what runs for them has ended
 *
 * What a job has in each state, and what the actions do: job.c. Thread: the scheduler's.
 */
#include "job/machine.h"

#include "base/log.h"

typedef struct job_row {
  job_state state;
  job_event event;
  job_state next;
  job_action action;
} job_row;

static const job_row rows[] = {
    {JOB_QUEUED, JOB_EVENT_START, JOB_PLANNING, JOB_DO_PLAN},
    {JOB_QUEUED, JOB_EVENT_FAIL, JOB_FAILED, JOB_DO_END},
    {JOB_QUEUED, JOB_EVENT_CANCEL, JOB_CANCELLED, JOB_DO_END},

    {JOB_PLANNING, JOB_EVENT_NEEDS_HELD, JOB_WAITING, JOB_DO_ASK},
    {JOB_PLANNING, JOB_EVENT_PLANNED, JOB_RUNNING, JOB_DO_LAUNCH},
    {JOB_PLANNING, JOB_EVENT_FAIL, JOB_FAILED, JOB_DO_END},
    {JOB_PLANNING, JOB_EVENT_CANCEL, JOB_PLANNING, JOB_DO_INTERRUPT},
    {JOB_PLANNING, JOB_EVENT_ENDED, JOB_CANCELLED, JOB_DO_END},

    {JOB_WAITING, JOB_EVENT_ANSWERED, JOB_PLANNING, JOB_DO_PLAN},
    {JOB_WAITING, JOB_EVENT_FAIL, JOB_FAILED, JOB_DO_END},
    {JOB_WAITING, JOB_EVENT_CANCEL, JOB_CANCELLED, JOB_DO_END},

    {JOB_RUNNING, JOB_EVENT_DONE, JOB_SUCCEEDED, JOB_DO_END},
    {JOB_RUNNING, JOB_EVENT_HELD_LOST, JOB_PLANNING, JOB_DO_REPLAN},
    {JOB_RUNNING, JOB_EVENT_FAIL, JOB_FAILED, JOB_DO_END},
    {JOB_RUNNING, JOB_EVENT_CANCEL, JOB_RUNNING, JOB_DO_RECALL},
    {JOB_RUNNING, JOB_EVENT_ENDED, JOB_CANCELLED, JOB_DO_END},

    {JOB_SUCCEEDED, JOB_EVENT_CANCEL, JOB_SUCCEEDED, JOB_DO_NOTHING}, /* too late: the result is there */
    {JOB_FAILED, JOB_EVENT_CANCEL, JOB_FAILED, JOB_DO_NOTHING},       /* too late: it has ended */
    {JOB_CANCELLED, JOB_EVENT_CANCEL, JOB_CANCELLED, JOB_DO_NOTHING}, /* cancelled twice */
};

const char *job_state_name(job_state state) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      JOB_STATES(X)
#undef X
  };
  return names[state];
}

const char *job_event_name(job_event event) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      JOB_EVENTS(X)
#undef X
  };
  return names[event];
}

bool job_is_over(job_state state) {
  return state == JOB_SUCCEEDED || state == JOB_FAILED || state == JOB_CANCELLED;
}

job_action job_step(job_state *state, job_event event, job_id job) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].state == *state && rows[i].event == event) {
      log_event(LOG_DEBUG, "scheduler", "job=%llu from=%s to=%s event=%s", (unsigned long long)job.value,
                job_state_name(*state), job_state_name(rows[i].next), job_event_name(event));
      *state = rows[i].next;
      return rows[i].action;
    }
  }
  log_event(LOG_ERROR, "scheduler", "defect=no_transition job=%llu state=%s event=%s",
            (unsigned long long)job.value, job_state_name(*state), job_event_name(event));
  return JOB_DO_DEFECT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an attempt, as a table. Pure: no I/O, no clock; the callers
 * (executor.c, slot.c, task.c) perform the actions.
 *
 *   queued ──take──▶ starting ──run──▶ running ──commit──▶ committing ──finish──▶ done
 *     │                 │ fail           │ fail               │ fail
 *     │                 ▼                ▼                    ▼
 *     └──cancel──────▶ failed ◀──fail── cancelling ◀──cancel── (starting, running, committing)
 *
 * A1  Each attempt is reported once as ended: by the step into done or failed.
 * A2  After a cancel no attempt gets to done, also when its index was just written.
 * Thread: any, under the executor's lock.
 */
#include "executor_internal.h"

#include "base/log.h"

typedef struct attempt_row {
  attempt_state state;
  attempt_event event;
  attempt_state next;
  unsigned actions;
} attempt_row;

static const attempt_row rows[] = {
    {ATTEMPT_QUEUED, ATTEMPT_ON_TAKE, ATTEMPT_STARTING, ATTEMPT_REPORT_STARTED},
    {ATTEMPT_QUEUED, ATTEMPT_ON_CANCEL, ATTEMPT_FAILED, ATTEMPT_UNQUEUE | ATTEMPT_REPORT_CANCELLED},
    {ATTEMPT_STARTING, ATTEMPT_ON_RUN, ATTEMPT_RUNNING, 0},
    {ATTEMPT_STARTING, ATTEMPT_ON_FAIL, ATTEMPT_FAILED, ATTEMPT_REPORT_FAILED},
    {ATTEMPT_STARTING, ATTEMPT_ON_CANCEL, ATTEMPT_CANCELLING, 0},
    {ATTEMPT_RUNNING, ATTEMPT_ON_COMMIT, ATTEMPT_COMMITTING, 0},
    {ATTEMPT_RUNNING, ATTEMPT_ON_FAIL, ATTEMPT_FAILED, ATTEMPT_REPORT_FAILED},
    {ATTEMPT_RUNNING, ATTEMPT_ON_CANCEL, ATTEMPT_CANCELLING, ATTEMPT_INTERRUPT},
    {ATTEMPT_COMMITTING, ATTEMPT_ON_FINISH, ATTEMPT_DONE, ATTEMPT_REPORT_FINISHED},
    {ATTEMPT_COMMITTING, ATTEMPT_ON_FAIL, ATTEMPT_FAILED, ATTEMPT_REPORT_FAILED},
    {ATTEMPT_COMMITTING, ATTEMPT_ON_CANCEL, ATTEMPT_CANCELLING, 0},
    /* the slot learns of the cancel at its next step, whichever that is */
    {ATTEMPT_CANCELLING, ATTEMPT_ON_RUN, ATTEMPT_CANCELLING, ATTEMPT_STOP},
    {ATTEMPT_CANCELLING, ATTEMPT_ON_COMMIT, ATTEMPT_CANCELLING, ATTEMPT_STOP},
    {ATTEMPT_CANCELLING, ATTEMPT_ON_FINISH, ATTEMPT_CANCELLING, ATTEMPT_STOP},
    {ATTEMPT_CANCELLING, ATTEMPT_ON_FAIL, ATTEMPT_FAILED, ATTEMPT_REPORT_CANCELLED},
    /* a second cancel, or the close after one: it ends already */
    {ATTEMPT_CANCELLING, ATTEMPT_ON_CANCEL, ATTEMPT_CANCELLING, 0},
    /* a cancel that comes after the end, before the attempt is forgotten: too late */
    {ATTEMPT_DONE, ATTEMPT_ON_CANCEL, ATTEMPT_DONE, 0},
    {ATTEMPT_FAILED, ATTEMPT_ON_CANCEL, ATTEMPT_FAILED, 0},
};

static const char *const state_names[] = {
#define X(id, name, sentence) name,
    ATTEMPT_STATES(X)
#undef X
};

static const char *const event_names[] = {
#define X(id, name, sentence) name,
    ATTEMPT_EVENTS(X)
#undef X
};

const char *attempt_state_name(attempt_state state) {
  return state_names[state];
}

bool attempt_is_in_slot(attempt_state state) {
  return state == ATTEMPT_STARTING || state == ATTEMPT_RUNNING || state == ATTEMPT_COMMITTING ||
         state == ATTEMPT_CANCELLING;
}

unsigned executor_step(attempt *a, attempt_event event) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].state != a->state || rows[i].event != event) {
      continue;
    }
    log_event(LOG_DEBUG, "executor", "job=%llu stage=%u task=%u attempt=%u from=%s to=%s event=%s",
              (unsigned long long)a->spec.job.value, a->spec.stage.value, a->spec.task.value,
              a->spec.attempt.value, state_names[a->state], state_names[rows[i].next], event_names[event]);
    a->state = rows[i].next;
    return rows[i].actions;
  }
  log_event(LOG_ERROR, "executor", "defect=no_transition job=%llu state=%s event=%s",
            (unsigned long long)a->spec.job.value, state_names[a->state], event_names[event]);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of a stage, as a table.
 *
 *   waiting ─inputs_ready─► ready ─started─► running ─tasks_done─► done
 *      ▲                      │                │  ▲                  │
 *      └──────rollback────────┴────────────────┘  └───output_lost────┘
 *
 * A job that plans again gets new ones, since ids never change after launch.
 * Thread: the scheduler's.
 */
#include "job/machine.h"

#include "base/log.h"

typedef struct stage_row {
  stage_state state;
  stage_event event;
  stage_state next;
  stage_action action;
} stage_row;

static const stage_row rows[] = {
    {STAGE_WAITING, STAGE_EVENT_INPUTS_READY, STAGE_READY, STAGE_DO_SUBMIT},
    {STAGE_WAITING, STAGE_EVENT_ROLLBACK, STAGE_WAITING, STAGE_DO_NOTHING}, /* one more input is gone */
    {STAGE_READY, STAGE_EVENT_STARTED, STAGE_RUNNING, STAGE_DO_NOTHING},
    {STAGE_READY, STAGE_EVENT_ROLLBACK, STAGE_WAITING, STAGE_DO_NOTHING},
    {STAGE_RUNNING, STAGE_EVENT_STARTED, STAGE_RUNNING, STAGE_DO_NOTHING}, /* another task or attempt */
    {STAGE_RUNNING, STAGE_EVENT_TASKS_DONE, STAGE_DONE, STAGE_DO_FINISH},
    {STAGE_RUNNING, STAGE_EVENT_ROLLBACK, STAGE_WAITING, STAGE_DO_NOTHING},
    {STAGE_DONE, STAGE_EVENT_OUTPUT_LOST, STAGE_RUNNING, STAGE_DO_RERUN},
    {STAGE_DONE, STAGE_EVENT_ROLLBACK, STAGE_DONE, STAGE_DO_NOTHING}, /* it needs its inputs no more */
};

static const char *event_name(stage_event event) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      STAGE_EVENTS(X)
#undef X
  };
  return names[event];
}

const char *stage_state_name(stage_state state) {
  static const char *const names[] = {
#define X(id, name, sentence) [id] = (name),
      STAGE_STATES(X)
#undef X
  };
  return names[state];
}

stage_action stage_step(stage_state *state, stage_event event, job_id job, stage_id stage) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].state == *state && rows[i].event == event) {
      log_event(LOG_DEBUG, "scheduler", "job=%llu stage=%u from=%s to=%s event=%s",
                (unsigned long long)job.value, stage.value, stage_state_name(*state),
                stage_state_name(rows[i].next), event_name(event));
      *state = rows[i].next;
      return rows[i].action;
    }
  }
  log_event(LOG_ERROR, "scheduler", "defect=no_transition job=%llu stage=%u state=%s event=%s",
            (unsigned long long)job.value, stage.value, stage_state_name(*state), event_name(event));
  return STAGE_DO_DEFECT;
}

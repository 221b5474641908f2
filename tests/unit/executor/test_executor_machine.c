/* SPDX-License-Identifier: Apache-2.0 */
/* Every cell of the attempts' table. */
#include "executor/executor_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct cell {
  attempt_state next;
  unsigned actions;
  bool is_missing; /* a defect: the state stays, no actions */
} cell;

#define GOES(state, what) \
  { ATTEMPT_##state, what, false }
#define MISSING \
  { 0, 0, true }

/* Rows: states. Columns: take, run, commit, finish, fail, cancel. */
static const cell cells[ATTEMPT_STATE_COUNT][ATTEMPT_EVENT_COUNT] = {
    [ATTEMPT_QUEUED] = {GOES(STARTING, ATTEMPT_REPORT_STARTED), MISSING, MISSING, MISSING, MISSING,
                        GOES(FAILED, ATTEMPT_UNQUEUE | ATTEMPT_REPORT_CANCELLED)},
    [ATTEMPT_STARTING] = {MISSING, GOES(RUNNING, 0), MISSING, MISSING, GOES(FAILED, ATTEMPT_REPORT_FAILED),
                          GOES(CANCELLING, 0)},
    [ATTEMPT_RUNNING] = {MISSING, MISSING, GOES(COMMITTING, 0), MISSING, GOES(FAILED, ATTEMPT_REPORT_FAILED),
                         GOES(CANCELLING, ATTEMPT_INTERRUPT)},
    [ATTEMPT_COMMITTING] = {MISSING, MISSING, MISSING, GOES(DONE, ATTEMPT_REPORT_FINISHED),
                            GOES(FAILED, ATTEMPT_REPORT_FAILED), GOES(CANCELLING, 0)},
    [ATTEMPT_CANCELLING] = {MISSING, GOES(CANCELLING, ATTEMPT_STOP), GOES(CANCELLING, ATTEMPT_STOP),
                            GOES(CANCELLING, ATTEMPT_STOP), GOES(FAILED, ATTEMPT_REPORT_CANCELLED),
                            GOES(CANCELLING, 0)},
    [ATTEMPT_DONE] = {MISSING, MISSING, MISSING, MISSING, MISSING, GOES(DONE, 0)},
    [ATTEMPT_FAILED] = {MISSING, MISSING, MISSING, MISSING, MISSING, GOES(FAILED, 0)},
};

static void machine_in_each_state_takes_each_event_as_listed(void **state) {
  (void)state;
  for (int s = 0; s < ATTEMPT_STATE_COUNT; s++) {
    for (int e = 0; e < ATTEMPT_EVENT_COUNT; e++) {
      attempt a = {.state = (attempt_state)s};
      unsigned actions = executor_step(&a, (attempt_event)e);
      const cell *expected = &cells[s][e];
      assert_int_equal(actions, expected->actions);
      assert_int_equal(a.state, expected->is_missing ? (attempt_state)s : expected->next);
    }
  }
}

/* A1, A2: whatever the order of events, one report of the end at most, and never FINISHED after a cancel. */
static void machine_on_any_six_events_reports_one_end(void **state) {
  (void)state;
  const unsigned ends = ATTEMPT_REPORT_FINISHED | ATTEMPT_REPORT_FAILED | ATTEMPT_REPORT_CANCELLED;
  int total = 1;
  for (int i = 0; i < 6; i++) {
    total *= ATTEMPT_EVENT_COUNT;
  }
  setenv("HOLDFAST_LOG", "error", 1);
  for (int path = 0; path < total; path++) {
    attempt a = {.state = ATTEMPT_QUEUED};
    int reports = 0;
    bool was_cancelled = false;
    for (int i = 0, rest = path; i < 6; i++, rest /= ATTEMPT_EVENT_COUNT) {
      attempt_event event = (attempt_event)(rest % ATTEMPT_EVENT_COUNT);
      if (cells[a.state][event].is_missing) {
        break;
      }
      bool had_ended = a.state == ATTEMPT_DONE || a.state == ATTEMPT_FAILED;
      unsigned actions = executor_step(&a, event);
      reports += (actions & ends) != 0;
      assert_false(was_cancelled && (actions & (ATTEMPT_REPORT_FINISHED | ATTEMPT_REPORT_FAILED)) != 0);
      was_cancelled = was_cancelled || (event == ATTEMPT_ON_CANCEL && !had_ended);
    }
    assert_int_equal(reports, a.state == ATTEMPT_DONE || a.state == ATTEMPT_FAILED);
  }
}

static void machine_names_its_states(void **state) {
  (void)state;
  assert_string_equal(attempt_state_name(ATTEMPT_QUEUED), "queued");
  assert_string_equal(attempt_state_name(ATTEMPT_FAILED), "failed");
  assert_false(attempt_is_in_slot(ATTEMPT_QUEUED));
  assert_true(attempt_is_in_slot(ATTEMPT_CANCELLING));
  assert_false(attempt_is_in_slot(ATTEMPT_DONE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(machine_in_each_state_takes_each_event_as_listed),
      cmocka_unit_test(machine_on_any_six_events_reports_one_end),
      cmocka_unit_test(machine_names_its_states),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

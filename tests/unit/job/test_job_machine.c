/* SPDX-License-Identifier: Apache-2.0 */
/* Every cell of the job's table. */
#include "job/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { Q = JOB_QUEUED, P = JOB_PLANNING, W = JOB_WAITING, R = JOB_RUNNING };
enum { S = JOB_SUCCEEDED, F = JOB_FAILED, C = JOB_CANCELLED, NONE = -1 };

/* The next state from queued, planning, waiting, running, succeeded, failed, cancelled. */
static const int expected[JOB_EVENT_COUNT][JOB_STATE_COUNT] = {
    [JOB_EVENT_START] = {P, NONE, NONE, NONE, NONE, NONE, NONE},
    [JOB_EVENT_NEEDS_HELD] = {NONE, W, NONE, NONE, NONE, NONE, NONE},
    [JOB_EVENT_ANSWERED] = {NONE, NONE, P, NONE, NONE, NONE, NONE},
    [JOB_EVENT_PLANNED] = {NONE, R, NONE, NONE, NONE, NONE, NONE},
    [JOB_EVENT_DONE] = {NONE, NONE, NONE, S, NONE, NONE, NONE},
    [JOB_EVENT_HELD_LOST] = {NONE, NONE, NONE, P, NONE, NONE, NONE},
    [JOB_EVENT_FAIL] = {F, F, F, F, NONE, NONE, NONE},
    [JOB_EVENT_CANCEL] = {C, P, C, R, S, F, C},
    [JOB_EVENT_ENDED] = {NONE, C, NONE, C, NONE, NONE, NONE},
};

static void job_machine_every_cell_is_as_expected(void **state) {
  (void)state;
  for (int event = 0; event < JOB_EVENT_COUNT; event++) {
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
      job_state at = (job_state)from;
      job_action action = job_step(&at, (job_event)event, (job_id){1});
      int next = expected[event][from];
      assert_int_equal(action == JOB_DO_DEFECT, next == NONE);
      assert_int_equal(at, next == NONE ? from : next);
      bool ends = next != NONE && job_is_over((job_state)next) && !job_is_over((job_state)from);
      assert_int_equal(action == JOB_DO_END, ends);
    }
  }
}

static void job_machine_actions_go_with_their_rows(void **state) {
  (void)state;
  static const struct {
    job_state from;
    job_event event;
    job_action action;
  } cases[] = {
      {JOB_QUEUED, JOB_EVENT_START, JOB_DO_PLAN},        {JOB_PLANNING, JOB_EVENT_NEEDS_HELD, JOB_DO_ASK},
      {JOB_WAITING, JOB_EVENT_ANSWERED, JOB_DO_PLAN},    {JOB_PLANNING, JOB_EVENT_PLANNED, JOB_DO_LAUNCH},
      {JOB_RUNNING, JOB_EVENT_HELD_LOST, JOB_DO_REPLAN}, {JOB_PLANNING, JOB_EVENT_CANCEL, JOB_DO_INTERRUPT},
      {JOB_RUNNING, JOB_EVENT_CANCEL, JOB_DO_RECALL},    {JOB_SUCCEEDED, JOB_EVENT_CANCEL, JOB_DO_NOTHING},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    job_state at = cases[i].from;
    assert_int_equal(job_step(&at, cases[i].event, (job_id){1}), cases[i].action);
  }
}

static void job_machine_names_are_there(void **state) {
  (void)state;
  for (int s = 0; s < JOB_STATE_COUNT; s++) {
    assert_non_null(job_state_name((job_state)s));
  }
  for (int e = 0; e < JOB_EVENT_COUNT; e++) {
    assert_non_null(job_event_name((job_event)e));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(job_machine_every_cell_is_as_expected),
      cmocka_unit_test(job_machine_actions_go_with_their_rows),
      cmocka_unit_test(job_machine_names_are_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

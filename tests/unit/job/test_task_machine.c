/* SPDX-License-Identifier: Apache-2.0 */
/* Every cell of the task's table, and which failures are tried again. */
#include "job/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { P = TASK_PENDING, R = TASK_RUNNING, D = TASK_DONE, F = TASK_GIVEN_UP, NONE = -1 };

typedef struct cell {
  int next;
  task_action action;
} cell;

#define NO_ROW \
  { NONE, TASK_DO_DEFECT }

/* From pending, running, done, failed. */
static const cell expected[TASK_EVENT_COUNT][TASK_STATE_COUNT] = {
    [TASK_EVENT_STARTED] = {{R, TASK_DO_NOTHING}, NO_ROW, NO_ROW, NO_ROW},
    [TASK_EVENT_FINISHED] = {NO_ROW, {D, TASK_DO_ACCEPT}, NO_ROW, NO_ROW},
    [TASK_EVENT_FAILED] = {{F, TASK_DO_FAIL}, {F, TASK_DO_FAIL}, NO_ROW, NO_ROW},
    [TASK_EVENT_RETRY] = {{P, TASK_DO_SUBMIT}, {P, TASK_DO_SUBMIT}, NO_ROW, NO_ROW},
    [TASK_EVENT_OUTPUT_LOST] = {NO_ROW, NO_ROW, {P, TASK_DO_SUBMIT}, NO_ROW},
};

static void task_machine_every_cell_is_as_expected(void **state) {
  (void)state;
  for (int event = 0; event < TASK_EVENT_COUNT; event++) {
    for (int from = 0; from < TASK_STATE_COUNT; from++) {
      task_state at = (task_state)from;
      const cell *want = &expected[event][from];
      assert_int_equal(task_step(&at, (task_event)event, (job_id){1}, (attempt_id){1}), want->action);
      assert_int_equal(at, want->next == NONE ? from : want->next);
      assert_non_null(task_state_name(at));
    }
  }
}

static void task_machine_only_retryable_failures_are_tried_again(void **state) {
  (void)state;
  assert_int_equal(task_failure(HF_CLASS_RETRYABLE, 1), TASK_EVENT_RETRY);
  assert_int_equal(task_failure(HF_CLASS_RETRYABLE, 3), TASK_EVENT_RETRY);
  assert_int_equal(task_failure(HF_CLASS_RETRYABLE, 4), TASK_EVENT_FAILED);
  assert_int_equal(task_failure(HF_CLASS_USER, 1), TASK_EVENT_FAILED);
  assert_int_equal(task_failure(HF_CLASS_RESOURCE, 1), TASK_EVENT_FAILED);
  assert_int_equal(task_failure(HF_CLASS_FETCH, 1), TASK_EVENT_FAILED);
  assert_int_equal(task_failure(HF_CLASS_FATAL, 1), TASK_EVENT_FAILED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(task_machine_every_cell_is_as_expected),
      cmocka_unit_test(task_machine_only_retryable_failures_are_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

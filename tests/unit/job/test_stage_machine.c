/* SPDX-License-Identifier: Apache-2.0 */
/* Every cell of the stage's table. */
#include "job/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { W = STAGE_WAITING, Y = STAGE_READY, R = STAGE_RUNNING, D = STAGE_DONE, NONE = -1 };

typedef struct cell {
  int next;
  stage_action action;
} cell;

#define NO_ROW \
  { NONE, STAGE_DO_DEFECT }

/* From waiting, ready, running, done. */
static const cell expected[STAGE_EVENT_COUNT][STAGE_STATE_COUNT] = {
    [STAGE_EVENT_INPUTS_READY] = {{Y, STAGE_DO_SUBMIT}, NO_ROW, NO_ROW, NO_ROW},
    [STAGE_EVENT_STARTED] = {NO_ROW, {R, STAGE_DO_NOTHING}, {R, STAGE_DO_NOTHING}, NO_ROW},
    [STAGE_EVENT_TASKS_DONE] = {NO_ROW, NO_ROW, {D, STAGE_DO_FINISH}, NO_ROW},
    [STAGE_EVENT_OUTPUT_LOST] = {NO_ROW, NO_ROW, NO_ROW, {R, STAGE_DO_RERUN}},
    [STAGE_EVENT_ROLLBACK] = {{W, STAGE_DO_NOTHING},
                              {W, STAGE_DO_NOTHING},
                              {W, STAGE_DO_NOTHING},
                              {D, STAGE_DO_NOTHING}},
};

static void stage_machine_every_cell_is_as_expected(void **state) {
  (void)state;
  for (int event = 0; event < STAGE_EVENT_COUNT; event++) {
    for (int from = 0; from < STAGE_STATE_COUNT; from++) {
      stage_state at = (stage_state)from;
      const cell *want = &expected[event][from];
      assert_int_equal(stage_step(&at, (stage_event)event, (job_id){1}, (stage_id){1}), want->action);
      assert_int_equal(at, want->next == NONE ? from : want->next);
      assert_non_null(stage_state_name(at));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stage_machine_every_cell_is_as_expected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

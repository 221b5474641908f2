/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's operations: claims, completion, abort, waiters, removal, leases, pins, executors, lack of memory. */
#include "hold/hold.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const uuid key = {"key"}, key2 = {"key2"}, session = {"session"}, other_session = {"other"};

typedef struct fixture {
  declarations *d;
  registry *r;
  registry_actions actions;
} fixture;

static int set_up(void **state) {
  fixture *f = mem_zalloc(1, sizeof *f);
  f->d = declarations_new();
  f->r = registry_new(f->d);
  assert_int_equal(registry_executor_back(f->r, "x1", NULL), HF_OK);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  registry_check(f->r);
  registry_actions_reset(&f->actions);
  registry_free(f->r);
  declarations_free(f->d);
  mem_free(f);
  return 0;
}

static job_id job(uint64_t value) {
  return (job_id){value};
}

static begin_result begin(fixture *f, const uuid *k, uint64_t fill, uint64_t waiter) {
  begin_result result = registry_begin_or_wait(f->r, k, &session, job(fill), job(waiter), NULL);
  registry_check(f->r);
  return result;
}

static complete_result complete_on(fixture *f, const uuid *k, uint64_t fill, const char *executor) {
  entry_location at = {.job = job(fill), .stage = {1}, .task = {1}, .attempt = {1}};
  snprintf(at.executor, sizeof at.executor, "%s", executor);
  entry_output output = {.rows = 3, .bytes = 64, .locations = &at, .n_locations = 1, .cost_us = 7};
  complete_result result = registry_complete(f->r, k, job(fill), &output, &f->actions);
  registry_check(f->r);
  return result;
}

static complete_result complete(fixture *f, const uuid *k, uint64_t fill) {
  return complete_on(f, k, fill, "x1");
}

/* Takes all actions and compares them with text such as "W1 U2.1 C3". */
static void expect_actions(fixture *f, const char *text) {
  char got[256] = "";
  registry_action *action = NULL;
  while ((action = registry_actions_take(&f->actions)) != NULL) {
    size_t used = strlen(got);
    snprintf(got + used, sizeof got - used, "%s%c%llu", used > 0 ? " " : "", "WFIUC"[action->kind],
             (unsigned long long)action -> job.value);
    used = strlen(got);
    if (action->kind == REGISTRY_UNPIN) {
      snprintf(got + used, sizeof got - used, ".%u", action->stage.value);
    }
    mem_free(action);
  }
  assert_string_equal(got, text);
}

static entry_state state_of(fixture *f, const uuid *k) {
  entry_view view;
  return registry_lookup(f->r, k, &view);
}

static void registry_lookup_of_an_unknown_key_is_absent(void **state) {
  fixture *f = *state;
  entry_view view;
  assert_int_equal(registry_lookup(f->r, &key, &view), ENTRY_ABSENT);
  assert_int_equal(view.generation, 0);
  assert_string_equal(view.last_drop, "");
}

static void registry_begin_twice_claims_once(void **state) {
  fixture *f = *state;
  assert_int_equal(begin(f, &key, 10, 1), BEGIN_CLAIMED);
  assert_int_equal(begin(f, &key, 11, 2), BEGIN_WAITING);
  assert_int_equal(begin(f, &key, 11, 2), BEGIN_WAITING); /* listed once */
  entry_view view;
  assert_int_equal(registry_lookup(f->r, &key, &view), ENTRY_PENDING);
  assert_int_equal(view.job.value, 10);
  assert_int_equal(complete(f, &key, 10), COMPLETE_PROMOTED);
  expect_actions(f, "W1 W2");
  assert_int_equal(begin(f, &key, 12, 3), BEGIN_MATERIALISED);
  registry_lookup(f->r, &key, &view);
  assert_int_equal(view.output.rows, 3);
  assert_int_equal(view.generation, 1);
  assert_int_equal(view.output.cost_us, 7);
}

static void registry_begin_of_a_released_key_never_claims(void **state) {
  fixture *f = *state;
  declaration row = {.key = key, .session = session};
  assert_int_equal(declarations_add(f->d, &row, NULL), HF_OK);
  declarations_release(f->d, &key);
  assert_int_equal(begin(f, &key, 10, 1), BEGIN_RELEASED);
  assert_int_equal(state_of(f, &key), ENTRY_ABSENT);
}

static void registry_begin_by_another_session_is_refused(void **state) {
  fixture *f = *state;
  assert_int_equal(begin(f, &key, 10, 1), BEGIN_CLAIMED);
  hf_error error = {0};
  assert_int_equal(registry_begin_or_wait(f->r, &key, &other_session, job(11), job(2), &error), BEGIN_FAILED);
  assert_int_equal(error.code, HF_E_HELD_FOREIGN);
  hf_error_reset(&error);
}

static void registry_complete_again_is_a_duplicate(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  assert_int_equal(complete(f, &key, 10), COMPLETE_PROMOTED);
  expect_actions(f, "W1");
  assert_int_equal(complete(f, &key, 10), COMPLETE_DUPLICATE);
  expect_actions(f, "");
}

static void registry_complete_after_abort_is_stale(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  registry_abort(f->r, &key, job(10), HF_CLASS_RETRYABLE, &f->actions);
  assert_int_equal(complete(f, &key, 10), COMPLETE_STALE);
  assert_int_equal(state_of(f, &key), ENTRY_ABSENT);
}

static void registry_complete_of_a_removed_entry_does_not_revive(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  assert_true(registry_invalidate(f->r, &key, "unpersist", &f->actions));
  expect_actions(f, "C10 W1");
  assert_int_equal(complete(f, &key, 10), COMPLETE_STALE);
  assert_int_equal(begin(f, &key, 11, 1), BEGIN_CLAIMED);
  assert_int_equal(complete(f, &key, 10), COMPLETE_STALE); /* nor overwrites the newer claim */
  assert_int_equal(state_of(f, &key), ENTRY_PENDING);
  assert_int_equal(complete(f, &key, 11), COMPLETE_PROMOTED);
}

static void registry_complete_on_an_executor_that_is_away_is_refused(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  assert_int_equal(complete_on(f, &key, 10, "x9"), COMPLETE_REFUSED);
  assert_int_equal(state_of(f, &key), ENTRY_PENDING);
  registry_abort(f->r, &key, job(10), HF_CLASS_RETRYABLE, &f->actions);
  expect_actions(f, "W1");
}

static void registry_abort_goes_by_class(void **state) {
  fixture *f = *state;
  static const struct {
    hf_error_class error_class;
    const char *actions;
  } cases[] = {{HF_CLASS_USER, "F1 F2"}, {HF_CLASS_RESOURCE, "I1 I2"}, {HF_CLASS_RETRYABLE, "W1 W2"}};
  for (size_t i = 0; i < 3; i++) {
    begin(f, &key, 10, 1);
    begin(f, &key, 11, 2);
    registry_abort(f->r, &key, job(99), HF_CLASS_USER, &f->actions); /* not its claim */
    expect_actions(f, "");
    registry_abort(f->r, &key, job(10), cases[i].error_class, &f->actions);
    expect_actions(f, cases[i].actions);
    assert_int_equal(state_of(f, &key), ENTRY_ABSENT);
    registry_check(f->r);
  }
}

static void registry_abort_three_times_ends_inline(void **state) {
  fixture *f = *state;
  static const char *const actions[] = {"W1", "W1", "I1", "W1", "W1", "I1"};
  for (uint64_t i = 0; i < 6; i++) {
    assert_int_equal(begin(f, &key, 10 + i, 1), BEGIN_CLAIMED);
    registry_abort(f->r, &key, job(10 + i), HF_CLASS_FATAL, &f->actions);
    expect_actions(f, actions[i]);
  }
}

static void registry_leave_of_the_last_waiter_cancels(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  begin(f, &key, 11, 2);
  registry_leave(f->r, &key, job(1), &f->actions);
  expect_actions(f, ""); /* the claimer left, the waiter keeps the fill */
  assert_int_equal(state_of(f, &key), ENTRY_PENDING);
  registry_leave(f->r, &key, job(1), &f->actions);
  registry_leave(f->r, &key, job(7), &f->actions);
  expect_actions(f, "");
  registry_leave(f->r, &key, job(2), &f->actions);
  expect_actions(f, "C10");
  assert_int_equal(state_of(f, &key), ENTRY_ABSENT);
  assert_int_equal(begin(f, &key, 12, 3), BEGIN_CLAIMED); /* not made to wait for the cancelled one */
}

static void registry_generation_counts_across_drops(void **state) {
  fixture *f = *state;
  for (uint64_t i = 1; i <= 3; i++) {
    begin(f, &key, 10 + i, 1);
    assert_int_equal(complete(f, &key, 10 + i), COMPLETE_PROMOTED);
    entry_view view;
    registry_lookup(f->r, &key, &view);
    assert_int_equal(view.generation, i);
    registry_touch(f->r, &key, 5 * i);
    assert_true(registry_invalidate(f->r, &key, "refresh", &f->actions));
    registry_lookup(f->r, &key, &view);
    assert_int_equal(view.generation, i);
    assert_int_equal(view.hits, i);
    assert_int_equal(view.last_read_us, 5 * i);
    assert_string_equal(view.last_drop, "refresh");
  }
  assert_false(registry_invalidate(f->r, &key, "again", &f->actions));
}

static void registry_unpin_waits_for_the_last_lease(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  complete(f, &key, 10);
  expect_actions(f, "W1");
  assert_int_equal(registry_lease_add(f->r, &key, job(1), NULL), HF_OK);
  assert_int_equal(registry_lease_add(f->r, &key, job(1), NULL), HF_OK); /* the same one */
  assert_int_equal(registry_lease_add(f->r, &key, job(2), NULL), HF_OK);
  registry_invalidate(f->r, &key, "block missing", &f->actions);
  registry_check(f->r);
  expect_actions(f, "");
  assert_true(registry_is_pinned(f->r, job(10), (stage_id){1}));
  registry_lease_drop(f->r, job(1), &f->actions);
  expect_actions(f, "");
  registry_lease_drop(f->r, job(2), &f->actions);
  expect_actions(f, "U10.1");
  assert_false(registry_is_pinned(f->r, job(10), (stage_id){1}));
}

static void registry_lease_on_an_absent_entry_fails(void **state) {
  fixture *f = *state;
  hf_error error = {0};
  assert_int_equal(registry_lease_add(f->r, &key, job(1), &error), HF_E_INTERNAL);
  hf_error_reset(&error);
}

static void registry_pins_span_claim_and_entry(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  assert_false(registry_is_pinned(f->r, job(10), (stage_id){1}));
  registry_claim_stage(f->r, &key, job(11), (stage_id){1}); /* not the claimer */
  assert_false(registry_is_pinned(f->r, job(11), (stage_id){1}));
  registry_claim_stage(f->r, &key, job(10), (stage_id){1});
  assert_true(registry_is_pinned(f->r, job(10), (stage_id){1}));
  assert_false(registry_is_pinned(f->r, job(10), (stage_id){2}));
  complete(f, &key, 10);
  assert_true(registry_is_pinned(f->r, job(10), (stage_id){1}));
  registry_invalidate(f->r, &key, "unpersist", &f->actions);
  expect_actions(f, "W1 U10.1");
  assert_false(registry_is_pinned(f->r, job(10), (stage_id){1}));
}

static void registry_unpin_names_each_stage_once(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  entry_location at[3] = {{.job = {10}, .stage = {1}, .task = {1}, .executor = "x1"},
                          {.job = {10}, .stage = {1}, .task = {2}, .executor = "x1"},
                          {.job = {10}, .stage = {2}, .task = {1}, .executor = "x1"}};
  entry_output output = {.locations = at, .n_locations = 3};
  assert_int_equal(registry_complete(f->r, &key, job(10), &output, &f->actions), COMPLETE_PROMOTED);
  registry_invalidate(f->r, &key, "unpersist", &f->actions);
  expect_actions(f, "W1 U10.1 U10.2");
}

static void registry_remove_session_spares_others(void **state) {
  fixture *f = *state;
  begin(f, &key, 10, 1);
  complete(f, &key, 10);
  assert_int_equal(registry_begin_or_wait(f->r, &key2, &other_session, job(11), job(2), NULL), BEGIN_CLAIMED);
  expect_actions(f, "W1");
  registry_remove_session(f->r, &session, &f->actions);
  expect_actions(f, "U10.1");
  registry_check(f->r);
  assert_int_equal(state_of(f, &key2), ENTRY_PENDING);
  registry_remove_session(f->r, &other_session, &f->actions);
  expect_actions(f, "C11 W2");
  entry_view view;
  registry_lookup(f->r, &key, &view);
  assert_int_equal(view.generation, 0); /* forgotten */
}

static void registry_executor_away_suspends_and_resumes(void **state) {
  fixture *f = *state;
  assert_int_equal(registry_executor_back(f->r, "x2", NULL), HF_OK);
  begin(f, &key, 10, 1);
  complete(f, &key, 10);
  begin(f, &key2, 11, 1);
  complete_on(f, &key2, 11, "x2");
  registry_executor_lost(f->r, "x1");
  registry_check(f->r);
  assert_int_equal(begin(f, &key, 12, 2), BEGIN_UNAVAILABLE);
  assert_int_equal(state_of(f, &key2), ENTRY_MATERIALISED);
  assert_int_equal(registry_executor_back(f->r, "x1", NULL), HF_OK);
  assert_int_equal(begin(f, &key, 12, 2), BEGIN_MATERIALISED);
  registry_actions_reset(&f->actions);
  registry_invalidate_executor(f->r, "x1", &f->actions);
  registry_check(f->r);
  expect_actions(f, "U10.1");
  entry_view view;
  assert_int_equal(registry_lookup(f->r, &key, &view), ENTRY_ABSENT);
  assert_string_equal(view.last_drop, "executor lost");
  assert_int_equal(state_of(f, &key2), ENTRY_MATERIALISED);
}

/* Begin, wait, complete, lease and drop, with the n-th allocation failing. Returns whether all went well. */
static bool scenario(fixture *f, uint64_t n) {
  mem_fail_after(n);
  bool is_well = registry_begin_or_wait(f->r, &key, &session, job(10), job(1), NULL) == BEGIN_CLAIMED;
  is_well = is_well && registry_begin_or_wait(f->r, &key, &session, job(11), job(2), NULL) == BEGIN_WAITING;
  entry_location at = {.job = {10}, .stage = {1}, .task = {1}, .executor = "x1"};
  entry_output output = {.locations = &at, .n_locations = 1};
  if (is_well && registry_complete(f->r, &key, job(10), &output, &f->actions) != COMPLETE_PROMOTED) {
    is_well = false;
    registry_abort(f->r, &key, job(10), HF_CLASS_RESOURCE, &f->actions);
  }
  is_well = is_well && registry_lease_add(f->r, &key, job(1), NULL) == HF_OK;
  registry_check(f->r);
  registry_invalidate(f->r, &key, "unpersist", &f->actions);
  registry_lease_drop(f->r, job(1), &f->actions);
  mem_fail_after(0);
  registry_check(f->r);
  assert_int_equal(state_of(f, &key), ENTRY_ABSENT);
  return is_well;
}

static void registry_without_memory_fails_cleanly(void **state) {
  (void)state;
  bool is_well = false;
  for (uint64_t n = 1; !is_well && n < 100; n++) {
    void *fresh = NULL;
    set_up(&fresh);
    is_well = scenario(fresh, n);
    tear_down(&fresh);
  }
  assert_true(is_well);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(registry_lookup_of_an_unknown_key_is_absent),
      CASE(registry_begin_twice_claims_once),
      CASE(registry_begin_of_a_released_key_never_claims),
      CASE(registry_begin_by_another_session_is_refused),
      CASE(registry_complete_again_is_a_duplicate),
      CASE(registry_complete_after_abort_is_stale),
      CASE(registry_complete_of_a_removed_entry_does_not_revive),
      CASE(registry_complete_on_an_executor_that_is_away_is_refused),
      CASE(registry_abort_goes_by_class),
      CASE(registry_abort_three_times_ends_inline),
      CASE(registry_leave_of_the_last_waiter_cancels),
      CASE(registry_generation_counts_across_drops),
      CASE(registry_unpin_waits_for_the_last_lease),
      CASE(registry_lease_on_an_absent_entry_fails),
      CASE(registry_pins_span_claim_and_entry),
      CASE(registry_unpin_names_each_stage_once),
      CASE(registry_remove_session_spares_others),
      CASE(registry_executor_away_suspends_and_resumes),
      cmocka_unit_test(registry_without_memory_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every cell of the registry's table: its next state, its effect and its actions, or that there is no such row. */
#include "hold/registry_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

enum { A = ENTRY_ABSENT, P = ENTRY_PENDING, M = ENTRY_MATERIALISED, U = ENTRY_UNAVAILABLE, NONE = -1 };

/* What the protocol says (30-cache's diagram and operation table): the next state from absent, pending, materialised,
 * unavailable, NONE where the event cannot come; and the actions from pending and from the states with data. */
typedef struct expected_cells {
  int next[4];
  const char *pending_actions; /* W wake, F fail, I inline, C cancel, each once a node */
  const char *data_actions;    /* U unpin */
} expected_cells;

static const expected_cells expected[EVENT_COUNT] = {
    [EVENT_BEGIN] = {{P, P, M, U}, "", ""},
    [EVENT_COMPLETE] = {{NONE, M, M, U}, "WW", ""},
    [EVENT_COMPLETE_REFUSED] = {{NONE, P, NONE, NONE}, "", ""},
    [EVENT_COMPLETE_OTHER] = {{A, P, M, U}, "", ""},
    [EVENT_ABORT_USER] = {{NONE, A, NONE, NONE}, "FF", ""},
    [EVENT_ABORT_RESOURCE] = {{NONE, A, NONE, NONE}, "II", ""},
    [EVENT_ABORT_AGAIN] = {{NONE, A, NONE, NONE}, "WW", ""},
    [EVENT_ABORT_TOO_OFTEN] = {{NONE, A, NONE, NONE}, "II", ""},
    [EVENT_ABORT_OTHER] = {{A, P, M, U}, "", ""},
    [EVENT_LEAVE] = {{NONE, P, NONE, NONE}, "", ""},
    [EVENT_LEAVE_LAST] = {{NONE, A, NONE, NONE}, "C", ""},
    [EVENT_LEAVE_OTHER] = {{A, P, M, U}, "", ""},
    [EVENT_INVALIDATE] = {{A, A, A, A}, "CWW", "U"},
    [EVENT_EXECUTOR_LOST] = {{NONE, NONE, U, U}, "", ""},
    [EVENT_EXECUTOR_BACK] = {{NONE, NONE, NONE, M}, "", ""},
    [EVENT_RESTORE] = {{U, NONE, NONE, NONE}, "", ""},
};

static registry_action *add_node(registry_action **list) {
  registry_action *node = mem_zalloc(1, sizeof *node);
  assert_non_null(node);
  LL_APPEND(*list, node);
  return node;
}

/* An entry in the state: pending with two waiters (one for a last leave), data with one stage. */
static void entry_make(registry_entry *entry, entry_state state, materialisation *held) {
  memset(entry, 0, sizeof *entry);
  memset(held, 0, sizeof *held);
  entry->state = state;
  if (state == ENTRY_PENDING) {
    entry->job.value = 1;
    add_node(&entry->cancel);
    add_node(&entry->waiters);
    add_node(&entry->waiters);
  } else if (state != ENTRY_ABSENT) {
    add_node(&held->unpins);
    entry->held = held;
  }
}

static void list_free(registry_action **list) {
  registry_actions rest = {0};
  registry_actions_move(&rest, REGISTRY_WAKE, list);
  registry_actions_reset(&rest);
}

static void check_actions(registry_actions *actions, const char *letters) {
  for (; *letters != '\0'; letters++) {
    registry_action *action = registry_actions_take(actions);
    assert_non_null(action);
    assert_int_equal("WFIUC"[action->kind], *letters);
    mem_free(action);
  }
  assert_null(registry_actions_take(actions));
}

static void check_cell(entry_state state, registry_event event) {
  registry_entry entry;
  materialisation held;
  entry_make(&entry, state, &held);
  registry_actions actions = {0};
  int next = expected[event].next[state];
  registry_effect effect = registry_step(&entry, event, &actions);
  if (next == NONE) {
    assert_int_equal(effect, EFFECT_DEFECT);
    assert_int_equal(entry.state, state);
    assert_null(actions.first);
  } else {
    assert_int_not_equal(effect, EFFECT_DEFECT);
    assert_int_equal(entry.state, next);
    check_actions(&actions, state == ENTRY_ABSENT    ? ""
                            : state == ENTRY_PENDING ? expected[event].pending_actions
                                                     : expected[event].data_actions);
  }
  list_free(&entry.waiters);
  list_free(&entry.cancel);
  list_free(&held.unpins);
}

static void registry_machine_every_cell_is_as_expected(void **state) {
  (void)state;
  for (int s = 0; s < 4; s++) {
    for (int e = 0; e < EVENT_COUNT; e++) {
      check_cell((entry_state)s, (registry_event)e);
    }
  }
}

static void registry_machine_effects_tell_results_apart(void **state) {
  (void)state;
  static const struct {
    entry_state from;
    registry_event event;
    registry_effect effect;
  } cases[] = {
      {ENTRY_ABSENT, EVENT_BEGIN, EFFECT_CLAIM},          {ENTRY_PENDING, EVENT_BEGIN, EFFECT_JOIN},
      {ENTRY_MATERIALISED, EVENT_BEGIN, EFFECT_SERVE},    {ENTRY_UNAVAILABLE, EVENT_BEGIN, EFFECT_AWAY},
      {ENTRY_MATERIALISED, EVENT_COMPLETE, EFFECT_AGAIN}, {ENTRY_ABSENT, EVENT_COMPLETE_OTHER, EFFECT_STALE},
      {ENTRY_PENDING, EVENT_INVALIDATE, EFFECT_REVOKE},   {ENTRY_PENDING, EVENT_LEAVE_LAST, EFFECT_ABANDON},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    registry_entry entry;
    materialisation held;
    entry_make(&entry, cases[i].from, &held);
    registry_actions actions = {0};
    assert_int_equal(registry_step(&entry, cases[i].event, &actions), cases[i].effect);
    registry_actions_reset(&actions);
    list_free(&entry.waiters);
    list_free(&entry.cancel);
    list_free(&held.unpins);
  }
}

static void registry_machine_drop_of_leased_data_keeps_the_pins(void **state) {
  (void)state;
  registry_entry entry;
  materialisation held;
  entry_make(&entry, ENTRY_MATERIALISED, &held);
  held.n_leases = 1;
  registry_actions actions = {0};
  assert_int_equal(registry_step(&entry, EVENT_INVALIDATE, &actions), EFFECT_DROP);
  assert_null(actions.first);
  assert_non_null(held.unpins);
  list_free(&held.unpins);
}

static void registry_machine_names_are_there(void **state) {
  (void)state;
  for (int s = 0; s < 4; s++) {
    assert_non_null(registry_state_name((entry_state)s));
  }
  for (int e = 0; e < EVENT_COUNT; e++) {
    assert_non_null(registry_event_name((registry_event)e));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registry_machine_every_cell_is_as_expected),
      cmocka_unit_test(registry_machine_effects_tell_results_apart),
      cmocka_unit_test(registry_machine_drop_of_leased_data_keeps_the_pins),
      cmocka_unit_test(registry_machine_names_are_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

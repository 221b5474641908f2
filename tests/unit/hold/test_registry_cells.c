/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of the registry in every state that a caller can meet: the result,
 * the state after, and the actions. A cell is "result state actions"; actions are
 * W wake, F fail, I inline, C cancel (with the job), U unpin (with job.stage).
 */
#include "hold/registry_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const uuid key = {"key"}, session = {"session"};

typedef struct fixture {
  declarations *d;
  registry *r;
  registry_actions actions;
} fixture;

static job_id job(uint64_t value) {
  return (job_id){value};
}

static begin_result begin(fixture *f, uint64_t fill, uint64_t waiter) {
  return registry_begin_or_wait(f->r, &key, &session, job(fill), job(waiter), NULL);
}

static complete_result complete(fixture *f, uint64_t fill, const char *executor) {
  entry_location at = {.job = job(fill), .stage = {1}, .task = {1}, .attempt = {1}};
  snprintf(at.executor, sizeof at.executor, "%s", executor);
  entry_output output = {.rows = 3, .locations = &at, .n_locations = 1};
  return registry_complete(f->r, &key, job(fill), &output, &f->actions);
}

/* ------------------------------------------------------------------ states */

typedef enum situation {
  UNKNOWN,  /* never begun */
  RELEASED, /* absent, and never to be filled again */
  PENDING,  /* job 10 has the claim; 1, 2 and 3 wait */
  ANEW,     /* job 10 was cancelled by a removal; job 20 has the claim; 1 waits */
  FAILING,  /* job 10 has the claim, two before it failed; 1, 2 and 3 wait */
  HELD,     /* made by job 10 */
  READ,     /* the same, and job 1 reads it */
  AWAY,     /* made by job 10 on an executor that is away */
  DROPPED,  /* made by job 10, dropped, and job 1 still reads it */
  SITUATIONS
} situation;

static void make_pending(fixture *f) {
  begin(f, 10, 1);
  begin(f, 11, 2);
  begin(f, 12, 3);
  registry_claim_stage(f->r, &key, job(10), (stage_id){1});
}

static void make_failing(fixture *f) {
  for (uint64_t fill = 8; fill < 10; fill++) {
    begin(f, fill, 1);
    registry_abort(f->r, &key, job(fill), HF_CLASS_RETRYABLE, &f->actions);
  }
  make_pending(f);
}

static void make_held(fixture *f, situation s) {
  begin(f, 10, 1);
  complete(f, 10, "x1");
  if (s == READ || s == DROPPED) {
    registry_lease_add(f->r, &key, job(1), NULL);
  }
  if (s == DROPPED) {
    registry_invalidate(f->r, &key, "dropped", &f->actions);
  }
  if (s == AWAY) {
    registry_executor_lost(f->r, "x1");
  }
}

static void make(fixture *f, situation s) {
  *f = (fixture){.d = declarations_new()};
  f->r = registry_new(f->d);
  declaration row = {.key = key, .session = session};
  assert_int_equal(declarations_add(f->d, &row, NULL), HF_OK);
  assert_int_equal(registry_executor_back(f->r, "x1", NULL), HF_OK);
  switch (s) {
    case UNKNOWN:
      break;
    case RELEASED:
      declarations_release(f->d, &key);
      break;
    case PENDING:
      make_pending(f);
      break;
    case ANEW:
      begin(f, 10, 1);
      registry_invalidate(f->r, &key, "refresh", &f->actions);
      begin(f, 20, 1);
      break;
    case FAILING:
      make_failing(f);
      break;
    default:
      make_held(f, s);
      break;
  }
  registry_check(f->r);
  registry_actions_reset(&f->actions);
}

static void unmake(fixture *f) {
  registry_actions_reset(&f->actions);
  registry_free(f->r);
  declarations_free(f->d);
}

/* -------------------------------------------------------------- operations */

static const char *const begin_names[] = {"claimed",  "waiting",     "materialised",
                                          "released", "unavailable", "failed"};
static const char *const complete_names[] = {"promoted", "duplicate", "stale", "refused"};

static const char *op_lookup(fixture *f) {
  entry_view view;
  registry_lookup(f->r, &key, &view);
  static char text[64];
  snprintf(text, sizeof text, "job%llu,g%llu,w%zu,l%zu", (unsigned long long)view.job.value,
           (unsigned long long)view.generation, view.n_waiters, view.n_leases);
  return text;
}
static const char *op_begin(fixture *f) {
  return begin_names[begin(f, 30, 4)];
}
static const char *op_begin_again(fixture *f) {
  return begin_names[begin(f, 30, 1)];
}
static const char *op_begin_foreign(fixture *f) {
  static const uuid other = {"other"};
  return begin_names[registry_begin_or_wait(f->r, &key, &other, job(30), job(4), NULL)];
}
static const char *op_complete(fixture *f) {
  return complete_names[complete(f, 10, "x1")];
}
static const char *op_complete_away(fixture *f) {
  return complete_names[complete(f, 10, "x9")];
}
static const char *op_complete_other(fixture *f) {
  return complete_names[complete(f, 99, "x1")];
}
static const char *op_abort_user(fixture *f) {
  registry_abort(f->r, &key, job(10), HF_CLASS_USER, &f->actions);
  return "-";
}
static const char *op_abort_resource(fixture *f) {
  registry_abort(f->r, &key, job(10), HF_CLASS_RESOURCE, &f->actions);
  return "-";
}
static const char *op_abort_retryable(fixture *f) {
  registry_abort(f->r, &key, job(10), HF_CLASS_RETRYABLE, &f->actions);
  return "-";
}
static const char *op_abort_other(fixture *f) {
  registry_abort(f->r, &key, job(99), HF_CLASS_USER, &f->actions);
  return "-";
}
/* The claimer's query is waiter 1, as the scheduler has it. */
static const char *op_leave_claimer(fixture *f) {
  registry_leave(f->r, &key, job(1), &f->actions);
  return "-";
}
static const char *op_leave_waiter(fixture *f) {
  registry_leave(f->r, &key, job(2), &f->actions);
  return "-";
}
static const char *op_leave_all(fixture *f) {
  for (uint64_t waiter = 1; waiter <= 3; waiter++) {
    registry_leave(f->r, &key, job(waiter), &f->actions);
  }
  return "-";
}
static const char *op_invalidate(fixture *f) {
  return registry_invalidate(f->r, &key, "test", &f->actions) ? "removed" : "none";
}
static const char *op_lost(fixture *f) {
  registry_executor_lost(f->r, "x1");
  return "-";
}
static const char *op_lost_other(fixture *f) {
  registry_executor_lost(f->r, "x2");
  return "-";
}
static const char *op_back(fixture *f) {
  return registry_executor_back(f->r, "x1", NULL) == HF_OK ? "-" : "error";
}
static const char *op_inventory(fixture *f) {
  static const pinned_stage stages[] = {{{11}, {1}}, {{10}, {2}}, {{10}, {1}}};
  return registry_inventory(f->r, "x1", stages, 3, &f->actions, NULL) == HF_OK ? "-" : "error";
}
static const char *op_inventory_empty(fixture *f) {
  return registry_inventory(f->r, "x1", NULL, 0, &f->actions, NULL) == HF_OK ? "-" : "error";
}
static const char *op_grace_over(fixture *f) {
  registry_invalidate_executor(f->r, "x1", &f->actions);
  return "-";
}
static const char *op_remove_session(fixture *f) {
  registry_remove_session(f->r, &session, &f->actions);
  return "-";
}
static const char *op_pinned(fixture *f) {
  return registry_is_pinned(f->r, job(10), (stage_id){1}) ? "pinned" : "free";
}
static const char *op_claim_stage(fixture *f) {
  registry_claim_stage(f->r, &key, job(10), (stage_id){7});
  return registry_is_pinned(f->r, job(10), (stage_id){7}) ? "pinned" : "free";
}
static const char *op_lease(fixture *f) {
  return registry_lease_add(f->r, &key, job(5), NULL) == HF_OK ? "leased" : "none";
}
static const char *op_lease_drop(fixture *f) {
  registry_lease_drop(f->r, job(1), &f->actions);
  return "-";
}
static const char *op_touch(fixture *f) {
  registry_touch(f->r, &key, 5);
  entry_view view;
  registry_lookup(f->r, &key, &view);
  return view.hits == 1 ? "hit" : "-";
}
static const char *op_record(fixture *f) {
  entry_output output = {.rows = 3};
  entry_view view;
  return registry_record(f->r, &key, job(10), &output, &view) ? "record" : "none";
}
static const char *op_restore(fixture *f) {
  entry_location at = {.job = {40}, .stage = {1}, .task = {1}, .attempt = {1}, .executor = "x2"};
  entry_view view = {.key = key,
                     .session = session,
                     .job = {40},
                     .generation = 5,
                     .output = {.locations = &at, .n_locations = 1}};
  return registry_restore(f->r, &view, NULL) == HF_OK ? "restored" : "exists";
}

/* ------------------------------------------------------------------- cells */

/* In the order of `situation`. */
typedef struct operation {
  const char *name;
  const char *(*run)(fixture *f);
  const char *cells[SITUATIONS];
} operation;

static const operation operations[] = {
    {"lookup",
     op_lookup,
     {"job0,g0,w0,l0 absent", "job0,g0,w0,l0 absent", "job10,g0,w3,l0 pending", "job20,g0,w1,l0 pending",
      "job10,g0,w3,l0 pending", "job10,g1,w0,l0 materialised", "job10,g1,w0,l1 materialised",
      "job10,g1,w0,l0 unavailable", "job0,g1,w0,l0 absent"}},
    {"begin",
     op_begin,
     {"claimed pending", "released absent", "waiting pending", "waiting pending", "waiting pending",
      "materialised materialised", "materialised materialised", "unavailable unavailable",
      "claimed pending"}},
    {"begin again",
     op_begin_again,
     {"claimed pending", "released absent", "waiting pending", "waiting pending", "waiting pending",
      "materialised materialised", "materialised materialised", "unavailable unavailable",
      "claimed pending"}},
    {"begin foreign",
     op_begin_foreign,
     {"failed absent", "failed absent", "failed pending", "failed pending", "failed pending",
      "failed materialised", "failed materialised", "failed unavailable", "failed absent"}},
    {"complete",
     op_complete,
     {"stale absent", "stale absent", "promoted materialised W1 W2 W3", "stale pending",
      "promoted materialised W1 W2 W3", "duplicate materialised", "duplicate materialised",
      "duplicate unavailable", "stale absent"}},
    {"complete away",
     op_complete_away,
     {"stale absent", "stale absent", "refused pending", "stale pending", "refused pending",
      "duplicate materialised", "duplicate materialised", "duplicate unavailable", "stale absent"}},
    {"complete other",
     op_complete_other,
     {"stale absent", "stale absent", "stale pending", "stale pending", "stale pending", "stale materialised",
      "stale materialised", "stale unavailable", "stale absent"}},
    {"abort user",
     op_abort_user,
     {"- absent", "- absent", "- absent F1 F2 F3", "- pending", "- absent F1 F2 F3", "- materialised",
      "- materialised", "- unavailable", "- absent"}},
    {"abort resource",
     op_abort_resource,
     {"- absent", "- absent", "- absent I1 I2 I3", "- pending", "- absent I1 I2 I3", "- materialised",
      "- materialised", "- unavailable", "- absent"}},
    {"abort retryable",
     op_abort_retryable,
     {"- absent", "- absent", "- absent W1 W2 W3", "- pending", "- absent I1 I2 I3", "- materialised",
      "- materialised", "- unavailable", "- absent"}},
    {"abort other",
     op_abort_other,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- unavailable", "- absent"}},
    {"leave claimer",
     op_leave_claimer,
     {"- absent", "- absent", "- pending", "- absent C20", "- pending", "- materialised", "- materialised",
      "- unavailable", "- absent"}},
    {"leave waiter",
     op_leave_waiter,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- unavailable", "- absent"}},
    {"leave all",
     op_leave_all,
     {"- absent", "- absent", "- absent C10", "- absent C20", "- absent C10", "- materialised",
      "- materialised", "- unavailable", "- absent"}},
    {"invalidate",
     op_invalidate,
     {"none absent", "none absent", "removed absent C10 W1 W2 W3", "removed absent C20 W1",
      "removed absent C10 W1 W2 W3", "removed absent U10.1", "removed absent", "removed absent U10.1",
      "none absent"}},
    {"lost",
     op_lost,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- unavailable", "- unavailable",
      "- unavailable", "- absent"}},
    {"lost other",
     op_lost_other,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- unavailable", "- absent"}},
    {"back",
     op_back,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- materialised", "- absent"}},
    {"inventory",
     op_inventory,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- materialised", "- absent"}},
    {"inventory empty",
     op_inventory_empty,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- absent U10.1", "- absent",
      "- absent U10.1", "- absent"}},
    {"grace over",
     op_grace_over,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- absent U10.1", "- absent",
      "- absent U10.1", "- absent"}},
    {"remove session",
     op_remove_session,
     {"- absent", "- absent", "- absent C10 W1 W2 W3", "- absent C20 W1", "- absent C10 W1 W2 W3",
      "- absent U10.1", "- absent", "- absent U10.1", "- absent"}},
    {"pinned",
     op_pinned,
     {"free absent", "free absent", "pinned pending", "free pending", "pinned pending", "pinned materialised",
      "pinned materialised", "pinned unavailable", "pinned absent"}},
    {"claim stage",
     op_claim_stage,
     {"free absent", "free absent", "pinned pending", "free pending", "pinned pending", "free materialised",
      "free materialised", "free unavailable", "free absent"}},
    {"lease",
     op_lease,
     {"none absent", "none absent", "none pending", "none pending", "none pending", "leased materialised",
      "leased materialised", "none unavailable", "none absent"}},
    {"lease drop",
     op_lease_drop,
     {"- absent", "- absent", "- pending", "- pending", "- pending", "- materialised", "- materialised",
      "- unavailable", "- absent U10.1"}},
    {"touch",
     op_touch,
     {"- absent", "- absent", "hit pending", "hit pending", "hit pending", "hit materialised",
      "hit materialised", "hit unavailable", "hit absent"}},
    {"record",
     op_record,
     {"none absent", "none absent", "record pending", "none pending", "record pending", "none materialised",
      "none materialised", "none unavailable", "none absent"}},
    {"restore",
     op_restore,
     {"restored unavailable", "restored unavailable", "exists pending", "exists pending", "exists pending",
      "exists materialised", "exists materialised", "exists unavailable", "restored unavailable"}},
};

/* Appends what the caller is to do, and checks that each node names the entry. */
static void say_actions(fixture *f, char *out, size_t bytes) {
  registry_action *action = NULL;
  while ((action = registry_actions_take(&f->actions)) != NULL) {
    assert_true(uuid_equal(&action->key, &key) && uuid_equal(&action->session, &session));
    size_t used = strlen(out);
    snprintf(out + used, bytes - used, " %c%llu", "WFIUC"[action->kind],
             (unsigned long long)action -> job.value);
    used = strlen(out);
    if (action->kind == REGISTRY_UNPIN) {
      snprintf(out + used, bytes - used, ".%u", action->stage.value);
    }
    mem_free(action);
  }
}

static void check_cell(const operation *o, situation s) {
  fixture f;
  make(&f, s);
  char got[128];
  const char *result = o->run(&f);
  registry_check(f.r);
  entry_view view;
  snprintf(got, sizeof got, "%s %s", result, registry_state_name(registry_lookup(f.r, &key, &view)));
  say_actions(&f, got, sizeof got);
  if (o->cells[s] == NULL || strcmp(got, o->cells[s]) != 0) {
    fail_msg("%s in situation %d: %s, expected %s", o->name, (int)s, got,
             o->cells[s] == NULL ? "-" : o->cells[s]);
  }
  unmake(&f);
}

static void registry_every_cell_is_as_expected(void **state) {
  (void)state;
  size_t n = 0;
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    for (int s = 0; s < SITUATIONS; s++, n++) {
      check_cell(&operations[i], (situation)s);
    }
  }
  print_message("%zu cells\n", n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registry_every_cell_is_as_expected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding results: declarations (what the user asked for) and the registry of
 * materialisations (what exists). Both belong to the scheduler's thread; nothing
 * here does I/O or reads a clock.
 */
#ifndef HF_HOLD_HOLD_H
#define HF_HOLD_HOLD_H

#include "arrow/type.h"
#include "base/id.h"

/* ------------------------------------------------------------ declarations */

typedef struct declaration {
  uuid key; /* cache id */
  uuid session;
  char fingerprint[33];
  char level[32];
  const char *name; /* CACHE TABLE's name, or NULL */
  bool released;
  schema columns;   /* fixed at the declaration */
  uint64_t declared_us; /* wall time */
} declaration;

typedef struct declarations declarations;

declarations *declarations_new(void);
void declarations_free(declarations *d);
/* Adds; copies everything. Errors: NAME_EXISTS for a known key, OUT_OF_MEMORY. */
hf_status declarations_add(declarations *d, const declaration *row, hf_error *error);
/* Borrowed until the row changes; NULL: never declared. */
const declaration *declarations_find(const declarations *d, const uuid *key);
/* Sets released; false when there is no such key. A released key never fills again. */
bool declarations_release(declarations *d, const uuid *key);
/* Forgets all of a session. */
void declarations_remove_session(declarations *d, const uuid *session);
/* Calls `each` for every row of the session (NULL: all), in the order they were made; stops when it returns false. */
void declarations_each(const declarations *d, const uuid *session, bool (*each)(void *context, const declaration *row),
                       void *context);

/* ---------------------------------------------------------------- registry */

typedef enum entry_state { ENTRY_ABSENT, ENTRY_PENDING, ENTRY_MATERIALISED, ENTRY_UNAVAILABLE } entry_state;

/* Where one attempt's blocks lie. */
typedef struct entry_location {
  job_id job;
  stage_id stage;
  task_id task;
  attempt_id attempt;
  char executor[40];
} entry_location;

/* What a finished fill made. */
typedef struct entry_output {
  schema columns;
  uint64_t rows, bytes;
  bool ordered, indeterminate;
  const entry_location *locations;
  size_t n_locations;
  uint64_t cost_us; /* time to compute */
} entry_output;

/* A look at an entry; borrowed until the next operation. */
typedef struct entry_view {
  entry_state state;
  uuid key, session;
  job_id job;          /* PENDING: the claimer; MATERIALISED: who made it */
  uint64_t generation; /* of this or, while absent, the last materialisation; 0: none yet */
  entry_output output; /* MATERIALISED, UNAVAILABLE */
  uint64_t hits, last_read_us;
  const char *last_drop; /* why it was last dropped; "" */
} entry_view;

typedef struct registry registry;

typedef enum begin_result { BEGIN_CLAIMED, BEGIN_WAITING, BEGIN_MATERIALISED, BEGIN_RELEASED, BEGIN_UNAVAILABLE } begin_result;
typedef enum complete_result { COMPLETE_PROMOTED, COMPLETE_DUPLICATE, COMPLETE_STALE, COMPLETE_REFUSED } complete_result;

/* What the caller must do after an operation; a list, in order. */
typedef enum registry_action_kind {
  REGISTRY_WAKE,        /* waiter: look again */
  REGISTRY_FAIL_WAITER, /* waiter: fails with the abort's error */
  REGISTRY_INLINE,      /* waiter: compute inline, the fill failed for lack of resources or too often */
  REGISTRY_UNPIN,       /* job, stage: delete its files when no lease lists them */
  REGISTRY_CANCEL_JOB   /* job: a fill nobody wants any more */
} registry_action_kind;

typedef struct registry_action {
  registry_action_kind kind;
  job_id job; /* waiter or job */
  stage_id stage;
  uuid key;
} registry_action;

typedef struct registry_actions {
  registry_action *list;
  size_t count, capacity;
} registry_actions;

void registry_actions_reset(registry_actions *actions);

/* `d` is asked whether a key is released; borrowed for the registry's life. */
registry *registry_new(const declarations *d);
void registry_free(registry *r);

/* Fills *out; ABSENT for an unknown key. */
entry_state registry_lookup(const registry *r, const uuid *key, entry_view *out);
/* One call, so no wake-up is missed. WAITING lists `waiter` (a job) for a REGISTRY_WAKE. `job` is who would compute. */
begin_result registry_begin_or_wait(registry *r, const uuid *key, const uuid *session, job_id job, job_id waiter,
                                    hf_error *error);
/* Names the sink stage of a pending claim: pinned from now on. */
void registry_claim_stage(registry *r, const uuid *key, job_id job, stage_id stage);
complete_result registry_complete(registry *r, const uuid *key, job_id job, const entry_output *output, uint64_t now_us,
                                  registry_actions *actions);
/* Clears that job's own claim only; what waiters do depends on the error's class. */
void registry_abort(registry *r, const uuid *key, job_id job, hf_error_class error_class, registry_actions *actions);
/* Takes a waiter off the list (its query was cancelled). The claim's job is cancelled when nobody is left. */
void registry_leave(registry *r, const uuid *key, job_id waiter, registry_actions *actions);
/* Removes the entry, Pending ones too; `why` is kept for the listing (static text). */
bool registry_invalidate(registry *r, const uuid *key, const char *why, registry_actions *actions);
void registry_invalidate_executor(registry *r, const char *executor, registry_actions *actions);
void registry_remove_session(registry *r, const uuid *session, registry_actions *actions);
/* Counts a read that began. */
void registry_touch(registry *r, const uuid *key, uint64_t now_us);
/* Tells whether cleanup must spare this stage of this job. */
bool registry_is_pinned(const registry *r, job_id job, stage_id stage);
/* Leases: a running job lists the (key, generation) it reads; files of a dropped entry go when no lease lists them. */
hf_status registry_lease_add(registry *r, const uuid *key, job_id reader, hf_error *error);
/* Drops all leases of the job; UNPIN actions for dropped entries that nobody lists any more. */
void registry_lease_drop(registry *r, job_id reader, registry_actions *actions);
/* In a test build: asserts the invariants. */
void registry_check(const registry *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding results: declarations (what the user asked for) and the registry of
 * materialisations (what exists). Both belong to the scheduler's thread; nothing
 * here does I/O or reads a clock.
 */
#ifndef HF_HOLD_HOLD_H
#define HF_HOLD_HOLD_H

#include "hold/entry.h"

/* ------------------------------------------------------------ declarations */

typedef struct declarations declarations;

declarations *declarations_new(void);
void declarations_free(declarations *d);
/* Adds; copies everything. Errors: NAME_EXISTS for a known key, OUT_OF_MEMORY. */
hf_status declarations_add(declarations *d, const declaration *row, hf_error *error);
/* Borrowed until the row changes; NULL: never declared. */
const declaration *declarations_find(const declarations *d, const uuid *key);
/* Finds what the session persisted by content and has not released: the same fingerprint, confirmed by comparing the
 * canonical plans (NULL: not compared). Borrowed; NULL: none. */
const declaration *declarations_find_by_fingerprint(const declarations *d, const uuid *session,
                                                    const char *fingerprint, const uint8_t *canonical,
                                                    size_t canonical_bytes);
/* Sets released; false when there is no such key. A released key never fills again. */
bool declarations_release(declarations *d, const uuid *key);
/* Forgets one; false when there is no such key. */
bool declarations_remove(declarations *d, const uuid *key);
/* Forgets all of a session. */
void declarations_remove_session(declarations *d, const uuid *session);
/* Calls `each` for every row of the session (NULL: all), in the order they were made; stops when it returns false. */
void declarations_each(const declarations *d, const uuid *session,
                       bool (*each)(void *context, const declaration *row), void *context);

/* ---------------------------------------------------------------- registry */

typedef struct registry registry;

typedef enum begin_result {
  BEGIN_CLAIMED,      /* `job` computes it now; `waiter` is listed */
  BEGIN_WAITING,      /* another job computes it; `waiter` is listed */
  BEGIN_MATERIALISED, /* there: take a lease and read */
  BEGIN_RELEASED,     /* compute inline, never fill again */
  BEGIN_UNAVAILABLE,  /* on an executor that is away: compute inline, without a claim; lineage cut: fail */
  BEGIN_FAILED        /* error is set: HELD_FOREIGN, OUT_OF_MEMORY */
} begin_result;
typedef enum complete_result {
  COMPLETE_PROMOTED,
  COMPLETE_DUPLICATE,
  COMPLETE_STALE,
  COMPLETE_REFUSED
} complete_result;

/* What the caller must do after an operation; a list, in order. No operation but begin and complete allocates:
 * an action is the node that was made when its waiter was listed or its files were pinned. */
typedef enum registry_action_kind {
  REGISTRY_WAKE,        /* waiter: look again */
  REGISTRY_FAIL_WAITER, /* waiter: fails with the abort's error */
  REGISTRY_INLINE,      /* waiter: compute inline, the fill failed for lack of resources or too often */
  REGISTRY_UNPIN,       /* job, stage: nobody lists its files any more, delete them */
  REGISTRY_CANCEL_JOB   /* job: a fill nobody wants any more */
} registry_action_kind;

typedef struct registry_action {
  struct registry_action *next;
  registry_action_kind kind;
  job_id job; /* waiter or job */
  stage_id stage;
  uuid key;
  uuid session;
} registry_action;

/* Zeroed: empty. */
typedef struct registry_actions {
  registry_action *first, *last;
} registry_actions;

/* Takes the oldest, owned by the caller (mem_free); NULL when there is none. */
registry_action *registry_actions_take(registry_actions *actions);
/* Frees what is left. */
void registry_actions_reset(registry_actions *actions);

/* `d` is asked whether a key is released; borrowed for the registry's life. */
registry *registry_new(const declarations *d);
void registry_free(registry *r);

/* Fills *out; ABSENT for an unknown key. */
entry_state registry_lookup(const registry *r, const uuid *key, entry_view *out);
/* One call, so no wake-up is missed. CLAIMED and WAITING list `waiter` (a job) for one WAKE, FAIL_WAITER or INLINE.
 * `job` is who would compute. */
begin_result registry_begin_or_wait(registry *r, const uuid *key, const uuid *session, job_id job,
                                    job_id waiter, hf_error *error);
/* Names the sink stage of a pending claim: pinned from now on. */
void registry_claim_stage(registry *r, const uuid *key, job_id job, stage_id stage);
/*
 * Puts the result of the claim of `job` in place (copied). PROMOTED wakes the waiters. DUPLICATE: the same job again.
 * STALE: not that job's claim (any more). REFUSED: a location on an executor that is not live, or no memory; the claim
 * stands, the caller aborts it. After STALE and REFUSED the caller deletes that job's output.
 */
complete_result registry_complete(registry *r, const uuid *key, job_id job, const entry_output *output,
                                  registry_actions *actions);
/*
 * Clears that job's own claim only. Class USER: every waiter fails with it. RESOURCE: every waiter computes inline.
 * Else the waiters look again, so that one claims anew: three times in all, then inline.
 */
void registry_abort(registry *r, const uuid *key, job_id job, hf_error_class error_class,
                    registry_actions *actions);
/* Keeps `why` (static) for the listing: the last computation ended and nothing is held. */
void registry_tell(registry *r, const uuid *key, const char *why);
/* Takes a waiter off the list (its query was cancelled). The claim's job is cancelled when nobody is left. */
void registry_leave(registry *r, const uuid *key, job_id waiter, registry_actions *actions);
/* Removes the entry, Pending ones too (its job is cancelled, its waiters look again); `why` is kept for the listing
 * (static text). False: there was none. */
bool registry_invalidate(registry *r, const uuid *key, const char *why, registry_actions *actions);
/* An executor is live: new, or back with all it had. Its entries serve again. Errors: OUT_OF_MEMORY. */
hf_status registry_executor_back(registry *r, const char *executor, hf_error *error);
/* One stage of one job: what pins are made of. */
typedef struct pinned_stage {
  job_id job;
  stage_id stage;
} pinned_stage;
/* As executor_back, with what it still has: entries with a location there whose stage lacks are dropped first. What it
 * has and registry_is_pinned denies, the caller deletes. Errors: OUT_OF_MEMORY. */
hf_status registry_inventory(registry *r, const char *executor, const pinned_stage *stages, size_t n_stages,
                             registry_actions *actions, hf_error *error);
/* An executor is away: its entries are Unavailable until it is back or invalidated. */
void registry_executor_lost(registry *r, const char *executor);
/* An executor stays away (the grace is over): its entries are dropped, but for those whose lineage is cut. */
void registry_invalidate_executor(registry *r, const char *executor, registry_actions *actions);
/* Forgets all entries of the session; as invalidate for each. */
void registry_remove_session(registry *r, const uuid *session, registry_actions *actions);
/* Counts a read that began. */
void registry_touch(registry *r, const uuid *key, uint64_t now_us);
/* Tells whether cleanup must spare this stage of this job. */
bool registry_is_pinned(const registry *r, job_id job, stage_id stage);
/* Calls `each` for every entry of the session (NULL: all), absent ones too, in no order; stops when it returns false.
 * It must not change the registry. */
void registry_each(const registry *r, const uuid *session,
                   bool (*each)(void *context, const entry_view *view), void *context);
/* Puts an entry of the journal in place: Unavailable until its executors are live. Errors: OUT_OF_MEMORY, NAME_EXISTS
 * (the key has an entry). */
hf_status registry_restore(registry *r, const entry_view *from, hf_error *error);
/* Fills *out with what registry_complete would put in place: borrows *output. False: not the claim of `job`. */
bool registry_record(const registry *r, const uuid *key, job_id job, const entry_output *output,
                     entry_view *out);
/* A running job lists the (key, generation) it reads: files of a dropped entry go when no lease lists them. The entry must
 * be there. Errors: OUT_OF_MEMORY, INTERNAL (it is not there). */
hf_status registry_lease_add(registry *r, const uuid *key, job_id reader, hf_error *error);
/* Drops all leases of the job; UNPIN actions for dropped entries that nobody lists any more. */
void registry_lease_drop(registry *r, job_id reader, registry_actions *actions);
/* Asserts the invariants R1 to R9 of registry.c. Cost: O(entries × waiters). */
void registry_check(const registry *r);

#endif

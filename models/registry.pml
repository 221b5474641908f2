/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol around one held result: queries, the fills that they claim, the
 * cleaner, executors, the journal, and a user who does everything else at any moment,
 * up to EVENTS times. Checked in every interleaving by models/check, in the bounded
 * configurations that it lists:
 *
 * P1 never two owners: a claim is one job's, and a completion without it changes nothing
 * P2 never a read of a removed generation: what a query reads is there, or its executor is not
 * P3 never a pinned stage deleted
 * P4 never an output left behind
 * P5 never a waiter asleep for ever
 * P6 no deadlock (spin's own check, and the judge's)
 * P7 with JOURNAL: what was acknowledged survives a crash, what was removed does not come back
 * P8 never a fill that nobody wants, but one that is being cancelled
 *
 * P1 to P4 and P7 are asserts, P5 and P6 the judge's at the end, and every query ends
 * under weak fairness (the claim `ends`).
 *
 * Names of operations are those of src/hold/registry.c.
 */
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* actions of a query process, one after the other */
#endif

#include "registry_state.pml"

#ifdef JOURNAL
/* The journal's thread writes in the order of calls; what is in the channel is not written yet. An entry is put when it
 * is there; those who waited are told when it is written. */
#define PUT 0
#define REMOVE 1
byte record = NONE;   /* written: the job whose data are the entry */
bool acknowledged[4]; /* by job: it is written, and those who waited are not told yet */
bool told_all[4];     /* by job: they are */
byte deferred[4];     /* by job: those who waited, as bits */
byte unwritten[4];    /* how often the channel names a job */
bool returning[EXECUTORS];
chan journal = [8] of { byte, byte };
#ifndef FAULT_REMOVAL_IS_NOT_WRITTEN
#define JOURNAL_REMOVE(j) journal!REMOVE, j; unwritten[j]++
#endif
#define is_recorded(j) (record == (j) || unwritten[j] > 0 || acknowledged[j])
#else
#define is_recorded(j) false
#endif

#include "registry_machine.pml"

/* job states */
#define FREE 0
#define STARTED 1
#define RUNNING 2
#define REPORTED 3 /* its output is written, the report is on its way */
#define OVER 4

byte job[JOBS];
bool again[JOBS]; /* its report may come a second time */
bool wiped[JOBS]; /* its files went with the executor's disk */
bool closed = false; /* the session */
bool cancelled[QUERIES];
bool asleep[QUERIES];
byte done = 0; /* query processes that have ended */
byte events = EVENTS;
byte k; /* inside an atomic only */

/* --------------------------------------------------------------- the query */

inline read() {
  j = lease[_pid];
  if
  :: !cancelled[_pid] && !(files[j] && live[on[j]]) ->
    assert(wiped[j] || !live[on[j]]); /* P2 */
    if
    :: held == j && live[on[j]] -> registry_invalidate() /* a block is missing */
    :: else
    fi;
    tries++
  :: else -> tries = 3 /* has read, or was cancelled */
  fi;
  j = 0;
  registry_lease_drop(_pid)
}

/* A query that has left is no longer there to be told. */
inline forget_deferred(q) {
#ifdef JOURNAL
  deferred[0] = deferred[0] & ~bit(q);
  deferred[1] = deferred[1] & ~bit(q);
  deferred[2] = deferred[2] & ~bit(q)
#else
  skip
#endif
}

active [QUERIES] proctype query() {
  byte rounds = ROUNDS, tries = 0, j = 0;

next:
  do
  :: atomic { closed || cancelled[_pid] -> break }
  :: atomic {
      !closed && !cancelled[_pid] ->
      /* The slot that a claim would take. Without one the model ends here; the code has no such bound. */
      j = 0;
      do
      :: j < JOBS && job[j] != FREE -> j++
      :: else -> break
      od;
      if
      :: j == JOBS -> j = 0; break
      :: else
      fi;
      registry_begin_or_wait(_pid, j);
      if
      :: result == CLAIMED -> result = 0; job[j] = STARTED; j = 0; asleep[_pid] = true
      :: result == WAITING -> result = 0; j = 0; asleep[_pid] = true
      :: result == SERVED -> result = 0; j = 0; registry_lease_add(_pid)
      :: result == RELEASED || result == AWAY -> result = 0; j = 0; break /* computes inline */
      fi
    }
    if
    :: atomic {
        asleep[_pid] && told[_pid] == WAKE ->
        told[_pid] = NOTHING;
        asleep[_pid] = false
      }
    :: atomic { asleep[_pid] && (told[_pid] == FAIL_WAITER || told[_pid] == INLINE) -> break }
    :: atomic { asleep[_pid] && cancelled[_pid] -> registry_leave(_pid); forget_deferred(_pid); break }
    :: atomic {
        lease[_pid] != NONE -> read();
        if
        :: tries == 3 -> break
        :: else
        fi
      }
#ifdef JOURNAL
    :: atomic { !asleep[_pid] && lease[_pid] == NONE -> break } /* its server has died */
#endif
    fi
  od;
  atomic {
    asleep[_pid] = false;
    cancelled[_pid] = false;
    told[_pid] = NOTHING;
    tries = 0;
    j = 0;
    rounds--;
    if
    :: rounds > 0 -> goto next
    :: else -> done++
    fi
  }
}

/* ---------------------------------------------------------------- the fill */

inline over(j) {
  job[j] = OVER;
  cancelling[j] = false
}

/* Job cleanup, and what follows STALE and REFUSED: deletes what nobody pins. */
inline clean(j) {
  if
  :: files[j] && !is_pinned(j) -> deleting[j] = true
  :: else
  fi
}

inline fail(j) {
  if
  :: registry_abort(j, USER)
  :: registry_abort(j, RESOURCE)
  :: registry_abort(j, RETRYABLE)
  fi;
  clean(j);
  over(j)
}

inline fail_anyhow(j) {
  registry_abort(j, RETRYABLE);
  clean(j);
  over(j)
}

inline launch(j, x) {
  on[j] = x;
  files[j] = true;
  wiped[j] = false;
  job[j] = RUNNING;
  registry_claim_stage(j)
}

#ifdef JOURNAL
/* Of those whom the promotion has told: the bits are theirs who waited before. */
inline defer(j) {
  k = 0;
  do
  :: k < QUERIES ->
    if
    :: (deferred[j] & bit(k)) != 0 -> told[k] = NOTHING
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0;
  journal!PUT, j;
  unwritten[j]++
}

inline tell_deferred(j) {
  k = 0;
  do
  :: k < QUERIES ->
    if
    :: (deferred[j] & bit(k)) != 0 -> told[k] = WAKE
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0;
  deferred[j] = 0;
  acknowledged[j] = false;
  told_all[j] = (held == j)
}
#endif

inline settle(j) {
  assert(!is_claim_of(j) || waiters != 0); /* P8 */
#ifdef JOURNAL
  deferred[j] = (is_claim_of(j) -> waiters : 0);
#endif
  registry_complete(j);
#ifdef JOURNAL
  if
  :: result == PROMOTED -> defer(j)
  :: else -> deferred[j] = 0
  fi;
#ifdef FAULT_ACKNOWLEDGED_TOO_EARLY
  tell_deferred(j);
#endif
#endif
  if
  :: result == REFUSED -> registry_abort(j, RETRYABLE)
  :: else
  fi;
#ifdef FAULT_STALE_OUTPUT_STAYS
  if
  :: result == STALE
  :: else -> clean(j)
  fi;
#else
  clean(j);
#endif
  result = 0;
#ifdef DUPLICATES
  again[j] = true;
#endif
  over(j)
}

#define me (_pid - QUERIES)

active [JOBS] proctype fill() {
end:
  do
  :: atomic { job[me] == STARTED && cancelling[me] -> fail_anyhow(me) }
  :: atomic { job[me] == STARTED && !cancelling[me] -> fail(me) }
  :: atomic { job[me] == STARTED && !cancelling[me] && live[0] -> launch(me, 0) }
#if EXECUTORS > 1
  :: atomic { job[me] == STARTED && !cancelling[me] && live[1] -> launch(me, 1) }
#endif
  :: atomic { job[me] == RUNNING && (cancelling[me] || wiped[me] || !live[on[me]]) -> fail_anyhow(me) }
  :: atomic { job[me] == RUNNING && !cancelling[me] -> fail(me) }
  :: atomic { job[me] == RUNNING && !wiped[me] && live[on[me]] -> job[me] = REPORTED }
  /* A stage whose readers are done may be reaped; a sink stage has none. */
  :: atomic { job[me] == REPORTED && files[me] && !deleting[me] && !is_pinned(me) -> deleting[me] = true }
  :: atomic { job[me] == REPORTED -> settle(me) }
#ifdef JOURNAL
  :: atomic { acknowledged[me] -> tell_deferred(me) }
#endif
  :: atomic {
      job[me] == OVER && again[me] ->
      registry_complete(me);
      assert(result != PROMOTED); /* P1 */
      result = 0;
      again[me] = false;
      clean(me)
    }
  /* The cleaner. */
  :: atomic {
      deleting[me] && live[on[me]] ->
      assert(!is_pinned(me)); /* P3 */
      deleting[me] = false;
      files[me] = false
    }
  /* Nothing refers to the job any more: its id may stand for another. */
  :: atomic {
      job[me] == OVER && !again[me] && !files[me] && !is_pinned(me) && !is_recorded(me) ->
      job[me] = FREE;
      deleting[me] = false;
#ifdef JOURNAL
      told_all[me] = false;
#endif
      wiped[me] = false;
      on[me] = 0
    }
  od
}

/* ---------------------------------------------------------------- the user */

bool has_new_disk; /* inside an atomic only */

/* What an executor has that nobody pins goes; the inventory of one with a new disk is empty. */
inline come_back(x) {
  if
  :: has_new_disk = false
  :: has_new_disk = true
  fi;
  k = 0;
  do
  :: k < JOBS ->
    if
    :: files[k] && on[k] == x && has_new_disk -> files[k] = false; deleting[k] = false; wiped[k] = true
    :: files[k] && on[k] == x && !has_new_disk && job[k] == OVER && !is_pinned(k) -> deleting[k] = true
    :: else
    fi;
    k++
  :: else -> break
  od;
  k = 0;
  has_new_disk = false;
  if
  :: held != NONE && on[held] == x && !files[held] -> registry_invalidate()
  :: else
  fi;
  registry_executor_back(x)
}

inline executor_event(x) {
  if
  :: live[x] -> registry_executor_lost(x)
  :: !live[x] -> come_back(x)
  :: !live[x] -> registry_invalidate_executor(x)
  fi
}

inline cancel_all() {
  k = 0;
  do
  :: k < QUERIES -> cancelled[k] = true; k++
  :: else -> break
  od;
  k = 0
}

#ifdef JOURNAL
/* The process dies and starts again on its journal. */
inline crash() {
  assert(held == NONE || !told_all[held] || record == held); /* P7 */
  do
  :: nempty(journal) -> journal?k, _
  :: empty(journal) -> break
  od;
  state = ABSENT;
  held = NONE;
  claim = NONE;
  named = false;
  owners = 0;
  failures = 0;
  waiters = 0;
  cancel_all();
  do
  :: k < QUERIES -> lease[k] = NONE; told[k] = NOTHING; k++
  :: else -> break
  od;
  k = 0;
  do
  :: k < JOBS ->
    if
    :: job[k] != FREE -> over(k)
    :: else
    fi;
    unwritten[k] = 0; acknowledged[k] = false; told_all[k] = false; deferred[k] = 0; deleting[k] = false; again[k] = false; k++
  :: else -> break
  od;
  k = 0;
  do
  :: k < EXECUTORS -> live[k] = false; returning[k] = true; k++
  :: else -> break
  od;
  k = 0;
  if
  :: record != NONE -> registry_restore(record)
  :: else
  fi;
  if
  :: released || closed -> registry_invalidate() /* its declaration says so; the removal was not written yet */
  :: else
  fi
}

active proctype writer() {
  byte operation, j;
end:
  do
  :: atomic {
      journal?operation, j ->
      unwritten[j]--;
      if
      :: operation == PUT -> record = j; acknowledged[j] = true
      :: operation == REMOVE && record == j -> record = NONE
      :: operation == REMOVE && record != j
      fi;
      operation = 0;
      j = 0
    }
  od
}
#endif

active proctype user() {
end:
  do
  :: atomic { events > 0 -> events-- ; registry_invalidate() } /* refresh, eviction, a source that was written */
  :: atomic { events > 0 && !released -> events--; released = true; registry_invalidate() } /* unpersist */
  :: atomic { events > 0 && released -> events--; released = false } /* declared anew; the model keeps the key */
  :: atomic { events > 0 && !closed -> events--; closed = true; cancel_all(); registry_invalidate() }
  :: atomic { events > 0 && !cancelled[0] -> events--; cancelled[0] = true }
  :: atomic { events > 0 && !cancelled[QUERIES - 1] -> events--; cancelled[QUERIES - 1] = true }
#ifdef EXECUTORS_FAIL
  :: atomic { events > 0 -> events--; executor_event(0) }
#if EXECUTORS > 1
  :: atomic { events > 0 -> events--; executor_event(1) }
#endif
#endif
#ifdef JOURNAL
  :: atomic { events > 0 -> events--; crash() }
  :: atomic { returning[0] -> returning[0] = false; come_back(0) }
#endif
  :: atomic { events > 0 -> events = 0 }
  od
}

/* --------------------------------------------------------------- the judge */

active proctype judge() {
  byte i = 0;
end:
  atomic {
    timeout ->
    assert(done == QUERIES); /* P5, P6 */
    assert(state != PENDING && waiters == 0);
#ifdef JOURNAL
    assert(record == held); /* P7 */
#endif
    assert(!(closed || released) || state == ABSENT || events > 0);
    do
    :: i < JOBS ->
      assert(!files[i] || is_pinned(i) || !live[on[i]]); /* P4 */
      i++
    :: else -> break
    od
  }
}

ltl ends { <> (done == QUERIES) }

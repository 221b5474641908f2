/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry's operations on one key, as src/hold/registry.c names them. Each is
 * one event of the scheduler's thread: a d_step.
 * Not here: the state (registry_state.pml); who calls them (registry.pml, registry_walk.pml).
 *
 * A rule is broken on purpose with -DFAULT_<rule>: models/check shows that spin finds it.
 */
/* The walk writes each operation down (registry_walk.pml). */
#ifndef BEFORE
#define BEFORE skip
#define AFTER(operation) skip
#endif
#ifndef JOURNAL_REMOVE
#define JOURNAL_REMOVE(j) skip
#endif

/* -------------------------------------------------------------- operations */

byte each; /* inside a d_step only */

inline tell(what) {
  each = 0;
  do
  :: each < QUERIES ->
    if
    :: is_listed(each) -> told[each] = what
    :: else
    fi;
    each++
  :: else -> break
  od;
  each = 0;
  waiters = 0
}

inline claim_clear() {
  if
  :: owners > 0 -> owners--
  :: else
  fi;
  state = ABSENT;
  claim = NONE;
  named = false
}

inline registry_begin_or_wait(q, j) {
  d_step {
    BEFORE;
    if
    :: released -> result = RELEASED
#ifdef FAULT_TWO_CLAIMS
    :: !released && (state == ABSENT || state == PENDING) ->
#else
    :: !released && state == ABSENT ->
#endif
      assert(owners == 0); /* P1 */
      owners++; state = PENDING; claim = j; waiters = waiters | bit(q); result = CLAIMED
#ifndef FAULT_TWO_CLAIMS
    :: !released && state == PENDING -> waiters = waiters | bit(q); result = WAITING
#endif
    :: !released && state == MATERIALISED -> result = SERVED
    :: !released && state == UNAVAILABLE -> result = AWAY
    fi;
    AFTER("begin")
  }
}

inline registry_claim_stage(j) {
  d_step {
    if
    :: is_claim_of(j) -> named = true
    :: else
    fi
  }
}

inline registry_complete(j) {
  d_step {
    BEFORE;
    if
#ifdef FAULT_STALE_REVIVES
    :: (is_claim_of(j) || state == ABSENT) && live[on[j]] ->
#else
    :: is_claim_of(j) && live[on[j]] ->
#endif
      claim_clear(); state = MATERIALISED; held = j; failures = 0; tell(WAKE); result = PROMOTED
    :: is_claim_of(j) && !live[on[j]] -> result = REFUSED
    :: !is_claim_of(j) && held == j -> result = DUPLICATE
#ifdef FAULT_STALE_REVIVES
    :: !is_claim_of(j) && held != j && (state != ABSENT || !live[on[j]]) -> result = STALE
#else
    :: !is_claim_of(j) && held != j -> result = STALE
#endif
    fi;
    AFTER("complete")
  }
}

inline registry_abort(j, class) {
  d_step {
    BEFORE;
    if
    :: is_claim_of(j) ->
      if
      :: class == USER -> failures = 0; tell(FAIL_WAITER)
      :: class == RESOURCE -> failures = 0; tell(INLINE)
#ifdef FAULT_RETRIES_FOR_EVER
      :: class == RETRYABLE -> tell(WAKE)
#else
      :: class == RETRYABLE && failures < 2 -> failures++;
#ifdef FAULT_ABORT_WAKES_NOBODY
        waiters = 0
#else
        tell(WAKE)
#endif
      :: class == RETRYABLE && failures == 2 -> failures = 0; tell(INLINE)
#endif
      fi;
      claim_clear()
    :: else
    fi;
    AFTER("abort")
  }
}

inline registry_leave(q) {
  d_step {
    BEFORE;
    if
    :: is_listed(q) ->
      waiters = waiters & ~bit(q);
#ifdef FAULT_CLAIM_OUTLIVES_ITS_WAITERS
      skip
#else
      if
      :: waiters == 0 -> cancelling[claim] = true; failures = 0; claim_clear()
      :: else
      fi
#endif
    :: else
    fi;
    AFTER("leave")
  }
}

/* Inside a d_step. */
inline remove() {
  if
  :: state == PENDING ->
#ifdef FAULT_REMOVAL_FORGETS_CLAIMS
    skip
#else
    cancelling[claim] = true; failures = 0; tell(WAKE); claim_clear()
#endif
  :: state == MATERIALISED || state == UNAVAILABLE ->
    JOURNAL_REMOVE(held);
    if
#ifdef FAULT_LEASES_DO_NOT_COUNT
    :: true -> deleting[held] = true
#else
    :: !is_leased(held) -> deleting[held] = true
    :: else
#endif
    fi;
    held = NONE;
    state = ABSENT
  :: state == ABSENT
  fi
}

inline registry_invalidate() {
  d_step {
    BEFORE;
    remove();
    AFTER("invalidate")
  }
}

/* The journal has the data of j from before a restart. */
inline registry_restore(j) {
  d_step {
    BEFORE;
    if
    :: state == ABSENT -> held = j; failures = 0; state = (live[on[j]] -> MATERIALISED : UNAVAILABLE)
    :: else
    fi;
    AFTER("restore")
  }
}

inline registry_executor_lost(x) {
  d_step {
    BEFORE;
    live[x] = false;
    if
    :: state == MATERIALISED && on[held] == x -> state = UNAVAILABLE
    :: else
    fi;
    AFTER("executor_lost")
  }
}

inline registry_executor_back(x) {
  d_step {
    BEFORE;
    live[x] = true;
    if
    :: state == UNAVAILABLE && on[held] == x -> state = MATERIALISED
    :: else
    fi;
    AFTER("executor_back")
  }
}

/* The grace of an executor that is away is over. */
inline registry_invalidate_executor(x) {
  d_step {
    BEFORE;
    live[x] = false;
    if
    :: held != NONE && on[held] == x -> remove()
    :: else
    fi;
    AFTER("invalidate_executor")
  }
}

inline registry_lease_add(q) {
  d_step {
    BEFORE;
    if
    :: state == MATERIALISED -> lease[q] = held
    :: else
    fi;
    AFTER("lease_add")
  }
}

byte was_read; /* inside a d_step only */

inline registry_lease_drop(q) {
  d_step {
    BEFORE;
    was_read = lease[q];
    lease[q] = NONE;
    if
    :: was_read != NONE && was_read != held && !is_leased(was_read) -> deleting[was_read] = true
    :: else
    fi;
    was_read = NONE;
    AFTER("lease_drop")
  }
}

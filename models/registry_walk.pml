/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes down the transition relation of the registry's operations on one key: anybody
 * calls anything, in every order, without the scheduler's discipline. Each different
 * transition is one line of the file `transitions`, which models/check compares with
 * models/registry.transitions; tests/unit/hold/test_registry_relation.c walks the real
 * machine along it. A line:
 *
 *   state f<failures> w<waiters> l<leases> | operation how | result | state' f w l | actions
 *
 * where `how` says what the caller is to the entry, and leases are those on its data.
 * Not here: the protocol and its properties (registry.pml).
 */
#define QUERIES 3
#define JOBS 3
#define EXECUTORS 2
#define NO_RESULT 9
#define BEFORE result = NO_RESULT; c_code { look_before(); }
#define AFTER(operation) c_code { look_after(operation); }; forget()
#include "registry_state.pml"

byte q, j, x, class; /* of the operation */

c_code { \#include "registry_walk.h" }

#include "registry_machine.pml"

/* What an operation told, cancelled and unpinned is not part of the relation's states. */
inline forget() {
  told[0] = NOTHING; told[1] = NOTHING; told[2] = NOTHING;
  cancelling[0] = false; cancelling[1] = false; cancelling[2] = false;
  deleting[0] = false; deleting[1] = false; deleting[2] = false;
  result = NO_RESULT;
  each = 0;
  owners = 0
}

#define is_referred_to(k) ((k) == claim || (k) == held || is_leased(k))

inline any_query() { if :: q = 0 :: q = 1 :: q = 2 fi }
inline any_job() { if :: j = 0 :: j = 1 :: j = 2 fi }
inline any_executor() { if :: x = 0 :: x = 1 fi }

active proctype anyone() {
end:
  do
  :: atomic {
      if
      :: any_query(); any_job();
        if
        :: !is_referred_to(j) -> registry_begin_or_wait(q, j)
        :: else
        fi
      :: any_job(); any_executor();
        if
        :: is_claim_of(j) && !is_leased(j) -> on[j] = x
        :: else
        fi;
        registry_complete(j);
        if
        :: !is_referred_to(j) || is_claim_of(j) -> on[j] = 0
        :: else
        fi
      :: any_job(); any_executor();
        if
        :: !is_referred_to(j) -> on[j] = x
        :: else
        fi;
        if
        :: !is_referred_to(j) -> registry_restore(j)
        :: else
        fi;
        if
        :: !is_referred_to(j) -> on[j] = 0
        :: else
        fi
      :: any_job();
        if
        :: class = USER
        :: class = RESOURCE
        :: class = RETRYABLE
        fi;
        registry_abort(j, class)
      :: any_query(); registry_leave(q)
      :: registry_invalidate()
      :: any_executor(); registry_executor_lost(x)
      :: any_executor(); registry_executor_back(x)
      :: any_executor(); registry_invalidate_executor(x)
      :: any_query();
        if
        :: lease[q] == NONE || lease[q] == held -> registry_lease_add(q) /* a second generation: see the test */
        :: else
        fi
      :: any_query(); registry_lease_drop(q)
      :: released = !released
      fi;
      q = 0; j = 0; x = 0; class = 0
    }
  od
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key of the registry: its entry, who waits, who reads, and what exists of the
 * outputs of jobs. A job has a slot; its id is the slot while anything refers to it.
 * An output lies on one executor.
 * Not here: the operations (registry_machine.pml).
 */
#ifndef QUERIES
#define QUERIES 2 /* waiters and readers: 0 … QUERIES - 1 */
#endif
#ifndef JOBS
#define JOBS 3 /* slots of fills */
#endif
#ifndef EXECUTORS
#define EXECUTORS 1
#endif
#define NONE 15

/* entry_state */
#define ABSENT 0
#define PENDING 1
#define MATERIALISED 2
#define UNAVAILABLE 3

/* begin_result and complete_result */
#define CLAIMED 0
#define WAITING 1
#define SERVED 2
#define RELEASED 3
#define AWAY 4
#define PROMOTED 5
#define DUPLICATE 6
#define STALE 7
#define REFUSED 8

/* hf_error_class, as abort tells them apart */
#define USER 0
#define RESOURCE 1
#define RETRYABLE 2

/* what a waiter is told */
#define NOTHING 0
#define WAKE 1
#define FAIL_WAITER 2
#define INLINE 3

/* ------------------------------------------------------------------- state */

byte state = ABSENT;
byte claim = NONE;    /* PENDING: the claimer */
bool named = false;   /* PENDING: its sink stage is known, and pinned */
byte held = NONE;     /* MATERIALISED, UNAVAILABLE: who made the data */
byte failures = 0;    /* of claims since the last success */
byte waiters = 0;     /* bits */
byte told[QUERIES];   /* not looked at yet */
byte lease[QUERIES] = NONE; /* the job whose data a query reads; NONE */
bool released = false;
bool live[EXECUTORS] = true;

bool files[JOBS];     /* its output, or a part of it, exists */
bool deleting[JOBS];  /* the cleaner will delete it */
bool cancelling[JOBS];
byte on[JOBS];        /* its executor */

byte owners = 0;      /* jobs that have the claim: P1 */
byte result;          /* of the last operation */

#define bit(q) (1 << (q))
#define is_listed(q) ((waiters & bit(q)) != 0)
#define is_claim_of(j) (state == PENDING && claim == (j))

#if QUERIES == 1
#define is_leased(j) (lease[0] == (j))
#elif QUERIES == 2
#define is_leased(j) (lease[0] == (j) || lease[1] == (j))
#else
#define is_leased(j) (lease[0] == (j) || lease[1] == (j) || lease[2] == (j))
#endif

#ifdef FAULT_CLAIM_IS_NO_PIN
#define is_pinned(j) (held == (j) || is_leased(j))
#else
#define is_pinned(j) ((is_claim_of(j) && named) || held == (j) || is_leased(j))
#endif

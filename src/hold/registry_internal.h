/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry's parts and its machine's interface: for registry.c, its lease and
 * check files, and the tests that visit every cell. Not a door.
 * Thread: the owner of the registry.
 */
#ifndef HF_HOLD_REGISTRY_INTERNAL_H
#define HF_HOLD_REGISTRY_INTERNAL_H

#include "hold/hold.h"

#include "base/mem.h"

#define uthash_malloc(bytes) mem_alloc(bytes)
#define uthash_free(block, bytes) mem_free(block)
#define HASH_NONFATAL_OOM 1 /* a failed add leaves hh.tbl NULL */
#include <uthash.h>
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 3U /* short chains: a step in one is a miss of the cache */
#include <utlist.h>

/* X(state, name, what is true in it) */
#define REGISTRY_STATES(X)                                                              \
  X(ENTRY_ABSENT, "absent", "no data, and nobody computes them")                        \
  X(ENTRY_PENDING, "pending", "one job has the claim and at least one waiter wants it") \
  X(ENTRY_MATERIALISED, "materialised", "all data are there, on live executors")        \
  X(ENTRY_UNAVAILABLE, "unavailable", "all data are there, some on an executor that is away")

/* X(event, name, what happened) */
#define REGISTRY_EVENTS(X)                                                                                \
  X(EVENT_BEGIN, "begin", "a job wants the result")                                                       \
  X(EVENT_COMPLETE, "complete", "the job of the claim, or of the entry, has computed it")                 \
  X(EVENT_COMPLETE_REFUSED, "complete_refused", "so it has, but a location is not live")                  \
  X(EVENT_COMPLETE_OTHER, "complete_other", "a job without this claim has computed it")                   \
  X(EVENT_ABORT_USER, "abort_user", "the claim's job failed by the user's fault")                         \
  X(EVENT_ABORT_RESOURCE, "abort_resource", "the claim's job lacked memory or disk")                      \
  X(EVENT_ABORT_AGAIN, "abort_again", "the claim's job failed otherwise; it may be tried again")          \
  X(EVENT_ABORT_TOO_OFTEN, "abort_too_often", "so it did, for the third time")                            \
  X(EVENT_ABORT_OTHER, "abort_other", "a job without this claim failed")                                  \
  X(EVENT_LEAVE, "leave", "a waiter left, others stay")                                                   \
  X(EVENT_LEAVE_LAST, "leave_last", "the last waiter left")                                               \
  X(EVENT_LEAVE_OTHER, "leave_other", "a job left that is no waiter (any more)")                          \
  X(EVENT_INVALIDATE, "invalidate", "the entry must go: released, refreshed, lost, or its session ended") \
  X(EVENT_EXECUTOR_LOST, "executor_lost", "an executor with some of its blocks is away")                  \
  X(EVENT_EXECUTOR_BACK, "executor_back", "all executors with its blocks are live again")                 \
  X(EVENT_RESTORE, "restore", "the journal has it from before a restart")

typedef enum registry_event {
#define X(event, name, sentence) event,
  REGISTRY_EVENTS(X)
#undef X
      EVENT_COUNT
} registry_event;

/* What a transition does; those that list actions say which. */
typedef enum registry_effect {
  EFFECT_DEFECT,  /* no such row */
  EFFECT_IGNORE,  /* the row says why */
  EFFECT_CLAIM,   /* the job gets the claim */
  EFFECT_JOIN,    /* the waiter is listed */
  EFFECT_SERVE,   /* the data are there */
  EFFECT_AWAY,    /* the data are away */
  EFFECT_PROMOTE, /* the output becomes the entry; wakes the waiters */
  EFFECT_AGAIN,   /* the same job completes again */
  EFFECT_STALE,   /* the output is nobody's */
  EFFECT_REFUSE,  /* the output cannot be taken */
  EFFECT_FAIL,    /* fails the waiters */
  EFFECT_INLINE,  /* tells the waiters to compute inline */
  EFFECT_RETRY,   /* wakes the waiters: one claims anew */
  EFFECT_UNLIST,  /* the waiter goes */
  EFFECT_ABANDON, /* the claim goes; cancels its job */
  EFFECT_REVOKE,  /* the claim goes; cancels its job, wakes the waiters */
  EFFECT_DROP,    /* the data go; unpins them unless a lease lists them */
  EFFECT_SUSPEND, /* the data are away from now on */
  EFFECT_RESUME,  /* the data are back */
  EFFECT_RESTORE  /* the data are known, and away until their executors are live */
} registry_effect;

/* A stage that cleanup must spare. A node of the pins' table; owned by the claim or the data that pin. */
typedef struct pin {
  struct pin *next; /* in its bucket */
  job_id job;
  stage_id stage;
} pin;

enum {
  PIN_BUCKETS_FIRST = 64,
  ENTRY_ARENA_BYTES = 448 /* of one of some 10,000 entries or declarations */
};

/* Pins by (job, stage). Adding never fails: without memory for more buckets the chains grow longer. */
typedef struct pin_table {
  size_t n_buckets, n_pins; /* n_buckets is a power of two; 0: the first use makes it PIN_BUCKETS_FIRST */
  pin **buckets;            /* fixed, or owned */
  pin *fixed[PIN_BUCKETS_FIRST];
} pin_table;

/* One generation of data. Owned by its entry or, dropped and still leased, by registry.dropped. */
typedef struct materialisation {
  struct materialisation *prev, *next; /* in registry.dropped */
  uuid key, session;
  uint64_t generation;
  job_id job;
  entry_output output;
  registry_action *unpins; /* one node for each (job, stage) of its locations, until they are handed out */
  pin *pins;               /* one for each as well, in the table */
  size_t n_pins;
  size_t n_leases;
  bool is_dropped;
  arena *memory;
} materialisation;

typedef struct registry_entry {
  uuid key, session;
  entry_state state; /* written by registry_step alone */
  job_id job;        /* PENDING: the claimer */
  pin claimed;       /* PENDING: its sink stage, in the table when it is known; else stage 0 */
  unsigned failures; /* of claims since the last success */
  registry_action *waiters;
  registry_action *cancel; /* PENDING: the node for the cancellation of `job` */
  materialisation *held;   /* MATERIALISED, UNAVAILABLE */
  uint64_t generation, hits, last_read_us;
  const char *last_drop;
  UT_hash_handle hh; /* by key.text */
} registry_entry;

typedef struct lease {
  struct lease *next;
  materialisation *held;
} lease;

/* The leases of one job. */
typedef struct lease_reader {
  job_id reader;
  lease *leases;
  UT_hash_handle hh; /* by reader */
} lease_reader;

typedef struct live_executor {
  struct live_executor *next;
  char id[40];
} live_executor;

struct registry {
  const declarations *declared;
  registry_entry *entries;
  materialisation *dropped;
  lease_reader *readers;
  live_executor *live;
  pin_table pins;
};

/* The one writer of `state`: finds the row, traces it, appends its actions. The caller does the rest of the effect. */
registry_effect registry_step(registry_entry *entry, registry_event event, registry_actions *actions);
const char *registry_state_name(entry_state state);
const char *registry_event_name(registry_event event);

/* A node about the entry; NULL: no memory. */
registry_action *registry_node_new(const registry_entry *entry, job_id job);
void registry_nodes_free(registry_action **list);
/* Moves all nodes of a list to the actions, as one kind. */
void registry_actions_move(registry_actions *actions, registry_action_kind kind, registry_action **list);
registry_entry *registry_find(const registry *r, const uuid *key);
/* Takes the data off the entry after EFFECT_DROP: freed, or kept in `dropped` while leases list them. */
void registry_detach(registry *r, registry_entry *entry);
/* Frees it, and takes its pins out of the table. */
void materialisation_free(registry *r, materialisation *m);
/* Copies the output; its unpin nodes and pins are made, the pins not listed. NULL: no memory. */
materialisation *materialisation_new(const registry_entry *entry, job_id job, uint64_t generation,
                                     const entry_output *output);
/* Gives data to an entry that has none: lists their pins. */
void registry_attach(registry *r, registry_entry *entry, materialisation *m);
void pins_add(pin_table *table, pin *node);
void pins_remove(pin_table *table, pin *node);
bool pins_has(const pin_table *table, job_id job, stage_id stage);
void pins_reset(pin_table *table);
/* Drops all leases without a word. */
void leases_free(registry *r);
/* Removes as the door's invalidate does. */
bool registry_remove(registry *r, registry_entry *entry, const char *why, registry_actions *actions);
registry_entry *registry_entry_add(registry *r, const uuid *key, const uuid *session);
/* Tells whether one of its locations is on the executor. */
bool registry_is_on(const entry_output *output, const char *executor);
bool registry_is_live(const registry *r, const char *executor);
/* Tells whether all its locations are live. */
bool registry_all_live(const registry *r, const entry_output *output);

#endif

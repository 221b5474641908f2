/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of executor/ share: attempts and their states, slots, the
 * executor itself. Who may touch what is said at each struct.
 */
#ifndef HF_EXECUTOR_EXECUTOR_INTERNAL_H
#define HF_EXECUTOR_EXECUTOR_INTERNAL_H

#include "executor/executor.h"
#include "work_dir.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---------------------------------------------------------------- attempts */

/* X(id, name, what is true in it) */
#define ATTEMPT_STATES(X)                                                                    \
  X(QUEUED, "queued", "in the queue; no slot has it and it has no files")                    \
  X(STARTING, "starting", "a slot decodes it and opens its instance, inputs and sink")       \
  X(RUNNING, "running", "its SQL runs in the slot's instance")                               \
  X(COMMITTING, "committing", "its rows are written; the index is not there yet")            \
  X(CANCELLING, "cancelling", "cancelled while a slot has it: ends at the slot's next step") \
  X(DONE, "done", "its index is there; reported")                                            \
  X(FAILED, "failed", "its files are gone; reported with an error")

/* X(id, name, what happened) */
#define ATTEMPT_EVENTS(X)                                   \
  X(TAKE, "take", "a slot takes it from the queue")         \
  X(RUN, "run", "all is open: the SQL can start")           \
  X(COMMIT, "commit", "the SQL ran to its end")             \
  X(FINISH, "finish", "the index is written")               \
  X(FAIL, "fail", "a step failed, or stopped for a cancel") \
  X(CANCEL, "cancel", "the scheduler or the close wants it ended")

typedef enum attempt_state {
#define X(id, name, sentence) ATTEMPT_##id,
  ATTEMPT_STATES(X)
#undef X
      ATTEMPT_STATE_COUNT
} attempt_state;

typedef enum attempt_event {
#define X(id, name, sentence) ATTEMPT_ON_##id,
  ATTEMPT_EVENTS(X)
#undef X
      ATTEMPT_EVENT_COUNT
} attempt_event;

/* What the caller of executor_step does next; a set. */
enum {
  ATTEMPT_REPORT_STARTED = 1 << 0,
  ATTEMPT_REPORT_FINISHED = 1 << 1,
  ATTEMPT_REPORT_FAILED = 1 << 2,    /* with the error that the step met */
  ATTEMPT_REPORT_CANCELLED = 1 << 3, /* with CANCELLED, whatever the step met */
  ATTEMPT_UNQUEUE = 1 << 4,          /* take it out of the queue */
  ATTEMPT_INTERRUPT = 1 << 5,        /* stop the instance's statement */
  ATTEMPT_STOP = 1 << 6              /* the slot does not go on, undoes, and says FAIL */
};

/* One attempt. In the queue it belongs to the executor's lock, then to its slot's thread; `state` always to the lock. */
typedef struct attempt {
  struct attempt *next; /* in the queue */
  attempt_state state;  /* written by executor_step only */
  bool is_light;        /* reads nothing and is over at once */
  atomic_bool cancelled;
  arena *memory;    /* of the attempt, its bytes and spec */
  const void *plan; /* encoded */
  size_t plan_length;
  task_spec spec;
  uint64_t queued_us, started_us;
  task_report *started, *ended; /* made at submit, so that reporting never lacks memory; NULL: sent */
} attempt;

/* The transition table's only door. Returns the actions. Needs the executor's lock. */
unsigned executor_step(attempt *a, attempt_event event);
const char *attempt_state_name(attempt_state state);
/* Is it one of those in which a slot has the attempt? */
bool attempt_is_in_slot(attempt_state state);

/* ------------------------------------------------------------------- slots */

/* A slot's thread, and the idle instance that it keeps. */
typedef struct slot {
  executor *owner;
  unsigned number;
  pthread_t thread;
  attempt *current;      /* lock: what it runs, or NULL */
  engine *interruptible; /* lock: the instance while a statement runs, or NULL */
  /* of the slot's thread: */
  engine *instance;       /* NULL: none open */
  engine_options options; /* that it was opened with, in `options_memory` */
  arena *options_memory;
} slot;

/* Takes the open instance when it has the plan's settings, else closes it and opens another. Thread: the slot's.
 * Errors: OUT_OF_MEMORY (also when a slot's share is too small), those of engine_open. */
hf_status slot_instance(slot *s, const stage_plan *plan, engine **out, hf_error *error);
void slot_instance_close(slot *s);
/* Is it the one behind the others? */
bool slot_is_spare(const slot *s);
/* The thread: attempts from the queue until the executor closes. */
void *slot_run(void *context);

/* Runs one attempt to its report. Thread: the slot's. */
void task_run(slot *s, attempt *a);

/* ---------------------------------------------------------------- executor */

struct executor {
  uuid id;
  work_dir place;
  block_keeper *keeper;  /* held results that were read stay mapped */
  unsigned threads_each; /* of one slot */
  uint64_t memory_each;
  char *extension_dir; /* or NULL */
  task_report_fn report;
  void *report_context;
  unsigned n_slots, n_threads; /* n_threads of slots have a thread */
  slot *slots;                 /* n_slots, and one behind them for what is light when these are taken */

  pthread_mutex_t lock;
  pthread_cond_t work;   /* something was queued, or closing */
  attempt *first, *last; /* lock: the queue */
  bool closing;          /* lock */
  stage_plan *warm;      /* lock: what slot 0 opens an instance for; in warm_memory */
  arena *warm_memory;    /* lock */

  pthread_mutex_t tree_lock; /* held only while directories are made, or removed because they are empty */
};

/* Takes an attempt out of the queue. */
void executor_unqueue_locked(executor *x, attempt *gone);
/* Fills origin and sends the report; the attempt has none of that kind any more. Never under a lock. */
void executor_report_started(executor *x, attempt *a);
void executor_report_ended(executor *x, attempt *a);
void attempt_free(attempt *a);
/* Makes the attempt's directory and its parents. */
hf_status executor_make_dir(executor *x, const char *dir, hf_error *error);
/* Removes an attempt's directory, then its stage's and its job's where they are empty. */
void executor_remove_attempt_dir(executor *x, const char *dir);

#endif

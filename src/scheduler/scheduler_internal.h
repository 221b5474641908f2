/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler's files share: its struct, jobs, messages. Not a door.
 * Thread: fields belong to the scheduler's thread unless a comment says otherwise.
 */
#ifndef HF_SCHEDULER_SCHEDULER_INTERNAL_H
#define HF_SCHEDULER_SCHEDULER_INTERNAL_H

#include "job/machine.h"
#include "profile/profile.h"
#include "relation/build.h"
#include "scheduler/scheduler.h"

#include "base/mem.h"
#include "stage/cut.h"
#include "base/thread.h"

#include <stdatomic.h>

#define uthash_malloc(bytes) mem_alloc(bytes)
#define uthash_free(block, bytes) mem_free(block)
#define HASH_NONFATAL_OOM 1 /* a failed add leaves hh.tbl NULL */
#include <uthash.h>
#include <utlist.h>

enum {
  SETTINGS_AT_MOST = 32, /* of DuckDB's that a declaration keeps */
  REPLANS_AT_MOST =
      3, /* times that a job plans again after a held block was lost, then once more without holds */
  AGAIN_AT_MOST = 4, /* times that the rest of a query is cut again, with what its first stages gave */
  REMOVED_KEPT = 256 /* sessions that ended last: calls that were on their way are told so */
};

/* --------------------------------------------------------------- messages */

/* Something to do on the thread of a queue: the scheduler's, a planning thread or the cleaner. */
typedef struct message {
  queue_item item;
  void (*handle)(scheduler *s, struct message *m);
} message;

/* A message whose sender waits for its answer. */
typedef struct call {
  message base;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done; /* guarded by lock */
} call;

void call_init(call *c, void (*handle)(scheduler *s, message *m));
void call_reset(call *c);
/* Posts it and waits. False when the scheduler is closed: then nothing was done. */
bool call_run(scheduler *s, event_queue *queue, call *c);
/* Lets the sender go; the call is not touched afterwards. Thread: any. */
void call_finish(call *c);
/* Count callers inside, so that closing waits for them; false: closed. Thread: any. */
bool caller_enter(scheduler *s);
void caller_leave(scheduler *s);

/* --------------------------------------------------------------- planning */

typedef struct known_source {
  struct known_source *next;
  const source_request *request; /* of the relation */
  source *source;
  source_versions versions; /* as it was listed, before anything was read */
} known_source;

typedef enum need_state {
  NEED_NEW,     /* the registry is to be asked */
  NEED_WAITING, /* a fill runs, this job is among its waiters */
  NEED_ANSWERED /* `info` says what to do */
} need_state;

/* What a job knows of one cache node. */
typedef struct held_need {
  struct held_need *next;
  const relation *node; /* of the job's relation */
  uuid key, session;
  char fingerprint[33];
  need_state state;
  bool is_counted;   /* in the profile, as hit, fill or wait: what it was at first */
  bool is_wait;      /* counted as one, and not yet read */
  bool is_inlined;   /* counted as inline */
  bool stays_inline; /* its fill failed: not asked again by this job */
  bool is_ours;      /* this job had it computed: it is as fresh as the job */
  bool
      is_filling; /* this job began its fill, and has not read it: a fill counts when it gave something to read */
  bool wants_check; /* its sources are to be looked at before it is read: by a planning thread */
  bool is_stale;    /* that was done, and they have changed */
  unsigned n_stale;
  job_id fill; /* WAITING: whose claim it is */
  hf_error fill_error;
  held_info info;
  uint64_t bytes;
  const entry_location *locations;
  size_t n_locations;
  entry_partitioning partitioning; /* that holds for this engine; n_columns 0: none */
  const entry_source *sources;     /* for a check, or for the entry that a fill makes of it; else NULL */
  size_t n_sources;
  job_profile *filled; /* what the fill did that this job waited for, a reference; NULL: none */
  /* for EXPLAIN */
  bool is_miss, is_changed, is_released;
  const char *name; /* or NULL */
} held_need;

/* What a task of a stage reads of one input. */
typedef struct planned_input {
  bool is_stage;
  uint32_t from;           /* is_stage: its place in the plan */
  cut_share share;         /* is_stage: how its blocks are shared */
  const task_input *given; /* else: of each task, or of all when n_given is 1 */
  size_t n_given;
} planned_input;

typedef struct planned_stage {
  stage_id id;
  const void *plan; /* encoded */
  size_t plan_length;
  uint32_t n_tasks;
  size_t n_inputs;
  const planned_input *inputs;
  bool ordered; /* its output */
  uint32_t partitions;
  size_t n_reads;        /* inputs of later stages that it is */
  size_t n_after;        /* stages that are to be done before it begins, beside its inputs */
  const uint32_t *after; /* their places */
  const uint32_t *
      parts; /* n_tasks + 1: task t reads the partitions from parts[t] to before parts[t + 1]; NULL: as many each */
} planned_stage;

/* What is wanted of the rows of a held input. */
typedef struct planned_pruning {
  size_t n_scans; /* that the plan has of it */
  size_t n_filters;
  stage_filter *filters;
} planned_pruning;

/*
 * A relation on its way to stages. Handed to and fro: a planning thread owns it from planning_post until its message
 * comes back.
 */
typedef struct planning {
  message step;
  void (*done)(scheduler *s, message *m); /* on the scheduler's thread, after a step */
  uuid session;
  job_id job;
  stage_id first_stage;     /* of those that this try makes */
  const relation *relation; /* borrowed */
  const job_settings *settings;
  bool is_fill;             /* traits are stored with the entry */
  bool shows_fill;          /* for EXPLAIN: what a fill would run */
  bool wants_traits;        /* they are worked out */
  bool is_describing;       /* only the columns are wanted */
  relation_dealing dealing; /* of a fill: how its rows are to be dealt; n 0: as they come */
  known_source *sources;
  held_need *needs; /* in the order in which planning met them */
  arena *lasting;   /* of sources and needs */
  arena *memory;    /* of this try's results */
  /* results */
  hf_status status;
  hf_error error;
  bool needs_held; /* some need is NEW; nothing below is filled */
  lowered query;
  schema columns;
  bool ordered;        /* the output is */
  bool reads_in_order; /* inputs that have an order are handed out in it */
  plan_traits traits;
  uint32_t n_tasks;         /* that the query is to be split into */
  bool may_be_light;        /* it reads nothing, and all slots are taken */
  bool is_light;            /* it is over at once: it need not wait for a slot */
  planned_pruning *pruning; /* one an input of the query; NULL: not known */
  cut_graph graph;          /* no stages: the lowered query runs as one task */
  const tree_node *root;    /* that the graph was cut from; NULL: there is none */
  cut_options cut;
  arena *again[AGAIN_AT_MOST]; /* of graphs that were cut later and taken over */
  size_t n_again;
  const char *fallback; /* why, though more tasks were wanted; NULL: they were not, or there is a graph */
  size_t n_stages;
  const planned_stage *stages; /* the last gives the result */
  uint64_t planning_us;        /* of all tries */
} planning;

/* Makes the arenas. `p` is zeroed but for session, job, relation, settings. */
hf_status planning_begin(planning *p, hf_error *error);
void planning_reset(planning *p);
/* Queues a step: its results are in `p` when `p->step.handle` runs on the scheduler's thread. */
void planning_post(scheduler *s, planning *p, void (*done)(scheduler *s, message *m));
/*
 * Lowers as far as is known, resolving sources on the way; sets needs_held. Thread: a planning thread, which may block on
 * I/O here.
 */
hf_status planning_lower(scheduler *s, planning *p, hf_error *error);
/* Binds the lowered query: columns, and traits when they are wanted. Thread: a planning thread. */
hf_status planning_bind(scheduler *s, planning *p, hf_error *error);
held_need *planning_need(const planning *p, const uuid *key);
/* Bytes of all files, held results and client data that the lowered query reads. */
uint64_t planning_input_bytes(const planning *p);

/* Of what hash() gives: a stored partitioning of another version says nothing. */
uint32_t cutting_hash_version(void);
/* cutting.c: makes the graph, or says why there is none. `columns` are known. Thread: a planning thread. */
hf_status cutting_try(engine *planner_engine, planning *p, hf_error *error);
/* Cuts the same tree with the facts of p->cut; no stages: it cannot be used. Memory of p->memory. Thread: a planning thread. */
hf_status cutting_again(engine *planner_engine, planning *p, hf_error *error);
/* pruning.c: notes the conditions that a plan has on its held inputs; or makes the plan for that, when it is worth it. Thread: a
 * planning thread. */
hf_status pruning_note(planning *p, const tree_node *root, hf_error *error);
hf_status pruning_try(engine *planner_engine, planning *p, hf_error *error);
/* freshness.c: looks at the sources of held results that want it; true when some have changed. Thread: a planning
 * thread. */
bool freshness_check(planning *p);
/* Copies an entry's sources, in `a`. */
hf_status freshness_copy(const entry_view *view, held_need *need, arena *a, hf_error *error);
/* Tells whether a hold that the entry was computed from has other rows since: it was computed again, and is indeterminate. */
bool freshness_is_outrun(const scheduler *s, const entry_view *view);

/* How many tasks the lowered query is to be split into. */
uint32_t cutting_tasks(const scheduler *s, const planning *p);

static inline bool is_same_mark(cut_mark a, cut_mark b) {
  return a.high == b.high && a.low == b.low;
}

/* staging.c: encodes the stage plans and works out what tasks read of sources, but of stages of which p->cut has facts: these
 * stay without id. Thread: a planning thread. */
hf_status staging_prepare(scheduler *s, planning *p, hf_error *error);

typedef struct planner planner;
hf_status planners_open(scheduler *s, unsigned n_threads, hf_error *error);
/* Ends the threads after what is queued, closes the engines. */
void planners_close(scheduler *s);
/* Who uses a lent engine, and how. */
typedef struct planner_user {
  const void *who; /* names it for planner_interrupt */
  hf_status (*use)(void *context, engine *planner, hf_error *error);
  void *context;
  bool is_unlimited; /* it may take longer than planning may */
} planner_user;
/* Lends an engine with these settings. Errors: those of opening and of `use`; LIMIT when planning takes longer than
 * 30 s. Thread: a planning thread. */
hf_status planner_use(scheduler *s, const job_settings *settings, const planner_user *user, hf_error *error);
/* Interrupts the engine lent to the owner, if there is one. Thread: any. */
void planner_interrupt(scheduler *s, const void *who);
/* Interrupts those that are lent for too long; returns when to look again (0: when told). Thread: the scheduler's. */
uint64_t planners_watch(scheduler *s);
/* Opens one in the background. */
void planners_warm(scheduler *s, const job_settings *settings);
/* Copies what an engine's opening needs. */
hf_status job_settings_copy(const job_settings *from, arena *a, job_settings *out, hf_error *error);

/* ------------------------------------------------------------------- jobs */

typedef struct stage_task {
  task_state state;
  attempt_id attempt; /* the latest; 0: none was submitted */
} stage_task;

/* A stage of a job that runs. */
typedef struct stage_run {
  const planned_stage *planned;
  stage_state state;
  stage_task *tasks; /* planned->n_tasks */
  uint32_t n_done, n_with_rows;
  size_t n_reads_left;
  bool is_told;              /* what it gave is known to a cut */
  uint64_t rows, bytes;      /* of its committed output */
  uint64_t *partition_bytes; /* thereof in each of planned->partitions; NULL: not known */
  size_t n_watched;          /* 0: not known */
  range_summary *watched;    /* of columns of its output */
} stage_run;

/* A session that has jobs or holds. */
typedef struct owner {
  uuid id;
  size_t n_active;     /* jobs that are not over */
  call *removal;       /* waits for n_active 0, or NULL */
  uint64_t held_bytes; /* of its held results */
  uint64_t ttl_us;     /* of these, by its latest job; 0: none */
  uint64_t last_active_us;
  bool is_idle; /* and its held results have gone for that */
  UT_hash_handle hh;
} owner;

/* The caller's side of scheduler_run. */
typedef struct run run;

typedef struct job {
  job_id id;
  uuid session;
  owner *owner; /* NULL once over */
  job_state state;
  bool is_fill;
  uuid key; /* of a fill */
  relation *relation;
  job_settings settings;
  arena *memory;
  run *run; /* who waits for it; NULL for a fill */
  planning plan;
  unsigned replans;
  hf_status stop;   /* it shall end, with this code; HF_OK: not */
  stage_id stage;   /* the latest; 0: none was launched */
  size_t n_runs;    /* stages of the latest plan */
  stage_run *runs;  /* in the plan's memory */
  size_t n_running; /* attempts with the executor */
  const planning *
      recut; /* its rest is being cut again, which counts as an attempt: nothing is launched meanwhile; or NULL */
  bool is_draining; /* these shall end, then `drained` is raised */
  job_event drained;
  uint64_t started_us, rows, bytes;
  uint64_t run_bytes;           /* of committed data that are no held result */
  struct written_path *written; /* of a fill: noted while it ran; in `memory` */
  bool is_outdated;             /* of a fill: so was one for which there was no memory */
  hf_profile profile;
  job_profile *observed; /* NULL: there was no memory */
  hf_error error;
  struct job *next_ended;
  UT_hash_handle hh; /* by id */
} job;

hf_status job_new(scheduler *s, const job_request *request, owner *of, job **out, hf_error *error);
job *job_find(const scheduler *s, job_id id);
/* Takes one step and does what the machine says. */
void job_raise(scheduler *s, job *j, job_event event);
/* Fails with the error, which it takes. */
void job_fail(scheduler *s, job *j, hf_error *error);
/* It shall end, with CANCELLED or SESSION_CLOSED. */
void job_cancel(scheduler *s, job *j, hf_status code);
/* Ends what runs for it, then raises the event; FAIL: with the error, which it takes. */
void job_drain(scheduler *s, job *j, job_event event, hf_error *error);
/* After something that ran for it has ended: ends a job that shall end. True when it did. */
bool job_stop_now(scheduler *s, job *j);
/* Removes the files of its stages but those that are pinned. */
void job_clean(scheduler *s, const job *j);
/* Frees those that ended since the last time. */
void jobs_free_ended(scheduler *s);
void job_free(job *j);

owner *owner_find(const scheduler *s, const uuid *id);
/* Finds or makes; NULL with an error: OUT_OF_MEMORY, SESSION_CLOSED (it is being removed). */
owner *owner_need(scheduler *s, const uuid *id, hf_error *error);
/* Tells whether the session ended a short while ago. */
bool owner_was_removed(const scheduler *s, const uuid *id);
/* Remembers that the session has ended. */
void owner_forget(scheduler *s, const uuid *id);
/* Ends removals whose jobs are all over. */
void owners_settle(scheduler *s);

/* held.c: asking for, waiting for and settling held results */
void held_ask(scheduler *s, job *j);
void held_leave(scheduler *s, job *j);
/* Forgets what was known, after a block was lost. */
void held_forget(scheduler *s, job *j);
/* The answer of a look: nothing is claimed. Fills info, name and the miss and released marks; memory in `a`. */
hf_status held_look(scheduler *s, const uuid *session, held_need *need, arena *a, hf_error *error);
/* Puts the engine's settings of the declaration in the place of those given; `rows` has room for SETTINGS_AT_MOST, and
 * the declaration lends the texts. Unchanged when it has none. */
void held_settings(const declaration *row, stage_setting *rows, job_settings *settings);
/* A fill is over: completes or aborts its claim. */
void held_settle(scheduler *s, job *fill);
/* Counts the hits that waited for their sources to be looked at. */
void held_count(scheduler *s, job *j);
/* Performs one action of the registry. */
void held_perform(scheduler *s, const registry_action *action);
/* Drops an entry, here and in the journal; as registry_invalidate. Every entry that goes before its session goes by this. */
bool held_drop(scheduler *s, const uuid *key, const char *why);

/* durable.c: what outlives the process; nothing does without a journal */
/* Fills declarations and registry from the journal, and drops what has no blocks. Before the executor is live. */
hf_status durable_load(scheduler *s, const scheduler_keeping *keeping, hf_error *error);
/* All threads run: what the start found to be nobody's is deleted in the background. */
void durable_begin(scheduler *s);
/* All jobs are over. */
void durable_end(scheduler *s);
/* Does the session outlive the process? */
bool durable_keeps(const scheduler *s, const uuid *session);
/* Writes the declaration as it is now (NULL: none), then calls `written`, from any thread; perhaps before it returns. */
void durable_declared(scheduler *s, const declaration *row, void (*written)(void *of, hf_status status),
                      void *of);
/* The entry goes. */
void durable_dropped(scheduler *s, const entry_view *view);
/* As registry_complete; those who wait are woken when the journal has it. */
complete_result durable_complete(scheduler *s, const job *fill, const entry_output *output);

/* freshness.c */
/* What the entry of a fill was computed from: its files and what held results that it read were. In the fill's memory. */
hf_status freshness_of_fill(const job *fill, entry_output *out, hf_error *error);
/* Tells whether a path that was written while it ran is among them. */
bool freshness_was_written(const job *fill, const entry_output *output);

/* leaving.c: limits of held results and of running data */
/* A result that found no room: it serves those who wait for it. */
typedef struct passing {
  struct passing *next;
  uuid key;
  job_id fill;
} passing;
/* Waits until nothing has the files of a stage any more, and a fill has ended. Embedded in a call. */
typedef struct parked {
  struct parked *next;
  job_id job;
  stage_id stage;
  job_id fill; /* 0: none */
  void (*go_on)(scheduler *s, struct parked *p);
} parked;
/* Works the limits out. The executor is open. */
void leaving_open(scheduler *s, const scheduler_options *options);
/* The session does something, with these settings. */
void leaving_note(scheduler *s, owner *of, const job_settings *settings);
/* A job of it has ended. */
void leaving_rested(scheduler *s, owner *of);
/* Makes room for what the fill made, at the cost of others. NULL: there is room; else why there is none (static). */
const char *leaving_refuse(scheduler *s, const job *fill);
/* Why a computation that found no room is not held, for the listing; static. */
const char *leaving_why_not(hf_status code);
/* An entry has come, with the settings of its fill (NULL: from the journal); or goes. */
void leaving_admitted(scheduler *s, const uuid *session, uint64_t bytes, const job_settings *settings);
void leaving_dropped(scheduler *s, const entry_view *view);
/* Completes the claim for those who wait, and drops the entry when they have their leases. False: it is not done. */
bool leaving_pass(scheduler *s, job *fill, const entry_output *output);
/* Lets `p` go on when it may. */
void leaving_park(scheduler *s, parked *p);
/* After the registry's actions were performed; true: there are more. */
bool leaving_settle(scheduler *s);
/* Drops what is too old, idle or too much; returns when to look again (monotonic; 0: when told). */
uint64_t leaving_watch(scheduler *s);
/* Errors: LIMIT when data of running queries are too large. */
hf_status leaving_check_running(const scheduler *s, hf_error *error);

/* launch.c */
void launch_job(scheduler *s, job *j);
/* Submits the tasks of all stages whose inputs are there. */
void launch_ready(scheduler *s, job *j);
void launch_attempt(scheduler *s, job *j, stage_run *stage, uint32_t task);
/* Whether tasks of a stage share what tasks of another, at place `from`, wrote: its reader may rely on who has which rows. */
bool launch_splits(const planned_stage *to, uint32_t from);
/* A stage that waits. False: no memory. */
bool launch_run_make(const planned_stage *planned, arena *a, stage_run *out);
/* Cancels all attempts, and the cutting of the rest. */
void launch_recall(scheduler *s, const job *j);
/* The blocks of a stage that is done, task by task; in `a`. NULL: no memory. */
block_ref *launch_output_refs(const job *j, const stage_run *stage, arena *a);
/* Turns a position in the task's SQL into one of the user's text, or -1. */
void launch_locate_error(const planning *p, hf_error *error);

/* again.c */
/* Notes what a task of the stage gave. */
void again_gather(job *j, stage_run *stage, const task_output *output);
/* Whether a stage that has not begun waits for it, though it need not read it. */
bool again_is_awaited(const job *j, const stage_run *stage);
/* After a stage that gave other than was guessed: has the rest cut again, and launches then. False: it is not worth it. */
bool again_try(scheduler *s, job *j, const stage_run *done);

/* observe.c: what is noted of a job for its profile; never fails */
/* Gives the profile of what fills a held input, a reference; NULL: none. */
typedef struct observe_fills {
  job_profile *(*of)(void *context, const held_need *need);
  void *context;
} observe_fills;
/* Adds the stages of a plan that the profile does not know yet, by their ids. Thread: that which has the plan. */
void observe_plan(const planning *p, const observe_fills *fills, job_profile *out);
/* The job has a plan, or another one for what is left of it. */
void observe_planned(scheduler *s, job *j);
/* Why something was chosen, below a stage (id 0: below all). */
void observe_note(job *j, stage_id stage, const char *format, ...) HF_PRINTF(3, 4);
/* A stage will run in other tasks than was planned, by the bytes of the partitions that they read. */
void observe_dealt(job *j, const stage_run *stage, uint32_t partitions, uint64_t bytes);
void observe_launched(job *j, const stage_run *stage, uint32_t task);
/* An attempt has ended. */
void observe_reported(job *j, const task_report *report);
/* The job waited for this fill, which is over. */
void observe_filled(held_need *need, const job *fill);
/* The job is over. */
void observe_ended(job *j);

/* report.c */
/* An attempt of a job that shall end, or plan again. True: that is dealt with. */
bool report_is_ending(scheduler *s, job *j);
void report_receive(void *context, task_report *report); /* task_report_fn: on a slot's thread */
/* Makes sure that a report can be received without memory. */
hf_status report_reserve(scheduler *s, hf_error *error);
void reports_free(scheduler *s);

/* run.c */
/* The job has ended: hands it over. */
void run_answer(scheduler *s, run *r, job *j);

/* scheduler.c: files are deleted on a thread of its own, in order */
void clean_stage(scheduler *s, const uuid *session, job_id id, stage_id stage);
void clean_session(scheduler *s, const uuid *session);
/* Finishes the call when all that was posted before is deleted. */
void clean_then_finish(scheduler *s, call *c);

/* -------------------------------------------------------------- scheduler */

typedef struct report_message report_message;

struct scheduler {
  event_queue events, plans, cleans;
  pthread_t thread, cleaner;
  pthread_t *planners;
  unsigned n_planners;

  executor *executor;      /* thread-safe */
  source_catalog *sources; /* thread-safe */
  arena *memory;           /* of the options below; immutable */
  const char *const *allowed_dirs;
  size_t n_allowed_dirs;
  const char *extension_dir;

  const hold_journal *journal; /* thread-safe; NULL: nothing outlives the process */
  uuid kept_session;           /* immutable: that which does, when there is a journal */
  message trash;               /* tells the cleaner to empty it */

  declarations *declared;
  registry *registry;
  registry_actions actions; /* to be performed before the next message is taken */
  job *jobs;
  job *ended; /* to be freed before the next message is taken */
  owner *owners;
  uuid removed[REMOVED_KEPT]; /* a ring */
  size_t n_removed;
  uint64_t next_job;
  size_t n_active;
  uint64_t hold_max_bytes, run_max_bytes, idle_timeout_us; /* immutable */
  uint64_t held_bytes;                                     /* of all held results */
  uint64_t next_leave_us; /* when leaving_watch has something to do; 0: not */
  passing *passing;
  parked *parked;
  bool is_closing;
  call *closing; /* waits for n_active 0 */

  pthread_mutex_t callers_lock;
  pthread_cond_t callers_left;
  unsigned callers; /* guarded by callers_lock */
  bool is_closed;   /* guarded by callers_lock */

  pthread_mutex_t pool_lock;
  pthread_cond_t pool_changed;
  planner *idle, *lent; /* guarded by pool_lock; latest first */
  unsigned n_idle;      /* guarded by pool_lock */
  bool is_warming;      /* guarded by pool_lock */
  message tick;         /* tells the scheduler's thread that an engine was lent */
  bool is_ticking;      /* guarded by pool_lock: `tick` is queued */

  pthread_mutex_t reports_lock;
  report_message *spare_reports; /* guarded by reports_lock */
  size_t n_spare_reports;        /* guarded by reports_lock */
  size_t n_attempts;             /* submitted, and whose end has not been handled */
};

/* Does what handlers left: actions, removals, ended jobs. */
void scheduler_settle(scheduler *s);

#endif

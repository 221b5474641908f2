/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler: jobs, from a relation to a committed result. One thread owns all
 * of its state (jobs, declarations, registry); the functions here post events to
 * it and, where they return an answer, wait for it. Planning and I/O run on
 * planning threads and in the executor.
 */
#ifndef HF_SCHEDULER_SCHEDULER_H
#define HF_SCHEDULER_SCHEDULER_H

#include "executor/executor.h"
#include "hold/hold.h"
#include "hold/journal.h"
#include "plan/lower.h"
#include "profile/profile.h"
#include "source/source.h"

typedef struct scheduler scheduler;

/* What outlives the process. */
typedef struct scheduler_keeping {
  const hold_journal *journal; /* borrowed until the scheduler is closed */
  const char *dir;       /* the state directory: when blocks lie in it, no query reads or writes there */
  const uuid *id;        /* its id: the work directory is kept for it */
  uuid session;          /* whose holds are kept */
  const block_ref *data; /* client data that is kept */
  size_t n_data;
} scheduler_keeping;

typedef struct scheduler_options {
  const char *work_dir; /* as executor_options */
  unsigned threads, slots;
  uint64_t memory_bytes;
  const char *extension_dir;
  const char *const *allowed_dirs; /* absolute, links resolved */
  size_t n_allowed_dirs;
  uint64_t hold_max_bytes;          /* 0: half of what is free in the work directory's file system */
  uint64_t run_max_bytes;           /* 0: no limit */
  uint64_t idle_timeout_us;         /* after which a session's held results go; 0: never */
  const scheduler_keeping *keeping; /* NULL: nothing outlives the process */
  unsigned planners; /* planning threads, each with an engine of its own, opened when first needed; 0: 2 */
} scheduler_options;

/* Opens executor, planners and source catalogue; of a journal, what has its blocks is there again. Errors: those of
 * executor_open and of the journal. */
hf_status scheduler_open(const scheduler_options *options, scheduler **out, hf_error *error);
/* Fails what still runs with SESSION_CLOSED, ends all threads, removes the work directory. Accepts NULL. */
void scheduler_close(scheduler *s);

const char *scheduler_work_dir(const scheduler *s);
/* Resolves sources for a session (schema of files). Thread: any. */
source_catalog *scheduler_sources(scheduler *s);

/* ------------------------------------------------------------------- jobs */

/* What a job needs beside its relation; copied. */
typedef struct job_settings {
  const stage_setting *engine; /* DuckDB's settings that change results */
  size_t n_engine;
  uint32_t tasks; /* that a query is split into; 0: by the size of its input */
  uint64_t sink_budget_bytes, batch_bytes, block_bytes, ordered_below_bytes;
  ipc_compression compression;                  /* of the blocks that tasks write */
  uint64_t hold_session_max_bytes, hold_ttl_us; /* 0: no limit */
  bool follows_sources; /* held results whose sources have changed are computed anew */
} job_settings;

/* For a session's parsing, and for showing values as text: runs `use(context, planner)` with the engine of a planner
 * that was opened with these settings, on a planning thread (its stack is large) while the caller waits; for as long as
 * it takes. Its status is returned. Must not call the scheduler. Thread: any. */
hf_status scheduler_with_planner(scheduler *s, const job_settings *settings,
                                 hf_status (*use)(void *context, engine *planner, hf_error *error),
                                 void *context, hf_error *error);
/* Opens a slot's instance and a planner's for these settings in the background. */
void scheduler_warm(scheduler *s, const job_settings *settings);

typedef struct job_request {
  uuid session;
  const relation *relation; /* retained */
  job_settings settings;
} job_request;

typedef struct job_watch {
  hf_progress_fn progress; /* called on the waiting thread, about ten times a second */
  void *progress_context;
  hf_cancel *cancel;
  /* NULL, or where a reference to what the job did goes; one that lies there is released. */
  job_profile **profile;
} job_watch;

/* A committed result. Its files live until scheduler_release_result. */
typedef struct job_result {
  job_id job;
  const block_location *locations; /* the blocks of its tasks, in order; in `memory` */
  size_t n_locations;
  schema columns; /* user names, in `memory` */
  bool ordered;
  arena *memory; /* owned by the receiver */
} job_result;

/*
 * Runs a job to its end on behalf of the calling thread. On success *out is filled and holds files in the work
 * directory. `profile` (not NULL) is filled in either case.
 * Errors: those of planning and of the tasks, CANCELLED, SESSION_CLOSED. Thread: any, several at once.
 */
hf_status scheduler_run(scheduler *s, const job_request *request, const job_watch *watch, job_result *out,
                        hf_profile *profile, hf_error *error);
/* Lets a result go: its files are deleted unless they are pinned. Thread: any; does not wait. */
void scheduler_release_result(scheduler *s, job_id id);

/* Columns of the relation; claims, waits for and runs nothing. Memory in `a`. */
hf_status scheduler_describe(scheduler *s, const job_request *request, arena *a, schema *out,
                             hf_error *error);
/* The text of EXPLAIN, owned by the caller (mem_free). Claims, waits for and runs nothing. */
hf_status scheduler_explain(scheduler *s, const job_request *request, char **out, hf_error *error);

/* ---------------------------------------------------------------- holding */

hf_status scheduler_declare(scheduler *s, const declaration *row, hf_error *error);
/* What a call that lets a hold go waits for. */
typedef enum hold_wait {
  HOLD_WAIT_NOT,
  HOLD_WAIT_FILES,  /* its files are gone, but for those that are left to running readers */
  HOLD_WAIT_READERS /* all of them are gone, after the last reader and a fill have ended */
} hold_wait;

/* Releases the key for good. */
void scheduler_unpersist(scheduler *s, const uuid *key, hold_wait wait);
/* Drops the data but keeps the declaration: the next use computes again under a new generation. */
void scheduler_refresh(scheduler *s, const uuid *key);
/* The same for all of the session's holds that are in the relation, that depend on these, or that were computed from its
 * files. Errors: those of lowering; files that are gone are no error. */
hf_status scheduler_refresh_relation(scheduler *s, const job_request *request, hf_error *error);
/* Files at or below the path have changed, by whom `why` says (static text): holds of the session (NULL: all) that were
 * computed from them are dropped, fills that read them do not count. Does not wait. `path` is absolute, links resolved. */
void scheduler_note_written(scheduler *s, const uuid *session, const char *path, const char *why);
/* Never waits for a computation. HF_HOLD_NOT_DECLARED for an unknown key. */
void scheduler_storage(scheduler *s, const uuid *key, hf_storage *out);

/* One row of a listing. */
typedef struct hold_row {
  hf_storage storage;
  uuid session;
  const char *name;                                      /* or NULL */
  uint64_t declared_us, last_read_us, cost_us, saved_us; /* saved: hits × cost */
  uint64_t partitions;                                   /* attempts that its blocks lie in */
  const char *last_drop;
} hold_row;
/* Calls `each` on the scheduler's thread for each hold of the session (NULL: all); must not call the scheduler. */
void scheduler_list_holds(scheduler *s, const uuid *session, void (*each)(void *context, const hold_row *row),
                          void *context);

/* Of the kept session: forgets all holds but these, sorted by their text, and those that are found by their content; their files go. */
void scheduler_keep_only(scheduler *s, const uuid *keys, size_t n_keys);

/* Cancels the session's jobs, removes its holds with their files unless it is the kept one; waits until that is done. */
void scheduler_remove_session(scheduler *s, const uuid *session);

/* ----------------------------------------------------------------- cancel
 * hf_cancel of the public API lives here: a flag and the job it was given to. */

/* For what an operation does beside its job. False of NULL. Thread: any. */
bool cancel_is_signalled(const hf_cancel *cancel);

#endif

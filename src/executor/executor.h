/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executor: slots that run tasks, and the work directory. It is given bytes
 * (stage plan, task spec) and answers with reports; in one process these are
 * calls, in a cluster they will be messages.
 */
#ifndef HF_EXECUTOR_EXECUTOR_H
#define HF_EXECUTOR_EXECUTOR_H

#include "base/id.h"
#include "exchange/exchange.h"
#include "stage/stage.h"

/* An attempt's committed output. */
typedef struct task_output {
  uint64_t rows, bytes;
  uint32_t partitions;
  bool ordered;
  schema columns;                  /* in the report's arena, as all below */
  const uint64_t *partition_bytes; /* thereof in each partition */
  size_t n_watched;                /* of stage_output.watched */
  const range_summary *watched;
} task_output;

typedef enum task_outcome { TASK_STARTED, TASK_FINISHED, TASK_FAILED } task_outcome;

/* What happened to an attempt. Owned by the receiver: task_report_free. */
typedef struct task_report {
  job_id job;
  stage_id stage;
  task_id task;
  attempt_id attempt;
  task_outcome outcome;
  task_output output;   /* FINISHED */
  uint64_t source_rows; /* rows read from files */
  uint64_t source_files;
  uint64_t block_rows;                   /* rows read from blocks */
  uint64_t held_rows;                    /* thereof from held results */
  uint64_t held_blocks, held_blocks_all; /* of held results: read, and there are */
  uint64_t own_rows;                     /* thereof from earlier stages of the job */
  uint64_t block_bytes;                  /* of the blocks that were read */
  uint64_t peak_memory_bytes, spill_bytes;
  uint64_t wait_us, run_us; /* in the queue, and in the slot */
  hf_error error;           /* FAILED: with origin; cancelled attempts fail with CANCELLED */
  uuid lost_held_key;       /* FAILED with BLOCK_*: the held result whose block it was; else none */
  arena *memory;
} task_report;

void task_report_free(task_report *report);

/* Called on a slot's thread; takes the report. Must not block. */
typedef void (*task_report_fn)(void *context, task_report *report);

typedef struct executor_options {
  const char *
      work_dir; /* "auto": see config.def; made, locked; removed at close when it was made here and is empty */
  const uuid *keep_id;     /* of the state directory that sessions' directories are kept for; NULL: they go */
  unsigned threads, slots; /* all slots together; 0: one a core / one */
  uint64_t memory_bytes;   /* all slots together; 0: 80 % of the machine's */
  const char *extension_dir;
  task_report_fn report;
  void *report_context;
} executor_options;

typedef struct executor executor;

/* Errors: WORK_DIR (not to be made, locked by another process), OUT_OF_MEMORY. Opens no DuckDB instance yet. */
hf_status executor_open(const executor_options *options, executor **out, hf_error *error);
/* Cancels what runs, waits for it, closes the slots, removes the work directory's own files and the directory when it
 * is empty. Accepts NULL. */
void executor_close(executor *x);
/* Absolute path; valid while the executor lives. */
const char *executor_work_dir(const executor *x);
/* Its id, a UUID of this start. */
const char *executor_id(const executor *x);
unsigned executor_slots(const executor *x);

/* Begins to open a slot's instance for the plan's settings, allowed directories and output.budget_bytes (the rest is
 * not looked at), so that the first task finds it open. Returns at once. */
void executor_warm(executor *x, const stage_plan *like);

/* Queues one attempt. The bytes are copied. Errors: PROTOCOL, LIMIT; all else comes as a report. Thread: any. */
hf_status executor_submit(executor *x, const void *plan, size_t plan_length, const void *spec,
                          size_t spec_length, hf_error *error);
/* The same for one that reads nothing and is over at once: while all slots are taken it runs beside them, on one thread. */
hf_status executor_submit_light(executor *x, const void *plan, size_t plan_length, const void *spec,
                                size_t spec_length, hf_error *error);
/* Tells whether a new attempt would have to wait. Thread: any. */
bool executor_is_busy(executor *x);
/* Ends the attempt, queued or running, with a FAILED report (CANCELLED). An unknown attempt: nothing. Thread: any. */
void executor_cancel(executor *x, job_id job, stage_id stage, task_id task, attempt_id number);
/* Deletes the files of a stage of a job. Thread: any; runs on the caller's. */
void executor_remove_stage(executor *x, const uuid *session, job_id job, stage_id stage);
/* Removes the session's directory if it is empty. */
void executor_remove_session(executor *x, const uuid *session);
/*
 * Finds out, after a start on a kept work directory, whether the blocks of these attempts, of one result, are there: indexes
 * whole, files as long as they say. Errors: BLOCK_MISSING, BLOCK_CORRUPT, OUT_OF_MEMORY, IO. Thread: any. Blocks.
 */
hf_status executor_check_blocks(const executor *x, const block_ref *refs, size_t n_refs, hf_error *error);
/* Moves every attempt that no ref claims out of the sessions' directories, before the first task runs; of a work directory
 * that is not kept: nothing. *largest_job becomes the largest number below JOBS_END that a directory has, if it is larger.
 * Errors: OUT_OF_MEMORY. Blocks. */
hf_status executor_sweep(executor *x, const block_ref *claims, size_t n_claims, uint64_t *largest_job,
                         hf_error *error);
/* Numbers of jobs are smaller; those of client data are not. */
#define JOBS_END (UINT64_C(1) << 62)
/* Deletes what the sweep has moved. Thread: any. Blocks. */
void executor_empty_trash(executor *x);
/* The directory of an attempt's blocks, in the arena; checks nothing. */
const char *executor_attempt_dir(const executor *x, const block_ref *ref, arena *a);
/* Progress of a running attempt: false when it does not run here. Thread: any. */
bool executor_progress(executor *x, job_id job, double *fraction, uint64_t *rows);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a job: its stages as they were planned, and the attempts of their
 * tasks as they were reported; with those of the fills that it had computed. EXPLAIN
 * shows one without attempts, EXPLAIN ANALYZE one that ran.
 * Lack of memory never fails a query: what could not be noted is missing, and
 * `is_incomplete` says so. All functions accept a NULL profile.
 * Thread: one at a time while it is made; then it is immutable, and any.
 */
#ifndef HF_PROFILE_PROFILE_H
#define HF_PROFILE_PROFILE_H

#include "base/arena.h"
#include "base/buf.h"

#include "holdfast/holdfast.h"

#include <stdatomic.h>

typedef hf_breakdown job_profile; /* as programs call it */

typedef enum attempt_end { ATTEMPT_IS_OPEN, ATTEMPT_IS_FINISHED, ATTEMPT_HAS_FAILED } attempt_end;

/* One try of a task. */
typedef struct profile_attempt {
  struct profile_attempt *next; /* later ones behind */
  uint32_t number;
  attempt_end end;
  hf_status code; /* of one that failed */
  hf_amounts amounts;
} profile_attempt;

/* All tries of a task. */
typedef struct profile_task {
  profile_attempt *attempts; /* NULL: it never ran */
} profile_task;

typedef struct profile_input {
  uint32_t stage;    /* id; 0: a source, a held result or client data */
  const char *text;  /* what it is; NULL of a stage */
  const char *how;   /* it is shared; "": by one task */
  job_profile *fill; /* that computes or computed it, a reference; NULL: none */
} profile_input;

/* A line that says why something was done as it was. */
typedef struct profile_note {
  struct profile_note *next;
  const char *text;
} profile_note;

/* Texts are in the profile's memory. */
typedef struct profile_stage {
  struct profile_stage *next;
  uint32_t id;                /* of the job, from 1 */
  const char *what, *why_one; /* why_one: why it is one task, "" when that is no loss; NULL: it is several */
  const char *sql;            /* inputs as [input 0] */
  uint32_t n_tasks, partitions, n_reads; /* n_reads: inputs of later stages that it is */
  bool ordered;
  bool is_dropped; /* another plan took its place before it ran: not shown */
  size_t n_after;  /* stages that it waits for, beside its inputs */
  const uint32_t *after;
  const char *awaits; /* n_after > 0: what is chosen when these are done */
  size_t n_inputs;
  profile_input *inputs;
  profile_note *notes;
  profile_task *tasks;         /* n_tasks; NULL: none ran */
  uint64_t began_us, ended_us; /* first submitted, last reported; monotonic */
} profile_stage;

struct hf_breakdown {
  atomic_uint references;
  arena *memory;
  uint64_t job;          /* 0: it was not run */
  const char *held;      /* of a fill: the name of the held result; else NULL */
  profile_stage *stages; /* in order; those of an abandoned plan first */
  profile_note *notes, *inlined;
  bool is_incomplete;
  bool is_over;
  hf_status code;                                /* is_over: HF_OK, or what it failed with */
  uint64_t planning_us, elapsed_us, rows, bytes; /* is_over */
};

/* Returns NULL for lack of memory. */
job_profile *profile_new(uint64_t job);
job_profile *profile_retain(job_profile *p);
void profile_release(job_profile *p);

/* A new stage behind the others, zeroed but for its id, tasks and room for inputs; NULL for lack of memory. */
profile_stage *profile_add_stage(job_profile *p, uint32_t id, uint32_t n_tasks, size_t n_inputs);
/* That is not dropped; NULL: there is none. */
profile_stage *profile_find_stage(const job_profile *p, uint32_t id);
/* Copies a text into the profile's memory; "" for lack of memory. */
const char *profile_say(job_profile *p, const char *format, ...) HF_PRINTF(2, 3);
/* Moves the text of a buffer there. */
const char *profile_take(job_profile *p, buf *text);
/* A note on a stage, or on the whole (id 0). */
void profile_add_note(job_profile *p, uint32_t stage, const char *text);
/* Names a held result that is computed in place. */
void profile_add_inlined(job_profile *p, const char *text);
/* The attempt of task `task` (from 0) with this number, made when it is not there; NULL: no such task, no memory. */
profile_attempt *profile_attempt_of(job_profile *p, uint32_t stage, uint32_t task, uint32_t number);

/* Sums over all attempts of a stage. */
typedef struct profile_sum {
  uint32_t n_attempts, n_failed;
  hf_amounts amounts; /* those that failed count with what they read, not with what they wrote */
} profile_sum;
profile_sum profile_sum_stage(const profile_stage *stage);

/* The stages, one behind the other, each with its inputs and, below them, the fills; with what happened where they ran. */
void profile_put_stages(const job_profile *p, buf *out);
/* The text of EXPLAIN ANALYZE. */
void profile_put_text(const job_profile *p, buf *out);
/* One JSON object on one line, without a line break. */
void profile_put_json(const job_profile *p, buf *out);

/* 1,234,567 */
void profile_put_count(buf *out, uint64_t count);
/* 1.2 MB */
void profile_put_bytes(buf *out, uint64_t bytes);

#endif

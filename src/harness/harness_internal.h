/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the harness share. Not a door: the door is include/holdfast/harness.h. */
#ifndef HF_HARNESS_HARNESS_INTERNAL_H
#define HF_HARNESS_HARNESS_INTERNAL_H

#include "base/arena.h"
#include "base/config.h"
#include "base/id.h"
#include "channel/channel.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "exchange/exchange.h"
#include "holdfast/harness.h"
#include "plan/lower.h"
#include "source/source.h"
#include "staging/staging.h"
#include "witness/witness.h"

#include <stdatomic.h>

/* ------------------------------------------------------------------ harness */

/* Blocks that stand for the rows of a name: of a stream, or of what was held. */
typedef struct kept_rows {
  schema columns;
  uint64_t rows;
  size_t n_refs;
  block_ref *refs;
} kept_rows;

typedef struct harness_name {
  struct harness_name *next;
  arena *memory; /* of this and all below */
  const char *name;
  const char *shown; /* what single-node DuckDB calls it: as it is, until it is dropped */
  const char *body;  /* of its view there; NULL: of a stream, whose blocks become a table */
  bool is_query;     /* a view over names that were there; else of files or a stream */
  bool is_told;      /* single-node DuckDB has it */
  bool is_dropped;   /* no query finds it, but views that were made before may be over it */
  relation *plain;   /* files, a stream's rows, or a query over plain ones */
  relation *cached;  /* a cache node over it */
  uuid cache_id;
  uuid local_id;      /* of a stream; else none */
  kept_rows local;    /* the same */
  bool has_collation; /* of a column: never held */
  bool is_held;       /* `held` is there */
  kept_rows held;
} harness_name;

enum { HARNESS_MOST_ENGINES = 4096, HARNESS_SETTINGS = 5 };

struct hf_harness {
  arena *memory;
  uuid session; /* a directory of work_dir has its name */
  const char *work_dir, *extension_dir;
  const char *top_dir; /* of work_dir, when it was made for this; else NULL */
  const char *const *allowed_dirs;
  size_t n_allowed_dirs;
  const char *allow_path;
  uint64_t memory_bytes; /* of a slot */
  config *settings;
  stage_setting rows[HARNESS_SETTINGS]; /* those of them that change results; values are the config's */
  source_catalog *sources;
  harness_name *names;
  uint64_t last_job, last_stream, n_dropped;
  engine *planner; /* NULL: not open */
  witness *witness;
  engine *engines[HARNESS_MOST_ENGINES]; /* of slots; NULL: not open */
  char *answer_query;                    /* what `answer` is of; NULL: none is kept */
  witness_answer *answer;
};

typedef struct query_plan query_plan;

/* harness.c */
/* Runs it on a thread with a large stack, with the planner's engine open. */
hf_status planner_call(hf_harness *h, hf_status (*run)(void *context, hf_error *error), void *context,
                       hf_error *error);
/* The settings as an engine is opened with them. In `a`; NULL: no memory. */
engine_setting *harness_settings(const hf_harness *h, arena *a);
/* The directory of an attempt's blocks; of a job with stage 0, of a stage with task 0. */
const char *harness_dir(const hf_harness *h, const block_ref *ref, arena *a);
/* The name whose cache node or rows have this id. */
harness_name *harness_name_of(const hf_harness *h, const uuid *id);
/* Removes what a job wrote. */
void job_remove(const hf_harness *h, uint64_t job);
/* Lets the answer go that single-node DuckDB gave last. */
void harness_forget_answer(hf_harness *h);

/* names.c */
/* The names as SQL text finds them. */
relation_names harness_names(query_plan *p);
/* After single-node DuckDB was opened anew; what was held is dropped. */
hf_status names_again(hf_harness *h, hf_error *error);
void names_free(hf_harness *h);
/* A file that a query names, as it was resolved; `context` is the query_plan. NULL: it was not. */
source *names_source(void *context, const source_request *request);
/* Resolves those that lowering asks for. */
hf_status names_resolve(query_plan *p, hf_error *error);
void names_release(query_plan *p);
hf_status harness_no_memory(hf_error *error);

/* ---------------------------------------------------------------- plan.c */

/* An input of a stage, as its tasks are told of it. */
typedef struct planned_input {
  bool is_stage;
  uint32_t from; /* is_stage: number of the stage */
  cut_share share;
  size_t n_given; /* else: 1 or as many as tasks */
  task_input *given;
} planned_input;

typedef struct planned_stage {
  const cut_stage *cut;
  uint32_t n_tasks, partitions;
  size_t n_inputs;
  const planned_input *inputs;
  bool ordered;
  const void *plan; /* StagePlan, encoded */
  size_t plan_length;
} planned_stage;

/* A query, lowered, cut and encoded. */
struct query_plan {
  arena *memory;
  hf_harness *h;
  const hf_harness_config *config;
  const relation *relation;
  relation *own_relation; /* the same, to be released; or NULL */
  bool is_fill;           /* its result will be held */
  size_t n_facts;         /* again.c: what is known of stages of an earlier plan; 0: it is the first */
  const cut_fact *facts;
  uint32_t n_recut; /* stages that the earlier plan had not */
  uint64_t job;
  size_t n_known;
  struct known_source *known;
  lowered query;
  schema columns;       /* of the result */
  cut_graph graph;      /* one stage, when it was not cut */
  const char *fallback; /* why it was not cut; NULL: it was */
  size_t n_stages;
  planned_stage *stages; /* the last gives the result */
};

/* Thread of all of these: that of planner_call. To be reset also after a failure. */
hf_status query_plan_begin(query_plan *p, hf_harness *h, const hf_harness_config *how, hf_error *error);
/* The relation of SQL text; then, or after p->relation was set: the stages. */
hf_status query_plan_bind(query_plan *p, const char *sql, hf_error *error);
hf_status query_plan_make(query_plan *p, hf_error *error);
void query_plan_reset(query_plan *p);

/* ----------------------------------------------------------- job.c, task.c */

typedef struct job_run job_run;
typedef struct task_run task_run;

/* How rows get from stage to stage. Errors of all: what ends the task. */
typedef struct exchange_kind {
  /* Opens input `number` of the task, which is one of blocks, and adds it by task_add_input. */
  hf_status (*open_input)(task_run *t, size_t number, hf_error *error);
  /* Sets the task's sink. */
  hf_status (*open_output)(task_run *t, hf_error *error);
  /* The task has succeeded: from here its rows are there. Sets how many. */
  hf_status (*commit)(task_run *t, hf_error *error);
  /* Whether the task was stopped because nobody wants more of its rows: it has succeeded. NULL: that cannot be. */
  bool (*is_enough)(const task_run *t);
  /* After the commit: the attempt is lost. Returns TASK_LOST. */
  hf_status (*kill)(task_run *t, hf_error *error);
  /* Closes inputs and output, also after a failure. */
  void (*close)(task_run *t);
} exchange_kind;

extern const exchange_kind blocking_exchange; /* blocking.c */

/* An input while a task reads it. */
typedef struct task_reading {
  size_t number; /* of the stage's inputs */
  block_input *blocks;
  channel_reader *channel;
  struct watch *watch;
} task_reading;

/* What a task was given of an input of its stage. */
typedef struct task_given {
  uint64_t rows;
  bool is_cut_short; /* it stopped before their end */
} task_given;

/* One attempt. */
struct task_run {
  job_run *job;
  uint32_t stage, number; /* from 0 */
  attempt_id attempt;
  const void *spec; /* TaskSpec, encoded */
  size_t spec_length;
  /* on its slot */
  arena *memory;
  stage_plan plan;
  task_spec told;
  engine *instance;
  size_t n_inputs;
  engine_input *inputs;
  task_reading *readings; /* as many */
  const sink_ops *sink_ops;
  void *sink;
  block_sink *blocks;
  channel_writer *writer;
  const char *dir;
  engine_task_stats stats;
  /* at its end */
  hf_status status;
  hf_error error;
  uint64_t rows, bytes; /* written */
  size_t n_watched;
  range_summary *watched; /* room for the columns of its stage that are watched */
  task_given *given;      /* of each input of its stage */
};

/* One run of a plan. */
struct job_run {
  hf_harness *h;
  const query_plan *plan;
  const hf_harness_config *config;
  const exchange_kind *exchange;
  arena *memory;
  task_run ***done;      /* of each stage, of each task: the attempt that counts; NULL: none yet */
  attempt_id **attempts; /* the same: the last that was begun */
  uint64_t random;       /* state of the order of tasks */
  _Atomic uint32_t killed;
  struct streaming_run *channels; /* streaming.c */
  size_t n_edges;
  struct streaming_edge *edges; /* streaming: of inner stages; else none */
  uint32_t restarts;
  bool ran_blocking; /* though streaming was asked for */
};

/* Runs all stages. To be reset also after a failure; its blocks stay until job_remove. */
hf_status job_begin(job_run *j, const query_plan *plan, hf_error *error);
hf_status job_execute(job_run *j, hf_error *error);
void job_reset(job_run *j);
/* The attempts of a stage's tasks that were begun last, in order. In `a`; NULL: no memory. */
block_ref *job_outputs(const job_run *j, uint32_t stage, arena *a);
/* The next attempt of a task; and its TaskSpec. */
hf_status job_add_attempt(job_run *j, uint32_t stage, uint32_t number, task_run **out, hf_error *error);
hf_status job_tell(const job_run *j, task_run *t, hf_error *error);
/* The error of a task as that of the job. */
hf_status job_give_up(const task_run *t, hf_error *error);

/* Runs the attempt on an engine: decodes, reads, computes, writes. The outcome is in it. */
void task_execute(task_run *t, size_t slot);
/* Adds an input that the task reads; `rows` to come: UINT64_MAX: not known. */
hf_status task_add_input(task_run *t, size_t number, const engine_input *like, uint64_t rows,
                         hf_error *error);

/* overlays.c */
/* Puts tasks into an order that is drawn, where one is asked for. */
void job_shuffle(job_run *j, task_run **tasks, size_t n);
/* Whether kill_task is about this attempt. */
bool task_is_to_be_killed(const task_run *t);

/* ---------------------------------------------------------------- again.c */

/* Keeps what the sink tells of watched columns; after the commit. */
void again_note(task_run *t);
/* After a run: cuts the query again by what its stages gave, and runs that in the place of plan and job, if some stage waits
 * for another. */
hf_status again_run(query_plan *p, job_run *j, const char *query, hf_error *error);

/* ----------------------------------------- streaming.c, streaming_graph.c */

/* From a stage to an input of a later one. */
typedef struct streaming_edge {
  uint32_t from, stage, input;
  channel_edge channel;
  uint64_t spooled_frames; /* after the run: those that went through the file */
} streaming_edge;

/* The edges of the job's plan. In its memory. */
hf_status streaming_edges(const job_run *j, streaming_edge **out, size_t *n, hf_error *error);
/* Runs all stages together, on as many instances as there are tasks. */
hf_status streaming_execute(job_run *j, hf_error *error);

/* ----------------------------------------------------------------- slot.c */

typedef void (*slot_work_fn)(void *context, size_t slot, size_t item);
/* Does items 0 … n - 1 on `n_slots` threads, each of which takes the next. Errors: OUT_OF_MEMORY (no thread; nothing was done). */
hf_status slots_run(size_t n_slots, size_t n_items, slot_work_fn work, void *context, hf_error *error);
/* The slot's engine, opened when it is not there. `fresh`: one of its own, for the caller to close. */
hf_status slot_engine(hf_harness *h, size_t slot, bool fresh, engine **out, hf_error *error);
/* Closes what is broken, or of other settings. */
void slots_close(hf_harness *h);
void slot_close(hf_harness *h, size_t slot);

/* ---------------------------------------------------------------- watch.c */

typedef struct watch watch;
/* Counts what goes through a source. In the arena; NULL: no memory. `rows` as of task_add_input. */
watch *watch_new(const source_ops *ops, void *inner, uint64_t rows, arena *a);
const source_ops *watch_ops(void);
/* Each scan that came to its end had just the rows that the task was given, which are noted. Errors: INTERNAL. */
hf_status watch_reads(task_run *t, hf_error *error);
/* No part of what the task reads is given to it twice. Errors: INTERNAL. */
hf_status watch_refs(const task_run *t, hf_error *error);
/* What the task reads by partitions is hashed again: before it runs what lies in blocks, afterwards what came through
 * channels. Errors: INTERNAL. */
hf_status watch_partitions(const task_run *t, bool is_after, hf_error *error);
/* Streaming: whether an input that is a stage is to be kept for that. */
bool watch_keeps(const job_run *j, const planned_input *input);
/* What all tasks were given of an edge is what was written. Errors: INTERNAL. */
hf_status watch_edges(const job_run *j, hf_error *error);

/* --------------------------------------------------------------- report.c */

/* Makes the report of a run, as far as it came; released by hf_harness_report_reset. Errors: OUT_OF_MEMORY. */
hf_status report_make(const job_run *j, const query_plan *plan, hf_harness_report *out, hf_error *error);

/* ----------------------------------------------------------------- hold.c */

/* What is known of a cache node; `context` is the query_plan. */
void hold_look(void *context, const relation *cache_node, held_info *out);
/* Computes the rows of a name, unless they are there, and keeps them as those of a cached result. */
hf_status hold_fill(hf_harness *h, const relation *cache_node, const hf_harness_config *how, hf_error *error);
/* Whether the query reads a held result that single-node DuckDB computes otherwise each time, and each time it is named. */
bool hold_varies(const query_plan *p);
void hold_drop(hf_harness *h, harness_name *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness: runs a query distributed inside one process, and compares the
 * answer with that of single-node DuckDB. It is the small reference of how
 * distributed execution works (docs/harness.md), and it finds what secretly relies
 * on one process: each stage plan is encoded once, every task decodes its own bytes
 * in a DuckDB instance of its slot, and rows cross as Arrow IPC.
 *
 * It has no scheduler, no executor and no session. It is built only with
 * -DHOLDFAST_HARNESS=ON, as the library holdfast-harness, and is not installed.
 *
 * Ownership, errors and texts are as in holdfast.h.
 * Threads. A harness is used by one thread at a time.
 */
#ifndef HOLDFAST_HARNESS_H
#define HOLDFAST_HARNESS_H

#include "holdfast/holdfast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- the harness */

/* Settings, named inputs, and the instances that runs share. */
typedef struct hf_harness hf_harness;

typedef struct hf_harness_options {
  const char *work_dir;       /* where blocks lie while a run needs them; NULL: a new temporary directory */
  const char *allow_path;     /* "/a:/b": directories of files that queries may read; NULL: all */
  uint64_t memory_bytes;      /* of each slot; 0: 1 GiB */
  const hf_setting *settings; /* as hf_harness_set */
  size_t n_settings;
} hf_harness_options;

/*
 * Opens a harness; NULL options: all defaults. Errors: HF_E_WORK_DIR, HF_E_SETTING_UNKNOWN, HF_E_SETTING_VALUE,
 * HF_E_VERSION, HF_E_OUT_OF_MEMORY.
 */
hf_status hf_harness_open(const hf_harness_options *options, hf_harness **out, hf_error *error);
/* Closes it and removes what it wrote. Result streams must have been released. Accepts NULL. */
void hf_harness_close(hf_harness *harness);

/* Changes a setting that changes results, by its key in docs/configuration.md (sql.time_zone …), for both sides. Errors:
 * HF_E_SETTING_UNKNOWN (also of keys that change no result), HF_E_SETTING_VALUE. Cost: instances are opened anew. */
hf_status hf_harness_set(hf_harness *harness, const char *key, const char *value, hf_error *error);

/*
 * Names files, as a view of them: `format` is "parquet", "csv" or "json", or NULL: by the ending of the first path. A name
 * that is there is replaced. A query may also name files in its text.
 * Errors: HF_E_FILE_NOT_FOUND, HF_E_FILE_FORMAT, HF_E_PATH_REFUSED, HF_E_INVALID_ARGUMENT.
 */
hf_status hf_harness_files(hf_harness *harness, const char *name, const char *format, hf_list paths,
                           hf_error *error);
/* Names the rows of an Arrow stream, which is taken, also on failure: they are written as blocks now. */
hf_status hf_harness_stream(hf_harness *harness, const char *name, struct ArrowArrayStream *rows,
                            hf_error *error);
/* Names a query over names and files that are there. */
hf_status hf_harness_view(hf_harness *harness, const char *name, const char *query, hf_error *error);
/* Forgets a name. Errors: HF_E_TABLE_NOT_FOUND. */
hf_status hf_harness_drop(hf_harness *harness, const char *name, hf_error *error);

/* ------------------------------------------------------------ configuration */

typedef enum hf_harness_exchange {
  HF_HARNESS_BLOCKING = 0, /* a stage begins when those that it reads are done: blocks in files */
  HF_HARNESS_STREAMING     /* all tasks begin together: bounded channels of Arrow IPC frames */
} hf_harness_exchange;

typedef enum hf_harness_broadcast {
  HF_HARNESS_BROADCAST_AUTO = 0, /* by the sizes of sources */
  HF_HARNESS_BROADCAST_ALWAYS,   /* where it is allowed */
  HF_HARNESS_BROADCAST_NEVER     /* where another way is there */
} hf_harness_broadcast;

/* What every name is besides what it names: nothing, or a cached result. */
typedef enum hf_harness_hold {
  HF_HARNESS_HOLD_NONE = 0,
  HF_HARNESS_HOLD_HELD, /* it is there: blocks that the harness wrote as a fill does, with dictionaries and ranges */
  HF_HARNESS_HOLD_INLINED /* it was let go, or its fill failed: computed in place */
} hf_harness_hold;

/* How to run. Zeros are defaults, but of tasks and slots. */
typedef struct hf_harness_config {
  uint32_t tasks;      /* of every stage that is not one task; 1 to 256 */
  uint32_t slots;      /* threads with an instance of DuckDB each, which has one thread; 1 to 256 */
  uint32_t partitions; /* of an exchange, dealt to the tasks; 0: as many as tasks, but at least 2 */
  uint32_t batch_rows; /* 1: record batches of one row cross; 0: as the sink makes them */
  hf_harness_exchange exchange;
  uint64_t channel_bytes; /* streaming: what a consumer's channels may hold; 0: 1 MiB */
  uint64_t order_seed;    /* tasks begin in an order drawn from it; 0: in theirs */
  /* This task (1: the first) of every stage, or the last where there are fewer, fails once when it has written all:
   * blocking, it runs again as the next attempt, and what it wrote must not be read; streaming, the first that fails
   * makes the whole job run again. 0: none. */
  uint32_t kill_task;
  bool hash_zero; /* exchanges by hash put every row into partition 0 */
  hf_harness_broadcast broadcast;
  hf_harness_hold hold;
  /* When it has run, it is cut again by what those stages gave that others had better wait for, and run once more: joins may be
   * placed otherwise, and rows that find no partner are left out early. */
  bool again;
  bool
      fresh_instances; /* every task on an instance of its own; else a slot's instance serves all its tasks */
} hf_harness_config;

/* A way of running that a right engine does not show in its answers. */
typedef struct hf_harness_overlay {
  const char *name; /* letters, digits, '_' */
  const char *about;
  hf_harness_config config;
} hf_harness_overlay;

/* All of them, static; *n is how many. */
const hf_harness_overlay *hf_harness_overlays(size_t *n);
/* By name; NULL: there is none. */
const hf_harness_overlay *hf_harness_overlay_named(const char *name);

/* -------------------------------------------------------------------- runs */

typedef enum hf_harness_result {
  HF_HARNESS_DISTRIBUTED = 0, /* some stage had two or more tasks with rows, read or written */
  HF_HARNESS_NOT_SPREAD,      /* cut into stages, none of which had two tasks with rows */
  HF_HARNESS_FELL_BACK,       /* one task ran the whole query: `reason` tells why */
  HF_HARNESS_REJECTED         /* no answer: both sides failed alike, or it is refused by design */
} hf_harness_result;

/* Rows that one input of a stage takes over from an earlier one. */
typedef struct hf_harness_edge {
  uint32_t from;      /* number of the stage, from 0 */
  uint32_t input;     /* of the stage that reads */
  const char *share;  /* "split", "partition" or "all": what each task reads */
  uint64_t written;   /* rows */
  uint64_t delivered; /* rows to all tasks together; `all`: as often as there are tasks */
  bool is_cut_short;  /* a reader stopped before the end (LIMIT, an empty join side) */
  bool is_spooled;    /* streaming: it goes through a file where its bound is reached */
} hf_harness_edge;

typedef struct hf_harness_stage {
  const char *what;    /* "scan, partial aggregate" … */
  const char *why_one; /* of one task: why; "" when that is no loss */
  uint32_t tasks, partitions;
  const uint64_t *task_rows; /* rows that each task wrote */
  /* Rows that it read: of files, behind the filters that their reader applies, and of blocks and channels of which not every
   * task reads all. */
  const uint64_t *task_reads;
  size_t n_edges;
  const hf_harness_edge *edges; /* of inputs that are stages */
} hf_harness_stage;

/* What happened. Zero-initialise; release with hf_harness_report_reset. Texts live as long as the report. */
typedef struct hf_harness_report {
  hf_harness_result result;
  bool differed; /* the answers differ, or only one side has one, or the errors are of other classes */
  bool
      indeterminate; /* of rows that differ: single-node DuckDB has other ones, too, when it runs otherwise */
  bool
      known_defect; /* of a difference: single-node DuckDB is wrong by a defect of its own, without which it is none */
  const char *doubt;   /* which, of these two; "" */
  const char *reason;  /* of falling back, of rejecting, of a difference; "" */
  const char *rows;    /* of a difference: rows that differ, as text, a line each; "" */
  bool compared_order; /* the rows were compared in the order that the query asks for */
  uint64_t n_rows;     /* of the single-node answer */
  size_t n_stages;
  const hf_harness_stage *stages; /* the last gives the answer */
  uint32_t killed;                /* attempts that kill_task made fail */
  uint32_t restarts;              /* streaming: of the whole job */
  uint32_t recut;    /* again: stages of the second cut, which are the report's, that the first had not */
  bool ran_blocking; /* streaming was asked for, but there were fewer slots than tasks */
  hf_status single_status, distributed_status;
  uint64_t planning_us, run_us, single_us;
  void *memory; /* its own */
} hf_harness_report;

/* Accepts NULL and a zeroed report. */
void hf_harness_report_reset(hf_harness_report *report);

/*
 * Runs a query distributed, to its end; its rows come as a stream. `query` is one SQL statement: SELECT, FROM, VALUES, WITH …
 * Invariants that are checked in every run, HF_E_INTERNAL where one does not hold: what each edge's tasks are given is
 * what was written, once for each reader; a task that reads an input to its end has read just that; no task is given a
 * block twice; rows dealt by hash are where the hash says; one end a partition of a task.
 * Errors: those of the query; HF_E_INVALID_ARGUMENT (no tasks, no slots, a NULL).
 */
hf_status hf_run_distributed(hf_harness *harness, const char *query, const hf_harness_config *how,
                             struct ArrowArrayStream *out, hf_error *error);

/*
 * Runs a query distributed and by single-node DuckDB with one thread, and compares: typed values as a multiset, and in order
 * where the query asks for one; doubles may differ in their last digits. What is found is in the report: HF_OK says only that
 * it could be found out. Where both sides fail, the classes of their errors must be the same.
 * Errors: HF_E_INVALID_ARGUMENT, HF_E_OUT_OF_MEMORY, HF_E_IO, HF_E_DISK_FULL.
 */
hf_status hf_assert_distributed_eq(hf_harness *harness, const char *query, const hf_harness_config *how,
                                   hf_harness_report *report, hf_error *error);

#ifdef __cplusplus
}
#endif
#endif

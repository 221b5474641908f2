/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming exchange: bounded channels of Arrow IPC frames, as the sink of a task
 * that writes and the source of one that reads, so that the same engine_run_task
 * runs a stage against blocks or against channels. Rows cross encoded also within
 * one process.
 *
 * An *edge* leads from a stage to one input of a stage that reads it. A *connection*
 * is one reading task's end of an edge. What waits in a connection is bounded in bytes;
 * then writers wait, or the frames go to a file where the edge spools. One frame is
 * always admitted.
 *
 * No wait is for ever: when every task waits, one of the connections for which writers
 * wait goes over to its file; when none does, all end with an error that names them.
 */
#ifndef HF_CHANNEL_CHANNEL_H
#define HF_CHANNEL_CHANNEL_H

#include "arrow/type.h"
#include "engine/engine.h"

/* ---------------------------------------------------------------------- set */

/* How the tasks of the reading stage share what the writing tasks write; see cut_share. */
typedef enum channel_share {
  /* As many readers as writers: reader t what writer t wrote. Else reader t of T and writer w of W belong together where
   * [t / T, (t + 1) / T) and [w / W, (w + 1) / W) meet; a writer with several readers deals its frames to them in turn,
   * but gives all to the first when the edge is ordered. */
  CHANNEL_SPLIT,
  CHANNEL_PARTITION, /* reader t of T: the partitions p of n for which p * T / n is t */
  CHANNEL_ALL        /* every reader gets every row */
} channel_share;

typedef struct channel_edge {
  const char *name;          /* for messages: "stage 3, input 0" */
  const schema *columns;     /* of the rows, without a partition column */
  uint32_t writers, readers; /* tasks on either side, at least 1 */
  uint32_t partitions;       /* of what is written; 1: no partition numbers */
  channel_share share;
  bool ordered; /* a reader reads all of the first writer, then all of the next …, each in its order */
  bool spools;  /* past the bound frames go to a file, and no writer waits */
  /* Each scan of a reader's input gets all its rows: nothing is let go before the reader is freed. Spools too. */
  bool keeps;
} channel_edge;

typedef struct channel_set_options {
  size_t n_edges;
  const channel_edge *edges; /* what is in them is copied; later they are known by their place */
  uint32_t tasks;            /* that write or read; each has a number below it */
  uint64_t bound_bytes;      /* of a connection */
  const char *spool_dir;     /* for these channels alone: made when it is needed, removed at the end */
} channel_set_options;

/* All channels of one run of a query. They fail together. */
typedef struct channel_set channel_set;

/* Errors: OUT_OF_MEMORY, UNSUPPORTED (a type), INTERNAL (an edge that cannot be). */
hf_status channel_set_new(const channel_set_options *options, channel_set **out, hf_error *error);
/* After its writers and readers. Accepts NULL. */
void channel_set_free(channel_set *set);
/* Ends every wait and every later operation with this error, unless one came before. Thread: any. */
void channel_set_fail(channel_set *set, const hf_error *error);
/* A task waits no more: to be said of every task, however it ended and also when it never began. Thread: any. */
void channel_set_end_task(channel_set *set, uint32_t task);

typedef struct channel_stats {
  uint64_t rows_written;   /* by all writers, whether anybody wanted them or not */
  uint64_t rows_delivered; /* into connections; CHANNEL_ALL: once for each reader */
  uint64_t rows_read;      /* by the scans that have read most, of each reader */
  uint64_t frames, frame_bytes;
  uint64_t spooled_frames, spooled_bytes;
  uint64_t peak_bytes; /* the most that waited in memory in one of its connections */
  uint32_t ended;      /* writers that have finished */
  uint32_t cut_short;  /* readers that closed before the end */
  bool spools;         /* as was asked, or since every task waited */
} channel_stats;

/* Thread: any. */
void channel_set_stats(channel_set *set, size_t edge, channel_stats *out);
/* After all tasks have succeeded: of each edge every writer has ended, once, and every connection that was not closed
 * early was read to its end, each row once. Errors: INTERNAL, or what the set failed with. */
hf_status channel_set_check(channel_set *set, hf_error *error);

/* ------------------------------------------------------------------- writer */

typedef struct channel_writer_options {
  uint32_t task;   /* of the set's */
  uint32_t number; /* of the tasks of its stage */
  size_t n_edges;
  const size_t *edges;   /* all those that lead from the stage, of as many partitions; copied */
  uint64_t budget_bytes; /* of rows not yet in a frame, each of DuckDB's threads; 0: 64 MiB */
  uint64_t batch_bytes;  /* a frame is made when it holds as much; 0: 64 KiB */
  uint64_t batch_rows;   /* or so many rows; 0: any */
} channel_writer_options;

typedef struct channel_writer channel_writer;

hf_status channel_writer_new(channel_set *set, const channel_writer_options *options, channel_writer **out,
                             hf_error *error);
/* What to give to engine_run_task together with the writer. */
const sink_ops *channel_writer_ops(void);
/* Says that the task has succeeded: nothing more comes from it. Once. Errors: what the set failed with. */
hf_status channel_writer_finish(channel_writer *w, hf_error *error);
/* Whether the task was stopped because no reader wants more: its status is CANCELLED, and it has succeeded. */
bool channel_writer_is_unwanted(const channel_writer *w);
uint64_t channel_writer_rows(const channel_writer *w);
/* Unless it has finished, the set fails (TASK_LOST): nobody waits for a writer that is gone. Accepts NULL. */
void channel_writer_free(channel_writer *w);

/* ------------------------------------------------------------------- reader */

typedef struct channel_reader_options {
  uint32_t task;   /* of the set's */
  uint32_t number; /* of the readers of the edge */
  size_t edge;
  unsigned threads; /* of DuckDB; ordered: one reads */
} channel_reader_options;

typedef struct channel_reader channel_reader;

hf_status channel_reader_new(channel_set *set, const channel_reader_options *options, channel_reader **out,
                             hf_error *error);
const source_ops *channel_reader_ops(void);
/* What the engine needs to bind it; borrowed from the set. How many rows come is not known. */
const schema *channel_reader_columns(const channel_reader *r);
const struct ArrowSchema *channel_reader_arrow_schema(const channel_reader *r);
uint64_t
channel_reader_rows(const channel_reader *r); /* handed out by the scan that gave most. Thread: any */
/* Whether a second scan found that the rows are gone: the edge must keep. The task failed with INTERNAL then. */
bool channel_reader_lacks_keeping(const channel_reader *r);
/* Closes the connection: whoever writes into it need not any more. Accepts NULL. */
void channel_reader_free(channel_reader *r);

#endif

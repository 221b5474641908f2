/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting: a plan tree becomes a graph of stages at its exchanges. Each stage is
 * SQL over named inputs; what a task of it reads is said by distribution, never
 * by path. Pure: no I/O, no engine. What cannot be cut runs as one task, with
 * the reason.
 * Thread: any; deep trees want a stack of THREAD_PLANNING_STACK_BYTES.
 */
#ifndef HF_STAGE_CUT_H
#define HF_STAGE_CUT_H

#include "arrow/type.h"
#include "base/arena.h"
#include "tree/tree.h"

/* What the caller knows of a source: of each hf_scan('<id>') of the tree. */
typedef struct cut_source {
  const char *id;
  bool can_split; /* files, or blocks of several attempts or partitions: tasks may share it */
  uint64_t rows, bytes;
  bool ordered; /* its rows have an order that single-node DuckDB would show */
  /* Its rows are dealt by the hash of these columns: row by row hash(columns…) % modulus is the partition that holds it,
   * and the types are those that were hashed. n_keys 0: not known. */
  uint32_t modulus;
  size_t n_keys;
  const size_t *keys;
} cut_source;

/* When every task reads a join side whole, where that is allowed. */
typedef enum cut_whole_side {
  CUT_WHOLE_IF_SMALL, /* by broadcast_bytes */
  CUT_WHOLE_ALWAYS,
  CUT_WHOLE_NEVER /* but of a join without keys */
} cut_whole_side;

/* Equal of stages that compute the same of the same. */
typedef struct cut_mark {
  uint64_t high, low;
} cut_mark;

/* What a stage that was run has in a column: whole numbers, dates, times and decimals of at most 18 digits, as DuckDB stores
 * them, widened to 64 bits with their sign. */
typedef struct cut_column_fact {
  uint32_t column;        /* of its output */
  uint64_t rows;          /* whose value is not NULL; 0: the rest says nothing */
  uint64_t least, most;   /* of these */
  size_t n_values;        /* 0: too many to list */
  const uint64_t *values; /* distinct */
} cut_column_fact;

/* What is known of a stage that was launched. */
typedef struct cut_fact {
  cut_mark mark;
  bool is_done; /* else it is at work, and the rest is not known */
  uint64_t rows, bytes;
  size_t n_columns; /* of cut_stage.watched */
  const cut_column_fact *columns;
} cut_fact;

typedef struct cut_options {
  uint32_t tasks;           /* tasks of a scan stage and partitions of an exchange; at least 2 */
  uint64_t broadcast_bytes; /* a join side below this may be read whole by every task */
  cut_whole_side broadcast;
  bool
      spreads_small; /* cheap parts and few rows are shared among tasks as well, but a page of rows: not the fastest */
  bool hash_zero;        /* exchanges put all rows into partition 0, for tests; n_keys below must be 0 */
  bool first_of_many;    /* see plan_write_options */
  bool tells_partitions; /* for tests: cut_stage.partition_pieces */
  const cut_source *sources;
  size_t n_sources;
  /* Whether the caller cuts again: the larger side of a join that is exchanged then waits for the smaller one, when it moves
   * at least so many bytes. */
  bool waits;
  uint64_t wait_bytes;
  /* Cutting again, with the tree and the options as before: what is known now. Stages that were run are made anew with
   * their marks, unless another way has become better; what depends on them is placed by these figures. */
  const cut_fact *facts;
  size_t n_facts;
  /* How the result is to be dealt: by the hash of these columns, in `modulus` partitions; n_keys 0: not. */
  uint32_t modulus;
  size_t n_keys;
  const size_t *keys;
} cut_options;

/* How the tasks of a stage share an input. */
typedef enum cut_share {
  CUT_SPLIT, /* every task reads its own part, in order from task to task: of a source its splits, of a stage with one
                  * partition what so many of its tasks wrote (as many tasks on both sides: task t what task t wrote) */
  CUT_PARTITION, /* a stage or source partitioned by hash: task t of T reads the partitions p of n for which p * T / n is t */
  CUT_ALL /* every task reads all of it, tasks and blocks in order (gather when there is one task, else broadcast) */
} cut_share;

typedef struct cut_input {
  cut_share share;
  bool is_stage;
  uint32_t stage;        /* is_stage: place in the graph, always an earlier one */
  const char *source_id; /* else: of hf_scan */
  /* What the text reads, and which columns of the source or the stage these are, ascending. The FROM item has all columns
   * of the source or stage, in order. */
  schema columns;
  const size_t *source_columns;
  bool ordered; /* the SQL relies on the order of the rows */
} cut_input;

typedef struct cut_piece {
  const char
      *text; /* NULL: an input, as a FROM item without alias whose columns the text names by position */
  uint32_t input;
} cut_piece;

typedef struct cut_stage {
  size_t n_pieces;
  const cut_piece *pieces; /* with partitions > 1 the last column is the partition number, UINTEGER */
  size_t n_inputs;
  const cut_input *inputs;
  /* Else options.tasks when it reads a stage by SPLIT or PARTITION, otherwise as many as its sources have splits, at most
   * that. Never none: a task without splits reads empty inputs. */
  bool one_task;
  uint32_t partitions; /* of its output; 1: not partitioned */
  /* A query of the partition number of each row, over input 0: the stage's own output. Only where options.tells_partitions, of
   * stages with partitions whose keys are not volatile. */
  size_t n_partition_pieces;
  const cut_piece *partition_pieces;
  bool ordered; /* its reader relies on the order of its rows: the ordered sink */
  /* Earlier stages, which it need not read, that had better be done before it begins: by what they give it may be cut
   * otherwise. Only where options.waits. */
  size_t n_after;
  const uint32_t *after;
  const char *awaits; /* n_after > 0: for EXPLAIN, what is chosen then */
  /* Its rows are those whose keys another stage has: for EXPLAIN, which keys, such as "o_custkey: 3 values"; NULL: not so. */
  const char *filter;
  uint32_t filter_of; /* that stage, an earlier one */
  size_t n_watched;   /* columns of its output of which a cut_column_fact is of use */
  const uint32_t *watched;
  schema columns; /* of its output, c0 … */
  cut_mark mark;
  double rows, bytes;  /* of its output, guessed */
  bool is_done;        /* these are a fact's */
  const char *what;    /* for EXPLAIN: "scan, partial aggregate", "final aggregate" … */
  const char *why_one; /* one_task: why; "" when it is no loss (a final gather) */
  bool falls_back; /* one_task: it holds what cannot be cut; else the table of placements (10, 3) has it so */
  size_t n_casts;  /* casts in it that may fail: for cut_clean_error */
  const struct plan_cast *casts;
} cut_stage;

typedef struct cut_graph {
  size_t n_stages;
  const cut_stage *stages; /* inputs before readers; the last gives the result */
  /* How the result happens to be dealt: task t has the rows whose hash of these columns is t modulo the number of tasks.
   * n_keys 0: not known. */
  size_t n_keys;
  const size_t *keys;
} cut_graph;

/*
 * Cuts. A subtree that cannot be cut becomes one task (why_one says so); when nothing can be, *refusal is set and *out
 * zeroed: the caller runs the lowered SQL as one task. Errors: OUT_OF_MEMORY.
 */
hf_status stage_cut(const tree_node *root, const cut_options *options, arena *a, cut_graph *out,
                    tree_refusal *refusal, hf_error *error);

/*
 * Puts the query's words into an error of one of the stage's tasks: DuckDB calls the column of a cast that failed as the
 * stage's text does. Where several columns may be meant, none is named.
 */
void cut_clean_error(const cut_stage *stage, hf_error *error);

#endif

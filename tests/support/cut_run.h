/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of stages run on the oracle, stage by stage and task by task: sources
 * are tables, read by ranges of rows; what the tasks of a stage wrote is a
 * temporary table. Nothing but SQL and these tables passes between them.
 * Thread: one at a time.
 */
#ifndef HF_TESTS_CUT_RUN_H
#define HF_TESTS_CUT_RUN_H

#include "stage/cut.h"
#include "support/oracle.h"

typedef struct cut_outcome {
  oracle_verdict verdict; /* against the oracle's own answer */
  bool distributed;       /* some stage had two tasks with rows */
  bool is_wide;           /* some stage is of as many tasks as there are */
  bool falls_back;        /* some stage is one task since it cannot be cut: why */
  size_t n_stages, n_tasks;
  char why[300]; /* the first reason of a stage of one task, of a fallback if there is one; or the refusal */
  char problem[600]; /* an error, or where the answers differ; "" when the same */
} cut_outcome;

typedef struct cut_run {
  oracle *o;
  const cut_graph *graph;
  uint32_t tasks;
  const cut_source *sources; /* their ids are tables as SQL names them; rows: the largest rowid + 1 */
  size_t n_sources;
  cut_outcome *out;
  /* NULL, or called when the tasks of a stage have run: their rows are in the table temp.main.cut_s<at>, in c0 … */
  void (*on_stage)(void *context, uint32_t at);
  void *context;
} cut_run;

/* Runs all stages and compares the result with `expected`; drops what it made. */
void cut_run_graph(const cut_run *r, const oracle_rows *expected);

#endif

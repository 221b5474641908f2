/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query planned by the engine over the oracle's tables as sources, cut, and run
 * by cut_run.h.
 * Thread: one at a time.
 */
#ifndef HF_TESTS_CUT_CASE_H
#define HF_TESTS_CUT_CASE_H

#include "engine/engine.h"
#include "support/cut_run.h"

enum { CUT_CASE_TABLES = 32 };

typedef struct cut_case {
  oracle *o;
  arena *a;
  engine *planner;
  size_t n_tables;
  engine_scan scans[CUT_CASE_TABLES];
  cut_source sources[CUT_CASE_TABLES];
  char *views; /* a WITH list that names each scan and its columns */
} cut_case;

/* Makes every table that the oracle has now a source. */
void cut_case_open(cut_case *c, oracle *o);
/* Closes all but the oracle. */
void cut_case_close(cut_case *c);
/* The state of a test, and its teardown: a case over an oracle of its own, in which these statements were run. */
cut_case *cut_case_new(const char *const *statements, size_t n);
int cut_case_teardown(void **state);
/* Plans; fails the test when there is no plan. Memory of `a`. */
const tree_node *cut_case_tree(cut_case *c, const char *sql, arena *a);
/* Plans and cuts; fails the test when there is no plan. Memory of `a`. */
void cut_case_cut(cut_case *c, const char *sql, const cut_options *options, arena *a, cut_graph *graph,
                  tree_refusal *refusal);
/* The same with the sources of the case, and runs it; those of `options` are not looked at. */
void cut_case_run_with(cut_case *c, const char *sql, const cut_options *options, cut_outcome *out);
void cut_case_run(cut_case *c, const char *sql, uint32_t tasks, uint64_t broadcast_bytes, cut_outcome *out);

#endif

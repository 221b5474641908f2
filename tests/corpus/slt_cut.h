/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query over the oracle's own tables, cut into stages and run task by task.
 * Thread: one at a time.
 */
#ifndef HF_TESTS_SLT_CUT_H
#define HF_TESTS_SLT_CUT_H

#include "support/cut_run.h"

typedef enum slt_cut_result {
  SLT_CUT_RUN,          /* *out says how it went */
  SLT_CUT_REFUSED,      /* by the reader or the cutter: out->why */
  SLT_CUT_UNSERIALISED, /* DuckDB gave no plan: out->why */
} slt_cut_result;

/* Compares the query's answer over so many tasks with `expected`. */
slt_cut_result slt_cut_query(oracle *o, const char *sql, uint32_t tasks, uint64_t broadcast_bytes,
                             const oracle_rows *expected, cut_outcome *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of the SELECTs that read a table go through the cutter, and why the
 * others do not. A SELECT reads a table when DuckDB's own plan for it scans one:
 * what is folded into constants, and what only calls functions, is not counted.
 * Thread: one.
 */
#ifndef HF_TESTS_SLT_SHARE_H
#define HF_TESTS_SLT_SHARE_H

#include "support/cut_run.h"

#include <stdio.h>

typedef enum slt_share {
  SLT_SHARE_NONE, /* reads no table */
  SLT_SHARE_CUT,  /* stages, one of several tasks; no subtree falls back */
  SLT_SHARE_PLACED, /* the same, and something is in one task by the table of placements (10-planning, 3): no fallback */
  SLT_SHARE_PART,  /* stages, one of several tasks; a subtree falls back */
  SLT_SHARE_WHOLE, /* no stage is of several tasks */
  SLT_SHARE_NOT    /* no plan, a refusal, or an error */
} slt_share;

/* Whether DuckDB's plan of the query scans a table or a file. */
bool slt_share_reads(oracle *o, const char *sql);
/* How a query went that reads a table; `ran`: the cutter gave a graph. */
slt_share slt_share_of(const cut_outcome *out, bool ran);

void slt_share_count(slt_share share, const char *why);
/* Writes the table and the verdict: at least `least` percent without a fallback. False: fewer. */
bool slt_share_print(FILE *to, double least);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query over Parquet tables of one directory as Holdfast plans it: lowered, and its
 * optimised plan read as a tree, over hf_scan or over the files themselves.
 * Every function ends the process on failure.
 */
#ifndef HF_BENCH_PLANNED_H
#define HF_BENCH_PLANNED_H

#include "plan/lower.h"
#include "sql/write.h"

typedef struct planned {
  engine *planner; /* hf_scan */
  engine *reader;  /* sees the files */
  source_catalog *sources;
  arena *lasting;
  const char *dir;
  size_t n_tables;
  const char **names;
  relation **tables; /* each the reading of <dir>/<name>.parquet */
  size_t n_known;
  const source_request *requests[128];
  source *known[128];
} planned;

/* `names`: the tables, whose files are <dir>/<name>.parquet. */
void planned_open(planned *p, const char *dir, const char *const *names, size_t n_names);
void planned_close(planned *p);

/* Lowers; all memory is of `a`. */
void planned_lower(planned *p, const char *sql, arena *a, lowered *out);
/* The text of the query with each input as it is read in one task. */
const char *planned_text(const lowered *l, arena *a);
/* The optimised plan over hf_scan with the rows that are known, or over the files; NULL when it is refused (*why). */
const tree_node *planned_over_scans(planned *p, const lowered *l, arena *a, const char **why);
const tree_node *planned_over_files(planned *p, const lowered *l, arena *a, const char **why);
/* The tree as SQL that runs: hf_scan('<i>') as it is read in one task. NULL when it is refused. */
const char *planned_sql(const tree_node *root, const lowered *l, arena *a);
/* The join tree as text, such as "((lineitem orders) customer)": left and right, the names of tables. */
const char *planned_joins(const tree_node *root, const lowered *l, arena *a);

#endif

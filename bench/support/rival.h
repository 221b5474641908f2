/* SPDX-License-Identifier: Apache-2.0 */
/* The rival in the same process: DuckDB itself, the same library; and Holdfast by its public API. */
#ifndef HF_BENCH_RIVAL_H
#define HF_BENCH_RIVAL_H

#include "holdfast/holdfast.h"

#include <duckdb.h>

typedef struct rival {
  duckdb_database database;
  duckdb_connection connection;
} rival;

/* Opens DuckDB in memory with the given threads; ends the process on failure, as all functions here do. */
void rival_open(rival *r, unsigned threads);
void rival_close(rival *r);
/* Runs and fetches all rows; returns milliseconds. `rows` may be NULL. */
double rival_run(rival *r, const char *sql, uint64_t *rows);
/* The first column of the first row as text; released with duckdb_free. */
char *rival_text(rival *r, const char *sql);

/* Opens a Holdfast session with these threads; slots NULL: one; work_dir NULL: the default. */
hf_session *ours_open(const char *threads, const char *slots, const char *work_dir);
/* Runs a query and reads its stream to the end, or a command; returns milliseconds. Outputs may be NULL. */
double ours_run(hf_session *s, const char *sql, uint64_t *rows, hf_profile *profile);

/* Ends the process with the message. */
void bench_fail(const char *what, const char *why);

#endif

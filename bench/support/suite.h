/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suites tpch and tpcds by DuckDB's extensions: tables as Parquet files and the
 * texts of the queries. Every function ends the process on failure.
 */
#ifndef HF_BENCH_SUITE_H
#define HF_BENCH_SUITE_H

#include "support/rival.h"

enum { BENCH_MOST_TABLES = 32 };

typedef struct bench_suite {
  rival *rival; /* borrowed; has the suite's extension loaded */
  const char *name;
  char dir[4096]; /* absolute, of <table>.parquet */
  size_t n_tables, n_queries;
  char *tables[BENCH_MOST_TABLES];
} bench_suite;

/* Makes the files at this scale unless they are there: then `scale` is not looked at. */
void bench_suite_open(bench_suite *s, rival *r, const char *name, const char *dir, const char *scale);
void bench_suite_close(bench_suite *s);
/* The text of query 1 … n_queries without a semicolon; released with duckdb_free. */
char *bench_suite_query(const bench_suite *s, size_t number);
/* CREATE VIEW of table i over its file; valid until the next call. */
const char *bench_suite_view(const bench_suite *s, size_t i);

#endif

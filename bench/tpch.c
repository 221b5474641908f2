/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TPC-H on Parquet files: every query by DuckDB itself and by Holdfast, in turn,
 * in one process, with the same threads. Usage: tpch DATA_DIR RUNS THREADS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const tables[] = {"customer", "lineitem", "nation", "orders",
                                     "part",     "partsupp", "region", "supplier"};
enum { TABLES = sizeof tables / sizeof tables[0], QUERIES = 22 };

static void make_views(rival *r, hf_session *s, const char *dir) {
  for (int i = 0; i < TABLES; i++) {
    char sql[1024];
    snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM read_parquet('%s/%s.parquet')", tables[i], dir,
             tables[i]);
    rival_run(r, sql, NULL);
    ours_run(s, sql, NULL, NULL);
  }
}

static void run_pair(rival *r, hf_session *s, const char *sql, bool rival_first, measure *m) {
  double ours = 0, theirs = 0;
  uint64_t our_rows = 0, their_rows = 0;
  if (rival_first) {
    theirs = rival_run(r, sql, &their_rows);
  }
  ours = ours_run(s, sql, &our_rows, NULL);
  if (!rival_first) {
    theirs = rival_run(r, sql, &their_rows);
  }
  if (our_rows != their_rows) {
    bench_fail(m->name, "the row counts differ");
  }
  measure_add(m, ours, theirs);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "tpch DATA_DIR RUNS THREADS");
  }
  size_t runs = (size_t)strtoul(argv[2], NULL, 10);
  rival r;
  rival_open(&r, (unsigned)strtoul(argv[3], NULL, 10));
  rival_run(&r, "LOAD tpch", NULL);
  hf_session *s = ours_open(argv[3], NULL);
  make_views(&r, s, argv[1]);
  measure total = {.group = "tpch", .name = "total", .rival = "DuckDB", .must = 1.10};
  for (size_t run = 0; run < runs; run++) {
    measure_add(&total, 0, 0);
  }
  for (int q = 1; q <= QUERIES; q++) {
    char text[128], name[8];
    snprintf(text, sizeof text, "SELECT query FROM tpch_queries() WHERE query_nr = %d", q);
    snprintf(name, sizeof name, "q%02d", q);
    char *sql = rival_text(&r, text);
    measure m = {.group = "tpch", .name = name, .rival = "DuckDB"};
    measure warm_up = m;
    run_pair(&r, s, sql, true, &warm_up);
    for (size_t run = 0; run < runs; run++) {
      run_pair(&r, s, sql, run % 2 == 0, &m);
      total.ours[run] += m.ours[run];
      total.theirs[run] += m.theirs[run];
    }
    measure_print(&m);
    duckdb_free(sql);
  }
  measure_print(&total);
  hf_session_close(s);
  rival_close(&r);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TPC-H on Parquet files: every query by DuckDB itself and by Holdfast, in turn,
 * in one process, with the same threads: as one task a query, and cut into stages on
 * one-thread slots. Usage: tpch DATA_DIR RUNS THREADS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const tables[] = {"customer", "lineitem", "nation", "orders",
                                     "part",     "partsupp", "region", "supplier"};
enum { TABLES = sizeof tables / sizeof tables[0], QUERIES = 22 };

static const char *view_of(int table, const char *dir) {
  static char sql[1024];
  snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM read_parquet('%s/%s.parquet')", tables[table],
           dir, tables[table]);
  return sql;
}

static void make_views(rival *r, const char *dir) {
  for (int i = 0; i < TABLES; i++) {
    rival_run(r, view_of(i, dir), NULL);
  }
}

static void name_tables(hf_session *s, const char *dir) {
  for (int i = 0; i < TABLES; i++) {
    ours_run(s, view_of(i, dir), NULL, NULL);
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

/* All queries; `group` names the session that runs ours, `must` is the ratio that the total must reach. */
static void measure_suite(rival *r, hf_session *s, size_t runs, const char *group, double must) {
  measure total = {.group = group, .name = "total", .rival = "DuckDB", .must = must};
  for (size_t run = 0; run < runs; run++) {
    measure_add(&total, 0, 0);
  }
  for (int q = 1; q <= QUERIES; q++) {
    char text[128], name[8];
    snprintf(text, sizeof text, "SELECT query FROM tpch_queries() WHERE query_nr = %d", q);
    snprintf(name, sizeof name, "q%02d", q);
    char *sql = rival_text(r, text);
    measure m = {.group = group, .name = name, .rival = "DuckDB"};
    measure warm_up = m;
    run_pair(r, s, sql, true, &warm_up);
    for (size_t run = 0; run < runs; run++) {
      run_pair(r, s, sql, run % 2 == 0, &m);
      total.ours[run] += m.ours[run];
      total.theirs[run] += m.theirs[run];
    }
    measure_print(&m);
    duckdb_free(sql);
  }
  measure_print(&total);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "tpch DATA_DIR RUNS THREADS");
  }
  size_t runs = (size_t)strtoul(argv[2], NULL, 10);
  rival r;
  rival_open(&r, (unsigned)strtoul(argv[3], NULL, 10));
  rival_run(&r, "LOAD tpch", NULL);
  make_views(&r, argv[1]);
  hf_session *whole = ours_open(argv[3], NULL, NULL);
  name_tables(whole, argv[1]);
  measure_suite(&r, whole, runs, "tpch", 1.10);
  hf_session_close(whole);
  hf_session *cut =
      ours_open(argv[3], argv[3], NULL); /* as many slots as threads: queries are cut into stages */
  name_tables(cut, argv[1]);
  measure_suite(&r, cut, runs, "tpch in stages, one thread a slot", 1.40);
  hf_session_close(cut);
  rival_close(&r);
  return 0;
}

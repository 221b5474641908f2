/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Join trees: every query of a suite planned over hf_scan, which knows rows only, and
 * over the files, whose footers DuckDB reads. Where the trees differ both are written
 * as SQL and run on one DuckDB with the order of joins left alone. Prints a line of
 * JSON a query that differs. Usage: plans tpch|tpcds DIR SCALE RUNS; makes the data.
 */
#include "support/measure.h"
#include "support/planned.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2 };

typedef struct plans {
  bench_suite suite;
  rival duckdb;
  planned planned;
  size_t runs;
  double scans_ms, files_ms; /* of planning all */
  size_t n_same, n_refused;
} plans;

static double cost_ratio(plans *p, const char *ours, const char *theirs, measure *m) {
  uint64_t our_rows = 0, their_rows = 0;
  rival_run(&p->duckdb, theirs, &their_rows);
  rival_run(&p->duckdb, ours, &our_rows);
  if (our_rows != their_rows) {
    bench_fail(m->name, "the row counts differ");
  }
  for (size_t run = 0; run < p->runs; run++) {
    double rival_ms = run % 2 == 0 ? rival_run(&p->duckdb, theirs, NULL) : 0;
    double our_ms = rival_run(&p->duckdb, ours, NULL);
    measure_add(m, our_ms, run % 2 == 0 ? rival_ms : rival_run(&p->duckdb, theirs, NULL));
  }
  return measure_ratio(m);
}

static void compare(plans *p, const char *name, const char *sql) {
  arena *a = arena_new();
  lowered l;
  const char *why = NULL;
  planned_lower(&p->planned, sql, a, &l);
  double start = measure_now_ms();
  const tree_node *ours = planned_over_scans(&p->planned, &l, a, &why);
  p->scans_ms += measure_now_ms() - start;
  start = measure_now_ms();
  const tree_node *theirs = ours == NULL ? NULL : planned_over_files(&p->planned, &l, a, &why);
  p->files_ms += measure_now_ms() - start;
  if (theirs == NULL) {
    fprintf(stderr, "%s: %s\n", name, why);
    p->n_refused++;
    arena_free(a);
    return;
  }
  const char *our_joins = planned_joins(ours, &l, a), *their_joins = planned_joins(theirs, &l, a);
  if (strcmp(our_joins, their_joins) == 0) {
    p->n_same++;
  } else {
    measure m = {.group = p->suite.name, .name = name, .rival = "planned over the files"};
    double ratio = cost_ratio(p, planned_sql(ours, &l, a), planned_sql(theirs, &l, a), &m);
    printf(
        "{\"suite\": \"%s\", \"query\": \"%s\", \"ratio\": %.3f, \"ours_ms\": %.1f, \"scan\": \"%s\", \"files\": "
        "\"%s\"}\n",
        p->suite.name, name, ratio, measure_median(m.ours, m.runs), our_joins, their_joins);
    fflush(stdout);
  }
  arena_free(a);
}

static void compare_all(plans *p) {
  size_t n = p->suite.n_queries;
  for (size_t q = 1; q <= n; q++) {
    char name[24];
    char *sql = bench_suite_query(&p->suite, q);
    snprintf(name, sizeof name, "q%02zu", q);
    compare(p, name, sql);
    duckdb_free(sql);
  }
  printf(
      "{\"suite\": \"%s\", \"queries\": %zu, \"same\": %zu, \"refused\": %zu, \"scans_ms\": %.2f, \"files_ms\": %.2f}\n",
      p->suite.name, n, p->n_same, p->n_refused, p->scans_ms / (double)n, p->files_ms / (double)n);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    bench_fail("usage", "plans tpch|tpcds DIR SCALE RUNS");
  }
  plans p = {.runs = strtoul(argv[4], NULL, 10)};
  rival_open(&p.duckdb, THREADS);
  bench_suite_open(&p.suite, &p.duckdb, argv[1], argv[2], argv[3]);
  planned_open(&p.planned, p.suite.dir, (const char *const *)p.suite.tables, p.suite.n_tables);
  rival_run(&p.duckdb, "SET disabled_optimizers = 'join_order, build_side_probe_side'", NULL);
  compare_all(&p);
  planned_close(&p.planned);
  bench_suite_close(&p.suite);
  rival_close(&p.duckdb);
  return 0;
}

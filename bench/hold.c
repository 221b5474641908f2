/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding lineitem with all its columns against CREATE TABLE AS in memory, and
 * warm aggregates over the held result against the same from Parquet and from
 * the native table. Usage: hold DATA_DIR RUNS THREADS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>

/* The five warm reads: what must be faster than Parquet and not far from the native table. `%s` is the table. */
static const struct {
  const char *name, *sql;
} aggregates[] = {
    {"numeric sum", "SELECT sum(l_extendedprice) FROM %s"},
    {"q1's aggregate",
     "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
     "sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), "
     "avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM %s "
     "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"},
    {"filter on a repeated string", "SELECT count(*) FROM %s WHERE l_shipmode = 'MAIL'"},
    {"group by l_suppkey",
     "SELECT count(*) FROM (SELECT l_suppkey, sum(l_quantity), max(l_extendedprice) FROM %s GROUP BY l_suppkey)"},
    {"wide sum",
     "SELECT sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), sum(l_quantity), "
     "sum(l_extendedprice), sum(l_discount), sum(l_tax) FROM %s"},
};
enum { AGGREGATES = sizeof aggregates / sizeof aggregates[0] };

static void measure_fill(rival *r, hf_session *s, const char *parquet, size_t runs) {
  measure m = {
      .group = "fill", .name = "lineitem, 16 columns", .rival = "CREATE TABLE AS in memory", .must = 1.2};
  char create[1024], cache[1024];
  snprintf(create, sizeof create, "CREATE OR REPLACE TABLE native AS SELECT * FROM %s", parquet);
  snprintf(cache, sizeof cache, "CACHE TABLE held AS SELECT * FROM %s", parquet);
  for (size_t run = 0; run <= runs; run++) {
    double theirs = rival_run(r, create, NULL);
    double ours = ours_run(s, cache, NULL, NULL);
    if (run > 0) { /* the first warms both up */
      measure_add(&m, ours, theirs);
    }
    if (run < runs) {
      ours_run(s, "UNCACHE TABLE held", NULL, NULL);
    }
  }
  measure_print(&m);
}

static void measure_warm(rival *r, hf_session *s, const char *parquet, size_t runs) {
  measure total = {.group = "warm", .name = "five warm reads, total", .rival = "Parquet", .must = 0.9};
  measure native_total = {
      .group = "warm", .name = "five warm reads, total", .rival = "native table", .must = 1.5};
  for (size_t run = 0; run < runs; run++) {
    measure_add(&total, 0, 0);
    measure_add(&native_total, 0, 0);
  }
  for (int i = 0; i < AGGREGATES; i++) {
    char over_held[1024], over_parquet[1024], over_native[1024];
    snprintf(over_held, sizeof over_held, aggregates[i].sql, "held");
    snprintf(over_parquet, sizeof over_parquet, aggregates[i].sql, parquet);
    snprintf(over_native, sizeof over_native, aggregates[i].sql, "native");
    measure m = {.group = "warm", .name = aggregates[i].name, .rival = "Parquet"};
    measure n = {.group = "warm", .name = aggregates[i].name, .rival = "native table"};
    for (size_t run = 0; run <= runs; run++) {
      double theirs = rival_run(r, over_parquet, NULL);
      hf_profile profile = {0};
      double ours = ours_run(s, over_held, NULL, &profile);
      double natively = rival_run(r, over_native, NULL);
      if (profile.held_hits != 1 || profile.source_rows != 0) {
        bench_fail(aggregates[i].name, "not answered from the held result");
      }
      if (run > 0) {
        measure_add(&m, ours, theirs);
        measure_add(&n, ours, natively);
        total.ours[run - 1] += ours;
        total.theirs[run - 1] += theirs;
        native_total.ours[run - 1] += ours;
        native_total.theirs[run - 1] += natively;
      }
    }
    measure_print(&m);
    measure_print(&n);
  }
  measure_print(&total);
  measure_print(&native_total);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "hold DATA_DIR RUNS THREADS");
  }
  size_t runs = (size_t)strtoul(argv[2], NULL, 10);
  rival r;
  rival_open(&r, (unsigned)strtoul(argv[3], NULL, 10));
  hf_session *s = ours_open(argv[3], NULL, NULL);
  char parquet[512];
  snprintf(parquet, sizeof parquet, "read_parquet('%s/lineitem.parquet')", argv[1]);
  measure_fill(&r, s, parquet, runs);
  measure_warm(&r, s, parquet, runs);
  hf_session_close(s);
  rival_close(&r);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holding is for: a held join-and-aggregate against its query; what a hit costs
 * beside few and beside 10,000 other entries; how little of a sorted result a filter
 * reads; how small repeating columns are. Usage: reuse DATA_DIR RUNS THREADS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>

enum { MANY_ENTRIES = 10000 };

/* A held result against computing it, both by Holdfast: what the first and every later action takes. */
static void measure_reuse(hf_session *s, const char *data, size_t runs) {
  measure m = {.group = "reuse", .name = "held join and aggregate", .rival = "its query", .must = 0.02};
  char query[1536], cache[2048];
  snprintf(query, sizeof query,
           "SELECT c_custkey, c_name, count(*) AS lines, sum(l_extendedprice * (1 - l_discount)) AS revenue "
           "FROM '%s/customer.parquet' JOIN '%s/orders.parquet' ON c_custkey = o_custkey "
           "JOIN '%s/lineitem.parquet' ON o_orderkey = l_orderkey GROUP BY c_custkey, c_name "
           "ORDER BY revenue DESC LIMIT 1000",
           data, data, data);
  snprintf(cache, sizeof cache, "CACHE TABLE best AS %s", query);
  ours_run(s, cache, NULL, NULL);
  for (size_t run = 0; run <= runs; run++) {
    double computed = ours_run(s, query, NULL, NULL);
    hf_profile profile = {0};
    double read = ours_run(s, "SELECT * FROM best", NULL, &profile);
    if (profile.held_hits != 1 || profile.source_rows != 0) {
      bench_fail("reuse", "not answered from the held result");
    }
    if (run > 0) {
      measure_add(&m, read, computed);
    }
  }
  measure_print(&m);
}

/* Median time of a query that reads one held row. */
static double one_hit(hf_session *s, size_t runs) {
  double times[MEASURE_MOST_RUNS];
  ours_run(s, "SELECT * FROM tiny", NULL, NULL);
  for (size_t run = 0; run < runs; run++) {
    times[run] = ours_run(s, "SELECT * FROM tiny", NULL, NULL);
  }
  return measure_median(times, runs);
}

static void measure_hits(hf_session *s) {
  enum { RUNS = 31 };
  ours_run(s, "CACHE TABLE tiny AS SELECT 1 AS x", NULL, NULL);
  measure_print_limit("hit", "one held row, 1 entry", one_hit(s, RUNS), "ms", 5);
  for (int i = 0; i < MANY_ENTRIES; i++) {
    char cache[96];
    snprintf(cache, sizeof cache, "CACHE TABLE many_%d AS SELECT %d AS x", i, i);
    ours_run(s, cache, NULL, NULL);
  }
  measure_print_limit("hit", "one held row, 10,000 entries", one_hit(s, RUNS), "ms", 5);
  double start = measure_now_ms();
  hf_hold *holds = NULL;
  size_t count = 0;
  if (hf_session_holds(s, &holds, &count, NULL) != HF_OK || count < MANY_ENTRIES) {
    bench_fail("hit", "the listing is not whole");
  }
  hf_holds_free(holds);
  measure_print_value("hit", "listing 10,000 entries", measure_now_ms() - start, "ms");
}

static void measure_sorted(hf_session *s, const char *data) {
  char cache[1024];
  snprintf(cache, sizeof cache,
           "CACHE TABLE sorted AS SELECT * FROM '%s/lineitem.parquet' ORDER BY l_shipdate", data);
  ours_run(s, cache, NULL, NULL);
  hf_profile profile = {0};
  ours_run(
      s,
      "SELECT sum(l_extendedprice) FROM sorted WHERE l_shipdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-14'",
      NULL, &profile);
  double all = (double)(profile.held_blocks + profile.held_blocks_skipped);
  if (profile.held_hits != 1 || all == 0) {
    bench_fail("sorted", "not answered from the held result");
  }
  measure_print_limit("sorted", "blocks read for two weeks of seven years",
                      100 * (double)profile.held_blocks / all, "%", 5);
  ours_run(s, "UNCACHE TABLE sorted", NULL, NULL);
}

/* A result that is collected has no dictionaries: its blocks are the plain ones. */
static void measure_size(hf_session *s, const char *data) {
  char query[1024], cache[1100];
  snprintf(query, sizeof query, "SELECT * FROM '%s/lineitem.parquet'", data);
  snprintf(cache, sizeof cache, "CACHE TABLE coded AS %s", query);
  hf_profile profile = {0};
  ours_run(s, query, NULL, &profile);
  ours_run(s, cache, NULL, NULL);
  hf_hold *holds = NULL;
  size_t count = 0;
  if (hf_session_holds(s, &holds, &count, NULL) != HF_OK || count == 0) {
    bench_fail("size", "the listing is not whole");
  }
  measure_print_limit("size", "held lineitem beside plain blocks",
                      100 * (double)holds[count - 1].storage.bytes / (double)profile.result_bytes, "%", 70);
  hf_holds_free(holds);
  ours_run(s, "UNCACHE TABLE coded", NULL, NULL);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "reuse DATA_DIR RUNS THREADS");
  }
  hf_session *s = ours_open(argv[3], NULL, NULL);
  measure_reuse(s, argv[1], (size_t)strtoul(argv[2], NULL, 10));
  measure_sorted(s, argv[1]);
  measure_size(s, argv[1]);
  measure_hits(s);
  hf_session_close(s);
  return 0;
}

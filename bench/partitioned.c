/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A join of lineitem and orders with an aggregate by order, on two slots of one
 * thread each: over two held results that are dealt by the order's key, against
 * the same from Parquet, where both sides cross an exchange.
 * Usage: partitioned DATA_DIR RUNS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `%s` twice: the tables. */
static const char query[] =
    "SELECT count(*), sum(revenue) FROM (SELECT o_orderkey, o_orderdate, "
    "sum(l_extendedprice * (1 - l_discount)) AS revenue FROM %s JOIN %s ON l_orderkey = o_orderkey "
    "GROUP BY o_orderkey, o_orderdate)";

static void hold(hf_session *s, const char *name, const char *key, const char *dir) {
  char sql[1024];
  snprintf(sql, sizeof sql,
           "CACHE TABLE held_%s OPTIONS ('partitionBy' '%s', 'partitions' '8') AS "
           "SELECT * FROM read_parquet('%s/%s.parquet')",
           name, key, dir, name);
  ours_run(s, sql, NULL, NULL);
}

/* The figure says nothing when the sides of the join still move. */
static void check_plan(hf_session *s, const char *sql) {
  hf_error error = {0};
  hf_df *df = NULL;
  char *text = NULL;
  if (hf_session_sql(s, sql, &df, &error) != HF_OK || hf_df_explain(df, &text, &error) != HF_OK) {
    bench_fail(sql, error.message);
  }
  if (strstr(text, "no exchange") == NULL || strstr(text, "a partition each") != NULL) {
    bench_fail("an exchange is in the plan", text);
  }
  hf_text_free(text);
  hf_df_free(df);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    bench_fail("usage", "partitioned DATA_DIR RUNS");
  }
  size_t runs = (size_t)strtoul(argv[2], NULL, 10);
  hf_session *s = ours_open("2", "2", NULL);
  char files[2][512], over_held[1024], over_parquet[2048];
  measure m = {.group = "partitioned",
               .name = "join of two holds by their key, 2 slots × 1 thread",
               .rival = "the same from Parquet",
               .must = 0.7};
  hold(s, "lineitem", "l_orderkey", argv[1]);
  hold(s, "orders", "o_orderkey", argv[1]);
  snprintf(files[0], sizeof files[0], "read_parquet('%s/lineitem.parquet')", argv[1]);
  snprintf(files[1], sizeof files[1], "read_parquet('%s/orders.parquet')", argv[1]);
  snprintf(over_held, sizeof over_held, query, "held_lineitem", "held_orders");
  snprintf(over_parquet, sizeof over_parquet, query, files[0], files[1]);
  check_plan(s, over_held);
  for (size_t run = 0; run <= runs; run++) {
    hf_profile profile = {0};
    double theirs = ours_run(s, over_parquet, NULL, NULL);
    double ours = ours_run(s, over_held, NULL, &profile);
    if (profile.held_hits != 2 || profile.source_rows != 0 || profile.widest_tasks < 2) {
      bench_fail("partitioned", "not answered by tasks over the held results");
    }
    if (run > 0) { /* the first warms both up */
      measure_add(&m, ours, theirs);
    }
  }
  measure_print(&m);
  hf_session_close(s);
  return 0;
}

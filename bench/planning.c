/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time from a query's text to stages that can run: parsing, names, lowering, binding,
 * DuckDB's plan as JSON, reading it, cutting, binding each stage, splits; beside
 * DuckDB's own EXPLAIN of the same text. Every query is split into three tasks, and
 * runs, so that all of it is done. Usage: planning tpch|tpcds DATA_DIR RUNS THREADS
 */
#include "support/measure.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What planning must keep to, in milliseconds. */
#define MEAN_TPCH_MS 15
#define MEAN_TPCDS_MS 25
#define WORST_MS 100
/* Of all queries together, as many times as DuckDB's own EXPLAIN. */
#define OF_EXPLAIN 5.0
/* Stages a query, in the mean. */
#define STAGES_TPCH 7
#define STAGES_TPCDS 12

typedef struct planning_bench {
  bench_suite suite;
  rival rival;
  hf_session *session;
  size_t runs;
  uint64_t stages; /* of the query that ran last */
  char group[32];
} planning_bench;

static double explain_ms(planning_bench *b, const char *sql) {
  size_t size = strlen(sql) + sizeof "EXPLAIN ";
  char *text = malloc(size);
  if (text == NULL) {
    bench_fail("explain", "no memory");
  }
  snprintf(text, size, "EXPLAIN %s", sql);
  double ms = rival_run(&b->rival, text, NULL);
  free(text);
  return ms;
}

/* Parsing and names are done by hf_session_sql, which the profile does not count. */
static double plan_ms(planning_bench *b, const char *sql) {
  hf_df *df = NULL;
  hf_error error = {0};
  hf_profile profile = {0};
  struct ArrowArrayStream stream;
  double start = measure_now_ms();
  if (hf_session_sql(b->session, sql, &df, &error) != HF_OK) {
    bench_fail(sql, error.message);
  }
  double parse_ms = measure_now_ms() - start;
  if (hf_df_collect(df, &(hf_action_options){.profile = &profile}, &stream, &error) != HF_OK) {
    bench_fail(sql, error.message);
  }
  stream.release(&stream);
  hf_df_free(df);
  b->stages = profile.stages_run;
  return parse_ms + (double)profile.planning_us / 1000;
}

static void measure_query(planning_bench *b, size_t number, measure *m) {
  char *sql = bench_suite_query(&b->suite, number);
  explain_ms(b, sql); /* footers are read, the session has its engine */
  plan_ms(b, sql);
  for (size_t run = 0; run < b->runs; run++) {
    double theirs = explain_ms(b, sql);
    measure_add(m, plan_ms(b, sql), theirs);
  }
  measure_print(m);
  duckdb_free(sql);
}

static void measure_suite(planning_bench *b, double mean_must, double stages_must) {
  double sum = 0, their_sum = 0, worst = 0, stages = 0;
  for (size_t q = 1; q <= b->suite.n_queries; q++) {
    char name[24];
    snprintf(name, sizeof name, "q%02zu", q);
    measure m = {.group = b->group, .name = name, .rival = "EXPLAIN"};
    measure_query(b, q, &m);
    double ms = measure_median(m.ours, m.runs);
    sum += ms;
    their_sum += measure_median(m.theirs, m.runs);
    worst = ms > worst ? ms : worst;
    stages += (double)b->stages;
  }
  double n = (double)b->suite.n_queries;
  measure mean = {.group = b->group, .name = "mean", .rival = "EXPLAIN", .must = OF_EXPLAIN};
  measure_add(&mean, sum / n, their_sum / n);
  measure_print(&mean);
  measure_print_limit(b->group, "mean", sum / n, "ms", mean_must);
  measure_print_limit(b->group, "worst", worst, "ms", WORST_MS);
  measure_print_limit(b->group, "stages a query", stages / n, "stages", stages_must);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    bench_fail("usage", "planning tpch|tpcds DATA_DIR RUNS THREADS");
  }
  bool is_tpch = strcmp(argv[1], "tpch") == 0;
  planning_bench b = {.runs = strtoul(argv[3], NULL, 10)};
  rival_open(&b.rival, (unsigned)strtoul(argv[4], NULL, 10));
  bench_suite_open(&b.suite, &b.rival, argv[1], argv[2], is_tpch ? "1" : "0.1");
  b.session = ours_open(argv[4], argv[4], NULL);
  ours_run(b.session, "SET tasks = 3", NULL, NULL);
  snprintf(b.group, sizeof b.group, "planning %s", argv[1]);
  for (size_t i = 0; i < b.suite.n_tables; i++) {
    rival_run(&b.rival, bench_suite_view(&b.suite, i), NULL);
    ours_run(b.session, bench_suite_view(&b.suite, i), NULL, NULL);
  }
  measure_suite(&b, is_tpch ? MEAN_TPCH_MS : MEAN_TPCDS_MS, is_tpch ? STAGES_TPCH : STAGES_TPCDS);
  hf_session_close(b.session);
  bench_suite_close(&b.suite);
  rival_close(&b.rival);
  return 0;
}

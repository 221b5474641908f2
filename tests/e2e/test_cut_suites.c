/* SPDX-License-Identifier: Apache-2.0 */
/* TPC-H and TPC-DS cut into stages of three tasks give the rows of single-node DuckDB. */
#include "support/cut_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 3, MOST_QUERIES = 200 };

static void must_run(oracle *o, const char *sql) {
  char *error = oracle_run(o, sql);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

static bool run_query(cut_case *c, const char *name, const char *sql, uint64_t broadcast_bytes,
                      cut_outcome *out) {
  cut_case_run(c, sql, TASKS, broadcast_bytes, out);
  bool is_right = out->problem[0] == '\0';
  if (!is_right) {
    print_error("%s: %s\n", name, out->problem);
  }
  if (out->why[0] != '\0' || !out->distributed) {
    print_message("%s: %s%s%s\n", name, out->distributed ? "partly one task" : "not distributed",
                  out->why[0] == '\0' ? "" : ": ", out->why);
  }
  return is_right;
}

static void check_suite(const char *name, const char *generate, uint64_t broadcast_bytes, size_t least) {
  oracle *o = oracle_open();
  cut_case c;
  oracle_rows queries;
  char sql[100];
  size_t right = 0, distributed = 0, stages = 0, most = 0;
  snprintf(sql, sizeof sql, "LOAD %s", name);
  must_run(o, sql);
  must_run(o, generate);
  cut_case_open(&c, o);
  snprintf(sql, sizeof sql, "SELECT query_nr::VARCHAR, query FROM %s_queries() ORDER BY query_nr", name);
  assert_null(oracle_query(o, sql, MOST_QUERIES, &queries));
  for (size_t i = 0; i < queries.n_rows; i++) {
    cut_outcome out;
    right += run_query(&c, queries.cells[2 * i].text, queries.cells[2 * i + 1].text, broadcast_bytes, &out);
    distributed += out.distributed;
    stages += out.n_stages;
    most = out.n_stages > most ? out.n_stages : most;
  }
  size_t n = queries.n_rows;
  print_message("%s: %zu of %zu the same, %zu distributed; stages: mean %.1f, most %zu\n", name, right, n,
                distributed, (double)stages / (double)n, most);
  oracle_rows_free(&queries);
  cut_case_close(&c);
  oracle_close(o);
  assert_int_equal(right, n);
  assert_true(distributed >= least);
}

static void tpch_exchanged_is_the_same(void **state) {
  (void)state;
  check_suite("tpch", "CALL dbgen(sf = 0.01)", 0, 22);
}

static void tpch_broadcast_is_the_same(void **state) {
  (void)state;
  check_suite("tpch", "CALL dbgen(sf = 0.01)", 200000, 22);
}

static void tpcds_exchanged_is_the_same(void **state) {
  (void)state;
  check_suite("tpcds", "CALL dsdgen(sf = 0.01)", 0, 90);
}

static void tpcds_broadcast_is_the_same(void **state) {
  (void)state;
  check_suite("tpcds", "CALL dsdgen(sf = 0.01)", 200000, 90);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tpch_exchanged_is_the_same),
      cmocka_unit_test(tpch_broadcast_is_the_same),
      cmocka_unit_test(tpcds_exchanged_is_the_same),
      cmocka_unit_test(tpcds_broadcast_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

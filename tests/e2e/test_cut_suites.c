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

typedef struct totals {
  uint64_t broadcast_bytes;
  size_t right, distributed, stages, most;
} totals;

static void add(totals *to, bool is_right, const cut_outcome *out) {
  to->right += is_right;
  to->distributed += out->distributed;
  to->stages += out->n_stages;
  to->most = out->n_stages > to->most ? out->n_stages : to->most;
}

/* Each query twice: no side of a join is broadcast, then small ones are. */
static void check_suite(const char *name, const char *generate, size_t least) {
  oracle *o = oracle_open();
  cut_case c;
  oracle_rows queries;
  char sql[100];
  totals all[] = {{.broadcast_bytes = 0}, {.broadcast_bytes = 200000}};
  snprintf(sql, sizeof sql, "LOAD %s", name);
  must_run(o, sql);
  must_run(o, generate);
  cut_case_open(&c, o);
  snprintf(sql, sizeof sql, "SELECT query_nr::VARCHAR, query FROM %s_queries() ORDER BY query_nr", name);
  assert_null(oracle_query(o, sql, MOST_QUERIES, &queries));
  size_t n = queries.n_rows;
  for (size_t i = 0; i < n; i++) {
    for (size_t way = 0; way < 2; way++) {
      cut_outcome out;
      bool is_right = run_query(&c, queries.cells[2 * i].text, queries.cells[2 * i + 1].text,
                                all[way].broadcast_bytes, &out);
      add(&all[way], is_right, &out);
    }
  }
  for (size_t way = 0; way < 2; way++) {
    print_message(
        "%s, broadcast below %llu bytes: %zu of %zu the same, %zu distributed; stages: mean %.1f, most %zu\n",
        name, (unsigned long long)all[way].broadcast_bytes, all[way].right, n, all[way].distributed,
        (double)all[way].stages / (double)n, all[way].most);
  }
  oracle_rows_free(&queries);
  cut_case_close(&c);
  oracle_close(o);
  for (size_t way = 0; way < 2; way++) {
    assert_int_equal(all[way].right, n);
    /* what each task computes by itself is in no stage: of few rows the rest may be one task's */
    assert_true(all[way].distributed + 2 * way >= least);
  }
}

static void tpch_cut_is_the_same(void **state) {
  (void)state;
  check_suite("tpch", "CALL dbgen(sf = 0.01)", 22);
}

static void tpcds_cut_is_the_same(void **state) {
  (void)state;
  check_suite("tpcds", "CALL dsdgen(sf = 0.01)", 98);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tpch_cut_is_the_same),
      cmocka_unit_test(tpcds_cut_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Filters over held results in order: few of their blocks are read, and never one too few. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

enum { ROWS = 3000000, FEW = ROWS / 20 };

static const char FILL[] =
    "CACHE TABLE t AS SELECT i AS k, 'n' || lpad(i::VARCHAR, 8, '0') AS name, i / 4 AS q, "
    "CASE WHEN i < 2900000 THEN i % 9 END AS late, DATE '2000-01-01' + (i // 1000)::INTEGER AS d, "
    "(i - 1500000)::DECIMAL(12, 2) AS x FROM range(3000000) r(i) ORDER BY i";

typedef struct pruned_query {
  const char *sql, *rows;
  uint64_t most_rows; /* read of the held result */
} pruned_query;

static const pruned_query queries[] = {
    {"SELECT count(*), min(k), max(k) FROM t WHERE k = 77777", "1|77777|77777\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE 77777 = k AND late >= 0", "1|77777|77777\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE k >= 2999990", "10|2999990|2999999\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE 5 > k", "5|0|4\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE k BETWEEN 100 AND 109", "10|100|109\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE name = 'n00077777'", "1|77777|77777\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE name < 'n00000003'", "3|0|2\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE q = 10.5", "1|42|42\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE d = DATE '2000-01-02'", "1000|1000|1999\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE x <= -1499999.5", "1|0|0\n", FEW},
    {"SELECT count(*), min(k), max(k) FROM t WHERE late IS NULL", "100000|2900000|2999999\n", ROWS / 10},
    {"SELECT count(*), min(k), max(k) FROM t WHERE k = -1", "0|NULL|NULL\n", 0},
    {"SELECT count(*), min(k), max(k) FROM t WHERE k = 5 OR late = 3 AND k < 9", "2|3|5\n", ROWS},
    {"SELECT count(*) FROM t a JOIN t b ON a.k = b.k + 1 WHERE a.k = 77", "1\n", 2 * (uint64_t)ROWS},
    {"SELECT count(*) FROM (SELECT k FROM t WHERE k < 3 UNION ALL SELECT k FROM t WHERE k >= 2999999)", "4\n",
     2 * (uint64_t)ROWS},
    {"SELECT count(*) FROM (SELECT k, row_number() OVER (ORDER BY k) AS n FROM t) WHERE n = 77777 AND k = 77776",
     "1\n", ROWS},
    {"SELECT count(*) FROM (SELECT * FROM t LIMIT 10) WHERE k >= 5", "5\n", ROWS},
    {"SELECT count(*) FROM t WHERE k < 10 AND k < (SELECT 5)", "5\n", FEW},
};

static void filter_reads_few_blocks_and_finds_all_rows(void **state) {
  api_case *c = *state;
  api_run(c, FILL);
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    hf_df *query = api_sql(c, queries[i].sql);
    hf_profile profile = api_expect_df(c, query, queries[i].rows);
    assert_true(profile.held_hits > 0);
    uint64_t blocks = profile.held_blocks + profile.held_blocks_skipped;
    if (queries[i].most_rows <= FEW && profile.held_blocks * 20 > blocks) {
      fail_msg("%s read %llu of %llu blocks", queries[i].sql, (unsigned long long)profile.held_blocks,
               (unsigned long long)blocks);
    }
    if (profile.held_rows > queries[i].most_rows) {
      fail_msg("%s read %llu rows", queries[i].sql, (unsigned long long)profile.held_rows);
    }
    hf_df_free(query);
  }
}

static void filter_of_the_moment_reads_all_blocks(void **state) {
  api_case *c = *state;
  api_run(
      c,
      "CACHE TABLE u AS SELECT now() + to_seconds(i - 1500000) AS moment, i AS k FROM range(3000000) r(i) ORDER BY i");
  hf_df *query = api_sql(c, "SELECT (count(*) > 0)::BIGINT FROM u WHERE moment < now()");
  hf_profile profile = api_expect_df(c, query, "1\n");
  assert_int_equal(profile.held_rows, ROWS);
  hf_df_free(query);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(filter_reads_few_blocks_and_finds_all_rows, api_case_open,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(filter_reads_few_blocks_and_finds_all_rows, api_case_open_two_slots,
                                      api_case_close),
      cmocka_unit_test_setup_teardown(filter_of_the_moment_reads_all_blocks, api_case_open, api_case_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

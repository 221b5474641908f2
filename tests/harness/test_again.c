/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that are cut again by what their first stages gave: what changes then, and that no answer does. */
#include "rig.h"

/* 9,000 rows with 900 keys; 6,000 of which few stay behind a filter that is guessed to leave many; NULLs among the keys. */
static int tables_open(void **state) {
  rig_open(state);
  rig_table(*state, "t",
            "SELECT range AS a, CASE WHEN range % 50 = 0 THEN NULL ELSE range % 900 END AS b, "
            "DATE '2024-01-01' + (range % 300)::INTEGER AS d FROM range(9000)");
  rig_table(*state, "u",
            "SELECT CASE WHEN range % 60 = 7 THEN NULL ELSE range % 1100 END AS b, range AS c, "
            "DATE '2024-01-01' + (range % 400)::INTEGER AS d FROM range(6000)");
  rig_table(*state, "nobody", "SELECT 5 AS b, 1 AS c WHERE false");
  return 0;
}

/* Rows that its stages took over from each other, once each. */
static uint64_t moved(const hf_harness_report *r) {
  uint64_t rows = 0;
  for (size_t i = 0; i < r->n_stages; i++) {
    for (size_t e = 0; e < r->stages[i].n_edges; e++) {
      rows += r->stages[i].edges[e].written;
    }
  }
  return rows;
}

static const hf_harness_config once = {.tasks = 3, .slots = 2, .broadcast = HF_HARNESS_BROADCAST_NEVER};
static const hf_harness_config again = {
    .tasks = 3, .slots = 2, .broadcast = HF_HARNESS_BROADCAST_NEVER, .again = true};

static const char few_keys[] = "SELECT count(*), sum(t.a) FROM t JOIN u ON t.b = u.b WHERE u.c % 1000 = 9";

static void rows_without_a_partner_are_left_out(void **state) {
  rig *r = *state;
  hf_harness_report first = {0}, second = {0};
  rig_same(r, few_keys, &once, &first);
  rig_same(r, few_keys, &again, &second);
  assert_int_equal(first.recut, 0);
  assert_true(second.recut >= 2); /* the side that waited, and the join */
  assert_int_equal(second.n_stages, first.n_stages);
  assert_true(moved(&first) > 8800);
  assert_true(moved(&second) < 200);
  hf_harness_report_reset(&first);
  hf_harness_report_reset(&second);
}

static void query_without_a_join_is_cut_once(void **state) {
  rig *r = *state;
  static const char *const queries[] = {"SELECT b, count(*) FROM t GROUP BY b",
                                        "SELECT a FROM t ORDER BY a LIMIT 7", "SELECT 1"};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    hf_harness_report report = {0};
    rig_same(r, queries[i], &again, &report);
    assert_int_equal(report.recut, 0);
    hf_harness_report_reset(&report);
  }
}

/* Rows that find no partner get out of some joins, and NULL is no key. */
static void joins_of_every_kind_stay_right(void **state) {
  rig *r = *state;
  static const char *const joins[] = {
      "t JOIN u ON t.b = u.b AND u.c % 1000 = 9",
      "t LEFT JOIN (SELECT * FROM u WHERE c % 1000 = 9) u ON t.b = u.b",
      "t RIGHT JOIN (SELECT * FROM u WHERE c % 1000 = 9) u ON t.b = u.b",
      "t FULL JOIN (SELECT * FROM u WHERE c % 1000 = 9) u ON t.b = u.b",
      "(SELECT * FROM t WHERE a % 1000 = 9) t LEFT JOIN u ON t.b = u.b",
      "(SELECT * FROM t WHERE a % 1000 = 9) t RIGHT JOIN u ON t.b = u.b",
      "(SELECT * FROM t WHERE a % 1000 = 9) t JOIN u ON t.d = u.d AND t.b <= u.b",
      "t JOIN u ON t.b IS NOT DISTINCT FROM u.b AND u.c % 1000 < 9",
      "t JOIN nobody u ON t.b = u.b",
      "t LEFT JOIN nobody u ON t.b = u.b",
      "(SELECT * FROM t WHERE a < 0) t FULL JOIN u ON t.b = u.b",
  };
  static const char *const filters[] = {
      "t.b IN (SELECT b FROM u WHERE c % 1000 = 9)",
      "t.b NOT IN (SELECT b FROM u WHERE c % 1000 = 9 AND b IS NOT NULL)",
      "t.b NOT IN (SELECT b FROM u WHERE c % 60 = 7)", /* NULLs alone */
      "NOT EXISTS (FROM u WHERE u.b = t.b AND u.c % 10 = 3)",
      "EXISTS (FROM u WHERE u.d = t.d AND u.c > 5990)",
      "(t.b IN (SELECT b FROM u WHERE c % 1000 = 9)) IS NULL",
  };
  char sql[400];
  uint64_t recut = 0;
  for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
    hf_harness_report report = {0};
    snprintf(sql, sizeof sql, "SELECT count(*), count(t.b), count(u.b), sum(t.b * 7 + u.c) FROM %s",
             joins[i]);
    rig_same(r, sql, &again, &report);
    recut += report.recut;
    hf_harness_report_reset(&report);
  }
  for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
    hf_harness_report report = {0};
    snprintf(sql, sizeof sql, "SELECT count(*), sum(a) FROM t WHERE %s", filters[i]);
    rig_same(r, sql, &again, &report);
    hf_harness_report_reset(&report);
  }
  assert_true(recut >= 6);
}

/* What is known of a stage is of all its tasks, whatever way they ran. */
static void other_ways_of_running_change_nothing(void **state) {
  rig *r = *state;
  const hf_harness_config ways[] = {
      {.tasks = 3, .slots = 3, .broadcast = HF_HARNESS_BROADCAST_NEVER, .again = true, .hash_zero = true},
      {.tasks = 2, .slots = 2, .broadcast = HF_HARNESS_BROADCAST_NEVER, .again = true, .kill_task = 2},
      {.tasks = 2, .slots = 2, .broadcast = HF_HARNESS_BROADCAST_NEVER, .again = true, .batch_rows = 1},
      {.tasks = 5,
       .slots = 2,
       .broadcast = HF_HARNESS_BROADCAST_NEVER,
       .again = true,
       .order_seed = 7,
       .partitions = 11},
      {.tasks = 2,
       .slots = 2,
       .broadcast = HF_HARNESS_BROADCAST_NEVER,
       .again = true,
       .hold = HF_HARNESS_HOLD_HELD},
  };
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    hf_harness_report report = {0};
    rig_same(r, few_keys, &ways[i], &report);
    assert_true(report.recut > 0);
    hf_harness_report_reset(&report);
  }
  /* Streaming, columns are not watched: rows and bytes are known. */
  const hf_harness_config streaming = {.tasks = 2,
                                       .slots = 2,
                                       .broadcast = HF_HARNESS_BROADCAST_NEVER,
                                       .again = true,
                                       .exchange = HF_HARNESS_STREAMING};
  hf_harness_report report = {0};
  rig_same(r, few_keys, &streaming, &report);
  assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
  hf_harness_report_reset(&report);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, tables_open, rig_close)

int main(void) {
  const struct CMUnitTest cases[] = {
      CASE(rows_without_a_partner_are_left_out),
      CASE(query_without_a_join_is_cut_once),
      CASE(joins_of_every_kind_stay_right),
      CASE(other_ways_of_running_change_nothing),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

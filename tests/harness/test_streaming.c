/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming: all stages at once, through bounded channels. What is special to it: graphs that
 * would come to a standstill, early ends, inputs that are read again, a lost task.
 */
#include "rig.h"

#include <string.h>

/* Channels that hold a frame or two. */
static const hf_harness_config small = {
    .tasks = 3, .slots = 3, .exchange = HF_HARNESS_STREAMING, .channel_bytes = 2000};
/* The same, and both sides of every join are dealt: more edges. */
static const hf_harness_config dealt = {.tasks = 3,
                                        .slots = 3,
                                        .exchange = HF_HARNESS_STREAMING,
                                        .channel_bytes = 2000,
                                        .broadcast = HF_HARNESS_BROADCAST_NEVER};
/* Channels as they are, whose rows are hashed again. */
static const hf_harness_config plain = {.tasks = 3, .slots = 3, .exchange = HF_HARNESS_STREAMING};

static void make_tables(rig *r) {
  rig_table(r, "t",
            "SELECT range AS a, range % 100 AS k, (range * 7919) % 10007 AS v, "
            "'text ' || range AS s FROM range(20000)");
  rig_table(r, "u", "SELECT range AS k, 'name ' || range AS n FROM range(150)");
}

/* Sums over the edges of a report. */
typedef struct edges {
  size_t n, spooled, cut_short;
} edges;

static edges count_edges(const hf_harness_report *report) {
  edges all = {0};
  for (size_t s = 0; s < report->n_stages; s++) {
    for (size_t e = 0; e < report->stages[s].n_edges; e++) {
      all.n++;
      all.spooled += report->stages[s].edges[e].is_spooled ? 1 : 0;
      all.cut_short += report->stages[s].edges[e].is_cut_short ? 1 : 0;
    }
  }
  return all;
}

static edges run(rig *r, const char *sql, const hf_harness_config *how) {
  hf_harness_report report = {0};
  rig_same(r, sql, how, &report);
  if (report.result != HF_HARNESS_DISTRIBUTED) {
    fail_msg("%s: not distributed (%d): %s", sql, (int)report.result, report.reason);
  }
  assert_false(report.ran_blocking);
  assert_int_equal(report.restarts, 0);
  edges found = count_edges(&report);
  assert_true(found.n > 0);
  hf_harness_report_reset(&report);
  return found;
}

static void streaming_query_of_each_shape_is_as_single_node(void **state) {
  static const char *const queries[] = {
      "SELECT k, count(*), sum(v), min(s) FROM t GROUP BY k",
      "SELECT count(*) FROM t WHERE v % 3 = 0",
      "SELECT n, sum(v) FROM t JOIN u USING (k) GROUP BY n ORDER BY 2 DESC, 1 LIMIT 7",
      "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, a) FROM t WHERE a < 3000",
      "SELECT a, sum(v) OVER (PARTITION BY k) FROM t WHERE a % 3 = 0",
      "SELECT DISTINCT v % 50 FROM t",
      "SELECT k FROM t WHERE v < 20 UNION ALL SELECT k FROM u UNION ALL SELECT v FROM t WHERE k = 3",
      "SELECT v FROM t EXCEPT SELECT v FROM t WHERE k < 90",
      "SELECT u.k, count(t.a) FROM u LEFT JOIN t ON t.v = u.k GROUP BY 1",
      "SELECT k, string_agg(s, ',' ORDER BY a) FROM t WHERE a % 11 = 0 GROUP BY k",
      "SELECT * FROM t WHERE k = 5 ORDER BY v DESC, a",
  };
  rig *r = *state;
  make_tables(r);
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    run(r, queries[i], &small);
    run(r, queries[i], &dealt);
    run(r, queries[i], &plain);
  }
}

/* A stage that two inputs read, one of which is upstream of the other: with bounds alone all would wait. */
static void streaming_diamond_goes_through_the_file(void **state) {
  rig *r = *state;
  make_tables(r);
  edges found = run(r,
                    "WITH c AS MATERIALIZED (SELECT k, v, s FROM t WHERE a % 2 = 0) "
                    "SELECT x.k, count(*), max(x.s), sum(y.n) FROM c x "
                    "JOIN (SELECT v, count(*) AS n FROM c GROUP BY v) y ON x.v = y.v GROUP BY x.k",
                    &dealt);
  assert_true(found.spooled > 0);
}

static void streaming_self_join_ends(void **state) {
  rig *r = *state;
  make_tables(r);
  run(r, "SELECT x.k, count(*) FROM t x JOIN t y ON x.v = y.a WHERE y.k < 50 GROUP BY x.k", &dealt);
  run(r,
      "SELECT k, count(*) FROM t WHERE v > (SELECT avg(i.v) FROM t i WHERE i.k = t.k) GROUP BY k ORDER BY k",
      &dealt);
}

static void streaming_limit_ends_the_stages_before_it(void **state) {
  rig *r = *state;
  make_tables(r);
  edges found = run(r, "SELECT count(*) FROM (SELECT a, s FROM t WHERE v >= 0 LIMIT 10)", &small);
  assert_true(found.cut_short > 0);
}

/* A join whose other side is empty reads nothing of the first. */
static void streaming_input_that_nobody_reads_does_not_hold_its_writers(void **state) {
  rig *r = *state;
  make_tables(r);
  edges found =
      run(r, "SELECT count(*), min(x.s) FROM t x JOIN (SELECT * FROM t WHERE v < 0) y USING (a)", &dealt);
  assert_true(found.cut_short > 0);
}

/* Each step of the recursion may read the input again. */
static void streaming_input_of_a_recursion_is_read_again(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  make_tables(r);
  rig_same(r,
           "WITH RECURSIVE e AS (SELECT k AS f, (k + 1) % 100 AS g, count(*) AS n FROM t GROUP BY k), "
           "w(x, depth) AS (SELECT 5::BIGINT, 0 UNION ALL SELECT e.g, depth + 1 FROM w JOIN e ON e.f = w.x "
           "WHERE depth < 20) SELECT * FROM w",
           &small, &report);
  hf_harness_report_reset(&report);
}

static void streaming_task_that_is_lost_makes_the_job_run_again(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_harness_config how = plain;
  make_tables(r);
  how.kill_task = 2;
  rig_same(r, "SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k", &how, &report);
  assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
  assert_true(report.killed >= 1);
  assert_int_equal(report.restarts, 1);
  hf_harness_report_reset(&report);
}

static void streaming_with_fewer_slots_than_tasks_runs_blocking(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  hf_harness_config how = plain;
  make_tables(r);
  how.slots = 2;
  rig_same(r, "SELECT k, count(*) FROM t GROUP BY k", &how, &report);
  assert_true(report.ran_blocking);
  hf_harness_report_reset(&report);
}

/* The error of the task that failed, not of those that it ended. */
static void streaming_error_of_a_task_ends_all(void **state) {
  rig *r = *state;
  make_tables(r);
  rig_fails(r, "SELECT k, sum(CASE WHEN a = 17000 THEN CAST(s AS INTEGER) ELSE 1 END) FROM t GROUP BY k",
            &small, HF_E_CAST);
  rig_fails(r, "SELECT k, CAST(max(s) AS INTEGER) FROM t GROUP BY k", &dealt, HF_E_CAST);
}

/* Three tasks would compute for hours, and look at no channel meanwhile; another three meet a text that is no number, but
 * not before they have computed for a while themselves. */
static void streaming_error_of_a_task_ends_those_that_compute(void **state) {
  static const char *const sql =
      "SELECT count(*) FROM t x, t y, t z WHERE x.a + y.a + z.a = -1 UNION ALL "
      "SELECT sum(CAST(x.s AS INTEGER)) FROM t x, (SELECT v FROM t WHERE k < 30) y WHERE x.v * y.v = 0";
  rig *r = *state;
  make_tables(r);
  rig_fails(r, sql, &plain, HF_E_CAST);
  rig_fails(r, sql, &small, HF_E_CAST);
  run(r, "SELECT count(*), sum(v) FROM t GROUP BY k", &plain); /* on the same instances */
}

static void streaming_tasks_in_any_order_give_the_same(void **state) {
  rig *r = *state;
  hf_harness_config how = small;
  make_tables(r);
  how.tasks = how.slots = 5;
  how.partitions = 11;
  for (how.order_seed = 1; how.order_seed <= 5; how.order_seed++) {
    run(r, "SELECT n, sum(v), count(DISTINCT a) FROM t JOIN u USING (k) GROUP BY n", &how);
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(streaming_query_of_each_shape_is_as_single_node),
      CASE(streaming_diamond_goes_through_the_file),
      CASE(streaming_self_join_ends),
      CASE(streaming_limit_ends_the_stages_before_it),
      CASE(streaming_input_that_nobody_reads_does_not_hold_its_writers),
      CASE(streaming_input_of_a_recursion_is_read_again),
      CASE(streaming_task_that_is_lost_makes_the_job_run_again),
      CASE(streaming_with_fewer_slots_than_tasks_runs_blocking),
      CASE(streaming_error_of_a_task_ends_all),
      CASE(streaming_error_of_a_task_ends_those_that_compute),
      CASE(streaming_tasks_in_any_order_give_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Each overlay does what it says, and changes no answer. */
#include "rig.h"

static const char *const queries[] = {
    "SELECT b, count(*), sum(a), avg(a), count(DISTINCT c) FROM t GROUP BY b",
    "SELECT t.a, u.d FROM t JOIN u ON t.b = u.b WHERE t.a % 3 = 0",
    "SELECT t.b, count(u.d) FROM t LEFT JOIN u USING (b) GROUP BY ALL ORDER BY ALL",
    "SELECT a, b FROM t ORDER BY b DESC, a LIMIT 50",
    "SELECT b, a, sum(a) OVER (PARTITION BY b ORDER BY a) FROM t",
    "SELECT b FROM t UNION SELECT d FROM u",
    "WITH x AS (SELECT b, max(a) AS m FROM t GROUP BY b) SELECT count(*) FROM t, x WHERE t.b = x.b AND t.a > x.m - 10",
    "SELECT a FROM t WHERE b NOT IN (SELECT b FROM u WHERE d < 20)",
    "SELECT a FROM t LIMIT 10",
};
enum { N_QUERIES = sizeof queries / sizeof queries[0] };

static int tables_open(void **state) {
  rig_open(state);
  rig_table(*state, "t", "SELECT range AS a, range % 97 AS b, 'x' || range % 31 AS c FROM range(9000)");
  rig_table(*state, "u", "SELECT range % 120 AS b, range AS d FROM range(6000)");
  return 0;
}

static const hf_harness_config *config_of(const char *name) {
  const hf_harness_overlay *overlay = hf_harness_overlay_named(name);
  assert_non_null(overlay);
  return &overlay->config;
}

static void overlay_of_every_name_changes_no_answer(void **state) {
  rig *r = *state;
  size_t n = 0;
  const hf_harness_overlay *overlays = hf_harness_overlays(&n);
  assert_true(n >= 15);
  for (size_t i = 0; i < n; i++) {
    assert_ptr_equal(hf_harness_overlay_named(overlays[i].name), &overlays[i]);
    for (size_t q = 0; q < N_QUERIES; q++) {
      hf_harness_report report = {0};
      rig_same(r, queries[q], &overlays[i].config, &report);
      bool is_cut = report.result == HF_HARNESS_DISTRIBUTED ||
                    (overlays[i].config.tasks == 1 && report.result == HF_HARNESS_NOT_SPREAD);
      if (!is_cut) {
        fail_msg("%s: %s: %d %s", overlays[i].name, queries[q], (int)report.result, report.reason);
      }
      hf_harness_report_reset(&report);
    }
  }
  assert_null(hf_harness_overlay_named("nonsense"));
  assert_null(hf_harness_overlay_named(NULL));
}

static void tasks_of_a_stage_are_as_many_as_asked_for(void **state) {
  rig *r = *state;
  for (uint32_t tasks = 1; tasks <= 7; tasks += 3) {
    const hf_harness_config how = {.tasks = tasks, .slots = 2};
    hf_harness_report report = {0};
    rig_same(r, queries[0], &how, &report);
    assert_int_equal(report.n_stages > 1 ? report.stages[0].tasks : 0, tasks);
    for (uint32_t t = 0; t < tasks; t++) {
      assert_true(report.stages[0].task_rows[t] > 0);
    }
    hf_harness_report_reset(&report);
  }
}

static void edges_tell_what_was_written_and_given(void **state) {
  rig *r = *state;
  const hf_harness_config how = {.tasks = 3, .slots = 3, .broadcast = HF_HARNESS_BROADCAST_NEVER};
  hf_harness_report report = {0};
  size_t n_edges = 0, n_dealt = 0;
  rig_same(r, queries[1], &how, &report);
  for (size_t i = 0; i < report.n_stages; i++) {
    for (size_t e = 0; e < report.stages[i].n_edges; e++) {
      const hf_harness_edge *edge = &report.stages[i].edges[e];
      bool is_all = strcmp(edge->share, "all") == 0;
      assert_true(edge->from < i);
      assert_int_equal(edge->delivered, edge->written * (is_all ? report.stages[i].tasks : 1));
      n_dealt += strcmp(edge->share, "partition") == 0 ? 1 : 0;
      n_edges++;
    }
  }
  assert_true(n_edges >= 2);
  assert_int_equal(n_dealt, 2); /* both sides of the join */
  hf_harness_report_reset(&report);
}

static void hash_zero_leaves_one_task_of_a_join_with_rows(void **state) {
  rig *r = *state;
  hf_harness_config how = *config_of("hash_zero");
  how.broadcast = HF_HARNESS_BROADCAST_NEVER;
  hf_harness_report report = {0};
  rig_same(r, queries[1], &how, &report);
  const hf_harness_stage *last = &report.stages[report.n_stages - 1];
  while (last->tasks == 1 && last > report.stages) {
    last--; /* a gather */
  }
  assert_int_equal(last->tasks, 3);
  assert_true(last->task_rows[0] > 0);
  assert_int_equal(last->task_rows[1] + last->task_rows[2], 0);
  hf_harness_report_reset(&report);
}

static void broadcast_overlays_give_other_graphs(void **state) {
  rig *r = *state;
  hf_harness_report always = {0}, never = {0};
  rig_same(r, queries[1], config_of("broadcast_always"), &always);
  rig_same(r, queries[1], config_of("broadcast_never"), &never);
  assert_true(always.n_stages < never.n_stages);
  hf_harness_report_reset(&always);
  hf_harness_report_reset(&never);
}

static void killed_tasks_run_again_in_every_stage(void **state) {
  rig *r = *state;
  for (uint32_t tasks = 2; tasks <= 3; tasks++) {
    const hf_harness_config how = {.tasks = tasks, .slots = 2, .kill_task = 2};
    hf_harness_report report = {0};
    rig_same(r, queries[2], &how, &report);
    assert_int_equal(report.killed, report.n_stages);
    assert_int_equal(report.restarts, 0);
    hf_harness_report_reset(&report);
  }
}

static void seeds_of_an_order_change_no_answer(void **state) {
  rig *r = *state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    const hf_harness_config how = {.tasks = 5, .slots = 1, .order_seed = seed};
    rig_distributed(r, queries[6], &how);
    rig_distributed(r, queries[3], &how);
  }
}

static void partitions_need_not_be_as_many_as_tasks(void **state) {
  rig *r = *state;
  static const uint32_t partitions[] = {2, 3, 8, 64};
  for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
    const hf_harness_config how = {
        .tasks = 3, .slots = 3, .partitions = partitions[i], .broadcast = HF_HARNESS_BROADCAST_NEVER};
    for (size_t q = 0; q < N_QUERIES; q++) {
      rig_distributed(r, queries[q], &how);
    }
  }
}

static uint32_t draw(uint64_t *seed, uint32_t n) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33) % n;
}

static void ways_drawn_together_change_no_answer(void **state) {
  rig *r = *state;
  uint64_t seed = 20261129;
  for (int i = 0; i < 40; i++) {
    const hf_harness_config how = {.tasks = 2 + draw(&seed, 4),
                                   .slots = 1 + draw(&seed, 5),
                                   .partitions = draw(&seed, 2) * draw(&seed, 12),
                                   .batch_rows = draw(&seed, 4) == 0,
                                   .exchange = (hf_harness_exchange)draw(&seed, 2),
                                   .channel_bytes = draw(&seed, 2) * 4096,
                                   .order_seed = draw(&seed, 3),
                                   .kill_task = draw(&seed, 4),
                                   .hash_zero = draw(&seed, 4) == 0,
                                   .broadcast = (hf_harness_broadcast)draw(&seed, 3),
                                   .hold = (hf_harness_hold)draw(&seed, 3),
                                   .fresh_instances = draw(&seed, 6) == 0,
                                   .again = draw(&seed, 3) == 0};
    hf_harness_report report = {0};
    rig_same(r, queries[draw(&seed, N_QUERIES)], &how, &report);
    assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
    assert_true(how.kill_task == 0 || report.killed > 0);
    assert_int_equal(report.ran_blocking, how.exchange == HF_HARNESS_STREAMING && how.slots < how.tasks);
    hf_harness_report_reset(&report);
  }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, tables_open, rig_close)

int main(void) {
  const struct CMUnitTest cases[] = {
      CASE(overlay_of_every_name_changes_no_answer), CASE(tasks_of_a_stage_are_as_many_as_asked_for),
      CASE(edges_tell_what_was_written_and_given),   CASE(hash_zero_leaves_one_task_of_a_join_with_rows),
      CASE(broadcast_overlays_give_other_graphs),    CASE(killed_tasks_run_again_in_every_stage),
      CASE(seeds_of_an_order_change_no_answer),      CASE(ways_drawn_together_change_no_answer),
      CASE(partitions_need_not_be_as_many_as_tasks),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

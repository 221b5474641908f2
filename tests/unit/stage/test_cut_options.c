/* SPDX-License-Identifier: Apache-2.0 */
/* Joins whose sides are whole wherever they may be, or never; exchanges whose rows are all in one partition. */
#include "support/cut_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { TASKS = 3 };

static const char *const data[] = {
    "CREATE TABLE t AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN i % 5 - 2 END AS k FROM range(40) r(i)",
    "CREATE TABLE u AS SELECT CASE WHEN i % 6 > 0 THEN i % 9 - 5 END AS k, i AS w FROM range(20) r(i)",
};

static const char *const queries[] = {
    "SELECT id, w FROM t JOIN u ON t.k = u.k",
    "SELECT id, w FROM t LEFT JOIN u ON t.k = u.k",
    "SELECT id, w FROM t RIGHT JOIN u ON t.k = u.k",
    "SELECT id, w FROM t FULL JOIN u ON t.k = u.k",
    "SELECT id FROM t SEMI JOIN u ON t.k = u.k",
    "SELECT id FROM t ANTI JOIN u ON t.k = u.k",
    "SELECT id, k NOT IN (SELECT k FROM u WHERE w > 3) FROM t",
    "SELECT id, (SELECT sum(w) FROM u WHERE u.k = t.k) FROM t",
    "SELECT id, w FROM t LEFT JOIN u ON t.k < u.k",
    "SELECT t.k, count(*), sum(w) FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k",
    "SELECT a.k, n, m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) a FULL JOIN (SELECT k, sum(w) AS m FROM u "
    "GROUP BY k) b USING (k)",
    "SELECT id, rank() OVER (PARTITION BY k ORDER BY id) FROM t",
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "SELECT count(DISTINCT k), stddev(id) FROM t",
};

static int open_case(void **state) {
  *state = cut_case_new(data, sizeof data / sizeof data[0]);
  return 0;
}

static void check_all(cut_case *c, const cut_options *options) {
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    cut_outcome out;
    cut_case_run_with(c, queries[i], options, &out);
    if (out.problem[0] != '\0') {
      fail_msg("%s: %s", queries[i], out.problem);
    }
  }
}

static void answers_of_any_option_are_the_same(void **state) {
  check_all(*state, &(cut_options){.tasks = TASKS, .broadcast = CUT_WHOLE_ALWAYS});
  check_all(*state, &(cut_options){.tasks = TASKS, .broadcast = CUT_WHOLE_NEVER, .broadcast_bytes = 1 << 30});
  check_all(*state, &(cut_options){.tasks = TASKS, .broadcast = CUT_WHOLE_NEVER, .hash_zero = true});
  check_all(*state, &(cut_options){.tasks = TASKS, .broadcast_bytes = 1 << 30, .hash_zero = true});
}

static bool has_done(const cut_graph *graph, cut_mark mark) {
  bool has = false;
  for (size_t i = 0; i < graph->n_stages; i++) {
    has |= graph->stages[i].is_done && memcmp(&graph->stages[i].mark, &mark, sizeof mark) == 0;
  }
  return has;
}

/* However many rows earlier stages are said to have given, what they have been is made again, and the rest is right. That
 * there are none is taken at its word: test_cut_again.c. */
static void check_again(cut_case *c, const char *sql, const cut_options *options, uint64_t rows) {
  cut_graph first, again;
  tree_refusal refusal;
  cut_fact facts[30];
  cut_options over = *options;
  over.sources = c->sources;
  over.n_sources = c->n_tables;
  cut_case_cut(c, sql, &over, c->a, &first, &refusal);
  assert_true(first.n_stages > 0 && first.n_stages <= 30);
  for (size_t n = 1; n < first.n_stages; n++) {
    cut_outcome out;
    facts[n - 1] =
        (cut_fact){.mark = first.stages[n - 1].mark, .is_done = true, .rows = rows, .bytes = 8 * rows};
    over.facts = facts;
    over.n_facts = n;
    cut_case_cut(c, sql, &over, c->a, &again, &refusal);
    assert_true(has_done(&again, first.stages[0].mark));
    cut_case_run_with(c, sql, &over, &out);
    if (out.problem[0] != '\0') {
      fail_msg("%s: with %zu stages of %llu rows: %s", sql, n, (unsigned long long)rows, out.problem);
    }
  }
}

static void cut_again_with_facts_is_the_same(void **state) {
  static const uint64_t rows[] = {1, 1000, 1000000, 1000000000};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
      check_again(*state, queries[i], &(cut_options){.tasks = TASKS, .broadcast_bytes = 10000}, rows[k]);
      check_again(*state, queries[i], &(cut_options){.tasks = TASKS}, rows[k]);
    }
  }
}

static size_t count_inputs(const cut_graph *graph, cut_share share) {
  size_t n = 0;
  for (size_t i = 0; i < graph->n_stages; i++) {
    for (size_t k = 0; k < graph->stages[i].n_inputs; k++) {
      n += graph->stages[i].inputs[k].share == share && graph->stages[i].inputs[k].is_stage;
    }
  }
  return n;
}

static void side_is_whole_as_the_option_says(void **state) {
  static const struct {
    const char *sql;
    cut_whole_side broadcast;
    size_t n_partition, n_all;
  } cases[] = {
      {"SELECT id, w FROM t JOIN u ON t.k = u.k", CUT_WHOLE_ALWAYS, 0, 1},
      {"SELECT id, w FROM t JOIN u ON t.k = u.k", CUT_WHOLE_NEVER, 2, 0},
      {"SELECT id, w FROM t JOIN u ON t.k < u.k", CUT_WHOLE_NEVER, 0, 1}, /* there is no other way */
      {"SELECT id, w FROM t FULL JOIN u ON t.k = u.k", CUT_WHOLE_ALWAYS, 2, 0},
      /* what is dealt alike would need nothing */
      {"SELECT a.k, n, m FROM (SELECT k, count(*) n FROM t GROUP BY k) a JOIN (SELECT k, sum(w) m FROM u GROUP BY k) b "
       "USING (k)",
       CUT_WHOLE_ALWAYS, 2, 1},
  };
  cut_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const cut_options options = {.tasks = TASKS,
                                 .broadcast = cases[i].broadcast,
                                 .broadcast_bytes = cases[i].broadcast == CUT_WHOLE_NEVER ? 1 << 30 : 0,
                                 .sources = c->sources,
                                 .n_sources = c->n_tables};
    cut_graph graph;
    tree_refusal refusal;
    cut_case_cut(c, cases[i].sql, &options, c->a, &graph, &refusal);
    if (count_inputs(&graph, CUT_PARTITION) != cases[i].n_partition ||
        count_inputs(&graph, CUT_ALL) != cases[i].n_all) {
      fail_msg("%s: %zu partitioned inputs, %zu whole ones", cases[i].sql,
               count_inputs(&graph, CUT_PARTITION), count_inputs(&graph, CUT_ALL));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_of_any_option_are_the_same),
      cmocka_unit_test(cut_again_with_facts_is_the_same),
      cmocka_unit_test(side_is_whole_as_the_option_says),
  };
  return cmocka_run_group_tests(tests, open_case, cut_case_teardown);
}

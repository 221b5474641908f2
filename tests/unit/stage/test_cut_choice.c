/* SPDX-License-Identifier: Apache-2.0 */
/* Which side of a join every task reads whole, by what moves; and what is not worth a stage. On declared sizes. */
#include "support/cut_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { TASKS = 2 };

static const char *const data[] = {
    "CREATE TABLE fact AS SELECT i AS id, i % 5 AS k, i % 3 AS g, i * 2 AS v FROM range(30) r(i)",
    "CREATE TABLE other AS SELECT i AS k, i * 2 AS w FROM range(20) r(i)",
    "CREATE TABLE small AS SELECT i AS g, i * 3 AS name FROM range(3) r(i)",
};

/* Sources have these rows; of 16 bytes each. */
static const struct {
  const char *id;
  uint64_t rows;
} sizes[] = {{"fact", 6000000}, {"other", 1500000}, {"small", 100}};

static int open_case(void **state) {
  cut_case *c = cut_case_new(data, sizeof data / sizeof data[0]);
  for (size_t i = 0; i < c->n_tables; i++) {
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
      if (strcmp(c->sources[i].id, sizes[k].id) == 0) {
        c->sources[i].rows = sizes[k].rows;
        c->sources[i].bytes = 16 * sizes[k].rows;
      }
    }
  }
  *state = c;
  return 0;
}

static cut_graph cut_query(cut_case *c, const char *sql) {
  const cut_options options = {
      .tasks = TASKS, .broadcast_bytes = 64 << 20, .sources = c->sources, .n_sources = c->n_tables};
  cut_graph graph;
  tree_refusal refusal;
  cut_case_cut(c, sql, &options, c->a, &graph, &refusal);
  assert_true(graph.n_stages > 0);
  return graph;
}

/* The source that the stage shares among its tasks, or "". */
static const char *split_source(const cut_stage *stage) {
  for (size_t i = 0; i < stage->n_inputs; i++) {
    if (!stage->inputs[i].is_stage && stage->inputs[i].share == CUT_SPLIT) {
      return stage->inputs[i].source_id;
    }
  }
  return "";
}

static const cut_stage *joining_stage(const cut_graph *graph) {
  for (size_t i = 0; i < graph->n_stages; i++) {
    if (strstr(graph->stages[i].what, "join") != NULL) {
      return &graph->stages[i];
    }
  }
  fail();
  return NULL;
}

static void side_that_moves_less_is_whole(void **state) {
  static const struct {
    const char *sql, *split; /* among the tasks of the join; "": both sides are exchanged */
  } cases[] = {
      {"SELECT id, w FROM fact JOIN other USING (k) WHERE v = 3 AND g = 1 AND id > 7", "other"},
      {"SELECT id, w FROM fact JOIN other USING (k) WHERE w = 3", "fact"},
      {"SELECT id, w FROM fact LEFT JOIN (SELECT * FROM other WHERE w = 3) o USING (k)", "fact"},
      {"SELECT id, w FROM other JOIN fact USING (k) WHERE v + id IN (3, 4) AND g = 1 AND id > 7", "other"},
      {"SELECT a.id, b.v FROM fact a JOIN fact b ON a.id = b.k", ""},
      {"SELECT id, w FROM fact FULL JOIN (SELECT * FROM other WHERE w = 3) o USING (k)", ""},
      {"SELECT id FROM fact SEMI JOIN (SELECT * FROM other WHERE w = 3) o USING (k)", "fact"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql);
    const char *split = split_source(joining_stage(&graph));
    if (strcmp(split, cases[i].split) != 0) {
      fail_msg("%s: split is \"%s\"", cases[i].sql, split);
    }
  }
}

static void what_is_small_is_computed_where_it_is_needed(void **state) {
  static const struct {
    const char *sql;
    size_t n_stages;
  } cases[] = {
      {"SELECT id, name FROM fact JOIN small USING (g)", 1},
      {"SELECT id, s.name FROM fact JOIN (SELECT a.g, b.name FROM small a JOIN small b ON a.g = b.name) s USING (g)",
       1},
      /* a value of all rows: its stage, then each task adds up the partial ones */
      {"SELECT id FROM fact WHERE v > (SELECT max(w) FROM other)", 2},
      {"SELECT id FROM fact WHERE v > (SELECT stddev(w) FROM other)", 3}, /* the same for all tasks */
      {"SELECT id, name FROM fact JOIN (SELECT g, name + random() AS name FROM small) s USING (g)", 2},
      /* few rows that are written already are grouped by one task */
      {"WITH s AS MATERIALIZED (SELECT id, k FROM fact WHERE v = 1 AND g = 1 AND k = 1 AND id < 7) "
       "SELECT k, count(*) FROM s GROUP BY k",
       2},
      {"SELECT k, count(*) FROM fact GROUP BY k", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql);
    if (graph.n_stages != cases[i].n_stages) {
      fail_msg("%s: %zu stages", cases[i].sql, graph.n_stages);
    }
  }
}

static cut_graph cut_again(cut_case *c, const char *sql, const cut_graph *first, uint64_t rows) {
  const cut_fact fact = {.mark = first->stages[0].mark, .is_done = true, .rows = rows, .bytes = 16 * rows};
  const cut_options options = {.tasks = TASKS,
                               .broadcast_bytes = 64 << 20,
                               .sources = c->sources,
                               .n_sources = c->n_tables,
                               .facts = &fact,
                               .n_facts = 1};
  cut_graph graph;
  tree_refusal refusal;
  cut_case_cut(c, sql, &options, c->a, &graph, &refusal);
  assert_true(graph.stages[0].is_done);
  return graph;
}

/* What a stage gave decides, not what was guessed. */
static void stage_that_gave_other_rows_changes_the_rest(void **state) {
  static const char joined[] =
      "SELECT id, w FROM fact LEFT JOIN (SELECT * FROM other WHERE w = 3) o USING (k)";
  static const char grouped[] = "SELECT k, count(*) FROM fact GROUP BY k ORDER BY k";
  cut_graph graph = cut_query(*state, joined);
  assert_int_equal(graph.n_stages, 2);
  graph = cut_again(*state, joined, &graph, 40000000); /* both sides are exchanged, from what is written */
  assert_int_equal(graph.n_stages, 4);
  graph = cut_query(*state, grouped);
  assert_int_equal(graph.n_stages, 3);
  graph = cut_again(*state, grouped, &graph, 10); /* one task merges them and sorts */
  assert_int_equal(graph.n_stages, 2);
  assert_true(graph.stages[1].one_task);
}

static void equal_stages_are_one(void **state) {
  static const struct {
    const char *sql;
    size_t n_stages;
  } cases[] = {
      {"SELECT * FROM fact a FULL JOIN fact b ON a.v = b.v AND a.id + 1 < b.id", 2},
      {"SELECT * FROM fact a FULL JOIN fact b ON a.v = b.id", 3}, /* dealt by other columns */
      {"SELECT * FROM (SELECT v, random() AS r FROM fact) a FULL JOIN (SELECT v, random() AS r FROM fact) b ON a.v = b.v",
       3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql);
    if (graph.n_stages != cases[i].n_stages) {
      fail_msg("%s: %zu stages", cases[i].sql, graph.n_stages);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(side_that_moves_less_is_whole),
      cmocka_unit_test(stage_that_gave_other_rows_changes_the_rest),
      cmocka_unit_test(equal_stages_are_one),
      cmocka_unit_test(what_is_small_is_computed_where_it_is_needed),
  };
  return cmocka_run_group_tests(tests, open_case, cut_case_teardown);
}

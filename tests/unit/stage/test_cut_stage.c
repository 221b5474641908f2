/* SPDX-License-Identifier: Apache-2.0 */
/* Which stages a query becomes: what needs no exchange gets none, what must be whole is, and why one task is one. */
#include "support/cut_case.h"

#include "base/mem.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const char *const data[] = {
    "CREATE TABLE t AS SELECT i AS id, i % 5 AS k, i * 2 AS v FROM range(30) r(i)",
    "CREATE TABLE u AS SELECT i % 7 AS k, i AS w FROM range(20) r(i)",
};

static int open_case(void **state) {
  *state = cut_case_new(data, sizeof data / sizeof data[0]);
  return 0;
}

static cut_graph cut_query(cut_case *c, const char *sql, uint64_t broadcast_bytes) {
  const cut_options options = {
      .tasks = 4, .broadcast_bytes = broadcast_bytes, .sources = c->sources, .n_sources = c->n_tables};
  cut_graph graph;
  tree_refusal refusal;
  cut_case_cut(c, sql, &options, c->a, &graph, &refusal);
  assert_int_equal(refusal.code, TREE_REFUSED_NONE);
  assert_true(graph.n_stages > 0);
  return graph;
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

static void stages_of_a_query_are_no_more_than_needed(void **state) {
  static const struct {
    const char *sql;
    uint64_t broadcast_bytes;
    size_t n_stages, n_partition, n_all;
  } cases[] = {
      {"SELECT id + 1 FROM t WHERE v > 3", 0, 1, 0, 0},
      {"SELECT sum(v) FROM t", 0, 2, 0, 1},
      {"SELECT k, sum(v) FROM t GROUP BY k", 0, 2, 1, 0},
      {"SELECT * FROM t ORDER BY id", 0, 2, 0, 1},
      {"SELECT * FROM t ORDER BY id LIMIT 3", 0, 2, 0, 1},
      {"SELECT t.id, w FROM t JOIN u USING (k)", 0, 3, 2, 0},
      {"SELECT t.id, w FROM t JOIN u USING (k)", 5000, 2, 0, 1},
      {"SELECT t.id, w FROM t JOIN u USING (k)", 1000000, 1, 0, 0}, /* each task reads the little there is */
      {"SELECT t.id, w FROM t LEFT JOIN (SELECT k, w + random() AS w FROM u) USING (k)", 1000000, 2, 0, 1},
      {"SELECT t.k, count(*) FROM t JOIN u USING (k) GROUP BY t.k", 0, 3, 2,
       0}, /* dealt by the key already */
      {"SELECT a.k, n, m FROM (SELECT k, count(*) n FROM t GROUP BY k) a JOIN (SELECT k, sum(w) m FROM u GROUP BY k) b "
       "USING (k)",
       0, 3, 2, 0},
      {"SELECT DISTINCT k FROM (SELECT k, sum(v) FROM t GROUP BY k HAVING sum(v) > 9)", 0, 2, 1, 0},
      {"SELECT id, rank() OVER (PARTITION BY k ORDER BY n) FROM (SELECT k, count(*) n, max(id) id FROM t GROUP BY k)",
       0, 2, 1, 0},
      /* the windows' keys do for the groups */
      {"SELECT k, v, count(*), rank() OVER (PARTITION BY k ORDER BY v) FROM t GROUP BY k, v", 0, 2, 1, 0},
      {"SELECT k, v, median(id), rank() OVER (PARTITION BY v ORDER BY k) FROM t GROUP BY k, v", 0, 2, 1, 0},
      {"SELECT k, v, count(*), rank() OVER (PARTITION BY k + v ORDER BY v) FROM t GROUP BY k, v", 0, 3, 2, 0},
      /* what a branch is dealt by does for all */
      {"SELECT k, max(v) FROM t GROUP BY k INTERSECT SELECT k, max(w) FROM u GROUP BY k", 0, 3, 2, 0},
      {"SELECT k, max(v) FROM t GROUP BY k EXCEPT SELECT k, w FROM u", 0, 3, 2, 0},
      {"SELECT w, k FROM u UNION SELECT max(v), k FROM t GROUP BY k", 0, 3, 2, 0},
      {"SELECT k, s, count(*) FROM (SELECT k, max(v) AS s FROM t GROUP BY k UNION ALL VALUES (1, 2), (3, 4)) GROUP BY k, s",
       0, 3, 2, 0},
      {"SELECT k, v, max(n) FROM (SELECT k, v, id % 2 AS g, count(*) AS n FROM t GROUP BY k, v, g) GROUP BY "
       "GROUPING SETS ((k, v), (k, v, n))",
       0, 3, 2, 0},
      {"SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT w FROM u)", 0, 2, 0, 1},
      {"SELECT id FROM t UNION ALL SELECT w FROM u", 0, 3, 0, 2},              /* shown branch by branch */
      {"SELECT id FROM t WHERE k IN (1, 2, 3, 4, 5, 6, 7)", 1000000, 1, 0, 0}, /* constants are no stage */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql, cases[i].broadcast_bytes);
    size_t n_partition = count_inputs(&graph, CUT_PARTITION), n_all = count_inputs(&graph, CUT_ALL);
    if (graph.n_stages != cases[i].n_stages || n_partition != cases[i].n_partition ||
        n_all != cases[i].n_all) {
      fail_msg("%s: %zu stages, %zu partitioned inputs, %zu whole ones", cases[i].sql, graph.n_stages,
               n_partition, n_all);
    }
    cut_outcome out;
    cut_case_run(*state, cases[i].sql, 4, cases[i].broadcast_bytes, &out);
    if (out.problem[0] != '\0' && strstr(cases[i].sql, "random") == NULL) {
      fail_msg("%s: %s", cases[i].sql, out.problem);
    }
  }
}

/* Sources that are dealt by k. */
static void source_that_is_dealt_needs_no_exchange(void **state) {
  static const size_t key_of_t[] = {1}, key_of_u[] = {0}, keys_of_t[] = {1, 2};
  static const struct {
    uint32_t modulus_of_t, modulus_of_u;
    const size_t *keys_of_t;
    size_t n_of_t, n_stages, n_partition;
    const char *sql;
  } cases[] = {
      {8, 8, key_of_t, 1, 1, 0, "SELECT id, w FROM t JOIN u USING (k)"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT t.k, u.k, id, w FROM t FULL JOIN u ON t.k = u.k"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT u.k, sum(id * w) FROM t JOIN u ON t.k = u.k GROUP BY u.k"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, id, count(*) FROM t GROUP BY id, k"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, rank() OVER (PARTITION BY id, k ORDER BY v) FROM t"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT DISTINCT k, v FROM t"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, id FROM t INTERSECT SELECT k, w FROM u"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, id FROM t EXCEPT ALL SELECT k, w FROM u"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, id FROM t UNION SELECT k, w FROM u"},
      {8, 8, key_of_t, 1, 2, 1, "SELECT id, k FROM t UNION SELECT k, w FROM u"},
      {8, 4, key_of_t, 1, 2, 1, "SELECT k, id FROM t EXCEPT SELECT k, w FROM u"},
      {8, 8, key_of_t, 1, 3, 2, "SELECT k, id FROM t EXCEPT SELECT k::HUGEINT, w FROM u"},
      {8, 8, key_of_t, 1, 1, 0, "SELECT k, id, median(v) FROM t GROUP BY GROUPING SETS ((k, id), (k), (k))"},
      {8, 8, key_of_t, 1, 2, 1, "SELECT k, id, sum(v) FROM t GROUP BY ROLLUP (k, id)"},
      {8, 8, key_of_t, 1, 2, 1, "SELECT v, count(*) FROM t GROUP BY v"},
      {8, 8, key_of_t, 1, 2, 1, "SELECT id, w FROM t FULL JOIN u ON t.id = u.k"},
      {8, 8, key_of_t, 1, 3, 2, "SELECT id, w FROM t FULL JOIN u ON t.id = u.w"},
      /* another number of partitions, or one side only: one exchange, which makes as many as the other has */
      {8, 3, key_of_t, 1, 2, 1, "SELECT t.k, u.k, id, w FROM t FULL JOIN u ON t.k = u.k"},
      {0, 5, key_of_t, 1, 2, 1, "SELECT t.k, u.k, id, w FROM t FULL JOIN u ON t.k = u.k"},
      /* other types, more columns than the join has, too few partitions to read by */
      {8, 8, key_of_t, 1, 3, 2, "SELECT t.k, id, w FROM t FULL JOIN u ON t.k = u.k::HUGEINT"},
      {8, 8, keys_of_t, 2, 2, 1, "SELECT t.k, id, w FROM t FULL JOIN u ON t.k = u.k"},
      {8, 8, keys_of_t, 2, 1, 0, "SELECT v, k, count(*) FROM t GROUP BY v, k"},
      {8, 8, keys_of_t, 2, 2, 1, "SELECT k, count(*) FROM t GROUP BY k"},
      {1, 1, key_of_t, 1, 3, 2, "SELECT t.k, id, w FROM t FULL JOIN u ON t.k = u.k"},
  };
  cut_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    c->sources[0].modulus = cases[i].modulus_of_t;
    c->sources[0].n_keys = cases[i].modulus_of_t == 0 ? 0 : cases[i].n_of_t;
    c->sources[0].keys = cases[i].keys_of_t;
    c->sources[1].modulus = cases[i].modulus_of_u;
    c->sources[1].n_keys = 1;
    c->sources[1].keys = key_of_u;
    cut_graph graph = cut_query(c, cases[i].sql, 0);
    cut_outcome out;
    cut_case_run(c, cases[i].sql, 4, 0, &out);
    if (graph.n_stages != cases[i].n_stages || count_inputs(&graph, CUT_PARTITION) != cases[i].n_partition ||
        out.problem[0] != '\0') {
      fail_msg("%zu: %s: %zu stages %s", i, cases[i].sql, graph.n_stages, out.problem);
    }
  }
  c->sources[0].n_keys = c->sources[1].n_keys = 0;
}

/* Even shares, unless somebody relies on the partitions, or those who read a CTE may. */
static void source_is_read_by_partitions_only_where_that_serves(void **state) {
  static const size_t key_of_t[] = {1};
  static const struct {
    const char *sql;
    size_t n_stages;
    cut_share share; /* of the first input of the first stage */
  } cases[] = {
      {"SELECT v FROM t", 1, CUT_SPLIT},
      {"SELECT v, count(*) FROM t GROUP BY v", 2, CUT_SPLIT},
      {"SELECT k, count(*) FROM t GROUP BY k", 1, CUT_PARTITION},
      {"SELECT k, n + 1 FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE n > 1", 1, CUT_PARTITION},
      {"WITH c AS MATERIALIZED (SELECT k, v FROM t WHERE v > 3) "
       "SELECT k, count(*), (SELECT max(v) FROM c) FROM c GROUP BY k",
       4, CUT_PARTITION},
  };
  cut_case *c = *state;
  c->sources[0].modulus = 8;
  c->sources[0].n_keys = 1;
  c->sources[0].keys = key_of_t;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(c, cases[i].sql, 0);
    cut_outcome out;
    cut_case_run(c, cases[i].sql, 4, 0, &out);
    if (graph.n_stages != cases[i].n_stages || graph.stages[0].inputs[0].share != cases[i].share ||
        out.problem[0] != '\0') {
      fail_msg("%s: %zu stages, share %d %s", cases[i].sql, graph.n_stages,
               (int)graph.stages[0].inputs[0].share, out.problem);
    }
  }
  c->sources[0].n_keys = 0;
}

static void result_tells_how_it_is_dealt(void **state) {
  static const size_t second[] = {1};
  cut_case *c = *state;
  cut_graph graph = cut_query(c, "SELECT sum(v) AS s, k FROM t GROUP BY k", 0);
  assert_int_equal(graph.n_keys, 1);
  assert_int_equal(graph.keys[0], 1);
  assert_int_equal(cut_query(c, "SELECT sum(v) AS s FROM t GROUP BY k", 0).n_keys, 0);
  assert_int_equal(cut_query(c, "SELECT k, v FROM t", 0).n_keys, 0);
  cut_options options = {
      .tasks = 4, .sources = c->sources, .n_sources = c->n_tables, .modulus = 7, .n_keys = 1, .keys = second};
  tree_refusal refusal;
  cut_case_cut(c, "SELECT v, k FROM t", &options, c->a, &graph, &refusal);
  assert_int_equal(graph.n_stages, 1);
  assert_int_equal(graph.stages[0].partitions, 7);
  assert_false(graph.stages[0].ordered);
}

/* Whatever is small: rows without a match would get out of every task. */
static void join_side_whose_unmatched_rows_get_out_is_never_whole(void **state) {
  static const char *const queries[] = {
      "SELECT t.id, u.w FROM t FULL JOIN u ON t.k = u.k",
      "SELECT t.id, u.w FROM (SELECT * FROM t WHERE id < 2) t LEFT JOIN (SELECT k, w FROM u UNION ALL SELECT k, v FROM t) "
      "u ON t.k = u.k",
  };
  cut_graph full = cut_query(*state, queries[0], UINT64_MAX);
  assert_int_equal(count_inputs(&full, CUT_ALL), 0);
  assert_int_equal(count_inputs(&full, CUT_PARTITION), 2);
  cut_graph left = cut_query(*state, queries[1], UINT64_MAX);
  const cut_stage *last = &left.stages[left.n_stages - 1];
  bool drives = false;
  for (size_t i = 0; i < last->n_inputs; i++) {
    drives |= !last->inputs[i].is_stage && last->inputs[i].share == CUT_SPLIT &&
              strcmp(last->inputs[i].source_id, "t") == 0;
  }
  assert_true(drives);
}

static void stage_of_one_task_says_why(void **state) {
  static const struct {
    const char *sql, *why;
  } cases[] = {
      {"SELECT id, row_number() OVER () FROM t", "window functions without a common PARTITION BY"},
      {"SELECT * FROM t POSITIONAL JOIN u", "POSITIONAL JOIN"},
      {"SELECT median(v) FROM t", "an aggregate that needs all rows"},
      {"SELECT * FROM t USING SAMPLE 5 ROWS", "SAMPLE of all rows together"},
      {"SELECT * FROM t TABLESAMPLE bernoulli(50%) REPEATABLE (3)", "SAMPLE of all rows together"},
      {"SELECT (1, 2) < ANY (SELECT id, v FROM t)", ""}, /* the one row's task has all of the other side */
      {"SELECT sum(v) FROM t", ""},
      {"SELECT * FROM t ORDER BY id", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql, 0);
    const cut_stage *last = &graph.stages[graph.n_stages - 1];
    assert_true(last->one_task);
    assert_string_equal(last->why_one, cases[i].why);
  }
}

static void sample_of_a_share_is_drawn_in_each_task(void **state) {
  static const char *const queries[] = {"SELECT * FROM t TABLESAMPLE bernoulli(50%)",
                                        "SELECT * FROM (SELECT id + 1 FROM t) USING SAMPLE 50% (system)"};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    cut_graph graph = cut_query(*state, queries[i], 0);
    assert_int_equal(graph.n_stages, 1);
    assert_false(graph.stages[0].one_task);
  }
}

static size_t count_wide(const cut_graph *graph) {
  size_t n = 0;
  for (size_t i = 0; i < graph->n_stages; i++) {
    n += !graph->stages[i].one_task;
  }
  return n;
}

static bool has_text(const cut_stage *stage, const char *text) {
  for (size_t i = 0; i < stage->n_pieces; i++) {
    if (stage->pieces[i].text != NULL && strstr(stage->pieces[i].text, text) != NULL) {
      return true;
    }
  }
  return false;
}

/* Rows that no step of the recursion changes are made by many tasks, once; what differs each time is left to each step. */
static void recursion_reads_what_does_not_change_from_stages(void **state) {
  static const struct {
    const char *sql;
    size_t wide;
    const char *step; /* what the last stage computes itself */
  } cases[] = {
      {"WITH RECURSIVE r(x) AS (SELECT max(k) FROM t UNION ALL SELECT r.x + 1 FROM r, (SELECT sum(w) AS s FROM u) z "
       "WHERE r.x < 4 AND z.s > 0) SELECT * FROM r",
       2, "UNION ALL"},
      {"WITH RECURSIVE r(x) AS (SELECT max(k) FROM t UNION ALL SELECT r.x + 1 FROM r, (SELECT sum(w * random()) AS s "
       "FROM u) z WHERE r.x < 4 AND z.s > 0) SELECT * FROM r",
       2, "random"},
      {"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < (SELECT count(*) FROM r)) SELECT * FROM r",
       0, "count"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql, 0);
    const cut_stage *last = &graph.stages[graph.n_stages - 1];
    assert_int_equal(count_wide(&graph), cases[i].wide);
    assert_true(last->one_task && last->falls_back);
    assert_string_equal(last->why_one, "a recursive CTE");
    assert_true(has_text(last, cases[i].step));
  }
}

static void grouping_sets_of_whole_groups_are_an_aggregation_each(void **state) {
  cut_graph graph =
      cut_query(*state, "SELECT k, v, median(id) FROM t GROUP BY GROUPING SETS ((k), (k, v), (v), (k))", 0);
  assert_int_equal(graph.n_stages, 5); /* the rows, dealt for each set (the equal ones once), all together */
  assert_int_equal(count_wide(&graph), 5);
  cut_graph drawn = cut_query(*state, "SELECT k, median(v + random()) FROM t GROUP BY ROLLUP (k)", 0);
  size_t n = 0;
  for (size_t i = 0; i < drawn.n_stages; i++) {
    n += has_text(&drawn.stages[i], "random");
  }
  assert_int_equal(n, 1); /* a value is drawn once for all sets */
}

static size_t count_text(const cut_stage *stage, const char *text) {
  size_t n = 0;
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const char *at = stage->pieces[i].text;
    while (at != NULL && (at = strstr(at, text)) != NULL) {
      n++;
      at++;
    }
  }
  return n;
}

static void aggregate_of_drawn_values_is_not_computed_in_parts(void **state) {
  static const char *const queries[] = {"SELECT arg_min(k, random()) FROM t",
                                        "SELECT stddev(random()) FROM t",
                                        "SELECT avg(CASE WHEN random() < 0.5 THEN k END) FROM t",
                                        "SELECT avg(k) FILTER (random() < 0.5) FROM t"};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    cut_graph graph = cut_query(*state, queries[i], 0);
    size_t n = 0;
    for (size_t at = 0; at < graph.n_stages; at++) {
      n += count_text(&graph.stages[at], "random");
    }
    assert_int_equal(n, 1);
  }
}

static void union_of_rows_dealt_alike_is_dealt_so(void **state) {
  static const struct {
    const char *sql;
    size_t n_stages;
  } cases[] = {
      {"SELECT k, sum(s) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k UNION ALL SELECT k, max(v) FROM t GROUP BY k) "
       "GROUP BY k",
       3},
      {"SELECT s, sum(k) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k UNION ALL SELECT k, max(v) FROM t GROUP BY k) "
       "GROUP BY s",
       4},
      {"SELECT k, sum(s) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k UNION ALL SELECT k, v FROM t) GROUP BY k",
       3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql, 0);
    assert_int_equal(graph.n_stages, cases[i].n_stages);
  }
}

static void enum_that_cannot_be_cast_back_does_not_cross(void **state) {
  static const struct {
    const char *sql;
    bool crosses;
  } cases[] = {
      {"SELECT max((k, 'a'::ENUM('a', 'b'))) FROM t", false},
      {"SELECT max([(k, 'a'::ENUM('a', 'b'))]) FROM t", false},
      {"SELECT max((k, 'a')) FROM t", true},
      {"SELECT max({'k': k, 'e': 'a'::ENUM('a', 'b')}) FROM t", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cut_graph graph = cut_query(*state, cases[i].sql, 0);
    assert_int_equal(graph.n_stages, cases[i].crosses ? 2 : 1);
    assert_string_equal(graph.stages[0].why_one, cases[i].crosses ? "" : "an ENUM in a struct without names");
  }
}

static void source_that_cannot_be_split_is_one_task(void **state) {
  cut_case *c = *state;
  for (size_t i = 0; i < c->n_tables; i++) {
    c->sources[i].can_split = false;
  }
  cut_graph graph = cut_query(c, "SELECT k, sum(v) FROM t GROUP BY k", 0);
  for (size_t i = 0; i < c->n_tables; i++) {
    c->sources[i].can_split = true;
  }
  assert_int_equal(graph.n_stages, 1);
  assert_true(graph.stages[0].one_task);
  assert_int_equal(graph.stages[0].inputs[0].share, CUT_ALL);
  assert_string_equal(graph.stages[0].why_one, "a source that cannot be split");
}

static void stage_whose_reader_relies_on_order_is_ordered(void **state) {
  cut_graph limit = cut_query(*state, "SELECT id FROM t LIMIT 3", 0);
  assert_true(limit.stages[0].ordered);
  assert_true(limit.stages[0].inputs[0].ordered);
  assert_true(limit.stages[1].inputs[0].ordered);
  cut_graph sum = cut_query(*state, "SELECT k, sum(v) FROM t GROUP BY k", 0);
  assert_false(sum.stages[0].ordered);
  cut_graph first = cut_query(*state, "SELECT k, first(v) FROM t GROUP BY k", 0);
  assert_true(first.stages[0].ordered);
  cut_graph sorted = cut_query(*state, "SELECT id FROM t ORDER BY id", 0);
  assert_false(sorted.stages[0].ordered);
  assert_true(sorted.stages[1].ordered);
}

static void partition_is_the_last_column(void **state) {
  cut_graph graph = cut_query(*state, "SELECT k, sum(v) FROM t GROUP BY k", 0);
  assert_int_equal(graph.stages[0].partitions, 4);
  assert_int_equal(graph.stages[0].columns.n_columns, 2);
  assert_non_null(strstr(graph.stages[0].pieces[0].text, "\"hash\"(t1.c0)"));
  assert_int_equal(graph.stages[1].partitions, 1);
}

static void cut_under_any_failed_allocation_says_out_of_memory(void **state) {
  cut_case *c = *state;
  const cut_options options = {.tasks = 4, .sources = c->sources, .n_sources = c->n_tables};
  const tree_node *root = cut_case_tree(
      c,
      "WITH c AS MATERIALIZED (SELECT k, v, avg(v) AS a, stddev(id) AS s, first(id) AS f FROM t GROUP BY "
      "ROLLUP (k, v)) SELECT x.k, rank() OVER (PARTITION BY x.k ORDER BY x.a), (SELECT max(w) FROM u WHERE "
      "u.k = x.k AND u.w > x.v) FROM c x LEFT JOIN c y ON x.k = y.k WHERE x.k NOT IN (SELECT k FROM u) "
      "UNION ALL SELECT DISTINCT k, w, w FROM u ORDER BY 1 LIMIT 9",
      c->a);
  bool is_cut = false;
  uint64_t n = 0;
  while (!is_cut) {
    arena *own = arena_new();
    cut_graph graph;
    tree_refusal refusal;
    hf_error error = {0};
    mem_fail_after(++n);
    hf_status status = stage_cut(root, &options, own, &graph, &refusal, &error);
    mem_fail_after(0);
    is_cut = status == HF_OK;
    assert_true(is_cut || status == HF_E_OUT_OF_MEMORY);
    assert_true(!is_cut || (graph.n_stages > 5 && refusal.code == TREE_REFUSED_NONE));
    hf_error_reset(&error);
    arena_free(own);
  }
  assert_true(n > 10);
}

static bool is_read(const cut_graph *graph, size_t stage) {
  for (size_t r = stage + 1; r < graph->n_stages; r++) {
    for (size_t k = 0; k < graph->stages[r].n_inputs; k++) {
      if (graph->stages[r].inputs[k].is_stage && graph->stages[r].inputs[k].stage == stage) {
        return true;
      }
    }
  }
  return stage + 1 == graph->n_stages;
}

/* DuckDB keeps a CTE of which it has found that nothing is wanted. */
static void stages_that_nobody_reads_are_left_out(void **state) {
  static const char *const queries[] = {
      "WITH w AS (SELECT DISTINCT ON (k) id, k FROM t ORDER BY k, id) SELECT a.k, sum(q.c) FROM w a FULL JOIN w b "
      "ON a.k = b.k JOIN (SELECT -5 AS c FROM u) q ON q.c NOT IN (q.c, q.c) GROUP BY a.k",
      "WITH w AS MATERIALIZED (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT s FROM w WHERE 1 = 0",
      "WITH w AS MATERIALIZED (SELECT k, sum(v) AS s FROM t GROUP BY k) "
      "SELECT a.s FROM w a JOIN w b USING (k) WHERE a.s IS NULL AND a.s = 1",
  };
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    cut_graph graph = cut_query(*state, queries[i], 0);
    for (size_t s = 0; s < graph.n_stages; s++) {
      if (!is_read(&graph, s)) {
        fail_msg("%s: nobody reads stage %zu of %zu", queries[i], s + 1, graph.n_stages);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_that_nobody_reads_are_left_out),
      cmocka_unit_test(stages_of_a_query_are_no_more_than_needed),
      cmocka_unit_test(source_that_is_dealt_needs_no_exchange),
      cmocka_unit_test(source_is_read_by_partitions_only_where_that_serves),
      cmocka_unit_test(result_tells_how_it_is_dealt),
      cmocka_unit_test(join_side_whose_unmatched_rows_get_out_is_never_whole),
      cmocka_unit_test(stage_of_one_task_says_why),
      cmocka_unit_test(sample_of_a_share_is_drawn_in_each_task),
      cmocka_unit_test(recursion_reads_what_does_not_change_from_stages),
      cmocka_unit_test(grouping_sets_of_whole_groups_are_an_aggregation_each),
      cmocka_unit_test(aggregate_of_drawn_values_is_not_computed_in_parts),
      cmocka_unit_test(union_of_rows_dealt_alike_is_dealt_so),
      cmocka_unit_test(enum_that_cannot_be_cast_back_does_not_cross),
      cmocka_unit_test(source_that_cannot_be_split_is_one_task),
      cmocka_unit_test(stage_whose_reader_relies_on_order_is_ordered),
      cmocka_unit_test(partition_is_the_last_column),
      cmocka_unit_test(cut_under_any_failed_allocation_says_out_of_memory),
  };
  return cmocka_run_group_tests(tests, open_case, cut_case_teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of operator, cut for three tasks and run stage by stage, gives the
 * rows of single-node DuckDB: with both sides of joins exchanged, and with
 * broadcasts. The traps of 10-planning by name.
 */
#include "support/cut_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 3 };

static const char *const data[] = {
    /* 60 rows, NULLs in keys and values, negative keys */
    ("CREATE TABLE t AS SELECT i::INTEGER AS id, CASE WHEN i % 7 = 0 THEN NULL ELSE (i % 5 - 2)::INTEGER END AS k, "
     "CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 37 % 41)::BIGINT END AS v, 's' || (i % 4) AS s, "
     "(i * 13 % 29 - 7)::DECIMAL(9,2) / 4 AS d, (i / 3.0)::DOUBLE AS x, DATE '2020-01-01' + (i % 9)::INTEGER AS day, "
     "[i, i + 1] AS l FROM range(60) r(i)"),
    /* the same keys as BIGINT, DECIMAL of another scale and DOUBLE; some twice, some of neither side */
    ("CREATE TABLE u AS SELECT CASE WHEN i % 6 = 0 THEN NULL ELSE (i % 8 - 4)::BIGINT END AS k, "
     "(i % 8 - 4)::DECIMAL(18,4) AS d, (i % 8 - 4)::FLOAT AS f, (i * 3)::INTEGER AS w, 's' || (i % 5) AS s "
     "FROM range(23) r(i)"),
    "CREATE TABLE one AS SELECT (k * 1)::INTEGER AS k, 'r' || k AS name FROM range(-2, 3) r(k)",
    "CREATE TABLE none AS SELECT * FROM t WHERE false",
    "CREATE TABLE single AS SELECT 42::INTEGER AS a, NULL::INTEGER AS b",
    ("CREATE TABLE big AS SELECT (i % 3)::INTEGER AS g, 9223372036854775807::BIGINT - i AS n, "
     "1e6 + (i % 2) AS y, (i * 1.01)::DECIMAL(15,2) AS m FROM range(100) r(i)"),
};

typedef struct query {
  const char *sql;
  enum {
    SPREAD,
    ONE,
    ANY
  } how; /* some stage has two tasks with rows; none has a reason to be one … or one does */
} query;

static int open_case(void **state) {
  *state = cut_case_new(data, sizeof data / sizeof data[0]);
  return 0;
}

static bool check(cut_case *c, const query *q, uint64_t broadcast_bytes, bool in_order) {
  cut_outcome out;
  cut_case_run(c, q->sql, TASKS, broadcast_bytes, &out);
  bool is_right = out.problem[0] == '\0' && (!in_order || out.verdict == ORACLE_SAME);
  if (!is_right) {
    print_error("%s: %s\n", q->sql, out.problem[0] == '\0' ? "another order" : out.problem);
  }
  bool is_spread = out.distributed || broadcast_bytes > 0; /* what each task reads whole is in no stage */
  if (q->how == SPREAD && (!is_spread || out.why[0] != '\0')) {
    print_error("%s: not spread: %s\n", q->sql, out.why);
    is_right = false;
  }
  if (q->how == ONE && out.why[0] == '\0') {
    print_error("%s: no reason for one task\n", q->sql);
    is_right = false;
  }
  return is_right;
}

/* Each table is dealt by its column k, which has other types and other partitions in some; or none is. */
static void deal(cut_case *c, bool is_dealt) {
  static const struct {
    const char *id;
    size_t key[1];
    uint32_t modulus;
  } dealt[] = {{"t", {1}, 8}, {"u", {0}, 8}, {"one", {0}, 8}, {"none", {1}, 5}};
  for (size_t i = 0; i < c->n_tables; i++) {
    for (size_t k = 0; k < sizeof dealt / sizeof dealt[0]; k++) {
      if (strcmp(c->sources[i].id, dealt[k].id) == 0) {
        c->sources[i].n_keys = is_dealt;
        c->sources[i].keys = dealt[k].key;
        c->sources[i].modulus = dealt[k].modulus;
        c->sources[i].ordered = !is_dealt;
      }
    }
  }
}

static bool check_dealt(cut_case *c, const query *q) {
  query dealt = {q->sql, ANY};            /* all rows of some may be one task's */
  if (strstr(q->sql, "first(") != NULL) { /* there is no first row of what is dealt */
    return true;
  }
  deal(c, true);
  bool is_right = check(c, &dealt, 0, false);
  deal(c, false);
  return is_right;
}

static void check_all(void **state, const query *queries, size_t n, bool in_order) {
  size_t right = 0;
  for (size_t i = 0; i < n; i++) {
    bool exchanged = check(*state, &queries[i], 0, in_order);
    bool is_right = exchanged && check(*state, &queries[i], 100000, in_order);
    right += is_right && (in_order || check_dealt(*state, &queries[i]));
  }
  assert_int_equal(right, n);
}

#define CHECK(state, queries) check_all((state), (queries), sizeof(queries) / sizeof((queries)[0]), false)
#define CHECK_IN_ORDER(state, queries) \
  check_all((state), (queries), sizeof(queries) / sizeof((queries)[0]), true)

static void rows_by_row_stay_in_file_order(void **state) {
  static const query queries[] = {
      {"SELECT * FROM t", SPREAD},
      {"SELECT id + 1, s || 'x', v IS NULL FROM t WHERE v > 5 OR k = 1", SPREAD},
      {"SELECT id, unnest(l) FROM t", SPREAD},
      {"SELECT 1 FROM t", SPREAD},
      {"SELECT k, k, s AS k FROM t", SPREAD},
      {"SELECT a.id, b.id FROM (SELECT id FROM t WHERE id % 9 < 5) a JOIN (SELECT id FROM t) b USING (id) ORDER BY 1",
       SPREAD},
  };
  CHECK_IN_ORDER(state, queries);
}

static void aggregate_in_two_steps_is_the_same(void **state) {
  static const query queries[] = {
      {"SELECT count(*), count(v), sum(v), min(s), max(d), avg(v), avg(d), avg(x) FROM t", SPREAD},
      {"SELECT k, count(*), count(v), sum(v), min(s), max(d), avg(v), avg(d), avg(x) FROM t GROUP BY k",
       SPREAD},
      {"SELECT s, k, sum(v) FILTER (WHERE id > 10), count(*) FILTER (WHERE k IS NULL) FROM t GROUP BY s, k",
       SPREAD},
      {"SELECT k + 1, sum(d) FROM t GROUP BY k + 1 HAVING sum(d) > 1", SPREAD},
      {"SELECT bool_and(v > 1), bool_or(v > 39), bit_and(id), bit_or(id), bit_xor(id), product(x + 1) FROM t",
       SPREAD},
      {"SELECT s, bool_and(v > 1), bit_xor(id), count_if(v > 3), any_value(v) FROM t GROUP BY s", SPREAD},
      {"SELECT stddev(x), stddev_pop(x), var_samp(x), var_pop(x), variance(v) FROM t", SPREAD},
      {"SELECT k, stddev(x), stddev_pop(v), var_samp(x), var_pop(x) FROM t GROUP BY k", SPREAD},
      {"SELECT g, stddev(y), var_pop(y) FROM big GROUP BY g", SPREAD},
      {"SELECT g, sum(n), avg(n), avg(m), sum(m) FROM big GROUP BY g", SPREAD},
      {"SELECT sum(n), typeof(sum(n)), avg(m) FROM big", SPREAD},
      {"SELECT s, first(id), last(id), first(v), any_value(v), arbitrary(k) FROM t GROUP BY s", SPREAD},
      {"SELECT first(id), last(id), first(k), any_value(k), first(id) FILTER (WHERE id > 50) FROM t", SPREAD},
      {"SELECT 'c', sum(v) FROM t GROUP BY 1", SPREAD},
      {"SELECT sum(n) FROM (SELECT (random() * 3)::INTEGER AS g, count(*) AS n FROM t GROUP BY g)", SPREAD},
      {"SELECT sum(n) FROM (SELECT (random() * 3)::INTEGER AS g, count(DISTINCT id) AS n FROM t GROUP BY g)",
       ANY},
      {"SELECT DISTINCT k FROM t", SPREAD},
      {"SELECT count(*) FROM (SELECT DISTINCT k, s FROM t)", SPREAD},
  };
  CHECK(state, queries);
}

static void average_divides_as_duckdb_does(void **state) {
  static const query queries[] = {
      {"SELECT g, avg(m)::VARCHAR, avg(n)::VARCHAR FROM big GROUP BY g", SPREAD},
      {"SELECT k, avg(d)::VARCHAR, avg(v)::VARCHAR, avg(id)::VARCHAR FROM t GROUP BY k", SPREAD},
      {"SELECT avg(-0.05::DECIMAL(4,2))::VARCHAR, avg(d)::VARCHAR FROM t", SPREAD},
  };
  CHECK(state, queries);
}

static void aggregate_of_all_rows_is_the_same(void **state) {
  static const query queries[] = {
      {"SELECT k, median(v), quantile_cont(x, 0.3), quantile_disc(v, [0.1, 0.9]), mode(s) FROM t GROUP BY k",
       SPREAD},
      {"SELECT k, count(DISTINCT s), sum(DISTINCT v) FROM t GROUP BY k", SPREAD},
      {"SELECT count(DISTINCT v) FROM t", SPREAD},
      {"SELECT count(DISTINCT v), sum(DISTINCT v), count(*), avg(x), max(s) FROM t", SPREAD},
      {"SELECT count(DISTINCT v), count(DISTINCT s) FROM t", ONE},
      {"SELECT median(v) FROM t", ONE},
      {"SELECT k, list(id), string_agg(s, '-'), list(v ORDER BY id DESC), array_agg(DISTINCT s ORDER BY s) "
       "FROM t GROUP BY k",
       SPREAD},
      {"SELECT list(id), string_agg(s), list(v ORDER BY v, id) FROM t", ONE},
      {"SELECT k, arg_min(s, id), arg_max(id, v), histogram(s) FROM t GROUP BY k", SPREAD},
      {"SELECT corr(x, v), covar_pop(x, v), skewness(x) FROM t", ONE},
  };
  CHECK(state, queries);
}

static void grouping_sets_are_the_same(void **state) {
  static const query queries[] = {
      {"SELECT k, s, sum(v), avg(d), stddev(x), grouping(k), grouping(s), grouping(k, s) FROM t "
       "GROUP BY GROUPING SETS ((k, s), (k), ())",
       SPREAD},
      {"SELECT k, s, count(*), grouping_id(s, k) FROM t GROUP BY ROLLUP (k, s)", SPREAD},
      {"SELECT k, s, day, max(v) FROM t GROUP BY CUBE (k, s, day)", SPREAD},
      {"SELECT k, s, count(DISTINCT v), count(*) FROM t GROUP BY ROLLUP (k, s)", SPREAD},
      {"SELECT k, count(*) FROM t GROUP BY GROUPING SETS ((k), (k))", SPREAD},
      {"SELECT k, median(v) FROM t GROUP BY ROLLUP (k)", ANY},
      {"SELECT k, count(*), sum(v) FROM none GROUP BY GROUPING SETS ((k), ())", ANY},
  };
  CHECK(state, queries);
}

static void join_by_keys_is_the_same(void **state) {
  static const query queries[] = {
      {"SELECT t.id, u.w FROM t JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id, u.w FROM t RIGHT JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id, u.w FROM t FULL JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id FROM t SEMI JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id FROM t ANTI JOIN u ON t.k = u.k", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k", SPREAD},
      {"SELECT t.id, u.w FROM t FULL JOIN u ON t.k IS NOT DISTINCT FROM u.k AND t.s = u.s", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.k = u.k AND t.v > u.w", SPREAD},
      {"SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k AND t.v > u.w", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.d = u.d", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.x = u.f", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.k = u.f AND t.k = u.d", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.k + 1 = u.k * 2 AND lower(t.s) = u.s", SPREAD},
      {"SELECT t.id, u.w, one.name FROM t JOIN u ON t.k = u.k JOIN one ON one.k = t.k", SPREAD},
      {"SELECT one.name, count(*), sum(u.w) FROM t JOIN u ON t.k = u.k JOIN one ON one.k = t.k GROUP BY one.name",
       SPREAD},
      {"SELECT t.k, count(*) FROM t JOIN u ON t.k = u.k GROUP BY t.k", SPREAD},
      {"SELECT t.k, u.s, count(*) FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k, u.s", SPREAD},
      {"SELECT u.k, count(*) FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.k", SPREAD},
      {"SELECT a.k, b.n FROM (SELECT k, count(*) n FROM t GROUP BY k) a JOIN (SELECT k, count(*) n FROM u GROUP BY k) "
       "b ON a.k = b.k",
       SPREAD},
      {"SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.id < b.id", SPREAD},
      {"SELECT a.k, b.k FROM t a JOIN t b USING (id) JOIN u ON u.k = a.k", SPREAD},
  };
  CHECK(state, queries);
}

static void join_without_keys_is_the_same(void **state) {
  static const query queries[] = {
      {"SELECT t.id, one.name FROM t, one", SPREAD},
      {"SELECT t.id, u.w FROM t JOIN u ON t.v < u.w", SPREAD},
      {"SELECT t.id, u.w FROM t LEFT JOIN u ON t.v < u.w - 50", SPREAD},
      {"SELECT t.id, u.w FROM t RIGHT JOIN u ON t.v < u.w - 50", SPREAD},
      {"SELECT t.id, u.w FROM t FULL JOIN u ON t.v < u.w - 50", ONE},
      {"SELECT t.id, u.w FROM t JOIN u ON t.v = u.w OR t.k = u.k", SPREAD},
      {"SELECT t.id FROM t SEMI JOIN u ON t.v < u.w - 50", SPREAD},
      {"SELECT t.id FROM t ANTI JOIN u ON t.v < u.w - 50", SPREAD},
      {"SELECT id, (SELECT max(w) FROM u) FROM t", SPREAD},
      {"SELECT id FROM t WHERE v > (SELECT avg(w) FROM u) / 3", SPREAD},
      {"SELECT t.id, u.w FROM t ASOF JOIN u ON t.s = u.s AND t.id >= u.w", SPREAD},
      {"SELECT t.id, u.w FROM t ASOF LEFT JOIN u ON t.s = u.s AND t.id >= u.w", SPREAD},
      {"SELECT id, r.i FROM t, LATERAL range(id % 3) r(i)", ANY},
      {"SELECT t.id, u.w FROM t POSITIONAL JOIN u", ONE},
  };
  CHECK(state, queries);
}

static void subqueries_know_all_nulls(void **state) {
  static const query queries[] = {
      {"SELECT id, k IN (SELECT k FROM u) FROM t", SPREAD},
      {"SELECT id, k NOT IN (SELECT k FROM u) FROM t", SPREAD},
      {"SELECT id FROM t WHERE k NOT IN (SELECT k FROM u)", SPREAD},
      {"SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)", SPREAD},
      {"SELECT id, k NOT IN (SELECT k FROM u WHERE false) FROM t", SPREAD},
      {"SELECT id, (k, s) NOT IN (SELECT k, s FROM u) FROM t", SPREAD},
      {"SELECT id, (k, s) NOT IN (SELECT k, s FROM u WHERE k IS NOT NULL OR w = 0) FROM t", SPREAD},
      {"SELECT id, v > ANY (SELECT w FROM u), v <= ALL (SELECT w FROM u) FROM t", SPREAD},
      {"SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > 9) FROM t", SPREAD},
      {"SELECT id, v IN (SELECT w FROM u WHERE u.s = t.s) FROM t", SPREAD},
      {"SELECT id FROM t WHERE k IN (-2, -1, 0, 1, 5, 7) AND s NOT IN ('s1', 's2', 'a', 'b', 'c', 'd')",
       SPREAD},
      {"SELECT id FROM t WHERE v > (SELECT avg(b.v) FROM t b WHERE b.k = t.k)", SPREAD},
      {"SELECT id, (SELECT sum(w) FROM u WHERE u.k = t.k) FROM t", SPREAD},
      {"SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t", SPREAD},
      {"SELECT id, (SELECT name FROM one WHERE one.k = t.k) FROM t", SPREAD},
      {"SELECT id, (SELECT w FROM u WHERE u.k = t.k ORDER BY w DESC LIMIT 1) FROM t", SPREAD},
      {"SELECT id, (SELECT list(w ORDER BY w) FROM u WHERE u.w < t.id AND u.s = t.s) FROM t", SPREAD},
  };
  CHECK(state, queries);
}

static void window_is_the_same(void **state) {
  static const query queries[] = {
      {"SELECT id, row_number() OVER (PARTITION BY k ORDER BY id), sum(v) OVER (PARTITION BY k) FROM t",
       SPREAD},
      {"SELECT id, rank() OVER (PARTITION BY k, s ORDER BY v), avg(x) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN 2 "
       "PRECEDING AND CURRENT ROW) FROM t",
       SPREAD},
      {"SELECT id, lag(v) OVER (PARTITION BY s ORDER BY id), first_value(v) OVER (PARTITION BY s ORDER BY id) FROM t",
       SPREAD},
      {"SELECT s, max(r), count(DISTINCT r) FROM (SELECT s, row_number() OVER (PARTITION BY s) AS r FROM t) GROUP BY s",
       SPREAD},
      {"SELECT id, row_number() OVER () FROM t", ONE},
      {"SELECT id, sum(v) OVER (ORDER BY id) FROM t", ONE},
      {"SELECT id, rank() OVER (PARTITION BY k ORDER BY id), rank() OVER (PARTITION BY s ORDER BY id) FROM t",
       ANY},
      {"SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) <= 2", SPREAD},
      {"SELECT k, sum(sum(v)) OVER (PARTITION BY k) FROM t GROUP BY k, s", SPREAD},
  };
  CHECK(state, queries);
}

static void set_operations_are_the_same(void **state) {
  static const query queries[] = {
      {"SELECT k FROM t UNION ALL SELECT k FROM u", SPREAD},
      {"SELECT k FROM t UNION SELECT k FROM u", SPREAD},
      {"SELECT k FROM t EXCEPT SELECT k FROM u", SPREAD},
      {"SELECT k FROM t EXCEPT ALL SELECT k FROM u", SPREAD},
      {"SELECT k FROM t INTERSECT SELECT k FROM u", SPREAD},
      {"SELECT k FROM t INTERSECT ALL SELECT k FROM u", SPREAD},
      {"SELECT id FROM t UNION ALL SELECT 1 UNION ALL SELECT max(id) FROM t", SPREAD},
      {"SELECT k, sum(n) FROM (SELECT k, count(*) n FROM t GROUP BY k UNION ALL SELECT k, w FROM u) GROUP BY k",
       SPREAD},
      {"SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id", SPREAD},
      {"SELECT DISTINCT ON (s) s, id FROM t", SPREAD},
      {"SELECT DISTINCT s, k FROM t", SPREAD},
      {"SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT w FROM u)", SPREAD},
  };
  CHECK(state, queries);
}

static void limits_and_orders_are_the_same(void **state) {
  static const query queries[] = {
      {"SELECT id FROM t LIMIT 7", SPREAD},
      {"SELECT id FROM t LIMIT 7 OFFSET 15", SPREAD},
      {"SELECT id FROM t OFFSET 55", SPREAD},
      {"SELECT id FROM t LIMIT 0", ANY},
      {"SELECT id FROM t LIMIT 10%", SPREAD},
      {"SELECT id, k FROM t ORDER BY k DESC NULLS FIRST, id LIMIT 9 OFFSET 3", SPREAD},
      {"SELECT id FROM t UNION ALL SELECT w FROM u ORDER BY 1 LIMIT 7 OFFSET 3", SPREAD},
      {"SELECT id, k FROM t ORDER BY k NULLS LAST, id", SPREAD},
      {"SELECT id FROM t ORDER BY v + 1, id", SPREAD},
      {"SELECT * FROM (SELECT id FROM t UNION ALL SELECT w FROM u) LIMIT 70", ANY},
      {"SELECT * FROM (SELECT k, id FROM t LIMIT 11) ORDER BY k, id", SPREAD},
      {"SELECT id FROM t LIMIT (SELECT 5)", ANY},
  };
  CHECK_IN_ORDER(state, queries);
}

static void ctes_are_run_once(void **state) {
  static const query queries[] = {
      {"WITH c AS MATERIALIZED (SELECT k, sum(v) AS n FROM t GROUP BY k) SELECT a.k, a.n, b.n FROM c a JOIN c b ON a.k = "
       "b.k + 1",
       SPREAD},
      {"WITH c AS MATERIALIZED (SELECT id, random() AS r FROM t) SELECT a.id FROM c a JOIN c b ON a.id = b.id AND a.r = "
       "b.r",
       SPREAD},
      {"WITH c AS MATERIALIZED (SELECT id, uuid() AS r FROM t) SELECT count(DISTINCT r), count(*) FROM (SELECT * FROM c "
       "UNION ALL SELECT * FROM c)",
       SPREAD},
      {"SELECT * FROM (WITH u AS MATERIALIZED (SELECT k, id AS w FROM t WHERE id % 3 = 0) SELECT a.w, b.w FROM u a, u b "
       "WHERE a.k = b.k)",
       SPREAD},
      {"WITH c AS MATERIALIZED (SELECT max(v) AS m FROM t) SELECT id FROM t, c WHERE v = m UNION ALL SELECT m FROM c",
       SPREAD},
      {"WITH c AS MATERIALIZED (SELECT id FROM t), d AS MATERIALIZED (SELECT id FROM c WHERE id % 2 = 0) SELECT c.id FROM "
       "c JOIN d ON c.id = d.id UNION ALL SELECT id FROM d",
       SPREAD},
      {"WITH c AS MATERIALIZED (SELECT id FROM t) SELECT * FROM (SELECT id FROM c LIMIT 5) UNION ALL SELECT * FROM "
       "(SELECT id FROM c LIMIT 3 OFFSET 40)",
       ANY},
      {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM u)) SELECT n FROM "
       "r JOIN t ON r.n = t.id",
       ONE},
  };
  CHECK(state, queries);
}

static void no_rows_give_what_no_rows_give(void **state) {
  static const query queries[] = {
      {"SELECT * FROM none", ANY},
      {"SELECT count(*), count(v), sum(v), avg(v), min(s), stddev(x), first(id), bool_and(v > 1) FROM none",
       ANY},
      {"SELECT k, count(*) FROM none GROUP BY k", ANY},
      {"SELECT count(*), sum(v) FROM t WHERE id = 1000", ANY},
      {"SELECT count(*), sum(v), first(v) FROM t WHERE id = 59", ANY},
      {"SELECT t.id FROM t LEFT JOIN none USING (id)", SPREAD},
      {"SELECT none.id FROM none RIGHT JOIN t USING (id)", SPREAD},
      {"SELECT t.id FROM t FULL JOIN none USING (id)", SPREAD},
      {"SELECT id FROM t WHERE k NOT IN (SELECT k FROM none)", SPREAD},
      {"SELECT a, b, count(*) FROM single GROUP BY a, b", ANY},
      {"SELECT id, single.a FROM t, single", SPREAD},
      {"SELECT count(*) FROM none n JOIN t ON n.k = t.k", ANY},
      {"SELECT max(id) FROM (SELECT id FROM none UNION ALL SELECT id FROM t)", SPREAD},
      {"SELECT 1, 'x'", ANY},
      {"SELECT * FROM range(5)", ONE},
      {"SELECT sum(i) FROM range(5) r(i) JOIN t ON t.id = r.i", ANY},
  };
  CHECK(state, queries);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_by_row_stay_in_file_order),
      cmocka_unit_test(aggregate_in_two_steps_is_the_same),
      cmocka_unit_test(average_divides_as_duckdb_does),
      cmocka_unit_test(aggregate_of_all_rows_is_the_same),
      cmocka_unit_test(grouping_sets_are_the_same),
      cmocka_unit_test(join_by_keys_is_the_same),
      cmocka_unit_test(join_without_keys_is_the_same),
      cmocka_unit_test(subqueries_know_all_nulls),
      cmocka_unit_test(window_is_the_same),
      cmocka_unit_test(set_operations_are_the_same),
      cmocka_unit_test(limits_and_orders_are_the_same),
      cmocka_unit_test(ctes_are_run_once),
      cmocka_unit_test(no_rows_give_what_no_rows_give),
  };
  return cmocka_run_group_tests(tests, open_case, cut_case_teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which queries may give other rows when they are computed again, and what is named as the reason. */
#include "support/plan_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_file(c, "d.csv", "a,b\n1,x\n2,y\n");
  plan_name(c, "v", "FROM '@/d.csv'");
  plan_name(c, "r", "SELECT a, random() AS u FROM v");
  plan_name(c, "t", "SELECT a, now() AS at FROM v");
  return 0;
}

static void query_with_a_reason_names_it(void **state) {
  static const char *const cases[][2] = {
      {"SELECT random() FROM v", "random"},
      {"SELECT uuid()", "uuid"},
      {"SELECT gen_random_uuid()", "gen_random_uuid"},
      {"SELECT uuidv7()", "uuidv7"},
      {"SELECT a FROM v WHERE random() < 0.5", "random"},
      {"FROM r", "random"},
      {"SELECT count(*) FROM v, r WHERE r.u > 0.5", "random"},
      {"SELECT now()", "now"},
      {"SELECT current_date, a FROM v", "current_date"},
      {"SELECT a FROM v WHERE DATE '2020-01-01' < today()", "today"},
      {"SELECT a FROM t", "now"},
      {"SELECT age(DATE '2020-01-01')", "now"},
      {"FROM v LIMIT 1", "LIMIT without ORDER BY"},
      {"FROM v LIMIT 10%", "LIMIT without ORDER BY"},
      {"FROM (FROM v LIMIT 1) ORDER BY a", "LIMIT without ORDER BY"},
      {"FROM v OFFSET 1", "LIMIT without ORDER BY"},
      {"SELECT row_number() OVER (ORDER BY a) FROM v", "ROW_NUMBER"},
      {"SELECT row_number() OVER () FROM v", "ROW_NUMBER"},
      {"SELECT ntile(2) OVER (ORDER BY a) FROM v", "NTILE"},
      {"SELECT lag(a) OVER (ORDER BY b) FROM v", "LAG"},
      {"SELECT lead(a) OVER (ORDER BY b) FROM v", "LEAD"},
      {"SELECT first_value(a) OVER (PARTITION BY b ORDER BY a) FROM v", "FIRST_VALUE"},
      {"SELECT last_value(a) OVER (ORDER BY b) FROM v", "LAST_VALUE"},
      {"SELECT nth_value(a, 2) OVER (ORDER BY b) FROM v", "NTH_VALUE"},
      {"SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM v",
       "a window frame of ROWS"},
      {"SELECT string_agg(b, ',') OVER (ORDER BY a) FROM v", "string_agg"},
      {"SELECT first(a) FROM v", "first"},
      {"SELECT first(a), count(*) FROM v", "first"},
      {"SELECT last(a) FROM v", "last"},
      {"SELECT any_value(a) FROM v GROUP BY b", "any_value"},
      {"SELECT string_agg(b) FROM v", "string_agg"},
      {"SELECT list(b ORDER BY b) FROM v", "list"},
      {"SELECT array_agg(b) FROM v", "array_agg"},
      {"SELECT mode(a) FROM v", "mode"},
      {"SELECT arg_max(a, b) FROM v", "arg_max"},
      {"SELECT min_by(a, b) FROM v", "min_by"},
      {"SELECT reservoir_quantile(a, 0.5) FROM v", "reservoir_quantile"},
      {"FROM v USING SAMPLE 1", "SAMPLE"},
      {"FROM v TABLESAMPLE 10%", "SAMPLE"},
      {"SELECT DISTINCT ON (b) * FROM v", "DISTINCT ON without ORDER BY"},
      {"FROM v POSITIONAL JOIN v w", "POSITIONAL JOIN"},
      {"SELECT * FROM v ASOF JOIN v w ON v.a >= w.a", "ASOF JOIN"},
      {"SELECT sum(a) EXPORT_STATE FROM v", "a plan that DuckDB cannot write down"},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, cases[i][0]);
    lowered l = plan_lowered(c, r);
    plan_traits traits;
    assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, &c->error), HF_OK);
    if (!traits.indeterminate || strcmp(traits.why, cases[i][1]) != 0) {
      print_error("%s: %d %s\n", cases[i][0], traits.indeterminate, traits.why);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

static void query_without_a_reason_is_determinate(void **state) {
  static const char *const cases[] = {
      "FROM v",
      "SELECT a + 1 FROM v WHERE b LIKE 'x%' ORDER BY a",
      "FROM v ORDER BY a LIMIT 1",
      "FROM v ORDER BY a LIMIT 100000",
      "SELECT a FROM v ORDER BY a, b OFFSET 1",
      "SELECT DISTINCT b FROM v",
      "SELECT DISTINCT ON (b) * FROM v ORDER BY b, a",
      "SELECT b, count(*), sum(a), min(a), avg(a), median(a), stddev(a), count(DISTINCT a) FROM v GROUP BY ALL",
      "SELECT rank() OVER (ORDER BY a), dense_rank() OVER (ORDER BY a), cume_dist() OVER (ORDER BY a) FROM v",
      "SELECT sum(a) OVER (ORDER BY a), count(*) OVER (PARTITION BY b) FROM v",
      "SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM v",
      "SELECT a, (SELECT max(a) FROM v) FROM v",
      "SELECT (SELECT a FROM v WHERE a = 1) FROM v",
      "SELECT (SELECT w.a FROM v w WHERE w.a = v.a) FROM v",
      "SELECT v.a FROM v JOIN v w USING (a) WHERE v.a IN (SELECT a FROM v) AND EXISTS (FROM v u WHERE u.b = v.b)",
      "FROM v UNION FROM v",
      "FROM v EXCEPT FROM v",
      "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 5) SELECT sum(i) FROM t",
      "VALUES (1), (2)",
      "SELECT unnest([1, 2])",
      "PIVOT v ON b IN ('x') USING sum(a)",
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, cases[i]);
    lowered l = plan_lowered(c, r);
    plan_traits traits;
    assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, &c->error), HF_OK);
    if (traits.indeterminate || traits.why[0] != '\0') {
      print_error("%s: %s\n", cases[i], traits.why);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

static void held_input_that_is_indeterminate_passes_it_on(void **state) {
  static const data_type number = {.kind = TYPE_INTEGER};
  static const column columns[] = {{"a", &number}};
  plan_case *c = *state;
  relation *input = plan_relation(c, "FROM v"), *node = NULL;
  uuid id = uuid_new(), session = uuid_new();
  assert_int_equal(relation_from_cache(&id, &session, input, "MEMORY_ONLY", &node, NULL), HF_OK);
  plan_bind(c, "h", node);
  relation *r = plan_relation(c, "SELECT a FROM h");
  c->held = (held_info){.answer = HELD_READ, .columns = {1, columns}, .rows = 1, .indeterminate = true};
  lowered l = plan_lowered(c, r);
  plan_traits traits;
  assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, NULL), HF_OK);
  assert_true(traits.indeterminate);
  c->held.indeterminate = false;
  l = plan_lowered(c, r);
  assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, NULL), HF_OK);
  assert_false(traits.indeterminate);
  relation_release(input);
  relation_release(node);
  relation_release(r);
}

static void collation_of_a_result_column_is_told(void **state) {
  static const char *const cases[][2] = {
      {"SELECT b COLLATE NOCASE AS b FROM v", "nocase"},
      {"SELECT a, b COLLATE NOCASE AS b FROM v ORDER BY a LIMIT 1", "nocase"},
      {"SELECT DISTINCT b COLLATE NOCASE AS b FROM v", "nocase"},
      {"SELECT max(a) AS a, b COLLATE NOCASE AS k FROM v GROUP BY k", "nocase"},
      {"SELECT b COLLATE NOCASE AS b FROM v UNION ALL SELECT b FROM v", "nocase"},
      {"SELECT [b COLLATE NOCASE] AS b FROM v", "nocase"},
      {"SELECT upper(b COLLATE NOCASE) AS b, now() FROM v", "nocase"},
      {"SELECT max(b COLLATE NOCASE) FROM v", "nocase"},
      {"SELECT lag(b COLLATE NOCASE) OVER (ORDER BY a) FROM v", "nocase"},
      {"SELECT *, sum(a) OVER () FROM (SELECT a, b COLLATE NOCASE AS b FROM v)", "nocase"},
      {"FROM v", ""},
      {"SELECT b FROM v ORDER BY b COLLATE NOCASE", ""},
      {"SELECT b, sum(a) OVER (PARTITION BY b COLLATE NOCASE) FROM v", ""},
      {"SELECT CASE WHEN b COLLATE NOCASE = 'x' THEN 'y' ELSE b END FROM v", ""},
      {"SELECT v.b FROM v JOIN v w ON v.b COLLATE NOCASE = w.b", ""},
      {"SELECT length(b COLLATE NOCASE) FROM v", ""},
      {"SELECT a FROM v WHERE b COLLATE NOCASE = 'X'", ""},
      {"SELECT count(*) FROM v GROUP BY b COLLATE NOCASE", ""},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, cases[i][0]);
    lowered l = plan_lowered(c, r);
    plan_traits traits;
    assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, &c->error), HF_OK);
    if (strcasecmp(traits.collation, cases[i][1]) != 0) {
      print_error("%s: \"%s\"\n", cases[i][0], traits.collation);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, plan_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(query_with_a_reason_names_it),
      CASE(query_without_a_reason_is_determinate),
      CASE(held_input_that_is_indeterminate_passes_it_on),
      CASE(collation_of_a_result_column_is_told),
  };
  return cmocka_run_group_tests_name("traits", tests, NULL, NULL);
}

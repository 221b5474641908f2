/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical forms: which plans are one plan, of SQL text and of steps; and that paths mean what they meant when they were
 * written.
 */
#include "support/build_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_file(c, "p.csv", "k,name\n1,a\n2,b\n");
  plan_file(c, "sub/p.csv", "k,name\n7,z\n");
  plan_name(c, "v", "FROM '@/p.csv'");
  plan_name(c, "same_as_v", "FROM '@/p.csv' -- a comment");
  plan_name(c, "other", "SELECT k + 1 AS k, name FROM '@/p.csv'");
  return 0;
}

/* By fingerprint, by comparing, and by the text to keep: they must agree. */
static bool are_one(const relation *a, const relation *b) {
  char x[33], y[33];
  buf kept_a = {0}, kept_b = {0};
  relation_fingerprint(a, x);
  relation_fingerprint(b, y);
  relation_canonical(a, &kept_a);
  relation_canonical(b, &kept_b);
  bool equal = strcmp(x, y) == 0;
  assert_int_equal(relation_equal(a, b), equal);
  assert_int_equal(strcmp(buf_cstr(&kept_a), buf_cstr(&kept_b)) == 0, equal);
  buf_reset(&kept_a);
  buf_reset(&kept_b);
  return equal;
}

typedef struct pair {
  const char *a, *b;
  bool same;
} pair;

static void sql_is_one_plan_by_its_tree(void **state) {
  static const pair cases[] = {
      {"SELECT k FROM v", "select  k\n from /* x */ v ;", true},
      {"SELECT k FROM v WHERE k = 10", "SELECT k FROM v WHERE k = 1_0", true},
      {"SELECT 'it''s' AS s", "SELECT $$it's$$ AS s", true},
      {"SELECT k FROM v WHERE k <> 1", "SELECT k FROM v WHERE k != 1", true},
      {"SELECT \"k\" FROM v", "SELECT k FROM v", true},
      {"SELECT LENGTH(name) AS n FROM v", "SELECT length(name) AS n FROM v", true},
      {"SELECT k FROM v", "SELECT k FROM same_as_v", true},
      {"SELECT v.k FROM v", "SELECT same_as_v.k FROM same_as_v",
       false}, /* not seen as one, which is only a miss */
      {"SELECT k FROM v", "SELECT k FROM main.v", true},
      {"SELECT k FROM v", "SELECT k FROM v AS w", true},
      {"SELECT w.k FROM v w, other", "SELECT w.k FROM v, other w", false},
      {"SELECT w.k FROM v w, other x", "SELECT w.k FROM v x, other w", false},
      {"SELECT k FROM v", "SELECT k FROM other", false},
      {"SELECT k FROM v", "SELECT k AS j FROM v", false},
      {"SELECT k, name FROM v", "SELECT name, k FROM v", false},
      {"SELECT 1 AS x", "SELECT 1.0 AS x", false},
      {"SELECT 0.1 AS x", "SELECT 1e-1 AS x", false},
      {"SELECT '1' AS x", "SELECT 1 AS x", false},
      {"SELECT k FROM v WHERE k = 1", "SELECT k FROM v WHERE k = 2", false},
      {"SELECT DISTINCT k FROM v", "SELECT k FROM v", false},
      {"SELECT k FROM v ORDER BY k", "SELECT k FROM v ORDER BY k DESC", false},
      {"SELECT k FROM v LIMIT 1", "SELECT k FROM v LIMIT 2", false},
      {"SELECT * FROM (v CROSS JOIN other) FULL JOIN same_as_v ON true",
       "SELECT * FROM v, other FULL JOIN same_as_v ON true", false},
      {"SELECT v.k FROM v, other", "SELECT v.k FROM other, v", false},
      {"SELECT a.k FROM v a, other b", "SELECT a.k FROM v b, other a", false},
      {"WITH v AS (SELECT 1 AS k) SELECT k FROM v", "SELECT k FROM v", false},
      {"SELECT k FROM v UNION SELECT k FROM v", "SELECT k FROM v UNION ALL SELECT k FROM v", false},
      {"SELECT k FROM read_csv('@/p.csv')", "SELECT k FROM read_csv(['@/p.csv'])", true},
      {"SELECT k FROM read_csv('@/p.csv', header = true)", "SELECT k FROM read_csv('@/p.csv')", false},
      {"SELECT k FROM '@/p.csv'", "SELECT k FROM '@/sub/p.csv'", false},
      {"SELECT sum(k) FILTER (WHERE k > 1) FROM v", "SELECT sum(k) FROM v", false},
      {"DESCRIBE v", "SUMMARIZE v", false},
      {"SELECT CAST(k AS INT) AS k FROM v", "SELECT k::INT AS k FROM v", true},
      {"SELECT CAST(k AS INT) AS k FROM v", "SELECT TRY_CAST(k AS INT) AS k FROM v", false},
      {"SELECT true AS t", "SELECT false AS t", false},
      {"SELECT (1 + 2) AS x", "SELECT 1 + 2 AS x", true},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *a = plan_relation(c, cases[i].a), *b = plan_relation(c, cases[i].b);
    if (are_one(a, b) != cases[i].same) {
      print_message("%s | %s: %d\n", cases[i].a, cases[i].b, !cases[i].same);
      failures++;
    }
    relation_release(a);
    relation_release(b);
  }
  assert_int_equal(failures, 0);
}

static void steps_are_one_plan_by_what_they_do(void **state) {
  static const pair cases[] = {
      {"v >> filter: k > 1", "v >> filter: k>1 /* x */", true},
      {"v >> filter: k > 1", "same_as_v >> filter: k > 01", true},
      {"v >> filter: k > 1", "v >> alias: a >> filter: a.k > 1", true},
      {"v >> filter: k > 1 >> alias: a", "v >> filter: k > 1", true},
      {"v >> filter: k > 1", "other >> filter: k > 1", false},
      {"v >> filter: k > 1", "v >> filter: k > 2", false},
      {"v >> filter: k > 1 >> filter: k > 2", "v >> filter: k > 2 >> filter: k > 1", false},
      {"v >> project: k | name", "v >> project: *", true},
      {"v >> project: k | name", "v >> project: name | k", false},
      {"v >> project: k AS j", "v >> project: k AS i", false},
      {"v >> project: k AS j", "v >> project: j: k", true},
      {"v >> with: j = k + 1", "v >> with: j = k+ 1", true},
      {"v >> with: j = k", "v >> with: j = name", false},
      {"v >> drop: name", "v >> drop: NAME | nothing", true},
      {"v >> drop: name", "v >> drop: k", false},
      {"v >> rename: k = j", "v >> rename: name = j", false},
      {"v >> agg: name ; sum(k) AS s", "v >> agg: name ; sum( k ) AS s", true},
      {"v >> agg: name ; sum(k) AS s", "v >> agg: name ; sum(DISTINCT k) AS s", false},
      {"v >> sort: k DESC", "v >> sort: k", false},
      {"v >> limit: 2", "v >> limit: 2,1", false},
      {"v >> limit: ,1 >> limit: 2", "v >> limit: 2,1", true},
      {"v >> limit: 2 >> limit: ,1", "v >> limit: 2,1", false},
      {"v >> filter: k > 1 | k < 5", "v >> filter: (k > 1) AND (k < 5)", true},
      {"v >> distinct: k", "v >> distinct", false},
      {"v >> unionall: other", "v >> union: other", false},
      {"v >> unionall: other", "other >> unionall: v", false},
      {"v >> join: other ; USING k", "v >> left: other ; USING k", false},
      {"v >> filter: k IN (SELECT k FROM v)", "v >> filter: k IN (SELECT k FROM same_as_v)", true},
      {"v >> filter: k IN (SELECT k FROM v)", "v >> filter: k IN (SELECT k FROM other)", false},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *a = steps_build(c, cases[i].a), *b = steps_build(c, cases[i].b);
    if (are_one(a, b) != cases[i].same) {
      print_message("%s | %s: %d\n", cases[i].a, cases[i].b, !cases[i].same);
      failures++;
    }
    relation_release(a);
    relation_release(b);
  }
  assert_int_equal(failures, 0);
}

static void path_means_what_it_meant_when_it_was_written(void **state) {
  plan_case *c = *state;
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(c->dir), 0);
  relation *r = plan_relation(c, "SELECT p.k FROM 'p.csv'");
  relation *call = plan_relation(c, "SELECT k FROM read_csv(['p.csv', './p.csv'])");
  relation *missing = plan_relation(c, "SELECT k FROM 'nowhere.csv'");
  assert_int_equal(chdir("sub"), 0);
  relation *below = plan_relation(c, "SELECT p.k FROM 'p.csv'");
  const char *first = steps_rows(c, r), *second = steps_rows(c, call), *third = steps_rows(c, below);
  assert_int_equal(chdir(before), 0);
  assert_string_equal(first, plan_rows(c, "SELECT k FROM v"));
  assert_string_equal(second, plan_rows(c, "SELECT k FROM v UNION ALL SELECT k FROM v"));
  assert_string_equal(third, plan_rows(c, "SELECT 7::BIGINT AS k"));
  assert_false(are_one(r, below));
  source *found = NULL;
  assert_int_equal(source_resolve(c->sources, relation_look(missing).spots[0].source, &found, &c->error),
                   HF_E_FILE_NOT_FOUND);
  assert_non_null(strstr(c->error.message, ": nowhere.csv"));
  relation_release(r);
  relation_release(call);
  relation_release(missing);
  relation_release(below);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sql_is_one_plan_by_its_tree),
      cmocka_unit_test(steps_are_one_plan_by_what_they_do),
      cmocka_unit_test(path_means_what_it_meant_when_it_was_written),
  };
  return cmocka_run_group_tests(tests, open_case, plan_case_close);
}

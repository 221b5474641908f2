/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations built step by step: what they give is what plain DuckDB gives for the query that a person would write, names
 * and types of columns included; and what is refused, with its words and its position.
 */
#include "support/build_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_exec(c, "COPY (SELECT i AS k, i % 3 AS g, (i * 1.5)::DOUBLE AS x, 'n' || i AS name, [i, i + 1] AS l, "
               "{'a': i, 'b': 'z' || i} AS s FROM range(10) t(i)) TO '@/p.parquet'");
  plan_file(c, "d.csv", "k,day,word\n1,2020-01-31,ab\n2,2020-02-01,\n3,2020-02-28,c\n7,2021-01-01,d\n");
  plan_name(c, "v", "FROM '@/p.parquet'");
  plan_name(c, "d", "FROM '@/d.csv'");
  plan_name(c, "dup", "SELECT 1 AS a, 2 AS b, 3 AS A");
  plan_name(c, "odd", "SELECT 1 AS \"a b\", 2 AS \"q\"\"q\", 3 AS \"SELECT\", 4 AS größe");
  plan_name(c, "none", "SELECT k, name FROM v WHERE false");
  plan_name(c, "t2", "SELECT k + 5 AS k, 'w' || k AS w FROM v");
  return 0;
}

static const struct {
  const char *line, *sql;
} SAME[] = {
    {"v >> project: k + 1 AS j | name", "SELECT k + 1 AS j, name FROM v"},
    {"v >> project: k + 1 | upper(name) | s.a | l[1] | X", "SELECT k + 1, upper(name), s.a, l[1], X FROM v"},
    {"v >> project: *", "SELECT * FROM v"},
    {"v >> project: * | k * 2 AS kk", "SELECT *, k * 2 AS kk FROM v"},
    {"v >> project: * EXCLUDE (l, s) >> filter: k > 3", "SELECT * EXCLUDE (l, s) FROM v WHERE k > 3"},
    {"v >> project: COLUMNS('k|g') + 1", "SELECT COLUMNS('k|g') + 1 FROM v"},
    {"v >> project: k | unnest(l) AS u >> filter: u > 4",
     "FROM (SELECT k, unnest(l) AS u FROM v) WHERE u > 4"},
    {"v >> project: k | unnest(s)", "SELECT k, unnest(s) FROM v"},
    {"v >> project: k | g >> project: g | k >> project: k", "SELECT k FROM v"},
    {"v >> filter: k > 2 >> filter: g = 1", "FROM v WHERE k > 2 AND g = 1"},
    {"v >> filter: k > 2 | g = 1", "FROM v WHERE k > 2 AND g = 1"},
    {"v >> filter: k > 5 OR g = 0 >> filter: k < 9 OR g = 1",
     "FROM v WHERE (k > 5 OR g = 0) AND (k < 9 OR g = 1)"},
    {"v >> with: k = k + 1 >> with: k = k * 2 >> project: k", "SELECT (k + 1) * 2 AS k FROM v"},
    {"v >> with: k2 = k + 1 | g = k - 1 >> project: k | k2 | g", "SELECT k, k + 1 AS k2, k - 1 AS g FROM v"},
    {"v >> with: K = 7 >> project: *", "SELECT * REPLACE (7 AS K) FROM v"},
    {"v >> with: c = 1 >> with: d = c + k::TINYINT >> project: d",
     "SELECT c + k::TINYINT AS d FROM (SELECT *, 1 AS c FROM v)"},
    {"v >> with: y = x + 1 >> filter: y > 5 >> project: y",
     "SELECT y FROM (SELECT x + 1 AS y FROM v) WHERE y > 5"},
    {"v >> drop: l | s | nothing", "SELECT k, g, x, name FROM v"},
    {"v >> drop: X >> project: k | name", "SELECT k, name FROM v"},
    {"v >> rename: k = kk | name = k >> project: kk | k", "SELECT k AS kk, name AS k FROM v"},
    {"v >> project: x AS k | k AS x >> filter: k > 4.0 >> project: x", "SELECT k AS x FROM v WHERE x > 4.0"},
    {"v >> agg: g ; sum(x) AS t | count(*) >> sort: g",
     "SELECT g, sum(x) AS t, count(*) FROM v GROUP BY g ORDER BY g"},
    {"v >> agg: k % 2 AS odd ; max(name) AS m >> sort: odd",
     "SELECT k % 2 AS odd, max(name) AS m FROM v GROUP BY ALL ORDER BY 1"},
    {"v >> agg: g ; sum(k) + g AS t >> sort: t", "SELECT g, sum(k) + g AS t FROM v GROUP BY g ORDER BY t"},
    {"v >> agg:  ; sum(x) AS t | min(name)", "SELECT sum(x) AS t, min(name) FROM v"},
    {"none >> agg:  ; sum(k) AS t | count(*) AS n", "SELECT sum(k) AS t, count(*) AS n FROM none"},
    {"v >> agg:  ; 1 AS one", "SELECT 1 AS one"},
    {"v >> agg: g >> sort: g DESC", "SELECT DISTINCT g FROM v ORDER BY g DESC"},
    {"v >> sort: g DESC | name ASC NULLS FIRST >> project: name", "SELECT name FROM v ORDER BY g DESC, name"},
    {"v >> sort: g, x DESC", NULL},
    {"v >> sort: -k >> limit: 3 >> project: k", "SELECT k FROM v ORDER BY -k LIMIT 3"},
    {"v >> sort: k >> limit: 3,2 >> project: k", "SELECT k FROM v ORDER BY k LIMIT 3 OFFSET 2"},
    {"v >> sort: k >> limit: ,3 >> limit: 4 >> limit: ,1 >> project: k",
     "SELECT k FROM v ORDER BY k LIMIT 3 OFFSET 4"},
    {"v >> sort: k >> limit: ,8 >> project: k", "SELECT k FROM v ORDER BY k OFFSET 8"},
    {"v >> sort: k DESC >> limit: 4 >> filter: g = 0 >> project: k + 1 AS k",
     "SELECT k + 1 AS k FROM (FROM v ORDER BY k DESC LIMIT 4) WHERE g = 0"},
    {"v >> project: g >> distinct >> sort: g", "SELECT DISTINCT g FROM v ORDER BY g"},
    {"v >> sort: k DESC >> distinct: g >> sort: g >> project: g | k",
     "SELECT DISTINCT ON (g) g, k FROM (FROM v ORDER BY k DESC) ORDER BY g"},
    {"v >> project: k | g >> unionall: t2 >> sort: k | g",
     "SELECT k, g::VARCHAR AS g FROM v UNION ALL FROM t2 ORDER BY k, g"},
    {"v >> project: k >> byname: t2 >> sort: k | w",
     "SELECT k FROM v UNION ALL BY NAME FROM t2 ORDER BY k, w"},
    {"v >> project: g >> union: v1 >> sort: g", NULL},
    {"v >> project: k >> intersect: only_k >> sort: k", NULL},
    {"v >> join: d ; USING k >> sort: k", "SELECT * FROM v JOIN d USING (k) ORDER BY k"},
    {"v >> full: d ; USING k >> sort: k >> project: k | word",
     "SELECT k, word FROM v FULL JOIN d USING (k) ORDER BY k"},
    {"v >> right: t2 ; USING k >> sort: k >> project: k | w | name",
     "SELECT k, w, name FROM v RIGHT JOIN t2 USING (k) ORDER BY k"},
    {"v >> semi: d ; USING k >> sort: k", "SELECT * FROM v SEMI JOIN d USING (k) ORDER BY k"},
    {"v >> alias: a >> anti: d ; a.k = day.day('x')", NULL},
    {"v >> alias: a >> anti: d ; a.k = word.length() >> sort: k", NULL},
    {"v >> cross: d >> agg:  ; count(*) AS n", "SELECT count(*) AS n FROM v, d"},
    {"v >> join: d >> agg:  ; count(*) AS n", "SELECT count(*) AS n FROM v, d"},
    {"v >> left: d ; name = 'n' || word >> agg:  ; count(*) AS n",
     "SELECT count(*) AS n FROM v LEFT JOIN d ON name = 'n' || word"},
    {"dup >> project: b", "SELECT b FROM dup"},
    {"dup >> filter: b = 2", "SELECT 1 AS a, 2 AS b, 3 AS A"},
    {"dup >> with: c = b + 1 >> drop: b", "SELECT 1 AS a, 3 AS A, 3 AS c"},
    {"odd >> filter: \"a b\" = 1 >> project: \"q\"\"q\" | \"SELECT\" + 1 AS \"s t\" | größe",
     "SELECT \"q\"\"q\", \"SELECT\" + 1 AS \"s t\", größe FROM odd"},
    {"v >> project: list_transform(l, lambda k: k + 1) AS l2 | k",
     "SELECT list_transform(l, lambda k: k + 1) AS l2, k FROM v"},
    {"v >> with: z = k >> project: list_transform(l, lambda q: q + z) AS l2",
     "SELECT list_transform(l, lambda q: q + k) AS l2 FROM v"},
    {"v >> filter: k IN (SELECT k FROM d) >> project: k | name >> sort: k",
     "SELECT k, name FROM v WHERE k IN (SELECT k FROM d) ORDER BY k"},
    {"v >> with: n = (SELECT count(*) FROM d WHERE d.k < v.k) >> project: k", NULL},
    {"v >> alias: o >> with: n = (SELECT count(*) FROM d WHERE d.k < o.k) >> project: k | n >> sort: k",
     "SELECT k, (SELECT count(*) FROM d WHERE d.k < o.k) AS n FROM v o ORDER BY k"},
    {"v >> project: k | (SELECT max(k) FROM d) >> filter: k > 7",
     "FROM (SELECT k, (SELECT max(k) FROM d) FROM v) WHERE k > 7"},
    {"v >> project: k AS j | name >> filter: j IN (SELECT k FROM d) >> project: name >> sort: name",
     "SELECT name FROM v WHERE k IN (SELECT k FROM d) ORDER BY name"},
    {"v >> with: r = row_number() OVER (ORDER BY k DESC) >> filter: r <= 2 >> project: k | r >> sort: r",
     "SELECT k, r FROM (SELECT k, row_number() OVER (ORDER BY k DESC) AS r FROM v) WHERE r <= 2 ORDER BY r"},
    {"v >> filter: k < 5 >> with: t = sum(k) OVER () >> filter: k > 2 >> project: k | t >> sort: k",
     "SELECT k, t FROM (SELECT k, sum(k) OVER () AS t FROM v WHERE k < 5) WHERE k > 2 ORDER BY k"},
    {"v >> project: s >> project: s.a + 1 AS a1 | s.b", "SELECT s.a + 1 AS a1, s.b FROM v"},
    {"v >> project: {'a': k + 1} AS q >> project: q.a", "SELECT k + 1 AS a FROM v"},
    {"v >> project: name AS y >> project: struct_pack(y) AS p",
     "SELECT struct_pack(y) AS p FROM (SELECT name AS y FROM v)"},
    {"v >> project: name AS y >> project: y.upper() AS p", "SELECT upper(name) AS p FROM v"},
    {"v >> project: k AS a | g AS b >> project: b AS a | a AS b >> project: a - b AS c",
     "SELECT g - k AS c FROM v"},
    {"v >> alias: a >> project: a.k | a.s.a | a.*", "SELECT a.k, a.s.a, a.* FROM v a"},
    {"v >> alias: a >> project: a", "SELECT a FROM v a"},
    {"v >> repartition: 8 | k", "SELECT * FROM v"},
    {"v >> filter: k > 2 >> repartition: 8 | k | name >> with: z = k >> alias: a >> project: a.z",
     "SELECT k AS z FROM v WHERE k > 2"},
    {"v >> alias: a >> join: t2b ; a.k = b.k >> project: a.k | b.w | b.k + 1 AS kk >> sort: w",
     "SELECT a.k, b.w, b.k + 1 AS kk FROM v a JOIN t2 b ON a.k = b.k ORDER BY w"},
    {"v >> alias: a >> join: t2b ; a.k = b.k >> filter: b.k > 7 >> project: b.* >> sort: k",
     "SELECT b.* FROM v a JOIN t2 b ON a.k = b.k WHERE b.k > 7 ORDER BY k"},
    {"v >> alias: a >> join: t2b ; a.k = b.k >> drop: l | s >> sort: w",
     "SELECT a.* EXCLUDE (l, s), b.* FROM v a JOIN t2 b ON a.k = b.k ORDER BY w"},
    {"v >> project: k::VARCHAR AS c >> filter: c > '5' -- a comment",
     "SELECT k::VARCHAR AS c FROM v WHERE k::VARCHAR > '5'"},
    {"v >> with: m = (SELECT max(w) FROM (VALUES (1), (k)) t(w)) >> project: k | m >> sort: k",
     "SELECT k, (SELECT max(w) FROM (VALUES (1), (k)) t(w)) AS m FROM v ORDER BY k"},
    {"v >> filter: EXISTS (SELECT * FROM d WHERE d.k = 1) >> project: k >> sort: k",
     "SELECT k FROM v ORDER BY k"},
    {"v >> project: l | k >> filter: k IN (SELECT unnest([1, 2])) >> project: k >> sort: k",
     "SELECT k FROM v WHERE k IN (1, 2) ORDER BY k"},
    {"v >> project: list_transform(l, lambda q: q + g) AS t | k AS z >> project: z | t >> filter: z > 2 >> with: z = t[1] >> sort: z",
     "SELECT * FROM (SELECT t[1] AS z, t FROM (SELECT list_transform(l, lambda q: q + g) AS t, k FROM v) WHERE k > 2) ORDER BY z"},
    {"v >> project: 'a' AS c | NULL AS n >> project: c || 'b' AS d | n",
     "SELECT 'ab' AS d, NULL AS n FROM v"},
    {"v >> project: y: k + 1 | k j", "SELECT k + 1 AS y, k AS j FROM v"},
    {"v >> project: TRY(CAST(name AS INT)) AS a | TRY_CAST(k AS TINYINT) AS b",
     "SELECT TRY(CAST(name AS INT)) AS a, TRY_CAST(k AS TINYINT) AS b FROM v"},
};

static void steps_give_what_plain_duckdb_gives(void **state) {
  plan_case *c = *state;
  size_t failures = 0;
  relation *b = steps_build(c, "t2 >> alias: b");
  plan_bind(c, "t2b", b);
  relation_release(b);
  for (size_t i = 0; i < sizeof SAME / sizeof SAME[0]; i++) {
    if (SAME[i].sql == NULL) {
      continue;
    }
    relation *r = steps_build(c, SAME[i].line);
    lowered l = plan_lowered(c, r);
    schema described = {0};
    const char *whole = plan_whole_text(c, &l);
    hf_status status = plan_describe(c->planner, &l, c->memory, &described, &c->error);
    const char *found = plan_rows_or_error(c, whole), *wanted = plan_rows(c, plan_text(c, SAME[i].sql));
    if (status != HF_OK || strcmp(found, wanted) != 0) {
      print_message("%s\n%s\n%s%s\n%s\n", SAME[i].line, whole, found, wanted,
                    status == HF_OK ? "" : c->error.message);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

static void columns_are_known_when_a_step_is_built(void **state) {
  static const struct {
    const char *line, *shape;
  } cases[] = {
      {"v >> project: k + 1 | s.a | X | name AS q", "(k + 1) BIGINT, a BIGINT, x DOUBLE, q VARCHAR"},
      {"dup >> filter: b = 2", "a INTEGER, b INTEGER, A INTEGER"},
      {"dup >> with: c = b", "a INTEGER, b INTEGER, A INTEGER, c INTEGER"},
      {"v >> agg: g ; count(*) | sum(k)", "g BIGINT, count_star() BIGINT, sum(k) HUGEINT"},
      {"t2 >> join: t2 ; USING k", "k BIGINT, w VARCHAR, w VARCHAR"},
      {"t2 >> cross: t2", "k BIGINT, w VARCHAR, k BIGINT, w VARCHAR"},
      {"d >> full: t2 ; USING k >> project: k", "k BIGINT"},
      {"t2 >> byname: d", "k BIGINT, w VARCHAR, day DATE, word VARCHAR"},
      {"v >> project: COLUMNS('k|g') >> rename: k = j", "j BIGINT, g BIGINT"},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = steps_build(c, cases[i].line);
    assert_string_equal(steps_shape(c, r), cases[i].shape);
    lowered l = plan_lowered(c, r);
    schema described;
    assert_int_equal(plan_describe(c->planner, &l, c->memory, &described, &c->error), HF_OK);
    assert_true(schema_equal(&described, relation_columns(r)));
    relation_release(r);
  }
}

static void step_that_is_wrong_says_where(void **state) {
  static const struct {
    const char *line, *step;
    hf_status code;
    int position;
    const char *words;
  } cases[] = {
      {"v", "filter: k > 3) UNION (SELECT 1", HF_E_SYNTAX, 5, "parenthesis"},
      {"v", "filter: k > 3; SELECT 1", HF_E_SYNTAX, 5, "';'"},
      {"v", "project: k FROM v", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: k, g", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: DISTINCT k", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: 1 WHERE true", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: 1 ORDER BY 1", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: 1 UNION SELECT 2", HF_E_SYNTAX, -1, "one expression"},
      {"v", "project: k +", HF_E_SYNTAX, -1, ""},
      {"v", "project: 'a", HF_E_SYNTAX, 0, ""},
      {"v", "project: (k", HF_E_SYNTAX, 2, "not closed"},
      {"v", "project: k + nam", HF_E_COLUMN_NOT_FOUND, 4, "nam"},
      {"v", "filter: g = 1 AND kk > 3", HF_E_COLUMN_NOT_FOUND, 10, "kk"},
      {"v", "project: k | length(nme)", HF_E_COLUMN_NOT_FOUND, 7, "nme"},
      {"v", "sort: k | nme DESC", HF_E_COLUMN_NOT_FOUND, 0, "nme"},
      {"v", "agg: g ; sum(xx)", HF_E_COLUMN_NOT_FOUND, 4, "xx"},
      {"v", "agg: g ; k", HF_E_BIND, 0, "GROUP BY"},
      {"v", "project: sum(k)", HF_E_BIND, -1, "aggregate"},
      {"v", "filter: sum(k) > 1", HF_E_BIND, -1, "aggregate"},
      {"v", "project: nosuch(k)", HF_E_FUNCTION_NOT_FOUND, 0, "nosuch"},
      {"v", "project: getenv('HOME')", HF_E_FUNCTION_REFUSED, 0, "getenv"},
      {"v", "filter: k IN (SELECT k FROM nosuch)", HF_E_TABLE_NOT_FOUND, 20, "nosuch"},
      {"v", "filter: k IN (SELECT kk FROM d)", HF_E_COLUMN_NOT_FOUND, -1, "kk"},
      {"v", "sort: 1", HF_E_INVALID_ARGUMENT, -1, "constant"},
      {"v", "agg: 1 ; count(*)", HF_E_INVALID_ARGUMENT, -1, "constant"},
      {"v", "project: #1", HF_E_INVALID_ARGUMENT, -1, "number"},
      {"v", "with: k + 1", HF_E_INVALID_ARGUMENT, -1, "name"},
      {"v", "drop: k | g | x | name | l | s", HF_E_INVALID_ARGUMENT, -1, "left"},
      {"v", "rename: kk = j", HF_E_COLUMN_NOT_FOUND, -1, "kk"},
      {"v", "cross: d ; true", HF_E_INVALID_ARGUMENT, -1, "cross"},
      {"v", "left: d", HF_E_INVALID_ARGUMENT, -1, "condition"},
      {"v", "join: d ; k = k", HF_E_BIND, 0, "several"},
      {"v", "join: d ; USING g", HF_E_COLUMN_NOT_FOUND, -1, "g"},
      {"v", "unionall: d", HF_E_BIND, -1, ""},
      {"dup", "project: a + b", HF_E_BIND, 0, "several"},
      {"dup", "project: b + A", HF_E_BIND, 4, "several"},
      {"v", "project: k + 1 AS b | b * 2 AS c", HF_E_COLUMN_NOT_FOUND, 0, "b"},
      {"v", "agg: ", HF_E_INVALID_ARGUMENT, -1, "group"},
      {"v", "repartition: 8 | kk", HF_E_COLUMN_NOT_FOUND, -1, "kk"},
      {"v", "repartition: 8", HF_E_INVALID_ARGUMENT, -1, "column"},
      {"v", "repartition: 8 | k | K", HF_E_INVALID_ARGUMENT, -1, "twice"},
      {"v", "repartition: 8 | l", HF_E_INVALID_ARGUMENT, -1, "type"},
      {"v", "repartition: 1 | k", HF_E_INVALID_ARGUMENT, -1, "2 to 4096"},
      {"dup", "repartition: 8 | a", HF_E_INVALID_ARGUMENT, -1, "several"},
  };
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = step_add(c, steps_build(c, cases[i].line), cases[i].step);
    bool right = r == NULL && c->error.code == cases[i].code &&
                 strcasestr(c->error.message, cases[i].words) &&
                 (cases[i].position < 0 || c->error.position == cases[i].position);
    if (!right) {
      print_message("%s: %s at %d: %s (%s)\n", cases[i].step, hf_status_name(c->error.code),
                    (int)c->error.position, c->error.message, c->error.hint);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

static void column_missing_is_answered_with_the_nearest(void **state) {
  plan_case *c = *state;
  assert_null(step_add(c, steps_build(c, "v"), "project: k + nam"));
  assert_string_equal(c->error.hint, "did you mean \"name\"?");
  assert_null(step_add(c, steps_build(c, "v"), "rename: nme = j"));
  assert_string_equal(c->error.hint, "did you mean \"name\"?");
  assert_null(step_add(c, steps_build(c, "v"), "repartition: 8 | somewhere"));
  assert_non_null(strstr(c->error.hint, "the columns are \"k\", "));
}

static void view_over_built_relation_reads_as_a_table(void **state) {
  plan_case *c = *state;
  relation *r = steps_build(c, "v >> with: y = k + 1 >> filter: y > 3 >> project: y | g");
  plan_bind(c, "w", r);
  relation *sql = plan_relation(c, "SELECT a.y, b.g FROM w a JOIN w b ON a.y = b.y AND a.g = 1 ORDER BY ALL");
  assert_string_equal(steps_rows(c, sql),
                      plan_rows(c, "SELECT k + 1 AS y, g FROM v WHERE k + 1 > 3 AND g = 1 ORDER BY 1"));
  relation_release(sql);
  relation_release(r);
  r = steps_build(c, "dup >> filter: b = 2");
  plan_bind(c, "w", r);
  sql = plan_relation(c, "SELECT a, A_1 FROM w");
  assert_string_equal(steps_rows(c, sql), plan_rows(c, "SELECT a, A_1 FROM dup"));
  relation_release(sql);
  relation_release(r);
}

static void same_step_used_twice_in_a_query_is_right(void **state) {
  plan_case *c = *state;
  relation *r = steps_build(c, "v >> with: y = k + 1 >> project: y | name");
  plan_bind(c, "w", r);
  relation_release(r);
  relation *left = steps_build(c, "w >> alias: a");
  plan_bind(c, "wa", left);
  relation_release(left);
  relation *joined =
      steps_build(c, "w >> alias: b >> join: wa ; a.y = b.y >> project: a.y | b.name >> sort: y");
  assert_string_equal(steps_rows(c, joined), plan_rows(c, "SELECT k + 1 AS y, name FROM v ORDER BY 1"));
  relation_release(joined);
  relation *both = steps_build(c, "w >> unionall: w >> agg:  ; count(*) AS n | count(DISTINCT y) AS d");
  assert_string_equal(steps_rows(c, both), plan_rows(c, "SELECT 20::BIGINT AS n, 10::BIGINT AS d"));
  relation_release(both);
}

/* A cache node over a built relation. */
static relation *held_over(plan_case *c, const relation *input) {
  relation *node = NULL;
  uuid id = uuid_new(), session = uuid_new();
  assert_int_equal(relation_from_cache(&id, &session, input, "MEMORY_ONLY", &node, &c->error), HF_OK);
  assert_int_equal(relation_remember_columns(node, relation_columns(input), &c->error), HF_OK);
  return node;
}

static void cache_node_between_steps_is_read_or_computed_in_place(void **state) {
  plan_case *c = *state;
  relation *below = steps_build(c, "dup >> filter: b = 2 >> with: c = b + 1");
  relation *node = held_over(c, below);
  relation *r = relation_retain(node);
  assert_non_null(r = step_add(c, r, "filter: c > 0"));
  assert_non_null(r = step_add(c, r, "project: c + b AS s"));
  assert_int_equal(plan_lowered(c, r).n_needed_held, 1); /* nobody was asked yet */
  c->held = (held_info){.answer = HELD_READ, .columns = *relation_columns(below), .rows = 1};
  lowered l = plan_lowered(c, r);
  assert_int_equal(l.n_inputs, 1);
  assert_int_equal(l.n_made_names, 0); /* one query over the blocks */
  schema columns;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_OK);
  assert_true(schema_equal(&columns, relation_columns(r)));
  c->held = (held_info){.answer = HELD_INLINE};
  assert_string_equal(steps_rows(c, r), plan_rows(c, "SELECT 5 AS s"));
  c->held = (held_info){.answer = HELD_UNKNOWN};
  relation_release(r);
  relation_release(node);
  relation_release(below);
}

static void file_with_other_columns_than_when_it_was_built_is_an_error(void **state) {
  plan_case *c = *state;
  plan_file(c, "changing.csv", "k,w\n1,a\n");
  relation *base = plan_relation(c, "FROM '@/changing.csv'");
  plan_bind(c, "changing", base);
  relation_release(base);
  relation *r = steps_build(c, "changing >> filter: k > 0 >> project: w | k");
  plan_file(c, "changing.csv", "k,w\n1.5,2020-01-01\n");
  lowered l = plan_lowered(c, r);
  schema columns;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_E_BIND);
  assert_non_null(strstr(c->error.message, "when the DataFrame was built: w"));
  relation_release(r);
}

static void order_at_the_top_is_known(void **state) {
  static const struct {
    const char *line;
    bool ordered;
  } cases[] = {
      {"v >> sort: k", true},
      {"v >> sort: k >> filter: g = 1 >> project: k >> with: j = k >> limit: 3 >> alias: a >> rename: k = q >> drop: j",
       true},
      {"v >> sort: k >> distinct", false},
      {"v >> sort: k >> repartition: 8 | k", false},
      {"v >> sort: k >> agg: g", false},
      {"v >> sort: k >> unionall: v", false},
      {"v >> sort: k >> join: d ; USING k", false},
      {"v >> filter: k > 1", false},
      {"v >> limit: 2", false},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = steps_build(c, cases[i].line);
    assert_int_equal(relation_look(r).top_ordered, cases[i].ordered);
    assert_int_equal(plan_lowered(c, r).ordered, cases[i].ordered);
    relation_release(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_give_what_plain_duckdb_gives),
      cmocka_unit_test(columns_are_known_when_a_step_is_built),
      cmocka_unit_test(step_that_is_wrong_says_where),
      cmocka_unit_test(column_missing_is_answered_with_the_nearest),
      cmocka_unit_test(view_over_built_relation_reads_as_a_table),
      cmocka_unit_test(same_step_used_twice_in_a_query_is_right),
      cmocka_unit_test(order_at_the_top_is_known),
      cmocka_unit_test(cache_node_between_steps_is_read_or_computed_in_place),
      cmocka_unit_test(file_with_other_columns_than_when_it_was_built_is_an_error),
  };
  return cmocka_run_group_tests(tests, open_case, plan_case_close);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: the lowered text of a query over views and files gives what plain
 * DuckDB gives for the query itself, names of columns included; and what the
 * pieces, inputs, needs and limits are.
 */
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
  plan_file(c, "d.csv", "k;day;word\n1;31/01/2020;\"a;b\"\n2;01/02/2020;\n3;28/02/2020;c\n");
  plan_file(c, "e.v1.csv", "k,x\n1,10\n2,20\n");
  plan_file(c, "r.json", "{\"k\":1,\"l\":[1,2]}\n{\"k\":2,\"l\":[]}\n");
  plan_exec(
      c,
      "COPY (SELECT i AS k, i % 3 AS g, i * 1.5 AS x, 'n' || i AS name FROM range(10) t(i)) TO '@/p.parquet'");
  plan_exec(c, "COPY (SELECT i AS k, i % 2 AS g FROM range(10, 14) t(i)) TO '@/q.parquet'");
  plan_name(c, "v", "SELECT k, g, name FROM '@/p.parquet' WHERE k < 6");
  plan_name(c, "W w",
            "SELECT v.g, count(*) AS n, max(v.name) AS name FROM v JOIN '@/d.csv' d USING (k) GROUP BY v.g");
  plan_name(c, "o", "FROM v ORDER BY k DESC");
  plan_name(c, "s", "WITH v AS (SELECT 1 AS one) FROM v");
  plan_name(c, "nest", "SELECT a.k, b.n FROM v a, \"W w\" b WHERE a.g = b.g");
  plan_name(c, "odd", "SELECT 1 AS \"a b\", 2 AS \"x.y\", 3 AS \"q\"\"q\", 4 AS \"SELECT\", 5 AS größe");
  plan_name(c, "dup", "SELECT 1 AS a, 2 AS a, 3 AS A");
  return 0;
}

/* Rows are compared in order: each statement gives one order, or sorts. */
static const char *const STATEMENTS[] = {
    "FROM v",
    "TABLE v",
    "(TABLE v)",
    "FROM v SELECT k, name",
    "SELECT * FROM main.v",
    "SELECT * FROM memory.main.v WHERE k = 1",
    "SELECT * FROM \"v\"",
    "SELECT * FROM main . \"v\" /* c */ AS t",
    "SELECT v.k, v FROM v ORDER BY v.k",
    "SELECT V.K FROM V",
    "SELECT t.a FROM v AS t(a, b, c)",
    "SELECT t.k FROM t: v",
    "SELECT \"W w\".n FROM \"W w\" ORDER BY ALL",
    "FROM \"w W\" ORDER BY g",
    "SELECT * FROM v, v AS u WHERE v.k = u.k ORDER BY ALL",
    "SELECT * FROM v JOIN \"W w\" USING (g) ORDER BY ALL",
    "SELECT * FROM v NATURAL JOIN \"W w\" ORDER BY ALL",
    "SELECT v.k FROM v LEFT JOIN '@/d.csv' ON v.k = d.k ORDER BY ALL",
    "SELECT * FROM v SEMI JOIN '@/d.csv' d USING (k) ORDER BY ALL",
    "SELECT * FROM v POSITIONAL JOIN '@/d.csv'",
    "SELECT * FROM v ASOF JOIN '@/p.parquet' p ON v.k >= p.k ORDER BY ALL",
    "SELECT (SELECT max(k) FROM v)",
    "SELECT (SELECT max(k) FROM v), (SELECT min(u.k) FROM v u), 1 + (SELECT count(*) FROM o)",
    "SELECT k, (SELECT count(*) FROM v i WHERE i.g = o.g) FROM v o ORDER BY k",
    "SELECT k FROM v WHERE k IN (SELECT k FROM '@/d.csv') ORDER BY k",
    "SELECT k FROM v WHERE k NOT IN (FROM '@/d.csv' SELECT k) ORDER BY k",
    "SELECT k FROM v WHERE EXISTS (FROM \"W w\" w WHERE w.g = v.g) ORDER BY k",
    "SELECT k FROM v WHERE k > ALL (SELECT k FROM '@/d.csv' d) ORDER BY k",
    "SELECT * FROM v WHERE k = (SELECT k FROM (TABLE v ORDER BY k DESC LIMIT 1))",
    "SELECT g, count(*) FROM v GROUP BY g HAVING count(*) >= (SELECT min(n) FROM \"W w\") ORDER BY g",
    "SELECT g, k FROM v QUALIFY row_number() OVER (PARTITION BY g ORDER BY k) = 1 ORDER BY g",
    "SELECT * FROM v ORDER BY (SELECT max(n) FROM \"W w\" w WHERE w.g = v.g), k LIMIT (SELECT min(n) FROM \"W w\")",
    "SELECT CASE k WHEN (SELECT min(k) FROM v) THEN 'a' WHEN (SELECT max(k) FROM v) THEN 'b' END FROM v ORDER BY k",
    "SELECT k FROM v WHERE k BETWEEN (SELECT min(k) FROM v) AND (SELECT n FROM \"W w\" ORDER BY n LIMIT 1) ORDER BY k",
    "SELECT * FROM v UNION ALL TABLE v ORDER BY ALL",
    "FROM v EXCEPT FROM v WHERE k < 3 ORDER BY ALL",
    "(SELECT k FROM v) INTERSECT (SELECT k FROM '@/d.csv') ORDER BY k",
    "SELECT k FROM v UNION BY NAME SELECT n, g FROM \"W w\" ORDER BY ALL",
    "WITH v AS (SELECT 7 AS seven) FROM v",
    "WITH a AS (FROM v), b AS (FROM a WHERE k > 2) SELECT * FROM a JOIN b USING (k) ORDER BY ALL",
    "WITH v AS (SELECT k + 1 AS k FROM v) SELECT * FROM v ORDER BY k",
    "WITH V AS (SELECT 7 AS seven) SELECT * FROM v, \"W w\" ORDER BY ALL",
    "SELECT * FROM (WITH v AS (SELECT 1 AS x) FROM v) t, v ORDER BY ALL",
    "WITH a AS (WITH v AS (SELECT 1 AS x) FROM v) SELECT * FROM a, v ORDER BY ALL",
    "WITH RECURSIVE t(i) AS (SELECT min(k) FROM v UNION ALL SELECT i + 1 FROM t, v WHERE v.k = t.i) FROM t ORDER BY i",
    "WITH RECURSIVE v(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM v WHERE i < 3) FROM v ORDER BY i",
    "WITH a AS MATERIALIZED (FROM v) SELECT count(*) FROM a, a b",
    "WITH b AS (FROM '@/e.v1.csv') SELECT e.x FROM b e ORDER BY 1",
    "FROM s",
    "FROM nest ORDER BY ALL",
    "FROM odd",
    "SELECT \"a b\", \"x.y\", größe FROM odd",
    "FROM dup",
    "SELECT * FROM o",
    "SELECT k FROM o LIMIT 2",
    "DESCRIBE v",
    "DESCRIBE TABLE v",
    "DESC v",
    "DESCRIBE SELECT k + 0.5 FROM v",
    "DESCRIBE WITH a AS (FROM v) SELECT * FROM a",
    "DESCRIBE '@/d.csv'",
    "SUMMARIZE v",
    "SUMMARIZE '@/e.v1.csv'",
    "SUMMARIZE SELECT k FROM v",
    "FROM (DESCRIBE v)",
    "SELECT column_name FROM (DESCRIBE '@/p.parquet')",
    "FROM (SHOW v)",
    "PIVOT v ON g IN (0, 1, 2) USING count(*) ORDER BY ALL",
    "FROM (PIVOT v ON g IN (0, 1) USING max(name)) ORDER BY ALL",
    "SELECT * FROM v PIVOT (count(*) FOR g IN (0, 1)) ORDER BY ALL",
    "PIVOT '@/p.parquet' ON g IN (0, 1) USING sum(x) GROUP BY name ORDER BY ALL",
    "UNPIVOT v ON k, g ORDER BY ALL",
    "FROM '@/e.v1.csv' UNPIVOT (val FOR nam IN (k, x)) ORDER BY ALL",
    "FROM '@/p.parquet' ORDER BY k",
    "SELECT p.k, q.k FROM '@/p.parquet' p, '@/q.parquet' q WHERE p.k + 10 = q.k ORDER BY ALL",
    "SELECT p.name FROM '@/p.parquet' ORDER BY p.k LIMIT 1",
    "SELECT e.k FROM '@/e.v1.csv' ORDER BY 1",
    "SELECT k FROM '@/[pq].parquet' ORDER BY k",
    "SELECT \"@/*.parquet\".k FROM '@/*.parquet' ORDER BY 1",
    "FROM'@/d.csv'WHERE k=1",
    "FROM read_parquet('@/p.parquet') WHERE k = 3",
    "SELECT read_parquet.k FROM read_parquet(['@/p.parquet', '@/q.parquet']) ORDER BY 1",
    "SELECT t.filename[-9:] AS f, count(*) FROM read_parquet('@/*.parquet', filename = true, union_by_name = true) t "
    "GROUP BY ALL ORDER BY ALL",
    "FROM parquet_scan('@/p.parquet') t(a) ORDER BY a",
    "FROM read_csv('@/d.csv', delim := ';', header => true, all_varchar = true)",
    "FROM read_csv_auto('@/e.v1.csv', types = {'b': 'DOUBLE'}, names = ['a', 'b']) ORDER BY ALL",
    "FROM read_csv('@/e.v1.csv', columns = {'a': 'INTEGER', 'b': 'VARCHAR'}, skip = 1, header = false)",
    "FROM read_json('@/r.json') ORDER BY k",
    "FROM '@/r.json' ORDER BY k",
    "SELECT json->>'k' FROM read_json_objects('@/r.json') ORDER BY 1",
    "SELECT k, unnest(l) FROM read_ndjson('@/r.json') ORDER BY ALL",
    "SELECT k, x FROM read_json_auto('@/r.json'), LATERAL (SELECT unnest(l) AS x) ORDER BY ALL",
    "SELECT * FROM range(3) t(i), v WHERE v.k = t.i ORDER BY ALL",
    "SELECT * FROM generate_series(1, (SELECT max(k) FROM v)) g(i) ORDER BY i",
    "SELECT * FROM v, LATERAL (SELECT v.k + 1 AS z) ORDER BY k",
    "SELECT k, u FROM v, unnest([k, k * 10]) t(u) ORDER BY ALL",
    "VALUES ((SELECT max(k) FROM v)), (2)",
    "SELECT list_transform([1, 2], i -> i + m) FROM (SELECT max(k) AS m FROM v)",
    "SELECT COLUMNS('k|g') FROM v ORDER BY ALL",
    "SELECT * EXCLUDE (name) REPLACE (k + 1 AS k) FROM v ORDER BY k",
    "SELECT count(*) FILTER (WHERE k IN (SELECT k FROM v)) FROM '@/p.parquet'",
    "SELECT sum(k) OVER (ORDER BY k), (SELECT count(*) FROM v) FROM v ORDER BY 1",
    "SELECT '@/p.parquet', 'v' AS v, \"k\" FROM v AS \"from\" ORDER BY k -- FROM v\n",
    "SELECT $$ FROM v $$, /* FROM v */ k FROM v ORDER BY k;",
    "SELECT\xC2\xA0k FROM\xE2\x80\x83v WHERE name = 'n\xC2\xA0' OR k = 1",
    "SELECT 'größe 🦆' AS \"🦆\", k FROM /* 🦆 */ v ORDER BY k",
    "SELECT hf_r0.k, hf_r1 FROM v AS hf_r0, (SELECT 5 AS hf_r1) ORDER BY k",
    "FROM v TABLESAMPLE 100%",
    "FROM v USING SAMPLE 100 PERCENT",
    /* what DuckDB flattens otherwise over a name of a WITH chain */
    "SELECT l.c FROM v a LEFT JOIN LATERAL (SELECT 1 AS c, a.k AS d FROM v b WHERE b.k > 1 GROUP BY CUBE (b.g)) l ON true",
    "SELECT a.k, l.n FROM v a, LATERAL (SELECT count(*) AS n FROM (SELECT k FROM v LIMIT 50%) WHERE k < a.k) l ORDER BY ALL",
    "SELECT k FROM v a WHERE NOT EXISTS (SELECT 1 FROM v b WHERE a.k NOT IN (SELECT g FROM v)) ORDER BY ALL",
    "SELECT k, (SELECT count(*) FROM (SELECT * FROM v) WHERE g = a.g), EXISTS (FROM v WHERE v.k > a.k) FROM v a ORDER BY ALL",
    "SELECT g, GROUPING(g), count(*) FROM v GROUP BY ROLLUP (g) ORDER BY ALL",
    /* columns of files that are not in a star */
    "SELECT filename, file_row_number, file_index, typeof(file_index), k FROM '@/p.parquet' ORDER BY k",
    "SELECT *, filename FROM read_parquet('@/[pq].parquet', union_by_name = true) WHERE file_row_number < 2 ORDER BY ALL",
    "SELECT filename, file_index, count(*), max(file_row_number) FROM '@/[pq].parquet' GROUP BY ALL ORDER BY ALL",
    "SELECT file_index, filename, d.* FROM '@/d.csv' d WHERE file_index = 0 ORDER BY ALL",
    "SELECT r.filename, k FROM '@/r.json' ORDER BY ALL",
    "FROM '@/p.parquet' WHERE file_row_number > 0 ORDER BY k",
    "FROM (FROM (FROM '@/p.parquet' WHERE file_row_number > 0) ORDER BY k)",
    "WITH c AS (FROM read_parquet('@/p.parquet') WHERE filename LIKE '%p.parquet') FROM c ORDER BY k",
    "SELECT *, p.* EXCLUDE (k), * REPLACE (0 AS k) FROM '@/p.parquet' p WHERE file_row_number = 1",
    "SELECT * EXCLUDE (p.k, q.k) FROM '@/p.parquet' p JOIN '@/q.parquet' q USING (file_row_number) ORDER BY ALL",
    "SELECT p.*, q.filename FROM '@/p.parquet' p, '@/q.parquet' q WHERE p.file_row_number = q.file_row_number ORDER BY ALL",
    "SELECT v.*, p.file_row_number FROM v JOIN '@/p.parquet' p USING (k) ORDER BY ALL",
    "SELECT k, (SELECT max(q.file_row_number) FROM '@/q.parquet' q WHERE q.k > p.file_row_number) AS m FROM '@/p.parquet' p "
    "ORDER BY ALL",
    "SELECT name AS filename FROM '@/p.parquet' ORDER BY filename",
    "SELECT k AS \"k\" FROM '@/p.parquet' k WHERE file_row_number = 1",
    "SELECT a, file_row_number FROM '@/p.parquet' t(a) ORDER BY ALL",
    "SELECT k FROM v WHERE k IN (SELECT file_row_number FROM '@/p.parquet') ORDER BY k",
    "SELECT DISTINCT filename FROM '@/p.parquet' UNION ALL SELECT filename FROM '@/d.csv' ORDER BY ALL",
    "SELECT n.filename, n.k FROM (SELECT k, 'f' AS filename FROM v) n, '@/p.parquet' p WHERE p.k = n.k ORDER BY ALL",
    /* what the parser leaves out of its tree, since an equal expression is in it */
    "SELECT list((SELECT max(u.k) FROM v u WHERE u.g = a.g) ORDER BY (SELECT max(u.k) FROM V u WHERE u.g = a.g)) FROM v a",
    "SELECT list((SELECT max(k) FROM '@/p.parquet') ORDER BY (select MAX(\"k\") from \"@/p.parquet\") DESC) AS l FROM v",
    "SELECT list((SELECT k FROM (FROM v, o) LIMIT 1) ORDER BY (SELECT k FROM (FROM v, o) LIMIT 1)) FROM v",
    "WITH v AS (SELECT 7 AS k) SELECT list((SELECT v.k FROM v, o LIMIT 1) ORDER BY (SELECT v.k FROM v, o LIMIT 1)) FROM v",
    "SELECT count(*), (SELECT max(k) FROM v) FROM v GROUP BY CUBE((SELECT max(k) FROM v), (SELECT max(k) FROM v)) "
    "ORDER BY ALL",
    "SELECT 1 IN (SELECT k FROM v) FROM read_parquet('@/p.parquet') GROUP BY 1 IN (SELECT k FROM v), 1 IN (SELECT k FROM v), "
    "(SELECT max(k) FROM read_parquet('@/p.parquet')), (SELECT max(k) FROM read_parquet( '@/p.parquet' ))",
    "SELECT list((SELECT extract(year FROM d) FROM (SELECT DATE '2020-01-01' AS d)) ORDER BY "
    "(SELECT extract(year FROM d) FROM (SELECT DATE '2020-01-01' AS d))), (SELECT max(k) FROM v)",
    "SELECT DISTINCT ON (g) g, k FROM v ORDER BY g, k",
    "SELECT * FROM (FROM v) AS v JOIN (SELECT k FROM v) AS u USING (k) ORDER BY ALL",
};

/* The names that plain DuckDB gives the columns, one a line. */
static const char *plain_names(plan_case *c, const char *sql) {
  const char *described = arena_printf(c->memory, "SELECT column_name FROM (DESCRIBE FROM (%s))", sql);
  return strchr(plan_rows(c, described), '\n') + 1;
}

static const char *our_names(plan_case *c, const lowered *l) {
  schema columns;
  hf_error error = {0};
  if (plan_describe(c->planner, l, c->memory, &columns, &error) != HF_OK) {
    return arena_printf(c->memory, "%s %s", hf_status_name(error.code), error.message);
  }
  buf names = {0};
  for (size_t i = 0; i < columns.n_columns; i++) {
    size_t before = 0; /* as DuckDB tells repeated names apart */
    for (size_t k = 0; k < i; k++) {
      before += strcasecmp(columns.columns[k].name, columns.columns[i].name) == 0;
    }
    buf_text(&names, columns.columns[i].name);
    if (before > 0) {
      buf_printf(&names, "_%zu", before);
    }
    buf_char(&names, '\n');
  }
  const char *copy = arena_strdup(c->memory, buf_cstr(&names));
  buf_reset(&names);
  return copy;
}

static void query_lowered_gives_what_plain_duckdb_gives(void **state) {
  plan_case *c = *state;
  size_t failures = 0;
  for (size_t i = 0; i < sizeof STATEMENTS / sizeof STATEMENTS[0]; i++) {
    relation *r = plan_relation(c, STATEMENTS[i]);
    lowered l = plan_lowered(c, r);
    const char *text = relation_look(r).text;
    const char *plain = plan_rows(c, text), *ours = plan_rows_or_error(c, plan_whole_text(c, &l));
    const char *wanted = plain_names(c, text), *named = our_names(c, &l);
    if (strcmp(plain, ours) != 0 || strcmp(wanted, named) != 0) {
      print_error("%s\n  lowered: %s\n  plain: %s  ours: %s  names: %s  ours: %s\n", STATEMENTS[i],
                  plan_whole_text(c, &l), plain, ours, wanted, named);
      failures++;
    }
    relation_release(r);
  }
  assert_int_equal(failures, 0);
}

static void order_of_a_query_is_told(void **state) {
  static const struct {
    const char *sql;
    bool ordered;
  } cases[] = {
      {"FROM o", true},
      {"SELECT k + 1 FROM o WHERE g = 1", true},
      {"FROM o LIMIT 3", true},
      {"FROM (FROM v ORDER BY k)", true},
      {"SELECT k FROM (SELECT * FROM o) t", true},
      {"FROM v ORDER BY k", true},
      {"FROM v UNION ALL FROM v ORDER BY k", true},
      {"TABLE o", true},
      {"FROM v", false},
      {"FROM v LIMIT 3", false},
      {"SELECT DISTINCT k FROM o", false},
      {"SELECT g, count(*) FROM o GROUP BY g", false},
      {"FROM o, v", false},
      {"FROM o UNION ALL FROM o", false},
      {"FROM '@/p.parquet'", false},
      {"FROM o USING SAMPLE 2", false},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, cases[i].sql);
    lowered l = plan_lowered(c, r);
    if (l.ordered != cases[i].ordered || relation_look(r).top_ordered != cases[i].ordered) {
      fail_msg("%s: %d", cases[i].sql, l.ordered);
    }
    relation_release(r);
  }
}

static void file_named_twice_is_one_input(void **state) {
  plan_case *c = *state;
  relation *r = plan_relation(c, "SELECT * FROM v a, v b, '@/p.parquet' p");
  lowered l = plan_lowered(c, r);
  size_t places = 0;
  for (size_t i = 0; i < l.n_pieces; i++) {
    places += l.pieces[i].text == NULL;
  }
  assert_int_equal(l.n_inputs, 1);
  assert_int_equal(places, 3);
  assert_int_equal(l.inputs[0].rows, 10);
  assert_true(l.inputs[0].rows_exact);
  relation_release(r);
}

static source *no_source(void *context, const source_request *request) {
  (void)context;
  (void)request;
  return NULL;
}

static void source_unknown_is_needed_before_anything(void **state) {
  plan_case *c = *state;
  relation *r = plan_relation(c, "SELECT * FROM v, '@/d.csv', '@/d.csv' AS again");
  lower_knowledge knowledge = {.source_of = no_source};
  lowered l;
  assert_int_equal(plan_lower(r, &knowledge, c->memory, &l, &c->error), HF_OK);
  assert_int_equal(l.n_needed_sources, 2);
  assert_int_equal(l.n_pieces + l.n_inputs, 0);
  relation_release(r);
}

/* A cache node over `sql`. */
static relation *cached(plan_case *c, const char *sql) {
  relation *input = plan_relation(c, sql), *node = NULL;
  uuid id = uuid_new(), session = uuid_new();
  assert_int_equal(relation_from_cache(&id, &session, input, "MEMORY_ONLY", &node, NULL), HF_OK);
  relation_release(input);
  return node;
}

static void held_node_unknown_is_needed_and_its_input_is_not_looked_at(void **state) {
  plan_case *c = *state;
  relation *inner = cached(c, "FROM '@/q.parquet'");
  plan_bind(c, "inner_held", inner);
  relation *outer = cached(c, "FROM inner_held, '@/nowhere.parquet'");
  plan_bind(c, "outer_held", outer);
  relation *r = plan_relation(c, "SELECT * FROM outer_held, outer_held AS b, v");
  lowered l = plan_lowered(c, r);
  assert_int_equal(l.n_needed_held, 1);
  assert_ptr_equal(l.needed_held[0], outer);
  assert_int_equal(l.n_pieces, 0);
  relation_release(inner);
  relation_release(outer);
  relation_release(r);
}

static void held_node_read_is_one_input_with_its_columns(void **state) {
  static const data_type number = {.kind = TYPE_INTEGER};
  static const column columns[] = {{"k", &number}, {"a b", &number}};
  plan_case *c = *state;
  relation *node = cached(c, "FROM '@/nowhere.parquet'");
  plan_bind(c, "h", node);
  c->held = (held_info){.answer = HELD_READ, .columns = {2, columns}, .rows = 7, .ordered = true};
  relation *r = plan_relation(c, "SELECT h.k, \"a b\" FROM h UNION ALL SELECT k, 1 FROM h");
  lowered l = plan_lowered(c, r);
  assert_int_equal(l.n_inputs, 1);
  assert_int_equal(l.inputs[0].kind, LOWER_INPUT_HELD);
  assert_ptr_equal(l.inputs[0].cache_node, node);
  assert_int_equal(l.inputs[0].rows, 7);
  assert_true(l.inputs[0].rows_exact && l.inputs[0].ordered);
  schema found;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &found, NULL), HF_OK);
  assert_string_equal(found.columns[1].name, "a b");
  const char *text = NULL;
  engine_scan *scans = NULL;
  assert_int_equal(plan_text_for_planner(&l, c->memory, &text, &scans, NULL), HF_OK);
  assert_non_null(strstr(text, "FROM hf_scan('0') AS \"h\""));
  assert_true(scans[0].by_name);
  relation_release(node);
  relation_release(r);
}

static void held_node_alone_keeps_repeated_and_empty_names(void **state) {
  static const data_type number = {.kind = TYPE_INTEGER};
  static const column columns[] = {{"a", &number}, {"a", &number}, {"", &number}};
  plan_case *c = *state;
  relation *node = cached(c, "FROM dup");
  c->held = (held_info){.answer = HELD_READ, .columns = {3, columns}, .rows = 1};
  lowered l = plan_lowered(c, node);
  schema found;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &found, NULL), HF_OK);
  const char *text = NULL;
  engine_scan *scans = NULL;
  assert_int_equal(plan_text_for_planner(&l, c->memory, &text, &scans, NULL), HF_OK);
  assert_false(scans[0].by_name);
  assert_non_null(strstr(text, "(SELECT c0 AS \"a\", c1 AS \"a\", c2 AS c2 FROM hf_scan('0'))"));
  assert_int_equal(found.n_columns, 3);
  assert_string_equal(found.columns[0].name, "a");
  assert_string_equal(found.columns[1].name, "a");
  assert_string_equal(found.columns[2].name, "");
  relation_release(node);
}

static void held_node_inline_is_its_input(void **state) {
  plan_case *c = *state;
  relation *node = cached(c, "SELECT k FROM v ORDER BY k");
  plan_bind(c, "h", node);
  c->held = (held_info){.answer = HELD_INLINE};
  relation *r = plan_relation(c, "FROM h");
  lowered l = plan_lowered(c, r), alone = plan_lowered(c, node);
  assert_true(l.ordered && alone.ordered);
  relation *plain = plan_relation(c, "SELECT k FROM v ORDER BY k");
  lowered same = plan_lowered(c, plain);
  assert_string_equal(plan_whole_text(c, &alone), plan_whole_text(c, &same));
  lowered again = plan_lowered(c, r);
  assert_string_equal(plan_rows(c, plan_whole_text(c, &again)), plan_rows(c, "SELECT range FROM range(6)"));
  relation_release(plain);
  relation_release(node);
  relation_release(r);
}

static void views_upon_views_work_until_a_limit_says_so(void **state) {
  plan_case *c = *state;
  plan_name(c, "deep", "SELECT 1 AS x");
  for (int i = 0; i < 600; i++) {
    relation *r = plan_relation(c, "SELECT x + 1 AS x FROM deep WHERE x > 0");
    plan_bind(c, "deep", r);
    relation_release(r);
    if (i == 250) {
      relation *half = plan_relation(c, "FROM deep");
      lowered l = plan_lowered(c, half);
      schema columns;
      assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_OK);
      assert_string_equal(plan_rows(c, plan_whole_text(c, &l)), plan_rows(c, "SELECT 252"));
      relation_release(half);
    }
  }
  relation *r = plan_relation(c, "FROM deep, deep AS twice");
  lower_knowledge knowledge = {.context = c};
  lowered l;
  assert_int_equal(plan_lower(r, &knowledge, c->memory, &l, &c->error), HF_E_LIMIT);
  assert_non_null(strstr(c->error.hint, "cache()"));
  relation_release(r);
}

static void error_speaks_of_the_users_text(void **state) {
  static const struct {
    const char *sql;
    hf_status code;
    const char *at; /* the text at the position; NULL: no position */
    const char *hint;
  } cases[] = {
      {"SELECT nam FROM v", HF_E_COLUMN_NOT_FOUND, "nam FROM", "name"},
      {"SELECT k, (SELECT nam FROM v) FROM '@/d.csv'", HF_E_COLUMN_NOT_FOUND, "nam FROM", "name"},
      {"SELECT worf FROM '@/d.csv'", HF_E_COLUMN_NOT_FOUND, "worf", "word"},
      {"SELECT d.wodr FROM '@/d.csv'", HF_E_COLUMN_NOT_FOUND, "d.wodr", "word"},
      {"SELECT 1 FROM v WHERE v.nmae = 2", HF_E_COLUMN_NOT_FOUND, "v.nmae", "name"},
      {"WITH a AS (FROM v) SELECT zz FROM a", HF_E_COLUMN_NOT_FOUND, "zz", NULL},
      {"SELECT k FROM v WHERE nofun(k)", HF_E_FUNCTION_NOT_FOUND, "nofun", NULL},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *sql = plan_text(c, cases[i].sql);
    relation *r = plan_relation(c, sql);
    lowered l = plan_lowered(c, r);
    schema columns;
    hf_error error = {0};
    hf_status status = plan_describe(c->planner, &l, c->memory, &columns, &error);
    const char *texts[] = {error.message, error.hint, error.cause};
    for (size_t k = 0; k < 3; k++) {
      if (texts[k] != NULL && (strstr(texts[k], "hf_") != NULL || strstr(texts[k], "c0") != NULL)) {
        fail_msg("%s: %s", sql, texts[k]);
      }
    }
    const char *at = error.position < 0 ? "" : sql + error.position;
    bool placed = cases[i].at == NULL || strncmp(at, cases[i].at, strlen(cases[i].at)) == 0;
    bool hinted = cases[i].hint == NULL || (error.hint != NULL && strstr(error.hint, cases[i].hint) != NULL);
    if (status != cases[i].code || !placed || !hinted) {
      fail_msg("%s: %s at %d: %s; %s", sql, hf_status_name(status), (int)error.position, error.message,
               error.hint);
    }
    hf_error_reset(&error);
    relation_release(r);
  }
}

static void error_inside_a_view_has_no_position(void **state) {
  plan_case *c = *state;
  relation *bad = plan_relation(c, "SELECT nope FROM v");
  plan_bind(c, "bad", bad);
  relation *r = plan_relation(c, "SELECT 1 FROM v, bad");
  lowered l = plan_lowered(c, r);
  schema columns;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_E_COLUMN_NOT_FOUND);
  assert_int_equal(c->error.position, -1);
  relation_release(bad);
  relation_release(r);
}

static void client_data_is_an_input_with_exact_rows(void **state) {
  static const data_type text = {.kind = TYPE_VARCHAR};
  static const column columns[] = {{"t", &text}};
  static const schema given = {1, columns};
  plan_case *c = *state;
  relation *local = NULL;
  uuid id = uuid_new();
  assert_int_equal(relation_from_local(&id, "/w/1", &given, 42, &local, NULL), HF_OK);
  plan_bind(c, "l", local);
  relation *r = plan_relation(c, "SELECT t || t FROM l");
  lowered l = plan_lowered(c, r);
  assert_int_equal(l.n_inputs, 1);
  assert_int_equal(l.inputs[0].kind, LOWER_INPUT_LOCAL);
  assert_ptr_equal(l.inputs[0].local, local);
  assert_int_equal(l.inputs[0].rows, 42);
  schema found;
  assert_int_equal(plan_describe(c->planner, &l, c->memory, &found, NULL), HF_OK);
  assert_int_equal(found.columns[0].type->kind, TYPE_VARCHAR);
  relation_release(local);
  relation_release(r);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, plan_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(query_lowered_gives_what_plain_duckdb_gives),
      CASE(order_of_a_query_is_told),
      CASE(file_named_twice_is_one_input),
      CASE(source_unknown_is_needed_before_anything),
      CASE(held_node_unknown_is_needed_and_its_input_is_not_looked_at),
      CASE(held_node_read_is_one_input_with_its_columns),
      CASE(held_node_alone_keeps_repeated_and_empty_names),
      CASE(held_node_inline_is_its_input),
      CASE(views_upon_views_work_until_a_limit_says_so),
      CASE(error_speaks_of_the_users_text),
      CASE(error_inside_a_view_has_no_position),
      CASE(client_data_is_an_input_with_exact_rows),
  };
  return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in SQL text: which become spots and where, which common table expression
 * wins, what is refused and what is suggested. What the replaced text then gives
 * is in test_lower.c.
 */
#include "support/plan_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_name(c, "v", "SELECT 1 AS k");
  plan_name(c, "trips", "SELECT 2 AS k");
  return 0;
}

/* The spots as "[text|alias]…"; a query's with FROM. */
static const char *spots_of(plan_case *c, const char *sql) {
  relation *r = plan_relation(c, sql);
  relation_view view = relation_look(r);
  buf text = {0};
  for (size_t i = 0; i < view.n_spots; i++) {
    const sql_spot *spot = &view.spots[i];
    buf_text(&text, spot->is_query ? "[FROM " : "[");
    buf_append(&text, view.text + spot->offset, spot->length);
    buf_printf(&text, "|%s]", spot->alias == NULL ? "" : spot->alias);
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  relation_release(r);
  return copy;
}

static void name_becomes_a_spot_with_its_extent(void **state) {
  static const char *const cases[][2] = {
      {"FROM v", "[v|v]"},
      {"FROM V AS x", "[V|]"},
      {"FROM main.v, memory . main /* c */ . \"V\" x", "[main.v|v][memory . main         . \"V\"|]"},
      {"FROM v x(a)", "[v|]"},
      {"FROM x: v", "[v|]"},
      {"TABLE v", "[FROM TABLE v|v]"},
      {"DESCRIBE v", "[FROM v|v]"},
      {"DESCRIBE TABLE v", "[FROM TABLE v|v]"},
      {"SUMMARIZE 'x.csv'", "[FROM 'x.csv'|x]"},
      {"FROM 'x.csv' t", "['x.csv'|]"},
      {"FROM x.csv", "[x.csv|x]"},
      {"FROM 'd/a.b.parquet'", "['d/a.b.parquet'|a]"},
      {"FROM 'd/*.json'", "['d/*.json'|d/*.json]"},
      {"FROM 'it''s.csv.gz'", "['it''s.csv.gz'|it's]"},
      {"FROM \"x.CSV\"", "[\"x.CSV\"|x]"},
      {"FROM read_csv( 'x' , header = true)", "[read_csv( 'x' , header = true)|read_csv]"},
      {"FROM main.read_parquet(['a(', 'b'])", "[main.read_parquet(['a(', 'b'])|read_parquet]"},
      {"SELECT (SELECT k FROM v), k FROM v WHERE EXISTS (FROM 'x.csv')", "[v|v][v|v]['x.csv'|x]"},
      {"SELECT CASE (FROM v) WHEN 1 THEN 2 WHEN 3 THEN 4 END", "[v|v]"},
      {"FROM range(3)", ""},
      {"WITH v AS (SELECT 1) FROM v", ""},
      {"WITH V AS (FROM v) FROM v", "[v|v]"},
      {"WITH a AS (FROM v), v AS (SELECT 1) FROM a, v", "[v|v]"},
      {"WITH v AS (SELECT 1) FROM main.v", "[main.v|v]"},
      {"WITH RECURSIVE v AS (FROM v UNION ALL FROM v) FROM v", "[v|v]"},
      {"WITH RECURSIVE t(k) USING KEY (k) AS (FROM v UNION ALL FROM recurring.t) FROM t", "[v|v]"},
      {"FROM (WITH v AS (SELECT 1) FROM v), v", "[v|v]"},
      {"SELECT 'FROM v', \"v\" FROM v AS v -- FROM v\n", "[v|]"},
      {"SELECT $$v$$ FROM\xC2\xA0v", "[v|v]"},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_string_equal(spots_of(c, cases[i][0]), cases[i][1]);
  }
}

static void reader_options_are_spelled_again(void **state) {
  plan_case *c = *state;
  relation *r = plan_relation(
      c, "FROM read_csv(['a', 'b'], HEADER := false, skip = 3, nullstr=['', 'N''A'], sample_size=-1,"
         " columns => {'x': 'INT', 'y z': 'DECIMAL(5,2)'})");
  const source_request *request = relation_look(r).spots[0].source;
  static const char *const expected[][2] = {
      {"header", "false"},
      {"skip", "3"},
      {"nullstr", "['', 'N''A']"},
      {"sample_size", "-1"},
      {"columns", "{'x': 'INT', 'y z': 'DECIMAL(5,2)'}"},
  };
  assert_int_equal(request->n_paths, 2);
  assert_int_equal(request->n_options, 5);
  for (size_t i = 0; i < 5; i++) {
    assert_string_equal(request->options[i].name, expected[i][0]);
    assert_string_equal(request->options[i].value_sql, expected[i][1]);
  }
  relation_release(r);
}

static void query_refused_says_why(void **state) {
  static const struct {
    const char *sql;
    hf_status code;
    const char *at;   /* the text at the position; NULL: no position */
    const char *text; /* in message or hint */
  } cases[] = {
      {"FROM tripz", HF_E_TABLE_NOT_FOUND, "tripz", "did you mean trips?"},
      {"SELECT 1 FROM v JOIN nope USING (k)", HF_E_TABLE_NOT_FOUND, "nope", "nope"},
      {"WITH a AS (FROM b), b AS (SELECT 1) FROM a", HF_E_TABLE_NOT_FOUND, "b)", "b"},
      {"FROM read_parquet(['a', \"b\"])", HF_E_INVALID_ARGUMENT, "read_parquet", "constants"},
      {"FROM other.v", HF_E_TABLE_NOT_FOUND, "other.v", "other.v"},
      {"FROM db.main.v", HF_E_TABLE_NOT_FOUND, "db.main.v", "db.main.v"},
      {"FROM information_schema.tables", HF_E_TABLE_NOT_FOUND, "information_schema", "information_schema"},
      {"FROM duckdb_tables", HF_E_TABLE_NOT_FOUND, "duckdb_tables", "duckdb_tables"},
      {"FROM sqlite_master", HF_E_TABLE_NOT_FOUND, "sqlite_master", "sqlite_master"},
      {"FROM 'x.txt'", HF_E_TABLE_NOT_FOUND, "'x.txt'", "read_csv('x.txt')"},
      {"FROM 'd/*'", HF_E_TABLE_NOT_FOUND, "'d/*'", "reader"},
      {"FROM 'x.db'", HF_E_TABLE_NOT_FOUND, "'x.db'", "reader"},
      {"FROM '/etc/passwd'", HF_E_TABLE_NOT_FOUND, "'/etc/passwd'", "reader"},
      {"FROM query('SELECT 1')", HF_E_FUNCTION_REFUSED, "query", "query"},
      {"FROM query_table('v')", HF_E_FUNCTION_REFUSED, "query_table", "query_table"},
      {"FROM read_blob('x')", HF_E_FUNCTION_REFUSED, "read_blob", "read_blob"},
      {"FROM read_text('x')", HF_E_FUNCTION_REFUSED, "read_text", "read_text"},
      {"FROM glob('*')", HF_E_FUNCTION_REFUSED, "glob", "glob"},
      {"FROM duckdb_settings()", HF_E_FUNCTION_REFUSED, "duckdb_settings", "duckdb_settings"},
      {"FROM duckdb_secrets()", HF_E_FUNCTION_REFUSED, "duckdb_secrets", "duckdb_secrets"},
      {"FROM pragma_database_size()", HF_E_FUNCTION_REFUSED, "pragma", "pragma_database_size"},
      {"FROM sniff_csv('x')", HF_E_FUNCTION_REFUSED, "sniff_csv", "sniff_csv"},
      {"FROM parquet_metadata('x')", HF_E_FUNCTION_REFUSED, "parquet_metadata", "parquet_metadata"},
      {"FROM parquet_file_metadata('x')", HF_E_FUNCTION_REFUSED, "parquet_file", "parquet_file_metadata"},
      {"FROM read_duckdb('x')", HF_E_FUNCTION_REFUSED, "read_duckdb", "read_duckdb"},
      {"FROM json_execute_serialized_sql('x')", HF_E_FUNCTION_REFUSED, "json_exec",
       "json_execute_serialized_sql"},
      {"FROM histogram_values('v', 'k')", HF_E_FUNCTION_REFUSED, "histogram", "histogram_values"},
      {"FROM hf_scan('0')", HF_E_FUNCTION_REFUSED, "hf_scan", "hf_scan"},
      {"FROM HF_BLOCKS('0')", HF_E_FUNCTION_REFUSED, "HF_BLOCKS", "hf_blocks"},
      {"FROM system.main.range(3)", HF_E_FUNCTION_REFUSED, "system", "range"},
      {"FROM arrow_scan(1, 2, 3)", HF_E_FUNCTION_REFUSED, "arrow_scan", "arrow_scan"},
      {"FROM seq_scan('v')", HF_E_FUNCTION_REFUSED, "seq_scan", "seq_scan"},
      {"FROM which_secret('x', 's3')", HF_E_FUNCTION_REFUSED, "which_secret", "which_secret"},
      {"FROM read_parqet('x')", HF_E_FUNCTION_REFUSED, "read_parqet", "did you mean read_parquet?"},
      {"SELECT getenv('HOME')", HF_E_FUNCTION_REFUSED, "getenv", "getenv"},
      {"SELECT k FROM v WHERE current_setting('threads') = '1'", HF_E_FUNCTION_REFUSED, "current_setting",
       "current"},
      {"SELECT (SELECT current_query())", HF_E_FUNCTION_REFUSED, "current_query", "current_query"},
      {"SELECT nextval('s')", HF_E_FUNCTION_REFUSED, "nextval", "nextval"},
      {"SELECT hf_x(1)", HF_E_FUNCTION_REFUSED, "hf_x", "hf_x"},
      {"SELECT write_log('x')", HF_E_FUNCTION_REFUSED, "write_log", "write_log"},
      {"FROM read_csv('x' || '.csv')", HF_E_INVALID_ARGUMENT, "read_csv", "constants"},
      {"FROM read_csv((SELECT 'x'))", HF_E_INVALID_ARGUMENT, "read_csv", "constants"},
      {"FROM v, read_csv(v.k)", HF_E_INVALID_ARGUMENT, "read_csv", "constants"},
      {"FROM read_csv([])", HF_E_INVALID_ARGUMENT, "read_csv", "no file"},
      {"FROM read_csv('x', 'y')", HF_E_INVALID_ARGUMENT, "read_csv", "by name"},
      {"FROM read_csv('x', heder = true)", HF_E_INVALID_ARGUMENT, "read_csv", "did you mean header?"},
      {"FROM read_parquet('x', delim = ',')", HF_E_INVALID_ARGUMENT, "read_parquet", "delim"},
      {"FROM read_csv('x', skip = 1 + 1)", HF_E_INVALID_ARGUMENT, "read_csv", "constant"},
      {"FROM read_csv('x', skip = (SELECT 1))", HF_E_INVALID_ARGUMENT, "read_csv", "constant"},
      {"FROM read_csv('x', skip = 1, SKIP = 2)", HF_E_INVALID_ARGUMENT, "read_csv", "twice"},
      {"FROM read_csv('x', store_rejects = true)", HF_E_INVALID_ARGUMENT, "read_csv", "store_rejects"},
      {"FROM read_parquet('x', encryption_config = {footer_key: 'k'})", HF_E_INVALID_ARGUMENT, "read_parquet",
       "encrypt"},
      {"FROM read_csv('x') WITH ORDINALITY", HF_E_UNSUPPORTED, "read_csv", "ORDINALITY"},
      {"FROM v AT (VERSION => 1)", HF_E_UNSUPPORTED, "v", "AT"},
      {"SELECT ?", HF_E_UNSUPPORTED, NULL, "parameters"},
      {"SELECT $1", HF_E_UNSUPPORTED, NULL, "parameters"},
      {"PIVOT v ON k USING count(*)", HF_E_UNSUPPORTED, NULL, "list the values"},
      {"FROM (SHOW TABLES)", HF_E_STATEMENT_REFUSED, NULL, "SHOW TABLES"},
      {"FROM (SHOW DATABASES)", HF_E_STATEMENT_REFUSED, NULL, "SHOW TABLES"},
      {"DESCRIBE", HF_E_STATEMENT_REFUSED, NULL, "DESCRIBE"},
      {"SELECT 1; SELECT 2", HF_E_SYNTAX, "SELECT 2", "one statement"},
      {"SELECT FROM WHERE", HF_E_SYNTAX, "WHERE", "syntax error"},
      {"SELECT 'x", HF_E_SYNTAX, "'x", "no end"},
      {"", HF_E_SYNTAX, NULL, "empty"},
      {" ; ", HF_E_SYNTAX, NULL, "empty"},
  };
  plan_case *c = *state;
  relation_names names = plan_names(c);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hf_error error = {0};
    relation *r = NULL;
    const char *sql = cases[i].sql;
    hf_status status = relation_from_sql(c->planner, sql, &names, &r, &error);
    bool told = error.message != NULL && (strstr(error.message, cases[i].text) != NULL ||
                                          (error.hint != NULL && strstr(error.hint, cases[i].text) != NULL));
    bool placed = cases[i].at == NULL ? error.position < 0
                                      : error.position >= 0 && strncmp(sql + error.position, cases[i].at,
                                                                       strlen(cases[i].at)) == 0;
    if (status != cases[i].code || !told || !placed || r != NULL) {
      fail_msg("%s: %s at %d: %s; %s", sql, hf_status_name(status), (int)error.position, error.message,
               error.hint);
    }
    hf_error_reset(&error);
  }
}

static void functions_that_compute_are_let_through(void **state) {
  static const char *const cases[] = {
      "SELECT random(), uuid(), now(), version(), current_database(), error('x')",
      "FROM range(3), generate_series(1, 2) g, unnest([1]) u, repeat('a', 3) r",
      "FROM repeat_row(1, 'x', num_rows = 2)",
      "FROM json_each('[1]'), json_tree('{}')",
      "FROM test_all_types()",
      "SELECT sleep_ms(1), strftime(now(), '%Y'), list_transform([1], lambda x: x + 1)",
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_string_equal(spots_of(c, cases[i]), "");
  }
}

static void text_nested_deeply_ends_in_an_error(void **state) {
  plan_case *c = *state;
  relation_names names = plan_names(c);
  buf sql = {0};
  for (int i = 0; i < 20000; i++) {
    buf_char(&sql, '(');
  }
  relation *r = NULL;
  hf_status status = relation_from_sql(c->planner, buf_cstr(&sql), &names, &r, &c->error);
  assert_true(status == HF_E_SYNTAX || status == HF_E_LIMIT);
  buf_reset(&sql);
  buf_text(&sql, "SELECT 1");
  for (int i = 0; i < 5000; i++) {
    buf_text(&sql, " + 1");
  }
  hf_error_reset(&c->error);
  status = relation_from_sql(c->planner, buf_cstr(&sql), &names, &r, &c->error);
  assert_true(status == HF_OK || status == HF_E_LIMIT);
  relation_release(r);
  buf_reset(&sql);
}

/* n times `open`, `middle`, n times `close`; memory of the case. */
static const char *nested(plan_case *c, size_t n, const char *open, const char *middle, const char *close) {
  buf sql = {0};
  for (size_t i = 0; i < n; i++) {
    buf_text(&sql, open);
  }
  buf_text(&sql, middle);
  for (size_t i = 0; i < n; i++) {
    buf_text(&sql, close);
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&sql), sql.length);
  buf_reset(&sql);
  return copy;
}

static void sub_selects_nest_a_hundred_deep_and_then_end_in_an_error(void **state) {
  static const struct {
    const char *open, *middle, *close;
    size_t fits, most;
  } cases[] = {
      {"SELECT * FROM (", "SELECT 1 AS k", ")", 300, 1200},
      {"SELECT 1 WHERE 1 IN (", "SELECT 1", ")", 100, 1200},
      {"WITH a AS (", "SELECT 1", ") SELECT * FROM a", 300, 1200},
      {"SELECT (", "SELECT max(i) FROM range(3) t(i)", ")", 20, 21},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, nested(c, cases[i].fits, cases[i].open, cases[i].middle, cases[i].close));
    lowered l = plan_lowered(c, r);
    plan_traits traits;
    schema columns;
    assert_int_equal(plan_describe(c->planner, &l, c->memory, &columns, &c->error), HF_OK);
    assert_int_equal(plan_traits_of(c->planner, &l, c->memory, &traits, &c->error), HF_OK);
    assert_false(traits.indeterminate);
    relation_release(r);
    relation_names names = plan_names(c);
    const char *deeper = nested(c, cases[i].most, cases[i].open, cases[i].middle, cases[i].close);
    assert_int_equal(relation_from_sql(c->planner, deeper, &names, &r, &c->error), HF_E_LIMIT);
    assert_non_null(c->error.hint);
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, plan_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(name_becomes_a_spot_with_its_extent),
      CASE(reader_options_are_spelled_again),
      CASE(query_refused_says_why),
      CASE(functions_that_compute_are_let_through),
      CASE(text_nested_deeply_ends_in_an_error),
      CASE(sub_selects_nest_a_hundred_deep_and_then_end_in_an_error),
  };
  return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}

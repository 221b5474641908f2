/* SPDX-License-Identifier: Apache-2.0 */
/* Statement heads: what each accepted form gives, how each refused one is named, where scripts are cut. */
#include "sql/statement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool texts_equal(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void statement_accepted_gives_its_parts(void **state) {
  static const struct {
    const char *sql;
    statement expected;
  } cases[] = {
      {"", {.kind = STATEMENT_EMPTY, .query_position = -1}},
      {" -- nothing\n /* at /* all */ */ ; ", {.kind = STATEMENT_EMPTY, .query_position = -1}},
      {"select 1", {.kind = STATEMENT_QUERY, .query = "select 1", .query_position = 0}},
      {"  SELECT ';' -- end\n;", {.kind = STATEMENT_QUERY, .query = "SELECT ';'", .query_position = 2}},
      {"/* x */ (select 1)", {.kind = STATEMENT_QUERY, .query = "(select 1)", .query_position = 8}},
      {"FROM t", {.kind = STATEMENT_QUERY, .query = "FROM t", .query_position = 0}},
      {"from't.csv'", {.kind = STATEMENT_QUERY, .query = "from't.csv'", .query_position = 0}},
      {"VALUES (1)", {.kind = STATEMENT_QUERY, .query = "VALUES (1)", .query_position = 0}},
      {"with a as (select 1) from a",
       {.kind = STATEMENT_QUERY, .query = "with a as (select 1) from a", .query_position = 0}},
      {"table t", {.kind = STATEMENT_QUERY, .query = "table t", .query_position = 0}},
      {"describe t", {.kind = STATEMENT_QUERY, .query = "describe t", .query_position = 0}},
      {"summarize 'x.csv'", {.kind = STATEMENT_QUERY, .query = "summarize 'x.csv'", .query_position = 0}},
      {"pivot t on x in (1)", {.kind = STATEMENT_QUERY, .query = "pivot t on x in (1)", .query_position = 0}},
      {"unpivot t on x", {.kind = STATEMENT_QUERY, .query = "unpivot t on x", .query_position = 0}},
      {"CACHE TABLE t", {.kind = STATEMENT_CACHE_TABLE, .name = "t", .query_position = -1}},
      {"cache lazy table \"T \"\"1\"",
       {.kind = STATEMENT_CACHE_TABLE, .name = "T \"1", .lazy = true, .query_position = -1}},
      {"cache table main.t as select 1",
       {.kind = STATEMENT_CACHE_TABLE, .name = "t", .query = "select 1", .query_position = 22}},
      {"cache table t select 1",
       {.kind = STATEMENT_CACHE_TABLE, .name = "t", .query = "select 1", .query_position = 14}},
      {"cache table t options ('storageLevel' 'DISK_ONLY') as from 'x.csv'",
       {.kind = STATEMENT_CACHE_TABLE,
        .name = "t",
        .level = "DISK_ONLY",
        .query = "from 'x.csv'",
        .query_position = 54}},
      {"cache table t options('storagelevel'='MEMORY_ONLY')",
       {.kind = STATEMENT_CACHE_TABLE, .name = "t", .level = "MEMORY_ONLY", .query_position = -1}},
      {"cache table lazy", {.kind = STATEMENT_CACHE_TABLE, .name = "lazy", .query_position = -1}},
      {"UNCACHE TABLE t;", {.kind = STATEMENT_UNCACHE_TABLE, .name = "t", .query_position = -1}},
      {"uncache table if exists t",
       {.kind = STATEMENT_UNCACHE_TABLE, .name = "t", .if_exists = true, .query_position = -1}},
      {"clear cache", {.kind = STATEMENT_CLEAR_CACHE, .query_position = -1}},
      {"refresh table t", {.kind = STATEMENT_REFRESH_TABLE, .name = "t", .query_position = -1}},
      {"REFRESH \"/a b\";", {.kind = STATEMENT_REFRESH_PATH, .name = "/a b", .query_position = -1}},
      {"show cache", {.kind = STATEMENT_SHOW_CACHE, .query_position = -1}},
      {"show tables", {.kind = STATEMENT_SHOW_TABLES, .query_position = -1}},
      {"show views", {.kind = STATEMENT_SHOW_TABLES, .query_position = -1}},
      {"show all tables", {.kind = STATEMENT_SHOW_TABLES, .query_position = -1}},
      {"show all", {.kind = STATEMENT_SHOW_SETTING, .name = "all", .query_position = -1}},
      {"show settings", {.kind = STATEMENT_SHOW_SETTING, .name = "all", .query_position = -1}},
      {"show sql.time_zone", {.kind = STATEMENT_SHOW_SETTING, .name = "sql.time_zone", .query_position = -1}},
      {"create view v as select 1",
       {.kind = STATEMENT_CREATE_VIEW, .name = "v", .query = "select 1", .query_position = 17}},
      {"create or replace temp view v as (select 1)",
       {.kind = STATEMENT_CREATE_VIEW,
        .name = "v",
        .or_replace = true,
        .query = "(select 1)",
        .query_position = 33}},
      {"create temporary view if not exists \"v v\" as from t",
       {.kind = STATEMENT_CREATE_VIEW,
        .name = "v v",
        .if_not_exists = true,
        .query = "from t",
        .query_position = 45}},
      {"drop view v", {.kind = STATEMENT_DROP_VIEW, .name = "v", .query_position = -1}},
      {"drop view if exists v",
       {.kind = STATEMENT_DROP_VIEW, .name = "v", .if_exists = true, .query_position = -1}},
      {"explain select 1", {.kind = STATEMENT_EXPLAIN, .query = "select 1", .query_position = 8}},
      {"explain (select 1)", {.kind = STATEMENT_EXPLAIN, .query = "(select 1)", .query_position = 8}},
      {"set threads = 4", {.kind = STATEMENT_SET, .name = "threads", .value = "4", .query_position = -1}},
      {"set session sql.time_zone to 'UTC'",
       {.kind = STATEMENT_SET, .name = "sql.time_zone", .value = "UTC", .query_position = -1}},
      {"set time zone 'Europe/Berlin'",
       {.kind = STATEMENT_SET, .name = "sql.time_zone", .value = "Europe/Berlin", .query_position = -1}},
      {"set sink.budget = 64 MiB",
       {.kind = STATEMENT_SET, .name = "sink.budget", .value = "64 MiB", .query_position = -1}},
      {"set allow_path = '/a b'",
       {.kind = STATEMENT_SET, .name = "allow_path", .value = "/a b", .query_position = -1}},
      {"set slots = default", {.kind = STATEMENT_RESET, .name = "slots", .query_position = -1}},
      {"reset sql.time_zone", {.kind = STATEMENT_RESET, .name = "sql.time_zone", .query_position = -1}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arena *a = arena_new();
    hf_error error = {0};
    statement s;
    const statement *x = &cases[i].expected;
    if (statement_read(cases[i].sql, a, &s, &error) != HF_OK) {
      fail_msg("%s: %s", cases[i].sql, error.message);
    }
    bool same = s.kind == x->kind && texts_equal(s.name, x->name) && texts_equal(s.value, x->value) &&
                texts_equal(s.level, x->level) && texts_equal(s.query, x->query) &&
                s.query_position == x->query_position && s.lazy == x->lazy && s.if_exists == x->if_exists &&
                s.if_not_exists == x->if_not_exists && s.or_replace == x->or_replace;
    if (!same) {
      fail_msg("%s: kind %d name %s value %s level %s query %s at %d", cases[i].sql, (int)s.kind, s.name,
               s.value, s.level, s.query, (int)s.query_position);
    }
    arena_free(a);
  }
}

static void statement_refused_names_its_keyword(void **state) {
  static const char *const cases[][2] = {
      {"attach 'x.db'", "ATTACH"},
      {"detach x", "DETACH"},
      {"install httpfs", "INSTALL"},
      {"force install httpfs", "FORCE"},
      {"load httpfs", "LOAD"},
      {"copy t to 'x.csv'", "COPY"},
      {"pragma database_list", "PRAGMA"},
      {"export database 'x'", "EXPORT"},
      {"import database 'x'", "IMPORT"},
      {"insert into t values (1)", "INSERT"},
      {"update t set a = 1", "UPDATE"},
      {"delete from t", "DELETE"},
      {"truncate t", "TRUNCATE"},
      {"merge into t using s on true when matched then delete", "MERGE"},
      {"create table t (a int)", "TABLE"},
      {"create table t as select 1", "TABLE"},
      {"create or replace table t as select 1", "TABLE"},
      {"create macro f(a) as a", "MACRO"},
      {"create secret (type s3)", "SECRET"},
      {"create schema s", "SCHEMA"},
      {"create", "CREATE"},
      {"drop table t", "TABLE"},
      {"drop schema s", "SCHEMA"},
      {"alter table t add column a int", "ALTER"},
      {"call pragma_version()", "CALL"},
      {"vacuum", "VACUUM"},
      {"analyze", "ANALYZE"},
      {"checkpoint", "CHECKPOINT"},
      {"begin", "BEGIN"},
      {"commit", "COMMIT"},
      {"rollback", "ROLLBACK"},
      {"prepare p as select 1", "PREPARE"},
      {"execute p", "EXECUTE"},
      {"deallocate p", "DEALLOCATE"},
      {"use x", "USE"},
      {"set variable x = 1", "VARIABLE"},
      {"/* a */ ATTACH 'x'", "ATTACH"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arena *a = arena_new();
    hf_error error = {0};
    statement s;
    if (statement_read(cases[i][0], a, &s, &error) != HF_E_STATEMENT_REFUSED ||
        strstr(error.message, cases[i][1]) == NULL || error.hint == NULL) {
      fail_msg("%s: %s %s", cases[i][0], hf_status_name(error.code), error.message);
    }
    hf_error_reset(&error);
    arena_free(a);
  }
}

static void statement_explain_may_analyze(void **state) {
  static const struct {
    const char *sql, *query;
    bool analyze;
  } cases[] = {{"explain analyze from t", "from t", true},
               {"EXPLAIN ANALYSE select 1;", "select 1", true},
               {"explain select 1", "select 1", false},
               {"explain from analyze", "from analyze", false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arena *a = arena_new();
    statement s;
    assert_int_equal(statement_read(cases[i].sql, a, &s, NULL), HF_OK);
    assert_int_equal(s.kind, STATEMENT_EXPLAIN);
    assert_string_equal(s.query, cases[i].query);
    assert_int_equal(s.analyze, cases[i].analyze);
    assert_int_equal(s.query_position, strstr(cases[i].sql, cases[i].query) - cases[i].sql);
    arena_free(a);
  }
}

static void statement_wrong_tells_the_position(void **state) {
  static const struct {
    const char *sql;
    hf_status code;
    int64_t position;
    const char *text; /* in message or hint */
  } cases[] = {
      {"sel 1", HF_E_SYNTAX, 0, "SELECT"},
      {"  selct 1", HF_E_SYNTAX, 2, "SELECT"},
      {"42", HF_E_SYNTAX, 0, "42"},
      {"select 1; select 2", HF_E_SYNTAX, 10, "one statement"},
      {"select 'abc", HF_E_SYNTAX, 7, "no end"},
      {"select \"abc", HF_E_SYNTAX, 7, "no end"},
      {"select 1 /* x", HF_E_SYNTAX, 9, "comment"},
      {"select $$x", HF_E_SYNTAX, 7, "no end"},
      {"cache t", HF_E_SYNTAX, 6, "TABLE"},
      {"cache table", HF_E_SYNTAX, 11, "a name"},
      {"cache table t as", HF_E_SYNTAX, 16, "a query"},
      {"cache table t as insert", HF_E_SYNTAX, 17, "a query"},
      {"cache table s.t", HF_E_SYNTAX, 12, "one part"},
      {"cache table t options ('storageLevel')", HF_E_SYNTAX, 37, "storage level"},
      {"cache table t options ('x' 'y')", HF_E_INVALID_ARGUMENT, -1, "storageLevel"},
      {"uncache table if t", HF_E_SYNTAX, 17, "EXISTS"},
      {"uncache table t t", HF_E_SYNTAX, 16, "end of the statement"},
      {"clear", HF_E_SYNTAX, 5, "CACHE"},
      {"create view v select 1", HF_E_SYNTAX, 14, "AS"},
      {"create view v(a) as select 1", HF_E_UNSUPPORTED, 13, "column list"},
      {"create or view v as select 1", HF_E_SYNTAX, 10, "REPLACE"},
      {"explain analyze", HF_E_SYNTAX, 15, "a query"},
      {"explain (format json) select 1", HF_E_UNSUPPORTED, 8, "FORMAT"},
      {"explain attach 'x'", HF_E_SYNTAX, 8, "a query"},
      {"set x", HF_E_SYNTAX, 5, "= or TO"},
      {"set x =", HF_E_SYNTAX, 7, "a value"},
      {"reset", HF_E_SYNTAX, 5, "name of a setting"},
      {"show cache now", HF_E_SYNTAX, 11, "end of the statement"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arena *a = arena_new();
    hf_error error = {0};
    statement s;
    hf_status status = statement_read(cases[i].sql, a, &s, &error);
    bool told = error.message != NULL && (strstr(error.message, cases[i].text) != NULL ||
                                          (error.hint != NULL && strstr(error.hint, cases[i].text) != NULL));
    if (status != cases[i].code || error.position != cases[i].position || !told) {
      fail_msg("%s: %s at %d: %s", cases[i].sql, hf_status_name(status), (int)error.position, error.message);
    }
    hf_error_reset(&error);
    arena_free(a);
  }
}

static void create_table_refused_points_to_cache_table(void **state) {
  (void)state;
  arena *a = arena_new();
  hf_error error = {0};
  statement s;
  assert_int_equal(statement_read("create table t as select 1", a, &s, &error), HF_E_STATEMENT_REFUSED);
  assert_non_null(strstr(error.hint, "CACHE TABLE"));
  hf_error_reset(&error);
  arena_free(a);
}

static void script_is_cut_behind_its_first_statement(void **state) {
  static const struct {
    const char *script;
    size_t end;
  } cases[] = {
      {"", 0},
      {"select 1", 0},
      {"select 1;", 9},
      {"select 1; select 2;", 9},
      {"select ';'; x", 11},
      {"select \";\"; x", 11},
      {"select 'it''s;' ; x", 17},
      {"select e'\\';' ; x", 15},
      {"select $$;$$; x", 13},
      {"select $a$;$$;$a$; x", 18},
      {"-- ;\nselect 1;", 14},
      {"/* ; /* ; */ ; */;", 18},
      {"select ';", 0},
      {"select $1;", 10},
      {"/* ;", 0},
      {";", 1},
      {"select 'ä';", 12},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t end = statement_end(cases[i].script, strlen(cases[i].script));
    if (end != cases[i].end) {
      fail_msg("%s: %zu", cases[i].script, end);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statement_accepted_gives_its_parts),
      cmocka_unit_test(statement_refused_names_its_keyword),
      cmocka_unit_test(statement_explain_may_analyze),
      cmocka_unit_test(statement_wrong_tells_the_position),
      cmocka_unit_test(create_table_refused_points_to_cache_table),
      cmocka_unit_test(script_is_cut_behind_its_first_statement),
  };
  return cmocka_run_group_tests_name("statement", tests, NULL, NULL);
}

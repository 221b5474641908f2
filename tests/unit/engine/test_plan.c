/* SPDX-License-Identifier: Apache-2.0 */
/* Planning without running: parse, describe, plan JSON, explain, and hf_scan in them. */
#include "rig.h"

typedef struct case_state {
  engine *planner;
  arena *memory;
} case_state;

static int setup(void **state) {
  case_state *c = calloc(1, sizeof *c);
  engine_options options = {.kind = ENGINE_PLANNER};
  assert_ok(engine_open(&options, &c->planner, ok_error));
  c->memory = arena_new();
  *state = c;
  return 0;
}

static int teardown(void **state) {
  case_state *c = *state;
  engine_close(c->planner);
  arena_free(c->memory);
  free(c);
  return 0;
}

static const data_type bigint = {.kind = TYPE_BIGINT};
static const data_type varchar = {.kind = TYPE_VARCHAR};
static const char *const letters[] = {"a", "", "c"};
static const data_type letter = {.kind = TYPE_ENUM, .n_names = 3, .names = letters};
static const column scan_columns[] = {{"n", &bigint}, {"name", &varchar}, {"letter", &letter}};
static const schema scan_schema = {3, scan_columns};
static const engine_scan scans[] = {
    {.id = "0", .columns = &scan_schema, .rows = 4711, .rows_exact = true},
    {.id = "other", .columns = &scan_schema, .rows = 12},
};

static void text_parsed_has_locations_in_bytes(void **state) {
  case_state *c = *state;
  const char *json = NULL;
  assert_ok(engine_parse(c->planner, "SELECT 'ä' FROM 'x.parquet'", c->memory, &json, ok_error));
  assert_non_null(strstr(json, "\"error\":false"));
  assert_non_null(strstr(json, "\"query_location\":17"));
  assert_ok(engine_parse(c->planner, "", c->memory, &json, ok_error));
  assert_non_null(strstr(json, "\"statements\":[]"));
}

static void text_nested_too_deep_meets_a_limit(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  buf sql = {0};
  buf_text(&sql, "SELECT ");
  for (int i = 0; i < 2000; i++) {
    buf_char(&sql, '(');
  }
  buf_char(&sql, '1');
  for (int i = 0; i < 2000; i++) {
    buf_text(&sql, "+1)");
  }
  const char *json = NULL;
  schema s;
  assert_int_equal(engine_parse(c->planner, buf_cstr(&sql), c->memory, &json, &error), HF_E_LIMIT);
  assert_non_null(strstr(error.hint, "cache()"));
  assert_int_equal(engine_describe(c->planner, buf_cstr(&sql), c->memory, &s, &error), HF_E_LIMIT);
  hf_error_reset(&error);
  buf_reset(&sql);
}

static void query_described_keeps_names_as_given(void **state) {
  case_state *c = *state;
  schema s;
  assert_ok(engine_describe(c->planner, "SELECT 1 AS \"a b\", 2 AS a, 3 AS A, 4 AS a, 'x' AS \"ä\"\"q\"",
                            c->memory, &s, ok_error));
  assert_int_equal(s.n_columns, 5);
  assert_string_equal(s.columns[0].name, "a b");
  assert_string_equal(s.columns[2].name, "A");
  assert_string_equal(s.columns[3].name, "a");
  assert_string_equal(s.columns[4].name, "ä\"q");
  assert_int_equal(s.columns[1].type->kind, TYPE_INTEGER);
}

static void query_described_computes_nothing(void **state) {
  case_state *c = *state;
  schema s;
  assert_ok(engine_describe(c->planner, "SELECT CAST('x' AS INTEGER) AS a, error('no') AS b", c->memory, &s,
                            ok_error));
  assert_int_equal(s.n_columns, 2);
}

static void scan_has_the_columns_and_rows_of_its_source(void **state) {
  case_state *c = *state;
  schema s;
  const char *text = NULL;
  engine_set_scans(c->planner, scans, 2);
  assert_ok(engine_describe(c->planner, "SELECT * FROM hf_scan('0')", c->memory, &s, ok_error));
  assert_int_equal(s.n_columns, 3);
  assert_string_equal(s.columns[1].name, "c1");
  assert_int_equal(s.columns[2].type->kind, TYPE_ENUM);
  assert_string_equal(s.columns[2].type->names[2], "c");
  assert_ok(engine_explain(c->planner, "SELECT c1 FROM hf_scan('0')", c->memory, &text, ok_error));
  assert_non_null(strstr(text, "HF_SCAN"));
  assert_non_null(strstr(text, "4,711 rows"));
  engine_set_scans(c->planner, NULL, 0);
  hf_error error = {0};
  assert_int_equal(engine_describe(c->planner, "FROM hf_scan('0')", c->memory, &s, &error), HF_E_BIND);
  assert_non_null(strstr(error.message, "hf_scan knows no source"));
  hf_error_reset(&error);
}

static void scan_gives_no_rows(void **state) {
  case_state *c = *state;
  engine_set_scans(c->planner, scans, 2);
  text_table table;
  assert_ok(engine_query_text(c->planner, "SELECT count(*) FROM hf_scan('other') WHERE c0 > 1", c->memory,
                              &table, ok_error));
  assert_string_equal(table.cells[0], "0");
}

static void plan_is_given_as_json(void **state) {
  case_state *c = *state;
  const char *json = NULL, *why = NULL;
  engine_set_scans(c->planner, scans, 2);
  assert_ok(engine_plan_json(c->planner,
                             "WITH o AS NOT MATERIALIZED (SELECT * FROM hf_scan('other')) "
                             "SELECT a.c1, count(*), max(o.c0) FROM hf_scan('0') a JOIN o ON a.c0 = o.c0 "
                             "WHERE a.c1 LIKE 'it''s%' GROUP BY a.c1 ORDER BY 2 DESC LIMIT 3",
                             c->memory, &json, &why, ok_error));
  assert_non_null(json);
  assert_non_null(strstr(json, "\"error\":false"));
  assert_non_null(strstr(json, "LOGICAL_TOP_N"));
  assert_non_null(strstr(json, "\"name\":\"hf_scan\""));
  assert_null(strstr(json, "__internal_compress"));
}

/* Folded, it would be bytes that are no UTF-8, and the plan an empty text. */
static void plan_with_bits_is_given_without_folding(void **state) {
  case_state *c = *state;
  const char *json = NULL, *why = NULL, *text = NULL;
  assert_ok(engine_plan_json(c->planner, "SELECT '101'::BIT, '12345678901234567890123'::BIGNUM", c->memory,
                             &json, &why, ok_error));
  assert_non_null(json);
  assert_non_null(strstr(json, "BOUND_CAST"));
  assert_ok(engine_plan_json(c->planner, "SELECT 1 + 2", c->memory, &json, &why, ok_error));
  assert_null(strstr(json, "BOUND_FUNCTION"));
  assert_ok(engine_explain(c->planner, "SELECT '101'::BIT", c->memory, &text, ok_error));
}

static void plan_that_cannot_be_serialised_says_why(void **state) {
  case_state *c = *state;
  const char *json = "", *why = NULL;
  assert_ok(engine_plan_json(c->planner, "SELECT sum(x) EXPORT_STATE FROM range(3) t(x)", c->memory, &json,
                             &why, ok_error));
  assert_null(json);
  assert_true(strlen(why) > 0);
  assert_ok(engine_plan_json(c->planner, "SELECT nope", c->memory, &json, &why, ok_error));
  assert_null(json);
  assert_non_null(strstr(why, "nope"));
}

/* The rules of plan JSON are the whole instance's while they hold. */
static void rules_of_plan_json_do_not_reach_explain(void **state) {
  case_state *c = *state;
  const char *before = NULL, *after = NULL, *json = NULL, *why = NULL;
  static const char sql[] = "SELECT c0, count(*) FROM hf_scan('0') GROUP BY c0 ORDER BY c0";
  engine_set_scans(c->planner, scans, 2);
  assert_ok(engine_explain(c->planner, sql, c->memory, &before, ok_error));
  assert_ok(engine_plan_json(c->planner, sql, c->memory, &json, &why, ok_error));
  assert_ok(engine_explain(c->planner, sql, c->memory, &after, ok_error));
  assert_string_equal(before, after);
}

static void explain_of_bad_text_has_a_position(void **state) {
  case_state *c = *state;
  const char *text = NULL;
  hf_error error = {0};
  assert_int_equal(engine_explain(c->planner, "SELECT nope", c->memory, &text, &error),
                   HF_E_COLUMN_NOT_FOUND);
  assert_int_equal(error.position, 7);
  hf_error_reset(&error);
}

static void planner_reads_no_file(void **state) {
  case_state *c = *state;
  schema s;
  hf_error error = {0};
  assert_int_equal(engine_describe(c->planner, "FROM '/etc/passwd.csv'", c->memory, &s, &error),
                   HF_E_PATH_REFUSED);
  assert_int_equal(engine_describe(c->planner, "FROM read_text('/etc/passwd')", c->memory, &s, &error),
                   HF_E_PATH_REFUSED);
  assert_int_equal(engine_describe(c->planner, "FROM glob('/etc/*')", c->memory, &s, &error),
                   HF_E_PATH_REFUSED);
  hf_error_reset(&error);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(text_parsed_has_locations_in_bytes),
      CASE(text_nested_too_deep_meets_a_limit),
      CASE(query_described_keeps_names_as_given),
      CASE(query_described_computes_nothing),
      CASE(scan_has_the_columns_and_rows_of_its_source),
      CASE(scan_gives_no_rows),
      CASE(plan_is_given_as_json),
      CASE(plan_with_bits_is_given_without_folding),
      CASE(plan_that_cannot_be_serialised_says_why),
      CASE(rules_of_plan_json_do_not_reach_explain),
      CASE(explain_of_bad_text_has_a_position),
      CASE(planner_reads_no_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* EXPLAIN and columns: miss, hit, released; nothing is claimed or computed. */
#include "rig.h"

static int set_up(void **state) {
  rig *r = mem_zalloc(1, sizeof *r);
  rig_open(r, 1);
  *state = r;
  return 0;
}

static int tear_down(void **state) {
  rig_close(*state);
  mem_free(*state);
  return 0;
}

static void expect_text(rig *r, const char *sql, const char *const *parts, size_t n_parts) {
  relation *what = rig_sql(r, sql);
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  char *text = NULL;
  hf_error error = {0};
  if (scheduler_explain(r->s, &request, &text, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  for (size_t i = 0; i < n_parts; i++) {
    if (strstr(text, parts[i]) == NULL) {
      fail_msg("no \"%s\" in\n%s", parts[i], text);
    }
  }
  mem_free(text);
  relation_release(what);
}

#define EXPECT_TEXT(r, sql, ...)                                \
  do {                                                          \
    static const char *const parts[] = {__VA_ARGS__};           \
    expect_text(r, sql, parts, sizeof parts / sizeof parts[0]); \
  } while (0)

static void explain_tells_miss_hit_and_released(void **state) {
  rig *r = *state;
  rig_numbers(r, "a.csv", 1000);
  const relation *node = rig_cache(r, "held", "SELECT x AS y FROM '$DIR/a.csv'");
  EXPECT_TEXT(r, "SELECT sum(y) FROM held", "== Holdfast plan ==", "one task (fits one slot), ordered",
              "input 0: CachedRead [miss → materialise] held", "read_csv 1 file, ", "== DuckDB plan ==");
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  assert_int_equal(rig_value(r, "SELECT sum(y)::BIGINT FROM held", NULL), 500500);
  EXPECT_TEXT(r, "SELECT sum(y) FROM held", "input 0: CachedRead [hit, generation 1] held 1,000 rows, ");
  assert_int_equal(rig_storage(r, node).hits, 0);
  uuid key = rig_key(node);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
  EXPECT_TEXT(r, "SELECT sum(y) FROM held", "Inline [released] held", "read_csv 1 file");
}

static void explain_shows_nested_misses(void **state) {
  rig *r = *state;
  rig_cache(r, "inner_one", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  rig_cache(r, "outer_one", "SELECT x + 1 AS y FROM inner_one");
  EXPECT_TEXT(r, "SELECT * FROM outer_one", "CachedRead [miss → materialise] outer_one",
              "CachedRead [miss → materialise] inner_one", "range(100)");
  assert_int_equal(rig_jobs(r, JOB_SUCCEEDED), 0);
}

static void explain_describe_gives_columns_without_claiming(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT 1::SMALLINT AS a, 'x' AS \"odd name\"");
  relation *what = rig_sql(r, "SELECT *, a + 1::BIGINT AS b FROM held");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  arena *a = arena_new();
  schema columns;
  assert_int_equal(scheduler_describe(r->s, &request, a, &columns, NULL), HF_OK);
  assert_int_equal(columns.n_columns, 3);
  assert_string_equal(columns.columns[1].name, "odd name");
  assert_int_equal(columns.columns[0].type->kind, TYPE_SMALLINT);
  assert_int_equal(columns.columns[2].type->kind, TYPE_BIGINT);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  arena_free(a);
  relation_release(what);
}

static void explain_of_an_unknown_column_fails(void **state) {
  rig *r = *state;
  relation *what = rig_sql(r, "SELECT nothing FROM range(3) t(i)");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  char *text = NULL;
  assert_int_equal(scheduler_explain(r->s, &request, &text, NULL), HF_E_COLUMN_NOT_FOUND);
  assert_null(text);
  relation_release(what);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(explain_tells_miss_hit_and_released),
      CASE(explain_shows_nested_misses),
      CASE(explain_describe_gives_columns_without_claiming),
      CASE(explain_of_an_unknown_column_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Results as text: small tables, and rows streamed to a person. */
#include "store.h"

static int setup(void **state) {
  rig *r = malloc(sizeof *r);
  rig_open(r, 1);
  *state = r;
  return 0;
}

static int teardown(void **state) {
  rig_close(*state);
  free(*state);
  return 0;
}

static void table_has_names_and_cells(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  text_table t;
  assert_ok(engine_query_text(r->slot,
                              "SELECT 1 AS a, NULL AS b, [1, NULL] AS \"c d\" UNION ALL SELECT 2, 'x', []", a,
                              &t, ok_error));
  assert_int_equal(t.n_columns, 3);
  assert_int_equal(t.n_rows, 2);
  assert_string_equal(t.names[2], "c d");
  assert_string_equal(t.cells[0], "1");
  assert_null(t.cells[1]);
  assert_string_equal(t.cells[2], "[1, NULL]");
  assert_string_equal(t.cells[4], "x");
  assert_string_equal(t.cells[5], "[]");
  assert_ok(engine_query_text(r->slot, "DESCRIBE SELECT 1 AS a", a, &t, ok_error));
  assert_string_equal(t.cells[1], "INTEGER");
  assert_ok(engine_query_text(r->slot, "SELECT 1 AS a WHERE false", a, &t, ok_error));
  assert_int_equal(t.n_rows, 0);
  assert_int_equal(t.n_columns, 1);
  arena_free(a);
}

static void table_too_large_meets_a_limit(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  text_table t = {0};
  hf_error error = {0};
  assert_int_equal(engine_query_text(r->slot, "SELECT range FROM range(100001)", a, &t, &error), HF_E_LIMIT);
  assert_null(t.cells);
  hf_error_reset(&error);
  assert_ok(engine_query_text(r->slot, "SELECT range FROM range(100000)", a, &t, ok_error));
  assert_string_equal(t.cells[99999], "99999");
  arena_free(a);
}

static void table_under_failing_allocations_is_whole_or_not_there(void **state) {
  rig *r = *state;
  hf_status status = HF_E_OUT_OF_MEMORY;
  for (uint64_t n = 1; status != HF_OK; n++) {
    assert_true(n < 200);
    arena *a = arena_new();
    text_table t = {0};
    hf_error error = {0};
    mem_fail_after(n);
    status = engine_query_text(r->slot, "SELECT range::VARCHAR AS a FROM range(3000)", a, &t, &error);
    mem_fail_after(0);
    assert_true(status == HF_OK ? t.n_rows == 3000 : status == HF_E_OUT_OF_MEMORY && t.cells == NULL);
    hf_error_reset(&error);
    arena_free(a);
  }
}

static void rows_rendered_are_spelled_by_the_engine(void **state) {
  rig *r = *state;
  char *text =
      rig_render(r->slot,
                 "SELECT 1.50::DECIMAL(9,2) AS a, 1e300 AS a, DATE '2024-02-29' AS b, {'k': [1, NULL]} AS b, "
                 "INTERVAL 1 MONTH AS i, '\\xAA'::BLOB AS x, true AS t, NULL AS n, 'it''s' AS s",
                 9, NULL, 0);
  assert_string_equal(text, "1.50|1e+300|2024-02-29|{'k': [1, NULL]}|1 month|\\xAA|true|~|it's\n");
  free(text);
}

static void rows_rendered_keep_their_order(void **state) {
  rig *r = *state;
  char *text = rig_render(r->slot, "SELECT range FROM range(5) ORDER BY range DESC -- down", 1, NULL, 0);
  assert_string_equal(text, "4\n3\n2\n1\n0\n");
  free(text);
}

typedef struct counted {
  size_t rows, batches, stop_at, zero_bytes;
} counted;

static bool count_rows(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                       size_t n_rows) {
  counted *c = context;
  c->rows += n_rows;
  c->batches++;
  for (size_t i = 0; i < n_rows; i++) {
    c->zero_bytes += cells[0][i] != NULL && lengths[0][i] == 3 && cells[0][i][1] == '\0';
  }
  return c->rows < c->stop_at;
}

static void rows_rendered_come_with_lengths(void **state) {
  rig *r = *state;
  counted c = {.stop_at = SIZE_MAX};
  assert_ok(engine_render(r->slot, &(engine_shown){.sql = "SELECT 'a' || chr(0) || 'b' FROM range(10000)"},
                          count_rows, &c, ok_error));
  assert_int_equal(c.rows, 10000);
  assert_int_equal(c.zero_bytes, 10000);
  assert_true(c.batches > 1);
}

static void rendering_stops_when_told_to(void **state) {
  rig *r = *state;
  counted c = {.stop_at = 5000};
  assert_ok(engine_render(r->slot, &(engine_shown){.sql = "SELECT range FROM range(1000000000000)"},
                          count_rows, &c, ok_error));
  assert_true(c.rows >= 5000 && c.rows < 100000);
  char *text = rig_render(r->slot, "SELECT 1", 1, NULL, 0);
  assert_string_equal(text, "1\n");
  free(text);
}

static void rendering_of_rows_that_fail_gives_the_error(void **state) {
  rig *r = *state;
  counted c = {.stop_at = SIZE_MAX};
  hf_error error = {0};
  assert_int_equal(
      engine_render(
          r->slot,
          &(engine_shown){
              .sql =
                  "SELECT CAST(CASE WHEN range = 90000 THEN 'x' ELSE '1' END AS INTEGER) FROM range(100000)"},
          count_rows, &c, &error),
      HF_E_CAST);
  assert_int_equal(error.position, 7);
  hf_error_reset(&error);
}

static void planner_renders_blocks(void **state) {
  rig *r = *state;
  engine *planner = NULL;
  engine_options options = {.kind = ENGINE_PLANNER};
  assert_ok(engine_open(&options, &planner, ok_error));
  arena *a = arena_new();
  schema columns;
  store s;
  store_init(&s);
  store_fill(&s, r->slot, "SELECT range AS n, 'v' || range AS v FROM range(3)");
  assert_ok(engine_describe(r->slot, "SELECT 1::BIGINT, 'v'", a, &columns, ok_error));
  engine_input input = store_input(&s, "r", &columns);
  char *text = rig_render(planner, "SELECT c0, c1 FROM hf_blocks('r')", 2, &input, 1);
  assert_string_equal(text, "0|v0\n1|v1\n2|v2\n");
  free(text);
  store_reset(&s);
  arena_free(a);
  engine_close(planner);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(table_has_names_and_cells),
      CASE(table_too_large_meets_a_limit),
      CASE(table_under_failing_allocations_is_whole_or_not_there),
      CASE(rows_rendered_are_spelled_by_the_engine),
      CASE(rows_rendered_keep_their_order),
      CASE(rows_rendered_come_with_lengths),
      CASE(rendering_stops_when_told_to),
      CASE(rendering_of_rows_that_fail_gives_the_error),
      CASE(planner_renders_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

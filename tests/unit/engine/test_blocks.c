/* SPDX-License-Identifier: Apache-2.0 */
/* hf_blocks: projection, several scans, early ends, and inputs that are not what they should be. */
#include "store.h"

typedef struct case_state {
  rig rig;
  store store;
  arena *memory;
  schema columns;
  engine_input input;
} case_state;

static const char rows_sql[] =
    "SELECT range AS n, range::VARCHAR AS t, {'a': range, 'b': {'c': range * 2}} AS s FROM range(50000)";

static int setup(void **state) {
  case_state *c = calloc(1, sizeof *c);
  rig_open(&c->rig, 2);
  store_init(&c->store);
  c->memory = arena_new();
  assert_ok(engine_describe(c->rig.slot, rows_sql, c->memory, &c->columns, ok_error));
  store_fill(&c->store, c->rig.slot, rows_sql);
  c->input = store_input(&c->store, "in", &c->columns);
  *state = c;
  return 0;
}

static int teardown(void **state) {
  case_state *c = *state;
  assert_int_equal(c->store.scans, 0);
  assert_int_equal(c->store.readers, 0);
  arena_free(c->memory);
  store_reset(&c->store);
  rig_close(&c->rig);
  free(c);
  return 0;
}

static void expect(case_state *c, const char *sql, size_t n_columns, const char *wanted) {
  char *text = rig_render(c->rig.slot, sql, n_columns, &c->input, 1);
  assert_string_equal(text, wanted);
  free(text);
}

static void blocks_are_read_in_any_projection(void **state) {
  case_state *c = *state;
  expect(c, "SELECT count(*) FROM hf_blocks('in')", 1, "50000\n");
  expect(c, "SELECT max(c1), min(c0) FROM hf_blocks('in')", 2, "9999|0\n");
  expect(c, "SELECT c2, c0, c2.b.c FROM hf_blocks('in') WHERE c1 = '4711'", 3,
         "{'a': 4711, 'b': {'c': 9422}}|4711|9422\n");
  expect(c, "SELECT sum(c2.a), sum(c2.b.c) FROM hf_blocks('in')", 2, "1249975000|2499950000\n");
}

static void blocks_are_read_twice_in_one_query(void **state) {
  case_state *c = *state;
  expect(c, "SELECT count(*), sum(b.c0) FROM hf_blocks('in') a JOIN hf_blocks('in') b ON a.c0 = b.c0 + 1", 2,
         "49999|1249925001\n");
}

static void blocks_are_left_early(void **state) {
  case_state *c = *state;
  c->store.threads = 1;
  expect(c, "SELECT c0 FROM hf_blocks('in') LIMIT 3", 1, "0\n1\n2\n");
}

static void blocks_of_several_inputs_are_told_apart(void **state) {
  case_state *c = *state;
  store other;
  store_init(&other);
  store_fill(&other, c->rig.slot, "SELECT 7 AS k");
  schema columns;
  assert_ok(engine_describe(c->rig.slot, "SELECT 7", c->memory, &columns, ok_error));
  engine_input inputs[2] = {c->input, store_input(&other, "o-2", &columns)};
  char *text =
      rig_render(c->rig.slot, "SELECT a.c0 + b.c0 FROM hf_blocks('in') a, hf_blocks('o-2') b WHERE a.c0 = 1",
                 1, inputs, 2);
  assert_string_equal(text, "8\n");
  free(text);
  store_reset(&other);
}

static hf_status fails(case_state *c, const char *sql, hf_error *error) {
  bool ignored = false;
  return engine_render(c->rig.slot, sql, &c->input, 1, NULL, &ignored, error);
}

static void blocks_of_an_unknown_id_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  assert_int_equal(fails(c, "SELECT * FROM hf_blocks('nope')", &error), HF_E_BIND);
  assert_non_null(strstr(error.message, "hf_blocks knows no input"));
  schema s;
  assert_int_equal(engine_describe(c->rig.slot, "FROM hf_blocks('in')", c->memory, &s, &error), HF_E_BIND);
  hf_error_reset(&error);
}

static void source_that_fails_ends_the_query_with_its_error(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.fail_next_at = 3;
  assert_int_equal(fails(c, "SELECT sum(c0) FROM hf_blocks('in')", &error), HF_E_BLOCK_CORRUPT);
  assert_string_equal(error.message, "the test's block is damaged");
  assert_int_equal(error.error_class, HF_CLASS_FETCH);
  hf_error_reset(&error);
}

static void blocks_of_another_type_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  schema wrong;
  assert_ok(engine_describe(c->rig.slot,
                            "SELECT 1::BIGINT, 2::INTEGER, {'a': 1::BIGINT, 'b': {'c': 1::BIGINT}}",
                            c->memory, &wrong, ok_error));
  c->input.columns = &wrong;
  assert_int_equal(fails(c, "SELECT sum(c1) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "VARCHAR, expected INTEGER"));
  wrong.n_columns = 2;
  assert_int_equal(fails(c, "SELECT sum(c1) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  hf_error_reset(&error);
}

/* A window that does not begin at a multiple of 8 leaves an offset, which DuckDB misreads below a STRUCT. */
static void windows_with_an_offset_in_a_struct_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.window = 13;
  expect(c, "SELECT sum(c0), max(c1) FROM hf_blocks('in')", 2, "1249975000|9999\n");
  assert_int_equal(fails(c, "SELECT sum(c2.a) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "offset"));
  hf_error_reset(&error);
}

static void windows_longer_than_a_vector_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.window = 2056;
  assert_int_equal(fails(c, "SELECT sum(c0) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  hf_error_reset(&error);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(blocks_are_read_in_any_projection),
      CASE(blocks_are_read_twice_in_one_query),
      CASE(blocks_are_left_early),
      CASE(blocks_of_several_inputs_are_told_apart),
      CASE(blocks_of_an_unknown_id_are_refused),
      CASE(source_that_fails_ends_the_query_with_its_error),
      CASE(blocks_of_another_type_are_refused),
      CASE(windows_with_an_offset_in_a_struct_are_refused),
      CASE(windows_longer_than_a_vector_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

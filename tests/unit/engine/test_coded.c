/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that come as codes, through the sink and input that held results have: every type whose values repeat. */
#include "rig.h"

#include "base/mem.h"
#include "exchange/exchange.h"

enum { ROWS = 20000 };

/* Each value repeats; a seventh are NULL, which is put around each expression. */
static const struct {
  const char *name, *sql;
} kinds[] = {
    {"c0", "'value ' || i % 50"},
    {"c1", "repeat('long ', 1 + (i % 9)::INTEGER)"},
    {"c2", "(i % 3)::VARCHAR::BLOB"},
    {"c3", "('{\"a\": ' || i % 5 || '}')::JSON"},
    {"c4", "(i % 70)::DECIMAL(4, 1) - 30"},
    {"c5", "(i % 70)::DECIMAL(9, 2)"},
    {"c6", "(i % 70)::DECIMAL(18, 2) / 7"},
    {"c7", "(i % 70)::DECIMAL(38, 2)"},
    {"c8", "(i % 70)::INTEGER - 35"},
    {"c9", "(i % 70)::UINTEGER"},
    {"c10", "(i % 70)::BIGINT * -1000000000000"},
    {"c11", "(i % 70)::UBIGINT"},
    {"c12", "(i % 70)::FLOAT / 3"},
    {"c13", "CASE i % 5 WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN -0.0::DOUBLE ELSE i % 70 / 3.0::DOUBLE END"},
    {"c14", "DATE '1999-12-01' + (i % 90)::INTEGER"},
    {"c15", "TIMESTAMP '1999-12-01 01:02:03.456789' + to_days((i % 90)::INTEGER)"},
    {"c16", "(TIMESTAMP '1999-12-01 01:02:03' + to_days((i % 90)::INTEGER))::TIMESTAMP_S"},
    {"c17", "(TIMESTAMP '1999-12-01 01:02:03' + to_days((i % 90)::INTEGER))::TIMESTAMP_MS"},
    {"c18", "(TIMESTAMP '1999-12-01 01:02:03' + to_days((i % 90)::INTEGER))::TIMESTAMP_NS"},
    {"c19", "(TIMESTAMP '1999-12-01 01:02:03' + to_days((i % 90)::INTEGER))::TIMESTAMPTZ"},
    {"c20", "TIME '01:02:03' + to_minutes(i % 60)"},
    {"c21", "('01:02:0' || i % 10 || '+02')::TIMETZ"},
    {"c22", "(i % 7)::BIT"},
    {"c23", "(i % 70)::HUGEINT"},
    {"c24", "to_days((i % 9)::INTEGER)"},
    {"c25", "(i % 100)::TINYINT"},
    {"c26", "i % 2 = 0"},
    {"c27", "('a' || i % 3)::ENUM('a0', 'a1', 'a2')"},
    {"c28", "['x' || i % 3, NULL]"},
    {"c29", "{'a': i % 3, 'b': 'y'}"},
    {"c30", "(i % 3)::BIGNUM"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int setup(void **state) {
  rig *r = malloc(sizeof *r);
  rig_open(r, 2);
  *state = r;
  return 0;
}

static int teardown(void **state) {
  rig_close(*state);
  free(*state);
  return 0;
}

typedef struct held {
  arena *memory;
  schema columns;
  block_index index;
  block_input *blocks;
  engine_input input;
} held;

/* Runs the query into blocks as those of a held result, and opens them. */
static void held_open(rig *r, const char *sql, bool ordered, held *h) {
  block_sink *sink = NULL;
  memset(h, 0, sizeof *h);
  h->memory = arena_new();
  const char *dir = arena_printf(h->memory, "%s/attempt", r->dir);
  assert_ok(engine_describe(r->slot, sql, h->memory, &h->columns, ok_error));
  block_sink_options options = {.dir = dir,
                                .columns = &h->columns,
                                .partitions = 1,
                                .ordered = ordered,
                                .budget_bytes = 64 << 20,
                                .batch_bytes = 1 << 20,
                                .block_bytes = 4 << 20,
                                .held = true};
  assert_ok(block_sink_new(&options, &sink, ok_error));
  engine_task task = {
      .id = "fill", .sql = sql, .partitions = 1, .ordered = ordered, .ops = block_sink_ops(), .sink = sink};
  engine_task_stats stats;
  assert_ok(engine_run_task(r->slot, &task, &stats, ok_error));
  assert_ok(block_sink_commit(sink, h->memory, &h->index, ok_error));
  block_sink_free(sink);
  block_location location = {.dir = dir};
  block_input_options in = {
      .locations = &location, .n_locations = 1, .ordered = ordered, .verify = true, .threads = 2};
  assert_ok(block_input_new(&in, &h->blocks, ok_error));
  h->input = (engine_input){.id = "in",
                            .ops = block_input_ops(),
                            .source = h->blocks,
                            .columns = block_input_columns(h->blocks),
                            .block_schema = block_input_arrow_schema(h->blocks),
                            .rows = block_input_rows(h->blocks)};
}

static void held_close(rig *r, held *h) {
  block_input_free(h->blocks);
  const char *dir = arena_printf(h->memory, "%s/attempt", r->dir);
  assert_ok(file_remove_tree(dir, ok_error));
  arena_free(h->memory);
}

static void expect_same(rig *r, held *h, const char *over_held, const char *over_rows, size_t n_columns) {
  char *expected = rig_render(r->slot, over_rows, n_columns, NULL, 0);
  char *found = rig_render(r->slot, over_held, n_columns, &h->input, 1);
  if (strcmp(expected, found) != 0) {
    fail_msg("%s\nexpected\n%.600s\nfound\n%.600s", over_held, expected, found);
  }
  mem_free(expected);
  mem_free(found);
}

static bool is_coded(const held *h) {
  return h->index.n_dictionaries > 0;
}

static void coded_columns_of_every_type_are_as_computed(void **state) {
  rig *r = *state;
  size_t coded = 0;
  for (size_t i = 0; i < KINDS; i++) {
    held h;
    char rows[400];
    snprintf(rows, sizeof rows, "SELECT CASE WHEN i %% 7 = 0 THEN NULL ELSE %s END AS c FROM range(%d) t(i)",
             kinds[i].sql, ROWS);
    held_open(r, rows, true, &h);
    expect_same(r, &h, "SELECT c0 FROM hf_blocks('in')", rows, 1);
    char grouped[600];
    snprintf(grouped, sizeof grouped, "SELECT c::VARCHAR, count(*) FROM (%s) GROUP BY c ORDER BY 1", rows);
    expect_same(r, &h, "SELECT c0::VARCHAR, count(*) FROM hf_blocks('in') GROUP BY c0 ORDER BY 1", grouped,
                2);
    coded += is_coded(&h);
    held_close(r, &h);
  }
  assert_true(coded >= 20);
}

static void coded_columns_stand_beside_plain_ones(void **state) {
  rig *r = *state;
  held h;
  static const char rows[] =
      "SELECT i AS a, CASE WHEN i % 3 = 0 THEN NULL ELSE 's' || i % 9 END AS b, 'u' || i AS c, i % 5 AS d, "
      "[i % 4] AS e, to_days((i % 9)::INTEGER) AS f FROM range(60000) t(i)";
  held_open(r, rows, true, &h);
  assert_true(is_coded(&h));
  expect_same(r, &h, "SELECT * FROM hf_blocks('in')", rows, 6);
  char over[400];
  snprintf(over, sizeof over, "SELECT b, d, c FROM (%s) WHERE b IN ('s1', 's5') AND d > 2", rows);
  expect_same(r, &h, "SELECT c1, c3, c2 FROM hf_blocks('in') WHERE c1 IN ('s1', 's5') AND c3 > 2", over, 3);
  snprintf(over, sizeof over,
           "SELECT upper(b), sum(d), min(b), max(c), count(DISTINCT b) FROM (%s) GROUP BY b, d ORDER BY b, d",
           rows);
  expect_same(r, &h,
              "SELECT upper(c1), sum(c3), min(c1), max(c2), count(DISTINCT c1) FROM hf_blocks('in') "
              "GROUP BY c1, c3 ORDER BY c1, c3",
              over, 5);
  char joined[800];
  snprintf(joined, sizeof joined,
           "SELECT x.b, count(*) FROM (%s) x JOIN (%s) y ON x.b = y.b AND x.a = y.a GROUP BY 1 ORDER BY 1",
           "SELECT i AS a, CASE WHEN i % 3 = 0 THEN NULL ELSE 's' || i % 9 END AS b FROM range(60000) t(i)",
           "SELECT i AS a, CASE WHEN i % 3 = 0 THEN NULL ELSE 's' || i % 9 END AS b FROM range(60000) t(i)");
  expect_same(
      r, &h,
      "SELECT x.c1, count(*) FROM hf_blocks('in') x JOIN hf_blocks('in') y ON x.c1 = y.c1 AND x.c0 = y.c0 "
      "GROUP BY 1 ORDER BY 1",
      joined, 2);
  held_close(r, &h);
}

/* Values that come late: the dictionary of a file grows, gives up, and the next file has none. */
static void coded_columns_change_from_file_to_file(void **state) {
  rig *r = *state;
  held h;
  static const char rows[] =
      "SELECT CASE WHEN i < 100000 THEN i % 4 ELSE i END AS a, 's' || CASE WHEN i < 100000 THEN i % 4 ELSE i % "
      "5000 END AS b FROM range(300000) t(i)";
  held_open(r, rows, true, &h);
  assert_true(h.index.n_files > 1);
  expect_same(r, &h, "SELECT * FROM hf_blocks('in')", rows, 2);
  char over[400];
  snprintf(over, sizeof over, "SELECT b, count(*), sum(a) FROM (%s) GROUP BY b ORDER BY b", rows);
  expect_same(r, &h, "SELECT c1, count(*), sum(c0) FROM hf_blocks('in') GROUP BY c1 ORDER BY c1", over, 3);
  held_close(r, &h);
}

/* Alone and beside others, with NULLs, with more names than a byte counts. */
static void enum_columns_come_back_as_text(void **state) {
  rig *r = *state;
  buf of_enum = {0};
  buf_text(&of_enum, "ENUM(");
  for (unsigned i = 0; i < 300; i++) {
    buf_printf(&of_enum, "%s'name %u'", i == 0 ? "" : ", ", i);
  }
  buf_text(&of_enum, ")");
  for (size_t i = 0; i < 2; i++) {
    held h;
    buf value = {0};
    buf rows = {0};
    buf_printf(&value, "CASE WHEN i %% 11 = 0 THEN NULL ELSE ('name ' || i %% 299)::%s END",
               buf_cstr(&of_enum));
    buf_text(&rows, "SELECT ");
    buf_printf(&rows, i == 0 ? "%s AS e" : "%s AS e, i AS a, NULL::ENUM('p', 'q') AS f, 'x' || i AS s",
               buf_cstr(&value));
    buf_text(&rows, " FROM range(10000) t(i)");
    held_open(r, buf_cstr(&rows), true, &h);
    expect_same(r, &h, "SELECT * FROM hf_blocks('in')", buf_cstr(&rows), i == 0 ? 1 : 4);
    held_close(r, &h);
    buf_reset(&value);
    buf_reset(&rows);
  }
  buf_reset(&of_enum);
}

/* Functions that fail on some values must see only those that are there. */
static void coded_values_filtered_out_are_not_computed(void **state) {
  rig *r = *state;
  held h;
  static const char rows[] =
      "SELECT CASE WHEN i % 10 = 0 THEN 'x' ELSE (i % 8)::VARCHAR END AS a FROM range(20000) t(i)";
  held_open(r, rows, true, &h);
  assert_true(is_coded(&h));
  char over[400];
  snprintf(over, sizeof over, "SELECT sum(a::INTEGER) FROM (%s) WHERE a <> 'x'", rows);
  expect_same(r, &h, "SELECT sum(c0::INTEGER) FROM hf_blocks('in') WHERE c0 <> 'x'", over, 1);
  snprintf(over, sizeof over, "SELECT count(*) FROM (%s) WHERE TRY(a::INTEGER) IS NULL", rows);
  expect_same(r, &h, "SELECT count(*) FROM hf_blocks('in') WHERE TRY(c0::INTEGER) IS NULL", over, 1);
  held_close(r, &h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(coded_columns_of_every_type_are_as_computed, setup, teardown),
      cmocka_unit_test_setup_teardown(coded_columns_stand_beside_plain_ones, setup, teardown),
      cmocka_unit_test_setup_teardown(coded_columns_change_from_file_to_file, setup, teardown),
      cmocka_unit_test_setup_teardown(enum_columns_come_back_as_text, setup, teardown),
      cmocka_unit_test_setup_teardown(coded_values_filtered_out_are_not_computed, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

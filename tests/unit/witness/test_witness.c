/* SPDX-License-Identifier: Apache-2.0 */
/* Single-node DuckDB over blocks as tables, and over settings. */
#include "witness/witness.h"

#include "base/file.h"
#include "exchange/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

static int rig_open(void **state) {
  const engine_setting settings[] = {{"default_null_order", "nulls_first"}, {"TimeZone", "UTC"}};
  rig *r = rig_new(&(witness_options){.settings = settings, .n_settings = 2});
  *state = r;
  return 0;
}

/* The answer as one text. */
static void assert_answer(rig *r, const char *sql, const char *expected) {
  arena *a = arena_new();
  text_table table;
  hf_error error = {0};
  char found[400] = "";
  must(engine_query_text(witness_engine(r->w), sql, a, &table, &error), &error);
  for (size_t i = 0; i < table.n_rows * table.n_columns; i++) {
    const char *cell = table.cells[i] == NULL ? "NULL" : table.cells[i];
    snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i > 0 ? " " : "", cell);
  }
  assert_string_equal(found, expected);
  arena_free(a);
}

static void take(rig *r, const char *name, const char *sql) {
  hf_error error = {0};
  struct ArrowArrayStream rows;
  char dir[100];
  snprintf(dir, sizeof dir, "%s/%s", r->dir, name);
  must(witness_run(r->w, sql, &rows, &error), &error);
  arena *a = arena_new();
  block_index index;
  const block_sink_options sink = {.dir = dir,
                                   .partitions = 1,
                                   .ordered = true,
                                   .budget_bytes = 1 << 20,
                                   .batch_bytes = 1 << 10,
                                   .block_bytes = 1 << 12};
  must(block_write_stream(&rows, &sink, a, &index, &error), &error);
  arena_free(a);
  must(witness_take_blocks(r->w, "t", dir, &error), &error);
}

static void witness_with_settings_orders_nulls_as_they_say(void **state) {
  assert_answer(*state, "SELECT x FROM (VALUES (2), (NULL), (1)) t(x) ORDER BY x", "NULL 1 2");
}

static void witness_takes_blocks_as_a_table_in_their_order(void **state) {
  take(*state, "first", "SELECT range::HUGEINT AS \"a b\", 'x' || range AS s FROM range(5000)");
  assert_answer(*state, "SELECT count(*), sum(\"a b\"), typeof(first(\"a b\")), last(s) FROM t",
                "5000 12497500 HUGEINT x4999");
}

static void witness_takes_blocks_in_the_place_of_a_table(void **state) {
  take(*state, "first", "SELECT 1 AS a");
  take(*state, "second", "SELECT 2 AS b");
  assert_answer(*state, "FROM t", "2");
}

int main(void) {
  const struct CMUnitTest cases[] = {
      cmocka_unit_test_setup_teardown(witness_with_settings_orders_nulls_as_they_say, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(witness_takes_blocks_as_a_table_in_their_order, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(witness_takes_blocks_in_the_place_of_a_table, rig_open, rig_close),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

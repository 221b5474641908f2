/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers that are not single-node DuckDB's may be right all the same. */
#include "witness/witness.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

static int rig_open(void **state) {
  rig *r = rig_new(&(witness_options){.time_zone = "UTC"});
  execute(r, "CREATE TABLE t AS SELECT range AS a, range % 7 AS b, ['a', 'A', 'b'][1 + range % 3] AS s "
             "FROM range(900)");
  execute(r, "CREATE TABLE u AS SELECT range % 7 AS b, range AS d, range % 3 AS k FROM range(60)");
  *state = r;
  return 0;
}

typedef struct other_side {
  rig *r;
  const char *sql;
} other_side;

static hf_status other_rows(void *context, struct ArrowArrayStream *out, hf_error *error) {
  const other_side *o = context;
  return witness_run(o->r->w, o->sql, out, error);
}

/* The other side has the rows of another query, and single-node DuckDB those of `sql`. */
static void assert_doubt(rig *r, const char *sql, const char *other, int verdict, const char *why) {
  struct ArrowArrayStream single, rows;
  hf_error error = {0};
  compare_report found = {0};
  compare_options options;
  arena *a = arena_new();
  other_side side = {r, other};
  must(witness_run(r->w, sql, &single, &error), &error);
  must(witness_run(r->w, other, &rows, &error), &error);
  order_of_query(witness_engine(r->w), sql, a, &options);
  must(compare_streams(&single, &rows, &options, &found, &error), &error);
  const witness_case c = {
      .sql = sql, .options = &options, .found = &found, .rows = other_rows, .context = &side};
  witness_verdict given;
  must(witness_doubt(r->w, &c, &given, &error), &error);
  if ((int)given.is != verdict || strstr(given.why, why) == NULL) {
    fail_msg("%s: %d %s", sql, (int)given.is, given.why);
  }
  compare_report_reset(&found);
  arena_free(a);
}

static void query_that_draws_is_free(void **state) {
  assert_doubt(*state, "SELECT a, random() AS r FROM t", "SELECT a, 0.5::DOUBLE AS r FROM t", WITNESS_IS_FREE,
               "two");
}

static void ties_behind_a_join_are_free(void **state) {
  rig *r = *state;
  static const char *const free_ones[] = {
      "SELECT arg_min(t.a, u.k) FROM t JOIN u USING (b)",
      "SELECT arg_min(t.a, u.k) FROM u, t WHERE u.b = t.b",
      "SELECT first(d) FROM t LEFT JOIN u ON t.b = u.b GROUP BY t.a % 2",
  };
  for (size_t i = 0; i < sizeof free_ones / sizeof free_ones[0]; i++) {
    assert_doubt(r, free_ones[i], "SELECT range + 7777 FROM range(2)", WITNESS_IS_FREE,
                 "the other way round");
  }
  /* the same without ties */
  assert_doubt(r, "SELECT arg_min(t.a, t.a * 100 + u.d) FROM t JOIN u USING (b)", "SELECT 5::BIGINT",
               WITNESS_IS_RIGHT, "");
}

static void limits_of_a_join_take_any_rows(void **state) {
  rig *r = *state;
  static const char sql[] = "SELECT t.a, u.d FROM t LEFT JOIN u ON t.a = u.d LIMIT 5";
  assert_doubt(r, sql, "SELECT a, NULL::BIGINT FROM t WHERE a > 100 LIMIT 5", WITNESS_IS_FREE, "LIMIT");
  assert_doubt(r, sql, "SELECT a, a + 1 FROM t LIMIT 5", WITNESS_IS_RIGHT, ""); /* no such rows */
  assert_doubt(r, sql, "SELECT a, NULL::BIGINT FROM t WHERE a > 100 LIMIT 4", WITNESS_IS_RIGHT, "");
  assert_doubt(r, "SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 5 OFFSET 7", WITNESS_IS_RIGHT, "");
}

/* The names of a star would change places with the sides. */
static void stars_over_a_join_are_not_turned(void **state) {
  assert_doubt(*state, "SELECT * FROM (SELECT b FROM u) u JOIN (SELECT a FROM t) t ON t.a = u.b",
               "SELECT 1::BIGINT, 2::BIGINT", WITNESS_IS_RIGHT, "");
}

static void rows_that_a_collation_holds_equal_are_free(void **state) {
  rig *r = *state;
  assert_doubt(r, "SELECT DISTINCT s COLLATE NOCASE FROM t", "VALUES ('A'), ('b')", WITNESS_IS_FREE,
               "collation");
  assert_doubt(r, "SELECT s COLLATE NOCASE AS s FROM t UNION SELECT 'B'", "VALUES ('A'), ('b')",
               WITNESS_IS_FREE, "collation");
  assert_doubt(r, "SELECT s FROM (SELECT s COLLATE NOCASE AS s FROM t) GROUP BY s", "VALUES ('A'), ('b')",
               WITNESS_IS_FREE, "collation");
  /* as many rows there must be */
  assert_doubt(r, "SELECT DISTINCT s COLLATE NOCASE FROM t", "VALUES ('A'), ('b'), ('a')", WITNESS_IS_RIGHT,
               "");
  assert_doubt(r, "SELECT s COLLATE NOCASE AS s FROM t UNION ALL SELECT 'B'",
               "SELECT lower(s) FROM t UNION ALL SELECT 'B'", WITNESS_IS_RIGHT, "");
  assert_doubt(r, "SELECT DISTINCT a FROM t WHERE s COLLATE NOCASE = 'A'", "SELECT range * 2 FROM range(600)",
               WITNESS_IS_RIGHT, "");
}

static void other_types_and_other_rows_are_wrong(void **state) {
  assert_doubt(*state, "SELECT a FROM t", "SELECT a::INTEGER FROM t", WITNESS_IS_RIGHT, "");
  assert_doubt(*state, "SELECT a FROM t", "SELECT a + 1 FROM t", WITNESS_IS_RIGHT, "");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
  const struct CMUnitTest tests[] = {
      CASE(query_that_draws_is_free),
      CASE(ties_behind_a_join_are_free),
      CASE(stars_over_a_join_are_not_turned),
      CASE(limits_of_a_join_take_any_rows),
      CASE(rows_that_a_collation_holds_equal_are_free),
      CASE(other_types_and_other_rows_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

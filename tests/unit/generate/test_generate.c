/* SPDX-License-Identifier: Apache-2.0 */
/* Generated queries and tables, and the shrinking of one that fails: by a side with a fault of its own. */
#include "generate/generate.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct pair {
  char dir[64], tables[100];
  verifier v;      /* under test */
  verifier honest; /* what a faulty side asks */
  verify_side side;
  const char *fault; /* text that makes a query fail */
} pair;

static void assert_ok(hf_status status, hf_error *error) {
  if (status != HF_OK) {
    fail_msg("%s: %s", hf_status_name(error->code), error->message);
  }
}

static int open_pair(void **state) {
  pair *p = calloc(1, sizeof *p);
  char work[100], single[100];
  hf_error error = {0};
  snprintf(p->dir, sizeof p->dir, "/tmp/hf-test-XXXXXX");
  assert_non_null(mkdtemp(p->dir));
  snprintf(work, sizeof work, "%s/work", p->dir);
  snprintf(single, sizeof single, "%s/single", p->dir);
  snprintf(p->tables, sizeof p->tables, "%s/tables", p->dir);
  hf_setting settings[] = {{"work_dir", work}, {"tasks", "3"}, {"sql.time_zone", "UTC"}};
  assert_ok(session_open(settings, 3, NULL, &p->v.session, &error), &error);
  assert_ok(file_make_dirs(single, &error), &error);
  witness_options options = {.dir = single, .allow_path = "/", .time_zone = "UTC"};
  assert_ok(witness_open(&options, &p->v.witness, &error), &error);
  *state = p;
  return 0;
}

static int close_pair(void **state) {
  pair *p = *state;
  witness_close(p->v.witness);
  session_close(p->v.session);
  assert_ok(file_remove_tree(p->dir, NULL), NULL);
  free(p);
  return 0;
}

static generated_tables *make_tables(pair *p, uint64_t seed) {
  generated_tables *t = NULL;
  hf_error error = {0};
  assert_ok(generated_tables_new(seed, &t, &error), &error);
  assert_ok(generated_tables_write(t, &p->v, p->tables, &error), &error);
  return t;
}

/* ------------------------------------------------------------------- queries */

static void query_of_a_seed_is_always_the_same(void **state) {
  (void)state;
  generated_tables *t = NULL, *again = NULL;
  hf_error error = {0};
  arena *a = arena_new();
  size_t others = 0;
  assert_ok(generated_tables_new(5, &t, &error), &error);
  assert_ok(generated_tables_new(5, &again, &error), &error);
  for (uint64_t seed = 0; seed < 200; seed++) {
    generated_query first, second, other;
    assert_ok(generate_query(t, seed, a, &first, &error), &error);
    assert_ok(generate_query(again, seed, a, &second, &error), &error);
    assert_ok(generate_query(t, seed + 1000, a, &other, &error), &error);
    assert_string_equal(first.sql, second.sql);
    others += strcmp(first.sql, other.sql) != 0 ? 1 : 0;
  }
  assert_true(others > 190);
  arena_free(a);
  generated_tables_free(t);
  generated_tables_free(again);
}

/* What a promise to be right for every query is about. */
static void queries_have_everything_in_them(void **state) {
  static const char *const wanted[] = {" JOIN ",
                                       " LEFT JOIN ",
                                       " RIGHT JOIN ",
                                       " FULL JOIN ",
                                       " SEMI JOIN ",
                                       " ANTI JOIN ",
                                       " CROSS JOIN ",
                                       " ASOF JOIN ",
                                       " ASOF LEFT JOIN ",
                                       " LATERAL (",
                                       " USING (id)",
                                       " IS NOT DISTINCT FROM ",
                                       "COLLATE NOCASE",
                                       " IN (SELECT ",
                                       " NOT IN (SELECT ",
                                       " EXISTS (SELECT ",
                                       "= ANY (SELECT ",
                                       "<> ALL (SELECT ",
                                       "(SELECT max(",
                                       " GROUP BY ",
                                       "ROLLUP (",
                                       "CUBE (",
                                       "GROUPING SETS (",
                                       "grouping(",
                                       " HAVING ",
                                       " QUALIFY ",
                                       "count(DISTINCT ",
                                       " FILTER (WHERE ",
                                       "string_agg(",
                                       "first(",
                                       "arg_max(",
                                       " OVER (",
                                       "PARTITION BY ",
                                       "ROWS BETWEEN ",
                                       "RANGE BETWEEN ",
                                       "GROUPS BETWEEN ",
                                       "EXCLUDE TIES",
                                       "row_number()",
                                       "lag(",
                                       "nth_value(",
                                       " UNION ALL ",
                                       " UNION ",
                                       " INTERSECT ",
                                       " EXCEPT ",
                                       " INTERSECT ALL ",
                                       " EXCEPT ALL ",
                                       " UNION ALL BY NAME ",
                                       "WITH RECURSIVE ",
                                       " AS MATERIALIZED (",
                                       "DISTINCT ON (",
                                       "SELECT DISTINCT ",
                                       " ORDER BY ALL",
                                       "NULLS FIRST",
                                       "DESC NULLS LAST",
                                       " LIMIT ",
                                       " OFFSET ",
                                       "unnest(",
                                       "list_transform(",
                                       "CASE WHEN ",
                                       "coalesce(",
                                       "TRY_CAST(",
                                       "TRY(",
                                       "(VALUES ",
                                       "MAP {",
                                       "{'a': ",
                                       "UNPIVOT ",
                                       "random()",
                                       " no_such",
                                       "AT TIME ZONE"};
  (void)state;
  generated_tables *t = NULL;
  hf_error error = {0};
  arena *a = arena_new();
  buf all = {0};
  assert_ok(generated_tables_new(3, &t, &error), &error);
  for (uint64_t seed = 0; seed < 3000; seed++) {
    generated_query query;
    assert_ok(generate_query(t, seed, a, &query, &error), &error);
    buf_printf(&all, "%s\n", query.sql);
  }
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    if (strstr(buf_cstr(&all), wanted[i]) == NULL) {
      fail_msg("no query has %s", wanted[i]);
    }
  }
  buf_reset(&all);
  arena_free(a);
  generated_tables_free(t);
}

static void tables_are_the_same_on_both_sides(void **state) {
  pair *p = *state;
  size_t distributed = 0;
  hf_error error = {0};
  for (uint64_t seed = 1; seed < 5; seed++) {
    static const char *const names[] = {"one", "two", "three"};
    generated_tables *t = make_tables(p, seed);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
      char sql[60];
      snprintf(sql, sizeof sql, "FROM %s ORDER BY id", names[i]);
      verify_outcome outcome;
      verify_query(&p->v, sql, &outcome);
      if (outcome.result != VERIFY_PASSED || !outcome.ran) {
        fail_msg("%s of seed %d: %s", names[i], (int)seed, buf_cstr(&outcome.reason));
      }
      distributed += verify_is_distributed(&outcome) ? 1 : 0;
      verify_outcome_reset(&outcome);
    }
    generated_tables_drop(t, &p->v);
    generated_tables_free(t);
    assert_ok(file_remove_tree(p->tables, &error), &error);
  }
  assert_true(distributed >= 4);
}

/* ------------------------------------------------------------------ shrinking */

static hf_status view_honestly(void *context, const char *name, const char *query, hf_error *error) {
  pair *p = context;
  return verify_view(&p->honest, name, query, error);
}

/* The table loses one of its rows. */
static hf_status view_without_a_row(void *context, const char *name, const char *query, hf_error *error) {
  pair *p = context;
  char text[4000];
  bool is_faulty = strcmp(name, "two") == 0;
  snprintf(text, sizeof text, is_faulty ? "FROM (%s) WHERE id <> 77" : "%s", query);
  return verify_view(&p->honest, name, text, error);
}

static hf_status rows_honestly(void *context, const char *name, struct ArrowArrayStream *rows,
                               hf_error *error) {
  pair *p = context;
  return verify_rows(&p->honest, name, rows, error);
}

static void drop_honestly(void *context, const char *name) {
  pair *p = context;
  verify_drop(&p->honest, name);
}

static void verify_honestly(void *context, const char *sql, verify_outcome *out) {
  pair *p = context;
  verify_query(&p->honest, sql, out);
}

/* Queries with a certain text in them are said to differ. */
static void verify_with_a_fault(void *context, const char *sql, verify_outcome *out) {
  pair *p = context;
  verify_query(&p->honest, sql, out);
  if (out->result == VERIFY_PASSED && out->ran && strstr(sql, p->fault) != NULL) {
    out->result = VERIFY_FAILED;
    out->report.verdict = COMPARE_OTHER_ROWS;
  }
}

static void take_side(pair *p, verify_side side) {
  p->honest = p->v;
  p->side = side;
  p->side.context = p;
  p->v.side = &p->side;
}

/* Shrinks the first query of these seeds that fails; the case's query is copied, the whole case printed. */
static void shrink_first(pair *p, generated_tables *t, size_t least_bytes, char *out, size_t size) {
  hf_error error = {0};
  for (uint64_t seed = 0; seed < 2000; seed++) {
    arena *a = arena_new();
    generated_query query;
    verify_outcome outcome = {0};
    buf text = {0};
    assert_ok(generate_query(t, seed, a, &query, &error), &error);
    bool is_tried =
        strlen(query.sql) >= least_bytes && (p->fault == NULL || strstr(query.sql, p->fault) != NULL);
    if (is_tried) {
      verify_query(&p->v, query.sql, &outcome);
    }
    bool failed = is_tried && outcome.result == VERIFY_FAILED && outcome.split_status == HF_OK;
    if (failed) {
      shrink_request request = {&p->v, t, p->tables, 1500};
      assert_ok(shrink_query(&request, &query, &outcome, a, &text, &error), &error);
      print_message("%s", buf_cstr(&text));
      assert_non_null(strstr(buf_cstr(&text), query.sql));
      snprintf(out, size, "%s", buf_cstr(&text));
    }
    verify_outcome_reset(&outcome);
    buf_reset(&text);
    arena_free(a);
    if (failed) {
      return;
    }
  }
  fail_msg("no query failed");
}

static void query_that_fails_by_a_part_of_it_shrinks_to_that_part(void **state) {
  pair *p = *state;
  char text[20000];
  p->fault = "count(DISTINCT";
  take_side(p, (verify_side){view_honestly, rows_honestly, drop_honestly, verify_with_a_fault, NULL});
  generated_tables *t = make_tables(p, 1);
  shrink_first(p, t, 700, text, sizeof text);
  const char *query = strstr(text, "SELECT ");
  assert_non_null(query);
  assert_non_null(strstr(query, p->fault));
  assert_true(strlen(query) < 120);          /* of more than 700 */
  assert_null(strstr(text, "INSERT INTO ")); /* no row is needed */
  generated_tables_free(t);
}

static void query_that_fails_by_a_row_shrinks_to_that_row(void **state) {
  pair *p = *state;
  char text[20000];
  take_side(p, (verify_side){view_without_a_row, rows_honestly, drop_honestly, verify_honestly, NULL});
  generated_tables *t = make_tables(p, 2);
  shrink_first(p, t, 300, text, sizeof text);
  assert_non_null(strstr(text, "-- 1 rows in "));
  assert_non_null(strstr(text, "CREATE TABLE two ("));
  assert_non_null(strstr(text, "('77', "));
  const char *query = strstr(text, "\nSELECT ");
  assert_true(query != NULL && strlen(query) < 150);
  generated_tables_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(query_of_a_seed_is_always_the_same),
      cmocka_unit_test(queries_have_everything_in_them),
      cmocka_unit_test_setup_teardown(tables_are_the_same_on_both_sides, open_pair, close_pair),
      cmocka_unit_test_setup_teardown(query_that_fails_by_a_part_of_it_shrinks_to_that_part, open_pair,
                                      close_pair),
      cmocka_unit_test_setup_teardown(query_that_fails_by_a_row_shrinks_to_that_row, open_pair, close_pair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a step is said when it is made: by code, with the nearest name, and nothing leaves its place. */
#include "support/frame_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hf_list NONE = {0};

#define INVALID HF_E_INVALID_ARGUMENT

/* Every function with a NULL in each place. */
static void null_arguments_are_named(void **state) {
  frame_case *f = *state;
  hf_df *df = f->sales;
  const hf_list missing = {NULL, 1}, hole = HF_LIST("id", NULL), one = HF_LIST("id");
  FAILS(INVALID, "NULL: df", hf_df_select, NULL, one);
  FAILS(INVALID, "NULL: expressions", hf_df_select, df, missing);
  FAILS(INVALID, "number 2: an argument is NULL: expressions", hf_df_select, df, hole);
  FAILS(INVALID, "NULL: df", hf_df_filter, NULL, "true");
  FAILS(INVALID, "NULL: condition", hf_df_filter, df, NULL);
  FAILS(INVALID, "hf_expr_error", hf_df_filter, df, hf_expr_text(NULL));
  FAILS(INVALID, "NULL: df", hf_df_with_column, NULL, "x", "1");
  FAILS(INVALID, "NULL: name", hf_df_with_column, df, NULL, "1");
  FAILS(INVALID, "NULL: expression", hf_df_with_column, df, "x", NULL);
  FAILS(INVALID, "NULL: df", hf_df_rename, NULL, "id", "x");
  FAILS(INVALID, "NULL: old_name", hf_df_rename, df, NULL, "x");
  FAILS(INVALID, "NULL: name", hf_df_rename, df, "id", NULL);
  FAILS(INVALID, "NULL: df", hf_df_drop, NULL, one);
  FAILS(INVALID, "NULL: columns", hf_df_drop, df, missing);
  FAILS(INVALID, "NULL: df", hf_df_aggregate, NULL, one, NONE);
  FAILS(INVALID, "NULL: groups", hf_df_aggregate, df, missing, NONE);
  FAILS(INVALID, "NULL: aggregates", hf_df_aggregate, df, one, hole);
  FAILS(INVALID, "NULL: left", hf_df_join, NULL, df, "true", HF_JOIN_INNER);
  FAILS(INVALID, "NULL: right", hf_df_join, df, NULL, "true", HF_JOIN_INNER);
  FAILS(INVALID, "NULL: condition", hf_df_join, df, df, NULL, HF_JOIN_INNER);
  FAILS(INVALID, "NULL: right", hf_df_join_using, df, NULL, one, HF_JOIN_INNER);
  FAILS(INVALID, "NULL: columns", hf_df_join_using, df, df, missing, HF_JOIN_INNER);
  FAILS(INVALID, "NULL: df", hf_df_alias, NULL, "a");
  FAILS(INVALID, "NULL: name", hf_df_alias, df, NULL);
  FAILS(INVALID, "NULL: df", hf_df_order_by, NULL, one);
  FAILS(INVALID, "NULL: keys", hf_df_order_by, df, missing);
  FAILS(INVALID, "NULL: df", hf_df_limit, NULL, 1, 0);
  FAILS(INVALID, "NULL: left", hf_df_union, NULL, df);
  FAILS(INVALID, "NULL: right", hf_df_union_by_name, df, NULL);
  FAILS(INVALID, "NULL: right", hf_df_intersect, df, NULL, true);
  FAILS(INVALID, "NULL: right", hf_df_except, df, NULL, true);
  FAILS(INVALID, "NULL: df", hf_df_distinct, NULL, NONE);
  FAILS(INVALID, "NULL: columns", hf_df_distinct, df, missing);
  assert_int_equal(hf_df_select(df, one, NULL, NULL), INVALID);
  assert_int_equal(hf_df_limit(df, 1, 0, NULL, NULL), INVALID);
}

static void empty_arguments_are_named(void **state) {
  frame_case *f = *state;
  hf_df *df = f->sales;
  FAILS(INVALID, "empty: expressions", hf_df_select, df, NONE);
  FAILS(INVALID, "empty: expressions", hf_df_select, df, HF_LIST(""));
  FAILS(INVALID, "empty: condition", hf_df_filter, df, "");
  FAILS(HF_E_SYNTAX, "", hf_df_filter, df, "  -- nothing\n ");
  FAILS(INVALID, "empty: name", hf_df_with_column, df, "", "1");
  FAILS(INVALID, "empty: name", hf_df_rename, df, "id", "");
  FAILS(INVALID, "empty: columns", hf_df_drop, df, NONE);
  FAILS(INVALID, "neither a group nor an aggregate", hf_df_aggregate, df, NONE, NONE);
  FAILS(INVALID, "empty: columns", hf_df_join_using, df, df, NONE, HF_JOIN_INNER);
  FAILS(INVALID, "empty: name", hf_df_alias, df, "");
  FAILS(INVALID, "empty: keys", hf_df_order_by, df, NONE);
  FAILS(INVALID, "make other rows", hf_df_order_by, df, HF_LIST("unnest([id, id])"));
  FAILS(INVALID, "not UTF-8: condition", hf_df_filter, df, "'\xff'");
  FAILS(INVALID, "not UTF-8: name", hf_df_with_column, df, "\xc3", "1");
  FAILS(INVALID, "no such type of join: 99", hf_df_join, df, df, "true", (hf_join)99);
  FAILS(INVALID, "cross join", hf_df_join, df, df, "true", HF_JOIN_CROSS);
  FAILS(INVALID, "cross join", hf_df_join_using, df, df, HF_LIST("id"), HF_JOIN_CROSS);
}

static void unknown_columns_suggest_the_nearest(void **state) {
  frame_case *f = *state;
  hf_df *df = f->sales;
  FAILS(HF_E_COLUMN_NOT_FOUND, "amount", hf_df_select, df, HF_LIST("id", "amuont"));
  FAILS(HF_E_COLUMN_NOT_FOUND, "region", hf_df_filter, df, "regoin = 'r1'");
  FAILS(HF_E_COLUMN_NOT_FOUND, "odd name", hf_df_with_column, df, "x", "\"odd nam\"");
  FAILS(HF_E_COLUMN_NOT_FOUND, "region", hf_df_rename, df, "regio", "x");
  FAILS(HF_E_COLUMN_NOT_FOUND, "region", hf_df_aggregate, df, HF_LIST("regio"), NONE);
  FAILS(HF_E_COLUMN_NOT_FOUND, "amount", hf_df_aggregate, df, NONE, HF_LIST("sum(amoun)"));
  FAILS(HF_E_COLUMN_NOT_FOUND, "customer", hf_df_join_using, df, f->people, HF_LIST("custome"), HF_JOIN_LEFT);
  FAILS(HF_E_COLUMN_NOT_FOUND, "region", hf_df_order_by, df, HF_LIST("regon DESC"));
  FAILS(HF_E_COLUMN_NOT_FOUND, "größe", hf_df_distinct, df, HF_LIST("größ"));
  /* what a step made or took away is seen by the next */
  hf_df *named = MADE(hf_df_rename, df, "id", "identity");
  FAILS(HF_E_COLUMN_NOT_FOUND, "identity", hf_df_filter, named, "identit = 1");
  hf_df *dropped = MADE(hf_df_drop, df, HF_LIST("amount"));
  FAILS(HF_E_COLUMN_NOT_FOUND, "amount", hf_df_filter, dropped, "amount = 1");
  hf_df_free(named);
  hf_df_free(dropped);
}

static void errors_point_into_the_expression(void **state) {
  frame_case *f = *state;
  FAILS(HF_E_COLUMN_NOT_FOUND, "amuont", hf_df_filter, f->sales, "id > 5 AND amuont > 1");
  assert_int_equal(f->api->error.position, 11);
  FAILS(HF_E_SYNTAX, "", hf_df_select, f->sales, HF_LIST("id", "1 + + AND"));
}

static void wrong_types_and_functions_are_found_at_once(void **state) {
  frame_case *f = *state;
  hf_df *df = f->sales;
  FAILS(HF_E_FUNCTION_NOT_FOUND, "+(DATE, VARCHAR)", hf_df_filter, df, "day + region = 1");
  FAILS(HF_E_BIND, "", hf_df_filter, df, "sum(amount) > 1");
  FAILS(HF_E_FUNCTION_NOT_FOUND, "upper(DATE", hf_df_select, df, HF_LIST("upper(day, 1)"));
  FAILS(HF_E_FUNCTION_NOT_FOUND, "upper", hf_df_select, df, HF_LIST("uper(region)"));
  FAILS(HF_E_FUNCTION_REFUSED, "", hf_df_select, df, HF_LIST("getenv('HOME')"));
  FAILS(HF_E_TABLE_NOT_FOUND, "people", hf_df_filter, df, "id IN (SELECT customer FROM peopl)");
  hf_df *two = MADE(hf_df_select, df, HF_LIST("id", "amount"));
  FAILS(HF_E_BIND, "", hf_df_union, df, two);
  FAILS(HF_E_BIND, "", hf_df_except, two, df, true);
  hf_df_free(two);
}

static void duplicate_names_are_ambiguous_when_called(void **state) {
  frame_case *f = *state;
  hf_df *a = MADE(hf_df_alias, f->people, "a"), *b = MADE(hf_df_alias, f->people, "b");
  hf_df *both = MADE(hf_df_join, a, b, "a.customer = b.customer", HF_JOIN_INNER);
  FAILS(HF_E_BIND, "", hf_df_filter, both, "name = 'name 1'");
  FAILS(INVALID, "", hf_df_rename, both, "name", "x");
  hf_df *twice = MADE(hf_df_select, f->people, HF_LIST("name", "name"));
  FAILS(HF_E_BIND, "", hf_df_select, twice, HF_LIST("name"));
  FAILS(HF_E_BIND, "", hf_df_join, f->people, f->people, "customer = 1", HF_JOIN_INNER);
  hf_df_free(twice);
  hf_df_free(both);
  hf_df_free(a);
  hf_df_free(b);
}

/* Each would be another query if it were only put between the words around it. */
static void text_cannot_leave_its_expression(void **state) {
  frame_case *f = *state;
  static const char *const leaving[] = {"id FROM people --",
                                        "id) FROM people --",
                                        "id, region",
                                        "id; DROP VIEW people",
                                        "id UNION SELECT customer",
                                        "id FROM sales UNION ALL SELECT 1",
                                        "DISTINCT region",
                                        "DISTINCT ON (region) id",
                                        "ALL id",
                                        "id WHERE id > 5",
                                        "id ORDER BY id",
                                        "id LIMIT 1",
                                        "id GROUP BY id",
                                        "id INTO x",
                                        "id /* ",
                                        "'id",
                                        "id\" ",
                                        "(id",
                                        "id)) AS x, ((id",
                                        "id QUALIFY true",
                                        "id WINDOW w AS (ORDER BY id)",
                                        "id USING SAMPLE 1"};
  for (size_t i = 0; i < sizeof leaving / sizeof leaving[0]; i++) {
    const char *text = leaving[i];
    hf_df *out = NULL;
    hf_error *error = &f->api->error;
    hf_status statuses[] = {hf_df_select(f->sales, HF_LIST(text), &out, error),
                            hf_df_filter(f->sales, text, &out, error),
                            hf_df_with_column(f->sales, "x", text, &out, error),
                            hf_df_aggregate(f->sales, HF_LIST(text), HF_LIST("count(*)"), &out, error),
                            hf_df_aggregate(f->sales, HF_LIST("id"), HF_LIST(text), &out, error),
                            hf_df_join(f->sales, f->people, text, HF_JOIN_LEFT, &out, error),
                            hf_df_order_by(f->sales, HF_LIST(text), &out, error)};
    for (size_t k = 0; k < sizeof statuses / sizeof statuses[0]; k++) {
      if (statuses[k] == HF_OK || out != NULL) {
        fail_msg("step %zu took \"%s\"", k, text);
      }
      if (statuses[k] != HF_E_SYNTAX && statuses[k] != HF_E_INVALID_ARGUMENT && statuses[k] != HF_E_BIND) {
        fail_msg("step %zu, \"%s\": %s: %s", k, text, hf_status_name(statuses[k]), error->message);
      }
    }
  }
  /* names are names */
  frame_same(f, MADE(hf_df_with_column, f->people, "x\" FROM sales --", "1"),
             "SELECT *, 1 AS \"x\"\" FROM sales --\" FROM people");
  frame_same(f, MADE(hf_df_alias, f->people, "a\") FROM sales --"), "FROM people");
}

static void comments_stay_inside(void **state) {
  frame_case *f = *state;
  frame_same(f,
             MADE(hf_df_select, f->people, HF_LIST("customer -- one", "/* two */ name", "region -- three\n")),
             "SELECT customer, name, region FROM people");
  frame_same(f, MADE(hf_df_filter, f->people, "customer > 3 -- only"),
             "SELECT * FROM people WHERE customer > 3");
}

static void dataframes_of_two_sessions_do_not_meet(void **state) {
  frame_case *f = *state;
  hf_session *other = NULL;
  hf_df *theirs = NULL;
  assert_int_equal(hf_session_new(f->api->session, &other, NULL), HF_OK);
  assert_int_equal(hf_session_sql(other, "SELECT 1 AS id", &theirs, NULL), HF_OK);
  FAILS(INVALID, "two sessions", hf_df_join_using, f->sales, theirs, HF_LIST("id"), HF_JOIN_INNER);
  FAILS(INVALID, "two sessions", hf_df_join, theirs, f->sales, NULL, HF_JOIN_CROSS);
  FAILS(INVALID, "two sessions", hf_df_union, f->sales, theirs);
  FAILS(INVALID, "two sessions", hf_df_union_by_name, f->sales, theirs);
  FAILS(INVALID, "two sessions", hf_df_except, theirs, f->sales, false);
  hf_session_close(other);
  FAILS(HF_E_SESSION_CLOSED, "", hf_df_limit, theirs, 1, 0);
  hf_df_free(theirs);
}

static void answer_without_rows_is_no_input(void **state) {
  frame_case *f = *state;
  hf_df *command = api_sql(f->api, "SET tasks = 1");
  FAILS(INVALID, "no answer", hf_df_limit, command, 1, 0);
  FAILS(INVALID, "no answer", hf_df_union, f->sales, command);
  hf_df_free(command);
}

static void failed_step_leaves_its_inputs(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_filter, f->sales, "id < 10");
  FAILS(HF_E_COLUMN_NOT_FOUND, "", hf_df_filter, df, "nowhere = 1");
  frame_same(f, df, "SELECT * FROM sales WHERE id < 10");
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
  const struct CMUnitTest tests[] = {
      CASE(null_arguments_are_named),
      CASE(empty_arguments_are_named),
      CASE(unknown_columns_suggest_the_nearest),
      CASE(errors_point_into_the_expression),
      CASE(wrong_types_and_functions_are_found_at_once),
      CASE(duplicate_names_are_ambiguous_when_called),
      CASE(text_cannot_leave_its_expression),
      CASE(comments_stay_inside),
      CASE(dataframes_of_two_sessions_do_not_meet),
      CASE(answer_without_rows_is_no_input),
      CASE(failed_step_leaves_its_inputs),
  };
  return cmocka_run_group_tests(tests, frame_case_open, frame_case_close);
}

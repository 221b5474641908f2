/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose expressions are unusual: sub-selects, structs, lambdas, unnest, odd names and bounds. */
#include "support/frame_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void subselect_may_be_correlated(void **state) {
  frame_case *f = *state;
  frame_same(
      f,
      THEN(hf_df_with_column, MADE(hf_df_alias, f->sales, "s"), "name",
           "(SELECT max(p.name) FROM people p WHERE p.customer = s.customer)"),
      "SELECT *, (SELECT max(p.name) FROM people p WHERE p.customer = s.customer) AS name FROM sales s");
  frame_same(f,
             THEN(hf_df_filter, MADE(hf_df_alias, f->people, "p"),
                  "EXISTS (SELECT 1 FROM sales WHERE id = p.customer + 2990)"),
             "FROM people WHERE customer < 10");
}

/* A star, unnest, window or number in the query of a sub-select is not one of the expression. */
static void subselect_is_one_value_whatever_is_in_it(void **state) {
  frame_case *f = *state;
  frame_same(f,
             MADE(hf_df_with_column, f->people, "most", "(SELECT max(v) FROM (VALUES (1), (customer)) t(v))"),
             "SELECT *, greatest(1, customer) AS most FROM people");
  frame_same(
      f, MADE(hf_df_select, f->people, HF_LIST("customer", "customer IN (SELECT * FROM range(5)) AS low")),
      "SELECT customer, customer < 5 AS low FROM people");
  hf_df *df =
      MADE(hf_df_with_column, f->people, "u", "(SELECT sum(x) FROM (SELECT unnest([1, customer]) x))");
  frame_same(f, THEN(hf_df_filter, df, "u > 3"),
             "SELECT *, (customer + 1)::HUGEINT AS u FROM people WHERE customer > 2");
  df = MADE(hf_df_with_column, f->people, "r",
            "(SELECT max(r) FROM (SELECT row_number() OVER () r FROM range(7) ORDER BY #1))");
  frame_same(f, THEN(hf_df_filter, df, "r = 7"), "SELECT *, 7::BIGINT AS r FROM people");
}

static void conditions_keep_apart_with_a_star_in_them(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_filter, f->people, "customer < 3");
  df = THEN(hf_df_filter, df, "name = 'x' OR EXISTS (SELECT * FROM people)");
  frame_same(f, df, "FROM people WHERE customer < 3");
  df = MADE(hf_df_select, f->people, HF_LIST("customer"));
  df = THEN(hf_df_filter, df, "customer < 3");
  frame_same(f, THEN(hf_df_filter, df, "COLUMNS(*) < 0 OR true"),
             "SELECT customer FROM people WHERE customer < 3");
}

static void group_may_hold_a_correlated_subselect(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_alias, f->sales, "s");
  df = THEN(
      hf_df_aggregate, df,
      HF_LIST("CASE WHEN EXISTS (SELECT 1 FROM people p WHERE p.customer = s.customer AND p.customer < 4) "
              "THEN s.customer END AS g"),
      HF_LIST("count(*) AS n"));
  frame_same(
      f, df,
      "SELECT CASE WHEN customer IN (SELECT customer FROM people WHERE customer < 4) THEN customer END "
      "AS g, count(*) AS n FROM sales GROUP BY 1");
}

/* DuckDB would filter first, and then find other rows to be the first ones. */
static void filter_of_first_rows_comes_after_them(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_order_by, f->sales, HF_LIST("amount DESC NULLS LAST", "id"));
  df = THEN(hf_df_distinct, THEN(hf_df_filter, df, "id > 7"), HF_LIST("region"));
  frame_same(f, THEN(hf_df_filter, THEN(hf_df_select, df, HF_LIST("region", "id")), "id % 2 = 0"),
             "SELECT region, id FROM (SELECT DISTINCT ON (region) region, id FROM sales WHERE id > 7 "
             "ORDER BY amount DESC NULLS LAST, id) WHERE id % 2 = 0");
}

static void nested_values_are_taken_apart(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_select, f->people,
                   HF_LIST("{'a': customer, 'b c': name} AS s", "[customer, 1, NULL] AS l", "customer AS a"));
  df = THEN(hf_df_select, df,
            HF_LIST("s.a AS x", "s['b c'] AS y", "l[1] + 1 AS z", "list_transform(l, lambda v: v + a) AS t",
                    "len(l) AS n", "s"));
  frame_same(
      f, df,
      "SELECT customer AS x, name AS y, customer + 1 AS z, list_transform([customer, 1, NULL], lambda v: v + "
      "customer) AS t, 3::BIGINT AS n, {'a': customer, 'b c': name} AS s FROM people");
  df = MADE(hf_df_select, f->people, HF_LIST("customer", "unnest([1, 2]) AS u"));
  frame_same(f, THEN(hf_df_filter, df, "u = 2"), "SELECT customer, 2 AS u FROM people");
}

static void names_differ_by_anything(void **state) {
  frame_case *f = *state;
  static const char *const names[] = {"SELECT", "a b", "a.b", "\"",    "'",  ";--", "  ",           "größe",
                                      "😀",      "0",   "q",   "hf_r0", "r0", "c0",  "customer.name"};
  hf_df *df = MADE(hf_df_select, f->people, HF_LIST("customer"));
  char wanted[2000] = "SELECT customer";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char value[16];
    snprintf(value, sizeof value, "%zu", i);
    df = THEN(hf_df_with_column, df, names[i], value);
    hf_expr *name = hf_expr_column(names[i]);
    snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), ", %zu AS %s", i, hf_expr_text(name));
    hf_expr_free(name);
  }
  snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), " FROM people");
  df = THEN(hf_df_filter, df, "\"a.b\" = 2 AND q = 10 AND \"SELECT\" = 0 AND \"  \" = 6");
  frame_same(f, df, wanted);
}

static void keys_may_be_any_expression(void **state) {
  frame_case *f = *state;
  frame_same_order(f, MADE(hf_df_order_by, f->people, HF_LIST("customer % 3 DESC", "-customer")),
                   "SELECT * FROM people ORDER BY customer % 3 DESC, -customer");
  frame_same_order(
      f,
      MADE(hf_df_order_by, f->people,
           HF_LIST("(SELECT 1)",
                   "CASE WHEN name > 'name 3' THEN 1 END "
                   "NULLS FIRST",
                   "customer desc nulls first")),
      "SELECT * FROM people ORDER BY CASE WHEN name > 'name 3' THEN 1 END NULLS FIRST, customer DESC");
}

static void limits_at_the_bounds(void **state) {
  frame_case *f = *state;
  static const uint64_t bounds[] = {INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
  for (size_t i = 0; i < 4; i++) {
    frame_same(f, MADE(hf_df_limit, f->people, bounds[i], 0), "FROM people");
    frame_same(f, MADE(hf_df_limit, f->people, 5, bounds[i]), "FROM people WHERE false");
    frame_same(f, MADE(hf_df_limit, f->people, bounds[i], bounds[i]), "FROM people WHERE false");
  }
}

static void wide_dataframes_keep_their_columns(void **state) {
  frame_case *f = *state;
  enum { WIDE = 600 };
  static char texts[WIDE][32];
  const char *items[WIDE];
  char *sql = NULL;
  size_t length = 0;
  FILE *file = open_memstream(&sql, &length);
  assert_non_null(file);
  for (size_t i = 0; i < WIDE; i++) {
    snprintf(texts[i], sizeof texts[i], "customer + %zu AS w%zu", i, i);
    items[i] = texts[i];
    fprintf(file, "%s%s", i == 0 ? "SELECT " : ", ", texts[i]);
  }
  fprintf(file, " FROM people WHERE customer = 3");
  fclose(file);
  hf_df *df = MADE(hf_df_select, f->people, ((hf_list){items, WIDE}));
  frame_same(f, THEN(hf_df_filter, df, "w0 = 3"), sql);
  free(sql);
}

static void order_survives_what_keeps_it(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_order_by, f->sales, HF_LIST("amount DESC", "id"));
  df = THEN(hf_df_filter, df, "customer < 20");
  df = THEN(hf_df_with_column, df, "twice", "amount * 2");
  df = THEN(hf_df_drop, df, HF_LIST("day"));
  frame_same_order(f, THEN(hf_df_limit, df, 300, 10),
                   "SELECT * EXCLUDE (day), amount * 2 AS twice FROM sales WHERE customer < 20 "
                   "ORDER BY amount DESC, id LIMIT 300 OFFSET 10");
}

static void random_is_drawn_once(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_with_column, f->sales, "r", "random()");
  df = THEN(hf_df_with_column, df, "d", "r - r");
  df = THEN(hf_df_with_column, df, "e", "r");
  df = THEN(hf_df_filter, df, "d <> 0 OR e <> r");
  assert_int_equal(api_count(f->api, df, NULL), 0);
  hf_df_free(df);
}

static void placeholders_and_stars_are_errors_where_they_mean_nothing(void **state) {
  frame_case *f = *state;
  static const char *const texts[] = {"customer = ?", "customer = $1", "*", "COLUMNS(*) > 1 AND *"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    hf_df *out = NULL;
    if (hf_df_filter(f->sales, texts[i], &out, &f->api->error) == HF_OK) {
      fail_msg("taken: %s", texts[i]);
    }
    assert_true(f->api->error.error_class == HF_CLASS_USER);
  }
  FAILS(HF_E_INVALID_ARGUMENT, "", hf_df_order_by, f->sales, HF_LIST("1"));
  FAILS(HF_E_INVALID_ARGUMENT, "", hf_df_aggregate, f->sales, HF_LIST("1"), HF_LIST("count(*)"));
  FAILS(HF_E_BIND, "", hf_df_select, f->sales, HF_LIST("sum(id)"));
  FAILS(HF_E_BIND, "", hf_df_aggregate, f->sales, HF_LIST("region"), HF_LIST("id"));
}

/* Pieces of SQL in any order: what is taken as an expression is one column, or a condition, and nothing else. */
static const char *const PIECES[] = {
    "customer", "name",    "region",   "1",      "'x'",    "NULL",  "+",     "=",
    "AND",      "OR",      "NOT",      "IS",     "(",      ")",     "(",     ")",
    ",",        ";",       "--",       "/*",     "*/",     "'",     "\"",    "$$",
    "::",       "INTEGER", "FROM",     "people", "SELECT", "UNION", "ALL",   "DISTINCT",
    "ON",       "WHERE",   "ORDER BY", "LIMIT",  "AS",     "x",     "[",     "]",
    "IN",       "CASE",    "WHEN",     "THEN",   "END",    "OVER",  "count", "USING SAMPLE",
    "\n"};

/* xorshift: the same texts in each run. */
static uint32_t random_next(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static void random_text(uint32_t *state, char *out, size_t bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t n = 1 + random_next(state) % 7; n > 0; n--) {
    const char *piece = PIECES[random_next(state) % (sizeof PIECES / sizeof PIECES[0])];
    used += (size_t)snprintf(out + used, bytes - used, "%s%s", used == 0 ? "" : " ", piece);
  }
}

static void expect_shape(frame_case *f, hf_df *df, const char *text, int64_t columns, uint64_t most_rows) {
  struct ArrowSchema fields;
  uint64_t rows = 0;
  if (hf_df_schema(df, &fields, &f->api->error) != HF_OK || fields.n_children != columns) {
    fail_msg("another query than was built: %s", text);
  }
  fields.release(&fields);
  hf_status status = hf_df_count(df, NULL, &rows, &f->api->error);
  if (status == HF_OK ? rows > most_rows : f->api->error.error_class != HF_CLASS_USER) {
    fail_msg("%s: %s, %d rows", text, hf_status_name(status), (int)rows);
  }
  hf_df_free(df);
}

static void random_text_stays_in_its_place(void **state) {
  frame_case *f = *state;
  uint32_t seed = 20240229;
  unsigned taken = 0;
  for (int i = 0; i < 4000; i++) {
    char text[256];
    hf_df *out = NULL;
    hf_error *error = &f->api->error;
    random_text(&seed, text, sizeof text);
    if (hf_df_filter(f->people, text, &out, error) == HF_OK) {
      expect_shape(f, out, text, 3, 40);
      taken++;
    } else if (error->error_class != HF_CLASS_USER) {
      fail_msg("%s: %s: %s", text, hf_status_name(error->code), error->message);
    }
    out = NULL;
    if (hf_df_with_column(f->people, "new", text, &out, error) == HF_OK) {
      expect_shape(f, out, text, 4, 40);
      taken++;
    }
    out = NULL;
    if (hf_df_order_by(f->people, HF_LIST(text), &out, error) == HF_OK) {
      expect_shape(f, out, text, 3, 40);
    }
  }
  print_message("%u of 8000 random texts were expressions\n", taken);
  assert_true(taken > 100);
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
  const struct CMUnitTest tests[] = {
      CASE(subselect_is_one_value_whatever_is_in_it),
      CASE(conditions_keep_apart_with_a_star_in_them),
      CASE(group_may_hold_a_correlated_subselect),
      CASE(filter_of_first_rows_comes_after_them),
      CASE(subselect_may_be_correlated),
      CASE(nested_values_are_taken_apart),
      CASE(names_differ_by_anything),
      CASE(keys_may_be_any_expression),
      CASE(limits_at_the_bounds),
      CASE(wide_dataframes_keep_their_columns),
      CASE(order_survives_what_keeps_it),
      CASE(random_is_drawn_once),
      CASE(random_text_stays_in_its_place),
      CASE(placeholders_and_stars_are_errors_where_they_mean_nothing),
  };
  return cmocka_run_group_tests(tests, frame_case_open, frame_case_close);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* DataFrames built step by step give what DuckDB gives for the same query in SQL: names, types, rows. */
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

static void select_gives_expressions(void **state) {
  frame_case *f = *state;
  frame_same(f, MADE(hf_df_select, f->sales, HF_LIST("id", "amount * 2 AS double", "\"odd name\"")),
             "SELECT id, amount * 2 AS double, \"odd name\" FROM sales");
  frame_same(f, MADE(hf_df_select, f->sales, HF_LIST("*", "\"a.b\" + \"quo\"\"te\" AS \"größe 😀\"")),
             "SELECT *, \"a.b\" + \"quo\"\"te\" AS \"größe 😀\" FROM sales");
  frame_same(f, MADE(hf_df_select, f->sales, HF_LIST("1", "'it''s'", "NULL", "id + 1", "upper(region)")),
             "SELECT 1, 'it''s', NULL, id + 1, upper(region) FROM sales");
  frame_same(f, MADE(hf_df_select, f->sales, HF_LIST("id", "id", "id AS ID")),
             "SELECT id, id, id AS ID FROM sales");
  frame_same(
      f, MADE(hf_df_select, f->sales, HF_LIST("* EXCLUDE (id, day)", "CASE WHEN id < 5 THEN 'low' END AS c")),
      "SELECT * EXCLUDE (id, day), CASE WHEN id < 5 THEN 'low' END AS c FROM sales");
  frame_same(f, MADE(hf_df_select, f->sales, HF_LIST("(SELECT max(customer) FROM people) AS m", "id")),
             "SELECT (SELECT max(customer) FROM people) AS m, id FROM sales");
}

static void select_takes_windows(void **state) {
  frame_case *f = *state;
  frame_same(
      f,
      MADE(hf_df_select, f->sales,
           HF_LIST("id", "row_number() OVER (PARTITION BY region ORDER BY amount DESC, id) AS place",
                   "sum(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving")),
      "SELECT id, row_number() OVER (PARTITION BY region ORDER BY amount DESC, id) AS place, "
      "sum(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM sales");
  hf_df *ranked =
      MADE(hf_df_with_column, f->sales, "place", "rank() OVER (PARTITION BY customer ORDER BY id)");
  frame_same(f, THEN(hf_df_filter, ranked, "place <= 2"),
             "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY customer ORDER BY id) AS place FROM sales) "
             "WHERE place <= 2");
}

static void filter_keeps_what_is_true(void **state) {
  frame_case *f = *state;
  frame_same(f, MADE(hf_df_filter, f->sales, "region <> 'r1'"), "SELECT * FROM sales WHERE region <> 'r1'");
  frame_same(f, MADE(hf_df_filter, f->sales, "region IS NULL OR amount BETWEEN 10 AND 20"),
             "SELECT * FROM sales WHERE region IS NULL OR amount BETWEEN 10 AND 20");
  frame_same(f, MADE(hf_df_filter, f->sales, "false"), "SELECT * FROM sales WHERE false");
  frame_same(f, MADE(hf_df_filter, f->sales, "customer IN (SELECT customer FROM people WHERE region = 'r2')"),
             "SELECT * FROM sales WHERE customer IN (SELECT customer FROM people WHERE region = 'r2')");
  hf_df *twice = MADE(hf_df_filter, f->sales, "id > 5 OR true");
  frame_same(f, THEN(hf_df_filter, twice, "id < 10 OR false"), "SELECT * FROM sales WHERE id < 10");
}

static void with_column_replaces_or_appends(void **state) {
  frame_case *f = *state;
  frame_same(f, MADE(hf_df_with_column, f->sales, "amount", "AMOUNT + 1"),
             "SELECT * REPLACE (amount + 1 AS amount) FROM sales");
  frame_same(f, MADE(hf_df_with_column, f->sales, "a new \"one\"", "amount / 2"),
             "SELECT *, amount / 2 AS \"a new \"\"one\"\"\" FROM sales");
  hf_df *df = MADE(hf_df_with_column, f->sales, "a.b", "id");
  df = THEN(hf_df_with_column, df, "x", "\"a.b\" * 2");
  df = THEN(hf_df_with_column, df, "a.b", "x + \"a.b\"");
  frame_same(f, df, "SELECT * REPLACE (id * 3 AS \"a.b\"), id * 2 AS x FROM sales");
  df = MADE(hf_df_with_column, f->people, "n", "42");
  df = THEN(hf_df_with_column, df, "n", "n + n");
  frame_same(f, THEN(hf_df_filter, df, "n = 84"), "SELECT *, 84 AS n FROM people");
}

static void rename_and_drop_keep_the_rest_in_place(void **state) {
  frame_case *f = *state;
  frame_same(f, MADE(hf_df_rename, f->sales, "a.b", "c.d \"e\""),
             "SELECT * RENAME (\"a.b\" AS \"c.d \"\"e\"\"\") FROM sales");
  hf_df *df = MADE(hf_df_rename, f->sales, "ID", "region2");
  frame_same(f, THEN(hf_df_filter, df, "region2 < 3"),
             "SELECT * RENAME (id AS region2) FROM sales WHERE id < 3");
  frame_same(f, MADE(hf_df_drop, f->sales, HF_LIST("id", "odd name", "quo\"te")),
             "SELECT * EXCLUDE (id, \"odd name\", \"quo\"\"te\") FROM sales");
  frame_same(f, MADE(hf_df_drop, f->sales, HF_LIST("no such column")), "SELECT * FROM sales");
}

static void aggregate_groups(void **state) {
  frame_case *f = *state;
  frame_same(f,
             MADE(hf_df_aggregate, f->sales, HF_LIST("region", "month(day) AS m"),
                  HF_LIST("sum(amount) AS total", "count(*) AS n", "count(DISTINCT customer) AS customers",
                          "max(amount) FILTER (WHERE id % 2 = 0) AS even")),
             "SELECT region, month(day) AS m, sum(amount) AS total, count(*) AS n, "
             "count(DISTINCT customer) AS customers, max(amount) FILTER (WHERE id % 2 = 0) AS even "
             "FROM sales GROUP BY region, m");
  frame_same(f, MADE(hf_df_aggregate, f->sales, NONE, HF_LIST("count(*) AS n", "min(day)")),
             "SELECT count(*) AS n, min(day) FROM sales");
  frame_same(f, MADE(hf_df_aggregate, f->sales, HF_LIST("region"), NONE),
             "SELECT DISTINCT region FROM sales");
  hf_df *empty = MADE(hf_df_filter, f->sales, "id < 0");
  frame_same(f, THEN(hf_df_aggregate, empty, NONE, HF_LIST("sum(amount) AS s", "count(*) AS n")),
             "SELECT sum(amount) AS s, count(*) AS n FROM sales WHERE id < 0");
  empty = MADE(hf_df_filter, f->sales, "id < 0");
  frame_same(f, THEN(hf_df_aggregate, empty, HF_LIST("region"), HF_LIST("count(*) AS n")),
             "SELECT region, count(*) AS n FROM sales WHERE id < 0 GROUP BY region");
  hf_df *having =
      MADE(hf_df_aggregate, f->sales, HF_LIST("\"a.b\" % 3 AS \"g.h\""), HF_LIST("sum(id)::BIGINT AS s"));
  frame_same_order(
      f, THEN(hf_df_order_by, THEN(hf_df_filter, having, "\"g.h\" > 0"), HF_LIST("s DESC")),
      "SELECT * FROM (SELECT \"a.b\" % 3 AS \"g.h\", sum(id)::BIGINT AS s FROM sales GROUP BY ALL) "
      "WHERE \"g.h\" > 0 ORDER BY s DESC");
}

static void join_has_all_types(void **state) {
  frame_case *f = *state;
  hf_df *s = MADE(hf_df_alias, f->sales, "s"), *p = MADE(hf_df_alias, f->people, "the people");
  static const struct {
    hf_join type;
    const char *sql;
  } types[] = {
      {HF_JOIN_INNER, "SELECT * FROM sales s JOIN people p ON s.customer = p.customer AND s.id < 500"},
      {HF_JOIN_LEFT, "SELECT * FROM sales s LEFT JOIN people p ON s.customer = p.customer AND s.id < 500"},
      {HF_JOIN_RIGHT, "SELECT * FROM sales s RIGHT JOIN people p ON s.customer = p.customer AND s.id < 500"},
      {HF_JOIN_FULL, "SELECT * FROM sales s FULL JOIN people p ON s.customer = p.customer AND s.id < 500"},
      {HF_JOIN_SEMI, "SELECT * FROM sales s SEMI JOIN people p ON s.customer = p.customer AND s.id < 500"},
      {HF_JOIN_ANTI, "SELECT * FROM sales s ANTI JOIN people p ON s.customer = p.customer AND s.id < 500"}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    frame_same(f,
               MADE(hf_df_join, s, p, "s.customer = \"the people\".customer AND s.id < 500", types[i].type),
               types[i].sql);
  }
  frame_same(f, MADE(hf_df_join, p, p, NULL, HF_JOIN_CROSS), "SELECT * FROM people a CROSS JOIN people b");
  hf_df *joined = MADE(hf_df_join, s, p, "s.customer = \"the people\".customer", HF_JOIN_INNER);
  joined =
      THEN(hf_df_select, joined, HF_LIST("s.region AS sr", "\"the people\".region AS pr", "name", "amount"));
  frame_same(
      f, THEN(hf_df_aggregate, joined, HF_LIST("sr", "pr"), HF_LIST("sum(amount) AS total", "min(name)")),
      "SELECT s.region AS sr, p.region AS pr, sum(amount) AS total, min(name) FROM sales s JOIN people p "
      "ON s.customer = p.customer GROUP BY ALL");
  hf_df_free(s);
  hf_df_free(p);
}

#define USING_HEAD \
  "SELECT customer, region, s.* EXCLUDE (customer, region), p.* EXCLUDE (customer, region) FROM sales s "

static void join_using_has_each_column_once(void **state) {
  frame_case *f = *state;
  static const struct {
    hf_join type;
    const char *sql;
  } types[] = {
      {HF_JOIN_INNER, USING_HEAD "JOIN people p USING (customer, region)"},
      {HF_JOIN_LEFT, USING_HEAD "LEFT JOIN people p USING (customer, region)"},
      {HF_JOIN_RIGHT, USING_HEAD "RIGHT JOIN people p USING (customer, region)"},
      {HF_JOIN_FULL, USING_HEAD "FULL JOIN people p USING (customer, region)"},
      {HF_JOIN_SEMI,
       "SELECT customer, region, * EXCLUDE (customer, region) FROM sales s SEMI JOIN people p USING (customer, region)"},
      {HF_JOIN_ANTI,
       "SELECT customer, region, * EXCLUDE (customer, region) FROM sales s ANTI JOIN people p USING (customer, region)"}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    frame_same(f, MADE(hf_df_join_using, f->sales, f->people, HF_LIST("customer", "region"), types[i].type),
               types[i].sql);
  }
}

static void self_join_tells_its_sides_apart(void **state) {
  frame_case *f = *state;
  hf_df *a = MADE(hf_df_alias, f->people, "a"), *b = MADE(hf_df_alias, f->people, "b");
  hf_df *pairs = MADE(hf_df_join, a, b, "a.region = b.region AND a.customer < b.customer", HF_JOIN_INNER);
  frame_same(f, THEN(hf_df_select, pairs, HF_LIST("a.name AS one", "b.name AS two")),
             "SELECT a.name AS one, b.name AS two FROM people a JOIN people b ON a.region = b.region AND "
             "a.customer < b.customer");
  hf_df_free(a);
  hf_df_free(b);
}

static void order_and_limit_keep_their_order(void **state) {
  frame_case *f = *state;
  hf_df *sorted = MADE(hf_df_order_by, f->sales, HF_LIST("region DESC NULLS LAST", "amount % 7 asc", "id"));
  frame_same_order(f, THEN(hf_df_select, sorted, HF_LIST("region", "id")),
                   "SELECT region, id FROM sales ORDER BY region DESC NULLS LAST, amount % 7, id");
  static const uint64_t limits[][2] = {{10, 0}, {10, 2995}, {0, 0}, {7, 3}, {HF_NO_LIMIT, 2990}, {1, 20000}};
  static const char *const texts[] = {"LIMIT 10",         "LIMIT 10 OFFSET 2995", "LIMIT 0",
                                      "LIMIT 7 OFFSET 3", "OFFSET 2990",          "LIMIT 1 OFFSET 20000"};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT * FROM sales ORDER BY amount, id DESC %s", texts[i]);
    sorted = MADE(hf_df_order_by, f->sales, HF_LIST("amount", "id DESC"));
    frame_same_order(f, THEN(hf_df_limit, sorted, limits[i][0], limits[i][1]), sql);
  }
  sorted = THEN(hf_df_limit, MADE(hf_df_order_by, f->sales, HF_LIST("id")), 20, 0);
  sorted = THEN(hf_df_order_by, sorted, HF_LIST("id DESC"));
  frame_same_order(
      f, THEN(hf_df_limit, sorted, 5, 1),
      "SELECT * FROM (SELECT * FROM sales ORDER BY id LIMIT 20) ORDER BY id DESC LIMIT 5 OFFSET 1");
}

static void sets_go_by_position_or_name(void **state) {
  frame_case *f = *state;
  hf_df *a = MADE(hf_df_select, f->sales, HF_LIST("customer", "region"));
  hf_df *b = MADE(hf_df_select, f->people, HF_LIST("customer", "region"));
  hf_df *c = MADE(hf_df_select, f->people, HF_LIST("region", "name", "customer"));
  frame_same(f, MADE(hf_df_union, a, b),
             "SELECT customer, region FROM sales UNION ALL SELECT customer, region FROM people");
  frame_same(
      f, MADE(hf_df_union_by_name, a, c),
      "SELECT customer, region FROM sales UNION ALL BY NAME SELECT region, name, customer FROM people");
  frame_same(f, MADE(hf_df_intersect, a, b, false),
             "SELECT customer, region FROM sales INTERSECT SELECT customer, region FROM people");
  frame_same(f, MADE(hf_df_intersect, a, a, true),
             "SELECT customer, region FROM sales INTERSECT ALL SELECT customer, region FROM sales");
  frame_same(f, MADE(hf_df_except, a, b, false),
             "SELECT customer, region FROM sales EXCEPT SELECT customer, region FROM people");
  frame_same(f, MADE(hf_df_except, a, b, true),
             "SELECT customer, region FROM sales EXCEPT ALL SELECT customer, region FROM people");
  hf_df_free(a);
  hf_df_free(b);
  hf_df_free(c);
}

static void distinct_keeps_the_first_of_each(void **state) {
  frame_case *f = *state;
  hf_df *few = MADE(hf_df_select, f->sales, HF_LIST("region", "\"a.b\" % 2 AS \"a.b\""));
  frame_same(f, THEN(hf_df_distinct, few, NONE), "SELECT DISTINCT region, \"a.b\" % 2 AS \"a.b\" FROM sales");
  hf_df *sorted = MADE(hf_df_order_by, f->sales, HF_LIST("amount DESC", "id"));
  frame_same(
      f, THEN(hf_df_distinct, sorted, HF_LIST("a.b", "region")),
      "SELECT * FROM sales QUALIFY row_number() OVER (PARTITION BY \"a.b\", region ORDER BY amount DESC, id) = 1");
}

static void expressions_of_the_builder_mean_what_they_say(void **state) {
  frame_case *f = *state;
  hf_expr *odd = hf_expr_column("odd name"), *id = hf_expr_column("id");
  const hf_window w = {
      .partition_by = HF_LIST("region"), .order_by = HF_LIST("id DESC"), .frame = "ROWS 3 PRECEDING"};
  hf_expr *columns[] = {
      hf_expr_copy(id),
      hf_expr_alias(hf_expr_binary(hf_expr_copy(odd), "||", hf_expr_string("'; DROP --\"")), "a\"b"),
      hf_expr_alias(hf_expr_call("coalesce", HF_EXPRS(hf_expr_column("region"), hf_expr_string("?"))), "c"),
      hf_expr_alias(hf_expr_in(hf_expr_copy(id), HF_EXPRS(hf_expr_int64(1), hf_expr_int64(-2))), "d"),
      hf_expr_alias(hf_expr_in(hf_expr_column("region"), NULL, 0), "e"),
      NULL,
  };
  hf_expr *conditions[] = {hf_expr_between(hf_expr_copy(id), hf_expr_int64(3), hf_expr_int64(9)),
                           hf_expr_is_null(hf_expr_column("region"))};
  hf_expr *values[] = {hf_expr_double(0.1), hf_expr_double(-1e300)};
  columns[5] = hf_expr_alias(hf_expr_case(conditions, values, 2, hf_expr_null()), "f");
  hf_expr *more[] = {
      hf_expr_alias(hf_expr_cast(hf_expr_column("amount"), "DECIMAL(20, 4)"), "g"),
      hf_expr_alias(hf_expr_try_cast(hf_expr_copy(odd), "INTEGER"), "h"),
      hf_expr_alias(hf_expr_binary(hf_expr_column("day"), "-", hf_expr_typed("DATE", "2024-02-29")), "i"),
      hf_expr_alias(hf_expr_over(hf_expr_filter(hf_expr_call("sum", HF_EXPRS(hf_expr_column("a.b"))),
                                                hf_expr_binary(hf_expr_copy(id), ">", hf_expr_int64(10))),
                                 &w),
                    "j"),
      hf_expr_alias(hf_expr_unary("NOT", hf_expr_binary(hf_expr_copy(odd), "LIKE", hf_expr_string("%0"))),
                    "k"),
      hf_expr_int64(INT64_MIN),
      hf_expr_sql("\"a.b\" + 1"),
  };
  const char *texts[13];
  for (size_t i = 0; i < 13; i++) {
    texts[i] = hf_expr_text(i < 6 ? columns[i] : more[i - 6]);
    assert_non_null(texts[i]);
  }
  frame_same(
      f, MADE(hf_df_select, f->sales, ((hf_list){texts, 13})),
      "SELECT id, \"odd name\" || '''; DROP --\"' AS \"a\"\"b\", coalesce(region, '?') AS c, id IN (1, -2) AS d, "
      "false AS e, CASE WHEN id BETWEEN 3 AND 9 THEN 0.1::DOUBLE WHEN region IS NULL THEN -1e300 END AS f, "
      "amount::DECIMAL(20, 4) AS g, TRY_CAST(\"odd name\" AS INTEGER) AS h, day - DATE '2024-02-29' AS i, "
      "sum(\"a.b\") FILTER (WHERE id > 10) OVER (PARTITION BY region ORDER BY id DESC ROWS 3 PRECEDING) AS j, "
      "NOT \"odd name\" LIKE '%0' AS k, CAST('-9223372036854775808' AS BIGINT), \"a.b\" + 1 FROM sales");
  for (size_t i = 0; i < 13; i++) {
    hf_expr_free(i < 6 ? columns[i] : more[i - 6]);
  }
  hf_expr *key = hf_expr_order(hf_expr_column("quo\"te"), true, HF_NULLS_FIRST);
  hf_df *sorted = MADE(hf_df_order_by, f->sales, HF_LIST(hf_expr_text(key), hf_expr_text(id)));
  frame_same_order(f, sorted, "SELECT * FROM sales ORDER BY \"quo\"\"te\" DESC NULLS FIRST, id");
  hf_expr_free(key);
  hf_expr_free(odd);
  hf_expr_free(id);
}

static void long_pipeline_is_one_query(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_filter, f->sales, "amount > 50");
  df = THEN(hf_df_with_column, df, "gross", "amount * 1.19");
  df = THEN(hf_df_with_column, df, "m", "month(day)");
  df = THEN(hf_df_join_using, df, f->people, HF_LIST("customer"), HF_JOIN_LEFT);
  df = THEN(hf_df_filter, df, "name IS NOT NULL");
  df = THEN(hf_df_aggregate, df, HF_LIST("m", "name"), HF_LIST("sum(gross) AS gross", "count(*) AS n"));
  df = THEN(hf_df_with_column, df, "share", "n * 100 / sum(n) OVER (PARTITION BY m)");
  df = THEN(hf_df_rename, df, "m", "month");
  df = THEN(hf_df_drop, df, HF_LIST("n"));
  df = THEN(hf_df_order_by, df, HF_LIST("month", "share DESC", "name"));
  frame_same_order(f, THEN(hf_df_limit, df, 100, 5),
                   "SELECT m AS month, name, gross, n * 100 / sum(n) OVER (PARTITION BY m) AS share FROM "
                   "(SELECT month(day) AS m, name, sum(amount * 1.19) AS gross, count(*) AS n FROM sales "
                   "LEFT JOIN people USING (customer) WHERE amount > 50 AND name IS NOT NULL GROUP BY ALL) "
                   "ORDER BY month, share DESC, name LIMIT 100 OFFSET 5");
}

static void steps_stand_on_any_dataframe(void **state) {
  frame_case *f = *state;
  hf_df *sql = api_sql(f->api, "SELECT customer, count(*) AS n FROM sales GROUP BY customer");
  frame_same(f, THEN(hf_df_filter, sql, "n > 59 AND customer > 10"),
             "SELECT customer, count(*) AS n FROM sales GROUP BY customer HAVING n > 59 AND customer > 10");
  hf_df *built = MADE(hf_df_filter, f->sales, "id < 100");
  assert_int_equal(hf_df_create_view(built, "first hundred", false, NULL), HF_OK);
  hf_df *over = api_sql(f->api, "SELECT region, sum(amount) AS s FROM \"first hundred\" GROUP BY region");
  frame_same(f, THEN(hf_df_filter, over, "s > 10"),
             "SELECT region, sum(amount) AS s FROM sales WHERE id < 100 GROUP BY region HAVING s > 10");
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(built, NULL, &stream, NULL), HF_OK);
  hf_df *local = MADE(hf_session_from_stream, f->api->session, &stream);
  frame_same(f, THEN(hf_df_filter, local, "id >= 98"), "SELECT * FROM sales WHERE id IN (98, 99)");
  hf_df_free(built);
}

static void held_step_is_computed_once(void **state) {
  frame_case *f = *state;
  hf_df *totals = MADE(hf_df_aggregate, f->sales, HF_LIST("region"), HF_LIST("sum(amount) AS total"));
  hf_df *held = api_cache(f->api, totals);
  hf_df *top = MADE(hf_df_filter, held, "region > 'r3'");
  hf_profile profile;
  assert_int_equal(api_count(f->api, top, &profile), 3);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(api_count(f->api, top, &profile), 3);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  assert_int_equal(profile.source_rows, 0);
  frame_same(f, top, "SELECT region, sum(amount) AS total FROM sales WHERE region > 'r3' GROUP BY region");
  hf_df *self = MADE(hf_df_join_using, held, held, HF_LIST("region"), HF_JOIN_INNER);
  frame_same(f, self,
             "SELECT * FROM (SELECT region, sum(amount) AS total FROM sales GROUP BY region) a JOIN "
             "(SELECT region, sum(amount) AS total FROM sales GROUP BY region) b USING (region)");
  assert_int_equal(api_storage(f->api, held).generation, 1);
  hf_df_free(held);
  hf_df_free(totals);
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
  const struct CMUnitTest tests[] = {
      CASE(select_gives_expressions),
      CASE(select_takes_windows),
      CASE(filter_keeps_what_is_true),
      CASE(with_column_replaces_or_appends),
      CASE(rename_and_drop_keep_the_rest_in_place),
      CASE(aggregate_groups),
      CASE(join_has_all_types),
      CASE(join_using_has_each_column_once),
      CASE(self_join_tells_its_sides_apart),
      CASE(order_and_limit_keep_their_order),
      CASE(sets_go_by_position_or_name),
      CASE(distinct_keeps_the_first_of_each),
      CASE(expressions_of_the_builder_mean_what_they_say),
      CASE(long_pipeline_is_one_query),
      CASE(steps_stand_on_any_dataframe),
      CASE(held_step_is_computed_once),
  };
  return cmocka_run_group_tests(tests, frame_case_open, frame_case_close);
}

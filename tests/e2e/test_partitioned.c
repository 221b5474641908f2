/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held results that are dealt by the hash of columns: what is asked by these columns moves no row, and every answer is
 * that of plain DuckDB over the same rows.
 */
#include "support/api_case.h"
#include "support/oracle.h"
#include "support/state_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keys below 0, NULL keys, keys of one side only. */
static const struct {
  const char *name, *options, *sql;
} tables[] = {
    {"ints", "OPTIONS ('partitionBy' 'k', 'partitions' '8')",
     "SELECT CASE WHEN i % 7 <> 0 THEN (i % 50 - 25)::INTEGER END AS k, i AS v, 's' || i % 20 AS s, i % 3 AS g "
     "FROM range(2000) r(i)"},
    {"others", "OPTIONS ('partitionBy' 'k', 'partitions' '8')",
     "SELECT CASE WHEN i % 9 <> 0 THEN (i % 60 - 10)::INTEGER END AS k, i AS w, i % 3 AS g FROM range(300) r(i)"},
    {"bigs", "OPTIONS ('partitionBy' 'k', 'partitions' '8')",
     "SELECT CASE WHEN i % 5 <> 0 THEN (i % 70 - 35)::BIGINT END AS k, i AS w FROM range(400) r(i)"},
    {"threes", "OPTIONS ('partitionBy' 'k', 'partitions' '3')",
     "SELECT (i % 40 - 20)::INTEGER AS k, i AS w FROM range(200) r(i)"},
    {"texts", "OPTIONS ('partitionBy' 's', 'partitions' '5')",
     "SELECT CASE WHEN i % 11 <> 0 THEN 's' || i % 30 END AS s, i AS w FROM range(200) r(i)"},
    {"words", "OPTIONS ('partitionBy' 's', 'partitions' '5')",
     "SELECT 's' || i % 25 AS s, i AS v FROM range(700) r(i)"},
    {"pairs", "OPTIONS ('partitionBy' 'k, g', 'partitions' '8')",
     "SELECT (i % 30 - 15)::INTEGER AS k, i % 4 AS g, i AS v FROM range(900) r(i)"},
    {"alike", "OPTIONS ('partitionBy' 'a, b', 'partitions' '8')",
     "SELECT (i % 35 - 15)::INTEGER AS a, i % 5 AS b, i AS w FROM range(400) r(i)"},
    {"turned", "OPTIONS ('partitionBy' ' \"g\" , k', 'partitions' '8')",
     "SELECT (i % 35 - 15)::INTEGER AS k, i % 5 AS g, i AS w FROM range(400) r(i)"},
    {"plain", "", "SELECT (i % 60 - 10)::INTEGER AS k, i AS w FROM range(300) r(i)"},
    {"few", "OPTIONS ('partitionBy' 'k', 'partitions' '8')",
     "SELECT (i - 1)::INTEGER AS k, i AS w FROM range(3) r(i)"},
};
enum { TABLES = sizeof tables / sizeof tables[0] };

typedef struct query {
  unsigned stages; /* of three tasks; 0: not looked at */
  const char *sql;
} query;

/* The last gathers in one task; what is dealt is in the stage before it. */
static const query queries[] = {
    {2, "SELECT count(*), sum(v)::BIGINT, sum(w)::BIGINT FROM ints JOIN others USING (k)"},
    {2,
     "SELECT k, n, sum(w)::BIGINT FROM (SELECT k, count(*) AS n FROM ints GROUP BY k) JOIN others USING (k) "
     "GROUP BY k, n ORDER BY 1, 2"},
    {2, "SELECT k, count(*), sum(v)::BIGINT FROM ints GROUP BY k ORDER BY k"},
    {2, "SELECT k, s, count(DISTINCT v) FROM ints GROUP BY s, k ORDER BY k, s"},
    {2, "SELECT DISTINCT k, g FROM ints ORDER BY k, g"},
    {2, "SELECT DISTINCT k FROM ints ORDER BY k"},
    {3, "SELECT g, count(*) FROM ints GROUP BY g ORDER BY g"},
    {2, "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) FROM ints ORDER BY v"},
    {2, "SELECT k, v, rank() OVER (PARTITION BY g, k ORDER BY v DESC) FROM ints ORDER BY v"},
    {3, "SELECT v, rank() OVER (PARTITION BY g ORDER BY v DESC) FROM ints ORDER BY v"},
    /* outer, semi, anti: NULL keys match nothing, and are lost by none */
    {2, "SELECT k, v, w FROM ints LEFT JOIN others USING (k) ORDER BY v, w"},
    {2, "SELECT i.k, v, w FROM ints i RIGHT JOIN others o ON i.k = o.k ORDER BY w, v"},
    {2, "SELECT i.k, o.k, v, w FROM ints i FULL JOIN others o ON i.k = o.k ORDER BY v, w"},
    {2, "SELECT k, v FROM ints WHERE k IN (SELECT k FROM others) ORDER BY v"},
    {2, "SELECT k, v FROM ints SEMI JOIN others USING (k) ORDER BY v"},
    {2, "SELECT k, v FROM ints ANTI JOIN others USING (k) ORDER BY v"},
    {0, "SELECT k, v FROM ints i WHERE NOT EXISTS (FROM others o WHERE o.k = i.k AND o.w > i.v) ORDER BY v"},
    {0, "SELECT k, v FROM ints WHERE k NOT IN (SELECT k FROM others WHERE k IS NOT NULL) ORDER BY v"},
    {0, "SELECT k, v, (SELECT max(w) FROM others o WHERE o.k = i.k) FROM ints i ORDER BY v"},
    {2, "SELECT i.v, o.w FROM ints i JOIN others o ON i.k IS NOT DISTINCT FROM o.k ORDER BY v, w"},
    {2, "SELECT i.v, o.w, o.k FROM ints i FULL JOIN others o ON i.k IS NOT DISTINCT FROM o.k ORDER BY v, w"},
    /* the hash of -1 as INTEGER is not that as BIGINT */
    {0, "SELECT i.k, v, w FROM ints i FULL JOIN bigs b ON i.k = b.k ORDER BY v, w"},
    {0, "SELECT i.k, count(*), sum(w)::BIGINT FROM ints i JOIN bigs b ON i.k = b.k GROUP BY i.k ORDER BY 1"},
    {0, "SELECT b.k, count(*), sum(v)::BIGINT FROM ints i JOIN bigs b ON i.k = b.k GROUP BY b.k ORDER BY 1"},
    /* as many partitions on both sides, or an exchange of one */
    {3, "SELECT i.k, v, w FROM ints i FULL JOIN threes t ON i.k = t.k ORDER BY v, w"},
    {3, "SELECT i.k, v, w FROM ints i FULL JOIN plain p ON i.k = p.k ORDER BY v, w"},
    {3, "SELECT p.k, v, w FROM plain p FULL JOIN ints i ON i.k = p.k ORDER BY v, w"},
    {0, "SELECT k, sum(v)::BIGINT, sum(w)::BIGINT FROM ints JOIN plain USING (k) GROUP BY k ORDER BY k"},
    {0,
     "SELECT t.k, v, o.w FROM threes t FULL JOIN ints i ON t.k = i.k FULL JOIN others o ON o.k = t.k ORDER BY v, o.w"},
    {2, "SELECT count(*), sum(x.v + y.v)::BIGINT FROM ints x JOIN ints y ON x.k = y.k AND x.s = y.s"},
    {2, "SELECT x.k, x.w, y.w FROM few x FULL JOIN few y ON x.k = y.k + 0 AND x.k = y.k ORDER BY 2, 3"},
    /* text */
    {2, "SELECT s, v, w FROM texts FULL JOIN words USING (s) ORDER BY v, w"},
    {2, "SELECT s, count(*), max(w) FROM texts GROUP BY s ORDER BY s"},
    {0, "SELECT upper(s) AS u, count(*) FROM texts GROUP BY u ORDER BY u"},
    /* several columns, in this order and in the other; and fewer, which have no more than some of the rows */
    {2, "SELECT p.k, g, v, w FROM pairs p JOIN alike x ON k = a AND g = b ORDER BY v, w"},
    {2, "SELECT p.k, g, v, w FROM alike x FULL JOIN pairs p ON g = b AND a = k ORDER BY v, w"},
    {3, "SELECT p.k, p.g, v, w FROM pairs p FULL JOIN turned t ON p.k = t.k AND p.g = t.g ORDER BY v, w"},
    {0, "SELECT p.k, g, v, w FROM pairs p FULL JOIN alike x ON k = a ORDER BY v, w"},
    {2, "SELECT k, g, count(*) FROM pairs GROUP BY g, k ORDER BY k, g"},
    {3, "SELECT k, count(*) FROM pairs GROUP BY k ORDER BY k"},
    {2, "SELECT g, k, count(*) FROM turned WHERE w % 2 = 0 GROUP BY k, g ORDER BY k, g"},
    /* partitions without rows */
    {2, "SELECT k, v, w FROM few LEFT JOIN ints USING (k) ORDER BY v"},
    {2, "SELECT k, sum(w)::BIGINT FROM few GROUP BY k ORDER BY k"},
    {2, "SELECT k, count(w) FROM few WHERE w > 99 GROUP BY k ORDER BY k"},
    /* what is dealt is also read whole, split, cut off and put together */
    {0, "SELECT count(*), sum(v)::BIGINT FROM ints"},
    {0, "SELECT k FROM ints UNION SELECT k FROM others ORDER BY k"},
    {0, "SELECT k FROM ints EXCEPT SELECT k FROM others ORDER BY k"},
    {0, "SELECT k, w FROM few UNION ALL SELECT k, w FROM others ORDER BY k, w"},
    {0,
     "WITH c AS (SELECT k, count(*) AS n FROM ints GROUP BY k) SELECT x.k, x.n, w FROM c x JOIN c y USING (k) "
     "JOIN others USING (k) ORDER BY k, w"},
    {0, "SELECT g, grouping(k), count(*) FROM ints GROUP BY ROLLUP (g, k) ORDER BY ALL"},
};

/* ------------------------------------------------------------------ support */

static oracle *plain_tables(void) {
  oracle *o = oracle_open();
  assert_non_null(o);
  for (size_t i = 0; i < TABLES; i++) {
    char sql[600];
    snprintf(sql, sizeof sql, "CREATE TABLE %s AS %s", tables[i].name, tables[i].sql);
    assert_null(oracle_run(o, sql));
  }
  return o;
}

static void hold_tables(api_case *c) {
  for (size_t i = 0; i < TABLES; i++) {
    char sql[600];
    snprintf(sql, sizeof sql, "CACHE TABLE %s %s AS %s", tables[i].name, tables[i].options, tables[i].sql);
    api_run(c, sql);
  }
}

/* As api_rows spells them; free. */
static char *plain_rows(oracle *o, const char *sql) {
  oracle_rows rows;
  size_t length = 0, at = 0;
  char as_text[700];
  snprintf(as_text, sizeof as_text, "SELECT COLUMNS(*)::VARCHAR FROM (%s)", sql);
  char *error = oracle_query(o, as_text, 100000, &rows);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
  for (size_t i = 0; i < rows.n_columns * rows.n_rows; i++) {
    length += rows.cells[i].text == NULL ? 5 : rows.cells[i].length + 1;
  }
  char *text = malloc(length + 1);
  assert_non_null(text);
  text[0] = '\0';
  for (size_t i = 0; i < rows.n_columns * rows.n_rows; i++) {
    const char *cell = rows.cells[i].text == NULL ? "NULL" : rows.cells[i].text;
    at += (size_t)snprintf(text + at, length + 1 - at, "%s%c", cell,
                           (i + 1) % rows.n_columns == 0 ? '\n' : '|');
  }
  oracle_rows_free(&rows);
  return text;
}

static void set_tasks(api_case *c, unsigned tasks) {
  char sql[40];
  snprintf(sql, sizeof sql, "SET tasks = %u", tasks);
  api_run(c, sql);
}

static bool is_right(api_case *c, oracle *o, const query *q, unsigned tasks) {
  hf_df *df = api_sql(c, q->sql);
  hf_profile profile;
  char *ours = api_rows(c, df, &profile), *theirs = plain_rows(o, q->sql);
  bool right = strcmp(ours, theirs) == 0 && profile.held_fills == 0;
  if (!right) {
    print_error("%s by %u tasks:\n%.300s\nand not\n%.300s\n", q->sql, tasks, ours, theirs);
  }
  if (tasks == 3 && q->stages > 0 && profile.stages_run != q->stages) {
    print_error("%s: %u stages\n", q->sql, (unsigned)profile.stages_run);
    right = false;
  }
  free(ours);
  free(theirs);
  hf_df_free(df);
  return right;
}

static void expect_all(api_case *c, unsigned tasks) {
  oracle *o = plain_tables();
  size_t n = sizeof queries / sizeof queries[0], n_right = 0;
  set_tasks(c, tasks);
  for (size_t i = 0; i < n; i++) {
    n_right += is_right(c, o, &queries[i], tasks);
  }
  oracle_close(o);
  assert_int_equal(n_right, n);
}

static char *explained(api_case *c, const char *sql) {
  char *text = NULL;
  hf_df *df = api_sql(c, sql);
  assert_int_equal(hf_df_explain(df, &text, NULL), HF_OK);
  hf_df_free(df);
  return text;
}

static void expect_explained(api_case *c, const char *sql, const char *what, bool is_there) {
  char *text = explained(c, sql);
  if ((strstr(text, what) != NULL) != is_there) {
    fail_msg("%s %s: %s", is_there ? "does not tell" : "tells", what, text);
  }
  hf_text_free(text);
}

/* -------------------------------------------------------------------- cases */

static void hold_of_three_tasks_answers_as_plain_tables(void **state) {
  set_tasks(*state, 3);
  hold_tables(*state);
  expect_all(*state, 3);
  expect_all(*state, 2);
}

static void hold_of_one_task_is_read_by_fewer_and_more_than_its_partitions(void **state) {
  set_tasks(*state, 1);
  hold_tables(*state);
  expect_all(*state, 3);
  expect_all(*state, 8);
  expect_all(*state, 11);
  expect_all(*state, 1);
}

static void plan_tells_why_there_is_no_exchange(void **state) {
  api_case *c = *state;
  static const char join[] = "SELECT k, sum(v * w) FROM ints JOIN others USING (k) GROUP BY k";
  api_run(c,
          "CACHE LAZY TABLE later OPTIONS ('partitionBy' 'k, v', 'partitions' '4') AS SELECT 1 AS k, 2 AS v");
  set_tasks(c, 3);
  hold_tables(c);
  expect_explained(c, join, "partitioned by k, 8, each task its partitions: no exchange", true);
  expect_explained(c, join, "stage 2", false);
  expect_explained(c, "SELECT count(*) FROM ints i FULL JOIN bigs b ON i.k = b.k", "a partition each", true);
  expect_explained(c, "SELECT DISTINCT v, k FROM later", "[miss → materialise] later, partitioned by k, v, 4",
                   true);
  set_tasks(c, 1);
  expect_explained(c, join, "no exchange", false);
}

static void rows_that_are_dealt_by_a_query_are_held_so(void **state) {
  api_case *c = *state;
  set_tasks(c, 3);
  api_run(
      c,
      "CACHE TABLE sums AS SELECT (i % 40 - 20)::INTEGER AS k, sum(i)::BIGINT AS v FROM range(500) r(i) GROUP BY k");
  api_run(c, "CACHE TABLE base AS SELECT (i % 40 - 20)::INTEGER AS k, i FROM range(500) r(i)");
  api_run(c, "CACHE TABLE again AS SELECT k, sum(i)::BIGINT AS w FROM base GROUP BY k");
  api_run(c, "CACHE TABLE twice AS SELECT max(i) AS m, k FROM base GROUP BY k");
  expect_explained(c, "SELECT w, m FROM again JOIN twice USING (k)", "partitioned by k, 3", true);
  expect_explained(c, "SELECT w, m FROM again JOIN twice USING (k)", "stage 2", false);
  api_expect(c, "SELECT count(*), sum(w)::BIGINT, sum(m)::BIGINT FROM again JOIN twice USING (k)",
             "40|124750|19180\n");
  set_tasks(c, 2); /* locations 0 and 1 are one task's, or the first only */
  api_expect(c, "SELECT count(*), sum(w)::BIGINT, sum(m)::BIGINT FROM again JOIN twice USING (k)",
             "40|124750|19180\n");
  set_tasks(c, 5);
  api_expect(c, "SELECT count(*), sum(w)::BIGINT, sum(m)::BIGINT FROM again FULL JOIN twice USING (k)",
             "40|124750|19180\n");
}

static int drop_block(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  size_t length = strlen(path);
  (void)info;
  (void)walk;
  return kind == FTW_F && length > 6 && strcmp(path + length - 6, ".arrow") == 0 ? unlink(path) : 0;
}

static void lost_hold_is_dealt_again(void **state) {
  api_case *c = *state;
  set_tasks(c, 3);
  hold_tables(c);
  assert_int_equal(nftw(c->work_dir, drop_block, 16, FTW_PHYS), 0);
  hf_df *df = api_sql(c, "SELECT count(*), sum(v)::BIGINT, sum(w)::BIGINT FROM ints JOIN others USING (k)");
  hf_profile profile = {0};
  free(api_rows(c, df, &profile));
  assert_true(profile.held_fills > 0);
  hf_df_free(df);
  expect_explained(c, "SELECT v, w FROM ints JOIN others USING (k)", "generation 2] ints", true);
  expect_explained(c, "SELECT v, w FROM ints JOIN others USING (k)", "partitioned by k, 8", true);
  oracle *o = plain_tables();
  assert_true(is_right(c, o, &queries[0], 3));
  oracle_close(o);
}

/* Filled again there, too: the declaration says how. */
static void hold_is_dealt_after_a_restart(void **state) {
  static const char join[] =
      "SELECT count(*), sum(v)::BIGINT, sum(w)::BIGINT FROM ints JOIN others USING (k)";
  api_case *c = *state;
  oracle *o = plain_tables();
  set_tasks(c, 3);
  hold_tables(c);
  api_run(c, "CACHE TABLE sums AS SELECT k, sum(w)::BIGINT AS s FROM plain GROUP BY k");
  state_again(c);
  expect_explained(c, join, "generation 1] ints", true);
  expect_explained(c, join, "partitioned by k, 8, each task its partitions: no exchange", true);
  expect_explained(c, "SELECT DISTINCT k FROM sums", "partitioned by k, 3", true);
  assert_true(is_right(c, o, &queries[0], 3));
  api_run(c, "REFRESH TABLE ints");
  hf_df *again = api_sql(c, join);
  free(api_rows(c, again, NULL));
  hf_df_free(again);
  expect_explained(c, join, "generation 2] ints", true);
  assert_true(is_right(c, o, &queries[0], 3));
  oracle_close(o);
}

static void listing_tells_the_partitions(void **state) {
  api_case *c = *state;
  hf_hold *holds = NULL;
  size_t n = 0;
  set_tasks(c, 3);
  hold_tables(c);
  assert_int_equal(hf_session_holds(c->session, &holds, &n, NULL), HF_OK);
  assert_int_equal(n, TABLES);
  assert_int_equal(holds[0].partitions, 8);
  assert_int_equal(holds[3].partitions, 3);
  hf_holds_free(holds);
}

static void dataframe_that_is_repartitioned_is_held_so(void **state) {
  api_case *c = *state;
  static const char *const keys[] = {"k"}, *const none[] = {"nowhere"}, *const twice[] = {"k", "K"};
  hf_df *rows = api_sql(c, "SELECT (i % 9 - 4)::INTEGER AS k, i AS v, i::DOUBLE AS d FROM range(100) r(i)");
  hf_df *dealt = NULL, *held = NULL, *wrong = NULL, *grouped = NULL;
  static const char *const sums[] = {"sum(v) AS s"};
  char *text = NULL;
  assert_int_equal(hf_df_repartition(rows, 6, (hf_list){keys, 1}, &dealt, &c->error), HF_OK);
  set_tasks(c, 3);
  held = api_cache(c, dealt);
  assert_int_equal(api_count(c, held, NULL), 100);
  assert_int_equal(hf_df_aggregate(held, (hf_list){keys, 1}, (hf_list){sums, 1}, &grouped, &c->error), HF_OK);
  assert_int_equal(hf_df_explain(grouped, &text, &c->error), HF_OK);
  assert_non_null(strstr(text, "partitioned by k, 6, each task its partitions"));
  assert_null(strstr(text, "stage 2"));
  hf_text_free(text);
  hf_df_free(grouped);
  hf_df_free(held);
  assert_int_equal(hf_df_repartition(rows, 6, (hf_list){none, 1}, &wrong, &c->error), HF_E_COLUMN_NOT_FOUND);
  hf_error_reset(&c->error);
  assert_int_equal(hf_df_repartition(rows, 6, (hf_list){twice, 2}, &wrong, &c->error), HF_E_INVALID_ARGUMENT);
  hf_error_reset(&c->error);
  assert_int_equal(hf_df_repartition(rows, 1, (hf_list){keys, 1}, &wrong, &c->error), HF_E_INVALID_ARGUMENT);
  hf_error_reset(&c->error);
  hf_df_free(dealt);
  hf_df_free(rows);
}

static void option_that_cannot_be_is_refused(void **state) {
  static const struct {
    const char *options, *says;
    hf_status code;
  } cases[] = {
      {"'partitionBy' 'nowhere'", "nowhere", HF_E_COLUMN_NOT_FOUND},
      {"'partitionBy' 'k, k'", "twice", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' ''", "", HF_E_COLUMN_NOT_FOUND},
      {"'partitionBy' 'd'", "this type", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' 'k', 'partitions' '0'", "above 0", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' 'k', 'partitions' 'many'", "many", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' 'k', 'partitions' '-8'", "-8", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' 'k', 'partitions' '1'", "2 to 4096", HF_E_INVALID_ARGUMENT},
      {"'partitionBy' 'k', 'partitions' '100000'", "100000", HF_E_INVALID_ARGUMENT},
      {"'partitions' '8'", "without", HF_E_INVALID_ARGUMENT},
      {"'partitionedBy' 'k'", "partitionedBy", HF_E_INVALID_ARGUMENT},
  };
  api_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char sql[200];
    snprintf(sql, sizeof sql, "CACHE TABLE t OPTIONS (%s) AS SELECT 1 AS k, 1.5::DOUBLE AS d",
             cases[i].options);
    api_fails(c, sql, cases[i].code);
    if (strstr(c->error.message, cases[i].says) == NULL) {
      fail_msg("%s: %s", cases[i].options, c->error.message);
    }
  }
  api_fails(c, "SELECT * FROM t", HF_E_TABLE_NOT_FOUND);
}

#define CASE(name, open) cmocka_unit_test_setup_teardown(name, open, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(hold_of_three_tasks_answers_as_plain_tables, api_case_open_two_slots),
      CASE(hold_of_one_task_is_read_by_fewer_and_more_than_its_partitions, api_case_open),
      CASE(plan_tells_why_there_is_no_exchange, api_case_open),
      CASE(rows_that_are_dealt_by_a_query_are_held_so, api_case_open_two_slots),
      CASE(lost_hold_is_dealt_again, api_case_open),
      cmocka_unit_test_setup_teardown(hold_is_dealt_after_a_restart, state_case_open, state_case_close),
      CASE(listing_tells_the_partitions, api_case_open),
      CASE(dataframe_that_is_repartitioned_is_held_so, api_case_open),
      CASE(option_that_cannot_be_is_refused, api_case_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

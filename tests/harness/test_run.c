/* SPDX-License-Identifier: Apache-2.0 */
/* Runs by name: what a distributed engine is likely to get wrong, against single-node DuckDB. */
#include "rig.h"

static const hf_harness_config three = {.tasks = 3, .slots = 3};
static const hf_harness_config few_slots = {.tasks = 7, .slots = 2};
static const hf_harness_config dealt = {.tasks = 3, .slots = 2, .broadcast = HF_HARNESS_BROADCAST_NEVER};

/* All ways of this file. */
static void everywhere(rig *r, const char *sql) {
  rig_distributed(r, sql, &three);
  rig_distributed(r, sql, &few_slots);
  rig_distributed(r, sql, &dealt);
}

static void run_gives_rows_with_the_names_of_the_query(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  struct ArrowSchema columns;
  struct ArrowArray array;
  hf_error error = {0};
  int64_t n = 0;
  rig_table(r, "t", "SELECT range AS a FROM range(5000)");
  must(hf_run_distributed(r->h, "SELECT a % 10 AS \"the key\", count(*) AS n FROM t GROUP BY 1", &three,
                          &rows, &error),
       &error);
  assert_int_equal(rows.get_schema(&rows, &columns), 0);
  assert_int_equal(columns.n_children, 2);
  assert_string_equal(columns.children[0]->name, "the key");
  assert_string_equal(columns.children[1]->name, "n");
  columns.release(&columns);
  for (;;) {
    assert_int_equal(rows.get_next(&rows, &array), 0);
    if (array.release == NULL) {
      break;
    }
    n += array.length;
    array.release(&array);
  }
  assert_int_equal(n, 10);
  rows.release(&rows);
}

static void scan_of_four_csv_files_under_an_aggregate_reads_each_once(void **state) {
  rig *r = *state;
  char paths[4][100];
  hf_error error = {0};
  for (int i = 0; i < 4; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/part%d.csv", r->dir, i);
    FILE *f = fopen(paths[i], "w");
    assert_non_null(f);
    fprintf(f, "k,v\n");
    for (int row = 0; row < 1000 + i; row++) {
      fprintf(f, "%d,%d\n", row % 7, row * (i + 1));
    }
    fclose(f);
  }
  must(hf_harness_files(r->h, "c", "csv", HF_LIST(paths[0], paths[1], paths[2], paths[3]), &error), &error);
  const hf_harness_config ways[] = {{.tasks = 4, .slots = 4},
                                    {.tasks = 4, .slots = 2},
                                    {.tasks = 4, .slots = 1},
                                    {.tasks = 7, .slots = 3},
                                    {.tasks = 2, .slots = 2}};
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    hf_harness_report report = {0};
    rig_same(r, "SELECT k, count(*), sum(v), min(v), max(v) FROM c GROUP BY k ORDER BY k", &ways[i], &report);
    assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED);
    assert_int_equal(report.n_rows, 7);
    hf_harness_report_reset(&report);
    rig_distributed(r, "SELECT count(*), avg(v) FROM c", &ways[i]);
  }
}

static void query_names_files_in_its_text(void **state) {
  rig *r = *state;
  char sql[300];
  rig_table(r, "t", "SELECT range AS a, range % 3 AS b FROM range(9000)");
  snprintf(sql, sizeof sql, "SELECT b, sum(a) FROM '%s/t.parquet' GROUP BY b ORDER BY b", r->dir);
  everywhere(r, sql);
}

static void empty_inputs_give_what_duckdb_gives(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  static const char *const queries[] = {
      "SELECT count(*), sum(a), min(b), avg(a) FROM e",
      "SELECT b, count(*) FROM e GROUP BY b",
      "SELECT * FROM e ORDER BY a LIMIT 3",
      "SELECT t.a FROM t JOIN e ON t.a = e.a",
      "SELECT count(*) FROM t WHERE a NOT IN (SELECT a FROM e)",
  };
  rig_table(r, "e", "SELECT range AS a, 'x' || range AS b FROM range(0)");
  rig_table(r, "t", "SELECT range AS a FROM range(9000)");
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    rig_same(r, queries[i], &three, &report);
    hf_harness_report_reset(&report);
    rig_same(r, queries[i], &dealt, &report);
    hf_harness_report_reset(&report);
  }
  everywhere(r, "SELECT t.a, e.b FROM t LEFT JOIN e ON t.a = e.a");
  everywhere(r, "SELECT t.a, e.b FROM e RIGHT JOIN t USING (a)");
}

static void partition_without_rows_is_read_as_empty(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  rig_table(r, "t", "SELECT 42 AS k, range AS v FROM range(9000)");
  rig_table(r, "u", "SELECT 42 AS k, range AS w FROM range(3)");
  rig_same(r, "SELECT k, count(*), sum(v) FROM t GROUP BY k", &three, &report);
  assert_int_equal(report.result, HF_HARNESS_DISTRIBUTED); /* its scan */
  bool has_empty = false;
  for (size_t i = 0; i < report.n_stages; i++) {
    for (uint32_t t = 0; t < report.stages[i].tasks; t++) {
      has_empty = has_empty || report.stages[i].task_rows[t] == 0;
    }
  }
  assert_true(has_empty); /* one key: the other partitions have nothing */
  hf_harness_report_reset(&report);
  everywhere(r, "SELECT count(*), sum(v + w) FROM t JOIN u USING (k)");
}

static void null_keys_join_nothing_and_group_together(void **state) {
  rig *r = *state;
  rig_table(r, "t",
            "SELECT CASE WHEN range % 3 = 0 THEN NULL ELSE range % 50 END AS k, range AS v FROM range(9000)");
  rig_table(r, "u",
            "SELECT CASE WHEN range % 2 = 0 THEN NULL ELSE range % 50 END AS k, range AS w FROM range(5000)");
  everywhere(r, "SELECT k, count(*) FROM t GROUP BY k");
  everywhere(r, "SELECT count(*), sum(v), sum(w) FROM t JOIN (FROM u WHERE w < 300) USING (k)");
  everywhere(r, "SELECT count(*), count(w) FROM t LEFT JOIN (FROM u WHERE w < 300) u USING (k)");
  everywhere(r, "SELECT count(*), count(v), count(w) FROM t FULL JOIN (FROM u WHERE w < 100) u USING (k)");
  everywhere(r, "SELECT count(*) FROM t JOIN (FROM u WHERE w < 30) u ON t.k IS NOT DISTINCT FROM u.k");
  everywhere(r, "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL AND w < 20)");
}

static void negative_keys_of_other_widths_meet(void **state) {
  rig *r = *state;
  rig_table(r, "t", "SELECT (range - 2500)::INTEGER AS k, (range - 2500)::SMALLINT AS s FROM range(5000)");
  rig_table(r, "u",
            "SELECT (range - 4000)::BIGINT AS k, (range - 4000)::HUGEINT AS h, (range - 4000)::DOUBLE AS d "
            "FROM range(8000)");
  everywhere(r, "SELECT count(*), sum(t.k) FROM t JOIN u ON t.k = u.k");
  everywhere(r, "SELECT count(*), sum(t.k) FROM t JOIN u ON t.s = u.h");
  everywhere(r, "SELECT count(*), sum(t.k) FROM t JOIN u ON t.s = u.d");
  everywhere(r, "SELECT k FROM t UNION SELECT k FROM u");
  everywhere(r, "SELECT k FROM u EXCEPT SELECT s FROM t");
}

static void duplicate_column_names_stay_apart(void **state) {
  rig *r = *state;
  rig_table(r, "t", "SELECT range AS a, range % 5 AS b FROM range(9000)");
  everywhere(r, "SELECT a, a, b AS a FROM t WHERE b > 1");
  everywhere(r, "SELECT * FROM (SELECT b AS x, count(*) AS x FROM t GROUP BY b) ORDER BY 1");
  everywhere(r, "SELECT x.a, y.a FROM t x JOIN t y ON x.a = y.a + 1");
}

static void rows_without_columns_keep_their_number(void **state) {
  rig *r = *state;
  rig_table(r, "t", "SELECT range AS a FROM range(9000)");
  everywhere(r, "SELECT count(*) FROM t");
  everywhere(r, "SELECT count(*) FROM t, (SELECT a FROM t WHERE a < 3) u");
  everywhere(r, "SELECT 1 FROM t WHERE a % 2 = 0");
}

static void stream_of_rows_is_a_table_on_both_sides(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  hf_error error = {0};
  rig_table(r, "t", "SELECT range AS a FROM range(9000)");
  must(hf_run_distributed(
           r->h,
           "SELECT a, a::HUGEINT AS h, INTERVAL (a) DAY AS i, CASE WHEN a % 4 > 0 THEN 'x' || a END AS s, "
           "[a, a + 1] AS l, {'k': a} AS p FROM t",
           &three, &rows, &error),
       &error);
  must(hf_harness_stream(r->h, "s", &rows, &error), &error);
  assert_null(rows.release);
  everywhere(r, "SELECT count(*), sum(h), max(i), count(s), sum(l[2]), max(p.k) FROM s");
  everywhere(r, "SELECT s.a, s.s, t.a FROM s JOIN t ON s.a = t.a WHERE t.a % 7 = 0");
  must(hf_harness_drop(r->h, "s", &error), &error);
  rig_fails(r, "FROM s", &three, HF_E_TABLE_NOT_FOUND);
}

static void view_stays_over_what_was_dropped(void **state) {
  rig *r = *state;
  struct ArrowArrayStream rows = {0};
  hf_error error = {0};
  rig_table(r, "t", "SELECT range AS a, range % 5 AS b FROM range(9000)");
  must(hf_run_distributed(r->h, "SELECT a AS c, 'x' || a AS s FROM t", &three, &rows, &error), &error);
  must(hf_harness_stream(r->h, "s", &rows, &error), &error);
  must(hf_harness_view(r->h, "v", "WITH x AS (FROM t WHERE b > 0) SELECT x.a, s.s FROM x JOIN s ON x.a = s.c",
                       &error),
       &error);
  must(hf_harness_view(r->h, "w", "SELECT max(s) AS m FROM v WHERE a < 5000", &error), &error);
  must(hf_harness_drop(r->h, "s", &error), &error);
  must(hf_harness_drop(r->h, "T", &error), &error);
  everywhere(r, "SELECT count(*), max(s), sum(a) FROM v");
  must(hf_harness_drop(r->h, "v", &error), &error);
  rig_fails(r, "FROM v", &three, HF_E_TABLE_NOT_FOUND);
  rig_fails(r, "FROM s", &three, HF_E_TABLE_NOT_FOUND);
  rig_table(r, "z", "SELECT 'other' AS a");
  must(hf_harness_view(r->h, "t", "FROM z", &error),
       &error); /* of that name again: the views are over the old one */
  everywhere(r, "FROM w");
  must(hf_harness_view(r->h, "w", "SELECT m || '!' AS m FROM w; ", &error),
       &error); /* over the one in whose place it is */
  everywhere(r, "FROM w");
  must(hf_harness_set(r->h, "sql.default_order", "desc", &error),
       &error); /* single-node DuckDB is told all anew */
  everywhere(r, "SELECT m FROM w, t ORDER BY m");
  must(hf_harness_drop(r->h, "w", &error), &error);
  rig_fails(r, "FROM w", &three, HF_E_TABLE_NOT_FOUND);
  must(hf_harness_drop(r->h, "t", &error), &error);
}

static void view_is_computed_where_it_is_named(void **state) {
  rig *r = *state;
  hf_error error = {0};
  const hf_harness_config held = {.tasks = 3, .slots = 3, .hold = HF_HARNESS_HOLD_HELD};
  const hf_harness_config inlined = {.tasks = 3, .slots = 3, .hold = HF_HARNESS_HOLD_INLINED};
  rig_table(r, "t", "SELECT range AS a, range % 5 AS b FROM range(9000)");
  must(hf_harness_view(r->h, "v", "SELECT b, sum(a) AS s, count(*) AS n FROM t GROUP BY b", &error), &error);
  must(hf_harness_view(r->h, "w", "SELECT v.*, t.a FROM v JOIN t ON t.a % 5 = v.b", &error), &error);
  everywhere(r, "SELECT b, s FROM v WHERE n > 1");
  rig_distributed(r, "SELECT b, sum(a), max(s) FROM w GROUP BY b", &held);
  rig_distributed(r, "SELECT b, sum(a), max(s) FROM w GROUP BY b", &inlined);
  must(hf_harness_view(r->h, "v", "SELECT a AS b FROM t", &error),
       &error); /* in its place; w is over the old one */
  everywhere(r, "SELECT sum(b) FROM v");
}

static void view_with_a_collation_is_never_held(void **state) {
  rig *r = *state;
  hf_error error = {0};
  const hf_harness_config held = {.tasks = 3, .slots = 3, .hold = HF_HARNESS_HOLD_HELD};
  rig_table(
      r, "t",
      "SELECT range AS a, CASE WHEN range % 3 > 0 THEN 'x' ELSE 'X' END || range % 7 AS s FROM range(9000)");
  must(hf_harness_view(r->h, "v", "SELECT a, s COLLATE NOCASE AS s FROM t", &error), &error);
  rig_distributed(r, "SELECT count(*), sum(v.a) FROM v JOIN t ON v.s = t.s WHERE t.a < 50", &held);
  rig_distributed(r, "SELECT lower(s), count(*) FROM (SELECT s, a FROM v WHERE s = 'X3') GROUP BY 1", &held);
  must(hf_harness_view(r->h, "v", "SELECT a, s FROM t", &error), &error);
  rig_distributed(r, "SELECT count(*), sum(v.a) FROM v JOIN t ON v.s = t.s WHERE t.a < 50", &held);
}

static void settings_are_those_of_both_sides(void **state) {
  rig *r = *state;
  hf_error error = {0};
  rig_table(r, "t", "SELECT CASE WHEN range % 3 > 0 THEN range END AS a FROM range(9000)");
  must(hf_harness_set(r->h, "sql.default_null_order", "nulls_first", &error), &error);
  must(hf_harness_set(r->h, "sql.time_zone", "Asia/Tokyo", &error), &error);
  must(hf_harness_set(r->h, "sql.integer_division", "true", &error), &error);
  everywhere(r, "SELECT a FROM t ORDER BY a LIMIT 3500");
  everywhere(r, "SELECT max(hour(to_timestamp(a))), sum(a / 2) FROM t");
  assert_int_equal(hf_harness_set(r->h, "shuffle.batch_bytes", "1MiB", &error), HF_E_SETTING_UNKNOWN);
  hf_error_reset(&error);
}

static void order_and_limit_are_those_of_the_query(void **state) {
  rig *r = *state;
  hf_harness_report report = {0};
  rig_table(r, "t", "SELECT range AS a, range % 10 AS b FROM range(9000)");
  rig_same(r, "SELECT b, a FROM t ORDER BY b DESC, a LIMIT 100 OFFSET 850", &three, &report);
  assert_true(report.compared_order);
  assert_int_equal(report.n_rows, 100);
  hf_harness_report_reset(&report);
  everywhere(r, "SELECT a FROM t LIMIT 4000");
  everywhere(r, "SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) FROM t");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_open, rig_close)

int main(void) {
  const struct CMUnitTest cases[] = {
      CASE(run_gives_rows_with_the_names_of_the_query),
      CASE(scan_of_four_csv_files_under_an_aggregate_reads_each_once),
      CASE(query_names_files_in_its_text),
      CASE(empty_inputs_give_what_duckdb_gives),
      CASE(partition_without_rows_is_read_as_empty),
      CASE(null_keys_join_nothing_and_group_together),
      CASE(negative_keys_of_other_widths_meet),
      CASE(duplicate_column_names_stay_apart),
      CASE(rows_without_columns_keep_their_number),
      CASE(stream_of_rows_is_a_table_on_both_sides),
      CASE(view_stays_over_what_was_dropped),
      CASE(view_is_computed_where_it_is_named),
      CASE(view_with_a_collation_is_never_held),
      CASE(settings_are_those_of_both_sides),
      CASE(order_and_limit_are_those_of_the_query),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query learns of its first stages, through the public API: the smaller side of a join turns out small, empty, of few
 * keys or of keys close together; then the larger one is not moved, or less of it. Partitions of few bytes are read by fewer
 * tasks. The answers are single-node DuckDB's.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE_ROWS = 1200000, SMALL_ROWS = 1000000 };

/* The larger one has 100 MB, for which two slots have a task each. What is guessed of its conditions lets nearly all rows of
 * the smaller one pass. */
static const char *const files[] = {
    "COPY (SELECT i AS v, i * 7919 % 1000000 AS k, md5(i::VARCHAR) || md5((-i)::VARCHAR) AS noise FROM range(1200000) "
    "t(i)) TO '@/large.parquet' (COMPRESSION uncompressed, ROW_GROUP_SIZE 100000)",
    "COPY (SELECT i AS id, i + 500000 AS late, i % 50 AS few, (i % 5000 = 0)::INTEGER AS rare, (i < 600000)::INTEGER AS early, 0 AS never, 1 AS always, "
    "CASE WHEN i % 3 > 0 THEN i % 40 END AS holes FROM range(1000000) t(i)) TO '@/small.parquet' (ROW_GROUP_SIZE "
    "100000)"};

static api_case *opened;
static oracle *plain;

/* `sql` with the case's directory for each @; released with free(). */
static char *text(const char *sql) {
  enum { ROOM = 4096 };
  char *out = calloc(1, ROOM);
  size_t n = 0;
  assert_non_null(out);
  for (; *sql != '\0' && n + sizeof opened->dir < ROOM; sql++) {
    if (*sql == '@') {
      n += (size_t)snprintf(out + n, ROOM - n, "%s", opened->dir);
    } else {
      out[n++] = *sql;
    }
  }
  return out;
}

static void run_plain(const char *sql) {
  char *own = text(sql);
  assert_null(oracle_run(plain, own));
  free(own);
}

static int open_all(void **state) {
  if (api_case_open_two_slots(state) != 0) {
    return 1;
  }
  opened = *state;
  plain = oracle_open();
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    run_plain(files[i]);
  }
  return 0;
}

static int close_all(void **state) {
  oracle_close(plain);
  return api_case_close(state);
}

/* The only row of the query, as single-node DuckDB gives it. */
static char *expected_row(const char *sql) {
  oracle_rows rows = {0};
  char *out = calloc(1, 512);
  size_t n = 0;
  assert_non_null(out);
  assert_null(oracle_query(plain, sql, 1, &rows));
  assert_int_equal(rows.n_rows, 1);
  for (size_t i = 0; i < rows.n_columns; i++) {
    const char *cell = rows.cells[i].text == NULL ? "NULL" : rows.cells[i].text;
    n += (size_t)snprintf(out + n, 512 - n, "%s%s", i == 0 ? "" : "|", cell);
  }
  snprintf(out + n, 512 - n, "\n");
  oracle_rows_free(&rows);
  return out;
}

/* What a query did. */
typedef struct did {
  uint64_t largest; /* rows that a stage over the larger file wrote */
  uint32_t stages, tasks;
  char *plan; /* the text of EXPLAIN ANALYZE; hf_text_free */
} did;

static void add_stage(void *context, const hf_stage_profile *stage) {
  did *d = context;
  bool is_large = stage->amounts.source_bytes > (uint64_t)50 << 20;
  d->largest = is_large && stage->amounts.rows > d->largest ? stage->amounts.rows : d->largest;
  d->stages += stage->amounts.run_us > 0 ? 1 : 0;
  d->tasks += stage->amounts.run_us > 0 ? stage->tasks : 0;
}

/* Runs it, and expects the row that DuckDB gives. */
static did ran(const char *sql) {
  did d = {0};
  char whole[1024];
  snprintf(whole, sizeof whole, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (%s)", sql);
  char *own = text(whole), *expected = expected_row(own);
  hf_df *df = api_sql(opened, own);
  hf_breakdown *breakdown = NULL;
  struct ArrowArrayStream stream;
  api_expect_df(opened, df, expected);
  assert_int_equal(hf_df_collect(df, &(hf_action_options){.breakdown = &breakdown}, &stream, &opened->error),
                   HF_OK);
  stream.release(&stream);
  hf_breakdown_stages(breakdown, add_stage, &d);
  hf_breakdown_free(breakdown);
  assert_int_equal(hf_df_explain_analyze(df, NULL, &d.plan, &opened->error), HF_OK);
  hf_df_free(df);
  free(own);
  free(expected);
  return d;
}

static void assert_has(const did *d, const char *words) {
  if (strstr(d->plan, words) == NULL) {
    fail_msg("no \"%s\" in\n%s", words, d->plan);
  }
}

#define JOIN "FROM '@/large.parquet' JOIN '@/small.parquet' ON "

static void adaptive_side_that_turns_out_small_is_broadcast(void **state) {
  (void)state;
  did d = ran("SELECT count(*), sum(v), sum(id) " JOIN "k = id WHERE rare <> 0");
  assert_has(&d, "less than was guessed: the rest is planned again");
  assert_has(&d, "broadcast join");
  assert_int_equal(d.largest, 2); /* of its partial aggregates: it was not moved */
  assert_int_equal(d.stages, 3);
  hf_text_free(d.plan);
}

static void adaptive_side_that_turns_out_empty_is_broadcast(void **state) {
  (void)state;
  did d = ran("SELECT count(*), sum(v), sum(id) " JOIN "k = id WHERE never <> 0");
  assert_has(&d, "it gave 0 rows");
  assert_int_equal(d.largest, 2);
  hf_text_free(d.plan);
}

static void adaptive_side_of_few_keys_filters_the_other(void **state) {
  (void)state;
  did d = ran("SELECT count(*), sum(v), sum(id) " JOIN "k = few WHERE always <> 0");
  assert_has(&d, "with few keys: the rest is planned again");
  assert_has(&d, "hash join");
  assert_in_range(d.largest, 50, 70); /* those of 50 keys */
  hf_text_free(d.plan);
}

static void adaptive_side_of_keys_close_together_filters_the_other(void **state) {
  (void)state;
  did d = ran("SELECT count(*), sum(v), sum(id) " JOIN "k = id WHERE early <> 0");
  assert_has(&d, "with keys close together: the rest is planned again");
  assert_has(&d, "only rows with keys that stage 1 has, ");
  assert_in_range(d.largest, LARGE_ROWS / 10 * 6 - 1000, LARGE_ROWS / 10 * 6 + 1000);
  hf_text_free(d.plan);
}

/* NULLs in the keys are no values. */
static void adaptive_side_with_nulls_filters_by_the_other_values(void **state) {
  (void)state;
  did d = ran("SELECT count(*), sum(v), sum(id) " JOIN "k = holes WHERE always <> 0");
  assert_has(&d, "with few keys");
  assert_in_range(d.largest, 40, 60);
  hf_text_free(d.plan);
}

/* Its rows without a match get out: none may be left out. */
static void adaptive_outer_side_is_not_filtered(void **state) {
  (void)state;
  did d = ran(
      "SELECT count(*), count(s.id), sum(v), sum(id) FROM '@/large.parquet' LEFT JOIN (FROM '@/small.parquet' "
      "WHERE always <> 0) s ON k = late");
  hf_text_free(d.plan);
  d = ran(
      "SELECT count(*), sum(v) FROM '@/large.parquet' WHERE k NOT IN (SELECT late FROM '@/small.parquet' WHERE "
      "always <> 0)");
  hf_text_free(d.plan);
  d = ran(
      "SELECT count(*), sum(v) FROM '@/large.parquet' ANTI JOIN (FROM '@/small.parquet' WHERE always <> 0) ON k "
      "= late");
  hf_text_free(d.plan);
}

static void adaptive_choice_is_told_by_explain(void **state) {
  (void)state;
  char *sql = text("SELECT count(*), sum(v), sum(id) " JOIN "k = id WHERE rare <> 0"), *plan = NULL;
  hf_df *df = api_sql(opened, sql);
  assert_int_equal(hf_df_explain(df, &plan, &opened->error), HF_OK);
  assert_non_null(strstr(plan, "  after stage 1: "));
  hf_text_free(plan);
  hf_df_free(df);
  free(sql);
}

static void adaptive_fill_is_planned_again_and_read_alike(void **state) {
  (void)state;
  char *sql = text("SELECT k, v, id " JOIN "k = id WHERE rare <> 0");
  hf_df *df = api_sql(opened, sql), *held = api_cache(opened, df);
  hf_breakdown *breakdown = NULL;
  struct ArrowArrayStream stream;
  assert_int_equal(
      hf_df_collect(held, &(hf_action_options){.breakdown = &breakdown}, &stream, &opened->error), HF_OK);
  stream.release(&stream);
  char *json = NULL;
  assert_int_equal(hf_breakdown_json(breakdown, &json, &opened->error), HF_OK);
  assert_non_null(strstr(json, "the rest is planned again"));
  hf_text_free(json);
  hf_breakdown_free(breakdown);
  uint64_t rows = api_storage(opened, held).rows;
  assert_int_equal(api_count(opened, held, NULL), rows);
  assert_int_equal(api_count(opened, df, NULL), rows);
  assert_int_equal(hf_df_unpersist(held, true, NULL), HF_OK);
  hf_df_free(held);
  hf_df_free(df);
  free(sql);
}

static void adaptive_partitions_of_few_bytes_are_one_task(void **state) {
  (void)state;
  did d =
      ran("SELECT sum(g * n) FROM (SELECT v % 20000 AS g, count(*) AS n FROM '@/large.parquet' GROUP BY g)");
  assert_has(&d, "2 partitions in 1 task: ");
  assert_int_equal(d.tasks, d.stages + 1);
  hf_text_free(d.plan);
  d = ran(
      "SELECT sum(g * n) FROM (SELECT v % 20000 AS g, count(*) AS n FROM '@/large.parquet' WHERE v < 0 GROUP BY g)");
  assert_has(&d, "2 partitions in 1 task: 0 bytes");
  hf_text_free(d.plan);
  d = ran("SELECT sum(g * n) FROM (SELECT v AS g, count(*) AS n FROM '@/large.parquet' GROUP BY g)");
  assert_null(strstr(d.plan, " partitions in "));
  hf_text_free(d.plan);
}

/* A CTE whose readers rely on who has which rows: each task joins what it has. */
static void adaptive_partitions_that_readers_rely_on_stay(void **state) {
  (void)state;
  did d = ran(
      "WITH c AS MATERIALIZED (SELECT v % 20000 AS g, count(*) AS n, sum(v) AS s FROM '@/large.parquet' GROUP BY "
      "g) SELECT count(*), sum(a.n * b.n), sum(a.s) FROM c a JOIN c b ON a.g = b.g WHERE a.n > 0 AND b.s > 5");
  hf_text_free(d.plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adaptive_side_that_turns_out_small_is_broadcast),
      cmocka_unit_test(adaptive_side_that_turns_out_empty_is_broadcast),
      cmocka_unit_test(adaptive_side_of_few_keys_filters_the_other),
      cmocka_unit_test(adaptive_side_of_keys_close_together_filters_the_other),
      cmocka_unit_test(adaptive_side_with_nulls_filters_by_the_other_values),
      cmocka_unit_test(adaptive_outer_side_is_not_filtered),
      cmocka_unit_test(adaptive_choice_is_told_by_explain),
      cmocka_unit_test(adaptive_fill_is_planned_again_and_read_alike),
      cmocka_unit_test(adaptive_partitions_of_few_bytes_are_one_task),
      cmocka_unit_test(adaptive_partitions_that_readers_rely_on_stay),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: how the sink is called, what is counted, what is left behind. */
#include "store.h"

#include "base/thread.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

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

static hf_status run(rig *r, store *s, const char *sql, bool ordered, uint32_t partitions, hf_error *error) {
  engine_task task = store_task(s, sql);
  engine_task_stats stats;
  task.ordered = ordered;
  task.partitions = partitions;
  hf_status status = engine_run_task(r->slot, &task, &stats, error);
  assert_int_equal(s->opened, s->discarded);
  rig_check_slot_dir(r);
  return status;
}

/* Reads what a task wrote, by a query over hf_blocks('x'). */
static char *read_back(rig *r, store *s, const char *of, const char *sql, size_t n_columns) {
  arena *a = arena_new();
  schema columns;
  assert_ok(engine_describe(r->slot, of, a, &columns, ok_error));
  engine_input input = store_input(s, "x", &columns);
  char *text = rig_render(r->slot, sql, n_columns, &input, 1);
  arena_free(a);
  return text;
}

static void task_in_parallel_gives_each_row_once(void **state) {
  static const char sql[] = "SELECT range AS n FROM range(1000000)";
  rig *r = *state;
  store s;
  store_init(&s);
  assert_ok(run(r, &s, sql, false, 1, ok_error));
  assert_int_equal(s.rows, 1000000);
  assert_true(s.opened >= 1);
  assert_int_equal(s.closed, s.opened);
  char *text = read_back(r, &s, sql, "SELECT count(*), sum(c0), count(DISTINCT c0) FROM hf_blocks('x')", 3);
  assert_string_equal(text, "1000000|499999500000|1000000\n");
  free(text);
  store_reset(&s);
}

static void task_ordered_writes_in_order_from_one_state(void **state) {
  static const char sql[] = "SELECT range AS n FROM range(300000) ORDER BY n % 1000 DESC, n";
  rig *r = *state;
  store s;
  store_init(&s);
  s.threads = 1;
  assert_ok(run(r, &s, sql, true, 1, ok_error));
  assert_int_equal(s.opened, 1);
  char *text = read_back(r, &s, sql,
                         "SELECT count(*) FROM (SELECT c0, lag(c0) OVER () AS b FROM hf_blocks('x')) "
                         "WHERE c0 % 1000 > b % 1000 OR (c0 % 1000 = b % 1000 AND c0 < b)",
                         1);
  assert_string_equal(text, "0\n");
  free(text);
  store_reset(&s);
}

static void task_without_rows_opens_and_closes_once(void **state) {
  for (int ordered = 0; ordered < 2; ordered++) {
    store s;
    store_init(&s);
    assert_ok(run(*state, &s, "SELECT range AS a, 'x' AS b FROM range(10) WHERE range > 20", ordered == 1, 1,
                  ok_error));
    assert_int_equal(s.opened, 1);
    assert_int_equal(s.closed, 1);
    assert_int_equal(s.appended, 0);
    assert_int_equal(s.block_schema.n_children, 2);
    assert_string_equal(s.block_schema.children[1]->name, "c1");
    store_reset(&s);
  }
}

static void task_with_partitions_gives_them_beside_the_rows(void **state) {
  static const char sql[] = "SELECT range AS n, 'v' AS v, (range % 7)::UINTEGER FROM range(70000)";
  rig *r = *state;
  store s;
  store_init(&s);
  assert_ok(run(r, &s, sql, false, 7, ok_error));
  assert_int_equal(s.block_schema.n_children, 2);
  for (int i = 0; i < 7; i++) {
    assert_int_equal(s.partition_rows[i], 10000);
  }
  char *text = read_back(r, &s, "SELECT 1::BIGINT, ''", "SELECT sum(c0), min(c1) FROM hf_blocks('x')", 2);
  assert_string_equal(text, "2449965000|v\n");
  free(text);
  store_reset(&s);
}

static void task_with_a_bad_partition_column_fails(void **state) {
  static const char *const texts[] = {
      "SELECT 1, 1::INTEGER",
      "SELECT 1, NULL::UINTEGER",
      "SELECT 1, 2::UINTEGER",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    store s;
    store_init(&s);
    hf_error error = {0};
    assert_int_equal(run(*state, &s, texts[i], false, 2, &error), HF_E_INTERNAL);
    assert_non_null(strstr(error.message, "partition"));
    hf_error_reset(&error);
    store_reset(&s);
  }
}

static void sink_that_fails_ends_the_task_with_its_error(void **state) {
  for (int ordered = 0; ordered < 2; ordered++) {
    store s;
    store_init(&s);
    s.fail_at = 5;
    hf_error error = {0};
    assert_int_equal(run(*state, &s, "SELECT * FROM range(1000000)", ordered == 1, 1, &error),
                     HF_E_DISK_FULL);
    assert_string_equal(error.message, "the test's disk is full");
    assert_int_equal(error.position, 77);
    assert_int_equal(error.error_class, HF_CLASS_RESOURCE);
    hf_error_reset(&error);
    store_reset(&s);
    store_init(&s); /* the next one is not touched by it */
    assert_ok(run(*state, &s, "SELECT 1", ordered == 1, 1, ok_error));
    store_reset(&s);
  }
}

static void text_that_is_not_one_query_runs_nothing(void **state) {
  static const char *const texts[] = {
      "SELECT 1; SELECT 2",
      "SELECT 1) TO '/tmp/x' (FORMAT csv); --",
      "SELECT 1) TO '/tmp/x' (FORMAT csv) --",
      "DROP TABLE x",
      "SELECT 1 --\n)",
      "",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    store s;
    store_init(&s);
    hf_error error = {0};
    hf_status status = run(*state, &s, texts[i], false, 1, &error);
    assert_true(status == HF_E_SYNTAX || status == HF_E_STATEMENT_REFUSED);
    assert_int_equal(s.opened, 0);
    hf_error_reset(&error);
    store_reset(&s);
  }
}

static void text_that_ends_with_a_comment_runs(void **state) {
  store s;
  store_init(&s);
  assert_ok(run(*state, &s, "SELECT 1 -- one", false, 1, ok_error));
  assert_int_equal(s.rows, 1);
  store_reset(&s);
}

/* ------------------------------------------------------------------ statistics */

static void rows_of_files_are_counted_and_those_of_blocks_are_not(void **state) {
  rig *r = *state;
  arena *a = arena_new();
  rig_write(r, "a.csv", "n,t\n1,x\n2,y\n3,z\n", a);
  rig_write(r, "b.json", "{\"n\": 1}\n{\"n\": 2}\n", a);
  store s, t;
  store_init(&s);
  char *sql = arena_printf(
      a, "SELECT a.n, b.n FROM read_csv('%s/a.csv') a, read_json('%s/b.json') b, range(2)", r->dir, r->dir);
  engine_task_stats stats = store_fill(&s, r->slot, sql);
  assert_int_equal(stats.source_rows, 5);
  assert_int_equal(s.rows, 12);
  schema columns;
  assert_ok(engine_describe(r->slot, "SELECT 1::BIGINT, 2::BIGINT", a, &columns, ok_error));
  store_init(&t);
  engine_input input = store_input(&s, "x", &columns);
  engine_task task = store_task(&t, "SELECT c0, count(*) FROM hf_blocks('x'), range(3) GROUP BY c0");
  task.inputs = &input;
  task.n_inputs = 1;
  assert_ok(engine_run_task(r->slot, &task, &stats, ok_error));
  assert_int_equal(stats.source_rows, 0);
  assert_true(stats.peak_memory_bytes > 0);
  store_reset(&t);
  store_init(&t);
  stats = store_fill(&t, r->slot, arena_printf(a, "SELECT * FROM read_csv('%s/a.csv') WHERE n > 7", r->dir));
  assert_true(stats.source_rows > 0);
  store_reset(&t);
  store_reset(&s);
  arena_free(a);
}

/* Writes range(rows) as Parquet, as if it had been there for so many seconds: footers of new files are not kept. */
static const char *write_parquet(rig *r, const char *name, int rows, int seconds, arena *a) {
  const char *path = arena_printf(a, "%s/%s", r->dir, name);
  char *sql = arena_printf(a, "COPY (FROM range(%d)) TO '%s' (FORMAT parquet)", rows, path);
  assert_ok(engine_execute(r->slot, sql, ok_error));
  struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  return path;
}

static void file_that_is_replaced_is_read_anew(void **state) {
  static const int rows[] = {1000, 3, 5000};
  rig *r = *state;
  arena *a = arena_new();
  for (int i = 0; i < 3; i++) {
    const char *made = write_parquet(r, "made.parquet", rows[i], 1000 - i, a);
    char *path = arena_printf(a, "%s/a.parquet", r->dir);
    assert_int_equal(rename(made, path), 0);
    for (int again = 0; again < 2; again++) {
      store s;
      store_init(&s);
      store_fill(&s, r->slot, arena_printf(a, "SELECT * FROM read_parquet('%s')", path));
      assert_int_equal(s.rows, rows[i]);
      store_reset(&s);
    }
  }
  arena_free(a);
}

/* ----------------------------------------------------------------------- sizes */

static void texts_of_a_hundred_megabytes_come_back(void **state) {
  static const char sql[] = "SELECT repeat(chr((97 + range)::INTEGER), 4000000) AS t FROM range(25)";
  rig *r = *state;
  store s;
  store_init(&s);
  assert_ok(run(r, &s, sql, true, 1, ok_error));
  char *text = read_back(
      r, &s, sql,
      "SELECT count(*), sum(length(c0)), sum((c0 = repeat(c0[1], 4000000))::INTEGER), string_agg(c0[1], '') "
      "FROM hf_blocks('x')",
      4);
  assert_string_equal(text, "25|100000000|25|abcdefghijklmnopqrstuvwxy\n");
  free(text);
  store_reset(&s);
}

/* --------------------------------------------------------------------- engines */

static void *fill_many(void *context) {
  rig *r = context;
  for (int i = 0; i < 5; i++) {
    store s;
    store_init(&s);
    assert_ok(run(r, &s, "SELECT range AS n, random() AS x FROM range(200000)", false, 1, ok_error));
    assert_int_equal(s.rows, 200000);
    char *text = read_back(r, &s, "SELECT 1::BIGINT, random()", "SELECT sum(c0) FROM hf_blocks('x')", 1);
    assert_string_equal(text, "19999900000\n");
    free(text);
    store_reset(&s);
  }
  return NULL;
}

static void engines_side_by_side_keep_apart(void **state) {
  (void)state;
  rig rigs[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    rig_open(&rigs[i], 2);
    assert_ok(thread_start(&threads[i], 0, fill_many, &rigs[i], "test", ok_error));
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    rig_close(&rigs[i]);
  }
}

static void task_leaves_nothing_on_its_connection(void **state) {
  store s;
  rig *r = *state;
  char *texts[2];
  for (int i = 0; i < 2; i++) { /* a seed of one task is not that of the next */
    store_init(&s);
    assert_ok(run(r, &s, "SELECT setseed(0.5)", true, 1, ok_error));
    store_reset(&s);
    store_init(&s);
    assert_ok(run(r, &s, "SELECT random() AS x", true, 1, ok_error));
    texts[i] = read_back(r, &s, "SELECT random()", "SELECT c0 FROM hf_blocks('x')", 1);
    store_reset(&s);
  }
  assert_string_not_equal(texts[0], texts[1]);
  free(texts[0]);
  free(texts[1]);
}

static void engine_of_another_kind_runs_no_tasks(void **state) {
  (void)state;
  engine *planner = NULL;
  engine_options options = {.kind = ENGINE_PLANNER};
  assert_ok(engine_open(&options, &planner, ok_error));
  store s;
  store_init(&s);
  engine_task task = store_task(&s, "SELECT 1");
  engine_task_stats stats;
  hf_error error = {0};
  assert_int_equal(engine_run_task(planner, &task, &stats, &error), HF_E_INTERNAL);
  hf_error_reset(&error);
  store_reset(&s);
  engine_close(planner);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(task_in_parallel_gives_each_row_once),
      CASE(task_ordered_writes_in_order_from_one_state),
      CASE(task_without_rows_opens_and_closes_once),
      CASE(task_with_partitions_gives_them_beside_the_rows),
      CASE(task_with_a_bad_partition_column_fails),
      CASE(sink_that_fails_ends_the_task_with_its_error),
      CASE(text_that_is_not_one_query_runs_nothing),
      CASE(text_that_ends_with_a_comment_runs),
      CASE(rows_of_files_are_counted_and_those_of_blocks_are_not),
      CASE(file_that_is_replaced_is_read_anew),
      CASE(texts_of_a_hundred_megabytes_come_back),
      CASE(task_leaves_nothing_on_its_connection),
      cmocka_unit_test(engines_side_by_side_keep_apart),
      cmocka_unit_test(engine_of_another_kind_runs_no_tasks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writing Parquet and CSV files: what DuckDB itself would write, all of it or nothing, where it is allowed. */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `text` with the case's directory for each @; valid until the fourth call from now. */
static const char *at(const api_case *c, const char *text) {
  static char out[4][2048];
  static unsigned next;
  char *to = out[next++ % 4];
  size_t used = 0;
  to[0] = '\0';
  for (; *text != '\0'; text++) {
    used += (size_t)snprintf(to + used, sizeof out[0] - used, "%.*s", *text == '@' ? 64 : 1,
                             *text == '@' ? c->dir : text);
  }
  return to;
}

static void expect(api_case *c, hf_status status, hf_status wanted) {
  if (status != wanted) {
    fail_msg("%s instead of %s: %s (%s)", hf_status_name(status), hf_status_name(wanted),
             c->error.message == NULL ? "" : c->error.message, c->error.cause == NULL ? "" : c->error.cause);
  }
}

static hf_status write_parquet(api_case *c, const char *sql, const char *path, bool overwrite) {
  hf_df *df = api_sql(c, at(c, sql));
  const hf_write_options options = {.overwrite = overwrite};
  hf_status status = hf_df_write_parquet(df, at(c, path), &options, NULL, &c->error);
  hf_df_free(df);
  return status;
}

static bool is_there(const api_case *c, const char *path) {
  return path_exists(at(c, path));
}

/* Rows of two queries of the oracle, and their types and order, are the same. */
static void expect_same(const api_case *c, const char *one, const char *other) {
  oracle *plain = oracle_open();
  oracle_rows a, b;
  char *error = oracle_query(plain, at(c, one), 100000, &a);
  assert_null(error);
  error = oracle_query(plain, at(c, other), 100000, &b);
  assert_null(error);
  if (oracle_compare(&a, &b) != ORACLE_SAME) {
    fail_msg("%s", oracle_difference(&a, &b));
  }
  oracle_rows_free(&a);
  oracle_rows_free(&b);
  oracle_close(plain);
}

static void run_plain(const api_case *c, const char *sql) {
  oracle *plain = oracle_open();
  char *error = oracle_run(plain, at(c, sql));
  if (error != NULL) {
    fail_msg("%s", error);
  }
  oracle_close(plain);
}

/* Names in the case's directory: directories that a writer left count. */
static unsigned entries(const api_case *c) {
  unsigned n = 0;
  DIR *dir = opendir(c->dir);
  assert_non_null(dir);
  while (readdir(dir) != NULL) {
    n++;
  }
  closedir(dir);
  return n;
}

static char *contents(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *bytes = malloc(1 << 20);
  *length = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

/* ------------------------------------------------------------------------ what */

static const char ODD_TYPES[] =
    "SELECT 1 AS a, 2 AS a, NULL AS n, 'x'::ENUM('x', 'y') AS e, [{'k': 1.50}] AS l, DATE '2024-02-29' AS d, "
    "TIMESTAMPTZ '2024-01-01 00:00:00+00' AS z, INTERVAL 3 MONTH AS i, 170141183460469231731687303715884105727 AS h";

static void parquet_holds_what_duckdb_writes(void **state) {
  api_case *c = *state;
  static const char *const queries[] = {
      "SELECT i AS \"odd \"\"name\", 'v' || i % 7 AS \"größe\", i / 3 AS \"a.b\" FROM range(5000) t(i) ORDER BY i DESC",
      ODD_TYPES, "SELECT 1 AS x WHERE false"};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    char plain[1024];
    expect(c, write_parquet(c, queries[i], "@/ours.parquet", true), HF_OK);
    snprintf(plain, sizeof plain, "COPY (%s) TO '@/plain.parquet'", queries[i]);
    run_plain(c, plain);
    expect_same(c, "FROM '@/ours.parquet'", "FROM '@/plain.parquet'");
    expect_same(c, "DESCRIBE FROM '@/ours.parquet'", "DESCRIBE FROM '@/plain.parquet'");
  }
}

static void csv_is_byte_by_byte_what_duckdb_writes(void **state) {
  api_case *c = *state;
  static const char query[] =
      "SELECT i AS n, CASE WHEN i % 3 = 0 THEN NULL ELSE 'it''s \"' || i || '\";,' END AS "
      "\"a b\", DATE '2024-01-01' + i::INTEGER AS d FROM range(3000) t(i) ORDER BY n";
  const hf_setting settings[] = {
      {"delim", ";"}, {"header", "false"}, {"nullstr", "none"}, {"dateformat", "%d.%m.%Y"}};
  const hf_write_options options[] = {{0}, {.format_options = settings, .n_format_options = 4}};
  static const char *const plain[] = {"", ", DELIM ';', HEADER false, NULLSTR 'none', DATEFORMAT '%d.%m.%Y'"};
  for (size_t i = 0; i < 2; i++) {
    hf_df *df = api_sql(c, query);
    char path[128], sql[1024];
    snprintf(path, sizeof path, "%s/ours%zu.csv", c->dir, i);
    expect(c, hf_df_write_csv(df, path, &options[i], NULL, &c->error), HF_OK);
    snprintf(sql, sizeof sql, "COPY (%s) TO '@/plain.csv' (FORMAT csv%s)", query, plain[i]);
    run_plain(c, sql);
    size_t ours_length, plain_length;
    char *ours = contents(path, &ours_length), *theirs = contents(at(c, "@/plain.csv"), &plain_length);
    assert_int_equal(ours_length, plain_length);
    assert_memory_equal(ours, theirs, ours_length);
    free(ours);
    free(theirs);
    hf_df_free(df);
  }
}

static void parquet_options_are_used(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i FROM range(10000) t(i)");
  const hf_setting settings[] = {
      {"compression", "zstd"}, {"ROW_GROUP_SIZE", "2048"}, {"compression_level", "3"}};
  const hf_write_options options = {.format_options = settings, .n_format_options = 3};
  expect(c, hf_df_write_parquet(df, at(c, "@/z.parquet"), &options, NULL, &c->error), HF_OK);
  hf_df_free(df);
  expect_same(
      c,
      "SELECT DISTINCT compression, (SELECT num_row_groups FROM parquet_file_metadata('@/z.parquet')) "
      "FROM parquet_metadata('@/z.parquet')",
      "SELECT 'ZSTD', 5::BIGINT");
}

static void tasks_write_in_order(void **state) {
  api_case *c = *state;
  run_plain(
      c,
      "COPY (SELECT i AS x, 'n' || i % 3 AS k FROM range(10000) t(i)) TO '@/p.parquet' (ROW_GROUP_SIZE 2048)");
  api_run(c, "SET tasks = 3");
  expect(c, write_parquet(c, "SELECT k, x FROM '@/p.parquet' ORDER BY k, x DESC", "@/o.parquet", false),
         HF_OK);
  expect_same(c, "FROM '@/o.parquet'", "SELECT k, x FROM '@/p.parquet' ORDER BY k, x DESC");
  expect(c, write_parquet(c, "FROM '@/p.parquet'", "@/o.parquet", true), HF_OK);
  expect_same(c, "FROM '@/o.parquet'", "FROM '@/p.parquet'");
}

/* --------------------------------------------------------------- all or nothing */

static void file_that_is_there_needs_overwrite(void **state) {
  api_case *c = *state;
  expect(c, write_parquet(c, "SELECT 1 AS x", "@/f.parquet", false), HF_OK);
  expect(c, write_parquet(c, "SELECT 2 AS x", "@/f.parquet", false), HF_E_NAME_EXISTS);
  assert_non_null(strstr(c->error.hint, "overwrite"));
  expect_same(c, "FROM '@/f.parquet'", "SELECT 1 AS x");
  expect(c, write_parquet(c, "SELECT 2 AS x", "@/f.parquet", true), HF_OK);
  expect_same(c, "FROM '@/f.parquet'", "SELECT 2 AS x");
  struct stat facts;
  assert_int_equal(stat(at(c, "@/f.parquet"), &facts), 0);
  assert_int_equal(facts.st_mode & 0444, 0444 & ~umask(022));
}

static void query_may_read_the_file_that_it_replaces(void **state) {
  api_case *c = *state;
  expect(c, write_parquet(c, "SELECT 1 AS x", "@/f.parquet", false), HF_OK);
  for (int i = 0; i < 3; i++) {
    expect(c, write_parquet(c, "FROM '@/f.parquet' UNION ALL FROM '@/f.parquet'", "@/f.parquet", true),
           HF_OK);
  }
  expect_same(c, "SELECT count(*) FROM '@/f.parquet'", "SELECT 8::BIGINT");
}

static void failed_write_leaves_what_was_there(void **state) {
  api_case *c = *state;
  expect(c, write_parquet(c, "SELECT 1 AS x", "@/f.parquet", false), HF_OK);
  unsigned before = entries(c);
  expect(c,
         write_parquet(c, "SELECT 1 // (i - 5000)::INTEGER, error('no') FROM range(10000) t(i)",
                       "@/f.parquet", true),
         HF_E_QUERY);
  const hf_setting wrong[] = {{"compression", "no such"}};
  const hf_write_options options = {.overwrite = true, .format_options = wrong, .n_format_options = 1};
  hf_df *df = api_sql(c, "SELECT 2 AS x");
  assert_int_not_equal(hf_df_write_parquet(df, at(c, "@/f.parquet"), &options, NULL, &c->error), HF_OK);
  hf_df_free(df);
  expect(c, write_parquet(c, "SELECT * FROM test_all_types()", "@/g.parquet", true), HF_OK);
  assert_int_equal(entries(c), before + 1);
  expect_same(c, "FROM '@/f.parquet'", "SELECT 1 AS x");
}

static bool stop(void *context, double fraction, uint64_t rows) {
  (void)fraction;
  (void)rows;
  unsigned *calls = context;
  return ++*calls < 2;
}

static void cancelled_write_leaves_nothing(void **state) {
  api_case *c = *state;
  unsigned before = entries(c), calls = 0;
  hf_df *df = api_sql(c, "SELECT i, md5(i::VARCHAR) FROM range(20000000) t(i)");
  hf_cancel *cancel = hf_cancel_new();
  hf_cancel_signal(cancel);
  hf_action_options action = {.cancel = cancel};
  expect(c, hf_df_write_csv(df, at(c, "@/f.csv"), NULL, &action, &c->error), HF_E_CANCELLED);
  hf_cancel_free(cancel);
  action = (hf_action_options){.progress = stop, .progress_context = &calls};
  expect(c, hf_df_write_csv(df, at(c, "@/f.csv"), NULL, &action, &c->error), HF_E_CANCELLED);
  hf_df_free(df);
  assert_int_equal(entries(c), before);
  assert_false(is_there(c, "@/f.csv"));
}

typedef struct rival {
  api_case *c;
  hf_df *df;
  hf_status status;
} rival;

static void *write_once(void *context) {
  rival *r = context;
  char path[128];
  snprintf(path, sizeof path, "%s/one.parquet", r->c->dir);
  r->status = hf_df_write_parquet(r->df, path, NULL, NULL, NULL);
  return NULL;
}

static void one_of_two_writers_gets_the_name(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS x");
  rival rivals[4];
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) {
    rivals[i] = (rival){c, df, HF_OK};
    assert_int_equal(pthread_create(&threads[i], NULL, write_once, &rivals[i]), 0);
  }
  unsigned written = 0;
  for (size_t i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    written += rivals[i].status == HF_OK;
    assert_true(rivals[i].status == HF_OK || rivals[i].status == HF_E_NAME_EXISTS);
  }
  assert_int_equal(written, 1);
  expect_same(c, "FROM '@/one.parquet'", "SELECT 1 AS x");
  hf_df_free(df);
}

/* ---------------------------------------------------------------------- refused */

static void places_are_checked(void **state) {
  api_case *c = *state;
  static const struct {
    const char *path;
    hf_status code;
  } wrong[] = {{"@/none/f.parquet", HF_E_FILE_NOT_FOUND},
               {"@", HF_E_FILE_FORMAT},
               {"@/", HF_E_INVALID_ARGUMENT},
               {"", HF_E_INVALID_ARGUMENT},
               {"@/..", HF_E_INVALID_ARGUMENT},
               {"@/f\xff.parquet", HF_E_INVALID_ARGUMENT},
               {"s3://bucket/f.parquet", HF_E_UNSUPPORTED},
               {"@/work/f.parquet", HF_E_PATH_REFUSED},
               {"/dev/null/f", HF_E_FILE_NOT_FOUND}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    expect(c, write_parquet(c, "SELECT 1 AS x", wrong[i].path, true), wrong[i].code);
  }
  hf_df *df = api_sql(c, "SELECT 1 AS x");
  assert_int_equal(hf_df_write_parquet(NULL, "f", NULL, NULL, &c->error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_write_csv(df, NULL, NULL, NULL, &c->error), HF_E_INVALID_ARGUMENT);
  hf_df_free(df);
  df = api_sql(c, "SET tasks = 1");
  assert_int_equal(hf_df_write_csv(df, at(c, "@/f"), NULL, NULL, &c->error), HF_E_INVALID_ARGUMENT);
  hf_df_free(df);
}

static void options_are_checked(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT 1 AS x");
  static const hf_setting wrong[] = {{"partition_by", "x"}, {"delim", ";"},          {NULL, "x"},
                                     {"compression", NULL}, {"compression", "\xff"}, {") TO 'x' (", "y"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const hf_write_options options = {.format_options = &wrong[i], .n_format_options = 1};
    expect(c, hf_df_write_parquet(df, at(c, "@/f.parquet"), &options, NULL, &c->error),
           HF_E_INVALID_ARGUMENT);
    assert_false(is_there(c, "@/f.parquet"));
  }
  const hf_setting odd[] = {{"nullstr", "') TO '/tmp/x"}};
  const hf_write_options smuggled = {.format_options = odd, .n_format_options = 1};
  expect(c, hf_df_write_csv(df, at(c, "@/odd.csv"), &smuggled, NULL, &c->error), HF_OK);
  const hf_write_options missing = {.n_format_options = 1};
  expect(c, hf_df_write_csv(df, at(c, "@/f.csv"), &missing, NULL, &c->error), HF_E_INVALID_ARGUMENT);
  hf_df_free(df);
}

static void allowed_paths_hold_for_writing(void **state) {
  api_case *c = *state;
  assert_int_equal(mkdir(at(c, "@/in"), 0700), 0);
  assert_int_equal(mkdir(at(c, "@/out"), 0700), 0);
  assert_int_equal(symlink(at(c, "@/out"), at(c, "@/in/link")), 0);
  assert_int_equal(symlink(at(c, "@/out/far.csv"), at(c, "@/in/far.csv")), 0);
  hf_session *narrow = NULL;
  const hf_setting settings[] = {
      {"allow_path", at(c, "@/in")}, {"work_dir", at(c, "@/narrow")}, {"threads", "1"}};
  expect(c, hf_session_open(NULL, settings, 3, &narrow, &c->error), HF_OK);
  hf_df *df = NULL;
  const hf_write_options overwrite = {.overwrite = true};
  expect(c, hf_session_sql(narrow, "SELECT 1 AS x", &df, &c->error), HF_OK);
  expect(c, hf_df_write_csv(df, at(c, "@/in/f.csv"), NULL, NULL, &c->error), HF_OK);
  expect(c, hf_df_write_csv(df, at(c, "@/out/f.csv"), NULL, NULL, &c->error), HF_E_PATH_REFUSED);
  expect(c, hf_df_write_csv(df, at(c, "@/in/../out/f.csv"), NULL, NULL, &c->error), HF_E_PATH_REFUSED);
  expect(c, hf_df_write_csv(df, at(c, "@/in/link/f.csv"), NULL, NULL, &c->error), HF_E_PATH_REFUSED);
  expect(c, hf_df_write_csv(df, at(c, "@/in/far.csv"), NULL, NULL, &c->error), HF_E_NAME_EXISTS);
  expect(c, hf_df_write_csv(df, at(c, "@/in/far.csv"), &overwrite, NULL, &c->error), HF_OK);
  assert_int_equal(files_below(at(c, "@/out")), 0); /* the link was replaced, not followed */
  hf_df_free(df);
  hf_session_close(narrow);
}

/* ------------------------------------------------------------------------- held */

static void write_reads_a_hold_back(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i % 10 AS k, count(*) AS n FROM range(1000) t(i) GROUP BY k ORDER BY k");
  hf_df *held = api_cache(c, query);
  hf_profile profile;
  hf_action_options action = {.profile = &profile};
  expect(c, hf_df_write_parquet(held, at(c, "@/a.parquet"), NULL, &action, &c->error), HF_OK);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(profile.result_rows, 10);
  expect(c, hf_df_write_parquet(held, at(c, "@/b.parquet"), NULL, &action, &c->error), HF_OK);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  expect_same(c, "FROM '@/a.parquet'", "FROM '@/b.parquet'");
  hf_df_free(held);
  hf_df_free(query);
}

static void write_over_a_source_drops_what_was_held_of_it(void **state) {
  api_case *c = *state;
  expect(c, write_parquet(c, "SELECT 1 AS x", "@/f.parquet", false), HF_OK);
  hf_df *query = api_sql(c, at(c, "SELECT sum(x)::BIGINT AS s FROM '@/f.parquet'"));
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "1\n");
  expect(c, write_parquet(c, "SELECT 40 + i AS x FROM range(2) t(i)", "@/f.parquet", true), HF_OK);
  hf_profile profile = api_expect_df(c, held, "81\n");
  assert_int_equal(profile.held_fills, 1);
  hf_df_free(held);
  hf_df_free(query);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(parquet_holds_what_duckdb_writes),
      CASE(csv_is_byte_by_byte_what_duckdb_writes),
      CASE(parquet_options_are_used),
      CASE(tasks_write_in_order),
      CASE(file_that_is_there_needs_overwrite),
      CASE(query_may_read_the_file_that_it_replaces),
      CASE(failed_write_leaves_what_was_there),
      CASE(cancelled_write_leaves_nothing),
      CASE(one_of_two_writers_gets_the_name),
      CASE(places_are_checked),
      CASE(options_are_checked),
      CASE(allowed_paths_hold_for_writing),
      CASE(write_reads_a_hold_back),
      CASE(write_over_a_source_drops_what_was_held_of_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

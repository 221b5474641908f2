/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of small Parquet files in directories of a hive layout: all are listed
 * and read once, keys have the type that all directories agree on, and what comes
 * later is seen.
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

#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORIES = 50, FILES_A_DIRECTORY = 100 };

static const char *text(const api_case *c, const char *sql) {
  static char out[1024];
  const char *at = strchr(sql, '@');
  assert_non_null(at);
  snprintf(out, sizeof out, "%.*s%s%s", (int)(at - sql), sql, c->dir, at + 1);
  return out;
}

/* Links @/one.parquet (x: 0, 1, 2) as so many files of @/many/day=<day>. */
static void make_directory(const api_case *c, const char *day, int files) {
  char seed[128], dir[128], path[192];
  snprintf(seed, sizeof seed, "%s/one.parquet", c->dir);
  snprintf(dir, sizeof dir, "%s/many", c->dir);
  mkdir(dir, 0755);
  snprintf(dir, sizeof dir, "%s/many/day=%s", c->dir, day);
  assert_int_equal(mkdir(dir, 0755), 0);
  for (int i = 0; i < files; i++) {
    snprintf(path, sizeof path, "%s/part-%04d.parquet", dir, i);
    assert_int_equal(link(seed, path), 0);
  }
}

static void make_files(const api_case *c, int files_a_directory) {
  oracle *plain = oracle_open();
  assert_null(oracle_run(plain, text(c, "COPY (SELECT i AS x FROM range(3) t(i)) TO '@/one.parquet'")));
  oracle_close(plain);
  for (int i = 0; i < DIRECTORIES; i++) {
    char day[16];
    snprintf(day, sizeof day, "%d", i);
    make_directory(c, day, files_a_directory);
  }
}

static void files_are_all_read_once(void **state) {
  api_case *c = *state;
  make_files(c, FILES_A_DIRECTORY);
  api_run(c, "SET tasks = 3");
  hf_df *df =
      api_sql(c, text(c, "SELECT count(*), sum(x)::BIGINT, sum(day)::BIGINT, count(DISTINCT day) FROM "
                         "'@/many/*/*.parquet'"));
  hf_profile profile = api_expect_df(c, df, "15000|15000|367500|50\n");
  assert_int_equal(profile.source_files, DIRECTORIES * FILES_A_DIRECTORY);
  assert_int_equal(profile.widest_tasks, 3);
  assert_string_equal(profile.fallback, "");
  char *plan = NULL;
  assert_int_equal(hf_df_explain(df, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "read_parquet 5,000 files, 15,000 rows (estimated)"));
  hf_text_free(plan);
  hf_df_free(df);
}

/* No file of the first directory tells that a key is no number. */
static void keys_have_the_type_of_all_directories(void **state) {
  api_case *c = *state;
  make_files(c, 2);
  api_expect(c, text(c, "SELECT DISTINCT typeof(day) FROM '@/many/*/*.parquet'"), "BIGINT\n");
  make_directory(c, "later", 1);
  api_expect(c, text(c, "SELECT DISTINCT typeof(day), count(*) FROM '@/many/*/*.parquet' GROUP BY 1"),
             "VARCHAR|303\n");
  api_expect(c, text(c, "SELECT count(*) FROM '@/many/*/*.parquet' WHERE day = 'later'"), "3\n");
}

/* Of very many digits, with a leading zero or a sign, as a date, empty: as DuckDB itself has it. */
static void keys_that_look_like_numbers_are_all_looked_at(void **state) {
  static const struct {
    const char *day, *type;
  } cases[] = {{"0007", "VARCHAR"}, {"12345678901234567890", "VARCHAR"},
               {"-3", "BIGINT"},    {"2024-02-29", "VARCHAR"},
               {"", "VARCHAR"},     {"1.5", "VARCHAR"}};
  api_case *c = *state;
  make_files(c, 2);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[192];
    oracle_rows rows;
    make_directory(c, cases[i].day, 1);
    oracle *plain = oracle_open();
    assert_null(oracle_query(
        plain, text(c, "SELECT DISTINCT typeof(day)::VARCHAR FROM read_parquet('@/many/*/*.parquet')"), 10,
        &rows));
    char expected[64];
    snprintf(expected, sizeof expected, "%s\n", rows.cells[0].text);
    api_expect(c, text(c, "SELECT DISTINCT typeof(day) FROM '@/many/*/*.parquet'"), expected);
    assert_string_equal(rows.cells[0].text, cases[i].type);
    oracle_rows_free(&rows);
    oracle_close(plain);
    snprintf(path, sizeof path, "%s/many/day=%s/part-0000.parquet", c->dir, cases[i].day);
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
  }
}

/* Of files and of directories; one that leads nowhere is no file. */
static void links_among_plain_files_are_followed(void **state) {
  api_case *c = *state;
  make_files(c, 2);
  char target[128], path[160];
  snprintf(target, sizeof target, "%s/many/day=7/part-0001.parquet", c->dir);
  snprintf(path, sizeof path, "%s/many/day=7/part-0050a.parquet", c->dir);
  assert_int_equal(symlink(target, path), 0);
  snprintf(target, sizeof target, "%s/many/day=8", c->dir);
  snprintf(path, sizeof path, "%s/many/day=08", c->dir);
  assert_int_equal(symlink(target, path), 0);
  api_expect(c, text(c, "SELECT count(*) FROM '@/many/*/*.parquet'"), "309\n");
  snprintf(path, sizeof path, "%s/many/day=9/broken.parquet", c->dir);
  assert_int_equal(symlink("/nowhere/at/all", path), 0);
  api_expect(c, text(c, "SELECT count(*) FROM '@/many/*/*.parquet'"), "309\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open_two_slots, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(files_are_all_read_once),
      CASE(keys_have_the_type_of_all_directories),
      CASE(keys_that_look_like_numbers_are_all_looked_at),
      CASE(links_among_plain_files_are_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

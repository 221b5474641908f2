/* SPDX-License-Identifier: Apache-2.0 */
/* A session on a state directory goes on at the next start: what survives, what does not, and what damage does. */
#include "support/state_case.h"

#include "base/file.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOTALS "SELECT k, sum(n)::BIGINT AS s FROM totals GROUP BY k ORDER BY k"
#define TOTALS_ROWS "0|9\n1|12\n2|15\n"

/* A table that is held, over a file. */
static void hold_totals(api_case *c) {
  char sql[300];
  const char *path = api_file(c, "in.csv", "k,n\n0,1\n1,2\n2,3\n0,8\n1,10\n2,12\n");
  snprintf(sql, sizeof sql, "CREATE OR REPLACE VIEW input AS SELECT * FROM '%s'", path);
  api_run(c, sql);
  api_run(c, "CACHE TABLE totals AS SELECT k, sum(n)::BIGINT AS n FROM input GROUP BY k");
  api_expect(c, TOTALS, TOTALS_ROWS);
}

static void lose_input(api_case *c) {
  char path[128];
  snprintf(path, sizeof path, "%.60s/in.csv", c->dir);
  assert_int_equal(unlink(path), 0);
}

static void restart(api_case *c) {
  state_end(c);
  state_begin(c);
}

/* Ends the session if it is open: files of answers go only a moment after them. */
static void work_dir_has(api_case *c, unsigned n_attempts) {
  char work[128];
  state_end(c);
  snprintf(work, sizeof work, "%s/work", c->work_dir);
  assert_int_equal(attempts_below(work), n_attempts);
}

/* ---------------------------------------------------------------- what survives */

static void hold_after_a_clean_exit_is_a_hit_without_its_source(void **state) {
  api_case *c = *state;
  hold_totals(c);
  lose_input(c);
  work_dir_has(c, 1);
  state_begin(c);
  hf_df *df = api_sql(c, TOTALS);
  hf_profile profile = api_expect_df(c, df, TOTALS_ROWS);
  hf_df_free(df);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  assert_int_equal(profile.source_rows, 0);
  state_holds_say(c, "totals|");
  state_holds_say(c, "|materialised|");
}

static void names_and_settings_go_on(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW one AS SELECT 1 AS a");
  api_run(c, "CREATE VIEW two AS SELECT a + 1 AS a FROM one");
  api_run(c, "CREATE VIEW gone AS SELECT 0 AS a");
  api_run(c, "CREATE OR REPLACE VIEW One AS SELECT 5 AS a");
  api_run(c, "DROP VIEW gone");
  api_run(c, "SET sql.default_order = desc");
  api_run(c, "SET sql.time_zone = 'Asia/Tokyo'");
  api_run(c, "RESET sql.time_zone");
  restart(c);
  api_expect(c, "SELECT a FROM one UNION ALL SELECT a FROM two ORDER BY a", "5\n2\n");
  api_fails(c, "SELECT * FROM gone", HF_E_TABLE_NOT_FOUND);
  char *zone = NULL;
  assert_int_equal(hf_session_get(c->session, "sql.time_zone", &zone, &c->error), HF_OK);
  assert_string_not_equal(zone, "Asia/Tokyo");
  hf_text_free(zone);
  api_run(c, "DROP VIEW two");
  restart(c);
  api_fails(c, "SELECT * FROM two", HF_E_TABLE_NOT_FOUND);
}

static void cached_view_is_itself_again_after_uncache(void **state) {
  api_case *c = *state;
  api_run(c, "CREATE VIEW v AS SELECT range AS n FROM range(1000)");
  api_run(c, "CACHE TABLE v");
  restart(c);
  api_expect(c, "SELECT sum(n)::BIGINT FROM v", "499500\n");
  state_holds_say(c, "|materialised|");
  api_run(c, "UNCACHE TABLE v");
  work_dir_has(c, 0);
  state_begin(c);
  api_expect(c, "SELECT sum(n)::BIGINT FROM v", "499500\n");
  char *holds = state_holds(c);
  assert_string_equal(holds, "");
  free(holds);
}

static void lazy_hold_is_filled_after_the_restart(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE later AS SELECT range AS n FROM range(10)");
  restart(c);
  state_holds_say(c, "later|");
  state_holds_say(c, "|declared|");
  api_expect(c, "SELECT sum(n)::BIGINT FROM later", "45\n");
  restart(c);
  state_holds_say(c, "|materialised|");
}

static void nested_holds_survive_with_the_inner_one_let_go(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE inner_t AS SELECT range AS n FROM range(100)");
  api_run(c, "CREATE VIEW mid AS SELECT n * 2 AS n FROM inner_t");
  api_run(c, "CACHE TABLE outer_t AS SELECT sum(n)::BIGINT AS s FROM mid");
  api_run(c, "UNCACHE TABLE inner_t");
  restart(c);
  api_expect(c, "SELECT s FROM outer_t", "9900\n");
  api_expect(c, "SELECT count(*) FROM mid", "100\n");
  work_dir_has(c, 1);
}

static void refresh_and_generations_go_on(void **state) {
  api_case *c = *state;
  hold_totals(c);
  api_file(c, "in.csv", "k,n\n0,100\n");
  restart(c);
  api_expect(c, TOTALS, TOTALS_ROWS); /* a snapshot */
  api_run(c, "REFRESH TABLE totals");
  restart(c);
  api_expect(c, TOTALS, "0|100\n");
  restart(c);
  api_expect(c, TOTALS, "0|100\n");
}

static void stream_of(api_case *c, const char *sql, struct ArrowArrayStream *out) {
  hf_df *df = api_sql(c, sql);
  assert_int_equal(hf_df_collect(df, NULL, out, &c->error), HF_OK);
  hf_df_free(df);
}

static void client_data_under_a_view_survives(void **state) {
  api_case *c = *state;
  struct ArrowArrayStream stream, other;
  hf_df *kept = NULL, *lost = NULL;
  stream_of(c, "SELECT range + 1 AS n FROM range(4)", &stream);
  stream_of(c, "SELECT 7 AS n", &other);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &kept, &c->error), HF_OK);
  assert_int_equal(hf_session_from_stream(c->session, &other, &lost, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(kept, "given", false, &c->error), HF_OK);
  hf_df_free(kept);
  hf_df_free(lost);
  work_dir_has(c, 1);
  state_begin(c);
  api_expect(c, "SELECT sum(n)::BIGINT, count(*) FROM given", "10|4\n");
  stream_of(c, "SELECT 5::BIGINT AS n", &stream);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &kept, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(kept, "more", false, &c->error), HF_OK);
  hf_df_free(kept);
  restart(c);
  api_expect(c, "SELECT n FROM given UNION ALL SELECT n FROM more ORDER BY n", "1\n2\n3\n4\n5\n");
  api_run(c, "DROP VIEW given");
  restart(c);
  work_dir_has(c, 1);
}

static void hold_without_a_name_ends_with_the_session(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT range AS n FROM range(10)");
  hf_df *held = api_cache(c, df), *named = api_cache(c, df);
  assert_int_equal(api_count(c, held, NULL), 10);
  assert_int_equal(api_count(c, named, NULL), 10);
  assert_int_equal(hf_df_create_view(named, "named", false, &c->error), HF_OK);
  hf_df_free(df);
  hf_df_free(held);
  hf_df_free(named);
  work_dir_has(c, 1);
  state_begin(c);
  state_holds_say(c, "|materialised|");
  api_expect(c, "SELECT count(*) FROM named", "10\n");
}

static void session_beside_it_leaves_nothing(void **state) {
  api_case *c = *state;
  hf_session *first = c->session, *second = NULL;
  assert_int_equal(hf_session_new(first, &second, &c->error), HF_OK);
  c->session = second;
  api_run(c, "CACHE TABLE beside AS SELECT 1 AS a");
  hf_session_close(second);
  c->session = first;
  work_dir_has(c, 0);
  state_begin(c);
  api_fails(c, "SELECT * FROM beside", HF_E_TABLE_NOT_FOUND);
}

static void clear_cache_ends_all_holds(void **state) {
  api_case *c = *state;
  hold_totals(c);
  restart(c);
  api_run(c, "CLEAR CACHE");
  work_dir_has(c, 0);
  state_begin(c);
  api_fails(c, TOTALS, HF_E_TABLE_NOT_FOUND);
}

static void directory_that_was_moved_still_works(void **state) {
  api_case *c = *state;
  char moved[80];
  hold_totals(c);
  state_end(c);
  lose_input(c);
  snprintf(moved, sizeof moved, "%.60s/moved", c->dir);
  assert_int_equal(rename(c->work_dir, moved), 0);
  snprintf(c->work_dir, sizeof c->work_dir, "%s", moved);
  state_begin(c);
  api_expect(c, TOTALS, TOTALS_ROWS);
  restart(c);
  api_expect(c, TOTALS, TOTALS_ROWS);
}

static void source_that_changed_meanwhile_is_followed_when_asked(void **state) {
  api_case *c = *state;
  api_run(c, "SET cache.on_source_change = 'refresh'");
  hold_totals(c);
  state_end(c);
  api_file(c, "in.csv", "k,n\n0,1000\n0,1\n");
  state_begin(c);
  api_expect(c, TOTALS, "0|1001\n");
  state_holds_say(c, "source changed");
  restart(c);
  api_expect(c, TOTALS, "0|1001\n");
}

static void file_written_over_a_source_does_not_bring_the_old_rows_back(void **state) {
  api_case *c = *state;
  char path[128];
  hold_totals(c);
  snprintf(path, sizeof path, "%.60s/in.csv", c->dir);
  hf_df *df = api_sql(c, "SELECT 0 AS k, 77 AS n");
  const hf_write_options over = {.overwrite = true};
  assert_int_equal(hf_df_write_csv(df, path, &over, NULL, &c->error), HF_OK);
  hf_df_free(df);
  restart(c);
  api_expect(c, TOTALS, "0|77\n");
}

static void hold_below_a_built_view_survives_with_it(void **state) {
  api_case *c = *state;
  hf_df *numbers = api_sql(c, "SELECT range AS n FROM range(10)"), *half = NULL;
  hf_df *held = api_cache(c, numbers);
  assert_int_equal(api_count(c, held, NULL), 10);
  assert_int_equal(hf_df_filter(held, "n < 5", &half, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(half, "half", false, &c->error), HF_OK);
  hf_df_free(numbers);
  hf_df_free(held);
  hf_df_free(half);
  api_expect(c, "SELECT count(*) FROM half", "5\n");
  restart(c);
  hf_df *df = api_sql(c, "SELECT count(*) FROM half");
  hf_profile profile = api_expect_df(c, df, "5\n");
  hf_df_free(df);
  assert_int_equal(profile.held_hits, 1);
}

static void directory_itself_is_out_of_reach_of_queries(void **state) {
  api_case *c = *state;
  char sql[300];
  snprintf(sql, sizeof sql, "SELECT * FROM read_csv('%s/journal.db')", c->work_dir);
  api_fails(c, sql, HF_E_PATH_REFUSED);
  char path[128];
  snprintf(path, sizeof path, "%s/journal.db", c->work_dir);
  hf_df *df = api_sql(c, "SELECT 1 AS a");
  const hf_write_options over = {.overwrite = true};
  assert_int_equal(hf_df_write_csv(df, path, &over, NULL, &c->error), HF_E_PATH_REFUSED);
  hf_df_free(df);
}

/* --------------------------------------------------------------------- damage */

static void cut_file(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(truncate(path, info.st_size / 2), 0);
}

static void flip_byte(const char *path) {
  int fd = open(path, O_RDWR);
  struct stat info;
  char byte;
  assert_true(fd >= 0);
  assert_int_equal(fstat(fd, &info), 0);
  off_t at = info.st_size / 2;
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 0x40;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static void remove_file(const char *path) {
  assert_int_equal(unlink(path), 0);
}

/* Numbers whose every byte counts, so that a flipped one is in data that is read. */
static void hold_numbers(api_case *c) {
  api_run(c, "CACHE TABLE numbers AS SELECT range * 7919 AS n FROM range(100000)");
}

#define NUMBERS "SELECT sum(n)::BIGINT, count(*) FROM numbers"
#define NUMBERS_ROWS "39594604050000|100000\n"

static void damaged_blocks(api_case *c, const char *name, void (*damage)(const char *path), const char *why) {
  char work[128];
  hold_numbers(c);
  state_end(c);
  snprintf(work, sizeof work, "%s/work", c->work_dir);
  assert_true(each_file(work, name, damage) > 0);
  state_begin(c);
  api_expect(c, NUMBERS, NUMBERS_ROWS);
  state_holds_say(c, "|materialised|");
  state_holds_say(c, why);
  restart(c);
  api_expect(c, NUMBERS, NUMBERS_ROWS);
  work_dir_has(c, 1);
}

static void block_cut(void **state) {
  damaged_blocks(*state, "t0.arrow", cut_file, "block missing");
}

static void block_altered(void **state) {
  damaged_blocks(*state, "t0.arrow", flip_byte, "block altered");
}

static void block_removed(void **state) {
  damaged_blocks(*state, "t0.arrow", remove_file, "block missing");
}

static void index_altered(void **state) {
  damaged_blocks(*state, "index", flip_byte, "block altered");
}

static void index_removed(void **state) {
  damaged_blocks(*state, "index", remove_file, "block missing");
}

static void hold_that_lost_its_blocks_says_so_before_its_next_use(void **state) {
  api_case *c = *state;
  char work[128];
  hold_numbers(c);
  state_end(c);
  snprintf(work, sizeof work, "%s/work", c->work_dir);
  each_file(work, "t0.arrow", remove_file);
  state_begin(c);
  state_holds_say(c, "|declared|");
  state_holds_say(c, "block missing");
  work_dir_has(c, 0); /* what is left of it was swept */
}

static void orphans_are_swept_and_foreign_files_stay(void **state) {
  api_case *c = *state;
  char path[300];
  hold_numbers(c);
  state_end(c);
  snprintf(path, sizeof path, "%s/work/0f8fad5b-d9cb-469f-a165-70867728950e/7/1/1-1", c->work_dir);
  assert_int_equal(file_make_dirs(path, NULL), HF_OK);
  char index[320];
  snprintf(index, sizeof index, "%s/index", path);
  assert_int_equal(file_write_whole(index, "x", 1, false, NULL), HF_OK);
  snprintf(path, sizeof path, "%s/work/notes.txt", c->work_dir);
  assert_int_equal(file_write_whole(path, "x", 1, false, NULL), HF_OK);
  state_begin(c);
  assert_true(path_exists(path));
  api_expect(c, NUMBERS, NUMBERS_ROWS);
  work_dir_has(c, 1);
  snprintf(path, sizeof path, "%s/work/trash", c->work_dir);
  assert_false(path_exists(path));
}

static void state_is_refused(api_case *c, const char *message) {
  hf_session *session = NULL;
  assert_int_equal(state_try(c, c->work_dir, &session), HF_E_STATE_DIR);
  assert_null(session);
  if (strstr(c->error.message, message) == NULL || c->error.hint == NULL) {
    fail_msg("expected %s, found %s (%s)", message, c->error.message, c->error.hint);
  }
}

static char *journal_path(api_case *c) {
  static char path[128];
  snprintf(path, sizeof path, "%s/journal.db", c->work_dir);
  return path;
}

static void journal_of_garbage_is_refused(void **state) {
  api_case *c = *state;
  hold_numbers(c);
  state_end(c);
  char garbage[5000];
  memset(garbage, 'g', sizeof garbage);
  assert_int_equal(file_write_whole(journal_path(c), garbage, sizeof garbage, false, NULL), HF_OK);
  state_is_refused(c, "the journal is damaged");
  assert_int_equal(truncate(journal_path(c), 0), 0); /* a new journal, but the blocks are not its own */
  hf_session *session = NULL;
  assert_int_equal(state_try(c, c->work_dir, &session), HF_E_WORK_DIR);
  assert_non_null(strstr(c->error.message, "kept for another state directory"));
}

static void journal_that_was_cut_or_altered_is_refused_or_right(void **state) {
  api_case *c = *state;
  char copy[128], *bytes = NULL;
  size_t length = 0;
  hold_totals(c);
  state_end(c);
  snprintf(copy, sizeof copy, "%s", journal_path(c));
  assert_int_equal(file_read_whole(copy, 1 << 24, HF_E_IO, &bytes, &length, NULL), HF_OK);
  unsigned n_refused = 0;
  for (size_t i = 0; i < 24; i++) {
    size_t at = i * length / 24;
    char *damaged = malloc(length);
    memcpy(damaged, bytes, length);
    damaged[at + (i * 131) % (length / 24)] ^= 0x11;
    size_t left = i % 6 == 5 ? at : length;
    assert_int_equal(file_write_whole(copy, damaged, left, false, NULL), HF_OK);
    free(damaged);
    hf_status status = state_try(c, c->work_dir, &c->session);
    if (status == HF_OK) {
      hf_df *df = NULL;
      if (hf_session_sql(c->session, TOTALS, &df, &c->error) == HF_OK) {
        api_expect_df(c, df, TOTALS_ROWS);
      }
      hf_df_free(df);
      state_end(c);
    } else {
      assert_true(status == HF_E_STATE_DIR || status == HF_E_WORK_DIR);
      n_refused++;
    }
  }
  assert_true(n_refused > 0);
  assert_int_equal(file_write_whole(copy, bytes, length, false, NULL), HF_OK);
  free(bytes);
}

static void journal_of_another_version_is_refused(void **state) {
  api_case *c = *state;
  state_end(c);
  int fd = open(journal_path(c), O_RDWR);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, "\0\0\0\x63", 4, 60), 4); /* user_version, in SQLite's header */
  close(fd);
  state_is_refused(c, "the journal has format version 99");
}

static void names_are(api_case *c, const char *expected) {
  hf_df *df = api_sql(c, "SHOW TABLES");
  hf_profile ignored = api_expect_df(c, df, expected);
  (void)ignored;
  hf_df_free(df);
}

static void journal_that_cannot_be_written_undoes_the_command(void **state) {
  api_case *c = *state;
  struct rlimit before, none;
  char sql[3000];
  api_run(c, "CREATE VIEW a AS SELECT 1 AS n");
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  none = before;
  none.rlim_cur = 0;
  memset(sql, ' ', sizeof sql);
  memcpy(sql, "CREATE OR REPLACE VIEW a AS SELECT 2 AS n", 41);
  sql[sizeof sql - 1] = '\0';
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  hf_df *df = NULL;
  hf_status replaced = hf_session_sql(c->session, sql, &df, &c->error);
  hf_df_free(df);
  df = NULL;
  hf_status made = hf_session_sql(c->session, "CREATE VIEW b AS SELECT 1 AS n", &df, NULL);
  hf_df_free(df);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(replaced, HF_E_STATE_DIR);
  assert_int_equal(made, HF_E_STATE_DIR);
  assert_non_null(c->error.hint);
  names_are(c, "a|view\n");
  api_expect(c, "SELECT n FROM a", "1\n");
  api_run(c, "CREATE VIEW d AS SELECT 4 AS n");
  restart(c);
  names_are(c, "a|view\nd|view\n");
  api_expect(c, "SELECT n FROM a", "1\n");
}

static void directory_in_use_or_of_other_files_is_refused(void **state) {
  api_case *c = *state;
  char message[80];
  snprintf(message, sizeof message, "in use by another process (%ld)", (long)getpid());
  state_is_refused(c, message);
  api_expect(c, "SELECT 1", "1\n");
  char other[80];
  api_file(c, "precious.txt", "x");
  snprintf(other, sizeof other, "%.60s", c->dir);
  hf_session *session = NULL;
  assert_int_equal(state_try(c, other, &session), HF_E_STATE_DIR);
  assert_non_null(strstr(c->error.message, "is not empty"));
  snprintf(other, sizeof other, "%.60s/precious.txt", c->dir);
  assert_int_equal(state_try(c, other, &session), HF_E_STATE_DIR);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, state_case_open, state_case_close)
  const struct CMUnitTest tests[] = {
      CASE(hold_after_a_clean_exit_is_a_hit_without_its_source),
      CASE(names_and_settings_go_on),
      CASE(cached_view_is_itself_again_after_uncache),
      CASE(lazy_hold_is_filled_after_the_restart),
      CASE(nested_holds_survive_with_the_inner_one_let_go),
      CASE(refresh_and_generations_go_on),
      CASE(client_data_under_a_view_survives),
      CASE(hold_without_a_name_ends_with_the_session),
      CASE(session_beside_it_leaves_nothing),
      CASE(clear_cache_ends_all_holds),
      CASE(directory_that_was_moved_still_works),
      CASE(source_that_changed_meanwhile_is_followed_when_asked),
      CASE(file_written_over_a_source_does_not_bring_the_old_rows_back),
      CASE(hold_below_a_built_view_survives_with_it),
      CASE(directory_itself_is_out_of_reach_of_queries),
      CASE(block_cut),
      CASE(block_altered),
      CASE(block_removed),
      CASE(index_altered),
      CASE(index_removed),
      CASE(hold_that_lost_its_blocks_says_so_before_its_next_use),
      CASE(orphans_are_swept_and_foreign_files_stay),
      CASE(journal_of_garbage_is_refused),
      CASE(journal_that_was_cut_or_altered_is_refused_or_right),
      CASE(journal_of_another_version_is_refused),
      CASE(journal_that_cannot_be_written_undoes_the_command),
      CASE(directory_in_use_or_of_other_files_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

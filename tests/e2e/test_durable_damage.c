/* SPDX-License-Identifier: Apache-2.0 */
/* State directories that were damaged, cannot be written, or are another's: a right answer, or a clear refusal. */
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

/* Client data are jobs of numbers that no job has. */
static void remove_if_of_client(const char *path) {
  if (strstr(path, "/4611686018427387904/") != NULL) {
    remove_file(path);
  }
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
  state_again(c);
  api_expect(c, NUMBERS, NUMBERS_ROWS);
  state_has_blocks(c, 1);
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
  state_has_blocks(c, 0); /* what is left of it was swept */
}

static void client_data_without_its_blocks_is_an_error_by_name(void **state) {
  api_case *c = *state;
  struct ArrowArrayStream stream;
  hf_df *df = api_sql(c, "SELECT range AS n FROM range(5)"), *given = NULL;
  assert_int_equal(hf_df_collect(df, NULL, &stream, &c->error), HF_OK);
  hf_df_free(df);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &given, &c->error), HF_OK);
  assert_int_equal(hf_df_create_view(given, "given", false, &c->error), HF_OK);
  hf_df_free(given);
  api_run(c, "CACHE TABLE kept AS SELECT sum(n)::BIGINT AS s FROM given");
  state_end(c);
  char path[300];
  snprintf(path, sizeof path, "%s/work", c->work_dir);
  unsigned n = each_file(path, "t0.arrow", remove_if_of_client);
  assert_int_equal(n, 2);
  state_begin(c);
  api_fails(c, "SELECT * FROM given", HF_E_BLOCK_MISSING);
  api_expect(c, "SELECT s FROM kept", "10\n"); /* held apart */
  api_run(c, "DROP VIEW given");
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
  state_has_blocks(c, 1);
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
  state_hold_totals(c);
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
      if (hf_session_sql(c->session, STATE_TOTALS, &df, &c->error) == HF_OK) {
        api_expect_df(c, df, STATE_TOTALS_ROWS);
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
  state_again(c);
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
      CASE(block_cut),
      CASE(block_altered),
      CASE(block_removed),
      CASE(index_altered),
      CASE(index_removed),
      CASE(hold_that_lost_its_blocks_says_so_before_its_next_use),
      CASE(client_data_without_its_blocks_is_an_error_by_name),
      CASE(orphans_are_swept_and_foreign_files_stay),
      CASE(journal_of_garbage_is_refused),
      CASE(journal_that_was_cut_or_altered_is_refused_or_right),
      CASE(journal_of_another_version_is_refused),
      CASE(journal_that_cannot_be_written_undoes_the_command),
      CASE(directory_in_use_or_of_other_files_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

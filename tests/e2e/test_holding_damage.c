/* SPDX-License-Identifier: Apache-2.0 */
/* Held results whose blocks are lost behind Holdfast's back, and disks that are too small: right answers all the same. */
#include "support/api_case.h"

#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------- damage */

typedef enum damage { CUT, ALTER, REMOVE, EMPTY } damage;

typedef struct wanted {
  damage what;
  const char *ending;
  off_t larger_than;
} wanted;

static _Thread_local wanted want;

static int damage_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)walk;
  size_t length = strlen(path), ending = strlen(want.ending);
  if (kind != FTW_F || length < ending || strcmp(path + length - ending, want.ending) != 0 ||
      info->st_size <= want.larger_than) {
    return 0;
  }
  if (want.what == REMOVE) {
    return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
  }
  if (want.what != ALTER) {
    return truncate(path, want.what == CUT ? info->st_size / 2 : 0) == 0 || errno == ENOENT ? 0 : -1;
  }
  FILE *file = fopen(path, "r+");
  if (file == NULL) {
    return errno == ENOENT ? 0 : -1;
  }
  int byte = fseek(file, info->st_size / 2, SEEK_SET) == 0 ? fgetc(file) : 0;
  bool is_done = fseek(file, info->st_size / 2, SEEK_SET) == 0 && fputc(byte ^ 0xff, file) != EOF;
  return fclose(file) == 0 && is_done ? 0 : -1;
}

/* Results that were let go may disappear while the tree is walked. */
static void damage_all(api_case *c, damage what, const char *ending) {
  want = (wanted){what, ending, 0};
  int tries = 0;
  while (nftw(c->work_dir, damage_entry, 16, FTW_PHYS) != 0) {
    assert_int_equal(errno, ENOENT);
    assert_true(++tries < 100);
  }
}

static void expect_listed(api_case *c, const char *text) {
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  if (strstr(rows, text) == NULL) {
    fail_msg("not listed: %s\n%s", text, rows);
  }
  free(rows);
  hf_df_free(show);
}

static hf_profile profile_of(api_case *c, const char *sql, const char *rows) {
  hf_df *df = api_sql(c, sql);
  hf_profile profile = api_expect_df(c, df, rows);
  hf_df_free(df);
  return profile;
}

static void damaged_hold_says_why_it_was_dropped(void **state) {
  static const struct {
    damage what;
    const char *why;
  } cases[] = {
      {CUT, "block missing"}, {ALTER, "block altered"}, {REMOVE, "block missing"}, {EMPTY, "block missing"}};
  api_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    api_run(c, "CACHE TABLE t AS SELECT hash(i) AS h FROM range(20000) t(i)");
    damage_all(c, cases[i].what, ".arrow");
    assert_int_equal(profile_of(c, "SELECT count(h) AS n FROM t", "20000\n").held_fills, 1);
    expect_listed(c, cases[i].why);
    api_run(c, "UNCACHE TABLE t");
  }
}

/* An index that was read before may still be known; else the blocks count as lost. */
static void damaged_index_gives_no_wrong_answer(void **state) {
  api_case *c = *state;
  for (damage what = CUT; what <= EMPTY; what++) {
    api_run(c, "CACHE TABLE t AS SELECT hash(i) AS h FROM range(20000) t(i)");
    damage_all(c, what, "/index");
    profile_of(c, "SELECT count(h) AS n FROM t", "20000\n");
    profile_of(c, "SELECT count(h) AS n FROM t", "20000\n");
    api_run(c, "UNCACHE TABLE t");
  }
}

/* Rows of tasks that had ended before the loss was met are not counted twice. */
static void damaged_hold_in_a_distributed_query_is_computed_anew(void **state) {
  api_case *c = *state;
  api_run(c, "SET tasks = 3");
  api_run(c, "CACHE TABLE big AS SELECT i AS n, hash(i) AS h FROM range(200000) t(i)");
  api_run(c, "CACHE LAZY TABLE top AS SELECT n, h FROM big WHERE n % 2 = 0");
  hf_df *join = api_sql(c, "SELECT count(*) AS n, count(DISTINCT a.h) AS d FROM top a JOIN big b USING (n)");
  api_expect_df(c, join, "100000|100000\n");
  for (int round = 0; round < 3; round++) {
    damage_all(c, (damage)round, ".arrow");
    hf_profile profile = api_expect_df(c, join, "100000|100000\n");
    assert_true(profile.held_fills >= 1);
    hf_df *all = api_sql(c, "SELECT * FROM top");
    hf_profile rows;
    free(api_rows(c, all, &rows));
    assert_int_equal(rows.result_rows, 100000);
    hf_df_free(all);
    hf_df *show = api_sql(c, "SHOW CACHE");
    char *text = api_rows(c, show, NULL);
    assert_non_null(strstr(text, "|200000|"));
    assert_non_null(strstr(text, "|100000|"));
    free(text);
    hf_df_free(show);
  }
  hf_df_free(join);
}

static void damage_under_an_open_result_leaves_it_readable(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE t AS SELECT hash(i) AS h FROM range(20000) t(i)");
  hf_df *query = api_sql(c, "SELECT h FROM t");
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(query, NULL, &stream, &c->error), HF_OK);
  damage_all(c, REMOVE, ".arrow");
  int64_t rows = 0;
  for (;;) {
    struct ArrowArray batch;
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    if (batch.release == NULL) {
      break;
    }
    rows += batch.length;
    batch.release(&batch);
  }
  stream.release(&stream);
  assert_int_equal(rows, 20000);
  assert_int_equal(profile_of(c, "SELECT count(h) FROM t", "20000\n").held_fills, 1);
  hf_df_free(query);
}

static const char *removed_below; /* of the hook */

/* On the executor's thread, when a task is about to open its inputs: the blocks of a fill are larger than other files. */
static void remove_held_blocks(void) {
  want = (wanted){REMOVE, ".arrow", 100000};
  nftw(removed_below, damage_entry, 16, FTW_PHYS);
}

/* At most three plans again; then without the hold. The answer is right in any case. */
static void blocks_lost_again_and_again_end_in_computing_inline(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE t AS SELECT hash(i) AS h FROM range(200000) t(i)");
  removed_below = c->work_dir;
  fault_set("executor.before_run", remove_held_blocks);
  hf_profile profile = profile_of(c, "SELECT count(h) AS n FROM t", "200000\n");
  fault_set("executor.before_run", NULL);
  assert_non_null(strstr(profile.warning, "computed inline"));
  assert_int_equal(profile.held_fills, 4);
  profile_of(c, "SELECT count(h) AS n FROM t", "200000\n");
}

/* ---------------------------------------------------------------- full disks */

/* The work directory is on a file system of 12 MB: the fill of 40 MB meets its end in the middle. */
static void disk_full_in_a_fill_computes_inline_and_warns(void **state) {
  api_case *c = *state;
  char disk[96], work_dir[128];
  snprintf(disk, sizeof disk, "%s/disk", c->dir);
  snprintf(work_dir, sizeof work_dir, "%s/work", disk);
  assert_int_equal(mkdir(disk, 0700), 0);
  if (mount("tmpfs", disk, "tmpfs", 0, "size=12m") != 0) {
    skip();
  }
  const hf_setting settings[] = {
      {"work_dir", work_dir}, {"threads", "1"}, {"memory", "512MiB"}, {"sink.budget", "1MiB"}};
  api_case small = {0};
  assert_int_equal(hf_session_open("local", settings, 4, &small.session, NULL), HF_OK);
  api_run(&small, "CACHE TABLE fits AS SELECT hash(i) AS h FROM range(10000) t(i)");
  api_run(&small, "CACHE LAZY TABLE wide AS SELECT hash(i) AS h FROM range(5000000) t(i)");
  for (int i = 0; i < 2; i++) {
    hf_profile profile = profile_of(&small, "SELECT count(h) AS n FROM wide", "5000000\n");
    assert_non_null(strstr(profile.warning, "computed inline, not held"));
    assert_int_equal(profile.held_inline, 1);
    assert_int_equal(profile.held_fills, 0);
    expect_listed(&small, "not held: no space on the disk");
  }
  assert_int_equal(profile_of(&small, "SELECT count(h) AS n FROM fits", "10000\n").held_hits, 1);
  api_fails(&small, "SELECT * FROM wide", HF_E_DISK_FULL);
  api_run(&small, "CACHE TABLE later AS SELECT hash(i) AS h FROM range(10000) t(i)");
  assert_int_equal(profile_of(&small, "SELECT count(h) AS n FROM later", "10000\n").held_hits, 1);
  hf_error_reset(&small.error);
  hf_session_close(small.session);
  assert_false(path_exists(work_dir));
  assert_int_equal(umount(disk), 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(damaged_hold_says_why_it_was_dropped),
      CASE(damaged_index_gives_no_wrong_answer),
      CASE(damaged_hold_in_a_distributed_query_is_computed_anew),
      CASE(damage_under_an_open_result_leaves_it_readable),
      CASE(blocks_lost_again_and_again_end_in_computing_inline),
      CASE(disk_full_in_a_fill_computes_inline_and_warns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

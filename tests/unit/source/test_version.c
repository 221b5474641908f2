/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of sources: which changes on the disk they notice. */
#include "source/source.h"

#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct version_case {
  char dir[64];
  arena *memory;
  source_catalog *catalog;
} version_case;

static const char *below(version_case *c, const char *name) {
  return arena_printf(c->memory, "%s/%s", c->dir, name);
}

static void write_file(version_case *c, const char *name, const char *text) {
  FILE *file = fopen(below(c, name), "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* Puts the time of the last write a second further back or forth: a clock's tick is no part of these cases. */
static void shift_time(version_case *c, const char *name, long seconds) {
  struct stat facts;
  assert_int_equal(stat(below(c, name), &facts), 0);
  struct timespec times[2] = {facts.st_atim, facts.st_mtim};
  times[1].tv_sec += seconds;
  assert_int_equal(utimensat(AT_FDCWD, below(c, name), times, 0), 0);
}

static int open_case(void **state) {
  version_case *c = mem_zalloc(1, sizeof *c);
  assert_non_null(c);
  snprintf(c->dir, sizeof c->dir, "/tmp/hf-version-XXXXXX");
  assert_non_null(mkdtemp(c->dir));
  c->memory = arena_new();
  const char *allowed[] = {"/tmp"};
  source_catalog_options options = {.allowed_dirs = allowed, .n_allowed_dirs = 1};
  assert_int_equal(source_catalog_new(&options, &c->catalog, NULL), HF_OK);
  assert_int_equal(mkdir(below(c, "in"), 0700), 0);
  write_file(c, "in/a.csv", "n\n1\n");
  write_file(c, "in/b.csv", "n\n2\n");
  shift_time(c, "in", -10);
  *state = c;
  return 0;
}

static int close_case(void **state) {
  version_case *c = *state;
  source_catalog_free(c->catalog);
  hf_status status = file_remove_tree(c->dir, NULL);
  arena_free(c->memory);
  mem_free(c);
  return status != HF_OK;
}

static source_versions look(version_case *c, const char *name) {
  source_versions found = {0};
  const char *path = below(c, name);
  source_request request = {.format = SOURCE_CSV, .paths = &path, .n_paths = 1};
  source *s = NULL;
  hf_error error = {0};
  if (source_resolve_versions(c->catalog, &request, c->memory, &found, &s, &error) != HF_OK) {
    fail_msg("%s: %s", name, error.message);
  }
  source_release(s);
  return found;
}

static bool hold_all(source_versions v) {
  for (size_t i = 0; i < v.n; i++) {
    if (!source_version_holds(&v.all[i])) {
      return false;
    }
  }
  return v.n > 0;
}

static void version_of_a_file_notices_size_time_and_loss(void **state) {
  version_case *c = *state;
  source_versions v = look(c, "in/a.csv");
  assert_int_equal(v.n, 1);
  assert_true(hold_all(v));
  write_file(c, "in/other.csv", "n\n9\n");
  assert_true(hold_all(v));
  shift_time(c, "in/a.csv", 1);
  assert_false(hold_all(v));
  v = look(c, "in/a.csv");
  assert_true(hold_all(v));
  write_file(c, "in/a.csv", "n\n1\n5\n");
  assert_false(hold_all(v));
  v = look(c, "in/a.csv");
  assert_int_equal(unlink(below(c, "in/a.csv")), 0);
  assert_false(hold_all(v));
}

static void version_of_a_pattern_notices_files_that_come_and_go(void **state) {
  version_case *c = *state;
  source_versions v = look(c, "in/*.csv");
  assert_int_equal(v.n, 3); /* two files and the directory */
  assert_true(hold_all(v));
  write_file(c, "in/c.csv", "n\n3\n");
  assert_false(hold_all(v));
  v = look(c, "**/*.csv");
  assert_true(hold_all(v));
  shift_time(c, "in", -10);
  v = look(c, "**/*.csv");
  assert_int_equal(unlink(below(c, "in/b.csv")), 0);
  assert_false(hold_all(v));
}

static void version_of_a_link_notices_where_it_leads(void **state) {
  version_case *c = *state;
  shift_time(c, "in/b.csv", -5);
  assert_int_equal(symlink(below(c, "in/a.csv"), below(c, "latest.csv")), 0);
  source_versions v = look(c, "latest.csv");
  assert_true(hold_all(v));
  assert_int_equal(unlink(below(c, "latest.csv")), 0);
  assert_int_equal(symlink(below(c, "in/b.csv"), below(c, "latest.csv")), 0);
  assert_false(hold_all(v));
}

/* What the catalogue remembers is as old as its first listing: versions are of this one. */
static void version_of_a_remembered_source_is_of_today(void **state) {
  version_case *c = *state;
  look(c, "in/*.csv");
  write_file(c, "in/not-data.txt", "x");
  source_versions v = look(c, "in/*.csv");
  assert_true(hold_all(v));
}

static void path_is_below_by_whole_names(void **state) {
  (void)state;
  assert_true(source_path_is_below("/a/b/c.csv", "/a/b"));
  assert_true(source_path_is_below("/a/b/c.csv", "/a/b/"));
  assert_true(source_path_is_below("/a/b", "/a/b"));
  assert_true(source_path_is_below("/a/b", "/"));
  assert_false(source_path_is_below("/a/bc", "/a/b"));
  assert_false(source_path_is_below("/a", "/a/b"));
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, close_case)
  const struct CMUnitTest tests[] = {
      CASE(version_of_a_file_notices_size_time_and_loss),
      CASE(version_of_a_pattern_notices_files_that_come_and_go),
      CASE(version_of_a_link_notices_where_it_leads),
      CASE(version_of_a_remembered_source_is_of_today),
      cmocka_unit_test(path_is_below_by_whole_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

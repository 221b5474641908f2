/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and small files. */
#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int make_scratch(void **state) {
  char *dir = strdup("/tmp/hf-base-test-XXXXXX");
  *state = dir;
  return mkdtemp(dir) == NULL;
}

static int remove_scratch(void **state) {
  int failed = file_remove_tree(*state, NULL) != HF_OK || access(*state, F_OK) == 0;
  free(*state);
  return failed;
}

static const char *path_in(const char *dir, const char *name, char out[256]) {
  snprintf(out, 256, "%s/%s", dir, name);
  return out;
}

static void dirs_with_missing_parents_are_made(void **state) {
  char path[256];
  assert_int_equal(file_make_dirs(path_in(*state, "a/b/c", path), NULL), HF_OK);
  assert_int_equal(file_make_dirs(path, NULL), HF_OK); /* again */
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_true(S_ISDIR(info.st_mode) && (info.st_mode & 0777) == 0700);
}

static void dirs_of_no_name_are_refused(void **state) {
  (void)state;
  hf_error error = {0};
  assert_int_equal(file_make_dirs("", &error), HF_E_INVALID_ARGUMENT);
  hf_error_reset(&error);
}

static void dirs_below_a_file_fail_and_name_it(void **state) {
  char file[256], below[256];
  assert_int_equal(file_write_whole(path_in(*state, "f", file), "x", 1, false, NULL), HF_OK);
  hf_error error = {0};
  assert_int_not_equal(file_make_dirs(path_in(*state, "f/d", below), &error), HF_OK);
  assert_non_null(strstr(error.message, "f/d"));
  hf_error_reset(&error);
}

static void file_written_whole_reads_back_and_leaves_no_other(void **state) {
  char path[256], temporary[256];
  assert_int_equal(file_write_whole(path_in(*state, "f", path), "hold\0fast", 9, true, NULL), HF_OK);
  char *bytes = NULL;
  size_t length = 0;
  assert_int_equal(file_read_whole(path, 9, HF_E_IO, &bytes, &length, NULL), HF_OK);
  assert_int_equal(length, 9);
  assert_memory_equal(bytes, "hold\0fast", 10);
  mem_free(bytes);
  assert_int_not_equal(access(path_in(*state, "f.tmp", temporary), F_OK), 0);
}

static void file_larger_than_the_limit_is_not_read(void **state) {
  char path[256];
  assert_int_equal(file_write_whole(path_in(*state, "f", path), "0123", 4, false, NULL), HF_OK);
  char *bytes = NULL;
  size_t length = 7;
  assert_int_equal(file_read_whole(path, 3, HF_E_IO, &bytes, &length, NULL), HF_E_LIMIT);
  assert_null(bytes);
  assert_int_equal(length, 7);
}

static void file_that_is_absent_gives_the_code_asked_for(void **state) {
  char path[256];
  char *bytes = NULL;
  size_t length = 0;
  assert_int_equal(
      file_read_whole(path_in(*state, "none", path), 9, HF_E_BLOCK_MISSING, &bytes, &length, NULL),
      HF_E_BLOCK_MISSING);
}

static void tree_with_a_link_is_removed_and_what_it_points_at_stays(void **state) {
  char kept[256], tree[256], link[256];
  assert_int_equal(file_write_whole(path_in(*state, "kept", kept), "x", 1, false, NULL), HF_OK);
  assert_int_equal(file_make_dirs(path_in(*state, "tree/sub", tree), NULL), HF_OK);
  assert_int_equal(symlink(kept, path_in(*state, "tree/sub/link", link)), 0);
  assert_int_equal(file_remove_tree(path_in(*state, "tree", tree), NULL), HF_OK);
  assert_int_not_equal(access(tree, F_OK), 0);
  assert_int_equal(access(kept, F_OK), 0);
  assert_int_equal(file_remove_tree(tree, NULL), HF_OK); /* absent is fine */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(dirs_with_missing_parents_are_made, make_scratch, remove_scratch),
      cmocka_unit_test(dirs_of_no_name_are_refused),
      cmocka_unit_test_setup_teardown(dirs_below_a_file_fail_and_name_it, make_scratch, remove_scratch),
      cmocka_unit_test_setup_teardown(file_written_whole_reads_back_and_leaves_no_other, make_scratch,
                                      remove_scratch),
      cmocka_unit_test_setup_teardown(file_larger_than_the_limit_is_not_read, make_scratch, remove_scratch),
      cmocka_unit_test_setup_teardown(file_that_is_absent_gives_the_code_asked_for, make_scratch,
                                      remove_scratch),
      cmocka_unit_test_setup_teardown(tree_with_a_link_is_removed_and_what_it_points_at_stays, make_scratch,
                                      remove_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

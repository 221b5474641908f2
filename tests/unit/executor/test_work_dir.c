/* SPDX-License-Identifier: Apache-2.0 */
/* The work directory: choosing, locking, emptying, refusing. */
#include "executor/work_dir.h"

#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <cmocka.h>

#define SESSION "0f8fad5b-d9cb-469f-a165-70867728950e"

static scratch place;

static int before_each(void **state) {
  (void)state;
  scratch_make(&place);
  unsetenv("HOLDFAST_WORK_DIR");
  setenv("TMPDIR", place.path, 1);
  return 0;
}

static int after_each(void **state) {
  (void)state;
  scratch_remove(&place);
  return 0;
}

/* A path in the test's directory that stays valid. */
static char *own(const char *name) {
  return strdup(scratch_path(&place, name));
}

static void assert_refused(const char *path, hf_status code, const char *message) {
  work_dir w = {0};
  hf_error error = {0};
  assert_int_equal(work_dir_open(path, NULL, &w, &error), code);
  if (strstr(error.message, message) == NULL) {
    fail_msg("expected %s, found %s", message, error.message);
  }
  assert_non_null(error.hint);
  assert_null(w.path);
  hf_error_reset(&error);
}

static void directory_that_is_new_is_made_private_and_removed(void **state) {
  (void)state;
  char *path = own("a/b/work");
  work_dir w;
  assert_int_equal(work_dir_open(path, NULL, &w, NULL), HF_OK);
  assert_string_equal(w.path, path);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  assert_true(path_exists(scratch_path(&place, "a/b/work/holdfast.lock")));
  work_dir_close(&w);
  assert_false(path_exists(path));
  work_dir_close(&w); /* a closed one is zeroed */
  free(path);
}

static void directory_that_was_there_stays_with_foreign_files(void **state) {
  (void)state;
  char *path = own("work"), *mine = own("work/mine.txt"), *session = own("work/" SESSION "/1/1/1-1");
  assert_int_equal(mkdir(path, 0755), 0);
  write_text(mine, "x");
  work_dir w;
  assert_int_equal(work_dir_open(path, NULL, &w, NULL), HF_OK);
  assert_int_equal(file_make_dirs(session, NULL), HF_OK);
  assert_int_equal(file_make_dirs(scratch_path(&place, "work/slots/0"), NULL), HF_OK);
  assert_int_equal(file_make_dirs(scratch_path(&place, "work/spill/0"), NULL), HF_OK);
  work_dir_close(&w);
  assert_int_equal(entry_count(path), 1);
  assert_true(path_exists(mine));
  free(path);
  free(mine);
  free(session);
}

static void directory_by_relative_path_or_link_becomes_absolute(void **state) {
  (void)state;
  char *path = own("real"), *link = own("link");
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(symlink(path, link), 0);
  work_dir w;
  assert_int_equal(work_dir_open(link, NULL, &w, NULL), HF_OK);
  assert_string_equal(w.path, path);
  work_dir_close(&w);
  assert_true(path_exists(link));
  char before[512];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(place.path), 0);
  assert_int_equal(work_dir_open("real", NULL, &w, NULL), HF_OK);
  assert_string_equal(w.path, path);
  work_dir_close(&w);
  assert_int_equal(chdir(before), 0);
  free(path);
  free(link);
}

static void directory_in_use_is_refused_and_free_again_after_close(void **state) {
  (void)state;
  char *path = own("work"), message[600];
  work_dir w;
  assert_int_equal(work_dir_open(path, NULL, &w, NULL), HF_OK);
  snprintf(message, sizeof message, "in use by another executor (process %ld): %s", (long)getpid(), path);
  assert_refused(path, HF_E_WORK_DIR, message);
  assert_true(path_exists(path));
  work_dir_close(&w);
  assert_int_equal(work_dir_open(path, NULL, &w, NULL), HF_OK);
  work_dir_close(&w);
  free(path);
}

/* Opens it in a process that dies without closing, after it made files of a session. */
static void leave_behind(const char *wanted) {
  pid_t child = fork();
  if (child == 0) {
    work_dir w;
    char dir[600];
    bool ok = work_dir_open(wanted, NULL, &w, NULL) == HF_OK;
    snprintf(dir, sizeof dir, "%s/" SESSION "/1/1/1-1", ok ? w.path : "/nowhere");
    ok = ok && file_make_dirs(dir, NULL) == HF_OK;
    snprintf(dir, sizeof dir, "%s/slots/0", ok ? w.path : "/nowhere");
    ok = ok && file_make_dirs(dir, NULL) == HF_OK;
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void directory_of_a_dead_owner_is_emptied(void **state) {
  (void)state;
  char *path = own("work"), *mine = own("work/mine.txt"), *session = own("work/" SESSION);
  leave_behind(path);
  write_text(mine, "x");
  assert_true(path_exists(session));
  work_dir w;
  assert_int_equal(work_dir_open(path, NULL, &w, NULL), HF_OK);
  assert_false(path_exists(session));
  assert_false(path_exists(scratch_path(&place, "work/slots")));
  assert_true(path_exists(mine));
  work_dir_close(&w);
  assert_int_equal(entry_count(path), 1);
  free(path);
  free(mine);
  free(session);
}

static void directory_with_such_names_of_nobody_is_refused(void **state) {
  (void)state;
  char *path = own("work"), *slots = own("work/slots");
  assert_int_equal(file_make_dirs(slots, NULL), HF_OK);
  assert_refused(path, HF_E_WORK_DIR, "may be of another program: ");
  assert_int_equal(entry_count(path), 1); /* no lock file is left */
  assert_int_equal(rmdir(slots), 0);
  assert_int_equal(file_make_dirs(scratch_path(&place, "work/" SESSION), NULL), HF_OK);
  assert_refused(path, HF_E_WORK_DIR, SESSION);
  assert_int_equal(entry_count(path), 1);
  free(path);
  free(slots);
}

static void directory_that_cannot_be_made_or_written_is_refused(void **state) {
  (void)state;
  char *file = own("file"), *below = own("file/work");
  write_text(file, "x");
  assert_refused(file, HF_E_WORK_DIR, file);
  assert_refused(below, HF_E_WORK_DIR, file);
  assert_refused("/proc/holdfast", HF_E_WORK_DIR, "/proc/holdfast");
  assert_refused("/proc", HF_E_WORK_DIR, "/proc");
  assert_refused("", HF_E_WORK_DIR, "");
  assert_int_equal(entry_count(place.path), 1);
  free(file);
  free(below);
}

static void automatic_directory_lies_in_tmpdir_and_goes_with_its_parent(void **state) {
  (void)state;
  char parent[128];
  snprintf(parent, sizeof parent, "%s/holdfast-%lu", place.path, (unsigned long)geteuid());
  work_dir a, b;
  assert_int_equal(work_dir_open("auto", NULL, &a, NULL), HF_OK);
  assert_int_equal(work_dir_open(NULL, NULL, &b, NULL), HF_OK);
  assert_memory_equal(a.path, parent, strlen(parent));
  assert_memory_equal(b.path, parent, strlen(parent));
  assert_string_not_equal(a.path, b.path);
  work_dir_close(&a);
  assert_int_equal(entry_count(parent), 1);
  work_dir_close(&b);
  assert_int_equal(entry_count(place.path), 0);
}

static void automatic_directory_of_a_dead_owner_is_swept(void **state) {
  (void)state;
  work_dir alive, w;
  assert_int_equal(work_dir_open("auto", NULL, &alive, NULL), HF_OK);
  leave_behind("auto");
  assert_int_equal(entry_count(alive.parent), 2);
  assert_int_equal(work_dir_open("auto", NULL, &w, NULL), HF_OK);
  assert_int_equal(entry_count(alive.parent), 2);
  assert_true(path_exists(alive.path));
  work_dir_close(&w);
  work_dir_close(&alive);
  assert_int_equal(entry_count(place.path), 0);
}

static void automatic_directory_in_a_shared_parent_is_refused(void **state) {
  (void)state;
  char parent[128];
  snprintf(parent, sizeof parent, "%s/holdfast-%lu", place.path, (unsigned long)geteuid());
  assert_int_equal(mkdir(parent, 0700), 0);
  assert_int_equal(chmod(parent, 0777), 0);
  assert_refused("auto", HF_E_WORK_DIR, "not this user's alone");
  assert_int_equal(rmdir(parent), 0);
  char *elsewhere = own("elsewhere");
  assert_int_equal(mkdir(elsewhere, 0700), 0);
  assert_int_equal(symlink(elsewhere, parent), 0);
  assert_refused("auto", HF_E_WORK_DIR, "not this user's alone");
  assert_int_equal(entry_count(elsewhere), 0);
  free(elsewhere);
}

static void automatic_directory_from_the_environment_is_used(void **state) {
  (void)state;
  char *path = own("from-environment");
  setenv("HOLDFAST_WORK_DIR", path, 1);
  work_dir w;
  assert_int_equal(work_dir_open("auto", NULL, &w, NULL), HF_OK);
  assert_string_equal(w.path, path);
  work_dir_close(&w);
  assert_false(path_exists(path));
  free(path);
}

static void kept_directory_stays_for_its_owner_and_is_refused_to_others(void **state) {
  (void)state;
  char *path = own("work"), *block = own("work/" SESSION "/1/1/1-1"), *slots = own("work/slots/0");
  uuid mine = uuid_new(), other = uuid_new();
  work_dir w;
  assert_int_equal(work_dir_open(path, &mine, &w, NULL), HF_OK);
  assert_int_equal(file_make_dirs(block, NULL), HF_OK);
  assert_int_equal(file_make_dirs(slots, NULL), HF_OK);
  work_dir_close(&w);
  assert_true(path_exists(block));
  assert_false(path_exists(slots));

  assert_refused(path, HF_E_WORK_DIR, "is kept for a state directory");
  hf_error error = {0};
  assert_int_equal(work_dir_open(path, &other, &w, &error), HF_E_WORK_DIR);
  assert_non_null(strstr(error.message, "is kept for another state directory"));
  hf_error_reset(&error);
  assert_true(path_exists(block));

  write_text(scratch_path(&place, "work/holdfast.lock"), "1\n"); /* as after a kill */
  assert_refused(path, HF_E_WORK_DIR, "is kept for a state directory");
  assert_int_equal(work_dir_open(path, &mine, &w, NULL), HF_OK);
  assert_true(path_exists(block));
  work_dir_close(&w);
  assert_true(path_exists(block));
  free(path);
  free(block);
  free(slots);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, before_each, after_each)
  const struct CMUnitTest tests[] = {
      CASE(directory_that_is_new_is_made_private_and_removed),
      CASE(directory_that_was_there_stays_with_foreign_files),
      CASE(directory_by_relative_path_or_link_becomes_absolute),
      CASE(directory_in_use_is_refused_and_free_again_after_close),
      CASE(directory_of_a_dead_owner_is_emptied),
      CASE(directory_with_such_names_of_nobody_is_refused),
      CASE(directory_that_cannot_be_made_or_written_is_refused),
      CASE(automatic_directory_lies_in_tmpdir_and_goes_with_its_parent),
      CASE(automatic_directory_of_a_dead_owner_is_swept),
      CASE(automatic_directory_in_a_shared_parent_is_refused),
      CASE(automatic_directory_from_the_environment_is_used),
      CASE(kept_directory_stays_for_its_owner_and_is_refused_to_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

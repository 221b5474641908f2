/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: making it, who may be in it. */
#include "journal_case.h"

#include "journal/place.h"

#include <sys/stat.h>
#include <sys/wait.h>

static void assert_refused(const char *dir, const char *message) {
  place p = {0};
  hf_error error = {0};
  assert_int_equal(place_open(dir, &p, &error), HF_E_STATE_DIR);
  if (strstr(error.message, message) == NULL) {
    fail_msg("expected %s, found %s", message, error.message);
  }
  assert_null(p.dir);
  hf_error_reset(&error);
}

static void directory_is_made_private_and_locked(void **state) {
  journal_case *c = *state;
  char made[80], message[80];
  snprintf(made, sizeof made, "%s/a/b", c->dir);
  place p = {0};
  assert_int_equal(place_open(made, &p, NULL), HF_OK);
  assert_string_equal(p.dir, made);
  struct stat info;
  assert_int_equal(stat(made, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  assert_false(place_has_journal(made));
  snprintf(message, sizeof message, "in use by another process (%ld)", (long)getpid());
  assert_refused(made, message);
  place_close(&p);
  place_close(&p); /* a closed one is zeroed */
  assert_int_equal(place_open(made, &p, NULL), HF_OK);
  place_close(&p);
}

static void lock_of_a_dead_process_is_free(void **state) {
  journal_case *c = *state;
  char made[80];
  snprintf(made, sizeof made, "%s/dead", c->dir);
  pid_t child = fork();
  if (child == 0) {
    place p = {0};
    _exit(place_open(made, &p, NULL) == HF_OK ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  place p = {0};
  assert_int_equal(place_open(made, &p, NULL), HF_OK);
  place_close(&p);
}

static void directory_by_a_link_is_the_same(void **state) {
  journal_case *c = *state;
  char link[80], message[80];
  snprintf(link, sizeof link, "%s/link", c->dir);
  assert_int_equal(symlink(c->state, link), 0);
  snprintf(message, sizeof message, "in use by another process (%ld)", (long)getpid());
  assert_refused(link, message);
}

static void directory_of_others_is_refused_and_let_alone(void **state) {
  journal_case *c = *state;
  char file[80];
  assert_refused(c->dir, "is not empty");
  snprintf(file, sizeof file, "%s/lock", c->dir);
  assert_int_not_equal(access(file, F_OK), 0);
  snprintf(file, sizeof file, "%s/file", c->dir);
  assert_int_equal(file_write_whole(file, "x", 1, false, NULL), HF_OK);
  assert_refused(file, "");
  assert_refused("", "empty");
}

static void directory_that_was_begun_is_gone_on_with(void **state) {
  journal_case *c = *state;
  char begun[80], lock[90];
  snprintf(begun, sizeof begun, "%s/begun", c->dir);
  snprintf(lock, sizeof lock, "%s/lock", begun);
  assert_int_equal(mkdir(begun, 0700), 0);
  assert_int_equal(file_write_whole(lock, "1\n", 2, false, NULL), HF_OK);
  place p = {0};
  assert_int_equal(place_open(begun, &p, NULL), HF_OK);
  place_close(&p);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, journal_case_open, journal_case_close)
  const struct CMUnitTest tests[] = {
      CASE(directory_is_made_private_and_locked),     CASE(lock_of_a_dead_process_is_free),
      CASE(directory_by_a_link_is_the_same),          CASE(directory_of_others_is_refused_and_let_alone),
      CASE(directory_that_was_begun_is_gone_on_with),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

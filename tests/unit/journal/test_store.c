/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's file: transactions, checksums, versions, damage. */
#include "journal_case.h"

#include "journal/store.h"

#include <fcntl.h>
#include <sqlite3.h>

static char path[64];
static char dir[40];

static int before_each(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/hf-store-test-XXXXXX");
  if (mkdtemp(dir) == NULL) {
    return -1;
  }
  snprintf(path, sizeof path, "%s/j", dir);
  return 0;
}

static int after_each(void **state) {
  (void)state;
  return file_remove_tree(dir, NULL) == HF_OK ? 0 : -1;
}

static store *opened(void) {
  store *s = NULL;
  hf_error error = {0};
  if (store_open(path, &s, &error) != HF_OK) {
    fail_msg("open: %s (%s)", error.message, error.cause == NULL ? "" : error.cause);
  }
  return s;
}

static void assert_refused(const char *message) {
  store *s = NULL;
  hf_error error = {0};
  assert_int_equal(store_open(path, &s, &error), HF_E_STATE_DIR);
  assert_null(s);
  if (strstr(error.message, message) == NULL) {
    fail_msg("expected %s, found %s", message, error.message);
  }
  assert_non_null(error.hint);
  hf_error_reset(&error);
}

static void put(store *s, const char *owner, const char *key, const char *body) {
  store_row row = {.kind = STORE_NAME, .owner = owner, .key = key, .body = body, .body_bytes = strlen(body)};
  assert_int_equal(store_put(s, &row, NULL), HF_OK);
}

static hf_status collect(void *context, const store_row *row, hf_error *error) {
  (void)error;
  buf_printf(context, "%s/%s=%.*s ", row->owner, row->key, (int)row->body_bytes, (const char *)row->body);
  return HF_OK;
}

static void assert_rows(store *s, const char *expected) {
  buf rows = {0};
  assert_int_equal(store_load(s, STORE_NAME, collect, &rows, NULL), HF_OK);
  assert_string_equal(buf_cstr(&rows), expected);
  buf_reset(&rows);
}

/* Changes the file behind the store's back. */
static void change(const char *sql) {
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

static void row_is_there_after_a_commit_only(void **state) {
  (void)state;
  store *s = opened();
  assert_int_equal(store_begin(s, NULL), HF_OK);
  put(s, "o", "a", "1");
  put(s, "o", "b", "");
  assert_int_equal(store_commit(s, NULL), HF_OK);
  assert_int_equal(store_begin(s, NULL), HF_OK);
  put(s, "o", "a", "2");
  put(s, "p", "a", "3");
  store_rollback(s);
  store_rollback(s); /* there is none */
  assert_rows(s, "o/a=1 o/b= ");
  uuid id = *store_id(s);
  store_close(s);
  s = opened();
  assert_rows(s, "o/a=1 o/b= ");
  assert_true(uuid_equal(&id, store_id(s)));
  store_close(s);
}

static void row_that_was_altered_is_refused(void **state) {
  (void)state;
  static const char *const changes[] = {"UPDATE record SET body = x'32'", "UPDATE record SET key = 'b'",
                                        "UPDATE record SET owner = 'p'", "UPDATE record SET job = 1",
                                        "UPDATE record SET checksum = 0"};
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    store *s = opened();
    put(s, "o", "a", "1");
    store_close(s);
    change(changes[i]);
    s = opened();
    hf_error error = {0};
    buf rows = {0};
    assert_int_equal(store_load(s, STORE_NAME, collect, &rows, &error), HF_E_STATE_DIR);
    assert_non_null(strstr(error.message, "does not match its checksum"));
    hf_error_reset(&error);
    buf_reset(&rows);
    store_close(s);
    assert_int_equal(unlink(path), 0);
  }
}

static void file_of_another_version_or_program_is_refused(void **state) {
  (void)state;
  store_close(opened());
  change("PRAGMA user_version=7");
  assert_refused("the journal has format version 7, this Holdfast reads 1");
  change("PRAGMA user_version=1; PRAGMA application_id=5");
  assert_refused("another program");
}

static void file_that_is_damaged_is_refused(void **state) {
  (void)state;
  assert_int_equal(file_write_whole(path,
                                    "this is no database, but it is long enough to be read as one........."
                                    "........................................................",
                                    120, false, NULL),
                   HF_OK);
  assert_refused("the journal is damaged");
  assert_int_equal(unlink(path), 0);
  store *s = opened();
  assert_int_equal(store_begin(s, NULL), HF_OK);
  for (int i = 0; i < 500; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    put(s, "o", key, "a body that takes its room in the file, so that there are several pages of them");
  }
  assert_int_equal(store_commit(s, NULL), HF_OK);
  store_close(s);
  assert_int_equal(truncate(path, 4096 * 5 + 100), 0);
  assert_refused("the journal is damaged");
}

static void file_in_a_directory_that_is_not_there_is_refused(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s/none/j", dir);
  assert_refused("cannot be opened for writing");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, before_each, after_each)
  const struct CMUnitTest tests[] = {
      CASE(row_is_there_after_a_commit_only),
      CASE(row_that_was_altered_is_refused),
      CASE(file_of_another_version_or_program_is_refused),
      CASE(file_that_is_damaged_is_refused),
      CASE(file_in_a_directory_that_is_not_there_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case of the public API: a session with a work directory of its own below a
 * temporary one, and short ways to run SQL and to look at results. Everything
 * that is not expected to fail fails the test.
 */
#ifndef HF_TESTS_API_CASE_H
#define HF_TESTS_API_CASE_H

#include <holdfast/holdfast.h>

typedef struct api_case {
  char dir[64];      /* temporary; its own files may lie there */
  char work_dir[80]; /* below dir; the session makes it */
  hf_session *session;
  hf_error error; /* of the last failure that was expected */
} api_case;

/* Setup and teardown of cmocka: *state is an api_case. The teardown closes the session and checks that its work
 * directory is gone, then removes the temporary directory. */
int api_case_open(void **state);
/* With one thread: where rows have no order of their own, DuckDB keeps that of the file only then. */
int api_case_open_one_thread(void **state);
/* With two slots of one thread each. */
int api_case_open_two_slots(void **state);
int api_case_close(void **state);

/* Makes a DataFrame; released by hf_df_free. */
hf_df *api_sql(api_case *c, const char *sql);
/* Runs a statement and drops its answer. */
void api_run(api_case *c, const char *sql);
/* Expects the statement, or its collect, to fail with `code`; c->error holds the details. */
void api_fails(api_case *c, const char *sql, hf_status code);
/* Runs and returns the rows as text, "a|b\nc|d\n"; NULL values as "NULL". Released with free(). `profile` may be NULL. */
char *api_rows(api_case *c, hf_df *df, hf_profile *profile);
/* Expects the statement to give these rows, as api_rows spells them. */
void api_expect(api_case *c, const char *sql, const char *rows);
/* Expects the DataFrame to give these rows; the profile is returned. */
hf_profile api_expect_df(api_case *c, hf_df *df, const char *rows);
hf_df *api_cache(api_case *c, hf_df *df);
hf_storage api_storage(api_case *c, hf_df *df);
/* Asks until the hold is in the state; fails after four minutes. */
void api_await_state(api_case *c, hf_df *held, hf_hold_state wanted);
uint64_t api_count(api_case *c, hf_df *df, hf_profile *profile);

/* Writes a file of that name below the temporary directory; returns its path, valid until the next call. */
const char *api_file(api_case *c, const char *name, const char *contents);
/* Regular files below a directory. */
unsigned files_below(const char *dir);
/* Tells whether the path exists. */
bool path_exists(const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case with a state directory: an api_case whose work_dir is that of the state,
 * closed and opened again as often as the case wants. Its name has a space and a
 * letter that is not ASCII.
 */
#ifndef HF_TESTS_STATE_CASE_H
#define HF_TESTS_STATE_CASE_H

#include "support/api_case.h"

#define STATE_NAME "st\xc3\xa4te dir"

/* Setup and teardown of cmocka: the session is open on a new state directory. */
int state_case_open(void **state);
int state_case_close(void **state);

/* Opens or closes the session; opening must succeed. */
void state_begin(api_case *c);
void state_end(api_case *c);
/* Opens a session on the directory; c->error holds what went wrong. */
hf_status state_try(api_case *c, const char *dir, hf_session **out);
/* The answer of SHOW CACHE; released with free(). */
char *state_holds(api_case *c);
/* Expects the answer of SHOW CACHE to hold the text. */
void state_holds_say(api_case *c, const char *text);

/* Closes and opens it again. */
void state_again(api_case *c);
/* Ends the session if it is open, for files of answers go only a moment after them; then so many attempts are there. */
void state_has_blocks(api_case *c, unsigned n_attempts);

/* CACHE TABLE totals over a view over in.csv in c->dir, and what it answers. */
#define STATE_TOTALS "SELECT k, sum(n)::BIGINT AS s FROM totals GROUP BY k ORDER BY k"
#define STATE_TOTALS_ROWS "0|9\n1|12\n2|15\n"
void state_hold_totals(api_case *c);

/* Calls `each` for every file of that name below the directory (NULL: every file), but what lies in a trash; returns how
 * many there were. */
unsigned each_file(const char *dir, const char *name, void (*each)(const char *path));
/* Attempts whose blocks are committed in a work directory. */
unsigned attempts_below(const char *dir);

#endif

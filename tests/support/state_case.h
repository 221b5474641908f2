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

/* Calls `each` for every file of that name below the directory (NULL: every file), but what lies in a trash; returns how
 * many there were. */
unsigned each_file(const char *dir, const char *name, void (*each)(const char *path));
/* Attempts whose blocks are committed in a work directory. */
unsigned attempts_below(const char *dir);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the test's own with a journal in it. */
#ifndef TESTS_UNIT_JOURNAL_JOURNAL_CASE_H
#define TESTS_UNIT_JOURNAL_JOURNAL_CASE_H

#include "base/file.h"
#include "journal/journal.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct journal_case {
  char dir[40], state[64], file[80]; /* state: the directory; file: its journal */
  journal *journal;
} journal_case;

static inline void journal_begin(journal_case *c) {
  hf_error error = {0};
  if (journal_open(c->state, &c->journal, &error) != HF_OK) {
    fail_msg("open: %s (%s)", error.message, error.cause == NULL ? "" : error.cause);
  }
}

static inline void journal_again(journal_case *c) {
  journal_close(c->journal);
  c->journal = NULL;
  journal_begin(c);
}

static inline int journal_case_open(void **state) {
  journal_case *c = calloc(1, sizeof *c);
  snprintf(c->dir, sizeof c->dir, "/tmp/hf-journal-test-XXXXXX");
  if (c == NULL || mkdtemp(c->dir) == NULL) {
    return -1;
  }
  snprintf(c->state, sizeof c->state, "%s/state", c->dir);
  snprintf(c->file, sizeof c->file, "%s/journal.db", c->state);
  journal_begin(c);
  *state = c;
  return 0;
}

static inline int journal_case_close(void **state) {
  journal_case *c = *state;
  journal_close(c->journal);
  int status = file_remove_tree(c->dir, NULL) == HF_OK ? 0 : -1;
  free(c);
  return status;
}

#endif

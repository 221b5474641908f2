/* SPDX-License-Identifier: Apache-2.0 */
/* A witness in a directory of its own. Included behind cmocka.h. */
#ifndef HF_TESTS_WITNESS_RIG_H
#define HF_TESTS_WITNESS_RIG_H

#include "base/file.h"
#include "witness/witness.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct rig {
  char dir[64];
  witness *w;
} rig;

static inline void must(hf_status status, hf_error *error) {
  if (status != HF_OK) {
    fail_msg("%s: %s", hf_status_name(status), error->message == NULL ? "" : error->message);
  }
}

static inline void execute(rig *r, const char *sql) {
  hf_error error = {0};
  must(engine_execute(witness_engine(r->w), sql, &error), &error);
}

/* Where it lies is filled in. */
static inline rig *rig_new(const witness_options *like) {
  rig *r = calloc(1, sizeof *r);
  hf_error error = {0};
  witness_options options = *like;
  assert_non_null(r);
  snprintf(r->dir, sizeof r->dir, "/tmp/hf-test-XXXXXX");
  assert_non_null(mkdtemp(r->dir));
  options.dir = options.allow_path = r->dir;
  must(witness_open(&options, &r->w, &error), &error);
  return r;
}

static inline int rig_close(void **state) {
  rig *r = *state;
  witness_close(r->w);
  file_remove_tree(r->dir, NULL);
  free(r);
  return 0;
}

#endif

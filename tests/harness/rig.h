/* SPDX-License-Identifier: Apache-2.0 */
/* A harness over files that the test made, in a directory that goes with it. */
#ifndef HF_TESTS_HARNESS_RIG_H
#define HF_TESTS_HARNESS_RIG_H

#include "base/file.h"
#include "engine/engine.h"
#include "holdfast/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct rig {
  char dir[64];
  hf_harness *h;
  engine *maker; /* writes files */
} rig;

static inline void must(hf_status status, hf_error *error) {
  if (status != HF_OK) {
    fail_msg("%s: %s", hf_status_name(status), error->message == NULL ? "" : error->message);
  }
}

static inline int rig_open(void **state) {
  rig *r = calloc(1, sizeof *r);
  hf_error error = {0};
  assert_non_null(r);
  snprintf(r->dir, sizeof r->dir, "/tmp/hf-test-XXXXXX");
  assert_non_null(mkdtemp(r->dir));
  const char *const allowed[] = {r->dir};
  const engine_options maker = {.kind = ENGINE_SLOT, .allowed_dirs = allowed, .n_allowed_dirs = 1};
  must(engine_open(&maker, &r->maker, &error), &error);
  const hf_harness_options options = {.work_dir = r->dir, .allow_path = r->dir};
  must(hf_harness_open(&options, &r->h, &error), &error);
  *state = r;
  return 0;
}

static inline int rig_close(void **state) {
  rig *r = *state;
  hf_harness_close(r->h);
  engine_close(r->maker);
  assert_int_equal(file_remove_tree(r->dir, NULL), HF_OK);
  free(r);
  return 0;
}

/* Writes the rows of a query as <name>.parquet in small row groups, and names it. */
static inline void rig_table(rig *r, const char *name, const char *query) {
  char sql[2000], path[200];
  hf_error error = {0};
  snprintf(path, sizeof path, "%s/%s.parquet", r->dir, name);
  snprintf(sql, sizeof sql, "COPY (%s) TO '%s' (FORMAT parquet, ROW_GROUP_SIZE 2048)", query, path);
  must(engine_execute(r->maker, sql, &error), &error);
  must(hf_harness_files(r->h, name, NULL, HF_LIST(path), &error), &error);
}

/* Runs it both ways; the answers must be the same. *report is to be reset. */
static inline void rig_same(rig *r, const char *sql, const hf_harness_config *how,
                            hf_harness_report *report) {
  hf_error error = {0};
  must(hf_assert_distributed_eq(r->h, sql, how, report, &error), &error);
  if (report->differed) {
    fail_msg("%s: %s\n%s", sql, report->reason, report->rows);
  }
}

/* The same, and it must have been distributed. */
static inline void rig_distributed(rig *r, const char *sql, const hf_harness_config *how) {
  hf_harness_report report = {0};
  rig_same(r, sql, how, &report);
  if (report.result != HF_HARNESS_DISTRIBUTED) {
    fail_msg("%s: not distributed (%d): %s", sql, (int)report.result, report.reason);
  }
  hf_harness_report_reset(&report);
}

/* Fails with this code. */
static inline void rig_fails(rig *r, const char *sql, const hf_harness_config *how, hf_status expected) {
  struct ArrowArrayStream rows = {0};
  hf_error error = {0};
  hf_status status = hf_run_distributed(r->h, sql, how, &rows, &error);
  if (status != expected) {
    fail_msg("%s: %s: %s", sql, hf_status_name(status), error.message == NULL ? "" : error.message);
  }
  assert_null(rows.release);
  assert_non_null(error.message);
  hf_error_reset(&error);
}

#endif

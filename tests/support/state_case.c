/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing and looking at a state directory; see state_case.h. */
#include "support/state_case.h"

#include "base/file.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hf_status state_try(api_case *c, const char *dir, hf_session **out) {
  const hf_setting settings[] = {{"state_dir", dir}, {"threads", "2"}, {"memory", "512MiB"}};
  hf_error_reset(&c->error);
  return hf_session_open("local", settings, 3, out, &c->error);
}

void state_begin(api_case *c) {
  if (state_try(c, c->work_dir, &c->session) != HF_OK) {
    fail_msg("open: %s (%s)", c->error.message, c->error.cause == NULL ? "" : c->error.cause);
  }
}

void state_end(api_case *c) {
  hf_session_close(c->session);
  c->session = NULL;
}

int state_case_open(void **state) {
  api_case *c = calloc(1, sizeof *c);
  assert_non_null(c);
  unsetenv("HOLDFAST_WORK_DIR");
  snprintf(c->dir, sizeof c->dir, "/tmp/hf-state-XXXXXX");
  assert_non_null(mkdtemp(c->dir));
  snprintf(c->work_dir, sizeof c->work_dir, "%.40s/" STATE_NAME, c->dir);
  state_begin(c);
  *state = c;
  return 0;
}

int state_case_close(void **state) {
  api_case *c = *state;
  hf_session_close(c->session);
  hf_error_reset(&c->error);
  int status = file_remove_tree(c->dir, NULL) == HF_OK ? 0 : -1;
  free(c);
  return status;
}

char *state_holds(api_case *c) {
  hf_df *df = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, df, NULL);
  hf_df_free(df);
  return rows;
}

void state_holds_say(api_case *c, const char *text) {
  char *rows = state_holds(c);
  if (strstr(rows, text) == NULL) {
    fail_msg("expected %s in the listing, found:\n%s", text, rows);
  }
  free(rows);
}

/* ------------------------------------------------------------------- files */

static _Thread_local struct {
  const char *name;
  void (*each)(const char *path);
  unsigned n;
} walk;

static int walk_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)info;
  if (kind == FTW_F && strstr(path, "/trash/") == NULL &&
      (walk.name == NULL || strcmp(path + at->base, walk.name) == 0)) {
    walk.n++;
    if (walk.each != NULL) {
      walk.each(path);
    }
  }
  return 0;
}

unsigned each_file(const char *dir, const char *name, void (*each)(const char *path)) {
  walk.name = name;
  walk.each = each;
  walk.n = 0;
  nftw(dir, walk_entry, 16, FTW_PHYS);
  return walk.n;
}

unsigned attempts_below(const char *dir) {
  return each_file(dir, "index", NULL);
}

/* ------------------------------------------------------------------- a hold */

void state_hold_totals(api_case *c) {
  char sql[300];
  const char *path = api_file(c, "in.csv", "k,n\n0,1\n1,2\n2,3\n0,8\n1,10\n2,12\n");
  snprintf(sql, sizeof sql, "CREATE OR REPLACE VIEW input AS SELECT * FROM '%s'", path);
  api_run(c, sql);
  api_run(c, "CACHE TABLE totals AS SELECT k, sum(n)::BIGINT AS n FROM input GROUP BY k");
  api_expect(c, STATE_TOTALS, STATE_TOTALS_ROWS);
}

void state_again(api_case *c) {
  state_end(c);
  state_begin(c);
}

void state_has_blocks(api_case *c, unsigned n_attempts) {
  char work[128];
  state_end(c);
  snprintf(work, sizeof work, "%s/work", c->work_dir);
  assert_int_equal(attempts_below(work), n_attempts);
}

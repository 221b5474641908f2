/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Holdfast itself writes: what was computed from them before is dropped, in every session. */
#include "session/session.h"

#include "base/fault.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct written_case {
  char dir[64];
  session *mine, *other;
} written_case;

static int open_case(void **state) {
  static written_case c;
  snprintf(c.dir, sizeof c.dir, "/tmp/hf-written-XXXXXX");
  assert_non_null(mkdtemp(c.dir));
  assert_int_equal(session_open(NULL, 0, NULL, &c.mine, NULL), HF_OK);
  assert_int_equal(session_open(NULL, 0, c.mine, &c.other, NULL), HF_OK);
  *state = &c;
  return 0;
}

static int close_case(void **state) {
  written_case *c = *state;
  session_close(c->other);
  session_close(c->mine);
  return file_remove_tree(c->dir, NULL) != HF_OK;
}

static const char *path_of(const written_case *c, const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", c->dir, name);
  return path;
}

static void put_file(const written_case *c, const char *name, const char *text) {
  FILE *file = fopen(path_of(c, name), "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* A cache node over SQL with the path of a file in it. */
static relation *held_of(const written_case *c, session *s, const char *name, const char *more) {
  char sql[256];
  relation *r = NULL, *held = NULL;
  snprintf(sql, sizeof sql, "SELECT n FROM '%s'%s", path_of(c, name), more);
  assert_int_equal(session_sql(s, sql, NULL, NULL, &r, NULL), HF_OK);
  assert_int_equal(session_cache(s, r, NULL, NULL, &held, NULL), HF_OK);
  relation_release(r);
  return held;
}

static uint64_t rows_of(session *s, const relation *held, hf_profile *profile) {
  uint64_t rows = 0;
  hf_error error = {0};
  if (session_count(s, held, NULL, profile, &rows, &error) != HF_OK) {
    fail_msg("count: %s", error.message);
  }
  return rows;
}

static hf_hold_state state_of(session *s, const relation *held) {
  hf_storage storage;
  assert_int_equal(session_storage(s, held, &storage, NULL), HF_OK);
  return storage.state;
}

typedef struct found {
  unsigned rows;
  char last_drop[40];
} found;

static void note_row(void *context, const hold_row *row) {
  found *f = context;
  f->rows++;
  snprintf(f->last_drop, sizeof f->last_drop, "%s", row->last_drop);
}

static void written_path_drops_holds_of_all_sessions(void **state) {
  written_case *c = *state;
  hf_profile profile;
  put_file(c, "a.csv", "n\n1\n");
  put_file(c, "b.csv", "n\n1\n2\n");
  relation *mine = held_of(c, c->mine, "a.csv", "");
  relation *other = held_of(c, c->other, "*.csv", "");
  relation *apart = held_of(c, c->mine, "b.csv", "");
  assert_int_equal(rows_of(c->mine, mine, &profile), 1);
  assert_int_equal(rows_of(c->other, other, &profile), 3);
  assert_int_equal(rows_of(c->mine, apart, &profile), 2);

  put_file(c, "a.csv", "n\n1\n2\n3\n4\n");
  session_note_written(c->mine, path_of(c, "a.csv"));
  assert_int_equal(state_of(c->mine, mine), HF_HOLD_DECLARED);
  assert_int_equal(state_of(c->other, other), HF_HOLD_DECLARED);
  assert_int_equal(state_of(c->mine, apart), HF_HOLD_MATERIALISED);
  assert_int_equal(rows_of(c->mine, mine, &profile), 4);
  assert_int_equal(rows_of(c->other, other, &profile), 6);
  found f = {0};
  assert_int_equal(session_each_hold(c->other, note_row, &f, NULL), HF_OK);
  assert_int_equal(f.rows, 1);
  assert_string_equal(f.last_drop, "written");

  put_file(c, "new.csv", "n\n7\n"); /* one more for the pattern, none for the others */
  session_note_written(c->other, path_of(c, "new.csv"));
  assert_int_equal(state_of(c->mine, mine), HF_HOLD_MATERIALISED);
  assert_int_equal(rows_of(c->other, other, &profile), 7);

  assert_int_equal(unlink(path_of(c, "new.csv")), 0);
  session_note_written(c->other, path_of(c, "new.csv"));
  assert_int_equal(rows_of(c->other, other, &profile), 6);

  session_note_written(c->mine, c->dir);
  assert_int_equal(state_of(c->mine, mine), HF_HOLD_DECLARED);
  assert_int_equal(state_of(c->mine, apart), HF_HOLD_DECLARED);
  relation_release(mine);
  relation_release(other);
  relation_release(apart);
}

/* Notes writes on the executor's thread, when a task has read its source and writes its first rows: so a fill is
 * always PENDING then, and cannot end before the note. */
typedef struct writer {
  const written_case *c;
  const relation *held;
  const char *text;        /* of the file from then on; NULL: as it was */
  unsigned times;          /* that are left to note */
  unsigned noted, pending; /* notes so far, and those in a fill */
} writer;

static writer *at_work; /* of the hook; one task at a time writes here */

static void note_in_batch(void) {
  writer *w = at_work;
  if (w->times == 0) {
    return;
  }
  w->times--;
  hf_storage storage = {0};
  w->pending +=
      session_storage(w->c->mine, w->held, &storage, NULL) == HF_OK && storage.state == HF_HOLD_PENDING;
  FILE *file = w->text == NULL ? NULL : fopen(path_of(w->c, "a.csv"), "w");
  if (file != NULL) {
    fputs(w->text, file);
    fclose(file);
  }
  session_note_written(w->c->other, path_of(w->c, "a.csv"));
  w->noted++;
}

static uint64_t rows_beside(writer *w, hf_profile *profile) {
  at_work = w;
  fault_set("exchange.batch", note_in_batch);
  uint64_t rows = rows_of(w->c->mine, w->held, profile);
  fault_set("exchange.batch", NULL);
  return rows;
}

/* What such a fill has read may be half of the old file and half of the new one. */
static void written_path_begins_running_fills_again(void **state) {
  written_case *c = *state;
  put_file(c, "a.csv", "n\n1\n");
  relation *held = held_of(c, c->mine, "a.csv", "");
  writer w = {.c = c, .held = held, .text = "n\n1\n2\n", .times = 1};
  hf_profile profile;
  assert_int_equal(rows_beside(&w, &profile), 2);
  assert_int_equal(w.noted, 1);
  assert_int_equal(w.pending, 1);
  assert_int_equal(profile.held_fills, 1); /* the first gave nothing to read */
  assert_int_equal(state_of(c->mine, held), HF_HOLD_MATERIALISED);
  relation_release(held);
}

/* Three claims by all who wait together; then each computes for itself. */
static void written_again_and_again_ends_in_computing_inline(void **state) {
  written_case *c = *state;
  enum { CLAIMS = 3 };
  put_file(c, "a.csv", "n\n1\n2\n");
  relation *held = held_of(c, c->mine, "a.csv", "");
  writer w = {.c = c, .held = held, .times = CLAIMS};
  hf_profile profile;
  assert_int_equal(rows_beside(&w, &profile), 2);
  assert_int_equal(w.noted, CLAIMS);
  assert_int_equal(w.pending, CLAIMS);
  assert_int_equal(profile.held_fills, 0); /* none of the three gave anything */
  assert_int_equal(profile.held_inline, 1);
  assert_non_null(strstr(profile.warning, "written while it was computed"));
  assert_int_equal(rows_of(c->mine, held, &profile), 2);
  assert_int_equal(state_of(c->mine, held), HF_HOLD_MATERIALISED);
  relation_release(held);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, close_case)
  const struct CMUnitTest tests[] = {
      CASE(written_path_drops_holds_of_all_sessions),
      CASE(written_path_begins_running_fills_again),
      CASE(written_again_and_again_ends_in_computing_inline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

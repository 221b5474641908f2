/* SPDX-License-Identifier: Apache-2.0 */
/* A slot in a directory of the test's own, and results as text that are easy to compare. */
#ifndef TESTS_UNIT_ENGINE_RIG_H
#define TESTS_UNIT_ENGINE_RIG_H

#include "engine/engine.h"

#include "base/file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct rig {
  char dir[64], slot_dir[80], spill_dir[80];
  const char *allowed[1];
  engine *slot;
} rig;

/* Fails with the error's text; the call gives its error to `ok_error`. */
#define assert_ok(call)                                                                            \
  do {                                                                                             \
    hf_error ok_error_ = {0}, *ok_error = &ok_error_;                                              \
    if ((call) != HF_OK) {                                                                         \
      fail_msg("%s: %s (%s)", hf_status_name(ok_error->code), ok_error->message, ok_error->cause); \
    }                                                                                              \
  } while (0)

static inline void rig_make_dirs(rig *r) {
  memset(r, 0, sizeof *r);
  snprintf(r->dir, sizeof r->dir, "/tmp/hf-test-XXXXXX");
  assert_non_null(mkdtemp(r->dir));
  snprintf(r->slot_dir, sizeof r->slot_dir, "%s/slot", r->dir);
  snprintf(r->spill_dir, sizeof r->spill_dir, "%s/spill", r->dir);
  assert_ok(file_make_dirs(r->slot_dir, ok_error));
  assert_ok(file_make_dirs(r->spill_dir, ok_error));
  r->allowed[0] = r->dir;
}

static inline engine_options rig_options(const rig *r, unsigned threads, uint64_t memory_bytes) {
  return (engine_options){.kind = ENGINE_SLOT,
                          .threads = threads,
                          .memory_bytes = memory_bytes,
                          .spill_dir = r->spill_dir,
                          .slot_dir = r->slot_dir,
                          .allowed_dirs = r->allowed,
                          .n_allowed_dirs = 1};
}

static inline void rig_open(rig *r, unsigned threads) {
  rig_make_dirs(r);
  engine_options options = rig_options(r, threads, (uint64_t)1 << 30);
  assert_ok(engine_open(&options, &r->slot, ok_error));
}

/* How many entries a directory has; 0 of one that is not there. */
static inline int rig_entries(const char *dir) {
  DIR *entries = opendir(dir);
  if (entries == NULL) {
    return 0;
  }
  int count = -2;
  while (readdir(entries) != NULL) {
    count++;
  }
  closedir(entries);
  return count;
}

/* In a slot's directory is nothing but the one that COPY names, and nothing in that. */
static inline void rig_check_slot_dir(const rig *r) {
  char target[96];
  snprintf(target, sizeof target, "%s/out", r->slot_dir);
  assert_int_equal(rig_entries(r->slot_dir), access(target, F_OK) == 0 ? 1 : 0);
  assert_int_equal(rig_entries(target), 0);
}

/* Closes; a slot's directory must be as empty as it was. */
static inline void rig_close(rig *r) {
  engine_close(r->slot);
  assert_int_equal(access(r->slot_dir, F_OK), 0);
  assert_int_equal(rig_entries(r->slot_dir), 0);
  assert_ok(file_remove_tree(r->dir, ok_error));
}

static inline const char *rig_write(rig *r, const char *name, const char *text, arena *a) {
  const char *path = arena_printf(a, "%s/%s", r->dir, name);
  assert_ok(file_write_whole(path, text, strlen(text), false, ok_error));
  return path;
}

/* ------------------------------------------------------------------------ text */

static inline bool rig_append(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                              size_t n_rows) {
  /* the columns are counted by the caller: context is {n_columns, buf} */
  struct rig_text {
    size_t n_columns;
    buf text;
  } *out = context;
  for (size_t row = 0; row < n_rows; row++) {
    for (size_t i = 0; i < out->n_columns; i++) {
      buf_text(&out->text, i == 0 ? "" : "|");
      if (cells[i][row] == NULL) {
        buf_text(&out->text, "~");
      } else {
        buf_append(&out->text, cells[i][row], lengths[i][row]);
      }
    }
    buf_char(&out->text, '\n');
  }
  return true;
}

/* Rows as lines, columns parted by '|', NULL as '~'. Freed with mem_free. */
static inline char *rig_render(engine *e, const char *sql, size_t n_columns, const engine_input *inputs,
                               size_t n_inputs) {
  struct {
    size_t n_columns;
    buf text;
  } out = {.n_columns = n_columns};
  assert_ok(engine_render(e, &(engine_shown){sql, inputs, n_inputs}, rig_append, &out, ok_error));
  buf_text(&out.text, "");
  return out.text.data == NULL ? strdup("") : buf_take(&out.text);
}

#endif

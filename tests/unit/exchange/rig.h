/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of exchange share: a temporary directory, a sink fed with random
 * arrays, the rows of an input as text.
 */
#ifndef HF_TESTS_EXCHANGE_RIG_H
#define HF_TESTS_EXCHANGE_RIG_H

#include "exchange/exchange.h"

#include "base/file.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct rig {
  char root[64];
  char dir[96]; /* of the attempt, below root */
  arena *memory;
  struct ArrowSchema schema; /* of the rows that are written */
  schema columns;
  block_sink_options options;
} rig;

static inline void rig_columns(rig *r) {
  column *columns = arena_array(r->memory, (size_t)r->schema.n_children, sizeof *columns);
  for (int64_t i = 0; i < r->schema.n_children; i++) {
    columns[i].name = arena_printf(r->memory, "user %d", (int)i);
    assert_int_equal(data_type_from_arrow(r->schema.children[i], r->memory, &columns[i].type, NULL), HF_OK);
  }
  r->columns = (schema){(size_t)r->schema.n_children, columns};
}

static inline void rig_open(rig *r, const char *layout) {
  memset(r, 0, sizeof *r);
  strncpy(r->root, "/tmp/hf_exchange_XXXXXX", sizeof r->root - 1);
  assert_non_null(mkdtemp(r->root));
  snprintf(r->dir, sizeof r->dir, "%s/7/2/3-1", r->root);
  r->memory = arena_new();
  made_schema(layout, &r->schema);
  rig_columns(r);
  r->options = (block_sink_options){.dir = r->dir,
                                    .columns = &r->columns,
                                    .partitions = 1,
                                    .budget_bytes = 64 << 20,
                                    .batch_bytes = 64 << 10,
                                    .block_bytes = 256 << 10};
}

static inline void rig_close(rig *r) {
  r->schema.release(&r->schema);
  arena_free(r->memory);
  assert_int_equal(file_remove_tree(r->root, NULL), HF_OK);
}

static inline bool rig_exists(const rig *r, const char *name) {
  char path[160];
  struct stat info;
  snprintf(path, sizeof path, "%s%s%s", r->dir, name[0] == '\0' ? "" : "/", name);
  return stat(path, &info) == 0;
}

/* Writes `n_arrays` random arrays of `rows` rows through one thread; their rows' text goes to `expected`. */
static inline void rig_write(rig *r, size_t n_arrays, int64_t rows, buf *expected, block_index *out) {
  const sink_ops *ops = block_sink_ops();
  block_sink *sink;
  void *state;
  assert_int_equal(block_sink_new(&r->options, &sink, NULL), HF_OK);
  assert_int_equal(ops->open(sink, &r->schema, &state, NULL), HF_OK);
  for (size_t i = 0; i < n_arrays; i++) {
    struct ArrowArray array;
    made_array(&r->schema, &(made_options){.seed = i + 1, .rows = rows, .null_percent = 10}, &array);
    made_rows_text(&r->schema, &array, expected);
    assert_int_equal(ops->append(state, &array, NULL, NULL), HF_OK);
    array.release(&array);
  }
  assert_int_equal(ops->close(state, NULL), HF_OK);
  ops->discard(state);
  assert_int_equal(block_sink_commit(sink, r->memory, out, NULL), HF_OK);
  block_sink_free(sink);
}

/* The rows of a window as text, whether a column comes as values or as codes. */
static inline void rig_window_text(const struct ArrowSchema *picked, const struct ArrowArray *window,
                                   buf *text) {
  struct ArrowSchema seen = *picked;
  struct ArrowSchema fields[64];
  struct ArrowSchema *children[64];
  for (int64_t i = 0; i < picked->n_children; i++) {
    fields[i] = *picked->children[i];
    children[i] = &fields[i];
    if (window->children[i]->dictionary != NULL) {
      const source_dictionary *d = (const void *)window->children[i]->dictionary;
      fields[i].format = d->code_bytes == 1 ? "C" : "S";
      fields[i].dictionary = picked->children[i];
    }
  }
  seen.children = children;
  made_rows_text(&seen, window, text);
}

/* Reads what `options` says, through one thread, into text. Returns the first failure. */
static inline hf_status rig_read(const block_input_options *options, const size_t *columns, size_t n_columns,
                                 buf *text, hf_error *error) {
  const source_ops *ops = block_input_ops();
  block_input *input;
  void *scan;
  void *state;
  unsigned threads = 0;
  HF_TRY(block_input_new(options, &input, error));
  const struct ArrowSchema *all = block_input_arrow_schema(input);
  struct ArrowSchema picked = *all;
  struct ArrowSchema *children[64];
  for (size_t i = 0; i < n_columns; i++) {
    children[i] = all->children[columns[i]];
  }
  picked.children = children;
  picked.n_children = (int64_t)n_columns;
  assert_int_equal(ops->open(input, columns, n_columns, &scan, &threads, NULL), HF_OK);
  assert_int_equal(ops->thread_open(scan, &state, NULL), HF_OK);
  hf_status status = HF_OK;
  uint64_t rows = 0;
  for (;;) {
    struct ArrowArray window;
    status = ops->next(state, &window, error);
    if (status != HF_OK || window.length == 0) {
      break;
    }
    assert_true(window.length <= 2048);
    rows += (uint64_t)window.length;
    rig_window_text(&picked, &window, text);
    window.release(&window);
  }
  if (status == HF_OK) {
    assert_int_equal(rows, block_input_rows(input));
    assert_int_equal(rows, block_input_rows_read(input));
  }
  ops->thread_close(state);
  ops->close(scan);
  block_input_free(input);
  return status;
}

/* Reads all columns of the rig's attempt, in order. */
static inline void rig_read_all(const rig *r, bool verify, buf *text) {
  size_t columns[64];
  for (size_t i = 0; i < 64; i++) {
    columns[i] = i;
  }
  block_location location = {.dir = r->dir};
  block_input_options options = {.locations = &location, .n_locations = 1, .ordered = true, .verify = verify};
  hf_error error = {0};
  if (rig_read(&options, columns, r->columns.n_columns, text, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
}

static inline void rig_expect_text(const buf *expected, const buf *found) {
  if (strcmp(buf_cstr(expected), buf_cstr(found)) != 0) {
    fail_msg("expected\n%.1500s\nfound\n%.1500s", buf_cstr(expected), buf_cstr(found));
  }
}

#endif

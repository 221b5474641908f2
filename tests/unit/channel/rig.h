/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of channels share: a set in a temporary directory, writers and
 * readers on threads of their own or step by step, rows that are numbered.
 */
#ifndef HF_TESTS_CHANNEL_RIG_H
#define HF_TESTS_CHANNEL_RIG_H

#include "channel/channel_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "support/made_arrow.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RIG_MOST_EDGES = 8 };

/* Rows are {number, text of about 100 bytes}. */
typedef struct rig {
  char root[64], spool[80];
  arena *memory;
  struct ArrowSchema schema;
  schema columns;
  size_t n_edges;
  channel_edge edges[RIG_MOST_EDGES];
  channel_set_options options;
  channel_set *set;
} rig;

static inline void rig_open_layout(rig *r, const char *layout) {
  memset(r, 0, sizeof *r);
  strncpy(r->root, "/tmp/hf_channel_XXXXXX", sizeof r->root - 1);
  assert_non_null(mkdtemp(r->root));
  snprintf(r->spool, sizeof r->spool, "%s/spool", r->root);
  r->memory = arena_new();
  made_schema(layout, &r->schema);
  column *columns = arena_array(r->memory, (size_t)r->schema.n_children, sizeof *columns);
  for (int64_t i = 0; i < r->schema.n_children; i++) {
    columns[i].name = arena_printf(r->memory, "c%d", (int)i);
    assert_int_equal(data_type_from_arrow(r->schema.children[i], r->memory, &columns[i].type, NULL), HF_OK);
  }
  r->columns = (schema){(size_t)r->schema.n_children, columns};
  r->options = (channel_set_options){.edges = r->edges, .bound_bytes = 8 << 10, .spool_dir = r->spool};
}

static inline void rig_open(rig *r) {
  rig_open_layout(r, "+s(l;u)");
}

static inline channel_edge *rig_edge(rig *r, uint32_t writers, uint32_t readers, channel_share share) {
  assert_true(r->n_edges < RIG_MOST_EDGES);
  channel_edge *edge = &r->edges[r->n_edges++];
  *edge = (channel_edge){.name = arena_printf(r->memory, "edge %zu", r->n_edges - 1),
                         .columns = &r->columns,
                         .writers = writers,
                         .readers = readers,
                         .partitions = share == CHANNEL_PARTITION ? readers : 1,
                         .share = share};
  return edge;
}

/* Opens with one edge, from one task to one other. */
static inline channel_edge *rig_open_edge(rig *r, channel_share share) {
  rig_open(r);
  return rig_edge(r, 1, 1, share);
}

static inline void rig_start(rig *r, uint32_t tasks) {
  r->options.n_edges = r->n_edges;
  r->options.tasks = tasks;
  hf_error error = {0};
  if (channel_set_new(&r->options, &r->set, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
}

static inline bool rig_has_spool(const rig *r) {
  struct stat info;
  return stat(r->spool, &info) == 0;
}

static inline void rig_close(rig *r) {
  channel_set_free(r->set);
  assert_false(rig_has_spool(r));
  r->schema.release(&r->schema);
  arena_free(r->memory);
  assert_int_equal(file_remove_tree(r->root, NULL), HF_OK);
}

/* Waits until so many tasks of the set wait; it looks every millisecond. */
static inline void rig_wait_for(rig *r, uint32_t waiting) {
  pthread_cond_t tick;
  uint64_t deadline = clock_monotonic_us() + 60000000;
  cond_init(&tick);
  pthread_mutex_lock(&r->set->lock);
  while (r->set->n_waiting != waiting && clock_monotonic_us() < deadline) {
    cond_wait_until(&tick, &r->set->lock, clock_monotonic_us() + 1000);
  }
  uint32_t n = r->set->n_waiting;
  pthread_mutex_unlock(&r->set->lock);
  pthread_cond_destroy(&tick);
  assert_int_equal(n, waiting);
}

/* An array of rows numbered from `first`. */
static inline void rig_rows(const struct ArrowSchema *shape, int64_t first, int64_t rows,
                            struct ArrowArray *out) {
  made_array(shape, &(made_options){.seed = (uint64_t)first * 31 + 7, .rows = rows}, out);
  int64_t *numbers = (int64_t *)(uintptr_t)out->children[0]->buffers[1];
  for (int64_t i = 0; i < rows; i++) {
    numbers[i] = first + i;
  }
}

/* ------------------------------------------------------------------- writers */

/* One task that writes `arrays` arrays of `rows` rows, numbered from `first` on. */
typedef struct rig_writer {
  rig *r;
  channel_writer_options options;
  size_t edges[RIG_MOST_EDGES];
  int64_t first, arrays, rows;
  channel_writer *writer;
  void *state;
  hf_status status;
  hf_error error;
  bool is_unwanted;
  uint64_t written;
  pthread_t thread;
} rig_writer;

static inline void rig_writer_init(rig_writer *w, rig *r, uint32_t task, uint32_t number, size_t edge) {
  memset(w, 0, sizeof *w);
  w->r = r;
  w->edges[0] = edge;
  w->options = (channel_writer_options){
      .task = task, .number = number, .n_edges = 1, .edges = w->edges, .batch_bytes = 1 << 10};
  w->first = (int64_t)number * 1000000;
  w->arrays = 20;
  w->rows = 100;
}

static inline void rig_writer_begin(rig_writer *w) {
  w->status = channel_writer_new(w->r->set, &w->options, &w->writer, &w->error);
  if (w->status == HF_OK) {
    w->status = channel_writer_ops()->open(w->writer, &w->r->schema, &w->state, &w->error);
  }
}

static inline void rig_writer_append(rig_writer *w, int64_t rows) {
  struct ArrowArray array;
  uint32_t partitions = w->r->edges[w->edges[0]].partitions;
  uint32_t *numbers = calloc((size_t)rows + 1, sizeof *numbers);
  rig_rows(&w->r->schema, w->first, rows, &array);
  for (int64_t i = 0; i < rows; i++) {
    numbers[i] = (uint32_t)((uint64_t)(w->first + i) % partitions);
  }
  w->first += rows;
  w->status = channel_writer_ops()->append(w->state, &array, partitions > 1 ? numbers : NULL, &w->error);
  array.release(&array);
  free(numbers);
}

/* Whatever came before: closes, finishes when all went well, frees. */
static inline void rig_writer_finish(rig_writer *w) {
  if (w->state != NULL) {
    if (w->status == HF_OK) {
      w->status = channel_writer_ops()->close(w->state, &w->error);
    }
    channel_writer_ops()->discard(w->state);
  }
  w->is_unwanted = w->writer != NULL && channel_writer_is_unwanted(w->writer);
  w->written = w->writer == NULL ? 0 : channel_writer_rows(w->writer);
  if (w->writer != NULL && (w->status == HF_OK || w->is_unwanted)) {
    hf_error_reset(&w->error);
    w->status = channel_writer_finish(w->writer, &w->error);
  }
  if (w->status != HF_OK && w->r->set->error.code == HF_OK) {
    channel_set_fail(w->r->set, &w->error);
  }
  channel_writer_free(w->writer);
}

static inline void rig_writer_end(rig_writer *w) {
  rig_writer_finish(w);
  channel_set_end_task(w->r->set, w->options.task);
}

static inline void *rig_writer_run(void *context) {
  rig_writer *w = context;
  rig_writer_begin(w);
  for (int64_t i = 0; w->status == HF_OK && i < w->arrays; i++) {
    rig_writer_append(w, w->rows);
  }
  rig_writer_end(w);
  return NULL;
}

static inline void rig_writer_start(rig_writer *w) {
  assert_int_equal(pthread_create(&w->thread, NULL, rig_writer_run, w), 0);
}

static inline void rig_writer_expect(rig_writer *w, hf_status expected) {
  if (w->status != expected) {
    fail_msg("a writer ended with %d and not %d: %s", w->status, expected, w->error.message);
  }
  hf_error_reset(&w->error);
}

static inline void rig_writer_join(rig_writer *w, hf_status expected) {
  pthread_join(w->thread, NULL);
  rig_writer_expect(w, expected);
}

/* ------------------------------------------------------------------- readers */

/* One task that reads an edge, `most` rows of it at most. */
typedef struct rig_reader {
  rig *r;
  channel_reader_options options;
  uint64_t most;
  bool with_texts;
  channel_reader *reader;
  void *scan, *state;
  hf_status status;
  hf_error error;
  uint64_t n;
  int64_t *numbers;
  buf text;
  bool is_at_end;
  pthread_t thread;
} rig_reader;

static inline void rig_reader_init(rig_reader *d, rig *r, uint32_t task, uint32_t number, size_t edge) {
  memset(d, 0, sizeof *d);
  d->r = r;
  d->options = (channel_reader_options){.task = task, .number = number, .edge = edge, .threads = 1};
  d->most = UINT64_MAX;
  d->numbers = calloc(1000000, sizeof *d->numbers);
}

static inline void rig_reader_scan(rig_reader *d) {
  static const size_t columns[] = {0, 1};
  unsigned threads = 0;
  if (d->reader == NULL) {
    d->status = channel_reader_new(d->r->set, &d->options, &d->reader, &d->error);
  }
  if (d->status == HF_OK) {
    d->status = channel_reader_ops()->open(d->reader, columns, 2, &d->scan, &threads, &d->error);
  }
  if (d->status == HF_OK) {
    d->status = channel_reader_ops()->thread_open(d->scan, &d->state, &d->error);
  }
}

static inline void rig_reader_next(rig_reader *d) {
  struct ArrowArray window = {0};
  d->status = channel_reader_ops()->next(d->state, &window, &d->error);
  if (d->status == HF_OK) {
    const int64_t *numbers = window.length == 0 ? NULL : window.children[0]->buffers[1];
    d->is_at_end = window.length == 0;
    for (int64_t i = 0; i < window.length && d->n < 1000000; i++) {
      d->numbers[d->n++] = numbers[window.children[0]->offset + i];
    }
    if (d->with_texts && window.length > 0) {
      made_rows_text(&d->r->schema, &window, &d->text);
    }
  }
  if (window.release != NULL) {
    window.release(&window);
  }
}

static inline void rig_reader_scan_end(rig_reader *d) {
  if (d->state != NULL) {
    channel_reader_ops()->thread_close(d->state);
  }
  if (d->scan != NULL) {
    channel_reader_ops()->close(d->scan);
  }
  d->state = d->scan = NULL;
}

static inline void rig_reader_end(rig_reader *d) {
  rig_reader_scan_end(d);
  channel_reader_free(d->reader);
  channel_set_end_task(d->r->set, d->options.task);
}

static inline void rig_reader_read(rig_reader *d) {
  while (d->status == HF_OK && !d->is_at_end && d->n < d->most) {
    rig_reader_next(d);
  }
}

static inline void *rig_reader_run(void *context) {
  rig_reader *d = context;
  rig_reader_scan(d);
  rig_reader_read(d);
  rig_reader_end(d);
  return NULL;
}

static inline void rig_reader_start(rig_reader *d) {
  assert_int_equal(pthread_create(&d->thread, NULL, rig_reader_run, d), 0);
}

static inline void rig_reader_expect(rig_reader *d, hf_status expected) {
  if (d->status != expected) {
    fail_msg("a reader ended with %d and not %d: %s", d->status, expected, d->error.message);
  }
  hf_error_reset(&d->error);
}

static inline void rig_reader_join(rig_reader *d, hf_status expected) {
  pthread_join(d->thread, NULL);
  rig_reader_expect(d, expected);
}

static inline void rig_reader_free(rig_reader *d) {
  free(d->numbers);
  buf_reset(&d->text);
}

/* Its rows are those numbered from `first` on, in order. */
static inline void rig_reader_is_run(const rig_reader *d, uint64_t at, int64_t first, uint64_t n) {
  assert_true(d->n >= at + n);
  for (uint64_t i = 0; i < n; i++) {
    assert_int_equal(d->numbers[at + i], first + (int64_t)i);
  }
}

static inline channel_stats rig_stats(rig *r, size_t edge) {
  channel_stats stats;
  channel_set_stats(r->set, edge, &stats);
  return stats;
}

static inline void rig_check(rig *r, hf_status expected) {
  hf_error error = {0};
  hf_status status = channel_set_check(r->set, &error);
  if (status != expected) {
    fail_msg("the set's check says %d and not %d: %s", status, expected, error.message);
  }
  hf_error_reset(&error);
}

/* ---------------------------------------------------------------------- pair */

/* Starts a set of one edge with its writer, task 0, and its reader, task 1. */
static inline void rig_start_pair(rig *r, rig_writer *w, rig_reader *d) {
  rig_start(r, 2);
  rig_writer_init(w, r, 0, 0, 0);
  rig_reader_init(d, r, 1, 0, 0);
}

/* After both have succeeded. */
static inline void rig_close_pair(rig *r, rig_reader *d) {
  rig_check(r, HF_OK);
  rig_reader_free(d);
  rig_close(r);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink and a source in memory: what a task writes becomes Arrow IPC messages,
 * which hf_blocks reads back in windows of a chosen size. Built of src/arrow, as
 * blocks are.
 */
#ifndef TESTS_UNIT_ENGINE_STORE_H
#define TESTS_UNIT_ENGINE_STORE_H

#include "rig.h"

#include "arrow/ipc.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

enum { STORE_MOST_BATCHES = 4096, STORE_MOST_PARTITIONS = 64 };

typedef struct store {
  pthread_mutex_t lock;
  struct ArrowSchema block_schema; /* lock; of the first open */
  buf batches[STORE_MOST_BATCHES]; /* lock */
  size_t n_batches;
  atomic_int opened, closed, discarded, appended;
  atomic_llong rows;
  atomic_llong partition_rows[STORE_MOST_PARTITIONS];
  int fail_at;      /* the append that fails; 0: none */
  int fail_next_at; /* the call of next that fails; 0: none */
  /* reading */
  unsigned threads;
  int64_t window;
  atomic_int taken;
  atomic_int scans, readers;
} store;

static inline void store_init(store *s) {
  memset(s, 0, sizeof *s);
  pthread_mutex_init(&s->lock, NULL);
  s->threads = 2;
  s->window = 2048;
}

static inline void store_reset(store *s) {
  if (s->block_schema.release != NULL) {
    s->block_schema.release(&s->block_schema);
  }
  for (size_t i = 0; i < s->n_batches; i++) {
    buf_reset(&s->batches[i]);
  }
  pthread_mutex_destroy(&s->lock);
}

/* ---------------------------------------------------------------------- sink */

typedef struct store_writer {
  store *store;
  batch_builder *builder;
} store_writer;

static inline hf_status store_open(void *sink, const struct ArrowSchema *face, void **state,
                                   hf_error *error) {
  store *s = sink;
  store_writer *w = mem_zalloc(1, sizeof *w);
  w->store = s;
  *state = w;
  atomic_fetch_add(&s->opened, 1);
  pthread_mutex_lock(&s->lock);
  hf_status status =
      s->block_schema.release == NULL ? arrow_block_schema(face, &s->block_schema, error) : HF_OK;
  pthread_mutex_unlock(&s->lock);
  HF_TRY(status);
  return batch_builder_new_for(face, BATCH_OF_ENGINE, &w->builder, error);
}

static inline hf_status store_flush(store_writer *w, hf_error *error) {
  store *s = w->store;
  if (batch_builder_rows(w->builder) == 0) {
    return HF_OK;
  }
  buf message = {0};
  uint64_t written = 0;
  HF_TRY(ipc_write_batch(w->builder, &message, -1, "memory", &written, error));
  pthread_mutex_lock(&s->lock);
  if (s->n_batches < STORE_MOST_BATCHES) {
    s->batches[s->n_batches++] = message;
  }
  pthread_mutex_unlock(&s->lock);
  batch_builder_clear(w->builder, 0);
  return HF_OK;
}

static inline hf_status store_append(void *state, const struct ArrowArray *rows, const uint32_t *partitions,
                                     hf_error *error) {
  store_writer *w = state;
  store *s = w->store;
  int number = atomic_fetch_add(&s->appended, 1) + 1;
  if (s->fail_at != 0 && number >= s->fail_at) {
    error_set(error, HF_E_DISK_FULL, "the test's disk is full");
    error->position = 77;
    return HF_E_DISK_FULL;
  }
  atomic_fetch_add(&s->rows, rows->length);
  for (int64_t i = 0; partitions != NULL && i < rows->length; i++) {
    atomic_fetch_add(&s->partition_rows[partitions[i]], 1);
  }
  if (batch_builder_data_bytes(w->builder) > (size_t)64 << 20) {
    HF_TRY(store_flush(w, error));
  }
  return batch_builder_append(w->builder, rows, 0, rows->length, error);
}

static inline hf_status store_close(void *state, hf_error *error) {
  store_writer *w = state;
  atomic_fetch_add(&w->store->closed, 1);
  return store_flush(w, error);
}

static inline void store_discard(void *state) {
  store_writer *w = state;
  atomic_fetch_add(&w->store->discarded, 1);
  batch_builder_free(w->builder);
  mem_free(w);
}

static const sink_ops store_sink = {store_open, store_append, store_close, store_discard};

/* -------------------------------------------------------------------- source */

typedef struct store_scan {
  store *store;
  ipc_decoder *decoder;
  pthread_mutex_t lock; /* guards the decoder */
  size_t *columns;
  size_t n_columns;
  atomic_size_t next;
} store_scan;

typedef struct store_reader {
  store_scan *scan;
  slicer *slicer;
  struct ArrowArray batch; /* length 0: take the next */
  int64_t at;
} store_reader;

static inline hf_status store_scan_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                                        unsigned *threads, hf_error *error) {
  store *s = source;
  store_scan *c = mem_zalloc(1, sizeof *c);
  c->store = s;
  c->n_columns = n_columns;
  c->columns = mem_zalloc(n_columns, sizeof *c->columns);
  memcpy(c->columns, columns, n_columns * sizeof *c->columns);
  pthread_mutex_init(&c->lock, NULL);
  atomic_fetch_add(&s->scans, 1);
  *scan = c;
  *threads = s->threads;
  return ipc_decoder_new(&s->block_schema, columns, n_columns, &c->decoder, error);
}

static inline hf_status store_reader_open(void *scan, void **state, hf_error *error) {
  store_scan *c = scan;
  store_reader *r = mem_zalloc(1, sizeof *r);
  r->scan = c;
  *state = r;
  atomic_fetch_add(&c->store->readers, 1);
  return slicer_new(&c->store->block_schema, c->columns, c->n_columns, &r->slicer, error);
}

static inline hf_status store_next(void *state, struct ArrowArray *out, hf_error *error) {
  store_reader *r = state;
  store_scan *c = r->scan;
  int number = atomic_fetch_add(&c->store->taken, 1) + 1;
  if (c->store->fail_next_at != 0 && number >= c->store->fail_next_at) {
    return error_set(error, HF_E_BLOCK_CORRUPT, "the test's block is damaged");
  }
  if (r->batch.release == NULL || r->at >= r->batch.length) {
    if (r->batch.release != NULL) {
      r->batch.release(&r->batch);
    }
    size_t i = atomic_fetch_add(&c->next, 1);
    r->at = 0;
    if (i >= c->store->n_batches) {
      memset(out, 0, sizeof *out);
      return HF_OK;
    }
    ipc_cursor cursor = {c->store->batches[i].data, c->store->batches[i].length};
    ipc_read_options options = {.validate = true};
    pthread_mutex_lock(&c->lock);
    hf_status status = ipc_read_batch(c->decoder, &cursor, &options, &r->batch, error);
    pthread_mutex_unlock(&c->lock);
    HF_TRY(status);
  }
  int64_t left = r->batch.length - r->at, n = left < c->store->window ? left : c->store->window;
  slicer_cut(r->slicer, &r->batch, r->at, n, out);
  r->at += n;
  return HF_OK;
}

static inline void store_reader_close(void *state) {
  store_reader *r = state;
  if (r->batch.release != NULL) {
    r->batch.release(&r->batch);
  }
  slicer_free(r->slicer);
  atomic_fetch_sub(&r->scan->store->readers, 1);
  mem_free(r);
}

static inline void store_scan_close(void *scan) {
  store_scan *c = scan;
  ipc_decoder_free(c->decoder);
  atomic_fetch_sub(&c->store->scans, 1);
  pthread_mutex_destroy(&c->lock);
  mem_free(c->columns);
  mem_free(c);
}

static const source_ops store_source = {store_scan_open, store_reader_open, store_next, store_reader_close,
                                        store_scan_close};

/* ------------------------------------------------------------------- together */

static inline engine_task store_task(store *s, const char *sql) {
  return (engine_task){.id = "t-1", .sql = sql, .partitions = 1, .ops = &store_sink, .sink = s};
}

/* Runs a query into the store, in order. */
static inline engine_task_stats store_fill(store *s, engine *e, const char *sql) {
  engine_task task = store_task(s, sql);
  engine_task_stats stats;
  task.ordered = true;
  assert_ok(engine_run_task(e, &task, &stats, ok_error));
  return stats;
}

static inline engine_input store_input(store *s, const char *id, const schema *columns) {
  return (engine_input){.id = id,
                        .ops = &store_source,
                        .source = s,
                        .columns = columns,
                        .block_schema = &s->block_schema,
                        .rows = (uint64_t)s->rows};
}

#endif

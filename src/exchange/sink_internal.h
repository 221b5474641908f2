/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sink (sink.c), its threads (sink_state.c) and the writer of client data
 * (ingest.c) share. Internal to src/exchange.
 */
#ifndef HF_EXCHANGE_SINK_INTERNAL_H
#define HF_EXCHANGE_SINK_INTERNAL_H

#include "arrow/batch.h"
#include "exchange/exchange.h"

#include <pthread.h>
#include <stdatomic.h>

/* A file that is complete. */
typedef struct written_file {
  uint32_t number;
  uint64_t bytes;
  size_t n_blocks;
  block *blocks;
  uint64_t *parts; /* checksums of the blocks, columns + 1 each */
} written_file;

struct block_sink {
  arena *memory;
  block_sink_options options; /* texts and columns are our own */
  schema columns;
  bool has_dir, is_committed;
  _Atomic uint32_t n_opened; /* numbers the files */
  _Atomic uint32_t n_open;   /* states that hold memory: they share the budget */
  _Atomic uint64_t buffered_bytes, peak_bytes;
  pthread_mutex_t lock;
  buf arrow_schema;      /* guarded by lock; the schema message, empty before the first file */
  size_t n_written;      /* guarded by lock */
  written_file *written; /* guarded by lock */
};

/* Counts memory that a thread took or gave back. Thread: any. */
void sink_account(block_sink *s, int64_t change);
/* Makes the schema message, once, of the first rows' schema; NULL: of the columns. Thread: any. */
hf_status sink_schema(block_sink *s, const struct ArrowSchema *incoming, hf_error *error);
/* Takes a complete file's blocks; zeroes *file. Thread: any. */
hf_status sink_take_written(block_sink *s, written_file *file, hf_error *error);

/* ------------------------------------------------------------ sink_state.c */

typedef struct sink_state sink_state;

/* As the sink's operations, for arrays of the given source. */
hf_status sink_state_open(block_sink *s, const struct ArrowSchema *incoming, batch_source source,
                          sink_state **out, hf_error *error);
hf_status sink_state_append(sink_state *t, const struct ArrowArray *rows, const uint32_t *partitions,
                            hf_error *error);
hf_status sink_state_close(sink_state *t, hf_error *error);
void sink_state_discard(sink_state *t);

#endif

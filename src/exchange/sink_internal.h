/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sink (sink.c), its threads (sink_state.c) and the writer of client data
 * (ingest.c) share. Internal to src/exchange.
 */
#ifndef HF_EXCHANGE_SINK_INTERNAL_H
#define HF_EXCHANGE_SINK_INTERNAL_H

#include "arrow/batch.h"
#include "arrow/ipc.h"
#include "exchange/exchange.h"

#include <pthread.h>
#include <stdatomic.h>

/* A file that is complete. */
typedef struct written_file {
  uint32_t number;
  uint64_t bytes;
  size_t n_blocks;
  block *blocks;
  uint64_t *parts;     /* checksums of the blocks, columns + 1 each */
  block_range *ranges; /* of the blocks, one a column each; NULL: not kept */
  size_t n_dictionaries;
  block_dictionary *dictionaries; /* their pieces too are the file's */
} written_file;

/* Zeroes it. */
void written_file_reset(written_file *file);

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
  size_t n_watched;
  range_summary *watched; /* guarded by lock, but for the columns' numbers */
};

/* Counts memory that a thread took or gave back. Thread: any. */
void sink_account(block_sink *s, int64_t change);
/* Makes the schema message, once, of the first rows' schema; NULL: of the columns. Thread: any. */
hf_status sink_schema(block_sink *s, const struct ArrowSchema *incoming, hf_error *error);
/* Appends the schema message of a file in which some columns have codes. Thread: any, after sink_schema. */
hf_status sink_coded_schema(const block_sink *s, const uint8_t *code_bytes, buf *out, hf_error *error);
/* Takes a complete file's blocks; zeroes *file. Thread: any. */
hf_status sink_take_written(block_sink *s, written_file *file, hf_error *error);
/* What one thread of a sink sees in the sink's watched columns. */
typedef struct sink_watch sink_watch;
/* Takes it, once. Thread: any. */
void sink_take_watched(block_sink *s, sink_watch *w);

/* ----------------------------------------------------------- sink_coding.c */

/* The dictionaries of one thread of a sink whose output is held, and the ranges of its open block. */
typedef struct sink_coding sink_coding;

hf_status sink_coding_new(const block_sink *s, sink_coding **out, hf_error *error);
void sink_coding_free(sink_coding *c);
/* Bytes of memory that it occupies. */
size_t sink_coding_bytes(const sink_coding *c);
/* Decides by a first batch which columns have codes. Call once. */
hf_status sink_coding_judge(sink_coding *c, const batch_builder *b, hf_error *error);
/* Begins a file: of the dictionaries nothing is written in it. */
void sink_coding_begin_file(sink_coding *c);
/* Bytes of a code, one number a column. */
const uint8_t *sink_coding_code_bytes(const sink_coding *c);
/* Makes the codes of a batch. *is_full: a column has given up, or gets wider codes: the file must end, and the batch be coded
 * anew for the next. */
hf_status sink_coding_encode(sink_coding *c, const batch_builder *b, bool *is_full, hf_error *error);
const ipc_codes *sink_coding_codes(const sink_coding *c);
/* Tells whether the codes refer to entries that are not in the file yet. */
bool sink_coding_has_news(const sink_coding *c);
/* Writes those entries; `offset` is the file's end, and moved. */
hf_status sink_coding_write(sink_coding *c, const ipc_target *to, uint64_t *offset, hf_error *error);
/* Gives the dictionaries of the file to what was written of it. */
hf_status sink_coding_end_file(sink_coding *c, written_file *file, hf_error *error);
/* The ranges of the open block: emptied, widened by the batch that was coded last, as they are. */
void sink_coding_begin_block(sink_coding *c);
void sink_coding_widen(sink_coding *c, const batch_builder *b);
const block_range *sink_coding_ranges(const sink_coding *c);

/* ------------------------------------------------------------ sink_watch.c */

/* Errors: OUT_OF_MEMORY, INTERNAL (values are not as wide as the type says). */
hf_status sink_watch_new(const block_sink *s, const batch_builder *model, sink_watch **out, hf_error *error);
void sink_watch_free(sink_watch *w);
/* Bytes of memory that it occupies. */
size_t sink_watch_bytes(const sink_watch *w);
void sink_watch_batch(sink_watch *w, const batch_builder *b);
/* Adds what it saw to one summary a watched column; once. */
void sink_watch_join(sink_watch *w, range_summary *to);

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

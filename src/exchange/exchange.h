/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shuffle blocks on disk: the sink that writes an attempt's files, the index
 * that commits it, the input that reads blocks back for a task, and the stream
 * that hands a result to a client.
 */
#ifndef HF_EXCHANGE_EXCHANGE_H
#define HF_EXCHANGE_EXCHANGE_H

#include "arrow/ipc.h"
#include "arrow/type.h"
#include "base/arena.h"
#include "engine/engine.h"
#include "exchange/range.h"

/* ------------------------------------------------------------------- index */

/* What a block holds in a column: keys (exchange/range.h) of its least and its largest value. */
typedef struct block_range {
  uint64_t nulls;
  bool is_known; /* the keys say something: a value that is not NULL is there, and its type has keys */
  range_key least, most;
} block_range;

/* A run of record batches of one partition in one file: the unit of checksum, hand-out and pruning. */
typedef struct block {
  uint32_t file; /* t<file>.arrow */
  uint32_t partition;
  uint64_t offset, bytes, rows;
  const uint64_t *parts;     /* columns + 1 checksums: see block_checksum_add */
  uint64_t checksum;         /* XXH3 of the parts */
  const block_range *ranges; /* one a column; NULL: not known */
} block;

/* A dictionary message of a file. */
typedef struct block_piece {
  uint64_t offset, bytes, entries;
  uint64_t checksum; /* XXH3 of the bytes */
} block_piece;

/* The dictionary of a column in a file, in pieces: each stands before the blocks that use its entries. */
typedef struct block_dictionary {
  uint32_t file, column;
  uint8_t code_bytes; /* of the column's codes in the file's batches: 1 or 2 */
  uint32_t n_pieces;
  const block_piece *pieces;
} block_dictionary;

typedef struct block_index {
  schema columns;           /* user names and types */
  const void *arrow_schema; /* Arrow's schema message of the files; never empty */
  size_t arrow_schema_bytes;
  uint32_t partitions;
  uint32_t n_files;
  bool ordered;               /* blocks are in row order */
  uint64_t rows, bytes;       /* totals of the blocks */
  const uint64_t *file_bytes; /* n_files lengths */
  size_t n_dictionaries;
  const block_dictionary *dictionaries; /* by file, then column */
  /* how rows got their partition: by these columns and the hash of this version; no columns: not known */
  uint32_t hash_version;
  uint32_t n_hash_columns;
  const uint32_t *hash_columns;
  bool has_ranges; /* every block has */
  size_t n_blocks;
  const block *blocks; /* in file order; ordered: in row order */
} block_index;

/*
 * A block's checksums, so that a reader checks what it reads and no more: part 0 covers the headers of its batches, part
 * i + 1 the buffers of column i; each is XXH3 of a piece, seeded with that of the pieces before it, from 0.
 */
void block_checksum_add(uint64_t *parts, size_t part, const void *bytes, size_t length);

/* Largest encoded index that is read: a million blocks of 25 columns. */
#define BLOCK_INDEX_LARGEST_BYTES ((size_t)256 << 20)

/* Encodes / decodes an index; decode checks the footer checksum and every bound. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY. */
hf_status block_index_encode(const block_index *index, buf *out, hf_error *error);
hf_status block_index_decode(const void *bytes, size_t length, arena *a, block_index *out, hf_error *error);
/* Reads <dir>/index. Errors: BLOCK_MISSING when there is none. */
hf_status block_index_load(const char *dir, arena *a, block_index *out, hf_error *error);

/* -------------------------------------------------------------------- sink */

typedef struct block_sink_options {
  const char *dir;       /* the attempt's directory; made by the sink */
  const schema *columns; /* of the output, without a partition column */
  uint32_t partitions;
  bool ordered;
  uint64_t budget_bytes; /* of all threads together */
  uint64_t batch_bytes;  /* a batch is written when it holds as much */
  uint64_t block_bytes;  /* a block is closed before it holds more; one batch is always taken */
  bool durable;          /* sync before the commit */
  bool
      held; /* will be read again and again: columns whose values repeat get dictionaries, blocks their ranges */
  ipc_compression compression; /* of the batches; readers find it in their headers */
  size_t n_watched; /* see block_sink_watched; columns without keys of whole numbers are left out; copied */
  const uint32_t *watched;
  uint32_t hash_version; /* see block_index; copied */
  uint32_t n_hash_columns;
  const uint32_t *hash_columns;
} block_sink_options;

typedef struct block_sink block_sink;

/* Makes the directory; copies the options. Thread: open/append/close run on DuckDB's threads in parallel, the rest on the
 * task's. */
hf_status block_sink_new(const block_sink_options *options, block_sink **out, hf_error *error);
/* What to give to engine_run_task together with the sink itself. */
const sink_ops *block_sink_ops(void);
/* Writes the index last, under a temporary name, and renames it: from here the attempt exists. *out lives in `a`. */
hf_status block_sink_commit(block_sink *s, arena *a, block_index *out, hf_error *error);
/* Frees; without a commit the directory is removed. Accepts NULL. */
void block_sink_free(block_sink *s);
/* What was written in the columns that are watched, in the sink's memory; after the commit. */
const range_summary *block_sink_watched(const block_sink *s, size_t *n);
/* The largest sum of buffered bytes so far. */
uint64_t block_sink_peak_bytes(const block_sink *s);

/* ------------------------------------------------------------------- input */

/* One attempt whose blocks are read. */
typedef struct block_location {
  const char *dir;
  uint32_t partition_first, partition_count; /* of its partitions; count 0: all */
  /* of `share_of` parts of these blocks, as equal as can be and in their order, so many from `share_first` on;
   * share_of 0: all */
  uint32_t share_first, share_count, share_of;
} block_location;

/*
 * Holds attempts open between tasks: their files stay mapped, their index decoded, and a block that was checked is not
 * checked again while its file is unchanged (size, inode, times). Thread: any.
 */
typedef struct block_keeper block_keeper;
block_keeper *block_keeper_new(void);
/* Accepts NULL. Readers that are at work keep what they opened. */
void block_keeper_free(block_keeper *k);
/* Lets go of the attempts whose directories lie right in a stage's, before they are deleted. */
void block_keeper_forget(block_keeper *k, const char *stage_dir);

typedef struct block_input block_input;

typedef struct block_input_options {
  const block_location *locations;
  size_t n_locations;
  bool ordered; /* hand out in order, to one thread */
  bool verify;  /* what is read of a block against its checksums, once while its attempt is open */
  unsigned threads;
  block_keeper *keeper; /* NULL: close when the input is freed */
  /* what every wanted row meets: blocks of which the index tells that they hold no such row are left out */
  const range_filter *filters;
  size_t n_filters;
} block_input_options;

/*
 * Loads the indexes, checks file sizes, maps. Errors: BLOCK_MISSING (absent, shorter), BLOCK_CORRUPT (an index that does
 * not hold, locations whose columns differ). A file that is cut while it is mapped cannot be guarded against: reading
 * behind its end is SIGBUS.
 */
hf_status block_input_new(const block_input_options *options, block_input **out, hf_error *error);
void block_input_free(block_input *input);
const source_ops *block_input_ops(void);
/* What the engine needs to bind it: user names, an ENUM as VARCHAR at any depth; borrowed from the input. */
const schema *block_input_columns(const block_input *input);
const struct ArrowSchema *block_input_arrow_schema(const block_input *input);
uint64_t block_input_rows(const block_input *input); /* of the blocks that are not left out */
/* Rows handed out so far, by all threads. Thread: any. */
uint64_t block_input_rows_read(const block_input *input);

/* Blocks that are read, of all blocks of the locations' shares. */
void block_input_blocks(const block_input *input, uint64_t *read, uint64_t *all);
/* Of the blocks that are not left out, as they lie in their files. */
uint64_t block_input_bytes(const block_input *input);

/* ------------------------------------------------------------------ stream */

/*
 * Opens a client's stream over the blocks in order of locations: client face, user names. Pages that were read are
 * given back. `on_release(context)` is called once, when the stream is released (also after get_next failed).
 * On failure *out is untouched and on_release is not called.
 */
hf_status block_stream_open(const block_location *locations, size_t n_locations,
                            void (*on_release)(void *context), void *context, struct ArrowArrayStream *out,
                            hf_error *error);

/* Writes an Arrow C stream as one attempt (client data); `options->columns` and `watched` are not looked at, the blocks are in row order.
 * Takes the stream, also on failure. Every array is checked in full. Errors: UNSUPPORTED (a type, by name),
 * INVALID_ARGUMENT (an array that is not valid, a stream that fails), DISK_FULL. */
hf_status block_write_stream(struct ArrowArrayStream *stream, const block_sink_options *options, arena *a,
                             block_index *out, hf_error *error);

#endif

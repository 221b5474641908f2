/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of some locations, ready to be read: indexes loaded, files checked
 * and mapped, schemas found alike. What the input of a task and a client's stream
 * have in common. Internal to src/exchange.
 * Thread: opened and closed by one; read by any; mappings are counted atomically.
 */
#ifndef HF_EXCHANGE_BLOCK_SET_H
#define HF_EXCHANGE_BLOCK_SET_H

#include "exchange/block_attempt.h"

/* A block and where it lies. */
typedef struct set_block {
  block_attempt *attempt;
  uint32_t file_number; /* of the attempt */
  mapping *file;
  uint64_t offset, bytes, rows;
  const uint64_t *parts;     /* columns + 1 checksums; see block */
  atomic_bool *is_verified;  /* of each part, while the attempt is open */
  const block_range *ranges; /* one a column, or NULL */
} set_block;

typedef struct block_set {
  arena *memory;
  schema columns; /* of the first location */
  struct ArrowSchema arrow_schema;
  size_t n_attempts;
  block_attempt **attempts;
  size_t n_blocks;
  set_block *blocks; /* in order of locations, then as in their indexes */
  uint64_t rows;
  uint64_t n_left_out; /* blocks, by block_set_filter */
} block_set;

/* `keeper` NULL: nothing stays open. Errors: BLOCK_MISSING, BLOCK_CORRUPT, OUT_OF_MEMORY, IO. On failure *out is
 * closed. */
hf_status block_set_open(const block_location *locations, size_t n_locations, block_keeper *keeper,
                         block_set *out, hf_error *error);
/* Leaves out the blocks that hold no row which meets all filters. Errors: INVALID_ARGUMENT (a column that is not there). */
hf_status block_set_filter(block_set *set, const range_filter *filters, size_t n_filters, hf_error *error);
/* Accepts a zeroed set. */
void block_set_close(block_set *set);
/* Bytes of the codes in the block's batches, one number a column; NULL: no column has codes. */
const uint8_t *set_block_code_bytes(const set_block *b);
/* Says in an error's message which block it was. */
hf_status block_set_blame(const set_block *b, hf_status status, hf_error *error);

#endif

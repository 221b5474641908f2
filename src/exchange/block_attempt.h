/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt opened for reading: its index, its files mapped, which of its
 * blocks were checked. Counted, so that a keeper can hold it open between tasks.
 * Internal to src/exchange.
 * Thread: opened by one; read by any.
 */
#ifndef HF_EXCHANGE_BLOCK_ATTEMPT_H
#define HF_EXCHANGE_BLOCK_ATTEMPT_H

#include "exchange/exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* A mapped file; lives until the last reference goes. */
typedef struct mapping {
  atomic_size_t references;
  const uint8_t *bytes;
  size_t length;
  struct stat seen; /* as it was when it was mapped */
  char path[];      /* its last parts, for messages */
} mapping;

void mapping_retain(mapping *m);
/* Takes void * so that it can be the callback of an array. */
void mapping_release(void *m);

typedef struct block_attempt {
  atomic_size_t references;
  arena *memory;
  block_index index;
  mapping **files;            /* index.n_files; NULL where no block lies in it */
  atomic_bool *is_verified;   /* of each block, its columns + 1 parts */
  const uint8_t **code_bytes; /* of each file, one number a column; NULL: no column of it has codes */
  pthread_mutex_t lock;
  source_dictionary *values;       /* guarded by lock until loaded: of the index's dictionaries */
  bool *is_loaded;                 /* guarded by lock */
  struct block_attempt *next_kept; /* of the keeper's list */
  char dir[];
} block_attempt;

/* Opens an attempt. Errors as below. */
hf_status block_attempt_new(const char *dir, block_attempt **out, hf_error *error);
/* Opens, or takes what the keeper (NULL: none) holds open and whose files are as they were. The caller gets a
 * reference. Errors: BLOCK_MISSING, BLOCK_CORRUPT, OUT_OF_MEMORY, IO. */
hf_status block_attempt_open(const char *dir, block_keeper *keeper, block_attempt **out, hf_error *error);
void block_attempt_release(block_attempt *attempt);
/* The dictionary of column `number`, which has one in the file, read and checked when it is first wanted. Borrowed as long as the attempt
 * is open. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY. Thread: any. */
hf_status block_attempt_dictionary(block_attempt *attempt, uint32_t file, size_t number,
                                   source_dictionary **out, hf_error *error);
/* The end of a path that names job, stage, attempt and, of a file, its name. */
const char *block_path_tail(const char *path);

#endif

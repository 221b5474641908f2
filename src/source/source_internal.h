/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs of a source and of the catalogue, for catalog.c and split.c. Not a door.
 * Thread: a source is immutable but for what the catalogue's turn guards.
 */
#ifndef HF_SOURCE_SOURCE_INTERNAL_H
#define HF_SOURCE_SOURCE_INTERNAL_H

#include "source/source.h"

#include <pthread.h>
#include <stdatomic.h>

/* Sources that are remembered; the oldest is forgotten first. A source lives on while someone holds it. */
enum { MOST_REMEMBERED = 128 };

typedef struct source_key {
  uint64_t low, high; /* XXH3-128 of everything that decides */
} source_key;

/* The row groups of a Parquet file. */
typedef struct source_groups {
  size_t n;
  const uint64_t *rows;
} source_groups;

struct source {
  atomic_uint references;
  arena *arena; /* everything below */
  schema columns;
  uint64_t rows, bytes;
  bool rows_exact;
  size_t n_files;
  const source_file *files;
  const char *reader;
  const source_groups *groups; /* of each file; NULL: not read yet; guarded by the catalogue's turn */
};

typedef struct remembered {
  source_key key;
  source *source; /* one reference; NULL: a free place */
} remembered;

struct source_catalog {
  source_catalog_options options; /* texts are the arena's */
  arena *arena;
  pthread_mutex_t turn;
  engine *engine; /* guarded by turn; NULL: not opened yet */
  pthread_mutex_t lock;
  remembered table[MOST_REMEMBERED]; /* a ring, guarded by lock */
  size_t next;                       /* the place that is filled next; guarded by lock */
};

/* Opens the discovery engine unless it is open. REQUIRES(c->turn) */
hf_status catalog_open_engine(source_catalog *c, hf_error *error);

#endif

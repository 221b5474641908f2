/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is stored about a held result: its declaration (what the user asked for)
 * and its entry (what exists). Plain data: copied by whoever keeps it.
 * Not here: the tables of both (hold.h), their journal (journal.h).
 * Thread: any.
 */
#ifndef HF_HOLD_ENTRY_H
#define HF_HOLD_ENTRY_H

#include "arrow/type.h"
#include "base/id.h"

/* Whether what was lost can be computed again. */
typedef enum hold_lineage {
  LINEAGE_KEPT, /* cache, persist: the input is kept */
  LINEAGE_CUT   /* localCheckpoint: the data are all there is; never evicted, never dropped by the grace */
} hold_lineage;

typedef struct declaration {
  uuid key; /* cache id */
  uuid session;
  char fingerprint[33];
  char level[32];
  const char *name; /* CACHE TABLE's name, or NULL */
  hold_lineage lineage;
  bool by_content; /* named by no node: found by fingerprint and canonical plan (PySpark's persist) */
  bool released;
  schema columns;           /* fixed at the declaration */
  uint64_t declared_us;     /* wall time */
  const uint8_t *canonical; /* the canonical plan of the input, packed; NULL: not known */
  size_t canonical_bytes;
  const uint8_t *relation; /* the input as it was given, packed, for the journal; NULL: not known */
  size_t relation_bytes;
  const char
      *settings; /* that change results, as at the declaration: name NUL value NUL …; NULL: not known */
  size_t settings_bytes;
} declaration;

/* Where one attempt's blocks lie. */
typedef struct entry_location {
  job_id job;
  stage_id stage;
  task_id task;
  attempt_id attempt;
  char executor[40];
  uint64_t rows, bytes; /* 0 and 0: not known */
} entry_location;

/* How rows are spread: hash of the columns modulo n. */
typedef struct entry_partitioning {
  const uint32_t *columns; /* indices into the entry's columns, in the order in which they are hashed */
  size_t n_columns;        /* 0: no known partitioning */
  uint32_t n;
  uint32_t hash_version; /* of the function and the engine; another one: no known partitioning */
  bool in_blocks;        /* each location holds n partitions; else location i of n holds partition i */
} entry_partitioning;

typedef struct entry_sort_key {
  uint32_t column; /* index into the entry's columns */
  bool is_descending, nulls_first;
} entry_sort_key;

/* A source as it was when the entry was computed. */
typedef struct entry_source {
  const char *path;
  uint64_t bytes;
  int64_t mtime_ns;
  const char *etag; /* NULL: size and time are the version */
} entry_source;

/* What a finished fill made. */
typedef struct entry_output {
  schema columns;
  const uint8_t *metadata; /* of the schema and its columns, packed by whoever reads it; NULL: none */
  size_t metadata_bytes;
  uint64_t rows, bytes;
  bool ordered;               /* blocks are to be read in their order */
  const entry_sort_key *sort; /* rows are sorted by these keys; NULL: some order, or none */
  size_t n_sort;
  bool indeterminate;
  entry_partitioning partitioning;
  const entry_location *locations;
  size_t n_locations;
  const entry_source *sources;
  size_t n_sources;
  char fingerprint[33]; /* of the plan that computed it */
  uint64_t cost_us;     /* time to compute */
  uint64_t created_us;  /* wall time */
} entry_output;

/* Copies into an arena; `out` owns nothing outside it. Errors: OUT_OF_MEMORY. */
hf_status entry_output_copy(const entry_output *from, arena *a, entry_output *out, hf_error *error);
hf_status declaration_copy(const declaration *from, arena *a, declaration *out, hf_error *error);

typedef enum entry_state { ENTRY_ABSENT, ENTRY_PENDING, ENTRY_MATERIALISED, ENTRY_UNAVAILABLE } entry_state;

/* A look at an entry; borrowed until the next operation. */
typedef struct entry_view {
  entry_state state;
  uuid key, session;
  job_id job;          /* PENDING: the claimer; MATERIALISED, UNAVAILABLE: who made it */
  uint64_t generation; /* of this or, while absent, the last materialisation; 0: none yet */
  entry_output output; /* MATERIALISED, UNAVAILABLE */
  uint64_t hits, last_read_us;
  size_t n_waiters;      /* PENDING */
  size_t n_leases;       /* MATERIALISED, UNAVAILABLE: jobs that read it now */
  const char *last_drop; /* why it was last dropped; "" */
} entry_view;

#endif

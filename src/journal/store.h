/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's file: rows in SQLite, each with a checksum. What is in a body is
 * record.h's business; when rows are written, journal.c's.
 * Thread: one at a time.
 */
#ifndef HF_JOURNAL_STORE_H
#define HF_JOURNAL_STORE_H

#include "base/id.h"

/* The numbers are in the file. */
typedef enum store_kind {
  STORE_SESSION = 1,
  STORE_DATA = 2,
  STORE_NAME = 3,
  STORE_DECLARATION = 4,
  STORE_ENTRY = 5
} store_kind;

typedef struct store_row {
  store_kind kind;
  const char *owner, *key; /* together with the kind: what a row is put in the place of */
  uint64_t job;            /* of an entry; else 0 */
  const void *body;
  size_t body_bytes;
} store_row;

/* Largest body: a relation's limit, and more than any entry. */
#define STORE_LARGEST_BODY_BYTES ((size_t)256 << 20)

typedef struct store store;

/* Opens or makes the file. Errors: STATE_DIR (another version, damaged, not a journal, not writable), DISK_FULL,
 * OUT_OF_MEMORY. */
hf_status store_open(const char *path, store **out, hf_error *error);
/* Accepts NULL. */
void store_close(store *s);
/* The id that it was given when it was made. */
const uuid *store_id(const store *s);

/* A transaction: between begin and commit or rollback. Errors: as store_open. */
hf_status store_begin(store *s, hf_error *error);
hf_status store_commit(store *s, hf_error *error);
void store_rollback(store *s);
hf_status store_put(store *s, const store_row *row, hf_error *error);
/* Removes the row of that kind, owner and key; `job` not 0: only when the row has it. */
hf_status store_remove(store *s, const store_row *row, hf_error *error);
/* Calls `each` for the rows of a kind in the order in which they were first put. Errors: STATE_DIR (a row that does not
 * match its checksum), and those of `each`. */
hf_status store_load(store *s, store_kind kind,
                     hf_status (*each)(void *context, const store_row *row, hf_error *error), void *context,
                     hf_error *error);

#endif

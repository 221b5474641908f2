/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a state directory: what outlives the process. It is the
 * hold_journal of declarations and entries, and keeps sessions with their
 * settings, names and client data beside them. Blocks lie in the work directory.
 * Thread: any; writes are done by the journal's own, in the order of calls.
 */
#ifndef HF_JOURNAL_JOURNAL_H
#define HF_JOURNAL_JOURNAL_H

#include "hold/journal.h"

typedef struct journal journal;

/*
 * Opens the directory, made when it is not there, and locks it until journal_close. Errors: STATE_DIR (in use by another
 * process, which is named; of another version; damaged; not to be made or written; holds other files), DISK_FULL,
 * OUT_OF_MEMORY.
 */
hf_status journal_open(const char *dir, journal **out, hf_error *error);
/* Tells whether a journal is in the directory. */
bool journal_is_there(const char *dir);
/* Writes what is queued and lets the directory go. Accepts NULL. */
void journal_close(journal *j);
/* Absolute path, links resolved. */
const char *journal_dir(const journal *j);
/* The directory's own id, a UUID that moves with it. */
const uuid *journal_id(const journal *j);
/* The door of the scheduler; borrowed. */
const hold_journal *journal_holds(const journal *j);

/* A session that is continued at the next start. */
typedef struct journal_session {
  uuid id;
  size_t n_settings; /* that SET has changed */
  const hf_setting *settings;
} journal_session;

/* A name of a session; see name_entry. Relations are packed. */
typedef struct journal_name {
  uuid session;
  const char *name;
  const void *bound;
  size_t bound_bytes;
  const void *plain; /* or NULL */
  size_t plain_bytes;
  bool cache_made;
} journal_name;

/* Rows that a client gave, written as blocks. */
typedef struct journal_data {
  uuid session, id;
  uint64_t number; /* of their directory */
  uint64_t rows;
  schema columns;
} journal_data;

/* Each puts a record in the place of that of the same session and name or id; copies it and does not wait. */
void journal_put_session(journal *j, const journal_session *row);
void journal_put_name(journal *j, const journal_name *row);
void journal_remove_name(journal *j, const uuid *session, const char *name);
void journal_put_data(journal *j, const journal_data *row);
void journal_remove_data(journal *j, const uuid *session, const uuid *id);
/* Waits until all that was put before is written. Errors: those of writing it (STATE_DIR, DISK_FULL); it is tried again
 * with the next write. Blocks. */
hf_status journal_flush(journal *j, hf_error *error);

/* What journal_load calls, on the journal's thread: sessions first, then data, then names. Borrowed for the call. */
typedef struct journal_reader {
  void *context;
  hf_status (*session)(void *context, const journal_session *row, hf_error *error);
  hf_status (*data)(void *context, const journal_data *row, hf_error *error);
  hf_status (*name)(void *context, const journal_name *row, hf_error *error);
} journal_reader;
/* Reads the sessions' records; NULL members are passed over. Errors: STATE_DIR (damaged), and those of the members. */
hf_status journal_load(journal *j, const journal_reader *reader, hf_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory itself: `lock`, `journal.db` (with what SQLite puts beside
 * it) and `work`. Finding or making it, and the lock that keeps it one process's.
 * Thread: that which opens and closes.
 */
#ifndef HF_JOURNAL_PLACE_H
#define HF_JOURNAL_PLACE_H

#include "base/error.h"

typedef struct place {
  char *dir; /* absolute, links resolved */
  int lock_fd;
} place;

#define PLACE_JOURNAL_NAME "journal.db"

/* Errors: STATE_DIR (in use, of other files, not to be made or written), DISK_FULL, OUT_OF_MEMORY. */
hf_status place_open(const char *dir, place *out, hf_error *error);
/* Is there a journal in the directory? */
bool place_has_journal(const char *dir);
/* Accepts a zeroed struct. */
void place_close(place *p);

#endif

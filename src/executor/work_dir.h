/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work directory: choosing, making, locking and emptying it. What lies in an
 * attempt's directory is exchange's business; the paths below are made in
 * executor.c.
 * Thread: that which opens and closes the executor.
 */
#ifndef HF_EXECUTOR_WORK_DIR_H
#define HF_EXECUTOR_WORK_DIR_H

#include "base/id.h"

typedef struct work_dir {
  char *path;   /* absolute, links resolved */
  char *parent; /* "auto": holdfast-<uid>, removed when it is empty; else NULL */
  int lock_fd;  /* holds holdfast.lock, which tells a process that lives from one that died */
  bool made_here;
  bool is_kept; /* sessions' directories outlive the close */
} work_dir;

/*
 * Opens the directory that `wanted` names (NULL or "auto": see work_dir in config.def) and locks it. What a dead owner
 * left in it is removed; foreign files are let alone. `keep_id` (or NULL) is that of a state directory: sessions'
 * directories stay, now and at the close, and the directory is nobody else's from now on. Errors: WORK_DIR (not to be
 * made or written, in use, holds directories that may be another's, is kept for another state directory), DISK_FULL,
 * OUT_OF_MEMORY. On failure nothing is left behind.
 */
hf_status work_dir_open(const char *wanted, const uuid *keep_id, work_dir *out, hf_error *error);
/* Removes sessions' directories unless they are kept, slots/, spill/, trash/ and the lock, then the directory itself when
 * it was made here and is empty. Accepts a zeroed struct. */
void work_dir_close(work_dir *w);

/* Where the sweep of a kept directory puts what is to be deleted; removed when it is opened and closed. */
#define WORK_DIR_TRASH_NAME "trash"

#endif

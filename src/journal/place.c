/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: who may be in it.
 *
 * P1  Whoever holds the lock on `lock` owns all of the directory. The file stays:
 *     a lock on a file that another removes protects nothing.
 * P2  A directory with files of others and without a journal is not made a state
 *     directory: it is more likely a mistake.
 * Thread: that which opens and closes.
 */
#include "place.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path");
}

/* STATE_DIR for what is neither a full disk nor lack of memory; the cause stays. */
static hf_status as_state_dir(hf_error *error, hf_status status) {
  if (status != HF_E_IO || error == NULL) {
    return status == HF_E_IO ? HF_E_STATE_DIR : status;
  }
  hf_error inner = {0};
  error_move(&inner, error);
  error_set(error, HF_E_STATE_DIR, "%s",
            inner.message == NULL ? "the state directory cannot be used" : inner.message);
  error_hint(
      error,
      "make it writable, which even a query that only reads needs, or choose another with --state-dir");
  error_cause(error, inner.cause);
  hf_error_reset(&inner);
  return HF_E_STATE_DIR;
}

static hf_status refuse_errno(hf_error *error, const char *problem, const char *path) {
  int number = errno;
  hf_status status = error_set_errno(error, number, HF_E_IO, "%s: %s", problem, path);
  if (status == HF_E_DISK_FULL) {
    error_hint(error, "free space in the file system of the state directory");
  }
  return as_state_dir(error, status);
}

static char *path_join(const char *dir, const char *name) {
  buf path = {0};
  buf_printf(&path, "%s/%s", dir, name);
  return buf_take(&path);
}

/* ----------------------------------------------------------------- content */

static bool is_own_name(const char *name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lock") == 0 ||
         strcmp(name, "work") == 0 || strncmp(name, PLACE_JOURNAL_NAME, sizeof PLACE_JOURNAL_NAME - 1) == 0;
}

bool place_has_journal(const char *dir) {
  char *journal = path_join(dir, PLACE_JOURNAL_NAME);
  struct stat info;
  bool is_there = journal != NULL && stat(journal, &info) == 0;
  mem_free(journal);
  return is_there;
}

/* P2 */
static hf_status check_content(const char *dir, hf_error *error) {
  if (place_has_journal(dir)) {
    return HF_OK;
  }
  DIR *entries = opendir(dir);
  if (entries == NULL) {
    return refuse_errno(error, "cannot list the state directory", dir);
  }
  hf_status status = HF_OK;
  for (struct dirent *entry = readdir(entries); status == HF_OK && entry != NULL; entry = readdir(entries)) {
    if (!is_own_name(entry->d_name)) {
      status = error_set(error, HF_E_STATE_DIR, "the state directory to be is not empty: %s holds %s", dir,
                         entry->d_name);
      error_hint(error, "name an empty directory, or one that does not exist yet");
    }
  }
  closedir(entries);
  return status;
}

/* -------------------------------------------------------------------- lock */

static hf_status refuse_in_use(int fd, const char *dir, hf_error *error) {
  char owner[24] = "";
  ssize_t length = pread(fd, owner, sizeof owner - 1, 0);
  owner[length > 0 ? length : 0] = '\0';
  owner[strspn(owner, "0123456789")] = '\0';
  error_set(error, HF_E_STATE_DIR, "the state directory is in use by another process (%s): %s",
            owner[0] == '\0' ? "unknown" : owner, dir);
  error_hint(error, "end that process, or choose another directory with --state-dir");
  return HF_E_STATE_DIR;
}

static hf_status lock_take(place *p, hf_error *error) {
  char *path = path_join(p->dir, "lock");
  if (path == NULL) {
    return no_memory(error);
  }
  p->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  mem_free(path);
  if (p->lock_fd < 0) {
    return refuse_errno(error, "cannot make a file in the state directory", p->dir);
  }
  if (flock(p->lock_fd, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? refuse_in_use(p->lock_fd, p->dir, error)
                                : refuse_errno(error, "cannot lock the state directory", p->dir);
  }
  char text[24];
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(p->lock_fd, 0) != 0 || pwrite(p->lock_fd, text, (size_t)length, 0) != length) {
    return refuse_errno(error, "cannot write to the state directory", p->dir);
  }
  return HF_OK;
}

/* -------------------------------------------------------------------- door */

static hf_status open_steps(const char *dir, place *p, hf_error *error) {
  if (dir[0] == '\0') {
    return error_set(error, HF_E_STATE_DIR, "the name of the state directory is empty");
  }
  HF_TRY(as_state_dir(error, file_make_dirs(dir, error)));
  char *absolute = realpath(dir, NULL);
  if (absolute == NULL) {
    return refuse_errno(error, "cannot use the state directory", dir);
  }
  p->dir = absolute;
  HF_TRY(check_content(p->dir, error));
  return lock_take(p, error);
}

hf_status place_open(const char *dir, place *out, hf_error *error) {
  place p = {.lock_fd = -1};
  hf_status status = open_steps(dir, &p, error);
  if (status != HF_OK) {
    if (p.lock_fd >= 0) {
      close(p.lock_fd);
    }
    mem_free(p.dir);
    return status;
  }
  *out = p;
  return HF_OK;
}

void place_close(place *p) {
  if (p->dir == NULL) {
    return;
  }
  if (ftruncate(p->lock_fd, 0) != 0) {
    /* the number of a process that has ended: only a message would name it */
  }
  close(p->lock_fd);
  mem_free(p->dir);
  *p = (place){0};
}

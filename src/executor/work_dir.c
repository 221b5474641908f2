/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work directory.
 *
 * W1  Whoever holds the lock on holdfast.lock owns everything in the directory
 *     whose name is a UUID (a session), "slots", "spill" or "trash".
 * W2  The lock file holds its owner's process id; it is removed last. So a lock
 *     file that is not empty and not locked is that of a dead owner, and what it
 *     owned may be removed.
 * W3  Without such a file, directories of those names are not ours: refused.
 * W4  holdfast.id holds the id of the state directory that the sessions'
 *     directories are kept for. Who has another id, or none, gets nothing of it.
 */
#include "work_dir.h"

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "holdfast.lock"
#define ID_NAME "holdfast.id"

/* How often a parent that another process removes at the same moment is made again. */
enum { MOST_TRIES = 16 };

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path");
}

/* As error_set_errno, with WORK_DIR for what is neither a full disk nor lack of memory. */
static hf_status refuse_errno(hf_error *error, int error_number, const char *problem, const char *path) {
  hf_error inner = {0};
  hf_status status = error_set_errno(&inner, error_number, HF_E_WORK_DIR, "%s: %s", problem, path);
  if (status == HF_E_IO) {
    status = error_set(error, HF_E_WORK_DIR, "%s: %s", problem, path);
    error_cause(error, inner.cause);
    hf_error_reset(&inner);
    return status;
  }
  error_move(error, &inner);
  return status;
}

static char *path_join(const char *dir, const char *name) {
  buf path = {0};
  buf_printf(&path, "%s/%s", dir, name);
  return buf_take(&path);
}

/* What no close keeps. */
static bool is_passing_name(const char *name) {
  return strcmp(name, "slots") == 0 || strcmp(name, "spill") == 0 || strcmp(name, WORK_DIR_TRASH_NAME) == 0;
}

static bool is_own_name(const char *name) {
  uuid session;
  return uuid_parse(name, &session) || is_passing_name(name);
}

/* Calls `visit` for each entry of `dir` with a name of that kind, until it answers false. */
static void each_named(const char *dir, bool (*is_named)(const char *name),
                       bool (*visit)(void *context, const char *path), void *context) {
  DIR *entries = opendir(dir);
  if (entries == NULL) {
    return;
  }
  bool go_on = true;
  for (struct dirent *entry = readdir(entries); go_on && entry != NULL; entry = readdir(entries)) {
    char *path = is_named(entry->d_name) ? path_join(dir, entry->d_name) : NULL;
    go_on = path == NULL || visit(context, path);
    mem_free(path);
  }
  closedir(entries);
}

/* The same for those that W1 speaks of. */
static void each_own(const char *dir, bool (*visit)(void *context, const char *path), void *context) {
  each_named(dir, is_own_name, visit, context);
}

static bool remove_one(void *context, const char *path) {
  bool *all_gone = context;
  hf_error error = {0};
  if (file_remove_tree(path, &error) != HF_OK) {
    *all_gone = false;
    log_event(LOG_WARN, "executor", "cannot_remove=%s cause=\"%s\"", path,
              error.cause == NULL ? "" : error.cause);
    hf_error_reset(&error);
  }
  return true;
}

static bool remember_one(void *context, const char *path) {
  char **found = context;
  *found = mem_strdup(path);
  return false;
}

/* ---------------------------------------------------------------- the lock */

static bool is_same_file(const char *path, int fd) {
  struct stat there, here;
  return stat(path, &there) == 0 && fstat(fd, &here) == 0 && there.st_ino == here.st_ino &&
         there.st_dev == here.st_dev;
}

static hf_status refuse_in_use(int fd, const char *dir, hf_error *error) {
  char owner[24] = "";
  ssize_t length = pread(fd, owner, sizeof owner - 1, 0);
  owner[length > 0 ? length : 0] = '\0';
  owner[strspn(owner, "0123456789")] = '\0';
  error_set(error, HF_E_WORK_DIR, "the work directory is in use by another executor (process %s): %s",
            owner[0] == '\0' ? "unknown" : owner, dir);
  error_hint(error, "choose another directory with --work-dir, or end that process");
  return HF_E_WORK_DIR;
}

/* Opens and locks the file; *was_left tells that a dead owner left it (W2). */
static hf_status lock_take(const char *path, const char *dir, int *out, bool *was_left, hf_error *error) {
  for (;;) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
      return refuse_errno(error, errno, "cannot make a file in the work directory", dir);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      hf_status status = errno == EWOULDBLOCK
                             ? refuse_in_use(fd, dir, error)
                             : refuse_errno(error, errno, "cannot lock the work directory", dir);
      close(fd);
      return status;
    }
    struct stat info;
    if (is_same_file(path, fd) && fstat(fd, &info) == 0) {
      *out = fd;
      *was_left = info.st_size > 0;
      return HF_OK;
    }
    close(fd); /* its owner removed it just now */
  }
}

static hf_status lock_sign(int fd, const char *dir, hf_error *error) {
  char text[24];
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
    return refuse_errno(error, errno, "cannot write to the work directory", dir);
  }
  return HF_OK;
}

/* Removes a directory of a process that died, when it is one: its lock file is signed, and free. */
static bool sweep_one(void *context, const char *path) {
  (void)context;
  char *lock = path_join(path, LOCK_NAME);
  int fd = lock == NULL ? -1 : open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
    bool all_gone = true;
    remove_one(&all_gone, path);
  }
  if (fd >= 0) {
    close(fd);
  }
  mem_free(lock);
  return true;
}

/* ---------------------------------------------------------------- choosing */

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

/* $TMPDIR/holdfast-<uid>, which must be ours alone: /tmp is everybody's. */
static hf_status parent_make(work_dir *w, hf_error *error) {
  const char *temporary = environment("TMPDIR");
  buf path = {0};
  buf_printf(&path, "%s/holdfast-%lu", temporary == NULL ? "/tmp" : temporary, (unsigned long)geteuid());
  w->parent = buf_take(&path);
  if (w->parent == NULL) {
    return no_memory(error);
  }
  HF_TRY(file_make_dirs(w->parent, error));
  struct stat info;
  if (lstat(w->parent, &info) != 0) {
    return HF_OK; /* another process removed it; made again with the directory */
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    error_set(error, HF_E_WORK_DIR, "the directory for work directories is not this user's alone: %s",
              w->parent);
    error_hint(error, "remove it, or choose a work directory with --work-dir or HOLDFAST_WORK_DIR");
    mem_free(w->parent); /* not ours to remove */
    w->parent = NULL;
    return HF_E_WORK_DIR;
  }
  return HF_OK;
}

static hf_status path_choose(const char *wanted, work_dir *w, hf_error *error) {
  bool is_auto = wanted == NULL || strcmp(wanted, "auto") == 0;
  const char *named = is_auto ? environment("HOLDFAST_WORK_DIR") : wanted;
  if (named != NULL) {
    w->path = mem_strdup(named);
  } else {
    HF_TRY(parent_make(w, error));
    each_own(w->parent, sweep_one, NULL);
    uuid name = uuid_new();
    w->path = path_join(w->parent, name.text);
  }
  return w->path == NULL ? no_memory(error) : HF_OK;
}

static hf_status path_make(work_dir *w, hf_error *error) {
  if (w->path[0] == '\0') {
    return error_set(error, HF_E_WORK_DIR, "the name of the work directory is empty");
  }
  struct stat info;
  w->made_here = stat(w->path, &info) != 0;
  hf_status status = file_make_dirs(w->path, error);
  for (int i = 0; status != HF_OK && w->parent != NULL && i < MOST_TRIES && stat(w->parent, &info) != 0;
       i++) {
    status = file_make_dirs(w->path, error);
  }
  HF_TRY(status);
  char *absolute = realpath(w->path, NULL);
  if (absolute == NULL) {
    return refuse_errno(error, errno, "cannot use the work directory", w->path);
  }
  mem_free(w->path);
  w->path = absolute;
  return HF_OK;
}

/* Empties what a dead owner left; refuses what may be another's (W3). */
static hf_status content_check(const char *dir, bool was_left, hf_error *error) {
  if (was_left) {
    bool all_gone = true;
    each_own(dir, remove_one, &all_gone);
  }
  char *found = NULL;
  each_own(dir, remember_one, &found);
  if (found == NULL) {
    return HF_OK;
  }
  error_set(error, HF_E_WORK_DIR, "the work directory holds a directory that may be of another program: %s",
            found);
  error_hint(error, "remove it, or choose an empty directory with --work-dir");
  mem_free(found);
  return HF_E_WORK_DIR;
}

/* ----------------------------------------------------------------- keeping */

/* Reads the id that the directory is kept for; "" when it is nobody's. Other texts than an id are refused. */
static hf_status id_read(const char *path, uuid *out, hf_error *error) {
  char *text = NULL;
  size_t length = 0;
  *out = (uuid){0};
  hf_error inner = {0};
  hf_status status = file_read_whole(path, 100, HF_E_FILE_NOT_FOUND, &text, &length, &inner);
  bool is_id = status == HF_OK && uuid_parse(text, out);
  mem_free(text);
  hf_error_reset(&inner);
  if (is_id || status == HF_E_FILE_NOT_FOUND) {
    return HF_OK;
  }
  return error_set(error, HF_E_WORK_DIR, "a file of the work directory cannot be read: %s", path);
}

static hf_status refuse_kept(const char *dir, const uuid *keep_id, hf_error *error) {
  error_set(error, HF_E_WORK_DIR, "the work directory is kept for %s state directory: %s",
            keep_id == NULL ? "a" : "another", dir);
  error_hint(error, "choose another with --work-dir, or remove it: held results in it are computed again");
  return HF_E_WORK_DIR;
}

/* Finds out whose the content is and, when it is to be kept, says so in the directory (W4). */
static hf_status content_claim(work_dir *w, const uuid *keep_id, bool was_left, hf_error *error) {
  char *path = path_join(w->path, ID_NAME);
  if (path == NULL) {
    return no_memory(error);
  }
  uuid found;
  hf_status status = id_read(path, &found, error);
  bool is_kept = status == HF_OK && !uuid_is_none(&found);
  if (is_kept && (keep_id == NULL || !uuid_equal(&found, keep_id))) {
    status = refuse_kept(w->path, keep_id, error);
  } else if (is_kept) {
    bool all_gone = true;
    each_named(w->path, is_passing_name, remove_one, &all_gone);
  } else if (status == HF_OK) {
    status = content_check(w->path, was_left, error);
    if (status == HF_OK && keep_id != NULL) {
      status = file_write_whole(path, keep_id->text, strlen(keep_id->text), true, error);
    }
  }
  w->is_kept = status == HF_OK && keep_id != NULL;
  mem_free(path);
  return status;
}

static hf_status lock_and_check(work_dir *w, const uuid *keep_id, hf_error *error) {
  char *lock = path_join(w->path, LOCK_NAME);
  if (lock == NULL) {
    return no_memory(error);
  }
  bool was_left = false;
  hf_status status = lock_take(lock, w->path, &w->lock_fd, &was_left, error);
  if (status == HF_OK) {
    status = content_claim(w, keep_id, was_left, error);
    if (status == HF_OK) {
      status = lock_sign(w->lock_fd, w->path, error);
    }
    if (status != HF_OK) {
      unlink(lock);
    }
  }
  mem_free(lock);
  return status;
}

/* ------------------------------------------------------------ open and close */

/* Gives back the descriptor and the directories that are empty. */
static void work_dir_reset(work_dir *w) {
  if (w->lock_fd >= 0) {
    close(w->lock_fd);
  }
  if (w->path != NULL && w->made_here) {
    file_remove_empty_dir(w->path);
  }
  if (w->parent != NULL) {
    file_remove_empty_dir(w->parent);
  }
  mem_free(w->path);
  mem_free(w->parent);
  memset(w, 0, sizeof *w);
}

hf_status work_dir_open(const char *wanted, const uuid *keep_id, work_dir *out, hf_error *error) {
  work_dir w = {.lock_fd = -1};
  hf_status status = path_choose(wanted, &w, error);
  if (status == HF_OK) {
    status = path_make(&w, error);
  }
  if (status == HF_OK) {
    status = lock_and_check(&w, keep_id, error);
  }
  if (status != HF_OK) {
    work_dir_reset(&w);
    if (status == HF_E_IO && error != NULL) {
      hf_error inner = {0};
      error_move(&inner, error);
      error_set(error, HF_E_WORK_DIR, "%s", inner.message == NULL ? "" : inner.message);
      error_cause(error, inner.cause);
      hf_error_reset(&inner);
    }
    return status == HF_E_IO ? HF_E_WORK_DIR : status;
  }
  *out = w;
  return HF_OK;
}

void work_dir_close(work_dir *w) {
  if (w->path == NULL) {
    return;
  }
  bool all_gone = true;
  each_named(w->path, w->is_kept ? is_passing_name : is_own_name, remove_one, &all_gone);
  char *lock = path_join(w->path, LOCK_NAME);
  if (all_gone && lock != NULL) {
    unlink(lock); /* else it stays, signed, so that the next owner removes the rest */
  }
  mem_free(lock);
  work_dir_reset(w);
}

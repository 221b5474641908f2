/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's directory holds a file that the process keeps locked, and has signed with
 * its number when it had the lock. One that is signed and not locked is of a process
 * that was killed: it is removed. One that is not signed may be in the making.
 * Thread: one at a time.
 */
#include "scratch.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_PREFIX "holdfast-verify-"
#define SCRATCH_LOCK "lock"

static bool is_ours(const struct stat *info, mode_t kind) {
  return (info->st_mode & S_IFMT) == kind && info->st_uid == geteuid();
}

/* A directory of ours whose file is signed and not locked. */
static void sweep_one(const char *path, const char *lock) {
  struct stat dir, file;
  if (lstat(path, &dir) != 0 || !is_ours(&dir, S_IFDIR)) {
    return;
  }
  int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return;
  }
  if (fstat(fd, &file) == 0 && is_ours(&file, S_IFREG) && file.st_size > 0 &&
      flock(fd, LOCK_EX | LOCK_NB) == 0) {
    file_remove_tree(path, NULL);
  }
  close(fd);
}

static void sweep(const char *parent, arena *a) {
  size_t prefix = strlen(SCRATCH_PREFIX);
  DIR *dir = opendir(parent);
  for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
    bool is_one = strncmp(entry->d_name, SCRATCH_PREFIX, prefix) == 0 && strlen(entry->d_name) == prefix + 6;
    const char *path = is_one ? arena_printf(a, "%s/%s", parent, entry->d_name) : NULL;
    const char *lock = path == NULL ? NULL : arena_printf(a, "%s/" SCRATCH_LOCK, path);
    if (lock != NULL) {
      sweep_one(path, lock);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
}

/* The descriptor stays open: with the process the lock goes. */
static bool sign(const char *lock) {
  char text[24];
  int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  int fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && write(fd, text, (size_t)length) == length;
}

hf_status scratch_make(const char *parent, arena *a, const char **out, hf_error *error) {
  char *dir = arena_printf(a, "%s/" SCRATCH_PREFIX "XXXXXX", parent);
  if (dir == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a directory");
  }
  sweep(parent, a);
  const char *lock = mkdtemp(dir) == NULL ? NULL : arena_printf(a, "%s/" SCRATCH_LOCK, dir);
  if (lock == NULL || !sign(lock)) {
    error_set(error, HF_E_WORK_DIR, "cannot make a directory: %s: %s", strerror(errno), dir);
    error_hint(error, "name another place in TMPDIR");
    if (lock != NULL) {
      file_remove_tree(dir, NULL);
    }
    return HF_E_WORK_DIR;
  }
  *out = dir;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and small files, on POSIX calls. */
#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

hf_status file_make_dirs(const char *path, hf_error *error) {
  if (path[0] == '\0') {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the name of a directory is empty");
  }
  char *copy = mem_strdup(path);
  if (copy == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path");
  }
  hf_status status = HF_OK;
  for (char *at = copy + 1; status == HF_OK; at++) {
    bool is_end = *at == '\0';
    if (*at == '/' || is_end) {
      *at = '\0';
      if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
        status = error_set_errno(error, errno, HF_E_IO, "cannot make the directory %s", copy);
      }
      *at = is_end ? '\0' : '/';
    }
    if (is_end) {
      break;
    }
  }
  mem_free(copy);
  return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path) != 0 && errno != ENOENT ? -1 : 0;
}

hf_status file_remove_tree(const char *path, hf_error *error) {
  if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
    return error_set_errno(error, errno, HF_E_IO, "cannot remove %s", path);
  }
  return HF_OK;
}

bool file_remove_empty_dir(const char *path) {
  return rmdir(path) == 0;
}

hf_status file_write_all(int fd, const void *bytes, size_t length, const char *path, hf_error *error) {
  const char *at = bytes;
  while (length > 0) {
    ssize_t written = write(fd, at, length);
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return error_set_errno(error, errno, HF_E_IO, "cannot write %s", path);
    }
    at += written;
    length -= (size_t)written;
  }
  return HF_OK;
}

static hf_status write_new(const char *path, const void *bytes, size_t length, bool durable,
                           hf_error *error) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot create %s", path);
  }
  hf_status status = file_write_all(fd, bytes, length, path, error);
  if (status == HF_OK && durable && fsync(fd) != 0) {
    status = error_set_errno(error, errno, HF_E_IO, "cannot sync %s", path);
  }
  if (close(fd) != 0 && status == HF_OK) {
    status = error_set_errno(error, errno, HF_E_IO, "cannot close %s", path);
  }
  return status;
}

hf_status file_write_whole(const char *path, const void *bytes, size_t length, bool durable,
                           hf_error *error) {
  static const char suffix[] = ".tmp";
  size_t n = strlen(path);
  char *temporary = mem_alloc(n + sizeof suffix);
  if (temporary == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path");
  }
  memcpy(temporary, path, n);
  memcpy(temporary + n, suffix, sizeof suffix);
  hf_status status = write_new(temporary, bytes, length, durable, error);
  if (status == HF_OK && rename(temporary, path) != 0) {
    status = error_set_errno(error, errno, HF_E_IO, "cannot rename to %s", path);
  }
  if (status != HF_OK) {
    unlink(temporary);
  }
  mem_free(temporary);
  return status;
}

static hf_status read_open(int fd, const char *path, size_t most_bytes, char **out, size_t *length,
                           hf_error *error) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot read %s", path);
  }
  if (info.st_size < 0 || (uint64_t)info.st_size > most_bytes) {
    return error_set(error, HF_E_LIMIT, "a file is larger than %zu bytes: %s", most_bytes, path);
  }
  size_t size = (size_t)info.st_size;
  char *bytes = mem_alloc(size + 1);
  if (bytes == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read %s", path);
  }
  size_t got = 0;
  while (got < size) {
    ssize_t count = read(fd, bytes + got, size - got);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      mem_free(bytes);
      return error_set_errno(error, errno, HF_E_IO, "cannot read %s", path);
    }
    if (count == 0) {
      break;
    }
    got += (size_t)count;
  }
  bytes[got] = '\0';
  *out = bytes;
  *length = got;
  return HF_OK;
}

hf_status file_read_whole(const char *path, size_t most_bytes, hf_status absent, char **out, size_t *length,
                          hf_error *error) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return error_set_errno(error, errno, absent, "cannot open %s", path);
  }
  hf_status status = read_open(fd, path, most_bytes, out, length, error);
  close(fd);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a set: frames that went past a bound. Its space is given back at the end. Thread: any, at places of its own. */
#include "channel/channel_internal.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

hf_status spool_open(channel_set *set, const char *dir, hf_error *error) {
  set->spool_dir = arena_strdup(set->memory, dir);
  set->spool_path = arena_printf(set->memory, "%s/frames", dir);
  if (set->spool_dir == NULL || set->spool_path == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for channels");
  }
  HF_TRY(file_make_dirs(dir, error));
  set->spool_fd = open(set->spool_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return set->spool_fd >= 0 ? HF_OK
                            : error_set_errno(error, errno, HF_E_IO, "cannot create %s", set->spool_path);
}

void spool_close(channel_set *set) {
  if (set->spool_fd >= 0) {
    close(set->spool_fd);
    file_remove_tree(set->spool_dir, NULL);
  }
}

hf_status spool_write(const channel_set *set, uint64_t offset, const void *bytes, size_t length,
                      hf_error *error) {
  const char *from = bytes;
  while (length > 0) {
    ssize_t n = pwrite(set->spool_fd, from, length, (off_t)offset);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      int number = n == 0 || errno == EFBIG ? ENOSPC : errno; /* a limit on file sizes is a full disk to us */
      return error_set_errno(error, number, HF_E_IO, "cannot write %s", set->spool_path);
    }
    from += n;
    offset += (uint64_t)n;
    length -= (size_t)n;
  }
  return HF_OK;
}

hf_status spool_read(const channel_set *set, uint64_t offset, size_t length, char **out, hf_error *error) {
  char *bytes = mem_alloc(length);
  if (bytes == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read a frame");
  }
  size_t done = 0;
  while (done < length) {
    ssize_t n = pread(set->spool_fd, bytes + done, length - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      hf_status status = n == 0 ? error_set(error, HF_E_BLOCK_CORRUPT,
                                            "a spooled frame is cut off: %zu bytes of %zu", done, length)
                                : error_set_errno(error, errno, HF_E_IO, "cannot read %s", set->spool_path);
      mem_free(bytes);
      return status;
    }
    done += (size_t)n;
  }
  *out = bytes;
  return HF_OK;
}

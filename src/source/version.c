/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of sources: what a file or directory was like when it was listed, and
 * whether it is so still. Size and time of the last write decide: a file that is
 * written again with the same size within one tick of the file system's clock
 * (some milliseconds) counts as the same.
 * Thread: any. Blocks on the disk.
 */
#include "source/source.h"

#include "base/fault.h"

#include <string.h>
#include <sys/stat.h>

bool source_version_holds(const source_version *version) {
  struct stat facts;
  if (stat(version->path, &facts) != 0) {
    return false;
  }
  uint64_t bytes = S_ISDIR(facts.st_mode) ? 0 : (uint64_t)facts.st_size;
  int64_t mtime_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec;
  return (bytes == version->bytes && mtime_ns == version->mtime_ns) || FAULT("source.stale");
}

bool source_path_is_below(const char *path, const char *directory) {
  size_t length = strlen(directory);
  while (length > 0 && directory[length - 1] == '/') {
    length--;
  }
  return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

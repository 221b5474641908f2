/* SPDX-License-Identifier: Apache-2.0 */
/* Cores from the affinity mask, memory from sysconf and the control groups. */
#include "resources.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_PERCENT = 80, MOST_CORES = 8192, PROC_FILE_BYTES = 4096 };

unsigned resources_threads(void) {
  cpu_set_t *cores = CPU_ALLOC(MOST_CORES);
  int count = 0;
  if (cores != NULL) {
    size_t bytes = CPU_ALLOC_SIZE(MOST_CORES);
    if (sched_getaffinity(0, bytes, cores) == 0) {
      count = CPU_COUNT_S(bytes, cores);
    }
    CPU_FREE(cores);
  }
  return count < 1 ? 1 : (unsigned)count;
}

/* Reads the first bytes of a file of /proc or /sys, whose size is not known before. */
static bool proc_read(const char *path, char out[PROC_FILE_BYTES]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  ssize_t length = read(fd, out, PROC_FILE_BYTES - 1);
  close(fd);
  out[length > 0 ? length : 0] = '\0';
  return length > 0;
}

/* The number in `dir`/`name`; UINT64_MAX when there is none ("max"). */
static uint64_t limit_read(const char *dir, const char *name) {
  buf path = {0};
  buf_printf(&path, "%s/%s", dir, name);
  char text[PROC_FILE_BYTES];
  uint64_t limit = UINT64_MAX;
  if (!path.failed && proc_read(buf_cstr(&path), text)) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    limit = end == text || errno != 0 ? UINT64_MAX : value;
  }
  buf_reset(&path);
  return limit;
}

/* The lowest limit of `group` and the groups above it. */
static uint64_t limit_upwards(const char *root, const char *group, const char *name) {
  uint64_t lowest = UINT64_MAX;
  buf dir = {0};
  buf_text(&dir, root);
  size_t root_length = dir.length;
  buf_text(&dir, group);
  while (!dir.failed && dir.length >= root_length) {
    uint64_t limit = limit_read(buf_cstr(&dir), name);
    lowest = limit < lowest ? limit : lowest;
    char *slash = strrchr(dir.data, '/');
    if (slash == NULL || (size_t)(slash - dir.data) < root_length) {
      break;
    }
    *slash = '\0';
    dir.length = (size_t)(slash - dir.data);
  }
  buf_reset(&dir);
  return lowest;
}

/* One line "number:controllers:/group". */
static uint64_t limit_of_line(char *line, const char *root) {
  char *controllers = strchr(line, ':');
  char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
  if (group == NULL) {
    return UINT64_MAX;
  }
  *group++ = '\0';
  controllers++;
  if (controllers[0] == '\0') {
    return limit_upwards(root, group, "memory.max");
  }
  if (strstr(controllers, "memory") == NULL) {
    return UINT64_MAX;
  }
  buf mount = {0};
  buf_printf(&mount, "%s/memory", root);
  uint64_t limit =
      mount.failed ? UINT64_MAX : limit_upwards(buf_cstr(&mount), group, "memory.limit_in_bytes");
  buf_reset(&mount);
  return limit;
}

uint64_t resources_group_limit(const char *membership, const char *root) {
  uint64_t lowest = UINT64_MAX;
  for (const char *at = membership; *at != '\0';) {
    size_t length = strcspn(at, "\n");
    buf line = {0};
    buf_append(&line, at, length);
    uint64_t limit = line.failed || length == 0 ? UINT64_MAX : limit_of_line(line.data, root);
    lowest = limit < lowest ? limit : lowest;
    buf_reset(&line);
    at += length + (at[length] == '\n');
  }
  return lowest;
}

uint64_t resources_memory_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
  char membership[PROC_FILE_BYTES];
  if (proc_read("/proc/self/cgroup", membership)) {
    uint64_t limit = resources_group_limit(membership, "/sys/fs/cgroup");
    bytes = limit < bytes ? limit : bytes;
  }
  return bytes / 100 * MEMORY_PERCENT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the test's own, and what lies in it. */
#ifndef TESTS_UNIT_EXECUTOR_SCRATCH_H
#define TESTS_UNIT_EXECUTOR_SCRATCH_H

#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
  char path[64];
  char text[512]; /* of scratch_path */
} scratch;

static inline void scratch_make(scratch *s) {
  snprintf(s->path, sizeof s->path, "/tmp/hf-executor-test-XXXXXX");
  if (mkdtemp(s->path) == NULL) {
    abort();
  }
}

static inline void scratch_remove(scratch *s) {
  if (file_remove_tree(s->path, NULL) != HF_OK) {
    abort();
  }
}

/* The path of `name` in it; valid until the next call. */
static inline const char *scratch_path(scratch *s, const char *name) {
  snprintf(s->text, sizeof s->text, "%s/%s", s->path, name);
  return s->text;
}

static inline bool path_exists(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

/* Entries of a directory but . and ..; -1 when there is none. */
static inline int entry_count(const char *dir) {
  DIR *entries = opendir(dir);
  if (entries == NULL) {
    return -1;
  }
  int count = -2;
  while (readdir(entries) != NULL) {
    count++;
  }
  closedir(entries);
  return count;
}

static inline void write_text(const char *path, const char *text) {
  if (file_write_whole(path, text, strlen(text), false, NULL) != HF_OK) {
    abort();
  }
}

#endif

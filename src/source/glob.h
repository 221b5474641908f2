/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of file names, with DuckDB's rules and order: * ? [a-z] [!a] in a
 * part of the path, ** for any depth (once). Not here: what may be read
 * (listing.c).
 * Thread: any. Blocks on the disk.
 */
#ifndef HF_SOURCE_GLOB_H
#define HF_SOURCE_GLOB_H

#include "base/arena.h"

typedef struct path_list {
  const char **paths; /* memory: mem_*; the texts are the arena's */
  size_t count, capacity;
} path_list;

/* Appends; errors: OUT_OF_MEMORY, LIMIT. */
hf_status path_list_add(path_list *list, const char *path, hf_error *error);
void path_list_reset(path_list *list);

bool glob_is_pattern(const char *path);
/* Whether one part of a path matches one part of a pattern. */
bool glob_matches(const char *pattern, const char *name);
/* The directory in front of the first part with a mark; "." when there is none. NULL for lack of memory. */
const char *glob_fixed_part(const char *pattern, arena *a);
/* A directory in which a pattern looked for names: a name that comes or goes changes its time. */
typedef struct glob_dir {
  struct glob_dir *next;
  const char *path;
  int64_t mtime_ns; /* before it was read */
} glob_dir;

/*
 * Appends the files that match, in order of their paths' bytes, and the directories that it looked into (in the arena;
 * NULL: not wanted). Directories that cannot be opened count as empty.
 * Errors: INVALID_ARGUMENT (** twice), LIMIT, OUT_OF_MEMORY.
 */
hf_status glob_expand(const char *pattern, arena *a, path_list *out, glob_dir **dirs, hf_error *error);
/* The name as a pattern that matches only itself. NULL for lack of memory. */
const char *glob_escape(const char *path, arena *a);

#endif

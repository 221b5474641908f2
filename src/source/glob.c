/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expanding a pattern: directories wait to be opened; what matches is sorted by
 * its whole path at the end. That is the order in which DuckDB reads the files of
 * a pattern, and the order of rows depends on it.
 */
#include "source/glob.h"

#include "base/fault.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A pattern that matches more would not be planned in useful time. */
enum { MOST_PATHS = 1000000, MOST_PARTS = 256 };

/* ------------------------------------------------------------------- lists */

hf_status path_list_add(path_list *list, const char *path, hf_error *error) {
  if (list->count == MOST_PATHS) {
    return error_set(error, HF_E_LIMIT, "a source has more than %d files", MOST_PATHS);
  }
  if (list->count == list->capacity) {
    size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    const char **paths = mem_realloc(list->paths, capacity * sizeof *paths);
    if (paths == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a list of files");
    }
    list->paths = paths;
    list->capacity = capacity;
  }
  if (path == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a file name");
  }
  list->paths[list->count++] = path;
  return HF_OK;
}

void path_list_reset(path_list *list) {
  mem_free(list->paths);
  memset(list, 0, sizeof *list);
}

static int compare_paths(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---------------------------------------------------------------- matching */

bool glob_is_pattern(const char *path) {
  return strpbrk(path, "*?[") != NULL;
}

/* Matches one character against the set behind '['; returns where the set ends, or NULL when it has no end. */
static const char *match_set(const char *set, char c, bool *matched) {
  bool inverted = *set == '!';
  const char *at = inverted ? set + 1 : set;
  const char *first = at;
  bool found = false;
  for (; *at != '\0' && (*at != ']' || at == first); at++) {
    bool is_range = at[1] == '-' && at[2] != '\0' && at[2] != ']';
    if (is_range) {
      found = found || (c >= at[0] && c <= at[2]);
      at += 2;
    } else {
      found = found || c == *at;
    }
  }
  *matched = found != inverted;
  return *at == '\0' ? NULL : at + 1;
}

bool glob_matches(const char *pattern, const char *name) {
  const char *star = NULL, *star_name = NULL;
  while (*name != '\0') {
    bool matched = false;
    const char *next = pattern;
    if (*pattern == '*') {
      star = ++pattern;
      star_name = name;
      continue;
    }
    if (*pattern == '[') {
      next = match_set(pattern + 1, *name, &matched);
      matched = matched && next != NULL;
    } else if (*pattern != '\0') {
      matched = *pattern == '?' || *pattern == *name;
      next = pattern + 1;
    }
    if (matched) {
      pattern = next;
      name++;
    } else if (star != NULL) {
      pattern = star;
      name = ++star_name;
    } else {
      return false;
    }
  }
  while (*pattern == '*') {
    pattern++;
  }
  return *pattern == '\0';
}

const char *glob_fixed_part(const char *pattern, arena *a) {
  const char *mark = strpbrk(pattern, "*?[");
  const char *end = mark == NULL ? pattern + strlen(pattern) : mark;
  while (end > pattern && end[-1] != '/') {
    end--;
  }
  return end == pattern ? arena_strdup(a, ".") : arena_strndup(a, pattern, (size_t)(end - pattern));
}

const char *glob_escape(const char *path, arena *a) {
  size_t marks = 0;
  for (const char *c = path; *c != '\0'; c++) {
    marks += strchr("*?[", *c) != NULL;
  }
  if (marks == 0) {
    return path;
  }
  char *text = arena_alloc(a, strlen(path) + 2 * marks + 1);
  char *to = text;
  for (const char *c = path; text != NULL && *c != '\0'; c++) {
    bool is_mark = strchr("*?[", *c) != NULL;
    if (is_mark) {
      *to++ = '[';
    }
    *to++ = *c;
    if (is_mark) {
      *to++ = ']';
    }
  }
  return text;
}

/* --------------------------------------------------------------- expanding */

typedef struct waiting {
  const char *path;
  size_t part; /* of the pattern, to be matched in this directory */
} waiting;

typedef struct expansion {
  const char *parts[MOST_PARTS];
  size_t n_parts;
  arena *arena;
  path_list *out;
  glob_dir **dirs;  /* or NULL */
  waiting *waiting; /* directories that are not opened yet; memory: mem_* */
  size_t n_waiting, capacity;
  hf_error *error;
} expansion;

static hf_status push(expansion *x, const char *path, size_t part) {
  if (x->n_waiting == x->capacity) {
    size_t capacity = x->capacity == 0 ? 16 : x->capacity * 2;
    waiting *grown = capacity > MOST_PATHS * 2 ? NULL : mem_realloc(x->waiting, capacity * sizeof *grown);
    if (grown == NULL) {
      return error_set(x->error, HF_E_OUT_OF_MEMORY, "no memory for the directories of a pattern");
    }
    x->waiting = grown;
    x->capacity = capacity;
  }
  if (path == NULL) {
    return error_set(x->error, HF_E_OUT_OF_MEMORY, "no memory for a directory name");
  }
  x->waiting[x->n_waiting++] = (waiting){path, part};
  return HF_OK;
}

static const char *path_join(const expansion *x, const char *directory, const char *name) {
  if (directory[0] == '\0') {
    return arena_strdup(x->arena, name);
  }
  size_t length = strlen(directory);
  return arena_printf(x->arena, directory[length - 1] == '/' ? "%s%s" : "%s/%s", directory, name);
}

/* What an entry is: DT_DIR, DT_LNK of a link that is not to be followed, or DT_REG of anything else; DT_UNKNOWN: it is
 * not there any more. Asks only where the directory does not say. */
static unsigned char kind_of(const char *path, unsigned char told, bool follows) {
  struct stat entry;
  if (told != DT_UNKNOWN && (told != DT_LNK || !follows)) {
    return told == DT_DIR || told == DT_LNK ? told : DT_REG;
  }
  if ((follows ? stat(path, &entry) : lstat(path, &entry)) != 0) {
    return DT_UNKNOWN;
  }
  return S_ISDIR(entry.st_mode) ? DT_DIR : S_ISLNK(entry.st_mode) ? DT_LNK : DT_REG;
}

/* Deals with one entry of a directory that is matched against a part. */
static hf_status take_entry(expansion *x, waiting dir, const struct dirent *entry) {
  const char *name = entry->d_name;
  bool is_last = dir.part + 1 == x->n_parts;
  const char *pattern = x->parts[dir.part];
  bool is_crawl = strcmp(pattern, "**") == 0;
  if (!is_crawl && !glob_matches(pattern, name)) {
    return HF_OK;
  }
  const char *path = path_join(x, dir.path, name);
  if (path == NULL) {
    return error_set(x->error, HF_E_OUT_OF_MEMORY, "no memory for a file name");
  }
  unsigned char kind = kind_of(path, entry->d_type, !is_crawl);
  if (kind == DT_UNKNOWN || kind == DT_LNK) {
    return HF_OK;
  }
  if (kind == DT_DIR) {
    return is_crawl ? push(x, path, dir.part) : is_last ? HF_OK : push(x, path, dir.part + 1);
  }
  return is_last ? path_list_add(x->out, path, x->error) : HF_OK;
}

/* Notes a directory with its time before names are looked for in it. */
static hf_status note_directory(expansion *x, const char *path) {
  struct stat facts;
  const char *shown = path[0] == '\0' ? "." : path;
  if (x->dirs == NULL || stat(shown, &facts) != 0) {
    return HF_OK;
  }
  glob_dir *dir = arena_alloc(x->arena, sizeof *dir);
  if (dir == NULL) {
    return error_set(x->error, HF_E_OUT_OF_MEMORY, "no memory for the directories of a pattern");
  }
  *dir = (glob_dir){*x->dirs, shown, (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec};
  *x->dirs = dir;
  return HF_OK;
}

static hf_status match_directory(expansion *x, waiting dir) {
  HF_TRY(note_directory(x, dir.path));
  DIR *open = opendir(dir.path[0] == '\0' ? "." : dir.path);
  if (open == NULL) {
    return HF_OK;
  }
  hf_status status = HF_OK;
  for (struct dirent *entry = readdir(open); status == HF_OK && entry != NULL; entry = readdir(open)) {
    bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    status = is_dots ? HF_OK : take_entry(x, dir, entry);
  }
  closedir(open);
  return status;
}

static hf_status expand_next(expansion *x) {
  waiting dir = x->waiting[--x->n_waiting];
  const char *part = x->parts[dir.part];
  if (!glob_is_pattern(part)) {
    const char *path = path_join(x, dir.path, part);
    struct stat entry;
    if (dir.part + 1 < x->n_parts) {
      return push(x, path, dir.part + 1);
    }
    HF_TRY(note_directory(x, dir.path));
    return path != NULL && stat(path, &entry) != 0 ? HF_OK : path_list_add(x->out, path, x->error);
  }
  if (strcmp(part, "**") == 0 && dir.part + 1 < x->n_parts) {
    HF_TRY(push(x, dir.path, dir.part + 1));
  }
  return match_directory(x, dir);
}

static hf_status split_pattern(expansion *x, const char *pattern) {
  size_t n_crawls = 0;
  for (const char *at = pattern; *at != '\0';) {
    size_t length = strcspn(at, "/");
    if (length > 0) {
      if (x->n_parts == MOST_PARTS) {
        return error_set(x->error, HF_E_LIMIT, "a path has more than %d parts", MOST_PARTS);
      }
      x->parts[x->n_parts] = arena_strndup(x->arena, at, length);
      if (x->parts[x->n_parts] == NULL) {
        return error_set(x->error, HF_E_OUT_OF_MEMORY, "no memory for a pattern");
      }
      n_crawls += strcmp(x->parts[x->n_parts++], "**") == 0;
    }
    at += length + (at[length] == '/');
  }
  if (n_crawls > 1) {
    error_set(x->error, HF_E_INVALID_ARGUMENT, "a path holds ** more than once: %s", pattern);
    error_hint(x->error, "one ** stands for any number of directories");
    return HF_E_INVALID_ARGUMENT;
  }
  return HF_OK;
}

hf_status glob_expand(const char *pattern, arena *a, path_list *out, glob_dir **dirs, hf_error *error) {
  expansion *x = arena_alloc(a, sizeof *x);
  if (x == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a pattern");
  }
  *x = (expansion){.arena = a, .out = out, .dirs = dirs, .error = error};
  size_t before = out->count;
  HF_TRY(split_pattern(x, pattern));
  hf_status status = x->n_parts == 0 ? HF_OK : push(x, *pattern == '/' ? "/" : "", 0);
  while (status == HF_OK && x->n_waiting > 0) {
    status = expand_next(x);
  }
  mem_free(x->waiting);
  if (out->count - before > 1) {
    qsort(out->paths + before, out->count - before, sizeof *out->paths, compare_paths);
  }
  if (out->count - before > 1 && FAULT("source.file_order")) {
    const char *last = out->paths[out->count - 1];
    out->paths[out->count - 1] = out->paths[before];
    out->paths[before] = last;
  }
  return status;
}

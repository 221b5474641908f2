/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of paths: what decides is where a path leads once `..` and links are
 * resolved. A path outside the allowed directories is refused before anything
 * tells whether it exists.
 */
#include "source/listing.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "source/glob.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of a directory that are compared with one that is not there. */
enum { MOST_LOOKED_AT = 2000 };

/* Of the files that a pattern in a hint stands for. */
static const char *const ENDINGS[] = {
    [SOURCE_PARQUET] = ".parquet", [SOURCE_CSV] = ".csv", [SOURCE_JSON] = ".json"};

/* The directory of the file that was added last: its files need no look at what is above it. */
typedef struct known_dir {
  const char *path, *resolved; /* NULL: none yet */
  size_t length;               /* of the path, up to its last '/' */
  bool is_allowed;             /* and there */
} known_dir;

typedef struct lister {
  source_format format;
  const source_catalog_options *options;
  arena *arena;
  path_list written;  /* expanded, not resolved */
  path_list resolved; /* as many */
  source_file *facts; /* of each; no path: not known yet; memory: mem_* */
  size_t n_facts, facts_capacity;
  known_dir last, above; /* above: of the directory that was resolved last */
  glob_dir *dirs;        /* that patterns looked into */
  size_t completed;      /* bytes in front of the path at hand that source_path_absolute put there */
  hf_error *error;
} lister;

static hf_status out_of_memory(const lister *l) {
  return error_set(l->error, HF_E_OUT_OF_MEMORY, "no memory for a list of files");
}

/* ---------------------------------------------------------------- spelling */

/* "file:" in its spellings, and "~/", become plain paths. Other schemes are refused. */
static hf_status expand_scheme(const lister *l, const char *path, const char **out) {
  const char *colon = strstr(path, "://");
  const char *home = getenv("HOME");
  *out = path;
  if (strncasecmp(path, "file://localhost/", 17) == 0) {
    *out = path + 16;
  } else if (strncasecmp(path, "file:///", 8) == 0) {
    *out = path + 7;
  } else if (strncasecmp(path, "file:/", 6) == 0) {
    *out = path + 5;
  } else if (colon != NULL && colon != path && strcspn(path, "/") > (size_t)(colon - path)) {
    error_set(l->error, HF_E_UNSUPPORTED, "files are read from local paths only: %s", path);
    error_hint(l->error, "copy the file to a local directory, or mount the store as one");
    return HF_E_UNSUPPORTED;
  } else if (path[0] == '~' && path[1] == '/' && home != NULL && home[0] == '/') {
    *out = arena_printf(l->arena, "%s%s", home, path + 1);
  }
  return *out == NULL ? out_of_memory(l) : HF_OK;
}

/* ---------------------------------------------------------------- policy */

static bool is_allowed(const source_catalog_options *options, const char *resolved) {
  if (options->refused_dir != NULL && source_path_is_below(resolved, options->refused_dir)) {
    return false;
  }
  for (size_t i = 0; i < options->n_allowed_dirs; i++) {
    if (source_path_is_below(resolved, options->allowed_dirs[i])) {
      return true;
    }
  }
  return false;
}

static hf_status refuse_path(const lister *l, const char *written) {
  error_set(l->error, HF_E_PATH_REFUSED, "the path lies outside the allowed paths: %s", written);
  return HF_E_PATH_REFUSED;
}

/*
 * Resolves a path; of one that does not exist, its deepest directory that does. *exists tells which.
 * Errors: IO when a directory cannot be searched.
 */
static hf_status resolve(const lister *l, const char *path, const char **out, bool *exists) {
  char resolved[PATH_MAX];
  char *partial = arena_strdup(l->arena, path);
  *exists = true;
  if (partial == NULL) {
    return out_of_memory(l);
  }
  while (realpath(partial, resolved) == NULL) {
    int cause = errno;
    if (cause != ENOENT && cause != ENOTDIR && cause != EACCES && cause != ELOOP && cause != ENAMETOOLONG) {
      return error_set_errno(l->error, cause, HF_E_FILE_NOT_FOUND, "a path cannot be resolved: %s", path);
    }
    *exists = false;
    char *slash = strrchr(partial, '/');
    if (slash == NULL) {
      partial[0] = '.';
      partial[1] = '\0';
    } else if (slash == partial) {
      partial[1] = '\0';
    } else {
      *slash = '\0';
    }
  }
  *out = arena_strdup(l->arena, resolved);
  return *out == NULL ? out_of_memory(l) : HF_OK;
}

/* ------------------------------------------------------------------ adding */

/* Puts a file of a like name in the same, allowed, directory into the hint. */
static void suggest_file(const lister *l, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *directory = slash == NULL ? "." : arena_strndup(l->arena, path, (size_t)(slash + 1 - path));
  DIR *open = directory == NULL ? NULL : opendir(directory);
  if (open == NULL) {
    return;
  }
  nearest near = nearest_to(slash == NULL ? path : slash + 1);
  size_t looked = 0;
  for (struct dirent *entry = readdir(open); entry != NULL && looked < MOST_LOOKED_AT;
       entry = readdir(open)) {
    nearest_offer(&near, entry->d_name);
    if (near.best == entry->d_name) { /* readdir takes it back */
      near.best = arena_strdup(l->arena, near.best);
    }
    looked++;
  }
  if (near.best != NULL) {
    error_hint(l->error, "did you mean %s?", near.best);
  }
  closedir(open);
}

static hf_status not_found(const lister *l, const char *path, const char *written) {
  bool is_pattern = glob_is_pattern(written);
  error_set(l->error, HF_E_FILE_NOT_FOUND,
            is_pattern ? "no file matches the pattern: %s" : "there is no such file: %s", written);
  if (!is_pattern) {
    suggest_file(l, path);
  }
  return HF_E_FILE_NOT_FOUND;
}

static hf_status refuse_special(const lister *l, const char *written) {
  error_set(l->error, HF_E_FILE_FORMAT, "the path is no regular file: %s", written);
  error_hint(l->error, "pipes and devices can be read once only: copy the data to a file");
  return HF_E_FILE_FORMAT;
}

/* Of a name that a pattern found: the message is UTF-8, with its other bytes as '?'. */
static hf_status refuse_name(const lister *l, const char *path) {
  char *shown = arena_strdup(l->arena, path);
  if (shown == NULL) {
    return out_of_memory(l);
  }
  size_t length = strlen(shown);
  for (size_t at = 0; (at += utf8_right_length(shown + at, length - at)) < length;) {
    shown[at] = '?';
  }
  error_set(l->error, HF_E_FILE_FORMAT, "the name of a file is not UTF-8: %s", shown);
  error_hint(l->error, "give the file another name, or a pattern that does not match it");
  return HF_E_FILE_FORMAT;
}

static int64_t in_nanoseconds(const struct timespec *time) {
  return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static source_file facts_of(const char *path, const struct stat *facts) {
  return (source_file){.path = path,
                       .bytes = (uint64_t)facts->st_size,
                       .mtime_ns = in_nanoseconds(&facts->st_mtim),
                       .ctime_ns = in_nanoseconds(&facts->st_ctim),
                       .inode = (uint64_t)facts->st_ino};
}

/* `facts` without a path: they are read later. */
static hf_status put_file(lister *l, const char *resolved, const char *path, source_file facts) {
  if (l->n_facts == l->facts_capacity) {
    size_t capacity = l->facts_capacity == 0 ? 16 : l->facts_capacity * 2;
    source_file *grown = mem_realloc(l->facts, capacity * sizeof *grown);
    if (grown == NULL) {
      return out_of_memory(l);
    }
    l->facts = grown;
    l->facts_capacity = capacity;
  }
  l->facts[l->n_facts++] = facts;
  HF_TRY(path_list_add(&l->resolved, resolved, l->error));
  return path_list_add(&l->written, path + l->completed, l->error);
}

/*
 * Resolves a directory, whose path may end with '/'. What is above it is resolved anew only where it is not what it was for the
 * one before: directories of one layout lie side by side.
 */
static hf_status resolve_directory(lister *l, const char *path, const char **out, bool *exists) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') {
    length--;
  }
  const char *plain = arena_strndup(l->arena, path, length); /* behind "link/" lies what it leads to */
  size_t above = length;
  while (above > 0 && path[above - 1] != '/') {
    above--;
  }
  struct stat facts;
  if (plain == NULL) {
    return out_of_memory(l);
  }
  if (above <= 1 || plain[length - 1] == '.' || lstat(plain, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    return resolve(l, path, out, exists);
  }
  if (l->above.path == NULL || l->above.length != above || memcmp(l->above.path, path, above) != 0) {
    const char *copy = arena_strndup(l->arena, path, above);
    if (copy == NULL) {
      return out_of_memory(l);
    }
    l->above = (known_dir){.path = copy, .length = above};
    HF_TRY(resolve(l, copy, &l->above.resolved, exists));
  }
  bool is_root = l->above.resolved[1] == '\0';
  *out = arena_printf(l->arena, "%s/%s", is_root ? "" : l->above.resolved, plain + above);
  *exists = true;
  return *out == NULL ? out_of_memory(l) : HF_OK;
}

static hf_status know_directory(lister *l, const char *path, size_t length) {
  if (l->last.path != NULL && l->last.length == length && memcmp(l->last.path, path, length) == 0) {
    return HF_OK;
  }
  const char *copy = arena_strndup(l->arena, path, length);
  bool exists = false;
  if (copy == NULL) {
    return out_of_memory(l);
  }
  l->last = (known_dir){.path = copy, .length = length};
  HF_TRY(resolve_directory(l, copy, &l->last.resolved, &exists));
  l->last.is_allowed = exists && is_allowed(l->options, l->last.resolved);
  return HF_OK;
}

/* Adds a plain file, readable by everybody, of an allowed directory: one look tells all. *added is false of any other. */
static hf_status add_plain_file(lister *l, const char *path, bool *added) {
  const char *slash = strrchr(path, '/');
  struct stat facts;
  *added = false;
  if (slash == NULL || slash[1] == '\0' || !utf8_is_right(path)) {
    return HF_OK;
  }
  HF_TRY(know_directory(l, path, (size_t)(slash + 1 - path)));
  mode_t all_may = S_IRUSR | S_IRGRP | S_IROTH;
  if (!l->last.is_allowed || lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode) ||
      (facts.st_mode & all_may) != all_may) {
    return HF_OK;
  }
  bool is_root = l->last.resolved[1] == '\0';
  const char *resolved = arena_printf(l->arena, "%s/%s", is_root ? "" : l->last.resolved, slash + 1);
  if (resolved == NULL) {
    return out_of_memory(l);
  }
  *added = true;
  return put_file(l, resolved, path, facts_of(resolved, &facts));
}

/* Adds one file that a path or a pattern named. */
static hf_status add_file(lister *l, const char *path, const char *written) {
  const char *resolved = NULL;
  bool exists = false, added = false;
  HF_TRY(add_plain_file(l, path, &added));
  if (added) {
    return HF_OK;
  }
  HF_TRY(resolve(l, path, &resolved, &exists));
  if (!is_allowed(l->options, resolved)) {
    return refuse_path(l, written);
  }
  if (!exists) {
    int cause = access(path, F_OK) == 0 ? 0 : errno;
    if (cause == EACCES || cause == ELOOP || cause == ENAMETOOLONG) {
      return error_set_errno(l->error, cause, HF_E_FILE_NOT_FOUND, "a file cannot be reached: %s", written);
    }
    struct stat facts; /* a link to a pipe leads to no path, and can be opened */
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) ? refuse_special(l, written)
                                                              : not_found(l, path, written);
  }
  if (!utf8_is_right(path)) {
    return refuse_name(l, path);
  }
  return put_file(l, resolved, path, (source_file){0});
}

/* Refuses a pattern whose fixed part leads outside, before its directories are looked at. */
static hf_status check_pattern(const lister *l, const char *pattern, const char *written) {
  const char *resolved = NULL;
  const char *fixed = glob_fixed_part(pattern, l->arena);
  bool exists = false;
  if (fixed == NULL) {
    return out_of_memory(l);
  }
  if (strstr(strpbrk(pattern, "*?["), "/..") != NULL) {
    error_set(l->error, HF_E_INVALID_ARGUMENT, "a pattern holds .. behind its first mark: %s", written);
    error_hint(l->error, "write the path without the detour");
    return HF_E_INVALID_ARGUMENT;
  }
  HF_TRY(resolve(l, fixed, &resolved, &exists));
  return is_allowed(l->options, resolved) ? HF_OK : refuse_path(l, written);
}

static hf_status add_pattern(lister *l, const char *pattern, const char *written) {
  path_list found = {0};
  HF_TRY(check_pattern(l, pattern, written));
  hf_status status = glob_expand(pattern, l->arena, &found, &l->dirs, l->error);
  if (status == HF_OK && found.count == 0) {
    /* DuckDB's last resort: a file whose name looks like a pattern. */
    struct stat entry;
    status = stat(pattern, &entry) == 0 ? add_file(l, pattern, written) : not_found(l, pattern, written);
  }
  for (size_t i = 0; status == HF_OK && i < found.count; i++) {
    status = add_file(l, found.paths[i], found.paths[i] + l->completed);
  }
  path_list_reset(&found);
  return status;
}

/* How much longer the path is than what was written of it. */
static size_t completed_bytes(const char *path, const char *written) {
  size_t length = strlen(path), own = strlen(written);
  bool is_completed = path[0] == '/' && length > own && strcmp(path + length - own, written) == 0;
  return is_completed ? length - own : 0;
}

static hf_status add_path(lister *l, const char *given, const char *written) {
  const char *path = NULL;
  if (given[0] == '\0') {
    return error_set(l->error, HF_E_FILE_NOT_FOUND, "a path is empty");
  }
  HF_TRY(expand_scheme(l, given, &path));
  l->completed = completed_bytes(path, written);
  return glob_is_pattern(path + l->completed) ? add_pattern(l, path, written) : add_file(l, path, written);
}

/* ------------------------------------------------------------------- facts */

static hf_status read_facts(const lister *l, size_t i, source_file *out) {
  const char *path = l->resolved.paths[i], *written = l->written.paths[i];
  struct stat facts;
  if (l->facts[i].path != NULL) {
    *out = l->facts[i];
    return HF_OK;
  }
  if (stat(path, &facts) != 0) {
    return error_set_errno(l->error, errno, HF_E_FILE_NOT_FOUND, "a file cannot be read: %s", written);
  }
  if (S_ISDIR(facts.st_mode)) {
    error_set(l->error, HF_E_FILE_FORMAT, "the path is a directory: %s", written);
    error_hint(l->error, "name its files with a pattern such as '%s%s*%s'", written,
               written[strlen(written) - 1] == '/' ? "" : "/", ENDINGS[l->format]);
    return HF_E_FILE_FORMAT;
  }
  if (!S_ISREG(facts.st_mode)) {
    return refuse_special(l, written);
  }
  if (access(path, R_OK) != 0) {
    hf_status status =
        error_set_errno(l->error, errno, HF_E_FILE_NOT_FOUND, "a file cannot be read: %s", written);
    error_hint(l->error, "the process needs permission to read the file");
    return status;
  }
  *out = facts_of(path, &facts);
  return HF_OK;
}

/* What else must stay for the list to stay: the directories of patterns, and links where they led to. */
static hf_status add_others(lister *l, listing *out) {
  size_t n_dirs = 0;
  for (const glob_dir *dir = l->dirs; dir != NULL; dir = dir->next) {
    n_dirs++;
  }
  source_version *others = arena_array(l->arena, n_dirs + out->n_files, sizeof *others);
  if (others == NULL) {
    return out_of_memory(l);
  }
  for (const glob_dir *dir = l->dirs; dir != NULL; dir = dir->next) {
    bool exists = false;
    HF_TRY(resolve_directory(l, dir->path, &others[out->n_others].path, &exists));
    others[out->n_others++].mtime_ns = dir->mtime_ns;
  }
  for (size_t i = 0; i < out->n_files; i++) {
    const source_file *file = &out->files[i];
    if (out->written[i][0] == '/' && strcmp(out->written[i], file->path) != 0) {
      others[out->n_others++] = (source_version){out->written[i], file->bytes, file->mtime_ns};
    }
  }
  out->others = others;
  return HF_OK;
}

static hf_status finish(lister *l, listing *out) {
  size_t n = l->resolved.count;
  listing result = {.n_files = n};
  result.files = arena_array(l->arena, n, sizeof *result.files);
  const char **written = arena_array(l->arena, n, sizeof *written);
  if (result.files == NULL || written == NULL) {
    return out_of_memory(l);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(read_facts(l, i, &result.files[i]));
    written[i] = l->written.paths[i];
    result.bytes += result.files[i].bytes;
  }
  result.written = written;
  *out = result;
  return add_others(l, out);
}

hf_status listing_make(const source_catalog_options *options, const source_request *request, arena *a,
                       listing *out, hf_error *error) {
  lister l = {.format = request->format, .options = options, .arena = a, .error = error};
  hf_status status =
      request->n_paths > 0 ? HF_OK : error_set(error, HF_E_INVALID_ARGUMENT, "no path is given");
  for (size_t i = 0; status == HF_OK && i < request->n_paths; i++) {
    status =
        add_path(&l, request->paths[i], request->written == NULL ? request->paths[i] : request->written[i]);
  }
  if (status == HF_OK) {
    status = finish(&l, out);
  }
  path_list_reset(&l.written);
  path_list_reset(&l.resolved);
  mem_free(l.facts);
  return status;
}

const char *source_path_absolute(const char *path, arena *a) {
  char directory[PATH_MAX];
  bool is_relative = path[0] != '\0' && path[0] != '/' && strncmp(path, "~/", 2) != 0 &&
                     strncasecmp(path, "file:", 5) != 0 && strstr(path, "://") == NULL;
  if (!is_relative || getcwd(directory, sizeof directory) == NULL) {
    return arena_strdup(a, path);
  }
  return arena_printf(a, "%s%s%s", directory, directory[1] == '\0' ? "" : "/", path);
}

/* ------------------------------------------------------------------ writing */

/* Finds the directory, resolved, and the name of a path that is to be written. */
static hf_status split_target(const lister *l, const char *path, const char **directory, const char **name) {
  const char *slash = strrchr(path, '/');
  size_t length = slash == NULL ? 0 : (size_t)(slash - path);
  const char *above = slash == NULL ? "." : length == 0 ? "/" : arena_strndup(l->arena, path, length);
  bool exists = false;
  *name = slash == NULL ? path : slash + 1;
  if (above == NULL) {
    return out_of_memory(l);
  }
  if ((*name)[0] == '\0' || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) {
    return error_set(l->error, HF_E_INVALID_ARGUMENT, "the path has no file name: %s", path);
  }
  HF_TRY(resolve(l, above, directory, &exists));
  if (!is_allowed(l->options, *directory)) {
    return refuse_path(l, path);
  }
  struct stat facts;
  if (!exists || stat(*directory, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    error_set(l->error, HF_E_FILE_NOT_FOUND, "there is no such directory: %s", above);
    error_hint(l->error, "make the directory first");
    return HF_E_FILE_NOT_FOUND;
  }
  return HF_OK;
}

hf_status listing_target(const source_catalog_options *options, const char *path, arena *a, const char **out,
                         hf_error *error) {
  lister l = {.options = options, .arena = a, .error = error};
  const char *plain = NULL, *directory = NULL, *name = NULL;
  if (path[0] == '\0' || !utf8_is_right(path)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a path is %s", path[0] == '\0' ? "empty" : "not UTF-8");
  }
  HF_TRY(expand_scheme(&l, path, &plain));
  HF_TRY(split_target(&l, plain, &directory, &name));
  *out = arena_printf(a, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
  if (*out == NULL) {
    return out_of_memory(&l);
  }
  return is_allowed(options, *out) ? HF_OK : refuse_path(&l, path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion at the prompt: SQL keywords, the session's names, file names
 * behind an open quote, backslash commands at the start of a line.
 * Thread: the main thread.
 */
#include "sql.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const keywords[] = {"ALL",       "ANALYZE",      "AND",          "ANY_VALUE",
                                       "AS",        "ASC",          "AVG",          "BETWEEN",
                                       "BY",        "CACHE",        "CASE",         "CAST",
                                       "CLEAR",     "COLUMNS",      "COUNT",        "CREATE",
                                       "CROSS",     "DATE",         "DESC",         "DESCRIBE",
                                       "DISTINCT",  "DROP",         "ELSE",         "END",
                                       "EXCEPT",    "EXCLUDE",      "EXISTS",       "EXPLAIN",
                                       "EXTRACT",   "FALSE",        "FILTER",       "FIRST",
                                       "FROM",      "FULL",         "GROUP",        "HAVING",
                                       "IF",        "IN",           "INNER",        "INTERSECT",
                                       "INTERVAL",  "IS",           "JOIN",         "LAST",
                                       "LATERAL",   "LAZY",         "LEFT",         "LIKE",
                                       "LIMIT",     "MATERIALIZED", "MAX",          "MEDIAN",
                                       "MIN",       "NATURAL",      "NOT",          "NULL",
                                       "NULLS",     "OFFSET",       "ON",           "OPTIONS",
                                       "OR",        "ORDER",        "OUTER",        "OVER",
                                       "PARTITION", "PIVOT",        "QUALIFY",      "QUANTILE_CONT",
                                       "READ_CSV",  "READ_JSON",    "READ_PARQUET", "RECURSIVE",
                                       "REFRESH",   "REPLACE",      "RESET",        "RIGHT",
                                       "ROWS",      "SAMPLE",       "SELECT",       "SET",
                                       "SHOW",      "SUM",          "SUMMARIZE",    "TABLE",
                                       "TABLES",    "TEMP",         "THEN",         "TIMESTAMP",
                                       "TRUE",      "TRY_CAST",     "UNCACHE",      "UNION",
                                       "UNNEST",    "UNPIVOT",      "USING",        "VALUES",
                                       "VIEW",      "WHEN",         "WHERE",        "WINDOW",
                                       "WITH"};

static const char *const backslash_commands[] = {"\\?", "\\format", "\\q", "\\timing"};

/* More candidates than this are of no help. */
enum { WORDS_MAX = 500 };

typedef struct finder {
  arena *memory;
  completion *out;
  const char *prefix;
  size_t prefix_length;
} finder;

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

static bool begins_with(const char *word, const char *prefix, size_t length, bool any_case) {
  return any_case ? strncasecmp(word, prefix, length) == 0 : strncmp(word, prefix, length) == 0;
}

/* Adds word + suffix; letters as given by `map` (NULL: unchanged). */
static void add(finder *f, const char *word, const char *suffix, int (*map)(int)) {
  if (f->out->n_words == WORDS_MAX) {
    return;
  }
  char *text = arena_printf(f->memory, "%s%s", word, suffix);
  if (text == NULL) {
    return;
  }
  for (char *c = text; map != NULL && *c != '\0'; c++) {
    *c = (char)map((unsigned char)*c);
  }
  f->out->words[f->out->n_words++] = text;
}

static void add_matching(finder *f, const char *const *words, size_t n, int (*map)(int)) {
  for (size_t i = 0; i < n; i++) {
    if (begins_with(words[i], f->prefix, f->prefix_length, true)) {
      add(f, words[i], " ", map);
    }
  }
}

static bool add_name(void *context, const char *name) {
  finder *f = context;
  bool plain = name[0] != '\0' && !isdigit((unsigned char)name[0]);
  for (const char *c = name; *c != '\0'; c++) {
    plain = plain && (isalnum((unsigned char)*c) || *c == '_');
  }
  if (begins_with(name, f->prefix, f->prefix_length, true)) {
    buf quoted = {0};
    buf_sql_name(&quoted, name);
    add(f, plain ? name : buf_cstr(&quoted), " ", NULL);
    buf_reset(&quoted);
  }
  return f->out->n_words < WORDS_MAX;
}

/* Adds the files of the directory that the prefix names; a directory ends with '/', a file with the closing quote. */
static void add_files(finder *f) {
  const char *slash = strrchr(f->prefix, '/');
  size_t directory = slash != NULL ? (size_t)(slash - f->prefix) + 1 : 0;
  char *path = arena_strndup(f->memory, f->prefix, directory);
  const char *rest = f->prefix + directory;
  DIR *open = path != NULL ? opendir(directory > 0 ? path : ".") : NULL;
  if (open == NULL) {
    return;
  }
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    bool hidden = entry->d_name[0] == '.' && rest[0] != '.';
    if (hidden || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        !begins_with(entry->d_name, rest, strlen(rest), false)) {
      continue;
    }
    char *full = arena_printf(f->memory, "%s%s", path, entry->d_name);
    struct stat info;
    bool is_directory = full != NULL && stat(full, &info) == 0 && S_ISDIR(info.st_mode);
    if (full != NULL) {
      add(f, full, is_directory ? "/" : "'", NULL);
    }
  }
  closedir(open);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_unique(completion *c) {
  qsort(c->words, c->n_words, sizeof *c->words, by_text);
  size_t kept = 0;
  for (size_t i = 0; i < c->n_words; i++) {
    if (kept == 0 || strcmp(c->words[kept - 1], c->words[i]) != 0) {
      c->words[kept++] = c->words[i];
    }
  }
  c->n_words = kept;
}

/* Where the text in the open single quote begins, or SIZE_MAX when none is open at the cursor. */
static size_t open_quote(const char *line, size_t cursor) {
  size_t start = SIZE_MAX;
  for (size_t i = 0; i < cursor; i++) {
    if (line[i] == '\'') {
      start = start == SIZE_MAX ? i + 1 : SIZE_MAX;
    }
  }
  return start;
}

void completion_find(session *s, const char *line, size_t cursor, arena *a, completion *out) {
  *out = (completion){.words = arena_array(a, WORDS_MAX, sizeof *out->words)};
  finder f = {.memory = a, .out = out};
  size_t quote = open_quote(line, cursor);
  out->start = quote != SIZE_MAX ? quote : cursor;
  while (quote == SIZE_MAX && out->start > 0 && is_word(line[out->start - 1])) {
    out->start--;
  }
  bool is_command = quote == SIZE_MAX && line[0] == '\\' && out->start <= 1;
  out->start = is_command ? 0 : out->start;
  f.prefix_length = cursor - out->start;
  f.prefix = arena_strndup(a, line + out->start, f.prefix_length);
  if (out->words == NULL || f.prefix == NULL) {
    return;
  }
  if (quote != SIZE_MAX) {
    add_files(&f);
  } else if (is_command) {
    add_matching(&f, backslash_commands, sizeof backslash_commands / sizeof backslash_commands[0], NULL);
  } else if (f.prefix_length > 0) {
    bool lower = islower((unsigned char)f.prefix[f.prefix_length - 1]) != 0;
    session_each_name(s, add_name, &f);
    add_matching(&f, keywords, sizeof keywords / sizeof keywords[0], lower ? tolower : toupper);
  }
  sort_unique(out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of sqllogictest, line by line. */
#include "support/slt_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  FILE *file;
  char *line;
  size_t capacity;
} reader;

/* Reads a line without its end; comments are skipped. False at the end of the file. */
static bool next_line(reader *r) {
  for (;;) {
    ssize_t n = getline(&r->line, &r->capacity, r->file);
    if (n < 0) {
      return false;
    }
    while (n > 0 && (r->line[n - 1] == '\n' || r->line[n - 1] == '\r')) {
      r->line[--n] = '\0';
    }
    if (r->line[0] != '#') {
      return true;
    }
  }
}

static bool starts_with(const char *line, const char *word) {
  size_t n = strlen(word);
  return strncmp(line, word, n) == 0 && (line[n] == '\0' || line[n] == ' ' || line[n] == '\t');
}

static void skip_file(slt_file *file, const char *why) {
  if (file->skipped == NULL) {
    file->skipped = strdup(why);
  }
}

/* What the linked library has, or what does not matter here. */
static bool is_met(const char *requirement) {
  static const char *const met[] = {"json",
                                    "parquet",
                                    "icu",
                                    "core_functions",
                                    "vector_size",
                                    "noforcestorage",
                                    "skip_reload",
                                    "no_alternative_verify",
                                    "notmusl",
                                    "notmingw",
                                    "longdouble",
                                    "64bit",
                                    "notwindows",
                                    "no_extension_autoloading",
                                    "no_vector_verification",
                                    "block_size"};
  for (size_t i = 0; i < sizeof met / sizeof met[0]; i++) {
    if (starts_with(requirement, met[i])) {
      return true;
    }
  }
  return false;
}

/* Reads lines up to an empty one, or up to the results; the text is owned by the caller. */
static char *read_sql(reader *r) {
  char *sql = calloc(1, 1);
  size_t length = 0;
  bool in_results = false;
  while (next_line(r) && r->line[0] != '\0') {
    in_results = in_results || strcmp(r->line, "----") == 0;
    if (in_results) {
      continue;
    }
    size_t n = strlen(r->line);
    sql = realloc(sql, length + n + 2);
    if (sql == NULL) {
      abort();
    }
    memcpy(sql + length, r->line, n);
    length += n;
    sql[length++] = '\n';
    sql[length] = '\0';
  }
  while (length > 0 && strchr("; \t\n", sql[length - 1]) != NULL) {
    sql[--length] = '\0';
  }
  return sql;
}

static void add_record(slt_file *file, slt_kind kind, char *sql) {
  if ((file->n_records & (file->n_records - 1)) == 0) {
    size_t capacity = file->n_records == 0 ? 1 : 2 * file->n_records;
    file->records = realloc(file->records, capacity * sizeof *file->records);
    if (file->records == NULL) {
      abort();
    }
  }
  file->records[file->n_records].kind = kind;
  file->records[file->n_records++].sql = sql;
}

static void read_head(reader *r, slt_file *file) {
  static const char *const unhandled[] = {"foreach",   "loop", "concurrentloop", "restart",
                                          "reconnect", "load", "require-env",    "unzip",
                                          "test-env",  "mode", "halt",           "sleep"};
  const char *line = r->line;
  for (size_t i = 0; i < sizeof unhandled / sizeof unhandled[0]; i++) {
    if (starts_with(line, unhandled[i])) {
      skip_file(file, unhandled[i]);
      return;
    }
  }
  if (starts_with(line, "require")) {
    if (!is_met(line + strlen("require "))) {
      skip_file(file, line);
    }
  } else if (starts_with(line, "statement")) {
    /* one that must fail is run as well: it leaves the same state behind */
    add_record(file, SLT_STATEMENT, read_sql(r));
  } else if (starts_with(line, "query")) {
    add_record(file, SLT_QUERY, read_sql(r));
  } else if (starts_with(line, "skipif duckdb") || starts_with(line, "onlyif")) {
    bool is_ours = starts_with(line, "onlyif duckdb");
    if (!is_ours && next_line(r)) {
      free(read_sql(r));
    }
  }
}

bool slt_file_read(const char *path, slt_file *out) {
  reader r = {.file = fopen(path, "r")};
  memset(out, 0, sizeof *out);
  if (r.file == NULL) {
    return false;
  }
  while (next_line(&r)) {
    read_head(&r, out);
  }
  free(r.line);
  fclose(r.file);
  return true;
}

void slt_file_free(slt_file *file) {
  for (size_t i = 0; i < file->n_records; i++) {
    free(file->records[i].sql);
  }
  free(file->records);
  free(file->skipped);
  memset(file, 0, sizeof *file);
}

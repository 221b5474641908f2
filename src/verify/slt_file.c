/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading files of sqllogictest, line by line.
 * Thread: one at a time.
 */
#include "slt_file.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 28)

typedef struct reader {
  char *at, *end; /* what is not read yet */
  char *line;     /* without its end */
  size_t number;  /* of the line */
  bool failed;    /* no memory */
} reader;

/* Comments are skipped. False at the end of the file. */
static bool next_line(reader *r) {
  while (r->at < r->end) {
    char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    char *stop = newline == NULL ? r->end : newline;
    r->line = r->at;
    r->at = newline == NULL ? r->end : newline + 1;
    r->number++;
    *stop = '\0';
    while (stop > r->line && stop[-1] == '\r') {
      *--stop = '\0';
    }
    if (r->line[0] != '#') {
      return true;
    }
  }
  return false;
}

static bool starts_with(const char *line, const char *word) {
  size_t n = strlen(word);
  return strncmp(line, word, n) == 0 && (line[n] == '\0' || line[n] == ' ' || line[n] == '\t');
}

static void skip_file(slt_file *file, const char *why) {
  if (file->skipped == NULL) {
    file->skipped = mem_strdup(why);
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
  buf sql = {0};
  bool in_results = false;
  while (next_line(r) && r->line[0] != '\0') {
    in_results = in_results || strcmp(r->line, "----") == 0;
    if (!in_results) {
      buf_text(&sql, r->line);
      buf_char(&sql, '\n');
    }
  }
  while (sql.length > 0 && strchr("; \t\n", sql.data[sql.length - 1]) != NULL) {
    sql.data[--sql.length] = '\0';
  }
  char *text = sql.length > 0 ? buf_take(&sql) : mem_strdup("");
  buf_reset(&sql);
  r->failed = r->failed || text == NULL;
  return text;
}

static void add_record(reader *r, slt_file *file, slt_kind kind) {
  size_t line = r->number;
  char *sql = read_sql(r);
  if ((file->n_records & (file->n_records - 1)) == 0) {
    size_t capacity = file->n_records == 0 ? 1 : 2 * file->n_records;
    slt_record *records = mem_realloc(file->records, capacity * sizeof *records);
    if (records == NULL) {
      r->failed = true;
      mem_free(sql);
      return;
    }
    file->records = records;
  }
  if (sql != NULL) {
    file->records[file->n_records++] = (slt_record){kind, sql, line};
  }
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
    add_record(r, file, SLT_STATEMENT);
  } else if (starts_with(line, "query")) {
    add_record(r, file, SLT_QUERY);
  } else if (starts_with(line, "skipif duckdb") || starts_with(line, "onlyif")) {
    bool is_ours = starts_with(line, "onlyif duckdb");
    if (!is_ours && next_line(r)) {
      mem_free(read_sql(r));
    }
  }
}

bool slt_file_read(const char *path, slt_file *out) {
  char *text = NULL;
  size_t length = 0;
  memset(out, 0, sizeof *out);
  if (file_read_whole(path, FILE_BYTES_MAX, HF_E_FILE_NOT_FOUND, &text, &length, NULL) != HF_OK) {
    return false;
  }
  reader r = {.at = text, .end = text + length};
  while (!r.failed && next_line(&r)) {
    read_head(&r, out);
  }
  mem_free(text);
  if (r.failed) {
    slt_file_free(out);
  }
  return !r.failed;
}

void slt_file_free(slt_file *file) {
  for (size_t i = 0; i < file->n_records; i++) {
    mem_free(file->records[i].sql);
  }
  mem_free(file->records);
  mem_free(file->skipped);
  memset(file, 0, sizeof *file);
}

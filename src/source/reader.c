/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a reader text with files; the grammar is in reader.h. */
#include "source/reader.h"

#include "source/source.h"

#include <string.h>

enum {
  FILES_MARK = '\x01',
  GROUP_MARK = '\x02',
  PATH_MARK = '\x03',
  CUT_BEGIN_MARK = '\x04',
  CUT_END_MARK = '\x05'
};

/* What a template is filled with. */
typedef struct filling {
  const char *const *paths;
  size_t n_paths;
  uint64_t first, count; /* rows of the only file; count 0: all */
} filling;

void reader_begin_group(buf *text, const char *call) {
  buf_char(text, GROUP_MARK);
  buf_text(text, call);
}

void reader_add_path(buf *text, const char *path) {
  buf_char(text, PATH_MARK);
  buf_text(text, path);
}

/* So many paths are one text that is split: of a list DuckDB keeps an expression for each, 5 kB a path. */
enum { MOST_IN_A_LIST = 100 };

/* A mark becomes a set of one, so that it stands for itself; for the inside of a string. */
static void append_path(buf *out, const char *path) {
  for (const char *c = path; *c != '\0'; c++) {
    if (strchr("*?[", *c) != NULL) {
      buf_char(out, '[');
      buf_char(out, *c);
      buf_char(out, ']');
    } else {
      buf_text(out, *c == '\'' ? "'" : "");
      buf_char(out, *c);
    }
  }
}

static bool has_line_break(const char *const *paths, size_t n_paths) {
  bool found = false;
  for (size_t i = 0; !found && i < n_paths; i++) {
    found = strchr(paths[i], '\n') != NULL;
  }
  return found;
}

void reader_file_list(const char *const *paths, size_t n_paths, buf *out) {
  bool is_text = n_paths > MOST_IN_A_LIST && !has_line_break(paths, n_paths);
  buf_text(out, is_text ? "string_split('" : "[");
  for (size_t i = 0; i < n_paths; i++) {
    buf_text(out, is_text ? "" : "'");
    append_path(out, paths[i]);
    buf_text(out, is_text ? "" : "'");
    if (i + 1 < n_paths) {
      buf_text(out, is_text ? "\n" : ", ");
    }
  }
  buf_text(out, is_text ? "', chr(10))" : "]");
}

/* Each comparison costs DuckDB about a nanosecond a row: none that every row meets. */
static void fill_range(uint64_t first, uint64_t end, buf *out) {
  if (first == 0) {
    buf_printf(out, "< %llu", (unsigned long long)end);
  } else if (end >= SOURCE_END) {
    buf_printf(out, ">= %llu", (unsigned long long)first);
  } else {
    buf_printf(out, "BETWEEN %llu AND %llu", (unsigned long long)first, (unsigned long long)(end - 1));
  }
}

static void fill_mark(char mark, const filling *with, buf *out) {
  if (mark == FILES_MARK) {
    reader_file_list(with->paths, with->n_paths, out);
  } else if (with->count > 0 && mark == CUT_BEGIN_MARK) {
    buf_text(out, "(SELECT * FROM ");
  } else if (with->count > 0) {
    buf_text(out, " WHERE file_row_number ");
    fill_range(with->first, with->first + with->count, out);
    buf_char(out, ')');
  }
}

/* Puts the files and the range into a template of `length` bytes. */
static void fill(const char *text, size_t length, const filling *with, buf *out) {
  for (const char *end = text + length; text < end;) {
    size_t run = 0;
    while (text + run < end && strchr("\x01\x04\x05", text[run]) == NULL) {
      run++;
    }
    buf_append(out, text, run);
    text += run;
    if (text < end) {
      fill_mark(*text++, with, out);
    }
  }
}

/* ------------------------------------------------------------------ groups */

typedef struct group_path {
  const char *group; /* behind its mark */
  const char *path;  /* behind its mark */
} group_path;

static size_t part_length(const char *text) {
  return strcspn(text, "\x02\x03");
}

static bool is_path(group_path at, const char *path) {
  size_t length = part_length(at.path);
  return strncmp(at.path, path, length) == 0 && path[length] == '\0';
}

/* Moves to the next path, from the last one to the first. */
static group_path next_path(const char *reader, group_path at) {
  const char *end = at.path + part_length(at.path);
  if (*end == '\0') {
    end = reader;
  }
  if (*end == GROUP_MARK) {
    at.group = end + 1;
    end = at.group + part_length(at.group);
  }
  at.path = end + 1;
  return at;
}

/* Finds a path from `start` on, all the way round; path NULL: the text does not name it. */
static group_path find_path(const char *reader, group_path start, const char *path) {
  group_path at = start;
  do {
    if (is_path(at, path)) {
      return at;
    }
    at = next_path(reader, at);
  } while (at.path != start.path);
  return (group_path){start.group, NULL};
}

/* Files come in the caller's order: a run of files of one group is one call. */
static void scan_groups(const char *reader, const char *const *paths, size_t n_paths, buf *out) {
  group_path at = {reader + 1, NULL};
  at.path = reader + 1 + part_length(reader + 1) + 1;
  buf_char(out, '(');
  size_t first = 0;
  for (size_t i = 0; i <= n_paths; i++) {
    group_path found = i < n_paths ? find_path(reader, at, paths[i]) : (group_path){NULL, NULL};
    bool ends_run = i > first && found.group != at.group;
    if (ends_run) {
      buf_text(out, first == 0 ? "SELECT * FROM " : " UNION ALL SELECT * FROM ");
      fill(at.group, part_length(at.group), &(filling){.paths = paths + first, .n_paths = i - first}, out);
      first = i;
    }
    if (found.path != NULL) {
      at = found;
    }
  }
  buf_char(out, ')');
}

void source_scan_sql(const char *reader, const char *const *paths, size_t n_paths, buf *out) {
  if (reader[0] == GROUP_MARK) {
    scan_groups(reader, paths, n_paths, out);
  } else {
    fill(reader, strlen(reader), &(filling){.paths = paths, .n_paths = n_paths}, out);
  }
}

bool reader_can_cut(const char *reader) {
  return strchr(reader, CUT_BEGIN_MARK) != NULL;
}

void source_range_sql(const char *reader, const char *path, uint64_t first, uint64_t count, buf *out) {
  fill(reader, strlen(reader), &(filling){.paths = &path, .n_paths = 1, .first = first, .count = count}, out);
}

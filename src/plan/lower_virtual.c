/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual columns of files that a query names: the source is read with options
 * that make them columns, and stars leave them out (relation/names_virtual.c
 * found both). A column of the file itself that has such a name comes first.
 */
#include "plan/lower_internal.h"

#include <string.h>
#include <strings.h>

/* The list of a source's files is in the text of each task. */
enum { MOST_INDEXED_FILES = 1000 };

static bool has_column(const source *s, const char *name) {
  const schema *columns = source_columns(s);
  for (size_t i = 0; i < columns->n_columns; i++) {
    if (strcasecmp(columns->columns[i].name, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Of partitioned files DuckDB counts those that filters leave. */
static bool may_be_partitioned(const char *path) {
  const char *last = strrchr(path, '/'), *sign = strchr(path, '=');
  return sign != NULL && last != NULL && sign < last;
}

/* The place of a file in the list is looked up by its path. */
static bool can_index(const source *s) {
  size_t n = source_n_files(s);
  const source_file *files = source_files(s);
  bool can = n <= MOST_INDEXED_FILES && !has_column(s, "filename");
  for (size_t i = 0; can && n > 1 && i < n; i++) {
    can = !may_be_partitioned(files[i].path);
    for (size_t k = 0; can && k < i; k++) {
      can = strcmp(files[i].path, files[k].path) != 0;
    }
  }
  return can;
}

static unsigned given_by(const source *s, const spot_virtual *columns) {
  unsigned wanted = columns->wanted, given = 0;
  if (columns->may_be_row && !has_column(s, columns->called)) {
    return 0;
  }
  given |= has_column(s, "filename") ? 0 : wanted & VIRTUAL_FILENAME;
  given |= has_column(s, "file_row_number") ? 0 : wanted & VIRTUAL_FILE_ROW_NUMBER;
  if ((wanted & VIRTUAL_FILE_INDEX) != 0 && !has_column(s, "file_index") && can_index(s)) {
    given |= VIRTUAL_FILE_INDEX | VIRTUAL_FILENAME;
  }
  return given;
}

unsigned lower_virtual(const lowering *l, const sql_spot *spot, const source_request **request) {
  const spot_virtual *columns = spot->columns;
  *request = spot->source;
  const source *s =
      columns == NULL || l->counts_only ? NULL : l->knowledge->source_of(l->knowledge->context, spot->source);
  unsigned given = s == NULL ? 0 : given_by(s, columns);
  if (given != 0) {
    *request = columns->with[given & (VIRTUAL_FILENAME | VIRTUAL_FILE_ROW_NUMBER)];
  }
  return given;
}

hf_status lower_put_indexed(lowering *l, piece_list *list, const source *s, uint32_t number) {
  buf text = {0};
  buf_text(&text, "(SELECT *, CAST(list_position([");
  for (size_t i = 0; i < source_n_files(s); i++) {
    buf_text(&text, i == 0 ? "" : ", ");
    buf_sql_string(&text, source_files(s)[i].path);
  }
  buf_text(&text, "], filename) - 1 AS UBIGINT) AS file_index FROM ");
  hf_status status = text.failed ? lower_out_of_memory(l) : lower_put(l, list, buf_cstr(&text));
  buf_reset(&text);
  HF_TRY(status);
  HF_TRY(lower_put_input(l, list, number));
  return lower_put(l, list, ")");
}

/* Appends the names of what a file gives. */
static void append_given(const spot_star *star, const sql_spot *file, unsigned given, buf *text) {
  static const struct {
    virtual_column column;
    const char *name;
  } names[] = {{VIRTUAL_FILENAME, "filename"},
               {VIRTUAL_FILE_ROW_NUMBER, "file_row_number"},
               {VIRTUAL_FILE_INDEX, "file_index"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if ((given & names[i].column) == 0) {
      continue;
    }
    buf_text(text, text->length > 0 ? ", " : star->has_list ? "" : " EXCLUDE (");
    if (!star->is_plain) {
      buf_sql_name(text, file->columns->called);
      buf_char(text, '.');
    }
    buf_text(text, names[i].name);
  }
}

hf_status lower_put_star(lowering *l, piece_list *list, const spot_star *star) {
  buf text = {0};
  for (size_t i = 0; i < star->n_files; i++) {
    const source_request *ignored = NULL;
    append_given(star, &star->files[i], lower_virtual(l, &star->files[i], &ignored), &text);
  }
  buf_text(&text, text.length == 0 ? "" : star->has_list ? ", " : ") ");
  hf_status status = text.failed ? lower_out_of_memory(l) : HF_OK;
  if (status == HF_OK && star->is_bare && text.length > 0) {
    status = lower_put(l, list, "SELECT *");
  }
  if (status == HF_OK) {
    status = lower_put(l, list, buf_cstr(&text));
  }
  buf_reset(&text);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV: each file is sniffed once, here; the call then spells dialect, names and
 * types out. Files that are laid out alike share a call; files that differ in
 * more than what a call can tell, or are too many to sniff, keep the user's own
 * call, with the types fixed.
 */
#include "source/discover.h"

#include "source/glob.h"
#include "source/option.h"
#include "source/reader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* More files are not sniffed one by one: a sniff costs some ms. */
enum { MOST_SNIFFED = 256 };

/* What sniff_csv tells of a file; texts as they go into SQL literals. */
typedef struct layout {
  const char *delimiter, *quote, *escape, *new_line, *comment, *skip;
  const char *date_format, *timestamp_format; /* NULL: none */
  bool has_header;
  size_t n_names;
  const char *const *names;
} layout;

/* ---------------------------------------------------------------- sniffing */

static bool has_any(const source_request *request, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (option_value(request, names[i]) != NULL) {
      return true;
    }
  }
  return false;
}

/* sniff_csv takes the user's options, but for names and types of columns, which are known by now. */
static void append_sniff_options(const discovery *d, const layout *first, buf *out) {
  static const char *const columns[] = {"columns"};
  static const char *const types[] = {"types", "dtypes", "column_types", "columns", "names", "column_names"};
  bool has_columns = has_any(d->request, columns, 1);
  for (size_t i = 0; i < d->request->n_options; i++) {
    const source_option *option = &d->request->options[i];
    bool is_known =
        strcasecmp(option->name, "columns") == 0 || option_role_of(SOURCE_CSV, option->name) == OPTION_FILES;
    if (!is_known) {
      buf_printf(out, ", %s = %s", option->name, option->value_sql);
    }
  }
  if (has_columns) {
    buf_text(out, ", names = [");
    for (size_t i = 0; i < d->n_file_columns; i++) {
      buf_text(out, i == 0 ? "" : ", ");
      buf_sql_string(out, d->columns.columns[i].name);
    }
    buf_text(out, "], types = ");
    discover_columns_literal(d->columns.columns, d->n_file_columns, out);
  }
  if (first != NULL && option_value(d->request, "header") == NULL && !has_any(d->request, types, 6)) {
    buf_text(out, first->has_header ? ", header = true" : ", header = false");
  }
}

static const char *cell(const text_table *t, size_t row, size_t at) {
  const char *text = t->cells[row * t->n_columns + at];
  return text == NULL || strcmp(text, "(empty)") == 0 ? "" : text;
}

static hf_status read_layout(const discovery *d, const text_table *t, layout *out) {
  const char **names = arena_array(d->arena, t->n_rows == 0 ? 1 : t->n_rows, sizeof *names);
  if (names == NULL) {
    return discover_out_of_memory(d);
  }
  if (t->n_rows == 0) {
    return error_set(d->error, HF_E_FILE_FORMAT, "no column was found");
  }
  for (size_t i = 0; i < t->n_rows; i++) {
    names[i] = cell(t, i, 9);
  }
  const char *date = t->cells[7], *timestamp = t->cells[8];
  *out = (layout){.delimiter = cell(t, 0, 0),
                  .quote = cell(t, 0, 1),
                  .escape = cell(t, 0, 2),
                  .new_line = cell(t, 0, 3),
                  .comment = cell(t, 0, 4),
                  .skip = cell(t, 0, 5),
                  .has_header = strcmp(cell(t, 0, 6), "true") == 0,
                  .date_format = date,
                  .timestamp_format = timestamp,
                  .n_names = t->n_rows,
                  .names = names};
  return HF_OK;
}

/* `first`: the layout of the first file when the others follow it. */
static hf_status sniff(const discovery *d, const char *path, const layout *first, layout *out) {
  buf sql = {0};
  text_table table = {0};
  buf_text(&sql,
           "SELECT Delimiter, Quote, Escape, NewLineDelimiter, Comment, SkipRows, HasHeader, DateFormat, "
           "TimestampFormat, c.name FROM (SELECT *, unnest(Columns) AS c FROM sniff_csv(");
  const char *escaped = glob_escape(path, d->arena);
  buf_sql_string(&sql, escaped == NULL ? path : escaped);
  append_sniff_options(d, first, &sql);
  buf_text(&sql, "))");
  hf_status status = sql.failed ? discover_out_of_memory(d)
                                : engine_query_text(d->engine, buf_cstr(&sql), d->arena, &table, d->error);
  buf_reset(&sql);
  HF_TRY(status);
  return read_layout(d, &table, out);
}

/* ------------------------------------------------------------- comparisons */

static bool texts_equal(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool layouts_equal(const layout *a, const layout *b) {
  bool equal = texts_equal(a->delimiter, b->delimiter) && texts_equal(a->quote, b->quote) &&
               texts_equal(a->escape, b->escape) && texts_equal(a->new_line, b->new_line) &&
               texts_equal(a->comment, b->comment) && texts_equal(a->skip, b->skip) &&
               texts_equal(a->date_format, b->date_format) &&
               texts_equal(a->timestamp_format, b->timestamp_format) && a->has_header == b->has_header &&
               a->n_names == b->n_names;
  for (size_t i = 0; equal && i < a->n_names; i++) {
    equal = strcmp(a->names[i], b->names[i]) == 0;
  }
  return equal;
}

static const column *column_find(const discovery *d, const char *name) {
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    if (strcasecmp(d->columns.columns[i].name, name) == 0) {
      return &d->columns.columns[i];
    }
  }
  return NULL;
}

static bool layout_has(const layout *l, const char *name) {
  for (size_t i = 0; i < l->n_names; i++) {
    if (strcasecmp(l->names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

/* Whether the file has all columns; with union_by_name it may lack some, then it has at least no unknown one. */
static bool fits(const discovery *d, const layout *l, bool is_union) {
  if (!l->has_header && l->n_names != d->n_file_columns) {
    return false;
  }
  for (size_t i = 0; !is_union && i < d->n_file_columns; i++) {
    if (!layout_has(l, d->columns.columns[i].name)) {
      return false;
    }
  }
  for (size_t i = 0; is_union && i < l->n_names; i++) {
    if (column_find(d, l->names[i]) == NULL) {
      return false;
    }
  }
  return true;
}

/* ------------------------------------------------------------------- calls */

static void append_text_option(const char *name, const char *value, buf *out) {
  buf_printf(out, ", %s = ", name);
  buf_sql_string(out, value);
}

/* The columns of a file in its own order, with the types that the source gives them. */
static void append_file_columns(const discovery *d, const layout *l, buf *out) {
  static const data_type text = {.kind = TYPE_VARCHAR};
  column *columns = arena_array(d->arena, l->n_names, sizeof *columns);
  if (columns == NULL) {
    out->failed = true;
    return;
  }
  for (size_t i = 0; i < l->n_names; i++) {
    const column *known = column_find(d, l->names[i]);
    columns[i] = (column){l->names[i], known == NULL ? &text : known->type};
  }
  buf_text(out, ", columns = ");
  discover_columns_literal(columns, l->n_names, out);
}

static void append_call(const discovery *d, const layout *l, buf *out) {
  discover_call(d, NULL, 0, CALL_RESOLVED, out);
  buf_text(out, ", auto_detect = false");
  append_text_option("delim", l->delimiter, out);
  append_text_option("quote", l->quote, out);
  append_text_option("escape", l->escape, out);
  append_text_option("comment", l->comment, out);
  if (l->new_line[0] == '\\') {
    append_text_option("new_line", l->new_line, out);
  }
  if (l->date_format != NULL) {
    append_text_option("dateformat", l->date_format, out);
  }
  if (l->timestamp_format != NULL) {
    append_text_option("timestampformat", l->timestamp_format, out);
  }
  buf_printf(out, ", skip = %s, header = %s", l->skip, l->has_header ? "true" : "false");
  append_file_columns(d, l, out);
  discover_hive_options(d, true, out);
  buf_char(out, ')');
}

/* Whether the call gives the columns as they are wanted. */
static bool is_in_order(const discovery *d, const layout *l) {
  bool in_order = l->n_names == d->n_file_columns;
  for (size_t i = 0; in_order && i < l->n_names; i++) {
    in_order = strcmp(l->names[i], d->columns.columns[i].name) == 0;
  }
  return in_order;
}

/* The call with a selection around it when the file has other columns, or has them in another order. */
static void append_selected_call(const discovery *d, const layout *l, buf *out) {
  if (is_in_order(d, l)) {
    append_call(d, l, out);
    return;
  }
  buf_text(out, "(SELECT ");
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    const column *c = &d->columns.columns[i];
    buf_text(out, i == 0 ? "" : ", ");
    if (i < d->n_file_columns && !layout_has(l, c->name)) {
      buf_text(out, "CAST(NULL AS ");
      data_type_to_sql(c->type, out);
      buf_char(out, ')');
    } else {
      buf_sql_name(out, c->name);
    }
    buf_text(out, " AS ");
    buf_sql_name(out, c->name);
  }
  buf_text(out, " FROM ");
  append_call(d, l, out);
  buf_char(out, ')');
}

/* ------------------------------------------------------------------ reader */

/* Sniffs all files; *fits_all false: the user's own call must do. */
static hf_status sniff_all(const discovery *d, layout *layouts, bool *fits_all) {
  bool is_union = option_is_true(d->request, "union_by_name");
  *fits_all = true;
  for (size_t i = 0; *fits_all && i < d->files->n_files; i++) {
    const layout *first = i > 0 && !is_union ? &layouts[0] : NULL;
    hf_error ignored = {0};
    discovery quiet = *d;
    quiet.error = &ignored;
    hf_status status = sniff(&quiet, d->files->files[i].path, first, &layouts[i]);
    hf_error_reset(&ignored);
    if (status == HF_E_OUT_OF_MEMORY || status == HF_E_CANCELLED) {
      return error_set(d->error, status, "looking for the dialect of a file");
    }
    *fits_all = status == HF_OK && fits(d, &layouts[i], is_union);
  }
  return HF_OK;
}

static void write_groups(discovery *d, const layout *layouts) {
  bool alike = true;
  for (size_t i = 1; alike && i < d->files->n_files; i++) {
    alike = layouts_equal(&layouts[0], &layouts[i]);
  }
  if (alike) {
    append_selected_call(d, &layouts[0], &d->reader);
    return;
  }
  for (size_t i = 0; i < d->files->n_files; i++) {
    if (i == 0 || !layouts_equal(&layouts[i - 1], &layouts[i])) {
      buf call = {0};
      append_selected_call(d, &layouts[i], &call);
      reader_begin_group(&d->reader, buf_cstr(&call));
      d->reader.failed = d->reader.failed || call.failed;
      buf_reset(&call);
    }
    reader_add_path(&d->reader, d->files->files[i].path);
  }
}

/* The call as the user gave it, over all files. */
static void requested_call(const discovery *d, const char *const *paths, bool with_hive_types, buf *out) {
  discover_call(d, paths, d->files->n_files, CALL_AS_REQUESTED, out);
  discover_hive_options(d, with_hive_types, out);
  buf_char(out, ')');
}

/* The user's own call, with the types fixed where that can be said. */
static void write_requested(discovery *d) {
  static const char *const typed[] = {"types", "dtypes", "column_types", "columns", "all_varchar"};
  discover_call(d, NULL, 0, CALL_AS_REQUESTED, &d->reader);
  if (!has_any(d->request, typed, 5) && !option_is_true(d->request, "union_by_name")) {
    buf_text(&d->reader, ", types = ");
    discover_columns_literal(d->columns.columns, d->n_file_columns, &d->reader);
  }
  discover_hive_options(d, true, &d->reader);
  buf_char(&d->reader, ')');
}

/* Whether what was written reads as the user's own call does. */
static bool reads_the_same(const discovery *d, const char *const *paths) {
  buf own = {0}, written = {0};
  requested_call(d, paths, false, &own);
  source_scan_sql(buf_cstr(&d->reader), paths, d->files->n_files, &written);
  bool same = !own.failed && !written.failed && discover_calls_agree(d, buf_cstr(&own), buf_cstr(&written));
  buf_reset(&own);
  buf_reset(&written);
  return same;
}

hf_status discover_csv(discovery *d) {
  const char *const *paths = discover_paths(d);
  layout *layouts = arena_array(d->arena, MOST_SNIFFED, sizeof *layouts);
  if (paths == NULL || layouts == NULL) {
    return discover_out_of_memory(d);
  }
  d->rows = discover_rows_by_lines(d);
  d->rows_exact = false;
  const char *detects = option_value(d->request, "auto_detect");
  bool is_spelled_out = detects != NULL && !option_is_true(d->request, "auto_detect");
  bool can_sniff = !is_spelled_out && d->files->n_files <= MOST_SNIFFED;
  if (can_sniff) {
    HF_TRY(sniff_all(d, layouts, &can_sniff));
  }
  if (can_sniff) {
    write_groups(d, layouts);
    can_sniff = reads_the_same(d, paths);
  }
  if (!can_sniff) {
    buf_reset(&d->reader);
    write_requested(d);
  }
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parquet: columns come from the binder, rows from the footers. The call selects
 * its columns by name and type, since a part of the files may have other ones.
 */
#include "source/discover.h"

#include "source/option.h"
#include "source/reader.h"

#include <stdlib.h>
#include <strings.h>

/* Footers of more files are not read: rows are then an estimate. */
enum { MOST_FOOTERS = 256 };

/* SELECT CAST("a" AS INTEGER) AS "a", … */
static void append_selection(const discovery *d, buf *out) {
  buf_text(out, "SELECT ");
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    const column *c = &d->columns.columns[i];
    buf_text(out, i == 0 ? "CAST(" : ", CAST(");
    buf_sql_name(out, c->name);
    buf_text(out, " AS ");
    data_type_to_sql(c->type, out);
    buf_text(out, ") AS ");
    buf_sql_name(out, c->name);
  }
}

/* (SELECT CAST(NULL AS INTEGER) AS "a", … LIMIT 0) UNION ALL BY NAME: a column that none of the files has is there. */
static void append_all_columns(const discovery *d, buf *out) {
  buf_text(out, "(SELECT ");
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    const column *c = &d->columns.columns[i];
    buf_text(out, i == 0 ? "CAST(NULL AS " : ", CAST(NULL AS ");
    data_type_to_sql(c->type, out);
    buf_text(out, ") AS ");
    buf_sql_name(out, c->name);
  }
  buf_text(out, " LIMIT 0) UNION ALL BY NAME SELECT * FROM ");
}

/* A column of that name hides DuckDB's own number of the row in its file, unless it is that. */
static bool has_row_numbers(const discovery *d) {
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    if (strcasecmp(d->columns.columns[i].name, "file_row_number") == 0) {
      return true;
    }
  }
  return false;
}

static void write_reader(discovery *d) {
  bool is_union = option_is_true(d->request, "union_by_name");
  bool selects = d->files->n_files > 1;
  buf *out = &d->reader;
  if (selects) {
    buf_char(out, '(');
    append_selection(d, out);
    buf_text(out, " FROM ");
  }
  if (selects && is_union) {
    buf_char(out, '(');
    append_all_columns(d, out);
  }
  bool can_cut = !has_row_numbers(d) || option_is_true(d->request, "file_row_number");
  buf_text(out, can_cut ? READER_CUT_BEGIN : "");
  discover_call(d, NULL, 0, CALL_AS_REQUESTED, out);
  discover_hive_options(d, true, out);
  buf_text(out, can_cut ? ")" READER_CUT_END : ")");
  buf_text(out, selects && is_union ? "))" : selects ? ")" : "");
}

/* Rows and bytes of the files whose footers are read. */
static hf_status read_footers(discovery *d, size_t n_files, uint64_t *rows) {
  buf sql = {0};
  text_table table = {0};
  const char *const *paths = discover_paths(d);
  if (paths == NULL) {
    return discover_out_of_memory(d);
  }
  buf_text(&sql, "SELECT sum(num_rows) FROM parquet_file_metadata(");
  reader_file_list(paths, n_files, &sql);
  buf_char(&sql, ')');
  hf_status status = sql.failed ? discover_out_of_memory(d)
                                : engine_query_text(d->engine, buf_cstr(&sql), d->arena, &table, d->error);
  buf_reset(&sql);
  if (status == HF_OK && table.n_rows == 1 && table.cells[0] != NULL) {
    *rows = strtoull(table.cells[0], NULL, 10);
  }
  return status;
}

hf_status discover_parquet(discovery *d) {
  size_t n_read = d->files->n_files < MOST_FOOTERS ? d->files->n_files : MOST_FOOTERS;
  uint64_t rows = 0, bytes = 0;
  HF_TRY(read_footers(d, n_read, &rows));
  for (size_t i = 0; i < n_read; i++) {
    bytes += d->files->files[i].bytes;
  }
  d->rows_exact = n_read == d->files->n_files;
  double share = bytes == 0 ? 1.0 : (double)d->files->bytes / (double)bytes;
  d->rows = d->rows_exact ? rows : (uint64_t)((double)rows * share);
  write_reader(d);
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Scans as SELECTs: inputs, tables, files, table functions; and functions over the rows of a child. */
#include "sql/write_internal.h"

#include <string.h>

/* How the scan's columns are spelled: by name of a table, else by position through a list of column aliases. */
typedef struct scan_names {
  size_t alias;
  const tree_scan *scan;
  bool by_name;
} scan_names;

static bool is_table(const tree_scan *scan) {
  return strcmp(scan->function, "seq_scan") == 0;
}

static void write_source_column(writer *w, const scan_names *names, size_t at) {
  buf_printf(write_to(w), "t%zu.", names->alias);
  if (names->by_name) {
    buf_sql_name(write_to(w), names->scan->source_names[at]);
  } else {
    buf_printf(write_to(w), "x%zu", at);
  }
}

static void write_scanned(writer *w, const scan_names *names, const tree_scan_column *place) {
  if (place->kind == SCAN_ROWID) {
    buf_printf(write_to(w), "t%zu.rowid", names->alias);
    return;
  }
  if (place->kind == SCAN_NOTHING) {
    buf_text(write_to(w), "CAST(NULL AS BOOLEAN)");
    return;
  }
  for (size_t i = 0; i < place->n_path; i++) {
    buf_text(write_to(w), "struct_extract_at(");
  }
  write_source_column(w, names, place->column);
  for (size_t i = 0; i < place->n_path; i++) {
    buf_printf(write_to(w), ", CAST('%zu' AS BIGINT))", place->path[i] + 1);
  }
}

/* ------------------------------------------------------------------ source */

static hf_status write_parameters(writer *w, const tree_scan *scan) {
  buf_sql_name(write_to(w), scan->function);
  buf_char(write_to(w), '(');
  for (size_t i = 0; i < scan->n_parameters; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    HF_TRY(write_value(w, &scan->parameters[i]));
  }
  for (size_t i = 0; i < scan->n_named; i++) {
    buf_text(write_to(w), scan->n_parameters + i > 0 ? ", " : "");
    buf_sql_name(write_to(w), scan->named[i]);
    buf_text(write_to(w), " := ");
    HF_TRY(write_value(w, &scan->named_values[i]));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

static void write_files(writer *w, const tree_scan *scan) {
  buf_text(write_to(w), "read_parquet([");
  for (size_t i = 0; i < scan->n_files; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    buf_sql_string(write_to(w), scan->files[i]);
  }
  buf_text(write_to(w), "])");
}

static void write_table(writer *w, const tree_scan *scan) {
  buf_sql_name(write_to(w), scan->catalog);
  buf_char(write_to(w), '.');
  buf_sql_name(write_to(w), scan->schema);
  buf_char(write_to(w), '.');
  buf_sql_name(write_to(w), scan->table);
}

/* The columns that the text reads, ascending. */
static hf_status read_columns(writer *w, const tree_scan *scan, const size_t **out, size_t *n) {
  bool *is_read = arena_array(w->a, scan->n_source, sizeof *is_read);
  size_t *columns = arena_array(w->a, scan->n_source, sizeof *columns);
  if (is_read == NULL || columns == NULL) {
    return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the columns of an input");
  }
  for (size_t i = 0; i < scan->n_scanned; i++) {
    if (scan->scanned[i].kind == SCAN_COLUMN) {
      is_read[scan->scanned[i].column] = true;
    }
  }
  for (size_t i = 0; i < scan->n_filters; i++) {
    is_read[scan->filters[i].column] |= !scan->filters[i].is_rowid;
  }
  *n = 0;
  for (size_t i = 0; i < scan->n_source; i++) {
    if (is_read[i]) {
      columns[(*n)++] = i;
    }
  }
  *out = columns;
  return HF_OK;
}

static hf_status write_input_source(writer *w, const tree_node *node) {
  const size_t *columns = NULL;
  size_t n = 0;
  HF_TRY(read_columns(w, node->scan, &columns, &n));
  return write_input(w, node, columns, n);
}

static void write_aliases(writer *w, size_t alias, char letter, size_t n) {
  buf_printf(write_to(w), " AS t%zu", alias);
  for (size_t i = 0; i < n; i++) {
    buf_printf(write_to(w), "%s%c%zu", i > 0 ? ", " : "(", letter, i);
  }
  buf_text(write_to(w), n > 0 ? ")" : "");
}

static hf_status write_source_item(writer *w, const tree_node *node, const scan_names *names) {
  const tree_scan *scan = node->scan;
  if (names->by_name) {
    write_table(w, scan);
    buf_printf(write_to(w), " AS t%zu", names->alias);
    return HF_OK;
  }
  if (strcmp(scan->function, "hf_scan") == 0) {
    HF_TRY(write_input_source(w, node));
  } else if (scan->n_files > 0) {
    write_files(w, scan);
  } else {
    HF_TRY(write_parameters(w, scan));
  }
  write_aliases(w, names->alias, 'x', scan->n_source);
  return HF_OK;
}

static hf_status write_filters(writer *w, const scan_names *names) {
  const tree_scan *scan = names->scan;
  for (size_t i = 0; i < scan->n_filters; i++) {
    tree_scan_column place = {.kind = scan->filters[i].is_rowid ? SCAN_ROWID : SCAN_COLUMN,
                              .column = scan->filters[i].column};
    sql_text text = {0}, *before = w->out;
    w->out = &text;
    write_scanned(w, names, &place);
    w->out = before;
    write_scope scope = {.kind = SCOPE_TEXT, .text = buf_cstr(&text.text)};
    buf_text(write_to(w), i > 0 ? " AND " : " WHERE ");
    hf_status status = write_expression(w, &scope, scan->filters[i].expression);
    buf_reset(&text.text);
    HF_TRY(status);
  }
  return HF_OK;
}

static hf_status write_scan(writer *w, const tree_node *node) {
  const tree_scan *scan = node->scan;
  scan_names names = {write_name(w), scan, is_table(scan)};
  write_select(w, node);
  for (size_t i = 0; i < scan->n_scanned; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    write_scanned(w, &names, &scan->scanned[i]);
    buf_printf(write_to(w), " AS c%zu", i);
  }
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_source_item(w, node, &names));
  return write_filters(w, &names);
}

/* A function over rows: its arguments are the child's first columns, the others pass by. */
static hf_status write_in_out(writer *w, const tree_node *node) {
  const tree_scan *scan = node->scan;
  scan_names names = {write_name(w), scan, false};
  write_source child = {node->children[0], 0, write_name(w)};
  size_t n_arguments = child.node->n_columns - node->n_map;
  write_select(w, node);
  for (size_t i = 0; i < scan->n_scanned; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    write_scanned(w, &names, &scan->scanned[i]);
    buf_printf(write_to(w), " AS c%zu", i);
  }
  write_columns(w, child.alias, node->map, node->n_map, scan->n_scanned);
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &child));
  buf_printf(write_to(w), ", LATERAL %s(", scan->function);
  for (size_t i = 0; i < n_arguments; i++) {
    buf_printf(write_to(w), "%st%zu.c%zu", i > 0 ? ", " : "", child.alias, i);
  }
  buf_char(write_to(w), ')');
  write_aliases(w, names.alias, 'x', scan->n_source);
  return HF_OK;
}

static hf_status write_stage_input(writer *w, const tree_node *node) {
  size_t alias = write_name(w);
  size_t *columns = arena_array(w->a, node->n_columns, sizeof *columns);
  if (columns == NULL) {
    return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the columns of an input");
  }
  for (size_t i = 0; i < node->n_columns; i++) {
    columns[i] = i;
  }
  write_select(w, node);
  write_columns(w, alias, NULL, node->n_columns, 0);
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_input(w, node, columns, node->n_columns));
  write_aliases(w, alias, 'c', node->n_columns);
  return HF_OK;
}

hf_status write_get(writer *w, const tree_node *node) {
  if (node->kind == TREE_INPUT) {
    return write_stage_input(w, node);
  }
  return node->n_children > 0 ? write_in_out(w, node) : write_scan(w, node);
}

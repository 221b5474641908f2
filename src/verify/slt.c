/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running sqllogictest files on both sides. Statements run on the witness; before a
 * query the other side gets what tables and views there are now. Reading files is
 * in slt_file.c.
 * Thread: one at a time.
 */
#include "slt.h"

#include "slt_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "sql/statement.h"

#include <fts.h>
#include <string.h>
#include <strings.h>

/* Files of a table: some have no rows. */
enum { PARTS = 4 };

typedef struct slt_run {
  verifier *v;
  const slt_visitor *visitor;
  const char *dir;
  const char *file; /* its name without folders */
  unsigned exports; /* so far */
  bool is_exported; /* the tables as they are */
  bool is_stopped;
  arena *memory; /* of the file */
} slt_run;

static bool starts_with(const char *sql, const char *word) {
  return strncasecmp(sql, word, strlen(word)) == 0;
}

static bool is_query(const char *sql) {
  static const char *const words[] = {"(", "select", "with", "from", "values", "pivot", "unpivot", "table"};
  sql += strspn(sql, " \t\n");
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (starts_with(sql, words[i])) {
      return true;
    }
  }
  return false;
}

/* ---------------------------------------------------------------------- tables */

/* Name, columns to write, and columns as they were. Types that Parquet has not are written as text and cast back. */
#define TABLES_SQL                                                                                      \
  "SELECT table_name, "                                                                                 \
  "string_agg(CASE WHEN odd THEN 'CAST(' || name || ' AS VARCHAR) AS ' || name ELSE name END, ', ' "    \
  "ORDER BY column_index), "                                                                            \
  "string_agg('CAST(' || name || ' AS ' || data_type || ') AS ' || name, ', ' ORDER BY column_index), " \
  "bool_or(contains(data_type, 'UNION'))::VARCHAR "                                                     \
  "FROM (SELECT *, '\"' || replace(column_name, '\"', '\"\"') || '\"' AS name, "                        \
  "regexp_matches(data_type, 'HUGEINT|ENUM|^(BIT|INTERVAL|JSON|TIME WITH|TIMESTAMP_)') AS odd "         \
  "FROM duckdb_columns() JOIN duckdb_tables() USING (table_oid, table_name, schema_name) "              \
  "WHERE schema_name = 'main') GROUP BY table_name ORDER BY table_name"
#define HIDING_SQL "SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal"

static hf_status execute(slt_run *r, buf *sql) {
  hf_status status =
      sql->failed ? HF_E_OUT_OF_MEMORY : engine_execute(witness_engine(r->v->witness), buf_cstr(sql), NULL);
  buf_reset(sql);
  return status;
}

static hf_status write_parts(slt_run *r, const char *const *table, const char *dir) {
  hf_status status = file_make_dirs(dir, NULL);
  for (int part = 0; part < PARTS && status == HF_OK; part++) {
    buf sql = {0};
    buf_printf(&sql, "COPY (SELECT %s FROM main.", table[1]);
    buf_sql_name(&sql, table[0]);
    buf_printf(&sql, " WHERE rowid * %d // greatest((SELECT count(*) FROM main.", PARTS);
    buf_sql_name(&sql, table[0]);
    buf_printf(&sql, "), 1) = %d) TO '%s/%d.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)", part, dir, part);
    status = execute(r, &sql);
  }
  return status;
}

/* The witness reads the files too: its own table is hidden by a view, until it changes. */
static hf_status give_files(slt_run *r, const char *const *table, const char *dir) {
  buf query = {0}, view = {0};
  HF_TRY(write_parts(r, table, dir));
  buf_printf(&query, "SELECT %s FROM read_parquet('%s/*.parquet')", table[2], dir);
  buf_text(&view, "CREATE OR REPLACE TEMP VIEW ");
  buf_sql_name(&view, table[0]);
  buf_printf(&view, " AS %s", buf_cstr(&query));
  hf_status status = query.failed ? HF_E_OUT_OF_MEMORY : verify_view(r->v, table[0], buf_cstr(&query), NULL);
  if (status == HF_OK) {
    status = execute(r, &view);
  }
  buf_reset(&query);
  buf_reset(&view);
  return status;
}

/* Arrow data may be of other types: ENUM becomes text. So they have a name of their own, and `query` makes of it what they were. */
static void give_rows(slt_run *r, const char *name, const char *columns, const char *query) {
  struct ArrowArrayStream rows;
  buf sql = {0}, own = {0}, view = {0};
  buf_printf(&sql, "SELECT %s FROM ", columns);
  buf_sql_name(&sql, name);
  buf_printf(&own, "%s rows", name);
  buf_printf(&view, "SELECT %s FROM ", query);
  buf_sql_name(&view, buf_cstr(&own));
  bool failed = sql.failed || own.failed || view.failed;
  if (!failed && witness_run(r->v->witness, buf_cstr(&sql), &rows, NULL) == HF_OK &&
      verify_rows(r->v, buf_cstr(&own), &rows, NULL) == HF_OK) {
    verify_view(r->v, name, buf_cstr(&view), NULL);
  }
  buf_reset(&sql);
  buf_reset(&own);
  buf_reset(&view);
}

/* A table that cannot be given is missing: queries of it are skipped. */
static void export_tables(slt_run *r) {
  text_table tables = {0};
  arena *a = arena_new();
  bool has_tables = !r->is_exported && a != NULL &&
                    engine_query_text(witness_engine(r->v->witness), TABLES_SQL, a, &tables, NULL) == HF_OK;
  for (size_t i = 0; has_tables && i < tables.n_rows; i++) {
    const char *const *table = &tables.cells[i * tables.n_columns];
    const char *dir = arena_printf(a, "%s/%u-%zu", r->dir, r->exports, i);
    bool has_union = strcmp(table[3], "true") == 0;
    if (dir != NULL && (has_union || give_files(r, table, dir) != HF_OK)) {
      give_rows(r, table[0], table[1], table[2]);
    }
  }
  r->exports += r->is_exported ? 0 : 1;
  r->is_exported = true;
  arena_free(a);
}

static void show_tables(slt_run *r) {
  text_table views = {0};
  arena *a = arena_new();
  bool is_hidden = r->is_exported && a != NULL &&
                   engine_query_text(witness_engine(r->v->witness), HIDING_SQL, a, &views, NULL) == HF_OK;
  for (size_t i = 0; is_hidden && i < views.n_rows; i++) {
    buf sql = {0};
    buf_text(&sql, "DROP VIEW temp.");
    buf_sql_name(&sql, views.cells[i]);
    execute(r, &sql);
  }
  r->is_exported = false;
  arena_free(a);
}

/* ------------------------------------------------------------------- records */

/* A view whose text is not to be had as that of one is a table to the other side. */
static void make_view(slt_run *r, const char *sql) {
  statement head;
  memset(&head, 0, sizeof head);
  export_tables(r);
  if (engine_execute(witness_engine(r->v->witness), sql, NULL) != HF_OK ||
      statement_read(sql, r->memory, &head, NULL) != HF_OK || head.kind != STATEMENT_CREATE_VIEW) {
    return;
  }
  if (verify_view(r->v, head.name, head.query, NULL) != HF_OK) {
    give_rows(r, head.name, "*", "*");
  }
}

static void run_statement(slt_run *r, const char *sql) {
  if (starts_with(sql, "CREATE VIEW") || starts_with(sql, "CREATE OR REPLACE VIEW")) {
    make_view(r, sql);
    return;
  }
  show_tables(r);
  engine_execute(witness_engine(r->v->witness), sql, NULL);
}

static void run_record(slt_run *r, const slt_record *record) {
  if (record->kind != SLT_QUERY || !is_query(record->sql)) {
    run_statement(r, record->sql);
    return;
  }
  export_tables(r);
  const char *name = arena_printf(r->memory, "%s:%zu", r->file, record->line);
  r->is_stopped = name == NULL || !r->visitor->query(r->visitor->context, name, record->sql);
}

/* The zone that the file begins with. */
static const char *zone_of(const slt_file *file, arena *a) {
  static const char set_zone[] = "SET TimeZone = '";
  bool is_set = file->n_records > 0 && starts_with(file->records[0].sql, set_zone);
  const char *zone = is_set ? file->records[0].sql + strlen(set_zone) : "UTC";
  return arena_strndup(a, zone, strcspn(zone, "'"));
}

static hf_status run_records(slt_run *r, const slt_file *file, hf_error *error) {
  if (file->skipped != NULL) {
    r->visitor->skip(r->visitor->context, r->file, file->skipped);
    return HF_OK;
  }
  const char *zone = zone_of(file, r->memory);
  if (zone == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a file of statements");
  }
  HF_TRY(r->visitor->reopen(r->visitor->context, zone, error));
  r->is_exported = false;
  for (size_t i = 0; i < file->n_records && !r->is_stopped; i++) {
    run_record(r, &file->records[i]);
  }
  return HF_OK;
}

static hf_status run_file(slt_run *r, const char *path, hf_error *error) {
  slt_file file;
  const char *slash = strrchr(path, '/');
  r->file = slash == NULL ? path : slash + 1;
  if (!slt_file_read(path, &file)) {
    r->visitor->skip(r->visitor->context, r->file, "it cannot be read");
    return HF_OK;
  }
  r->memory = arena_new();
  hf_status status = r->memory == NULL
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a file of statements")
                         : run_records(r, &file, error);
  arena_free(r->memory);
  slt_file_free(&file);
  file_remove_tree(r->dir, NULL);
  return status;
}

/* --------------------------------------------------------------------- files */

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_test(const FTSENT *entry) {
  static const char ending[] = ".test";
  size_t length = strlen(entry->fts_path), n = strlen(ending);
  return entry->fts_info == FTS_F && length > n && strcmp(entry->fts_path + length - n, ending) == 0;
}

hf_status slt_visit(verifier *v, const char *path, const char *dir, const slt_visitor *visitor,
                    hf_error *error) {
  slt_run r = {.v = v, .visitor = visitor, .dir = dir};
  char *root = mem_strdup(path);
  char *roots[] = {root, NULL};
  FTS *tree = root == NULL ? NULL : fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
  size_t files = 0;
  hf_status status = tree == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to list files") : HF_OK;
  for (FTSENT *entry; status == HF_OK && !r.is_stopped && (entry = fts_read(tree)) != NULL;) {
    if (is_test(entry)) {
      files++;
      status = run_file(&r, entry->fts_path, error);
    }
  }
  if (tree != NULL) {
    fts_close(tree);
  }
  mem_free(root);
  if (status == HF_OK && files == 0) {
    error_set(error, HF_E_FILE_NOT_FOUND, "there are no *.test files: %s", path);
    error_hint(error, "name a folder of sqllogictest files with --slt-dir");
    return HF_E_FILE_NOT_FOUND;
  }
  return status;
}

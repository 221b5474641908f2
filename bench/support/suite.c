/* SPDX-License-Identifier: Apache-2.0 */
/* Data and queries of the suites; see suite.h. */
#include "support/suite.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void list_tables(bench_suite *s) {
  char sql[128];
  for (; s->n_tables < BENCH_MOST_TABLES; s->n_tables++) {
    snprintf(sql, sizeof sql, "SELECT table_name FROM duckdb_tables() ORDER BY 1 LIMIT 1 OFFSET %zu",
             s->n_tables);
    s->tables[s->n_tables] = rival_text(s->rival, sql);
    if (s->tables[s->n_tables] == NULL) {
      return;
    }
  }
}

/* Generates into tables, writes them as files, drops them; with `is_there` only their names are wanted. */
static void make_files(bench_suite *s, const char *scale, bool is_there) {
  char sql[8192];
  snprintf(sql, sizeof sql, "CALL %s(sf = %s)", strcmp(s->name, "tpch") == 0 ? "dbgen" : "dsdgen",
           is_there ? "0" : scale);
  rival_run(s->rival, sql, NULL);
  list_tables(s);
  for (size_t i = 0; i < s->n_tables; i++) {
    snprintf(sql, sizeof sql, "COPY %s TO '%s/%s.parquet' (FORMAT parquet)", s->tables[i], s->dir,
             s->tables[i]);
    if (!is_there) {
      rival_run(s->rival, sql, NULL);
    }
    snprintf(sql, sizeof sql, "DROP TABLE %s", s->tables[i]);
    rival_run(s->rival, sql, NULL);
  }
}

void bench_suite_open(bench_suite *s, rival *r, const char *name, const char *dir, const char *scale) {
  char text[4200];
  hf_error error = {0};
  *s = (bench_suite){.rival = r, .name = name};
  if (file_make_dirs(dir, &error) != HF_OK || realpath(dir, s->dir) == NULL) {
    bench_fail(dir, error.message);
  }
  snprintf(text, sizeof text, "LOAD %s", name);
  rival_run(r, text, NULL);
  snprintf(text, sizeof text, "%s/done", s->dir);
  make_files(s, scale, access(text, F_OK) == 0);
  if (file_write_whole(text, "", 0, false, &error) != HF_OK) {
    bench_fail(text, error.message);
  }
  snprintf(text, sizeof text, "SELECT count(*) FROM %s_queries()", name);
  char *count = rival_text(r, text);
  s->n_queries = strtoul(count, NULL, 10);
  duckdb_free(count);
}

void bench_suite_close(bench_suite *s) {
  for (size_t i = 0; i < s->n_tables; i++) {
    duckdb_free(s->tables[i]);
  }
}

char *bench_suite_query(const bench_suite *s, size_t number) {
  char sql[256];
  snprintf(sql, sizeof sql, "SELECT rtrim(query, '; ' || chr(10)) FROM %s_queries() WHERE query_nr = %zu",
           s->name, number);
  return rival_text(s->rival, sql);
}

const char *bench_suite_view(const bench_suite *s, size_t i) {
  static char sql[8192];
  snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM read_parquet('%s/%s.parquet')", s->tables[i],
           s->dir, s->tables[i]);
  return sql;
}

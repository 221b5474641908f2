/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements of tests/slt through the whole engine: every table becomes four
 * Parquet files, over which a session of several tasks and single-node DuckDB
 * answer each query as `holdfast verify` asks them. Without files, cut on tables
 * of DuckDB, they are run by slt_run.
 */
#include "support/oracle.h"
#include "verify/slt_file.h"
#include "verify/verify.h"

#include "base/file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

enum { PARTS = 4, MOST_TABLES = 100 };

typedef struct corpus {
  char dir[64];
  verifier v;
  oracle *o;        /* of the file under way */
  bool is_exported; /* the tables as they are */
  unsigned exports, files;
  size_t queries, distributed, fell_back, skipped, wrong;
} corpus;

/* ----------------------------------------------------------------------- sides */

static void must(hf_status status, hf_error *error, const char *sql) {
  if (status != HF_OK) {
    fail_msg("%s: %s: %s", sql, hf_status_name(error->code), error->message);
  }
}

static void run_on_session(corpus *c, const char *sql) {
  hf_error error = {0};
  relation *answer = NULL;
  must(session_sql(c->v.session, sql, NULL, NULL, &answer, &error), &error, sql);
  relation_release(answer);
}

static void run_on_both(corpus *c, const char *sql) {
  hf_error error = {0};
  run_on_session(c, sql);
  must(engine_execute(witness_engine(c->v.witness), sql, &error), &error, sql);
}

static void open_session(corpus *c, const char *tasks) {
  char work[100];
  hf_error error = {0};
  snprintf(work, sizeof work, "%s/work", c->dir);
  /* one thread a slot: the order of files is kept */
  hf_setting settings[] = {{"work_dir", work}, {"tasks", tasks}, {"slots", "2"}, {"threads", "2"}};
  must(session_open(settings, sizeof settings / sizeof settings[0], NULL, &c->v.session, &error), &error,
       "open");
}

static void open_witness(corpus *c, const char *zone) {
  char single[100];
  hf_error error = {0};
  snprintf(single, sizeof single, "%s/single-%u", c->dir, ++c->files);
  must(file_make_dirs(single, &error), &error, single);
  witness_options options = {.dir = single, .allow_path = "/", .time_zone = zone};
  must(witness_open(&options, &c->v.witness, &error), &error, "witness");
  must(session_set(c->v.session, "sql.time_zone", zone, &error), &error, zone);
}

/* ---------------------------------------------------------------------- tables */

/* Types that Parquet has not are written as text and cast back. */
#define TABLES_SQL                                                                                    \
  "SELECT '\"' || replace(table_name, '\"', '\"\"') || '\"', "                                        \
  "string_agg(CASE WHEN odd THEN 'CAST(' || name || ' AS VARCHAR) AS ' || name ELSE name END, ', ' "  \
  "ORDER BY column_index), "                                                                          \
  "string_agg('CAST(' || name || ' AS ' || data_type || ') AS ' || name, ', ' ORDER BY column_index)" \
  "FROM (SELECT *, '\"' || replace(column_name, '\"', '\"\"') || '\"' AS name, "                      \
  "regexp_matches(data_type, 'HUGEINT|ENUM|UNION|^(BIT|INTERVAL|JSON|TIME WITH|TIMESTAMP_)') AS odd " \
  "FROM duckdb_columns() JOIN duckdb_tables() USING (table_oid, table_name, schema_name) "            \
  "WHERE schema_name = 'main') GROUP BY table_name ORDER BY table_name"

static void run_on_oracle(corpus *c, const char *sql) {
  char *error = oracle_run(c->o, sql);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

/* Writes a table's files; some have no rows. */
static void export_table(corpus *c, unsigned number, const oracle_cell *table) {
  const char *name = table[0].text;
  char dir[120];
  buf sql = {0};
  snprintf(dir, sizeof dir, "%s/e%u-%u", c->dir, c->exports, number);
  must(file_make_dirs(dir, NULL), NULL, dir);
  for (unsigned part = 0; part < PARTS; part++) {
    buf_reset(&sql);
    buf_printf(&sql,
               "COPY (SELECT %s FROM %s WHERE rowid * %d // greatest((SELECT count(*) FROM %s), 1) = %u) "
               "TO '%s/%u.parquet' (FORMAT parquet)",
               table[1].text, name, PARTS, name, part, dir, part);
    run_on_oracle(c, buf_cstr(&sql));
  }
  buf_reset(&sql);
  buf_printf(&sql, "CREATE OR REPLACE VIEW %s AS SELECT %s FROM read_parquet('%s/*.parquet')", name,
             table[2].text, dir);
  run_on_both(c, buf_cstr(&sql));
  buf_reset(&sql);
}

static void export_tables(corpus *c) {
  oracle_rows tables;
  if (c->is_exported) {
    return;
  }
  c->exports++;
  char *error = oracle_query(c->o, TABLES_SQL, MOST_TABLES, &tables);
  if (error != NULL) {
    fail_msg("%s", error);
  }
  for (size_t i = 0; i < tables.n_rows; i++) {
    export_table(c, (unsigned)i, &tables.cells[i * tables.n_columns]);
  }
  oracle_rows_free(&tables);
  c->is_exported = true;
}

/* The next file begins without the names of this one. */
static void drop_views(corpus *c) {
  oracle_rows names;
  assert_null(oracle_query(c->o,
                           "SELECT 'DROP VIEW IF EXISTS \"' || replace(name, '\"', '\"\"') || '\"' FROM "
                           "(SELECT view_name AS name FROM duckdb_views() WHERE NOT internal "
                           "UNION ALL SELECT table_name FROM duckdb_tables())",
                           MOST_TABLES, &names));
  for (size_t i = 0; i < names.n_rows; i++) {
    run_on_session(c, names.cells[i].text);
  }
  oracle_rows_free(&names);
}

/* --------------------------------------------------------------------- records */

static bool starts_with(const char *sql, const char *word) {
  return strncasecmp(sql, word, strlen(word)) == 0;
}

/* The subjects whose rows come in the order of the files, also where no ORDER BY says so. */
static bool shows_order(const char *path) {
  static const char *const subjects[] = {"/union_order.", "/file_order.", "/limits.", "/positional."};
  for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
    if (strstr(path, subjects[i]) != NULL) {
      return true;
    }
  }
  return getenv("SLT_ORDER") != NULL;
}

static void judge(corpus *c, const char *path, const char *sql) {
  verify_outcome outcome;
  verify_query(&c->v, sql, &outcome);
  bool is_split = outcome.ran && verify_is_distributed(&outcome);
  c->queries++;
  c->distributed += is_split;
  c->fell_back += outcome.ran && !is_split;
  c->skipped += outcome.result == VERIFY_SKIPPED;
  bool is_disordered =
      shows_order(path) && outcome.result == VERIFY_PASSED && outcome.ran && !outcome.report.same_order;
  if (is_disordered) {
    print_message("%s: %s\n  in another order\n", strrchr(path, '/') + 1, sql);
  }
  c->wrong += outcome.result == VERIFY_FAILED || is_disordered;
  if (outcome.result != VERIFY_PASSED || outcome.reason.length > 0) {
    print_message("%s: %s\n  %s\n%s", strrchr(path, '/') + 1, sql, buf_cstr(&outcome.reason),
                  outcome.report.differences == NULL ? "" : outcome.report.differences);
  } else if (!is_split && getenv("SLT_VERBOSE") != NULL) {
    print_message("%s: %s\n  fell back: %s\n", strrchr(path, '/') + 1, sql, outcome.profile.fallback);
  }
  verify_outcome_reset(&outcome);
}

static void run_record(corpus *c, const char *path, const slt_record *record) {
  if (record->kind == SLT_QUERY) {
    export_tables(c);
    judge(c, path, record->sql);
    return;
  }
  run_on_oracle(c, record->sql);
  if (starts_with(record->sql, "CREATE VIEW")) {
    export_tables(c);
    run_on_both(c, record->sql);
  } else {
    c->is_exported = false;
  }
}

/* The zone that the file begins with. */
static void zone_of(const slt_file *file, char *out, size_t size) {
  static const char set_zone[] = "SET TimeZone = '";
  assert_true(file->n_records > 0);
  const char *sql = file->records[0].sql;
  const char *zone = starts_with(sql, set_zone) ? sql + strlen(set_zone) : "UTC";
  snprintf(out, size, "%.*s", (int)strcspn(zone, "'"), zone);
}

static void run_file(corpus *c, const char *path) {
  slt_file file;
  char zone[60];
  assert_true(slt_file_read(path, &file));
  assert_null(file.skipped);
  zone_of(&file, zone, sizeof zone);
  c->o = oracle_open();
  c->is_exported = false;
  open_witness(c, zone);
  for (size_t i = 0; i < file.n_records; i++) {
    bool sets_other =
        starts_with(file.records[i].sql, "SET ") && strcasestr(file.records[i].sql, "TimeZone") == NULL;
    if (sets_other) { /* the witness has DuckDB's defaults: test_cases.c */
      break;
    }
    run_record(c, path, &file.records[i]);
  }
  drop_views(c);
  witness_close(c->v.witness);
  oracle_close(c->o);
  slt_file_free(&file);
}

/* Files from `first`, every `step`th: each query gives what single-node DuckDB gives, most of them by several tasks. */
static void run_corpus(const char *tasks, size_t first, size_t step) {
  corpus c = {.dir = "/tmp/hf-test-XXXXXX"};
  char pattern[400];
  glob_t found;
  const char *root = getenv("HOLDFAST_SOURCE"), *only = getenv("SLT_ONLY");
  assert_non_null(root);
  assert_non_null(mkdtemp(c.dir));
  open_session(&c, tasks);
  snprintf(pattern, sizeof pattern, "%s/tests/slt/%s.test", root, only == NULL ? "*" : only);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  for (size_t i = first; i < found.gl_pathc; i += step) {
    run_file(&c, found.gl_pathv[i]);
  }
  globfree(&found);
  session_close(c.v.session);
  must(file_remove_tree(c.dir, NULL), NULL, c.dir);
  print_message("%s tasks: %zu queries, %zu distributed, %zu fell back, %zu skipped, %zu wrong\n", tasks,
                c.queries, c.distributed, c.fell_back, c.skipped, c.wrong);
  assert_int_equal(c.wrong, 0);
  if (only == NULL) {
    assert_true(c.queries * step >= 500 && c.distributed * 100 >= c.queries * 88 &&
                c.skipped * 20 < c.queries);
  }
}

static void slt_over_three_tasks_is_as_single_node(void **state) {
  (void)state;
  run_corpus("3", 0, 2);
}

static void slt_over_more_tasks_than_files_is_as_single_node(void **state) {
  (void)state;
  run_corpus("7", 1, 4);
}

static void slt_over_fewer_tasks_than_files_is_as_single_node(void **state) {
  (void)state;
  run_corpus("2", 3, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slt_over_three_tasks_is_as_single_node),
      cmocka_unit_test(slt_over_more_tasks_than_files_is_as_single_node),
      cmocka_unit_test(slt_over_fewer_tasks_than_files_is_as_single_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

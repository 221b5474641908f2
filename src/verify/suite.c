/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suites TPC-H and TPC-DS: queries and data by DuckDB's extensions, the data as
 * Parquet in row groups of 2048 rows, so that small tables can be split too.
 * Thread: one at a time.
 */
#include "verify.h"

#include "base/file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUITE_MEMORY_BYTES ((uint64_t)4 << 30)
/* Written last: the files beside it are whole. */
#define COMPLETE_MARK "complete"

static const struct suite_row {
  const char *name;
  const char *generator; /* of the data, with the factor as argument; 0 makes empty tables */
  const char *queries;
} suites[] = {
    {"tpch", "dbgen", "tpch_queries"},
    {"tpcds", "dsdgen", "tpcds_queries"},
};

static const struct suite_row *find(const char *name) {
  for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
    if (strcmp(suites[i].name, name) == 0) {
      return &suites[i];
    }
  }
  return NULL;
}

bool suite_is_known(const char *name) {
  return find(name) != NULL;
}

typedef struct suite_maker {
  const struct suite_row *row;
  const suite_request *request;
  arena *memory;
  engine *engine;
  suite *out;
  hf_error *error;
} suite_maker;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a suite of queries");
}

static hf_status open_engine(suite_maker *m) {
  const char *allowed[] = {m->out->dir};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const char *extension_dir = engine_extension_dir(m->memory);
  if (extension_dir == NULL) {
    error_set(m->error, HF_E_UNSUPPORTED, "there are no extensions of DuckDB, expected %s", m->row->name);
    error_hint(m->error, "run tools/setup, or name their directory in HOLDFAST_EXTENSION_DIRECTORY");
    return HF_E_UNSUPPORTED;
  }
  engine_options options = {.kind = ENGINE_SLOT,
                            .threads = cores > 0 ? (unsigned)cores : 1,
                            .memory_bytes = SUITE_MEMORY_BYTES,
                            .spill_dir = m->request->scratch_dir,
                            .allowed_dirs = allowed,
                            .n_allowed_dirs = 1,
                            .extension_dir = extension_dir,
                            .load = &m->row->name,
                            .n_load = 1};
  return engine_open(&options, &m->engine, m->error);
}

static hf_status generate(suite_maker *m, const char *factor) {
  char *sql = arena_printf(m->memory, "CALL %s(sf = %s)", m->row->generator, factor);
  return sql == NULL ? no_memory(m->error) : engine_execute(m->engine, sql, m->error);
}

static hf_status read_tables(suite_maker *m) {
  text_table found;
  HF_TRY(engine_query_text(m->engine, "SELECT table_name FROM duckdb_tables() ORDER BY 1", m->memory, &found,
                           m->error));
  m->out->n_tables = found.n_rows;
  m->out->tables = found.cells;
  return HF_OK;
}

static hf_status write_table(suite_maker *m, const char *table) {
  char *path = arena_printf(m->memory, "%s/%s.parquet", m->out->dir, table);
  if (path == NULL) {
    return no_memory(m->error);
  }
  buf sql = {0};
  buf_text(&sql, "COPY ");
  buf_sql_name(&sql, table);
  buf_text(&sql, " TO ");
  buf_sql_string(&sql, path);
  buf_text(&sql, " (FORMAT parquet, ROW_GROUP_SIZE 2048)");
  hf_status status = sql.failed ? no_memory(m->error) : engine_execute(m->engine, buf_cstr(&sql), m->error);
  buf_reset(&sql);
  return status;
}

static hf_status make_data(suite_maker *m) {
  char *mark = arena_printf(m->memory, "%s/" COMPLETE_MARK, m->out->dir);
  if (mark == NULL) {
    return no_memory(m->error);
  }
  if (m->request->kept && access(mark, F_OK) == 0) {
    HF_TRY(generate(m, "0"));
    return read_tables(m);
  }
  HF_TRY(generate(m, m->request->sf));
  HF_TRY(read_tables(m));
  for (size_t i = 0; i < m->out->n_tables; i++) {
    HF_TRY(write_table(m, m->out->tables[i]));
  }
  return file_write_whole(mark, "", 0, false, m->error);
}

/* A query without the ';' and blanks at its end. */
static const char *trimmed(arena *a, const char *sql) {
  size_t length = strlen(sql);
  while (length > 0 && strchr("; \t\r\n", sql[length - 1]) != NULL) {
    length--;
  }
  return arena_strndup(a, sql, length);
}

static hf_status read_queries(suite_maker *m) {
  char *sql = arena_printf(m->memory, "SELECT query_nr, query FROM %s() ORDER BY 1", m->row->queries);
  text_table found;
  if (sql == NULL) {
    return no_memory(m->error);
  }
  HF_TRY(engine_query_text(m->engine, sql, m->memory, &found, m->error));
  suite_query *queries = arena_array(m->memory, found.n_rows, sizeof *queries);
  if (queries == NULL) {
    return no_memory(m->error);
  }
  for (size_t i = 0; i < found.n_rows; i++) {
    queries[i].name = arena_printf(m->memory, "q%02d", (int)strtol(found.cells[2 * i], NULL, 10));
    queries[i].sql = trimmed(m->memory, found.cells[2 * i + 1]);
    if (queries[i].name == NULL || queries[i].sql == NULL) {
      return no_memory(m->error);
    }
  }
  m->out->queries = queries;
  m->out->n_queries = found.n_rows;
  return HF_OK;
}

static hf_status make(suite_maker *m) {
  const suite_request *r = m->request;
  char *dir = r->kept ? arena_printf(m->memory, "%s/%s-sf%s", r->dir, r->name, r->sf)
                      : arena_strdup(m->memory, r->dir);
  if (dir == NULL) {
    return no_memory(m->error);
  }
  HF_TRY(file_make_dirs(dir, m->error));
  char real[PATH_MAX];
  m->out->dir = arena_strdup(m->memory, realpath(dir, real) == NULL ? dir : real);
  if (m->out->dir == NULL) {
    return no_memory(m->error);
  }
  HF_TRY(open_engine(m));
  HF_TRY(make_data(m));
  return read_queries(m);
}

hf_status suite_open(const suite_request *request, arena *a, suite *out, hf_error *error) {
  *out = (suite){0};
  suite_maker m = {.row = find(request->name), .request = request, .memory = a, .out = out, .error = error};
  hf_status status = make(&m);
  engine_close(m.engine);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the staged plans of a suite over sources that are only declared: columns,
 * rows and bytes by a table file, no data. Each query is lowered, planned, read, cut
 * and shown as EXPLAIN shows stages. Usage: golden tpch|tpcds TABLES_FILE OUT_DIR
 * Thread: one.
 */
#include "scheduler/scheduler_internal.h"
#include "source/reader.h"
#include "source/source_internal.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TASKS = 3, MOST_TABLES = 32 };
#define LARGEST_TABLES_FILE ((size_t)1 << 20)

typedef struct declared {
  const char *name;
  schema columns;
  uint64_t rows, bytes;
  const source_request *request;
  source *source;
  relation *bound;
} declared;

typedef struct golden {
  const char *suite, *out_dir;
  arena *memory;
  engine *planner;
  declared tables[MOST_TABLES];
  size_t n_tables;
  job_settings settings;
  size_t n_queries, n_stages, most_stages, most_query, n_one;
  hf_error error;
} golden;

static void stop(const golden *g, const char *what) {
  fprintf(stderr, "golden: %s: %s\n", what, g->error.message == NULL ? "no memory" : g->error.message);
  exit(1);
}

static void must(const golden *g, hf_status status, const char *what) {
  if (status != HF_OK) {
    stop(g, what);
  }
}

static void must_have(const golden *g, const void *memory) {
  if (memory == NULL) {
    stop(g, "memory");
  }
}

/* ------------------------------------------------------------------- tables */

/* The columns are those of a query that casts a NULL to each type. */
static char *read_columns(golden *g, char *text, buf *sql) {
  buf_text(sql, "SELECT ");
  for (bool is_first = true; *text == ' '; is_first = false) {
    char *end = text + strcspn(text, "\n"), *name = text + 2;
    char *type = name + strcspn(name, " ");
    buf_text(sql, is_first ? "CAST(NULL AS " : ", CAST(NULL AS ");
    buf_append(sql, type + 1, (size_t)(end - type - 1));
    buf_text(sql, ") AS ");
    *type = '\0';
    buf_sql_name(sql, name);
    text = *end == '\0' ? end : end + 1;
  }
  if (sql->failed) {
    stop(g, "columns");
  }
  return text;
}

/* A Parquet file that is not there. */
static void declare(golden *g, declared *table) {
  const char **paths = arena_array(g->memory, 1, sizeof *paths);
  source_request *request = arena_alloc(g->memory, sizeof *request);
  source_file *file = arena_alloc(g->memory, sizeof *file);
  must_have(g, paths);
  must_have(g, request);
  must_have(g, file);
  paths[0] = arena_printf(g->memory, "/declared/%s.parquet", table->name);
  must_have(g, paths[0]);
  *request = (source_request){.format = SOURCE_PARQUET, .paths = paths, .n_paths = 1};
  *file = (source_file){.path = paths[0], .bytes = table->bytes};
  source *made = mem_zalloc(1, sizeof *made);
  must_have(g, made);
  *made = (source){.arena = arena_new(),
                   .columns = table->columns,
                   .rows = table->rows,
                   .rows_exact = true,
                   .bytes = table->bytes,
                   .n_files = 1,
                   .files = file,
                   .reader = "read_parquet(" READER_FILES READER_CUT_BEGIN READER_CUT_END ")"};
  atomic_init(&made->references, 1);
  table->request = request;
  table->source = made;
  must(g, relation_from_read(request, &table->bound, &g->error), table->name);
}

/* "name rows bytes", then a line "  column TYPE" for each column; lines with # are notes. */
static void read_tables(golden *g, const char *path) {
  char *text = NULL;
  size_t length = 0;
  must(g, file_read_whole(path, LARGEST_TABLES_FILE, HF_E_FILE_NOT_FOUND, &text, &length, &g->error), path);
  for (char *at = text; *at != '\0';) {
    char *end = at + strcspn(at, "\n"), *next = *end == '\0' ? end : end + 1;
    if (*at == '#' || at == end) {
      at = next;
      continue;
    }
    if (g->n_tables == MOST_TABLES) {
      stop(g, "too many tables");
    }
    declared *table = &g->tables[g->n_tables++];
    char *rows = at + strcspn(at, " ");
    table->name = arena_strndup(g->memory, at, (size_t)(rows - at));
    table->rows = strtoull(rows, &rows, 10);
    table->bytes = strtoull(rows, NULL, 10);
    buf sql = {0};
    at = read_columns(g, next, &sql);
    must(g, engine_describe(g->planner, buf_cstr(&sql), g->memory, &table->columns, &g->error), table->name);
    buf_reset(&sql);
    declare(g, table);
  }
  mem_free(text);
}

static const relation *lookup(void *context, const char *name) {
  const golden *g = context;
  for (size_t i = 0; i < g->n_tables; i++) {
    if (strcasecmp(g->tables[i].name, name) == 0) {
      return g->tables[i].bound;
    }
  }
  return NULL;
}

static const char *name_at(void *context, size_t i) {
  const golden *g = context;
  return i < g->n_tables ? g->tables[i].name : NULL;
}

/* ----------------------------------------------------------------- planning */

static job_profile *no_fill(void *context, const held_need *need) {
  (void)context;
  (void)need;
  return NULL;
}

static void plan_query(golden *g, const relation *r, planning *p) {
  *p = (planning){.session = uuid_new(), .relation = r, .settings = &g->settings, .n_tasks = TASKS};
  must(g, planning_begin(p, &g->error), "begin");
  known_source *known = arena_array(p->lasting, g->n_tables, sizeof *known);
  must_have(g, known);
  for (size_t i = 0; i < g->n_tables; i++) {
    known[i] = (known_source){.request = g->tables[i].request, .source = source_retain(g->tables[i].source)};
    LL_PREPEND(p->sources, &known[i]);
  }
  must(g, planning_lower(NULL, p, &g->error), "lower"); /* all sources are known: no scheduler is asked */
  p->ordered = p->query.ordered || planning_input_bytes(p) < p->settings->ordered_below_bytes;
  must(g, plan_describe(g->planner, &p->query, p->memory, &p->columns, &g->error), "describe");
  must(g, cutting_try(g->planner, p, &g->error), "cut");
}

static void write_plan(golden *g, const planning *p, size_t number) {
  job_profile *shown = profile_new(0);
  buf text = {0};
  char *path = arena_printf(g->memory, "%s/q%02zu.plan", g->out_dir, number);
  must_have(g, shown);
  must_have(g, path);
  observe_plan(p, &(observe_fills){no_fill, NULL}, shown);
  profile_put_stages(shown, &text);
  if (text.failed) {
    stop(g, "text");
  }
  must(g, file_write_whole(path, text.data, text.length, false, &g->error), path);
  buf_reset(&text);
  profile_release(shown);
}

static void add_query(golden *g, size_t number, const char *sql) {
  relation *r = NULL;
  relation_names names = {.lookup = lookup, .name_at = name_at, .context = g};
  must(g, relation_from_sql(g->planner, sql, &names, &r, &g->error), sql);
  planning p;
  plan_query(g, r, &p);
  size_t stages = p.graph.n_stages == 0 ? 1 : p.graph.n_stages;
  g->n_queries++;
  g->n_stages += stages;
  g->n_one += p.graph.n_stages == 0 ? 1 : 0;
  if (stages > g->most_stages) {
    g->most_stages = stages;
    g->most_query = number;
  }
  write_plan(g, &p, number);
  planning_reset(&p);
  relation_release(r);
}

/* The texts of the extension; it makes no data. */
static void add_queries(golden *g) {
  engine *texts = NULL;
  const char *dir = engine_extension_dir(g->memory);
  if (dir == NULL) {
    fputs("golden: there are no extensions of DuckDB: run tools/setup\n", stderr);
    exit(1);
  }
  engine_options options = {.kind = ENGINE_SLOT,
                            .threads = 1,
                            .memory_bytes = (uint64_t)256 << 20,
                            .extension_dir = dir,
                            .load = &g->suite,
                            .n_load = 1};
  must(g, engine_open(&options, &texts, &g->error), g->suite);
  text_table found;
  const char *sql = arena_printf(
      g->memory, "SELECT query_nr::VARCHAR, query FROM %s_queries() ORDER BY query_nr", g->suite);
  must_have(g, sql);
  must(g, engine_query_text(texts, sql, g->memory, &found, &g->error), sql);
  engine_close(texts);
  for (size_t i = 0; i < found.n_rows; i++) {
    add_query(g, strtoul(found.cells[2 * i], NULL, 10), found.cells[2 * i + 1]);
  }
}

static void write_summary(golden *g) {
  char *path = arena_printf(g->memory, "%s/summary", g->out_dir);
  char *text = arena_printf(
      g->memory,
      "%zu queries in %d tasks, %zu stages, %.2f a query, the most %zu (q%02zu); one task for all: %zu\n",
      g->n_queries, TASKS, g->n_stages, (double)g->n_stages / (double)g->n_queries, g->most_stages,
      g->most_query, g->n_one);
  must_have(g, path);
  must_have(g, text);
  must(g, file_write_whole(path, text, strlen(text), false, &g->error), path);
  printf("%s: %s", g->suite, text);
}

int main(int argc, char **argv) {
  static const stage_setting settings[] = {{"TimeZone", "UTC"}, {"default_null_order", "nulls_last"}};
  if (argc != 4) {
    fputs("usage: golden tpch|tpcds TABLES_FILE OUT_DIR\n", stderr);
    return 2;
  }
  golden g = {.suite = argv[1],
              .out_dir = argv[3],
              .memory = arena_new(),
              .settings = {.engine = settings, .n_engine = 2, .ordered_below_bytes = 64 << 20}};
  must_have(&g, g.memory);
  engine_setting rows[] = {{settings[0].name, settings[0].value}, {settings[1].name, settings[1].value}};
  engine_options options = {.kind = ENGINE_PLANNER, .threads = 1, .settings = rows, .n_settings = 2};
  must(&g, engine_open(&options, &g.planner, &g.error), "a planner");
  read_tables(&g, argv[2]);
  add_queries(&g);
  write_summary(&g);
  engine_close(g.planner);
  for (size_t i = 0; i < g.n_tables; i++) {
    relation_release(g.tables[i].bound);
    source_release(g.tables[i].source);
  }
  arena_free(g.memory);
  return 0;
}

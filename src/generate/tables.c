/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated tables: a few hundred to some thousand rows of odd values, which are SQL
 * expressions of a row's number; as files, and as views of them on both sides.
 * Thread: one at a time.
 */
#include "generate/generate_tables.h"

#include "base/file.h"

#include <string.h>

#define GEN_ENUM_TYPE "ENUM('red', 'green', 'blue', '')"
#define GEN_STRUCT_TYPE "STRUCT(a INTEGER, b VARCHAR)"

enum { TABLES_LEAST = 3, TABLES_MOST = 6, COLUMNS_LEAST = 4, COLUMNS_MOST = 10, PARTS_MOST = 4 };

static const struct kind {
  const char *type;
  gen_type class;
  const char *value;
  double most;
  gen_exactness exactness;
  double distinct;
  size_t weight;
} kinds[] = {
#define GEN_KIND(type, class, value, most, exactness, distinct, weight) \
  {type, class, value, most, exactness, distinct, weight},
#include "generate_table.def"
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* -------------------------------------------------------------- definitions */

/* One odd type a set of tables: columns of other ones are not to be had. */
static const struct kind *one_odd(uint64_t seed) {
  const struct kind *odd[KINDS];
  size_t n = 0;
  for (size_t i = 0; i < KINDS; i++) {
    if (kinds[i].class == GEN_ODD) {
      odd[n++] = &kinds[i];
    }
  }
  return odd[seed % n];
}

static const struct kind *choose_kind(generator *g, const struct kind *odd) {
  size_t weights = 0;
  for (size_t i = 0; i < KINDS; i++) {
    weights += kinds[i].weight;
  }
  size_t chosen = gen_below(g, weights), i = 0;
  while (chosen >= kinds[i].weight) {
    chosen -= kinds[i++].weight;
  }
  return kinds[i].class == GEN_ODD ? odd : &kinds[i];
}

/* $ and # are random numbers of the row: hashes of its number and of one of the column. */
static const char *value_of(generator *g, const struct kind *k) {
  buf out = {0};
  unsigned salts[2] = {(unsigned)gen_below(g, 1000000000), (unsigned)gen_below(g, 1000000000)};
  static const unsigned null_percents[] = {0, 0, 5, 20, 60, 100};
  unsigned percent = null_percents[gen_below(g, gen_chance(g, 10) ? 6 : 5)];
  buf_printf(&out, "CASE WHEN hash(i + %u) %% 100 < %u THEN NULL ELSE CAST(", salts[0] / 2 + 1, percent);
  for (const char *at = k->value; *at != '\0'; at++) {
    if (*at == '$' || *at == '#') {
      buf_printf(&out, "(hash(i + %u) >> 1)::BIGINT", salts[*at == '#' ? 1 : 0]);
    } else {
      buf_char(&out, *at);
    }
  }
  buf_printf(&out, " AS %s) END", k->type);
  const char *copy = arena_strdup(g->memory, buf_cstr(&out));
  g->failed = g->failed || out.failed || copy == NULL;
  buf_reset(&out);
  return copy == NULL ? "" : copy;
}

static bool is_written_as_text(const char *type) {
  static const char *const types[] = {"HUGEINT", "ENUM", "INTERVAL", "BIT", "TIMESTAMP_", "JSON"};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strncmp(type, types[i], strlen(types[i])) == 0) {
      return true;
    }
  }
  return false;
}

static void make_column(generator *g, generated_table *t, size_t i, const struct kind *odd) {
  const struct kind *k = i == 0 ? &kinds[0] : choose_kind(g, odd);
  double rows = t->shape.rows;
  double distinct = k->distinct <= 0 || k->distinct > rows ? rows : k->distinct;
  const char *name = i == 0 ? "id" : gen_text(g, gen_chance(g, 5) ? "Odd x%zu" : "x%zu", i);
  t->columns[i] = (generated_column){.type = k->type,
                                     .value = i == 0 ? "i::INTEGER" : value_of(g, k),
                                     .is_text = is_written_as_text(k->type)};
  t->shape.columns[i] = (gen_column){
      .name = name, .type = k->class, .most = k->most, .exactness = k->exactness, .distinct = distinct};
}

static void make_table(generator *g, generated_table *t, size_t number, const struct kind *odd) {
  static const char *const names[TABLES_MOST] = {"one", "two", "three", "four", "five", "six"};
  static const size_t sizes[] = {0, 1, 2, 30, 30, 300, 300, 1500, 2500, 4200};
  size_t n = number == 0   ? 20 + gen_below(g, 20)
             : number == 1 ? 2100 + gen_below(g, 1200)
                           : sizes[gen_below(g, 10)];
  size_t n_columns = COLUMNS_LEAST + gen_below(g, COLUMNS_MOST - COLUMNS_LEAST + 1);
  t->rows = arena_array(g->memory, n + 1, sizeof *t->rows);
  t->columns = arena_array(g->memory, n_columns, sizeof *t->columns);
  t->shape = (gen_table){.name = names[number],
                         .columns = arena_array(g->memory, n_columns, sizeof(gen_column)),
                         .n_columns = n_columns,
                         .rows = (double)n};
  if (t->rows == NULL || t->columns == NULL || t->shape.columns == NULL) {
    g->failed = true;
    return;
  }
  for (size_t i = 0; i < n; i++) {
    t->rows[i] = (uint32_t)i;
  }
  t->n_rows = n;
  t->parts = gen_chance(g, 10) ? 1 : 2 + (unsigned)gen_below(g, PARTS_MOST - 1);
  t->storage = gen_chance(g, 70) ? STORED_AS_PARQUET : gen_chance(g, 50) ? STORED_AS_CSV : STORED_BY_CLIENT;
  for (size_t i = 0; i < n_columns; i++) {
    make_column(g, t, i, odd);
  }
}

hf_status generated_tables_new(uint64_t seed, generated_tables **out, hf_error *error) {
  arena *a = arena_new();
  generated_tables *t = a == NULL ? NULL : arena_alloc(a, sizeof *t);
  generated_table *tables = t == NULL ? NULL : arena_array(a, TABLES_MOST, sizeof *tables);
  generator g = {.memory = a, .random = seed};
  if (tables != NULL) {
    *t = (generated_tables){
        .memory = a, .tables = tables, .n = TABLES_LEAST + gen_below(&g, TABLES_MOST - TABLES_LEAST + 1)};
    for (size_t i = 0; i < t->n; i++) {
      make_table(&g, &tables[i], i, one_odd(seed / 4));
    }
  }
  if (tables == NULL || g.failed) {
    arena_free(a);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for generated tables");
  }
  *out = t;
  return HF_OK;
}

void generated_tables_free(generated_tables *t) {
  if (t != NULL) {
    arena_free(t->memory);
  }
}

/* -------------------------------------------------------------------- files */

typedef struct writing {
  const generated_table *table;
  const verifier *v;
  const char *dir;
  hf_error *error;
} writing;

static hf_status run_on_witness(const verifier *v, buf *sql, hf_error *error) {
  hf_status status = sql->failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for generated tables")
                                 : engine_execute(witness_engine(v->witness), buf_cstr(sql), error);
  buf_reset(sql);
  return status;
}

/* Rows first to end as a relation of i. */
static void append_rows(buf *sql, const generated_table *t, size_t first, size_t end) {
  if (t->n_rows == (size_t)t->shape.rows) {
    buf_printf(sql, "range(%zu, %zu) r(i)", first, end);
    return;
  }
  buf_text(sql, "(SELECT unnest([");
  for (size_t i = first; i < end; i++) {
    buf_printf(sql, "%s%u", i == first ? "" : ", ", t->rows[i]);
  }
  buf_text(sql, "]::BIGINT[]) AS i) r");
}

static hf_status write_part(const writing *w, unsigned part) {
  const generated_table *t = w->table;
  bool is_csv = t->storage == STORED_AS_CSV;
  buf sql = {0};
  buf_text(&sql, "COPY (SELECT ");
  for (size_t i = 0; i < t->shape.n_columns; i++) {
    const generated_column *c = &t->columns[i];
    buf_printf(&sql, "%sCAST(CAST(%s AS %s) AS %s) AS ", i == 0 ? "" : ", ", c->value, c->type,
               is_csv || c->is_text ? "VARCHAR" : c->type);
    buf_sql_name(&sql, t->shape.columns[i].name);
  }
  buf_text(&sql, " FROM ");
  append_rows(&sql, t, t->n_rows * part / t->parts, t->n_rows * (part + 1) / t->parts);
  buf_printf(&sql, ") TO '%s/%u.%s' (FORMAT %s)", w->dir, part, is_csv ? "csv" : "parquet",
             is_csv ? "csv, HEADER, NULLSTR '\\N'" : "parquet, ROW_GROUP_SIZE 2048");
  return run_on_witness(w->v, &sql, w->error);
}

static void append_source(buf *sql, const writing *w) {
  const generated_table *t = w->table;
  if (t->storage != STORED_AS_CSV) {
    buf_printf(sql, "read_parquet('%s/*.parquet')", w->dir);
    return;
  }
  buf_printf(sql, "read_csv('%s/*.csv', auto_detect = false, header = true, nullstr = '\\N', columns = {",
             w->dir);
  for (size_t i = 0; i < t->shape.n_columns; i++) {
    buf_text(sql, i == 0 ? "" : ", ");
    buf_sql_string(sql, t->shape.columns[i].name);
    buf_text(sql, ": 'VARCHAR'");
  }
  buf_text(sql, "})");
}

/* `from` NULL: its files. */
static void append_query(buf *sql, const writing *w, const char *from) {
  const generated_table *t = w->table;
  buf_text(sql, "SELECT ");
  for (size_t i = 0; i < t->shape.n_columns; i++) {
    const generated_column *c = &t->columns[i];
    buf_text(sql, i == 0 ? "" : ", ");
    bool is_cast = t->storage == STORED_AS_CSV || c->is_text;
    buf_text(sql, is_cast ? "CAST(" : "");
    buf_sql_name(sql, t->shape.columns[i].name);
    if (is_cast) {
      buf_printf(sql, " AS %s) AS ", c->type);
      buf_sql_name(sql, t->shape.columns[i].name);
    }
  }
  buf_text(sql, " FROM ");
  if (from != NULL) {
    buf_text(sql, from);
  } else {
    append_source(sql, w);
  }
}

static hf_status make_view(const writing *w, const char *from) {
  buf query = {0};
  append_query(&query, w, from);
  hf_status status = query.failed ? error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for generated tables")
                                  : verify_view(w->v, w->table->shape.name, buf_cstr(&query), w->error);
  buf_reset(&query);
  return status;
}

/* The other side gets the rows of the files as a stream, under a name of their own. */
static hf_status give_rows(const writing *w) {
  struct ArrowArrayStream rows;
  buf sql = {0}, name = {0};
  buf_text(&sql, "FROM ");
  append_source(&sql, w);
  buf_printf(&name, "%s_rows", w->table->shape.name);
  hf_status status = sql.failed || name.failed
                         ? error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for generated tables")
                         : witness_run(w->v->witness, buf_cstr(&sql), &rows, w->error);
  if (status == HF_OK) {
    status = verify_rows(w->v, buf_cstr(&name), &rows, w->error);
  }
  if (status == HF_OK) {
    status = make_view(w, buf_cstr(&name));
  }
  buf_reset(&sql);
  buf_reset(&name);
  return status;
}

static hf_status write_table(const writing *w) {
  HF_TRY(file_make_dirs(w->dir, w->error));
  for (unsigned part = 0; part < w->table->parts; part++) {
    HF_TRY(write_part(w, part));
  }
  buf sql = {0};
  buf_printf(&sql, "CREATE OR REPLACE VIEW %s AS ", w->table->shape.name);
  append_query(&sql, w, NULL);
  HF_TRY(run_on_witness(w->v, &sql, w->error));
  return w->table->storage == STORED_BY_CLIENT ? give_rows(w) : make_view(w, NULL);
}

hf_status generated_table_write(generated_tables *t, size_t table, const verifier *v, const char *dir,
                                hf_error *error) {
  buf own = {0};
  buf_printf(&own, "%s/%u-%s", dir, ++t->writes, t->tables[table].shape.name);
  writing w = {.table = &t->tables[table], .v = v, .dir = buf_cstr(&own), .error = error};
  hf_status status =
      own.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for generated tables") : write_table(&w);
  buf_reset(&own);
  return status;
}

hf_status generated_tables_write(generated_tables *t, const verifier *v, const char *dir, hf_error *error) {
  for (size_t i = 0; i < t->n; i++) {
    HF_TRY(generated_table_write(t, i, v, dir, error));
  }
  return HF_OK;
}

void generated_tables_drop(generated_tables *t, const verifier *v) {
  for (size_t i = t->n; i-- > 0;) { /* the last first: no view is over what is dropped */
    buf name = {0};
    buf_printf(&name, "%s_rows", t->tables[i].shape.name);
    verify_drop(v, t->tables[i].shape.name);
    if (t->tables[i].storage == STORED_BY_CLIENT) {
      verify_drop(v, buf_cstr(&name));
    }
    buf_reset(&name);
  }
}

/* --------------------------------------------------------------------- text */

static void append_row(buf *out, const generated_table *t, const char *const *cells) {
  for (size_t i = 0; i < t->shape.n_columns; i++) {
    buf_text(out, i == 0 ? "(" : ", ");
    if (cells[i] == NULL) {
      buf_text(out, "NULL");
    } else {
      buf_sql_string(out, cells[i]);
    }
  }
  buf_char(out, ')');
}

hf_status generated_table_as_sql(const generated_table *t, const verifier *v, buf *out, hf_error *error) {
  buf sql = {0};
  text_table found = {0};
  arena *a = arena_new();
  buf_printf(out, "CREATE TABLE %s (", t->shape.name);
  buf_text(&sql, "SELECT ");
  for (size_t i = 0; i < t->shape.n_columns; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    buf_sql_name(out, t->shape.columns[i].name);
    buf_printf(out, " %s", t->columns[i].type);
    buf_text(&sql, i == 0 ? "" : ", ");
    buf_sql_name(&sql, t->shape.columns[i].name);
    buf_text(&sql, "::VARCHAR");
  }
  buf_text(out, ");\n");
  buf_printf(&sql, " FROM %s", t->shape.name);
  hf_status status = a == NULL || sql.failed
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a case")
                         : engine_query_text(witness_engine(v->witness), buf_cstr(&sql), a, &found, error);
  for (size_t i = 0; status == HF_OK && i < found.n_rows; i++) {
    buf_text(out, i == 0 ? "" : ",\n  ");
    if (i == 0) {
      buf_printf(out, "INSERT INTO %s VALUES\n  ", t->shape.name);
    }
    append_row(out, t, &found.cells[i * t->shape.n_columns]);
  }
  buf_text(out, found.n_rows > 0 ? ";\n" : "");
  buf_reset(&sql);
  arena_free(a);
  return status;
}

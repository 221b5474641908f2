/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of generated tables.
 * Thread: one at a time.
 */
#ifndef HF_GENERATE_GENERATE_TABLES_H
#define HF_GENERATE_GENERATE_TABLES_H

#include "generate/generate_internal.h"

typedef enum generated_storage { STORED_AS_PARQUET, STORED_AS_CSV, STORED_BY_CLIENT } generated_storage;

typedef struct generated_column {
  const char *type;  /* as DuckDB spells it */
  const char *value; /* of row number i */
  bool is_text;      /* Parquet would change the type: it is written as text and cast back */
} generated_column;

typedef struct generated_table {
  gen_table shape;
  generated_column *columns; /* as many as the shape has */
  generated_storage storage;
  unsigned parts; /* files */
  uint32_t *rows; /* numbers of the rows that it has */
  size_t n_rows;
} generated_table;

struct generated_tables {
  arena *memory;
  generated_table *tables;
  size_t n;
  unsigned writes; /* so far: each has its own directory */
};

/* Writes one of the tables, in a directory of its own below `dir`. */
hf_status generated_table_write(generated_tables *t, size_t table, const verifier *v, const char *dir,
                                hf_error *error);
/* The values of a table's rows as a CREATE TABLE and an INSERT; the tables were written, `v` sees them. */
hf_status generated_table_as_sql(const generated_table *t, const verifier *v, buf *out, hf_error *error);

#endif

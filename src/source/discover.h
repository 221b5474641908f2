/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: what is in listed files. Each format has a file: discover_parquet.c,
 * discover_csv.c, discover_json.c; what they share is in discover.c.
 * Thread: that of the discovery engine's user, one at a time.
 */
#ifndef HF_SOURCE_DISCOVER_H
#define HF_SOURCE_DISCOVER_H

#include "source/listing.h"

typedef struct discovery {
  engine *engine;
  const source_request *request;
  const listing *files;
  arena *arena; /* of the source */
  hf_error *error;
  /* found */
  schema columns;
  size_t
      n_file_columns; /* the first of them come from the files, the others are generated: filename, hive keys */
  uint64_t rows;
  bool rows_exact;
  buf reader; /* see reader.h; the caller resets it */
} discovery;

/* Fills what is found. Errors: FILE_FORMAT naming a file, BIND and INVALID_ARGUMENT of options, OUT_OF_MEMORY. */
hf_status discover(discovery *d);

hf_status discover_parquet(discovery *d);
hf_status discover_csv(discovery *d);
hf_status discover_json(discovery *d);

/* ---------------------------------------------------------- shared by them */

/* Which options a call gets. */
typedef enum call_options {
  CALL_AS_REQUESTED, /* all that the user gave */
  CALL_RESOLVED      /* those that are not spelled out otherwise */
} call_options;

/* Appends "read_x(<files>, <options>" without the closing parenthesis. `files` NULL: the place for them. */
void discover_call(const discovery *d, const char *const *files, size_t n_files, call_options options,
                   buf *out);
/* Appends ", hive_partitioning = …" and what belongs to it. `with_types`: the types found are spelled out. */
void discover_hive_options(const discovery *d, bool with_types, buf *out);
/* Binds the call as it was requested: sets columns and n_file_columns. */
hf_status discover_columns(discovery *d);
/* Appends {'a': 'INTEGER', …} for some columns. */
void discover_columns_literal(const column *columns, size_t n_columns, buf *out);
/* Whether SELECT * FROM both gives the same columns and first rows; files that cannot be read give false. */
bool discover_calls_agree(const discovery *d, const char *first, const char *second);
/* The paths of all files, in the arena; NULL for lack of memory. */
const char **discover_paths(const discovery *d);
/* Rows by the length of the first lines; not exact. */
uint64_t discover_rows_by_lines(const discovery *d);
hf_status discover_out_of_memory(const discovery *d);

#endif

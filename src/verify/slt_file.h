/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of sqllogictest: records of statements and queries, in order. Listed
 * results are dropped: what is compared is two ways to compute, not texts.
 * Thread: one at a time.
 */
#ifndef HF_VERIFY_SLT_FILE_H
#define HF_VERIFY_SLT_FILE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum slt_kind { SLT_STATEMENT, SLT_QUERY } slt_kind;

typedef struct slt_record {
  slt_kind kind;
  char *sql;
  size_t line; /* that it begins at, from 1 */
} slt_record;

typedef struct slt_file {
  size_t n_records;
  slt_record *records;
  char *skipped; /* why the file cannot be run, or NULL */
} slt_file;

/* Reads a file; false when it cannot be read. */
bool slt_file_read(const char *path, slt_file *out);
void slt_file_free(slt_file *file);

#endif

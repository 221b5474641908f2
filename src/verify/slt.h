/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of sqllogictest files: tables are made by single-node DuckDB and given to
 * the other side as files, or as Arrow data where Parquet has no such type.
 * Thread: one at a time.
 */
#ifndef HF_VERIFY_SLT_H
#define HF_VERIFY_SLT_H

#include "verify.h"

typedef struct slt_visitor {
  /* Opens both sides anew, without names, in this time zone. */
  hf_status (*reopen)(void *context, const char *zone, hf_error *error);
  /* A query that both sides can run now; false ends the run. */
  bool (*query)(void *context, const char *name, const char *sql);
  /* A file, or what a file goes on with, that is not run. */
  void (*skip)(void *context, const char *name, const char *why);
  void *context;
} slt_visitor;

/*
 * Visits the queries of the *.test files at and below `path`, in the order of their names; files of tables go below `dir`.
 * Errors: FILE_NOT_FOUND when there are none; those of opening.
 */
hf_status slt_visit(verifier *v, const char *path, const char *dir, const slt_visitor *visitor,
                    hf_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named inputs: files named in SQL or by the API become registered sources with
 * a fixed list of files, schema, row count and version. Tasks never sniff.
 */
#ifndef HF_SOURCE_SOURCE_H
#define HF_SOURCE_SOURCE_H

#include "arrow/type.h"
#include "base/arena.h"
#include "engine/engine.h"

typedef enum source_format { SOURCE_PARQUET, SOURCE_CSV, SOURCE_JSON } source_format;

/* One reader option as written in the SQL call: its value is SQL text (a constant, list or struct literal). */
typedef struct source_option {
  const char *name;
  const char *value_sql;
} source_option;

/* What a query asks for, before anything was listed or opened. */
typedef struct source_request {
  source_format format;
  const char *const
      *paths; /* names or globs; source_path_absolute makes them independent of the working directory */
  size_t n_paths;
  const source_option *options;
  size_t n_options;
  const char *const *written; /* the same as they were written, for messages; NULL: `paths` */
} source_request;

/* Returns the path with the working directory in front when it is a relative one, else a copy; NULL for lack of memory.
 * A path that cannot be completed stays what it is. */
const char *source_path_absolute(const char *path, arena *a);

/* Finds the format of a bare file name by its ending (.parquet, .csv, .tsv, .csv.gz, .json, .jsonl, .ndjson …). */
bool source_format_of_path(const char *path, source_format *out);
/* Checks an option's name against the reader's allow-list. Errors: INVALID_ARGUMENT with the nearest name. */
hf_status source_option_check(source_format format, const char *name, hf_error *error);
/* Spells an option's value, given as text by the API, as the SQL that source_option wants: true, 'x', ['a', 'b'] …
 * Errors: those of source_option_check; INVALID_ARGUMENT when the text is no such value. */
hf_status source_option_from_text(source_format format, const char *name, const char *text, arena *a,
                                  const char **value_sql, hf_error *error);

typedef struct source_file {
  const char *path; /* absolute, links resolved */
  uint64_t bytes;
  int64_t mtime_ns, ctime_ns;
  uint64_t inode;
} source_file;

/* A file or directory as it was when a source was listed. */
typedef struct source_version {
  const char *path; /* absolute */
  uint64_t bytes;   /* 0 of a directory */
  int64_t mtime_ns;
} source_version;

typedef struct source_versions {
  source_version *all;
  size_t n;
} source_versions;

/* Tells whether it is still so. Cost: one stat. */
bool source_version_holds(const source_version *version);
/* Tells whether the path is the directory (or file) or lies below it. */
bool source_path_is_below(const char *path, const char *directory);

typedef struct source source; /* reference counted, immutable */

typedef struct source_catalog source_catalog;

typedef struct source_catalog_options {
  const char *const *allowed_dirs; /* absolute, links resolved */
  size_t n_allowed_dirs;
  const char *refused_dir; /* the work directory: never readable by name */
  const char *extension_dir;
} source_catalog_options;

/* A catalogue of resolved sources with its discovery engine (opened when first needed). Thread: any. */
hf_status source_catalog_new(const source_catalog_options *options, source_catalog **out, hf_error *error);
void source_catalog_free(source_catalog *c);

/*
 * Lists the files, checks them against the allowed paths and finds schema and rows; reuses what it knows when path,
 * size, times and inode of every file are the same. Returns a reference in *out.
 * Errors: FILE_NOT_FOUND, FILE_FORMAT, PATH_REFUSED, OUT_OF_MEMORY. Cost: one stat a file, plus discovery once.
 */
hf_status source_resolve(source_catalog *c, const source_request *request, source **out, hf_error *error);
/*
 * The same; *versions (in `to`) tells what must be as it was for the answer to be the same: its files, the directories
 * that patterns looked into, links. They were looked at before anything was read.
 */
hf_status source_resolve_versions(source_catalog *c, const source_request *request, arena *to,
                                  source_versions *versions, source **out, hf_error *error);

/*
 * Checks a path that is to be written, as those that are read: *out is absolute and in `a`, links of its directory
 * resolved; what is there is not looked at. Errors: INVALID_ARGUMENT (no file name), PATH_REFUSED, FILE_NOT_FOUND (no such
 * directory), UNSUPPORTED (s3:// …), IO, OUT_OF_MEMORY. Thread: any.
 */
hf_status source_target(const source_catalog *c, const char *path, arena *a, const char **out,
                        hf_error *error);

source *source_retain(source *s);
void source_release(source *s);
const schema *source_columns(const source *s);
uint64_t source_rows(const source *s, bool *exact);
uint64_t source_bytes(const source *s);
size_t source_n_files(const source *s);
const source_file *source_files(const source *s);

/* The row number behind the last of any file. */
#define SOURCE_END ((uint64_t)INT64_MAX)

/*
 * Splits: the rows of all shares, one behind the other, are those of the source in its order. Parquet is cut at row
 * groups, inside them when they are too few; while there are fewer than four files a share, for which their footers are
 * read, once a source. Else whole files are dealt out by size. A share may be empty.
 */
typedef struct source_part {
  const char *path;
  uint64_t first, count; /* rows; count 0: the whole file; SOURCE_END - first: to its end */
  uint64_t bytes;        /* of the file, as much as it has of its rows */
} source_part;

typedef struct source_share {
  size_t n_parts;
  const source_part *parts;
} source_share;

/* Whether it can have more than one share that is not empty. */
bool source_can_split(const source *s);
typedef struct source_split_options {
  size_t n; /* shares */
  bool
      in_order; /* a share is whole files or a part of one: one scan, since DuckDB keeps no order over several */
} source_split_options;

/* Fills options->n shares, in `a`. Thread: any, may do I/O. Errors: FILE_FORMAT, OUT_OF_MEMORY. */
hf_status source_split(source_catalog *c, source *s, const source_split_options *options, arena *a,
                       source_share *out, hf_error *error);

/*
 * The reader call for the given files, with names, types and dialect spelled out so that nothing is sniffed:
 * read_parquet(['/a/x.parquet']) … or a sub-select in parentheses; either can stand behind FROM, with an alias behind
 * it. Columns come under their user names. `reader` is the text that source_reader_text gave (it travels in the
 * StagePlan); files travel in the TaskSpec. The grammar of `reader` is reader.c's own.
 */
const char *source_reader_text(const source *s);
void source_scan_sql(const char *reader, const char *const *paths, size_t n_paths, buf *out);
/* The same for `count` rows of one file of a source that can be cut so, the first of them number `first` from 0; see
 * source_part. */
void source_range_sql(const char *reader, const char *path, uint64_t first, uint64_t count, buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader text: SQL with a place for the list of files. One template serves
 * all files; or, when files were laid out differently, each template names the
 * files that it is for.
 *
 *   text     := template | group+
 *   group    := \x02 template (\x03 path)+
 *   template := SQL with \x01 where the list of files goes
 *
 * Thread: any.
 */
#ifndef HF_SOURCE_READER_H
#define HF_SOURCE_READER_H

#include "source/source.h"

#define READER_FILES "\x01"

/* Appends "SELECT <template>" for some files; see source_scan_sql. */
void reader_begin_group(buf *text, const char *call);
void reader_add_path(buf *text, const char *path);
/* Appends ['/a', '/b'], each name so spelled that DuckDB takes it for no pattern. */
void reader_file_list(const char *const *paths, size_t n_paths, buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader text: SQL with a place for the list of files. One template serves
 * all files; or, when files were laid out differently, each template names the
 * files that it is for.
 *
 *   text     := template | group+
 *   group    := \x02 template (\x03 path)+
 *   template := SQL with \x01 where the list of files goes; what stands between \x04 and \x05, if they are there, can
 *               be cut to a range of rows when it reads one file
 *
 * Thread: any.
 */
#ifndef HF_SOURCE_READER_H
#define HF_SOURCE_READER_H

#include "source/source.h"

#define READER_FILES "\x01"
#define READER_CUT_BEGIN "\x04"
#define READER_CUT_END "\x05"

/* Appends "SELECT <template>" for some files; see source_scan_sql. */
void reader_begin_group(buf *text, const char *call);
void reader_add_path(buf *text, const char *path);
/* Whether a file's rows can be cut to a range. */
bool reader_can_cut(const char *reader);
/* Appends ['/a', '/b'], or very many as one text that is split; each name so spelled that DuckDB takes it for no pattern. */
void reader_file_list(const char *const *paths, size_t n_paths, buf *out);

#endif

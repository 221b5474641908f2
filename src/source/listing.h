/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the paths of a request to files: patterns expanded, links resolved, each
 * checked against what may be read. Not here: what is in the files.
 * Thread: any. Blocks on the disk.
 */
#ifndef HF_SOURCE_LISTING_H
#define HF_SOURCE_LISTING_H

#include "source/source.h"

typedef struct listing {
  size_t n_files;
  source_file *files; /* absolute, links resolved */
  const char *const
      *written; /* the same files as the request or its patterns name them: hive keys come from here */
  uint64_t bytes;
  size_t n_others;
  const source_version *others; /* directories that patterns looked into, and links that led to the files */
} listing;

/*
 * Lists; memory is the arena's. `options` says what may be read.
 * Errors: FILE_NOT_FOUND, PATH_REFUSED, FILE_FORMAT (a directory, a device), UNSUPPORTED (s3://, https:// …), IO,
 * LIMIT, INVALID_ARGUMENT (** twice), OUT_OF_MEMORY. Messages name paths as they were written.
 */
hf_status listing_make(const source_catalog_options *options, const source_request *request, arena *a,
                       listing *out, hf_error *error);

/* See source_target. */
hf_status listing_target(const source_catalog_options *options, const char *path, arena *a, const char **out,
                         hf_error *error);

#endif

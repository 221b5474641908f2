/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and small files: making, removing, writing whole. Thread: any. Blocks on the disk. */
#ifndef HF_BASE_FILE_H
#define HF_BASE_FILE_H

#include "base/error.h"

/* Makes the directory and its missing parents (mode 0700). Errors: DISK_FULL, IO, INVALID_ARGUMENT for "". */
hf_status file_make_dirs(const char *path, hf_error *error);
/* Removes a file or a whole tree; does not follow links; an absent path is HF_OK. */
hf_status file_remove_tree(const char *path, hf_error *error);
/* Removes the directory if it is empty; true when it is gone. */
bool file_remove_empty_dir(const char *path);
/* Writes `path`.tmp, syncs it when `durable`, renames it to `path`. Nothing is left behind on failure. */
hf_status file_write_whole(const char *path, const void *bytes, size_t length, bool durable, hf_error *error);
/* Reads a whole file of at most `most_bytes`; *out is owned by the caller (mem_free) and NUL-terminated behind *length.
 * Errors: `absent` when there is no such file, LIMIT when it is larger, IO. */
hf_status file_read_whole(const char *path, size_t most_bytes, hf_status absent, char **out, size_t *length,
                          hf_error *error);
/* Writes all bytes to the descriptor; handles short writes and EINTR. */
hf_status file_write_all(int fd, const void *bytes, size_t length, const char *path, hf_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow IPC streams: writing what a batch builder holds, reading record batches
 * out of mapped memory without copying, by projection.
 * Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
 * Thread: one at a time per object.
 */
#ifndef HF_ARROW_IPC_H
#define HF_ARROW_IPC_H

#include "arrow/batch.h"
#include "base/buf.h"

/* Appends the schema message. */
hf_status ipc_write_schema(const struct ArrowSchema *block_schema, buf *out, hf_error *error);
/* Appends the message of the builder's rows: header, then body, each buffer padded to 64 bytes. The message is also
 * written straight to `fd` when out is NULL (no copy of the body); *written tells its length. */
hf_status ipc_write_batch(const batch_builder *b, buf *out, int fd, const char *path, uint64_t *written, hf_error *error);
/* Appends the end-of-stream marker. */
void ipc_write_end(buf *out);

typedef struct ipc_decoder ipc_decoder;

/* A decoder for record batches of one schema. */
hf_status ipc_decoder_new(const struct ArrowSchema *block_schema, ipc_decoder **out, hf_error *error);
void ipc_decoder_free(ipc_decoder *d);
/* Decodes the schema message at `bytes`. *used tells its length. Errors: BLOCK_CORRUPT. */
hf_status ipc_read_schema(const void *bytes, size_t length, struct ArrowSchema *out, size_t *used, hf_error *error);
/*
 * Decodes the record batch message at `bytes`; the array points into that memory, which must outlive it (mapped file).
 * `columns` picks `n_columns` of the schema's (NULL: all); n_columns 0 gives a struct array without children whose length
 * is the batch's. `validate` checks every offset and buffer fully (data that did not come from our own sink, and data
 * whose checksum was not checked); else buffer bounds only. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY.
 */
hf_status ipc_read_batch(ipc_decoder *d, const void *bytes, size_t length, const size_t *columns, size_t n_columns,
                         bool validate, struct ArrowArray *out, size_t *used, hf_error *error);

/* Makes a window of rows on an array that stays owned by its parent: *out has its own child structs whose offsets are
 * moved (the parent's offset stays 0, true null counts); its release frees only those. */
hf_status arrow_slice(const struct ArrowArray *rows, int64_t first, int64_t count, struct ArrowArray *out, hf_error *error);

#endif

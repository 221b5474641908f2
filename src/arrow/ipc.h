/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow IPC streams: writing what a batch builder holds, compressed or not, reading
 * record batches out of mapped memory without copying, by projection, and cutting windows out of
 * them. Messages start and end at
 * multiples of 64 bytes, buffers too, so that a mapped one is aligned.
 * Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
 * Thread: one at a time per object.
 */
#ifndef HF_ARROW_IPC_H
#define HF_ARROW_IPC_H

#include "arrow/batch.h"
#include "arrow/dictionary.h"
#include "base/buf.h"

/* Appends the schema message. */
hf_status ipc_write_schema(const struct ArrowSchema *block_schema, buf *out, hf_error *error);
/* The same of a file some of whose columns have a dictionary: code_bytes[i] is 0, 1 or 2 for column i; the dictionary's id
 * is the column's number. */
hf_status ipc_write_coded_schema(const struct ArrowSchema *block_schema, const uint8_t *code_bytes, buf *out,
                                 hf_error *error);
/* Appends the end-of-stream marker. */
void ipc_write_end(buf *out);

/*
 * Sees the parts of a message that carry something, in their order: part 0 is the header, part i + 1 the buffers of
 * column i (of the schema), as they lie in the file; a compressed one in two pieces, the first its length of 8 bytes. For checksums: what a writer's sees, a reader's sees again, of the columns it picked.
 */
typedef void (*ipc_observe_fn)(void *context, size_t part, const void *bytes, size_t length);

/* How the buffers of a body are written; the header of each batch says so. */
typedef enum ipc_compression { IPC_COMPRESSION_NONE, IPC_COMPRESSION_LZ4 } ipc_compression;

/* The codes that a batch has in place of a column's values. */
typedef struct ipc_codes {
  const void *codes; /* one a row; NULL: the column has its values */
  size_t code_bytes;
} ipc_codes;

/* Where a message goes. */
typedef struct ipc_target {
  buf *out;               /* NULL: to `fd` */
  int fd;                 /* written from its position on, straight from the builder's buffers */
  const char *path;       /* of fd, for messages */
  ipc_observe_fn observe; /* or NULL */
  void *context;
  const ipc_codes *codes; /* one a column, or NULL */
  ipc_compression
      compression; /* of batches; dictionaries stay as they are: they are small, and merged when read */
} ipc_target;

/* Writes the message of the builder's rows: header, then body. *written tells its length. Errors: OUT_OF_MEMORY,
 * DISK_FULL, IO; after a failure part of it may have been written. */
hf_status ipc_write_batch_to(const batch_builder *b, const ipc_target *to, uint64_t *written,
                             hf_error *error);
/* The same without an observer. */
hf_status ipc_write_batch(const batch_builder *b, buf *out, int fd, const char *path, uint64_t *written,
                          hf_error *error);

/* Writes the entries from `first` on as a dictionary message of the column; with first > 0 they are added to those before.
 * Observed as part 0 and part 1. */
hf_status ipc_write_dictionary(const dictionary *d, uint32_t first, const ipc_target *to, uint64_t *written,
                               hf_error *error);

/* Bytes that are read from the front on. */
typedef struct ipc_cursor {
  const void *bytes;
  size_t left;
} ipc_cursor;

/* Reads the schema message at the cursor and moves it behind. *out is owned by the caller. Errors: BLOCK_CORRUPT,
 * UNSUPPORTED. */
hf_status ipc_read_schema(ipc_cursor *from, struct ArrowSchema *out, hf_error *error);

typedef struct ipc_decoder ipc_decoder;

/* Makes a decoder for record batches of one schema, of which `columns` picks n_columns in any order; NULL: all.
 * The schema is not kept. Errors: UNSUPPORTED (of what no block holds), INVALID_ARGUMENT (a column that is not there). */
hf_status ipc_decoder_new(const struct ArrowSchema *block_schema, const size_t *columns, size_t n_columns,
                          ipc_decoder **out, hf_error *error);
/* The same for batches some of whose columns have codes: code_bytes[i] is 0, 1 or 2 for column i of the schema; NULL: none.
 * An array of codes has no dictionary yet: it is the caller's to be set. Errors: BLOCK_CORRUPT (a column that allows no
 * codes). */
hf_status ipc_decoder_new_coded(const struct ArrowSchema *block_schema, const uint8_t *code_bytes,
                                const size_t *columns, size_t n_columns, ipc_decoder **out, hf_error *error);
void ipc_decoder_free(ipc_decoder *d);

typedef struct ipc_read_options {
  /* Checks every value that leads somewhere, and the text: data whose checksum was not checked. Else the sizes of the
   * buffers, and that they lie within the message. Columns that were not picked are never looked at. */
  bool validate;
  ipc_observe_fn observe; /* or NULL; called before anything is made of a buffer */
  void *observer;
  /* Called once, when the array and all its children have been released; not after a failure. NULL: the memory
   * outlives the array in another way. Thread: that which releases. */
  void (*on_release)(void *context);
  void *context;
} ipc_read_options;

/*
 * Decodes the record batch message at the cursor and moves it behind. The array points into that memory, or, where it is
 * compressed, into memory of its own (of the columns picked); it does not need the decoder, and each of its children may be moved out and released alone. Without columns it is a struct without
 * children whose length is the batch's. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY.
 */
hf_status ipc_read_batch(ipc_decoder *d, ipc_cursor *from, const ipc_read_options *options,
                         struct ArrowArray *out, hf_error *error);

/* Lets `observe` see the record batch message at the cursor and moves it behind, without making anything of it: of a
 * compressed one nothing is unpacked. Errors: BLOCK_CORRUPT (a header or buffers that do not hold). */
hf_status ipc_observe_batch(const ipc_decoder *d, ipc_cursor *from, ipc_observe_fn observe, void *context,
                            hf_error *error);

/* Decodes the dictionary message at the cursor and moves it behind. The decoder is one of a schema of one column, the
 * dictionary's own; *out is a struct of that column. Otherwise as ipc_read_batch. */
hf_status ipc_read_dictionary(ipc_decoder *d, ipc_cursor *from, const ipc_read_options *options,
                              struct ArrowArray *out, hf_error *error);

/*
 * A slicer cuts windows of rows out of arrays of a block, for a reader that wants a few at a time. It owns the memory of
 * the structs it hands out and uses it again, so that a cut allocates nothing.
 */
typedef struct slicer slicer;

/* `columns` picks n_columns of the block's schema, as for ipc_read_batch; NULL: all. The schema is not kept. */
hf_status slicer_new(const struct ArrowSchema *block_schema, const size_t *columns, size_t n_columns,
                     slicer **out, hf_error *error);
/* The same for arrays with codes; see ipc_decoder_new_coded. A window has its array's dictionary. */
hf_status slicer_new_coded(const struct ArrowSchema *block_schema, const uint8_t *code_bytes,
                           const size_t *columns, size_t n_columns, slicer **out, hf_error *error);
void slicer_free(slicer *s);
/*
 * Makes a window on rows [first, first + count) of an array of those columns, which stays the owner of the data. Buffers
 * are moved by whole bytes: when `first` is a multiple of 8, all offsets are 0 down to lists, whose elements are
 * shared. Null counts are true. *out is borrowed from the slicer until its next cut; its release does nothing.
 */
void slicer_cut(slicer *s, const struct ArrowArray *rows, int64_t first, int64_t count,
                struct ArrowArray *out);

#endif

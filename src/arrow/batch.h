/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building record batches out of pieces: rows of many small arrays (a DuckDB
 * chunk has at most 2048 rows), or those of one partition of each, are gathered
 * into one set of growing Arrow buffers, whose bytes are known at any time.
 *
 * Faces. A schema has three. The *engine's* is what DuckDB gives, the *client's*
 * what a user's Arrow reader gets or a user's stream brings, the *block* face
 * what lies in files and what the engine reads back:
 *
 *   engine, client in          block                              client out
 *   dictionary                 its values                         the same
 *   tin (engine: third field   w:16, metadata                     tin, ns
 *     is µs; client: ns)       holdfast.type=interval, µs
 *   decimal of 128 bits        32 bits to 9 digits, 64 to 18      128 bits
 *   string and binary views    32-bit offsets                     the same
 *   unions, dense or sparse    sparse, ids 0, 1, 2 …              the same
 *
 * Everything else, and all other metadata, stays as it is.
 * Thread: one at a time per builder.
 */
#ifndef HF_ARROW_BATCH_H
#define HF_ARROW_BATCH_H

#include "base/error.h"

/* Makes the block face of the engine's or a client's schema (a struct of columns); every field name is set. Owned by
 * *out. Errors: UNSUPPORTED names the format and the field. */
hf_status arrow_block_schema(const struct ArrowSchema *schema, struct ArrowSchema *out, hf_error *error);
/* Makes the client's face of a block's schema. `names` (n = children) replace the field names; NULL keeps them. */
hf_status arrow_client_schema(const struct ArrowSchema *block_schema, const char *const *names,
                              struct ArrowSchema *out, hf_error *error);
/* Tells whether arrays of one schema can be read as the other's: the same formats at all depths, whatever the names and
 * whichever the time zones. */
bool arrow_schemas_alike(const struct ArrowSchema *a, const struct ArrowSchema *b);
/* Turns one array of the block face into the client's: returns owned in *out; takes *in, also on failure. Buffers
 * that need no change are not copied. Errors: OVERFLOW when an interval does not fit into ns. */
hf_status arrow_client_array(const struct ArrowSchema *block_schema, struct ArrowArray *in,
                             struct ArrowArray *out, hf_error *error);

/* Checks an array of a client against its schema: counts, buffers, offsets, indices, UTF-8. Errors: INVALID_ARGUMENT
 * names what is wrong; UNSUPPORTED. Cost: reads all of it. */
hf_status arrow_validate(const struct ArrowSchema *schema, const struct ArrowArray *array, hf_error *error);

typedef struct batch_builder batch_builder;

/* Makes a builder of arrays of this schema, which is not kept. Values stay as they are (their face too), but for
 * dictionaries, views and dense unions, which no batch holds. Errors: UNSUPPORTED, OUT_OF_MEMORY. */
hf_status batch_builder_new(const struct ArrowSchema *schema, batch_builder **out, hf_error *error);

/* Whose arrays come in. */
typedef enum batch_source { BATCH_OF_ENGINE, BATCH_OF_CLIENT, BATCH_AS_IS } batch_source;

/* Makes a builder of block batches (see arrow_block_schema) out of arrays of this schema: the engine's, a client's, or a
 * block's. Dictionary columns may also come as plain values. */
hf_status batch_builder_new_for(const struct ArrowSchema *schema, batch_source source, batch_builder **out,
                                hf_error *error);
/* Makes another builder of the same arrays. It shares memory with the model: both stay with one thread. */
hf_status batch_builder_new_like(const batch_builder *model, batch_builder **out, hf_error *error);
void batch_builder_free(batch_builder *b);
/*
 * Appends rows [first, first + count) of a struct array. On any error nothing was appended.
 * Errors: OUT_OF_MEMORY; INVALID_ARGUMENT (an index, id or decimal out of range); LIMIT when a column of 32-bit
 * offsets would pass 2 GiB: then the caller flushes first (one row larger than that stays LIMIT).
 */
hf_status batch_builder_append(batch_builder *b, const struct ArrowArray *rows, int64_t first, int64_t count,
                               hf_error *error);
/* The same for the rows whose numbers are given (a selection). */
hf_status batch_builder_append_rows(batch_builder *b, const struct ArrowArray *rows, const uint32_t *numbers,
                                    size_t count, hf_error *error);
/* About how many bytes rows [first, first + count) would take. Cost: O(fields). */
uint64_t batch_builder_cost(const batch_builder *b, const struct ArrowArray *rows, int64_t first,
                            int64_t count);
int64_t batch_builder_rows(const batch_builder *b);
/* The buffers of a column as they are now, borrowed until the next change. */
typedef struct batch_column {
  uint64_t rows, nulls;
  const uint8_t *validity; /* NULL: no NULLs */
  const void *data;        /* values, or 32-bit offsets: rows + 1; NULL without rows */
  const uint8_t *bytes;    /* behind offsets */
  size_t width;            /* bytes of a value of one size */
  bool is_fixed, is_bytes; /* values of one size; 32-bit offsets and bytes; neither: nothing is given */
} batch_column;
batch_column batch_builder_column(const batch_builder *b, size_t column);
/* Bytes of memory that it occupies, slack included. O(1). */
size_t batch_builder_bytes(const batch_builder *b);
/* Bytes that the rows take. Cost: O(fields). */
size_t batch_builder_data_bytes(const batch_builder *b);
/* Empties it; keeps at most `keep_bytes` of memory for the next batch. */
void batch_builder_clear(batch_builder *b, size_t keep_bytes);

#endif

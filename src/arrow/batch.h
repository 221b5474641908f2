/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building record batches out of pieces: rows of many small arrays (a DuckDB
 * chunk has at most 2048 rows), or those of one partition of each, are gathered
 * into one set of growing Arrow buffers, whose bytes are known at any time.
 *
 * Faces. A schema has two: the *block* face is what lies in files (dictionaries
 * unfolded to their values; INTERVAL as its 16 bytes, months, days and µs in an
 * Arrow "w:16" with metadata holdfast.type=interval, since µs beyond 292 years do
 * not fit Arrow's ns), the *client* face is what a user's Arrow reader gets
 * (INTERVAL as month-day-nano).
 * Thread: one at a time per builder.
 */
#ifndef HF_ARROW_BATCH_H
#define HF_ARROW_BATCH_H

#include "base/error.h"

/* Makes the block face of an engine's Arrow schema (a struct of columns): dictionaries become their value type,
 * month-day-nano fields become w:16 (the engine's arrays already hold µs there), every field name is set. Owned by *out. */
hf_status arrow_block_schema(const struct ArrowSchema *engine_schema, struct ArrowSchema *out, hf_error *error);
/* Turns one array of the block face into the client face: returns owned in *out; takes *in. Errors: OVERFLOW when
 * an interval does not fit. `names` (n = children) replace the field names; NULL keeps them. */
hf_status arrow_client_schema(const struct ArrowSchema *block_schema, const char *const *names, struct ArrowSchema *out,
                              hf_error *error);
hf_status arrow_client_array(const struct ArrowSchema *block_schema, struct ArrowArray *in, struct ArrowArray *out,
                             hf_error *error);

typedef struct batch_builder batch_builder;

/* `block_schema` is borrowed for the builder's life; arrays given to it may be of the engine's or the block face. */
hf_status batch_builder_new(const struct ArrowSchema *block_schema, batch_builder **out, hf_error *error);
void batch_builder_free(batch_builder *b);
/*
 * Appends rows [first, first + count) of a struct array.
 * Errors: OUT_OF_MEMORY; UNSUPPORTED; LIMIT when a column of 32-bit offsets would pass 2 GiB: then nothing was
 * appended and the caller flushes first (one row larger than that stays LIMIT). After OUT_OF_MEMORY the builder
 * must be reset.
 */
hf_status batch_builder_append(batch_builder *b, const struct ArrowArray *rows, int64_t first, int64_t count, hf_error *error);
/* The same for the rows whose numbers are given (a selection). */
hf_status batch_builder_append_rows(batch_builder *b, const struct ArrowArray *rows, const uint32_t *numbers, size_t count,
                                    hf_error *error);
int64_t batch_builder_rows(const batch_builder *b);
/* Bytes of memory that the buffers occupy. O(1). */
size_t batch_builder_bytes(const batch_builder *b);
/* Empties it; keeps at most `keep_bytes` of memory for the next batch. */
void batch_builder_clear(batch_builder *b, size_t keep_bytes);

#endif

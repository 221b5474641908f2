/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns whose values repeat: a growing dictionary that turns the values of a
 * builder's column into codes of one or two bytes while a batch is written, and
 * what a reader makes of codes and dictionary. Only columns of the root, of bytes
 * with 32-bit offsets or of fixed values of 4 or 8 bytes. A NULL has a validity
 * and, as its code, 0.
 * Thread: one at a time per object; what was merged is immutable.
 */
#ifndef HF_ARROW_DICTIONARY_H
#define HF_ARROW_DICTIONARY_H

#include "arrow/batch.h"

/* Most entries of codes of one and of two bytes: one number is left for NULL. */
enum { DICTIONARY_MOST_NARROW = 255, DICTIONARY_MOST_WIDE = 65535 };
/* Most bytes of the values of one dictionary, with their offsets: what is larger repeats too little to be worth it. */
#define DICTIONARY_MOST_BYTES ((size_t)1 << 20)

typedef struct dictionary dictionary;

/* Says of the rows that a builder holds how many bytes a code of the column should have: 0 when it should have none, since
 * its type allows none, there are few rows, or they repeat too little. Cost: as of dictionary_encode. */
hf_status dictionary_judge(const batch_builder *b, size_t column, size_t *code_bytes, hf_error *error);

/* Makes an empty one for a column of such builders. code_bytes: 1 or 2. */
hf_status dictionary_new(const batch_builder *b, size_t column, size_t code_bytes, dictionary **out,
                         hf_error *error);
void dictionary_free(dictionary *d);
/* Bytes of memory that it occupies. O(1). */
size_t dictionary_bytes(const dictionary *d);
size_t dictionary_code_bytes(const dictionary *d);
uint32_t dictionary_entries(const dictionary *d);
/* The bytes of an entry, borrowed until the next change. */
const void *dictionary_value(const dictionary *d, uint32_t entry, size_t *length);

/*
 * Gives the codes of all rows of the builder's column; new values become entries. `codes` has room for the builder's rows.
 * *is_full: the values do not fit; entries may have been added, the codes mean nothing.
 */
hf_status dictionary_encode(dictionary *d, const batch_builder *b, void *codes, bool *is_full,
                            hf_error *error);

/*
 * Makes one array of a dictionary's pieces, arrays of the column's own layout, in their order, and a NULL entry behind
 * them. *out is owned by the caller. `field` is the column's. Errors: OUT_OF_MEMORY, BLOCK_CORRUPT (more than codes of
 * code_bytes can tell, offsets that lead nowhere).
 */
hf_status dictionary_merge(const struct ArrowSchema *field, const struct ArrowArray *const *pieces,
                           size_t n_pieces, size_t code_bytes, struct ArrowArray *out, hf_error *error);

/*
 * Turns an array of codes, whose dictionary was made by dictionary_merge, into plain values; takes *array, also on
 * failure. Errors: BLOCK_CORRUPT (a code of no entry), OUT_OF_MEMORY, LIMIT (2 GiB).
 */
hf_status dictionary_unfold(const struct ArrowSchema *field, struct ArrowArray *array, size_t code_bytes,
                            hf_error *error);

#endif

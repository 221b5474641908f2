/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The physical shape of an Arrow schema as a tree: what the code that copies,
 * cuts, checks and writes arrays needs to know of a type, and nothing else.
 * Kinds from LAYOUT_DICTIONARY on occur in arrays that come in (of the engine or
 * of a client) and never in blocks, but for columns of codes, which
 * layout_code_columns makes. Internal to src/arrow.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
 * Thread: immutable once made.
 */
#ifndef HF_ARROW_LAYOUT_H
#define HF_ARROW_LAYOUT_H

#include "base/arena.h"

/* Deepest nesting of a type that is taken: our own recursion, and DuckDB's, follows it. */
#define LAYOUT_DEEPEST 64
/* Most fields in all of a schema: each costs memory in every builder. */
#define LAYOUT_MOST_FIELDS 100000

typedef enum layout_kind {
  LAYOUT_NULL,        /* no buffers */
  LAYOUT_FIXED,       /* validity, values of `width` bytes */
  LAYOUT_BITS,        /* validity, values of one bit */
  LAYOUT_BYTES,       /* validity, offsets of `width` bytes, bytes */
  LAYOUT_LIST,        /* validity, offsets of `width` bytes; one child (maps too) */
  LAYOUT_FIXED_LIST,  /* validity; one child with `width` elements a row */
  LAYOUT_STRUCT,      /* validity; children as long as itself */
  LAYOUT_UNION,       /* type ids (in blocks: child numbers); children as long as itself */
  LAYOUT_DICTIONARY,  /* validity, indices of `width` bytes; the only child is the layout of the values */
  LAYOUT_DENSE_UNION, /* type ids, 32-bit offsets; children of any length */
  LAYOUT_VIEW         /* validity, 16-byte views, buffers, their sizes */
} layout_kind;

/* How the values of a LAYOUT_FIXED change on their way into a block. */
typedef enum layout_change {
  LAYOUT_SAME,
  LAYOUT_NARROW,  /* a decimal of `source_width` bytes into one of `width` */
  LAYOUT_INTERVAL /* month-day-nano; its third field is µs already, or ns (of a client) */
} layout_change;

typedef struct layout {
  layout_kind kind;
  layout_change change;
  size_t width;
  size_t source_width;        /* FIXED: bytes of a value in an incoming array */
  bool is_signed;             /* DICTIONARY: of the indices */
  bool is_text;               /* BYTES, VIEW: must be UTF-8 */
  const uint8_t *child_of_id; /* unions: 128 child numbers by type id, 255 for none */
  size_t n_children;
  struct layout *children;
} layout;

enum { LAYOUT_NO_CHILD = 255 };

/* Reads the layout of a schema; a root must be a struct. Errors: UNSUPPORTED names the format and the field. */
hf_status layout_of_schema(const struct ArrowSchema *schema, arena *a, layout *out, hf_error *error);
/* Buffers that an array of a block has. */
size_t layout_buffers(const layout *l);
/* Tells whether arrays of this layout may lie in a block as they are. */
bool layout_is_of_block(const layout *l);
/* Makes columns of codes out of those of a block's root whose code_bytes is not 0; the values' layouts become their
 * children. Errors: BLOCK_CORRUPT (a column that allows no codes). */
hf_status layout_code_columns(layout *root, const uint8_t *code_bytes, arena *a, hf_error *error);
/* Tells whether a column of this layout may have a dictionary in blocks. */
bool layout_allows_codes(const layout *l);
/* Children that an array of this layout has. */
static inline size_t layout_array_children(const layout *l) {
  return l->kind == LAYOUT_DICTIONARY ? 0 : l->n_children;
}
/* Tells whether a format is a decimal; gives its digits and bits. */
bool layout_decimal(const char *format, unsigned *precision, unsigned *scale, unsigned *bits);
/* How a block marks an INTERVAL, in the metadata of its field. */
#define LAYOUT_TYPE_KEY "holdfast.type"
#define LAYOUT_TYPE_INTERVAL "interval"
bool layout_is_interval(const struct ArrowSchema *field);

/* ------------------------------------------------------------- validate.c */

/*
 * Checks an array that others made: counts, lengths, buffers that must be there, offsets, type ids and (of plain text
 * columns) UTF-8, at all depths. What a dictionary, a view or a dense union refers to is checked when it is gathered.
 * Returns HF_OK or `code`.
 */
hf_status validate_array(const layout *l, const struct ArrowArray *array, hf_status code, hf_error *error);
/* Tells whether the bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool validate_text(const uint8_t *bytes, size_t length);

#endif

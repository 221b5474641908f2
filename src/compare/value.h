/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value of an Arrow array, whatever its layout: hash, order, nearness, text.
 * Independent of the code in src/arrow that moves arrays, which it checks. The
 * functions on two values expect the same logical type on both sides. Internal to
 * src/compare.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html
 * Thread: any; only scales change, until all was measured.
 */
#ifndef HF_COMPARE_VALUE_H
#define HF_COMPARE_VALUE_H

#include "arrow/type.h"

typedef enum value_kind {
  VALUE_NULL,
  VALUE_BITS,    /* `width` 0: one bit; 1: a byte */
  VALUE_INTEGER, /* `width` bytes */
  VALUE_FLOAT,
  VALUE_DOUBLE,
  VALUE_DECIMAL, /* `width` bytes, up to 16 */
  VALUE_FIXED,   /* `width` bytes of no further meaning */
  VALUE_BYTES,   /* offsets of `width` bytes */
  VALUE_VIEW,
  VALUE_LIST, /* offsets of `width` bytes; maps too */
  VALUE_FIXED_LIST,
  VALUE_STRUCT,
  VALUE_UNION, /* sparse */
  VALUE_DENSE_UNION,
  VALUE_DICTIONARY /* indices of `width` bytes; the only child is that of the values */
} value_kind;

typedef struct value_shape {
  value_kind kind;
  size_t width;
  bool is_signed;
  char unit;                  /* of dates, times and timestamps, as the format has it; else 0 */
  bool has_floats;            /* at any depth */
  double *scale;              /* of floats: the largest finite magnitude that was measured; else NULL */
  const data_type *type;      /* for the text; NULL of a map's entries */
  const uint8_t *child_of_id; /* unions: 128 child numbers */
  size_t n_children;
  struct value_shape *children;
} value_shape;

/* A row counts from the array's own first one. */
typedef struct value {
  const value_shape *shape;
  const struct ArrowArray *array;
  int64_t row;
} value;

/* Makes the shape of a field; `type` is what it was read as. Errors: UNSUPPORTED, OUT_OF_MEMORY. */
hf_status value_shape_of(const struct ArrowSchema *field, const data_type *type, arena *a, value_shape *out,
                         hf_error *error);
/* Tells whether numbers of both shapes mean the same: of equal types, only units can differ. */
bool value_shapes_alike(const value_shape *a, const value_shape *b);
/* Raises the scales of the value's shape by its floats. */
void value_measure(value v);
/* Gives both the larger scale of the two, at all depths. */
void value_share_scales(const value_shape *a, const value_shape *b);

bool value_is_null(value v);
/* Floats do not count, but that they are there. */
uint64_t value_hash(value v, uint64_t seed);
/* An order of all values, in which floats do not count. */
int value_order(value a, value b);
/* Equal, floats within their tolerance. */
bool value_is_near(value a, value b);

/* One float among the values of a row. */
typedef struct value_float {
  double number;
  const value_shape *shape;
} value_float;

/* Tells whether two floats are within the tolerance; `shape` is that of either. */
bool value_floats_near(double a, double b, const value_shape *shape);
/* NaN is the greatest, and equals itself. */
int value_floats_order(double a, double b);
/* Calls `each` for every float of the value, in the same order for values that value_order calls equal. */
void value_each_float(value v, void (*each)(void *context, value_float found), void *context);

/* Appends a value as text for people. Long ones are cut. */
void value_text(value v, buf *out);

/* --------------------------------------------------------- reading, for value_*.c */

/* A dictionary's value in place of its index; others as they are. */
value value_resolved(value v);
/* The value's bytes: of BYTES, VIEW and those of fixed width. */
const uint8_t *value_bytes(value v, size_t *length);
/* Of INTEGER: sign-extended. */
int64_t value_integer(value v);
double value_number(value v);
bool value_bit(value v);
/* Elements of a list. */
int64_t value_length(value v);
value value_element(value v, int64_t i);
/* Fields of a struct; the one member of a union, whose number *member tells. */
value value_field(value v, size_t i);
value value_member(value v, size_t *member);
/* A decimal of any width as 128 bits. */
typedef struct value_wide {
  int64_t high;
  uint64_t low;
} value_wide;
value_wide value_decimal(value v);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of values: 16 bytes that stand in the order of the values of a type, as DuckDB
 * compares them. Numbers have keys of their own; texts share one when their first 16
 * bytes are the same, so of a text only "not less" and "not more" are known.
 * Thread: any.
 */
#ifndef HF_EXCHANGE_RANGE_H
#define HF_EXCHANGE_RANGE_H

#include "arrow/type.h"

typedef struct range_key {
  uint64_t high, low;
} range_key;

/* How values of a type become keys. */
typedef enum range_kind {
  RANGE_NONE, /* their order is not kept: nested, ENUM, INTERVAL … */
  RANGE_INT32,
  RANGE_INT64,
  RANGE_UINT32,
  RANGE_UINT64,
  RANGE_FLOAT,
  RANGE_DOUBLE,
  RANGE_BYTES
} range_kind;

range_kind range_kind_of(const data_type *type);
/* Bytes of a value in a buffer of values; 0: not of one size. */
size_t range_kind_bytes(range_kind kind);
/* Tells whether its values are whole numbers: RANGE_INT32 … RANGE_UINT64. */
bool range_kind_is_integer(range_kind kind);

static inline int range_key_compare(range_key a, range_key b) {
  if (a.high != b.high) {
    return a.high < b.high ? -1 : 1;
  }
  return a.low < b.low ? -1 : a.low > b.low;
}

/* Keys. Floats: NaN is the largest, −0 equals 0, as in DuckDB. */
range_key range_key_signed(int64_t value);
range_key range_key_unsigned(uint64_t value);
range_key range_key_double(double value);
range_key range_key_bytes(const void *bytes, size_t length);
/* The key of the i-th value of a buffer of values that are not bytes. */
range_key range_key_at(range_kind kind, const void *values, size_t i);

/* The value of a key of whole numbers (RANGE_INT32 … RANGE_UINT64), widened to 64 bits with its sign. */
uint64_t range_key_integer(range_kind kind, range_key key);

enum { RANGE_VALUES_AT_MOST = 64 };

/* What rows have in a column. */
typedef struct range_summary {
  uint32_t column;
  uint64_t rows;                          /* whose value is not NULL */
  range_key least, most;                  /* of these; rows > 0 */
  uint32_t n_values;                      /* rows > 0 and none: more than are listed */
  range_key values[RANGE_VALUES_AT_MOST]; /* distinct, ascending */
} range_summary;

/* Adds what other rows have in the same column. */
void range_summary_add(range_summary *to, const range_summary *from);

/* A condition on a column that a row must meet, or it is not wanted. A NULL meets none but RANGE_IS_NULL. */
typedef enum range_op {
  RANGE_EQUAL,
  RANGE_LESS, /* or equal */
  RANGE_MORE, /* or equal */
  RANGE_IS_NULL,
  RANGE_IS_NOT_NULL,
  RANGE_OP_COUNT
} range_op;

typedef struct range_filter {
  uint32_t column;
  range_op op;
  range_key key; /* of the first three */
} range_filter;

#endif

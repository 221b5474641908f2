/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash, order and nearness of values, by walking both sides together. Reading is
 * in value_read.c, text in value_text.c.
 * Thread: any.
 */
#include "value.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#define DOUBLE_RELATIVE 1e-9
#define FLOAT_RELATIVE 1e-5
#define SCALE_PART 1e-12

/* --------------------------------------------------------------------- floats */

int value_floats_order(double a, double b) {
  if (isnan(a) || isnan(b)) {
    return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
  }
  return (a > b) - (a < b);
}

bool value_floats_near(double a, double b, const value_shape *shape) {
  if (value_floats_order(a, b) == 0) {
    return true;
  }
  if (!isfinite(a) || !isfinite(b)) {
    return false;
  }
  double relative = shape->kind == VALUE_FLOAT ? FLOAT_RELATIVE : DOUBLE_RELATIVE;
  double most = fmax(fabs(a), fabs(b));
  return fabs(a / 2 - b / 2) * 2 <= relative * most + SCALE_PART * *shape->scale;
}

void value_each_float(value v, void (*each)(void *context, value_float found), void *context) {
  v = value_resolved(v);
  if (!v.shape->has_floats || value_is_null(v)) {
    return;
  }
  size_t member = 0;
  switch (v.shape->kind) {
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
      each(context, (value_float){value_number(v), v.shape});
      break;
    case VALUE_STRUCT:
      for (size_t i = 0; i < v.shape->n_children; i++) {
        value_each_float(value_field(v, i), each, context);
      }
      break;
    case VALUE_UNION:
    case VALUE_DENSE_UNION:
      value_each_float(value_member(v, &member), each, context);
      break;
    default:
      for (int64_t i = 0, n = value_length(v); i < n; i++) {
        value_each_float(value_element(v, i), each, context);
      }
  }
}

/* ----------------------------------------------------------------------- hash */

static uint64_t hash_number(uint64_t number, uint64_t seed) {
  return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

static uint64_t hash_nested(value v, uint64_t seed) {
  if (v.shape->kind == VALUE_STRUCT) {
    for (size_t i = 0; i < v.shape->n_children; i++) {
      seed = value_hash(value_field(v, i), seed);
    }
    return seed;
  }
  if (v.shape->kind == VALUE_UNION || v.shape->kind == VALUE_DENSE_UNION) {
    size_t member = 0;
    value inner = value_member(v, &member);
    return value_hash(inner, hash_number(member, seed));
  }
  int64_t n = value_length(v);
  seed = hash_number((uint64_t)n, seed);
  for (int64_t i = 0; i < n; i++) {
    seed = value_hash(value_element(v, i), seed);
  }
  return seed;
}

uint64_t value_hash(value v, uint64_t seed) {
  enum { HASH_NULL = 1, HASH_THERE = 2 };
  v = value_resolved(v);
  if (value_is_null(v)) {
    return hash_number(HASH_NULL, seed);
  }
  seed = hash_number(HASH_THERE, seed);
  size_t length = 0;
  switch (v.shape->kind) {
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
      return seed;
    case VALUE_BITS:
      return hash_number(value_bit(v) ? 1 : 0, seed);
    case VALUE_INTEGER:
      return hash_number((uint64_t)value_integer(v), seed);
    case VALUE_DECIMAL: {
      value_wide wide = value_decimal(v);
      return hash_number((uint64_t)wide.high, hash_number(wide.low, seed));
    }
    case VALUE_FIXED:
    case VALUE_BYTES:
    case VALUE_VIEW: {
      const uint8_t *bytes = value_bytes(v, &length);
      return XXH3_64bits_withSeed(bytes, length, seed);
    }
    default:
      return hash_nested(v, seed);
  }
}

/* -------------------------------------------------------------- two at a time */

/* What two floats are to each other: 0 equal. */
typedef int (*float_order)(value a, value b);

static int ignore_floats(value a, value b) {
  (void)a;
  (void)b;
  return 0;
}

static int near_floats(value a, value b) {
  return value_floats_near(value_number(a), value_number(b), a.shape) ? 0 : 1;
}

static int order_bytes(value a, value b) {
  size_t n_a = 0, n_b = 0;
  const uint8_t *bytes_a = value_bytes(a, &n_a), *bytes_b = value_bytes(b, &n_b);
  int order = memcmp(bytes_a, bytes_b, n_a < n_b ? n_a : n_b);
  return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int order_integers(value a, value b) {
  int64_t x = value_integer(a), y = value_integer(b);
  return (x > y) - (x < y);
}

static int order_decimals(value a, value b) {
  value_wide x = value_decimal(a), y = value_decimal(b);
  return x.high != y.high ? (x.high > y.high) - (x.high < y.high) : (x.low > y.low) - (x.low < y.low);
}

static int walk(value a, value b, float_order floats);

static int walk_list(value a, value b, float_order floats) {
  int64_t n_a = value_length(a), n_b = value_length(b);
  int order = (n_a > n_b) - (n_a < n_b);
  for (int64_t i = 0; order == 0 && i < n_a; i++) {
    order = walk(value_element(a, i), value_element(b, i), floats);
  }
  return order;
}

static int walk_struct(value a, value b, float_order floats) {
  int order = 0;
  for (size_t i = 0; order == 0 && i < a.shape->n_children; i++) {
    order = walk(value_field(a, i), value_field(b, i), floats);
  }
  return order;
}

static int walk_union(value a, value b, float_order floats) {
  size_t x = 0, y = 0;
  value inner_a = value_member(a, &x), inner_b = value_member(b, &y);
  return x != y ? (x > y) - (x < y) : walk(inner_a, inner_b, floats);
}

/* The kinds of both sides are alike: their types are equal. */
static int walk(value a, value b, float_order floats) {
  a = value_resolved(a);
  b = value_resolved(b);
  bool is_null = value_is_null(a);
  if (is_null || value_is_null(b)) {
    return (is_null ? 1 : 0) - (value_is_null(b) ? 1 : 0);
  }
  switch (a.shape->kind) {
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
      return floats(a, b);
    case VALUE_BITS:
      return (value_bit(a) ? 1 : 0) - (value_bit(b) ? 1 : 0);
    case VALUE_INTEGER:
      return order_integers(a, b);
    case VALUE_DECIMAL:
      return order_decimals(a, b);
    case VALUE_FIXED:
    case VALUE_BYTES:
    case VALUE_VIEW:
      return order_bytes(a, b);
    case VALUE_STRUCT:
      return walk_struct(a, b, floats);
    case VALUE_UNION:
    case VALUE_DENSE_UNION:
      return walk_union(a, b, floats);
    default:
      return walk_list(a, b, floats);
  }
}

int value_order(value a, value b) {
  return walk(a, b, ignore_floats);
}

bool value_is_near(value a, value b) {
  return walk(a, b, near_floats) == 0;
}

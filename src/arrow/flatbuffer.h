/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading flatbuffers with every position checked against the bytes that are
 * there: tables, their fields, vectors of structs. Nothing is assumed to be aligned.
 * Any input gives an answer or false, never a read outside. Internal to src/arrow.
 * Source: https://flatbuffers.dev/internals
 * Thread: any.
 */
#ifndef HF_ARROW_FLATBUFFER_H
#define HF_ARROW_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct flat_table {
  const uint8_t *bytes; /* of the whole buffer */
  size_t length;
  size_t at, vtable;
  uint16_t table_bytes, vtable_bytes;
} flat_table;

static inline uint32_t flat_u32_at(const uint8_t *bytes, size_t at) {
  uint32_t value;
  memcpy(&value, bytes + at, sizeof value);
  return value;
}

static inline uint16_t flat_u16_at(const uint8_t *bytes, size_t at) {
  uint16_t value;
  memcpy(&value, bytes + at, sizeof value);
  return value;
}

static inline bool flat_fits(size_t length, size_t at, size_t bytes) {
  return at <= length && bytes <= length - at;
}

static inline bool flat_table_at(const uint8_t *bytes, size_t length, size_t at, flat_table *out) {
  if (!flat_fits(length, at, 4)) {
    return false;
  }
  int64_t vtable = (int64_t)at - (int32_t)flat_u32_at(bytes, at);
  if (vtable < 0 || !flat_fits(length, (size_t)vtable, 4)) {
    return false;
  }
  *out = (flat_table){.bytes = bytes, .length = length, .at = at, .vtable = (size_t)vtable};
  out->vtable_bytes = flat_u16_at(bytes, out->vtable);
  out->table_bytes = flat_u16_at(bytes, out->vtable + 2);
  return out->vtable_bytes >= 4 && flat_fits(length, out->vtable, out->vtable_bytes) &&
         flat_fits(length, at, out->table_bytes);
}

/* Finds the root table. */
static inline bool flat_root(const uint8_t *bytes, size_t length, flat_table *out) {
  return length >= 4 && flat_table_at(bytes, length, flat_u32_at(bytes, 0), out);
}

/* The distance of a field from the table's start; 0: absent. */
static inline size_t flat_field_distance(const flat_table *t, unsigned field) {
  size_t entry = 4 + (size_t)field * 2;
  return entry + 2 <= t->vtable_bytes ? flat_u16_at(t->bytes, t->vtable + entry) : 0;
}

static inline bool flat_has(const flat_table *t, unsigned field) {
  return flat_field_distance(t, field) != 0;
}

/* Copies a scalar of `width` bytes; one that is absent leaves *out as it is. */
static inline bool flat_scalar(const flat_table *t, unsigned field, void *out, size_t width) {
  size_t distance = flat_field_distance(t, field);
  if (distance == 0) {
    return true;
  }
  if (!flat_fits(t->table_bytes, distance, width)) {
    return false;
  }
  memcpy(out, t->bytes + t->at + distance, width);
  return true;
}

/* Where the position in a field leads to. */
static inline bool flat_follow(const flat_table *t, unsigned field, size_t *out) {
  uint32_t distance = 0;
  if (!flat_scalar(t, field, &distance, sizeof distance) || distance == 0) {
    return false;
  }
  *out = t->at + flat_field_distance(t, field) + distance;
  return *out <= t->length;
}

/* Finds a table in a field; false when it is absent. */
static inline bool flat_child(const flat_table *t, unsigned field, flat_table *out) {
  size_t at;
  return flat_follow(t, field, &at) && flat_table_at(t->bytes, t->length, at, out);
}

/* Finds a vector of structs of `width` bytes; an absent one is empty. */
static inline bool flat_vector(const flat_table *t, unsigned field, size_t width, const uint8_t **elements,
                               size_t *count) {
  size_t at;
  *elements = NULL;
  *count = 0;
  if (!flat_has(t, field)) {
    return true;
  }
  if (!flat_follow(t, field, &at) || !flat_fits(t->length, at, 4)) {
    return false;
  }
  *count = flat_u32_at(t->bytes, at);
  *elements = t->bytes + at + 4;
  return *count <= (t->length - at - 4) / width;
}

/* Finds the i-th table of a vector of tables, of which flat_vector(…, 4, …) gave the elements. */
static inline bool flat_element(const flat_table *t, const uint8_t *elements, size_t i, flat_table *out) {
  size_t at = (size_t)(elements - t->bytes) + i * 4;
  size_t distance = flat_u32_at(t->bytes, at);
  return distance != 0 && flat_table_at(t->bytes, t->length, at + distance, out);
}

#endif

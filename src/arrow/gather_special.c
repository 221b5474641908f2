/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending what blocks do not have: dictionaries become their values, views
 * plain bytes, dense unions sparse ones; decimals get narrower, a client's
 * intervals lose their ns. References into an array are checked here, since
 * each is followed only once.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"
#include "base/mem.h"

#include <string.h>

static hf_status out_of_range(gather *g, const char *what, uint64_t found, uint64_t expected) {
  return error_set(g->error, HF_E_INVALID_ARGUMENT, "%s is out of range in an Arrow array: %llu, of %llu",
                   what, (unsigned long long)found, (unsigned long long)expected);
}

static uint32_t *numbers_new(gather *g, uint64_t count) {
  uint32_t *numbers = count > SIZE_MAX / sizeof *numbers ? NULL : mem_alloc(count * sizeof *numbers);
  if (numbers == NULL) {
    error_set(g->error, HF_E_OUT_OF_MEMORY, "no memory for %llu row numbers", (unsigned long long)count);
  }
  return numbers;
}

/* A negative index comes out larger than any length. */
static uint64_t index_at(const layout *l, const uint8_t *indices, uint64_t row) {
  uint64_t value = 0;
  memcpy(&value, indices + row * l->width, l->width);
  if (l->is_signed && l->width < 8 && (value >> (l->width * 8 - 1)) != 0) {
    return UINT64_MAX;
  }
  return value;
}

hf_status gather_dictionary(gather *g, builder_node *node, const gather_part *part) {
  const struct ArrowArray *entries = part->array->dictionary;
  const uint8_t *bitmap = gather_bitmap(part->array);
  const uint8_t *indices = part->array->buffers[1];
  uint64_t length = (uint64_t)entries->length;
  uint32_t *numbers = numbers_new(g, part->count);
  if (numbers == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  gather_part values = {
      .layout = part->layout->children, .array = entries, .numbers = numbers, .count = part->count};
  hf_status status = HF_OK;
  for (uint64_t i = 0; i < part->count && status == HF_OK; i++) {
    uint64_t row = part_row(part, i);
    if (row == GATHER_NO_ROW || (bitmap != NULL && !bits_get(bitmap, row))) {
      numbers[i] = GATHER_NULL;
      values.has_null = true;
      continue;
    }
    uint64_t index = index_at(part->layout, indices, row);
    if (index >= length || index >= GATHER_NULL) {
      status = out_of_range(g, "a dictionary index", index, length);
    }
    numbers[i] = (uint32_t)index;
  }
  if (status == HF_OK) {
    status = gather_append(g, node, &values);
  }
  mem_free(numbers);
  return status;
}

/* The bytes of a view. Source: https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout */
static hf_status view_at(gather *g, const gather_part *part, uint64_t row, const uint8_t **bytes,
                         uint64_t *length) {
  enum { VIEW_BYTES = 16, INLINE_MOST = 12 };
  const struct ArrowArray *array = part->array;
  const uint8_t *view = (const uint8_t *)array->buffers[1] + row * VIEW_BYTES;
  int32_t fields[4]; /* length, prefix, buffer, offset */
  memcpy(fields, view, sizeof fields);
  *length = 0;
  if (fields[0] < 0) {
    return out_of_range(g, "the length of a view", (uint64_t)(uint32_t)fields[0], INT32_MAX);
  }
  *length = (uint64_t)fields[0];
  if (fields[0] <= INLINE_MOST) {
    *bytes = view + 4;
    return HF_OK;
  }
  int64_t n_variadic = array->n_buffers - 3;
  if (fields[2] < 0 || fields[2] >= n_variadic) {
    return out_of_range(g, "the buffer of a view", (uint64_t)(uint32_t)fields[2], (uint64_t)n_variadic);
  }
  int64_t size;
  memcpy(&size, (const uint8_t *)array->buffers[array->n_buffers - 1] + (size_t)fields[2] * sizeof size,
         sizeof size);
  if (fields[3] < 0 || (int64_t)fields[3] + fields[0] > size) {
    return out_of_range(g, "the offset of a view", (uint64_t)(uint32_t)fields[3], (uint64_t)size);
  }
  *bytes = (const uint8_t *)array->buffers[2 + fields[2]] + fields[3];
  return HF_OK;
}

hf_status gather_view(gather *g, builder_node *node, const gather_part *part) {
  const uint8_t *bitmap = gather_bitmap(part->array);
  uint8_t *to;
  HF_TRY(gather_offsets(g, node, part->count, node->values.length, 0, &to));
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t row = part_row(part, i);
    const uint8_t *bytes = NULL;
    uint64_t length = 0;
    if (row != GATHER_NO_ROW && (bitmap == NULL || bits_get(bitmap, row))) {
      HF_TRY(view_at(g, part, row, &bytes, &length));
    }
    if (length > INT32_MAX - node->values.length) {
      return error_set(g->error, HF_E_LIMIT, "a column passes 2 GiB in one batch: %llu bytes",
                       (unsigned long long)node->values.length);
    }
    if (length > 0 && part->layout->is_text && g->builder->source == BATCH_OF_CLIENT &&
        !validate_text(bytes, length)) {
      return error_set(g->error, HF_E_INVALID_ARGUMENT, "a text column holds bytes that are not UTF-8");
    }
    uint8_t *at = gather_reserve(g, &node->values, length);
    if (at == NULL) {
      return HF_E_OUT_OF_MEMORY;
    }
    if (length > 0) {
      memcpy(at, bytes, length);
    }
    node->values.length += length;
    uint32_t end = (uint32_t)node->values.length;
    memcpy(to + i * sizeof end, &end, sizeof end);
  }
  node->data.length += part->count * sizeof(uint32_t);
  return HF_OK;
}

static hf_status append_type_ids(gather *g, builder_node *node, const gather_part *part, const uint8_t *ids) {
  uint8_t *to = gather_reserve(g, &node->data, part->count);
  if (to == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t row = part_row(part, i);
    to[i] = 0;
    if (row != GATHER_NO_ROW) {
      to[i] = ids[row] < 128 ? part->layout->child_of_id[ids[row]] : LAYOUT_NO_CHILD;
      if (to[i] == LAYOUT_NO_CHILD) {
        return out_of_range(g, "a type id of a union", ids[row], part->layout->n_children);
      }
    }
  }
  node->data.length += part->count;
  return HF_OK;
}

/* One child of a dense union: NULL where the row is another child's. */
static hf_status append_dense_child(gather *g, builder_node *node, const gather_part *part, size_t child,
                                    uint32_t *numbers) {
  const struct ArrowArray *array = part->array;
  const uint8_t *offsets = array->buffers[array->n_buffers - 1];
  const uint8_t *children = node->data.data + node->data.length - part->count;
  gather_part values = {.layout = &part->layout->children[child],
                        .array = array->children[child],
                        .numbers = numbers,
                        .has_null = true,
                        .count = part->count};
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t row = part_row(part, i);
    numbers[i] = GATHER_NULL;
    if (row == GATHER_NO_ROW || children[i] != child) {
      continue;
    }
    int32_t offset;
    memcpy(&offset, offsets + row * sizeof offset, sizeof offset);
    if (offset < 0 || offset >= values.array->length) {
      return out_of_range(g, "an offset of a union", (uint64_t)(uint32_t)offset,
                          (uint64_t)values.array->length);
    }
    numbers[i] = (uint32_t)offset;
  }
  return gather_append(g, &node->children[child], &values);
}

hf_status gather_union(gather *g, builder_node *node, const gather_part *part) {
  const struct ArrowArray *array = part->array;
  bool is_dense = part->layout->kind == LAYOUT_DENSE_UNION;
  /* Before Arrow 1.0 unions had a validity buffer in front: counted from the end. */
  const uint8_t *ids = array->buffers[array->n_buffers - (is_dense ? 2 : 1)];
  HF_TRY(append_type_ids(g, node, part, ids));
  uint32_t *numbers = NULL;
  if (is_dense) {
    numbers = numbers_new(g, part->count);
    if (numbers == NULL) {
      return HF_E_OUT_OF_MEMORY;
    }
  }
  hf_status status = HF_OK;
  for (size_t i = 0; i < node->n_children && status == HF_OK; i++) {
    if (is_dense) {
      status = append_dense_child(g, node, part, i, numbers);
    } else {
      gather_part child = *part;
      child.layout = &part->layout->children[i];
      child.array = array->children[i];
      child.first += (uint64_t)array->offset;
      status = gather_append(g, &node->children[i], &child);
    }
  }
  mem_free(numbers);
  return status;
}

/* Reads a decimal; false when it does not fit into `width` bytes. */
static bool decimal_at(const uint8_t *from, size_t source_width, size_t width, int64_t *out) {
  int64_t low = 0;
  int64_t high = 0;
  memcpy(&low, from, sizeof low);
  high = low >> 63;
  if (source_width == 16) {
    memcpy(&high, from + 8, sizeof high);
  }
  *out = low;
  return high == low >> 63 && (width == 8 || (low >= INT32_MIN && low <= INT32_MAX));
}

static hf_status put_decimal(gather *g, const layout *l, const uint8_t *from, bool is_valid, uint8_t *to) {
  int64_t value;
  if (!decimal_at(from, l->source_width, l->width, &value)) {
    if (is_valid) {
      return error_set(g->error, HF_E_INVALID_ARGUMENT,
                       "a decimal has more digits than its type, of %zu bytes", l->width);
    }
    value = 0;
  }
  if (l->width == 8) {
    memcpy(to, &value, 8);
  } else {
    int32_t narrow = (int32_t)value;
    memcpy(to, &narrow, 4);
  }
  return HF_OK;
}

/* The usual case, without a branch a value; false when one did not fit: then all are looked at one by one. */
static bool narrow_to_64_bits(const uint8_t *from, uint64_t count, uint8_t *to) {
  uint64_t misfits = 0;
  for (uint64_t i = 0; i < count; i++) {
    int64_t halves[2];
    memcpy(halves, from + i * sizeof halves, sizeof halves);
    misfits |= (uint64_t)(halves[1] ^ (halves[0] >> 63));
    memcpy(to + i * sizeof *halves, halves, sizeof *halves);
  }
  return misfits == 0;
}

/* Months and days stay, ns become µs, rounded towards zero as DuckDB does. */
static void put_interval(const uint8_t *from, uint8_t *to) {
  int64_t nanoseconds;
  memcpy(&nanoseconds, from + 8, sizeof nanoseconds);
  int64_t microseconds = nanoseconds / 1000;
  memcpy(to, from, 8);
  memcpy(to + 8, &microseconds, sizeof microseconds);
}

hf_status gather_changed(gather *g, builder_node *node, const gather_part *part) {
  const layout *l = part->layout;
  const uint8_t *from = part->array->buffers[1];
  const uint8_t *bitmap = gather_bitmap(part->array);
  if (part->count > SIZE_MAX / 4 / l->width) {
    return error_set(g->error, HF_E_OUT_OF_MEMORY, "a batch buffer would be too large");
  }
  uint8_t *to = gather_reserve(g, &node->data, part->count * l->width);
  if (to == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  if (l->change == LAYOUT_NARROW && l->source_width == 16 && l->width == 8 && part->numbers == NULL &&
      narrow_to_64_bits(from + part_row(part, 0) * l->source_width, part->count, to)) {
    node->data.length += part->count * l->width;
    return HF_OK;
  }
  for (uint64_t i = 0; i < part->count; i++, to += l->width) {
    uint64_t row = part_row(part, i);
    if (row == GATHER_NO_ROW) {
      memset(to, 0, l->width);
    } else if (l->change == LAYOUT_INTERVAL) {
      put_interval(from + row * l->source_width, to);
    } else {
      bool is_valid = bitmap == NULL || bits_get(bitmap, row);
      HF_TRY(put_decimal(g, l, from + row * l->source_width, is_valid, to));
    }
  }
  node->data.length += part->count * l->width;
  return HF_OK;
}

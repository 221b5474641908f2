/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending rows of an array to a builder's node: a range with as few large
 * copies as there are buffers, a selection value by value. Buffers of incoming
 * arrays may lie at any address, so single values are moved by memcpy.
 * Dictionaries, views, unions and changing values: gather_special.c.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"

#include <string.h>

/* Appends `count` NULL rows: the elements of a fixed-size list that is not there. */
static hf_status append_nulls(gather *g, builder_node *node, const gather_part *like, uint64_t count) {
  enum { AT_ONCE = 64 };
  uint32_t numbers[AT_ONCE];
  memset(numbers, 0xff, sizeof numbers); /* GATHER_NULL */
  gather_part part = {.layout = like->layout, .array = like->array, .numbers = numbers, .has_null = true};
  for (; count > 0; count -= part.count) {
    part.count = count < AT_ONCE ? count : AT_ONCE;
    HF_TRY(gather_append(g, node, &part));
  }
  return HF_OK;
}

/* Specialised by the compiler for each constant width. */
static inline void pick(uint8_t *to, const uint8_t *from, const gather_part *part, size_t width) {
  const uint8_t *base = from + ((uint64_t)part->array->offset + part->first) * width;
  for (uint64_t i = 0; i < part->count; i++) {
    if (part->has_null && part->numbers[i] == GATHER_NULL) {
      memset(to + i * width, 0, width);
    } else {
      memcpy(to + i * width, base + part->numbers[i] * width, width);
    }
  }
}

static hf_status append_fixed(gather *g, builder_node *node, const gather_part *part) {
  size_t width = part->layout->width;
  if (part->count > SIZE_MAX / 4 / width) {
    return error_set(g->error, HF_E_OUT_OF_MEMORY, "a batch buffer would be too large");
  }
  uint8_t *to = gather_reserve(g, &node->data, part->count * width);
  if (to == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  const uint8_t *from = part->array->buffers[1];
  if (part->numbers == NULL) {
    memcpy(to, from + part_row(part, 0) * width, part->count * width);
  } else {
    switch (width) {
      case 1:
        pick(to, from, part, 1);
        break;
      case 2:
        pick(to, from, part, 2);
        break;
      case 4:
        pick(to, from, part, 4);
        break;
      case 8:
        pick(to, from, part, 8);
        break;
      case 16:
        pick(to, from, part, 16);
        break;
      default:
        pick(to, from, part, width);
        break;
    }
  }
  node->data.length += part->count * width;
  return HF_OK;
}

static hf_status append_bits(gather *g, builder_node *node, const gather_part *part) {
  uint64_t rows = (uint64_t)node->rows;
  size_t bytes = bits_bytes(rows + part->count);
  if (gather_reserve(g, &node->data, bytes - node->data.length) == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  const uint8_t *from = part->array->buffers[1];
  uint8_t *to = node->data.data;
  if (part->numbers == NULL) {
    bits_copy(to, rows, from, part_row(part, 0), part->count);
  } else {
    bits_fill(to, rows, part->count, false);
    for (uint64_t i = 0; i < part->count; i++) {
      uint64_t row = part_row(part, i);
      bool value = row != GATHER_NO_ROW && bits_get(from, row);
      to[(rows + i) / 8] |= (uint8_t)(value << ((rows + i) & 7));
    }
  }
  node->data.length = bytes;
  return HF_OK;
}

/* Writes offsets of a range of rows, moved so that the first of them starts at `start`. */
static void move_offsets(uint8_t *to, const uint8_t *from, const gather_part *part, uint64_t start) {
  uint64_t row = part_row(part, 0);
  if (part->layout->width == 4) {
    uint32_t change = (uint32_t)start - (uint32_t)gather_offset_at(from, 4, row);
    for (uint64_t i = 0; i < part->count; i++) {
      uint32_t offset;
      memcpy(&offset, from + (row + 1 + i) * 4, 4);
      offset += change;
      memcpy(to + i * 4, &offset, 4);
    }
    return;
  }
  uint64_t change = start - gather_offset_at(from, 8, row);
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t offset = gather_offset_at(from, 8, row + 1 + i) + change;
    memcpy(to + i * 8, &offset, 8);
  }
}

static void put_offset(uint8_t *to, size_t width, uint64_t i, uint64_t offset) {
  if (width == 4) {
    uint32_t narrow = (uint32_t)offset;
    memcpy(to + i * 4, &narrow, 4);
  } else {
    memcpy(to + i * 8, &offset, 8);
  }
}

/* Where the value of the part's i-th row starts and how long it is. */
static uint64_t value_at(const gather_part *part, uint64_t i, uint64_t *start) {
  uint64_t row = part_row(part, i);
  if (row == GATHER_NO_ROW) {
    *start = 0;
    return 0;
  }
  const uint8_t *offsets = part->array->buffers[1];
  *start = gather_offset_at(offsets, part->layout->width, row);
  return gather_offset_at(offsets, part->layout->width, row + 1) - *start;
}

static hf_status append_bytes_range(gather *g, builder_node *node, const gather_part *part) {
  const uint8_t *offsets = part->array->buffers[1];
  size_t width = part->layout->width;
  uint64_t start = gather_offset_at(offsets, width, part_row(part, 0));
  uint64_t more = gather_offset_at(offsets, width, part_row(part, part->count)) - start;
  uint8_t *to;
  HF_TRY(gather_offsets(g, node, part->count, node->values.length, more, &to));
  uint8_t *bytes = gather_reserve(g, &node->values, more);
  if (bytes == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  move_offsets(to, offsets, part, node->values.length);
  if (more > 0) {
    memcpy(bytes, (const uint8_t *)part->array->buffers[2] + start, more);
  }
  node->data.length += part->count * width;
  node->values.length += more;
  return HF_OK;
}

static hf_status append_bytes_rows(gather *g, builder_node *node, const gather_part *part) {
  size_t width = part->layout->width;
  uint64_t more = 0;
  uint64_t start;
  for (uint64_t i = 0; i < part->count; i++) {
    more += value_at(part, i, &start);
  }
  uint8_t *to;
  HF_TRY(gather_offsets(g, node, part->count, node->values.length, more, &to));
  uint8_t *bytes = gather_reserve(g, &node->values, more);
  if (bytes == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  const uint8_t *from = part->array->buffers[2];
  uint64_t end = node->values.length;
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t length = value_at(part, i, &start);
    if (length > 0) {
      memcpy(bytes, from + start, length);
    }
    bytes += length;
    end += length;
    put_offset(to, width, i, end);
  }
  node->data.length += part->count * width;
  node->values.length = end;
  return HF_OK;
}

static gather_part child_part(const gather_part *part, size_t child) {
  const layout *l = part->layout;
  return (gather_part){.layout = &l->children[child], .array = part->array->children[child]};
}

static hf_status append_list_range(gather *g, builder_node *node, const gather_part *part) {
  const uint8_t *offsets = part->array->buffers[1];
  size_t width = part->layout->width;
  gather_part elements = child_part(part, 0);
  elements.first = gather_offset_at(offsets, width, part_row(part, 0));
  elements.count = gather_offset_at(offsets, width, part_row(part, part->count)) - elements.first;
  uint64_t start = (uint64_t)node->children->rows;
  uint8_t *to;
  HF_TRY(gather_offsets(g, node, part->count, start, elements.count, &to));
  move_offsets(to, offsets, part, start);
  node->data.length += part->count * width;
  return gather_append(g, node->children, &elements);
}

/* Elements of neighbouring rows are appended together. */
static hf_status append_list_rows(gather *g, builder_node *node, const gather_part *part) {
  size_t width = part->layout->width;
  const uint8_t *bitmap = gather_bitmap(part->array);
  uint64_t end = (uint64_t)node->children->rows;
  uint64_t most = width == 4 ? INT32_MAX : INT64_MAX;
  uint8_t *to;
  HF_TRY(gather_offsets(g, node, part->count, end, 0, &to));
  gather_part elements = child_part(part, 0);
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t start;
    uint64_t length = value_at(part, i, &start);
    if (length > 0 && bitmap != NULL && !bits_get(bitmap, part_row(part, i))) {
      length = 0;
    }
    if (length > most - end) {
      return error_set(g->error, HF_E_LIMIT, "a list column passes 2^31 elements in one batch: %llu",
                       (unsigned long long)end);
    }
    if (length > 0 && start != elements.first + elements.count) {
      HF_TRY(gather_append(g, node->children, &elements));
      elements.first = start;
      elements.count = 0;
    }
    elements.count += length;
    end += length;
    put_offset(to, width, i, end);
  }
  node->data.length += part->count * width;
  return gather_append(g, node->children, &elements);
}

static hf_status append_fixed_list(gather *g, builder_node *node, const gather_part *part) {
  uint64_t size = part->layout->width;
  gather_part elements = child_part(part, 0);
  if (part->numbers == NULL) {
    elements.first = part_row(part, 0) * size;
    elements.count = part->count * size;
    return gather_append(g, node->children, &elements);
  }
  for (uint64_t i = 0; i < part->count; i++) {
    uint64_t row = part_row(part, i);
    if (row == GATHER_NO_ROW) {
      HF_TRY(append_nulls(g, node->children, &elements, size));
      continue;
    }
    elements.first = row * size;
    elements.count = size;
    HF_TRY(gather_append(g, node->children, &elements));
  }
  return HF_OK;
}

static hf_status append_struct(gather *g, builder_node *node, const gather_part *part) {
  for (size_t i = 0; i < node->n_children; i++) {
    gather_part child = *part;
    child.layout = &part->layout->children[i];
    child.array = part->array->children[i];
    child.first += (uint64_t)part->array->offset;
    HF_TRY(gather_append(g, &node->children[i], &child));
  }
  return HF_OK;
}

static hf_status append_values(gather *g, builder_node *node, const gather_part *part) {
  switch (part->layout->kind) {
    case LAYOUT_FIXED:
      return part->layout->change == LAYOUT_NARROW ||
                     (part->layout->change == LAYOUT_INTERVAL && g->builder->source == BATCH_OF_CLIENT)
                 ? gather_changed(g, node, part)
                 : append_fixed(g, node, part);
    case LAYOUT_BITS:
      return append_bits(g, node, part);
    case LAYOUT_BYTES:
      return part->numbers == NULL ? append_bytes_range(g, node, part) : append_bytes_rows(g, node, part);
    case LAYOUT_LIST:
      return part->numbers == NULL ? append_list_range(g, node, part) : append_list_rows(g, node, part);
    case LAYOUT_FIXED_LIST:
      return append_fixed_list(g, node, part);
    case LAYOUT_STRUCT:
      return append_struct(g, node, part);
    case LAYOUT_UNION:
    case LAYOUT_DENSE_UNION:
      return gather_union(g, node, part);
    case LAYOUT_VIEW:
      return gather_view(g, node, part);
    case LAYOUT_NULL:
      node->null_count += (int64_t)part->count;
      return HF_OK;
    case LAYOUT_DICTIONARY:
      break;
  }
  return error_set(g->error, HF_E_INTERNAL, "a dictionary is no value");
}

hf_status gather_append(gather *g, builder_node *node, const gather_part *part) {
  if (part->count == 0) {
    return HF_OK;
  }
  if (part->layout->kind == LAYOUT_DICTIONARY) {
    if (part->array->dictionary != NULL) {
      return gather_dictionary(g, node, part);
    }
    gather_part values = *part; /* comes unfolded */
    values.layout = part->layout->children;
    return gather_append(g, node, &values);
  }
  layout_kind kind = part->layout->kind;
  if (kind != LAYOUT_NULL && kind != LAYOUT_UNION && kind != LAYOUT_DENSE_UNION) {
    HF_TRY(gather_validity(g, node, part));
  }
  HF_TRY(append_values(g, node, part));
  node->rows += (int64_t)part->count;
  return HF_OK;
}

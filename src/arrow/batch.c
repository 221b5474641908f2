/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch builders: making, appending with rollback, sizes, emptying; and how their
 * buffers grow, validity and offsets among them. How values get into them is in
 * gather.c; how they are written out in ipc_write.c.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"
#include "base/mem.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a batch builder");
}

static hf_status node_init(arena *a, const layout *l, builder_node *node, hf_error *error) {
  while (l->kind == LAYOUT_DICTIONARY) {
    l = l->children;
  }
  node->layout = l;
  node->n_children = l->n_children;
  node->children = arena_array(a, l->n_children, sizeof *node->children);
  if (node->children == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < l->n_children; i++) {
    HF_TRY(node_init(a, &l->children[i], &node->children[i], error));
  }
  return HF_OK;
}

/* Takes the changes of face off a layout. */
static void keep_values(layout *l) {
  if (l->kind == LAYOUT_FIXED) {
    l->width = l->source_width;
    l->change = LAYOUT_SAME;
  }
  for (size_t i = 0; i < l->n_children; i++) {
    keep_values(&l->children[i]);
  }
}

hf_status batch_builder_new_for(const struct ArrowSchema *schema, batch_source source, batch_builder **out,
                                hf_error *error) {
  batch_builder *b = mem_zalloc(1, sizeof *b);
  if (b == NULL) {
    return no_memory(error);
  }
  b->source = source;
  b->memory = arena_new();
  hf_status status =
      b->memory == NULL ? no_memory(error) : layout_of_schema(schema, b->memory, &b->layout, error);
  if (status == HF_OK) {
    if (source == BATCH_AS_IS) {
      keep_values(&b->layout);
    }
    status = node_init(b->memory, &b->layout, &b->root, error);
  }
  if (status != HF_OK) {
    batch_builder_free(b);
    return status;
  }
  *out = b;
  return HF_OK;
}

hf_status batch_builder_new(const struct ArrowSchema *schema, batch_builder **out, hf_error *error) {
  return batch_builder_new_for(schema, BATCH_AS_IS, out, error);
}

static void growing_free(batch_builder *b, growing *buffer) {
  b->bytes -= buffer->capacity;
  mem_free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

static void node_clear(batch_builder *b, builder_node *node, bool keep_memory) {
  node->rows = 0;
  node->null_count = 0;
  growing *buffers[] = {&node->validity, &node->data, &node->values};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
    if (keep_memory) {
      buffers[i]->length = 0;
    } else {
      growing_free(b, buffers[i]);
    }
  }
  for (size_t i = 0; i < node->n_children; i++) {
    node_clear(b, &node->children[i], keep_memory);
  }
}

void batch_builder_clear(batch_builder *b, size_t keep_bytes) {
  node_clear(b, &b->root, b->bytes <= keep_bytes);
}

void batch_builder_free(batch_builder *b) {
  if (b == NULL) {
    return;
  }
  if (b->root.layout != NULL) {
    node_clear(b, &b->root, false);
  }
  arena_free(b->memory);
  mem_free(b);
}

static void node_save(builder_node *node) {
  node->saved.rows = node->rows;
  node->saved.null_count = node->null_count;
  node->saved.validity = node->validity.length;
  node->saved.data = node->data.length;
  node->saved.values = node->values.length;
  for (size_t i = 0; i < node->n_children; i++) {
    node_save(&node->children[i]);
  }
}

static void node_restore(builder_node *node) {
  node->rows = node->saved.rows;
  node->null_count = node->saved.null_count;
  node->validity.length = node->saved.validity;
  node->data.length = node->saved.data;
  node->values.length = node->saved.values;
  for (size_t i = 0; i < node->n_children; i++) {
    node_restore(&node->children[i]);
  }
}

/* The root has no validity of its own: its children are the columns. */
static hf_status append_columns(batch_builder *b, gather_part *part, hf_error *error) {
  gather g = {.builder = b, .error = error};
  const struct ArrowArray *rows = part->array;
  if (rows->n_children != (int64_t)b->root.n_children) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "an Arrow batch has %lld columns, not %zu",
                     (long long)rows->n_children, b->root.n_children);
  }
  node_save(&b->root);
  part->first += (uint64_t)rows->offset;
  for (size_t i = 0; i < b->root.n_children; i++) {
    part->layout = &b->layout.children[i];
    part->array = rows->children[i];
    hf_status status = gather_append(&g, &b->root.children[i], part);
    if (status != HF_OK) {
      node_restore(&b->root);
      return status;
    }
  }
  b->root.rows += (int64_t)part->count;
  return HF_OK;
}

hf_status batch_builder_append(batch_builder *b, const struct ArrowArray *rows, int64_t first, int64_t count,
                               hf_error *error) {
  gather_part part = {.array = rows, .first = (uint64_t)first, .count = (uint64_t)count};
  return append_columns(b, &part, error);
}

hf_status batch_builder_append_rows(batch_builder *b, const struct ArrowArray *rows, const uint32_t *numbers,
                                    size_t count, hf_error *error) {
  gather_part part = {.array = rows, .numbers = numbers, .count = count};
  return append_columns(b, &part, error);
}

int64_t batch_builder_rows(const batch_builder *b) {
  return b->root.rows;
}

size_t batch_builder_bytes(const batch_builder *b) {
  return b->bytes;
}

static size_t node_data_bytes(const builder_node *node) {
  size_t bytes = node->validity.length + node->data.length + node->values.length;
  for (size_t i = 0; i < node->n_children; i++) {
    bytes += node_data_bytes(&node->children[i]);
  }
  return bytes;
}

size_t batch_builder_data_bytes(const batch_builder *b) {
  return node_data_bytes(&b->root);
}

/* ------------------------------------------------------------------- buffers */

enum { GRANULE_BYTES = 64 }; /* capacities are multiples: what Arrow pads buffers to */

uint8_t *gather_reserve(gather *g, growing *to, size_t more) {
  if (more > SIZE_MAX / 4 - to->length) {
    error_set(g->error, HF_E_OUT_OF_MEMORY, "a batch buffer would be too large");
    return NULL;
  }
  size_t needed = to->length + more;
  if (needed > to->capacity || to->data == NULL) {
    size_t capacity = to->capacity + to->capacity / 2;
    capacity = capacity < needed ? needed : capacity;
    capacity = (capacity / GRANULE_BYTES + 1) * GRANULE_BYTES;
    uint8_t *data = mem_realloc(to->data, capacity);
    if (data == NULL) {
      error_set(g->error, HF_E_OUT_OF_MEMORY, "no memory for %zu bytes of a batch", capacity);
      return NULL;
    }
    g->builder->bytes += capacity - to->capacity;
    to->data = data;
    to->capacity = capacity;
  }
  return to->data + to->length;
}

const uint8_t *gather_bitmap(const struct ArrowArray *array) {
  return array->null_count == 0 || array->n_buffers < 1 ? NULL : array->buffers[0];
}

/* Makes the bitmap one of `rows` rows. */
static uint8_t *bitmap_resize(gather *g, builder_node *node, uint64_t rows) {
  size_t bytes = bits_bytes(rows);
  if (gather_reserve(g, &node->validity, bytes - node->validity.length) == NULL) {
    return NULL;
  }
  node->validity.length = bytes;
  return node->validity.data;
}

static bool row_is_valid(const gather_part *part, const uint8_t *bitmap, uint64_t i) {
  uint64_t row = part_row(part, i);
  return row != GATHER_NO_ROW && (bitmap == NULL || bits_get(bitmap, row));
}

static uint64_t count_nulls(const gather_part *part, const uint8_t *bitmap) {
  if (bitmap == NULL && !part->has_null) {
    return 0;
  }
  if (part->numbers == NULL) {
    return part->count - bits_count(bitmap, part_row(part, 0), part->count);
  }
  uint64_t nulls = 0;
  for (uint64_t i = 0; i < part->count; i++) {
    nulls += !row_is_valid(part, bitmap, i);
  }
  return nulls;
}

hf_status gather_validity(gather *g, builder_node *node, const gather_part *part) {
  const uint8_t *bitmap = gather_bitmap(part->array);
  uint64_t nulls = count_nulls(part, bitmap);
  if (nulls == 0 && node->null_count == 0) {
    return HF_OK;
  }
  uint64_t rows = (uint64_t)node->rows;
  if (node->null_count == 0) {
    node->validity.length = 0;
  }
  uint8_t *to = bitmap_resize(g, node, rows + part->count);
  if (to == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  if (node->null_count == 0) {
    bits_fill(to, 0, rows, true);
  }
  if (nulls == 0) {
    bits_fill(to, rows, part->count, true);
  } else if (part->numbers == NULL) {
    bits_copy(to, rows, bitmap, part_row(part, 0), part->count);
  } else {
    bits_fill(to, rows, part->count, false);
    for (uint64_t i = 0; i < part->count; i++) {
      to[(rows + i) / 8] |= (uint8_t)(row_is_valid(part, bitmap, i) << ((rows + i) & 7));
    }
  }
  node->null_count += (int64_t)nulls;
  return HF_OK;
}

hf_status gather_offsets(gather *g, builder_node *node, uint64_t count, uint64_t start, uint64_t more,
                         uint8_t **to) {
  size_t width = node->layout->width;
  if (width == 4 && (start > INT32_MAX || more > INT32_MAX - start)) {
    return error_set(g->error, HF_E_LIMIT, "a column passes 2 GiB in one batch: %llu bytes or elements",
                     (unsigned long long)(start + more));
  }
  uint8_t *at = gather_reserve(g, &node->data, (count + 1) * width);
  if (at == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  if (node->data.length == 0) {
    memset(at, 0, width);
    node->data.length = width;
    at += width;
  }
  *to = at;
  return HF_OK;
}

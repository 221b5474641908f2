/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch builders: making, appending with rollback, sizes, emptying; and how their
 * buffers grow, validity and offsets among them. How values get into them is in
 * gather.c; how they are written out in ipc_write.c.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"
#include "base/fault.h"
#include "base/mem.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a batch builder");
}

static size_t count_nodes(const layout *l) {
  while (l->kind == LAYOUT_DICTIONARY) {
    l = l->children;
  }
  size_t nodes = l->n_children;
  for (size_t i = 0; i < l->n_children; i++) {
    nodes += count_nodes(&l->children[i]);
  }
  return nodes;
}

/* Takes the nodes of the children from *unused on. */
static void node_init(const layout *l, builder_node *node, builder_node **unused) {
  while (l->kind == LAYOUT_DICTIONARY) {
    l = l->children;
  }
  node->layout = l;
  node->n_children = l->n_children;
  node->children = *unused;
  *unused += l->n_children;
  for (size_t i = 0; i < l->n_children; i++) {
    node_init(&l->children[i], &node->children[i], unused);
  }
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

static void shape_release(batch_shape *shape) {
  if (--shape->builders == 0) {
    arena_free(shape->memory);
    mem_free(shape);
  }
}

static hf_status shape_new(const struct ArrowSchema *schema, batch_source source, batch_shape **out,
                           hf_error *error) {
  batch_shape *shape = mem_zalloc(1, sizeof *shape);
  if (shape == NULL) {
    return no_memory(error);
  }
  shape->builders = 1;
  shape->memory = arena_new();
  hf_status status = shape->memory == NULL ? no_memory(error)
                                           : layout_of_schema(schema, shape->memory, &shape->layout, error);
  if (status != HF_OK) {
    shape_release(shape);
    return status;
  }
  if (source == BATCH_AS_IS) {
    keep_values(&shape->layout);
  }
  shape->n_nodes = count_nodes(&shape->layout);
  *out = shape;
  return HF_OK;
}

static hf_status builder_new(batch_shape *shape, batch_source source, batch_builder **out, hf_error *error) {
  size_t bytes = sizeof(batch_builder) + shape->n_nodes * sizeof(builder_node);
  batch_builder *b = mem_zalloc(1, bytes);
  if (b == NULL) {
    return no_memory(error);
  }
  b->shape = shape;
  b->source = source;
  b->bytes = bytes;
  builder_node *unused = b->nodes;
  node_init(&shape->layout, &b->root, &unused);
  *out = b;
  return HF_OK;
}

hf_status batch_builder_new_for(const struct ArrowSchema *schema, batch_source source, batch_builder **out,
                                hf_error *error) {
  batch_shape *shape = NULL;
  HF_TRY(shape_new(schema, source, &shape, error));
  hf_status status = builder_new(shape, source, out, error);
  if (status != HF_OK) {
    shape_release(shape);
  }
  return status;
}

hf_status batch_builder_new(const struct ArrowSchema *schema, batch_builder **out, hf_error *error) {
  return batch_builder_new_for(schema, BATCH_AS_IS, out, error);
}

hf_status batch_builder_new_like(const batch_builder *model, batch_builder **out, hf_error *error) {
  HF_TRY(builder_new(model->shape, model->source, out, error));
  model->shape->builders++;
  return HF_OK;
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
  for (size_t i = 0; i < sizeof buffers / sizeof(growing *); i++) {
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
  node_clear(b, &b->root, false);
  shape_release(b->shape);
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
    part->layout = &b->shape->layout.children[i];
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

/* Text behind views: their lengths stand in front. */
static uint64_t views_cost(const struct ArrowArray *array, uint64_t row, uint64_t count) {
  enum { VIEW_BYTES = 16 };
  uint64_t cost = count * sizeof(uint32_t);
  for (uint64_t i = row; i < row + count; i++) {
    uint32_t length;
    memcpy(&length, (const uint8_t *)array->buffers[1] + i * VIEW_BYTES, sizeof length);
    cost += length;
  }
  return cost;
}

/* Bytes of a bitmap count as one a row at an eighth; a dictionary's values as long as they are on average. */
static uint64_t part_cost(const layout *l, const struct ArrowArray *array, uint64_t first, uint64_t count) {
  uint64_t cost = array->null_count == 0 ? 0 : count / 8;
  uint64_t row = (uint64_t)array->offset + first;
  uint64_t start = 0;
  if ((l->kind == LAYOUT_BYTES || l->kind == LAYOUT_LIST) && count > 0) {
    start = gather_offset_at(array->buffers[1], l->width, row);
    uint64_t inside = gather_offset_at(array->buffers[1], l->width, row + count) - start;
    cost += count * l->width;
    return l->kind == LAYOUT_BYTES ? cost + inside
                                   : cost + part_cost(l->children, array->children[0], start, inside);
  }
  if (l->kind == LAYOUT_DICTIONARY && array->dictionary != NULL) {
    uint64_t length = (uint64_t)array->dictionary->length;
    uint64_t values = part_cost(l->children, array->dictionary, 0, length);
    return cost + (length == 0 ? 0 : (values / length + 1) * count);
  }
  cost += l->kind == LAYOUT_FIXED  ? count * l->width
          : l->kind == LAYOUT_VIEW ? views_cost(array, row, count)
                                   : count;
  uint64_t each = l->kind == LAYOUT_FIXED_LIST ? l->width : 1;
  for (size_t i = 0; i < l->n_children && array->children != NULL; i++) {
    bool is_dense = l->kind == LAYOUT_DENSE_UNION;
    cost += part_cost(&l->children[i], array->children[i], is_dense ? 0 : row * each,
                      is_dense ? 0 : count * each);
  }
  return cost;
}

uint64_t batch_builder_cost(const batch_builder *b, const struct ArrowArray *rows, int64_t first,
                            int64_t count) {
  return part_cost(&b->shape->layout, rows, (uint64_t)first, (uint64_t)count);
}

int64_t batch_builder_rows(const batch_builder *b) {
  return b->root.rows;
}

batch_column batch_builder_column(const batch_builder *b, size_t column) {
  const builder_node *node = &b->root.children[column];
  const layout *l = node->layout;
  return (batch_column){.rows = (uint64_t)node->rows,
                        .nulls = (uint64_t)node->null_count,
                        .validity = node->null_count > 0 ? node->validity.data : NULL,
                        .data = node->data.data,
                        .bytes = node->values.data,
                        .width = l->kind == LAYOUT_FIXED ? l->width : 0,
                        .is_fixed = l->kind == LAYOUT_FIXED,
                        .is_bytes = l->kind == LAYOUT_BYTES && l->width == 4};
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
  if ((nulls == 0 && node->null_count == 0) || FAULT("arrow.null_flag")) {
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
                     (unsigned long long)start);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on arrays. Offsets would do by the standard, but DuckDB's reader adds
 * only the nearest parent's to a field of a nested struct (measured with 1.5.5),
 * so buffers are moved instead, and only what is left of a byte (0 to 7 rows)
 * becomes an offset.
 */
#include "arrow/ipc.h"

#include "arrow/bits.h"
#include "arrow/layout.h"
#include "base/fault.h"
#include "base/mem.h"

#include <string.h>

typedef struct slice_node {
  const layout *layout;
  const void *buffers[3];
  struct ArrowArray array;
  struct ArrowArray **child_arrays;
  struct slice_node *children; /* none below lists: their elements are the parent's */
} slice_node;

struct slicer {
  arena *memory;
  layout layout;
  size_t n_columns;
  slice_node *columns;
  struct ArrowArray **column_arrays;
  const void *no_buffer;
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a window on a batch");
}

static bool cuts_children(const layout *l) {
  return l->kind == LAYOUT_STRUCT || l->kind == LAYOUT_UNION || l->kind == LAYOUT_FIXED_LIST;
}

static hf_status node_init(arena *a, const layout *l, slice_node *node, hf_error *error) {
  node->layout = l;
  if (!cuts_children(l)) {
    return HF_OK;
  }
  node->children = arena_array(a, l->n_children, sizeof *node->children);
  node->child_arrays = arena_array(a, l->n_children, sizeof(struct ArrowArray *));
  if (node->children == NULL || node->child_arrays == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < l->n_children; i++) {
    node->child_arrays[i] = &node->children[i].array;
    HF_TRY(node_init(a, &l->children[i], &node->children[i], error));
  }
  return HF_OK;
}

static hf_status columns_init(slicer *s, const size_t *columns, size_t n_columns, hf_error *error) {
  s->n_columns = columns == NULL ? s->layout.n_children : n_columns;
  s->columns = arena_array(s->memory, s->n_columns, sizeof *s->columns);
  s->column_arrays = arena_array(s->memory, s->n_columns, sizeof(struct ArrowArray *));
  if (s->columns == NULL || s->column_arrays == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < s->n_columns; i++) {
    size_t column = columns == NULL ? i : columns[i];
    if (column >= s->layout.n_children) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a column is not in the schema: %zu of %zu", column,
                       s->layout.n_children);
    }
    s->column_arrays[i] = &s->columns[i].array;
    HF_TRY(node_init(s->memory, &s->layout.children[column], &s->columns[i], error));
  }
  return HF_OK;
}

hf_status slicer_new(const struct ArrowSchema *block_schema, const size_t *columns, size_t n_columns,
                     slicer **out, hf_error *error) {
  return slicer_new_coded(block_schema, NULL, columns, n_columns, out, error);
}

hf_status slicer_new_coded(const struct ArrowSchema *block_schema, const uint8_t *code_bytes,
                           const size_t *columns, size_t n_columns, slicer **out, hf_error *error) {
  slicer *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  s->memory = arena_new();
  hf_status status =
      s->memory == NULL ? no_memory(error) : layout_of_schema(block_schema, s->memory, &s->layout, error);
  if (status == HF_OK) {
    status = layout_code_columns(&s->layout, code_bytes, s->memory, error);
  }
  if (status == HF_OK) {
    status = columns_init(s, columns, n_columns, error);
  }
  if (status != HF_OK) {
    slicer_free(s);
    return status;
  }
  *out = s;
  return HF_OK;
}

void slicer_free(slicer *s) {
  if (s != NULL) {
    arena_free(s->memory);
    mem_free(s);
  }
}

static void release_nothing(struct ArrowArray *array) {
  array->release = NULL;
}

static const void *moved(const void *buffer, uint64_t bytes) {
  return buffer == NULL ? NULL : (const uint8_t *)buffer + bytes;
}

static void cut_buffers(slice_node *node, const struct ArrowArray *from, uint64_t base) {
  const layout *l = node->layout;
  int64_t n_buffers = from->n_buffers < 3 ? from->n_buffers : 3;
  for (int64_t i = 0; i < n_buffers; i++) {
    node->buffers[i] = from->buffers[i];
  }
  switch (l->kind) {
    case LAYOUT_FIXED:
    case LAYOUT_LIST:
    case LAYOUT_BYTES:
    case LAYOUT_DICTIONARY:
      node->buffers[1] = moved(node->buffers[1], base * l->width);
      break;
    case LAYOUT_BITS:
      node->buffers[1] = moved(node->buffers[1], base / 8);
      break;
    case LAYOUT_UNION:
      node->buffers[0] = moved(node->buffers[0], base);
      return;
    default:
      break;
  }
  node->buffers[0] = moved(node->buffers[0], base / 8);
}

/* Cuts rows [first, first + count), counted from the array's own first row. */
static void cut(slice_node *node, const struct ArrowArray *from, uint64_t first, uint64_t count) {
  uint64_t start = (uint64_t)from->offset + first;
  uint64_t base = start & ~(uint64_t)7;
  uint64_t rest = start - base;
  struct ArrowArray *out = &node->array;
  cut_buffers(node, from, base);
  *out = (struct ArrowArray){.length = (int64_t)count,
                             .offset = (int64_t)rest,
                             .n_buffers = from->n_buffers,
                             .buffers = node->buffers,
                             .n_children = from->n_children,
                             .children = from->children,
                             .dictionary = from->dictionary,
                             .release = release_nothing};
  if (node->layout->kind == LAYOUT_NULL) {
    out->null_count = (int64_t)count;
  } else if (node->layout->kind != LAYOUT_UNION && from->null_count != 0 && node->buffers[0] != NULL) {
    out->null_count = (int64_t)(count - bits_count(node->buffers[0], rest, count));
  }
  if (node->children == NULL) {
    return;
  }
  out->children = node->child_arrays;
  uint64_t size = node->layout->kind == LAYOUT_FIXED_LIST ? node->layout->width : 1;
  for (size_t i = 0; i < node->layout->n_children; i++) {
    uint64_t at = FAULT("arrow.child_offset") ? start : base; /* the reader adds the rest again */
    cut(&node->children[i], from->children[i], at * size, (rest + count) * size);
  }
}

void slicer_cut(slicer *s, const struct ArrowArray *rows, int64_t first, int64_t count,
                struct ArrowArray *out) {
  for (size_t i = 0; i < s->n_columns; i++) {
    cut(&s->columns[i], rows->children[i], (uint64_t)rows->offset + (uint64_t)first, (uint64_t)count);
  }
  *out = (struct ArrowArray){.length = count,
                             .n_buffers = 1,
                             .buffers = &s->no_buffer,
                             .n_children = (int64_t)s->n_columns,
                             .children = s->column_arrays,
                             .release = release_nothing};
}

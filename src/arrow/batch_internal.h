/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the batch builder share. batch.c owns builders, gather*.c
 * append to their nodes, ipc_write.c writes them out. Internal to src/arrow.
 *
 * Invariants. B1: bytes of the builder = itself and the capacities of its buffers.
 * B2: a node has a validity bitmap of all its rows exactly when null_count > 0
 * (LAYOUT_NULL has none). B3: offsets hold rows + 1 entries as soon as there are
 * rows. B4: bits behind the last row of a bitmap are zero.
 */
#ifndef HF_ARROW_BATCH_INTERNAL_H
#define HF_ARROW_BATCH_INTERNAL_H

#include "arrow/batch.h"
#include "arrow/dictionary.h"
#include "arrow/layout.h"
#include "base/buf.h"

#include <string.h>

typedef struct growing {
  uint8_t *data;
  size_t length, capacity;
} growing;

typedef struct builder_node {
  const layout *layout; /* of the incoming arrays, dictionaries taken off */
  int64_t rows, null_count;
  growing validity;
  growing data;   /* values, offsets or type ids */
  growing values; /* LAYOUT_BYTES and LAYOUT_VIEW: the bytes */
  size_t n_children;
  struct builder_node *children;
  struct {
    int64_t rows, null_count;
    size_t validity, data, values;
  } saved; /* before the append that runs */
} builder_node;

/* What builders of the same arrays share. */
typedef struct batch_shape {
  size_t builders;
  arena *memory; /* of the layouts */
  layout layout; /* of the root */
  size_t n_nodes;
} batch_shape;

struct batch_builder {
  batch_shape *shape;
  batch_source source;
  size_t bytes;
  builder_node root;
  builder_node nodes[]; /* all below the root */
};

/* One append: what the gather functions hand each other. */
typedef struct gather {
  batch_builder *builder;
  hf_error *error;
} gather;

/* A number for a row that is not there: it becomes NULL. */
#define GATHER_NULL UINT32_MAX
/* What part_row gives for it. */
#define GATHER_NO_ROW UINT64_MAX

/* Rows of one array: a range, or by number. */
typedef struct gather_part {
  const layout *layout;
  const struct ArrowArray *array;
  const uint32_t *numbers; /* counted from `first`; NULL: the rows [first, first + count) */
  bool has_null;           /* some numbers are GATHER_NULL */
  uint64_t first;          /* counted from the array's own first row */
  uint64_t count;
} gather_part;

/* The position in the array's buffers of the part's i-th row, or GATHER_NO_ROW. */
static inline uint64_t part_row(const gather_part *part, uint64_t i) {
  uint64_t base = (uint64_t)part->array->offset + part->first;
  if (part->numbers == NULL) {
    return base + i;
  }
  return part->has_null && part->numbers[i] == GATHER_NULL ? GATHER_NO_ROW : base + part->numbers[i];
}

/* ---------------------------------------------------------------- gather.c */

/* Appends the part to the node and its children. */
hf_status gather_append(gather *g, builder_node *node, const gather_part *part);

/* ----------------------------------------------------------------- batch.c */

/* Makes room for `more` bytes behind the length; returns where they start, or NULL after having set OUT_OF_MEMORY. */
uint8_t *gather_reserve(gather *g, growing *to, size_t more);
/* The bitmap of an array, or NULL when it holds no NULL. */
const uint8_t *gather_bitmap(const struct ArrowArray *array);
/* Appends the part's validity; the node's rows are advanced by the caller, afterwards. */
hf_status gather_validity(gather *g, builder_node *node, const gather_part *part);
/* Makes room for `count` offsets behind those that are there and writes the leading 0 of the first time. Errors: LIMIT
 * when `start` + `more` does not fit. */
hf_status gather_offsets(gather *g, builder_node *node, uint64_t count, uint64_t start, uint64_t more,
                         uint8_t **to);
/* The i-th offset of a buffer of 4 or 8 byte offsets; a negative one comes out above INT64_MAX. */
static inline uint64_t gather_offset_at(const uint8_t *offsets, size_t width, uint64_t i) {
  if (width == 4) {
    int32_t value;
    memcpy(&value, offsets + i * 4, sizeof value);
    return (uint64_t)value;
  }
  int64_t value;
  memcpy(&value, offsets + i * 8, sizeof value);
  return (uint64_t)value;
}

/* -------------------------------------------------------- gather_special.c */

/* What block arrays do not have: dictionaries, views, dense unions, values that change. */
hf_status gather_dictionary(gather *g, builder_node *node, const gather_part *part);
hf_status gather_view(gather *g, builder_node *node, const gather_part *part);
hf_status gather_union(gather *g, builder_node *node, const gather_part *part);
hf_status gather_changed(gather *g, builder_node *node, const gather_part *part);

/* ------------------------------------------------------------ dictionary.c */

#define DICTIONARY_NO_CODE UINT32_MAX

struct dictionary {
  const layout *layout; /* of the values; the builder's shape outlives the dictionary */
  size_t column, code_bytes;
  bool is_full;
  uint32_t n_entries;
  uint32_t *slots;  /* entry numbers + 1; 0: free */
  size_t n_slots;   /* a power of two */
  uint32_t *hashes; /* of the entries */
  uint8_t *data;    /* values, or entries + 1 offsets */
  uint8_t *values;  /* the bytes behind the offsets */
  size_t value_bytes;
  size_t hashes_capacity, data_capacity, values_capacity; /* in bytes */
};

/* ------------------------------------------------------------- ipc_write.c */

/* Appends a message's header with its prefix, padded. */
hf_status ipc_append_header(const uint8_t *header, size_t length, buf *out, hf_error *error);

#endif

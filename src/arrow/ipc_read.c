/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading record batches out of memory. One block of memory holds the structs of
 * a batch; the buffers stay where they are, unless they are compressed. nanoarrow's own decoder is not used
 * here: it adds offset and length of a buffer without a look at overflow, and
 * allocates for each buffer.
 *
 * Invariant R1: every buffer handed out lies within the message's body, or in memory
 * of the batch, and is as long as the rows of its array need. R2: with `validate`, so does every element
 * that an offset or a type id leads to. R3: no more is unpacked than the rows need
 * and the bytes of the body can give.
 */
#include "arrow/ipc.h"

#include "arrow/batch_internal.h"
#include "arrow/bits.h"
#include "arrow/flatbuffer.h"
#include "arrow/ipc_lz4.h"
#include "arrow/layout.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum {
  PREFIX_BYTES = 8,
  ENTRY_BYTES = 16, /* of a node and of a buffer */
  DICTIONARY_BATCH = 2,
  RECORD_BATCH = 3,
  VERSION_5 = 4,
  BUFFER_ALIGNMENT = 8,
  MOST_PADDING = 64 /* of an unpacked buffer behind what its rows need */
};

/* Rows beyond which sums and products might overflow. */
#define MOST_ROWS ((uint64_t)1 << 48)

typedef struct picked {
  const layout *layout;
  size_t column;
  size_t node, buffer; /* where its entries start in a message */
  size_t n_buffers;
} picked;

struct ipc_decoder {
  arena *memory;
  layout layout;
  size_t n_nodes, n_buffers; /* in a message */
  size_t n_picked;
  picked *picked;
  size_t out_nodes, out_buffers; /* of the picked columns, without the root */
  lz4_reader *lz4;               /* made for the first compressed batch */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read Arrow data");
}

static hf_status corrupt(hf_error *error, const char *what, uint64_t found, uint64_t expected) {
  return error_set(error, HF_E_BLOCK_CORRUPT, "an Arrow batch is damaged: %s: %llu, expected %llu", what,
                   (unsigned long long)found, (unsigned long long)expected);
}

/* ------------------------------------------------------------------- decoder */

static void count_entries(const layout *l, size_t *nodes, size_t *buffers) {
  *nodes += 1;
  *buffers += layout_buffers(l);
  for (size_t i = 0; i < layout_array_children(l); i++) {
    count_entries(&l->children[i], nodes, buffers);
  }
}

/* Finds where each column's entries start, then picks. */
static hf_status pick_columns(ipc_decoder *d, const size_t *columns, size_t n_columns, hf_error *error) {
  size_t n_all = d->layout.n_children;
  picked *all = arena_array(d->memory, n_all, sizeof *all);
  d->n_picked = columns == NULL ? n_all : n_columns;
  d->picked = arena_array(d->memory, d->n_picked, sizeof *d->picked);
  if (all == NULL || d->picked == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n_all; i++) {
    all[i] =
        (picked){.layout = &d->layout.children[i], .column = i, .node = d->n_nodes, .buffer = d->n_buffers};
    count_entries(all[i].layout, &d->n_nodes, &d->n_buffers);
    all[i].n_buffers = d->n_buffers - all[i].buffer;
  }
  for (size_t i = 0; i < d->n_picked; i++) {
    size_t column = columns == NULL ? i : columns[i];
    if (column >= n_all) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a column is not in the schema: %zu of %zu", column,
                       n_all);
    }
    d->picked[i] = all[column];
    count_entries(all[column].layout, &d->out_nodes, &d->out_buffers);
  }
  return HF_OK;
}

hf_status ipc_decoder_new(const struct ArrowSchema *block_schema, const size_t *columns, size_t n_columns,
                          ipc_decoder **out, hf_error *error) {
  return ipc_decoder_new_coded(block_schema, NULL, columns, n_columns, out, error);
}

hf_status ipc_decoder_new_coded(const struct ArrowSchema *block_schema, const uint8_t *code_bytes,
                                const size_t *columns, size_t n_columns, ipc_decoder **out, hf_error *error) {
  ipc_decoder *d = mem_zalloc(1, sizeof *d);
  if (d == NULL) {
    return no_memory(error);
  }
  d->memory = arena_new();
  hf_status status =
      d->memory == NULL ? no_memory(error) : layout_of_schema(block_schema, d->memory, &d->layout, error);
  if (status == HF_OK && !layout_is_of_block(&d->layout)) {
    status = error_set(error, HF_E_UNSUPPORTED, "an Arrow schema is not one of blocks");
  }
  if (status == HF_OK) {
    status = layout_code_columns(&d->layout, code_bytes, d->memory, error);
  }
  if (status == HF_OK) {
    status = pick_columns(d, columns, n_columns, error);
  }
  if (status != HF_OK) {
    ipc_decoder_free(d);
    return status;
  }
  *out = d;
  return HF_OK;
}

void ipc_decoder_free(ipc_decoder *d) {
  if (d != NULL) {
    lz4_reader_free(d->lz4);
    arena_free(d->memory);
    mem_free(d);
  }
}

/* ------------------------------------------------------------ decoded arrays */

/* The structs of one batch: freed with the last of its arrays. */
typedef struct decoded {
  atomic_size_t arrays; /* not yet released */
  void (*on_release)(void *context);
  void *context;
  struct ArrowArray *nodes;
  struct ArrowArray **children;
  const void **buffers;
  size_t used_nodes, used_children, used_buffers;
  lz4_memory *unpacked;
} decoded;

static decoded *decoded_new(const ipc_decoder *d, const ipc_read_options *options) {
  size_t nodes = d->out_nodes;
  size_t bytes = sizeof(decoded) + nodes * (sizeof(struct ArrowArray) + sizeof(struct ArrowArray *)) +
                 (d->out_buffers + 1) * sizeof(void *);
  decoded *batch = mem_zalloc(1, bytes);
  if (batch != NULL) {
    atomic_init(&batch->arrays, nodes + 1);
    batch->on_release = options->on_release;
    batch->context = options->context;
    batch->nodes = (struct ArrowArray *)(batch + 1);
    batch->children = (struct ArrowArray **)(batch->nodes + nodes);
    batch->buffers = (const void **)(batch->children + nodes);
  }
  return batch;
}

static void decoded_free(decoded *batch) {
  lz4_memory_free(batch->unpacked);
  mem_free(batch);
}

static void release_array(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release != NULL) {
      array->children[i]->release(array->children[i]);
    }
  }
  decoded *batch = array->private_data;
  array->release = NULL;
  if (atomic_fetch_sub_explicit(&batch->arrays, 1, memory_order_acq_rel) == 1) {
    if (batch->on_release != NULL) {
      batch->on_release(batch->context);
    }
    decoded_free(batch);
  }
}

/* Gives an array its children structs, not yet filled. */
static void take_children(decoded *batch, struct ArrowArray *array, size_t n_children) {
  array->n_children = (int64_t)n_children;
  array->children = batch->children + batch->used_children;
  batch->used_children += n_children;
  for (size_t i = 0; i < n_children; i++) {
    array->children[i] = &batch->nodes[batch->used_nodes++];
  }
}

/* ------------------------------------------------------------------- reading */

typedef struct reader {
  ipc_decoder *d;
  decoded *batch;
  const uint8_t *nodes, *buffers; /* entries of the message */
  size_t node, buffer;            /* the next of them */
  const uint8_t *body;
  uint64_t body_bytes;
  size_t part; /* of the column */
  bool is_compressed;
  const ipc_read_options *options;
  hf_error *error;
} reader;

static uint64_t entry_at(const uint8_t *entries, size_t i, size_t half) {
  uint64_t value;
  memcpy(&value, entries + i * ENTRY_BYTES + half * sizeof value, sizeof value);
  return value;
}

/* Finds the next buffer as it lies in the body. */
static hf_status find_buffer(reader *r, const void **out, uint64_t *length) {
  static const uint64_t nothing[8] = {0};
  uint64_t offset = entry_at(r->buffers, r->buffer, 0);
  *length = entry_at(r->buffers, r->buffer, 1);
  r->buffer++;
  if (offset > r->body_bytes || *length > r->body_bytes - offset) {
    return corrupt(r->error, "a buffer ends behind the body", offset, r->body_bytes);
  }
  if (r->is_compressed && *length > 0 && *length < LZ4_PREFIX_BYTES) {
    return corrupt(r->error, "a buffer is too short", *length, LZ4_PREFIX_BYTES);
  }
  *out = *length == 0 ? (const void *)nothing : r->body + offset;
  if ((uintptr_t)*out % BUFFER_ALIGNMENT != 0) {
    return corrupt(r->error, "a buffer is not aligned", offset, BUFFER_ALIGNMENT);
  }
  uint64_t prefix = r->is_compressed ? LZ4_PREFIX_BYTES : 0;
  if (r->options->observe != NULL && *length > 0) {
    if (prefix > 0) {
      r->options->observe(r->options->observer, r->part, *out, prefix);
    }
    r->options->observe(r->options->observer, r->part, (const uint8_t *)*out + prefix, *length - prefix);
  }
  return HF_OK;
}

/* Unpacks a buffer in place of which `at` stands in the body; *length becomes its own. */
static hf_status unpack_buffer(reader *r, const uint8_t *at, uint64_t least, const void **out,
                               uint64_t *length) {
  int64_t declared = 0;
  memcpy(&declared, at, sizeof declared);
  uint64_t packed = *length - LZ4_PREFIX_BYTES;
  if (declared == LZ4_LEFT_ALONE) {
    *out = at + LZ4_PREFIX_BYTES;
    *length = packed;
    return HF_OK;
  }
  *length = (uint64_t)declared;
  if (declared < 0 || packed < *length / LZ4_MOST_RATIO || *length < least ||
      *length - least > MOST_PADDING) {
    return corrupt(r->error, "the length of a compressed buffer", *length, least);
  }
  if (r->d->lz4 == NULL) {
    HF_TRY(lz4_reader_new(&r->d->lz4, r->error));
  }
  lz4_frame frame = {.bytes = at + LZ4_PREFIX_BYTES, .length = packed, .content = *length};
  return *length == 0 ? HF_OK : lz4_unpack(r->d->lz4, &frame, &r->batch->unpacked, out, r->error);
}

/* Takes the next buffer, of at least `least` bytes. */
static hf_status take_buffer(reader *r, uint64_t least, const void **out, uint64_t *length) {
  HF_TRY(find_buffer(r, out, length));
  if (r->is_compressed && *length > 0) {
    HF_TRY(unpack_buffer(r, *out, least, out, length));
  }
  return *length < least ? corrupt(r->error, "a buffer is too short", *length, least) : HF_OK;
}

static hf_status take_validity(reader *r, struct ArrowArray *array) {
  uint64_t length;
  uint64_t rows = (uint64_t)array->length;
  if (array->null_count == 0) {
    HF_TRY(find_buffer(r, &array->buffers[0], &length));
    array->buffers[0] = NULL;
    return HF_OK;
  }
  HF_TRY(take_buffer(r, bits_bytes(rows), &array->buffers[0], &length));
  if (r->options->validate) {
    uint64_t nulls = rows - bits_count(array->buffers[0], 0, rows);
    if (nulls != (uint64_t)array->null_count) {
      return corrupt(r->error, "NULLs", nulls, (uint64_t)array->null_count);
    }
  }
  return HF_OK;
}

/* Takes offsets; *end is the last of them. Those in between are checked by validate_array. */
static hf_status take_offsets(reader *r, const layout *l, struct ArrowArray *array, uint64_t *end) {
  uint64_t length;
  uint64_t rows = (uint64_t)array->length;
  *end = 0;
  HF_TRY(take_buffer(r, rows == 0 ? 0 : (rows + 1) * l->width, &array->buffers[1], &length));
  if (rows > 0) {
    *end = gather_offset_at(array->buffers[1], l->width, rows);
    uint64_t start = gather_offset_at(array->buffers[1], l->width, 0);
    if (start > *end) {
      return corrupt(r->error, "offsets fall", *end, start);
    }
  }
  return HF_OK;
}

/* Beyond which the buffers of no batch with this body are. */
static uint64_t most_bytes(const reader *r) {
  return r->is_compressed ? r->body_bytes * LZ4_MOST_RATIO : r->body_bytes;
}

static hf_status take_buffers(reader *r, const layout *l, struct ArrowArray *array, uint64_t *end) {
  uint64_t length;
  uint64_t rows = (uint64_t)array->length;
  switch (l->kind) {
    case LAYOUT_FIXED:
    case LAYOUT_DICTIONARY:
      if (rows > most_bytes(r) / l->width) {
        return corrupt(r->error, "rows", rows, most_bytes(r) / l->width);
      }
      HF_TRY(take_validity(r, array));
      return take_buffer(r, rows * l->width, &array->buffers[1], &length);
    case LAYOUT_BITS:
      HF_TRY(take_validity(r, array));
      return take_buffer(r, bits_bytes(rows), &array->buffers[1], &length);
    case LAYOUT_BYTES:
      HF_TRY(take_validity(r, array));
      HF_TRY(take_offsets(r, l, array, end));
      return take_buffer(r, *end, &array->buffers[2], &length);
    case LAYOUT_LIST:
      HF_TRY(take_validity(r, array));
      return take_offsets(r, l, array, end);
    case LAYOUT_STRUCT:
    case LAYOUT_FIXED_LIST:
      return take_validity(r, array);
    case LAYOUT_UNION:
      return take_buffer(r, rows, &array->buffers[0], &length);
    default:
      return HF_OK;
  }
}

/* Reads one array and, below it, its children. */
static hf_status read_array(reader *r, const layout *l, struct ArrowArray *array) {
  uint64_t rows = entry_at(r->nodes, r->node, 0);
  uint64_t nulls = entry_at(r->nodes, r->node, 1);
  r->node++;
  uint64_t most = l->kind == LAYOUT_FIXED_LIST ? MOST_ROWS / l->width : MOST_ROWS;
  if (rows > most || nulls > rows) {
    return corrupt(r->error, "rows or NULLs", rows > most ? rows : nulls, rows > most ? most : rows);
  }
  decoded *batch = r->batch;
  size_t n_buffers = layout_buffers(l);
  *array = (struct ArrowArray){.length = (int64_t)rows,
                               .null_count = l->kind == LAYOUT_UNION ? 0 : (int64_t)nulls,
                               .n_buffers = (int64_t)n_buffers,
                               .buffers = batch->buffers + batch->used_buffers,
                               .release = release_array,
                               .private_data = batch};
  batch->used_buffers += n_buffers;
  take_children(batch, array, layout_array_children(l));
  uint64_t end = 0;
  HF_TRY(take_buffers(r, l, array, &end));
  for (size_t i = 0; i < layout_array_children(l); i++) {
    HF_TRY(read_array(r, &l->children[i], array->children[i]));
    uint64_t found = (uint64_t)array->children[i]->length;
    uint64_t expected = l->kind == LAYOUT_LIST ? end : l->kind == LAYOUT_FIXED_LIST ? rows * l->width : rows;
    if (l->kind == LAYOUT_LIST ? found < expected : found != expected) {
      return corrupt(r->error, "rows of a child", found, expected);
    }
  }
  return HF_OK;
}

static hf_status read_columns(reader *r, const ipc_decoder *d, struct ArrowArray *root) {
  take_children(r->batch, root, d->n_picked);
  for (size_t i = 0; i < d->n_picked; i++) {
    const picked *column = &d->picked[i];
    r->part = column->column + 1;
    r->node = column->node;
    r->buffer = column->buffer;
    HF_TRY(read_array(r, column->layout, root->children[i]));
    if (root->children[i]->length != root->length) {
      return corrupt(r->error, "rows of a column", (uint64_t)root->children[i]->length,
                     (uint64_t)root->length);
    }
    if (r->options->validate && column->layout->kind != LAYOUT_DICTIONARY) {
      HF_TRY(validate_array(column->layout, root->children[i], HF_E_BLOCK_CORRUPT, r->error));
    }
  }
  return HF_OK;
}

/* Finds header and body of the message at the cursor. */
static hf_status find_message(const ipc_cursor *from, flat_table *message, size_t *header_bytes,
                              hf_error *error) {
  uint32_t prefix[2] = {0, 0};
  if (from->left < PREFIX_BYTES) {
    return corrupt(error, "bytes left", from->left, PREFIX_BYTES);
  }
  memcpy(prefix, from->bytes, sizeof prefix);
  if (prefix[0] != UINT32_MAX || prefix[1] == 0 || prefix[1] > from->left - PREFIX_BYTES) {
    return corrupt(error, "length of a header", prefix[1], from->left - PREFIX_BYTES);
  }
  *header_bytes = PREFIX_BYTES + (size_t)prefix[1];
  if (!flat_root((const uint8_t *)from->bytes + PREFIX_BYTES, prefix[1], message)) {
    return corrupt(error, "the header is no flatbuffer", prefix[1], 0);
  }
  return HF_OK;
}

/* Finds the table "RecordBatch" of a message of the expected type: its header, or in its header of a dictionary. */
static bool find_batch(const flat_table *message, uint8_t type, flat_table *batch) {
  flat_table header = {0};
  if (type == RECORD_BATCH) {
    return flat_child(message, 2, batch);
  }
  return flat_child(message, 2, &header) && flat_child(&header, 1, batch);
}

/* Reads the table "BodyCompression", if it is there: LZ4_FRAME, buffer by buffer, is 0 and 0. */
static hf_status read_compression(reader *r, const flat_table *batch) {
  flat_table compression = {0};
  uint8_t codec = 0;
  uint8_t method = 0;
  r->is_compressed = flat_has(batch, 3);
  if (r->is_compressed &&
      (!flat_child(batch, 3, &compression) || !flat_scalar(&compression, 0, &codec, sizeof codec) ||
       !flat_scalar(&compression, 1, &method, sizeof method) || codec != 0 || method != 0)) {
    return corrupt(r->error, "compression of the batch", codec, 0);
  }
  return HF_OK;
}

/* Reads the tables "Message" and "RecordBatch". Source: https://github.com/apache/arrow/blob/main/format/Message.fbs */
static hf_status read_header(reader *r, const ipc_decoder *d, const flat_table *message, uint8_t expected,
                             uint64_t *rows) {
  int16_t version = 0;
  uint8_t type = 0;
  flat_table batch = {0};
  size_t n_nodes = 0;
  size_t n_buffers = 0;
  if (!flat_scalar(message, 0, &version, sizeof version) || !flat_scalar(message, 1, &type, sizeof type) ||
      !flat_scalar(message, 3, &r->body_bytes, sizeof r->body_bytes) || version != VERSION_5 ||
      type != expected || !find_batch(message, type, &batch)) {
    return corrupt(r->error, "type of the message", type, expected);
  }
  if (!flat_scalar(&batch, 0, rows, sizeof *rows) ||
      !flat_vector(&batch, 1, ENTRY_BYTES, &r->nodes, &n_nodes) ||
      !flat_vector(&batch, 2, ENTRY_BYTES, &r->buffers, &n_buffers) || *rows > MOST_ROWS) {
    return corrupt(r->error, "fields of the batch", *rows, 0);
  }
  HF_TRY(read_compression(r, &batch));
  if (n_nodes != d->n_nodes || n_buffers != d->n_buffers) {
    return corrupt(r->error, "nodes or buffers", n_nodes != d->n_nodes ? n_nodes : n_buffers,
                   n_nodes != d->n_nodes ? d->n_nodes : d->n_buffers);
  }
  return HF_OK;
}

/* Finds the parts of the message at the cursor; its header is observed. */
static hf_status open_message(reader *r, const ipc_decoder *d, const ipc_cursor *from, uint8_t type,
                              uint64_t *rows) {
  flat_table message = {0};
  size_t header_bytes = 0;
  HF_TRY(find_message(from, &message, &header_bytes, r->error));
  HF_TRY(read_header(r, d, &message, type, rows));
  if (r->body_bytes > from->left - header_bytes) {
    return corrupt(r->error, "bytes of the body", from->left - header_bytes, r->body_bytes);
  }
  if (r->options->observe != NULL) {
    r->options->observe(r->options->observer, 0, from->bytes, header_bytes);
  }
  r->body = (const uint8_t *)from->bytes + header_bytes;
  return HF_OK;
}

/* Moves the cursor behind the message. */
static void pass_message(const reader *r, ipc_cursor *from) {
  const uint8_t *end = r->body + r->body_bytes;
  from->left -= (size_t)(end - (const uint8_t *)from->bytes);
  from->bytes = end;
}

static hf_status read_message(ipc_decoder *d, ipc_cursor *from, const ipc_read_options *options, uint8_t type,
                              struct ArrowArray *out, hf_error *error) {
  uint64_t rows = 0;
  reader r = {.d = d, .options = options, .error = error};
  HF_TRY(open_message(&r, d, from, type, &rows));
  r.batch = decoded_new(d, options);
  if (r.batch == NULL) {
    return no_memory(error);
  }
  struct ArrowArray root = {.length = (int64_t)rows,
                            .n_buffers = 1,
                            .buffers = r.batch->buffers + d->out_buffers,
                            .release = release_array,
                            .private_data = r.batch};
  hf_status status = read_columns(&r, d, &root);
  if (status != HF_OK) {
    decoded_free(r.batch);
    return status;
  }
  pass_message(&r, from);
  *out = root;
  return HF_OK;
}

hf_status ipc_read_batch(ipc_decoder *d, ipc_cursor *from, const ipc_read_options *options,
                         struct ArrowArray *out, hf_error *error) {
  return read_message(d, from, options, RECORD_BATCH, out, error);
}

hf_status ipc_observe_batch(const ipc_decoder *d, ipc_cursor *from, ipc_observe_fn observe, void *context,
                            hf_error *error) {
  ipc_read_options options = {.observe = observe, .observer = context};
  uint64_t rows = 0;
  uint64_t length = 0;
  const void *at = NULL;
  reader r = {.options = &options, .error = error};
  HF_TRY(open_message(&r, d, from, RECORD_BATCH, &rows));
  for (size_t i = 0; i < d->n_picked; i++) {
    r.part = d->picked[i].column + 1;
    r.buffer = d->picked[i].buffer;
    for (size_t k = 0; k < d->picked[i].n_buffers; k++) {
      HF_TRY(find_buffer(&r, &at, &length));
    }
  }
  pass_message(&r, from);
  return HF_OK;
}

hf_status ipc_read_dictionary(ipc_decoder *d, ipc_cursor *from, const ipc_read_options *options,
                              struct ArrowArray *out, hf_error *error) {
  return read_message(d, from, options, DICTIONARY_BATCH, out, error);
}

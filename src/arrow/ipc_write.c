/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing record batch and dictionary messages. Their header is small and always of one shape, so
 * it is laid out here, and the body goes to the file straight from the builder's
 * buffers. The schema message is in ipc_schema.c.
 *
 * The header of a batch (a flatbuffer; positions from its start, little endian):
 *     0 position of the message table, 16
 *     4 message vtable: size 12, table 20, fields version 16, type 18, header 4, body length 8
 *    16 message table: vtable distance, header position, body length, version V5, type 3
 *    36 batch vtable: size 10, table 20, fields length 8, nodes 4, buffers 16
 *    48 batch table: vtable distance, nodes position, length, buffers position
 *    68 nodes: count, then {rows, null count} of 8 bytes each
 *       buffers: 4 bytes of padding, count, then {offset in the body, length}
 * One of a compressed body has a field more, whose table says all by its defaults (LZ4_FRAME, buffer by buffer):
 *    36 batch vtable: size 12, table 24, …, compression 20
 *    48 batch table: …, compression position; nodes at 80
 *       behind the buffers: compression vtable: size 4, table 4; table: vtable distance
 * That of a dictionary has a table more; its batch is one of one column:
 *    36 dictionary vtable: size 10, table 24, fields id 8, data 4, is delta 16
 *    48 dictionary table: vtable distance, batch position, id, is delta
 *    72 batch vtable, then as above with the batch table at 88 and the nodes at 112
 * Source: https://github.com/apache/arrow/blob/main/format/Message.fbs
 */
#include "arrow/ipc.h"

#include "arrow/batch_internal.h"
#include "arrow/ipc_lz4.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are written as they lie in memory");

enum {
  ALIGNMENT = 64,
  PREFIX_BYTES = 8, /* continuation mark, length of the header */
  MESSAGE_AT = 16,
  ENTRY_BYTES = 16,
  PIECES_AT_ONCE = 512 /* below IOV_MAX of Linux */
};

static const uint8_t zeros[ALIGNMENT];
static const uint8_t end_of_stream[PREFIX_BYTES] = {0xff, 0xff, 0xff, 0xff};

static size_t padded(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
}

static void put_u16(uint8_t *at, uint16_t value) {
  memcpy(at, &value, sizeof value);
}

static void put_u32(uint8_t *at, uint32_t value) {
  memcpy(at, &value, sizeof value);
}

static void put_u64(uint8_t *at, uint64_t value) {
  memcpy(at, &value, sizeof value);
}

hf_status ipc_append_header(const uint8_t *header, size_t length, buf *out, hf_error *error) {
  size_t whole = padded(PREFIX_BYTES + length);
  char *at = buf_reserve(out, whole);
  if (at == NULL) {
    return no_memory(error);
  }
  memset(at, 0, whole);
  memcpy(at, end_of_stream, 4);
  put_u32((uint8_t *)at + 4, (uint32_t)(whole - PREFIX_BYTES));
  memcpy(at + PREFIX_BYTES, header, length);
  out->length += whole;
  return HF_OK;
}

void ipc_write_end(buf *out) {
  buf_append(out, end_of_stream, sizeof end_of_stream);
}

/* ------------------------------------------------------------ record batch */

/* What a batch consists of: nodes and buffers in the order of the schema. */
typedef struct message {
  const builder_node **nodes;
  struct iovec *buffers; /* unpadded */
  size_t *parts;         /* of each buffer: its column's number, from 1 */
  int64_t *prefixes;     /* compressed: what stands before each, its length or LZ4_LEFT_ALONE; else NULL */
  void **frames;         /* those that are our own */
  size_t n_nodes, n_buffers;
  size_t part; /* while buffers are added */
} message;

/* Where the tables of a header lie. */
typedef struct header_shape {
  uint8_t type;
  size_t vtable, batch, nodes;
  bool is_compressed;
} header_shape;

static const header_shape batch_shape_of = {.type = 3, .vtable = 36, .batch = 48, .nodes = 72};
static const header_shape compressed_shape = {
    .type = 3, .vtable = 36, .batch = 48, .nodes = 80, .is_compressed = true};
static const header_shape dictionary_shape = {.type = 2, .vtable = 72, .batch = 88, .nodes = 112};

static void count_parts(const builder_node *node, message *m) {
  for (size_t i = 0; i < node->n_children; i++) {
    m->n_nodes++;
    m->n_buffers += layout_buffers(node->children[i].layout);
    count_parts(&node->children[i], m);
  }
}

static void add_buffer(message *m, const growing *from, size_t length) {
  m->parts[m->n_buffers] = m->part;
  m->buffers[m->n_buffers++] = (struct iovec){.iov_base = from->data, .iov_len = length};
}

static void add_node(message *m, const builder_node *node) {
  static const growing no_offsets = {.data = (uint8_t *)zeros};
  const layout *l = node->layout;
  m->nodes[m->n_nodes++] = node;
  bool has_offsets = l->kind == LAYOUT_BYTES || l->kind == LAYOUT_LIST || l->kind == LAYOUT_VIEW;
  if (l->kind != LAYOUT_NULL && l->kind != LAYOUT_UNION && l->kind != LAYOUT_DENSE_UNION) {
    add_buffer(m, &node->validity, node->null_count > 0 ? node->validity.length : 0);
  }
  if (has_offsets && node->data.length == 0) {
    add_buffer(m, &no_offsets, l->width);
  } else if (l->kind != LAYOUT_NULL && l->kind != LAYOUT_STRUCT && l->kind != LAYOUT_FIXED_LIST) {
    add_buffer(m, &node->data, node->data.length);
  }
  if (l->kind == LAYOUT_BYTES || l->kind == LAYOUT_VIEW) {
    add_buffer(m, &node->values, node->values.length);
  }
  for (size_t i = 0; i < node->n_children; i++) {
    add_node(m, &node->children[i]);
  }
}

/* A column of codes: one node, two buffers. */
static void add_codes(message *m, const builder_node *node, const ipc_codes *codes) {
  m->nodes[m->n_nodes++] = node;
  add_buffer(m, &node->validity, node->null_count > 0 ? node->validity.length : 0);
  m->parts[m->n_buffers] = m->part;
  m->buffers[m->n_buffers++] =
      (struct iovec){.iov_base = (void *)codes->codes, .iov_len = (size_t)node->rows * codes->code_bytes};
}

static hf_status message_init(message *m, const batch_builder *b, const ipc_codes *codes, hf_error *error) {
  *m = (message){0};
  count_parts(&b->root, m);
  m->nodes = mem_zalloc(m->n_nodes, sizeof(builder_node *));
  m->buffers = mem_zalloc(m->n_buffers + 1, sizeof *m->buffers);
  m->parts = mem_zalloc(m->n_buffers + 1, sizeof *m->parts);
  if (m->nodes == NULL || m->buffers == NULL || m->parts == NULL) {
    return no_memory(error);
  }
  m->n_nodes = m->n_buffers = 0;
  for (size_t i = 0; i < b->root.n_children; i++) {
    m->part = i + 1;
    if (codes != NULL && codes[i].codes != NULL) {
      add_codes(m, &b->root.children[i], &codes[i]);
    } else {
      add_node(m, &b->root.children[i]);
    }
  }
  return HF_OK;
}

/* Puts frames in the place of the buffers that get shorter by it. */
static hf_status message_compress(message *m, hf_error *error) {
  m->prefixes = mem_zalloc(m->n_buffers + 1, sizeof *m->prefixes);
  m->frames = mem_zalloc(m->n_buffers + 1, sizeof(void *));
  if (m->prefixes == NULL || m->frames == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < m->n_buffers; i++) {
    struct iovec *at = &m->buffers[i];
    size_t length = 0;
    m->prefixes[i] = LZ4_LEFT_ALONE;
    HF_TRY(lz4_pack(at->iov_base, at->iov_len, &m->frames[i], &length, error));
    if (m->frames[i] != NULL) {
      m->prefixes[i] = (int64_t)at->iov_len;
      *at = (struct iovec){.iov_base = m->frames[i], .iov_len = length};
    }
  }
  return HF_OK;
}

static void message_reset(message *m) {
  for (size_t i = 0; m->frames != NULL && i < m->n_buffers; i++) {
    mem_free(m->frames[i]);
  }
  mem_free(m->frames);
  mem_free(m->prefixes);
  mem_free(m->nodes);
  mem_free(m->buffers);
  mem_free(m->parts);
}

/* Of a buffer, without padding. An empty one stays empty. */
static size_t buffer_bytes(const message *m, size_t i) {
  size_t length = m->buffers[i].iov_len;
  return length == 0 || m->prefixes == NULL ? length : LZ4_PREFIX_BYTES + length;
}

static size_t body_bytes(const message *m) {
  size_t bytes = 0;
  for (size_t i = 0; i < m->n_buffers; i++) {
    bytes += padded(buffer_bytes(m, i));
  }
  return bytes;
}

static void fill_message(const message *m, const header_shape *shape, uint8_t *header) {
  static const uint16_t vtable[] = {12, 20, 16, 18, 4, 8};
  enum { FIRST_TABLE = 48, VERSION_5 = 4 };
  put_u32(header, MESSAGE_AT);
  memcpy(header + 4, vtable, sizeof vtable);
  put_u32(header + MESSAGE_AT, MESSAGE_AT - 4);
  put_u32(header + MESSAGE_AT + 4, FIRST_TABLE - (MESSAGE_AT + 4));
  put_u64(header + MESSAGE_AT + 8, body_bytes(m));
  put_u16(header + MESSAGE_AT + 16, VERSION_5);
  header[MESSAGE_AT + 18] = shape->type;
}

/* The field "compression"; `at` is where its table may lie. */
static void fill_compression(size_t batch, size_t at, uint8_t *header) {
  static const uint16_t vtable[] = {4, 4};
  size_t table = at + sizeof vtable;
  memcpy(header + at, vtable, sizeof vtable);
  put_u32(header + table, (uint32_t)sizeof vtable);
  put_u32(header + batch + 20, (uint32_t)(table - (batch + 20)));
}

static void fill_batch(const message *m, const header_shape *shape, uint64_t rows, uint8_t *header) {
  static const uint16_t vtable[] = {10, 20, 8, 4, 16};
  static const uint16_t longer[] = {12, 24, 8, 4, 16, 20};
  size_t batch = shape->batch;
  memcpy(header + shape->vtable, shape->is_compressed ? longer : vtable,
         shape->is_compressed ? sizeof longer : sizeof vtable);
  put_u32(header + batch, (uint32_t)(batch - shape->vtable));
  put_u32(header + batch + 4, (uint32_t)(shape->nodes - 4 - (batch + 4)));
  put_u64(header + batch + 8, rows);
  size_t buffers_at = shape->nodes + m->n_nodes * ENTRY_BYTES + 8;
  put_u32(header + batch + 16, (uint32_t)(buffers_at - 4 - (batch + 16)));
  put_u32(header + shape->nodes - 4, (uint32_t)m->n_nodes);
  for (size_t i = 0; i < m->n_nodes; i++) {
    put_u64(header + shape->nodes + i * ENTRY_BYTES, (uint64_t)m->nodes[i]->rows);
    put_u64(header + shape->nodes + i * ENTRY_BYTES + 8, (uint64_t)m->nodes[i]->null_count);
  }
  put_u32(header + buffers_at - 4, (uint32_t)m->n_buffers);
  uint64_t offset = 0;
  for (size_t i = 0; i < m->n_buffers; i++) {
    put_u64(header + buffers_at + i * ENTRY_BYTES, offset);
    put_u64(header + buffers_at + i * ENTRY_BYTES + 8, buffer_bytes(m, i));
    offset += padded(buffer_bytes(m, i));
  }
  if (shape->is_compressed) {
    fill_compression(batch, buffers_at + m->n_buffers * ENTRY_BYTES, header);
  }
}

/* The table "DictionaryBatch"; see the head of this file. */
static void fill_dictionary(uint64_t id, bool is_delta, uint8_t *header) {
  static const uint16_t vtable[] = {10, 24, 8, 4, 16};
  enum { VTABLE = 36, TABLE = 48 };
  memcpy(header + VTABLE, vtable, sizeof vtable);
  put_u32(header + TABLE, TABLE - VTABLE);
  put_u32(header + TABLE + 4, (uint32_t)(dictionary_shape.batch - (TABLE + 4)));
  put_u64(header + TABLE + 8, id);
  header[TABLE + 16] = is_delta;
}

/* Makes a zeroed header with all but a dictionary's own table. */
static hf_status header_new(const message *m, const header_shape *shape, uint64_t rows, uint8_t **out,
                            size_t *length, hf_error *error) {
  size_t compression = shape->is_compressed ? 8 : 0;
  *length = shape->nodes + (m->n_nodes + m->n_buffers) * ENTRY_BYTES + 8 + compression;
  uint8_t *header = mem_zalloc(1, *length);
  if (header == NULL) {
    return no_memory(error);
  }
  fill_message(m, shape, header);
  fill_batch(m, shape, rows, header);
  *out = header;
  return HF_OK;
}

static hf_status append_batch_header(const message *m, uint64_t rows, buf *out, hf_error *error) {
  uint8_t *header = NULL;
  size_t length = 0;
  const header_shape *shape = m->prefixes == NULL ? &batch_shape_of : &compressed_shape;
  HF_TRY(header_new(m, shape, rows, &header, &length, error));
  hf_status status = ipc_append_header(header, length, out, error);
  mem_free(header);
  return status;
}

static hf_status append_dictionary_header(const message *m, const dictionary *d, uint32_t first, buf *out,
                                          hf_error *error) {
  uint8_t *header = NULL;
  size_t length = 0;
  HF_TRY(header_new(m, &dictionary_shape, d->n_entries - first, &header, &length, error));
  fill_dictionary(d->column, first > 0, header);
  hf_status status = ipc_append_header(header, length, out, error);
  mem_free(header);
  return status;
}

/* ------------------------------------------------------------------- sending */

/* Writes all pieces; takes them up again where a short write left off. */
static hf_status write_pieces(const ipc_target *to, struct iovec *pieces, int count, hf_error *error) {
  while (count > 0) {
    ssize_t written = writev(to->fd, pieces, count);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      int number = errno == EFBIG ? ENOSPC : errno; /* a limit on file sizes is a full disk to us */
      return error_set_errno(error, number, HF_E_IO, "cannot write %s", to->path);
    }
    size_t left = (size_t)written;
    while (count > 0 && left >= pieces->iov_len) {
      left -= pieces->iov_len;
      pieces++;
      count--;
    }
    if (count > 0) {
      pieces->iov_base = (uint8_t *)pieces->iov_base + left;
      pieces->iov_len -= left;
    }
  }
  return HF_OK;
}

static hf_status send_pieces(const ipc_target *to, struct iovec *pieces, int count, hf_error *error) {
  if (to->out == NULL) {
    return write_pieces(to, pieces, count, error);
  }
  for (int i = 0; i < count; i++) {
    buf_append(to->out, pieces[i].iov_base, pieces[i].iov_len);
  }
  return to->out->failed ? no_memory(error) : HF_OK;
}

static void observe(const ipc_target *to, size_t part, const void *bytes, size_t length) {
  if (to->observe != NULL) {
    to->observe(to->context, part, bytes, length);
  }
}

static hf_status send_message(const message *m, const buf *header, const ipc_target *to, hf_error *error) {
  struct iovec pieces[PIECES_AT_ONCE];
  int count = 0;
  observe(to, 0, header->data, header->length);
  pieces[count++] = (struct iovec){.iov_base = header->data, .iov_len = header->length};
  for (size_t i = 0; i < m->n_buffers; i++) {
    size_t length = buffer_bytes(m, i);
    size_t padding = padded(length) - length;
    if (length == 0) {
      continue;
    }
    if (count + 3 > PIECES_AT_ONCE) {
      HF_TRY(send_pieces(to, pieces, count, error));
      count = 0;
    }
    if (m->prefixes != NULL) {
      observe(to, m->parts[i], &m->prefixes[i], LZ4_PREFIX_BYTES);
      pieces[count++] = (struct iovec){.iov_base = &m->prefixes[i], .iov_len = LZ4_PREFIX_BYTES};
    }
    observe(to, m->parts[i], m->buffers[i].iov_base, m->buffers[i].iov_len);
    pieces[count++] = m->buffers[i];
    if (padding > 0) {
      pieces[count++] = (struct iovec){.iov_base = (void *)zeros, .iov_len = padding};
    }
  }
  return send_pieces(to, pieces, count, error);
}

hf_status ipc_write_batch_to(const batch_builder *b, const ipc_target *to, uint64_t *written,
                             hf_error *error) {
  message m;
  buf header = {0};
  hf_status status = message_init(&m, b, to->codes, error);
  if (status == HF_OK && to->compression == IPC_COMPRESSION_LZ4) {
    status = message_compress(&m, error);
  }
  if (status == HF_OK) {
    status = append_batch_header(&m, (uint64_t)b->root.rows, &header, error);
  }
  if (status == HF_OK) {
    status = send_message(&m, &header, to, error);
  }
  if (status == HF_OK) {
    *written = header.length + body_bytes(&m);
  }
  buf_reset(&header);
  message_reset(&m);
  return status;
}

hf_status ipc_write_batch(const batch_builder *b, buf *out, int fd, const char *path, uint64_t *written,
                          hf_error *error) {
  ipc_target to = {.out = out, .fd = fd, .path = path};
  return ipc_write_batch_to(b, &to, written, error);
}

/* ---------------------------------------------------------------- dictionaries */

/* Offsets of the entries from `first` on, which start at 0. */
static uint32_t *own_offsets(const dictionary *d, uint32_t first) {
  size_t n = (size_t)(d->n_entries - first) + 1;
  uint32_t *offsets = mem_alloc(n * sizeof *offsets);
  if (offsets != NULL) {
    memcpy(offsets, d->data + (size_t)first * sizeof *offsets, n * sizeof *offsets);
    for (size_t i = n; i > 0; i--) {
      offsets[i - 1] -= offsets[0];
    }
  }
  return offsets;
}

hf_status ipc_write_dictionary(const dictionary *d, uint32_t first, const ipc_target *to, uint64_t *written,
                               hf_error *error) {
  uint32_t none = 0;
  bool is_bytes = d->layout->kind == LAYOUT_BYTES;
  size_t entries = d->n_entries - first;
  size_t width = d->layout->width;
  uint32_t *offsets = is_bytes && entries > 0 ? own_offsets(d, first) : &none;
  builder_node node = {.rows = (int64_t)entries};
  const builder_node *nodes[] = {&node};
  size_t parts[] = {1, 1, 1};
  struct iovec buffers[3] = {{.iov_base = NULL}};
  message m = {
      .nodes = nodes, .buffers = buffers, .parts = parts, .n_nodes = 1, .n_buffers = is_bytes ? 3 : 2};
  if (offsets == NULL) {
    return no_memory(error);
  }
  if (is_bytes) {
    size_t start = d->value_bytes - offsets[entries];
    buffers[1] = (struct iovec){.iov_base = offsets, .iov_len = (entries + 1) * width};
    buffers[2] = (struct iovec){.iov_base = d->values + start, .iov_len = offsets[entries]};
  } else {
    buffers[1] = (struct iovec){.iov_base = d->data + first * width, .iov_len = entries * width};
  }
  buf header = {0};
  hf_status status = append_dictionary_header(&m, d, first, &header, error);
  if (status == HF_OK) {
    status = send_message(&m, &header, to, error);
  }
  *written = header.length + body_bytes(&m);
  buf_reset(&header);
  if (offsets != &none) {
    mem_free(offsets);
  }
  return status;
}

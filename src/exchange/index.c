/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of an attempt and its bytes. An attempt exists when its index does.
 *
 * All numbers are little endian:
 *     8 bytes "HFBLOCKS" · u32 version · u32 1 when ordered · u32 partitions · u32 files
 *     u64 rows · u64 bytes · u32 length of the Arrow schema message, then it
 *     u32 columns, each: text name, type
 *     u64 length of each file
 *     u32 dictionaries, each: u32 file · u32 column · u8 bytes of a code ·
 *         u32 pieces, each: u64 offset · u64 bytes · u64 entries · u64 XXH3
 *     u32 version of the hash · u32 hash columns, each: u32 column
 *     u8 1 when blocks have ranges
 *     u64 blocks, each: u32 file · u32 partition · u64 offset · u64 bytes · u64 rows · u64 of columns + 1 parts ·
 *         of each column its range: u64 NULLs · u8 1 when known · u64 of the least key, of the largest, two each
 *     u64 XXH3 of all before
 *   text: u32 length, then the bytes, without NUL
 *   type: u8 kind · u8 width · u8 scale · u64 array size · u32 children, types · u32 names, texts
 * The file may be damaged or hostile: counts are held against the bytes that are left before memory is taken for
 * them, and the depth of types is bounded.
 */
#include "exchange/exchange.h"

#include "arrow/dictionary.h"
#include "base/file.h"
#include "base/mem.h"

#include <string.h>
#include <xxhash.h>

enum {
  VERSION = 2,
  DEEPEST_TYPE = 64,
  LEAST_COLUMN_BYTES = 4 + 19,
  LEAST_TYPE_BYTES = 19,
  BLOCK_BYTES = 32, /* without parts and ranges */
  BLOCK_RANGE_BYTES = 8 + 1 + 32,
  PIECE_BYTES = 32,
  LEAST_DICTIONARY_BYTES = 4 + 4 + 1 + 4,
  FOOTER_BYTES = 8
};

static const char magic[8] = {'H', 'F', 'B', 'L', 'O', 'C', 'K', 'S'};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in memory");

void block_checksum_add(uint64_t *parts, size_t part, const void *bytes, size_t length) {
  parts[part] = XXH3_64bits_withSeed(bytes, length, parts[part]);
}

/* ------------------------------------------------------------------ encoding */

static void put_u8(buf *out, uint8_t value) {
  buf_append(out, &value, sizeof value);
}

static void put_u32(buf *out, size_t value) {
  uint32_t narrow = (uint32_t)value;
  buf_append(out, &narrow, sizeof narrow);
}

static void put_u64(buf *out, uint64_t value) {
  buf_append(out, &value, sizeof value);
}

static void put_bytes(buf *out, const void *bytes, size_t length) {
  put_u32(out, length);
  buf_append(out, bytes, length);
}

static void put_text(buf *out, const char *text) {
  put_bytes(out, text, strlen(text));
}

static void put_type(buf *out, const data_type *type) {
  put_u8(out, (uint8_t)type->kind);
  put_u8(out, type->width);
  put_u8(out, type->scale);
  put_u64(out, type->array_size);
  put_u32(out, type->n_children);
  for (size_t i = 0; i < type->n_children; i++) {
    put_type(out, type->children[i]);
  }
  put_u32(out, type->n_names);
  for (size_t i = 0; i < type->n_names; i++) {
    put_text(out, type->names[i]);
  }
}

static void put_dictionaries(buf *out, const block_index *index) {
  put_u32(out, index->n_dictionaries);
  for (size_t i = 0; i < index->n_dictionaries; i++) {
    const block_dictionary *d = &index->dictionaries[i];
    put_u32(out, d->file);
    put_u32(out, d->column);
    put_u8(out, d->code_bytes);
    put_u32(out, d->n_pieces);
    for (size_t j = 0; j < d->n_pieces; j++) {
      put_u64(out, d->pieces[j].offset);
      put_u64(out, d->pieces[j].bytes);
      put_u64(out, d->pieces[j].entries);
      put_u64(out, d->pieces[j].checksum);
    }
  }
}

static void put_ranges(buf *out, const block_range *ranges, size_t n) {
  for (size_t i = 0; i < n; i++) {
    put_u64(out, ranges[i].nulls);
    put_u8(out, ranges[i].is_known);
    put_u64(out, ranges[i].least.high);
    put_u64(out, ranges[i].least.low);
    put_u64(out, ranges[i].most.high);
    put_u64(out, ranges[i].most.low);
  }
}

static void put_blocks(buf *out, const block_index *index) {
  put_u64(out, index->n_blocks);
  for (size_t i = 0; i < index->n_blocks; i++) {
    const block *b = &index->blocks[i];
    put_u32(out, b->file);
    put_u32(out, b->partition);
    put_u64(out, b->offset);
    put_u64(out, b->bytes);
    put_u64(out, b->rows);
    buf_append(out, b->parts, (index->columns.n_columns + 1) * sizeof *b->parts);
    if (index->has_ranges) {
      put_ranges(out, b->ranges, index->columns.n_columns);
    }
  }
}

hf_status block_index_encode(const block_index *index, buf *out, hf_error *error) {
  size_t start = out->length;
  buf_append(out, magic, sizeof magic);
  put_u32(out, VERSION);
  put_u32(out, index->ordered);
  put_u32(out, index->partitions);
  put_u32(out, index->n_files);
  put_u64(out, index->rows);
  put_u64(out, index->bytes);
  put_bytes(out, index->arrow_schema, index->arrow_schema_bytes);
  put_u32(out, index->columns.n_columns);
  for (size_t i = 0; i < index->columns.n_columns; i++) {
    put_text(out, index->columns.columns[i].name);
    put_type(out, index->columns.columns[i].type);
  }
  for (uint32_t i = 0; i < index->n_files; i++) {
    put_u64(out, index->file_bytes[i]);
  }
  put_dictionaries(out, index);
  put_u32(out, index->hash_version);
  put_u32(out, index->n_hash_columns);
  for (uint32_t i = 0; i < index->n_hash_columns; i++) {
    put_u32(out, index->hash_columns[i]);
  }
  put_u8(out, index->has_ranges);
  put_blocks(out, index);
  if (out->failed) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an index of %zu blocks", index->n_blocks);
  }
  put_u64(out, XXH3_64bits(out->data + start, out->length - start));
  if (out->failed) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an index of %zu blocks", index->n_blocks);
  }
  return HF_OK;
}

/* ------------------------------------------------------------------ decoding */

typedef struct reader {
  const uint8_t *at;
  size_t left;
  arena *memory;
  hf_error *error;
} reader;

static hf_status damaged(const reader *r, const char *what) {
  return error_set(r->error, HF_E_BLOCK_CORRUPT, "an index is damaged: %s", what);
}

static hf_status no_memory(const reader *r) {
  return error_set(r->error, HF_E_OUT_OF_MEMORY, "no memory to read an index");
}

static hf_status take(reader *r, void *out, size_t bytes) {
  if (bytes > r->left) {
    return damaged(r, "it ends early");
  }
  memcpy(out, r->at, bytes);
  r->at += bytes;
  r->left -= bytes;
  return HF_OK;
}

/* Takes a byte that tells yes or no. */
static hf_status take_flag(reader *r, bool *out) {
  uint8_t flag = 0;
  HF_TRY(take(r, &flag, sizeof flag));
  *out = flag == 1;
  return flag <= 1 ? HF_OK : damaged(r, "a flag is neither 0 nor 1");
}

/* Takes a count of things that need at least `least_bytes` each. */
static hf_status take_count(reader *r, size_t least_bytes, size_t *out) {
  uint32_t count = 0;
  HF_TRY(take(r, &count, sizeof count));
  if (count > r->left / least_bytes) {
    return damaged(r, "a count is larger than what follows");
  }
  *out = count;
  return HF_OK;
}

static hf_status take_text(reader *r, const char **out) {
  size_t length = 0;
  HF_TRY(take_count(r, 1, &length));
  if (memchr(r->at, '\0', length) != NULL) {
    return damaged(r, "a name holds a NUL");
  }
  *out = arena_strndup(r->memory, (const char *)r->at, length);
  r->at += length;
  r->left -= length;
  return *out == NULL ? no_memory(r) : HF_OK;
}

static bool is_well_formed(const data_type *type) {
  size_t n = type->n_children;
  switch (type->kind) {
    case TYPE_LIST:
      return n == 1 && type->n_names == 0;
    case TYPE_ARRAY:
      return n == 1 && type->n_names == 0 && type->array_size > 0;
    case TYPE_MAP:
      return n == 2 && type->n_names == 0;
    case TYPE_STRUCT:
    case TYPE_UNION:
      return n > 0 && type->n_names == n;
    case TYPE_ENUM:
      return n == 0;
    case TYPE_DECIMAL:
      return n == 0 && type->n_names == 0 && type->width > 0 && type->width <= 38 &&
             type->scale <= type->width;
    default:
      return (size_t)type->kind < TYPE_KIND_COUNT && n == 0 && type->n_names == 0;
  }
}

static hf_status take_type(reader *r, unsigned depth, data_type *out);

static hf_status take_children(reader *r, unsigned depth, data_type *out) {
  HF_TRY(take_count(r, LEAST_TYPE_BYTES, &out->n_children));
  data_type *types = arena_array(r->memory, out->n_children, sizeof *types);
  const data_type **children = arena_array(r->memory, out->n_children, sizeof(data_type *));
  if (types == NULL || children == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < out->n_children; i++) {
    HF_TRY(take_type(r, depth + 1, &types[i]));
    children[i] = &types[i];
  }
  out->children = children;
  return HF_OK;
}

static hf_status take_names(reader *r, data_type *out) {
  HF_TRY(take_count(r, sizeof(uint32_t), &out->n_names));
  const char **names = arena_array(r->memory, out->n_names, sizeof *names);
  if (names == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < out->n_names; i++) {
    HF_TRY(take_text(r, &names[i]));
  }
  out->names = names;
  return HF_OK;
}

static hf_status take_type(reader *r, unsigned depth, data_type *out) {
  uint8_t kind = 0;
  if (depth > DEEPEST_TYPE) {
    return damaged(r, "a type is nested too deeply");
  }
  HF_TRY(take(r, &kind, sizeof kind));
  HF_TRY(take(r, &out->width, sizeof out->width));
  HF_TRY(take(r, &out->scale, sizeof out->scale));
  HF_TRY(take(r, &out->array_size, sizeof out->array_size));
  out->kind = (type_kind)kind;
  HF_TRY(take_children(r, depth, out));
  HF_TRY(take_names(r, out));
  return is_well_formed(out) ? HF_OK : damaged(r, "a type is not well formed");
}

static hf_status take_columns(reader *r, schema *out) {
  HF_TRY(take_count(r, LEAST_COLUMN_BYTES, &out->n_columns));
  column *columns = arena_array(r->memory, out->n_columns, sizeof *columns);
  data_type *types = arena_array(r->memory, out->n_columns, sizeof *types);
  if (columns == NULL || types == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < out->n_columns; i++) {
    HF_TRY(take_text(r, &columns[i].name));
    HF_TRY(take_type(r, 0, &types[i]));
    columns[i].type = &types[i];
  }
  out->columns = columns;
  return HF_OK;
}

static hf_status take_head(reader *r, block_index *out) {
  char found[sizeof magic];
  uint32_t version = 0;
  uint32_t ordered = 0;
  HF_TRY(take(r, found, sizeof found));
  HF_TRY(take(r, &version, sizeof version));
  if (memcmp(found, magic, sizeof magic) != 0 || version != VERSION) {
    return damaged(r, "it is of another kind or version");
  }
  HF_TRY(take(r, &ordered, sizeof ordered));
  HF_TRY(take(r, &out->partitions, sizeof out->partitions));
  HF_TRY(take(r, &out->n_files, sizeof out->n_files));
  HF_TRY(take(r, &out->rows, sizeof out->rows));
  HF_TRY(take(r, &out->bytes, sizeof out->bytes));
  out->ordered = ordered != 0;
  HF_TRY(take_count(r, 1, &out->arrow_schema_bytes));
  void *arrow_schema = arena_alloc(r->memory, out->arrow_schema_bytes);
  if (arrow_schema == NULL) {
    return no_memory(r);
  }
  HF_TRY(take(r, arrow_schema, out->arrow_schema_bytes));
  out->arrow_schema = arrow_schema;
  return out->arrow_schema_bytes > 0 && out->partitions > 0 ? HF_OK
                                                            : damaged(r, "it has no schema or partitions");
}

static hf_status take_files(reader *r, block_index *out) {
  if (out->n_files > r->left / sizeof(uint64_t)) {
    return damaged(r, "a count is larger than what follows");
  }
  uint64_t *file_bytes = arena_array(r->memory, out->n_files, sizeof *file_bytes);
  if (file_bytes == NULL) {
    return no_memory(r);
  }
  HF_TRY(take(r, file_bytes, out->n_files * sizeof *file_bytes));
  out->file_bytes = file_bytes;
  return HF_OK;
}

static hf_status take_pieces(reader *r, const block_index *index, block_dictionary *out) {
  size_t count = 0;
  HF_TRY(take_count(r, PIECE_BYTES, &count));
  block_piece *pieces = arena_array(r->memory, count, sizeof *pieces);
  if (pieces == NULL) {
    return no_memory(r);
  }
  uint64_t file_bytes = index->file_bytes[out->file];
  uint64_t entries_left = out->code_bytes == 1 ? DICTIONARY_MOST_NARROW : DICTIONARY_MOST_WIDE;
  for (size_t i = 0; i < count; i++) {
    block_piece *p = &pieces[i];
    HF_TRY(take(r, &p->offset, sizeof p->offset));
    HF_TRY(take(r, &p->bytes, sizeof p->bytes));
    HF_TRY(take(r, &p->entries, sizeof p->entries));
    HF_TRY(take(r, &p->checksum, sizeof p->checksum));
    if (p->offset > file_bytes || p->bytes > file_bytes - p->offset || p->entries > entries_left) {
      return damaged(r, "a dictionary lies outside its file, or is larger than codes can tell");
    }
    entries_left -= p->entries;
  }
  out->n_pieces = (uint32_t)count;
  out->pieces = pieces;
  return HF_OK;
}

/* In ascending order of file and column, so that none is there twice. */
static hf_status take_dictionary(reader *r, const block_index *index, const block_dictionary *before,
                                 block_dictionary *out) {
  HF_TRY(take(r, &out->file, sizeof out->file));
  HF_TRY(take(r, &out->column, sizeof out->column));
  HF_TRY(take(r, &out->code_bytes, sizeof out->code_bytes));
  bool is_behind = before == NULL || out->file > before->file ||
                   (out->file == before->file && out->column > before->column);
  if (out->file >= index->n_files || out->column >= index->columns.n_columns || out->code_bytes < 1 ||
      out->code_bytes > 2 || !is_behind) {
    return damaged(r, "a dictionary is of no column, or of one that has one");
  }
  return take_pieces(r, index, out);
}

static hf_status take_dictionaries(reader *r, block_index *out) {
  HF_TRY(take_count(r, LEAST_DICTIONARY_BYTES, &out->n_dictionaries));
  block_dictionary *all = arena_array(r->memory, out->n_dictionaries, sizeof *all);
  if (all == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < out->n_dictionaries; i++) {
    HF_TRY(take_dictionary(r, out, i == 0 ? NULL : &all[i - 1], &all[i]));
  }
  out->dictionaries = all;
  return HF_OK;
}

static hf_status take_hash(reader *r, block_index *out) {
  size_t count = 0;
  HF_TRY(take(r, &out->hash_version, sizeof out->hash_version));
  HF_TRY(take_count(r, sizeof(uint32_t), &count));
  uint32_t *columns = arena_array(r->memory, count, sizeof *columns);
  if (columns == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < count; i++) {
    HF_TRY(take(r, &columns[i], sizeof columns[i]));
    if (columns[i] >= out->columns.n_columns) {
      return damaged(r, "rows were hashed by a column that is not there");
    }
  }
  out->n_hash_columns = (uint32_t)count;
  out->hash_columns = columns;
  return HF_OK;
}

static hf_status take_ranges(reader *r, const block_index *index, block *out) {
  size_t n = index->columns.n_columns;
  block_range *ranges = arena_array(r->memory, n, sizeof *ranges);
  if (ranges == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(take(r, &ranges[i].nulls, sizeof ranges[i].nulls));
    HF_TRY(take_flag(r, &ranges[i].is_known));
    HF_TRY(take(r, &ranges[i].least, sizeof ranges[i].least));
    HF_TRY(take(r, &ranges[i].most, sizeof ranges[i].most));
    if (ranges[i].nulls > out->rows) {
      return damaged(r, "a block has more NULLs than rows");
    }
  }
  out->ranges = ranges;
  return HF_OK;
}

static hf_status take_block(reader *r, const block_index *index, block *out) {
  HF_TRY(take(r, &out->file, sizeof out->file));
  HF_TRY(take(r, &out->partition, sizeof out->partition));
  HF_TRY(take(r, &out->offset, sizeof out->offset));
  HF_TRY(take(r, &out->bytes, sizeof out->bytes));
  HF_TRY(take(r, &out->rows, sizeof out->rows));
  size_t n_parts = index->columns.n_columns + 1;
  uint64_t *parts = arena_array(r->memory, n_parts, sizeof *parts);
  if (parts == NULL) {
    return no_memory(r);
  }
  HF_TRY(take(r, parts, n_parts * sizeof *parts));
  out->parts = parts;
  out->checksum = XXH3_64bits(parts, n_parts * sizeof *parts);
  if (out->file >= index->n_files || out->partition >= index->partitions ||
      out->offset > index->file_bytes[out->file] || out->bytes > index->file_bytes[out->file] - out->offset) {
    return damaged(r, "a block lies outside its file");
  }
  return index->has_ranges ? take_ranges(r, index, out) : HF_OK;
}

static hf_status take_blocks(reader *r, block_index *out) {
  uint64_t n_blocks = 0;
  HF_TRY(take_flag(r, &out->has_ranges));
  HF_TRY(take(r, &n_blocks, sizeof n_blocks));
  size_t n_columns = out->columns.n_columns;
  size_t ranges_bytes = out->has_ranges ? n_columns * BLOCK_RANGE_BYTES : 0;
  if (n_blocks > r->left / (BLOCK_BYTES + (n_columns + 1) * sizeof(uint64_t) + ranges_bytes)) {
    return damaged(r, "a count is larger than what follows");
  }
  block *blocks = arena_array(r->memory, n_blocks, sizeof *blocks);
  if (blocks == NULL) {
    return no_memory(r);
  }
  uint64_t rows_left = out->rows;
  uint64_t bytes_left = out->bytes;
  for (size_t i = 0; i < n_blocks; i++) {
    HF_TRY(take_block(r, out, &blocks[i]));
    if (blocks[i].rows > rows_left || blocks[i].bytes > bytes_left) {
      return damaged(r, "its blocks hold more than its totals");
    }
    rows_left -= blocks[i].rows;
    bytes_left -= blocks[i].bytes;
  }
  out->n_blocks = n_blocks;
  out->blocks = blocks;
  return rows_left == 0 && bytes_left == 0 ? HF_OK : damaged(r, "its blocks hold less than its totals");
}

hf_status block_index_decode(const void *bytes, size_t length, arena *a, block_index *out, hf_error *error) {
  reader r = {.at = bytes, .left = length, .memory = a, .error = error};
  uint64_t checksum = 0;
  if (length < FOOTER_BYTES) {
    return damaged(&r, "it ends early");
  }
  r.left -= FOOTER_BYTES;
  memcpy(&checksum, (const uint8_t *)bytes + r.left, sizeof checksum);
  if (checksum != XXH3_64bits(bytes, r.left)) {
    return damaged(&r, "its checksum does not hold");
  }
  block_index made = {0};
  HF_TRY(take_head(&r, &made));
  HF_TRY(take_columns(&r, &made.columns));
  HF_TRY(take_files(&r, &made));
  HF_TRY(take_dictionaries(&r, &made));
  HF_TRY(take_hash(&r, &made));
  HF_TRY(take_blocks(&r, &made));
  if (r.left != 0) {
    return damaged(&r, "bytes are left over");
  }
  *out = made;
  return HF_OK;
}

hf_status block_index_load(const char *dir, arena *a, block_index *out, hf_error *error) {
  const char *path = arena_printf(a, "%s/index", dir);
  if (path == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path");
  }
  char *bytes = NULL;
  size_t length = 0;
  HF_TRY(file_read_whole(path, BLOCK_INDEX_LARGEST_BYTES, HF_E_BLOCK_MISSING, &bytes, &length, error));
  hf_status status = block_index_decode(bytes, length, a, out, error);
  mem_free(bytes);
  if (status == HF_E_BLOCK_CORRUPT) {
    error_wrap(error, "%s", path);
  }
  return status;
}

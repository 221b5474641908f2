/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries that are read: pieces merged into one array of values with a NULL
 * behind them, and codes turned back into values for a reader that knows no
 * dictionaries.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"
#include "base/mem.h"

#include <string.h>

/* An array in memory of its own. */
typedef struct own_array {
  const void *buffers[3];
  uint8_t *memory;            /* of all buffers */
  struct ArrowArray original; /* whose validity is used; or none */
} own_array;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the values of a dictionary");
}

static void own_release(struct ArrowArray *array) {
  own_array *own = array->private_data;
  if (own->original.release != NULL) {
    own->original.release(&own->original);
  }
  mem_free(own->memory);
  mem_free(own);
  array->release = NULL;
}

/* The value width of a fixed column, 0 of one of bytes. */
static hf_status width_of(const struct ArrowSchema *field, size_t *width, hf_error *error) {
  struct ArrowSchema *fields[] = {(struct ArrowSchema *)field};
  struct ArrowSchema root = {.format = "+s", .n_children = 1, .children = fields};
  arena *memory = arena_new();
  if (memory == NULL) {
    return no_memory(error);
  }
  layout l;
  hf_status status = layout_of_schema(&root, memory, &l, error);
  if (status == HF_OK) {
    const layout *values = l.children;
    bool is_bytes = values->kind == LAYOUT_BYTES && values->width == 4;
    bool is_fixed = values->kind == LAYOUT_FIXED && values->change != LAYOUT_INTERVAL;
    *width = is_bytes ? 0 : values->width;
    if (!is_bytes && !is_fixed) {
      status =
          error_set(error, HF_E_BLOCK_CORRUPT, "a column of this type has no dictionary: %s", field->format);
    }
  }
  arena_free(memory);
  return status;
}

/* --------------------------------------------------------------------- merging */

/* What is merged. */
typedef struct merged {
  const struct ArrowArray *const *pieces;
  size_t n_pieces;
  size_t width; /* of a value; 0: bytes with offsets */
  uint64_t entries, bytes;
} merged;

static hf_status measure(merged *m, hf_error *error) {
  for (size_t i = 0; i < m->n_pieces; i++) {
    uint64_t rows = (uint64_t)m->pieces[i]->length;
    const uint8_t *offsets = m->pieces[i]->buffers[1];
    m->entries += rows;
    for (uint64_t row = 0; m->width == 0 && row < rows; row++) {
      if (gather_offset_at(offsets, 4, row) > gather_offset_at(offsets, 4, row + 1)) {
        return error_set(error, HF_E_BLOCK_CORRUPT, "the offsets of a dictionary fall");
      }
    }
    m->bytes += m->width == 0 && rows > 0
                    ? gather_offset_at(offsets, 4, rows) - gather_offset_at(offsets, 4, 0)
                    : rows * m->width;
  }
  return HF_OK;
}

/* Appends a piece's values behind `entries` entries and `bytes` bytes. */
static void copy_bytes(const struct ArrowArray *piece, uint8_t *offsets, uint64_t entries, uint8_t *values,
                       uint64_t bytes) {
  const uint8_t *from = piece->buffers[1];
  uint64_t rows = (uint64_t)piece->length;
  uint64_t start = gather_offset_at(from, 4, 0);
  uint64_t end = gather_offset_at(from, 4, rows);
  for (uint64_t row = 0; row < rows; row++) {
    uint32_t offset = (uint32_t)(gather_offset_at(from, 4, row + 1) - start + bytes);
    memcpy(offsets + (entries + row + 1) * 4, &offset, sizeof offset);
  }
  if (end > start) {
    memcpy(values + bytes, (const uint8_t *)piece->buffers[2] + start, end - start);
  }
}

/* Where the parts of the one block of memory lie; zeroed, so that the NULL entry is an empty value. */
static hf_status fill(own_array *own, const merged *m, hf_error *error) {
  size_t width = m->width;
  uint64_t entries = m->entries;
  size_t bitmap_bytes = bits_bytes(entries + 1) / 8 * 8 + 8;
  size_t data_bytes = (size_t)(width == 0 ? (entries + 2) * 4 + 4 : (entries + 1) * width);
  size_t values_at = bitmap_bytes + data_bytes / 8 * 8 + 8;
  own->memory = mem_zalloc(1, values_at + (width == 0 ? m->bytes : 0) + 8);
  if (own->memory == NULL) {
    return no_memory(error);
  }
  uint8_t *data = own->memory + bitmap_bytes;
  uint8_t *values = own->memory + values_at;
  bits_fill(own->memory, 0, entries, true);
  uint64_t done = 0;
  uint64_t used = 0;
  for (size_t i = 0; i < m->n_pieces; i++) {
    uint64_t rows = (uint64_t)m->pieces[i]->length;
    if (rows == 0) {
      continue;
    }
    if (width == 0) {
      copy_bytes(m->pieces[i], data, done, values, used);
      used = gather_offset_at(data, 4, done + rows);
    } else {
      memcpy(data + done * width, m->pieces[i]->buffers[1], rows * width);
    }
    done += rows;
  }
  if (width == 0) {
    memcpy(data + (entries + 1) * 4, data + entries * 4, 4);
  }
  own->buffers[0] = own->memory;
  own->buffers[1] = data;
  own->buffers[2] = values;
  return HF_OK;
}

hf_status dictionary_merge(const struct ArrowSchema *field, const struct ArrowArray *const *pieces,
                           size_t n_pieces, size_t code_bytes, struct ArrowArray *out, hf_error *error) {
  merged m = {.pieces = pieces, .n_pieces = n_pieces};
  HF_TRY(width_of(field, &m.width, error));
  HF_TRY(measure(&m, error));
  if (m.entries > (code_bytes == 1 ? DICTIONARY_MOST_NARROW : DICTIONARY_MOST_WIDE) ||
      m.bytes > DICTIONARY_MOST_BYTES) {
    return error_set(error, HF_E_BLOCK_CORRUPT, "a dictionary is too large: %llu entries of %llu bytes",
                     (unsigned long long)m.entries, (unsigned long long)m.bytes);
  }
  own_array *own = mem_zalloc(1, sizeof *own);
  if (own == NULL) {
    return no_memory(error);
  }
  hf_status status = fill(own, &m, error);
  if (status != HF_OK) {
    mem_free(own);
    return status;
  }
  *out = (struct ArrowArray){.length = (int64_t)m.entries + 1,
                             .null_count = 1,
                             .n_buffers = m.width == 0 ? 3 : 2,
                             .buffers = own->buffers,
                             .release = own_release,
                             .private_data = own};
  return HF_OK;
}

/* ------------------------------------------------------------------- unfolding */

static uint64_t code_at(const struct ArrowArray *array, size_t code_bytes, uint64_t row) {
  const uint8_t *codes = array->buffers[1];
  row += (uint64_t)array->offset;
  return code_bytes == 1 ? codes[row] : (uint64_t)((const uint16_t *)(const void *)codes)[row];
}

/* The bytes of all values; a code of no entry is refused. */
static hf_status unfolded_bytes(const struct ArrowArray *array, size_t code_bytes, size_t width,
                                uint64_t *bytes, hf_error *error) {
  const struct ArrowArray *entries = array->dictionary;
  uint64_t rows = (uint64_t)array->length;
  *bytes = rows * width;
  for (uint64_t row = 0; row < rows; row++) {
    uint64_t code = code_at(array, code_bytes, row);
    if (code >= (uint64_t)entries->length) {
      return error_set(error, HF_E_BLOCK_CORRUPT, "a code has no entry in its dictionary: %llu of %lld",
                       (unsigned long long)code, (long long)entries->length);
    }
    if (width == 0) {
      *bytes +=
          gather_offset_at(entries->buffers[1], 4, code + 1) - gather_offset_at(entries->buffers[1], 4, code);
    }
  }
  return *bytes <= INT32_MAX || width > 0
             ? HF_OK
             : error_set(error, HF_E_LIMIT, "a column passes 2 GiB in one batch: %llu bytes",
                         (unsigned long long)*bytes);
}

/* Rows of the result lie where those of the codes do, so that their validity is used as it is. */
static void unfold_rows(const struct ArrowArray *array, size_t code_bytes, size_t width, uint8_t *data,
                        uint8_t *values) {
  const struct ArrowArray *entries = array->dictionary;
  const uint8_t *offsets = entries->buffers[1];
  uint64_t base = (uint64_t)array->offset;
  uint32_t end = 0;
  for (uint64_t row = 0; row < (uint64_t)array->length; row++) {
    uint64_t code = code_at(array, code_bytes, row);
    if (width > 0) {
      memcpy(data + (base + row) * width, offsets + code * width, width);
      continue;
    }
    uint32_t start = (uint32_t)gather_offset_at(offsets, 4, code);
    uint32_t length = (uint32_t)gather_offset_at(offsets, 4, code + 1) - start;
    if (length > 0) {
      memcpy(values + end, (const uint8_t *)entries->buffers[2] + start, length);
    }
    end += length;
    memcpy(data + (base + row + 1) * 4, &end, sizeof end);
  }
}

static hf_status unfold(const struct ArrowSchema *field, struct ArrowArray *array, size_t code_bytes,
                        own_array *own, size_t *width, hf_error *error) {
  uint64_t bytes = 0;
  HF_TRY(width_of(field, width, error));
  HF_TRY(unfolded_bytes(array, code_bytes, *width, &bytes, error));
  size_t rows = (size_t)(array->offset + array->length);
  size_t data_bytes = (*width == 0 ? (rows + 1) * 4 : rows * *width) / 8 * 8 + 8;
  own->memory = mem_zalloc(1, data_bytes + (*width == 0 ? bytes : 0));
  if (own->memory == NULL) {
    return no_memory(error);
  }
  unfold_rows(array, code_bytes, *width, own->memory, own->memory + data_bytes);
  own->buffers[0] = array->buffers[0];
  own->buffers[1] = own->memory;
  own->buffers[2] = own->memory + data_bytes;
  return HF_OK;
}

hf_status dictionary_unfold(const struct ArrowSchema *field, struct ArrowArray *array, size_t code_bytes,
                            hf_error *error) {
  size_t width = 0;
  own_array *own = mem_zalloc(1, sizeof *own);
  hf_status status = own == NULL ? no_memory(error) : unfold(field, array, code_bytes, own, &width, error);
  if (status != HF_OK) {
    mem_free(own);
    array->release(array);
    return status;
  }
  own->original = *array;
  own->original.dictionary = NULL; /* another's */
  array->n_buffers = width == 0 ? 3 : 2;
  array->buffers = own->buffers;
  array->dictionary = NULL;
  array->release = own_release;
  array->private_data = own;
  return HF_OK;
}

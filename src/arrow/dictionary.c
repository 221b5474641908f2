/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries while they grow: values are found by an open hash table of entry
 * numbers, and lie as Arrow lays them out, so that pieces of them are written as
 * they are. What readers do is in dictionary_read.c.
 */
#include "arrow/batch_internal.h"

#include "arrow/bits.h"
#include "base/mem.h"

#include <string.h>
#include <xxhash.h>

enum {
  FIRST_SLOTS = 1024,
  JUDGED_LEAST_ROWS = 512, /* of fewer rows a dictionary saves nothing worth its message */
  JUDGED_NARROW = 192      /* distinct values of a first batch beyond which one byte will hardly do */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a dictionary");
}

static uint32_t most_entries(const dictionary *d) {
  return d->code_bytes == 1 ? DICTIONARY_MOST_NARROW : DICTIONARY_MOST_WIDE;
}

static bool is_bytes(const dictionary *d) {
  return d->layout->kind == LAYOUT_BYTES;
}

/* --------------------------------------------------------------------- slots */

/* Slots hold entry numbers + 1; at most half of them are taken. */
static hf_status slots_grow(dictionary *d, hf_error *error) {
  size_t n = d->n_slots == 0 ? FIRST_SLOTS : d->n_slots * 4;
  uint32_t *slots = mem_zalloc(n, sizeof *slots);
  if (slots == NULL) {
    return no_memory(error);
  }
  for (uint32_t i = 0; i < d->n_entries; i++) {
    size_t at = d->hashes[i] & (n - 1);
    while (slots[at] != 0) {
      at = (at + 1) & (n - 1);
    }
    slots[at] = i + 1;
  }
  mem_free(d->slots);
  d->slots = slots;
  d->n_slots = n;
  return HF_OK;
}

static void *grow(void *block, size_t needed, size_t *capacity) {
  if (needed <= *capacity) {
    return block;
  }
  size_t bytes = *capacity * 2 < needed ? needed : *capacity * 2;
  void *grown = mem_realloc(block, bytes);
  if (grown != NULL) {
    *capacity = bytes;
  }
  return grown;
}

static hf_status reserve(dictionary *d, size_t value_bytes, hf_error *error) {
  size_t n = (size_t)d->n_entries + 1;
  uint32_t *hashes = grow(d->hashes, n * sizeof *hashes, &d->hashes_capacity);
  d->hashes = hashes == NULL ? d->hashes : hashes;
  uint8_t *data = grow(d->data, is_bytes(d) ? (n + 1) * 4 : n * d->layout->width, &d->data_capacity);
  d->data = data == NULL ? d->data : data;
  uint8_t *values = is_bytes(d) ? grow(d->values, d->value_bytes + value_bytes, &d->values_capacity) : NULL;
  d->values = values == NULL ? d->values : values;
  if (hashes == NULL || data == NULL || (is_bytes(d) && value_bytes > 0 && values == NULL)) {
    return no_memory(error);
  }
  return d->n_entries * (size_t)2 >= d->n_slots ? slots_grow(d, error) : HF_OK;
}

static uint32_t entry_start(const dictionary *d, uint32_t i) {
  uint32_t start;
  memcpy(&start, d->data + (size_t)i * 4, sizeof start);
  return start;
}

/* Adds an entry at a slot that is free; *code is NO_CODE when it does not fit. */
static hf_status add_entry(dictionary *d, uint32_t hash, const void *value, size_t length, uint32_t *code,
                           hf_error *error) {
  *code = DICTIONARY_NO_CODE;
  if (d->n_entries == most_entries(d) ||
      d->value_bytes + length + ((size_t)d->n_entries + 2) * 4 > DICTIONARY_MOST_BYTES) {
    return HF_OK;
  }
  HF_TRY(reserve(d, length, error));
  size_t at = hash & (d->n_slots - 1);
  while (d->slots[at] != 0) {
    at = (at + 1) & (d->n_slots - 1);
  }
  d->slots[at] = d->n_entries + 1;
  d->hashes[d->n_entries] = hash;
  if (is_bytes(d)) {
    uint32_t end = (uint32_t)(d->value_bytes + length);
    memset(d->data, 0, 4);
    if (length > 0) {
      memcpy(d->values + d->value_bytes, value, length);
    }
    memcpy(d->data + ((size_t)d->n_entries + 1) * 4, &end, sizeof end);
    d->value_bytes += length;
  } else {
    memcpy(d->data + (size_t)d->n_entries * length, value, length);
  }
  *code = d->n_entries++;
  return HF_OK;
}

/* ---------------------------------------------------------------------- codes */

static void put_code(void *codes, size_t code_bytes, uint64_t row, uint32_t code) {
  if (code_bytes == 1) {
    ((uint8_t *)codes)[row] = (uint8_t)code;
  } else {
    ((uint16_t *)codes)[row] = (uint16_t)code;
  }
}

static uint32_t hash_fixed(uint64_t value) {
  value *= UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(value >> 32);
}

static uint64_t fixed_at(const uint8_t *from, size_t width, uint64_t row) {
  uint64_t value = 0;
  if (width == 4) {
    memcpy(&value, from + row * 4, 4);
  } else {
    memcpy(&value, from + row * 8, 8);
  }
  return value;
}

static hf_status fixed_code(dictionary *d, uint64_t value, uint32_t *code, hf_error *error) {
  size_t width = d->layout->width;
  uint32_t hash = hash_fixed(value);
  for (size_t at = hash & (d->n_slots - 1); d->slots[at] != 0; at = (at + 1) & (d->n_slots - 1)) {
    if (fixed_at(d->data, width, d->slots[at] - 1) == value) {
      *code = d->slots[at] - 1;
      return HF_OK;
    }
  }
  return add_entry(d, hash, &value, width, code, error);
}

static hf_status encode_fixed(dictionary *d, const builder_node *node, void *codes, hf_error *error) {
  size_t width = d->layout->width;
  const uint8_t *bitmap = node->null_count > 0 ? node->validity.data : NULL;
  uint64_t last = 0;
  uint32_t code = DICTIONARY_NO_CODE;
  for (uint64_t row = 0; row < (uint64_t)node->rows; row++) {
    if (bitmap != NULL && !bits_get(bitmap, row)) {
      put_code(codes, d->code_bytes, row, 0);
      continue;
    }
    uint64_t value = fixed_at(node->data.data, width, row);
    if (value != last || code == DICTIONARY_NO_CODE) {
      HF_TRY(fixed_code(d, value, &code, error));
      if (code == DICTIONARY_NO_CODE) {
        d->is_full = true;
        return HF_OK;
      }
      last = value;
    }
    put_code(codes, d->code_bytes, row, code);
  }
  return HF_OK;
}

/* Short values without a call: their first and last bytes, which overlap, tell them apart. */
static uint32_t hash_bytes(const uint8_t *bytes, size_t length) {
  uint64_t first = 0;
  uint64_t last = 0;
  if (length >= 8 && length <= 16) {
    memcpy(&first, bytes, 8);
    memcpy(&last, bytes + length - 8, 8);
  } else if (length >= 4 && length < 8) {
    memcpy(&first, bytes, 4);
    memcpy(&last, bytes + length - 4, 4);
  } else if (length > 16) {
    return (uint32_t)XXH3_64bits(bytes, length);
  } else if (length > 0) {
    first = (uint64_t)bytes[0] | (uint64_t)bytes[length / 2] << 8 | (uint64_t)bytes[length - 1] << 16;
  }
  uint64_t mixed = (first ^ (uint64_t)length) * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ (mixed >> 29) ^ last) * UINT64_C(0xbf58476d1ce4e5b9);
  return (uint32_t)(mixed >> 32);
}

/* Most values are short: no call for them. */
static bool is_same(const uint8_t *a, const uint8_t *b, size_t length) {
  uint64_t first[2] = {0, 0};
  uint64_t last[2] = {0, 0};
  if (length >= 8 && length <= 16) {
    memcpy(&first[0], a, 8);
    memcpy(&first[1], b, 8);
    memcpy(&last[0], a + length - 8, 8);
    memcpy(&last[1], b + length - 8, 8);
    return first[0] == first[1] && last[0] == last[1];
  }
  if (length >= 4 && length < 8) {
    memcpy(&first[0], a, 4);
    memcpy(&first[1], b, 4);
    memcpy(&last[0], a + length - 4, 4);
    memcpy(&last[1], b + length - 4, 4);
    return first[0] == first[1] && last[0] == last[1];
  }
  if (length < 4) {
    return length == 0 || (a[0] == b[0] && a[length / 2] == b[length / 2] && a[length - 1] == b[length - 1]);
  }
  return memcmp(a, b, length) == 0;
}

static hf_status bytes_code(dictionary *d, const uint8_t *bytes, size_t length, uint32_t *code,
                            hf_error *error) {
  uint32_t hash = hash_bytes(bytes, length);
  for (size_t at = hash & (d->n_slots - 1); d->slots[at] != 0; at = (at + 1) & (d->n_slots - 1)) {
    uint32_t entry = d->slots[at] - 1;
    uint32_t start = entry_start(d, entry);
    if (d->hashes[entry] == hash && entry_start(d, entry + 1) - start == length &&
        (length == 0 || is_same(d->values + start, bytes, length))) {
      *code = entry;
      return HF_OK;
    }
  }
  return add_entry(d, hash, bytes, length, code, error);
}

static hf_status encode_bytes(dictionary *d, const builder_node *node, void *codes, hf_error *error) {
  const uint8_t *bitmap = node->null_count > 0 ? node->validity.data : NULL;
  for (uint64_t row = 0; row < (uint64_t)node->rows; row++) {
    uint32_t code = 0;
    if (bitmap == NULL || bits_get(bitmap, row)) {
      uint64_t start = gather_offset_at(node->data.data, 4, row);
      size_t length = (size_t)(gather_offset_at(node->data.data, 4, row + 1) - start);
      const uint8_t *bytes = length == 0 ? (const uint8_t *)"" : node->values.data + start;
      HF_TRY(bytes_code(d, bytes, length, &code, error));
      if (code == DICTIONARY_NO_CODE) {
        d->is_full = true;
        return HF_OK;
      }
    }
    put_code(codes, d->code_bytes, row, code);
  }
  return HF_OK;
}

hf_status dictionary_encode(dictionary *d, const batch_builder *b, void *codes, bool *is_full,
                            hf_error *error) {
  const builder_node *node = &b->root.children[d->column];
  if (d->n_slots == 0) {
    HF_TRY(slots_grow(d, error));
  }
  HF_TRY(is_bytes(d) ? encode_bytes(d, node, codes, error) : encode_fixed(d, node, codes, error));
  *is_full = d->is_full;
  return HF_OK;
}

/* ----------------------------------------------------------------------- life */

hf_status dictionary_new(const batch_builder *b, size_t column, size_t code_bytes, dictionary **out,
                         hf_error *error) {
  dictionary *d = mem_zalloc(1, sizeof *d);
  if (d == NULL) {
    return no_memory(error);
  }
  d->layout = b->root.children[column].layout;
  d->column = column;
  d->code_bytes = code_bytes;
  *out = d;
  return HF_OK;
}

void dictionary_free(dictionary *d) {
  if (d != NULL) {
    mem_free(d->slots);
    mem_free(d->hashes);
    mem_free(d->data);
    mem_free(d->values);
    mem_free(d);
  }
}

size_t dictionary_bytes(const dictionary *d) {
  return sizeof *d + d->n_slots * sizeof *d->slots + d->hashes_capacity + d->data_capacity +
         d->values_capacity;
}

size_t dictionary_code_bytes(const dictionary *d) {
  return d->code_bytes;
}

uint32_t dictionary_entries(const dictionary *d) {
  return d->n_entries;
}

const void *dictionary_value(const dictionary *d, uint32_t entry, size_t *length) {
  if (!is_bytes(d)) {
    *length = d->layout->width;
    return d->data + entry * d->layout->width;
  }
  uint32_t start = entry_start(d, entry);
  *length = entry_start(d, entry + 1) - start;
  return d->values == NULL ? (const uint8_t *)"" : d->values + start;
}

/* Values of 4 or 8 bytes are worth a code of one byte only: reading them through two saves too little. */
static size_t judge_entries(const dictionary *d, uint64_t rows) {
  if (d->is_full || d->n_entries > rows / 2) {
    return 0;
  }
  if (d->n_entries <= JUDGED_NARROW) {
    return 1;
  }
  return is_bytes(d) && d->n_entries <= rows / 4 ? 2 : 0;
}

hf_status dictionary_judge(const batch_builder *b, size_t column, size_t *code_bytes, hf_error *error) {
  const builder_node *node = &b->root.children[column];
  *code_bytes = 0;
  if (!layout_allows_codes(node->layout) || node->rows < JUDGED_LEAST_ROWS) {
    return HF_OK;
  }
  dictionary *d = NULL;
  HF_TRY(dictionary_new(b, column, node->layout->kind == LAYOUT_BYTES ? 2 : 1, &d, error));
  void *codes = mem_alloc((size_t)node->rows * d->code_bytes);
  bool is_full = false;
  hf_status status = codes == NULL ? no_memory(error) : dictionary_encode(d, b, codes, &is_full, error);
  if (status == HF_OK) {
    *code_bytes = judge_entries(d, (uint64_t)node->rows);
  }
  mem_free(codes);
  dictionary_free(d);
  return status;
}

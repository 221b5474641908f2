/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread of a sink does for held results beyond writing batches: columns
 * whose values repeat get codes and dictionaries, blocks their ranges.
 *
 * A file's schema says which columns have codes, so that is decided by the first
 * batch. A dictionary that outgrows its codes or its share of memory ends the file;
 * the next one goes on without it, or with wider codes. Dictionaries are taken
 * along: in the next file they are written anew, in one piece.
 * Thread: that of the sink's state.
 */
#include "exchange/sink_internal.h"

#include "base/mem.h"

#include <string.h>
#include <xxhash.h>

typedef struct coded_column {
  range_kind kind;
  dictionary *dictionary; /* NULL: plain */
  uint32_t written;       /* entries that are in the file */
  void *codes;            /* of the batch */
  size_t codes_capacity;
  uint8_t file_code_bytes; /* in the file, whatever comes after it */
  uint32_t n_pieces;
  block_piece *pieces; /* of the file */
} coded_column;

struct sink_coding {
  size_t n_columns;
  size_t most_bytes; /* of all dictionaries */
  unsigned n_ended;  /* files that a full dictionary ended */
  coded_column *columns;
  uint8_t *code_bytes;
  ipc_codes *codes;
  block_range *ranges;
};

enum {
  MEMORY_SHARE = 16,
  LEAST_MEMORY = 128 << 10,
  FILES_AT_MOST = 16 /* that dictionaries may end: of a wide table each of many columns might end some */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the dictionaries of blocks");
}

void written_file_reset(written_file *file) {
  for (size_t i = 0; i < file->n_dictionaries; i++) {
    mem_free((void *)file->dictionaries[i].pieces);
  }
  mem_free(file->dictionaries);
  mem_free(file->ranges);
  mem_free(file->blocks);
  mem_free(file->parts);
  memset(file, 0, sizeof *file);
}

hf_status sink_coding_new(const block_sink *s, sink_coding **out, hf_error *error) {
  size_t n = s->columns.n_columns;
  sink_coding *c = mem_zalloc(1, sizeof *c);
  if (c == NULL) {
    return no_memory(error);
  }
  c->n_columns = n;
  c->most_bytes = (size_t)(s->options.budget_bytes / MEMORY_SHARE);
  c->columns = mem_zalloc(n, sizeof *c->columns);
  c->code_bytes = mem_zalloc(n, sizeof *c->code_bytes);
  c->codes = mem_zalloc(n, sizeof *c->codes);
  c->ranges = mem_zalloc(n, sizeof *c->ranges);
  if (c->columns == NULL || c->code_bytes == NULL || c->codes == NULL || c->ranges == NULL) {
    sink_coding_free(c);
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    c->columns[i].kind = range_kind_of(s->columns.columns[i].type);
  }
  *out = c;
  return HF_OK;
}

void sink_coding_free(sink_coding *c) {
  if (c == NULL) {
    return;
  }
  for (size_t i = 0; c->columns != NULL && i < c->n_columns; i++) {
    dictionary_free(c->columns[i].dictionary);
    mem_free(c->columns[i].codes);
    mem_free(c->columns[i].pieces);
  }
  mem_free(c->columns);
  mem_free(c->code_bytes);
  mem_free(c->codes);
  mem_free(c->ranges);
  mem_free(c);
}

static size_t dictionaries_bytes(const sink_coding *c) {
  size_t bytes = 0;
  for (size_t i = 0; i < c->n_columns; i++) {
    bytes += c->columns[i].dictionary == NULL ? 0 : dictionary_bytes(c->columns[i].dictionary);
  }
  return bytes;
}

size_t sink_coding_bytes(const sink_coding *c) {
  size_t each = sizeof(coded_column) + sizeof(uint8_t) + sizeof(ipc_codes) + sizeof(block_range);
  size_t bytes = dictionaries_bytes(c) + sizeof *c + c->n_columns * each;
  for (size_t i = 0; i < c->n_columns; i++) {
    bytes += c->columns[i].codes_capacity;
  }
  return bytes;
}

/* ---------------------------------------------------------------------- codes */

hf_status sink_coding_judge(sink_coding *c, const batch_builder *b, hf_error *error) {
  if (c->most_bytes < LEAST_MEMORY) {
    return HF_OK;
  }
  for (size_t i = 0; i < c->n_columns; i++) {
    size_t code_bytes = 0;
    HF_TRY(dictionary_judge(b, i, &code_bytes, error));
    if (code_bytes > 0) {
      HF_TRY(dictionary_new(b, i, code_bytes, &c->columns[i].dictionary, error));
      c->code_bytes[i] = (uint8_t)code_bytes;
    }
  }
  return HF_OK;
}

void sink_coding_begin_file(sink_coding *c) {
  for (size_t i = 0; i < c->n_columns; i++) {
    c->columns[i].written = 0;
    c->columns[i].n_pieces = 0;
    c->columns[i].file_code_bytes = c->code_bytes[i];
  }
}

const uint8_t *sink_coding_code_bytes(const sink_coding *c) {
  return c->code_bytes;
}

static void drop_codes(sink_coding *c, size_t number) {
  coded_column *of = &c->columns[number];
  dictionary_free(of->dictionary);
  of->dictionary = NULL;
  mem_free(of->codes);
  of->codes = NULL;
  of->codes_capacity = 0;
  c->code_bytes[number] = 0;
}

/* A column whose dictionary is full gets wider codes when it is one of bytes, else none. */
static hf_status give_up(sink_coding *c, size_t number, const batch_builder *b, hf_error *error) {
  coded_column *of = &c->columns[number];
  bool gets_wide = c->code_bytes[number] == 1 && batch_builder_column(b, number).is_bytes &&
                   dictionary_entries(of->dictionary) == DICTIONARY_MOST_NARROW;
  drop_codes(c, number);
  if (!gets_wide) {
    return HF_OK;
  }
  c->code_bytes[number] = 2;
  return dictionary_new(b, number, 2, &of->dictionary, error);
}

static hf_status encode_column(sink_coding *c, size_t number, const batch_builder *b, bool *is_full,
                               hf_error *error) {
  coded_column *of = &c->columns[number];
  size_t needed = (size_t)batch_builder_rows(b) * c->code_bytes[number];
  if (needed > of->codes_capacity) {
    void *codes = mem_realloc(of->codes, needed);
    if (codes == NULL) {
      return no_memory(error);
    }
    of->codes = codes;
    of->codes_capacity = needed;
  }
  return dictionary_encode(of->dictionary, b, of->codes, is_full, error);
}

hf_status sink_coding_encode(sink_coding *c, const batch_builder *b, bool *is_full, hf_error *error) {
  *is_full = false;
  size_t all_bytes = dictionaries_bytes(c);
  for (size_t i = 0; i < c->n_columns; i++) {
    c->codes[i] = (ipc_codes){.codes = NULL};
    if (c->columns[i].dictionary == NULL) {
      continue;
    }
    bool is_over = false;
    size_t before = dictionary_bytes(c->columns[i].dictionary);
    HF_TRY(encode_column(c, i, b, &is_over, error));
    all_bytes += dictionary_bytes(c->columns[i].dictionary) - before;
    if (is_over || all_bytes > c->most_bytes) {
      *is_full = true;
      all_bytes -= dictionary_bytes(c->columns[i].dictionary);
      HF_TRY(give_up(c, i, b, error));
      continue;
    }
    c->codes[i] = (ipc_codes){.codes = c->columns[i].codes, .code_bytes = c->code_bytes[i]};
  }
  c->n_ended += *is_full;
  for (size_t i = 0; *is_full && c->n_ended >= FILES_AT_MOST && i < c->n_columns; i++) {
    drop_codes(c, i);
  }
  return HF_OK;
}

const ipc_codes *sink_coding_codes(const sink_coding *c) {
  return c->codes;
}

/* --------------------------------------------------------------- dictionaries */

static bool has_news(const coded_column *of) {
  return of->dictionary != NULL && (of->n_pieces == 0 || dictionary_entries(of->dictionary) > of->written);
}

bool sink_coding_has_news(const sink_coding *c) {
  bool found = false;
  for (size_t i = 0; !found && i < c->n_columns; i++) {
    found = has_news(&c->columns[i]);
  }
  return found;
}

/* A piece's checksum is one of its parts in their order. */
static void observe(void *context, size_t part, const void *bytes, size_t length) {
  (void)part;
  block_checksum_add(context, 0, bytes, length);
}

static hf_status write_piece(coded_column *of, const ipc_target *to, uint64_t *offset, hf_error *error) {
  uint64_t written = 0;
  uint64_t checksum = 0;
  block_piece *pieces = mem_realloc(of->pieces, ((size_t)of->n_pieces + 1) * sizeof *pieces);
  if (pieces == NULL) {
    return no_memory(error);
  }
  of->pieces = pieces;
  ipc_target observed = *to;
  observed.observe = observe;
  observed.context = &checksum;
  HF_TRY(ipc_write_dictionary(of->dictionary, of->written, &observed, &written, error));
  uint32_t entries = dictionary_entries(of->dictionary);
  pieces[of->n_pieces++] = (block_piece){
      .offset = *offset, .bytes = written, .entries = entries - of->written, .checksum = checksum};
  of->written = entries;
  *offset += written;
  return HF_OK;
}

hf_status sink_coding_write(sink_coding *c, const ipc_target *to, uint64_t *offset, hf_error *error) {
  for (size_t i = 0; i < c->n_columns; i++) {
    if (has_news(&c->columns[i])) {
      HF_TRY(write_piece(&c->columns[i], to, offset, error));
    }
  }
  return HF_OK;
}

hf_status sink_coding_end_file(sink_coding *c, written_file *file, hf_error *error) {
  size_t n = 0;
  for (size_t i = 0; i < c->n_columns; i++) {
    n += c->columns[i].n_pieces > 0;
  }
  file->dictionaries = n == 0 ? NULL : mem_zalloc(n, sizeof *file->dictionaries);
  if (n > 0 && file->dictionaries == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < c->n_columns; i++) {
    coded_column *of = &c->columns[i];
    if (of->n_pieces > 0) {
      file->dictionaries[file->n_dictionaries++] = (block_dictionary){.file = file->number,
                                                                      .column = (uint32_t)i,
                                                                      .code_bytes = of->file_code_bytes,
                                                                      .n_pieces = of->n_pieces,
                                                                      .pieces = of->pieces};
      of->pieces = NULL;
      of->n_pieces = 0;
    }
  }
  return HF_OK;
}

/* --------------------------------------------------------------------- ranges */

void sink_coding_begin_block(sink_coding *c) {
  if (c->n_columns > 0) {
    memset(c->ranges, 0, c->n_columns * sizeof *c->ranges);
  }
}

static void widen(block_range *range, range_key least, range_key most) {
  if (!range->is_known || range_key_compare(least, range->least) < 0) {
    range->least = least;
  }
  if (!range->is_known || range_key_compare(most, range->most) > 0) {
    range->most = most;
  }
  range->is_known = true;
}

static bool is_valid(const batch_column *values, uint64_t row) {
  return values->validity == NULL || ((values->validity[row >> 3] >> (row & 7)) & 1) != 0;
}

static void widen_int32(block_range *range, const int32_t *from, uint64_t rows) {
  int32_t least = from[0];
  int32_t most = from[0];
  for (uint64_t i = 1; i < rows; i++) {
    least = from[i] < least ? from[i] : least;
    most = from[i] > most ? from[i] : most;
  }
  widen(range, range_key_signed(least), range_key_signed(most));
}

static void widen_int64(block_range *range, const int64_t *from, uint64_t rows) {
  int64_t least = from[0];
  int64_t most = from[0];
  for (uint64_t i = 1; i < rows; i++) {
    least = from[i] < least ? from[i] : least;
    most = from[i] > most ? from[i] : most;
  }
  widen(range, range_key_signed(least), range_key_signed(most));
}

static void widen_fixed(block_range *range, range_kind kind, const batch_column *values) {
  if (values->nulls == 0 && values->rows > 0 && kind == RANGE_INT32) {
    widen_int32(range, values->data, values->rows);
  } else if (values->nulls == 0 && values->rows > 0 && kind == RANGE_INT64) {
    widen_int64(range, values->data, values->rows);
  } else {
    for (uint64_t i = 0; i < values->rows; i++) {
      if (is_valid(values, i)) {
        range_key key = range_key_at(kind, values->data, i);
        widen(range, key, key);
      }
    }
  }
}

static void widen_bytes(block_range *range, const batch_column *values) {
  const uint32_t *offsets = values->data;
  for (uint64_t i = 0; i < values->rows; i++) {
    if (is_valid(values, i)) {
      const uint8_t *bytes = values->bytes == NULL ? (const uint8_t *)"" : values->bytes + offsets[i];
      range_key key = range_key_bytes(bytes, offsets[i + 1] - offsets[i]);
      widen(range, key, key);
    }
  }
}

/* Texts with codes: only the entries that the batch uses are looked at. */
static hf_status widen_coded(block_range *range, const coded_column *of, const batch_column *values,
                             size_t code_bytes) {
  uint32_t entries = dictionary_entries(of->dictionary);
  uint8_t *used = mem_zalloc((size_t)entries + 1, 1);
  if (used == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  for (uint64_t i = 0; i < values->rows; i++) {
    uint32_t code = code_bytes == 1 ? ((const uint8_t *)of->codes)[i] : ((const uint16_t *)of->codes)[i];
    used[code] |= (uint8_t)is_valid(values, i);
  }
  for (uint32_t i = 0; i < entries; i++) {
    if (used[i] != 0) {
      size_t length = 0;
      const void *bytes = dictionary_value(of->dictionary, i, &length);
      range_key key = range_key_bytes(bytes, length);
      widen(range, key, key);
    }
  }
  mem_free(used);
  return HF_OK;
}

void sink_coding_widen(sink_coding *c, const batch_builder *b) {
  for (size_t i = 0; i < c->n_columns; i++) {
    batch_column values = batch_builder_column(b, i);
    block_range *range = &c->ranges[i];
    range_kind kind = c->columns[i].kind;
    range->nulls += values.nulls;
    if (kind == RANGE_BYTES && values.is_bytes && values.rows > 0) {
      if (c->codes[i].codes == NULL ||
          widen_coded(range, &c->columns[i], &values, c->code_bytes[i]) != HF_OK) {
        widen_bytes(range, &values);
      }
    } else if (values.is_fixed && values.width == range_kind_bytes(kind) && values.rows > 0) {
      widen_fixed(range, kind, &values);
    }
  }
}

const block_range *sink_coding_ranges(const sink_coding *c) {
  return c->ranges;
}

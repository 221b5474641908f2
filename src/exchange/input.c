/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a task: blocks handed out to DuckDB's threads by a counter, decoded
 * where they are mapped, cut into windows of at most 2048 rows.
 * Thread: an input and a scan are shared, a state belongs to one thread.
 */
#include "exchange/exchange.h"

#include "arrow/ipc.h"
#include "base/fault.h"
#include "base/mem.h"
#include "exchange/block_set.h"

#include <string.h>

/* DuckDB's vectors hold as many. */
enum { MOST_ROWS = 2048 };

struct block_input {
  block_set set;
  schema columns;
  bool ordered, verify;
  unsigned threads;
  _Atomic uint64_t rows_read;
};

typedef struct input_scan {
  block_input *input;
  size_t n_columns;
  size_t *columns;
  atomic_size_t next_block;
} input_scan;

typedef struct input_state {
  input_scan *scan;
  ipc_decoder *decoder;             /* of batches with codes where code_bytes says; NULL: not opened */
  slicer *slicer;                   /* of the same */
  const uint8_t *code_bytes;        /* of the file being read; see set_block_code_bytes */
  source_dictionary **dictionaries; /* of its columns, one a column of the scan; NULL where it has no codes */
  const set_block *block;           /* the one being read, or NULL */
  ipc_cursor cursor;                /* its batches not yet decoded */
  uint64_t block_rows_left;         /* rows of it not yet decoded */
  struct ArrowArray batch;
  int64_t row;     /* the next of the batch */
  uint64_t *parts; /* columns + 1: checksums, while a block is verified */
} input_state;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

/* ---------------------------------------------------------------------- scan */

static hf_status scan_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                           unsigned *threads, hf_error *error) {
  block_input *input = source;
  input_scan *made = mem_zalloc(1, sizeof *made);
  size_t *copy = mem_zalloc(n_columns, sizeof *copy);
  if (made == NULL || copy == NULL) {
    mem_free(made);
    mem_free(copy);
    return no_memory(error);
  }
  if (n_columns > 0) {
    memcpy(copy, columns, n_columns * sizeof *copy);
  }
  made->input = input;
  made->n_columns = n_columns;
  made->columns = copy;
  atomic_init(&made->next_block, 0);
  size_t most = input->ordered ? 1 : input->threads;
  most = most < input->set.n_blocks ? most : input->set.n_blocks;
  *threads = most == 0 ? 1 : (unsigned)most;
  *scan = made;
  return HF_OK;
}

static void scan_close(void *scan) {
  input_scan *s = scan;
  mem_free(s->columns);
  mem_free(s);
}

static void state_reset(input_state *s) {
  slicer_free(s->slicer);
  ipc_decoder_free(s->decoder);
  s->slicer = NULL;
  s->decoder = NULL;
}

static void thread_close(void *state) {
  input_state *s = state;
  if (s->batch.release != NULL) {
    s->batch.release(&s->batch);
  }
  state_reset(s);
  mem_free(s->dictionaries);
  mem_free(s->parts);
  mem_free(s);
}

static hf_status thread_open(void *scan, void **state, hf_error *error) {
  input_scan *of = scan;
  input_state *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  s->scan = of;
  s->parts = mem_zalloc(of->input->columns.n_columns + 1, sizeof *s->parts);
  s->dictionaries = mem_zalloc(of->n_columns, sizeof(source_dictionary *));
  if (s->parts == NULL || s->dictionaries == NULL) {
    thread_close(s);
    return no_memory(error);
  }
  *state = s;
  return HF_OK;
}

/* Gets ready for the batches of a block's file, unless those before were of the same. */
static hf_status open_coding(input_state *s, const set_block *b, hf_error *error) {
  const input_scan *of = s->scan;
  const struct ArrowSchema *arrow_schema = &of->input->set.arrow_schema;
  const uint8_t *code_bytes = set_block_code_bytes(b);
  if (s->slicer != NULL && (s->code_bytes == code_bytes || FAULT("exchange.dictionary"))) {
    return HF_OK;
  }
  state_reset(s);
  s->code_bytes = code_bytes;
  for (size_t i = 0; i < of->n_columns; i++) {
    size_t number = of->columns[i];
    s->dictionaries[i] = NULL;
    if (code_bytes != NULL && code_bytes[number] > 0) {
      HF_TRY(block_attempt_dictionary(b->attempt, b->file_number, number, &s->dictionaries[i], error));
    }
  }
  HF_TRY(ipc_decoder_new_coded(arrow_schema, code_bytes, of->columns, of->n_columns, &s->decoder, error));
  return slicer_new_coded(arrow_schema, code_bytes, of->columns, of->n_columns, &s->slicer, error);
}

static void observe(void *context, size_t part, const void *bytes, size_t length) {
  block_checksum_add(context, part, bytes, length);
}

/* Runs through the batches of a block, to the checksums of its headers and of the columns that are read. */
static hf_status checksum_block(input_state *s, const set_block *b, hf_error *error) {
  ipc_cursor cursor = {.bytes = b->file->bytes + b->offset, .left = b->bytes};
  memset(s->parts, 0, (s->scan->input->columns.n_columns + 1) * sizeof *s->parts);
  while (cursor.left > 0) {
    HF_TRY(ipc_observe_batch(s->decoder, &cursor, observe, s->parts, error));
  }
  return HF_OK;
}

static bool is_part_verified(const set_block *b, size_t part) {
  return atomic_load_explicit(&b->is_verified[part], memory_order_acquire);
}

static bool is_verified(const input_state *s, const set_block *b) {
  bool all = is_part_verified(b, 0);
  for (size_t i = 0; all && i < s->scan->n_columns; i++) {
    all = is_part_verified(b, s->scan->columns[i] + 1);
  }
  return all;
}

static bool compare_part(const input_state *s, const set_block *b, size_t part) {
  if (s->parts[part] != b->parts[part] && !FAULT("exchange.checksum")) {
    return false;
  }
  atomic_store_explicit(&b->is_verified[part], true, memory_order_release);
  return true;
}

/* Compares what is read of a block with its checksums, once while its attempt is open. */
static hf_status verify_block(input_state *s, const set_block *b, hf_error *error) {
  if (is_verified(s, b)) {
    return HF_OK;
  }
  HF_TRY(block_set_blame(b, checksum_block(s, b, error), error));
  bool is_same = compare_part(s, b, 0);
  for (size_t i = 0; is_same && i < s->scan->n_columns; i++) {
    is_same = compare_part(s, b, s->scan->columns[i] + 1);
  }
  return is_same ? HF_OK
                 : error_set(error, HF_E_BLOCK_CORRUPT,
                             "a block does not match its checksums: the %llu bytes at %llu of %s",
                             (unsigned long long)b->bytes, (unsigned long long)b->offset, b->file->path);
}

/* Claims the next block; none is left when s->block is NULL afterwards. */
static hf_status claim_block(input_state *s, hf_error *error) {
  block_input *input = s->scan->input;
  size_t number = atomic_fetch_add_explicit(&s->scan->next_block, 1, memory_order_relaxed);
  s->block = NULL;
  if (number >= input->set.n_blocks) {
    return HF_OK;
  }
  const set_block *b = &input->set.blocks[number];
  if (s->scan->n_columns > 0) {
    HF_TRY(block_set_blame(b, open_coding(s, b, error), error));
    if (input->verify) {
      HF_TRY(verify_block(s, b, error));
    }
  }
  s->block = b;
  s->cursor = (ipc_cursor){.bytes = b->file->bytes + b->offset, .left = b->bytes};
  s->block_rows_left = b->rows;
  return HF_OK;
}

static hf_status decode_batch(input_state *s, hf_error *error) {
  static const ipc_read_options trusted = {.validate = false};
  if (s->batch.release != NULL) {
    s->batch.release(&s->batch);
  }
  s->row = 0;
  HF_TRY(
      block_set_blame(s->block, ipc_read_batch(s->decoder, &s->cursor, &trusted, &s->batch, error), error));
  uint64_t rows = (uint64_t)s->batch.length;
  if (rows > s->block_rows_left || (s->cursor.left == 0 && rows != s->block_rows_left)) {
    return error_set(
        error, HF_E_BLOCK_CORRUPT, "a block holds other rows than its index says: %llu, at %llu of %s",
        (unsigned long long)s->block->rows, (unsigned long long)s->block->offset, s->block->file->path);
  }
  s->block_rows_left -= rows;
  return HF_OK;
}

static void release_nothing(struct ArrowArray *array) {
  array->release = NULL;
}

static int64_t at_most(int64_t rows) {
  return rows < MOST_ROWS ? rows : MOST_ROWS;
}

/* Without columns nothing is decoded: a block's rows are known. */
static hf_status next_count(input_state *s, struct ArrowArray *out, hf_error *error) {
  while (s->block_rows_left == 0) {
    HF_TRY(claim_block(s, error));
    if (s->block == NULL) {
      break;
    }
  }
  int64_t count = at_most((int64_t)s->block_rows_left);
  s->block_rows_left -= (uint64_t)count;
  *out = (struct ArrowArray){.length = count, .release = release_nothing};
  return HF_OK;
}

static hf_status next_columns(input_state *s, struct ArrowArray *out, hf_error *error) {
  while (s->batch.release == NULL || s->row == s->batch.length) {
    while (s->cursor.left == 0) {
      HF_TRY(claim_block(s, error));
      if (s->block == NULL) {
        *out = (struct ArrowArray){.release = release_nothing};
        return HF_OK;
      }
    }
    HF_TRY(decode_batch(s, error));
  }
  int64_t count = at_most(s->batch.length - s->row);
  slicer_cut(s->slicer, &s->batch, s->row, count, out);
  for (size_t i = 0; i < s->scan->n_columns; i++) {
    out->children[i]->dictionary = s->dictionaries[i] == NULL ? NULL : &s->dictionaries[i]->values;
  }
  s->row += count;
  return HF_OK;
}

static hf_status next(void *state, struct ArrowArray *out, hf_error *error) {
  input_state *s = state;
  HF_TRY(s->scan->n_columns == 0 ? next_count(s, out, error) : next_columns(s, out, error));
  atomic_fetch_add_explicit(&s->scan->input->rows_read, (uint64_t)out->length, memory_order_relaxed);
  return HF_OK;
}

static const source_ops input_ops = {.open = scan_open,
                                     .thread_open = thread_open,
                                     .next = next,
                                     .thread_close = thread_close,
                                     .close = scan_close};

/* --------------------------------------------------------------------- input */

hf_status block_input_new(const block_input_options *options, block_input **out, hf_error *error) {
  block_input *input = mem_zalloc(1, sizeof *input);
  if (input == NULL) {
    return no_memory(error);
  }
  input->ordered = options->ordered;
  input->verify = options->verify;
  input->threads = options->threads;
  atomic_init(&input->rows_read, 0);
  hf_status status =
      block_set_open(options->locations, options->n_locations, options->keeper, &input->set, error);
  if (status == HF_OK) {
    status = block_set_filter(&input->set, options->filters, options->n_filters, error);
  }
  if (status == HF_OK) {
    status = schema_in_blocks(&input->set.columns, input->set.memory, &input->columns, error);
  }
  if (status != HF_OK) {
    block_input_free(input);
    return status;
  }
  *out = input;
  return HF_OK;
}

void block_input_free(block_input *input) {
  if (input != NULL) {
    block_set_close(&input->set);
    mem_free(input);
  }
}

const source_ops *block_input_ops(void) {
  return &input_ops;
}

const schema *block_input_columns(const block_input *input) {
  return &input->columns;
}

const struct ArrowSchema *block_input_arrow_schema(const block_input *input) {
  return &input->set.arrow_schema;
}

uint64_t block_input_rows(const block_input *input) {
  return input->set.rows;
}

uint64_t block_input_rows_read(const block_input *input) {
  return atomic_load_explicit(&input->rows_read, memory_order_relaxed);
}

uint64_t block_input_bytes(const block_input *input) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < input->set.n_blocks; i++) {
    bytes += input->set.blocks[i].bytes;
  }
  return bytes;
}

void block_input_blocks(const block_input *input, uint64_t *read, uint64_t *all) {
  *read = input->set.n_blocks;
  *all = input->set.n_blocks + input->set.n_left_out;
}

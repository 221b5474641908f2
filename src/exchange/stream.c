/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's stream over blocks: the batches as they lie in the files, in the
 * client's face. An array refers to the mapping, not to the stream, so it may
 * outlive it. Pages behind the reader are given back; they come again from the
 * page cache when an array that was kept is looked at.
 * Source: https://arrow.apache.org/docs/format/CStreamInterface.html
 * Thread: one at a time per stream; arrays may be released by any.
 */
#include "exchange/exchange.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "exchange/block_set.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct block_stream {
  block_set set;
  ipc_decoder *decoder;      /* of batches with codes where code_bytes says */
  const uint8_t *code_bytes; /* of the file being read; see set_block_code_bytes */
  const char **names;        /* of the columns */
  size_t block;              /* the next to be opened */
  ipc_cursor cursor;         /* batches of the one before that are left */
  hf_error error;            /* of the last call that failed */
  void (*on_release)(void *context);
  void *context;
} block_stream;

static int errno_of(hf_status status) {
  switch (status) {
    case HF_OK:
      return 0;
    case HF_E_OUT_OF_MEMORY:
      return ENOMEM;
    case HF_E_OVERFLOW:
      return ERANGE;
    default:
      return EIO;
  }
}

/* Keeps the error for get_last_error. */
static int finish(block_stream *s, hf_status status, hf_error *error) {
  error_move(&s->error, error);
  return errno_of(status);
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  block_stream *s = stream->private_data;
  hf_error error = {0};
  return finish(s, arrow_client_schema(&s->set.arrow_schema, s->names, out, &error), &error);
}

/* Gives the pages of a block back, but for those it shares with its neighbours. */
static void forget_pages(const set_block *b) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE); /* a mapping starts at one */
  size_t start = b->offset / page * page;
  size_t end = (b->offset + b->bytes) / page * page;
  if (end > start) {
    madvise((void *)(b->file->bytes + start), end - start, MADV_DONTNEED);
  }
}

/* Opens the next block that has bytes; false at the end. */
static bool open_block(block_stream *s) {
  while (s->cursor.left == 0) {
    if (s->block > 0) {
      forget_pages(&s->set.blocks[s->block - 1]);
    }
    if (s->block == s->set.n_blocks) {
      return false;
    }
    const set_block *b = &s->set.blocks[s->block++];
    s->cursor = (ipc_cursor){.bytes = b->file->bytes + b->offset, .left = b->bytes};
  }
  return true;
}

/* Gets ready for the batches of a block's file, unless those before were of the same. */
static hf_status open_coding(block_stream *s, const set_block *b, hf_error *error) {
  const uint8_t *code_bytes = set_block_code_bytes(b);
  if (s->decoder != NULL && s->code_bytes == code_bytes) {
    return HF_OK;
  }
  ipc_decoder_free(s->decoder);
  s->decoder = NULL;
  s->code_bytes = code_bytes;
  return ipc_decoder_new_coded(&s->set.arrow_schema, code_bytes, NULL, 0, &s->decoder, error);
}

/* A client's reader gets values, not codes. */
static hf_status unfold(block_stream *s, const set_block *b, struct ArrowArray *batch, hf_error *error) {
  for (size_t i = 0; s->code_bytes != NULL && i < s->set.columns.n_columns; i++) {
    source_dictionary *d = NULL;
    if (s->code_bytes[i] == 0) {
      continue;
    }
    HF_TRY(block_attempt_dictionary(b->attempt, b->file_number, i, &d, error));
    batch->children[i]->dictionary = &d->values;
    HF_TRY(dictionary_unfold(s->set.arrow_schema.children[i], batch->children[i], d->code_bytes, error));
  }
  return HF_OK;
}

static hf_status next_batch(block_stream *s, struct ArrowArray *out, hf_error *error) {
  if (!open_block(s)) {
    memset(out, 0, sizeof *out); /* the end */
    return HF_OK;
  }
  const set_block *b = &s->set.blocks[s->block - 1];
  struct ArrowArray batch;
  ipc_read_options options = {.on_release = mapping_release, .context = b->file};
  HF_TRY(block_set_blame(b, open_coding(s, b, error), error));
  mapping_retain(b->file);
  hf_status status = ipc_read_batch(s->decoder, &s->cursor, &options, &batch, error);
  if (status != HF_OK) {
    mapping_release(b->file);
    return block_set_blame(b, status, error);
  }
  status = unfold(s, b, &batch, error);
  if (status != HF_OK) {
    batch.release(&batch);
    return block_set_blame(b, status, error);
  }
  return arrow_client_array(&s->set.arrow_schema, &batch, out, error);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  block_stream *s = stream->private_data;
  hf_error error = {0};
  return finish(s, next_batch(s, out, &error), &error);
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
  const block_stream *s = stream->private_data;
  return s->error.message;
}

static void stream_free(block_stream *s) {
  if (s != NULL) {
    ipc_decoder_free(s->decoder);
    block_set_close(&s->set);
    hf_error_reset(&s->error);
    mem_free(s);
  }
}

static void release(struct ArrowArrayStream *stream) {
  block_stream *s = stream->private_data;
  void (*on_release)(void *) = s->on_release;
  void *context = s->context;
  stream_free(s);
  stream->release = NULL;
  if (on_release != NULL) {
    on_release(context);
  }
}

static hf_status names_init(block_stream *s, hf_error *error) {
  const schema *columns = &s->set.columns;
  s->names = arena_array(s->set.memory, columns->n_columns, sizeof *s->names);
  if (s->names == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a result");
  }
  for (size_t i = 0; i < columns->n_columns; i++) {
    s->names[i] = columns->columns[i].name;
  }
  return HF_OK;
}

hf_status block_stream_open(const block_location *locations, size_t n_locations,
                            void (*on_release)(void *context), void *context, struct ArrowArrayStream *out,
                            hf_error *error) {
  block_stream *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a result");
  }
  hf_status status = block_set_open(locations, n_locations, NULL, &s->set, error);
  if (status == HF_OK) {
    status = names_init(s, error);
  }
  if (status != HF_OK) {
    stream_free(s);
    return status;
  }
  s->on_release = on_release;
  s->context = context;
  *out = (struct ArrowArrayStream){.get_schema = get_schema,
                                   .get_next = get_next,
                                   .get_last_error = get_last_error,
                                   .release = release,
                                   .private_data = s};
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries of an opened attempt: read when a reader first wants them, each
 * piece against its checksum, merged, and kept as long as the attempt is open.
 * Thread: any.
 */
#include "exchange/block_attempt.h"

#include "arrow/ipc.h"
#include "base/mem.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read a dictionary of blocks");
}

static void observe(void *context, size_t part, const void *bytes, size_t length) {
  (void)part;
  block_checksum_add(context, 0, bytes, length);
}

/* What reading a dictionary needs: a decoder of its column alone. */
typedef struct piece_reader {
  const struct ArrowSchema *field;
  ipc_decoder *decoder;
  struct ArrowArray *roots; /* one a piece */
  size_t n;
} piece_reader;

static void reader_close(piece_reader *r) {
  for (size_t i = 0; i < r->n; i++) {
    r->roots[i].release(&r->roots[i]);
  }
  mem_free(r->roots);
  ipc_decoder_free(r->decoder);
}

static hf_status reader_open(piece_reader *r, const struct ArrowSchema *arrow_schema,
                             const block_dictionary *d, hf_error *error) {
  if ((int64_t)d->column >= arrow_schema->n_children) {
    return error_set(error, HF_E_BLOCK_CORRUPT, "a dictionary is of a column that is not there: %u",
                     d->column);
  }
  struct ArrowSchema *fields[] = {arrow_schema->children[d->column]};
  struct ArrowSchema one = {.format = "+s", .n_children = 1, .children = fields};
  r->field = fields[0];
  r->roots = mem_zalloc(d->n_pieces, sizeof *r->roots);
  return r->roots == NULL ? no_memory(error) : ipc_decoder_new(&one, NULL, 0, &r->decoder, error);
}

static hf_status read_piece(piece_reader *r, const mapping *file, const block_piece *p, hf_error *error) {
  uint64_t checksum = 0;
  ipc_read_options options = {.validate = true, .observe = observe, .observer = &checksum};
  ipc_cursor cursor = {.bytes = file->bytes + p->offset, .left = p->bytes};
  HF_TRY(ipc_read_dictionary(r->decoder, &cursor, &options, &r->roots[r->n], error));
  const struct ArrowArray *root = &r->roots[r->n++];
  if (checksum != p->checksum || cursor.left != 0 || (uint64_t)root->length != p->entries ||
      root->children[0]->null_count != 0) {
    return error_set(error, HF_E_BLOCK_CORRUPT,
                     "a dictionary does not match its checksum: the %llu bytes at %llu of %s",
                     (unsigned long long)p->bytes, (unsigned long long)p->offset, file->path);
  }
  return HF_OK;
}

static hf_status read_pieces(piece_reader *r, const mapping *file, const block_dictionary *d,
                             struct ArrowArray *out, hf_error *error) {
  const struct ArrowArray **pieces = mem_zalloc(d->n_pieces, sizeof(struct ArrowArray *));
  hf_status status = pieces == NULL ? no_memory(error) : HF_OK;
  for (size_t i = 0; i < d->n_pieces && status == HF_OK; i++) {
    status = read_piece(r, file, &d->pieces[i], error);
    if (status == HF_OK) {
      pieces[i] = r->roots[i].children[0];
    }
  }
  if (status == HF_OK) {
    status = dictionary_merge(r->field, pieces, d->n_pieces, d->code_bytes, out, error);
  }
  mem_free(pieces);
  return status;
}

static hf_status load(const block_attempt *attempt, const block_dictionary *d, source_dictionary *out,
                      hf_error *error) {
  const mapping *file = attempt->files[d->file];
  struct ArrowSchema arrow_schema = {0};
  ipc_cursor cursor = {.bytes = attempt->index.arrow_schema, .left = attempt->index.arrow_schema_bytes};
  piece_reader reader = {0};
  if (file == NULL) {
    return error_set(error, HF_E_BLOCK_CORRUPT, "a dictionary lies in a file without blocks: %u", d->file);
  }
  HF_TRY(ipc_read_schema(&cursor, &arrow_schema, error));
  hf_status status = reader_open(&reader, &arrow_schema, d, error);
  if (status == HF_OK) {
    status = read_pieces(&reader, file, d, &out->values, error);
  }
  out->code_bytes = d->code_bytes;
  reader_close(&reader);
  arrow_schema.release(&arrow_schema);
  return status;
}

hf_status block_attempt_dictionary(block_attempt *attempt, uint32_t file, size_t number,
                                   source_dictionary **out, hf_error *error) {
  const block_index *index = &attempt->index;
  size_t i = 0;
  while (i < index->n_dictionaries &&
         (index->dictionaries[i].file != file || index->dictionaries[i].column != number)) {
    i++;
  }
  if (i == index->n_dictionaries) {
    return error_set(error, HF_E_INTERNAL, "a column has no dictionary: %zu of file %u", number, file);
  }
  hf_status status = HF_OK;
  pthread_mutex_lock(&attempt->lock);
  if (!attempt->is_loaded[i]) {
    status = load(attempt, &index->dictionaries[i], &attempt->values[i], error);
    attempt->is_loaded[i] = status == HF_OK;
  }
  pthread_mutex_unlock(&attempt->lock);
  *out = &attempt->values[i];
  return status;
}

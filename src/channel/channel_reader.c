/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading end: frames are taken, checked against their checksum, decoded where
 * they lie, and cut into windows of at most 2048 rows.
 * Thread: a reader and a scan are shared, a state belongs to one thread at a time.
 */
#include "channel/channel_internal.h"

#include <string.h>
#include <xxhash.h>

/* DuckDB's vectors hold as many. */
enum { MOST_ROWS = 2048 };

typedef struct reader_state {
  channel_scan *scan;
  ipc_decoder *decoder; /* NULL: no frame has come */
  slicer *slicer;       /* NULL too without columns */
  frame *held;          /* the one that is read; NULL: none */
  char *spooled;        /* its bytes, when they are in the file */
  struct ArrowArray batch;
  int64_t row; /* the next of the batch */
} reader_state;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read a channel");
}

/* ---------------------------------------------------------------------- scan */

hf_status reader_lacks(channel_reader *r, hf_error *error) {
  atomic_store(&r->lacks_keeping, true);
  return error_set(error, HF_E_INTERNAL, "rows of a channel are wanted again and are gone: %s",
                   r->from->edge->spec.name);
}

/* Each scan wants all rows: what is not kept can be given once. */
static hf_status begin_scan(channel_reader *r, hf_error *error) {
  pthread_mutex_lock(&r->set->lock);
  bool is_gone = (r->from->was_taken || r->from->is_closed) && !r->from->edge->spec.keeps;
  pthread_mutex_unlock(&r->set->lock);
  return is_gone ? reader_lacks(r, error) : HF_OK;
}

static hf_status scan_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                           unsigned *threads, hf_error *error) {
  channel_reader *r = source;
  HF_TRY(begin_scan(r, error));
  channel_scan *made = mem_zalloc(1, sizeof *made);
  size_t *copy = mem_zalloc(n_columns, sizeof *copy);
  if (made == NULL || copy == NULL) {
    mem_free(made);
    mem_free(copy);
    return no_memory(error);
  }
  if (n_columns > 0) {
    memcpy(copy, columns, n_columns * sizeof *copy);
  }
  *made = (channel_scan){.reader = r, .n_columns = n_columns, .columns = copy};
  *threads = r->from->edge->spec.ordered || r->threads == 0 ? 1 : r->threads;
  *scan = made;
  return HF_OK;
}

static void scan_close(void *scan) {
  channel_scan *s = scan;
  mem_free(s->columns);
  mem_free(s);
}

static hf_status thread_open(void *scan, void **state, hf_error *error) {
  reader_state *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  s->scan = scan;
  *state = s;
  return HF_OK;
}

static void let_go(reader_state *s) {
  if (s->batch.release != NULL) {
    s->batch.release(&s->batch);
  }
  if (s->held != NULL) {
    frame_release(s->held);
  }
  mem_free(s->spooled);
  s->held = NULL;
  s->spooled = NULL;
}

/* DuckDB ends a pipeline early when nothing wants its rows any more. With one thread that is the end of the reading. */
static void thread_close(void *state) {
  reader_state *s = state;
  channel_reader *r = s->scan->reader;
  let_go(s);
  slicer_free(s->slicer);
  ipc_decoder_free(s->decoder);
  mem_free(s);
  if (r->threads <= 1 && !r->from->edge->spec.keeps) {
    queue_close(r->set, r->from);
  }
}

/* -------------------------------------------------------------------- frames */

/* The schema that the writer told, which came before its first frame. */
static hf_status open_decoder(reader_state *s, hf_error *error) {
  const channel_scan *scan = s->scan;
  set_edge *edge = scan->reader->from->edge;
  struct ArrowSchema told = {0};
  pthread_mutex_lock(&scan->reader->set->lock);
  ipc_cursor cursor = {edge->head.data, edge->head.length}; /* does not change any more */
  pthread_mutex_unlock(&scan->reader->set->lock);
  HF_TRY(ipc_read_schema(&cursor, &told, error));
  hf_status status = HF_OK;
  if (!arrow_schemas_alike(&told, &edge->block_schema)) {
    status = error_set(error, HF_E_BLOCK_CORRUPT, "frames have other columns than the stage plan says: %s",
                       edge->spec.name);
  }
  if (status == HF_OK) {
    status = ipc_decoder_new(&told, scan->columns, scan->n_columns, &s->decoder, error);
  }
  if (status == HF_OK) {
    status = slicer_new(&told, scan->columns, scan->n_columns, &s->slicer, error);
  }
  told.release(&told);
  return status;
}

hf_status frame_decode(const frame *f, const char *bytes, ipc_decoder *decoder, struct ArrowArray *out,
                       hf_error *error) {
  static const ipc_read_options trusted = {.validate = false}; /* after its checksum */
  ipc_cursor cursor = {bytes, f->length};
  if (XXH3_64bits(bytes, f->length) != f->checksum) {
    return error_set(error, HF_E_BLOCK_CORRUPT, "a frame does not match its checksum: %zu bytes of task %u",
                     f->length, f->writer);
  }
  HF_TRY(ipc_read_batch(decoder, &cursor, &trusted, out, error));
  if (cursor.left > 0 || (uint64_t)out->length != f->rows) {
    out->release(out);
    return error_set(error, HF_E_BLOCK_CORRUPT,
                     "a frame holds other rows than its writer says: %llu of task %u",
                     (unsigned long long)f->rows, f->writer);
  }
  return HF_OK;
}

/* Whether the frame may be this reader's at all. */
static bool is_of_reader(const connection *c, const frame *f) {
  const channel_edge *spec = &c->edge->spec;
  return spec->share != CHANNEL_PARTITION ||
         (uint64_t)f->partition * spec->readers / spec->partitions == c->number;
}

static hf_status open_frame(reader_state *s, hf_error *error) {
  const channel_reader *r = s->scan->reader;
  const char *bytes = s->held->bytes;
  if (!is_of_reader(r->from, s->held)) {
    return error_set(error, HF_E_INTERNAL, "a frame came to the wrong reader: partition %u, %s",
                     s->held->partition, r->from->edge->spec.name);
  }
  if (s->decoder == NULL) {
    HF_TRY(open_decoder(s, error));
  }
  if (bytes == NULL) {
    HF_TRY(spool_read(r->set, s->held->offset, s->held->length, &s->spooled, error));
    bytes = s->spooled;
  }
  return frame_decode(s->held, bytes, s->decoder, &s->batch, error);
}

/* ---------------------------------------------------------------------- next */

static void release_nothing(struct ArrowArray *array) {
  array->release = NULL;
}

static hf_status next(void *state, struct ArrowArray *out, hf_error *error) {
  reader_state *s = state;
  while (s->batch.release == NULL || s->row == s->batch.length) {
    let_go(s);
    HF_TRY(queue_take(s->scan, &s->held, error));
    if (s->held == NULL) {
      *out = (struct ArrowArray){.release = release_nothing};
      return HF_OK;
    }
    HF_TRY(open_frame(s, error));
    s->row = 0;
  }
  int64_t left = s->batch.length - s->row;
  int64_t count = left < MOST_ROWS ? left : MOST_ROWS;
  if (s->scan->n_columns == 0) {
    *out = (struct ArrowArray){.length = count, .release = release_nothing};
  } else {
    slicer_cut(s->slicer, &s->batch, s->row, count, out);
  }
  s->row += count;
  return HF_OK;
}

static const source_ops operations = {.open = scan_open,
                                      .thread_open = thread_open,
                                      .next = next,
                                      .thread_close = thread_close,
                                      .close = scan_close};

const source_ops *channel_reader_ops(void) {
  return &operations;
}

/* -------------------------------------------------------------------- reader */

static hf_status claim(channel_set *set, const channel_reader_options *options, hf_error *error) {
  const set_edge *edge = &set->edges[options->edge];
  bool is_first = false;
  if (options->number < edge->spec.readers) {
    pthread_mutex_lock(&set->lock);
    is_first = !edge->connections[options->number].has_reader;
    edge->connections[options->number].has_reader = true;
    pthread_mutex_unlock(&set->lock);
  }
  return is_first
             ? HF_OK
             : error_set(error, HF_E_INTERNAL, "an edge has no such reader, or has it already: %u of %u, %s",
                         options->number, edge->spec.readers, edge->spec.name);
}

hf_status channel_reader_new(channel_set *set, const channel_reader_options *options, channel_reader **out,
                             hf_error *error) {
  channel_reader *r = mem_zalloc(1, sizeof *r);
  if (r == NULL) {
    return no_memory(error);
  }
  hf_status status = claim(set, options, error);
  if (status != HF_OK) {
    mem_free(r);
    return status;
  }
  r->set = set;
  r->from = &set->edges[options->edge].connections[options->number];
  r->task = options->task;
  r->threads = options->threads;
  *out = r;
  return HF_OK;
}

const schema *channel_reader_columns(const channel_reader *r) {
  return &r->from->edge->columns;
}

const struct ArrowSchema *channel_reader_arrow_schema(const channel_reader *r) {
  return &r->from->edge->block_schema;
}

uint64_t channel_reader_rows(const channel_reader *r) {
  pthread_mutex_lock(&r->set->lock);
  uint64_t rows = r->from->rows_read;
  pthread_mutex_unlock(&r->set->lock);
  return rows;
}

bool channel_reader_lacks_keeping(const channel_reader *r) {
  return atomic_load(&r->lacks_keeping);
}

void channel_reader_free(channel_reader *r) {
  if (r != NULL) {
    queue_close(r->set, r->from);
    mem_free(r);
  }
}

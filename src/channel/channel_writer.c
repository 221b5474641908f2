/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing end: rows are gathered by partition into batches, and each batch is
 * encoded as one Arrow IPC message and sent. A writer is one task; each of DuckDB's
 * threads has a state of its own.
 * Thread: a writer is shared, a state belongs to one thread at a time.
 */
#include "channel/channel_internal.h"

#include "arrow/row_sort.h"
#include "base/fault.h"

#include <string.h>

struct channel_writer {
  channel_set *set;
  channel_writer_options options;
  size_t *edges;
  size_t most_targets;
  uint32_t partitions;
  _Atomic uint64_t rows;
  atomic_bool is_unwanted;
  bool has_finished;
};

typedef struct writer_state {
  channel_writer *writer;
  route route;
  batch_builder *model;
  batch_builder **builders; /* by partition; NULL where no row has been */
  uint64_t bytes;           /* of all builders */
  row_sort sort;            /* of rows that come with partitions */
} writer_state;

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write into a channel");
}

/* ------------------------------------------------------------------- sending */

static hf_status encode(const batch_builder *b, char **bytes, size_t *length, hf_error *error) {
  buf message = {0};
  uint64_t written = 0;
  hf_status status = HF_OK;
  buf_reserve(&message, batch_builder_data_bytes(b) + 1024); /* mostly, it need not grow then */
  if (message.failed) {
    status = no_memory(error);
  }
  if (status == HF_OK) {
    status = ipc_write_batch_to(b, &(ipc_target){.out = &message, .fd = -1}, &written, error);
  }
  *length = message.length;
  *bytes = status == HF_OK ? buf_take(&message) : NULL;
  if (status == HF_OK && *bytes == NULL) {
    status = no_memory(error);
  }
  buf_reset(&message);
  return status;
}

/* Brings the account in line with what a builder occupied before and occupies now. */
static void account(writer_state *s, size_t before, const batch_builder *b) {
  s->bytes += batch_builder_bytes(b) - before;
}

static hf_status send_batch(writer_state *s, uint32_t partition, hf_error *error) {
  fault_point("channel.batch");
  channel_writer *w = s->writer;
  batch_builder *b = s->builders[partition];
  char *bytes = NULL;
  size_t length = 0;
  frame *f = NULL;
  bool is_unwanted = false;
  HF_TRY(encode(b, &bytes, &length, error));
  HF_TRY(frame_new(bytes, length, w->most_targets, &f, error));
  f->rows = (uint64_t)batch_builder_rows(b);
  f->partition = partition;
  f->writer = w->options.number;
  size_t before = batch_builder_bytes(b);
  batch_builder_clear(b, (size_t)w->options.batch_bytes);
  account(s, before, b);
  atomic_fetch_add_explicit(&w->rows, f->rows, memory_order_relaxed);
  HF_TRY(queue_send(&s->route, f, &is_unwanted, error));
  if (is_unwanted) {
    atomic_store(&w->is_unwanted, true);
    return error_set(error, HF_E_CANCELLED, "no task wants more of the rows");
  }
  return HF_OK;
}

/* Sends the largest batches until the rows at hand fit the budget. */
static hf_status keep_budget(writer_state *s, hf_error *error) {
  while (s->bytes > s->writer->options.budget_bytes) {
    size_t most = 0;
    uint32_t largest = 0;
    for (uint32_t p = 0; p < s->writer->partitions; p++) {
      const batch_builder *b = s->builders[p];
      if (b != NULL && batch_builder_rows(b) > 0 && batch_builder_bytes(b) > most) {
        most = batch_builder_bytes(b);
        largest = p;
      }
    }
    if (most == 0) {
      break;
    }
    HF_TRY(send_batch(s, largest, error));
    size_t before = batch_builder_bytes(s->builders[largest]);
    batch_builder_clear(s->builders[largest], 0);
    account(s, before, s->builders[largest]);
  }
  return HF_OK;
}

/* ----------------------------------------------------------------- appending */

/* Rows of one array for one partition: a range, or by number. */
typedef struct piece {
  uint32_t partition;
  const struct ArrowArray *rows;
  const uint32_t *numbers; /* NULL: a range */
  size_t first, count;     /* of the rows or of the numbers */
} piece;

static hf_status append_once(writer_state *s, const piece *p, batch_builder *b, hf_error *error) {
  size_t before = batch_builder_bytes(b);
  hf_status status = p->numbers == NULL
                         ? batch_builder_append(b, p->rows, (int64_t)p->first, (int64_t)p->count, error)
                         : batch_builder_append_rows(b, p->rows, p->numbers + p->first, p->count, error);
  account(s, before, b);
  return status;
}

/* One that passes 2 GiB in a column goes in halves. */
static hf_status append_piece(writer_state *s, const piece *p, hf_error *error) {
  batch_builder *b = s->builders[p->partition];
  hf_status status = append_once(s, p, b, error);
  if (status == HF_E_LIMIT && batch_builder_rows(b) > 0) {
    hf_error_reset(error);
    HF_TRY(send_batch(s, p->partition, error));
    status = append_once(s, p, b, error);
  }
  if (status == HF_E_LIMIT && p->count > 1) {
    hf_error_reset(error);
    piece half = *p;
    half.count = p->count / 2;
    HF_TRY(append_piece(s, &half, error));
    half.first += half.count;
    half.count = p->count - half.count;
    return append_piece(s, &half, error);
  }
  return status;
}

/* In steps that make batches of about the bytes, and just the rows, that are wanted. */
static hf_status append_in_steps(writer_state *s, piece p, hf_error *error) {
  const channel_writer_options *options = &s->writer->options;
  size_t end = p.first + p.count;
  if (s->builders[p.partition] == NULL) {
    HF_TRY(batch_builder_new_like(s->model, &s->builders[p.partition], error));
    account(s, 0, s->builders[p.partition]);
  }
  const batch_builder *b = s->builders[p.partition];
  while (p.first < end) {
    uint64_t room =
        options->batch_rows == 0 ? UINT64_MAX : options->batch_rows - (uint64_t)batch_builder_rows(b);
    p.count = end - p.first < room ? end - p.first : (size_t)room;
    HF_TRY(append_piece(s, &p, error));
    p.first += p.count;
    if (batch_builder_data_bytes(b) >= options->batch_bytes ||
        (options->batch_rows > 0 && (uint64_t)batch_builder_rows(b) >= options->batch_rows)) {
      HF_TRY(send_batch(s, p.partition, error));
    }
  }
  return keep_budget(s, error);
}

static hf_status state_append(void *state, const struct ArrowArray *rows, const uint32_t *partitions,
                              hf_error *error) {
  writer_state *s = state;
  size_t count = (size_t)rows->length;
  if ((partitions == NULL) != (s->writer->partitions == 1) && count > 0) {
    return error_set(error, HF_E_INTERNAL, "rows come %s partition numbers for a channel of %u",
                     partitions == NULL ? "without" : "with", s->writer->partitions);
  }
  if (partitions == NULL || count == 0) {
    return count == 0 ? HF_OK : append_in_steps(s, (piece){.rows = rows, .count = count}, error);
  }
  HF_TRY(row_sort_by(&s->sort, partitions, count, error));
  for (uint32_t p = 0; p < s->writer->partitions; p++) {
    piece part = {.partition = p,
                  .rows = rows,
                  .numbers = s->sort.numbers,
                  .first = row_sort_first(&s->sort, p),
                  .count = row_sort_count(&s->sort, p)};
    if (part.count > 0) {
      HF_TRY(append_in_steps(s, part, error));
    }
  }
  return HF_OK;
}

/* ----------------------------------------------------------- opening, closing */

static void state_discard(void *state) {
  writer_state *s = state;
  for (uint32_t p = 0; s->builders != NULL && p < s->writer->partitions; p++) {
    batch_builder_free(s->builders[p]);
  }
  batch_builder_free(s->model);
  mem_free(s->builders);
  row_sort_reset(&s->sort);
  mem_free(s->route.targets);
  mem_free(s);
}

/* Says of the edges what the rows are like, once; every other state's must be like it. */
static hf_status tell_schema(const channel_writer *w, const struct ArrowSchema *block_schema,
                             hf_error *error) {
  buf head = {0};
  hf_status status = ipc_write_schema(block_schema, &head, error);
  for (size_t i = 0; status == HF_OK && i < w->options.n_edges; i++) {
    set_edge *edge = &w->set->edges[w->edges[i]];
    if (!arrow_schemas_alike(block_schema, &edge->block_schema)) {
      status = error_set(error, HF_E_INTERNAL, "rows are not of the types that the stage plan says: %s",
                         edge->spec.name);
      break;
    }
    pthread_mutex_lock(&w->set->lock);
    if (edge->head.length == 0) {
      buf_append(&edge->head, head.data, head.length);
      status = edge->head.failed ? no_memory(error) : HF_OK;
    }
    pthread_mutex_unlock(&w->set->lock);
  }
  buf_reset(&head);
  return status;
}

static hf_status state_init(writer_state *s, const struct ArrowSchema *incoming, hf_error *error) {
  const channel_writer *w = s->writer;
  struct ArrowSchema block_schema;
  s->builders = mem_zalloc(w->partitions, sizeof(batch_builder *));
  s->route.targets = mem_zalloc(w->most_targets, sizeof(connection *));
  if (s->builders == NULL || s->route.targets == NULL) {
    return no_memory(error);
  }
  HF_TRY(row_sort_init(&s->sort, w->partitions, error));
  HF_TRY(batch_builder_new_for(incoming, BATCH_OF_ENGINE, &s->model, error));
  HF_TRY(arrow_block_schema(incoming, &block_schema, error));
  hf_status status = tell_schema(w, &block_schema, error);
  block_schema.release(&block_schema);
  return status;
}

static route route_of(channel_writer *w) {
  return (route){.set = w->set,
                 .task = w->options.task,
                 .writer = w->options.number,
                 .n_edges = w->options.n_edges,
                 .edges = w->edges};
}

static hf_status state_open(void *sink, const struct ArrowSchema *engine_schema, void **state,
                            hf_error *error) {
  channel_writer *w = sink;
  writer_state *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  s->writer = w;
  s->route = route_of(w);
  hf_status status = state_init(s, engine_schema, error);
  if (status != HF_OK) {
    state_discard(s);
    return status;
  }
  *state = s;
  return HF_OK;
}

static hf_status state_close(void *state, hf_error *error) {
  writer_state *s = state;
  for (uint32_t p = 0; p < s->writer->partitions; p++) {
    if (s->builders[p] != NULL && batch_builder_rows(s->builders[p]) > 0 && !FAULT("channel.last_frame")) {
      HF_TRY(send_batch(s, p, error));
    }
  }
  return HF_OK;
}

static const sink_ops operations = {
    .open = state_open, .append = state_append, .close = state_close, .discard = state_discard};

const sink_ops *channel_writer_ops(void) {
  return &operations;
}

/* -------------------------------------------------------------------- writer */

static hf_status writer_init(channel_writer *w, const channel_writer_options *options, hf_error *error) {
  if (options->budget_bytes == 0) {
    w->options.budget_bytes = (uint64_t)64 << 20;
  }
  if (options->batch_bytes == 0) {
    w->options.batch_bytes = (uint64_t)64 << 10;
  }
  w->edges = mem_zalloc(options->n_edges, sizeof *w->edges);
  if (w->edges == NULL) {
    return no_memory(error);
  }
  w->partitions = 1;
  for (size_t i = 0; i < options->n_edges; i++) {
    w->edges[i] = options->edges[i];
    const channel_edge *spec = &w->set->edges[options->edges[i]].spec;
    w->most_targets += spec->readers;
    w->partitions = spec->partitions;
    if (options->number >= spec->writers ||
        spec->partitions != w->set->edges[options->edges[0]].spec.partitions) {
      return error_set(error, HF_E_INTERNAL,
                       "a writer does not fit its edge: task %u of %u, %u partitions, %s", options->number,
                       spec->writers, spec->partitions, spec->name);
    }
  }
  return HF_OK;
}

hf_status channel_writer_new(channel_set *set, const channel_writer_options *options, channel_writer **out,
                             hf_error *error) {
  channel_writer *w = mem_zalloc(1, sizeof *w);
  if (w == NULL) {
    return no_memory(error);
  }
  w->set = set;
  w->options = *options;
  hf_status status = writer_init(w, options, error);
  if (status != HF_OK) {
    w->has_finished = true; /* it has not begun either: nobody knows of it */
    channel_writer_free(w);
    return status;
  }
  *out = w;
  return HF_OK;
}

hf_status channel_writer_finish(channel_writer *w, hf_error *error) {
  route r = route_of(w);
  w->has_finished = true;
  return queue_end_writer(&r, error);
}

bool channel_writer_is_unwanted(const channel_writer *w) {
  return atomic_load(&w->is_unwanted);
}

uint64_t channel_writer_rows(const channel_writer *w) {
  return atomic_load_explicit(&w->rows, memory_order_relaxed);
}

void channel_writer_free(channel_writer *w) {
  if (w == NULL) {
    return;
  }
  if (!w->has_finished) {
    hf_error error = {0};
    error_set(&error, HF_E_TASK_LOST, "a task ended before it had written all: task %u", w->options.task);
    channel_set_fail(w->set, &error);
    hf_error_reset(&error);
  }
  mem_free(w->edges);
  mem_free(w);
}

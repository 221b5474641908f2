/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread of a sink: a builder for each partition, one file, the block that is
 * open in it.
 *
 * Memory. All threads together stay within the budget. A thread writes its largest
 * builder when the sum, or its own share of it, would be passed by the rows at
 * hand; what a builder's buffers hold beyond their rows counts too. An eighth of
 * the budget is kept free for that slack, which is found out only afterwards. One
 * row is always taken.
 * Thread: that which opened it.
 */
#include "exchange/sink_internal.h"

#include "arrow/ipc.h"
#include "arrow/row_sort.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct sink_state {
  block_sink *sink;
  char *path;
  int fd;
  uint64_t offset; /* of the file's end */
  written_file file;
  size_t blocks_capacity;
  bool has_block; /* the last of the file's blocks is open */
  size_t n_parts;
  uint64_t *parts;          /* checksums of the open block */
  bool has_judged;          /* which columns have codes was decided */
  bool has_head;            /* the file's schema message is written */
  sink_coding *coding;      /* of a sink whose output is held, else NULL */
  size_t coding_bytes;      /* as accounted */
  sink_watch *watch;        /* of a sink that watches columns, else NULL */
  batch_builder *model;     /* the first; what the others are made like */
  batch_builder **builders; /* by partition; NULL where no row has been */
  uint64_t bytes;           /* of all builders, as accounted */
  row_sort sort;            /* of rows that come with partitions */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write blocks");
}

/* -------------------------------------------------------------------- blocks */

static void observe(void *context, size_t part, const void *bytes, size_t length) {
  block_checksum_add(context, part, bytes, length);
}

static block *open_block(sink_state *t) {
  return &t->file.blocks[t->file.n_blocks - 1];
}

/* Keeps the checksums of the open block behind those of the blocks before it. */
static void close_block(sink_state *t) {
  if (t->has_block) {
    size_t number = t->file.n_blocks - 1;
    memcpy(t->file.parts + number * t->n_parts, t->parts, t->n_parts * sizeof *t->parts);
    if (t->coding != NULL && t->n_parts > 1) {
      memcpy(t->file.ranges + number * (t->n_parts - 1), sink_coding_ranges(t->coding),
             (t->n_parts - 1) * sizeof *t->file.ranges);
    }
    t->has_block = false;
  }
}

static hf_status blocks_grow(sink_state *t, hf_error *error) {
  size_t capacity = t->blocks_capacity == 0 ? 64 : t->blocks_capacity * 2;
  block *blocks = mem_realloc(t->file.blocks, capacity * sizeof *blocks);
  if (blocks == NULL) {
    return no_memory(error);
  }
  t->file.blocks = blocks;
  uint64_t *parts = mem_realloc(t->file.parts, capacity * t->n_parts * sizeof *parts);
  if (parts == NULL) {
    return no_memory(error);
  }
  t->file.parts = parts;
  if (t->coding != NULL) {
    block_range *ranges = mem_realloc(t->file.ranges, capacity * t->n_parts * sizeof *ranges);
    if (ranges == NULL) {
      return no_memory(error);
    }
    t->file.ranges = ranges;
  }
  t->blocks_capacity = capacity;
  return HF_OK;
}

static hf_status start_block(sink_state *t, uint32_t partition, hf_error *error) {
  if (t->file.n_blocks == t->blocks_capacity) {
    HF_TRY(blocks_grow(t, error));
  }
  t->file.blocks[t->file.n_blocks++] =
      (block){.file = t->file.number, .partition = partition, .offset = t->offset};
  memset(t->parts, 0, t->n_parts * sizeof *t->parts);
  if (t->coding != NULL) {
    sink_coding_begin_block(t->coding);
  }
  t->has_block = true;
  return HF_OK;
}

/* --------------------------------------------------------------------- files */

/* The schema message; of a file with codes it says which columns have them. */
static hf_status write_head(sink_state *t, hf_error *error) {
  buf coded = {0};
  const buf *head = &t->sink->arrow_schema; /* does not change any more */
  hf_status status = HF_OK;
  if (t->coding != NULL && sink_coding_has_news(t->coding)) {
    status = sink_coded_schema(t->sink, sink_coding_code_bytes(t->coding), &coded, error);
    head = &coded;
  }
  if (status == HF_OK) {
    status = file_write_all(t->fd, head->data, head->length, t->path, error);
  }
  t->offset = head->length;
  t->has_head = true;
  buf_reset(&coded);
  return status;
}

static hf_status open_file(sink_state *t, hf_error *error) {
  t->file.number = atomic_fetch_add(&t->sink->n_opened, 1);
  buf path = {0};
  buf_printf(&path, "%s/t%u.arrow", t->sink->options.dir, t->file.number);
  t->path = buf_take(&path);
  if (t->path == NULL) {
    return no_memory(error);
  }
  t->fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (t->fd < 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot create %s", t->path);
  }
  t->offset = 0;
  t->has_head = false;
  return t->coding == NULL ? write_head(t, error) : HF_OK;
}

static hf_status finish_file(sink_state *t, hf_error *error) {
  buf end = {0};
  if (!t->has_head) {
    HF_TRY(write_head(t, error));
  }
  ipc_write_end(&end);
  hf_status status =
      end.failed ? no_memory(error) : file_write_all(t->fd, end.data, end.length, t->path, error);
  t->file.bytes = t->offset + end.length;
  buf_reset(&end);
  HF_TRY(status);
  if (t->sink->options.durable && fsync(t->fd) != 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot sync %s", t->path);
  }
  int fd = t->fd;
  t->fd = -1;
  if (close(fd) != 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot close %s", t->path);
  }
  return t->coding == NULL ? HF_OK : sink_coding_end_file(t->coding, &t->file, error);
}

/* Ends the file and begins the next, in which other columns have codes. */
static hf_status change_file(sink_state *t, hf_error *error) {
  close_block(t);
  HF_TRY(finish_file(t, error));
  HF_TRY(sink_take_written(t->sink, &t->file, error));
  t->blocks_capacity = 0;
  mem_free(t->path);
  t->path = NULL;
  return open_file(t, error);
}

/* Brings the accounts in line with what the dictionaries occupy. */
static void account_coding(sink_state *t) {
  size_t bytes = sink_coding_bytes(t->coding);
  t->bytes += bytes - t->coding_bytes;
  sink_account(t->sink, (int64_t)bytes - (int64_t)t->coding_bytes);
  t->coding_bytes = bytes;
}

/* Codes a batch and sees to it that the file has the entries that the codes refer to. */
static hf_status code_batch(sink_state *t, const batch_builder *b, hf_error *error) {
  bool is_full = true;
  if (!t->has_head && !t->has_judged) {
    HF_TRY(sink_coding_judge(t->coding, b, error));
    t->has_judged = true;
  }
  if (!t->has_head) {
    sink_coding_begin_file(t->coding);
  }
  while (is_full) {
    HF_TRY(sink_coding_encode(t->coding, b, &is_full, error));
    if (is_full && t->has_head) {
      HF_TRY(change_file(t, error));
    }
    if (is_full) {
      sink_coding_begin_file(t->coding);
    }
  }
  if (!t->has_head) {
    HF_TRY(write_head(t, error));
  }
  if (sink_coding_has_news(t->coding)) {
    ipc_target to = {.fd = t->fd, .path = t->path};
    close_block(t);
    HF_TRY(sink_coding_write(t->coding, &to, &t->offset, error));
  }
  account_coding(t);
  return HF_OK;
}

/* Writes a builder's rows into the block of its partition. */
static hf_status write_batch(sink_state *t, uint32_t partition, hf_error *error) {
  fault_point("exchange.batch");
  batch_builder *b = t->builders[partition];
  if (t->coding != NULL) {
    HF_TRY(code_batch(t, b, error));
  }
  if (t->has_block && (open_block(t)->partition != partition ||
                       open_block(t)->bytes + batch_builder_data_bytes(b) > t->sink->options.block_bytes)) {
    close_block(t);
  }
  if (!t->has_block) {
    HF_TRY(start_block(t, partition, error));
  }
  ipc_target to = {.fd = t->fd,
                   .path = t->path,
                   .observe = observe,
                   .context = t->parts,
                   .compression = t->sink->options.compression};
  if (t->coding != NULL) {
    to.codes = sink_coding_codes(t->coding);
    sink_coding_widen(t->coding, b);
  }
  if (t->watch != NULL) {
    sink_watch_batch(t->watch, b);
  }
  uint64_t written = 0;
  HF_TRY(ipc_write_batch_to(b, &to, &written, error));
  open_block(t)->bytes += written;
  open_block(t)->rows += (uint64_t)batch_builder_rows(b);
  t->offset += written;
  return HF_OK;
}

/* -------------------------------------------------------------------- memory */

/* Brings the accounts in line with what a builder occupied before and occupies now. */
static void account(sink_state *t, size_t before, const batch_builder *b) {
  int64_t change = (int64_t)batch_builder_bytes(b) - (int64_t)before;
  if (change != 0) {
    t->bytes += (uint64_t)change;
    sink_account(t->sink, change);
  }
}

static uint64_t usable_bytes(const sink_state *t) {
  uint64_t budget = t->sink->options.budget_bytes;
  return budget - budget / 8;
}

static uint64_t share_bytes(const sink_state *t) {
  uint32_t threads = atomic_load_explicit(&t->sink->n_open, memory_order_relaxed);
  return usable_bytes(t) / (threads == 0 ? 1 : threads);
}

static hf_status flush(sink_state *t, uint32_t partition, bool keep_memory, hf_error *error) {
  batch_builder *b = t->builders[partition];
  HF_TRY(write_batch(t, partition, error));
  size_t before = batch_builder_bytes(b);
  batch_builder_clear(b, keep_memory ? SIZE_MAX : 0);
  account(t, before, b);
  return HF_OK;
}

/* The partition whose builder occupies most; false when none holds rows. */
static bool find_largest(const sink_state *t, uint32_t *out) {
  size_t most = 0;
  for (uint32_t p = 0; p < t->sink->options.partitions; p++) {
    const batch_builder *b = t->builders[p];
    if (b != NULL && batch_builder_rows(b) > 0 && batch_builder_bytes(b) > most) {
      most = batch_builder_bytes(b);
      *out = p;
    }
  }
  return most > 0;
}

/* Makes room for `more` bytes. */
static hf_status keep_budget(sink_state *t, uint64_t more, hf_error *error) {
  uint32_t largest = 0;
  while (t->bytes + more > share_bytes(t) ||
         atomic_load_explicit(&t->sink->buffered_bytes, memory_order_relaxed) + more > usable_bytes(t)) {
    if (!find_largest(t, &largest)) {
      break;
    }
    HF_TRY(flush(t, largest, false, error));
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

static hf_status builder_of(sink_state *t, uint32_t partition, batch_builder **out, hf_error *error) {
  if (t->builders[partition] == NULL) {
    batch_builder *made = NULL;
    HF_TRY(batch_builder_new_like(t->model, &made, error));
    t->builders[partition] = made;
    account(t, 0, made);
  }
  *out = t->builders[partition];
  return HF_OK;
}

static hf_status append_once(sink_state *t, const piece *p, batch_builder *b, hf_error *error) {
  size_t before = batch_builder_bytes(b);
  hf_status status = p->numbers == NULL
                         ? batch_builder_append(b, p->rows, (int64_t)p->first, (int64_t)p->count, error)
                         : batch_builder_append_rows(b, p->rows, p->numbers + p->first, p->count, error);
  account(t, before, b);
  return status;
}

/* Appends a piece that fits into memory; one that passes 2 GiB in a column goes in halves. */
static hf_status append_piece(sink_state *t, const piece *p, hf_error *error) {
  batch_builder *b = NULL;
  HF_TRY(builder_of(t, p->partition, &b, error));
  hf_status status = append_once(t, p, b, error);
  if (status == HF_E_LIMIT && batch_builder_rows(b) > 0) {
    hf_error_reset(error);
    HF_TRY(flush(t, p->partition, false, error));
    status = append_once(t, p, b, error);
  }
  if (status == HF_E_LIMIT && p->count > 1) {
    hf_error_reset(error);
    piece half = *p;
    half.count = p->count / 2;
    HF_TRY(append_piece(t, &half, error));
    half.first += half.count;
    half.count = p->count - half.count;
    return append_piece(t, &half, error);
  }
  HF_TRY(status);
  if (batch_builder_data_bytes(b) >= t->sink->options.batch_bytes) {
    return flush(t, p->partition, t->bytes <= share_bytes(t) / 2, error);
  }
  return HF_OK;
}

/* About what a piece takes; rows by number count as the average of their array. */
static uint64_t piece_cost(const sink_state *t, const piece *p, uint64_t average) {
  return p->numbers == NULL ? batch_builder_cost(t->model, p->rows, (int64_t)p->first, (int64_t)p->count)
                            : average * p->count;
}

/* Cuts a piece so that no step takes much more than a batch, and makes room for each step. A step starts at twice the
 * rows of the one before, so that a large array is not weighed as a whole again and again. */
static hf_status append_in_steps(sink_state *t, piece p, uint64_t average, hf_error *error) {
  enum { FIRST_STEP_ROWS = 8192 };
  size_t end = p.first + p.count;
  size_t most = FIRST_STEP_ROWS;
  while (p.first < end) {
    p.count = end - p.first < most ? end - p.first : most;
    uint64_t cost = piece_cost(t, &p, average);
    while (p.count > 1 && cost > t->sink->options.batch_bytes) {
      p.count /= 2;
      cost = piece_cost(t, &p, average);
    }
    HF_TRY(keep_budget(t, cost, error));
    HF_TRY(append_piece(t, &p, error));
    p.first += p.count;
    most = p.count * 2;
  }
  return HF_OK;
}

hf_status sink_state_append(sink_state *t, const struct ArrowArray *rows, const uint32_t *partitions,
                            hf_error *error) {
  size_t count = (size_t)rows->length;
  if ((partitions == NULL) != (t->sink->options.partitions == 1) && count > 0) {
    return error_set(error, HF_E_INTERNAL, "rows come %s partition numbers for a sink of %u",
                     partitions == NULL ? "without" : "with", t->sink->options.partitions);
  }
  if (partitions == NULL) {
    return append_in_steps(t, (piece){.rows = rows, .count = count}, 0, error);
  }
  if (count == 0) {
    return HF_OK;
  }
  HF_TRY(row_sort_by(&t->sort, partitions, count, error));
  uint64_t average = batch_builder_cost(t->model, rows, 0, rows->length) / count + 1;
  for (uint32_t p = 0; p < t->sink->options.partitions; p++) {
    piece part = {.partition = p,
                  .rows = rows,
                  .numbers = t->sort.numbers,
                  .first = row_sort_first(&t->sort, p),
                  .count = row_sort_count(&t->sort, p)};
    if (part.count > 0) {
      HF_TRY(append_in_steps(t, part, average, error));
    }
  }
  return HF_OK;
}

/* ----------------------------------------------------------- opening, closing */

static hf_status state_init(sink_state *t, const struct ArrowSchema *incoming, batch_source source,
                            hf_error *error) {
  uint32_t partitions = t->sink->options.partitions;
  t->builders = mem_zalloc(partitions, sizeof(batch_builder *));
  t->n_parts = t->sink->columns.n_columns + 1;
  t->parts = mem_zalloc(t->n_parts, sizeof *t->parts);
  if (t->builders == NULL || t->parts == NULL) {
    return no_memory(error);
  }
  HF_TRY(row_sort_init(&t->sort, partitions, error));
  HF_TRY(batch_builder_new_for(incoming, source, &t->model, error));
  account(t, 0, t->model);
  HF_TRY(sink_schema(t->sink, incoming, error));
  if (t->sink->options.held) {
    HF_TRY(sink_coding_new(t->sink, &t->coding, error));
  }
  if (t->sink->n_watched > 0) {
    HF_TRY(sink_watch_new(t->sink, t->model, &t->watch, error));
    t->bytes += sink_watch_bytes(t->watch);
    sink_account(t->sink, (int64_t)sink_watch_bytes(t->watch));
  }
  return open_file(t, error);
}

hf_status sink_state_open(block_sink *s, const struct ArrowSchema *incoming, batch_source source,
                          sink_state **out, hf_error *error) {
  sink_state *t = mem_zalloc(1, sizeof *t);
  if (t == NULL) {
    return no_memory(error);
  }
  t->sink = s;
  t->fd = -1;
  atomic_fetch_add(&s->n_open, 1);
  hf_status status = state_init(t, incoming, source, error);
  if (status != HF_OK) {
    sink_state_discard(t);
    return status;
  }
  *out = t;
  return HF_OK;
}

hf_status sink_state_close(sink_state *t, hf_error *error) {
  for (uint32_t p = 0; p < t->sink->options.partitions; p++) {
    bool is_lost = p + 1 == t->sink->options.partitions && p > 0 && FAULT("exchange.last_batch");
    if (t->builders[p] != NULL && batch_builder_rows(t->builders[p]) > 0 && !is_lost) {
      HF_TRY(flush(t, p, false, error));
    }
  }
  close_block(t);
  HF_TRY(finish_file(t, error));
  if (t->watch != NULL) {
    sink_take_watched(t->sink, t->watch);
  }
  return sink_take_written(t->sink, &t->file, error);
}

void sink_state_discard(sink_state *t) {
  if (t == NULL) {
    return;
  }
  if (t->fd >= 0) {
    close(t->fd);
  }
  for (uint32_t p = 0; t->builders != NULL && p < t->sink->options.partitions; p++) {
    batch_builder_free(t->builders[p]);
  }
  batch_builder_free(t->model);
  sink_account(t->sink, -(int64_t)t->bytes);
  atomic_fetch_sub(&t->sink->n_open, 1);
  sink_coding_free(t->coding);
  sink_watch_free(t->watch);
  mem_free(t->parts);
  written_file_reset(&t->file);
  mem_free(t->builders);
  row_sort_reset(&t->sort);
  mem_free(t->path);
  mem_free(t);
}

/* ---------------------------------------------------------------- operations */

static hf_status op_open(void *sink, const struct ArrowSchema *engine_schema, void **state, hf_error *error) {
  sink_state *t = NULL;
  HF_TRY(sink_state_open(sink, engine_schema, BATCH_OF_ENGINE, &t, error));
  *state = t;
  return HF_OK;
}

static hf_status op_append(void *state, const struct ArrowArray *rows, const uint32_t *partitions,
                           hf_error *error) {
  return sink_state_append(state, rows, partitions, error);
}

static hf_status op_close(void *state, hf_error *error) {
  return sink_state_close(state, error);
}

static void op_discard(void *state) {
  sink_state_discard(state);
}

static const sink_ops operations = {
    .open = op_open, .append = op_append, .close = op_close, .discard = op_discard};

const sink_ops *block_sink_ops(void) {
  return &operations;
}

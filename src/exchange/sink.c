/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink of a task: the attempt's directory, what its threads wrote, the commit.
 * What one thread does is in sink_state.c.
 */
#include "exchange/sink_internal.h"

#include "arrow/ipc.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write blocks");
}

/* Keeps those of the watched columns whose values have keys of whole numbers. */
static hf_status copy_watched(block_sink *s, const block_sink_options *options, hf_error *error) {
  s->watched = arena_array(s->memory, options->n_watched, sizeof *s->watched);
  if (s->watched == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < options->n_watched; i++) {
    uint32_t number = options->watched[i];
    if (number >= s->columns.n_columns) {
      return error_set(error, HF_E_INTERNAL, "a sink is to watch column %u of %zu", number,
                       s->columns.n_columns);
    }
    if (range_kind_is_integer(range_kind_of(s->columns.columns[number].type))) {
      s->watched[s->n_watched++] = (range_summary){.column = number};
    }
  }
  s->options.n_watched = 0; /* not ours */
  s->options.watched = NULL;
  return HF_OK;
}

static hf_status copy_options(block_sink *s, const block_sink_options *options, hf_error *error) {
  s->options = *options;
  s->options.dir = arena_strdup(s->memory, options->dir);
  if (s->options.dir == NULL) {
    return no_memory(error);
  }
  uint32_t *hash_columns = arena_array(s->memory, options->n_hash_columns, sizeof *hash_columns);
  if (hash_columns == NULL) {
    return no_memory(error);
  }
  if (options->n_hash_columns > 0) {
    memcpy(hash_columns, options->hash_columns, options->n_hash_columns * sizeof *hash_columns);
  }
  s->options.hash_columns = hash_columns;
  if (options->partitions == 0) {
    return error_set(error, HF_E_INTERNAL, "a sink needs a partition");
  }
  HF_TRY(schema_copy(options->columns, s->memory, &s->columns, error));
  s->options.columns = &s->columns;
  return copy_watched(s, options, error);
}

hf_status block_sink_new(const block_sink_options *options, block_sink **out, hf_error *error) {
  block_sink *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return no_memory(error);
  }
  pthread_mutex_init(&s->lock, NULL);
  s->memory = arena_new();
  hf_status status = s->memory == NULL ? no_memory(error) : copy_options(s, options, error);
  if (status == HF_OK) {
    status = file_make_dirs(s->options.dir, error);
    s->has_dir = status == HF_OK;
  }
  if (status != HF_OK) {
    block_sink_free(s);
    return status;
  }
  *out = s;
  return HF_OK;
}

void block_sink_free(block_sink *s) {
  if (s == NULL) {
    return;
  }
  if (s->has_dir && !s->is_committed) {
    file_remove_tree(s->options.dir, NULL);
  }
  for (size_t i = 0; i < s->n_written; i++) {
    written_file_reset(&s->written[i]);
  }
  mem_free(s->written);
  buf_reset(&s->arrow_schema);
  arena_free(s->memory);
  pthread_mutex_destroy(&s->lock);
  mem_free(s);
}

uint64_t block_sink_peak_bytes(const block_sink *s) {
  return atomic_load(&s->peak_bytes);
}

void sink_account(block_sink *s, int64_t change) {
  uint64_t now = atomic_fetch_add_explicit(&s->buffered_bytes, (uint64_t)change, memory_order_relaxed) +
                 (uint64_t)change;
  uint64_t peak = atomic_load_explicit(&s->peak_bytes, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak_explicit(&s->peak_bytes, &peak, now,
                                                              memory_order_relaxed, memory_order_relaxed)) {
  }
}

static hf_status schema_message(block_sink *s, const struct ArrowSchema *incoming, hf_error *error) {
  struct ArrowSchema block_schema;
  HF_TRY(incoming == NULL ? arrow_schema_of_columns(&s->columns, &block_schema, error)
                          : arrow_block_schema(incoming, &block_schema, error));
  hf_status status = HF_OK;
  if (block_schema.n_children != (int64_t)s->columns.n_columns) {
    status = error_set(error, HF_E_INTERNAL, "rows have %lld columns and not the %zu of the output",
                       (long long)block_schema.n_children, s->columns.n_columns);
  } else {
    status = ipc_write_schema(&block_schema, &s->arrow_schema, error);
  }
  block_schema.release(&block_schema);
  return status;
}

hf_status sink_schema(block_sink *s, const struct ArrowSchema *incoming, hf_error *error) {
  pthread_mutex_lock(&s->lock);
  hf_status status = HF_OK;
  if (s->arrow_schema.length == 0) {
    status = schema_message(s, incoming, error);
    if (status != HF_OK) {
      buf_reset(&s->arrow_schema);
    }
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

hf_status sink_coded_schema(const block_sink *s, const uint8_t *code_bytes, buf *out, hf_error *error) {
  struct ArrowSchema block_schema;
  ipc_cursor cursor = {.bytes = s->arrow_schema.data, .left = s->arrow_schema.length};
  HF_TRY(ipc_read_schema(&cursor, &block_schema, error));
  hf_status status = ipc_write_coded_schema(&block_schema, code_bytes, out, error);
  block_schema.release(&block_schema);
  return status;
}

hf_status sink_take_written(block_sink *s, written_file *file, hf_error *error) {
  pthread_mutex_lock(&s->lock);
  written_file *all = mem_realloc(s->written, (s->n_written + 1) * sizeof *all);
  if (all != NULL) {
    s->written = all;
    all[s->n_written++] = *file;
    memset(file, 0, sizeof *file);
  }
  pthread_mutex_unlock(&s->lock);
  return all == NULL ? no_memory(error) : HF_OK;
}

void sink_take_watched(block_sink *s, sink_watch *w) {
  pthread_mutex_lock(&s->lock);
  sink_watch_join(w, s->watched);
  pthread_mutex_unlock(&s->lock);
}

const range_summary *block_sink_watched(const block_sink *s, size_t *n) {
  *n = s->n_watched;
  return s->watched;
}

/* -------------------------------------------------------------------- commit */

static int compare_files(const void *a, const void *b) {
  const written_file *x = a;
  const written_file *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Copies a file's dictionaries behind those that are there. */
static hf_status index_add_dictionaries(const written_file *file, arena *a, block_index *out,
                                        block_dictionary *dictionaries, hf_error *error) {
  for (size_t i = 0; i < file->n_dictionaries; i++) {
    block_dictionary *d = &dictionaries[out->n_dictionaries++];
    *d = file->dictionaries[i];
    block_piece *pieces = arena_array(a, d->n_pieces, sizeof *pieces);
    if (pieces == NULL) {
      return no_memory(error);
    }
    memcpy(pieces, d->pieces, d->n_pieces * sizeof *pieces);
    d->pieces = pieces;
  }
  return HF_OK;
}

static hf_status copy_ranges(const written_file *file, size_t n_columns, arena *a, const block_range **out,
                             hf_error *error) {
  size_t n = file->ranges == NULL ? 0 : file->n_blocks * n_columns;
  block_range *ranges = arena_array(a, n, sizeof *ranges);
  if (ranges == NULL) {
    return no_memory(error);
  }
  if (n > 0) {
    memcpy(ranges, file->ranges, n * sizeof *ranges);
  }
  *out = ranges;
  return HF_OK;
}

/* Copies a file's blocks behind those that are there, with their checksums. */
static hf_status index_add(const written_file *file, size_t n_parts, arena *a, block_index *out,
                           block *blocks, hf_error *error) {
  const block_range *ranges = NULL;
  uint64_t *parts = arena_array(a, file->n_blocks * n_parts, sizeof *parts);
  if (parts == NULL) {
    return no_memory(error);
  }
  HF_TRY(copy_ranges(file, n_parts - 1, a, &ranges, error));
  if (file->n_blocks > 0) {
    memcpy(parts, file->parts, file->n_blocks * n_parts * sizeof *parts);
  }
  for (size_t i = 0; i < file->n_blocks; i++) {
    block *b = &blocks[out->n_blocks++];
    *b = file->blocks[i];
    b->parts = parts + i * n_parts;
    b->ranges = out->has_ranges ? ranges + i * (n_parts - 1) : NULL;
    b->checksum = XXH3_64bits(b->parts, n_parts * sizeof *parts);
    out->rows += b->rows;
    out->bytes += b->bytes;
  }
  return HF_OK;
}

static hf_status index_build(block_sink *s, arena *a, block_index *out, hf_error *error) {
  size_t n_blocks = 0;
  size_t n_dictionaries = 0;
  for (size_t i = 0; i < s->n_written; i++) {
    n_blocks += s->written[i].n_blocks;
    n_dictionaries += s->written[i].n_dictionaries;
  }
  block_dictionary *dictionaries = arena_array(a, n_dictionaries, sizeof *dictionaries);
  uint64_t *file_bytes = arena_array(a, s->n_written, sizeof *file_bytes);
  block *blocks = arena_array(a, n_blocks, sizeof *blocks);
  void *arrow_schema = arena_alloc(a, s->arrow_schema.length);
  if (file_bytes == NULL || blocks == NULL || arrow_schema == NULL || dictionaries == NULL) {
    return no_memory(error);
  }
  memcpy(arrow_schema, s->arrow_schema.data, s->arrow_schema.length);
  *out = (block_index){.arrow_schema = arrow_schema,
                       .arrow_schema_bytes = s->arrow_schema.length,
                       .partitions = s->options.partitions,
                       .n_files = (uint32_t)s->n_written,
                       .ordered = s->options.ordered,
                       .file_bytes = file_bytes,
                       .dictionaries = dictionaries,
                       .hash_version = s->options.hash_version,
                       .n_hash_columns = s->options.n_hash_columns,
                       .hash_columns = s->options.hash_columns,
                       .has_ranges = s->options.held,
                       .blocks = blocks};
  for (size_t i = 0; i < s->n_written; i++) {
    file_bytes[i] = s->written[i].bytes;
    HF_TRY(index_add_dictionaries(&s->written[i], a, out, dictionaries, error));
    HF_TRY(index_add(&s->written[i], s->columns.n_columns + 1, a, out, blocks, error));
  }
  return schema_copy(&s->columns, a, &out->columns, error);
}

static hf_status sync_dir(const char *dir, hf_error *error) {
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot open %s", dir);
  }
  hf_status status = HF_OK;
  if (fsync(fd) != 0) {
    status = error_set_errno(error, errno, HF_E_IO, "cannot sync %s", dir);
  }
  close(fd);
  return status;
}

static hf_status write_index(const block_sink *s, arena *a, const block_index *index, hf_error *error) {
  const char *path = arena_printf(a, "%s/index", s->options.dir);
  if (path == NULL) {
    return no_memory(error);
  }
  buf bytes = {0};
  hf_status status = block_index_encode(index, &bytes, error);
  if (status == HF_OK && bytes.length > BLOCK_INDEX_LARGEST_BYTES) {
    status =
        error_set(error, HF_E_LIMIT, "an index is larger than can be read back: %zu bytes", bytes.length);
  }
  if (status == HF_OK) {
    status = file_write_whole(path, bytes.data, bytes.length, s->options.durable, error);
  }
  buf_reset(&bytes);
  if (status == HF_OK && s->options.durable) {
    status = sync_dir(s->options.dir, error);
  }
  return status;
}

hf_status block_sink_commit(block_sink *s, arena *a, block_index *out, hf_error *error) {
  if (s->n_written != atomic_load(&s->n_opened)) {
    return error_set(error, HF_E_INTERNAL, "a sink is committed while %u of its files are open",
                     atomic_load(&s->n_opened) - (unsigned)s->n_written);
  }
  HF_TRY(sink_schema(s, NULL, error));
  if (s->n_written > 1) {
    qsort(s->written, s->n_written, sizeof *s->written, compare_files);
  }
  block_index index;
  HF_TRY(index_build(s, a, &index, error));
  HF_TRY(write_index(s, a, &index, error));
  s->is_committed = true;
  *out = index;
  return HF_OK;
}

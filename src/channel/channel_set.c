/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of channels: making it of its edges, failing, counting, checking. What moves
 * through it is in channel_queue.c.
 * Thread: made and freed by one.
 */
#include "channel/channel_internal.h"

#include "base/thread.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for channels");
}

/* ------------------------------------------------------------------ making it */

/* Whose frames the reader may get; of the other writers nothing is to be waited for. */
static void find_writers(connection *c) {
  const channel_edge *spec = &c->edge->spec;
  for (uint32_t w = 0; w < spec->writers; w++) {
    uint32_t first = 0, end = spec->readers;
    if (spec->share == CHANNEL_SPLIT) {
      edge_split_readers(spec, w, &first, &end);
    }
    bool writes = c->number >= first && c->number < end;
    c->open_writers += writes ? 1 : 0;
    if (c->n_lanes > 1) {
      c->lanes[w].is_ended = !writes;
    }
  }
}

static hf_status connection_init(channel_set *set, set_edge *edge, uint32_t number, hf_error *error) {
  connection *c = &edge->connections[number];
  cond_init(&c->readable);
  cond_init(&c->writable);
  c->edge = edge;
  c->number = number;
  c->spools = edge->spec.spools || edge->spec.keeps;
  c->n_lanes = edge->spec.ordered ? edge->spec.writers : 1;
  c->lanes = arena_array(set->memory, c->n_lanes, sizeof *c->lanes);
  if (c->lanes == NULL) {
    return no_memory(error);
  }
  find_writers(c);
  return HF_OK;
}

static hf_status check_edge(const channel_edge *spec, hf_error *error) {
  bool is_right = spec->writers > 0 && spec->readers > 0 && spec->partitions > 0 &&
                  (spec->share != CHANNEL_SPLIT || spec->partitions == 1);
  return is_right ? HF_OK
                  : error_set(error, HF_E_INTERNAL,
                              "a channel cannot be: %u writers, %u readers, %u partitions, %s", spec->writers,
                              spec->readers, spec->partitions, spec->name);
}

static hf_status edge_init(channel_set *set, set_edge *edge, const channel_edge *spec, hf_error *error) {
  schema columns;
  HF_TRY(check_edge(spec, error));
  edge->spec = *spec;
  edge->spec.columns = NULL;
  edge->spec.name = arena_strdup(set->memory, spec->name);
  edge->has_ended = arena_array(set->memory, spec->writers, sizeof *edge->has_ended);
  edge->turns = arena_array(set->memory, spec->writers, sizeof *edge->turns);
  connection *connections = arena_array(set->memory, spec->readers, sizeof *connections);
  if (edge->spec.name == NULL || edge->has_ended == NULL || edge->turns == NULL || connections == NULL) {
    return no_memory(error);
  }
  HF_TRY(schema_copy(spec->columns, set->memory, &columns, error));
  HF_TRY(schema_in_blocks(&columns, set->memory, &edge->columns, error));
  HF_TRY(arrow_schema_of_columns(&edge->columns, &edge->block_schema, error));
  edge->connections = connections;
  hf_status status = HF_OK;
  for (uint32_t i = 0; i < spec->readers; i++) { /* all, so that all can be undone */
    hf_status made = connection_init(set, edge, i, error);
    status = status == HF_OK ? made : status;
  }
  return status;
}

static hf_status set_init(channel_set *set, const channel_set_options *options, hf_error *error) {
  set->memory = arena_new();
  if (set->memory == NULL) {
    return no_memory(error);
  }
  set->edges = arena_array(set->memory, options->n_edges, sizeof *set->edges);
  set->tasks = arena_array(set->memory, options->tasks, sizeof *set->tasks);
  if (set->edges == NULL || set->tasks == NULL) {
    return no_memory(error);
  }
  set->n_tasks = set->n_live = options->tasks;
  set->bound_bytes = options->bound_bytes;
  for (size_t i = 0; i < options->n_edges; i++) {
    set->n_edges = i + 1;
    HF_TRY(edge_init(set, &set->edges[i], &options->edges[i], error));
  }
  return spool_open(set, options->spool_dir, error);
}

hf_status channel_set_new(const channel_set_options *options, channel_set **out, hf_error *error) {
  channel_set *set = mem_zalloc(1, sizeof *set);
  if (set == NULL) {
    return no_memory(error);
  }
  set->spool_fd = -1;
  pthread_mutex_init(&set->lock, NULL);
  hf_status status = set_init(set, options, error);
  if (status != HF_OK) {
    channel_set_free(set);
    return status;
  }
  *out = set;
  return HF_OK;
}

static void edge_reset(channel_set *set, set_edge *edge) {
  for (uint32_t i = 0; edge->connections != NULL && i < edge->spec.readers; i++) {
    connection *c = &edge->connections[i];
    if (c->lanes != NULL) {
      queue_close(set, c);
    }
    pthread_cond_destroy(&c->readable);
    pthread_cond_destroy(&c->writable);
  }
  if (edge->block_schema.release != NULL) {
    edge->block_schema.release(&edge->block_schema);
  }
  buf_reset(&edge->head);
}

void channel_set_free(channel_set *set) {
  if (set == NULL) {
    return;
  }
  for (size_t i = 0; i < set->n_edges; i++) {
    edge_reset(set, &set->edges[i]);
  }
  spool_close(set);
  hf_error_reset(&set->error);
  pthread_mutex_destroy(&set->lock);
  arena_free(set->memory);
  mem_free(set);
}

/* ------------------------------------------------------------------- failing */

void channel_set_fail(channel_set *set, const hf_error *error) {
  pthread_mutex_lock(&set->lock);
  queue_fail_locked(set, error);
  pthread_mutex_unlock(&set->lock);
}

/* ------------------------------------------------------------------ counting */

void channel_set_stats(channel_set *set, size_t edge, channel_stats *out) {
  const set_edge *of = &set->edges[edge];
  pthread_mutex_lock(&set->lock);
  *out = of->stats;
  for (uint32_t w = 0; w < of->spec.writers; w++) {
    out->ended += of->has_ended[w] ? 1 : 0;
  }
  for (uint32_t i = 0; i < of->spec.readers; i++) {
    const connection *c = &of->connections[i];
    out->rows_delivered += c->rows_sent;
    out->rows_read += c->rows_read;
    out->peak_bytes = c->peak_bytes > out->peak_bytes ? c->peak_bytes : out->peak_bytes;
    out->cut_short += c->is_closed && !c->was_ended ? 1 : 0;
    out->spools = out->spools || c->spools;
  }
  pthread_mutex_unlock(&set->lock);
}

/* ------------------------------------------------------------------ checking */

static hf_status check_connection(const connection *c, hf_error *error) {
  if (c->was_ended && (c->rows_read != c->rows_sent || c->rows_dropped > 0)) {
    return error_set(error, HF_E_INTERNAL,
                     "a reader has read %llu rows of %llu that it was sent, %llu were dropped: %s",
                     (unsigned long long)c->rows_read, (unsigned long long)c->rows_sent,
                     (unsigned long long)c->rows_dropped, c->edge->spec.name);
  }
  return c->was_ended || c->is_closed
             ? HF_OK
             : error_set(error, HF_E_INTERNAL, "a reader has neither read to the end nor closed: %s",
                         c->edge->spec.name);
}

static hf_status check_edge_locked(const set_edge *edge, hf_error *error) {
  uint64_t told = 0; /* rows that went to connections, or would have */
  for (uint32_t w = 0; w < edge->spec.writers; w++) {
    if (!edge->has_ended[w]) {
      return error_set(error, HF_E_INTERNAL, "a writer has not ended: task %u, %s", w, edge->spec.name);
    }
  }
  for (uint32_t i = 0; i < edge->spec.readers; i++) {
    const connection *c = &edge->connections[i];
    HF_TRY(check_connection(c, error));
    told += c->rows_sent + c->rows_dropped;
  }
  uint64_t expected = edge->stats.rows_written * (edge->spec.share == CHANNEL_ALL ? edge->spec.readers : 1);
  return told == expected
             ? HF_OK
             : error_set(error, HF_E_INTERNAL, "an edge has carried %llu rows of %llu that were written: %s",
                         (unsigned long long)told, (unsigned long long)expected, edge->spec.name);
}

hf_status channel_set_check(channel_set *set, hf_error *error) {
  pthread_mutex_lock(&set->lock);
  hf_status status = set->error.code == HF_OK ? HF_OK : queue_failure_locked(set, error);
  for (size_t i = 0; status == HF_OK && i < set->n_edges; i++) {
    status = check_edge_locked(&set->edges[i], error);
  }
  pthread_mutex_unlock(&set->lock);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames in connections: who gets one, sending it, waiting for room, taking it,
 * ends. What a wait means for the other tasks is in channel_wait.c.
 * Thread: any; nothing is written, read or freed under set->lock.
 */
#include "channel/channel_internal.h"

#include "base/fault.h"

#include <string.h>
#include <xxhash.h>

/* -------------------------------------------------------------------- frames */

hf_status frame_new(char *bytes, size_t length, size_t most_nodes, frame **out, hf_error *error) {
  frame *f = mem_zalloc(1, sizeof *f + most_nodes * sizeof(frame_node));
  if (f == NULL) {
    mem_free(bytes);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a frame");
  }
  atomic_init(&f->references, 1);
  f->bytes = bytes;
  f->length = length;
  f->checksum = XXH3_64bits(bytes, length);
  *out = f;
  return HF_OK;
}

void frame_release(frame *f) {
  if (atomic_fetch_sub_explicit(&f->references, 1, memory_order_acq_rel) == 1) {
    mem_free(f->bytes);
    mem_free(f);
  }
}

/* ------------------------------------------------------------------- failing */

hf_status queue_failure_locked(channel_set *set, hf_error *error) {
  if (error != NULL) {
    error_copy(error, &set->error);
  }
  return set->error.code;
}

void queue_fail_locked(channel_set *set, const hf_error *error) {
  if (set->error.code != HF_OK) {
    return;
  }
  error_copy(&set->error, error);
  for (size_t i = 0; i < set->n_edges; i++) {
    for (uint32_t r = 0; r < set->edges[i].spec.readers; r++) {
      pthread_cond_broadcast(&set->edges[i].connections[r].readable);
      pthread_cond_broadcast(&set->edges[i].connections[r].writable);
    }
  }
}

/* ------------------------------------------------------------------- targets */

void edge_split_readers(const channel_edge *edge, uint32_t writer, uint32_t *first, uint32_t *end) {
  uint64_t readers = edge->readers, writers = edge->writers, w = writer;
  *first = (uint32_t)(w * readers / writers);
  *end = (uint32_t)(((w + 1) * readers + writers - 1) / writers);
}

/* The readers of an edge that may get frames of the writer; with `f`, that get this one. */
static void edge_targets(set_edge *edge, uint32_t writer, const frame *f, uint32_t *first, uint32_t *end) {
  const channel_edge *spec = &edge->spec;
  *first = 0;
  *end = spec->readers;
  if (spec->share == CHANNEL_SPLIT) {
    edge_split_readers(spec, writer, first, end);
    if (f != NULL && *end - *first > 1) {
      *first += spec->ordered || FAULT("channel.one_reader") ? 0 : edge->turns[writer]++ % (*end - *first);
      *end = *first + 1;
    }
  } else if (spec->share == CHANNEL_PARTITION && f != NULL) {
    uint64_t partition =
        f->partition + (FAULT("channel.wrong_reader") && f->partition + 1 < spec->partitions ? 1u : 0u);
    *first = (uint32_t)(partition * spec->readers / spec->partitions);
    *end = *first + 1;
  }
}

static void pick_targets_locked(route *r, const frame *f) {
  r->n_targets = 0;
  for (size_t i = 0; i < r->n_edges; i++) {
    set_edge *edge = &r->set->edges[r->edges[i]];
    uint32_t first = 0, end = 0;
    edge_targets(edge, r->writer, f, &first, &end);
    edge->stats.rows_written += f->rows;
    for (; first < end; first++) {
      r->targets[r->n_targets++] = &edge->connections[first];
    }
  }
}

/* Leaves out those that have closed. */
static void drop_closed_locked(route *r, const frame *f) {
  size_t kept = 0;
  for (size_t i = 0; i < r->n_targets; i++) {
    connection *c = r->targets[i];
    if (c->is_closed) {
      c->rows_dropped += f->rows;
    } else {
      r->targets[kept++] = c;
    }
  }
  r->n_targets = kept;
}

static bool is_unwanted_locked(const route *r) {
  for (size_t i = 0; i < r->n_edges; i++) {
    set_edge *edge = &r->set->edges[r->edges[i]];
    uint32_t first = 0, end = 0;
    edge_targets(edge, r->writer, NULL, &first, &end);
    for (; first < end; first++) {
      if (!edge->connections[first].is_closed) {
        return false;
      }
    }
  }
  return true;
}

/* ------------------------------------------------------------------- sending */

static uint32_t lane_number(const connection *c, uint32_t writer) {
  return c->n_lanes > 1 ? writer : 0;
}

static bool admits_locked(const channel_set *set, const connection *c, uint32_t writer, uint64_t length) {
  uint32_t n = lane_number(c, writer);
  return c->bytes == 0 || c->bytes + length <= set->bound_bytes ||
         (n == c->reading_lane && c->lanes[n].bytes == 0);
}

connection *queue_full_target_locked(const route *r) {
  for (size_t i = 0; i < r->n_targets; i++) {
    connection *c = r->targets[i];
    if (!c->is_closed && !admits_locked(r->set, c, r->writer, r->length)) {
      return c;
    }
  }
  return NULL;
}

/* One that is full and spools takes the frame to the file, for all. */
static bool goes_to_file_locked(const route *r) {
  for (size_t i = 0; i < r->n_targets; i++) {
    const connection *c = r->targets[i];
    if (!c->is_closed && c->spools && !admits_locked(r->set, c, r->writer, r->length)) {
      return true;
    }
  }
  return false;
}

bool queue_can_send_locked(const route *r) {
  return r->set->error.code != HF_OK || queue_full_target_locked(r) == NULL || goes_to_file_locked(r);
}

static void push_locked(connection *c, frame *f) {
  lane *l = &c->lanes[lane_number(c, f->writer)];
  frame_node *node = &f->nodes[f->n_nodes++];
  *node = (frame_node){.of = f};
  atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
  if (l->last == NULL) {
    l->first = node;
  } else if (FAULT("channel.order")) {
    node->next = l->first;
    l->first = node;
    node = l->last;
  } else {
    l->last->next = node;
  }
  l->last = node;
  if (f->bytes != NULL) {
    l->bytes += f->length;
    c->bytes += f->length;
    c->peak_bytes = c->bytes > c->peak_bytes ? c->bytes : c->peak_bytes;
  }
  c->rows_sent += f->rows;
  pthread_cond_broadcast(&c->readable);
}

static void push_all_locked(route *r, frame *f) {
  for (size_t i = 0; i < r->n_edges; i++) {
    channel_stats *stats = &r->set->edges[r->edges[i]].stats;
    stats->frames++;
    stats->frame_bytes += f->length;
    stats->spooled_frames += f->bytes == NULL ? 1 : 0;
    stats->spooled_bytes += f->bytes == NULL ? f->length : 0;
  }
  for (size_t i = 0; i < r->n_targets; i++) {
    push_locked(r->targets[i], f);
  }
}

/* Waits until the frame can go. *to_file: into the file, at a place that is its own from now on. */
static hf_status wait_for_room_locked(route *r, frame *f, bool *to_file, hf_error *error) {
  channel_set *set = r->set;
  *to_file = false;
  for (;;) {
    drop_closed_locked(r, f);
    if (set->error.code != HF_OK) {
      return queue_failure_locked(set, error);
    }
    connection *full = queue_full_target_locked(r);
    if (full == NULL) {
      return HF_OK;
    }
    if (goes_to_file_locked(r)) {
      *to_file = true;
      f->offset = set->spool_end;
      set->spool_end += f->length;
      return HF_OK;
    }
    wait_locked(set, &(channel_wait){.task = r->task, .sending = r}, &full->writable);
  }
}

static hf_status send_to_file(route *r, frame *f, hf_error *error) {
  HF_TRY(spool_write(r->set, f->offset, f->bytes, f->length, error));
  mem_free(f->bytes);
  f->bytes = NULL;
  pthread_mutex_lock(&r->set->lock);
  drop_closed_locked(r, f);
  push_all_locked(r, f);
  pthread_mutex_unlock(&r->set->lock);
  return HF_OK;
}

hf_status queue_send(route *r, frame *f, bool *unwanted, hf_error *error) {
  bool to_file = false;
  r->length = f->length;
  pthread_mutex_lock(&r->set->lock);
  pick_targets_locked(r, f);
  hf_status status = wait_for_room_locked(r, f, &to_file, error);
  if (status == HF_OK && !to_file) {
    push_all_locked(r, f);
  }
  *unwanted = status == HF_OK && r->n_targets == 0 && is_unwanted_locked(r);
  pthread_mutex_unlock(&r->set->lock);
  if (to_file) {
    status = send_to_file(r, f, error);
  }
  frame_release(f);
  return status;
}

hf_status queue_end_writer(route *r, hf_error *error) {
  channel_set *set = r->set;
  hf_status status = HF_OK;
  pthread_mutex_lock(&set->lock);
  for (size_t i = 0; status == HF_OK && i < r->n_edges; i++) {
    set_edge *edge = &set->edges[r->edges[i]];
    uint32_t first = 0, end = 0;
    if (edge->has_ended[r->writer]) {
      status = error_set(error, HF_E_INTERNAL, "a writer has ended twice: task %u, %s", r->writer,
                         edge->spec.name);
      break;
    }
    edge->has_ended[r->writer] = true;
    edge_targets(edge, r->writer, NULL, &first, &end);
    for (; first < end; first++) {
      connection *c = &edge->connections[first];
      c->open_writers--;
      c->lanes[lane_number(c, r->writer)].is_ended = c->n_lanes > 1 || c->open_writers == 0;
      pthread_cond_broadcast(&c->readable);
    }
  }
  if (status == HF_OK && set->error.code != HF_OK) {
    status = queue_failure_locked(set, error);
  }
  pthread_mutex_unlock(&set->lock);
  return status;
}

/* -------------------------------------------------------------------- taking */

static const frame_node *first_of(const channel_scan *scan, const lane *l) {
  return scan->at == NULL ? l->first : scan->at->next;
}

bool queue_can_take_locked(const channel_scan *scan) {
  const connection *c = scan->reader->from;
  const lane *l = &c->lanes[scan->lane];
  return scan->reader->set->error.code != HF_OK || c->is_closed || first_of(scan, l) != NULL || l->is_ended;
}

/* Goes on to the first lane that has a frame or is not done. False: all are done. */
static bool find_lane_locked(channel_scan *scan) {
  connection *c = scan->reader->from;
  const lane *l = &c->lanes[scan->lane];
  while (first_of(scan, l) == NULL && l->is_ended) {
    if (scan->lane + 1 == c->n_lanes) {
      return false;
    }
    l = &c->lanes[++scan->lane];
    scan->at = NULL;
    if (scan->lane > c->reading_lane) {
      c->reading_lane = scan->lane;
      pthread_cond_broadcast(&c->writable);
    }
  }
  return true;
}

/* The frame's reference goes to the caller, or, of what is kept, it gets another. */
static frame *take_locked(channel_scan *scan) {
  connection *c = scan->reader->from;
  lane *l = &c->lanes[scan->lane];
  const frame_node *node = first_of(scan, l);
  if (node == NULL) {
    return NULL;
  }
  frame *f = node->of;
  c->was_taken = true;
  scan->rows += f->rows;
  c->rows_read = scan->rows > c->rows_read ? scan->rows : c->rows_read;
  if (c->edge->spec.keeps) {
    scan->at = node;
    atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
    return f;
  }
  l->first = node->next;
  l->last = l->first == NULL ? NULL : l->last;
  if (f->bytes != NULL) {
    l->bytes -= f->length;
    c->bytes -= f->length;
    pthread_cond_broadcast(&c->writable);
  }
  return f;
}

hf_status queue_take(channel_scan *scan, frame **out, hf_error *error) {
  channel_set *set = scan->reader->set;
  connection *c = scan->reader->from;
  hf_status status = HF_OK;
  *out = NULL;
  pthread_mutex_lock(&set->lock);
  while (status == HF_OK && *out == NULL) {
    if (set->error.code != HF_OK) {
      status = queue_failure_locked(set, error);
    } else if (c->is_closed) { /* by a state that was not at the end, and now there is another */
      status = c->was_ended ? HF_OK : reader_lacks(scan->reader, error);
      break;
    } else if (!find_lane_locked(scan)) {
      c->was_ended = true;
      break;
    } else {
      *out = take_locked(scan);
      if (*out == NULL) {
        wait_locked(set, &(channel_wait){.task = scan->reader->task, .taking = scan}, &c->readable);
      }
    }
  }
  pthread_mutex_unlock(&set->lock);
  return status;
}

/* ------------------------------------------------------------------- closing */

/* Takes all frames out of the connection, one behind the other. */
static frame_node *empty_locked(connection *c) {
  frame_node *all = NULL;
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    lane *l = &c->lanes[i];
    if (l->first != NULL) {
      l->last->next = all;
      all = l->first;
    }
    l->first = l->last = NULL;
    l->bytes = 0;
  }
  c->bytes = 0;
  return all;
}

void queue_close(channel_set *set, connection *c) {
  pthread_mutex_lock(&set->lock);
  c->is_closed = true;
  frame_node *left = empty_locked(c);
  pthread_cond_broadcast(&c->writable);
  pthread_cond_broadcast(&c->readable);
  pthread_mutex_unlock(&set->lock);
  while (left != NULL) {
    frame_node *next = left->next;
    frame_release(left->of);
    left = next;
  }
}

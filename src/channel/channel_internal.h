/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of channel/ share: the set with its edges and connections, frames,
 * waits. Internal to src/channel.
 *
 * Invariants, all under set->lock. C1: a frame in a lane holds a reference. C2: a
 * connection's bytes are those of its lanes' frames in memory; they pass the bound only
 * by a frame that came when there was nothing where the reader reads. C3: room and rows
 * are signalled where they come about. C4: when every live task waits, those that can go on
 * are woken; when none can, one is made to, or the set fails. C5: a connection that is closed
 * holds no frame.
 */
#ifndef HF_CHANNEL_INTERNAL_H
#define HF_CHANNEL_INTERNAL_H

#include "channel/channel.h"

#include "arrow/batch.h"
#include "arrow/ipc.h"
#include "base/buf.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct frame frame;
typedef struct connection connection;
typedef struct set_edge set_edge;

/* A frame's place in a lane. */
typedef struct frame_node {
  struct frame_node *next;
  frame *of;
} frame_node;

/* One record batch message. Only `references` changes once it is sent. */
struct frame {
  atomic_uint references;
  char *bytes;     /* NULL: in the spool */
  uint64_t offset; /* there */
  size_t length;
  uint64_t checksum; /* XXH3 of the bytes */
  uint64_t rows;
  uint32_t partition, writer;
  size_t n_nodes; /* used */
  frame_node nodes[];
};

/* What waits, in the order in which it is to be read. Ordered edges have one for each writer. */
typedef struct lane {
  frame_node *first, *last;
  uint64_t bytes;
  bool is_ended; /* nothing comes any more */
} lane;

struct connection {
  set_edge *edge;
  uint32_t number; /* of the reader */
  uint32_t n_lanes;
  lane *lanes;
  uint32_t reading_lane; /* earlier ones are done */
  uint32_t open_writers; /* of those that write to it */
  uint64_t bytes, peak_bytes;
  bool spools;
  bool is_closed;
  bool was_taken;  /* some frame was */
  bool was_ended;  /* some scan has seen the end */
  bool has_reader; /* was opened; one at most */
  uint64_t rows_sent, rows_dropped, rows_read;
  pthread_cond_t readable, writable;
};

struct set_edge {
  channel_edge spec; /* its own texts and columns */
  schema columns;    /* as blocks have them */
  struct ArrowSchema block_schema;
  buf head;                /* the schema message, of the first writer */
  connection *connections; /* spec.readers */
  bool *has_ended;         /* one a writer */
  uint32_t *turns;         /* one a writer: whose turn the next frame is */
  channel_stats stats;     /* what is not a connection's */
};

typedef struct set_task {
  uint32_t waits; /* of its threads */
  bool has_ended;
} set_task;

struct channel_wait;

struct channel_set {
  arena *memory;
  pthread_mutex_t lock;
  size_t n_edges;
  set_edge *edges;
  uint32_t n_tasks, n_live, n_waiting; /* n_waiting: live tasks of which a thread waits */
  set_task *tasks;
  struct channel_wait *waits;
  uint64_t bound_bytes;
  hf_error error; /* code HF_OK: not failed */
  const char *spool_dir;
  char *spool_path;
  int spool_fd;
  uint64_t spool_end;
};

/* ------------------------------------------------------------------ frames */

/* Takes the bytes (mem_alloc), also on failure. One reference. */
hf_status frame_new(char *bytes, size_t length, size_t most_nodes, frame **out, hf_error *error);
void frame_release(frame *f);
/* Decodes the bytes of a frame, which stay until the array is released. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY. */
hf_status frame_decode(const frame *f, const char *bytes, ipc_decoder *decoder, struct ArrowArray *out,
                       hf_error *error);

/* ------------------------------------------------------------ channel_queue.c */

/* Where a writer's frames go, and room to tell it of one. */
typedef struct route {
  channel_set *set;
  uint32_t task, writer;
  size_t n_edges;
  const size_t *edges;
  size_t n_targets;
  connection **targets;
  uint64_t length; /* of the frame that is sent */
} route;

/* One scan of a connection. The cursor is guarded by set->lock. */
typedef struct channel_scan {
  struct channel_reader *reader;
  size_t n_columns;
  size_t *columns;
  uint32_t lane;
  const frame_node *at; /* edge keeps: the last one taken of this lane; NULL: none yet */
  uint64_t rows;
} channel_scan;

/* The readers [*first, *end) that a writer of a CHANNEL_SPLIT edge may write to. */
void edge_split_readers(const channel_edge *edge, uint32_t writer, uint32_t *first, uint32_t *end);
/* Sends a frame to all connections that want it, or waits until it can; takes the reference. *unwanted: no reader of
 * any of the writer's edges wants more. Errors: what the set failed with; DISK_FULL, IO. */
hf_status queue_send(route *r, frame *f, bool *unwanted, hf_error *error);
/* The next frame, with a reference, or NULL at the end. Waits. Errors: what the set failed with. */
hf_status queue_take(channel_scan *scan, frame **out, hf_error *error);
/* No more comes from the writer. */
hf_status queue_end_writer(route *r, hf_error *error);
void queue_close(channel_set *set, connection *c);
hf_status queue_failure_locked(channel_set *set, hf_error *error);
void queue_fail_locked(channel_set *set, const hf_error *error);

/* ------------------------------------------------------------- channel_wait.c */

/* A thread that waits: to send, or to take. */
typedef struct channel_wait {
  struct channel_wait *next, *previous;
  uint32_t task;
  const route *sending;       /* or NULL */
  const channel_scan *taking; /* or NULL */
  pthread_cond_t *on;
} channel_wait;

/* Waits once; may return for no reason. */
void wait_locked(channel_set *set, channel_wait *w, pthread_cond_t *on);
/* Looks whether every live task waits, and makes one go on. Returns whether it did. */
bool wait_resolve_locked(channel_set *set);
bool queue_can_send_locked(const route *r);
bool queue_can_take_locked(const channel_scan *scan);
/* A connection for which the frame waits; NULL: none. */
connection *queue_full_target_locked(const route *r);

/* ------------------------------------------------------------ channel_spool.c */

hf_status spool_open(channel_set *set, const char *dir, hf_error *error);
void spool_close(channel_set *set);
hf_status spool_write(const channel_set *set, uint64_t offset, const void *bytes, size_t length,
                      hf_error *error);
/* *out is owned by the caller. Errors: BLOCK_CORRUPT (shorter than it was), IO. */
hf_status spool_read(const channel_set *set, uint64_t offset, size_t length, char **out, hf_error *error);

/* ----------------------------------------------------------- channel_reader.c */

struct channel_reader {
  channel_set *set;
  connection *from;
  uint32_t task;
  unsigned threads;
  atomic_bool lacks_keeping;
};

/* The error of a reader that wants rows which are gone, and its mark. */
hf_status reader_lacks(struct channel_reader *r, hf_error *error);

#endif

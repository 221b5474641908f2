/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads with a chosen stack, and a queue of events: many threads post, one
 * takes. SIGINT, SIGTERM and SIGPIPE are blocked in threads made here, so that
 * an application's handlers run on its own threads.
 */
#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>

/* Stack of threads that plan: DuckDB's binder recurses deeply. */
#define THREAD_PLANNING_STACK_BYTES ((size_t)64 << 20)

/* Starts a thread; stack_bytes 0 means the default. Errors: HF_E_OUT_OF_MEMORY. */
hf_status thread_start(pthread_t *out, size_t stack_bytes, void *(*run)(void *), void *context,
                       const char *name, hf_error *error);

/* An event in a queue: embed as the first member. */
typedef struct queue_item {
  struct queue_item *next;
} queue_item;

typedef struct event_queue {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  queue_item *first, *last; /* guarded by lock */
  bool closed;              /* guarded by lock */
} event_queue;

void event_queue_init(event_queue *q);
/* Destroys; the queue must be empty and unused. */
void event_queue_destroy(event_queue *q);
/* Appends. Returns false, and does not take the item, when the queue is closed. */
bool event_queue_post(event_queue *q, queue_item *item);
/*
 * Takes the oldest item; waits until there is one. Returns NULL when the queue is closed and empty, or when
 * `deadline_us` (clock_monotonic_us; 0: none) has passed.
 */
queue_item *event_queue_take(event_queue *q, uint64_t deadline_us);
/* No more posts; takers drain what is there and then get NULL. */
void event_queue_close(event_queue *q);

/* Initialises a condition variable that waits on the monotonic clock. */
void cond_init(pthread_cond_t *cond);
/* Waits until signalled or the deadline (clock_monotonic_us; 0: none). Returns false when the deadline has passed. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_us);

#endif

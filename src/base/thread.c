/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and the event queue, on pthreads. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

hf_status thread_start(pthread_t *out, size_t stack_bytes, void *(*run)(void *), void *context,
                       const char *name, hf_error *error) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack_bytes > 0) {
    pthread_attr_setstacksize(&attributes, stack_bytes);
  }
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  int failed = pthread_create(out, &attributes, run, context);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "cannot start a thread: %s", name);
  }
  pthread_setname_np(*out, name);
  return HF_OK;
}

void event_queue_init(event_queue *q) {
  pthread_mutex_init(&q->lock, NULL);
  cond_init(&q->filled);
  q->first = q->last = NULL;
  q->closed = false;
}

void event_queue_destroy(event_queue *q) {
  pthread_cond_destroy(&q->filled);
  pthread_mutex_destroy(&q->lock);
}

bool event_queue_post(event_queue *q, queue_item *item) {
  pthread_mutex_lock(&q->lock);
  bool is_open = !q->closed;
  if (is_open) {
    item->next = NULL;
    if (q->last == NULL) {
      q->first = item;
    } else {
      q->last->next = item;
    }
    q->last = item;
    pthread_cond_signal(&q->filled);
  }
  pthread_mutex_unlock(&q->lock);
  return is_open;
}

queue_item *event_queue_take(event_queue *q, uint64_t deadline_us) {
  pthread_mutex_lock(&q->lock);
  while (q->first == NULL && !q->closed) {
    if (!cond_wait_until(&q->filled, &q->lock, deadline_us)) {
      break;
    }
  }
  queue_item *item = q->first;
  if (item != NULL) {
    q->first = item->next;
    if (q->first == NULL) {
      q->last = NULL;
    }
  }
  pthread_mutex_unlock(&q->lock);
  return item;
}

void event_queue_close(event_queue *q) {
  pthread_mutex_lock(&q->lock);
  q->closed = true;
  pthread_cond_broadcast(&q->filled);
  pthread_mutex_unlock(&q->lock);
}

void cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_us) {
  if (deadline_us == 0) {
    pthread_cond_wait(cond, lock);
    return true;
  }
  struct timespec until = {.tv_sec = (time_t)(deadline_us / 1000000u),
                           .tv_nsec = (long)(deadline_us % 1000000u) * 1000};
  return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

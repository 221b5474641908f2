/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: a message to a thread of the scheduler whose sender waits, and the count
 * of callers inside, for which closing waits.
 * Thread: any.
 */
#include "scheduler/scheduler_internal.h"

void call_init(call *c, void (*handle)(scheduler *s, message *m)) {
  c->base.handle = handle;
  c->done = false;
  pthread_mutex_init(&c->lock, NULL);
  cond_init(&c->changed);
}

void call_reset(call *c) {
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
}

bool call_run(scheduler *s, event_queue *queue, call *c) {
  if (!caller_enter(s)) {
    return false;
  }
  bool is_posted = event_queue_post(queue, &c->base.item);
  pthread_mutex_lock(&c->lock);
  while (is_posted && !c->done) {
    cond_wait_until(&c->changed, &c->lock, 0);
  }
  pthread_mutex_unlock(&c->lock);
  caller_leave(s);
  return is_posted;
}

void call_finish(call *c) {
  pthread_mutex_lock(&c->lock);
  c->done = true;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

bool caller_enter(scheduler *s) {
  pthread_mutex_lock(&s->callers_lock);
  bool is_open = !s->is_closed;
  s->callers += is_open ? 1 : 0;
  pthread_mutex_unlock(&s->callers_lock);
  return is_open;
}

void caller_leave(scheduler *s) {
  pthread_mutex_lock(&s->callers_lock);
  if (--s->callers == 0) {
    pthread_cond_broadcast(&s->callers_left);
  }
  pthread_mutex_unlock(&s->callers_lock);
}

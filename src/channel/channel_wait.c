/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting, and what happens when every task waits. Bounded channels can come to a
 * standstill that unbounded ones would not: a reader wants its first input while the
 * writer of it, or one of those before it, waits for room in the second. Then one
 * connection with writers waiting stops being bounded in its frames and goes to the file
 * (T. M. Parks, Bounded Scheduling of Process Networks, 1995). Each connection does so
 * at most once, so it ends.
 * Thread: any, under set->lock.
 */
#include "channel/channel_internal.h"

#include "base/thread.h"

static bool can_go_locked(const channel_wait *w) {
  return w->sending != NULL ? queue_can_send_locked(w->sending) : queue_can_take_locked(w->taking);
}

/* "task 2 to send to 'stage 4, input 1'; task 5 to take from …", not too many. */
static void describe_locked(const channel_set *set, buf *out) {
  enum { MOST = 8 };
  size_t n = 0;
  for (const channel_wait *w = set->waits; w != NULL && n < MOST; w = w->next, n++) {
    const connection *c = w->sending != NULL ? queue_full_target_locked(w->sending) : w->taking->reader->from;
    buf_printf(out, "%stask %u %s %s", n == 0 ? "" : "; ", w->task,
               w->sending != NULL ? "to send to" : "to take from", c == NULL ? "?" : c->edge->spec.name);
  }
}

/* Wakes those that can go on. A frame for several connections waits on one of them, and others may let it go. */
static bool wake_locked(const channel_set *set) {
  bool any = false;
  for (const channel_wait *w = set->waits; w != NULL; w = w->next) {
    if (can_go_locked(w)) {
      pthread_cond_broadcast(w->on);
      any = true;
    }
  }
  return any;
}

static connection *find_full_locked(const channel_set *set) {
  for (const channel_wait *w = set->waits; w != NULL; w = w->next) {
    if (w->sending != NULL) {
      return queue_full_target_locked(w->sending);
    }
  }
  return NULL;
}

bool wait_resolve_locked(channel_set *set) {
  if (set->n_live == 0 || set->n_waiting < set->n_live || set->error.code != HF_OK || wake_locked(set)) {
    return false;
  }
  connection *full = find_full_locked(set);
  if (full != NULL) {
    full->spools = true;
    wake_locked(set);
    return true;
  }
  hf_error error = {0};
  buf who = {0};
  describe_locked(set, &who);
  error_set(&error, HF_E_INTERNAL, "every task of a streaming query waits for another: %s", buf_cstr(&who));
  buf_reset(&who);
  queue_fail_locked(set, &error);
  hf_error_reset(&error);
  return true;
}

static void enter_locked(channel_set *set, channel_wait *w) {
  w->next = set->waits;
  w->previous = NULL;
  if (set->waits != NULL) {
    set->waits->previous = w;
  }
  set->waits = w;
  set_task *task = &set->tasks[w->task];
  if (task->waits++ == 0 && !task->has_ended) {
    set->n_waiting++;
  }
}

static void leave_locked(channel_set *set, channel_wait *w) {
  if (w->previous == NULL) {
    set->waits = w->next;
  } else {
    w->previous->next = w->next;
  }
  if (w->next != NULL) {
    w->next->previous = w->previous;
  }
  set_task *task = &set->tasks[w->task];
  if (--task->waits == 0 && !task->has_ended) {
    set->n_waiting--;
  }
}

void wait_locked(channel_set *set, channel_wait *w, pthread_cond_t *on) {
  w->on = on;
  enter_locked(set, w);
  if (!wait_resolve_locked(set)) {
    cond_wait_until(on, &set->lock, 0);
  }
  leave_locked(set, w);
}

void channel_set_end_task(channel_set *set, uint32_t task) {
  pthread_mutex_lock(&set->lock);
  set_task *t = &set->tasks[task];
  if (!t->has_ended) {
    set->n_live--;
    set->n_waiting -= t->waits > 0 ? 1 : 0;
    t->has_ended = true;
    wait_resolve_locked(set);
  }
  pthread_mutex_unlock(&set->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding as users see it: declare, unpersist, refresh, storage, listing, and the
 * end of a session. Each is a call to the scheduler's thread.
 * Threads: door functions any, handlers the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include <stddef.h>
#include <stdio.h>

/* ----------------------------------------------------------------- declare */

typedef struct declare_call {
  call base;
  const declaration *row;
  hf_status status;
  hf_error error;
} declare_call;

static void declare_written(void *of, hf_status status) {
  (void)status; /* the hold is there; the session's flush says that it does not last */
  call_finish(of);
}

static void declare_handle(scheduler *s, message *m) {
  declare_call *c = (declare_call *)m;
  owner *of = owner_need(s, &c->row->session, &c->error);
  c->status = of == NULL ? c->error.code : declarations_add(s->declared, c->row, &c->error);
  durable_declared(s, c->status == HF_OK ? c->row : NULL, declare_written, c);
}

hf_status scheduler_declare(scheduler *s, const declaration *row, hf_error *error) {
  declare_call c = {.row = row};
  call_init(&c.base, declare_handle);
  if (!call_run(s, &s->events, &c.base)) {
    c.status = error_set(&c.error, HF_E_SESSION_CLOSED, "the engine is closed");
  }
  call_reset(&c.base);
  if (c.status != HF_OK) {
    error_move(error, &c.error);
  }
  return c.status;
}

/* -------------------------------------------------------- unpersist, refresh */

typedef struct key_call {
  call base;
  parked parked; /* until the readers have ended */
  scheduler *scheduler;
  const uuid *key;
  hold_wait wait;
} key_call;

static void unpersist_written(void *of, hf_status status) {
  key_call *c = of;
  (void)status;
  if (c->wait == HOLD_WAIT_NOT) {
    call_finish(&c->base);
  } else {
    clean_then_finish(c->scheduler, &c->base);
  }
}

/* Nobody reads it any more, or nobody waits for that: its files are queued to go. */
static void unpersist_go_on(scheduler *s, parked *p) {
  key_call *c = (key_call *)((char *)p - offsetof(key_call, parked));
  durable_declared(s, declarations_find(s->declared, c->key), unpersist_written, c);
}

static void unpersist_handle(scheduler *s, message *m) {
  key_call *c = (key_call *)m;
  entry_view view;
  registry_lookup(s->registry, c->key, &view);
  c->parked = (parked){.go_on = unpersist_go_on};
  if (c->wait == HOLD_WAIT_READERS && view.state == ENTRY_PENDING) {
    c->parked.fill = view.job;
  } else if (c->wait == HOLD_WAIT_READERS && view.output.n_locations > 0) {
    c->parked.job = view.output.locations[0].job; /* all of a fill's blocks are of its last stage */
    c->parked.stage = view.output.locations[0].stage;
  }
  declarations_release(s->declared, c->key);
  held_drop(s, c->key, "unpersist");
  leaving_park(s, &c->parked); /* the settling behind this handler lets it go on */
}

void scheduler_unpersist(scheduler *s, const uuid *key, hold_wait wait) {
  key_call c = {.scheduler = s, .key = key, .wait = wait};
  call_init(&c.base, unpersist_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

static void refresh_handle(scheduler *s, message *m) {
  key_call *c = (key_call *)m;
  held_drop(s, c->key, "refresh");
  call_finish(&c->base);
}

void scheduler_refresh(scheduler *s, const uuid *key) {
  key_call c = {.key = key};
  call_init(&c.base, refresh_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

/* ------------------------------------------------------------------ storage */

static hf_hold_state state_of(const declaration *row, entry_state state) {
  static const hf_hold_state states[] = {[ENTRY_ABSENT] = HF_HOLD_DECLARED,
                                         [ENTRY_PENDING] = HF_HOLD_PENDING,
                                         [ENTRY_MATERIALISED] = HF_HOLD_MATERIALISED,
                                         [ENTRY_UNAVAILABLE] = HF_HOLD_UNAVAILABLE};
  return row->released ? HF_HOLD_RELEASED : states[state];
}

static void fill_storage(const declaration *row, const entry_view *view, hf_storage *out) {
  *out = (hf_storage){.state = state_of(row, view->state),
                      .rows = view->output.rows,
                      .bytes = view->output.bytes,
                      .hits = view->hits,
                      .generation = view->generation,
                      .indeterminate = view->output.indeterminate};
  snprintf(out->level, sizeof out->level, "%s", row->level);
  snprintf(out->cache_id, sizeof out->cache_id, "%s", row->key.text);
}

typedef struct storage_call {
  call base;
  const uuid *key;
  hf_storage *out;
} storage_call;

static void storage_handle(scheduler *s, message *m) {
  storage_call *c = (storage_call *)m;
  const declaration *row = declarations_find(s->declared, c->key);
  if (row != NULL) {
    entry_view view;
    registry_lookup(s->registry, c->key, &view);
    fill_storage(row, &view, c->out);
  }
  call_finish(&c->base);
}

void scheduler_storage(scheduler *s, const uuid *key, hf_storage *out) {
  *out = (hf_storage){.state = HF_HOLD_NOT_DECLARED};
  storage_call c = {.key = key, .out = out};
  call_init(&c.base, storage_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

/* ------------------------------------------------------------------ listing */

typedef struct list_call {
  call base;
  scheduler *scheduler;
  const uuid *session;
  void (*each)(void *context, const hold_row *row);
  void *context;
} list_call;

static bool list_one(void *context, const declaration *row) {
  const list_call *c = context;
  entry_view view;
  registry_lookup(c->scheduler->registry, &row->key, &view);
  const entry_partitioning *by = &view.output.partitioning;
  hold_row out = {.session = row->session,
                  .name = row->name,
                  .declared_us = row->declared_us,
                  .last_read_us = view.last_read_us,
                  .cost_us = view.output.cost_us,
                  .saved_us = view.hits * view.output.cost_us,
                  .partitions = by->n_columns > 0 ? by->n : view.output.n_locations,
                  .last_drop = view.last_drop};
  fill_storage(row, &view, &out.storage);
  c->each(c->context, &out);
  return true;
}

static void list_handle(scheduler *s, message *m) {
  list_call *c = (list_call *)m;
  declarations_each(s->declared, c->session, list_one, c);
  call_finish(&c->base);
}

void scheduler_list_holds(scheduler *s, const uuid *session, void (*each)(void *context, const hold_row *row),
                          void *context) {
  list_call c = {.scheduler = s, .session = session, .each = each, .context = context};
  call_init(&c.base, list_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

/* ----------------------------------------------------------- end of a session */

typedef struct remove_call {
  call base;
  const uuid *session;
} remove_call;

static void remove_handle(scheduler *s, message *m) {
  remove_call *c = (remove_call *)m;
  owner *of = owner_find(s, c->session);
  if (of == NULL || of->removal != NULL) {
    owner_forget(s, c->session);
    clean_session(s, c->session);
    clean_then_finish(s, &c->base);
    return;
  }
  of->removal = &c->base; /* owners_settle goes on when its jobs are over */
  job *j = NULL, *next = NULL;
  HASH_ITER(hh, s->jobs, j, next) {
    if (j->owner == of && !job_is_over(j->state)) {
      job_cancel(s, j, HF_E_SESSION_CLOSED);
    }
  }
}

void scheduler_remove_session(scheduler *s, const uuid *session) {
  remove_call c = {.session = session};
  call_init(&c.base, remove_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

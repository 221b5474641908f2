/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving: which held results go because of a limit: bytes of all together and of
 * one session, age, idleness of the session; and the share of the disk that data of
 * running queries may take. Which ones are cheapest to lose: hold/evict.h.
 *
 * L1  What a running job reads is never a victim.
 * L2  A result for which no room can be made serves those who wait for it, and goes; nothing else goes for it.
 * L3  Held and running data have limits of their own: neither can take the room of the other.
 *
 * Thread: the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "hold/evict.h"

#include <inttypes.h>
#include <sys/statvfs.h>

/* ------------------------------------------------------------------- limits */

/* Half of what is free in the file system of the work directory. */
static uint64_t half_of_free(const char *dir) {
  struct statvfs facts;
  return statvfs(dir, &facts) != 0 ? UINT64_MAX : (uint64_t)facts.f_bavail * facts.f_frsize / 2;
}

void leaving_open(scheduler *s, const scheduler_options *options) {
  s->hold_max_bytes =
      options->hold_max_bytes != 0 ? options->hold_max_bytes : half_of_free(executor_work_dir(s->executor));
  s->run_max_bytes = options->run_max_bytes != 0 ? options->run_max_bytes : UINT64_MAX;
  s->idle_timeout_us = options->idle_timeout_us;
  s->next_leave_us = clock_monotonic_us(); /* what a journal brought may be too much, or too old */
}

void leaving_note(scheduler *s, owner *of, const job_settings *settings) {
  of->last_active_us = clock_monotonic_us();
  of->is_idle = false;
  if (of->ttl_us != settings->hold_ttl_us) {
    of->ttl_us = settings->hold_ttl_us;
    s->next_leave_us = of->last_active_us;
  }
}

static void leave_at(scheduler *s, uint64_t deadline_us) {
  if (s->next_leave_us == 0 || deadline_us < s->next_leave_us) {
    s->next_leave_us = deadline_us;
  }
}

/* ----------------------------------------------------------------- eviction */

typedef struct room_limit {
  uint64_t bytes;
  const char *why; /* the victims go */
} room_limit;

/* Entries with data, of a session or of all. */
typedef struct stock {
  const scheduler *scheduler;
  evict_entry *entries; /* NULL: only counted */
  size_t n;
} stock;

static bool gather_one(void *context, const entry_view *view) {
  stock *found = context;
  if (view->state != ENTRY_MATERIALISED && view->state != ENTRY_UNAVAILABLE) {
    return true;
  }
  if (found->entries != NULL) {
    const declaration *row = declarations_find(found->scheduler->declared, &view->key);
    uint64_t read_us = view->last_read_us, created_us = view->output.created_us;
    found->entries[found->n] = (evict_entry){.key = view->key,
                                             .bytes = view->output.bytes,
                                             .cost_us = view->output.cost_us,
                                             .last_read_us = read_us > created_us ? read_us : created_us,
                                             .in_use = view->n_leases > 0,
                                             .lineage_cut = row != NULL && row->lineage == LINEAGE_CUT};
  }
  found->n++;
  return true;
}

static bool evict(scheduler *s, const uuid *session, uint64_t need_bytes, const char *why) {
  stock found = {.scheduler = s};
  registry_each(s->registry, session, gather_one, &found);
  evict_entry *entries = mem_zalloc(found.n, sizeof *entries);
  size_t *victims = mem_zalloc(found.n, sizeof *victims);
  size_t n_victims = 0;
  if (entries != NULL && victims != NULL) {
    found = (stock){.scheduler = s, .entries = entries};
    registry_each(s->registry, session, gather_one, &found);
    n_victims = evict_choose(entries, found.n, need_bytes, clock_wall_us(), victims);
  }
  for (size_t i = 0; i < n_victims; i++) {
    held_drop(s, &entries[victims[i]].key, why);
  }
  mem_free(entries);
  mem_free(victims);
  return n_victims > 0;
}

/* Makes room for `bytes` more where `held` are; false, and nothing went, when that cannot be. */
static bool make_room(scheduler *s, const uuid *session, uint64_t held, uint64_t bytes,
                      const room_limit *limit) {
  if (bytes > limit->bytes) {
    return false;
  }
  uint64_t room = limit->bytes - bytes;
  if (held <= room) {
    return true;
  }
  /* Some more, so that not every fill at the limit looks at all entries. */
  return evict(s, session, held - room + limit->bytes / 64, limit->why) ||
         evict(s, session, held - room, limit->why);
}

const char *leaving_why_not(hf_status code) {
  switch (code) {
    case HF_E_DISK_FULL:
      return "not held: no space on the disk";
    case HF_E_OUT_OF_MEMORY:
      return "not held: no memory";
    default:
      return "not held: a limit";
  }
}

const char *leaving_refuse(scheduler *s, const job *fill) {
  room_limit of_session = {fill->settings.hold_session_max_bytes, "evicted: hold.session_max_bytes"};
  room_limit of_all = {s->hold_max_bytes, "evicted: hold.max_bytes"};
  if (fill->bytes > of_all.bytes) {
    return "it is larger than hold.max_bytes";
  }
  if (of_session.bytes != 0 && fill->bytes > of_session.bytes) {
    return "it is larger than hold.session_max_bytes";
  }
  const owner *of = owner_find(s, &fill->session);
  if (of_session.bytes != 0 && of != NULL &&
      !make_room(s, &fill->session, of->held_bytes, fill->bytes, &of_session)) {
    return "hold.session_max_bytes is taken by results in use";
  }
  return make_room(s, NULL, s->held_bytes, fill->bytes, &of_all)
             ? NULL
             : "hold.max_bytes is taken by results in use";
}

void leaving_admitted(scheduler *s, const uuid *session, uint64_t bytes, const job_settings *settings) {
  owner *of = owner_find(s, session);
  s->held_bytes += bytes;
  if (of != NULL) {
    of->held_bytes += bytes;
  }
  if (settings != NULL && settings->hold_ttl_us != 0) {
    leave_at(s, clock_monotonic_us() + settings->hold_ttl_us);
  }
}

void leaving_dropped(scheduler *s, const entry_view *view) {
  uint64_t bytes = view->output.bytes;
  if (view->state != ENTRY_MATERIALISED && view->state != ENTRY_UNAVAILABLE) {
    return;
  }
  owner *of = owner_find(s, &view->session);
  s->held_bytes -= bytes;
  if (of != NULL) {
    of->held_bytes -=
        bytes < of->held_bytes ? bytes : of->held_bytes; /* one from the journal came before its owner */
  }
}

/* ------------------------------------------------------------- passing results */

bool leaving_pass(scheduler *s, job *fill, const entry_output *output) {
  passing *p = arena_alloc(fill->memory, sizeof *p);
  if (p == NULL ||
      registry_complete(s->registry, &fill->key, fill->id, output, &s->actions) != COMPLETE_PROMOTED) {
    return false;
  }
  leaving_admitted(s, &fill->session, output->bytes, NULL);
  *p = (passing){.next = s->passing, .key = fill->key, .fill = fill->id};
  s->passing = p;
  return true;
}

/* Those who waited have their leases by now. */
static void drop_passing(scheduler *s) {
  while (s->passing != NULL) {
    const passing *p = s->passing;
    s->passing = p->next;
    entry_view view;
    registry_lookup(s->registry, &p->key, &view);
    if (view.job.value == p->fill.value) {
      held_drop(s, &p->key, "no room: hold.max_bytes");
    }
  }
}

/* -------------------------------------------------------------------- parked */

void leaving_park(scheduler *s, parked *p) {
  LL_PREPEND(s->parked, p);
}

static void release_parked(scheduler *s) {
  parked *p = NULL, *next = NULL;
  LL_FOREACH_SAFE(s->parked, p, next) {
    if (job_find(s, p->fill) == NULL && !registry_is_pinned(s->registry, p->job, p->stage)) {
      LL_DELETE(s->parked, p);
      p->go_on(s, p);
    }
  }
}

bool leaving_settle(scheduler *s) {
  drop_passing(s);
  release_parked(s);
  return s->actions.first != NULL;
}

/* ---------------------------------------------------------------------- time */

enum { SWEPT_AT_ONCE = 64 };

typedef struct sweep {
  const scheduler *scheduler;
  uint64_t now_us, wall_us, next_us; /* next: monotonic; 0: none */
  uuid expired[SWEPT_AT_ONCE];
  size_t n;
} sweep;

static void sweep_later(sweep *w, uint64_t deadline_us) {
  if (w->next_us == 0 || deadline_us < w->next_us) {
    w->next_us = deadline_us;
  }
}

static bool look_at_age(void *context, const entry_view *view) {
  sweep *w = context;
  const owner *of = owner_find(w->scheduler, &view->session);
  if (view->state != ENTRY_MATERIALISED || of == NULL || of->ttl_us == 0) {
    return true;
  }
  uint64_t ends_us = view->output.created_us + of->ttl_us;
  if (ends_us > w->wall_us) {
    sweep_later(w, w->now_us + (ends_us - w->wall_us));
  } else {
    w->expired[w->n++] = view->key;
  }
  return w->n < SWEPT_AT_ONCE;
}

static void drop_expired(scheduler *s, sweep *w) {
  do {
    w->n = 0;
    registry_each(s->registry, NULL, look_at_age, w);
    for (size_t i = 0; i < w->n; i++) {
      held_drop(s, &w->expired[i], "expired: hold.ttl");
    }
  } while (w->n == SWEPT_AT_ONCE);
}

typedef struct idle_drop {
  uuid keys[SWEPT_AT_ONCE];
  size_t n;
} idle_drop;

static bool gather_idle(void *context, const entry_view *view) {
  idle_drop *found = context;
  if (view->state == ENTRY_MATERIALISED || view->state == ENTRY_UNAVAILABLE) {
    found->keys[found->n++] = view->key;
  }
  return found->n < SWEPT_AT_ONCE;
}

static void drop_all_of(scheduler *s, const uuid *session) {
  idle_drop found;
  do {
    found.n = 0;
    registry_each(s->registry, session, gather_idle, &found);
    for (size_t i = 0; i < found.n; i++) {
      held_drop(s, &found.keys[i], "session idle");
    }
  } while (found.n == SWEPT_AT_ONCE);
}

static void drop_idle(scheduler *s, sweep *w) {
  owner *of = NULL, *next = NULL;
  HASH_ITER(hh, s->owners, of, next) {
    if (s->idle_timeout_us == 0 || of->is_idle || of->n_active > 0 || durable_keeps(s, &of->id)) {
      continue;
    }
    if (of->last_active_us + s->idle_timeout_us > w->now_us) {
      sweep_later(w, of->last_active_us + s->idle_timeout_us);
    } else {
      of->is_idle = true;
      drop_all_of(s, &of->id);
    }
  }
}

void leaving_rested(scheduler *s, owner *of) {
  of->last_active_us = clock_monotonic_us();
  if (s->idle_timeout_us != 0 && of->n_active == 0) {
    leave_at(s, of->last_active_us + s->idle_timeout_us);
  }
}

uint64_t leaving_watch(scheduler *s) {
  uint64_t now_us = clock_monotonic_us();
  if (s->is_closing) {
    return 0;
  }
  if (s->next_leave_us == 0 || s->next_leave_us > now_us) {
    return s->next_leave_us;
  }
  sweep w = {.scheduler = s, .now_us = now_us, .wall_us = clock_wall_us()};
  drop_expired(s, &w);
  drop_idle(s, &w);
  make_room(s, NULL, s->held_bytes, 0, &(room_limit){s->hold_max_bytes, "evicted: hold.max_bytes"});
  s->next_leave_us = w.next_us;
  scheduler_settle(s);
  return s->next_leave_us;
}

/* ------------------------------------------------------------- running data */

hf_status leaving_check_running(const scheduler *s, hf_error *error) {
  uint64_t total = 0;
  const job *j = NULL;
  for (j = s->jobs; j != NULL; j = j->hh.next) {
    total += j->run_bytes;
  }
  if (total <= s->run_max_bytes) {
    return HF_OK;
  }
  error_set(error, HF_E_LIMIT,
            "data of running queries and results that are still open exceed run.max_bytes: %" PRIu64,
            s->run_max_bytes);
  error_hint(error, "read or release open results, run fewer queries at once, or raise run.max_bytes");
  return HF_E_LIMIT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freshness: what an entry was computed from, and whether that is as it was. The
 * versions of a fill's files are those of its listings, made before anything was
 * read, so a file that changes meanwhile makes the entry stale at once. What a fill
 * read of other holds counts with their sources, and as "held:<cache id>" with
 * their generation.
 *
 * F1  A hit looks at no source, unless its session follows sources: then one stat a file, on a planning thread.
 * F2  Paths that Holdfast wrote drop the entries made of them, and no fill that read them while they were written
 *     becomes an entry.
 *
 * Threads: freshness_check and listing a relation's files a planning thread; door functions any; the rest the
 * scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELD_PREFIX[] = "held:";

typedef struct written_path {
  struct written_path *next;
  const char *path;
} written_path;

/* ------------------------------------------------------------------ checking */

/* The cache id of a source that is a hold, or NULL. */
static const char *held_id(const entry_source *of) {
  size_t length = sizeof HELD_PREFIX - 1;
  return strncmp(of->path, HELD_PREFIX, length) == 0 ? of->path + length : NULL;
}

static bool sources_hold(const held_need *need) {
  for (size_t i = 0; i < need->n_sources; i++) {
    const entry_source *of = &need->sources[i];
    source_version version = {of->path, of->bytes, of->mtime_ns};
    if (held_id(of) == NULL && !source_version_holds(&version)) {
      return false;
    }
  }
  return true;
}

bool freshness_check(planning *p) {
  bool is_any_stale = false;
  held_need *need = NULL;
  LL_FOREACH(p->needs, need) {
    if (need->state == NEED_ANSWERED && need->wants_check) {
      need->wants_check = false;
      need->is_stale = !sources_hold(need);
      is_any_stale = is_any_stale || need->is_stale;
    }
  }
  return is_any_stale;
}

hf_status freshness_copy(const entry_view *view, held_need *need, arena *a, hf_error *error) {
  entry_source *sources = arena_array(a, view->output.n_sources, sizeof *sources);
  bool is_complete = sources != NULL;
  for (size_t i = 0; is_complete && i < view->output.n_sources; i++) {
    sources[i] = view->output.sources[i];
    sources[i].path = arena_strdup(a, sources[i].path);
    is_complete = sources[i].path != NULL;
  }
  need->sources = sources;
  need->n_sources = view->output.n_sources;
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
}

bool freshness_is_outrun(const scheduler *s, const entry_view *view) {
  for (size_t i = 0; i < view->output.n_sources; i++) {
    const entry_source *of = &view->output.sources[i];
    uuid key;
    entry_view inner;
    if (held_id(of) != NULL && uuid_parse(held_id(of), &key)) {
      registry_lookup(s->registry, &key, &inner);
      if (inner.generation > of->bytes && inner.output.indeterminate) {
        return true;
      }
    }
  }
  return false;
}

/* ------------------------------------------------------------------- of fills */

static size_t count_sources(const planning *p) {
  size_t n = 0;
  for (const known_source *known = p->sources; known != NULL; known = known->next) {
    n += known->versions.n;
  }
  for (const held_need *need = p->needs; need != NULL; need = need->next) {
    n += need->info.answer == HELD_READ ? need->n_sources + 1 : 0;
  }
  return n;
}

static int compare_sources(const void *a, const void *b) {
  const entry_source *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  if (order == 0) {
    order = x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
  }
  return order != 0 ? order : x->mtime_ns < y->mtime_ns ? -1 : x->mtime_ns > y->mtime_ns;
}

/* Of equal ones, which come by several ways, one is enough; versions that differ stay: the entry is stale already. */
static size_t drop_equal(entry_source *sources, size_t n) {
  size_t kept = 0;
  if (n > 1) {
    qsort(sources, n, sizeof *sources, compare_sources);
  }
  for (size_t i = 0; i < n; i++) {
    if (kept == 0 || compare_sources(&sources[kept - 1], &sources[i]) != 0) {
      sources[kept++] = sources[i];
    }
  }
  return kept;
}

hf_status freshness_of_fill(const job *fill, entry_output *out, hf_error *error) {
  const planning *p = &fill->plan;
  entry_source *sources = arena_array(fill->memory, count_sources(p), sizeof *sources);
  size_t n = 0;
  bool is_complete = sources != NULL;
  for (const known_source *known = p->sources; is_complete && known != NULL; known = known->next) {
    for (size_t i = 0; i < known->versions.n; i++) {
      const source_version *version = &known->versions.all[i];
      sources[n++] =
          (entry_source){.path = version->path, .bytes = version->bytes, .mtime_ns = version->mtime_ns};
    }
  }
  for (const held_need *need = p->needs; is_complete && need != NULL; need = need->next) {
    if (need->info.answer != HELD_READ) {
      continue;
    }
    sources[n] = (entry_source){.path = arena_printf(fill->memory, "%s%s", HELD_PREFIX, need->key.text),
                                .bytes = need->info.generation};
    is_complete = sources[n++].path != NULL;
    for (size_t i = 0; i < need->n_sources; i++) {
      sources[n++] = need->sources[i];
    }
  }
  out->sources = sources;
  out->n_sources = is_complete ? drop_equal(sources, n) : 0;
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
}

/* A file at or below the path; or a directory in which a pattern looks for names, above it. */
static bool source_is_of(const entry_source *of, const char *path) {
  return held_id(of) == NULL &&
         (source_path_is_below(of->path, path) || (of->bytes == 0 && source_path_is_below(path, of->path)));
}

static bool output_is_of(const entry_output *output, const char *path) {
  for (size_t i = 0; i < output->n_sources; i++) {
    if (source_is_of(&output->sources[i], path)) {
      return true;
    }
  }
  return false;
}

bool freshness_was_written(const job *fill, const entry_output *output) {
  for (const written_path *written = fill->written; written != NULL; written = written->next) {
    if (output_is_of(output, written->path)) {
      return !FAULT("scheduler.written_fill");
    }
  }
  return fill->is_outdated;
}

/* ------------------------------------------------------------------ dropping */

/* Which entries go. */
typedef struct drop_filter {
  const uuid *session; /* NULL: of all */
  const char *path;    /* those made of files there; or NULL */
  const uuid *keys;    /* these, and those made of them */
  size_t n_keys;
} drop_filter;

enum { DROPPED_AT_ONCE = 64 };

typedef struct drop_batch {
  const drop_filter *filter;
  uuid keys[DROPPED_AT_ONCE];
  size_t n;
} drop_batch;

static bool is_among(const drop_filter *filter, const char *id) {
  for (size_t i = 0; i < filter->n_keys; i++) {
    if (strcmp(filter->keys[i].text, id) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_wanted(const drop_filter *filter, const entry_view *view) {
  if (is_among(filter, view->key.text) ||
      (filter->path != NULL && output_is_of(&view->output, filter->path))) {
    return true;
  }
  for (size_t i = 0; i < view->output.n_sources; i++) {
    const char *id = held_id(&view->output.sources[i]);
    if (id != NULL && is_among(filter, id)) {
      return true;
    }
  }
  return false;
}

/* The registry must not change while it is looked through. */
static bool gather(void *context, const entry_view *view) {
  drop_batch *batch = context;
  if (view->state != ENTRY_ABSENT && is_wanted(batch->filter, view)) {
    batch->keys[batch->n++] = view->key;
  }
  return batch->n < DROPPED_AT_ONCE;
}

static void drop(scheduler *s, const drop_filter *filter, const char *why) {
  drop_batch batch = {.filter = filter};
  do {
    batch.n = 0;
    registry_each(s->registry, filter->session, gather, &batch);
    for (size_t i = 0; i < batch.n; i++) {
      held_drop(s, &batch.keys[i], why);
    }
  } while (batch.n == DROPPED_AT_ONCE);
}

/* -------------------------------------------------------------------- written */

/* Fills that run may have read what was there before, or half of what is there now. */
static void note_in_fills(scheduler *s, const drop_filter *filter) {
  job *j = NULL, *next = NULL;
  HASH_ITER(hh, s->jobs, j, next) {
    if (!j->is_fill || job_is_over(j->state) ||
        (filter->session != NULL && !uuid_equal(filter->session, &j->session))) {
      continue;
    }
    written_path *written = arena_alloc(j->memory, sizeof *written);
    const char *path = arena_strdup(j->memory, filter->path);
    if (written == NULL || path == NULL) {
      j->is_outdated = true;
      continue;
    }
    *written = (written_path){j->written, path};
    j->written = written;
  }
}

static void drop_path(scheduler *s, const uuid *session, const char *path, const char *why) {
  drop_filter filter = {.session = session, .path = path};
  drop(s, &filter, why);
  note_in_fills(s, &filter);
}

typedef struct written_call {
  call base;
  const uuid *session;
  const char *path, *why;
} written_call;

static void written_handle(scheduler *s, message *m) {
  const written_call *c = (written_call *)m;
  drop_path(s, c->session, c->path, c->why);
  call_finish((call *)m);
}

void scheduler_note_written(scheduler *s, const uuid *session, const char *path, const char *why) {
  written_call c = {.session = session, .path = path, .why = why};
  call_init(&c.base, written_handle);
  call_run(s, &s->events, &c.base);
  call_reset(&c.base);
}

/* ------------------------------------------------------------ REFRESH of a name */

typedef struct refresh_call {
  call base; /* first with a planning thread, then with the scheduler's */
  const job_request *request;
  planning *p;
  hf_status status;
  hf_error error;
} refresh_call;

/* Every held node as if it were computed in place, so that those below are met too. */
static hf_status look_through(scheduler *s, planning *p, const job_request *request, hf_error *error) {
  p->session = request->session;
  p->relation = request->relation;
  p->settings = &request->settings;
  HF_TRY(planning_begin(p, error));
  do {
    HF_TRY(planning_lower(s, p, error));
    held_need *need = NULL;
    LL_FOREACH(p->needs, need) {
      need->state = NEED_ANSWERED;
      need->info = (held_info){.answer = HELD_INLINE};
    }
  } while (p->needs_held);
  return HF_OK;
}

static void look_through_handle(scheduler *s, message *m) {
  refresh_call *c = (refresh_call *)m;
  c->status = look_through(s, c->p, c->request, &c->error);
  call_finish(&c->base);
}

static void refresh_handle(scheduler *s, message *m) {
  refresh_call *c = (refresh_call *)m;
  const held_need *need = NULL;
  LL_FOREACH(c->p->needs, need) {
    drop(s, &(drop_filter){.session = &c->request->session, .keys = &need->key, .n_keys = 1}, "refresh");
  }
  for (const known_source *known = c->p->sources; known != NULL; known = known->next) {
    for (size_t i = 0; i < source_n_files(known->source); i++) {
      drop_path(s, &c->request->session, source_files(known->source)[i].path, "refresh");
    }
  }
  call_finish(&c->base);
}

static bool run_refresh_step(scheduler *s, refresh_call *c, event_queue *queue,
                             void (*handle)(scheduler *s, message *m)) {
  call_init(&c->base, handle);
  bool is_done = call_run(s, queue, &c->base);
  call_reset(&c->base);
  return is_done;
}

hf_status scheduler_refresh_relation(scheduler *s, const job_request *request, hf_error *error) {
  planning p = {0};
  refresh_call c = {.request = request, .p = &p};
  bool is_open = run_refresh_step(s, &c, &s->plans, look_through_handle);
  bool are_files_gone = c.status == HF_E_FILE_NOT_FOUND; /* the holds that were met until then are known */
  if (are_files_gone) {
    hf_error_reset(&c.error);
    c.status = HF_OK;
  }
  if (is_open && c.status == HF_OK) {
    is_open = run_refresh_step(s, &c, &s->events, refresh_handle);
  }
  if (!is_open) {
    c.status = error_set(&c.error, HF_E_SESSION_CLOSED, "the engine is closed");
  }
  planning_reset(&p);
  if (c.status != HF_OK) {
    error_move(error, &c.error);
  }
  return c.status;
}

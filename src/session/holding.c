/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding a relation: declaring a cache node, letting it go, telling how it is
 * held. The commands on named tables are in cached_tables.c.
 * Thread: any.
 */
#include "session/session_internal.h"

#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char DEFAULT_LEVEL[] = "MEMORY_AND_DISK_DESER";

/* The levels that are accepted and told again; hf_df_persist lists the same. */
static const char *const LEVELS[] = {
    "NONE",          "DISK_ONLY",       "DISK_ONLY_2",       "DISK_ONLY_3", "MEMORY_ONLY",
    "MEMORY_ONLY_2", "MEMORY_AND_DISK", "MEMORY_AND_DISK_2", DEFAULT_LEVEL, "OFF_HEAP",
};

hf_status hold_level(const char *name, const char **out, hf_error *error) {
  const char *wanted = name == NULL ? DEFAULT_LEVEL : name;
  for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++) {
    if (strcasecmp(LEVELS[i], wanted) == 0) {
      *out = LEVELS[i];
      return HF_OK;
    }
  }
  error_set(error, HF_E_INVALID_ARGUMENT, "no storage level has this name: %s", wanted);
  error_hint(error, "use %s, or another of Spark's levels, such as DISK_ONLY", DEFAULT_LEVEL);
  return HF_E_INVALID_ARGUMENT;
}

/* ------------------------------------------------------------------ declare */

/* name NUL value NUL … of the settings that change results. */
static hf_status pack_settings(const job_settings *settings, arena *a, declaration *out, hf_error *error) {
  buf packed = {0};
  for (size_t i = 0; i < settings->n_engine; i++) {
    buf_append(&packed, settings->engine[i].name, strlen(settings->engine[i].name) + 1);
    buf_append(&packed, settings->engine[i].value, strlen(settings->engine[i].value) + 1);
  }
  out->settings = packed.failed ? NULL : arena_strndup(a, packed.data, packed.length);
  out->settings_bytes = packed.length;
  buf_reset(&packed);
  return out->settings == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to declare a hold") : HF_OK;
}

/* Fills the row of the declarations. `columns` are in `a`. */
static hf_status declare(session *s, const relation *node, const char *name, arena *a, hf_error *error) {
  relation_view view = relation_look(node);
  job_request request = {.session = s->id, .relation = view.input};
  declaration row = {.key = view.cache_id, .session = s->id, .name = name, .declared_us = clock_wall_us()};
  HF_TRY(settings_for_job(s, a, &request.settings, error));
  HF_TRY(pack_settings(&request.settings, a, &row, error));
  HF_TRY(scheduler_describe(runtime_scheduler(s->runtime), &request, a, &row.columns, error));
  relation_fingerprint(view.input, row.fingerprint);
  memcpy(row.level, view.level, strlen(view.level) + 1);
  return scheduler_declare(runtime_scheduler(s->runtime), &row, error);
}

hf_status hold_declare(session *s, const relation *r, const char *level, const char *name, relation **out,
                       hf_error *error) {
  uuid id = uuid_new();
  relation *node = NULL;
  HF_TRY(relation_from_cache(&id, &s->id, r, level, &node, error));
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to declare a hold")
                               : declare(s, node, name, a, error);
  arena_free(a);
  if (status != HF_OK) {
    relation_release(node);
    return status;
  }
  *out = node;
  return HF_OK;
}

static hf_status cache_entered(session *s, const relation *r, const char *level, const char *name,
                               relation **out, hf_error *error) {
  const char *known;
  HF_TRY(hold_level(level, &known, error));
  if (strcmp(known, "NONE") == 0) {
    *out = relation_retain(r);
    return HF_OK;
  }
  return hold_declare(s, r, known, name, out, error);
}

hf_status session_cache(session *s, const relation *r, const char *level, const char *name, relation **out,
                        hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, cache_entered(s, r, level, name, out, error));
}

/* ------------------------------------------------------------------- let go */

void hold_release(session *s, const relation *r, hold_wait wait) {
  relation_view view = relation_look(r);
  if (view.kind == RELATION_CACHE && uuid_equal(&view.session, &s->id)) {
    scheduler_unpersist(runtime_scheduler(s->runtime), &view.cache_id, wait);
  }
}

/* A cache node of another session is none of this one's business. */
static hf_status check_own(const session *s, const relation_view *view, hf_error *error) {
  if (view->kind == RELATION_CACHE && !uuid_equal(&view->session, &s->id)) {
    return error_set(error, HF_E_HELD_FOREIGN, "the DataFrame is held by another session: %s",
                     view->session.text);
  }
  return HF_OK;
}

static hf_status unpersist_entered(session *s, const relation *r, bool blocking, hf_error *error) {
  relation_view view = relation_look(r);
  HF_TRY(check_own(s, &view, error));
  hold_release(s, r, blocking ? HOLD_WAIT_READERS : HOLD_WAIT_NOT);
  return HF_OK;
}

hf_status session_unpersist(session *s, const relation *r, bool blocking, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, unpersist_entered(s, r, blocking, error));
}

/* --------------------------------------------------------------------- tell */

bool hold_is_held(session *s, const relation *r) {
  relation_view view = relation_look(r);
  if (view.kind != RELATION_CACHE) {
    return false;
  }
  hf_storage storage = {0};
  scheduler_storage(runtime_scheduler(s->runtime), &view.cache_id, &storage);
  return storage.state != HF_HOLD_NOT_DECLARED && storage.state != HF_HOLD_RELEASED;
}

static hf_status storage_entered(session *s, const relation *r, hf_storage *out, hf_error *error) {
  relation_view view = relation_look(r);
  HF_TRY(check_own(s, &view, error));
  hf_storage storage = {0};
  if (view.kind == RELATION_CACHE) {
    scheduler_storage(runtime_scheduler(s->runtime), &view.cache_id, &storage);
  }
  *out = storage;
  return HF_OK;
}

hf_status session_storage(session *s, const relation *r, hf_storage *out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, storage_entered(s, r, out, error));
}

typedef struct each_call {
  void (*each)(void *context, const hold_row *row);
  void *context;
} each_call;

static void tell_if_held(void *context, const hold_row *row) {
  const each_call *call = context;
  if (row->storage.state != HF_HOLD_RELEASED) {
    call->each(call->context, row);
  }
}

hf_status session_each_hold(session *s, void (*each)(void *context, const hold_row *row), void *context,
                            hf_error *error) {
  each_call call = {each, context};
  HF_TRY(session_enter(s, error));
  scheduler_list_holds(runtime_scheduler(s->runtime), &s->id, tell_if_held, &call);
  return session_leave(s, HF_OK);
}

/* ------------------------------------------------------------------ written */

/* Resolves links; of a file that is gone, those of its directory. */
static void resolve_path(const char *path, char out[PATH_MAX]) {
  char dir[PATH_MAX];
  if (realpath(path, out) != NULL) {
    return;
  }
  const char *slash = strrchr(path, '/');
  snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
  char resolved[PATH_MAX];
  if (realpath(dir, resolved) == NULL) {
    snprintf(resolved, sizeof resolved, "%s", dir);
  }
  const char *name = slash == NULL ? path : slash + 1;
  if (strlen(resolved) + strlen(name) + 2 > PATH_MAX) {
    resolved[0] = '\0'; /* no such file was ever read */
  }
  memcpy(out, resolved, strlen(resolved) + 1);
  if (out[0] != '\0' && strcmp(out, "/") != 0) {
    strncat(out, "/", PATH_MAX - strlen(out) - 1);
  }
  strncat(out, name, PATH_MAX - strlen(out) - 1);
}

void hold_note_changed(session *s, const uuid *of, const char *path, const char *why) {
  char resolved[PATH_MAX];
  resolve_path(path, resolved);
  scheduler_note_written(runtime_scheduler(s->runtime), of, resolved, why);
}

void session_note_written(session *s, const char *path) {
  if (session_enter(s, NULL) == HF_OK) {
    hold_note_changed(s, NULL, path, "written");
    session_leave(s, HF_OK);
  }
}

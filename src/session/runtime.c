/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared engine: opening a scheduler out of settings, and its end.
 * Thread: any. runtime.lock guards the count of sessions and whether the
 * scheduler runs.
 */
#include "session/session_internal.h"

#include "base/mem.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct runtime {
  atomic_uint references;
  pthread_mutex_t lock;
  unsigned sessions;    /* guarded by lock */
  scheduler *scheduler; /* guarded by lock once sessions may reach 0; NULL: ended */
  config *settings;
  char time_zone[64];
  journal *journal; /* NULL: nothing outlives the process */
  uuid kept;        /* the session that does */
};

/* ----------------------------------------------------------- the machine's */

/* Tells whether the text can be the name of a time zone that every ICU knows. */
static bool is_zone_name(const char *text) {
  size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");
  if (length == 0 || length >= 64 || text[length] != '\0') {
    return false;
  }
  char path[128];
  snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", text);
  return strchr(text, '/') != NULL || access(path, F_OK) == 0;
}

/* TZ where it names a zone, else what /etc/localtime leads to, else UTC. */
static void find_time_zone(char out[64]) {
  static const char marker[] = "/zoneinfo/";
  const char *zone = getenv("TZ");
  char target[PATH_MAX];
  if (zone == NULL || zone[0] == '\0') {
    ssize_t length = readlink("/etc/localtime", target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    char *found = strstr(target, marker);
    zone = found == NULL ? "" : found + sizeof marker - 1;
  }
  zone += zone[0] == ':';
  snprintf(out, 64, "%s", is_zone_name(zone) ? zone : "UTC");
}

/* ---------------------------------------------------------------- settings */

/* Splits allow_path at ':' and resolves links. Errors: SETTING_VALUE for a directory that is not there. */
static hf_status allowed_dirs(const char *text, arena *a, scheduler_options *options, hf_error *error) {
  size_t n_dirs = 1;
  for (const char *at = text; (at = strchr(at, ':')) != NULL; at++) {
    n_dirs++;
  }
  const char **dirs = arena_array(a, n_dirs, sizeof *dirs);
  if (dirs == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the allowed paths");
  }
  for (const char *at = text;;) {
    size_t length = strcspn(at, ":");
    char resolved[PATH_MAX];
    char *dir = arena_strndup(a, at, length);
    if (dir == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the allowed paths");
    }
    if (length > 0) {
      if (realpath(dir, resolved) == NULL) {
        error_set(error, HF_E_SETTING_VALUE, "allow_path names a directory that cannot be used: %s", dir);
        error_hint(error, "name directories that exist, separated by ':'");
        return HF_E_SETTING_VALUE;
      }
      dirs[options->n_allowed_dirs] = arena_strdup(a, resolved);
      if (dirs[options->n_allowed_dirs++] == NULL) {
        return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the allowed paths");
      }
    }
    if (at[length] == '\0') {
      break;
    }
    at += length + 1;
  }
  options->allowed_dirs = dirs;
  return HF_OK;
}

/* ------------------------------------------------------------ what is kept */

/* What a start must know of the journal before the engine runs. */
typedef struct kept {
  uuid session; /* none: the directory is new */
  block_ref *data;
  size_t n_data, capacity;
} kept;

static hf_status keep_session(void *context, const journal_session *row, hf_error *error) {
  kept *k = context;
  (void)error;
  if (uuid_is_none(&k->session)) {
    k->session = row->id;
  }
  return HF_OK;
}

static hf_status keep_data(void *context, const journal_data *row, hf_error *error) {
  kept *k = context;
  if (k->n_data == k->capacity) {
    size_t capacity = k->capacity * 2 + 8;
    block_ref *data = mem_realloc(k->data, capacity * sizeof *data);
    if (data == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a state directory");
    }
    k->data = data;
    k->capacity = capacity;
  }
  k->data[k->n_data++] = client_data_ref(&row->session, row->number);
  return HF_OK;
}

/* Opens the state directory, if there is to be one, and finds the session that goes on. */
static hf_status open_journal(runtime *r, kept *out, hf_error *error) {
  const char *dir = config_text(r->settings, CONFIG_STATE_DIR);
  if (dir[0] == '\0') {
    return HF_OK;
  }
  HF_TRY(journal_open(dir, &r->journal, error));
  journal_reader reader = {.context = out, .session = keep_session, .data = keep_data};
  HF_TRY(journal_load(r->journal, &reader, error));
  if (uuid_is_none(&out->session)) {
    out->session = uuid_new();
    journal_put_session(r->journal, &(journal_session){.id = out->session});
    HF_TRY(journal_flush(r->journal, error));
  }
  r->kept = out->session;
  return HF_OK;
}

/* "auto" is the state directory's own, unless the environment names one. */
static const char *work_dir_of(const runtime *r, arena *a) {
  const char *wanted = config_text(r->settings, CONFIG_WORK_DIR);
  const char *named = getenv("HOLDFAST_WORK_DIR");
  bool is_ours = r->journal != NULL && strcmp(wanted, "auto") == 0 && (named == NULL || named[0] == '\0');
  return is_ours ? arena_printf(a, "%s/work", journal_dir(r->journal)) : wanted;
}

static hf_status open_scheduler(runtime *r, const kept *k, arena *a, hf_error *error) {
  const config *settings = r->settings;
  scheduler_keeping keeping = {.session = r->kept, .data = k->data, .n_data = k->n_data};
  if (r->journal != NULL) {
    keeping.journal = journal_holds(r->journal);
    keeping.dir = journal_dir(r->journal);
    keeping.id = journal_id(r->journal);
  }
  scheduler_options options = {
      .work_dir = work_dir_of(r, a),
      .keeping = r->journal == NULL ? NULL : &keeping,
      .threads = (unsigned)config_number(settings, CONFIG_THREADS),
      .slots = (unsigned)config_number(settings, CONFIG_SLOTS),
      .memory_bytes = config_number(settings, CONFIG_MEMORY),
      .hold_max_bytes = config_number(settings, CONFIG_HOLD_MAX_BYTES),
      .run_max_bytes = config_number(settings, CONFIG_RUN_MAX_BYTES),
      .idle_timeout_us = config_number(settings, CONFIG_SESSION_IDLE_TIMEOUT) * 1000000,
      .extension_dir = engine_extension_dir(a),
  };
  if (options.work_dir == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open an engine");
  }
  HF_TRY(allowed_dirs(config_text(settings, CONFIG_ALLOW_PATH), a, &options, error));
  return scheduler_open(&options, &r->scheduler, error);
}

static hf_status open_engine(runtime *r, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open an engine");
  }
  kept k = {0};
  hf_status status = open_journal(r, &k, error);
  if (status == HF_OK) {
    status = open_scheduler(r, &k, a, error);
  }
  mem_free(k.data);
  arena_free(a);
  return status;
}

/* ------------------------------------------------------------------- doors */

static void release(runtime *r) {
  if (atomic_fetch_sub(&r->references, 1) != 1) {
    return;
  }
  config_free(r->settings);
  pthread_mutex_destroy(&r->lock);
  mem_free(r);
}

hf_status runtime_open(const config *settings, runtime **out, hf_error *error) {
  runtime *r = mem_zalloc(1, sizeof *r);
  config *copy = r == NULL ? NULL : config_copy(settings);
  if (copy == NULL) {
    mem_free(r);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open an engine");
  }
  atomic_init(&r->references, 1);
  pthread_mutex_init(&r->lock, NULL);
  r->sessions = 1;
  r->settings = copy;
  find_time_zone(r->time_zone);
  hf_status status = open_engine(r, error);
  if (status != HF_OK) {
    journal_close(r->journal);
    r->journal = NULL;
    release(r);
    return status;
  }
  *out = r;
  return HF_OK;
}

void runtime_join(runtime *r) {
  runtime_retain(r);
  pthread_mutex_lock(&r->lock);
  r->sessions++;
  pthread_mutex_unlock(&r->lock);
}

void runtime_leave(runtime *r) {
  scheduler *ended = NULL;
  journal *written = NULL;
  pthread_mutex_lock(&r->lock);
  if (--r->sessions == 0) {
    ended = r->scheduler;
    r->scheduler = NULL;
    written = r->journal;
    r->journal = NULL;
  }
  pthread_mutex_unlock(&r->lock);
  scheduler_close(ended);
  journal_close(written);
  release(r);
}

scheduler *runtime_scheduler(const runtime *r) {
  return r->scheduler;
}

journal *runtime_journal(const runtime *r) {
  return r->journal;
}

const uuid *runtime_kept_session(const runtime *r) {
  return r->journal == NULL ? NULL : &r->kept;
}

const config *runtime_settings(const runtime *r) {
  return r->settings;
}

const char *runtime_time_zone(const runtime *r) {
  return r->time_zone;
}

runtime *runtime_retain(runtime *r) {
  atomic_fetch_add(&r->references, 1);
  return r;
}

void runtime_release_result(runtime *r, job_id job) {
  pthread_mutex_lock(&r->lock);
  if (r->scheduler != NULL) {
    scheduler_release_result(r->scheduler, job); /* posts an event: does not wait */
  }
  pthread_mutex_unlock(&r->lock);
  release(r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared engine: opening a scheduler out of settings, and its end.
 * Thread: any. runtime.lock guards the count of sessions and whether the
 * scheduler runs.
 */
#include "session/runtime.h"

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

static hf_status open_scheduler(const config *settings, scheduler **out, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open an engine");
  }
  scheduler_options options = {
      .work_dir = config_text(settings, CONFIG_WORK_DIR),
      .threads = (unsigned)config_number(settings, CONFIG_THREADS),
      .slots = (unsigned)config_number(settings, CONFIG_SLOTS),
      .memory_bytes = config_number(settings, CONFIG_MEMORY),
      .hold_max_bytes = config_number(settings, CONFIG_HOLD_MAX_BYTES),
      .run_max_bytes = config_number(settings, CONFIG_RUN_MAX_BYTES),
      .idle_timeout_us = config_number(settings, CONFIG_SESSION_IDLE_TIMEOUT) * 1000000,
      .extension_dir = engine_extension_dir(a),
  };
  hf_status status = allowed_dirs(config_text(settings, CONFIG_ALLOW_PATH), a, &options, error);
  if (status == HF_OK) {
    status = scheduler_open(&options, out, error);
  }
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
  hf_status status = open_scheduler(settings, &r->scheduler, error);
  if (status != HF_OK) {
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
  pthread_mutex_lock(&r->lock);
  if (--r->sessions == 0) {
    ended = r->scheduler;
    r->scheduler = NULL;
  }
  pthread_mutex_unlock(&r->lock);
  scheduler_close(ended);
  release(r);
}

scheduler *runtime_scheduler(const runtime *r) {
  return r->scheduler;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness itself: opening, settings, engines that plan, closing. Names are in names.c.
 * Thread: one at a time; what plans runs on a thread of its own (planner_call).
 */
#include "harness_internal.h"

#include "base/file.h"
#include "base/thread.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT_MEMORY_BYTES ((uint64_t)1 << 30)

/* Keys that change results, and DuckDB's names for them. */
static const struct {
  config_key key;
  const char *engine_name;
} result_settings[HARNESS_SETTINGS] = {
    {CONFIG_SQL_DEFAULT_NULL_ORDER, "default_null_order"},
    {CONFIG_SQL_DEFAULT_ORDER, "default_order"},
    {CONFIG_SQL_INTEGER_DIVISION, "integer_division"},
    {CONFIG_SQL_SCALAR_SUBQUERY_ERROR, "scalar_subquery_error_on_multiple_rows"},
    {CONFIG_SQL_TIME_ZONE, "TimeZone"},
};

hf_status harness_no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the harness");
}

/* ------------------------------------------------------------------- settings */

static void settings_read(hf_harness *h) {
  for (size_t i = 0; i < HARNESS_SETTINGS; i++) {
    const char *value = config_text(h->settings, result_settings[i].key);
    bool is_auto = result_settings[i].key == CONFIG_SQL_TIME_ZONE && strcmp(value, "auto") == 0;
    h->rows[i] = (stage_setting){result_settings[i].engine_name, is_auto ? "UTC" : value};
  }
}

engine_setting *harness_settings(const hf_harness *h, arena *a) {
  engine_setting *settings = arena_array(a, HARNESS_SETTINGS, sizeof *settings);
  for (size_t i = 0; settings != NULL && i < HARNESS_SETTINGS; i++) {
    settings[i] = (engine_setting){h->rows[i].name, h->rows[i].value};
  }
  return settings;
}

static hf_status setting_apply(hf_harness *h, const char *key, const char *value, hf_error *error) {
  config_key found;
  if (key == NULL || value == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a setting needs a key and a value");
  }
  HF_TRY(config_find(key, &found, error));
  for (size_t i = 0; i < HARNESS_SETTINGS; i++) {
    if (result_settings[i].key == found) {
      HF_TRY(config_set(h->settings, found, value, error));
      settings_read(h);
      return HF_OK;
    }
  }
  return error_set(error, HF_E_SETTING_UNKNOWN,
                   "the harness has no such setting, since it changes no result: %s", key);
}

/* ------------------------------------------------------------------- engines */

typedef struct planner_work {
  hf_harness *h;
  hf_status (*run)(void *context, hf_error *error);
  void *context;
  hf_status status;
  hf_error error;
} planner_work;

static hf_status planner_open(hf_harness *h, hf_error *error) {
  arena *a = arena_new();
  const engine_options options = {.kind = ENGINE_PLANNER,
                                  .settings = a == NULL ? NULL : harness_settings(h, a),
                                  .n_settings = HARNESS_SETTINGS,
                                  .extension_dir = h->extension_dir};
  hf_status status =
      options.settings == NULL ? harness_no_memory(error) : engine_open(&options, &h->planner, error);
  arena_free(a);
  return status;
}

static void *planner_main(void *context) {
  planner_work *w = context;
  w->status = w->h->planner == NULL ? planner_open(w->h, &w->error) : HF_OK;
  if (w->status == HF_OK) {
    w->status = w->run(w->context, &w->error);
  }
  return NULL;
}

hf_status planner_call(hf_harness *h, hf_status (*run)(void *context, hf_error *error), void *context,
                       hf_error *error) {
  planner_work work = {.h = h, .run = run, .context = context};
  pthread_t thread;
  HF_TRY(thread_start(&thread, THREAD_PLANNING_STACK_BYTES, planner_main, &work, "hf-planner", error));
  pthread_join(thread, NULL);
  if (error_class_of(work.status) == HF_CLASS_FATAL) {
    engine_close(h->planner); /* DuckDB may have shut it after a defect */
    h->planner = NULL;
  }
  if (work.status != HF_OK) {
    error_move(error, &work.error);
  }
  hf_error_reset(&work.error);
  return work.status;
}

void harness_forget_answer(hf_harness *h) {
  witness_answer_free(h->answer);
  mem_free(h->answer_query);
  h->answer = NULL;
  h->answer_query = NULL;
}

static hf_status witness_begin(hf_harness *h, hf_error *error) {
  arena *a = arena_new();
  const witness_options options = {.dir = a == NULL ? NULL : arena_printf(a, "%s/witness", h->work_dir),
                                   .allow_path = h->allow_path,
                                   .settings = a == NULL ? NULL : harness_settings(h, a),
                                   .n_settings = HARNESS_SETTINGS};
  hf_status status = options.dir == NULL || options.settings == NULL ? harness_no_memory(error)
                                                                     : file_make_dirs(options.dir, error);
  if (status == HF_OK) {
    status = witness_open(&options, &h->witness, error);
  }
  arena_free(a);
  return status;
}

/* -------------------------------------------------------------------- opening */

static hf_status allow(hf_harness *h, const hf_harness_options *options, hf_error *error) {
  const char *text = options->allow_path == NULL ? "/" : options->allow_path;
  size_t n = 1;
  for (const char *at = text; *at != '\0'; at++) {
    n += *at == ':' ? 1 : 0;
  }
  const char **dirs = arena_array(h->memory, n, sizeof *dirs);
  char *rest = arena_strdup(h->memory, text), *state = NULL;
  h->allow_path = arena_strdup(h->memory, text);
  if (dirs == NULL || rest == NULL || h->allow_path == NULL) {
    return harness_no_memory(error);
  }
  h->allowed_dirs = dirs;
  for (char *dir = strtok_r(rest, ":", &state); dir != NULL; dir = strtok_r(NULL, ":", &state)) {
    char real[PATH_MAX];
    if (realpath(dir, real) == NULL) {
      return error_set(error, HF_E_SETTING_VALUE, "allow_path names a directory that cannot be used: %s",
                       dir);
    }
    dirs[h->n_allowed_dirs] = arena_strdup(h->memory, real);
    if (dirs[h->n_allowed_dirs++] == NULL) {
      return harness_no_memory(error);
    }
  }
  return HF_OK;
}

static hf_status make_work_dir(hf_harness *h, const char *given, hf_error *error) {
  char made[] = "/tmp/holdfast-harness-XXXXXX", real[PATH_MAX];
  if (given != NULL) {
    HF_TRY(file_make_dirs(given, error));
  } else if ((given = mkdtemp(made)) == NULL) {
    return error_set(error, HF_E_WORK_DIR, "cannot make a temporary directory: %s", made);
  }
  /* A directory of our own in it: closing removes that, and no more. */
  h->session = uuid_new();
  const char *top = realpath(given, real);
  h->top_dir = given == made ? arena_strdup(h->memory, given) : NULL;
  h->work_dir = top == NULL ? NULL : arena_printf(h->memory, "%s/harness-%s", top, h->session.text);
  if (h->work_dir == NULL || (given == made && h->top_dir == NULL)) {
    return top == NULL ? error_set(error, HF_E_WORK_DIR, "there is no such directory: %s", given)
                       : harness_no_memory(error);
  }
  return file_make_dirs(h->work_dir, error);
}

static hf_status open_parts(hf_harness *h, const hf_harness_options *options, hf_error *error) {
  h->memory_bytes = options->memory_bytes == 0 ? SLOT_MEMORY_BYTES : options->memory_bytes;
  h->extension_dir = engine_extension_dir(h->memory);
  settings_read(h);
  for (size_t i = 0; i < options->n_settings; i++) {
    HF_TRY(setting_apply(h, options->settings[i].key, options->settings[i].value, error));
  }
  HF_TRY(make_work_dir(h, options->work_dir, error));
  HF_TRY(allow(h, options, error));
  const source_catalog_options catalog = {.allowed_dirs = h->allowed_dirs,
                                          .n_allowed_dirs = h->n_allowed_dirs,
                                          .refused_dir = h->work_dir,
                                          .extension_dir = h->extension_dir};
  HF_TRY(source_catalog_new(&catalog, &h->sources, error));
  return witness_begin(h, error);
}

hf_status hf_harness_open(const hf_harness_options *options, hf_harness **out, hf_error *error) {
  const hf_harness_options none = {0};
  if (out == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is no place for the harness");
  }
  hf_harness *h = mem_zalloc(1, sizeof *h);
  if (h == NULL) {
    return harness_no_memory(error);
  }
  h->memory = arena_new();
  h->settings = config_new();
  hf_status status = h->memory == NULL || h->settings == NULL
                         ? harness_no_memory(error)
                         : open_parts(h, options == NULL ? &none : options, error);
  if (status != HF_OK) {
    hf_harness_close(h);
    return status;
  }
  *out = h;
  return HF_OK;
}

void hf_harness_close(hf_harness *h) {
  if (h == NULL) {
    return;
  }
  harness_forget_answer(h);
  witness_close(h->witness);
  engine_close(h->planner);
  slots_close(h);
  names_free(h);
  source_catalog_free(h->sources);
  if (h->work_dir != NULL) {
    file_remove_tree(h->work_dir, NULL);
  }
  if (h->top_dir != NULL) {
    file_remove_tree(h->top_dir, NULL);
  }
  config_free(h->settings);
  arena_free(h->memory);
  mem_free(h);
}

const char *harness_dir(const hf_harness *h, const block_ref *ref, arena *a) {
  unsigned long long job = ref->job.value;
  if (ref->stage.value == 0) {
    return arena_printf(a, "%s/%s/%llu", h->work_dir, ref->session.text, job);
  }
  return arena_printf(a, "%s/%s/%llu/%u/%u-%u", h->work_dir, ref->session.text, job, ref->stage.value,
                      ref->task.value, ref->attempt.value);
}

void job_remove(const hf_harness *h, uint64_t job) {
  arena *a = arena_new();
  const block_ref all = {.session = h->session, .job = {job}};
  const char *dir = a == NULL ? NULL : harness_dir(h, &all, a);
  if (dir != NULL) {
    file_remove_tree(dir, NULL);
  }
  arena_free(a);
}

/* Opens single-node DuckDB anew; on failure all is as it was. */
static hf_status witness_change(hf_harness *h, const char *key, const char *value, hf_error *error) {
  witness *old = h->witness;
  config *before = config_copy(h->settings);
  if (before == NULL) {
    return harness_no_memory(error);
  }
  hf_status status = setting_apply(h, key, value, error);
  if (status == HF_OK) {
    status = witness_begin(h, error);
  }
  if (status != HF_OK) {
    config *wrong = h->settings;
    h->settings = before;
    h->witness = old;
    before = wrong;
    settings_read(h);
  } else {
    witness_close(old);
  }
  config_free(before);
  return status;
}

hf_status hf_harness_set(hf_harness *h, const char *key, const char *value, hf_error *error) {
  if (h == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is no harness");
  }
  harness_forget_answer(h);
  HF_TRY(witness_change(h, key, value, error));
  slots_close(h);
  engine_close(h->planner);
  h->planner = NULL;
  return names_again(h, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's settings: setting and telling them, and what of them a job is
 * given. The rows are base/config.def.
 * Thread: any; session.lock guards the set.
 */
#include "session/session_internal.h"

#include "base/mem.h"

#include <string.h>

/* Our keys that change results, and DuckDB's names for them. */
static const struct {
  config_key key;
  const char *engine_name;
} RESULT_SETTINGS[] = {
    {CONFIG_SQL_DEFAULT_NULL_ORDER, "default_null_order"},
    {CONFIG_SQL_DEFAULT_ORDER, "default_order"},
    {CONFIG_SQL_INTEGER_DIVISION, "integer_division"},
    {CONFIG_SQL_SCALAR_SUBQUERY_ERROR, "scalar_subquery_error_on_multiple_rows"},
    {CONFIG_SQL_TIME_ZONE, "TimeZone"},
};
enum { N_RESULT_SETTINGS = sizeof RESULT_SETTINGS / sizeof RESULT_SETTINGS[0] };

/* ------------------------------------------------------------------ telling */

/* The value in force; "auto" becomes what it stands for where the session knows. Borrowed. */
static const char *value_in_force(const session *s, const config *settings, config_key key) {
  const char *text = config_text(settings, key);
  if (strcmp(text, "auto") != 0) {
    return text;
  }
  switch (key) {
    case CONFIG_SQL_TIME_ZONE:
      return runtime_time_zone(s->runtime);
    case CONFIG_WORK_DIR:
      return scheduler_work_dir(runtime_scheduler(s->runtime));
    default:
      return text;
  }
}

hf_status settings_text(session *s, config_key key, char **out, hf_error *error) {
  pthread_mutex_lock(&s->lock);
  char *text = mem_strdup(value_in_force(s, s->settings, key));
  pthread_mutex_unlock(&s->lock);
  if (text == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the value of a setting");
  }
  *out = text;
  return HF_OK;
}

hf_status settings_for_job(session *s, arena *a, job_settings *out, hf_error *error) {
  stage_setting *rows = arena_array(a, N_RESULT_SETTINGS, sizeof *rows);
  bool complete = rows != NULL;
  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; complete && i < N_RESULT_SETTINGS; i++) {
    rows[i].name = RESULT_SETTINGS[i].engine_name;
    rows[i].value = arena_strdup(a, value_in_force(s, s->settings, RESULT_SETTINGS[i].key));
    complete = rows[i].value != NULL;
  }
  out->tasks = (uint32_t)config_number(s->settings, CONFIG_TASKS);
  out->sink_budget_bytes = config_number(s->settings, CONFIG_SINK_BUDGET);
  out->batch_bytes = config_number(s->settings, CONFIG_SHUFFLE_BATCH_BYTES);
  out->block_bytes = config_number(s->settings, CONFIG_SHUFFLE_BLOCK_BYTES);
  out->compression = strcmp(config_text(s->settings, CONFIG_SHUFFLE_COMPRESSION), "lz4") == 0
                         ? IPC_COMPRESSION_LZ4
                         : IPC_COMPRESSION_NONE;
  out->ordered_below_bytes = config_number(s->settings, CONFIG_SQL_ORDERED_BELOW);
  out->hold_session_max_bytes = config_number(s->settings, CONFIG_HOLD_SESSION_MAX_BYTES);
  out->hold_ttl_us = config_number(s->settings, CONFIG_HOLD_TTL) * 1000000;
  out->follows_sources = strcmp(config_text(s->settings, CONFIG_CACHE_ON_SOURCE_CHANGE), "refresh") == 0;
  pthread_mutex_unlock(&s->lock);
  if (!complete) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the settings of a job");
  }
  out->engine = rows;
  out->n_engine = N_RESULT_SETTINGS;
  return HF_OK;
}

/* ------------------------------------------------------------------ setting */

static hf_status find_changeable(const char *name, bool engine_runs, config_key *out, hf_error *error) {
  HF_TRY(config_find(name, out, error));
  const config_row *row = config_row_of(*out);
  if (engine_runs && row->scope == CONFIG_SCOPE_ENGINE) {
    error_set(error, HF_E_SETTING_VALUE, "the setting is fixed once the engine runs: %s", row->key);
    error_hint(error, "give it when the engine is opened: hf_session_open, or an option of the command");
    return HF_E_SETTING_VALUE;
  }
  return HF_OK;
}

hf_status settings_apply(config *settings, const hf_setting *given, size_t n_given, bool engine_runs,
                         hf_error *error) {
  for (size_t i = 0; i < n_given; i++) {
    if (given[i].key == NULL || given[i].value == NULL) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a setting needs a key and a value");
    }
    config_key key;
    HF_TRY(find_changeable(given[i].key, engine_runs, &key, error));
    HF_TRY(config_set(settings, key, given[i].value, error));
  }
  return HF_OK;
}

/* Asks an engine for the time in a zone: the engine's list of zones is what counts. */
static hf_status try_zone(void *context, engine *planner, hf_error *error) {
  const char *zone = context;
  buf sql = {0};
  buf_text(&sql, "SELECT timezone(");
  buf_sql_string(&sql, zone);
  buf_text(&sql, ", TIMESTAMP '2000-01-01')");
  arena *a = arena_new();
  hf_status status = HF_E_OUT_OF_MEMORY;
  if (a != NULL && !sql.failed) {
    text_table ignored;
    status = engine_query_text(planner, buf_cstr(&sql), a, &ignored, NULL);
  }
  arena_free(a);
  buf_reset(&sql);
  if (status == HF_E_OUT_OF_MEMORY) {
    return error_set(error, status, "no memory to check a time zone");
  }
  if (status != HF_OK) {
    error_set(error, HF_E_SETTING_VALUE, "no time zone has this name: %s", zone);
    error_hint(error, "give a name such as Europe/Berlin or UTC, or auto");
    return HF_E_SETTING_VALUE;
  }
  return HF_OK;
}

static hf_status check_value(session *s, config_key key, const char *value, hf_error *error) {
  if (key != CONFIG_SQL_TIME_ZONE || strcmp(value, "auto") == 0) {
    return HF_OK;
  }
  char zone[128];
  if (strlen(value) >= sizeof zone) {
    return error_set(error, HF_E_SETTING_VALUE, "the name of a time zone is shorter than %zu bytes",
                     sizeof zone);
  }
  memcpy(zone, value, strlen(value) + 1);
  return session_with_planner(s, try_zone, zone, error);
}

static hf_status set_entered(session *s, const char *name, const char *value, hf_error *error) {
  config_key key;
  HF_TRY(find_changeable(name, true, &key, error));
  HF_TRY(check_value(s, key, value, error));
  pthread_mutex_lock(&s->lock);
  hf_status status = config_set(s->settings, key, value, error);
  s->is_set[key] = s->is_set[key] || status == HF_OK;
  pthread_mutex_unlock(&s->lock);
  return status == HF_OK ? durable_settings(s, error) : status;
}

hf_status session_set(session *s, const char *key, const char *value, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, set_entered(s, key, value, error));
}

static hf_status reset_entered(session *s, const char *name, hf_error *error) {
  config_key key;
  HF_TRY(find_changeable(name, true, &key, error));
  pthread_mutex_lock(&s->lock);
  hf_status status = config_set(s->settings, key, config_text(runtime_settings(s->runtime), key), error);
  s->is_set[key] = s->is_set[key] && status != HF_OK;
  pthread_mutex_unlock(&s->lock);
  return status == HF_OK ? durable_settings(s, error) : status;
}

hf_status session_reset_setting(session *s, const char *key, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, reset_entered(s, key, error));
}

static hf_status get_entered(session *s, const char *name, char **out, hf_error *error) {
  config_key key;
  HF_TRY(config_find(name, &key, error));
  return settings_text(s, key, out, error);
}

hf_status session_get(session *s, const char *key, char **out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, get_entered(s, key, out, error));
}

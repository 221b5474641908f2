/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHOW CACHE, SHOW TABLES, SHOW of settings and EXPLAIN: one function each, that
 * fills an answer.
 * Thread: any. The rows of holds are filled on the scheduler's thread.
 */
#include "session/session_internal.h"

#include "base/mem.h"
#include "session/answer.h"

#include <string.h>
#include <strings.h>

#define N_COLUMNS(columns) (sizeof(columns) / sizeof(columns)[0])

/* -------------------------------------------------------------------- holds */

static const answer_column HOLD_COLUMNS[] = {
    {"name", "VARCHAR"},
    {"cache_id", "VARCHAR"},
    {"session", "VARCHAR"},
    {"state", "VARCHAR"},
    {"level", "VARCHAR"},
    {"rows", "BIGINT"},
    {"bytes", "BIGINT"},
    {"partitions", "BIGINT"},
    {"generation", "BIGINT"},
    {"hits", "BIGINT"},
    {"last_read", "TIMESTAMP WITH TIME ZONE"},
    {"time_to_compute", "INTERVAL"},
    {"time_saved", "INTERVAL"},
    {"indeterminate", "BOOLEAN"},
    {"last_drop", "VARCHAR"},
};

static const char *const STATE_NAMES[] = {
    [HF_HOLD_NOT_DECLARED] = "not declared", [HF_HOLD_DECLARED] = "declared",
    [HF_HOLD_PENDING] = "pending",           [HF_HOLD_MATERIALISED] = "materialised",
    [HF_HOLD_UNAVAILABLE] = "unavailable",   [HF_HOLD_RELEASED] = "released",
};

static void add_hold(void *context, const hold_row *row) {
  answer *a = context;
  const hf_storage *storage = &row->storage;
  if (storage->state == HF_HOLD_RELEASED) {
    return;
  }
  bool there = storage->state == HF_HOLD_MATERIALISED || storage->state == HF_HOLD_UNAVAILABLE;
  answer_text(a, row->name);
  answer_text(a, storage->cache_id);
  answer_text(a, row->session.text);
  answer_text(a, STATE_NAMES[storage->state]);
  answer_text(a, storage->level);
  if (there) {
    answer_number(a, storage->rows);
    answer_number(a, storage->bytes);
    answer_number(a, row->partitions);
  } else {
    answer_text(a, NULL);
    answer_text(a, NULL);
    answer_text(a, NULL);
  }
  answer_number(a, storage->generation);
  answer_number(a, storage->hits);
  answer_time_us(a, row->last_read_us);
  if (there) {
    answer_interval_us(a, row->cost_us);
    answer_interval_us(a, row->saved_us);
    answer_bool(a, storage->indeterminate);
  } else {
    answer_text(a, NULL);
    answer_text(a, NULL);
    answer_text(a, NULL);
  }
  answer_text(a, row->last_drop == NULL || row->last_drop[0] == '\0' ? NULL : row->last_drop);
}

hf_status listing_holds(session *s, relation **out, hf_error *error) {
  answer a = answer_of(HOLD_COLUMNS, N_COLUMNS(HOLD_COLUMNS));
  scheduler_list_holds(runtime_scheduler(s->runtime), &s->id, add_hold, &a);
  hf_status status = answer_relation(&a, s, out, error);
  answer_reset(&a);
  return status;
}

/* -------------------------------------------------------------------- names */

static const answer_column NAME_COLUMNS[] = {{"name", "VARCHAR"}, {"kind", "VARCHAR"}};

hf_status listing_names(session *s, relation **out, hf_error *error) {
  answer a = answer_of(NAME_COLUMNS, N_COLUMNS(NAME_COLUMNS));
  name_list *list = names_snapshot(&s->names);
  for (size_t i = 0; i < name_list_count(list); i++) {
    const name_entry *entry = name_list_at(list, i);
    answer_text(&a, entry->name);
    answer_text(&a, hold_is_held(s, entry->bound) ? "cached" : "view");
  }
  name_list_release(list);
  hf_status status = answer_relation(&a, s, out, error);
  answer_reset(&a);
  return status;
}

/* ----------------------------------------------------------------- settings */

static const answer_column SETTING_COLUMNS[] = {
    {"key", "VARCHAR"}, {"value", "VARCHAR"}, {"default", "VARCHAR"}, {"help", "VARCHAR"}};

static hf_status add_setting(session *s, config_key key, answer *a, hf_error *error) {
  const config_row *row = config_row_of(key);
  char *value = NULL;
  HF_TRY(settings_text(s, key, &value, error));
  answer_text(a, row->key);
  answer_text(a, value);
  answer_text(a, row->fallback);
  answer_text(a, row->help);
  mem_free(value);
  return HF_OK;
}

static hf_status add_settings(session *s, const char *name, answer *a, hf_error *error) {
  if (strcasecmp(name, "all") != 0 && strcasecmp(name, "settings") != 0) {
    config_key key;
    HF_TRY(config_find(name, &key, error));
    return add_setting(s, key, a, error);
  }
  for (int key = 0; key < CONFIG_COUNT; key++) {
    HF_TRY(add_setting(s, (config_key)key, a, error));
  }
  return HF_OK;
}

hf_status listing_settings(session *s, const char *name, relation **out, hf_error *error) {
  answer a = answer_of(SETTING_COLUMNS, N_COLUMNS(SETTING_COLUMNS));
  hf_status status = add_settings(s, name, &a, error);
  if (status == HF_OK) {
    status = answer_relation(&a, s, out, error);
  }
  answer_reset(&a);
  return status;
}

/* --------------------------------------------------------------------- plan */

static const answer_column PLAN_COLUMNS[] = {{"plan", "VARCHAR"}};

hf_status listing_plan(session *s, char *text, relation **out, hf_error *error) {
  answer a = answer_of(PLAN_COLUMNS, N_COLUMNS(PLAN_COLUMNS));
  for (char *line = text, *end; line != NULL && *line != '\0'; line = end) {
    end = strchr(line, '\n');
    if (end != NULL) {
      *end++ = '\0';
    }
    answer_text(&a, line);
  }
  hf_status status = answer_relation(&a, s, out, error);
  answer_reset(&a);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: rows of config.def and a set of values in force. Values are text,
 * checked against their row when they are set.
 * Thread: one at a time (a session guards its own set).
 */
#ifndef HF_BASE_CONFIG_H
#define HF_BASE_CONFIG_H

#include "base/error.h"

/* The keys, in the order of config.def. */
typedef enum config_key {
#define HF_CONFIG(key, id, type, unit, fallback, range, scope, since, help) CONFIG_##id,
#include "base/config.def"
#undef HF_CONFIG
  CONFIG_COUNT
} config_key;

typedef enum config_type {
  CONFIG_TYPE_TEXT,
  CONFIG_TYPE_COUNT,
  CONFIG_TYPE_BYTES,
  CONFIG_TYPE_BOOL,
  CONFIG_TYPE_CHOICE,
  CONFIG_TYPE_PATHS
} config_type;

/* Where a key may be set: ENGINE only at hf_session_open, SESSION at any time. */
typedef enum config_scope { CONFIG_SCOPE_ENGINE, CONFIG_SCOPE_SESSION } config_scope;

typedef struct config_row {
  const char *key;
  config_type type;
  const char *unit;
  const char *fallback; /* the default, as text */
  const char *range;    /* COUNT and BYTES: "low..high"; CHOICE: "a|b|c"; else "" */
  config_scope scope;
  const char *since;
  const char *help;
} config_row;

typedef struct config config;

/* Returns a set with every key at its default, or NULL. */
config *config_new(void);
config *config_copy(const config *from);
void config_free(config *c);
const config_row *config_row_of(config_key key);
/* Finds a key by name (letter case does not matter). Errors: SETTING_UNKNOWN, with the nearest name as hint. */
hf_status config_find(const char *name, config_key *out, hf_error *error);
/* Sets; bytes may be written 64MiB, 2GB, 1048576; bool true/false/on/off/1/0. Errors: SETTING_VALUE. */
hf_status config_set(config *c, config_key key, const char *value, hf_error *error);
/* Puts the default back. */
void config_unset(config *c, config_key key);
/* The value as text; borrowed until the key changes. */
const char *config_text(const config *c, config_key key);
/* Of COUNT and BYTES rows. */
uint64_t config_number(const config *c, config_key key);
bool config_bool(const config *c, config_key key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: the rows of config.def, and sets of values. A value is checked
 * against its row when it is set, so that reading one cannot fail. Booleans are
 * kept as true or false and choices as the row spells them; other text as it was
 * written.
 */
#include "base/config.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_VALUE_BYTES = 64 * 1024 };

static const config_row rows[CONFIG_COUNT] = {
#define HF_CONFIG(key, id, type, unit, fallback, range, scope, since, help) \
  {key, CONFIG_TYPE_##type, unit, fallback, range, CONFIG_SCOPE_##scope, since, help},
#include "base/config.def"
#undef HF_CONFIG
};

struct config {
  char *values[CONFIG_COUNT]; /* NULL: the default */
};

/* ------------------------------------------------------------------ values */

typedef struct byte_unit {
  const char *name;
  uint64_t bytes;
} byte_unit;

static const byte_unit BYTE_UNITS[] = {
    {"", 1},
    {"b", 1},
    {"kb", 1000},
    {"mb", 1000000},
    {"gb", 1000000000},
    {"tb", 1000000000000},
    {"kib", (uint64_t)1 << 10},
    {"mib", (uint64_t)1 << 20},
    {"gib", (uint64_t)1 << 30},
    {"tib", (uint64_t)1 << 40},
    {"pib", (uint64_t)1 << 50},
    {"eib", (uint64_t)1 << 60},
    {"k", (uint64_t)1 << 10},
    {"m", (uint64_t)1 << 20},
    {"g", (uint64_t)1 << 30},
    {"t", (uint64_t)1 << 40},
};

static bool scale_of_unit(const char *unit, uint64_t *scale) {
  while (*unit == ' ') {
    unit++;
  }
  for (size_t i = 0; i < sizeof BYTE_UNITS / sizeof BYTE_UNITS[0]; i++) {
    if (strcasecmp(BYTE_UNITS[i].name, unit) == 0) {
      *scale = BYTE_UNITS[i].bytes;
      return true;
    }
  }
  return false;
}

/* Reads digits and, of bytes, a unit behind them. */
static bool number_read(const char *text, config_type type, uint64_t *out) {
  if (*text < '0' || *text > '9') {
    return false;
  }
  char *end = NULL;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0) {
    return false;
  }
  uint64_t scale = 1;
  if (*end != '\0' && (type != CONFIG_TYPE_BYTES || !scale_of_unit(end, &scale))) {
    return false;
  }
  if (number > UINT64_MAX / scale) {
    return false;
  }
  *out = number * scale;
  return true;
}

static bool bool_read(const char *text, bool *out) {
  static const struct {
    const char *text;
    bool value;
  } spellings[] = {{"true", true}, {"false", false}, {"on", true},  {"off", false},
                   {"1", true},    {"0", false},     {"yes", true}, {"no", false}};
  for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
    if (strcasecmp(text, spellings[i].text) == 0) {
      *out = spellings[i].value;
      return true;
    }
  }
  return false;
}

static bool is_in_range(const config_row *row, uint64_t number) {
  const char *dots = strstr(row->range, "..");
  if (dots == NULL) {
    return true;
  }
  char low[32] = "";
  size_t length = (size_t)(dots - row->range);
  if (length >= sizeof low) {
    return true;
  }
  memcpy(low, row->range, length);
  uint64_t least = 0, most = UINT64_MAX;
  if (!number_read(low, row->type, &least) || !number_read(dots + 2, row->type, &most)) {
    return true;
  }
  return number >= least && number <= most;
}

/* Finds the value among "a|b|c" without regard to letter case; NULL: it is none of them. */
static const char *choice_find(const char *choices, const char *value) {
  size_t length = strlen(value);
  for (const char *at = choices; length > 0; at++) {
    size_t width = strcspn(at, "|");
    if (width == length && strncasecmp(at, value, width) == 0) {
      return at;
    }
    at += width;
    if (*at == '\0') {
      break;
    }
  }
  return NULL;
}

/* ":a::b:" has empty parts; each part must be a path. */
static bool is_path_list(const char *value) {
  size_t length = strlen(value);
  return length > 0 && value[0] != ':' && value[length - 1] != ':' && strstr(value, "::") == NULL;
}

static bool value_fits(const config_row *row, const char *value) {
  uint64_t number = 0;
  bool truth = false;
  if (strcmp(row->fallback, "auto") == 0 && strcmp(value, "auto") == 0) {
    return true;
  }
  switch (row->type) {
    case CONFIG_TYPE_COUNT:
    case CONFIG_TYPE_BYTES:
      return number_read(value, row->type, &number) && is_in_range(row, number);
    case CONFIG_TYPE_BOOL:
      return bool_read(value, &truth);
    case CONFIG_TYPE_CHOICE:
      return choice_find(row->range, value) != NULL;
    case CONFIG_TYPE_PATHS:
      return is_path_list(value);
    case CONFIG_TYPE_TEXT:
      break;
  }
  return value[0] != '\0' || row->fallback[0] == '\0'; /* what is empty by default may be set to that again */
}

static hf_status value_refuse(const config_row *row, const char *value, hf_error *error) {
  static const char *const expected[] = {
      [CONFIG_TYPE_TEXT] = "a text that is not empty",
      [CONFIG_TYPE_COUNT] = "a whole number",
      [CONFIG_TYPE_BYTES] = "a size such as 64MiB",
      [CONFIG_TYPE_BOOL] = "true or false",
      [CONFIG_TYPE_CHOICE] = "one of",
      [CONFIG_TYPE_PATHS] = "paths separated by ':'",
  };
  const char *blank = row->range[0] == '\0' ? "" : " ";
  return error_set(error, HF_E_SETTING_VALUE,
                   "a value does not fit the setting %s, which takes %s%s%s: %.200s", row->key,
                   expected[row->type], blank, row->range, value);
}

/* Copies a value that fits, in its row's own spelling. */
static char *value_copy(const config_row *row, const char *value) {
  bool truth = false;
  if (row->type == CONFIG_TYPE_BOOL && bool_read(value, &truth)) {
    return mem_strdup(truth ? "true" : "false");
  }
  const char *choice = row->type == CONFIG_TYPE_CHOICE ? choice_find(row->range, value) : NULL;
  return choice == NULL ? mem_strdup(value) : mem_strndup(choice, strlen(value));
}

/* ------------------------------------------------------------------- doors */

config *config_new(void) {
  return mem_zalloc(1, sizeof(config));
}

config *config_copy(const config *from) {
  config *copy = config_new();
  for (size_t i = 0; copy != NULL && i < CONFIG_COUNT; i++) {
    copy->values[i] = mem_strdup(from->values[i]);
    if (from->values[i] != NULL && copy->values[i] == NULL) {
      config_free(copy);
      return NULL;
    }
  }
  return copy;
}

void config_free(config *c) {
  for (size_t i = 0; c != NULL && i < CONFIG_COUNT; i++) {
    mem_free(c->values[i]);
  }
  mem_free(c);
}

const config_row *config_row_of(config_key key) {
  return &rows[key];
}

hf_status config_find(const char *name, config_key *out, hf_error *error) {
  nearest near = nearest_to(name);
  for (size_t i = 0; i < CONFIG_COUNT; i++) {
    if (strcasecmp(rows[i].key, name) == 0) {
      *out = (config_key)i;
      return HF_OK;
    }
    nearest_offer(&near, rows[i].key);
  }
  error_set(error, HF_E_SETTING_UNKNOWN, "no setting has this name: %.200s", name);
  if (near.best != NULL) {
    error_hint(error, "did you mean %s? docs/configuration.md has all names", near.best);
  }
  return HF_E_SETTING_UNKNOWN;
}

hf_status config_set(config *c, config_key key, const char *value, hf_error *error) {
  if (strlen(value) > LONGEST_VALUE_BYTES) {
    return error_set(error, HF_E_SETTING_VALUE, "a value is longer than %d bytes: %s", LONGEST_VALUE_BYTES,
                     rows[key].key);
  }
  if (!value_fits(&rows[key], value)) {
    return value_refuse(&rows[key], value, error);
  }
  char *copy = value_copy(&rows[key], value);
  if (copy == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the value of a setting");
  }
  mem_free(c->values[key]);
  c->values[key] = copy;
  return HF_OK;
}

void config_unset(config *c, config_key key) {
  mem_free(c->values[key]);
  c->values[key] = NULL;
}

const char *config_text(const config *c, config_key key) {
  return c->values[key] == NULL ? rows[key].fallback : c->values[key];
}

uint64_t config_number(const config *c, config_key key) {
  uint64_t number = 0;
  return number_read(config_text(c, key), rows[key].type, &number) ? number : 0;
}

bool config_bool(const config *c, config_key key) {
  bool truth = false;
  return bool_read(config_text(c, key), &truth) && truth;
}

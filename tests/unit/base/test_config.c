/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what each type of row accepts, what it keeps, and what it says to a wrong value or name. */
#include "base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_config(void **state) {
  *state = config_new();
  return *state == NULL;
}

static int close_config(void **state) {
  config_free(*state);
  return 0;
}

static void config_new_has_every_default(void **state) {
  config *c = *state;
  for (int i = 0; i < CONFIG_COUNT; i++) {
    const config_row *row = config_row_of((config_key)i);
    hf_error error = {0};
    assert_string_equal(config_text(c, (config_key)i), row->fallback);
    assert_int_equal(config_set(c, (config_key)i, row->fallback, &error), HF_OK);
    assert_true(i == 0 || strcmp(config_row_of((config_key)(i - 1))->key, row->key) < 0);
    assert_true(row->help[0] != '\0' && row->since[0] != '\0');
    hf_error_reset(&error);
  }
}

static void value_fitting_its_row_is_kept(void **state) {
  static const struct {
    config_key key;
    const char *given, *kept;
    uint64_t number;
  } cases[] = {
      {CONFIG_SLOTS, "3", "3", 3},
      {CONFIG_THREADS, "auto", "auto", 0},
      {CONFIG_MEMORY, "64MiB", "64MiB", 64 << 20},
      {CONFIG_MEMORY, "2GB", "2GB", 2000000000},
      {CONFIG_MEMORY, "1 gib", "1 gib", 1 << 30},
      {CONFIG_MEMORY, "1073741824", "1073741824", 1 << 30},
      {CONFIG_MEMORY, "1EiB", "1EiB", (uint64_t)1 << 60},
      {CONFIG_SQL_ORDERED_BELOW, "0", "0", 0},
      {CONFIG_SQL_INTEGER_DIVISION, "ON", "true", 0},
      {CONFIG_SQL_INTEGER_DIVISION, "0", "false", 0},
      {CONFIG_SQL_DEFAULT_ORDER, "DESC", "desc", 0},
      {CONFIG_SQL_DEFAULT_NULL_ORDER, "nulls_first", "nulls_first", 0},
      {CONFIG_ALLOW_PATH, "/a:/b", "/a:/b", 0},
      {CONFIG_SQL_TIME_ZONE, "Europe/Berlin", "Europe/Berlin", 0},
  };
  config *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hf_error error = {0};
    assert_int_equal(config_set(c, cases[i].key, cases[i].given, &error), HF_OK);
    assert_string_equal(config_text(c, cases[i].key), cases[i].kept);
    if (cases[i].number != 0) {
      assert_int_equal(config_number(c, cases[i].key), cases[i].number);
    }
  }
  assert_false(config_bool(c, CONFIG_SQL_INTEGER_DIVISION));
  assert_true(config_bool(c, CONFIG_SQL_SCALAR_SUBQUERY_ERROR));
}

static void value_outside_its_row_is_refused_and_the_old_stays(void **state) {
  static const struct {
    config_key key;
    const char *given;
  } cases[] = {
      {CONFIG_SLOTS, "0"},
      {CONFIG_SLOTS, "257"},
      {CONFIG_SLOTS, "-1"},
      {CONFIG_SLOTS, "1x"},
      {CONFIG_SLOTS, ""},
      {CONFIG_SLOTS, "99999999999999999999"},
      {CONFIG_SLOTS, "auto"},
      {CONFIG_MEMORY, "1"},
      {CONFIG_MEMORY, "64 parsecs"},
      {CONFIG_MEMORY, "17EiB"},
      {CONFIG_MEMORY, "MiB"},
      {CONFIG_SQL_INTEGER_DIVISION, "maybe"},
      {CONFIG_SQL_DEFAULT_ORDER, "as"},
      {CONFIG_SQL_DEFAULT_ORDER, ""},
      {CONFIG_SQL_DEFAULT_ORDER, "asc|desc"},
      {CONFIG_ALLOW_PATH, ""},
      {CONFIG_ALLOW_PATH, "/a::/b"},
      {CONFIG_ALLOW_PATH, ":/a"},
      {CONFIG_SQL_TIME_ZONE, ""},
  };
  config *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hf_error error = {0};
    char before[64];
    strncpy(before, config_text(c, cases[i].key), sizeof before - 1);
    before[sizeof before - 1] = '\0';
    assert_int_equal(config_set(c, cases[i].key, cases[i].given, &error), HF_E_SETTING_VALUE);
    assert_non_null(strstr(error.message, config_row_of(cases[i].key)->key));
    assert_string_equal(config_text(c, cases[i].key), before);
    hf_error_reset(&error);
  }
}

static void key_unknown_suggests_the_nearest(void **state) {
  (void)state;
  config_key key;
  hf_error error = {0};
  assert_int_equal(config_find("SQL.Time_Zone", &key, &error), HF_OK);
  assert_int_equal(key, CONFIG_SQL_TIME_ZONE);
  assert_int_equal(config_find("sql.tim_zone", &key, &error), HF_E_SETTING_UNKNOWN);
  assert_non_null(strstr(error.hint, "sql.time_zone"));
  hf_error_reset(&error);
  assert_int_equal(config_find("enable_external_access", &key, &error), HF_E_SETTING_UNKNOWN);
  assert_null(strstr(error.hint, "did you mean"));
  hf_error_reset(&error);
}

static void config_copied_is_apart_from_its_origin(void **state) {
  config *c = *state;
  assert_int_equal(config_set(c, CONFIG_SLOTS, "7", NULL), HF_OK);
  config *copy = config_copy(c);
  assert_non_null(copy);
  config_unset(c, CONFIG_SLOTS);
  assert_int_equal(config_number(c, CONFIG_SLOTS), 1);
  assert_int_equal(config_number(copy, CONFIG_SLOTS), 7);
  config_free(copy);
  config_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(config_new_has_every_default, open_config, close_config),
      cmocka_unit_test_setup_teardown(value_fitting_its_row_is_kept, open_config, close_config),
      cmocka_unit_test_setup_teardown(value_outside_its_row_is_refused_and_the_old_stays, open_config,
                                      close_config),
      cmocka_unit_test(key_unknown_suggests_the_nearest),
      cmocka_unit_test_setup_teardown(config_copied_is_apart_from_its_origin, open_config, close_config),
  };
  return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}

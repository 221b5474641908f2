/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: what is set, what is locked, what is refused, and that nothing is left after it. */
#include "store.h"

static char *setting_of(engine *e, const char *name) {
  char sql[128];
  snprintf(sql, sizeof sql, "SELECT current_setting('%s')", name);
  char *text = rig_render(e, sql, 1, NULL, 0);
  text[strcspn(text, "\n")] = '\0';
  return text;
}

static void assert_setting(engine *e, const char *name, const char *wanted) {
  char *found = setting_of(e, name);
  if (strcmp(found, wanted) != 0) {
    fail_msg("%s is %s, expected %s", name, found, wanted);
  }
  free(found);
}

static void instance_has_the_settings_given(void **state) {
  (void)state;
  rig r;
  rig_make_dirs(&r);
  static const engine_setting settings[] = {{"TimeZone", "America/New_York"},
                                            {"default_null_order", "nulls_first"},
                                            {"integer_division", "true"},
                                            {"default_order", "desc"}};
  engine_options options = rig_options(&r, 3, (uint64_t)200 << 20);
  options.settings = settings;
  options.n_settings = 4;
  assert_ok(engine_open(&options, &r.slot, ok_error));
  assert_setting(r.slot, "threads", "3");
  assert_setting(r.slot, "memory_limit", "200.0 MiB");
  assert_setting(r.slot, "temp_directory", r.spill_dir);
  assert_setting(r.slot, "TimeZone", "America/New_York");
  assert_setting(r.slot, "enable_external_access", "false");
  assert_setting(r.slot, "lock_configuration", "true");
  char *text = rig_render(r.slot, "SELECT 7 / 2, '2024-07-01 12:00:00'::TIMESTAMPTZ", 2, NULL, 0);
  assert_string_equal(text, "3|2024-07-01 12:00:00-04\n");
  free(text);
  text = rig_render(r.slot, "SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x", 1, NULL, 0);
  assert_string_equal(text, "~\n2\n1\n");
  free(text);
  rig_close(&r);
}

static void instance_has_duckdbs_defaults_spelled_out(void **state) {
  (void)state;
  static const char *const wanted[][2] = {
      {"arrow_lossless_conversion", "true"},
      {"autoinstall_known_extensions", "false"},
      {"autoload_known_extensions", "false"},
      {"allow_community_extensions", "false"},
      {"allow_persistent_secrets", "false"},
      {"allow_unsigned_extensions", "false"},
      {"preserve_insertion_order", "true"},
      {"default_null_order", "NULLS_LAST"},
      {"default_order", "ASC"},
      {"integer_division", "false"},
      {"ieee_floating_point_ops", "true"},
      {"old_implicit_casting", "false"},
      {"max_expression_depth", "1000"},
      {"scalar_subquery_error_on_multiple_rows", "true"},
      {"enable_external_access", "false"},
      {"lock_configuration", "true"},
      {"produce_arrow_string_view", "false"},
      {"arrow_large_buffer_size", "false"},
  };
  static const engine_kind kinds[] = {ENGINE_PLANNER, ENGINE_DISCOVERER, ENGINE_SLOT};
  for (size_t k = 0; k < 3; k++) {
    engine *e = NULL;
    engine_options options = {.kind = kinds[k]};
    assert_ok(engine_open(&options, &e, ok_error));
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
      assert_setting(e, wanted[i][0], wanted[i][1]);
    }
    engine_close(e);
  }
}

static void settings_that_do_not_fit_are_refused(void **state) {
  (void)state;
  static const engine_setting settings[] = {{"threads", "no number"},
                                            {"no_such_setting", "1"},
                                            {"TimeZone", "Mars/Olympus"},
                                            {"default_null_order", "sometimes"},
                                            {"enable_progress_bar", "true"}};
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    engine *e = (engine *)&state;
    engine_options options = {.kind = ENGINE_PLANNER, .settings = &settings[i], .n_settings = 1};
    hf_error error = {0};
    assert_int_equal(engine_open(&options, &e, &error), HF_E_SETTING_VALUE);
    assert_ptr_equal(e, &state);
    hf_error_reset(&error);
  }
}

static void instance_reads_below_its_directories_only(void **state) {
  (void)state;
  rig r;
  rig_make_dirs(&r);
  arena *a = arena_new();
  char *odd = arena_printf(a, "%s/it's, a dir", r.dir);
  assert_ok(file_make_dirs(odd, ok_error));
  rig_write(&r, "it's, a dir/x.csv", "a\n1\n", a);
  rig_write(&r, "y.csv", "a\n1\n", a);
  const char *allowed[] = {odd};
  engine_options options = {.kind = ENGINE_DISCOVERER, .allowed_dirs = allowed, .n_allowed_dirs = 1};
  assert_ok(engine_open(&options, &r.slot, ok_error));
  text_table table;
  assert_ok(engine_query_text(r.slot, arena_printf(a, "FROM read_csv('%s/it''s, a dir/x.csv')", r.dir), a,
                              &table, ok_error));
  assert_string_equal(table.cells[0], "1");
  hf_error error = {0};
  assert_int_equal(
      engine_query_text(r.slot, arena_printf(a, "FROM read_csv('%s/y.csv')", r.dir), a, &table, &error),
      HF_E_PATH_REFUSED);
  hf_error_reset(&error);
  arena_free(a);
  rig_close(&r);
}

static void planner_has_no_directory_at_all(void **state) {
  (void)state;
  rig r;
  rig_make_dirs(&r);
  arena *a = arena_new();
  rig_write(&r, "y.csv", "a\n1\n", a);
  engine_options options = {.kind = ENGINE_PLANNER, .allowed_dirs = r.allowed, .n_allowed_dirs = 1};
  options.allowed_dirs = (const char *const[]){r.dir};
  assert_ok(engine_open(&options, &r.slot, ok_error));
  schema s;
  hf_error error = {0};
  assert_int_equal(
      engine_describe(r.slot, arena_printf(a, "FROM read_csv('%s/y.csv')", r.dir), a, &s, &error),
      HF_E_PATH_REFUSED);
  hf_error_reset(&error);
  arena_free(a);
  rig_close(&r);
}

static void slot_in_a_directory_with_a_quote_runs_tasks(void **state) {
  (void)state;
  rig r;
  rig_make_dirs(&r);
  snprintf(r.slot_dir, sizeof r.slot_dir, "%s/it's", r.dir);
  assert_ok(file_make_dirs(r.slot_dir, ok_error));
  engine_options options = rig_options(&r, 2, 0);
  assert_ok(engine_open(&options, &r.slot, ok_error));
  store s;
  store_init(&s);
  store_fill(&s, r.slot, "SELECT 1");
  assert_int_equal(s.rows, 1);
  store_reset(&s);
  rig_close(&r);
}

static void instance_opens_at_every_failing_allocation_or_says_so(void **state) {
  (void)state;
  rig r;
  rig_make_dirs(&r);
  engine_options options = rig_options(&r, 1, 0);
  hf_status status = HF_E_OUT_OF_MEMORY;
  for (uint64_t n = 1; status != HF_OK; n++) {
    assert_true(n < 100);
    engine *e = NULL;
    hf_error error = {0};
    mem_fail_after(n);
    status = engine_open(&options, &e, &error);
    mem_fail_after(0);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    hf_error_reset(&error);
    engine_close(e);
  }
  rig_close(&r);
}

static void instance_loads_extensions_before_it_is_locked(void **state) {
  (void)state;
  static const char *const tpch[] = {"tpch"}, *const unknown[] = {"no_such"};
  rig r;
  rig_make_dirs(&r);
  engine_options options = rig_options(&r, 1, (uint64_t)1 << 30);
  options.extension_dir = getenv("HOLDFAST_EXTENSION_DIRECTORY");
  assert_non_null(options.extension_dir);
  options.load = tpch;
  options.n_load = 1;
  assert_ok(engine_open(&options, &r.slot, ok_error));
  assert_setting(r.slot, "enable_external_access", "false");
  assert_setting(r.slot, "lock_configuration", "true");
  char *text = rig_render(r.slot, "SELECT count(*) FROM tpch_queries()", 1, NULL, 0);
  assert_string_equal(text, "22\n");
  free(text);
  hf_error error = {0};
  assert_int_not_equal(engine_execute(r.slot, "LOAD tpcds", &error), HF_OK);
  hf_error_reset(&error);
  engine *e = NULL;
  options.load = unknown;
  assert_int_equal(engine_open(&options, &e, &error), HF_E_UNSUPPORTED);
  assert_non_null(strstr(error.message, "no_such"));
  assert_null(e);
  hf_error_reset(&error);
  rig_close(&r);
}

static void nothing_is_closed_without_complaint(void **state) {
  (void)state;
  engine_close(NULL);
  assert_string_equal(engine_library_version(), "v1.5.5");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(instance_has_the_settings_given),
      cmocka_unit_test(instance_has_duckdbs_defaults_spelled_out),
      cmocka_unit_test(settings_that_do_not_fit_are_refused),
      cmocka_unit_test(instance_reads_below_its_directories_only),
      cmocka_unit_test(planner_has_no_directory_at_all),
      cmocka_unit_test(slot_in_a_directory_with_a_quote_runs_tasks),
      cmocka_unit_test(instance_opens_at_every_failing_allocation_or_says_so),
      cmocka_unit_test(instance_loads_extensions_before_it_is_locked),
      cmocka_unit_test(nothing_is_closed_without_complaint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

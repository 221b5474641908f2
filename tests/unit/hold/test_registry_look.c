/* SPDX-License-Identifier: Apache-2.0 */
/* Entries as the journal has them: records, restoring, inventories of executors; what is cut stays. */
#include "hold/journal.h"

#include "hold/registry_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const uuid key = {"key"}, session = {"session"};
static const data_type integer = {.kind = TYPE_INTEGER};
static const column columns[] = {{"a", &integer}, {"b", &integer}};
static const uint32_t hashed[] = {1};
static const entry_sort_key sorted[] = {{.column = 1, .is_descending = true, .nulls_first = true}};
static const entry_source sources[] = {{.path = "/data/x.parquet", .bytes = 9, .mtime_ns = 77},
                                       {.path = "s3://b/y", .bytes = 5, .etag = "e1"}};
static const uint8_t metadata[] = {1, 2, 3};

typedef struct fixture {
  declarations *d;
  registry *r;
  registry_actions actions;
} fixture;

static int set_up(void **state) {
  fixture *f = mem_zalloc(1, sizeof *f);
  f->d = declarations_new();
  f->r = registry_new(f->d);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  registry_check(f->r);
  registry_actions_reset(&f->actions);
  registry_free(f->r);
  declarations_free(f->d);
  mem_free(f);
  return 0;
}

static entry_output output_at(const entry_location *at, size_t n) {
  return (entry_output){
      .columns = {2, columns},
      .metadata = metadata,
      .metadata_bytes = sizeof metadata,
      .rows = 3,
      .bytes = 64,
      .ordered = true,
      .sort = sorted,
      .n_sort = 1,
      .partitioning = {.columns = hashed, .n_columns = 1, .n = (uint32_t)n, .hash_version = 4},
      .locations = at,
      .n_locations = n,
      .sources = sources,
      .n_sources = 2,
      .fingerprint = "00ff",
      .cost_us = 7,
      .created_us = 8};
}

static void expect_output(const entry_output *got) {
  assert_int_equal(got->columns.n_columns, 2);
  assert_string_equal(got->columns.columns[1].name, "b");
  assert_memory_equal(got->metadata, metadata, sizeof metadata);
  assert_true(got->sort[0].is_descending && got->sort[0].nulls_first);
  assert_int_equal(got->partitioning.columns[0], 1);
  assert_int_equal(got->partitioning.hash_version, 4);
  assert_string_equal(got->sources[0].path, "/data/x.parquet");
  assert_null(got->sources[0].etag);
  assert_string_equal(got->sources[1].etag, "e1");
  assert_string_equal(got->fingerprint, "00ff");
  assert_int_equal(got->created_us, 8);
}

static entry_view entry_on(const entry_location *at, size_t n) {
  return (entry_view){.state = ENTRY_MATERIALISED,
                      .key = key,
                      .session = session,
                      .job = {10},
                      .generation = 3,
                      .output = output_at(at, n),
                      .hits = 2,
                      .last_read_us = 9};
}

static const entry_location on_both[] = {{.job = {10}, .stage = {1}, .task = {1}, .executor = "x1"},
                                         {.job = {10}, .stage = {2}, .task = {1}, .executor = "x2"}};

static entry_state state_of(const fixture *f, entry_view *view) {
  registry_check(f->r);
  return registry_lookup(f->r, &key, view);
}

static void entry_output_copy_shares_nothing(void **state) {
  (void)state;
  arena *a = arena_new();
  entry_output from = output_at(on_both, 2), copy;
  assert_int_equal(entry_output_copy(&from, a, &copy, NULL), HF_OK);
  expect_output(&copy);
  assert_ptr_not_equal(copy.locations, from.locations);
  assert_ptr_not_equal(copy.columns.columns, from.columns.columns);
  assert_ptr_not_equal(copy.metadata, from.metadata);
  assert_ptr_not_equal(copy.sort, from.sort);
  assert_ptr_not_equal(copy.partitioning.columns, from.partitioning.columns);
  assert_ptr_not_equal(copy.sources, from.sources);
  assert_ptr_not_equal(copy.sources[0].path, from.sources[0].path);
  arena_free(a);
}

static void registry_record_is_what_complete_puts_in_place(void **state) {
  fixture *f = *state;
  entry_location at = {.job = {10}, .stage = {1}, .task = {1}, .executor = "x1"};
  entry_output output = output_at(&at, 1);
  entry_view record, view;
  registry_executor_back(f->r, "x1", NULL);
  registry_begin_or_wait(f->r, &key, &session, (job_id){10}, (job_id){1}, NULL);
  assert_false(registry_record(f->r, &key, (job_id){11}, &output, &record));
  assert_true(registry_record(f->r, &key, (job_id){10}, &output, &record));
  registry_complete(f->r, &key, (job_id){10}, &output, &f->actions);
  assert_int_equal(state_of(f, &view), record.state);
  assert_int_equal(view.generation, record.generation);
  assert_int_equal(view.job.value, record.job.value);
  assert_true(uuid_equal(&record.session, &session));
  expect_output(&view.output);
}

static void registry_restored_entry_is_away_until_all_its_executors_are_back(void **state) {
  fixture *f = *state;
  entry_view entry = entry_on(on_both, 2), view;
  assert_int_equal(registry_restore(f->r, &entry, NULL), HF_OK);
  assert_int_equal(state_of(f, &view), ENTRY_UNAVAILABLE);
  assert_true(registry_is_pinned(f->r, (job_id){10}, (stage_id){2}));
  static const pinned_stage on_1[] = {{{10}, {1}}, {{4}, {1}}}, on_2[] = {{{10}, {2}}};
  assert_int_equal(registry_inventory(f->r, "x1", on_1, 2, &f->actions, NULL), HF_OK);
  assert_false(registry_is_pinned(f->r, (job_id){4}, (stage_id){1})); /* the caller deletes it */
  assert_int_equal(state_of(f, &view), ENTRY_UNAVAILABLE);
  assert_int_equal(registry_inventory(f->r, "x2", on_2, 1, &f->actions, NULL), HF_OK);
  assert_int_equal(state_of(f, &view), ENTRY_MATERIALISED);
  assert_int_equal(view.generation, 3);
  assert_int_equal(view.hits, 2);
  assert_int_equal(view.last_read_us, 9);
  expect_output(&view.output);
  assert_int_equal(registry_restore(f->r, &entry, NULL), HF_E_NAME_EXISTS);
}

static void registry_inventory_without_a_stage_drops_the_entry(void **state) {
  fixture *f = *state;
  entry_view entry = entry_on(on_both, 2), view;
  assert_int_equal(registry_restore(f->r, &entry, NULL), HF_OK);
  static const pinned_stage stages[] = {{{10}, {1}}};
  assert_int_equal(registry_inventory(f->r, "x2", stages, 1, &f->actions, NULL), HF_OK);
  assert_int_equal(state_of(f, &view), ENTRY_ABSENT);
  assert_string_equal(view.last_drop, "blocks missing");
  assert_int_equal(view.generation, 3);
  registry_action *action = registry_actions_take(&f->actions);
  assert_int_equal(action->kind, REGISTRY_UNPIN);
  mem_free(action);
}

static void registry_grace_spares_what_is_cut(void **state) {
  fixture *f = *state;
  declaration row = {.key = key, .session = session, .lineage = LINEAGE_CUT};
  assert_int_equal(declarations_add(f->d, &row, NULL), HF_OK);
  entry_view entry = entry_on(on_both, 1), view;
  assert_int_equal(registry_restore(f->r, &entry, NULL), HF_OK);
  registry_invalidate_executor(f->r, "x1", &f->actions);
  assert_int_equal(state_of(f, &view), ENTRY_UNAVAILABLE);
  registry_executor_back(f->r, "x1", NULL);
  assert_int_equal(state_of(f, &view), ENTRY_MATERIALISED);
  assert_true(registry_invalidate(f->r, &key, "unpersist", &f->actions));
}

static bool count_view(void *context, const entry_view *view) {
  size_t *count = context;
  assert_true(uuid_equal(&view->session, &session));
  return ++*count < 2;
}

static void registry_each_goes_by_session_and_stops(void **state) {
  fixture *f = *state;
  static const uuid keys[] = {{"k1"}, {"k2"}, {"k3"}}, other = {"other"};
  for (size_t i = 0; i < 3; i++) {
    registry_begin_or_wait(f->r, &keys[i], &session, (job_id){10 + i}, (job_id){1}, NULL);
  }
  registry_begin_or_wait(f->r, &key, &other, (job_id){20}, (job_id){1}, NULL);
  size_t count = 0;
  registry_each(f->r, &session, count_view, &count);
  assert_int_equal(count, 2);
}

static void registry_restore_without_memory_leaves_no_data(void **state) {
  fixture *f = *state;
  entry_view entry = entry_on(on_both, 2), view;
  hf_status status = HF_E_OUT_OF_MEMORY;
  for (uint64_t n = 1; status != HF_OK && n < 100; n++) {
    mem_fail_after(n);
    status = registry_restore(f->r, &entry, NULL);
    mem_fail_after(0);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    assert_int_equal(state_of(f, &view), status == HF_OK ? ENTRY_UNAVAILABLE : ENTRY_ABSENT);
  }
  assert_int_equal(status, HF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entry_output_copy_shares_nothing),
      cmocka_unit_test_setup_teardown(registry_record_is_what_complete_puts_in_place, set_up, tear_down),
      cmocka_unit_test_setup_teardown(registry_restored_entry_is_away_until_all_its_executors_are_back,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(registry_inventory_without_a_stage_drops_the_entry, set_up, tear_down),
      cmocka_unit_test_setup_teardown(registry_grace_spares_what_is_cut, set_up, tear_down),
      cmocka_unit_test_setup_teardown(registry_each_goes_by_session_and_stops, set_up, tear_down),
      cmocka_unit_test_setup_teardown(registry_restore_without_memory_leaves_no_data, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed bytes whose meaning is wrong: each is refused with its reason. */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const data_type *const two_children[] = {&sample_bigint, &sample_bigint};
static const char *const one_name[] = {"a"};

/* Packs, unpacks, and expects PROTOCOL with this text. */
static void plan_assert_refused(const stage_plan *plan, const char *message) {
  buf bytes = {0};
  hf_error error = {0};
  arena *a = arena_new();
  stage_plan out = {.n_pieces = 77};
  assert_int_equal(stage_plan_pack(plan, &bytes, &error), HF_OK);
  assert_int_equal(stage_plan_unpack(bytes.data, bytes.length, a, &out, &error), HF_E_PROTOCOL);
  if (strstr(error.message, message) == NULL ||
      strstr(error.message, "a stage plan is not valid: ") == NULL) {
    fail_msg("expected %s, found %s", message, error.message);
  }
  assert_int_equal(out.n_pieces, 77);
  hf_error_reset(&error);
  buf_reset(&bytes);
  arena_free(a);
}

static void plan_with_a_type_of_wrong_shape_is_refused(void **state) {
  (void)state;
  static const struct {
    data_type type;
    const char *message;
  } cases[] = {
      {{.kind = TYPE_KIND_COUNT}, "no type has this number"},
      {{.kind = TYPE_DECIMAL}, "no such type: DECIMAL(0,0)"},
      {{.kind = TYPE_DECIMAL, .width = 39}, "no such type: DECIMAL(39,0)"},
      {{.kind = TYPE_DECIMAL, .width = 5, .scale = 6}, "no such type: DECIMAL(5,6)"},
      {{.kind = TYPE_LIST}, "so many children"},
      {{.kind = TYPE_LIST, .n_children = 2, .children = two_children}, "so many children"},
      {{.kind = TYPE_ARRAY, .n_children = 1, .children = two_children}, "an ARRAY of 0 elements"},
      {{.kind = TYPE_ARRAY, .array_size = 3}, "so many children"},
      {{.kind = TYPE_MAP, .n_children = 1, .children = two_children}, "so many children"},
      {{.kind = TYPE_STRUCT, .n_children = 2, .children = two_children, .n_names = 1, .names = one_name},
       "so many names"},
      {{.kind = TYPE_UNION}, "so many children"},
      {{.kind = TYPE_BIGINT, .n_children = 1, .children = two_children}, "so many children"},
      {{.kind = TYPE_VARCHAR, .n_names = 1, .names = one_name}, "so many names"},
      {{.kind = TYPE_ENUM, .n_children = 1, .children = two_children, .n_names = 1, .names = one_name},
       "so many children"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const data_type *child[] = {&cases[i].type};
    data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = child};
    column columns[] = {{"c", &list}};
    stage_plan plan = sample_plan();
    plan.output.columns = (schema){1, columns};
    plan.output.n_watched = 0;
    plan_assert_refused(&plan, cases[i].message);
    stage_input input = {.kind = STAGE_INPUT_BLOCKS, .columns = {1, columns}};
    plan = sample_plan();
    plan.n_pieces = 1;
    plan.n_inputs = 1;
    plan.inputs = &input;
    plan_assert_refused(&plan, cases[i].message);
  }
}

static void plan_with_a_wrong_field_is_refused(void **state) {
  (void)state;
  stage_plan plan = sample_plan();
  plan.session = (uuid){"not-a-uuid"};
  plan_assert_refused(&plan, "no UUID as the session: not-a-uuid");
  plan = sample_plan();
  plan.output.compression = (ipc_compression)2;
  plan_assert_refused(&plan, "a compression that is not known: 2");
  static const uint32_t watched[] = {0, 1, 2, 3, 4};
  plan = sample_plan();
  plan.output.n_watched = 1;
  plan.output.watched = &watched[4];
  plan_assert_refused(&plan, "an output watches column 4 of 4");
  plan.output.n_watched = 5;
  plan.output.watched = watched;
  plan_assert_refused(&plan, "an output of 4 columns watches 5");
  plan = sample_plan();
  plan.job.value = 0;
  plan_assert_refused(&plan, "found 0 as the job");
  plan = sample_plan();
  plan.stage.value = 0;
  plan_assert_refused(&plan, "found 0 as the stage");
  plan = sample_plan();
  plan.n_pieces = 0;
  plan_assert_refused(&plan, "no SQL");
  plan = sample_plan();
  plan.n_inputs = 2; /* a piece names input 2 */
  plan_assert_refused(&plan, "one of 2 inputs");
  plan = sample_plan();
  plan.output.partitions = 0;
  plan_assert_refused(&plan, "partitions outside 1 to 65536: 0");
  plan.output.partitions = 65537;
  plan_assert_refused(&plan, "partitions outside 1 to 65536: 65537");
  plan = sample_plan();
  plan.output.block_bytes = 0;
  plan_assert_refused(&plan, "block of 0 bytes");
  static const stage_setting unnamed = {"", "x"};
  plan = sample_plan();
  plan.n_settings = 1;
  plan.settings = &unnamed;
  plan_assert_refused(&plan, "a setting without a name");
  static const char *const relative[] = {"/ok", "data"};
  plan = sample_plan();
  plan.allowed_dirs = relative;
  plan_assert_refused(&plan, "an allowed directory is not absolute: data");
}

static void plan_with_a_wrong_input_is_refused(void **state) {
  (void)state;
  static const struct {
    stage_input input;
    const char *message;
  } cases[] = {
      {{.kind = STAGE_INPUT_FILES}, "needs a reader"},
      {{.kind = STAGE_INPUT_FILES, .reader = "r", .held_key = {SAMPLE_KEY}}, "no held key"},
      {{.kind = STAGE_INPUT_BLOCKS, .reader = "r"}, "neither files nor blocks"},
      {{.kind = STAGE_INPUT_BLOCKS, .held_key = {"7c9e6679-7425-40de-944b-e07fc1f90aeg"}},
       "no UUID as an input's held key"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    stage_plan plan = sample_plan();
    plan.n_pieces = 1;
    plan.n_inputs = 1;
    plan.inputs = &cases[i].input;
    plan_assert_refused(&plan, cases[i].message);
  }
}

static void spec_with_a_wrong_range_is_refused(void **state) {
  (void)state;
  static const char *const files[] = {"/a", "/b"};
  static const row_range ranges[] = {{0, 0}, {(uint64_t)INT64_MAX + 1, 1}, {2, INT64_MAX}};
  for (size_t i = 1; i < sizeof ranges / sizeof ranges[0]; i++) {
    row_range two[] = {ranges[0], ranges[i]};
    task_input input = {.n_files = 2, .files = files, .ranges = two};
    task_spec spec = {{1}, {1}, {1}, {1}, 1, &input}, out;
    buf bytes = {0};
    hf_error error = {0};
    arena *a = arena_new();
    assert_int_equal(task_spec_pack(&spec, &bytes, NULL), HF_OK);
    assert_int_equal(task_spec_unpack(bytes.data, bytes.length, a, &out, &error), HF_E_PROTOCOL);
    assert_non_null(strstr(error.message, "row range"));
    hf_error_reset(&error);
    buf_reset(&bytes);
    arena_free(a);
  }
}

static void spec_with_a_wrong_block_is_refused(void **state) {
  (void)state;
  static const block_ref good = {{SAMPLE_SESSION}, {1}, {1}, {1}, {1}, 0, 0, 0, 0, 0};
  block_ref cases[] = {good, good, good, good, good, good, good, good};
  cases[0].session = (uuid){""};
  cases[1].job.value = 0;
  cases[2].stage.value = 0;
  cases[3].task.value = 0;
  cases[4].attempt.value = 0;
  cases[5].partition_first = UINT32_MAX;
  cases[5].partition_count = 1;
  cases[6].partition_count = 65537;
  cases[7].share_first = 2;
  cases[7].share_count = 2;
  cases[7].share_of = 3;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    task_input input = {.n_blocks = 1, .blocks = &cases[i]};
    task_spec spec = {{1}, {1}, {1}, {1}, 1, &input}, out;
    buf bytes = {0};
    hf_error error = {0};
    arena *a = arena_new();
    assert_int_equal(task_spec_pack(&spec, &bytes, &error), HF_OK);
    assert_int_equal(task_spec_unpack(bytes.data, bytes.length, a, &out, &error), HF_E_PROTOCOL);
    assert_non_null(strstr(error.message, "of a block"));
    hf_error_reset(&error);
    buf_reset(&bytes);
    arena_free(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plan_with_a_type_of_wrong_shape_is_refused),
      cmocka_unit_test(plan_with_a_wrong_field_is_refused),
      cmocka_unit_test(plan_with_a_wrong_input_is_refused),
      cmocka_unit_test(spec_with_a_wrong_range_is_refused),
      cmocka_unit_test(spec_with_a_wrong_block_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

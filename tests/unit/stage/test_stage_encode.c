/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of every field, limits that packing finds, and lack of memory at every allocation. */
#include "sample.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void schema_assert_equal(const schema *got, const schema *expected) {
  assert_int_equal(got->n_columns, expected->n_columns);
  for (size_t i = 0; i < got->n_columns; i++) {
    assert_string_equal(got->columns[i].name, expected->columns[i].name);
    assert_true(data_type_equal(got->columns[i].type, expected->columns[i].type));
  }
}

static void text_assert_equal(const char *got, const char *expected) {
  assert_int_equal(got == NULL, expected == NULL);
  if (got != NULL) {
    assert_string_equal(got, expected);
  }
}

static void input_assert_equal(const stage_input *got, const stage_input *expected) {
  assert_int_equal(got->kind, expected->kind);
  text_assert_equal(got->reader, expected->reader);
  assert_true(got->rows == expected->rows);
  assert_int_equal(got->ordered, expected->ordered);
  assert_int_equal(got->verify, expected->verify);
  assert_string_equal(got->held_key.text, expected->held_key.text);
  schema_assert_equal(&got->columns, &expected->columns);
}

static void output_assert_equal(const stage_output *got, const stage_output *expected) {
  assert_int_equal(got->partitions, expected->partitions);
  assert_int_equal(got->ordered, expected->ordered);
  assert_int_equal(got->durable, expected->durable);
  assert_int_equal(got->held, expected->held);
  assert_int_equal(got->n_watched, expected->n_watched);
  for (size_t i = 0; i < got->n_watched; i++) {
    assert_int_equal(got->watched[i], expected->watched[i]);
  }
  assert_true(got->budget_bytes == expected->budget_bytes);
  assert_true(got->batch_bytes == expected->batch_bytes);
  assert_true(got->block_bytes == expected->block_bytes);
  assert_int_equal(got->compression, expected->compression);
  schema_assert_equal(&got->columns, &expected->columns);
}

static void plan_assert_equal(const stage_plan *got, const stage_plan *expected) {
  assert_string_equal(got->session.text, expected->session.text);
  assert_true(got->job.value == expected->job.value);
  assert_int_equal(got->stage.value, expected->stage.value);
  assert_int_equal(got->n_pieces, expected->n_pieces);
  for (size_t i = 0; i < got->n_pieces; i++) {
    text_assert_equal(got->pieces[i].text, expected->pieces[i].text);
    assert_int_equal(got->pieces[i].input, expected->pieces[i].input);
  }
  assert_int_equal(got->n_inputs, expected->n_inputs);
  for (size_t i = 0; i < got->n_inputs; i++) {
    input_assert_equal(&got->inputs[i], &expected->inputs[i]);
  }
  output_assert_equal(&got->output, &expected->output);
  assert_int_equal(got->n_settings, expected->n_settings);
  for (size_t i = 0; i < got->n_settings; i++) {
    assert_string_equal(got->settings[i].name, expected->settings[i].name);
    assert_string_equal(got->settings[i].value, expected->settings[i].value);
  }
  assert_int_equal(got->n_allowed_dirs, expected->n_allowed_dirs);
  for (size_t i = 0; i < got->n_allowed_dirs; i++) {
    assert_string_equal(got->allowed_dirs[i], expected->allowed_dirs[i]);
  }
}

static void block_assert_equal(const block_ref *got, const block_ref *expected) {
  assert_string_equal(got->session.text, expected->session.text);
  assert_true(got->job.value == expected->job.value);
  assert_int_equal(got->stage.value, expected->stage.value);
  assert_int_equal(got->task.value, expected->task.value);
  assert_int_equal(got->attempt.value, expected->attempt.value);
  assert_int_equal(got->partition_first, expected->partition_first);
  assert_int_equal(got->partition_count, expected->partition_count);
  assert_int_equal(got->share_first, expected->share_first);
  assert_int_equal(got->share_count, expected->share_count);
  assert_int_equal(got->share_of, expected->share_of);
}

static void spec_assert_equal(const task_spec *got, const task_spec *expected) {
  assert_true(got->job.value == expected->job.value);
  assert_int_equal(got->stage.value, expected->stage.value);
  assert_int_equal(got->task.value, expected->task.value);
  assert_int_equal(got->attempt.value, expected->attempt.value);
  assert_int_equal(got->n_inputs, expected->n_inputs);
  for (size_t i = 0; i < got->n_inputs; i++) {
    assert_int_equal(got->inputs[i].n_files, expected->inputs[i].n_files);
    for (size_t f = 0; f < got->inputs[i].n_files; f++) {
      assert_string_equal(got->inputs[i].files[f], expected->inputs[i].files[f]);
      if (expected->inputs[i].ranges != NULL) {
        assert_true(got->inputs[i].ranges[f].first == expected->inputs[i].ranges[f].first);
        assert_true(got->inputs[i].ranges[f].count == expected->inputs[i].ranges[f].count);
      }
    }
    assert_true((got->inputs[i].ranges == NULL) == (expected->inputs[i].ranges == NULL));
    assert_int_equal(got->inputs[i].n_blocks, expected->inputs[i].n_blocks);
    for (size_t b = 0; b < got->inputs[i].n_blocks; b++) {
      block_assert_equal(&got->inputs[i].blocks[b], &expected->inputs[i].blocks[b]);
    }
  }
}

static void plan_round_trip(const stage_plan *plan) {
  buf bytes = {0};
  hf_error error = {0};
  arena *a = arena_new();
  stage_plan got = {0};
  assert_int_equal(stage_plan_pack(plan, &bytes, &error), HF_OK);
  if (stage_plan_unpack(bytes.data, bytes.length, a, &got, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  buf_reset(&bytes); /* nothing of the bytes is borrowed */
  plan_assert_equal(&got, plan);
  arena_free(a);
}

static void plan_with_every_field_round_trips(void **state) {
  (void)state;
  stage_plan plan = sample_plan();
  plan_round_trip(&plan);
}

static void plan_with_the_least_round_trips(void **state) {
  (void)state;
  stage_piece piece = {"SELECT 1", 0};
  stage_plan plan = {.session = {SAMPLE_SESSION},
                     .job = {1},
                     .stage = {1},
                     .n_pieces = 1,
                     .pieces = &piece,
                     .output = {.partitions = 1, .budget_bytes = 1, .batch_bytes = 1, .block_bytes = 1}};
  plan_round_trip(&plan);
}

static void plan_with_each_simple_type_round_trips(void **state) {
  (void)state;
  for (int kind = 0; kind < TYPE_KIND_COUNT; kind++) {
    bool is_simple = kind != TYPE_DECIMAL && kind != TYPE_ENUM && kind < TYPE_LIST;
    data_type type = {.kind = (type_kind)kind};
    column columns[] = {{"c", &type}};
    stage_plan plan = sample_plan();
    plan.output.columns = (schema){is_simple ? 1 : 0, columns};
    plan.output.n_watched = 0;
    plan_round_trip(&plan);
  }
}

static void spec_with_every_field_round_trips(void **state) {
  (void)state;
  task_spec spec = sample_spec(), got = {0};
  buf bytes = {0};
  hf_error error = {0};
  arena *a = arena_new();
  buf_text(&bytes, "before"); /* packing appends */
  assert_int_equal(task_spec_pack(&spec, &bytes, &error), HF_OK);
  assert_memory_equal(bytes.data, "before", 6);
  assert_int_equal(task_spec_unpack(bytes.data + 6, bytes.length - 6, a, &got, &error), HF_OK);
  buf_reset(&bytes);
  spec_assert_equal(&got, &spec);
  arena_free(a);
}

/* A chain of `levels` lists around a BIGINT: levels + 1 types. */
static const data_type *list_chain(arena *a, unsigned levels) {
  const data_type *type = &sample_bigint;
  for (unsigned i = 0; i < levels; i++) {
    const data_type **children = arena_array(a, 1, sizeof(void *));
    data_type *list = arena_alloc(a, sizeof *list);
    children[0] = type;
    *list = (data_type){.kind = TYPE_LIST, .n_children = 1, .children = children};
    type = list;
  }
  return type;
}

static void plan_nested_a_thousand_deep_round_trips(void **state) {
  (void)state;
  arena *a = arena_new();
  column deep[] = {{"c", list_chain(a, 999)}};
  stage_plan plan = sample_plan();
  plan.output.columns = (schema){1, deep};
  plan.output.n_watched = 0;
  plan_round_trip(&plan);
  arena_free(a);
}

static void plan_nested_deeper_is_refused(void **state) {
  (void)state;
  arena *a = arena_new();
  column deep[] = {{"c", list_chain(a, 1000)}};
  stage_plan plan = sample_plan();
  plan.output.columns = (schema){1, deep};
  plan.output.n_watched = 0;
  buf bytes = {0};
  hf_error error = {0};
  assert_int_equal(stage_plan_pack(&plan, &bytes, &error), HF_E_LIMIT);
  assert_int_equal(bytes.length, 0);
  hf_error_reset(&error);
  buf_reset(&bytes);
  arena_free(a);
}

static void plan_larger_than_the_limit_is_refused(void **state) {
  (void)state;
  char *text = mem_alloc(STAGE_LARGEST_BYTES + 1);
  memset(text, 'x', STAGE_LARGEST_BYTES);
  text[STAGE_LARGEST_BYTES] = '\0';
  stage_piece piece = {text, 0};
  stage_plan plan = sample_plan();
  plan.n_pieces = 1;
  plan.pieces = &piece;
  buf bytes = {0};
  hf_error error = {0};
  assert_int_equal(stage_plan_pack(&plan, &bytes, &error), HF_E_LIMIT);
  assert_non_null(strstr(error.message, "larger than"));
  assert_int_equal(bytes.length, 0);
  hf_error_reset(&error);
  buf_reset(&bytes);
  mem_free(text);
}

static void spec_with_too_many_files_is_refused(void **state) {
  (void)state;
  size_t count = ((size_t)1 << 20) + 1;
  const char **files = mem_zalloc(count, sizeof *files);
  for (size_t i = 0; i < count; i++) {
    files[i] = "/f";
  }
  task_input input = {.n_files = count, .files = files};
  task_spec spec = {{1}, {1}, {1}, {1}, 1, &input};
  buf bytes = {0};
  hf_error error = {0};
  assert_int_equal(task_spec_pack(&spec, &bytes, &error), HF_E_LIMIT);
  hf_error_reset(&error);
  buf_reset(&bytes);
  mem_free(files);
}

static hf_status plan_pack_and_unpack(hf_error *error) {
  buf bytes = {0};
  arena *a = arena_new();
  stage_plan plan = sample_plan(), got = {0};
  hf_status status = a == NULL ? HF_E_OUT_OF_MEMORY : stage_plan_pack(&plan, &bytes, error);
  if (status == HF_OK) {
    status = stage_plan_unpack(bytes.data, bytes.length, a, &got, error);
  }
  buf_reset(&bytes);
  arena_free(a);
  return status;
}

static hf_status spec_pack_and_unpack(hf_error *error) {
  buf bytes = {0};
  arena *a = arena_new();
  task_spec spec = sample_spec(), got = {0};
  hf_status status = a == NULL ? HF_E_OUT_OF_MEMORY : task_spec_pack(&spec, &bytes, error);
  if (status == HF_OK) {
    status = task_spec_unpack(bytes.data, bytes.length, a, &got, error);
  }
  buf_reset(&bytes);
  arena_free(a);
  return status;
}

static void codec_under_any_failed_allocation_says_out_of_memory(void **state) {
  (void)state;
  hf_status (*const ways[])(hf_error *) = {plan_pack_and_unpack, spec_pack_and_unpack};
  for (size_t way = 0; way < 2; way++) {
    hf_status status = HF_E_OUT_OF_MEMORY;
    uint64_t n = 0;
    while (status != HF_OK) {
      hf_error error = {0};
      mem_fail_after(++n);
      status = ways[way](&error);
      mem_fail_after(0);
      assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
      hf_error_reset(&error);
    }
    assert_true(n > 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plan_with_every_field_round_trips),
      cmocka_unit_test(plan_with_the_least_round_trips),
      cmocka_unit_test(plan_with_each_simple_type_round_trips),
      cmocka_unit_test(spec_with_every_field_round_trips),
      cmocka_unit_test(plan_nested_a_thousand_deep_round_trips),
      cmocka_unit_test(plan_nested_deeper_is_refused),
      cmocka_unit_test(plan_larger_than_the_limit_is_refused),
      cmocka_unit_test(spec_with_too_many_files_is_refused),
      cmocka_unit_test(codec_under_any_failed_allocation_says_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

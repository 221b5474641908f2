/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged bytes: cut at every length, every byte changed, and hand-made malformed messages. */
#include "sample.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

typedef hf_status (*unpack_fn)(const void *bytes, size_t length, hf_error *error);

static hf_status plan_unpack(const void *bytes, size_t length, hf_error *error) {
  arena *a = arena_new();
  stage_plan plan;
  hf_status status = stage_plan_unpack(bytes, length, a, &plan, error);
  arena_free(a);
  return status;
}

static hf_status spec_unpack(const void *bytes, size_t length, hf_error *error) {
  arena *a = arena_new();
  task_spec spec;
  hf_status status = task_spec_unpack(bytes, length, a, &spec, error);
  arena_free(a);
  return status;
}

/* Unpacks a copy that is exactly as long, so that AddressSanitizer sees a read past its end. */
static hf_status try_unpack(unpack_fn unpack, const void *bytes, size_t length) {
  hf_error error = {0};
  char *copy = mem_alloc(length);
  memcpy(copy, bytes, length);
  hf_status status = unpack(copy, length, &error);
  mem_free(copy);
  assert_int_equal(status == HF_OK, error.message == NULL);
  hf_error_reset(&error);
  return status;
}

static void sample_pack(buf *plan, buf *spec) {
  stage_plan p = sample_plan();
  task_spec s = sample_spec();
  assert_int_equal(stage_plan_pack(&p, plan, NULL), HF_OK);
  assert_int_equal(task_spec_pack(&s, spec, NULL), HF_OK);
}

static void bytes_cut_at_any_length_are_refused(void **state) {
  (void)state;
  buf plan = {0}, spec = {0};
  sample_pack(&plan, &spec);
  size_t whole_messages = 0; /* a cut between the last, repeated fields leaves a shorter, valid message */
  for (size_t length = 0; length < plan.length; length++) {
    hf_status status = try_unpack(plan_unpack, plan.data, length);
    assert_true(status == HF_OK || status == HF_E_PROTOCOL);
    whole_messages += status == HF_OK;
  }
  assert_int_equal(whole_messages, 4); /* two settings, two directories */
  whole_messages = 0;
  for (size_t length = 0; length < spec.length; length++) {
    hf_status status = try_unpack(spec_unpack, spec.data, length);
    assert_true(status == HF_OK || status == HF_E_PROTOCOL);
    whole_messages += status == HF_OK;
  }
  assert_int_equal(whole_messages, 3); /* three inputs */
  buf_reset(&plan);
  buf_reset(&spec);
}

static void flip_each_byte(unpack_fn unpack, buf *bytes) {
  static const unsigned char masks[] = {0x01, 0x02, 0x08, 0x10, 0x40, 0x80, 0xff};
  for (size_t at = 0; at < bytes->length; at++) {
    char before = bytes->data[at];
    for (size_t m = 0; m < sizeof masks; m++) {
      bytes->data[at] = (char)((unsigned char)before ^ masks[m]);
      hf_status status = try_unpack(unpack, bytes->data, bytes->length);
      assert_true(status == HF_OK || status == HF_E_PROTOCOL || status == HF_E_LIMIT);
    }
    bytes->data[at] = before;
  }
}

static void bytes_changed_anywhere_do_no_harm(void **state) {
  (void)state;
  buf plan = {0}, spec = {0};
  sample_pack(&plan, &spec);
  flip_each_byte(plan_unpack, &plan);
  flip_each_byte(spec_unpack, &spec);
  buf_reset(&plan);
  buf_reset(&spec);
}

/* Bytes of a TaskSpec: tag = field << 3 | wire type. */
#define HEAD "\x08\x03\x10\x01\x18\x01\x20\x01\x28\x01"
#define CASE(bytes, message) \
  { bytes, sizeof(bytes) - 1, message }

static void spec_malformed_by_hand_is_refused_with_its_reason(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *message;
  } cases[] = {
      CASE("", "empty"),
      CASE("\x10\x01\x08\x01", "does not start with its version"),
      CASE("\x08\x01", "expected version 3, found 1"),
      CASE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "expected version 3"),
      CASE("\x08\x03\x10\x01\x18\x01\x20\x01", "a field is missing: TaskSpec.attempt"),
      CASE(HEAD "\x28\x01", "a field comes twice: TaskSpec.attempt"),
      CASE(HEAD "\x38\x01", "an unknown field at byte 10"),
      CASE(HEAD "\x00\x01", "an unknown field"),
      CASE(HEAD "\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", "an unknown field"),
      CASE(HEAD "\x33\x34", "wrong wire type: TaskSpec.inputs"),
      CASE(HEAD "\x35\x00\x00\x00\x00", "wrong wire type"),
      CASE(HEAD "\x32", "cut off"),
      CASE(HEAD "\x32\x05\x0a\x01", "longer than what is left: TaskSpec.inputs"),
      CASE(HEAD "\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "longer than what is left"),
      CASE(HEAD "\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "cut off or too long"),
      CASE(HEAD "\x32\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "cut off or too long"),
      CASE(HEAD "\x32\x05\x0a\x03/\0x", "a text holds a NUL byte: TaskInput.files"),
      CASE("\x08\x03\x10\x01\x18\xff\xff\xff\xff\x1f\x20\x01\x28\x01", "more than 32 bits: TaskSpec.stage"),
      CASE("\x08\x03\x10\x00\x18\x01\x20\x01\x28\x01", "found 0 as the job"),
      CASE("\x08\x03\x10\x01\x18\x01\x20\x01\x28\x00", "found 0 as the attempt"),
      CASE(HEAD "\x32\x09\x12\x07\x0a\x00\x10\x01\x18\x01\x20", "cut off"),
      CASE(HEAD "\x32\x0c\x12\x0a\x0a\x00\x10\x01\x18\x01\x20\x01\x28\x01",
           "no UUID as the session of a block"),
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hf_error error = {0};
    assert_int_equal(spec_unpack(cases[i].bytes, cases[i].length, &error), HF_E_PROTOCOL);
    if (strstr(error.message, cases[i].message) == NULL) {
      fail_msg("case %zu: %s", i, error.message);
    }
    assert_non_null(strstr(error.message, "a task spec is not valid: "));
    hf_error_reset(&error);
  }
}

/* Wraps `inner` as a length-prefixed field. */
static void wrap(buf *inner, unsigned char tag) {
  buf outer = {0};
  buf_char(&outer, (char)tag);
  size_t length = inner->length;
  for (; length >= 0x80; length >>= 7) {
    buf_char(&outer, (char)(unsigned char)(length | 0x80));
  }
  buf_char(&outer, (char)length);
  buf_append(&outer, inner->data, inner->length);
  buf_reset(inner);
  *inner = outer;
}

static void plan_nested_far_too_deep_is_refused_before_it_is_unpacked(void **state) {
  (void)state;
  buf bytes = {0};
  buf_append(&bytes, "\x08\x00", 2);
  for (int level = 0; level < 20000; level++) {
    wrap(&bytes, 0x2a); /* DataType.children */
  }
  wrap(&bytes, 0x12); /* Column.type */
  wrap(&bytes, 0x0a); /* Schema.columns */
  wrap(&bytes, 0x12); /* StageInput.columns */
  wrap(&bytes, 0x32); /* StagePlan.inputs */
  buf plan = {0};
  buf_append(&plan, "\x08\x03", 2);
  buf_append(&plan, bytes.data, bytes.length);
  hf_error error = {0};
  assert_int_equal(plan_unpack(plan.data, plan.length, &error), HF_E_LIMIT);
  assert_non_null(strstr(error.message, "nest deeper than 1000 levels"));
  hf_error_reset(&error);
  buf_reset(&plan);
  buf_reset(&bytes);
}

static void plan_with_both_members_of_a_oneof_is_refused(void **state) {
  (void)state;
  static const char bytes[] = "\x08\x03\x2a\x05\x0a\x01x\x10\x00";
  hf_error error = {0};
  assert_int_equal(plan_unpack(bytes, sizeof bytes - 1, &error), HF_E_PROTOCOL);
  assert_non_null(strstr(error.message, "a field comes twice: SqlPiece.input"));
  hf_error_reset(&error);
}

static void spec_of_very_many_parts_is_refused_before_it_is_unpacked(void **state) {
  (void)state;
  size_t count = ((size_t)1 << 20) + 1;
  buf bytes = {0};
  buf_append(&bytes, HEAD, sizeof HEAD - 1);
  for (size_t i = 0; i < count; i++) {
    buf_append(&bytes, "\x32\x00", 2);
  }
  hf_error error = {0};
  mem_fail_after(1); /* nothing is allocated for it */
  hf_status status = task_spec_unpack(bytes.data, bytes.length, NULL, NULL, &error);
  mem_fail_after(0);
  assert_int_equal(status, HF_E_LIMIT);
  hf_error_reset(&error);
  buf_reset(&bytes);
}

/* Numbers are parts too: what is watched of an output. */
static void plan_of_very_many_numbers_is_refused_before_it_is_unpacked(void **state) {
  (void)state;
  buf bytes = {0};
  for (size_t i = 0; i <= (size_t)1 << 20; i++) {
    buf_append(&bytes, "\x50\x00", 2); /* StageOutput.watched */
  }
  wrap(&bytes, 0x3a); /* StagePlan.output */
  buf plan = {0};
  buf_append(&plan, "\x08\x03", 2);
  buf_append(&plan, bytes.data, bytes.length);
  hf_error error = {0};
  mem_fail_after(1);
  hf_status status = stage_plan_unpack(plan.data, plan.length, NULL, NULL, &error);
  mem_fail_after(0);
  assert_int_equal(status, HF_E_LIMIT);
  hf_error_reset(&error);
  buf_reset(&plan);
  buf_reset(&bytes);
}

static void bytes_longer_than_the_limit_are_refused(void **state) {
  (void)state;
  hf_error error = {0};
  assert_int_equal(task_spec_unpack("", STAGE_LARGEST_BYTES + 1, NULL, NULL, &error), HF_E_LIMIT);
  hf_error_reset(&error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_cut_at_any_length_are_refused),
      cmocka_unit_test(bytes_changed_anywhere_do_no_harm),
      cmocka_unit_test(spec_malformed_by_hand_is_refused_with_its_reason),
      cmocka_unit_test(plan_nested_far_too_deep_is_refused_before_it_is_unpacked),
      cmocka_unit_test(plan_with_both_members_of_a_oneof_is_refused),
      cmocka_unit_test(spec_of_very_many_parts_is_refused_before_it_is_unpacked),
      cmocka_unit_test(plan_of_very_many_numbers_is_refused_before_it_is_unpacked),
      cmocka_unit_test(bytes_longer_than_the_limit_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

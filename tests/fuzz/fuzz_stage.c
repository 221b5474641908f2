/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer entry: any bytes as a stage plan and as a task spec; what decodes
 * must encode and decode again. Build with clang -fsanitize=fuzzer,address.
 */
#include "stage/stage.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void round_trip(const stage_plan *plan, const task_spec *spec) {
  buf again = {0};
  arena *a = arena_new();
  stage_plan plan_out;
  task_spec spec_out;
  hf_status packed = plan != NULL ? stage_plan_pack(plan, &again, NULL) : task_spec_pack(spec, &again, NULL);
  hf_status unpacked = packed != HF_OK ? packed
                       : plan != NULL  ? stage_plan_unpack(again.data, again.length, a, &plan_out, NULL)
                                       : task_spec_unpack(again.data, again.length, a, &spec_out, NULL);
  if (unpacked != HF_OK) {
    abort();
  }
  buf_reset(&again);
  arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  arena *a = arena_new();
  stage_plan plan;
  task_spec spec;
  if (stage_plan_unpack(bytes, length, a, &plan, NULL) == HF_OK) {
    round_trip(&plan, NULL);
  }
  if (task_spec_unpack(bytes, length, a, &spec, NULL) == HF_OK) {
    round_trip(NULL, &spec);
  }
  arena_free(a);
  return 0;
}

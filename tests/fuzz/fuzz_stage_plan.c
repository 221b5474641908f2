/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as a stage plan; what decodes must encode and decode again, to the
 * same bytes.
 */
#include "fuzz/fuzz.h"

#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>

static void round_trip(const stage_plan *plan, arena *a) {
  stage_plan back;
  buf once = {0}, twice = {0};
  if (stage_plan_pack(plan, &once, NULL) != HF_OK ||
      stage_plan_unpack(once.data, once.length, a, &back, NULL) != HF_OK ||
      stage_plan_pack(&back, &twice, NULL) != HF_OK || once.length != twice.length ||
      (once.length > 0 && memcmp(once.data, twice.data, once.length) != 0)) {
    abort();
  }
  buf_reset(&once);
  buf_reset(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  stage_plan plan;
  arena *a = arena_new();
  if (stage_plan_unpack(bytes, length, a, &plan, NULL) == HF_OK) {
    round_trip(&plan, a);
  }
  arena_free(a);
  return 0;
}

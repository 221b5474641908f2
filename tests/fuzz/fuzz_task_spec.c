/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as a task spec; what decodes must encode and decode again, to the
 * same bytes.
 */
#include "fuzz/fuzz.h"

#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>

static void round_trip(const task_spec *spec, arena *a) {
  task_spec back;
  buf once = {0}, twice = {0};
  if (task_spec_pack(spec, &once, NULL) != HF_OK ||
      task_spec_unpack(once.data, once.length, a, &back, NULL) != HF_OK ||
      task_spec_pack(&back, &twice, NULL) != HF_OK || once.length != twice.length ||
      (once.length > 0 && memcmp(once.data, twice.data, once.length) != 0)) {
    abort();
  }
  buf_reset(&once);
  buf_reset(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  task_spec spec;
  arena *a = arena_new();
  if (task_spec_unpack(bytes, length, a, &spec, NULL) == HF_OK) {
    round_trip(&spec, a);
  }
  arena_free(a);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as a relation; what decodes must encode and decode again, to one
 * with the same fingerprint. SQL text in it is parsed by the engine.
 */
#include "fuzz/fuzz.h"
#include "wire/wire.h"

#include "base/buf.h"
#include "relation/relation.h"

#include <stdlib.h>
#include <string.h>

static const relation *no_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return NULL;
}

static const char *no_name_at(void *context, size_t i) {
  (void)context;
  (void)i;
  return NULL;
}

static engine *planner;

static void close_planner(void) {
  engine_close(planner);
}

static void open_planner(void) {
  engine_options options = {.kind = ENGINE_PLANNER};
  if (planner == NULL && (engine_open(&options, &planner, NULL) != HF_OK || atexit(close_planner) != 0)) {
    abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  const relation_names names = {.lookup = no_name, .name_at = no_name_at};
  relation *first = NULL, *second = NULL;
  buf packed = {0};
  char before[33], after[33];
  open_planner();
  if (relation_unpack(bytes, length, planner, &names, &first, NULL) != HF_OK) {
    return 0;
  }
  if (relation_pack(first, &packed, NULL) != HF_OK ||
      relation_unpack(packed.data, packed.length, planner, &names, &second, NULL) != HF_OK) {
    abort();
  }
  relation_fingerprint(first, before);
  relation_fingerprint(second, after);
  if (strcmp(before, after) != 0) {
    abort();
  }
  buf_reset(&packed);
  relation_release(first);
  relation_release(second);
  return 0;
}

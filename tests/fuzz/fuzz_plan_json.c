/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as the answer of json_serialize_plan. They are a
 * tree or a refusal; a tree is SQL or a refusal.
 */
#include "fuzz/fuzz.h"

#include "sql/write.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  const plan_write_options options = {0};
  arena *a = arena_new();
  const tree_node *root = NULL;
  tree_refusal refusal;
  plan_written written;
  if (plan_tree_read((const char *)bytes, length, a, &root, &refusal, NULL) != HF_OK ||
      (root == NULL) != (refusal.code != TREE_REFUSED_NONE)) {
    abort();
  }
  if (root != NULL && (plan_write(root, &options, a, &written, &refusal, NULL) != HF_OK ||
                       (written.n_pieces == 0) != (refusal.code != TREE_REFUSED_NONE))) {
    abort();
  }
  arena_free(a);
  return 0;
}

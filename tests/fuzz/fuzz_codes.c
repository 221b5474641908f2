/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as a dictionary message of each column and a batch of codes
 * behind them, as blocks of held results have them. The values that codes stand
 * for are looked at.
 */
#include "fuzz/fuzz.h"
#include "fuzz/shape.h"

#include "arrow/ipc.h"
#include "support/made_arrow.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS_LOOKED_AT = 4096 };

static const uint8_t code_bytes[FUZZ_CODES_COLUMNS] = FUZZ_CODES_BYTES;
static const ipc_read_options checked = {.validate = true};

/* Reads the dictionary of a column into *root, and what codes point into, into *values. */
static bool read_dictionary(struct ArrowSchema *field, uint8_t bytes_of_a_code, ipc_cursor *cursor,
                            struct ArrowArray *root, struct ArrowArray *values) {
  struct ArrowSchema one = {.format = "+s", .n_children = 1, .children = &field};
  ipc_decoder *decoder = NULL;
  if (ipc_decoder_new(&one, NULL, 0, &decoder, NULL) != HF_OK) {
    abort();
  }
  hf_status status = ipc_read_dictionary(decoder, cursor, &checked, root, NULL);
  ipc_decoder_free(decoder);
  if (status != HF_OK) {
    return false;
  }
  const struct ArrowArray *piece = root->children[0];
  if (dictionary_merge(field, &piece, 1, bytes_of_a_code, values, NULL) != HF_OK) {
    root->release(root);
    return false;
  }
  return true;
}

static void read_batch(struct ArrowSchema *schema, ipc_cursor *cursor, struct ArrowArray *values) {
  ipc_decoder *decoder = NULL;
  struct ArrowArray rows;
  buf text = {0};
  if (ipc_decoder_new_coded(schema, code_bytes, NULL, 0, &decoder, NULL) != HF_OK) {
    abort();
  }
  hf_status status = ipc_read_batch(decoder, cursor, &checked, &rows, NULL);
  ipc_decoder_free(decoder);
  if (status != HF_OK) {
    return;
  }
  for (size_t i = 0; status == HF_OK && i < FUZZ_CODES_COLUMNS; i++) {
    rows.children[i]->dictionary = &values[i];
    status = dictionary_unfold(schema->children[i], rows.children[i], code_bytes[i], NULL);
  }
  if (status == HF_OK && rows.length <= MOST_ROWS_LOOKED_AT) {
    made_rows_text(schema, &rows, &text);
  }
  rows.release(&rows);
  buf_reset(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  struct ArrowSchema schema;
  struct ArrowArray roots[FUZZ_CODES_COLUMNS], values[FUZZ_CODES_COLUMNS];
  uint8_t *aligned = aligned_alloc(64, (length / 64 + 1) * 64);
  size_t n = 0;
  if (length > 0) {
    memcpy(aligned, bytes, length);
  }
  ipc_cursor cursor = {aligned, length};
  made_schema(FUZZ_CODES_SHAPE, &schema);
  while (n < FUZZ_CODES_COLUMNS &&
         read_dictionary(schema.children[n], code_bytes[n], &cursor, &roots[n], &values[n])) {
    n++;
  }
  if (n == FUZZ_CODES_COLUMNS) {
    read_batch(&schema, &cursor, values);
  }
  for (size_t i = 0; i < n; i++) {
    values[i].release(&values[i]);
    roots[i].release(&roots[i]);
  }
  schema.release(&schema);
  free(aligned);
  return 0;
}

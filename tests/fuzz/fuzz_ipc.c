/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target: any bytes as a schema message and as a batch of a fixed schema.
 * What is read with full checks has its values looked at, also through a window.
 */
#include "fuzz/fuzz.h"
#include "fuzz/shape.h"

#include "arrow/ipc.h"

#include "arrow/type.h"
#include "support/made_arrow.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS_LOOKED_AT = 4096 };

static void look_at(const struct ArrowSchema *shape, const struct ArrowArray *rows) {
  slicer *s;
  struct ArrowArray window;
  buf text = {0};
  if (rows->length == 0 || rows->length > MOST_ROWS_LOOKED_AT ||
      slicer_new(shape, NULL, 0, &s, NULL) != HF_OK) {
    return;
  }
  made_rows_text(shape, rows, &text);
  slicer_cut(s, rows, rows->length / 2, rows->length - rows->length / 2, &window);
  made_rows_text(shape, &window, &text);
  slicer_free(s);
  buf_reset(&text);
}

static void read_with(ipc_decoder *decoder, const struct ArrowSchema *shape, ipc_cursor cursor,
                      bool validate) {
  struct ArrowArray rows;
  ipc_read_options options = {.validate = validate};
  if (ipc_read_batch(decoder, &cursor, &options, &rows, NULL) == HF_OK) {
    if (validate) {
      look_at(shape, &rows);
    }
    rows.release(&rows);
  }
}

static void read_batch(const uint8_t *bytes, size_t length) {
  struct ArrowSchema shape;
  ipc_decoder *decoder;
  made_schema(FUZZ_IPC_SHAPE, &shape);
  if (ipc_decoder_new(&shape, NULL, 0, &decoder, NULL) == HF_OK) {
    read_with(decoder, &shape, (ipc_cursor){bytes, length}, false);
    read_with(decoder, &shape, (ipc_cursor){bytes, length}, true);
    ipc_decoder_free(decoder);
  }
  shape.release(&shape);
}

static void read_schema(const uint8_t *bytes, size_t length) {
  struct ArrowSchema shape;
  struct ArrowSchema block;
  ipc_cursor cursor = {bytes, length};
  if (ipc_read_schema(&cursor, &shape, NULL) != HF_OK) {
    return;
  }
  if (arrow_block_schema(&shape, &block, NULL) == HF_OK) {
    arena *a = arena_new();
    const data_type *type;
    buf sql = {0};
    for (int64_t i = 0; i < block.n_children; i++) {
      if (data_type_from_arrow(block.children[i], a, &type, NULL) == HF_OK) {
        data_type_to_sql(type, &sql);
      }
    }
    buf_reset(&sql);
    arena_free(a);
    block.release(&block);
  }
  shape.release(&shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  uint8_t *aligned = aligned_alloc(64, (length / 64 + 1) * 64);
  if (length > 0) {
    memcpy(aligned, bytes, length);
  }
  read_batch(aligned, length);
  read_schema(aligned, length);
  free(aligned);
  return 0;
}

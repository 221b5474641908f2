/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One buffer of a compressed body, as the Arrow IPC format has it with the codec
 * LZ4_FRAME: its length as an int64 (-1: the bytes follow as they are), then an LZ4
 * frame. Internal to src/arrow.
 * Source: https://arrow.apache.org/docs/format/Columnar.html#compression
 * Thread: one at a time per object.
 */
#ifndef HF_ARROW_IPC_LZ4_H
#define HF_ARROW_IPC_LZ4_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
  LZ4_PREFIX_BYTES = 8,
  LZ4_LEFT_ALONE = -1,
  LZ4_MOST_RATIO = 255 /* no LZ4 frame holds more bytes than so many for each of its own */
};

/* Makes a frame of the bytes; *frame is NULL when that would not save an eighth, else owned by the caller. */
hf_status lz4_pack(const void *bytes, size_t length, void **frame, size_t *frame_bytes, hf_error *error);

/* Memory of a batch into which its buffers were unpacked: a list, freed as one. */
typedef struct lz4_memory lz4_memory;
void lz4_memory_free(lz4_memory *first);

/* What is needed again for each frame. */
typedef struct lz4_reader lz4_reader;
hf_status lz4_reader_new(lz4_reader **out, hf_error *error);
/* Accepts NULL. */
void lz4_reader_free(lz4_reader *r);
/* A frame, and how many bytes it must give: more than 0, bounded by the caller. */
typedef struct lz4_frame {
  const uint8_t *bytes;
  size_t length, content;
} lz4_frame;

/* Unpacks a frame. The memory goes to *owner. Errors: BLOCK_CORRUPT, OUT_OF_MEMORY. */
hf_status lz4_unpack(lz4_reader *r, const lz4_frame *frame, lz4_memory **owner, const void **out,
                     hf_error *error);

#endif

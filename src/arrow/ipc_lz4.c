/* SPDX-License-Identifier: Apache-2.0 */
/* Packing and unpacking single buffers with LZ4. Which buffers there are is known in ipc_write.c and ipc_read.c. */
#include "arrow/ipc_lz4.h"

#include "base/mem.h"

#include <lz4frame.h>
#include <stdbool.h>
#include <string.h>

enum {
  ALIGNMENT = 64,
  LEAST_BYTES = 128,      /* below, a frame's own bytes are what it saves */
  SLACK_BYTES = 64 << 10, /* a block of a frame: with as much room liblz4 unpacks without a copy */
  SLACK_FROM = 16 << 10   /* shorter buffers are copied quickly enough */
};

struct lz4_memory {
  lz4_memory *next;
};

struct lz4_reader {
  LZ4F_dctx *context;
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to compress or to read Arrow data");
}

static bool is_no_memory(size_t result) {
  return strcmp(LZ4F_getErrorName(result), "ERROR_allocation_failed") == 0;
}

/* ------------------------------------------------------------------- packing */

hf_status lz4_pack(const void *bytes, size_t length, void **frame, size_t *frame_bytes, hf_error *error) {
  *frame = NULL;
  if (length < LEAST_BYTES) {
    return HF_OK;
  }
  size_t most = LZ4F_compressFrameBound(length, NULL);
  void *made = mem_alloc(most);
  if (made == NULL) {
    return no_memory(error);
  }
  size_t packed = LZ4F_compressFrame(made, most, bytes, length, NULL);
  if (LZ4F_isError(packed)) {
    hf_status status = is_no_memory(packed) ? no_memory(error)
                                            : error_set(error, HF_E_INTERNAL, "LZ4 cannot compress: %s",
                                                        LZ4F_getErrorName(packed));
    mem_free(made);
    return status;
  }
  if (packed > length - length / 8) {
    mem_free(made);
    return HF_OK;
  }
  void *fitting = mem_realloc(made, packed);
  *frame = fitting == NULL ? made : fitting;
  *frame_bytes = packed;
  return HF_OK;
}

/* ----------------------------------------------------------------- unpacking */

void lz4_memory_free(lz4_memory *first) {
  while (first != NULL) {
    lz4_memory *next = first->next;
    mem_free(first);
    first = next;
  }
}

hf_status lz4_reader_new(lz4_reader **out, hf_error *error) {
  lz4_reader *r = mem_zalloc(1, sizeof *r);
  if (r == NULL || LZ4F_isError(LZ4F_createDecompressionContext(&r->context, LZ4F_VERSION))) {
    mem_free(r);
    return no_memory(error);
  }
  *out = r;
  return HF_OK;
}

void lz4_reader_free(lz4_reader *r) {
  if (r != NULL) {
    LZ4F_freeDecompressionContext(r->context);
    mem_free(r);
  }
}

static hf_status corrupt(hf_error *error, const char *what, size_t found, size_t expected) {
  return error_set(error, HF_E_BLOCK_CORRUPT, "an Arrow batch is damaged: %s: %zu, expected %zu", what, found,
                   expected);
}

/* Unpacks into `room` bytes: all of the frame, and nothing behind it. */
static hf_status unpack_into(lz4_reader *r, const lz4_frame *frame, uint8_t *to, size_t room,
                             hf_error *error) {
  static const LZ4F_decompressOptions_t options = {.stableDst = 1};
  size_t taken = 0;
  size_t made = 0;
  size_t wanted = 1; /* bytes that liblz4 expects next; 0: the frame has ended */
  while (wanted != 0) {
    size_t source = frame->length - taken;
    size_t target = room - made;
    wanted = LZ4F_decompress(r->context, to + made, &target, frame->bytes + taken, &source, &options);
    if (LZ4F_isError(wanted)) {
      return is_no_memory(wanted) ? no_memory(error)
                                  : error_set(error, HF_E_BLOCK_CORRUPT, "an Arrow batch is damaged: LZ4: %s",
                                              LZ4F_getErrorName(wanted));
    }
    taken += source;
    made += target;
    if (wanted != 0 && source == 0 && target == 0) {
      return corrupt(error, "a frame is cut, or longer than it says", made, frame->content);
    }
  }
  if (made != frame->content) {
    return corrupt(error, "bytes of a frame", made, frame->content);
  }
  return taken == frame->length ? HF_OK : corrupt(error, "length of a frame", taken, frame->length);
}

hf_status lz4_unpack(lz4_reader *r, const lz4_frame *frame, lz4_memory **owner, const void **out,
                     hf_error *error) {
  size_t least = (frame->content + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t room = least + (frame->content < SLACK_FROM ? 0 : SLACK_BYTES);
  lz4_memory *memory = mem_alloc_aligned(ALIGNMENT, ALIGNMENT + room);
  if (memory == NULL) {
    return no_memory(error);
  }
  uint8_t *bytes = (uint8_t *)memory + ALIGNMENT;
  hf_status status = unpack_into(r, frame, bytes, room, error);
  if (status != HF_OK) {
    LZ4F_resetDecompressionContext(r->context);
    mem_free(memory);
    return status;
  }
  memset(bytes + frame->content, 0, least - frame->content);
  memory->next = *owner;
  *owner = memory;
  *out = bytes;
  return HF_OK;
}

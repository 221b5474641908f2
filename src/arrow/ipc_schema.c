/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema messages, read and written by nanoarrow. What it reads is run through the
 * reader of layouts before it is believed.
 */
#include "arrow/ipc.h"

#include "arrow/batch_internal.h"

#include <errno.h>
#include <string.h>

#include <nanoarrow/nanoarrow_ipc.h>

static hf_status failed(int code, const struct ArrowError *detail, hf_error *error) {
  if (code == ENOMEM) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read an Arrow schema");
  }
  return error_set(error, HF_E_BLOCK_CORRUPT, "an Arrow schema cannot be read: %s", detail->message);
}

static int decode(struct ArrowIpcDecoder *decoder, struct ArrowBufferView view, struct ArrowSchema *out,
                  struct ArrowError *detail) {
  NANOARROW_RETURN_NOT_OK(ArrowIpcDecoderVerifyHeader(decoder, view, detail));
  if (decoder->message_type != NANOARROW_IPC_MESSAGE_TYPE_SCHEMA) {
    ArrowErrorSet(detail, "the message is of type %d, not a schema", (int)decoder->message_type);
    return EINVAL;
  }
  NANOARROW_RETURN_NOT_OK(ArrowIpcDecoderDecodeHeader(decoder, view, detail));
  if (decoder->endianness != NANOARROW_IPC_ENDIANNESS_LITTLE) {
    ArrowErrorSet(detail, "it is not little endian");
    return EINVAL;
  }
  return ArrowIpcDecoderDecodeSchema(decoder, out, detail);
}

/* Refuses what our own reader would. */
static hf_status check(const struct ArrowSchema *made, hf_error *error) {
  arena *memory = arena_new();
  if (memory == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read an Arrow schema");
  }
  layout l;
  hf_status status = layout_of_schema(made, memory, &l, error);
  arena_free(memory);
  return status;
}

hf_status ipc_read_schema(ipc_cursor *from, struct ArrowSchema *out, hf_error *error) {
  struct ArrowIpcDecoder decoder;
  struct ArrowError detail = {{0}};
  struct ArrowSchema made = {0};
  struct ArrowBufferView view;
  int32_t header_bytes = 0;
  view.data.data = from->bytes;
  view.size_bytes = from->left > INT32_MAX ? INT32_MAX : (int64_t)from->left;
  if (view.size_bytes >= 8) {
    memcpy(&header_bytes, (const uint8_t *)from->bytes + 4, sizeof header_bytes);
  }
  if (header_bytes <= 0 || header_bytes > view.size_bytes - 8) {
    ArrowErrorSet(&detail, "its header has %d bytes of %lld", (int)header_bytes, (long long)view.size_bytes);
    return failed(EINVAL, &detail, error);
  }
  int code = ArrowIpcDecoderInit(&decoder);
  if (code != NANOARROW_OK) {
    return failed(code, &detail, error);
  }
  code = decode(&decoder, view, &made, &detail);
  size_t used = (size_t)header_bytes + 8;
  ArrowIpcDecoderReset(&decoder);
  hf_status status = code == NANOARROW_OK ? check(&made, error) : failed(code, &detail, error);
  if (status != HF_OK) {
    if (made.release != NULL) {
      made.release(&made);
    }
    return status;
  }
  from->bytes = (const uint8_t *)from->bytes + used;
  from->left -= used;
  *out = made;
  return HF_OK;
}

hf_status ipc_write_schema(const struct ArrowSchema *block_schema, buf *out, hf_error *error) {
  struct ArrowIpcEncoder encoder;
  struct ArrowError detail = {{0}};
  if (ArrowIpcEncoderInit(&encoder) != NANOARROW_OK) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  }
  struct ArrowBuffer header;
  ArrowBufferInit(&header);
  hf_status status = HF_OK;
  int code = ArrowIpcEncoderEncodeSchema(&encoder, block_schema, &detail);
  if (code == NANOARROW_OK) {
    code = ArrowIpcEncoderFinalizeBuffer(&encoder, 0, &header);
  }
  if (code == ENOMEM) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  } else if (code != NANOARROW_OK) {
    status = error_set(error, HF_E_UNSUPPORTED, "an Arrow schema cannot be written: %s", detail.message);
  } else {
    status = ipc_append_header(header.data, (size_t)header.size_bytes, out, error);
  }
  ArrowBufferReset(&header);
  ArrowIpcEncoderReset(&encoder);
  return status;
}

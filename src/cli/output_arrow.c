/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as an Arrow IPC stream on standard output, a batch at a time.
 * Thread: the main thread.
 */
#include "output.h"

#include "arrow/ipc.h"

#include <string.h>

static hf_status stream_error(struct ArrowArrayStream *stream, int code, hf_error *error) {
  const char *text = stream->get_last_error(stream);
  return error_set_errno(error, code, HF_E_IO, "cannot read the result: %s",
                         text != NULL ? text : "no details");
}

/* Moves what was encoded to the output. */
static hf_status pass_on(output *o, buf *message, hf_error *error) {
  if (message->failed) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an Arrow message");
  }
  output_bytes(o, message->data, message->length);
  message->length = 0;
  return o->error_number == 0 ? HF_OK : error_set(error, HF_E_IO, "cannot write the result");
}

static hf_status write_batch(output *o, batch_builder *builder, const struct ArrowArray *rows, buf *message,
                             hf_error *error) {
  uint64_t written = 0;
  batch_builder_clear(builder, SIZE_MAX);
  HF_TRY(batch_builder_append(builder, rows, 0, rows->length, error));
  HF_TRY(ipc_write_batch(builder, message, -1, "standard output", &written, error));
  return pass_on(o, message, error);
}

static hf_status write_batches(output *o, struct ArrowArrayStream *stream, batch_builder *builder,
                               uint64_t *rows, hf_error *error) {
  buf message = {0};
  hf_status status = HF_OK;
  bool more = true;
  while (status == HF_OK && more) {
    struct ArrowArray batch;
    memset(&batch, 0, sizeof batch);
    int code = stream->get_next(stream, &batch);
    more = code == 0 && batch.release != NULL;
    if (code != 0) {
      status = stream_error(stream, code, error);
    } else if (more) {
      *rows += (uint64_t)batch.length;
      status = write_batch(o, builder, &batch, &message, error);
      batch.release(&batch);
    }
  }
  if (status == HF_OK) {
    ipc_write_end(&message);
    status = pass_on(o, &message, error);
  }
  buf_reset(&message);
  return status;
}

hf_status output_arrow(output *o, struct ArrowArrayStream *stream, uint64_t *rows, hf_error *error) {
  struct ArrowSchema head;
  batch_builder *builder = NULL;
  buf message = {0};
  *rows = 0;
  memset(&head, 0, sizeof head);
  int code = stream->get_schema(stream, &head);
  if (code != 0) {
    return stream_error(stream, code, error);
  }
  hf_status status = ipc_write_schema(&head, &message, error);
  if (status == HF_OK) {
    status = pass_on(o, &message, error);
  }
  if (status == HF_OK) {
    status = batch_builder_new(&head, &builder, error);
  }
  if (status == HF_OK) {
    status = write_batches(o, stream, builder, rows, error);
  }
  batch_builder_free(builder);
  buf_reset(&message);
  head.release(&head);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard output as a buffered descriptor, and the formats that need little
 * else: CSV, plain lines and an Arrow IPC stream.
 * Thread: the main thread.
 */
#include "output.h"

#include "arrow/ipc.h"
#include "command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A pipe that can be written to takes this much without waiting (PIPE_BUF). */
enum { FLUSH_BYTES = 64 << 10, STEP_BYTES = 4096 };

static void write_all(output *o, const char *bytes, size_t length) {
  while (length > 0 && o->error_number == 0) {
    if (o->interruptible && !interrupt_wait_writable(o->fd)) {
      o->error_number = EINTR;
      return;
    }
    ssize_t written = write(o->fd, bytes, o->interruptible && length > STEP_BYTES ? STEP_BYTES : length);
    if (written < 0 && errno != EINTR) {
      o->error_number = errno;
    }
    if (written > 0) {
      bytes += written;
      length -= (size_t)written;
    }
  }
}

bool output_flush(output *o) {
  if (o->pending.failed && o->error_number == 0) {
    o->error_number = ENOMEM;
  }
  if (o->pending.length > 0) {
    write_all(o, o->pending.data, o->pending.length);
    o->pending.length = 0;
  }
  return o->error_number == 0;
}

void output_bytes(output *o, const void *bytes, size_t length) {
  if (length >= FLUSH_BYTES) {
    output_flush(o);
    write_all(o, bytes, length);
    return;
  }
  buf_append(&o->pending, bytes, length);
  if (o->pending.length >= FLUSH_BYTES) {
    output_flush(o);
  }
}

void output_text(output *o, const char *text) {
  output_bytes(o, text, strlen(text));
}

void output_restart(output *o) {
  o->pending.length = 0;
  o->error_number = 0;
}

void output_reset(output *o) {
  buf_reset(&o->pending);
}

bool type_is_number(type_kind kind) {
  return (kind >= TYPE_TINYINT && kind <= TYPE_BIGNUM);
}

/* -------------------------------------------------------------------- CSV */

static void csv_field(output *o, const char *text, size_t length) {
  bool quoted = length == 0;
  for (size_t i = 0; i < length && !quoted; i++) {
    quoted = text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
  }
  if (!quoted) {
    output_bytes(o, text, length);
    return;
  }
  output_text(o, "\"");
  for (size_t i = 0; i < length; i++) {
    output_bytes(o, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
  }
  output_text(o, "\"");
}

static bool csv_head(result_writer *w) {
  for (size_t i = 0; i < w->columns.n_columns; i++) {
    const char *name = w->columns.columns[i].name;
    output_text(w->out, i > 0 ? "," : "");
    csv_field(w->out, name, strlen(name));
  }
  output_text(w->out, "\n");
  return w->out->error_number == 0;
}

static bool csv_rows(result_writer *w, const char *const *const *cells, const uint32_t *const *lengths,
                     size_t n_rows) {
  for (size_t row = 0; row < n_rows; row++) {
    for (size_t i = 0; i < w->columns.n_columns; i++) {
      output_text(w->out, i > 0 ? "," : "");
      if (cells[i][row] != NULL) {
        csv_field(w->out, cells[i][row], lengths[i][row]);
      }
    }
    output_text(w->out, "\n");
  }
  return w->out->error_number == 0;
}

static void no_finish(result_writer *w, uint64_t result_rows) {
  (void)w;
  (void)result_rows;
}

const writer_ops writer_csv = {"csv", csv_head, csv_rows, no_finish};

/* ------------------------------------------------------------------ lines */

static bool lines_head(result_writer *w) {
  return w->columns.n_columns > 0;
}

static bool lines_rows(result_writer *w, const char *const *const *cells, const uint32_t *const *lengths,
                       size_t n_rows) {
  for (size_t row = 0; row < n_rows; row++) {
    const char *text = cells[0][row];
    size_t length = text != NULL ? lengths[0][row] : 0;
    output_bytes(w->out, text != NULL ? text : "", length);
    if (length == 0 || text[length - 1] != '\n') {
      output_text(w->out, "\n");
    }
  }
  return w->out->error_number == 0;
}

const writer_ops writer_lines = {"lines", lines_head, lines_rows, no_finish};

/* ------------------------------------------------------------------- Arrow */

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

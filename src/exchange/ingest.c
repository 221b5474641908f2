/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client data: an Arrow stream becomes an attempt. What comes from outside is
 * checked in full before a row of it is copied.
 * Thread: that of the caller.
 */
#include "exchange/sink_internal.h"

#include <errno.h>
#include <string.h>

static hf_status stream_failed(struct ArrowArrayStream *stream, int number, const char *what,
                               hf_error *error) {
  if (number == ENOMEM) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for %s of the stream", what);
  }
  const char *text = stream->get_last_error == NULL ? NULL : stream->get_last_error(stream);
  return error_set(error, HF_E_INVALID_ARGUMENT, "the stream cannot give %s: %s", what,
                   text == NULL ? strerror(number) : text);
}

/* The columns of a stream's schema. */
static hf_status columns_of(const struct ArrowSchema *incoming, arena *a, schema *out, hf_error *error) {
  if (incoming->format == NULL || strcmp(incoming->format, "+s") != 0 ||
      (incoming->n_children > 0 && incoming->children == NULL)) {
    return error_set(error, HF_E_UNSUPPORTED,
                     "the root of the stream's schema is not a struct of columns: format %s",
                     incoming->format == NULL ? "(none)" : incoming->format);
  }
  size_t n = incoming->n_children < 0 ? 0 : (size_t)incoming->n_children;
  column *columns = arena_array(a, n, sizeof *columns);
  if (columns == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a stream");
  }
  for (size_t i = 0; i < n; i++) {
    const struct ArrowSchema *field = incoming->children[i];
    columns[i].name = arena_strdup(a, field->name == NULL ? "" : field->name);
    if (columns[i].name == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a stream");
    }
    hf_status status = data_type_from_arrow(field, a, &columns[i].type, error);
    if (status != HF_OK) {
      error_wrap(error, "column %zu, \"%s\"", i + 1, columns[i].name);
      return status;
    }
  }
  *out = (schema){.n_columns = n, .columns = columns};
  return HF_OK;
}

static hf_status append_batches(struct ArrowArrayStream *stream, const struct ArrowSchema *incoming,
                                sink_state *state, hf_error *error) {
  for (;;) {
    struct ArrowArray batch;
    memset(&batch, 0, sizeof batch);
    int number = stream->get_next(stream, &batch);
    if (number != 0) {
      return stream_failed(stream, number, "a batch", error);
    }
    if (batch.release == NULL) {
      return HF_OK;
    }
    hf_status status = arrow_validate(incoming, &batch, error);
    if (status == HF_OK) {
      status = sink_state_append(state, &batch, NULL, error);
    }
    batch.release(&batch);
    HF_TRY(status);
  }
}

static hf_status write_rows(struct ArrowArrayStream *stream, const struct ArrowSchema *incoming,
                            block_sink *sink, hf_error *error) {
  sink_state *state = NULL;
  HF_TRY(sink_state_open(sink, incoming, BATCH_OF_CLIENT, &state, error));
  hf_status status = append_batches(stream, incoming, state, error);
  if (status == HF_OK) {
    status = sink_state_close(state, error);
  }
  sink_state_discard(state);
  return status;
}

static hf_status write_attempt(struct ArrowArrayStream *stream, const struct ArrowSchema *incoming,
                               const block_sink_options *options, arena *a, block_index *out,
                               hf_error *error) {
  schema columns;
  HF_TRY(columns_of(incoming, a, &columns, error));
  block_sink_options own = *options;
  own.columns = &columns;
  own.partitions = 1;
  own.ordered = true;
  own.n_watched = 0; /* what a client calls a DATE or a TIME is of any width */
  block_sink *sink = NULL;
  HF_TRY(block_sink_new(&own, &sink, error));
  hf_status status = write_rows(stream, incoming, sink, error);
  if (status == HF_OK) {
    status = block_sink_commit(sink, a, out, error);
  }
  block_sink_free(sink);
  return status;
}

hf_status block_write_stream(struct ArrowArrayStream *stream, const block_sink_options *options, arena *a,
                             block_index *out, hf_error *error) {
  struct ArrowSchema incoming;
  memset(&incoming, 0, sizeof incoming);
  int number = stream->get_schema(stream, &incoming);
  hf_status status = number != 0 ? stream_failed(stream, number, "its schema", error)
                                 : write_attempt(stream, &incoming, options, a, out, error);
  if (number == 0 && incoming.release != NULL) {
    incoming.release(&incoming);
  }
  stream->release(stream);
  return status;
}

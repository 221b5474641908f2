/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client data: the rows of an Arrow stream, written as one attempt into the work
 * directory, where tasks read them like any blocks. Its job number lies above
 * all of the scheduler's, so that the executor finds it by ids:
 * {work_dir}/{session}/{number}/1/1-1.
 * Thread: any.
 */
#include "session/session_internal.h"

#include "base/file.h"

#include <inttypes.h>

/* The first number of client data; the scheduler counts its jobs from 1. */
#define CLIENT_DATA_FIRST JOBS_END

const char *client_data_dir(const session *s, uint64_t number, arena *a) {
  return arena_printf(a, "%s/%s/%" PRIu64, session_work_dir(s), s->id.text, CLIENT_DATA_FIRST + number);
}

block_ref client_data_ref(const uuid *owner, uint64_t number) {
  return (block_ref){
      .session = *owner, .job = {CLIENT_DATA_FIRST + number}, .stage = {1}, .task = {1}, .attempt = {1}};
}

void client_data_note(session *s, uint64_t number) {
  pthread_mutex_lock(&s->lock);
  s->n_data = number >= s->n_data ? number + 1 : s->n_data;
  pthread_mutex_unlock(&s->lock);
}

void client_data_delete(session *s, uint64_t number) {
  arena *a = arena_new();
  const char *dir = a == NULL ? NULL : client_data_dir(s, number, a);
  if (dir != NULL) {
    file_remove_tree(dir, NULL);
  }
  arena_free(a);
}

static uint64_t next_number(session *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t n = s->n_data++;
  pthread_mutex_unlock(&s->lock);
  return n;
}

/* SQL has no way to write an empty name: such a column is called v0, v1 … by its place, as DuckDB's Arrow scan does. */
static hf_status name_columns(const schema *from, arena *a, schema *out, hf_error *error) {
  if (from->n_columns == 0) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the stream has no columns");
  }
  column *columns = arena_array(a, from->n_columns, sizeof *columns);
  for (size_t i = 0; columns != NULL && i < from->n_columns; i++) {
    columns[i] = from->columns[i];
    if (columns[i].name[0] == '\0') {
      columns[i].name = arena_printf(a, "v%zu", i);
    }
    columns = columns[i].name == NULL ? NULL : columns;
  }
  *out = (schema){.n_columns = from->n_columns, .columns = columns};
  return columns == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a stream")
                         : HF_OK;
}

/* Writes the stream, which it takes, below `dir`. */
static hf_status write_stream(session *s, struct ArrowArrayStream *stream, const char *dir, arena *a,
                              relation **out, hf_error *error) {
  job_settings settings;
  block_sink_options options = {.dir = arena_printf(a, "%s/1/1-1", dir), .partitions = 1, .ordered = true};
  hf_status status = options.dir == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a path")
                                         : settings_for_job(s, a, &settings, error);
  if (status != HF_OK) {
    stream->release(stream);
    return status;
  }
  options.budget_bytes = settings.sink_budget_bytes;
  options.batch_bytes = settings.batch_bytes;
  options.block_bytes = settings.block_bytes;
  block_index index;
  schema columns;
  HF_TRY(block_write_stream(stream, &options, a, &index, error));
  HF_TRY(name_columns(&index.columns, a, &columns, error));
  uuid id = uuid_new();
  return relation_from_local(&id, options.dir, &columns, index.rows, out, error);
}

static hf_status from_stream_entered(session *s, struct ArrowArrayStream *stream, relation **out,
                                     hf_error *error) {
  arena *a = arena_new();
  uint64_t number = next_number(s);
  const char *dir = a == NULL ? NULL : client_data_dir(s, number, a);
  if (dir == NULL) {
    arena_free(a);
    stream->release(stream);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to take a stream");
  }
  hf_status status = write_stream(s, stream, dir, a, out, error);
  if (status != HF_OK) {
    file_remove_tree(dir, NULL);
  } else {
    durable_data(s, *out, number);
  }
  arena_free(a);
  return status;
}

hf_status session_from_stream(session *s, struct ArrowArrayStream *stream, relation **out, hf_error *error) {
  hf_status status = session_enter(s, error);
  if (status != HF_OK) {
    stream->release(stream);
    return status;
  }
  return session_leave(s, from_stream_entered(s, stream, out, error));
}

void client_data_remove(session *s) {
  arena *a = arena_new();
  for (uint64_t n = 0; a != NULL && n < s->n_data; n++) {
    client_data_delete(s, n);
  }
  const char *session_dir = a == NULL ? NULL : arena_printf(a, "%s/%s", session_work_dir(s), s->id.text);
  if (session_dir != NULL) {
    file_remove_empty_dir(session_dir);
  }
  arena_free(a);
}

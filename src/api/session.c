/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session functions of holdfast.h: they check their arguments and pass on to
 * src/session. Those on DataFrames are in dataframe.c.
 * Thread: any.
 */
#include "api/dataframe.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

const char *hf_version(void) {
  return HOLDFAST_VERSION " (DuckDB v1.5.5)";
}

void hf_text_free(char *text) {
  mem_free(text);
}

hf_status argument_is_null(const char *name, hf_error *error) {
  return error_set(error, HF_E_INVALID_ARGUMENT, "an argument is NULL: %s", name);
}

/* --------------------------------------------------------------- open, close */

static hf_status open_handle(const hf_setting *settings, size_t n_settings, session *peer, hf_session **out,
                             hf_error *error) {
  hf_session *handle = mem_zalloc(1, sizeof *handle);
  if (handle == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a session");
  }
  hf_status status = session_open(settings, n_settings, peer, &handle->inner, error);
  if (status != HF_OK) {
    mem_free(handle);
    return status;
  }
  *out = handle;
  return HF_OK;
}

hf_status hf_session_open(const char *uri, const hf_setting *settings, size_t n_settings, hf_session **out,
                          hf_error *error) {
  if (out == NULL) {
    return argument_is_null("out", error);
  }
  if (settings == NULL && n_settings > 0) {
    return argument_is_null("settings", error);
  }
  if (uri != NULL && strcasecmp(uri, "local") != 0) {
    error_set(error, HF_E_UNSUPPORTED, "no engine can be reached by this uri: %s", uri);
    error_hint(error, "open \"local\": an engine inside this process");
    return HF_E_UNSUPPORTED;
  }
  return open_handle(settings, n_settings, NULL, out, error);
}

hf_status hf_session_new(hf_session *peer, hf_session **out, hf_error *error) {
  if (peer == NULL || out == NULL) {
    return argument_is_null(peer == NULL ? "peer" : "out", error);
  }
  return open_handle(NULL, 0, peer->inner, out, error);
}

void hf_session_close(hf_session *handle) {
  if (handle == NULL) {
    return;
  }
  session_close(handle->inner);
  mem_free(handle);
}

/* ----------------------------------------------------------------- settings */

hf_status hf_session_set(hf_session *handle, const char *key, const char *value, hf_error *error) {
  if (handle == NULL || key == NULL || value == NULL) {
    return argument_is_null(handle == NULL ? "session" : key == NULL ? "key" : "value", error);
  }
  return session_set(handle->inner, key, value, error);
}

hf_status hf_session_get(hf_session *handle, const char *key, char **out, hf_error *error) {
  if (handle == NULL || key == NULL || out == NULL) {
    return argument_is_null(handle == NULL ? "session" : key == NULL ? "key" : "out", error);
  }
  return session_get(handle->inner, key, out, error);
}

/* --------------------------------------------------------------- DataFrames */

hf_status hf_session_sql(hf_session *handle, const char *sql, hf_df **out, hf_error *error) {
  if (handle == NULL || sql == NULL || out == NULL) {
    return argument_is_null(handle == NULL ? "session" : sql == NULL ? "sql" : "out", error);
  }
  relation *rows = NULL;
  HF_TRY(session_sql(handle->inner, sql, NULL, NULL, &rows, error));
  return dataframe_new(handle->inner, rows, out, error);
}

hf_status hf_session_read(hf_session *handle, const char *format, const char *const *paths, size_t n_paths,
                          const hf_setting *options, size_t n_options, hf_df **out, hf_error *error) {
  if (handle == NULL || format == NULL || out == NULL) {
    return argument_is_null(handle == NULL ? "session" : format == NULL ? "format" : "out", error);
  }
  if ((paths == NULL && n_paths > 0) || (options == NULL && n_options > 0)) {
    return argument_is_null(paths == NULL ? "paths" : "options", error);
  }
  session_files files = {
      .format = format, .paths = paths, .n_paths = n_paths, .options = options, .n_options = n_options};
  relation *rows = NULL;
  HF_TRY(session_read(handle->inner, &files, &rows, error));
  return dataframe_new(handle->inner, rows, out, error);
}

hf_status hf_session_from_stream(hf_session *handle, struct ArrowArrayStream *stream, hf_df **out,
                                 hf_error *error) {
  if (stream == NULL || stream->release == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the stream is NULL or released");
  }
  if (handle == NULL || out == NULL) {
    stream->release(stream);
    return argument_is_null(handle == NULL ? "session" : "out", error);
  }
  relation *rows = NULL;
  HF_TRY(session_from_stream(handle->inner, stream, &rows, error));
  return dataframe_new(handle->inner, rows, out, error);
}

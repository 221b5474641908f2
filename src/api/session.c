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

/* Parameters are named as in holdfast.h, where a session is called so; `session` is also the type behind the handle. */
#pragma GCC diagnostic ignored "-Wshadow"

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

void hf_session_close(hf_session *session) {
  if (session == NULL) {
    return;
  }
  session_close(session->inner);
  mem_free(session);
}

/* ----------------------------------------------------------------- settings */

hf_status hf_session_set(hf_session *session, const char *key, const char *value, hf_error *error) {
  if (session == NULL || key == NULL || value == NULL) {
    return argument_is_null(session == NULL ? "session" : key == NULL ? "key" : "value", error);
  }
  return session_set(session->inner, key, value, error);
}

hf_status hf_session_get(hf_session *session, const char *key, char **out, hf_error *error) {
  if (session == NULL || key == NULL || out == NULL) {
    return argument_is_null(session == NULL ? "session" : key == NULL ? "key" : "out", error);
  }
  return session_get(session->inner, key, out, error);
}

/* --------------------------------------------------------------- DataFrames */

/* A DataFrame in the making. Another thread may close the session, and free its handle, as soon as the operation has
 * left it: the reference lasts until there is a DataFrame with one of its own. */
typedef struct making {
  session *session;
  relation *rows;
} making;

static making making_begin(const hf_session *handle) {
  return (making){.session = session_retain(handle->inner)};
}

static hf_status making_end(making *m, hf_status status, hf_df **out, hf_error *error) {
  if (status == HF_OK) {
    status = dataframe_new(m->session, m->rows, out, error);
  }
  session_release(m->session);
  return status;
}

hf_status hf_session_sql(hf_session *session, const char *sql, hf_df **out, hf_error *error) {
  if (session == NULL || sql == NULL || out == NULL) {
    return argument_is_null(session == NULL ? "session" : sql == NULL ? "sql" : "out", error);
  }
  making m = making_begin(session);
  return making_end(&m, session_sql(m.session, sql, NULL, NULL, &m.rows, error), out, error);
}

hf_status hf_session_read(hf_session *session, const char *format, const char *const *paths, size_t n_paths,
                          const hf_setting *options, size_t n_options, hf_df **out, hf_error *error) {
  if (session == NULL || format == NULL || out == NULL) {
    return argument_is_null(session == NULL ? "session" : format == NULL ? "format" : "out", error);
  }
  if ((paths == NULL && n_paths > 0) || (options == NULL && n_options > 0)) {
    return argument_is_null(paths == NULL ? "paths" : "options", error);
  }
  session_files files = {
      .format = format, .paths = paths, .n_paths = n_paths, .options = options, .n_options = n_options};
  making m = making_begin(session);
  return making_end(&m, session_read(m.session, &files, &m.rows, error), out, error);
}

hf_status hf_session_from_stream(hf_session *session, struct ArrowArrayStream *stream, hf_df **out,
                                 hf_error *error) {
  if (stream == NULL || stream->release == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the stream is NULL or released");
  }
  if (session == NULL || out == NULL) {
    stream->release(stream);
    return argument_is_null(session == NULL ? "session" : "out", error);
  }
  making m = making_begin(session);
  return making_end(&m, session_from_stream(m.session, stream, &m.rows, error), out, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DataFrame functions of holdfast.h: handles, actions, holding. A handle
 * keeps its session's memory alive, so that it may be used and freed after the
 * session was closed. What commands without an answer give has no relation: its
 * result is the empty stream.
 * Thread: any.
 */
#include "api/dataframe.h"

#include "base/mem.h"

#include <string.h>

/* ------------------------------------------------------------------ handles */

hf_status dataframe_new(session *s, const relation *rows, hf_df **out, hf_error *error) {
  hf_df *df = mem_zalloc(1, sizeof *df);
  if (df == NULL) {
    if (rows != NULL) {
      relation_release(rows);
    }
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a DataFrame");
  }
  df->session = session_retain(s);
  df->rows = rows;
  *out = df;
  return HF_OK;
}

void hf_df_free(hf_df *df) {
  if (df == NULL) {
    return;
  }
  if (df->rows != NULL) {
    relation_release(df->rows);
  }
  session_release(df->session);
  mem_free(df);
}

static hf_status check(const hf_df *df, const void *out, hf_error *error) {
  return df == NULL || out == NULL ? argument_is_null(df == NULL ? "df" : "out", error) : HF_OK;
}

hf_status dataframe_check_rows(const hf_df *df, hf_error *error) {
  if (df->rows == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the DataFrame is of a command that has no answer");
  }
  return HF_OK;
}

/* ---------------------------------------------------------------- properties */

hf_status hf_df_create_view(hf_df *df, const char *name, bool replace, hf_error *error) {
  if (df == NULL || name == NULL) {
    return argument_is_null(df == NULL ? "df" : "name", error);
  }
  HF_TRY(dataframe_check_rows(df, error));
  return session_create_view(df->session, df->rows, name, replace, error);
}

hf_status hf_df_schema(hf_df *df, struct ArrowSchema *out, hf_error *error) {
  HF_TRY(check(df, out, error));
  if (df->rows == NULL) {
    empty_schema(out);
    return HF_OK;
  }
  return session_schema(df->session, df->rows, out, error);
}

hf_status hf_df_explain(hf_df *df, char **out, hf_error *error) {
  HF_TRY(check(df, out, error));
  HF_TRY(dataframe_check_rows(df, error));
  return session_explain(df->session, df->rows, out, error);
}

/* ----------------------------------------------------------------- actions */

job_watch dataframe_watch(const hf_action_options *options) {
  if (options == NULL) {
    return (job_watch){0};
  }
  if (options->breakdown != NULL) {
    *options->breakdown = NULL;
  }
  return (job_watch){.progress = options->progress,
                     .progress_context = options->progress_context,
                     .cancel = options->cancel,
                     .profile = options->breakdown};
}

hf_profile *dataframe_profile(const hf_action_options *options) {
  if (options == NULL || options->profile == NULL) {
    return NULL;
  }
  memset(options->profile, 0, sizeof *options->profile);
  return options->profile;
}

hf_status hf_df_collect(hf_df *df, const hf_action_options *options, struct ArrowArrayStream *out,
                        hf_error *error) {
  HF_TRY(check(df, out, error));
  hf_profile *profile = dataframe_profile(options);
  job_watch watch = dataframe_watch(options);
  if (df->rows == NULL) {
    empty_stream(out);
    return HF_OK;
  }
  return session_collect(df->session, df->rows, &watch, profile, out, error);
}

hf_status hf_df_count(hf_df *df, const hf_action_options *options, uint64_t *out, hf_error *error) {
  HF_TRY(check(df, out, error));
  hf_profile *profile = dataframe_profile(options);
  job_watch watch = dataframe_watch(options);
  if (df->rows == NULL) {
    *out = 0;
    return HF_OK;
  }
  return session_count(df->session, df->rows, &watch, profile, out, error);
}

hf_status hf_df_explain_analyze(hf_df *df, const hf_action_options *options, char **out, hf_error *error) {
  HF_TRY(check(df, out, error));
  hf_profile *profile = dataframe_profile(options);
  job_watch watch = dataframe_watch(options);
  HF_TRY(dataframe_check_rows(df, error));
  return session_explain_analyze(df->session, df->rows, &watch, profile, out, error);
}

/* ----------------------------------------------------------------- holding */

hf_status hf_df_persist(hf_df *df, const char *level, hf_df **out, hf_error *error) {
  HF_TRY(check(df, out, error));
  HF_TRY(dataframe_check_rows(df, error));
  relation *node = NULL;
  HF_TRY(session_cache(df->session, df->rows, level, NULL, &node, error));
  return dataframe_new(df->session, node, out, error);
}

hf_status hf_df_cache(hf_df *df, hf_df **out, hf_error *error) {
  return hf_df_persist(df, NULL, out, error);
}

hf_status hf_df_unpersist(hf_df *df, bool blocking, hf_error *error) {
  HF_TRY(check(df, df, error));
  return df->rows == NULL ? HF_OK : session_unpersist(df->session, df->rows, blocking, error);
}

hf_status hf_df_storage(hf_df *df, hf_storage *out, hf_error *error) {
  HF_TRY(check(df, out, error));
  if (df->rows == NULL) {
    memset(out, 0, sizeof *out);
    return HF_OK;
  }
  return session_storage(df->session, df->rows, out, error);
}

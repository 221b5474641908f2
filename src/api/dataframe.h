/* SPDX-License-Identifier: Apache-2.0 */
/* What handles are made of. Thread: any. */
#ifndef HF_API_DATAFRAME_H
#define HF_API_DATAFRAME_H

#include "session/session.h"

struct hf_session {
  session *inner;
};

struct hf_df {
  session *session;     /* a reference */
  const relation *rows; /* a reference; NULL: the answer of a command that has none */
};

/* Makes a handle in the session; takes `rows`, also on failure. Errors: OUT_OF_MEMORY. */
hf_status dataframe_new(session *s, const relation *rows, hf_df **out, hf_error *error);
/* For what only makes sense of rows. Errors: INVALID_ARGUMENT of a command's DataFrame that has none. */
hf_status dataframe_check_rows(const hf_df *df, hf_error *error);
/* What an action's options (NULL: none) mean. */
job_watch dataframe_watch(const hf_action_options *options);
/* Where the action's profile goes, or NULL: zeroed, for an action that fails before it runs. */
hf_profile *dataframe_profile(const hf_action_options *options);
/* Sets INVALID_ARGUMENT: a parameter that must not be NULL is. */
hf_status argument_is_null(const char *name, hf_error *error);

/* A stream without columns and rows. */
void empty_stream(struct ArrowArrayStream *out);
/* The schema of that stream. */
void empty_schema(struct ArrowSchema *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_df_write_*: one function for all formats.
 * Thread: any.
 */
#include "api/dataframe.h"

#include <string.h>

static hf_status write_file(hf_df *df, const session_target *target, const hf_action_options *action,
                            hf_error *error) {
  if (df == NULL || target->path == NULL) {
    return argument_is_null(df == NULL ? "df" : "path", error);
  }
  if (target->options == NULL && target->n_options > 0) {
    return argument_is_null("format_options", error);
  }
  HF_TRY(dataframe_check_rows(df, error));
  job_watch watch = dataframe_watch(action);
  session_write_call call = {
      .relation = df->rows, .target = target, .watch = &watch, .profile = dataframe_profile(action)};
  return session_write(df->session, &call, error);
}

static session_target target_of(const char *format, const char *path, const hf_write_options *options) {
  static const hf_write_options nothing = {0};
  const hf_write_options *given = options == NULL ? &nothing : options;
  return (session_target){.format = format,
                          .path = path,
                          .overwrite = given->overwrite,
                          .options = given->format_options,
                          .n_options = given->n_format_options};
}

hf_status hf_df_write_parquet(hf_df *df, const char *path, const hf_write_options *options,
                              const hf_action_options *action, hf_error *error) {
  session_target target = target_of("parquet", path, options);
  return write_file(df, &target, action, error);
}

hf_status hf_df_write_csv(hf_df *df, const char *path, const hf_write_options *options,
                          const hf_action_options *action, hf_error *error) {
  session_target target = target_of("csv", path, options);
  return write_file(df, &target, action, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as a DataFrame: format, paths and reader options of a program become a
 * source request, resolved at once so that its errors come here.
 * Thread: any.
 */
#include "session/session_internal.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

static const struct {
  const char *name;
  source_format format;
} FORMATS[] = {{"parquet", SOURCE_PARQUET}, {"csv", SOURCE_CSV}, {"json", SOURCE_JSON}};

static hf_status find_format(const char *name, source_format *out, hf_error *error) {
  for (size_t i = 0; name != NULL && i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
    if (strcasecmp(FORMATS[i].name, name) == 0) {
      *out = FORMATS[i].format;
      return HF_OK;
    }
  }
  error_set(error, HF_E_INVALID_ARGUMENT, "no reader has this format: %s", name == NULL ? "NULL" : name);
  error_hint(error, "use parquet, csv or json");
  return HF_E_INVALID_ARGUMENT;
}

static hf_status options_of(const session_files *files, source_format format, arena *a, source_option **out,
                            hf_error *error) {
  source_option *options = arena_array(a, files->n_options, sizeof *options);
  for (size_t i = 0; options != NULL && i < files->n_options; i++) {
    const hf_setting *given = &files->options[i];
    if (given->key == NULL || given->value == NULL) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a reader option needs a name and a value");
    }
    if (!utf8_is_right(given->key) || !utf8_is_right(given->value)) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a reader option is not UTF-8: number %zu", i + 1);
    }
    options[i].name = given->key;
    HF_TRY(source_option_from_text(format, given->key, given->value, a, &options[i].value_sql, error));
  }
  if (options == NULL && files->n_options > 0) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for reader options");
  }
  *out = options;
  return HF_OK;
}

/* --------------------------------------------------------------------- read */

static hf_status check_paths(const session_files *files, hf_error *error) {
  if (files->n_paths == 0) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "no path is given");
  }
  for (size_t i = 0; i < files->n_paths; i++) {
    if (files->paths[i] == NULL || files->paths[i][0] == '\0') {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a path is empty");
    }
    if (!utf8_is_right(files->paths[i])) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a path is not UTF-8: number %zu", i + 1);
    }
  }
  return HF_OK;
}

/* A DataFrame reads what its paths meant when it was made. */
static hf_status absolute_paths(const session_files *files, arena *a, const char *const **out,
                                hf_error *error) {
  const char **paths = arena_array(a, files->n_paths, sizeof *paths);
  for (size_t i = 0; paths != NULL && i < files->n_paths; i++) {
    paths[i] = source_path_absolute(files->paths[i], a);
    paths = paths[i] == NULL ? NULL : paths;
  }
  *out = paths;
  return paths == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for paths") : HF_OK;
}

static hf_status read_entered(session *s, const session_files *files, arena *a, relation **out,
                              hf_error *error) {
  source_request request = {
      .n_paths = files->n_paths, .n_options = files->n_options, .written = files->paths};
  source_option *options = NULL;
  HF_TRY(find_format(files->format, &request.format, error));
  HF_TRY(check_paths(files, error));
  HF_TRY(absolute_paths(files, a, &request.paths, error));
  HF_TRY(options_of(files, request.format, a, &options, error));
  request.options = options;
  source *resolved = NULL;
  HF_TRY(source_resolve(scheduler_sources(runtime_scheduler(s->runtime)), &request, &resolved, error));
  source_release(resolved);
  return relation_from_read(&request, out, error);
}

hf_status session_read(session *s, const session_files *files, relation **out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read files")
                               : read_entered(s, files, a, out, error);
  arena_free(a);
  return session_leave(s, status);
}

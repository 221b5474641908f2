/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From SQL text of a query to a relation with its names bound.
 * Thread: any; parsing runs on a planning thread with a planner's engine while the caller waits.
 */
#include "session/session_internal.h"

#include <strings.h>

hf_status session_with_planner(session *s, hf_status (*use)(void *context, engine *planner, hf_error *error),
                               void *context, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for settings");
  }
  job_settings settings;
  hf_status status = settings_for_job(s, a, &settings, error);
  if (status == HF_OK) {
    status = scheduler_with_planner(runtime_scheduler(s->runtime), &settings, use, context, error);
  }
  arena_free(a);
  return status;
}

/* ------------------------------------------------------------------ parsing */

typedef struct parse_call {
  const char *sql;
  relation_names names;
  relation *parsed;
} parse_call;

static hf_status parse(void *context, engine *planner, hf_error *error) {
  parse_call *call = context;
  return relation_from_sql(planner, call->sql, &call->names, &call->parsed, error);
}

hf_status query_relation(session *s, const char *sql, relation **out, hf_error *error) {
  name_list *list = names_snapshot(&s->names);
  parse_call call = {.sql = sql, .names = name_list_for_sql(list)};
  hf_status status = session_with_planner(s, parse, &call, error);
  name_list_release(list);
  if (status == HF_OK) {
    *out = call.parsed;
  }
  return status;
}

static const relation *input_lookup(void *context, const char *name) {
  return strcasecmp(name, "q") == 0 ? *(const relation **)context : NULL;
}

static const char *input_name_at(void *context, size_t i) {
  (void)context;
  return i == 0 ? "q" : NULL;
}

hf_status query_over(session *s, const char *sql, const relation *input, relation **out, hf_error *error) {
  parse_call call = {.sql = sql,
                     .names = {.lookup = input_lookup, .name_at = input_name_at, .context = &input}};
  HF_TRY(session_with_planner(s, parse, &call, error));
  *out = call.parsed;
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps over relations of a session: the columns of what is below are asked for
 * once, then the step is built and checked.
 * Thread: any; building runs on a planning thread while the caller waits.
 */
#include "session/session_internal.h"

/* Describes, and hands the columns to `keep`. */
static hf_status describe(session *s, const relation *r,
                          hf_status (*keep)(const relation *r, const schema *columns, hf_error *error),
                          hf_error *error) {
  arena *a = arena_new();
  job_request request = {.session = s->id, .relation = r};
  schema columns;
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to build a relation")
                               : settings_for_job(s, a, &request.settings, error);
  if (status == HF_OK) {
    status = scheduler_describe(runtime_scheduler(s->runtime), &request, a, &columns, error);
  }
  if (status == HF_OK) {
    status = keep(r, &columns, error);
  }
  arena_free(a);
  return status;
}

/* Columns of the relation, which stay as long as it does. Cost: planning, the first time that a relation is not built. */
static hf_status columns_of(session *s, const relation *r, const schema **out, hf_error *error) {
  *out = relation_columns(r);
  if (*out != NULL) {
    return HF_OK;
  }
  hf_status status = describe(s, r, relation_remember_columns, error);
  *out = relation_columns(r);
  return status;
}

typedef struct build_call {
  build_step step;
  relation_names names;
  relation *built;
} build_call;

static hf_status build(void *context, engine *planner, hf_error *error) {
  build_call *call = context;
  return plan_build(planner, &call->step, &call->names, &call->built, error);
}

/* A step whose text names relations is checked with them, here. */
static hf_status check(session *s, relation *r, hf_error *error) {
  return relation_is_checked(r) ? HF_OK : describe(s, r, relation_settle, error);
}

hf_status build_step_over(session *s, const build_step *step, relation **out, hf_error *error) {
  build_call call = {.step = *step};
  HF_TRY(columns_of(s, step->input, &call.step.columns, error));
  HF_TRY(step->other == NULL ? HF_OK : columns_of(s, step->other, &call.step.other_columns, error));
  name_list *list = names_snapshot(&s->names);
  call.names = name_list_for_sql(list);
  hf_status status = session_with_planner(s, build, &call, error);
  name_list_release(list);
  HF_TRY(status);
  status = check(s, call.built, error);
  if (status != HF_OK) {
    relation_release(call.built);
    return status;
  }
  *out = call.built;
  return HF_OK;
}

hf_status session_build(session *s, const build_step *step, relation **out, hf_error *error) {
  if (step->input == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a step needs an input");
  }
  HF_TRY(session_enter(s, error));
  return session_leave(s, build_step_over(s, step, out, error));
}

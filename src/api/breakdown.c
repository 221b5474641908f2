/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_breakdown_*: the profile of a job as rows, as text and as JSON.
 * Thread: any.
 */
#include "api/dataframe.h"

#include <utlist.h>

/* Who is told of rows: of stages, or of attempts. */
typedef struct listener {
  void (*stage)(void *context, const hf_stage_profile *stage);
  void (*attempt)(void *context, const hf_attempt_profile *attempt);
  void *context;
} listener;

static void tell_stage(const hf_breakdown *of, const profile_stage *stage, const listener *l) {
  profile_sum sum = profile_sum_stage(stage);
  hf_stage_profile row = {.job = of->job,
                          .held = of->held,
                          .stage = stage->id,
                          .what = stage->what,
                          .why_one_task = stage->n_tasks == 1 ? stage->why_one : NULL,
                          .sql = stage->sql,
                          .tasks = stage->n_tasks,
                          .partitions = stage->partitions,
                          .reads = stage->n_reads,
                          .ordered = stage->ordered,
                          .attempts = sum.n_attempts,
                          .failed_attempts = sum.n_failed,
                          .elapsed_us = stage->ended_us - stage->began_us,
                          .amounts = sum.amounts};
  l->stage(l->context, &row);
}

static void tell_attempts(const hf_breakdown *of, const profile_stage *stage, const listener *l) {
  for (uint32_t t = 0; stage->tasks != NULL && t < stage->n_tasks; t++) {
    const profile_attempt *attempt = NULL;
    LL_FOREACH(stage->tasks[t].attempts, attempt) {
      hf_attempt_profile row = {.job = of->job,
                                .stage = stage->id,
                                .task = t + 1,
                                .attempt = attempt->number,
                                .is_over = attempt->end != ATTEMPT_IS_OPEN,
                                .is_local = true,
                                .status = attempt->code,
                                .amounts = attempt->amounts};
      l->attempt(l->context, &row);
    }
  }
}

static void tell(const hf_breakdown *of, const listener *l) {
  const profile_stage *stage = NULL;
  LL_FOREACH(of == NULL ? NULL : of->stages, stage) {
    for (size_t i = 0; i < stage->n_inputs; i++) {
      tell(stage->inputs[i].fill, l);
    }
    if (stage->is_dropped) {
      continue;
    }
    if (l->stage != NULL) {
      tell_stage(of, stage, l);
    } else {
      tell_attempts(of, stage, l);
    }
  }
}

void hf_breakdown_stages(const hf_breakdown *breakdown,
                         void (*each)(void *context, const hf_stage_profile *stage), void *context) {
  if (each != NULL) {
    tell(breakdown, &(listener){.stage = each, .context = context});
  }
}

void hf_breakdown_attempts(const hf_breakdown *breakdown,
                           void (*each)(void *context, const hf_attempt_profile *attempt), void *context) {
  if (each != NULL) {
    tell(breakdown, &(listener){.attempt = each, .context = context});
  }
}

static hf_status text_of(const hf_breakdown *breakdown, void (*put)(const job_profile *p, buf *out),
                         char **out, hf_error *error) {
  if (breakdown == NULL || out == NULL) {
    return argument_is_null(breakdown == NULL ? "breakdown" : "out", error);
  }
  buf text = {0};
  put(breakdown, &text);
  char *made = buf_take(&text);
  buf_reset(&text);
  if (made == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a profile");
  }
  *out = made;
  return HF_OK;
}

hf_status hf_breakdown_text(const hf_breakdown *breakdown, char **out, hf_error *error) {
  return text_of(breakdown, profile_put_text, out, error);
}

hf_status hf_breakdown_json(const hf_breakdown *breakdown, char **out, hf_error *error) {
  return text_of(breakdown, profile_put_json, out, error);
}

void hf_breakdown_free(hf_breakdown *breakdown) {
  profile_release(breakdown);
}

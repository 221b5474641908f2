/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a plan. A stage runs when those that it reads are done; all tasks of all
 * such stages are a wave, which the slots work off. An attempt that failed because it
 * was killed leaves its task to the next wave, as a new attempt. What a task is told
 * is made here: a TaskSpec, encoded.
 * Thread: that of planner_call; task_execute runs on slots.
 */
#include "harness_internal.h"

/* --------------------------------------------------------------- what tasks are told */

static block_ref attempt_ref(const job_run *j, uint32_t stage, uint32_t task, attempt_id attempt) {
  return (block_ref){.session = j->h->session,
                     .job = {j->plan->job},
                     .stage = {stage + 1},
                     .task = {task + 1},
                     .attempt = attempt};
}

block_ref *job_outputs(const job_run *j, uint32_t stage, arena *a) {
  uint32_t n = j->plan->stages[stage].n_tasks;
  block_ref *refs = arena_array(a, n, sizeof *refs);
  for (uint32_t t = 0; refs != NULL && t < n; t++) {
    refs[t] = attempt_ref(j, stage, t, j->attempts[stage][t]);
  }
  return refs;
}

/* What a task reads of an earlier stage: the attempts of all its tasks, its share of them, or its partitions. */
static bool tell_stage(const job_run *j, const task_run *t, const planned_input *input, task_input *out) {
  const planned_stage *from = &j->plan->stages[input->from];
  uint32_t n = j->plan->stages[t->stage].n_tasks;
  block_ref *refs = job_outputs(j, input->from, j->memory);
  *out = (task_input){.blocks = refs, .n_blocks = from->n_tasks};
  if (refs != NULL && input->share == CUT_SPLIT && n > 1) {
    out->blocks = staging_share_refs(refs, from->n_tasks, t->number, n, j->memory, &out->n_blocks);
  } else if (refs != NULL && input->share == CUT_PARTITION && n > 1) {
    uint32_t first = 0, count = 0;
    staging_partitions_of(from->partitions, t->number, n, &first, &count);
    out->blocks = staging_partition_refs(refs, from->n_tasks, first, count, j->memory, &out->n_blocks);
  }
  return out->blocks != NULL;
}

hf_status job_tell(const job_run *j, task_run *t, hf_error *error) {
  const planned_stage *stage = &j->plan->stages[t->stage];
  task_input *inputs = arena_array(j->memory, stage->n_inputs, sizeof *inputs);
  bool is_complete = inputs != NULL;
  for (size_t i = 0; is_complete && i < stage->n_inputs; i++) {
    const planned_input *input = &stage->inputs[i];
    if (input->is_stage) {
      is_complete = tell_stage(j, t, input, &inputs[i]);
    } else {
      inputs[i] = input->given[input->n_given == 1 ? 0 : t->number];
    }
  }
  const task_spec spec = {.job = {j->plan->job},
                          .stage = {t->stage + 1},
                          .task = {t->number + 1},
                          .attempt = t->attempt,
                          .n_inputs = stage->n_inputs,
                          .inputs = inputs};
  buf bytes = {0};
  hf_status status = is_complete ? task_spec_pack(&spec, &bytes, error) : harness_no_memory(error);
  t->spec = status == HF_OK ? arena_strndup(j->memory, bytes.data, bytes.length) : NULL;
  t->spec_length = bytes.length;
  buf_reset(&bytes);
  return status == HF_OK && t->spec == NULL ? harness_no_memory(error) : status;
}

hf_status job_add_attempt(job_run *j, uint32_t stage, uint32_t number, task_run **out, hf_error *error) {
  task_run *t = arena_alloc(j->memory, sizeof *t);
  if (t == NULL) {
    return harness_no_memory(error);
  }
  j->attempts[stage][number].value++;
  *t = (task_run){.job = j,
                  .stage = stage,
                  .number = number,
                  .attempt = j->attempts[stage][number],
                  .given = arena_array(j->memory, j->plan->stages[stage].n_inputs, sizeof *t->given),
                  .watched =
                      arena_array(j->memory, j->plan->stages[stage].cut->n_watched, sizeof *t->watched)};
  *out = t;
  return t->given == NULL || t->watched == NULL ? harness_no_memory(error) : HF_OK;
}

/* ---------------------------------------------------------------------- waves */

static bool is_done(const job_run *j, uint32_t stage) {
  for (uint32_t t = 0; t < j->plan->stages[stage].n_tasks; t++) {
    if (j->done[stage][t] == NULL) {
      return false;
    }
  }
  return true;
}

static bool is_ready(const job_run *j, uint32_t stage) {
  const planned_stage *planned = &j->plan->stages[stage];
  for (size_t i = 0; i < planned->n_inputs; i++) {
    if (planned->inputs[i].is_stage && !is_done(j, planned->inputs[i].from)) {
      return false;
    }
  }
  return true;
}

/* All tasks that can run now. */
static hf_status wave_make(job_run *j, task_run **wave, size_t *n, hf_error *error) {
  *n = 0;
  for (uint32_t s = 0; s < j->plan->n_stages; s++) {
    bool ready = is_ready(j, s);
    for (uint32_t t = 0; ready && t < j->plan->stages[s].n_tasks; t++) {
      if (j->done[s][t] == NULL) {
        HF_TRY(job_add_attempt(j, s, t, &wave[(*n)++], error));
      }
    }
  }
  for (size_t i = 0; i < *n; i++) {
    HF_TRY(job_tell(j, wave[i], error));
  }
  job_shuffle(j, wave, *n);
  return HF_OK;
}

static void work(void *context, size_t slot, size_t item) {
  task_run **wave = context;
  task_execute(wave[item], slot);
}

hf_status job_give_up(const task_run *t, hf_error *error) {
  const planned_stage *stage = &t->job->plan->stages[t->stage];
  if (error != NULL) {
    error_copy(error, &t->error);
    error->job = t->job->plan->job;
    error->stage = t->stage + 1;
    error->task = t->number + 1;
    error->attempt = t->attempt.value;
    cut_clean_error(stage->cut, error);
  }
  return t->status;
}

/* What the attempts of a wave came to: done, to be tried again, or the error of the job. */
static hf_status wave_settle(job_run *j, task_run **wave, size_t n, hf_error *error) {
  const task_run *failed = NULL;
  for (size_t i = 0; i < n; i++) {
    if (wave[i]->status == HF_OK) {
      j->done[wave[i]->stage][wave[i]->number] = wave[i];
    } else if (wave[i]->status != HF_E_TASK_LOST && failed == NULL) {
      failed = wave[i];
    }
  }
  hf_status status = failed == NULL ? HF_OK : job_give_up(failed, error);
  for (size_t i = 0; i < n; i++) {
    hf_error_reset(&wave[i]->error);
  }
  return status;
}

static hf_status run_waves(job_run *j, hf_error *error) {
  uint32_t last = (uint32_t)j->plan->n_stages - 1;
  size_t most = 0, n = 0;
  for (size_t i = 0; i <= last; i++) {
    most += j->plan->stages[i].n_tasks;
  }
  task_run **wave = arena_array(j->memory, most, sizeof(task_run *));
  if (wave == NULL) {
    return harness_no_memory(error);
  }
  while (!is_done(j, last)) {
    HF_TRY(wave_make(j, wave, &n, error));
    HF_TRY(slots_run(j->config->slots, n, work, wave, error));
    HF_TRY(wave_settle(j, wave, n, error));
  }
  return HF_OK;
}

/* ----------------------------------------------------------------------- door */

hf_status job_begin(job_run *j, const query_plan *plan, hf_error *error) {
  *j = (job_run){.h = plan->h,
                 .plan = plan,
                 .config = plan->config,
                 .exchange = &blocking_exchange,
                 .memory = arena_new(),
                 .random = plan->config->order_seed};
  if (j->memory == NULL) {
    return harness_no_memory(error);
  }
  j->done = arena_array(j->memory, plan->n_stages, sizeof(task_run **));
  j->attempts = arena_array(j->memory, plan->n_stages, sizeof(attempt_id *));
  for (size_t i = 0; j->done != NULL && j->attempts != NULL && i < plan->n_stages; i++) {
    j->done[i] = arena_array(j->memory, plan->stages[i].n_tasks, sizeof(task_run *));
    j->attempts[i] = arena_array(j->memory, plan->stages[i].n_tasks, sizeof(attempt_id));
    if (j->done[i] == NULL || j->attempts[i] == NULL) {
      return harness_no_memory(error);
    }
  }
  return j->done == NULL || j->attempts == NULL ? harness_no_memory(error) : HF_OK;
}

hf_status job_execute(job_run *j, hf_error *error) {
  bool is_streaming = j->config->exchange == HF_HARNESS_STREAMING;
  j->ran_blocking =
      is_streaming && j->config->slots < j->config->tasks; /* who waits for a slot is waited for */
  HF_TRY(is_streaming && !j->ran_blocking ? streaming_execute(j, error) : run_waves(j, error));
  return watch_edges(j, error);
}

void job_reset(job_run *j) {
  arena_free(j->memory);
  *j = (job_run){0};
}

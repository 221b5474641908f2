/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching: stages of a planned query run when their inputs are there; each task
 * is told what it reads of earlier stages, encoded, and its attempts go to the
 * executor, which queues what its slots cannot take at once.
 * The rest of a query planned again: again.c.
 * Thread: the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"
#include "staging/staging.h"

#include <string.h>

/* ------------------------------------------------------------------- inputs */

block_ref *launch_output_refs(const job *j, const stage_run *stage, arena *a) {
  uint32_t n = stage->planned->n_tasks;
  block_ref *refs = arena_array(a, n, sizeof *refs);
  for (uint32_t t = 0; refs != NULL && t < n; t++) {
    uint32_t from = FAULT("scheduler.refs_reversed") ? n - 1 - t : t;
    attempt_id attempt = FAULT("scheduler.first_attempt") ? (attempt_id){1} : stage->tasks[from].attempt;
    refs[t] = (block_ref){.session = j->session,
                          .job = j->id,
                          .stage = stage->planned->id,
                          .task = {from + 1},
                          .attempt = attempt};
  }
  return refs;
}

/* What task `t` reads of an earlier stage. */
static bool input_of_stage(const job *j, const planned_stage *to, const planned_input *input, uint32_t t,
                           arena *a, task_input *out) {
  const stage_run *from = &j->runs[input->from];
  uint32_t n = to->n_tasks;
  block_ref *refs = launch_output_refs(j, from, a);
  *out = (task_input){.blocks = refs, .n_blocks = from->planned->n_tasks};
  if (refs == NULL || n == 1 || input->share == CUT_ALL) {
    return refs != NULL;
  }
  if (input->share == CUT_SPLIT) {
    out->blocks = staging_share_refs(refs, out->n_blocks, t, n, a, &out->n_blocks);
  } else {
    uint32_t first = 0, count = 0;
    if (to->parts != NULL) {
      first = to->parts[t];
      count = to->parts[t + 1] - first;
    } else {
      staging_partitions_of(from->planned->partitions, t, n, &first, &count);
    }
    out->blocks = staging_partition_refs(refs, out->n_blocks, first, count, a, &out->n_blocks);
  }
  return out->blocks != NULL;
}

static hf_status spec_make(const job *j, const stage_run *stage, uint32_t t, arena *a, task_spec *out,
                           hf_error *error) {
  const planned_stage *planned = stage->planned;
  task_input *inputs = a == NULL ? NULL : arena_array(a, planned->n_inputs, sizeof *inputs);
  bool is_complete = inputs != NULL;
  for (size_t i = 0; is_complete && i < planned->n_inputs; i++) {
    const planned_input *input = &planned->inputs[i];
    if (input->is_stage) {
      is_complete = input_of_stage(j, planned, input, t, a, &inputs[i]);
    } else {
      inputs[i] = input->given[input->n_given == 1 ? 0 : t];
    }
  }
  *out = (task_spec){.job = j->id,
                     .stage = planned->id,
                     .task = {t + 1},
                     .attempt = stage->tasks[t].attempt,
                     .n_inputs = planned->n_inputs,
                     .inputs = inputs};
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory to launch a task");
}

/* ------------------------------------------------------------------ attempts */

static hf_status submit(scheduler *s, job *j, const stage_run *stage, uint32_t t, hf_error *error) {
  buf bytes = {0};
  task_spec spec;
  arena *a = arena_new();
  hf_status status = report_reserve(s, error);
  if (status == HF_OK) {
    status = spec_make(j, stage, t, a, &spec, error);
  }
  if (status == HF_OK) {
    status = task_spec_pack(&spec, &bytes, error);
  }
  if (status == HF_OK) {
    status = (j->plan.is_light ? executor_submit_light : executor_submit)(
        s->executor, stage->planned->plan, stage->planned->plan_length, bytes.data, bytes.length, error);
  }
  buf_reset(&bytes);
  arena_free(a);
  return status;
}

void launch_attempt(scheduler *s, job *j, stage_run *stage, uint32_t task) {
  hf_error error = {0};
  stage->tasks[task].attempt.value++;
  if (submit(s, j, stage, task, &error) == HF_OK) {
    j->n_running++;
    s->n_attempts++;
    observe_launched(j, stage, task);
    return;
  }
  stage->tasks[task].attempt.value--;
  job_drain(s, j, JOB_EVENT_FAIL, &error);
}

/* ---------------------------------------------------- tasks by bytes of partitions */

/*
 * A task takes 1 to 2 ms beside its rows (docs/decisions/0007), which is what reading, building and probing LEAST_TASK_BYTES of
 * narrow rows takes: what has less than that for each task runs in fewer.
 */
#define LEAST_TASK_BYTES ((uint64_t)1 << 20)

bool launch_splits(const planned_stage *to, uint32_t from) {
  for (size_t i = 0; i < to->n_inputs; i++) {
    const planned_input *input = &to->inputs[i];
    if (input->is_stage && input->from == from && input->share == CUT_SPLIT) {
      return true;
    }
  }
  return false;
}

/* Whether the rows of each of its tasks are relied on to be those of one partition. */
static bool keeps_deal(const job *j, const stage_run *stage) {
  size_t place = (size_t)(stage - j->runs);
  bool is_last = place + 1 == j->n_runs;
  if (is_last && j->is_fill && j->plan.dealing.n == 0 && j->plan.graph.n_keys > 0) {
    return true;
  }
  for (size_t i = place + 1; i < j->n_runs; i++) {
    if (launch_splits(j->runs[i].planned, (uint32_t)place)) {
      return true;
    }
  }
  return false;
}

/* In how many partitions its inputs come, when it reads nothing else that is shared; else 0. */
static uint32_t partitions_of_inputs(const job *j, const planned_stage *planned) {
  uint32_t partitions = 0;
  for (size_t i = 0; i < planned->n_inputs; i++) {
    const planned_input *input = &planned->inputs[i];
    const stage_run *from = input->is_stage ? &j->runs[input->from] : NULL;
    if (from == NULL ? input->n_given == 1 : input->share == CUT_ALL) {
      continue;
    }
    bool is_alike = from != NULL && input->share == CUT_PARTITION && from->partition_bytes != NULL &&
                    (partitions == 0 || partitions == from->planned->partitions);
    if (!is_alike) {
      return 0;
    }
    partitions = from->planned->partitions;
  }
  return partitions;
}

/* The bytes of each partition, of all inputs that come in partitions; returns their sum. */
static uint64_t bytes_of_inputs(const job *j, const planned_stage *planned, uint64_t *bytes) {
  uint64_t all = 0;
  for (size_t i = 0; i < planned->n_inputs; i++) {
    const planned_input *input = &planned->inputs[i];
    bool is_dealt = input->is_stage && input->share == CUT_PARTITION;
    for (uint32_t k = 0; is_dealt && k < j->runs[input->from].planned->partitions; k++) {
      bytes[k] += j->runs[input->from].partition_bytes[k];
      all += j->runs[input->from].partition_bytes[k];
    }
  }
  return all;
}

/*
 * Deals the partitions that a stage reads to its tasks by their bytes, to fewer tasks when these are few. All attempts of a
 * task have the same. Without memory it stays as it was planned.
 */
static void deal(job *j, stage_run *stage) {
  uint32_t n_tasks = stage->planned->n_tasks;
  uint32_t partitions = n_tasks == 1 || j->settings.tasks > 0 ? 0 : partitions_of_inputs(j, stage->planned);
  if (partitions == 0 || keeps_deal(j, stage)) {
    return;
  }
  uint64_t *bytes = arena_array(j->plan.memory, partitions, sizeof *bytes);
  uint32_t *parts = arena_array(j->plan.memory, n_tasks + 1, sizeof *parts);
  planned_stage *planned = arena_alloc(j->plan.memory, sizeof *planned);
  if (bytes == NULL || parts == NULL || planned == NULL) {
    return;
  }
  uint64_t all = bytes_of_inputs(j, stage->planned, bytes);
  const staging_dealing dealing = {.bytes = bytes, .partitions = partitions, .task_bytes = LEAST_TASK_BYTES};
  *planned = *stage->planned;
  planned->n_tasks = staging_deal(&dealing, n_tasks, parts);
  planned->parts = parts;
  if (planned->n_tasks < n_tasks || partitions > n_tasks) {
    stage->planned = planned;
    observe_dealt(j, stage, partitions, all);
  }
}

/* -------------------------------------------------------------------- stages */

static bool is_ready(const job *j, const stage_run *stage) {
  if (stage->state != STAGE_WAITING) {
    return false;
  }
  for (size_t i = 0; i < stage->planned->n_inputs; i++) {
    const planned_input *input = &stage->planned->inputs[i];
    if (input->is_stage && j->runs[input->from].state != STAGE_DONE) {
      return false;
    }
  }
  for (size_t i = 0; i < stage->planned->n_after; i++) {
    if (j->runs[stage->planned->after[i]].state != STAGE_DONE) {
      return false;
    }
  }
  return true;
}

/* False: the job ends. */
static bool launch_stage(scheduler *s, job *j, stage_run *stage) {
  if (!is_ready(j, stage) ||
      stage_step(&stage->state, STAGE_EVENT_INPUTS_READY, j->id, stage->planned->id) != STAGE_DO_SUBMIT) {
    return true;
  }
  deal(j, stage);
  for (uint32_t t = 0; t < stage->planned->n_tasks; t++) {
    launch_attempt(s, j, stage, t);
    if (j->is_draining || j->state != JOB_RUNNING) {
      return false;
    }
  }
  return true;
}

/* Stages that others wait for first. */
void launch_ready(scheduler *s, job *j) {
  bool goes_on = j->recut == NULL;
  for (size_t i = 0; goes_on && i < j->n_runs; i++) {
    goes_on = !again_is_awaited(j, &j->runs[i]) || launch_stage(s, j, &j->runs[i]);
  }
  for (size_t i = 0; goes_on && i < j->n_runs; i++) {
    goes_on = launch_stage(s, j, &j->runs[i]);
  }
}

bool launch_run_make(const planned_stage *planned, arena *a, stage_run *out) {
  stage_task *tasks = arena_array(a, planned->n_tasks, sizeof *tasks);
  *out = (stage_run){
      .planned = planned, .state = STAGE_WAITING, .tasks = tasks, .n_reads_left = planned->n_reads};
  for (uint32_t t = 0; tasks != NULL && t < planned->n_tasks; t++) {
    tasks[t].state = TASK_PENDING;
  }
  return tasks != NULL;
}

static bool runs_make(job *j) {
  size_t n = j->plan.n_stages;
  stage_run *runs = arena_array(j->plan.memory, n, sizeof *runs);
  bool is_made = runs != NULL;
  for (size_t i = 0; is_made && i < n; i++) {
    is_made = launch_run_make(&j->plan.stages[i], j->plan.memory, &runs[i]);
  }
  j->runs = is_made ? runs : NULL;
  j->n_runs = is_made ? n : 0;
  return is_made;
}

void launch_job(scheduler *s, job *j) {
  j->is_draining = false;
  if (!runs_make(j)) {
    hf_error error = {0};
    error_set(&error, HF_E_OUT_OF_MEMORY, "no memory to launch a query");
    job_fail(s, j, &error);
    return;
  }
  observe_planned(s, j);
  j->stage = j->runs[j->n_runs - 1].planned->id;
  if (j->is_fill) {
    registry_claim_stage(s->registry, &j->key, j->id, j->stage);
  }
  launch_ready(s, j);
}

void launch_recall(scheduler *s, const job *j) {
  if (j->recut != NULL) {
    planner_interrupt(s, j->recut);
  }
  for (size_t i = 0; i < j->n_runs; i++) {
    const stage_run *stage = &j->runs[i];
    for (uint32_t t = 0; t < stage->planned->n_tasks; t++) {
      const stage_task *task = &stage->tasks[t];
      if (task->attempt.value > 0 && (task->state == TASK_PENDING || task->state == TASK_RUNNING)) {
        executor_cancel(s->executor, j->id, stage->planned->id, (task_id){t + 1}, task->attempt);
      }
    }
  }
}

/* -------------------------------------------------------------------- errors */

/* Text before the first input stands in the task's SQL where it stands in the pieces; what comes later has moved. A
 * stage that was cut has no text of the user's. */
void launch_locate_error(const planning *p, hf_error *error) {
  int64_t found = -1, start = 0;
  size_t n_pieces = p->graph.n_stages > 0 ? 0 : p->query.n_pieces;
  for (size_t i = 0; i < n_pieces && p->query.pieces[i].text != NULL; i++) {
    const sql_piece *piece = &p->query.pieces[i];
    int64_t length = (int64_t)strlen(piece->text);
    if (error->position >= start && error->position < start + length && piece->origin >= 0) {
      found = piece->origin + error->position - start;
    }
    start += length;
  }
  error->position = found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching: a planned query becomes a StagePlan and a TaskSpec, encoded, and its
 * task's attempts go to the executor. Each job has one stage of one task now.
 * Threads: launch_prepare a planning thread, the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include <stdlib.h>
#include <string.h>

static const task_id ONLY_TASK = {1};

/* ------------------------------------------------------------------ inputs */

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a stage plan");
}

static hf_status files_of(const lower_input *from, arena *a, stage_input *plan, task_input *task,
                          hf_error *error) {
  const source *files = from->source;
  plan->kind = STAGE_INPUT_FILES;
  plan->reader = source_reader_text(files);
  size_t n_files = source_n_files(files);
  const char **paths = arena_array(a, n_files, sizeof *paths);
  if (paths == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n_files; i++) {
    paths[i] = source_files(files)[i].path;
  }
  task->files = paths;
  task->n_files = n_files;
  return HF_OK;
}

static hf_status held_blocks_of(const planning *p, const lower_input *from, stage_input *plan,
                                task_input *task, hf_error *error) {
  uuid key = relation_look(from->cache_node).cache_id;
  const held_need *need = planning_need(p, &key);
  if (need == NULL || need->info.answer != HELD_READ) {
    return error_set(error, HF_E_INTERNAL, "a held input has no blocks: %s", key.text);
  }
  block_ref *refs = arena_array(p->memory, need->n_locations, sizeof *refs);
  if (refs == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < need->n_locations; i++) {
    const entry_location *at = &need->locations[i];
    refs[i] = (block_ref){.session = need->session,
                          .job = at->job,
                          .stage = at->stage,
                          .task = at->task,
                          .attempt = at->attempt};
  }
  plan->held_key = key;
  task->blocks = refs;
  task->n_blocks = need->n_locations;
  return HF_OK;
}

/* Cuts the last component off `path` and returns it. */
static const char *cut_last(char *path) {
  char *slash = strrchr(path, '/');
  if (slash == NULL) {
    return "";
  }
  *slash = '\0';
  return slash + 1;
}

/* Reads {work_dir}/{session}/{job}/{stage}/{task}-{attempt}: tasks are told ids, never paths. */
static bool ref_of_dir(const char *dir, arena *a, block_ref *out) {
  char *path = arena_strdup(a, dir);
  if (path == NULL) {
    return false;
  }
  const char *attempt = cut_last(path);
  char *rest = NULL;
  memset(out, 0, sizeof *out);
  out->task.value = (uint32_t)strtoul(attempt, &rest, 10);
  out->attempt.value = *rest == '-' ? (uint32_t)strtoul(rest + 1, NULL, 10) : 0;
  out->stage.value = (uint32_t)strtoul(cut_last(path), NULL, 10);
  out->job.value = strtoull(cut_last(path), NULL, 10);
  return uuid_parse(cut_last(path), &out->session);
}

static hf_status client_blocks_of(const scheduler *s, const planning *p, const lower_input *from,
                                  task_input *task, hf_error *error) {
  const char *dir = relation_look(from->local).local_dir;
  block_ref *ref = arena_alloc(p->memory, sizeof *ref);
  if (ref == NULL) {
    return no_memory(error);
  }
  if (!ref_of_dir(dir, p->memory, ref) || !uuid_equal(&ref->session, &p->session)) {
    return error_set(error, HF_E_HELD_FOREIGN, "client data belongs to another session");
  }
  const char *expected = executor_attempt_dir(s->executor, ref, p->memory);
  if (expected == NULL || strcmp(expected, dir) != 0) {
    return error_set(error, HF_E_INTERNAL, "client data is not where an attempt's blocks are: %s", dir);
  }
  task->blocks = ref;
  task->n_blocks = 1;
  return HF_OK;
}

static hf_status input_of(const scheduler *s, const planning *p, const lower_input *from, stage_input *plan,
                          task_input *task, hf_error *error) {
  plan->columns = from->columns;
  plan->rows = from->rows;
  if (from->kind == LOWER_INPUT_SOURCE) {
    return files_of(from, p->memory, plan, task, error);
  }
  plan->kind = STAGE_INPUT_BLOCKS;
  plan->ordered = from->ordered && p->reads_in_order;
  plan->verify = true;
  return from->kind == LOWER_INPUT_HELD ? held_blocks_of(p, from, plan, task, error)
                                        : client_blocks_of(s, p, from, task, error);
}

/* ----------------------------------------------------------------- the plan */

static hf_status plan_make(const scheduler *s, planning *p, stage_plan *out, hf_error *error) {
  const lowered *query = &p->query;
  stage_piece *pieces = arena_array(p->memory, query->n_pieces, sizeof *pieces);
  stage_input *inputs = arena_array(p->memory, query->n_inputs, sizeof *inputs);
  task_input *task_inputs = arena_array(p->memory, query->n_inputs, sizeof *task_inputs);
  if (pieces == NULL || inputs == NULL || task_inputs == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < query->n_pieces; i++) {
    pieces[i] = (stage_piece){.text = query->pieces[i].text, .input = query->pieces[i].input};
  }
  for (size_t i = 0; i < query->n_inputs; i++) {
    HF_TRY(input_of(s, p, &query->inputs[i], &inputs[i], &task_inputs[i], error));
  }
  *out = (stage_plan){.session = p->session,
                      .job = p->job,
                      .stage = p->stage,
                      .n_pieces = query->n_pieces,
                      .pieces = pieces,
                      .n_inputs = query->n_inputs,
                      .inputs = inputs,
                      .output = {.partitions = 1,
                                 .ordered = p->ordered,
                                 .columns = p->columns,
                                 .budget_bytes = p->settings->sink_budget_bytes,
                                 .batch_bytes = p->settings->batch_bytes,
                                 .block_bytes = p->settings->block_bytes},
                      .n_settings = p->settings->n_engine,
                      .settings = p->settings->engine,
                      .n_allowed_dirs = s->n_allowed_dirs,
                      .allowed_dirs = s->allowed_dirs};
  p->spec = (task_spec){.job = p->job,
                        .stage = p->stage,
                        .task = ONLY_TASK,
                        .n_inputs = query->n_inputs,
                        .inputs = task_inputs};
  return HF_OK;
}

hf_status launch_prepare(scheduler *s, planning *p, hf_error *error) {
  stage_plan plan;
  HF_TRY(plan_make(s, p, &plan, error));
  return stage_plan_pack(&plan, &p->plan_bytes, error);
}

/* ------------------------------------------------------------------ attempts */

static hf_status submit(scheduler *s, job *j, hf_error *error) {
  buf spec = {0};
  j->plan.spec.attempt = j->attempt;
  hf_status status = report_reserve(s, error);
  if (status == HF_OK) {
    status = task_spec_pack(&j->plan.spec, &spec, error);
  }
  if (status == HF_OK) {
    status = executor_submit(s->executor, j->plan.plan_bytes.data, j->plan.plan_bytes.length, spec.data,
                             spec.length, error);
  }
  buf_reset(&spec);
  return status;
}

void launch_attempt(scheduler *s, job *j) {
  j->attempt.value++;
  hf_error error = {0};
  if (submit(s, j, &error) != HF_OK) {
    job_fail(s, j, &error);
  }
}

void launch_stage(scheduler *s, job *j) {
  j->stage = j->plan.stage;
  j->stage_state = STAGE_WAITING;
  j->task_state = TASK_PENDING;
  j->attempt.value = 0;
  if (j->is_fill) {
    registry_claim_stage(s->registry, &j->key, j->id, j->stage);
  }
  if (stage_step(&j->stage_state, STAGE_EVENT_INPUTS_READY, j->id, j->stage) == STAGE_DO_SUBMIT) {
    launch_attempt(s, j);
  }
}

void launch_recall(scheduler *s, const job *j) {
  executor_cancel(s->executor, j->id, j->stage, ONLY_TASK, j->attempt);
}

/* Text before the first input stands in the task's SQL where it stands in the pieces; what comes later has moved. */
void launch_locate_error(const planning *p, hf_error *error) {
  int64_t found = -1, start = 0;
  for (size_t i = 0; i < p->query.n_pieces && p->query.pieces[i].text != NULL; i++) {
    const sql_piece *piece = &p->query.pieces[i];
    int64_t length = (int64_t)strlen(piece->text);
    if (error->position >= start && error->position < start + length && piece->origin >= 0) {
      found = piece->origin + error->position - start;
    }
    start += length;
  }
  error->position = found;
}

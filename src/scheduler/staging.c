/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: a planned query becomes encoded StagePlans, and what each task reads of
 * its sources is worked out: files and ranges of rows, blocks of held results and
 * of client data, by ids. What tasks read of earlier stages is known only when
 * these are done: launch.c.
 * Thread: a planning thread.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"
#include "staging/staging.h"

#include <stdlib.h>
#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a stage plan");
}

/* One input of a stage while it is worked out. */
typedef struct staged_input {
  bool in_order; /* the order of its rows counts */
  cut_share share;
  stage_input *plan;
  planned_input *planned;
  task_input *given; /* n_given of them */
} staged_input;

/* ------------------------------------------------------------------- files */

static hf_status files_of(scheduler *s, const planning *p, const lower_input *from, staged_input *in,
                          hf_error *error) {
  size_t n = in->planned->n_given;
  source_share *shares = arena_array(p->memory, n, sizeof *shares);
  in->plan->kind = STAGE_INPUT_FILES;
  in->plan->reader = source_reader_text(from->source);
  if (shares == NULL) {
    return no_memory(error);
  }
  source_split_options options = {.n = n, .in_order = in->in_order};
  HF_TRY(source_split(s->sources, from->source, &options, p->memory, shares, error));
  for (size_t t = 0; t < n; t++) {
    HF_TRY(staging_files(&shares[t], p->memory, &in->given[t], error));
  }
  return HF_OK;
}

/* ------------------------------------------------------------------ blocks */

static hf_status share_blocks(const planning *p, const block_ref *refs, size_t n_refs, staged_input *in,
                              hf_error *error) {
  uint32_t n = (uint32_t)in->planned->n_given;
  for (uint32_t t = 0; t < n; t++) {
    task_input *given = &in->given[t];
    given->blocks = staging_share_refs(refs, n_refs, t, n, p->memory, &given->n_blocks);
    if (given->blocks == NULL) {
      return no_memory(error);
    }
  }
  return HF_OK;
}

/* Each task its partitions of a held result: so many of each location, or so many locations. */
static hf_status deal_blocks(const planning *p, const entry_partitioning *by, const block_ref *refs,
                             size_t n_refs, staged_input *in, hf_error *error) {
  uint32_t n = (uint32_t)in->planned->n_given;
  for (uint32_t t = 0; t < n; t++) {
    task_input *given = &in->given[t];
    uint32_t first = 0, count = 0;
    staging_partitions_of(by->n, t, n, &first, &count);
    if (!by->in_blocks) {
      *given = (task_input){.blocks = refs + first, .n_blocks = count};
      continue;
    }
    given->blocks = staging_partition_refs(refs, n_refs, first, count, p->memory, &given->n_blocks);
    if (given->blocks == NULL) {
      return no_memory(error);
    }
  }
  return HF_OK;
}

static hf_status held_blocks_of(const planning *p, const lower_input *from, staged_input *in,
                                hf_error *error) {
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
  in->plan->held_key = key;
  if (p->pruning != NULL) {
    const planned_pruning *pruning = &p->pruning[from - p->query.inputs];
    in->plan->n_filters = pruning->n_filters;
    in->plan->filters = pruning->filters;
  }
  return in->share == CUT_PARTITION ? deal_blocks(p, &need->partitioning, refs, need->n_locations, in, error)
                                    : share_blocks(p, refs, need->n_locations, in, error);
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
                                  staged_input *in, hf_error *error) {
  const char *dir = relation_look(from->local).local_dir;
  block_ref ref;
  if (!ref_of_dir(dir, p->memory, &ref) || !uuid_equal(&ref.session, &p->session)) {
    return error_set(error, HF_E_HELD_FOREIGN, "client data belongs to another session");
  }
  const char *expected = executor_attempt_dir(s->executor, &ref, p->memory);
  if (expected == NULL || strcmp(expected, dir) != 0) {
    return error_set(error, HF_E_INTERNAL, "client data is not where an attempt's blocks are: %s", dir);
  }
  return share_blocks(p, &ref, 1, in, error);
}

/* ------------------------------------------------------------------- inputs */

/* An input that is a source, for `n_given` parts of it. */
static hf_status source_input(scheduler *s, const planning *p, const lower_input *from, size_t n_given,
                              staged_input *in, hf_error *error) {
  in->given = arena_array(p->memory, n_given, sizeof *in->given);
  if (in->given == NULL) {
    return no_memory(error);
  }
  in->planned->given = in->given;
  in->planned->n_given = n_given;
  in->plan->columns = from->columns;
  in->plan->rows = from->rows;
  if (from->kind == LOWER_INPUT_SOURCE) {
    return files_of(s, p, from, in, error);
  }
  in->plan->kind = STAGE_INPUT_BLOCKS;
  in->plan->verify = true;
  return from->kind == LOWER_INPUT_HELD ? held_blocks_of(p, from, in, error)
                                        : client_blocks_of(s, p, from, in, error);
}

static void stage_input_of(const planning *p, const cut_input *from, staged_input *in) {
  in->planned->is_stage = true;
  in->planned->from = from->stage;
  in->planned->share = from->share;
  in->plan->kind = STAGE_INPUT_BLOCKS;
  in->plan->columns = p->graph.stages[from->stage].columns;
}

static hf_status cut_inputs(scheduler *s, const planning *p, const cut_stage *from, stage_input *plans,
                            planned_stage *out, hf_error *error) {
  planned_input *planned = arena_array(p->memory, from->n_inputs, sizeof *planned);
  if (planned == NULL) {
    return no_memory(error);
  }
  out->n_inputs = from->n_inputs;
  out->inputs = planned;
  for (size_t i = 0; i < from->n_inputs; i++) {
    const cut_input *input = &from->inputs[i];
    bool is_ordered = out->ordered; /* its output is */
    staged_input in = {.in_order = input->ordered || is_ordered,
                       .share = input->share,
                       .plan = &plans[i],
                       .planned = &planned[i]};
    if (input->is_stage) {
      stage_input_of(p, input, &in);
    } else {
      const lower_input *of = &p->query.inputs[strtoul(input->source_id, NULL, 10)];
      HF_TRY(source_input(s, p, of, input->share == CUT_ALL ? 1 : out->n_tasks, &in, error));
    }
    plans[i].ordered = plans[i].kind == STAGE_INPUT_BLOCKS && input->ordered;
  }
  return HF_OK;
}

static hf_status lowered_inputs(scheduler *s, const planning *p, stage_input *plans, planned_input *planned,
                                hf_error *error) {
  for (size_t i = 0; i < p->query.n_inputs; i++) {
    const lower_input *from = &p->query.inputs[i];
    staged_input in = {.plan = &plans[i], .planned = &planned[i]};
    HF_TRY(source_input(s, p, from, 1, &in, error));
    plans[i].ordered = plans[i].kind == STAGE_INPUT_BLOCKS && from->ordered && p->reads_in_order;
  }
  return HF_OK;
}

/* ------------------------------------------------------------------- stages */

/* Packs the plan, with what is the same for all stages filled in. */
static hf_status pack(const scheduler *s, const planning *p, stage_plan *plan, planned_stage *out,
                      hf_error *error) {
  plan->session = p->session;
  plan->job = p->job;
  plan->stage = out->id;
  plan->output.budget_bytes = p->settings->sink_budget_bytes;
  plan->output.batch_bytes = p->settings->batch_bytes;
  plan->output.block_bytes = p->settings->block_bytes;
  plan->output.compression = p->settings->compression;
  plan->n_settings = FAULT("scheduler.setting") ? 0 : p->settings->n_engine;
  plan->settings = p->settings->engine;
  plan->n_allowed_dirs = s->n_allowed_dirs;
  plan->allowed_dirs = s->allowed_dirs;
  out->ordered = plan->output.ordered;
  out->partitions = plan->output.partitions;
  buf bytes = {0};
  hf_status status = stage_plan_pack(plan, &bytes, error);
  if (status == HF_OK) {
    out->plan = arena_strndup(p->memory, bytes.data, bytes.length);
    out->plan_length = bytes.length;
    status = out->plan == NULL ? no_memory(error) : HF_OK;
  }
  buf_reset(&bytes);
  return status;
}

/* Room for pieces and inputs. */
static hf_status plan_new(const planning *p, size_t n_pieces, size_t n_inputs, stage_plan *plan,
                          stage_piece **pieces, hf_error *error) {
  *pieces = arena_array(p->memory, n_pieces, sizeof **pieces);
  *plan = (stage_plan){.n_pieces = n_pieces, .pieces = *pieces, .n_inputs = n_inputs};
  return *pieces == NULL ? no_memory(error) : HF_OK;
}

/* SELECT c0, …, CAST(hash(c1, …) % 8 AS UINTEGER) FROM ( … ) AS t(c0, …): the partition of each row behind it. */
static hf_status deal_lowered(const planning *p, stage_piece *pieces, size_t n, hf_error *error) {
  buf head = {0}, tail = {0};
  buf_text(&head, "SELECT ");
  buf_text(&tail, "\n) AS t(");
  for (size_t i = 0; i < p->columns.n_columns; i++) {
    buf_printf(&head, "c%zu, ", i);
    buf_printf(&tail, "%sc%zu", i > 0 ? ", " : "", i);
  }
  buf_text(&head, "CAST(hash(");
  for (size_t i = 0; i < p->dealing.n; i++) {
    buf_printf(&head, "%sc%zu", i > 0 ? ", " : "", p->dealing.columns[i]);
  }
  buf_printf(&head, ") %% %u AS UINTEGER) FROM (", p->dealing.partitions);
  buf_char(&tail, ')');
  pieces[0].text = head.failed ? NULL : arena_strdup(p->memory, buf_cstr(&head));
  pieces[n - 1].text = tail.failed ? NULL : arena_strdup(p->memory, buf_cstr(&tail));
  buf_reset(&head);
  buf_reset(&tail);
  return pieces[0].text == NULL || pieces[n - 1].text == NULL ? no_memory(error) : HF_OK;
}

static hf_status stage_of_lowered(scheduler *s, const planning *p, planned_stage *out, hf_error *error) {
  const lowered *query = &p->query;
  stage_plan plan;
  stage_piece *pieces = NULL;
  stage_input *inputs = arena_array(p->memory, query->n_inputs, sizeof *inputs);
  planned_input *planned = arena_array(p->memory, query->n_inputs, sizeof *planned);
  bool is_dealt = p->dealing.n > 0;
  HF_TRY(plan_new(p, query->n_pieces + (is_dealt ? 2 : 0), query->n_inputs, &plan, &pieces, error));
  if (inputs == NULL || planned == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < query->n_pieces; i++) {
    pieces[i + is_dealt] = (stage_piece){.text = query->pieces[i].text, .input = query->pieces[i].input};
  }
  HF_TRY(is_dealt ? deal_lowered(p, pieces, plan.n_pieces, error) : HF_OK);
  HF_TRY(lowered_inputs(s, p, inputs, planned, error));
  plan.inputs = inputs;
  plan.output = (stage_output){.partitions = is_dealt ? p->dealing.partitions : 1,
                               .ordered = p->ordered,
                               .held = p->is_fill,
                               .columns = p->columns};
  out->n_tasks = 1;
  out->n_inputs = query->n_inputs;
  out->inputs = planned;
  return pack(s, p, &plan, out, error);
}

static hf_status stage_of_cut(scheduler *s, const planning *p, size_t number, planned_stage *out,
                              hf_error *error) {
  const cut_stage *from = &p->graph.stages[number];
  bool is_last = number + 1 == p->graph.n_stages;
  stage_plan plan;
  stage_piece *pieces = NULL;
  stage_input *inputs = arena_array(p->memory, from->n_inputs, sizeof *inputs);
  HF_TRY(plan_new(p, from->n_pieces, from->n_inputs, &plan, &pieces, error));
  if (inputs == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < from->n_pieces; i++) {
    pieces[i] = (stage_piece){.text = from->pieces[i].text, .input = from->pieces[i].input};
  }
  out->n_tasks = from->one_task ? 1 : p->n_tasks;
  out->n_after = from->n_after;
  out->after = from->after;
  out->ordered = from->ordered || (is_last && p->ordered);
  HF_TRY(cut_inputs(s, p, from, inputs, out, error));
  plan.inputs = inputs;
  plan.output = (stage_output){.partitions = from->partitions == 0 ? 1 : from->partitions,
                               .ordered = out->ordered,
                               .held = is_last && p->is_fill,
                               .columns = is_last ? p->columns : from->columns,
                               .n_watched = from->n_watched,
                               .watched = from->watched};
  return pack(s, p, &plan, out, error);
}

/* A stage that was launched before the rest was cut again is there already. */
static bool was_launched(const planning *p, size_t place) {
  for (size_t i = 0; i < p->cut.n_facts; i++) {
    if (is_same_mark(p->cut.facts[i].mark, p->graph.stages[place].mark)) {
      return true;
    }
  }
  return false;
}

hf_status staging_prepare(scheduler *s, planning *p, hf_error *error) {
  uint32_t next = p->first_stage.value;
  bool is_cut = p->graph.n_stages > 0;
  size_t n = is_cut ? p->graph.n_stages : 1;
  planned_stage *stages = arena_array(p->memory, n, sizeof *stages);
  if (stages == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    if (is_cut && was_launched(p, i)) {
      continue;
    }
    stages[i].id.value = next++;
    HF_TRY(is_cut ? stage_of_cut(s, p, i, &stages[i], error) : stage_of_lowered(s, p, &stages[i], error));
    for (size_t k = 0; k < stages[i].n_inputs; k++) {
      const planned_input *input = &stages[i].inputs[k];
      if (input->is_stage) {
        stages[input->from].n_reads++;
      }
    }
  }
  p->stages = stages;
  p->n_stages = n;
  return HF_OK;
}

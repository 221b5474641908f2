/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a query to encoded stages: its names are bound, it is lowered to SQL over
 * inputs, DuckDB's plan of that is read as a tree and cut at exchanges, and each
 * stage becomes a StagePlan, which is encoded once. What cannot be cut is one stage
 * of one task.
 * Thread: that of planner_call, whose stack is large.
 */
#include "harness_internal.h"

#include <stdlib.h>
#include <string.h>

/* As the scheduler has it: what a join side may have to be read whole by every task. */
#define BROADCAST_BYTES ((uint64_t)64 << 20)

/* ------------------------------------------------------------------ lowering */

/* Lowering does no I/O: it says what it needs to know, and begins again. */
static hf_status lower(query_plan *p, hf_error *error) {
  const lower_knowledge knowledge = {.held = hold_look, .source_of = names_source, .context = p};
  do {
    p->query = (lowered){0};
    HF_TRY(plan_lower(p->relation, &knowledge, p->memory, &p->query, error));
    HF_TRY(names_resolve(p, error));
    for (size_t i = 0; i < p->query.n_needed_held; i++) {
      HF_TRY(hold_fill(p->h, p->query.needed_held[i], p->config, error));
    }
  } while (p->query.n_needed_sources + p->query.n_needed_held > 0);
  return HF_OK;
}

static uint64_t bytes_of(const lower_input *input) {
  return input->kind == LOWER_INPUT_SOURCE ? source_bytes(input->source)
                                           : input->rows * 8 * input->columns.n_columns;
}

/* The rows of a small result come in the order of the files, as from DuckDB. */
static bool is_ordered(const query_plan *p) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < p->query.n_inputs; i++) {
    bytes += bytes_of(&p->query.inputs[i]);
  }
  return p->query.ordered || bytes < config_number(p->h->settings, CONFIG_SQL_ORDERED_BELOW);
}

/* ------------------------------------------------------------------- cutting */

static hf_status cut_sources(const query_plan *p, const cut_source **out, hf_error *error) {
  cut_source *sources = arena_array(p->memory, p->query.n_inputs, sizeof *sources);
  for (size_t i = 0; sources != NULL && i < p->query.n_inputs; i++) {
    const lower_input *input = &p->query.inputs[i];
    bool is_files = input->kind == LOWER_INPUT_SOURCE;
    sources[i] = (cut_source){.id = arena_printf(p->memory, "%zu", i),
                              .can_split = !is_files || source_can_split(input->source),
                              .rows = input->rows,
                              .bytes = bytes_of(input),
                              .ordered = is_files || input->ordered};
    sources = sources[i].id == NULL ? NULL : sources;
  }
  *out = sources;
  return sources == NULL ? harness_no_memory(error) : HF_OK;
}

static hf_status cut(query_plan *p, hf_error *error) {
  static const cut_whole_side sides[] = {CUT_WHOLE_IF_SMALL, CUT_WHOLE_ALWAYS, CUT_WHOLE_NEVER};
  const hf_harness_config *c = p->config;
  const staging_query query = {.planner = p->h->planner,
                               .lowered = &p->query,
                               .columns = &p->columns,
                               .divides_whole = config_bool(p->h->settings, CONFIG_SQL_INTEGER_DIVISION),
                               .memory = p->memory};
  uint32_t partitions = c->partitions == 0 ? c->tasks : c->partitions;
  cut_options options = {
      .tasks = partitions < 2 ? 2 : partitions,
      .broadcast_bytes = BROADCAST_BYTES,
      .broadcast = sides[c->broadcast],
      .spreads_small = true,
      .hash_zero = c->hash_zero,
      .tells_partitions = true,
      .waits = c->again && p->n_facts == 0,
      .facts = p->facts,
      .n_facts = p->n_facts,
      .first_of_many = !config_bool(p->h->settings, CONFIG_SQL_SCALAR_SUBQUERY_ERROR),
      .n_sources = p->query.n_inputs,
  };
  const tree_node *root = NULL;
  HF_TRY(cut_sources(p, &options.sources, error));
  HF_TRY(staging_read_tree(&query, &root, &p->fallback, error));
  if (root != NULL) {
    HF_TRY(staging_cut(&query, root, &options, &p->graph, &p->fallback, error));
  }
  return p->fallback == NULL ? HF_OK : staging_whole(&query, p->fallback, &p->graph, error);
}

/* -------------------------------------------------------------------- inputs */

/* Files, and rows of them, as shares: all of it in one, or a share a task. */
static hf_status give_files(const query_plan *p, const lower_input *from, bool in_order, planned_input *in,
                            hf_error *error) {
  source_share *shares = arena_array(p->memory, in->n_given, sizeof *shares);
  const source_split_options options = {.n = in->n_given, .in_order = in_order};
  if (shares == NULL) {
    return harness_no_memory(error);
  }
  HF_TRY(source_split(p->h->sources, from->source, &options, p->memory, shares, error));
  for (size_t t = 0; t < in->n_given; t++) {
    HF_TRY(staging_files(&shares[t], p->memory, &in->given[t], error));
  }
  return HF_OK;
}

static hf_status give_blocks(const query_plan *p, const kept_rows *rows, planned_input *in, hf_error *error) {
  for (uint32_t t = 0; t < in->n_given; t++) {
    task_input *given = &in->given[t];
    given->blocks =
        staging_share_refs(rows->refs, rows->n_refs, t, (uint32_t)in->n_given, p->memory, &given->n_blocks);
    if (given->blocks == NULL) {
      return harness_no_memory(error);
    }
  }
  return HF_OK;
}

/* An input that no stage of the query makes: what each task reads of it is known already. */
static hf_status plan_source(const query_plan *p, const lower_input *from, bool in_order, stage_input *plan,
                             planned_input *in, hf_error *error) {
  in->given = arena_array(p->memory, in->n_given, sizeof *in->given);
  if (in->given == NULL) {
    return harness_no_memory(error);
  }
  plan->columns = from->columns;
  plan->rows = from->rows;
  if (from->kind == LOWER_INPUT_SOURCE) {
    plan->kind = STAGE_INPUT_FILES;
    plan->reader = source_reader_text(from->source);
    return give_files(p, from, in_order, in, error);
  }
  bool is_held = from->kind == LOWER_INPUT_HELD;
  const uuid id = is_held ? relation_look(from->cache_node).cache_id : relation_look(from->local).local_id;
  const harness_name *name = harness_name_of(p->h, &id);
  plan->kind = STAGE_INPUT_BLOCKS;
  plan->verify = true;
  plan->held_key = is_held ? id : (uuid){""};
  return give_blocks(p, is_held ? &name->held : &name->local, in, error);
}

/* -------------------------------------------------------------------- stages */

static hf_status encode(const query_plan *p, size_t number, const schema *columns, stage_plan *plan,
                        planned_stage *out, hf_error *error) {
  const config *settings = p->h->settings;
  bool is_last = number + 1 == p->n_stages;
  plan->session = p->h->session;
  plan->job.value = p->job;
  plan->stage.value = (uint32_t)number + 1;
  plan->output = (stage_output){
      .partitions = out->partitions,
      .ordered = out->ordered,
      .held = is_last && p->is_fill,
      .columns = *columns,
      .n_watched = out->cut->n_watched,
      .watched = out->cut->watched,
      .budget_bytes = config_number(settings, CONFIG_SINK_BUDGET),
      /* a batch is written as soon as it holds as much: with its first row */
      .batch_bytes = p->config->batch_rows == 1 ? 1 : config_number(settings, CONFIG_SHUFFLE_BATCH_BYTES),
      .block_bytes = config_number(settings, CONFIG_SHUFFLE_BLOCK_BYTES)};
  plan->n_settings = HARNESS_SETTINGS;
  plan->settings = p->h->rows;
  plan->n_allowed_dirs = p->h->n_allowed_dirs;
  plan->allowed_dirs = p->h->allowed_dirs;
  buf bytes = {0};
  hf_status status = stage_plan_pack(plan, &bytes, error);
  out->plan = status == HF_OK ? arena_strndup(p->memory, bytes.data, bytes.length) : NULL;
  out->plan_length = bytes.length;
  buf_reset(&bytes);
  return status == HF_OK && out->plan == NULL ? harness_no_memory(error) : status;
}

/* A task of a stage reads files, blocks of a name, or what earlier stages wrote. */
static hf_status plan_stage(const query_plan *p, size_t number, planned_stage *out, hf_error *error) {
  const cut_stage *from = out->cut;
  stage_piece *pieces = arena_array(p->memory, from->n_pieces, sizeof *pieces);
  stage_input *inputs = arena_array(p->memory, from->n_inputs, sizeof *inputs);
  planned_input *planned = arena_array(p->memory, from->n_inputs, sizeof *planned);
  if (pieces == NULL || inputs == NULL || planned == NULL) {
    return harness_no_memory(error);
  }
  for (size_t i = 0; i < from->n_pieces; i++) {
    pieces[i] = (stage_piece){from->pieces[i].text, from->pieces[i].input};
  }
  for (size_t i = 0; i < from->n_inputs; i++) {
    const cut_input *input = &from->inputs[i];
    planned[i] = (planned_input){.is_stage = input->is_stage,
                                 .from = input->stage,
                                 .share = input->share,
                                 .n_given = input->share == CUT_ALL ? 1 : out->n_tasks};
    if (input->is_stage) {
      inputs[i] = (stage_input){
          .kind = STAGE_INPUT_BLOCKS, .columns = p->graph.stages[input->stage].columns, .verify = true};
    } else {
      const lower_input *of = &p->query.inputs[strtoul(input->source_id, NULL, 10)];
      HF_TRY(plan_source(p, of, input->ordered || out->ordered, &inputs[i], &planned[i], error));
    }
    inputs[i].ordered = inputs[i].kind == STAGE_INPUT_BLOCKS && input->ordered;
  }
  out->n_inputs = from->n_inputs;
  out->inputs = planned;
  stage_plan plan = {
      .n_pieces = from->n_pieces, .pieces = pieces, .n_inputs = from->n_inputs, .inputs = inputs};
  return encode(p, number, number + 1 == p->n_stages ? &p->columns : &from->columns, &plan, out, error);
}

static hf_status plan_stages(query_plan *p, hf_error *error) {
  p->n_stages = p->graph.n_stages;
  p->stages = arena_array(p->memory, p->n_stages, sizeof *p->stages);
  for (size_t i = 0; p->stages != NULL && i < p->n_stages; i++) {
    const cut_stage *from = &p->graph.stages[i];
    p->stages[i] = (planned_stage){.cut = from,
                                   .n_tasks = from->one_task ? 1 : p->config->tasks,
                                   .partitions = from->partitions < 1 ? 1 : from->partitions,
                                   .ordered = from->ordered || (i + 1 == p->n_stages && is_ordered(p))};
    HF_TRY(plan_stage(p, i, &p->stages[i], error));
  }
  return p->stages == NULL ? harness_no_memory(error) : HF_OK;
}

/* ---------------------------------------------------------------------- door */

hf_status query_plan_bind(query_plan *p, const char *sql, hf_error *error) {
  const relation_names names = harness_names(p);
  HF_TRY(relation_from_sql(p->h->planner, sql, &names, &p->own_relation, error));
  p->relation = p->own_relation;
  return HF_OK;
}

hf_status query_plan_make(query_plan *p, hf_error *error) {
  p->job = ++p->h->last_job;
  HF_TRY(lower(p, error));
  HF_TRY(plan_describe(p->h->planner, &p->query, p->memory, &p->columns, error));
  HF_TRY(cut(p, error));
  return plan_stages(p, error);
}

hf_status query_plan_begin(query_plan *p, hf_harness *h, const hf_harness_config *how, hf_error *error) {
  *p = (query_plan){.h = h, .config = how, .memory = arena_new()};
  return p->memory == NULL ? harness_no_memory(error) : HF_OK;
}

void query_plan_reset(query_plan *p) {
  names_release(p);
  if (p->own_relation != NULL) {
    relation_release(p->own_relation);
  }
  arena_free(p->memory);
  *p = (query_plan){0};
}

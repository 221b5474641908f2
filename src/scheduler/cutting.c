/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether and how a lowered query is cut into stages: DuckDB's plan of it is read
 * as a tree and cut, and each stage's text is bound to see that its columns are
 * the plan's. Whatever is refused on the way is a reason to run it as one task.
 * Thread: a planning thread.
 */
#include "scheduler/scheduler_internal.h"

#include "staging/staging.h"

#include <string.h>

/* Input for one task; what a join side may have to be read whole by every task. */
#define TASK_BYTES ((uint64_t)64 << 20)
/* A slot's tasks each build what they read whole anew: more than one a slot only where the input of one is larger. */
#define TASK_LARGEST_BYTES ((uint64_t)1 << 30)
enum { TASKS_A_SLOT = 2 };
/* What a larger side moves at least, to wait for the smaller one: to write and read 8 MiB of narrow rows takes 20 to 30 ms of
 * processor time (docs/decisions/0006), to look again at the rest 2 to 4 ms. */
#define WAIT_BYTES ((uint64_t)8 << 20)

uint32_t cutting_tasks(const scheduler *s, const planning *p) {
  uint32_t slots = executor_slots(s->executor);
  uint64_t bytes = planning_input_bytes(p);
  if (p->settings->tasks > 0) {
    return p->settings->tasks;
  }
  if (slots == 1 || bytes < TASK_BYTES) {
    return 1;
  }
  if (bytes > slots * TASK_LARGEST_BYTES) {
    return slots * TASKS_A_SLOT;
  }
  uint64_t tasks = bytes / TASK_BYTES;
  return (uint32_t)(tasks < 2 ? 2 : tasks < slots ? tasks : slots);
}

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
}

/* No graph, for this reason. */
static hf_status fall_back(planning *p, const char *reason, hf_error *error) {
  p->graph = (cut_graph){0};
  p->fallback = arena_strdup(p->memory, reason);
  return p->fallback == NULL ? no_memory(error) : HF_OK;
}

/* ------------------------------------------------------------------ sources */

static uint64_t bytes_of(const planning *p, const lower_input *input) {
  if (input->kind == LOWER_INPUT_SOURCE) {
    return source_bytes(input->source);
  }
  if (input->kind == LOWER_INPUT_LOCAL) {
    return input->rows * 8 * input->columns.n_columns;
  }
  uuid key = relation_look(input->cache_node).cache_id;
  const held_need *need = planning_need(p, &key);
  return need == NULL ? 0 : need->bytes;
}

/* By no other engine's hash, and by none that another could not compute again. */
uint32_t cutting_hash_version(void) {
  uint32_t version = 2166136261u; /* FNV-1a */
  for (const char *at = engine_library_version(); *at != '\0'; at++) {
    version = (version ^ (uint8_t)*at) * 16777619u;
  }
  return version;
}

/* How a held input is dealt. */
static hf_status take_partitioning(const planning *p, const lower_input *input, cut_source *out,
                                   hf_error *error) {
  if (input->kind != LOWER_INPUT_HELD) {
    return HF_OK;
  }
  uuid key = relation_look(input->cache_node).cache_id;
  const held_need *need = planning_need(p, &key);
  size_t n = need == NULL ? 0 : need->partitioning.n_columns;
  size_t *keys = arena_array(p->memory, n + 1, sizeof *keys);
  if (keys == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    keys[i] = need->partitioning.columns[i];
  }
  out->n_keys = n;
  out->keys = keys;
  out->modulus = n == 0 ? 0 : need->partitioning.n;
  return HF_OK;
}

static cut_source *sources_of(const planning *p, hf_error *error) {
  cut_source *sources = arena_array(p->memory, p->query.n_inputs + 1, sizeof *sources);
  for (size_t i = 0; sources != NULL && i < p->query.n_inputs; i++) {
    const lower_input *input = &p->query.inputs[i];
    bool is_files = input->kind == LOWER_INPUT_SOURCE;
    sources[i] = (cut_source){.id = arena_printf(p->memory, "%zu", i),
                              .can_split = !is_files || source_can_split(input->source),
                              .rows = input->rows,
                              .bytes = bytes_of(p, input),
                              .ordered = is_files || input->ordered};
    if (sources[i].id == NULL || take_partitioning(p, input, &sources[i], error) != HF_OK) {
      return NULL;
    }
  }
  return sources;
}

static bool has_setting(const job_settings *settings, const char *name, const char *value) {
  for (size_t i = 0; i < settings->n_engine; i++) {
    if (strcmp(settings->engine[i].name, name) == 0) {
      return strcmp(settings->engine[i].value, value) == 0;
    }
  }
  return false;
}

/* ------------------------------------------------------------------ cutting */

static staging_query query_of(engine *planner_engine, const planning *p) {
  return (staging_query){.planner = planner_engine,
                         .lowered = &p->query,
                         .columns = &p->columns,
                         .divides_whole = has_setting(p->settings, "integer_division", "true"),
                         .memory = p->memory};
}

hf_status cutting_try(engine *planner_engine, planning *p, hf_error *error) {
  const staging_query query = query_of(planner_engine, p);
  const tree_node *root = NULL;
  const char *why = NULL;
  HF_TRY(staging_read_tree(&query, &root, &why, error));
  if (root == NULL) {
    return fall_back(p, why, error);
  }
  HF_TRY(pruning_note(p, root, error));
  p->cut = (cut_options){.tasks = p->n_tasks,
                         .broadcast_bytes = TASK_BYTES,
                         .spreads_small = p->settings->tasks > 0, /* so many are asked for */
                         .first_of_many =
                             has_setting(p->settings, "scalar_subquery_error_on_multiple_rows", "false"),
                         .waits = true,
                         .wait_bytes = WAIT_BYTES,
                         .sources = sources_of(p, error),
                         .n_sources = p->query.n_inputs,
                         .modulus = p->dealing.partitions,
                         .n_keys = p->dealing.n,
                         .keys = p->dealing.columns};
  if (p->cut.sources == NULL) {
    return no_memory(error);
  }
  HF_TRY(staging_cut(&query, root, &p->cut, &p->graph, &why, error));
  p->root = why == NULL ? root : NULL;
  return why == NULL ? HF_OK : fall_back(p, why, error);
}

hf_status cutting_again(engine *planner_engine, planning *p, hf_error *error) {
  const staging_query query = query_of(planner_engine, p);
  const char *why = NULL;
  p->graph = (cut_graph){0};
  HF_TRY(staging_cut(&query, p->root, &p->cut, &p->graph, &why, error));
  if (why != NULL) {
    p->graph = (cut_graph){0};
  }
  return HF_OK;
}

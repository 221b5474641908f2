/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a lowered query to a graph of stages that can be used: DuckDB's plan of it is
 * read as a tree, the tree is cut, and the graph is checked. Whatever is refused on
 * the way is a reason to run the query as one task.
 * Thread: the planner's.
 */
#include "staging/staging.h"

#include "sql/token.h"

#include <stdlib.h>
#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to cut a query");
}

static hf_status say(const staging_query *q, const char *what, const char *reason, const char **why,
                     hf_error *error) {
  *why = arena_printf(q->memory, "%s: %s", what, reason);
  return *why == NULL ? no_memory(error) : HF_OK;
}

static hf_status say_refused(const staging_query *q, const tree_refusal *refusal, const char **why,
                             hf_error *error) {
  return say(q, refusal->node == NULL ? "plan" : refusal->node,
             refusal->reason == NULL ? tree_refusal_sentence(refusal->code) : refusal->reason, why, error);
}

hf_status staging_read_tree(const staging_query *q, const tree_node **root, const char **why,
                            hf_error *error) {
  const char *sql = NULL, *json = NULL, *unwritten = NULL;
  engine_scan *scans = NULL;
  tree_refusal refusal = {0};
  *root = NULL;
  *why = NULL;
  HF_TRY(plan_text_for_planner(q->lowered, q->memory, &sql, &scans, error));
  if (q->divides_whole) {
    HF_TRY(token_divide_whole(sql, q->memory, &sql, error));
  }
  engine_set_scans(q->planner, scans, q->lowered->n_inputs);
  hf_status status = engine_plan_json(q->planner, sql, q->memory, &json, &unwritten, error);
  engine_set_scans(q->planner, NULL, 0);
  HF_TRY(status);
  if (json == NULL) {
    return say(q, "DuckDB cannot serialise the plan", unwritten, why, error);
  }
  HF_TRY(plan_tree_read(json, strlen(json), q->memory, root, &refusal, error));
  return *root == NULL ? say_refused(q, &refusal, why, error) : HF_OK;
}

static const schema *columns_of_source(const void *context, const char *source_id) {
  const lowered *l = context;
  return &l->inputs[strtoul(source_id, NULL, 10)].columns;
}

hf_status staging_cut(const staging_query *q, const tree_node *root, const cut_options *options,
                      cut_graph *out, const char **why, hf_error *error) {
  tree_refusal refusal = {0};
  *why = NULL;
  HF_TRY(stage_cut(root, options, q->memory, out, &refusal, error));
  if (out->n_stages == 0) {
    return say_refused(q, &refusal, why, error);
  }
  const staging_check check = {.planner = q->planner,
                               .graph = out,
                               .columns = q->columns,
                               .source_columns = columns_of_source,
                               .context = q->lowered,
                               .memory = q->memory};
  HF_TRY(staging_check_graph(&check, why, error));
  if (*why != NULL) {
    *out = (cut_graph){0};
  }
  return HF_OK;
}

hf_status staging_whole(const staging_query *q, const char *why, cut_graph *out, hf_error *error) {
  const lowered *l = q->lowered;
  cut_piece *pieces = arena_array(q->memory, l->n_pieces, sizeof *pieces);
  cut_input *inputs = arena_array(q->memory, l->n_inputs, sizeof *inputs);
  cut_stage *stage = arena_alloc(q->memory, sizeof *stage);
  bool is_complete = pieces != NULL && inputs != NULL && stage != NULL;
  for (size_t i = 0; is_complete && i < l->n_pieces; i++) {
    pieces[i] = (cut_piece){l->pieces[i].text, l->pieces[i].input};
  }
  for (size_t i = 0; is_complete && i < l->n_inputs; i++) {
    inputs[i] =
        (cut_input){.share = CUT_ALL, .source_id = arena_printf(q->memory, "%zu", i), .ordered = true};
    is_complete = inputs[i].source_id != NULL;
  }
  if (!is_complete) {
    return no_memory(error);
  }
  *stage = (cut_stage){.n_pieces = l->n_pieces,
                       .pieces = pieces,
                       .n_inputs = l->n_inputs,
                       .inputs = inputs,
                       .one_task = true,
                       .partitions = 1,
                       .ordered = true,
                       .columns = *q->columns,
                       .what = "the query as it is",
                       .why_one = why};
  *out = (cut_graph){.n_stages = 1, .stages = stage};
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of a graph: the text of each stage is bound over stand-ins of its
 * inputs, to see that its columns are the plan's.
 * Thread: the planner's.
 */
#include "staging/staging.h"

#include "plan/lower.h"

/* Rows that a stand-in pretends to have: binding does not look. */
enum { STAND_IN_ROWS = 1000 };

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to check a graph of stages");
}

static const schema *columns_of(const staging_check *c, const cut_input *input) {
  return input->is_stage ? &c->graph->stages[input->stage].columns
                         : c->source_columns(c->context, input->source_id);
}

static void write_sql(const staging_check *c, const cut_stage *stage, buf *out) {
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const cut_piece *piece = &stage->pieces[i];
    if (piece->text != NULL) {
      buf_text(out, piece->text);
      continue;
    }
    buf scan = {0};
    buf_printf(&scan, "hf_scan('%u')", piece->input);
    lower_scan_sql(columns_of(c, &stage->inputs[piece->input]), buf_cstr(&scan), false, out);
    out->failed = out->failed || scan.failed;
    buf_reset(&scan);
  }
}

static bool has_types(const schema *found, const schema *expected, bool has_partition) {
  size_t n = expected->n_columns;
  if (found->n_columns != n + (has_partition ? 1 : 0)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (!data_type_equal(found->columns[i].type, expected->columns[i].type)) {
      return false;
    }
  }
  return !has_partition || found->columns[n].type->kind == TYPE_UINTEGER;
}

static hf_status bind(const staging_check *c, const cut_stage *stage, schema *found, hf_error *error) {
  engine_scan *scans = arena_array(c->memory, stage->n_inputs + 1, sizeof *scans);
  buf sql = {0};
  write_sql(c, stage, &sql);
  for (size_t i = 0; scans != NULL && i < stage->n_inputs; i++) {
    scans[i] = (engine_scan){.id = arena_printf(c->memory, "%zu", i),
                             .columns = columns_of(c, &stage->inputs[i]),
                             .rows = STAND_IN_ROWS};
    sql.failed = sql.failed || scans[i].id == NULL;
  }
  hf_status status = HF_OK;
  if (scans == NULL || sql.failed) {
    status = no_memory(error);
  } else {
    engine_set_scans(c->planner, scans, stage->n_inputs);
    status = engine_describe(c->planner, buf_cstr(&sql), c->memory, found, error);
    engine_set_scans(c->planner, NULL, 0);
  }
  buf_reset(&sql);
  return status;
}

/* *why is set when the stage does not give what the plan says. */
static hf_status check_stage(const staging_check *c, size_t number, const char **why, hf_error *error) {
  const cut_stage *stage = &c->graph->stages[number];
  schema found = {0};
  hf_error met = {0};
  hf_status status = bind(c, stage, &found, &met);
  if (status == HF_E_CANCELLED || status == HF_E_OUT_OF_MEMORY) {
    error_move(error, &met);
    return status;
  }
  if (status != HF_OK) {
    *why = arena_printf(c->memory, "stage %zu does not bind: %s", number + 1, met.message);
  } else if (!has_types(&found, &stage->columns, stage->partitions > 1)) {
    *why = arena_printf(c->memory, "stage %zu gives other types than the plan says", number + 1);
  }
  hf_error_reset(&met);
  return HF_OK;
}

/* Nothing of it can be shared among tasks: why, or NULL. */
static const char *why_all_one(const cut_graph *graph) {
  const char *why = "no part of it can be split";
  for (size_t i = graph->n_stages; i-- > 0;) {
    const cut_stage *stage = &graph->stages[i];
    if (!stage->one_task) {
      return NULL;
    }
    if (stage->why_one != NULL && stage->why_one[0] != '\0') {
      why = stage->why_one; /* of the first that says one */
    }
  }
  return why;
}

hf_status staging_check_graph(const staging_check *check, const char **why, hf_error *error) {
  const cut_graph *graph = check->graph;
  *why = why_all_one(graph);
  if (*why == NULL && !has_types(&graph->stages[graph->n_stages - 1].columns, check->columns, false)) {
    *why = "the last stage gives other types than the query";
  }
  for (size_t i = 0; *why == NULL && i < graph->n_stages; i++) {
    HF_TRY(check_stage(check, i, why, error));
  }
  return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as cached results: their rows computed by a run of their own and kept as
 * blocks, or computed in place, as if they had been let go.
 * Thread: that of planner_call.
 */
#include "harness_internal.h"

#include <string.h>

void hold_look(void *context, const relation *cache_node, held_info *out) {
  const query_plan *p = context;
  const uuid id = relation_look(cache_node).cache_id;
  const harness_name *name = harness_name_of(p->h, &id);
  bool is_held = p->config->hold == HF_HARNESS_HOLD_HELD;
  *out = (held_info){.answer = is_held ? HELD_UNKNOWN : HELD_INLINE};
  if (name->has_collation) {
    out->answer = HELD_INLINE;
  } else if (is_held && name->is_held) {
    *out = (held_info){.answer = HELD_READ,
                       .columns = name->held.columns,
                       .rows = name->held.rows,
                       .ordered = true,
                       .generation = 1};
  }
}

/* Blocks keep no collation: as the scheduler does, such a name is computed in place. */
static hf_status look_for_collation(query_plan *p, harness_name *name, hf_error *error) {
  plan_traits traits = {0};
  HF_TRY(plan_traits_of(p->h->planner, &p->query, p->memory, &traits, error));
  name->has_collation = traits.collation[0] != '\0';
  return HF_OK;
}

/* Takes over what the job wrote. */
static hf_status keep(const job_run *j, harness_name *name, hf_error *error) {
  const query_plan *p = j->plan;
  uint32_t last = (uint32_t)p->n_stages - 1;
  name->held = (kept_rows){.n_refs = p->stages[last].n_tasks, .refs = job_outputs(j, last, name->memory)};
  if (name->held.refs == NULL) {
    return harness_no_memory(error);
  }
  for (uint32_t t = 0; t < p->stages[last].n_tasks; t++) {
    name->held.rows += j->done[last][t]->rows;
  }
  HF_TRY(schema_copy(&p->columns, name->memory, &name->held.columns, error));
  name->is_held = true;
  return HF_OK;
}

static hf_status fill(hf_harness *h, harness_name *name, const hf_harness_config *how, hf_error *error) {
  query_plan plan;
  job_run job = {0};
  HF_TRY(query_plan_begin(&plan, h, how, error));
  plan.relation = name->plain;
  plan.is_fill = true;
  hf_status status = query_plan_make(&plan, error);
  if (status == HF_OK) {
    status = look_for_collation(&plan, name, error);
  }
  if (status == HF_OK && name->has_collation) {
    query_plan_reset(&plan);
    return HF_OK;
  }
  if (status == HF_OK) {
    status = job_begin(&job, &plan, error);
  }
  if (status == HF_OK) {
    status = job_execute(&job, error);
  }
  if (status == HF_OK) {
    status = keep(&job, name, error);
  }
  if (status != HF_OK) {
    job_remove(h, plan.job);
  }
  job_reset(&job);
  query_plan_reset(&plan);
  return status;
}

hf_status hold_fill(hf_harness *h, const relation *cache_node, const hf_harness_config *how,
                    hf_error *error) {
  const uuid id = relation_look(cache_node).cache_id;
  harness_name *name = harness_name_of(h, &id);
  const hf_harness_config plain = {.tasks = how->tasks, .slots = how->slots};
  return name->is_held || name->has_collation ? HF_OK : fill(h, name, &plain, error);
}

bool hold_varies(const query_plan *p) {
  bool varies = false;
  for (size_t i = 0; !varies && i < p->query.n_inputs; i++) {
    const lower_input *input = &p->query.inputs[i];
    if (input->kind == LOWER_INPUT_HELD) {
      const uuid id = relation_look(input->cache_node).cache_id;
      buf sql = {0};
      buf_text(&sql, "FROM ");
      buf_sql_name(&sql, harness_name_of(p->h, &id)->shown);
      varies = !sql.failed && witness_varies(p->h->witness, buf_cstr(&sql));
      buf_reset(&sql);
    }
  }
  return varies;
}

void hold_drop(hf_harness *h, harness_name *name) {
  name->has_collation = false;
  if (name->is_held) {
    job_remove(h, name->held.refs[0].job.value);
    name->is_held = false;
  }
}

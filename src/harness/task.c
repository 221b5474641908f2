/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt, from bytes to rows: it decodes the plan of its stage and what it is
 * told, opens what it reads, puts its SQL together, and runs that on the instance of
 * its slot into the sink of its exchange. Nothing else reaches it.
 * Thread: a slot's.
 */
#include "harness_internal.h"

static hf_status decode(task_run *t) {
  const planned_stage *stage = &t->job->plan->stages[t->stage];
  HF_TRY(stage_plan_unpack(stage->plan, stage->plan_length, t->memory, &t->plan, &t->error));
  HF_TRY(task_spec_unpack(t->spec, t->spec_length, t->memory, &t->told, &t->error));
  if (t->plan.job.value != t->told.job.value || t->plan.stage.value != t->told.stage.value ||
      t->plan.n_inputs != t->told.n_inputs) {
    return error_set(&t->error, HF_E_PROTOCOL, "a task spec is not of this stage plan");
  }
  return HF_OK;
}

static hf_status open_inputs(task_run *t) {
  t->inputs = arena_array(t->memory, t->plan.n_inputs, sizeof *t->inputs);
  t->readings = arena_array(t->memory, t->plan.n_inputs, sizeof *t->readings);
  if (t->inputs == NULL || t->readings == NULL) {
    return harness_no_memory(&t->error);
  }
  HF_TRY(watch_refs(t, &t->error));
  for (size_t i = 0; i < t->plan.n_inputs; i++) {
    /* Files stand in the SQL; of an input without blocks the SQL makes a relation without rows. */
    if (t->plan.inputs[i].kind == STAGE_INPUT_BLOCKS && t->told.inputs[i].n_blocks > 0) {
      HF_TRY(t->job->exchange->open_input(t, i, &t->error));
    }
  }
  return HF_OK;
}

static hf_status run_sql(task_run *t) {
  buf sql = {0};
  hf_status status = task_sql_build(&t->plan, &t->told, &sql, &t->error);
  const engine_task run = {.id =
                               arena_printf(t->memory, "%llu-%u-%u-%u", (unsigned long long)t->plan.job.value,
                                            t->plan.stage.value, t->told.task.value, t->told.attempt.value),
                           .sql = buf_cstr(&sql),
                           .partitions = t->plan.output.partitions,
                           .ordered = t->plan.output.ordered,
                           .ops = t->sink_ops,
                           .sink = t->sink,
                           .inputs = t->inputs,
                           .n_inputs = t->n_inputs};
  if (status == HF_OK && run.id == NULL) {
    status = harness_no_memory(&t->error);
  }
  if (status == HF_OK) {
    status = engine_run_task(t->instance, &run, &t->stats, &t->error);
  }
  if (status == HF_E_CANCELLED && t->job->exchange->is_enough != NULL && t->job->exchange->is_enough(t)) {
    hf_error_reset(&t->error);
    status = HF_OK;
  }
  buf_reset(&sql);
  return status;
}

static hf_status run_steps(task_run *t) {
  const exchange_kind *exchange = t->job->exchange;
  HF_TRY(decode(t));
  HF_TRY(open_inputs(t));
  HF_TRY(watch_partitions(t, false, &t->error));
  HF_TRY(exchange->open_output(t, &t->error));
  HF_TRY(run_sql(t));
  HF_TRY(watch_partitions(t, true, &t->error));
  HF_TRY(watch_reads(t, &t->error));
  HF_TRY(exchange->commit(t, &t->error));
  if (task_is_to_be_killed(t)) {
    atomic_fetch_add(&t->job->killed, 1);
    return exchange->kill(t, &t->error);
  }
  return HF_OK;
}

void task_execute(task_run *t, size_t slot) {
  bool is_fresh = t->job->config->fresh_instances;
  t->memory = arena_new();
  t->status = t->memory == NULL ? harness_no_memory(&t->error)
                                : slot_engine(t->job->h, slot, is_fresh, &t->instance, &t->error);
  if (t->status == HF_OK) {
    t->status = run_steps(t);
    t->job->exchange->close(t);
  }
  if (is_fresh) {
    engine_close(t->instance);
  } else if (error_class_of(t->status) == HF_CLASS_FATAL) {
    slot_close(t->job->h, slot); /* DuckDB may have shut it after a defect */
  }
  arena_free(t->memory);
  t->memory = NULL;
}

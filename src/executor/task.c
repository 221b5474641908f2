/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt on its slot, from bytes to report: decode, open, run, commit, and
 * undo after a failure. Between two steps it asks executor_step whether it was
 * cancelled.
 * Thread: the slot's.
 */
#include "task_input.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "staging/staging.h"

#include <string.h>

typedef struct task {
  executor *x;
  slot *slot;
  attempt *at;
  arena *memory; /* until the report is sent */
  stage_plan plan;
  engine *instance;
  task_inputs inputs;
  buf sql;
  const char *dir; /* NULL: not made yet */
  block_sink *sink;
  block_index index;
  task_output output; /* in the report's arena, as the index is */
  engine_task_stats stats;
  hf_error error;
} task;

/* Takes the next step; CANCELLED when the attempt was cancelled meanwhile. */
static hf_status advance(task *t, attempt_event event) {
  pthread_mutex_lock(&t->x->lock);
  unsigned actions = executor_step(t->at, event);
  bool is_running = t->at->state == ATTEMPT_RUNNING;
  if (is_running) {
    engine_interrupt_reset(t->instance); /* of one that came after the attempt before had run */
  }
  t->slot->interruptible = is_running ? t->instance : NULL;
  if (t->at->state == ATTEMPT_DONE) {
    t->slot->current = NULL;
  }
  pthread_mutex_unlock(&t->x->lock);
  return (actions & ATTEMPT_STOP) == 0 ? HF_OK
                                       : error_set(&t->error, HF_E_CANCELLED, "the task was cancelled");
}

static hf_status decode(task *t) {
  HF_TRY(stage_plan_unpack(t->at->plan, t->at->plan_length, t->memory, &t->plan, &t->error));
  const task_spec *spec = &t->at->spec;
  if (t->plan.job.value != spec->job.value || t->plan.stage.value != spec->stage.value ||
      t->plan.n_inputs != spec->n_inputs) {
    return error_set(&t->error, HF_E_PROTOCOL,
                     "a task spec is not of this stage plan: %zu inputs, expected %zu", spec->n_inputs,
                     t->plan.n_inputs);
  }
  return HF_OK;
}

static hf_status output_open(task *t) {
  const stage_output *out = &t->plan.output;
  block_ref self = {.session = t->plan.session,
                    .job = t->plan.job,
                    .stage = t->plan.stage,
                    .task = t->at->spec.task,
                    .attempt = t->at->spec.attempt};
  const char *dir = executor_attempt_dir(t->x, &self, t->memory);
  if (dir == NULL) {
    return error_set(&t->error, HF_E_OUT_OF_MEMORY, "no memory for a path");
  }
  t->dir = dir;
  HF_TRY(executor_make_dir(t->x, dir, &t->error));
  block_sink_options options = {.dir = dir,
                                .columns = &out->columns,
                                .partitions = out->partitions,
                                .ordered = out->ordered,
                                .budget_bytes = out->budget_bytes,
                                .batch_bytes = out->batch_bytes,
                                .block_bytes = out->block_bytes,
                                .durable = out->durable,
                                .held = out->held,
                                .n_watched = out->n_watched,
                                .watched = out->watched,
                                .compression = out->compression};
  return block_sink_new(&options, &t->sink, &t->error);
}

static hf_status run_sql(task *t, bool unpushed) {
  const task_spec *spec = &t->at->spec;
  engine_task run = {.id = arena_printf(t->memory, "%llu-%u-%u-%u", (unsigned long long)spec->job.value,
                                        spec->stage.value, spec->task.value, spec->attempt.value),
                     .sql = buf_cstr(&t->sql),
                     .partitions = t->plan.output.partitions,
                     .ordered = t->plan.output.ordered,
                     .unpushed = unpushed,
                     .ops = block_sink_ops(),
                     .sink = t->sink,
                     .inputs = t->inputs.engine,
                     .n_inputs = t->inputs.n};
  if (run.id == NULL) {
    return error_set(&t->error, HF_E_OUT_OF_MEMORY, "no memory for a task's id");
  }
  return engine_run_task(t->instance, &run, &t->stats, &t->error);
}

/* What the report says of the blocks, while the sink is there. */
static hf_status describe_output(task *t) {
  arena *a = t->at->ended->memory;
  const block_index *index = &t->index;
  uint64_t *partition_bytes = arena_array(a, index->partitions, sizeof *partition_bytes);
  size_t n_watched = 0;
  const range_summary *seen = block_sink_watched(t->sink, &n_watched);
  range_summary *watched = arena_array(a, n_watched, sizeof *watched);
  if (partition_bytes == NULL || watched == NULL) {
    return error_set(&t->error, HF_E_OUT_OF_MEMORY, "no memory for a report");
  }
  if (n_watched > 0) {
    memcpy(watched, seen, n_watched * sizeof *watched);
  }
  for (size_t i = 0; i < index->n_blocks; i++) {
    partition_bytes[index->blocks[i].partition] += index->blocks[i].bytes;
  }
  t->output = (task_output){.rows = index->rows,
                            .bytes = index->bytes,
                            .partitions = index->partitions,
                            .ordered = index->ordered,
                            .columns = index->columns,
                            .partition_bytes = partition_bytes,
                            .n_watched = n_watched,
                            .watched = watched};
  return HF_OK;
}

/*
 * DuckDB 1.5.5's Parquet reader loses its place where a condition on a nested column leaves out rows while it reads. What
 * fails so is run once more, with conditions above the scans; a file that is damaged fails again.
 */
static hf_status run_unpushed(task *t) {
  log_event(LOG_WARN, "executor", "job=%llu stage=%u task=%u attempt=%u run again without pushed conditions",
            (unsigned long long)t->at->spec.job.value, t->at->spec.stage.value, t->at->spec.task.value,
            t->at->spec.attempt.value);
  hf_error_reset(&t->error);
  task_inputs_close(&t->inputs);
  block_sink_free(t->sink);
  t->inputs = (task_inputs){0};
  t->sink = NULL;
  HF_TRY(task_inputs_open(&t->inputs, t->x, &t->plan, t->at, t->memory, &t->error));
  HF_TRY(output_open(t));
  return run_sql(t, true);
}

static bool has_lost_its_place(const hf_error *error) {
  return error->code == HF_E_FILE_FORMAT && error->message != NULL &&
         strcasestr(error->message, "out of buffer") != NULL;
}

static hf_status run_steps(task *t) {
  HF_TRY(decode(t));
  fault_point("executor.before_run");
  HF_TRY(slot_instance(t->slot, &t->plan, &t->instance, &t->error));
  HF_TRY(task_inputs_open(&t->inputs, t->x, &t->plan, t->at, t->memory, &t->error));
  HF_TRY(task_sql_build(&t->plan, &t->at->spec, &t->sql, &t->error));
  HF_TRY(output_open(t));
  HF_TRY(advance(t, ATTEMPT_ON_RUN));
  hf_status status = run_sql(t, false);
  HF_TRY(status != HF_OK && has_lost_its_place(&t->error) ? run_unpushed(t) : status);
  HF_TRY(advance(t, ATTEMPT_ON_COMMIT));
  HF_TRY(block_sink_commit(t->sink, t->at->ended->memory, &t->index, &t->error));
  return describe_output(t);
}

/* A file that tasks share is counted by the one that has its first row. */
static size_t files_begun(const task_input *input) {
  size_t n = input->n_files;
  for (size_t i = 0; input->ranges != NULL && i < input->n_files; i++) {
    n -= input->ranges[i].first > 0 ? 1 : 0;
  }
  return n;
}

/* What the report says in either case. */
static void count(task *t) {
  task_report *report = t->at->ended;
  report->source_rows = t->stats.source_rows;
  report->spill_bytes = t->stats.spill_bytes;
  for (size_t i = 0; i < t->at->spec.n_inputs; i++) {
    report->source_files += files_begun(&t->at->spec.inputs[i]);
  }
  task_inputs_rows(&t->inputs, &report->block_rows, &report->held_rows, &report->own_rows);
  task_inputs_blocks(&t->inputs, &report->held_blocks, &report->held_blocks_all);
  report->block_bytes = task_inputs_bytes(&t->inputs);
  report->peak_memory_bytes =
      t->stats.peak_memory_bytes + (t->sink == NULL ? 0 : block_sink_peak_bytes(t->sink));
  report->wait_us = t->at->started_us - t->at->queued_us;
  report->run_us = clock_monotonic_us() - t->at->started_us;
}

static void close_all(task *t) {
  count(t);
  task_inputs_close(&t->inputs);
  block_sink_free(t->sink); /* without a commit its files go */
  buf_reset(&t->sql);
}

static void report_finished(task *t) {
  t->at->ended->outcome = TASK_FINISHED;
  t->at->ended->output = t->output;
}

/* Files first: whoever gets the report finds none. */
static void fail(task *t, hf_status status) {
  if (t->dir != NULL) {
    executor_remove_attempt_dir(t->x, t->dir);
  }
  pthread_mutex_lock(&t->x->lock);
  unsigned actions = executor_step(t->at, ATTEMPT_ON_FAIL);
  t->slot->current = NULL;
  t->slot->interruptible = NULL;
  pthread_mutex_unlock(&t->x->lock);
  bool is_cancelled = (actions & ATTEMPT_REPORT_CANCELLED) != 0;
  if (error_class_of(status) == HF_CLASS_FATAL) {
    slot_instance_close(t->slot); /* DuckDB may have shut it after a defect */
  }
  task_report *report = t->at->ended;
  report->outcome = TASK_FAILED;
  if (is_cancelled) {
    error_set(&report->error, HF_E_CANCELLED, "the task was cancelled");
    return;
  }
  if (status == HF_E_BLOCK_MISSING || status == HF_E_BLOCK_CORRUPT) {
    report->lost_held_key = task_inputs_lost_key(&t->inputs);
  }
  error_move(&report->error, &t->error);
}

void task_run(slot *s, attempt *at) {
  task t = {.x = s->owner, .slot = s, .at = at, .memory = at->memory};
  at->started_us = clock_monotonic_us();
  executor_report_started(t.x, at);
  hf_status status = run_steps(&t);
  close_all(&t);
  if (status == HF_OK) {
    report_finished(&t);
    status = advance(&t, ATTEMPT_ON_FINISH);
  }
  if (status != HF_OK) {
    fail(&t, status);
  }
  executor_report_ended(t.x, at);
  hf_error_reset(&t.error);
  attempt_free(at);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking exchange: a task writes an attempt's files, whose index makes them
 * exist; later tasks find them by ids. Names' rows are such blocks too.
 * Thread: a slot's; the engine's callbacks run on it, since an instance has one thread.
 */
#include "harness_internal.h"

#include "base/file.h"

/* --------------------------------------------------------------------- reading */

static hf_status locate(const task_run *t, const task_input *told, block_location **out, hf_error *error) {
  block_location *locations = arena_array(t->memory, told->n_blocks, sizeof *locations);
  for (size_t i = 0; locations != NULL && i < told->n_blocks; i++) {
    const block_ref *ref = &told->blocks[i];
    locations[i] = (block_location){.dir = harness_dir(t->job->h, ref, t->memory),
                                    .partition_first = ref->partition_first,
                                    .partition_count = ref->partition_count,
                                    .share_first = ref->share_first,
                                    .share_count = ref->share_count,
                                    .share_of = ref->share_of};
    locations = locations[i].dir == NULL ? NULL : locations;
  }
  *out = locations;
  return locations == NULL ? harness_no_memory(error) : HF_OK;
}

hf_status task_add_input(task_run *t, size_t number, const engine_input *like, uint64_t rows,
                         hf_error *error) {
  task_reading *reading = &t->readings[t->n_inputs];
  engine_input *input = &t->inputs[t->n_inputs];
  t->n_inputs++;
  *input = *like;
  reading->number = number;
  reading->watch = watch_new(like->ops, like->source, rows, t->memory);
  input->id = arena_printf(t->memory, "%zu", number); /* the SQL reads hf_blocks('<number>') */
  input->ops = watch_ops();
  input->source = reading->watch;
  return input->id == NULL || reading->watch == NULL ? harness_no_memory(error) : HF_OK;
}

static hf_status open_input(task_run *t, size_t number, hf_error *error) {
  const stage_input *plan = &t->plan.inputs[number];
  const task_input *told = &t->told.inputs[number];
  block_location *locations = NULL;
  HF_TRY(locate(t, told, &locations, error));
  const block_input_options options = {.locations = locations,
                                       .n_locations = told->n_blocks,
                                       .ordered = plan->ordered,
                                       .verify = plan->verify,
                                       .threads = 1};
  block_input *blocks = NULL;
  HF_TRY(block_input_new(&options, &blocks, error));
  t->readings[t->n_inputs].blocks = blocks; /* from here task_close frees it */
  const engine_input input = {.ops = block_input_ops(),
                              .source = blocks,
                              .columns = block_input_columns(blocks),
                              .block_schema = block_input_arrow_schema(blocks),
                              .rows = block_input_rows(blocks)};
  return task_add_input(t, number, &input, input.rows, error);
}

/* --------------------------------------------------------------------- writing */

static hf_status open_output(task_run *t, hf_error *error) {
  const stage_output *out = &t->plan.output;
  const block_ref self = {.session = t->plan.session,
                          .job = t->plan.job,
                          .stage = t->plan.stage,
                          .task = t->told.task,
                          .attempt = t->told.attempt};
  t->dir = harness_dir(t->job->h, &self, t->memory);
  if (t->dir == NULL) {
    return harness_no_memory(error);
  }
  const block_sink_options options = {.dir = t->dir,
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
  HF_TRY(block_sink_new(&options, &t->blocks, error));
  t->sink_ops = block_sink_ops();
  t->sink = t->blocks;
  return HF_OK;
}

static hf_status commit(task_run *t, hf_error *error) {
  block_index index;
  HF_TRY(block_sink_commit(t->blocks, t->memory, &index, error));
  t->rows = index.rows;
  t->bytes = index.bytes;
  again_note(t);
  return HF_OK;
}

/* A lost attempt whose files are there: whoever read them would find them cut. */
static hf_status kill_attempt(task_run *t, hf_error *error) {
  const char *path = arena_printf(t->memory, "%s/t0.arrow", t->dir);
  HF_TRY(path == NULL ? harness_no_memory(error) : file_write_whole(path, "", 0, false, error));
  return error_set(error, HF_E_TASK_LOST, "the task was killed when it had written its rows");
}

static void close_all(task_run *t) {
  for (size_t i = 0; i < t->plan.n_inputs && t->readings != NULL; i++) {
    if (t->readings[i].blocks != NULL) {
      block_input_free(t->readings[i].blocks);
    }
  }
  block_sink_free(t->blocks); /* without a commit its files go */
  t->blocks = NULL;
}

const exchange_kind blocking_exchange = {.open_input = open_input,
                                         .open_output = open_output,
                                         .commit = commit,
                                         .kill = kill_attempt,
                                         .close = close_all};

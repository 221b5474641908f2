/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming exchange: all tasks of all stages begin together, each on a thread and
 * an instance of its own, and hand rows on through channels while they run. Only the
 * last stage writes blocks, for the client. A task that fails ends all, also those that
 * compute and do not look at a channel; after a lost one the job runs again, since what
 * it had handed on is used up.
 * Thread: streaming_execute that of the job, the exchange a task's.
 */
#include "harness_internal.h"

#include "base/thread.h"

#include <string.h>

/* What a channel may hold, by default; a frame takes half of it at most, so that there is a flow. */
enum { CHANNEL_BYTES = 1 << 20 };

/* Rows of a channel are not known before they come: DuckDB is told these. */
enum { GUESSED_ROWS = 100000, GUESSED_ROWS_OF_ONE_TASK = 1000 };

typedef struct streaming_task {
  struct streaming_run *run;
  task_run *task;
  size_t slot;
  pthread_t thread;
  engine *running; /* guarded by the run's lock: what to interrupt; NULL: nothing */
} streaming_task;

/* One try of the job. */
typedef struct streaming_run {
  job_run *job;
  channel_set *set;
  size_t n_edges;
  streaming_edge *edges;
  uint32_t *first_task; /* of each stage, among the set's tasks */
  size_t n_tasks;
  streaming_task *tasks;
  pthread_mutex_t lock;
  bool is_over;           /* guarded by lock: no statement may begin any more */
  const task_run *failed; /* guarded by lock: the first; NULL: none */
  streaming_edge *unkept; /* guarded by lock: was scanned again, and must be kept; NULL: none */
} streaming_run;

static streaming_run *run_of(const task_run *t) {
  return t->job->channels;
}

static uint32_t number_of(const task_run *t) {
  return run_of(t)->first_task[t->stage] + t->number;
}

/* The tasks stand in the order in which they begin. */
static streaming_task *task_of(const task_run *t) {
  streaming_task *own = run_of(t)->tasks;
  while (own->task != t) {
    own++;
  }
  return own;
}

static uint64_t bound_of(const job_run *j) {
  return j->config->channel_bytes == 0 ? CHANNEL_BYTES : j->config->channel_bytes;
}

static streaming_edge *edge_into(const streaming_run *run, uint32_t stage, size_t input) {
  for (size_t i = 0; i < run->n_edges; i++) {
    if (run->edges[i].stage == stage && run->edges[i].input == input) {
      return &run->edges[i];
    }
  }
  return NULL;
}

static bool is_last(const task_run *t) {
  return t->stage + 1 == t->job->plan->n_stages;
}

/* --------------------------------------------------------------------- reading */

static hf_status reader_new(const task_run *t, const streaming_edge *edge, channel_reader **out,
                            hf_error *error) {
  const channel_reader_options options = {
      .task = number_of(t), .number = t->number, .edge = (size_t)(edge - run_of(t)->edges), .threads = 1};
  return channel_reader_new(run_of(t)->set, &options, out, error);
}

static hf_status open_input(task_run *t, size_t number, hf_error *error) {
  const streaming_edge *edge = edge_into(run_of(t), t->stage, number);
  if (edge == NULL) {
    return blocking_exchange.open_input(t, number, error);
  }
  channel_reader *reader = NULL;
  HF_TRY(reader_new(t, edge, &reader, error));
  t->readings[t->n_inputs].channel = reader; /* from here close_all frees it */
  bool is_small = t->job->plan->stages[edge->from].n_tasks == 1;
  const engine_input input = {.ops = channel_reader_ops(),
                              .source = reader,
                              .columns = channel_reader_columns(reader),
                              .block_schema = channel_reader_arrow_schema(reader),
                              .rows = is_small ? GUESSED_ROWS_OF_ONE_TASK : GUESSED_ROWS};
  return task_add_input(t, number, &input, UINT64_MAX, error);
}

/* A task that has no partition of an input does not open it: nobody may wait for it. */
static hf_status close_unopened(const task_run *t, hf_error *error) {
  for (size_t i = 0; i < t->plan.n_inputs; i++) {
    const streaming_edge *edge = edge_into(run_of(t), t->stage, i);
    if (edge != NULL && t->told.inputs[i].n_blocks == 0) {
      channel_reader *reader = NULL;
      HF_TRY(reader_new(t, edge, &reader, error));
      channel_reader_free(reader);
    }
  }
  return HF_OK;
}

/* --------------------------------------------------------------------- writing */

static hf_status open_writer(task_run *t, hf_error *error) {
  streaming_run *run = run_of(t);
  const stage_output *out = &t->plan.output;
  uint64_t most = bound_of(t->job) > 2 ? bound_of(t->job) / 2 : 1;
  size_t n = 0;
  size_t *edges = arena_array(t->memory, run->n_edges, sizeof *edges);
  if (edges == NULL) {
    return harness_no_memory(error);
  }
  for (size_t i = 0; i < run->n_edges; i++) {
    if (run->edges[i].from == t->stage) {
      edges[n++] = i;
    }
  }
  const channel_writer_options options = {.task = number_of(t),
                                          .number = t->number,
                                          .n_edges = n,
                                          .edges = edges,
                                          .budget_bytes = out->budget_bytes,
                                          .batch_bytes = out->batch_bytes < most ? out->batch_bytes : most,
                                          .batch_rows = t->job->config->batch_rows};
  channel_writer *writer = NULL;
  HF_TRY(channel_writer_new(run->set, &options, &writer, error));
  t->writer = writer;
  t->sink_ops = channel_writer_ops();
  t->sink = writer;
  return HF_OK;
}

/* From here on another task's failure interrupts the instance. */
static hf_status begin_statement(task_run *t, hf_error *error) {
  streaming_run *run = run_of(t);
  pthread_mutex_lock(&run->lock);
  bool is_over = run->is_over;
  if (!is_over) {
    task_of(t)->running = t->instance;
  }
  pthread_mutex_unlock(&run->lock);
  return is_over ? error_set(error, HF_E_CANCELLED, "another task of the run has failed") : HF_OK;
}

/* Nobody interrupts any more, and who came too late does not meet what runs there next. */
static void end_statement(task_run *t) {
  streaming_run *run = run_of(t);
  pthread_mutex_lock(&run->lock);
  engine *running = task_of(t)->running;
  task_of(t)->running = NULL;
  pthread_mutex_unlock(&run->lock);
  if (running != NULL) {
    engine_interrupt_reset(running);
  }
}

static hf_status open_output(task_run *t, hf_error *error) {
  HF_TRY(close_unopened(t, error));
  HF_TRY(is_last(t) ? blocking_exchange.open_output(t, error) : open_writer(t, error));
  return begin_statement(t, error);
}

static hf_status commit(task_run *t, hf_error *error) {
  end_statement(t);
  if (is_last(t)) {
    return blocking_exchange.commit(t, error);
  }
  t->rows = channel_writer_rows(t->writer);
  return channel_writer_finish(t->writer, error);
}

static hf_status kill_task(task_run *t, hf_error *error) {
  return is_last(t) ? blocking_exchange.kill(t, error)
                    : error_set(error, HF_E_TASK_LOST, "the task was killed when it had handed its rows on");
}

static bool is_enough(const task_run *t) {
  return t->writer != NULL && channel_writer_is_unwanted(t->writer);
}

/* Ends what waits at a channel, then what computes. */
static void end_all(streaming_run *run, const hf_error *error) {
  channel_set_fail(run->set, error);
  pthread_mutex_lock(&run->lock);
  run->is_over = true;
  for (size_t i = 0; i < run->n_tasks; i++) {
    if (run->tasks[i].running != NULL) {
      engine_interrupt(run->tasks[i].running); /* under the lock, or it might be closed */
    }
  }
  pthread_mutex_unlock(&run->lock);
}

/* The first to fail is the one that did; those that it ends come after. */
static void fail(task_run *t) {
  streaming_run *run = run_of(t);
  pthread_mutex_lock(&run->lock);
  run->failed = run->failed == NULL ? t : run->failed;
  for (size_t i = 0; i < t->n_inputs; i++) {
    const channel_reader *reader = t->readings[i].channel;
    if (reader != NULL && channel_reader_lacks_keeping(reader)) {
      run->unkept = edge_into(run, t->stage, t->readings[i].number);
    }
  }
  pthread_mutex_unlock(&run->lock);
  end_all(run, &t->error);
}

static void close_all(task_run *t) {
  end_statement(t);
  if (t->status != HF_OK) {
    fail(t); /* before the writer goes, which would say so in other words */
  }
  for (size_t i = 0; i < t->n_inputs; i++) {
    channel_reader_free(t->readings[i].channel);
    t->readings[i].channel = NULL;
  }
  channel_writer_free(t->writer);
  t->writer = NULL;
  blocking_exchange.close(t);
}

static const exchange_kind streaming_exchange = {.open_input = open_input,
                                                 .open_output = open_output,
                                                 .commit = commit,
                                                 .kill = kill_task,
                                                 .is_enough = is_enough,
                                                 .close = close_all};

/* --------------------------------------------------------------------- tasks */

static void *task_main(void *context) {
  streaming_task *own = context;
  task_run *t = own->task;
  task_execute(t, own->slot);
  if (t->status != HF_OK) {
    t->n_inputs = 0; /* closed */
    fail(t);         /* when it had no instance, it was not closed */
  }
  channel_set_end_task(own->run->set, number_of(t));
  return NULL;
}

/* All together: a task that did not begin would be waited for. */
static hf_status run_tasks(streaming_run *run, hf_error *error) {
  hf_status status = HF_OK;
  size_t n = 0;
  for (; status == HF_OK && n < run->n_tasks; n += status == HF_OK ? 1 : 0) {
    status = thread_start(&run->tasks[n].thread, 0, task_main, &run->tasks[n], "hf-slot", error);
  }
  if (status != HF_OK) {
    const hf_error none = {.code = status};
    end_all(run, error == NULL ? &none : error);
  }
  for (size_t i = 0; i < n; i++) {
    pthread_join(run->tasks[i].thread, NULL);
  }
  return status;
}

static hf_status make_tasks(streaming_run *run, hf_error *error) {
  job_run *j = run->job;
  const query_plan *plan = j->plan;
  run->first_task = arena_array(j->memory, plan->n_stages, sizeof *run->first_task);
  for (size_t s = 0; run->first_task != NULL && s < plan->n_stages; s++) {
    run->first_task[s] = (uint32_t)run->n_tasks;
    run->n_tasks += plan->stages[s].n_tasks;
  }
  run->tasks = arena_array(j->memory, run->n_tasks, sizeof *run->tasks);
  task_run **all = arena_array(j->memory, run->n_tasks, sizeof(task_run *));
  if (run->first_task == NULL || run->tasks == NULL || all == NULL) {
    return harness_no_memory(error);
  }
  size_t n = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    for (uint32_t t = 0; t < plan->stages[s].n_tasks; t++) {
      HF_TRY(job_add_attempt(j, s, t, &all[n++], error));
    }
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(job_tell(j, all[i], error));
  }
  job_shuffle(j, all, n);
  for (size_t i = 0; i < n; i++) {
    run->tasks[i] = (streaming_task){.run = run, .task = all[i], .slot = i};
  }
  return HF_OK;
}

static hf_status make_channels(streaming_run *run, hf_error *error) {
  job_run *j = run->job;
  const block_ref all = {.session = j->h->session, .job = {j->plan->job}};
  const char *dir = harness_dir(j->h, &all, j->memory);
  channel_edge *edges = arena_array(j->memory, run->n_edges, sizeof *edges);
  const char *spool = dir == NULL ? NULL : arena_printf(j->memory, "%s/channels", dir);
  if (edges == NULL || spool == NULL) {
    return harness_no_memory(error);
  }
  for (size_t i = 0; i < run->n_edges; i++) {
    edges[i] = run->edges[i].channel;
  }
  const channel_set_options options = {.n_edges = run->n_edges,
                                       .edges = edges,
                                       .tasks = (uint32_t)run->n_tasks,
                                       .bound_bytes = bound_of(j),
                                       .spool_dir = spool};
  return channel_set_new(&options, &run->set, error);
}

/* ----------------------------------------------------------------------- a try */

/* All have succeeded: what must be true of the channels is. */
static hf_status settle(streaming_run *run, hf_error *error) {
  job_run *j = run->job;
  HF_TRY(channel_set_check(run->set, error));
  for (size_t i = 0; i < run->n_tasks; i++) {
    task_run *t = run->tasks[i].task;
    j->done[t->stage][t->number] = t;
  }
  for (size_t i = 0; i < run->n_edges; i++) {
    channel_stats stats;
    channel_set_stats(run->set, i, &stats);
    run->edges[i].spooled_frames = stats.spooled_frames;
  }
  return HF_OK;
}

/* *again: a task was lost, or an input is read again and was not kept. */
static hf_status run_once(streaming_run *run, bool *again, hf_error *error) {
  *again = false;
  HF_TRY(make_tasks(run, error));
  HF_TRY(make_channels(run, error));
  hf_status status = run_tasks(run, error);
  if (status == HF_OK && run->failed == NULL) {
    return settle(run, error);
  }
  if (status == HF_OK && run->unkept != NULL) {
    run->unkept->channel.keeps = true;
    *again = true;
  } else if (status == HF_OK && run->failed->status == HF_E_TASK_LOST) {
    *again = true;
  } else if (status == HF_OK) {
    status = job_give_up(run->failed, error);
  }
  return status;
}

static void run_reset(streaming_run *run) {
  channel_set_free(run->set);
  for (size_t i = 0; i < run->n_tasks && run->tasks != NULL; i++) {
    if (run->tasks[i].task != NULL) {
      hf_error_reset(&run->tasks[i].task->error);
    }
  }
  pthread_mutex_destroy(&run->lock);
}

hf_status streaming_execute(job_run *j, hf_error *error) {
  streaming_edge *edges = NULL;
  size_t n_edges = 0;
  bool again = true;
  hf_status status = streaming_edges(j, &edges, &n_edges, error);
  j->exchange = &streaming_exchange;
  j->edges = edges;
  j->n_edges = n_edges;
  while (status == HF_OK && again) {
    streaming_run run = {.job = j, .n_edges = n_edges, .edges = edges};
    pthread_mutex_init(&run.lock, NULL);
    j->channels = &run;
    status = run_once(&run, &again, error);
    j->restarts += again ? 1 : 0;
    j->channels = NULL;
    run_reset(&run);
  }
  return status;
}

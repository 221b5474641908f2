/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs of stages, drawn from a seed: every task reads its inputs in a random
 * order, by one or several threads, and hands on what it reads. All rows arrive, the
 * invariants hold, nothing hangs. HF_CHANNEL_SEED=n picks another course.
 */
#include "rig.h"

enum { MOST_STAGES = 5, MOST_TASKS = 4, MOST_INPUTS = 3 };

typedef struct stage {
  uint32_t tasks, partitions;
  size_t n_inputs, n_outputs;
  size_t inputs[MOST_INPUTS], outputs[RIG_MOST_EDGES]; /* edges */
} stage;

typedef struct graph {
  rig r;
  uint64_t random;
  size_t n_stages;
  stage stages[MOST_STAGES];
  bool stops_early, fails;
} graph;

typedef struct stress_task {
  graph *g;
  const stage *of;
  uint32_t task, number; /* of the set's; of the stage's */
  uint64_t random;
  _Atomic uint64_t rows, sum; /* read */
  hf_status status;
  hf_error error;
  pthread_t thread;
} stress_task;

static uint64_t draw(uint64_t *random, uint64_t limit) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random % limit;
}

/* A later stage reads one to three earlier ones; a stage that nobody reads is read by the last. */
static void add_input(graph *g, size_t to, size_t from) {
  stage *writer = &g->stages[from];
  stage *reader = &g->stages[to];
  if (g->r.n_edges == RIG_MOST_EDGES || reader->n_inputs == MOST_INPUTS) {
    return;
  }
  bool can_split = writer->partitions == 1;
  uint64_t kind = draw(&g->random, 3);
  channel_share share = kind == 0 && can_split ? CHANNEL_SPLIT : kind == 1 ? CHANNEL_ALL : CHANNEL_PARTITION;
  reader->inputs[reader->n_inputs++] = g->r.n_edges;
  writer->outputs[writer->n_outputs++] = g->r.n_edges;
  channel_edge *edge = rig_edge(&g->r, writer->tasks, reader->tasks, share);
  edge->partitions = writer->partitions;
  edge->ordered = draw(&g->random, 3) == 0;
  edge->spools = draw(&g->random, 4) == 0;
  edge->keeps = draw(&g->random, 8) == 0;
}

static void make_graph(graph *g, uint64_t seed) {
  memset(g, 0, sizeof *g);
  g->random = seed * 0x9e3779b97f4a7c15u + 1;
  rig_open(&g->r);
  g->r.options.bound_bytes = (uint64_t)1 << (9 + draw(&g->random, 6));
  g->n_stages = 2 + draw(&g->random, MOST_STAGES - 1);
  for (size_t i = 0; i < g->n_stages; i++) {
    g->stages[i].tasks = 1 + (uint32_t)draw(&g->random, MOST_TASKS);
    g->stages[i].partitions = draw(&g->random, 2) == 0 ? 1 : 2 + (uint32_t)draw(&g->random, 6);
    for (uint64_t n = i == 0 ? 0 : 1 + draw(&g->random, 2); n > 0; n--) {
      add_input(g, i, draw(&g->random, i));
    }
  }
  g->stops_early = draw(&g->random, 4) == 0;
  g->fails = draw(&g->random, 8) == 0;
}

/* ---------------------------------------------------------------------- tasks */

typedef struct scan_thread {
  stress_task *of;
  void *scan;
  uint64_t most;
  hf_status status;
  hf_error error;
  pthread_t thread;
} scan_thread;

static void *scan_run(void *context) {
  scan_thread *s = context;
  void *state = NULL;
  uint64_t rows = 0;
  s->status = channel_reader_ops()->thread_open(s->scan, &state, &s->error);
  while (s->status == HF_OK && rows < s->most) {
    struct ArrowArray window = {0};
    s->status = channel_reader_ops()->next(state, &window, &s->error);
    if (s->status != HF_OK || window.length == 0) {
      break;
    }
    const int64_t *numbers = window.children[0]->buffers[1];
    uint64_t sum = 0;
    for (int64_t i = 0; i < window.length; i++) {
      sum += (uint64_t)numbers[window.children[0]->offset + i];
    }
    rows += (uint64_t)window.length;
    atomic_fetch_add(&s->of->rows, (uint64_t)window.length);
    atomic_fetch_add(&s->of->sum, sum);
    window.release(&window);
  }
  if (state != NULL) {
    channel_reader_ops()->thread_close(state);
  }
  return NULL;
}

static hf_status read_input(stress_task *t, channel_reader *reader, unsigned threads) {
  static const size_t columns[] = {0};
  scan_thread scans[2] = {0};
  void *scan = NULL;
  unsigned allowed = 1;
  HF_TRY(channel_reader_ops()->open(reader, columns, 1, &scan, &allowed, &t->error));
  threads = threads < allowed ? threads : allowed;
  uint64_t most = t->g->stops_early && draw(&t->random, 2) == 0 ? draw(&t->random, 500) : UINT64_MAX;
  for (unsigned i = 0; i < threads; i++) {
    scans[i] = (scan_thread){.of = t, .scan = scan, .most = most};
    pthread_create(&scans[i].thread, NULL, scan_run, &scans[i]);
  }
  hf_status status = HF_OK;
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(scans[i].thread, NULL);
    if (status == HF_OK && scans[i].status != HF_OK) {
      status = scans[i].status;
      error_move(&t->error, &scans[i].error);
    }
    hf_error_reset(&scans[i].error);
  }
  channel_reader_ops()->close(scan);
  return status;
}

/* All inputs, in a random order; they are opened before anything is read, as DuckDB does. */
static hf_status read_all(stress_task *t) {
  channel_reader *readers[MOST_INPUTS] = {0};
  unsigned threads[MOST_INPUTS];
  hf_status status = HF_OK;
  for (size_t i = 0; status == HF_OK && i < t->of->n_inputs; i++) {
    threads[i] = 1 + (unsigned)draw(&t->random, 2);
    channel_reader_options options = {
        .task = t->task, .number = t->number, .edge = t->of->inputs[i], .threads = threads[i]};
    status = channel_reader_new(t->g->r.set, &options, &readers[i], &t->error);
  }
  size_t first = t->of->n_inputs == 0 ? 0 : draw(&t->random, t->of->n_inputs);
  for (size_t i = 0; status == HF_OK && i < t->of->n_inputs; i++) {
    size_t at = (first + i) % t->of->n_inputs;
    status = read_input(t, readers[at], threads[at]);
  }
  for (size_t i = 0; i < t->of->n_inputs; i++) {
    channel_reader_free(readers[i]);
  }
  return status;
}

/* Numbered rows of its own; the texts make frames of many sizes. */
static hf_status write_all(stress_task *t, channel_writer *writer) {
  void *state = NULL;
  const sink_ops *ops = channel_writer_ops();
  hf_status status = ops->open(writer, &t->g->r.schema, &state, &t->error);
  uint64_t arrays = draw(&t->random, 20);
  for (uint64_t i = 0; status == HF_OK && i < arrays; i++) {
    uint32_t numbers[200];
    struct ArrowArray rows;
    int64_t n = 1 + (int64_t)draw(&t->random, 200);
    rig_rows(&t->g->r.schema, (int64_t)(t->task * 100000 + i * 1000), n, &rows);
    for (int64_t k = 0; k < n; k++) {
      numbers[k] = (uint32_t)draw(&t->random, t->of->partitions);
    }
    status = ops->append(state, &rows, t->of->partitions > 1 ? numbers : NULL, &t->error);
    rows.release(&rows);
  }
  if (status == HF_OK && t->g->fails && draw(&t->random, 3) == 0) {
    status = error_set(&t->error, HF_E_QUERY, "the test wants it so");
  }
  if (status == HF_OK) {
    status = ops->close(state, &t->error);
  }
  if (state != NULL) {
    ops->discard(state);
  }
  if (status == HF_E_CANCELLED && channel_writer_is_unwanted(writer)) {
    hf_error_reset(&t->error);
    status = HF_OK;
  }
  return status == HF_OK ? channel_writer_finish(writer, &t->error) : status;
}

static void *task_run(void *context) {
  stress_task *t = context;
  channel_writer *writer = NULL;
  channel_writer_options options = {.task = t->task,
                                    .number = t->number,
                                    .n_edges = t->of->n_outputs,
                                    .edges = t->of->outputs,
                                    .batch_bytes = (uint64_t)256 << draw(&t->random, 5)};
  if (t->of->n_outputs > 0) {
    t->status = channel_writer_new(t->g->r.set, &options, &writer, &t->error);
  }
  if (t->status == HF_OK) {
    t->status = read_all(t);
  }
  if (t->status == HF_OK && writer != NULL) {
    t->status = write_all(t, writer);
  }
  if (t->status != HF_OK) {
    channel_set_fail(t->g->r.set, &t->error);
  }
  channel_writer_free(writer);
  channel_set_end_task(t->g->r.set, t->task);
  return NULL;
}

/* -------------------------------------------------------------------- verdict */

static void judge(graph *g, const stress_task *tasks, size_t n_tasks, uint64_t seed) {
  hf_status found = HF_OK;
  for (size_t i = 0; i < n_tasks; i++) {
    bool is_right = tasks[i].status == HF_OK || (g->fails && tasks[i].status == HF_E_QUERY);
    if (!is_right) {
      fail_msg("seed %llu: task %zu: %s", (unsigned long long)seed, i, tasks[i].error.message);
    }
    found = found == HF_OK ? tasks[i].status : found;
  }
  rig_check(&g->r, found);
  for (size_t e = 0; e < g->r.n_edges; e++) {
    channel_stats stats = rig_stats(&g->r, e);
    uint64_t most = g->r.options.bound_bytes;
    assert_true(stats.peak_bytes <= most || stats.peak_bytes <= most + (16 << 10));
    if (found == HF_OK && stats.cut_short == 0) {
      assert_int_equal(stats.rows_read, stats.rows_delivered);
    }
  }
}

static void run_seed(uint64_t seed) {
  graph g;
  stress_task tasks[MOST_STAGES * MOST_TASKS];
  uint32_t n = 0;
  make_graph(&g, seed);
  memset(tasks, 0, sizeof tasks);
  for (size_t s = 0; s < g.n_stages; s++) {
    for (uint32_t t = 0; t < g.stages[s].tasks; t++, n++) {
      tasks[n].g = &g;
      tasks[n].of = &g.stages[s];
      tasks[n].task = n;
      tasks[n].number = t;
      tasks[n].random = seed * 1000 + n + 1;
    }
  }
  rig_start(&g.r, n);
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(pthread_create(&tasks[i].thread, NULL, task_run, &tasks[i]), 0);
  }
  for (uint32_t i = 0; i < n; i++) {
    pthread_join(tasks[i].thread, NULL);
  }
  judge(&g, tasks, n, seed);
  for (uint32_t i = 0; i < n; i++) {
    hf_error_reset(&tasks[i].error);
  }
  rig_close(&g.r);
}

static void channel_stress_of_random_graphs_holds_its_invariants(void **state) {
  (void)state;
  const char *given = getenv("HF_CHANNEL_SEED");
  uint64_t first = given == NULL ? 1 : strtoull(given, NULL, 10);
  uint64_t n = getenv("HF_CHANNEL_SEEDS") == NULL ? 300 : strtoull(getenv("HF_CHANNEL_SEEDS"), NULL, 10);
  for (uint64_t seed = first; seed < first + n; seed++) {
    run_seed(seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channel_stress_of_random_graphs_holds_its_invariants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

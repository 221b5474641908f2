/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be true of every run, whatever the query:
 *
 *   W1  what the tasks of a stage are given of an edge is what was written: once, or
 *       once for each of them where each reads all;
 *   W2  a scan that comes to its end has had the rows that its task was given, and no
 *       scan more;
 *   W3  no part of an attempt is given twice to one task;
 *   W4  rows that were dealt by hash are hashed again by the task that reads them, and are
 *       of its partitions (streaming: afterwards, and not with channels of a given size, since the rows
 *       are kept for it);
 *   W5  where batches of one row were asked for, no array from another stage has more.
 *
 * A violation is an error INTERNAL that names it. Thread: W1 as job.c, the rest a slot's.
 */
#include "harness_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------- W2 */

struct watch {
  const source_ops *ops;
  void *source;
  uint64_t rows;            /* to come; UINT64_MAX: not known */
  _Atomic uint64_t most;    /* rows of the scan that had most */
  _Atomic uint64_t n_scans; /* that were closed */
  _Atomic uint64_t n_wrong; /* thereof: came to their end with other rows, or had too many */
  _Atomic uint64_t n_early; /* thereof: did not come to their end */
  _Atomic int64_t longest;  /* array */
};

typedef struct watched_scan {
  watch *watch;
  void *inner;
  _Atomic uint64_t rows;
  atomic_bool has_ended;
} watched_scan;

typedef struct watched_thread {
  watched_scan *scan;
  void *inner;
} watched_thread;

static hf_status scan_open(void *watched, const size_t *columns, size_t n_columns, void **scan,
                           unsigned *threads, hf_error *error) {
  watch *w = watched;
  watched_scan *made = mem_zalloc(1, sizeof *made);
  if (made == NULL) {
    return harness_no_memory(error);
  }
  made->watch = w;
  hf_status status = w->ops->open(w->source, columns, n_columns, &made->inner, threads, error);
  if (status != HF_OK) {
    mem_free(made);
    return status;
  }
  *scan = made;
  return HF_OK;
}

static hf_status thread_open(void *scan, void **state, hf_error *error) {
  watched_scan *s = scan;
  watched_thread *made = mem_zalloc(1, sizeof *made);
  if (made == NULL) {
    return harness_no_memory(error);
  }
  made->scan = s;
  hf_status status = s->watch->ops->thread_open(s->inner, &made->inner, error);
  if (status != HF_OK) {
    mem_free(made);
    return status;
  }
  *state = made;
  return HF_OK;
}

static hf_status next(void *state, struct ArrowArray *out, hf_error *error) {
  watched_thread *t = state;
  HF_TRY(t->scan->watch->ops->next(t->inner, out, error));
  atomic_fetch_add(&t->scan->rows, (uint64_t)out->length);
  if (out->length > atomic_load(&t->scan->watch->longest)) {
    atomic_store(&t->scan->watch->longest, out->length);
  }
  if (out->length == 0) {
    atomic_store(&t->scan->has_ended, true);
  }
  return HF_OK;
}

static void thread_close(void *state) {
  watched_thread *t = state;
  t->scan->watch->ops->thread_close(t->inner);
  mem_free(t);
}

static void scan_close(void *scan) {
  watched_scan *s = scan;
  watch *w = s->watch;
  bool has_ended = atomic_load(&s->has_ended), is_known = w->rows != UINT64_MAX;
  uint64_t rows = atomic_load(&s->rows);
  atomic_fetch_add(&w->n_scans, 1);
  atomic_fetch_add(&w->n_early, has_ended ? 0 : 1);
  atomic_fetch_add(&w->n_wrong, is_known && (rows > w->rows || (has_ended && rows < w->rows)) ? 1 : 0);
  if (rows > atomic_load(&w->most)) {
    atomic_store(&w->most, rows);
  }
  w->ops->close(s->inner);
  mem_free(s);
}

static const source_ops operations = {.open = scan_open,
                                      .thread_open = thread_open,
                                      .next = next,
                                      .thread_close = thread_close,
                                      .close = scan_close};

const source_ops *watch_ops(void) {
  return &operations;
}

watch *watch_new(const source_ops *ops, void *inner, uint64_t rows, arena *a) {
  watch *w = arena_alloc(a, sizeof *w);
  if (w != NULL) {
    w->ops = ops;
    w->source = inner;
    w->rows = rows;
  }
  return w;
}

static bool is_of_stage(const task_run *t, size_t at) {
  return t->job->plan->stages[t->stage].inputs[t->readings[at].number].is_stage;
}

hf_status watch_reads(task_run *t, hf_error *error) {
  for (size_t i = 0; i < t->n_inputs; i++) {
    const watch *w = t->readings[i].watch;
    task_given *given = &t->given[t->readings[i].number];
    uint64_t n_scans = atomic_load(&w->n_scans);
    given->rows = w->rows == UINT64_MAX ? atomic_load(&w->most) : w->rows;
    given->is_cut_short = n_scans == 0 || atomic_load(&w->n_early) == n_scans;
    if (atomic_load(&w->n_wrong) > 0) {
      return error_set(error, HF_E_INTERNAL,
                       "a scan of input %zu had not the %" PRIu64 " rows that the task was given: %" PRIu64,
                       t->readings[i].number, w->rows, atomic_load(&w->most));
    }
    if (is_of_stage(t, i) && t->job->config->batch_rows == 1 && atomic_load(&w->longest) > 1) {
      return error_set(error, HF_E_INTERNAL, "a batch of input %zu has more than one row: %" PRId64,
                       t->readings[i].number, (int64_t)atomic_load(&w->longest));
    }
  }
  return HF_OK;
}

/* ------------------------------------------------------------------------- W3 */

static bool same_attempt(const block_ref *a, const block_ref *b) {
  return uuid_equal(&a->session, &b->session) && a->job.value == b->job.value &&
         a->stage.value == b->stage.value && a->task.value == b->task.value;
}

/* Numbers [first, first + count); count 0: all. */
static bool meet(uint32_t first_a, uint32_t count_a, uint32_t first_b, uint32_t count_b) {
  return count_a == 0 || count_b == 0 || (first_a < first_b + count_b && first_b < first_a + count_a);
}

static bool overlap(const block_ref *a, const block_ref *b) {
  bool same_partitions = meet(a->partition_first, a->partition_count, b->partition_first, b->partition_count);
  bool same_share = a->share_of == 0 || b->share_of == 0 || a->share_of != b->share_of ||
                    meet(a->share_first, a->share_count, b->share_first, b->share_count);
  return same_attempt(a, b) && same_partitions && same_share;
}

static bool has_overlap(const task_input *told) {
  for (size_t a = 0; a < told->n_blocks; a++) {
    for (size_t b = 0; b < a; b++) {
      if (overlap(&told->blocks[a], &told->blocks[b])) {
        return true;
      }
    }
  }
  return false;
}

hf_status watch_refs(const task_run *t, hf_error *error) {
  for (size_t i = 0; i < t->told.n_inputs; i++) {
    if (has_overlap(&t->told.inputs[i])) {
      return error_set(error, HF_E_INTERNAL, "a task is given blocks twice of one input: %zu", i);
    }
  }
  return HF_OK;
}

/* ------------------------------------------------------------------------- W4 */

/* SELECT count(*) of the rows whose partition is not one of the task's. */
static void write_check(const cut_stage *from, const schema *columns, const task_reading *reading,
                        const block_ref *told, buf *out) {
  buf_text(out, "SELECT count(*) FROM (");
  for (size_t i = 0; i < from->n_partition_pieces; i++) {
    const cut_piece *piece = &from->partition_pieces[i];
    if (piece->text != NULL) {
      buf_text(out, piece->text);
    } else {
      buf call = {0};
      buf_printf(&call, "hf_blocks('%zu')", reading->number);
      lower_scan_sql(columns, buf_cstr(&call), true, out);
      out->failed = out->failed || call.failed;
      buf_reset(&call);
    }
  }
  buf_printf(out, ") AS t(p) WHERE p < %u OR p >= %u", told->partition_first,
             told->partition_first + told->partition_count);
}

static bool take_count(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                       size_t n_rows) {
  uint64_t *strays = context;
  if (n_rows > 0 && lengths[0][0] > 0) {
    *strays = strtoull(cells[0][0], NULL, 10);
  }
  return true;
}

static hf_status hash_again(const task_run *t, size_t at, const cut_stage *from, hf_error *error) {
  const task_reading *reading = &t->readings[at];
  engine_input input = t->inputs[at];
  uint64_t strays = UINT64_MAX;
  buf sql = {0};
  bool is_channel = reading->channel != NULL;
  input.ops = is_channel ? channel_reader_ops() : block_input_ops(); /* not through the watch */
  input.source = is_channel ? (void *)reading->channel : (void *)reading->blocks;
  write_check(from, &t->plan.inputs[reading->number].columns, reading, t->told.inputs[reading->number].blocks,
              &sql);
  const engine_shown shown = {.sql = buf_cstr(&sql), .inputs = &input, .n_inputs = 1};
  hf_status status =
      sql.failed ? harness_no_memory(error) : engine_render(t->instance, &shown, take_count, &strays, error);
  buf_reset(&sql);
  if (status == HF_OK && strays != 0) {
    status = error_set(error, HF_E_INTERNAL,
                       "rows of input %zu are in another partition than their hash says: %" PRIu64 " rows",
                       reading->number, strays);
  }
  return status;
}

bool watch_keeps(const job_run *j, const planned_input *input) {
  return j->config->channel_bytes == 0 && input->share == CUT_PARTITION &&
         j->plan->stages[input->from].cut->n_partition_pieces > 0;
}

/* Whether the rows can be read once more than the task does. */
static bool is_kept(const task_run *t, size_t at, const planned_input *input, bool is_after) {
  return is_after ? t->readings[at].channel != NULL && watch_keeps(t->job, input)
                  : t->readings[at].blocks != NULL;
}

hf_status watch_partitions(const task_run *t, bool is_after, hf_error *error) {
  const planned_stage *stage = &t->job->plan->stages[t->stage];
  for (size_t i = 0; i < t->n_inputs; i++) {
    const planned_input *input = &stage->inputs[t->readings[i].number];
    const cut_stage *from = input->is_stage ? t->job->plan->stages[input->from].cut : NULL;
    if (from != NULL && input->share == CUT_PARTITION && from->n_partition_pieces > 0 && stage->n_tasks > 1 &&
        is_kept(t, i, input, is_after)) {
      HF_TRY(hash_again(t, i, from, error));
    }
  }
  return HF_OK;
}

/* ------------------------------------------------------------------------- W1 */

static uint64_t written_by(const job_run *j, uint32_t stage) {
  uint64_t rows = 0;
  for (uint32_t t = 0; t < j->plan->stages[stage].n_tasks; t++) {
    rows += j->done[stage][t]->rows;
  }
  return rows;
}

static hf_status watch_edge(const job_run *j, uint32_t stage, size_t number, hf_error *error) {
  const planned_stage *reader = &j->plan->stages[stage];
  const planned_input *input = &reader->inputs[number];
  uint64_t written = written_by(j, input->from), given = 0,
           times = input->share == CUT_ALL ? reader->n_tasks : 1;
  bool is_cut_short = false;
  for (uint32_t t = 0; t < reader->n_tasks; t++) {
    const task_given *of_task = &j->done[stage][t]->given[number];
    given += of_task->rows;
    is_cut_short = is_cut_short || of_task->is_cut_short;
  }
  bool is_exact =
      j->exchange == &blocking_exchange || !is_cut_short; /* a channel that was closed gives no more */
  if (given > written * times || (is_exact && given != written * times)) {
    return error_set(error, HF_E_INTERNAL,
                     "stage %u wrote %" PRIu64 " rows, and input %zu of stage %u was given %" PRIu64
                     ", expected %" PRIu64,
                     input->from + 1, written, number, stage + 1, given, written * times);
  }
  return HF_OK;
}

hf_status watch_edges(const job_run *j, hf_error *error) {
  for (uint32_t s = 0; s < j->plan->n_stages; s++) {
    for (size_t i = 0; i < j->plan->stages[s].n_inputs; i++) {
      if (j->plan->stages[s].inputs[i].is_stage) {
        HF_TRY(watch_edge(j, s, i, error));
      }
    }
  }
  return HF_OK;
}

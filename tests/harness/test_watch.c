/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of every run: each is seen to fail where something is wrong. */
#include "harness/harness_internal.h"

#include "rig.h"

/* ------------------------------------------------------------------- scans */

/* A source of `n_arrays` arrays of ten rows without columns. */
typedef struct fake {
  int n_arrays, given;
} fake;

static hf_status fake_open(void *made, const size_t *columns, size_t n_columns, void **scan,
                           unsigned *threads, hf_error *error) {
  (void)columns, (void)n_columns, (void)error;
  *threads = 1;
  *scan = made;
  ((fake *)made)->given = 0;
  return HF_OK;
}

static hf_status fake_thread_open(void *scan, void **state, hf_error *error) {
  (void)error;
  *state = scan;
  return HF_OK;
}

static hf_status fake_next(void *state, struct ArrowArray *out, hf_error *error) {
  fake *f = state;
  (void)error;
  *out = (struct ArrowArray){.length = f->given < f->n_arrays ? 10 : 0};
  f->given++;
  return HF_OK;
}

static void fake_close(void *part) {
  (void)part;
}

static const source_ops fake_ops = {.open = fake_open,
                                    .thread_open = fake_thread_open,
                                    .next = fake_next,
                                    .thread_close = fake_close,
                                    .close = fake_close};

/* What the watch says when so many arrays come where `rows` are to come, and `reads` are asked for. */
static hf_status scan(int n_arrays, uint64_t rows, int reads, task_given *given, hf_error *error) {
  arena *a = arena_new();
  fake f = {.n_arrays = n_arrays};
  const planned_input input = {.is_stage = true};
  const planned_stage stage = {.n_tasks = 1, .n_inputs = 1, .inputs = &input};
  const hf_harness_config how = {.tasks = 1, .slots = 1};
  query_plan plan = {.n_stages = 1, .stages = (planned_stage *)&stage};
  job_run job = {.plan = &plan, .config = &how};
  task_reading reading = {.watch = watch_new(&fake_ops, &f, rows, a)};
  task_run task = {.job = &job, .n_inputs = 1, .readings = &reading, .given = given};
  const source_ops *ops = watch_ops();
  void *opened = NULL, *thread = NULL;
  unsigned threads = 0;
  struct ArrowArray array;
  assert_int_equal(ops->open(reading.watch, NULL, 0, &opened, &threads, error), HF_OK);
  assert_int_equal(ops->thread_open(opened, &thread, error), HF_OK);
  for (int i = 0; i < reads; i++) {
    assert_int_equal(ops->next(thread, &array, error), HF_OK);
  }
  ops->thread_close(thread);
  ops->close(opened);
  hf_status status = watch_reads(&task, error);
  arena_free(a);
  return status;
}

static void scan_that_ends_must_have_had_its_rows(void **state) {
  (void)state;
  task_given given = {0};
  hf_error error = {0};
  assert_int_equal(scan(3, 30, 4, &given, &error), HF_OK);
  assert_int_equal(given.rows, 30);
  assert_false(given.is_cut_short);
  assert_int_equal(scan(2, 30, 3, &given, &error), HF_E_INTERNAL); /* a batch was lost */
  assert_non_null(strstr(error.message, "30"));
  assert_int_equal(scan(4, 30, 4, &given, &error), HF_E_INTERNAL); /* one came twice */
  hf_error_reset(&error);
}

static void scan_that_stops_early_is_no_mistake(void **state) {
  (void)state;
  task_given given = {0};
  assert_int_equal(scan(3, 30, 1, &given, NULL), HF_OK);
  assert_true(given.is_cut_short);
  assert_int_equal(scan(3, UINT64_MAX, 4, &given, NULL), HF_OK); /* a channel's rows are not known before */
  assert_int_equal(given.rows, 30);
  assert_false(given.is_cut_short);
}

/* -------------------------------------------------------------------- blocks */

static hf_status refs(const block_ref *a, const block_ref *b) {
  const block_ref both[] = {*a, *b};
  const task_input input = {.n_blocks = 2, .blocks = both};
  const task_run task = {.told = {.n_inputs = 1, .inputs = &input}};
  return watch_refs(&task, NULL);
}

static void block_that_a_task_is_given_twice_is_found(void **state) {
  (void)state;
  const block_ref all = {.job = {1}, .stage = {1}, .task = {1}, .attempt = {1}};
  block_ref other = all, part = all, next = all;
  assert_int_equal(refs(&all, &all), HF_E_INTERNAL);
  other.task.value = 2;
  assert_int_equal(refs(&all, &other), HF_OK);
  other = all;
  other.attempt.value = 2; /* another attempt of the same task has the same rows */
  assert_int_equal(refs(&all, &other), HF_E_INTERNAL);
  part.partition_first = 1;
  part.partition_count = 2;
  next.partition_first = 3;
  next.partition_count = 1;
  assert_int_equal(refs(&part, &next), HF_OK);
  next.partition_first = 2;
  assert_int_equal(refs(&part, &next), HF_E_INTERNAL);
  assert_int_equal(refs(&part, &all), HF_E_INTERNAL);
  part = next = all;
  part.share_of = next.share_of = 3;
  part.share_count = next.share_count = 1;
  next.share_first = 1;
  assert_int_equal(refs(&part, &next), HF_OK);
  next.share_first = 0;
  assert_int_equal(refs(&part, &next), HF_E_INTERNAL);
}

/* --------------------------------------------------------------------- edges */

/* Two tasks wrote ten rows each; the tasks of the next stage are given these. */
static hf_status edge(cut_share share, uint64_t first, uint64_t second, bool is_cut_short) {
  const planned_input input = {.is_stage = true, .from = 0, .share = share};
  planned_stage stages[] = {{.n_tasks = 2}, {.n_tasks = 2, .n_inputs = 1, .inputs = &input}};
  task_given given[] = {{first, is_cut_short}, {second, is_cut_short}};
  task_run writers[] = {{.rows = 10}, {.rows = 10}}, readers[] = {{.given = &given[0]}, {.given = &given[1]}};
  task_run *written[] = {&writers[0], &writers[1]}, *read[] = {&readers[0], &readers[1]};
  task_run **done[] = {written, read};
  const query_plan plan = {.n_stages = 2, .stages = stages};
  const job_run job = {.plan = &plan, .done = done, .exchange = &blocking_exchange};
  return watch_edges(&job, NULL);
}

static void edge_whose_rows_do_not_add_up_is_found(void **state) {
  (void)state;
  assert_int_equal(edge(CUT_PARTITION, 13, 7, false), HF_OK);
  assert_int_equal(edge(CUT_PARTITION, 13, 8, false), HF_E_INTERNAL);
  assert_int_equal(edge(CUT_SPLIT, 10, 9, false), HF_E_INTERNAL);
  assert_int_equal(edge(CUT_PARTITION, 10, 9, true), HF_E_INTERNAL); /* they were given, if not read */
  assert_int_equal(edge(CUT_ALL, 20, 20, false), HF_OK);
  assert_int_equal(edge(CUT_ALL, 20, 10, false), HF_E_INTERNAL);
}

/* ---------------------------------------------------------------- partitions */

typedef struct wrong_hash {
  rig *r;
  const char *text; /* of the partition number; NULL: as it is */
} wrong_hash;

static hf_status run_with(void *context, hf_error *error) {
  const wrong_hash *w = context;
  const hf_harness_config how = {.tasks = 2, .slots = 2};
  query_plan plan;
  job_run job = {0};
  HF_TRY(query_plan_begin(&plan, w->r->h, &how, error));
  hf_status status = query_plan_bind(&plan, "SELECT k, sum(v) FROM t GROUP BY k", error);
  status = status == HF_OK ? query_plan_make(&plan, error) : status;
  for (size_t i = 0; status == HF_OK && w->text != NULL && i < plan.n_stages; i++) {
    cut_stage *stage = (cut_stage *)plan.stages[i].cut;
    if (stage->n_partition_pieces > 0) {
      cut_piece *pieces = arena_array(plan.memory, 3, sizeof *pieces);
      pieces[0].text = w->text;
      pieces[2].text = " AS t(k, a)";
      stage->partition_pieces = pieces;
      stage->n_partition_pieces = 3;
    }
  }
  status = status == HF_OK ? job_begin(&job, &plan, error) : status;
  status = status == HF_OK ? job_execute(&job, error) : status;
  job_remove(w->r->h, plan.job);
  job_reset(&job);
  query_plan_reset(&plan);
  return status;
}

static void rows_in_another_partition_than_their_hash_are_found(void **state) {
  rig *r = *state;
  hf_error error = {0};
  wrong_hash w = {.r = r};
  rig_table(r, "t", "SELECT range % 50 AS k, range AS v FROM range(9000)");
  must(planner_call(r->h, run_with, &w, &error), &error);
  w.text = "SELECT CAST(hash(k) % 2 AS UINTEGER) FROM ";
  must(planner_call(r->h, run_with, &w, &error), &error);
  w.text =
      "SELECT CAST(hash(CAST(k AS VARCHAR)) % 2 AS UINTEGER) FROM "; /* another hash than they were dealt by */
  assert_int_equal(planner_call(r->h, run_with, &w, &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "another partition"));
  hf_error_reset(&error);
}

int main(void) {
  const struct CMUnitTest cases[] = {
      cmocka_unit_test(scan_that_ends_must_have_had_its_rows),
      cmocka_unit_test(scan_that_stops_early_is_no_mistake),
      cmocka_unit_test(block_that_a_task_is_given_twice_is_found),
      cmocka_unit_test(edge_whose_rows_do_not_add_up_is_found),
      cmocka_unit_test_setup_teardown(rows_in_another_partition_than_their_hash_are_found, rig_open,
                                      rig_close),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}

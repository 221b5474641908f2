/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupt and progress of what runs, from other threads. */
#include "store.h"

#include "base/thread.h"

/* A source that never ends by itself, with a place to meet another thread. */
typedef struct endless {
  rig rig;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t given; /* lock: batches */
  int64_t values[2048];
  struct ArrowSchema field, *fields[1], block_schema;
} endless;

typedef struct endless_reader {
  endless *of;
  const void *buffers[2], *no_buffers[1];
  struct ArrowArray child, *children[1];
} endless_reader;

static void release_array(struct ArrowArray *array) {
  array->release = NULL;
}

static void release_schema(struct ArrowSchema *field) {
  field->release = NULL;
}

static hf_status endless_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                              unsigned *threads, hf_error *error) {
  (void)columns;
  (void)n_columns;
  (void)error;
  *scan = source;
  *threads = 2;
  return HF_OK;
}

static hf_status endless_reader_open(void *scan, void **state, hf_error *error) {
  (void)error;
  endless_reader *r = calloc(1, sizeof *r);
  r->of = scan;
  *state = r;
  return HF_OK;
}

static hf_status endless_next(void *state, struct ArrowArray *out, hf_error *error) {
  (void)error;
  endless_reader *r = state;
  r->buffers[1] = r->of->values;
  r->child =
      (struct ArrowArray){.length = 2048, .n_buffers = 2, .buffers = r->buffers, .release = release_array};
  r->children[0] = &r->child;
  *out = (struct ArrowArray){.length = 2048,
                             .n_buffers = 1,
                             .buffers = r->no_buffers,
                             .n_children = 1,
                             .children = r->children,
                             .release = release_array};
  pthread_mutex_lock(&r->of->lock);
  r->of->given++;
  pthread_cond_broadcast(&r->of->changed);
  pthread_mutex_unlock(&r->of->lock);
  return HF_OK;
}

static void endless_reader_close(void *state) {
  free(state);
}

static void endless_close(void *scan) {
  (void)scan;
}

static const source_ops endless_source = {endless_open, endless_reader_open, endless_next,
                                          endless_reader_close, endless_close};
static const data_type bigint = {.kind = TYPE_BIGINT};
static const column bigint_column = {"n", &bigint};
static const schema bigint_columns = {1, &bigint_column};

static int setup(void **state) {
  endless *e = calloc(1, sizeof *e);
  rig_open(&e->rig, 2);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->changed, NULL);
  e->field = (struct ArrowSchema){.format = "l", .name = "c0", .flags = 2, .release = release_schema};
  e->fields[0] = &e->field;
  e->block_schema = (struct ArrowSchema){.format = "+s", .name = "", .n_children = 1, .children = e->fields};
  *state = e;
  return 0;
}

static int teardown(void **state) {
  endless *e = *state;
  rig_close(&e->rig);
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->lock);
  free(e);
  return 0;
}

static hf_status run_endless(endless *e, hf_error *error) {
  store s;
  store_init(&s);
  engine_input input = {.id = "x",
                        .ops = &endless_source,
                        .source = e,
                        .columns = &bigint_columns,
                        .block_schema = &e->block_schema,
                        .rows = 1000000000};
  engine_task task = store_task(&s, "SELECT sum(c0) FROM hf_blocks('x')");
  task.inputs = &input;
  task.n_inputs = 1;
  engine_task_stats stats;
  hf_status status = engine_run_task(e->rig.slot, &task, &stats, error);
  assert_int_equal(s.opened, s.discarded);
  store_reset(&s);
  return status;
}

static void run_one(endless *e) {
  store s;
  store_init(&s);
  store_fill(&s, e->rig.slot, "SELECT 1");
  assert_int_equal(s.rows, 1);
  store_reset(&s);
}

static void wait_for_batches(endless *e, uint64_t wanted) {
  pthread_mutex_lock(&e->lock);
  while (e->given < wanted) {
    pthread_cond_wait(&e->changed, &e->lock);
  }
  pthread_mutex_unlock(&e->lock);
}

static void *interrupt_when_running(void *context) {
  endless *e = context;
  wait_for_batches(e, 10);
  engine_interrupt(e->rig.slot);
  return NULL;
}

static void interrupt_from_another_thread_ends_the_task(void **state) {
  endless *e = *state;
  for (int i = 0; i < 5; i++) {
    pthread_t thread;
    hf_error error = {0};
    e->given = 0;
    assert_ok(thread_start(&thread, 0, interrupt_when_running, e, "test", ok_error));
    assert_int_equal(run_endless(e, &error), HF_E_CANCELLED);
    assert_int_equal(error.error_class, HF_CLASS_USER);
    hf_error_reset(&error);
    pthread_join(thread, NULL);
    run_one(e); /* the instance is as good as before */
  }
}

static void interrupt_before_a_task_is_not_lost(void **state) {
  endless *e = *state;
  hf_error error = {0};
  engine_interrupt(e->rig.slot);
  assert_int_equal(run_endless(e, &error), HF_E_CANCELLED);
  hf_error_reset(&error);
  run_one(e);
}

static void interrupt_that_was_reset_stops_nothing(void **state) {
  endless *e = *state;
  engine_interrupt(e->rig.slot);
  engine_interrupt_reset(e->rig.slot);
  run_one(e);
}

static void interrupt_stops_planning_and_text(void **state) {
  endless *e = *state;
  arena *a = arena_new();
  schema s;
  text_table table;
  const char *json, *why;
  engine *slot = e->rig.slot;
  hf_error error = {0};
  engine_interrupt(slot);
  assert_int_equal(engine_describe(slot, "SELECT 1", a, &s, &error), HF_E_CANCELLED);
  engine_interrupt(slot);
  assert_int_equal(engine_parse(slot, "SELECT 1", a, &json, &error), HF_E_CANCELLED);
  engine_interrupt(slot);
  assert_int_equal(engine_plan_json(slot, "SELECT 1", a, &json, &why, &error), HF_E_CANCELLED);
  engine_interrupt(slot);
  assert_int_equal(engine_query_text(slot, "SELECT 1", a, &table, &error), HF_E_CANCELLED);
  hf_error_reset(&error);
  assert_ok(engine_describe(slot, "SELECT 1", a, &s, ok_error));
  arena_free(a);
}

/* Many interrupts that come whenever they come: each task ends, in one of two ways. */
typedef struct storm {
  endless *e;
  atomic_bool over;
} storm;

static void *interrupt_on_and_on(void *context) {
  storm *s = context;
  while (!atomic_load(&s->over)) {
    double fraction;
    uint64_t rows;
    engine_interrupt(s->e->rig.slot);
    engine_progress(s->e->rig.slot, &fraction, &rows);
  }
  return NULL;
}

static void interrupts_at_any_moment_end_each_task(void **state) {
  storm all = {.e = *state};
  pthread_t thread;
  assert_ok(thread_start(&thread, 0, interrupt_on_and_on, &all, "test", ok_error));
  for (int i = 0; i < 200; i++) {
    hf_error error = {0};
    assert_int_equal(run_endless(all.e, &error), HF_E_CANCELLED);
    hf_error_reset(&error);
  }
  atomic_store(&all.over, true);
  pthread_join(thread, NULL);
  engine_interrupt_reset(all.e->rig.slot);
  run_one(all.e);
}

typedef struct seen {
  endless *e;
  double fraction;
  uint64_t rows;
} seen;

static void *look_when_running(void *context) {
  seen *s = context;
  wait_for_batches(s->e, 50);
  engine_progress(s->e->rig.slot, &s->fraction, &s->rows);
  engine_interrupt(s->e->rig.slot);
  return NULL;
}

static void progress_of_blocks_is_told_while_they_are_read(void **state) {
  seen s = {.e = *state};
  pthread_t thread;
  hf_error error = {0};
  double fraction = 0;
  uint64_t rows = 0;
  engine_progress(s.e->rig.slot, &fraction, &rows);
  assert_true(fraction < 0);
  assert_ok(thread_start(&thread, 0, look_when_running, &s, "test", ok_error));
  assert_int_equal(run_endless(s.e, &error), HF_E_CANCELLED);
  hf_error_reset(&error);
  pthread_join(thread, NULL);
  assert_true(s.fraction > 0 && s.fraction < 1);
  assert_true(s.rows >= 40 * 2048);
  engine_progress(s.e->rig.slot, &fraction, &rows);
  assert_true(fraction < 0);
}

static void executed_statements_leave_what_they_make(void **state) {
  endless *e = *state;
  engine *slot = e->rig.slot;
  hf_error error = {0};
  arena *a = arena_new();
  assert_ok(engine_execute(
      slot, "CREATE TABLE t AS FROM range(5000); CREATE VIEW v AS SELECT 2 * range AS x FROM t", ok_error));
  char *copy =
      arena_printf(a, "COPY (FROM v) TO '%s/v.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)", e->rig.dir);
  assert_ok(engine_execute(slot, copy, ok_error));
  char *text = rig_render(slot, arena_printf(a, "SELECT count(*), max(x) FROM '%s/v.parquet'", e->rig.dir), 2,
                          NULL, 0);
  assert_string_equal(text, "5000|9998\n");
  free(text);
  assert_int_equal(engine_execute(slot, "COPY t TO '/tmp/hf-outside.csv'", &error), HF_E_PATH_REFUSED);
  hf_error_reset(&error);
  assert_int_equal(engine_execute(slot, "CREATE VIEW", &error), HF_E_SYNTAX);
  hf_error_reset(&error);
  engine_interrupt(slot);
  assert_int_equal(engine_execute(slot, "SELECT 1", &error), HF_E_CANCELLED);
  hf_error_reset(&error);
  arena_free(a);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(interrupt_from_another_thread_ends_the_task), CASE(interrupt_before_a_task_is_not_lost),
      CASE(interrupt_that_was_reset_stops_nothing),      CASE(interrupt_stops_planning_and_text),
      CASE(interrupts_at_any_moment_end_each_task),      CASE(progress_of_blocks_is_told_while_they_are_read),
      CASE(executed_statements_leave_what_they_make),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

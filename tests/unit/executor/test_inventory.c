/* SPDX-License-Identifier: Apache-2.0 */
/* A kept work directory at a start: what is claimed stays, the rest goes; blocks that are looked for. */
#include "executor/executor.h"

#include "scratch.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SESSION "0f8fad5b-d9cb-469f-a165-70867728950e"
#define OTHER "0f8fad5b-d9cb-469f-a165-70867728950f"

static scratch place;
static uuid state_id;
static executor *x;

static void ignore(void *context, task_report *report) {
  (void)context;
  task_report_free(report);
}

static void begin(const uuid *keep_id) {
  const char *path = scratch_path(&place, "work");
  executor_options options = {
      .work_dir = path, .keep_id = keep_id, .threads = 1, .memory_bytes = 1 << 26, .report = ignore};
  assert_int_equal(executor_open(&options, &x, NULL), HF_OK);
}

static int before_each(void **state) {
  (void)state;
  scratch_make(&place);
  state_id = uuid_new();
  begin(&state_id);
  return 0;
}

static int after_each(void **state) {
  (void)state;
  executor_close(x);
  scratch_remove(&place);
  return 0;
}

static block_ref ref_of(const char *session, uint64_t job, uint32_t task) {
  block_ref ref = {.job = {job}, .stage = {1}, .task = {task}, .attempt = {1}};
  assert_true(uuid_parse(session, &ref.session));
  return ref;
}

static void make(const char *below) {
  char path[512];
  snprintf(path, sizeof path, "%s/work/%s", place.path, below);
  assert_int_equal(file_make_dirs(path, NULL), HF_OK);
}

static bool is_there(const char *below) {
  char path[512];
  snprintf(path, sizeof path, "%s/work/%s", place.path, below);
  return path_exists(path);
}

static void sweep_moves_what_nobody_claims_and_tells_the_largest_job(void **state) {
  (void)state;
  make(SESSION "/5/1/1-1");
  make(SESSION "/5/1/2-1");
  make(SESSION "/5/2/1-1");
  make(SESSION "/9/1/1-1");
  make(SESSION "/4611686018427387904/1/1-1");
  make(OTHER "/3/1/1-1");
  make("notes/5/1/1-1");
  make(SESSION "/mine");
  const block_ref claims[] = {ref_of(SESSION, 5, 2), ref_of(SESSION, JOBS_END, 1)};
  uint64_t largest = 6;
  assert_int_equal(executor_sweep(x, claims, 2, &largest, NULL), HF_OK);
  assert_int_equal(largest, 9);
  assert_true(is_there(SESSION "/5/1/2-1"));
  assert_true(is_there(SESSION "/4611686018427387904/1/1-1"));
  assert_true(is_there(SESSION "/mine"));
  assert_true(is_there("notes/5/1/1-1"));
  assert_false(is_there(SESSION "/5/1/1-1"));
  assert_false(is_there(SESSION "/5/2"));
  assert_false(is_there(SESSION "/9"));
  assert_false(is_there(OTHER));
  assert_int_equal(entry_count(scratch_path(&place, "work/trash")), 4);
  executor_empty_trash(x);
  assert_false(is_there("trash"));
}

static void sweep_of_a_directory_that_is_not_kept_touches_nothing(void **state) {
  (void)state;
  executor_close(x);
  assert_int_equal(file_remove_tree(scratch_path(&place, "work"), NULL), HF_OK);
  begin(NULL);
  make(SESSION "/5/1/1-1");
  uint64_t largest = 1;
  assert_int_equal(executor_sweep(x, NULL, 0, &largest, NULL), HF_OK);
  assert_int_equal(largest, 1);
  assert_true(is_there(SESSION "/5/1/1-1"));
}

/* Writes blocks where the ref says. */
static void write_blocks(const block_ref *ref) {
  struct ArrowSchema head;
  struct ArrowArray rows;
  struct ArrowArrayStream stream;
  arena *a = arena_new();
  block_index index;
  made_schema("+s(i;u)", &head);
  made_array(&head, &(made_options){.seed = 1, .rows = 100}, &rows);
  made_stream(&head, &rows, 1, false, &stream);
  block_sink_options options = {.dir = executor_attempt_dir(x, ref, a),
                                .partitions = 1,
                                .ordered = true,
                                .budget_bytes = 1 << 20,
                                .batch_bytes = 1 << 16,
                                .block_bytes = 1 << 20};
  assert_int_equal(block_write_stream(&stream, &options, a, &index, NULL), HF_OK);
  arena_free(a);
}

static void blocks_are_there_until_one_is_cut_or_gone(void **state) {
  (void)state;
  const block_ref refs[] = {ref_of(SESSION, 1, 1), ref_of(SESSION, 1, 2)};
  write_blocks(&refs[0]);
  assert_int_equal(executor_check_blocks(x, refs, 2, NULL), HF_E_BLOCK_MISSING);
  write_blocks(&refs[1]);
  assert_int_equal(executor_check_blocks(x, refs, 2, NULL), HF_OK);
  char path[512];
  snprintf(path, sizeof path, "%s/work/" SESSION "/1/1/2-1/t0.arrow", place.path);
  assert_int_equal(truncate(path, 100), 0);
  assert_int_equal(executor_check_blocks(x, refs, 2, NULL), HF_E_BLOCK_MISSING);
  snprintf(path, sizeof path, "%s/work/" SESSION "/1/1/1-1/index", place.path);
  assert_int_equal(truncate(path, 50), 0);
  assert_int_equal(executor_check_blocks(x, refs, 1, NULL), HF_E_BLOCK_CORRUPT);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, before_each, after_each)
  const struct CMUnitTest tests[] = {
      CASE(sweep_moves_what_nobody_claims_and_tells_the_largest_job),
      CASE(sweep_of_a_directory_that_is_not_kept_touches_nothing),
      CASE(blocks_are_there_until_one_is_cut_or_gone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

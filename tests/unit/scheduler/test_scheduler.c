/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with the real parts below: results, errors, cancel, progress, client data, sessions, closing. */
#include "rig.h"

static int set_up(void **state) {
  rig *r = mem_zalloc(1, sizeof *r);
  rig_open(r, 1);
  *state = r;
  return 0;
}

static int tear_down(void **state) {
  rig_close(*state);
  mem_free(*state);
  return 0;
}

#define ENDLESS "SELECT count(*) AS n FROM range(100000000000000) t(i) WHERE hash(i) = 1"

static void scheduler_query_gives_its_rows(void **state) {
  rig *r = *state;
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(i)::BIGINT AS s FROM range(1001) t(i)", &profile), 500500);
  assert_int_equal(profile.tasks_run, 1);
  assert_int_equal(profile.result_rows, 1);
  assert_true(profile.job > 0 && profile.elapsed_us > 0);
}

static void scheduler_query_of_files_counts_its_rows(void **state) {
  rig *r = *state;
  rig_numbers(r, "a.csv", 100);
  rig_numbers(r, "b.csv", 50);
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT AS s FROM '$DIR/*.csv'", &profile), 5050 + 1275);
  assert_int_equal(profile.source_rows, 150);
  assert_int_equal(profile.source_files, 2);
}

static void scheduler_result_files_go_when_let_go(void **state) {
  rig *r = *state;
  relation *what = rig_sql(r, "SELECT 7::BIGINT AS n");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  assert_int_equal(scheduler_run(r->s, &request, NULL, &result, NULL, NULL), HF_OK);
  assert_string_equal(result.columns.columns[0].name, "n");
  assert_int_equal(rig_first(&result), 7);
  assert_true(rig_exists(result.locations[0].dir));
  scheduler_release_result(r->s, result.job);
  rig_await_cleaner(r);
  assert_false(rig_exists(result.locations[0].dir));
  arena_free(result.memory);
  relation_release(what);
}

static hf_status run_sql(rig *r, const char *sql) {
  relation *what = rig_sql(r, sql);
  hf_status status = rig_run_as(r, &r->session, what, NULL, NULL, NULL);
  relation_release(what);
  return status;
}

static void scheduler_error_has_its_code(void **state) {
  rig *r = *state;
  assert_int_equal(run_sql(r, "SELECT nothing FROM range(3) t(i)"), HF_E_COLUMN_NOT_FOUND);
  assert_int_equal(run_sql(r, "SELECT ('x' || i)::INTEGER AS n FROM range(3) t(i)"), HF_E_CAST);
  assert_int_equal(run_sql(r, "SELECT * FROM '$DIR/none.csv'"), HF_E_FILE_NOT_FOUND);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  assert_int_equal(rig_value(r, "SELECT 1::BIGINT", NULL), 1);
}

static void scheduler_cancel_ends_a_running_job(void **state) {
  rig *r = *state;
  rig_thread t = {.watch.cancel = hf_cancel_new()};
  hf_cancel *cancel = t.watch.cancel;
  rig_start(r, &t, ENDLESS);
  rig_await_jobs(r, JOB_RUNNING, 1);
  hf_cancel_signal(cancel);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  hf_cancel_free(cancel);
  assert_int_equal(rig_value(r, "SELECT 2::BIGINT", NULL), 2); /* the slot is free again */
}

static void scheduler_cancel_before_the_start_ends_at_once(void **state) {
  rig *r = *state;
  rig_thread t = {.watch.cancel = hf_cancel_new()};
  hf_cancel *cancel = t.watch.cancel;
  hf_cancel_signal(cancel);
  rig_start(r, &t, ENDLESS);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  hf_cancel_free(cancel);
}

static bool refuse(void *context, double fraction, uint64_t rows) {
  (void)rows;
  assert_true(fraction <= 1);
  return ++*(int *)context < 3;
}

static void scheduler_progress_that_says_no_cancels(void **state) {
  rig *r = *state;
  int calls = 0;
  rig_thread t = {.watch = {.progress = refuse, .progress_context = &calls}};
  rig_start(r, &t, ENDLESS);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_CANCELLED);
  assert_int_equal(calls, 3);
}

/* Writes a result as client data of the session, as session_from_stream does. */
static relation *client_data(rig *r, const job_result *from, char *dir, size_t dir_bytes) {
  struct ArrowArrayStream stream;
  assert_int_equal(block_stream_open(from->locations, from->n_locations, rig_ignore, NULL, &stream, NULL),
                   HF_OK);
  snprintf(dir, dir_bytes, "%s/%s/4611686018427387904/1/1-1", r->work_dir, r->session.text);
  block_sink_options options = {.dir = dir,
                                .columns = &from->columns,
                                .partitions = 1,
                                .ordered = true,
                                .budget_bytes = 1 << 20,
                                .batch_bytes = 1 << 18,
                                .block_bytes = 1 << 18};
  arena *a = arena_new();
  block_index index;
  assert_int_equal(block_write_stream(&stream, &options, a, &index, NULL), HF_OK);
  relation *out = NULL;
  uuid id = uuid_new();
  assert_int_equal(relation_from_local(&id, dir, &index.columns, index.rows, &out, NULL), HF_OK);
  arena_free(a);
  return out;
}

static void scheduler_client_data_is_read_as_blocks(void **state) {
  rig *r = *state;
  relation *what = rig_sql(r, "SELECT i::BIGINT AS x FROM range(5000) t(i)");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  assert_int_equal(scheduler_run(r->s, &request, NULL, &result, NULL, NULL), HF_OK);
  char dir[256];
  rig_bind(r, "client", client_data(r, &result, dir, sizeof dir));
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM client", NULL), 12497500);
  uuid other = uuid_new(); /* another session's job is not handed it */
  assert_int_equal(rig_run_as(r, &other, r->names[0].bound, NULL, NULL, NULL), HF_E_HELD_FOREIGN);
  char *slash = strstr(dir, "/1/1-1");
  *slash = '\0';
  assert_int_equal(file_remove_tree(dir, NULL), HF_OK);
  scheduler_release_result(r->s, result.job);
  arena_free(result.memory);
  relation_release(what);
}

static void scheduler_remove_session_ends_its_jobs(void **state) {
  rig *r = *state;
  rig_thread t = {0};
  rig_start(r, &t, ENDLESS);
  rig_await_jobs(r, JOB_RUNNING, 1);
  scheduler_remove_session(r->s, &r->session);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_SESSION_CLOSED);
  char dir[160];
  snprintf(dir, sizeof dir, "%s/%s", r->work_dir, r->session.text);
  assert_false(rig_exists(dir));
}

static void scheduler_result_outlives_its_session(void **state) {
  rig *r = *state;
  relation *what = rig_sql(r, "SELECT 9::BIGINT AS n");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  assert_int_equal(scheduler_run(r->s, &request, NULL, &result, NULL, NULL), HF_OK);
  scheduler_remove_session(r->s, &r->session);
  assert_int_equal(rig_first(&result), 9);
  scheduler_release_result(r->s, result.job);
  rig_await_cleaner(r);
  char dir[160];
  snprintf(dir, sizeof dir, "%s/%s", r->work_dir, r->session.text);
  assert_false(rig_exists(dir));
  arena_free(result.memory);
  relation_release(what);
}

static void scheduler_close_fails_what_runs(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 1);
  rig_thread t = {0};
  rig_start(&r, &t, ENDLESS);
  rig_await_jobs(&r, JOB_RUNNING, 1);
  rig_close(&r);
  rig_join(&t);
  assert_int_equal(t.status, HF_E_SESSION_CLOSED);
}

static void scheduler_many_jobs_share_two_slots(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2);
  rig_thread threads[6] = {0};
  for (int i = 0; i < 6; i++) {
    rig_start(&r, &threads[i], "SELECT sum(i)::BIGINT FROM range(100000) t(i)");
  }
  for (int i = 0; i < 6; i++) {
    rig_join(&threads[i]);
    assert_int_equal(threads[i].status, HF_OK);
    assert_int_equal(threads[i].value, 4999950000);
  }
  rig_close(&r);
}

static void scheduler_warm_leaves_nothing_undone(void **state) {
  rig *r = *state;
  job_settings settings = rig_settings(r);
  scheduler_warm(r->s, &settings);
  assert_int_equal(rig_value(r, "SELECT 3::BIGINT", NULL), 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(scheduler_query_gives_its_rows),
      CASE(scheduler_query_of_files_counts_its_rows),
      CASE(scheduler_result_files_go_when_let_go),
      CASE(scheduler_error_has_its_code),
      CASE(scheduler_cancel_ends_a_running_job),
      CASE(scheduler_cancel_before_the_start_ends_at_once),
      CASE(scheduler_progress_that_says_no_cancels),
      CASE(scheduler_client_data_is_read_as_blocks),
      CASE(scheduler_remove_session_ends_its_jobs),
      CASE(scheduler_result_outlives_its_session),
      cmocka_unit_test(scheduler_close_fails_what_runs),
      cmocka_unit_test(scheduler_many_jobs_share_two_slots),
      CASE(scheduler_warm_leaves_nothing_undone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

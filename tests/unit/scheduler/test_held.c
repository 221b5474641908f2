/* SPDX-License-Identifier: Apache-2.0 */
/* The two-job split with the real parts: fill, hit, wait, released, nested, failed, cancelled, lost. */
#include "rig.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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

#define ENDLESS "SELECT count(*) AS v FROM range(100000000000000) t(i) WHERE hash(i) = 1"

/* Takes the only slot, so that fills stay launched until it is let go. */
typedef struct blocker {
  rig_thread thread;
  hf_cancel *cancel;
} blocker;

static void slot_block(rig *r, blocker *b) {
  memset(b, 0, sizeof *b);
  b->cancel = b->thread.watch.cancel = hf_cancel_new();
  rig_start(r, &b->thread, ENDLESS);
  rig_await_jobs(r, JOB_RUNNING, 1);
}

static void slot_unblock(blocker *b) {
  hf_cancel_signal(b->cancel);
  rig_join(&b->thread);
  assert_int_equal(b->thread.status, HF_E_CANCELLED);
  hf_cancel_free(b->cancel);
}

static void held_first_action_fills_and_the_second_hits(void **state) {
  rig *r = *state;
  rig_numbers(r, "a.csv", 1000);
  const relation *node = rig_cache(r, "held", "SELECT x FROM '$DIR/a.csv'");
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  hf_profile cold, warm;
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &cold), 500500);
  assert_int_equal(cold.tasks_run, 2);
  assert_int_equal(cold.source_rows, 1000);
  assert_int_equal(cold.held_fills, 1);
  assert_int_equal(cold.held_hits, 0);
  assert_int_equal(unlink(rig_path(r, "a.csv")), 0); /* a hit looks at no source */
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &warm), 500500);
  assert_int_equal(warm.tasks_run, 1);
  assert_int_equal(warm.source_rows, 0);
  assert_int_equal(warm.source_files, 0);
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.held_fills, 0);
  assert_int_equal(warm.held_rows, 1000);
  hf_storage storage = rig_storage(r, node);
  assert_int_equal(storage.state, HF_HOLD_MATERIALISED);
  assert_int_equal(storage.rows, 1000);
  assert_int_equal(storage.hits, 1);
  assert_int_equal(storage.generation, 1);
  assert_false(storage.indeterminate);
}

static void held_twice_in_a_query_fills_once(void **state) {
  rig *r = *state;
  rig_cache(r, "held", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT count(*) FROM held a JOIN held b USING (x)", &profile), 100);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(profile.tasks_run, 2);
}

static void held_two_threads_share_one_fill(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT (random() * 1000000000)::BIGINT AS v");
  rig_thread a = {0}, b = {0};
  blocker only_slot;
  slot_block(r, &only_slot);
  rig_start(r, &a, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 1);
  rig_start(r, &b, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 2);
  slot_unblock(&only_slot);
  rig_join(&a);
  rig_join(&b);
  assert_int_equal(a.status, HF_OK);
  assert_int_equal(b.status, HF_OK);
  assert_true(a.value == b.value);
  assert_int_equal(a.profile.held_fills + b.profile.held_fills, 1);
  assert_int_equal(a.profile.held_waits + b.profile.held_waits, 1);
  assert_int_equal(a.profile.tasks_run, 2);
  assert_int_equal(b.profile.tasks_run, 2);
  assert_true(rig_value(r, "SELECT v FROM held", NULL) == a.value);
  assert_true(rig_storage(r, node).indeterminate);
}

static void held_released_computes_inline_and_never_refills(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 4950);
  assert_string_not_equal(rig_block_file(r), "");
  uuid key = rig_key(node);
  rig_await_cleaner(r);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
  assert_string_equal(rig_block_file(r), "");
  for (int i = 0; i < 2; i++) {
    hf_profile profile;
    assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile), 4950);
    assert_int_equal(profile.held_inline, 1);
    assert_int_equal(profile.held_fills, 0);
    assert_int_equal(profile.tasks_run, 1);
    assert_int_equal(rig_storage(r, node).state, HF_HOLD_RELEASED);
  }
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static void held_refresh_computes_a_new_generation(void **state) {
  rig *r = *state;
  rig_numbers(r, "a.csv", 10);
  const relation *node = rig_cache(r, "held", "SELECT x FROM '$DIR/a.csv'");
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 55);
  rig_numbers(r, "a.csv", 20);
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 55); /* a snapshot */
  uuid key = rig_key(node);
  scheduler_refresh(r->s, &key);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 210);
  assert_int_equal(rig_storage(r, node).generation, 2);
}

static void held_claimer_cancelled_leaves_the_fill_to_its_waiter(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT 5::BIGINT AS v");
  rig_thread a = {.watch.cancel = hf_cancel_new()}, b = {0};
  hf_cancel *cancel = a.watch.cancel;
  blocker only_slot;
  slot_block(r, &only_slot);
  rig_start(r, &a, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 1);
  rig_start(r, &b, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 2);
  hf_cancel_signal(cancel);
  rig_join(&a);
  assert_int_equal(a.status, HF_E_CANCELLED);
  slot_unblock(&only_slot);
  rig_join(&b);
  assert_int_equal(b.status, HF_OK);
  assert_int_equal(b.profile.tasks_run, 2);
  assert_int_equal(rig_storage(r, node).generation, 1);
  hf_cancel_free(cancel);
}

static void held_only_waiter_cancelled_cancels_the_fill(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", ENDLESS);
  rig_thread a = {.watch.cancel = hf_cancel_new()};
  hf_cancel *cancel = a.watch.cancel;
  rig_start(r, &a, "SELECT v FROM held");
  rig_await_jobs(r, JOB_RUNNING, 1); /* the fill */
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_PENDING);
  hf_cancel_signal(cancel);
  rig_join(&a);
  assert_int_equal(a.status, HF_E_CANCELLED);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  rig_await_jobs(r, JOB_RUNNING, 0);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  hf_cancel_free(cancel);
}

static void held_unpersist_while_it_is_filled_lets_waiters_compute(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT 5::BIGINT AS v");
  rig_thread a = {0};
  blocker only_slot;
  slot_block(r, &only_slot);
  rig_start(r, &a, "SELECT v FROM held");
  rig_await_jobs(r, JOB_RUNNING, 2); /* the blocker and the fill */
  uuid key = rig_key(node);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS);
  slot_unblock(&only_slot);
  rig_join(&a);
  assert_int_equal(a.value, 5);
  assert_int_equal(a.status, HF_OK);
  assert_int_equal(a.profile.held_inline, 1);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_RELEASED);
  rig_await_jobs(r, JOB_RUNNING, 0);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
}

static void held_user_error_in_a_fill_fails_all_who_wait(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT ('x' || i)::BIGINT AS v FROM range(3) t(i)");
  rig_thread a = {0}, b = {0};
  blocker only_slot;
  slot_block(r, &only_slot);
  rig_start(r, &a, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 1);
  rig_start(r, &b, "SELECT v FROM held");
  rig_await_jobs(r, JOB_WAITING, 2);
  slot_unblock(&only_slot);
  rig_join(&a);
  rig_join(&b);
  assert_int_equal(a.status, HF_E_CAST);
  assert_int_equal(b.status, HF_E_CAST);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
}

/* A disk that takes no large file: the fill is tried and claimed anew as often as it may be, then computed inline. */
static void held_fill_that_cannot_be_written_is_computed_inline(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT i::BIGINT AS x, hash(i) AS h FROM range(300000) t(i)");
  struct rlimit before, small = {0};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 256 << 10;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hf_profile profile;
  int64_t sum = rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(sum, 44999850000);
  assert_int_equal(profile.held_inline, 1);
  assert_true(strstr(profile.warning, "computed inline") != NULL);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_DECLARED);
  rig_await_cleaner(r);
  assert_string_equal(rig_block_file(r), "");
  assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", &profile),
                   sum); /* and may be filled later */
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_MATERIALISED);
}

static void held_nested_fills_from_the_inside_on_one_slot(void **state) {
  rig *r = *state;
  const relation *inner = rig_cache(r, "inner_one", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  const relation *outer = rig_cache(r, "outer_one", "SELECT x, x * 2 AS y FROM inner_one WHERE x > 9");
  const relation *beside = rig_cache(r, "beside", "SELECT 5::BIGINT AS z");
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(y + z)::BIGINT FROM outer_one, beside", &profile), 10260);
  assert_int_equal(profile.held_fills, 3);
  assert_int_equal(profile.tasks_run, 4);
  assert_int_equal(rig_storage(r, inner).state, HF_HOLD_MATERIALISED);
  assert_int_equal(rig_storage(r, outer).state, HF_HOLD_MATERIALISED);
  assert_int_equal(rig_storage(r, beside).state, HF_HOLD_MATERIALISED);
  uuid key = rig_key(inner);
  scheduler_unpersist(r->s, &key, HOLD_WAIT_READERS); /* inputs of a hit are not looked at */
  assert_int_equal(rig_value(r, "SELECT sum(y)::BIGINT FROM outer_one", &profile), 9810);
  assert_int_equal(profile.held_inline, 0);
  assert_int_equal(profile.tasks_run, 1);
}

static void damage(const char *path, bool truncates) {
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file);
  if (truncates) {
    assert_int_equal(truncate(path, size / 2), 0);
  } else {
    assert_int_equal(fseek(file, size / 2, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, size / 2, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 0x55, file), byte ^ 0x55);
  }
  fclose(file);
}

static void copy_drop(void *context, const hold_row *row) {
  snprintf(context, 64, "%s", row->last_drop);
}

static void check_damage(rig *r, bool truncates, const char *why) {
  const relation *node =
      rig_cache(r, "held", "SELECT i::BIGINT AS x, 'text ' || i AS t FROM range(20000) t(i)");
  assert_int_equal(rig_value(r, "SELECT sum(x + length(t))::BIGINT FROM held", NULL), 200178890);
  rig_await_cleaner(r);
  damage(rig_block_file(r), truncates);
  hf_profile profile;
  assert_int_equal(rig_value(r, "SELECT sum(x + length(t))::BIGINT FROM held", &profile), 200178890);
  assert_int_equal(profile.held_fills, 1);
  assert_int_equal(rig_storage(r, node).generation, 2);
  char text[64] = "";
  scheduler_list_holds(r->s, &r->session, copy_drop, text);
  assert_string_equal(text, why);
}

static void held_block_cut_short_is_computed_again(void **state) {
  check_damage(*state, true, "block missing");
}

static void held_block_altered_is_computed_again(void **state) {
  check_damage(*state, false, "block altered");
}

static void held_ordered_input_reads_back_ordered(void **state) {
  rig *r = *state;
  rig_cache(r, "held",
            "SELECT hash(i)::UBIGINT::HUGEINT AS h, i::BIGINT AS x FROM range(200000) t(i) ORDER BY h DESC");
  relation *what = rig_sql(r, "SELECT x, h FROM held");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  for (int i = 0; i < 2; i++) {
    job_result result;
    assert_int_equal(scheduler_run(r->s, &request, NULL, &result, NULL, NULL), HF_OK);
    assert_true(result.ordered);
    assert_int_equal(rig_first(&result),
                     rig_value(r, "SELECT arg_max(i, hash(i))::BIGINT FROM range(200000) t(i)", NULL));
    arena_free(result.memory);
    scheduler_release_result(r->s, result.job);
  }
  relation_release(what);
}

static void held_order_is_kept_where_a_query_relies_on_it(void **state) {
  rig *r = *state;
  r->ordered_below_bytes = 0;
  rig_cache(r, "held", "SELECT i::BIGINT AS x FROM range(3000000) t(i) ORDER BY hash(i)");
  int64_t first = rig_value(r, "SELECT arg_min(i, hash(i))::BIGINT FROM range(3000000) t(i)", NULL);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(rig_value(r, "SELECT first(x) FROM held", NULL), first);
    assert_int_equal(rig_value(r, "SELECT x FROM held LIMIT 1", NULL), first);
    assert_int_equal(rig_value(r, "SELECT list(x)[1] FROM held", NULL), first);
    assert_int_equal(rig_value(r, "SELECT sum(x)::BIGINT FROM held", NULL), 4499998500000);
  }
}

/* ------------------------------------------------------------------ refusals */

static hf_status run_sql(rig *r, const uuid *session, const char *sql) {
  relation *what = rig_sql(r, sql);
  hf_status status = rig_run_as(r, session, what, NULL, NULL, NULL);
  relation_release(what);
  return status;
}

static void held_node_of_another_session_is_refused(void **state) {
  rig *r = *state;
  rig_cache(r, "held", "SELECT 1::BIGINT AS v");
  uuid other = uuid_new();
  assert_int_equal(run_sql(r, &other, "SELECT v FROM held"), HF_E_HELD_FOREIGN);
}

static void held_node_never_declared_is_refused(void **state) {
  rig *r = *state;
  relation *input = rig_sql(r, "SELECT 1::BIGINT AS v"), *node = NULL;
  uuid id = uuid_new();
  assert_int_equal(relation_from_cache(&id, &r->session, input, "MEMORY_ONLY", &node, NULL), HF_OK);
  relation_release(input);
  rig_bind(r, "held", node);
  assert_int_equal(run_sql(r, &r->session, "SELECT v FROM held"), HF_E_HELD_FOREIGN);
}

static void held_node_with_another_plan_is_refused(void **state) {
  rig *r = *state;
  uuid id = rig_key(rig_cache(r, "held", "SELECT 1::BIGINT AS v"));
  assert_int_equal(rig_value(r, "SELECT v FROM held", NULL), 1);
  relation *input = rig_sql(r, "SELECT 2::BIGINT AS v"), *node = NULL;
  assert_int_equal(relation_from_cache(&id, &r->session, input, "MEMORY_ONLY", &node, NULL), HF_OK);
  relation_release(input);
  rig_bind(r, "forged", node);
  assert_int_equal(run_sql(r, &r->session, "SELECT v FROM forged"), HF_E_HELD_MISMATCH);
  assert_int_equal(run_sql(r, &r->session, "SELECT held.v FROM held, forged"), HF_E_HELD_MISMATCH);
}

/* ------------------------------------------------------------------ the end */

static void held_session_removed_leaves_no_files(void **state) {
  rig *r = *state;
  const relation *node = rig_cache(r, "held", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  rig_cache(r, "other", "SELECT i::BIGINT AS x FROM range(10) t(i)");
  assert_int_equal(rig_value(r, "SELECT count(*) FROM held, other", NULL), 1000);
  scheduler_remove_session(r->s, &r->session);
  char dir[160];
  snprintf(dir, sizeof dir, "%s/%s", r->work_dir, r->session.text);
  assert_false(rig_exists(dir));
  assert_int_equal(rig_storage(r, node).state, HF_HOLD_NOT_DECLARED);
  assert_int_equal(rig_run_as(r, &r->session, node, NULL, NULL, NULL), HF_E_SESSION_CLOSED);
}

static void held_and_unread_results_go_when_the_scheduler_closes(void **state) {
  rig *r = *state;
  rig_cache(r, "held", "SELECT i::BIGINT AS x FROM range(100) t(i)");
  relation *what = rig_sql(r, "SELECT x FROM held");
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  assert_int_equal(scheduler_run(r->s, &request, NULL, &result, NULL, NULL), HF_OK);
  arena_free(result.memory);
  relation_release(what); /* the teardown asserts that the work directory is gone */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(held_first_action_fills_and_the_second_hits),
      CASE(held_twice_in_a_query_fills_once),
      CASE(held_two_threads_share_one_fill),
      CASE(held_released_computes_inline_and_never_refills),
      CASE(held_refresh_computes_a_new_generation),
      CASE(held_claimer_cancelled_leaves_the_fill_to_its_waiter),
      CASE(held_only_waiter_cancelled_cancels_the_fill),
      CASE(held_unpersist_while_it_is_filled_lets_waiters_compute),
      CASE(held_user_error_in_a_fill_fails_all_who_wait),
      CASE(held_fill_that_cannot_be_written_is_computed_inline),
      CASE(held_nested_fills_from_the_inside_on_one_slot),
      CASE(held_block_cut_short_is_computed_again),
      CASE(held_block_altered_is_computed_again),
      CASE(held_ordered_input_reads_back_ordered),
      CASE(held_order_is_kept_where_a_query_relies_on_it),
      CASE(held_node_of_another_session_is_refused),
      CASE(held_node_never_declared_is_refused),
      CASE(held_node_with_another_plan_is_refused),
      CASE(held_session_removed_leaves_no_files),
      CASE(held_and_unread_results_go_when_the_scheduler_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: they end by failure and by cancelling; a standstill goes over to the file; a hang is named. */
#include "rig.h"

static void fail_set(rig *r, hf_status code) {
  hf_error error = {0};
  error_set(&error, code, "it was said so");
  channel_set_fail(r->set, &error);
  hf_error_reset(&error);
}

/* A writer waits for room, a reader for rows, another reader for the first of two writers. */
static void channel_wait_ends_everywhere_when_the_set_fails(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[2];
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_edge(&r, 1, 1, CHANNEL_SPLIT);
  rig_edge(&r, 2, 1, CHANNEL_ALL)->ordered = true;
  rig_start(&r, 6); /* one that never begins */
  rig_writer_init(&w[0], &r, 0, 0, 0);
  rig_writer_init(&w[1], &r, 1, 1, 2);
  rig_reader_init(&d[0], &r, 2, 0, 1);
  rig_reader_init(&d[1], &r, 3, 0, 2);
  rig_writer_start(&w[0]);
  rig_writer_start(&w[1]);
  rig_reader_start(&d[0]);
  rig_reader_start(&d[1]);
  rig_wait_for(&r, 4);
  fail_set(&r, HF_E_CANCELLED);
  fail_set(&r, HF_E_IO); /* the first counts */
  for (int i = 0; i < 2; i++) {
    rig_writer_join(&w[i], HF_E_CANCELLED);
    rig_reader_join(&d[i], HF_E_CANCELLED);
    rig_reader_free(&d[i]);
  }
  rig_check(&r, HF_E_CANCELLED);
  rig_close(&r);
}

static void channel_wait_after_the_failure_fails_at_once(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start(&r, 2);
  fail_set(&r, HF_E_QUERY);
  rig_writer_init(&w, &r, 0, 0, 0);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_writer_start(&w);
  rig_reader_start(&d);
  rig_writer_join(&w, HF_E_QUERY);
  rig_reader_join(&d, HF_E_QUERY);
  rig_reader_free(&d);
  rig_close(&r);
}

static void channel_wait_for_a_writer_that_is_gone_fails(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start_pair(&r, &w, &d);
  rig_reader_start(&d);
  rig_wait_for(&r, 1);
  rig_writer_begin(&w);
  channel_writer_ops()->discard(w.state);
  channel_writer_free(w.writer);
  rig_reader_join(&d, HF_E_TASK_LOST);
  rig_reader_free(&d);
  rig_close(&r);
}

/* ---------------------------------------------------------------- standstill */

/* A task that reads one edge to its end, then another. */
typedef struct two_inputs {
  rig_reader *first, *second;
  pthread_t thread;
} two_inputs;

static void *read_both(void *context) {
  two_inputs *t = context;
  rig_reader_scan(t->first);
  rig_reader_scan(t->second);
  rig_reader_read(t->first);
  rig_reader_read(t->second);
  rig_reader_scan_end(t->first);
  rig_reader_scan_end(t->second);
  channel_reader_free(t->first->reader);
  channel_reader_free(t->second->reader);
  channel_set_end_task(t->first->r->set, t->first->options.task);
  return NULL;
}

/* One task writes the first edge and only then the second; the reader begins with the second. */
typedef struct two_outputs {
  rig_writer *first, *second;
  pthread_t thread;
} two_outputs;

static void *write_both(void *context) {
  two_outputs *t = context;
  rig_writer_begin(t->first);
  rig_writer_begin(t->second);
  for (int64_t i = 0; t->first->status == HF_OK && i < t->first->arrays; i++) {
    rig_writer_append(t->first, t->first->rows);
  }
  for (int64_t i = 0; t->second->status == HF_OK && i < t->second->arrays; i++) {
    rig_writer_append(t->second, t->second->rows);
  }
  rig_writer_finish(t->first);
  rig_writer_end(t->second);
  return NULL;
}

/* The writer fills the input that is read last: nobody could go on. Its connection goes over to the file, the other not. */
static void channel_wait_of_all_lets_the_full_connection_spool(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[2];
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_edge(&r, 1, 1, CHANNEL_SPLIT);
  rig_start(&r, 2);
  for (uint32_t i = 0; i < 2; i++) {
    rig_writer_init(&w[i], &r, 0, 0, i);
    w[i].arrays = 60;
    rig_reader_init(&d[i], &r, 1, 0, i);
  }
  two_outputs out = {&w[0], &w[1], 0};
  two_inputs in = {&d[1], &d[0], 0};
  assert_int_equal(pthread_create(&out.thread, NULL, write_both, &out), 0);
  assert_int_equal(pthread_create(&in.thread, NULL, read_both, &in), 0);
  pthread_join(out.thread, NULL);
  pthread_join(in.thread, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(w[i].status, HF_OK);
    rig_reader_expect(&d[i], HF_OK);
    assert_int_equal(d[i].n, 6000);
    rig_reader_is_run(&d[i], 0, 0, 6000);
    rig_reader_free(&d[i]);
  }
  assert_true(rig_stats(&r, 0).spooled_frames > 0);
  assert_true(rig_stats(&r, 0).spools);
  assert_int_equal(rig_stats(&r, 1).spooled_frames, 0);
  assert_true(rig_stats(&r, 0).peak_bytes <= 8 << 10);
  rig_check(&r, HF_OK);
  rig_close(&r);
}

/* Two tasks read two edges of the same two writers in opposite order: what a bound for each connection alone cannot bear. */
static void channel_wait_of_all_in_a_ring_ends(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[2][2];
  two_inputs in[2];
  rig_open(&r);
  rig_edge(&r, 1, 2, CHANNEL_PARTITION);
  rig_edge(&r, 1, 2, CHANNEL_PARTITION);
  rig_start(&r, 4);
  for (uint32_t e = 0; e < 2; e++) {
    rig_writer_init(&w[e], &r, e, 0, e);
    for (uint32_t t = 0; t < 2; t++) {
      rig_reader_init(&d[t][e], &r, 2 + t, t, e);
    }
    rig_writer_start(&w[e]);
  }
  rig_wait_for(&r, 2);
  for (uint32_t t = 0; t < 2; t++) {
    in[t] = (two_inputs){&d[t][t], &d[t][1 - t], 0};
    assert_int_equal(pthread_create(&in[t].thread, NULL, read_both, &in[t]), 0);
  }
  for (uint32_t t = 0; t < 2; t++) {
    pthread_join(in[t].thread, NULL);
    rig_writer_join(&w[t], HF_OK);
    for (uint32_t e = 0; e < 2; e++) {
      rig_reader_expect(&d[t][e], HF_OK);
      assert_int_equal(d[t][e].n, 1000);
      rig_reader_free(&d[t][e]);
    }
  }
  assert_true(rig_stats(&r, 0).spooled_frames + rig_stats(&r, 1).spooled_frames > 0);
  rig_check(&r, HF_OK);
  rig_close(&r);
}

/* An ordered gather whose last writer is full before the first one, which waits for it, has anything. */
static void channel_wait_of_all_in_an_ordered_gather_ends(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[2];
  rig_open(&r);
  rig_edge(&r, 2, 1, CHANNEL_ALL)->ordered = true;
  rig_edge(&r, 1, 1, CHANNEL_SPLIT); /* from the second writer's task to the first one's */
  rig_start(&r, 3);
  rig_writer_init(&w[0], &r, 1, 1, 0);
  rig_writer_init(&w[1], &r, 1, 0, 1); /* the same task, afterwards */
  two_outputs out = {&w[0], &w[1], 0};
  rig_reader_init(&d[0], &r, 2, 0, 0);
  rig_reader_init(&d[1], &r, 0, 0, 1);
  assert_int_equal(pthread_create(&out.thread, NULL, write_both, &out), 0);
  rig_reader_start(&d[0]);
  rig_reader_scan(&d[1]);
  rig_reader_read(&d[1]);
  rig_reader_expect(&d[1], HF_OK);
  rig_writer first;
  rig_writer_init(&first, &r, 0, 0, 0);
  rig_writer_run(&first);
  rig_reader_end(&d[1]);
  assert_int_equal(first.status, HF_OK);
  pthread_join(out.thread, NULL);
  rig_reader_join(&d[0], HF_OK);
  rig_reader_is_run(&d[0], 0, 0, 2000);
  rig_reader_is_run(&d[0], 2000, 1000000, 2000);
  assert_int_equal(d[1].n, 2000);
  assert_true(rig_stats(&r, 0).spooled_frames > 0);
  rig_check(&r, HF_OK);
  rig_reader_free(&d[0]);
  rig_reader_free(&d[1]);
  rig_close(&r);
}

/* Two tasks that read from one another: a graph that cannot be. */
static void channel_wait_of_readers_only_names_them(void **state) {
  (void)state;
  rig r;
  rig_reader d[2];
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_edge(&r, 1, 1, CHANNEL_SPLIT);
  rig_start(&r, 2);
  for (uint32_t i = 0; i < 2; i++) {
    rig_reader_init(&d[i], &r, i, 0, i);
    rig_reader_start(&d[i]);
  }
  pthread_join(d[0].thread, NULL);
  pthread_join(d[1].thread, NULL);
  assert_int_equal(d[0].status, HF_E_INTERNAL);
  assert_non_null(strstr(d[0].error.message, "task 0 to take from edge 0"));
  assert_non_null(strstr(d[0].error.message, "task 1 to take from edge 1"));
  for (uint32_t i = 0; i < 2; i++) {
    rig_reader_expect(&d[i], HF_E_INTERNAL);
    rig_reader_free(&d[i]);
  }
  rig_close(&r);
}

/* The last task that could write has ended without a word. */
static void channel_wait_for_a_task_that_has_ended_is_found(void **state) {
  (void)state;
  rig r;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start(&r, 2);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_start(&d);
  rig_wait_for(&r, 1);
  channel_set_end_task(r.set, 0);
  channel_set_end_task(r.set, 0);
  rig_reader_join(&d, HF_E_INTERNAL);
  rig_reader_free(&d);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channel_wait_ends_everywhere_when_the_set_fails),
      cmocka_unit_test(channel_wait_after_the_failure_fails_at_once),
      cmocka_unit_test(channel_wait_for_a_writer_that_is_gone_fails),
      cmocka_unit_test(channel_wait_of_all_lets_the_full_connection_spool),
      cmocka_unit_test(channel_wait_of_all_in_a_ring_ends),
      cmocka_unit_test(channel_wait_of_all_in_an_ordered_gather_ends),
      cmocka_unit_test(channel_wait_of_readers_only_names_them),
      cmocka_unit_test(channel_wait_for_a_task_that_has_ended_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

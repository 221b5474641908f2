/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads of random actions on shared holds: right answers, no files left. The seed is fixed. */
#include "rig.h"

enum { THREADS = 8, ACTIONS = 50, HOLDS = 4 };

/* What each hold's query answers; the third is built on the second, the fourth on all. */
static const char *const definitions[HOLDS] = {
    "SELECT i::BIGINT AS x FROM range(1000) t(i)",
    "SELECT i::BIGINT AS x FROM range(2000) t(i) WHERE i % 2 = 0",
    "SELECT x + 1 AS x FROM h1 WHERE x < 1000",
    "SELECT h0.x AS x FROM h0 JOIN h2 USING (x)",
};
static const int64_t answers[HOLDS] = {499500, 999000, 250000, 250000};
static const char *const names[HOLDS] = {"h0", "h1", "h2", "h3"};

typedef struct worker {
  rig *r;
  pthread_t thread;
  uint64_t random;
  relation *queries[HOLDS];
  const relation *nodes[HOLDS];
  int wrong;
} worker;

static uint64_t pick(worker *w, uint64_t below) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (w->random >> 11) % below;
}

static void query(worker *w, size_t hold, bool cancels) {
  job_watch watch = {.cancel = cancels ? hf_cancel_new() : NULL};
  hf_cancel *cancel = watch.cancel;
  if (cancels) {
    hf_cancel_signal(cancel);
  }
  int64_t value = 0;
  hf_status status = rig_run_as(w->r, &w->r->session, w->queries[hold], &watch, &value, NULL);
  bool is_right = status == HF_OK ? value == answers[hold] : cancels && status == HF_E_CANCELLED;
  w->wrong += is_right ? 0 : 1;
  hf_cancel_free(cancel);
}

static void *work(void *context) {
  worker *w = context;
  for (int i = 0; i < ACTIONS; i++) {
    size_t hold = (size_t)pick(w, HOLDS);
    uuid key = rig_key(w->nodes[hold]);
    uint64_t what = pick(w, 100);
    if (what < 60) {
      query(w, hold, false);
    } else if (what < 75) {
      query(w, hold, true);
    } else if (what < 95) {
      scheduler_refresh(w->r->s, &key);
    } else if (what < 97) {
      scheduler_unpersist(w->r->s, &key, (hold_wait)pick(w, 3));
    } else {
      rig_storage(w->r, w->nodes[hold]);
    }
  }
  return NULL;
}

static void scheduler_threads_end_with_right_answers_and_no_files(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2);
  const relation *nodes[HOLDS];
  worker workers[THREADS] = {0};
  for (int i = 0; i < HOLDS; i++) {
    nodes[i] = rig_cache(&r, names[i], definitions[i]);
  }
  for (int t = 0; t < THREADS; t++) {
    worker *w = &workers[t];
    w->r = &r;
    w->random = 88172645463325252u + (uint64_t)t * 7919;
    for (int i = 0; i < HOLDS; i++) {
      char sql[64];
      snprintf(sql, sizeof sql, "SELECT sum(x)::BIGINT FROM %s", names[i]);
      w->queries[i] = rig_sql(&r, sql);
      w->nodes[i] = nodes[i];
    }
  }
  for (int t = 0; t < THREADS; t++) {
    assert_int_equal(thread_start(&workers[t].thread, 0, work, &workers[t], "test", NULL), HF_OK);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(workers[t].thread, NULL);
    assert_int_equal(workers[t].wrong, 0);
    for (int i = 0; i < HOLDS; i++) {
      relation_release(workers[t].queries[i]);
    }
  }
  assert_int_equal(rig_jobs(&r, JOB_WAITING) + rig_jobs(&r, JOB_RUNNING) + rig_jobs(&r, JOB_PLANNING), 0);
  for (int i = 0; i < HOLDS; i++) {
    uuid key = rig_key(nodes[i]);
    scheduler_unpersist(r.s, &key, HOLD_WAIT_READERS);
  }
  rig_await_cleaner(&r);
  assert_string_equal(rig_block_file(&r), "");
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scheduler_threads_end_with_right_answers_and_no_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads on few names and sessions: random statements, actions, holds and
 * cancels, with sessions that close in the middle. Every call ends with an answer
 * or an error that such a moment explains, and nothing is left behind.
 */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, STEPS = 60, KEPT = 4, NAMES = 5 };

typedef struct storm {
  hf_session *engine;
  atomic_int unexpected;
} storm;

/* A thread; every other one has a session of its own, which it closes now and then. */
typedef struct sailor {
  storm *in;
  hf_session *session;
  bool owns_session;
  unsigned seed;
  hf_df *kept[KEPT];
} sailor;

static unsigned draw(sailor *s, unsigned below) {
  s->seed = s->seed * 1103515245 + 12345;
  return (s->seed >> 16) % below;
}

static hf_status note(sailor *s, hf_status status, hf_error *error, const char *what) {
  bool is_expected = status == HF_OK || status == HF_E_CANCELLED || status == HF_E_NAME_EXISTS ||
                     status == HF_E_TABLE_NOT_FOUND || status == HF_E_SESSION_CLOSED ||
                     status == HF_E_INVALID_ARGUMENT; /* of a command without an answer */
  if (!is_expected) {
    atomic_fetch_add(&s->in->unexpected, 1);
    fprintf(stderr, "%s: %s: %s\n", what, hf_status_name(status), error->message);
  }
  hf_error_reset(error);
  return status;
}

static void *signal_soon(void *cancel) {
  hf_cancel_signal(cancel);
  return NULL;
}

/* Reads a few batches of a result and drops the rest. */
static void read_some(sailor *s, struct ArrowArrayStream *stream) {
  for (unsigned left = draw(s, 4); left > 0; left--) {
    struct ArrowArray batch;
    if (stream->get_next(stream, &batch) != 0) {
      atomic_fetch_add(&s->in->unexpected, 1);
      break;
    }
    if (batch.release == NULL) {
      break;
    }
    batch.release(&batch);
  }
  stream->release(stream);
}

static void act(sailor *s, hf_df *df) {
  hf_error error = {0};
  hf_profile profile;
  hf_action_options options = {.profile = &profile};
  pthread_t canceller;
  if (draw(s, 4) == 0) {
    options.cancel = hf_cancel_new();
    assert_int_equal(pthread_create(&canceller, NULL, signal_soon, options.cancel), 0);
  }
  if (draw(s, 2) == 0) {
    uint64_t rows;
    note(s, hf_df_count(df, &options, &rows, &error), &error, "count");
  } else {
    struct ArrowArrayStream stream;
    if (note(s, hf_df_collect(df, &options, &stream, &error), &error, "collect") == HF_OK) {
      read_some(s, &stream);
    }
  }
  if (options.cancel != NULL) {
    pthread_join(canceller, NULL);
    hf_cancel_free(options.cancel);
  }
}

static void run_statement(sailor *s) {
  static const char *const statements[] = {
      "CACHE LAZY TABLE t%u AS SELECT i, i %% 7 AS k, random() AS r FROM range(20000) t(i)",
      "CACHE TABLE t%u AS SELECT i, i %% 7 AS k, 1.0 AS r FROM range(3000) t(i)",
      "UNCACHE TABLE IF EXISTS t%u",
      "CREATE OR REPLACE VIEW v%u AS SELECT k, sum(r) AS s FROM t0 GROUP BY k",
      "DROP VIEW IF EXISTS v%u",
      "REFRESH TABLE t%u",
      "CACHE LAZY TABLE v%u",
      "EXPLAIN SELECT * FROM t0 JOIN v%u USING (k)",
      "DESCRIBE t%u",
      "SELECT * FROM t%u WHERE k = 3",
      "SELECT count(*) FROM v%u JOIN t1 USING (k)",
  };
  enum { N = sizeof statements / sizeof statements[0] };
  char sql[200];
  hf_error error = {0};
  hf_df *df = NULL;
  unsigned at = draw(s, N + 2);
  if (at < N) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(sql, sizeof sql, statements[at], draw(s, NAMES));
#pragma GCC diagnostic pop
  } else {
    snprintf(sql, sizeof sql, "%s", at == N ? "SHOW CACHE" : "CLEAR CACHE");
  }
  if (note(s, hf_session_sql(s->session, sql, &df, &error), &error, sql) == HF_OK) {
    act(s, df);
    hf_df **kept = &s->kept[draw(s, KEPT)];
    hf_df_free(*kept);
    *kept = df;
  }
}

static void use_kept(sailor *s) {
  hf_df **kept = &s->kept[draw(s, KEPT)];
  hf_error error = {0};
  hf_storage storage;
  hf_df *held = NULL;
  if (*kept == NULL) {
    return;
  }
  switch (draw(s, 4)) {
    case 0:
      if (note(s, hf_df_cache(*kept, &held, &error), &error, "cache") == HF_OK) {
        hf_df_free(*kept);
        *kept = held;
      }
      break;
    case 1:
      note(s, hf_df_unpersist(*kept, draw(s, 2) == 0, &error), &error, "unpersist");
      break;
    case 2:
      note(s, hf_df_storage(*kept, &storage, &error), &error, "storage");
      break;
    default:
      act(s, *kept);
  }
}

static void *sail(void *context) {
  sailor *s = context;
  for (int step = 0; step < STEPS; step++) {
    if (draw(s, 3) == 0) {
      use_kept(s);
    } else {
      run_statement(s);
    }
    if (s->owns_session && draw(s, 20) == 0) {
      hf_session_close(s->session);
      assert_int_equal(hf_session_new(s->in->engine, &s->session, NULL), HF_OK);
    }
  }
  for (int i = 0; i < KEPT; i++) {
    hf_df_free(s->kept[i]);
  }
  if (s->owns_session) {
    hf_session_close(s->session);
  }
  return NULL;
}

static void random_actions_end_with_answers_that_make_sense(void **state) {
  api_case *c = *state;
  storm all = {.engine = c->session};
  sailor sailors[THREADS] = {0};
  pthread_t threads[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    sailors[i] = (sailor){.in = &all, .session = c->session, .owns_session = i % 2 == 1, .seed = 77 + i};
    if (sailors[i].owns_session) {
      assert_int_equal(hf_session_new(c->session, &sailors[i].session, NULL), HF_OK);
    }
    assert_int_equal(pthread_create(&threads[i], NULL, sail, &sailors[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  assert_int_equal(all.unexpected, 0);
  api_run(c, "CLEAR CACHE");
  api_expect(c, "SHOW CACHE", "");
  api_expect(c, "SELECT 1", "1\n");
}

/* A thread inside a call on the session's handle, not on a DataFrame's. */
typedef struct maker {
  hf_session *session;
  hf_status status;
} maker;

static void *make_one(void *context) {
  maker *m = context;
  hf_df *df = NULL;
  m->status = hf_session_sql(m->session, "CACHE TABLE t AS SELECT * FROM long_one", &df, NULL);
  hf_df_free(df);
  return NULL;
}

static void closing_ends_the_statements_that_run(void **state) {
  enum { ROUNDS = 5 };
  api_case *c = *state;
  for (int round = 0; round < ROUNDS; round++) {
    api_case peer = {0};
    pthread_t thread;
    assert_int_equal(hf_session_new(c->session, &peer.session, NULL), HF_OK);
    maker m = {.session = peer.session};
    hf_df *query = api_sql(&peer, "SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)");
    hf_df *held = api_cache(&peer, query);
    assert_int_equal(hf_df_create_view(held, "long_one", false, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, make_one, &m), 0);
    while (api_storage(&peer, held).state != HF_HOLD_PENDING) {
    }
    hf_session_close(peer.session);
    pthread_join(thread, NULL);
    assert_int_equal(m.status, HF_E_SESSION_CLOSED);
    hf_df_free(held);
    hf_df_free(query);
  }
  api_expect(c, "SELECT 1", "1\n");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(random_actions_end_with_answers_that_make_sense),
      CASE(closing_ends_the_statements_that_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

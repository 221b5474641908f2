/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads, random actions over few plans, files that change below them: every
 * answer is that of the query that is not held, or the snapshot that the rules
 * promise; what fails was cancelled; at the end the work directory holds the pins.
 *
 * A file's only row is its version, which counts up. What an action may see lies
 * between the version that was there when its snapshot was taken or refreshed (or,
 * where sources are followed, when the action began) and the one being written when it ends.
 * HF_CHAOS_ACTIONS and HF_CHAOS_SEED change the length and the first seed.
 */
#include "support/api_case.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 32, ACTIONS = 200, PLANS = 50, FILES = 25, SHARED = 4, KEPT = 4, NAMES = 6, NO_FILE = -1 };

/* One session with what is promised of each file in it. */
typedef struct place {
  hf_session *session;
  bool follows;
  atomic_long
      floor[FILES]; /* versions that were there when the session's holds of the file were last refreshed */
} place;

typedef struct storm {
  char dir[64];
  hf_session *engine;
  place shared[SHARED];
  pthread_mutex_t write_lock[FILES];
  atomic_long started[FILES], done[FILES]; /* versions: being written, there */
  atomic_long floor[FILES];                /* written by Holdfast: no hold of any session is older */
  atomic_int wrong;
  atomic_long n_actions, n_hits, n_fills;
} storm;

typedef struct kept {
  hf_df *df;
  unsigned plan;
  long floor; /* of a snapshot: when it was declared */
} kept;

typedef struct sailor {
  storm *in;
  place *at;
  place own; /* of every other thread */
  bool owns_session;
  uint64_t seed;
  unsigned long actions;
  kept kept[KEPT];
} sailor;

static unsigned draw(sailor *s, unsigned below) {
  s->seed ^= s->seed << 13;
  s->seed ^= s->seed >> 7;
  s->seed ^= s->seed << 17;
  return (unsigned)((s->seed >> 11) % below);
}

static void say_wrong(sailor *s, const char *what, hf_status status, const hf_error *error) {
  atomic_fetch_add(&s->in->wrong, 1);
  fprintf(stderr, "%s: %s: %s\n", what, hf_status_name(status), error->message == NULL ? "" : error->message);
}

/* ---------------------------------------------------------------------- plans */

static int file_of(unsigned plan) {
  return plan < PLANS - FILES ? NO_FILE : (int)(plan - (PLANS - FILES));
}

static void path_of(const storm *in, int file, char out[128]) {
  snprintf(out, 128, "%s/data%d.csv", in->dir, file);
}

/* Every plan gives one row: n, s. */
static void text_of(const storm *in, unsigned plan, char out[256]) {
  char path[128];
  if (file_of(plan) == NO_FILE) {
    snprintf(out, 256, "SELECT count(*)::BIGINT AS n, sum(i * %u)::BIGINT AS s FROM range(%u) t(i)", plan + 1,
             200 + 37 * plan);
  } else {
    path_of(in, file_of(plan), path);
    snprintf(out, 256, "SELECT max(n)::BIGINT AS n, count(*)::BIGINT AS s FROM '%s'", path);
  }
}

static bool is_right(const storm *in, unsigned plan, long floor, const int64_t row[2]) {
  int file = file_of(plan);
  if (file == NO_FILE) {
    int64_t n = 200 + 37 * (int64_t)plan;
    return row[0] == n && row[1] == (int64_t)(plan + 1) * (n * (n - 1) / 2);
  }
  return row[0] >= floor && row[0] <= atomic_load(&in->started[file]) && row[1] == 1;
}

/* What an action that begins now may not fall below, over what is promised of the hold itself. */
static long floor_now(const sailor *s, unsigned plan, long floor, bool is_held) {
  int file = file_of(plan);
  if (file == NO_FILE) {
    return 0;
  }
  if (!is_held || s->at->follows) {
    return atomic_load(&s->in->done[file]);
  }
  long of_session = atomic_load(&s->at->floor[file]), of_all = atomic_load(&s->in->floor[file]);
  floor = of_session > floor ? of_session : floor;
  return of_all > floor ? of_all : floor;
}

static void raise_floor(atomic_long *floor, long version) {
  long before = atomic_load(floor);
  while (before < version && !atomic_compare_exchange_weak(floor, &before, version)) {
  }
}

/* -------------------------------------------------------------------- actions */

static bool read_row(struct ArrowArrayStream *stream, int64_t row[2]) {
  struct ArrowArray batch;
  bool is_one = stream->get_next(stream, &batch) == 0 && batch.release != NULL;
  if (is_one) {
    is_one = batch.length == 1 && batch.n_children == 2;
    for (int i = 0; is_one && i < 2; i++) {
      const struct ArrowArray *column = batch.children[i];
      row[i] = ((const int64_t *)column->buffers[1])[column->offset];
    }
    batch.release(&batch);
  }
  stream->release(stream);
  return is_one;
}

typedef struct timed_cancel {
  hf_cancel *cancel;
  unsigned after_us;
} timed_cancel;

static void *signal_later(void *context) {
  const timed_cancel *c = context;
  uint64_t ends_us = clock_monotonic_us() + c->after_us;
  while (clock_monotonic_us() < ends_us) { /* any moment will do */
  }
  hf_cancel_signal(c->cancel);
  return NULL;
}

static void check_answer(sailor *s, unsigned plan, long floor, struct ArrowArrayStream *stream) {
  int64_t row[2] = {-1, -1};
  if (!read_row(stream, row) || !is_right(s->in, plan, floor, row)) {
    atomic_fetch_add(&s->in->wrong, 1);
    fprintf(stderr, "plan %u: got %" PRId64 ", %" PRId64 "; floor %ld, written %ld\n", plan, row[0], row[1],
            floor, file_of(plan) == NO_FILE ? 0 : atomic_load(&s->in->started[file_of(plan)]));
  }
}

static void act(sailor *s, hf_df *df, unsigned plan, long floor) {
  hf_error error = {0};
  hf_profile profile = {0};
  hf_action_options options = {.profile = &profile};
  struct ArrowArrayStream stream;
  timed_cancel timed = {0};
  pthread_t canceller;
  if (draw(s, 8) == 0) {
    timed = (timed_cancel){hf_cancel_new(), draw(s, 5000)};
    options.cancel = timed.cancel;
    assert_int_equal(pthread_create(&canceller, NULL, signal_later, &timed), 0);
  }
  hf_status status = hf_df_collect(df, &options, &stream, &error);
  if (status == HF_OK) {
    check_answer(s, plan, floor, &stream);
  } else if (status != HF_E_CANCELLED || timed.cancel == NULL) {
    say_wrong(s, "collect", status, &error);
  }
  if (timed.cancel != NULL) {
    pthread_join(canceller, NULL);
    hf_cancel_free(timed.cancel);
  }
  atomic_fetch_add(&s->in->n_hits, (long)profile.held_hits);
  atomic_fetch_add(&s->in->n_fills, (long)profile.held_fills);
  hf_error_reset(&error);
}

static hf_df *sql(sailor *s, const char *text, bool may_miss) {
  hf_error error = {0};
  hf_df *df = NULL;
  hf_status status = hf_session_sql(s->at->session, text, &df, &error);
  bool is_expected = may_miss && (status == HF_E_TABLE_NOT_FOUND || status == HF_E_NAME_EXISTS);
  if (status != HF_OK && !is_expected) {
    say_wrong(s, text, status, &error);
  }
  hf_error_reset(&error);
  return df;
}

static void act_plainly(sailor *s) {
  char text[256];
  unsigned plan = draw(s, PLANS);
  text_of(s->in, plan, text);
  hf_df *df = sql(s, text, false);
  if (df != NULL) {
    act(s, df, plan, floor_now(s, plan, 0, false));
    hf_df_free(df);
  }
}

static void act_on_kept(sailor *s) {
  const kept *k = &s->kept[draw(s, KEPT)];
  if (k->df != NULL) {
    act(s, k->df, k->plan, floor_now(s, k->plan, k->floor, true));
  }
}

/* Holds a plan, or another hold's rows. */
static void hold(sailor *s) {
  static const char *const levels[] = {NULL, "DISK_ONLY", "MEMORY_AND_DISK", "MEMORY_ONLY_2"};
  char text[256];
  kept *to = &s->kept[draw(s, KEPT)];
  const kept *from = &s->kept[draw(s, KEPT)];
  kept made = {.plan = draw(s, PLANS)};
  hf_df *query = NULL, *owned = NULL;
  if (from->df != NULL && draw(s, 3) == 0) {
    made = (kept){.plan = from->plan, .floor = from->floor};
    query = from->df;
  } else {
    text_of(s->in, made.plan, text);
    made.floor = floor_now(s, made.plan, 0, false);
    query = owned = sql(s, text, false);
  }
  hf_error error = {0};
  hf_status status = query == NULL ? HF_OK : hf_df_persist(query, levels[draw(s, 4)], &made.df, &error);
  if (status != HF_OK) {
    say_wrong(s, "persist", status, &error);
    hf_error_reset(&error);
  }
  hf_df_free(owned);
  if (made.df != NULL) {
    hf_df_free(to->df);
    *to = made;
  }
}

static void let_go(sailor *s) {
  const kept *k = &s->kept[draw(s, KEPT)];
  if (k->df != NULL) {
    hf_df_unpersist(k->df, draw(s, 2) == 0, NULL);
  }
}

/* A table by name, which other threads of the session hold, drop and read too. */
static void act_by_name(sailor *s) {
  char query[256], text[400];
  unsigned plan = (unsigned)(draw(s, NAMES) * (PLANS / NAMES));
  text_of(s->in, plan, query);
  switch (draw(s, 5)) {
    case 0:
      snprintf(text, sizeof text, "CACHE LAZY TABLE t%u AS %s", plan, query);
      break;
    case 1:
      snprintf(text, sizeof text, "CACHE TABLE t%u AS %s", plan, query);
      break;
    case 2:
      snprintf(text, sizeof text, "UNCACHE TABLE IF EXISTS t%u", plan);
      break;
    default:
      snprintf(text, sizeof text, "SELECT n, s FROM t%u", plan);
      break;
  }
  long floor = floor_now(s, plan, 0, true);
  hf_df *df = sql(s, text, true);
  if (df != NULL && strncmp(text, "SELECT", 6) == 0) {
    act(s, df, plan, floor);
  }
  hf_df_free(df);
}

static void refresh(sailor *s) {
  char path[128], text[200];
  int file = (int)draw(s, FILES);
  long version = atomic_load(&s->in->done[file]);
  path_of(s->in, file, path);
  snprintf(text, sizeof text, "REFRESH '%s'", path);
  hf_df_free(sql(s, text, false));
  raise_floor(&s->at->floor[file], version);
}

/* Whole files appear at once, each with a time of its own. */
static void put_version(storm *in, int file, long version) {
  char path[128], fresh[140];
  path_of(in, file, path);
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *out = fopen(fresh, "w");
  assert_non_null(out);
  assert_true(fprintf(out, "n\n%ld\n", version) > 0);
  assert_int_equal(fclose(out), 0);
  struct timespec times[2] = {{.tv_sec = 1000000000 + version}, {.tv_sec = 1000000000 + version}};
  assert_int_equal(utimensat(AT_FDCWD, fresh, times, 0), 0);
  assert_int_equal(rename(fresh, path), 0);
}

static void change_source(sailor *s) {
  char path[128], text[64];
  int file = (int)draw(s, FILES);
  storm *in = s->in;
  path_of(in, file, path);
  pthread_mutex_lock(&in->write_lock[file]);
  long version = atomic_load(&in->started[file]) + 1;
  atomic_store(&in->started[file], version);
  if (draw(s, 3) > 0) {
    put_version(in, file, version);
    atomic_store(&in->done[file], version);
  } else {
    snprintf(text, sizeof text, "SELECT %ld AS n", version);
    hf_df *df = sql(s, text, false);
    hf_error error = {0};
    hf_write_options options = {.overwrite = true};
    hf_status status = hf_df_write_csv(df, path, &options, NULL, &error);
    if (status != HF_OK) {
      say_wrong(s, "write", status, &error);
    } else {
      atomic_store(&in->done[file], version);
      raise_floor(&in->floor[file], version);
    }
    hf_error_reset(&error);
    hf_df_free(df);
  }
  pthread_mutex_unlock(&in->write_lock[file]);
}

static void look(sailor *s) {
  const kept *k = &s->kept[draw(s, KEPT)];
  hf_storage storage;
  char *text = NULL;
  if (draw(s, 3) == 0) {
    hf_df *show = sql(s, "SHOW CACHE", false);
    struct ArrowArrayStream stream;
    if (show != NULL && hf_df_collect(show, NULL, &stream, NULL) == HF_OK) {
      stream.release(&stream);
    }
    hf_df_free(show);
  } else if (k->df != NULL && hf_df_storage(k->df, &storage, NULL) != HF_OK) {
    atomic_fetch_add(&s->in->wrong, 1);
  } else if (k->df != NULL && draw(s, 2) == 0 && hf_df_explain(k->df, &text, NULL) == HF_OK) {
    hf_text_free(text);
  }
}

/* ------------------------------------------------------------------- sessions */

static void place_open(place *p, hf_session *peer, bool follows) {
  assert_int_equal(hf_session_new(peer, &p->session, NULL), HF_OK);
  p->follows = follows;
  if (follows) {
    assert_int_equal(hf_session_set(p->session, "cache.on_source_change", "refresh", NULL), HF_OK);
  }
}

static void drop_kept(sailor *s) {
  for (int i = 0; i < KEPT; i++) {
    hf_df_free(s->kept[i].df);
    s->kept[i] = (kept){0};
  }
}

/* Limits by which held results leave, and how many tasks a query is cut into. */
static void change_setting(sailor *s) {
  static const char *const settings[][2] = {{"hold.ttl", "1"},
                                            {"hold.ttl", "0"},
                                            {"hold.session_max_bytes", "5000"},
                                            {"hold.session_max_bytes", "0"},
                                            {"tasks", "3"},
                                            {"tasks", "auto"}};
  unsigned at = draw(s, sizeof settings / sizeof settings[0]);
  hf_error error = {0};
  hf_status status = hf_session_set(s->at->session, settings[at][0], settings[at][1], &error);
  if (status != HF_OK) {
    say_wrong(s, settings[at][0], status, &error);
    hf_error_reset(&error);
  }
}

/* Another session in the place of one's own; of a shared one: its handles go, or it lets everything go. */
static void change_session(sailor *s) {
  if (s->owns_session) {
    hf_session_close(s->own.session);
    drop_kept(s);
    place_open(&s->own, s->in->engine, !s->own.follows);
  } else if (draw(s, 4) == 0) {
    hf_df_free(sql(s, "CLEAR CACHE", false));
  } else {
    drop_kept(s);
  }
}

static void *sail(void *context) {
  sailor *s = context;
  static void (*const actions[])(sailor * s) = {
      act_on_kept, act_on_kept, act_on_kept, act_on_kept, act_on_kept, act_on_kept, hold,          hold,
      act_plainly, act_by_name, act_by_name, act_by_name, let_go,      refresh,     change_source, look,
  };
  enum { N = sizeof actions / sizeof actions[0] };
  for (unsigned long i = 0; i < s->actions; i++) {
    if (draw(s, 64) == 0) {
      change_session(s);
    } else if (draw(s, 32) == 0) {
      change_setting(s);
    } else {
      actions[draw(s, N)](s);
    }
    atomic_fetch_add(&s->in->n_actions, 1);
  }
  drop_kept(s);
  if (s->owns_session) {
    hf_session_close(s->own.session);
  }
  return NULL;
}

/* ------------------------------------------------------------------- the case */

static unsigned long number_of(const char *name, unsigned long otherwise) {
  const char *text = getenv(name);
  return text == NULL || text[0] == '\0' ? otherwise : strtoul(text, NULL, 10);
}

static _Thread_local unsigned n_indexes;

static int count_index(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  n_indexes += kind == FTW_F && strcmp(path + walk->base, "index") == 0 ? 1 : 0;
  return 0;
}

static void storm_begin(storm *in, const api_case *c, hf_session *engine) {
  snprintf(in->dir, sizeof in->dir, "%s", c->dir);
  in->engine = engine;
  for (int i = 0; i < FILES; i++) {
    pthread_mutex_init(&in->write_lock[i], NULL);
    atomic_store(&in->started[i], 1);
    atomic_store(&in->done[i], 1);
    put_version(in, i, 1);
  }
  for (int i = 0; i < SHARED; i++) {
    place_open(&in->shared[i], engine, i % 2 == 1);
  }
}

static void storm_run(storm *in, unsigned long actions, unsigned long seed) {
  static sailor sailors[THREADS];
  pthread_t threads[THREADS];
  memset(sailors, 0, sizeof sailors);
  for (unsigned i = 0; i < THREADS; i++) {
    sailor *s = &sailors[i];
    *s = (sailor){
        .in = in, .owns_session = i % 2 == 1, .seed = (seed + i) * 2654435761U + 1, .actions = actions};
    s->at = s->owns_session ? &s->own : &in->shared[(i / 2) % SHARED];
    if (s->owns_session) {
      place_open(&s->own, in->engine, i % 4 == 1);
    }
    assert_int_equal(pthread_create(&threads[i], NULL, sail, s), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
}

/* What is held, by the listings; and what lies there, by the indexes of attempts. */
static void expect_pins(const storm *in, const char *work_dir) {
  uint64_t pins = 0;
  for (int i = 0; i < SHARED; i++) {
    hf_hold *holds = NULL;
    size_t n = 0;
    hf_df *barrier = NULL, *held = NULL; /* letting one go waits for all files that were to go before */
    assert_int_equal(hf_session_sql(in->shared[i].session, "SELECT 1 AS n", &barrier, NULL), HF_OK);
    assert_int_equal(hf_df_cache(barrier, &held, NULL), HF_OK);
    assert_int_equal(hf_df_unpersist(held, true, NULL), HF_OK);
    assert_int_equal(hf_session_holds(in->shared[i].session, &holds, &n, NULL), HF_OK);
    for (size_t k = 0; k < n; k++) {
      assert_int_not_equal(holds[k].storage.state, HF_HOLD_PENDING);
      pins += holds[k].partitions;
    }
    hf_holds_free(holds);
    hf_df_free(held);
    hf_df_free(barrier);
  }
  n_indexes = 0;
  nftw(work_dir, count_index, 16, FTW_PHYS);
  print_message("%u attempts lie in the work directory, %u are held\n", n_indexes, (unsigned)pins);
  assert_int_equal(n_indexes, pins);
}

static void storm_end(storm *in, const char *work_dir) {
  for (int i = 0; i < SHARED; i++) {
    hf_df *cleared = NULL;
    assert_int_equal(hf_session_sql(in->shared[i].session, "CLEAR CACHE", &cleared, NULL), HF_OK);
    hf_df_free(cleared);
  }
  n_indexes = 0;
  nftw(work_dir, count_index, 16, FTW_PHYS);
  assert_int_equal(n_indexes, 0);
  for (int i = 0; i < SHARED; i++) {
    hf_session_close(in->shared[i].session);
  }
  for (int i = 0; i < FILES; i++) {
    pthread_mutex_destroy(&in->write_lock[i]);
  }
}

static void random_actions_give_right_answers_and_leave_the_pins(void **state) {
  api_case *c = *state;
  static storm in;
  unsigned long actions = number_of("HF_CHAOS_ACTIONS", ACTIONS), seed = number_of("HF_CHAOS_SEED", 1);
  print_message("%d threads, %lu actions each, HF_CHAOS_SEED=%lu\n", THREADS, actions, seed);
  alarm(300 + 2 * (unsigned)actions); /* against deadlock: the signal ends the process */
  char work_dir[128];
  snprintf(work_dir, sizeof work_dir, "%s/storm", c->dir);
  const hf_setting settings[] = {{"work_dir", work_dir},
                                 {"threads", "2"},
                                 {"slots", "2"},
                                 {"memory", "1GiB"},
                                 {"hold.max_bytes", "60000"}};
  hf_session *engine = NULL;
  assert_int_equal(hf_session_open("local", settings, 5, &engine, NULL), HF_OK);
  memset(&in, 0, sizeof in);
  storm_begin(&in, c, engine);
  storm_run(&in, actions, seed);
  print_message("%ld actions, %ld hits, %ld fills\n", atomic_load(&in.n_actions), atomic_load(&in.n_hits),
                atomic_load(&in.n_fills));
  assert_int_equal(atomic_load(&in.wrong), 0);
  expect_pins(&in, work_dir);
  storm_end(&in, work_dir);
  hf_session_close(engine);
  assert_false(path_exists(work_dir));
  alarm(0);
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
    api_await_state(&peer, held, HF_HOLD_PENDING);
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
      CASE(random_actions_give_right_answers_and_leave_the_pins),
      CASE(closing_ends_the_statements_that_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

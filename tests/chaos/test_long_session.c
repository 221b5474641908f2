/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that runs on: what queries of several tasks, cancelled ones, fills, plans
 * made again and sessions take, they give back. At rest there are as many descriptors,
 * threads, files and blocks of our memory after many of them as after a few.
 *
 * Memory is what mem.h gave and did not get back: the linker puts the functions below
 * between it and its callers (cmake/Tests.cmake). DuckDB's own heap is not looked at
 * but in the size of the process: its queue of evictable buffers keeps up to 32,768 dead
 * entries of each kind before it is swept. HF_CHAOS_ACTIONS changes the length.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <ftw.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACTIONS = 200, WARM = 12, WIDE_ROWS = 4000000, STATEMENT_BYTES = 600 };
static const uint64_t DEADLINE_US = 60000000;

/* --------------------------------------------------------------- our memory */

static atomic_llong n_blocks, n_bytes;

static void *gained(void *block) {
  if (block != NULL) {
    atomic_fetch_add(&n_blocks, 1);
    atomic_fetch_add(&n_bytes, (long long)malloc_usable_size(block));
  }
  return block;
}

static void lost(void *block) {
  if (block != NULL) {
    atomic_fetch_sub(&n_blocks, 1);
    atomic_fetch_sub(&n_bytes, (long long)malloc_usable_size(block));
  }
}

void *__real_mem_alloc(size_t bytes);
void *__real_mem_zalloc(size_t count, size_t bytes);
void *__real_mem_realloc(void *block, size_t bytes);
void *__real_mem_alloc_aligned(size_t alignment, size_t bytes);
void __real_mem_free(void *block);
char *__real_mem_strdup(const char *text);
char *__real_mem_strndup(const char *text, size_t bytes);
void *__wrap_mem_alloc(size_t bytes);
void *__wrap_mem_zalloc(size_t count, size_t bytes);
void *__wrap_mem_realloc(void *block, size_t bytes);
void *__wrap_mem_alloc_aligned(size_t alignment, size_t bytes);
void __wrap_mem_free(void *block);
char *__wrap_mem_strdup(const char *text);
char *__wrap_mem_strndup(const char *text, size_t bytes);

void *__wrap_mem_alloc(size_t bytes) {
  return gained(__real_mem_alloc(bytes));
}

void *__wrap_mem_zalloc(size_t count, size_t bytes) {
  return gained(__real_mem_zalloc(count, bytes));
}

void *__wrap_mem_realloc(void *block, size_t bytes) {
  lost(block);
  void *moved = __real_mem_realloc(block, bytes);
  gained(moved == NULL ? block : moved);
  return moved;
}

void *__wrap_mem_alloc_aligned(size_t alignment, size_t bytes) {
  return gained(__real_mem_alloc_aligned(alignment, bytes));
}

void __wrap_mem_free(void *block) {
  lost(block);
  __real_mem_free(block);
}

char *__wrap_mem_strdup(const char *text) {
  return gained(__real_mem_strdup(text));
}

char *__wrap_mem_strndup(const char *text, size_t bytes) {
  return gained(__real_mem_strndup(text, bytes));
}

/* ------------------------------------------------------------------- at rest */

typedef struct amounts {
  long long descriptors, threads, entries, blocks, bytes, resident;
} amounts;

static long long entries_of(const char *path) {
  long long n = 0;
  DIR *dir = opendir(path);
  assert_non_null(dir);
  while (readdir(dir) != NULL) {
    n++;
  }
  closedir(dir);
  return n;
}

static long long n_below;

static int count_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)path;
  (void)info;
  (void)kind;
  (void)walk;
  n_below++;
  return 0;
}

static long long resident_bytes(void) {
  long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %lld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* Another session comes and goes, which waits for the files that were to go before. */
static amounts look(const api_case *c) {
  hf_session *other = NULL;
  assert_int_equal(hf_session_new(c->session, &other, NULL), HF_OK);
  hf_session_close(other);
  n_below = 0;
  nftw(c->work_dir, count_entry, 16, FTW_PHYS);
  return (amounts){.descriptors = entries_of("/proc/self/fd"),
                   .threads = entries_of("/proc/self/task"),
                   .entries = n_below,
                   .blocks = atomic_load(&n_blocks),
                   .bytes = atomic_load(&n_bytes),
                   .resident = resident_bytes()};
}

/* A few blocks more are a table that has grown. */
static bool is_more(const amounts *now, const amounts *before) {
  enum { BLOCKS = 8, BYTES = 4096 };
  return now->descriptors > before->descriptors || now->threads > before->threads ||
         now->entries > before->entries || now->blocks > before->blocks + BLOCKS ||
         now->bytes > before->bytes + BYTES;
}

/* A thread that has told of its work may still be about to give back what it took for it. */
static amounts look_until(const api_case *c, const amounts *before) {
  uint64_t deadline_us = clock_monotonic_us() + DEADLINE_US;
  amounts now = look(c);
  while (is_more(&now, before) && clock_monotonic_us() < deadline_us) {
    now = look(c);
  }
  return now;
}

static unsigned actions(void) {
  const char *text = getenv("HF_CHAOS_ACTIONS");
  return text == NULL || text[0] == '\0' ? ACTIONS : (unsigned)strtoul(text, NULL, 10);
}

/* Runs `action` a few times, then `n` times, and expects no more to be there. */
static void expect_no_more(api_case *c, void (*action)(api_case *c, unsigned i), unsigned n) {
  const char *sanitizers = getenv("HOLDFAST_SANITIZE");
  bool is_plain = sanitizers == NULL || sanitizers[0] == '\0'; /* they keep memory that was freed */
  for (unsigned i = 0; i < WARM; i++) {
    action(c, i);
  }
  amounts before = look(c);
  for (unsigned i = 0; i < n; i++) {
    action(c, WARM + i);
  }
  amounts now = look_until(c, &before);
  print_message(
      "%u times: %lld descriptors, %lld threads, %lld entries, %+lld blocks, %+lld bytes, %+lld kB\n", n,
      now.descriptors, now.threads, now.entries, now.blocks - before.blocks, now.bytes - before.bytes,
      (now.resident - before.resident) / 1024);
  assert_false(is_more(&now, &before));
  assert_true(!is_plain || now.resident < before.resident + (64 << 20));
}

/* ---------------------------------------------------------------------- case */

static void make_view(api_case *c, const char *name, const char *query, unsigned group_rows) {
  char sql[STATEMENT_BYTES];
  oracle *plain = oracle_open();
  snprintf(sql, sizeof sql, "COPY (%s) TO '%s/%s.parquet' (ROW_GROUP_SIZE %u)", query, c->dir, name,
           group_rows);
  assert_null(oracle_run(plain, sql));
  oracle_close(plain);
  snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM '%s/%s.parquet'", name, c->dir, name);
  api_run(c, sql);
}

static int open_all(void **state) {
  api_case_open_two_slots(state);
  api_case *c = *state;
  make_view(c, "t", "SELECT i AS x, i % 7 AS k, 's' || i % 5 AS s FROM range(12000) t(i)", 2048);
  make_view(c, "u", "SELECT i * 2 AS x, i % 3 AS g FROM range(9000) t(i)", 2048);
  api_run(c, "SET tasks = 2");
  return 0;
}

/* A query of two tasks in two stages or more, another for each number. */
static void query_of(unsigned i, char sql[STATEMENT_BYTES]) {
  static const char *const queries[] = {
      "SELECT k, count(*) AS n, sum(x)::BIGINT AS s FROM t WHERE x %% %u <> 1 GROUP BY k ORDER BY k",
      "SELECT s, count(*) AS n FROM t JOIN u USING (x) WHERE t.x > %u GROUP BY s ORDER BY s",
      "SELECT count(DISTINCT x) AS n FROM (SELECT x FROM t WHERE x > %u UNION ALL SELECT x FROM u)",
      "SELECT x, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM t WHERE x > %u ORDER BY x LIMIT 5",
  };
  snprintf(sql, STATEMENT_BYTES, queries[i % 4], i + 2);
}

/* --------------------------------------------------------------------- queries */

static void run_cut(api_case *c, unsigned i) {
  char sql[STATEMENT_BYTES];
  hf_profile profile;
  query_of(i, sql);
  hf_df *df = api_sql(c, sql);
  free(api_rows(c, df, &profile));
  assert_int_equal(profile.widest_tasks, 2);
  hf_df_free(df);
}

static void queries_give_back_what_they_took(void **state) {
  expect_no_more(*state, run_cut, 2 * actions());
}

/* ------------------------------------------------------------------ cancelled */

enum { AT_NO_POINT, AT_BEGIN, AT_BATCH };
static hf_cancel *cancel;     /* of the query that runs */
static atomic_int cancels_at; /* which point is to be passed next */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived;
static unsigned n_arrived; /* cancellations, at the scheduler; guarded by lock */

static void cancel_at(int point) {
  if (!atomic_compare_exchange_strong(&cancels_at, &point, AT_NO_POINT)) {
    return;
  }
  uint64_t deadline_us = clock_monotonic_us() + DEADLINE_US;
  pthread_mutex_lock(&lock);
  unsigned before = n_arrived;
  hf_cancel_signal(cancel);
  while (n_arrived == before && cond_wait_until(&arrived, &lock, deadline_us)) {
  }
  pthread_mutex_unlock(&lock);
}

static void begins(void) {
  cancel_at(AT_BEGIN);
}

static void gives_rows(void) {
  cancel_at(AT_BATCH);
}

static void arrives(void) {
  pthread_mutex_lock(&lock);
  n_arrived++;
  pthread_cond_broadcast(&arrived);
  pthread_mutex_unlock(&lock);
}

static int set_hooks(void **state) {
  (void)state;
  cond_init(&arrived);
  fault_set("executor.before_run", begins);
  fault_set("exchange.batch", gives_rows);
  fault_set("scheduler.cancels", arrives);
  return 0;
}

static int end_hooks(void **state) {
  (void)state;
  fault_set("executor.before_run", NULL);
  fault_set("exchange.batch", NULL);
  fault_set("scheduler.cancels", NULL);
  return 0;
}

/* Cancels in the middle: as a task begins, or when it has rows to give. */
static void collect_cancelled(api_case *c, const char *sql, unsigned i) {
  struct ArrowArrayStream stream;
  hf_error error = {0};
  cancel = hf_cancel_new();
  hf_action_options options = {.cancel = cancel};
  hf_df *df = api_sql(c, sql);
  atomic_store(&cancels_at, i % 2 == 0 ? AT_BEGIN : AT_BATCH);
  assert_int_equal(hf_df_collect(df, &options, &stream, &error), HF_E_CANCELLED);
  hf_error_reset(&error);
  hf_df_free(df);
  hf_cancel_free(cancel);
}

static void run_cancelled(api_case *c, unsigned i) {
  char sql[STATEMENT_BYTES];
  query_of(i / 2, sql);
  collect_cancelled(c, sql, i);
}

/* More tasks than slots: some of them end in the queue. */
static void cancelled_queries_give_back_what_they_took(void **state) {
  api_run(*state, "SET tasks = 4");
  expect_no_more(*state, run_cancelled, actions());
  api_run(*state, "SET tasks = 2");
}

/* -------------------------------------------------------------------- sessions */

/* Runs what follows in a session of its own: a hold that was let go is remembered until its session ends. */
static hf_session *enter_session(api_case *c) {
  static const char *const views[] = {"t", "u"};
  char sql[STATEMENT_BYTES];
  hf_session *outer = c->session;
  assert_int_equal(hf_session_new(outer, &c->session, NULL), HF_OK);
  for (int i = 0; i < 2; i++) {
    snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM '%s/%s.parquet'", views[i], c->dir, views[i]);
    api_run(c, sql);
  }
  api_run(c, "SET tasks = 2");
  return outer;
}

static void leave_session(api_case *c, hf_session *outer) {
  hf_session_close(c->session);
  c->session = outer;
}

/* Holds results and lets them go, or leaves that to the end of the session; every other fill is cancelled once. */
static void run_fills(api_case *c, unsigned i) {
  char query[STATEMENT_BYTES], sql[STATEMENT_BYTES + 40];
  hf_profile profile;
  hf_session *outer = enter_session(c);
  for (unsigned k = 0; k < 4; k++) {
    query_of(4 * i + k, query);
    snprintf(sql, sizeof sql, "CACHE LAZY TABLE h%u AS %s", k / 2, query);
    api_run(c, sql);
    snprintf(sql, sizeof sql, "SELECT count(*) AS n FROM h%u", k / 2);
    if (k % 2 == 1) {
      collect_cancelled(c, sql, i);
    }
    hf_df *df = api_sql(c, sql);
    free(api_rows(c, df, &profile));
    hf_df_free(df);
    assert_int_equal(profile.held_fills, 1);
    assert_int_equal(profile.widest_tasks, 2);
    snprintf(sql, sizeof sql, "UNCACHE TABLE h%u", k / 2);
    api_run(c, k < 3 ? sql : "SHOW CACHE");
  }
  leave_session(c, outer);
}

static void sessions_with_fills_give_back_what_they_took(void **state) {
  expect_no_more(*state, run_fills, actions() / 8);
}

/* --------------------------------------------------------------- planned again */

/* What its first stage gives is far less than is guessed. */
static void run_again(api_case *c, unsigned i) {
  static const char query[] =
      "WITH few AS MATERIALIZED (SELECT x, g FROM wide WHERE x < %u) SELECT sum(n)::BIGINT AS n FROM "
      "(SELECT g, count(*) AS n FROM few GROUP BY g) a JOIN (SELECT g, max(x) AS m FROM few GROUP BY g) b USING (g)";
  char sql[STATEMENT_BYTES], *plan = NULL;
  snprintf(sql, sizeof sql, query, 100 + i);
  hf_df *df = api_sql(c, sql);
  assert_int_equal(hf_df_explain_analyze(df, NULL, &plan, NULL), HF_OK);
  if (strstr(plan, "planned again") == NULL) {
    fail_msg("not planned again:\n%s", plan);
  }
  hf_text_free(plan);
  hf_df_free(df);
}

static void queries_planned_again_give_back_what_they_took(void **state) {
  api_case *c = *state;
  char query[80];
  snprintf(query, sizeof query, "SELECT i AS x, i %% 7 AS g FROM range(%d) t(i)", WIDE_ROWS);
  make_view(c, "wide", query, 100000);
  expect_no_more(c, run_again, actions() / 4);
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
#define HOOKED(name) cmocka_unit_test_setup_teardown(name, set_hooks, end_hooks)
  const struct CMUnitTest tests[] = {
      CASE(queries_give_back_what_they_took),
      HOOKED(cancelled_queries_give_back_what_they_took),
      HOOKED(sessions_with_fills_give_back_what_they_took),
      CASE(queries_planned_again_give_back_what_they_took),
  };
  return cmocka_run_group_tests(tests, open_all, api_case_close);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process on a state directory is killed, at named points and at any moment; the
 * next start has all that was acknowledged, gives right answers, and leaves blocks
 * of what is held only. The process is this program again, with arguments: it says
 * on its standard output what it is about to do, and what was done.
 */
#include "support/state_case.h"

#include "base/fault.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { TABLES = 6, THREADS_MOST = 3, KILLS = 24, ACTIONS_A_KILL = 10, LONGEST_MS = 350, LINE_BYTES = 16 };

/* ----------------------------------------------------------- the process killed */

static atomic_int hits_left;

static void hit(void) {
  if (atomic_fetch_sub(&hits_left, 1) == 1) {
    kill(getpid(), SIGKILL);
  }
}

/* What a statement of the process changes, in the words of its acknowledgement. */
typedef struct step {
  char kind; /* C cached, U uncached, V view, R refreshed, q asked, X closed and opened again */
  int table;
  int version;
} step;

/* Table `t` of version v holds v * 1000 + t in each of its rows, so an answer tells the version it is of. */
static void step_sql(const step *s, char *sql, size_t room) {
  switch (s->kind) {
    case 'C':
      snprintf(sql, room, "CACHE TABLE t%d AS SELECT range AS n, %d AS v FROM range(20000)", s->table,
               s->version * 1000 + s->table);
      break;
    case 'U':
      snprintf(sql, room, "UNCACHE TABLE IF EXISTS t%d", s->table);
      break;
    case 'V':
      snprintf(sql, room, "CREATE OR REPLACE VIEW w%d AS SELECT %d AS v", s->table, s->version);
      break;
    case 'R':
      snprintf(sql, room, "REFRESH TABLE t%d", s->table);
      break;
    default:
      snprintf(sql, room, "SELECT sum(n), min(v), max(v) FROM t%d", s->table);
  }
}

/* Runs one statement to its end; false when it failed. */
static bool step_run(hf_session *session, const step *s) {
  char sql[200];
  hf_df *df = NULL;
  struct ArrowArrayStream stream;
  hf_error error = {0};
  step_sql(s, sql, sizeof sql);
  bool is_done = hf_session_sql(session, sql, &df, &error) == HF_OK;
  if (is_done && s->kind == 'q') {
    is_done = hf_df_collect(df, NULL, &stream, &error) == HF_OK;
    if (is_done) {
      stream.release(&stream);
    }
  }
  hf_df_free(df);
  hf_error_reset(&error);
  return is_done;
}

/* '?': it begins; '!': it is done. */
static void tell(char mark, const step *s) {
  char line[LINE_BYTES + 1];
  snprintf(line, sizeof line, "%c%c %2d %9d\n", mark, s->kind, s->table, s->version);
  if (write(STDOUT_FILENO, line, LINE_BYTES) != LINE_BYTES) {
    _exit(3);
  }
}

static void take(hf_session *session, const step *s) {
  tell('?', s);
  if (!step_run(session, s) && s->kind != 'R' &&
      s->kind != 'q') { /* these fail when there is no such table */
    _exit(4);
  }
  tell('!', s);
}

static hf_session *child_open(const char *dir) {
  const hf_setting settings[] = {{"state_dir", dir}, {"threads", "2"}, {"memory", "256MiB"}};
  hf_session *session = NULL;
  hf_error error = {0};
  if (hf_session_open("local", settings, 3, &session, &error) != HF_OK) {
    fprintf(stderr, "open: %s\n", error.message);
    _exit(2);
  }
  return session;
}

/* One thread's part: tables of its own, so that what it tells of them is in order. */
typedef struct part {
  hf_session *session;
  unsigned seed;
  int number, of, version;
} part;

static void *part_run(void *context) {
  part *p = context;
  for (;; p->version++) {
    int table = rand_r(&p->seed) % (TABLES / p->of) * p->of + p->number;
    char kind = "UCCVRq"[rand_r(&p->seed) % 6];
    step s = {.kind = kind, .table = table, .version = p->version};
    if (s.kind == 'C') {
      take(p->session, &(step){'U', s.table, s.version});
    }
    take(p->session, &s);
    if (p->of == 1 && rand_r(&p->seed) % 20 == 0) {
      return NULL;
    }
  }
}

static void work_in_threads(const char *dir, part *parts, int n) {
  pthread_t threads[THREADS_MOST];
  hf_session *session = child_open(dir);
  for (int i = 0; i < n; i++) {
    parts[i].session = session;
    if (pthread_create(&threads[i], NULL, part_run, &parts[i]) != 0) {
      _exit(5);
    }
  }
  pthread_join(threads[0], NULL);
}

/* One thread: closing and opening are killed too. */
static void work_alone(const char *dir, part *p) {
  for (;;) {
    step again = {'X', 0, p->version};
    tell('?', &again);
    p->session = child_open(dir);
    tell('!', &again);
    part_run(p);
    tell('?', &again);
    hf_session_close(p->session);
    tell('!', &again);
  }
}

/* Arguments: state directory, seed, first version, fault point or "-", its hit, threads. */
static int child_main(char **arguments) {
  if (strcmp(arguments[3], "-") != 0) {
    hits_left = (int)strtol(arguments[4], NULL, 10);
    fault_set(arguments[3], hit);
  }
  part parts[THREADS_MOST];
  int n = (int)strtol(arguments[5], NULL, 10);
  for (int i = 0; i < n; i++) {
    parts[i] = (part){.seed = (unsigned)strtoul(arguments[1], NULL, 10) + (unsigned)i,
                      .number = i,
                      .of = n,
                      .version = (int)strtol(arguments[2], NULL, 10)};
  }
  if (n == 1) {
    work_alone(arguments[0], &parts[0]);
  }
  work_in_threads(arguments[0], parts, n);
  return 0;
}

/* ------------------------------------------------------------------ what is known */

/* What was told; 0: it is not there. */
typedef struct known {
  int tables[TABLES], views[TABLES];
  bool is_filled[TABLES]; /* its blocks are there */
  step begun[TABLES];     /* not done yet, unless its kind is 0 */
  int version;            /* the last that was heard of */
  int n_steps;
} known;

static void learn(known *k, const char *line) {
  step s = {0};
  assert_int_equal(sscanf(line + 1, "%c %d %d", &s.kind, &s.table, &s.version), 3);
  k->version = s.version > k->version ? s.version : k->version;
  if (s.kind == 'X') {
    return;
  }
  k->begun[s.table] = line[0] == '?' ? s : (step){0};
  if (line[0] == '?') {
    return;
  }
  k->n_steps++;
  if (s.kind == 'V') {
    k->views[s.table] = s.version;
  } else if (s.kind == 'C' || s.kind == 'U') {
    k->tables[s.table] = s.kind == 'C' ? s.version : 0;
  }
  k->is_filled[s.table] =
      k->tables[s.table] != 0 && s.kind != 'R' && (s.kind != 'V' || k->is_filled[s.table]);
}

/* --------------------------------------------------------------------- running it */

typedef struct child {
  pid_t pid;
  int out;
} child;

typedef struct child_options {
  unsigned seed;
  const char *fault; /* NULL: none */
  int nth, threads;
} child_options;

static child child_start(api_case *c, const known *k, const child_options *o) {
  char self[256], seed_text[16], version_text[16], nth_text[16], threads_text[16];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  snprintf(seed_text, sizeof seed_text, "%u", o->seed);
  snprintf(version_text, sizeof version_text, "%d", k->version + 10);
  snprintf(nth_text, sizeof nth_text, "%d", o->nth);
  snprintf(threads_text, sizeof threads_text, "%d", o->threads);
  char *fault = (char *)(o->fault == NULL ? "-" : o->fault);
  char *arguments[] = {self, c->work_dir, seed_text, version_text, fault, nth_text, threads_text, NULL};
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  child made = {.out = ends[0]};
  assert_int_equal(posix_spawn(&made.pid, self, &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  return made;
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Hears one line; false at the deadline or the end. */
static bool child_read(child *of, known *k, long deadline) {
  char line[LINE_BYTES + 1] = "";
  struct pollfd wait = {.fd = of->out, .events = POLLIN};
  long left = deadline - now_ms();
  if (left <= 0 || poll(&wait, 1, (int)left) != 1) {
    return false;
  }
  ssize_t got = read(of->out, line, LINE_BYTES); /* written whole, for it is shorter than PIPE_BUF */
  if (got != LINE_BYTES) {
    return false;
  }
  learn(k, line);
  return true;
}

/* Listens until the deadline, kills it if it lives, and hears what it still said. */
static void child_end(child *of, known *k, long deadline) {
  int status = 0;
  while (child_read(of, k, deadline)) {
  }
  kill(of->pid, SIGKILL);
  assert_int_equal(waitpid(of->pid, &status, 0), of->pid);
  while (child_read(of, k, now_ms() + 240000)) {
  }
  close(of->out);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ------------------------------------------------------------------------ judging */

static char *ask(api_case *c, const char *format, int table, hf_profile *profile) {
  char sql[200];
  hf_df *df = NULL;
  snprintf(sql, sizeof sql, format, table);
  if (hf_session_sql(c->session, sql, &df, &c->error) != HF_OK) {
    assert_int_equal(c->error.code, HF_E_TABLE_NOT_FOUND);
    hf_error_reset(&c->error);
    return NULL;
  }
  char *rows = api_rows(c, df, profile);
  hf_df_free(df);
  return rows;
}

/* The version of a table, 0 when it is not there. Its rows must be all of one version, and all there; read from blocks
 * when these were told to be there. */
static int version_of(api_case *c, const known *k, int table) {
  hf_profile profile = {0};
  char *rows = ask(c, "SELECT sum(n)::BIGINT, count(*), min(v), max(v) FROM t%d", table, &profile);
  if (rows == NULL) {
    return 0;
  }
  int least = 0, most = 0;
  long sum = 0, count = 0;
  assert_int_equal(sscanf(rows, "%ld|%ld|%d|%d", &sum, &count, &least, &most), 4);
  free(rows);
  if (k->is_filled[table] && k->begun[table].kind == 0) {
    assert_int_equal(profile.held_hits, 1);
    assert_int_equal(profile.held_fills, 0);
  }
  assert_int_equal(sum, 199990000L);
  assert_int_equal(count, 20000);
  assert_int_equal(least, most);
  assert_int_equal(least % 1000, table);
  return least / 1000;
}

/* What was told is there; of the step that was under way, the state before or after it. */
static void judge_one(const known *k, const char *what, char kind, int table, int *told, int found) {
  const step *s = &k->begun[table];
  bool is_under_way = s->kind == kind || (s->kind == 'U' && kind == 'C');
  int after = s->kind == 'U' ? 0 : s->version;
  if (found != *told && !(is_under_way && found == after)) {
    fail_msg("%s%d: told %d, found %d; under way was %c %d %d", what, table, *told, found,
             s->kind == 0 ? '-' : s->kind, s->table, s->version);
  }
  *told = found;
}

static int view_of(api_case *c, int table) {
  char *rows = ask(c, "SELECT v FROM w%d", table, NULL);
  int version = rows == NULL ? 0 : (int)strtol(rows, NULL, 10);
  free(rows);
  return version;
}

static void judge(api_case *c, known *k) {
  char work_dir[128];
  unsigned n_held = 0;
  state_begin(c);
  for (int table = 0; table < TABLES; table++) {
    judge_one(k, "t", 'C', table, &k->tables[table], version_of(c, k, table));
    judge_one(k, "w", 'V', table, &k->views[table], view_of(c, table));
    k->is_filled[table] = k->tables[table] != 0;
    n_held += k->is_filled[table];
  }
  memset(k->begun, 0, sizeof k->begun);
  state_end(c);
  snprintf(work_dir, sizeof work_dir, "%s/work", c->work_dir);
  assert_int_equal(attempts_below(work_dir), n_held);
  snprintf(work_dir, sizeof work_dir, "%s/work/trash", c->work_dir);
  assert_false(path_exists(work_dir));
}

static void kill_at_any_moment_loses_nothing_that_was_told(void **state) {
  api_case *c = *state;
  known k = {0};
  const char *actions = getenv("HF_CHAOS_ACTIONS"), *given = getenv("HF_CHAOS_SEED");
  int n_kills = actions == NULL ? KILLS : (int)strtol(actions, NULL, 10) / ACTIONS_A_KILL;
  unsigned seed = given == NULL ? (unsigned)time(NULL) : (unsigned)strtoul(given, NULL, 10);
  print_message("seed %u (HF_CHAOS_SEED)\n", seed);
  state_end(c);
  for (int i = 0; i < n_kills; i++) {
    child of =
        child_start(c, &k, &(child_options){.seed = (unsigned)rand_r(&seed), .threads = i % 2 == 0 ? 1 : 3});
    child_read(&of, &k, now_ms() + 240000); /* until it works: what comes before is short */
    child_end(&of, &k, now_ms() + (long)(rand_r(&seed) % LONGEST_MS));
    judge(c, &k);
  }
  print_message("%d kills, %d steps\n", n_kills, k.n_steps);
  state_begin(c);
}

static void kill_at_the_start_loses_nothing(void **state) {
  api_case *c = *state;
  known k = {0};
  unsigned seed = 1;
  state_end(c);
  for (int i = 0; i < 6; i++) {
    child of = child_start(c, &k, &(child_options){.seed = (unsigned)rand_r(&seed), .threads = 1});
    child_end(&of, &k, now_ms() + 15L * i);
    judge(c, &k);
  }
  state_begin(c);
}

/* Kills at the n-th passing of a named point. */
static void kill_at_point(api_case *c, const char *point) {
  known k = {0};
  state_end(c);
  for (int nth = 1; nth <= 4; nth += 3) {
    child of = child_start(c, &k, &(child_options){(unsigned)nth * 17u, point, nth, nth == 1 ? 1 : 3});
    child_end(&of, &k, now_ms() + 30000);
    judge(c, &k);
  }
  state_begin(c);
}

static void kill_before_a_fill(void **state) {
  kill_at_point(*state, "executor.before_run");
}

static void kill_in_the_middle_of_a_fill(void **state) {
  kill_at_point(*state, "exchange.batch");
}

static void kill_between_blocks_and_journal(void **state) {
  kill_at_point(*state, "scheduler.before_journal");
}

static void kill_before_the_journal_commits(void **state) {
  kill_at_point(*state, "journal.before_commit");
}

static void kill_after_the_journal_committed(void **state) {
  kill_at_point(*state, "journal.after_commit");
}

static void kill_between_journal_and_deletion(void **state) {
  kill_at_point(*state, "scheduler.before_delete");
}

int main(int argc, char **argv) {
  if (argc == 7) {
    return child_main(argv + 1);
  }
#define CASE(name) cmocka_unit_test_setup_teardown(name, state_case_open, state_case_close)
  const struct CMUnitTest tests[] = {
      CASE(kill_before_a_fill),
      CASE(kill_in_the_middle_of_a_fill),
      CASE(kill_between_blocks_and_journal),
      CASE(kill_before_the_journal_commits),
      CASE(kill_after_the_journal_committed),
      CASE(kill_between_journal_and_deletion),
      CASE(kill_at_the_start_loses_nothing),
      CASE(kill_at_any_moment_loses_nothing_that_was_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

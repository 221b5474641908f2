/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a tree of sqllogictest files: each query once as it is and once as the
 * SQL that its plan was written back to, on the same connection, and compares
 * types and rows. Each file is a child process of its own: a crash, or a query
 * without an end, costs that file only.
 * With --cut N the plan is not written whole but cut into stages of N tasks.
 * Usage: slt_run [--cut N [--broadcast BYTES] [--share PERCENT]] [--list CLASS] [--strict 1] PATH…
 * Exit status 1 when fewer than PERCENT of the SELECTs that read a table are cut without a fallback (class of --list:
 * fallback), when something differs or what was written fails, or nothing was compared; with --strict also when a
 * query fails as it is, when one is late, and when a file is skipped or its process dies.
 */
#include "corpus/slt_cut.h"
#include "corpus/slt_share.h"
#include "support/rewrite.h"
#include "verify/slt_file.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longest statement, and rows from which a result is not compared. */
enum { LIMIT_SECONDS = 3, MOST_ROWS = 20000, REASON_BYTES = 160, MOST_REASONS = 4000 };

/* Classes of outcome, in the order of the table. */
#define CLASSES(X)                                              \
  X(EXACT, "exact", "same types and rows, in the same order")   \
  X(ORDER, "order", "same rows in another order")               \
  X(REFUSED, "refused", "not written, with a reason")           \
  X(UNSERIALISED, "unserialised", "no plan from DuckDB")        \
  X(ERROR, "error", "the written SQL fails")                    \
  X(TYPES, "types", "other types: DIFFERENT")                   \
  X(ROWS, "rows", "other rows: DIFFERENT")                      \
  X(VOLATILE, "volatile", "other rows when run twice as it is") \
  X(FAILS, "fails", "fails as it is")                           \
  X(UNHELD, "unheld", "this runner's tables cannot hold it")    \
  X(BIG, "big", "too many rows to compare")                     \
  X(LATE, "late", "stopped by the time limit")                  \
  X(SKIPPED, "skipped", "files that need what is not here")     \
  X(DEAD, "dead", "files whose process died")

typedef enum outcome {
#define X(id, name, sentence) OUTCOME_##id,
  CLASSES(X)
#undef X
      OUTCOME_COUNT
} outcome;

static const char *const class_names[] = {
#define X(id, name, sentence) name,
    CLASSES(X)
#undef X
};
static const char *const class_sentences[] = {
#define X(id, name, sentence) sentence,
    CLASSES(X)
#undef X
};

/* -------------------------------------------------------------- one file */

typedef struct run {
  oracle *o;
  const char *path;
  FILE *report; /* to the parent: outcome, reason, query, share, why not more: each a line */
  slt_share share;
  char why[600];
} run;

static void put_line(FILE *to, const char *text) {
  for (const char *c = text; *c != '\0'; c++) {
    fputc(*c == '\n' || *c == '\r' ? ' ' : *c, to);
  }
  fputc('\n', to);
}

static void report(run *r, outcome what, const char *reason, const char *sql) {
  fprintf(r->report, "%d\n", (int)what);
  put_line(r->report, reason);
  put_line(r->report, sql);
  fprintf(r->report, "%d\n", (int)r->share);
  put_line(r->report, r->why);
  fflush(r->report);
  r->share = SLT_SHARE_NONE;
  r->why[0] = '\0';
}

static bool is_select(const char *sql) {
  static const char *const words[] = {"(", "select", "with", "from", "values", "pivot", "unpivot"};
  while (*sql != '\0' && strchr(" \t\n", *sql) != NULL) {
    sql++;
  }
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strncasecmp(sql, words[i], strlen(words[i])) == 0) {
      return true;
    }
  }
  return false;
}

static void compare_written(run *r, const char *sql, const oracle_rows *expected, const rewrite *written) {
  oracle_rows rows;
  char *error = oracle_query(r->o, written->sql, MOST_ROWS, &rows);
  if (error != NULL) {
    report(r, oracle_is_late(r->o) ? OUTCOME_LATE : OUTCOME_ERROR, error, sql);
    free(error);
    free(oracle_run(r->o, "ROLLBACK"));
    return;
  }
  static const outcome outcomes[] = {OUTCOME_EXACT, OUTCOME_ORDER, OUTCOME_ROWS, OUTCOME_TYPES};
  oracle_verdict verdict = oracle_compare(expected, &rows);
  report(r, outcomes[verdict], verdict == ORACLE_SAME ? "" : oracle_difference(expected, &rows), sql);
  oracle_rows_free(&rows);
}

static uint32_t cut_tasks;
static uint64_t broadcast_bytes;

/* A graph that is one task by a reason is counted under it. */
static void compare_cut(run *r, const char *sql, const oracle_rows *expected) {
  cut_outcome out;
  slt_cut_result result = slt_cut_query(r->o, sql, cut_tasks, broadcast_bytes, expected, &out);
  bool is_same = out.verdict == ORACLE_SAME || out.verdict == ORACLE_OTHER_ORDER;
  bool is_late = oracle_is_late(r->o);
  if (!is_late && slt_share_reads(r->o, sql)) {
    r->share = slt_share_of(&out, result == SLT_CUT_RUN);
    snprintf(r->why, sizeof r->why, "%s", out.problem[0] != '\0' ? out.problem : out.why);
  }
  if (is_late) {
    report(r, OUTCOME_LATE, "cut", sql);
  } else if (result != SLT_CUT_RUN) {
    report(r, result == SLT_CUT_REFUSED ? OUTCOME_REFUSED : OUTCOME_UNSERIALISED, out.why, sql);
  } else if (strstr(out.problem, "cannot be created from an unnamed struct") != NULL) {
    report(r, OUTCOME_UNHELD, out.problem, sql);
  } else if (out.problem[0] != '\0') {
    bool is_error = strncmp(out.problem, "differs", strlen("differs")) != 0;
    report(r, is_error ? OUTCOME_ERROR : is_same ? OUTCOME_TYPES : OUTCOME_ROWS, out.problem, sql);
    free(oracle_run(r->o, "ROLLBACK"));
  } else {
    report(r, out.verdict == ORACLE_SAME ? OUTCOME_EXACT : OUTCOME_ORDER, out.why, sql);
  }
}

static void compare_query(run *r, const char *sql, const oracle_rows *expected) {
  rewrite written;
  if (cut_tasks > 0) {
    compare_cut(r, sql, expected);
    return;
  }
  rewrite_query(r->o, sql, NULL, NULL, &written);
  if (oracle_is_late(r->o)) {
    report(r, OUTCOME_LATE, "planning", sql);
  } else if (written.outcome != REWRITE_DONE) {
    report(r, written.outcome == REWRITE_REFUSED ? OUTCOME_REFUSED : OUTCOME_UNSERIALISED, written.why, sql);
  } else {
    compare_written(r, sql, expected, &written);
  }
  rewrite_free(&written);
}

static void run_query(run *r, const char *sql) {
  oracle_rows first, second;
  free(oracle_run(r->o, "PRAGMA disable_verification"));
  char *error = oracle_query(r->o, sql, MOST_ROWS, &first);
  if (error != NULL) {
    report(r, oracle_is_late(r->o) ? OUTCOME_LATE : OUTCOME_FAILS, error, sql);
    free(error);
    free(oracle_run(r->o, "ROLLBACK"));
    return;
  }
  if (first.n_rows > MOST_ROWS) {
    report(r, OUTCOME_BIG, "", sql);
    return;
  }
  error = oracle_query(r->o, sql, MOST_ROWS, &second);
  if (error != NULL || oracle_compare(&first, &second) >= ORACLE_OTHER_ROWS) {
    report(r, OUTCOME_VOLATILE, "", sql);
  } else {
    compare_query(r, sql, &first);
  }
  free(error);
  oracle_rows_free(&first);
  oracle_rows_free(&second);
}

/* What changes how DuckDB computes, not what: both ways of a query are to be planned as a planner plans. */
static bool is_ignored(const char *sql) {
  return strncasecmp(sql, "PRAGMA disable_optimizer", strlen("PRAGMA disable_optimizer")) == 0;
}

static void run_file(run *r) {
  slt_file file;
  if (!slt_file_read(r->path, &file)) {
    report(r, OUTCOME_SKIPPED, "cannot be read", "");
    return;
  }
  if (file.skipped != NULL) {
    report(r, OUTCOME_SKIPPED, file.skipped, "");
    slt_file_free(&file);
    return;
  }
  r->o = oracle_open();
  oracle_set_limit(r->o, LIMIT_SECONDS);
  for (size_t i = 0; i < file.n_records; i++) {
    const char *sql = file.records[i].sql;
    if (file.records[i].kind == SLT_STATEMENT) {
      free(is_ignored(sql) ? NULL : oracle_run(r->o, sql));
    } else if (is_select(sql)) {
      run_query(r, sql);
    }
  }
  oracle_close(r->o);
  slt_file_free(&file);
}

/* ------------------------------------------------------------- all of them */

static struct counted_reason {
  outcome what;
  char reason[REASON_BYTES];
  unsigned long n;
} reasons[MOST_REASONS];
static size_t n_reasons;
static unsigned long counts[OUTCOME_COUNT], n_files;
static const char *listed_class = "";
static bool is_strict;
static double least_share;

static void count_reason(outcome what, const char *reason) {
  counts[what]++;
  if (what == OUTCOME_EXACT || what == OUTCOME_ORDER || what == OUTCOME_BIG || what == OUTCOME_VOLATILE) {
    return;
  }
  for (size_t i = 0; i < n_reasons; i++) {
    if (reasons[i].what == what && strncmp(reasons[i].reason, reason, REASON_BYTES - 1) == 0) {
      reasons[i].n++;
      return;
    }
  }
  if (n_reasons < MOST_REASONS) {
    reasons[n_reasons].what = what;
    reasons[n_reasons].n = 1;
    snprintf(reasons[n_reasons++].reason, REASON_BYTES, "%s", reason);
  }
}

static bool is_listed(outcome what) {
  bool is_bad =
      what == OUTCOME_ROWS || what == OUTCOME_TYPES || what == OUTCOME_ERROR || what == OUTCOME_LATE;
  is_bad = is_bad || (is_strict && what == OUTCOME_FAILS);
  return is_bad || strcmp(listed_class, class_names[what]) == 0;
}

static bool read_report(FILE *from, char **line, size_t *capacity) {
  ssize_t n = getline(line, capacity, from);
  if (n > 0 && (*line)[n - 1] == '\n') {
    (*line)[n - 1] = '\0';
  }
  return n > 0;
}

static void collect(FILE *from, const char *path) {
  enum { WHAT, REASON, SQL, SHARE, WHY, LINES };
  char *lines[LINES] = {0};
  size_t capacities[LINES] = {0}, n = 0;
  while (read_report(from, &lines[n], &capacities[n])) {
    if (++n < LINES) {
      continue;
    }
    n = 0;
    outcome what = (outcome)strtol(lines[WHAT], NULL, 10);
    slt_share share = (slt_share)strtol(lines[SHARE], NULL, 10);
    count_reason(what, lines[REASON]);
    slt_share_count(share, lines[WHY]);
    if (is_listed(what) || (share >= SLT_SHARE_PART && strcmp(listed_class, "fallback") == 0)) {
      printf("%s: %s: %.400s\n  %.1500s\n", class_names[what], path,
             lines[WHY][0] == '\0' ? lines[REASON] : lines[WHY], lines[SQL]);
    }
  }
  for (size_t i = 0; i < LINES; i++) {
    free(lines[i]);
  }
}

static void note_death(const char *path, int status) {
  char reason[REASON_BYTES];
  if (WIFSIGNALED(status)) {
    snprintf(reason, sizeof reason, "signal %d", WTERMSIG(status));
  } else {
    snprintf(reason, sizeof reason, "exit status %d", WEXITSTATUS(status));
  }
  count_reason(OUTCOME_DEAD, reason);
  printf("dead: %s: %s\n", path, reason);
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *where) {
  (void)info;
  (void)where;
  size_t length = strlen(path);
  int ends[2];
  if (type != FTW_F || length < 5 || strcmp(path + length - 5, ".test") != 0) {
    return 0;
  }
  fflush(NULL);
  n_files++;
  if (pipe(ends) != 0) {
    abort();
  }
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run r = {.path = path, .report = fdopen(ends[1], "w")};
    run_file(&r);
    fclose(r.report);
    _exit(0);
  }
  close(ends[1]);
  FILE *from = fdopen(ends[0], "r");
  collect(from, path);
  fclose(from);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) {
    note_death(path, status);
  }
  return 0;
}

static int compare_reasons(const void *left, const void *right) {
  const struct counted_reason *a = left, *b = right;
  if (a->what != b->what) {
    return a->what < b->what ? -1 : 1;
  }
  return a->n > b->n ? -1 : a->n < b->n;
}

static void print_table(void) {
  qsort(reasons, n_reasons, sizeof reasons[0], compare_reasons);
  for (size_t i = 0; i < n_reasons; i++) {
    if (reasons[i].what != OUTCOME_FAILS) {
      printf("%6lu %s: %s\n", reasons[i].n, class_names[reasons[i].what], reasons[i].reason);
    }
  }
  printf("%lu files\n", n_files);
  for (size_t i = 0; i < OUTCOME_COUNT; i++) {
    printf("%6lu %s: %s\n", counts[i], class_names[i], class_sentences[i]);
  }
}

static bool is_wrong(void) {
  static const outcome different[] = {OUTCOME_TYPES, OUTCOME_ROWS, OUTCOME_ERROR},
                       loud[] = {OUTCOME_FAILS, OUTCOME_LATE, OUTCOME_SKIPPED, OUTCOME_DEAD};
  unsigned long n = 0;
  for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
    n += counts[different[i]];
  }
  for (size_t i = 0; is_strict && i < sizeof loud / sizeof loud[0]; i++) {
    n += counts[loud[i]];
  }
  return n > 0 || counts[OUTCOME_EXACT] == 0;
}

int main(int argc, char **argv) {
  /* user queries are planned on large stacks; so are these */
  const struct rlimit stack = {(rlim_t)64 << 20, (rlim_t)64 << 20};
  const char *is_set = getenv("SLT_STACK_IS_SET");
  if (is_set == NULL && setrlimit(RLIMIT_STACK, &stack) == 0) {
    setenv("SLT_STACK_IS_SET", "1", 1);
    execv("/proc/self/exe", argv);
  }
  int first = 1;
  for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
    const char *value = argv[first + 1];
    if (strcmp(argv[first], "--list") == 0) {
      listed_class = value;
    } else if (strcmp(argv[first], "--cut") == 0) {
      cut_tasks = (uint32_t)strtoul(value, NULL, 10);
    } else if (strcmp(argv[first], "--broadcast") == 0) {
      broadcast_bytes = strtoull(value, NULL, 10);
    } else if (strcmp(argv[first], "--share") == 0) {
      least_share = strtod(value, NULL);
    } else if (strcmp(argv[first], "--strict") == 0) {
      is_strict = true;
    }
  }
  if (first >= argc) {
    fprintf(stderr,
            "usage: slt_run [--cut TASKS [--broadcast BYTES] [--share PERCENT]] [--list CLASS] [--strict 1] "
            "PATH...\n");
    return 2;
  }
  for (int i = first; i < argc; i++) {
    nftw(argv[i], visit, 32, 0);
  }
  print_table();
  bool is_enough = cut_tasks == 0 || slt_share_print(stdout, least_share);
  return is_wrong() || !is_enough ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the permutations of a spec and compares what the steps say with what the
 * spec expects. Usage: isolation_run [--write] SPEC…; --write puts what was seen in.
 * Thread: the runner's.
 */
#include "isolation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT = 16 * TEXT };

/* "name(how)" apart. */
static const spec_step *step_of(const spec *s, const char *word, char *how, size_t bytes) {
  char name[64];
  size_t n = strcspn(word, "(");
  snprintf(name, sizeof name, "%.*s", (int)n, word);
  snprintf(how, bytes, "%.*s", (int)(word[n] == '(' ? strcspn(word + n + 1, ")") : 0),
           word + n + (word[n] == '('));
  const spec_step *step = spec_find_step(s, name);
  if (step == NULL) {
    fprintf(stderr, "%s: no such step: %s\n", s->path, name);
    exit(1);
  }
  return step;
}

static void run_word(stage *st, const spec *s, const char *word, char *out) {
  char how[16];
  bool is_end = strncmp(word, "done:", 5) == 0;
  const spec_step *step = step_of(s, is_end ? word + 5 : word, how, sizeof how);
  if (is_end) {
    stage_finish(st, step, out, OUTPUT);
    return;
  }
  stage_start(st, step, how);
  if (how[0] == '\0' || how[0] == '+') {
    stage_finish(st, step, out, OUTPUT);
  } else {
    size_t used = strlen(out);
    snprintf(out + used, OUTPUT - used, "%s: … %s\n", step->name, how);
  }
}

/* What it says, a line for each end of a step; released with free(). */
static char *run_permutation(const spec *s, const spec_permutation *p, bool *is_clean) {
  static stage st;
  char *out = calloc(1, OUTPUT);
  if (out == NULL) {
    exit(1);
  }
  stage_open(&st, s);
  for (size_t i = 0; i < p->n_words; i++) {
    run_word(&st, s, p->words[i], out);
  }
  gate_set(false);
  for (size_t i = 0; i < s->n_steps; i++) { /* whatever still runs, in the order of the spec */
    if (stage_is_running(&st, &s->steps[i])) {
      stage_finish(&st, &s->steps[i], out, OUTPUT);
    }
  }
  *is_clean = stage_close(&st);
  return out;
}

static int run_spec(const char *path, bool is_written) {
  static spec s;
  char *seen[NAMES] = {NULL};
  int n_failed = 0;
  spec_read(path, &s);
  for (size_t i = 0; i < s.n_permutations; i++) {
    bool is_clean = false;
    const spec_permutation *p = &s.permutations[i];
    seen[i] = run_permutation(&s, p, &is_clean);
    bool is_good = is_clean && (is_written || strcmp(seen[i], p->expected) == 0);
    printf("[  %s  ] %s %s\n", is_good ? "PASSED" : "FAILED", path, p->name);
    if (!is_good) {
      printf("expected:\n%sseen:\n%s%s", p->expected, seen[i],
             is_clean ? "" : "files were left in the work directory\n");
      n_failed++;
    }
    fflush(stdout);
  }
  if (is_written) {
    spec_write(&s, seen);
  }
  printf("[  PASSED  ] %zu test(s)\n", s.n_permutations - (size_t)n_failed);
  if (n_failed > 0) {
    printf("[  FAILED  ] %d test(s)\n", n_failed);
  }
  for (size_t i = 0; i < s.n_permutations; i++) {
    free(seen[i]);
  }
  spec_free(&s);
  return n_failed;
}

int main(int n_arguments, char **arguments) {
  bool is_written = n_arguments > 1 && strcmp(arguments[1], "--write") == 0;
  int n_failed = 0;
  for (int i = is_written ? 2 : 1; i < n_arguments; i++) {
    n_failed += run_spec(arguments[i], is_written);
  }
  return n_failed == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* For registry_walk.pml: says an operation as a line, from spin's state `now` before and after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 3, NOBODY = 15, KNOWN = 1 << 15 };

typedef struct look {
  unsigned char state, failures, waiters, leases;
} look;

/* A transition; compared as bytes. */
typedef struct step {
  const char *operation;
  look before, after;
  unsigned char waiter, job, executor, reader, is_live, is_released, class, result;
  unsigned char told[4], cancels, unpins, padding[2];
} step;

static step taken;
static step known[KNOWN];

static const char *const STATES[] = {"absent", "pending", "materialised", "unavailable"};
static const char *const RESULTS[] = {"claimed",  "waiting",   "materialised", "released", "unavailable",
                                      "promoted", "duplicate", "stale",        "refused",  "-"};
static const char *const CLASSES[] = {"user", "resource", "retryable"};
static const char *const JOBS_ARE[] = {"claimer", "maker", "other"};
static const char *const READERS[] = {"none", "held", "dropped last", "dropped"};

static unsigned char leases_of(int of) {
  unsigned char count = 0;
  for (int i = 0; of != NOBODY && i < QUERIES; i++) {
    count += now.lease[i] == of;
  }
  return count;
}

static look take_look(void) {
  look l = {.state = now.state, .failures = now.failures, .leases = leases_of(now.held)};
  for (int i = 0; i < QUERIES; i++) {
    l.waiters += now.waiters >> i & 1;
  }
  return l;
}

static void look_before(void) {
  int of = now.lease[now.q];
  memset(&taken, 0, sizeof taken);
  taken.before = take_look();
  taken.waiter = now.waiters >> now.q & 1;
  taken.job = now.state == 1 && now.claim == now.j ? 0 : now.held == now.j ? 1 : 2;
  taken.executor = now.held != NOBODY && now.on[now.held] == now.x;
  taken.reader = of == NOBODY ? 0 : of == now.held ? 1 : leases_of(of) == 1 ? 2 : 3;
  taken.is_live = now.live[now.on[now.j]];
  taken.is_released = now.released;
  taken.class = now.class;
}

/* Prints how the caller stands to the entry, as far as the operation asks. */
static void print_how(FILE *file, const step *s) {
  const char *operation = s->operation;
  if (strcmp(operation, "begin") == 0) {
    fprintf(file, " %s %s", s->waiter ? "listed" : "new", s->is_released ? "released" : "declared");
  } else if (strcmp(operation, "complete") == 0) {
    fprintf(file, " %s%s", JOBS_ARE[s->job], s->job != 0 ? "" : s->is_live ? " live" : " away");
  } else if (strcmp(operation, "restore") == 0) {
    fprintf(file, " %s", s->is_live ? "live" : "away");
  } else if (strcmp(operation, "abort") == 0) {
    fprintf(file, " %s %s", s->job == 0 ? "claimer" : "other", CLASSES[s->class]);
  } else if (strcmp(operation, "leave") == 0) {
    fprintf(file, " %s", s->waiter ? "listed" : "new");
  } else if (strncmp(operation, "lease", 5) == 0) {
    fprintf(file, " %s", READERS[s->reader]);
  } else if (strstr(operation, "executor") != NULL) {
    fprintf(file, " %s", s->executor ? "its" : "other");
  }
}

static void print_look(FILE *file, const look *l) {
  fprintf(file, "%s f%d w%d l%d", STATES[l->state], l->failures, l->waiters, l->leases);
}

static void print_step(FILE *file, const step *s) {
  static const char *const told[] = {"", "wake", "fail", "inline"};
  print_look(file, &s->before);
  fprintf(file, " | %s", s->operation);
  print_how(file, s);
  fprintf(file, " | %s | ", RESULTS[s->result]);
  print_look(file, &s->after);
  fprintf(file, " |");
  for (int i = 1; i < 4; i++) {
    if (s->told[i] > 0) {
      fprintf(file, " %s %d", told[i], s->told[i]);
    }
  }
  if (s->cancels > 0) {
    fprintf(file, " cancel %d", s->cancels);
  }
  if (s->unpins > 0) {
    fprintf(file, " unpin %d", s->unpins);
  }
  fputc('\n', file);
  fflush(file); /* pan ends as it likes */
}

/* Repeated lines remain where the operation asks for less than a step knows: models/check sorts them away. */
static void look_after(const char *operation) {
  static FILE *file;
  taken.operation = operation;
  taken.after = take_look();
  taken.result = now.result;
  for (int i = 0; i < QUERIES; i++) {
    taken.told[now.told[i]]++;
    taken.cancels += now.cancelling[i];
    taken.unpins += now.deleting[i];
  }
  taken.told[0] = 0;
  unsigned at = 5381;
  for (size_t i = 0; i < sizeof taken; i++) {
    at = at * 33 + ((const unsigned char *)&taken)[i];
  }
  for (at %= KNOWN; known[at].operation != NULL; at = (at + 1) % KNOWN) {
    if (memcmp(&known[at], &taken, sizeof taken) == 0) {
      return;
    }
  }
  known[at] = taken;
  if (file == NULL && (file = fopen("transitions", "w")) == NULL) {
    perror("transitions");
    exit(1);
  }
  print_step(file, &taken);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of a permutation and the threads that act on it; what is known of
 * their order: a task parks at the gate, a job waits for a held result, a step ends.
 * Threads: the runner's, the actors', and those of the engine at fault points.
 */
#include "isolation.h"

#include "base/fault.h"
#include "support/api_case.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the engine has passed; of all stages, under `gate_lock`. A change is told to the runner by `gate_moved`. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_is_closed;
/* What has happened ever, by the word for it. */
static const char *const happenings[] = {"parks", "waits", "cancels"};
enum { A_TASK_PARKS, A_JOB_WAITS, A_JOB_IS_CANCELLED, HAPPENINGS };
static unsigned happened[HAPPENINGS];

enum { PARKS = 16 };          /* at once */
static unsigned parks[PARKS]; /* the numbers of tasks that park, by number; 0: none */

static void on_task(void) {
  pthread_mutex_lock(&gate_lock);
  unsigned ticket = 0;
  if (gate_is_closed) {
    ticket = ++happened[A_TASK_PARKS];
    parks[ticket % PARKS] = ticket;
    pthread_cond_broadcast(&gate_moved);
  }
  while (gate_is_closed && parks[ticket % PARKS] == ticket) {
    pthread_cond_wait(&gate_moved, &gate_lock);
  }
  parks[ticket % PARKS] = 0;
  pthread_mutex_unlock(&gate_lock);
}

bool gate_let(bool is_newest) {
  unsigned *chosen = NULL;
  pthread_mutex_lock(&gate_lock);
  for (size_t i = 0; i < PARKS; i++) {
    if (parks[i] != 0 && (chosen == NULL || (parks[i] > *chosen) == is_newest)) {
      chosen = &parks[i];
    }
  }
  if (chosen != NULL) {
    *chosen = 0;
    pthread_cond_broadcast(&gate_moved);
  }
  pthread_mutex_unlock(&gate_lock);
  return chosen != NULL;
}

static void count(int what) {
  pthread_mutex_lock(&gate_lock);
  happened[what]++;
  pthread_cond_broadcast(&gate_moved);
  pthread_mutex_unlock(&gate_lock);
}

static void on_wait(void) {
  count(A_JOB_WAITS);
}

static void on_cancel(void) {
  count(A_JOB_IS_CANCELLED);
}

void gate_set(bool is_closed) {
  pthread_mutex_lock(&gate_lock);
  gate_is_closed = is_closed;
  pthread_cond_broadcast(&gate_moved);
  pthread_mutex_unlock(&gate_lock);
}

/* ------------------------------------------------------------------ actors */

static void *act(void *of) {
  actor *a = of;
  pthread_mutex_lock(&gate_lock);
  for (;;) {
    while (a->state != ACTOR_RUNS && !a->stage->is_ending) {
      pthread_cond_wait(&gate_moved, &gate_lock);
    }
    if (a->state != ACTOR_RUNS) {
      break;
    }
    pthread_mutex_unlock(&gate_lock);
    char result[TEXT] = "";
    action_run(a, result, sizeof result);
    pthread_mutex_lock(&gate_lock);
    snprintf(a->result, sizeof a->result, "%s", result);
    a->state = ACTOR_DONE;
    pthread_cond_broadcast(&gate_moved);
  }
  pthread_mutex_unlock(&gate_lock);
  return NULL;
}

static actor *actor_of(stage *s, const char *name) {
  for (size_t i = 0; i < s->n_actors; i++) {
    if (strcmp(s->actors[i].name, name) == 0) {
      return &s->actors[i];
    }
  }
  return NULL;
}

static void stuck(const stage *s, const spec_step *step, const char *what) {
  fprintf(stderr, "%s: step %s: %s\n", s->spec->path, step->name, what);
  exit(1);
}

/* Waits for a change; exits after too long. Needs gate_lock. */
static void await_change(const stage *s, const spec_step *step, const char *what) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += SECONDS_AT_MOST;
  if (pthread_cond_timedwait(&gate_moved, &gate_lock, &until) == ETIMEDOUT) {
    stuck(s, step, what);
  }
}

/* NULL: nothing is waited for. */
static const unsigned *counter_of(const char *word) {
  for (int i = 0; i < HAPPENINGS; i++) {
    if (strcmp(happenings[i], word) == 0) {
      return &happened[i];
    }
  }
  return NULL;
}

void stage_start(stage *s, const spec_step *step, const char *how) {
  actor *a = actor_of(s, step->thread);
  pthread_mutex_lock(&gate_lock);
  if (a->state != ACTOR_IDLE) {
    stuck(s, step, "its thread is not done with another step");
  }
  const unsigned *counter = counter_of(how + (how[0] == '+'));
  unsigned before = counter == NULL ? 0 : *counter;
  a->step = step;
  a->state = ACTOR_RUNS;
  pthread_cond_broadcast(&gate_moved);
  bool ends = how[0] == '\0' || how[0] == '+';
  while ((counter != NULL && *counter == before) || (ends && a->state == ACTOR_RUNS)) {
    if (!ends && a->state == ACTOR_DONE) {
      stuck(s, step, a->result);
    }
    await_change(s, step, ends && a->state == ACTOR_RUNS ? "it does not end" : how);
  }
  pthread_mutex_unlock(&gate_lock);
}

bool stage_is_running(stage *s, const spec_step *step) {
  pthread_mutex_lock(&gate_lock);
  actor *a = actor_of(s, step->thread);
  bool is_running = a->step == step && a->state != ACTOR_IDLE;
  pthread_mutex_unlock(&gate_lock);
  return is_running;
}

void stage_finish(stage *s, const spec_step *step, char *out, size_t bytes) {
  actor *a = actor_of(s, step->thread);
  pthread_mutex_lock(&gate_lock);
  while (a->state == ACTOR_RUNS) {
    await_change(s, step, "it does not end");
  }
  a->state = ACTOR_IDLE;
  size_t used = strlen(out);
  snprintf(out + used, bytes - used, "%s: %s\n", step->name, a->result);
  pthread_mutex_unlock(&gate_lock);
}

/* ------------------------------------------------------------------- names */

static named *name_find(stage *s, const char *name, bool is_session) {
  for (size_t i = 0; i < s->n_names; i++) {
    if (s->names[i].object != NULL && s->names[i].is_session == is_session &&
        strcmp(s->names[i].name, name) == 0) {
      return &s->names[i];
    }
  }
  return NULL;
}

static void *object_of(stage *s, const char *name, bool is_session) {
  pthread_mutex_lock(&s->lock);
  named *n = name_find(s, name, is_session);
  void *object = n == NULL ? NULL : n->object;
  pthread_mutex_unlock(&s->lock);
  if (object == NULL) {
    fprintf(stderr, "%s: no such name: %s\n", s->spec->path, name);
    exit(1);
  }
  return object;
}

hf_session *stage_session(stage *s, const char *name) {
  return object_of(s, name, true);
}

hf_df *stage_frame(stage *s, const char *name) {
  return object_of(s, name, false);
}

void stage_name(stage *s, const char *name, void *object, bool is_session) {
  pthread_mutex_lock(&s->lock);
  named *n = &s->names[s->n_names++];
  snprintf(n->name, sizeof n->name, "%s", name);
  n->object = object;
  n->is_session = is_session;
  pthread_mutex_unlock(&s->lock);
}

void stage_forget(stage *s, const char *name) {
  pthread_mutex_lock(&s->lock);
  named *n = name_find(s, name, true);
  if (n != NULL) {
    n->object = NULL;
  }
  pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------- open, close */

static void setup_line(stage *s, const spec_line *l) {
  hf_error error = {0};
  hf_status status = HF_OK;
  char first[64] = "", text[TEXT] = "";
  hf_df *df = NULL;
  hf_session *session = NULL;
  sscanf(l->rest, "%63s %1023[^\n]", first, text);
  if (strcmp(l->kind, "session") == 0) {
    status = hf_session_new(stage_session(s, "main"), &session, &error);
    stage_name(s, l->name, session, true);
  } else if (strcmp(l->kind, "frame") == 0) {
    char sql[2 * TEXT] = "", *at = NULL;
    snprintf(sql, sizeof sql, "%s", text);
    while ((at = strstr(sql, "$DIR")) != NULL) { /* files of the spec */
      char tail[TEXT];
      snprintf(tail, sizeof tail, "%s", at + 4);
      snprintf(at, sizeof sql - (size_t)(at - sql), "%s%s", s->dir, tail);
    }
    status = hf_session_sql(stage_session(s, first), sql, &df, &error);
    stage_name(s, l->name, df, false);
  } else if (strcmp(l->kind, "hold") == 0) {
    status = hf_df_cache(stage_frame(s, first), &df, &error);
    stage_name(s, l->name, df, false);
  } else if (strcmp(l->kind, "view") == 0) {
    status = hf_df_create_view(stage_frame(s, first), l->name, false, &error);
  } else if (strcmp(l->kind, "file") == 0) {
    spec_step step = {0};
    snprintf(step.action, sizeof step.action, "write");
    snprintf(step.rest, sizeof step.rest, "%.60s %.900s", l->name, l->rest);
    actor scribe = {.stage = s, .step = &step};
    action_run(&scribe, text, sizeof text);
  }
  if (status != HF_OK) {
    fprintf(stderr, "%s: %s %s: %s\n", s->spec->path, l->kind, l->name, error.message);
    exit(1);
  }
}

static void open_engine(stage *s) {
  hf_setting settings[NAMES] = {{"work_dir", s->work_dir}, {"threads", "1"}, {"memory", "512MiB"}};
  size_t n = 3;
  for (size_t i = 0; i < s->spec->n_setup; i++) {
    const spec_line *l = &s->spec->setup[i];
    if (strcmp(l->kind, "setting") == 0) {
      settings[n++] = (hf_setting){l->name, l->rest};
    }
  }
  hf_session *session = NULL;
  hf_error error = {0};
  if (hf_session_open("local", settings, n, &session, &error) != HF_OK) {
    fprintf(stderr, "%s: open: %s\n", s->spec->path, error.message);
    exit(1);
  }
  stage_name(s, "main", session, true);
}

void stage_open(stage *s, const spec *of) {
  memset(s, 0, sizeof *s);
  s->spec = of;
  pthread_mutex_init(&s->lock, NULL);
  snprintf(s->dir, sizeof s->dir, "/tmp/hf-isolation-XXXXXX");
  if (mkdtemp(s->dir) == NULL) {
    perror(s->dir);
    exit(1);
  }
  snprintf(s->work_dir, sizeof s->work_dir, "%s/work", s->dir);
  gate_set(false);
  fault_set("executor.before_run", on_task);
  fault_set("scheduler.waits", on_wait);
  fault_set("scheduler.cancels", on_cancel);
  open_engine(s);
  for (size_t i = 0; i < of->n_setup; i++) {
    setup_line(s, &of->setup[i]);
  }
  for (size_t i = 0; i < of->n_steps; i++) {
    if (actor_of(s, of->steps[i].thread) == NULL) {
      s->actors[s->n_actors++] = (actor){.stage = s, .name = of->steps[i].thread};
    }
  }
  for (size_t i = 0; i < s->n_actors; i++) {
    pthread_create(&s->actors[i].thread, NULL, act, &s->actors[i]);
  }
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  (void)kind;
  (void)walk;
  return remove(path);
}

bool stage_close(stage *s) {
  pthread_mutex_lock(&gate_lock);
  s->is_ending = true;
  pthread_cond_broadcast(&gate_moved);
  pthread_mutex_unlock(&gate_lock);
  for (size_t i = 0; i < s->n_actors; i++) {
    pthread_join(s->actors[i].thread, NULL);
  }
  for (size_t i = s->n_names; i > 0; i--) {
    named *n = &s->names[i - 1];
    if (n->object != NULL && n->is_session) {
      hf_session_close(n->object);
    } else {
      hf_df_free(n->object);
    }
  }
  fault_set("executor.before_run", NULL);
  fault_set("scheduler.waits", NULL);
  fault_set("scheduler.cancels", NULL);
  bool is_gone = !path_exists(s->work_dir);
  nftw(s->dir, remove_entry, 16, FTW_PHYS | FTW_DEPTH);
  pthread_mutex_destroy(&s->lock);
  return is_gone;
}

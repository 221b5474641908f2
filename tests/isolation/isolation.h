/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleavings written as text: what a spec says (spec.c), the threads and the
 * engine that its steps drive (stage.c, actions.c), and the run of a permutation
 * (main.c). tests/isolation/README.md has the language.
 */
#ifndef HF_TESTS_ISOLATION_H
#define HF_TESTS_ISOLATION_H

#include <holdfast/holdfast.h>

#include <pthread.h>

enum { NAMES = 32, WORDS = 40, TEXT = 1024, SECONDS_AT_MOST = 240 };

/* -------------------------------------------------------------------- spec */

/* "<kind> <name> <rest>": setting, file, session, frame, hold, view. */
typedef struct spec_line {
  char kind[16], name[64], rest[TEXT];
} spec_line;

typedef struct spec_step {
  char name[64], thread[64], action[32], rest[TEXT];
} spec_step;

typedef struct spec_permutation {
  char name[64];
  char words[WORDS][64]; /* a step's name, or with "(parks)" and so on; or "done:" and a step's name */
  size_t n_words;
  char *expected;             /* lines below it; owned */
  size_t first_line, n_lines; /* where they stand, for --write */
} spec_permutation;

typedef struct spec {
  const char *path;
  char *text; /* owned */
  spec_line setup[NAMES];
  spec_step steps[NAMES];
  spec_permutation permutations[NAMES];
  size_t n_setup, n_steps, n_permutations;
} spec;

/* Reads a spec; says what is wrong with it and exits. */
void spec_read(const char *path, spec *out);
const spec_step *spec_find_step(const spec *s, const char *name);
/* Writes the file again with these lines below each permutation. */
void spec_write(const spec *s, char *const *lines);
void spec_free(spec *s);

/* ------------------------------------------------------------------- stage */

typedef struct actor actor;
typedef struct stage stage;

/* What a step of a thread has come to; guarded by stage.lock. */
typedef enum actor_state { ACTOR_IDLE, ACTOR_RUNS, ACTOR_DONE } actor_state;

struct actor {
  stage *stage;
  const char *name;
  pthread_t thread;
  actor_state state;
  const spec_step *step;
  hf_cancel *cancel; /* of its action while it runs */
  char result[TEXT];
};

typedef struct named {
  char name[64];
  void *object; /* hf_session or hf_df */
  bool is_session;
} named;

/* One engine, made for one permutation. */
struct stage {
  const spec *spec;
  char dir[64], work_dir[80];
  named names[2 * NAMES];
  size_t n_names;
  actor actors[NAMES];
  size_t n_actors;
  pthread_mutex_t lock;
  bool is_ending;
};

/* Makes the engine, sessions, frames, holds and threads of the spec. */
void stage_open(stage *s, const spec *of);
/* Ends the threads, closes what is open, and checks that the work directory is gone. False: something was left. */
bool stage_close(stage *s);
/* Runs a step on its thread and waits for what `how` says: "" its end; "parks", "waits", "cancels": a task parks, a job
 * begins to wait, or is cancelled, while the step runs; "+parks" and so on: that and its end. Exits when it does not
 * come in time, or the step ends without. */
void stage_start(stage *s, const spec_step *step, const char *how);
/* Waits for the step's end and appends its line. */
void stage_finish(stage *s, const spec_step *step, char *out, size_t bytes);
bool stage_is_running(stage *s, const spec_step *step);
/* NULL: no such name. */
hf_session *stage_session(stage *s, const char *name);
hf_df *stage_frame(stage *s, const char *name);
/* Names an object; it is closed with the stage. */
void stage_name(stage *s, const char *name, void *object, bool is_session);
void stage_forget(stage *s, const char *name);

/* The gate: while it is closed, a task that is about to run parks before it. */
void gate_set(bool is_closed);
/* Lets the task through that parks longest, or the one that came last; false: none parks. */
bool gate_let(bool is_newest);

/* -------------------------------------------------------------------- steps */

/* Does the action of the thread's step; its result is one line. */
void action_run(actor *a, char *out, size_t bytes);
/* "CAST" or alike of a failure; "ok" of none. */
void action_say_status(hf_status status, hf_error *error, char *out, size_t bytes);

#endif

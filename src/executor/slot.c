/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: the thread that takes attempts from the queue, and the instance it
 * keeps open between them. What one attempt does is in task.c.
 * Thread: the slot's own.
 */
#include "executor_internal.h"

#include "base/file.h"

#include <inttypes.h>
#include <string.h>

/* DuckDB's least that makes sense, beside the sink's budget. */
#define LEAST_INSTANCE_BYTES ((uint64_t)16 << 20)
/* Of the spare slot, beside what the others share: it is open only while it runs something. */
#define SPARE_INSTANCE_BYTES ((uint64_t)64 << 20)

/* ---------------------------------------------------------------- instance */

static bool has_options_of(const slot *s, const stage_plan *plan, uint64_t memory_bytes) {
  const engine_options *o = &s->options;
  if (o->memory_bytes != memory_bytes || o->n_settings != plan->n_settings ||
      o->n_allowed_dirs != plan->n_allowed_dirs) {
    return false;
  }
  for (size_t i = 0; i < plan->n_settings; i++) {
    if (strcmp(o->settings[i].name, plan->settings[i].name) != 0 ||
        strcmp(o->settings[i].value, plan->settings[i].value) != 0) {
      return false;
    }
  }
  for (size_t i = 0; i < plan->n_allowed_dirs; i++) {
    if (strcmp(o->allowed_dirs[i], plan->allowed_dirs[i]) != 0) {
      return false;
    }
  }
  return true;
}

/* Fills the options as copies in `a`; false for lack of memory. */
static bool options_make(const slot *s, const stage_plan *plan, uint64_t memory_bytes, arena *a,
                         engine_options *out) {
  const executor *x = s->owner;
  engine_setting *settings = arena_array(a, plan->n_settings, sizeof *settings);
  const char **dirs = arena_array(a, plan->n_allowed_dirs, sizeof *dirs);
  char *slot_dir = arena_printf(a, "%s/slots/%u", x->place.path, s->number);
  char *spill_dir = arena_printf(a, "%s/spill/%u", x->place.path, s->number);
  if (settings == NULL || dirs == NULL || slot_dir == NULL || spill_dir == NULL) {
    return false;
  }
  bool is_whole = true;
  for (size_t i = 0; i < plan->n_settings; i++) {
    settings[i].name = arena_strdup(a, plan->settings[i].name);
    settings[i].value = arena_strdup(a, plan->settings[i].value);
    is_whole = is_whole && settings[i].name != NULL && settings[i].value != NULL;
  }
  for (size_t i = 0; i < plan->n_allowed_dirs; i++) {
    dirs[i] = arena_strdup(a, plan->allowed_dirs[i]);
    is_whole = is_whole && dirs[i] != NULL;
  }
  *out = (engine_options){.kind = ENGINE_SLOT,
                          .threads = slot_is_spare(s) ? 1 : x->threads_each,
                          .memory_bytes = memory_bytes,
                          .spill_dir = spill_dir,
                          .slot_dir = slot_dir,
                          .allowed_dirs = dirs,
                          .n_allowed_dirs = plan->n_allowed_dirs,
                          .settings = settings,
                          .n_settings = plan->n_settings,
                          .extension_dir = x->extension_dir};
  return is_whole;
}

/* A slot's memory is its share less what the sink may buffer. */
static hf_status memory_of(const slot *s, const stage_plan *plan, uint64_t *out, hf_error *error) {
  const executor *x = s->owner;
  uint64_t budget = plan->output.budget_bytes;
  if (slot_is_spare(s)) {
    *out = SPARE_INSTANCE_BYTES;
    return HF_OK;
  }
  if (x->memory_each >= LEAST_INSTANCE_BYTES && budget <= x->memory_each - LEAST_INSTANCE_BYTES) {
    *out = x->memory_each - budget;
    return HF_OK;
  }
  error_set(error, HF_E_OUT_OF_MEMORY,
            "the memory of one slot is too small: %" PRIu64
            " bytes, of which the sink buffers up to %" PRIu64,
            x->memory_each, budget);
  error_hint(error,
             "raise --memory, lower sink.budget, or use fewer slots: a slot needs sink.budget and %" PRIu64
             " MiB",
             LEAST_INSTANCE_BYTES >> 20);
  return HF_E_OUT_OF_MEMORY;
}

static hf_status instance_open(slot *s, const stage_plan *plan, uint64_t memory_bytes, arena *a,
                               hf_error *error) {
  engine_options options;
  if (!options_make(s, plan, memory_bytes, a, &options)) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a slot's instance");
  }
  HF_TRY(file_make_dirs(options.slot_dir, error));
  HF_TRY(file_make_dirs(options.spill_dir, error));
  HF_TRY(engine_open(&options, &s->instance, error));
  s->options = options;
  s->options_memory = a;
  return HF_OK;
}

hf_status slot_instance(slot *s, const stage_plan *plan, engine **out, hf_error *error) {
  uint64_t memory_bytes = 0;
  HF_TRY(memory_of(s, plan, &memory_bytes, error));
  if (s->instance == NULL || !has_options_of(s, plan, memory_bytes)) {
    slot_instance_close(s);
    arena *a = arena_new();
    if (a == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open a slot's instance");
    }
    hf_status status = instance_open(s, plan, memory_bytes, a, error);
    if (status != HF_OK) {
      arena_free(a);
      return status;
    }
  }
  *out = s->instance;
  return HF_OK;
}

void slot_instance_close(slot *s) {
  engine_close(s->instance);
  arena_free(s->options_memory);
  s->instance = NULL;
  s->options_memory = NULL;
}

/* ------------------------------------------------------------------ thread */

typedef struct slot_work {
  attempt *attempt;   /* NULL: none */
  arena *warm_memory; /* NULL: nothing to open */
  stage_plan *warm;
} slot_work;

bool slot_is_spare(const slot *s) {
  return s->number == s->owner->n_slots;
}

/* The first of the queue; the spare slot's: the first light one, while no other slot is idle. */
static attempt *next_locked(const slot *s) {
  const executor *x = s->owner;
  if (!slot_is_spare(s)) {
    return x->first;
  }
  for (unsigned i = 0; i < x->n_slots; i++) {
    if (x->slots[i].current == NULL) {
      return NULL;
    }
  }
  attempt *a = x->first;
  while (a != NULL && !a->is_light) {
    a = a->next;
  }
  return a;
}

/* Waits for something to do; false when the executor closes. */
static bool work_wait(slot *s, slot_work *out) {
  executor *x = s->owner;
  attempt *next = NULL;
  *out = (slot_work){0};
  pthread_mutex_lock(&x->lock);
  while ((next = next_locked(s)) == NULL && !x->closing && (s->number != 0 || x->warm == NULL)) {
    pthread_cond_wait(&x->work, &x->lock);
  }
  if (next != NULL) {
    out->attempt = next;
    executor_unqueue_locked(x, next);
    if (x->first != NULL) {
      pthread_cond_broadcast(&x->work); /* the spare slot may take what is light */
    }
    executor_step(out->attempt, ATTEMPT_ON_TAKE);
    s->current = out->attempt;
  } else if (!x->closing) {
    out->warm = x->warm;
    out->warm_memory = x->warm_memory;
    x->warm = NULL;
    x->warm_memory = NULL;
  }
  pthread_mutex_unlock(&x->lock);
  return out->attempt != NULL || out->warm != NULL;
}

void *slot_run(void *context) {
  slot *s = context;
  slot_work work;
  while (work_wait(s, &work)) {
    if (work.attempt != NULL) {
      task_run(s, work.attempt);
      if (slot_is_spare(s)) {
        slot_instance_close(s);
      }
    } else if (s->instance == NULL) {
      engine *opened = NULL;
      (void)slot_instance(s, work.warm, &opened, NULL); /* a task that needs it meets the error again */
    }
    arena_free(work.warm_memory);
  }
  slot_instance_close(s);
  return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a profile: stages as they are planned, attempts as they are reported.
 * How it is shown is in profile_text.c and profile_json.c.
 * Thread: one at a time; references any.
 */
#include "profile/profile.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utlist.h>

job_profile *profile_new(uint64_t job) {
  job_profile *p = mem_zalloc(1, sizeof *p);
  arena *memory = arena_new();
  if (p == NULL || memory == NULL) {
    mem_free(p);
    arena_free(memory);
    return NULL;
  }
  atomic_init(&p->references, 1);
  p->memory = memory;
  p->job = job;
  return p;
}

job_profile *profile_retain(job_profile *p) {
  if (p != NULL) {
    atomic_fetch_add(&p->references, 1);
  }
  return p;
}

/* Fills lie below each other no deeper than held results do. */
void profile_release(job_profile *p) {
  if (p == NULL || atomic_fetch_sub(&p->references, 1) > 1) {
    return;
  }
  profile_stage *stage = NULL;
  LL_FOREACH(p->stages, stage) {
    for (size_t i = 0; i < stage->n_inputs; i++) {
      profile_release(stage->inputs[i].fill);
    }
  }
  arena_free(p->memory);
  mem_free(p);
}

/* ------------------------------------------------------------------- plans */

static profile_stage *lack(job_profile *p) {
  if (p != NULL) {
    p->is_incomplete = true;
  }
  return NULL;
}

profile_stage *profile_add_stage(job_profile *p, uint32_t id, uint32_t n_tasks, size_t n_inputs) {
  profile_stage *stage = p == NULL ? NULL : arena_alloc(p->memory, sizeof *stage);
  if (stage == NULL) {
    return lack(p);
  }
  *stage = (profile_stage){.id = id,
                           .what = "",
                           .sql = "",
                           .n_tasks = n_tasks,
                           .partitions = 1,
                           .awaits = "",
                           .n_inputs = n_inputs,
                           .inputs = arena_array(p->memory, n_inputs + 1, sizeof *stage->inputs)};
  if (stage->inputs == NULL) {
    return lack(p);
  }
  for (size_t i = 0; i < n_inputs; i++) {
    stage->inputs[i] = (profile_input){.how = ""};
  }
  LL_APPEND(p->stages, stage);
  return stage;
}

profile_stage *profile_find_stage(const job_profile *p, uint32_t id) {
  profile_stage *stage = p == NULL ? NULL : p->stages;
  while (stage != NULL && (stage->id != id || stage->is_dropped)) {
    stage = stage->next;
  }
  return stage;
}

const char *profile_say(job_profile *p, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int length = p == NULL ? -1 : vsnprintf(NULL, 0, format, values);
  va_end(values);
  char *text = length < 0 ? NULL : arena_alloc(p->memory, (size_t)length + 1);
  if (text == NULL) {
    lack(p);
    return "";
  }
  va_start(values, format);
  vsnprintf(text, (size_t)length + 1, format, values);
  va_end(values);
  return text;
}

const char *profile_take(job_profile *p, buf *text) {
  const char *taken = text->failed || p == NULL ? NULL : arena_strdup(p->memory, buf_cstr(text));
  buf_reset(text);
  if (taken == NULL) {
    lack(p);
    return "";
  }
  return taken;
}

static void append_note(job_profile *p, profile_note **list, const char *text) {
  profile_note *note = arena_alloc(p->memory, sizeof *note);
  if (note == NULL) {
    lack(p);
    return;
  }
  *note = (profile_note){.text = profile_say(p, "%s", text)};
  LL_APPEND(*list, note);
}

void profile_add_note(job_profile *p, uint32_t stage, const char *text) {
  profile_stage *of = stage == 0 ? NULL : profile_find_stage(p, stage);
  if (p != NULL) {
    append_note(p, of == NULL ? &p->notes : &of->notes, text);
  }
}

void profile_add_inlined(job_profile *p, const char *text) {
  if (p != NULL) {
    append_note(p, &p->inlined, text);
  }
}

/* ---------------------------------------------------------------- attempts */

profile_attempt *profile_attempt_of(job_profile *p, uint32_t stage, uint32_t task, uint32_t number) {
  profile_stage *of = profile_find_stage(p, stage);
  if (of == NULL || task >= of->n_tasks) {
    return NULL;
  }
  if (of->tasks == NULL) {
    of->tasks = arena_array(p->memory, of->n_tasks, sizeof *of->tasks);
  }
  profile_attempt *found = NULL;
  if (of->tasks != NULL) {
    LL_SEARCH_SCALAR(of->tasks[task].attempts, found, number, number);
  }
  if (found == NULL && of->tasks != NULL) {
    found = arena_alloc(p->memory, sizeof *found);
    if (found != NULL) {
      *found = (profile_attempt){.number = number};
      LL_APPEND(of->tasks[task].attempts, found);
    }
  }
  p->is_incomplete = p->is_incomplete || found == NULL;
  return found;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void add(profile_sum *sum, const profile_attempt *attempt) {
  const hf_amounts *from = &attempt->amounts;
  hf_amounts *to = &sum->amounts;
  bool failed = attempt->end == ATTEMPT_HAS_FAILED;
  sum->n_attempts++;
  sum->n_failed += failed ? 1 : 0;
  to->wait_us += from->wait_us;
  to->run_us += from->run_us;
  to->source_rows += from->source_rows;
  to->source_bytes += from->source_bytes;
  to->block_rows += from->block_rows;
  to->block_bytes += from->block_bytes;
  to->held_rows += from->held_rows;
  to->held_blocks += from->held_blocks;
  to->skipped_blocks += from->skipped_blocks;
  to->rows += failed ? 0 : from->rows;
  to->bytes += failed ? 0 : from->bytes;
  to->spill_bytes = larger(to->spill_bytes, from->spill_bytes);
  to->peak_memory_bytes = larger(to->peak_memory_bytes, from->peak_memory_bytes);
}

profile_sum profile_sum_stage(const profile_stage *stage) {
  profile_sum sum = {0};
  for (uint32_t t = 0; stage->tasks != NULL && t < stage->n_tasks; t++) {
    const profile_attempt *attempt = NULL;
    LL_FOREACH(stage->tasks[t].attempts, attempt) {
      add(&sum, attempt);
    }
  }
  return sum;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What outlives the process: the journal behind declarations and registry, and
 * what a start makes of it. Without a journal every function here does nothing.
 *
 * U1  What a user was told is in the journal: the answer to a declaration or an
 *     unpersist, and the waking of those who wait for a fill, come after it was written.
 * U2  An entry is put after its blocks were committed, and removed together with
 *     the entry, perhaps before its files; so what the journal names beyond what is
 *     on the disk is found out at the next start, and what is on the disk beyond it is swept.
 * U3  Nothing is served after a start before its blocks were looked for.
 * U4  Job numbers go on behind those of the journal and of the work directory: no directory is used twice.
 *
 * Threads: durable_load that which opens the scheduler; `written` the journal's; the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool durable_keeps(const scheduler *s, const uuid *session) {
  return s->journal != NULL && uuid_equal(session, &s->kept_session);
}

/* ----------------------------------------------------------------- at a start */

static hf_status load_declaration(scheduler *s, const declaration *row, hf_error *error) {
  if (!durable_keeps(s, &row->session)) {
    s->journal->remove(s->journal->context, RECORD_DECLARATION, &row->key, (job_id){0});
    return HF_OK;
  }
  return declarations_add(s->declared, row, error);
}

/* Puts the entry in place as one of this executor's, which is not live yet. */
static hf_status load_entry(scheduler *s, const entry_view *view, hf_error *error) {
  const declaration *row = declarations_find(s->declared, &view->key);
  s->next_job = view->job.value >= s->next_job ? view->job.value + 1 : s->next_job; /* U4 */
  if (row == NULL || row->released || !uuid_equal(&row->session, &view->session)) {
    s->journal->remove(s->journal->context, RECORD_ENTRY, &view->key, view->job);
    return HF_OK;
  }
  arena *a = arena_new();
  entry_location *locations = a == NULL ? NULL : arena_array(a, view->output.n_locations, sizeof *locations);
  if (locations == NULL) {
    arena_free(a);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  for (size_t i = 0; i < view->output.n_locations; i++) {
    locations[i] = view->output.locations[i];
    snprintf(locations[i].executor, sizeof locations[i].executor, "%s", executor_id(s->executor));
    s->next_job = locations[i].job.value >= s->next_job ? locations[i].job.value + 1 : s->next_job; /* U4 */
  }
  entry_view restored = *view;
  restored.output.locations = locations;
  hf_status status = registry_restore(s->registry, &restored, error);
  if (status == HF_OK) {
    leaving_admitted(s, &view->session, view->output.bytes, NULL);
  }
  arena_free(a);
  return status;
}

static hf_status load_record(void *to, const hold_record *record, hf_error *error) {
  return record->kind == RECORD_DECLARATION ? load_declaration(to, &record->declaration, error)
                                            : load_entry(to, &record->entry, error);
}

/* What is known of the entries: where their blocks should be, and of whom they are. */
typedef struct inventory {
  block_ref *refs;
  size_t n_refs, capacity;
  uuid *keys; /* of the entry of each ref */
  arena *memory;
  bool failed;
} inventory;

static bool count_refs(void *context, const entry_view *view) {
  inventory *found = context;
  found->capacity += view->state == ENTRY_UNAVAILABLE ? view->output.n_locations : 0;
  return true;
}

static bool gather_refs(void *context, const entry_view *view) {
  inventory *found = context;
  for (size_t i = 0; view->state == ENTRY_UNAVAILABLE && i < view->output.n_locations; i++) {
    const entry_location *at = &view->output.locations[i];
    found->keys[found->n_refs] = view->key;
    found->refs[found->n_refs++] = (block_ref){.session = view->session,
                                               .job = at->job,
                                               .stage = at->stage,
                                               .task = at->task,
                                               .attempt = at->attempt};
  }
  return true;
}

static const char *why_lost(hf_status status) {
  return status == HF_E_BLOCK_MISSING ? "block missing" : "block altered";
}

/* Drops the entries whose blocks are not there; their refs are taken out of the list. */
static hf_status check_refs(scheduler *s, inventory *found, hf_error *error) {
  size_t kept = 0;
  for (size_t i = 0, end = 0; i < found->n_refs; i = end) {
    while (end < found->n_refs && uuid_equal(&found->keys[end], &found->keys[i])) {
      end++;
    }
    hf_error why = {0};
    hf_status status = executor_check_blocks(s->executor, &found->refs[i], end - i, &why);
    if (status == HF_E_OUT_OF_MEMORY) {
      error_move(error, &why);
      return status;
    }
    if (status != HF_OK) {
      log_event(LOG_WARN, "scheduler", "held=%s dropped=\"%s\"", found->keys[i].text,
                why.message == NULL ? "" : why.message);
      held_drop(s, &found->keys[i], why_lost(status));
    } else {
      memmove(&found->refs[kept], &found->refs[i], (end - i) * sizeof *found->refs);
      kept += end - i;
    }
    hf_error_reset(&why);
  }
  found->n_refs = kept;
  return HF_OK;
}

static hf_status take_stock(scheduler *s, const scheduler_keeping *keeping, inventory *found,
                            hf_error *error) {
  registry_each(s->registry, NULL, count_refs, found);
  size_t room = found->capacity + keeping->n_data;
  found->refs = arena_array(found->memory, room, sizeof *found->refs);
  found->keys = arena_array(found->memory, room, sizeof *found->keys);
  if (found->refs == NULL || found->keys == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to look for blocks");
  }
  registry_each(s->registry, NULL, gather_refs, found);
  HF_TRY(check_refs(s, found, error));
  registry_actions_reset(&s->actions); /* the sweep finds the files of what was dropped */
  for (size_t i = 0; i < keeping->n_data; i++) {
    found->refs[found->n_refs++] = keeping->data[i];
  }
  uint64_t largest_job = s->next_job - 1;
  HF_TRY(executor_sweep(s->executor, found->refs, found->n_refs, &largest_job, error));
  s->next_job = largest_job + 1; /* U4 */
  return HF_OK;
}

hf_status durable_load(scheduler *s, const scheduler_keeping *keeping, hf_error *error) {
  if (keeping == NULL) {
    return HF_OK;
  }
  s->journal = keeping->journal;
  s->kept_session = keeping->session;
  HF_TRY(s->journal->load(s->journal->context, load_record, s, error));
  inventory found = {.memory = arena_new()};
  hf_status status = found.memory == NULL
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to look for blocks")
                         : take_stock(s, keeping, &found, error);
  arena_free(found.memory);
  return status;
}

static void empty_trash(scheduler *s, message *m) {
  (void)m;
  executor_empty_trash(s->executor);
}

void durable_begin(scheduler *s) {
  if (s->journal != NULL) {
    s->trash.handle = empty_trash;
    event_queue_post(&s->cleans, &s->trash.item);
  }
}

/* ------------------------------------------------------------ declarations */

void durable_declared(scheduler *s, const declaration *row, void (*written)(void *of, hf_status status),
                      void *of) {
  if (row == NULL || !durable_keeps(s, &row->session)) {
    written(of, HF_OK);
    return;
  }
  hold_record record = {.kind = RECORD_DECLARATION, .declaration = *row};
  s->journal->put(s->journal->context, &record, written, of);
}

/* ------------------------------------------------------------------ entries */

void durable_dropped(scheduler *s, const entry_view *view) {
  bool is_there = view->state == ENTRY_MATERIALISED || view->state == ENTRY_UNAVAILABLE;
  if (is_there && durable_keeps(s, &view->session)) {
    s->journal->remove(s->journal->context, RECORD_ENTRY, &view->key, view->job);
  }
}

/* Those who wait for a fill, until the journal has it. */
typedef struct acknowledgement {
  message base;
  scheduler *scheduler;
  registry_actions waiting;
} acknowledgement;

static void acknowledge(scheduler *s, message *m) {
  acknowledgement *ack = (acknowledgement *)m;
  registry_action *action = NULL;
  s->n_active--;
  while ((action = registry_actions_take(&ack->waiting)) != NULL) {
    held_perform(s, action);
    mem_free(action);
  }
  mem_free(ack);
}

static void entry_written(void *of, hf_status status) {
  (void)status; /* the result is there all the same; it does not outlive the process */
  acknowledgement *ack = of;
  event_queue_post(&ack->scheduler->events, &ack->base.item);
}

complete_result durable_complete(scheduler *s, const job *fill, const entry_output *output) {
  entry_view view;
  acknowledgement *ack = durable_keeps(s, &fill->session) ? mem_zalloc(1, sizeof *ack) : NULL;
  if (ack == NULL || !registry_record(s->registry, &fill->key, fill->id, output, &view)) {
    mem_free(ack);
    return registry_complete(s->registry, &fill->key, fill->id, output, &s->actions);
  }
  fault_point("scheduler.before_journal");
  complete_result result = registry_complete(s->registry, &fill->key, fill->id, output, &ack->waiting);
  if (result != COMPLETE_PROMOTED) {
    mem_free(ack);
    return result;
  }
  ack->base.handle = acknowledge;
  ack->scheduler = s;
  s->n_active++; /* the scheduler does not close before it */
  hold_record record = {.kind = RECORD_ENTRY, .entry = view};
  s->journal->put(s->journal->context, &record, entry_written, ack);
  return result;
}

static bool save_entry(void *context, const entry_view *view) {
  scheduler *s = context;
  if (view->state == ENTRY_MATERIALISED && view->hits > 0 && durable_keeps(s, &view->session)) {
    hold_record record = {.kind = RECORD_ENTRY, .entry = *view};
    s->journal->put(s->journal->context, &record, NULL, NULL);
  }
  return true;
}

void durable_end(scheduler *s) {
  if (s->journal != NULL) {
    registry_each(s->registry, &s->kept_session, save_entry, s); /* hits and times of reading */
  }
}

/* ------------------------------------------------------------------ forgetting */

typedef struct keep_call {
  call base;
  const uuid *keys;
  size_t n_keys;
  uuid *gone;
  size_t n_gone, capacity;
  bool failed;
} keep_call;

static int key_order(const void *a, const void *b) {
  return strcmp(((const uuid *)a)->text, ((const uuid *)b)->text);
}

static bool gather_forgotten(void *context, const declaration *row) {
  keep_call *c = context;
  bool is_kept = c->n_keys > 0 && bsearch(&row->key, c->keys, c->n_keys, sizeof *c->keys, key_order) != NULL;
  if (is_kept || (row->by_content && !row->released)) {
    return true;
  }
  if (c->n_gone == c->capacity) {
    size_t capacity = c->capacity * 2 + 8;
    uuid *gone = mem_realloc(c->gone, capacity * sizeof *gone);
    if (gone == NULL) {
      return false; /* the rest goes another time */
    }
    c->gone = gone;
    c->capacity = capacity;
  }
  c->gone[c->n_gone++] = row->key;
  return true;
}

static void keep_handle(scheduler *s, message *m) {
  keep_call *c = (keep_call *)m;
  declarations_each(s->declared, &s->kept_session, gather_forgotten, c);
  for (size_t i = 0; i < c->n_gone; i++) {
    held_drop(s, &c->gone[i], "nothing names it any more");
    s->journal->remove(s->journal->context, RECORD_DECLARATION, &c->gone[i], (job_id){0});
    declarations_remove(s->declared, &c->gone[i]);
  }
  call_finish(&c->base);
}

void scheduler_keep_only(scheduler *s, const uuid *keys, size_t n_keys) {
  keep_call c = {.keys = keys, .n_keys = n_keys};
  if (s->journal != NULL) {
    call_init(&c.base, keep_handle);
    call_run(s, &s->events, &c.base);
    call_reset(&c.base);
  }
  mem_free(c.gone);
}

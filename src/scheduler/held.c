/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two-job split: what a job asks the registry, how it waits, and how a fill
 * settles its claim. A held result that is not there is computed by a job of its
 * own whose relation is the cache node's input; whoever wants it, its starter
 * too, is a waiter and holds neither slot nor thread.
 * Thread: the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------- answers */

static void say_inline(job *j, held_need *need, const char *why) {
  need->state = NEED_ANSWERED;
  need->info = (held_info){.answer = HELD_INLINE};
  j->profile.held_inline += need->is_inlined ? 0 : 1;
  need->is_inlined = true;
  need->is_filling = false;
  if (why != NULL) {
    need->stays_inline = true;
    snprintf(j->profile.warning, sizeof j->profile.warning, "computed inline, not held: %s", why);
  }
}

/* Another engine's says nothing. */
static hf_status copy_partitioning(const entry_partitioning *from, arena *a, entry_partitioning *out,
                                   hf_error *error) {
  *out = (entry_partitioning){0};
  if (from->n_columns == 0 || from->hash_version != cutting_hash_version()) {
    return HF_OK;
  }
  uint32_t *columns = arena_array(a, from->n_columns, sizeof *columns);
  if (columns == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  memcpy(columns, from->columns, from->n_columns * sizeof *columns);
  *out = *from;
  out->columns = columns;
  return HF_OK;
}

/* Copies what planning and launching need of an entry. */
static hf_status copy_entry(const entry_view *view, held_need *need, arena *a, hf_error *error) {
  const entry_output *output = &view->output;
  entry_location *locations = arena_array(a, output->n_locations, sizeof *locations);
  if (locations == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  memcpy(locations, output->locations, output->n_locations * sizeof *locations);
  held_info info = {.answer = HELD_READ,
                    .rows = output->rows,
                    .ordered = output->ordered,
                    .indeterminate = output->indeterminate,
                    .generation = view->generation};
  HF_TRY(schema_copy(&output->columns, a, &info.columns, error));
  HF_TRY(copy_partitioning(&output->partitioning, a, &need->partitioning, error));
  need->info = info;
  need->bytes = output->bytes;
  need->locations = locations;
  need->n_locations = output->n_locations;
  return HF_OK;
}

/* Adds the name of a held result that was there to what the profile tells. */
static void name_reused(const scheduler *s, job *j, const held_need *need) {
  const declaration *row = declarations_find(s->declared, &need->key);
  const char *name = row == NULL || row->name == NULL ? need->key.text : row->name;
  char *list = j->profile.reused;
  size_t length = strlen(list);
  snprintf(list + length, sizeof j->profile.reused - length, "%s%s", length == 0 ? "" : ", ", name);
  list[utf8_right_length(list, strlen(list))] = '\0'; /* a name that was cut ends behind a whole letter */
}

/* Who waited for another's fill is a wait in the profile, and has read it all the same. */
static void count_hit(scheduler *s, job *j, held_need *need) {
  if (!need->is_counted || need->is_wait) {
    if (!need->is_counted) {
      j->profile.held_hits++;
      name_reused(s, j, need);
    }
    need->is_counted = true;
    need->is_wait = false;
    registry_touch(s->registry, &need->key, clock_wall_us());
  }
}

void held_count(scheduler *s, job *j) {
  held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    if (need->state == NEED_ANSWERED && need->info.answer == HELD_READ && !need->is_stale) {
      count_hit(s, j, need);
    }
  }
}

static hf_status say_read(scheduler *s, job *j, held_need *need, hf_error *error) {
  entry_view view;
  registry_lookup(s->registry, &need->key, &view);
  HF_TRY(registry_lease_add(s->registry, &need->key, j->id, error));
  HF_TRY(copy_entry(&view, need, j->plan.lasting, error));
  need->state = NEED_ANSWERED;
  j->profile.held_fills += need->is_filling ? 1 : 0;
  need->is_filling = false;
  need->wants_check = j->settings.follows_sources && !need->is_ours && need->n_stale < REPLANS_AT_MOST;
  if (j->is_fill || need->wants_check) {
    HF_TRY(freshness_copy(&view, need, j->plan.lasting, error));
  }
  if (need->wants_check && freshness_is_outrun(s, &view)) {
    need->is_stale = true; /* held_ask asks anew */
    return HF_OK;
  }
  if (!need->wants_check) {
    count_hit(s, j, need);
  }
  return HF_OK;
}

/* Drops an entry whose sources have changed, unless another has taken its place. */
static void drop_stale(scheduler *s, held_need *need) {
  entry_view view;
  if (registry_lookup(s->registry, &need->key, &view) == ENTRY_MATERIALISED &&
      view.generation == need->info.generation) {
    held_drop(s, &need->key, "source changed");
  }
  need->is_stale = false;
  need->wants_check = false;
  need->n_stale++;
  need->state = NEED_NEW;
}

/* ------------------------------------------------------------------ asking */

static hf_status check(const scheduler *s, const uuid *session, const held_need *need,
                       const declaration **out, hf_error *error) {
  const declaration *row = declarations_find(s->declared, &need->key);
  if (!uuid_equal(&need->session, session) || (row != NULL && !uuid_equal(&row->session, session))) {
    return error_set(error, HF_E_HELD_FOREIGN, "a cache node belongs to another session: %s", need->key.text);
  }
  if (row == NULL && owner_was_removed(s, session)) {
    return error_set(error, HF_E_SESSION_CLOSED, "the session is closed");
  }
  if (row == NULL) {
    return error_set(error, HF_E_HELD_FOREIGN, "a cache node was never declared in this session: %s",
                     need->key.text);
  }
  if (strcmp(row->fingerprint, need->fingerprint) != 0) {
    return error_set(error, HF_E_HELD_MISMATCH, "a cache id stands for another plan: %s", need->key.text);
  }
  *out = row;
  return HF_OK;
}

void held_settings(const declaration *row, stage_setting *rows, job_settings *settings) {
  size_t n = 0;
  const char *at = row->settings, *end = at == NULL ? NULL : at + row->settings_bytes;
  while (at != NULL && at < end && n < SETTINGS_AT_MOST) {
    const char *value = at + strlen(at) + 1;
    rows[n++] = (stage_setting){.name = at, .value = value};
    at = value + strlen(value) + 1;
  }
  if (n > 0) {
    settings->engine = rows;
    settings->n_engine = n;
  }
}

/* The claim is this job's: a job of its own computes the node's input, as it would have been when it was declared. */
static void start_fill(scheduler *s, job *j, held_need *need, const declaration *row) {
  stage_setting rows[SETTINGS_AT_MOST];
  job_request request = {
      .session = j->session, .relation = relation_look(need->node).input, .settings = j->settings};
  job *fill = NULL;
  job_id id = {s->next_job};
  held_settings(row, rows, &request.settings);
  if (job_new(s, &request, j->owner, &fill, &need->fill_error) != HF_OK) {
    registry_abort(s->registry, &need->key, id, HF_CLASS_RESOURCE, &s->actions);
    return;
  }
  fill->is_fill = true;
  fill->key = need->key;
  job_raise(s, fill, JOB_EVENT_START);
}

static void wait_for(scheduler *s, held_need *need) {
  entry_view view;
  registry_lookup(s->registry, &need->key, &view);
  need->state = NEED_WAITING;
  need->fill = view.job;
  need->is_counted = true;
  hf_error_reset(&need->fill_error);
  fault_point("scheduler.waits");
}

static hf_status ask(scheduler *s, job *j, held_need *need, hf_error *error) {
  const declaration *row = NULL;
  entry_view view;
  HF_TRY(check(s, &j->session, need, &row, error));
  if (need->stays_inline) {
    say_inline(j, need, NULL);
    return HF_OK;
  }
  if (relation_only_describes(j->plan.relation) &&
      registry_lookup(s->registry, &need->key, &view) != ENTRY_MATERIALISED) {
    need->state = NEED_ANSWERED; /* its input tells its columns, and no row of it is computed */
    need->info = (held_info){.answer = HELD_INLINE};
    return HF_OK;
  }
  job_id fill = {s->next_job}; /* job_new gives it this id */
  switch (registry_begin_or_wait(s->registry, &need->key, &j->session, fill, j->id, error)) {
    case BEGIN_CLAIMED:
      need->is_ours = true;
      need->is_filling = true;
      wait_for(s, need);
      start_fill(s, j, need, row);
      return HF_OK;
    case BEGIN_WAITING:
      if (!need->is_counted) {
        j->profile.held_waits++;
        need->is_wait = true;
      }
      wait_for(s, need);
      return HF_OK;
    case BEGIN_MATERIALISED:
      return say_read(s, j, need, error);
    case BEGIN_RELEASED:
      say_inline(j, need, NULL);
      return HF_OK;
    case BEGIN_UNAVAILABLE:
      say_inline(j, need, "its executor is away");
      return HF_OK;
    default:
      return error->code;
  }
}

/* Goes on when nothing is waited for any more. */
static void go_on(scheduler *s, job *j) {
  const held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    if (need->state != NEED_ANSWERED) {
      return;
    }
  }
  job_raise(s, j, JOB_EVENT_ANSWERED);
}

/* Until there is an answer that is not stale, or something to wait for. */
static hf_status ask_on(scheduler *s, job *j, held_need *need, hf_error *error) {
  while (need->state == NEED_NEW || need->is_stale) {
    if (need->is_stale) {
      drop_stale(s, need);
    }
    HF_TRY(ask(s, j, need, error));
  }
  return HF_OK;
}

void held_ask(scheduler *s, job *j) {
  hf_error error = {0};
  held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    if (ask_on(s, j, need, &error) != HF_OK) {
      job_fail(s, j, &error);
      return;
    }
  }
  go_on(s, j);
}

void held_leave(scheduler *s, job *j) {
  held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    if (need->state == NEED_WAITING) {
      need->state = NEED_NEW;
      registry_leave(s->registry, &need->key, j->id, &s->actions);
    }
  }
}

void held_forget(scheduler *s, job *j) {
  registry_lease_drop(s->registry, j->id, &s->actions);
  held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    need->state = NEED_NEW;
    need->is_stale = need->wants_check = false;
    need->stays_inline = need->stays_inline || j->replans > REPLANS_AT_MOST;
  }
  if (j->replans > REPLANS_AT_MOST) {
    snprintf(j->profile.warning, sizeof j->profile.warning,
             "computed inline, not held: blocks of held results were lost %d times", REPLANS_AT_MOST + 1);
  }
}

/* ---------------------------------------------------------------- settling */

/* Adds the numbers of a fill to those of a job that waited for it. */
static void add_profile(hf_profile *to, const hf_profile *fill) {
  to->tasks_run += fill->tasks_run;
  to->source_rows += fill->source_rows;
  to->source_files += fill->source_files;
  to->held_hits += fill->held_hits;
  to->held_fills += fill->held_fills;
  to->held_waits += fill->held_waits;
  to->held_inline += fill->held_inline;
  to->held_rows += fill->held_rows;
  to->held_blocks += fill->held_blocks;
  to->held_blocks_skipped += fill->held_blocks_skipped;
  to->stages_run += fill->stages_run;
  to->widest_tasks = to->widest_tasks > fill->widest_tasks ? to->widest_tasks : fill->widest_tasks;
  if (to->fallback[0] == '\0') {
    memcpy(to->fallback, fill->fallback, sizeof to->fallback);
  }
  if (to->warning[0] == '\0') {
    memcpy(to->warning, fill->warning, sizeof to->warning);
  }
}

static void tell_waiters(scheduler *s, const job *fill) {
  job *j = NULL, *next = NULL;
  HASH_ITER(hh, s->jobs, j, next) {
    /* While it plans, its needs are a planning thread's. */
    held_need *need = j->state == JOB_WAITING ? planning_need(&j->plan, &fill->key) : NULL;
    if (need != NULL && need->state == NEED_WAITING && need->fill.value == fill->id.value) {
      if (!j->is_fill || need->is_ours) { /* else a query that needs both would count it twice */
        add_profile(&j->profile, &fill->profile);
      }
      observe_filled(need, fill);
      error_copy(&need->fill_error, &fill->error);
      need->fill_error.position = -1; /* in another text than the waiter's */
    }
  }
}

/* As it was wanted, or as the tasks of the last stage happened to have them: task t has the rows of partition t. */
static hf_status partitioning_of(const job *fill, entry_partitioning *out, hf_error *error) {
  const relation_dealing *wanted = &fill->plan.dealing;
  const cut_graph *graph = &fill->plan.graph;
  const planned_stage *last = fill->runs[fill->n_runs - 1].planned;
  size_t n = wanted->n > 0 ? wanted->n : last->n_tasks > 1 ? graph->n_keys : 0;
  const size_t *from = wanted->n > 0 ? wanted->columns : graph->keys;
  uint32_t *columns = arena_array(fill->memory, n + 1, sizeof *columns);
  if (columns == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  *out = (entry_partitioning){0};
  for (size_t i = 0; i < n; i++) {
    columns[i] = (uint32_t)from[i];
    if (!relation_can_deal(fill->plan.columns.columns[columns[i]].type)) {
      return HF_OK;
    }
  }
  *out = (entry_partitioning){.columns = columns,
                              .n_columns = n,
                              .n = wanted->n > 0 ? wanted->partitions : last->n_tasks,
                              .hash_version = cutting_hash_version(),
                              .in_blocks = wanted->n > 0};
  return HF_OK;
}

/* What the fill made; memory in the fill's arena. */
static hf_status output_of(const scheduler *s, const job *fill, entry_output *out, hf_error *error) {
  const stage_run *last = &fill->runs[fill->n_runs - 1];
  entry_location *locations = arena_array(fill->memory, last->planned->n_tasks, sizeof *locations);
  if (locations == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  for (uint32_t t = 0; t < last->planned->n_tasks; t++) {
    locations[t] = (entry_location){
        .job = fill->id, .stage = last->planned->id, .task = {t + 1}, .attempt = last->tasks[t].attempt};
    snprintf(locations[t].executor, sizeof locations[t].executor, "%s", executor_id(s->executor));
  }
  *out = (entry_output){.columns = fill->plan.columns,
                        .rows = fill->rows,
                        .bytes = fill->bytes,
                        .ordered = last->planned->ordered,
                        .indeterminate = fill->plan.traits.indeterminate,
                        .locations = locations,
                        .n_locations = last->planned->n_tasks,
                        .cost_us = clock_monotonic_us() - fill->started_us,
                        .created_us = clock_wall_us()};
  HF_TRY(partitioning_of(fill, &out->partitioning, error));
  return freshness_of_fill(fill, out, error);
}

/* Makes an entry of it, or lets it serve once when there is no room. */
static bool enter(scheduler *s, job *fill, const entry_output *output) {
  const char *why = leaving_refuse(s, fill);
  if (why != NULL) {
    snprintf(fill->profile.warning, sizeof fill->profile.warning, "computed, not held: %s", why);
    tell_waiters(s, fill);
    return leaving_pass(s, fill, output);
  }
  tell_waiters(s, fill);
  if (durable_complete(s, fill, output) == COMPLETE_REFUSED) {
    return false;
  }
  leaving_admitted(s, &fill->session, output->bytes, &fill->settings);
  return true;
}

void held_settle(scheduler *s, job *fill) {
  entry_output output;
  hf_error_class class = HF_CLASS_RETRYABLE;
  if (fill->state != JOB_SUCCEEDED) {
    tell_waiters(s, fill);
    class = fill->error.error_class;
  } else if (output_of(s, fill, &output, NULL) != HF_OK) {
    tell_waiters(s, fill);
    class = HF_CLASS_RESOURCE;
  } else if (freshness_was_written(fill, &output)) {
    error_set(&fill->error, HF_E_TASK_LOST, "its files were written while it was computed");
    tell_waiters(s, fill);
  } else if (enter(s, fill, &output)) {
    return;
  }
  if (class == HF_CLASS_RESOURCE) {
    registry_tell(s->registry, &fill->key, leaving_why_not(fill->error.code));
  }
  registry_abort(s->registry, &fill->key, fill->id, class, &s->actions);
}

bool held_drop(scheduler *s, const uuid *key, const char *why) {
  entry_view view;
  registry_lookup(s->registry, key, &view);
  durable_dropped(s, &view);
  leaving_dropped(s, &view);
  return registry_invalidate(s->registry, key, why, &s->actions);
}

/* ------------------------------------------------------------- the actions */

static void on_inline(scheduler *s, job *j, held_need *need) {
  say_inline(j, need, need->fill_error.message == NULL ? "its fill failed" : need->fill_error.message);
  go_on(s, j);
}

static void wake(scheduler *s, const registry_action *action) {
  job *j = job_find(s, action->job);
  held_need *need = j == NULL || j->state != JOB_WAITING ? NULL : planning_need(&j->plan, &action->key);
  if (need == NULL || need->state != NEED_WAITING) {
    return; /* it has left */
  }
  hf_error error = {0};
  need->state = NEED_NEW;
  if (action->kind == REGISTRY_INLINE) {
    on_inline(s, j, need);
  } else if (action->kind == REGISTRY_FAIL_WAITER) {
    job_fail(s, j, &need->fill_error);
  } else if (ask_on(s, j, need, &error) != HF_OK) {
    job_fail(s, j, &error);
  } else {
    go_on(s, j);
  }
}

void held_perform(scheduler *s, const registry_action *action) {
  job *fill = NULL;
  switch (action->kind) {
    case REGISTRY_WAKE:
    case REGISTRY_FAIL_WAITER:
    case REGISTRY_INLINE:
      wake(s, action);
      break;
    case REGISTRY_UNPIN:
      clean_stage(s, &action->session, action->job, action->stage);
      break;
    case REGISTRY_CANCEL_JOB:
      fill = job_find(s, action->job);
      if (fill != NULL) {
        job_cancel(s, fill, HF_E_CANCELLED);
      }
      break;
  }
}

/* ------------------------------------------------------------------- looks */

/* What its fill would make of it. */
static hf_status expect_partitioning(held_need *need, arena *a, hf_error *error) {
  relation_dealing dealing;
  if (!relation_is_dealt(relation_look(need->node).input, &dealing)) {
    return HF_OK;
  }
  uint32_t *columns = arena_array(a, dealing.n, sizeof *columns);
  if (columns == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  for (size_t i = 0; i < dealing.n; i++) {
    columns[i] = (uint32_t)dealing.columns[i];
  }
  need->partitioning =
      (entry_partitioning){columns, dealing.n, dealing.partitions, cutting_hash_version(), true};
  return HF_OK;
}

hf_status held_look(scheduler *s, const uuid *session, held_need *need, arena *a, hf_error *error) {
  const declaration *row = NULL;
  HF_TRY(check(s, session, need, &row, error));
  need->state = NEED_ANSWERED;
  if (row->name != NULL && (need->name = arena_strdup(a, row->name)) == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  need->is_released = row->released;
  if (row->released) {
    need->info = (held_info){.answer = HELD_INLINE};
    return HF_OK;
  }
  entry_view view;
  if (registry_lookup(s->registry, &need->key, &view) == ENTRY_MATERIALISED) {
    need->is_stale = need->wants_check && freshness_is_outrun(s, &view);
    HF_TRY(need->wants_check ? freshness_copy(&view, need, a, error) : HF_OK);
    return copy_entry(&view, need, a, error);
  }
  need->is_miss = true;
  need->info = (held_info){.answer = HELD_READ, .generation = view.generation};
  HF_TRY(expect_partitioning(need, a, error));
  return schema_copy(&row->columns, a, &need->info.columns, error);
}

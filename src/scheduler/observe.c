/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is noted of a job for its profile: the stages of its plan, the reports of
 * attempts, why something was chosen, and the profiles of fills that it waited for.
 * EXPLAIN describes a plan by the same function. Nothing here can fail: without memory
 * the profile is incomplete.
 * Threads: observe_plan that of its caller, the rest the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- inputs */

/* read_parquet 3 files, 3,000,000 rows (exact), 64 MB, a.parquet … */
static void put_source(buf *out, const lower_input *input) {
  const char *reader = strstr(source_reader_text(input->source), "read_");
  size_t n_files = source_n_files(input->source);
  buf_append(out, reader == NULL ? "files" : reader, reader == NULL ? 5 : strcspn(reader, "("));
  buf_char(out, ' ');
  profile_put_count(out, n_files);
  buf_text(out, n_files == 1 ? " file, " : " files, ");
  profile_put_count(out, input->rows);
  buf_text(out, input->rows_exact ? " rows (exact), " : " rows (estimated), ");
  profile_put_bytes(out, source_bytes(input->source));
  if (n_files > 0) {
    const char *path = source_files(input->source)[0].path, *slash = strrchr(path, '/');
    buf_printf(out, ", %s%s", slash == NULL ? path : slash + 1, n_files == 1 ? "" : " …");
  }
}

/* partitioned by k, 8 */
static void put_partitioning(buf *out, const held_need *need) {
  const entry_partitioning *by = &need->partitioning;
  for (size_t i = 0; i < by->n_columns; i++) {
    buf_printf(out, "%s%s", i == 0 ? ", partitioned by " : ", ",
               need->info.columns.columns[by->columns[i]].name);
  }
  if (by->n_columns > 0) {
    buf_printf(out, ", %u", by->n);
  }
}

static const char *how_held(const held_need *need) {
  if (need->filled == NULL) {
    return "hit";
  }
  return need->is_ours ? "computed" : "waited for";
}

static void put_held(buf *out, const held_need *need) {
  const char *name = need->name != NULL ? need->name : need->key.text;
  if (need->is_miss) {
    buf_printf(out, "CachedRead [%s → materialise] %s", need->is_changed ? "source changed" : "miss", name);
    put_partitioning(out, need);
    return;
  }
  buf_printf(out, "CachedRead [%s, generation %llu] %s ", how_held(need),
             (unsigned long long)need->info.generation, name);
  profile_put_count(out, need->info.rows);
  buf_text(out, " rows, ");
  profile_put_bytes(out, need->bytes);
  buf_text(out, need->info.ordered ? ", ordered" : "");
  put_partitioning(out, need);
}

static held_need *need_of(const planning *p, const lower_input *input) {
  uuid key = relation_look(input->cache_node).cache_id;
  return planning_need(p, &key);
}

/* Fills in what a source, a held result or client data is. */
static void note_input(const planning *p, const lower_input *from, const observe_fills *fills,
                       job_profile *out, profile_input *input) {
  buf text = {0};
  if (from->kind == LOWER_INPUT_SOURCE) {
    put_source(&text, from);
  } else if (from->kind == LOWER_INPUT_LOCAL) {
    buf_text(&text, "client data, ");
    profile_put_count(&text, from->rows);
    buf_text(&text, " rows");
  } else {
    const held_need *need = need_of(p, from);
    put_held(&text, need);
    input->fill = fills->of(fills->context, need);
  }
  input->text = profile_take(out, &text);
}

static const char *how_shared(const cut_input *input, bool one_task) {
  if (one_task) {
    return ", all of it";
  }
  switch (input->share) {
    case CUT_SPLIT:
      return ", split among the tasks";
    case CUT_PARTITION:
      return input->is_stage ? ", a partition each" : ", each task its partitions: no exchange";
    default:
      return ", all of it by each task";
  }
}

/* ------------------------------------------------------------------- stages */

/* Its number in the job; in a plan that was not staged, its place. */
static uint32_t id_of(const planning *p, size_t place) {
  return place < p->n_stages ? p->stages[place].id.value : (uint32_t)place + 1;
}

static void put_piece(buf *out, const char *text, uint32_t input) {
  if (text == NULL) {
    buf_printf(out, "[input %u]", input);
  } else {
    buf_text(out, text);
  }
}

/* The lowered query as one stage. */
static void note_only_stage(const planning *p, const observe_fills *fills, job_profile *out) {
  profile_stage *stage = profile_add_stage(out, id_of(p, 0), 1, p->query.n_inputs);
  if (stage == NULL) {
    return;
  }
  buf sql = {0};
  for (size_t i = 0; i < p->query.n_pieces; i++) {
    put_piece(&sql, p->query.pieces[i].text, p->query.pieces[i].input);
  }
  stage->sql = profile_take(out, &sql);
  stage->why_one = profile_say(out, "%s", p->fallback == NULL ? "fits one slot" : p->fallback);
  stage->ordered = p->ordered;
  for (size_t i = 0; i < p->query.n_inputs; i++) {
    note_input(p, &p->query.inputs[i], fills, out, &stage->inputs[i]);
  }
}

/* How often later stages read it. */
static uint32_t reads_of(const cut_graph *graph, size_t place) {
  uint32_t n = 0;
  for (size_t i = place + 1; i < graph->n_stages; i++) {
    for (size_t k = 0; k < graph->stages[i].n_inputs; k++) {
      const cut_input *input = &graph->stages[i].inputs[k];
      n += input->is_stage && input->stage == place ? 1 : 0;
    }
  }
  return n;
}

/* Which stages it waits for, and what is chosen then. */
static void note_after(const planning *p, const cut_stage *from, job_profile *out, profile_stage *stage) {
  uint32_t *after = from->n_after == 0 ? NULL : arena_array(out->memory, from->n_after, sizeof *after);
  for (size_t i = 0; after != NULL && i < from->n_after; i++) {
    after[i] = id_of(p, from->after[i]);
  }
  stage->after = after;
  stage->n_after = after == NULL ? 0 : from->n_after;
  stage->awaits = from->awaits == NULL ? "" : profile_say(out, "%s", from->awaits);
}

/* That what an earlier stage gave leaves out rows of it. */
static void note_filter(const planning *p, size_t place, job_profile *out) {
  const cut_stage *stage = &p->graph.stages[place];
  char text[240];
  if (stage->filter != NULL) {
    snprintf(text, sizeof text, "only rows with keys that stage %u has, %s", id_of(p, stage->filter_of),
             stage->filter);
    text[utf8_right_length(text, strlen(text))] = '\0';
    profile_add_note(out, id_of(p, place), text);
  }
}

static void note_stage(const planning *p, size_t place, const observe_fills *fills, job_profile *out) {
  const cut_stage *from = &p->graph.stages[place];
  uint32_t n_tasks = place < p->n_stages ? p->stages[place].n_tasks : from->one_task ? 1 : p->n_tasks;
  profile_stage *stage = profile_add_stage(out, id_of(p, place), n_tasks, from->n_inputs);
  if (stage == NULL) {
    return;
  }
  buf sql = {0};
  for (size_t i = 0; i < from->n_pieces; i++) {
    put_piece(&sql, from->pieces[i].text, from->pieces[i].input);
  }
  stage->sql = profile_take(out, &sql);
  stage->what = profile_say(out, "%s", from->what == NULL ? "" : from->what);
  if (from->one_task) {
    stage->why_one = profile_say(out, "%s", from->why_one == NULL ? "" : from->why_one);
  }
  stage->partitions = from->partitions;
  stage->n_reads = reads_of(&p->graph, place);
  stage->ordered = from->ordered || (place + 1 == p->graph.n_stages && p->ordered);
  note_after(p, from, out, stage);
  note_filter(p, place, out);
  for (size_t i = 0; i < from->n_inputs; i++) {
    const cut_input *input = &from->inputs[i];
    stage->inputs[i].how = how_shared(input, from->one_task);
    if (input->is_stage) {
      stage->inputs[i].stage = id_of(p, input->stage);
    } else {
      note_input(p, &p->query.inputs[strtoul(input->source_id, NULL, 10)], fills, out, &stage->inputs[i]);
    }
  }
}

void observe_plan(const planning *p, const observe_fills *fills, job_profile *out) {
  size_t n = p->graph.n_stages == 0 ? 1 : p->graph.n_stages;
  for (size_t i = 0; out != NULL && i < n; i++) {
    if (profile_find_stage(out, id_of(p, i)) != NULL) {
      continue; /* of an earlier plan */
    }
    if (p->graph.n_stages == 0) {
      note_only_stage(p, fills, out);
    } else {
      note_stage(p, i, fills, out);
    }
  }
}

/* --------------------------------------------------------------------- jobs */

static const char *name_of_hold(const scheduler *s, const uuid *key) {
  const declaration *row = declarations_find(s->declared, key);
  return row == NULL || row->name == NULL ? key->text : row->name;
}

static job_profile *fill_of(void *context, const held_need *need) {
  (void)context;
  return profile_retain(need->filled);
}

/* Stages that another plan takes the place of before they ran: their numbers may come again. */
static void drop_stages(job_profile *p) {
  profile_stage *stage = NULL;
  LL_FOREACH(p->stages, stage) {
    stage->is_dropped = stage->is_dropped || stage->tasks == NULL;
  }
}

/* Who reads the others has changed. */
static void note_reads(const planning *plan, job_profile *p) {
  for (size_t i = 0; i < plan->n_stages; i++) {
    profile_stage *stage = profile_find_stage(p, plan->stages[i].id.value);
    if (stage != NULL) {
      stage->n_reads = (uint32_t)plan->stages[i].n_reads;
    }
  }
}

void observe_planned(scheduler *s, job *j) {
  static const observe_fills fills = {fill_of, NULL};
  job_profile *p = j->observed;
  if (p == NULL) {
    return;
  }
  bool is_first = p->stages == NULL;
  if (j->is_fill && p->held == NULL) {
    p->held = profile_say(p, "%s", name_of_hold(s, &j->key));
  }
  held_need *need = NULL;
  LL_FOREACH(j->plan.needs, need) {
    need->name = profile_say(p, "%s", name_of_hold(s, &need->key));
    if (is_first && need->info.answer == HELD_INLINE) {
      profile_add_inlined(
          p, profile_say(p, "[%s] %s", need->stays_inline ? "it could not be held" : "released", need->name));
    }
  }
  drop_stages(p);
  observe_plan(&j->plan, &fills, p);
  note_reads(&j->plan, p);
}

void observe_note(job *j, stage_id stage, const char *format, ...) {
  char text[240];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  profile_add_note(j->observed, stage.value, text);
}

void observe_dealt(job *j, const stage_run *stage, uint32_t partitions, uint64_t bytes) {
  uint32_t n_tasks = stage->planned->n_tasks;
  profile_stage *of = profile_find_stage(j->observed, stage->planned->id.value);
  buf size = {0};
  profile_put_bytes(&size, bytes);
  observe_note(j, stage->planned->id, "%u partitions in %u %s: %s", partitions, n_tasks,
               n_tasks == 1 ? "task" : "tasks", size.failed ? "" : buf_cstr(&size));
  buf_reset(&size);
  if (of != NULL && of->tasks == NULL) {
    of->n_tasks = n_tasks;
    of->why_one = n_tasks == 1 ? "" : of->why_one;
  }
}

void observe_launched(job *j, const stage_run *stage, uint32_t task) {
  const planned_stage *planned = stage->planned;
  profile_attempt *attempt =
      profile_attempt_of(j->observed, planned->id.value, task, stage->tasks[task].attempt.value);
  profile_stage *of = profile_find_stage(j->observed, planned->id.value);
  if (of != NULL && of->began_us == 0) {
    of->began_us = of->ended_us = clock_monotonic_us();
  }
  for (size_t i = 0; attempt != NULL && i < planned->n_inputs; i++) {
    const planned_input *input = &planned->inputs[i];
    if (!input->is_stage) {
      attempt->amounts.source_bytes += input->given[input->n_given == 1 ? 0 : task].file_bytes;
    }
  }
}

void observe_reported(job *j, const task_report *report) {
  profile_attempt *attempt =
      profile_attempt_of(j->observed, report->stage.value, report->task.value - 1, report->attempt.value);
  if (attempt == NULL) {
    return;
  }
  profile_find_stage(j->observed, report->stage.value)->ended_us = clock_monotonic_us();
  attempt->end = report->outcome == TASK_FINISHED ? ATTEMPT_IS_FINISHED : ATTEMPT_HAS_FAILED;
  attempt->code = report->error.code;
  attempt->amounts = (hf_amounts){.wait_us = report->wait_us,
                                  .run_us = report->run_us,
                                  .source_rows = report->source_rows,
                                  .source_bytes = attempt->amounts.source_bytes,
                                  .block_rows = report->block_rows,
                                  .block_bytes = report->block_bytes,
                                  .held_rows = report->held_rows,
                                  .held_blocks = report->held_blocks,
                                  .skipped_blocks = report->held_blocks_all - report->held_blocks,
                                  .rows = report->output.rows,
                                  .bytes = report->output.bytes,
                                  .spill_bytes = report->spill_bytes,
                                  .peak_memory_bytes = report->peak_memory_bytes};
}

void observe_filled(held_need *need, const job *fill) {
  profile_release(need->filled);
  need->filled = profile_retain(fill->observed);
}

void observe_ended(job *j) {
  job_profile *p = j->observed;
  if (p != NULL && !p->is_over) {
    p->is_over = true;
    p->code = j->state == JOB_SUCCEEDED ? HF_OK : j->error.code;
    p->planning_us = j->plan.planning_us;
    p->elapsed_us = clock_monotonic_us() - j->started_us;
    p->rows = j->rows;
    p->bytes = j->bytes;
  }
}

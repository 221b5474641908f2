/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as text: the stages of EXPLAIN, and below each of one that ran what its
 * tasks did.
 * Thread: any.
 */
#include "profile/profile.h"

#include "base/error.h"

#include <utlist.h>

/* Of one stage; the rest is in one line. All are in the JSON. */
enum { TASKS_SHOWN = 32 };

/* ----------------------------------------------------------------- numbers */

void profile_put_count(buf *out, uint64_t count) {
  if (count >= 1000) {
    profile_put_count(out, count / 1000);
    buf_printf(out, ",%03u", (unsigned)(count % 1000));
  } else {
    buf_printf(out, "%u", (unsigned)count);
  }
}

void profile_put_bytes(buf *out, uint64_t bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1000;
    unit++;
  }
  buf_printf(out, unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void put_time(buf *out, uint64_t us) {
  double ms = (double)us / 1000;
  if (ms < 9999.5) {
    buf_printf(out, ms < 99.95 ? "%.1f ms" : "%.0f ms", ms);
  } else {
    buf_printf(out, "%.1f s", ms / 1000);
  }
}

static void put_amount(buf *out, const char *head, uint64_t count, const char *one, const char *several) {
  buf_text(out, head);
  profile_put_count(out, count);
  buf_printf(out, " %s", count == 1 ? one : several);
}

static void put_rows(buf *out, const char *head, uint64_t rows, uint64_t bytes) {
  put_amount(out, head, rows, "row", "rows");
  buf_text(out, " (");
  profile_put_bytes(out, bytes);
  buf_char(out, ')');
}

static void put_indent(buf *out, unsigned depth) {
  for (unsigned i = 0; i < depth; i++) {
    buf_text(out, "  ");
  }
}

static void put_text_indented(buf *out, const char *text, unsigned depth) {
  for (; *text != '\0'; text++) {
    buf_char(out, *text);
    if (*text == '\n') {
      put_indent(out, depth);
    }
  }
}

/* ------------------------------------------------------------ what happened */

/* in 5.1 ms, waited 0.2 ms; read 60,175 rows (1.2 MB) of files, 4 rows (300 bytes) of blocks; wrote 4 rows (270 bytes); … */
static void put_amounts(buf *out, const hf_amounts *a) {
  put_time(out, a->run_us);
  buf_text(out, ", waited ");
  put_time(out, a->wait_us);
  const char *head = "; read ";
  if (a->source_rows > 0 || a->source_bytes > 0) {
    put_rows(out, head, a->source_rows, a->source_bytes);
    buf_text(out, " of files");
    head = ", ";
  }
  if (a->block_rows > 0 || a->block_bytes > 0) {
    put_rows(out, head, a->block_rows, a->block_bytes);
    buf_text(out, " of blocks");
    head = ", ";
  }
  buf_text(out, head[0] == ';' ? "; read nothing" : "");
  if (a->skipped_blocks > 0) {
    put_amount(out, ", left out ", a->skipped_blocks, "block", "blocks");
    buf_text(out, " of held results");
  }
  put_rows(out, "; wrote ", a->rows, a->bytes);
  buf_text(out, "; memory ");
  profile_put_bytes(out, a->peak_memory_bytes);
  if (a->spill_bytes > 0) {
    buf_text(out, ", spilled ");
    profile_put_bytes(out, a->spill_bytes);
  }
  buf_text(out, "; local\n");
}

static void put_attempt(buf *out, uint32_t task, const profile_attempt *attempt, unsigned depth) {
  put_indent(out, depth);
  buf_printf(out, "task %u", task + 1);
  if (attempt->number > 1 || attempt->next != NULL) {
    buf_printf(out, " attempt %u", attempt->number);
  }
  buf_text(out, ": ");
  if (attempt->end == ATTEMPT_HAS_FAILED) {
    buf_printf(out, "failed with %s after ", hf_status_name(attempt->code));
  } else if (attempt->end == ATTEMPT_IS_OPEN) {
    buf_text(out, "not ended: ");
  }
  put_amounts(out, &attempt->amounts);
}

static void put_tasks(buf *out, const profile_stage *stage, unsigned depth) {
  uint32_t shown = stage->n_tasks < TASKS_SHOWN ? stage->n_tasks : TASKS_SHOWN;
  for (uint32_t t = 0; t < shown; t++) {
    const profile_attempt *attempt = NULL;
    LL_FOREACH(stage->tasks[t].attempts, attempt) {
      put_attempt(out, t, attempt, depth);
    }
  }
  if (shown < stage->n_tasks) {
    put_indent(out, depth);
    put_amount(out, "and ", stage->n_tasks - shown, "task more\n", "tasks more\n");
  }
}

/* ran: 3 tasks, 1 failed attempt, in 9.1 ms: 14.2 ms, waited … */
static void put_happened(buf *out, const profile_stage *stage, unsigned depth) {
  profile_sum sum = profile_sum_stage(stage);
  put_indent(out, depth);
  if (sum.n_attempts == 0) {
    buf_text(out, "did not run\n");
    return;
  }
  put_amount(out, "ran: ", stage->n_tasks, "task", "tasks");
  if (sum.n_failed > 0) {
    put_amount(out, ", ", sum.n_failed, "failed attempt", "failed attempts");
  }
  buf_text(out, " in ");
  put_time(out, stage->ended_us - stage->began_us);
  buf_text(out, ": ");
  put_amounts(out, &sum.amounts);
  if (sum.n_attempts > 1 || sum.n_failed > 0) {
    put_tasks(out, stage, depth + 1);
  }
}

/* ------------------------------------------------------------------ stages */

/* stage 1: scan, partial aggregate: 3 tasks, 3 partitions, ordered */
static void put_head(buf *out, const profile_stage *stage, unsigned depth) {
  put_indent(out, depth);
  buf_printf(out, "stage %u: ", stage->id);
  if (stage->what[0] != '\0') {
    buf_printf(out, "%s: ", stage->what);
  }
  if (stage->n_tasks != 1 || stage->why_one == NULL) {
    buf_printf(out, "%u tasks", stage->n_tasks);
  } else if (stage->why_one[0] != '\0') {
    buf_printf(out, "one task (%s)", stage->why_one);
  } else {
    buf_text(out, "one task");
  }
  if (stage->partitions > 1) {
    buf_printf(out, ", %u partitions", stage->partitions);
  }
  if (stage->n_reads > 1) {
    buf_printf(out, ", read %u times", stage->n_reads);
  }
  buf_text(out, stage->ordered ? ", ordered\n" : ", not ordered\n");
}

static void put_notes(buf *out, const profile_note *notes, unsigned depth) {
  const profile_note *note = NULL;
  LL_FOREACH(notes, note) {
    put_indent(out, depth);
    buf_printf(out, "note: %s\n", note->text);
  }
}

/* after stage 1, stage 2: then a broadcast or an exchange */
static void put_after(buf *out, const profile_stage *stage, unsigned depth) {
  put_indent(out, depth);
  buf_text(out, "after ");
  for (size_t i = 0; i < stage->n_after; i++) {
    buf_printf(out, "%sstage %u", i == 0 ? "" : ", ", stage->after[i]);
  }
  buf_printf(out, ": %s\n", stage->awaits);
}

static void put_stages(buf *out, const job_profile *p, unsigned depth);

static void put_stage(buf *out, const job_profile *p, const profile_stage *stage, unsigned depth) {
  put_head(out, stage, depth);
  put_indent(out, depth + 1);
  buf_text(out, "SQL: ");
  put_text_indented(out, stage->sql, depth + 2);
  buf_char(out, '\n');
  for (size_t i = 0; i < stage->n_inputs; i++) {
    const profile_input *input = &stage->inputs[i];
    put_indent(out, depth + 1);
    if (input->stage > 0) {
      buf_printf(out, "input %zu: stage %u%s\n", i, input->stage, input->how);
    } else {
      buf_printf(out, "input %zu: %s%s\n", i, input->text == NULL ? "" : input->text, input->how);
    }
    if (input->fill != NULL) {
      put_stages(out, input->fill, depth + 2);
    }
  }
  if (stage->n_after > 0) {
    put_after(out, stage, depth + 1);
  }
  put_notes(out, stage->notes, depth + 1);
  if (p->job != 0) {
    put_happened(out, stage, depth + 1);
  }
}

static void put_stages(buf *out, const job_profile *p, unsigned depth) {
  const profile_stage *stage = NULL;
  LL_FOREACH(p->stages, stage) {
    if (!stage->is_dropped) {
      put_stage(out, p, stage, depth);
    }
  }
  const profile_note *inlined = NULL;
  LL_FOREACH(p->inlined, inlined) {
    put_indent(out, depth + 1);
    buf_printf(out, "Inline %s\n", inlined->text);
  }
  put_notes(out, p->notes, depth);
  if (p->is_incomplete) {
    put_indent(out, depth);
    buf_text(out, "note: there was no memory to note all of it\n");
  }
}

void profile_put_stages(const job_profile *p, buf *out) {
  if (p != NULL) {
    put_stages(out, p, 0);
  }
}

/* ------------------------------------------------------------------ totals */

typedef struct totals {
  uint32_t stages, tasks, attempts, failed;
} totals;

static void add_totals(const job_profile *p, totals *to) {
  const profile_stage *stage = NULL;
  LL_FOREACH(p->stages, stage) {
    profile_sum sum = profile_sum_stage(stage);
    to->stages += sum.n_attempts > 0 ? 1 : 0;
    to->tasks += sum.n_attempts > 0 ? stage->n_tasks : 0;
    to->attempts += sum.n_attempts;
    to->failed += sum.n_failed;
    for (size_t i = 0; i < stage->n_inputs; i++) {
      if (stage->inputs[i].fill != NULL) {
        add_totals(stage->inputs[i].fill, to);
      }
    }
  }
}

void profile_put_text(const job_profile *p, buf *out) {
  buf_text(out, "== Holdfast plan, as it ran ==\n");
  if (p == NULL) {
    buf_text(out, "there was no memory to note it\n");
    return;
  }
  put_stages(out, p, 0);
  totals all = {0};
  add_totals(p, &all);
  buf_text(out, "\n== Total ==\n");
  put_amount(out, "", all.stages, "stage", "stages");
  put_amount(out, ", ", all.tasks, "task", "tasks");
  put_amount(out, ", ", all.attempts, "attempt", "attempts");
  put_amount(out, ", ", all.failed, "of them failed", "of them failed");
  buf_text(out, "\ntime: ");
  put_time(out, p->elapsed_us);
  buf_text(out, ", thereof planning ");
  put_time(out, p->planning_us);
  put_rows(out, "\nresult: ", p->rows, p->bytes);
  buf_char(out, '\n');
}

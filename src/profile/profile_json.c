/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as JSON, for programs: {"job", "stages": [{"inputs", "tasks": [[attempt,
 * …], …]}], …}; docs/explain.md lists the names. Fills stand in the inputs that read
 * them.
 * Thread: any.
 */
#include "profile/profile.h"

#include "base/error.h"

#include <inttypes.h>
#include <utlist.h>

static void put_string(buf *out, const char *text) {
  buf_char(out, '"');
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      buf_char(out, '\\');
    }
    if (c < 0x20) {
      buf_printf(out, "\\u%04x", (unsigned)c);
    } else {
      buf_char(out, *text);
    }
  }
  buf_char(out, '"');
}

static void put_text(buf *out, const char *key, const char *text) {
  buf_printf(out, ",\"%s\":", key);
  if (text == NULL) {
    buf_text(out, "null");
  } else {
    put_string(out, text);
  }
}

static void put_number(buf *out, const char *key, uint64_t number) {
  buf_printf(out, ",\"%s\":%" PRIu64, key, number);
}

static void put_bool(buf *out, const char *key, bool value) {
  buf_printf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void put_notes(buf *out, const char *key, const profile_note *notes) {
  const profile_note *note = NULL;
  buf_printf(out, ",\"%s\":[", key);
  LL_FOREACH(notes, note) {
    put_string(out, note->text);
    buf_text(out, note->next == NULL ? "" : ",");
  }
  buf_char(out, ']');
}

static void put_amounts(buf *out, const hf_amounts *a) {
  const struct {
    const char *key;
    uint64_t value;
  } rows[] = {{"wait_us", a->wait_us},
              {"run_us", a->run_us},
              {"source_rows", a->source_rows},
              {"source_bytes", a->source_bytes},
              {"block_rows", a->block_rows},
              {"block_bytes", a->block_bytes},
              {"held_rows", a->held_rows},
              {"held_blocks", a->held_blocks},
              {"skipped_blocks", a->skipped_blocks},
              {"rows", a->rows},
              {"bytes", a->bytes},
              {"spill_bytes", a->spill_bytes},
              {"peak_memory_bytes", a->peak_memory_bytes}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    put_number(out, rows[i].key, rows[i].value);
  }
}

static void put_attempt(buf *out, const profile_attempt *attempt) {
  static const char *const ends[] = {
      [ATTEMPT_IS_OPEN] = "open", [ATTEMPT_IS_FINISHED] = "finished", [ATTEMPT_HAS_FAILED] = "failed"};
  buf_printf(out, "{\"attempt\":%" PRIu32, attempt->number);
  put_text(out, "end", ends[attempt->end]);
  put_text(out, "error", attempt->end == ATTEMPT_HAS_FAILED ? hf_status_name(attempt->code) : NULL);
  put_text(out, "locality", "local");
  put_amounts(out, &attempt->amounts);
  buf_char(out, '}');
}

static void put_tasks(buf *out, const profile_stage *stage) {
  buf_text(out, ",\"tasks\":[");
  for (uint32_t t = 0; t < stage->n_tasks; t++) {
    buf_text(out, t == 0 ? "[" : ",[");
    const profile_attempt *attempt = NULL;
    LL_FOREACH(stage->tasks == NULL ? NULL : stage->tasks[t].attempts, attempt) {
      put_attempt(out, attempt);
      buf_text(out, attempt->next == NULL ? "" : ",");
    }
    buf_char(out, ']');
  }
  buf_char(out, ']');
}

static void put_input(buf *out, const profile_input *input) {
  buf_printf(out, "{\"stage\":%" PRIu32, input->stage);
  put_text(out, "what", input->text);
  put_text(out, "how", input->how[0] == ',' ? input->how + 2 : input->how);
  buf_text(out, ",\"fill\":");
  if (input->fill == NULL) {
    buf_text(out, "null");
  } else {
    profile_put_json(input->fill, out);
  }
  buf_char(out, '}');
}

static void put_after(buf *out, const profile_stage *stage) {
  buf_text(out, ",\"after\":[");
  for (size_t i = 0; i < stage->n_after; i++) {
    buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ",", stage->after[i]);
  }
  buf_char(out, ']');
  put_text(out, "awaits", stage->n_after > 0 ? stage->awaits : NULL);
}

static void put_stage(buf *out, const profile_stage *stage) {
  profile_sum sum = profile_sum_stage(stage);
  buf_printf(out, "{\"stage\":%" PRIu32, stage->id);
  put_text(out, "what", stage->what);
  put_text(out, "why_one_task", stage->n_tasks == 1 ? stage->why_one : NULL);
  put_text(out, "sql", stage->sql);
  put_number(out, "n_tasks", stage->n_tasks);
  put_number(out, "partitions", stage->partitions);
  put_number(out, "reads", stage->n_reads);
  put_bool(out, "ordered", stage->ordered);
  put_after(out, stage);
  put_number(out, "attempts", sum.n_attempts);
  put_number(out, "failed_attempts", sum.n_failed);
  put_number(out, "elapsed_us", stage->ended_us - stage->began_us);
  put_amounts(out, &sum.amounts);
  put_notes(out, "notes", stage->notes);
  buf_text(out, ",\"inputs\":[");
  for (size_t i = 0; i < stage->n_inputs; i++) {
    buf_text(out, i == 0 ? "" : ",");
    put_input(out, &stage->inputs[i]);
  }
  buf_char(out, ']');
  put_tasks(out, stage);
  buf_char(out, '}');
}

void profile_put_json(const job_profile *p, buf *out) {
  if (p == NULL) {
    buf_text(out, "null");
    return;
  }
  buf_printf(out, "{\"job\":%" PRIu64, p->job);
  put_text(out, "held", p->held);
  put_text(out, "error", p->is_over && p->code != HF_OK ? hf_status_name(p->code) : NULL);
  put_number(out, "planning_us", p->planning_us);
  put_number(out, "elapsed_us", p->elapsed_us);
  put_number(out, "result_rows", p->rows);
  put_number(out, "result_bytes", p->bytes);
  put_bool(out, "complete", !p->is_incomplete);
  put_notes(out, "notes", p->notes);
  put_notes(out, "inlined", p->inlined);
  buf_text(out, ",\"stages\":[");
  const profile_stage *stage = NULL;
  const char *comma = "";
  LL_FOREACH(p->stages, stage) {
    if (!stage->is_dropped) {
      buf_text(out, comma);
      put_stage(out, stage);
      comma = ",";
    }
  }
  buf_text(out, "]}");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `holdfast verify` prints: a line a query, the last two lines, and the same
 * as JSON. Its words are read by scripts: docs/verify.md promises them.
 * Thread: the main thread.
 */
#include "verify_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const result_names[] = {
    [VERIFY_PASSED] = "passed", [VERIFY_FAILED] = "failed", [VERIFY_SKIPPED] = "skipped"};

static const char *fallback_of(const verify_outcome *o) {
  return o->profile.fallback[0] != '\0' ? o->profile.fallback : "no stage had two tasks with rows";
}

static void write_buf(output *o, buf *line) {
  output_bytes(o, buf_cstr(line), line->length);
  output_flush(o);
  buf_reset(line);
}

/* ----------------------------------------------------------------------- text */

static void append_spread(buf *line, const verify_outcome *o) {
  if (verify_is_distributed(o)) {
    buf_printf(line, "distributed: %" PRIu64 " tasks, %" PRIu64 " stages", o->profile.widest_tasks,
               o->profile.stages_run);
  } else {
    buf_printf(line, "fell back: %s", fallback_of(o));
  }
}

static void append_indented(buf *line, const char *text) {
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    buf_text(line, "\n    ");
    buf_append(line, text, length);
    text += length + (text[length] == '\n' ? 1 : 0);
  }
}

static void append_text(buf *line, const verify_line *of) {
  const verify_outcome *o = of->outcome;
  buf_printf(line, "%-8s ", of->name);
  if (of->overlay != NULL) {
    buf_printf(line, "%-20s ", of->overlay->name);
  }
  buf_printf(line, "%-7s", result_names[o->result]);
  if (o->ran) {
    buf_printf(line, "  %" PRIu64 " %s, ", o->rows, o->rows == 1 ? "row" : "rows");
    append_spread(line, o);
    buf_printf(line, ", %.1f ms single-node, %.1f ms", (double)o->single_us / 1e3,
               (double)o->session_us / 1e3);
  }
  if (o->report.tied_rows > 0) {
    buf_printf(line, ", ties at the limit: %" PRIu64 " rows not compared", o->report.tied_rows);
  }
  if (o->reason.length > 0) {
    buf_text(line, o->ran ? "\n    " : "  ");
    buf_text(line, buf_cstr(&o->reason));
  }
  if (o->result == VERIFY_FAILED && o->report.differences != NULL) {
    append_indented(line, o->report.differences);
  }
  buf_char(line, '\n');
}

/* ----------------------------------------------------------------------- JSON */

static void append_key(buf *line, const char *key, const char *text) {
  buf_printf(line, ", \"%s\": ", key);
  if (text == NULL) {
    buf_text(line, "null");
  } else {
    json_string(line, text, strlen(text));
  }
}

static void append_json(buf *line, const verify_line *of) {
  const verify_outcome *o = of->outcome;
  bool distributed = verify_is_distributed(o);
  buf_text(line, "{\"name\": ");
  json_string(line, of->name, strlen(of->name));
  append_key(line, "overlay", of->overlay == NULL ? NULL : of->overlay->name);
  append_key(line, "result", result_names[o->result]);
  buf_printf(line,
             ", \"rows\": %" PRIu64 ", \"distributed\": %s, \"tasks\": %" PRIu64 ", \"stages\": %" PRIu64
             ", \"order_columns\": %zu, \"tied_rows\": %" PRIu64
             ", \"single_ms\": %.3f, \"distributed_ms\": %.3f",
             o->rows, distributed ? "true" : "false", o->profile.widest_tasks, o->profile.stages_run,
             o->order_columns, o->report.tied_rows, (double)o->single_us / 1e3, (double)o->session_us / 1e3);
  append_key(line, "fallback", o->ran && !distributed ? fallback_of(o) : NULL);
  append_key(line, "reason", o->reason.length > 0 ? buf_cstr(&o->reason) : NULL);
  append_key(line, "differences", o->result == VERIFY_FAILED ? o->report.differences : NULL);
  if (of->sql != NULL) {
    append_key(line, "sql", of->sql);
    append_key(line, "case", of->shrunk);
  }
  buf_text(line, "}\n");
}

/* ----------------------------------------------------------------------- door */

static void count_reason(verify_totals *totals, const verify_overlay_totals *overlay, const char *what,
                         const char *reason) {
  char text[sizeof totals->reasons[0].text];
  snprintf(text, sizeof text, "%s%s%s%s", overlay == NULL ? "" : overlay->name, overlay == NULL ? "" : " ",
           what, reason);
  for (size_t i = 0; i < totals->n_reasons; i++) {
    if (strcmp(totals->reasons[i].text, text) == 0) {
      totals->reasons[i].n++;
      return;
    }
  }
  if (totals->n_reasons < VERIFY_REASONS_MOST) {
    verify_reason *added = &totals->reasons[totals->n_reasons++];
    memcpy(added->text, text, sizeof text);
    added->n = 1;
  }
}

static void count(verify_reporter *r, const verify_line *line) {
  const verify_outcome *o = line->outcome;
  verify_totals *totals = &r->totals;
  totals->passed += o->result == VERIFY_PASSED ? 1 : 0;
  totals->failed += o->result == VERIFY_FAILED ? 1 : 0;
  totals->skipped += o->result == VERIFY_SKIPPED ? 1 : 0;
  if (o->ran) {
    size_t *spread = verify_is_distributed(o) ? &totals->distributed : &totals->fell_back;
    (*spread)++;
  }
  if (o->ran && !verify_is_distributed(o)) {
    count_reason(totals, line->overlay, "fell back: ", fallback_of(o));
  } else if (!o->ran && o->result == VERIFY_PASSED) {
    count_reason(totals, line->overlay, "", buf_cstr(&o->reason));
  } else if (o->result == VERIFY_SKIPPED && r->is_brief) {
    count_reason(totals, line->overlay, "skipped: ", buf_cstr(&o->reason));
  }
}

static void count_overlay(verify_overlay_totals *t, const verify_outcome *o) {
  t->differed += o->result == VERIFY_FAILED ? 1 : 0;
  t->rejected += o->result != VERIFY_FAILED && !o->ran ? 1 : 0;
  t->distributed += o->ran && verify_is_distributed(o) ? 1 : 0;
  t->fell_back += o->ran && !verify_is_distributed(o) ? 1 : 0;
}

void verify_report_query(verify_reporter *r, const verify_line *line) {
  buf text = {0};
  count(r, line);
  if (line->overlay != NULL) {
    count_overlay(line->overlay, line->outcome);
  }
  if (r->json) {
    append_json(&text, line);
  } else if (!r->is_brief || line->outcome->result != VERIFY_PASSED) {
    append_text(&text, line);
    if (line->sql != NULL) {
      append_indented(&text, line->sql);
      buf_printf(&text, "\n%s", line->shrunk == NULL ? "" : line->shrunk);
    }
  }
  write_buf(r->out, &text);
}

void verify_report_skip(verify_reporter *r, const char *name, const char *why) {
  (void)name;
  count_reason(&r->totals, NULL, "files not run: ", why);
}

void verify_report_reasons(const verify_reporter *r) {
  const verify_totals *t = &r->totals;
  buf line = {0};
  for (size_t i = 0; i < t->n_reasons; i++) {
    buf_printf(&line, "%6zu %s\n", t->reasons[i].n, t->reasons[i].text);
  }
  write_buf(r->out, &line);
}

static void append_overlays(buf *line, const verify_reporter *r) {
  for (size_t i = 0; i < r->n_overlays; i++) {
    const verify_overlay_totals *t = &r->overlays[i];
    if (r->json) {
      buf_text(line, "{\"overlay\": ");
      json_string(line, t->name, strlen(t->name));
    } else {
      buf_printf(line, "%-20s", t->name);
    }
    buf_printf(line,
               r->json ? ", \"distributed\": %zu, \"fell_back\": %zu, \"rejected\": %zu, \"differed\": %zu}\n"
                       : " distributed %zu, fell back %zu, rejected %zu, differed %zu\n",
               t->distributed, t->fell_back, t->rejected, t->differed);
  }
}

void verify_report_totals(const verify_reporter *r) {
  const verify_totals *t = &r->totals;
  buf line = {0};
  append_overlays(&line, r);
  if (r->json) {
    buf_printf(&line, "{\"distributed\": %zu, \"fell_back\": %zu, \"passed\": %zu, ", t->distributed,
               t->fell_back, t->passed);
    buf_printf(&line, "\"failed\": %zu, \"skipped\": %zu}\n", t->failed, t->skipped);
  } else {
    buf_printf(&line, "distributed %zu, fell back %zu\n", t->distributed, t->fell_back);
    buf_printf(&line, "%zu passed, %zu failed, %zu skipped\n", t->passed, t->failed, t->skipped);
  }
  write_buf(r->out, &line);
}

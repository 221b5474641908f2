/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard error: errors with the place in the SQL text, the timing line, the
 * progress bar. Each message is one write, so that lines of several processes
 * do not mix.
 * Thread: the main thread.
 */
#include "output.h"

#include "base/clock.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A longer line of SQL is cut to a window around the position. */
enum { SQL_COLUMNS_MAX = 100, PROGRESS_AFTER_MS = 500, PROGRESS_EVERY_MS = 100 };

static void write_message(buf *b) {
  output o = {.fd = STDERR_FILENO};
  output_text(&o, buf_cstr(b));
  output_flush(&o);
  output_reset(&o);
  buf_reset(b);
}

void number_grouped(buf *out, uint64_t number) {
  if (number >= 1000) {
    number_grouped(out, number / 1000);
    buf_printf(out, ",%03u", (unsigned)(number % 1000));
  } else {
    buf_printf(out, "%u", (unsigned)number);
  }
}

/* ----------------------------------------------------------------- errors */

/* Moves `at` to the start of a UTF-8 character at or before it. */
static size_t character_start(const char *text, size_t at) {
  while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) {
    at--;
  }
  return at;
}

/* Appends the line of `sql` that holds byte `position`, and a caret below it. */
static void append_line(buf *b, const char *sql, size_t position, const script_place *place) {
  size_t start = position, end = position;
  while (start > 0 && sql[start - 1] != '\n') {
    start--;
  }
  end += strcspn(sql + position, "\r\n");
  size_t line = place->line;
  for (size_t i = 0; i < start; i++) {
    line += sql[i] == '\n' ? 1 : 0;
  }
  bool cut_left = position - start > SQL_COLUMNS_MAX / 2 && end - start > SQL_COLUMNS_MAX;
  if (cut_left) {
    start = character_start(sql, position - SQL_COLUMNS_MAX / 2);
  }
  bool cut_right = end - start > SQL_COLUMNS_MAX;
  if (cut_right) {
    end = character_start(sql, start + SQL_COLUMNS_MAX);
  }
  buf label = {0};
  if (place->file != NULL) {
    buf_printf(&label, "  %s:%zu: %s", place->file, line, cut_left ? "…" : "");
  } else {
    buf_printf(&label, "  line %zu: %s", line, cut_left ? "…" : "");
  }
  buf_text(b, buf_cstr(&label));
  buf_append(b, sql + start, end - start);
  buf_text(b, cut_right ? "…\n" : "\n");
  size_t columns = display_width(buf_cstr(&label), label.length);
  for (size_t i = 0; i < columns; i++) {
    buf_char(b, ' ');
  }
  for (size_t i = start; i < position; i++) {
    if (sql[i] == '\t') {
      buf_char(b, '\t');
    }
  }
  columns = display_width(sql + start, position - start);
  for (size_t i = 0; i < columns; i++) {
    buf_char(b, ' ');
  }
  buf_text(b, "^\n");
  buf_reset(&label);
}

static void append_origin(buf *b, const hf_error *e) {
  buf_printf(b, "  in: job %llu", (unsigned long long)e->job);
  if (e->stage != 0) {
    buf_printf(b, ", stage %u", e->stage);
  }
  if (e->task != 0) {
    buf_printf(b, ", task %u, attempt %u", e->task, e->attempt);
  }
  if (e->executor[0] != '\0') {
    buf_printf(b, ", executor %s", e->executor);
  }
  buf_char(b, '\n');
}

void report_error(const hf_error *error, const char *sql, const script_place *place, bool verbose) {
  const char *message = error->message != NULL ? error->message : "no details, memory is short";
  buf b = {0};
  buf_printf(&b, "error: %s: %s\n", hf_status_name(error->code), message);
  if (sql != NULL && error->position >= 0 && (uint64_t)error->position <= strlen(sql)) {
    append_line(&b, sql, (size_t)error->position, place);
  }
  if (error->hint != NULL && error->hint[0] != '\0') {
    buf_printf(&b, "  hint: %s\n", error->hint);
  }
  bool explain = verbose || error->error_class != HF_CLASS_USER;
  if (explain && error->cause != NULL && strstr(message, error->cause) == NULL) {
    buf_printf(&b, "  cause: %s\n", error->cause);
  }
  if (error->job != 0 && (verbose || error->error_class == HF_CLASS_FATAL)) {
    append_origin(&b, error);
  }
  write_message(&b);
}

/* ----------------------------------------------------------------- timing */

static void append_count(buf *b, uint64_t count, const char *what) {
  if (count > 0) {
    buf_text(b, ", ");
    number_grouped(b, count);
    buf_printf(b, " %s", what);
  }
}

void report_timing(const hf_profile *profile, uint64_t elapsed_us) {
  buf b = {0};
  buf_printf(&b, "time: %.3f s", (double)elapsed_us / 1e6);
  append_count(&b, profile->source_rows, "source rows");
  append_count(&b, profile->held_hits, profile->held_hits == 1 ? "held result hit" : "held results hit");
  append_count(&b, profile->held_fills,
               profile->held_fills == 1 ? "held result filled" : "held results filled");
  append_count(&b, profile->held_waits, "waited for");
  append_count(&b, profile->held_inline, "computed inline");
  append_count(&b, profile->held_rows, "held rows");
  append_count(&b, profile->held_blocks_skipped, "blocks skipped");
  buf_char(&b, '\n');
  write_message(&b);
}

/* --------------------------------------------------------------- progress */

void progress_begin(progress_bar *p, bool enabled) {
  *p = (progress_bar){.enabled = enabled, .started_us = clock_monotonic_us()};
}

static size_t terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return 80;
}

/* "[=====>    ]  43 %", or a walking mark while the fraction is not known. */
static void append_bar(buf *b, double fraction, uint64_t elapsed_ms) {
  enum { CELLS = 30 };
  bool known = fraction >= 0 && fraction <= 1;
  size_t done = known ? (size_t)(fraction * CELLS) : (size_t)(elapsed_ms / PROGRESS_EVERY_MS) % CELLS;
  buf_char(b, '[');
  for (size_t i = 0; i < CELLS; i++) {
    buf_char(b, i == done ? '>' : (known && i < done ? '=' : ' '));
  }
  if (known) {
    buf_printf(b, "] %3.0f %%", fraction * 100);
  } else {
    buf_text(b, "]");
  }
}

bool progress_draw(void *context, double fraction, uint64_t rows) {
  progress_bar *p = context;
  uint64_t elapsed_ms = (clock_monotonic_us() - p->started_us) / 1000;
  if (!p->enabled || elapsed_ms < PROGRESS_AFTER_MS) {
    return true;
  }
  buf line = {0};
  append_bar(&line, fraction, elapsed_ms);
  if (rows > 0) {
    buf_text(&line, "  ");
    number_grouped(&line, rows);
    buf_text(&line, " rows");
  }
  buf_printf(&line, "  %.1f s", (double)elapsed_ms / 1e3);
  size_t columns = terminal_columns();
  if (line.length >= columns && line.data != NULL) {
    line.length = columns - 1;
    line.data[line.length] = '\0';
  }
  buf message = {0};
  buf_printf(&message, "\r%s\x1b[K", buf_cstr(&line));
  write_message(&message);
  buf_reset(&line);
  p->drawn = true;
  return true;
}

void progress_end(progress_bar *p) {
  if (p->drawn) {
    buf message = {0};
    buf_text(&message, "\r\x1b[K");
    write_message(&message);
  }
  p->drawn = false;
}

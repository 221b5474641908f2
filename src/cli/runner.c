/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One statement: run it with cancel token and progress bar, write its answer in
 * the chosen format, report its error or its time.
 * Thread: the main thread.
 */
#include "sql.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  const writer_ops *ops; /* NULL: Arrow, which is no text */
} formats[] = {
    [FORMAT_TABLE] = {"table", &writer_table},
    [FORMAT_CSV] = {"csv", &writer_csv},
    [FORMAT_JSON] = {"json", &writer_json},
    [FORMAT_ARROW] = {"arrow", NULL},
};

bool sql_format_read(const char *word, sql_format *out) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (strcmp(formats[i].name, word) == 0) {
      *out = (sql_format)i;
      return true;
    }
  }
  return false;
}

const char *sql_format_name(sql_format format) {
  return formats[format].name;
}

/* A statement under way. */
typedef struct run {
  runner *runner;
  statement_kind kind;
  progress_bar bar;
  job_watch watch;
  hf_profile profile;
  job_profile *ran; /* with --profile: what it did, a reference */
  arena *memory;
  result_writer writer;
  bool no_memory; /* the writer could not go on */
} run;

static bool show_head(void *context, const schema *columns) {
  run *r = context;
  progress_end(&r->bar);
  r->no_memory =
      schema_copy(columns, r->memory, &r->writer.columns, NULL) != HF_OK || !r->writer.ops->head(&r->writer);
  return !r->no_memory;
}

static bool show_rows(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                      size_t n_rows) {
  run *r = context;
  if (interrupt_pending() != 0) {
    return false;
  }
  bool more = r->writer.ops->rows(&r->writer, cells, lengths, n_rows);
  r->no_memory = !more && !r->writer.full && r->writer.out->error_number == 0;
  return more;
}

/* Whether the answer is text to be read as it is. */
static bool is_prose(statement_kind kind) {
  return kind == STATEMENT_EXPLAIN;
}

static hf_status show_text(run *r, const relation *answer, hf_error *error) {
  const writer_ops *ops = formats[r->runner->format].ops;
  r->writer = (result_writer){.ops = ops, .out = &r->runner->out, .memory = r->memory};
  if (is_prose(r->kind) && r->runner->format == FORMAT_TABLE) {
    r->writer.ops = &writer_lines;
  }
  text_sink sink = {show_head, show_rows, r};
  hf_status status = session_show(r->runner->session, answer, &r->watch, &r->profile, &sink, error);
  if (r->no_memory) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for writing the answer");
  }
  if (status != HF_OK && r->writer.full) {
    hf_error_reset(error); /* stopped by us: the writer has all that it shows */
    status = HF_OK;
  }
  if (status == HF_OK && interrupt_pending() == 0) {
    r->writer.ops->finish(&r->writer, r->profile.result_rows);
  }
  return status;
}

static hf_status show_arrow(run *r, const relation *answer, hf_error *error) {
  struct ArrowArrayStream stream;
  uint64_t rows = 0;
  memset(&stream, 0, sizeof stream);
  HF_TRY(session_collect(r->runner->session, answer, &r->watch, &r->profile, &stream, error));
  hf_status status = output_arrow(&r->runner->out, &stream, &rows, error);
  stream.release(&stream);
  return status;
}

static hf_status run_and_show(run *r, const char *sql, hf_error *error) {
  relation *answer = NULL;
  HF_TRY(session_sql(r->runner->session, sql, &r->watch, &r->profile, &answer, error));
  if (answer == NULL) {
    return HF_OK;
  }
  hf_profile first = r->profile; /* of CACHE TABLE: more telling than that of showing its answer */
  if (r->ran != NULL) {
    r->watch.profile = NULL;
  }
  hf_status status =
      r->runner->format == FORMAT_ARROW ? show_arrow(r, answer, error) : show_text(r, answer, error);
  if (first.job != 0) {
    r->profile = first;
  }
  relation_release(answer);
  return status;
}

static run_outcome conclude(run *r, hf_status status, const hf_error *error, const char *sql,
                            const script_place *place) {
  runner *owner = r->runner;
  bool written = output_flush(&owner->out);
  if (interrupt_pending() != 0) {
    output_restart(&owner->out);
    return RUN_CANCELLED;
  }
  if (!written) {
    return RUN_OUTPUT_LOST;
  }
  if (status != HF_OK) {
    report_error(error, sql, place, owner->verbose);
    return RUN_FAILED;
  }
  if (r->profile.warning[0] != '\0') {
    output warning = {.fd = STDERR_FILENO};
    output_text(&warning, "warning: ");
    output_text(&warning, r->profile.warning);
    output_text(&warning, "\n");
    output_flush(&warning);
    output_reset(&warning);
  }
  if (owner->timing) {
    report_timing(&r->profile, clock_monotonic_us() - r->bar.started_us);
  }
  return RUN_DONE;
}

/* Says what kind of statement it is; a text that cannot be read is left to the session to complain about. */
static statement_kind kind_of(const char *sql, arena *a) {
  statement head;
  memset(&head, 0, sizeof head);
  return statement_read(sql, a, &head, NULL) == HF_OK ? head.kind : STATEMENT_QUERY;
}

/* Adds a line to the file of --profile; that it cannot be written is told at the end. */
static void write_profile(run *r) {
  output *to = r->runner->profiles;
  if (r->ran != NULL) {
    buf line = {0};
    profile_put_json(r->ran, &line);
    buf_char(&line, '\n');
    output_bytes(to, line.data, line.failed ? 0 : line.length);
    output_flush(to);
    buf_reset(&line);
  }
  profile_release(r->ran);
}

run_outcome runner_run(runner *r, const char *sql, const script_place *place) {
  run now = {.runner = r, .memory = arena_new()};
  hf_error error = {0};
  hf_cancel *cancel = hf_cancel_new();
  if (now.memory == NULL || cancel == NULL) {
    error_set(&error, HF_E_OUT_OF_MEMORY, "no memory for a statement");
    report_error(&error, NULL, place, r->verbose);
    hf_error_reset(&error);
    arena_free(now.memory);
    hf_cancel_free(cancel);
    return RUN_FAILED;
  }
  now.kind = kind_of(sql, now.memory);
  run_outcome outcome = RUN_DONE;
  if (now.kind != STATEMENT_EMPTY) {
    progress_begin(&now.bar, r->progress);
    now.watch = (job_watch){.progress = progress_draw,
                            .progress_context = &now.bar,
                            .cancel = cancel,
                            .profile = r->profiles == NULL ? NULL : &now.ran};
    interrupt_watch(cancel);
    hf_status status = run_and_show(&now, sql, &error);
    interrupt_watch(NULL);
    progress_end(&now.bar);
    write_profile(&now);
    outcome = conclude(&now, status, &error, sql, place);
  }
  hf_error_reset(&error);
  hf_cancel_free(cancel);
  arena_free(now.memory);
  return outcome;
}

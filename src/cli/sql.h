/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `holdfast sql`: running one statement, reading statements from
 * text or a descriptor, the interactive shell, completion.
 * Thread: the main thread.
 */
#ifndef HF_CLI_SQL_H
#define HF_CLI_SQL_H

#include "command.h"
#include "output.h"
#include "session/session.h"

typedef enum sql_format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_ARROW } sql_format;

/* Reads table, csv, json or arrow; false for any other word. */
bool sql_format_read(const char *word, sql_format *out);
const char *sql_format_name(sql_format format);

/* What runs statements: the session, where answers go, how they look. */
typedef struct runner {
  session *session;
  output out;
  output *profiles; /* gets a JSON line for each statement that ran something; NULL: it is not wanted */
  sql_format format;
  bool timing, verbose, progress;
} runner;

typedef enum run_outcome {
  RUN_DONE,
  RUN_FAILED,     /* an error was reported */
  RUN_CANCELLED,  /* by a signal */
  RUN_OUTPUT_LOST /* standard output failed: runner.out.error_number */
} run_outcome;

/* Runs one statement, prints its answer and flushes it; errors are reported. An empty statement does nothing. */
run_outcome runner_run(runner *r, const char *sql, const script_place *place);

/* Runs the statements of a text; the first that fails ends it. A last one needs no ';'. */
run_outcome script_run_text(runner *r, const char *text, size_t length, const char *file);
/* The same from a descriptor: each statement runs as soon as its ';' was read. */
run_outcome script_run_descriptor(runner *r, int fd, const char *file);

/* Reads and runs statements at a prompt until \q, the end of input or SIGTERM. */
run_outcome shell_run(runner *r);

/* ------------------------------------------------------------- completion */

/* Texts that may stand in place of line[start, cursor). */
typedef struct completion {
  size_t start;
  size_t n_words;
  const char **words; /* sorted, without repeats, in the arena */
} completion;

/*
 * Finds what the word before `cursor` may become: file names behind an open quote, \commands at the start, else SQL
 * keywords and the session's names. Words end with what comes next (a space, a closing quote, '/').
 */
void completion_find(session *s, const char *line, size_t cursor, arena *a, completion *out);

#endif

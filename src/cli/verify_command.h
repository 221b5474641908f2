/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `holdfast verify`: reports and scripts.
 * Thread: the main thread.
 */
#ifndef HF_CLI_VERIFY_COMMAND_H
#define HF_CLI_VERIFY_COMMAND_H

#include "command.h"
#include "output.h"
#include "verify/overlay.h"

/* ---------------------------------------------------------------- options */

#define TASKS_DEFAULT "3"
#define SF_DEFAULT "0.01"

typedef struct verify_input {
  const char *value;
  bool is_file;
} verify_input;

typedef struct verify_options {
  arena *memory;
  hf_setting *settings;
  size_t n_settings;
  verify_input *inputs;
  size_t n_inputs;
  buf allow_path;
  const char *suite, *sf, *keep;
  const char *overlay, *exchange;
  const char *slt_dir;            /* of --suite slt */
  uint64_t generate, seed, first; /* queries; 0: none */
  const char *tasks;
  bool json, has_tasks, has_threads, has_seed, is_slt;
} verify_options;

/* ----------------------------------------------------------------- reports */

enum { VERIFY_REASONS_MOST = 400 };

typedef struct verify_reason {
  char text[160];
  size_t n;
} verify_reason;

/* Counts, for the last lines. */
typedef struct verify_totals {
  size_t distributed, fell_back; /* of the queries that got an answer in parts */
  size_t passed, failed, skipped;
  verify_reason reasons[VERIFY_REASONS_MOST]; /* of falling back, and codes with which both sides failed */
  size_t n_reasons;
} verify_totals;

/* Of an overlay. */
typedef struct verify_overlay_totals {
  const char *name;
  size_t distributed, fell_back;
  size_t rejected; /* no answer to compare: both sides failed alike, or it is refused */
  size_t differed;
} verify_overlay_totals;

typedef struct verify_reporter {
  output *out;
  bool json;
  bool is_brief; /* a query that passed has no line of text */
  verify_totals totals;
  verify_overlay_totals *overlays;
  size_t n_overlays;
} verify_reporter;

typedef struct verify_line {
  const char *name;
  const char *sql;    /* of a generated query, or NULL */
  const char *shrunk; /* of one that failed: a case in SQL, or NULL */
  const verify_outcome *outcome;
  verify_overlay_totals *overlay; /* it ran under; NULL: none */
} verify_line;

/* Prints a query's line, with --json its object, and counts it. */
void verify_report_query(verify_reporter *r, const verify_line *line);
/* Counts why a file is not run. */
void verify_report_skip(verify_reporter *r, const char *name, const char *why);
/* Prints how often queries fell back, or failed on both sides, by reason. */
void verify_report_reasons(const verify_reporter *r);
/* Prints the last lines. */
void verify_report_totals(const verify_reporter *r);

/* ----------------------------------------------------------------- queries */

/* What queries are run on, and where their lines go. */
typedef struct verify_queries {
  verifier *verifier;
  overlays *overlays; /* or NULL: on the session */
  verify_reporter *report;
} verify_queries;

/* Verifies a query, under each overlay when there are some. */
void verify_each(verify_queries *q, const char *name, const char *sql);
/* Makes a view over a file on both sides. */
hf_status verify_make_view(verifier *v, const char *name, const char *path, hf_error *error);

/* Statements of -c and -f. */
typedef struct verify_script {
  verify_queries *queries;
  size_t n_commands; /* -c so far, for names */
} verify_script;

/* Runs the statements of a text: queries are verified, what makes views runs on both sides. False: an error was
 * reported, or a signal came. `file` NULL: of -c. */
bool verify_script_run(verify_script *s, const char *text, size_t length, const char *file);

/* Generated queries number `first` to `first + count` of a seed, under the overlays by turns. */
typedef struct verify_generation {
  verify_queries *queries;
  const char *dir;
  const char *options;                        /* that are needed to have a query again */
  hf_status (*reopen_witness)(void *context); /* after an error that it does not survive */
  void *context;
  uint64_t seed, first, count;
} verify_generation;

hf_status verify_generation_run(const verify_generation *run, hf_error *error);

#endif

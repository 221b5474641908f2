/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `holdfast verify`: reports and scripts.
 * Thread: the main thread.
 */
#ifndef HF_CLI_VERIFY_COMMAND_H
#define HF_CLI_VERIFY_COMMAND_H

#include "output.h"
#include "verify/verify.h"

/* Counts, for the last lines. */
enum { VERIFY_REASONS_MOST = 60 };

typedef struct verify_reason {
  char text[160];
  size_t n;
} verify_reason;

typedef struct verify_totals {
  size_t distributed, fell_back; /* of the queries that the session answered */
  size_t passed, failed, skipped;
  verify_reason reasons[VERIFY_REASONS_MOST]; /* of falling back, and codes with which both sides failed */
  size_t n_reasons;
} verify_totals;

/* Prints a query's line, with --json its object, and counts it. */
void verify_report_query(output *o, bool json, const char *name, const verify_outcome *outcome,
                         verify_totals *totals);
typedef struct verify_generated {
  const char *name, *sql;
  const char *shrunk; /* of a failure: a case in SQL, or NULL */
  const verify_outcome *outcome;
} verify_generated;

/* The same of a generated query: one that passed has no line of text. */
void verify_report_generated(output *o, bool json, const verify_generated *query, verify_totals *totals);
/* Prints how often a query fell back, or failed on both sides, by reason. */
void verify_report_reasons(output *o, const verify_totals *totals);
/* Prints the last lines. */
void verify_report_totals(output *o, bool json, const verify_totals *totals);

/* Statements of -c and -f. */
typedef struct verify_script {
  verifier *verifier;
  output *out;
  bool json;
  size_t n_commands; /* -c so far, for names */
  verify_totals totals;
} verify_script;

/* Runs the statements of a text: queries are verified, what makes views runs on both sides. False: an error was
 * reported, or a signal came. `file` NULL: of -c. */
bool verify_script_run(verify_script *s, const char *text, size_t length, const char *file);
/* Makes a view over a file on both sides. */
hf_status verify_make_view(verifier *v, const char *name, const char *path, hf_error *error);

/* Generated queries number `first` to `first + count` of a seed. */
typedef struct verify_generation {
  verifier *verifier;
  output *out;
  verify_totals *totals;
  const char *dir, *tasks;
  hf_status (*reopen_witness)(void *context); /* after an error that it does not survive */
  void *context;
  uint64_t seed, first, count;
  bool json;
} verify_generation;

hf_status verify_generation_run(const verify_generation *run, hf_error *error);

#endif

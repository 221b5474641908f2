/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case of planning: a temporary directory with files, a planner, plain DuckDB
 * over those files, a catalogue of sources, and names. In SQL, @ stands for the
 * directory. Everything that is not expected to fail fails the
 * test.
 */
#ifndef HF_TESTS_PLAN_CASE_H
#define HF_TESTS_PLAN_CASE_H

#include "plan/lower.h"
#include "support/oracle.h"

enum { PLAN_CASE_NAMES = 16, PLAN_CASE_SOURCES = 256 };

typedef struct plan_case {
  char dir[64];
  arena *memory;
  engine *planner;
  oracle *plain;
  source_catalog *sources;
  size_t n_names;
  const char *names[PLAN_CASE_NAMES];
  relation *bound[PLAN_CASE_NAMES];
  size_t n_sources;
  const source_request *requests[PLAN_CASE_SOURCES];
  source *resolved[PLAN_CASE_SOURCES];
  held_info held; /* what every cache node is answered; zeroed: unknown */
  hf_error error; /* of the last failure that was expected */
} plan_case;

/* Setup and teardown of cmocka: *state is a plan_case. */
int plan_case_open(void **state);
int plan_case_close(void **state);

/* `sql` with @ replaced; memory of the case. */
const char *plan_text(plan_case *c, const char *sql);
/* Writes a file below the directory. */
void plan_file(plan_case *c, const char *name, const char *content);
/* Runs a statement on plain DuckDB and drops its answer. */
void plan_exec(plan_case *c, const char *sql);
relation_names plan_names(plan_case *c);
/* Makes a relation; released by the caller. */
relation *plan_relation(plan_case *c, const char *sql);
/* Gives `sql` a name, for us and, as a view, for plain DuckDB. */
void plan_name(plan_case *c, const char *name, const char *sql);
/* Gives a relation a name, for us only; retains it. */
void plan_bind(plan_case *c, const char *name, const relation *r);
/* Lowers; resolves the sources that it asks for. */
lowered plan_lowered(plan_case *c, const relation *r);
/* The text that runs whole: sources spelled out. Other inputs fail the test. */
const char *plan_whole_text(plan_case *c, const lowered *l);
/* Runs on plain DuckDB; returns "TYPE|TYPE\ncell|cell\n…", memory of the case. */
const char *plan_rows(plan_case *c, const char *sql);
/* As plan_rows, or "!message" when it fails. */
const char *plan_rows_or_error(plan_case *c, const char *sql);

#endif

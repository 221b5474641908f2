/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfast verify --generate`: random queries, in groups that share their tables;
 * those that fail are shrunk and printed as a case of their own.
 * Thread: the main thread.
 */
#include "command.h"
#include "verify_command.h"

#include "base/file.h"
#include "generate/generate.h"

#include <inttypes.h>
#include <stdio.h>

enum { QUERIES_OF_TABLES = 50, TRIES_MOST = 1500 };

/* Seeds of a run's parts, apart from each other. */
static uint64_t mixed(uint64_t seed, uint64_t part, uint64_t of) {
  return (seed * UINT64_C(1000003) + part) * 4 + of;
}

typedef struct generating {
  const verify_generation *run;
  generated_tables *tables;
  const char *dir; /* of their files */
  hf_error *error;
} generating;

/* A failure as SQL, and how to have it again. */
static void make_case(generating *g, uint64_t number, const verify_outcome *outcome, generated_query *query,
                      buf *out) {
  const verify_generation *run = g->run;
  arena *a = arena_new();
  shrink_request request = {run->queries->verifier, g->tables, g->dir, TRIES_MOST};
  hf_error error = {0};
  hf_status status = a == NULL ? HF_E_OUT_OF_MEMORY : shrink_query(&request, query, outcome, a, out, &error);
  if (status != HF_OK) {
    buf_printf(out, "-- not shrunk: %s\n", error.message == NULL ? "no memory" : error.message);
  }
  buf_printf(out, "-- again: holdfast verify --generate 1 --seed %" PRIu64 ".%" PRIu64 "%s\n", run->seed,
             number, run->options);
  hf_error_reset(&error);
  arena_free(a);
}

/* What DuckDB itself cannot do tells nothing. */
static bool is_of_duckdb(const verify_outcome *o) {
  return o->result == VERIFY_FAILED && o->single_status == HF_E_INTERNAL;
}

/* The overlays by turns, so that a query has the same one whatever the first was. */
static verify_overlay_totals *choose_overlay(generating *g, uint64_t number) {
  verify_queries *q = g->run->queries;
  if (q->overlays == NULL) {
    return NULL;
  }
  size_t chosen = (size_t)(number % overlays_count(q->overlays));
  overlays_choose(q->overlays, chosen);
  return &q->report->overlays[chosen];
}

/* Tells whether what follows needs a new witness and whole tables: one that failed with INTERNAL answers no more. */
static bool judge(generating *g, uint64_t number, generated_query *query) {
  verifier *v = g->run->queries->verifier;
  char name[60];
  const char *sql = query->sql;
  buf shrunk = {0};
  verify_outcome outcome;
  verify_overlay_totals *overlay = choose_overlay(g, number);
  snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu64, g->run->seed, number);
  v->rows_only = query->rows_only;
  verify_query(v, sql, &outcome);
  outcome.result = is_of_duckdb(&outcome) ? VERIFY_SKIPPED : outcome.result;
  if (outcome.result == VERIFY_FAILED && interrupt_pending() == 0) {
    make_case(g, number, &outcome, query, &shrunk);
  }
  if (interrupt_pending() == 0) {
    verify_line line = {name, sql, shrunk.length > 0 ? buf_cstr(&shrunk) : NULL, &outcome, overlay};
    verify_report_query(g->run->queries->report, &line);
  }
  bool is_spoilt = outcome.result == VERIFY_FAILED || outcome.single_status == HF_E_INTERNAL;
  verify_outcome_reset(&outcome);
  buf_reset(&shrunk);
  v->rows_only = false;
  return is_spoilt;
}

static hf_status verify_one(generating *g, uint64_t number, bool *is_spoilt) {
  arena *a = arena_new();
  generated_query query;
  hf_status status = a == NULL
                         ? error_set(g->error, HF_E_OUT_OF_MEMORY, "no memory for a query")
                         : generate_query(g->tables, mixed(g->run->seed, number, 1), a, &query, g->error);
  if (status == HF_OK) {
    *is_spoilt = judge(g, number, &query);
  }
  arena_free(a);
  return status;
}

/* Rows that shrinking left out are missing for no other query: tables are written anew for the next group. */
static hf_status write_tables(generating *g, uint64_t first) {
  generated_tables_free(g->tables);
  g->tables = NULL;
  HF_TRY(generated_tables_new(mixed(g->run->seed, first / QUERIES_OF_TABLES, 0), &g->tables, g->error));
  return generated_tables_write(g->tables, g->run->queries->verifier, g->dir, g->error);
}

static hf_status verify_group(generating *g, uint64_t first, uint64_t end) {
  const verify_generation *run = g->run;
  hf_status status = write_tables(g, first);
  for (uint64_t number = first; number < end && status == HF_OK && interrupt_pending() == 0; number++) {
    bool is_spoilt = false;
    status = verify_one(g, number, &is_spoilt);
    if (is_spoilt && status == HF_OK && number + 1 < end) {
      status = run->reopen_witness(run->context);
      status = status != HF_OK ? status : write_tables(g, first);
    }
  }
  if (g->tables != NULL) {
    generated_tables_drop(g->tables, run->queries->verifier);
  }
  generated_tables_free(g->tables);
  g->tables = NULL;
  file_remove_tree(g->dir, NULL);
  return status;
}

hf_status verify_generation_run(const verify_generation *run, hf_error *error) {
  arena *a = arena_new();
  generating g = {
      .run = run, .error = error, .dir = a == NULL ? NULL : arena_printf(a, "%s/tables", run->dir)};
  hf_status status =
      g.dir == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to generate queries") : HF_OK;
  uint64_t end = run->first + run->count;
  for (uint64_t first = run->first; first < end && status == HF_OK && interrupt_pending() == 0;) {
    uint64_t next = (first / QUERIES_OF_TABLES + 1) * QUERIES_OF_TABLES;
    status = verify_group(&g, first, next < end ? next : end);
    first = next;
  }
  arena_free(a);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfast verify --generate`: random queries, in groups that share their tables;
 * those that fail are shrunk and printed as a case of their own.
 * Thread: the main thread.
 */
#include "command.h"
#include "verify_command.h"

#include "base/file.h"
#include "verify/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

static void report_case(generating *g, uint64_t number, const verify_outcome *outcome, generated_query *query,
                        arena *a) {
  const verify_generation *run = g->run;
  buf text = {0};
  shrink_request request = {run->verifier, g->tables, g->dir, TRIES_MOST};
  hf_error error = {0};
  hf_status status = run->is_shrunk ? shrink_query(&request, query, outcome, a, &text, &error) : HF_OK;
  if (status != HF_OK) {
    buf_printf(&text, "-- not shrunk: %s\n", error.message);
  }
  hf_error_reset(&error);
  buf_printf(&text, "-- again: holdfast verify --generate 1 --seed %" PRIu64 ".%" PRIu64 " --tasks %s\n",
             run->seed, number, run->tasks);
  if (!run->json) {
    output_bytes(run->out, buf_cstr(&text), text.length);
    output_flush(run->out);
  }
  buf_reset(&text);
}

static hf_status verify_one(generating *g, uint64_t number) {
  const verify_generation *run = g->run;
  arena *a = arena_new();
  generated_query query;
  char name[60];
  snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu64, run->seed, number);
  hf_status status = a == NULL ? error_set(g->error, HF_E_OUT_OF_MEMORY, "no memory for a query")
                               : generate_query(g->tables, mixed(run->seed, number, 1), a, &query, g->error);
  if (status == HF_OK) {
    verify_outcome outcome;
    run->verifier->rows_only = query.rows_only;
    verify_query(run->verifier, query.sql, &outcome);
    if (interrupt_pending() == 0) {
      verify_report_generated(run->out, run->json, name, query.sql, &outcome, run->totals);
      if (outcome.result == VERIFY_FAILED) {
        report_case(g, number, &outcome, &query, a);
      }
    }
    verify_outcome_reset(&outcome);
    run->verifier->rows_only = false;
  }
  arena_free(a);
  return status;
}

/* Rows that shrinking left out are missing for no other query: tables are written anew for the next group. */
static hf_status verify_group(generating *g, uint64_t first, uint64_t end) {
  const verify_generation *run = g->run;
  HF_TRY(generated_tables_new(mixed(run->seed, first / QUERIES_OF_TABLES, 0), &g->tables, g->error));
  hf_status status = generated_tables_write(g->tables, run->verifier, g->dir, g->error);
  for (uint64_t number = first; number < end && status == HF_OK && interrupt_pending() == 0; number++) {
    size_t failed = run->totals->failed;
    status = verify_one(g, number);
    if (run->totals->failed > failed && status == HF_OK) {
      generated_tables_free(g->tables);
      g->tables = NULL;
      status = generated_tables_new(mixed(run->seed, first / QUERIES_OF_TABLES, 0), &g->tables, g->error);
      status = status != HF_OK ? status : generated_tables_write(g->tables, run->verifier, g->dir, g->error);
    }
  }
  if (g->tables != NULL) {
    generated_tables_drop(g->tables, run->verifier);
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

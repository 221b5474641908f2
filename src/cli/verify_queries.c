/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `holdfast verify` verifies. The statements of -c and -f: queries are verified,
 * statements that make or drop views run on both sides, and those that hold a result
 * make a view of it for the single-node side. Generated queries, in groups that share
 * their tables: those that fail are shrunk and printed as a case of their own.
 * Thread: the main thread.
 */
#include "command.h"
#include "verify_command.h"

#include "base/mem.h"
#include "base/file.h"
#include "generate/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------- statements */

/* Runs a command of the session and lets its answer go. */
static hf_status run_on_session(verifier *v, const char *sql, hf_error *error) {
  relation *answer = NULL;
  job_watch watch = {.cancel = v->cancel};
  HF_TRY(session_sql(v->session, sql, &watch, NULL, &answer, error));
  relation_release(answer);
  return HF_OK;
}

static hf_status make_view_of(verifier *v, const char *name, const char *query, hf_error *error) {
  buf sql = {0};
  buf_text(&sql, "CREATE OR REPLACE VIEW ");
  buf_sql_name(&sql, name);
  buf_text(&sql, " AS ");
  buf_text(&sql, query);
  hf_status status = sql.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a view")
                                : engine_execute(witness_engine(v->witness), buf_cstr(&sql), error);
  buf_reset(&sql);
  return status;
}

hf_status verify_make_view(verifier *v, const char *name, const char *path, hf_error *error) {
  buf query = {0};
  buf_text(&query, "FROM ");
  buf_sql_string(&query, path);
  hf_status status = query.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a view")
                                  : verify_view(v, name, buf_cstr(&query), error);
  if (status == HF_OK) {
    status = make_view_of(v, name, buf_cstr(&query), error);
  }
  buf_reset(&query);
  return status;
}

/* The harness has names, and nothing else that a statement could change. */
static hf_status run_on_side(verifier *v, const statement *head, hf_error *error) {
  bool names_query = head->kind == STATEMENT_CREATE_VIEW || head->kind == STATEMENT_CACHE_TABLE;
  if (names_query && head->query != NULL) {
    return verify_view(v, head->name, head->query, error);
  }
  if (head->kind == STATEMENT_DROP_VIEW) {
    verify_drop(v, head->name);
    return HF_OK;
  }
  error_set(error, HF_E_STATEMENT_REFUSED, "overlays know queries and views only");
  error_hint(error, "leave the statement out, or --overlay and --exchange");
  return HF_E_STATEMENT_REFUSED;
}

/* Whatever is no query: on the session first, which knows what it accepts. */
static hf_status run_command(verifier *v, const statement *head, const char *sql, hf_error *error) {
  if (head->kind == STATEMENT_SET || head->kind == STATEMENT_RESET) {
    error_set(error, HF_E_STATEMENT_REFUSED, "verify compares under the settings it starts with: %s",
              head->name);
    error_hint(error, "leave SET and RESET out of what is verified");
    return HF_E_STATEMENT_REFUSED;
  }
  HF_TRY(v->side != NULL ? run_on_side(v, head, error) : run_on_session(v, sql, error));
  if (head->kind == STATEMENT_CREATE_VIEW || head->kind == STATEMENT_DROP_VIEW) {
    return engine_execute(witness_engine(v->witness), sql, error);
  }
  bool holds_query = head->kind == STATEMENT_CACHE_TABLE && head->query != NULL;
  return holds_query ? make_view_of(v, head->name, head->query, error) : HF_OK;
}

static void verify_under(verify_queries *q, const char *name, const char *sql,
                         verify_overlay_totals *overlay) {
  verify_outcome outcome;
  verify_query(q->verifier, sql, &outcome);
  if (interrupt_pending() == 0) {
    verify_line line = {.name = name, .outcome = &outcome, .overlay = overlay};
    verify_report_query(q->report, &line);
  }
  verify_outcome_reset(&outcome);
}

void verify_each(verify_queries *q, const char *name, const char *sql) {
  if (q->overlays == NULL) {
    verify_under(q, name, sql, NULL);
    return;
  }
  for (size_t i = 0; i < overlays_count(q->overlays) && interrupt_pending() == 0; i++) {
    overlays_choose(q->overlays, i);
    verify_under(q, name, sql, &q->report->overlays[i]);
  }
}

static const char *name_of(verify_script *s, const script_place *place, arena *a) {
  if (place->file == NULL) {
    return arena_printf(a, "query %zu", ++s->n_commands);
  }
  const char *slash = strrchr(place->file, '/');
  return arena_printf(a, "%s:%zu", slash == NULL ? place->file : slash + 1, place->line);
}

/* `sql` has no ';' at its end. */
static hf_status run_statement(verify_script *s, const char *sql, const script_place *place, arena *a,
                               hf_error *error) {
  statement head;
  memset(&head, 0, sizeof head);
  hf_status status = statement_read(sql, a, &head, error);
  if (status != HF_OK || head.kind == STATEMENT_QUERY) { /* what cannot be read is for both sides to refuse */
    hf_error_reset(error);
    const char *name = name_of(s, place, a);
    if (name == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a statement");
    }
    verify_each(s->queries, name, sql);
    return HF_OK;
  }
  return head.kind == STATEMENT_EMPTY ? HF_OK : run_command(s->queries->verifier, &head, sql, error);
}

/* Runs text[0, length). */
static bool run_part(verify_script *s, const char *text, size_t length, script_place *place) {
  size_t blank = 0;
  while (blank < length && strchr(" \t\r\n", text[blank]) != NULL) {
    place->line += text[blank++] == '\n' ? 1 : 0;
  }
  size_t end = length;
  while (end > blank && strchr("; \t\r\n", text[end - 1]) != NULL) {
    end--;
  }
  hf_error error = {0};
  arena *a = arena_new();
  char *sql = a == NULL ? NULL : arena_strndup(a, text + blank, end - blank);
  hf_status status = sql == NULL ? error_set(&error, HF_E_OUT_OF_MEMORY, "no memory for a statement")
                                 : run_statement(s, sql, place, a, &error);
  if (status != HF_OK && interrupt_pending() == 0) {
    report_error(&error, sql, place, false);
  }
  for (size_t i = blank; i < length; i++) {
    place->line += text[i] == '\n' ? 1 : 0;
  }
  hf_error_reset(&error);
  arena_free(a);
  return status == HF_OK && interrupt_pending() == 0;
}

bool verify_script_run(verify_script *s, const char *text, size_t length, const char *file) {
  script_place place = {file, 1};
  while (length > 0) {
    size_t end = statement_end(text, length);
    end = end == 0 ? length : end;
    if (!run_part(s, text, end, &place)) {
      return false;
    }
    text += end;
    length -= end;
  }
  return true;
}

/* -------------------------------------------------------- generated queries */

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

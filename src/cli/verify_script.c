/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements of -c and -f: queries are verified; statements that make or drop
 * views run on both sides, and those that hold a result make a view of it for the
 * single-node side.
 * Thread: the main thread.
 */
#include "command.h"
#include "verify_command.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

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

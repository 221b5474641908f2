/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: what DuckDB says of a text without running it. Parsing as JSON,
 * binding, the optimised plan as JSON, EXPLAIN. What hf_scan stands for
 * meanwhile is in scan.c.
 * Thread: the caller's, with a stack of THREAD_PLANNING_STACK_BYTES.
 */
#include "engine_internal.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

/*
 * For json_serialize_plan: without these the plan has operators and functions that have no SQL, or self-joins on row
 * numbers that hf_scan has not. They hold for the whole instance, so they are set and reset around.
 */
#define PLANNING_RULES                                                                         \
  "compressed_materialization, column_lifetime, build_side_probe_side, late_materialization, " \
  "top_n_window_elimination, join_filter_pushdown"

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan a statement");
}

/* Copies a VARCHAR of the first row into the arena; "" when there is no row, or NULL in it. */
static hf_status first_text(duckdb_result *result, idx_t number, arena *a, const char **out,
                            hf_error *error) {
  duckdb_data_chunk chunk = duckdb_fetch_chunk(*result);
  char *text = NULL;
  if (chunk == NULL || duckdb_data_chunk_get_size(chunk) == 0) {
    text = arena_strdup(a, "");
  } else {
    duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, number);
    uint64_t *validity = duckdb_vector_get_validity(vector);
    duckdb_string_t *cell = duckdb_vector_get_data(vector);
    text = validity != NULL && !duckdb_validity_row_is_valid(validity, 0)
               ? arena_strdup(a, "")
               : arena_strndup(a, duckdb_string_t_data(cell), duckdb_string_t_length(*cell));
  }
  duckdb_destroy_data_chunk(&chunk);
  *out = text;
  return text == NULL ? no_memory(error) : HF_OK;
}

hf_status engine_use_rules(engine *e, engine_rules wanted, hf_error *error) {
  static const char *const statements[] = {
      [RULES_ALL] = "SET disabled_optimizers = ''",
      [RULES_PLANNING] = "SET disabled_optimizers = '" PLANNING_RULES "'",
      [RULES_UNFOLDED] = "SET disabled_optimizers = '" PLANNING_RULES ", expression_rewriter'",
      [RULES_UNPUSHED] = "SET disabled_optimizers = 'filter_pushdown, join_filter_pushdown'",
  };
  if (e->rules == wanted) {
    return HF_OK;
  }
  HF_TRY(statement_run(e->main, statements[wanted], error));
  e->rules = wanted;
  return HF_OK;
}

/* Returns the connection kept in *at, which it makes and prepares with a pragma at first. */
static hf_status use_connection(engine *e, duckdb_connection *at, const char *pragma, hf_error *error) {
  if (*at != NULL) {
    return HF_OK;
  }
  duckdb_connection made = NULL;
  HF_TRY(statement_connect(e, &made, error));
  hf_status status = statement_run(made, pragma, error);
  if (status != HF_OK) {
    duckdb_disconnect(&made);
    return status;
  }
  *at = made;
  return HF_OK;
}

/* ----------------------------------------------------------------------- parse */

static bool is_error_object(const char *json) {
  return strncmp(json, "{\"error\":true", strlen("{\"error\":true")) == 0;
}

/* Runs the prepared parse of one text. */
static hf_status run_parse(engine *e, const char *sql, arena *a, const char **json, hf_error *error) {
  if (e->parsing == NULL &&
      duckdb_prepare(e->main, "SELECT json_serialize_sql($1::VARCHAR)", &e->parsing) != DuckDBSuccess) {
    hf_status status = failure_set(error, duckdb_prepare_error(e->parsing), 0);
    duckdb_destroy_prepare(&e->parsing);
    return status;
  }
  if (duckdb_bind_varchar(e->parsing, 1, sql) !=
      DuckDBSuccess) { /* else the text before this one is parsed again */
    return error_set(error, HF_E_SYNTAX, "the text is not UTF-8");
  }
  duckdb_result result = {0};
  hf_status status = duckdb_execute_prepared(e->parsing, &result) == DuckDBSuccess
                         ? first_text(&result, 0, a, json, error)
                         : failure_set(error, duckdb_result_error(&result), 0);
  duckdb_destroy_result(&result);
  return status;
}

hf_status engine_parse(engine *e, const char *sql, arena *a, const char **json, hf_error *error) {
  const char *text = NULL;
  HF_TRY(statement_begin(e, e->main, error));
  hf_status status = run_parse(e, sql, a, &text, error);
  statement_finish(e);
  HF_TRY(status);
  if (is_error_object(text)) {
    return failure_set_json(error, text);
  }
  *json = text;
  return HF_OK;
}

void engine_set_scans(engine *e, const engine_scan *scans, size_t n_scans) {
  e->scans = scans;
  e->n_scans = n_scans;
}

/* -------------------------------------------------------------------- describe */

static hf_status check_query(duckdb_prepared_statement prepared, hf_error *error) {
  if (duckdb_prepared_statement_type(prepared) != DUCKDB_STATEMENT_TYPE_SELECT) {
    return error_set(error, HF_E_STATEMENT_REFUSED, "the statement is not a query");
  }
  if (duckdb_nparams(prepared) > 0) {
    error_set(error, HF_E_BIND, "the query has parameters, and no values are given for them: %llu",
              (unsigned long long)duckdb_nparams(prepared));
    error_hint(error, "write the values into the text; a question mark or $1 outside quotes is a parameter");
    return HF_E_BIND;
  }
  return HF_OK;
}

static hf_status read_column(duckdb_prepared_statement prepared, idx_t i, arena *a, column *out,
                             hf_error *error) {
  const char *name = duckdb_prepared_statement_column_name(prepared, i);
  out->name = arena_strdup(a, name == NULL ? "" : name);
  duckdb_free((void *)name);
  if (out->name == NULL) {
    return no_memory(error);
  }
  duckdb_logical_type type = duckdb_prepared_statement_column_logical_type(prepared, i);
  hf_status status = type_from_duckdb(type, a, &out->type, error);
  duckdb_destroy_logical_type(&type);
  if (status != HF_OK) {
    error_wrap(error, "column %s", out->name);
  }
  return status;
}

static hf_status read_columns(duckdb_prepared_statement prepared, arena *a, schema *out, hf_error *error) {
  HF_TRY(check_query(prepared, error));
  size_t n = (size_t)duckdb_prepared_statement_column_count(prepared);
  column *columns = arena_array(a, n, sizeof *columns);
  if (columns == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(read_column(prepared, i, a, &columns[i], error));
  }
  *out = (schema){.n_columns = n, .columns = columns};
  return HF_OK;
}

/* Binds without optimising: nothing of the query is computed, not even a constant. */
hf_status engine_describe(engine *e, const char *sql, arena *a, schema *out, hf_error *error) {
  HF_TRY(use_connection(e, &e->describing, "PRAGMA disable_optimizer", error));
  HF_TRY(statement_begin(e, e->describing, error));
  duckdb_prepared_statement prepared = NULL;
  hf_status status = duckdb_prepare(e->describing, sql, &prepared) == DuckDBSuccess
                         ? read_columns(prepared, a, out, error)
                         : failure_set(error, duckdb_prepare_error(prepared), 0);
  duckdb_destroy_prepare(&prepared);
  bool was_interrupted = statement_finish(e);
  return was_interrupted && status == HF_OK ? error_set(error, HF_E_CANCELLED, "the statement was cancelled")
                                            : status;
}

/* ------------------------------------------------------------------- plan JSON */

/* A statement with one answer: the first row of a column. */
typedef struct question {
  duckdb_connection on;
  const char *sql;
  idx_t number;  /* of the column */
  size_t before; /* of the text, in front of the caller's */
} question;

static hf_status ask(engine *e, const question *q, arena *a, const char **out, hf_error *error) {
  HF_TRY(statement_begin(e, q->on, error));
  duckdb_result result = {0};
  hf_status status = duckdb_query(q->on, q->sql, &result) == DuckDBSuccess
                         ? first_text(&result, q->number, a, out, error)
                         : failure_set(error, duckdb_result_error(&result), q->before);
  duckdb_destroy_result(&result);
  statement_finish(e);
  return status;
}

/* Of json_serialize_plan. `why` is set when `json` is NULL. */
typedef struct plan_answer {
  const char *json, *why;
} plan_answer;

/* One try: an error only for what has nothing to do with the plan. */
static hf_status try_plan(engine *e, const question *q, arena *a, plan_answer *out, hf_error *error) {
  const char *answer = NULL;
  hf_error found = {0};
  hf_status status = ask(e, q, a, &answer, &found);
  if (status == HF_OK && is_error_object(answer)) {
    status = failure_set_json(&found, answer);
  } else if (status == HF_OK && strncmp(answer, "{\"error\":false", strlen("{\"error\":false")) != 0) {
    status = error_set(&found, HF_E_UNSUPPORTED, "DuckDB gives no plan as JSON");
  } else if (status == HF_OK) {
    out->json = answer;
    return HF_OK;
  }
  if (status == HF_E_CANCELLED || status == HF_E_OUT_OF_MEMORY) {
    error_move(error, &found);
    return status;
  }
  out->why = arena_strdup(a, found.message == NULL ? "" : found.message);
  hf_error_reset(&found);
  return out->why == NULL ? no_memory(error) : HF_OK;
}

/*
 * With each plan copied through DuckDB's serialiser, which drops the stale types that json_serialize_plan stumbles over;
 * then without folding constants, since one of type BIT or BIGNUM makes the answer empty (its bytes are no UTF-8), and
 * without the copy, which the question itself does not survive unfolded; then without the copy only, since it is a
 * debugging pragma that may go.
 */
static hf_status try_all(engine *e, question *q, arena *a, plan_answer *out, hf_error *error) {
  const struct {
    engine_rules rules;
    duckdb_connection on;
  } tries[] = {{RULES_PLANNING, e->planning}, {RULES_UNFOLDED, e->main}, {RULES_PLANNING, e->main}};
  for (size_t i = 0; out->json == NULL && i < sizeof tries / sizeof tries[0]; i++) {
    HF_TRY(engine_use_rules(e, tries[i].rules, error));
    q->on = tries[i].on;
    HF_TRY(try_plan(e, q, a, out, error));
  }
  return HF_OK;
}

hf_status engine_plan_json(engine *e, const char *sql, arena *a, const char **json, const char **why,
                           hf_error *error) {
  plan_answer answer = {.why = ""};
  HF_TRY(use_connection(e, &e->planning, "PRAGMA verify_serializer", error));
  buf text = {0};
  buf_text(&text, "SELECT json_serialize_plan(");
  buf_sql_string(&text, sql);
  buf_text(&text, ", optimize := true, skip_null := true, skip_empty := false)");
  question q = {.sql = buf_cstr(&text)};
  hf_status status = text.failed ? no_memory(error) : try_all(e, &q, a, &answer, error);
  buf_reset(&text);
  *json = answer.json;
  *why = answer.why;
  return status;
}

/* --------------------------------------------------------------------- explain */

hf_status engine_explain(engine *e, const char *sql, arena *a, const char **text, hf_error *error) {
  static const char head[] = "EXPLAIN ";
  HF_TRY(engine_use_rules(e, RULES_ALL, error));
  buf statement = {0};
  buf_text(&statement, head);
  buf_text(&statement, sql);
  question q = {.on = e->main, .sql = buf_cstr(&statement), .number = 1, .before = strlen(head)};
  hf_status status = statement.failed ? no_memory(error) : ask(e, &q, a, text, error);
  buf_reset(&statement);
  return status;
}

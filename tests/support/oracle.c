/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle's instance: statements, limits, plans. */
#include "support/oracle_internal.h"

#include "sql/token.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

struct oracle {
  duckdb_database database;
  duckdb_connection connection;
  unsigned limit_seconds;
};

/* The alarm's handler can only reach what is global. */
static duckdb_connection alarmed;
static volatile sig_atomic_t is_late;

/* Processor time, not time: tests run beside others. */
static void set_alarm(unsigned seconds) {
  const struct itimerval value = {.it_value = {.tv_sec = (time_t)seconds}};
  setitimer(ITIMER_PROF, &value, NULL);
}

static void on_alarm(int signal_number) {
  (void)signal_number;
  if (is_late) {
    _exit(124); /* it does not listen to interrupts */
  }
  is_late = 1;
  duckdb_interrupt(alarmed);
  set_alarm(10);
}

static char *copy_text(const char *text) {
  return strdup(text == NULL ? "an unknown error" : text);
}

static void must_run(oracle *o, const char *sql) {
  char *error = oracle_run(o, sql);
  if (error != NULL) {
    fprintf(stderr, "oracle: %s: %s\n", sql, error);
    abort();
  }
}

oracle *oracle_open(void) {
  oracle *o = calloc(1, sizeof *o);
  duckdb_config config = NULL;
  if (o == NULL || duckdb_create_config(&config) == DuckDBError) {
    abort();
  }
  const char *extensions = getenv("HOLDFAST_EXTENSION_DIRECTORY");
  duckdb_set_config(config, "threads", "1");
  duckdb_set_config(config, "autoinstall_known_extensions", "false");
  if (extensions != NULL) {
    duckdb_set_config(config, "extension_directory", extensions);
  }
  char *error = NULL;
  if (duckdb_open_ext(NULL, &o->database, config, &error) == DuckDBError ||
      duckdb_connect(o->database, &o->connection) == DuckDBError) {
    fprintf(stderr, "oracle: %s\n", error == NULL ? "no connection" : error);
    abort();
  }
  duckdb_destroy_config(&config);
  return o;
}

void oracle_close(oracle *o) {
  if (o != NULL) {
    duckdb_disconnect(&o->connection);
    duckdb_close(&o->database);
    free(o);
  }
}

void oracle_set_limit(oracle *o, unsigned seconds) {
  o->limit_seconds = seconds;
  alarmed = o->connection;
  signal(SIGPROF, on_alarm);
}

bool oracle_is_late(const oracle *o) {
  return o->limit_seconds > 0 && is_late;
}

/* Runs under the limit; on failure the result holds the error. */
static bool run(oracle *o, const char *sql, duckdb_result *result) {
  is_late = 0;
  set_alarm(o->limit_seconds);
  bool is_right = duckdb_query(o->connection, sql, result) == DuckDBSuccess;
  set_alarm(0);
  return is_right;
}

char *oracle_run(oracle *o, const char *sql) {
  duckdb_result result;
  char *error = run(o, sql, &result) ? NULL : copy_text(duckdb_result_error(&result));
  duckdb_destroy_result(&result);
  return error;
}

char *oracle_query(oracle *o, const char *sql, size_t most, oracle_rows *out) {
  duckdb_result result;
  char *error = NULL;
  memset(out, 0, sizeof *out);
  if (!run(o, sql, &result)) {
    error = copy_text(duckdb_result_error(&result));
  } else if (!oracle_read(&result, most, out)) {
    oracle_rows_free(out);
    out->n_rows = most + 1;
  }
  duckdb_destroy_result(&result);
  return error;
}

static char *quote(const char *sql) {
  static const char head[] = "SELECT json_serialize_plan('";
  static const char tail[] = "', optimize := true, skip_null := true, skip_empty := false)";
  char *text = malloc(2 * strlen(sql) + sizeof head + sizeof tail);
  if (text == NULL) {
    abort();
  }
  memcpy(text, head, sizeof head - 1);
  char *at = text + sizeof head - 1;
  for (const char *c = sql; *c != '\0'; c++) {
    if (*c == '\'') {
      *at++ = '\'';
    }
    *at++ = *c;
  }
  memcpy(at, tail, sizeof tail);
  return text;
}

static bool divides_whole(oracle *o) {
  oracle_rows rows;
  char *error = oracle_query(o, "SELECT current_setting('integer_division')::VARCHAR", 1, &rows);
  bool is_on = error == NULL && strcmp(rows.cells[0].text, "true") == 0;
  oracle_rows_free(&rows);
  free(error);
  return is_on;
}

/* The question for a query's plan; as a planner asks it when a / b is a division of whole numbers. */
static char *question(oracle *o, const char *sql) {
  arena *a = divides_whole(o) ? arena_new() : NULL;
  const char *divided = sql;
  if (a != NULL && token_divide_whole(sql, a, &divided, NULL) != HF_OK) {
    divided = sql;
  }
  char *text = quote(divided);
  arena_free(a);
  return text;
}

#define PLANNING_RULES                                                                         \
  "compressed_materialization, column_lifetime, build_side_probe_side, late_materialization, " \
  "top_n_window_elimination, join_filter_pushdown"

char *oracle_plan(oracle *o, const char *sql, size_t *length, char **error) {
  oracle_rows rows;
  char *text = question(o, sql), *answer = NULL;
  must_run(o, "PRAGMA verify_serializer");
  must_run(o, "SET disabled_optimizers = '" PLANNING_RULES "'");
  *error = oracle_query(o, text, 1, &rows);
  if (*error == NULL && rows.cells[0].length == 0) { /* as engine_plan_json does: without folding constants */
    oracle_rows_free(&rows);
    must_run(o, "PRAGMA disable_verify_serializer");
    must_run(o, "SET disabled_optimizers = '" PLANNING_RULES ", expression_rewriter'");
    *error = oracle_query(o, text, 1, &rows);
  }
  free(text);
  bool was_late = is_late;
  if (*error != NULL) {
    free(oracle_run(o, "ROLLBACK")); /* a failure inside a transaction would refuse what follows */
  }
  must_run(o, "PRAGMA disable_verify_serializer");
  must_run(o, "SET disabled_optimizers = ''");
  is_late = was_late;
  if (*error == NULL) {
    answer = rows.cells[0].text == NULL ? strdup("") : rows.cells[0].text;
    *length = rows.cells[0].text == NULL ? 0 : rows.cells[0].length;
    rows.cells[0].text = NULL;
  }
  oracle_rows_free(&rows);
  return answer;
}

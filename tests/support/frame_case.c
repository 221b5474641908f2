/* SPDX-License-Identifier: Apache-2.0 */
/* Files, oracle and comparison; see frame_case.h. */
#include "support/frame_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- open, close */

static void plain_run(oracle *plain, const char *format, const char *dir) {
  char sql[1024];
  snprintf(sql, sizeof sql, format, dir);
  char *error = oracle_run(plain, sql);
  if (error != NULL) {
    fail_msg("oracle: %s", error);
  }
}

static hf_df *read_files(frame_case *f, const char *format, const char *name) {
  char path[160];
  const char *paths[] = {path};
  snprintf(path, sizeof path, "%s/%s.%s", f->api->dir, name, format);
  hf_df *df = MADE(hf_session_read, f->api->session, format, paths, 1, NULL, 0);
  if (hf_df_create_view(df, name, false, &f->api->error) != HF_OK) {
    fail_msg("view: %s", f->api->error.message);
  }
  return df;
}

int frame_case_open(void **state) {
  frame_case *f = calloc(1, sizeof *f);
  void *api = NULL;
  assert_non_null(f);
  if (api_case_open_two_slots(&api) != 0) {
    return -1;
  }
  f->api = api;
  f->plain = oracle_open();
  plain_run(f->plain,
            "COPY (SELECT i AS id, CASE WHEN i %% 97 = 0 THEN NULL ELSE 'r' || i %% 7 END AS region, "
            "(i * 31 %% 50)::INTEGER AS customer, (i * 7919 %% 100000 / 100)::DECIMAL(10,2) AS amount, "
            "DATE '2024-01-01' + (i %% 366)::INTEGER AS day, 'it''s \"' || i %% 5 AS \"odd name\", "
            "(i %% 11)::INTEGER AS \"a.b\", (i %% 13)::INTEGER AS \"quo\"\"te\", i / 8 AS \"größe\" "
            "FROM range(3000) t(i)) TO '%s/sales.parquet' (ROW_GROUP_SIZE 2048)",
            f->api->dir);
  plain_run(f->plain,
            "COPY (SELECT i AS customer, 'name ' || i AS name, 'r' || i %% 4 AS region FROM range(40) t(i)) "
            "TO '%s/people.csv'",
            f->api->dir);
  plain_run(f->plain, "CREATE VIEW sales AS FROM '%s/sales.parquet'", f->api->dir);
  plain_run(f->plain, "CREATE VIEW people AS FROM '%s/people.csv'", f->api->dir);
  f->sales = read_files(f, "parquet", "sales");
  f->people = read_files(f, "csv", "people");
  *state = f;
  return 0;
}

int frame_case_close(void **state) {
  frame_case *f = *state;
  void *api = f->api;
  for (size_t i = 0; i < f->n_kept; i++) {
    hf_df_free(f->kept[i]);
  }
  hf_df_free(f->sales);
  hf_df_free(f->people);
  oracle_close(f->plain);
  free(f);
  return api_case_close(&api);
}

/* -------------------------------------------------------------------- outcomes */

hf_df **frame_out(frame_case *f) {
  hf_df **out = &f->outs[f->next_out++ % (sizeof f->outs / sizeof f->outs[0])];
  assert_null(*out);
  return out;
}

hf_df *frame_keep(frame_case *f, hf_df *df) {
  assert_true(f->n_kept < sizeof f->kept / sizeof f->kept[0]);
  f->kept[f->n_kept++] = df;
  return df;
}

/* Takes what a step wrote: those that its arguments wrote were taken before. */
static hf_df *take_out(frame_case *f) {
  hf_df *made = NULL;
  for (size_t i = 0; i < sizeof f->outs / sizeof f->outs[0]; i++) {
    if (f->outs[i] != NULL) {
      assert_null(made);
      made = f->outs[i];
      f->outs[i] = NULL;
    }
  }
  return made;
}

hf_df *frame_made(frame_case *f, hf_status status) {
  const hf_error *error = &f->api->error;
  if (status != HF_OK) {
    fail_msg("%s: %s (hint: %s, cause: %s)", hf_status_name(status),
             error->message == NULL ? "" : error->message, error->hint == NULL ? "" : error->hint,
             error->cause == NULL ? "" : error->cause);
  }
  hf_df *made = take_out(f);
  assert_non_null(made);
  return made;
}

void frame_failed(frame_case *f, hf_status status, hf_status code, const char *part) {
  const hf_error *error = &f->api->error;
  const char *message = error->message == NULL ? "" : error->message;
  const char *hint = error->hint == NULL ? "" : error->hint;
  hf_df *made = take_out(f);
  if (made != NULL) {
    hf_df_free(made);
    fail_msg("%s, and there is a DataFrame", hf_status_name(status));
  }
  if (status != code) {
    fail_msg("%s instead of %s: %s", hf_status_name(status), hf_status_name(code), message);
  }
  assert_int_equal(error->code, code);
  if (strstr(message, part) == NULL && strstr(hint, part) == NULL) {
    fail_msg("\"%s\" is neither in \"%s\" nor in the hint \"%s\"", part, message, hint);
  }
}

/* ------------------------------------------------------------------ comparison */

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines of a text in place. */
static void sort_lines(char *text) {
  size_t n = 0, length = strlen(text);
  for (char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
    n++;
  }
  char **lines = calloc(n + 1, sizeof *lines), *copy = strdup(text), *to = text, *rest = NULL;
  assert_true(lines != NULL && copy != NULL);
  size_t i = 0;
  for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    lines[i++] = line;
  }
  qsort(lines, i, sizeof *lines, by_text);
  for (size_t line = 0; line < i; line++) {
    to += snprintf(to, length + 1 - (size_t)(to - text), "%s\n", lines[line]);
  }
  free(copy);
  free(lines);
}

/* The oracle's answer as api_rows spells it. */
static char *plain_rows(frame_case *f, const char *format, const char *sql) {
  char *text = NULL, *out = NULL;
  size_t length = 0;
  oracle_rows rows;
  assert_true(asprintf(&text, format, sql) > 0);
  char *error = oracle_query(f->plain, text, 1000000, &rows);
  if (error != NULL) {
    fail_msg("oracle: %s: %s", text, error);
  }
  FILE *file = open_memstream(&out, &length);
  assert_non_null(file);
  for (size_t i = 0; i < rows.n_rows * rows.n_columns; i++) {
    const oracle_cell *cell = &rows.cells[i];
    fprintf(file, "%s%s%s", i % rows.n_columns == 0 ? "" : "|", cell->text == NULL ? "NULL" : cell->text,
            (i + 1) % rows.n_columns == 0 ? "\n" : "");
  }
  fclose(file);
  oracle_rows_free(&rows);
  free(text);
  return out;
}

static void expect_text(const char *what, const char *sql, char *found, char *wanted) {
  if (strcmp(found, wanted) != 0) {
    size_t at = 0;
    while (found[at] == wanted[at]) {
      at++;
    }
    at = at > 60 ? at - 60 : 0;
    fail_msg("%s of %s differ:\n%.160s\ninstead of\n%.160s", what, sql, found + at, wanted + at);
  }
  free(found);
  free(wanted);
}

/* Names by the Arrow schema, types as SQL tells them. */
static void compare_columns(frame_case *f, hf_df *df, const char *sql) {
  hf_error *error = &f->api->error;
  struct ArrowSchema fields;
  if (hf_df_create_view(df, "compared", true, error) != HF_OK || hf_df_schema(df, &fields, error) != HF_OK) {
    fail_msg("%s: %s", sql, error->message);
  }
  hf_df *described = api_sql(f->api, "SELECT column_type FROM (DESCRIBE compared)");
  expect_text("types", sql, api_rows(f->api, described, NULL),
              plain_rows(f, "SELECT column_type FROM (DESCRIBE %s)", sql));
  hf_df_free(described);
  oracle_rows rows;
  char *names = NULL;
  assert_true(asprintf(&names, "SELECT column_name FROM (DESCRIBE %s)", sql) > 0);
  assert_null(oracle_query(f->plain, names, 10000, &rows));
  assert_int_equal(fields.n_children, rows.n_rows);
  for (size_t i = 0; i < rows.n_rows; i++) {
    assert_string_equal(fields.children[i]->name, rows.cells[i].text);
  }
  oracle_rows_free(&rows);
  free(names);
  fields.release(&fields);
}

static void compare_rows(frame_case *f, hf_df *df, const char *sql, bool ordered) {
  hf_df *texts = MADE(hf_df_select, df, HF_LIST("COLUMNS(*)::VARCHAR"));
  char *found = api_rows(f->api, texts, NULL);
  char *wanted = plain_rows(f, "SELECT COLUMNS(*)::VARCHAR FROM (%s)", sql);
  if (!ordered) {
    sort_lines(found);
    sort_lines(wanted);
  }
  expect_text("rows", sql, found, wanted);
  hf_df_free(texts);
}

static void compare(frame_case *f, hf_df *df, const char *sql, bool ordered) {
  compare_columns(f, df, sql);
  api_run(f->api, "SET tasks = 3");
  compare_rows(f, df, sql, ordered);
  api_run(f->api, "SET tasks = 1");
  compare_rows(f, df, sql, ordered);
  hf_df_free(df);
}

void frame_same(frame_case *f, hf_df *df, const char *sql) {
  compare(f, df, sql, false);
}

void frame_same_order(frame_case *f, hf_df *df, const char *sql) {
  compare(f, df, sql, true);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A case of planning; see plan_case.h. */
#include "support/plan_case.h"

#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_ok(plan_case *c, hf_status status, const char *what) {
  if (status != HF_OK) {
    fail_msg("%s: %s %s (%s)", what, hf_status_name(status), c->error.message, c->error.cause);
  }
}

int plan_case_open(void **state) {
  plan_case *c = mem_zalloc(1, sizeof *c);
  assert_non_null(c);
  snprintf(c->dir, sizeof c->dir, "/tmp/holdfast-plan-XXXXXX");
  assert_non_null(mkdtemp(c->dir));
  c->memory = arena_new();
  const char *dirs[] = {c->dir};
  const char *extensions = getenv("HOLDFAST_EXTENSION_DIRECTORY");
  engine_options planner = {.kind = ENGINE_PLANNER, .extension_dir = extensions};
  source_catalog_options sources = {.allowed_dirs = dirs, .n_allowed_dirs = 1, .extension_dir = extensions};
  expect_ok(c, engine_open(&planner, &c->planner, &c->error), "planner");
  c->plain = oracle_open();
  assert_non_null(c->plain);
  expect_ok(c, source_catalog_new(&sources, &c->sources, &c->error), "catalogue");
  *state = c;
  return 0;
}

int plan_case_close(void **state) {
  plan_case *c = *state;
  for (size_t i = 0; i < c->n_names; i++) {
    relation_release(c->bound[i]);
  }
  for (size_t i = 0; i < c->n_sources; i++) {
    source_release(c->resolved[i]);
  }
  source_catalog_free(c->sources);
  engine_close(c->planner);
  oracle_close(c->plain);
  arena_free(c->memory);
  hf_error_reset(&c->error);
  hf_status status = file_remove_tree(c->dir, NULL);
  mem_free(c);
  return status != HF_OK;
}

const char *plan_text(plan_case *c, const char *sql) {
  buf text = {0};
  for (; *sql != '\0'; sql++) {
    if (*sql == '@') {
      buf_text(&text, c->dir);
    } else {
      buf_char(&text, *sql);
    }
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  return copy;
}

void plan_file(plan_case *c, const char *name, const char *content) {
  const char *path = arena_printf(c->memory, "%s/%s", c->dir, name);
  char *directory = arena_strdup(c->memory, path);
  *strrchr(directory, '/') = '\0';
  expect_ok(c, file_make_dirs(directory, &c->error), name);
  expect_ok(c, file_write_whole(path, content, strlen(content), false, &c->error), name);
}

void plan_exec(plan_case *c, const char *sql) {
  char *failure = oracle_run(c->plain, plan_text(c, sql));
  if (failure != NULL) {
    fail_msg("%s: %s", sql, failure);
  }
}

static const relation *lookup(void *context, const char *name) {
  plan_case *c = context;
  for (size_t i = 0; i < c->n_names; i++) {
    if (strcasecmp(c->names[i], name) == 0) {
      return c->bound[i];
    }
  }
  return NULL;
}

static const char *name_at(void *context, size_t i) {
  plan_case *c = context;
  return i < c->n_names ? c->names[i] : NULL;
}

relation_names plan_names(plan_case *c) {
  return (relation_names){.lookup = lookup, .name_at = name_at, .context = c};
}

relation *plan_relation(plan_case *c, const char *sql) {
  relation *r = NULL;
  relation_names names = plan_names(c);
  expect_ok(c, relation_from_sql(c->planner, plan_text(c, sql), &names, &r, &c->error), sql);
  return r;
}

void plan_bind(plan_case *c, const char *name, const relation *r) {
  for (size_t i = 0; i < c->n_names; i++) {
    if (strcasecmp(c->names[i], name) == 0) {
      relation_release(c->bound[i]);
      c->bound[i] = relation_retain(r);
      return;
    }
  }
  assert_true(c->n_names < PLAN_CASE_NAMES);
  c->names[c->n_names] = arena_strdup(c->memory, name);
  c->bound[c->n_names++] = relation_retain(r);
}

void plan_name(plan_case *c, const char *name, const char *sql) {
  relation *r = plan_relation(c, sql);
  plan_bind(c, name, r);
  relation_release(r);
  buf text = {0};
  buf_text(&text, "CREATE VIEW ");
  buf_sql_name(&text, name);
  buf_printf(&text, " AS %s", sql);
  plan_exec(c, buf_cstr(&text));
  buf_reset(&text);
}

static void held(void *context, const relation *node, held_info *out) {
  (void)node;
  *out = ((plan_case *)context)->held;
}

static source *source_of(void *context, const source_request *request) {
  plan_case *c = context;
  for (size_t i = 0; i < c->n_sources; i++) {
    if (c->requests[i] == request) {
      return c->resolved[i];
    }
  }
  return NULL;
}

static void forget_sources(plan_case *c) {
  for (size_t i = 0; i < c->n_sources; i++) {
    source_release(c->resolved[i]);
  }
  c->n_sources = 0;
}

lowered plan_lowered(plan_case *c, const relation *r) {
  lower_knowledge knowledge = {.held = held, .source_of = source_of, .context = c};
  lowered l;
  forget_sources(c); /* requests are the relation's: another one may lie at the same place */
  expect_ok(c, plan_lower(r, &knowledge, c->memory, &l, &c->error), "lower");
  while (l.n_needed_sources > 0) {
    for (size_t i = 0; i < l.n_needed_sources; i++) {
      assert_true(c->n_sources < PLAN_CASE_SOURCES);
      expect_ok(c, source_resolve(c->sources, l.needed_sources[i], &c->resolved[c->n_sources], &c->error),
                "resolve");
      c->requests[c->n_sources++] = l.needed_sources[i];
    }
    expect_ok(c, plan_lower(r, &knowledge, c->memory, &l, &c->error), "lower");
  }
  return l;
}

const char *plan_whole_text(plan_case *c, const lowered *l) {
  buf text = {0};
  for (size_t i = 0; i < l->n_pieces; i++) {
    if (l->pieces[i].text != NULL) {
      buf_text(&text, l->pieces[i].text);
      continue;
    }
    const lower_input *input = &l->inputs[l->pieces[i].input];
    assert_int_equal(input->kind, LOWER_INPUT_SOURCE);
    size_t n = source_n_files(input->source);
    const char **paths = arena_array(c->memory, n, sizeof *paths);
    for (size_t k = 0; k < n; k++) {
      paths[k] = source_files(input->source)[k].path;
    }
    source_scan_sql(source_reader_text(input->source), paths, n, &text);
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  return copy;
}

const char *plan_rows_or_error(plan_case *c, const char *sql) {
  oracle_rows rows;
  char *failure = oracle_query(c->plain, sql, 100000, &rows);
  if (failure != NULL) {
    const char *copy = arena_printf(c->memory, "!%s", failure);
    free(failure);
    return copy;
  }
  buf text = {0};
  for (size_t i = 0; i < rows.n_columns; i++) {
    buf_printf(&text, "%s%s", i == 0 ? "" : "|", rows.types[i]);
  }
  buf_char(&text, '\n');
  for (size_t i = 0; i < rows.n_rows * rows.n_columns; i++) {
    bool ends_row = i % rows.n_columns == rows.n_columns - 1;
    buf_printf(&text, "%s%c", rows.cells[i].text == NULL ? "NULL" : rows.cells[i].text,
               ends_row ? '\n' : '|');
  }
  oracle_rows_free(&rows);
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  return copy;
}

const char *plan_rows(plan_case *c, const char *sql) {
  const char *rows = plan_rows_or_error(c, sql);
  if (rows[0] == '!') {
    fail_msg("%s: %s", sql, rows);
  }
  return rows;
}

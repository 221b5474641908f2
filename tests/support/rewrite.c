/* SPDX-License-Identifier: Apache-2.0 */
/* The whole-plan round trip. */
#include "support/rewrite.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool condition) {
  if (!condition) {
    abort();
  }
}

static char *join_pieces(const plan_written *w, rewrite_input_fn input, void *context) {
  buf text = {0};
  for (size_t i = 0; i < w->n_pieces; i++) {
    if (w->pieces[i].text != NULL) {
      buf_text(&text, w->pieces[i].text);
      continue;
    }
    must(input != NULL);
    char *item = input(context, w->inputs[w->pieces[i].input].node->scan->parameters[0].text);
    buf_text(&text, item);
    free(item);
  }
  char *sql = buf_take(&text);
  must(sql != NULL);
  return sql;
}

static void take_types(const tree_node *root, rewrite *out) {
  out->n_types = root->n_columns;
  out->types = calloc(root->n_columns + 1, sizeof *out->types);
  must(out->types != NULL);
  for (size_t i = 0; i < root->n_columns; i++) {
    buf text = {0};
    data_type_to_sql(root->types[i], &text);
    out->types[i] = buf_take(&text);
  }
}

static void answer(const char *json, size_t length, const plan_write_options *options, rewrite_input_fn input,
                   void *context, rewrite *out) {
  arena *a = arena_new();
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  plan_written written = {0};
  hf_error error = {0};
  uint64_t start = clock_monotonic_us();
  must(a != NULL && plan_tree_read(json, length, a, &root, &refusal, &error) == HF_OK);
  if (refusal.code == TREE_REFUSED_NONE) {
    must(plan_write(root, options, a, &written, &refusal, &error) == HF_OK);
  }
  out->write_us = clock_monotonic_us() - start;
  if (refusal.code == TREE_REFUSED_NONE) {
    out->outcome = REWRITE_DONE;
    out->sql = join_pieces(&written, input, context);
    take_types(root, out);
  } else {
    char why[600];
    snprintf(why, sizeof why, "%s %s: %s", tree_refusal_name(refusal.code), refusal.node, refusal.reason);
    bool is_unserialised = refusal.code == TREE_REFUSED_SERIALISE || refusal.code == TREE_REFUSED_UNREADABLE;
    out->outcome = is_unserialised ? REWRITE_UNSERIALISED : REWRITE_REFUSED;
    out->why = strdup(why);
  }
  arena_free(a);
}

void rewrite_answer(const char *json, size_t length, rewrite_input_fn input, void *context, rewrite *out) {
  const plan_write_options options = {0};
  memset(out, 0, sizeof *out);
  answer(json, length, &options, input, context, out);
}

/* The setting of the oracle that changes what a subquery gives. */
static bool gives_first_of_many(oracle *o) {
  oracle_rows rows;
  char *error =
      oracle_query(o, "SELECT current_setting('scalar_subquery_error_on_multiple_rows')::VARCHAR", 1, &rows);
  bool is_off = error == NULL && strcmp(rows.cells[0].text, "false") == 0;
  oracle_rows_free(&rows);
  free(error);
  return is_off;
}

void rewrite_query(oracle *o, const char *sql, rewrite_input_fn input, void *context, rewrite *out) {
  size_t length = 0;
  char *error = NULL;
  memset(out, 0, sizeof *out);
  uint64_t start = clock_monotonic_us();
  char *json = oracle_plan(o, sql, &length, &error);
  out->plan_us = clock_monotonic_us() - start;
  if (json == NULL) {
    out->outcome = REWRITE_UNSERIALISED;
    out->why = error;
    return;
  }
  const plan_write_options options = {.first_of_many = gives_first_of_many(o)};
  answer(json, length, &options, input, context, out);
  free(json);
}

void rewrite_free(rewrite *r) {
  for (size_t i = 0; i < r->n_types; i++) {
    mem_free(r->types[i]);
  }
  free(r->types);
  free(r->why);
  mem_free(r->sql);
  memset(r, 0, sizeof *r);
}

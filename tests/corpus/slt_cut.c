/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the oracle stand in for sources: their scans become scans of hf_scan. */
#include "corpus/slt_cut.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 64 };

typedef struct sources {
  oracle *o;
  arena *a;
  size_t n;
  cut_source list[MOST_SOURCES];
} sources;

static void must(bool condition) {
  if (!condition) {
    abort();
  }
}

static uint64_t rows_of(oracle *o, const char *table) {
  oracle_rows rows;
  buf sql = {0};
  buf_printf(&sql, "SELECT (max(rowid) + 1)::VARCHAR FROM %s", table);
  char *error = oracle_query(o, buf_cstr(&sql), 1, &rows);
  uint64_t n = error == NULL && rows.cells[0].text != NULL ? strtoull(rows.cells[0].text, NULL, 10) : 0;
  free(error);
  oracle_rows_free(&rows);
  buf_reset(&sql);
  return n;
}

/* The table's place among the sources. */
static const char *add_source(sources *s, const tree_scan *scan) {
  buf name = {0};
  buf_sql_name(&name, scan->catalog);
  buf_char(&name, '.');
  buf_sql_name(&name, scan->schema);
  buf_char(&name, '.');
  buf_sql_name(&name, scan->table);
  const char *id = arena_strdup(s->a, buf_cstr(&name));
  buf_reset(&name);
  for (size_t i = 0; i < s->n; i++) {
    if (strcmp(s->list[i].id, id) == 0) {
      return s->list[i].id;
    }
  }
  must(s->n < MOST_SOURCES);
  uint64_t rows = rows_of(s->o, id);
  s->list[s->n++] =
      (cut_source){.id = id, .can_split = true, .rows = rows, .bytes = rows * 100, .ordered = true};
  return id;
}

/* The number of a row is one more column of the source, behind the table's. */
static void put_rowid(sources *s, tree_scan *scan) {
  static const data_type type_bigint = {.kind = TYPE_BIGINT};
  size_t n = scan->n_source;
  const char **names = arena_array(s->a, n + 1, sizeof *names);
  const data_type **types = arena_array(s->a, n + 1, sizeof(data_type *));
  tree_scan_column *scanned = arena_array(s->a, scan->n_scanned + 1, sizeof *scanned);
  tree_scan_filter *filters = arena_array(s->a, scan->n_filters + 1, sizeof *filters);
  must(names != NULL && types != NULL && scanned != NULL && filters != NULL);
  for (size_t i = 0; i <= n; i++) {
    names[i] = i < n ? scan->source_names[i] : "rowid";
    types[i] = i < n ? scan->source_types[i] : &type_bigint;
  }
  for (size_t i = 0; i < scan->n_scanned; i++) {
    bool is_rowid = scan->scanned[i].kind == SCAN_ROWID;
    scanned[i] = is_rowid ? (tree_scan_column){.column = n} : scan->scanned[i];
  }
  for (size_t i = 0; i < scan->n_filters; i++) {
    filters[i] = scan->filters[i];
    filters[i].column = filters[i].is_rowid ? n : filters[i].column;
    filters[i].is_rowid = false;
  }
  scan->n_source = n + 1;
  scan->source_names = names;
  scan->source_types = types;
  scan->scanned = scanned;
  scan->filters = filters;
}

static const tree_node *replace(sources *s, const tree_node *node) {
  tree_node *copy = arena_alloc(s->a, sizeof *copy);
  const tree_node **children = arena_array(s->a, node->n_children + 1, sizeof(void *));
  must(copy != NULL && children != NULL);
  *copy = *node;
  for (size_t i = 0; i < node->n_children; i++) {
    children[i] = replace(s, node->children[i]);
  }
  copy->children = children;
  if (node->kind == TREE_GET && strcmp(node->scan->function, "seq_scan") == 0) {
    tree_scan *scan = arena_alloc(s->a, sizeof *scan);
    tree_value *id = arena_alloc(s->a, sizeof *id);
    must(scan != NULL && id != NULL);
    id->text = add_source(s, node->scan);
    *scan = *node->scan;
    scan->function = "hf_scan";
    scan->n_parameters = 1;
    scan->parameters = id;
    put_rowid(s, scan);
    copy->scan = scan;
  }
  return copy;
}

static slt_cut_result refuse(const tree_refusal *refusal, cut_outcome *out) {
  bool has_plan = refusal->code != TREE_REFUSED_SERIALISE && refusal->code != TREE_REFUSED_UNREADABLE;
  snprintf(out->why, sizeof out->why, "%s %s: %s", tree_refusal_name(refusal->code), refusal->node,
           refusal->reason);
  return has_plan ? SLT_CUT_REFUSED : SLT_CUT_UNSERIALISED;
}

static slt_cut_result cut(sources *s, const char *json, size_t length, const cut_options *given,
                          const oracle_rows *expected, cut_outcome *out) {
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  hf_error error = {0};
  cut_graph graph;
  must(plan_tree_read(json, length, s->a, &root, &refusal, &error) == HF_OK);
  if (root == NULL) {
    return refuse(&refusal, out);
  }
  root = replace(s, root);
  cut_options options = *given;
  options.sources = s->list;
  options.n_sources = s->n;
  must(stage_cut(root, &options, s->a, &graph, &refusal, &error) == HF_OK);
  if (refusal.code != TREE_REFUSED_NONE) {
    return refuse(&refusal, out);
  }
  const cut_run r = {s->o, &graph, options.tasks, s->list, s->n, out, NULL, NULL};
  cut_run_graph(&r, expected);
  return SLT_CUT_RUN;
}

static bool gives_first_of_many(oracle *o) {
  oracle_rows rows;
  char *error =
      oracle_query(o, "SELECT current_setting('scalar_subquery_error_on_multiple_rows')::VARCHAR", 1, &rows);
  bool is_off = error == NULL && strcmp(rows.cells[0].text, "false") == 0;
  oracle_rows_free(&rows);
  free(error);
  return is_off;
}

slt_cut_result slt_cut_query(oracle *o, const char *sql, uint32_t tasks, uint64_t broadcast_bytes,
                             const oracle_rows *expected, cut_outcome *out) {
  size_t length = 0;
  char *error = NULL;
  sources s = {.o = o, .a = arena_new()};
  const cut_options options = {
      .tasks = tasks, .broadcast_bytes = broadcast_bytes, .first_of_many = gives_first_of_many(o)};
  *out = (cut_outcome){.verdict = ORACLE_OTHER_ROWS};
  char *json = oracle_plan(o, sql, &length, &error);
  slt_cut_result result = SLT_CUT_UNSERIALISED;
  if (json == NULL) {
    snprintf(out->why, sizeof out->why, "%.280s", error);
  } else {
    result = cut(&s, json, length, &options, expected, out);
  }
  free(error);
  free(json);
  arena_free(s.a);
  return result;
}

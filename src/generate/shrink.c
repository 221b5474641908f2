/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shrinking: a query that fails is made smaller as long as it fails in the same
 * way. Parts that may be left out go, expressions become parts of themselves or
 * literals, queries the queries inside them, tables lose rows. What makes an answer
 * determinate stands in parts that go together only.
 * Thread: one at a time.
 */
#include "generate/generate_tables.h"

#include "base/mem.h"

#include <ctype.h>
#include <string.h>

enum { NODES_MOST = 4000 };

typedef struct shrinking {
  const shrink_request *request;
  gen_node *root;
  const verify_outcome *failed;
  arena *memory;
  buf sql; /* that fails */
  unsigned tries;
  gen_node *nodes[NODES_MOST]; /* that are rendered */
  size_t n_nodes;
} shrinking;

/* ------------------------------------------------------------------- tries */

static bool is_same_failure(const verify_outcome *a, const verify_outcome *b) {
  return a->result == b->result && a->single_status == b->single_status &&
         a->split_status == b->split_status &&
         (a->split_status != HF_OK || a->single_status != HF_OK || a->report.verdict == b->report.verdict);
}

static bool still_fails(shrinking *s, const char *sql) {
  schema columns;
  arena *a = arena_new();
  verify_outcome outcome;
  s->tries++;
  bool is_bound =
      s->failed->single_status != HF_OK ||
      (a != NULL && engine_describe(witness_engine(s->request->v->witness), sql, a, &columns, NULL) == HF_OK);
  arena_free(a);
  if (!is_bound) {
    return false;
  }
  verify_query(s->request->v, sql, &outcome);
  bool is_same = is_same_failure(&outcome, s->failed);
  verify_outcome_reset(&outcome);
  return is_same;
}

static bool is_spent(const shrinking *s) {
  return s->tries >= s->request->most_tries ||
         (s->request->v->cancel != NULL && cancel_is_signalled(s->request->v->cancel));
}

/* The tree was changed: tells whether the text did and it still fails. */
static bool holds(shrinking *s) {
  buf sql = {0};
  gen_render(s->root, &sql);
  bool is_other = !sql.failed && strcmp(buf_cstr(&sql), buf_cstr(&s->sql)) != 0;
  if (is_other && !is_spent(s) && still_fails(s, buf_cstr(&sql))) {
    buf_reset(&s->sql);
    s->sql = sql;
    return true;
  }
  buf_reset(&sql);
  return false;
}

static bool try_drop(shrinking *s, gen_node *n) {
  n->is_dropped = true;
  if (holds(s)) {
    return true;
  }
  n->is_dropped = false;
  return false;
}

static bool try_instead(shrinking *s, gen_node *n, gen_node *other) {
  n->instead = other;
  if (holds(s)) {
    return true;
  }
  n->instead = NULL;
  return false;
}

/* -------------------------------------------------------------------- tree */

static void collect(shrinking *s, gen_node *n) {
  while (n->instead != NULL) {
    n = n->instead;
  }
  if (n->is_dropped || s->n_nodes == NODES_MOST || n->role == GEN_WORDS) {
    return;
  }
  s->nodes[s->n_nodes++] = n;
  for (size_t i = 0; i < n->n_parts; i++) {
    collect(s, n->parts[i]);
  }
}

static bool shrink_list(shrinking *s, gen_node *list) {
  bool did = false;
  size_t left = 0;
  for (size_t i = 0; i < list->n_parts; i++) {
    left += list->parts[i]->is_dropped ? 0 : 1;
  }
  for (size_t i = 0; i < list->n_parts && left > 1 && !list->is_fixed; i++) {
    if (!list->parts[i]->is_dropped && try_drop(s, list->parts[i])) {
      did = true;
      left--;
    }
  }
  return did;
}

/* In place of `n` one of those inside it that can stand there, the outermost that will do. */
static bool hoist(shrinking *s, gen_node *n, gen_node *from) {
  for (size_t i = 0; i < from->n_parts; i++) {
    gen_node *part = from->parts[i];
    if (part->is_dropped || part->role == GEN_WORDS) {
      continue;
    }
    while (part->instead != NULL) {
      part = part->instead;
    }
    bool fits = part->role == n->role && (n->role != GEN_EXPRESSION || part->type == n->type);
    if ((fits && try_instead(s, n, part)) || hoist(s, n, part)) {
      return true;
    }
  }
  return false;
}

static bool is_literal(const gen_node *n) {
  return n->n_parts == 1 && n->parts[0]->role == GEN_WORDS;
}

static bool shrink_expression(shrinking *s, gen_node *n) {
  if (is_literal(n)) {
    return false;
  }
  gen_node *literal = arena_alloc(s->memory, sizeof *literal);
  if (literal == NULL) {
    return false;
  }
  literal->role = GEN_WORDS;
  literal->text = gen_plain_literal(n->type);
  return try_instead(s, n, literal) || hoist(s, n, n);
}

static bool shrink_node(shrinking *s, gen_node *n) {
  switch (n->role) {
    case GEN_OPTION:
      return try_drop(s, n);
    case GEN_LIST:
      return shrink_list(s, n);
    case GEN_EXPRESSION:
      return shrink_expression(s, n);
    case GEN_RELATION:
    case GEN_QUERY:
      return hoist(s, n, n);
    default:
      return false;
  }
}

static bool shrink_tree(shrinking *s) {
  bool did = false;
  s->n_nodes = 0;
  collect(s, s->root);
  for (size_t i = 0; i < s->n_nodes && !is_spent(s); i++) {
    gen_node *n = s->nodes[i];
    if (n->instead == NULL && !n->is_dropped && shrink_node(s, n)) {
      did = true;
    }
  }
  return did;
}

/* ------------------------------------------------------------------- tables */

static bool is_named(const char *sql, const char *name) {
  size_t length = strlen(name);
  for (const char *at = strstr(sql, name); at != NULL; at = strstr(at + 1, name)) {
    bool begins = at == sql || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
    if (begins && !isalnum((unsigned char)at[length]) && at[length] != '_') {
      return true;
    }
  }
  return false;
}

/* Without `count` rows from the first on; false: it does not fail without them, and they are there again. */
static bool try_without(shrinking *s, size_t table, size_t first, size_t count) {
  const shrink_request *r = s->request;
  generated_table *t = &r->tables->tables[table];
  size_t n = t->n_rows;
  uint32_t *kept = mem_alloc(n * sizeof *kept);
  if (kept == NULL) {
    return false;
  }
  memcpy(kept, t->rows, n * sizeof *kept);
  memmove(t->rows + first, t->rows + first + count, (n - first - count) * sizeof *kept);
  t->n_rows = n - count;
  bool fails = generated_table_write(r->tables, table, r->v, r->dir, NULL) == HF_OK &&
               still_fails(s, buf_cstr(&s->sql));
  if (!fails) {
    memcpy(t->rows, kept, n * sizeof *kept);
    t->n_rows = n;
    generated_table_write(r->tables, table, r->v, r->dir, NULL);
  }
  mem_free(kept);
  return fails;
}

/* Leaves out halves, quarters … down to single rows. */
static bool shrink_rows(shrinking *s, size_t table) {
  generated_table *t = &s->request->tables->tables[table];
  bool did = t->n_rows > 0 && try_without(s, table, 0, t->n_rows);
  for (size_t piece = t->n_rows / 2; piece > 0 && !is_spent(s); piece /= 2) {
    for (size_t first = 0; first < t->n_rows && !is_spent(s);) {
      size_t count = piece < t->n_rows - first ? piece : t->n_rows - first;
      bool gone = try_without(s, table, first, count);
      first += gone ? 0 : count;
      did = did || gone;
    }
  }
  return did;
}

static bool shrink_tables(shrinking *s) {
  bool did = false;
  for (size_t i = 0; i < s->request->tables->n && !is_spent(s); i++) {
    if (is_named(buf_cstr(&s->sql), s->request->tables->tables[i].shape.name)) {
      did = shrink_rows(s, i) || did;
    }
  }
  return did;
}

static hf_status write_case(shrinking *s, buf *out, hf_error *error) {
  static const char *const storages[] = {"Parquet files", "CSV files",
                                         "Parquet files, given to the session as Arrow data"};
  for (size_t i = 0; i < s->request->tables->n; i++) {
    const generated_table *t = &s->request->tables->tables[i];
    if (is_named(buf_cstr(&s->sql), t->shape.name)) {
      buf_printf(out, "-- %zu rows in %u %s\n", t->n_rows, t->parts, storages[t->storage]);
      HF_TRY(generated_table_as_sql(t, s->request->v, out, error));
    }
  }
  buf_printf(out, "%s;\n", buf_cstr(&s->sql));
  return HF_OK;
}

hf_status shrink_query(const shrink_request *r, generated_query *query, const verify_outcome *failed,
                       arena *a, buf *out, hf_error *error) {
  shrinking *s = arena_alloc(a, sizeof *s);
  if (s == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to shrink a query");
  }
  *s = (shrinking){.request = r, .root = query->root, .failed = failed, .memory = a};
  buf_text(&s->sql, query->sql);
  while (!is_spent(s) && shrink_tree(s)) {
  }
  while (!is_spent(s) && shrink_tables(s) && shrink_tree(s)) {
  }
  query->sql = arena_strdup(a, buf_cstr(&s->sql));
  hf_status status = query->sql == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to shrink a query")
                                        : write_case(s, out, error);
  buf_reset(&s->sql);
  return status;
}

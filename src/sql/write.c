/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces, WITH lists, CTEs and set operations; the door. */
#include "sql/write_internal.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Sub-selects in one another before an entry of the WITH list is made: DuckDB's parser fails between 100 and 300. */
enum { DEEPEST_NESTING = 40 };

hf_status write_refuse(writer *w, tree_refusal_code code, const char *node, const char *format, ...) {
  char reason[300];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  w->refusal->code = code;
  w->refusal->node = arena_strdup(w->a, node);
  w->refusal->reason = arena_strdup(w->a, reason);
  return w->refusal->node == NULL || w->refusal->reason == NULL
             ? error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for a refusal")
             : HF_E_UNSUPPORTED;
}

size_t write_name(writer *w) {
  return ++w->n_names;
}

/* ------------------------------------------------------------------- texts */

static void add_mark(sql_text *text, size_t offset, uint32_t input) {
  if (text->n_marks == text->capacity) {
    size_t capacity = text->capacity * 2 + 8;
    void *marks = mem_realloc(text->marks, capacity * sizeof *text->marks);
    if (marks == NULL) {
      text->text.failed = true;
      return;
    }
    text->marks = marks;
    text->capacity = capacity;
  }
  text->marks[text->n_marks].offset = offset;
  text->marks[text->n_marks++].input = input;
}

static void append_text(sql_text *to, const sql_text *from) {
  for (size_t i = 0; i < from->n_marks; i++) {
    add_mark(to, to->text.length + from->marks[i].offset, from->marks[i].input);
  }
  to->text.failed |= from->text.failed;
  buf_append(&to->text, from->text.data, from->text.length);
}

static void reset_text(sql_text *text) {
  buf_reset(&text->text);
  mem_free(text->marks);
  memset(text, 0, sizeof *text);
}

static void write_chain_head(sql_text *out, const write_chain *chain) {
  if (chain->n > 0) {
    buf_text(&out->text, chain->is_recursive ? "WITH RECURSIVE " : "WITH ");
    append_text(out, &chain->entries);
    buf_char(&out->text, ' ');
  }
}

/* ----------------------------------------------------------------- entries */

void write_entry_begin(writer *w, sql_text *text, sql_text **before) {
  memset(text, 0, sizeof *text);
  *before = w->out;
  w->out = text;
}

hf_status write_entry_end(writer *w, sql_text *text, sql_text *before, const char *how, size_t entry) {
  sql_text *entries = &w->chain->entries;
  w->out = before;
  buf_printf(&entries->text, "%sw%zu%s (", w->chain->n > 0 ? ", " : "", entry, how);
  append_text(entries, text);
  buf_char(&entries->text, ')');
  w->chain->n++;
  reset_text(text);
  return HF_OK;
}

hf_status write_entry(writer *w, const tree_node *node, bool materialized, size_t *entry) {
  sql_text text, *before = NULL;
  unsigned nesting = w->nesting;
  w->nesting = 0;
  write_entry_begin(w, &text, &before);
  hf_status status = write_node(w, node);
  w->nesting = nesting;
  if (status != HF_OK) {
    w->out = before;
    reset_text(&text);
    return status;
  }
  *entry = write_name(w);
  return write_entry_end(w, &text, before, materialized ? " AS MATERIALIZED" : " AS NOT MATERIALIZED",
                         *entry);
}

static size_t find_cte(const writer *w, uint64_t number) {
  for (const struct write_cte *cte = w->ctes; cte != NULL; cte = cte->outer) {
    if (cte->number == number) {
      return cte->entry;
    }
  }
  return 0;
}

static hf_status write_named(writer *w, size_t entry, size_t alias) {
  buf_printf(write_to(w), "w%zu t%zu", entry, alias);
  return HF_OK;
}

hf_status write_from(writer *w, const write_source *source) {
  const tree_node *node = source->node;
  size_t entry = source->entry;
  if (entry == 0 && node->kind == TREE_CTE_REF) {
    entry = find_cte(w, node->number);
  }
  if (entry == 0 && node->kind == TREE_DELIM_GET) {
    entry = w->delim_entry;
  }
  if (entry == 0 && w->nesting >= DEEPEST_NESTING) {
    HF_TRY(write_entry(w, node, false, &entry));
  }
  if (entry > 0) {
    return write_named(w, entry, source->alias);
  }
  w->nesting++;
  buf_char(write_to(w), '(');
  HF_TRY(write_node(w, node));
  buf_printf(write_to(w), ") t%zu", source->alias);
  w->nesting--;
  return HF_OK;
}

hf_status write_input(writer *w, const tree_node *node, const size_t *columns, size_t n_columns) {
  if (w->n_inputs == w->capacity) {
    size_t capacity = w->capacity * 2 + 8;
    plan_input *inputs = arena_array(w->a, capacity, sizeof *inputs);
    if (inputs == NULL) {
      return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a query");
    }
    memcpy(inputs, w->inputs == NULL ? inputs : w->inputs, w->n_inputs * sizeof *inputs);
    w->inputs = inputs;
    w->capacity = capacity;
  }
  add_mark(w->out, w->out->text.length, (uint32_t)w->n_inputs);
  w->inputs[w->n_inputs++] = (plan_input){node, n_columns, columns};
  return HF_OK;
}

/* ----------------------------------------------------------------- columns */

void write_columns(writer *w, size_t alias, const size_t *map, size_t n, size_t first) {
  for (size_t i = 0; i < n; i++) {
    buf_printf(write_to(w), "%st%zu.c%zu AS c%zu", first + i > 0 ? ", " : "", alias, map == NULL ? i : map[i],
               first + i);
  }
}

void write_select(writer *w, const tree_node *node) {
  buf_text(write_to(w), node->n_columns == 0 ? "SELECT 1 AS c0" : "SELECT ");
}

/* -------------------------------------------------------- several children */

static hf_status write_set_operation(writer *w, const tree_node *node) {
  static const char *const words[] = {"UNION", "EXCEPT", "INTERSECT"};
  for (size_t i = 0; i < node->n_children; i++) {
    write_source child = {node->children[i], 0, write_name(w)};
    if (i > 0) {
      buf_printf(write_to(w), " %s%s ", words[node->kind - TREE_UNION], node->all ? " ALL" : "");
    }
    buf_char(write_to(w), '(');
    write_select(w, node);
    write_columns(w, child.alias, NULL, node->n_columns, 0);
    buf_text(write_to(w), " FROM ");
    HF_TRY(write_from(w, &child));
    buf_char(write_to(w), ')');
  }
  return HF_OK;
}

static hf_status write_cte(writer *w, const tree_node *node) {
  const struct write_cte *outer = w->ctes;
  struct write_cte own = {outer, node->number, 0};
  HF_TRY(write_entry(w, node->children[0], true, &own.entry));
  w->ctes = &own;
  hf_status status = write_node(w, node->children[1]);
  w->ctes = outer;
  return status;
}

/* The recursive branch has a WITH list of its own: its entries may read the CTE. */
static hf_status write_branch(writer *w, const tree_node *node) {
  write_chain chain = {0}, *outer_chain = w->chain;
  sql_text text = {0}, *out = w->out;
  w->chain = &chain;
  w->out = &text;
  hf_status status = write_node(w, node);
  w->chain = outer_chain;
  w->out = out;
  if (status == HF_OK) {
    write_chain_head(out, &chain);
    append_text(out, &text);
  }
  reset_text(&chain.entries);
  reset_text(&text);
  return status;
}

static hf_status write_branches(writer *w, const tree_node *node) {
  buf_char(write_to(w), '(');
  HF_TRY(write_node(w, node->children[0]));
  buf_printf(write_to(w), ") UNION%s (", node->all ? " ALL" : "");
  HF_TRY(write_branch(w, node->children[1]));
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_recursive_cte(writer *w, const tree_node *node) {
  const struct write_cte *outer = w->ctes;
  struct write_cte own = {outer, node->number, write_name(w)};
  sql_text text, *before = NULL;
  unsigned nesting = w->nesting;
  w->nesting = 0;
  w->ctes = &own;
  write_entry_begin(w, &text, &before);
  hf_status status = write_branches(w, node);
  w->ctes = outer;
  w->nesting = nesting;
  if (status != HF_OK) {
    w->out = before;
    reset_text(&text);
    return status;
  }
  HF_TRY(write_entry_end(w, &text, before, " AS", own.entry));
  w->chain->is_recursive = true;
  write_select(w, node);
  size_t alias = write_name(w);
  write_columns(w, alias, NULL, node->n_columns, 0);
  buf_text(write_to(w), " FROM ");
  return write_named(w, own.entry, alias);
}

/* A CTE_REF, DELIM_GET or INPUT at the root of a SELECT. */
static hf_status write_reference(writer *w, const tree_node *node) {
  write_source source = {node, 0, write_name(w)};
  write_select(w, node);
  write_columns(w, source.alias, NULL, node->n_columns, 0);
  buf_text(write_to(w), " FROM ");
  return write_from(w, &source);
}

hf_status write_node(writer *w, const tree_node *node) {
  if (w->out->text.length > WRITE_LARGEST_BYTES) {
    return write_refuse(w, TREE_REFUSED_DEPTH, tree_kind_name(node->kind), "SQL of more than %zu bytes",
                        WRITE_LARGEST_BYTES);
  }
  switch (node->kind) {
    case TREE_GET:
    case TREE_INPUT:
      return write_get(w, node);
    case TREE_CTE_REF:
    case TREE_DELIM_GET:
      return write_reference(w, node);
    case TREE_UNION:
    case TREE_EXCEPT:
    case TREE_INTERSECT:
      return write_set_operation(w, node);
    case TREE_CTE:
      return write_cte(w, node);
    case TREE_RECURSIVE_CTE:
      return write_recursive_cte(w, node);
    case TREE_JOIN:
    case TREE_ASOF_JOIN:
      return write_join(w, node);
    case TREE_ANY_JOIN:
      return write_any_join(w, node);
    case TREE_DELIM_JOIN:
      return write_delim_join(w, node);
    case TREE_CROSS_PRODUCT:
    case TREE_POSITIONAL_JOIN:
      return write_product(w, node);
    default:
      return write_operator(w, node);
  }
}

/* -------------------------------------------------------------------- door */

static hf_status cut_pieces(writer *w, const sql_text *text, plan_written *out) {
  plan_piece *pieces = arena_array(w->a, 2 * text->n_marks + 1, sizeof *pieces);
  if (text->text.failed || pieces == NULL) {
    return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of a plan");
  }
  size_t n = 0, from = 0;
  for (size_t i = 0; i <= text->n_marks; i++) {
    size_t to = i < text->n_marks ? text->marks[i].offset : text->text.length;
    pieces[n].text = arena_strndup(w->a, text->text.data + from, to - from);
    if (pieces[n++].text == NULL) {
      return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of a plan");
    }
    if (i < text->n_marks) {
      pieces[n++].input = text->marks[i].input;
    }
    from = to;
  }
  *out = (plan_written){n, pieces, w->n_inputs, w->inputs, w->n_casts, w->casts};
  return HF_OK;
}

hf_status plan_write(const tree_node *root, const plan_write_options *options, arena *a, plan_written *out,
                     tree_refusal *refusal, hf_error *error) {
  write_chain chain = {0};
  sql_text body = {0}, all = {0};
  writer w = {.options = options, .a = a, .refusal = refusal, .error = error, .out = &body, .chain = &chain};
  *refusal = (tree_refusal){TREE_REFUSED_NONE, NULL, NULL};
  memset(out, 0, sizeof *out);
  hf_status status = write_node(&w, root);
  if (status == HF_OK) {
    write_chain_head(&all, &chain);
    append_text(&all, &body);
    status = cut_pieces(&w, &all, out);
  }
  reset_text(&chain.entries);
  reset_text(&body);
  reset_text(&all);
  return refusal->code != TREE_REFUSED_NONE && status == HF_E_UNSUPPORTED ? HF_OK : status;
}

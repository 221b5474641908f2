/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions as SQL, but calls and windows (write_call.c) and constants (write_value.c). */
#include "sql/write_internal.h"

#include "base/fault.h"
#include "base/mem.h"

#include <string.h>

/* -------------------------------------------------------------- references */

/* A condition's references: mapped left columns, then mapped right ones (SEMI, ANTI: all right ones). */
static void write_join_ref(writer *w, const write_scope *scope, size_t ref) {
  const tree_join *j = scope->join;
  if (ref < j->n_left) {
    buf_printf(write_to(w), "t%zu.c%zu", scope->alias, j->left[ref]);
    return;
  }
  bool is_mapped = j->type != JOIN_SEMI && j->type != JOIN_ANTI;
  size_t at = ref - j->n_left;
  buf_printf(write_to(w), "t%zu.c%zu", scope->right_alias, is_mapped ? j->right[at] : at);
}

static hf_status write_lambda_ref(writer *w, const write_scope *scope, size_t ref) {
  if (ref < scope->n_parameters) {
    buf_printf(write_to(w), "p%zu_%zu", scope->level, scope->n_parameters - 1 - ref);
    return HF_OK;
  }
  return write_expression(w, scope->outer, scope->captures[ref - scope->n_parameters]);
}

static hf_status write_ref(writer *w, const write_scope *scope, const tree_expression *e) {
  switch (scope->kind) {
    case SCOPE_ALIAS:
      buf_printf(write_to(w), "t%zu.c%zu", scope->alias, e->ref);
      return HF_OK;
    case SCOPE_JOIN:
      write_join_ref(w, scope, e->ref);
      return HF_OK;
    case SCOPE_LAMBDA:
      return write_lambda_ref(w, scope, e->ref);
    case SCOPE_TEXT:
      buf_text(write_to(w), scope->text);
      return HF_OK;
    default:
      return write_refuse(w, TREE_REFUSED_REFERENCE, "BOUND_REF", "a column where there is none");
  }
}

/* ----------------------------------------------------------------- classes */

static hf_status no_memory(writer *w) {
  return error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of a plan");
}

/* Notes the column that the text from `start` on names, unless a cast of it is there already. */
static hf_status note_cast(writer *w, const tree_expression *from, size_t start) {
  const char *written = w->out->text.failed ? NULL : strrchr(buf_cstr(&w->out->text) + start, '.');
  if (written == NULL) { /* of a lambda's parameter */
    return HF_OK;
  }
  for (size_t i = 0; i < w->n_casts; i++) {
    bool has_name = w->casts[i].name == from->name || (from->name != NULL && w->casts[i].name != NULL &&
                                                       strcmp(from->name, w->casts[i].name) == 0);
    if (has_name && strcmp(w->casts[i].column, written + 1) == 0) {
      return HF_OK;
    }
  }
  if (w->n_casts == w->cast_capacity) {
    size_t capacity = 2 * w->cast_capacity + 8;
    plan_cast *casts = arena_array(w->a, capacity, sizeof *casts);
    if (casts == NULL) {
      return no_memory(w);
    }
    for (size_t i = 0; i < w->n_casts; i++) {
      casts[i] = w->casts[i];
    }
    w->casts = casts;
    w->cast_capacity = capacity;
  }
  plan_cast *cast = &w->casts[w->n_casts];
  *cast = (plan_cast){arena_strdup(w->a, written + 1), from->name};
  w->n_casts++;
  return cast->column == NULL ? no_memory(w) : HF_OK;
}

static hf_status write_cast(writer *w, const write_scope *scope, const tree_expression *e);

/* row(…) cast to a struct without names: each of its fields is. */
static bool is_cast_row(const tree_expression *e) {
  const tree_expression *row = e->children[0];
  bool is_row = e->type->kind == TYPE_STRUCT && !e->try_cast && row->kind == EXPRESSION_FUNCTION &&
                strcmp(row->call->name, "row") == 0 && row->n_children == e->type->n_children;
  for (size_t i = 0; is_row && i < e->type->n_children; i++) {
    is_row = e->type->names[i][0] == '\0';
  }
  return is_row;
}

static hf_status write_cast_row(writer *w, const write_scope *scope, const tree_expression *e) {
  const tree_expression *row = e->children[0];
  buf_text(write_to(w), "row(");
  for (size_t i = 0; i < row->n_children; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    if (data_type_equal(row->children[i]->type, e->type->children[i])) {
      HF_TRY(write_expression(w, scope, row->children[i]));
    } else {
      const tree_expression field = {.kind = EXPRESSION_CAST,
                                     .type = e->type->children[i],
                                     .n_children = 1,
                                     .children = &row->children[i]};
      HF_TRY(write_cast(w, scope, &field));
    }
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_cast(writer *w, const write_scope *scope, const tree_expression *e) {
  if (!write_can_name(e->type) && is_cast_row(e)) {
    return write_cast_row(w, scope, e);
  }
  if (!write_can_name(e->type)) {
    return write_refuse(w, TREE_REFUSED_TYPE, "BOUND_CAST", "a cast to a %s that SQL cannot name",
                        type_kind_name(e->type->kind));
  }
  buf_text(write_to(w), e->try_cast ? "TRY_CAST(" : "CAST(");
  size_t start = write_to(w)->length;
  HF_TRY(write_expression(w, scope, e->children[0]));
  if (!e->try_cast && e->children[0]->kind == EXPRESSION_REF) {
    HF_TRY(note_cast(w, e->children[0], start));
  }
  buf_text(write_to(w), " AS ");
  write_type(w, e->type);
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_infix(writer *w, const write_scope *scope, const tree_expression *left,
                             const char *operator, const tree_expression * right) {
  HF_TRY(write_expression(w, scope, left));
  buf_printf(write_to(w), " %s ", operator);
  return write_expression(w, scope, right);
}

static hf_status write_comparison(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_char(write_to(w), '(');
  HF_TRY(write_infix(w, scope, e->children[0], tree_comparison_sql(e->comparison), e->children[1]));
  buf_char(write_to(w), ')');
  return HF_OK;
}

hf_status write_check_repeatable(writer *w, const tree_expression *e) {
  const char *name = tree_volatile_call(e);
  return name == NULL
             ? HF_OK
             : write_refuse(w, TREE_REFUSED_SHAPE, "BOUND_FUNCTION", "%.100s would be called twice", name);
}

static hf_status write_between(writer *w, const write_scope *scope, const tree_expression *e) {
  if (!e->lower_inclusive || !e->upper_inclusive) {
    HF_TRY(write_check_repeatable(w, e->children[0]));
  }
  buf_char(write_to(w), '(');
  if (e->lower_inclusive && e->upper_inclusive) {
    HF_TRY(write_infix(w, scope, e->children[0], "BETWEEN", e->children[1]));
    buf_text(write_to(w), " AND ");
    HF_TRY(write_expression(w, scope, e->children[2]));
  } else {
    HF_TRY(write_infix(w, scope, e->children[0], e->lower_inclusive ? ">=" : ">", e->children[1]));
    buf_text(write_to(w), " AND ");
    HF_TRY(write_infix(w, scope, e->children[0], e->upper_inclusive ? "<=" : "<", e->children[2]));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_conjunction(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_char(write_to(w), '(');
  HF_TRY(write_expressions(w, scope, e->children, e->n_children, e->is_or ? " OR " : " AND "));
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_case(writer *w, const write_scope *scope, const tree_expression *e) {
  bool is_cast = write_can_name(e->type);
  buf_text(write_to(w), is_cast ? "CAST(CASE" : "(CASE");
  for (size_t i = 0; i + 1 < e->n_children; i += 2) {
    buf_text(write_to(w), " WHEN ");
    HF_TRY(write_expression(w, scope, e->children[i]));
    buf_text(write_to(w), " THEN ");
    HF_TRY(write_expression(w, scope, e->children[i + 1]));
  }
  buf_text(write_to(w), " ELSE ");
  HF_TRY(write_expression(w, scope, e->children[e->n_children - 1]));
  buf_text(write_to(w), " END");
  if (is_cast) {
    buf_text(write_to(w), " AS ");
    write_type(w, e->type);
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_call_of(writer *w, const write_scope *scope, const char *name,
                               const tree_expression *e) {
  buf_printf(write_to(w), "%s(", name);
  HF_TRY(write_expressions(w, scope, e->children, e->n_children, ", "));
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_in(writer *w, const write_scope *scope, const tree_expression *e, const char *word) {
  buf_char(write_to(w), '(');
  HF_TRY(write_expression(w, scope, e->children[0]));
  buf_printf(write_to(w), " %s (", word);
  HF_TRY(write_expressions(w, scope, e->children + 1, e->n_children - 1, ", "));
  buf_text(write_to(w), "))");
  return HF_OK;
}

static hf_status write_operator_of(writer *w, const write_scope *scope, const tree_expression *e) {
  switch (e->operator) {
    case OPERATOR_COALESCE:
      return write_call_of(w, scope, "COALESCE", e);
    case OPERATOR_TRY:
      return write_call_of(w, scope, "TRY", e);
    case OPERATOR_IN:
      return write_in(w, scope, e, "IN");
    case OPERATOR_NOT_IN:
      return write_in(w, scope, e, "NOT IN");
    case OPERATOR_NOT:
      buf_text(write_to(w), "(NOT ");
      HF_TRY(write_expression(w, scope, e->children[0]));
      buf_char(write_to(w), ')');
      return HF_OK;
    default:
      buf_char(write_to(w), '(');
      HF_TRY(write_expression(w, scope, e->children[0]));
      buf_text(write_to(w), e->operator== OPERATOR_IS_NULL ? " IS NULL)" : " IS NOT NULL)");
      return HF_OK;
  }
}

static hf_status write_unnest(writer *w, const write_scope *scope, const tree_expression *e) {
  return write_call_of(w, scope, "unnest", e);
}

static hf_status write_constant(writer *w, const write_scope *scope, const tree_expression *e) {
  (void)scope;
  return write_value(w, e->value);
}

typedef hf_status (*expression_writer)(writer *w, const write_scope *scope, const tree_expression *e);

static const expression_writer expression_writers[] = {
    [EXPRESSION_REF] = write_ref,
    [EXPRESSION_CONSTANT] = write_constant,
    [EXPRESSION_CAST] = write_cast,
    [EXPRESSION_COMPARISON] = write_comparison,
    [EXPRESSION_CONJUNCTION] = write_conjunction,
    [EXPRESSION_BETWEEN] = write_between,
    [EXPRESSION_CASE] = write_case,
    [EXPRESSION_OPERATOR] = write_operator_of,
    [EXPRESSION_FUNCTION] = write_function,
    [EXPRESSION_AGGREGATE] = write_aggregate,
    [EXPRESSION_WINDOW] = write_window,
    [EXPRESSION_UNNEST] = write_unnest,
};

hf_status write_expression(writer *w, const write_scope *scope, const tree_expression *e) {
  if (w->out->text.length > WRITE_LARGEST_BYTES) {
    return write_refuse(w, TREE_REFUSED_DEPTH, tree_expression_kind_name(e->kind),
                        "SQL of more than %zu bytes", WRITE_LARGEST_BYTES);
  }
  return expression_writers[e->kind](w, scope, e);
}

hf_status write_expressions(writer *w, const write_scope *scope, const tree_expression *const *list, size_t n,
                            const char *separator) {
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), i > 0 ? separator : "");
    HF_TRY(write_expression(w, scope, list[i]));
  }
  return HF_OK;
}

hf_status write_orders(writer *w, const write_scope *scope, const tree_order *orders, size_t n) {
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    HF_TRY(write_expression(w, scope, orders[i].expression));
    bool nulls_first = orders[i].nulls_first && !FAULT("sql.null_order");
    buf_printf(write_to(w), "%s NULLS %s", orders[i].descending ? " DESC" : " ASC",
               nulls_first ? "FIRST" : "LAST");
  }
  return HF_OK;
}

hf_status write_aside(writer *w, const write_scope *scope, const tree_expression *e, const char **out) {
  sql_text text = {0}, *before = w->out;
  w->out = &text;
  hf_status status = write_expression(w, scope, e);
  w->out = before;
  if (status == HF_OK) {
    *out = arena_strdup(w->a, buf_cstr(&text.text));
    status = *out == NULL || text.text.failed
                 ? error_set(w->error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of an expression")
                 : HF_OK;
  }
  buf_reset(&text.text);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions made of others: calls, operators, casts, CASE, windows; alias and
 * order. Each stands in parentheses of its own, so that no part reaches into
 * another.
 * Thread: any.
 */
#include "api/expression.h"

#include <string.h>
#include <strings.h>

#define N_ROWS(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---------------------------------------------------------------------- calls */

/* Words of the grammar, not functions: in quotes nothing has these names. */
static const char *const GRAMMAR_CALLS[] = {"coalesce", "grouping", "grouping_id"};

static void add_function(making *m, const char *function) {
  for (size_t i = 0; function != NULL && i < N_ROWS(GRAMMAR_CALLS); i++) {
    if (strcasecmp(function, GRAMMAR_CALLS[i]) == 0) {
      making_text(m, GRAMMAR_CALLS[i]);
      return;
    }
  }
  making_name(m, "function", function);
}

static hf_expr *call(const char *function, const char *head, hf_expr *const *arguments, size_t n) {
  making m = {0};
  add_function(&m, function);
  making_text(&m, head);
  making_parts(&m, arguments, n);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_CALL);
}

hf_expr *hf_expr_call(const char *function, hf_expr *const *arguments, size_t n) {
  return call(function, "(", arguments, n);
}

hf_expr *hf_expr_call_distinct(const char *function, hf_expr *const *arguments, size_t n) {
  return call(function, "(DISTINCT ", arguments, n);
}

hf_expr *hf_expr_filter(hf_expr *called, hf_expr *condition) {
  making m = {0};
  bool is_call = expression_kind_of(called) == EXPRESSION_CALL || hf_expr_text(called) == NULL;
  making_part(&m, called);
  if (!is_call) {
    making_fail(&m, HF_E_INVALID_ARGUMENT, "filter what hf_expr_call gave, and before hf_expr_over",
                "only the call of an aggregate can be filtered");
  }
  making_text(&m, " FILTER (WHERE ");
  making_part(&m, condition);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_FILTERED);
}

/* ------------------------------------------------------------------ operators */

static const char *const BINARY_OPERATORS[] = {
    "!=",
    "%",
    "&",
    "*",
    "+",
    "-",
    "/",
    "//",
    "<",
    "<<",
    "<=",
    "<>",
    "=",
    ">",
    ">=",
    ">>",
    "AND",
    "GLOB",
    "ILIKE",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
    "LIKE",
    "NOT ILIKE",
    "NOT LIKE",
    "NOT SIMILAR TO",
    "OR",
    "SIMILAR TO",
    "^",
    "|",
    "||",
};
static const char *const UNARY_OPERATORS[] = {"-", "NOT", "~"};

static void add_operator(making *m, const char *const *known, size_t n, const char *operation) {
  for (size_t i = 0; operation != NULL && i < n; i++) {
    if (strcasecmp(operation, known[i]) == 0) {
      making_text(m, known[i]);
      making_text(m, " ");
      return;
    }
  }
  if (operation == NULL) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: operation");
  }
  making_fail(m, HF_E_INVALID_ARGUMENT,
              "holdfast.h lists the operators; others can be written with hf_expr_sql",
              "there is no such operator: %s", operation == NULL ? "" : operation);
}

hf_expr *hf_expr_binary(hf_expr *left, const char *operation, hf_expr *right) {
  making m = {0};
  making_text(&m, "(");
  making_part(&m, left);
  making_text(&m, " ");
  add_operator(&m, BINARY_OPERATORS, N_ROWS(BINARY_OPERATORS), operation);
  making_part(&m, right);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_unary(const char *operation, hf_expr *operand) {
  making m = {0};
  making_text(&m, "(");
  add_operator(&m, UNARY_OPERATORS, N_ROWS(UNARY_OPERATORS), operation);
  making_part(&m, operand);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_VALUE);
}

/* One part between two texts. */
static hf_expr *around(const char *head, hf_expr *part, const char *tail) {
  making m = {0};
  making_text(&m, head);
  making_part(&m, part);
  making_text(&m, tail);
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_is_null(hf_expr *operand) {
  return around("(", operand, " IS NULL)");
}

hf_expr *hf_expr_in(hf_expr *operand, hf_expr *const *list, size_t n) {
  making m = {0};
  making_text(&m, n == 0 ? "(CASE WHEN (" : "(");
  making_part(&m, operand);
  making_text(&m, n == 0 ? ") IS NULL THEN FALSE ELSE FALSE END" : " IN (");
  making_parts(&m, list, n);
  making_text(&m, n == 0 ? ")" : "))");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_between(hf_expr *operand, hf_expr *low, hf_expr *high) {
  making m = {0};
  making_text(&m, "(");
  making_part(&m, operand);
  making_text(&m, " BETWEEN ");
  making_part(&m, low);
  making_text(&m, " AND ");
  making_part(&m, high);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_case(hf_expr *const *conditions, hf_expr *const *values, size_t n, hf_expr *otherwise) {
  making m = {0};
  if (n == 0 || conditions == NULL || values == NULL) {
    making_fail(&m, HF_E_INVALID_ARGUMENT, NULL, "a case needs a condition and a value");
  }
  making_text(&m, "(CASE");
  for (size_t i = 0; i < n; i++) { /* of a list that is missing nothing can be taken */
    making_text(&m, " WHEN ");
    making_part(&m, conditions == NULL ? NULL : conditions[i]);
    making_text(&m, " THEN ");
    making_part(&m, values == NULL ? NULL : values[i]);
  }
  if (otherwise != NULL) {
    making_text(&m, " ELSE ");
    making_part(&m, otherwise);
  }
  making_text(&m, " END)");
  return making_end(&m, EXPRESSION_VALUE);
}

static hf_expr *cast(const char *head, hf_expr *operand, const char *type) {
  making m = {0};
  making_text(&m, head);
  making_part(&m, operand);
  making_text(&m, " AS ");
  making_type(&m, type);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_cast(hf_expr *operand, const char *type) {
  return cast("CAST(", operand, type);
}

hf_expr *hf_expr_try_cast(hf_expr *operand, const char *type) {
  return cast("TRY_CAST(", operand, type);
}

/* ----------------------------------------------------------- alias, order, over */

hf_expr *hf_expr_alias(hf_expr *expr, const char *name) {
  making m = {0};
  making_part(&m, expr);
  making_text(&m, " AS ");
  making_name(&m, "name", name);
  return making_end(&m, EXPRESSION_TOP);
}

hf_expr *hf_expr_order(hf_expr *expr, bool descending, hf_nulls nulls) {
  making m = {0};
  making_part(&m, expr);
  making_text(&m, descending ? " DESC" : " ASC");
  if (nulls != HF_NULLS_DEFAULT) {
    making_text(&m, nulls == HF_NULLS_FIRST ? " NULLS FIRST" : " NULLS LAST");
  }
  return making_end(&m, EXPRESSION_TOP);
}

static void add_window(making *m, const hf_window *window) {
  if (window == NULL) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: window");
    return;
  }
  const hf_list *partitions = &window->partition_by, *keys = &window->order_by;
  if ((partitions->items == NULL && partitions->n > 0) || (keys->items == NULL && keys->n > 0)) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: a list of a window");
    return;
  }
  making_text(m, " OVER (");
  for (size_t i = 0; i < partitions->n; i++) {
    making_text(m, i == 0 ? "PARTITION BY " : ", ");
    making_sql(m, "partition_by", partitions->items[i]);
  }
  for (size_t i = 0; i < keys->n; i++) {
    making_text(m, i > 0 ? ", " : partitions->n > 0 ? " ORDER BY " : "ORDER BY ");
    making_key(m, "order_by", keys->items[i]);
  }
  if (window->frame != NULL) {
    making_text(m, " ");
    making_frame(m, window->frame);
  }
  making_text(m, ")");
}

hf_expr *hf_expr_over(hf_expr *called, const hf_window *window) {
  making m = {0};
  expression_kind kind = expression_kind_of(called);
  bool is_call = kind == EXPRESSION_CALL || kind == EXPRESSION_FILTERED || hf_expr_text(called) == NULL;
  making_part(&m, called);
  if (!is_call) {
    making_fail(&m, HF_E_INVALID_ARGUMENT, "give what hf_expr_call gave",
                "only the call of a function can stand over a window");
  }
  add_window(&m, window);
  return making_end(&m, EXPRESSION_VALUE);
}

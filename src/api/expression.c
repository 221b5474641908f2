/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an hf_expr: a text, or what is wrong with it, with a count of
 * references; and how one is made out of parts. Immutable from the start.
 * Not here: the functions that make them (expression_value.c, expression_call.c),
 * texts of a program (expression_text.c).
 * Thread: any.
 */
#include "api/expression.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct hf_expr {
  atomic_uint references;
  expression_kind kind;
  hf_status status;
  char *text;    /* NULL: it is wrong */
  char *message; /* of a wrong one */
  const char *hint;
};

/* What is handed out when there is no memory for an expression: never counted, never freed. */
static const hf_expr NO_MEMORY = {.kind = EXPRESSION_VALUE, .status = HF_E_OUT_OF_MEMORY};

/* ----------------------------------------------------------------- the handle */

hf_expr *hf_expr_copy(const hf_expr *expr) {
  hf_expr *counted = (hf_expr *)expr; /* the count is not part of the value */
  if (expr == NULL) {
    making m = {0};
    making_fail(&m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: expr");
    return making_end(&m, EXPRESSION_VALUE);
  }
  if (expr != &NO_MEMORY) {
    atomic_fetch_add_explicit(&counted->references, 1, memory_order_relaxed);
  }
  return counted;
}

void hf_expr_free(hf_expr *expr) {
  if (expr == NULL || expr == &NO_MEMORY ||
      atomic_fetch_sub_explicit(&expr->references, 1, memory_order_acq_rel) > 1) {
    return;
  }
  mem_free(expr->text);
  mem_free(expr->message);
  mem_free(expr);
}

const char *hf_expr_text(const hf_expr *expr) {
  return expr == NULL ? NULL : expr->text;
}

hf_status hf_expr_error(const hf_expr *expr, hf_error *error) {
  if (expr == NULL) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "an argument is NULL: expr");
  }
  if (expr->status == HF_OK) {
    return HF_OK;
  }
  error_set(error, expr->status, "%s", expr->message == NULL ? "no memory for an expression" : expr->message);
  if (expr->hint != NULL) {
    error_hint(error, "%s", expr->hint);
  }
  return expr->status;
}

expression_kind expression_kind_of(const hf_expr *e) {
  return e == NULL ? EXPRESSION_VALUE : e->kind;
}

/* --------------------------------------------------------------------- making */

void making_fail(making *m, hf_status status, const char *hint, const char *format, ...) {
  if (m->status != HF_OK) {
    return;
  }
  va_list args;
  va_start(args, format);
  char message[240];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  message[utf8_right_length(message, strlen(message))] = '\0'; /* it may have been cut within a character */
  m->status = status;
  m->hint = hint;
  m->message = mem_strdup(message);
}

static void check_length(making *m) {
  if (m->text.length > EXPRESSION_LONGEST_BYTES) {
    making_fail(m, HF_E_LIMIT, "put the values into a DataFrame of their own, and join it",
                "an expression is longer than %zu bytes", EXPRESSION_LONGEST_BYTES);
  }
}

void making_text(making *m, const char *text) {
  if (m->status == HF_OK) {
    buf_text(&m->text, text);
    check_length(m);
  }
}

static bool is_right(making *m, const char *what, const char *text) {
  if (text == NULL) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: %s", what);
  } else if (!utf8_is_right(text)) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is not UTF-8: %s", what);
  }
  return m->status == HF_OK;
}

void making_name(making *m, const char *what, const char *name) {
  if (!is_right(m, what, name)) {
    return;
  }
  if (name[0] == '\0') {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is empty: %s", what);
    return;
  }
  buf_sql_name(&m->text, name);
  check_length(m);
}

void making_string(making *m, const char *what, const char *text) {
  if (is_right(m, what, text)) {
    buf_sql_string(&m->text, text);
    check_length(m);
  }
}

void making_part(making *m, hf_expr *part) {
  if (part == NULL) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: an expression");
  } else if (part->status != HF_OK) {
    making_fail(m, part->status, part->hint, "%s",
                part->message == NULL ? "no memory for an expression" : part->message);
  } else if (part->kind == EXPRESSION_TOP) {
    making_fail(m, HF_E_INVALID_ARGUMENT, "call hf_expr_alias and hf_expr_order last",
                "an expression with an alias or an order is a part of another: %s", part->text);
  } else {
    making_text(m, part->text);
  }
  hf_expr_free(part);
}

void making_parts(making *m, hf_expr *const *parts, size_t n) {
  if (parts == NULL && n > 0) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is NULL: a list of expressions");
    return;
  }
  for (size_t i = 0; i < n; i++) {
    making_text(m, i == 0 ? "" : ", ");
    making_part(m, parts[i]);
  }
}

hf_expr *making_end(making *m, expression_kind kind) {
  hf_expr *e = mem_zalloc(1, sizeof *e);
  if (m->status == HF_OK && m->text.failed) {
    m->status = HF_E_OUT_OF_MEMORY;
  }
  if (e == NULL) {
    mem_free(m->message);
    buf_reset(&m->text);
    return (hf_expr *)&NO_MEMORY;
  }
  atomic_init(&e->references, 1);
  e->kind = kind;
  e->status = m->status;
  e->message = m->message;
  e->hint = m->hint;
  if (m->status == HF_OK) {
    e->text = buf_take(&m->text);
    e->status = e->text == NULL ? HF_E_OUT_OF_MEMORY : HF_OK;
  }
  buf_reset(&m->text);
  return e;
}

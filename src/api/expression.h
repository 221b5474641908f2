/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An expression in the making: text to which parts are added, and the first
 * thing that is wrong with it.
 * Thread: a making belongs to one thread.
 */
#ifndef HF_API_EXPRESSION_H
#define HF_API_EXPRESSION_H

#include "base/buf.h"

/* Longest text of an expression: beyond it, it is data, and belongs into a table. */
#define EXPRESSION_LONGEST_BYTES ((size_t)1 << 20)

typedef enum expression_kind {
  EXPRESSION_VALUE,
  EXPRESSION_CALL,     /* may be filtered, and stand over a window */
  EXPRESSION_FILTERED, /* may stand over a window */
  EXPRESSION_TOP       /* with an alias or an order: no part of another */
} expression_kind;

/* Zeroed memory is an empty one. */
typedef struct making {
  buf text;
  hf_status status; /* what is wrong; the rest stays without effect then */
  const char *hint; /* static, or NULL */
  char *message;    /* owned */
} making;

void making_text(making *m, const char *text);
/* Adds a name in double quotes. Wrong: NULL, empty, not UTF-8. */
void making_name(making *m, const char *what, const char *name);
/* Adds a text in single quotes. Wrong: NULL, not UTF-8. */
void making_string(making *m, const char *what, const char *text);
/* Adds the text of an expression, which it takes. Wrong: NULL, a wrong expression, one that is complete. */
void making_part(making *m, hf_expr *part);
/* The same for several with ", " between them. */
void making_parts(making *m, hf_expr *const *parts, size_t n);
/* Says what is wrong, unless something is already. */
void making_fail(making *m, hf_status status, const char *hint, const char *format, ...) HF_PRINTF(4, 5);
/* Ends it: a new expression, wrong if the making is. Never NULL. */
hf_expr *making_end(making *m, expression_kind kind);

/* Adds text of a program as one expression in parentheses. Wrong: what could leave them. */
void making_sql(making *m, const char *what, const char *text);
/* The same as a key of an order: ASC or DESC, NULLS FIRST or NULLS LAST stand behind the parentheses. */
void making_key(making *m, const char *what, const char *text);
/* Adds the frame of a window. Wrong: what could leave the window's parentheses, or begins otherwise. */
void making_frame(making *m, const char *text);
/* Adds the text of a type. Wrong: what is no type's text. */
void making_type(making *m, const char *type);

expression_kind expression_kind_of(const hf_expr *e);

#endif

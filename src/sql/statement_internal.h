/* SPDX-License-Identifier: Apache-2.0 */
/* What reading the head of a statement shares: its tokens and how far they are read. Thread: one at a time. */
#ifndef HF_PLAN_STATEMENT_INTERNAL_H
#define HF_PLAN_STATEMENT_INTERNAL_H

#include "sql/statement.h"
#include "sql/token.h"

typedef struct statement_text {
  token_list list; /* one statement, without its ';' */
  size_t at;       /* the next token */
  arena *arena;
  hf_error *error;
} statement_text;

/* Sets STATEMENT_REFUSED at a token; NULL as hint keeps the code's own. */
hf_status statement_refuse(const statement_text *s, token t, const char *hint, hf_error *error);
/* The same for the first token, or SYNTAX with the nearest keyword when no statement starts so. */
hf_status statement_refuse_head(const statement_text *s, hf_error *error);

#endif

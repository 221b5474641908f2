/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of SQL text: where each begins and ends. What quotes and comments hide
 * stays hidden; nothing is parsed. Not here: statements (statement.c), names
 * (names.c).
 * Thread: any.
 */
#ifndef HF_PLAN_TOKEN_H
#define HF_PLAN_TOKEN_H

#include "base/arena.h"

typedef enum token_kind {
  TOKEN_END,
  TOKEN_WORD,   /* a keyword or a plain identifier */
  TOKEN_NAME,   /* "quoted" */
  TOKEN_STRING, /* '…', E'…', X'…', $tag$…$tag$ */
  TOKEN_NUMBER,
  TOKEN_SIGN, /* one character that is none of the above */
  TOKEN_OPEN  /* a quote or comment that does not end */
} token_kind;

typedef struct token {
  token_kind kind;
  size_t offset, length; /* bytes of the text */
} token;

typedef struct token_reader {
  const char *text;
  size_t length;
  size_t at; /* where the next token is looked for */
} token_reader;

/* Takes the next token, past blanks and comments. END and OPEN come again and again. */
token token_next(token_reader *reader);

typedef struct token_list {
  const char *text;
  const token *tokens; /* the last is an END behind the text */
  size_t count;        /* without the END */
} token_list;

/* Reads all tokens. Errors: SYNTAX with position for a quote or comment without end; OUT_OF_MEMORY; LIMIT. */
hf_status token_list_read(const char *text, size_t length, arena *a, token_list *out, hf_error *error);
/* Index of the token that starts at `offset`, or `count` when none does. O(log n). */
size_t token_list_find(const token_list *list, size_t offset);

/* Whether a word reads so; letter case does not count; `word` is lower case. */
bool token_is(const char *text, token t, const char *word);
/* Whether it is this one character. */
bool token_is_sign(const char *text, token t, char sign);
/* What a word, name or string stands for: quotes removed, doubled ones single; NULL for lack of memory. */
char *token_value(const char *text, token t, arena *a);
/*
 * The text with a / b as a // b, for DuckDB's json_serialize_plan, whose parser does not know of the setting
 * integer_division. Errors: SYNTAX, OUT_OF_MEMORY, LIMIT, as token_list_read.
 */
hf_status token_divide_whole(const char *sql, arena *a, const char **out, hf_error *error);
/* Length in bytes of the blank at `text` (ASCII, or a Unicode space that DuckDB takes for one); 0: no blank. */
size_t token_blank(const char *text, size_t left);

#endif

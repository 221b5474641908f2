/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a program as a part of an expression: SQL, keys, frames, types. Their
 * tokens are looked at, not parsed: brackets must match and nothing may stand
 * there that ends an expression. What the parser makes of it is found by the step
 * that uses it.
 * Thread: any.
 */
#include "api/expression.h"

#include "base/utf8.h"
#include "sql/token.h"

#include <string.h>

/* ---------------------------------------------------------------------- tokens */

/* Reads the tokens; *a is to be freed in any case. False: the making is wrong. */
static bool read_tokens(making *m, const char *what, const char *text, arena **a, token_list *out) {
  *a = NULL;
  if (text == NULL || !utf8_is_right(text)) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is %s: %s", text == NULL ? "NULL" : "not UTF-8",
                what);
    return false;
  }
  if (strlen(text) > EXPRESSION_LONGEST_BYTES) {
    making_text(m, text);
    return false;
  }
  hf_error error = {0};
  *a = arena_new();
  hf_status status = *a == NULL ? HF_E_OUT_OF_MEMORY : token_list_read(text, strlen(text), *a, out, &error);
  if (status != HF_OK) {
    making_fail(m, status, NULL, "%s: %s",
                error.message == NULL ? "no memory for an expression" : error.message, text);
  } else if (out->count == 0) {
    making_fail(m, HF_E_INVALID_ARGUMENT, NULL, "an argument is empty: %s", what);
  }
  hf_error_reset(&error);
  return m->status == HF_OK;
}

static bool is_one_of(const token_list *list, size_t i, const char *signs) {
  return list->tokens[i].kind == TOKEN_SIGN && strchr(signs, list->text[list->tokens[i].offset]) != NULL;
}

/* Deepest brackets of an expression's text. */
enum { MOST_BRACKETS = 500 };

/* Whether brackets match and no comma, semicolon or NUL stands outside of them. */
static bool is_closed(const token_list *list, size_t from, size_t end) {
  char open[MOST_BRACKETS];
  size_t depth = 0;
  for (size_t i = from; i < end; i++) {
    char sign = list->text[list->tokens[i].offset];
    if (is_one_of(list, i, "([{")) {
      if (depth == MOST_BRACKETS) {
        return false;
      }
      open[depth++] = sign == '(' ? ')' : sign == '[' ? ']' : '}';
    } else if (is_one_of(list, i, ")]}")) {
      if (depth == 0 || open[--depth] != sign) {
        return false;
      }
    } else if (is_one_of(list, i, ";") || (depth == 0 && is_one_of(list, i, ","))) {
      return false;
    }
  }
  return depth == 0;
}

static void fail_open(making *m, const char *what, const char *text) {
  making_fail(m, HF_E_SYNTAX, "give one expression; a list is given item by item",
              "the text is not one expression: %s: %s", what, text);
}

/* Copies tokens as they stand, without the comments between them. */
static void copy_tokens(making *m, const token_list *list, size_t from, size_t end) {
  for (size_t i = from; i < end && m->status == HF_OK; i++) {
    token t = list->tokens[i];
    bool apart = i > from && t.offset > list->tokens[i - 1].offset + list->tokens[i - 1].length;
    buf_text(&m->text, apart ? " " : "");
    buf_append(&m->text, list->text + t.offset, t.length);
  }
  making_text(m, "");
}

/* ------------------------------------------------------------------ expressions */

static void copy_expression(making *m, const char *what, const token_list *list, size_t end) {
  if (end == 0 || !is_closed(list, 0, end)) {
    fail_open(m, what, list->text);
    return;
  }
  making_text(m, "(");
  copy_tokens(m, list, 0, end);
  making_text(m, ")");
}

void making_sql(making *m, const char *what, const char *text) {
  arena *a;
  token_list list;
  if (read_tokens(m, what, text, &a, &list)) {
    copy_expression(m, what, &list, list.count);
  }
  arena_free(a);
}

static bool is_word(const token_list *list, size_t i, const char *word) {
  return list->tokens[i].kind == TOKEN_WORD && token_is(list->text, list->tokens[i], word);
}

void making_key(making *m, const char *what, const char *text) {
  arena *a;
  token_list list;
  if (read_tokens(m, what, text, &a, &list)) {
    const char *nulls = "", *order = "";
    size_t end = list.count;
    if (end > 2 && is_word(&list, end - 2, "nulls") &&
        (is_word(&list, end - 1, "first") || is_word(&list, end - 1, "last"))) {
      nulls = is_word(&list, end - 1, "first") ? " NULLS FIRST" : " NULLS LAST";
      end -= 2;
    }
    if (end > 1 && (is_word(&list, end - 1, "asc") || is_word(&list, end - 1, "desc"))) {
      order = is_word(&list, end - 1, "asc") ? " ASC" : " DESC";
      end--;
    }
    copy_expression(m, what, &list, end);
    making_text(m, order);
    making_text(m, nulls);
  }
  arena_free(a);
}

void making_frame(making *m, const char *text) {
  arena *a;
  token_list list;
  if (read_tokens(m, "frame", text, &a, &list)) {
    bool begins = is_word(&list, 0, "rows") || is_word(&list, 0, "range") || is_word(&list, 0, "groups");
    if (!begins || !is_closed(&list, 0, list.count)) {
      making_fail(m, HF_E_SYNTAX, "write it as ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
                  "the text is not the frame of a window: %s", text);
    }
    copy_tokens(m, &list, 0, list.count);
  }
  arena_free(a);
}

/* ------------------------------------------------------------------------ types */

/* Words, names, numbers, texts of an ENUM, and brackets around them. */
static bool is_type(const token_list *list) {
  if (list->tokens[0].kind != TOKEN_WORD && list->tokens[0].kind != TOKEN_NAME) {
    return false;
  }
  for (size_t i = 0; i < list->count; i++) {
    token_kind kind = list->tokens[i].kind;
    if (kind == TOKEN_OPEN || (kind == TOKEN_SIGN && !is_one_of(list, i, "()[],"))) {
      return false;
    }
  }
  return is_closed(list, 0, list->count);
}

void making_type(making *m, const char *type) {
  arena *a;
  token_list list;
  if (read_tokens(m, "type", type, &a, &list)) {
    if (!is_type(&list)) {
      making_fail(m, HF_E_INVALID_ARGUMENT, "write it as SQL does, such as DECIMAL(10,2) or VARCHAR[]",
                  "the text is not a type: %s", type);
    }
    copy_tokens(m, &list, 0, list.count);
  }
  arena_free(a);
}

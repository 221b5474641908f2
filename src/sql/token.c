/* SPDX-License-Identifier: Apache-2.0 */
/* The lexical rules are PostgreSQL's, as DuckDB keeps them: nested comments, E'' escapes, dollar quotes. */
#include "sql/token.h"

#include "base/buf.h"

#include <string.h>
#include <strings.h>

/* More tokens than 16 MiB of text can hold would be a hostile statement. */
enum { LONGEST_TEXT_BYTES = 16 << 20 };

/* ------------------------------------------------------------- characters */

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_part(char c) {
  return is_word_start(c) || is_digit(c) || c == '$';
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

size_t token_blank(const char *text, size_t left) {
  const unsigned char *c = (const unsigned char *)text;
  if (left == 0) {
    return 0;
  }
  if (*c == ' ' || (*c >= '\t' && *c <= '\r')) {
    return 1;
  }
  if (left >= 2 && c[0] == 0xC2 && c[1] == 0xA0) { /* U+00A0 */
    return 2;
  }
  if (left < 3) {
    return 0;
  }
  bool is_space =
      (c[0] == 0xE2 && c[1] == 0x80 && ((c[2] >= 0x80 && c[2] <= 0x8B) || c[2] == 0xAF)) ||
      (c[0] == 0xE2 && c[1] == 0x81 && (c[2] == 0x9F || c[2] == 0xA0)) ||
      (c[0] == 0xE3 && c[1] == 0x80 && c[2] == 0x80) ||
      (c[0] == 0xEF && c[1] == 0xBB && c[2] == 0xBF); /* U+2000–200B, 202F, 205F, 2060, 3000, FEFF */
  return is_space ? 3 : 0;
}

/* ----------------------------------------------------------------- quotes */

/* Each returns the offset behind the closing mark, or 0 when there is none. */

static size_t quote_end(const token_reader *r, size_t at, char quote, bool has_escapes) {
  for (at++; at < r->length; at++) {
    if (has_escapes && r->text[at] == '\\') {
      at++;
      continue;
    }
    if (r->text[at] != quote) {
      continue;
    }
    if (at + 1 < r->length && r->text[at + 1] == quote) {
      at++;
      continue;
    }
    return at + 1;
  }
  return 0;
}

/* Length of "$tag$" at `at`, or 0: a parameter such as $1, or a lone sign. */
static size_t dollar_tag(const token_reader *r, size_t at) {
  size_t end = at + 1;
  if (end < r->length && is_digit(r->text[end])) {
    return 0;
  }
  while (end < r->length && (is_word_start(r->text[end]) || is_digit(r->text[end]))) {
    end++;
  }
  return end < r->length && r->text[end] == '$' ? end + 1 - at : 0;
}

static size_t dollar_end(const token_reader *r, size_t at, size_t tag) {
  const char *from = r->text + at + tag;
  const char *found = memmem(from, r->length - at - tag, r->text + at, tag);
  return found == NULL ? 0 : (size_t)(found - r->text) + tag;
}

static size_t comment_end(const token_reader *r, size_t at) {
  size_t depth = 1;
  for (at += 2; at + 1 < r->length; at++) {
    if (r->text[at] == '/' && r->text[at + 1] == '*') {
      depth++;
      at++;
    } else if (r->text[at] == '*' && r->text[at + 1] == '/') {
      at++;
      if (--depth == 0) {
        return at + 1;
      }
    }
  }
  return 0;
}

/* ----------------------------------------------------------------- tokens */

static bool looking_at(const token_reader *r, const char *two) {
  return r->at + 1 < r->length && r->text[r->at] == two[0] && r->text[r->at + 1] == two[1];
}

/* Moves past blanks and comments; false at a comment without end. */
static bool skip_blanks(token_reader *r) {
  while (r->at < r->length) {
    size_t blank = token_blank(r->text + r->at, r->length - r->at);
    if (blank > 0) {
      r->at += blank;
    } else if (looking_at(r, "--")) {
      const char *line_end = memchr(r->text + r->at, '\n', r->length - r->at);
      r->at = line_end == NULL ? r->length : (size_t)(line_end - r->text) + 1;
    } else if (looking_at(r, "/*")) {
      size_t end = comment_end(r, r->at);
      if (end == 0) {
        return false;
      }
      r->at = end;
    } else {
      break;
    }
  }
  return true;
}

/* 1, 1_000, 0x1F, .5, 1e-3: signs behind an exponent belong to it. */
static size_t number_end(const token_reader *r, size_t at) {
  bool is_hex = r->text[at] == '0' && at + 1 < r->length && lower(r->text[at + 1]) == 'x';
  for (; at < r->length; at++) {
    char c = r->text[at];
    bool is_exponent_sign = (c == '+' || c == '-') && lower(r->text[at - 1]) == 'e' && !is_hex;
    if (!is_word_part(c) && c != '.' && !is_exponent_sign) {
      break;
    }
  }
  return at;
}

static size_t word_end(const token_reader *r, size_t at) {
  while (at < r->length && is_word_part(r->text[at]) && token_blank(r->text + at, r->length - at) == 0) {
    at++;
  }
  return at;
}

/* A letter directly before a quote makes the string special: E'…', X'…', B'…', N'…'. */
static bool is_string_prefix(const token_reader *r) {
  return looking_at(r, "e'") || looking_at(r, "E'") || looking_at(r, "x'") || looking_at(r, "X'") ||
         looking_at(r, "b'") || looking_at(r, "B'") || looking_at(r, "n'") || looking_at(r, "N'");
}

/* Finds kind and end of the token at r->at; end 0: it has none. */
static token_kind token_bounds(const token_reader *r, size_t *end) {
  char c = r->text[r->at];
  size_t tag = c == '$' ? dollar_tag(r, r->at) : 0;
  if (c == '\'') {
    *end = quote_end(r, r->at, '\'', false);
    return TOKEN_STRING;
  }
  if (is_string_prefix(r)) {
    *end = quote_end(r, r->at + 1, '\'', lower(c) == 'e');
    return TOKEN_STRING;
  }
  if (tag > 0) {
    *end = dollar_end(r, r->at, tag);
    return TOKEN_STRING;
  }
  if (c == '"') {
    *end = quote_end(r, r->at, '"', false);
    return TOKEN_NAME;
  }
  if (is_digit(c) || (c == '.' && r->at + 1 < r->length && is_digit(r->text[r->at + 1]))) {
    *end = number_end(r, r->at);
    return TOKEN_NUMBER;
  }
  if (is_word_start(c)) {
    *end = word_end(r, r->at);
    return TOKEN_WORD;
  }
  *end = r->at + 1;
  return TOKEN_SIGN;
}

token token_next(token_reader *reader) {
  if (!skip_blanks(reader)) {
    return (token){TOKEN_OPEN, reader->at, reader->length - reader->at};
  }
  if (reader->at >= reader->length) {
    return (token){TOKEN_END, reader->length, 0};
  }
  size_t end = 0;
  token t = {.kind = token_bounds(reader, &end), .offset = reader->at, .length = 0};
  if (end == 0) {
    return (token){TOKEN_OPEN, reader->at, reader->length - reader->at};
  }
  t.length = end - t.offset;
  reader->at = end;
  return t;
}

/* ------------------------------------------------------------------ lists */

static hf_status refuse_open(const char *text, token t, hf_error *error) {
  const char *what = text[t.offset] == '/' ? "comment" : "quoted text";
  error_set(error, HF_E_SYNTAX, "a %s has no end", what);
  error_hint(error, "close the %s that starts at the position given", what);
  if (error != NULL) {
    error->position = (int64_t)t.offset;
  }
  return HF_E_SYNTAX;
}

hf_status token_list_read(const char *text, size_t length, arena *a, token_list *out, hf_error *error) {
  if (length > LONGEST_TEXT_BYTES) {
    return error_set(error, HF_E_LIMIT, "SQL text is longer than %d bytes: %zu", LONGEST_TEXT_BYTES, length);
  }
  size_t count = 0;
  token_reader counter = {text, length, 0};
  token t = token_next(&counter);
  for (; t.kind != TOKEN_END; t = token_next(&counter)) {
    if (t.kind == TOKEN_OPEN) {
      return refuse_open(text, t, error);
    }
    count++;
  }
  token *tokens = arena_array(a, count + 1, sizeof *tokens);
  if (tokens == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the tokens of SQL text");
  }
  token_reader reader = {text, length, 0};
  for (size_t i = 0; i <= count; i++) {
    tokens[i] = token_next(&reader);
  }
  *out = (token_list){.text = text, .tokens = tokens, .count = count};
  return HF_OK;
}

size_t token_list_find(const token_list *list, size_t offset) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->tokens[middle].offset < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < list->count && list->tokens[low].offset == offset ? low : list->count;
}

static bool is_slash_at(const token_list *list, size_t i, size_t offset) {
  return list->tokens[i].offset == offset && token_is_sign(list->text, list->tokens[i], '/');
}

/* Whether the token is a division: one slash, and none beside it. */
static bool is_division(const token_list *list, size_t i) {
  size_t at = list->tokens[i].offset;
  bool has_left = i > 0 && is_slash_at(list, i - 1, at - 1);
  return is_slash_at(list, i, at) && !has_left && !is_slash_at(list, i + 1, at + 1);
}

hf_status token_divide_whole(const char *sql, arena *a, const char **out, hf_error *error) {
  token_list list = {0};
  HF_TRY(token_list_read(sql, strlen(sql), a, &list, error));
  buf text = {0};
  size_t copied = 0;
  for (size_t i = 0; i < list.count; i++) {
    if (is_division(&list, i)) {
      size_t end = list.tokens[i].offset + 1;
      buf_append(&text, sql + copied, end - copied);
      buf_char(&text, '/');
      copied = end;
    }
  }
  buf_text(&text, sql + copied);
  *out = text.failed ? NULL : arena_strndup(a, buf_cstr(&text), text.length);
  buf_reset(&text);
  return *out == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for SQL text") : HF_OK;
}

bool token_is(const char *text, token t, const char *word) {
  return t.kind == TOKEN_WORD && strlen(word) == t.length &&
         strncasecmp(text + t.offset, word, t.length) == 0;
}

bool token_is_sign(const char *text, token t, char sign) {
  return t.kind == TOKEN_SIGN && text[t.offset] == sign;
}

/* ----------------------------------------------------------------- values */

static char *unquoted(const char *text, size_t length, char quote, bool has_escapes, arena *a) {
  char *value = arena_alloc(a, length + 1);
  if (value == NULL) {
    return NULL;
  }
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    bool skips = (text[i] == quote || (has_escapes && text[i] == '\\')) && i + 1 < length;
    if (skips) {
      i++;
    }
    bool is_letter = skips && text[i - 1] == '\\';
    value[used++] = is_letter && text[i] == 'n' ? '\n' : is_letter && text[i] == 't' ? '\t' : text[i];
  }
  return value;
}

char *token_value(const char *text, token t, arena *a) {
  const char *start = text + t.offset;
  if (t.kind == TOKEN_NAME || (t.kind == TOKEN_STRING && *start == '\'')) {
    return unquoted(start + 1, t.length - 2, *start, false, a);
  }
  if (t.kind == TOKEN_STRING && *start == '$') {
    const char *tag_end = memchr(start + 1, '$', t.length - 1);
    size_t tag = (size_t)(tag_end - start) + 1;
    return arena_strndup(a, start + tag, t.length - 2 * tag);
  }
  if (t.kind == TOKEN_STRING) {
    return unquoted(start + 2, t.length - 3, '\'', lower(*start) == 'e', a);
  }
  return arena_strndup(a, start, t.length);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the head of a statement: one function a head, chosen by a table. The
 * query inside is only cut out; relation.c has it parsed. What is refused stands
 * in statement_refused.c.
 */
#include "sql/statement_internal.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------ token access */

static token peek(const statement_text *s) {
  return s->list.tokens[s->at < s->list.count ? s->at : s->list.count];
}

static bool is_at_end(const statement_text *s) {
  return s->at >= s->list.count;
}

/* Takes the next token if it is this word. */
static bool take(statement_text *s, const char *word) {
  if (!is_at_end(s) && token_is(s->list.text, peek(s), word)) {
    s->at++;
    return true;
  }
  return false;
}

static bool take_sign(statement_text *s, char sign) {
  if (!is_at_end(s) && token_is_sign(s->list.text, peek(s), sign)) {
    s->at++;
    return true;
  }
  return false;
}

static hf_status out_of_memory(const statement_text *s) {
  return error_set(s->error, HF_E_OUT_OF_MEMORY, "no memory for a statement");
}

/* Says what was expected at the next token. */
static hf_status expected(const statement_text *s, const char *what) {
  token t = peek(s);
  if (t.kind == TOKEN_END) {
    error_set(s->error, HF_E_SYNTAX, "the statement ends where %s is expected", what);
  } else {
    int length = t.length > 60 ? 60 : (int)t.length;
    error_set(s->error, HF_E_SYNTAX, "expected %s, found: %.*s", what, length, s->list.text + t.offset);
  }
  if (s->error != NULL) {
    s->error->position = (int64_t)t.offset;
  }
  return HF_E_SYNTAX;
}

static hf_status expect(statement_text *s, const char *word, const char *shown) {
  return take(s, word) ? HF_OK : expected(s, shown);
}

static hf_status expect_end(const statement_text *s) {
  return is_at_end(s) ? HF_OK : expected(s, "the end of the statement");
}

static hf_status unsupported(const statement_text *s, const char *what, const char *hint) {
  error_set(s->error, HF_E_UNSUPPORTED, "this feature is not there: %s", what);
  error_hint(s->error, "%s", hint);
  if (s->error != NULL) {
    s->error->position = (int64_t)peek(s).offset;
  }
  return HF_E_UNSUPPORTED;
}

/* ------------------------------------------------------------------- parts */

static hf_status read_identifier(statement_text *s, const char *what, const char **out) {
  token t = peek(s);
  if (t.kind != TOKEN_WORD && t.kind != TOKEN_NAME) {
    return expected(s, what);
  }
  *out = token_value(s->list.text, t, s->arena);
  if (*out == NULL) {
    return out_of_memory(s);
  }
  if (**out == '\0') {
    return expected(s, what);
  }
  s->at++;
  return HF_OK;
}

/* name, main.name or memory.main.name: names have one level. */
static hf_status read_name(statement_text *s, const char **out) {
  size_t start = s->at;
  const char *parts[3] = {NULL, NULL, NULL};
  size_t n = 0;
  do {
    if (n == 3) {
      return expected(s, "a name of one part");
    }
    HF_TRY(read_identifier(s, "a name", &parts[n++]));
  } while (take_sign(s, '.'));
  bool is_plain =
      n == 1 || (strcasecmp(parts[n - 2], "main") == 0 && (n == 2 || strcasecmp(parts[0], "memory") == 0));
  if (!is_plain) {
    s->at = start;
    return expected(s, "a name of one part");
  }
  *out = parts[n - 1];
  return HF_OK;
}

/* Setting names have dots: sql.time_zone. */
static hf_status read_key(statement_text *s, const char **out) {
  const char *part = NULL;
  HF_TRY(read_identifier(s, "the name of a setting", &part));
  const char *key = part;
  while (take_sign(s, '.')) {
    HF_TRY(read_identifier(s, "the name of a setting", &part));
    key = arena_printf(s->arena, "%s.%s", key, part);
    if (key == NULL) {
      return out_of_memory(s);
    }
  }
  *out = key;
  return HF_OK;
}

/* Whether a query starts at the token. */
static bool starts_query(const statement_text *s, token t) {
  static const char *const words[] = {"select", "from",        "values",       "with",
                                      "table",  "describe",    "desc",         "summarize",
                                      "pivot",  "pivot_wider", "pivot_longer", "unpivot"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (token_is(s->list.text, t, words[i])) {
      return true;
    }
  }
  return token_is_sign(s->list.text, t, '(');
}

/* Takes the rest of the statement as a query. */
static hf_status read_query(statement_text *s, statement *out) {
  token first = peek(s);
  if (!starts_query(s, first)) {
    return expected(s, "a query");
  }
  token last = s->list.tokens[s->list.count - 1];
  out->query = arena_strndup(s->arena, s->list.text + first.offset, last.offset + last.length - first.offset);
  out->query_position = (int64_t)first.offset;
  s->at = s->list.count;
  return out->query == NULL ? out_of_memory(s) : HF_OK;
}

/* -------------------------------------------------------------- statements */

static hf_status read_select(statement_text *s, statement *out) {
  out->kind = STATEMENT_QUERY;
  s->at = 0;
  return read_query(s, out);
}

static hf_status set_partitions(const statement_text *s, const char *value, statement *out) {
  char *end = NULL;
  out->partitions = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end != '\0' || out->partitions == 0) {
    error_set(s->error, HF_E_INVALID_ARGUMENT, "partitions must be a number above 0: %.100s", value);
    return HF_E_INVALID_ARGUMENT;
  }
  return HF_OK;
}

static hf_status set_option(const statement_text *s, const char *name, const char *value, statement *out) {
  if (strcasecmp(name, "storageLevel") == 0) {
    out->level = value;
    return HF_OK;
  }
  if (strcasecmp(name, "partitionBy") == 0) {
    out->partition_by = value;
    return HF_OK;
  }
  return set_partitions(s, value, out);
}

static hf_status check_option(const statement_text *s, const char *name) {
  if (strcasecmp(name, "storageLevel") != 0 && strcasecmp(name, "partitionBy") != 0 &&
      strcasecmp(name, "partitions") != 0) {
    error_set(s->error, HF_E_INVALID_ARGUMENT, "CACHE TABLE has no such option: %.100s", name);
    error_hint(s->error, "its options are 'storageLevel', 'partitionBy' and 'partitions'");
    return HF_E_INVALID_ARGUMENT;
  }
  return HF_OK;
}

/* ('storageLevel' 'X', 'partitionBy' 'a, b', 'partitions' '8'); each may have a = between. */
static hf_status read_options(statement_text *s, statement *out) {
  if (!take_sign(s, '(')) {
    return expected(s, "( behind OPTIONS");
  }
  do {
    token key = peek(s);
    char *name = token_value(s->list.text, key, s->arena);
    if (key.kind != TOKEN_STRING && key.kind != TOKEN_WORD && key.kind != TOKEN_NAME) {
      return expected(s, "an option such as 'storageLevel'");
    }
    if (name == NULL) {
      return out_of_memory(s);
    }
    HF_TRY(check_option(s, name));
    s->at++;
    take_sign(s, '=');
    token value = peek(s);
    if (value.kind != TOKEN_STRING && value.kind != TOKEN_WORD && value.kind != TOKEN_NUMBER) {
      return expected(s, strcasecmp(name, "storageLevel") == 0 ? "a storage level such as 'MEMORY_AND_DISK'"
                                                               : "the value of the option");
    }
    const char *text = token_value(s->list.text, value, s->arena);
    if (text == NULL) {
      return out_of_memory(s);
    }
    s->at++;
    HF_TRY(set_option(s, name, text, out));
  } while (take_sign(s, ','));
  if (out->partitions > 0 && out->partition_by == NULL) {
    error_set(s->error, HF_E_INVALID_ARGUMENT, "partitions without the columns to partition by");
    error_hint(s->error, "add 'partitionBy' 'column, …' to the options");
    return HF_E_INVALID_ARGUMENT;
  }
  return take_sign(s, ')') ? HF_OK : expected(s, ")");
}

static hf_status read_cache(statement_text *s, statement *out) {
  out->kind = STATEMENT_CACHE_TABLE;
  out->lazy = take(s, "lazy");
  HF_TRY(expect(s, "table", "TABLE"));
  HF_TRY(read_name(s, &out->name));
  if (take(s, "options")) {
    HF_TRY(read_options(s, out));
  }
  if (is_at_end(s)) {
    return HF_OK;
  }
  take(s, "as");
  return read_query(s, out);
}

static hf_status read_if_exists(statement_text *s, statement *out) {
  if (take(s, "if")) {
    HF_TRY(expect(s, "exists", "EXISTS"));
    out->if_exists = true;
  }
  return HF_OK;
}

static hf_status read_uncache(statement_text *s, statement *out) {
  out->kind = STATEMENT_UNCACHE_TABLE;
  HF_TRY(expect(s, "table", "TABLE"));
  HF_TRY(read_if_exists(s, out));
  HF_TRY(read_name(s, &out->name));
  return expect_end(s);
}

static hf_status read_clear(statement_text *s, statement *out) {
  out->kind = STATEMENT_CLEAR_CACHE;
  HF_TRY(expect(s, "cache", "CACHE"));
  return expect_end(s);
}

static hf_status read_refresh(statement_text *s, statement *out) {
  token path = peek(s);
  if (path.kind == TOKEN_STRING || path.kind == TOKEN_NAME) {
    out->kind = STATEMENT_REFRESH_PATH;
    out->name = token_value(s->list.text, path, s->arena);
    s->at++;
    return out->name == NULL ? out_of_memory(s) : expect_end(s);
  }
  out->kind = STATEMENT_REFRESH_TABLE;
  HF_TRY(expect(s, "table", "TABLE, or a path in quotes"));
  HF_TRY(read_name(s, &out->name));
  return expect_end(s);
}

static hf_status read_show(statement_text *s, statement *out) {
  if (take(s, "cache")) {
    out->kind = STATEMENT_SHOW_CACHE;
    return expect_end(s);
  }
  if (take(s, "tables") || take(s, "views")) {
    out->kind = STATEMENT_SHOW_TABLES;
    return expect_end(s);
  }
  if (take(s, "all") || take(s, "settings")) {
    out->kind = take(s, "tables") ? STATEMENT_SHOW_TABLES : STATEMENT_SHOW_SETTING;
    out->name = out->kind == STATEMENT_SHOW_SETTING ? "all" : NULL;
    return expect_end(s);
  }
  out->kind = STATEMENT_SHOW_SETTING;
  HF_TRY(read_key(s, &out->name));
  return expect_end(s);
}

static hf_status refuse_create(statement_text *s) {
  token what = peek(s);
  const char *hint = token_is(s->list.text, what, "table")
                         ? "hold the result with CACHE TABLE name AS query, or name it with CREATE VIEW"
                         : NULL;
  return statement_refuse(s, is_at_end(s) ? s->list.tokens[0] : what, hint, s->error);
}

static hf_status read_create(statement_text *s, statement *out) {
  out->kind = STATEMENT_CREATE_VIEW;
  if (take(s, "or")) {
    HF_TRY(expect(s, "replace", "REPLACE"));
    out->or_replace = true;
  }
  if (!take(s, "temp")) {
    take(s, "temporary");
  }
  if (!take(s, "view")) {
    return refuse_create(s);
  }
  if (take(s, "if")) {
    HF_TRY(expect(s, "not", "NOT"));
    HF_TRY(expect(s, "exists", "EXISTS"));
    out->if_not_exists = true;
  }
  HF_TRY(read_name(s, &out->name));
  if (!is_at_end(s) && token_is_sign(s->list.text, peek(s), '(')) {
    return unsupported(s, "a column list of a view", "name the columns in the query: SELECT x AS a, y AS b");
  }
  HF_TRY(expect(s, "as", "AS"));
  return read_query(s, out);
}

static hf_status read_drop(statement_text *s, statement *out) {
  out->kind = STATEMENT_DROP_VIEW;
  if (!take(s, "view")) {
    token what = peek(s);
    const char *hint = token_is(s->list.text, what, "table") ? "UNCACHE TABLE lets a cached table go" : NULL;
    return statement_refuse(s, is_at_end(s) ? s->list.tokens[0] : what, hint, s->error);
  }
  HF_TRY(read_if_exists(s, out));
  HF_TRY(read_name(s, &out->name));
  return expect_end(s);
}

static hf_status read_explain(statement_text *s, statement *out) {
  out->kind = STATEMENT_EXPLAIN;
  out->analyze = take(s, "analyze") || take(s, "analyse");
  token next = s->list.tokens[s->at + 1 < s->list.count ? s->at + 1 : s->list.count];
  if (!is_at_end(s) && token_is_sign(s->list.text, peek(s), '(') && token_is(s->list.text, next, "format")) {
    return unsupported(s, "EXPLAIN (FORMAT …)", "use EXPLAIN or EXPLAIN ANALYZE alone");
  }
  return read_query(s, out);
}

/* Cuts the value out: a string's content, else the text of all tokens that are left. */
static hf_status read_value(statement_text *s, statement *out) {
  if (is_at_end(s)) {
    return expected(s, "a value");
  }
  token first = peek(s), last = s->list.tokens[s->list.count - 1];
  if (s->at + 1 == s->list.count) {
    out->value = token_value(s->list.text, first, s->arena);
  } else {
    out->value =
        arena_strndup(s->arena, s->list.text + first.offset, last.offset + last.length - first.offset);
  }
  s->at = s->list.count;
  return out->value == NULL ? out_of_memory(s) : HF_OK;
}

static hf_status read_set(statement_text *s, statement *out) {
  out->kind = STATEMENT_SET;
  if (!is_at_end(s) && token_is(s->list.text, peek(s), "variable")) {
    return statement_refuse(s, peek(s), "put the value into the query", s->error);
  }
  if (!take(s, "session")) {
    take(s, "local");
  }
  if (take(s, "time")) {
    HF_TRY(expect(s, "zone", "ZONE"));
    out->name = "sql.time_zone";
    return read_value(s, out);
  }
  HF_TRY(read_key(s, &out->name));
  if (!take_sign(s, '=') && !take(s, "to")) {
    return expected(s, "= or TO");
  }
  if (s->at + 1 == s->list.count && take(s, "default")) {
    out->kind = STATEMENT_RESET;
    return HF_OK;
  }
  return read_value(s, out);
}

static hf_status read_reset(statement_text *s, statement *out) {
  out->kind = STATEMENT_RESET;
  if (!take(s, "session")) {
    take(s, "local");
  }
  HF_TRY(read_key(s, &out->name));
  return expect_end(s);
}

/* ------------------------------------------------------------------- doors */

/* Ends the list before its ';'; a second statement is an error. */
static hf_status cut_at_semicolon(statement_text *s) {
  size_t last = s->list.count;
  while (last > 0 && token_is_sign(s->list.text, s->list.tokens[last - 1], ';')) {
    last--;
  }
  for (size_t i = 0; i < last; i++) {
    if (token_is_sign(s->list.text, s->list.tokens[i], ';')) {
      s->at = i + 1;
      error_set(s->error, HF_E_SYNTAX, "one statement is expected, found more behind the ';'");
      error_hint(s->error, "send the statements one at a time");
      if (s->error != NULL) {
        s->error->position = (int64_t)peek(s).offset;
      }
      return HF_E_SYNTAX;
    }
  }
  token *cut = arena_array(s->arena, last + 1, sizeof *cut);
  if (cut == NULL) {
    return out_of_memory(s);
  }
  memcpy(cut, s->list.tokens, last * sizeof *cut);
  cut[last] = (token){.kind = TOKEN_END, .offset = s->list.tokens[last].offset, .length = 0};
  s->list.tokens = cut;
  s->list.count = last;
  return HF_OK;
}

static hf_status check_text(const char *sql, size_t length, hf_error *error) {
  size_t right = utf8_right_length(sql, length);
  if (right == length) {
    return HF_OK;
  }
  error_set(error, HF_E_SYNTAX, "the text is not UTF-8: byte 0x%02x", (unsigned char)sql[right]);
  error_hint(error, "send the statement in UTF-8");
  if (error != NULL) {
    error->position = (int64_t)right;
  }
  return HF_E_SYNTAX;
}

hf_status statement_read(const char *sql, arena *a, statement *out, hf_error *error) {
  static const struct {
    const char *word;
    hf_status (*read)(statement_text *, statement *);
  } heads[] = {
      {"cache", read_cache}, {"uncache", read_uncache}, {"clear", read_clear}, {"refresh", read_refresh},
      {"show", read_show},   {"create", read_create},   {"drop", read_drop},   {"explain", read_explain},
      {"set", read_set},     {"reset", read_reset},
  };
  statement_text s = {.arena = a, .error = error};
  statement result = {.kind = STATEMENT_EMPTY, .query_position = -1};
  size_t length = strlen(sql);
  HF_TRY(check_text(sql, length, error));
  HF_TRY(token_list_read(sql, length, a, &s.list, error));
  HF_TRY(cut_at_semicolon(&s));
  if (s.list.count == 0) {
    *out = result;
    return HF_OK;
  }
  hf_status (*read)(statement_text *, statement *) = starts_query(&s, s.list.tokens[0]) ? read_select : NULL;
  for (size_t i = 0; read == NULL && i < sizeof heads / sizeof heads[0]; i++) {
    read = token_is(sql, s.list.tokens[0], heads[i].word) ? heads[i].read : NULL;
  }
  if (read == NULL) {
    return statement_refuse_head(&s, error);
  }
  s.at = 1;
  HF_TRY(read(&s, &result));
  *out = result;
  return HF_OK;
}

size_t statement_end(const char *script, size_t length) {
  token_reader reader = {script, length, 0};
  for (;;) {
    token t = token_next(&reader);
    if (t.kind == TOKEN_END || t.kind == TOKEN_OPEN) {
      return 0;
    }
    if (token_is_sign(script, t, ';')) {
      return t.offset + t.length;
    }
  }
}

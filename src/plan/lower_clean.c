/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that DuckDB makes of a lowered query, such as the name of a column that
 * is a sub-query, brought back to what the user wrote: (SELECT c0 AS a FROM
 * hf_scan('0')) AS v, and hf_r0 AS v, become v.
 */
#include "plan/lower_internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (unsigned char)c >= 0x80;
}

/* Behind an identifier, plain or quoted; `at` itself when there is none. */
static const char *skip_identifier(const char *at) {
  if (*at != '"') {
    while (is_name_part(*at)) {
      at++;
    }
    return at;
  }
  for (const char *c = at + 1; *c != '\0'; c++) {
    if (*c == '"' && c[1] != '"') {
      return c + 1;
    }
    c += *c == '"';
  }
  return at;
}

static const char *skip_text(const char *at, const char *text) {
  size_t length = strlen(text);
  return at != NULL && strncmp(at, text, length) == 0 ? at + length : NULL;
}

/* Behind "c0 AS a, c1 AS b", or NULL. */
static const char *skip_columns(const char *at) {
  if (*at == '*') {
    return at + 1;
  }
  for (;;) {
    if (*at != 'c' || at[1] < '0' || at[1] > '9') {
      return NULL;
    }
    at = skip_identifier(at);
    const char *alias = skip_text(at, " AS ");
    at = alias == NULL ? at : skip_identifier(alias);
    const char *more = skip_text(at, ", ");
    if (more == NULL) {
      return at;
    }
    at = more;
  }
}

/* Matches a scan that lowering wrote; returns where it ends, or NULL. */
static const char *match_scan(const lowered *l, const char *at, const char **original) {
  const char *columns = skip_text(at, "(SELECT ");
  const char *behind = columns == NULL ? NULL : skip_columns(columns);
  const char *number = skip_text(behind, " FROM hf_scan('");
  if (number == NULL) {
    return NULL;
  }
  char *end = NULL;
  unsigned long input = strtoul(number, &end, 10);
  const char *close = skip_text(end, "'))");
  if (close == NULL || input >= l->n_inputs) {
    return NULL;
  }
  *original = l->inputs[input].name;
  return close;
}

static const char *match_made_name(const lowered *l, const char *at, const char **original) {
  for (size_t i = l->n_made_names; i > 0; i--) {
    const char *end = skip_text(at, l->made_names[i - 1].made);
    if (end != NULL && !is_name_part(*end)) {
      *original = l->made_names[i - 1].original;
      return end;
    }
  }
  return NULL;
}

/* Whether the alias is one that lowering added: the name itself, or a file's first part. */
static bool is_added_alias(const char *alias, size_t length, const char *original) {
  const char *slash = strrchr(original, '/');
  const char *name = slash == NULL ? original : slash + 1;
  bool is_quoted = length > 1 && *alias == '"';
  alias += is_quoted ? 1 : 0;
  length -= is_quoted ? 2 : 0;
  bool is_stem = strcspn(name, ".") == length && strncmp(alias, name, length) == 0;
  return is_stem || (strlen(original) == length && strncmp(alias, original, length) == 0);
}

static void append_original(const char *original, buf *out) {
  bool is_plain = *original != '\0' && *skip_identifier(original) == '\0' && *original != '"';
  if (is_plain) {
    buf_text(out, original);
  } else {
    buf_sql_string(out, original);
  }
}

const char *lower_clean_text(const lowered *l, const char *text, arena *a) {
  buf out = {0};
  bool changed = false;
  for (const char *at = text; *at != '\0';) {
    const char *original = NULL;
    const char *end = *at == '(' ? match_scan(l, at, &original) : NULL;
    bool starts_name = at == text || !is_name_part(at[-1]);
    if (end == NULL && starts_name) {
      end = match_made_name(l, at, &original);
    }
    if (end == NULL) {
      buf_char(&out, *at++);
      continue;
    }
    changed = true;
    append_original(original, &out);
    const char *alias = skip_text(end, " AS ");
    const char *alias_end = alias == NULL ? end : skip_identifier(alias);
    at = alias != NULL && is_added_alias(alias, (size_t)(alias_end - alias), original) ? alias_end : end;
  }
  const char *cleaned = !changed ? text : out.failed ? NULL : arena_strndup(a, buf_cstr(&out), out.length);
  buf_reset(&out);
  return cleaned;
}

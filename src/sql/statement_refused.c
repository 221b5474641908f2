/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements that are refused, a row each, with what to do instead; and the
 * words that start an accepted one, for suggestions.
 */
#include "sql/statement_internal.h"

#include "base/nearest.h"

static const struct {
  const char *word; /* lower case; sorted */
  const char *hint; /* NULL: the code's own */
} REFUSED[] = {
    {"abort", NULL},
    {"alter", NULL},
    {"analyze", NULL},
    {"attach", "read files by name, such as FROM 'trips.parquet'; databases are not attached"},
    {"begin", "every statement stands for itself; there are no transactions"},
    {"call", NULL},
    {"checkpoint", NULL},
    {"comment", NULL},
    {"commit", "every statement stands for itself; there are no transactions"},
    {"copy", "collect the result with the client, or hold it with CACHE TABLE"},
    {"deallocate", NULL},
    {"delete", "files and held results are not changed in place: select the rows that should stay"},
    {"detach", NULL},
    {"end", NULL},
    {"execute", NULL},
    {"export", NULL},
    {"force", NULL},
    {"grant", NULL},
    {"import", NULL},
    {"insert", "files and held results are not changed in place: use UNION ALL in a query"},
    {"install", "extensions are fixed when the engine is installed"},
    {"load", "extensions are fixed when the engine is installed"},
    {"merge", NULL},
    {"pragma", "use SET and SHOW with a key of docs/configuration.md"},
    {"prepare", NULL},
    {"revoke", NULL},
    {"rollback", "every statement stands for itself; there are no transactions"},
    {"start", NULL},
    {"transaction", NULL},
    {"truncate", NULL},
    {"update", "files and held results are not changed in place: select the changed rows"},
    {"use", "names have one level: a view, a cached table or a file"},
    {"vacuum", NULL},
};

static const char *const ACCEPTED[] = {
    "SELECT",  "FROM",  "VALUES",  "WITH", "TABLE",  "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT", "CACHE",
    "UNCACHE", "CLEAR", "REFRESH", "SHOW", "CREATE", "DROP",     "EXPLAIN",   "SET",   "RESET"};

hf_status statement_refuse(const statement_text *s, token t, const char *hint, hf_error *error) {
  char *word = token_value(s->list.text, t, s->arena);
  for (char *c = word; c != NULL && *c != '\0'; c++) {
    *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
  }
  error_set(error, HF_E_STATEMENT_REFUSED, "this statement is not accepted: %s", word == NULL ? "" : word);
  if (hint != NULL) {
    error_hint(error, "%s", hint);
  }
  if (error != NULL) {
    error->position = (int64_t)t.offset;
  }
  return HF_E_STATEMENT_REFUSED;
}

hf_status statement_refuse_head(const statement_text *s, hf_error *error) {
  const char *text = s->list.text;
  token head = s->list.tokens[0];
  for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
    if (token_is(text, head, REFUSED[i].word)) {
      return statement_refuse(s, head, REFUSED[i].hint, error);
    }
  }
  char *word = token_value(text, head, s->arena);
  nearest near = nearest_to(word == NULL ? "" : word);
  for (size_t i = 0; i < sizeof ACCEPTED / sizeof ACCEPTED[0]; i++) {
    nearest_offer(&near, ACCEPTED[i]);
  }
  error_set(error, HF_E_SYNTAX, "no statement starts with: %.200s", word == NULL ? "" : word);
  if (near.best != NULL) {
    error_hint(error, "did you mean %s?", near.best);
  }
  if (error != NULL) {
    error->position = (int64_t)head.offset;
  }
  return HF_E_SYNTAX;
}

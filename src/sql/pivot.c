/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PIVOT … ON x: finds x, what it is read from, and the common table expressions
 * that stand around. Source of what is asked: DuckDB, transform_pivot_stmt.cpp.
 */
#include "sql/pivot.h"

#include "base/buf.h"

#include <string.h>

enum { MOST_LEVELS = 32 };

/* A PIVOT in a text; places are indices of tokens. */
typedef struct pivot {
  const token_list *list;
  size_t head, on, end; /* PIVOT, ON, behind the list of ON */
  size_t n_levels;
  size_t levels[MOST_LEVELS]; /* the first tokens of queries around it, innermost first */
} pivot;

static bool is_any_word(const token_list *list, size_t at, const char *const *words) {
  for (; at < list->count && *words != NULL; words++) {
    if (token_is(list->text, list->tokens[at], *words)) {
      return true;
    }
  }
  return false;
}

/* 1 for an opening bracket, -1 for a closing one. */
static int bracket(const token_list *list, size_t at) {
  token t = list->tokens[at];
  char c = t.kind == TOKEN_SIGN ? list->text[t.offset] : ' ';
  bool opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';
  return opens ? 1 : closes ? -1 : 0;
}

/* The next token from `at` on, before `end`, that is one of the words outside of brackets, or `end`. */
static size_t find_word(const token_list *list, size_t at, size_t end, const char *const *words) {
  int depth = 0;
  for (; at < end; at++) {
    depth += bracket(list, at);
    if (depth < 0 || (depth == 0 && is_any_word(list, at, words))) {
      return depth < 0 ? end : at;
    }
  }
  return end;
}

static size_t offset_of(const token_list *list, size_t at) {
  return list->tokens[at].offset;
}

static size_t end_of(const token_list *list, size_t at) {
  return list->tokens[at].offset + list->tokens[at].length;
}

/* ------------------------------------------------------------------- finding */

static const char *const main_words[] = {"select", "from", "pivot", "pivot_wider", "values", "table", NULL};

/* The first tokens of the queries around a token. */
static bool find_levels(pivot *p) {
  int depth = 0;
  for (size_t i = p->head; i > 0; i--) {
    depth += bracket(p->list, i - 1);
    if (depth > 0) {
      depth = 0;
      if (p->n_levels == MOST_LEVELS) {
        return false;
      }
      p->levels[p->n_levels++] = i;
    }
  }
  static const char *const about[] = {"describe", "desc", "summarize", NULL};
  bool fits = p->n_levels < MOST_LEVELS;
  if (fits) {
    p->levels[p->n_levels++] = is_any_word(p->list, 0, about) ? 1 : 0;
  }
  return fits;
}

/* Of two lists of common table expressions DuckDB sees one when it looks for values: which, we do not guess. */
static bool has_one_with(const pivot *p) {
  static const char *const with[] = {"with", NULL};
  size_t n = 0;
  for (size_t i = 0; i < p->n_levels; i++) {
    n += is_any_word(p->list, p->levels[i], with) ? 1 : 0;
  }
  return n <= 1;
}

/* Whether a statement or sub-select begins with the word: t PIVOT (…) is something else. */
static bool is_head(const pivot *p) {
  static const char *const before[] = {"all", "union", "except", "intersect", "name", NULL};
  static const char *const with[] = {"with", NULL};
  size_t first = p->levels[0];
  if (first == p->head || is_any_word(p->list, p->head - 1, before)) {
    return true;
  }
  return is_any_word(p->list, first, with) && find_word(p->list, first + 1, p->head, main_words) == p->head;
}

static bool has_values(const token_list *list, size_t at, size_t end) {
  static const char *const in[] = {"in", NULL};
  return find_word(list, at, end, in) < end;
}

static bool find_list(pivot *p) {
  static const char *const on[] = {"on", NULL};
  static const char *const behind[] = {"using", "group",  "order",     "limit", "offset",
                                       "union", "except", "intersect", NULL};
  size_t n = p->list->count, closing = p->head;
  for (int depth = 0; closing < n && (depth += bracket(p->list, closing)) >= 0; closing++) {
  }
  p->on = find_word(p->list, p->head + 1, closing, on);
  p->end = p->on < closing ? find_word(p->list, p->on + 1, closing, behind) : closing;
  return p->on > p->head + 1 && p->on + 1 < p->end;
}

/* --------------------------------------------------------------------- texts */

/* WITH … in front of what stands at a token, as far as it is seen from there. */
static void append_with(const pivot *p, size_t level, size_t at, buf *out) {
  static const char *const with[] = {"with", NULL};
  const token_list *list = p->list;
  size_t first = p->levels[level], end = find_word(list, first + 1, at, main_words), comma = first;
  if (!is_any_word(list, first, with)) {
    return;
  }
  int depth = 0;
  for (size_t i = first; end == at && level > 0 && i < at; i++) { /* inside of its list: what comes before */
    depth += bracket(list, i);
    comma = depth == 0 && token_is_sign(list->text, list->tokens[i], ',') ? i : comma;
  }
  end = end < at || level == 0 ? end : comma;
  if (end > first) {
    buf_append(out, list->text + offset_of(list, first), end_of(list, end - 1) - offset_of(list, first));
    buf_char(out, ' ');
  }
}

/* The values of tokens from `at` to `end`, of what `in` is a part. */
static const char *values_sql(const pivot *p, size_t at, size_t end, size_t in, arena *a) {
  const token_list *list = p->list;
  buf sql = {0};
  for (size_t level = p->n_levels; level > 0; level--) {
    append_with(p, level - 1, level > 1 ? p->levels[level - 2] - 1 : p->head, &sql);
  }
  const char *expression = list->text + offset_of(list, at);
  int length = (int)(end_of(list, end - 1) - offset_of(list, at));
  size_t source = offset_of(list, p->head + 1);
  int source_length = (int)(end_of(list, p->on - 1) - source);
  if (in < end) { /* x IN (SELECT …) */
    const char *query = list->text + offset_of(list, in + 1);
    buf_printf(&sql, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM %.*s",
               (int)(end_of(list, end - 1) - offset_of(list, in + 1)), query);
  } else {
    buf_printf(&sql, "SELECT DISTINCT CAST((%.*s) AS VARCHAR) FROM %.*s WHERE (%.*s) IS NOT NULL ORDER BY 1",
               length, expression, source_length, list->text + source, length, expression);
  }
  const char *copy = sql.failed ? NULL : arena_strdup(a, buf_cstr(&sql));
  buf_reset(&sql);
  return copy;
}

static bool starts_query(const token_list *list, size_t at) {
  static const char *const words[] = {"select", "from", "with", "values", "table", NULL};
  return at + 1 < list->count && token_is_sign(list->text, list->tokens[at], '(') &&
         is_any_word(list, at + 1, words);
}

/* Adds the gap of one column of the list, if it has one. False: no memory. */
static bool take_column(const pivot *p, size_t at, size_t end, arena *a, pivot_gap *gaps, size_t *n) {
  static const char *const in_word[] = {"in", NULL};
  const token_list *list = p->list;
  size_t in = find_word(list, at, end, in_word);
  if (at == end || (has_values(list, at, end) && !starts_query(list, in + 1))) {
    return true;
  }
  pivot_gap *gap = &gaps[(*n)++];
  gap->values_sql = values_sql(p, at, end, in, a);
  gap->begin = in < end ? offset_of(list, in) : end_of(list, end - 1);
  gap->end = end_of(list, end - 1);
  return gap->values_sql != NULL;
}

static hf_status take_gaps(const pivot *p, arena *a, const pivot_gap **out, size_t *n, hf_error *error) {
  pivot_gap *gaps = arena_array(a, p->end - p->on, sizeof *gaps);
  bool is_complete = gaps != NULL;
  size_t first = p->on + 1;
  int depth = 0;
  for (size_t i = first; is_complete && i <= p->end; i++) {
    bool ends = i == p->end || (depth == 0 && token_is_sign(p->list->text, p->list->tokens[i], ','));
    if (ends) {
      is_complete = take_column(p, first, i, a, gaps, n);
      first = i + 1;
    } else {
      depth += bracket(p->list, i);
    }
  }
  *out = gaps;
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the values of a PIVOT");
}

hf_status pivot_find_gaps(const char *sql, arena *a, const pivot_gap **gaps, size_t *n, hf_error *error) {
  static const char *const heads[] = {"pivot", "pivot_wider", NULL};
  token_list list;
  *n = 0;
  HF_TRY(token_list_read(sql, strlen(sql), a, &list, error));
  while (list.count > 0 && token_is_sign(sql, list.tokens[list.count - 1], ';')) {
    list.count--;
  }
  for (size_t i = list.count; *n == 0 && i > 0; i--) {
    pivot p = {.list = &list, .head = i - 1};
    if (is_any_word(&list, p.head, heads) && find_levels(&p) && is_head(&p) && has_one_with(&p) &&
        find_list(&p)) {
      HF_TRY(take_gaps(&p, a, gaps, n, error));
    }
  }
  return HF_OK;
}

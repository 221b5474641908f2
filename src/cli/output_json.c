/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as JSON Lines: an object a row. Numbers and booleans are bare, NULL
 * is null, NaN and the infinities are strings; everything else is a string,
 * spelled as DuckDB spells it. Nested values become arrays and objects: their
 * text is read back by their type; one that cannot be read stays a string.
 * Repeated column names get _1, _2 … so that no value is lost.
 * Thread: the main thread.
 */
#include "output.h"

#include <string.h>

/* Nested deeper than this, a value stays a string. */
enum { NESTING_MAX = 200 };

/* ---------------------------------------------------------------- strings */

/* Length of the UTF-8 character at `text`, or 0 when its bytes are none. */
static size_t utf8_length(const unsigned char *text, size_t length) {
  static const struct {
    unsigned char mask, lead;
    size_t length;
    unsigned least;
  } forms[] = {{0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};
  for (size_t f = 0; f < 4; f++) {
    if ((text[0] & forms[f].mask) != forms[f].lead) {
      continue;
    }
    unsigned code = text[0] & (unsigned)(unsigned char)~forms[f].mask;
    for (size_t i = 1; i < forms[f].length; i++) {
      if (i >= length || (text[i] & 0xC0) != 0x80) {
        return 0;
      }
      code = code << 6 | (text[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code >= forms[f].least && code <= 0x10FFFF && !surrogate ? forms[f].length : 0;
  }
  return 0;
}

static void escaped_ascii(buf *out, char c) {
  static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
  if (c == '"' || c == '\\') {
    buf_char(out, '\\');
    buf_char(out, c);
  } else if ((unsigned char)c >= 0x20 && c != 0x7F) {
    buf_char(out, c);
  } else if ((size_t)(unsigned char)c < sizeof letters && letters[(unsigned char)c] != '\0') {
    buf_char(out, '\\');
    buf_char(out, letters[(unsigned char)c]);
  } else {
    buf_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
  }
}

void json_string(buf *out, const char *text, size_t length) {
  buf_char(out, '"');
  for (size_t i = 0; i < length;) {
    size_t n = utf8_length((const unsigned char *)text + i, length - i);
    if (n == 1) {
      escaped_ascii(out, text[i]);
    } else if (n == 0) {
      buf_text(out, "\xEF\xBF\xBD");
    } else {
      buf_append(out, text + i, n);
    }
    i += n == 0 ? 1 : n;
  }
  buf_char(out, '"');
}

/* ---------------------------------------------------------------- scalars */

static bool text_is(const char *text, size_t length, const char *word) {
  return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Copies JSON text without the white space between its tokens: it must not break the line. */
static void json_compact(buf *out, const char *text, size_t length) {
  bool inside = false;
  for (size_t i = 0; i < length; i++) {
    if (inside && text[i] == '\\' && i + 1 < length) {
      buf_char(out, text[i++]);
    } else if (text[i] == '"') {
      inside = !inside;
    }
    bool blank = text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n';
    if (inside || !blank) {
      buf_char(out, text[i]);
    }
  }
}

/* JSON has no number for these: the word that stands for them, or NULL. */
static const char *special_number(const char *text, size_t length) {
  if (text_is(text, length, "nan") || text_is(text, length, "-nan")) {
    return "\"NaN\"";
  }
  if (text_is(text, length, "inf")) {
    return "\"Infinity\"";
  }
  return text_is(text, length, "-inf") ? "\"-Infinity\"" : NULL;
}

static void json_scalar(buf *out, const data_type *type, const char *text, size_t length) {
  const char *special = type_is_number(type->kind) ? special_number(text, length) : NULL;
  if (special != NULL || type->kind == TYPE_NULL) {
    buf_text(out, special != NULL ? special : "null");
  } else if (type_is_number(type->kind) || type->kind == TYPE_BOOLEAN) {
    buf_append(out, text, length);
  } else if (type->kind == TYPE_JSON) {
    json_compact(out, text, length);
  } else {
    json_string(out, text, length);
  }
}

/* ----------------------------------------------------------------- nested */

/* The text of a nested value while it is read. */
typedef struct reader {
  const char *at, *end;
  buf *out;
  int depth;
} reader;

static bool read_value(reader *r, const data_type *type, const char *stops);

static bool take(reader *r, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) {
    return false;
  }
  r->at += length;
  return true;
}

/* Reads 'text' with \' and \\ into `word`. */
static bool read_quoted(reader *r, buf *word) {
  r->at++;
  while (r->at < r->end && *r->at != '\'') {
    if (*r->at == '\\' && r->at + 1 < r->end) {
      r->at++;
    }
    buf_char(word, *r->at++);
  }
  return take(r, "'");
}

/* How many brackets a character opens (1) or closes (-1). */
static int bracket_step(char c) {
  if (c == '[' || c == '{' || c == '(') {
    return 1;
  }
  return c == ']' || c == '}' || c == ')' ? -1 : 0;
}

/* Reads up to a ',', '=' or closing bracket outside brackets; in JSON outside its strings, and '=' is no end. */
static void read_bare(reader *r, buf *word, bool json) {
  int depth = 0;
  bool inside = false;
  const char *start = r->at;
  for (; r->at < r->end; r->at++) {
    char c = *r->at;
    if (inside && c == '\\') {
      r->at++;
      continue;
    }
    if (json && c == '"') {
      inside = !inside;
    }
    int step = inside ? 0 : bracket_step(c);
    bool ends = !inside && depth == 0 && (step < 0 || c == ',' || (!json && c == '='));
    if (ends) {
      break;
    }
    depth += step;
  }
  r->at = r->at > r->end ? r->end : r->at;
  buf_append(word, start, (size_t)(r->at - start));
}

static bool read_leaf(reader *r, const data_type *type) {
  buf word = {0};
  bool quoted = r->at < r->end && *r->at == '\'';
  bool read = true;
  if (quoted) {
    read = read_quoted(r, &word);
  } else {
    read_bare(r, &word, type->kind == TYPE_JSON);
  }
  if (read && !quoted && text_is(buf_cstr(&word), word.length, "NULL")) {
    buf_text(r->out, "null");
  } else if (read) {
    json_scalar(r->out, type, buf_cstr(&word), word.length);
  }
  read = read && !word.failed;
  buf_reset(&word);
  return read;
}

static bool read_list(reader *r, const data_type *type) {
  if (!take(r, "[")) {
    return false;
  }
  buf_char(r->out, '[');
  bool first = true;
  while (!take(r, "]")) {
    if (!first && !take(r, ", ")) {
      return false;
    }
    buf_text(r->out, first ? "" : ",");
    first = false;
    if (!read_value(r, type->children[0], ",]")) {
      return false;
    }
  }
  buf_char(r->out, ']');
  return true;
}

/* {'a': 1, 'b': x}, or (1, x) when the fields have no names. */
static bool read_struct(reader *r, const data_type *type) {
  bool named = take(r, "{");
  if (!named && !take(r, "(")) {
    return false;
  }
  buf_char(r->out, named ? '{' : '[');
  for (size_t i = 0; i < type->n_children; i++) {
    if (i > 0 && !take(r, ", ")) {
      return false;
    }
    buf_text(r->out, i > 0 ? "," : "");
    buf name = {0};
    bool met = !named || (r->at < r->end && *r->at == '\'' && read_quoted(r, &name) && take(r, ": "));
    buf_reset(&name);
    if (named && met) {
      json_string(r->out, type->names[i], strlen(type->names[i]));
      buf_char(r->out, ':');
    }
    if (!met || !read_value(r, type->children[i], ",})")) {
      return false;
    }
  }
  buf_char(r->out, named ? '}' : ']');
  return take(r, named ? "}" : ")");
}

/* {k=v, k=v}: an object; a key that is no string is written as one. */
static bool read_map(reader *r, const data_type *type) {
  if (!take(r, "{")) {
    return false;
  }
  buf_char(r->out, '{');
  bool first = true;
  while (!take(r, "}")) {
    if (!first && !take(r, ", ")) {
      return false;
    }
    buf_text(r->out, first ? "" : ",");
    first = false;
    buf key = {0};
    reader inner = {r->at, r->end, &key, r->depth};
    bool met = read_value(&inner, type->children[0], "=") && inner.at < inner.end && *inner.at == '=';
    if (met && key.length > 0 && key.data[0] == '"') {
      buf_append(r->out, key.data, key.length);
    } else if (met) {
      json_string(r->out, buf_cstr(&key), key.length);
    }
    buf_reset(&key);
    r->at = inner.at + 1;
    buf_char(r->out, ':');
    if (!met || !read_value(r, type->children[1], ",}")) {
      return false;
    }
  }
  buf_char(r->out, '}');
  return true;
}

static bool read_nested(reader *r, const data_type *type) {
  switch (type->kind) {
    case TYPE_LIST:
    case TYPE_ARRAY:
      return read_list(r, type);
    case TYPE_STRUCT:
      return read_struct(r, type);
    default:
      return read_map(r, type);
  }
}

static bool is_nested(const data_type *type) {
  return type->kind == TYPE_LIST || type->kind == TYPE_ARRAY || type->kind == TYPE_STRUCT ||
         type->kind == TYPE_MAP;
}

/* A value inside a nested one: NULL, or by its type. */
static bool read_value(reader *r, const data_type *type, const char *stops) {
  if (!is_nested(type)) {
    return read_leaf(r, type);
  }
  const char *start = r->at;
  if (take(r, "NULL") && (r->at == r->end || strchr(stops, *r->at) != NULL)) {
    buf_text(r->out, "null");
    return true;
  }
  r->at = start;
  if (r->depth >= NESTING_MAX) {
    return false;
  }
  r->depth++;
  bool read = read_nested(r, type);
  r->depth--;
  return read;
}

void json_value(buf *out, const data_type *type, const char *text, size_t length) {
  if (!is_nested(type)) {
    json_scalar(out, type, text, length);
    return;
  }
  size_t before = out->length;
  reader r = {text, text + length, out, 0};
  if (!read_nested(&r, type) || r.at != r.end) {
    out->length = before;
    json_string(out, text, length);
  }
}

/* ------------------------------------------------------------------- rows */

static bool name_is_taken(const char *const *names, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

/* The state is an array of `"name":` texts. */
static bool json_head(result_writer *w) {
  size_t n = w->columns.n_columns;
  const char **names = arena_array(w->memory, n + 1, sizeof *names);
  const char **labels = arena_array(w->memory, n + 1, sizeof *labels);
  if (names == NULL || labels == NULL) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    names[i] = w->columns.columns[i].name;
    for (unsigned copy = 1; names[i] != NULL && name_is_taken(names, i, names[i]); copy++) {
      names[i] = arena_printf(w->memory, "%s_%u", w->columns.columns[i].name, copy);
    }
    if (names[i] == NULL) {
      return false;
    }
    buf label = {0};
    json_string(&label, names[i], strlen(names[i]));
    labels[i] = arena_printf(w->memory, "%s%s:", i > 0 ? "," : "", buf_cstr(&label));
    bool failed = label.failed || labels[i] == NULL;
    buf_reset(&label);
    if (failed) {
      return false;
    }
  }
  w->state = labels;
  return true;
}

static bool json_rows(result_writer *w, const char *const *const *cells, const uint32_t *const *lengths,
                      size_t n_rows) {
  const char *const *labels = w->state;
  for (size_t row = 0; row < n_rows; row++) {
    buf *line = &w->out->pending;
    buf_char(line, '{');
    for (size_t i = 0; i < w->columns.n_columns; i++) {
      buf_text(line, labels[i]);
      if (cells[i][row] == NULL) {
        buf_text(line, "null");
      } else {
        json_value(line, w->columns.columns[i].type, cells[i][row], lengths[i][row]);
      }
    }
    output_text(w->out, "}\n");
  }
  return w->out->error_number == 0;
}

static void json_finish(result_writer *w, uint64_t result_rows) {
  (void)w;
  (void)result_rows;
}

const writer_ops writer_json = {"json", json_head, json_rows, json_finish};

/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer with a sticky failure. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *buf_reserve(buf *b, size_t length) {
  if (b->failed || length > SIZE_MAX / 2 - b->length - 1) {
    b->failed = true;
    return NULL;
  }
  size_t needed = b->length + length + 1;
  if (needed > b->capacity) {
    size_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
    if (capacity < needed) {
      capacity = needed;
    }
    char *data = mem_realloc(b->data, capacity);
    if (data == NULL) {
      b->failed = true;
      return NULL;
    }
    b->data = data;
    b->capacity = capacity;
  }
  return b->data + b->length;
}

void buf_append(buf *b, const void *bytes, size_t length) {
  char *at = buf_reserve(b, length);
  if (at == NULL) {
    return;
  }
  if (length > 0) {
    memcpy(at, bytes, length);
  }
  b->length += length;
  b->data[b->length] = '\0';
}

void buf_text(buf *b, const char *text) {
  buf_append(b, text, strlen(text));
}

void buf_char(buf *b, char c) {
  buf_append(b, &c, 1);
}

void buf_printf(buf *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *at = length < 0 ? NULL : buf_reserve(b, (size_t)length);
  if (at != NULL) {
    vsnprintf(at, (size_t)length + 1, format, again);
    b->length += (size_t)length;
  }
  va_end(again);
}

static void append_quoted(buf *b, const char *text, char quote) {
  buf_char(b, quote);
  for (const char *c = text; *c != '\0'; c++) {
    if (*c == quote) {
      buf_char(b, quote);
    }
    buf_char(b, *c);
  }
  buf_char(b, quote);
}

void buf_sql_string(buf *b, const char *text) {
  append_quoted(b, text, '\'');
}

void buf_sql_name(buf *b, const char *text) {
  append_quoted(b, text, '"');
}

const char *buf_cstr(const buf *b) {
  return b->data == NULL ? "" : b->data;
}

char *buf_take(buf *b) {
  char *text = NULL;
  if (!b->failed) {
    text = b->data == NULL ? mem_strdup("") : b->data;
    b->data = NULL;
  }
  buf_reset(b);
  return text;
}

void buf_reset(buf *b) {
  mem_free(b->data);
  memset(b, 0, sizeof *b);
}

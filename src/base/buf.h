/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer, used for text and for encoded messages. Failure is
 * sticky: append as much as you like, then ask buf_failed once.
 * Thread: one at a time. Zeroed memory is an empty buffer.
 */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include "base/error.h"

typedef struct buf {
  char *data; /* NUL-terminated behind `length` when not NULL */
  size_t length;
  size_t capacity;
  bool failed; /* out of memory; the contents are incomplete */
} buf;

void buf_append(buf *b, const void *bytes, size_t length);
void buf_text(buf *b, const char *text);
void buf_char(buf *b, char c);
void buf_printf(buf *b, const char *format, ...) HF_PRINTF(2, 3);
/* Appends 'text' as an SQL string literal, quotes doubled. */
void buf_sql_string(buf *b, const char *text);
/* Appends text as an SQL identifier in double quotes. */
void buf_sql_name(buf *b, const char *text);
/* Makes room for `length` more bytes; returns where they start, or NULL. The caller adds to b->length itself. */
char *buf_reserve(buf *b, size_t length);
/* Returns the text ("" of an empty buffer), borrowed until the next change. */
const char *buf_cstr(const buf *b);
/* Moves the text out, owned by the caller (mem_free); empties the buffer. NULL when it failed. */
char *buf_take(buf *b);
/* Releases the memory and zeroes. Accepts a zeroed buffer. */
void buf_reset(buf *b);

#endif

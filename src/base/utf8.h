/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether text is UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
 * What arrives from outside is checked where it arrives; DuckDB takes nothing else.
 * Thread: any.
 */
#ifndef HF_BASE_UTF8_H
#define HF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns how many bytes at the start are UTF-8: `length` when all are. */
size_t utf8_right_length(const void *text, size_t length);
/* Tells whether a text that ends with NUL is UTF-8. */
bool utf8_is_right(const char *text);

#endif

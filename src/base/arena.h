/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: memory that is released all at once (a query, a task, a batch). An
 * arena is an argument, never a hidden current one.
 * Thread: one at a time.
 */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "base/error.h"

#include <stdarg.h>

typedef struct arena arena;

/* Returns a new arena, or NULL. */
arena *arena_new(void);
/* The same with a first piece of this size, where many small arenas live long. */
arena *arena_new_sized(size_t first_bytes);
/* Runs the callbacks, last registered first, and releases all memory. Accepts NULL. */
void arena_free(arena *a);
/* Returns zeroed memory aligned for any type, or NULL. */
void *arena_alloc(arena *a, size_t bytes);
/* Returns zeroed memory for `count` elements; NULL also when the product overflows. */
void *arena_array(arena *a, size_t count, size_t element_bytes);
char *arena_strdup(arena *a, const char *text);
char *arena_strndup(arena *a, const char *text, size_t bytes);
char *arena_printf(arena *a, const char *format, ...) HF_PRINTF(2, 3);
/* Calls `callback(context)` when the arena is freed. Returns HF_E_OUT_OF_MEMORY without having called it. */
hf_status arena_on_free(arena *a, void (*callback)(void *context), void *context);

#endif

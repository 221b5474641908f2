/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap memory: the only way to the C allocator outside base/. Sizes are checked
 * before arithmetic; a test can make the n-th allocation fail.
 * Thread: any.
 */
#ifndef HF_BASE_MEM_H
#define HF_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Returns `bytes` of memory, or NULL. 0 bytes gives a valid pointer. */
void *mem_alloc(size_t bytes);
/* The same, zeroed, for `count` elements of `bytes`; NULL also when the product overflows. */
void *mem_zalloc(size_t count, size_t bytes);
/* Resizes; on NULL the old block stays. */
void *mem_realloc(void *block, size_t bytes);
/* Returns `alignment`-aligned memory (a power of two), released by mem_free. */
void *mem_alloc_aligned(size_t alignment, size_t bytes);
/* Accepts NULL. */
void mem_free(void *block);
/* Copies text; NULL of NULL or for lack of memory. */
char *mem_strdup(const char *text);
/* Copies `bytes` and adds a NUL. */
char *mem_strndup(const char *text, size_t bytes);

/* Tests only: the n-th allocation from now on (1 = the next) and all later ones fail; 0 ends that. Process-wide. */
void mem_fail_after(uint64_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Heap memory on the C allocator, with a fault point for "fail the n-th allocation". */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t fail_countdown; /* 0: off */

static bool must_fail(void) {
  uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
  if (left == 0) {
    return false;
  }
  if (left == 1) {
    return true;
  }
  atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed);
  return false;
}

void *mem_alloc(size_t bytes) {
  return must_fail() ? NULL : malloc(bytes == 0 ? 1 : bytes);
}

void *mem_zalloc(size_t count, size_t bytes) {
  return must_fail() ? NULL : calloc(count == 0 ? 1 : count, bytes == 0 ? 1 : bytes);
}

void *mem_realloc(void *block, size_t bytes) {
  return must_fail() ? NULL : realloc(block, bytes == 0 ? 1 : bytes);
}

void *mem_alloc_aligned(size_t alignment, size_t bytes) {
  if (must_fail() || bytes > SIZE_MAX - alignment) {
    return NULL;
  }
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void mem_free(void *block) {
  free(block);
}

char *mem_strndup(const char *text, size_t bytes) {
  if (text == NULL || bytes == SIZE_MAX) {
    return NULL;
  }
  char *copy = mem_alloc(bytes + 1);
  if (copy != NULL) {
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
  }
  return copy;
}

char *mem_strdup(const char *text) {
  return text == NULL ? NULL : mem_strndup(text, strlen(text));
}

void mem_fail_after(uint64_t n) {
  atomic_store(&fail_countdown, n);
}

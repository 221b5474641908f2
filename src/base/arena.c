/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas as a list of chunks; each chunk doubles up to 1 MiB, larger requests get a chunk of their own. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_CHUNK_BYTES = 4096, LARGEST_CHUNK_BYTES = 1 << 20, ALIGNMENT = 16 };

typedef struct chunk {
  struct chunk *next;
  size_t used;
  size_t capacity;
  size_t padding; /* keeps data[] aligned to ALIGNMENT */
  unsigned char data[];
} chunk;

typedef struct callback_node {
  struct callback_node *next;
  void (*callback)(void *);
  void *context;
} callback_node;

struct arena {
  chunk *chunks;
  callback_node *callbacks;
  size_t next_bytes;
};

arena *arena_new(void) {
  return arena_new_sized(FIRST_CHUNK_BYTES);
}

arena *arena_new_sized(size_t first_bytes) {
  arena *a = mem_zalloc(1, sizeof *a);
  if (a != NULL) {
    a->next_bytes = first_bytes;
  }
  return a;
}

void arena_free(arena *a) {
  if (a == NULL) {
    return;
  }
  for (callback_node *node = a->callbacks; node != NULL; node = node->next) {
    node->callback(node->context);
  }
  chunk *next = NULL;
  for (chunk *c = a->chunks; c != NULL; c = next) {
    next = c->next;
    mem_free(c);
  }
  mem_free(a);
}

static chunk *chunk_add(arena *a, size_t bytes) {
  size_t capacity = bytes > a->next_bytes ? bytes : a->next_bytes;
  if (capacity > SIZE_MAX - sizeof(chunk)) {
    return NULL;
  }
  chunk *c = mem_alloc(sizeof(chunk) + capacity);
  if (c == NULL) {
    return NULL;
  }
  c->used = 0;
  c->capacity = capacity;
  c->next = a->chunks;
  a->chunks = c;
  if (a->next_bytes < LARGEST_CHUNK_BYTES) {
    a->next_bytes *= 2;
  }
  return c;
}

void *arena_alloc(arena *a, size_t bytes) {
  if (bytes > SIZE_MAX - ALIGNMENT) {
    return NULL;
  }
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  chunk *c = a->chunks;
  if (c == NULL || c->capacity - c->used < rounded) {
    c = chunk_add(a, rounded);
    if (c == NULL) {
      return NULL;
    }
  }
  void *block = c->data + c->used;
  c->used += rounded;
  memset(block, 0, rounded);
  return block;
}

void *arena_array(arena *a, size_t count, size_t element_bytes) {
  if (element_bytes != 0 && count > SIZE_MAX / element_bytes) {
    return NULL;
  }
  return arena_alloc(a, count * element_bytes);
}

char *arena_strndup(arena *a, const char *text, size_t bytes) {
  if (text == NULL || bytes == SIZE_MAX) {
    return NULL;
  }
  char *copy = arena_alloc(a, bytes + 1);
  if (copy != NULL) {
    memcpy(copy, text, bytes);
  }
  return copy;
}

char *arena_strdup(arena *a, const char *text) {
  return text == NULL ? NULL : arena_strndup(a, text, strlen(text));
}

char *arena_printf(arena *a, const char *format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1);
  if (text != NULL) {
    vsnprintf(text, (size_t)length + 1, format, again);
  }
  va_end(again);
  return text;
}

hf_status arena_on_free(arena *a, void (*callback)(void *context), void *context) {
  callback_node *node = arena_alloc(a, sizeof *node);
  if (node == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  node->callback = callback;
  node->context = context;
  node->next = a->callbacks;
  a->callbacks = node;
  return HF_OK;
}

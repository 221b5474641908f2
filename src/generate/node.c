/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a generated query: random numbers, nodes, and their text.
 * Thread: one at a time.
 */
#include "generate/generate_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Source: SplitMix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next(generator *g) {
  g->random += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t z = g->random;
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

size_t gen_below(generator *g, size_t n) {
  return (size_t)(next(g) % n);
}

bool gen_chance(generator *g, unsigned percent) {
  return gen_below(g, 100) < percent;
}

const char *gen_text(generator *g, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *copy = arena_strdup(g->memory, text);
  g->failed = g->failed || copy == NULL;
  return copy == NULL ? "" : copy;
}

gen_node *gen_node_new(generator *g, gen_role role) {
  gen_node *n = arena_alloc(g->memory, sizeof *n);
  if (n == NULL) {
    g->failed = true;
    g->nothing = (gen_node){.text = ""};
    return &g->nothing;
  }
  n->role = role;
  n->text = "";
  return n;
}

void gen_add(generator *g, gen_node *parent, gen_node *part) {
  if (parent == &g->nothing || part == &g->nothing) {
    return;
  }
  if (parent->n_parts == parent->capacity) {
    size_t capacity = parent->capacity == 0 ? 4 : 2 * parent->capacity;
    gen_node **parts = arena_array(g->memory, capacity, sizeof(gen_node *));
    if (parts == NULL) {
      g->failed = true;
      return;
    }
    if (parent->n_parts > 0) {
      memcpy(parts, parent->parts, parent->n_parts * sizeof(gen_node *));
    }
    parent->parts = parts;
    parent->capacity = capacity;
  }
  parent->parts[parent->n_parts++] = part;
}

static void add_words(generator *g, gen_node *parent, const char *text, size_t length) {
  if (length > 0) {
    gen_node *words = gen_node_new(g, GEN_WORDS);
    words->text = arena_strndup(g->memory, text, length);
    if (words->text == NULL) {
      g->failed = true;
      words->text = "";
    }
    gen_add(g, parent, words);
  }
}

gen_node *gen_write(generator *g, gen_role role, const char *format, ...) {
  gen_node *n = gen_node_new(g, role);
  va_list arguments;
  va_start(arguments, format);
  while (*format != '\0') {
    size_t length = strcspn(format, "%");
    add_words(g, n, format, length);
    format += length;
    if (*format == '\0') {
      break;
    }
    if (format[1] == 'n') {
      gen_add(g, n, va_arg(arguments, gen_node *));
    } else if (format[1] == 's') {
      const char *text = va_arg(arguments, const char *);
      add_words(g, n, text, strlen(text));
    } else if (format[1] == 'd') {
      const char *text = gen_text(g, "%d", va_arg(arguments, int));
      add_words(g, n, text, strlen(text));
    } else {
      add_words(g, n, "%", 1);
      format--;
    }
    format += 2;
  }
  va_end(arguments);
  return n;
}

gen_node *gen_list(generator *g, const char *between) {
  gen_node *list = gen_node_new(g, GEN_LIST);
  list->text = between;
  return list;
}

const char *gen_name(generator *g, const char *prefix) {
  return gen_text(g, "%s%u", prefix, ++g->names);
}

/* The depth is the generator's, which is bounded. */
void gen_render(const gen_node *n, buf *out) {
  while (n->instead != NULL) {
    n = n->instead;
  }
  if (n->role == GEN_WORDS) {
    buf_text(out, n->text);
    return;
  }
  bool is_first = true;
  for (size_t i = 0; i < n->n_parts; i++) {
    if (n->parts[i]->is_dropped) {
      continue;
    }
    if (n->role == GEN_LIST && !is_first) {
      buf_text(out, n->text);
    }
    is_first = false;
    gen_render(n->parts[i], out);
  }
}

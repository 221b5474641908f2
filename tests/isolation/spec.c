/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes specs; the language is in tests/isolation/README.md. Thread: one. */
#include "isolation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wrong(const spec *s, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
static void wrong(const spec *s, size_t line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s:%zu: ", s->path, line);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

static char *file_text(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  size_t capacity = 1 << 16, used = 0, got = 0;
  char *text = calloc(1, capacity);
  while (text != NULL && (got = fread(text + used, 1, capacity - used - 1, file)) > 0) {
    used += got;
    if (used + 1 >= capacity) {
      fprintf(stderr, "%s: too long\n", path);
      exit(1);
    }
  }
  fclose(file);
  return text;
}

/* Takes the next word of *at into `out`; false when there is none. */
static bool next_word(const char **at, char *out, size_t bytes) {
  *at += strspn(*at, " \t");
  size_t n = strcspn(*at, " \t");
  if (n == 0 || n >= bytes) {
    return false;
  }
  memcpy(out, *at, n);
  out[n] = '\0';
  *at += n;
  return true;
}

static void rest_of(const char *at, char *out, size_t bytes) {
  snprintf(out, bytes, "%s", at + strspn(at, " \t"));
}

static void read_step(spec *s, size_t line, const char *thread, const char *at) {
  spec_step *step = &s->steps[s->n_steps++];
  if (s->n_steps > NAMES || thread[0] == '\0' || !next_word(&at, step->name, sizeof step->name) ||
      !next_word(&at, step->action, sizeof step->action)) {
    wrong(s, line, "expected: step NAME ACTION …, below a thread");
  }
  snprintf(step->thread, sizeof step->thread, "%s", thread);
  rest_of(at, step->rest, sizeof step->rest);
}

static void read_permutation(spec *s, size_t line, const char *at) {
  spec_permutation *p = &s->permutations[s->n_permutations++];
  if (s->n_permutations > NAMES || !next_word(&at, p->name, sizeof p->name)) {
    wrong(s, line, "expected: permutation NAME STEP …");
  }
  while (p->n_words < WORDS && next_word(&at, p->words[p->n_words], sizeof p->words[0])) {
    p->n_words++;
  }
  p->first_line = line;
  p->expected = calloc(1, 1);
}

/* An indented line below a permutation is what is expected of it. */
static void add_expected(spec *s, size_t line, const char *text) {
  if (s->n_permutations == 0) {
    wrong(s, line, "an indented line without a permutation or step");
  }
  spec_permutation *p = &s->permutations[s->n_permutations - 1];
  size_t used = strlen(p->expected), more = strlen(text);
  char *longer = realloc(p->expected, used + more + 2);
  if (longer == NULL) {
    exit(1);
  }
  snprintf(longer + used, more + 2, "%s\n", text);
  p->expected = longer;
  p->n_lines++;
}

static bool is_setup(const char *word) {
  static const char *const kinds[] = {"setting", "file", "session", "frame", "hold", "view"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (strcmp(kinds[i], word) == 0) {
      return true;
    }
  }
  return false;
}

static void read_line(spec *s, size_t line, const char *text, char *thread, size_t bytes) {
  const char *at = text;
  char word[64];
  if (text[0] == '#' || !next_word(&at, word, sizeof word)) {
    return;
  }
  if (strcmp(word, "step") == 0) {
    read_step(s, line, thread, at);
  } else if (text[0] == ' ') {
    add_expected(s, line, text + 2);
  } else if (strcmp(word, "thread") == 0 && next_word(&at, word, sizeof word)) {
    snprintf(thread, bytes, "%s", word);
  } else if (strcmp(word, "permutation") == 0) {
    read_permutation(s, line, at);
  } else if (is_setup(word) && s->n_setup < NAMES) {
    spec_line *l = &s->setup[s->n_setup++];
    snprintf(l->kind, sizeof l->kind, "%.15s", word);
    if (!next_word(&at, l->name, sizeof l->name)) {
      wrong(s, line, "expected: %s NAME …", word);
    }
    rest_of(at, l->rest, sizeof l->rest);
  } else {
    wrong(s, line, "not known: %s", word);
  }
}

/* Calls read_line for each; the text is cut into lines and put together again. */
void spec_read(const char *path, spec *out) {
  memset(out, 0, sizeof *out);
  out->path = path;
  out->text = file_text(path);
  char thread[64] = "", *at = out->text;
  for (size_t line = 1; at != NULL && *at != '\0'; line++) {
    char *end = strchr(at, '\n');
    if (end != NULL) {
      *end = '\0';
    }
    read_line(out, line, at, thread, sizeof thread);
    if (end != NULL) {
      *end = '\n';
    }
    at = end == NULL ? NULL : end + 1;
  }
  if (out->n_permutations == 0) {
    wrong(out, 1, "a spec without a permutation");
  }
}

const spec_step *spec_find_step(const spec *s, const char *name) {
  for (size_t i = 0; i < s->n_steps; i++) {
    if (strcmp(s->steps[i].name, name) == 0) {
      return &s->steps[i];
    }
  }
  return NULL;
}

static void write_lines(FILE *file, const char *lines) {
  while (*lines != '\0') {
    size_t n = strcspn(lines, "\n");
    fprintf(file, "  %.*s\n", (int)n, lines);
    lines += n + (lines[n] == '\n');
  }
}

void spec_write(const spec *s, char *const *lines) {
  FILE *file = fopen(s->path, "w");
  if (file == NULL) {
    perror(s->path);
    exit(1);
  }
  const char *at = s->text;
  size_t next = 0, skip = 0;
  for (size_t line = 1; *at != '\0'; line++) {
    size_t n = strcspn(at, "\n");
    if (skip > 0) {
      skip--;
    } else {
      fprintf(file, "%.*s\n", (int)n, at);
    }
    if (next < s->n_permutations && s->permutations[next].first_line == line) {
      write_lines(file, lines[next]);
      skip = s->permutations[next++].n_lines;
    }
    at += n + (at[n] == '\n');
  }
  fclose(file);
}

void spec_free(spec *s) {
  free(s->text);
  for (size_t i = 0; i < s->n_permutations; i++) {
    free(s->permutations[i].expected);
  }
}

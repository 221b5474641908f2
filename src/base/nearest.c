/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance with swaps of neighbours, on lower-case ASCII; three rows of a table on the stack. */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A name that begins with what is wanted is near, whatever follows. */
enum { LONGEST_NAME = 64, SHORTEST_BEGINNING = 3 };

static size_t text_length(const char *text) {
  size_t length = strlen(text);
  return length > LONGEST_NAME ? LONGEST_NAME : length;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t edit_distance(const char *a, const char *b) {
  size_t n = text_length(a), m = text_length(b);
  size_t rows[3][LONGEST_NAME + 1];
  size_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= m; j++) {
    last[j] = j;
    before[j] = j;
  }
  for (size_t i = 1; i <= n; i++) {
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y) {
        row[j] = least(row[j], before[j - 2] + 1);
      }
    }
    size_t *free_row = before;
    before = last;
    last = row;
    row = free_row;
  }
  return last[m];
}

static size_t common_beginning(const char *a, const char *b) {
  size_t n = 0;
  while (a[n] != '\0' && lower(a[n]) == lower(b[n])) {
    n++;
  }
  return n;
}

nearest nearest_to(const char *wanted) {
  return (nearest){.wanted = wanted, .best = NULL, .distance = 0};
}

void nearest_offer(nearest *n, const char *name) {
  size_t length = text_length(n->wanted);
  bool is_beginning =
      length >= SHORTEST_BEGINNING && strncasecmp(n->wanted, name, length) == 0 && name[length] != '\0';
  size_t distance = is_beginning ? 1 : edit_distance(n->wanted, name);
  size_t most = length < 4 ? 1 : length / 3;
  bool is_better =
      n->best == NULL || distance < n->distance ||
      (distance == n->distance && common_beginning(n->wanted, name) > common_beginning(n->wanted, n->best));
  if (distance > most || !is_better || strcmp(n->wanted, name) == 0) {
    return;
  }
  n->best = name;
  n->distance = distance;
}

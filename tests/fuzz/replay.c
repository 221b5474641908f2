/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a target over its seeds, then over seeds altered at random, always in the
 * same way, for about two seconds: what `make test` does, where libFuzzer is not
 * wanted. Usage: replay SEEDS_DIR; or replay FILE, for a crash that libFuzzer kept.
 */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_US ((uint64_t)2 * 1000 * 1000)

enum { LARGEST_SEED = 1 << 20, MOST_SEEDS = 2000, ALTERED = 20000, MOST_CHANGES = 4 };

typedef struct seed {
  char *bytes;
  size_t length;
} seed;

static seed seeds[MOST_SEEDS];
static size_t n_seeds;

static uint64_t draw(uint64_t below) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

static int read_seed(const char *path) {
  hf_error error = {0};
  seed *s = &seeds[n_seeds];
  if (file_read_whole(path, LARGEST_SEED, HF_E_IO, &s->bytes, &s->length, &error) != HF_OK) {
    fprintf(stderr, "%s: %s\n", path, error.message);
    return 1;
  }
  n_seeds++;
  return 0;
}

static int is_shown(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int read_seeds(const char *dir) {
  struct dirent **found = NULL;
  int n = scandir(dir, &found, is_shown, alphasort), failed = 0;
  if (n < 0) {
    return read_seed(dir); /* a file */
  }
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, found[i]->d_name);
    failed |= n_seeds < MOST_SEEDS ? read_seed(path) : 0;
    free(found[i]);
  }
  free(found);
  return failed;
}

/* A copy of its own size, so that reading behind its end is seen. */
static void run(const char *bytes, size_t length) {
  uint8_t *copy = malloc(length == 0 ? 1 : length);
  if (copy == NULL) {
    abort();
  }
  memcpy(copy, bytes, length);
  LLVMFuzzerTestOneInput(copy, length);
  free(copy);
}

static void run_altered(const seed *from) {
  static char bytes[2 * LARGEST_SEED];
  size_t length = from->length;
  memcpy(bytes, from->bytes, length);
  for (uint64_t n = draw(MOST_CHANGES) + 1; n > 0 && length > 0; n--) {
    size_t at = draw(length);
    const seed *other = &seeds[draw(n_seeds)];
    switch (draw(4)) {
      case 0:
        bytes[at] = (char)draw(256);
        break;
      case 1:
        bytes[at] = (char)(bytes[at] ^ (1 << draw(8)));
        break;
      case 2:
        length = at; /* cut off */
        break;
      default: /* the front of one, the end of another */
        if (other->length > 0) {
          size_t start = draw(other->length);
          length = at + (other->length - start);
          memcpy(bytes + at, other->bytes + start, other->length - start);
        }
    }
    length = length > LARGEST_SEED ? LARGEST_SEED : length;
  }
  run(bytes, length);
}

int main(int argc, char **argv) {
  uint64_t started = clock_monotonic_us();
  if (argc != 2 || read_seeds(argv[1]) != 0 || n_seeds == 0) {
    fprintf(stderr, "usage: %s SEEDS_DIR, which must hold seeds\n", argv[0]);
    return 1;
  }
  for (size_t i = 0; i < n_seeds; i++) {
    run(seeds[i].bytes, seeds[i].length);
  }
  size_t altered = 0;
  while (altered < ALTERED && clock_monotonic_us() - started < LONGEST_US) {
    run_altered(&seeds[draw(n_seeds)]);
    altered++;
  }
  printf("%zu seeds, %zu altered\n", n_seeds, altered);
  for (size_t i = 0; i < n_seeds; i++) {
    mem_free(seeds[i].bytes);
  }
  return 0;
}

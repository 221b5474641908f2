/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring: medians of paired runs as JSON lines. */
#include "support/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double measure_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void measure_add(measure *m, double ours_ms, double theirs_ms) {
  if (m->runs < MEASURE_MOST_RUNS) {
    m->ours[m->runs] = ours_ms;
    m->theirs[m->runs] = theirs_ms;
    m->runs++;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

double measure_median(const double *values, size_t n) {
  double sorted[MEASURE_MOST_RUNS];
  if (n == 0 || n > MEASURE_MOST_RUNS) {
    return 0;
  }
  memcpy(sorted, values, n * sizeof *values);
  qsort(sorted, n, sizeof *sorted, by_value);
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double measure_ratio(const measure *m) {
  double ratios[MEASURE_MOST_RUNS];
  for (size_t i = 0; i < m->runs; i++) {
    ratios[i] = m->theirs[i] > 0 ? m->ours[i] / m->theirs[i] : 0;
  }
  return measure_median(ratios, m->runs);
}

void measure_print(const measure *m) {
  printf("{\"group\": \"%s\", \"name\": \"%s\", \"rival\": \"%s\", \"runs\": %zu, \"ours_ms\": %.3f, "
         "\"rival_ms\": %.3f, \"ratio\": %.4f, \"must\": %.3f}\n",
         m->group, m->name, m->rival, m->runs, measure_median(m->ours, m->runs),
         measure_median(m->theirs, m->runs), measure_ratio(m), m->must);
  fflush(stdout);
}

void measure_print_value(const char *group, const char *name, double value, const char *unit) {
  measure_print_limit(group, name, value, unit, 0);
}

void measure_print_limit(const char *group, const char *name, double value, const char *unit, double must) {
  printf("{\"group\": \"%s\", \"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"must\": %.3f}\n", group,
         name, value, unit, must);
  fflush(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring: times of paired runs, their medians, one JSON line per case for bench/report. */
#ifndef HF_BENCH_MEASURE_H
#define HF_BENCH_MEASURE_H

#include <stddef.h>

enum { MEASURE_MOST_RUNS = 32 };

/* Paired runs of one case: ours and the rival's, in turn. Times in milliseconds. */
typedef struct measure {
  const char *group; /* such as "tpch" */
  const char *name;  /* such as "q01" */
  const char *rival; /* what "rival" is */
  double must;       /* the ratio that must be reached; 0: reported only */
  size_t runs;
  double ours[MEASURE_MOST_RUNS], theirs[MEASURE_MOST_RUNS];
} measure;

double measure_now_ms(void);
void measure_add(measure *m, double ours_ms, double theirs_ms);
double measure_median(const double *values, size_t n);
/* Median of the paired ratios ours / theirs. */
double measure_ratio(const measure *m);
/* Writes {"group": …, "ours_ms": median, …} as one line to standard output. */
void measure_print(const measure *m);
/* Writes a figure that is no time: bytes, counts. */
void measure_print_value(const char *group, const char *name, double value, const char *unit);
/* The same of a figure that must not be larger than `must`. */
void measure_print_limit(const char *group, const char *name, double value, const char *unit, double must);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a suite of queries under overlays and compares each answer with that of
 * single-node DuckDB:
 *
 *   suite_run DIR SUITE SF FLOOR OVERLAY…
 *
 * Fails when an answer differs, or when fewer than FLOOR queries of an overlay were distributed. "-" makes the data only.
 * DIR keeps the data between runs.
 */
#include "base/arena.h"
#include "holdfast/harness.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
  size_t distributed, not_spread, fell_back, rejected, differed;
  size_t ran_blocking, killed; /* queries */
  uint64_t planning_us, run_us, stages, recut;
} tally;

static int fail(const char *what, const hf_error *error) {
  fprintf(stderr, "%s: %s: %s\n", what, hf_status_name(error->code),
          error->message == NULL ? "" : error->message);
  return 1;
}

static void count(const hf_harness_report *r, tally *t) {
  size_t *const counts[] = {&t->distributed, &t->not_spread, &t->fell_back, &t->rejected};
  (*counts[r->result])++;
  t->differed += r->differed ? 1 : 0;
  t->ran_blocking += r->ran_blocking ? 1 : 0;
  t->killed += r->killed > 0 ? 1 : 0;
  t->planning_us += r->planning_us;
  t->run_us += r->run_us;
  t->stages += r->n_stages;
  t->recut += r->recut;
}

static void tell(const hf_harness_overlay *o, const suite_query *q, const hf_harness_report *r) {
  static const char *const results[] = {"distributed", "not spread", "fell back", "rejected"};
  if (r->differed || r->result == HF_HARNESS_REJECTED) {
    printf("%s %s: %s%s%s: %s\n%s\n", o->name, q->name, results[r->result], r->differed ? ", DIFFERS" : "",
           r->indeterminate ? " (not determinate)" : "", r->reason, r->rows);
  } else if (r->result != HF_HARNESS_DISTRIBUTED && o->config.tasks > 1) {
    printf("%s %s: %s: %s\n", o->name, q->name, results[r->result], r->reason);
  }
}

static int run_overlay(hf_harness *h, const suite *s, const hf_harness_overlay *o, size_t floor) {
  tally t = {0};
  uint64_t single_us = 0;
  for (size_t i = 0; i < s->n_queries; i++) {
    hf_harness_report report = {0};
    hf_error error = {0};
    if (hf_assert_distributed_eq(h, s->queries[i].sql, &o->config, &report, &error) != HF_OK) {
      return fail(s->queries[i].name, &error);
    }
    count(&report, &t);
    single_us += report.single_us;
    tell(o, &s->queries[i], &report);
    hf_harness_report_reset(&report);
  }
  /* An overlay that does nothing proves nothing. */
  bool is_on = t.ran_blocking == 0 && (o->config.kill_task == 0 || t.killed == s->n_queries) &&
               (!o->config.again || t.recut > 0);
  bool is_right = t.differed == 0 && t.rejected == 0 && t.fell_back == 0 && t.distributed >= floor && is_on;
  printf(
      "%s %s: %zu distributed (at least %zu), %zu not spread, %zu fell back, %zu rejected, %zu differed; %" PRIu64
      " stages, %" PRIu64 " of them cut again; planning %" PRIu64 " ms, running %" PRIu64
      " ms, single-node %" PRIu64 " ms\n",
      is_right ? "ok" : "FAILED", o->name, t.distributed, floor, t.not_spread, t.fell_back, t.rejected,
      t.differed, t.stages, t.recut, t.planning_us / 1000, t.run_us / 1000, single_us / 1000);
  return is_right ? 0 : 1;
}

static int run(const suite *s, size_t floor, char **names, int n_names) {
  hf_harness *h = NULL;
  hf_error error = {0};
  int failed = 0;
  if (hf_harness_open(NULL, &h, &error) != HF_OK) {
    return fail("the harness", &error);
  }
  for (size_t i = 0; failed == 0 && i < s->n_tables; i++) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s.parquet", s->dir, s->tables[i]);
    if (hf_harness_files(h, s->tables[i], NULL, HF_LIST(path), &error) != HF_OK) {
      failed = fail(s->tables[i], &error);
    }
  }
  for (int i = 0; failed < 2 && i < n_names; i++) {
    const hf_harness_overlay *o = hf_harness_overlay_named(names[i]);
    if (o == NULL) {
      fprintf(stderr, "there is no overlay %s\n", names[i]);
      failed = 2;
    } else {
      failed += run_overlay(h, s, o, o->config.tasks > 1 ? floor : 0);
    }
    fflush(stdout);
  }
  hf_harness_close(h);
  return failed;
}

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: suite_run DIR SUITE SF FLOOR OVERLAY…\n");
    return 2;
  }
  hf_error error = {0};
  suite s;
  arena *a = arena_new();
  const suite_request request = {
      .name = argv[2], .sf = argv[3], .dir = argv[1], .kept = true, .scratch_dir = argv[1]};
  int failed = suite_open(&request, a, &s, &error) == HF_OK ? 0 : fail("the suite", &error);
  if (failed == 0 && strcmp(argv[5], "-") != 0) {
    failed = run(&s, strtoul(argv[4], NULL, 10), argv + 5, argc - 5);
  }
  arena_free(a);
  hf_error_reset(&error);
  return failed;
}

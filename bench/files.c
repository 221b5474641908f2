/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning over very many files: a tree of small Parquet files in a hive layout, most
 * of them links to one, is listed, planned and staged in two tasks; beside it DuckDB's
 * own EXPLAIN over the same pattern. Usage: files DIR N_FILES RUNS THREADS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What 200,000 files must keep to: seconds from the text to stages that can run. */
#define MUST_S 3

enum { FILES_A_DIRECTORY = 1000, LINKS_A_FILE = 30000 };

typedef struct files_bench {
  const char *dir;
  size_t n_files;
  rival rival;
  char pattern[1024];
} files_bench;

static double peak_mb(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1000;
}

static void write_seed(files_bench *b, const char *path) {
  char sql[1200];
  snprintf(sql, sizeof sql, "COPY (SELECT i AS x, 'row ' || i AS y FROM range(10) t(i)) TO '%s'", path);
  rival_run(&b->rival, sql, NULL);
}

static void make_dir(const char *path) {
  if (mkdir(path, 0755) != 0 && errno != EEXIST) {
    bench_fail(path, strerror(errno));
  }
}

/* A file can have some thousand names; where a file system has no links each file is written. */
static void make_tree(files_bench *b) {
  char done[1024], seed[1100], dir[1024], path[1100];
  snprintf(done, sizeof done, "%s/done-%zu", b->dir, b->n_files);
  snprintf(b->pattern, sizeof b->pattern, "%s/day=*/*.parquet", b->dir);
  if (access(done, F_OK) == 0) {
    return;
  }
  make_dir(b->dir);
  for (size_t i = 0; i < b->n_files; i++) {
    snprintf(dir, sizeof dir, "%s/day=%04zu", b->dir, i / FILES_A_DIRECTORY);
    snprintf(path, sizeof path, "%s/part-%04zu.parquet", dir, i % FILES_A_DIRECTORY);
    if (i % FILES_A_DIRECTORY == 0) {
      make_dir(dir);
    }
    if (i % LINKS_A_FILE == 0) {
      snprintf(seed, sizeof seed, "%s", path);
    }
    unlink(path);
    if (i % LINKS_A_FILE == 0 || link(seed, path) != 0) {
      write_seed(b, path);
    }
  }
  FILE *mark = fopen(done, "w");
  if (mark == NULL || fclose(mark) != 0) {
    bench_fail(done, strerror(errno));
  }
}

/* One row is wanted, so that what is measured is planning and not the reading of all files. */
static hf_profile run_once(files_bench *b, hf_session *s) {
  char sql[1200];
  hf_df *df = NULL;
  hf_error error = {0};
  hf_profile profile = {0};
  struct ArrowArrayStream stream;
  snprintf(sql, sizeof sql, "SELECT x FROM '%s' LIMIT 1", b->pattern);
  if (hf_session_sql(s, sql, &df, &error) != HF_OK ||
      hf_df_collect(df, &(hf_action_options){.profile = &profile}, &stream, &error) != HF_OK) {
    bench_fail(sql, error.message);
  }
  stream.release(&stream);
  hf_df_free(df);
  return profile;
}

static double explain_ms(files_bench *b) {
  char sql[1200];
  snprintf(sql, sizeof sql, "EXPLAIN SELECT x FROM '%s' LIMIT 1", b->pattern);
  return rival_run(&b->rival, sql, NULL);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    bench_fail("usage", "files DIR N_FILES RUNS THREADS");
  }
  files_bench b = {.dir = argv[1], .n_files = (size_t)strtoul(argv[2], NULL, 10)};
  size_t runs = (size_t)strtoul(argv[3], NULL, 10);
  rival_open(&b.rival, (unsigned)strtoul(argv[4], NULL, 10));
  make_tree(&b);
  char name[40];
  snprintf(name, sizeof name, "%zu files", b.n_files);
  measure m = {.group = "planning", .name = name, .rival = "EXPLAIN"};
  double worst_ms = 0;
  for (size_t run = 0; run < runs; run++) {
    double before = peak_mb();
    hf_session *s = ours_open(argv[4], argv[4], NULL); /* a new one each time: nothing is remembered */
    ours_run(s, "SET tasks = 2", NULL, NULL);
    hf_profile profile = run_once(&b, s);
    double ms = (double)profile.planning_us / 1000;
    worst_ms = ms > worst_ms ? ms : worst_ms;
    if (run == 0) {
      measure_print_value("planning", "memory for listing, planning and opening the files",
                          peak_mb() - before, "MB");
    }
    hf_session_close(s);
    measure_add(&m, ms, explain_ms(&b));
  }
  measure_print(&m);
  measure_print_limit("planning", name, measure_median(m.ours, m.runs) / 1000, "s", MUST_S);
  measure_print_value("planning", "the slowest run", worst_ms / 1000, "s");
  rival_close(&b.rival);
  return 0;
}

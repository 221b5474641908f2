/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: whole processes from exec to exit, `holdfast sql -c 'select 1'` beside a bare
 * libduckdb program. Usage: start HOLDFAST BARE RUNS
 */
#include "support/measure.h"
#include "support/rival.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

static double run_process(char *const argv[]) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  double start = measure_now_ms();
  pid_t pid;
  int status = 0;
  if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid ||
      status != 0) {
    bench_fail(argv[0], "did not run");
  }
  posix_spawn_file_actions_destroy(&actions);
  return measure_now_ms() - start;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "start HOLDFAST BARE RUNS");
  }
  size_t runs = (size_t)strtoul(argv[3], NULL, 10);
  char *ours[] = {argv[1], "sql", "-c", "select 1", NULL};
  char *theirs[] = {argv[2], NULL};
  measure m = {.group = "start", .name = "select 1, process", .rival = "bare libduckdb"};
  run_process(ours);
  run_process(theirs);
  for (size_t run = 0; run < runs && run < MEASURE_MOST_RUNS; run++) {
    double rival_ms = run_process(theirs);
    measure_add(&m, run_process(ours), rival_ms);
  }
  measure_print(&m);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Structured logging; the level is read once from the environment. */
#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_int level_in_force = -1;

static int level_load(void) {
  int level = atomic_load_explicit(&level_in_force, memory_order_relaxed);
  if (level >= 0) {
    return level;
  }
  level = LOG_ERROR;
  const char *name = getenv("HOLDFAST_LOG");
  for (int i = 0; name != NULL && i <= LOG_DEBUG; i++) {
    if (strcmp(name, level_names[i]) == 0) {
      level = i;
    }
  }
  atomic_store(&level_in_force, level);
  return level;
}

bool log_is_on(log_level level) {
  return (int)level <= level_load();
}

void log_event(log_level level, const char *subsystem, const char *format, ...) {
  if (!log_is_on(level)) {
    return;
  }
  char line[2048];
  uint64_t now = clock_wall_us();
  int head = snprintf(line, sizeof line, "%llu.%06llu %s %s ", (unsigned long long)(now / 1000000),
                      (unsigned long long)(now % 1000000), level_names[level], subsystem);
  size_t used = head < 0 ? 0 : (size_t)head;
  va_list args;
  va_start(args, format);
  int body = vsnprintf(line + used, sizeof line - used - 1, format, args);
  va_end(args);
  used += body < 0 ? 0 : (size_t)body;
  if (used > sizeof line - 2) {
    used = sizeof line - 2;
  }
  line[used++] = '\n';
  ssize_t written = write(STDERR_FILENO, line, used);
  (void)written; /* nowhere to tell */
}
